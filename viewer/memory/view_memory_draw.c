/*
 * Draw the Memory screen: the heading, the curve and the histogram.
 *
 * Threading: the terminal's, but loads format the heading's lines. Ownership: none.
 */
#include "viewer/memory/view_memory_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"

/* ---- the heading ----------------------------------------------------------------------------- */

#define HEADING_CATEGORIES 4

/* Append @more unless @line then gets wider than @width. */
static bool memory_add_fitting(struct str *line, int width, const char *more)
{
	if (utf8_columns(str_peek(line)) + utf8_columns(more) > width)
		return false;
	str_add(line, more);
	return true;
}

/* Find the largest categories of the tile, in descending order. Return their number. */
static int memory_largest_categories(const struct view_memory *screen, int64_t index,
				     int out[HEADING_CATEGORIES])
{
	bool used_already[VIEW_MEMORY_CATEGORIES] = {false};
	int count = 0;

	for (; count < HEADING_CATEGORIES; count++) {
		int64_t most = 0;
		int at = -1;

		for (int c = 0; c < screen->categories; c++) {
			const int64_t bytes =
				view__memory_bytes(screen, 0, VIEW_MEMORY_CATEGORY + c, index);

			if (!used_already[c] && bytes > most) {
				most = bytes;
				at = c;
			}
		}
		if (at < 0)
			break;
		used_already[at] = true;
		out[count] = at;
	}
	return count;
}

/* The first pass measures; if the long names do not fit, the second pass writes abbreviations. */
static void memory_add_largest(const struct view_memory *screen, int64_t index, int width,
			       struct str *line)
{
	char name[VIEW_PLACE_NAME], bytes[FMT_SIZE], text[VIEW_PLACE_NAME + FMT_SIZE + 8];
	int categories[HEADING_CATEGORIES], room = width;
	const int count = memory_largest_categories(screen, index, categories);

	for (int pass = 0; pass < 2; pass++) {
		int used = utf8_columns(str_peek(line));

		for (int n = 0; n < count; n++) {
			const int c = categories[n];

			snprintf(text, sizeof(text), "%s%s %s", n == 0 ? ": " : ", ",
				 view__memory_brief(screen->category[c], room, name),
				 fmt_bytes(bytes,
					   (uint64_t)view__memory_bytes(
						   screen, 0, VIEW_MEMORY_CATEGORY + c, index)));
			used += utf8_columns(text);
			if (pass == 1 && !memory_add_fitting(line, width, text))
				return;
		}
		room = used <= width ? width : 0;
	}
}

static void memory_add_fullest(const struct view_memory *screen, int side, struct str *out)
{
	const int64_t index = screen->sums[side].fullest;
	char name[FMT_SIZE], bytes[FMT_SIZE], part[FMT_SIZE];
	int64_t total, capacity;

	if (index < 0) {
		str_add(out, "no memory recorded");
		return;
	}
	total = view__memory_bytes(screen, side, VIEW_MEMORY_TOTAL, index);
	capacity = view__memory_bytes(screen, side, VIEW_MEMORY_CAPACITY, index);
	str_addf(out, "tile %s: %s B, %s", view__memory_name(screen, index, name),
		 fmt_count(bytes, total), fmt_percent(part, view__memory_share(total, capacity)));
}

/* "does not fit: 2 tiles are out of memory, by up to 8.05 kB", or short "does not fit, by 8.05
 * kB" */
static void memory_add_verdict(const struct view_memory *screen, int side, int width,
			       struct str *line)
{
	const struct view_memory_sums *sums = &screen->sums[side];
	char tiles[FMT_SIZE], most[FMT_SIZE], text[2 * FMT_SIZE + 48];

	if (sums->over == 0) {
		str_add(line, "it fits");
		return;
	}
	str_add(line, "does not fit");
	fmt_bytes(most, (uint64_t)sums->excess);
	if (sums->over == 1)
		snprintf(text, sizeof(text), ": 1 tile is out of memory, by %s", most);
	else
		snprintf(text, sizeof(text), ": %s tiles are out of memory, by up to %s",
			 fmt_count(tiles, sums->over), most);
	if (memory_add_fitting(line, width, text))
		return;
	snprintf(text, sizeof(text), ", by %s", most);
	memory_add_fitting(line, width, text);
}

