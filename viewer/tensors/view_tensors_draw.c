/*
 * Drawing the screen Tensors: the list, the heading with the pages, and the page.
 *
 * Threading: the terminal's thread. Nothing is loaded here.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>

#define PAGE_TITLE(page, title) [VIEW_TENSOR_##page] = title,

struct view_rect view__tensors_share(struct view_rect area, int count, int at)
{
	const bool above = area.width < VIEW_TENSORS_WIDE && area.height >= VIEW_TENSORS_HIGH;
	const int whole = above ? area.height : area.width;
	const int from = whole * at / count, to = whole * (at + 1) / count;

	if (above) {
		area.y += from;
		area.height = to - from;
	} else {
		area.x += from;
		area.width = to - from;
	}
	return area;
}

static struct view_pane view_sub(struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

/* The pages there are, where there is room; the one that is shown always. */
static void draw_heading(const struct view_tensors *screen, struct view_pane *pane)
{
	static const char *const titles[] = {VIEW_TENSOR_PAGES(PAGE_TITLE)};
	const int width = pane->rect.width;
	char replica[48];
	int names = 0, x = 1, room;

	view__replica_text(screen, replica, sizeof(replica));
	for (int i = 0; i < VIEW_TENSOR_PAGE_COUNT; i++)
		names += view_text_width(titles[i]) + 3;
	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	for (int i = 0; i < VIEW_TENSOR_PAGE_COUNT; i++) {
		const bool shown = i == (int)screen->page;

		if (!shown && width < names + 20)
			continue;
		x += view_textf(pane, x, 0, shown ? VIEW_KEY : VIEW_DIM, shown ? "[%s]" : " %s ",
				titles[i]);
	}
	if (x + 8 >= width)
		return;
	/* "all replicas" is said by the status line, too: it leaves its room to the key. */
	if (screen->replica < 0 &&
	    x + view_text_width(screen->key) + view_text_width(replica) + 3 > width)
		replica[0] = '\0';
	room = width - x - 3 - view_text_width(replica);
	view_text(pane, x, 0, VIEW_NORMAL, " ");
	x += 1 + view_text_cut(pane, x + 1, 0, room, VIEW_BOLD, screen->key);
	x += view_text(pane, x, 0, VIEW_BOLD, replica);
	view_text(pane, x, 0, VIEW_NORMAL, " ");
}

static void draw_page(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane)
{
	switch (screen->page) {
	case VIEW_TENSOR_HISTOGRAM:
		view__histogram_draw(screen, context, pane);
		break;
	case VIEW_TENSOR_VALUES:
		view__values_draw(screen, pane);
		break;
	case VIEW_TENSOR_RULES:
	case VIEW_TENSOR_ROWS:
		if (screen->grid.table.row_count > 0)
			view_grid_draw(&screen->grid, pane, screen->opened && !context->whole);
		else
			view_text(pane, 1, 0, VIEW_DIM,
				  screen->page == VIEW_TENSOR_RULES ? "It broke no rule."
								    : "No rows are kept of it.");
		break;
	default:
		view__curve_draw(screen, context, pane);
		break;
	}
}

void view__tensors_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_tensors *screen = state;
	struct view_pane table = view_sub(pane, screen->table);
	struct view_pane heading = view_sub(pane, screen->heading);
	struct view_pane body = view_sub(pane, screen->body);

	if (screen->list.table.row_count == 0) {
		view_nothing(pane, "No tensors have been recorded: of ipu-train's run file",
			     "outfeed.capture, .activations and .gradients say which are.");
		return;
	}
	if (table.rect.height > 0)
		view__tensors_list_draw(screen, context, &table);
	if (screen->list.count == 0) {
		if (screen->opened)
			view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
				      "No tensor matches the filter.");
		return;
	}
	if (heading.rect.height < 1)
		return;
	draw_heading(screen, &heading);
	if (body.rect.height > 0)
		draw_page(screen, context, &body);
}
