/*
 * Named reports on memory: what fills the tiles, and what is live when.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/named/report_named.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* A tile is out of memory where it needs more than it has, or the planner said so. */
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

const struct report_named report_named_memory = {
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

/* max() alone: the columns beside it are of the row that it is of. */
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

const struct report_named report_named_liveness = {
	REPORT_NAMED("liveness", "the peak of live memory by IPU, its variables, or every step"),
	{{"peak", liveness_peak_sql, "ipu,peak_bytes,program_step,program,biggest", "ipu"},
	 {"variable", liveness_variable_sql, "ipu,variable,kind,bytes,share,always_live",
	  "ipu,-bytes,variable"},
	 {"step", liveness_step_sql, "ipu,program_step,program,not_always_live_bytes,live_bytes",
	  "ipu,program_step"}},
	"No liveness: the run had no simulated device, or was killed before its plan was written.",
};
