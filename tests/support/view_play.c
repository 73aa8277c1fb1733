/*
 * view_play [--ascii] [--each] [--colours N] WIDTHxHEIGHT KEYS REPORT [TARGET]: press KEYS in a
 * viewer without a terminal and print the screen, which one in a terminal of N colours (0: none)
 * must look like. --each: the screen after every key, a form feed behind it.
 *
 * KEYS: characters, and <Tab>, <Enter>, <Esc>, <Backspace>, <Up>, <<> ... as `?` calls them.
 *
 * view_play --keys SCREEN: the keys that do something there, one a line, as KEYS has them.
 *
 * view_play --hints WIDTHxHEIGHT KEYS REPORT [TARGET]: press each key that the line at the foot
 * names after KEYS, in a copy of the viewer, once and once more; prints those that change nothing,
 * and what is said of them, and ends with 1 if there are any.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "viewer/view_session.h"

/* The key that is called @name in <>; VIEW_KEY_NONE: none is. */
static uint32_t key_called(const char *name, size_t length)
{
	char known[VIEW_KEY_NAME_SIZE];

	for (int r = VIEW_NONE + 1; r < VIEW_REQUESTS; r++)
		for (int i = 0; i < VIEW_KEYS_EACH; i++) {
			const uint32_t key = view_request_info((enum view_request)r)->keys[i];

			if (!key)
				continue;
			view_key_name(key, known);
			if (strlen(known) == length && strncmp(known, name, length) == 0)
				return key;
		}
	return VIEW_KEY_NONE;
}

static int print_screen(const struct view_session *session)
{
	struct err err = {0};

	return view_canvas_print(&session->canvas, 0, session->canvas.height, stdout, &err) !=
	       ST_OK;
}

static int press_all(struct view_session *session, const char *keys, bool each)
{
	while (*keys) {
		const char *end = *keys == '<' ? strchr(keys, '>') : NULL;
		uint32_t key = (unsigned char)*keys;

		if (end && end > keys + 1) {
			key = key_called(keys + 1, (size_t)(end - keys - 1));
			if (key == VIEW_KEY_NONE) {
				fprintf(stderr, "no key is called %.*s\n", (int)(end - keys + 1),
					keys);
				return 2;
			}
			keys = end;
		}
		keys++;
		view_session_key(session, key);
		view_session_draw(session);
		if (each && (print_screen(session) != 0 || putchar('\f') == EOF))
			return 1;
	}
	return 0;
}

/* Does the key open another screen than the Summary? */
static bool is_screen_key(char key)
{
	for (int i = VIEW_SUMMARY + 1; i < VIEW_SCREENS; i++)
		if (view_screen((enum view_screen)i)->key == (unsigned char)key)
			return key != '\0';
	return false;
}

static int print_keys(const char *screen)
{
	const int at = view_session_screen_of(screen);
	char name[VIEW_KEY_NAME_SIZE];

	for (int r = VIEW_NONE + 1; at >= 0 && r < VIEW_REQUESTS; r++) {
		const struct view_request_info *info = view_request_info((enum view_request)r);

		if (!(info->screens & view_screen((enum view_screen)at)->where))
			continue;
		for (int i = 0; i < VIEW_KEYS_EACH && info->keys[i]; i++) {
			view_key_name(info->keys[i], name);
			printf(name[1] || name[0] == '<' ? "<%s>\n" : "%s\n", name);
		}
	}
	return at < 0;
}

/* ---- the keys at the foot -------------------------------------------------------------------- */

struct hints {
	const char *keys, *source, *target;
	int width, height;
};

static bool hints_open(const struct hints *hints, struct view_session *session)
{
	struct err err = {0};

	/* Not drawn before the keys: a screen that they leave is not read. */
	if (view_session_open(session, hints->source, hints->target, false, &err) == ST_OK &&
	    view_session_size(session, hints->width, hints->height, &err) == ST_OK) {
		session->canvas.colours = 256;
		return press_all(session, hints->keys, false) == 0;
	}
	fprintf(stderr, "%s\n", err.text);
	return false;
}

static void hints_press(struct view_session *session, uint32_t key)
{
	view_session_key(session, key);
	view_session_draw(session);
}

/* Did the key lead somewhere, or change a cell above the keys, be it a state's in the status? */
static bool hints_acted(const struct view_session *session, const struct view_session *before,
			const struct view_cell *cells)
{
	const int rows =
		session->context.message[0] ? session->frame.status.y : session->frame.keys.y;
	const size_t body = (size_t)(rows * session->canvas.width);

	return session->quit || session->prompt != before->prompt ||
	       session->popup.kind != before->popup.kind || session->screen != before->screen ||
	       session->bar != before->bar ||
	       memcmp(session->canvas.cells, cells, body * sizeof(*cells)) != 0;
}

