/*
 * Screens are those of before: as text at four sizes, each on the recording that has most to show
 * there (view_screens_*.txt), and in every cell, its style too, along walks of many keys
 * (view_walks.txt). The files of tests/golden/ say which; UPDATE_GOLDEN=1 writes afresh what is
 * below each of their headings.
 *
 * view_commands.txt has lines of commands, each with its exit code, what it says of errors, and a
 * digest of what it prints. Walks have digests, too: they say that a screen has changed, and not
 * what in it. With IPUSCOPE_TEST_SCREENS=FILE all screens are written there, so that those of two
 * builds can be compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "support/prof_testing.h"
#include "support/report_sample.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_fixture_counters.h"
#include "support/view_fixture_device.h"
#include "support/view_fixture_gpu.h"
#include "support/view_fixture_liveness.h"
#include "support/view_fixture_memory.h"
#include "support/view_fixture_metrics.h"
#include "support/view_fixture_model.h"
#include "support/view_fixture_ranks.h"
#include "support/view_fixture_runs.h"
#include "support/view_fixture_sequence.h"
#include "support/view_fixture_tensors.h"
#include "support/view_rig.h"
#include "viewer/view_command.h"

#define WALK_SIZE 512 /* bytes of a walk's heading */
#define A_LINE    11  /* digests */

/* ---- recordings ------------------------------------------------------------------------------ */

static bool make_run(const char *path, bool other)
{
	return view_fixture_write(path, other ? 3 : 0);
}

static bool make_sample(const char *path, bool other)
{
	if (other)
		report_sample_write_killed(path);
	else
		report_sample_write(path);
	return true;
}

static bool make_model(const char *path, bool other)
{
	return view_fixture_model_write(path, other);
}

static bool make_programs(const char *path, bool other)
{
	return view_fixture_programs_write(path, 4, other ? 3 : 5);
}

/* The other one's numbers are longer. */
static bool make_memory(const char *path, bool other)
{
	const bool made =
		view_fixture_memory_write(path, other ? VIEW_FIXTURE_FITS : VIEW_FIXTURE_FULL, 2);

	if (made && other)
		prof_change(path, "UPDATE tile_memory_rows SET bytes = bytes * 3000000 + tile, "
				  "capacity = capacity * 3000000");
	return made;
}

static bool make_liveness(const char *path, bool other)
{
	const struct view_fixture_liveness params = {.steps = 60,
						     .variables = 40,
						     .scale = other ? 3000000 : 1,
						     .tiles = 8,
						     .less = other};

	return view_fixture_liveness_write(path, &params);
}

static bool make_metrics(const char *path, bool other)
{
	const struct view_fixture_metrics params = {
		.epochs = 3, .steps = 40, .factor = other ? 2.0 : 2.5, .nan_every = other ? 7 : 0};

	return view_fixture_metrics_write(path, &params);
}

static bool make_device(const char *path, bool other)
{
	(void)other;
	return view_fixture_device_write(path);
}

static bool make_ranks(const char *path, bool other)
{
	const struct view_fixture_ranks params = {
		.ranks = 4 - other, .updates = 60, .buckets = 2, .plain = other};

	return view_fixture_ranks_write(path, &params);
}

static bool make_tensors(const char *path, bool other)
{
	const struct view_fixture_tensors params = {.steps = other ? 40 : 60,
						    .hits = 30,
						    .scale = other ? 1.5 : 1,
						    .replicas = other ? 2 : 0,
						    .more = other};

	return view_fixture_tensors_write(path, &params);
}

static bool make_gpu(const char *path, bool other)
{
	return view_fixture_gpu_write(path, &other);
}

static bool make_counters(const char *path, bool other)
{
	return view_fixture_counters_write(path, 600, other ? 30 : 12);
}

