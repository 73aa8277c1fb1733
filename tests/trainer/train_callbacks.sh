#!/usr/bin/env bash
# EarlyStopping, the learning rate's callbacks, TerminateOnNaN, ModelCheckpoint and CSVLogger; weights saved and loaded; prediction: what they write, on the CPU, on IPUs and in a pipeline.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"

# be32 NUMBER...: 4 bytes each, the highest first.
be32() {
	local number
	for number in "$@"; do
		# shellcheck disable=SC2059
		printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((number >> 24 & 255)) $((number >> 16 & 255)) $((number >> 8 & 255)) $((number & 255)))"
	done
}

# set_of NAME COUNT: IDX files of images with a bright band whose height is the class; every 8th has another's label, so that no model
# is right always.
set_of() {
	local i
	{ be32 2051 "$2" 28 28 && for ((i = 0; i < $2; i++)); do cat "band$((i * 7 % 10))"; done; } >"digits/$1-images-idx3-ubyte"
	{ be32 2049 "$2" && for ((i = 0; i < $2; i++)); do be32 $(((i * 7 + (i % 8 == 0 ? 3 : 0)) % 10)) | tail -c 1; done; } >"digits/$1-labels-idx1-ubyte"
}

mkdir digits
for ((class = 0; class < 10; class++)); do
	{
		head -c $((class * 78)) /dev/zero
		head -c 78 /dev/zero | tr '\0' '\377'
		head -c $((706 - class * 78)) /dev/zero
	} >"band$class"
done
set_of train 320
set_of t10k 160

cat >run.json <<JSON
{
	"model": $(cat "$IPUSCOPE_SOURCE_DIR/tests/golden/small.json"),
	"compile": {
		"optimizer": { "class_name": "SGD", "config": { "learning_rate": 0.02 } },
		"loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy"]
	},
	"data": { "name": "mnist", "path": "digits", "batch_size": 16 },
	"fit": { "epochs": 3 },
	"ipu": null,
	"evaluate": {}
}
JSON
# on PLACE: $args are what a run there is given.
on() {
	case $1 in
	cpu) args=() ;;
	ipu) args=(--ipu '{"auto_select_ipus": 1}' --compile.steps_per_execution epoch) ;;
	replicas) args=(--ipu '{"auto_select_ipus": 2}' --compile.steps_per_execution epoch) ;;
	pipeline) args=(--ipu '{"auto_select_ipus": 2}' --compile.steps_per_execution epoch --gradient_accumulation.steps_per_replica 4
		--pipeline '{"stages": [0, 0, 0, 1, 1, 1]}') ;;
	esac
}

run() {
	"$bin/ipu-train" run.json "$@" >out.txt 2>err.txt || fail "$*: $(cat err.txt)"
	tr '\r' '\n' <out.txt >lines.txt
}

# What the evaluation printed.
result() {
	grep '^loss: ' lines.txt || fail "no evaluation: $(tail -3 lines.txt)"
}

