/*
 * The device's steps as bulk synchronous phases: per IPU compute, exchange, sync, host copies and
 * idle time between runs, with the active tiles.
 *
 * A step belongs to a template and takes place at the time of a run. Only the runs of the window
 * are read; for a run narrower than a few cells all steps are added to one cell, and if there are
 * more runs than cells can show, a sample is read.
 *
 * Threading: one thread. Ownership: templates have an arena of their own and are kept; cells are in
 * the picture's arena.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

#define MOST_RUNS   1024
#define NARROW      6   /* a run of fewer cells is added to one cell */
#define MOST_TRACES 256 /* retained templates */

static enum view_kind view_kind_of_step(const struct prof_step *step)
{
	static const struct {
		const char *begins;
		enum view_kind kind;
	} types[] = {{"Sync", VIEW_KIND_SYNC},
		     {"StreamCopy", VIEW_KIND_HOST_COPY},
		     {"DoExchange", VIEW_KIND_EXCHANGE},
		     {"GlobalExchange", VIEW_KIND_EXCHANGE}};

	for (size_t i = 0; step->type && i < ARRAY_LEN(types); i++)
		if (strncmp(step->type, types[i].begins, strlen(types[i].begins)) == 0)
			return types[i].kind;
	return VIEW_KIND_COMPUTE;
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Return the template, reading it once; NULL: not readable. The next call may move it. */
static const struct view_trace *view_read_trace(struct view_timeline *tl, int64_t id)
{
	struct view_device *device = &tl->device;
	struct view_trace new = {0};

	for (size_t i = 0; i < device->count; i++)
		if (device->traces[i].trace.trace_id == id)
			return &device->traces[i];
	if (device->count == MOST_TRACES ||
	    mem_grow(&device->traces, &device->capacity, device->count + 1,
		     sizeof(*device->traces)) ||
	    prof_timeline_trace(tl->db, id, &device->arena, &new.trace, NULL) != ST_OK ||
	    new.trace.count == 0)
		return NULL;
	for (int i = 0; i < new.trace.count; i++)
		new.tiles = max(new.trace.steps[i].active_tiles, new.tiles);
	device->traces[device->count++] = new;
	return &device->traces[device->count - 1];
}

/* The first of the IPU's steps that ends after @cycle of the run; trace->count: none. */
static int view_first_step(const struct prof_trace *trace, int64_t ipu, int64_t cycle)
{
	const struct prof_step *steps = trace->steps;
	int at;

	SORTED_FIRST(at, 0, trace->count,
		     steps[at].ipu < ipu || (steps[at].ipu == ipu &&
					     steps[at].start_cycle + steps[at].cycles <= cycle));
	return at < trace->count && steps[at].ipu == ipu ? at : trace->count;
}

/* A window of the device's clock in cycles. */
static struct view_window view_cycles_of(const struct view_timeline *tl, struct view_window ns)
{
	const double ns_per_cycle = tl->links.ns_per_cycle;

