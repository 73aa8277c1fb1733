#!/usr/bin/env bash
# BackupAndRestore and fit.resume: runs that go on from a backup end with the weights of one that was not interrupted; what is refused; what the report says.
# Those that are killed are in tests/commands/kills.sh.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"

cat >run.json <<JSON
{
	"model": "$IPUSCOPE_SOURCE_DIR/tests/golden/small.json",
	"compile": {
		"optimizer": { "class_name": "Adam", "config": { "learning_rate": 0.01 } },
		"loss": "sparse_categorical_crossentropy",
		"metrics": ["accuracy"],
		"steps_per_execution": 8
	},
	"data": { "name": "mnist", "batch_size": 8, "limit": 512, "shuffle": true },
	"fit": { "epochs": 6, "validation": true },
	"gradient_accumulation": { "steps_per_replica": 4 },
	"ipu": { "auto_select_ipus": 2 },
	"pipeline": { "stages": { "dense": 1 } },
	"callbacks": []
}
JSON
cpu=(--ipu null --pipeline null)
one=(--pipeline null --ipu.auto_select_ipus 1)

weights() { sed -n 's/^Weights: XXH3 \([0-9a-f]*\).*/\1/p' "$1"; }

# --- every optimizer: an epoch, and another from its backup
for optimizer in '"SGD"' '{"class_name": "SGD", "config": {"momentum": 0.9, "nesterov": true}}' '"RMSprop"' '"Adam"' '"AdamW"' '"Nadam"' '"Adagrad"' '"Lion"' \
	'"Lamb"' '{"class_name": "LossScaleOptimizer", "config": {"inner_optimizer": "Adam", "initial_scale": 8e37, "dynamic_growth_steps": 3}}' '{"class_name": "Adam", "config": {"amsgrad": true, "learning_rate": {"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 0.01, "decay_steps": 5, "decay_rate": 0.9}}}}'; do
	each=(run.json "${one[@]}" --fit.validation false --fit.steps_per_epoch 16 --compile.optimizer "$optimizer")
	backup='[{"class_name": "BackupAndRestore", "config": {"backup_dir": "each", "save_freq": 8, "delete_checkpoint": false}}]'
	rm -rf each
	"$bin/ipu-train" "${each[@]}" --fit.epochs 2 >whole || fail "$optimizer: $(cat whole)"
	"$bin/ipu-train" "${each[@]}" --fit.epochs 1 --callbacks "$backup" >out || fail "$optimizer: $(cat out)"
	"$bin/ipu-train" "${each[@]}" --fit.epochs 2 --fit.resume each >out || fail "$optimizer, resumed: $(cat out)"
	grep -q '^Resumed from each/latest.backup: epoch 2, step 0 of 16; part 2$' out || fail "$optimizer: not resumed: $(cat out)"
	[ "$(weights out)" = "$(weights whole)" ] || fail "$optimizer: other weights: $(cat out)"
	"$bin/ipu-train" "${each[@]}" --fit.epochs 2 --callbacks "$backup" --compile.steps_per_execution 16 >out || fail "$optimizer, again: $(cat out)"
	[ "$(weights out)" = "$(weights whole)" ] || fail "$optimizer: other weights with longer executions: $(cat out)"
done

# --- the end is kept where it is to be: nothing is left to train, and the weights are the same
"$bin/ipu-train" "${each[@]}" --fit.epochs 2 --fit.resume each >out || fail "resumed at the end: $(cat out)"
grep -q 'all epochs were trained; part 3' out || fail "it does not say that all was trained: $(cat out)"
[ "$(weights out)" = "$(weights whole)" ] || fail "other weights where all was trained: $(cat out)"

# --- the report says what it continues
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true", "autoReport.directory": "first"}'
rm -rf each
"$bin/ipu-train" "${each[@]}" --fit.epochs 1 --callbacks "$backup" >out
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true", "autoReport.directory": "second"}' "$bin/ipu-train" "${each[@]}" --fit.epochs 2 --fit.resume each >out
unset POPLAR_ENGINE_OPTIONS
first=$(basename first/tf_report__*)
mv first/tf_report__* one.report
mv second/tf_report__* two.report
[ "$(sqlite3 -readonly two.report/profile.db "SELECT group_concat(key || '=' || value, ' ') FROM (SELECT key, value FROM meta WHERE key = 'part' OR key LIKE 'continues%' ORDER BY key)")" = \
	"continues=$PWD/first/$first continues_after_step=16 part=2" ] || fail "facts: $(sqlite3 -readonly two.report/profile.db 'SELECT * FROM meta')"
"$bin/ipu-report" two.report >summary
grep -q 'part *2 of a training; it goes on after step 16' summary || fail "the summary does not say it: $(cat summary)"
grep -q "continues.*$first\$" summary || fail "the summary does not say which: $(cat summary)"
"$bin/ipu-report" one.report | grep 'continues' >/dev/null && fail "a first part continues none"
[ "$(sqlite3 -readonly two.report/profile.db "SELECT min(step) FROM metrics WHERE step IS NOT NULL")" = 16 ] || fail "its steps do not go on"

# --- health rules: what has been broken for a while, losses, classes counted in half an epoch, the values before an update
cat >rules.json <<'JSON'
{"unchanged_tensor": {"threshold": 0.4, "patience": 7}, "vanishing": {"threshold": 0.02, "patience": 9},
 "loss_not_decreasing": {"threshold": 0.6, "steps": 40}, "overfit": {"threshold": 0, "patience": 2},
 "class_imbalance": {"threshold": 1, "misprediction": 0.01, "samples": 60, "patience": 3},
 "exploding": {"threshold": 1.4, "patience": 61}, "update_ratio": {"threshold": 0.001, "patience": 5}}
