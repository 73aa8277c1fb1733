/*
 * Panes that tell of what is drawn outside them.
 *
 * Threading: one thread. Ownership: canvases are the caller's.
 */
#include "support/view_pane.h"

#include "support/support.h"

struct view_pane view_pane_framed(struct view_canvas *canvas, int width, int height)
{
	assert_int_equal(view_canvas_resize(canvas, width + 2, height + 2, NULL), ST_OK);
	for (int i = 0; i < (width + 2) * (height + 2); i++)
		canvas->cells[i].character = '#';
	for (int y = 1; y <= height; y++)
		for (int x = 1; x <= width; x++)
			canvas->cells[y * (width + 2) + x].character = ' ';
	return view_pane_at(canvas, (struct view_rect){1, 1, width, height});
}

void view_pane_assert_inside(const struct view_canvas *canvas)
{
	for (int y = 0; y < canvas->height; y++)
		for (int x = 0; x < canvas->width; x++) {
			const struct view_cell *cell = &canvas->cells[y * canvas->width + x];

			if (x == 0 || y == 0 || x == canvas->width - 1 || y == canvas->height - 1)
				assert_true(cell->character == '#' && cell->style == VIEW_NORMAL);
			assert_in_range(cell->style, 0, VIEW_STYLES_ALL - 1);
			assert_true(!canvas->ascii || cell->character < 127);
		}
}
