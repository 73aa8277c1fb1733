#!/usr/bin/env bash
# What a run's options do to its program and its device timeline: each adds its steps, and whatever they are, an IPU's
# steps add up, what is sent is received, and every step is a leaf of the program tree.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
common=(--gradient_accumulation.steps_per_replica 4 --evaluate '{"steps": 8, "steps_per_execution": 8}' --quiet)

ask() {
	sqlite3 -batch -bail tf_report__*/profile.db "$1"
}
is() {
	local got
	got=$(ask "$1") || fail "$options: $1"
	[ "$got" = "$2" ] || fail "$options: $1: expected $2, got $got"
}
# Train with these options and look at what always holds.
device() {
	options=$*
	rm -rf tf_report__*
	train 16 "${common[@]}" "$@"
	is "SELECT count(*) FROM (SELECT e.cycles AS cycles, sum(d.cycles - coalesce(d.cycles_overlapped, 0)) AS steps
		FROM device_steps d JOIN executions e USING (rank, execution) GROUP BY d.execution, d.ipu) WHERE steps <> cycles" 0
	is "SELECT sum(bytes_in) - sum(bytes_out) FROM device_steps WHERE type IN ('GlobalExchange', 'DoExchange')" 0
	is "SELECT count(*) FROM device_steps d LEFT JOIN programs p USING (program_id) WHERE p.type IS NOT d.type OR p.name IS NOT d.name" 0
	is "SELECT count(*) FROM stage_timings s LEFT JOIN (SELECT mode, ipu, stage, phase, weight_update, step, min(start_ns) AS start_ns, sum(dur_ns) AS dur_ns
		FROM device_steps GROUP BY 1, 2, 3, 4, 5, 6) d ON d.mode = s.mode AND d.ipu = s.ipu AND d.stage = s.stage AND d.phase = s.phase AND d.weight_update IS s.weight_update AND d.step IS s.step
		WHERE s.clock = 'device' AND (d.start_ns IS NOT s.start_ns OR d.dur_ns IS NOT s.dur_ns)" 0
	is "SELECT count(*) FROM time_split t JOIN executions e USING (rank, execution) WHERE t.clock = 'device' AND abs(compute_ns + exchange_ns + sync_ns + host_io_ns + idle_ns - e.cycles / 1.33) > 5" 0
	is "SELECT count(*) FROM bubbles WHERE ramp_up_ns + ramp_down_ns + imbalance_ns + communication_ns <>
		(SELECT count(DISTINCT ipu) FROM stage_timings WHERE replica = 0) * makespan_ns - busy_ns" 0
	# No two spans of a lane at once.
	is "SELECT count(*) FROM (SELECT start_ns, lag(start_ns + dur_ns) OVER (PARTITION BY track, depth ORDER BY start_ns) AS before FROM spans WHERE clock = 'device') WHERE start_ns < before" 0
}
cycles() {
	ask "SELECT max(cycles / updates) FROM executions WHERE mode = 'train'"
}
phases() {
	is "SELECT group_concat(phase, '') FROM (SELECT DISTINCT phase FROM stage_timings WHERE clock = 'device' ORDER BY 1)" "$1"
}

device --pipeline.schedule Grouped
grouped=$(cycles)
phases BFU
# Grouped with two stages and four micro-batches: no main phase, and what goes through the FIFO is pushed and popped four times.
is "SELECT count(*) FROM programs WHERE type = 'Repeat' AND name = 'Main' AND program_id < (SELECT program_id FROM programs WHERE name = 'evaluate')" 0
is "SELECT count(*) > 0, sum(name LIKE 'FIFO/Push/%') = sum(name LIKE 'FIFO/Pop/%') FROM device_steps WHERE name LIKE 'FIFO/%'" "1|1"
is "SELECT group_concat(name, ' ') FROM (SELECT name FROM programs WHERE parent_id IS NULL AND name NOT LIKE 'Stage%' ORDER BY program_id)" "train evaluate Engine::run"
is "SELECT group_concat(type, ' ') FROM (SELECT p.type FROM programs p JOIN programs r ON r.program_id = p.parent_id WHERE r.name = 'Engine::run' ORDER BY p.position)" \
	"StreamCopyBegin StreamCopyMid StreamCopyEnd StreamCopyBegin StreamCopyMid StreamCopyEnd DoExchange Unknown"
# Of a run's time steps every one ends with all IPUs; the first infeed stands at its start.
is "SELECT count(*) FROM device_steps WHERE mode = 'train' AND weight_update = 0 AND replica = 0 AND ipu = 0 AND type = 'Sync' AND name = 'External'" 8

