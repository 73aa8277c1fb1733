/*
 * kill -9 at random moments: the file opens, is whole, and holds all that a commit announced.
 *
 * IPUSCOPE_TEST_ROUNDS=n kills as often, IPUSCOPE_TEST_SEED=n at other moments.
 *
 * The child tells of each commit through a pipe, on the writer's thread, so no clock is needed to
 * know what must be there.
 */
#include "support/prof_testing.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "profiler/prof_db.h"
#include "profiler/prof_repair.h"

static unsigned seed = 1;
static int announce_to;

static void announce(void *user, const struct ips_commit *commit)
{
	(void)user;
	if (write(announce_to, commit, sizeof(*commit)) != (ssize_t)sizeof(*commit))
		_exit(2);
}

/* Record @rows rows and close the recording. */
static void record(const char *path, int64_t rows)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *one, *two;
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_stage_timing timing = {.keys = IPS_KEYS_NULL, .dur_ns = 2, .cpu_ns = IPS_NULL};
	IPS_SITE(outer, "k", "outer");
	IPS_SITE(inner, "k", "inner");

	ips_recording_params_defaults(&params);
	params.commit_ms = 4;
	params.on_commit = announce;
	if (ips_recording_open(&recording, path, &params, NULL, 0) != 0)
		_exit(3);
	one = ips_track_open(recording, "one", NULL);
	two = ips_track_open(recording, "two", NULL);
	ips_span_begin(one, &outer);
	for (int64_t i = 0; i < rows; i++) {
		const struct ips_metric row = {IPS_TRAIN, 1, 0, i, i, "loss", 0.5};

		keys.step = i;
		timing.keys.stage = i % 3;
		timing.start_ns = i;
		ips_track_set_keys(two, &keys);
		ips_span_begin(one, &inner);
		ips_span_begin(two, &outer);
		ips_span_begin(two, &inner);
		ips_span_end(two);
		ips_counter(two, &inner, (double)i);
		ips_instant(one, &inner);
		ips_span_end(two);
		ips_span_end(one);
		ips_append_metric(recording, &row);
		ips_append_stage_timing(recording, &timing);
		if (i % 64 == 0)
			usleep(50);
	}
	ips_span_end(one);
	_exit(ips_recording_close(recording, NULL, 0));
}

/* Let the child announce @wanted commits and go on for up to @most_us, then kill it; the last word
 * it gave. */
static struct ips_commit run_and_kill(const char *path, int64_t rows, unsigned wanted,
				      unsigned most_us, struct rng *rng)
{
	struct ips_commit last = {0}, next;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[0]);
		announce_to = ends[1];
		record(path, rows);
	}
	close(ends[1]);
	for (unsigned i = 0; i < wanted && read(ends[0], &next, sizeof(next)) > 0; i++)
		last = next;
	usleep(rng_below(rng, most_us));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (read(ends[0], &next, sizeof(next)) == (ssize_t)sizeof(next))
		last = next;
	close(ends[0]);
	return last;
}

static void check_announced(const char *path, const struct ips_commit *last)
{
	assert_true(prof_ask(path, "SELECT count(*) FROM spans") >= (int64_t)last->spans);
	assert_true(prof_ask(path, "SELECT count(*) FROM instants") >= (int64_t)last->instants);
	assert_true(prof_ask(path, "SELECT count(*) FROM counters") >= (int64_t)last->counters);
	assert_true(prof_ask(path, "SELECT (SELECT count(*) FROM metrics) + (SELECT count(*) FROM "
				   "stage_timings)") >= (int64_t)last->rows);
	/* Ids without holes; all of one commit or nothing of it. */
	assert_int_equal(
		prof_ask(path, "SELECT count(*) - coalesce(max(span_id), 0) FROM span_rows"), 0);
	assert_int_equal(
		prof_ask(path,
			 "SELECT coalesce(sum(last_row - first_row + 1), 0) - (SELECT count(*) "
			 "FROM span_rows) FROM zones WHERE kind = 0"),
		0);
	assert_int_equal(
		prof_ask(path, "SELECT count(*) FROM spans WHERE name IS NULL OR track IS NULL"),
		0);
	assert_int_equal(
		prof_ask(path,
			 "SELECT (SELECT coalesce(sum(count), 0) FROM span_levels WHERE level = "
			 "12) - (SELECT count(dur_ns) FROM span_rows)"),
		0);
}

/* ---- as fast as the processor goes ----------------------------------------------------------- */

#define LOG_ROWS 4096u

