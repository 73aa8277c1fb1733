/*
 * Recordings of each format, small and with all that it may have: every row that they become, and
 * what is counted of them. The recordings are texts in tests/golden/: import_* and trace_*.
 */
#include "support/support.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "support/prof_testing.h"
#include "support/verb_out.h"
#include "support/wire_text.h"

static char folder[SUPPORT_PATH_SIZE];

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
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

		if (column > 0 && column + length > 158) {
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
	char trace[SUPPORT_PATH_SIZE + 64], db[SUPPORT_PATH_SIZE + 64];
	struct str words = {0};
	char *said;

	snprintf(trace, sizeof(trace), "%s/%s.trace", folder, name);
	snprintf(db, sizeof(db), "%s/%s.db", folder, name);
	write_recording(name, trace);
	str_addf(&words, "import %s -o %s", trace, db);
	said = verb_out(str_peek(&words), NULL);
	/* The first line has a path and a time. */
	fprintf(out, "==== %s\n", name);
	print_rows(out, strchr(said, '\n') + 1);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		char *rows = prof_ask_all(db, tables[i].sql);

		if (rows[0]) {
			fprintf(out, "-- %s\n", tables[i].name);
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
		"trace_kineto.json",   "trace_phases.json",       "trace_viztracer.json"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		print_imported(out, names[i]);
}

static void test_every_event_of_every_format_has_its_place(void **state)
{
	(void)state;
	support_check_golden("import_formats.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_event_of_every_format_has_its_place),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
