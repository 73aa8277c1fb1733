/*
 * Random rows: the state machine against verdicts written down one by one and counted afterwards.
 */
#include "support/health.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define ROWS  400
#define SEEDS 300

static uint32_t random_state;

static uint32_t random_below(uint32_t count)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % count;
}

static bool one_in(uint32_t count)
{
	return random_below(count) == 0;
}

/* Mostly like the row before, so that faults last a while; anything may be unknown. */
static void change(struct outfeed_health_row *row)
{
	static const double sizes[] = {0, 1e-9, 1e-8, 0.1, 1, 2, 20, 2e6, INFINITY, NAN};
	double *const reals[] = {&row->abs_max, &row->min,      &row->max,
				 &row->mean,    &row->std,      &row->l1,
				 &row->l2,      &row->inactive, &row->update_ratio};
	int64_t *const counts[] = {&row->n_nan, &row->n_inf, &row->n_zero, &row->n_changed};

	for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
		if (one_in(12))
			*reals[i] = sizes[random_below(10)];
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (one_in(12))
			*counts[i] = one_in(5) ? IPS_NULL : (int64_t)random_below(3) * 5;
	row->n = 10;
	if (one_in(12))
		row->n_zero = 10;
}

struct what {
	enum outfeed_kind kind;
	enum outfeed_activity activity;
	bool matrix;
};

/* 1: broken, 0: sound, -1: not asked. */
typedef int (*verdict_fn)(const struct what *what, const struct outfeed_health_row *rows, int at);

static bool counted(const struct outfeed_health_row *r)
{
	return r->n_nan != IPS_NULL && r->n_inf != IPS_NULL;
}

static int v_nonfinite(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	const struct outfeed_health_row *r = &rows[at];

	(void)what;
	return counted(r) ? r->n_nan > 0 || r->n_inf > 0 : isnan(r->abs_max) || isinf(r->abs_max);
}

static int v_exploding(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	const struct outfeed_health_row *r = &rows[at];
	bool min = !isnan(r->min), max = !isnan(r->max);
	double most = -1;

	(void)what;
	if (isfinite(r->abs_max))
		return r->abs_max > 1e6;
	if (!min && !max)
		return -1;
	if (min)
		most = fabs(r->min);
	if (max && fabs(r->max) > most)
		most = fabs(r->max);
	return isinf(most) ? -1 : most > 1e6;
}

static int v_vanishing(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	const struct outfeed_health_row *r = &rows[at];
	int64_t finite = counted(r) ? r->n - r->n_nan - r->n_inf : r->n;

	if (what->kind != OUTFEED_GRADIENT || isnan(r->l1) || finite <= 0)
		return -1;
	return r->l1 > 0 && r->l1 / (double)finite < 1e-7;
}

static int v_inactive(const struct what *what, const struct outfeed_health_row *r, bool relu)
{
	bool is_relu = what->activity == OUTFEED_RELU;

	if (what->kind != OUTFEED_ACTIVATION || what->activity == OUTFEED_NO_ACTIVITY ||
	    is_relu != relu || isnan(r->inactive))
		return -1;
	return r->inactive > 0.5;
}

static int v_dead(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	return v_inactive(what, &rows[at], true);
}

static int v_saturated(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	return v_inactive(what, &rows[at], false);
}

/* 1: all, 0: not all, -1: unknown. */
static int all_zero(const struct outfeed_health_row *r)
{
	if (r->n_zero != IPS_NULL)
		return r->n_zero == r->n;
	if (r->abs_max == 0)
		return 1;
	return isnan(r->abs_max) && r->n_nan != IPS_NULL ? -1 : 0;
}

static int v_all_zero(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	if (what->kind != OUTFEED_GRADIENT && what->kind != OUTFEED_ACTIVATION)
		return -1;
	return all_zero(&rows[at]);
}

static int v_silent(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	return what->kind == OUTFEED_GRADIENT && what->matrix && at < 10 ? all_zero(&rows[at]) : -1;
}

static int v_constant(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	const struct outfeed_health_row *r = &rows[at];

	if (what->kind != OUTFEED_WEIGHT || !what->matrix || at >= 10 || isnan(r->std) ||
	    !isfinite(r->abs_max))
		return -1;
	return r->std <= 1e-6 * r->abs_max;
}

