#!/usr/bin/env bash
# A run with accumulation 4, two replicas and an evaluation: the report, its files, the keys of its rows, and the
# five joins that are one SELECT each.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
train 128 --compile.steps_per_execution 64 --ipu.auto_select_ipus 4 --evaluate.steps 16 --evaluate.steps_per_execution 8 >out.txt
report=$(ls -d tf_report__*)
[[ $report =~ ^tf_report__[0-9]{4}-[0-9]{2}-[0-9]{2}__[0-9]{2}-[0-9]{2}-[0-9]{2}\.[0-9]{3}__[0-9]+$ ]] || fail "name: $report"
for file in profile.db framework.json app.json; do
	[ -s "$report/$file" ] || fail "$file is missing"
done
[ ! -e "$report/profile.db-wal" ] || fail "the finished file is still in WAL mode"

ask() {
	sqlite3 -batch -bail "$report/profile.db" "$1"
}
is() {
	local got
	got=$(ask "$1") || fail "$1"
	[ "$got" = "$2" ] || fail "$1: expected
$2
got
$got"
}
some() {
	[ "$(ask "SELECT count(*) > 0 FROM ($1)")" = 1 ] || fail "no rows: $1"
}

is "PRAGMA integrity_check" ok
is "SELECT value FROM meta WHERE key = 'state'" complete
is "SELECT count(*) FROM bubbles WHERE mode = 'train'" 64 # 16 updates, 2 replicas, 2 clocks
# Every F and B of every step, stage and replica, on both clocks, and a U for each update.
is "SELECT clock, phase, count(*), count(DISTINCT stage), count(DISTINCT replica), count(DISTINCT step), count(DISTINCT weight_update)
	FROM stage_timings WHERE mode = 'train' GROUP BY 1, 2 ORDER BY 1, 2" \
"device|B|256|2|2|64|16
device|F|256|2|2|64|16
device|U|64|2|2|0|16
host|B|256|2|2|64|16
host|F|256|2|2|64|16
host|U|64|2|2|0|16"
is "SELECT clock, phase, count(*) FROM stage_timings WHERE mode = 'evaluate' GROUP BY 1, 2 ORDER BY 1, 2" \
"device|F|32
host|F|32"
# The keys hang together.
is "SELECT count(*) FROM stage_timings WHERE mode = 'train' AND phase IN ('F', 'B') AND (weight_update <> step / 4 OR microbatch <> step % 4 OR execution <> 0 OR epoch <> 1 OR ipu <> replica * 2 + stage)" 0
is "SELECT count(*) FROM stage_timings WHERE mode IS NULL OR rank IS NULL OR replica IS NULL OR stage IS NULL OR phase IS NULL" 0
is "SELECT count(*) FROM stage_timings WHERE mode = 'evaluate' AND (weight_update IS NOT NULL OR microbatch IS NOT NULL OR epoch IS NOT NULL)" 0
is "SELECT count(*), count(DISTINCT replica) FROM tensor_stats WHERE kind = 'gradient' AND key = 'Dense_128/bias:0_grad'" "32|2"
is "SELECT count(*) FROM tensor_stats WHERE kind = 'gradient' AND (step IS NOT NULL OR weight_update IS NULL OR phase <> 'U' OR n <> CASE key WHEN 'Dense_128/bias:0_grad' THEN 128 ELSE 32768 END)" 0
is "SELECT key, shape, nans FROM tensor_epochs WHERE callback = 'Gradients callback' ORDER BY 1" \
"Dense_128/bias:0_grad|(16, 2, 128)|0
Dense_128/kernel:0_grad|(16, 2, 256, 128)|0"
is "SELECT mode, epoch, execution, steps, updates, traced FROM executions ORDER BY execution" \
"train|1|0|64|16|1
evaluate||1|8||1"
is "SELECT layer, stage, params FROM layers WHERE params > 0 ORDER BY position" \
"Dense_256|0|200960
Dense_128|1|32896
Dense_10|1|1290"
is "SELECT count(*) FROM metrics WHERE name = 'loss' AND mode = 'train' AND step IS NOT NULL" 64
is "SELECT count(*) FROM metrics WHERE name = 'accuracy' AND mode = 'evaluate'" 1
is "SELECT count(*) FROM spans WHERE dur_ns IS NULL" 0
is "SELECT sum(dropped) FROM overhead" 0
# A host track's spans at one depth never overlap; a device lane's neither.
is "SELECT count(*) FROM (SELECT start_ns, lag(start_ns + dur_ns) OVER (PARTITION BY track, depth ORDER BY start_ns) AS before FROM spans) WHERE start_ns < before" 0
# No stage runs a micro-batch before its input is there, on either clock.
is "SELECT count(*) FROM stage_timings a JOIN stage_timings b USING (clock, mode, replica, step) WHERE a.phase = 'F' AND b.phase = 'F' AND a.stage = 0 AND b.stage = 1 AND b.start_ns < a.start_ns + a.dur_ns" 0
is "SELECT count(*) FROM stage_timings a JOIN stage_timings b USING (clock, mode, replica, step) WHERE a.phase = 'B' AND b.phase = 'B' AND a.stage = 1 AND b.stage = 0 AND b.start_ns < a.start_ns + a.dur_ns" 0
# What the device waits for is on its lanes too, and is all of its host I/O.
is "SELECT t.ipu, sum(d.dur_ns) - t.host_io_ns BETWEEN -100 AND 100 FROM time_split t JOIN device_steps d ON d.ipu = t.ipu AND d.execution = t.execution
	WHERE t.clock = 'device' AND t.execution = 0 AND d.type LIKE 'StreamCopy%' GROUP BY 1 ORDER BY 1" \
"0|1
1|1
2|1
3|1"
# The execution trace: the same steps in every run, numbered on each IPU, and together what the stages took.
is "SELECT count(DISTINCT n) > 1, count(*) FROM (SELECT mode, ipu, count(*) AS n, max(trace_step) + 1 - count(DISTINCT trace_step) AS gaps
	FROM device_steps WHERE mode = 'train' GROUP BY mode, ipu, weight_update) WHERE gaps = 0" "1|64"
