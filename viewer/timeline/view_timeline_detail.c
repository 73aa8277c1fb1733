/*
 * The timeline's details: the span or the idle time under the cursor in words, or sums by name.
 *
 * Arrows are looked up by index. A recording without that index, because it is still running or was
 * made without it, is queried only if it has few arrows. What belongs to an operation comes from
 * tables of the model's size, and is queried again only if the operation changes; the key o leads
 * there.
 *
 * Sums by name list count and duration of what ran on the cursor's lane in the window, or between x
 * and the cursor. A range of up to MOST_SPANS spans is summed exactly; for a longer one buckets are
 * summed, each under the site with most of its time, and the heading says so. Nothing is read again
 * while lane and range are unchanged. Of each span only the part in the range counts.
 *
 * Threading: one thread. Ownership: texts are in the details' arena until the next load; the rows
 * of sums belong to the grid, which belongs to the timeline.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define INSIDE_COLUMNS 256   /* resolution for reading a span's children */
#define MOST_FLOWS     2     /* named arrows */
#define MOST_LOOKED    10000 /* arrows that are looked through, without an index */
#define MOST_PARENTS   8     /* named enclosing spans */
#define SUM_COLUMNS    2000  /* resolution for reading a range's buckets */
#define MOST_SPANS     10000 /* summed one by one */
#define FIELD_WIDTH    38
#define NAME_WIDTH     15

/* ---- fields ---------------------------------------------------------------------------------- */

static void view_add_field(struct view_timeline *tl, const char *name, const char *value)
{
	if (value && value[0] && tl->under.count < VIEW_FIELDS)
		tl->under.fields[tl->under.count++] = (struct view_field){name, value};
}

static void view_add_int_field(struct view_timeline *tl, const char *name, int64_t value)
{
	if (value != IPS_NULL)
		view_add_field(tl, name, arena_printf(&tl->under.arena, "%lld", (long long)value));
}

/* Add a time as readable text and in exact ns, after @before. */
static void view_add_ns(struct view_timeline *tl, const char *name, int64_t ns, const char *before)
{
	char text[FMT_SIZE], exact[FMT_SIZE + 8] = "", count[FMT_SIZE];

	if (ns <= -1000 || ns >= 1000)
		snprintf(exact, sizeof(exact), " (%s ns)", fmt_count(count, ns));
	view_add_field(tl, name,
		       arena_printf(&tl->under.arena, "%s%s%s", before, fmt_ns(text, ns), exact));
}

static void view_add_phase(struct view_timeline *tl, char phase)
{
	static const struct {
		char phase;
		const char *text;
	} phases[] = {{IPS_FORWARD, "F forward"},
		      {IPS_BACKWARD, "B backward"},
		      {IPS_WEIGHTS, "W weight gradient"},
		      {IPS_RECOMPUTATION, "R recomputation"},
		      {IPS_UPDATE, "U weight update"}};

	for (size_t i = 0; i < ARRAY_LEN(phases); i++)
		if (phases[i].phase == phase)
			view_add_field(tl, "phase", phases[i].text);
}

/* Add what the report has on @operation, or else on @name: layer, program, number of tensors of the
 * layer. */
static void view_add_operation(struct view_timeline *tl, const char *operation, const char *name)
{
	static const char sql[] =
		"WITH l AS (SELECT coalesce((SELECT layer FROM operations WHERE operation = :name "
		"LIMIT 1), (SELECT layer FROM layers WHERE layer = :name)) AS layer) "
		"SELECT layer, (SELECT min(program_id) FROM programs WHERE operation = :name), "
		"(SELECT count(*) FROM tensors t WHERE t.layer = l.layer) FROM l";
	struct view_belongs *belongs = &tl->under.belongs;

	view_add_field(tl, "operation", operation);
	name = operation ? operation : name;
	if (!name || !name[0] || strlen(name) >= sizeof(belongs->of))
		return;
	if (strcmp(belongs->of, name) != 0) {
		struct prof_query *query;
		enum status status = prof_query_open(&query, tl->db, sql, NULL);

		*belongs = (struct view_belongs){.program_id = IPS_NULL};
		view_place_text(belongs->of, name);
		prof_query_text(query, ":name", name);
		if (prof_query_next(query, &status, NULL)) {
			view_place_text(belongs->layer, prof_column_text(query, 0));
			belongs->program_id = prof_column_int(query, 1);
			belongs->tensors = belongs->layer[0] ? prof_column_int(query, 2) : 0;
		}
		prof_query_close(query);
	}
	view_add_field(tl, "layer", belongs->layer);
	view_add_int_field(tl, "program", belongs->program_id);
	if (belongs->tensors > 0)
		view_add_int_field(tl, "its tensors", belongs->tensors);
}

