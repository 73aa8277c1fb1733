/*
 * The named reports that are one query each, and the function that runs them.
 *
 * Threading: constant data only. Ownership: definitions are literals.
 */
#include "reports/named/report_named.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "reports/named/report_communication.h"
#include "reports/table/report_select.h"

/* ---- runs ------------------------------------------------------------------------------------ */

/* A fact on the row's rank: a merged file stores what differs from rank 0 under a key of the
 * rank. */
#define FACT_OF_RANK(fact)                                                                         \
	"(SELECT CAST(value AS REAL) FROM meta\n"                                                  \
	"               WHERE key IN ('" fact "', 'merge.' || e.rank || '." fact "')\n"            \
	"               ORDER BY key = '" fact "' LIMIT 1)"
#define BATCH_SIZE FACT_OF_RANK("batch_size")
#define REPLICAS   FACT_OF_RANK("replicas")
#define CLOCK_HZ   FACT_OF_RANK("clock_hz")

static const char runs_sql[] =
	"SELECT rank, mode, epoch, execution, first_step, steps, updates, start_ns,\n"
	"       dur_ns, start_cycle, cycles, traced, CAST(samples AS INTEGER) AS samples,\n"
	"       1.0 * dur_ns / nullif(steps, 0) AS step_ns,\n"
	"       samples * 1e9 / nullif(dur_ns, 0) AS samples_per_s, device_ns,\n"
	"       samples * 1e9 / nullif(device_ns, 0) AS device_samples_per_s,\n"
	"       row_number() OVER (PARTITION BY rank, mode ORDER BY execution) = 1\n"
	"         AS warm_up\n"
	"FROM (SELECT e.*,\n"
	"             e.steps * " BATCH_SIZE "\n"
	"               * coalesce(" REPLICAS ", 1) AS samples,\n"
	"             CAST(round(e.cycles * 1e9 / " CLOCK_HZ ") AS INTEGER) AS device_ns\n"
	"      FROM executions e)";

static const struct report_named report_named_runs = {
	REPORT_NAMED("runs", "every Engine::run with its throughput; the first of a mode warms up"),
	{{NULL, runs_sql,
	  "execution,mode,epoch,steps,dur_ns,step_ns,samples_per_s,device_samples_per_s,warm_up",
	  "rank,execution,start_ns"}},
	"No executions: the run ended before its first Engine::run.",
};

/* ---- metrics --------------------------------------------------------------------------------- */

/* In Keras's order: the loss first, metrics of validation last. round separates several
 * evaluations. */
static const char metrics_epoch_sql[] =
	"SELECT m.rank, m.mode, m.epoch, m.execution, e.steps, e.total_ns AS dur_ns,\n"
	"       1.0 * e.total_ns / nullif(e.steps, 0) AS step_ns, m.loss, m.metrics\n"
	"FROM (SELECT rank, mode, epoch, execution, round,\n"
	"             max(CASE name WHEN 'loss' THEN value END) AS loss,\n"
	"             group_concat(name || ': ' || CASE WHEN value IS NULL THEN 'nan'\n"
	"               ELSE printf('%.4f', value) END, ' - ') AS metrics\n"
	"      FROM (SELECT *, row_number() OVER (\n"
	"                     PARTITION BY rank, mode, epoch, execution, name\n"
	"                     ORDER BY time_ns) AS round\n"
	"            FROM metrics WHERE step IS NULL\n"
	"            ORDER BY name <> 'loss', name LIKE 'val_%', name)\n"
	"      GROUP BY rank, mode, epoch, execution, round) m\n"
	"LEFT JOIN execution_sums e\n"
	"  ON e.rank = m.rank AND e.mode = m.mode AND e.epoch IS m.epoch";

static const char metrics_metric_sql[] =
	"SELECT rank, mode, name, per_step, count, least, greatest, last_value,\n"
	"       last_epoch, last_execution, last_step, last_time_ns\n"
	"FROM metric_sums";

static const struct report_named report_named_metrics = {
	REPORT_NAMED("metrics", "the metrics of each epoch and evaluation; or of each metric "
				"its range"),
	{{"epoch", metrics_epoch_sql, "mode,epoch,steps,step_ns,metrics",
	  "rank,-mode,epoch,execution"},
	 {"metric", metrics_metric_sql,
	  "mode,name,per_step,count,least,greatest,last_value,last_epoch",
	  "rank,-mode,per_step,name"}},
	"No metrics: the run ended before its first epoch.",
};

/* ---- overhead -------------------------------------------------------------------------------- */

static const char overhead_sql[] =
	"SELECT rank, commits, time_ns AS recorded_ns, events, rows, bytes, dropped,\n"
	"       record_ns_estimate AS record_ns, write_ns,\n"
	"       1.0 * record_ns_estimate / nullif(time_ns, 0) AS record_share,\n"
	"       1.0 * write_ns / nullif(time_ns, 0) AS write_share,\n"
	"       events * 1e9 / nullif(time_ns, 0) AS events_per_s,\n"
	"       rows * 1e9 / nullif(time_ns, 0) AS rows_per_s,\n"
	"       bytes * 1e9 / nullif(time_ns, 0) AS bytes_per_s\n"
	"FROM overhead_sums\n"
	"WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'source')";

static const struct report_named report_named_overhead = {
	REPORT_NAMED("overhead", "what recording cost in all and per second"),
	{{NULL, overhead_sql,
	  "rank,recorded_ns,events,events_per_s,bytes,dropped,record_share,write_share", "rank"}},
	"No cost of recording: nothing was recorded.",
};

/* ---- stages ---------------------------------------------------------------------------------- */

