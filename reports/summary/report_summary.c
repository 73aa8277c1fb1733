/*
 * Fill the summary of a run with one query per part. report_sums.c reads the sums over rows whose
 * number grows with the run.
 *
 * Threading: none. Ownership: the summary's arena holds its texts and arrays.
 */
#include "reports/summary/report_summary.h"
#include "reports/summary/report_sums.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "reports/named/report_operations.h"
#include "reports/table/report_internal.h"
#include "reports/report_registry.h"

/* ---- queries --------------------------------------------------------------------------------- */

/* Every step returns at once after an earlier failure, which is in @err. */
typedef void (*summary_row_fn)(struct report_summary *out, const struct prof_query *query,
			       struct err *err);

/* Call @read for each row of @sql. */
static void for_each_row(struct report_summary *out, struct prof_db *db, const char *sql,
			 summary_row_fn read, struct err *err)
{
	struct prof_query *query;

	if (err_stuck(err))
		return;
	prof_query_open(&query, db, sql, err);
	while (prof_query_next(query, &err->status, err))
		read(out, query, err);
	prof_query_close(query);
}

/* Copy a text into the summary's arena; NULL: there is none. */
static const char *copy_text(struct report_summary *out, const char *text, struct err *err)
{
	const char *copy = text ? arena_strdup(&out->arena, text) : NULL;

	if (text && !copy)
		err_nomem(err);
	return copy;
}

static int64_t column_or_zero(const struct prof_query *query, int column)
{
	return prof_column_type(query, column) == PROF_NULL ? 0 : prof_column_int(query, column);
}

/* ---- meta ------------------------------------------------------------------------------------ */

/* Facts with a field in the summary; all others are listed as options. */
static const struct {
	const char *key;
	size_t text;   /* offset of a text, or 0 */
	size_t number; /* offset of a number, or 0 */
} summary_facts[] = {
	{"command", offsetof(struct report_summary, command), 0},
	{"model", offsetof(struct report_summary, model), 0},
	{"schedule", offsetof(struct report_summary, schedule), 0},
	{"target", offsetof(struct report_summary, target), 0},
	{"cost_model", offsetof(struct report_summary, cost_model), 0},
	{"dataset", offsetof(struct report_summary, dataset), 0},
	{"ipus", 0, offsetof(struct report_summary, ipus)},
	{"replicas", 0, offsetof(struct report_summary, replicas)},
	{"continues", offsetof(struct report_summary, continues), 0},
	{"part", 0, offsetof(struct report_summary, part)},
	{"parts", offsetof(struct report_summary, parts), 0},
	{"continues_after_step", 0, offsetof(struct report_summary, after_step)},
	{"ranks", 0, offsetof(struct report_summary, ranks)},
	{"stages", 0, offsetof(struct report_summary, stages)},
	{"batch_size", 0, offsetof(struct report_summary, batch_size)},
	{"gradient_accumulation", 0, offsetof(struct report_summary, gradient_accumulation)},
	{"host_threads", 0, offsetof(struct report_summary, host_threads)},
	{"start_epoch_ns", 0, offsetof(struct report_summary, start_epoch_ns)},
	{"architecture", 0, 0}, /* this and the next three are implied by the target's name */
	{"tiles_per_ipu", 0, 0},
	{"bytes_per_tile", 0, 0},
	{"sync_cycles", 0, 0},
	{"peak_flops_per_cycle", 0, 0}, /* part of report_arithmetic */
	{"state", 0, 0},
	{"failure", 0, 0},
	{"gaps", 0, 0},
	{"run", 0, 0}, /* the whole run file: app.json and the view show it */
};

static void apply_fact(struct report_summary *out, const char *key, const char *value,
		       struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(summary_facts); i++) {
		long long number;

		if (strcmp(summary_facts[i].key, key) != 0)
			continue;
		if (summary_facts[i].text) {
			const char *text = copy_text(out, value, err);

			memcpy((char *)out + summary_facts[i].text, &text, sizeof(text));
		}
		if (summary_facts[i].number && str_to_int(value, &number)) {
			int64_t whole = number;

			memcpy((char *)out + summary_facts[i].number, &whole, sizeof(whole));
		}
		return;
	}
	if (!strcmp(key, "oversubscribed"))
		out->oversubscribed = !strcmp(value, "1") || !strcmp(value, "true");
	/* A merge stores many facts per rank; they are not listed. */
	else if (!str_starts_with(key, "merge."))
		out->options[out->option_count++] =
			(struct report_fact){copy_text(out, key, err), copy_text(out, value, err)};
}

