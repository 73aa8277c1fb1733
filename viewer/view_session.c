/*
 * The session: screens, prompt, news, and the frame around it all.
 *
 * Threading: one thread. Ownership: the session owns the source, the canvas and the screens'
 * states.
 */
#include "viewer/view_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"

#define TEXT_WIDTH    100
#define TEXT_HEIGHT   10000
#define LOAD_SHARE    10 /* loads for news take at most a tenth of the time */
#define MESSAGE_NS    (5 * UINT64_C(1000000000))
#define NARROW        60
#define BAR_GAP       2
#define STATE_COLUMNS 30

enum status view_session_open(struct view_session *session, const char *path, bool ascii,
			      struct err *err)
{
	enum status status;

	memset(session, 0, sizeof(*session));
	status = view_source_open(&session->source, path, err);
	if (status != ST_OK)
		return status;
	session->canvas.ascii = ascii;
	session->context.source = &session->source;
	for (int i = 0; i < VIEW_SCREENS; i++) {
		session->news[i] = true;
		status = view_screen((enum view_screen)i)
				 ->open(&session->state[i], &session->context, err);
		if (status != ST_OK) {
			view_session_close(session);
			return status;
		}
	}
	return ST_OK;
}

void view_session_close(struct view_session *session)
{
	for (int i = 0; i < VIEW_SCREENS; i++) {
		view_screen((enum view_screen)i)->close(session->state[i]);
		session->state[i] = NULL;
	}
	view_canvas_fini(&session->canvas);
	view_source_close(&session->source);
}

static const struct view_screen_ops *view_ops(const struct view_session *session)
{
	return view_screen(session->screen);
}

enum status view_session_size(struct view_session *session, int width, int height, struct err *err)
{
	enum status status = view_canvas_resize(&session->canvas, width, height, err);

	if (status != ST_OK)
		return status;
	session->frame = view_frame_layout(width, height);
	session->context.body = session->frame.body;
	session->stale = true;
	return ST_OK;
}

void view_session_show(struct view_session *session, enum view_screen screen)
{
	if (screen == session->screen)
		return;
	if (session->screen != VIEW_HELP_SCREEN)
		session->before = session->screen;
	session->screen = screen;
	session->stale = true;
}

int view_session_screen_of(const char *name)
{
	for (int i = 0; i < VIEW_SCREENS; i++)
		if (strcmp(view_screen((enum view_screen)i)->name, name) == 0)
			return i;
	return -1;
}

/* --- loading ---------------------------------------------------------------------------------- */

static void view_load(struct view_session *session)
{
	const enum view_screen screen = session->screen;
	const uint64_t start = clock_ns();

	session->stale = false;
	/* Let go of: what was loaded stays, and comes up to date when the file is finished. */
	if (!session->source.db && screen != VIEW_HELP_SCREEN) {
		if (!session->fresh[screen])
			err_set(&session->trouble, ST_BUSY, "the run is being closed: a moment");
		return;
	}
	session->trouble.status = ST_OK;
	session->context.more = false;
	if (view_screen(screen)->load(session->state[screen], &session->context,
				      session->news[screen], &session->trouble) == ST_OK) {
		session->news[screen] = session->context.more;
		session->fresh[screen] = true;
		session->trouble.status = ST_OK;
	} else {
		/* Whatever it has may be half of something. */
		session->fresh[screen] = false;
		session->news[screen] = true;
	}
	session->loaded_ns[screen] = clock_ns();
	session->load_ns[screen] = session->loaded_ns[screen] - start;
}

/* A message goes after a while; true: it went. */
static bool view_fade(struct view_session *session, uint64_t now_ns)
{
	if (!session->context.message[0])
		return false;
	if (session->said_ns == 0)
		session->said_ns = now_ns;
	if (now_ns - session->said_ns < MESSAGE_NS)
		return false;
	session->context.message[0] = '\0';
	return true;
}

