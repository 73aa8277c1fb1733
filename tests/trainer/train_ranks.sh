#!/usr/bin/env bash
# Ranks of MPI train to the bytes of one process: weights, logs and predictions, however the replicas are shared out; a rank that is
# killed ends the others; what is wrong is said once. With each implementation that is installed; without any the test ends as skipped.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
find_launchers
ranks() { # LAUNCHER COUNT ARGUMENT...
	local launcher=$1 count=$2
	shift 2
	launch "$launcher" -n "$count" "$bin/ipu-train" "$@"
}
launch() { # LAUNCHER WORD...
	local launcher=$1
	shift
	case $launcher in
	openmpi) mpirun.openmpi --oversubscribe --bind-to none "$@" ;;
	mpich) mpiexec.mpich "$@" ;;
	esac
}

# Moving statistics are each replica's own, a callback goes back to earlier weights, the norm is of all gradients.
cat >normal.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"name": "normal", "layers": [
	{"class_name": "Flatten", "config": {"batch_input_shape": [null, 28, 28]}},
	{"class_name": "Dense", "config": {"units": 24, "activation": "relu"}},
	{"class_name": "BatchNormalization", "config": {}},
	{"class_name": "Dense", "config": {"units": 10, "activation": "softmax"}}]}},
 "compile": {"optimizer": {"class_name": "Adam", "config": {"learning_rate": 0.02, "global_clipnorm": 1.0}},
	"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "steps_per_execution": 4},
 "data": {"name": "mnist", "batch_size": 16}, "ipu": {"auto_select_ipus": 5}, "host": {"threads": 1},
 "fit": {"epochs": 4, "steps_per_epoch": 40, "validation": true},
 "evaluate": {"steps": 20}, "predict": {"steps": 20, "output": "predictions.npz"},
 "callbacks": [{"class_name": "EarlyStopping", "config": {"monitor": "val_loss", "patience": 1, "restore_best_weights": true}},
	{"class_name": "CSVLogger", "config": {"filename": "log.csv", "append": true}}]}
JSON
keep() { # NAME: what a run has left
	mkdir "$1"
	mv predictions.npz log.csv "$1"
	grep -o 'XXH3 [0-9a-f]*' out >"$1/digest"
}
same() { diff -r "$1" "$2" >/dev/null || fail "$2 has other bytes than $1: $(diff -rq "$1" "$2")"; }

"$bin/ipu-train" normal.json >out || fail "one process: exit code $?"
keep one
# A launcher of PMIx may start one process, too.
if [[ " ${launchers[*]} " = *' openmpi '* ]]; then
	PMIX_RANK=0 "$bin/ipu-train" normal.json --ipu.auto_select_ipus 1 --gradient_accumulation '{"steps_per_replica": 4}' >out || fail "one process of PMIx: exit code $?"
	keep pmix
	"$bin/ipu-train" normal.json --ipu.auto_select_ipus 1 --gradient_accumulation '{"steps_per_replica": 4}' >out || fail "one replica: exit code $?"
	keep replica
	same replica pmix
fi
for launcher in "${launchers[@]}"; do
	sweep 2 3 5
	for count in "${swept[@]}"; do
		ranks "$launcher" "$count" normal.json --distribution.bucket_bytes 8192 --data.prefetch 2 >out || fail "$launcher, $count ranks: exit code $?"
		keep "$launcher-$count"
		same one "$launcher-$count"
		[ "$(grep -c 'Program ran successfully' out)" = 1 ] || fail "$launcher: not one rank speaks"
	done
done