/* What the child has recorded, in memory that outlives it: a ring of rows. */
struct sent_log {
	uint64_t rows; /* atomic */
	struct {
		uint64_t ns, spans;
	} row[LOG_ROWS];
	/* Of the last commit; atomic. On a busy machine the rings are full at times: spans are dropped
	 * then, and counted. */
	uint64_t safe_ns, dropped;
};

static void note_commit(void *user, const struct ips_commit *commit)
{
	struct sent_log *sent = user;

	__atomic_store_n(&sent->dropped, commit->dropped, __ATOMIC_RELEASE);
	__atomic_store_n(&sent->safe_ns, commit->safe_ns, __ATOMIC_RELEASE);
}

static void record_fast(const char *path, struct sent_log *sent)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *tracks[3];
	uint64_t spans = 0;
	IPS_SITE(fast, "k", "fast");

	ips_recording_params_defaults(&params);
	params.on_commit = note_commit;
	params.user = sent;
	if (ips_recording_open(&recording, path, &params, NULL, 0) != 0)
		_exit(3);
	for (size_t i = 0; i < ARRAY_LEN(tracks); i++)
		tracks[i] = ips_track_open(recording, "fast", NULL);
	for (uint64_t row = 0;; row++) {
		for (int i = 0; i < 600; i++) {
			struct ips_track *track = tracks[i % 3];

			ips_span_begin(track, &fast);
			ips_span_end(track);
		}
		spans += 600;
		sent->row[row % LOG_ROWS].ns = ips_monotonic_ns();
		sent->row[row % LOG_ROWS].spans = spans;
		__atomic_store_n(&sent->rows, row + 1, __ATOMIC_RELEASE);
		usleep(1000);
	}
}

/* Spans that were recorded before @ns; 0: so many rows ago that they are forgotten. */
static uint64_t sent_before(const struct sent_log *sent, uint64_t ns)
{
	for (uint64_t row = sent->rows; row > 0 && row + LOG_ROWS > sent->rows + 1; row--)
		if (sent->row[(row - 1) % LOG_ROWS].ns <= ns)
			return sent->row[(row - 1) % LOG_ROWS].spans;
	return 0;
}

