/*
 * Drawing the screen Operations: totals, the table with its bars beside it, and more of one row.
 *
 * Threading: the terminal's. Ownership: none; nothing is loaded here.
 */
#include "viewer/operations/view_operations_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/sat.h"
#include "viewer/draw/view_table.h"

/* What a row's cycles are made of. */
static const struct {
	const char *title, *cycles, *ns;
	enum view_style style;
} parts[] = {
	{"compute", "compute_cycles", "compute_ns", VIEW_SERIES_1},
	{"exchange", "exchange_cycles", "exchange_ns", VIEW_SERIES_2},
	{"sync", "sync_cycles", "sync_ns", VIEW_SERIES_3},
};

static struct view_pane draw_sub(const struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* Cycles, or what they take where times are shown. */
static const char *draw_amount(const struct view_operations *screen, double cycles,
			       char out[FMT_SIZE])
{
	char text[FMT_SIZE];

	if (isnan(cycles))
		return "no cycles";
	if (screen->ns)
		return fmt_ns(out, (int64_t)(cycles * 1e9 / screen->clock_hz));
	snprintf(out, FMT_SIZE, "%s cycles", fmt_count(text, (int64_t)cycles));
	return out;
}

/* A figure is there whole, or not at all. Returns the columns it took. */
static int draw_where_it_fits(struct view_pane *pane, int x, const char *text)
{
	return x + view_text_width(text) < pane->rect.width ? view_text(pane, x, 0, VIEW_DIM, text)
							    : 0;
}

static void draw_totals(const struct view_operations *screen, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_operations_totals *totals = &screen->totals[0];
	char amount[FMT_SIZE], other[FMT_SIZE], bytes[FMT_SIZE], part[2 * FMT_SIZE];
	int x = 1;

	x += view_text(pane, x, 0, VIEW_WARN, "simulated");
	x += view_textf(pane, x, 0, VIEW_DIM,
			", by %s: ", view__operations_looks[screen->way].name);
	x += view_textf(pane, x, 0, VIEW_BOLD, "%s", draw_amount(screen, totals->cycles, amount));
	if (context->target) {
		const double target = screen->totals[1].cycles;
		const double more = target - totals->cycles;

		view_textf(pane, x, 0, VIEW_NORMAL, ", target %s (%s%s)",
			   draw_amount(screen, target, other), more < 0 ? "-" : "+",
			   fmt_percent(bytes, fabs(more) / fmax(target, totals->cycles)));
		return;
	}
	if (!(totals->cycles > 0))
		return;
	x += view_textf(pane, x, 0, VIEW_DIM, ": compute %.0f %%, exchange %.0f %%, sync %.0f %%",
			100 * totals->compute / totals->cycles,
			100 * totals->exchange / totals->cycles,
			100 * totals->sync / totals->cycles);
	snprintf(part, sizeof(part), ", %s FLOP",
		 isnan(totals->flops) ? "-" : fmt_count(other, sat_real(totals->flops)));
	x += draw_where_it_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s of code",
		 isnan(totals->code_bytes)
			 ? "-"
			 : fmt_bytes(bytes, (uint64_t)sat_real(fmax(totals->code_bytes, 0))));
	draw_where_it_fits(pane, x, part);
}

/* ---- bars ------------------------------------------------------------------------------------ */

struct draw_bars {
	const struct view_operations *screen;
	int columns[ARRAY_LEN(parts)];
	double greatest; /* of all rows, and of both reports */
};

static double draw_part(const struct draw_bars *bars, int64_t row, int part)
{
	const struct report_table *table = &bars->screen->grid.table;
	const struct report_cell *cell;

	if (bars->columns[part] < 0)
		return 0;
	cell = &table->cells[row * table->column_count + bars->columns[part]];
	return cell->type == PROF_INT && cell->integer > 0 ? (double)cell->integer : 0;
}

static double draw_whole(const struct draw_bars *bars, int64_t row)
{
	double whole = 0;

	for (int part = 0; part < (int)ARRAY_LEN(parts); part++)
		whole += draw_part(bars, row, part);
	return whole;
}

static void draw_columns(struct draw_bars *bars, const char *suffix)
{
	char name[64];

	for (int part = 0; part < (int)ARRAY_LEN(parts); part++) {
		snprintf(name, sizeof(name), "%s%s",
			 bars->screen->ns ? parts[part].ns : parts[part].cycles, suffix);
		bars->columns[part] = view_table_column(&bars->screen->grid.table, name);
	}
	for (int64_t row = 0; row < bars->screen->grid.table.row_count; row++)
		bars->greatest = fmax(bars->greatest, draw_whole(bars, row));
}

