/*
 * Insights on the simulated device: where its time goes besides waiting in the pipeline.
 *
 * Threading: none. Ownership: texts belong to the insights' arena, or are literals.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/str.h"
#include "reports/insights/report_insights_internal.h"
#include "reports/named/report_named.h"

/* ---- between executions ---------------------------------------------------------------------- */

/* The first executions in sequence, of one rank, since the devices of all ranks work at the same
 * time: the time from start to start is the cycles plus the host's part. */
static const char sql_gaps[] =
	"WITH one AS (SELECT min(rank) AS rank FROM execution_sums),\n"
	"     first AS (SELECT mode, start_cycle, cycles, steps FROM executions\n"
	"               WHERE rank = (SELECT rank FROM one) LIMIT 1000)\n"
	"SELECT count(*) AS executions, max(start_cycle) AS last_start_cycle,\n"
	"       min(start_cycle) AS first_start_cycle, sum(cycles) AS cycles,\n"
	"       (SELECT cycles FROM first WHERE cycles IS NOT NULL\n"
	"        ORDER BY start_cycle DESC LIMIT 1) AS last_cycles,\n"
	"       sum(steps) FILTER (WHERE mode = 'train')\n"
	"         / nullif(count(*) FILTER (WHERE mode = 'train'), 0) AS steps,\n"
	"       (SELECT 1.0 * sum(executions) / count(DISTINCT epoch) FROM execution_sums\n"
	"        WHERE mode = 'train' AND rank = (SELECT rank FROM one)) AS executions_an_epoch,\n"
	"       (SELECT CAST(value AS REAL) FROM meta WHERE key = 'clock_hz') AS clock_hz\n"
	"FROM first WHERE cycles IS NOT NULL";

struct gaps {
	double executions, gap, cycles, steps, an_epoch, hz; /* gap, cycles: mean per execution */
};

static bool read_gaps(struct insight_facts *facts, struct gaps *out)
{
	struct report_table table;
	double span, busy;

	if (!report__insight_rows(facts, &table, sql_gaps))
		return false;
	out->executions = report__insight_real(&table, 0, 0);
	span = report__insight_real(&table, 0, 1) - report__insight_real(&table, 0, 2);
	busy = report__insight_real(&table, 0, 3) - report__insight_real(&table, 0, 4);
	out->cycles = busy / (out->executions - 1);
	out->gap = (span - busy) / (out->executions - 1);
	out->steps = report__insight_real(&table, 0, 5);
	out->an_epoch = report__insight_real(&table, 0, 6);
	out->hz = report__insight_real(&table, 0, 7);
	report_table_free(&table);
	return out->executions > 1 && out->gap > 0 && out->cycles > 0 && out->steps > 0 &&
	       out->an_epoch > 1 && out->hz > 0;
}

void report__insight_engine_run(struct insight_facts *facts)
{
	struct report_insight *insight;
	struct gaps gaps;
	char share[FMT_SIZE], gap[FMT_SIZE], work[FMT_SIZE], steps[FMT_SIZE];
	double part, step;

	if (!read_gaps(facts, &gaps))
		return;
	part = gaps.gap / (gaps.gap + gaps.cycles);
	if (part < report_insight_limit(REPORT_LIMIT_ENGINE_RUN))
		return;
	insight = report__insight_add(facts, "engine_run", REPORT_INSIGHT_ADVICE, "executions",
				      "mode=train", sql_gaps);
	insight->share = part;
	insight->sentence = report__insight_text(
		facts,
		"Each Engine::run has %s step%s and works for %s; beginning it takes the host %s, "
		"%s of the device's time (simulated).",
		fmt_count(steps, (int64_t)gaps.steps), gaps.steps > 1 ? "s" : "",
		fmt_ns(work, (int64_t)(gaps.cycles / gaps.hz * 1e9)),
		fmt_ns(gap, (int64_t)(gaps.gap / gaps.hz * 1e9)), fmt_percent(share, part));
	report__insight_number(insight, "steps_per_execution", gaps.steps, REPORT_COUNT);
	report__insight_number(insight, "host_ns", gaps.gap / gaps.hz * 1e9, REPORT_NS);
	report__insight_number(insight, "host_share", part, REPORT_FRACTION);
	step = 1e9 / gaps.hz / gaps.steps;
	insight->gain.step_ns[0] = (gaps.cycles + gaps.gap) * step;
	insight->gain.step_ns[1] = (gaps.cycles + gaps.gap / gaps.an_epoch) * step;
	insight->remedy = "`--compile.steps_per_execution epoch`, or another large divisor of the "
			  "epoch's steps; callbacks then are called as rarely.";
}

