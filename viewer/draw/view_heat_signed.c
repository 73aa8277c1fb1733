/*
 * Maps of differences: less than 0 to one side, more to the other.
 *
 * Threading: one thread per canvas. Ownership: none.
 */
#include "viewer/draw/view_heat.h"

#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_share.h"

#define STEPS 4

/* By how much, from little to much. */
static const uint32_t view_shades[STEPS] = {0x2591, 0x2592, 0x2593, 0x2588};
static const char view_less[STEPS] = {'-', '-', '=', '='};
static const char view_more[STEPS] = {'+', '+', '#', '#'};

/* The samples of a legend. */
static const double view_samples[] = {-1, -0.6, -0.2, 0, 0.2, 0.6, 1};

/* @part -1 .. 1; 0 for what is the same, NaN where nothing is. */
static void view_signed(struct view_pane *pane, int x, int y, double part)
{
	const struct view_canvas *canvas = pane->canvas;
	const bool letters = canvas->ascii || view_colourless(canvas);
	const enum view_style style = view_colourless(canvas) ? VIEW_NORMAL
				      : part < 0              ? VIEW_COOL
							      : VIEW_HOT;
	int step = (int)(fmin(fabs(part), 1) * STEPS);

	step = step < STEPS ? step : STEPS - 1;
	if (isnan(part))
		view_put(pane, x, y, VIEW_NORMAL, ' ');
	else if (!(fabs(part) > 0))
		view_put(pane, x, y, VIEW_DIM, '.');
	else if (letters)
		view_put(pane, x, y, style,
			 (uint32_t)(part < 0 ? view_less[step] : view_more[step]));
	else
		view_put(pane, x, y, style, view_shades[step]);
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
			view_signed(pane, x, y,
				    view_farthest(values, columns, across, down) / most);
		}
}

int view_heat_signed_legend(struct view_pane *pane, int x, int y, int width, double most,
			    enum report_quantity quantity)
{
	const struct view_axis scale = {.high = most, .quantity = quantity};
	const int samples = (int)ARRAY_LEN(view_samples);
	char text[FMT_SIZE];
	const int number = 1 + view_text_width(view_axis_text(&scale, most, text));

	if (width < 2 * number + samples + 2)
		return 0;
	view_textf(pane, x, y, VIEW_DIM, "-%s", text);
	for (int i = 0; i < samples; i++)
		view_signed(pane, x + number + 1 + i, y, view_samples[i]);
	view_textf(pane, x + number + samples + 2, y, VIEW_DIM, "+%s", text);
	return 2 * number + samples + 2;
}
