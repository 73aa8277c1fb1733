/*
 * Health rules of losses, epochs and classes, and of the first updates.
 */
#include "support/health.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"

#define H(rule) OUTFEED_HEALTH_##rule

static void feed_loss(struct health_rig *rig, int64_t step, double loss)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.step = keys.weight_update = step;
	outfeed_health_loss(rig->health, &keys, 1000 * step, loss);
}

static void feed_epoch(struct health_rig *rig, int64_t epoch, double loss, double val_loss)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.epoch = epoch;
	outfeed_health_epoch(rig->health, &keys, 1000 * epoch, loss, val_loss, !isnan(val_loss));
}

static void feed_classes(struct health_rig *rig, int64_t samples, double imbalance,
			 double misprediction)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	outfeed_health_classes(rig->health, &keys, 0, samples, imbalance, misprediction);
}

static void expect_last(const struct health_rig *rig, int count, enum outfeed_health_id rule,
			const char *key, double value)
{
	const struct health_rig_hit *hit = &rig->hits[count - 1];

	assert_int_equal(rig->count, count);
	assert_int_equal(hit->rule, rule);
	assert_string_equal(hit->key, key);
	assert_int_equal(hit->tensor_id, IPS_NULL);
	assert_close(hit->value, value, 1e-9);
}

static void test_ten_losses_within_a_thousandth_are_stuck(void **state)
{
	struct health_rig rig;
	int64_t step = 0;

	(void)state;
	health_rig_open(&rig, NULL);
	feed_loss(&rig, step++, 2.5);
	for (int i = 0; i < 9; i++)
		feed_loss(&rig, step++, i % 2 ? 2.3 : 2.302);
	health_rig_quiet(&rig); /* the first of the ten was another */
	feed_loss(&rig, step++, 2.301);
	expect_last(&rig, 1, H(loss_not_decreasing), "loss", 0.002 / 2.302);
	assert_int_equal(rig.hits[0].step, 10);
	for (int i = 0; i < 20; i++)
		feed_loss(&rig, step++, 2.301);
	assert_int_equal(rig.count, 1);
	feed_loss(&rig, step++, 2.29); /* it moves, and is stuck again */
	for (int i = 0; i < 9; i++)
		feed_loss(&rig, step++, 2.301);
	assert_int_equal(rig.count, 1);
	feed_loss(&rig, step++, 2.301);
	expect_last(&rig, 2, H(loss_not_decreasing), "loss", 0);
	health_rig_close(&rig);
}

/* The greatest of ten losses is 2, the least 1: half of the greatest lies between them. */
static void test_losses_exactly_as_far_apart_as_the_threshold_are_stuck(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'loss_not_decreasing': {'threshold': 0.5}}");
	for (int64_t step = 0; step < 10; step++)
		feed_loss(&rig, step, step == 4 ? 1 : 2);
	expect_last(&rig, 1, H(loss_not_decreasing), "loss", 0.5);
	health_rig_close(&rig);
}

static void test_losses_just_further_apart_and_those_that_are_nothing_are_quiet(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	for (int64_t step = 0; step < 50; step++)
		feed_loss(&rig, step, step % 9 == 0 ? 2.0021 : 2);
	for (int64_t step = 50; step < 100; step++)
		feed_loss(&rig, step, 0.9e-7);
	for (int64_t step = 100; step < 150; step++)
		feed_loss(&rig, step, 0);
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

static void test_a_loss_that_is_not_finite_is_hit_once_and_begins_the_ten_anew(void **state)
{
	struct health_rig rig;
	int64_t step = 0;

	(void)state;
	health_rig_open(&rig, NULL);
	for (int i = 0; i < 9; i++)
		feed_loss(&rig, step++, 1);
	feed_loss(&rig, step++, NAN);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.hits[0].rule, H(nonfinite));
	assert_string_equal(rig.hits[0].key, "loss");
	assert_true(isnan(rig.hits[0].value));
	feed_loss(&rig, step++, INFINITY);
	feed_epoch(&rig, 1, NAN, NAN); /* its steps have told */
	for (int i = 0; i < 9; i++)
		feed_loss(&rig, step++, 1);
	assert_int_equal(rig.count, 1);
	feed_loss(&rig, step++, 1);
	expect_last(&rig, 2, H(loss_not_decreasing), "loss", 0);
	feed_loss(&rig, step++, -INFINITY);
	expect_last(&rig, 3, H(nonfinite), "loss", -INFINITY);
	health_rig_close(&rig);
}