static const char stages_sql[] =
	"SELECT clock, mode, stage, microbatches, forward_ns, backward_ns, weight_ns,\n"
	"       recompute_ns, update_ns, total_ns,\n"
	"       1.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY clock, mode), 0)\n"
	"         AS share,\n"
	"       total_ns / nullif(avg(total_ns) OVER (PARTITION BY clock, mode), 0) - 1\n"
	"         AS imbalance,\n"
	"       (SELECT group_concat(layer, ', ') FROM (\n"
	"          SELECT layer FROM layers l WHERE l.stage = s.stage\n"
	"          GROUP BY layer ORDER BY min(position)))\n"
	"         AS layers\n"
	"FROM (SELECT clock, mode, stage,\n"
	"             sum(count) FILTER (WHERE phase = 'F') AS microbatches,\n"
	"             1.0 * sum(total_ns) FILTER (WHERE phase = 'F')\n"
	"               / sum(count) FILTER (WHERE phase = 'F') AS forward_ns,\n"
	"             1.0 * sum(total_ns) FILTER (WHERE phase = 'B')\n"
	"               / sum(count) FILTER (WHERE phase = 'B') AS backward_ns,\n"
	"             1.0 * sum(total_ns) FILTER (WHERE phase = 'W')\n"
	"               / sum(count) FILTER (WHERE phase = 'W') AS weight_ns,\n"
	"             1.0 * sum(total_ns) FILTER (WHERE phase = 'R')\n"
	"               / sum(count) FILTER (WHERE phase = 'R') AS recompute_ns,\n"
	"             1.0 * sum(total_ns) FILTER (WHERE phase = 'U')\n"
	"               / sum(count) FILTER (WHERE phase = 'U') AS update_ns,\n"
	"             sum(total_ns) AS total_ns\n"
	"      FROM stage_sums GROUP BY clock, mode, stage) s";

static const struct report_named report_named_stages = {
	REPORT_NAMED("stages", "each stage: mean times of its phases, share, imbalance, layers"),
	{{NULL, stages_sql, "clock,mode,stage,forward_ns,backward_ns,imbalance,layers",
	  "-clock,-mode,stage"}},
	"No stage timings: the run ended before its first micro-batch, or was not a pipeline of "
	"ours.",
};

/* ---- bubbles --------------------------------------------------------------------------------- */

static const char bubbles_mode_sql[] =
	"SELECT clock, rank, mode, replica, schedule, stages, microbatches, runs,\n"
	"       1 - 1.0 * total_busy_ns / nullif(total_ns, 0) AS idle_fraction,\n"
	"       mean_theory_idle_fraction AS theory_idle_fraction,\n"
	"       mean_bubble_rate AS bubble_rate,\n"
	"       mean_theory_bubble_rate AS theory_bubble_rate,\n"
	"       mean_bubble_over_ideal AS bubble_over_ideal,\n"
	"       mean_theory_bubble_over_ideal AS theory_bubble_over_ideal,\n"
	"       1.0 * total_ramp_up_ns / nullif(total_ns, 0) AS ramp_up,\n"
	"       1.0 * total_ramp_down_ns / nullif(total_ns, 0) AS ramp_down,\n"
	"       1.0 * total_imbalance_ns / nullif(total_ns, 0) AS imbalance,\n"
	"       1.0 * total_communication_ns / nullif(total_ns, 0) AS communication,\n"
	"       1.0 * total_makespan_ns / runs AS makespan_ns, oversubscribed_runs\n"
	"FROM bubble_sums WHERE stages IS NOT 1";

/* Several pipeline runs as one row; the four causes are shares of IPUs x makespan. */
#define BUBBLE_MEANS(keys)                                                                         \
	"SELECT " keys ", schedule, stages, microbatches,\n"                                       \
	"       count(*) AS runs,\n"                                                               \
	"       1 - 1.0 * sum(busy_ns) / nullif(sum(total_ns), 0) AS idle_fraction,\n"             \
	"       avg(theory_idle_fraction) AS theory_idle_fraction,\n"                              \
	"       avg(bubble_rate) AS bubble_rate,\n"                                                \
	"       avg(theory_bubble_rate) AS theory_bubble_rate,\n"                                  \
	"       avg(bubble_over_ideal) AS bubble_over_ideal,\n"                                    \
	"       avg(theory_bubble_over_ideal) AS theory_bubble_over_ideal,\n"                      \
	"       1.0 * sum(ramp_up_ns) / nullif(sum(total_ns), 0) AS ramp_up,\n"                    \
	"       1.0 * sum(ramp_down_ns) / nullif(sum(total_ns), 0) AS ramp_down,\n"                \
	"       1.0 * sum(imbalance_ns) / nullif(sum(total_ns), 0) AS imbalance,\n"                \
	"       1.0 * sum(communication_ns) / nullif(sum(total_ns), 0) AS communication,\n"        \
	"       avg(makespan_ns) AS makespan_ns,\n"                                                \
	"       sum(oversubscribed) AS oversubscribed_runs\n"                                      \
	"FROM (SELECT *, busy_ns + ramp_up_ns + ramp_down_ns + imbalance_ns\n"                     \
	"               + communication_ns AS total_ns\n"                                          \
	"      FROM bubbles WHERE stages IS NOT 1)\n"                                              \
	"GROUP BY " keys ", schedule, stages, microbatches"

#define BUBBLE_TEXT                                                                                \
	"idle_fraction,theory_idle_fraction,ramp_up,ramp_down,imbalance,"                          \
	"communication"

