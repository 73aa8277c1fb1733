/*
 * The screen Memory: which tile is the fullest, how full, and with what.
 *
 * The tiles' memory is read once, as few rows that stand for many tiles; curve, floor plan,
 * histogram, table and details are made of it. Only the variables of the tiles selected are asked
 * for anew.
 *
 * Threading: as viewer/view_screen.h says. Ownership: arenas and the grid, until the screen closes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/memory/view_memory_internal.h"

#define HEADING_ROWS  2
#define WIDE          110 /* from there on details stand beside the picture */
#define DETAILS_LEAST 46
#define DETAILS_TWO   72  /* comparing: two tiles and their difference */
#define DETAILS_FOUR  122 /* comparing: the same twice */
#define DETAILS_MOST  96
#define PICTURE_LEAST 66 /* a floor plan and a little */
#define ROWS_LEAST    4
#define WHOLE_PICTURE 17

/* ---- loading --------------------------------------------------------------------------------- */

static struct view_rect view_moved(struct view_rect rect, int down)
{
	rect.y += down;
	return rect;
}

/* Columns that the picture keeps beside the details; two plans comparing. */
static int view_picture_least(const struct view_memory *screen)
{
	const bool plans = screen->view == VIEW_MEMORY_CHIP && !screen->differ;

	return screen->sides > 1 && plans ? VIEW_MEMORY_PLANS_TWO : PICTURE_LEAST;
}

static int view_details_columns(const struct view_memory *screen, int width)
{
	const int left = width - 1 - view_picture_least(screen);
	int columns = width * 2 / 5;

	columns = max(DETAILS_LEAST, columns);
	/*
	 * Beside the one plan that there is room for columns are empty; bars tell no more in them.
	 */
	if ((screen->view == VIEW_MEMORY_CHIP || screen->view == VIEW_MEMORY_HISTOGRAM) &&
	    left < columns + PICTURE_LEAST && columns < left)
		columns = left;
	columns = min(DETAILS_MOST, columns);
	if (screen->sides == 1)
		return columns;
	if (left >= DETAILS_FOUR)
		return DETAILS_FOUR;
	columns = min(left, columns);
	return max(DETAILS_TWO, columns);
}

static void view_lay_out(struct view_memory *screen, const struct view_context *context)
{
	const int width = context->body.width;
	const int heading = context->body.height > 4 ? HEADING_ROWS : 1;
	struct view_rect rest = {0, 0, width, context->body.height - heading};
	struct view_memory_areas *areas = &screen->areas;
	int columns = view_details_columns(screen, width), upper = rest.height * 3 / 5;

	*areas = (struct view_memory_areas){.heading = {0, 0, width, heading}};
	if (context->whole)
		upper = WHOLE_PICTURE;
	else if (screen->view == VIEW_MEMORY_CHIP && rest.height > 16)
		upper = max(14, upper);
	if (width >= WIDE && !context->whole) {
		const struct view_sides sides =
			view_split_sides(rest, columns, view_picture_least(screen));

		areas->picture = view_moved(sides.left, heading);
		areas->details = view_moved(sides.right, heading);
		if (areas->details.width > 0)
			return;
	}
	{
		const struct view_split split = view_split_rows(rest, upper, ROWS_LEAST);

		areas->picture = view_moved(split.upper, heading);
		areas->rule = view_moved(split.heading, heading);
		areas->details = view_moved(split.lower, heading);
	}
	/* Where there is room for one of them only, the one that keys go to. */
	if (areas->details.height == 0 && screen->details.active) {
		areas->details = areas->picture;
		areas->picture.height = 0;
	}
}

/* What the table's columns leave beside them the details have use for. */
static void view_give_rest(struct view_memory *screen)
{
	const struct view_grid *grid = view__memory_shown_grid(screen);
	struct view_memory_areas *areas = &screen->areas;
	int spare = grid ? areas->picture.width - view_grid_used(grid) : 0;

	if (screen->sides > 1 || areas->rule.height > 0 || areas->details.width == 0)
		return;
	if (spare > DETAILS_MOST - areas->details.width)
		spare = DETAILS_MOST - areas->details.width;
	if (spare <= 0)
		return;
	areas->picture.width -= spare;
	areas->details.x -= spare;
	areas->details.width += spare;
}

