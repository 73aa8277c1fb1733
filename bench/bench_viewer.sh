#!/usr/bin/env bash
# The viewer in a terminal on large recordings: bench_view (its header says what is measured) on a complete one of each size, on a killed
# one and on one that is being written, both of the first size.
# Usage: bench_viewer.sh BIN_DIR [DIRECTORY [SPANS ...]] (default: 10M 100M; DIRECTORY needs 60 bytes per span)
set -euo pipefail

bin=$(cd "$1" && pwd)
work=$(mktemp -d "${2:-/tmp}/bench_viewer.XXXXXX")
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 10M 100M
writer=
trap '[ -z "$writer" ] || kill -9 "$writer" 2>/dev/null; rm -rf "$work"' EXIT

for spans in "$@"; do
	echo "== $spans spans, complete"
	"$bin/make_database" "$work/complete.db" --spans "$spans" --hits 10k
	"$bin/bench_view" "$bin/ipu-view" "$work/complete.db"
	rm "$work/complete.db"
done
echo "== $1 spans, killed"
{ "$bin/make_database" "$work/killed.db" --spans "$1" --hits 10k --end kill || true; } 2>/dev/null # the shell's word on it
"$bin/bench_view" "$bin/ipu-view" "$work/killed.db"
rm "$work"/killed.db*
echo "== $1 spans, recording"
coproc "$bin/make_database" "$work/live.db" --spans "$1" --hits 10k --end hold
writer=$COPROC_PID
read -r _ <&"${COPROC[0]}"
"$bin/bench_view" "$bin/ipu-view" "$work/live.db"