static void memory_add_use(const struct view_memory *screen, int side, int width, struct str *line)
{
	const struct view_memory_sums *sums = &screen->sums[side];
	char bytes[FMT_SIZE], all[FMT_SIZE], text[2 * FMT_SIZE + 32];

	snprintf(text, sizeof(text), ", %s of %s", fmt_bytes(bytes, (uint64_t)sums->bytes),
		 fmt_bytes(all, (uint64_t)sums->capacity));
	if (!memory_add_fitting(line, width, text) || sums->tiles == 0)
		return;
	snprintf(text, sizeof(text), ", mean tile %s",
		 fmt_bytes(bytes, (uint64_t)(sums->bytes / sums->tiles)));
	if (!memory_add_fitting(line, width, text))
		return;
	snprintf(text, sizeof(text), ", min %s", fmt_bytes(bytes, (uint64_t)sums->least));
	memory_add_fitting(line, width, text);
}

/* One report: its fullest tile, then the sum. Two reports: one line each. */
void view__memory_heading(struct view_memory *screen)
{
	static const char *const names[] = {"Source", "Target"};
	const int width = screen->areas.heading.width - 1;
	struct str lines[2] = {{0}, {0}};

	screen->fits = true;
	for (int s = 0; s < screen->sides; s++)
		screen->fits = screen->fits && screen->sums[s].over == 0;
	if (screen->sides == 1) {
		str_add(&lines[0], "Fullest ");
		memory_add_fullest(screen, 0, &lines[0]);
		if (screen->sums[0].fullest >= 0)
			memory_add_largest(screen, screen->sums[0].fullest, width, &lines[0]);
		if (screen->ipu != IPS_NULL)
			str_addf(&lines[1], "IPU %" PRId64 ", simulated: ", screen->ipu);
		else
			str_addf(&lines[1], "%d IPU%s, simulated: ", screen->ipus,
				 screen->ipus == 1 ? "" : "s");
		memory_add_verdict(screen, 0, width, &lines[1]);
		memory_add_use(screen, 0, width, &lines[1]);
	}
	for (int s = 0; s < screen->sides && screen->sides > 1; s++) {
		str_addf(&lines[s], "%s: fullest ", names[s]);
		memory_add_fullest(screen, s, &lines[s]);
		str_add(&lines[s], "; ");
		memory_add_verdict(screen, s, width, &lines[s]);
		memory_add_use(screen, s, width, &lines[s]);
	}
	for (int i = 0; i < 2; i++) {
		str_copy(screen->fullest[i], VIEW_MESSAGE_SIZE, str_peek(&lines[i]));
		str_free(&lines[i]);
	}
}

/* ---- pictures -------------------------------------------------------------------------------- */

#define RANGE_WIDTH 22 /* of a bin: "12.5 kB - 13 kB" */
#define COUNT_WIDTH 8
#define LEGEND_MOST 3 /* rows */
#define LEGEND_PART 4 /* least rows of the picture per row of the legend */

static const enum view_style memory_sides[VIEW_MEMORY_SIDES] = {VIEW_SOURCE, VIEW_TARGET};

/* ---- the curve ------------------------------------------------------------------------------- */

/* Draw a name and its area's colourless glyph. Return the column of the next entry. */
static int memory_draw_legend_entry(struct view_pane *pane, int x, int y, enum view_style style,
				    const char *name)
{
	const int room = pane->rect.width - x - 3;

	if (room < 1)
		return pane->rect.width;
	view_put(pane, x, y, style, view_fill_char(pane->canvas, style));
	return x + 2 + view_text_cut(pane, x + 2, y, room, VIEW_DIM, name) + 2;
}

static int64_t memory_tile_capacity(const struct view_memory *screen)
{
	const int64_t index = screen->sums[0].fullest;

	return index < 0 ? 0 : view__memory_bytes(screen, 0, VIEW_MEMORY_CAPACITY, index);
}

enum view_part_form {
	PART_SUMS, /* the name and the bytes of all shown tiles */
	PART_NAME,
	PART_BRIEF
};

static void memory_part_text(const struct view_memory *screen, int part, enum view_part_form form,
			     char *out, size_t size)
{
	const bool rest = screen->series_count > screen->stack_count;
	const int last = rest && part == screen->stack_count - 1 ? screen->series_count - 1 : part;
	const char *name = last > part ? "the others" : screen->series[part].name;
	char bytes[FMT_SIZE], brief[VIEW_PLACE_NAME];
	int64_t sum = 0;

	for (int i = part; i <= last; i++)
		sum = sat_add(sum, screen->series[i].sum);
	if (form == PART_SUMS)
		snprintf(out, size, "%s %s", name, fmt_bytes(bytes, (uint64_t)sum));
	else
		str_copy(out, size, form == PART_BRIEF ? view__memory_brief(name, 0, brief) : name);
}