/* The key at the foot does something, once or once more, in @session after the keys. */
static bool hints_acts(const struct hints *hints, struct view_session *session, uint32_t key)
{
	static struct view_session before;
	const enum view_request request = view_request_of(key);
	const size_t bytes = (size_t)(hints->width * hints->height) * sizeof(struct view_cell);
	struct view_cell *cells = malloc(bytes);
	bool acts = false;

	for (int i = 0; i < 2 && cells && !acts; i++) {
		if (request == VIEW_LONGEST_GAP_REQUEST) {
			hints_press(session, VIEW_KEY_ESCAPE);
			hints_press(session, i == 0 ? 'g' : 'G');
		}
		memcpy(cells, session->canvas.cells, bytes);
		before = *session;
		hints_press(session, key);
		acts = hints_acted(session, &before, cells) ||
		       /* What is looked for need not be there. */
		       (strcmp(view_request_info(request)->group, "Timeline") == 0 &&
			session->context.message[0]);
	}
	if (!acts)
		printf("%dx%d %s: %s %s: %s\n", hints->width, hints->height, hints->keys,
		       view_key_name(key, (char[VIEW_KEY_NAME_SIZE]){0}), session->words[request],
		       session->context.message);
	free(cells);
	return acts;
}

/* The same in a process of its own, whose session ends with it: opening a report and loading a
 * screen for each key takes ten times as long. Both processes only read the report, and the session
 * has no thread. */
static bool hints_act_apart(const struct hints *hints, struct view_session *session, uint32_t key)
{
	pid_t pid;
	int code = 1;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		const bool acts = hints_acts(hints, session, key);

		fflush(stdout);
		_exit(!acts);
	}
	return pid > 0 && waitpid(pid, &code, 0) == pid && code == 0;
}

static int press_hints(const struct hints *hints)
{
	static struct view_session session;
	int failed = 0, pressed = 0;

	if (!hints_open(hints, &session))
		return 2;
	for (int i = 0; i < session.hit_count && !session.bar; i++)
		if (session.hits[i].y == session.frame.keys.y) {
			pressed++;
			failed += !hints_act_apart(hints, &session, session.hits[i].key);
		}
	view_session_close(&session);
	return failed > 0 || pressed == 0;
}

/* Take the options off; false: one is none of ours. */
static bool take_options(int *argc, char ***argv, bool *ascii, bool *each, int *colours)
{
	for (; *argc > 1 && strncmp((*argv)[1], "--", 2) == 0; (*argc)--, (*argv)++) {
		if (strcmp((*argv)[1], "--ascii") == 0) {
			*ascii = true;
		} else if (strcmp((*argv)[1], "--each") == 0) {
			*each = true;
		} else if (strcmp((*argv)[1], "--colours") == 0 && *argc > 2) {
			*colours = atoi((*argv)[2]);
			(*argc)--;
			(*argv)++;
		} else {
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	bool ascii = false, each = false;
	struct err err = {0};
	static struct view_session session;
	int width, height, code, colours = 0;

	cli_locale();
	if (argc == 3 && strcmp(argv[1], "--keys") == 0)
		return print_keys(argv[2]);
	if (argc >= 5 && strcmp(argv[1], "--hints") == 0 &&
	    sscanf(argv[2], "%dx%d", &width, &height) == 2)
		return press_hints(&(struct hints){argv[3], argv[4], argv[5], width, height});
	if (!take_options(&argc, &argv, &ascii, &each, &colours) || argc < 4 || argc > 5 ||
	    sscanf(argv[1], "%dx%d", &width, &height) != 2) {
		fputs("usage: view_play [--ascii] [--each] [--colours N] WIDTHxHEIGHT KEYS REPORT "
		      "[TARGET]\n",
		      stderr);
		return 2;
	}
	if (view_session_open(&session, argv[3], argv[4], ascii, &err) != ST_OK ||
	    view_session_size(&session, width, height, &err) != ST_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	session.canvas.colours = colours;
	/* The Summary takes longer to load than most screens: not where the first key leaves it. */
	if (!is_screen_key(argv[2][0]))
		view_session_draw(&session);
	code = press_all(&session, argv[2], each);
	if (code == 0 && !each)
		code = print_screen(&session);
	view_session_close(&session);
	return code;
}
