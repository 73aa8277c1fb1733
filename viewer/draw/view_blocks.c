/*
 * Blocks of lines.
 *
 * Threading: one thread. Ownership: the arena owns texts, each block its array of lines.
 */
#include "viewer/draw/view_blocks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_chart.h"
#include "viewer/view_layout.h"

#define NAME_LEAST  16
#define TWO_FROM    98
#define VALUE_LEFT  25 /* columns reserved for a bar's value */
#define NOTE_UNTIL  98 /* most columns of a line with a note: beyond, it seems unrelated */
#define FOLD_INDENT 4  /* of continuation lines */
#define FOLD_LEAST  8
#define NOTE_FROM   36 /* columns of value and note; with fewer the note is omitted */

void view_blocks_clear(struct view_blocks *blocks)
{
	for (int i = 0; i < VIEW_BLOCKS_MOST; i++)
		blocks->block[i].count = 0;
	blocks->count = 0;
	blocks->later = 0;
	blocks->failed = false;
	blocks->found = -1;
	arena_reset(&blocks->arena);
}

void view_blocks_fini(struct view_blocks *blocks)
{
	for (int i = 0; i < VIEW_BLOCKS_MOST; i++)
		mem_free(blocks->block[i].lines);
	arena_fini(&blocks->arena);
	memset(blocks, 0, sizeof(*blocks));
}

/* Names get at most three fifths of a narrow block; the rest is for values. */
static int blocks_name_width(const struct view_block *block)
{
	return min(block->name_width, max(block->place.width * 3 / 5, NAME_LEAST));
}

void view_blocks_begin(struct view_blocks *blocks, const char *title, int name_width)
{
	struct view_block *block;

	if (blocks->count == VIEW_BLOCKS_MOST) {
		blocks->failed = true;
		return;
	}
	block = &blocks->block[blocks->count++];
	block->title = title;
	block->name_width = name_width;
	block->count = 0;
}

__attribute__((format(printf, 3, 0))) static void
view_blocks_add(struct view_blocks *blocks, struct view_line line, const char *format, va_list args)
{
	struct view_block *block = &blocks->block[blocks->count - 1];

	line.value = arena_vprintf(&blocks->arena, format, args);
	if (!line.value ||
	    mem_grow(&block->lines, &block->capacity, block->count + 1, sizeof(*block->lines))) {
		blocks->failed = true;
		return;
	}
	block->lines[block->count++] = line;
}

void view_blocks_fact(struct view_blocks *blocks, const char *name, enum view_style style,
		      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	view_blocks_add(blocks,
			(struct view_line){.kind = VIEW_LINE_FACT, .style = style, .name = name},
			format, args);
	va_end(args);
}

void view_blocks_text(struct view_blocks *blocks, enum view_style style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	view_blocks_add(blocks, (struct view_line){.kind = VIEW_LINE_TEXT, .style = style}, format,
			args);
	va_end(args);
}

void view_blocks_fold(struct view_blocks *blocks, const char *named, enum view_style style,
		      int width, const char *text)
{
	const char *name = named;

	width = max(width, 8);
	while (*text) {
		const size_t length = view_text_fold(text, width);

		if (named)
			view_blocks_fact(blocks, name, style, "%.*s", (int)length, text);
		else
			view_blocks_text(blocks, style, "%.*s", (int)length, text);
		name = "";
		text += length;
		text += *text == ' ' || *text == '\n';
	}
}

void view_blocks_bar(struct view_blocks *blocks, const char *name, enum view_style style,
		     double part, double mark, const char *format, ...)
{
	const struct view_line line = {
		.kind = VIEW_LINE_BAR, .style = style, .name = name, .part = part, .mark = mark};
	va_list args;

	va_start(args, format);
	view_blocks_add(blocks, line, format, args);
	va_end(args);
}

void view_blocks_link(struct view_blocks *blocks, int link)
{
	struct view_block *block = &blocks->block[blocks->count - 1];

	if (block->count > 0)
		block->lines[block->count - 1].link = link;
}

/* Find line @at, counted through all blocks, and its row on the page. NULL: none. */
static const struct view_line *view_blocks_line(const struct view_blocks *blocks, int at, int *row)
{
	for (int b = 0; b < blocks->count && at >= 0; b++) {
		const struct view_block *block = &blocks->block[b];

		if (at < (int)block->count) {
			*row = block->place.y + 1 + at;
			return &block->lines[at];
		}
		at -= (int)block->count;
	}
	return NULL;
}

int view_blocks_linked(const struct view_blocks *blocks)
{
	const struct view_line *line;
	int row;

	line = view_blocks_line(blocks, blocks->found, &row);
	return line ? line->link : 0;
}

bool view_blocks_click(struct view_blocks *blocks, int x, int y)
{
	int before = 0; /* lines of the previous blocks */

	for (int b = 0; b < blocks->count; b++) {
		const struct view_block *block = &blocks->block[b];
		const int at = y + blocks->scroll - block->place.y - 1;

		if (at >= 0 && at < (int)block->count && x > block->place.x &&
		    x <= block->place.x + block->place.width) {
			if (block->lines[at].link == 0)
				return false;
			blocks->found = before + at;
			return true;
		}
		before += (int)block->count;
	}
	return false;
}

