/*
 * The device's steps as bulk synchronous phases: per IPU compute, exchange, sync, host copies and
 * idle time between runs, with the tiles that work.
 *
 * A step is a template's, at the time of a run. Only the runs of the window are looked at; where a
 * run is narrower than a few cells its template's sums are laid instead of its steps, and where
 * there are more runs than cells can show, a sample of them.
 *
 * Threading: one thread. Ownership: templates live in an arena of their own, for good; cells in
 * that of the picture.
 */
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"

#define MOST_RUNS   1024
#define NARROW      6   /* cells of a run that is laid as a whole */
#define MOST_TRACES 256 /* templates that are kept */

/* ---- templates ------------------------------------------------------------------------------- */

/* The template, read once; NULL: it cannot be read. Its place may change with the next one. */
static const struct view_trace *view_trace(struct view_timeline *tl, struct prof_db *db, int64_t id)
{
	struct view_trace new = {0};

	for (size_t i = 0; i < tl->trace_count; i++)
		if (tl->traces[i].trace.trace_id == id)
			return &tl->traces[i];
	if (tl->trace_count == MOST_TRACES ||
	    mem_grow(&tl->traces, &tl->trace_capacity, tl->trace_count + 1, sizeof(*tl->traces)) ||
	    prof_timeline_trace(db, id, &tl->steps_arena, &new.trace, NULL) != ST_OK ||
	    new.trace.count == 0)
		return NULL;
	for (int i = 0; i < new.trace.count; i++)
		if (new.trace.steps[i].active_tiles > new.tiles)
			new.tiles = new.trace.steps[i].active_tiles;
	tl->traces[tl->trace_count++] = new;
	return &tl->traces[tl->trace_count - 1];
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
	cell->cycles[view__kind_of(step)] += cycles;
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
			sheet->tl->bsp_share[k] += cell->cycles[k];
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
	sheet.window = (struct view_window){sat_real((double)ns.from / tl->ns_per_cycle),
					    sat_real((double)ns.to / tl->ns_per_cycle)};
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
	view_finish(&sheet, tl->bsp_stride > 1);
	return ST_OK;
}

/* The step of the cursor's lane at the cursor. */
static void view_find_step(struct view_timeline *tl, struct prof_db *db,
			   const struct prof_run *runs, int count)
{
	const struct view_lane *lane = view__lane(tl);
	const int64_t cycle = sat_real((double)tl->cursor_ns / tl->ns_per_cycle);

	tl->step = (struct view_step){0};
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
		tl->step.step = step;
		tl->step.run = runs[i];
		tl->step.from_ns = sat_real(
			(double)sat_add(runs[i].start_cycle, step->start_cycle) * tl->ns_per_cycle);
		tl->step.to_ns = sat_add(tl->step.from_ns,
					 sat_real((double)step->cycles * tl->ns_per_cycle));
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

	tl->step = (struct view_step){0};
	memset(tl->bsp_share, 0, sizeof(tl->bsp_share));
	for (int i = 0; i < tl->all_lanes; i++)
		tl->lanes[i].bsp = NULL;
	if (tl->way != VIEW_BSP || !first)
		return ST_OK;
	status = prof_timeline_runs(db, first->track->rank,
				    sat_real((double)ns.from / tl->ns_per_cycle),
				    sat_real((double)ns.to / tl->ns_per_cycle), MOST_RUNS,
				    &tl->picture, &runs, &count, &tl->bsp_stride, err);
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