bool view_session_tick(struct view_session *session, uint64_t now_ns)
{
	const enum view_screen screen = session->screen;
	const enum view_state state = session->source.state;
	const uint64_t wait = view_ops(session)->least_ns > LOAD_SHARE * session->load_ns[screen]
				      ? view_ops(session)->least_ns
				      : LOAD_SHARE * session->load_ns[screen];
	const bool faded = view_fade(session, now_ns);

	if (session->paused)
		return faded;
	if (view_source_poll(&session->source, now_ns))
		for (int i = 0; i < VIEW_SCREENS; i++)
			session->news[i] = true;
	if (session->news[screen] && session->source.db &&
	    (session->context.more || now_ns - session->loaded_ns[screen] >= wait))
		session->stale = true;
	return faded || session->stale || state != session->source.state;
}

/* --- writing a screen --------------------------------------------------------------------------
 */

static enum status view_print_rows(struct view_session *session, enum view_screen screen,
				   enum report_format format, FILE *out, struct err *err)
{
	const struct view_screen_ops *ops = view_screen(screen);
	const struct report_render_params params = {
		.format = format, .tool = "ipu-view", .terminal = isatty(fileno(out)) == 1};
	struct report_table table;
	enum status status;

	if (!ops->table)
		return err_set(err, ST_INVALID, "the screen %s has no rows: use --text", ops->name);
	status = ops->table(session->state[screen], &session->context, &table, err);
	if (status != ST_OK)
		return status;
	status = report_render(&table, &params, out, err);
	report_table_free(&table);
	return status;
}

/* Drawn as high as it wants to be. */
static enum status view_print_text(struct view_session *session, enum view_screen screen, int width,
				   FILE *out, struct err *err)
{
	const struct view_screen_ops *ops = view_screen(screen);
	struct view_context *context = &session->context;
	struct view_pane pane;
	enum status status;
	int height = ops->height(session->state[screen], context);

	height = height < 1 ? 1 : height > TEXT_HEIGHT ? TEXT_HEIGHT : height;
	context->body = (struct view_rect){0, 0, width, height};
	status = ops->load(session->state[screen], context, false, err);
	if (status == ST_OK)
		status = view_canvas_resize(&session->canvas, width, height, err);
	if (status != ST_OK)
		return status;
	pane = view_pane_all(&session->canvas);
	ops->draw(session->state[screen], context, &pane);
	while (height > 1 &&
	       session->canvas.cells[(size_t)(height - 1) * (size_t)width].character == ' ') {
		bool blank = true;

		for (int x = 0; x < width; x++)
			if (session->canvas.cells[(size_t)(height - 1) * (size_t)width + (size_t)x]
				    .character != ' ')
				blank = false;
		if (!blank)
			break;
		height--;
	}
	return view_canvas_print(&session->canvas, 0, height, out, err);
}

enum status view_session_print(struct view_session *session, enum view_screen screen,
			       enum report_format format, int width, FILE *out, struct err *err)
{
	enum status status;

	if (width <= 0)
		width = TEXT_WIDTH;
	if (!session->source.db)
		return err_set(err, ST_BUSY, "the run is being closed: try again in a moment");
	session->canvas.plain = true;
	session->context.whole = true;
	session->context.body = (struct view_rect){0, 0, width, 50};
	status = view_screen(screen)->load(session->state[screen], &session->context, true, err);
	if (status != ST_OK)
		return status;
	if (format != REPORT_AS_TEXT)
		return view_print_rows(session, screen, format, out, err);
	return view_print_text(session, screen, width, out, err);
}

static enum report_format view_format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && strcmp(dot, ".csv") == 0)
		return REPORT_AS_CSV;
	if (dot && strcmp(dot, ".json") == 0)
		return REPORT_AS_JSON;
	return REPORT_AS_TEXT;
}

/* What is on the screen, as it is: the canvas is a copy, so that nothing here moves. */
static enum status view_write_shown(struct view_session *session, FILE *out, struct err *err)
{
	struct view_canvas canvas = {.ascii = session->canvas.ascii, .plain = true};
	struct view_pane pane;
	enum status status;

	status = view_canvas_resize(&canvas, session->canvas.width, session->canvas.height, err);
	if (status == ST_OK) {
		pane = view_pane_at(&canvas, session->frame.body);
		view_ops(session)->draw(session->state[session->screen], &session->context, &pane);
		status = view_canvas_print(&canvas, session->frame.body.y,
					   session->frame.body.y + session->frame.body.height, out,
					   err);
	}
	view_canvas_fini(&canvas);
	return status;
}

