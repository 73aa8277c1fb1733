/*
 * Draw the Operations screen: totals, the table with its bars, and details of the row under the
 * cursor.
 *
 * Threading: the terminal's; everything has been loaded. Ownership: none.
 */
#include "viewer/operations/view_operations_internal.h"

#include <math.h>
#include <stdio.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/sat.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- totals ---------------------------------------------------------------------------------- */

/* Cycles, or their time if the screen shows times. */
static const char *operations_amount_text(const struct view_operations *screen, double cycles,
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

/* Draw @text only if it fits completely. Return the columns used. */
static int operations_draw_if_fits(struct view_pane *pane, int x, const char *text)
{
	return x + utf8_columns(text) < pane->rect.width ? view_text(pane, x, 0, VIEW_DIM, text)
							 : 0;
}

static void operations_draw_totals(const struct view_operations *screen,
				   const struct view_context *context, struct view_pane *pane)
{
	const struct view_operations_totals *totals = &screen->totals[0];
	char amount[FMT_SIZE], other[FMT_SIZE], bytes[FMT_SIZE], part[2 * FMT_SIZE];
	int x = 1;

	x += view_text(pane, x, 0, VIEW_WARN, "simulated");
	x += view_textf(pane, x, 0, VIEW_DIM,
			", by %s: ", view__operations_groupings[screen->way].name);
	x += view_textf(pane, x, 0, VIEW_BOLD, "%s",
			operations_amount_text(screen, totals->cycles, amount));
	x += view_text(pane, x, 0, VIEW_DIM,
		       screen->alone ? ", each executed once" : " a weight update");
	if (context->target) {
		const double target = screen->totals[1].cycles;
		const double more = target - totals->cycles;

		view_textf(pane, x, 0, VIEW_NORMAL, ", target %s (%s%s)",
			   operations_amount_text(screen, target, other), more < 0 ? "-" : "+",
			   fmt_percent(bytes, fabs(more) / fmax(target, totals->cycles)));
		return;
	}
	if (!(totals->cycles > 0))
		return;
	snprintf(part, sizeof(part), ": compute %.0f %%, exchange %.0f %%, sync %.0f %%",
		 100 * totals->compute / totals->cycles, 100 * totals->exchange / totals->cycles,
		 100 * totals->sync / totals->cycles);
	if (x + utf8_columns(part) >= pane->rect.width)
		snprintf(part, sizeof(part), ": compute %.0f %%, sync %.0f %%",
			 100 * totals->compute / totals->cycles,
			 100 * totals->sync / totals->cycles);
	x += operations_draw_if_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s while they run (%s of the peak)",
		 fmt_flops(other, totals->flops / totals->cycles * screen->clock_hz),
		 fmt_percent(bytes, totals->flops / totals->cycles / screen->peak_cycle));
	if (isfinite(totals->flops * screen->clock_hz) && screen->peak_cycle > 0)
		x += operations_draw_if_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s FLOP",
		 isnan(totals->flops) ? "-" : fmt_count(other, sat_real(totals->flops)));
	x += operations_draw_if_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s of code",
		 isnan(totals->code_bytes)
			 ? "-"
			 : fmt_bytes(bytes, (uint64_t)sat_real(fmax(totals->code_bytes, 0))));
	operations_draw_if_fits(pane, x, part);
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* The parts of a row's cycles. */
static const struct {
	const char *title, *cycles, *ns;
	enum view_style style;
} parts[] = {
	{"compute", "update_compute", "compute_ns", VIEW_SERIES_1},
	{"exchange", "update_exchange", "exchange_ns", VIEW_SERIES_2},
	{"sync", "update_sync", "sync_ns", VIEW_SERIES_3},
};

struct draw_bars {
	const struct view_operations *screen;
	int columns[ARRAY_LEN(parts)];
	double greatest; /* over all rows and both reports */
};

static double operations_part_cycles(const struct draw_bars *bars, int64_t row, int part)
{
	const struct report_table *table = &bars->screen->grid.table;
	const struct report_cell *cell;

	if (bars->columns[part] < 0)
		return 0;
	cell = &table->cells[row * table->column_count + bars->columns[part]];
	return cell->type == PROF_INT && cell->integer > 0 ? (double)cell->integer : 0;
}

static double operations_row_cycles(const struct draw_bars *bars, int64_t row)
{
	double whole = 0;

	for (int part = 0; part < (int)ARRAY_LEN(parts); part++)
		whole += operations_part_cycles(bars, row, part);
	return whole;
}