static const struct report_named report_named_bubbles = {
	REPORT_NAMED("bubbles", "the pipeline bubble beside theory, and its four causes"),
	{{"mode", bubbles_mode_sql, "clock,mode," BUBBLE_TEXT,
	  "-clock,rank,-mode,replica,schedule,stages,microbatches"},
	 {"epoch", BUBBLE_MEANS("clock, rank, mode, epoch, replica"),
	  "clock,epoch,runs," BUBBLE_TEXT,
	  "-clock,rank,-mode,epoch,replica,schedule,stages,microbatches"},
	 {"execution", BUBBLE_MEANS("clock, rank, mode, epoch, execution, replica"),
	  "clock,execution," BUBBLE_TEXT,
	  "-clock,rank,execution,replica,schedule,stages,microbatches"},
	 {"update", BUBBLE_MEANS("clock, rank, mode, epoch, execution, weight_update, replica"),
	  "clock,weight_update," BUBBLE_TEXT,
	  "-clock,rank,execution,weight_update,replica,schedule,stages,microbatches"}},
	"No bubbles: the run had no pipeline (one stage has none), or ended before its first "
	"weight update.",
};

/* ---- operations ------------------------------------------------------------------------------ */

#define ONCE_TFLOPS     REPORT_TFLOPS("flops", "cycles")
#define ONCE_PEAK_SHARE REPORT_PEAK_SHARE("flops", "cycles")

static const char operation_sql[] =
	"SELECT operation, layer, kind, phase, stage, flops, cycles, compute_cycles,\n"
	"       exchange_cycles, sync_cycles, bytes_exchanged, tiles_used, tile_balance,\n"
	"       code_bytes, times, update_cycles,\n"
	"       1.0 * update_cycles / nullif(sum(update_cycles) OVER (), 0) AS update_share,\n"
	"       1.0 * compute_cycles / nullif(cycles, 0) AS compute_share,\n"
	"       1.0 * exchange_cycles / nullif(cycles, 0) AS exchange_share,\n"
	"       1.0 * sync_cycles / nullif(cycles, 0) AS sync_share,\n"
	"       1.0 * flops / nullif(cycles, 0) AS flops_per_cycle,\n"
	"       " ONCE_TFLOPS " AS tflops, " ONCE_PEAK_SHARE " AS peak_share\n"
	"FROM " REPORT_OPERATIONS;

/* Several operations as one row, weighted by their executions in a weight update; tile_balance is
 * the mean over cycles. */
#define UPDATE_TFLOPS     REPORT_TFLOPS("update_flops", "update_cycles")
#define UPDATE_PEAK_SHARE REPORT_PEAK_SHARE("update_flops", "update_cycles")
#define OPERATION_SUMS(key)                                                                        \
	"SELECT *,\n"                                                                              \
	"       1.0 * update_cycles / nullif(sum(update_cycles) OVER (), 0) AS update_share,\n"    \
	"       1.0 * update_compute / nullif(update_cycles, 0) AS compute_share,\n"               \
	"       1.0 * update_exchange / nullif(update_cycles, 0) AS exchange_share,\n"             \
	"       1.0 * update_sync / nullif(update_cycles, 0) AS sync_share,\n"                     \
	"       1.0 * update_flops / nullif(update_cycles, 0) AS flops_per_cycle,\n"               \
	"       " UPDATE_TFLOPS " AS tflops, " UPDATE_PEAK_SHARE " AS peak_share\n"                \
	"FROM (SELECT " key ", count(*) AS operations, sum(update_flops) AS update_flops,\n"       \
	"             sum(update_cycles) AS update_cycles,\n"                                      \
	"             sum(update_compute) AS update_compute,\n"                                    \
	"             sum(update_exchange) AS update_exchange,\n"                                  \
	"             sum(update_sync) AS update_sync, sum(update_bytes) AS update_bytes,\n"       \
	"             1.0 * sum(tile_balance * update_cycles) / nullif(sum(CASE WHEN\n"            \
	"               tile_balance IS NOT NULL THEN update_cycles END), 0) AS tile_balance,\n"   \
	"             sum(code_bytes) AS code_bytes\n"                                             \
	"      FROM " REPORT_OPERATIONS " GROUP BY 1)"

/* Spans that carry an operation, which may be one that no plan has. */
static const char measured_sql[] =
	"SELECT m.operation, o.layer, o.kind, coalesce(o.phase, m.phase) AS phase, m.spans,\n"
	"       m.total_ns, 1.0 * m.total_ns / m.spans AS mean_ns, m.longest_ns,\n"
	"       1.0 * m.total_ns / nullif(sum(m.total_ns) OVER (), 0) AS share\n"
	"FROM (SELECT operation, min(phase) AS phase, count(*) AS spans, sum(dur_ns) AS total_ns,\n"
	"             max(dur_ns) AS longest_ns\n"
	"      FROM spans WHERE operation IS NOT NULL AND clock = 'host' AND dur_ns IS NOT NULL\n"
	"      GROUP BY operation) m\n"
	"LEFT JOIN operations o ON o.operation = m.operation";

static const struct report_named report_named_operations = {
	REPORT_NAMED("operations", "simulated cycles, FLOP/s beside the peak, code by operation, "
				   "layer, stage or phase; measured time of spans by operation"),
	{{"operation", operation_sql,
	  "operation,phase,stage,cycles,times,update_cycles,update_share,peak_share",
	  "-update_cycles,operation"},
	 {"layer", OPERATION_SUMS("owner AS layer"),
	  "layer,operations,update_cycles,update_share,compute_share,peak_share,tflops",
	  "-update_cycles,layer"},
	 {"part", OPERATION_SUMS("part"),
	  "part,operations,update_cycles,update_share,compute_share,peak_share,tflops",
	  "-update_cycles,part"},
	 {"stage", OPERATION_SUMS("stage"),
	  "stage,operations,update_cycles,update_share,compute_share,peak_share,tflops", "stage"},
	 {"phase", OPERATION_SUMS("phase"),
	  "phase,operations,update_cycles,update_share,compute_share,peak_share,tflops",
	  "-update_cycles,phase"},
	 {"measured", measured_sql, "operation,layer,kind,phase,spans,total_ns,mean_ns,share",
	  "-total_ns,operation"}},
	"No operations: the run planned none (a recording without a simulated device), or was "
	"killed before its plan was written.",
};

