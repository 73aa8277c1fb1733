/*
 * The timeline's details: the span or the idle time under the cursor in words, or sums by name.
 *
 * Arrows are looked up by index. A recording that has none, since it goes on or was not given any,
 * is asked where it has few arrows. What belongs to an operation is asked of tables of a model's
 * size, once for each operation in a row.
 *
 * Sums by name say how often and how long what ran on the cursor's lane in the window, or between x
 * and the cursor. A range of up to MOST_SPANS spans is summed exactly; of a longer one buckets are,
 * each under the site with most of its time, and the heading says so. Nothing is read again while
 * lane and range stay. Of each span what lies in the range counts.
 *
 * Threading: one thread. Ownership: texts live in the details' arena until the next load; sums'
 * rows are the grid's, which is the timeline's.
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

#define INSIDE_COLUMNS 256   /* that a span's children are read for */
#define MOST_FLOWS     2     /* that are named */
#define COLUMNS        2000  /* that a range's buckets are read for */
#define MOST_SPANS     10000 /* that are summed one by one */
#define MOST_PARENTS   8

static void view_ask(struct view_belongs *belongs, struct prof_db *db)
{
	static const char sql[] =
		"WITH l AS (SELECT coalesce((SELECT layer FROM operations WHERE operation = :name "
		"LIMIT 1), (SELECT layer FROM layers WHERE layer = :name)) AS layer) "
		"SELECT layer, (SELECT min(program_id) FROM programs WHERE operation = :name), "
		"(SELECT count(*) FROM tensors t WHERE t.layer = l.layer) FROM l";
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db, sql, NULL) != ST_OK)
		return;
	prof_query_text(query, ":name", belongs->of);
	if (prof_query_step(query, &row, NULL) == ST_OK && row) {
		view_place_text(belongs->layer, prof_column_text(query, 0));
		belongs->program_id = prof_column_int(query, 1);
		belongs->tensors = belongs->layer[0] ? prof_column_int(query, 2) : 0;
	}
	prof_query_close(query);
}

static const struct view_belongs *view_belongs(struct view_timeline *tl, struct prof_db *db,
					       const char *name)
{
	struct view_belongs *belongs = &tl->under.belongs;

	if (!name || !name[0] || strlen(name) >= sizeof(belongs->of))
		return NULL;
	if (strcmp(belongs->of, name) != 0) {
		*belongs = (struct view_belongs){.program_id = IPS_NULL};
		view_place_text(belongs->of, name);
		view_ask(belongs, db);
	}
	return belongs;
}

static int64_t view_self_ns(struct view_timeline *tl, struct prof_db *db, bool *exact)
{
	const struct prof_span *span = &tl->under.span;
	struct prof_bar *bars;
	int64_t inside = 0;
	int count;

	*exact = true;
	if (span->dur_ns == IPS_NULL || span->dur_ns <= 0 ||
	    prof_timeline_bars(db, span->track_id, span->start_ns, span->start_ns + span->dur_ns,
			       INSIDE_COLUMNS, 0, &tl->under.arena, &bars, &count, NULL) != ST_OK)
		return IPS_NULL;
	for (int i = 0; i < count; i++) {
		if (bars[i].depth != span->depth + 1)
			continue;
		inside += bars[i].busy_ns;
		*exact = *exact && bars[i].span_id != IPS_NULL;
	}
	return inside == 0 ? IPS_NULL : inside < span->dur_ns ? span->dur_ns - inside : 0;
}

static bool view_has_arrows(struct prof_db *db)
{
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db,
			    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND "
			    "name = 'flow_to') OR (SELECT ifnull(max(row_id), 0) FROM flow_rows) "
			    "< 10000",
			    NULL) != ST_OK)
		return false;
	if (prof_query_step(query, &row, NULL) != ST_OK)
		row = false;
	row = row && prof_column_int(query, 0) == 1;
	prof_query_close(query);
	return row;
}