# callbacks CLASS CONFIG...: a list of them.
callbacks() {
	local list=
	while [ $# -gt 0 ]; do
		list+="${list:+, }{\"class_name\": \"$1\", \"config\": $2}"
		shift 2
	done
	echo "[$list]"
}

# --- weights: what a run ends with is what another begins with, wherever each of them runs
for form in cpu ipu pipeline replicas; do
	on $form
	run "${args[@]}" --weights.save "$form.npz" --predict "{\"output\": \"$form.predicted.npz\"}"
	trained=$(result)
	for place in cpu ipu pipeline replicas; do
		on $place
		run "${args[@]}" --fit null --weights.load "$form.npz" --weights.save again.npz --predict '{"output": "predicted.npz"}'
		[ "$(result)" = "$trained" ] || fail "trained as $form: $trained; loaded on $place: $(result)"
		# The steps of all replicas are counted, of the evaluation and of the prediction.
		[ "$(grep -cE '^10/10 \[=+\] - ' lines.txt)" = 2 ] || fail "loaded on $place: no two lines of 10 steps: $(grep '] - ' lines.txt)"
		cmp -s "$form.npz" again.npz || fail "weights of $form changed where nothing was trained"
		cmp -s "$form.predicted.npz" predicted.npz || fail "trained as $form, loaded on $place: other predictions"
	done
done
run --fit null
[ "$(result)" != "$trained" ] || fail 'what was loaded does not count'

# --- prediction: 160 rows of 10 in the set's order, whose greatest is the class; as many are right as the evaluation says
# npy FILE: the floats of an .npz's first array, 10 a line, after its header.
npy() {
	local at
	at=$(LC_ALL=C grep -abo -m1 'NUMPY' "$1" | head -1 | cut -d: -f1)
	head -c $((at + 200)) "$1" | tail -c +"$((at + 10))" | tr -d '\0' | head -1
	od -An -v -t f4 -w40 -j $((at - 1 + 10 + $(od -An -t u2 -j $((at + 7)) -N 2 "$1"))) -N 6400 "$1"
}
run --fit null --evaluate null --weights.load cpu.npz --predict '{"output": "again.npz"}'
grep -qE '^10/10 \[={30}\] - [0-9]+s [0-9]+(us|ms)/step$' lines.txt || fail "prediction's line: $(tail -2 lines.txt)"
npy cpu.predicted.npz >rows.txt
head -1 rows.txt | grep -a "'descr': '<f4', 'fortran_order': False, 'shape': (160, 10)" >/dev/null || fail "predictions: $(head -1 rows.txt)"
tail -c 160 digits/t10k-labels-idx1-ubyte | od -An -v -t u1 -w1 >labels.txt
tail -n +2 rows.txt | paste - labels.txt | awk '{
	best = 1; sum = 0
	for (i = 1; i <= 10; i++) { sum += $i; if ($i > $best) best = i }
	right += best - 1 == $11; bad += sum < 0.9999 || sum > 1.0001
} END { if (NR != 160 || bad) exit 1; printf "%.4f\n", right / NR }' >accuracy.txt || fail 'predictions are no rows of probabilities'
run --fit null --weights.load cpu.npz
[ "$(result | sed 's/.*accuracy: //')" = "$(cat accuracy.txt)" ] || fail "predictions are right by $(cat accuracy.txt), evaluated: $(result)"
[ "$(cat accuracy.txt)" != 1.0000 ] || fail 'too easy a set'
"$bin/ipu-train" run.json --fit null --weights.load cpu.npz --evaluate null --predict '{"output": "part.npz", "steps": 3}' --quiet
npy part.npz >rows.txt
head -1 rows.txt | grep -a "'shape': (48, 10)" >/dev/null || fail "3 steps of prediction: $(head -1 rows.txt)"

# A last batch that is not full: every item once, and means over items.
run --fit null --weights.load cpu.npz
trained=$(result)
run --fit null --weights.load cpu.npz --data.batch_size 48 --data.drop_remainder false --predict '{"output": "rest.npz"}'
[ "$(result)" = "$trained" ] || fail "with a short batch: $(result), in whole ones $trained"
npy rest.npz >rows.txt
head -1 rows.txt | grep -a "'shape': (160, 10)" >/dev/null || fail "predictions with a short batch: $(head -1 rows.txt)"

# Evaluation has no dropout, and takes the moving statistics: without either layer's training the same figures.
run --fit null --weights.load cpu.npz --evaluate.steps_per_execution 5
trained=$(result)
run --fit null --weights.load cpu.npz --model.config.layers.4.config.rate 0
[ "$(result)" = "$trained" ] || fail "dropout in evaluation: $(result), without $trained"
run --fit null --weights.load cpu.npz --model.config.layers.1.config.trainable false
[ "$(result)" = "$trained" ] || fail "the batch's statistics in evaluation: $(result), the moving ones $trained"
run --fit null --weights.load cpu.npz --data.batch_size 40
[ "$(result)" = "$trained" ] || fail "the batch changes the evaluation: $(result), $trained"

