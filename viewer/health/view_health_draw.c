/*
 * Drawing the screen Health: ways to look, where bad numbers began, the grid, hits over time.
 *
 * Threading: the terminal's thread. Nothing is loaded here.
 */
#include "viewer/health/view_health_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "viewer/view_layout.h"

#define HEAD_MOST 3 /* rows for where bad numbers began */
#define WHY_MOST  3

/* Rows for the longest explanation of a rule, so that nothing moves with the cursor. */
static int why_rows(const struct view_health *screen, int width)
{
	const struct report_table *table = &screen->grid.table;
	const struct view_rect area = {0, 0, width - 2, WHY_MOST};
	int most = 0;

	for (int c = 0; c < table->column_count; c++) {
		if (strcmp(table->columns[c].name, "why") != 0)
			continue;
		for (int64_t row = 0; row < table->row_count; row++) {
			const struct report_cell *cell =
				&table->cells[row * table->column_count + c];
			const int rows =
				cell->type == PROF_TEXT
					? view_text_folded(NULL, area, VIEW_DIM, cell->text)
					: 0;

			most = max(rows, most);
		}
	}
	return most;
}

/* Under the grid: why there is a rule, the strips, an axis. */
void view__health_lay_out(struct view_health *screen, const struct view_context *context)
{
	const int height = context->body.height;
	const struct view_rect area = {0, 0, context->body.width - 2, HEAD_MOST};
	const int origin = screen->bad ? view_text_folded(NULL, area, VIEW_BAD, screen->origin) : 1;

	screen->head = height >= 12 ? 1 + origin : 2;
	screen->why_rows = context->whole ? 0 : why_rows(screen, context->body.width);
	screen->why_rows = height >= 20 || screen->why_rows == 0 ? screen->why_rows : 1;
	screen->foot = height < 12 ? 0 : screen->why_rows + (context->target ? 2 : 1) + 1;
	screen->grid_height = height - screen->head - screen->foot;
}

static void draw_ways(const struct view_health *screen, struct view_pane *pane)
{
	int x = 1;

	for (int way = 0; way < VIEW_HEALTH_WAY_COUNT; way++) {
		const bool active = way == (int)screen->way;

		x += view_textf(pane, x, 0, active ? VIEW_KEY : VIEW_DIM, active ? "[%s]" : " %s ",
				view__health_title(screen, (enum view_health_way)way));
		x++;
	}
}

static void draw_origin(const struct view_health *screen, struct view_pane *pane)
{
	if (screen->bad) {
		view_text_folded(pane,
				 (struct view_rect){1, 1, pane->rect.width - 2, screen->head - 1},
				 VIEW_BAD, screen->origin);
		return;
	}
	/* Who watched nothing has found nothing. */
	if (screen->way != VIEW_HEALTH_RULES || screen->grid.table.row_count > 0)
		view_text_cut(pane, 1, 1, pane->rect.width - 2, VIEW_DIM,
			      "No NaN and no Inf was found in what is watched.");
}

static void draw_strip(const struct view_health_strip *strip, struct view_pane *pane, int y,
		       enum view_style style, const char *name)
{
	const int left = 8, width = pane->rect.width - left - 1;
	double most = 0;

	view_text_cut(pane, 1, y, left - 2, style, name);
	for (int round = 0; round < 2; round++)
		for (int x = 0; x < width; x++) {
			const int from = x * VIEW_HEALTH_BUCKETS / width;
			int to = (x + 1) * VIEW_HEALTH_BUCKETS / width;
			double hits = 0;

			if (to <= from)
				to = from + 1;
			for (int i = from; i < to; i++)
				hits += strip->bucket[i];
			if (round == 0)
				most = max(hits, most);
			else
				view_put(pane, left + x, y, style,
					 view_level_char(pane->canvas, most > 0 ? hits / most : 0));
		}
}

static void draw_axis(const struct view_health *screen, const struct view_context *context,
		      struct view_pane *pane, int y)
{
	const struct view_health_strip *strip = &screen->source;
	char hits[FMT_SIZE], every[FMT_SIZE], until[FMT_SIZE], text[160];
	int used;

	if (strip->hits == 0 && screen->target.hits == 0) {
		view_text(pane, 1, y, VIEW_GOOD, "No rule has been broken.");
		return;
	}
	if (context->target)
		snprintf(text, sizeof(text), "%s and %s hits over time",
			 fmt_count(hits, strip->hits), fmt_count(every, screen->target.hits));
	else if (strip->every > 1)
		snprintf(text, sizeof(text), "%s hits over time, by one in %s",
			 fmt_count(hits, strip->hits), fmt_count(every, strip->every));
	else
		snprintf(text, sizeof(text), "%s hits over time", fmt_count(hits, strip->hits));
	used = view_text_cut(pane, 8, y, pane->rect.width - 9, VIEW_DIM, text);
	fmt_ns(until, max(strip->until_ns, screen->target.until_ns));
	if (used + 12 + view_text_width(until) < pane->rect.width)
		view_text_right(pane, 8, y, pane->rect.width - 9, VIEW_DIM, until);
}

static void draw_foot(const struct view_health *screen, const struct view_context *context,
		      struct view_pane *pane, int y)
{
	const struct report_cell *why = view_grid_cell(&screen->grid, "why");

	if (why && why->text && !context->whole)
		view_text_folded(pane,
				 (struct view_rect){1, y, pane->rect.width - 2, screen->why_rows},
				 VIEW_DIM, why->text);
	y += screen->why_rows;
	draw_strip(&screen->source, pane, y, VIEW_BAD, context->target ? "Source" : "hits");
	if (context->target)
		draw_strip(&screen->target, pane, ++y, VIEW_TARGET, "Target");
	draw_axis(screen, context, pane, y + 1);
}

static const char *nothing(const struct view_health *screen)
{
	if (screen->grid.table.row_count > 0)
		return "";
	switch (screen->way) {
	case VIEW_HEALTH_RULES:
		return "Nothing was watched: this was recorded without health rules.";
	case VIEW_HEALTH_ORIGIN:
		return "There is no trail: no bad number was found.";
	default:
		return "No rule has been broken.";
	}
}

void view__health_draw(const void *state, const struct view_context *context,
		       struct view_pane *pane)
{
	const struct view_health *screen = state;
	struct view_rect area = pane->rect;
	struct view_pane grid;

	draw_ways(screen, pane);
	draw_origin(screen, pane);
	area.y += screen->head;
	area.height -= screen->head + screen->foot;
	grid = view_pane_at(pane->canvas, area);
	if (screen->grid.table.row_count > 0)
		view_grid_draw(&screen->grid, &grid, !context->whole);
	else
		view_text(&grid, 1, 1, VIEW_DIM, nothing(screen));
	if (screen->foot > 0)
		draw_foot(screen, context, pane, pane->rect.height - screen->foot);
}
