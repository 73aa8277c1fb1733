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
model normal "$(embedding true), ${mean/LayerNormalization/BatchNormalization}"
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
normal=$(digest normal words-6)
same "$normal" normal words-9
same "$normal" normal words-9 --host.threads 1 --ipu null
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
# beside_torch NAME DATA NUMBERS: what NAME.json logs of each epoch, and NUMBERS of PyTorch, the loss first.
beside_torch() {
	local name=$1 losses=$golden/${1/masks/mask}_losses.txt
	"$bin/ipu-train" "$golden/$name.json" -q --data.path "$2" || fail "$name.json"
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		"$bin/ipu-train" "$golden/$name.json" -q --data.path "$2" --fit.epochs 1 --compile.optimizer.config.learning_rate 1e-30 --callbacks null \
			--weights.save first.npz || fail 'the first weights'
		/usr/bin/python3 "$IPUSCOPE_SOURCE_DIR/script/make-mask-golden.py" "$name" first.npz "$2" >"$losses"
	fi
	# CSVLogger's columns go by name: epoch, then the metrics and the loss among them.
	grep -v '^#' "$losses" | awk -F '[ ,]' -v numbers="$3" '
		NR == FNR { for (i = 2; i <= NF; i++) twin[$1, i - 2] = $i; next }
		FNR == 1 { split(numbers, names, " "); for (i = 1; i <= NF; i++) column[$i] = i; next }
		{ for (i = 1; i in names; i++) { off = $column[names[i]] - twin[$1, i - 1]; off = off < 0 ? -off : off
			if (!(names[i] in column) || !(($1, i - 1) in twin) || off >= 1e-5) wrong = wrong "\n" $0 " " names[i] " in PyTorch: " twin[$1, i - 1] }
		  last = $column["loss"]; n++ }
		END { print wrong; exit wrong != "" || n != 20 || last > twin[0, 0] - 0.01 }
	' - log.csv || fail "$name: PyTorch has other losses"
	rm log.csv
}
beside_torch masks padded.npz loss

beside_torch mask_states padded.npz loss

# BatchNormalization of the steps that count, whose moving statistics are theirs.
beside_torch mask_normal padded.npz loss
"$bin/ipu-train" "$golden/mask_normal.json" -q --data.path padded.npz --callbacks null --weights.save normal.npz || fail 'mask_normal.json'
python3 - normal.npz <<'PYTHON' >found || fail 'no moving statistics'
import struct, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
    names = file.namelist()
    for layer in "first", "second":
        for part in "mean", "variance":
            array = file.read(next(name for name in names if f"{layer}/moving_{part}" in name))
            array = array[10 + struct.unpack("<H", array[8:10])[0]:]
            print(sum(struct.unpack(f"<{len(array) // 4}f", array)))
PYTHON
paste -d ' ' found <(sed -n 's/^moving //p' "$golden/mask_normal_losses.txt" | tr ' ' '\n') |
	awk '{ off = $1 - $2; if (NF != 2 || off > 1e-4 || off < -1e-4) wrong = 1; n++ } END { exit wrong || n != 4 }' || fail "moving statistics: $(cat found)"

# A mask as far as the loss: a class and a weight for each word. tokens STEPS CLASS FILE: CLASS stands at padding, and STEPS may be more.
tokens() {
	awk -v steps="$1" -v pad="$2" '
	function padding(i, s) { return s > 6 || (s != i % 7 && (i + 3 * s) % 5 < 2) }
	function arrays(part, items,  i, s) {
		printf "x_%s i4 %d,%d", part, items, steps
		for (i = 0; i < items; i++) for (s = 0; s < steps; s++) printf " %d", padding(i, s) ? 0 : (7 * i + 5 * s) % 11 + 1
		printf "\ny_%s i4 %d,%d", part, items, steps
		for (i = 0; i < items; i++) for (s = 0; s < steps; s++) printf " %d", padding(i, s) ? pad : (7 * i + 5 * s) % 11 % 3
		printf "\nsample_weight_%s f4 %d,%d", part, items, steps
		for (i = 0; i < items; i++) for (s = 0; s < steps; s++) printf " %g", padding(i, s) ? 9 + pad : 0.5 + (i + s) % 3
		print ""
	}
	BEGIN { arrays("train", 32); arrays("test", 29) }' | make_npz "$3"
}
tokens 7 0 tokens.npz
tokens 7 2 others.npz
tokens 9 1 longer.npz
beside_torch mask_tokens tokens.npz "loss accuracy crossentropy weighted"
beside_torch mask_stateful tokens.npz loss
beside_torch mask_turns tokens.npz loss

