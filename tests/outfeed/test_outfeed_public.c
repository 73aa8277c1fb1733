/*
 * The public header of tensors: rows as the trainer's own, rules, the order of calls.
 * tests/profiler/foreign_link.sh sees it as a shared library.
 */
#include "support/public_sample.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/public_internal.h"

#define STEPS 4

static char message[512];

/* ---- rows ------------------------------------------------------------------------------------ */

static void record_steps(struct ips_outfeed *outfeed)
{
	struct ips_outfeed_tensor *activation =
		public_add(outfeed, "acts", IPS_OUTFEED_ACTIVATION, 2, 3);
	struct ips_outfeed_tensor *weight = public_add(outfeed, "kernel", IPS_OUTFEED_WEIGHT, 3, 2);
	float values[6] = {1, -2, 3, 0, 5, 5};

	for (int step = 0; step < STEPS; step++) {
		const struct ips_keys keys = public_step(step);

		assert_true(ips_outfeed_due(weight, &keys));
		assert_int_equal(ips_outfeed_record(activation, &keys, values, step == 3 ? 3 : 6),
				 0);
		values[0] *= 2;
		assert_int_equal(ips_outfeed_record(weight, &keys, values, 6), 0);
		assert_int_equal(ips_outfeed_loss(outfeed, &keys, 1.0 / (1 + step)), 0);
	}
}

static void test_a_run_has_the_rows_of_a_trainer(void **state)
{
	const struct ips_keys keys = public_step(IPS_NULL);
	const double val_loss = 0.75;
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;

	(void)state;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, NULL);
	record_steps(outfeed);
	assert_int_equal(ips_outfeed_epoch(outfeed, &keys, 0.5, &val_loss), 0);
	assert_int_equal(ips_outfeed_status(outfeed, message, sizeof(message)), 0);
	public_close(outfeed);
	prof_stop(recording);
	assert_answer(place.path,
		      "SELECT queue, key, kind, layer, stage, shape, dtype FROM tensors",
		      "outfeed|acts|activation|dense|1|(2, 3)|float32\n"
		      "outfeed|kernel|weight|dense|1|(3, 2)|float32\n");
	assert_answer(place.path,
		      "SELECT step, n, n_zero, n_neg, mean, abs_max FROM tensor_stats "
		      "WHERE key = 'acts' ORDER BY step",
		      "0|6|1|1|2.0|5.0\n1|6|1|1|2.16666666666667|5.0\n"
		      "2|6|1|1|2.5|5.0\n3|3|0|1|3.0|8.0\n");
	assert_answer(place.path,
		      "SELECT step, n_changed, update_ratio IS NULL FROM tensor_stats "
		      "WHERE key = 'kernel' ORDER BY step",
		      "0|-|1\n1|1|0\n2|1|0\n3|1|0\n");
	assert_answer(place.path, "SELECT mode, epoch, step, name, value FROM metrics",
		      "train|1|0|loss|1.0\ntrain|1|1|loss|0.5\ntrain|1|2|loss|0.333333333333333\n"
		      "train|1|3|loss|0.25\ntrain|1|-|loss|0.5\nevaluate|1|-|loss|0.75\n");
	prof_check_file(place.path);
	prof_place_remove(&place);
}

static void test_keys_of_the_thread_hold_where_none_are_given(void **state)
{
	const float values[] = {1, 2, 3, 4, 5, 6};
	struct ips_keys keys = public_step(5);
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed_tensor *acts;
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;

	(void)state;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	params.capture = "[{\"tensors\": \"*\", \"tier\": \"stats\", \"every\": 5}]";
	outfeed = public_open(recording, &params);
	acts = public_add(outfeed, "acts", IPS_OUTFEED_ACTIVATION, 2, 3);
	ips_thread_set_keys(recording, &keys);
	assert_true(ips_outfeed_due(acts, NULL));
	assert_int_equal(ips_outfeed_record(acts, NULL, values, 6), 0);
	assert_int_equal(ips_outfeed_loss(outfeed, NULL, 0.5), 0);
	keys.step = 6;
	ips_thread_set_keys(recording, &keys);
	assert_false(ips_outfeed_due(acts, NULL));
	keys.step = 10;
	assert_int_equal(ips_outfeed_record(acts, &keys, values, 6), 0); /* its own keys */
	ips_thread_set_keys(recording, NULL);
	public_close(outfeed);
	prof_stop(recording);
	assert_answer(place.path, "SELECT mode, epoch, step FROM tensor_stats",
		      "train|1|5\ntrain|1|10\n");
	assert_answer(place.path, "SELECT mode, epoch, step, value FROM metrics",
		      "train|1|5|0.5\n");
	prof_place_remove(&place);
}