static void read_meta(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct report_table table;

	if (err_stuck(err) ||
	    report_table_query(&table, db, "meta", "SELECT key, value FROM meta ORDER BY key", 0,
			       err) != ST_OK)
		return;
	out->options = arena_alloc(&out->arena, (size_t)table.row_count + 1, sizeof(*out->options));
	if (!out->options)
		err_nomem(err);
	for (int64_t row = 0; row < table.row_count && out->options; row++) {
		const struct report_cell *cells = table.cells + row * table.column_count;

		/* Another program may have stored any type: list text values only. */
		if (cells[0].type == PROF_TEXT && cells[1].type == PROF_TEXT)
			apply_fact(out, cells[0].text, cells[1].text, err);
	}
	report_table_free(&table);
}

static void measure_file(struct report_summary *out)
{
	static const char *const endings[] = {"", "-wal"};
	const char *inside = fs_is_dir(out->path) ? "/profile.db" : "";
	char path[FS_PATH_SIZE];
	struct stat info;

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (fs_path(path, "%s%s%s", out->path, inside, endings[i]) && !stat(path, &info))
			out->database_bytes += info.st_size;
}

/* ---- training -------------------------------------------------------------------------------- */

static const char sql_executions[] =
	"SELECT sum(executions), sum(CASE WHEN mode = 'train' THEN steps END), "
	"sum(CASE WHEN mode = 'train' THEN updates END), "
	"count(DISTINCT CASE WHEN mode = 'train' THEN epoch END), max(last_end_ns), "
	"sum(traced), sum(untraced) FROM execution_sums";

static void read_executions(struct report_summary *out, const struct prof_query *query,
			    struct err *err)
{
	(void)err;
	out->executions = column_or_zero(query, 0);
	out->steps = column_or_zero(query, 1);
	out->weight_updates = column_or_zero(query, 2);
	out->epochs = column_or_zero(query, 3);
	out->duration_ns = column_or_zero(query, 4);
	out->traced = column_or_zero(query, 5);
	out->untraced = column_or_zero(query, 6);
}

/* FLOP of one replica's weight update over the mean time from one update's start to the next. That
 * time includes waiting. */
static const char sql_arithmetic[] =
	"SELECT flops * updates / cycles * " REPORT_CLOCK_HZ ",\n"
	"       " REPORT_PEAK_FLOP_CYCLE " * " REPORT_CLOCK_HZ "\n"
	"FROM (SELECT 1.0 * sum(update_flops) AS flops FROM " REPORT_OPERATIONS "),\n"
	"     (SELECT sum(updates) AS updates, nullif(sum(total_cycles), 0) AS cycles\n"
	"      FROM execution_sums WHERE mode = 'train')";

static void read_arithmetic(struct report_summary *out, const struct prof_query *query,
			    struct err *err)
{
	(void)err;
	out->arithmetic.flops_s = prof_column_real(query, 0) * (double)max(out->replicas, 1);
	out->arithmetic.peak_flops_s = prof_column_real(query, 1) * (double)max(out->ipus, 1);
}

/* Last value of a metric in a mode: the last epoch's per-epoch value if recorded, otherwise its
 * last per-step value. */
