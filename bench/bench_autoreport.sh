#!/usr/bin/env bash
# What recording costs: the tutorial trained with autoReport on and off in turn, as whole processes; prints each
# pair's wall time, and the median of their ratio. Usage: bench_autoreport.sh BIN_DIR RUN [PAIRS [KEY VALUE ...]]
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
run=$(realpath "$2")
pairs=${3:-7}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TIMEFORMAT=%R

once() {
	{ time POPLAR_ENGINE_OPTIONS=$1 "$bin/ipu-train" "$run" --quiet --evaluate null --fit.epochs 40 "${@:2}" 2>/dev/null; } 2>&1
	rm -rf tf_report__*
}

once '{}' "$@" >/dev/null # warm-up
for ((i = 0; i < pairs; i++)); do
	on=$(once '{"autoReport.all":"true"}' "$@")
	off=$(once '{}' "$@")
	echo "$on $off" | awk '{ printf "on %.3f s   off %.3f s   ratio %.3f\n", $1, $2, $1 / $2 }'
done | tee pairs.txt
awk '{ print $8 }' pairs.txt | sort -n | awk '{ r[NR] = $1 } END { printf "median ratio of %d pairs: %.3f (on / off)\n", NR, r[int((NR + 1) / 2)] }'
