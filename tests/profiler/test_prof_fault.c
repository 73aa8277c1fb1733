/*
 * When things go wrong: full disks, no memory, files that exist, readers that stay.
 */
#include "support/prof_testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "profiler/prof_db.h"
#include "profiler/prof_repair.h"

#define NOBODY 65534

/* Run @body in a child; its return value is the exit code. */
static int in_child(int (*body)(const struct prof_place *), const struct prof_place *place)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(body(place));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

struct told {
	int times, status; /* atomic */
	char message[256];
};

static void hear_failure(void *user, int status, const char *message)
{
	struct told *told = user;

	snprintf(told->message, sizeof(told->message), "%s", message);
	told->status = status;
	__atomic_add_fetch(&told->times, 1, __ATOMIC_RELEASE);
}

static int fill_disk(const struct prof_place *place)
{
	struct told told = {0}, late = {0};
	struct ips_recording *recording;
	struct ips_track *track;
	char why[256];
	int status = 0;
	IPS_SITE(a, "c", "a");

	support_limit_files(4 << 20);
	if (ips_recording_open(&recording, place->path, NULL, why, sizeof(why)) != 0)
		return 2;
	track = ips_track_open(recording, "worker", NULL);
	ips_recording_on_failure(recording, hear_failure, &told);
	for (int64_t i = 0; status == 0; i++) {
		const struct ips_metric row = {IPS_TRAIN, 1, 0, i, i, "m", 1.0};

		ips_span_begin(track, &a);
		ips_span_end(track);
		if (ips_append_metric(recording, &row) != 0)
			return 10;
		status = i % 100 == 0 ? ips_recording_status(recording, why, sizeof(why)) : 0;
		/* A commit before the disk is full: a writer that is late has more than it can
		 * take. */
		if (i == 2000 && ips_recording_flush(recording) != 0)
			return 7;
	}
	if (ips_recording_status(recording, why, sizeof(why)) != status)
		return 3;
	/* The program goes on. */
	for (int i = 0; i < 200000; i++) {
		ips_span_begin(track, &a);
		ips_span_end(track);
	}
	ips_span_at(track, &a, INT64_MAX / 2, 1);
	if (ips_recording_flush(recording) != status)
		return 4;
	ips_recording_on_failure(recording, hear_failure, &late);
	if (late.times != 1 || late.status != status || strcmp(late.message, why) != 0)
		return 8;
	if (ips_recording_close(recording, why, sizeof(why)) != status || strlen(why) < 10)
		return 5;
	if (told.times != 1 || told.status != status || strcmp(told.message, late.message) != 0)
		return 9;
	return status == 21 ? 0 : 6;
}

static void test_a_full_disk_ends_recording_and_leaves_a_readable_file(void **state)
{
	struct prof_place *place = *state;
	struct prof_db *db;
	char why[256];
	struct err err;
	bool done;

	assert_int_equal(in_child(fill_disk, place), 0);
	if (prof_db_open(&db, place->path, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_int_equal(prof_db_state(db), PROF_RECORDING);
	/* The reason had room: where the rows were that were taken back. */
	assert_true(prof_db_meta(db, "failure", why, sizeof(why)));
	assert_contains(why, "File too large");
	prof_db_close(db);
	prof_check_file(place->path);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM metrics") > 1000);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM spans") > 1000);
	assert_int_equal(prof_repair(place->path, &done, NULL), ST_OK);
	prof_check_file(place->path);
}

