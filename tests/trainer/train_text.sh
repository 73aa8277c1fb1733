#!/usr/bin/env bash
# Texts: characters are learnt, words by label are learnt, the same bytes on stages and on the CPU, what is wrong is named.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"

same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# --- characters: what follows an "a" depends on what came before it
for ((i = 0; i < 240; i++)); do printf 'la mé lami. '; done >song.txt
cat >song.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Embedding", "config": { "name": "e", "input_dim": 7, "output_dim": 8 } },
		{ "class_name": "GRU", "config": { "name": "g", "units": 12, "return_sequences": true } },
		{ "class_name": "Dense", "config": { "name": "d", "units": 7, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "Adam", "config": { "learning_rate": 0.03 } }, "loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy"], "steps_per_execution": 4 },
	"data": { "name": "text", "path": "song.txt", "sequence_length": 23, "batch_size": 8, "validation_split": 0.2 },
	"fit": { "epochs": 40, "steps_per_epoch": 4 }, "evaluate": { "steps_per_execution": 2, "steps": 2 }, "ipu": { "auto_select_ipus": 2 },
	"pipeline": { "stages": [0, 0, 1], "schedule": "Grouped" }, "gradient_accumulation": { "steps_per_replica": 4 }
}
JSON
"$bin/ipu-train" song.json --weights.save two.npz >out 2>&1 || fail "a song: $(cat out)"
awk '/^loss: / { found = $5 > 0.9 } END { exit !found }' out || fail "a song is not learnt: $(tail -3 out)"
"$bin/ipu-train" song.json -q --ipu null --pipeline null --host.threads 3 --weights.save cpu.npz
same two.npz cpu.npz
"$bin/ipu-train" song.json --data.sequence_length 2900 >out 2>&1 && fail 'a window longer than the text'
grep -q 'song.txt: has 2880 characters, but a window takes 2900 and the one behind it: data.sequence_length' out || fail "$(cat out)"
"$bin/ipu-train" song.json --data.tokens bytes >out 2>&1 && fail '256 bytes on 7 outputs'
grep -q 'does not fit the loss sparse_categorical_crossentropy' out || fail "$(cat out)"

# --- the song goes on: greedily as it was learnt, with a temperature by the seed, from loaded weights, on any machine
goes() {
	local name=$1
	shift
	"$bin/ipu-train" song.json -q --weights.load two.npz --fit null --generate 'la m' --generate.length 60 "$@" >"$name" || fail "$name: no text"
}
goes greedy
grep -qx 'la mé lami\. la mé lami\. la mé lami\. la mé lami\. la mé lami\. .*' greedy || fail "the song goes on with $(cat greedy)"
goes alone --evaluate null
goes one --host.threads 1 --ipu null --pipeline null
same greedy alone
same greedy one
for seed in 1 2; do
	goes warm$seed --generate.temperature 3 --fit '{"seed": '$seed'}' --fit.epochs 1 --compile.optimizer.config.learning_rate 0 --evaluate null
	goes cold$seed --generate.temperature 3 --fit '{"seed": '$seed'}' --fit.epochs 1 --compile.optimizer.config.learning_rate 0 --evaluate null \
		--ipu null --pipeline null --host.threads 1
	same warm$seed cold$seed
done
cmp -s warm1 greedy && fail 'a temperature of 3 is greedy'
cmp -s warm1 warm2 && fail 'another seed draws the same'
[ "$(LC_ALL=C.UTF-8 wc -m <warm1)" = 65 ] || fail "a prompt of 4 and 60 characters and the line's end: $(cat warm1)"
# After each epoch and at the end.
"$bin/ipu-train" song.json -q --fit.epochs 3 --generate='la ' --generate.length 5 >out || fail "$(cat out)"
[ "$(grep -c '^la ' out)" = 3 ] || fail "three epochs, a text each: $(cat out)"
refused() {
	local words=$1
	shift
	"$bin/ipu-train" song.json "$@" >out 2>&1 && fail "taken: $*"
	grep -qF -- "$words" out || fail "$*: $(cat out)"
}
refused 'generate.prompt: the text that was learnt has no "o"' --generate 'lao'
refused 'generate.prompt: the text that was learnt has no "ü"' --generate 'laü'
refused 'generate.prompt: is missing' --generate ''
refused '--generate.prompt needs a value' --generate
refused 'generate: the model must give each of 7 tokens for each place of its input' --generate 'la' \
	--model.config.layers.1.config.return_sequences false --data.sequence_length 1 --compile.loss mean_squared_error

