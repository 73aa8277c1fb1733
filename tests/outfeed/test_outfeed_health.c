/*
 * Health rules of tensors: each fires at the row it should, and no earlier.
 */
#include "support/health.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"

/* One way to break a rule: what it makes of a sound row, and what is just sound of the same. */
struct fault {
	enum outfeed_health_id rule;
	enum outfeed_kind kind;
	enum outfeed_activity activity;
	void (*breaks)(struct outfeed_health_row *row);
	void (*almost)(struct outfeed_health_row *row);
	double value, threshold;
	int patience;
	int64_t from;       /* the first update: the first ones are poor_initialization's too */
	const char *others; /* rules that the same rows break rightly: switched off */
};

static void one_nan(struct outfeed_health_row *row)
{
	row->n_nan = 1;
	row->abs_max = NAN;
}

static void two_inf(struct outfeed_health_row *row)
{
	row->n_inf = 2;
	row->abs_max = INFINITY;
}

static void nothing(struct outfeed_health_row *row)
{
	(void)row;
}

static void health_tier_inf(struct outfeed_health_row *row)
{
	struct ips_keys keys = row->keys;

	*row = health_row_unknown(0);
	row->keys = keys;
	row->n = 100;
	row->abs_max = INFINITY;
}

static void health_tier_sound(struct outfeed_health_row *row)
{
	health_tier_inf(row);
	row->abs_max = 0.5;
}

static void greatest_above(struct outfeed_health_row *row)
{
	row->abs_max = row->max = 1000001;
}

static void greatest_at(struct outfeed_health_row *row)
{
	row->abs_max = row->max = 1000000;
}

static void mean_below(struct outfeed_health_row *row)
{
	row->l1 = 99e-9 * 100;
}

static void mean_at(struct outfeed_health_row *row)
{
	row->l1 = 1e-7 * 100;
}

static void inactive_above(struct outfeed_health_row *row)
{
	row->inactive = 0.51;
}

static void inactive_at(struct outfeed_health_row *row)
{
	row->inactive = 0.5;
}

static void equal_values(struct outfeed_health_row *row)
{
	row->std = 0.9e-6 * row->abs_max;
}

static void nearly_equal_values(struct outfeed_health_row *row)
{
	row->std = 1.1e-6 * row->abs_max;
}

static void all_zero(struct outfeed_health_row *row)
{
	row->n_zero = row->n;
	row->min = row->max = row->abs_max = row->mean = row->std = row->l1 = row->l2 = 0;
}

static void one_not_zero(struct outfeed_health_row *row)
{
	row->n_zero = row->n - 1;
}

static void health_tier_zero(struct outfeed_health_row *row)
{
	health_tier_inf(row);
	row->abs_max = 0;
}

static void none_changed(struct outfeed_health_row *row)
{
	row->n_changed = 0;
	row->update_ratio = 0;
}

static void none_changed_visibly(struct outfeed_health_row *row)
{
	row->n_changed = 0;
	row->update_ratio = 1e-5;
}

/* Adam's v of small gradients: 1e-10 on 1e-9. */
static void small_changed(struct outfeed_health_row *row)
{
	row->n_changed = 0;
	row->update_ratio = 1.1e-5;
}

static void one_changed(struct outfeed_health_row *row)
{
	row->n_changed = 1;
}

/* In alternation 1 and 1 + rtol x @times. */
static void wobble(struct outfeed_health_row *row, double times)
{
	struct ips_keys keys = row->keys;

	*row = health_row_sound(0);
	row->keys = keys;
	row->mean = keys.weight_update % 2 == 0 ? 1 : 1 + times * 1e-5;
}

static void same_row(struct outfeed_health_row *row)
{
	wobble(row, 0);
}

static void other_row(struct outfeed_health_row *row)
{
	wobble(row, 1.01);
}

static void update_large(struct outfeed_health_row *row)
{
	row->update_ratio = 10.5;
}

static void update_at(struct outfeed_health_row *row)
{
	row->update_ratio = 10;
}

static void update_small(struct outfeed_health_row *row)
{
	row->update_ratio = 9e-9;
}

static void update_small_at(struct outfeed_health_row *row)
{
	row->update_ratio = 1e-8;
}

#define H(rule) OUTFEED_HEALTH_##rule