static bool make_runs(const char *path, bool other)
{
	static const struct view_runs_execution plan[] = {{true, true, 3, 6},
							  {false, true, 1, 6},
							  {true, false, 3, 6},
							  {true, true, 2, 9},
							  {false, false, 1, 4}};

	return other ? view_fixture_runs_write(path, plan, 2)
		     : view_fixture_runs_engine_write(path, plan, ARRAY_LEN(plan));
}

static const struct {
	const char *name;
	bool (*make)(const char *path, bool other);
} recordings[] = {
	{"run", make_run},         {"sample", make_sample},
	{"model", make_model},     {"programs", make_programs},
	{"memory", make_memory},   {"liveness", make_liveness},
	{"metrics", make_metrics}, {"device", make_device},
	{"ranks", make_ranks},     {"tensors", make_tensors},
	{"gpu", make_gpu},         {"counters", make_counters},
	{"runs", make_runs},       {"sequence", view_fixture_sequence_write},
};

/* What no two recordings have in common is the same in these. */
static const char steady[] =
	"UPDATE meta_facts SET value = 'steady' WHERE key IN ('host', "
	"'sqlite_version');"
	"UPDATE meta_facts SET value = 7 WHERE key IN ('pid', 'process_start', "
	"'ticks_per_second', 'start_epoch_ns');"
	"UPDATE track_rows SET pid = 7, tid = 7 WHERE pid IS NOT NULL;"
	"DELETE FROM overhead_rows WHERE row_id > 1;"
	"UPDATE overhead_rows SET time_ns = 200000000, record_ns_estimate = 0, write_ns = 0, "
	"lag_ns = 0;"
	"UPDATE overhead_sum_rows SET commits = 1, time_ns = 200000000, record_ns_estimate = 0, "
	"write_ns = 0;";

struct walks {
	const char *folder;
	bool made[2 * ARRAY_LEN(recordings)];
	char name[WALK_SIZE]; /* of the walk: its heading */
	FILE *screens;        /* NULL: not asked for */
	struct view_rig rig;
};

/* Print functions of goldens have no argument. */
static struct walks *walks_now;
static const char *golden_now;

/* The path of a recording, from the folder that the test runs in; made when first asked for. */
static const char *recording(struct walks *walks, const char *name, bool other)
{
	static char path[64];
	size_t i = 0;

	while (i < ARRAY_LEN(recordings) && strcmp(recordings[i].name, name) != 0)
		i++;
	if (i == ARRAY_LEN(recordings))
		fail_msg("there is no recording \"%s\"", name);
	snprintf(path, sizeof(path), "%s%s.db", name, other ? "-other" : "");
	if (!walks->made[2 * i + other]) {
		walks->made[2 * i + other] = true;
		assert_true(recordings[i].make(path, other));
		prof_change(path, steady);
	}
	return path;
}

/* ---- digests --------------------------------------------------------------------------------- */

/* Is the same each time: has neither the file's size, which is SQLite's, nor how long a query
 * took. */
static bool line_is_steady(const char *line)
{
	return !strstr(line, "  database  ") && !strstr(line, " row in ") &&
	       !strstr(line, " rows in ");
}

/* Spans are numbered in their order in the file, which threads decide: no digit of that stays.
 * Returns whether there was one. */
static bool forget_span(char *line)
{
	char *at = strstr(line, " span  "), *end = line + strlen(line);

	if (!at)
		return false;
	at += strspn(at + 5, " ") + 5;
	if (*at < '0' || *at > '9')
		return false;
	for (*at++ = '~'; *at >= '0' && *at <= '9'; at++)
		*at = ' ';
	while (end[-1] == ' ')
		*--end = '\0';
	return true;
}