# --- loading by name: what the file lacks is left as it was, an array of another shape never is
run --fit null --weights.load cpu.npz --weights.by_name true --model.config.layers.5.config.name other --weights.save mixed.npz
for name in conv/kernel bn/moving_mean other/kernel; do
	LC_ALL=C grep -aq "$name:0.npy" mixed.npz || fail "$name is not in the file"
done
"$bin/ipu-train" run.json --quiet --fit null --weights.load cpu.npz --weights.by_name true --weights.save whole.npz
cmp -s cpu.npz whole.npz || fail 'by_name changed weights'

# --- CSVLogger: a header, then a line an epoch; appended to where asked for
run --fit.validation true --callbacks "$(callbacks CSVLogger '{"filename": "log.csv"}')"
[ "$(head -1 log.csv)" = epoch,loss,accuracy,val_loss,val_accuracy ] || fail "the header: $(head -1 log.csv)"
[ "$(cut -d, -f1 log.csv | tail -n +2 | paste -sd' ')" = '0 1 2' ] || fail "epochs: $(cat log.csv)"
# The last epoch's validation is the evaluation.
[ "$(tail -1 log.csv | awk -F, '{ printf "loss: %.4f - accuracy: %.4f", $4, $5 }')" = "$(result)" ] || fail "$(result), logged: $(tail -1 log.csv)"
[ "$(awk -F, 'NR == 4 { printf "loss: %.4f - accuracy: %.4f - val_loss: %.4f - val_accuracy: %.4f", $2, $3, $4, $5 }' log.csv)" = \
	"$(sed -n '/^20\/20 /{ N; s/\n    / - /; s/^.*step - //p; }' lines.txt | tail -1)" ] || fail "logged: $(tail -1 log.csv), shown: $(grep '^20/20' lines.txt)"
run --fit.epochs 1 --callbacks "$(callbacks CSVLogger '{"filename": "log.csv", "append": true, "separator": ","}')"
[ "$(wc -l <log.csv)" -eq 5 ] || fail "appended: $(cat log.csv)"
on pipeline
run "${args[@]}" --callbacks "$(callbacks CSVLogger '{"filename": "semi.csv", "separator": ";"}')"
[ "$(head -1 semi.csv)" = 'epoch;loss;accuracy' ] && [ "$(wc -l <semi.csv)" -eq 4 ] || fail "in a pipeline: $(cat semi.csv)"

# --- EarlyStopping: validation that never gets better ends training after the patience
still=(--compile.optimizer '{"class_name": "SGD", "config": {"learning_rate": 0}}' --model.config.layers.1.config.trainable false)
for place in cpu ipu pipeline; do
	on $place
	run "${args[@]}" "${still[@]}" --fit.epochs 9 --fit.validation true \
		--callbacks "$(callbacks EarlyStopping '{"monitor": "val_loss", "patience": 2, "verbose": 1}' CSVLogger '{"filename": "stop.csv"}')"
	[ "$(wc -l <stop.csv)" -eq 4 ] || fail "$place: a patience of 2 ended after $(($(wc -l <stop.csv) - 1)) epochs"
	grep -q '^Epoch 3: early stopping$' lines.txt || fail "$place: nothing is said: $(tail -5 lines.txt)"
	! grep -q '^Epoch 4/9$' lines.txt || fail "$place: training went on"
	grep -q '^loss: ' lines.txt || fail "$place: no evaluation after an early end"
done
# The best weights come back: those of the first epoch, saved as such, where the others are worse.
run --fit.epochs 9 --fit.validation true --weights.save restored.npz --callbacks "$(callbacks \
	EarlyStopping '{"monitor": "val_loss", "mode": "max", "patience": 3, "restore_best_weights": true, "verbose": 1}' \
	ModelCheckpoint '{"filepath": "first.{epoch:02d}.npz"}')"
grep -q '^Epoch [0-9]: early stopping. Weights restored from the best epoch: [0-9]$' lines.txt || fail "nothing was restored: $(tail -5 lines.txt)"
best=$(sed -n 's/.*restored from the best epoch: //p' lines.txt)
cmp -s "first.0$best.npz" restored.npz || fail "the weights at the end are not those of epoch $best"
run --fit.epochs 2 --callbacks "$(callbacks EarlyStopping '{"monitor": "val_los"}')"
grep -q '^EarlyStopping: the metric "val_los" is not available; there are: loss, accuracy' lines.txt || fail "a metric that is not there: $(cat lines.txt)"

