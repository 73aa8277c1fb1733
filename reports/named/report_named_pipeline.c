/*
 * Named reports on the pipeline: its stages and its bubbles.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/named/report_named.h"

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

const struct report_named report_named_stages = {
	REPORT_NAMED("stages", "each stage: mean times of its phases, share, imbalance, layers"),
	{{NULL, stages_sql, "clock,mode,stage,forward_ns,backward_ns,imbalance,layers",
	  "-clock,-mode,stage"}},
	"No stage timings: the run ended before its first micro-batch, or was not a pipeline of "
	"ours.",
};

/* ---- bubbles --------------------------------------------------------------------------------- */

static const char bubbles_mode_sql[] =
	"SELECT clock, rank, mode, replica, schedule, stages, microbatches, runs,\n"
	"       mean_idle_fraction AS idle_fraction,\n"
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
	"FROM bubble_sums";

/* Several pipeline runs as one row; the four parts are of IPUs x makespan. */
#define BUBBLE_MEANS(keys)                                                                         \
	"SELECT " keys ", schedule, stages, microbatches,\n"                                       \
	"       count(*) AS runs, avg(idle_fraction) AS idle_fraction,\n"                          \
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
	"      FROM bubbles)\n"                                                                    \
	"GROUP BY " keys ", schedule, stages, microbatches"

#define BUBBLE_TEXT                                                                                \
	"idle_fraction,theory_idle_fraction,ramp_up,ramp_down,imbalance,"                          \
	"communication"

const struct report_named report_named_bubbles = {
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
