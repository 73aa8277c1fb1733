#!/usr/bin/env bash
# What looking costs: the convnet trained with autoReport on, with a tier on its tensors and with nothing looked at in turn,
# the order alternating; prints the median ratio of training times (Engine::run of training in the report) and of processor
# times (the whole process), against the targets. Usage: bench_watch.sh BIN_DIR RUN [PAIRS [KEY VALUE ...]]
set -euo pipefail
export LC_ALL=C # a point in its numbers

bin=$(cd "$1" && pwd)
run=$(realpath "$2")
pairs=${3:-7}
shift $(($# < 3 ? $# : 3))
more=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TIMEFORMAT='%U %S' POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}'

# once [KEY VALUE ...]: seconds of training, of the processors.
once() {
	local cpu
	cpu=$({ time "$bin/ipu-train" "$run" --quiet --evaluate null --compile.steps_per_execution epoch --fit.epochs 2 \
		--health.watch none "${more[@]}" "$@" 2>/dev/null; } 2>&1)
	sqlite3 -readonly report/*/profile.db "SELECT sum(dur_ns) / 1e9 FROM executions WHERE mode = 'train'" | tr '\n' ' '
	awk '{ print $1 + $2 }' <<<"$cpu"
	rm -rf report
}

# compare NAME TARGET KEY VALUE ...: TARGET in %; -: none.
compare() {
	local name=$1 target=$2 with without i
	shift 2
	for ((i = 0; i < pairs; i++)); do
		if ((i % 2)); then
			without=$(once --outfeed.capture off)
			with=$(once "$@")
		else
			with=$(once "$@")
			without=$(once --outfeed.capture off)
		fi
		echo "$with $without"
	done >pairs.txt
	for column in 1 2; do
		awk -v c=$column '{ print $c / $(c + 2) }' pairs.txt | sort -n |
			awk -v name="$name" -v what="$([ $column = 1 ] && echo training || echo processor)" -v target="$target" \
				'{ r[NR] = $1 } END { printf "%-36s %-9s time: median ratio of %d pairs %.4f (%.4f to %.4f)%s\n", name, what, NR,
				NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2, r[1], r[NR],
				target == "-" ? "" : sprintf(", target at most %.2f", 1 + target / 100) }'
	done
	awk -v name="$name" 'NR == 1 || $1 < w { w = $1 } NR == 1 || $3 < n { n = $3 } NR == 1 || $2 < cw { cw = $2 } NR == 1 || $4 < cn { cn = $4 }
		END { printf "%-36s least: training %.3f s and %.3f s without (%.4f), processors %.3f s and %.3f s (%.4f)\n", name, w, n, w / n, cw, cn, cw / cn }' pairs.txt
}

once >/dev/null # warm-up
compare "stats of every gradient" 1 --outfeed.capture '[{"kind": "gradient", "tier": "stats"}]'
compare "health of activations and gradients" 3 --outfeed.capture '[{"kind": ["activation", "gradient"], "tier": "health"}]'
compare "health.watch all" 3 --outfeed.capture off --health.watch all
compare "stats of every tensor" - --outfeed.capture '[{"tier": "stats"}]'
