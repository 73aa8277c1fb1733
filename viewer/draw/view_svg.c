/*
 * A canvas as SVG.
 *
 * Written row by row: backgrounds, then shapes, then texts; equal neighbours are merged.
 *
 * Threading: one thread per canvas. Ownership: none.
 */
#include "viewer/draw/view_canvas.h"

#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define CW       VIEW_SVG_CELL_WIDTH
#define CH       VIEW_SVG_CELL_HEIGHT
#define BASELINE 12 /* px from the top of a cell */
#define MARGIN   8  /* px around the grid */
#define MIDDLE_X 3  /* px where the lines of box-drawing characters meet */
#define MIDDLE_Y 7
#define BRAILLE  0x2800u

struct view_svg {
	const struct view_canvas *canvas;
	const struct view_cell *row;
	enum view_theme theme;
	int top; /* px */
	FILE *out;
};

/* The part of a cell of 8 x 16 px that a block character fills. */
struct view_shape {
	int x, y, width, height, percent; /* percent: opacity */
};

static bool view_block_shape(uint32_t character, struct view_shape *out)
{
	*out = (struct view_shape){0, 0, CW, CH, 100};
	if (character == 0x2580) {
		out->height = CH / 2;
	} else if (character >= 0x2581 && character <= 0x2588) {
		out->height = (int)(character - 0x2580) * CH / 8;
		out->y = CH - out->height;
	} else if (character >= 0x2589 && character <= 0x258f) {
		out->width = (int)(0x2590 - character) * CW / 8;
	} else if (character >= 0x2591 && character <= 0x2593) {
		out->percent = (int)(character - 0x2590) * 25;
	} else {
		return false;
	}
	return true;
}

/* The arms of box-drawing characters, which reach the cell's edges. */
enum {
	ARM_LEFT = 1,
	ARM_RIGHT = 2,
	ARM_UP = 4,
	ARM_DOWN = 8
};

static unsigned view_arms(uint32_t character, int *thick)
{
	static const struct {
		uint32_t character;
		unsigned arms;
		int thick; /* px */
	} boxes[] = {{0x2500, ARM_LEFT | ARM_RIGHT, 1},
		     {0x2501, ARM_LEFT | ARM_RIGHT, 3},
		     {0x2502, ARM_UP | ARM_DOWN, 1},
		     {0x2503, ARM_UP | ARM_DOWN, 3},
		     {0x250c, ARM_RIGHT | ARM_DOWN, 1},
		     {0x2510, ARM_LEFT | ARM_DOWN, 1},
		     {0x2514, ARM_RIGHT | ARM_UP, 1},
		     {0x2518, ARM_LEFT | ARM_UP, 1},
		     {0x251c, ARM_RIGHT | ARM_UP | ARM_DOWN, 1},
		     {0x2524, ARM_LEFT | ARM_UP | ARM_DOWN, 1},
		     {0x252c, ARM_LEFT | ARM_RIGHT | ARM_DOWN, 1},
		     {0x2534, ARM_LEFT | ARM_RIGHT | ARM_UP, 1},
		     {0x253c, ARM_LEFT | ARM_RIGHT | ARM_UP | ARM_DOWN, 1}};

	for (size_t i = 0; i < ARRAY_LEN(boxes); i++)
		if (boxes[i].character == character) {
			*thick = boxes[i].thick;
			return boxes[i].arms;
		}
	return 0;
}

static bool view_is_braille(uint32_t character)
{
	return character >= BRAILLE && character <= BRAILLE + 0xff;
}

/* The text or background colour of the cell at @x as 0xRRGGBB; swapped if reversed. */
static uint32_t view_cell_colour(const struct view_svg *svg, int x, bool text)
{
	const struct view_paint paint = view_style_paint(svg->row[x].style, svg->theme, 256);
	const bool swapped = strchr(paint.attributes, 'R') != NULL;

	if (text != swapped)
		return view_palette(paint.text, svg->theme, true);
	return view_palette(paint.ground, svg->theme, false);
}

static void view_write_rectangle(const struct view_svg *svg, int x, const struct view_shape *shape,
				 uint32_t colour)
{
	fprintf(svg->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"",
		x * CW + shape->x, svg->top + shape->y, shape->width, shape->height, colour);
	if (shape->percent < 100)
		fprintf(svg->out, " fill-opacity=\".%d\"", shape->percent);
	fputs("/>\n", svg->out);
}

static void view_write_backgrounds(const struct view_svg *svg)
{
	const uint32_t plain = view_palette(-1, svg->theme, false);

	for (int x = 0, end; x < svg->canvas->width; x = end) {
		const uint32_t colour = view_cell_colour(svg, x, false);

		for (end = x + 1; end < svg->canvas->width; end++)
			if (view_cell_colour(svg, end, false) != colour)
				break;
		if (colour != plain)
			view_write_rectangle(svg, x,
					     &(struct view_shape){0, 0, (end - x) * CW, CH, 100},
					     colour);
	}
}

/* Write the dots of cells @from .. @to - 1 as one path. */
static void view_write_dots(const struct view_svg *svg, int from, int to)
{
	static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

	fputs("<path d=\"", svg->out);
	for (int x = from; x < to; x++)
		for (int dot = 0; dot < 8; dot++)
			if (svg->row[x].character & bits[dot / 2][dot % 2])
				fprintf(svg->out, "M%d %dh2v2h-2z", x * CW + 1 + dot % 2 * CW / 2,
					svg->top + 1 + dot / 2 * CH / 4);
	fprintf(svg->out, "\" fill=\"#%06x\"/>\n", view_cell_colour(svg, from, true));
}

