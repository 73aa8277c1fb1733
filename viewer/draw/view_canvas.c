/*
 * Cells in memory, and the only functions that write text into them.
 *
 * Threading: one thread per canvas. Ownership: the canvas owns its cells.
 */
#include "viewer/draw/view_canvas.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define VIEW_TEXT_SIZE 1024

static const uint32_t view_glyph_table[][2] = {
#define VIEW_GLYPH_ROW(name, wide, narrow) [VIEW_GLYPH_##name] = {wide, narrow},
	VIEW_GLYPH_MAP(VIEW_GLYPH_ROW)
#undef VIEW_GLYPH_ROW
};
_Static_assert(ARRAY_LEN(view_glyph_table) == VIEW_GLYPHS, "glyph table out of step");

void view_canvas_clear(struct view_canvas *canvas)
{
	const size_t count = (size_t)canvas->width * (size_t)canvas->height;

	for (size_t i = 0; i < count; i++)
		canvas->cells[i] = (struct view_cell){.character = ' ', .style = VIEW_NORMAL};
}

enum status view_canvas_resize(struct view_canvas *canvas, int width, int height, struct err *err)
{
	size_t needed;

	if (width < 1 || height < 1 || width > 10000 || height > 10000)
		return err_set(err, ST_LIMIT, "a screen of %d x %d", width, height);
	needed = (size_t)width * (size_t)height;
	if (mem_grow(&canvas->cells, &canvas->capacity, needed, sizeof(*canvas->cells)))
		return err_nomem(err);

	canvas->width = width;
	canvas->height = height;
	view_canvas_clear(canvas);
	return ST_OK;
}

void view_canvas_fini(struct view_canvas *canvas)
{
	mem_free(canvas->cells);
	canvas->cells = NULL;
	canvas->capacity = 0;
	canvas->width = canvas->height = 0;
}

int view_encode(uint32_t character, char out[5])
{
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	const int length = character < 0x80      ? 1
			   : character < 0x800   ? 2
			   : character < 0x10000 ? 3
						 : 4;

	out[length] = '\0';
	if (length == 1) {
		out[0] = (char)character;
		return 1;
	}
	for (int i = length - 1; i > 0; i--) {
		out[i] = (char)(0x80u | (character & 0x3fu));
		character >>= 6;
	}
	out[0] = (char)(first[length] | character);
	return length;
}

enum status view_canvas_print(const struct view_canvas *canvas, int from, int to, FILE *out,
			      struct err *err)
{
	char bytes[5];