/* The disk is full for a while, in which more is recorded than memory holds. */
static int fill_disk_for_a_while(const struct prof_place *place)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *track;
	char why[256];
	int status = 0;
	IPS_SITE(before, "c", "before");
	IPS_SITE(within, "c", "within");
	IPS_SITE(after, "c", "after");

	support_limit_files(4 << 20);
	ips_recording_params_defaults(&params);
	params.row_queue_bytes = 1 << 16;
	if (ips_recording_open(&recording, place->path, &params, why, sizeof(why)) != 0)
		return 2;
	track = ips_track_open(recording, "worker", NULL);
	while (status == 0) {
		ips_span_begin(track, &before);
		ips_span_end(track);
		status = ips_recording_status(recording, why, sizeof(why));
	}
	if (status != 21 || ips_recording_flush(recording) != 21)
		return 3;
	for (int64_t i = 0; i < 1000000; i++) {
		const struct ips_metric row = {IPS_TRAIN, 1, 0, i, i, "m", 1.0};

		ips_span_begin(track, &within);
		ips_span_end(track);
		if (ips_append_metric(recording, &row) != 0)
			return 4;
	}
	support_limit_files(-1);
	while (ips_recording_flush(recording) != 0)
		usleep(10000);
	if (ips_recording_status(recording, why, sizeof(why)) != 0)
		return 5;
	for (int i = 0; i < 100; i++) {
		ips_span_begin(track, &after);
		ips_span_end(track);
	}
	if (ips_recording_close(recording, why, sizeof(why)) != 21)
		return 6;
	return strstr(why, "no space on the disk 1 times") && !strstr(why, " 0 events") &&
			       !strstr(why, " 0 rows")
		       ? 0
		       : 7;
}

static void test_a_disk_that_is_full_for_a_while_leaves_a_gap_that_is_told(void **state)
{
	struct prof_place *place = *state;
	struct prof_db *db;
	char text[256];

	assert_int_equal(in_child(fill_disk_for_a_while, place), 0);
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_int_equal(prof_db_state(db), PROF_COMPLETE);
	assert_true(prof_db_meta(db, "gaps", text, sizeof(text)));
	assert_contains(text, "events and");
	prof_db_close(db);
	prof_check_file(place->path);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM spans WHERE name = 'before'") >
		    1000);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM spans WHERE name = 'within'") <
		    1000000);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans WHERE name = 'after'"),
			 100);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans WHERE dur_ns IS NULL"),
			 0);
}

static int open_tiny(const struct prof_place *place)
{
	struct ips_recording *recording;
	char why[256] = "";

	support_limit_files(20000);
	if (ips_recording_open(&recording, place->path, NULL, why, sizeof(why)) != 21)
		return 1;
	return !recording && why[0] != 0 && access(place->path, F_OK) != 0 ? 0 : 2;
}

/* Somebody makes space as soon as it is told that there is none. */
static void make_space(void *user, int status, const char *message)
{
	(void)message;
	*(int *)user = status;
	support_limit_files(-1);
}

static int append_metrics(struct ips_recording *recording, int64_t first, int64_t count)
{
	int failed = 0;

	for (int64_t i = first; i < first + count; i++) {
		const struct ips_metric row = {IPS_TRAIN, 1, 0, i, i, "m", 1.0};

		failed += ips_append_metric(recording, &row) != 0;
	}
	return failed;
}

/* The disk is full when the recording is closed, whose last rows are not written yet. */
static int fill_disk_at_the_end(const struct prof_place *place)
{
	struct ips_recording *recording;
	int told = 0;
	char why[256];

	if (ips_recording_open(&recording, place->path, NULL, why, sizeof(why)) != 0)
		return 2;
	ips_recording_on_failure(recording, make_space, &told);
	if (append_metrics(recording, 0, 1000) != 0 || ips_recording_flush(recording) != 0)
		return 3;
	support_limit_files(4096);
	if (append_metrics(recording, 1000, 1000) != 0)
		return 4;
	if (ips_recording_close(recording, why, sizeof(why)) != 0)
		return 5;
	return told == 21 ? 0 : 6;
}

