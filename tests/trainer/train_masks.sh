#!/usr/bin/env bash
# Masks: what stands behind a mask is as if it were not there. The same sequences, padded to more steps or with other numbers, train
# to the same bytes, on one IPU, in pipelines whose stages hand masks on, and on the CPU; without a mask they do not.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
command -v python3 >/dev/null || exit 77
# words STEPS, rows STEPS PAD: 32 sequences of 1 to 6 words, or of steps of 2 numbers, and their classes.
words() {
	python3 - "$1" <<'PYTHON' | make_npz "words-$1.npz"
import sys
steps, items = int(sys.argv[1]), [[(7 * i + 3 * s) % 9 + 1 for s in range(i % 6 + 1)] for i in range(32)]
print("x_train i4 32,%d" % steps, *(n for item in items for n in item + [0] * (steps - len(item))))
print("y_train i4 32", *(sum(item) % 2 for item in items))
PYTHON
}
rows() {
	python3 - "$1" "$2" <<'PYTHON' | make_npz "rows-$1-$2.npz"
import sys
steps, pad = int(sys.argv[1]), float(sys.argv[2])
items = [[((5 * i + s) % 7 / 3.5 - 1, (3 * i + s) % 5 / 2.5 - 1) for s in range(i % 6 + 1)] for i in range(32)]
print("x_train f4 32,%d,2" % steps, *(n for item in items for step in item + [(pad, pad)] * (steps - len(item)) for n in step))
print("y_train i4 32", *(len(item) % 2 for item in items))
PYTHON
}
words 6
words 9
rows 6 9
rows 8 4

# model NAME LAYERS: NAME.json, whose last layer is of two classes.
model() {
	cat >"$1.json" <<JSON
{"model": {"class_name": "Sequential", "config": {"name": "m", "layers": [$2,
	{"class_name": "Dense", "config": {"name": "out", "units": 2, "activation": "softmax"}}]}},
 "compile": {"optimizer": "Adam", "loss": "sparse_categorical_crossentropy", "steps_per_execution": 4},
 "data": {"name": "npz", "batch_size": 8, "path": "words-6.npz"}, "fit": {"epochs": 2, "seed": 3}}
JSON
}
embedding() { echo '{"class_name": "Embedding", "config": {"name": "embedding", "input_dim": 10, "output_dim": 6, "mask_zero": '"$1"'}}'; }
masking() { echo '{"class_name": "Masking", "config": {"name": "masking", "mask_value": '"$1"'}}'; }
both='{"class_name": "Bidirectional", "config": {"name": "both", "layer": {"class_name": "LSTM", "config": {"name": "lstm", "units": 5, "return_sequences": true}}}}'
gru='{"class_name": "GRU", "config": {"name": "gru", "units": 4}}'
mean='{"class_name": "LayerNormalization", "config": {"name": "norm"}}, {"class_name": "GlobalAveragePooling1D", "config": {"name": "mean"}}'
model cells "$(embedding true), $both, $gru"
model blind "$(embedding false), $both, $gru"
model mean "$(embedding true), $mean"
model nine "$(masking 9), $gru"
model four "$(masking 4), $gru"

# call NAME CLASS CONFIG INPUT...: a layer of a functional model.
call() {
	local name=$1 class=$2 config=$3 tensors=
	shift 3
	for input in "$@"; do
		tensors="$tensors${tensors:+, }[\"$input\", 0, 0, {}]"
	done
	echo "{\"class_name\": \"$class\", \"name\": \"$name\", \"config\": {\"name\": \"$name\"$config}, \"inbound_nodes\": [${tensors:+[$tensors]}]}"
}
# attends NAME CLASS CONFIG: NAME-6.json and NAME-9.json, for words of 6 and 9 steps.
attends() {
	local steps
	for steps in 6 9; do
		sqlite3 :memory: "SELECT json_set(CAST(readfile('cells.json') AS TEXT), '\$.model', json('{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [
			$(call i InputLayer ", \"batch_input_shape\": [null, $steps]"),
			$(call e Embedding ', "input_dim": 10, "output_dim": 6, "mask_zero": true' i),
			$(call a "$2" "$3" e e), $(call s Add '' e a), $(call p GlobalAveragePooling1D '' s),
			$(call o Dense ', "units": 2, "activation": "softmax"' p)],
			\"input_layers\": [[\"i\", 0, 0]], \"output_layers\": [[\"o\", 0, 0]]}}'))" >"$1-$steps.json"
	done
}
attends heads MultiHeadAttention ', "num_heads": 2, "key_dim": 4'
attends plain Attention ''