is "SELECT count(*) FROM stage_timings s LEFT JOIN (SELECT mode, ipu, stage, phase, weight_update, step, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns, sum(dur_ns) AS dur_ns
	FROM device_steps GROUP BY 1, 2, 3, 4, 5, 6) d ON d.mode = s.mode AND d.ipu = s.ipu AND d.stage = s.stage AND d.phase = s.phase AND d.weight_update IS s.weight_update AND d.step IS s.step
	WHERE s.clock = 'device' AND (d.start_ns IS NOT s.start_ns OR d.end_ns IS NOT s.start_ns + s.dur_ns OR d.dur_ns <> s.dur_ns)" 0
is "SELECT count(*) FROM device_steps WHERE microbatch IS NOT CASE mode WHEN 'train' THEN step % 4 END" 0
is "SELECT count(*), (SELECT count(*) FROM device_run_rows), (SELECT count(*) FROM device_steps) > 10 * (SELECT count(*) FROM device_step_rows) FROM device_traces" "4|42|1"
# An IPU's steps follow each other without a gap and fill its execution; what one IPU sends another gets.
is "SELECT count(*) FROM (SELECT start_cycle, lag(start_cycle + cycles) OVER (PARTITION BY execution, ipu ORDER BY start_cycle, trace_step) AS before FROM device_steps) WHERE before <> start_cycle" 0
is "SELECT count(*) FROM (SELECT e.cycles AS cycles, sum(d.cycles) AS steps FROM device_steps d JOIN executions e USING (rank, execution) GROUP BY d.execution, d.ipu) WHERE steps <> cycles" 0
is "SELECT sum(bytes_in) > 0, sum(bytes_in) - sum(bytes_out) FROM device_steps WHERE type IN ('GlobalExchange', 'DoExchange')" "1|0"
# The program tree: parents before children, numbered; calls reach functions; steps are leaves of it.
is "SELECT count(*) FROM programs WHERE parent_id >= program_id" 0
is "SELECT count(*) FROM (SELECT count(*) AS n, count(DISTINCT position) AS positions, max(position) + 1 AS most FROM programs GROUP BY parent_id) WHERE n <> positions OR n <> most" 0
is "SELECT count(*) > 0, count(f.program_id) - count(*), sum(f.parent_id IS NOT NULL) FROM programs c LEFT JOIN programs f ON f.program_id = c.call_target WHERE c.type = 'Call'" "1|0|0"
is "SELECT count(*) FROM device_steps d LEFT JOIN programs p USING (program_id) WHERE p.type IS NOT d.type OR p.name IS NOT d.name" 0
is "SELECT count(*) > 0, count(p.program_id) - count(*) FROM compute_sets c LEFT JOIN programs p ON p.program_id = c.program_id AND p.type = 'OnTileExecute' AND p.operation IS c.operation" "1|0"
is "SELECT count(*) - (SELECT count(*) FROM operations), count(DISTINCT operation) > 0 FROM plans" "0|1"
# An arrow for every hand-over: activations to the next stage, gradients back, each between neighbours' spans of one step.
is "SELECT f.name, count(*) FROM flows f JOIN spans a ON a.span_id = f.from_span_id JOIN spans b ON b.span_id = f.to_span_id
	WHERE a.step = b.step AND a.mode = b.mode AND a.replica = b.replica AND a.phase = b.phase AND a.start_ns + a.dur_ns <= b.start_ns + b.dur_ns
	AND b.stage - a.stage = CASE f.name WHEN 'activations' THEN 1 ELSE -1 END GROUP BY 1 ORDER BY 1" \
"activations|144
gradients|128"
# A bubble's parts are its whole.
is "SELECT count(*) FROM bubbles WHERE ramp_up_ns + ramp_down_ns + imbalance_ns + communication_ns <> stages * makespan_ns - busy_ns" 0
# A split adds up to the execution on the device.
is "SELECT count(*) FROM time_split t JOIN executions e USING (rank, execution) WHERE t.clock = 'device' AND abs(compute_ns + exchange_ns + sync_ns + host_io_ns + idle_ns - e.cycles / 1.33) > 5" 0