static int view_two_column_width(const struct view_blocks *blocks)
{
	return blocks->two_from ? blocks->two_from : TWO_FROM;
}

int view_blocks_line_width(const struct view_blocks *blocks, bool head, int width)
{
	static const int many[] = {1, 1, 1}; /* one block for each possible column */
	struct view_rect places[ARRAY_LEN(many)];

	if (head)
		return width - 3;
	view_blocks_layout(width - 2, view_two_column_width(blocks), many, ARRAY_LEN(many), places);
	return places[0].width - 1;
}

/* Wrap @line into as many lines of @block as its column needs. */
static bool view_fold_line(struct view_blocks *blocks, struct view_block *block,
			   struct view_line line)
{
	const bool named = line.kind == VIEW_LINE_FACT;
	const int width = block->place.width - 1 - (named ? blocks_name_width(block) : FOLD_INDENT);
	const char *text = line.value;
	size_t length = view_text_fold(text, named ? width : width + FOLD_INDENT);

	if (line.kind == VIEW_LINE_BAR || width < FOLD_LEAST)
		length = strlen(text);
	for (;;) {
		if (text != line.value || text[length])
			line.value = arena_printf(&blocks->arena, "%*s%.*s",
						  text == line.value || named ? 0 : FOLD_INDENT, "",
						  (int)length, text);
		if (!line.value || mem_grow(&block->lines, &block->capacity, block->count + 1,
					    sizeof(*block->lines)))
			return false;
		block->lines[block->count++] = line;
		text += length;
		text += strspn(text, " \n");
		if (!*text)
			return true;
		length = view_text_fold(text, width);
		line = (struct view_line){.kind = line.kind, .style = line.style, .name = ""};
	}
}

/* Wrap the lines of @block. Return true if it has more lines now. */
static bool view_fold_block(struct view_blocks *blocks, struct view_block *block)
{
	struct view_block folded = *block;
	bool more;

	folded.lines = NULL;
	folded.count = folded.capacity = 0;
	for (size_t i = 0; i < block->count && !blocks->failed; i++)
		blocks->failed = !view_fold_line(blocks, &folded, block->lines[i]);
	if (blocks->failed) {
		mem_free(folded.lines);
		return false;
	}
	more = folded.count > block->count;
	mem_free(block->lines);
	*block = folded;
	return more;
}

static void view_position_blocks(struct view_blocks *blocks, int width)
{
	const int two_from = view_two_column_width(blocks);
	/* Number of blocks above the columns: 0 if there is only one column. */
	const int heads = width - 2 < two_from ? 0 : min(blocks->heads, blocks->count);
	const int ends[] = {blocks->later > heads ? min(blocks->later, blocks->count) : heads,
			    blocks->count};
	int heights[VIEW_BLOCKS_MOST], top = 0, first = heads;
	struct view_rect places[VIEW_BLOCKS_MOST];

	for (int i = 0; i < blocks->count; i++)
		heights[i] = (int)blocks->block[i].count + 1;
	for (int i = 0; i < heads; i++) {
		blocks->block[i].place = (struct view_rect){0, top, width - 2, heights[i]};
		top += heights[i] + 1;
	}
	for (size_t part = 0; part < ARRAY_LEN(ends); part++) {
		const int count = ends[part] - first;
		const int height =
			view_blocks_layout(width - 2, two_from, heights + first, count, places);

		for (int i = 0; i < count; i++) {
			blocks->block[first + i].place = places[i];
			blocks->block[first + i].place.y += top;
		}
		top += count > 0 ? height + 1 : 0;
		first = ends[part];
	}
	blocks->width = width;
	blocks->height = max(top - 1, 0);
}

enum status view_blocks_fit(struct view_blocks *blocks, int width, int height, struct err *err)
{
	bool more;

	if (blocks->failed)
		return err_nomem(err);
	/* Wrapping may change the columns and make them narrower. This ends: lines only get
	 * shorter. */
	do {
		view_position_blocks(blocks, width);
		more = false;
		for (int i = 0; blocks->folds && i < blocks->count; i++)
			more = view_fold_block(blocks, &blocks->block[i]) || more;
	} while (more);
	if (blocks->failed)
		return err_nomem(err);
	if (blocks->scroll > blocks->height - height)
		blocks->scroll = blocks->height > height ? blocks->height - height : 0;
	return ST_OK;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void blocks_draw_bar(const struct view_line *line, int x, int y, int width,
			    struct view_pane *pane)
{
	const int bar = max(width - VALUE_LEFT, 4);
	const int used = view_chart_bar(pane, x, y, bar, line->style, line->part);

