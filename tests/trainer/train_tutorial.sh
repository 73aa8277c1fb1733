#!/usr/bin/env bash
# The tensor inspection tutorial prints the keys, shapes and table of its document.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
train 500 --data.limit 20000 >out.txt
expect() {
	grep -qF -- "$1" out.txt || fail "not printed: $1
$(cat out.txt)"
}
expect 'Gradients callback'
expect 'key: Dense_128/bias:0_grad shape: (125, 128)'
expect 'key: Dense_128/kernel:0_grad shape: (125, 256, 128)'
expect 'Multi-layer activations callback'
expect 'key: Dense_128_acts shape: (500, 32, 128)'
expect 'key: Dense_10_acts shape: (500, 32, 10)'
expect 'Epoch 1 - Summary Stats'
expect 'Index Name                         Mean         Std          Minimum      Maximum      NaNs    infs   '
grep -qE '^0     Dense_128/bias:0_grad        -?[0-9]+\.[0-9]{6} ' out.txt || fail "the table's first row: $(cat out.txt)"
grep -A1 -E '^500/500 \[={20}\] - [0-9]+s [0-9]+(us|ms|s)/step - loss: [0-9.]+ - accuracy: [0-9.]+$' out.txt >epoch.txt ||
	fail "the epoch's line: $(grep 500/500 out.txt)"
grep -qE '^    IPU, simulated \(planner\): [0-9]+us/step$' epoch.txt || fail "no simulated time: $(cat epoch.txt)"
# Whatever is counted comes to its end: the steps of the epoch and of the evaluation.
awk -F '[/ ]' '/^[0-9]+\/[0-9]+ \[/ { lines++; parts += $1 != $2 } END { exit lines != 2 || parts }' out.txt || fail "steps: $(grep '^[0-9]*/' out.txt)"
# Which device there is, and that it ended well, as the tutorials' logs say it; nothing of that kind on the CPU.
expect 'Poplar version: none (simulated by ipuscope '
expect 'Device /device:IPU:0 attached to 2 IPUs with Poplar device ID: 0 (simulated ipu2)'
[ "$(tail -1 out.txt)" = 'Program ran successfully (IPUs simulated)' ] || fail "the last line: $(tail -1 out.txt)"
expect 'Layer (type)                  Pipeline Stage'
grep -qE '^\[#{50}\] 100% Compilation Finished \[Elapsed: 00:00:0[0-9]\.[0-9]\]$' out.txt || fail "the compile bar"
[ -z "$(ls -d tf_report__* 2>/dev/null)" ] || fail "a report without being asked for"

train 100 --no-pipelining --evaluate null >out.txt
expect 'Single layer activations callback'
expect 'key: Dense_128/kernel:0_grad shape: (100, 784, 128)'
expect 'key: Dense_128_acts shape: (100, 32, 128)'

train 100 --evaluate null --outfeed-pre-accumulated-gradients >out.txt
expect 'key: Dense_128/bias:0_grad shape: (100, 128)'

train 100 --evaluate null --gradients-filters none --activations-filters Dense_10 >out.txt
expect 'key: Dense_10/bias:0_grad shape: (25, 10)'
expect 'key: Dense_256/kernel:0_grad shape: (25, 784, 256)'
expect 'key: Dense_10_acts shape: (100, 32, 10)'
! grep -q 'key: Dense_128_acts' out.txt || fail "a filtered activation was sent"

train 100 --evaluate null --outfeed.activations '["nothing"]' >out.txt
expect 'No data enqueued'

# Bad numbers are shown as such.
train 100 --compile.optimizer '{"class_name":"SGD","config":{"learning_rate":1e9}}' >out.txt
expect ' - loss: nan'
grep -qE '^loss: nan' out.txt || fail "the evaluation's line"
grep -qE '^0     Dense_128/bias:0_grad        nan          nan          nan          nan          True ' out.txt || fail "NaNs in the table: $(cat out.txt)"

# Lines of an epoch fit in 80 columns, whatever there is to show.
"$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json" --data.limit 2000 --fit.epochs 1 --fit.validation true \
	--compile.metrics '["accuracy", "mse", "mae"]' >out.txt
[ "$(sed -n '/^Epoch/,$p' out.txt | awk 'length > 80' | wc -l)" -eq 0 ] || fail "wider than 80 columns: $(sed -n '/^Epoch/,$p' out.txt)"
sed -n '/^Epoch/,$p' out.txt | tr '\n' ' ' | grep -E 'loss: .* accuracy: .* mse: .* mae: .* val_loss: .* val_mae: ' >/dev/null || fail "a figure is missing: $(cat out.txt)"
! grep -qE 'IPU|Poplar|Compil' out.txt || fail "the CPU alone compiles nothing: $(grep -E 'IPU|Poplar|Compil' out.txt)"
[ "$(tail -1 out.txt)" = 'Program ran successfully' ] || fail "the last line: $(tail -1 out.txt)"
# A flag that has no effect says so, and what it lacks.
"$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json" --pipelining --summary >out.txt
expect '--pipelining has no effect without --use-ipu.'

# A run file's own flags come first in its help, every key after them.
"$bin/ipu-train" "$run" --help >out.txt
head -2 out.txt | grep '^Flags of ' >/dev/null || fail "the help begins: $(head -3 out.txt)"
[ "$(grep -n -- '--fit.epochs' out.txt | head -1 | cut -d: -f1)" -gt "$(grep -n -- '--no-pipelining' out.txt | head -1 | cut -d: -f1)" ] ||
	fail 'keys come before the flags'
