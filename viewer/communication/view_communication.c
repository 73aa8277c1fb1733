/*
 * The screen Communication: what ranks exchange through MPI. A map of ranks by weight updates in
 * shades of what was waited for, hidden or sent, and the report `communication` as a table.
 *
 * The cursor is a rank and a weight update. Rows of the table that are of one rank, or of one
 * update, move it.
 *
 * Threading: the session's; the picture is made on its worker, and drawing only draws. Ownership:
 * view_communication_internal.h.
 */
#include "viewer/communication/view_communication_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "reports/named/report_communication.h"
#include "viewer/draw/view_chart.h"

#define LEAST_ROWS  8 /* of a body with both map and table */
#define LABEL_WIDTH 9 /* "rank 123 " */
#define TALLEST     3 /* rows of the map for one rank */
#define WIDEST      8 /* columns of the map for one weight update */
#define NAME_MOST   80

/* ---- the picture ----------------------------------------------------------------------------- */

/* Rows that the map takes of @rows. */
static int comm_map_rows(const struct view_communication *screen, int rows)
{
	const int ranks = max(screen->rank_count, 1);

	if (rows < 1)
		return 0;
	if (ranks <= rows)
		return min(rows / ranks, TALLEST) * ranks;
	/* Two ranks in a cell. */
	return min(rows, (ranks + 1) / 2);
}

static int comm_across(const struct view_communication *screen, int column)
{
	const int64_t updates = screen->window.to - screen->window.from;

	return view_share_cell(updates, screen->across, column - screen->window.from);
}

static int comm_down(const struct view_communication *screen, int row)
{
	return view_share_cell(screen->rank_count, screen->down, row);
}

static enum status comm_picture(struct view_communication *screen, struct err *err)
{
	struct view_rect *map = &screen->areas.map;
	const int64_t from = screen->window.from, to = screen->window.to, updates = to - from;
	size_t cells;

	screen->across = screen->down = 0;
	arena_reset(&screen->picture_arena);
	if (screen->count == 0 || map->width <= LABEL_WIDTH || map->height < 1)
		return ST_OK;
	map->x += LABEL_WIDTH;
	map->width -= LABEL_WIDTH;
	/* Each weight update has as many columns, where all have one. */
	if (updates < map->width)
		map->width = (int)min(map->width / updates, (int64_t)WIDEST) * (int)updates;
	screen->across = (int)min(updates, (int64_t)map->width);
	screen->down = min(screen->rank_count, 2 * map->height);
	cells = (size_t)screen->across * (size_t)screen->down;
	screen->picture = arena_alloc(&screen->picture_arena, cells, sizeof(*screen->picture));
	if (!screen->picture)
		return err_nomem(err);
	for (size_t i = 0; i < cells; i++)
		screen->picture[i] = NAN;
	for (size_t i = screen->first[from]; i < screen->first[to]; i++) {
		const struct view_comm_cell *cell = &screen->cells[i];
		double *at = &screen->picture[comm_down(screen, cell->row) * screen->across +
					      comm_across(screen, cell->column)];

		*at = fmax(*at, cell->value[screen->quantity]);
	}
	return ST_OK;
}