static void read_metric(struct prof_db *db, const char *mode, const char *name, double *out,
			bool *nan, struct err *err)
{
	static const char sql[] =
		"SELECT last_value FROM metric_sums WHERE mode = :mode AND name LIKE :name "
		"ORDER BY last_epoch DESC, per_step, last_execution IS NULL DESC, "
		"last_time_ns DESC, name LIMIT 1";
	struct prof_query *query;

	if (err_stuck(err))
		return;
	prof_query_open(&query, db, sql, err);
	prof_query_text(query, ":mode", mode);
	prof_query_text(query, ":name", name);
	if (prof_query_next(query, &err->status, err)) {
		*out = prof_column_real(query, 0);
		*nan = isnan(*out);
	}
	prof_query_close(query);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static const char sql_stage_layers[] =
	"SELECT stage, layer FROM layers WHERE stage IS NOT NULL GROUP BY stage, layer "
	"ORDER BY stage, min(position)";

static struct report_stage *find_stage(struct report_summary *out, int64_t stage)
{
	for (int64_t i = 0; i < out->stages; i++)
		if (out->stage[i].stage == stage)
			return &out->stage[i];
	return NULL;
}

static void append_stage_layer(struct report_summary *out, const struct prof_query *query,
			       struct err *err)
{
	struct report_stage *stage = find_stage(out, prof_column_int(query, 0));
	const char *layer = prof_column_text(query, 1);

	if (!stage || !layer)
		return;
	stage->layers = stage->layers ? arena_printf(&out->arena, "%s, %s", stage->layers, layer)
				      : arena_strdup(&out->arena, layer);
	if (!stage->layers)
		err_nomem(err);
}

static const char sql_stages_of_layers[] =
	"SELECT DISTINCT stage FROM layers WHERE stage IS NOT NULL";

/* Read all stages that ran or have layers. */
static void read_stages(struct report_summary *out, struct prof_db *db, struct report_sums *sums,
			struct err *err)
{
	struct prof_query *query;

	if (err_stuck(err))
		return;
	prof_query_open(&query, db, sql_stages_of_layers, err);
	while (prof_query_next(query, &err->status, err))
		if (!report_sums_stage(sums, prof_column_int(query, 0)))
			err_nomem(err);
	prof_query_close(query);
	out->stage = arena_alloc(&out->arena, sums->count + 1, sizeof(*out->stage));
	if (!out->stage && !err_stuck(err))
		err_nomem(err);
	if (err_stuck(err))
		return;
	out->stages = (int64_t)sums->count;
	for (size_t i = 0; i < sums->count; i++) {
		const struct report_stage_sum *sum = &sums->stage[i];
		struct report_stage *stage = &out->stage[i];

		*stage = (struct report_stage){
			.stage = sum->stage, .ipu = sum->ipu, .count = sum->count};
		for (int clock = 0; clock < 2; clock++) {
			stage->forward_ns[clock] = sum->forward_ns[clock];
			stage->backward_ns[clock] = sum->backward_ns[clock];
			stage->update_ns[clock] = sum->update_ns[clock];
		}
	}
	for_each_row(out, db, sql_stage_layers, append_stage_layer, err);
}

/* ---- the bubble ------------------------------------------------------------------------------ */

static void compute_bubble(struct report_summary *out, const struct report_bubble_sum *sum,
			   struct report_bubble_mean *bubble)
{
	double mean[REPORT_BUBBLE_MEANS], share[REPORT_BUBBLE_TIMES], all = 0;

	*bubble = (struct report_bubble_mean){0};
	if (sum->runs == 0)
		return;
	for (int i = 0; i < REPORT_BUBBLE_MEANS; i++)
		mean[i] = sum->known[i] ? sum->mean[i] / (double)sum->known[i] : NAN;
	for (int i = 0; i < REPORT_BUBBLE_TIMES; i++) {
		share[i] = sum->total_ns ? (double)sum->time_ns[i] / (double)sum->total_ns : NAN;
		all += share[i];
	}
	*bubble = (struct report_bubble_mean){
		.known = true,
		.runs = sum->runs,
		.idle_fraction = sum->total_ns ? all : mean[0],
		.bubble_rate = mean[1],
		.bubble_over_ideal = mean[2],
		.theory_idle_fraction = mean[3],
		.theory_bubble_rate = mean[4],
		.theory_bubble_over_ideal = mean[5],
		.ramp_up = share[0],
		.ramp_down = share[1],
		.imbalance = share[2],
		.communication = share[3],
	};
	if (sum->oversubscribed)
		out->oversubscribed = true;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Rows are numbered from 1 and never deleted, so the last number is the count. */
static const char sql_recording[] =
	"SELECT (SELECT max(span_id) FROM span_rows), "
	"sum(events), sum(dropped), sum(record_ns_estimate), sum(write_ns), max(time_ns), "
	"(SELECT count(*) FROM tensors), (SELECT max(row_id) FROM tensor_stat_rows), "
	"(SELECT max(row_id) FROM health_rows), "
	"(SELECT max(greatest) FROM counter_levels WHERE level = 12 AND track_id IN (SELECT "
	"track_id FROM track_rows) AND site_id IN (SELECT site_id FROM sites s JOIN strings n ON "
	"n.string_id = s.name_id WHERE n.value = '" IPS_RESIDENT_BYTES "')), "
	"(SELECT CAST(value AS INTEGER) FROM meta_facts WHERE key = 'tracks_refused') "
	"FROM overhead_sums";

static void read_recording(struct report_summary *out, const struct prof_query *query,
			   struct err *err)
{
	int64_t last = column_or_zero(query, 5);

	(void)err;
	out->spans = column_or_zero(query, 0);
	out->events = column_or_zero(query, 1);
	out->dropped = column_or_zero(query, 2);
	out->record_ns = column_or_zero(query, 3);
	out->write_ns = column_or_zero(query, 4);
	out->tensors = column_or_zero(query, 6);
	out->tensor_rows = column_or_zero(query, 7);
	out->health_hits = column_or_zero(query, 8);
	out->peak_resident_bytes = prof_column_int(query, 9);
	out->tracks_refused = column_or_zero(query, 10);
	out->last_commit_ns = last;
	/* A killed run has no end time; use its last commit. */
	if (last > out->duration_ns)
		out->duration_ns = last;
	/* Exclude write_ns: the writer thread runs concurrently with the run. */
	out->overhead_fraction =
		out->duration_ns > 0 ? (double)out->record_ns / (double)out->duration_ns : NAN;
}

/* For an imported trace: its duration and its events, not those of the import. */
static const char sql_trace[] =
	"SELECT max(CAST(value AS INTEGER)) FILTER (WHERE key GLOB '*trace_duration_ns'), "
	"sum(CAST(value AS INTEGER)) FILTER (WHERE key GLOB '*trace_events') FROM meta WHERE key "
	"IN "
	"('trace_duration_ns', 'trace_events') OR key GLOB 'merge.*.trace_duration_ns' OR "
	"key GLOB 'merge.*.trace_events'";

static void read_trace(struct report_summary *out, const struct prof_query *query, struct err *err)
{
	(void)err;
	if (prof_column_int(query, 0) != IPS_NULL)
		out->duration_ns = prof_column_int(query, 0);
	if (prof_column_int(query, 1) != IPS_NULL)
		out->events = prof_column_int(query, 1);
	out->record_ns = out->write_ns = IPS_NULL;
	out->overhead_fraction = NAN;
}

/* ---- the summary ----------------------------------------------------------------------------- */

/* Derive counts that meta lacks from what was recorded. Meta may count more: stages that never
 * ran. */
static void derive_counts(struct report_summary *out)
{
	if (out->ipus != IPS_NULL && out->replicas != IPS_NULL)
		return;
	if (out->ipus == IPS_NULL) {
		out->ipus = 0;
		for (int64_t i = 0; i < out->stages; i++)
			if (out->stage[i].ipu != IPS_NULL && out->stage[i].ipu >= out->ipus)
				out->ipus = sat_add(out->stage[i].ipu, 1);
	}
	if (out->replicas == IPS_NULL)
		out->replicas = out->stages ? 1 : 0;
}

static void fill_summary(struct report_summary *out, struct prof_db *db, struct report_sums *sums,
			 struct err *err)
{
	bool nan; /* an accuracy that is NaN is unknown */

	report__summary_state(out, db, err);
	read_meta(out, db, err);
	for_each_row(out, db, sql_executions, read_executions, err);
	for_each_row(out, db, sql_arithmetic, read_arithmetic, err);
	read_metric(db, "train", "loss", &out->loss, &out->loss_nan, err);
	read_metric(db, "train", "%accuracy", &out->accuracy, &nan, err);
	read_metric(db, "evaluate", "loss", &out->evaluate_loss, &out->evaluate_loss_nan, err);
	read_metric(db, "evaluate", "%accuracy", &out->evaluate_accuracy, &nan, err);
	if (!err_stuck(err))
		report_sums_read(sums, db, err);
	read_stages(out, db, sums, err);
	for_each_row(out, db, sql_recording, read_recording, err);
	if (out->origin == PROF_FROM_TRACE)
		for_each_row(out, db, sql_trace, read_trace, err);
	report__summary_health(out, db, err);
	if (err_stuck(err))
		return;
	for (int clock = 0; clock < 2; clock++)
		compute_bubble(out, &sums->bubble[clock], &out->bubble[clock]);
	measure_file(out);
	derive_counts(out);
	report__summary_missing(out, db, err);
}

enum status report_summary_get(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct report_sums sums = {0};
	struct err own;

	*out = (struct report_summary){
		.origin = prof_db_origin(db),
		.ipus = IPS_NULL,
		.replicas = IPS_NULL,
		.batch_size = IPS_NULL,
		.gradient_accumulation = IPS_NULL,
		.host_threads = IPS_NULL,
		.start_epoch_ns = IPS_NULL,
		.part = IPS_NULL,
		.after_step = IPS_NULL,
		.ranks = IPS_NULL,
		.loss = NAN,
		.accuracy = NAN,
		.evaluate_loss = NAN,
		.evaluate_accuracy = NAN,
		.overhead_fraction = NAN,
		.arithmetic = {NAN, NAN},
	};
	err = err_start(err, &own);
	if (arena_init(&out->arena, 0)) {
		*out = (struct report_summary){0};
		return err_nomem(err);
	}
	fill_summary(out, db, &sums, err);
	report_sums_free(&sums);
	if (err_stuck(err))
		report_summary_free(out);
	return err->status;
}

void report_summary_free(struct report_summary *summary)
{
	arena_fini(&summary->arena);
	*summary = (struct report_summary){0};
}

enum status report_run_summary(const struct report_entry *entry,
			       const struct report_request *request, struct err *err)
{
	struct report_summary summary;
	struct report_table table = {0};
	enum status status = report_summary_get(&summary, request->db, err);

	(void)entry;
	if (status != ST_OK)
		return status;
	if (request->render.format == REPORT_AS_TEXT) {
		status = report_summary_print(&summary, request->render.width, request->out, err);
	} else {
		status = report_summary_table(&table, &summary, err);
		if (status == ST_OK)
			status = report_render(&table, &request->render, request->out, err);
		report_table_free(&table);
	}
	report_summary_free(&summary);
	return status;
}