/* ---- a span ---------------------------------------------------------------------------------- */

/* Add the span's time outside of its children: exact, or estimated from buckets. */
static void view_add_self(struct view_timeline *tl)
{
	const struct prof_span *span = &tl->under.span;
	struct prof_bar *bars;
	int64_t inside = 0, self;
	bool exact = true;
	char ns[FMT_SIZE];
	int count;

	if (span->dur_ns == IPS_NULL || span->dur_ns <= 0 ||
	    prof_timeline_bars(tl->db, span->track_id, span->start_ns,
			       span->start_ns + span->dur_ns, INSIDE_COLUMNS, 0, &tl->under.arena,
			       &bars, &count, NULL) != ST_OK)
		return;
	for (int i = 0; i < count; i++)
		if (bars[i].depth == span->depth + 1) {
			inside += bars[i].busy_ns;
			exact = exact && bars[i].span_id != IPS_NULL;
		}
	if (inside == 0)
		return;
	self = max(span->dur_ns - inside, 0);
	view_add_field(tl, "self",
		       arena_printf(&tl->under.arena, "%s%s (%.1f %%)", exact ? "" : "about ",
				    fmt_ns(ns, self), (double)self / (double)span->dur_ns * 100));
}

/* Add the spans that the span's arrows come from (@in) or lead to. */
static void view_add_flows(struct view_timeline *tl, bool in)
{
	static const char *const sql[] = {
		"SELECT s.name, s.track FROM flows f JOIN spans s ON s.span_id = f.to_span_id "
		"WHERE f.from_span_id = :span LIMIT 3",
		"SELECT s.name, s.track FROM flows f JOIN spans s ON s.span_id = f.from_span_id "
		"WHERE f.to_span_id = :span LIMIT 3"};
	struct arena *arena = &tl->under.arena;
	struct prof_query *query;
	const char *text = NULL;
	enum status status;
	int count = 0;

	if (!view__has_arrows(tl, MOST_LOOKED))
		return;
	status = prof_query_open(&query, tl->db, sql[in], NULL);
	prof_query_int(query, ":span", tl->under.span.span_id);
	while (count <= MOST_FLOWS && prof_query_next(query, &status, NULL)) {
		const char *name = prof_column_text(query, 0), *track = prof_column_text(query, 1);

		if (count++ == MOST_FLOWS)
			text = arena_printf(arena, "%s, ...", text ? text : "");
		else
			text = arena_printf(arena, "%s%s%s on %s", text ? text : "",
					    text ? ", " : "", name ? name : "?",
					    track ? track : "?");
	}
	prof_query_close(query);
	view_add_field(tl, in ? "waits for" : "leads to", text);
}

static void view_add_span(struct view_timeline *tl)
{
	const struct prof_span *span = &tl->under.span;

	view_add_ns(tl, "start", span->start_ns, "");
	if (span->dur_ns == IPS_NULL)
		view_add_field(tl, "duration", "still open");
	else
		view_add_ns(tl, "duration", span->dur_ns, "");
	view_add_self(tl);
	view_add_phase(tl, span->phase);
	view_add_int_field(tl, "stage", span->stage);
	view_add_int_field(tl, "micro-batch", span->microbatch);
	view_add_int_field(tl, "step", span->step);
	view_add_int_field(tl, "weight update", span->weight_update);
	view_add_field(tl, "arguments", span->arguments);
	view_add_operation(tl, span->operation, span->name);
	view_add_flows(tl, true);
	view_add_flows(tl, false);
	view_add_int_field(tl, "execution", span->execution);
	view_add_int_field(tl, "epoch", span->epoch);
	view_add_field(tl, "mode", span->mode);
	view_add_int_field(tl, "IPU", span->ipu);
	view_add_int_field(tl, "replica", span->replica);
	view_add_field(tl, "category", span->category);
	view_add_field(tl, "clock", span->clock);
	view_add_int_field(tl, "depth", span->depth);
	view_add_int_field(tl, "span", span->span_id);
}