/* Draw names and their glyphs, wrapped into at most @rows rows. @pane NULL: draw nothing. Return
 * the rows needed. */
static int memory_draw_parts(const struct view_memory *screen, struct view_pane *pane, int width,
			     enum view_part_form form, int rows)
{
	char text[VIEW_PLACE_NAME];
	int x = VIEW_MEMORY_SCALE, y = 0;

	for (int i = 0; i < screen->stack_count; i++) {
		memory_part_text(screen, i, form, text, sizeof(text));
		if (x > VIEW_MEMORY_SCALE && x + utf8_columns(text) + 3 > width && y + 1 < rows) {
			x = VIEW_MEMORY_SCALE;
			y++;
		}
		if (pane)
			memory_draw_legend_entry(pane, x, y, view_series_style(i), text);
		x += utf8_columns(text) + 4;
	}
	return y + 1;
}

/* The longest form in which all parts fit in one line, otherwise the shortest. */
static enum view_part_form memory_parts_form(const struct view_memory *screen, int width)
{
	enum view_part_form form = PART_SUMS;

	while (form < PART_BRIEF && memory_draw_parts(screen, NULL, width, form, INT_MAX) > 1)
		form++;
	return form;
}

static int memory_legend_rows(const struct view_memory *screen, const struct view_pane *pane)
{
	const int width = pane->rect.width, most = pane->rect.height / LEGEND_PART;
	const int rows = memory_draw_parts(screen, NULL, width, memory_parts_form(screen, width),
					   LEGEND_MOST);

	return min(most, rows);
}

static void memory_draw_legend(const struct view_memory *screen, const struct view_context *context,
			       struct view_pane *pane)
{
	static const char *const names[] = {"Source", "Target"};
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	char text[VIEW_PLACE_NAME + 64], bytes[FMT_SIZE];
	int x = VIEW_MEMORY_SCALE;

	if (screen->stack_count > 0) {
		memory_draw_parts(screen, pane, pane->rect.width,
				  memory_parts_form(screen, pane->rect.width),
				  memory_legend_rows(screen, pane));
		return;
	}
	for (int s = 0; s < screen->sides && screen->sides > 1; s++)
		x = memory_draw_legend_entry(pane, x, 0, memory_sides[s], names[s]);
	if (span > screen->curve.count && screen->curve.count > 0)
		snprintf(text, sizeof(text), "%s: the fullest of %" PRId64 " tiles a column",
			 view__memory_what(screen),
			 (span + screen->curve.count - 1) / screen->curve.count);
	else
		snprintf(text, sizeof(text), "%s of each tile", view__memory_what(screen));
	x += view_text_cut(pane, x, 0, pane->rect.width - x, VIEW_DIM, text);
	if (screen->capacity || context->whole || pane->rect.width - x < 32)
		return;
	snprintf(text, sizeof(text), "0: up to the %s of a tile",
		 fmt_bytes(bytes, (uint64_t)memory_tile_capacity(screen)));
	view_text_right(pane, x, 0, pane->rect.width - x, VIEW_DIM, text);
}

static void memory_draw_areas(const struct view_memory *screen, struct view_pane *plot,
			      const struct report_axis *y)
{
	const struct view_memory_curve *curve = &screen->curve;
	struct view_series series[VIEW_MEMORY_STACK];

	for (int i = 0; i < curve->parts; i++)
		series[i] = (struct view_series){.values = curve->part[i],
						 .count = curve->count,
						 .style = view_series_style(i)};
	if (curve->parts > 0) {
		view_chart_stack(plot, series, curve->parts, y);
	} else if (screen->sides == 1) {
		series[0] = (struct view_series){
			.values = curve->bytes[0], .count = curve->count, .style = VIEW_CURVE};
		view_chart_stack(plot, series, 1, y);
	}
	for (int s = 0; s < screen->sides && screen->sides > 1; s++) {
		series[0] = (struct view_series){
			.values = curve->bytes[s], .count = curve->count, .style = memory_sides[s]};
		view_chart_line(plot, &series[0], NULL, y);
	}
}