static void test_epochs_alone_tell_of_losses_that_are_not_finite(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	feed_epoch(&rig, 1, 1, 1);
	feed_epoch(&rig, 2, 0.9, INFINITY);
	expect_last(&rig, 1, H(nonfinite), "val_loss", INFINITY);
	feed_epoch(&rig, 3, INFINITY, INFINITY);
	expect_last(&rig, 2, H(nonfinite), "loss", INFINITY);
	health_rig_close(&rig);
}

static void test_an_epoch_must_be_a_thousandth_below_the_best_before(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	feed_epoch(&rig, 1, 1, NAN);
	feed_epoch(&rig, 2, 0.9989, NAN);
	health_rig_quiet(&rig);
	feed_epoch(&rig, 3, 0.9981, NAN);
	expect_last(&rig, 1, H(loss_not_decreasing), "loss", 0.0008 / 0.9989);
	assert_int_equal(rig.hits[0].epoch, 3);
	assert_int_equal(rig.hits[0].step, IPS_NULL);
	feed_epoch(&rig, 4, 2, NAN); /* still */
	feed_epoch(&rig, 5, 0.5, NAN);
	feed_epoch(&rig, 6, NAN, NAN);      /* not asked */
	assert_int_equal(rig.count, 1 + 1); /* nonfinite */
	feed_epoch(&rig, 7, 0.51, NAN);
	assert_close(rig.hits[rig.count - 1].value, -0.02, 1e-9);
	health_rig_close(&rig);
}

static void test_patience_of_epochs_and_of_a_loss_of_nothing(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'loss_not_decreasing': {'patience': 2}}");
	feed_epoch(&rig, 1, 1, NAN);
	feed_epoch(&rig, 2, 1, NAN);
	health_rig_quiet(&rig);
	feed_epoch(&rig, 3, 1, NAN);
	assert_int_equal(rig.count, 1);
	health_rig_close(&rig);

	health_rig_open(&rig, NULL);
	for (int64_t epoch = 1; epoch < 5; epoch++)
		feed_epoch(&rig, epoch, 0.9e-7, NAN);
	for (int64_t epoch = 5; epoch < 9; epoch++)
		feed_epoch(&rig, epoch, 0, NAN);
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

/* Far above the training's, and learning all the while. */
static void test_a_validation_loss_that_falls_is_not_overfit(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	for (int epoch = 1; epoch <= 5; epoch++)
		feed_epoch(&rig, epoch, 1.0 / (epoch * epoch), 2.0 / epoch);
	health_rig_quiet(&rig);
	feed_epoch(&rig, 6, 0.02, 0.4);
	expect_last(&rig, 1, H(overfit), "val_loss", (0.4 - 0.02) / 0.02);
	health_rig_close(&rig);
}

static void test_validation_a_tenth_above_training_is_overfit(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	feed_epoch(&rig, 1, 2.1, 2.2);
	health_rig_quiet(&rig);
	feed_epoch(&rig, 2, 2, 2.202);
	expect_last(&rig, 1, H(overfit), "val_loss", 0.101);
	feed_epoch(&rig, 3, 0.5, 5);
	feed_epoch(&rig, 4, 0.25, 0.2);
	assert_int_equal(rig.count, 1);
	feed_epoch(&rig, 5, 0.125, 1.125);
	expect_last(&rig, 2, H(overfit), "val_loss", 8);
	feed_epoch(&rig, 6, 0, 1); /* nothing to compare with */
	feed_epoch(&rig, 7, -1, 1);
	assert_int_equal(health_rig_count(&rig, H(overfit)), 2);
	health_rig_close(&rig);
}

static void test_an_imbalance_counts_from_500_samples_where_a_class_is_missed(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	feed_classes(&rig, 499, 100, 1);
	feed_classes(&rig, 500, 10, 1);
	feed_classes(&rig, 600, 11, 0.7);
	feed_classes(&rig, 700, NAN, 1);
	health_rig_quiet(&rig);
	feed_classes(&rig, 800, 11, 0.71);
	expect_last(&rig, 1, H(class_imbalance), "classes", 11);
	feed_classes(&rig, 900, 11, 0.71);
	feed_classes(&rig, 1000, 9, 0.71);
	assert_int_equal(rig.count, 1);
	feed_classes(&rig, 1100, 12, NAN);
	expect_last(&rig, 2, H(class_imbalance), "classes", 12);
	health_rig_close(&rig);
}

