/*
 * The device's steps as bulk synchronous phases: per IPU compute, exchange, sync, host copies and
 * idle time between runs, with the tiles that work.
 *
 * A step is a template's, at the time of a run. Only the runs of the window are read; where a run
 * is narrower than a few cells its template's sums are added instead of its steps, and where there
 * are more runs than cells can show, a sample of them.
 *
 * A column's colour is what most of its time goes to, its height the share of tiles at work (or the
 * tile balance), and under it stands a letter, or a name where it is wide.
 *
 * Threading: one thread. Ownership: templates live in an arena of their own, for good; cells in
 * that of the picture.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

#define MOST_RUNS   1024
#define NARROW      6   /* cells of a run that is laid as a whole */
#define MOST_TRACES 256 /* templates that are kept */

static const char *const view_kind_names[VIEW_KINDS] = {"idle", "compute", "exchange", "sync",
							"host copy"};

struct view_kind_style {
	enum view_style style;
	char letter;
};

static const struct view_kind_style view_kinds[VIEW_KINDS] = {{VIEW_DIM, '.'},
							      {VIEW_COMPUTE, 'C'},
							      {VIEW_EXCHANGE, 'X'},
							      {VIEW_SYNC, 'S'},
							      {VIEW_HOST_COPY, 'H'}};

static enum view_kind view_kind_of(const struct prof_step *step)
{
	static const struct {
		const char *begins;
		enum view_kind kind;
	} types[] = {{"Sync", VIEW_KIND_SYNC},
		     {"StreamCopy", VIEW_KIND_HOST_COPY},
		     {"DoExchange", VIEW_KIND_EXCHANGE},
		     {"GlobalExchange", VIEW_KIND_EXCHANGE}};

	for (size_t i = 0; step->type && i < sizeof(types) / sizeof(types[0]); i++)
		if (strncmp(step->type, types[i].begins, strlen(types[i].begins)) == 0)
			return types[i].kind;
	return VIEW_KIND_COMPUTE;
}

static enum view_kind view_cell_kind(const struct view_bsp *cell)
{
	int best = VIEW_KIND_IDLE;

	for (int k = VIEW_KIND_COMPUTE; k < VIEW_KINDS; k++)
		if (cell->cycles[k] > cell->cycles[best])
			best = k;
	return (enum view_kind)best;
}

/* What the column's height stands for. Steps that tell nothing of tiles are of all of them. */
static double view_cell_height(const struct view_timeline *tl, const struct view_bsp *cell)
{
	const double busy = cell->all - cell->cycles[VIEW_KIND_IDLE];
	const double told = tl->choice.balance ? cell->balanced : cell->told;
	const double part = tl->choice.balance ? cell->balance : cell->tiles;

	if (cell->all <= 0)
		return 0;
	if (tl->choice.balance && told > 0)
		return part / told;
	return fmin(1, (part + (tl->choice.balance ? 0 : busy - told)) / cell->all);
}

static void view_draw_cell(const struct view_timeline *tl, const struct view_lane *lane,
			   struct view_pane *pane, int x, int rows, bool cursor)
{
	const struct view_bsp *cell = &lane->bsp[x];
	const struct view_kind_style *kind = &view_kinds[view_cell_kind(cell)];
	const double height = view_cell_height(tl, cell) * rows;

	for (int i = 0; i < rows; i++) {
		const double part = height - (rows - 1 - i);

		if (part > 0)
			view_put(pane, x, lane->y + i, kind->style,
				 pane->canvas->plain || pane->canvas->ascii
					 ? (uint32_t)(unsigned char)kind->letter
					 : view_level_char(pane->canvas, part));
		else if (cursor)
			view_glyphs(pane, x, lane->y + i, VIEW_DIM, VIEW_GLYPH_VERTICAL_DOTS, 1);
	}
}

/* "MatMul/Dense_256" of a step that is wide, else its kind's letter. */
static void view_draw_names(const struct view_timeline *tl, const struct view_lane *lane,
			    struct view_pane *pane, int y, int cursor_x)
{
	for (int x = 0, end; x < tl->width; x = end) {
		const struct view_bsp *cell = &lane->bsp[x];
		const enum view_kind kind = view_cell_kind(cell);
		const struct prof_step *step = kind == VIEW_KIND_IDLE ? NULL : cell->step;
		const char *name = NULL;

		for (end = x + 1; step && end < tl->width && lane->bsp[end].step == step; end++)
			;
		if (step)
			name = step->operation ? step->operation : step->name;
		if (cell->dark) {
			view_glyphs(pane, x, y, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
			continue;
		}
		view_textf(pane, x, y, x == cursor_x ? VIEW_SELECTED : view_kinds[kind].style, "%c",
			   view_kinds[kind].letter);
		if (name && strrchr(name, '/') && view_text_width(name) > end - x - 3)
			name = strrchr(name, '/') + 1;
		if (end - x >= 7 && name)
			view_text_cut(pane, x + 2, y, end - x - 3, view_kinds[kind].style, name);
		else
			for (int i = x + 1; i < end; i++)
				view_put(pane, i, y,
					 i == cursor_x ? VIEW_SELECTED : view_kinds[kind].style,
					 (uint32_t)(unsigned char)view_kinds[kind].letter);
	}
}

void view__draw_bsp(const struct view_timeline *tl, const struct view_lane *lane,
		    struct view_pane *pane)
{
	const int height = view__lane_height(lane);
	const int cursor_x = pane->canvas->plain ? -1 : view__cursor_column(tl, 1);