static int v_unchanged(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	const struct outfeed_health_row *r = &rows[at];
	double a[6], b[6];
	bool close = true;

	if (what->kind == OUTFEED_WEIGHT || what->kind == OUTFEED_OPTIMIZER_STATE)
		return r->n_changed == IPS_NULL ? -1
						: r->n_changed == 0 && !(r->update_ratio > 1e-5);
	if (at == 0)
		return -1;
	memcpy(b, (double[6]){r->min, r->max, r->mean, r->std, r->l1, r->l2}, sizeof(b));
	r--;
	memcpy(a, (double[6]){r->min, r->max, r->mean, r->std, r->l1, r->l2}, sizeof(a));
	for (int i = 0; i < 6; i++) {
		if (isnan(b[i] - a[i]))
			return -1;
		close = close && fabs(b[i] - a[i]) <= 1e-8 + 1e-5 * fabs(a[i]);
	}
	return close && all_zero(&rows[at]) != 1;
}

static int v_ratio(const struct what *what, const struct outfeed_health_row *rows, int at)
{
	const double ratio = rows[at].update_ratio;

	if (what->kind != OUTFEED_WEIGHT || !what->matrix || isnan(ratio))
		return -1;
	return ratio > 10 || (ratio != 0 && ratio < 1e-8);
}

static const struct {
	enum outfeed_health_id rule;
	verdict_fn verdict;
	int patience;
} plain[] = {
	{OUTFEED_HEALTH_nonfinite, v_nonfinite, 1},
	{OUTFEED_HEALTH_exploding, v_exploding, 1},
	{OUTFEED_HEALTH_vanishing, v_vanishing, 5},
	{OUTFEED_HEALTH_dead_relu, v_dead, 5},
	{OUTFEED_HEALTH_saturated_activation, v_saturated, 5},
	{OUTFEED_HEALTH_poor_initialization, v_silent, 5},
	{OUTFEED_HEALTH_poor_initialization, v_constant, 1},
	{OUTFEED_HEALTH_unchanged_tensor, v_unchanged, 3},
	{OUTFEED_HEALTH_all_zero, v_all_zero, 5},
	{OUTFEED_HEALTH_update_ratio, v_ratio, 3},
};

/* Is there an onset at @at: patience verdicts "broken" since the last "sound", no more? */
static bool plain_hit(size_t which, const struct what *what, const struct outfeed_health_row *rows,
		      int at)
{
	int broken = 0;

	if (plain[which].verdict(what, rows, at) != 1)
		return false;
	for (int i = at; i >= 0; i--) {
		int verdict = plain[which].verdict(what, rows, i);

		if (verdict == 0)
			break;
		broken += verdict == 1;
	}
	return broken == plain[which].patience;
}

static struct outfeed_health_tensor *add(struct health_rig *rig, const struct what *what)
{
	struct outfeed_health_about_tensor about = {
		.kind = what->kind, .activity = what->activity, .matrix = what->matrix};
	struct outfeed_health_tensor *tensor;

	assert_int_equal(outfeed_health_tensor(rig->health, &tensor, &about, NULL), ST_OK);
	return tensor;
}

static void check_row(struct health_rig *rig, const struct what *what,
		      const struct outfeed_health_row *rows, int at)
{
	int wanted[OUTFEED_HEALTH_RULES] = {0};

	for (size_t p = 0; p < sizeof(plain) / sizeof(plain[0]); p++)
		wanted[plain[p].rule] += plain_hit(p, what, rows, at);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		if (health_rig_count(rig, (enum outfeed_health_id)i) != wanted[i])
			fail_msg("row %d: %s is hit %d times, not %d", at,
				 outfeed_health_describe((enum outfeed_health_id)i)->name,
				 health_rig_count(rig, (enum outfeed_health_id)i), wanted[i]);
	rig->count = 0;
}

