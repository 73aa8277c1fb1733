/*
 * Heat maps in character cells, and signed maps of differences.
 *
 * Threading: one thread per canvas. Ownership: none.
 */
#include "viewer/draw/view_chart.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_axis.h"

#define UPPER_HALF  0x2580u
#define LOWER_HALF  0x2584u
#define LEGEND_MOST 24 /* cells of shades */

static const uint32_t view_blocks[] = {' ', 0x2591, 0x2592, 0x2593, 0x2588};

static const char view_ramp[] = " .:-=+*#%@";

#define HEAT_STEPS 4

/* Shades by magnitude, ascending. */
static const uint32_t heat_signed_shades[HEAT_STEPS] = {0x2591, 0x2592, 0x2593, 0x2588};

/* Shades of a terminal with 8 or 16 colours, ascending. */
static const struct {
	enum view_style style;
	uint32_t character;
} heat_shades[] = {{VIEW_COOL, ' '},    {VIEW_COOL, 0x2591}, {VIEW_COOL, 0x2592},
		   {VIEW_COOL, 0x2593}, {VIEW_WARM, 0x2592}, {VIEW_WARM, 0x2593},
		   {VIEW_WARM, 0x2588}, {VIEW_HOT, 0x2593},  {VIEW_HOT, 0x2588}};

bool view_heat_halves(const struct view_canvas *canvas)
{
	return !view_colourless(canvas) && canvas->colours >= 256 && !canvas->ascii;
}

/* Level 0 is for 0 only, so any positive part is visible. */
static int view_level(double part, int steps)
{
	if (!(part > 0))
		return 0;
	return part >= 1 ? steps - 1 : 1 + (int)(part * (steps - 1));
}

static void view_draw_halves(struct view_pane *pane, int x, int y, double top, double bottom)
{
	const int upper = view_level(top, VIEW_HEAT_STEPS);
	const int lower = view_level(bottom, VIEW_HEAT_STEPS);

	if (isnan(top))
		view_put(pane, x, y, (enum view_style)(VIEW_HEAT_HALF + lower), LOWER_HALF);
	else if (isnan(bottom))
		view_put(pane, x, y, (enum view_style)(VIEW_HEAT_HALF + upper), UPPER_HALF);
	else
		view_put(pane, x, y,
			 (enum view_style)(VIEW_HEAT_PAIR + upper * VIEW_HEAT_STEPS + lower),
			 UPPER_HALF);
}

/* One value for the whole cell. */
static void view_draw_whole(struct view_pane *pane, int x, int y, double part)
{
	const struct view_canvas *canvas = pane->canvas;
	const int letter = view_level(part, (int)sizeof(view_ramp) - 1);
	const int shade = view_level(part, (int)ARRAY_LEN(heat_shades));
	const int wide = view_level(part, VIEW_HEAT_STEPS);

	if (canvas->ascii && !view_colourless(canvas) && canvas->colours >= 256)
		/* Invisible in its own colour, but present if the user copies the screen. */
		view_put(pane, x, y,
			 (enum view_style)(VIEW_HEAT_PAIR + wide * (VIEW_HEAT_STEPS + 1)),
			 (uint32_t)view_ramp[letter]);
	else if (canvas->ascii)
		view_put(pane, x, y,
			 view_colourless(canvas) ? VIEW_NORMAL : heat_shades[shade].style,
			 (uint32_t)view_ramp[letter]);
	else if (view_colourless(canvas))
		view_put(pane, x, y, VIEW_NORMAL,
			 view_blocks[view_level(part, (int)ARRAY_LEN(view_blocks))]);
	else
		view_put(pane, x, y, heat_shades[shade].style, heat_shades[shade].character);
}

void view_heat(struct view_pane *pane, int x, int y, double top, double bottom)
{
	if (isnan(top) && isnan(bottom))
		view_put(pane, x, y, VIEW_NORMAL, ' ');
	else if (view_heat_halves(pane->canvas))
		view_draw_halves(pane, x, y, top, bottom);
	else
		view_draw_whole(pane, x, y, fmax(top, bottom)); /* ignores one NaN */
}

/* ---- maps ------------------------------------------------------------------------------------ */

static double view_greatest(const double *values, int columns, const int64_t across[2],
			    const int64_t down[2])
{
	double greatest = NAN;

	for (int64_t row = down[0]; row < down[1]; row++)
		for (int64_t column = across[0]; column < across[1]; column++)
			greatest = fmax(greatest, values[row * columns + column]);
	return greatest;
}

void view_heat_map(struct view_pane *pane, const double *values, int columns, int rows,
		   const struct report_axis *scale)
{
	const int width = pane->rect.width, halves = 2 * pane->rect.height;

	if (columns < 1 || rows < 1)
		return;
	for (int y = 0; y < pane->rect.height; y++)
		for (int x = 0; x < width; x++) {
			int64_t across[2], upper[2], lower[2];

			view_share(columns, width, x, &across[0], &across[1]);
			view_share(rows, halves, 2 * y, &upper[0], &upper[1]);
			view_share(rows, halves, 2 * y + 1, &lower[0], &lower[1]);
			view_heat(pane, x, y,
				  report_axis_part(scale,
						   view_greatest(values, columns, across, upper)),
				  report_axis_part(scale,
						   view_greatest(values, columns, across, lower)));
		}
}

