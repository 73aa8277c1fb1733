/*
 * What the detectors of insights share: thresholds, the cells of queries, the facts on options,
 * stages, shares of time and the trace, what-if, and adding an insight with its gain.
 *
 * Tables that grow with the run are read through sums, or only their first rows: a training repeats
 * the same work. Threading: none. Ownership: all memory belongs to the insights' arena.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/minmax.h"
#include "reports/insights/report_insights_internal.h"

/* ---- thresholds ------------------------------------------------------------------------------ */

static const double limits[] = {
#define LIMIT_VALUE(id, name, value, why) (value),
	REPORT_INSIGHT_LIMIT_MAP(LIMIT_VALUE)
#undef LIMIT_VALUE
};

double report_insight_limit(enum report_insight_limit limit)
{
	assert((unsigned)limit < REPORT_INSIGHT_LIMITS);
	return limits[limit];
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void lacks_memory(struct insight_facts *facts)
{
	if (!err_stuck(facts->err))
		err_nomem(facts->err);
}

void *report__insight_alloc(struct insight_facts *facts, int64_t count, size_t size)
{
	void *items = err_stuck(facts->err)
			      ? NULL
			      : arena_alloc(&facts->out->arena, (size_t)max(count, 1), size);

	if (!items)
		lacks_memory(facts);
	return items;
}

const char *report__insight_text(struct insight_facts *facts, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = arena_vprintf(&facts->out->arena, format, args);
	va_end(args);
	if (!text)
		lacks_memory(facts);
	return text ? text : "";
}

/* ---- rows and cells -------------------------------------------------------------------------- */

bool report__insight_rows(struct insight_facts *facts, struct report_table *table, const char *sql)
{
	*table = (struct report_table){0};
	if (err_stuck(facts->err) ||
	    report_table_query(table, facts->db, "insights", sql, 0, facts->err) != ST_OK)
		return false;
	if (table->row_count == 0)
		report_table_free(table);
	return table->row_count > 0;
}

static const struct report_cell *cell_at(const struct report_table *table, int64_t row, int column)
{
	return &table->cells[row * table->column_count + column];
}

double report__insight_real(const struct report_table *table, int64_t row, int column)
{
	const struct report_cell *cell = cell_at(table, row, column);

	if (cell->type == PROF_INT)
		return (double)cell->integer;
	return cell->type == PROF_REAL ? cell->real : NAN;
}

int64_t report__insight_int(const struct report_table *table, int64_t row, int column)
{
	const struct report_cell *cell = cell_at(table, row, column);

	return cell->type == PROF_INT ? cell->integer : IPS_NULL;
}

const char *report__insight_word(const struct report_table *table, int64_t row, int column)
{
	const struct report_cell *cell = cell_at(table, row, column);

	return cell->type == PROF_TEXT ? cell->text : NULL;
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* By stage and clock. W and R count as work, like F and B. */
const char report__insight_sql_stages[] =
	"SELECT clock, stage, min(ipu) AS ipu,\n"
	"       sum(total_ns) FILTER (WHERE phase <> 'U') AS work_ns,\n"
	"       sum(total_ns) FILTER (WHERE phase = 'U') AS update_ns,\n"
	"       sum(cpu_ns) AS cpu_ns, sum(count) FILTER (WHERE phase = 'F') AS microbatches\n"
	"FROM stage_sums WHERE mode = 'train' AND stage IS NOT NULL\n"
	"GROUP BY clock, stage ORDER BY clock, stage";

const char report__insight_sql_bubbles[] =
	"SELECT clock, schedule, stages, microbatches, sum(runs) AS runs,\n"
	"       1.0 * sum(total_ramp_up_ns + total_ramp_down_ns) / nullif(sum(total_ns), 0)\n"
	"         AS ramp_share, 1 - 1.0 * sum(total_busy_ns) / nullif(sum(total_ns), 0)\n"
	"         AS idle_share\n"
	"FROM bubble_sums WHERE stages IS NOT 1 AND mode = 'train' GROUP BY clock, schedule, "
	"stages, microbatches";

/* The first executions of the training represent the others. */
const char report__insight_sql_time[] =
	"SELECT clock, ipu, sum(compute_ns) AS compute_ns, sum(exchange_ns) AS exchange_ns,\n"
	"       sum(sync_ns) AS sync_ns, sum(host_io_ns) AS host_io_ns, sum(idle_ns) AS idle_ns\n"
	"FROM (SELECT * FROM time_split LIMIT 20000)\n"
	"WHERE execution IN (SELECT execution FROM (SELECT execution, mode FROM executions\n"
	"                                           LIMIT 5000) WHERE mode = 'train')\n"
	"GROUP BY clock, ipu ORDER BY clock, ipu";

/* Templates weighted by the number of runs; device_steps would expand each run. */
const char report__insight_sql_trace[] =
	"SELECT t.value AS type, sum(d.cycles * r.runs) AS cycles,\n"
	"       sum(CASE WHEN d.active_tile_balance IS NOT NULL\n"
	"           THEN d.cycles * r.runs END) AS balance_known_cycles,\n"
	"       sum(d.cycles * r.runs * d.active_tile_balance) AS balanced_cycles\n"
	"FROM (SELECT trace_id, count(*) AS runs FROM (SELECT trace_id, mode\n"
	"        FROM device_run_rows LIMIT 50000) WHERE mode = 'train' GROUP BY trace_id) r\n"
	"JOIN device_step_rows d ON d.trace_id = r.trace_id\n"
	"JOIN strings t ON t.string_id = d.type_id GROUP BY t.value";

static const char sql_options[] = "SELECT json_extract(value, '$.compile.steps_per_execution'),\n"
				  "       json_extract(value, '$.infeed.prefetch_depth'),\n"
				  "       json_extract(value, '$.ipu.io_tiles.num_io_tiles'),\n"
				  "       json_extract(value, '$.ipu.allow_recompute'),\n"
				  "       json_type(value, '$.fit') IS NOT 'null' AS trains,\n"
				  "       EXISTS (SELECT * FROM meta WHERE key = 'decoding')\n"
				  "FROM meta WHERE key = 'run' AND json_valid(value)";

static double or_zero(double value)
{
	return isnan(value) ? 0 : value;
}

static int row_clock(const struct report_table *table, int64_t row)
{
	const char *clock = report__insight_word(table, row, 0);

	return clock && !strcmp(clock, "device");
}

static void read_stages(struct insight_facts *facts)
{
	struct report_table table;

	if (!report__insight_rows(facts, &table, report__insight_sql_stages))
		return;
	for (int clock = 0; clock < 2; clock++)
		facts->stage[clock] =
			report__insight_alloc(facts, table.row_count, sizeof(*facts->stage[clock]));
	for (int64_t row = 0; row < table.row_count && !err_stuck(facts->err); row++) {
		const int clock = row_clock(&table, row);

		facts->stage[clock][facts->stage_count[clock]++] = (struct insight_stage){
			.stage = report__insight_int(&table, row, 1),
			.ipu = report__insight_int(&table, row, 2),
			.work_ns = or_zero(report__insight_real(&table, row, 3)),
			.update_ns = or_zero(report__insight_real(&table, row, 4)),
			.cpu_ns = report__insight_real(&table, row, 5),
			.microbatches = report__insight_int(&table, row, 6),
		};
	}
	report_table_free(&table);
}

static void read_times(struct insight_facts *facts)
{
	struct report_table table;

	if (!report__insight_rows(facts, &table, report__insight_sql_time))
		return;
	for (int clock = 0; clock < 2; clock++)
		facts->time[clock] =
			report__insight_alloc(facts, table.row_count, sizeof(*facts->time[clock]));
	for (int64_t row = 0; row < table.row_count && !err_stuck(facts->err); row++) {
		struct insight_time time = {.ipu = report__insight_int(&table, row, 1)};
		const int clock = row_clock(&table, row);
		double total = 0;

		for (int i = 0; i < INSIGHT_PARTS; i++) {
			time.share[i] = or_zero(report__insight_real(&table, row, 2 + i));
			total += time.share[i];
		}
		if (total <= 0)
			continue;
		for (int i = 0; i < INSIGHT_PARTS; i++)
			time.share[i] /= total;
		facts->time[clock][facts->time_count[clock]++] = time;
	}
	report_table_free(&table);
}

static void read_trace(struct insight_facts *facts)
{
	struct insight_trace *trace = &facts->trace;
	struct report_table table;

	report__insight_rows(facts, &table, report__insight_sql_trace);
	for (int64_t row = 0; row < table.row_count; row++) {
		const char *type = report__insight_word(&table, row, 0);
		const double cycles = or_zero(report__insight_real(&table, row, 1));

		if (!type)
			continue;
		trace->all += cycles;
		if (!strcmp(type, "StreamCopyBegin"))
			trace->begin += cycles;
		else if (!strcmp(type, "StreamCopyMid"))
			trace->middle += cycles;
		else if (!strcmp(type, "StreamCopyEnd"))
			trace->end += cycles;
		else if (!strcmp(type, "OnTileExecute")) {
			trace->compute += or_zero(report__insight_real(&table, row, 2));
			trace->balanced += or_zero(report__insight_real(&table, row, 3));
		}
	}
	report_table_free(&table);
}

static void read_options(struct insight_facts *facts)
{
	struct insight_options *options = &facts->options;
	struct report_table table;
	const char *word;

	options->steps_per_execution = IPS_NULL;
	options->prefetch_depth = IPS_NULL;
	if (!report__insight_rows(facts, &table, sql_options))
		return;
	options->known = true;
	word = report__insight_word(&table, 0, 0);
	options->steps_per_execution =
		word && !strcmp(word, "epoch") ? 0 : report__insight_int(&table, 0, 0);
	if (options->steps_per_execution == IPS_NULL)
		options->steps_per_execution = 1; /* the default */
	options->prefetch_depth = report__insight_int(&table, 0, 1);
	options->io_tiles = report__insight_int(&table, 0, 2);
	options->recompute = report__insight_int(&table, 0, 3) == 1;
	options->trains = report__insight_int(&table, 0, 4) == 1;
	options->decodes = report__insight_int(&table, 0, 5) == 1;
	report_table_free(&table);
}

void report__insight_read(struct insight_facts *facts)
{
	read_options(facts);
	read_stages(facts);
	read_times(facts);
	read_trace(facts);
}

const struct insight_time *report__insight_most(const struct insight_facts *facts, int clock,
						enum insight_part part)
{
	const struct insight_time *most = NULL;

	for (int i = 0; i < facts->time_count[clock]; i++)
		if (!most || facts->time[clock][i].share[part] > most->share[part])
			most = &facts->time[clock][i];
	return most;
}

const struct insight_stage *report__insight_slowest(const struct insight_facts *facts, int clock,
						    double *all_ns)
{
	const struct insight_stage *most = NULL;

	*all_ns = 0;
	for (int i = 0; i < facts->stage_count[clock]; i++) {
		const struct insight_stage *stage = &facts->stage[clock][i];

		*all_ns += stage->work_ns;
		if (!most || stage->work_ns > most->work_ns)
			most = stage;
	}
	return most;
}

/* ---- what-if --------------------------------------------------------------------------------- */

void report__insight_whatif(struct insight_facts *facts)
{
	if (facts->whatif_opened || err_stuck(facts->err))
		return;
	facts->whatif_opened = true;
	/* A run that cannot be planned again is no error. */
	if (report_whatif_open(&facts->whatif, facts->db, REPORT_WHATIF_DEVICE, NULL) == ST_NOMEM)
		err_nomem(facts->err);
}

bool report__insight_predict(struct insight_facts *facts, const struct report_whatif_change *change,
			     struct report_whatif_prediction *out)
{
	const struct report_whatif_prediction *measured;
	enum status status;

	if (!facts->whatif || err_stuck(facts->err))
		return false;
	status = report_whatif_predict(out, facts->whatif, change, NULL);
	if (status == ST_NOMEM)
		err_nomem(facts->err);
	if (status != ST_OK)
		return false;
	measured = report_whatif_measured(facts->whatif);
	return out->memory_fits && out->step_ns > 0 && measured->step_ns > 0;
}

/* ---- adding an insight ----------------------------------------------------------------------- */

struct report_insight *report__insight_add(struct insight_facts *facts, const char *id,
					   enum report_insight_severity severity, const char *view,
					   const char *keys, const char *sql)
{
	struct report_insights *out = facts->out;
	struct report_insight *insight = &facts->spare;

	if (out->count == out->capacity) {
		struct report_insight *grown =
			report__insight_alloc(facts, 2 * out->capacity + 32, sizeof(*grown));

		if (grown && out->count > 0)
			memcpy(grown, out->items, (size_t)out->count * sizeof(*grown));
		if (grown) {
			out->items = grown;
			out->capacity = 2 * out->capacity + 32;
		}
	}
	if (out->count < out->capacity)
		insight = &out->items[out->count++];
	*insight = (struct report_insight){
		.id = id,
		.severity = severity,
		.subject_kind = "run",
		.gain = {.step_ns = {NAN, NAN}, .idle_fraction = {NAN, NAN}, .bytes = {NAN, NAN}},
		.view = view,
		.keys = keys,
		.sql = sql};
	return insight;
}

void report__insight_subject(struct insight_facts *facts, struct report_insight *insight,
			     const char *kind, int64_t number)
{
	if (number == IPS_NULL)
		return;
	insight->subject_kind = kind;
	insight->subject = report__insight_text(facts, "%" PRId64, number);
	insight->keys = report__insight_text(facts, "%s%s%s=%" PRId64, insight->keys,
					     *insight->keys ? " " : "", kind, number);
}

void report__insight_number(struct report_insight *insight, const char *name, double value,
			    enum report_quantity quantity)
{
	if (insight->number_count < REPORT_INSIGHT_NUMBERS && isfinite(value))
		insight->numbers[insight->number_count++] =
			(struct report_insight_number){name, value, quantity};
}

double report__insight_saved(const struct insight_facts *facts,
			     const struct report_whatif_prediction *predicted)
{
	return 1 - predicted->step_ns / report_whatif_measured(facts->whatif)->step_ns;
}

void report__insight_gain(const struct insight_facts *facts, struct report_insight *insight,
			  const struct report_whatif_prediction *predicted)
{
	const struct report_whatif_prediction *measured = report_whatif_measured(facts->whatif);
	const struct report_whatif_prediction *both[2] = {measured, predicted};

	for (int i = 0; i < 2; i++) {
		insight->gain.step_ns[i] = both[i]->step_ns;
		if (measured->pipelined && predicted->pipelined)
			insight->gain.idle_fraction[i] = both[i]->idle_fraction;
	}
}