/* ---- layers ---------------------------------------------------------------------------------- */

static const char layers_sql[] =
	"SELECT l.layer, l.class, l.position, l.stage, l.output_shape, l.params,\n"
	"       l.trainable_params, l.flops, o.update_cycles,\n"
	"       1.0 * o.update_cycles / nullif(sum(o.update_cycles) OVER (), 0) AS update_share,\n"
	"       o.code_bytes\n"
	"FROM layers l\n"
	"LEFT JOIN (SELECT layer, sum(update_cycles) AS update_cycles,\n"
	"                  sum(code_bytes) AS code_bytes\n"
	"           FROM " REPORT_OPERATIONS " GROUP BY layer) o ON o.layer = l.layer";

static const struct report_named report_named_layers = {
	REPORT_NAMED("layers", "the model's layers: stage, parameters, FLOPs, planned cycles"),
	{{NULL, layers_sql, "layer,class,stage,output_shape,params,flops,update_cycles",
	  "position,layer"}},
	"No layers: what was recorded is not a model of ours, or the run was killed before the "
	"model was written.",
};

/* ---- programs -------------------------------------------------------------------------------- */

/* A program occurs once in the tree: below its parent. `place` is its path from the root, in digits
 * that sort as numbers. The cycles of a leaf are those of its runs in the first traced weight
 * update of one replica (all replicas do the same); if no training ran it, in the first traced
 * execution of the other mode. The cycles of a node are the sum over its subtree. With a bare
 * max(), SQLite takes the other columns from the row of the maximum, and "train" is the greatest
 * mode. */
static const char programs_sql[] =
	"WITH RECURSIVE\n"
	"tree(program_id, depth, place) AS (\n"
	"  SELECT program_id, 0, printf('%08d', program_id) FROM programs\n"
	"  WHERE parent_id IS NULL\n"
	"  UNION ALL\n"
	"  SELECT p.program_id, t.depth + 1, t.place || printf('.%08d', p.position)\n"
	"  FROM tree t JOIN programs p ON p.parent_id = t.program_id),\n"
	"leaf(program_id, runs, cycles) AS (\n"
	"  SELECT program_id, runs, cycles FROM (\n"
	"    SELECT program_id, runs, cycles, max(coalesce(mode, '')) FROM (\n"
	"      SELECT program_id, mode, count(*) AS runs, avg(cycles) AS cycles\n"
	"      FROM device_steps\n"
	"      WHERE coalesce(weight_update, 0) = 0 AND coalesce(replica, 0) = 0\n"
	"        AND execution IN (\n"
	"          SELECT min(execution) FROM executions WHERE traced GROUP BY mode)\n"
	"      GROUP BY program_id, mode)\n"
	"    GROUP BY program_id)),\n"
	"up(program_id, parent_id, cycles) AS (\n"
	"  SELECT l.program_id, p.parent_id, l.cycles\n"
	"  FROM leaf l JOIN programs p ON p.program_id = l.program_id\n"
	"  UNION ALL\n"
	"  SELECT p.program_id, p.parent_id, u.cycles\n"
	"  FROM up u JOIN programs p ON p.program_id = u.parent_id),\n"
	"total(program_id, cycles) AS (\n"
	"  SELECT program_id, sum(cycles) FROM up GROUP BY program_id)\n"
	"SELECT p.program_id, p.parent_id, p.position, p.type, p.name, p.operation,\n"
	"       p.repeat_count, p.call_target, t.depth, t.place,\n"
	"       printf('%*s%s', 2 * t.depth, '', p.type)\n"
	"         || coalesce(' (' || p.name || ')', '')\n"
	"         || coalesce(' x ' || p.repeat_count, '')\n"
	"         || coalesce(' -> ' || p.call_target, '') AS program,\n"
	"       c.cycles, l.runs\n"
	"FROM tree t JOIN programs p ON p.program_id = t.program_id\n"
	"LEFT JOIN total c ON c.program_id = t.program_id\n"
	"LEFT JOIN leaf l ON l.program_id = t.program_id";

static const struct report_named report_named_programs = {
	REPORT_NAMED("programs", "the program tree, with simulated cycles"),
	{{NULL, programs_sql, "program_id,program,cycles,runs", "place"}},
	"No programs: the run had no simulated device, or was killed before its plan was written.",
};

/* ---- execution-trace ------------------------------------------------------------------------- */

/* Tile balances are means over the cycles of compute. The parallel efficiency is the share of the
 * cycles of all tiles of an IPU in which they compute. */