static void test_a_close_waits_for_space(void **state)
{
	struct prof_place *place = *state;

	assert_int_equal(in_child(fill_disk_at_the_end, place), 0);
	prof_check_file(place->path);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM metrics"), 2000);
	assert_answer(place->path, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
}

static void test_a_disk_too_full_to_begin_leaves_nothing_behind(void **state)
{
	assert_int_equal(in_child(open_tiny, *state), 0);
}

static void test_an_existing_file_is_left_alone(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = (void *)place;
	char why[256], *text;

	support_write_file(place->path, "precious", 8);
	assert_int_equal(ips_recording_open(&recording, place->path, NULL, why, sizeof(why)), 2);
	assert_null(recording);
	assert_contains(why, "exists already");
	assert_contains(why, place->path);
	text = support_read_file(place->path, NULL);
	assert_string_equal(text, "precious");
	free(text);
	assert_int_equal(ips_recording_open(&recording, NULL, NULL, NULL, 0), 2);
	assert_int_equal(ips_recording_open(&recording, "", NULL, why, 4), 2);
	assert_int_equal(ips_recording_open(&recording, place->folder, NULL, why, sizeof(why)), 2);
	assert_int_not_equal(
		ips_recording_open(&recording, "/nowhere/at/all.db", NULL, why, sizeof(why)), 0);
	assert_contains(why, "/nowhere/at/all.db");
	unlink(place->path);
	assert_int_equal(ips_recording_open(&recording, place->path, NULL, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

/* A reason is written only to a message that is there, and within its size. */
static void test_a_reason_may_have_no_room(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording;
	char why[] = "mine";

	support_write_file(place->path, "precious", 8);
	assert_int_equal(ips_recording_open(&recording, place->path, NULL, NULL, 256), 2);
	assert_int_equal(ips_recording_open(&recording, place->path, NULL, why, 0), 2);
	assert_string_equal(why, "mine");
	assert_int_equal(ips_recording_open(&recording, "", NULL, why, 1), 2);
	assert_string_equal(why, "");
	assert_int_equal(ips_recording_close(NULL, NULL, 256), 0);
	assert_int_equal(ips_recording_status(NULL, NULL, 256), 0);
}

static int record_as_nobody(const struct prof_place *place)
{
	struct ips_recording *recording;
	char why[256];

	if (chmod(place->folder, 0555) != 0 || (getuid() == 0 && setuid(NOBODY) != 0))
		return 1;
	if (ips_recording_open(&recording, place->path, NULL, why, sizeof(why)) == 0)
		return 2;
	return strstr(why, place->path) && access(place->path, F_OK) != 0 ? 0 : 3;
}

static void test_a_folder_without_write_permission_is_a_clear_error(void **state)
{
	assert_int_equal(in_child(record_as_nobody, *state), 0);
}

/* ---- reading where nothing may be written ---------------------------------------------------- */

static int read_as_nobody(const struct prof_place *place)
{
	struct prof_db *db;
	struct err err;
	int64_t one;
	int code;

	if (getuid() == 0 && setuid(NOBODY) != 0)
		return 100;
	if (prof_db_open(&db, place->path, &err) != ST_OK)
		return strstr(err.text, "copy both files") ? 101 : 102;
	code = prof_db_number(db, "SELECT count(*) > -1 FROM spans", &one, NULL) == ST_OK ? (int)one
											  : 103;
	prof_db_close(db);
	return code;
}

static int record_and_die(const struct prof_place *place)
{
	struct ips_recording *recording;
	struct ips_track *track;
	IPS_SITE(a, "c", "a");

	umask(022);
	if (ips_recording_open(&recording, place->path, NULL, NULL, 0) != 0)
		return 1;
	track = ips_track_open(recording, "worker", NULL);
	ips_span_begin(track, &a);
	ips_recording_flush(recording);
	kill(getpid(), SIGKILL);
	return 2;
}

static void test_complete_and_killed_files_are_read_without_write_permission(void **state)
{
	struct prof_place *place = *state;
	struct prof_place other;
	char folder[SUPPORT_PATH_SIZE + 32];
	pid_t child;

	if (getuid() != 0)
		skip();
	prof_stop(prof_start(place, NULL));
	chmod(place->folder, 0555);
	chmod(place->path, 0444);
	assert_int_equal(in_child(read_as_nobody, place), 1);
	/* a file that says WAL, without its log */
	prof_change(place->path, "PRAGMA journal_mode = WAL");
	assert_int_equal(
		in_child(read_as_nobody, place) == 1 || in_child(read_as_nobody, place) == 101, 1);
	prof_place_make(&other);
	child = fork();
	if (child == 0)
		_exit(record_and_die(&other));
	waitpid(child, NULL, 0);
	chmod(other.folder, 0555);
	snprintf(folder, sizeof(folder), "%s-shm", other.path);
	assert_int_equal(in_child(read_as_nobody, &other), 1);
	/* without the log's index */
	unlink(folder);
	assert_int_equal(in_child(read_as_nobody, &other), 1);
	prof_place_remove(&other);
}

/* As on a file system that cannot map files: the log's index cannot be made. */
static void test_a_log_without_shared_memory_is_read_without_locks(void **state)
{
	struct prof_place *place = *state;
	char index[SUPPORT_PATH_SIZE + 32];
	struct prof_db *db, *other;
	int64_t spans;
	pid_t child = fork();

	if (child == 0)
		_exit(record_and_die(place));
	waitpid(child, NULL, 0);
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_null(prof_db_note(db));
	prof_db_close(db);
	snprintf(index, sizeof(index), "%s-shm", place->path);
	unlink(index);
	assert_int_equal(symlink("/nowhere/index", index), 0);
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_contains(prof_db_note(db), "without locks");
	assert_int_equal(prof_db_number(db, "SELECT count(*) FROM spans", &spans, NULL), ST_OK);
	assert_int_equal(spans, 1);
	assert_int_equal(prof_db_open(&other, place->path, NULL), ST_OK);
	assert_int_equal(prof_db_attach(db, other, "target", NULL), ST_OK);
	assert_int_equal(prof_db_number(db, "SELECT count(*) FROM target.spans", &spans, NULL),
			 ST_OK);
	assert_int_equal(spans, 1);
	prof_db_detach(db, "target");
	prof_db_close(other);
	prof_db_close(db);
	unlink(index);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int record_all_kinds(const char *path)
{
	struct ips_recording *recording;
	struct ips_track_params params = {"name", "parent", 0, IPS_HOST, 64};
	const struct ips_tensor tensor = {"q", "k", NULL, NULL, 1, NULL, NULL, NULL, NULL};
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "m", 1.0};
	struct ips_track *track;
	int status, append, closed;
	IPS_SITE(a, "c", "a");

	status = ips_recording_open(&recording, path, NULL, NULL, 0);
	if (status != 0) {
		assert_null(recording);
		assert_int_equal(access(path, F_OK), -1);
		return status;
	}
	track = ips_track_open(recording, "worker", &params);
	keys.step = 1;
	ips_track_set_keys(track, &keys);
	ips_span_begin(track, &a);
	ips_span_arg_int(track, "x", 1);
	ips_counter(track, &a, 1.0);
	ips_instant(track, &a);
	ips_flow_out(track, &a, 1);
	ips_flow_in(track, &a, 1);
	ips_span_end(track);
	row.step = ips_tensor_add(recording, &tensor);
	append = ips_append_metric(recording, &row);
	status = ips_recording_flush(recording);
	closed = ips_recording_close(recording, NULL, 0);
	assert_true(closed == status || status == 0);
	if (!track)
		return 1;
	return append != 0 ? append : closed != 0 ? closed : row.step == IPS_NULL ? 1 : 0;
}

static void test_without_memory_every_call_fails_cleanly(void **state)
{
	struct prof_place *place = *state;
	long n;

	/* The first ones densely: opening a recording is most of what can fail. */
	for (n = 0; n < 2000; n += n < 90 ? support_stride() : 3 * support_stride()) {
		bool failed;
		int status;

		support_fail_alloc(n);
		status = record_all_kinds(place->path);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, 0);
			break;
		}
		/* The walk may do without some of it; then all is well. */
		assert_true(status == 0 || status == 1);
		if (access(place->path, F_OK) == 0)
			assert_answer(place->path, "PRAGMA quick_check", "ok\n");
		unlink(place->path);
	}
	assert_true(n > 20 && n < 2000);
	prof_check_file(place->path);
}

static void test_reading_without_memory_fails_cleanly(void **state)
{
	struct prof_place *place = *state;
	struct prof_query *query;
	struct prof_db *db;

	prof_stop(prof_start(place, NULL));
	for (long n = 0;; n++) {
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = prof_db_open(&db, place->path, NULL);
		if (status == ST_OK) {
			status = prof_query_open(&query, db, "SELECT 1", NULL);
			if (status == ST_OK)
				prof_query_close(query);
			prof_db_close(db);
		}
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
	}
}

/* ---- readers that stay ----------------------------------------------------------------------- */

static void test_a_reader_that_stays_neither_spoils_the_file_nor_holds_the_end_up(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	struct prof_query *query;
	struct prof_db *db;
	bool row, done;
	IPS_SITE(a, "c", "a");

	for (int i = 0; i < 1000; i++) {
		ips_span_begin(track, &a);
		ips_span_end(track);
	}
	ips_recording_flush(recording);
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_true(prof_db_writer_alive(db));
	assert_int_equal(prof_repair(place->path, &done, NULL), ST_BUSY);
	/* a read transaction that is not let go */
	assert_int_equal(prof_query_open(&query, db, "SELECT * FROM spans", NULL), ST_OK);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	ips_span_begin(track, &a);
	ips_span_end(track);
	prof_stop(recording); /* comes back, though the reader is this very thread */
	for (int i = 1; i < 1000; i++) {
		assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
		assert_true(row);
	}
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_false(row); /* its snapshot */
	prof_query_close(query);
	assert_int_equal(prof_db_state(db), PROF_COMPLETE);
	assert_false(prof_db_writer_alive(db));
	prof_db_close(db);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans"), 1001);
	prof_check_file(place->path);
	assert_int_equal(prof_repair(place->path, &done, NULL), ST_OK);
	assert_answer(place->path, "PRAGMA journal_mode", "delete\n");
	prof_check_file(place->path);
}

static void test_repair_builds_the_indexes_that_a_complete_file_lacks(void **state)
{
	static const char built[] = "SELECT count(*) FROM sqlite_schema WHERE name = "
				    "'contexts_update'";
	struct prof_place *place = *state;
	bool done;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_ask(place->path, built), 0);
	/* A table large enough for an index, by its last row, left by a writer without time. */
	prof_change(place->path, "INSERT INTO contexts (context_id, rank) VALUES (1000000, 0);"
				 "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'some')");
	assert_int_equal(prof_repair(place->path, &done, NULL), ST_OK);
	assert_true(done);
	assert_int_equal(prof_ask(place->path, built), 1);
	assert_answer(place->path,
		      "SELECT key, value FROM meta WHERE key IN ('state', 'indexes', 'repaired') "
		      "ORDER BY 1",
		      "indexes|all\nstate|complete\n");
	prof_check_file(place->path);
	assert_int_equal(prof_repair(place->path, &done, NULL), ST_OK);
	assert_false(done);
}

/* A damaged file may lack what a repair reads. Of several files the reason names the one. */
static void test_repair_that_fails_names_the_file(void **state)
{
	struct prof_place *place = *state;
	char start[SUPPORT_PATH_SIZE + 32];
	struct err err;
	bool done = true;

	prof_stop(prof_start(place, NULL));
	prof_change(place->path, "DELETE FROM meta_facts WHERE key IN ('state', 'pid');"
				 "DROP TABLE launch_rows");
	snprintf(start, sizeof(start), "%s: ", place->path);
	assert_int_not_equal(prof_repair(place->path, &done, &err), ST_OK);
	assert_false(done);
	assert_contains(err.text, "launch_rows");
	assert_memory_equal(err.text, start, strlen(start));
}

/* Record two calls of the keys @first and @second, spans 1 and 2, and what key 5 launched. */
static void record_launch(const struct prof_place *place, int64_t first, int64_t second)
{
	const struct ips_call calls[] = {{.launch_key = first}, {.launch_key = second}};
	const struct ips_kernel kernel = {.device = "GPU 0", .kind = "compute", .launch_key = 5};
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);

	IPS_SITE(a, "c", "a");
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		ips_span_at(track, &a, (int64_t)(10 * i), 5);
		ips_span_row(track, IPS_TABLE_call, &calls[i]);
	}
	ips_span_at(track, &a, 20, 5);
	ips_span_row(track, IPS_TABLE_kernel, &kernel);
	prof_stop(recording);
}

