#!/usr/bin/env bash
# What importing a Chrome trace costs, beside what it cannot cost less than and what others need: MB of JSON per second of
# `ipu-report import` (to the finished database), of scanning the text for its events alone, of reading the file, and of
# cJSON_Parse on the same file; ratios and peak memory, from one run, the least time of ROUNDS.
# Usage: bench_import.sh BIN_DIR [EVENTS [ROUNDS [TRACE]]]
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
events=${2:-1000000}
rounds=${3:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trace=${4:-$work/trace.json}
[ -f "$trace" ] || "$bin/bench_trace" make "$trace" "$events"

# best COMMAND ...: the least seconds of the rounds, and the peak of memory in MiB.
best() {
	local round
	for ((round = 0; round < rounds; round++)); do
		/usr/bin/time -f '%e %M' -o time.txt "$@" >/dev/null
		tail -1 time.txt
	done | sort -n | awk 'NR == 1 { printf "%s %.0f\n", $1, $2 / 1024 }'
}

cd "$work"
mb=$(stat -Lc %s "$trace" | awk '{ print $1 / 1e6 }')
printf '%.0f MB of JSON, %s\n' "$mb" "$trace"
read -r import_s import_mib <<<"$(best "$bin/ipu-report" import "$trace" -o import.db --force)"
read -r scan_s scan_mib <<<"$(best "$bin/bench_trace" scan "$trace")"
read -r read_s read_mib <<<"$(best "$bin/bench_trace" read "$trace")"
read -r cjson_s cjson_mib <<<"$(best "$bin/bench_trace" cjson "$trace")"
line() {
	awk -v name="$1" -v s="$2" -v mib="$3" -v mb="$mb" -v ours="$import_s" 'BEGIN {
		s = s < 0.005 ? 0.005 : s
		printf "%-28s %7.2f s %8.0f MB/s   peak %6d MiB   import takes %.2f times as long\n", name, s, mb / s, mib, ours / s }'
}
line "ipu-report import" "$import_s" "$import_mib"
line "its scanner alone" "$scan_s" "$scan_mib"
line "reading the file" "$read_s" "$read_mib"
line "cJSON_Parse (no database)" "$cjson_s" "$cjson_mib"