/* Ends are rounded, not lengths, so that the bar is as long as its whole. */
static void draw_bar(const struct draw_bars *bars, int64_t row, int y, struct view_pane *pane)
{
	const double whole = draw_whole(bars, row);
	const double scale = bars->screen->parts == VIEW_PARTS_EVEN ? whole : bars->greatest;
	double sum = 0;
	int x = 0;

	for (int part = 0; part < (int)ARRAY_LEN(parts) && scale > 0; part++) {
		int end;

		sum += draw_part(bars, row, part);
		end = (int)lround(sum / scale * pane->rect.width);
		for (; x < end; x++)
			view_put(pane, x, y, parts[part].style,
				 view_fill_char(pane->canvas, parts[part].style));
	}
}

static void draw_legend(struct view_pane *pane, const char *report)
{
	int x = 0;

	x += view_text(pane, x, 0, VIEW_DIM, report);
	for (int part = 0; part < (int)ARRAY_LEN(parts); part++) {
		x += x > 0;
		view_put(pane, x, 0, parts[part].style,
			 view_fill_char(pane->canvas, parts[part].style));
		x += 1 + view_text_cut(pane, x + 1, 0, pane->rect.width - x - 1, VIEW_DIM,
				       parts[part].title);
	}
}

static void draw_bars_of(struct draw_bars *bars, const char *suffix, const char *report,
			 struct view_pane pane)
{
	const struct view_grid *grid = &bars->screen->grid;

	draw_columns(bars, suffix);
	draw_legend(&pane, report);
	for (int i = 0; i + 1 < pane.rect.height && grid->scroll + i < grid->count; i++)
		draw_bar(bars, grid->order[grid->scroll + i], i + 1, &pane);
}

static void draw_breakdown(const struct view_operations *screen, const struct view_context *context,
			   const struct view_pane *pane)
{
	struct draw_bars bars = {.screen = screen};
	struct view_rect left = screen->bars, right = screen->bars;

	if (screen->bars.width < 1)
		return;
	if (!context->target) {
		draw_bars_of(&bars, "", "", draw_sub(pane, left));
		return;
	}
	left.width = (left.width - 1) / 2;
	right.x += left.width + 1;
	right.width -= left.width + 1;
	/* Both on the same scale. */
	draw_columns(&bars, "_target");
	draw_bars_of(&bars, "", "Source ", draw_sub(pane, left));
	draw_bars_of(&bars, "_target", "Target ", draw_sub(pane, right));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void draw_line(const struct view_operations *screen, struct view_pane *pane)
{
	const char *column = view__operations_looks[screen->way].name;
	const struct report_cell *cell = view_grid_cell(&screen->grid, column);
	const struct report_cell *stage = view_grid_cell(&screen->grid, "stage");
	const struct report_cell *phase = view_grid_cell(&screen->grid, "phase");
	char text[256];

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	if (screen->way == VIEW_BY_STAGE)
		snprintf(text, sizeof(text), " stage %lld, phase %s ",
			 stage && stage->type == PROF_INT ? (long long)stage->integer : -1LL,
			 phase && phase->type == PROF_TEXT ? phase->text : "-");
	else
		snprintf(text, sizeof(text), " %s %s ", column,
			 cell && cell->type == PROF_TEXT ? cell->text : "-");
	view_text_cut(pane, 2, 0, pane->rect.width - 4, VIEW_BOLD, text);
}

void view__operations_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane)
{
	const struct view_operations *screen = state;
	struct view_pane heading = draw_sub(pane, screen->heading);
	struct view_pane table = draw_sub(pane, screen->table);
	struct view_pane line = draw_sub(pane, screen->line);
	struct view_pane lower = draw_sub(pane, screen->lower);

	if (screen->grid.table.row_count == 0 && !screen->inside[0] && screen->stage < 0) {
		view_nothing(pane, "No operations have been recorded: the run had no",
			     "simulated device, or its plan is not written yet.");
		return;
	}
	draw_totals(screen, context, &heading);
	if (table.rect.height > 0)
		view_grid_draw(&screen->grid, &table, !context->whole);
	draw_breakdown(screen, context, pane);
	if (line.rect.height > 0)
		draw_line(screen, &line);
	if (lower.rect.height > 0)
		view_blocks_draw(&screen->details, &lower);
}