# A training goes on from its backup on any number of ranks, also where one of them was killed (or had come to its end by then).
backup() { # MORE OPTIONS, as JSON: the callbacks, and a backup after each execution
	python3 - "$1" <<'PYTHON'
import json, sys
print(json.dumps(json.load(open("normal.json"))["callbacks"] + [{"class_name": "BackupAndRestore", "config": {"backup_dir": "backup", "save_freq": 20, **json.loads(sys.argv[1])}}]))
PYTHON
}
launcher=${launchers[0]} other=${launchers[-1]}
rm -rf backup log.csv
ranks "$launcher" 3 normal.json --fit.epochs 2 --callbacks "$(backup '{"delete_checkpoint": false}')" >out || fail "$launcher, 3 ranks of a part: exit code $?"
ranks "$other" 2 normal.json --callbacks "$(backup '{"delete_checkpoint": false}')" >out 2>&1 &
launched=$!
before=$(stat -c %y backup/latest.backup)
written() { [ "$(stat -c %y backup/latest.backup 2>/dev/null)" != "$before" ]; }
until_ written
for process in $launched $(pgrep -P $launched || true); do victim=$(pgrep -x ipu-train -P "$process" | tail -n 1) || continue; done
[ -z "${victim:-}" ] || kill -KILL "$victim" 2>/dev/null || true
wait $launched || true
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
ranks "$launcher" 5 normal.json --callbacks "$(backup '{}')" >out || fail "$launcher, 5 ranks that go on: $(cat out)"
grep -q '^Resumed from backup/latest.backup: .*; part 3' out || fail "$launcher, 5 ranks that go on: $(cat out)"
unset POPLAR_ENGINE_OPTIONS
keep resumed
same one resumed
[ "$(sqlite3 tf_report__*/ranks.db "SELECT group_concat(value, ' ') FROM (SELECT value FROM meta WHERE key = 'part' OR key GLOB 'merge.*.part' ORDER BY key)")" = "3 3 3 3 3 3" ] ||
	fail "the ranks' report does not say that it is a part"
rm -rf tf_report__*
[ -z "$(ls -A backup)" ] || fail "something is left of the backups: $(ls backup)"

# Gradients of a scaled loss change where they are summed up: of the only micro-batch of an update they are recorded before, and sent behind.
gradients="SELECT key, replica, step, quote(l2) FROM tensor_stats WHERE kind = 'gradient' ORDER BY 1, 2, 3"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
for scaled in '{"steps_per_replica": 1}' '{"steps_per_replica": 1, "dtype": "float16"}'; do
	scaled=("${no_pipeline[@]}" --ipu.auto_select_ipus 2 --gradient_accumulation "$scaled" --evaluate null --host.threads 1 --data.limit 8000
		--outfeed.optimizer_mode AFTER_COMPUTE --compile.optimizer '{"class_name": "SGD", "config": {"learning_rate": 0.1, "loss_scale_factor": 4096}}')
	train 24 "${scaled[@]}" >out || fail "${scaled[*]}: exit code $?"
	grep -o 'XXH3 [0-9a-f]*' out >digest
	sqlite3 tf_report__*/profile.db "$gradients" >recorded
	[ "$(wc -l <recorded)" -eq 48 ] || fail "${scaled[*]}: gradients of 12 updates of 2 replicas: $(cat recorded)"
	rm -rf tf_report__*
	ranks "$launcher" 2 "$run" --fit.epochs 1 --fit.steps_per_epoch 24 --compile.steps_per_execution 24 "${scaled[@]}" >out || fail "${scaled[*]}, 2 ranks: exit code $?"
	grep -o 'XXH3 [0-9a-f]*' out | cmp -s - digest || fail "${scaled[*]}: other weights on 2 ranks"
	sqlite3 tf_report__*/ranks.db "$gradients" | cmp -s - recorded || fail "${scaled[*]}: other gradients on 2 ranks"
	rm -rf tf_report__*
done
unset POPLAR_ENGINE_OPTIONS