/* Compose "worker 0 > Engine::run > update": the enclosing spans, outermost first. */
static void view_compose_path(struct view_timeline *tl)
{
	char *path = tl->under.path;
	const char *names[MOST_PARENTS];
	struct prof_span span = tl->under.span;
	size_t length;
	int count = 0;

	while (span.parent_id != IPS_NULL && count < MOST_PARENTS &&
	       prof_timeline_span(tl->db, span.parent_id, &tl->under.arena, &span, NULL) == ST_OK)
		names[count++] = span.name ? span.name : "?";
	length = (size_t)snprintf(path, VIEW_PATH_SIZE, "%s", view__lane(tl)->track->name);
	while (count-- > 0 && length < VIEW_PATH_SIZE)
		length += (size_t)snprintf(path + length, VIEW_PATH_SIZE - length, " > %s",
					   names[count]);
}

/* ---- idle time ------------------------------------------------------------------------------- */

static void view_add_gap_fields(struct view_timeline *tl)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_gap *gap = &tl->under.gap;
	/* In VIEW_BSP the lane shows steps, and the gap is between stages. */
	static const char *const names[][2] = {{"idle from", "idle for"},
					       {"no stage from", "no stage for"},
					       {"untraced from", "for"}};
	const int kind = gap->dark ? 2 : tl->choice.way == VIEW_BSP;
	const struct view_pipeline_run *runs = tl->runs;
	int *run = &tl->under.gap_run;

	*run = -1;
	for (int i = 0; i < tl->run_count && lane->pipeline && !gap->dark; i++)
		if (runs[i].group == view__group(tl, lane) && tl->cursor.ns >= runs[i].from &&
		    tl->cursor.ns < runs[i].to)
			*run = i;
	if (gap->begun)
		view_add_ns(tl, names[kind][0], gap->at.from, "");
	view_add_ns(tl, names[kind][1], gap->at.to - gap->at.from,
		    gap->begun && gap->ended ? "" : "at least ");
	view_add_field(tl, "lane", lane->track->name);
	if (*run >= 0) {
		view_add_int_field(tl, "weight update", runs[*run].weight_update);
		view_add_field(tl, "bubble", "within the pipeline run");
	}
}