struct view_rect view_heat_place(const struct view_pane *pane, int columns, int rows, int column,
				 int row)
{
	const int width = pane->rect.width, halves = 2 * pane->rect.height;
	int x, y, right, below;

	if (width < 1 || halves < 1)
		return (struct view_rect){0, 0, 0, 0};
	x = view_share_cell(columns, width, column);
	y = view_share_cell(rows, halves, row) / 2;
	right = column + 1 < columns ? view_share_cell(columns, width, column + 1) : width;
	below = row + 1 < rows ? view_share_cell(rows, halves, row + 1) : halves;
	return (struct view_rect){x, y, right > x ? right - x : 1,
				  (below + 1) / 2 > y ? (below + 1) / 2 - y : 1};
}

bool view_heat_find(const struct view_pane *pane, int columns, int rows, int x, int y, int *column,
		    int *row)
{
	int64_t from, to;

	if (x < 0 || y < 0 || x >= pane->rect.width || y >= pane->rect.height)
		return false;
	view_share(columns, pane->rect.width, x, &from, &to);
	*column = (int)from;
	view_share(rows, 2 * pane->rect.height, 2 * y, &from, &to);
	*row = (int)from;
	return true;
}

int view_heat_legend(struct view_pane *pane, int x, int y, int width,
		     const struct report_axis *scale)
{
	char low[FMT_SIZE], high[FMT_SIZE];
	const int left = utf8_columns(report_axis_text(scale, scale->low, low));
	const int right = utf8_columns(report_axis_text(scale, scale->high, high));
	int shades = width - left - right - 2;

	if (shades < 3)
		return 0;
	shades = min(LEGEND_MOST, shades);
	view_text(pane, x, y, VIEW_DIM, low);
	for (int i = 0; i < shades; i++)
		view_heat(pane, x + left + 1 + i, y, (double)i / (shades - 1),
			  (double)i / (shades - 1));
	view_text(pane, x + left + shades + 2, y, VIEW_DIM, high);
	return left + shades + right + 2;
}

/* ---- differences ----------------------------------------------------------------------------- */

static const char view_less_chars[HEAT_STEPS] = {'-', '-', '=', '='};

static const char view_more_chars[HEAT_STEPS] = {'+', '+', '#', '#'};

/* Signed fractions that a legend shows. */
static const double view_samples[] = {-1, -0.6, -0.2, 0, 0.2, 0.6, 1};

/* @part is -1 .. 1; 0: no difference, NaN: no value. */
static void view_draw_signed(struct view_pane *pane, int x, int y, double part)
{
	const struct view_canvas *canvas = pane->canvas;
	const bool letters = canvas->ascii || view_colourless(canvas);
	const enum view_style style = view_colourless(canvas) ? VIEW_NORMAL
				      : part < 0              ? VIEW_COOL
							      : VIEW_HOT;
	int step = (int)(fmin(fabs(part), 1) * HEAT_STEPS);

	step = step < HEAT_STEPS ? step : HEAT_STEPS - 1;
	if (isnan(part))
		view_put(pane, x, y, VIEW_NORMAL, ' ');
	else if (!(fabs(part) > 0))
		view_put(pane, x, y, VIEW_DIM, '.');
	else if (letters)
		view_put(pane, x, y, style,
			 (uint32_t)(part < 0 ? view_less_chars[step] : view_more_chars[step]));
	else
		view_put(pane, x, y, style, heat_signed_shades[step]);
}

static double view_farthest(const double *values, int columns, const int64_t across[2],
			    const int64_t down[2])
{
	double farthest = NAN;

	for (int64_t row = down[0]; row < down[1]; row++)
		for (int64_t column = across[0]; column < across[1]; column++) {
			const double value = values[row * columns + column];

			if (isnan(farthest) || fabs(value) > fabs(farthest))
				farthest = value;
		}
	return farthest;
}

void view_heat_signed_map(struct view_pane *pane, const double *values, int columns, int rows,
			  double most)
{
	const int width = pane->rect.width, halves = 2 * pane->rect.height;

	if (columns < 1 || rows < 1 || !(most > 0))
		return;
	for (int y = 0; y < pane->rect.height; y++)
		for (int x = 0; x < width; x++) {
			int64_t across[2], down[2], lower[2];

			view_share(columns, width, x, &across[0], &across[1]);
			view_share(rows, halves, 2 * y, &down[0], &down[1]);
			view_share(rows, halves, 2 * y + 1, &lower[0], &lower[1]);
			down[1] = max(lower[1], down[1]);
			view_draw_signed(pane, x, y,
					 view_farthest(values, columns, across, down) / most);
		}
}

int view_heat_signed_legend(struct view_pane *pane, int x, int y, int width, double most,
			    enum report_quantity quantity)
{
	const struct report_axis scale = {.high = most, .quantity = quantity};
	const int samples = (int)ARRAY_LEN(view_samples);
	char text[FMT_SIZE];
	const int number = 1 + utf8_columns(report_axis_text(&scale, most, text));

	if (width < 2 * number + samples + 2)
		return 0;
	view_textf(pane, x, y, VIEW_DIM, "-%s", text);
	for (int i = 0; i < samples; i++)
		view_draw_signed(pane, x + number + 1 + i, y, view_samples[i]);
	view_textf(pane, x + number + samples + 2, y, VIEW_DIM, "+%s", text);
	return 2 * number + samples + 2;
}
