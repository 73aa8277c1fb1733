/*
 * The frame: title, status and keys around the screen's body, and the popup over it.
 *
 * Threading: the terminal's thread. Ownership: none; nothing is loaded.
 */
#include "viewer/view_session_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_grid.h"

/* ---- the frame ------------------------------------------------------------------------------- */

#define BAR_GAP      2
#define STATE_SIZE   96
#define NAME_LEAST   12 /* of the report's name; if narrower it is left out */
#define SHOW_WAIT_NS (200 * UINT64_C(1000000))

static const char *const view_prompts[] = {[VIEW_SEARCH_PROMPT] = "/",
					   [VIEW_WRITE_PROMPT] = "write to: ",
					   [VIEW_FILTER_PROMPT] = "\\",
					   [VIEW_MARK_PROMPT] = "bookmark: ",
					   [VIEW_RUNS_PROMPT] = "compare with: "};

static void view_add_hit(struct view_session *session, int y, int from, int to, uint32_t key)
{
	if (session->hit_count < VIEW_HITS)
		session->hits[session->hit_count++] = (struct view_hit){y, from, to, key};
}

/* ---- title ----------------------------------------------------------------------------------- */

enum title_names {
	TITLE_WHOLE,
	TITLE_BRIEF,
	TITLE_ACTIVE /* the shown screen's title; of the others only the key */
};

#define TAB_SIZE 48

static const char *view_tab(const struct view_session *session, int screen, enum title_names names,
			    char out[TAB_SIZE])
{
	const struct view_screen_ops *ops = view_screen((enum view_screen)screen);
	const bool here = screen == (int)session->screen;
	char key[VIEW_KEY_NAME_SIZE];

	view_key_name(ops->key, key);
	if (names == TITLE_WHOLE)
		snprintf(out, TAB_SIZE, " %s %s ", key, ops->title);
	else if (names == TITLE_BRIEF)
		snprintf(out, TAB_SIZE, here ? " %s %s " : " %s %s", key, ops->brief);
	else
		snprintf(out, TAB_SIZE, here ? " %s %s " : " %s", key, here ? ops->title : "");
	return out;
}

static int view_tabs_width(const struct view_session *session, enum title_names names)
{
	char text[TAB_SIZE];
	int width = 1;

	for (int i = 0; i < VIEW_SCREENS; i++)
		width += view__listed(session, i) ? utf8_columns(view_tab(session, i, names, text))
						  : 0;
	return width;
}

/* "recording, following"; if the states of two runs differ "S complete, T recording". */
static const char *view_state_note(const struct view_session *session, char *out, size_t size)
{
	const bool part = session->context.target && session->target.state != session->source.state;

	snprintf(out, size, "%s%s%s%s%s%s", part ? "S " : "",
		 view_state_text(session->source.state), part ? ", T " : "",
		 part ? view_state_text(session->target.state) : "",
		 session->paused ? ", paused" : "", session->context.follow ? ", following" : "");
	return out;
}

static void view_draw_title(struct view_session *session)
{
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.title);
	const int width = pane.rect.width;
	char state[STATE_SIZE], name[2 * sizeof(session->source.name) + 8], text[TAB_SIZE];
	int x = 1, room, used, least;
	enum title_names names;

	view_fill(&pane, 0, 0, width, VIEW_BAR);
	view_state_note(session, state, sizeof(state));
	used = utf8_columns(state) + 3;
	if (session->context.target)
		snprintf(name, sizeof(name), "%s > %s", session->source.name, session->target.name);
	else
		snprintf(name, sizeof(name), "%s", session->source.name);
	/* Choose the longest names that leave space for the name and the state of the run. */
	least = min(NAME_LEAST, utf8_columns(name));
	room = width - used - 2 - least;
	names = view_tabs_width(session, TITLE_WHOLE) <= room   ? TITLE_WHOLE
		: view_tabs_width(session, TITLE_BRIEF) <= room ? TITLE_BRIEF
								: TITLE_ACTIVE;
	for (int i = 0; i < VIEW_SCREENS; i++) {
		const bool here = i == (int)session->screen;
		const int from = x;

		if (!view__listed(session, i))
			continue;
		x += view_text(&pane, x, 0, here ? VIEW_BAR_ACTIVE : VIEW_BAR,
			       view_tab(session, i, names, text));
		view_add_hit(session, pane.rect.y, from, x, view_screen((enum view_screen)i)->key);
	}
	room = width - x - used - 2;
	session->state_shown = room >= 0;
	if (room < 0)
		return;
	if (room >= least)
		view_text_right(&pane, x + 1, 0, room, VIEW_BAR_NOTE, name);
	view_glyphs(&pane, width - used, 0, VIEW_BAR, VIEW_GLYPH_DOT, 1);
	view_text(&pane, width - used + 2, 0, VIEW_BAR, state);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void view_draw_prompt(const struct view_session *session, struct view_pane *pane)
{
	int x = view_text(pane, 0, 0, VIEW_KEY, view_prompts[session->prompt]);
	int room = pane->rect.width - x - 1;

	/* Show the end of a long input, where typing happens. Typing replaces a proposal. */
	if (utf8_columns(session->input) > room) {
		x += view_text(pane, x, 0, VIEW_DIM, "…");
		room = pane->rect.width - x - 1;
	}
	x += view_text_cut(pane, x, 0, room, session->proposed ? VIEW_SELECTED : VIEW_NORMAL,
			   view_text_tail(session->input, room));
	view_put(pane, x, 0, VIEW_CURSOR, ' ');
}