	return (struct view_window){sat_real((double)ns.from / ns_per_cycle),
				    sat_real((double)ns.to / ns_per_cycle)};
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct view_sheet {
	struct view_timeline *tl;
	struct view_lane *lane;
	struct view_window window; /* cycles */
	double per_cell;
};

static void view_add_cycles(struct view_bsp *cell, const struct view_trace *trace,
			    const struct prof_step *step, double cycles)
{
	cell->cycles[view_kind_of_step(step)] += cycles;
	if (step->active_tiles >= 0 && trace->tiles > 0) {
		cell->tiles += cycles * (double)step->active_tiles / (double)trace->tiles;
		cell->counted += cycles;
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

/* Add one step that starts at cycle @start to the cells that it overlaps. */
static void view_add_step(const struct view_sheet *sheet, const struct view_trace *trace,
			  const struct prof_step *step, int64_t start)
{
	const double from = (double)(start - sheet->window.from) / sheet->per_cell;
	const double to = (double)(start + step->cycles - sheet->window.from) / sheet->per_cell;
	const int last = (int)fmin(ceil(to), sheet->tl->width);

	for (int x = from > 0 ? (int)from : 0; x < last; x++) {
		const double part = fmin(to, x + 1) - fmax(from, x);

		if (part > 0)
			view_add_cycles(&sheet->lane->bsp[x], trace, step, part * sheet->per_cell);
	}
}

/* Add the steps of @run on the lane's IPU. If the run is narrow, all go into the cell of its
 * middle. */
static void view_add_device_run(const struct view_sheet *sheet, const struct view_trace *trace,
				const struct prof_run *run)
{
	const int64_t ipu = sheet->lane->track->ipu - run->first_ipu;
	const struct prof_trace *of = &trace->trace;
	const bool narrow = (double)of->cycles / sheet->per_cell < NARROW;
	const int64_t middle = run->start_cycle + of->cycles / 2 - sheet->window.from;
	const int64_t x = min(max(sat_real((double)middle / sheet->per_cell), 0),
			      (int64_t)sheet->tl->width - 1);

	for (int i = view_first_step(of, ipu,
				     narrow ? IPS_NULL : sheet->window.from - run->start_cycle);
	     i < of->count && of->steps[i].ipu == ipu; i++) {
		const struct prof_step *step = &of->steps[i];
		const int64_t start = run->start_cycle + step->start_cycle;

		if (!narrow && start >= sheet->window.to)
			break;
		if (narrow)
			view_add_cycles(&sheet->lane->bsp[x], trace, step, (double)step->cycles);
		else
			view_add_step(sheet, trace, step, start);
	}
	if (narrow)
		sheet->lane->bsp[x].step = NULL;
}

/* Add the time outside of steps as idle, in cells and lane, unless it was not traced. If the runs
 * are a sample only the shares of kinds are known. */
static void view_add_idle(const struct view_sheet *sheet, bool sampled)
{
	struct view_timeline *tl = sheet->tl;
	const struct view_window window = tl->clock[IPS_DEVICE].window;
	double all = 0, idle = 0;

	for (int x = 0; x < tl->width; x++) {
		struct view_bsp *cell = &sheet->lane->bsp[x];
		const struct view_window at = {view_window_time(window, tl->width, x),
					       view_window_time(window, tl->width, x + 1)};
		double traced = sheet->per_cell, busy = 0; /* cycles */

		if (at.to > at.from)
			traced = traced * (double)view__traced_ns(tl, sheet->lane, at) /
				 (double)(at.to - at.from);
		for (int k = VIEW_KIND_COMPUTE; k < VIEW_KINDS; k++)
			busy += cell->cycles[k];
		cell->dark = busy <= 0 && traced < sheet->per_cell / 2;
		if (sampled && busy <= 0 && x > 0 && !cell->dark) {
			*cell = sheet->lane->bsp[x - 1];
			continue;
		}
		cell->all = !sampled && busy < traced ? traced : busy;
		cell->cycles[VIEW_KIND_IDLE] = cell->all - busy;
		for (int k = 0; k < VIEW_KINDS; k++)
			tl->device.share[k] += cell->cycles[k];
		all += cell->all;
		idle += cell->cycles[VIEW_KIND_IDLE];
	}
	sheet->lane->idle = sampled || all <= 0 ? NAN : idle / all;
}

static void view_load_steps(struct view_timeline *tl, struct view_lane *lane,
			    struct view_window window, const struct prof_run *runs, int count)
{
	const struct view_sheet sheet = {tl, lane, window,
					 (double)(window.to - window.from) / tl->width};

	lane->bsp = view__alloc(tl, &tl->picture, (size_t)tl->width, sizeof(*lane->bsp));
	if (!lane->bsp || sheet.per_cell <= 0)
		return;
	for (int i = 0; i < count; i++) {
		const struct view_trace *trace = view_read_trace(tl, runs[i].trace_id);

		/* A run of another replica has no steps with this IPU's number. */
		if (trace && runs[i].rank == lane->track->rank &&
		    runs[i].start_cycle + trace->trace.cycles > window.from)
			view_add_device_run(&sheet, trace, &runs[i]);
	}
	view_add_idle(&sheet, tl->device.stride > 1);
}

/* The step of the cursor's lane at the cursor. @runs are of the lane's rank. */
static void view_find_step(struct view_timeline *tl, const struct prof_run *runs, int count)
{
	const struct view_lane *lane = view__lane(tl);
	const double ns = tl->links.ns_per_cycle;
	const int64_t cycle = sat_real((double)tl->cursor.ns / ns);

	for (int i = 0; i < count; i++) {
		const struct view_trace *trace = view_read_trace(tl, runs[i].trace_id);
		const struct prof_step *step;
		int64_t from_ns;
		int at;

		if (!trace)
			continue;
		at = view_first_step(&trace->trace, lane->track->ipu - runs[i].first_ipu,
				     cycle - runs[i].start_cycle);
		step = &trace->trace.steps[at];
		if (at == trace->trace.count || runs[i].start_cycle + step->start_cycle > cycle)
			continue;
		from_ns = sat_real((double)sat_add(runs[i].start_cycle, step->start_cycle) * ns);
		tl->device.at_cursor =
			(struct view_step){step, runs[i], from_ns,
					   sat_add(from_ns, sat_real((double)step->cycles * ns))};
	}
}

bool view__longest_step(struct view_timeline *tl, struct view_window ns, int64_t *time)
{
	const struct view_window window = view_cycles_of(tl, ns);
	const struct prof_track *track = view__lane(tl)->track;
	struct prof_run *runs = NULL;
	int64_t longest = 0, at = 0, stride;
	int count = 0;

	if (prof_timeline_runs(tl->db, track->rank, window.from, window.to, MOST_RUNS, &tl->picture,
			       &runs, &count, &stride, NULL) != ST_OK)
		return false;
	for (int i = 0; i < count; i++) {
		const struct view_trace *trace = view_read_trace(tl, runs[i].trace_id);
		const int64_t ipu = track->ipu - runs[i].first_ipu, start = runs[i].start_cycle;

		if (!trace)
			continue;
		for (int s = view_first_step(&trace->trace, ipu, window.from - start);
		     s < trace->trace.count && trace->trace.steps[s].ipu == ipu; s++) {
			const struct prof_step *step = &trace->trace.steps[s];
			const int64_t from = max(start + step->start_cycle, window.from);
			const int64_t to = min(start + step->start_cycle + step->cycles, window.to);

			if (from >= window.to)
				break;
			if (to - from <= longest)
				continue;
			longest = to - from;
			at = from + longest / 2;
		}
	}
	*time = sat_real((double)at * tl->links.ns_per_cycle);
	return longest > 0;
}

void view__device_load(struct view_timeline *tl)
{
	const struct view_window window = view_cycles_of(tl, tl->clock[IPS_DEVICE].window);
	const struct view_lane *first = view__lane(tl);
	struct prof_run *runs = NULL;
	int count = 0, mixed = 0, all = 0;

	tl->device.at_cursor = (struct view_step){0};
	memset(tl->device.share, 0, sizeof(tl->device.share));
	for (int i = 0; i < tl->all_lanes; i++)
		tl->lanes[i].bsp = NULL;
	if (tl->status != ST_OK || tl->choice.way != VIEW_BSP || !first)
		return;
	tl->status =
		prof_timeline_runs(tl->db, first->track->rank, window.from, window.to, MOST_RUNS,
				   &tl->picture, &runs, &count, &tl->device.stride, &tl->err);
	/* ST_INVALID: the file has no runs of templates. Show nothing; this is no failure. */
	if (tl->status == ST_INVALID) {
		tl->status = ST_OK;
		return;
	}
	for (int i = 0; i < tl->lane_count && !view__stopped(tl); i++)
		if (tl->lanes[i].rows > 0)
			view_load_steps(tl, &tl->lanes[i], window, runs, count);
	if (tl->status == ST_OK)
		view_find_step(tl, runs, count);
	/* If most columns are mixtures of steps, one kind's colour would hide the others. */
	for (int i = 0; i < tl->lane_count; i++)
		for (int x = 0; x < tl->width && tl->lanes[i].bsp; x++) {
			const struct view_bsp *cell = &tl->lanes[i].bsp[x];
			const double busy = cell->all - cell->cycles[VIEW_KIND_IDLE];

			all += busy > 0;
			mixed += busy > 0 && (!cell->step || cell->best < busy / 2);
		}
	tl->device.mixed = 2 * mixed > all;
}