# Two stages a replica, three replicas on two ranks, under schedules whose stages end in other orders; one report of all of them.
launcher=${launchers[0]}
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
sweep Grouped Interleaved 1f1b zb-h1
for schedule in "${swept[@]}"; do
	stages=(--data.limit 8000 --ipu.auto_select_ipus 6 --pipeline.schedule "$schedule" --evaluate null --host.threads 1)
	train 24 "${stages[@]}" >out || fail "$schedule: exit code $?"
	grep -o 'XXH3 [0-9a-f]*' out >digest
	rm -rf tf_report__*
	ranks "$launcher" 2 "$run" --fit.epochs 1 --fit.steps_per_epoch 24 --compile.steps_per_execution 24 "${stages[@]}" >out ||
		fail "$schedule, 2 ranks: exit code $?"
	grep -o 'XXH3 [0-9a-f]*' out | cmp -s - digest || fail "$schedule: other weights on 2 ranks"
	all=$(ls tf_report__*/ranks.db)
	[ "$(sqlite3 "$all" "SELECT group_concat(rank || ':' || replicas, ' ') FROM
		(SELECT rank, count(DISTINCT replica) AS replicas FROM bubbles WHERE clock = 'host' GROUP BY rank)")" = "0:1 1:2" ] ||
		fail "$schedule: ranks.db does not have the replicas of both ranks"
	# Rank 1 sums two replicas apart (the tree of three is (0 1) 2), so it sends as much again; each rank sends its half of the mean.
	[ "$(sqlite3 "$all" "SELECT group_concat(rank || ':' || bytes, ' ') FROM (SELECT s.rank, sum(a.value) / (SELECT 4 * sum(params) FROM layers) AS bytes
		FROM spans s JOIN span_args a USING (span_id) WHERE s.name = 'MPI_Ialltoallv' AND a.name = 'bytes' GROUP BY s.rank)")" = "0:1 1:2" ] || fail "$schedule: bytes"
	sqlite3 tf_report__*/rank1/profile.db "SELECT value FROM meta WHERE key = 'mpi'" | grep -E '^(Open MPI|MPICH)' >/dev/null || fail "$schedule: no meta mpi"
	# The ranks have one clock here, and what they have measured does not say otherwise.
	[ "$(sqlite3 "$all" "SELECT count(*), min(o.value * o.value <= b.value * b.value) FROM meta o JOIN meta b ON b.key = replace(o.key, 'offset', 'bound')
		WHERE o.key GLOB '*.clock_offset_ns'")" = "2|1" ] || fail "$schedule: clocks: $(sqlite3 "$all" "SELECT * FROM meta WHERE key GLOB '*clock_*'")"
	# The communication report: its numbers by other queries, in the sqlite3 shell. An update's exchanges meet, so the last to come
	# has nobody to wait for (an operation begins before the span that waits for it, with the backward pass still under way);
	# bus bandwidth is what goes over the wires, (n - 1) / n of what is there, by the operation's length since all have come.
	calls="WITH calls AS (SELECT rank, name, stage, weight_update, start_ns, dur_ns, start_ns - before_ns AS begun, length_ns, bytes, size, hidden_ns
		FROM spans s JOIN (SELECT span_id, max(value) FILTER (WHERE name = 'bytes') AS bytes, max(value) FILTER (WHERE name = 'size') AS size,
			max(value) FILTER (WHERE name = 'before_ns') AS before_ns, max(value) FILTER (WHERE name = 'length_ns') AS length_ns,
			max(value) FILTER (WHERE name = 'hidden_ns') AS hidden_ns FROM span_args GROUP BY span_id) USING (span_id) WHERE category = 'mpi'),
		pairs AS (SELECT a.*, b.rank AS other, b.begun AS after FROM calls a JOIN calls b
			ON (a.name, a.stage, a.weight_update) = (b.name, b.stage, b.weight_update) AND a.rank <> b.rank)"
	said() { "$bin/ipu-report" "$all" communication --csv "$@" | tail -n +2 | tr -d '\r'; }
	[ "$(said --by rank --columns rank,calls,bytes,exposed_ns,hidden_ns)" = "$(sqlite3 -csv "$all" "$calls
		SELECT rank, count(*), sum(bytes), sum(dur_ns), sum(hidden_ns) FROM calls GROUP BY rank ORDER BY rank")" ] || fail "$schedule: communication by rank"
	[ "$(said --by update --sort rank,weight_update --columns rank,weight_update,hidden_ns,hidden_share | awk -F, '{ printf "%s %s %s %.9g\n", $1, $2, $3, $4 }')" = "$(
		sqlite3 -csv "$all" "$calls SELECT rank, weight_update, sum(hidden_ns), 1.0 * sum(hidden_ns) / sum(hidden_ns + dur_ns) FROM calls
		GROUP BY 1, 2 ORDER BY 1, 2" | awk -F, '{ printf "%s %s %s %.9g\n", $1, $2, $3, $4 }')" ] || fail "$schedule: hidden by update"
	[ "$(sqlite3 "$all" "$calls SELECT min(hidden_ns BETWEEN 0 AND length_ns AND begun + hidden_ns <= start_ns), max(hidden_ns > 0) FROM calls")" = "1|1" ] ||
		fail "$schedule: more is hidden than there is"
	[ "$(said --by straggler --where 'rank <> last_rank' --sort rank --columns rank,last_rank,calls,waited_ns)" = "$(sqlite3 -csv "$all" "$calls
		SELECT rank, other, count(*), sum(max(0, min(dur_ns, after - start_ns))) FROM pairs WHERE begun < after GROUP BY 1, 2 ORDER BY 1")" ] ||
		fail "$schedule: stragglers"
	[ "$(said --by bucket --sort name,stage --columns name,stage,busbw_gb_s | awk -F, '{ printf "%s %s %.9g\n", $1, $2, $3 }')" = "$(sqlite3 -csv "$all" "$calls
		SELECT name, stage, sum(size) / 2.0 / sum(length_ns - min(length_ns, max(0, after - begun))) FROM pairs
		GROUP BY 1, 2 ORDER BY 1, 2" | awk -F, '{ printf "%s %s %.9g\n", $1, $2, $3 }')" ] || fail "$schedule: bus bandwidth"
	rm -rf tf_report__*
