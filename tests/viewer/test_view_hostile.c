/*
 * Databases that somebody damaged or filled with what no writer writes: every screen, in every
 * format, alone and compared, ends with an answer or an error of one line; and keys on them, too.
 *
 * IPUSCOPE_TEST_ROUNDS=n has more rounds of each kind than a run of all tests has time for. A
 * sample (support_stride()) has each look at other formats of a screen, and keys on other screens.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/mem.h"
#include "common/rng.h"
#include "support/report_sample.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_fixture_liveness.h"
#include "support/view_fixture_memory.h"
#include "support/view_rig.h"

#define ROUNDS 12
#define PAGE   16384

enum {
	SAMPLES = 4
};

struct hostile {
	char folder[SUPPORT_PATH_SIZE];
	char path[SUPPORT_PATH_SIZE + 16]; /* the damaged one */
	char whole[SAMPLES][SUPPORT_PATH_SIZE + 16];
	char *bytes[SAMPLES];
	size_t length[SAMPLES];
	int looks, opened, printed;
};

static int rounds(void)
{
	return (int)support_rounds(ROUNDS);
}

static int setup(void **state)
{
	const struct view_fixture_liveness live = {
		.steps = 40, .variables = 12, .scale = 1, .tiles = 6};
	struct hostile *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	support_tempdir(h->folder);
	setenv("XDG_STATE_HOME", h->folder, 1);
	snprintf(h->path, sizeof(h->path), "%s/damaged.db", h->folder);
	for (int i = 0; i < SAMPLES; i++)
		snprintf(h->whole[i], sizeof(h->whole[i]), "%s/%d.db", h->folder, i);
	report_sample_write(h->whole[0]);
	assert_true(view_fixture_write(h->whole[1], 4));
	assert_true(view_fixture_liveness_write(h->whole[2], &live));
	assert_true(view_fixture_memory_write(h->whole[3], VIEW_FIXTURE_FULL, 2));
	for (int i = 0; i < SAMPLES; i++)
		h->bytes[i] = support_read_file(h->whole[i], &h->length[i]);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct hostile *h = *state;

	support_tempdir_remove(h->folder);
	for (int i = 0; i < SAMPLES; i++)
		free(h->bytes[i]);
	free(h);
	return 0;
}

/* ---- looking at it --------------------------------------------------------------------------- */

static void assert_one_line(const struct err *err)
{
	assert_true(err->text[0] != '\0');
	if (strchr(err->text, '\n'))
		fail_msg("more than a line: %s", err->text);
}

/* One screen in one format, as ipu-view --view X --csv. */
static void print_screen(struct hostile *h, struct view_session *session, int screen, int format)
{
	static const enum report_format formats[] = {REPORT_AS_TEXT, REPORT_AS_CSV, REPORT_AS_JSON};
	FILE *out = fopen("/dev/null", "w");
	struct err err = {0};
	enum status status;

	assert_non_null(out);
	if (format < (int)ARRAY_LEN(formats))
		status = view_session_print(session, (enum view_screen)screen, formats[format], 100,
					    out, &err);
	else
		status = view_session_print_svg(session, (enum view_screen)screen, 100, out, &err);
	fclose(out);
	if (status != ST_OK)
		assert_one_line(&err);
	h->printed += status == ST_OK;
}

/* On every @stride-th screen from @first on. */
static void press_keys(struct view_session *session, int first, int stride)
{
	static const char keys[] = "jjlGv>I\rbsit+ewxo\x1bym\r\x1b/e\rnW\x1b.]}Vk";

	session->context.whole = false;
	session->canvas.plain = false;
	if (view_session_size(session, 80, 24, NULL) != ST_OK)
		return;
	for (int screen = first; screen < VIEW_SCREENS; screen += stride) {
		view_session_show(session, (enum view_screen)screen);
		session->stale = true;
		view_session_draw(session);
		for (const char *key = keys; *key && !session->quit; key++) {
			view_session_key(session, (unsigned char)*key);
			view_session_draw(session);
		}
		view_session_key(session, VIEW_KEY_ESCAPE);
		view_session_key(session, VIEW_KEY_ESCAPE);
	}
}

static void look_at(struct hostile *h, const char *path, const char *target)
{
	const int stride = (int)support_stride();
	struct view_session session;
	struct err err = {0};

	if (view_session_open(&session, path, target, false, &err) != ST_OK) {
		assert_one_line(&err);
		return;
	}
	h->opened++;
	for (int screen = 0; screen < VIEW_SCREENS; screen++)
		for (int format = (screen + h->looks) % stride; format < 4; format += stride)
			print_screen(h, &session, screen, format);
	press_keys(&session, h->looks++ % stride, stride);
	view_session_close(&session);
}

