/*
 * Sums by name: how often and how long what ran on the cursor's lane in the window, or between x
 * and the cursor.
 *
 * A range of up to MOST_SPANS spans is summed exactly; of a longer one buckets are, each under the
 * site with most of its time, and the heading says so. Nothing is read again while lane and range
 * stay. Of each span what lies in the range counts.
 *
 * Threading: one thread. Ownership: the rows are the grid's, which is the timeline's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define COLUMNS    2000  /* that a range's buckets are read for */
#define MOST_SPANS 10000 /* that are summed one by one */

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
	struct view_sum *sums; /* tl->site_count + 1 */
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
	return tl->by_name && tl->way != VIEW_BSP;
}

bool view__sums_lack_room(const struct view_timeline *tl, const struct view_context *context,
			  char *out, size_t size)
{
	const int from = tl->mark ? VIEW_SUMS_FROM_TWO : VIEW_SUMS_FROM;
	const int rows = context->body.height;

	if (!view__shows_sums(tl) || !tl->details || rows >= from)
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
	struct view_sum *sum = &summing->sums[site ? (size_t)(site - tl->sites) : tl->site_count];
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
	summing->sums = arena_alloc(&summing->arena, tl->site_count + 1, sizeof(*summing->sums));
	if (!summing->sums)
		return err_nomem(err);
	memset(summing->sums, 0, (tl->site_count + 1) * sizeof(*summing->sums));
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
	const int64_t names = view_join_names(summing->sums, summing->tl->site_count + 1);
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
	const bool measured = !tl->mark && tl->measured_ns != IPS_NULL && tl->measured_clock == c &&
			      tl->measured_ns != tl->cursor_ns;
	bool same;

	if (measured && tl->measured_ns < tl->cursor_ns)
		range = (struct view_window){tl->measured_ns, tl->cursor_ns};
	else if (measured)
		range = (struct view_window){tl->cursor_ns, tl->measured_ns};
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
	snprintf(text, sizeof(text), " by name: %s ", tl->lanes[tl->lane].track->name);
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

	if (!sums->known || tl->lane >= tl->lane_count || sums->rows.to < sums->rows.from)
		return;
	track = tl->lanes[tl->lane].track;
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
