/*
 * Values that outfeed queues keep: IPUOutfeedQueue's rules of dequeueing, stacked shapes, and a
 * ring that is taken from while others enqueue.
 */
#include "support/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "outfeed/outfeed_queue.h"

static const struct outfeed_policy everything = {0};
static struct outfeed *recorder;

static int setup(void **state)
{
	const struct outfeed_params params = {.policy = &everything, .replicas = 8};

	(void)state;
	return (int)outfeed_new(&recorder, &params, NULL);
}

static int teardown(void **state)
{
	(void)state;
	return (int)outfeed_close(recorder, NULL);
}

static struct outfeed_queue *queue_of(enum outfeed_mode mode, int replicas)
{
	const struct outfeed_queue_params params = {
		.name = "queue", .mode = mode, .replicas = replicas, .wrapped = true};
	struct outfeed_queue *queue;

	assert_int_equal(outfeed_queue_new(&queue, recorder, &params, NULL), ST_OK);
	return queue;
}

static struct outfeed_tensor *key_of(struct outfeed_queue *queue, const char *name,
				     const int64_t *shape, int ndim, bool final)
{
	const struct outfeed_tensor_params params = {.key = name,
						     .kind = OUTFEED_ACTIVATION,
						     .layer = "layer",
						     .shape = shape,
						     .ndim = ndim};
	struct outfeed_tensor *key;

	assert_int_equal(outfeed_queue_add(queue, &key, &params, final, NULL), ST_OK);
	assert_non_null(key);
	return key;
}

/* A value that says what it is: @count floats of enqueue, replica and key. */
static enum status send(struct outfeed_tensor *key, int64_t step, int replica, int which,
			size_t count)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	float values[64];

	assert_true(count <= 64);
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(step * 10000 + replica * 1000 + which * 100 + (int)i);
	moment.keys.step = step;
	moment.keys.replica = replica;
	return outfeed_record(key, &moment, values, count, NULL, NULL);
}

static const int64_t two[] = {2}, block[] = {2, 3};

/* ---- one after the other --------------------------------------------------------------------- */

struct seen {
	int count;
	char text[4096];
};

static void see(void *user, const struct outfeed_value *value)
{
	struct seen *seen = user;
	const size_t length = strlen(seen->text);

	assert_string_equal(value->queue, "queue");
	assert_string_equal(value->layer, "layer");
	snprintf(seen->text + length, sizeof(seen->text) - length, "%s step %d replica %d: %.0f; ",
		 value->key, (int)value->keys.step, (int)value->keys.replica,
		 (double)((const float *)value->values)[value->count - 1]);
	seen->count++;
}

static void test_values_come_in_the_order_of_their_enqueues(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 2);
	struct outfeed_tensor *a = key_of(queue, "a", two, 1, false);
	struct outfeed_tensor *b = key_of(queue, "b", block, 2, true);
	struct seen seen = {0};

	(void)state;
	assert_int_equal(outfeed_retain(queue, 4, false, NULL), ST_OK);
	assert_false(outfeed_next(queue, see, &seen));
	send(a, 0, 1, 0, 2);
	send(b, 0, 1, 1, 6);
	send(a, 1, 1, 0, 2);
	send(a, 0, 0, 0, 2);
	/* Only what has arrived whole. */
	assert_false(outfeed_next(queue, see, &seen));
	send(b, 0, 0, 1, 6);
	send(a, 1, 0, 0, 2);
	assert_true(outfeed_next(queue, see, &seen));
	assert_false(outfeed_next(queue, see, &seen));
	send(b, 1, 0, 1, 6);
	send(b, 1, 1, 1, 6);
	assert_true(outfeed_next(queue, see, &seen));
	assert_false(outfeed_next(queue, see, &seen));
	assert_string_equal(seen.text, "a step 0 replica 0: 1; b step 0 replica 0: 105; "
				       "a step 0 replica 1: 1001; b step 0 replica 1: 1105; "
				       "a step 1 replica 0: 10001; b step 1 replica 0: 10105; "
				       "a step 1 replica 1: 11001; b step 1 replica 1: 11105; ");
	outfeed_queue_free(queue);
}

static void test_the_last_is_the_last(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_LAST, 1);
	struct outfeed_tensor *key = key_of(queue, "a", two, 1, true);
	struct seen seen = {0};

	(void)state;
	assert_int_equal(outfeed_retain(queue, 100, false, NULL), ST_OK);
	for (int step = 0; step < 1000; step++)
		assert_int_equal(send(key, step, 0, 0, 2), ST_OK);
	assert_true(outfeed_next(queue, see, &seen));
	assert_false(outfeed_next(queue, see, &seen));
	assert_string_equal(seen.text, "a step 999 replica 0: 9990001; ");
	outfeed_queue_free(queue);
}

/* ---- dequeueing ------------------------------------------------------------------------------ */

