/*
 * Pool: every slice once, any number of callers, and processors counted within quotas.
 */
#include "common/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/support.h"

/* The counts are plain: the thread sanitizer sees any slice that is run by two. */
static void count_slice(void *context, unsigned slice)
{
	unsigned *counts = context;

	counts[slice]++;
}

static void run_and_check(struct pool *pool, unsigned slices)
{
	unsigned *counts = calloc(slices + 1, sizeof(*counts));

	pool_run(pool, count_slice, counts, slices);
	for (unsigned i = 0; i < slices; i++)
		assert_int_equal(counts[i], 1);
	assert_int_equal(counts[slices], 0);
	free(counts);
}

static void test_every_slice_runs_once(void **state)
{
	static const unsigned slices[] = {0, 1, 2, 3, 7, 64, 1000};

	(void)state;
	for (unsigned helpers = 0; helpers < 5; helpers++) {
		struct pool *pool;

		assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
		assert_int_equal(pool_helpers(pool), helpers);
		for (int round = 0; round < 20; round++)
			for (size_t i = 0; i < ARRAY_LEN(slices); i++)
				run_and_check(pool, slices[i]);
		pool_free(pool);
	}
}

static void test_no_pool_runs_on_the_caller(void **state)
{
	(void)state;
	run_and_check(NULL, 100);
	assert_int_equal(pool_helpers(NULL), 0);
	pool_free(NULL);
}

static void test_unused_pool_ends(void **state)
{
	struct pool *pool;

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pool_new(&pool, 3, NULL), ST_OK);
		pool_free(pool);
	}
}

/* cmocka's asserts are for the main thread: callers count what is wrong. */
struct caller {
	struct pool *pool;
	unsigned rounds;
	unsigned wrong;
};

static void *call_often(void *argument)
{
	struct caller *caller = argument;
	unsigned counts[61];

	for (unsigned round = 0; round < caller->rounds; round++) {
		unsigned slices = round % 61;

		for (unsigned i = 0; i < 61; i++)
			counts[i] = 0;
		pool_run(caller->pool, count_slice, counts, slices);
		for (unsigned i = 0; i < 61; i++)
			caller->wrong += counts[i] != (i < slices);
	}
	return NULL;
}

static void test_many_callers_share_the_helpers(void **state)
{
	enum {
		CALLERS = 8
	};
	struct caller callers[CALLERS];
	pthread_t threads[CALLERS];
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 3, NULL), ST_OK);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.pool = pool, .rounds = 500};
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(callers[i].wrong, 0);
	}
	pool_free(pool);
}

struct nested {
	struct pool *pool;
	unsigned counts[8][16];
};

struct nested_row {
	struct nested *nested;
	unsigned row;
};

static void count_inner(void *context, unsigned slice)
{
	struct nested_row *row = context;

	row->nested->counts[row->row][slice]++;
}

static void count_outer(void *context, unsigned slice)
{
	struct nested_row row = {.nested = context, .row = slice};

	pool_run(row.nested->pool, count_inner, &row, 16);
}

static void test_a_slice_may_share_out_work_itself(void **state)
{
	struct nested nested = {0};

	(void)state;
	assert_int_equal(pool_new(&nested.pool, 2, NULL), ST_OK);
	for (int round = 0; round < 50; round++)
		pool_run(nested.pool, count_outer, &nested, 8);
	pool_free(nested.pool);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 16; k++)
			assert_int_equal(nested.counts[i][k], 50);
}

static atomic_uint meeting;

/* Ends only when all slices, whose number @context points to, run at the same time. */
static void meet(void *context, unsigned slice)
{
	const unsigned *slices = context;

	(void)slice;
	atomic_fetch_add(&meeting, 1);
	while (atomic_load(&meeting) < *slices)
		sched_yield();
}

static void test_helpers_really_help(void **state)
{
	(void)state;
	for (unsigned threads = 2; threads < 6; threads++) {
		struct pool *pool;

		assert_int_equal(pool_new(&pool, threads - 1, NULL), ST_OK);
		for (int round = 0; round < 5; round++) {
			atomic_store(&meeting, 0);
			pool_run(pool, meet, &threads, threads);
		}
		pool_free(pool);
	}
}

struct lanes {
	atomic_int inside[4]; /* threads in each lane at this moment */
	atomic_int most;
	atomic_int beyond;
	unsigned count;
};

