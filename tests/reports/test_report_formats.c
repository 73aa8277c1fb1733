/*
 * Recordings of each format, small and with all that it may have: every row that they become, and
 * what is counted of them. The recordings are texts in tests/golden/: import_* and trace_*.
 */
#include "support/support.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import.h"
#include "reports/import/report_import_internal.h"
#include "reports/import/report_import_wire.h"
#include "support/guard_alloc.h"
#include "support/prof_testing.h"
#include "support/verb_out.h"
#include "support/wire_text.h"

static int setup(void **state)
{
	(void)state;
	support_enter();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_leave();
	return 0;
}

/* What an import leaves in a file, but for what follows from it. Rows that only NULL is in are not
 * shown. */
static const struct {
	const char *name, *sql;
} tables[] = {
	{"meta", "SELECT key, value FROM meta WHERE key LIKE 'trace.%' OR key IN ('source', "
		 "'trace_events', 'trace_base_ns', 'trace_duration_ns', 'start_epoch_ns', "
		 "'trace_broken_at') ORDER BY key"},
	{"devices", "SELECT * FROM devices ORDER BY number"},
	{"tracks", "SELECT track, pid, tid, name, parent FROM tracks"},
	{"spans", "SELECT span_id, track, depth, category, name, start_ns, dur_ns, step "
		  "FROM spans ORDER BY track, start_ns, depth, span_id"},
	{"span_args", "SELECT span_id, name, quote(value) FROM span_args ORDER BY span_id, name"},
	{"instants", "SELECT track, category, name, time_ns, instant_id FROM instants "
		     "ORDER BY time_ns, track"},
	{"instant_args", "SELECT instant_id, name, quote(value) FROM instant_args "
			 "ORDER BY instant_id, name"},
	{"counters", "SELECT track, name, time_ns, value FROM counters ORDER BY time_ns, track"},
	{"flows", "SELECT * FROM flows ORDER BY from_span_id, to_span_id, name"},
	{"kernels", "SELECT span_id, launch_span_id, device, context, stream, name, kind, grid_x, "
		    "grid_y, grid_z, block_x, block_y, block_z, registers, shared_bytes, graph, "
		    "graph_node FROM kernels ORDER BY start_ns, span_id"},
	{"copies", "SELECT span_id, launch_span_id, device, context, stream, kind, bytes, source, "
		   "target, to_device FROM copies ORDER BY start_ns, span_id"},
	{"ranges", "SELECT span_id, kind, domain, name, step FROM ranges ORDER BY span_id"},
	{"memory_events", "SELECT device, time_ns, kind, bytes, address, total_bytes, "
			  "reserved_bytes FROM memory_events ORDER BY time_ns"},
};

static char *golden_text(const char *name)
{
	char path[SUPPORT_PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s/tests/golden/%s", support_source_dir(), name);
	return support_read_file(path, NULL);
}

/* The recording that tests/golden/@name is the text of. */
static void write_recording(const char *name, const char *path)
{
	char *text = golden_text(name);
	struct str bytes = {0};

	if (strstr(name, ".sql")) {
		str_addf(&bytes, "BEGIN; %s; COMMIT", text);
		support_write_file(path, "", 0);
		prof_change(path, str_peek(&bytes));
	} else if (strstr(name, ".json")) {
		support_write_file(path, text, strlen(text));
	} else if (strstr(name, ".folded")) {
		/* By these a file is known, whatever comes behind them. */
		while (bytes.length <= IMPORT_HEAD)
			str_add(&bytes, "pad;pad 1\n");
		str_add(&bytes, text);
		support_write_file(path, str_peek(&bytes), bytes.length);
	} else {
		wire_text(&bytes, text);
		support_write_file(path, str_peek(&bytes), bytes.length);
	}
	str_free(&bytes);
	free(text);
}

/* @rows with several in a line, as far as they fit. */
static void print_rows(FILE *out, const char *rows)
{
	int column = 0;

	while (*rows) {
		const int blanks = (int)strspn(rows, " ");
		const int length = (int)strcspn(rows += blanks, "\n");

		if (column > 0 && column + length > 180) {
			fprintf(out, "\n");
			column = 0;
		}
		column += fprintf(out, "%s%.*s", column > 0 ? "; " : "", length, rows);
		rows += length + 1;
	}
	fprintf(out, "\n");
}

static void print_imported(FILE *out, const char *name)
{
	char trace[64], db[64];
	struct str words = {0};
	char *said;

	snprintf(trace, sizeof(trace), "%s.trace", name);
	snprintf(db, sizeof(db), "%s.db", name);
	write_recording(name, trace);
	str_addf(&words, "import %s -o %s", trace, db);
	said = verb_out(str_peek(&words), NULL);
	/* The first line has a path and a time. */
	fprintf(out, "==== %s: ", name);
	print_rows(out, strchr(said, '\n') + 1);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		char *rows = prof_ask_all(db, tables[i].sql);

		if (rows[0]) {
			fprintf(out, "%s: ", tables[i].name);
			print_rows(out, rows);
		}
		free(rows);
	}
	free(said);
	str_free(&words);
}

