#!/usr/bin/env bash
# sample_weight and class_weight: what weighs nothing changes nothing, weights by item, by position and by class agree,
# on the CPU, on two stages and on two replicas; metrics that are weighted and those that are not; padded batches.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"

# arrays NAME WEIGHT-EXPRESSION [PER]: tokens of two kinds of right answers; the weights are of each item i, or of each token too.
arrays() {
	awk -v per="${2:-1}" 'BEGIN {
		srand(3)
		for (part = 0; part < 2; part++) {
			n = part ? 16 : 64; x = y = w = ""
			for (i = 0; i < n; i++) for (t = 0; t < 4; t++) {
				v = int(rand() * 5); c = (2 * v + 1 + (i % 4 == 1)) % 5
				x = x " " v; y = y " " c
				if (t < per) w = w " " ('"$1"')
			}
			p = part ? "test" : "train"
			print "x_" p, "i4", n ",4" x; print "y_" p, "i8", n ",4" y; print "sample_weight_" p, "f4", n (per > 1 ? ",4" : "") w
		}
	}'
}
arrays 1 | grep -v sample_weight | make_npz plain.npz
arrays 1 | make_npz ones.npz
arrays 'i % 2' | make_npz items.npz
arrays 'i % 2' 4 | make_npz spread.npz
arrays 'c < 2 ? 0.5 : 2' 4 | make_npz classes.npz
arrays 'i % 2' | awk '{ if (/^sample_weight_t/) sub(/64/, "63"); print }' | awk '/weight_train/ { NF-- } { print }' | make_npz short.npz
cat >tokens.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Embedding", "config": { "name": "e", "input_dim": 5, "output_dim": 3 } },
		{ "class_name": "Dense", "config": { "name": "d", "units": 5, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "SGD", "config": { "learning_rate": 0.5 } }, "loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy"], "weighted_metrics": [{ "class_name": "SparseCategoricalAccuracy", "config": { "name": "weighted" } }],
		"steps_per_execution": 8 },
	"data": { "name": "npz", "path": "plain.npz", "batch_size": 4 },
	"fit": { "epochs": 1 }, "evaluate": { "steps_per_execution": 4 },
	"gradient_accumulation": { "steps_per_replica": 4 }, "ipu": null
}
JSON
two=(--ipu.auto_select_ipus 2 --pipeline.stages '[0, 1]')
weights() {
	local name=$1
	shift
	"$bin/ipu-train" tokens.json --weights.save "$name" "$@" >"$name.out" 2>&1 || fail "$*: $(cat "$name.out")"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
differ() { cmp -s "$1" "$2" && fail "$1 and $2 are the same"; return 0; }

weights plain
weights ones --data.path ones.npz
same plain ones
weights items --data.path items.npz
differ plain items
weights spread --data.path spread.npz
same items spread
python3 -m zipfile -e items.npz folder
weights unpacked --data.path folder
same items unpacked
weights stages --data.path items.npz "${two[@]}"
same items stages
weights ahead --data.path items.npz --data.prefetch 3
same items ahead
# class_weight is the weight of each target's class; times sample_weight where both are there.
weights by-class --fit.class_weight '{"0": 0.5, "1": 0.5, "2": 2, "3": 2, "4": 2}'
weights by-token --data.path classes.npz
same by-class by-token
weights both --data.path items.npz --fit.class_weight '{"0": 1, "1": 1, "2": 1, "3": 1, "4": 1}'
same items both
weights vectors --data.one_hot true --compile.loss categorical_crossentropy --compile.weighted_metrics null \
	--fit.class_weight '{"0": 0.5, "1": 0.5, "2": 2, "3": 2, "4": 2}'
same by-class vectors
weights replicas --data.path items.npz --ipu.auto_select_ipus 2
weights replicas-stages --data.path items.npz --ipu.auto_select_ipus 4 --pipeline.stages '[0, 1]'
same replicas replicas-stages

# The weighted accuracy is of the odd items alone, the other of all; the loss is the sum of weighted losses over all rows.
"$bin/ipu-train" tokens.json --fit null --weights.load items --data.path items.npz --predict.output out.npz >out
"$bin/ipu-train" tokens.json --fit null --weights.load items --data.path plain.npz >all
python3 -c '
import math, struct, sys, zipfile
def array(file, name, code, count):
    archive = zipfile.ZipFile(file)
    return struct.unpack("<%d%s" % (count, code), archive.read(name or archive.namelist()[0])[-count * struct.calcsize(code):])
p, y = array("out.npz", None, "f", 16 * 4 * 5), array("items.npz", "y_test.npy", "q", 64)
rows = [p[5 * r:5 * r + 5] for r in range(64)]
right = [row.index(max(row)) == c for row, c in zip(rows, y)]
loss = [-math.log(row[c] / sum(row)) for row, c in zip(rows, y)]
odd = [r for r in range(64) if r // 4 % 2]
wanted = [sum(loss[r] for r in odd) / 64, sum(right) / 64, sum(right[r] for r in odd) / len(odd)]
got = [float(word) for word in open("out").read().split("\nloss: ")[1].split("\n")[0].replace("-", "").split() if word[0].isdigit()]
assert all(abs(a - b) <= 1e-4 for a, b in zip(wanted, got)) and len(got) == 3, (wanted, got)
assert wanted[1] != wanted[2], wanted
' || fail "$(tail -2 out)"

# What weights cost on the device: a stream of their own, and products.
cd "$work" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' weights recorded --data.path spread.npz "${two[@]}"
same items recorded
sqlite3 -readonly tf_report__*/profile.db "SELECT variable || shape FROM variables UNION SELECT operation FROM operations" >seen
for line in 'infeed/sample_weight(4, 4)' 'loss/sparse_categorical_crossentropy/weighted' 'metrics/weighted/weighted' 'infeed/arg2'; do
	grep -qxF "$line" seen || grep -qF "$line" seen || fail "the report has no $line"
done
grep -q 'metrics/accuracy/weighted' seen && fail 'an unweighted metric is weighted'

# What data.pad_remainder fills up is what a file has that was filled up with zeros of weight 0 by hand: 54 items are 13 batches
# and a half, and 16 make whole weight updates. What is shown is of the 13 items that there are to test with.
awk 'BEGIN {
	srand(8)
	for (part = 0; part < 2; part++) {
		n = part ? 16 : 64; there = part ? 13 : 54; p = part ? "test" : "train"; x = y = more_x = more_y = w = ""
		for (i = 0; i < n; i++) {
			for (t = 0; t < 4; t++) {
				v = int(rand() * 5); c = (2 * v + 1 + (i % 4 == 1)) % 5
				if (i < there) { x = x " " v; y = y " " c }
				more_x = more_x " " (i < there ? v : 0); more_y = more_y " " (i < there ? c : 0)
			}
			w = w " " (i < there)
		}
		print "x_" p, "i4", there ",4" x > "rest"; print "y_" p, "i8", there ",4" y > "rest"
		print "x_" p, "i4", n ",4" more_x > "filled"; print "y_" p, "i8", n ",4" more_y > "filled"; print "sample_weight_" p, "f4", n w > "filled"
	}
}'
make_npz rest.npz <rest
make_npz filled.npz <filled
padded=(--data.path rest.npz --data.pad_remainder true --data.shuffle false --predict '{"output": "padded.out.npz", "steps_per_execution": 4}')
weights filled --data.path filled.npz --data.shuffle false
weights padded "${padded[@]}"
same filled padded
weights padded-ahead "${padded[@]}" --data.prefetch 2
same filled padded-ahead
weights padded-stages "${padded[@]}" "${two[@]}"
same filled padded-stages
weights two-filled --data.path filled.npz --data.shuffle false --ipu.auto_select_ipus 2
weights two-padded "${padded[@]}" --ipu.auto_select_ipus 2 --evaluate.steps_per_execution 2 --predict.steps_per_execution 2
same two-filled two-padded
weights dropped --data.path rest.npz --data.shuffle false --compile.steps_per_execution epoch --evaluate.steps_per_execution 3
differ padded dropped
"$bin/ipu-train" tokens.json --fit null --weights.load padded --data.path rest.npz --data.drop_remainder false --gradient_accumulation null \
	--predict '{"output": "rest.out.npz"}' --predict.steps_per_execution 4 >out
[ "$(grep '^loss: ' out)" = "$(grep '^loss: ' padded.out)" ] || fail "padded: $(grep '^loss: ' padded.out), short: $(grep '^loss: ' out)"
grep -q 'weighted: 0\.[0-9]*$' out || fail "$(cat out)"
weights padded "${padded[@]}"
cmp -s rest.out.npz padded.out.npz || fail 'padded items are predicted otherwise'

# Bad weights say where they are.
refuse() {
	local says=$1
	shift
	"$bin/ipu-train" tokens.json "$@" >out 2>&1 && fail "taken: $*"
	grep -qF -- "$says" out || fail "$*: $(cat out)"
}
refuse 'fit.class_weight: must have the classes from 0 to 1, one less than their number; "1" is missing' --fit.class_weight '{"0": 1, "2": 1}'
refuse 'fit.class_weight: must be an object of weights by class' --fit.class_weight '[1, 2]'
refuse 'fit.class_weight: it has no weight for item' --fit.class_weight '{"0": 1, "1": 1}'
refuse 'sample_weight_train has 63 items, the targets more: 64' --data.path short.npz
refuse 'data.drop_remainder: is false, but data.pad_remainder makes whole batches of all' --data.drop_remainder false --data.pad_remainder true
refuse 'sample_weight has 4 numbers for each item: 1, or one for each' --data.path spread.npz --model.config.layers.1 \
	'{ "class_name": "Flatten", "config": { "name": "d" } }' --compile.loss mse --compile.metrics null --compile.weighted_metrics null
echo ok
