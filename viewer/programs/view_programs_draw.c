/*
 * Drawing the screen Programs: the tree with its cycles, and more of one program below.
 *
 * Threading: the terminal's. Ownership: none; nothing is loaded here.
 */
#include "viewer/programs/view_programs_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"

#define NUMBER_WIDTH 11 /* of cycles */
#define NUMBER_LEAST 7  /* "Source" and the mark of the order */
#define NARROW       60 /* columns: numbers take what they need */
#define DIFF_WIDTH   21 /* with percent */
#define TIMES_WIDTH  7
#define SHARE_WIDTH  8
#define BAR_WIDTH    12
#define NAME_LEAST   20
#define NAME_NARROW  12 /* comparing on a narrow screen */
#define NAME_MOST    96 /* before the bar gets what is left */
#define NAME_GOOD    40 /* what is less than cycles leaves that much to names */

/* Colours and letters by type; the colours are PopVision's. */
static const struct {
	const char *type;
	char letter;
	enum view_style style;
} marks[] = {
	{"Sequence", 's', VIEW_WEIGHT_TEXT},
	{"Repeat", 'r', VIEW_WEIGHT_TEXT},
	{"Call", 'c', VIEW_TITLE},
	{"OnTileExecute", 'X', VIEW_BAD},
	{"DoExchange", 'e', VIEW_FORWARD_TEXT},
	{"GlobalExchange", 'g', VIEW_UPDATE_TEXT},
	{"Sync", 'y', VIEW_WARN},
	{"StreamCopyBegin", 'b', VIEW_OTHER_TEXT},
	{"StreamCopyMid", 'm', VIEW_BACKWARD_TEXT},
	{"StreamCopyEnd", 'd', VIEW_WARN},
	{"WriteUndef", 'u', VIEW_OTHER_TEXT},
};

static void draw_mark(struct view_pane *pane, int x, int y, const char *type, bool selected)
{
	char letter = '?';
	enum view_style style = VIEW_OTHER_TEXT;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strcmp(marks[i].type, type) == 0) {
			letter = marks[i].letter;
			style = marks[i].style;
		}
	view_put(pane, x, y, selected ? VIEW_CURSOR : style, (uint32_t)letter);
}

