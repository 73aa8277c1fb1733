/*
 * Keys of the viewer: every byte is a key, a click, a size, a while that passes, or a file that its
 * writer closes and gives back; drawn after each. On recordings of every kind, alone or compared.
 *
 * The first three bytes say which recordings, and how they are drawn. What the viewer writes (W,
 * bookmarks, history) goes to a folder of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "fuzz_target.h"
#include "report_sample.h"
#include "reports/import/report_import.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_fixture_device.h"
#include "support/view_fixture_liveness.h"
#include "support/view_fixture_memory.h"
#include "support/view_fixture_metrics.h"
#include "support/view_fixture_model.h"
#include "viewer/view_session.h"

#define MOST_KEYS 4096 /* of one input */
#define SECOND    UINT64_C(1000000000)

struct player {
	struct view_session session;
	const uint8_t *at, *end;
	uint64_t later_ns; /* the time that has passed by the bytes */
};

static char folder[SUPPORT_PATH_SIZE];

/* --- recordings ------------------------------------------------------------------------------- */

static void make_sample(const char *path)
{
	report_sample_write(path);
}

static void make_killed(const char *path)
{
	report_sample_write_killed(path);
}

static void make_empty(const char *path)
{
	report_sample_write_empty(path);
}

static void make_timeline(const char *path)
{
	assert_true(view_fixture_write(path, 3));
}

static void make_model(const char *path)
{
	assert_true(view_fixture_model_write(path, false));
}

static void make_other_model(const char *path)
{
	assert_true(view_fixture_model_write(path, true));
}

static void make_memory(const char *path)
{
	assert_true(view_fixture_memory_write(path, VIEW_FIXTURE_FULL, 2));
}

static void make_liveness(const char *path)
{
	const struct view_fixture_liveness params = {
		.steps = 40, .variables = 12, .scale = 1, .tiles = 6};

	assert_true(view_fixture_liveness_write(path, &params));
}

static void make_metrics(const char *path)
{
	const struct view_fixture_metrics params = {
		.epochs = 2, .steps = 30, .factor = 2, .nan_every = 7};

	assert_true(view_fixture_metrics_write(path, &params));
}

static void make_device(const char *path)
{
	assert_true(view_fixture_device_write(path));
}

static void make_programs(const char *path)
{
	assert_true(view_fixture_programs_write(path, 5, 6));
}

/* Another program's trace. */
static void make_foreign(const char *path)
{
	static const char text[] =
		"[{\"ph\":\"X\",\"ts\":1,\"dur\":50,\"pid\":1,\"tid\":1,\"name\":\"outer\"},"
		"{\"ph\":\"X\",\"ts\":5,\"dur\":20,\"pid\":1,\"tid\":1,\"name\":\"inner\","
		"\"args\":{\"layer\":\"Dense\",\"step\":-3}},"
		"{\"ph\":\"i\",\"ts\":9,\"pid\":1,\"tid\":2,\"name\":\"instant\",\"s\":\"t\"},"
		"{\"ph\":\"C\",\"ts\":3,\"pid\":1,\"name\":\"counter\",\"args\":{\"v\":2.5}}]";
	char trace[SUPPORT_PATH_SIZE + 32];
	struct report_import_params params = {.trace = trace, .output = path, .force = true};
	struct report_import_counts counts;

	snprintf(trace, sizeof(trace), "%s/trace.json", folder);
	support_write_file(trace, text, sizeof(text) - 1);
	assert_int_equal(report_import(&params, &counts, NULL), ST_OK);
}

static void (*const recordings[])(const char *) = {
	make_sample,      make_killed, make_empty,    make_foreign, make_timeline, make_model,
	make_other_model, make_memory, make_liveness, make_metrics, make_device,   make_programs};

/* Written when first asked for; then they are there. */
static const char *recording(size_t which)
{
	static char paths[ARRAY_LEN(recordings)][SUPPORT_PATH_SIZE + 32];

	which %= ARRAY_LEN(recordings);
	if (!paths[which][0]) {
		snprintf(paths[which], sizeof(paths[which]), "%s/%zu.db", folder, which);
		recordings[which](paths[which]);
	}
	return paths[which];
}

/* --- bytes ------------------------------------------------------------------------------------ */

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

/* The writer closes the file: it is let go of, and not asked for for a minute. */
static void let_go(struct player *player)
{
	struct view_source *source =
		next(player) % 2 ? &player->session.target : &player->session.source;

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

	if (player->session.prompt == VIEW_NO_PROMPT && player->session.popup.kind == VIEW_NO_POPUP)
		view_session_show(&player->session, (enum view_screen)screen);
}

static void type_character(struct player *player)
{
	const uint32_t high = (uint32_t)next(player);

	view_session_key(&player->session, high << 8 | (uint32_t)next(player));
}

static void turn_switch(struct player *player)
{
	const int which = next(player);

	player->session.canvas.ascii = which & 1;
	player->session.canvas.plain = which & 2;
	player->session.context.whole = false;
	player->session.source.state = which & 4 ? VIEW_RECORDING : player->session.source.state;
}

static void (*const actions[])(struct player *) = {resize,    click, pass_time,      let_go,
						   give_back, show,  type_character, turn_switch};

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
		actions[(size_t)byte % ARRAY_LEN(actions)](player);
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

static void play(struct player *player)
{
	view_session_size(&player->session, 80, 24, NULL);
	view_session_draw(&player->session);
	while (player->at < player->end && !player->session.quit) {
		play_byte(player);
		view_session_draw(&player->session);
	}
	print(&player->session);
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
	}
	snprintf(state, sizeof(state), "%s/state", folder);
	if (access(state, F_OK) == 0)
		support_tempdir_remove(state);
	setenv("XDG_STATE_HOME", state, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct player player;
	const char *source, *target;

	if (size < 3)
		return 0;
	begin();
	source = recording(data[0]);
	target = data[1] & 1 ? recording(data[1] >> 1) : NULL;
	player.later_ns = 0;
	player.at = data + 3;
	player.end = data + (size < MOST_KEYS ? size : MOST_KEYS);
	if (view_session_open(&player.session, source, target, data[2] & 1, NULL) != ST_OK)
		return 0;
	play(&player);
	view_session_close(&player.session);
	return 0;
}