static void test_nothing_is_done_without_an_outfeed(void **state)
{
	const struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults("x");
	struct ips_outfeed_tensor *tensor = (struct ips_outfeed_tensor *)&message;
	const int64_t seen[] = {1, 2};

	(void)state;
	assert_int_equal(ips_outfeed_tensor(NULL, &tensor, &params, message, sizeof(message)), 0);
	assert_null(tensor);
	assert_int_equal(ips_outfeed_due(NULL, NULL), 0);
	assert_int_equal(ips_outfeed_record(NULL, NULL, NULL, 0), 0);
	assert_int_equal(ips_outfeed_loss(NULL, NULL, 1), 0);
	assert_int_equal(ips_outfeed_epoch(NULL, NULL, 1, NULL), 0);
	assert_int_equal(ips_outfeed_classes(NULL, NULL, seen, NULL, 2), 0);
	assert_int_equal(ips_outfeed_broken(NULL, NULL), 0);
	assert_int_equal(ips_outfeed_status(NULL, message, sizeof(message)), 0);
	ips_outfeed_flush(NULL);
	assert_int_equal(ips_outfeed_close(NULL, NULL, 0), 0);
	ips_captures_close(NULL);
}

/* A wrong argument is an error with its name, and what was there before goes on. */
static void test_what_must_not_be_null_is_told(void **state)
{
	const int64_t seen[] = {3, -1}, wrong[] = {4, 0};
	const float value[] = {1, 2};
	struct ips_outfeed *outfeed = public_open(NULL, NULL);
	struct ips_outfeed_tensor *tensor = public_add(outfeed, "x", IPS_OUTFEED_GRADIENT, 1, 2);
	struct ips_captures *captures = (struct ips_captures *)&message;
	struct ips_tensor_stats row;

	(void)state;
	assert_int_not_equal(ips_outfeed_open(NULL, NULL, NULL, message, sizeof(message)), 0);
	assert_string_equal(message, "out: is NULL");
	assert_int_not_equal(ips_outfeed_tensor(outfeed, &tensor, NULL, message, sizeof(message)),
			     0);
	assert_string_equal(message, "params: is NULL");
	assert_null(tensor);
	assert_int_not_equal(ips_captures_open(&captures, NULL, message, sizeof(message)), 0);
	assert_string_equal(message, "path: is NULL");
	assert_null(captures);
	assert_int_equal(ips_captures_count(NULL), 0);
	assert_null(ips_captures_at(NULL, 0));
	assert_int_not_equal(ips_captures_read(NULL, 0, 0, 1, &row, message, sizeof(message)), 0);
	assert_int_not_equal(ips_captures_keys(NULL, 0, &row.keys, message, sizeof(message)), 0);
	assert_int_not_equal(ips_outfeed_stats(&row, NULL, 1, IPS_OUTFEED_FLOAT32), 0);
	assert_int_equal(ips_outfeed_stats(&row, NULL, 0, IPS_OUTFEED_FLOAT32), 0);

	tensor = public_add(outfeed, "y", IPS_OUTFEED_GRADIENT, 1, 2);
	assert_int_not_equal(ips_outfeed_record(tensor, NULL, NULL, 2), 0);
	ips_outfeed_status(outfeed, message, sizeof(message));
	assert_string_equal(message, "tensor \"y\": values: is NULL");
	assert_int_equal(ips_outfeed_record(tensor, NULL, value, 2), 0);
	assert_int_not_equal(ips_outfeed_classes(outfeed, NULL, NULL, NULL, 2), 0);
	assert_int_not_equal(ips_outfeed_classes(outfeed, NULL, seen, NULL, 2), 0);
	assert_int_not_equal(ips_outfeed_classes(outfeed, NULL, seen, wrong, 1), 0);
	assert_int_equal(ips_outfeed_classes(outfeed, NULL, NULL, NULL, 0), 0);
	ips_outfeed_close(outfeed, message, sizeof(message));
	assert_string_equal(message, "tensor \"y\": values: is NULL");
}

