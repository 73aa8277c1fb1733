/*
 * A list in a frame over the screen: its items, the selection, and the picture.
 *
 * Threading: the terminal's thread. Ownership: view_popup.h.
 */
#include "viewer/view_popup.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_layout.h"

#define GAP       2
#define MOST_NAME 24

/* ---- items ----------------------------------------------------------------------------------- */

void view_popup_close(struct view_popup *popup)
{
	arena_fini(&popup->arena);
	memset(popup, 0, sizeof(*popup));
}

void view_popup_begin(struct view_popup *popup, int kind, const char *title, const char *foot)
{
	view_popup_close(popup);
	popup->kind = kind;
	popup->title = title;
	popup->foot = foot;
}

void view_popup_add(struct view_popup *popup, int tag, const char *name, const char *text)
{
	struct view_popup_item item = {.tag = tag};

	if (popup->count == VIEW_POPUP_ITEMS)
		return;
	item.text = arena_strdup(&popup->arena, text);
	item.name = name ? arena_strdup(&popup->arena, name) : NULL;
	if (!item.text || (name && !item.name))
		popup->failed = true;
	else
		popup->items[popup->count++] = item;
}

/* ---- the selection --------------------------------------------------------------------------- */

bool view_popup_request(struct view_popup *popup, enum view_request request)
{
	int64_t at = popup->at;

	if (!view_list_move(&at, request, max(popup->rows - 1, 1), popup->count))
		return false;
	popup->at = (int)max(min(at, (int64_t)popup->count - 1), 0);
	return true;
}

int view_popup_hit(const struct view_popup *popup, int x, int y)
{
	const int item = popup->scroll + y - popup->rect.y - 1;

	if (x <= popup->rect.x || x >= popup->rect.x + popup->rect.width - 1 ||
	    y <= popup->rect.y || y >= popup->rect.y + popup->rect.height - 1)
		return -1;
	return item < popup->count ? item : -1;
}

/* ---- the picture ----------------------------------------------------------------------------- */

static int popup_name_width(const struct view_popup *popup)
{
	int most = 0;

	for (int i = 0; i < popup->count; i++) {
		const int width =
			popup->items[i].name ? utf8_columns(popup->items[i].name) + 2 * GAP : 0;

		most = max(width, most);
	}
	return min(most, MOST_NAME);
}

/* Position it over @body, with @names columns for the names of items. */
static void popup_layout(struct view_popup *popup, struct view_rect body, int names)
{
	int width = utf8_columns(popup->title);

	if (popup->foot)
		width = max(utf8_columns(popup->foot), width);
	for (int i = 0; i < popup->count; i++)
		width = max(names + utf8_columns(popup->items[i].text), width);
	popup->rect = view_popup_area(body, width + VIEW_POPUP_FRAME, popup->count + 2);
	popup->rows = popup->rect.height > 2 ? popup->rect.height - 2 : 0;
	if (popup->at < popup->scroll)
		popup->scroll = popup->at;
	if (popup->rows > 0 && popup->at >= popup->scroll + popup->rows)
		popup->scroll = popup->at - popup->rows + 1;
}

static void popup_draw_frame(const struct view_popup *popup, struct view_pane *pane)
{
	const int right = pane->rect.width - 1, bottom = pane->rect.height - 1;

	for (int y = 0; y <= bottom; y++) {
		view_fill(pane, 0, y, pane->rect.width, VIEW_NORMAL);
		view_glyphs(pane, 0, y, VIEW_TITLE, VIEW_GLYPH_VERTICAL, 1);
		view_glyphs(pane, right, y, VIEW_TITLE, VIEW_GLYPH_VERTICAL, 1);
	}
	view_glyphs(pane, 1, 0, VIEW_TITLE, VIEW_GLYPH_HORIZONTAL, right - 1);
	view_glyphs(pane, 1, bottom, VIEW_TITLE, VIEW_GLYPH_HORIZONTAL, right - 1);
	view_glyphs(pane, 0, 0, VIEW_TITLE, VIEW_GLYPH_TOP_LEFT, 1);
	view_glyphs(pane, right, 0, VIEW_TITLE, VIEW_GLYPH_TOP_RIGHT, 1);
	view_glyphs(pane, 0, bottom, VIEW_TITLE, VIEW_GLYPH_CORNER, 1);
	view_glyphs(pane, right, bottom, VIEW_TITLE, VIEW_GLYPH_BOTTOM_RIGHT, 1);
	view_textf(pane, 2, 0, VIEW_TITLE, " %s ", popup->title);
	if (popup->foot)
		view_textf(pane, 2, bottom, VIEW_DIM, " %s ", popup->foot);
}

void view_popup_draw(struct view_popup *popup, struct view_rect body, struct view_canvas *canvas)
{
	const int names = popup_name_width(popup);
	struct view_pane pane, line;

	popup_layout(popup, body, names);
	pane = view_pane_at(canvas, popup->rect);
	if (pane.rect.width < 4 || pane.rect.height < 3)
		return;
	popup_draw_frame(popup, &pane);
	for (int i = 0; i < popup->rows && popup->scroll + i < popup->count; i++) {
		const struct view_popup_item *item = &popup->items[popup->scroll + i];
		const bool here = popup->scroll + i == popup->at;
		struct view_rect rect = {pane.rect.x + 1, pane.rect.y + 1 + i, pane.rect.width - 2,
					 1};

		line = view_pane_at(canvas, rect);
		view_fill(&line, 0, 0, rect.width, here ? VIEW_CURSOR : VIEW_NORMAL);
		if (here)
			view_glyphs(&line, 0, 0, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
		if (item->name && popup->scroll + i < 9)
			view_put(&line, 1, 0, here ? VIEW_CURSOR : VIEW_KEY,
				 (uint32_t)('1' + popup->scroll + i));
		if (item->name)
			view_text_cut(&line, 3, 0, names - 3, here ? VIEW_CURSOR : VIEW_KEY,
				      item->name);
		view_text_cut(&line, 1 + names, 0, rect.width - names - 2,
			      here ? VIEW_CURSOR : VIEW_NORMAL, item->text);
	}
}
