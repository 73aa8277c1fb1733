/*
 * Names and long texts: what a program gives takes a stated amount of memory, and the file says
 * what was cut.
 */
#include "support/prof_testing.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_internal.h"

/* Sets @out, of @size, to a text of size - 1 bytes: @first, then characters of three bytes, and
 * what is left over in letters. */
static void long_name(char *out, size_t size, const char *first)
{
	size_t at = (size_t)snprintf(out, size, "%s", first);

	for (; at + 3 < size; at += 3)
		memcpy(out + at, "\xe2\x82\xac", 3);
	memset(out + at, 'x', size - 1 - at);
	out[size - 1] = 0;
}

static void test_whole_characters_are_kept(void **state)
{
	static const char *const last[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	static char text[IPS_NAME_MOST + 8];

	(void)state;
	assert_int_equal(prof_name_length(NULL), 0);
	assert_int_equal(prof_name_length(""), 0);
	for (size_t i = 0; i < ARRAY_LEN(last); i++) {
		const size_t bytes = strlen(last[i]);

		/* The character ends 1 to 3 bytes before the limit, at it, or behind it. */
		for (size_t at = IPS_NAME_MOST - bytes - 3; at < IPS_NAME_MOST; at++) {
			const bool fits = at + bytes <= IPS_NAME_MOST;

			memset(text, 'a', at);
			strcpy(text + at, last[i]);
			assert_int_equal(prof_name_length(text), fits ? at + bytes : at);
			strcat(text, "zzz");
			assert_int_equal(prof_name_length(text),
					 !fits ? at : min(at + bytes + 3, (size_t)IPS_NAME_MOST));
		}
	}
	/* Bytes that are no UTF-8 are cut anywhere. */
	memset(text, 0x80, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(prof_name_length(text), IPS_NAME_MOST);
	assert_true(prof_name_is("ab", "abc", 2));
	assert_false(prof_name_is("ab", "abc", 3));
	assert_false(prof_name_is("abc", "abd", 2));
}

static void test_a_long_name_is_cut_wherever_it_comes_from(void **state)
{
	static char name[100000], other[100000], in_static[20000];
	struct prof_place *place = *state;
	const uint64_t before = prof_names_lost();
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track_params params = {.parent = name, .ipu = IPS_NULL};
	struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, name, 1.0};
	const struct ips_tensor tensor = {.queue = "q", .key = name, .stage = IPS_NULL},
				same = {.queue = "q", .key = other, .stage = IPS_NULL};
	struct ips_site own = {"c", in_static, NULL, NULL, 0, 0};
	struct ips_track *track, *thread;
	struct ips_site *site;
	int64_t id;

	long_name(name, sizeof(name), "");
	long_name(other, sizeof(other), "");
	strcpy(other + sizeof(other) - 5, "else");
	long_name(in_static, sizeof(in_static), "own ");
	/* Names that are the same as far as they are kept are the same. */
	site = ips_site_intern("c", name, other);
	assert_ptr_equal(ips_site_intern("c", other, name), site);
	assert_ptr_not_equal(ips_site_intern("c", name, NULL), site);
	track = ips_track_open(recording, name, NULL);
	assert_non_null(ips_track_open(recording, other, &params));
	thread = ips_thread_track(recording, in_static);
	assert_ptr_equal(ips_thread_track(recording, in_static), thread);
	ips_span_begin(track, site);
	ips_span_arg_int(track, in_static, 7);
	ips_span_end(track);
	ips_instant(track, &own);
	ips_append_metric(recording, &row);
	row.name = other;
	ips_append_metric(recording, &row);
	id = ips_tensor_add(recording, &tensor);
	assert_int_equal(ips_tensor_add(recording, &same), id);
	prof_stop(recording);
	/* 16383 = 3 * 5461; "own " leaves 16380 for 5460 characters of three bytes */
	assert_answer(place->path,
		      "SELECT DISTINCT length(CAST(name AS BLOB)), length(CAST(operation AS "
		      "BLOB)) FROM spans",
		      "16383|16383\n");
	assert_answer(place->path, "SELECT length(CAST(name AS BLOB)) FROM instants", "16384\n");
	assert_answer(place->path,
		      "SELECT length(CAST(track AS BLOB)), length(CAST(parent AS BLOB)) FROM "
		      "tracks ORDER BY 1, 2",
		      "16383|-\n16384|-\n16387|16383\n");
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM tracks t JOIN tracks p ON "
					       "p.track = t.parent"),
			 1);
	assert_answer(place->path, "SELECT count(*), count(DISTINCT name) FROM metrics", "2|1\n");
	assert_answer(place->path, "SELECT count(*), max(length(CAST(key AS BLOB))) FROM tensors",
		      "1|16383\n");
	/* Two of each site; track and name of three tracks and a parent; the key of the tensor, and
	 * of the file's texts that of the argument, which is the instant's name. */
	assert_int_equal(prof_names_lost() - before, 2 + 1 + 7 + 1 + 1);
	assert_int_equal(prof_ask(place->path,
				  "SELECT CAST(value AS INTEGER) FROM meta WHERE key = "
				  "'names_cut'"),
			 prof_names_lost());
	prof_check_file(place->path);
}