# --- The learning rate: what an epoch had is in its logs; a rate of 0 leaves the weights as they are
for place in cpu ipu pipeline; do
	on $place
	run "${args[@]}" --fit.epochs 4 --weights.save rated.npz --callbacks "$(callbacks \
		LearningRateScheduler '{"schedule": [[0, 0.125], [2, 0]], "verbose": 1}' \
		CSVLogger '{"filename": "rate.csv"}' ModelCheckpoint '{"filepath": "rate.{epoch}.npz"}')"
	[ "$(cut -d, -f4 rate.csv | tr '\n' ' ')" = 'learning_rate 0.125 0.125 0 0 ' ] || fail "$place: rates $(cat rate.csv)"
	grep -q '^Epoch 3: LearningRateScheduler setting learning rate to 0.$' lines.txt || fail "$place: nothing is said: $(cat lines.txt)"
	# The first array is the kernel of 36 floats; moving statistics go on.
	[ "$(npy rate.1.npz | head -3)" != "$(npy rate.2.npz | head -3)" ] && [ "$(npy rate.2.npz | head -3)" = "$(npy rate.4.npz | head -3)" ] || fail "$place: the rates had no effect"
done
run --fit.epochs 6 --fit.validation true "${still[@]}" --callbacks "$(callbacks ReduceLROnPlateau '{"patience": 2, "min_lr": 0.5, "verbose": 1}')"
! grep -q ReduceLROnPlateau lines.txt || fail "a rate below the least was reduced: $(cat lines.txt)"
run --fit.epochs 4 --compile.optimizer '{"class_name": "SGD", "config": {"learning_rate": 3e38}}' --callbacks "$(callbacks TerminateOnNaN '{}')"
grep -q '^Batch [0-9]*: Invalid loss, terminating training$' lines.txt || fail "training went on without a loss: $(cat lines.txt)"
! grep -q '^Epoch 4/4' lines.txt || fail "training went on without a loss: $(cat lines.txt)"

# --- ModelCheckpoint: names of the epoch and the logs, the best alone, every so many batches
mkdir each best every
run --fit.validation true --weights.save end.npz --callbacks "$(callbacks \
	CSVLogger '{"filename": "log.csv"}' \
	ModelCheckpoint '{"filepath": "each/w.{epoch:02d}-{val_loss:.3f}.npz"}' \
	ModelCheckpoint '{"filepath": "best/w.npz", "save_best_only": true, "monitor": "val_accuracy", "mode": "max", "verbose": 1}' \
	ModelCheckpoint '{"filepath": "every/w.{epoch}.npz", "save_freq": 8}')"
expected=$(awk -F, 'NR > 1 { printf "w.%02d-%.3f.npz\n", $1 + 1, $4 }' log.csv)
[ "$(ls each)" = "$expected" ] || fail "names: $(ls each), expected $expected"
cmp -s "each/$(ls each | tail -1)" end.npz || fail 'the last checkpoint is not what the run ends with'
cmp -s "each/$(ls each | head -1)" end.npz && fail 'the first checkpoint is the last'
best=$(tail -n +2 log.csv | sort -s -t, -k5,5gr | head -1 | cut -d, -f1)
cmp -s "each/$(ls each | sed -n "$((best + 1))p")" best/w.npz || fail "the best is not that of epoch $((best + 1)): $(cat log.csv)"
[ "$(ls every | paste -sd' ')" = 'w.1.npz w.2.npz w.3.npz' ] || fail "every 8 of 60 batches: $(ls every)"
run --fit null --weights.load "each/$(ls each | sed -n 2p)"
[ "$(result)" = "$(awk -F, 'NR == 3 { printf "loss: %.4f - accuracy: %.4f", $4, $5 }' log.csv)" ] || fail "the second checkpoint: $(result), $(sed -n 3p log.csv)"