bool view__comm_find(const struct view_communication *screen, int x, int y, int *row, int *column)
{
	const struct view_pane map = {.rect = screen->areas.map};
	int across, down;
	int64_t from, to;

	if (screen->across == 0 || !view_heat_find(&map, screen->across, screen->down,
						   x - map.rect.x, y - map.rect.y, &across, &down))
		return false;
	view_share(screen->window.to - screen->window.from, screen->across, across, &from, &to);
	*column = (int)(screen->window.from + from);
	view_share(screen->rank_count, screen->down, down, &from, &to);
	*row = (int)from;
	return true;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static struct report_axis comm_scale(const struct view_communication *screen)
{
	const double greatest = screen->greatest[screen->quantity];

	return (struct report_axis){
		.low = 0,
		.high = screen->quantity == VIEW_COMM_HIDDEN || !(greatest > 0) ? 1 : greatest,
		.quantity = view__comm_quantities[screen->quantity].quantity};
}

/* Put the column's number into @number, and say what it counts: weight updates, or calls where
 * these belong to none. */
static const char *comm_counted(const struct view_communication *screen, int64_t column,
				long long *number)
{
	const struct view_comm_cell *cell = &screen->cells[screen->first[column]];
	const bool update = cell->weight_update != IPS_NULL;

	*number = update ? cell->weight_update : cell->number;
	return update ? "weight update" : "call";
}

/* "rank 3, weight update 57": the cell under the cursor. */
static const char *comm_cursor_name(const struct view_communication *screen, char out[NAME_MOST])
{
	long long number;
	const char *what = comm_counted(screen, screen->column, &number);

	snprintf(out, NAME_MOST, "rank %lld, %s %lld", (long long)screen->ranks[screen->row], what,
		 number);
	return out;
}

/* The figures of the cell under the cursor. */
static void comm_draw_heading(const struct view_communication *screen, struct view_pane *pane)
{
	const struct view_comm_cell *cell = view__comm_cell(screen, screen->row, screen->column);
	char name[NAME_MOST], value[FMT_SIZE];
	int x = view_text(pane, 1, 0, VIEW_BOLD, comm_cursor_name(screen, name)) + 1;

	if (!cell)
		view_text_cut(pane, x, 0, pane->rect.width - x, VIEW_DIM, ": exchanged nothing");
	for (int q = 0; cell && q < VIEW_COMM_QUANTITIES && x < pane->rect.width; q++) {
		const struct view_comm_quantity_info *info = &view__comm_quantities[q];
		const struct report_axis scale = {.quantity = info->quantity};
		char text[2 * FMT_SIZE + 32];

		if (isnan(cell->value[q]))
			continue;
		snprintf(text, sizeof(text), "  %s %s", info->name,
			 report_axis_text(&scale, cell->value[q], value));
		x += view_text_cut(pane, x, 0, pane->rect.width - x,
				   q == (int)screen->quantity ? VIEW_BOLD : VIEW_NORMAL, text);
	}
}

static void comm_draw_map(const struct view_communication *screen,
			  const struct view_context *context, struct view_pane *pane)
{
	const struct report_axis scale = comm_scale(screen);
	struct view_pane map = view_pane_sub(pane, screen->areas.map);
	int last = -1;

	view_heat_map(&map, screen->picture, screen->across, screen->down, &scale);
	for (int y = 0; y < map.rect.height; y++) {
		char label[32];
		int row, column;

		if (!view__comm_find(screen, screen->areas.map.x, screen->areas.map.y + y, &row,
				     &column) ||
		    row == last)
			continue;
		last = row;
		snprintf(label, sizeof(label), "rank %lld", (long long)screen->ranks[row]);
		view_text_right(pane, screen->areas.map.x - LABEL_WIDTH, screen->areas.map.y + y,
				LABEL_WIDTH - 1, row == screen->row ? VIEW_BOLD : VIEW_DIM, label);
	}
	if (!context->whole && screen->column >= screen->window.from &&
	    screen->column < screen->window.to) {
		const struct view_rect at = view_heat_place(&map, screen->across, screen->down,
							    comm_across(screen, screen->column),
							    comm_down(screen, screen->row));

		for (int y = 0; y < at.height; y++)
			for (int x = 0; x < at.width; x++)
				view_put(&map, at.x + x, at.y + y, VIEW_CURSOR, 'X');
	}
}

static void comm_draw_legend(const struct view_communication *screen,
			     const struct view_context *context, struct view_pane *pane)
{
	const struct report_axis scale = comm_scale(screen);
	const int y = screen->areas.legend.y, width = pane->rect.width;
	long long from, to;
	const char *what = comm_counted(screen, screen->window.from, &from);
	const char *last = comm_counted(screen, screen->window.to - 1, &to);
	char text[160];
	int x = 1;

	x += view_heat_legend(pane, x, y, width - x, &scale);
	snprintf(text, sizeof(text), "  %s, %ss %lld to %s%s%lld%s",
		 view__comm_quantities[screen->quantity].name, what, from,
		 strcmp(what, last) == 0 ? "" : last, strcmp(what, last) == 0 ? "" : " ", to,
		 context->whole ? "" : "  X the cursor");
	view_text_cut(pane, x, y, width - x, VIEW_DIM, text);
}

static void comm_draw(const void *state, const struct view_context *context, struct view_pane *pane)
{
	const struct view_communication *screen = state;

	if (screen->count == 0) {
		view_nothing(pane,
			     context->source->none ? "No calls of MPI were recorded:"
						   : "No calls of MPI were recorded.",
			     "`mpirun -n 2 ipu-train RUN` records them, libipuscope-mpi those of "
			     "others.",
			     context->source->none);
		return;
	}
	if (screen->areas.heading.height > 0 && !context->whole)
		comm_draw_heading(screen, pane);
	if (screen->across > 0)
		comm_draw_map(screen, context, pane);
	if (screen->areas.legend.height > 0)
		comm_draw_legend(screen, context, pane);
	view_grid_draw(&screen->grid, pane, !context->whole);
}

/* ---- areas ----------------------------------------------------------------------------------- */

static struct view_comm_layout comm_areas(const struct view_communication *screen,
					  struct view_rect body)
{
	struct view_comm_layout out = {.heading = {0, 0, body.width, min(body.height, 1)}};
	const enum view_comm_show show = body.height < LEAST_ROWS && screen->show == VIEW_COMM_BOTH
						 ? VIEW_COMM_TABLE
						 : screen->show;
	const int rows = body.height - 1;
	const int list = (int)min(screen->grid.count, (int64_t)INT32_MAX / 2) + 1;
	int y = 1;

	if (show != VIEW_COMM_TABLE) {
		const int share =
			show == VIEW_COMM_MAP ? rows - 1 : max((rows - 1) / 2, rows - 1 - list);

		out.map = (struct view_rect){0, y, body.width, comm_map_rows(screen, share)};
		out.legend = (struct view_rect){0, y + out.map.height, body.width, 1};
		y += out.map.height + 1;
	}
	if (show != VIEW_COMM_MAP)
		out.table = (struct view_rect){0, y, body.width, max(body.height - y, 0)};
	return out;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

static void comm_move_to(struct view_communication *screen, int64_t row, int64_t column)
{
	screen->row = (int)max(0, min(row, (int64_t)screen->rank_count - 1));
	screen->column = (int)max(0, min(column, (int64_t)screen->columns - 1));
	if (screen->column < screen->window.from || screen->column >= screen->window.to)
		screen->window = view_window_show(screen->window, screen->column, screen->extent);
}

/* Move the cursor to what the table's row is about. */
static void comm_follow_table(struct view_communication *screen)
{
	const struct view_comm_cell like = {.weight_update =
						    view_grid_int(&screen->grid, "weight_update"),
					    .number = view_grid_int(&screen->grid, "number"),
					    .execution = view_grid_int(&screen->grid, "execution"),
					    .mode = view_grid_text(&screen->grid, "mode")};
	const int row = view__comm_row_of(screen, view_grid_int(&screen->grid, "rank"));
	int column = -1;

	if (like.weight_update != IPS_NULL || like.number != IPS_NULL)
		column = view__comm_column_of(screen, &like);
	comm_move_to(screen, row >= 0 ? row : screen->row, column >= 0 ? column : screen->column);
}

/* Move the table to the first row of the cursor's rank, unless it is on one, or has none. */
static void comm_lead_table(struct view_communication *screen)
{
	if (screen->count > 0 && view_grid_cell(&screen->grid, "rank") &&
	    view_grid_int(&screen->grid, "rank") != screen->ranks[screen->row])
		(void)view_grid_go(&screen->grid, "rank", NULL, screen->ranks[screen->row]);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void comm_go_rank(struct view_communication *screen, int row)
{
	comm_move_to(screen, row, screen->column);
	comm_lead_table(screen);
}

/* Handle requests that move in the map. */
static enum view_answer comm_move(struct view_communication *screen, struct view_context *context,
				  enum view_request request)
{
	const int64_t column = screen->column, shown = screen->window.to - screen->window.from;
	const int64_t stride = max(shown / max(screen->across, 1), (int64_t)1); /* a cell's */
	const bool closer = request == VIEW_ZOOM_IN_REQUEST;
	const struct view_window before = screen->window;
	int row = screen->row, worst;

	/* The table alone has the keys of a table. */
	if (screen->show == VIEW_COMM_TABLE &&
	    (request == VIEW_LEFT_REQUEST || request == VIEW_RIGHT_REQUEST ||
	     request == VIEW_HOME_REQUEST || request == VIEW_END_REQUEST))
		return VIEW_UNHANDLED;
	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		comm_move_to(screen, row,
			     column + (request == VIEW_LEFT_REQUEST ? -stride : stride));
		return VIEW_LOAD;
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
		if (screen->show != VIEW_COMM_MAP)
			return VIEW_UNHANDLED;
		comm_go_rank(screen, row + (request == VIEW_UP_REQUEST ? -1 : 1));
		return VIEW_LOAD;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		comm_move_to(screen, row, request == VIEW_HOME_REQUEST ? 0 : screen->columns);
		return VIEW_LOAD;
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		comm_move_to(screen, row,
			     column + (request == VIEW_PAGE_LEFT_REQUEST ? -shown : shown));
		return VIEW_LOAD;
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
		screen->window = view_window_zoom(before, column, closer ? 1 : 2, closer ? 2 : 1,
						  screen->extent);
		if (before.from == screen->window.from && before.to == screen->window.to)
			view_message(context,
				     closer ? "this is as close as it gets" : "all of it is shown",
				     NULL);
		return VIEW_LOAD;
	case VIEW_ZOOM_ALL_REQUEST:
		screen->window = screen->extent;
		return VIEW_LOAD;
	case VIEW_LONGEST_GAP_REQUEST:
		if (view__comm_worst(screen, &row, &worst)) {
			comm_move_to(screen, row, worst);
			comm_lead_table(screen);
		}
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

/* Handle requests that change what is shown. */
static enum view_answer comm_choose(struct view_communication *screen, struct view_context *context,
				    enum view_request request)
{
	static const char *const shows[VIEW_COMM_SHOWS] = {"map and table", "the map", "the table"};

	switch (request) {
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		screen->quantity = (enum view_comm_quantity)view_next_choice(
			(int)screen->quantity, VIEW_COMM_QUANTITIES, request);
		view_message(context, "the map: ", view__comm_quantities[screen->quantity].name);
		return VIEW_LOAD;
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->show = (enum view_comm_show)view_next_choice((int)screen->show,
								     VIEW_COMM_SHOWS, request);
		view_message(context, shows[screen->show], NULL);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		screen->by = (screen->by + 1) % REPORT_GROUPINGS;
		if (!report_named_communication.groupings[screen->by].by)
			screen->by = 0;
		view_message(context, "by ", report_named_communication.groupings[screen->by].by);
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		comm_go_rank(screen, (screen->row + 1) % max(screen->rank_count, 1));
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		return VIEW_JOIN;
	default:
		return VIEW_UNHANDLED;
	}
}

static enum view_answer comm_request(void *state, struct view_context *context,
				     enum view_request request)
{
	struct view_communication *screen = state;
	const int64_t before = screen->grid.at;
	enum view_answer answer = comm_choose(screen, context, request);

	if (answer == VIEW_UNHANDLED)
		answer = comm_move(screen, context, request);
	if (answer == VIEW_UNHANDLED) {
		answer = view_grid_request(&screen->grid, request);
		if (screen->grid.at != before) {
			comm_follow_table(screen);
			answer = VIEW_LOAD;
		}
	}
	return answer;
}

static enum view_answer comm_click(void *state, struct view_context *context, int x, int y)
{
	struct view_communication *screen = state;
	int row, column;

	(void)context;
	if (screen->count == 0)
		return VIEW_UNHANDLED;
	if (view__comm_find(screen, x, y, &row, &column)) {
		comm_move_to(screen, row, column);
		comm_lead_table(screen);
		return VIEW_LOAD;
	}
	if (view_grid_click(&screen->grid, x, y) == VIEW_UNHANDLED)
		return VIEW_UNHANDLED;
	comm_follow_table(screen);
	return VIEW_LOAD;
}

/* ---- other screens --------------------------------------------------------------------------- */

static bool comm_place(const void *state, struct view_place *out)
{
	const struct view_communication *screen = state;
	const struct view_comm_cell *cell = view__comm_cell(screen, screen->row, screen->column);

	view_place_clear(out);
	if (screen->count == 0)
		return false;
	out->rank = screen->ranks[screen->row];
	view_place_text(out->clock, "host");
	if (cell) {
		out->span_id = cell->span_id;
		out->time_ns = cell->start_ns;
	} else {
		cell = &screen->cells[screen->first[screen->column]];
	}
	out->execution = cell->execution;
	out->epoch = cell->epoch;
	out->weight_update = cell->weight_update;
	view_place_text(out->mode, cell->mode);
	return true;
}

static bool comm_offers(const struct view_place *place, char *out, size_t size)
{
	char rank[32] = "ranks";

	if (place->weight_update == IPS_NULL)
		return false;
	if (place->rank != IPS_NULL)
		snprintf(rank, sizeof(rank), "rank %lld", (long long)place->rank);
	snprintf(out, size, "what %s waited for in weight update %lld", rank,
		 (long long)place->weight_update);
	return true;
}

static enum status comm_go(void *state, struct view_context *context,
			   const struct view_place *place, struct err *err)
{
	struct view_communication *screen = state;
	const struct view_comm_cell like = {.weight_update = place->weight_update,
					    .number = IPS_NULL,
					    .execution = place->execution,
					    .mode = place->mode[0] ? place->mode : NULL};
	const int row = view__comm_row_of(screen, place->rank);
	const int column =
		place->weight_update == IPS_NULL ? -1 : view__comm_column_of(screen, &like);

	(void)context;
	if (column < 0)
		return err_set(err, ST_NOTFOUND, "no rank exchanged anything then");
	comm_move_to(screen, row >= 0 ? row : screen->row, column);
	comm_lead_table(screen);
	return ST_OK;
}

static void comm_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_communication *screen = state;

	(void)context;
	str_addf(out, "%s;\n", report_named_communication.groupings[screen->by].sql);
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void comm_init(void *state)
{
	struct view_communication *screen = state;

	screen->listed = -1;
	while (strcmp(report_named_communication.groupings[screen->by].by, "rank") != 0)
		screen->by++;
}

static void comm_fini(void *state)
{
	struct view_communication *screen = state;

	view_grid_fini(&screen->grid);
	arena_fini(&screen->arena);
	arena_fini(&screen->picture_arena);
	mem_free(screen->cells);
}

static struct view_grid *comm_grid(void *state)
{
	return &((struct view_communication *)state)->grid;
}

static enum status comm_load(void *state, struct view_context *context, bool news, struct err *err)
{
	struct view_communication *screen = state;
	const bool first = !screen->begun;
	const bool all = screen->window.from == screen->extent.from &&
			 screen->window.to == screen->extent.to;
	enum status status = news ? view__comm_read(screen, context, err) : ST_OK;
	const struct view_window extent = {0, max(screen->columns, 1)};

	if (status != ST_OK)
		return status;
	/* Keep the window and the cursor within what was read. */
	screen->window = all ? extent : view_window_clamp(screen->window, extent);
	screen->extent = extent;
	if (!screen->begun && screen->count > 0)
		screen->begun = view__comm_worst(screen, &screen->row, &screen->column);
	comm_move_to(screen, screen->row, screen->column);
	if (screen->count == 0)
		return ST_OK;
	status = view__comm_list(screen, context, err);
	screen->areas = comm_areas(
		screen, (struct view_rect){0, 0, context->body.width, context->body.height});
	if (status == ST_OK)
		status = comm_picture(screen, err);
	if (status != ST_OK)
		return status;
	view_grid_layout(&screen->grid, screen->areas.table);
	if (first)
		comm_lead_table(screen);
	return ST_OK;
}

static const char *comm_word(const void *state, enum view_request request)
{
	const struct view_communication *screen = state;
	const bool map = screen->show != VIEW_COMM_TABLE;

	if (screen->count == 0)
		return "";
	switch (request) {
	case VIEW_SELECT_REQUEST:
		return screen->rank_count > 1 ? "rank" : "";
	case VIEW_BREAKDOWN_REQUEST:
		return screen->show == VIEW_COMM_MAP ? "" : "rows by";
	case VIEW_STATISTIC_REQUEST:
		return map ? "quantity" : "";
	case VIEW_ZOOM_IN_REQUEST:
		return map && screen->window.to - screen->window.from > VIEW_WINDOW_LEAST ? NULL
											  : "";
	case VIEW_ZOOM_ALL_REQUEST:
		return map && (screen->window.from != screen->extent.from ||
			       screen->window.to != screen->extent.to)
			       ? NULL
			       : "";
	case VIEW_LONGEST_GAP_REQUEST:
		return map ? NULL : "";
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_REVERSE_REQUEST:
		return screen->show == VIEW_COMM_MAP ? "" : NULL;
	default:
		return NULL;
	}
}

static void comm_status(const void *state, const struct view_context *context, char *out,
			size_t size)
{
	const struct view_communication *screen = state;
	char name[NAME_MOST], rows[VIEW_MESSAGE_SIZE] = "";

	if (screen->count == 0) {
		snprintf(out, size, "no calls of MPI recorded");
		return;
	}
	if (screen->show != VIEW_COMM_MAP)
		view_grid_status(&screen->grid, rows, sizeof(rows));
	if (screen->grid.trouble[0] && rows[0]) {
		snprintf(out, size, "%s", rows);
		return;
	}
	snprintf(out, size, "%s%s%s%s%s%s%s", context->target ? "map of the source; " : "",
		 comm_cursor_name(screen, name), screen->cut ? ", the first cells alone" : "",
		 rows[0] ? "; by " : "",
		 rows[0] ? report_named_communication.groupings[screen->by].by : "",
		 rows[0] ? ": " : "", rows);
}

static int comm_height(const void *state, const struct view_context *context)
{
	const struct view_communication *screen = state;

	(void)context;
	if (screen->count == 0)
		return VIEW_NOTHING_ROWS;
	/* The map at its tallest, with a heading, a legend and the table. */
	return comm_map_rows(screen, 3 * screen->rank_count) + (int)screen->grid.count + 3;
}

/* The rows of the table; of the map alone those that it shows. */
static enum status comm_table(void *state, struct view_context *context, struct report_table *out,
			      struct err *err)
{
	const struct view_communication *screen = state;

	if (screen->show == VIEW_COMM_MAP && context->source->db)
		return report_table_query(out, context->source->db, "communication",
					  view__comm_grouping("update")->sql, VIEW_COMM_ROWS, err);
	return view_grid_table(&screen->grid, out, err);
}

const struct view_screen_ops view_communication_ops = {
	.name = "communication",
	.title = "Communication",
	.brief = "Com",
	.key = 'X',
	.where = VIEW_ON_COMMUNICATION,
	.has = REPORT_HAS_CALLS,
	.least_ns = 5 * UINT64_C(1000000000),
	.size = sizeof(struct view_communication),
	.init = comm_init,
	.fini = comm_fini,
	.grid = comm_grid,
	.load = comm_load,
	.draw = comm_draw,
	.request = comm_request,
	.word = comm_word,
	.status = comm_status,
	.height = comm_height,
	.table = comm_table,
	.place = comm_place,
	.offers = comm_offers,
	.go = comm_go,
	.query = comm_query,
	.click = comm_click,
};