static struct view_pane draw_sub(const struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Columns stand at the right of the pane; 0: there is no room. */
struct draw_columns {
	int name, times, cycles, target, diff, share, bar;
};

static bool take(int *room, int *column, int width, int name)
{
	if (*room - width - 1 < name)
		return false;
	*column = width;
	*room -= width + 1;
	return true;
}

/* Cycles of all roots: what shares are of. */
static double draw_whole(const struct view_programs *screen, int side)
{
	const struct view_tree *tree = &screen->tree;
	double whole = 0;

	for (int i = tree->first; tree->walk_count > 0 && i >= 0; i = tree->nodes[i].next)
		whole += (double)tree->nodes[i].cycles[side];
	return whole;
}

/* Nothing has more digits than the sum of all. */
static int draw_number_width(const struct view_programs *screen, int width)
{
	int wide = NUMBER_LEAST;
	char text[FMT_SIZE];

	for (int side = 0; side < VIEW_SIDES && width < NARROW; side++) {
		const int digits =
			(int)strlen(fmt_count(text, (int64_t)draw_whole(screen, side))) + 1;

		wide = max(digits, wide);
	}
	return width < NARROW && wide < NUMBER_WIDTH ? wide : NUMBER_WIDTH;
}

/* Source, Target and Diff as far as there is room; where less is asked for, Diff alone. */
static void draw_compared(const struct view_programs *screen, struct draw_columns *columns,
			  int *room)
{
	const int number = draw_number_width(screen, *room);
	const int name = *room < NARROW ? NAME_NARROW : NAME_LEAST;
	bool fits = screen->columns == VIEW_PROGRAM_CYCLES;

	if (!fits)
		fits = take(room, &columns->cycles, number, name) &&
		       take(room, &columns->target, number, name);
	if (fits)
		take(room, &columns->diff, *room > NAME_GOOD + DIFF_WIDTH ? DIFF_WIDTH : number,
		     name);
}

static struct draw_columns draw_layout(const struct view_programs *screen, int width, bool compared)
{
	struct draw_columns columns = {0};
	int room = width - 3; /* marks at both edges, a blank before the right one */

	if (compared && screen->columns != VIEW_PROGRAM_NAMES)
		draw_compared(screen, &columns, &room);
	else if (screen->columns != VIEW_PROGRAM_NAMES &&
		 take(&room, &columns.cycles, NUMBER_WIDTH, NAME_LEAST) &&
		 screen->columns == VIEW_PROGRAM_ALL_COLUMNS) {
		take(&room, &columns.share, SHARE_WIDTH, NAME_GOOD);
		take(&room, &columns.times, TIMES_WIDTH, NAME_GOOD);
		take(&room, &columns.bar, BAR_WIDTH, NAME_GOOD);
	}
	/* Numbers stay near to the names: a wide screen widens the bar. */
	if (columns.bar > 0 && room > NAME_MOST) {
		columns.bar += room - NAME_MOST;
		room = NAME_MOST;
	}
	columns.name = room;
	return columns;
}

static const char *draw_cycles(const struct view_programs *screen, const struct view_program *node,
			       int side, char out[FMT_SIZE])
{
	const int64_t cycles = screen->flat ? node->own[side] : node->cycles[side];

	return node->id[side] == IPS_NULL || cycles == 0 ? "-" : fmt_count(out, cycles);
}

static void draw_diff(struct view_pane *pane, int x, int y, int width, bool selected,
		      const int64_t cycles[VIEW_SIDES], bool both)
{
	const int64_t diff = cycles[1] - cycles[0];
	const int64_t larger = max(cycles[1], cycles[0]);
	char count[FMT_SIZE], share[FMT_SIZE], text[2 * FMT_SIZE + 8];
	const enum view_style style = selected            ? VIEW_CURSOR
				      : both && diff != 0 ? VIEW_WARN
							  : VIEW_DIM;

	if (!both)
		snprintf(text, sizeof(text), "-");
	else if (diff == 0)
		snprintf(text, sizeof(text), "0");
	else if (width >= DIFF_WIDTH)
		snprintf(text, sizeof(text), "%c%s (%s)", diff < 0 ? '-' : '+',
			 fmt_count(count, diff < 0 ? -diff : diff),
			 fmt_percent(share, fabs((double)diff) / (double)larger));
	else
		snprintf(text, sizeof(text), "%c%s", diff < 0 ? '-' : '+',
			 fmt_count(count, diff < 0 ? -diff : diff));
	view_text_right(pane, x, y, width, style, text);
}

static void draw_bar(struct view_pane *pane, int x, int y, int width, bool selected, double share)
{
	const int full = (int)ceil(fmin(fmax(share, 0), 1) * width);

	view_glyphs(pane, x, y, selected ? VIEW_CURSOR : VIEW_CURVE, VIEW_GLYPH_FULL, full);
}

static void draw_numbers(const struct view_programs *screen, const struct draw_columns *columns,
			 const struct view_program *node, int y, bool selected, double whole,
			 struct view_pane *pane)
{
	const enum view_style style = selected ? VIEW_CURSOR : VIEW_NORMAL;
	const int64_t *cycles = screen->flat ? node->own : node->cycles;
	const double share = whole > 0 ? (double)cycles[0] / whole : 0;
	int x = 1 + columns->name + 1;
	char text[FMT_SIZE];

	if (columns->times > 0) {
		view_text_right(pane, x, y, columns->times, style,
				node->times[0] > 0 ? fmt_count(text, node->times[0]) : "");
		x += columns->times + 1;
	}
	if (columns->cycles > 0) {
		view_text_right(pane, x, y, columns->cycles, style,
				draw_cycles(screen, node, VIEW_SOURCE_SIDE, text));
		x += columns->cycles + 1;
	}
	if (columns->target > 0) {
		view_text_right(pane, x, y, columns->target, style,
				draw_cycles(screen, node, VIEW_TARGET_SIDE, text));
		x += columns->target + 1;
	}
	if (columns->diff > 0)
		draw_diff(pane, x, y, columns->diff, selected, cycles,
			  node->id[0] != IPS_NULL && node->id[1] != IPS_NULL);
	if (columns->share > 0) {
		view_text_right(pane, x, y, columns->share, style,
				cycles[0] > 0 ? fmt_percent(text, share) : "");
		x += columns->share + 1;
	}
	if (columns->bar > 0)
		draw_bar(pane, x, y, columns->bar, selected, share);
}

static void draw_headings(const struct view_programs *screen, const struct draw_columns *columns,
			  bool compared, struct view_pane *pane)
{
	const struct {
		int width;
		const char *title;
	} titles[] = {{columns->times, "times"},
		      {columns->cycles, compared ? "Source" : "cycles"},
		      {columns->target, "Target"},
		      {columns->diff, "Diff"},
		      {columns->share, "share"}};
	char title[80];
	int x = 1 + columns->name + 1;

	snprintf(title, sizeof(title), "program (simulated cycles of %s%s)",
		 view__programs_of(screen), compared ? "; - Source, + Target only" : "");
	view_fill(pane, 0, 0, pane->rect.width, VIEW_BOLD);
	view_text_cut(pane, 1, 0, columns->name, VIEW_DIM,
		      screen->flat ? "what works (simulated cycles)" : title);
	for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
		const bool sorted =
			i == 1 && (screen->order == VIEW_PROGRAMS_BY_CYCLES || screen->flat);

		if (titles[i].width == 0)
			continue;
		view_text_right(pane, x, 0, titles[i].width - sorted, sorted ? VIEW_KEY : VIEW_DIM,
				titles[i].title);
		if (sorted)
			view_glyphs(pane, x + titles[i].width - 1, 0, VIEW_KEY,
				    screen->reverse ? VIEW_GLYPH_UP : VIEW_GLYPH_DOWN, 1);
		x += titles[i].width + 1;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void draw_name(const struct view_programs *screen, const struct draw_columns *columns,
		      const struct view_program *node, int y, bool selected, struct view_pane *pane)
{
	const enum view_style style = selected ? VIEW_CURSOR : VIEW_NORMAL;
	const int deepest = (columns->name - NAME_LEAST) / 2;
	const int depth = screen->flat ? 0 : node->depth;
	int x = 1 + 2 * (depth < deepest ? depth : deepest > 0 ? deepest : 0);
	char text[512], times[FMT_SIZE];

	/* Deeper than there is room to show by blanks. */
	if (depth > deepest)
		x += view_textf(pane, x, y, selected ? VIEW_CURSOR : VIEW_DIM, "%d:", depth);
	if (node->first != VIEW_NO_PROGRAM && !screen->flat)
		view_glyphs(pane, x, y, style, node->open ? VIEW_GLYPH_DOWN : VIEW_GLYPH_SELECT, 1);
	draw_mark(pane, x + 2, y, node->type, selected);
	if (node->repeat != IPS_NULL)
		snprintf(text, sizeof(text), "%.100s (%.300s) x %s", node->type, node->name,
			 fmt_count(times, node->repeat));
	else if (node->call != IPS_NULL)
		snprintf(text, sizeof(text), "%.100s (%.300s) > #%lld", node->type, node->name,
			 (long long)node->call);
	else
		snprintf(text, sizeof(text), "%.100s (%.300s)", node->type, node->name);
	view_text_cut(pane, x + 4, y, columns->name - x - 3, style, text);
}

static void draw_row(const struct view_programs *screen, const struct draw_columns *columns,
		     int row, int y, bool selected, double whole, struct view_pane *pane)
{
	const struct view_program *node = &screen->tree.nodes[screen->rows[row]];

	if (selected) {
		view_fill(pane, 0, y, pane->rect.width, VIEW_CURSOR);
		view_glyphs(pane, 0, y, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
	} else if (columns->target > 0 || columns->diff > 0) {
		if (node->id[VIEW_TARGET_SIDE] == IPS_NULL)
			view_put(pane, 0, y, VIEW_WARN, '-');
		else if (node->id[VIEW_SOURCE_SIDE] == IPS_NULL)
			view_put(pane, 0, y, VIEW_WARN, '+');
	}
	draw_name(screen, columns, node, y, selected, pane);
	draw_numbers(screen, columns, node, y, selected, whole, pane);
}

static void draw_scroll_mark(const struct view_programs *screen, struct view_pane *pane)
{
	const int rows = pane->rect.height - 1;
	const int size = (int)((double)rows * rows / screen->count) + 1;
	int from = (int)((double)screen->scroll * rows / screen->count);

	if (screen->scroll + rows >= screen->count || from > rows - size)
		from = rows - size;
	for (int y = 0; y < rows; y++)
		view_glyphs(pane, pane->rect.width - 1, y + 1, VIEW_DIM,
			    y >= from && y < from + size ? VIEW_GLYPH_FULL : VIEW_GLYPH_VERTICAL,
			    1);
}

static void draw_tree(const struct view_programs *screen, const struct view_context *context,
		      struct view_pane *pane)
{
	const bool compared = context->target != NULL;
	const struct draw_columns columns = draw_layout(screen, pane->rect.width, compared);
	const double whole = draw_whole(screen, VIEW_SOURCE_SIDE);
	const int rows = pane->rect.height - 1;

	draw_headings(screen, &columns, compared, pane);
	if (screen->count == 0)
		view_text(pane, 1, 1, VIEW_DIM,
			  screen->filter[0] ? "Nothing matches the filter: Esc shows all."
					    : "Nothing differs: D shows all.");
	for (int i = 0; i < rows && screen->scroll + i < screen->count; i++)
		draw_row(screen, &columns, screen->scroll + i, i + 1,
			 screen->scroll + i == screen->at && !context->whole, whole, pane);
	if (screen->count > rows && rows > 0)
		draw_scroll_mark(screen, pane);
}

static void draw_line(const struct view_programs *screen, struct view_pane *pane)
{
	const struct view_program *node = view__programs_at(screen);
	char text[400];

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	if (!node)
		return;
	snprintf(text, sizeof(text), " %.80s (%.280s) ", node->type, node->name);
	view_text_cut(pane, 2, 0, pane->rect.width - 4, VIEW_BOLD, text);
}

void view__programs_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_programs *screen = state;
	struct view_pane table = draw_sub(pane, screen->table);
	struct view_pane line = draw_sub(pane, screen->line);
	struct view_pane lower = draw_sub(pane, screen->lower);

	if (screen->tree.count == 0) {
		view_nothing(pane, "No programs have been recorded: the run had no",
			     "simulated device, or its plan is not written yet.");
		return;
	}
	draw_tree(screen, context, &table);
	if (line.rect.height > 0)
		draw_line(screen, &line);
	if (lower.rect.height > 0)
		view_blocks_draw(&screen->details, &lower);
}