/* ---- time of an IPU -------------------------------------------------------------------------- */

void report__insight_stream_copies(struct insight_facts *facts)
{
	const struct insight_trace *trace = &facts->trace;
	const double copies = trace->begin + trace->middle + trace->end;
	const struct insight_time *most = report__insight_most(facts, 1, INSIGHT_HOST_IO);
	struct report_insight *insight;
	char share[FMT_SIZE], wait[FMT_SIZE];
	bool waits;

	if (!most || most->share[INSIGHT_HOST_IO] < report_insight_limit(REPORT_LIMIT_HOST_IO))
		return;
	insight = report__insight_add(facts, "stream_copies", REPORT_INSIGHT_ADVICE, "device_steps",
				      "", report__insight_sql_time);
	report__insight_subject(facts, insight, "ipu", most->ipu);
	insight->keys = report__insight_text(facts, "%s type=StreamCopy*", insight->keys);
	insight->share = most->share[INSIGHT_HOST_IO];
	waits = copies > 0 &&
		trace->begin / copies >= report_insight_limit(REPORT_LIMIT_STREAM_WAIT);
	insight->sentence = report__insight_text(
		facts,
		"Stream copies from and to the host take %s of IPU %" PRId64 "'s time "
		"(simulated)%s%s%s.",
		fmt_percent(share, insight->share), most->ipu,
		copies <= 0 ? ""
		: waits     ? "; StreamCopyBegin, which waits for the host, is "
			    : "; StreamCopyBegin, which waits for the host, is only ",
		copies > 0 ? fmt_percent(wait, trace->begin / copies) : "",
		copies > 0 ? " of that" : "");
	report__insight_number(insight, "host_io_share", insight->share, REPORT_FRACTION);
	if (copies > 0)
		report__insight_number(insight, "begin_share", trace->begin / copies,
				       REPORT_FRACTION);
	if (waits && facts->options.prefetch_depth == 1)
		insight->remedy =
			"`--infeed.prefetch_depth 3`: the host then has batches ready before the "
			"device asks.";
	else if (waits)
		insight->remedy = "A greater `--infeed.prefetch_depth`, a larger "
				  "`--compile.steps_per_execution`.";
	else if (facts->options.io_tiles > 0)
		insight->remedy = "More `--ipu.io_tiles.num_io_tiles`, fewer outfeeds (`outfeed`).";
	else if (!(facts->has & INSIGHT_PIPELINE))
		insight->remedy = "`--ipu.io_tiles.num_io_tiles 32 "
				  "--ipu.io_tiles.place_ops_on_io_tiles true` "
				  "copies while the other tiles compute.";
	else
		insight->remedy = "`--ipu.io_tiles.num_io_tiles 32 "
				  "--ipu.io_tiles.place_ops_on_io_tiles true` copies while the "
				  "other tiles compute; `--pipeline.accumulate_outfeed true` "
				  "sends results once a weight update.";
}

static double communication_share(const struct insight_time *time)
{
	return time->share[INSIGHT_EXCHANGE] + time->share[INSIGHT_SYNC];
}

void report__insight_communication(struct insight_facts *facts)
{
	const struct insight_time *most = NULL;
	struct report_insight *insight;
	char share[FMT_SIZE], exchange[FMT_SIZE], sync[FMT_SIZE];
	double part = 0;

	for (int i = 0; i < facts->time_count[1]; i++)
		if (!most || communication_share(&facts->time[1][i]) > part) {
			most = &facts->time[1][i];
			part = communication_share(most);
		}
	if (!most || part < report_insight_limit(REPORT_LIMIT_EXCHANGE))
		return;
	insight = report__insight_add(facts, "communication", REPORT_INSIGHT_ADVICE, "time_split",
				      "clock=device", report__insight_sql_time);
	report__insight_subject(facts, insight, "ipu", most->ipu);
	insight->share = part;
	insight->sentence = report__insight_text(
		facts,
		"IPU %" PRId64 " spends %s of its time on communication: %s exchanging, %s in "
		"syncs (simulated).%s",
		most->ipu, fmt_percent(share, part),
		fmt_percent(exchange, most->share[INSIGHT_EXCHANGE]),
		fmt_percent(sync, most->share[INSIGHT_SYNC]),
		most->share[INSIGHT_SYNC] > most->share[INSIGHT_EXCHANGE]
			? " Its programs are short: each ends in a sync."
			: "");
	report__insight_number(insight, "exchange_share", most->share[INSIGHT_EXCHANGE],
			       REPORT_FRACTION);
	report__insight_number(insight, "sync_share", most->share[INSIGHT_SYNC], REPORT_FRACTION);
	insight->remedy = "A larger `--data.batch_size` gives each program more to do between "
			  "syncs; `ipu-report REPORT operations --sort -exchange_cycles` names "
			  "what exchanges most.";
}