/* Write cells @from .. @to - 1, all of the same box-drawing character. */
static void view_write_box(const struct view_svg *svg, int from, int to, unsigned arms, int thick)
{
	const uint32_t colour = view_cell_colour(svg, from, true);
	const int left = arms & ARM_LEFT ? 0 : MIDDLE_X, top = arms & ARM_UP ? 0 : MIDDLE_Y;
	const int right = arms & ARM_RIGHT ? CW : MIDDLE_X + thick;
	const int below = arms & ARM_DOWN ? CH : MIDDLE_Y + thick;

	if (arms & (ARM_LEFT | ARM_RIGHT))
		view_write_rectangle(svg, from,
				     &(struct view_shape){left, MIDDLE_Y,
							  (to - from - 1) * CW + right - left,
							  thick, 100},
				     colour);
	for (int x = from; x < to && arms & (ARM_UP | ARM_DOWN); x++)
		view_write_rectangle(svg, x,
				     &(struct view_shape){MIDDLE_X, top, thick, below - top, 100},
				     colour);
}

static bool view_cells_equal(const struct view_cell *a, const struct view_cell *b)
{
	return a->character == b->character && a->style == b->style;
}

static void view_write_shapes(const struct view_svg *svg)
{
	const struct view_cell *row = svg->row;
	const int width = svg->canvas->width;

	for (int x = 0, end; x < width; x = end) {
		struct view_shape shape;
		int thick;
		const unsigned arms = view_arms(row[x].character, &thick);

		end = x + 1;
		if (arms) {
			while (end < width && arms & ARM_LEFT && arms & ARM_RIGHT &&
			       view_cells_equal(&row[end], &row[x]))
				end++;
			view_write_box(svg, x, end, arms, thick);
		} else if (view_is_braille(row[x].character)) {
			while (end < width && row[end].style == row[x].style &&
			       view_is_braille(row[end].character))
				end++;
			view_write_dots(svg, x, end);
		} else if (view_block_shape(row[x].character, &shape)) {
			/* Only blocks as wide as their cell join their neighbours. */
			while (end < width && shape.width == CW &&
			       view_cells_equal(&row[end], &row[x]))
				end++;
			shape.width += (end - 1 - x) * CW;
			view_write_rectangle(svg, x, &shape, view_cell_colour(svg, x, true));
		}
	}
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void view_write_escaped(FILE *out, uint32_t character)
{
	char bytes[5];

	if (character == '&')
		fputs("&amp;", out);
	else if (character == '<')
		fputs("&lt;", out);
	else if (character == '>')
		fputs("&gt;", out);
	else if (character >= ' ' && character != 0xfffe && character != 0xffff) {
		view_encode(character, bytes);
		fputs(bytes, out);
	}
}

static bool view_is_text(const struct view_svg *svg, int x)
{
	const uint32_t character = svg->row[x].character;
	struct view_shape shape;
	int thick;

	return character != ' ' && !view_is_braille(character) && !view_arms(character, &thick) &&
	       !view_block_shape(character, &shape);
}

static void view_write_texts(const struct view_svg *svg)
{
	for (int x = 0, end; x < svg->canvas->width; x = end) {
		const char *attributes =
			view_style_paint(svg->row[x].style, svg->theme, 256).attributes;
		const struct view_cell *row = svg->row;
		const uint16_t style = row[x].style;

		end = x + 1;
		if (!view_is_text(svg, x))
			continue;
		/* Words of one style that single blanks separate are one text. */
		while (end < svg->canvas->width && row[end].style == style) {
			if (view_is_text(svg, end))
				end++;
			else if (row[end].character == ' ' && end + 1 < svg->canvas->width &&
				 row[end + 1].style == style && view_is_text(svg, end + 1))
				end += 2;
			else
				break;
		}
		fprintf(svg->out, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"#%06x\"%s>",
			x * CW, svg->top + BASELINE, (end - x) * CW, view_cell_colour(svg, x, true),
			strchr(attributes, 'B') ? " font-weight=\"bold\"" : "");
		for (int at = x; at < end; at++)
			view_write_escaped(svg->out, svg->row[at].character);
		fputs("</text>\n", svg->out);
	}
}

enum status view_svg_write(const struct view_canvas *canvas, int from, int to,
			   enum view_theme theme, const char *title, FILE *out, struct err *err)
{
	const int width = canvas->width * CW + 2 * MARGIN;
	const int height = (to - from) * CH + 2 * MARGIN;
	struct view_svg svg = {.canvas = canvas, .theme = theme, .out = out};
	uint32_t character;
	int columns, bytes;

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"%d %d %d %d\" font-family=\"'DejaVu Sans Mono', Menlo, Consolas, "
		"monospace\" font-size=\"13\" xml:space=\"preserve\" "
		"shape-rendering=\"crispEdges\" "
		"role=\"img\">\n",
		width, height, -MARGIN, -MARGIN, width, height);
	/* The title comes from a database: characters that XML does not allow are dropped. */
	fputs("<title>", out);
	while (title && (bytes = utf8_decode(title, &character, &columns)) > 0) {
		view_write_escaped(out, character);
		title += bytes;
	}
	fputs("</title>\n", out);
	fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n",
		-MARGIN, -MARGIN, width, height, view_palette(-1, theme, false));
	for (int y = from; y < to; y++) {
		svg.row = &canvas->cells[(size_t)y * (size_t)canvas->width];
		svg.top = (y - from) * CH;
		view_write_backgrounds(&svg);
		view_write_shapes(&svg);
		view_write_texts(&svg);
	}
	fputs("</svg>\n", out);
	if (ferror(out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}
