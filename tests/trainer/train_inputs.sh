#!/usr/bin/env bash
# A model of several inputs: the same weights as of one row that has all of them, on any split; saved, predicted, refused.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"

# A user's four numbers and three items of a catalogue; a picture's bytes become 0 to 1 here too.
awk 'BEGIN {
	srand(5)
	for (part = 0; part < 2; part++) {
		n = part ? 16 : 64; user = item = photo = row = y = ""
		for (i = 0; i < n; i++) {
			for (j = 0; j < 4; j++) { v = int(rand() * 9) / 4; user = user " " v; row = row " " v; s += v }
			for (j = 0; j < 3; j++) { v = int(rand() * 7); item = item " " v; row = row " " v }
			for (j = 0; j < 2; j++) { v = rand() < 0.5 ? 0 : 255; photo = photo " " v; row = row " " v / 255 }
			y = y " " (v > 0)
		}
		name = part ? "test" : "train"
		print "x_" name "_user f4 " n ",4" user; print "x_" name "_item i8 " n ",3" item; print "x_" name "_photo u1 " n ",2,1" photo
		print "x_" name " f4 " n ",9" row; print "y_" name " i8 " n y
	}
}' | make_npz all.npz

call() { echo "[[$(printf '["%s", 0, 0, {}], ' $1 | sed 's/, $//')]]"; }
layer() { echo "{\"class_name\": \"$1\", \"config\": {\"name\": \"$2\"$3}, \"inbound_nodes\": $4}"; }
input() { layer InputLayer "$1" ", \"batch_shape\": [null, $2], \"dtype\": \"$3\"" '[]'; }
cat >run.json <<JSON
{
	"model": { "class_name": "Functional", "config": { "name": "m", "layers": [
		$(input user 4 float32), $(input item 3 int64), $(input photo '2, 1' uint8),
		$(layer Embedding table ', "input_dim": 7, "output_dim": 4' "$(call item)"),
		$(layer Flatten items '' "$(call table)"),
		$(layer Flatten pixels '' "$(call photo)"),
		$(layer Dense taste ', "units": 5, "activation": "relu"' "$(call user)"),
		$(layer Concatenate all '' "$(call 'taste items pixels')"),
		$(layer Dense out ', "units": 2, "activation": "softmax"' "$(call all)")
	], "input_layers": [["user", 0, 0], ["item", 0, 0], ["photo", 0, 0]], "output_layers": [["out", 0, 0]] } },
	"compile": { "optimizer": { "class_name": "Adam", "config": { "learning_rate": 0.1 } }, "loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy"], "steps_per_execution": 4 },
	"data": { "name": "npz", "path": "all.npz", "batch_size": 4, "inputs": ["user", "item", "photo"] },
	"fit": { "epochs": 12 }, "evaluate": { "steps_per_execution": 4 }, "gradient_accumulation": { "steps_per_replica": 4 }, "ipu": null
}
JSON

# weights NAME ARGUMENT...: a run whose weights are kept as NAME; out has what it prints.
weights() {
	local name=$1
	shift
	"$bin/ipu-train" run.json "$@" --weights.save "$name" >out 2>&1 || fail "$*: $(cat out)"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

weights cpu.npz
grep -q 'accuracy: 1\.0000$' out || fail "nothing is learnt: $(tail -3 out)"
grep -q '^item (InputLayer) *\[(None, 3)\]' out || fail "the summary lacks an input: $(cat out)"
weights row.npz --data.inputs null
same cpu.npz row.npz
python3 -m zipfile -e all.npz arrays
weights folder.npz --data.path arrays
same cpu.npz folder.npz
weights half.npz --ipu '{}' --infeed.dtype float16
same cpu.npz half.npz
for stages in '[0, 0, 0, 0, 0, 0, 0, 1, 1]' '[0, 0, 1, 0, 0, 1, 1, 1, 1]' '"auto"'; do
	weights two.npz --ipu '{"auto_select_ipus": 2}' --pipeline "{\"stages\": $stages}"
	same cpu.npz two.npz
done

# Saved as Keras has it, and the same predictions from there.
"$bin/ipu-train" run.json --fit null --weights.load cpu.npz --weights.save_model m.keras --predict.output first.npz >out 2>&1 || fail "$(cat out)"
"$bin/ipu-train" run.json --fit null --model m.keras --weights.load m.keras --predict.output second.npz >out 2>&1 || {
	grep -q 'needs libhdf5' out || fail "m.keras: $(cat out)"
	cp first.npz second.npz
}
same first.npz second.npz

# refuse TEXT ARGUMENT...
refuse() {
	local text=$1 code=0
	shift
	"$bin/ipu-train" run.json "$@" >out 2>err || code=$?
	[ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err || fail "$*: expected \"$text\", got $code: $(cat err)"
}
refuse 'data.inputs[0]: is "photo", but input 0 of the model is "user"' --data.inputs '["photo", "item", "user"]'
refuse 'there is no array "x_train_users"' --data.inputs '["users", "item", "photo"]'
refuse 'data.inputs[0]: is too long' --data.inputs "[\"$(printf '%0300d' 0)\", \"item\", \"photo\"]"
refuse 'arrays: there is no x_train_users.npy (x_train and y_train are needed' --data.path arrays --data.inputs '["users", "item", "photo"]'
refuse 'arrays/y_train.npy: is one .npy array: give the folder that has x_train.npy and y_train.npy' --data.path arrays/y_train.npy
head -c 200 arrays/y_train.npy >cut && mv cut arrays/y_train.npy
refuse 'arrays/y_train.npy: is truncated: 72 bytes cannot hold 64 values' --data.path arrays
refuse 'none: there is no such folder of .npy files or .npz file' --data.path none
refuse 'has the number 6, the greatest is 6, but layer "table" has 6 rows: set its input_dim to 7' --model.config.layers.3.config.input_dim 6
refuse "the data have items of 7 numbers, the model's 3 inputs 9: data.inputs names an array for each input" --data.inputs '["user", "item"]'
refuse 'data.inputs: names arrays of data.name npz, and this is mnist' --data.name mnist --data.path null
echo ok