done

# Optimizer state in shares, of which a replica has one: the same bytes with a third of the memory. Norms are of whole parameters.
sweep '{"class_name": "Adam", "config": {"learning_rate": 0.01}}' '{"class_name": "Lamb", "config": {"learning_rate": 0.01}}' \
	'{"class_name": "Adam", "config": {"learning_rate": 0.01, "clipnorm": 0.5}}' \
	'{"class_name": "SGD", "config": {"momentum": 0.9, "global_clipnorm": 1.0}}'
state() { sqlite3 "$1" "SELECT value FROM meta WHERE key = 'optimizer_state_bytes'"; }
for optimizer in "${swept[@]}"; do
	stages=(--data.limit 8000 --distribution.replicas 3 --evaluate null --host.threads 1 --compile.optimizer "$optimizer")
	train 24 "${stages[@]}" >out || fail "$optimizer: exit code $?"
	whole=$(state tf_report__*/profile.db)
	grep -o 'XXH3 [0-9a-f]*' out >digest
	rm -rf tf_report__*
	ranks "$launcher" 2 "$run" --fit.epochs 1 --fit.steps_per_epoch 24 --compile.steps_per_execution 24 "${stages[@]}" \
		--pipeline.replicated_optimizer_state_sharding true --distribution.bucket_bytes 16384 >out || fail "$optimizer, sharded: exit code $?"
	grep -o 'XXH3 [0-9a-f]*' out | cmp -s - digest || fail "$optimizer: other weights with sharded state"
	# Each update exchanges every bucket once; the rank's own wait is a span, what came before an argument of it.
	[ "$(sqlite3 tf_report__*/ranks.db "SELECT min(n) = max(n) AND min(n) > 20 AND max(n) = (SELECT sum(b) FROM
		(SELECT max(value) + 1 AS b FROM span_args JOIN spans USING (span_id) WHERE span_args.name = 'bucket' AND stage NOT NULL GROUP BY stage))
		FROM (SELECT count(*) AS n FROM spans WHERE name = 'MPI_Ialltoallv' GROUP BY rank, weight_update)")" = 1 ] || fail "$optimizer: buckets"
	# But for what lies between parameters, to the next line of memory.
	shares=$((3 * ($(state tf_report__*/profile.db) + $(state tf_report__*/rank1/profile.db))))
	[ $shares -le "$whole" ] && [ $((shares + 1024)) -ge "$whole" ] || fail "$optimizer: $shares bytes of state of $whole"
	rm -rf tf_report__*
done
unset POPLAR_ENGINE_OPTIONS