static void test_a_queue_never_enqueued_is_an_error_on_the_same_thread_alone(void **state)
{
	const struct outfeed_array *arrays;
	struct err err = {ST_OK, ""};
	int count;

	(void)state;
	for (int mode = OUTFEED_ALL; mode <= OUTFEED_LAST; mode++) {
		struct outfeed_queue *queue = queue_of((enum outfeed_mode)mode, 1);
		struct outfeed_tensor *key = key_of(queue, "a", two, 1, true);

		assert_int_equal(outfeed_dequeue(queue, true, &arrays, &count, &err), ST_INVALID);
		assert_contains(err.text, "does not keep values");
		assert_int_equal(outfeed_retain(queue, 2, false, NULL), ST_OK);
		assert_int_equal(outfeed_dequeue(queue, true, &arrays, &count, &err), ST_INVALID);
		assert_string_equal(err.text, "outfeed queue \"queue\": it is dequeued before "
					      "anything was enqueued");
		assert_int_equal(outfeed_dequeue(queue, false, &arrays, &count, &err), ST_OK);
		assert_int_equal(count, 0);
		send(key, 0, 0, 0, 2);
		assert_int_equal(outfeed_dequeue(queue, true, &arrays, &count, &err), ST_OK);
		assert_int_equal(count, 1);
		assert_int_equal(outfeed_dequeue(queue, true, &arrays, &count, &err), ST_OK);
		assert_int_equal(count, 0);
		outfeed_queue_free(queue);
	}
}

/* E enqueues of a step's activation, E / g of an accumulated gradient, R replicas. */
static void check_stacked(enum outfeed_mode mode, int replicas, int enqueues, int ndim)
{
	struct outfeed_queue *queue = queue_of(mode, replicas);
	struct outfeed_tensor *key = key_of(queue, "a", block, ndim, true);
	const size_t each = ndim == 0 ? 1 : ndim == 1 ? 2 : 6;
	const struct outfeed_array *array;
	const float *values;
	int count, d = 0;

	assert_int_equal(outfeed_retain(queue, enqueues, false, NULL), ST_OK);
	for (int e = 0; e < enqueues; e++)
		for (int r = 0; r < replicas; r++)
			assert_int_equal(send(key, e, r, 0, each), ST_OK);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(count, 1);
	if (mode == OUTFEED_ALL)
		assert_int_equal(array->shape[d++], enqueues);
	if (replicas > 1)
		assert_int_equal(array->shape[d++], replicas);
	for (int i = 0; i < ndim; i++)
		assert_int_equal(array->shape[d++], block[i]);
	assert_int_equal(array->ndim, d);
	values = array->values;
	for (int e = mode == OUTFEED_ALL ? 0 : enqueues - 1; e < enqueues; e++)
		for (int r = 0; r < replicas; r++)
			for (size_t i = 0; i < each; i++, values++)
				assert_int_equal((int)*values, e * 10000 + r * 1000 + (int)i);
	outfeed_queue_free(queue);
}

static void test_arrays_are_stacked_by_enqueues_and_replicas(void **state)
{
	(void)state;
	for (int mode = OUTFEED_ALL; mode <= OUTFEED_LAST; mode++)
		for (int replicas = 1; replicas <= 4; replicas++)
			for (int ndim = 0; ndim <= 2; ndim++)
				for (int enqueues = 1; enqueues <= 9; enqueues += 4)
					check_stacked((enum outfeed_mode)mode, replicas, enqueues,
						      ndim);
}

static void test_a_dequeue_begins_where_the_last_one_ended(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1);
	struct outfeed_tensor *key = key_of(queue, "a", two, 1, true);
	const struct outfeed_array *array;
	int count;

	(void)state;
	assert_int_equal(outfeed_retain(queue, 3, false, NULL), ST_OK);
	send(key, 0, 0, 0, 2);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(array->shape[0], 1);
	send(key, 1, 0, 0, 2);
	send(key, 2, 0, 0, 2);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(array->shape[0], 2);
	assert_int_equal((int)((const float *)array->values)[0], 10000);
	/* There is room for no more until it begins anew. */
	assert_int_equal(send(key, 3, 0, 0, 2), ST_LIMIT);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(count, 0);
	outfeed_restart(queue);
	assert_int_equal(send(key, 4, 0, 0, 2), ST_OK);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal((int)((const float *)array->values)[0], 40000);
	outfeed_queue_free(queue);
}

/* What found no room is nothing that has come: no array is longer than its values. */
static void test_an_enqueue_without_room_is_not_dequeued(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1);
	struct outfeed_tensor *key = key_of(queue, "a", two, 1, true);
	struct seen seen = {0};
	const struct outfeed_array *array;
	int count;

	(void)state;
	assert_int_equal(outfeed_retain(queue, 2, false, NULL), ST_OK);
	for (int step = 0; step < 5; step++)
		assert_int_equal(send(key, step, 0, 0, 2), step < 2 ? ST_OK : ST_LIMIT);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(count, 1);
	assert_int_equal(array->shape[0], 2);
	while (outfeed_next(queue, see, &seen))
		;
	assert_int_equal(seen.count, 2);
	outfeed_queue_free(queue);
}

