/*
 * Reading the histograms of one tensor over the run, of one report or of two.
 *
 * Bins are signs and binary exponents (outfeed_histogram.h): in the order of their numbers they are
 * in the order of their values. Two reports get the same bins, columns of as many histograms and
 * as many columns, so that the same place and shade mean the same in both.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "common/str.h"

#define BIN_LEAST    (-256)
#define BIN_GREATEST 257
#define BINS         (BIN_GREATEST - BIN_LEAST + 1)
#define COLUMNS_MOST 512
#define RECENT       64 /* moments among which another replica's histogram is looked for */

/* When a histogram was taken, and of whom the first one was. */
struct moment {
	int64_t step, update, microbatch, replica;
	char mode[12];
	int64_t number; /* of the moments */
};

struct bins {
	double low[BINS], high[BINS];
	bool there[BINS];
};

/* Counts are gathered for as many columns as there are moments, two becoming one when there are too
 * many. */
struct gathering {
	struct view_tensors *screen;
	struct prof_db *db;
	struct bins *bins;
	int side;
	int64_t context;            /* of the last row */
	int64_t column;             /* that it went to */
	bool wanted;                /* of a replica that is shown */
	int64_t moments;            /* so far */
	int64_t share;              /* moments of a column */
	struct moment last[RECENT]; /* by their numbers */
	double *count;              /* COLUMNS_MOST x BINS */
	int64_t *step, *update;
};

/* ---- gathering ------------------------------------------------------------------------------- */

static void gather_halve(struct gathering *g)
{
	for (int c = 0; c < COLUMNS_MOST / 2; c++) {
		g->step[c] = g->step[2 * c];
		g->update[c] = g->update[2 * c];
		for (int b = 0; b < BINS; b++)
			g->count[c * BINS + b] =
				g->count[2 * c * BINS + b] + g->count[(2 * c + 1) * BINS + b];
	}
	memset(g->count + COLUMNS_MOST / 2 * BINS, 0, COLUMNS_MOST / 2 * BINS * sizeof(*g->count));
	g->share *= 2;
}

static bool same_moment(const struct moment *a, const struct moment *b)
{
	return a->replica != b->replica && a->step == b->step && a->update == b->update &&
	       a->microbatch == b->microbatch && strcmp(a->mode, b->mode) == 0;
}

/* The column of a histogram: that of another replica's at the same moment, or a new one. */
static void gather_moment(struct gathering *g, struct moment *moment)
{
	for (int64_t i = g->moments - 1; i >= 0 && i >= g->moments - RECENT; i--)
		if (same_moment(&g->last[i % RECENT], moment)) {
			g->column = i / g->share;
			return;
		}
	if (g->moments == COLUMNS_MOST * g->share)
		gather_halve(g);
	g->column = g->moments / g->share;
	if (g->moments % g->share == 0) {
		g->step[g->column] = moment->step;
		g->update[g->column] = moment->update;
	}
	g->last[g->moments++ % RECENT] = *moment;
}

static void gather_row(struct gathering *g, const struct prof_query *query)
{
	struct view_tensor_histograms *side = &g->screen->histogram.side[g->side];
	const int64_t context = prof_column_int(query, 0), bin = prof_column_int(query, 1);
	int b;

	if (bin < BIN_LEAST || bin > BIN_GREATEST)
		return;
	if (g->context != context || g->moments == 0) {
		struct moment moment = {.step = prof_column_int(query, 5),
					.update = prof_column_int(query, 6),
					.microbatch = prof_column_int(query, 7),
					.replica = prof_column_int(query, 8)};
		const char *mode = prof_column_text(query, 9);

		str_copy(moment.mode, sizeof(moment.mode), mode ? mode : "");
		g->context = context;
		g->wanted = view__replica_shows(g->screen, moment.replica);
		if (g->wanted)
			gather_moment(g, &moment);
		side->found += g->wanted;
	}
	if (!g->wanted)
		return;
	b = (int)(bin - BIN_LEAST);
	g->bins->low[b] = prof_column_real(query, 2);
	g->bins->high[b] = prof_column_real(query, 3);
	g->bins->there[b] = true;
	g->count[g->column * BINS + b] += (double)prof_column_int(query, 4);
}

static enum status gather_range(void *user, int64_t from, int64_t to, struct err *err)
{
	struct gathering *g = user;
	struct prof_query *query;
	enum status status = view__tensors_rows(
		&query, g->screen, g->side, g->db,
		"SELECT h.context_id, h.bin, h.low, h.high, h.count, c.step, c.weight_update, "
		"c.microbatch, c.replica, c.mode "
		"FROM tensor_histogram_rows h LEFT JOIN contexts c ON c.context_id = h.context_id "
		"WHERE h.row_id >= :from AND h.row_id < :to AND h.tensor_id = :tensor "
		"AND (:rank IS NULL OR c.rank = :rank)",
		from, to, err);

	if (status != ST_OK)
		return status;
	while (prof_query_next(query, &status, err))
		gather_row(g, query);
	prof_query_close(query);
	g->screen->histogram.side[g->side].looked += to - from;
	return status;
}

static enum status gather_side(struct gathering *g, struct view_context *context, struct err *err)
{
	struct view_tensor_histograms *side = &g->screen->histogram.side[g->side];
	struct arena *arena = &g->screen->page_arena;
	enum status status;

