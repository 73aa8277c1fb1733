#!/usr/bin/env bash
# The simulated machine beside published figures: products, the step that the framework's programs were solved from,
# the one that was not, and where they are there, poplibs' cycles by kind.
set -uo pipefail

export LC_ALL=C # a point in the numbers that awk writes
fidelity=$IPUSCOPE_BIN_DIR/fidelity
[ -x "$fidelity" ] || { echo "skipped: built without benchmarks"; exit 77; }
table=$("$fidelity" --table ${IPUSCOPE_GOLDEN:+--golden "$IPUSCOPE_GOLDEN"}) || exit 1
failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

# ratios NAME: the fourth column from the end of the rows so named. Then come target, calibrated and source.
ratios() {
	awk -v name="$1" 'index($0, "  " name) == 1 { print $(NF - 3) }' <<<"$table"
}
near() { # VALUE LEAST MOST WHAT
	awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v != "" && v >= a && v <= b) }' || wrong "$4: $1"
}

products=$(ratios "[")
[ "$(wc -l <<<"$products")" -eq 34 ] || wrong "products: $(wc -l <<<"$products") rows"
fit=$(awk '{ d = $1 - 1; s += d; q += d * d } END { printf "%.4f %.4f", sqrt(q / NR), s / NR }' <<<"$products")
near "${fit% *}" 0 0.07 "rms of the products"
near "${fit#* }" -0.03 0.03 "bias of the products"
near "$(ratios "convnet, 1 IPU")" 0.98 1.02 "the calibrated step"
near "$(ratios "convnet, 2 replicas")" 0.92 1.08 "two replicas"
near "$(ratios "convnet, a step a run")" 0.85 1.15 "a step a run"
bubbles=$(ratios "1f1b"; ratios "zb-h")
[ "$(grep -c "^1\.00$" <<<"$bubbles")" -eq 24 ] || wrong "bubble rates: $bubbles"
# A table may have rows of several machines.
[ "$(awk '/^  (convnet, 1 IPU|ResNet50, batch 2) / { printf "%s ", $(NF - 2) }' <<<"$table")" = "ipu2 ipu21 " ] || wrong "machines of the steps"

# rms NAME MOST: of the table so named, in per cent; skipped where its figures are not there.
rms() {
	local found
	found=$(awk -v name="$1" 'index($0, "  " name "  ") == 1 && NF > 8 { print $(NF - 4) }' <<<"$table")
	[ -z "$found" ] || near "$found" 0 "$2" "rms of $1"
}
grep -q "^skipped: poplibs" <<<"$table" && echo "poplibs' cycles are not here: their rms is not looked at"
rms "products added to C" 6
rms "convolutions" 10
rms "fully connected, large" 12
rms "fully connected, small" 12
rms "depthwise convolutions" 20
rms "memory of all of these, as plans have it" 22

# Figures from a file are read, whole or not at all; without it that is said.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cat >"$folder/rows.csv" <<'EOF'
name,what,dtype,batch,in_channels,out_channels,field,kernel,stride,padding,groups,m,k,n,cycles_mk2,total_memory_bytes,max_tile_bytes
wide,"product m x k times k x n, added to C",float16,,,,,,,,,64,32,128,1000,2000000,1
one,conv forward+backward+update,float16,4,64,64,56x56,1x1,1x1,0x0,1,,,,20000,3000000,1
EOF
rows=$("$fidelity" --table --golden "$folder/rows.csv")
[ "$(grep -cE '^  (wide|one) ' <<<"$rows")" -eq 4 ] || wrong "rows of a file: $rows"
sed -i 's/56x56/56y56/' "$folder/rows.csv"
"$fidelity" --table --golden "$folder/rows.csv" >"$folder/out" 2>&1 && wrong "a bad field is read"
grep -q "rows.csv:3: the shape or the figure cannot be read" "$folder/out" || wrong "error: $(cat "$folder/out")"
grep -q "^skipped: .*no/such" <<<"$("$fidelity" --table --golden no/such)" || wrong "a file that is not there"
exit $failed