static const char trace_execution_sql[] =
	"SELECT rank, mode, epoch, execution, replica, ipu, sum(cycles) AS cycles,\n"
	"       1.0 * sum(balanced) / nullif(sum(cycles), 0) AS parallel_efficiency,\n"
	"       total(cycles) FILTER (WHERE type = 'OnTileExecute')\n"
	"         / nullif(sum(cycles), 0) AS compute_share,\n"
	"       total(cycles) FILTER (WHERE type = 'DoExchange')\n"
	"         / nullif(sum(cycles), 0) AS exchange_share,\n"
	"       total(cycles) FILTER (WHERE type = 'GlobalExchange')\n"
	"         / nullif(sum(cycles), 0) AS global_exchange_share,\n"
	"       total(cycles) FILTER (WHERE type LIKE 'StreamCopy%')\n"
	"         / nullif(sum(cycles), 0) AS stream_copy_share,\n"
	"       total(cycles) FILTER (WHERE type LIKE '%Sync%')\n"
	"         / nullif(sum(cycles), 0) AS sync_share,\n"
	"       1.0 * sum(balanced) / nullif(sum(cycles) FILTER\n"
	"         (WHERE type = 'OnTileExecute'), 0) AS tile_balance,\n"
	"       1.0 * sum(active_balanced) / nullif(sum(cycles) FILTER\n"
	"         (WHERE type = 'OnTileExecute'), 0) AS active_tile_balance,\n"
	"       sum(bytes_in) FILTER (WHERE type LIKE 'StreamCopy%')\n"
	"         AS stream_copy_rx_bytes,\n"
	"       sum(bytes_out) FILTER (WHERE type LIKE 'StreamCopy%')\n"
	"         AS stream_copy_tx_bytes,\n"
	"       sum(bytes_in) FILTER (WHERE type = 'GlobalExchange')\n"
	"         AS global_exchange_rx_bytes,\n"
	"       sum(bytes_out) FILTER (WHERE type = 'GlobalExchange')\n"
	"         AS global_exchange_tx_bytes,\n"
	"       sum(program_steps) AS program_steps\n"
	"FROM (SELECT rank, mode, epoch, execution, replica, ipu, type,\n"
	"             sum(cycles) AS cycles, sum(cycles * tile_balance) AS balanced,\n"
	"             sum(cycles * active_tile_balance) AS active_balanced,\n"
	"             sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out,\n"
	"             count(*) AS program_steps\n"
	"      FROM device_steps\n"
	"      GROUP BY rank, mode, epoch, execution, replica, ipu, type)\n"
	"GROUP BY rank, mode, epoch, execution, replica, ipu";

static const char trace_type_sql[] =
	"SELECT rank, mode, ipu, type, count(*) AS program_steps, sum(cycles) AS cycles,\n"
	"       1.0 * sum(cycles) / nullif(sum(sum(cycles)) OVER (\n"
	"         PARTITION BY rank, mode, ipu), 0) AS share,\n"
	"       avg(cycles) AS mean_cycles, sum(cycles_overlapped) AS cycles_overlapped,\n"
	"       sum(bytes_in) AS rx_bytes, sum(bytes_out) AS tx_bytes\n"
	"FROM device_steps GROUP BY rank, mode, ipu, type";

static const char trace_operation_sql[] =
	"SELECT rank, mode, ipu, operation, phase, count(*) AS program_steps,\n"
	"       sum(cycles) AS cycles,\n"
	"       1.0 * sum(cycles) / nullif(sum(sum(cycles)) OVER (\n"
	"         PARTITION BY rank, mode, ipu), 0) AS share,\n"
	"       sum(cycles) FILTER (WHERE type = 'OnTileExecute') AS compute_cycles,\n"
	"       1.0 * sum(cycles * tile_balance) / nullif(sum(cycles) FILTER\n"
	"         (WHERE type = 'OnTileExecute'), 0) AS tile_balance\n"
	"FROM device_steps GROUP BY rank, mode, ipu, operation, phase";

static const struct report_named report_named_execution_trace = {
	REPORT_NAMED("execution-trace", "where an execution's cycles go, by IPU; or by kind of "
					"program, or operation (reads every device step)"),
	{{"execution", trace_execution_sql,
	  "mode,execution,ipu,cycles,parallel_efficiency,compute_share,exchange_share,sync_share,"
	  "stream_copy_share,tile_balance",
	  "rank,execution,ipu"},
	 {"type", trace_type_sql, "mode,ipu,type,program_steps,cycles,share,rx_bytes,tx_bytes",
	  "rank,mode,ipu,-cycles,type"},
	 {"operation", trace_operation_sql, "mode,ipu,operation,phase,cycles,share,tile_balance",
	  "rank,mode,ipu,-cycles,operation,phase"}},
	"No device steps: the run recorded none of its executions, or had no simulated device "
	"(autoReport.outputExecutionProfile records them, "
	"autoReport.executionProfileProgramRunCount says of how many).",
};

/* ---- time-split ------------------------------------------------------------------------------ */

#define SPLIT_SHARES                                                                               \
	"       1.0 * compute_ns / nullif(total_ns, 0) AS compute_share,\n"                        \
	"       1.0 * exchange_ns / nullif(total_ns, 0) AS exchange_share,\n"                      \
	"       1.0 * sync_ns / nullif(total_ns, 0) AS sync_share,\n"                              \
	"       1.0 * host_io_ns / nullif(total_ns, 0) AS host_io_share,\n"                        \
	"       1.0 * idle_ns / nullif(total_ns, 0) AS waiting_share,\n"                           \
	"       compute_ns, exchange_ns, sync_ns, host_io_ns, idle_ns\n"
#define SPLIT_ROWS                                                                                 \
	"FROM (SELECT t.*, e.mode, e.epoch, t.compute_ns + t.exchange_ns + t.sync_ns\n"            \
	"               + t.host_io_ns + t.idle_ns AS total_ns\n"                                  \
	"             FROM time_split t LEFT JOIN executions e\n"                                  \
	"               ON e.execution = t.execution AND e.rank = t.rank)"