static const struct fault faults[] = {
	{H(nonfinite), OUTFEED_GRADIENT, 0, one_nan, nothing, 1, 0, 1, 0, "{}"},
	{H(nonfinite), OUTFEED_ACTIVATION, 0, two_inf, nothing, 2, 0, 1, 0, "{}"},
	{H(nonfinite), OUTFEED_WEIGHT, 0, health_tier_inf, health_tier_sound, INFINITY, 0, 1, 0,
	 "{}"},
	{H(exploding), OUTFEED_OPTIMIZER_STATE, 0, greatest_above, greatest_at, 1000001, 1e6, 1, 0,
	 "{}"},
	{H(vanishing), OUTFEED_GRADIENT, 0, mean_below, mean_at, 99e-9, 1e-7, 5, 0, "{}"},
	{H(dead_relu), OUTFEED_ACTIVATION, OUTFEED_RELU, inactive_above, inactive_at, 0.51, 0.5, 5,
	 0, "{}"},
	{H(saturated_activation), OUTFEED_ACTIVATION, OUTFEED_TANH, inactive_above, inactive_at,
	 0.51, 0.5, 5, 0, "{}"},
	{H(saturated_activation), OUTFEED_ACTIVATION, OUTFEED_SIGMOID, inactive_above, inactive_at,
	 0.51, 0.5, 5, 0, "{}"},
	{H(poor_initialization), OUTFEED_GRADIENT, 0, all_zero, one_not_zero, 0, 0, 5, 0,
	 "{'all_zero': false}"},
	{H(poor_initialization), OUTFEED_GRADIENT, 0, health_tier_zero, health_tier_sound, 0, 0, 5,
	 0, "{'all_zero': false}"},
	{H(unchanged_tensor), OUTFEED_WEIGHT, 0, none_changed, one_changed, 0, 0, 3, 0, "{}"},
	{H(unchanged_tensor), OUTFEED_OPTIMIZER_STATE, 0, none_changed, one_changed, 0, 0, 3, 0,
	 "{}"},
	{H(unchanged_tensor), OUTFEED_OPTIMIZER_STATE, 0, none_changed_visibly, small_changed, 0, 0,
	 3, 0, "{}"},
	{H(all_zero), OUTFEED_GRADIENT, 0, all_zero, one_not_zero, 1, 1, 5, 10, "{}"},
	{H(all_zero), OUTFEED_ACTIVATION, 0, all_zero, one_not_zero, 1, 1, 5, 0, "{}"},
	{H(all_zero), OUTFEED_ACTIVATION, 0, health_tier_zero, health_tier_sound, 1, 1, 5, 0, "{}"},
	{H(update_ratio), OUTFEED_WEIGHT, 0, update_large, update_at, 10.5, 10, 3, 0, "{}"},
	{H(update_ratio), OUTFEED_WEIGHT, 0, update_small, update_small_at, 9e-9, 1e-8, 3, 0, "{}"},
};

/* Feed one row; does it matter to the rules? */
static bool feed(struct outfeed_health_tensor *tensor, int64_t update,
		 void (*change)(struct outfeed_health_row *row))
{
	struct outfeed_health_row row = health_row_sound(update);

	change(&row);
	return outfeed_health_row(tensor, &row);
}

/* @fault's rows until just before its patience ends, then the last one. */
static int64_t break_it(struct health_rig *rig, struct outfeed_health_tensor *tensor,
			const struct fault *fault, int64_t update)
{
	for (int i = 1; i < fault->patience; i++) {
		assert_true(feed(tensor, update++, fault->breaks));
		health_rig_quiet(rig);
	}
	assert_true(feed(tensor, update, fault->breaks));
	assert_int_equal(rig->count, 1);
	assert_close(rig->hits[0].threshold, fault->threshold, 1e-12);
	assert_int_equal(rig->hits[0].tensor_id, 7);
	assert_int_equal(rig->hits[0].replica, 0);
	assert_string_equal(rig->hits[0].key, "t");
	health_rig_expect(rig, fault->rule, update, fault->value);
	return update + 1;
}

static void test_a_rule_fires_at_the_row_that_ends_its_patience_and_once_per_onset(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const struct fault *fault = &faults[i];
		struct outfeed_health_tensor *tensor;
		struct health_rig rig;
		int64_t update = fault->from;

		health_rig_open(&rig, fault->others);
		tensor = health_rig_tensor(&rig, fault->kind, fault->activity);
		update = break_it(&rig, tensor, fault, update);
		for (int more = 0; more < 3; more++)
			assert_true(feed(tensor, update++, fault->breaks)); /* it stays so */
		health_rig_quiet(&rig);
		/* Mended: worth a record, once; then again from the start. */
		if (fault->rule != H(poor_initialization)) {
			assert_true(feed(tensor, update++, fault->almost));
			assert_false(feed(tensor, update++, fault->almost));
			break_it(&rig, tensor, fault, update);
		}
		health_rig_close(&rig);
	}
}