# Every view answers.
for view in $(ask "SELECT name FROM sqlite_master WHERE type = 'view'"); do
	ask "SELECT * FROM $view LIMIT 3" >/dev/null || fail "$view"
done

# The five joins.
some "SELECT s.* FROM spans s JOIN (SELECT mode, weight_update FROM tensor_stats WHERE kind = 'gradient' AND l2 > 0.001 ORDER BY time_ns LIMIT 1) t USING (mode, weight_update)"
some "SELECT h.stage, h.phase, h.step, h.dur_ns AS host_ns, d.dur_ns AS device_ns FROM stage_timings h JOIN stage_timings d USING (mode, weight_update, step, replica, stage, phase) JOIN (SELECT mode, weight_update, replica FROM bubbles WHERE clock = 'host' AND mode = 'train' ORDER BY idle_fraction DESC LIMIT 1) b USING (mode, weight_update, replica) WHERE h.clock = 'host' AND d.clock = 'device'"
some "SELECT t.* FROM tensors t JOIN (SELECT layer FROM operations WHERE layer = 'Dense_128' ORDER BY cycles DESC LIMIT 1) o USING (layer)"
some "SELECT e.epoch, m.name, m.value, t.clock, sum(t.compute_ns), sum(t.idle_ns) FROM metrics m JOIN executions e USING (rank, mode, epoch) JOIN time_split t ON t.execution = e.execution WHERE m.step IS NULL AND m.mode = 'train' GROUP BY 1, 2, 4"
ask "SELECT l.program_step, v.variable, v.bytes FROM (SELECT ipu, program_step FROM liveness ORDER BY not_always_live_bytes DESC LIMIT 1) l JOIN variables v ON v.ipu = l.ipu AND l.program_step BETWEEN v.first_program_step AND v.last_program_step" >/dev/null || fail "the liveness join"

# One stage has no bubble, whatever its IPU waits for.
mkdir one && cd one
train 64 --quiet --evaluate null "${no_pipeline[@]}"
report=$(echo tf_report__*)
is "SELECT count(*), (SELECT count(*) > 0 FROM stage_timings WHERE clock = 'device') FROM bubbles" '0|1'
"$bin/ipu-report" "$report" summary >summary.txt || fail "no summary"
grep -E "^ *(Bubble|bubble)" summary.txt && fail "a bubble of one stage"
cd ..

# Nothing asked for, nothing written.
mkdir none && cd none
unset POPLAR_ENGINE_OPTIONS
train 64 --quiet --evaluate null
[ -z "$(ls)" ] || fail "files without autoReport: $(ls)"
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"false"}' train 64 --quiet --evaluate null
[ -z "$(ls)" ] || fail "files with autoReport.all false: $(ls)"
