#!/usr/bin/env bash
# Named reports against queries of their own: what a column says by its name is asked of the rows of the views, of
# pipelined runs with and without replicas, validation and evaluation, of one without a pipeline and one without a device.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 compares, and is absent"
	exit 77
}

cat >compare.py <<'PYTHON'
import json, math, sqlite3, subprocess, sys

program, report = sys.argv[1:3]
db = sqlite3.connect("file:%s/profile.db?mode=ro" % report, uri=True)
db.row_factory = sqlite3.Row
compared = 0


def alike(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b


def check(words, keys, sql):
    """Rows of both by their keys; those of @sql have columns of the same names."""
    global compared
    said = subprocess.run([program, report] + words.split() + ["--json"], stdout=subprocess.PIPE, check=True).stdout
    keys = keys.split()
    rows = {tuple(row[k] for k in keys): row for row in json.loads(said)["rows"]}
    mine = {tuple(row[k] for k in keys): row for row in db.execute(sql)}
    assert rows.keys() == mine.keys(), (report, words, rows.keys() ^ mine.keys())
    for key, row in mine.items():
        for column in row.keys():
            assert alike(rows[key][column], row[column]), (report, words, key, column, rows[key][column], row[column])
            compared += 1


# A stage's times are of its phases; a share is of all stages of a clock and mode, on all replicas.
check("stages", "clock mode stage", """
    WITH t AS (SELECT clock, mode, stage, sum(dur_ns) AS ns FROM stage_timings GROUP BY 1, 2, 3)
    SELECT t.clock, t.mode, t.stage, t.ns AS total_ns,
        (SELECT count(*) FROM stage_timings s WHERE (s.clock, s.mode, s.stage, s.phase) = (t.clock, t.mode, t.stage, 'F')) AS microbatches,
        (SELECT avg(dur_ns) FROM stage_timings s WHERE (s.clock, s.mode, s.stage, s.phase) = (t.clock, t.mode, t.stage, 'F')) AS forward_ns,
        (SELECT avg(dur_ns) FROM stage_timings s WHERE (s.clock, s.mode, s.stage, s.phase) = (t.clock, t.mode, t.stage, 'B')) AS backward_ns,
        (SELECT avg(dur_ns) FROM stage_timings s WHERE (s.clock, s.mode, s.stage, s.phase) = (t.clock, t.mode, t.stage, 'U')) AS update_ns,
        1.0 * ns / (SELECT sum(ns) FROM t u WHERE (u.clock, u.mode) = (t.clock, t.mode)) AS share,
        ns / (SELECT avg(ns) FROM t u WHERE (u.clock, u.mode) = (t.clock, t.mode)) - 1 AS imbalance
    FROM t""")
for by, keys in (("mode", "mode"), ("epoch", "mode, epoch"), ("update", "mode, epoch, execution, weight_update")):
    check("bubbles --by " + by, "clock replica " + keys.replace(",", ""), """
        SELECT clock, replica, %s, count(*) AS runs, 1 - 1.0 * sum(busy_ns) / sum(room) AS idle_fraction, avg(bubble_rate) AS bubble_rate,
            avg(bubble_over_ideal) AS bubble_over_ideal, avg(theory_idle_fraction) AS theory_idle_fraction,
            avg(makespan_ns) AS makespan_ns, 1.0 * sum(ramp_up_ns) / sum(room) AS ramp_up,
            1.0 * sum(ramp_down_ns) / sum(room) AS ramp_down, 1.0 * sum(imbalance_ns) / sum(room) AS imbalance,
            1.0 * sum(communication_ns) / sum(room) AS communication, sum(oversubscribed) AS oversubscribed_runs
        FROM (SELECT *, stages * makespan_ns AS room FROM bubbles) GROUP BY clock, replica, %s""" % (keys, keys))
check("time-split", "clock mode replica ipu", """
    SELECT t.clock, e.mode, t.replica, t.ipu, count(*) AS executions, sum(compute_ns) AS compute_ns, sum(exchange_ns) AS exchange_ns,
        sum(sync_ns) AS sync_ns, sum(host_io_ns) AS host_io_ns, sum(idle_ns) AS idle_ns,
        1.0 * sum(idle_ns) / sum(compute_ns + exchange_ns + sync_ns + host_io_ns + idle_ns) AS waiting_share
    FROM time_split t JOIN executions e USING (execution) GROUP BY 1, 2, 3, 4""")
check("runs", "execution", """
    WITH f(batch, replicas, hz) AS (SELECT max(value) FILTER (WHERE key = 'batch_size') + 0, max(value) FILTER (WHERE key = 'replicas') + 0,
        max(value) FILTER (WHERE key = 'clock_hz') + 0.0 FROM meta)
    SELECT execution, mode, epoch, steps, dur_ns, cycles, steps * batch * replicas AS samples, 1.0 * dur_ns / steps AS step_ns,
        steps * batch * replicas / (dur_ns / 1e9) AS samples_per_s,
        steps * batch * replicas / (round(cycles / hz * 1e9) / 1e9) AS device_samples_per_s,
        NOT EXISTS (SELECT 1 FROM executions b WHERE b.mode = e.mode AND b.execution < e.execution) AS warm_up
    FROM executions e, f""")
# The metrics of an evaluation after the training stand beside its own steps, not those of validations.
check("metrics", "mode epoch", """
    SELECT m.mode, m.epoch, m.value AS loss, (SELECT sum(steps) FROM executions e WHERE e.mode = m.mode AND e.epoch IS m.epoch) AS steps,
        (SELECT sum(dur_ns) FROM executions e WHERE e.mode = m.mode AND e.epoch IS m.epoch) AS dur_ns
    FROM metrics m WHERE step IS NULL AND name = 'loss'""")
check("metrics --by metric", "mode name per_step", """
    WITH v AS (SELECT *, step IS NOT NULL AS per_step FROM metrics)
    SELECT mode, name, per_step, count(*) AS count, min(value) AS least, max(value) AS greatest,
        (SELECT value FROM v w WHERE (w.mode, w.name, w.per_step) = (v.mode, v.name, v.per_step) ORDER BY time_ns DESC LIMIT 1) AS last_value
    FROM v GROUP BY 1, 2, 3""")
check("overhead", "rank", """SELECT rank, count(*) AS commits, sum(events) AS events, sum(rows) AS rows, sum(bytes) AS bytes,
    sum(write_ns) AS write_ns, 1.0 * sum(write_ns) / max(time_ns) AS write_share FROM overhead GROUP BY rank""")
check("memory", "ipu", """
    WITH t AS (SELECT ipu, tile, sum(bytes) AS bytes, capacity FROM tile_memory GROUP BY 1, 2)
    SELECT ipu, sum(bytes) AS bytes, sum(capacity) AS capacity, max(bytes) AS fullest_bytes, count(*) AS tiles,
        (SELECT sum(bytes) FROM tile_memory m WHERE m.ipu = t.ipu AND category <> 'notAlwaysLiveVariables') AS always_live_bytes,
        max(bytes) > max(capacity) AS out_of_memory FROM t GROUP BY 1""")
check("memory --by category", "ipu category", """
    SELECT ipu, category, sum(bytes) AS bytes, count(*) AS tiles, max(bytes) AS fullest_bytes,
        1.0 * sum(bytes) / (SELECT sum(bytes) FROM tile_memory a WHERE a.ipu = t.ipu) AS share
    FROM (SELECT ipu, category, tile, sum(bytes) AS bytes FROM tile_memory GROUP BY 1, 2, 3) t GROUP BY 1, 2""")
check("liveness", "ipu", """SELECT ipu, max(always_live_bytes + not_always_live_bytes) AS peak_bytes, count(*) AS program_steps
    FROM liveness GROUP BY 1""")
# Operations as the device ran them in a weight update.
ran = """(SELECT o.*, r.ran FROM operations o JOIN (SELECT operation, sum(cycles) AS ran FROM device_steps WHERE mode = 'train'
    AND weight_update = 0 AND replica = 0 GROUP BY 1) r USING (operation))"""
check("operations", "operation", "SELECT operation, cycles, ran AS update_cycles, ran / cycles AS times FROM " + ran)
for by in ("stage", "phase"):
    check("operations --by " + by, by, """
        SELECT {0}, count(*) AS operations, sum(ran) AS update_cycles, sum(code_bytes) AS code_bytes,
            1.0 * sum(ran) / sum(sum(ran)) OVER () AS update_share,
            1.0 * sum(sync_cycles * ran / cycles) / sum(ran) AS sync_share FROM {1} GROUP BY 1""".format(by, ran))
check("operations --by layer --where layer>')'", "layer", """
    SELECT layer, sum(ran) AS update_cycles FROM {} WHERE layer NOT NULL GROUP BY 1""".format(ran))
check("layers", "layer", """SELECT layer, stage, params, flops, (SELECT sum(ran) FROM {} o WHERE o.layer = l.layer) AS update_cycles
    FROM layers l""".format(ran))
# Every cycle of an execution is some IPU's step, and every IPU has as many.
check("execution-trace", "execution ipu", """
    SELECT execution, ipu, sum(cycles) AS cycles, count(*) AS program_steps,
        (SELECT cycles FROM executions e WHERE e.execution = d.execution) AS cycles,
        1.0 * sum(cycles * (type = 'OnTileExecute')) / sum(cycles) AS compute_share,
        1.0 * sum(cycles * (type LIKE 'StreamCopy%')) / sum(cycles) AS stream_copy_share,
        1.0 * sum(cycles * (type = 'GlobalExchange')) / sum(cycles) AS global_exchange_share,
        1.0 * sum(cycles * (type = 'DoExchange')) / sum(cycles) AS exchange_share,
        1.0 - 1.0 * sum(cycles * (type = 'OnTileExecute' OR type LIKE 'StreamCopy%' OR type LIKE '%Exchange')) / sum(cycles) AS sync_share,
        sum(CASE type WHEN 'OnTileExecute' THEN cycles * tile_balance END) / sum(cycles) AS parallel_efficiency
    FROM device_steps d GROUP BY 1, 2""")
# A leaf of the program tree as it ran in the first weight update of one replica; what only evaluates, in its first execution.
check("programs --where runs>0", "program_id", """
    SELECT program_id, count(*) AS runs, avg(cycles) AS cycles FROM device_steps d WHERE replica = 0 AND CASE
        WHEN program_id IN (SELECT program_id FROM device_steps WHERE mode = 'train') THEN weight_update = 0
        ELSE execution = (SELECT min(execution) FROM executions e WHERE traced AND e.mode = d.mode) END GROUP BY 1""")
check("tensors", "queue key", """
    SELECT queue, key, (SELECT count(*) FROM tensor_stats s WHERE (s.queue, s.key) = (t.queue, t.key)) AS rows,
        (SELECT max(time_ns) FROM tensor_stats s WHERE (s.queue, s.key) = (t.queue, t.key)) AS last_ns FROM tensors t""")
check("tensor-epochs", "mode epoch key", "SELECT * FROM tensor_epochs")
# The file's own sums are those of its rows.
both = [db.execute("SELECT count(*), sum(%s) FROM (SELECT * FROM (%s) EXCEPT SELECT * FROM (%s))" % ("1", a, b)).fetchone()[0]
        for a, b in [(
    "SELECT clock, rank, mode, replica, ipu, stage, phase, count, total_ns, least_ns, greatest_ns, cpu_ns FROM stage_sums",
    "SELECT clock, rank, mode, replica, ipu, stage, phase, count(*), sum(dur_ns), min(dur_ns), max(dur_ns), sum(cpu_ns) FROM stage_timings "
    "GROUP BY 1, 2, 3, 4, 5, 6, 7"), (
    "SELECT clock, rank, mode, replica, schedule, runs, total_makespan_ns, total_busy_ns, total_ramp_up_ns, oversubscribed_runs FROM bubble_sums",
    "SELECT clock, rank, mode, replica, schedule, count(*), sum(makespan_ns), sum(busy_ns), sum(ramp_up_ns), sum(oversubscribed) FROM bubbles "
    "GROUP BY 1, 2, 3, 4, 5"), (
    "SELECT rank, queue, key, rows, n_nan, least_std, greatest_std, last_ns FROM tensor_sums",
    "SELECT rank, queue, key, count(*), sum(n_nan), min(std), max(std), max(time_ns) FROM tensor_stats GROUP BY 1, 2, 3")]]
assert both == [0, 0, 0], (report, both)
# The process's memory was sampled, and the summary has the most of it.
said = subprocess.run([program, report, "summary", "--json"], stdout=subprocess.PIPE, check=True).stdout
(peak,) = db.execute("SELECT max(value) FROM counters WHERE name = 'resident_bytes'").fetchone()
assert peak > 1 << 20, peak
assert [row["value"] for row in json.loads(said)["rows"] if row["name"] == "peak_resident_bytes"] == [peak], peak
print("%s: %d numbers" % (report, compared))
PYTHON

# record NAME STEPS ARGUMENT...: every execution with its device steps.
record() {
	local name=$1
	shift
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.executionProfileProgramRunCount":"1000"}' \
		train "$@" --data.limit 1024 --fit.epochs 2 --fit.validation true --evaluate '{"steps":12,"metrics":["accuracy"]}' >out 2>err ||
		fail "training $name: $(cat out err)"
	mv tf_report__* "$name"
	python3 compare.py "$bin/ipu-report" "$name" || fail "$name"
}
record pipeline 16
record replicas 16 --ipu.auto_select_ipus 4
record one 16 --no-pipelining --ipu.auto_select_ipus 1
record host 16 "${no_pipeline[@]}" --ipu null --gradient_accumulation null

# ---- ranks that are not alike, in one file ---------------------------------------------------------
"$bin/ipu-report" merge pipeline replicas -o merged.db >out 2>err || fail "merge: $(cat err)"
for name in pipeline replicas; do
	"$bin/ipu-report" $name runs --csv --columns mode,epoch,execution,samples,device_samples_per_s | tail -n +2
done >wanted
"$bin/ipu-report" merged.db runs --csv --columns mode,epoch,execution,samples,device_samples_per_s | tail -n +2 | cmp - wanted ||
	fail "samples of a merged file"
[ "$("$bin/ipu-report" merged.db stages --csv --columns layers)" = "$("$bin/ipu-report" pipeline stages --csv --columns layers)" ] ||
	fail "layers of a merged file: $("$bin/ipu-report" merged.db stages --csv --columns layers)"
