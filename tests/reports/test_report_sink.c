/*
 * Where exports go: numbers, long pieces, compression, failures; and what interrupts them.
 */
#include "support/support.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/mem.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_walk.h"
#include "reports/report_output.h"

static char folder[] = "/tmp/test_report_sink.XXXXXX";
static char path[64], packed[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/out", folder);
	snprintf(packed, sizeof(packed), "%s/out.gz", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(packed);
	return rmdir(folder);
}

static char *written(const char *name)
{
	size_t length;
	char *text;

	assert_int_equal(fs_read(name, 1 << 24, &text, &length, NULL), ST_OK);
	return text;
}

static void test_nanoseconds_are_exact_microseconds(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{0, "0.000"},
		{1, "0.001"},
		{-1, "-0.001"},
		{999, "0.999"},
		{1000, "1.000"},
		{1001, "1.001"},
		{-1234567, "-1234.567"},
		{10099999, "10099.999"},
		{INT64_MAX, "9223372036854775.807"},
		{INT64_MIN, "-9223372036854775.808"},
	};
	struct report_sink sink;
	char *text, *at;

	(void)state;
	assert_int_equal(report_sink_open(&sink, path, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		report_sink_us(&sink, rows[i].ns);
		report_sink_text(&sink, "\n");
	}
	assert_int_equal(report_sink_close(&sink, ST_OK), ST_OK);
	text = at = written(path);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(strsep(&at, "\n"), rows[i].text);
	mem_free(text);
}

static void test_integers_are_those_of_printf(void **state)
{
	static const int64_t rows[] = {0,   7,    -7,    10,        99,        100,
				       101, 9999, 10000, INT64_MAX, INT64_MIN, -1000000007};
	char wanted[512] = "", *text;
	struct report_sink sink;

	(void)state;
	assert_int_equal(report_sink_open(&sink, path, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		report_sink_int(&sink, rows[i]);
		report_sink_text(&sink, " ");
		snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%" PRId64 " ",
			 rows[i]);
	}
	assert_int_equal(report_sink_close(&sink, ST_OK), ST_OK);
	text = written(path);
	assert_string_equal(text, wanted);
	mem_free(text);
}

/* Pieces of all lengths around the buffer's, plain and compressed. */
static void test_long_pieces_go_through_whole(void **state)
{
	const size_t size = 3 * REPORT_SINK_BYTES + 17;
	char *piece = malloc(size), *text;
	struct report_sink sink;
	gzFile file;

	(void)state;
	for (size_t i = 0; i < size; i++)
		piece[i] = (char)('a' + i * i % 23);
	for (int pack = 0; pack < 2; pack++) {
		assert_int_equal(report_sink_open(&sink, pack ? packed : path, NULL), ST_OK);
		report_sink_add(&sink, piece, 1);
		report_sink_add(&sink, piece + 1, REPORT_SINK_BYTES);
		report_sink_add(&sink, piece + 1 + REPORT_SINK_BYTES, size - 1 - REPORT_SINK_BYTES);
		assert_int_equal(report_sink_close(&sink, ST_OK), ST_OK);
	}
	text = written(path);
	assert_int_equal(strlen(text), size);
	assert_memory_equal(text, piece, size);
	file = gzopen(packed, "rb");
	assert_int_equal(gzread(file, text, (unsigned)size), size);
	assert_memory_equal(text, piece, size);
	assert_int_equal(gzclose(file), Z_OK);
	mem_free(text);
	free(piece);
}

static void test_a_failure_leaves_no_file(void **state)
{
	struct report_sink sink;

	(void)state;
	unlink(path);
	assert_int_equal(report_sink_open(&sink, path, NULL), ST_OK);
	report_sink_text(&sink, "half");
	assert_int_equal(report_sink_close(&sink, ST_INTERRUPTED), ST_INTERRUPTED);
	assert_false(fs_exists(path));
	assert_int_equal(report_sink_open(&sink, path, NULL), ST_OK);
	report_sink_fail(&sink, ST_NOMEM);
	assert_int_equal(report_sink_close(&sink, ST_OK), ST_NOMEM);
	assert_false(fs_exists(path));
}

/* nohup(1) has SIGHUP ignored, and it stays so: a command goes on when its terminal is closed. */
static void test_a_closed_terminal_interrupts_unless_that_is_ignored(void **state)
{
	struct sigaction now, outside;

	(void)state;
	for (int ignored = 0; ignored < 2; ignored++) {
		const struct sigaction action = {.sa_handler = ignored ? SIG_IGN : SIG_DFL};

		assert_int_equal(sigaction(SIGHUP, &action, &outside), 0);
		report_interrupt_install();
		assert_false(report_interrupted());
		raise(SIGHUP);
		assert_int_equal(report_interrupted(), !ignored);
		report_interrupt_remove();
		assert_int_equal(sigaction(SIGHUP, &outside, &now), 0);
		assert_true(now.sa_handler == action.sa_handler);
	}
}

/* Ids of sites may have gaps; the last one stands for those that there are not. */
static void test_every_site_is_found_by_its_id(void **state)
{
	static const int64_t ids[][5] = {
		{1, 2, 3, 4, INT64_MAX}, {2, 5, 9, 10, INT64_MAX}, {1, 2, 4, 7, INT64_MAX}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct report_site items[ARRAY_LEN(ids[i])] = {{0}};
		const struct report_sites sites = {.items = items, .count = ARRAY_LEN(items)};

		for (size_t j = 0; j < ARRAY_LEN(items); j++)
			items[j].site_id = ids[i][j];
		for (int64_t id = -1; id < 12; id++) {
			size_t wanted = 0;

			while (wanted < ARRAY_LEN(items) - 1 && items[wanted].site_id != id)
				wanted++;
			assert_int_equal(report_sites_find(&sites, id), wanted);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nanoseconds_are_exact_microseconds),
		cmocka_unit_test(test_integers_are_those_of_printf),
		cmocka_unit_test(test_long_pieces_go_through_whole),
		cmocka_unit_test(test_a_failure_leaves_no_file),
		cmocka_unit_test(test_every_site_is_found_by_its_id),
		cmocka_unit_test(test_a_closed_terminal_interrupts_unless_that_is_ignored),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