static void test_one_below_is_quiet_for_ever(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct outfeed_health_tensor *tensor;
		struct health_rig rig;

		health_rig_open(&rig, faults[i].others);
		tensor = health_rig_tensor(&rig, faults[i].kind, faults[i].activity);
		for (int64_t update = 0; update < 20; update++)
			assert_false(feed(tensor, update, faults[i].almost));
		health_rig_quiet(&rig);
		health_rig_close(&rig);
	}
}

static void test_a_disabled_rule_is_never_hit(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct outfeed_health_tensor *tensor;
		struct outfeed_health_rules rules;
		struct health_rig rig;

		outfeed_health_defaults(&rules);
		assert_int_equal(health_read(&rules, faults[i].others, NULL), ST_OK);
		rules.rule[faults[i].rule].enabled = false;
		health_rig_open_rules(&rig, &rules);
		tensor = health_rig_tensor(&rig, faults[i].kind, faults[i].activity);
		for (int64_t update = faults[i].from; update < 20; update++)
			assert_false(feed(tensor, update, faults[i].breaks));
		health_rig_quiet(&rig);
		health_rig_close(&rig);
	}
}

static void test_an_interruption_begins_the_patience_anew(void **state)
{
	struct outfeed_health_tensor *tensor;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	tensor = health_rig_tensor(&rig, OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY);
	for (int64_t update = 0; update < 40; update++)
		feed(tensor, update, update % 5 == 4 ? mean_at : mean_below);
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

static void test_what_is_not_known_neither_breaks_nor_mends(void **state)
{
	struct outfeed_health_row unknown;
	struct outfeed_health_tensor *tensor;
	struct health_rig rig;
	int64_t update = 0;

	(void)state;
	for (int kind = 0; kind < OUTFEED_KINDS; kind++) {
		health_rig_open(&rig, NULL);
		tensor = health_rig_tensor(&rig, (enum outfeed_kind)kind, OUTFEED_RELU);
		for (int i = 0; i < 20; i++) {
			unknown = health_row_unknown(i);
			unknown.n = 100;
			unknown.n_nan = unknown.n_inf = 0; /* tier counts, say */
			assert_false(outfeed_health_row(tensor, &unknown));
		}
		health_rig_quiet(&rig);
		health_rig_close(&rig);
	}

	health_rig_open(&rig, NULL);
	tensor = health_rig_tensor(&rig, OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY);
	for (; update < 4; update++)
		feed(tensor, update, mean_below);
	unknown = health_row_unknown(update++);
	unknown.n_nan = unknown.n_inf = 0;
	assert_false(outfeed_health_row(tensor, &unknown));
	health_rig_quiet(&rig);
	feed(tensor, update, mean_below);
	health_rig_expect(&rig, H(vanishing), update, 99e-9);
	health_rig_close(&rig);
}

/* Of no values, or of nobody knows how many, it says nothing that the greatest is 0. */
static void test_where_no_values_are_counted_none_are_zero(void **state)
{
	static const int64_t counts[] = {IPS_NULL, 0};
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct outfeed_health_tensor *tensor =
			health_rig_tensor(&rig, OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY);

		for (int64_t update = 0; update < 10; update++) {
			struct outfeed_health_row row = health_row_unknown(update);

			row.n = counts[i];
			row.abs_max = 0;
			assert_false(outfeed_health_row(tensor, &row));
		}
	}
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

/* A recording that is judged again may be damaged. */
static void test_counts_of_a_damaged_recording_do_not_overflow(void **state)
{
	static const int64_t counts[][3] = {
		{INT64_MAX, INT64_MAX, INT64_MAX},
		{-INT64_MAX, INT64_MAX, INT64_MAX},
		{IPS_NULL, INT64_MAX, INT64_MAX},
		{INT64_MAX, -INT64_MAX, -INT64_MAX},
	};
	struct health_rig rig;

	(void)state;
	for (int kind = 0; kind < OUTFEED_KINDS; kind++) {
		struct outfeed_health_tensor *tensor;

		health_rig_open(&rig, NULL);
		tensor = health_rig_tensor(&rig, (enum outfeed_kind)kind, OUTFEED_RELU);
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			struct outfeed_health_row row = health_row_unknown((int64_t)i);

			row.n = counts[i][0];
			row.n_nan = counts[i][1];
			row.n_inf = counts[i][2];
			row.n_zero = row.n_changed = counts[i][0];
			row.abs_max = row.min = row.max = row.mean = row.std = row.l1 = row.l2 = 1;
			outfeed_health_row(tensor, &row);
		}
		health_rig_close(&rig);
	}
}

