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
grep -qE '^500/500 \[={30}\] - [0-9]+s [0-9]+(us|ms|s)/step - loss: [0-9.]+ - accuracy: [0-9.]+ - IPU, simulated \(planner\): [0-9]+us/step$' out.txt ||
	fail "the epoch's line: $(grep 500/500 out.txt)"
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