static const char *view_flow_text(struct view_timeline *tl, struct prof_db *db, bool in)
{
	static const char *const sql[] = {
		"SELECT s.name, s.track FROM flows f JOIN spans s ON s.span_id = f.to_span_id "
		"WHERE f.from_span_id = :span LIMIT 3",
		"SELECT s.name, s.track FROM flows f JOIN spans s ON s.span_id = f.from_span_id "
		"WHERE f.to_span_id = :span LIMIT 3"};
	struct prof_query *query;
	const char *text = NULL;
	bool row = false;

	if (!view_has_arrows(db) || prof_query_open(&query, db, sql[in], NULL) != ST_OK)
		return NULL;
	prof_query_int(query, ":span", tl->under.span.span_id);
	for (int i = 0; prof_query_step(query, &row, NULL) == ST_OK && row; i++) {
		const char *name = prof_column_text(query, 0), *track = prof_column_text(query, 1);

		if (i == MOST_FLOWS) {
			text = arena_printf(&tl->under.arena, "%s, ...", text ? text : "");
			break;
		}
		text = arena_printf(&tl->under.arena, "%s%s%s on %s", text ? text : "",
				    text ? ", " : "", name ? name : "?", track ? track : "?");
	}
	prof_query_close(query);
	return text;
}

struct view_sum {
	const char *name;
	int64_t count, total_ns, longest_ns;
	bool rough; /* of buckets: the longest is not known */
};

/* What a name's spans come to; site by site, the last for spans without one. */
struct view_summing {
	struct view_timeline *tl;
	struct view_window range;
	struct arena arena;
	struct prof_bar *bars;
	int count;
	struct view_sum *sums; /* tl->sites.count + 1 */
};

enum {
	NAME,
	COUNT,
	TOTAL,
	SHARE,
	MEAN,
	LONGEST
};

static const struct report_column view_columns[] = {
	[NAME] = {"name", REPORT_TEXT},    [COUNT] = {"count", REPORT_COUNT},
	[TOTAL] = {"total_ns", REPORT_NS}, [SHARE] = {"share", REPORT_FRACTION},
	[MEAN] = {"mean_ns", REPORT_NS},   [LONGEST] = {"longest_ns", REPORT_NS},
};

static const struct view_grid_column view_shown[] = {
	{"name", NULL, 0, 0, 9, false},      {"total_ns", "total", 0, 0, 8, false},
	{"share", NULL, 0, 0, 7, true},      {"count", NULL, 0, 0, 6, false},
	{"mean_ns", "mean", 0, 0, 5, false}, {"longest_ns", "longest", 0, 0, 4, false},
};

bool view__shows_sums(const struct view_timeline *tl)
{
	return tl->choice.by_name && tl->choice.way != VIEW_BSP;
}

bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size)
{
	const int from = tl->mark ? VIEW_SUMS_FROM_TWO : VIEW_SUMS_FROM;
	const int rows = context->body.height;

	if (!view__shows_sums(tl) || !tl->under.wanted || rows >= from)
		return false;
	snprintf(out, size, "no room for the sums by name: %d more row%s", from - rows,
		 from - rows == 1 ? "" : "s");
	return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status view_read_bars(struct view_summing *summing, struct view_context *context,
				  struct err *err)
{
	const struct view_timeline *tl = summing->tl;
	const struct view_window range = summing->range;
	struct prof_db *db = context->source->db;
	const int64_t track = tl->sums.track_id, now = tl->clock[view__lead(tl)].extent.to;
	/* Buckets first: they tell how many spans there are. */
	const int fits = prof_timeline_level(range.to - range.from, COLUMNS), level = max(0, fits);
	int64_t spans = 0;
	enum status status =
		prof_timeline_bars_at(db, track, level, range.from, range.to, now, &summing->arena,
				      &summing->bars, &summing->count, err);

	for (int i = 0; i < summing->count && status == ST_OK; i++)
		spans += summing->bars[i].count;
	if (status != ST_OK || spans > MOST_SPANS)
		return status;
	if (view_cancelled(context))
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return prof_timeline_bars_at(db, track, -1, range.from, range.to, now, &summing->arena,
				     &summing->bars, &summing->count, err);
}

static void view_add_bar(struct view_summing *summing, const struct prof_bar *bar)
{
	const struct view_window range = summing->range;
	const struct view_timeline *tl = summing->tl;
	const struct view_site *site = view__site(tl, bar->site_id);
	struct view_sum *sum =
		&summing->sums[site ? (size_t)(site - tl->sites.all) : tl->sites.count];
	const int64_t end = bar->start_ns + bar->dur_ns;
	int64_t ns = min(end, range.to) - max(bar->start_ns, range.from);
	int64_t count = 1;

	sum->name = site && site->name ? site->name : "?";
	if (bar->span_id == IPS_NULL) {
		const double part = bar->dur_ns > 0 ? (double)ns / (double)bar->dur_ns : 1;

		count = (int64_t)((double)bar->count * part + 0.5);
		ns = (int64_t)((double)bar->busy_ns * part);
		sum->rough = true;
	} else if (ns > sum->longest_ns) {
		sum->longest_ns = ns;
	}
	sum->count += count;
	sum->total_ns += max(ns, 0);
}

static enum status view_sum_up(struct view_summing *summing, struct view_context *context,
			       struct err *err)
{
	struct view_timeline *tl = summing->tl;
	enum status status = view_read_bars(summing, context, err);

	tl->sums.bucket_ns = 0;
	for (int i = 0; i < summing->count && status == ST_OK; i++)
		status = view__learn_site(tl, context->source->db, &summing->bars[i], err);
	if (status != ST_OK)
		return status;
	summing->sums = arena_alloc(&summing->arena, tl->sites.count + 1, sizeof(*summing->sums));
	if (!summing->sums)
		return err_nomem(err);
	memset(summing->sums, 0, (tl->sites.count + 1) * sizeof(*summing->sums));
	for (int i = 0; i < summing->count; i++) {
		const struct prof_bar *bar = &summing->bars[i];

		if (bar->span_id == IPS_NULL && bar->dur_ns > tl->sums.bucket_ns)
			tl->sums.bucket_ns = bar->dur_ns;
		if (!view__left_out(tl, bar))
			view_add_bar(summing, bar);
	}
	return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int view_by_name(const void *a, const void *b)
{
	const struct view_sum *first = a, *second = b;

	if (!first->name || !second->name)
		return (!first->name) - (!second->name);
	return strcmp(first->name, second->name);
}

/* Sites of one name become one; returns how many there are. */
static int64_t view_join_names(struct view_sum *sums, size_t count)
{
	int64_t names = 0;

	qsort(sums, count, sizeof(*sums), view_by_name);
	for (size_t i = 0; i < count && sums[i].name; i++) {
		struct view_sum *last = names > 0 ? &sums[names - 1] : NULL;

		if (!last || strcmp(last->name, sums[i].name) != 0) {
			sums[names++] = sums[i];
			continue;
		}
		last->count += sums[i].count;
		last->total_ns += sums[i].total_ns;
		last->rough |= sums[i].rough;
		if (sums[i].longest_ns > last->longest_ns)
			last->longest_ns = sums[i].longest_ns;
	}
	return names;
}

static enum status view_fill_rows(const struct view_summing *summing, struct report_table *out,
				  struct err *err)
{
	const double range = (double)(summing->range.to - summing->range.from);
	const int64_t names = view_join_names(summing->sums, summing->tl->sites.count + 1);
	enum status status = view_table_new(out, "timeline_sums", view_columns,
					    ARRAY_LEN(view_columns), names, err);

	for (int64_t i = 0; i < names && status == ST_OK; i++) {
		const struct view_sum *sum = &summing->sums[i];

		status = view_table_text(out, i, NAME, sum->name, err);
		view_table_int(out, i, COUNT, sum->count);
		view_table_int(out, i, TOTAL, sum->total_ns);
		view_table_real(out, i, SHARE, (double)sum->total_ns / range);
		if (sum->count > 0)
			view_table_int(out, i, MEAN, sum->total_ns / sum->count);
		if (!sum->rough)
			view_table_int(out, i, LONGEST, sum->longest_ns);
	}
	if (status != ST_OK)
		report_table_free(out);
	return status;
}

static enum status view_table(struct view_timeline *tl, struct view_context *context,
			      struct report_table *out, struct err *err)
{
	struct view_summing summing = {.tl = tl, .range = tl->sums.range};
	enum status status;

	memset(out, 0, sizeof(*out));
	(void)arena_init(&summing.arena, 0);
	status = view_sum_up(&summing, context, err);
	if (status == ST_OK)
		status = view_fill_rows(&summing, out, err);
	if (status == ST_OK && !view__lane_rows(view__lane(tl), context->source->db, tl->sums.range,
						&tl->sums.rows.from, &tl->sums.rows.to))
		tl->sums.rows = (struct view_window){0, -1};
	arena_fini(&summing.arena);
	return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* What is to be summed; true: the same as before. Two runs have no common x. */
static bool view_aim(struct view_timeline *tl)
{
	const int c = view__lead(tl);
	const int64_t track = view__lane(tl)->track->track_id;
	struct view_window range = tl->clock[c].window;
	const bool measured = !tl->mark && tl->cursor.x_ns != IPS_NULL && tl->cursor.x_clock == c &&
			      tl->cursor.x_ns != tl->cursor.ns;
	bool same;

	if (measured && tl->cursor.x_ns < tl->cursor.ns)
		range = (struct view_window){tl->cursor.x_ns, tl->cursor.ns};
	else if (measured)
		range = (struct view_window){tl->cursor.ns, tl->cursor.x_ns};
	same = tl->sums.known && tl->sums.track_id == track && tl->sums.range.from == range.from &&
	       tl->sums.range.to == range.to;
	tl->sums.track_id = track;
	tl->sums.range = range;
	tl->sums.measured = measured;
	return same;
}

static enum status view_load_tables(struct view_timeline *tl, struct view_context *context,
				    struct report_table *out, struct err *err)
{
	struct report_table source = {0}, target = {0};
	struct view_context its = view_context_of_target(context);
	enum status status = view_table(tl, context, &source, err);

	if (status != ST_OK || !tl->target || tl->target->lane_count == 0) {
		*out = source;
		return status;
	}
	if (view_cancelled(context))
		status = err_set(err, ST_INTERRUPTED, "interrupted");
	if (status == ST_OK)
		status = view_table(tl->target, &its, &target, err);
	if (status == ST_OK)
		status = view_grid_compare(out, context, &source, &target, "name", err);
	report_table_free(&source);
	report_table_free(&target);
	return status;
}

enum status view__sums_load(struct view_timeline *tl, struct view_context *context, bool news,
			    struct err *err)
{
	const struct view_rect *area = &tl->areas.details;
	struct report_table table = {0};
	bool same = !news && tl->sums.differ == context->differ;
	enum status status = ST_OK;

	if (!view__shows_sums(tl) || tl->lane_count == 0) {
		tl->sums.known = false;
		return ST_OK;
	}
	same &= view_aim(tl);
	if (tl->target && tl->target->lane_count > 0)
		same &= view_aim(tl->target);
	if (!same) {
		tl->sums.known = false;
		tl->sums.grid.differ = tl->sums.differ = context->target && context->differ;
		status = view_load_tables(tl, context, &table, err);
		if (status == ST_OK)
			status = view_grid_set(&tl->sums.grid, context, &table, view_shown,
					       ARRAY_LEN(view_shown), NULL, err);
		if (status != ST_OK)
			return status;
		view_grid_sort_first(&tl->sums.grid, "total_ns");
		tl->sums.known = true;
		if (tl->target)
			tl->target->sums.known = tl->target->lane_count > 0;
	}
	tl->sums.grid.at = tl->sums.grid.scroll = 0;
	view_grid_layout(&tl->sums.grid, area->width, area->height - 1);
	return ST_OK;
}

/* ---- showing --------------------------------------------------------------------------------- */

void view__draw_sums(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_sums *sums = &tl->sums;
	const int c = view__lead(tl), width = pane->rect.width;
	const int64_t step = view_tick_step(sums->range, 100, 1);
	char from[VIEW_UNIT_SIZE], to[VIEW_UNIT_SIZE], ns[VIEW_UNIT_SIZE], text[VIEW_PATH_SIZE];
	struct view_pane body =
		view__sub(pane, (struct view_rect){0, 1, width, pane->rect.height - 1});
	int x;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	snprintf(text, sizeof(text), " by name: %s ", tl->lanes[tl->cursor.lane].track->name);
	x = 2 + view_text_cut(pane, 2, 0, width - 4, VIEW_BOLD, text);
	if (!sums->known)
		return;
	snprintf(text, sizeof(text), " %s%s to %s: %lld names ",
		 sums->measured ? "x and cursor, " : "",
		 view__moment_text(tl, c, from, sums->range.from, step),
		 view__moment_text(tl, c, to, sums->range.to, step), (long long)sums->grid.count);
	if (sums->bucket_ns > 0)
		snprintf(text, sizeof(text), " about: from buckets of %s ",
			 view__length_text(tl, c, ns, sums->bucket_ns));
	if (x + 12 < width)
		view_text_cut(pane, x + 1, 0, width - x - 3,
			      sums->bucket_ns > 0 ? VIEW_WARN : VIEW_DIM, text);
	view_grid_draw(&sums->grid, &body, false);
}

void view__sums_query(const struct view_timeline *tl, struct str *out)
{
	const struct view_sums *sums = &tl->sums;
	const long long from = sums->range.from, to = sums->range.to;
	const struct prof_track *track;

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
		 to - from, (long long)tl->clock[track->clock == IPS_DEVICE].extent.to, to, from,
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

static void view_add_text(struct view_timeline *tl, const char *name, const char *value)
{
	if (value && value[0] && tl->under.count < VIEW_FIELDS)
		tl->under.fields[tl->under.count++] = (struct view_field){name, value};
}

static void view_add_number(struct view_timeline *tl, const char *name, int64_t value)
{
	if (value != IPS_NULL)
		view_add_text(tl, name, arena_printf(&tl->under.arena, "%lld", (long long)value));
}

/* A time in the exact ns and as people read it, after @before. */
static void view_add_ns(struct view_timeline *tl, const char *name, int64_t ns, const char *before)
{
	char short_form[FMT_SIZE], exact[FMT_SIZE];

	if (ns > -1000 && ns < 1000)
		view_add_text(
			tl, name,
			arena_printf(&tl->under.arena, "%s%s", before, fmt_ns(short_form, ns)));
	else
		view_add_text(tl, name,
			      arena_printf(&tl->under.arena, "%s%s (%s ns)", before,
					   fmt_ns(short_form, ns), fmt_count(exact, ns)));
}

static const char *view_phase_text(char phase)
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
			return phases[i].text;
	return NULL;
}

/* What other screens know of it. */
static void view_belongs_fields(struct view_timeline *tl, struct prof_db *db, const char *operation,
				const char *name)
{
	const struct view_belongs *belongs = view_belongs(tl, db, operation ? operation : name);

	view_add_text(tl, "operation", operation);
	if (!belongs)
		return;
	view_add_text(tl, "layer", belongs->layer);
	view_add_number(tl, "program", belongs->program_id);
	if (belongs->tensors > 0)
		view_add_number(tl, "its tensors", belongs->tensors);
}

/* Without the spans in it. */
static void view_self_field(struct view_timeline *tl, struct prof_db *db)
{
	char ns[FMT_SIZE];
	bool exact;
	const int64_t self = view_self_ns(tl, db, &exact);

	if (self != IPS_NULL)
		view_add_text(tl, "self",
			      arena_printf(&tl->under.arena, "%s%s (%.1f %%)",
					   exact ? "" : "about ", fmt_ns(ns, self),
					   (double)self / (double)tl->under.span.dur_ns * 100));
}

static void view_span_fields(struct view_timeline *tl, struct prof_db *db)
{
	const struct prof_span *span = &tl->under.span;

	view_add_ns(tl, "start", span->start_ns, "");
	if (span->dur_ns == IPS_NULL)
		view_add_text(tl, "duration", "still open");
	else
		view_add_ns(tl, "duration", span->dur_ns, "");
	view_self_field(tl, db);
	view_add_text(tl, "phase", view_phase_text(span->phase));
	view_add_number(tl, "stage", span->stage);
	view_add_number(tl, "micro-batch", span->microbatch);
	view_add_number(tl, "step", span->step);
	view_add_number(tl, "weight update", span->weight_update);
	view_add_text(tl, "arguments", span->arguments);
	view_belongs_fields(tl, db, span->operation, span->name);
	view_add_text(tl, "waits for", view_flow_text(tl, db, true));
	view_add_text(tl, "leads to", view_flow_text(tl, db, false));
	view_add_number(tl, "execution", span->execution);
	view_add_number(tl, "epoch", span->epoch);
	view_add_text(tl, "mode", span->mode);
	view_add_number(tl, "IPU", span->ipu);
	view_add_number(tl, "replica", span->replica);
	view_add_text(tl, "category", span->category);
	view_add_text(tl, "clock", span->clock);
	view_add_number(tl, "depth", span->depth);
	view_add_number(tl, "span", span->span_id);
}

/* "worker 0 > Engine::run > update": the names around the span, outermost first. */
static void view_span_path(struct view_timeline *tl, struct prof_db *db)
{
	const char *names[MOST_PARENTS];
	int64_t parent = tl->under.span.parent_id;
	size_t length;
	int count = 0;

	while (parent != IPS_NULL && count < MOST_PARENTS) {
		struct prof_span span;

		if (prof_timeline_span(db, parent, &tl->under.arena, &span, NULL) != ST_OK)
			break;
		names[count++] = span.name ? span.name : "?";
		parent = span.parent_id;
	}
	length = (size_t)snprintf(tl->under.path, sizeof(tl->under.path), "%s",
				  view__lane(tl)->track->name);
	while (count-- > 0 && length < sizeof(tl->under.path))
		length += (size_t)snprintf(tl->under.path + length, sizeof(tl->under.path) - length,
					   " > %s", names[count]);
}

static void view_gap_fields(struct view_timeline *tl)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_gap *gap = &tl->under.gap;
	const bool bsp =
		tl->choice.way == VIEW_BSP; /* whose steps are not what the lane is idle of */

	tl->under.gap_run = -1;
	if (!gap->dark)
		for (int i = 0; i < tl->run_count && lane->pipeline; i++)
			if (tl->runs[i].group == view__group(tl, lane) &&
			    tl->cursor.ns >= tl->runs[i].from && tl->cursor.ns < tl->runs[i].to)
				tl->under.gap_run = i;
	if (gap->begun)
		view_add_ns(tl,
			    gap->dark ? "untraced from"
			    : bsp     ? "no stage from"
				      : "idle from",
			    gap->at.from, "");
	view_add_ns(tl,
		    gap->dark ? "for"
		    : bsp     ? "no stage for"
			      : "idle for",
		    gap->at.to - gap->at.from, gap->begun && gap->ended ? "" : "at least ");
	view_add_text(tl, "lane", lane->track->name);
	if (tl->under.gap_run >= 0) {
		view_add_number(tl, "weight update", tl->runs[tl->under.gap_run].weight_update);
		view_add_text(tl, "bubble", "within the pipeline run");
	}
}

/* Transfers and syncs within a run are idle time to the bubble: why. */
static void view_cause_field(struct view_timeline *tl)
{
	static const char *const why[VIEW_CAUSES] = {
		"", "ramp-up: before its first work", "ramp-down: after its last work",
		"imbalance: waits for others", "communication: its input is on the way"};

	view_add_text(tl, "idle because", why[tl->bubbles.at_cursor]);
}

/* Device lanes hold the first executions only: say so where one of the others would be. */
static void view_untraced_fields(struct view_timeline *tl, struct prof_db *db)
{
	static const char sql[] =
		"SELECT execution, traced, (SELECT min(execution) FROM executions WHERE traced = "
		"1), "
		"(SELECT max(execution) FROM executions WHERE traced = 1), "
		"(SELECT count(*) FROM executions WHERE traced = 1) FROM executions "
		"WHERE start_ns <= :at ORDER BY start_ns DESC LIMIT 1";
	const int64_t at = view_link_map(tl->links.points, tl->links.count, tl->cursor.ns, 0);
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db, sql, NULL) != ST_OK)
		return;
	prof_query_int(query, ":at", at);
	if (prof_query_step(query, &row, NULL) == ST_OK && row && prof_column_int(query, 1) == 0 &&
	    prof_column_int(query, 4) > 0) {
		const long long first = prof_column_int(query, 2), last = prof_column_int(query, 3);

		snprintf(tl->under.hint, sizeof(tl->under.hint),
			 "execution %lld has no device lanes: "
			 "autoReport.executionProfileProgramRunCount %lld",
			 (long long)prof_column_int(query, 0),
			 (long long)prof_column_int(query, 4));
		view_add_text(
			tl, "recorded for",
			arena_printf(&tl->under.arena, "executions %lld to %lld", first, last));
		view_add_text(tl, "all are in", "stage_timings");
	}
	prof_query_close(query);
}