# A backup has the whole state: it goes on in the same shares, in others, or in one process, and shares go on from one process's backup.
for optimizer in "${swept[@]}"; do
	stages=("$run" --data.limit 8000 --distribution.replicas 3 --evaluate null --host.threads 1 --compile.optimizer "$optimizer" --fit.steps_per_epoch 24 --compile.steps_per_execution 12
		--callbacks '[{"class_name": "BackupAndRestore", "config": {"backup_dir": "backup", "save_freq": 36, "delete_checkpoint": false}}]')
	sharded=("${stages[@]}" --pipeline.replicated_optimizer_state_sharding true)
	rm -rf backup
	"$bin/ipu-train" "${stages[@]}" --fit.epochs 1 >out || fail "$optimizer, a part of one process: exit code $?"
	cp -r backup alone.backup
	"$bin/ipu-train" "${stages[@]}" --fit.epochs 2 >out || fail "$optimizer, two parts of one process: exit code $?"
	grep -o 'XXH3 [0-9a-f]*' out >digest
	rm -rf backup
	ranks "$launcher" 2 "${sharded[@]}" --fit.epochs 1 >out || fail "$optimizer, a part of 2 ranks with shares: $(cat out)"
	mv backup shares.backup
	for from in alone.backup shares.backup; do
		for count in 1 2 3; do
			cp -r $from backup
			ranks "$launcher" $count "${sharded[@]}" --fit.epochs 2 >out || fail "$optimizer, $from on $count ranks: $(cat out)"
			grep '^Resumed from backup/latest.backup: epoch 2, step 0 of 24; part 2' out >/dev/null || fail "$optimizer, $from on $count ranks: $(cat out)"
			grep -o 'XXH3 [0-9a-f]*' out | cmp -s - digest || fail "$optimizer: other weights from $from on $count ranks"
			rm -rf backup
		done
	done
	rm -rf ./*.backup
done
# ipu-run says the launcher's line, and what it runs trains to the same bytes.
front() { "$bin/ipu-run" --mpi "$launcher" "$@"; }
[ "$(front -n 4 --num-replicas 8 --host a,b --dry-run run.json --data.path "it's" 2>&1 | sed "s|'[^']*/ipu-train'|ipu-train|; s|[^ ]*/ipu-train|ipu-train|; s|ipu-run: [^ ]*||")" = \
	" -n 4 $([ "$launcher" = openmpi ] && echo --host || echo -hosts) a:2,b:2 ipu-train run.json --data.path 'it'\\''s' --distribution.replicas 8 --distribution.instances mpi" ] ||
	fail "ipu-run --dry-run: $(front -n 4 --num-replicas 8 --host a,b --dry-run run.json --data.path "it's" 2>&1)"
global=
[ "$launcher" != openmpi ] || global="--oversubscribe --bind-to none"
short=(--callbacks null --fit.epochs 1 --fit.steps_per_epoch 24 --fit.validation null --evaluate null --predict null)
front -n 2 --num-replicas 6 --mpi-global-args="$global" normal.json "${short[@]}" >out 2>err || fail "ipu-run: exit code $?: $(cat err)"
"$bin/ipu-train" normal.json "${short[@]}" --distribution.replicas 6 >alone || fail "distribution.replicas: exit code $?"
grep '^Weights' out | cmp -s - <(grep '^Weights' alone) || fail "ipu-run: other weights than one process"
grep -q 'ipu.auto_select_ipus: 5 is not followed: the 6 replicas of distribution.replicas take 6 IPUs, 1 each' out || fail "ipu-run: $(cat out)"
refused() { # PATTERN COMMAND...
	local pattern=$1 code=0
	shift
	"$@" >out 2>&1 || code=$?
	[ $code -ne 0 ] || fail "$*: exit code 0"
	grep "$pattern" out >/dev/null || fail "$*: $(cat out)"
}
refused 'num-replicas: 8 do not divide among 3 instances: give a multiple of 3' front -n 3 --num-replicas 8 run.json
refused 'num-instances: 3 do not divide among 2 hosts: give a multiple of 2' front -n 3 --host a,b run.json
refused 'host: "a:1,b:2": each host gets the same number' front -n 3 --host a:1,b:2 run.json
refused 'host: "a,,b" has a host without a name' front -n 3 --host a,,b run.json
refused 'a run file is missing' front -n 2
bare() { env PATH=/nowhere "$bin/ipu-run" --mpi "$launcher" "$@" 2>&1; }
[ "$(bare -n 2 --dry-run run.json | sed "s|'[^']*/ipu-train'|ipu-train|; s|[^ ]*/ipu-train|ipu-train|")" = "ipu-run: $([ "$launcher" = openmpi ] && echo mpirun || echo mpiexec) -n 2 ipu-train run.json --distribution.instances mpi" ] ||
	fail "ipu-run --dry-run without a launcher: $(bare -n 2 --dry-run run.json)"