static void enter_lane(void *context, unsigned slice, unsigned lane)
{
	struct lanes *lanes = context;

	(void)slice;
	if (lane >= lanes->count) {
		atomic_fetch_add(&lanes->beyond, 1);
		return;
	}
	if (atomic_fetch_add(&lanes->inside[lane], 1) > 0)
		atomic_fetch_add(&lanes->most, 1);
	sched_yield();
	atomic_fetch_sub(&lanes->inside[lane], 1);
}

static void test_a_lane_has_one_thread_at_a_time(void **state)
{
	(void)state;
	assert_int_equal(pool_lanes(NULL), 1);
	for (unsigned helpers = 0; helpers < 4; helpers++) {
		struct lanes lanes = {.count = helpers + 1};
		struct pool *pool;

		assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
		assert_int_equal(pool_lanes(pool), helpers + 1);
		for (int round = 0; round < 50; round++)
			pool_run_lanes(pool, enter_lane, &lanes, 40);
		assert_int_equal(atomic_load(&lanes.most), 0);
		assert_int_equal(atomic_load(&lanes.beyond), 0);
		pool_free(pool);
	}
}

static void note_thread(void *context, unsigned slice)
{
	pthread_t *threads = context;

	threads[slice] = pthread_self();
}

static void test_small_work_stays_with_the_caller(void **state)
{
	pthread_t threads[100];
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 3, NULL), ST_OK);
	for (int round = 0; round < 100; round++) {
		pool_share(pool, 2 * POOL_LANE_WORK - 1, note_thread, threads, ARRAY_LEN(threads));
		for (size_t i = 0; i < ARRAY_LEN(threads); i++)
			assert_true(pthread_equal(threads[i], pthread_self()));
	}
	pool_free(pool);
}

static void test_no_more_threads_than_the_work_pays(void **state)
{
	(void)state;
	for (unsigned most = 2; most < 5; most++) {
		struct lanes lanes = {.count = most};
		struct pool *pool;

		assert_int_equal(pool_new(&pool, 3, NULL), ST_OK);
		for (int round = 0; round < 50; round++)
			pool_share_lanes(pool, most * POOL_LANE_WORK, enter_lane, &lanes, 40);
		assert_int_equal(atomic_load(&lanes.beyond), 0);
		assert_int_equal(atomic_load(&lanes.most), 0);
		pool_free(pool);
	}
}

static void test_work_that_pays_wakes_a_helper(void **state)
{
	unsigned slices = 2;
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 1, NULL), ST_OK);
	for (int round = 0; round < 5; round++) {
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* asleep by now */
		atomic_store(&meeting, 0);
		pool_share(pool, 2 * POOL_WAKE_WORK, meet, &slices, 2);
	}
	pool_free(pool);
}

/* Threads beyond have no slices of their own. */
static void test_more_threads_than_ranges(void **state)
{
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 80, NULL), ST_OK);
	for (int round = 0; round < 5; round++) {
		run_and_check(pool, 79);
		run_and_check(pool, 500);
	}
	pool_free(pool);
}

static void test_run_never_allocates(void **state)
{
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 2, NULL), ST_OK);
	support_fail_alloc(0);
	for (int i = 0; i < 10; i++) {
		unsigned counts[10] = {0};

		pool_run(pool, count_slice, counts, 10);
	}
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	pool_free(pool);
}

static void test_every_failing_allocation_is_reported(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct pool *pool = NULL;
		struct err err;
		enum status status;

		support_fail_alloc(n);
		status = pool_new(&pool, 1, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* Counting the processors goes on without what it could not read. */
		if (status == ST_OK) {
			assert_non_null(pool);
			pool_free(pool);
		} else {
			assert_int_equal(status, ST_NOMEM);
			assert_true(failed);
			assert_null(pool);
		}
		assert_true(n < 100);
	}
}

static void test_threads_that_do_not_start_are_reported(void **state)
{
	pthread_attr_t before, greedy;
	struct pool *pool;
	enum status status;
	struct err err;

	(void)state;
	assert_int_equal(pthread_getattr_default_np(&before), 0);
	assert_int_equal(pthread_getattr_default_np(&greedy), 0);
	/* No address space has room for such a stack. */
	assert_int_equal(pthread_attr_setstacksize(&greedy, (size_t)1 << 60), 0);
	assert_int_equal(pthread_setattr_default_np(&greedy), 0);
	status = pool_new(&pool, 2, &err);
	assert_int_equal(pthread_setattr_default_np(&before), 0);
	pthread_attr_destroy(&before);
	pthread_attr_destroy(&greedy);

	assert_int_equal(status, ST_FAILED);
	assert_null(pool);
	assert_contains(err.text, "cannot start thread 1 of 2: ");
}