JSON
watched() { # FOLDER ARGUMENT...
	local folder=$1
	shift
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true", "autoReport.directory": "'"$folder"'"}' "$bin/ipu-train" run.json --health.rules rules.json \
		--outfeed.capture '[{"tier": "stats"}]' "$@" >out 2>err
}
ask() { sqlite3 -readonly "$1"/tf_report__*/profile.db "$2"; }
hits() { ask "$1" "SELECT rule, key, layer, mode, epoch, step, weight_update, microbatch, replica, value FROM health WHERE coalesce(step, 4 * weight_update + 3, 999) >= $2 AND coalesce(step, 4 * weight_update + 3, 0) < $3"; }
half='[{"class_name": "BackupAndRestore", "config": {"backup_dir": "half", "save_freq": 8}}]'
watched hits-whole "${cpu[@]}" || fail "watched: $(cat err)"
! watched hits-one "${cpu[@]}" --callbacks "$half" --health.stop exploding || fail "no rule has ended it"
[ -s half/latest.backup ] || fail "a run that a rule ended has left no backup"
watched hits-two --callbacks "$half" || fail "watched, resumed: $(cat err)"
after=$(ask hits-two "SELECT value FROM meta WHERE key = 'continues_after_step'")
[ $((after % 64)) -gt 0 ] || fail "the backup is not of the middle of an epoch"
hits hits-whole 0 999 | sort >hits
{ hits hits-one 0 "$after" && hits hits-two 0 999; } | sort >parts
cmp -s hits parts || fail "the rules of a resumed run find something else: $(diff hits parts)"
"$bin/ipu-report" merge hits-one/tf_report__* hits-two/tf_report__* -o parts.db >out || fail "the parts are not merged"
grep -q '^ *part 2 of a training: goes on after rank 0$' out || fail "merge does not say which part is which: $(cat out)"
"$bin/ipu-report" parts.db | grep '^ *parts  *rank 1 goes on after rank 0$' >/dev/null || fail "the summary does not say which part is which"
sqlite3 parts.db "UPDATE meta_facts SET value = 'rank 1 goes on after rank 0, rank 2 goes on after rank 1, rank 3 goes on after rank 2, rank 4 goes on after rank 3' WHERE key = 'parts'"
"$bin/ipu-report" parts.db | sed -n '/^  parts /,/^  merged /p' | sed '$d' >said
[ "$(cat said)" = "  parts      rank 1 goes on after rank 0, rank 2 goes on after rank 1,
             rank 3 goes on after rank 2, rank 4 goes on after rank 3" ] || fail "the summary does not say all of many parts: $(cat said)"
for rule in class_imbalance exploding loss_not_decreasing overfit unchanged_tensor update_ratio vanishing; do
	grep -q "^$rule|" hits || fail "$rule was never broken, so nothing was compared"
done

# --- what is refused, with the difference
refuse() {
	local code=$1 part=$2 status=0
	shift 2
	"$bin/ipu-train" "${each[@]}" --fit.epochs 2 --fit.resume each "$@" >out 2>err || status=$?
	[ "$status" = "$code" ] || fail "$*: ended with $status: $(cat out err)"
	grep -qF -- "$part" err || fail "$*: \"$part\" is not in: $(cat err)"
}
mkdir other
for part in train t10k; do
	{ printf '\0\0\x8\x3\0\0\x2\0\0\0\0\x1c\0\0\0\x1c' && head -c $((512 * 784)) /dev/zero; } >other/$part-images-idx3-ubyte
	{ printf '\0\0\x8\x1\0\0\x2\0' && head -c 511 /dev/zero && printf '\x9'; } >other/$part-labels-idx1-ubyte
done
refuse 2 'fit.resume: nowhere: there is no backup (latest.backup)' --fit.resume nowhere
refuse 2 'compile.optimizer.class_name is "Adam" there, "SGD" here' --compile.optimizer '{"class_name": "SGD", "config": {}}'
refuse 2 'model.config.layers[5].config.units is 10 there, 11 here' --model "$(sed 's/"units": 10/"units": 11/' "$IPUSCOPE_SOURCE_DIR/tests/golden/small.json")"
refuse 2 'compile.dtype_policy is "float32" there, "mixed_bfloat16" here' --compile.dtype_policy mixed_bfloat16
refuse 2 'data.items is 512 there, 256 here' --data.limit 256
refuse 2 'data.batch_size is 8 there, 4 here' --data.batch_size 4
refuse 2 'data.digest is' --data.path "$PWD/other"
refuse 2 'fit.seed is 1 there, 2 here' --fit.seed 2
refuse 2 'replicas is 1 there, 2 here' --ipu.auto_select_ipus 2 --fit.steps_per_epoch 32
refuse 2 'callbacks[0] is absent there' --callbacks "[{\"class_name\": \"CSVLogger\", \"config\": {\"filename\": \"x.csv\"}}]"
refuse 2 '"backup_dir" is missing' --callbacks '[{"class_name": "BackupAndRestore"}]'
refuse 2 'must be "epoch" or a number of batches' --callbacks '[{"class_name": "BackupAndRestore", "config": {"backup_dir": "x", "save_freq": "batch"}}]'

# --- damage: cut, changed, none of ours
size=$(stat -c %s each/latest.backup)
cp each/latest.backup good
for cut in 0 1 23 24 100 $((size / 2)) $((size - 1)); do
	head -c "$cut" good >each/latest.backup
	refuse 2 'latest.backup' --fit.resume each
done
grep -q 'cut short or damaged: delete it' err || fail "no advice: $(cat err)"
{ head -c $((size / 2)) good && printf x && tail -c +$((size / 2 + 2)) good; } >each/latest.backup
refuse 2 'cut short or damaged'
cp run.json each/latest.backup
refuse 2 'is no backup that ipu-train has written'