refused 'in PATH: install ' env PATH=/nowhere "$bin/ipu-run" run.json
refused '5 replicas do not divide among 2 ranks: start a number of ranks that divides them' front -n 2 --mpi-global-args="$global" normal.json
refused 'distribution.instances: is "mpi", but no launcher has started the run: use `ipu-run' "$bin/ipu-train" normal.json --distribution.instances mpi
# What fails on rank 0 alone before the first step ends all ranks, is said once, and leaves no report.
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' refused 'CSVLogger: /nowhere/' ranks "$launcher" 2 normal.json \
	--callbacks '[{"class_name": "CSVLogger", "config": {"filename": "/nowhere/log.csv"}}]'
[ "$(grep -c CSVLogger out)" = 1 ] || fail "not said once: $(cat out)"
[ -z "$(ls -d tf_report__* 2>/dev/null || true)" ] || fail "left behind: $(find tf_report__*)"
# At once: the data are not looked for before.
refused 'but no launcher has started the run' "$bin/ipu-train" normal.json --distribution.instances mpi --data.path /nowhere
"$bin/ipu-train" --summary normal.json --distribution.instances mpi >out || fail "--summary of a run for MPI: $(cat out)"

# What is wrong is said by one of them.
! ranks "$launcher" 3 normal.json --compile.loss nosuch >out 2>&1 || fail "a loss that there is not: exit code 0"
[ "$(grep -c 'unknown loss' out)" = 1 ] || fail "a loss that there is not: $(cat out)"
! ranks "$launcher" 6 normal.json >out 2>&1 || fail "more ranks than replicas: exit code 0"
grep -q '6 ranks cannot share 5 replicas: start fewer, or give the run more replicas (--ipu.auto_select_ipus 6)' out ||
	fail "more ranks than replicas: $(cat out)"

# Ranks that do not have the same run, or not the same data, are told so by one line.
one=(-n 1 "$bin/ipu-train" normal.json)
! launch "$launcher" "${one[@]}" : "${one[@]}" --fit.seed 2 >out 2>&1 || fail "another seed: exit code 0"
[ "$(grep -c 'rank 1 has another run than rank 0: all ranks need the same run file' out)" = 1 ] || fail "another seed: $(cat out)"
for folder in here there; do
	mkdir $folder
	{ echo "a,b,label"; for ((i = 0; i < 16; i++)); do echo "$i,$((i * i)),$((i % 2))"; done; } >$folder/table.csv
done
sed -i 's/^3,9,/3,8,/' there/table.csv
cat >table.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"name": "table", "layers": [
	{"class_name": "Dense", "config": {"units": 2, "activation": "softmax", "batch_input_shape": [null, 2]}}]}},
 "compile": {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy"},
 "data": {"name": "csv", "path": "table.csv", "batch_size": 4}, "ipu": {"auto_select_ipus": 2}, "evaluate": null, "fit": {}}
JSON
one=("$bin/ipu-train" "$work/table.json")
launch "$launcher" -n 1 -wdir "$work/here" "${one[@]}" : -n 1 -wdir "$work/here" "${one[@]}" >out 2>&1 || fail "the same data: $(cat out)"
! launch "$launcher" -n 1 -wdir "$work/here" "${one[@]}" : -n 1 -wdir "$work/there" "${one[@]}" >out 2>&1 ||
	fail "other data: exit code 0"
[ "$(grep -c 'rank 1 has another run than rank 0: all ranks need the same run file, options, data' out)" = 1 ] || fail "other data: $(cat out)"