static void test_disabled_rules_of_losses_are_never_hit(void **state)
{
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'loss_not_decreasing': false, 'nonfinite': false,"
			      " 'overfit': {'enabled': false}, 'class_imbalance': false}");
	for (int64_t step = 0; step < 20; step++)
		feed_loss(&rig, step, 1);
	feed_loss(&rig, 20, NAN);
	feed_epoch(&rig, 1, 1, 5);
	feed_epoch(&rig, 2, 1, INFINITY);
	feed_classes(&rig, 1000, 100, 1);
	outfeed_health_evaluate(rig.health);
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

/* ---- the first updates ----------------------------------------------------------------------- */

static struct outfeed_health_tensor *add(struct health_rig *rig, int64_t id, int64_t replica,
					 enum outfeed_kind kind)
{
	struct outfeed_health_about_tensor about = {
		.tensor_id = id, .replica = replica, .key = "k", .kind = kind, .matrix = true};
	struct outfeed_health_tensor *tensor;

	assert_int_equal(outfeed_health_tensor(rig->health, &tensor, &about, NULL), ST_OK);
	return tensor;
}

static void feed_std(struct outfeed_health_tensor *tensor, int64_t update, double std)
{
	struct outfeed_health_row row = health_row_sound(update);

	row.std = std;
	outfeed_health_row(tensor, &row);
}

/* Kernels of @ratio between their variances, a gradient of @range, and 10 losses. */
static void first_updates(struct health_rig *rig, double ratio, double range, const double *losses)
{
	struct outfeed_health_tensor *small, *large, *gradient;

	health_rig_open(rig, "{'loss_not_decreasing': false, 'nonfinite': false}");
	small = add(rig, 1, 0, OUTFEED_WEIGHT);
	large = add(rig, 2, 0, OUTFEED_WEIGHT);
	gradient = add(rig, 3, 0, OUTFEED_GRADIENT);
	for (int64_t update = 0; update < 10; update++) {
		feed_std(small, update, update == 0 ? 0.01 : 1); /* the first row counts */
		feed_std(large, update, 0.01 * sqrt(ratio));
		feed_std(gradient, update, range / 3.29 * (double)(update + 1));
		feed_loss(rig, update, losses[update]);
		outfeed_health_evaluate(rig->health);
		if (update < 9)
			health_rig_quiet(rig);
	}
	outfeed_health_evaluate(rig->health); /* judged once */
}

static const double stuck[10] = {2, 1.9, 2.1, 1.9, 2, 2.1, 2, 1.91, 2.05, 1.95};

static void test_kernels_far_apart_are_poor_where_the_loss_does_not_fall(void **state)
{
	struct health_rig rig;

	(void)state;
	first_updates(&rig, 10.1, 1, stuck);
	health_rig_expect(&rig, H(poor_initialization), 9, 10.1);
	assert_int_equal(rig.hits[0].tensor_id, 1);
	health_rig_close(&rig);

	first_updates(&rig, 1, 0.0009, stuck);
	health_rig_expect(&rig, H(poor_initialization), 9, 0.0009);
	assert_int_equal(rig.hits[0].tensor_id, 3);
	health_rig_close(&rig);

	first_updates(&rig, 9.9, 0.0011, stuck);
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

static void test_where_the_loss_falls_or_is_nothing_the_first_kernels_may_be_any(void **state)
{
	static const double falls[3][10] = {
		{2, 1.9, 2.1, 1.9, 2, 2.1, 2, 1.89, 2.05, 1.95}, /* a new least one */
		{2, 1.9, 2.1, 2, 2.9, 2.1, 2, 2.05, 1.95, 1.91}, /* less on average */
		{2, 1.9, 2.1, 2, 1.9, 2.1, 2, NAN, 1.95, 1.91},
	};
	struct health_rig rig;

	(void)state;
	for (int i = 0; i < 3; i++) {
		first_updates(&rig, 100, 1e-5, falls[i]);
		health_rig_quiet(&rig);
		health_rig_close(&rig);
	}
}

/* A bias far from all kernels, and an activation and the gradient of a bias of nearly nothing. */
static void test_kernels_and_their_gradients_alone_are_compared(void **state)
{
	static const struct {
		enum outfeed_kind kind;
		bool matrix;
		double std;
	} others[] = {
		{OUTFEED_WEIGHT, false, 1e6},
		{OUTFEED_GRADIENT, false, 1e-9},
		{OUTFEED_ACTIVATION, true, 1e-9},
		{OUTFEED_OPTIMIZER_STATE, true, 1e6},
	};
	struct outfeed_health_tensor *kernel, *gradient, *other;
	struct health_rig rig;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		const struct outfeed_health_about_tensor about = {.tensor_id = 3,
								  .key = "k",
								  .kind = others[i].kind,
								  .matrix = others[i].matrix};

		health_rig_open(&rig, "{'loss_not_decreasing': false, 'nonfinite': false}");
		kernel = add(&rig, 1, 0, OUTFEED_WEIGHT);
		gradient = add(&rig, 2, 0, OUTFEED_GRADIENT);
		assert_int_equal(outfeed_health_tensor(rig.health, &other, &about, NULL), ST_OK);
		for (int64_t update = 0; update < 10; update++) {
			feed_std(kernel, update, 1);
			feed_std(gradient, update, 1);
			feed_std(other, update, others[i].std);
			feed_loss(&rig, update, stuck[update]);
		}
		outfeed_health_evaluate(rig.health);
		for (int n = 0; n < rig.count; n++)
			assert_int_not_equal(rig.hits[n].rule, H(poor_initialization));
		health_rig_close(&rig);
	}
}