/* What was selected may be gone; at first the fullest tile is. */
static void view_settle(struct view_memory *screen)
{
	const struct view_memory_side *side = &screen->side[0];
	int64_t fullest = 0;

	if (screen->ipu != IPS_NULL && view__memory_ipu_at(screen, screen->ipu) < 0)
		screen->ipu = IPS_NULL;
	if (screen->view == VIEW_MEMORY_IPUS && screen->ipus == 1)
		screen->view = VIEW_MEMORY_CURVE;
	if (screen->placed && view__memory_index(screen, screen->at_ipu, screen->at_tile) >= 0) {
		view__memory_set_cursor(screen, view__memory_cursor(screen));
		return;
	}
	for (int64_t i = 0; i < view__memory_shown(screen); i++)
		if (side->total[i] > side->total[fullest])
			fullest = i;
	view__memory_set_cursor(screen, fullest);
}

static void view_jump(struct view_memory *screen)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	int64_t at = -1, most = 0;

	for (int s = 0; s < screen->sides; s++)
		for (int64_t i = first; i < first + shown; i++)
			if (view__memory_value(screen, s, i) > most) {
				most = view__memory_value(screen, s, i);
				at = i;
			}
	view__memory_set_cursor(screen, at);
	screen->jump = false;
}

static enum status view_memory_load(void *state, struct view_context *context, bool news,
				    struct err *err)
{
	struct view_memory *screen = state;
	enum status status = ST_OK;