/* A span that was jumped to stays selected while the cursor is in it. */
static bool view_pinned(struct view_timeline *tl, struct prof_db *db)
{
	int64_t end;

	if (tl->cursor.pinned == IPS_NULL ||
	    prof_timeline_span(db, tl->cursor.pinned, &tl->under.arena, &tl->under.span, NULL) !=
		    ST_OK)
		return false;
	end = tl->under.span.dur_ns == IPS_NULL
		      ? INT64_MAX
		      : tl->under.span.start_ns +
				(tl->under.span.dur_ns > 0 ? tl->under.span.dur_ns : 1);
	return tl->cursor.ns >= tl->under.span.start_ns && tl->cursor.ns < end;
}

/* A step of the device, in the view of steps. */
static void view_step_fields(struct view_timeline *tl, struct prof_db *db)
{
	const struct view_step *at = &tl->device.at_cursor;
	const struct prof_step *step = at->step;
	char number[FMT_SIZE];

	view_add_text(tl, "type", step->type);
	view_belongs_fields(tl, db, step->operation, NULL);
	view_add_text(tl, "cycles",
		      arena_printf(&tl->under.arena, "%s", fmt_count(number, step->cycles)));
	view_add_ns(tl, "duration", at->to_ns - at->from_ns, "");
	view_add_number(tl, "active tiles", step->active_tiles);
	if (!isnan(step->tile_balance))
		view_add_text(tl, "tile balance",
			      arena_printf(&tl->under.arena, "%.3f", step->tile_balance));
	if (!isnan(step->active_tile_balance))
		view_add_text(tl, "of active",
			      arena_printf(&tl->under.arena, "%.3f", step->active_tile_balance));
	view_add_number(tl, "bytes in", step->bytes_in);
	view_add_number(tl, "bytes out", step->bytes_out);
	view_add_text(tl, "phase", view_phase_text(step->phase));
	view_add_number(tl, "stage", step->stage);
	if (step->microbatch != IPS_NULL)
		view_add_number(tl, "micro-batch", step->microbatch + at->run.first_microbatch);
	view_add_number(tl, "weight update", at->run.weight_update);
	view_add_number(tl, "trace step", step->trace_step);
	view_add_number(tl, "its program", step->program_id);
	view_add_ns(tl, "start", at->from_ns, "");
	snprintf(tl->under.path, sizeof(tl->under.path), "%s", view__lane(tl)->track->name);
}