static const char split_ipu_sql[] =
	"SELECT clock, rank, mode, replica, ipu, executions, total_ns,\n" SPLIT_SHARES
	"FROM (SELECT clock, rank, mode, replica, ipu, count(*) AS executions,\n"
	"             sum(total_ns) AS total_ns, sum(compute_ns) AS compute_ns,\n"
	"             sum(exchange_ns) AS exchange_ns, sum(sync_ns) AS sync_ns,\n"
	"             sum(host_io_ns) AS host_io_ns, sum(idle_ns) AS idle_ns\n"
	"      " SPLIT_ROWS "\n"
	"      GROUP BY clock, rank, mode, replica, ipu)";

static const char split_execution_sql[] =
	"SELECT clock, rank, mode, epoch, execution, replica, ipu, total_ns,\n" SPLIT_SHARES
		SPLIT_ROWS;

static const struct report_named report_named_time_split = {
	REPORT_NAMED("time-split",
		     "compute, exchange, sync, host I/O and waiting, in percent of the "
		     "time of each IPU and worker"),
	{{"ipu", split_ipu_sql,
	  "clock,mode,replica,ipu,compute_share,exchange_share,sync_share,host_io_share,waiting_"
	  "share",
	  "-clock,rank,-mode,replica,ipu"},
	 {"execution", split_execution_sql,
	  "clock,execution,replica,ipu,compute_share,exchange_share,sync_share,host_io_share,"
	  "waiting_share",
	  "-clock,rank,execution,replica,ipu"}},
	"No time split: no execution was finished while recording.",
};

/* ---- span-sums ------------------------------------------------------------------------------- */

/* Spans grouped by @keys. self_ns excludes directly nested spans: they are subtracted from the row
 * of their parent, so that the time of a lane is counted once. */
#define SPAN_SUMS(keys, of_span, of_parent)                                                        \
	"SELECT " keys ", spans, self_ns,\n"                                                       \
	"       1.0 * self_ns / nullif(sum(self_ns) OVER (PARTITION BY clock), 0)\n"               \
	"         AS self_share,\n"                                                                \
	"       total_ns, 1.0 * total_ns / nullif(finished, 0) AS mean_ns, longest_ns,\n"          \
	"       spans - finished AS open_spans\n"                                                  \
	"FROM (SELECT " keys ", sum(one) AS spans, sum(ended) AS finished,\n"                      \
	"             sum(dur_ns) AS total_ns, sum(dur_ns) - sum(inner_ns) AS self_ns,\n"          \
	"             max(dur_ns) AS longest_ns\n"                                                 \
	"      FROM (SELECT " of_span ", 1 AS one, dur_ns IS NOT NULL AS ended, dur_ns,\n"         \
	"                   0 AS inner_ns\n"                                                       \
	"            FROM spans\n"                                                                 \
	"            UNION ALL\n"                                                                  \
	"            SELECT " of_parent ", 0, 0, NULL, i.dur_ns\n"                                 \
	"            FROM spans i JOIN spans p ON p.span_id = i.parent_id\n"                       \
	"            WHERE p.dur_ns IS NOT NULL)\n"                                                \
	"      GROUP BY " keys ")"

