#!/usr/bin/env bash
# Targets of each token and of each pixel: learnt, the same bytes on two stages and on the CPU, predicted, measured, refused.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"

# Token t is followed by 3 t + 1 (modulo 8); a picture's pixels are told from their own value; colours of three.
awk 'BEGIN {
	srand(3)
	for (part = 0; part < 2; part++) {
		n = part ? 16 : 64; x = y = ""
		for (i = 0; i < n * 6; i++) { t = int(rand() * 8); x = x " " t; y = y " " (3 * t + 1) % 8 }
		print "x_" (part ? "test" : "train"), "i4", n ",6" x; print "y_" (part ? "test" : "train"), "i8", n ",6" y
	}
}' | make_npz tokens.npz
awk 'BEGIN {
	srand(4)
	for (i = 0; i < 32 * 20; i++) { v = int(rand() * 3); x = x " " v - 1; y = y " " v }
	print "x_train f4 32,5,4,1" x; print "y_train u1 32,5,4" y; print "x_test f4 32,5,4,1" x; print "y_test u1 32,5,4" y
}' | make_npz pixels.npz
awk 'BEGIN {
	srand(4)
	for (i = 0; i < 32 * 20; i++) { v = int(rand() * 3); x = x " " v - 1; m = m " " (v > 1) }
	print "x_train f4 32,5,4,1" x; print "y_train u1 32,5,4,1" m; print "x_test f4 32,5,4,1" x; print "y_test u1 32,5,4,1" m
}' | make_npz masks.npz
cat >tokens.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Embedding", "config": { "name": "e", "input_dim": 8, "output_dim": 6 } },
		{ "class_name": "Dense", "config": { "name": "d", "units": 8, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "SGD", "config": { "learning_rate": 1.0 } }, "loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy", "perplexity"], "steps_per_execution": 8 },
	"data": { "name": "npz", "path": "tokens.npz", "batch_size": 4 },
	"fit": { "epochs": 12 }, "evaluate": { "steps_per_execution": 4 }, "predict": { "output": "predicted.npz", "steps_per_execution": 4 },
	"gradient_accumulation": { "steps_per_replica": 4 },
	"ipu": { "auto_select_ipus": 2 }, "pipeline": { "stages": [0, 1], "schedule": "Grouped" },
	"outfeed": { "layers": ["d"], "activations": ["d"], "gradients": ["d"], "queue_mode": "ALL", "capture": "stats" }
}
JSON
cat >pixels.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Conv2D", "config": { "name": "c", "filters": 8, "kernel_size": 1, "activation": "relu" } },
		{ "class_name": "Conv2D", "config": { "name": "o", "filters": 3, "kernel_size": 1, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "Adam", "config": { "learning_rate": 0.1 } }, "loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy", "confusion_matrix", { "class_name": "OneHotMeanIoU", "config": { "num_classes": 3 } }] },
	"data": { "name": "npz", "path": "pixels.npz", "batch_size": 4 },
	"fit": { "epochs": 12 }, "evaluate": {}, "ipu": null
}
JSON

# weights NAME ARGUMENT...: a run whose weights are kept; out has what it prints.
weights() {
	local name=$1
	shift
	"$bin/ipu-train" "$@" --weights.save "$name" >out 2>&1 || fail "$*: $(cat out)"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' weights two.npz tokens.json
grep -q '^loss: 0\.[0-9]* - accuracy: 1\.0000 - perplexity: 1\.[0-9]*$' out || fail "tokens are not learnt: $(tail -3 out)"
awk '/^loss: / { exit !($8 - exp($2) < 0.001 && exp($2) - $8 < 0.001) }' out || fail "the perplexity is not exp of the loss: $(tail -3 out)"
sqlite3 -readonly tf_report__*/profile.db "SELECT DISTINCT key || shape FROM tensor_epochs
	UNION SELECT variable || shape FROM variables WHERE variable GLOB 'infeed/labels' OR variable GLOB 'loss/*/*' AND shape != ''" >seen
for line in 'd_acts(16, 4, 6, 8)' 'd/kernel:0_grad(4, 6, 8)' 'infeed/labels(4, 6)' 'loss/sparse_categorical_crossentropy/backprop(192,)' \
	'loss/sparse_categorical_crossentropy/items(24,)'; do
	grep -qF "$line" seen || fail "the report has no $line: $(cat seen)"
done
python3 -c '
import struct, sys, zipfile
values = zipfile.ZipFile("predicted.npz").read(zipfile.ZipFile("predicted.npz").namelist()[0])
assert b"(16, 6, 8)" in values, values[:128]
floats = struct.unpack("<768f", values[-768 * 4:])
tokens = struct.unpack("<96i", zipfile.ZipFile("tokens.npz").read("x_test.npy")[-96 * 4:])
for at, token in enumerate(tokens):
    row = floats[8 * at:8 * at + 8]
    assert row.index(max(row)) == (3 * token + 1) % 8, (at, row)
' || fail 'the predictions are not of each token'
weights cpu.npz tokens.json --ipu null --pipeline null
same two.npz cpu.npz
weights one.npz tokens.json --pipeline null --ipu.auto_select_ipus 1
same two.npz one.npz
# The same as vectors: their loss has the same gradient.
weights vectors.npz tokens.json --data.one_hot true --compile.loss categorical_crossentropy --compile.metrics '["accuracy"]'
same two.npz vectors.npz
weights replicas.npz tokens.json --ipu.auto_select_ipus 4
grep -q 'accuracy: 1\.0000' out || fail "two replicas do not learn tokens: $(tail -3 out)"

# Pixels of three colours, and masks with one output a pixel.
weights colours.npz pixels.json
grep -q '^loss: 0\.[0-9]* - accuracy: 1\.0000 - confusion_matrix: 1\.0000 - one_hot_mean_io_u: 1\.0000$' out || fail "colours are not learnt: $(tail -3 out)"
weights mask.npz pixels.json --data.path masks.npz --model.config.layers.1.config.filters 1 --model.config.layers.1.config.activation sigmoid \
	--compile.loss binary_crossentropy --compile.metrics '["accuracy", "precision", "auc"]'
grep -q 'accuracy: 1\.0000 - precision: 1\.0000 - auc: 1\.0000$' out || fail "masks are not learnt: $(tail -3 out)"

# What does not fit names the layer.
"$bin/ipu-train" tokens.json --model.config.layers.1.config.units 7 >out 2>&1 && fail 'eight classes on seven outputs'
grep -q "the model's output (None, 6, 7) (layer \"d\") does not fit the loss sparse_categorical_crossentropy: with 6 class numbers below 8" out || fail "$(cat out)"
"$bin/ipu-train" tokens.json --compile.loss categorical_crossentropy >out 2>&1 && fail 'numbers in place of vectors'
grep -q 'set data.one_hot to true, or use sparse_categorical_crossentropy' out || fail "$(cat out)"
echo ok