static void test_the_greatest_finite_value_explodes_beside_a_nan(void **state)
{
	struct outfeed_health_row row = health_row_sound(0);
	struct outfeed_health_tensor *tensor;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	tensor = health_rig_tensor(&rig, OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY);
	one_nan(&row);
	row.min = -2e7;
	outfeed_health_row(tensor, &row);
	assert_int_equal(rig.count, 2);
	assert_int_equal(rig.hits[0].rule, H(nonfinite));
	assert_int_equal(rig.hits[1].rule, H(exploding));
	assert_close(rig.hits[1].value, 2e7, 1e-12);
	health_rig_close(&rig);
}

static void test_few_cases_say_nothing_of_dead_neurons(void **state)
{
	struct outfeed_health_about_tensor about = {.tensor_id = 1,
						    .kind = OUTFEED_ACTIVATION,
						    .activity = OUTFEED_RELU,
						    .neurons = 7}; /* 100 values: 14 cases */
	struct outfeed_health_tensor *few, *enough;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	assert_int_equal(outfeed_health_tensor(rig.health, &few, &about, NULL), ST_OK);
	about.neurons = 6; /* 16 */
	assert_int_equal(outfeed_health_tensor(rig.health, &enough, &about, NULL), ST_OK);
	for (int64_t update = 0; update < 5; update++) {
		feed(few, update, inactive_above);
		health_rig_quiet(&rig);
		feed(enough, update, inactive_above);
	}
	health_rig_expect(&rig, H(dead_relu), 4, 0.51);
	health_rig_close(&rig);
}

static void test_only_activations_that_can_be_dead_or_flat_are_asked(void **state)
{
	static const struct {
		enum outfeed_kind kind;
		enum outfeed_activity activity;
	} others[] = {{OUTFEED_ACTIVATION, OUTFEED_NO_ACTIVITY},
		      {OUTFEED_GRADIENT, OUTFEED_RELU},
		      {OUTFEED_WEIGHT, OUTFEED_SIGMOID}};
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct outfeed_health_tensor *tensor =
			health_rig_tensor(&rig, others[i].kind, others[i].activity);

		for (int64_t update = 0; update < 10; update++)
			feed(tensor, update, inactive_above);
	}
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

static void test_biases_are_not_asked_what_only_kernels_answer(void **state)
{
	struct outfeed_health_about_tensor about = {.kind = OUTFEED_WEIGHT};
	struct outfeed_health_tensor *bias, *gradient;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'all_zero': false}");
	assert_int_equal(outfeed_health_tensor(rig.health, &bias, &about, NULL), ST_OK);
	about.kind = OUTFEED_GRADIENT;
	assert_int_equal(outfeed_health_tensor(rig.health, &gradient, &about, NULL), ST_OK);
	for (int64_t update = 0; update < 10; update++) {
		feed(bias, update, equal_values);
		feed(bias, update, update_large);
		feed(gradient, update, all_zero);
	}
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

static void test_a_kernel_of_equal_values_is_hit_in_its_first_row(void **state)
{
	struct outfeed_health_tensor *constant, *zero, *sound, *late;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	constant = health_rig_tensor(&rig, OUTFEED_WEIGHT, OUTFEED_NO_ACTIVITY);
	zero = health_rig_tensor(&rig, OUTFEED_WEIGHT, OUTFEED_NO_ACTIVITY);
	sound = health_rig_tensor(&rig, OUTFEED_WEIGHT, OUTFEED_NO_ACTIVITY);
	late = health_rig_tensor(&rig, OUTFEED_WEIGHT, OUTFEED_NO_ACTIVITY);
	feed(constant, 0, equal_values);
	health_rig_expect(&rig, H(poor_initialization), 0, 0.25 * 4 * 0.81e-12);
	feed(zero, 0, all_zero);
	health_rig_expect(&rig, H(poor_initialization), 0, 0);
	feed(sound, 0, nearly_equal_values); /* a zero kernel that learns */
	for (int64_t update = 1; update < 10; update++)
		feed(zero, update, all_zero);
	feed(late, 10, all_zero); /* after the first 10 updates */
	health_rig_quiet(&rig);
	health_rig_close(&rig);
}