/* Device lanes may contain the first executions only: explain an execution without lanes. */
static void view_add_untraced(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT execution, traced, (SELECT min(execution) FROM executions WHERE traced = "
		"1), "
		"(SELECT max(execution) FROM executions WHERE traced = 1), "
		"(SELECT count(*) FROM executions WHERE traced = 1) FROM executions "
		"WHERE start_ns <= :at ORDER BY start_ns DESC LIMIT 1";
	struct prof_query *query;
	enum status status = prof_query_open(&query, tl->db, sql, NULL);

	prof_query_int(query, ":at",
		       view_link_map(tl->links.points, tl->links.count, tl->cursor.ns, 0));
	if (prof_query_next(query, &status, NULL) && prof_column_int(query, 1) == 0 &&
	    prof_column_int(query, 4) > 0) {
		snprintf(tl->under.hint, sizeof(tl->under.hint),
			 "execution %lld has no device lanes: "
			 "autoReport.executionProfileProgramRunCount %lld",
			 (long long)prof_column_int(query, 0),
			 (long long)prof_column_int(query, 4));
		view_add_field(tl, "recorded for",
			       arena_printf(&tl->under.arena, "executions %lld to %lld",
					    (long long)prof_column_int(query, 2),
					    (long long)prof_column_int(query, 3)));
		view_add_field(tl, "all are in", "stage_timings");
	}
	prof_query_close(query);
}

/* ---- the selection under the cursor ---------------------------------------------------------- */

/* The fields of a step of the device (VIEW_BSP). */
static void view_add_step_fields(struct view_timeline *tl)
{
	const struct view_step *at = &tl->device.at_cursor;
	const struct prof_step *step = at->step;
	struct arena *arena = &tl->under.arena;
	char number[FMT_SIZE];

	view_add_field(tl, "type", step->type);
	view_add_operation(tl, step->operation, NULL);
	view_add_field(tl, "cycles", arena_strdup(arena, fmt_count(number, step->cycles)));
	view_add_ns(tl, "duration", at->to_ns - at->from_ns, "");
	view_add_int_field(tl, "active tiles", step->active_tiles);
	if (!isnan(step->tile_balance))
		view_add_field(tl, "tile balance", arena_printf(arena, "%.3f", step->tile_balance));
	if (!isnan(step->active_tile_balance))
		view_add_field(tl, "of active",
			       arena_printf(arena, "%.3f", step->active_tile_balance));
	view_add_int_field(tl, "bytes in", step->bytes_in);
	view_add_int_field(tl, "bytes out", step->bytes_out);
	view_add_phase(tl, step->phase);
	view_add_int_field(tl, "stage", step->stage);
	if (step->microbatch != IPS_NULL)
		view_add_int_field(tl, "micro-batch", step->microbatch + at->run.first_microbatch);
	view_add_int_field(tl, "weight update", at->run.weight_update);
	view_add_int_field(tl, "trace step", step->trace_step);
	view_add_int_field(tl, "its program", step->program_id);
	view_add_ns(tl, "start", at->from_ns, "");
	snprintf(tl->under.path, sizeof(tl->under.path), "%s", view__lane(tl)->track->name);
}

void view__detail_load(struct view_timeline *tl)
{
	/* Why the bubble counts the time as idle. Transfers and syncs within a run count, too. */
	static const char *const why[VIEW_CAUSES] = {
		"", "ramp-up: before its first work", "ramp-down: after its last work",
		"imbalance: waits for others", "communication: its input is on the way"};
	const struct view_lane *lane = view__lane(tl);
	struct view_under *under = &tl->under;
	struct prof_span *span = &under->span;

	if (tl->status != ST_OK)
		return;
	arena_reset(&under->arena);
	under->count = 0;
	under->in_gap = false;
	under->path[0] = under->hint[0] = '\0';
	under->selected = IPS_NULL;
	/* The span of a jump stays selected while the cursor is in it. */
	if (tl->cursor.pinned != IPS_NULL &&
	    prof_timeline_span(tl->db, tl->cursor.pinned, &under->arena, span, NULL) == ST_OK &&
	    tl->cursor.ns >= span->start_ns &&
	    (span->dur_ns == IPS_NULL || tl->cursor.ns < span->start_ns + max(span->dur_ns, 1))) {
		/* A span that was jumped to takes precedence over the step. */
		tl->device.at_cursor.step = NULL;
		under->selected = tl->cursor.pinned;
	} else if (tl->device.at_cursor.step) {
		tl->cursor.pinned = IPS_NULL;
		view_add_step_fields(tl);
		return;
	} else {
		tl->cursor.pinned = IPS_NULL;
		tl->status = prof_timeline_at(tl->db, lane->track->track_id, tl->cursor.ns,
					      tl->cursor.depth, &under->selected, &tl->err);
		if (tl->status == ST_OK && under->selected != IPS_NULL)
			tl->status = prof_timeline_span(tl->db, under->selected, &under->arena,
							&under->span, &tl->err);
		if (tl->status != ST_OK)
			return;
	}
	under->in_gap = (under->selected == IPS_NULL || under->span.depth < lane->work_depth) &&
			view__gap_at(tl, tl->cursor.ns, &under->gap);
	if (under->in_gap)
		view_add_gap_fields(tl);
	view_add_field(tl, "idle because", why[tl->bubbles.at_cursor]);
	if (under->in_gap && lane->pipeline && lane->track->clock == IPS_DEVICE)
		view_add_untraced(tl);
	if (under->selected != IPS_NULL) {
		if (!under->in_gap)
			view_add_span(tl);
		view_compose_path(tl);
	}
}

/* ---- sums by name ---------------------------------------------------------------------------- */

struct view_name_sum {
	const char *name;
	int64_t count, total_ns, longest_ns;
	bool rough; /* summed from buckets: the longest is unknown */
};

static const struct report_column view_sum_columns[] = {
	{"name", REPORT_TEXT},      {"count", REPORT_COUNT}, {"total_ns", REPORT_NS},
	{"share", REPORT_FRACTION}, {"mean_ns", REPORT_NS},  {"longest_ns", REPORT_NS},
};

static const struct view_grid_column view_sum_shown[] = {
	{"name", NULL, 0, 0, 9, false},      {"total_ns", "total", 0, 0, 8, false},
	{"share", NULL, 0, 0, 7, true},      {"count", NULL, 0, 0, 6, false},
	{"mean_ns", "mean", 0, 0, 5, false}, {"longest_ns", "longest", 0, 0, 4, false},
};

bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size)
{
	const int from = tl->mark ? VIEW_SUMS_FROM_TWO : VIEW_SUMS_FROM;
	const int rows = context->body.height;

	if (!tl->choice.by_name || !tl->under.wanted || rows >= from)
		return false;
	snprintf(out, size, "no room for the %s: %d more row%s",
		 tl->choice.way == VIEW_BSP ? "proportions" : "sums by name", from - rows,
		 from - rows == 1 ? "" : "s");
	return true;
}