static void look(struct hostile *h, int round)
{
	const int which = round % SAMPLES;

	look_at(h, h->path, NULL);
	if (round % 3 == 0)
		look_at(h, h->path, h->whole[which]);
	else if (round % 3 == 1)
		look_at(h, h->whole[which], h->path);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void test_flipped_bytes_are_survived(void **state)
{
	struct hostile *h = *state;

	h->opened = h->printed = 0;
	for (int round = 0; round < rounds(); round++) {
		const int which = round % SAMPLES;
		const uint32_t size = (uint32_t)h->length[which];
		char *bytes = mem_alloc(size);
		struct rng rng;

		assert_non_null(bytes);
		memcpy(bytes, h->bytes[which], size);
		rng_init(&rng, 11, 1, (uint32_t)round, 0);
		for (int i = 0; i < 1 + (int)rng_below(&rng, 40); i++) {
			const uint32_t at = round % 10 == 9 ? rng_below(&rng, PAGE)
							    : PAGE + rng_below(&rng, size - PAGE);

			bytes[at] = (char)rng_u32(&rng);
		}
		support_write_file(h->path, bytes, size);
		mem_free(bytes);
		look(h, round);
	}
	assert_true(h->opened > rounds() / 3);
	assert_true(h->printed > rounds());
}

static void test_torn_files_are_survived(void **state)
{
	struct hostile *h = *state;

	for (int round = 0; round < rounds(); round++) {
		const int which = round % SAMPLES;
		const size_t whole = h->length[which];

		support_write_file(h->path, h->bytes[which],
				   whole * (size_t)round / (size_t)rounds());
		look(h, round);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void run_sql(sqlite3 *db, const char *sql)
{
	char *text = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK && getenv("IPUSCOPE_TEST_TELL"))
		printf("%s: %s\n", sql, text);
	sqlite3_free(text); /* uniqueness may refuse it */
}

/* Some rows of one column in four become what no writer writes. */
static void damage_column(sqlite3 *db, const char *table, const char *column, struct rng *rng)
{
	static const char *const values[] = {
		"9223372036854775807",
		"-9223372036854775807 - 1",
		"-9223372036854775807",
		"-1",
		"0",
		"4611686018427387904",
		"2147483648",
		"9e999",
		"-9e999",
		"1e300",
		"NULL",
		"'x'",
		"x'00ff'",
		"cast(x'1b5b324a1b5d30073bc38028e280ae410a0d09' AS TEXT)",
		"'a' || char(0x202e) || 'b' || char(0x1f600) || char(0x0301) || '&<>\"'",
		"printf('%.*c', 20000, 'w')",
		"rowid",
		"-rowid",
	};
	const char *value = values[rng_below(rng, ARRAY_LEN(values))];
	const int every = 1 + (int)rng_below(rng, 3);
	char *sql;

	if (rng_below(rng, 4) != 0)
		return;
	sql = sqlite3_mprintf(
		"UPDATE OR IGNORE \"%w\" SET \"%w\" = %s %s %d", table, column, value,
		every > 1 ? "WHERE rowid % 3 <" : "WHERE 1 =", every > 1 ? every - 1 : 1);
	run_sql(db, sql);
	sqlite3_free(sql);
}

static void damage_rows(const char *path, uint32_t round)
{
	static const char columns[] =
		"SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c "
		"WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY 1, 2";
	sqlite3_stmt *query;
	struct rng rng;
	sqlite3 *db;

	rng_init(&rng, 13, 1, round, 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, columns, -1, &query, NULL), SQLITE_OK);
	run_sql(db, "BEGIN");
	while (sqlite3_step(query) == SQLITE_ROW)
		if (strcmp((const char *)sqlite3_column_text(query, 0), "meta_facts") != 0 ||
		    strcmp((const char *)sqlite3_column_text(query, 1), "value") == 0)
			damage_column(db, (const char *)sqlite3_column_text(query, 0),
				      (const char *)sqlite3_column_text(query, 1), &rng);
	sqlite3_finalize(query);
	run_sql(db, "COMMIT");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_absurd_rows_are_survived(void **state)
{
	struct hostile *h = *state;

	h->opened = h->printed = 0;
	for (int round = 0; round < 2 * rounds(); round++) {
		const int which = round % SAMPLES;

		support_write_file(h->path, h->bytes[which], h->length[which]);
		damage_rows(h->path, (uint32_t)round);
		look(h, round);
	}
	assert_true(h->opened > rounds());
	assert_true(h->printed > rounds());
}

/* All names at once: they are drawn, cut, quoted, searched for and gone to. */
static void test_absurd_names_are_survived(void **state)
{
	static const char *const names[] = {
		"printf('%.*c', 20000, 'w') || rowid",
		"cast(x'1b5b324a1b5d30073bc38028e280ae410a0d09' AS TEXT) || rowid",
		"char(0x202e) || 'gnp' || char(0x301) || char(0x1f600) || '&<>\"''\\' || rowid",
		"''",
	};
	struct hostile *h = *state;

	/* Names and samples have no factor in common with the stride. */
	for (size_t i = 0; i < ARRAY_LEN(names) * SAMPLES; i += support_stride()) {
		const size_t which = i % SAMPLES;
		sqlite3 *db;
		char *sql;

		support_write_file(h->path, h->bytes[which], h->length[which]);
		assert_int_equal(sqlite3_open(h->path, &db), SQLITE_OK);
		sql = sqlite3_mprintf("UPDATE OR IGNORE strings SET value = %s",
				      names[i / SAMPLES]);
		run_sql(db, sql);
		sqlite3_free(sql);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
		look(h, (int)i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flipped_bytes_are_survived),
		cmocka_unit_test(test_torn_files_are_survived),
		cmocka_unit_test(test_absurd_rows_are_survived),
		cmocka_unit_test(test_absurd_names_are_survived),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