/* Return the launch that a repair finds after @change. */
static int64_t launch_after(const struct prof_place *place, const char *change)
{
	char sql[256];
	bool done;

	snprintf(sql, sizeof(sql),
		 "%s; DELETE FROM launch_rows;"
		 "DELETE FROM meta_facts WHERE key IN ('state', 'pid')",
		 change);
	prof_change(place->path, sql);
	assert_int_equal(prof_repair(place->path, &done, NULL), ST_OK);
	assert_true(done);
	return prof_ask(place->path, "SELECT launch_span_id FROM launch_rows");
}

/* A damaged file may have spans of any number. The calls' keys share a place as they are linked. */
static void test_repair_ends_where_spans_have_the_farthest_numbers(void **state)
{
	static const struct {
		const char *change;
		int64_t launch;
	} cases[] = {
		{"UPDATE kernel_rows SET span_id = 0x7fffffffffffffff", 1},
		{"UPDATE kernel_rows SET span_id = 0x7fffffffffffffff - (1 << 19)", 1},
		{"UPDATE call_rows SET span_id = -0x7fffffffffffffff WHERE span_id = 1",
		 -INT64_MAX},
	};
	const struct prof_place *place = *state;

	record_launch(place, 5, 9);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(launch_after(place, cases[i].change), cases[i].launch);
}

