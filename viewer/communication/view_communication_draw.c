/*
 * The heat map of ranks by weight updates, and the lines around it.
 *
 * Threading: the picture is made on the session's worker; drawing only draws. Ownership:
 * view_communication_internal.h.
 */
#include "viewer/communication/view_communication_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "viewer/draw/view_heat.h"
#include "viewer/draw/view_share.h"

#define LABEL_WIDTH 9 /* "rank 123 " */
#define TALLEST     3 /* rows of the map for one rank */
#define WIDEST      8 /* columns of the map for one weight update */

/* ---- the picture ----------------------------------------------------------------------------- */

int view__comm_map_rows(const struct view_communication *screen, int rows)
{
	const int ranks = max(screen->rank_count, 1);

	if (rows < 1)
		return 0;
	if (ranks <= rows)
		return min(rows / ranks, TALLEST) * ranks;
	/* Two ranks in a cell. */
	return min(rows, (ranks + 1) / 2);
}

/* Columns on the screen: each weight update has as many, where all have one. */
static int comm_map_columns(const struct view_communication *screen, int columns)
{
	const int64_t updates = screen->window.to - screen->window.from;

	return updates >= columns ? columns
				  : (int)min(columns / updates, (int64_t)WIDEST) * (int)updates;
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

enum status view__comm_picture(struct view_communication *screen, struct view_context *context,
			       struct err *err)
{
	struct view_rect *map = &screen->areas.map;
	const int64_t from = screen->window.from, to = screen->window.to;
	size_t cells;

	(void)context;
	screen->across = screen->down = 0;
	arena_reset(&screen->picture_arena);
	if (screen->count == 0 || map->width <= LABEL_WIDTH || map->height < 1)
		return ST_OK;
	map->x += LABEL_WIDTH;
	map->width = comm_map_columns(screen, map->width - LABEL_WIDTH);
	screen->across = (int)min(to - from, (int64_t)map->width);
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

/* Put the column's number into @number, and say what it counts. */
static const char *comm_counted(const struct view_communication *screen, int64_t column,
				long long *number)
{
	const struct view_comm_cell *cell = &screen->cells[screen->first[column]];
	const bool update = cell->weight_update != IPS_NULL;

	*number = update ? cell->weight_update : cell->number;
	return update ? "weight update" : "call";
}

const char *view__comm_column_name(const struct view_communication *screen, int column,
				   char out[VIEW_COMM_NAME])
{
	long long number;
	const char *what = comm_counted(screen, column, &number);

	snprintf(out, VIEW_COMM_NAME, "%s %lld", what, number);
	return out;
}

/* The figures of the cell under the cursor. */
static void comm_draw_heading(const struct view_communication *screen, struct view_pane *pane)
{
	const struct view_comm_cell *cell = view__comm_cell(screen, screen->row, screen->column);
	char name[VIEW_COMM_NAME], value[FMT_SIZE];
	int x = view_textf(pane, 1, 0, VIEW_BOLD, "rank %lld, %s",
			   (long long)screen->ranks[screen->row],
			   view__comm_column_name(screen, screen->column, name)) +
		1;

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

void view__comm_draw(const void *state, const struct view_context *context, struct view_pane *pane)
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