static void print_all(FILE *out)
{
	static const char *const names[] = {
		"import_perfetto.txt", "import_perfetto_gpu.txt", "import_xplane.txt",
		"import_nsys.sql",     "import_rocpd.sql",        "import_rpd.sql",
		"trace_kineto.json",   "trace_phases.json",       "trace_viztracer.json",
		"trace_bounds.json",   "trace_devices.json",      "import_stacks.folded"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		print_imported(out, names[i]);
}

static void test_every_event_of_every_format_has_its_place(void **state)
{
	(void)state;
	support_check_golden("import_formats.txt", print_all);
}

/* ---- which format it is ---------------------------------------------------------------------- */

static const char *format_of(const void *head, size_t size)
{
	const struct import_format *format = report__import_format(head, size);

	return !format ? "none" : !format->source ? "sqlite" : format->source;
}

/* Heads that are alike: of each the format by every number of its first bytes. */
static const struct {
	const char *bytes;
	size_t size;
} heads[] = {
#define HEAD(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
	HEAD("SQLite format 3\0 "),
	HEAD("SQLite format 2\0 "),
	HEAD("\n\x0b\x08\x01\x12\x05/host"),
	HEAD("\n\x0b\x08\x81\x01\x12\x05/host"),
	HEAD("\n\x81\x82\x03\x12\x04 ~A~"),
	HEAD("\n\x08\x12\x04 \x7f"
	     "AB"),
	HEAD("\n\x08\x12\x04 \x1f"
	     "AB"),
	HEAD("\n\x08\x12\x00 ABC"),
	HEAD("\n\x08\x12\x80\x01"
	     "ABCD"),
	HEAD("\n\x02\x40\x05\n\x00"),
	HEAD("\n\x02\x40\x05\n\x02\x40\x85"),
	HEAD("\n\x02\x43\x05"),
	HEAD("\n\x00\x40\x05"),
	HEAD("\xef\xbb\xbf {}"),
	HEAD("\xef\xbb {}"),
	HEAD(" \t\r\n["),
	HEAD("a;b 1\nc 2"),
	HEAD("a 1\nb 2"),
	HEAD("a;b 1\nc"),
	HEAD("{;b 1"),
	HEAD("[;b 1"),
	HEAD("a;b 123456789012345678"),
	HEAD("a;b 1234567890123456789"),
	HEAD("a;b 1 \r\n\n;c 2\r\n"),
	HEAD("a;\0 1"),
	HEAD(";9"),
	HEAD("; 9"),
	HEAD("PERFILE2"),
};

static void print_formats(FILE *out)
{
	unsigned char *large, *end;

	/* Nothing may be read behind a head. */
	guard_alloc(IMPORT_HEAD);
	large = mem_alloc(IMPORT_HEAD);
	end = large + IMPORT_HEAD;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		const char *before = "none";

		fprintf(out, "%zu:", i);
		for (size_t size = 0; size <= heads[i].size; size++) {
			const char *format;

			memcpy(end - size, heads[i].bytes, size);
			format = format_of(end - size, size);
			if (strcmp(format, before) != 0)
				fprintf(out, " from %zu %s", size, format);
			before = format;
		}
		fprintf(out, "\n");
	}
	/* Packets and lines that are longer than what is looked at. */
	for (size_t i = 0; i < 6; i++) {
		static const char *const texts[] = {"\n\xff\xff\x7f\x0a", "\n\xff\xff\x7f\x0b",
						    "\n\xff\xff\x7f\x08", "a;b 1\nlong",
						    "long;long",          "\n\xff\xff\xff\xff"};

		memset(large, i == 5 ? 0xff : 'x', IMPORT_HEAD);
		memcpy(large, texts[i], strlen(texts[i]));
		fprintf(out, "%s, ", format_of(large, IMPORT_HEAD));
		memmove(large + 1, large, IMPORT_HEAD - 1);
		fprintf(out, "%s\n", format_of(large + 1, IMPORT_HEAD - 1));
	}
	mem_free(large);
	guard_alloc(0);
}

static void test_a_format_is_known_by_its_head(void **state)
{
	(void)state;
	support_check_golden("import_heads.txt", print_formats);
}