static void test_replicas_have_their_own_kernels(void **state)
{
	struct outfeed_health_tensor *tensors[4];
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'loss_not_decreasing': false}");
	for (int i = 0; i < 4; i++)
		tensors[i] = add(&rig, i, i / 2, OUTFEED_WEIGHT);
	for (int i = 0; i < 4; i++)
		feed_std(tensors[i], 0, i == 3 ? 0.1 : i == 2 ? 1 : 5);
	for (int64_t step = 0; step < 10; step++)
		feed_loss(&rig, step, stuck[step]);
	outfeed_health_evaluate(rig.health);
	health_rig_quiet(&rig); /* the other replica's first rows may still be on their way */
	feed_std(tensors[0], 2, 5);
	outfeed_health_evaluate(rig.health);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.hits[0].tensor_id, 3);
	assert_int_equal(rig.hits[0].replica, 1);
	assert_close(rig.hits[0].value, 100, 1e-9);
	health_rig_close(&rig);
}

/* ---- a training that goes on ----------------------------------------------------------------- */

struct kept {
	bool reads;
	int count;
	struct {
		const char *name;
		char data[512];
		size_t bytes;
	} entries[8];
};

static bool keep(void *user, const char *name, void *data, size_t bytes)
{
	struct kept *kept = user;

	assert_true(bytes <= sizeof(kept->entries[0].data));
	for (int i = 0; kept->reads && i < kept->count; i++) {
		if (strcmp(kept->entries[i].name, name) == 0) {
			assert_int_equal(kept->entries[i].bytes, bytes);
			memcpy(data, kept->entries[i].data, bytes);
			return true;
		}
	}
	assert_false(kept->reads);
	assert_true(kept->count < (int)ARRAY_LEN(kept->entries));
	kept->entries[kept->count].name = name;
	kept->entries[kept->count].bytes = bytes;
	memcpy(kept->entries[kept->count++].data, data, bytes);
	return true;
}

/* Nine of the ten losses were those of the training before; nothing was ever broken in it. */
static void test_a_state_goes_on_where_it_was_stored(void **state)
{
	struct kept kept = {0};
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	for (int64_t step = 0; step < 9; step++)
		feed_loss(&rig, step, 2);
	outfeed_health_state(rig.health, keep, &kept);
	health_rig_quiet(&rig);
	health_rig_close(&rig);

	kept.reads = true;
	health_rig_open(&rig, NULL);
	outfeed_health_state(rig.health, keep, &kept);
	feed_loss(&rig, 9, 2);
	expect_last(&rig, 1, H(loss_not_decreasing), "loss", 0);
	health_rig_close(&rig);
}

/* All that is stored of a rig and of a tensor of its. */
static void store(struct kept *kept, struct health_rig *rig, struct outfeed_health_tensor *tensor)
{
	*kept = (struct kept){0};
	outfeed_health_state(rig->health, keep, kept);
	outfeed_health_tensor_state(tensor, "tensor", keep, kept);
}

