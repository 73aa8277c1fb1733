/*
 * Keys of the viewer: every byte is a key, a click, a size, a while that passes, or a file that its
 * writer closes and gives back; drawn after each. On recordings of every kind, alone or compared.
 *
 * The first five bytes say which recordings, which screen first, how it is drawn and how large, and
 * whether jobs run on a thread of their own, as in a terminal: then bytes come while they do.
 * What the viewer writes (W, bookmarks, history) goes to a folder of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "fuzz_target.h"
#include "support/support.h"
#include "support/view_recordings.h"
#include "support/view_stop.h"
#include "viewer/view_session.h"

#define HEAD      5
#define MOST_KEYS 4096 /* of one input */
#define SECOND    UINT64_C(1000000000)
#define NAP_NS    100000

/* Bits of the third byte; the lowest is whether characters are ASCII. */
enum head_bits {
	HEAD_PLAIN = 2,
	HEAD_FOLLOW = 4,
	HEAD_DIFFER = 8,
	HEAD_BACKGROUND = 16
};

struct player {
	struct view_session session;
	const uint8_t *at, *end;
	uint64_t later_ns; /* the time that has passed by the bytes */
};

static char folder[SUPPORT_PATH_SIZE];

/* ---- bytes ----------------------------------------------------------------------------------- */

static int next(struct player *player)
{
	return player->at < player->end ? *player->at++ : 0;
}

static void resize(struct player *player)
{
	const int width = 1 + next(player) * 300 / 256, height = 1 + next(player) * 100 / 256;

	view_session_size(&player->session, width, height, NULL);
}

static void click(struct player *player)
{
	const int x = next(player) * player->session.canvas.width / 256;

	view_session_click(&player->session, x, next(player) * player->session.canvas.height / 256);
}

static void pass_time(struct player *player)
{
	player->later_ns += (uint64_t)next(player) * SECOND / 10;
	view_session_tick(&player->session, clock_ns() + player->later_ns);
}

/* Until no job is under way. What is done to a session from outside waits for that. */
static void rest(struct player *player)
{
	const struct timespec nap = {0, NAP_NS};

	while (view_session_busy(&player->session)) {
		nanosleep(&nap, NULL);
		view_session_tick(&player->session, clock_ns() + player->later_ns);
	}
}

/* The job that runs then, or soon, is stopped half way. */
static void stop_soon(struct player *player)
{
	const int looks = next(player);

	view_stop_after(1 + looks * looks / 16, &player->session.context.cancel);
}

/* The writer closes the file: it is let go of, and not asked for for a minute. */
static void let_go(struct player *player)
{
	struct view_source *source =
		next(player) % 2 ? &player->session.target : &player->session.source;

	rest(player);
	if (!source->path[0])
		return;
	view_source_close(source);
	source->state = VIEW_CLOSING;
	source->retry_ns = clock_ns() + player->later_ns + 60 * SECOND;
}

static void give_back(struct player *player)
{
	player->later_ns += 61 * SECOND;
	view_session_tick(&player->session, clock_ns() + player->later_ns);
}

static void show(struct player *player)
{
	const int screen = next(player) % VIEW_SCREENS;

	rest(player);
	if (player->session.prompt == VIEW_NO_PROMPT && player->session.popup.kind == VIEW_NO_POPUP)
		view_session_show(&player->session, (enum view_screen)screen);
}

static void type_character(struct player *player)
{
	const uint32_t high = (uint32_t)next(player);

	view_session_key(&player->session, high << 8 | (uint32_t)next(player));
}

static void press(struct player *player, uint32_t key);

/* A statement of the SQL screen, which bytes alone would hardly hit upon. */
static void type_statement(struct player *player)
{
	static const char *const statements[] = {
		"SELECT * FROM strings;",
		"SELECT name, sql FROM sqlite_schema ORDER BY 2;",
		"SELECT rowid, * FROM spans_v; SELECT 1;",
		"VALUES (1, 2.5), (NULL, x'00ff'), ('a' || char(10) || char(0x202e), 9e999);",
		"SELECT printf('%.*c', 70000, 'w') AS \"\";",
		"DELETE FROM strings;",
		"SELECT \";", /* an error */
	};
	const char *text = statements[(size_t)next(player) % ARRAY_LEN(statements)];

	rest(player);
	view_session_show(&player->session, VIEW_SQL);
	view_session_draw(&player->session);
	for (; *text; text++)
		press(player, (unsigned char)*text);
	press(player, VIEW_KEY_ENTER);
}

