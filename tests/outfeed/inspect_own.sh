#!/bin/bash
# The hand-written trainer of examples/: its file has the rows, the rules and the first bad number that ipu-train's
# have, and answers to ipu-report and ipu-view as theirs do. Usage: inspect_own.sh [PROGRAM]
set -eu
bin=${IPUSCOPE_BIN_DIR:?}
program=${1:-$bin/inspect_own}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3"; exit 77; }

fail() { echo "$1"; exit 1; }

expect() {
	local file=$1 sql=$2 want=$3 got
	got=$(sqlite3 "$file" "$sql" | tr '\n' ' ')
	[ "$got" = "$want " ] || fail "$file: $sql: $got instead of $want"
}

# A sound run: nothing is broken, and it learns.
"$program" sound.db >out 2>err
grep -qx 'rules broken: 0' out || fail "a sound run is not quiet: $(cat out err)"
[ ! -s err ] || fail "a library spoke: $(cat err)"
expect sound.db "SELECT queue, key, kind, layer, shape, dtype FROM tensors ORDER BY key" \
	"outfeed|dense|activation|dense|(32, 4)|float32 outfeed|dense/kernel|weight|dense|(8, 4)|float32 outfeed|dense/kernel_grad|gradient|dense|(8, 4)|float32"
expect sound.db "SELECT key, count(*), min(step), max(step), sum(n) FROM tensor_stats GROUP BY key ORDER BY key" \
	"dense|100|0|99|12800 dense/kernel|100|0|99|3200 dense/kernel_grad|100|0|99|3200"
expect sound.db "SELECT count(*), count(inactive), count(update_ratio), count(n_changed) FROM tensor_stats" "300|100|99|99"
expect sound.db "SELECT count(*), min(step), max(step), sum(mode = 'train') FROM metrics WHERE name = 'loss'" "100|0|99|100"
expect sound.db "SELECT avg(value) FILTER (WHERE step >= 90) < 0.5 * avg(value) FILTER (WHERE step < 10) FROM metrics" 1
expect sound.db "SELECT count(*) FROM health" 0
expect sound.db "SELECT count(*) > 10 FROM health_rules WHERE enabled" 1
expect sound.db "SELECT count(*) FROM first_nonfinite" 0

# One input is no number: the units of its sample are the first to show it, in the order of execution.
"$program" bad.db nan >out
grep -Eqx 'rules broken: [1-9][0-9]*' out || fail "a NaN broke no rule: $(cat out)"
expect bad.db "SELECT key, kind, step, element, value FROM first_nonfinite JOIN tensors USING (queue, key)" \
	"dense|activation|60|12|nan"
expect bad.db "SELECT key, min(step) FROM health WHERE rule = 'nonfinite' GROUP BY key ORDER BY key" \
	"dense|60 dense/kernel|60 dense/kernel_grad|60 loss|60"
expect bad.db "SELECT key, n_nan FROM tensor_stats WHERE step = 60 ORDER BY key" \
	"dense|4 dense/kernel|32 dense/kernel_grad|32"
expect bad.db "SELECT role, key, n_nan FROM nonfinite_trail WHERE position = 0" "bad|dense|4"
expect bad.db "SELECT count(*) > 0 FROM nonfinite_trail WHERE role = 'before' AND key = 'dense/kernel' AND n_nan = 0" 1

# The same reports and views.
for file in sound.db bad.db; do
	"$bin/ipu-report" "$file" list --csv | grep -Ev '^(report|repair),|,verb,' >names
	[ "$(wc -l <names)" -gt 20 ] || fail "ipu-report list: $(cat names)"
	while IFS=, read -r name _; do
		"$bin/ipu-report" "$file" "$name" >"report-$name" || fail "ipu-report $file $name"
		# Nothing that is true of runs of ipu-train alone, no advice in its flags.
		! grep -E 'ended before its first|was finished|had no pipeline|no simulated device|`--|autoReport|compile\.' \
			"report-$name" || fail "ipu-report $file $name says what is not so"
	done <names
	grep -q 'dense/kernel_grad' report-tensors || fail "ipu-report tensors: $(cat report-tensors)"
	for view in summary timeline tensors; do
		"$bin/ipu-view" "$file" --view $view --text >"view-$view" || fail "ipu-view --view $view"
	done
	grep -q 'dense/kernel_grad' view-tensors || fail "ipu-view --view tensors: $(cat view-tensors)"
done
grep -q nonfinite report-health || fail "ipu-report health: $(cat report-health)"
echo "a hand-written trainer is looked at as ipu-train is"