	for (int y = from; y < to; y++) {
		const struct view_cell *row = &canvas->cells[(size_t)y * (size_t)canvas->width];
		int end = canvas->width;

		while (end > 0 && row[end - 1].character == ' ')
			end--;
		for (int x = 0; x < end; x++)
			if (row[x].character != 0) {
				view_encode(row[x].character, bytes);
				fputs(bytes, out);
			}
		fputc('\n', out);
	}
	if (ferror(out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}

struct view_pane view_pane_all(struct view_canvas *canvas)
{
	return (struct view_pane){canvas, {0, 0, canvas->width, canvas->height}};
}

struct view_pane view_pane_at(struct view_canvas *canvas, struct view_rect rect)
{
	const int x = rect.x < 0 ? 0 : min(rect.x, canvas->width);
	const int y = rect.y < 0 ? 0 : min(rect.y, canvas->height);
	const int right = min(rect.x + rect.width, canvas->width);
	const int bottom = min(rect.y + rect.height, canvas->height);

	return (struct view_pane){canvas,
				  {x, y, right > x ? right - x : 0, bottom > y ? bottom - y : 0}};
}

struct view_pane view_pane_sub(const struct view_pane *pane, struct view_rect rect)
{
	const struct view_rect *outer = &pane->rect;
	const int left = max(0, rect.x), top = max(0, rect.y);
	const int right = min(rect.x + rect.width, outer->width);
	const int bottom = min(rect.y + rect.height, outer->height);

	return view_pane_at(pane->canvas, (struct view_rect){outer->x + left, outer->y + top,
							     right - left, bottom - top});
}

static struct view_cell *view_cell_at(const struct view_pane *pane, int x, int y)
{
	if (x < 0 || y < 0 || x >= pane->rect.width || y >= pane->rect.height)
		return NULL;
	return &pane->canvas->cells[(size_t)(pane->rect.y + y) * (size_t)pane->canvas->width +
				    (size_t)(pane->rect.x + x)];
}

#define ELLIPSIS 0x2026 /* texts have it where they were cut before they came here */

void view_put(struct view_pane *pane, int x, int y, enum view_style style, uint32_t character)
{
	struct view_cell *cell = view_cell_at(pane, x, y);

	if (!cell)
		return;
	if (character < ' ' || (pane->canvas->ascii && character > 126))
		character = character == ELLIPSIS ? '~' : '?';
	*cell = (struct view_cell){.character = character, .style = (uint16_t)style};
}

void view_restyle(struct view_pane *pane, int x, int y, enum view_style style)
{
	struct view_cell *cell = view_cell_at(pane, x, y);

	if (cell)
		cell->style = (uint16_t)style;
}

uint32_t view_char_at(const struct view_pane *pane, int x, int y)
{
	const struct view_cell *cell = view_cell_at(pane, x, y);

	return cell ? cell->character : ' ';
}

enum view_style view_style_at(const struct view_pane *pane, int x, int y)
{
	const struct view_cell *cell = view_cell_at(pane, x, y);

	return cell ? (enum view_style)cell->style : VIEW_NORMAL;
}

uint32_t view_glyph_char(const struct view_canvas *canvas, enum view_glyph glyph)
{
	return view_glyph_table[glyph][canvas->ascii ? 1 : 0];
}

uint32_t view_fill_char(const struct view_canvas *canvas, enum view_style style)
{
	static const struct {
		enum view_style style;
		enum view_glyph glyph;
	} fills[] = {{VIEW_FORWARD_TEXT, VIEW_GLYPH_FILL_FORWARD},
		     {VIEW_BACKWARD_TEXT, VIEW_GLYPH_FILL_BACKWARD},
		     {VIEW_WEIGHT_TEXT, VIEW_GLYPH_FILL_WEIGHT},
		     {VIEW_RECOMPUTE_TEXT, VIEW_GLYPH_FILL_RECOMPUTE},
		     {VIEW_UPDATE_TEXT, VIEW_GLYPH_FILL_UPDATE},
		     {VIEW_OTHER_TEXT, VIEW_GLYPH_FILL_OTHER},
		     {VIEW_BUBBLE, VIEW_GLYPH_FILL_BUBBLE},
		     {VIEW_CURVE, VIEW_GLYPH_FILL_CURVE},
		     {VIEW_SOURCE, VIEW_GLYPH_FILL_CURVE},
		     {VIEW_TARGET, VIEW_GLYPH_FILL_TARGET},
		     {VIEW_SERIES_1, VIEW_GLYPH_FILL_SERIES_1},
		     {VIEW_SERIES_2, VIEW_GLYPH_FILL_SERIES_2},
		     {VIEW_SERIES_3, VIEW_GLYPH_FILL_SERIES_3},
		     {VIEW_SERIES_4, VIEW_GLYPH_FILL_SERIES_4},
		     {VIEW_SERIES_5, VIEW_GLYPH_FILL_SERIES_5},
		     {VIEW_SERIES_6, VIEW_GLYPH_FILL_SERIES_6},
		     {VIEW_RAMP_UP, VIEW_GLYPH_FILL_RAMP_UP},
		     {VIEW_RAMP_DOWN, VIEW_GLYPH_FILL_RAMP_DOWN},
		     {VIEW_IMBALANCE, VIEW_GLYPH_FILL_IMBALANCE},
		     {VIEW_COMMUNICATION, VIEW_GLYPH_FILL_COMMUNICATION},
		     {VIEW_COMPUTE, VIEW_GLYPH_FILL_COMPUTE},
		     {VIEW_EXCHANGE, VIEW_GLYPH_FILL_EXCHANGE},
		     {VIEW_SYNC, VIEW_GLYPH_FILL_SYNC},
		     {VIEW_HOST_COPY, VIEW_GLYPH_FILL_HOST_COPY}};

	for (size_t i = 0; i < ARRAY_LEN(fills); i++)
		if (fills[i].style == style)
			return view_glyph_char(canvas, fills[i].glyph);
	return view_glyph_char(canvas, VIEW_GLYPH_FULL);
}

void view_glyphs(struct view_pane *pane, int x, int y, enum view_style style, enum view_glyph glyph,
		 int count)
{
	for (int i = 0; i < count; i++)
		view_put(pane, x + i, y, style, view_glyph_char(pane->canvas, glyph));
}

void view_fill(struct view_pane *pane, int x, int y, int count, enum view_style style)
{
	for (int i = 0; i < count; i++)
		view_put(pane, x + i, y, style, ' ');
}

uint32_t view_level_char(const struct view_canvas *canvas, double fraction)
{
	static const char ascii[] = ".:-=+*%#";
	int level;

	if (!(fraction > 0))
		return ' ';
	level = fraction >= 1 ? 7 : (int)(fraction * 8);
	return canvas->ascii ? (uint32_t)ascii[level] : 0x2581u + (uint32_t)level;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* ---- text ------------------------------------------------------------------------------------ */

/* Draw a wide character if both cells are inside the pane; in ASCII, two '?'. */
static void view_put_wide(struct view_pane *pane, int x, int y, enum view_style style,
			  uint32_t character)
{
	struct view_cell *right = view_cell_at(pane, x + 1, y);

	view_put(pane, x, y, style, right ? character : '?');
	if (!right)
		return;
	if (pane->canvas->ascii)
		view_put(pane, x + 1, y, style, '?');
	else
		*right = (struct view_cell){.character = 0, .style = (uint16_t)style};
}

static int view_draw_text(struct view_pane *pane, int x, int y, int width, bool cut,
			  enum view_style style, const char *text)
{
	const int room = cut ? width - 1 : width;
	uint32_t character;
	int columns, used = 0, bytes;

	if (!text || width <= 0)
		return 0;
	while ((bytes = utf8_decode(text, &character, &columns)) > 0 && used + columns <= room) {
		if (columns == 2)
			view_put_wide(pane, x + used, y, style, character);
		else if (columns == 1)
			view_put(pane, x + used, y, style, character);
		used += columns;
		text += bytes;
	}
	if (cut) {
		view_glyphs(pane, x + used, y, style, VIEW_GLYPH_ELLIPSIS, 1);
		used++;
	}
	return used;
}

int view_text_cut(struct view_pane *pane, int x, int y, int width, enum view_style style,
		  const char *text)
{
	return view_draw_text(pane, x, y, width, width > 1 && utf8_columns(text) > width, style,
			      text);
}

int view_text_label(struct view_pane *pane, int x, int y, int width, enum view_style style,
		    const char *text)
{
	return view_draw_text(pane, x, y, width, width > 4 && utf8_columns(text) > width, style,
			      text);
}

const char *view_text_tail(const char *text, int width)
{
	int over = utf8_columns(text) - width, columns;
	uint32_t character;

	while (over > 0) {
		text += utf8_decode(text, &character, &columns);
		over -= columns;
	}
	return text;
}

int view_text_middle(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     const char *text)
{
	const int head = width / 3;
	int used;

	if (head < 4 || utf8_columns(text) <= width)
		return view_text_cut(pane, x, y, width, style, text);
	used = view_text_cut(pane, x, y, head, style, text);
	return used + view_text_cut(pane, x + used, y, width - used, style,
				    view_text_tail(text, width - used));
}

size_t view_text_fold(const char *text, int width)
{
	size_t length = 0, word = 0;
	int columns = 0;

	while (text[length] && text[length] != '\n') {
		uint32_t character;
		int wide;
		const int bytes = utf8_decode(text + length, &character, &wide);

		if (length > 0 && columns + wide > width)
			return text[length] != ' ' && word ? word : length;
		if (text[length] == ' ' && length > 0 && text[length - 1] != ' ')
			word = length;
		length += (size_t)bytes;
		columns += wide;
	}
	return length;
}

int view_text_folded(struct view_pane *pane, struct view_rect area, enum view_style style,
		     const char *text)
{
	const int width = max(area.width, 8);
	int rows = 0;

	while (text && *text && rows < area.height) {
		char line[512];
		const size_t length = view_text_fold(text, width);
		const bool last = rows + 1 == area.height;

		/* Give the last row all remaining text, so that it ends in an ellipsis. */
		str_copy(line, last || length + 1 > sizeof(line) ? sizeof(line) : length + 1, text);
		if (pane)
			view_text_cut(pane, area.x, area.y + rows, width, style, line);
		rows++;
		text += length;
		text += *text == ' ' || *text == '\n';
	}
	return rows;
}

int view_text(struct view_pane *pane, int x, int y, enum view_style style, const char *text)
{
	return view_text_cut(pane, x, y, pane->rect.width - x, style, text);
}

void view_nothing(struct view_pane *pane, const char *what, const char *why, const char *elsewhere)
{
	view_text_cut(pane, 2, 1, pane->rect.width - 3, VIEW_DIM, what);
	view_text_cut(pane, 2, 2, pane->rect.width - 3, VIEW_DIM, elsewhere ? elsewhere : why);
}

int view_textf(struct view_pane *pane, int x, int y, enum view_style style, const char *format, ...)
{
	char text[VIEW_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return view_text(pane, x, y, style, text);
}

void view_text_right(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     const char *text)
{
	const int used = utf8_columns(text);

	if (used < width)
		x += width - used;
	view_text_cut(pane, x, y, min(used, width), style, text);
}