static enum status view_write_file(struct view_session *session, const char *path, struct err *err)
{
	const enum report_format format = view_format_of(path);
	enum status status;
	FILE *out;

	if (!session->fresh[session->screen] || (!session->source.db && format != REPORT_AS_TEXT))
		return err_set(err, ST_BUSY, "there is nothing to write yet");
	out = fopen(path, "wx"); /* never over a file that is there */
	if (!out)
		return err_set(err, ST_IO, "%s: %s", path, strerror(errno));
	status = format == REPORT_AS_TEXT
			 ? view_write_shown(session, out, err)
			 : view_print_rows(session, session->screen, format, out, err);
	if (fclose(out) != 0 && status == ST_OK)
		status = err_set(err, ST_IO, "%s: %s", path, strerror(errno));
	if (status != ST_OK)
		unlink(path);
	return status;
}

/* --- the prompt ------------------------------------------------------------------------------- */

/* Show @text and, where it is not NULL, @rest after it; what does not fit is cut. */
static void view_say(struct view_session *session, const char *text, const char *rest)
{
	char *out = session->context.message;
	size_t length;

	str_copy(out, VIEW_MESSAGE_SIZE, text);
	length = strlen(out);
	str_copy(out + length, VIEW_MESSAGE_SIZE - length, rest ? rest : "");
}

static void view_search(struct view_session *session, bool forward)
{
	const struct view_screen_ops *ops = view_ops(session);

	if (session->search[0] == '\0') {
		view_say(session, "nothing to search for: / asks", NULL);
		return;
	}
	if (!session->fresh[session->screen])
		return;
	if (!ops->search(session->state[session->screen], &session->context, session->search,
			 forward))
		view_say(session, "not found: ", session->search);
	session->stale = true;
}

static void view_open_prompt(struct view_session *session, enum view_prompt_kind kind)
{
	session->prompt = kind;
	session->input[0] = '\0';
	if (kind == VIEW_WRITE_PROMPT)
		snprintf(session->input, sizeof(session->input), "%s.txt", view_ops(session)->name);
}

static void view_end_prompt(struct view_session *session)
{
	const enum view_prompt_kind kind = session->prompt;
	struct err err = {0};

	session->prompt = VIEW_NO_PROMPT;
	if (kind == VIEW_SEARCH_PROMPT) {
		if (session->input[0])
			str_copy(session->search, sizeof(session->search), session->input);
		view_search(session, true);
	} else if (kind == VIEW_FILTER_PROMPT) {
		view_ops(session)->filter(session->state[session->screen], session->input);
		session->stale = true;
	} else if (session->input[0]) {
		if (view_write_file(session, session->input, &err) == ST_OK)
			view_say(session, "written: ", session->input);
		else
			view_say(session, "not written: ", err.text);
	}
}

static void view_prompt_key(struct view_session *session, uint32_t key)
{
	size_t length = strlen(session->input);
	char bytes[5];

	if (key == VIEW_KEY_ENTER || key == '\n') {
		view_end_prompt(session);
	} else if (key == VIEW_KEY_ESCAPE) {
		session->prompt = VIEW_NO_PROMPT;
	} else if (key == VIEW_KEY_BACKSPACE || key == '\b') {
		if (length == 0)
			session->prompt = VIEW_NO_PROMPT;
		/* A whole character: back over continuation bytes. */
		while (length > 0 && ((unsigned char)session->input[--length] & 0xc0) == 0x80)
			;
		session->input[length] = '\0';
	} else if (key == VIEW_CTRL('U')) {
		session->input[0] = '\0';
	} else if (key >= ' ' && key < 0x110000) {
		if (length + (size_t)view_encode(key, bytes) < sizeof(session->input))
			memcpy(session->input + length, bytes, strlen(bytes) + 1);
	}
}

/* --- requests --------------------------------------------------------------------------------- */

static void view_step_screen(struct view_session *session, int by)
{
	view_session_show(session, (enum view_screen)(((int)session->screen + by + VIEW_SCREENS) %
						      VIEW_SCREENS));
}