# --- words by label
for ((i = 0; i < 20; i++)); do
	mkdir -p reviews/{train,test}/{good,bad}
	part=$([ $i -lt 16 ] && echo train || echo test)
	echo "This film, number $i, is <br />GREAT and I like it." >reviews/$part/good/$i.txt
	echo "A dull film ($i) that I don't like: it is boring." >reviews/$part/bad/$i.txt
done
cat >reviews.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Embedding", "config": { "name": "e", "input_dim": 24, "output_dim": 4 } },
		{ "class_name": "LSTM", "config": { "name": "l", "units": 4 } },
		{ "class_name": "Dense", "config": { "name": "d", "units": 2, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "Adam", "config": { "learning_rate": 0.05 } }, "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"] },
	"data": { "name": "text", "path": "reviews", "tokens": "words", "sequence_length": 12, "vocabulary_size": 24, "batch_size": 8 },
	"fit": { "epochs": 10 }, "evaluate": {}, "ipu": null
}
JSON
"$bin/ipu-train" reviews.json >out 2>&1 || fail "reviews: $(cat out)"
grep -q 'Texts: 31 words of the training part and the numbers 0 to 2' out || fail "$(head -3 out)"
grep -q 'accuracy: 1.0000$' out || fail "reviews are not learnt: $(tail -3 out)"

# More tokens than the Embedding has rows would be NaN: both numbers, and what to set, before anything is trained.
"$bin/ipu-train" reviews.json --data.vocabulary_size null >out 2>&1 && fail 'tokens up to 33 on 24 rows'
grep -q 'data.vocabulary_size: the tokens of reviews/train have numbers up to 33, but layer "e" has 24 rows: set it to 24, or the layer.s input_dim to 34$' out ||
	fail "tokens without rows: $(cat out)"
"$bin/ipu-train" reviews.json -q --data.vocabulary_size null --fit.epochs 1 --model.config.layers.0.config.input_dim 34 || fail '34 rows for the numbers 0 to 33'
"$bin/ipu-train" reviews.json --data.vocabulary_size null --model.config.layers.0.config.input_dim 33 >out 2>&1 && fail 'the number 33 on 33 rows'

"$bin/ipu-train" reviews.json --generate 'film' >out 2>&1 && fail 'reviews go on'
grep -q 'generate: the data set is no text file to go on from: set data.name to text' out || fail "$(cat out)"
# The example learns a folder of one's own, on the IPU and on the CPU alike.
lstm=("$IPUSCOPE_SOURCE_DIR/examples/imdb-lstm.json" --texts reviews --data.batch_size 4 --data.sequence_length 12)
"$bin/ipu-train" "${lstm[@]}" --weights.save ipu.npz >out 2>&1 || fail "imdb-lstm: $(cat out)"
grep -q 'accuracy: 1.0000$' out || fail "imdb-lstm learns nothing: $(tail -4 out)"
"$bin/ipu-train" "${lstm[@]}" -q --cpu --weights.save cpu.npz
same ipu.npz cpu.npz
if HOME=$work "$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/examples/imdb-lstm.json" >out 2>&1; then
	fail 'reviews that are not there'
fi
grep -q 'data set "imdb": keras.datasets.imdb.load_data() fetches it to ~/.keras/datasets/imdb.npz; or give that file with --data.path' out || fail "$(cat out)"
echo ok
