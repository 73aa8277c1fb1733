/*
 * Typing a statement: keys, completion, history.
 *
 * Threading: where screens load.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/str.h"
#include "viewer/sql/view_sql_internal.h"

const struct view_bar_key view__sql_typing_keys[] = {
	{VIEW_KEY_ENTER, "run"},      {VIEW_KEY_TAB, "complete"},   {VIEW_KEY_ESCAPE, "leave"},
	{VIEW_KEY_UP, "before"},      {VIEW_KEY_DOWN, "after"},     {VIEW_CTRL('R'), "search"},
	{VIEW_CTRL('U'), "cut line"}, {VIEW_CTRL('W'), "cut word"}, {0, NULL}};

bool view__sql_typing(const void *state)
{
	return ((const struct view_sql *)state)->focus == VIEW_SQL_EDIT;
}

/* ---- completion ------------------------------------------------------------------------------ */

/* What all offers have in common beyond the word that stands there. */
static size_t view_common(const struct view_sql_offers *offers)
{
	size_t common = strlen(offers->items[0]);

	for (int i = 1; i < offers->count; i++)
		for (size_t c = 0; c < common; c++)
			if (strncasecmp(offers->items[0], offers->items[i], c + 1) != 0)
				common = c;
	return common;
}

static void view_list_offers(const struct view_sql *screen, char *out, size_t size)
{
	const struct view_sql_offers *offers = &screen->offers;
	size_t length = 0;

	out[0] = '\0';
	for (int i = 0; i < offers->count && length + 4 < size; i++) {
		const bool taken = i == screen->offer;

		snprintf(out + length, size - length, "%s%s%s%s", i > 0 ? " " : "",
			 taken ? "[" : "", offers->items[i], taken ? "]" : "");
		length += strlen(out + length);
	}
}

static void view_take_offer(struct view_sql *screen, const char *text, size_t length)
{
	char word[128];

	snprintf(word, sizeof(word), "%.*s", (int)length, text);
	if (view_edit_replace(&screen->edit, screen->offers.length, word))
		screen->offers.length = strlen(word);
}

static void view_next_offer(struct view_sql *screen)
{
	const char *item;

	screen->offer = (screen->offer + 1) % screen->offers.count;
	item = screen->offers.items[screen->offer];
	view_take_offer(screen, item, strlen(item));
}

static enum view_answer view_complete(struct view_sql *screen, struct view_context *context)
{
	struct view_sql_offers *offers = &screen->offers;
	size_t common;

	if (offers->count > 1) {
		view_next_offer(screen);
		view_list_offers(screen, context->message, sizeof(context->message));
		return VIEW_LOAD;
	}
	view_sql_complete(&screen->names, screen->edit.text, screen->edit.at, offers);
	if (offers->count == 0) {
		str_copy(context->message, sizeof(context->message),
			 offers->length ? "nothing known begins so: v shows the views"
					: "Tab completes the word before the cursor");
		return VIEW_DRAW;
	}
	common = view_common(offers);
	if (offers->count == 1 || common > offers->length)
		view_take_offer(screen, offers->items[0], common);
	if (offers->count == 1)
		offers->count = 0;
	screen->offer = -1;
	view_list_offers(screen, context->message, sizeof(context->message));
	return VIEW_LOAD;
}

/* ---- history --------------------------------------------------------------------------------- */

static enum view_answer view_recall(struct view_sql *screen, struct view_context *context, int by)
{
	const int to = screen->recall + by;

	if (to < 0 || to > screen->history.count) {
		str_copy(context->message, sizeof(context->message),
			 by < 0 ? "there is no statement before this"
				: "there is no statement after this");
		return VIEW_DRAW;
	}
	if (screen->recall == screen->history.count)
		str_copy(screen->draft, sizeof(screen->draft), screen->edit.text);
	screen->recall = to;
	view_edit_set(&screen->edit,
		      to == screen->history.count ? screen->draft : screen->history.items[to]);
	return VIEW_LOAD;
}

/* The next older statement that holds what stood there when the seeking began. */
static enum view_answer view_seek(struct view_sql *screen, struct view_context *context)
{
	int at = screen->recall;

	if (!screen->seeking)
		str_copy(screen->needle, sizeof(screen->needle), screen->edit.text);
	screen->seeking = true;
	while (--at >= 0)
		if (strcasestr(screen->history.items[at], screen->needle))
			break;
	if (at < 0) {
		snprintf(context->message, sizeof(context->message),
			 "no statement before has %.80s",
			 screen->needle[0] ? screen->needle : "been run");
		return VIEW_DRAW;
	}
	snprintf(context->message, sizeof(context->message), "with %.80s; Ctrl-R: further back",
		 screen->needle[0] ? screen->needle : "anything: type what to look for first");
	return view_recall(screen, context, at - screen->recall);
}

/* ---- Enter ----------------------------------------------------------------------------------- */

/* Enter on an empty last line runs, too: who does not know of the semicolon presses it twice. */
static bool view_is_ended(const struct view_edit *edit)
{
	const size_t length = strlen(edit->text);

	return prof_query_is_complete(edit->text) ||
	       (edit->at == length && length > 0 && edit->text[length - 1] == '\n');
}

static enum view_answer view_enter(struct view_sql *screen, struct view_context *context)
{
	if (screen->edit.text[strspn(screen->edit.text, " \t\n;")] == '\0') {
		str_copy(context->message, sizeof(context->message),
			 "a statement, as SELECT * FROM meta; Esc and v show the views");
		return VIEW_DRAW;
	}
	if (view_is_ended(&screen->edit)) {
		view__sql_run(screen, context);
		return VIEW_LOAD;
	}
	if (!view_edit_insert(&screen->edit, "\n"))
		str_copy(context->message, sizeof(context->message), "the statement is too long");
	else
		str_copy(context->message, sizeof(context->message),
			 "a new line: a ; at the end, or Enter once more, runs the statement");
	return VIEW_LOAD;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void view_changed(struct view_sql *screen)
{
	screen->trouble.status = ST_OK;
	screen->wrong_at = -1;
}

enum view_answer view__sql_type(void *state, struct view_context *context, uint32_t key)
{
	struct view_sql *screen = state;
	const bool empty = screen->edit.text[0] == '\0';

	if (key == VIEW_CTRL('R'))
		return view_seek(screen, context);
	screen->seeking = false;
	if (key == VIEW_KEY_TAB && !empty)
		return view_complete(screen, context);
	screen->offers.count = 0;
	if (key == VIEW_KEY_ENTER || key == '\n')
		return view_enter(screen, context);
	if (key == VIEW_KEY_ESCAPE) {
		screen->focus = screen->ran ? VIEW_SQL_RESULT : VIEW_SQL_VIEWS;
		return VIEW_LOAD;
	}
	if (view_edit_key(&screen->edit, key)) {
		view_changed(screen);
		return VIEW_LOAD;
	}
	if (key == VIEW_KEY_UP || key == VIEW_KEY_DOWN) {
		view_changed(screen);
		return view_recall(screen, context, key == VIEW_KEY_UP ? -1 : 1);
	}
	return VIEW_UNHANDLED;
}
