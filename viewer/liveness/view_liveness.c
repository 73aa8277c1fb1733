/*
 * The screen Liveness: bytes in use over the steps of the program, and what is live at one of them.
 *
 * Threading: as view_screen.h says. Ownership: the state owns what was read, the picture's arena
 * and the grid.
 */
#include "viewer/liveness/view_liveness_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"

#define CHART_ROWS 20 /* of text in a file, with all that belongs to the chart */

/* The first look: the IPU with the highest peak, at that step. */
static void view_live_begin(struct view_liveness *live)
{
	int64_t best = -1;

	if (live->begun || live->ipu_count == 0)
		return;
	live->begun = true;
	for (size_t i = 0; i < live->ipu_count; i++) {
		const struct view_live_curve *curve =
			view__live_curve(&live->report[0], live->ipus[i]);
		const struct view_live_step *peak = curve ? &curve->steps[curve->peak[1]] : NULL;

		if (peak && peak->always + peak->rest > best) {
			best = peak->always + peak->rest;
			live->ipu = (int)i;
		}
	}
	view__live_clamp(live);
	live->window = live->extent;
	view__live_peak(live, &live->cursor);
}

static enum status view_live_load(void *state, struct view_context *context, bool news,
				  struct err *err)
{
	struct view_liveness *live = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	enum status status = ST_OK;

	if (news) {
		live->listed = live->listed && live->grid.differ == context->differ;
		status = view__live_read(live, context, err);
	}
	if (status != ST_OK)
		return status;
	view_live_begin(live);
	view__live_clamp(live);
	live->listed = live->listed && live->cursor == live->listed_at;
	live->areas = view_liveness_areas(body, live->show != VIEW_LIVE_CHART);
	status = view__live_picture(live, context, err);
	return status == ST_OK ? view__live_list(live, context, err) : status;
}

static bool view_live_search(void *state, struct view_context *context, const char *text,
			     bool forward)
{
	struct view_liveness *live = state;

	(void)context;
	return view_grid_search(&live->grid, live->areas.table.height, text, forward);
}

static void view_live_filter(void *state, const char *text)
{
	struct view_liveness *live = state;

	view_grid_filter(&live->grid, text);
}

static enum view_answer view_live_click(void *state, struct view_context *context, int x, int y)
{
	struct view_liveness *live = state;
	const struct view_rect table = live->areas.table, chart = live->areas.chart;
	const int plot = chart.x + chart.width - live->plot;
	int64_t from, to;

	(void)context;
	if (live->ipu_count == 0)
		return VIEW_UNHANDLED;
	if (x >= table.x && x < table.x + table.width && y >= table.y && y < table.y + table.height)
		return view_grid_click(&live->grid, table.height, x - table.x, y - table.y);
	if (x < plot || x >= plot + live->plot || y < chart.y || y >= chart.y + chart.height ||
	    live->points == 0)
		return VIEW_UNHANDLED;
	view__live_point(live, (int)((int64_t)(x - plot) * live->points / live->plot), &from, &to);
	view__live_to(live, from);
	return VIEW_LOAD;
}

/* @brief: the step and the rows. */
static void view_live_status_text(const struct view_liveness *live, bool brief, const char *grid,
				  char *out, size_t size)
{
	static const char *const groups[VIEW_LIVE_GROUPS] = {"", ", not always live",
							     ", always live"};
	char bytes[FMT_SIZE] = "", of[64] = "";

	if (live->facts[0].known && !brief)
		fmt_bytes(bytes, (uint64_t)(live->facts[0].always + live->facts[0].rest));
	if (!brief)
		snprintf(of, sizeof(of), " of %lld%s", (long long)live->extent.to - 1,
			 live->report[0].cut || live->report[1].cut ? " and more" : "");
	snprintf(out, size, "step %lld%s%s%s%s%s%s%s", (long long)live->cursor, of,
		 bytes[0] ? ", " : "", bytes, grid[0] ? "; " : "", grid,
		 grid[0] ? groups[live->group] : "",
		 live->always_live || brief ? "" : "; without always live");
}

static void view_live_status(const void *state, const struct view_context *context, char *out,
			     size_t size)
{
	const struct view_liveness *live = state;
	const int width = context->body.width - 1;
	char grid[VIEW_MESSAGE_SIZE] = "";

	if (live->ipu_count == 0) {
		snprintf(out, size, "no liveness recorded");
		return;
	}
	if (live->show != VIEW_LIVE_CHART)
		view_grid_status(&live->grid, grid, sizeof(grid));
	view_live_status_text(live, false, grid, out, size);
	if (view_text_width(out) > width)
		view_live_status_text(live, true, grid, out, size);
	/* Of a filter that cannot be used all is of no interest but why. */
	if (live->grid.trouble[0] && grid[0])
		snprintf(out, size, "%s", grid);
	else if (grid[0] && live->areas.heading.height > 0 && view_text_width(out) > width)
		snprintf(out, size, "%s", grid);
}

static int view_live_height(const void *state, const struct view_context *context)
{
	const struct view_liveness *live = state;
	const int rows = (int)live->grid.count + 2;

	(void)context;
	if (live->ipu_count == 0)
		return 3;
	if (live->show == VIEW_LIVE_CHART || live->areas.table.y == 0)
		return max(CHART_ROWS, rows);
	/* The table has half of it. */
	return 2 * max(rows, CHART_ROWS);
}

static enum status view_live_open(void **state, struct view_context *context, struct err *err)
{
	struct view_liveness *live = mem_calloc(1, sizeof(*live));

	(void)context;
	*state = NULL;
	if (!live)
		return err_nomem(err);
	(void)arena_init(&live->arena, 0);
	live->always_live = true;
	live->wanted = IPS_NULL;
	live->window = live->extent = (struct view_window){0, 1};
	*state = live;
	return ST_OK;
}

static void view_live_close(void *state)
{
	struct view_liveness *live = state;

	if (!live)
		return;
	for (int r = 0; r < 2; r++)
		view__live_report_fini(&live->report[r]);
	view_grid_fini(&live->grid);
	arena_fini(&live->arena);
	str_free(&live->sql);
	mem_free(live->ipus);
	mem_free(live);
}

const struct view_screen_ops view_liveness_ops = {
	.name = "liveness",
	.title = "Liveness",
	.brief = "Liv",
	.key = '4',
	.where = VIEW_ON_LIVENESS,
	.least_ns = 2000 * UINT64_C(1000000),
	.open = view_live_open,
	.close = view_live_close,
	.load = view_live_load,
	.draw = view__live_draw,
	.request = view__live_request,
	.search = view_live_search,
	.filter = view_live_filter,
	.status = view_live_status,
	.height = view_live_height,
	.table = view__live_table,
	.place = view__live_place,
	.offers = view__live_offers,
	.go = view__live_go,
	.query = view__live_query,
	.click = view_live_click,
};