static uint64_t view_waited(const struct view_session *session)
{
	return clock_ns() - session->job_since_ns;
}

static void view_draw_waiting(const struct view_session *session, struct view_pane *pane)
{
	const uint64_t waited = view_waited(session);
	static const char *const doing[] = {[VIEW_LOAD_JOB] = "reading",
					    [VIEW_SEARCH_JOB] = "searching",
					    [VIEW_WRITE_JOB] = "gathering rows",
					    [VIEW_RUNS_JOB] = "looking for runs"};
	const enum view_job_kind kind = session->job.kind;
	const char *what = kind < ARRAY_LEN(doing) && doing[kind] ? doing[kind] : "working";

	if (waited >= SHOW_WAIT_NS)
		view_textf(pane, 1, 0, VIEW_WARN, "%s ... %.1f s, Esc stops it", what,
			   (double)waited / 1e9);
}

static void view_draw_status(struct view_session *session)
{
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.status);
	char text[VIEW_MESSAGE_SIZE] = "", state[STATE_SIZE];
	int x = 1;

	if (session->prompt != VIEW_NO_PROMPT) {
		view_draw_prompt(session, &pane);
		return;
	}
	if (view_session_busy(session)) {
		view_draw_waiting(session, &pane);
		return;
	}
	if (session->context.message[0]) {
		view_text_middle(&pane, 1, 0, pane.rect.width - 1, VIEW_WARN,
				 session->context.message);
		return;
	}
	if (session->fresh[session->screen] && view__ops(session)->status)
		view__ops(session)->status(session->state[session->screen], &session->context, text,
					   sizeof(text));
	else if (session->fresh[session->screen] && view__grid(session))
		view_grid_status(view__grid(session), text, sizeof(text));
	/* The title had no space for the state of the run. */
	if (!session->state_shown &&
	    (!(session->source.state == VIEW_COMPLETE &&
	       (!session->context.target || session->target.state == VIEW_COMPLETE)) ||
	     session->paused || session->context.follow))
		x += view_text(&pane, x, 0, VIEW_WARN,
			       view_state_note(session, state, sizeof(state)));
	if (session->context.target && session->context.differ)
		x += view_textf(&pane, x, 0, VIEW_WARN, "%sonly what differs", x > 1 ? "; " : "");
	if (session->context.hits > 0)
		x += view_textf(&pane, x, 0, VIEW_NORMAL, "%s%lld of %lld", x > 1 ? "; " : "",
				(long long)session->context.hit, (long long)session->context.hits);
	if (x > 1 && text[0])
		x += view_text(&pane, x, 0, VIEW_DIM, "; ");
	view_text(&pane, x, 0, VIEW_DIM, text);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Pinned keys are at the end of the line on every screen wide enough: they lead to everything
 * else. */
static bool view_key_is_pinned(enum view_request request)
{
	return request == VIEW_JOIN_REQUEST || request == VIEW_HELP_REQUEST ||
	       request == VIEW_CLOSE_REQUEST;
}

/* Does another listed screen know more of what is under the cursor? */
static bool view_leads_on(const struct view_session *session)
{
	const unsigned offering = session->offering[session->screen] & ~(1u << session->screen);

	for (int i = 0; i < VIEW_SCREENS && session->fresh[session->screen]; i++)
		if ((offering & 1u << i) && !session->absent[i])
			return true;
	return false;
}

/* What the key does now, in a word or two; "": nothing. */
static const char *view_key_word(const struct view_session *session, enum view_request request)
{
	const struct view_request_info *info = view_request_info(request);
	const struct view_screen_ops *ops = view__ops(session);
	const char *word = NULL;

	if (!(info->screens & view_screen_where(session->screen, &session->context)) ||
	    (request == VIEW_JOIN_REQUEST && !view_leads_on(session)))
		return "";
	/* Keys of other screens and of the help apply even if this screen has nothing to show. */
	if (session->fresh[session->screen] && strcmp(info->group, VIEW_SCREENS_GROUP) != 0 &&
	    request != VIEW_CLOSE_REQUEST) {
		const struct view_grid *grid = view__grid(session);

		if (ops->word)
			word = ops->word(session->state[session->screen], request);
		if (!word && grid)
			word = view_grid_word(grid, request);
	}
	return word ? word : info->bar;
}

static int view_key_width(uint32_t key, const char *word)
{
	char name[VIEW_KEY_NAME_SIZE];

	return utf8_columns(view_key_name(key, name)) + 1 + utf8_columns(word);
}