# --- what is refused: one line; 2 for a request that is wrong, 1 for work that failed; nothing is left behind
# refuse CODE TEXT ARGUMENT...
refuse() {
	local expected=$1 text=$2 code=0
	shift 2
	mkdir empty
	(cd empty && timeout 600 "$bin/ipu-train" ../run.json --data.path ../digits --quiet "$@" >../out.txt 2>../err.txt) || code=$?
	[ $code -eq "$expected" ] || fail "$*: exit code $code, not $expected: $(cat err.txt)"
	unlagged err.txt
	[ "$(wc -l <err.txt)" -eq 1 ] || fail "$*: not one line: $(cat err.txt)"
	grep -qF -- "$text" err.txt || fail "$*: expected \"$text\", got: $(cat err.txt)"
	[ -z "$(find empty -mindepth 1)" ] || fail "$*: left behind: $(find empty -mindepth 1)"
	rmdir empty
}
refuse 2 'did you mean "EarlyStopping"' --callbacks "$(callbacks EarlyStoping '{}')"
refuse 2 'callbacks[0].config.patience' --callbacks "$(callbacks EarlyStopping '{"patience": -1}')"
refuse 2 'patiense' --callbacks "$(callbacks EarlyStopping '{"patiense": 1}')"
refuse 2 'callbacks[0].config.schedule[1][0]' --callbacks "$(callbacks LearningRateScheduler '{"schedule": [[2, 0.1], [1, 0.2]]}')"
refuse 2 'must be [epoch, rate]' --callbacks "$(callbacks LearningRateScheduler '{"schedule": [[2]]}')"
refuse 2 'factor must be' --callbacks "$(callbacks ReduceLROnPlateau '{"factor": 1.5}')"
refuse 2 '"filepath" is missing' --callbacks "$(callbacks ModelCheckpoint '{}')"
refuse 2 'callbacks[0].config.filepath' --callbacks "$(callbacks ModelCheckpoint '{"filepath": "w.{epoch:s}.npz"}')"
refuse 2 '"filename" is missing' --callbacks "$(callbacks CSVLogger '{}')"
refuse 2 'there is no {val_loss} among the logs (epoch, loss, accuracy)' --fit.epochs 100000 --fit.steps_per_epoch 100000 --callbacks "$(callbacks ModelCheckpoint '{"filepath": "w.{val_loss:.2f}.npz"}')"
refuse 2 'there is no {val_loss}' --fit.epochs 100000 --fit.validation true \
	--callbacks "$(callbacks ModelCheckpoint '{"filepath": "w.{val_loss:.2f}.npz", "save_freq": 1000000}')"
refuse 2 'nowhere/w.npz' --fit.epochs 100000 --callbacks "$(callbacks ModelCheckpoint '{"filepath": "nowhere/w.npz"}')"
refuse 2 'nowhere/log.csv' --callbacks "$(callbacks CSVLogger '{"filename": "nowhere/log.csv"}')"
# With a report asked for nothing is left either, and no epoch is lost.
export POPLAR_ENGINE_OPTIONS='{"autoReport.all": "true"}'
head -c 3000 cpu.npz >cut.npz
refuse 2 'nowhere.npz' --weights.load nowhere.npz --weights.save w.npz
refuse 2 'cut.npz' --weights.load ../cut.npz --weights.save w.npz
refuse 2 'dense/kernel' --weights.load ../cpu.npz --model.config.layers.5.config.units 12 --weights.save w.npz
refuse 2 'is no variable of the model' --weights.load ../cpu.npz --model.config.layers.5.config.name other --weights.save w.npz
refuse 2 'nowhere/w.npz' --fit.epochs 100000 --weights.save nowhere/w.npz
refuse 2 'is a folder' --fit.epochs 100000 --weights.save .
refuse 2 'nowhere/p.npz' --fit.epochs 100000 --predict '{"output": "nowhere/p.npz"}'
refuse 2 'nowhere/x.csv' --callbacks "$(callbacks CSVLogger '{"filename": "nowhere/x.csv"}')"
refuse 2 'fit' --fit null --evaluate null
echo ok