static void turn_switch(struct player *player)
{
	const int which = next(player);

	rest(player);
	player->session.canvas.ascii = which & 1;
	player->session.canvas.plain = which & 2;
	player->session.context.whole = false;
	player->session.source.state = which & 4 ? VIEW_RECORDING : player->session.source.state;
}

static void (*const actions[])(struct player *) = {
	resize,         click,       pass_time,      let_go,    give_back, show,
	type_character, turn_switch, type_statement, stop_soon, rest};

/* Files are named here, never by the bytes. */
static void name_file(struct view_session *session)
{
	static const char *const names[] = {"x.txt", "x.csv", "x.json", "x.svg", "no/x.txt"};
	const size_t which = strlen(session->input) % ARRAY_LEN(names);
	char path[SUPPORT_PATH_SIZE + 16];

	snprintf(path, sizeof(path), "%s/%s", folder, names[which]);
	unlink(path);
	str_copy(session->input, sizeof(session->input), path);
}

static void press(struct player *player, uint32_t key)
{
	struct view_session *session = &player->session;

	/* Keys that wait for a job name files by themselves. */
	if (key == 'W' && session->worker)
		return;
	if (session->prompt == VIEW_WRITE_PROMPT && (key == VIEW_KEY_ENTER || key == '\n'))
		name_file(session);
	view_session_key(session, key);
}

static void play_byte(struct player *player)
{
	const int byte = next(player);

	if (byte < 0x80)
		press(player, (uint32_t)byte);
	else if (byte < 0x80 + 0x20)
		press(player, VIEW_KEY_UP + (uint32_t)(byte - 0x80));
	else
		actions[(size_t)(byte - 0xa0) % ARRAY_LEN(actions)](player);
}

/* What is on the screen can be printed. */
static void print(const struct view_session *session)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	view_canvas_print(&session->canvas, 0, session->canvas.height, out, NULL);
	fclose(out);
	free(text);
}

static void play(struct player *player, const uint8_t *head)
{
	static const int sizes[][2] = {{80, 24},  {40, 10},   {60, 16}, {132, 43},
				       {200, 50}, {300, 100}, {20, 5},  {1, 1}};
	const int *size = sizes[head[4] % ARRAY_LEN(sizes)];
	struct view_session *session = &player->session;

	session->canvas.plain = head[2] & HEAD_PLAIN;
	session->context.follow = head[2] & HEAD_FOLLOW;
	session->context.differ = head[2] & HEAD_DIFFER;
	if (head[2] & HEAD_BACKGROUND)
		(void)view_session_background(session, -1, NULL); /* else without */
	view_session_show(session, (enum view_screen)(head[3] % VIEW_SCREENS));
	view_session_size(session, size[0], size[1], NULL);
	view_session_draw(session);
	while (player->at < player->end && !session->quit) {
		play_byte(player);
		view_session_draw(session);
	}
	print(session);
}

static void clean(void)
{
	support_tempdir_remove(folder);
}

/* Bookmarks and history as on the first day. */
static void begin(void)
{
	char state[SUPPORT_PATH_SIZE + 16];

	if (!folder[0]) {
		support_tempdir(folder);
		atexit(clean);
		view_stop_watch();
	}
	snprintf(state, sizeof(state), "%s/state", folder);
	if (access(state, F_OK) == 0)
		support_tempdir_remove(state);
	setenv("XDG_STATE_HOME", state, 1);
	view_stop_never();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct player player;
	const char *source, *target;

	if (size < HEAD)
		return 0;
	begin();
	source = view_recording(folder, data[0]);
	target = data[1] & 1 ? view_recording(folder, data[1] >> 1) : NULL;
	player.later_ns = 0;
	player.at = data + HEAD;
	player.end = data + (size < MOST_KEYS ? size : MOST_KEYS);
	if (view_session_open(&player.session, source, target, data[2] & 1, NULL) != ST_OK)
		return 0;
	play(&player, data);
	view_session_close(&player.session);
	return 0;
}