/* The row before counts, so the first of three like it is the second that is seen. */
static void test_an_activation_that_stays_within_rtol_is_unchanged(void **state)
{
	struct outfeed_health_tensor *tensor, *other;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	tensor = health_rig_tensor(&rig, OUTFEED_ACTIVATION, OUTFEED_NO_ACTIVITY);
	other = health_rig_tensor(&rig, OUTFEED_ACTIVATION, OUTFEED_NO_ACTIVITY);
	for (int64_t update = 0; update < 3; update++) {
		feed(tensor, update, same_row);
		health_rig_quiet(&rig);
	}
	feed(tensor, 3, same_row);
	health_rig_expect(&rig, H(unchanged_tensor), 3, 0);
	for (int64_t update = 0; update < 10; update++)
		assert_false(feed(other, update, other_row));
	health_rig_close(&rig);
}

static void test_zeros_are_told_of_by_one_rule(void **state)
{
	struct outfeed_health_tensor *tensor;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, NULL);
	tensor = health_rig_tensor(&rig, OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY);
	for (int64_t update = 100; update < 120; update++)
		feed(tensor, update, all_zero);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.hits[0].rule, H(all_zero));
	health_rig_close(&rig);
}

static void test_thresholds_of_others_move_the_hits(void **state)
{
	struct outfeed_health_tensor *tensor;
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'exploding': {'threshold': 0.5, 'patience': 2},"
			      " 'all_zero': {'threshold': 0.03, 'patience': 3}}");
	tensor = health_rig_tensor(&rig, OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY);
	feed(tensor, 0, nothing);
	health_rig_quiet(&rig);
	feed(tensor, 1, nothing);
	health_rig_expect(&rig, H(exploding), 1, 1.01);
	feed(tensor, 2, nothing);
	health_rig_expect(&rig, H(all_zero), 2, 0.03);
	health_rig_close(&rig);
}

static void test_no_memory_is_no_engine_and_no_tensor(void **state)
{
	struct outfeed_health_about_tensor about = {.key = "k", .layer = "l"};
	struct outfeed_health_rules rules;
	struct outfeed_health_params params = {.rules = &rules};
	enum status status = ST_NOMEM;

	(void)state;
	outfeed_health_defaults(&rules);
	for (long n = 0; status == ST_NOMEM; n++) {
		struct outfeed_health *health;
		struct outfeed_health_tensor *tensor = NULL;

		support_fail_alloc(n);
		status = outfeed_health_new(&health, &params, NULL);
		if (status == ST_OK)
			status = outfeed_health_tensor(health, &tensor, &about, NULL);
		assert_int_equal(status, support_alloc_failed() ? ST_NOMEM : ST_OK);
		assert_true((tensor != NULL) == (status == ST_OK));
		support_fail_alloc(-1);
		outfeed_health_free(health);
	}
	outfeed_health_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_rule_fires_at_the_row_that_ends_its_patience_and_once_per_onset),
		cmocka_unit_test(test_one_below_is_quiet_for_ever),
		cmocka_unit_test(test_a_disabled_rule_is_never_hit),
		cmocka_unit_test(test_an_interruption_begins_the_patience_anew),
		cmocka_unit_test(test_what_is_not_known_neither_breaks_nor_mends),
		cmocka_unit_test(test_where_no_values_are_counted_none_are_zero),
		cmocka_unit_test(test_counts_of_a_damaged_recording_do_not_overflow),
		cmocka_unit_test(test_the_greatest_finite_value_explodes_beside_a_nan),
		cmocka_unit_test(test_few_cases_say_nothing_of_dead_neurons),
		cmocka_unit_test(test_only_activations_that_can_be_dead_or_flat_are_asked),
		cmocka_unit_test(test_biases_are_not_asked_what_only_kernels_answer),
		cmocka_unit_test(test_a_kernel_of_equal_values_is_hit_in_its_first_row),
		cmocka_unit_test(test_an_activation_that_stays_within_rtol_is_unchanged),
		cmocka_unit_test(test_zeros_are_told_of_by_one_rule),
		cmocka_unit_test(test_thresholds_of_others_move_the_hits),
		cmocka_unit_test(test_no_memory_is_no_engine_and_no_tensor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