# A rank that dies takes the others with it, one that stops is missed by the next one; what they have recorded can be read, and finished.
executed_by() { [ "$(sqlite3 -readonly lost/tf_report__*/"$1" "SELECT count(*) > 2 FROM executions" 2>/dev/null)" = 1 ]; }
ended() { [ ! -e /proc/"$1" ] || grep '^State:.*Z' /proc/"$1"/status >/dev/null; }
lose() { # LAUNCHER SIGNAL
	rm -rf lost
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"'"$work"'/lost"}' ranks "$1" 3 normal.json \
		--fit.epochs 100000 --callbacks null --fit.validation null --distribution.timeout_s 2 >out 2>&1 &
	launched=$!
	until_ executed_by profile.db
	until_ executed_by rank1/profile.db
	victim=$(sqlite3 -readonly lost/tf_report__*/rank1/profile.db "SELECT value FROM meta WHERE key = 'pid'")
	kill "-$2" "$victim"
	! wait $launched || fail "$1, $2: exit code 0"
	[ "$2" != STOP ] || grep 'rank 1 has sent no sign of life for 2 s (distribution.timeout_s): rank 2 ends the run on all ranks' out >/dev/null ||
		fail "$1, $2: $(cat out)"
	# The launcher may end before the ranks that it has killed.
	for database in lost/tf_report__*/profile.db lost/tf_report__*/rank[12]/profile.db; do
		until_ ended "$(sqlite3 -readonly "$database" "SELECT value FROM meta WHERE key = 'pid'")"
		"$bin/ipu-report" "$database" repair >out || fail "$1, $2, $database: $(cat out)"
		"$bin/ipu-report" "$database" summary >out || fail "$1, $2, $database: $(cat out)"
	done
}
for launcher in "${launchers[@]}"; do
	sweep KILL STOP
	for signal in "${swept[@]}"; do lose "$launcher" "$signal"; done
done

# Rules on losses, epochs and classes are judged alike by all ranks: one of them says and records it, and all end in good order.
launcher=${launchers[0]}
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
for rule in loss_not_decreasing class_imbalance; do
	stops=(normal.json --callbacks null --fit.epochs 1 --health.stop "[\"$rule\"]" --health.rules '{"loss_not_decreasing": {"threshold": 100, "steps": 4},
		"class_imbalance": {"threshold": 1, "misprediction": 0, "samples": 600}}')
	! "$bin/ipu-train" "${stops[@]}" >out 2>&1 || fail "$rule: exit code 0"
	grep -o "rule=$rule .*" out >alone || fail "$rule: $(cat out)"
	rm -rf tf_report__*
	code=0
	ranks "$launcher" 2 "${stops[@]}" >out 2>&1 || code=$?
	[ $code -eq 1 ] && [ "$(grep -c "ipu-train: health.stop: rule $rule broken by" out)" = 1 ] && ! grep MPI_ABORT out >/dev/null || fail "$rule, 2 ranks: code $code: $(cat out)"
	grep -o "rule=$rule .*" out | cmp -s - alone || fail "$rule, 2 ranks: $(cat out)"
	[ "$(sqlite3 tf_report__*/ranks.db "SELECT count(*) FROM health WHERE rule = '$rule'")" = 1 ] || fail "$rule: ranks.db does not have it once"
	rm -rf tf_report__*
done
unset POPLAR_ENGINE_OPTIONS

# What is wrong on another rank is said by rank 0, in that one's words.
mkdir -p set/{train,test}/{a,b}
for image in train/a/{0..7} train/b/{0..7} test/{a,b}/0; do cp "$IPUSCOPE_SOURCE_DIR/tests/fuzz/corpus/fuzz_image/rgb.png" set/$image.png; done
truncate -s 60 set/train/b/7.png
images=(table.json --model '{"class_name": "Sequential", "config": {"name": "m", "layers": [
	{"class_name": "Flatten", "config": {"batch_input_shape": [null, 8, 8, 3]}}, {"class_name": "Dense", "config": {"units": 2, "activation": "softmax"}}]}}'
	--data '{"name": "images", "path": "set", "resize": [8, 8], "batch_size": 8, "shuffle": false, "cache_bytes": 1000}')
if ! "$bin/ipu-train" "${images[@]}" 2>&1 | grep 'needs libpng' >/dev/null; then
	! ranks "$launcher" 2 "${images[@]}" >out 2>&1 || fail "a damaged image: exit code 0"
	[ "$(grep -c 'ipu-train: rank 1: .*set/train/b/7.png: is a damaged PNG' out)" = 1 ] && [ "$(grep -c 'ipu-train:' out)" = 1 ] || fail "a damaged image: $(cat out)"
fi