/* Read the bars of the range. Buckets come first and give the number of spans; few spans are then
 * read themselves. */
static int view_read_range(struct view_timeline *tl, struct arena *arena, struct prof_bar **bars)
{
	const struct view_window range = tl->sums.range;
	const int fits = prof_timeline_level(range.to - range.from, SUM_COLUMNS);
	int64_t spans = 0;
	int count = 0;

	for (int level = max(0, fits);; level = -1) {
		tl->status = prof_timeline_bars_at(tl->db, tl->sums.track_id, level, range.from,
						   range.to, view__clock(tl)->extent.to, arena,
						   bars, &count, &tl->err);
		for (int i = 0; i < count && tl->status == ST_OK && level >= 0; i++)
			spans += (*bars)[i].count;
		if (level < 0 || spans > MOST_SPANS || view__stopped(tl))
			break;
	}
	for (int i = 0; i < count && tl->status == ST_OK; i++)
		view__read_site(tl, &(*bars)[i]);
	return count;
}

static void view_add_to_sum(struct view_timeline *tl, struct view_name_sum *sum,
			    const struct prof_bar *bar)
{
	const struct view_window range = tl->sums.range;
	int64_t ns = min(bar->start_ns + bar->dur_ns, range.to) - max(bar->start_ns, range.from);
	int64_t count = 1;

	if (bar->span_id == IPS_NULL) {
		const double part = bar->dur_ns > 0 ? (double)ns / (double)bar->dur_ns : 1;

		count = (int64_t)((double)bar->count * part + 0.5);
		ns = (int64_t)((double)bar->busy_ns * part);
		sum->rough = true;
	} else {
		sum->longest_ns = max(ns, sum->longest_ns);
	}
	sum->count += count;
	sum->total_ns += max(ns, 0);
}

static int view_compare_name(const void *a, const void *b)
{
	const struct view_name_sum *first = a, *second = b;

	if (!first->name || !second->name)
		return (!first->name) - (!second->name);
	return strcmp(first->name, second->name);
}

/* Merge sums of the same name; return the number of names. */
static int64_t view_merge_names(struct view_name_sum *sums, size_t count)
{
	int64_t names = 0;

	qsort(sums, count, sizeof(*sums), view_compare_name);
	for (size_t i = 0; i < count && sums[i].name; i++) {
		struct view_name_sum *last = names > 0 ? &sums[names - 1] : NULL;

		if (!last || strcmp(last->name, sums[i].name) != 0) {
			sums[names++] = sums[i];
			continue;
		}
		last->count += sums[i].count;
		last->total_ns += sums[i].total_ns;
		last->rough |= sums[i].rough;
		last->longest_ns = max(sums[i].longest_ns, last->longest_ns);
	}
	return names;
}

/* Per IPU, in percent of the range: as PopVision's proportions, plus the time between runs. Tile
 * balances are means over compute time. */
static const struct view_grid_column view_cycles_shown[] = {
	{"ipu", "IPU", 0, 0, 20, false},
	{"compute_share", "compute", 0, 0, 19, true},
	{"exchange_share", "exchange", 0, 0, 18, false},
	{"sync_share", "sync", 0, 0, 17, false},
	{"stream_copy_share", "stream copy", 0, 0, 16, false},
	{"no_run_share", "no run", 0, 0, 15, false},
	{"tile_balance", "balance", 0, 0, 14, false},
	{"stream_copy_bytes", "streamed", 0, 0, 13, false},
	{"global_exchange_bytes", "between IPUs", 0, 0, 12, false},
	{"exchange_bytes", "between tiles", 0, 0, 11, false},
	{"parallel_efficiency", "efficiency", 0, 0, 10, false},
	{"cycles", NULL, 0, 0, 9, false},
};