/* Rules and callbacks work without a file. */
static void test_nothing_is_written_without_a_recording(void **state)
{
	const float bad[] = {1, NAN};
	struct ips_outfeed *outfeed = public_open(NULL, NULL);
	struct ips_outfeed_tensor *tensor = public_add(outfeed, "x", IPS_OUTFEED_GRADIENT, 1, 2);

	(void)state;
	assert_int_equal(ips_outfeed_record(tensor, NULL, bad, 2), 0);
	assert_int_equal(ips_outfeed_loss(outfeed, NULL, 0.5), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "nonfinite"), 1);
	public_close(outfeed);
}

static void test_a_tier_of_off_is_no_tensor(void **state)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed *outfeed;

	(void)state;
	params.capture = "[{\"tensors\": \"x*\", \"tier\": \"off\"}]";
	outfeed = public_open(NULL, &params);
	assert_null(public_add(outfeed, "xa", IPS_OUTFEED_WEIGHT, 1, 1));
	assert_non_null(public_add(outfeed, "a", IPS_OUTFEED_WEIGHT, 1, 1));
	public_close(outfeed);
}

/* What is before the text is not the text's. */
static void test_a_capture_may_begin_with_blanks(void **state)
{
	static const char text[] = "off\n\t [{\"tensors\": \"x*\", \"tier\": \"off\"}]";
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed *outfeed;

	(void)state;
	params.capture = text + strlen("off");
	outfeed = public_open(NULL, &params);
	assert_null(public_add(outfeed, "xa", IPS_OUTFEED_WEIGHT, 1, 1));
	assert_non_null(public_add(outfeed, "a", IPS_OUTFEED_WEIGHT, 1, 1));
	public_close(outfeed);
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct heard {
	int lines, hits;
	char line[512], hit[256];
};

static void say(void *user, const char *line)
{
	struct heard *heard = user;

	if (heard->lines++ == 0)
		snprintf(heard->line, sizeof(heard->line), "%s", line);
}

static void hit(void *user, const struct ips_outfeed_hit *hit)
{
	struct heard *heard = user;

	if (heard->hits++ == 0)
		snprintf(heard->hit, sizeof(heard->hit), "%s %s %s %lld %g", hit->rule, hit->key,
			 hit->layer, (long long)hit->keys.step, hit->value);
}

static void record_great(struct ips_outfeed *outfeed)
{
	struct ips_outfeed_tensor *tensor = public_add(outfeed, "grad", IPS_OUTFEED_GRADIENT, 1, 2);
	const float sound[] = {1, 2}, great[] = {1, 2e9f};

	for (int step = 0; step < STEPS; step++) {
		const struct ips_keys keys = public_step(step);

		assert_int_equal(ips_outfeed_record(tensor, &keys, step == 2 ? great : sound, 2),
				 0);
	}
}

static void test_a_broken_rule_is_told(void **state)
{
	struct heard heard = {0};
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed *outfeed;
	struct prof_place place;
	struct ips_recording *recording;

	(void)state;
	params.say = say;
	params.hit = hit;
	params.user = &heard;
	params.health = "{\"exploding\": {\"threshold\": 1e8}}";
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, &params);
	record_great(outfeed);
	assert_int_equal(ips_outfeed_broken(outfeed, "exploding"), 1);
	assert_int_equal(ips_outfeed_broken(outfeed, "nonfinite"), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, NULL), 1);
	assert_int_equal(ips_outfeed_broken(outfeed, "explodin"), -1);
	public_close(outfeed);
	prof_stop(recording);
	assert_int_equal(heard.hits, 1);
	assert_string_equal(heard.hit, "exploding grad dense 2 2e+09");
	assert_true(heard.lines >= 1);
	assert_contains(heard.line, "exploding");
	assert_contains(heard.line, "grad");
	assert_answer(place.path, "SELECT rule, key, step, value, threshold FROM health",
		      "exploding|grad|2|2000000000.0|100000000.0\n");
	assert_answer(place.path,
		      "SELECT threshold, enabled FROM health_rules WHERE rule = 'exploding'",
		      "100000000.0|1\n");
	prof_place_remove(&place);
}

static void test_rules_can_be_left_out(void **state)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed *outfeed;

	(void)state;
	params.without_health = 1;
	outfeed = public_open(NULL, &params);
	record_great(outfeed);
	assert_int_equal(ips_outfeed_loss(outfeed, NULL, (double)NAN), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, NULL), 0);
	public_close(outfeed);
}