enum status view__detail_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const struct view_lane *lane = view__lane(tl);
	enum status status;

	arena_reset(&tl->under.arena);
	tl->under.count = 0;
	tl->under.in_gap = false;
	tl->under.path[0] = tl->under.hint[0] = '\0';
	tl->under.selected = IPS_NULL;
	if (tl->device.at_cursor.step) {
		view_step_fields(tl, db);
		return ST_OK;
	}
	if (view_pinned(tl, db)) {
		tl->under.selected = tl->cursor.pinned;
	} else {
		tl->cursor.pinned = IPS_NULL;
		status = prof_timeline_at(db, lane->track->track_id, tl->cursor.ns,
					  tl->cursor.depth, &tl->under.selected, err);
		if (status == ST_OK && tl->under.selected != IPS_NULL)
			status = prof_timeline_span(db, tl->under.selected, &tl->under.arena,
						    &tl->under.span, err);
		if (status != ST_OK)
			return status;
	}
	tl->under.in_gap =
		(tl->under.selected == IPS_NULL || tl->under.span.depth < lane->work_depth) &&
		view__gap_at(tl, db, tl->cursor.ns, &tl->under.gap);
	if (tl->under.in_gap)
		view_gap_fields(tl);
	view_cause_field(tl);
	if (tl->under.in_gap && lane->pipeline && lane->track->clock == IPS_DEVICE)
		view_untraced_fields(tl, db);
	if (tl->under.selected != IPS_NULL) {
		if (!tl->under.in_gap)
			view_span_fields(tl, db);
		view_span_path(tl, db);
	}
	return ST_OK;
}