/* The second call, a million spans after the first, is one that the kernel could be of, too. */
static void test_of_calls_with_one_key_the_first_counts_however_far_away(void **state)
{
	const struct prof_place *place = *state;

	record_launch(place, 5, 5);
	assert_int_equal(launch_after(place,
				      "UPDATE call_rows SET span_id = 1000000 WHERE span_id = 2;"
				      "UPDATE kernel_rows SET span_id = 1000001"),
			 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_full_disk_ends_recording_and_leaves_a_readable_file),
		CASE(test_a_disk_that_is_full_for_a_while_leaves_a_gap_that_is_told),
		CASE(test_a_close_waits_for_space),
		CASE(test_a_disk_too_full_to_begin_leaves_nothing_behind),
		CASE(test_an_existing_file_is_left_alone),
		CASE(test_a_reason_may_have_no_room),
		CASE(test_a_folder_without_write_permission_is_a_clear_error),
		CASE(test_complete_and_killed_files_are_read_without_write_permission),
		CASE(test_a_log_without_shared_memory_is_read_without_locks),
		CASE(test_without_memory_every_call_fails_cleanly),
		CASE(test_reading_without_memory_fails_cleanly),
		CASE(test_a_reader_that_stays_neither_spoils_the_file_nor_holds_the_end_up),
		CASE(test_repair_builds_the_indexes_that_a_complete_file_lacks),
		CASE(test_repair_that_fails_names_the_file),
		CASE(test_repair_ends_where_spans_have_the_farthest_numbers),
		CASE(test_of_calls_with_one_key_the_first_counts_however_far_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
