#!/usr/bin/env bash
# `ipu-report diff A B`: two equal runs have no difference; two that differ in one weight by one unit in the last
# place part at the first tensor that sees it, which SQL finds by itself; a gate has its exit code.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 changes the weight, and is absent"
	exit 77
}
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
watch='[{"kind":["activation","gradient"],"tier":"stats"}]'

# run NAME STEPS [--key value ...]: a run of STEPS steps whose report is called NAME.
record() {
	local name=$1 steps=$2
	shift 2
	train "$steps" --outfeed.capture "$watch" "$@" >out.txt 2>err.txt || fail "$name: $(cat err.txt)"
	mv tf_report__* "$name"
}
report() {
	"$bin/ipu-report" "$@"
}

POPLAR_ENGINE_OPTIONS='' train 8 --weights.save first.npz >/dev/null
# The greatest weight of Dense_128, one unit in the last place larger.
python3 - <<'PYTHON'
import struct, zipfile
source = zipfile.ZipFile("first.npz")
with zipfile.ZipFile("second.npz", "w", zipfile.ZIP_STORED) as target:
    for name in source.namelist():
        data = bytearray(source.read(name))
        if name.startswith("Dense_128/kernel"):
            start = 10 + struct.unpack("<H", data[8:10])[0]
            values = struct.unpack("<%df" % ((len(data) - start) // 4), data[start:])
            at = start + 4 * max(range(len(values)), key=lambda i: values[i])
            data[at:at + 4] = struct.pack("<I", struct.unpack("<I", data[at:at + 4])[0] + 1)
        target.writestr(name, bytes(data))
PYTHON
record a 64 --weights.load first.npz
record b 64 --weights.load first.npz
record c 64 --weights.load second.npz
record d 32 --weights.load first.npz

# ---- equal runs ----------------------------------------------------------------------------------
report diff a b >out.txt || fail "equal runs: exit code $?"
grep -q '^All [0-9,]* rows of tensors and metrics that both have are equal' out.txt || fail "equal: $(cat out.txt)"
grep -qE '^The weights at the end are the same \(XXH3 [0-9a-f]{16}\)' out.txt || fail "equal weights: $(cat out.txt)"
grep -q 'Nothing differs but what was measured on the host' out.txt || fail "equal: $(cat out.txt)"
[ "$(awk 'length > 80' out.txt | wc -l)" -eq 0 ] || fail "wider than 80 columns: $(awk 'length > 80' out.txt)"
report diff a b --gate 0% --ignore-host >/dev/null || fail "equal runs do not pass a gate of 0 %"
report diff a a --all >out.txt || fail "a run and itself"
report diff a a >out.txt
grep -q 'No other difference' out.txt || fail "a run and itself: $(cat out.txt)"
cmp <(report diff a b --sections memory,operations,metrics --all --json) \
	<(report diff a b --sections memory,operations,metrics --all --json) || fail "not the same twice"

# ---- one unit in the last place -------------------------------------------------------------------
report diff a c >out.txt || fail "exit code $? without a gate"
grep -qE '^The weights at the end differ \(XXH3 [0-9a-f]{16}, [0-9a-f]{16}\)' out.txt || fail "other weights: $(cat out.txt)"
report diff a c --json >diff.json
found=$(python3 -c '
import json
d = json.load(open("diff.json"))
assert d["report"] == "diff" and d["tool"] == "ipu-report"
r = d["rows"][0]
assert r["section"] == "first_difference" and r["source"] != r["target"], r
print(r["key"], r["kind"], r["layer"], r["step"], sep="|")')
# The same by SQL: the first step whose activations differ, and the first of them in the order of the layers.
truth=$(sqlite3 a/profile.db "ATTACH 'c/profile.db' AS c;
	SELECT a.key, a.kind, a.layer, a.step FROM tensor_stats a
	JOIN c.tensor_stats b USING (queue, key, mode, execution, step, microbatch, replica)
	LEFT JOIN layers l ON l.layer = a.layer
	WHERE a.kind = 'activation' AND (a.l2 IS NOT b.l2 OR a.mean IS NOT b.mean OR a.max IS NOT b.max)
	ORDER BY a.execution, a.step, l.position LIMIT 1")
[ "$found" = "$truth" ] || fail "parts at $found, but SQL says $truth"
[[ $found == *"|activation|Dense_128"* ]] || fail "parts at $found"
grep -q "^  tensor  ${found%%|*} (activation of Dense_128" out.txt || fail "text: $(cat out.txt)"
[ "$(report diff a c --csv --sections tensors --all | grep -c '^first_difference')" -eq 1 ] || fail "CSV"

# ---- other lengths, gates -------------------------------------------------------------------------
report diff a d >out.txt
grep -q '^The source alone has [1-9][0-9,]* rows' out.txt || fail "lengths: $(cat out.txt)"
code=0
report diff a c --gate 0% --sections metrics --csv >out.txt 2>err.txt || code=$?
worse=$(sqlite3 a/profile.db "ATTACH 'c/profile.db' AS c; SELECT count(*) FROM metrics a JOIN c.metrics b
	USING (mode, name) WHERE a.step IS NULL AND b.step IS NULL AND a.epoch IS b.epoch
	AND CASE WHEN a.name = 'loss' THEN b.value > a.value ELSE b.value < a.value END")
[ "$code" -eq $((worse > 0)) ] || fail "gate: exit code $code, $worse metrics are worse: $(cat err.txt)"
sqlite3 b/profile.db "UPDATE execution_rows SET cycles = cycles * 2"
code=0
report diff a b --gate 5% --ignore-host >out.txt 2>err.txt || code=$?
[ $code -eq 1 ] || fail "twice the cycles: exit code $code"
grep -q 'the gate of 5 % is exceeded: device step mean_cycles by 50 %' err.txt || fail "gate: $(cat err.txt)"
[ "$(wc -l <err.txt)" -eq 1 ] || fail "gate: not one line"
report diff a b --gate 50% --ignore-host >/dev/null || fail "50 % is not more than 50 %"

# ---- refusals --------------------------------------------------------------------------------------
refused() {
	local part=$1 code=0
	shift
	report "$@" >out.txt 2>err.txt || code=$?
	[ $code -eq 2 ] || fail "$*: exit code $code"
	[ "$(wc -l <err.txt)" -eq 1 ] || fail "$*: not one line"
	grep -qF -- "$part" err.txt || fail "$*: $(cat err.txt)"
}
refused 'two runs are needed' diff a
refused 'one word too many: "c"' diff a b c
refused 'unknown section "totels" (did you mean "totals"?)' diff a b --sections totels
refused 'is not a percentage' diff a b --gate much
refused 'nowhere' diff a nowhere