	g->db = view__tensors_db(context, g->side);
	if (!g->db || g->screen->id[g->side] == IPS_NULL)
		return ST_OK;
	g->count = arena_alloc(arena, (size_t)COLUMNS_MOST * BINS, sizeof(*g->count));
	g->step = arena_alloc(arena, COLUMNS_MOST, sizeof(*g->step));
	g->update = arena_alloc(arena, COLUMNS_MOST, sizeof(*g->update));
	if (!g->count || !g->step || !g->update)
		return err_nomem(err);
	status = view__last_row(g->db, "SELECT max(row_id) FROM tensor_histogram_rows", &side->all,
				err);
	return status == ST_OK ? report_ranges(side->all, VIEW_TENSORS_HISTOGRAMS, 2048,
					       gather_range, g, err)
			       : status;
}

/* ---- the pictures ---------------------------------------------------------------------------- */

/* The bins that occur in either, the greatest values first. */
static enum status picture_bins(struct view_tensor_histogram *h, const struct bins *bins,
				struct arena *arena, struct err *err)
{
	int count = 0;

	for (int b = 0; b < BINS; b++)
		count += bins->there[b];
	h->low = arena_alloc(arena, (size_t)count + 1, sizeof(*h->low));
	h->high = arena_alloc(arena, (size_t)count + 1, sizeof(*h->high));
	h->bin = arena_alloc(arena, (size_t)count + 1, sizeof(*h->bin));
	if (!h->low || !h->high || !h->bin)
		return err_nomem(err);
	for (int b = BINS - 1; b >= 0; b--) {
		if (!bins->there[b])
			continue;
		h->low[h->bins] = bins->low[b];
		h->high[h->bins] = bins->high[b];
		h->bin[h->bins++] = b + BIN_LEAST;
	}
	return ST_OK;
}

static enum status picture_side(struct view_tensor_histogram *h, const struct gathering *g,
				struct arena *arena, struct err *err)
{
	struct view_tensor_histograms *side = &h->side[g->side];
	const size_t cells = (size_t)h->bins * (size_t)h->columns;

	side->step = g->step;
	side->update = g->update;
	if (g->moments > 0) {
		side->last_step = g->last[(g->moments - 1) % RECENT].step;
		side->last_update = g->last[(g->moments - 1) % RECENT].update;
	}
	side->count = arena_alloc(arena, cells + 1, sizeof(*side->count));
	if (!side->count)
		return err_nomem(err);
	for (size_t i = 0; i < cells; i++) {
		const size_t b = (size_t)(h->bin[i / (size_t)h->columns] - BIN_LEAST);
		const size_t c = i % (size_t)h->columns;
		const double count = (int)c < side->columns ? g->count[c * BINS + b] : 0;

		side->count[i] = count > 0 ? count : (double)NAN;
		h->greatest = fmax(h->greatest, count);
	}
	return ST_OK;
}

/* With D only what differs is left: what both have as often at the same place is taken out. */
static void picture_differ(struct view_tensor_histogram *h)
{
	struct view_tensor_histograms *source = &h->side[0], *target = &h->side[1];

	for (int i = 0; i < h->bins * h->columns; i++) {
		const int c = i % h->columns;
		const double a = source->count[i], b = target->count[i];
		const bool both = c < source->columns && c < target->columns &&
				  source->step[c] == target->step[c] &&
				  source->update[c] == target->update[c];

		if (both && !(a < b || a > b) && isnan(a) == isnan(b))
			source->count[i] = target->count[i] = (double)NAN;
		else
			h->differs = true;
	}
}

static enum status gather_pictures(struct gathering *g, struct view_tensors *screen,
				   struct err *err)
{
	struct view_tensor_histogram *h = &screen->histogram;
	enum status status = picture_bins(h, g[0].bins, &screen->page_arena, err);

	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++) {
		/* A column is as many moments in both. */
		while (g[side].moments > 0 && g[side].share < g[!side].share)
			gather_halve(&g[side]);
		h->side[side].columns =
			(int)((g[side].moments + g[side].share - 1) / g[side].share);
		h->columns = max(h->columns, h->side[side].columns);
	}
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = picture_side(h, &g[side], &screen->page_arena, err);
	return status;
}

enum status view__histogram_load(struct view_tensors *screen, struct view_context *context,
				 struct err *err)
{
	struct bins *bins;
	struct gathering *g;
	enum status status = ST_OK;

	screen->histogram = (struct view_tensor_histogram){0};
	arena_reset(&screen->page_arena);
	bins = arena_alloc(&screen->page_arena, 1, sizeof(*bins));
	g = arena_alloc(&screen->page_arena, VIEW_TENSORS_SIDES, sizeof(*g));
	if (!bins || !g)
		return err_nomem(err);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++) {
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		g[side].screen = screen;
		g[side].bins = bins;
		g[side].side = side;
		g[side].share = 1;
		status = gather_side(&g[side], context, err);
	}
	if (status == ST_OK)
		status = gather_pictures(g, screen, err);
	if (status != ST_OK)
		screen->histogram = (struct view_tensor_histogram){0};
	else if (context->target && context->differ)
		picture_differ(&screen->histogram);
	return status;
}

int view__histogram_column(const struct view_tensors *screen, int side)
{
	const struct view_tensor_histograms *h = &screen->histogram.side[side];
	const struct report_tensor_row *row = view__curve_row(screen);
	int found = -1;

	for (int c = 0; row && c < h->columns; c++) {
		const bool steps = h->step[c] != IPS_NULL && row->step != IPS_NULL;
		const int64_t at = steps ? h->step[c] : h->update[c];
		const int64_t wanted = steps ? row->step : row->weight_update;

		if (at != IPS_NULL && at <= wanted)
			found = c;
	}
	return found;
}