/* Names are found again by their addresses, of which some share a place. */
static void test_names_that_share_a_place_are_told_apart(void **state)
{
	enum {
		NAMES = 1200
	};
	struct str bytes = {0};

	(void)state;
	for (int i = 0; i < 2 * NAMES; i++) {
		char packet[160];

		snprintf(packet, sizeof(packet),
			 "1 { 8: %d 11 { 9: 3 11: 1 22: \"c%d\" 23: \"n%d\" 4 { 10: \"a%d\" 4: %d "
			 "} } }",
			 i + 1, i % NAMES, i % NAMES, i % NAMES, i);
		wire_text(&bytes, packet);
	}
	support_write_file("names.trace", str_peek(&bytes), bytes.length);
	free(verb_out("import names.trace -o names.db -q", NULL));
	assert_int_equal(prof_ask("names.db",
				  "SELECT count(*) FROM instants i JOIN instant_args a USING "
				  "(instant_id) WHERE i.name = printf('n%d', (i.time_ns - 1) % "
				  "1200) AND category = printf('c%d', (i.time_ns - 1) % 1200) "
				  "AND a.name = printf('a%d', (i.time_ns - 1) % 1200) AND "
				  "a.value = i.time_ns - 1"),
			 2 * NAMES);
	str_free(&bytes);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* How often it was told, its greatest, and when to end. */
struct told {
	int calls, most, end_at;
};

static enum status on_progress(void *user, int permille, uint64_t events)
{
	struct told *told = user;

	(void)events;
	told->calls++;
	told->most = permille > told->most ? permille : told->most;
	return told->calls == told->end_at ? ST_INTERRUPTED : ST_OK;
}

/* Many lines, and packets about nothing. */
static void test_progress_is_told_now_and_then_and_may_end_it(void **state)
{
	static const char *const items[] = {"a;b 1\n", "\n\2@\1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		struct told told = {.end_at = 0};
		struct report_import_params params = {.trace = "progress",
						      .output = "progress.db",
						      .force = true,
						      .progress = on_progress,
						      .user = &told,
						      .sort_bytes = 1 << 16};
		struct report_import_counts counts;
		struct err err = {0};
		struct str bytes = {0};

		for (int k = 0; k < 12288; k++)
			str_add(&bytes, items[i]);
		support_write_file("progress", str_peek(&bytes), bytes.length);
		str_free(&bytes);
		assert_int_equal(report_import(&params, &counts, &err), ST_OK);
		assert_in_range(told.calls, 3, 6);
		assert_in_range(told.most, 500, 1000);
		told = (struct told){.end_at = 2};
		remove("progress.db");
		assert_int_equal(report_import(&params, &counts, &err), ST_INTERRUPTED);
		assert_int_equal(told.calls, 2);
		assert_int_not_equal(access("progress.db", F_OK), 0);
	}
}

/* ---- the wire format ------------------------------------------------------------------------- */

/* A varint read byte by byte. */
static bool slow_varint(const unsigned char **at, const unsigned char *end, uint64_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < 10 && *at < end; i++) {
		const unsigned char byte = *(*at)++;

		*out |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte < 0x80)
			return true;
	}
	return false;
}

/* The next field, and how many bytes it has; false: there is none. */
static bool slow_field(const unsigned char *at, const unsigned char *end,
		       struct import_wire_field *out, size_t *length)
{
	const unsigned char *const begin = at;
	uint64_t key, size = 0;
	bool good = slow_varint(&at, end, &key) && key >> 3 > 0 && key < UINT64_C(1) << 32;

	memset(out, 0, sizeof(*out));
	if (!good)
		return false;
	out->number = (uint32_t)(key >> 3);
	out->type = (enum import_wire_type)(key & 7);
	if (out->type == IMPORT_WIRE_VARINT)
		good = slow_varint(&at, end, &out->value);
	else if (out->type == IMPORT_WIRE_BYTES)
		good = slow_varint(&at, end, &size);
	else if (out->type == IMPORT_WIRE_FIXED64 || out->type == IMPORT_WIRE_FIXED32)
		size = out->type == IMPORT_WIRE_FIXED64 ? 8 : 4;
	else
		good = false;
	if (!good || size > (uint64_t)(end - at))
		return false;
	for (size_t i = 0; i < size && out->type != IMPORT_WIRE_BYTES; i++)
		out->value |= (uint64_t)at[i] << 8 * i;
	if (out->type == IMPORT_WIRE_BYTES)
		out->bytes = (struct import_wire){at, at + size};
	*length = (size_t)(at - begin) + size;
	return true;
}