static const struct report_named report_named_span_sums = {
	REPORT_NAMED("span-sums",
		     "spans by name: how many, own time, whole time (reads every span)"),
	{{"name", SPAN_SUMS("clock, name", "clock, name", "p.clock, p.name"),
	  "clock,name,spans,self_ns,self_share,total_ns,mean_ns", "-clock,-self_ns,name"},
	 {"category", SPAN_SUMS("clock, category", "clock, category", "p.clock, p.category"),
	  "clock,category,spans,self_ns,self_share,total_ns,mean_ns", "-clock,-self_ns,category"},
	 {"track",
	  SPAN_SUMS("clock, rank, track, name", "clock, rank, track, name",
		    "p.clock, p.rank, p.track, p.name"),
	  "clock,track,name,spans,self_ns,self_share,total_ns", "-clock,rank,track,-self_ns,name"}},
	"No spans: nothing that takes time was recorded.",
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* A tile is out of memory if it needs more than its capacity, or if the planner reported it. */
static const char memory_ipu_sql[] =
	"SELECT ipu, count(*) AS tiles, sum(bytes) AS bytes, sum(capacity) AS capacity,\n"
	"       1.0 * sum(bytes) / nullif(sum(capacity), 0) AS used_share,\n"
	"       tile AS fullest_tile, max(bytes) AS fullest_bytes,\n"
	"       1.0 * bytes / nullif(capacity, 0) AS fullest_share,\n"
	"       sum(always_live_bytes) AS always_live_bytes,\n"
	"       sum(overflowed_bytes) AS overflowed_bytes,\n"
	"       sum(bytes > capacity OR overflowed_bytes > 0) AS tiles_over,\n"
	"       sum(bytes > capacity OR overflowed_bytes > 0) > 0 AS out_of_memory\n"
	"FROM (SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity,\n"
	"             sum(CASE WHEN category <> 'notAlwaysLiveVariables' THEN bytes\n"
	"                 ELSE 0 END) AS always_live_bytes,\n"
	"             sum(CASE region WHEN 'overflowed' THEN bytes ELSE 0 END)\n"
	"               AS overflowed_bytes\n"
	"      FROM tile_memory GROUP BY ipu, tile)\n"
	"GROUP BY ipu";

static const char memory_category_sql[] =
	"SELECT ipu, category, sum(bytes) AS bytes,\n"
	"       1.0 * sum(bytes) / nullif(sum(sum(bytes)) OVER (PARTITION BY ipu), 0)\n"
	"         AS share,\n"
	"       count(DISTINCT tile) AS tiles,\n"
	"       max(bytes) AS fullest_bytes, tile AS fullest_tile,\n"
	"       sum(CASE region WHEN 'interleaved' THEN bytes ELSE 0 END)\n"
	"         AS interleaved_bytes,\n"
	"       sum(CASE region WHEN 'nonInterleaved' THEN bytes ELSE 0 END)\n"
	"         AS non_interleaved_bytes,\n"
	"       sum(CASE region WHEN 'overflowed' THEN bytes ELSE 0 END)\n"
	"         AS overflowed_bytes\n"
	"FROM tile_memory GROUP BY ipu, category";

static const char memory_tile_sql[] =
	"SELECT ipu, tile, bytes, capacity,\n"
	"       1.0 * bytes / nullif(capacity, 0) AS used_share, always_live_bytes,\n"
	"       bytes - always_live_bytes AS not_always_live_bytes, overflowed_bytes,\n"
	"       bytes > capacity OR overflowed_bytes > 0 AS out_of_memory\n"
	"FROM (SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity,\n"
	"             sum(CASE WHEN category <> 'notAlwaysLiveVariables' THEN bytes\n"
	"                 ELSE 0 END) AS always_live_bytes,\n"
	"             sum(CASE region WHEN 'overflowed' THEN bytes ELSE 0 END)\n"
	"               AS overflowed_bytes\n"
	"      FROM tile_memory GROUP BY ipu, tile)";

static const struct report_named report_named_memory = {
	REPORT_NAMED("memory", "memory in use by IPU, category or tile; the fullest tiles"),
	{{"ipu", memory_ipu_sql,
	  "ipu,tiles,bytes,used_share,fullest_tile,fullest_bytes,fullest_share,out_of_memory",
	  "ipu"},
	 {"category", memory_category_sql,
	  "ipu,category,bytes,share,tiles,fullest_tile,fullest_bytes", "ipu,-bytes,category"},
	 {"tile", memory_tile_sql,
	  "ipu,tile,bytes,used_share,always_live_bytes,not_always_live_bytes,out_of_memory",
	  "-bytes,ipu,tile"}},
	"No memory of tiles: the run had no simulated device, or was killed before its plan was "
	"written.",
};

/* ---- liveness -------------------------------------------------------------------------------- */

/* With a bare max(), SQLite takes the other columns from the row of the maximum. */
static const char liveness_peak_sql[] =
	"SELECT l.ipu, l.live_bytes AS peak_bytes, l.always_live_bytes,\n"
	"       l.not_always_live_bytes, l.program_step, l.program_steps, l.program_id,\n"
	"       p.type, p.name AS program, p.operation,\n"
	"       (SELECT group_concat(variable, ', ') FROM (\n"
	"          SELECT v.variable FROM variables v\n"
	"          WHERE v.ipu = l.ipu AND NOT v.always_live AND l.program_step\n"
	"            BETWEEN v.first_program_step AND v.last_program_step\n"
	"          ORDER BY v.bytes DESC, v.variable LIMIT 3)) AS biggest\n"
	"FROM (SELECT ipu, program_step, program_id, always_live_bytes,\n"
	"             not_always_live_bytes, count(*) AS program_steps,\n"
	"             max(always_live_bytes + not_always_live_bytes) AS live_bytes\n"
	"      FROM liveness GROUP BY ipu) l\n"
	"LEFT JOIN programs p ON p.program_id = l.program_id";

static const char liveness_variable_sql[] =
	"SELECT l.ipu, l.program_step, v.variable, v.layer, v.kind, v.shape, v.dtype,\n"
	"       v.bytes, 1.0 * v.bytes / nullif(l.live_bytes, 0) AS share, v.always_live,\n"
	"       v.first_program_step, v.last_program_step, v.variable_id\n"
	"FROM (SELECT ipu, program_step, program_id, always_live_bytes,\n"
	"             not_always_live_bytes, count(*) AS program_steps,\n"
	"             max(always_live_bytes + not_always_live_bytes) AS live_bytes\n"
	"      FROM liveness GROUP BY ipu) l\n"
	"JOIN variables v ON v.ipu = l.ipu AND (v.always_live OR l.program_step\n"
	"  BETWEEN v.first_program_step AND v.last_program_step)";

static const char liveness_step_sql[] =
	"SELECT l.ipu, l.program_step, l.program_id, l.always_live_bytes,\n"
	"       l.not_always_live_bytes,\n"
	"       l.always_live_bytes + l.not_always_live_bytes AS live_bytes,\n"
	"       p.type, p.name AS program, p.operation\n"
	"FROM liveness l\n"
	"LEFT JOIN programs p ON p.program_id = l.program_id";

static const struct report_named report_named_liveness = {
	REPORT_NAMED("liveness", "the peak of live memory by IPU, its variables, or every step"),
	{{"peak", liveness_peak_sql, "ipu,peak_bytes,program_step,program,biggest", "ipu"},
	 {"variable", liveness_variable_sql, "ipu,variable,kind,bytes,share,always_live",
	  "ipu,-bytes,variable"},
	 {"step", liveness_step_sql, "ipu,program_step,program,not_always_live_bytes,live_bytes",
	  "ipu,program_step"}},
	"No liveness: the run had no simulated device, or was killed before its plan was written.",
};

/* ---- tensors --------------------------------------------------------------------------------- */

/* With a bare max(), SQLite takes the other columns from the row of the maximum. */
static const char tensors_sql[] =
	"SELECT t.queue, t.key, t.kind, t.layer, t.stage, t.shape, t.dtype, t.activity, t.dims,\n"
	"       r.tier, r.every, coalesce(s.rows, 0) AS rows, s.last_ns, s.epoch, s.step,\n"
	"       s.weight_update, s.n, s.mean, s.std, s.min, s.max, s.l2, s.abs_max, s.bad,\n"
	"       coalesce(s.bad_rows, 0) AS bad_rows\n"
	"FROM tensors t\n"
	"LEFT JOIN (SELECT queue, key, tier, every, max(coalesce(time_ns, -1))\n"
	"           FROM tensor_tiers GROUP BY queue, key) r\n"
	"  ON r.queue = t.queue AND r.key = t.key\n"
	"LEFT JOIN (SELECT queue, key, count(*) AS rows, max(time_ns) AS last_ns, epoch,\n"
	"                  step, weight_update, n, mean, std, min, max, l2, abs_max, bad,\n"
	"                  sum(bad > 0) AS bad_rows\n"
	"           FROM (SELECT *, coalesce(n_nan, 0) + coalesce(n_pos_inf, 0)\n"
	"                          + coalesce(n_neg_inf, 0) AS bad\n"
	"                 FROM tensor_stats)\n"
	"           GROUP BY queue, key) s\n"
	"  ON s.queue = t.queue AND s.key = t.key";

static const struct report_named report_named_tensors = {
	REPORT_NAMED("tensors", "outfed tensors, how much of each is kept, and its last statistics "
				"(reads every tensor_stats)"),
	{{NULL, tensors_sql, "key,tier,rows,mean,std,abs_max,bad_rows", "queue,key"}},
	"No tensors: nothing was outfed or watched (outfeed.capture and the outfeed layers choose "
	"what is).",
};

static const struct report_named report_named_tensor_epochs = {
	REPORT_NAMED("tensor-epochs", "the outfeed callback's table of each epoch"),
	{{NULL, "SELECT * FROM tensor_epochs", "epoch,key,mean,std,min,max,nans,infs", NULL}},
	"No tensors of an epoch: no outfeed callback was attached, or no epoch came to its end.",
};

static const char health_sql[] =
	"SELECT h.*, (SELECT why FROM health_rules r WHERE r.rule = h.rule LIMIT 1) AS why\n"
	"FROM health h";

static const struct report_named report_named_health = {
	REPORT_NAMED("health", "rules broken, in order of time"),
	{{NULL, health_sql, "rule,key,layer,stage,epoch,step,value,threshold", NULL}},
	"No rule was broken. `health_rules` names those in force; without any, health was not "
	"watched.",
};

/* In the order of the output of `ipu-report list`. */
static const struct report_named *const named_table[] = {
	&report_named_runs,
	&report_named_metrics,
	&report_named_stages,
	&report_named_bubbles,
	&report_named_time_split,
	&report_named_span_sums,
	&report_named_layers,
	&report_named_operations,
	&report_named_programs,
	&report_named_execution_trace,
	&report_named_memory,
	&report_named_liveness,
	&report_named_tensors,
	&report_named_tensor_epochs,
	&report_named_health,
	&report_named_communication,
	&report_named_kernels,
	&report_named_temporal,
	&report_named_launch,
	&report_named_critical_path,
	&report_named_steps,
	&report_named_ranges,
	&report_named_memory_timeline,
	&report_named_overhead,
};

const struct report_named *report_named_at(int at)
{
	return at >= 0 && at < (int)ARRAY_LEN(named_table) ? named_table[at] : NULL;
}

/* ---- running a named report ------------------------------------------------------------------ */

const char *report_named_groupings(const struct report_named *named, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; i < REPORT_GROUPINGS && named->groupings[i].by; i++) {
		int length = snprintf(out + used, size - used, "%s%s", i ? " " : "",
				      named->groupings[i].by);

		if (length < 0 || (size_t)length >= size - used)
			break;
		used += (size_t)length;
	}
	return out;
}