static void test_random_rows_give_the_hits_that_a_plain_count_gives(void **state)
{
	static struct outfeed_health_row rows[ROWS];
	int hits = 0;

	(void)state;
	for (uint32_t seed = 0; seed < support_rounds(SEEDS); seed++) {
		struct outfeed_health_tensor *tensor;
		struct health_rig rig;
		struct what what;

		random_state = seed;
		what = (struct what){(enum outfeed_kind)random_below(OUTFEED_KINDS),
				     (enum outfeed_activity)random_below(OUTFEED_ACTIVITIES),
				     one_in(2)};
		health_rig_open(&rig, NULL);
		tensor = add(&rig, &what);
		for (int at = 0; at < ROWS; at++) {
			struct outfeed_health_row sound = health_row_sound(at);

			rows[at] = at == 0 ? sound : rows[at - 1];
			rows[at].keys = sound.keys;
			change(&rows[at]);
			outfeed_health_row(tensor, &rows[at]);
			hits += rig.count;
			check_row(&rig, &what, rows, at);
		}
		health_rig_close(&rig);
	}
	assert_true(hits > 3 * (int)support_rounds(SEEDS));
}

/* What a cheap tier leaves out changes no hit of rules that look at one row. */
static void test_rows_that_matter_alone_give_the_same_hits(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < support_rounds(SEEDS); seed++) {
		const struct what what = {(enum outfeed_kind)(seed % OUTFEED_KINDS),
					  OUTFEED_NO_ACTIVITY, true};
		struct health_rig all, some;
		struct outfeed_health_tensor *one, *other;
		struct outfeed_health_row row = health_row_unknown(0);

		random_state = seed;
		health_rig_open(&all, NULL);
		health_rig_open(&some, NULL);
		one = add(&all, &what);
		other = add(&some, &what);
		row.n = 10;
		for (int at = 0; at < ROWS; at++) {
			static const double sizes[] = {0, 0.1, 1, 2e6, INFINITY, NAN};

			row.keys.weight_update = at;
			if (one_in(6))
				row.abs_max = sizes[random_below(6)];
			if (outfeed_health_row(one, &row))
				outfeed_health_row(other, &row);
		}
		assert_int_equal(all.count, some.count);
		for (int i = 0; i < all.count; i++) {
			assert_int_equal(all.hits[i].rule, some.hits[i].rule);
			assert_int_equal(all.hits[i].update, some.hits[i].update);
		}
		health_rig_close(&all);
		health_rig_close(&some);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4

struct feeder {
	struct outfeed_health_tensor *tensor;
	pthread_t thread;
};

static void *feed_alone(void *user)
{
	struct feeder *feeder = user;

	for (int update = 0; update < 1000; update++) {
		struct outfeed_health_row row = health_row_sound(update);

		row.abs_max = row.max = update % 4 == 1 ? 2e6 : 1;
		row.std = row.max;
		outfeed_health_row(feeder->tensor, &row);
	}
	return NULL;
}

/* Hits are handed on one at a time, and losses and settling may run beside. */
static void test_tensors_are_fed_by_threads_of_their_own(void **state)
{
	const struct what what = {OUTFEED_WEIGHT, OUTFEED_NO_ACTIVITY, true};
	struct ips_keys keys = IPS_KEYS_NULL;
	struct feeder feeders[THREADS];
	struct health_rig rig;

	(void)state;
	health_rig_open(&rig, "{'loss_not_decreasing': false}");
	for (int i = 0; i < THREADS; i++)
		feeders[i].tensor = add(&rig, &what);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&feeders[i].thread, NULL, feed_alone, &feeders[i]),
				 0);
	for (keys.step = 0; keys.step < 100; keys.step++) {
		outfeed_health_loss(rig.health, &keys, 0, 1);
		outfeed_health_evaluate(rig.health);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(feeders[i].thread, NULL);
	outfeed_health_evaluate(rig.health);
	assert_int_equal(rig.count, THREADS * 250);
	assert_int_equal(health_rig_count(&rig, OUTFEED_HEALTH_exploding), rig.count);
	health_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_rows_give_the_hits_that_a_plain_count_gives),
		cmocka_unit_test(test_rows_that_matter_alone_give_the_same_hits),
		cmocka_unit_test(test_tensors_are_fed_by_threads_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