/* ---- weight updates -------------------------------------------------------------------------- */

/* Find the smallest increase of micro-batches that pays, if it can be predicted: accumulating
 * gradients costs time, too. Return false if none pays. */
static bool suggest_microbatches(struct insight_facts *facts, struct report_insight *insight)
{
	const int64_t now =
		facts->summary.gradient_accumulation > 0 ? facts->summary.gradient_accumulation : 1;
	struct report_whatif_prediction predicted = {0};
	struct report_whatif_change change = {0};
	bool known, pays = false;

	if (now > INSIGHT_MICROBATCHES_MAX)
		return false;
	for (change.microbatches = 2 * now; change.microbatches <= 8 * now;
	     change.microbatches *= 2) {
		known = report__insight_predict(facts, &change, &predicted);
		pays = known && report__insight_saved(facts, &predicted) >=
					report_insight_limit(REPORT_LIMIT_GAIN);
		if (pays || !known)
			break;
	}
	if (facts->whatif && !pays)
		return false;
	insight->remedy = report__insight_text(
		facts,
		"`--gradient_accumulation.steps_per_replica %" PRId64 "`, which must divide "
		"`compile.steps_per_execution`: fewer updates for the same samples, which the "
		"learning rate must suit.",
		change.microbatches);
	if (pays)
		report__insight_gain(facts, insight, &predicted);
	return true;
}

void report__insight_weight_update(struct insight_facts *facts)
{
	const int clock = facts->stage_count[1] > 0;
	struct report_insight *insight;
	char share[FMT_SIZE];
	double part = 0;
	const struct insight_stage *most = NULL;

	for (int i = 0; i < facts->stage_count[clock]; i++) {
		const struct insight_stage *stage = &facts->stage[clock][i];
		const double all = stage->update_ns + stage->work_ns;

		if (all > 0 && stage->update_ns / all > part) {
			most = stage;
			part = stage->update_ns / all;
		}
	}
	if (!most || part < report_insight_limit(REPORT_LIMIT_WEIGHT_UPDATE))
		return;
	if (clock)
		report__insight_whatif(facts);
	insight = report__insight_add(facts, "weight_update", REPORT_INSIGHT_ADVICE, "stage_sums",
				      "mode=train", report__insight_sql_stages);
	report__insight_subject(facts, insight, "stage", most->stage);
	insight->keys = report__insight_text(facts, "clock=%s mode=train stage=%" PRId64 " phase=U",
					     clock ? "device" : "host", most->stage);
	insight->share = part;
	insight->sentence = report__insight_text(
		facts, "Updating weights is %s of the work of stage %" PRId64 " (%s).",
		fmt_percent(share, part), most->stage, clock ? "simulated" : "on the host");
	report__insight_number(insight, "update_share", part, REPORT_FRACTION);
	if (clock ? !suggest_microbatches(facts, insight) : true)
		insight->remedy = "A larger `--data.batch_size`: fewer updates for as many "
				  "samples, which the learning rate must suit.";
}

/* ---- operations ------------------------------------------------------------------------------ */

static const char sql_operation[] =
	"SELECT operation, layer, kind, phase, stage, update_cycles,\n"
	"       tile_balance, tiles_used,\n"
	"       (SELECT method || ', split ' || split_batch || ' x ' || split_field || ' x ' ||\n"
	"          split_in || ' x ' || split_out || ' (batch, field, in, out)'\n"
	"        FROM plans p WHERE p.operation = o.operation LIMIT 1) AS plan,\n"
	"       (SELECT sum(update_cycles) FROM " REPORT_OPERATIONS ") AS all_cycles,\n"
	"       (SELECT count(*) FROM operations) AS operations\n"
	"FROM " REPORT_OPERATIONS " o ORDER BY update_cycles DESC, operation LIMIT 1";