static void view_cycles_query(const struct view_timeline *tl, struct str *out)
{
	const long long from = tl->sums.range.from, to = tl->sums.range.to;

	str_add(out, "WITH step AS MATERIALIZED (SELECT rank, ipu, type, cycles, tile_balance, "
		     "ifnull(bytes_in, 0) AS bytes_in, ifnull(bytes_out, 0) AS bytes_out, ");
	str_addf(out,
		 "min(start_ns + dur_ns, %lld) - max(start_ns, %lld) AS ns\n  FROM device_steps "
		 "WHERE start_ns < %lld AND start_ns + dur_ns > %lld),\n",
		 to, from, to, from);
	str_addf(out,
		 "part AS (SELECT rank, ipu, %lld.0 AS range, sum(cycles) AS cycles, sum(ns) AS "
		 "run, sum(ns * tile_balance) AS balanced,\n  ",
		 to - from);
	str_add(out,
		"total(ns) FILTER (WHERE type = 'OnTileExecute') AS compute, total(ns) FILTER "
		"(WHERE type IN ('DoExchange', 'GlobalExchange')) AS exchange,\n  total(ns) FILTER "
		"(WHERE type LIKE '%Sync%') AS sync, total(ns) FILTER (WHERE type LIKE "
		"'StreamCopy%') AS stream_copy,\n  sum(bytes_in + bytes_out) FILTER (WHERE type "
		"LIKE 'StreamCopy%') AS stream_copy_bytes, sum(bytes_in + bytes_out) FILTER "
		"(WHERE type = 'GlobalExchange') AS global_exchange_bytes,\n  sum(bytes_in) "
		"FILTER (WHERE type = 'DoExchange') AS exchange_bytes FROM step GROUP BY rank, "
		"ipu)\nSELECT ipu, compute / range AS compute_share, exchange / range AS "
		"exchange_share, sync / range AS sync_share, stream_copy / range AS "
		"stream_copy_share, 1 - run / range AS no_run_share, balanced / nullif(compute, 0) "
		"AS tile_balance,\n  stream_copy_bytes, global_exchange_bytes, exchange_bytes, "
		"balanced / nullif(run, 0) AS parallel_efficiency, cycles\nFROM part\n"
		"ORDER BY rank, ipu");
}

static void view_sum_cycles(struct view_timeline *tl, struct report_table *out)
{
	struct str sql = {0};

	memset(out, 0, sizeof(*out));
	tl->sums.bucket_ns = 0;
	view_cycles_query(tl, &sql);
	tl->status = sql.failed ? err_nomem(&tl->err)
				: report_table_query(out, tl->db, "cycles", sql.text, 0, &tl->err);
	str_free(&sql);
}

/* Sum one report by name into a table; on failure it is empty. */
static void view_sum_names(struct view_timeline *tl, struct report_table *out)
{
	const double range = (double)(tl->sums.range.to - tl->sums.range.from);
	struct prof_bar *bars = NULL;
	struct view_name_sum *sums; /* by site; the last one for spans without a site */
	struct arena arena;
	int64_t names;
	int count;

	memset(out, 0, sizeof(*out));
	(void)arena_init(&arena, 0);
	tl->sums.bucket_ns = 0;
	count = view_read_range(tl, &arena, &bars);
	sums = view__alloc(tl, &arena, tl->sites.count + 1, sizeof(*sums));
	for (int i = 0; i < count && sums; i++) {
		const struct view_site *site = view__site(tl, bars[i].site_id);
		struct view_name_sum *sum =
			&sums[site ? (size_t)(site - tl->sites.all) : tl->sites.count];

		if (bars[i].span_id == IPS_NULL)
			tl->sums.bucket_ns = max(bars[i].dur_ns, tl->sums.bucket_ns);
		if (view__is_filtered_out(tl, &bars[i]))
			continue;
		sum->name = site && site->name ? site->name : "?";
		view_add_to_sum(tl, sum, &bars[i]);
	}
	names = sums ? view_merge_names(sums, tl->sites.count + 1) : 0;
	if (tl->status == ST_OK)
		tl->status = view_table_new(out, "timeline_sums", view_sum_columns,
					    ARRAY_LEN(view_sum_columns), names, &tl->err);
	for (int64_t i = 0; i < names && tl->status == ST_OK; i++) {
		const struct view_name_sum *sum = &sums[i];
		const struct report_cell cells[] = {
			view_text_cell(sum->name),
			view_int(sum->count),
			view_int(sum->total_ns),
			view_real((double)sum->total_ns / range),
			view_int(sum->count > 0 ? sum->total_ns / sum->count : IPS_NULL),
			view_int(sum->rough ? IPS_NULL : sum->longest_ns),
		};

		tl->status = view_table_row(out, i, cells, &tl->err);
	}
	if (tl->status != ST_OK)
		report_table_free(out);
	else if (!view__lane_rows(tl, view__lane(tl)->track, tl->sums.range, &tl->sums.rows))
		tl->sums.rows = VIEW_NO_WINDOW;
	arena_fini(&arena);
}