static void assert_same_state(const struct kept *a, const struct kept *b)
{
	assert_int_equal(a->count, b->count);
	for (int i = 0; i < a->count; i++) {
		assert_string_equal(a->entries[i].name, b->entries[i].name);
		assert_int_equal(a->entries[i].bytes, b->entries[i].bytes);
		assert_memory_equal(a->entries[i].data, b->entries[i].data, a->entries[i].bytes);
	}
}

/* Counts stand first in an entry. Those of a tensor have eight real numbers behind them. */
static void test_a_state_is_taken_whole_or_not_at_all(void **state)
{
	const int64_t bad[] = {-1, (INT64_C(1) << 48) + 1};
	struct kept kept, fresh, after;
	struct outfeed_health_tensor *tensor;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	tensor = add(&rig, 1, 0, OUTFEED_WEIGHT);
	store(&fresh, &rig, tensor);
	for (int64_t step = 0; step < 5; step++) {
		feed_std(tensor, step, 1);
		feed_loss(&rig, step, 2);
	}
	store(&kept, &rig, tensor);
	health_rig_close(&rig);
	for (int e = -1; e < kept.count; e++) {
		const bool counts = e >= 0 && strcmp(kept.entries[e].name, "counts") == 0,
			   own = e >= 0 && strcmp(kept.entries[e].name, "tensor") == 0;
		const size_t count = counts ? kept.entries[e].bytes / 8
				     : own  ? kept.entries[e].bytes / 8 - 8
					    : e < 0;

		for (size_t i = 0; i < 2 * count; i++) {
			struct kept damaged = kept, expected = e < 0 ? kept : fresh;

			if (e >= 0)
				memcpy(damaged.entries[e].data + 8 * (i / 2), &bad[i % 2], 8);
			damaged.reads = true;
			health_rig_open(&rig, NULL);
			tensor = add(&rig, 1, 0, OUTFEED_WEIGHT);
			if (own || e < 0)
				outfeed_health_tensor_state(tensor, "tensor", keep, &damaged);
			if (counts || e < 0)
				outfeed_health_state(rig.health, keep, &damaged);
			store(&after, &rig, tensor);
			assert_same_state(&after, &expected);
			health_rig_close(&rig);
		}
	}
}

/* The counts of a stored state may be anything: greater ones could overflow as they go on. */
static void test_stored_counts_are_from_none_to_two_to_the_48(void **state)
{
	const int64_t most = INT64_C(1) << 48, good[] = {0, most}, above[] = {0, most + 1},
		      below[] = {-1, most};

	(void)state;
	assert_true(outfeed_health_are_counts(good, ARRAY_LEN(good)));
	assert_false(outfeed_health_are_counts(above, ARRAY_LEN(above)));
	assert_false(outfeed_health_are_counts(below, ARRAY_LEN(below)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ten_losses_within_a_thousandth_are_stuck),
		cmocka_unit_test(test_losses_exactly_as_far_apart_as_the_threshold_are_stuck),
		cmocka_unit_test(
			test_losses_just_further_apart_and_those_that_are_nothing_are_quiet),
		cmocka_unit_test(
			test_a_loss_that_is_not_finite_is_hit_once_and_begins_the_ten_anew),
		cmocka_unit_test(test_epochs_alone_tell_of_losses_that_are_not_finite),
		cmocka_unit_test(test_an_epoch_must_be_a_thousandth_below_the_best_before),
		cmocka_unit_test(test_patience_of_epochs_and_of_a_loss_of_nothing),
		cmocka_unit_test(test_a_validation_loss_that_falls_is_not_overfit),
		cmocka_unit_test(test_validation_a_tenth_above_training_is_overfit),
		cmocka_unit_test(test_an_imbalance_counts_from_500_samples_where_a_class_is_missed),
		cmocka_unit_test(test_disabled_rules_of_losses_are_never_hit),
		cmocka_unit_test(test_kernels_far_apart_are_poor_where_the_loss_does_not_fall),
		cmocka_unit_test(
			test_where_the_loss_falls_or_is_nothing_the_first_kernels_may_be_any),
		cmocka_unit_test(test_replicas_have_their_own_kernels),
		cmocka_unit_test(test_kernels_and_their_gradients_alone_are_compared),
		cmocka_unit_test(test_a_state_goes_on_where_it_was_stored),
		cmocka_unit_test(test_a_state_is_taken_whole_or_not_at_all),
		cmocka_unit_test(test_stored_counts_are_from_none_to_two_to_the_48),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