enum status report_run_source(const struct report_source *source,
			      const struct report_request *request, struct err *err)
{
	const bool as_text = request->render.format == REPORT_AS_TEXT;
	int64_t limit = request->limit;

	if (request->choice.sql)
		return report_select_print(source, &request->choice, request->db, as_text,
					   limit == REPORT_LIMIT_DEFAULT ? 0 : limit, request->out,
					   err);
	if (limit == REPORT_LIMIT_DEFAULT)
		limit = as_text ? REPORT_TEXT_LIMIT : 0;
	return report_select_write(source, &request->choice, request->db, &request->render, limit,
				   request->out, err);
}

static enum status find_grouping(const struct report_grouping **out,
				 const struct report_named *named, const char *by, struct err *err)
{
	char all[256];

	*out = &named->groupings[0];
	if (!by)
		return ST_OK;
	if (!named->groupings[0].by)
		return err_set(err, ST_INVALID, "--by: `%s` has one grouping only",
			       named->entry.name);
	for (int i = 0; i < REPORT_GROUPINGS && named->groupings[i].by; i++) {
		*out = &named->groupings[i];
		if (!strcmp((*out)->by, by))
			return ST_OK;
	}
	return err_set(err, ST_INVALID, "--by: `%s` has no grouping \"%s\" (one of: %s)",
		       named->entry.name, by, report_named_groupings(named, all, sizeof(all)));
}

enum status report_run_named(const struct report_entry *entry, const struct report_request *request,
			     struct err *err)
{
	const struct report_named *named = (const struct report_named *)entry;
	const struct report_grouping *grouping;
	enum status status = find_grouping(&grouping, named, request->choice.by, err);
	struct report_source source;

	if (status != ST_OK)
		return status;
	if (request->reevaluate)
		return report_run_reevaluate(request, err);
	source = (struct report_source){.name = entry->name,
					.sql = grouping->sql,
					.columns = grouping->columns,
					.sort = grouping->sort,
					.none = named->none};
	return report_run_source(&source, request, err);
}
