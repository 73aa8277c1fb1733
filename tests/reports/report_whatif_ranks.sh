#!/usr/bin/env bash
# What-if on more instances is what a straightforward program makes of the same recording (whatif_ranks.py): from one process and from
# two ranks, of one and several stages, with odd numbers of replicas and with shares of the optimizer's state.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
command -v python3 >/dev/null || exit 77
cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
again() { python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/whatif_ranks.py" "$@"; }
what_if() { "$bin/ipu-report" what-if "$@"; }

cat >dense.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"name": "dense", "layers": [
	{"class_name": "Flatten", "config": {"batch_input_shape": [null, 28, 28]}},
	{"class_name": "Dense", "config": {"name": "a", "units": 100, "activation": "relu"}},
	{"class_name": "Dense", "config": {"name": "b", "units": 90, "activation": "relu"}},
	{"class_name": "Dense", "config": {"name": "c", "units": 10, "activation": "softmax"}}]}},
 "compile": {"optimizer": "adam", "loss": "sparse_categorical_crossentropy", "steps_per_execution": 8},
 "data": {"name": "mnist", "batch_size": 8}, "host": {"threads": 1}, "gradient_accumulation": {"steps_per_replica": 2},
 "distribution": {"bucket_bytes": 20000}, "fit": {"epochs": 2, "steps_per_epoch": 16}, "evaluate": null}
JSON
"$bin/ipu-train" dense.json >out || fail "one process: exit code $?"
db=$(echo tf_report__*/profile.db)
what_if "$db" --instances 1..16 --network 10Gbit,20us --csv >csv || fail "one process: $(cat csv)"
again "$db" 10 20000 1000 1,1,1,1,1,1 20000 a:78400,a:100,b:9000,b:90,c:900,c:10 <csv || fail "one process: other figures: $(cat csv)"
[ "$(what_if "$db" --instances 1 --network 1Gbit,1ms --csv --columns weight_update_ns | tail -n +2 | sort -u | wc -l)" = 1 ] || fail "one instance is not the run itself"

# Each error is one line.
refused() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	! what_if "$db" "$@" >out 2>&1 || fail "$*: exit code 0"
	[ "$(wc -l <out)" = 1 ] && grep -e "$pattern" out >/dev/null || fail "$*: $(cat out)"
}
refused '--instances and --network belong together' --instances 2
refused '"25,20us" is not a bandwidth' --instances 2 --network 25,20us
refused '"1Gbit" is not a bandwidth' --instances 2 --network 1Gbit
refused '"0Gbit,1us" is not a bandwidth' --instances 2 --network 0Gbit,1us
refused '"1Gbit,1us,1us,1us" is not a bandwidth' --instances 2 --network 1Gbit,1us,1us,1us
refused '--instances' --instances 8..2 --network 1Gbit,20us
refused '--instances' --instances 2..x --network 1Gbit,20us
refused 'of the host.s clock' --instances 2 --network 1Gbit,20us --clock device
refused 'one process has used no network' --instances 2 --network recorded
refused 'each has the replicas that it had' --instances 2 --network 1Gbit,20us --replicas 2
rm -rf tf_report__*

find_launchers
two() { # NAME ARGUMENT...: a recording of two ranks, by the first launcher
	local launcher=${launchers[0]} start=(mpiexec.mpich)
	[ "$launcher" != openmpi ] || start=(mpirun.openmpi --oversubscribe --bind-to none)
	"${start[@]}" -n 2 "$bin/ipu-train" "${@:2}" >out || fail "$1: $(cat out)"
	db=$(echo tf_report__*/ranks.db)
}
check() { # NAME BRANCHES
	# The fitted network leaves the recorded numbers of instances as they are.
	what_if "$db" --instances 2 --network recorded,10us --csv --columns weight_update_ns >csv || fail "$1: $(cat csv)"
	awk 'NR == 2 { at = $1 } NR == 3 && ($1 - at) * ($1 - at) > at * at * 1e-8 { exit 1 }' csv || fail "$1: recorded: $(cat csv)"
	what_if "$db" --instances 2..16 --network 1Gbit,50us,2us --csv >csv || fail "$1: $(cat csv)"
	again "$db" 1 50000 2000 "$2" <csv || fail "$1: other figures: $(cat csv)"
	rm -rf tf_report__*
}
two "a replica each" dense.json --distribution.replicas 2
! what_if tf_report__*/rank1/profile.db --instances 2 --network 1Gbit,20us >out 2>&1 || fail "a rank's own recording: exit code 0"
grep 'take the report of all ranks' out >/dev/null || fail "a rank's own recording: $(cat out)"
check "a replica each" 1,1,1,1,1
# Of 6 replicas, 0 to 2 are the branches 0-1 and 2; 3 to 5 are 3 and 4-5; of more, 3 replicas are two branches, too.
two "three replicas each" dense.json --distribution.replicas 6
check "three replicas each" 2,2,2,2,2
stages=("$run" --distribution.replicas 2 --evaluate null --host.threads 1 --fit.epochs 1 --fit.steps_per_epoch 24 --compile.steps_per_execution 24 --distribution.bucket_bytes 65536)
two "two stages" "${stages[@]}"
check "two stages" 1,1,1,1,1
two "shares" "${stages[@]}" --compile.optimizer adam --pipeline.replicated_optimizer_state_sharding true
check "shares" 1,1,1,1,1
