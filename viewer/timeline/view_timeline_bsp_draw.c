/*
 * Drawing the device's steps: a column's colour is what most of its time goes to, its height the
 * share of tiles at work (or the tile balance), and under it a letter, or a name where it is wide.
 *
 * No query, no allocation, no change.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viewer/timeline/view_timeline_internal.h"

const char *const view__kind_names[VIEW_KINDS] = {"idle", "compute", "exchange", "sync",
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

enum view_kind view__kind_of(const struct prof_step *step)
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
	const double told = tl->bsp_balance ? cell->balanced : cell->told;
	const double part = tl->bsp_balance ? cell->balance : cell->tiles;

	if (cell->all <= 0)
		return 0;
	if (tl->bsp_balance && told > 0)
		return part / told;
	return fmin(1, (part + (tl->bsp_balance ? 0 : busy - told)) / cell->all);
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
		all += tl->bsp_share[k];
	if (all <= 0) {
		view_text(pane, x, 0, VIEW_WARN, "no device steps are recorded here");
		return;
	}
	for (int k = 1; k <= VIEW_KINDS; k++) {
		const int kind = k % VIEW_KINDS; /* idle last */

		x += view_textf(pane, x, 0, view_kinds[kind].style, "%c %s",
				view_kinds[kind].letter,
				wide ? view__kind_names[kind] : brief[kind]);
		x += 2 + view_textf(pane, x + 1, 0, VIEW_NORMAL, "%.1f%s",
				    tl->bsp_share[kind] / all * 100, wide ? " %" : "");
	}
	if (tl->bsp_stride > 1)
		view_textf(pane, x, 0, VIEW_DIM, "1 run of %lld", (long long)tl->bsp_stride);
	else
		view_textf(pane, x, 0, VIEW_DIM, "height: %s",
			   tl->bsp_balance ? "tile balance" : "active tiles");
}
