#!/usr/bin/env bash
# Trainings that are killed at random moments, by `kill -9`, and gone on from, come to the bytes of one that was not: every kind of state, any
# schedule, threads and ranks in turn.
# What was recorded by the ranks of MPI can be finished and read after each kill.
# `backups.sh [KILLS [SEED [KIND ...]]]`: so many kills of each of eight kinds (default 30); the moments follow from the seed (default 1) and
# the machine.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

kills=${1:-30}
RANDOM=${2:-1}
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# What everything below is made of: 512 items, 64 steps of 8 an epoch.
base='"data": {"name": "mnist", "batch_size": 8, "limit": 512, "shuffle": true}, "fit": {"epochs": 8, "validation": true},
	"evaluate": {"steps": 16, "steps_per_execution": 16}, "gradient_accumulation": {"steps_per_replica": 4}, "ipu": {"auto_select_ipus": 2}'
head='"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "steps_per_execution": 8'
small="\"model\": \"$IPUSCOPE_SOURCE_DIR/tests/golden/small.json\", \"pipeline\": {\"stages\": {\"dense\": 1}}"
cat >scale.json <<JSON
{$small, "compile": {"dtype_policy": "mixed_float16", $head, "optimizer": {"class_name": "LossScaleOptimizer", "config": {"inner_optimizer": "Adam", "initial_scale": 8e37, "dynamic_growth_steps": 3}}}, $base}
JSON
cat >weighted.json <<JSON
{$small, "compile": {$head, "optimizer": {"class_name": "SGD", "config": {"momentum": 0.9, "learning_rate": 0.02}}}, ${base/\"epochs\"/\"class_weight\": {\"0\": 2, \"1\": 1, \"2\": 1, \"3\": 3, \"4\": 1, \"5\": 1, \"6\": 1, \"7\": 1, \"8\": 1, \"9\": 1\}, \"epochs\"}}
JSON
cat >whole.json <<JSON
{$small, "compile": {${head/8/4096}, "optimizer": "Adam"}, $base}
JSON
cat >watched.json <<JSON
{$small, "compile": {$head, "optimizer": "RMSprop"}, $base, "outfeed": {"capture": [{"tier": "stats"}]},
 "health": {"rules": {"unchanged_tensor": {"threshold": 0.4, "patience": 7}, "exploding": {"threshold": 1.4, "patience": 61}}, "stop": ["nonfinite"]}}
JSON
cat >augmented.json <<JSON
{"model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
	{"class_name": "RandomRotation", "config": {"factor": 0.1, "batch_input_shape": [null, 28, 28, 1]}},
	{"class_name": "RandomTranslation", "config": {"height_factor": 0.1, "width_factor": 0.1}},
	{"class_name": "Conv2D", "config": {"filters": 4, "kernel_size": 3, "strides": 2, "activation": "relu"}},
	{"class_name": "BatchNormalization", "config": {}}, {"class_name": "Flatten", "config": {}}, {"class_name": "Dropout", "config": {"rate": 0.3}},
	{"class_name": "Dense", "config": {"units": 10, "activation": "softmax"}}]}},
 "compile": {$head, "optimizer": "AdamW"}, ${base/\"shuffle\"/\"prefetch\": 3, \"shuffle\"}}
JSON
cat >replicas.json <<JSON
$(sed 's/"steps_per_execution": 8/"steps_per_execution": 4/; s/"steps_per_replica": 4/"steps_per_replica": 2/; s/"auto_select_ipus": 2/"auto_select_ipus": 4/' augmented.json)
JSON
cat >shares.json <<JSON
{$small, "compile": {${head/8/4}, "optimizer": "Adam"}, $(sed 's/"steps_per_replica": 4/"steps_per_replica": 2/; s/"auto_select_ipus": 2/"auto_select_ipus": 8/' <<<"$base")}
JSON
sed -i 's/"pipeline": {/&"schedule": "Interleaved", "replicated_optimizer_state_sharding": true, /' shares.json
cat >stateful.json <<JSON
{"model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
	{"class_name": "Reshape", "config": {"target_shape": [28, 28], "batch_input_shape": [8, 28, 28, 1]}},
	{"class_name": "LSTM", "config": {"name": "lstm", "units": 6, "stateful": true}},
	{"class_name": "Dense", "config": {"name": "dense", "units": 10, "activation": "softmax"}}]}},
 "compile": {$head, "optimizer": "Lion"}, ${base/\"shuffle\": true/\"shuffle\": false}, "pipeline": {"stages": {"dense": 1}}}
JSON

callbacks() { # FREQUENCY
	printf '[%s, %s, %s, %s, %s]' \
		'{"class_name": "ReduceLROnPlateau", "config": {"patience": 1, "min_delta": 0.2, "factor": 0.5}}' \
		'{"class_name": "EarlyStopping", "config": {"monitor": "val_loss", "patience": 3, "restore_best_weights": true}}' \
		'{"class_name": "ModelCheckpoint", "config": {"filepath": "best.npz", "save_best_only": true, "save_weights_only": true}}' \
		'{"class_name": "CSVLogger", "config": {"filename": "log.csv"}}' \
		"{\"class_name\": \"BackupAndRestore\", \"config\": {\"backup_dir\": \"backup\", \"save_freq\": $1}}"
}
cpu='--ipu null --pipeline null' pipelined=('--pipeline.schedule Grouped --host.threads 2' '--pipeline.schedule Interleaved --host.threads 1' '--pipeline.schedule Sequential'
	'--pipeline.schedule zb-h1' '--pipeline.schedule 1f1b' "$cpu --host.threads 1" '--pipeline null --ipu.auto_select_ipus 1 --host.threads 3')
alone=("$cpu" "$cpu --host.threads 2" '--ipu.auto_select_ipus 1' '--ipu.auto_select_ipus 1 --data.prefetch 0')
mpirun=$(command -v mpirun.openmpi || true)
# start NUMBER KIND: the run's next part, in the form whose turn it is; its process is $started.
start() {
	local form launch=() words
	case $2 in
	replicas | shares)
		form="--host.threads $(($1 % 2 + 1))"
		[ -z "$mpirun" ] || [ $(($1 % 3)) -eq 0 ] || launch=("$mpirun" --oversubscribe --bind-to none -n $(($1 % 3 + 1)))
		;;
	augmented) form=${alone[$1 % ${#alone[@]}]} ;;
	*) form=${pipelined[$1 % ${#pipelined[@]}]} ;;
	esac
	read -ra words <<<"$form"
	rm -rf tf_report__*
	: >out # a run that is killed before it begins has not said what the last one said
	"${launch[@]}" "$bin/ipu-train" "$2.json" "${words[@]}" --callbacks "$(callbacks "${frequencies[$1 % 3]}")" >out 2>err &
	started=$!
}
# What a killed run has left of its report; ranks that the launcher kills may outlive it.
check_databases() {
	local database process
	gone() { [ ! -e "/proc/${1:-none}" ] || grep '^State:.*Z' "/proc/$1/status" >/dev/null 2>&1; }
	for database in tf_report__*/profile.db tf_report__*/rank*/profile.db; do
		[ -e "$database" ] || continue
		process=$(sqlite3 -readonly "$database" "SELECT value FROM meta WHERE key = 'pid'" 2>/dev/null || true)
		until_ gone "$process"
		"$bin/ipu-report" "$database" repair >said 2>&1 && "$bin/ipu-report" "$database" summary >said 2>&1 ||
			fail "$kind, part $number, $database: $(cat said)"
		read_back=$((read_back + 1))
	done
}
# A launcher whose rank was killed while it joined may wait for it for ever.
leave() {
	local i
	for ((i = 0; i < 200; i++)); do
		kill -0 "$started" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -9 "$started" 2>/dev/null || true
}
frequencies=(8 '"epoch"' 24)
digest() { grep -a -o 'Weights: XXH3 [0-9a-f]*' out || true; }

total=0 read_back=0
kinds=("${@:3}")
[ ${#kinds[@]} -gt 0 ] || kinds=(scale weighted whole watched augmented replicas shares stateful)
for kind in "${kinds[@]}"; do
	unset POPLAR_ENGINE_OPTIONS
	reports=0
	[[ $kind != @(replicas|shares) ]] || { export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' && reports=1; }
	number=0 killed=0
	start 0 $kind
	wait $started || fail "$kind: $(cat err)"
	wanted=$(digest)
	[ -n "$wanted" ] || fail "$kind: no digest: $(cat out)"
	mkdir -p "whole-$kind" && mv log.csv best.npz "whole-$kind"
	while [ $killed -lt "$kills" ]; do
		rm -f log.csv best.npz
		while :; do
			number=$((number + 1))
			start $number $kind
			# Ranks take long to join: every other kill is at a moment of the training itself.
			recorded() { [ -e "$(echo tf_report__*/profile.db)" ] || ! kill -0 $started 2>/dev/null; }
			[ $reports = 0 ] || [ $((number % 2)) = 0 ] || until_ recorded
			moment=$((RANDOM % (reports ? 2000 : 900)))
			sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
			victim=$started
			[ $reports = 0 ] || [ "$(cat /proc/$started/comm 2>/dev/null)" = ipu-train ] ||
				victim=$(pgrep -x ipu-train -P $started | shuf -n 1 || true)
			[ $killed -lt "$kills" ] || victim= # let it come to its end
			if [ -n "$victim" ] && kill -9 "$victim" 2>/dev/null && leave && ! wait $started 2>/dev/null && [ -z "$(digest)" ]; then
				killed=$((killed + 1))
				check_databases
				continue
			fi
			wait $started || [ -n "$(digest)" ] || fail "$kind, part $number: $(cat err)"
			[ -e backup/latest.backup ] || break
		done
		[ "$(digest)" = "$wanted" ] || fail "$kind: other weights after $killed kills: $(cat out)"
		cmp -s log.csv "whole-$kind/log.csv" || fail "$kind: another log after $killed kills: $(diff log.csv "whole-$kind/log.csv")"
		cmp -s best.npz "whole-$kind/best.npz" || fail "$kind: another best model after $killed kills"
		[ -z "$(ls -A backup)" ] || fail "$kind: something is left: $(ls backup)"
	done
	echo "$kind: $killed kills, $number parts: $wanted"
	total=$((total + killed))
done
echo "$total kills; $read_back databases finished and read"