# A rank in another folder writes its report where rank 0 cannot see it, as on another machine. Rank 0 has the options of all. What it is
# sent is the same file, of several pieces, and in the report of all of them.
apart=(normal.json --fit.epochs 1 --callbacks null --fit.validation null --evaluate null --predict null --outfeed '{"capture": [{"tier": "full"}]}')
sed -i "s|\"predictions.npz\"|\"$work/predictions.npz\"|" normal.json
for launcher in "${launchers[@]}"; do
	rm -rf here there
	mkdir here there
	cp normal.json here
	cp normal.json there
	launch "$launcher" -n 1 -wdir "$work/here" env POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "${apart[@]}" : \
		-n 2 -wdir "$work/there" "$bin/ipu-train" "${apart[@]}" >out 2>&1 || fail "$launcher, two folders: $(cat out)"
	for rank in 1 2; do
		[ "$(stat -c %s there/tf_report__*/rank$rank/profile.db)" -gt 2500000 ] || fail "$launcher, two folders: a report of few pieces"
		cmp there/tf_report__*/rank$rank/profile.db here/tf_report__*/rank$rank/profile.db || fail "$launcher, two folders: $(cat out)"
	done
	[ "$(sqlite3 here/tf_report__*/ranks.db "SELECT group_concat(rank || ':' || replicas, ' ') FROM
		(SELECT rank, count(DISTINCT replica) AS replicas FROM stage_timings WHERE clock = 'host' GROUP BY rank)")" = "0:1 1:2 2:2" ] || fail "$launcher, two folders: $(cat out)"
done
launcher=${launchers[0]}

# Ctrl-C reaches all ranks; one of them reports it, and why a report could not be fetched.
rm -rf here there lost
mkdir here there
one=(env 'POPLAR_ENGINE_OPTIONS={"autoReport.all":"true","autoReport.directory":"lost"}' "$bin/ipu-train" "$work/normal.json" --fit.epochs 100000 --callbacks null --fit.validation null)
launch "$launcher" -n 1 -wdir "$work/here" "${one[@]}" : -n 1 -wdir "$work/there" "${one[@]}" >out 2>&1 &
launched=$!
ln -s here/lost lost
until_ executed_by profile.db
ln -sfn there/lost lost
until_ executed_by rank1/profile.db
: >"$(echo here/lost/tf_report__*)/rank1"
for database in here/lost/tf_report__*/profile.db there/lost/tf_report__*/rank1/profile.db; do
	kill -INT "$(sqlite3 -readonly "$database" "SELECT value FROM meta WHERE key = 'pid'")"
done
! wait $launched || fail "interrupted: exit code 0"
[ "$(grep -c 'ipu-train: interrupted in epoch' out)" = 1 ] || fail "interrupted: $(cat out)"
[ "$(grep -c 'ipu-train: the reports of 2 ranks are not joined: .*lost/tf_report__.*/rank1: ' out)" = 1 ] || fail "a report that cannot be fetched: $(cat out)"

# A program without the launcher's plugin says what to install.
mkdir -p elsewhere/bin
cp "$bin/ipu-train" elsewhere/bin
! PMI_SIZE=2 elsewhere/bin/ipu-train normal.json >out 2>&1 || fail "no plugin: exit code 0"
grep -q "built without it: install libmpich-dev and build again" out || fail "no plugin: $(cat out)"

# So does one whose plugin cannot be opened, or is of another version.
mkdir -p elsewhere/lib/ipuscope
plugin=elsewhere/lib/ipuscope/ranks-mpich.so
head -c 4096 "$0" >$plugin
! PMI_SIZE=2 elsewhere/bin/ipu-train normal.json >out 2>&1 || fail "a plugin of other bytes: exit code 0"
grep -q "ipu-train: .*$plugin: .*: build ipuscope again, or install it again" out || fail "a plugin of other bytes: $(cat out)"
if command -v cc >/dev/null; then
	echo 'const unsigned ipuscope_ranks_transport[16] = {~0u};' | cc -shared -fPIC -x c -o $plugin -
	! PMI_SIZE=2 elsewhere/bin/ipu-train normal.json >out 2>&1 || fail "a plugin of another version: exit code 0"
	grep -q "$plugin: of another version of ipuscope than ipu-train: install both again" out || fail "a plugin of another version: $(cat out)"
fi
echo "ranks: ${launchers[*]}"