/* Set lane and range of the sums; true: unchanged. The mark x applies to a single report only. */
static bool view_update_sums_range(struct view_timeline *tl)
{
	const int c = view__lead(tl);
	const int64_t track = view__lane(tl)->track->track_id;
	const int64_t x = tl->cursor.x_ns, at = tl->cursor.ns;
	const bool measured = !tl->mark && x != IPS_NULL && tl->cursor.x_clock == c && x != at;
	const struct view_window range =
		measured ? (struct view_window){min(x, at), max(x, at)} : tl->clock[c].window;
	const bool bsp = tl->choice.way == VIEW_BSP;
	const bool same = tl->sums.known && tl->sums.bsp == bsp &&
			  (bsp || tl->sums.track_id == track) &&
			  tl->sums.range.from == range.from && tl->sums.range.to == range.to;

	tl->sums.bsp = bsp;
	tl->sums.track_id = track;
	tl->sums.range = range;
	tl->sums.measured = measured;
	return same;
}

void view__sums_load(struct view_timeline *tl, bool news)
{
	struct view_context *context = tl->context;
	struct view_timeline *target = tl->target && tl->target->lane_count > 0 ? tl->target : NULL;
	const bool bsp = tl->choice.way == VIEW_BSP;
	void (*const sum)(struct view_timeline *, struct report_table *) =
		bsp ? view_sum_cycles : view_sum_names;
	struct report_table source = {0}, other = {0}, table = {0};
	bool same = !news && tl->sums.differ == context->differ;

	if (!tl->choice.by_name || tl->lane_count == 0) {
		tl->sums.known = false;
		return;
	}
	same &= view_update_sums_range(tl);
	if (target)
		same &= view_update_sums_range(target);
	if (!same) {
		tl->sums.known = false;
		tl->sums.grid.differ = tl->sums.differ = context->target && context->differ;
		sum(tl, target ? &source : &table);
		if (target && !view__stopped(tl)) {
			sum(target, &other);
			tl->status = target->status;
			tl->err = target->err;
			if (tl->status == ST_OK)
				tl->status = view_grid_compare(&table, context, &source, &other,
							       bsp ? "ipu" : "name", &tl->err);
		}
		report_table_free(&source);
		report_table_free(&other);
		if (tl->status == ST_OK)
			tl->status = view_grid_set(&tl->sums.grid, context, &table,
						   bsp ? view_cycles_shown : view_sum_shown,
						   bsp ? ARRAY_LEN(view_cycles_shown)
						       : ARRAY_LEN(view_sum_shown),
						   bsp ? "ipu" : NULL, &tl->err);
		if (tl->status != ST_OK)
			return;
		view_grid_sort_first(&tl->sums.grid, bsp ? "" : "total_ns");
		tl->sums.known = true;
		if (tl->target)
			tl->target->sums.known = target;
	}
	tl->sums.grid.at = tl->sums.grid.scroll = 0;
	view_grid_layout(&tl->sums.grid, (struct view_rect){0, 1, tl->areas.details.width,
							    tl->areas.details.height - 1});
}

