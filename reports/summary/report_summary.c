/*
 * Fill the summary of a run with one query per part. report_sums.c reads the sums over rows whose
 * number grows with the run.
 *
 * Threading: none. Ownership: the summary's arena holds its texts and arrays.
 */
#include "reports/summary/report_summary.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "reports/named/report_named.h"
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
			const char *text = report__copy(&out->arena, value, err);

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
		out->options[out->option_count++] = (struct report_fact){
			report__copy(&out->arena, key, err), report__copy(&out->arena, value, err)};
}

static const char sql_meta[] = "SELECT key, value, count(*) OVER () FROM meta ORDER BY key";

static void read_meta(struct report_summary *out, const struct prof_query *query, struct err *err)
{
	if (!out->options)
		out->options = arena_alloc(&out->arena, (size_t)prof_column_int(query, 2),
					   sizeof(*out->options));
	if (!out->options) {
		err_nomem(err);
		return;
	}
	/* Another program may have stored any type: list text values only. */
	if (prof_column_type(query, 0) == PROF_TEXT && prof_column_type(query, 1) == PROF_TEXT)
		apply_fact(out, prof_column_text(query, 0), prof_column_text(query, 1), err);
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

static void append_stage_layer(struct report_summary *out, const struct prof_query *query,
			       struct err *err)
{
	struct report_stage *stage = NULL;
	const char *layer = prof_column_text(query, 1);

	for (int64_t i = 0; i < out->stages && !stage; i++)
		if (out->stage[i].stage == prof_column_int(query, 0))
			stage = &out->stage[i];
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
	for (size_t i = 0; i < sums->count; i++)
		out->stage[i] = sums->stage[i];
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
	"(SELECT CAST(value AS INTEGER) FROM meta_facts WHERE key = 'tracks_refused'), "
	"(SELECT CAST(value AS INTEGER) FROM meta_facts WHERE key = 'names_cut') "
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
	out->names_cut = column_or_zero(query, 11);
	out->last_commit_ns = last;
	/* A killed run has no end time; use its last commit. */
	out->duration_ns = max(out->duration_ns, last);
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

/* ---- health ---------------------------------------------------------------------------------- */

/* The first hit of each broken rule, of the rank that had it first: with a bare min(), SQLite takes
 * the other columns from the row of the minimum. */
static const char sql_broken[] =
	"SELECT *, count(*) OVER () FROM (SELECT rule, sum(hits), min(time_ns), "
	"coalesce(key, layer), epoch, weight_update, step FROM health_sums GROUP BY rule) "
	"ORDER BY 3, 1";

static const char sql_counts[] =
	"SELECT (SELECT count(*) FROM health_rules WHERE enabled = 1), count(*), min(time_ns), why "
	"FROM (SELECT min(time_ns) AS time_ns, why FROM tensor_tiers WHERE time_ns IS NOT NULL "
	"GROUP BY queue, key)";

static void read_broken_rule(struct report_summary *out, const struct prof_query *query,
			     struct err *err)
{
	if (!out->broken)
		out->broken = arena_alloc(&out->arena, (size_t)prof_column_int(query, 7),
					  sizeof(*out->broken));
	if (!out->broken) {
		err_nomem(err);
		return;
	}
	out->broken[out->broken_count++] = (struct report_broken){
		.rule = report__copy(&out->arena, prof_column_text(query, 0), err),
		.hits = prof_column_int(query, 1),
		.first_ns = prof_column_int(query, 2),
		.key = report__copy(&out->arena, prof_column_text(query, 3), err),
		.epoch = prof_column_int(query, 4),
		.weight_update = prof_column_int(query, 5),
		.step = prof_column_int(query, 6),
	};
}

static void read_first_nonfinite(struct report_summary *out, const struct prof_query *query,
				 struct err *err)
{
	out->bad = (struct report_bad){
		.known = true,
		.key = report__copy(&out->arena, prof_column_text(query, 0), err),
		.layer = report__copy(&out->arena, prof_column_text(query, 1), err),
		.phase = report__copy(&out->arena, prof_column_text(query, 2), err),
		.epoch = prof_column_int(query, 3),
		.weight_update = prof_column_int(query, 4),
		.step = prof_column_int(query, 5),
		.microbatch = prof_column_int(query, 6),
		.replica = prof_column_int(query, 7),
		.stage = prof_column_int(query, 8),
		.time_ns = prof_column_int(query, 9),
		.element =
			prof_column_type(query, 10) == PROF_INT ? prof_column_int(query, 10) : -1,
		.value = report__copy(&out->arena, prof_column_text(query, 11), err),
	};
}

static void read_counts(struct report_summary *out, const struct prof_query *query, struct err *err)
{
	out->rules = prof_column_int(query, 0);
	out->lowered = prof_column_int(query, 1);
	out->lowered_ns = prof_column_int(query, 2);
	out->lowered_why = report__copy(&out->arena, prof_column_text(query, 3), err);
}

/* ---- the state of the file ------------------------------------------------------------------- */

/* @gaps: what is missing because the disk was full for a while; empty: nothing. */
static const char *state_of_complete(struct report_summary *out, bool repaired, const char *gaps)
{
	if (!repaired && gaps[0] != 0)
		return arena_printf(&out->arena, "complete with gaps: %s", gaps);
	if (!repaired)
		return "complete";
	if (!out->failure)
		return "complete (repaired after its writer died)";
	return arena_printf(&out->arena, "complete (repaired after writing failed: %s)",
			    out->failure);
}

static const char *state_of_incomplete(struct report_summary *out, struct prof_db *db)
{
	if (out->failure)
		return arena_printf(&out->arena,
				    "failed: %s; `ipu-report %s repair` finishes the file",
				    out->failure, out->path);
	out->live = prof_db_writer_alive(db);
	if (!out->live)
		return arena_printf(&out->arena,
				    "killed: the writer died; "
				    "`ipu-report %s repair` finishes the file",
				    out->path);
	return prof_db_state(db) == PROF_CLOSING ? "closing: the writer finishes the file"
						 : "recording: the run goes on";
}

static void read_state(struct report_summary *out, struct prof_db *db, struct err *err)
{
	char failure[512], repaired[64], gaps[256];
	const bool failed = prof_db_meta(db, "failure", failure, sizeof(failure));

	out->note = prof_db_note(db);
	out->path = arena_strdup(&out->arena, prof_db_path(db));
	out->failure = failed ? arena_strdup(&out->arena, failure) : NULL;
	if (!out->path || (failed && !out->failure)) {
		err_nomem(err);
		return;
	}
	if (prof_db_state(db) == PROF_COMPLETE) {
		out->whole = !prof_db_meta(db, "repaired", repaired, sizeof(repaired));
		prof_db_meta(db, "gaps", gaps, sizeof(gaps));
		out->state = state_of_complete(out, !out->whole, gaps);
	} else {
		out->state = state_of_incomplete(out, db);
	}
	if (!out->state)
		err_nomem(err);
}

/* ---- missing data ---------------------------------------------------------------------------- */

/* The host's last position. Compared with the last ended execution: executions are numbered in
 * order. Rows of the device, which may be ahead, are interleaved with those of the host, hence the
 * search over the last rows. */
static const char sql_reached[] =
	"SELECT c.epoch, c.execution, c.weight_update, c.step FROM "
	"(SELECT row_id, clock, context_id FROM stage_timing_rows ORDER BY row_id DESC "
	"LIMIT 10000) s JOIN contexts c ON c.context_id = s.context_id WHERE s.clock = 0 "
	"ORDER BY s.row_id DESC LIMIT 1";
static const char sql_ended[] = "SELECT execution FROM execution_rows ORDER BY row_id DESC LIMIT 1";

static void find_reached(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct prof_query *query;
	int64_t ended; /* IPS_NULL, which is less than every number: none has */

	if (err_stuck(err) || prof_db_number(db, sql_ended, &ended, err) != ST_OK)
		return;
	prof_query_open(&query, db, sql_reached, err);
	if (prof_query_next(query, &err->status, err) && prof_column_int(query, 1) > ended)
		out->reached = (struct report_reached){
			true, prof_column_int(query, 0), prof_column_int(query, 1),
			prof_column_int(query, 2), prof_column_int(query, 3)};
	prof_query_close(query);
}

static void list_absent(struct report_summary *out, struct err *err)
{
	const struct {
		const char *name;
		bool there;
	} parts[] = {
		{"spans", out->spans > 0},
		{"executions", out->executions > 0},
		{"stages", out->stages > 0},
		{"bubbles", out->bubble[0].known || out->bubble[1].known},
		{"metrics", out->loss_nan || out->evaluate_loss_nan || !isnan(out->loss) ||
				    !isnan(out->accuracy) || !isnan(out->evaluate_loss) ||
				    !isnan(out->evaluate_accuracy)},
		{"statistics", out->tensor_rows > 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(parts) && !err_stuck(err); i++) {
		if (parts[i].there)
			continue;
		out->absent = out->absent ? arena_printf(&out->arena, "%s, %s", out->absent,
							 parts[i].name)
					  : parts[i].name;
		if (!out->absent)
			err_nomem(err);
	}
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

enum status report_summary_get(struct report_summary *out, struct prof_db *db, struct err *err)
{
	struct report_sums sums = {0};
	struct err own;
	bool nan; /* an accuracy that is NaN is unknown */

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
	read_state(out, db, err);
	for_each_row(out, db, sql_meta, read_meta, err);
	for_each_row(out, db, sql_executions, read_executions, err);
	for_each_row(out, db, sql_arithmetic, read_arithmetic, err);
	read_metric(db, "train", "loss", &out->loss, &out->loss_nan, err);
	read_metric(db, "train", "%accuracy", &out->accuracy, &nan, err);
	read_metric(db, "evaluate", "loss", &out->evaluate_loss, &out->evaluate_loss_nan, err);
	read_metric(db, "evaluate", "%accuracy", &out->evaluate_accuracy, &nan, err);
	report_sums_read(&sums, db, err);
	read_stages(out, db, &sums, err);
	for_each_row(out, db, sql_recording, read_recording, err);
	if (out->origin == PROF_FROM_TRACE)
		for_each_row(out, db, sql_trace, read_trace, err);
	for_each_row(out, db, sql_broken, read_broken_rule, err);
	for_each_row(out, db, REPORT_FIRST_BAD, read_first_nonfinite, err);
	for_each_row(out, db, sql_counts, read_counts, err);
	if (!err_stuck(err)) {
		for (int clock = 0; clock < 2; clock++)
			compute_bubble(out, &sums.bubble[clock], &out->bubble[clock]);
		measure_file(out);
		derive_counts(out);
		if (!out->whole)
			find_reached(out, db, err);
		if (!out->whole || (out->spans == 0 && out->executions == 0))
			list_absent(out, err);
	}
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