/* Draw a key and what it does; return where the next one begins. */
static int view_draw_key(struct view_session *session, struct view_pane *pane, int x, uint32_t key,
			 const char *word)
{
	char name[VIEW_KEY_NAME_SIZE];
	const int from = x;

	x += view_text(pane, x, 0, VIEW_KEY, view_key_name(key, name));
	x += 1 + view_text(pane, x + 1, 0, VIEW_DIM, word);
	view_add_hit(session, pane->rect.y, from, x, key);
	return x + BAR_GAP;
}

/* Draw the pinned keys, or the others, in at most @room columns from @x on. Return the end
 * column. */
static int view_draw_some_keys(struct view_session *session, struct view_pane *pane, int x,
			       int room, bool pinned)
{
	const int end = x + room;

	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const uint32_t key = view_request_info((enum view_request)i)->keys[0];
		const char *word = session->words[i];

		if (word && word[0] && view_key_is_pinned((enum view_request)i) == pinned &&
		    x + view_key_width(key, word) <= end)
			x = view_draw_key(session, pane, x, key, word);
	}
	return x;
}

/* The keys of a prompt, a list or an edited text; NULL: those of the screen. */
static const struct view_bar_key *view_bar_of(const struct view_session *session)
{
	static const struct view_bar_key prompt[] = {{VIEW_KEY_ENTER, "do it"},
						     {VIEW_KEY_ESCAPE, "leave"},
						     {VIEW_CTRL('U'), "empty it"},
						     {0, NULL}};
	static const struct view_bar_key list[] = {
		{VIEW_KEY_ENTER, "take it"}, {VIEW_KEY_ESCAPE, "leave"}, {0, NULL}};

	if (session->prompt != VIEW_NO_PROMPT)
		return prompt;
	if (session->popup.kind != VIEW_NO_POPUP)
		return list;
	return view__is_typing(session) ? view__ops(session)->typing_keys : NULL;
}

static void session_draw_bar(struct view_session *session, struct view_pane *pane)
{
	int x = 1;

	for (const struct view_bar_key *at = session->bar; at->key; at++) {
		if (x + view_key_width(at->key, at->bar) >= pane->rect.width)
			return;
		x = view_draw_key(session, pane, x, at->key, at->bar);
	}
}

static void view_draw_keys(struct view_session *session)
{
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.keys);
	int kept = 0, x;

	/* A running job may change what keys do: keep the bar until it has ended. */
	if (!view_session_busy(session)) {
		session->bar = view_bar_of(session);
		for (int i = 0; i < VIEW_REQUESTS; i++)
			session->words[i] = view_key_word(session, (enum view_request)i);
	}
	if (session->bar) {
		session_draw_bar(session, &pane);
		return;
	}
	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++)
		if (session->words[i] && session->words[i][0] &&
		    view_key_is_pinned((enum view_request)i))
			kept += view_key_width(view_request_info((enum view_request)i)->keys[0],
					       session->words[i]) +
				BAR_GAP;
	x = view_draw_some_keys(session, &pane, 1, pane.rect.width - 2 - kept, false);
	view_draw_some_keys(session, &pane, x, pane.rect.width - 1 - x, true);
}

/* ---- the whole screen ------------------------------------------------------------------------ */

static void view_clear_rect(struct view_session *session, struct view_rect rect)
{
	struct view_pane pane = view_pane_at(&session->canvas, rect);

	for (int y = 0; y < rect.height; y++)
		view_fill(&pane, 0, y, rect.width, VIEW_NORMAL);
}

static void view_draw_body(struct view_session *session)
{
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.body);

	/* A running job owns the state: keep the last drawing. Another screen's drawing is kept
	 * only for SHOW_WAIT_NS. */
	if (view_session_busy(session)) {
		if (session->drawn != session->screen && view_waited(session) >= SHOW_WAIT_NS)
			view_clear_rect(session, session->frame.body);
		return;
	}
	session->drawn = session->screen;
	session->undrawn = false;
	view_clear_rect(session, session->frame.body);
	if (session->fresh[session->screen])
		view__ops(session)->draw(session->state[session->screen], &session->context, &pane);
	else if (session->trouble.status != ST_OK)
		view_text(&pane, 2, 1, VIEW_BAD, session->trouble.text);
	if (session->popup.kind != VIEW_NO_POPUP)
		view_popup_draw(&session->popup, session->frame.body, &session->canvas);
}

void view__picture(struct view_session *session)
{
	struct view_pane pane;

	session->hit_count = 0;
	if (session->frame.too_small) {
		view_canvas_clear(&session->canvas);
		pane = view_pane_at(&session->canvas, session->frame.line);
		view_textf(&pane, 0, 0, VIEW_WARN, "too small (%dx%d)", VIEW_MIN_WIDTH,
			   VIEW_MIN_HEIGHT);
		return;
	}
	view_draw_body(session);
	view_clear_rect(session, session->frame.status);
	view_clear_rect(session, session->frame.keys);
	view_draw_title(session);
	view_draw_status(session);
	view_draw_keys(session);
}
