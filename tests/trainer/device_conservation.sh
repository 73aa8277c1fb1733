#!/usr/bin/env bash
# What any recorded run of the device holds, asked of the views alone: the program tree, the trace of each IPU, the order
# of a pipeline's work, what operations cost, and what lies on tiles.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
examples=$IPUSCOPE_SOURCE_DIR/examples
mhz=1330

# Nothing may come of a query: what would break the promise.
never() {
	local got
	got=$(sqlite3 -batch -bail tf_report__*/profile.db "$2 LIMIT 3") || fail "$options: $2"
	[ -z "$got" ] || fail "$options: $1: $got"
}

programs() {
	never "a child before its parent" "SELECT c.program_id FROM programs c LEFT JOIN programs p ON p.program_id = c.parent_id
		WHERE c.parent_id IS NOT NULL AND (p.program_id IS NULL OR p.program_id >= c.program_id)"
	never "siblings out of place" "SELECT parent_id FROM programs GROUP BY parent_id
		HAVING min(position) <> 0 OR max(position) <> count(*) - 1 OR count(DISTINCT position) <> count(*)"
	never "a Call of no function" "SELECT c.program_id FROM programs c LEFT JOIN programs f ON f.program_id = c.call_target
		WHERE (c.type = 'Call') <> (c.call_target IS NOT NULL)
			OR c.type = 'Call' AND (f.program_id IS NULL OR f.parent_id IS NOT NULL)"
	never "a function that nothing calls" "SELECT name FROM programs WHERE parent_id IS NULL AND name <> 'Engine::run'
		AND program_id NOT IN (SELECT call_target FROM programs WHERE call_target IS NOT NULL)"
	never "a step of no leaf" "SELECT d.program_id FROM (SELECT DISTINCT program_id, type, name, operation FROM device_steps) d
		LEFT JOIN programs p USING (program_id) WHERE p.type IS NOT d.type OR p.name IS NOT d.name
			OR p.operation IS NOT d.operation OR p.program_id IN (SELECT parent_id FROM programs)"
}

# What is beside the programs is streams, as much as they say; all else fills an IPU's run without gap or overlap.
trace() {
	never "two steps at once, or a gap" "SELECT * FROM (SELECT execution, replica, ipu, name, start_cycle,
			lag(start_cycle + cycles) OVER lane AS before FROM device_steps WHERE coalesce(cycles_overlapped, 0) = 0
			WINDOW lane AS (PARTITION BY execution, replica, ipu ORDER BY start_cycle, trace_step))
		WHERE start_cycle < before OR start_cycle > before AND NOT EXISTS (SELECT 1 FROM device_steps WHERE cycles_overlapped > 0)"
	never "two streams at once" "SELECT * FROM (SELECT name, start_cycle, lag(start_cycle + cycles) OVER lane AS before
			FROM device_steps WHERE type LIKE 'StreamCopy%'
			WINDOW lane AS (PARTITION BY execution, replica, ipu ORDER BY start_cycle, trace_step))
		WHERE start_cycle < before"
	never "steps that are not the run" "SELECT e.execution FROM executions e LEFT JOIN (SELECT rank, execution,
			sum(cycles - coalesce(cycles_overlapped, 0)) AS steps, min(start_cycle) AS first, max(start_cycle + cycles) AS last
			FROM device_steps GROUP BY rank, execution, ipu) d USING (rank, execution)
		WHERE (e.traced = 1) <> (d.steps IS NOT NULL) OR d.steps <> e.cycles OR d.first <> e.start_cycle
			OR d.last <> e.start_cycle + e.cycles"
	never "ns that are not the ends rounded" "SELECT start_cycle, cycles, start_ns, dur_ns FROM device_steps
		WHERE abs(start_ns - start_cycle * 1000.0 / $mhz) > 0.501
			OR abs(start_ns + dur_ns - (start_cycle + cycles) * 1000.0 / $mhz) > 0.501"
	never "bytes sent and not received" "SELECT execution FROM device_steps WHERE type IN ('GlobalExchange', 'DoExchange')
		GROUP BY execution, weight_update, type HAVING sum(bytes_in) <> sum(bytes_out)"
	never "a key out of place" "SELECT d.execution, d.step FROM device_steps d JOIN executions e USING (rank, execution)
		WHERE d.mode <> e.mode OR d.epoch IS NOT e.epoch OR (d.mode = 'train') <> (d.weight_update IS NOT NULL)
			OR d.step NOT BETWEEN e.first_step AND e.first_step + e.steps - 1
			OR d.phase = 'U' AND d.step IS NOT NULL OR d.phase IN ('F', 'B', 'W', 'R') AND d.step IS NULL
			OR (d.microbatch IS NULL) <> (d.step IS NULL OR d.mode <> 'train')"
}

