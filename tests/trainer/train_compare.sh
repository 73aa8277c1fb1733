#!/usr/bin/env bash
# `ipu-train compare`: a row of figures for each network and batch, a reason in place of one, totals, the picture; and what is refused.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
compare() { "$bin/ipu-train" compare "$@"; }

compare --networks MobileNetV2,MobileNet --batches 1,2 --steps 1 --svg bars.svg >out.txt
grep -E '^MobileNetV2 +1 +3,538,984 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+$' out.txt >row || fail "no row: $(cat out.txt)"
[ "$(grep -c '^MobileNet' out.txt)" -eq 4 ] || fail "not four rows: $(cat out.txt)"
head -2 out.txt | grep 'simulated' >/dev/null || fail "not said to be simulated: $(head -2 out.txt)"
# FLOPs of two items are twice those of one, for as many parameters; the ratio is that of the two times.
awk '/^MobileNetV2 / { of[$2] = $4; if (($5 * 1000 / $6 - $7) ^ 2 > 1) exit 1 } END { exit !(of[2] / of[1] > 1.99 && of[2] / of[1] < 2.01) }' out.txt ||
	fail "arithmetic intensity or ratio: $(cat out.txt)"
# The device's time is the one that the run records: cycles of an execution.
POPLAR_ENGINE_OPTIONS='{"autoReport.outputExecutionProfile":true}' "$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/examples/cifar10-resnet50.json" -q \
	--model '{"application":"MobileNetV2","config":{"weights":null}}' --compile.optimizer sgd --data.batch_size 1 --data.limit 64 \
	--fit.epochs 1 --fit.steps_per_epoch 1 --evaluate null
recorded=$("$bin/ipu-report" executions --csv 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["cycles"] / 1330 }')
# Printed to a tenth.
awk -v recorded="$recorded" '{ exit !(($6 - recorded) ^ 2 < 0.06 ^ 2) }' row || fail "the IPU's time is not the recorded $recorded us: $(cat row)"
grep -qE '^Total: 4 of 4 trained, an epoch of 1 step each: [0-9.]+ s on this machine, [0-9.]+ s on the IPU \(simulated\)$' out.txt ||
	fail "no total: $(tail -1 out.txt)"
# A bar for each row, the greatest intensity on top, within the picture.
[ "$(grep -oE '(MobileNet|MobileNetV2)_[12]<' bars.svg | tr -d '<' | paste -sd' ')" = 'MobileNet_2 MobileNetV2_2 MobileNet_1 MobileNetV2_1' ] ||
	fail "the bars: $(cat bars.svg)"
if command -v python3 >/dev/null; then
	python3 -c '
import sys, xml.etree.ElementTree as tree
svg = tree.parse("bars.svg").getroot()
bars = [r for r in svg if r.tag.endswith("rect") and r.get("width") != "100%"]
assert len(bars) == 4, len(bars)
for bar in bars:
    assert 0 <= float(bar.get("x")) and float(bar.get("x")) + float(bar.get("width")) <= float(svg.get("width"))
' || fail 'the picture is no SVG of four bars'
fi

compare --networks MobileNetV2 --batches 1 --steps 1 --data.path /no/such >out.txt
grep -qE '^MobileNetV2 +1 +skipped: .*/no/such' out.txt || fail "$(cat out.txt)"
compare --networks MobileNetV2 --batches 1 --steps 100000 --seconds 1 >out.txt
grep -qE '^MobileNetV2 +1 +skipped: took more than 1 s$' out.txt || fail "$(cat out.txt)"
grep -q '^Total: 0 of 1 trained' out.txt || fail "$(cat out.txt)"
compare --networks MobileNetV2 --batches 1 --steps 1 --ipu.tiles_per_ipu 100 >out.txt
grep -qE '^MobileNetV2 +1 +skipped: IPU 0 is out of memory on 100 of 100 tiles: tile [^;]*$' out.txt || fail "a machine too small: $(cat out.txt)"
compare --networks MobileNetV2 --batches 1 --steps 1 --ipu null >out.txt
grep -qE '^MobileNetV2 +1 +3,538,984 +[0-9.]+ +[0-9.]+ +- +-$' out.txt || fail "on the CPU alone: $(cat out.txt)"

# refuse TEXT ARGUMENT...
refuse() {
	local text=$1 code=0
	shift
	compare "$@" >out.txt 2>err.txt || code=$?
	[ $code -eq 2 ] && [ ! -s out.txt ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -qF -- "$text" err.txt || fail "$*: $code, $(cat out.txt err.txt)"
}
refuse 'unknown network "MobileNetV9" (did you mean "MobileNetV2"?)' --networks MobileNetV9
refuse '"x" is not a number' --batches x
refuse 'unknown option --fit.epoch (did you mean --fit.epochs?)' --networks MobileNetV2 --fit.epoch 1
refuse '/no/such' --svg /no/such/bars.svg
echo ok