static void test_there_is_a_processor(void **state)
{
	(void)state;
	assert_true(pool_processors() >= 1);
}

struct cgroup_row {
	const char *membership; /* of the process */
	const char *files[3];   /* "path=content" */
	unsigned quota;
};

static void check_quota(const struct cgroup_row *row)
{
	char root[FS_PATH_SIZE], path[FS_PATH_SIZE], membership[FS_PATH_SIZE];

	support_tempdir(root);
	assert_true(fs_path(membership, "%s/membership", root));
	support_write_file(membership, row->membership, strlen(row->membership));
	for (size_t i = 0; i < ARRAY_LEN(row->files) && row->files[i]; i++) {
		const char *content = strchr(row->files[i], '=') + 1;
		int length = (int)(content - row->files[i]) - 1;

		assert_true(fs_path(path, "%s/%.*s", root, length, row->files[i]));
		*strrchr(path, '/') = '\0';
		assert_int_equal(fs_make_dirs(path, NULL), ST_OK);
		assert_true(fs_path(path, "%s/%.*s", root, length, row->files[i]));
		support_write_file(path, content, strlen(content));
	}
	assert_int_equal(pool__quota(membership, root), row->quota);
	support_tempdir_remove(root);
}

static void test_quotas_of_both_versions_count(void **state)
{
	static const struct cgroup_row rows[] = {
		{"0::/a/b\n", {"a/b/cpu.max=200000 100000\n"}, 2},
		{"0::/a/b\n", {"a/b/cpu.max=150000 100000\n"}, 2},
		{"0::/a/b\n", {"a/b/cpu.max=1000 100000\n"}, 1},
		{"0::/a/b\n", {"a/b/cpu.max=max 100000\n"}, 0},
		{"0::/a/b\n", {"a/b/cpu.max=max 100000\n", "a/cpu.max=300000 100000\n"}, 3},
		{"0::/a/b\n", {"a/b/cpu.max=400000 100000\n", "a/cpu.max=300000 100000\n"}, 3},
		{"0::/gone\n", {"cpu.max=500000 100000\n"}, 5},
		{"0::/\n", {"cpu.max=500000 100000\n"}, 5},
		{"4:memory:/x\n3:cpu,cpuacct:/x\n",
		 {"cpu,cpuacct/x/cpu.cfs_quota_us=250000\n",
		  "cpu,cpuacct/x/cpu.cfs_period_us=100000\n"},
		 3},
		{"3:cpuacct,cpu:/x\n",
		 {"cpu/x/cpu.cfs_quota_us=100000\n", "cpu/x/cpu.cfs_period_us=100000\n"},
		 1},
		{"3:cpu:/x\n",
		 {"cpu/x/cpu.cfs_quota_us=-1\n", "cpu/x/cpu.cfs_period_us=100000\n"},
		 0},
		{"0::/a\n", {"a/cpu.max=nonsense\n"}, 0},
		{"0::/a\n", {"a/cpu.max=5 0\n"}, 0},
		{"", {NULL}, 0},
		{"no colons here\n", {NULL}, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_quota(&rows[i]);
	assert_int_equal(pool__quota("/nonexistent/file", "/nonexistent"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_slice_runs_once),
		cmocka_unit_test(test_no_pool_runs_on_the_caller),
		cmocka_unit_test(test_unused_pool_ends),
		cmocka_unit_test(test_many_callers_share_the_helpers),
		cmocka_unit_test(test_a_slice_may_share_out_work_itself),
		cmocka_unit_test(test_helpers_really_help),
		cmocka_unit_test(test_a_lane_has_one_thread_at_a_time),
		cmocka_unit_test(test_small_work_stays_with_the_caller),
		cmocka_unit_test(test_no_more_threads_than_the_work_pays),
		cmocka_unit_test(test_work_that_pays_wakes_a_helper),
		cmocka_unit_test(test_more_threads_than_ranges),
		cmocka_unit_test(test_run_never_allocates),
		cmocka_unit_test(test_every_failing_allocation_is_reported),
		cmocka_unit_test(test_threads_that_do_not_start_are_reported),
		cmocka_unit_test(test_there_is_a_processor),
		cmocka_unit_test(test_quotas_of_both_versions_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