/* Draw the line of the tile's capacity if the scale extends to it. */
static void memory_draw_limit(const struct view_memory *screen, struct view_pane *plot)
{
	const int64_t capacity = memory_tile_capacity(screen);
	const double part = (double)capacity / (double)view__memory_top(screen);
	const int y = (int)((1 - part) * (plot->rect.height - 1) + 0.5);
	char text[FMT_SIZE + 32], bytes[FMT_SIZE];

	if (capacity <= 0 || part > 1.001)
		return;
	snprintf(text, sizeof(text), " a tile has %s ", fmt_bytes(bytes, (uint64_t)capacity));
	for (int x = 0; x < plot->rect.width; x++)
		if (view_char_at(plot, x, y) == ' ')
			view_glyphs(plot, x, y, VIEW_WARN, VIEW_GLYPH_HORIZONTAL, 1);
	if (utf8_columns(text) + 2 < plot->rect.width)
		view_text_right(plot, 0, y, plot->rect.width - 1, VIEW_WARN, text);
}

/* Label the tiles below the curve: the beginnings of IPUs and the last tile. */
static void memory_draw_tiles(const struct view_memory *screen, struct view_pane *pane, int y)
{
	const int left = VIEW_MEMORY_SCALE - 1, width = screen->curve.count;
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	char text[FMT_SIZE], name[FMT_SIZE];

	view_glyphs(pane, left, y, VIEW_DIM, VIEW_GLYPH_CORNER, 1);
	view_glyphs(pane, left + 1, y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	for (int64_t p = screen->from; p < screen->from + span;
	     p += screen->tiles - p % screen->tiles) {
		const int x = (int)((p - screen->from) * width / span);
		const int64_t next = p + screen->tiles - p % screen->tiles;
		const int room = (int)((next - p) * width / span);

		if (p > screen->from)
			view_glyphs(pane, left + 1 + x, y, VIEW_DIM, VIEW_GLYPH_TICK, 1);
		view__memory_name(screen, view__memory_at(screen, p), name);
		snprintf(text, sizeof(text), p == screen->from ? " tile %.30s " : " %.30s ", name);
		if (utf8_columns(text) + 2 < room)
			view_text_cut(pane, left + 2 + x, y, room - 2, VIEW_DIM, text);
	}
	snprintf(text, sizeof(text), " %.40s ",
		 view__memory_name(screen, view__memory_at(screen, screen->from + span - 1), name));
	if (width > 40)
		view_text_right(pane, left + 1, y, width - 1, VIEW_DIM, text);
}

static void memory_draw_curve(const struct view_memory *screen, const struct view_context *context,
			      struct view_pane *pane)
{
	const struct report_axis y = {
		.low = 0, .high = (double)view__memory_top(screen), .quantity = REPORT_BYTES};
	const int height = pane->rect.height;
	const int legend = height > 3 ? memory_legend_rows(screen, pane) : 0;
	const bool axis = height > 2;
	struct view_pane body = view_pane_sub(
		pane, (struct view_rect){0, legend, pane->rect.width, height - legend - axis});
	struct view_pane plot;

	if (screen->curve.count < 1)
		return;
	plot = view_chart_axes(&body, NULL, &y, VIEW_MEMORY_SCALE - 2);
	memory_draw_areas(screen, &plot, &y);
	memory_draw_limit(screen, &plot);
	if (!context->whole)
		view_chart_marker(
			&plot, view__memory_column_of(
				       screen,
				       view__memory_position(screen, view__memory_cursor(screen))));
	if (legend)
		memory_draw_legend(screen, context, pane);
	if (axis)
		memory_draw_tiles(screen, pane, height - 1);
}

/* ---- the histogram --------------------------------------------------------------------------- */

static void memory_draw_bin(const struct view_memory *screen, const struct view_context *context,
			    struct view_pane *pane, int at, int side, int64_t most)
{
	const struct view_memory_bin *bin = &screen->bins[at];
	const bool here = at == screen->bin_at && !context->whole;
	const int y = 1 + at * screen->sides + side;
	const int64_t from = screen->bin_base + at * screen->bin_bytes;
	const int width = pane->rect.width - RANGE_WIDTH - COUNT_WIDTH - 4;
	char text[2 * FMT_SIZE + 8], low[FMT_SIZE], high[FMT_SIZE];
	const double part = (double)bin->tiles[side] / (double)most;
	const int cells = (int)(part * width + 0.5);
	const enum view_style style = screen->sides > 1 ? memory_sides[side] : VIEW_CURVE;

	snprintf(text, sizeof(text), "%s - %s", fmt_bytes(low, (uint64_t)from),
		 fmt_bytes(high, (uint64_t)(from + screen->bin_bytes - 1)));
	if (side == 0) {
		view_text_right(pane, 1, y, RANGE_WIDTH - 1, here ? VIEW_BOLD : VIEW_NORMAL, text);
		if (here)
			view_glyphs(pane, 0, y, VIEW_KEY, VIEW_GLYPH_SELECT, 1);
	}
	view_text_right(pane, RANGE_WIDTH, y, COUNT_WIDTH, here ? VIEW_BOLD : VIEW_DIM,
			fmt_count(low, bin->tiles[side]));
	if (screen->sides > 1)
		view_put(pane, RANGE_WIDTH + COUNT_WIDTH + 1, y, VIEW_DIM, side == 0 ? 'S' : 'T');
	/* Any positive count is at least one cell. */
	for (int i = 0; i < cells || (i == 0 && part > 0); i++)
		view_put(pane, RANGE_WIDTH + COUNT_WIDTH + 3 + i, y, style,
			 view_fill_char(pane->canvas, style));
}

static void memory_draw_histogram(const struct view_memory *screen,
				  const struct view_context *context, struct view_pane *pane)
{
	char text[VIEW_PLACE_NAME + 32];
	int64_t most = 1;

	for (int i = 0; i < screen->bin_count; i++)
		for (int s = 0; s < screen->sides; s++)
			most = max(screen->bins[i].tiles[s], most);
	snprintf(text, sizeof(text), "tiles by %s%s", view__memory_what(screen),
		 screen->sides > 1 ? ": S Source, T Target" : "");
	view_text_right(pane, 0, 0, RANGE_WIDTH, VIEW_DIM, "bytes");
	view_text_right(pane, RANGE_WIDTH, 0, COUNT_WIDTH, VIEW_DIM, "tiles");
	view_text_cut(pane, RANGE_WIDTH + COUNT_WIDTH + 3, 0,
		      pane->rect.width - RANGE_WIDTH - COUNT_WIDTH - 3, VIEW_DIM, text);
	for (int i = 0; i < screen->bin_count; i++)
		for (int s = 0; s < screen->sides; s++)
			memory_draw_bin(screen, context, pane, i, s, most);
}

/* ---- the screen ------------------------------------------------------------------------------ */

void view__memory_draw(const void *state, const struct view_context *context,
		       struct view_pane *pane)
{
	static void (*const pictures[])(const struct view_memory *, const struct view_context *,
					struct view_pane *) = {
		[VIEW_MEMORY_CURVE] = memory_draw_curve,
		[VIEW_MEMORY_CHIP] = view__memory_draw_floor,
		[VIEW_MEMORY_HISTOGRAM] = memory_draw_histogram};
	const struct view_memory *screen = state;
	struct view_pane part;
	const enum view_style fits = screen->fits ? VIEW_NORMAL : VIEW_BAD;

	if (screen->ipus == 0) {
		view_nothing(pane, "No memory of tiles was recorded:",
			     "the run had no simulated device, or its plan is not written yet.",
			     context->source->none);
		return;
	}
	part = view_pane_sub(pane, screen->areas.heading);
	view_text_cut(&part, 1, 0, part.rect.width - 1, VIEW_BOLD, screen->fullest[0]);
	view_text_cut(&part, 1, 1, part.rect.width - 1, screen->sides > 1 ? VIEW_BOLD : fits,
		      screen->fullest[1]);
	part = view_pane_sub(pane, screen->areas.picture);
	if (screen->view < VIEW_MEMORY_TABLE) {
		pictures[screen->view](screen, context, &part);
	} else {
		/* The details have the columns that the table does not need. */
		part = view_pane_sub(
			pane, (struct view_rect){0, 0, screen->areas.picture.x + part.rect.width,
						 pane->rect.height});
		view_grid_draw(view__memory_shown_grid(screen), &part,
			       !screen->details.active && !context->whole);
	}
	part = view_pane_sub(pane, screen->areas.rule);
	view_glyphs(&part, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, part.rect.width);
	part = view_pane_sub(pane, screen->areas.details);
	view__memory_draw_details(screen, context, &part);
}