void view__sums_query(const struct view_timeline *tl, struct str *out)
{
	const struct view_sums *sums = &tl->sums;
	const long long from = sums->range.from, to = sums->range.to;
	const struct prof_track *track;

	if (sums->known && sums->bsp) {
		view_cycles_query(tl, out);
		str_add(out, ";\n");
		return;
	}
	if (!sums->known || tl->cursor.lane >= tl->lane_count || sums->rows.to < sums->rows.from)
		return;
	track = tl->lanes[tl->cursor.lane].track;
	if (sums->bucket_ns > 0)
		str_addf(out, "-- exact; on the screen from buckets of %lld ns\n",
			 (long long)sums->bucket_ns);
	str_addf(out,
		 "SELECT name, count(*) AS count, sum(ns) AS total_ns, sum(ns) / %lld.0 AS share, "
		 "sum(ns) / count(*) AS mean_ns, max(ns) AS longest_ns\nFROM (SELECT name, "
		 "min(ifnull(start_ns + dur_ns, %lld), %lld) - max(start_ns, %lld) AS ns FROM "
		 "spans\n  WHERE span_id BETWEEN %lld AND %lld AND clock = '%s' AND rank IS ",
		 to - from, (long long)tl->clock[track->clock].extent.to, to, from,
		 (long long)sums->rows.from, (long long)sums->rows.to,
		 track->clock == IPS_DEVICE ? "device" : "host");
	if (track->rank == IPS_NULL)
		str_add(out, "NULL");
	else
		str_addf(out, "%lld", (long long)track->rank);
	str_add(out, " AND track IS ");
	if (track->track)
		str_add_sql(out, track->track);
	else
		str_add(out, "NULL");
	str_addf(out, " AND start_ns < %lld AND (start_ns >= %lld OR ", to, from);
	str_addf(out, "ifnull(start_ns + dur_ns, %lld) > %lld)", to, from);
	view__filter_query(tl, out);
	str_add(out, ")\nGROUP BY name ORDER BY total_ns DESC;\n");
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Draw a line with @title in it, and @rest if it fits. */
static void view_draw_detail_title(struct view_pane *pane, const char *title, const char *rest,
				   enum view_style style)
{
	const int width = pane->rect.width;
	char text[VIEW_PATH_SIZE + 8];
	int x;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	snprintf(text, sizeof(text), " %s ", title);
	x = 2 + view_text_cut(pane, 2, 0, width - 4, VIEW_BOLD, text);
	if (!rest[0] || x + 12 >= width)
		return;
	snprintf(text, sizeof(text), " %s ", rest);
	view_text_cut(pane, x + 1, 0, width - x - 3, style, text);
}

static void view_draw_sums(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_sums *sums = &tl->sums;
	const int c = view__lead(tl);
	const int64_t step = view_tick_step(sums->range, 100, 1);
	char from[VIEW_UNIT_SIZE], to[VIEW_UNIT_SIZE], title[VIEW_PATH_SIZE], rest[VIEW_PATH_SIZE];

	if (sums->bsp)
		str_copy(title, sizeof(title), "cycles of each IPU (simulated)");
	else
		snprintf(title, sizeof(title), "by name: %s",
			 tl->lanes[tl->cursor.lane].track->name);
	if (!sums->known)
		rest[0] = '\0';
	else if (sums->bucket_ns > 0)
		snprintf(rest, sizeof(rest), "about: from buckets of %s",
			 view__length_text(tl, c, to, sums->bucket_ns));
	else
		snprintf(rest, sizeof(rest), "%s%s to %s: %lld %s",
			 sums->measured ? "x and cursor, " : "",
			 view__time_text(tl, c, from, sums->range.from, step),
			 view__time_text(tl, c, to, sums->range.to, step),
			 (long long)sums->grid.count, sums->bsp ? "IPUs" : "names");
	view_draw_detail_title(pane, title, rest, sums->bucket_ns > 0 ? VIEW_WARN : VIEW_DIM);
	if (sums->known)
		view_grid_draw(&sums->grid, pane, false);
}

/* Compose the title of the details: the selection under the cursor. */
static void view_detail_name(const struct view_timeline *tl, char *out, size_t size)
{
	const struct view_under *under = &tl->under;
	const struct prof_span *span = &under->span;
	const struct prof_step *step = tl->device.at_cursor.step;
	const char *name = span->name ? span->name : "";

	if (step)
		name = step->name ? step->name : step->type;
	else if (under->in_gap)
		name = under->gap.dark              ? "not traced"
		       : under->gap_run >= 0        ? "idle: bubble"
		       : tl->choice.way == VIEW_BSP ? "no stage work"
						    : "idle";
	else if (under->selected == IPS_NULL)
		name = "nothing here";
	else if (span->phase && span->microbatch != IPS_NULL && span->phase != IPS_UPDATE) {
		snprintf(out, size, "%c%lld %s", span->phase, (long long)span->microbatch, name);
		return;
	}
	snprintf(out, size, "%s", name);
}

void view__draw_details(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_under *under = &tl->under;
	const int rows = pane->rect.height - 1;
	const int columns = max(pane->rect.width / FIELD_WIDTH, 1);
	const int width = pane->rect.width / columns;
	char title[VIEW_PATH_SIZE];

	if (rows < 1)
		return;
	if (tl->choice.by_name) {
		view_draw_sums(tl, pane);
		return;
	}
	view_detail_name(tl, title, sizeof(title));
	view_draw_detail_title(pane, title, under->path, VIEW_DIM);
	for (int i = 0; i < under->count && i < rows * columns; i++) {
		const int x = i / rows * width + 1, y = 1 + i % rows;
		/* The last column extends to the end of the row. */
		const bool last = i + rows >= under->count || i / rows + 1 >= columns;

		view_text_cut(pane, x, y, NAME_WIDTH - 1, VIEW_DIM, under->fields[i].name);
		view_text_cut(pane, x + NAME_WIDTH, y,
			      (last ? pane->rect.width - x : width) - NAME_WIDTH - 2, VIEW_NORMAL,
			      under->fields[i].value);
	}
}
