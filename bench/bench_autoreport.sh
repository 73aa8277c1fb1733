#!/usr/bin/env bash
# What recording costs: the tutorial trained with autoReport on and off in turn, as whole processes; prints each
# pair's wall and processor time, and the medians of their ratios: on a machine that others use too, only processor
# time is the program's. Usage: bench_autoreport.sh BIN_DIR RUN [PAIRS [KEY VALUE ...]]
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
run=$(realpath "$2")
pairs=${3:-7}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TIMEFORMAT="%R %U %S"

once() {
	{ time POPLAR_ENGINE_OPTIONS=$1 "$bin/ipu-train" "$run" --quiet --evaluate null --fit.epochs 40 "${@:2}" 2>/dev/null; } 2>&1
	rm -rf tf_report__*
}

once '{}' "$@" >/dev/null # warm-up
for ((i = 0; i < pairs; i++)); do
	on=$(once '{"autoReport.all":"true"}' "$@")
	off=$(once '{}' "$@")
	echo "$on $off" | awk '{
		printf "on %.3f s   off %.3f s   ratio %.3f   processor on %.3f s   off %.3f s   ratio %.3f\n",
			$1, $4, $1 / $4, $2 + $3, $5 + $6, ($2 + $3) / ($5 + $6)
	}'
done | tee pairs.txt
for column in 8 17; do
	awk -v column=$column '{ print $column }' pairs.txt | sort -n | awk -v what="$([ $column = 8 ] && echo wall || echo processor)" \
		'{ r[NR] = $1 } END { printf "median ratio of %s time, %d pairs: %.3f (on / off)\n", what, NR, r[int((NR + 1) / 2)] }'
done