/* Of a screen's characters and styles. */
static uint32_t digest_of_screen(const struct view_session *session)
{
	const struct view_canvas *canvas = &session->canvas;
	char *text = view_rig_text(session), *rest = text, *line;
	uint64_t digest = SUPPORT_DIGEST;
	bool span;

	for (int y = 0; (line = strsep(&rest, "\n")) && y < canvas->height; y++) {
		const struct view_cell *row = canvas->cells + (size_t)y * (size_t)canvas->width;

		if (!line_is_steady(line))
			continue;
		span = forget_span(line);
		digest = support_digest(digest, line, strlen(line) + 1);
		for (int x = 0; x < canvas->width && !span; x++)
			digest = support_digest(digest, &row[x].style, sizeof(row[x].style));
	}
	free(text);
	return (uint32_t)digest;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The key that is called @name: of one letter, or as `?` calls it. */
static uint32_t key_called(const char *name)
{
	char known[VIEW_KEY_NAME_SIZE];

	for (int r = VIEW_NONE + 1; r < VIEW_REQUESTS && name[1]; r++)
		for (int i = 0; i < VIEW_KEYS_EACH; i++) {
			const uint32_t key = view_request_info((enum view_request)r)->keys[i];

			if (key && strcmp(view_key_name(key, known), name) == 0)
				return key;
		}
	if (name[1])
		fail_msg("no key is called \"%s\"", name);
	return (unsigned char)name[0];
}

/* A key, <its name>, <WIDTHxHEIGHT>, or <X,Y> for a click. */
static void step(struct view_rig *rig, const char *name)
{
	int x, y;

	if (sscanf(name, "%dx%d", &x, &y) == 2) {
		view_rig_size(rig, x, y);
	} else if (sscanf(name, "%d,%d", &x, &y) == 2) {
		view_session_click(&rig->session, x, y);
		view_session_release(&rig->session, x, y);
		view_session_draw(&rig->session);
	} else {
		view_rig_key(rig, key_called(name));
	}
}

/* The name of the step at @keys, without <>; returns what follows. */
static const char *next_step(const char *keys, char name[32])
{
	const char *end = keys[0] == '<' && keys[1] ? strchr(keys + 2, '>') : NULL;
	const size_t length = end ? (size_t)(end - keys) - 1 : 1;

	assert_true(length < 32);
	snprintf(name, 32, "%.*s", (int)length, end ? keys + 1 : keys);
	return end ? end + 1 : keys + 1;
}

/* A session on the recording @name, and with + in @look on another beside it. More looks: a of
 * ASCII, c of 256 colours, p of plain text, l of a run that goes on. */
static void start(struct walks *walks, const char *name, const char *look, int width, int height)
{
	struct view_session *session = &walks->rig.session;
	char path[64];

	snprintf(path, sizeof(path), "%s", recording(walks, name, false));
	assert_int_equal(view_session_open(session, path,
					   strchr(look, '+') ? recording(walks, name, true) : NULL,
					   strchr(look, 'a') != NULL, NULL),
			 ST_OK);
	session->canvas.plain = strchr(look, 'p') != NULL;
	session->canvas.colours = strchr(look, 'c') ? 256 : 0;
	if (strchr(look, 'l'))
		session->source.state = VIEW_RECORDING;
	/* Not drawn before the first key: the Summary would be read for nothing. */
	assert_int_equal(view_session_size(session, width, height, NULL), ST_OK);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static void add(struct walks *walks, FILE *out, int *count, uint32_t digest, const char *text)
{
	fprintf(out, "%s%08x", *count % A_LINE ? " " : *count ? "\n\t" : "\t", digest);
	(*count)++;
	if (walks->screens)
		fprintf(walks->screens, "==== %s, step %d\n%s\n", walks->name, *count, text);
}

/* The screen in a format that files and the batch mode have; false: @name is none. */
static bool add_print(struct walks *walks, FILE *out, int *count, const char *name)
{
	static const char *const formats[] = {"text", "csv", "json", "svg"};
	static struct view_session session;
	const struct view_session *shown = &walks->rig.session;
	int format = ARRAY_LEN(formats) - 1;
	struct err err = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *to;

	while (format >= 0 && strcmp(formats[format], name) != 0)
		format--;
	if (format < 0)
		return false;
	to = open_memstream(&text, &size);
	assert_int_equal(view_session_open(&session, shown->source.path,
					   shown->context.target ? shown->target.path : NULL,
					   shown->canvas.ascii, NULL),
			 ST_OK);
	if (strcmp(name, "svg") == 0)
		view_session_print_svg(&session, shown->screen, shown->canvas.width, to, &err);
	else
		view_session_print(&session, shown->screen, (enum report_format)format,
				   shown->canvas.width, to, &err);
	fputs(err.text, to);
	fclose(to);
	view_session_close(&session);
	add(walks, out, count, (uint32_t)support_digest(SUPPORT_DIGEST, text, size), text);
	free(text);
	return true;
}

static void walk(struct walks *walks, FILE *out, const char *keys)
{
	char name[32], *text;
	int count = 0;

	while (*keys) {
		keys = next_step(keys, name);
		if (add_print(walks, out, &count, name))
			continue;
		step(&walks->rig, name);
		text = walks->screens ? view_rig_text(&walks->rig.session) : NULL;
		add(walks, out, &count, digest_of_screen(&walks->rig.session), text);
		free(text);
	}
	fputc('\n', out);
}

/* "RECORDING WIDTHxHEIGHT LOOK KEYS", where LOOK - is none. */
static void print_walk(struct walks *walks, FILE *out)
{
	char name[32], look[8];
	int width, height, keys = 0;

	assert_int_equal(
		sscanf(walks->name, "%31s %dx%d %7s %n", name, &width, &height, look, &keys), 4);
	start(walks, name, look, width, height);
	walk(walks, out, walks->name + keys);
	view_rig_close(&walks->rig);
}

/* ---- screens --------------------------------------------------------------------------------- */

/* "==== KEYS on RECORDING". */
static void print_screen(struct walks *walks, FILE *out)
{
	char keys[64], name[32], key[32], *text, *rest, *line;
	int width, height;

	assert_int_equal(sscanf(golden_now, "view_screens_%dx%d", &width, &height), 2);
	assert_int_equal(sscanf(walks->name, "==== %63s on %31s", keys, name), 2);
	start(walks, name, "", width, height);
	for (const char *at = keys; *at;) {
		at = next_step(at, key);
		step(&walks->rig, key);
	}
	rest = text = view_rig_text(&walks->rig.session);
	while ((line = strsep(&rest, "\n")) && (*line || rest)) {
		forget_span(line);
		if (line_is_steady(line))
			fprintf(out, "%s\n", line);
	}
	free(text);
	view_rig_close(&walks->rig);
}

/* ---- commands -------------------------------------------------------------------------------- */

#define WORDS_MOST 16

/* Of what a command printed, which is cut into its lines; their number too. */
static uint32_t digest_of_output(struct walks *walks, char *text, int *lines)
{
	uint64_t digest = SUPPORT_DIGEST;
	char *rest = text, *line;

	if (walks->screens)
		fprintf(walks->screens, "==== %s\n%s\n", walks->name, text);
	*lines = 0;
	while ((line = strsep(&rest, "\n"))) {
		forget_span(line);
		if (line_is_steady(line))
			digest = support_digest(digest, line, strlen(line) + 1);
		*lines += rest != NULL;
	}
	return (uint32_t)digest;
}

/* The words of a line, from @words[1] on; '...' keeps blanks. Returns their number. */
static int words_of(char *line, char *words[WORDS_MOST + 1])
{
	int count = 1;

	words[0] = line;
	for (char *at = line; *at && count < WORDS_MOST; count++) {
		const bool quoted = *at == '\'';

		words[count] = at + quoted;
		at = strchrnul(at + quoted, quoted ? '\'' : ' ');
		if (*at)
			*at++ = '\0';
		at += strspn(at, " ");
	}
	words[count] = NULL;
	return count;
}

/* "RECORDING ... -- OPTIONS": the recordings are made; what is behind -- are ipu-view's words. Its
 * exit code, what it printed, and what it said of errors. */
static void print_command(struct walks *walks, FILE *out)
{
	char line[WALK_SIZE], *words[WORDS_MOST + 1], *from, *name, *printed, *said;
	struct support_caught output, errors;
	int lines, code, count;
	uint32_t digest;

	snprintf(line, sizeof(line), "%s", walks->name);
	from = strstr(line, "-- ");
	assert_non_null(from);
	*from = '\0';
	for (char *rest = line; (name = strsep(&rest, " "));)
		if (*name)
			recording(walks, name, false);
	count = words_of(from + 3, words);
	support_catch(&output, STDOUT_FILENO, -1);
	support_catch(&errors, STDERR_FILENO, -1);
	code = view_command(count, words);
	said = support_give_back(&errors);
	printed = support_give_back(&output);
	digest = digest_of_output(walks, printed, &lines);
	fprintf(out, "\t%d, %d lines, %08x\n", code, lines, digest);
	for (char *rest = said; (name = strsep(&rest, "\n")) && *name;)
		fprintf(out, "\t%s\n", name);
	free(printed);
	free(said);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* What is in a file now: all its headings, each with what is below it. */
static void print_file(FILE *out)
{
	const bool screens = strncmp(golden_now, "view_screens_", 13) == 0;
	const bool commands = strcmp(golden_now, "view_commands.txt") == 0;
	char path[SUPPORT_PATH_SIZE], *text, *rest, *line;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", support_source_dir(), golden_now);
	rest = text = support_read_file(path, NULL);
	while ((line = strsep(&rest, "\n"))) {
		if (screens ? strncmp(line, "==== ", 5) != 0 : !line[0] || line[0] == '\t')
			continue;
		assert_true(strlen(line) < WALK_SIZE);
		snprintf(walks_now->name, WALK_SIZE, "%s", line);
		fprintf(out, "%s\n", line);
		if (screens)
			print_screen(walks_now, out);
		else if (commands && line[0] != '#')
			print_command(walks_now, out);
		else if (line[0] != '#')
			print_walk(walks_now, out);
	}
	free(text);
}

static void check_file(void **state, const char *name)
{
	walks_now = *state;
	golden_now = name;
	support_check_golden(name, print_file);
}

static void test_every_cell_of_a_walk_is_as_before(void **state)
{
	check_file(state, "view_walks.txt");
}

static void test_commands_print_what_they_printed(void **state)
{
	check_file(state, "view_commands.txt");
}

static void test_screens_are_as_saved(void **state)
{
	static const char *const names[] = {"view_screens_40x12.txt", "view_screens_80x24.txt",
					    "view_screens_132x43.txt", "view_screens_200x50.txt"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_file(state, names[i]);
}

static const char settings[] =
	"{\"theme\": \"light\", \"color\": \"never\", \"ascii\": false, \"mouse\": true, "
	"\"screen\": \"tensors\", \"follow\": true}";

static int setup(void **state)
{
	struct walks *walks = calloc(1, sizeof(*walks));
	const char *screens = getenv("IPUSCOPE_TEST_SCREENS");

	assert_non_null(walks);
	walks->screens = screens ? fopen(screens, "w") : NULL;
	walks->folder = support_enter();
	setenv("XDG_STATE_HOME", walks->folder, 1);
	setenv("TZ", "UTC", 1);
	setenv("LC_ALL", "C", 1);
	setenv("XDG_CONFIG_HOME", walks->folder, 1);
	setenv("TMPDIR", walks->folder, 1); /* runs of this machine are announced there */
	unsetenv("COLORFGBG");
	unsetenv("COLUMNS");
	support_write_file("view.json", settings, sizeof(settings) - 1);
	*state = walks;
	return 0;
}

static int teardown(void **state)
{
	struct walks *walks = *state;

	if (walks->screens)
		fclose(walks->screens);
	support_leave();
	free(walks);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_screens_are_as_saved),
		cmocka_unit_test(test_every_cell_of_a_walk_is_as_before),
		cmocka_unit_test(test_commands_print_what_they_printed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
