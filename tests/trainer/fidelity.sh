#!/usr/bin/env bash
# The simulated machine beside published figures: products within 15 % rms and 10 % bias, the step that a phase's
# cost was solved from, and the one that was not.
set -uo pipefail

export LC_ALL=C # a point in the numbers that awk writes
fidelity=$IPUSCOPE_BIN_DIR/fidelity
[ -x "$fidelity" ] || { echo "skipped: built without benchmarks"; exit 77; }
table=$("$fidelity" --table) || exit 1
failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

# ratios NAME: the fifth column from the end of the rows so named.
ratios() {
	awk -v name="$1" 'index($0, "  " name) == 1 { print $(NF - 1) }' <<<"$table"
}
near() { # VALUE LEAST MOST WHAT
	awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v != "" && v >= a && v <= b) }' || wrong "$4: $1"
}

products=$(ratios "[")
[ "$(wc -l <<<"$products")" -eq 34 ] || wrong "products: $(wc -l <<<"$products") rows"
fit=$(awk '{ d = $1 - 1; s += d; q += d * d } END { printf "%.4f %.4f", sqrt(q / NR), s / NR }' <<<"$products")
near "${fit% *}" 0 0.15 "rms of the products"
near "${fit#* }" -0.10 0.10 "bias of the products"
near "$(ratios "convnet, 1 IPU")" 0.98 1.02 "the calibrated step"
near "$(ratios "convnet, 2 replicas")" 0.90 1.10 "two replicas"
near "$(ratios "convnet, a step a run")" 0.85 1.15 "a step a run"
exit $failed