order() {
	local next="s.execution = t.execution AND s.replica = t.replica AND s.step = t.step AND s.clock = 'device' AND t.clock = 'device'"

	never "work before its input" "SELECT t.execution, t.stage, t.phase, t.step FROM stage_timings t
		JOIN stage_timings s ON $next AND (t.phase = 'F' AND s.phase = 'F' AND s.stage = t.stage - 1
			OR t.phase = 'B' AND s.phase = 'B' AND s.stage = t.stage + 1
			OR t.phase IN ('B', 'R') AND s.phase = 'F' AND s.stage = t.stage
			OR t.phase = 'W' AND s.phase = 'B' AND s.stage = t.stage
			OR t.phase = 'B' AND s.phase = 'R' AND s.stage = t.stage)
		WHERE s.start_ns + s.dur_ns > t.start_ns"
	never "not once for each micro-batch" "SELECT e.execution, s.stage, s.phase, count(*) FROM executions e
		JOIN stage_timings s USING (rank, execution) WHERE s.clock = 'device' AND s.phase IN ('F', 'B', 'W')
		GROUP BY e.execution, s.replica, s.stage, s.phase HAVING count(*) <> e.steps OR count(DISTINCT s.step) <> e.steps"
	never "micro-batches out of order" "SELECT * FROM (SELECT stage, phase, step, lag(step) OVER (PARTITION BY execution, replica, stage, phase
			ORDER BY start_ns) AS before FROM stage_timings WHERE clock = 'device' AND phase IN ('F', 'B', 'W') AND dur_ns > 0)
		WHERE step < before"
}

costs() {
	never "an operation's steps" "SELECT d.operation, o.cycles, sum(d.cycles) FROM device_steps d LEFT JOIN operations o USING (operation)
		WHERE d.operation IS NOT NULL GROUP BY d.operation, d.execution, d.weight_update, d.step, d.replica, d.phase
		HAVING sum(d.cycles) IS NOT o.cycles"
	never "an operation's parts" "SELECT operation FROM operations LEFT JOIN plans p USING (operation)
		WHERE compute_cycles + exchange_cycles + sync_cycles <> operations.cycles OR p.cycles IS NOT operations.cycles"
	never "a compute set's step" "SELECT c.compute_set FROM compute_sets c JOIN device_steps d USING (program_id)
		WHERE d.cycles <> c.max_cycles OR d.active_tiles <> c.tiles OR d.operation IS NOT c.operation"
}

memory() {
	never "a name of two variables" "SELECT ipu, variable FROM variables GROUP BY ipu, variable HAVING count(*) > 1"
	never "a life that is none" "SELECT variable FROM variables v WHERE always_live = (first_program_step IS NOT NULL)
		OR NOT always_live AND (last_program_step < first_program_step OR last_program_step >=
			(SELECT max(program_step) FROM liveness l WHERE l.ipu = v.ipu))"
	never "live bytes" "SELECT l.ipu, l.program_step FROM liveness l JOIN (SELECT ipu, sum(bytes) AS bytes FROM variables WHERE always_live
			GROUP BY ipu) a USING (ipu) WHERE l.always_live_bytes <> a.bytes
			OR l.program_id IS NULL AND l.not_always_live_bytes <> 0"
	# The most at once, on some tiles.
	never "a tile's most" "SELECT m.ipu, m.tile FROM (SELECT ipu, tile, sum(bytes) AS bytes FROM tile_memory
			WHERE category = 'notAlwaysLiveVariables' GROUP BY ipu, tile) m JOIN (SELECT ipu, tile, max(bytes) AS bytes FROM
			(SELECT l.ipu, t.tile, sum(t.bytes) AS bytes FROM liveness l JOIN variables v ON v.ipu = l.ipu
				AND l.program_step BETWEEN v.first_program_step AND v.last_program_step
			JOIN variable_tiles t ON t.variable_id = v.variable_id AND t.tile IN (0, 7) GROUP BY l.ipu, l.program_step, t.tile)
			GROUP BY ipu, tile) s USING (ipu, tile) WHERE m.bytes <> s.bytes"
	never "more than a tile has" "SELECT ipu, tile FROM tile_memory WHERE region <> 'overflowed' GROUP BY ipu, tile
		HAVING sum(bytes) > max(capacity)"
}