# States that an encoder hands to a decoder.
awk 'BEGIN {
	printf "x_train_from i4 32,5"
	for (i = 0; i < 32; i++) for (s = 0; s < 5; s++) printf " %d", (s > i % 5) ? 0 : (3 * i + 7 * s) % 11 + 1
	printf "\nx_train_to i4 32,7"
	for (i = 0; i < 32; i++) for (s = 0; s < 7; s++) printf " %d", s != i % 7 && (i + 3 * s) % 5 < 2 ? 0 : (7 * i + 5 * s) % 11 + 1
	printf "\ny_train i4 32,7"
	for (i = 0; i < 32; i++) for (s = 0; s < 7; s++) printf " %d", (3 * i + 5 * s) % 11 % 3
	print ""
}' | make_npz pairs.npz
beside_torch seq2seq pairs.npz "loss accuracy"
seq2seq() { # ARGUMENT...: what two epochs log, and the digest
	"$bin/ipu-train" "$golden/seq2seq.json" --data.path pairs.npz --data.batch_size 8 --fit.epochs 2 --compile.steps_per_execution 4 "${few[@]}" "$@" >out 2>err ||
		fail "seq2seq $*: $(cat err)"
	tr '\r' '\n' <out | sed -n 's/^Weights: //p' | cat log.csv -
}
states=$(seq2seq --host.threads 1)
[ "$(seq2seq)" = "$states" ] || fail 'seq2seq: other losses with more threads'
for begin in '{"decoder": 1}' '{"to_words": 1}' '{"encoder/c": 1}'; do
	[ "$(seq2seq --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": '"$begin"', "schedule": "1f1b"}')" = "$states" ] || fail "seq2seq, stages $begin: other losses"
done

# A class that the loss ignores: none that the model knows, at every third position.
awk 'BEGIN {
	printf "x_train f4 32,6,2"
	for (i = 0; i < 32 * 6; i++) printf " %g %g", i * 7 % 11 / 5 - 1, i * 5 % 7 / 3 - 1
	printf "\ny_train i4 32,6"
	for (i = 0; i < 32 * 6; i++) printf " %d", i % 3 ? i * 7 % 11 % 3 : -1
	print ""
}' | make_npz ignored.npz
beside_torch mask_ignored ignored.npz "loss accuracy perplexity"
"$bin/ipu-train" "$golden/mask_ignored.json" -q --data.path ignored.npz --ipu '{"auto_select_ipus": 1}' || fail 'mask_ignored.json on an IPU'
mv log.csv ipu.csv
"$bin/ipu-train" "$golden/mask_ignored.json" -q --data.path ignored.npz --host.threads 1 && cmp log.csv ipu.csv || fail 'the CPU alone has other losses'

# What stands at padding changes nothing, nor do more padding, stages, schedules, threads and micro-batches that are filled up.
# logged DATA ARGUMENT...: what two epochs and their evaluations log, and the digest.
logged() {
	local data=$1
	shift
	"$bin/ipu-train" "$golden/mask_tokens.json" --data.path "$data.npz" --data.batch_size 8 --data.pad_remainder true --fit.epochs 2 --fit.validation true \
		--evaluate '{}' --compile.steps_per_execution 4 "$@" >out 2>err || fail "mask_tokens $data $*: $(cat err)"
	tr '\r' '\n' <out | sed -n 's/^Weights: //p' | cat log.csv -
}
tokens=$(logged tokens)
few=("${few[@]}" --ipu '{"auto_select_ipus": 1}')
accumulated=$(logged tokens "${few[@]}")
[ "$(wc -l <<<"$tokens")" -eq 4 ] && [ "$tokens" != "$accumulated" ] || fail "not two epochs and a digest: $tokens"
grep -q 'val_loss.*val_weighted' <<<"$tokens" || fail "nothing is evaluated: $tokens"
for data in others longer; do
	[ "$(logged $data)" = "$tokens" ] || fail "$data: $(logged $data), not $tokens"
done
[ "$(logged tokens --host.threads 1)" = "$tokens" ] || fail 'one thread has other losses'
# Layers: embedding, embedding/mask, three of the Bidirectional, gru, out.
for stages in '[0,0,1,1,1,1,1]' '[0,0,0,0,0,0,1]'; do
	[ "$(logged others "${few[@]}" --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": '"$stages"', "schedule": "1f1b"}')" = "$accumulated" ] || fail "$stages: other losses"
done
echo ok