/* Its one place may be written at any time. */
static void test_another_thread_gets_no_last_value_before_the_end(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_LAST, 1);
	struct outfeed_tensor *key = key_of(queue, "a", two, 1, true);
	const struct outfeed_array *array;
	int count;

	(void)state;
	assert_int_equal(outfeed_retain(queue, 1, false, NULL), ST_OK);
	assert_int_equal(send(key, 0, 0, 0, 2), ST_OK);
	assert_int_equal(outfeed_dequeue(queue, false, &array, &count, NULL), ST_OK);
	assert_int_equal(count, 0);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(count, 1);
	outfeed_queue_free(queue);
}

static void test_what_is_never_sent_is_never_kept(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1);
	struct outfeed_tensor *first = key_of(queue, "first", two, 1, true);
	struct outfeed_tensor *late = key_of(queue, "late", two, 1, false);
	const struct outfeed_array *array;
	int count;

	(void)state;
	assert_int_equal(outfeed_retain(queue, 1, false, NULL), ST_OK);
	send(first, 0, 0, 0, 2);
	send(late, 0, 0, 0, 2);
	assert_int_equal(outfeed_dequeue(queue, true, &array, &count, NULL), ST_OK);
	assert_int_equal(count, 1);
	assert_string_equal(array[0].key, "first");
	outfeed_queue_free(queue);
}

/* ---- while others enqueue -------------------------------------------------------------------- */

#define STEPS    1500
#define REPLICAS 3

struct worker {
	struct outfeed_tensor *keys[2];
	int replica;
	_Atomic int *written;
	pthread_t thread;
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (int step = 0; step < STEPS; step++) {
		for (int k = 0; k < 2; k++)
			send(worker->keys[k], step, worker->replica, k, 2);
		atomic_fetch_add(worker->written, 1);
	}
	return NULL;
}

struct order {
	int64_t step;
	int seen;
};

static void see_order(void *user, const struct outfeed_value *value)
{
	struct order *order = user;
	const int replica = order->seen / 2, key = order->seen % 2;

	assert_int_equal(value->keys.step, order->step);
	assert_int_equal(value->keys.replica, replica);
	for (size_t i = 0; i < value->count; i++)
		assert_int_equal((int)((const float *)value->values)[i],
				 order->step * 10000 + replica * 1000 + key * 100 + (int)i);
	order->seen++;
}

static void start(struct outfeed_queue *queue, struct worker *workers, _Atomic int *written)
{
	struct outfeed_tensor *first = key_of(queue, "a", two, 1, false);
	struct outfeed_tensor *second = key_of(queue, "b", two, 1, true);

	assert_int_equal(outfeed_retain(queue, 2, true, NULL), ST_OK);
	for (int r = 0; r < REPLICAS; r++) {
		workers[r] =
			(struct worker){.keys = {first, second}, .replica = r, .written = written};
		assert_int_equal(pthread_create(&workers[r].thread, NULL, work, &workers[r]), 0);
	}
}

static void test_a_ring_loses_nothing_and_keeps_the_order(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, REPLICAS);
	struct worker workers[REPLICAS];
	_Atomic int written = 0;
	struct order order = {0, 0};

	(void)state;
	start(queue, workers, &written);
	while (order.step < STEPS) {
		if (!outfeed_next(queue, see_order, &order))
			continue;
		assert_int_equal(order.seen, 2 * REPLICAS);
		order.step++;
		order.seen = 0;
	}
	for (int r = 0; r < REPLICAS; r++)
		pthread_join(workers[r].thread, NULL);
	assert_false(outfeed_next(queue, see_order, &order));
	outfeed_queue_free(queue);
}

static void test_nobody_waits_once_it_is_let_go(void **state)
{
	const struct timespec pause = {0, 20000000};
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, REPLICAS);
	struct worker workers[REPLICAS];
	_Atomic int written = 0;

	(void)state;
	start(queue, workers, &written);
	nanosleep(&pause, NULL);
	assert_true(atomic_load(&written) <= 2 * REPLICAS);
	outfeed_abandon(queue);
	for (int r = 0; r < REPLICAS; r++)
		pthread_join(workers[r].thread, NULL);
	assert_int_equal(atomic_load(&written), STEPS * REPLICAS);
	outfeed_queue_free(queue);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_no_failed_allocation_leaves_anything(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 2);
		enum status status;

		key_of(queue, "a", two, 1, false);
		key_of(queue, "b", block, 2, true);
		support_fail_alloc(n);
		status = outfeed_retain(queue, 3, true, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		outfeed_queue_free(queue);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_come_in_the_order_of_their_enqueues),
		cmocka_unit_test(test_the_last_is_the_last),
		cmocka_unit_test(test_a_queue_never_enqueued_is_an_error_on_the_same_thread_alone),
		cmocka_unit_test(test_arrays_are_stacked_by_enqueues_and_replicas),
		cmocka_unit_test(test_a_dequeue_begins_where_the_last_one_ended),
		cmocka_unit_test(test_an_enqueue_without_room_is_not_dequeued),
		cmocka_unit_test(test_another_thread_gets_no_last_value_before_the_end),
		cmocka_unit_test(test_what_is_never_sent_is_never_kept),
		cmocka_unit_test(test_a_ring_loses_nothing_and_keeps_the_order),
		cmocka_unit_test(test_nobody_waits_once_it_is_let_go),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