static void test_losses_and_classes_are_judged(void **state)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	const int64_t seen[] = {100000, 10}, wrong[] = {0, 9}, few[] = {100, 1},
		      one[] = {100000, 0};
	struct ips_keys keys = public_step(0);
	struct ips_outfeed *outfeed;
	const double val_losses[] = {4, 5};

	(void)state;
	outfeed = public_open(NULL, &params);
	keys.mode = IPS_EVALUATE; /* not training */
	assert_int_equal(ips_outfeed_loss(outfeed, &keys, (double)NAN), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, NULL), 0);
	keys.mode = IPS_MODE_NULL;
	assert_int_equal(ips_outfeed_loss(outfeed, &keys, (double)NAN), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "nonfinite"), 1);
	/* A first epoch has nothing to have risen from. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ips_outfeed_epoch(outfeed, &keys, 1, &val_losses[i]), 0);
		assert_int_equal(ips_outfeed_broken(outfeed, "overfit"), i);
	}
	/* A class that never came is no rare one. */
	assert_int_equal(ips_outfeed_classes(outfeed, &keys, one, NULL, 2), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "class_imbalance"), 0);
	/* A rare class may be, where a tenth of it is wrong. */
	assert_int_equal(ips_outfeed_classes(outfeed, &keys, seen, few, 2), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "class_imbalance"), 0);
	assert_int_equal(ips_outfeed_classes(outfeed, &keys, seen, wrong, 2), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "class_imbalance"), 1);
	public_close(outfeed);
}

static void test_no_more_classes_are_looked_at_than_are_given(void **state)
{
	const int64_t seen[] = {1000, 990, 1};
	const struct ips_keys keys = public_step(0);
	struct ips_outfeed *outfeed = public_open(NULL, NULL);

	(void)state;
	assert_int_equal(ips_outfeed_classes(outfeed, &keys, seen, NULL, 2), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "class_imbalance"), 0);
	assert_int_equal(ips_outfeed_classes(outfeed, &keys, seen, NULL, 3), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "class_imbalance"), 1);
	public_close(outfeed);
}

/* Of a bias it is usual that all its values are equal, of a kernel it is not. */
static void test_a_tensor_of_two_dimensions_is_judged_as_a_kernel(void **state)
{
	struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults("bias");
	const int64_t shape[] = {6};
	const float equal[6] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
	struct ips_outfeed *outfeed = public_open(NULL, NULL);
	struct ips_keys keys = public_step(0);
	struct ips_outfeed_tensor *bias;

	(void)state;
	keys.weight_update = 0;
	params.kind = IPS_OUTFEED_WEIGHT;
	params.shape = shape;
	params.ndim = 1;
	assert_int_equal(ips_outfeed_tensor(outfeed, &bias, &params, message, sizeof(message)), 0);
	assert_int_equal(ips_outfeed_record(bias, &keys, equal, 6), 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "poor_initialization"), 0);
	assert_int_equal(ips_outfeed_record(public_add(outfeed, "kernel", IPS_OUTFEED_WEIGHT, 3, 2),
					    &keys, equal, 6),
			 0);
	assert_int_equal(ips_outfeed_broken(outfeed, "poor_initialization"), 1);
	public_close(outfeed);
}

/* Members that a program does not know have their defaults. */
static void test_an_older_program_knows_fewer_members(void **state)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed *outfeed;

	(void)state;
	params.size = offsetof(struct ips_outfeed_params, without_health);
	params.replicas = -5;
	params.hit = hit;
	outfeed = public_open(NULL, &params);
	record_great(outfeed); /* hit() would fall over without its user */
	assert_int_equal(ips_outfeed_broken(outfeed, "exploding"), 1);
	public_close(outfeed);
}

/* ---- the first bad number -------------------------------------------------------------------- */

static void test_the_first_bad_number_is_written_at_once(void **state)
{
	const float sound[] = {1, 2, 3, 4}, bad[] = {1, 2, 3, -INFINITY};
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;
	struct ips_outfeed_tensor *first, *second;
	struct ips_keys keys = public_step(7);

	(void)state;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, NULL);
	first = public_add(outfeed, "first", IPS_OUTFEED_ACTIVATION, 2, 2);
	second = public_add(outfeed, "second", IPS_OUTFEED_ACTIVATION, 2, 2);
	assert_int_equal(ips_outfeed_record(first, &keys, sound, 4), 0);
	assert_int_equal(ips_outfeed_record(second, &keys, bad, 4), 0);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place.path, "SELECT key, step, element, value FROM first_nonfinite",
		      "second|7|3|-inf\n");
	assert_answer(place.path,
		      "SELECT position, role, key, max FROM nonfinite_trail ORDER BY position",
		      "-1|before|first|4.0\n0|bad|second|3.0\n");
	keys.step++;
	assert_int_equal(ips_outfeed_record(first, &keys, bad, 4), 0);
	public_close(outfeed);
	prof_stop(recording);
	assert_answer(place.path, "SELECT count(*) FROM first_nonfinite", "1\n");
	prof_place_remove(&place);
}