static void test_what_a_commit_calls_safe_is_in_the_file(void **state)
{
	struct sent_log *sent = mmap(NULL, sizeof(*sent), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const unsigned rounds = support_rounds(5);
	unsigned late = 0;
	struct rng rng;

	(void)state;
	assert_ptr_not_equal(sent, MAP_FAILED);
	rng_init(&rng, seed, 1, 0, 0);
	for (unsigned i = 0; i < rounds; i++) {
		struct prof_place place;
		uint64_t now;
		pid_t child;

		memset(sent, 0, sizeof(*sent));
		prof_place_make(&place);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			record_fast(place.path, sent);
		while (__atomic_load_n(&sent->safe_ns, __ATOMIC_ACQUIRE) == 0)
			usleep(1000);
		usleep(150000 + rng_below(&rng, 200000));
		now = ips_monotonic_ns();
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		late += now > sent->safe_ns + 100000000;
		assert_true(prof_ask(place.path, "SELECT count(*) FROM spans") +
				    (int64_t)sent->dropped >=
			    (int64_t)sent_before(sent, sent->safe_ns));
		prof_place_remove(&place);
	}
	print_message("%u of %u kills lost more than 100 ms\n", late, rounds);
	munmap(sent, sizeof(*sent));
}

/* Sums are of the same moment as the rows. */
static void check_sums(const char *path)
{
	static const char *const same[] = {
		"SELECT coalesce(sum(count), 0) FROM metric_sums",
		"SELECT count(*) FROM metrics",
		"SELECT stage, count, total_ns, last_end_ns FROM stage_sums ORDER BY stage",
		("SELECT stage, count(*), sum(dur_ns), max(start_ns + dur_ns) FROM stage_timings "
		 "GROUP BY stage ORDER BY stage"),
		"SELECT coalesce(sum(events), 0) FROM overhead_sums",
		"SELECT coalesce(sum(events), 0) FROM overhead",
	};

	for (size_t i = 0; i < ARRAY_LEN(same); i += 2) {
		char *rows = prof_ask_all(path, same[i + 1]);

		assert_answer(path, same[i], rows);
		free(rows);
	}
}

/* The state in which the kill left it: where it had announced nothing, that of none. */
static enum prof_state one_round(int64_t rows, unsigned wanted, unsigned most_us, struct rng *rng)
{
	enum prof_state state;
	struct ips_commit last;
	struct prof_place place;
	struct prof_db *db;
	struct err err;
	int64_t spans;
	bool done;

	prof_place_make(&place);
	last = run_and_kill(place.path, rows, wanted, most_us, rng);
	if (last.number == 0) {
		prof_place_remove(&place);
		return PROF_RECORDING;
	}
	if (prof_db_open(&db, place.path, &err) != ST_OK)
		fail_msg("%s", err.text);
	state = prof_db_state(db);
	assert_false(prof_db_writer_alive(db));
	prof_db_close(db);
	prof_check_file(place.path);
	check_announced(place.path, &last);
	check_sums(place.path);
	spans = prof_ask(place.path, "SELECT count(*) FROM spans");
	if (prof_repair(place.path, &done, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_true(done || state == PROF_COMPLETE);
	prof_check_file(place.path);
	check_announced(place.path, &last);
	check_sums(place.path);
	assert_int_equal(prof_ask(place.path, "SELECT count(*) FROM spans"), spans);
	assert_answer(place.path,
		      "SELECT key, value FROM meta WHERE key IN ('state', 'repaired') ORDER BY 1",
		      state != PROF_COMPLETE ? "repaired|1\nstate|complete\n" : "state|complete\n");
	prof_place_remove(&place);
	return state;
}

/* Whenever it is killed: there is no file yet, or one that can be read. */
static void test_a_recording_appears_with_its_schema(void **state)
{
	const unsigned rounds = support_rounds(15);
	struct rng rng;

	(void)state;
	rng_init(&rng, seed, 2, 0, 0);
	for (unsigned i = 0; i < rounds; i++) {
		struct ips_recording *recording;
		struct prof_place place;
		struct prof_db *db;
		struct err err;
		int ends[2];
		pid_t child;

		prof_place_make(&place);
		assert_int_equal(pipe(ends), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			announce_to = ends[1];
			if (write(ends[1], "", 1) != 1)
				_exit(2);
			record(place.path, INT64_MAX);
		}
		assert_int_equal(read(ends[0], &(char){0}, 1), 1);
		usleep(rng_below(&rng, 20000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(ends[0]);
		close(ends[1]);
		if (access(place.path, F_OK) == 0) {
			if (prof_db_open(&db, place.path, &err) != ST_OK)
				fail_msg("%s", err.text);
			prof_db_close(db);
		} else {
			assert_int_equal(ips_recording_open(&recording, place.path, NULL, NULL, 0),
					 0);
			assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
		}
		prof_place_remove(&place);
	}
}

static void test_a_killed_recording_keeps_what_its_commits_announced(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, seed, 0, 0, 0);
	for (unsigned i = 0; i < support_rounds(10); i++)
		assert_int_equal(one_round(INT64_MAX, rng_below(&rng, 12), 15000, &rng),
				 PROF_RECORDING);
}

/* At any moment from its start to its end, with its indexes and the checkpoint. */
static void test_a_recording_killed_on_the_way_to_its_end_can_be_finished(void **state)
{
	const int64_t rows = 20000;
	const unsigned rounds = support_rounds(10);
	unsigned states[3] = {0};
	struct prof_place place;
	uint64_t took;
	struct rng rng;

	(void)state;
	rng_init(&rng, seed, 3, 0, 0);
	prof_place_make(&place);
	took = ips_monotonic_ns();
	run_and_kill(place.path, rows, UINT_MAX, 1, &rng);
	took = ips_monotonic_ns() - took;
	prof_place_remove(&place);
	for (unsigned i = 0; i < rounds; i++)
		states[one_round(rows, 0, (unsigned)(took / 1000), &rng)]++;
	print_message(
		"%u kills at random moments of %u ms: %u while it recorded, %u while it closed, %u "
		"when it was complete\n",
		rounds, (unsigned)(took / 1000000), states[PROF_RECORDING], states[PROF_CLOSING],
		states[PROF_COMPLETE]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_killed_recording_keeps_what_its_commits_announced),
		cmocka_unit_test(test_a_recording_appears_with_its_schema),
		cmocka_unit_test(test_a_recording_killed_on_the_way_to_its_end_can_be_finished),
		cmocka_unit_test(test_what_a_commit_calls_safe_is_in_the_file),
	};

	if (getenv("IPUSCOPE_TEST_SEED"))
		seed = (unsigned)strtoul(getenv("IPUSCOPE_TEST_SEED"), NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