# conserves STEPS RUN ARGUMENT...
conserves() {
	options=${*:2}
	rm -rf tf_report__*
	"$bin/ipu-train" "$examples/$2.json" --fit.epochs 1 --fit.steps_per_epoch "$1" --data.limit 1024 --quiet "${@:3}" >out 2>err ||
		fail "$options: $(cat err)"
	programs
	trace
	order
	costs
	memory
}

evaluation=(--evaluate '{"steps": 8, "steps_per_execution": 4}')
conserves 16 inspect-tensors --compile.steps_per_execution 8 "${evaluation[@]}"
conserves 16 inspect-tensors --compile.steps_per_execution 8 "${evaluation[@]}" --ipu.allow_recompute true \
	--pipeline.offload_activations true --compile.optimizer Adam --pipeline.offload_weight_update_variables true
conserves 24 inspect-tensors --compile.steps_per_execution 12 --evaluate null --pipeline.stages '[0,0,1,2,2,2]' \
	--pipeline.device_mapping '[0,1,0]' --gradient_accumulation.steps_per_replica 6 --ipu.io_tiles.num_io_tiles 32 \
	--ipu.io_tiles.place_ops_on_io_tiles true
conserves 32 keras-chapter-stages --pipeline.stages '[0,1,1,2,3]' --pipeline.schedule Interleaved --ipu.auto_select_ipus 4
conserves 16 inspect-tensors --compile.steps_per_execution 4 --evaluate null --ipu.auto_select_ipus 4 --pipeline.schedule Sequential \
	--compile.dtype_policy mixed_float16 --pipeline.replicated_weight_sharding true --pipeline.offload_weights true
conserves 32 keras-chapter-stages --pipeline.stages '[0,1,1,2,3]' --pipeline.schedule 1f1b --ipu.auto_select_ipus 4 \
	--ipu.allow_recompute true
conserves 32 keras-chapter-stages --pipeline.stages '[0,1,1,2,3]' --pipeline.schedule gpipe --ipu.auto_select_ipus 4 \
	--pipeline.offload_activations true
conserves 32 keras-chapter-stages --pipeline.stages '[0,1,1,2,3]' --pipeline.schedule 1f1b-interleaved \
	--pipeline.device_mapping '[0,1,0,1]'
conserves 32 keras-chapter-stages --pipeline.stages '[0,1,1,2,3]' --pipeline.schedule zb-h2 --ipu.auto_select_ipus 4
conserves 16 inspect-tensors --compile.steps_per_execution 8 "${evaluation[@]}" --pipeline.schedule zb-h1 \
	--pipeline.offload_activations true --pipeline.offload_gradient_accumulation_buffers true --pipeline.offload_weights true \
	--ipu.auto_select_ipus 4 --compile.optimizer Adam --compile.dtype_policy mixed_float16
conserves 8 mnist-starter --compile.steps_per_execution 4 --ipu.tiles_per_ipu 256 --model '{"class_name": "Sequential", "config": {"layers": [
	{"class_name": "Conv2D", "config": {"filters": 4, "kernel_size": [3, 3]}}, {"class_name": "BatchNormalization", "config": {}},
	{"class_name": "SeparableConv2D", "config": {"filters": 4, "kernel_size": [3, 3]}}, {"class_name": "Flatten", "config": {}},
	{"class_name": "LayerNormalization", "config": {}}, {"class_name": "Dense", "config": {"units": 10, "activation": "softmax"}}]}}'
conserves 4 keras-mnist-demo --use-ipu --evaluate null --predict '{"steps": 2}'
conserves 4 keras-mnist-demo --use-ipu --fit null --evaluate '{"steps": 2}' --predict '{"steps": 2}'
echo "ok"