# digest MODEL DATA ARGUMENT...: of the weights at the end.
digest() {
	local name=$1 data=$2
	shift 2
	"$bin/ipu-train" "$name.json" --data.path "$data.npz" "$@" >out 2>err || fail "$name $data $*: $(cat err)"
	tr '\r' '\n' <out | sed -n 's/^Weights: XXH3 \([0-9a-f]\{16\}\)$/\1/p'
}
# same WANTED MODEL DATA ARGUMENT...
same() {
	local wanted=$1 found
	shift
	found=$(digest "$@")
	[ -n "$found" ] && [ "$found" = "$wanted" ] || fail "$*: the weights $found, not $wanted"
}

few=(--gradient_accumulation '{"steps_per_replica": 2}')
cells=$(digest cells words-6)
same "$cells" cells words-9
same "$cells" cells words-9 --host.threads 1
same "$cells" cells words-6 --ipu null
same "$(digest mean words-6)" mean words-9
for name in heads plain; do
	same "$(digest $name-6 words-6)" $name-9 words-9
	same "$(digest $name-6 words-6)" $name-6 words-6 --ipu null --host.threads 1
done
same "$(digest nine rows-6-9)" four rows-8-4
[ "$(digest blind words-6)" != "$(digest blind words-9)" ] || fail "padding changes nothing without a mask either"
# Layers: embedding, embedding/mask, three of the Bidirectional, gru, out.
cells=$(digest cells words-6 "${few[@]}" --ipu '{"auto_select_ipus": 1}')
for stages in '[0,0,1,1,1,1,1]' '[0,0,0,0,0,1,1]' '"auto"'; do
	same "$cells" cells words-9 "${few[@]}" --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": '"$stages"', "schedule": "1f1b"}'
done

# Beside PyTorch: words with padding in front, between and behind; the loss of each update, CSVLogger's epochs of one step.
golden=$IPUSCOPE_SOURCE_DIR/tests/golden
awk 'BEGIN {
	printf "x_train i4 32,7"
	for (i = 0; i < 32; i++) for (s = 0; s < 7; s++) printf " %d", s != i % 7 && (i + 3 * s) % 5 < 2 ? 0 : (7 * i + 5 * s) % 11 + 1
	printf "\ny_train i4 32"
	for (i = 0; i < 32; i++) printf " %d", i % 7 % 3
	print ""
}' | make_npz padded.npz
"$bin/ipu-train" "$golden/masks.json" -q --data.path padded.npz || fail 'masks.json'
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	"$bin/ipu-train" "$golden/masks.json" -q --data.path padded.npz --fit.epochs 1 --compile.optimizer.config.learning_rate 1e-30 --callbacks null --weights.save first.npz ||
		fail 'the first weights'
	/usr/bin/python3 "$IPUSCOPE_SOURCE_DIR/script/make-mask-golden.py" first.npz padded.npz >"$golden/mask_losses.txt"
fi
grep -v '^#' "$golden/mask_losses.txt" | awk -F '[ ,]' '
	NR == FNR { twin[$1] = $2; next }
	FNR > 1 { off = $2 - twin[$1]; off = off < 0 ? -off : off; if (!($1 in twin) || off >= 1e-5) wrong = wrong "\n" $0 " PyTorch: " twin[$1]; last = $2; n++ }
	END { print wrong; exit wrong != "" || n != 20 || last > twin[0] - 0.2 }
' - log.csv || fail 'PyTorch has other losses'
echo ok
