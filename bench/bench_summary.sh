#!/usr/bin/env bash
# `ipu-report summary` of a large recording, complete, killed and being written: seconds and peak memory, beside the limit, a plain
# SELECT count(*) that scans the rows of the same file. Usage: bench_summary.sh BIN_DIR [DIRECTORY [MAKE_DATABASE_ARGS ...]]
# (default: 8 million spans with what belongs to them, more than 10 million rows; DIRECTORY needs 1 GB)
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
work=$(mktemp -d "${2:-/tmp}/bench_summary.XXXXXX")
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- --spans 8M
writer=
trap '[ -z "$writer" ] || kill -9 "$writer" 2>/dev/null; rm -rf "$work"' EXIT

# least NAME COMMAND ...: the least seconds of 7 runs (the first after one that warms the cache) and their peak memory in MB.
least() {
	python3 - "$@" <<'PYTHON'
import os, resource, subprocess, sys, time

def once(command):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit("%s failed" % command[0])
    return time.monotonic() - start, usage.ru_maxrss / 1024

runs = [once(sys.argv[1:]) for _ in range(8)][1:]
print("%.4f %.1f" % (min(r[0] for r in runs), max(r[1] for r in runs)))
PYTHON
}

scan='SELECT (SELECT count(*) FROM span_rows WHERE track_id) + (SELECT count(*) FROM stage_timing_rows WHERE clock >= 0) +
	(SELECT count(*) FROM tensor_stat_rows WHERE tensor_id) + (SELECT count(*) FROM metric_rows WHERE rank >= 0)'

compare() {
	local name=$1 file=$2
	echo "$(least "$bin/ipu-report" "$file" summary) $(least sqlite3 -readonly "$file" "$scan")" |
		awk -v name="$name" '{ printf "summary of a %-9s file %8.3f s %6.1f MB   plain scan %8.3f s %6.1f MB   ratio %.4f\n", name, $1, $2, $3, $4, $1 / $3 }'
}

rows_of() {
	sqlite3 -readonly "$1" "SELECT (SELECT max(span_id) FROM span_rows) || ' spans, ' || (SELECT max(row_id) FROM stage_timing_rows) ||
		' stage timings, ' || (SELECT max(row_id) FROM tensor_stat_rows) || ' rows of statistics, ' || (SELECT max(row_id) FROM metric_rows) ||
		' metrics, ' || (SELECT max(row_id) FROM bubble_rows) || ' bubbles'"
}

"$bin/make_database" "$work/complete.db" "$@"
rows_of "$work/complete.db"
compare complete "$work/complete.db"
rm "$work/complete.db"
{ "$bin/make_database" "$work/killed.db" "$@" --end kill || true; } 2>/dev/null # the shell's word on it
compare killed "$work/killed.db"
rm "$work"/killed.db*
coproc "$bin/make_database" "$work/live.db" "$@" --end hold
writer=$COPROC_PID
read -r _ <&"${COPROC[0]}"
compare live "$work/live.db"