/* Walk @size bytes at @bytes, by both readers. */
static void check_fields(const unsigned char *bytes, size_t size)
{
	struct import_wire wire = {bytes, bytes + size};
	struct import_wire_field got = {0}, wanted;
	const unsigned char *at = bytes;
	size_t length = 0;

	while (at < bytes + size && slow_field(at, bytes + size, &wanted, &length)) {
		at += length;
		assert_true(import_wire_next(&wire, &got));
		assert_ptr_equal(wire.at, at);
		assert_int_equal(got.number, wanted.number);
		assert_int_equal(got.type, wanted.type);
		assert_int_equal(got.value, wanted.value);
		assert_ptr_equal(got.bytes.at, wanted.bytes.at);
		assert_ptr_equal(got.bytes.end, wanted.bytes.end);
	}
	assert_false(import_wire_next(&wire, &got));
	assert_int_equal(import_wire_broken(&wire), at < bytes + size);
}

/* Of bytes that are mostly fields. */
static void test_fields_end_where_their_bytes_do(void **state)
{
	static const unsigned char likely[] = {0x08, 0x09, 0x0a, 0x0d, 0x01, 0x00, 0x02,
					       0x80, 0xff, 0x7f, 0x12, 0x83, 0x0b, 0x0e};
	unsigned char *block;
	uint32_t random = 1;

	(void)state;
	guard_alloc(4096);
	block = mem_alloc(4096);
	for (size_t round = 0; round < 3000; round++) {
		const size_t size = round % 25, kinds = round % 3 ? 9 : ARRAY_LEN(likely);
		unsigned char *bytes = block + 4096 - size;

		for (size_t i = 0; i < size; i++) {
			random = random * 1664525 + 1013904223;
			bytes[i] = likely[(random >> 16) % kinds];
		}
		check_fields(bytes, size);
	}
	mem_free(block);
	guard_alloc(0);
}

#define MOST ((size_t)2 << 20)

/* Fields of so many bytes: the window has 1 MiB, and 2 MiB are read at most. */
static const size_t sizes[] = {0,        1,    1 << 19,  (1 << 20) - 7, 1 << 20,
			       MOST - 1, MOST, MOST + 1, 3 * MOST,      5};

/* All that a stream of the first @length bytes of @bytes has, and how it ends. */
static void print_stream(FILE *out, const struct str *bytes, size_t length)
{
	struct import_input input;
	struct import_stream stream = {.input = &input, .most = MOST};
	struct import_wire_field field;
	uint64_t sum = 0, fields = 0, skipped = 0;
	bool more = true;

	support_write_file("stream", str_peek(bytes), length);
	assert_int_equal(report__import_input_open(&input, "stream", NULL), ST_OK);
	while (report__import_stream_next(&stream, &more, &field, NULL) == ST_OK && more) {
		fields++;
		skipped += field.type == IMPORT_WIRE_BYTES && !field.bytes.at ? field.value : 0;
		if (field.type == IMPORT_WIRE_BYTES && field.bytes.at)
			sum += import_wire_size(&field.bytes) + *(field.bytes.end - 1);
		else
			sum += field.value;
	}
	fprintf(out, "%zu of %zu bytes: %zu fields, sum %zu, %zu bytes skipped, %zu read%s%s\n",
		length, bytes->length, (size_t)fields, (size_t)sum, (size_t)skipped,
		(size_t)(stream.offset + stream.at), stream.why ? ": " : "",
		stream.why ? stream.why : "");
	report__import_stream_fini(&stream);
	report__import_input_close(&input);
}

static void print_streams(FILE *out)
{
	struct str bytes = {0};
	char *large = malloc(3 * MOST);
	size_t cuts[ARRAY_LEN(sizes)];

	memset(large, 3, 3 * MOST);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		wire_text(&bytes, "7: 300 200: =5 11: 0.5");
		cuts[i] = bytes.length + 3;
		wire_bytes(&bytes, 1, large, sizes[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i += 2) {
		print_stream(out, &bytes, cuts[i]);
		print_stream(out, &bytes, cuts[i] - 2);
		print_stream(out, &bytes, cuts[i] - 5);
	}
	print_stream(out, &bytes, bytes.length);
	str_add_bytes(&bytes, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	print_stream(out, &bytes, bytes.length);
	bytes.length -= 11;
	str_add_bytes(&bytes, "\x0b", 1);
	print_stream(out, &bytes, bytes.length);
	free(large);
	str_free(&bytes);
}

static void test_fields_of_any_size_pass_through_the_window(void **state)
{
	(void)state;
	support_check_golden("import_stream.txt", print_streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_format_is_known_by_its_head),
		cmocka_unit_test(test_names_that_share_a_place_are_told_apart),
		cmocka_unit_test(test_progress_is_told_now_and_then_and_may_end_it),
		cmocka_unit_test(test_fields_end_where_their_bytes_do),
		cmocka_unit_test(test_fields_of_any_size_pass_through_the_window),
		cmocka_unit_test(test_every_event_of_every_format_has_its_place),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