static void operations_find_columns(struct draw_bars *bars, const char *suffix)
{
	char name[64];

	for (int part = 0; part < (int)ARRAY_LEN(parts); part++) {
		snprintf(name, sizeof(name), "%s%s",
			 bars->screen->ns ? parts[part].ns : parts[part].cycles, suffix);
		bars->columns[part] = view_table_column(&bars->screen->grid.table, name);
	}
	for (int64_t row = 0; row < bars->screen->grid.table.row_count; row++)
		bars->greatest = fmax(bars->greatest, operations_row_cycles(bars, row));
}

/* Round the ends of parts, not their lengths, so that the whole bar has the right length. */
static void operations_draw_bar(const struct draw_bars *bars, int64_t row, int y,
				struct view_pane *pane)
{
	const double whole = operations_row_cycles(bars, row);
	const double scale = bars->screen->parts == VIEW_PARTS_EVEN ? whole : bars->greatest;
	double sum = 0;
	int x = 0;

	for (int part = 0; part < (int)ARRAY_LEN(parts) && scale > 0; part++) {
		int end;

		sum += operations_part_cycles(bars, row, part);
		end = (int)lround(sum / scale * pane->rect.width);
		for (; x < end; x++)
			view_put(pane, x, y, parts[part].style,
				 view_fill_char(pane->canvas, parts[part].style));
	}
}

static void operations_draw_bars_of(struct draw_bars *bars, const char *suffix, const char *report,
				    struct view_pane pane)
{
	const struct view_grid *grid = &bars->screen->grid;
	int x;

	operations_find_columns(bars, suffix);

	x = 0;
	x += view_text(&pane, x, 0, VIEW_DIM, report);
	for (int part = 0; part < (int)ARRAY_LEN(parts); part++) {
		x += x > 0;
		view_put(&pane, x, 0, parts[part].style,
			 view_fill_char(pane.canvas, parts[part].style));
		x += 1 + view_text_cut(&pane, x + 1, 0, pane.rect.width - x - 1, VIEW_DIM,
				       parts[part].title);
	}
	for (int i = 0; i + 1 < pane.rect.height && grid->scroll + i < grid->count; i++)
		operations_draw_bar(bars, grid->order[grid->scroll + i], i + 1, &pane);
}

static void operations_draw_breakdown(const struct view_operations *screen,
				      const struct view_context *context,
				      const struct view_pane *pane)
{
	struct draw_bars bars = {.screen = screen};
	struct view_rect left = screen->bars, right = screen->bars;

	if (screen->bars.width < 1)
		return;
	if (!context->target) {
		operations_draw_bars_of(&bars, "", "", view_pane_sub(pane, left));
		return;
	}
	left.width = (left.width - 1) / 2;
	right.x += left.width + 1;
	right.width -= left.width + 1;
	/* Include the target before drawing, so that both have the same scale. */
	operations_find_columns(&bars, "_target");
	operations_draw_bars_of(&bars, "", "Source ", view_pane_sub(pane, left));
	operations_draw_bars_of(&bars, "_target", "Target ", view_pane_sub(pane, right));
}

/* ---- the screen ------------------------------------------------------------------------------ */

void view__operations_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane)
{
	const struct view_operations *screen = state;
	struct view_pane heading = view_pane_sub(pane, screen->heading);
	struct view_pane line = view_pane_sub(pane, screen->line);
	struct view_pane lower = view_pane_sub(pane, screen->lower);

	if (screen->grid.table.row_count == 0 && !screen->inside[0] && screen->stage < 0) {
		view_nothing(pane, "No operations have been recorded:",
			     "the run had no simulated device, or its plan is not written yet.",
			     context->source->none);
		return;
	}
	operations_draw_totals(screen, context, &heading);
	view_grid_draw(&screen->grid, pane, !context->whole);
	operations_draw_breakdown(screen, context, pane);
	if (line.rect.height > 0) {
		char name[250], text[256];

		view_glyphs(&line, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, line.rect.width);
		view__operations_row_name(screen, name, sizeof(name));
		snprintf(text, sizeof(text), " %s ", name);
		view_text_cut(&line, 2, 0, line.rect.width - 4, VIEW_BOLD, text);
	}
	if (lower.rect.height > 0)
		view_blocks_draw(&screen->details, &lower);
}
