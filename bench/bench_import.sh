#!/usr/bin/env bash
# What importing a recording costs, beside what it cannot cost less than: MB and events (spans) per second of
# `ipu-report import` (to the finished database), of reading the same content without an import, of inserting as many rows
# into such tables by prepared INSERTs, and of copying the finished database; for Chrome's JSON also of cJSON_Parse. Ratios and peak memory, from one run, the least time of
# ROUNDS; seconds of a processor beside those of the clock, which a busy machine prolongs.
# Usage: bench_import.sh BIN_DIR [EVENTS [ROUNDS [FORMAT ...]]]; FORMAT: chrome perfetto xplane nsys rpd, or a file
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
events=${2:-1000000}
rounds=${3:-3}
formats=("${@:4}")
[ ${#formats[@]} -gt 0 ] || formats=(chrome perfetto xplane nsys rpd)
for ((i = 0; i < ${#formats[@]}; i++)); do
	[ ! -f "${formats[i]}" ] || formats[i]=$(realpath "${formats[i]}")
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# best COMMAND ...: the least seconds of the rounds, those of processors, and the peak of memory in MiB.
best() {
	local round
	for ((round = 0; round < rounds; round++)); do
		/usr/bin/time -f '%e %U %S %M' -o time.txt "$@" >/dev/null
		tail -1 time.txt
	done | sort -n | awk 'NR == 1 { printf "%s %.2f %.0f\n", $1, $2 + $3, $4 / 1024 }'
}

# line NAME SECONDS PROCESSOR MIB: a figure, and the import's ratio to it.
line() {
	awk -v name="$1" -v s="$2" -v cpu="$3" -v mib="$4" -v mb="$mb" -v spans="$spans" -v ours="$import_s" -v our_cpu="$import_cpu" 'BEGIN {
		s = s < 0.01 ? 0.01 : s; cpu = cpu < 0.01 ? 0.01 : cpu
		printf "  %-28s %6.2f s (%5.2f of processors) %7.0f MB/s %7.3f M spans/s %6d MiB   import takes %.2f times as long (%.2f)\n",
			name, s, cpu, mb / s, spans / s / 1e6, mib, ours / s, our_cpu / cpu }'
}

# source_rows DATABASE: the rows of all its tables.
source_rows() {
	sqlite3 -readonly "$1" "SELECT 'SELECT count(*) FROM \"' || name || '\";' FROM sqlite_schema WHERE type = 'table'" |
		sqlite3 -readonly "$1" | awk '{ n += $1 } END { print n + 0 }'
}

for format in "${formats[@]}"; do
	trace=$format
	[ -f "$trace" ] || {
		trace=trace.$format
		"$bin/make_trace" "$format" "$trace" "$events"
	}
	read -r import_s import_cpu import_mib <<<"$(best "$bin/ipu-report" import "$trace" -o import.db --force)"
	read -r spans rows args <<<"$(sqlite3 -separator ' ' -readonly import.db '
		SELECT s, s + (SELECT count(*) FROM kernel_rows) + (SELECT count(*) FROM call_rows) +
			(SELECT count(*) FROM launch_rows) + (SELECT count(*) FROM flow_rows) +
			(SELECT count(*) FROM span_levels), (SELECT count(*) FROM span_arg_rows)
		FROM (SELECT count(*) AS s FROM span_rows)')"
	mb=$(stat -Lc %s "$trace" | awk '{ print $1 / 1e6 }')
	printf '%.0f MB, %d spans, %d arguments, %d other rows: %s\n' "$mb" "$spans" "$args" $((rows - spans)) "$format"
	line "ipu-report import" "$import_s" "$import_cpu" "$import_mib"
	case $format in
	perfetto | xplane) what=("fields|walking its fields") ;;
	nsys | rpd)
		what=("rows|reading its tables")
		source_rows "$trace" | awk -v s="$import_s" '{ printf "  %d rows of the source: %.3f M rows/s\n", $1, $1 / s / 1e6 }'
		;;
	chrome) what=("scan|its scanner alone" "read|reading the file" "cjson|cJSON_Parse (no database)") ;;
	*) what=("read|reading the file") ;;
	esac
	for part in "${what[@]}"; do
		read -r s cpu mib <<<"$(best "$bin/bench_trace" "${part%|*}" "$trace")"
		line "${part#*|}" "$s" "$cpu" "$mib"
	done
	read -r s cpu mib <<<"$(best "$bin/bench_trace" insert insert.db "$rows" "$args")"
	line "inserting as many rows" "$s" "$cpu" "$mib"
	read -r s cpu mib <<<"$(best cp import.db copy.db)"
	line "copying the database" "$s" "$cpu" "$mib"
	rm -f "trace.$format"
done