static void view_leave(struct view_session *session, bool may_quit)
{
	if (session->screen == VIEW_HELP_SCREEN)
		view_session_show(session, session->before);
	else if (may_quit)
		session->quit = true;
}

static void view_live(struct view_session *session, enum view_request request)
{
	if (request == VIEW_RELOAD_REQUEST) {
		session->news[session->screen] = true;
		session->stale = true;
	} else if (request == VIEW_PAUSE_REQUEST) {
		session->paused = !session->paused;
		view_say(session, session->paused ? "paused: Z goes on" : "looking for news again",
			 NULL);
	} else {
		session->context.follow = !session->context.follow;
		session->stale = true;
		view_say(session,
			 session->context.follow ? "following the newest" : "no longer following",
			 NULL);
		if (session->context.follow && session->source.state != VIEW_RECORDING)
			view_say(session, "following, but the run is ",
				 view_state_text(session->source.state));
	}
}

/* What a screen does not handle. */
static void view_general(struct view_session *session, enum view_request request)
{
	switch (request) {
	case VIEW_NEXT_SCREEN_REQUEST:
	case VIEW_PREVIOUS_SCREEN_REQUEST:
		view_step_screen(session, request == VIEW_NEXT_SCREEN_REQUEST ? 1 : -1);
		break;
	case VIEW_SCREEN_1_REQUEST:
	case VIEW_SCREEN_2_REQUEST:
	case VIEW_SCREEN_3_REQUEST:
		view_session_show(session, (enum view_screen)(request - VIEW_SCREEN_1_REQUEST));
		break;
	case VIEW_HELP_REQUEST:
		if (session->screen == VIEW_HELP_SCREEN)
			view_leave(session, false);
		else
			view_session_show(session, VIEW_HELP_SCREEN);
		break;
	case VIEW_SEARCH_REQUEST:
		view_open_prompt(session, VIEW_SEARCH_PROMPT);
		break;
	case VIEW_FILTER_REQUEST:
		if (view_ops(session)->filter)
			view_open_prompt(session, VIEW_FILTER_PROMPT);
		else
			view_say(session, "this screen has no filter: / searches", NULL);
		break;
	case VIEW_WRITE_REQUEST:
		view_open_prompt(session, VIEW_WRITE_PROMPT);
		break;
	case VIEW_SEARCH_NEXT_REQUEST:
	case VIEW_SEARCH_BACK_REQUEST:
		view_search(session, request == VIEW_SEARCH_NEXT_REQUEST);
		break;
	case VIEW_FOLLOW_REQUEST:
	case VIEW_PAUSE_REQUEST:
	case VIEW_RELOAD_REQUEST:
		view_live(session, request);
		break;
	case VIEW_REDRAW_REQUEST:
		session->redraw = true;
		break;
	case VIEW_BACK_REQUEST:
	case VIEW_CLOSE_REQUEST:
		view_leave(session, request == VIEW_CLOSE_REQUEST);
		break;
	case VIEW_QUIT_REQUEST:
		session->quit = true;
		break;
	default:
		/* A key of another screen: say where it belongs. */
		view_say(session, "not on this screen: ", view_request_info(request)->help);
		break;
	}
}

void view_session_key(struct view_session *session, uint32_t key)
{
	enum view_request request;
	enum view_answer answer = VIEW_UNHANDLED;

	session->context.message[0] = '\0';
	session->said_ns = 0;
	if (session->prompt != VIEW_NO_PROMPT) {
		view_prompt_key(session, key);
		return;
	}
	request = view_request_of(key);
	if (request == VIEW_NONE) {
		if (key >= '0' && key <= '9')
			view_say(session, "there is no such screen", NULL);
		return;
	}
	if (session->fresh[session->screen])
		answer = view_ops(session)->request(session->state[session->screen],
						    &session->context, request);
	if (answer == VIEW_LOAD)
		session->stale = true;
	else if (answer == VIEW_UNHANDLED)
		view_general(session, request);
}

/* --- the frame -------------------------------------------------------------------------------- */