	if (!lane->bsp)
		return;
	if (height > 1)
		for (int x = 0; x < tl->width; x++)
			view_draw_cell(tl, lane, pane, x, height - 1, x == cursor_x);
	view_draw_names(tl, lane, pane, lane->y + height - 1, cursor_x);
}

/* "C compute 16.4 %  X exchange 2.0 % ...  height: active tiles". */
void view__draw_bsp_key(const struct view_timeline *tl, struct view_pane *pane, int x)
{
	static const char *const brief[VIEW_KINDS] = {"idle", "comp", "exch", "sync", "host"};
	const bool wide = pane->rect.width - x >= 100;
	double all = 0;

	for (int k = 0; k < VIEW_KINDS; k++)
		all += tl->device.share[k];
	if (all <= 0) {
		view_text(pane, x, 0, VIEW_WARN, "no device steps are recorded here");
		return;
	}
	for (int k = 1; k <= VIEW_KINDS; k++) {
		const int kind = k % VIEW_KINDS; /* idle last */

		x += view_textf(pane, x, 0, view_kinds[kind].style, "%c %s",
				view_kinds[kind].letter,
				wide ? view_kind_names[kind] : brief[kind]);
		x += 2 + view_textf(pane, x + 1, 0, VIEW_NORMAL, "%.1f%s",
				    tl->device.share[kind] / all * 100, wide ? " %" : "");
	}
	if (tl->device.stride > 1)
		view_textf(pane, x, 0, VIEW_DIM, "1 run of %lld", (long long)tl->device.stride);
	else
		view_textf(pane, x, 0, VIEW_DIM, "height: %s",
			   tl->choice.balance ? "tile balance" : "active tiles");
}

/* ---- templates ------------------------------------------------------------------------------- */

/* The template, read once; NULL: it cannot be read. Its place may change with the next one. */
static const struct view_trace *view_trace(struct view_timeline *tl, struct prof_db *db, int64_t id)
{
	struct view_trace new = {0};

	for (size_t i = 0; i < tl->device.count; i++)
		if (tl->device.traces[i].trace.trace_id == id)
			return &tl->device.traces[i];
	if (tl->device.count == MOST_TRACES ||
	    mem_grow(&tl->device.traces, &tl->device.capacity, tl->device.count + 1,
		     sizeof(*tl->device.traces)) ||
	    prof_timeline_trace(db, id, &tl->device.arena, &new.trace, NULL) != ST_OK ||
	    new.trace.count == 0)
		return NULL;
	for (int i = 0; i < new.trace.count; i++)
		if (new.trace.steps[i].active_tiles > new.tiles)
			new.tiles = new.trace.steps[i].active_tiles;
	tl->device.traces[tl->device.count++] = new;
	return &tl->device.traces[tl->device.count - 1];
}

/* The first of the IPU's steps that ends after @cycle of the run; trace.count: none. */
static int view_first_step(const struct prof_trace *trace, int64_t ipu, int64_t cycle)
{
	const struct prof_step *steps = trace->steps;
	int at;

	SORTED_FIRST(at, 0, trace->count,
		     steps[at].ipu < ipu || (steps[at].ipu == ipu &&
					     steps[at].start_cycle + steps[at].cycles <= cycle));
	return at < trace->count && steps[at].ipu == ipu ? at : trace->count;
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct view_sheet {
	struct view_timeline *tl;
	struct view_lane *lane;
	struct view_bsp *cells;
	struct view_window window; /* cycles */
	double per_cell;
};

static void view_add_cycles(struct view_bsp *cell, const struct view_trace *trace,
			    const struct prof_step *step, double cycles)
{
	cell->cycles[view_kind_of(step)] += cycles;
	if (step->active_tiles >= 0 && trace->tiles > 0) {
		cell->tiles += cycles * (double)step->active_tiles / (double)trace->tiles;
		cell->told += cycles;
	}
	if (!isnan(step->tile_balance)) {
		cell->balance += cycles * step->tile_balance;
		cell->balanced += cycles;
	}
	if (cycles > cell->best) {
		cell->best = cycles;
		cell->step = step;
	}
}

/* Lay one step that begins at cycle @start. */
static void view_lay_step(const struct view_sheet *sheet, const struct view_trace *trace,
			  const struct prof_step *step, int64_t start)
{
	const double from = (double)(start - sheet->window.from) / sheet->per_cell;
	const double to = (double)(start + step->cycles - sheet->window.from) / sheet->per_cell;
	const int last = (int)fmin(ceil(to), sheet->tl->width);

	for (int x = from > 0 ? (int)from : 0; x < last; x++) {
		const double part = fmin(to, x + 1) - fmax(from, x);

		if (part > 0)
			view_add_cycles(&sheet->cells[x], trace, step, part * sheet->per_cell);
	}
}

/* A run that is narrower than its steps: all of them into the cell that it begins in. */
static void view_lay_whole(const struct view_sheet *sheet, const struct view_trace *trace,
			   int64_t ipu, int64_t start)
{
	const int64_t middle = start + trace->trace.cycles / 2;
	int64_t x = sat_real((double)(middle - sheet->window.from) / sheet->per_cell);

	x = x < 0 ? 0 : x >= sheet->tl->width ? sheet->tl->width - 1 : x;
	for (int i = view_first_step(&trace->trace, ipu, IPS_NULL);
	     i < trace->trace.count && trace->trace.steps[i].ipu == ipu; i++)
		view_add_cycles(&sheet->cells[x], trace, &trace->trace.steps[i],
				(double)trace->trace.steps[i].cycles);
	sheet->cells[x].step = NULL;
}

static void view_lay_run(const struct view_sheet *sheet, const struct view_trace *trace,
			 const struct prof_run *run, int64_t ipu)
{
	const int64_t own = ipu - run->first_ipu;
	const double cells = (double)trace->trace.cycles / sheet->per_cell;

	if (cells < NARROW) {
		view_lay_whole(sheet, trace, own, run->start_cycle);
		return;
	}
	for (int i = view_first_step(&trace->trace, own, sheet->window.from - run->start_cycle);
	     i < trace->trace.count && trace->trace.steps[i].ipu == own; i++) {
		const int64_t start = run->start_cycle + trace->trace.steps[i].start_cycle;

		if (start >= sheet->window.to)
			break;
		view_lay_step(sheet, trace, &trace->trace.steps[i], start);
	}
}

/* Cycles of the cell that were recorded. */
static double view_traced_cycles(const struct view_sheet *sheet, int x)
{
	const struct view_window window = sheet->tl->clock[IPS_DEVICE].window;
	const struct view_window cell = {view_window_time(window, sheet->tl->width, x),
					 view_window_time(window, sheet->tl->width, x + 1)};

	return cell.to > cell.from
		       ? sheet->per_cell * (double)view__traced_ns(sheet->tl, sheet->lane, cell) /
				 (double)(cell.to - cell.from)
		       : sheet->per_cell;
}

/* What no step has is idle, of the lane too, unless it was not traced or the runs are a sample:
 * then only their mixture is known. */
static void view_finish(const struct view_sheet *sheet, bool sampled)
{
	double all = 0, idle = 0;

	for (int x = 0; x < sheet->tl->width; x++) {
		struct view_bsp *cell = &sheet->cells[x];
		const double traced = view_traced_cycles(sheet, x);
		double busy = 0;

		for (int k = VIEW_KIND_COMPUTE; k < VIEW_KINDS; k++)
			busy += cell->cycles[k];
		cell->dark = busy <= 0 && traced < sheet->per_cell / 2;
		if (sampled && busy <= 0 && x > 0 && !cell->dark) {
			*cell = sheet->cells[x - 1];
			continue;
		}
		cell->all = !sampled && busy < traced ? traced : busy;
		cell->cycles[VIEW_KIND_IDLE] = cell->all - busy;
		for (int k = 0; k < VIEW_KINDS; k++)
			sheet->tl->device.share[k] += cell->cycles[k];
		all += cell->all;
		idle += cell->cycles[VIEW_KIND_IDLE];
	}
	sheet->lane->idle = sampled || all <= 0 ? NAN : idle / all;
}

static enum status view_load_lane(struct view_timeline *tl, struct view_lane *lane,
				  struct prof_db *db, const struct prof_run *runs, int count,
				  struct err *err)
{
	const struct view_window ns = tl->clock[IPS_DEVICE].window;
	struct view_sheet sheet = {.tl = tl, .lane = lane};

	lane->bsp = arena_alloc(&tl->picture, (size_t)tl->width, sizeof(*lane->bsp));
	if (!lane->bsp)
		return err_nomem(err);
	memset(lane->bsp, 0, (size_t)tl->width * sizeof(*lane->bsp));
	sheet.cells = lane->bsp;
	sheet.window = (struct view_window){sat_real((double)ns.from / tl->links.ns_per_cycle),
					    sat_real((double)ns.to / tl->links.ns_per_cycle)};
	sheet.per_cell = (double)(sheet.window.to - sheet.window.from) / tl->width;
	if (sheet.per_cell <= 0)
		return ST_OK;
	for (int i = 0; i < count; i++) {
		const struct view_trace *trace = view_trace(tl, db, runs[i].trace_id);

		/* By the IPU's number, the run is its replica's or it has no steps of it. */
		if (trace && runs[i].rank == lane->track->rank &&
		    runs[i].start_cycle + trace->trace.cycles > sheet.window.from)
			view_lay_run(&sheet, trace, &runs[i], lane->track->ipu);
	}
	view_finish(&sheet, tl->device.stride > 1);
	return ST_OK;
}

/* The step of the cursor's lane at the cursor. */
static void view_find_step(struct view_timeline *tl, struct prof_db *db,
			   const struct prof_run *runs, int count)
{
	const struct view_lane *lane = view__lane(tl);
	const int64_t cycle = sat_real((double)tl->cursor.ns / tl->links.ns_per_cycle);

	tl->device.at_cursor = (struct view_step){0};
	for (int i = 0; i < count && lane; i++) {
		const struct view_trace *trace = view_trace(tl, db, runs[i].trace_id);
		const struct prof_step *step;
		int at;

		if (!trace || runs[i].rank != lane->track->rank || runs[i].start_cycle > cycle)
			continue;
		at = view_first_step(&trace->trace, lane->track->ipu - runs[i].first_ipu,
				     cycle - runs[i].start_cycle);
		if (at == trace->trace.count)
			continue;
		step = &trace->trace.steps[at];
		if (runs[i].start_cycle + step->start_cycle > cycle)
			continue;
		tl->device.at_cursor.step = step;
		tl->device.at_cursor.run = runs[i];
		tl->device.at_cursor.from_ns =
			sat_real((double)sat_add(runs[i].start_cycle, step->start_cycle) *
				 tl->links.ns_per_cycle);
		tl->device.at_cursor.to_ns =
			sat_add(tl->device.at_cursor.from_ns,
				sat_real((double)step->cycles * tl->links.ns_per_cycle));
	}
}

enum status view__bsp_load(struct view_timeline *tl, struct view_context *context, struct err *err)
{
	const struct view_window ns = tl->clock[IPS_DEVICE].window;
	struct prof_db *db = context->source->db;
	const struct view_lane *first = view__lane(tl);
	struct prof_run *runs;
	int count = 0;
	enum status status;

	tl->device.at_cursor = (struct view_step){0};
	memset(tl->device.share, 0, sizeof(tl->device.share));
	for (int i = 0; i < tl->all_lanes; i++)
		tl->lanes[i].bsp = NULL;
	if (tl->choice.way != VIEW_BSP || !first)
		return ST_OK;
	status = prof_timeline_runs(db, first->track->rank,
				    sat_real((double)ns.from / tl->links.ns_per_cycle),
				    sat_real((double)ns.to / tl->links.ns_per_cycle), MOST_RUNS,
				    &tl->picture, &runs, &count, &tl->device.stride, err);
	/* The first files have no runs of templates: nothing to show, and no harm. */
	if (status == ST_INVALID)
		return ST_OK;
	for (int i = 0; i < tl->lane_count && status == ST_OK; i++) {
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		if (tl->lanes[i].rows > 0)
			status = view_load_lane(tl, &tl->lanes[i], db, runs, count, err);
	}
	if (status == ST_OK)
		view_find_step(tl, db, runs, count);
	return status;
}

/* ---- the query ------------------------------------------------------------------------------- */

void view__bsp_query(const struct view_timeline *tl, struct str *out)
{
	const struct view_window ns = tl->clock[IPS_DEVICE].window;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (int i = 0; i < tl->run_count; i++) {
		first = min(tl->runs[i].execution, first);
		last = max(tl->runs[i].execution, last);
	}
	str_add(out, "SELECT ipu, trace_step, type, name, operation, start_cycle, cycles, "
		     "active_tiles, tile_balance, weight_update, microbatch\nFROM device_steps\n"
		     "WHERE ");
	if (first <= last && first != IPS_NULL)
		str_addf(out, "execution BETWEEN %lld AND %lld AND ", (long long)first,
			 (long long)last);
	str_addf(out, "start_ns < %lld AND start_ns + dur_ns > %lld\nORDER BY ipu, start_cycle;\n",
		 (long long)ns.to, (long long)ns.from);
}