	view_glyphs(pane, x + used, y, VIEW_DIM, VIEW_GLYPH_TRACK, bar - used);
	if (isfinite(line->mark))
		view_glyphs(pane, x + (int)lrint(fmin(fmax(line->mark, 0), 1) * (bar - 1)), y,
			    VIEW_BOLD, VIEW_GLYPH_THEORY, 1);
	view_text_cut(pane, x + bar + 1, y, width - bar - 1, VIEW_NORMAL, line->value);
}

static void blocks_draw_line(const struct view_block *block, const struct view_line *line, int x,
			     int y, int width, bool found, struct view_pane *pane)
{
	const int name = blocks_name_width(block);

	if (line->note && width >= name + NOTE_FROM) {
		width = min(width, NOTE_UNTIL);
		view_text_right(pane, x, y, width, VIEW_KEY, line->note);
		width -= utf8_columns(line->note) + 1;
	}
	if (line->kind == VIEW_LINE_TEXT) {
		view_text_cut(pane, x, y, width, found ? VIEW_CURSOR : line->style, line->value);
		return;
	}
	view_text_middle(pane, x, y, name - 1, found ? VIEW_CURSOR : VIEW_DIM, line->name);
	if (line->kind == VIEW_LINE_BAR)
		blocks_draw_bar(line, x + name, y, width - name, pane);
	else
		view_text_cut(pane, x + name, y, width - name, line->style, line->value);
}

void view_blocks_draw(const struct view_blocks *blocks, struct view_pane *pane)
{
	for (int i = 0, first = 0; i < blocks->count; i++) {
		const struct view_block *block = &blocks->block[i];
		const int x = block->place.x + 1, width = block->place.width;
		int y = block->place.y - blocks->scroll, used;

		if (y >= 0) {
			used = view_text_cut(pane, x, y, width, VIEW_TITLE, block->title);
			view_glyphs(pane, x + used + 1, y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL,
				    width - used - 1);
		}
		for (size_t l = 0; l < block->count; l++) {
			y = block->place.y + 1 + (int)l - blocks->scroll;
			if (y >= 0 && y < pane->rect.height)
				blocks_draw_line(block, &block->lines[l], x + 1, y, width - 1,
						 blocks->found == first + (int)l, pane);
		}
		first += (int)blocks->block[i].count;
	}
	if (blocks->scroll > 0)
		view_glyphs(pane, pane->rect.width - 1, 0, VIEW_KEY, VIEW_GLYPH_UP, 1);
	if (blocks->scroll + pane->rect.height < blocks->height)
		view_glyphs(pane, pane->rect.width - 1, pane->rect.height - 1, VIEW_KEY,
			    VIEW_GLYPH_DOWN, 1);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void view_blocks_scroll(struct view_blocks *blocks, int height, int to)
{
	const int most = blocks->height > height ? blocks->height - height : 0;

	blocks->scroll = to < 0 ? 0 : to > most ? most : to;
}

static void view_blocks_show(struct view_blocks *blocks, int height)
{
	int row;

	if (view_blocks_line(blocks, blocks->found, &row) &&
	    (row < blocks->scroll || row >= blocks->scroll + height))
		view_blocks_scroll(blocks, height, row - height / 2);
}

/* Move to the next line with a link; if there is none, scroll by one row. */
static void view_blocks_step(struct view_blocks *blocks, int height, int by)
{
	const struct view_line *line;
	int row, at = blocks->found;

	if (at < 0 && by < 0)
		at = 0;
	for (at += by; (line = view_blocks_line(blocks, at, &row)); at += by)
		if (line->link)
			break;
	if (line) {
		blocks->found = at;
		view_blocks_show(blocks, height);
	} else {
		view_blocks_scroll(blocks, height, blocks->scroll + by);
	}
}

enum view_answer view_blocks_request(struct view_blocks *blocks, int height,
				     enum view_request request)
{
	int64_t to = blocks->scroll;

	if (!view_list_move(&to, request, height - 1, blocks->height + 1))
		return VIEW_UNHANDLED;
	if (request == VIEW_UP_REQUEST || request == VIEW_DOWN_REQUEST)
		view_blocks_step(blocks, height, request == VIEW_UP_REQUEST ? -1 : 1);
	else
		view_blocks_scroll(blocks, height, (int)to);
	return VIEW_DRAW;
}

bool view_blocks_search(struct view_blocks *blocks, struct view_context *context, int height,
			const char *text, bool forward)
{
	struct view_search search = view_search_from(blocks->found, forward);
	const struct view_line *line;
	int row;

	for (int at = 0; (line = view_blocks_line(blocks, at, &row)); at++)
		if (strcasestr(line->value, text) || (line->name && strcasestr(line->name, text)))
			view_search_match(&search, at);
	blocks->found = (int)view_search_end(&search, &context->hit, &context->hits);
	view_blocks_show(blocks, height);
	return blocks->found >= 0;
}

void view_blocks_status(const struct view_blocks *blocks, int height, char *out, size_t size)
{
	const int last = min(blocks->scroll + height, blocks->height);

	if (height >= blocks->height)
		out[0] = '\0';
	else
		snprintf(out, size, "rows %d to %d of %d", blocks->scroll + 1, last,
			 blocks->height);
}
