#!/usr/bin/env bash
# Recordings of 2 GB: imported whole, in less than 100 MiB of memory, and opened by ipu-view as they are.
# Usage: large_imports.sh BIN_DIR [PERCENT]; PERCENT: of that size. Needs 6 GB of disk.
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
percent=${2:-100}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

for format in perfetto:28000000 chrome:16500000 xplane:64000000; do
	events=$((${format#*:} / 100 * percent))
	"$bin/make_trace" "${format%:*}" trace "$events"
	/usr/bin/time -f '%e %U %S %M' -o time.txt "$bin/ipu-report" import trace -o trace.db --quiet
	read -r seconds user system kib <<<"$(tail -1 time.txt)"
	echo "${format%:*}: $(stat -c %s trace) bytes in $seconds s ($user + $system of processors), $kib KiB"
	[ "$kib" -lt $((100 << 10)) ] || fail "${format%:*}: $kib KiB"
	# What lasts no time in an XPlane is an instant.
	spans=$(sqlite3 -readonly trace.db 'SELECT (SELECT count(*) FROM span_rows) + (SELECT count(*) FROM instant_rows)')
	[ "$spans" -eq "$events" ] || fail "${format%:*}: $spans spans and instants of $events"
	rm trace.db
	"$bin/ipu-view" trace --view timeline --text >screen.txt
	grep -q 'worker\|thread' screen.txt || fail "${format%:*}: ipu-view shows no thread"
	rm -rf trace cache
done