static void describe_operation(struct insight_facts *facts, const struct report_table *table,
			       double part)
{
	struct report_insight *insight = report__insight_add(
		facts, "operation", REPORT_INSIGHT_ADVICE, "operations", "", sql_operation);
	const char *name = report__insight_word(table, 0, 0);
	const char *layer = report__insight_word(table, 0, 1);
	const char *kind = report__insight_word(table, 0, 2);
	const char *plan = report__insight_word(table, 0, 8);
	const double balance = report__insight_real(table, 0, 6);
	char share[FMT_SIZE], even[FMT_SIZE], cycles[FMT_SIZE], shown[INSIGHT_NAME];
	const bool matrix = kind && (!strcmp(kind, "matmul") || str_starts_with(kind, "conv"));

	insight->subject_kind = "operation";
	insight->subject = report__insight_text(facts, "%s", name ? name : "");
	insight->keys = report__insight_text(facts, "operation=%s", name ? name : "");
	str_shorten(shown, sizeof(shown), name ? name : "One operation");
	insight->share = part;
	insight->sentence = report__insight_text(
		facts,
		"%s%s%.100s takes %s cycles of a weight update, %s of all operations "
		"(simulated)%s%.100s%s%s%s.",
		shown, layer ? " of layer " : "", layer ? layer : "",
		fmt_count(cycles, report__insight_int(table, 0, 5)), fmt_percent(share, part),
		plan ? "; planned as " : "", plan ? plan : "",
		isnan(balance) ? "" : "; its tiles are busy ",
		isnan(balance) ? "" : fmt_percent(even, balance),
		isnan(balance) ? "" : " of its time on average");
	report__insight_number(insight, "cycles", report__insight_real(table, 0, 5), REPORT_CYCLES);
	report__insight_number(insight, "share", part, REPORT_FRACTION);
	report__insight_number(insight, "tile_balance", balance, REPORT_FRACTION);
	insight->remedy =
		matrix ? "`--ipu.matmuls.partialsType half` (of convolutions "
			 "`--ipu.convolutions.partialsType`); `--compile.dtype_policy "
			 "mixed_float16`; a greater availableMemoryProportion beside it."
		       : "Another layer or loss that does the same; `--compile.dtype_policy "
			 "mixed_float16`.";
}

void report__insight_operation(struct insight_facts *facts)
{
	struct report_table table;
	double part = 0;

	if (!report__insight_rows(facts, &table, sql_operation))
		return;
	if (report__insight_int(&table, 0, 10) > 2)
		part = report__insight_real(&table, 0, 5) / report__insight_real(&table, 0, 9);
	if (part >= report_insight_limit(REPORT_LIMIT_OPERATION))
		describe_operation(facts, &table, part);
	report_table_free(&table);
}

void report__insight_tile_balance(struct insight_facts *facts)
{
	const struct insight_trace *trace = &facts->trace;
	const double balance = trace->compute > 0 ? trace->balanced / trace->compute : NAN;
	struct report_insight *insight;
	char text[FMT_SIZE], share[FMT_SIZE];

	if (!(balance < report_insight_limit(REPORT_LIMIT_BALANCE)))
		return;
	insight = report__insight_add(facts, "tile_balance", REPORT_INSIGHT_ADVICE, "operations",
				      "", report__insight_sql_trace);
	insight->share = (1 - balance) * trace->compute / trace->all;
	insight->sentence = report__insight_text(
		facts,
		"Tiles that have work in a compute set are busy %s of its time on average: the "
		"rest is waiting for the slowest tile, %s of all IPUs' time (simulated).",
		fmt_percent(text, balance), fmt_percent(share, insight->share));
	report__insight_number(insight, "active_tile_balance", balance, REPORT_FRACTION);
	report__insight_number(insight, "time_share", insight->share, REPORT_FRACTION);
	insight->remedy = "`ipu-report REPORT operations --where 'tile_balance < 0.5'` names them. "
			  "A larger `--data.batch_size`, layers of sizes that divide evenly; small "
			  "models leave most tiles without work.";
}

void report__insight_no_trace(struct insight_facts *facts)
{
	struct report_insight *insight;

	if (facts->has & INSIGHT_TRACE)
		return;
	insight = report__insight_add(
		facts, "no_trace", REPORT_INSIGHT_NOTE, "executions", "",
		"SELECT mode, sum(traced) AS traced, sum(untraced) AS untraced\n"
		"FROM execution_sums GROUP BY mode");
	insight->sentence = "No execution of the training has its device steps recorded: nothing "
			    "is said of single programs, nor of other splits and schedules.";
	insight->remedy = "autoReport.executionProfileProgramRunCount of POPLAR_ENGINE_OPTIONS, "
			  "which is 2 by default.";
}