	if (news || screen->sides != (context->target ? 2 : 1)) {
		status = view__memory_read(screen, context, err);
		screen->grid_stale = true;
	}
	if (status != ST_OK || screen->ipus == 0)
		return status;
	if (screen->subject_stale)
		status = view__memory_subject(screen, context, err);
	if (status != ST_OK)
		return status;
	screen->differ = context->differ;
	view_lay_out(screen, context);
	view_settle(screen);
	view__memory_series(screen);
	if (screen->jump)
		view_jump(screen);
	status = view__memory_picture(screen, err);
	if (status == ST_OK)
		status = view__memory_load_grid(screen, context, err);
	view_give_rest(screen);
	if (status == ST_OK)
		status = view__memory_details(screen, context, err);
	view__memory_heading(screen);
	return status;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void view_status_window(const struct view_memory *screen, char *out, size_t size)
{
	char last[FMT_SIZE], first[FMT_SIZE];

	if (screen->view == VIEW_MEMORY_TABLE && view__memory_shown(screen) > VIEW_MEMORY_ROWS)
		snprintf(out, size, ", the fullest of %s",
			 fmt_count(first, view__memory_shown(screen)));
	else if (screen->view != VIEW_MEMORY_CURVE || screen->span == 0)
		out[0] = '\0';
	else
		snprintf(out, size, ", tiles %s to %s",
			 view__memory_name(screen, view__memory_at(screen, screen->from), first),
			 view__memory_name(screen,
					   view__memory_at(screen, screen->from + screen->span - 1),
					   last));
}

/* What the cursor of the details is on: its name may be cut where it stands. */
static const char *view_status_line(const struct view_memory *screen)
{
	const struct view_memory_details *details = &screen->details;
	const struct view_memory_line *line = NULL;

	if (details->at < details->count && (details->active || screen->view == VIEW_MEMORY_CURVE))
		line = &details->lines[details->at];
	if (!line || line->kind == VIEW_MEMORY_GROUP)
		return NULL;
	return line->group >= 0 || line->kind == VIEW_MEMORY_NOTE ? line->name : NULL;
}

/* What of the status there is least need of, and goes first where there is no room. */
enum view_status_form {
	STATUS_ALL,
	STATUS_NO_WAY_BACK, /* without how to leave what is looked at */
	STATUS_NO_TILE,     /* a table's row says which */
	STATUS_ROWS
};

static void view_status_text(const struct view_memory *screen, enum view_status_form form,
			     const char *rows, char *out, size_t size)
{
	static const char *const views[] = {"curve", "floor plan", "histogram", "table", "IPUs"};
	static const char *const by[] = {"", " by category", " by region", " by liveness"};
	const char *line = view_status_line(screen);
	char name[FMT_SIZE], tile[FMT_SIZE + 8] = "", window[2 * FMT_SIZE + 16];

	if (form == STATUS_ROWS) {
		str_copy(out, size, rows);
		return;
	}
	if (form < STATUS_NO_TILE)
		snprintf(tile, sizeof(tile), ", tile %s",
			 view__memory_name(screen, view__memory_cursor(screen), name));
	view_status_window(screen, window, sizeof(window));
	snprintf(out, size, "%s of %s%s%s%s%s%s%s%s%s", views[screen->view],
		 view__memory_what(screen),
		 screen->subject.name[0] ? form == STATUS_ALL ? " (Esc: all memory)" : ""
		 : screen->chosen >= 0   ? ""
					 : by[screen->breakdown],
		 tile, window, screen->physical ? ", physical order" : "", rows[0] ? ", " : "",
		 rows, line ? ", " : "", line ? line : "");
}

static void view_memory_status(const void *state, const struct view_context *context, char *out,
			       size_t size)
{
	const struct view_memory *screen = state;
	const struct view_grid *grid = screen->view == VIEW_MEMORY_TABLE  ? &screen->grid
				       : screen->view == VIEW_MEMORY_IPUS ? &screen->ipu_grid
									  : NULL;
	/* Of a filter that cannot be used all is of no interest but why. */
	int form = grid && grid->trouble[0] ? STATUS_ROWS : STATUS_ALL;
	char rows[VIEW_MESSAGE_SIZE] = "";

	if (screen->ipus == 0) {
		snprintf(out, size, "no memory of tiles recorded");
		return;
	}
	if (grid)
		view_grid_status(grid, rows, sizeof(rows));
	do
		view_status_text(screen, (enum view_status_form)form, rows, out, size);
	while (form++ < (grid ? STATUS_ROWS : STATUS_NO_WAY_BACK) &&
	       view_text_width(out) > context->body.width - 1);
}

static int view_memory_height(const void *state, const struct view_context *context)
{
	const struct view_memory *screen = state;

	(void)context;
	if (screen->ipus == 0)
		return 4;
	return HEADING_ROWS + WHOLE_PICTURE + 2 + screen->details.count;
}

static void view_memory_filter(void *state, const char *text)
{
	struct view_memory *screen = state;

	if (screen->view != VIEW_MEMORY_IPUS)
		screen->view = VIEW_MEMORY_TABLE;
	view_grid_filter(view__memory_shown_grid(screen), text);
}

static enum status view_memory_open(void **state, struct view_context *context, struct err *err)
{
	struct view_memory *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = NULL;
	if (!screen)
		return err_nomem(err);
	if (arena_init(&screen->data_arena, 0) || arena_init(&screen->subject_arena, 0) ||
	    arena_init(&screen->picture_arena, 0) || arena_init(&screen->details.arena, 0)) {
		mem_free(screen);
		return err_nomem(err);
	}
	screen->runs_most = VIEW_MEMORY_RUNS_MOST;
	screen->chosen = -1;
	screen->ipu = IPS_NULL;
	screen->subject.variable_id = IPS_NULL;
	screen->details.open =
		VIEW_MEMORY_ALL_GROUPS & ~(1u << VIEW_MEMORY_REGION_GROUP); /* seldom asked for */
	*state = screen;
	return ST_OK;
}

static void view_memory_close(void *state)
{
	struct view_memory *screen = state;

	if (!screen)
		return;
	view_grid_fini(&screen->grid);
	view_grid_fini(&screen->ipu_grid);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		view__memory_rows_fini(&screen->side[s].rows);
	arena_fini(&screen->data_arena);
	arena_fini(&screen->subject_arena);
	arena_fini(&screen->picture_arena);
	arena_fini(&screen->details.arena);
	mem_free(screen);
}

const struct view_screen_ops view_memory_ops = {
	.name = "memory",
	.title = "Memory",
	.brief = "Mem",
	.key = '3',
	.where = VIEW_ON_MEMORY,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_memory_open,
	.close = view_memory_close,
	.load = view_memory_load,
	.draw = view__memory_draw,
	.request = view__memory_request,
	.search = view__memory_search,
	.filter = view_memory_filter,
	.status = view_memory_status,
	.height = view_memory_height,
	.table = view__memory_table,
	.place = view__memory_place,
	.offers = view__memory_offers,
	.go = view__memory_go,
	.query = view__memory_query,
	.click = view__memory_click,
};