/* A call of another thread that began earlier and has not ended: what it has found is not known. */
static void test_a_bad_number_waits_for_the_calls_before_it(void **state)
{
	const float sound[] = {1, 2}, bad[] = {NAN, 2};
	struct call other = {0};
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;
	struct ips_outfeed_tensor *tensor;

	(void)state;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, NULL);
	tensor = public_add(outfeed, "t", IPS_OUTFEED_GRADIENT, 1, 2);
	other.order = outfeed->next++;
	outfeed->oldest = outfeed->newest = &other;
	assert_int_equal(ips_outfeed_record(tensor, NULL, bad, 2), 0);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place.path, "SELECT count(*) FROM first_nonfinite", "0\n");
	assert_true(outfeed->oldest == &other && outfeed->newest == &other && !other.older &&
		    !other.newer);
	outfeed->oldest = outfeed->newest = NULL;
	assert_int_equal(ips_outfeed_record(tensor, NULL, sound, 2), 0);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place.path, "SELECT key, element FROM first_nonfinite", "t|0\n");
	public_close(outfeed);
	prof_stop(recording);
	prof_place_remove(&place);
}

struct worker {
	struct ips_outfeed *outfeed;
	struct ips_outfeed_tensor *tensor;
	int replica, failed;
};

static void *work(void *context)
{
	struct worker *worker = context;
	float values[64];
	struct ips_keys keys;

	for (int i = 0; i < 64; i++)
		values[i] = (float)i;
	for (int step = 0; step < 200; step++) {
		keys = public_step(step);
		keys.replica = worker->replica;
		values[5] = step >= 100 ? NAN : 5;
		worker->failed |= ips_outfeed_record(worker->tensor, &keys, values, 64);
		if (worker->replica == 0)
			worker->failed |=
				ips_outfeed_loss(worker->outfeed, &keys, 1.0 / (1 + step));
	}
	return NULL;
}

static void test_threads_record_at_once(void **state)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct worker workers[4];
	pthread_t threads[4];
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;
	struct ips_outfeed_tensor *tensor;

	(void)state;
	params.replicas = 4;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, &params);
	tensor = public_add(outfeed, "t", IPS_OUTFEED_GRADIENT, 8, 8);
	for (int i = 0; i < 4; i++) {
		workers[i] = (struct worker){outfeed, tensor, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].failed, 0);
	}
	assert_int_equal(ips_outfeed_broken(outfeed, "nonfinite"), 4);
	public_close(outfeed);
	prof_stop(recording);
	assert_answer(place.path,
		      "SELECT count(*), count(DISTINCT replica), sum(n_nan) FROM tensor_stats",
		      "800|4|400\n");
	assert_answer(place.path, "SELECT count(*), step, element FROM first_nonfinite",
		      "1|100|5\n");
	prof_place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_has_the_rows_of_a_trainer),
		cmocka_unit_test(test_keys_of_the_thread_hold_where_none_are_given),
		cmocka_unit_test(test_nothing_is_done_without_an_outfeed),
		cmocka_unit_test(test_what_must_not_be_null_is_told),
		cmocka_unit_test(test_nothing_is_written_without_a_recording),
		cmocka_unit_test(test_a_tier_of_off_is_no_tensor),
		cmocka_unit_test(test_a_capture_may_begin_with_blanks),
		cmocka_unit_test(test_a_broken_rule_is_told),
		cmocka_unit_test(test_rules_can_be_left_out),
		cmocka_unit_test(test_losses_and_classes_are_judged),
		cmocka_unit_test(test_no_more_classes_are_looked_at_than_are_given),
		cmocka_unit_test(test_a_tensor_of_two_dimensions_is_judged_as_a_kernel),
		cmocka_unit_test(test_an_older_program_knows_fewer_members),
		cmocka_unit_test(test_the_first_bad_number_is_written_at_once),
		cmocka_unit_test(test_a_bad_number_waits_for_the_calls_before_it),
		cmocka_unit_test(test_threads_record_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