/* In a process of its own, whose call sites are full afterwards. */
static void record_more_than_fits(const struct prof_place *place)
{
	static char name[IPS_NAME_MOST + 1];
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	const int fit = (int)(IPS_NAMES_MOST / (IPS_NAME_MOST + PROF_NAME_COST));

	for (int i = 0; i < fit + 10; i++) {
		char first[16];

		snprintf(first, sizeof(first), "%08d", i);
		long_name(name, sizeof(name), first);
		ips_instant(track, ips_site_intern("", name, NULL));
		if (i % 500 == 0)
			ips_recording_flush(recording); /* the ring drops none */
	}
	prof_stop(recording);
}

static void test_call_sites_take_a_stated_amount_of_memory(void **state)
{
	struct prof_place *place = *state;
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		record_more_than_fits(place);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* 4079 fit; the file has a few short ones beside them. */
	assert_answer(place->path,
		      "SELECT count(*), count(DISTINCT name), sum(name = '(more names)') >= 10, "
		      "sum(name = '(more names)') < 20 FROM instants",
		      "4090|4078|1|1\n");
	assert_int_equal(prof_ask(place->path,
				  "SELECT sum(length(CAST(value AS BLOB))) <= 67108864 "
				  "FROM strings"),
			 1);
	/* The child's count goes on from this process's. */
	assert_int_equal(prof_ask(place->path, "SELECT CAST(value AS INTEGER) - (SELECT sum(name = "
					       "'(more names)') FROM instants) FROM meta WHERE "
					       "key = 'names_cut'"),
			 prof_names_lost());
}

static void test_names_of_a_recording_take_a_stated_amount_of_memory(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "known", 1.0};
	struct ips_tensor tensor = {.queue = "q", .key = "known", .stage = IPS_NULL};
	const uint64_t before = prof_names_lost();
	int64_t known, more;

	known = ips_tensor_add(recording, &tensor);
	ips_append_metric(recording, &row);
	assert_non_null(ips_track_open(recording, "known", NULL));
	ips_recording_flush(recording);
	recording->lane_bytes = IPS_NAMES_MOST - 2 * strlen("fits") - PROF_NAME_COST;
	recording->tensor_names.bytes = recording->writer.texts.bytes = IPS_NAMES_MOST;
	/* A track needs the room of its name twice: it has the same one to be shown. */
	assert_null(ips_track_open(recording, "fits?", NULL));
	assert_non_null(ips_track_open(recording, "fits", NULL));
	assert_null(ips_track_open(recording, "", NULL));
	assert_int_equal(ips_tensor_add(recording, &tensor), known);
	tensor.key = "other";
	more = ips_tensor_add(recording, &tensor);
	assert_true(more != IPS_NULL && more != known);
	tensor.key = "another";
	assert_int_equal(ips_tensor_add(recording, &tensor), more);
	ips_append_metric(recording, &row);
	row.name = "new";
	ips_append_metric(recording, &row);
	prof_stop(recording);
	assert_answer(place->path, "SELECT name, count(*) FROM metrics GROUP BY 1",
		      "(more names)|1\nknown|2\n");
	assert_answer(place->path, "SELECT key FROM tensors ORDER BY 1", "(more names)\nknown\n");
	assert_answer(place->path, "SELECT value FROM meta WHERE key = 'tracks_refused'", "2\n");
	/* Two tensors and a metric; and the file's texts have no room for the new track's name. */
	assert_int_equal(prof_names_lost() - before, 2 + 1 + 1);
	prof_check_file(place->path);
}

/* ---- long texts ------------------------------------------------------------------------------ */

#define TEXTS      1000
#define TEXT_BYTES 10000
#define QUEUE      65536

static void count_commits(void *user, const struct ips_commit *commit)
{
	(void)commit;
	++*(int *)user;
}

static void test_long_texts_wait_for_those_before(void **state)
{
	static char text[TEXT_BYTES + 1];
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *track;
	int commits = 0;
	IPS_SITE(a, "c", "a");

	ips_recording_params_defaults(&params);
	params.row_queue_bytes = QUEUE;
	params.commit_ms = 1000000; /* what is committed was asked for */
	params.on_commit = count_commits;
	params.user = &commits;
	recording = prof_start(place, &params);
	track = ips_track_open_foreign(recording, "worker", NULL, 1, 1);
	memset(text, 't', TEXT_BYTES);
	for (int i = 0; i < TEXTS; i++) {
		ips_span_at(track, &a, i, 1);
		ips_span_arg_long_text(track, "text", text);
		assert_true(recording->text_bytes <= QUEUE);
	}
	/* One that is longer than all may be goes its way, after those before. */
	ips_span_at(track, &a, TEXTS, 1);
	memset(text, 'u', TEXT_BYTES);
	ips_span_arg_long_text(track, "text", text);
	prof_stop(recording);
	assert_answer(
		place->path,
		"SELECT value = printf('%.*c', 10000, 't'), count(*) FROM span_args GROUP BY 1",
		"0|1\n1|1000\n");
	/* Six texts at a time. */
	assert_in_range(commits, TEXTS / 6, TEXTS / 6 + 10);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_characters_are_kept),
		CASE(test_a_long_name_is_cut_wherever_it_comes_from),
		CASE(test_call_sites_take_a_stated_amount_of_memory),
		CASE(test_names_of_a_recording_take_a_stated_amount_of_memory),
		CASE(test_long_texts_wait_for_those_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