static void view_draw_title(struct view_session *session)
{
	static const enum view_glyph dot = VIEW_GLYPH_DOT;
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.title);
	const int width = pane.rect.width;
	char text[STATE_COLUMNS + 64];
	int x = 1, room, used;

	view_fill(&pane, 0, 0, width, VIEW_BAR);
	for (int i = 0; i < VIEW_SCREENS; i++) {
		const bool here = i == (int)session->screen;

		if (i == VIEW_HELP_SCREEN)
			snprintf(text, sizeof(text), " ? %s ",
				 view_screen((enum view_screen)i)->title);
		else
			snprintf(text, sizeof(text), " %d %s ", i + 1,
				 view_screen((enum view_screen)i)->title);
		x += view_text(&pane, x, 0, here ? VIEW_BAR_ACTIVE : VIEW_BAR, text);
	}
	snprintf(text, sizeof(text), "%s%s%s", view_state_text(session->source.state),
		 session->paused ? ", paused" : "", session->context.follow ? ", following" : "");
	used = view_text_width(text) + 3;
	room = width - x - used - 2;
	if (room < 0)
		return;
	view_text_right(&pane, x + 1, 0, room, VIEW_BAR_NOTE, session->source.name);
	view_glyphs(&pane, width - used, 0, VIEW_BAR, dot, 1);
	view_text(&pane, width - used + 2, 0, VIEW_BAR, text);
}

static void view_draw_status(struct view_session *session)
{
	static const char *const prompts[] = {[VIEW_SEARCH_PROMPT] = "/",
					      [VIEW_WRITE_PROMPT] = "write to: ",
					      [VIEW_FILTER_PROMPT] = "\\"};
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.status);
	char text[VIEW_MESSAGE_SIZE] = "";
	int x = 1;

	if (session->prompt != VIEW_NO_PROMPT) {
		x = view_text(&pane, 0, 0, VIEW_KEY, prompts[session->prompt]);
		x += view_text_cut(&pane, x, 0, pane.rect.width - x - 1, VIEW_NORMAL,
				   session->input);
		view_put(&pane, x, 0, VIEW_CURSOR, ' ');
		return;
	}
	if (session->context.message[0]) {
		view_text(&pane, 1, 0, VIEW_WARN, session->context.message);
		return;
	}
	if (session->fresh[session->screen])
		view_ops(session)->status(session->state[session->screen], &session->context, text,
					  sizeof(text));
	/* A narrow title has no room for the state of the run. */
	if (pane.rect.width < NARROW && session->source.state != VIEW_COMPLETE)
		x += 1 + view_text(&pane, x, 0, VIEW_WARN, view_state_text(session->source.state));
	view_text(&pane, x, 0, VIEW_DIM, text);
}

static void view_draw_keys(struct view_session *session)
{
	struct view_pane pane = view_pane_at(&session->canvas, session->frame.keys);
	const unsigned where = view_ops(session)->where;
	char name[VIEW_KEY_NAME_SIZE];
	int x = 1;

	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const struct view_request_info *info = view_request_info((enum view_request)i);
		int width;

		if (!info->bar[0] || !(info->screens & where))
			continue;
		view_key_name(info->keys[0], name);
		width = view_text_width(name) + 1 + view_text_width(info->bar);
		if (x + width > pane.rect.width - 1)
			continue;
		x += view_text(&pane, x, 0, VIEW_KEY, name);
		x += 1 + view_text(&pane, x + 1, 0, VIEW_DIM, info->bar) + BAR_GAP;
	}
}

void view_session_draw(struct view_session *session)
{
	struct view_pane pane;

	if (session->stale && !session->frame.too_small)
		view_load(session);
	view_canvas_clear(&session->canvas);
	if (session->frame.too_small) {
		pane = view_pane_at(&session->canvas, session->frame.line);
		view_textf(&pane, 0, 0, VIEW_WARN, "too small (%dx%d)", VIEW_MIN_WIDTH,
			   VIEW_MIN_HEIGHT);
		return;
	}
	view_draw_title(session);
	pane = view_pane_at(&session->canvas, session->frame.body);
	if (session->fresh[session->screen])
		view_ops(session)->draw(session->state[session->screen], &session->context, &pane);
	else if (session->trouble.status != ST_OK)
		view_text(&pane, 2, 1, VIEW_BAD, session->trouble.text);
	view_draw_status(session);
	view_draw_keys(session);
}