device --pipeline.schedule Interleaved
device --pipeline.schedule 1f1b
phases BFU
device --pipeline.schedule zb-h1
phases BFUW
# Gradients of weights are work that is moved, not more of it: B and W together take what B takes of other schedules.
is "SELECT count(DISTINCT operation) > 0 FROM operations WHERE phase = 'W'" 1
is "SELECT count(*) FROM operations WHERE phase = 'W' AND operation NOT LIKE '%Grad%' AND operation NOT LIKE '%Accum%'" 0
device --pipeline.schedule Sequential
is "SELECT repeat_count FROM programs WHERE type = 'Repeat' AND name = 'Main' ORDER BY program_id LIMIT 1" 4
is "SELECT count(*) FROM device_steps WHERE name LIKE 'FIFO/%'" 0
device --pipeline.schedule Grouped --pipeline.device_mapping '[0,0]' --ipu.auto_select_ipus 1
is "SELECT count(*) FROM device_steps WHERE type = 'GlobalExchange' OR name = 'External'" 0
device "${no_pipeline[@]}"
device --ipu.allow_recompute true
phases BFRU
device --ipu.allow_recompute true --pipeline.schedule Sequential
phases BFRU
device --pipeline.offload_activations true
is "SELECT count(*) > 0 FROM device_steps WHERE name LIKE 'FIFO/Remote%' AND type = 'StreamCopyMid' AND bytes_in + bytes_out > 0" 1
[ "$(cycles)" -gt "$grouped" ] || fail "offloaded activations cost nothing"
device --pipeline.offload_weights true --pipeline.offload_gradient_accumulation_buffers true
[ "$(cycles)" -gt "$grouped" ] || fail "offloaded weights cost nothing"
# Two replicas: each gradient tensor is summed over them once an update, and their IPUs share a host link.
device --ipu.auto_select_ipus 4
is "SELECT count(*) FROM device_steps WHERE mode = 'train' AND weight_update = 0 AND replica = 0 AND name LIKE 'CrossReplicaSum/%/AllGather/Ring'" 6
[ "$(cycles)" -gt "$grouped" ] || fail "replicas cost nothing"
device --ipu.auto_select_ipus 4 --pipeline.offload_weight_update_variables true --pipeline.replicated_optimizer_state_sharding true
is "SELECT count(*) FROM device_steps WHERE mode = 'train' AND weight_update = 0 AND replica = 0 AND name LIKE 'ReplicatedAllGather/%/AllGather/Ring'" 6
device --ipu.io_tiles.num_io_tiles 32
is "SELECT count(*) FROM device_steps WHERE cycles_overlapped > 0" 0
device --ipu.io_tiles.num_io_tiles 32 --ipu.io_tiles.place_ops_on_io_tiles true
is "SELECT count(*) > 0, min(cycles_overlapped) >= 0 FROM device_steps WHERE type = 'StreamCopyMid' AND cycles_overlapped > 0" "1|1"
[ "$(cycles)" -lt "$grouped" ] || fail "I/O tiles hide nothing"
device --infeed.prefetch_depth 1
device --pipeline.accumulate_outfeed true
is "SELECT count(*) FROM device_steps WHERE mode = 'train' AND weight_update = 0 AND name = 'Stage1/Outfeed' AND type = 'StreamCopyMid'" 1

# A stage without operations is evaluated, too: every call has a target.
cat >flat.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"layers": [
 {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 28, 28, 1]}},
 {"class_name": "AveragePooling2D", "config": {"name": "pool", "pool_size": 7}},
 {"class_name": "Flatten", "config": {"name": "flat"}},
 {"class_name": "Dense", "config": {"name": "classes", "units": 10, "activation": "softmax"}}]}},
 "compile": {"loss": "sparse_categorical_crossentropy", "steps_per_execution": 12}, "data": {"name": "mnist", "batch_size": 4},
 "fit": {"steps_per_epoch": 12}, "evaluate": {"steps": 12}, "ipu": {"auto_select_ipus": 4},
 "gradient_accumulation": {"steps_per_replica": 12}, "pipeline": {"stages": [0, 1, 2]}}
JSON
rm -rf tf_report__*
"$bin/ipu-train" flat.json --quiet
is "SELECT count(*) > 0, sum(call_target IS NULL) FROM programs WHERE type = 'Call'" "1|0"

# What a machine cannot do is an error.
if train 16 "${common[@]}" --ipu.target c600 --pipeline.offload_activations true 2>error.txt; then
	fail "a C600 has no streaming memory that is modelled"
fi
grep -q "activations cannot be offloaded: c600 has no streaming memory" error.txt || fail "$(cat error.txt)"
