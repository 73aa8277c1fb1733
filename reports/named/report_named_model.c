/*
 * Named reports on the model as planned: operations, layers, programs.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/named/report_named.h"

/* ---- operations ------------------------------------------------------------------------------ */

static const char operation_sql[] =
	"SELECT operation, layer, kind, phase, stage, flops, cycles, compute_cycles,\n"
	"       exchange_cycles, sync_cycles, bytes_exchanged, tiles_used, tile_balance,\n"
	"       code_bytes,\n"
	"       1.0 * cycles / nullif(sum(cycles) OVER (), 0) AS cycles_share,\n"
	"       1.0 * compute_cycles / nullif(cycles, 0) AS compute_share,\n"
	"       1.0 * exchange_cycles / nullif(cycles, 0) AS exchange_share,\n"
	"       1.0 * sync_cycles / nullif(cycles, 0) AS sync_share,\n"
	"       1.0 * flops / nullif(cycles, 0) AS flops_per_cycle\n"
	"FROM operations";

/* Several operations as one row; tile_balance is the mean over cycles. */
#define OPERATION_SUMS(keys)                                                                       \
	"SELECT *,\n"                                                                              \
	"       1.0 * cycles / nullif(sum(cycles) OVER (), 0) AS cycles_share,\n"                  \
	"       1.0 * compute_cycles / nullif(cycles, 0) AS compute_share,\n"                      \
	"       1.0 * exchange_cycles / nullif(cycles, 0) AS exchange_share,\n"                    \
	"       1.0 * sync_cycles / nullif(cycles, 0) AS sync_share,\n"                            \
	"       1.0 * flops / nullif(cycles, 0) AS flops_per_cycle\n"                              \
	"FROM (SELECT " keys ", count(*) AS operations, sum(flops) AS flops,\n"                    \
	"             sum(cycles) AS cycles, sum(compute_cycles) AS compute_cycles,\n"             \
	"             sum(exchange_cycles) AS exchange_cycles,\n"                                  \
	"             sum(sync_cycles) AS sync_cycles,\n"                                          \
	"             sum(bytes_exchanged) AS bytes_exchanged,\n"                                  \
	"             1.0 * sum(tile_balance * cycles) / nullif(sum(CASE WHEN\n"                   \
	"               tile_balance IS NOT NULL THEN cycles END), 0) AS tile_balance,\n"          \
	"             sum(code_bytes) AS code_bytes\n"                                             \
	"      FROM operations GROUP BY " keys ")"

const struct report_named report_named_operations = {
	REPORT_NAMED("operations", "cycles, FLOPs and code by operation, layer, stage or phase"),
	{{"operation", operation_sql,
	  "operation,phase,stage,cycles,cycles_share,code_bytes,tile_balance", "-cycles,operation"},
	 {"layer", OPERATION_SUMS("layer"),
	  "layer,cycles,cycles_share,compute_share,exchange_share,flops,flops_per_cycle",
	  "-cycles,layer"},
	 {"stage", OPERATION_SUMS("stage"),
	  "stage,operations,cycles,cycles_share,compute_share,exchange_share,flops,flops_per_cycle",
	  "stage"},
	 {"phase", OPERATION_SUMS("phase"),
	  "phase,operations,cycles,cycles_share,compute_share,exchange_share,flops,flops_per_cycle",
	  "-cycles,phase"}},
	"No operations: the run planned none (a recording without a simulated device), or was "
	"killed before its plan was written.",
};

/* ---- layers ---------------------------------------------------------------------------------- */

static const char layers_sql[] =
	"SELECT l.layer, l.class, l.position, l.stage, l.output_shape, l.params,\n"
	"       l.trainable_params, l.flops, o.cycles,\n"
	"       1.0 * o.cycles / nullif(sum(o.cycles) OVER (), 0) AS cycles_share,\n"
	"       o.code_bytes\n"
	"FROM layers l\n"
	"LEFT JOIN (SELECT layer, sum(cycles) AS cycles, sum(code_bytes) AS code_bytes\n"
	"           FROM operations GROUP BY layer) o ON o.layer = l.layer";

const struct report_named report_named_layers = {
	REPORT_NAMED("layers", "the model's layers: stage, parameters, FLOPs, planned cycles"),
	{{NULL, layers_sql, "layer,class,stage,output_shape,params,flops,cycles",
	  "position,layer"}},
	"No layers: what was recorded is not a model of ours, or the run was killed before the "
	"model was written.",
};

/* ---- programs -------------------------------------------------------------------------------- */

/* A program is in the tree once: below its parent. Its place is the way from the root, in digits
 * that sort as numbers. The cycles of a leaf are of its runs in the first weight update that has a
 * trace (where no training ran it: the first execution of the other mode), in one replica, as all
 * do the same; those of a node are of all below it. max() alone: the columns beside it are of the
 * row that it is of, and "train" is the greatest mode. */
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

const struct report_named report_named_programs = {
	REPORT_NAMED("programs", "the program tree, with simulated cycles"),
	{{NULL, programs_sql, "program_id,program,cycles,runs", "place"}},
	"No programs: the run had no simulated device, or was killed before its plan was written.",
};
