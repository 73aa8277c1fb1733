/*
 * Evaluation of the health rules: rows of tensors, losses, epochs or classes are checked, and a hit
 * is reported when a rule is violated. See outfeed_health.h for threads.
 *
 * All checks of a tensor are applied to each of its rows; a rule is hit when one of its checks has
 * found it broken for `patience` rows in a row. Nothing is allocated after a tensor has been added.
 * A lock guards what tensors retain of their first updates.
 */
#include "outfeed/outfeed_health.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"

/* ---- states ---------------------------------------------------------------------------------- */

enum verdict {
	UNKNOWN, /* not checked: neither breaks nor mends the rule */
	SOUND,
	BROKEN
};

struct finding {
	enum verdict verdict;
	double value, threshold; /* if broken */
};

#define CHECKS 11 /* of the rows of tensors */

struct outfeed_health_tensor {
	struct outfeed_health *health;
	struct outfeed_health_tensor *next;
	struct outfeed_health_about_tensor about; /* its texts are owned */
	int64_t rows;                             /* checked so far */
	int64_t broken[CHECKS];                   /* consecutive broken rows */
	struct outfeed_health_row before;         /* the previous row, if rows > 0 */

	/* From the first row, of a kernel or its gradient; guarded by the health's `start` lock.
	 * NaN: unknown so far. */
	double start_variance, start_range;
};

/* The losses of the first steps, for poor_initialization: [0] of the steps before its last
 * `patience` steps, [1] of these. */
struct start {
	int64_t count;
	double sum[2], least[2];
	bool checked;
	struct ips_keys keys; /* of the last one */
	int64_t time_ns;
};

struct outfeed_health {
	struct outfeed_health_rules rules;
	void (*hit)(void *user, const struct outfeed_hit *hit);
	void *user;
	pthread_mutex_t hits;  /* hits are reported one at a time */
	pthread_mutex_t start; /* guards what tensors retain of their first updates */
	struct outfeed_health_tensor *tensors, **end;
	/* A row of a later update was checked, so all rows of the first updates are complete. */
	atomic_bool started;

	/* Used by the thread of losses. */
	double *losses;                 /* the last ones, a ring of parameter "steps" */
	int64_t loss_count, loss_steps; /* consecutive finite losses in the ring; its size */
	bool any_loss;
	int64_t broken_loss, broken_val_loss; /* consecutive non-finite ones */
	int64_t stuck_steps, stuck_epochs, overfit_epochs, imbalanced;
	double best_epoch, best_val; /* NaN: none yet */
	struct start first;
};

/* ---- creating and freeing -------------------------------------------------------------------- */

enum status outfeed_health_new(struct outfeed_health **out,
			       const struct outfeed_health_params *params, struct err *err)
{
	struct outfeed_health *health = mem_calloc(1, sizeof(*health));
	const struct outfeed_health_rule *loss;

	*out = NULL;
	if (!health)
		return err_nomem(err);
	health->rules = *params->rules;
	health->hit = params->hit;
	health->user = params->user;
	health->end = &health->tensors;
	health->best_epoch = health->best_val = NAN;

	loss = &health->rules.rule[OUTFEED_HEALTH_loss_not_decreasing];
	health->loss_steps = (int64_t)loss->parameter[OUTFEED_LOSS_STEPS];
	health->losses = mem_calloc((size_t)health->loss_steps, sizeof(*health->losses));
	if (!health->losses)
		goto no_losses;
	if (pthread_mutex_init(&health->hits, NULL) != 0)
		goto no_hits;
	if (pthread_mutex_init(&health->start, NULL) != 0)
		goto no_start;
	*out = health;
	return ST_OK;

no_start:
	pthread_mutex_destroy(&health->hits);
no_hits:
	mem_free(health->losses);
no_losses:
	mem_free(health);
	return err_nomem(err);
}

static void free_health_tensor(struct outfeed_health_tensor *tensor)
{
	mem_free((void *)(uintptr_t)tensor->about.key);
	mem_free((void *)(uintptr_t)tensor->about.layer);
	mem_free(tensor);
}

void outfeed_health_free(struct outfeed_health *health)
{
	struct outfeed_health_tensor *tensor;

	if (!health)
		return;
	while ((tensor = health->tensors)) {
		health->tensors = tensor->next;
		free_health_tensor(tensor);
	}
	pthread_mutex_destroy(&health->start);
	pthread_mutex_destroy(&health->hits);
	mem_free(health->losses);
	mem_free(health);
}

enum status outfeed_health_tensor(struct outfeed_health *health, struct outfeed_health_tensor **out,
				  const struct outfeed_health_about_tensor *about, struct err *err)
{
	struct outfeed_health_tensor *tensor = mem_calloc(1, sizeof(*tensor));

	*out = NULL;
	if (!tensor)
		return err_nomem(err);
	tensor->health = health;
	tensor->about = *about;
	tensor->about.key = about->key ? mem_strdup(about->key) : NULL;
	tensor->about.layer = about->layer ? mem_strdup(about->layer) : NULL;
	tensor->start_variance = NAN;
	tensor->start_range = NAN;
	if ((!tensor->about.key && about->key) || (!tensor->about.layer && about->layer)) {
		free_health_tensor(tensor);
		return err_nomem(err);
	}

	*health->end = tensor;
	health->end = &tensor->next;
	*out = tensor;
	return ST_OK;
}

/* ---- hits ------------------------------------------------------------------------------------ */

static const struct finding unknown = {UNKNOWN, 0, 0};

static struct finding found(bool broken, double value, double threshold)
{
	return (struct finding){broken ? BROKEN : SOUND, value, threshold};
}

static void report_hit(struct outfeed_health *health, const struct outfeed_hit *hit)
{
	if (!health->hit)
		return;
	pthread_mutex_lock(&health->hits);
	health->hit(health->user, hit);
	pthread_mutex_unlock(&health->hits);
}

/* Count a verdict in @broken; return whether it is the @patience-th broken one in a row. */
static bool is_onset(int64_t *broken, enum verdict verdict, int64_t patience)
{
	if (verdict == SOUND)
		*broken = 0;
	return verdict == BROKEN && ++*broken == patience;
}

/* ---- rows of tensors: checks ----------------------------------------------------------------- */

struct question {
	const struct outfeed_health_rule *rule;
	const struct outfeed_health_tensor *tensor;
	const struct outfeed_health_row *row;
};

/* Relative spread of equal values that were rounded to float. */
#define EQUAL 1e-6

/* Return the fraction of zero values; NaN: unknown. A row without counts has only the greatest |x|,
 * which shows whether all values are zero. */
static double zero_part(const struct outfeed_health_row *row)
{
	if (row->n == IPS_NULL || row->n == 0)
		return NAN;
	if (row->n_zero != IPS_NULL)
		return (double)row->n_zero / (double)row->n;
	return row->abs_max == 0 ? 1 : NAN;
}

/* Return whether a row without counts shows that not all values are zero. */
static bool is_not_zero(const struct outfeed_health_row *row)
{
	return row->n_zero == IPS_NULL && row->abs_max != 0 &&
	       !(isnan(row->abs_max) && row->n_nan != IPS_NULL);
}

static int64_t update_of(const struct outfeed_health_tensor *tensor,
			 const struct outfeed_health_row *row)
{
	if (row->keys.weight_update != IPS_NULL)
		return row->keys.weight_update;
	if (row->keys.step != IPS_NULL)
		return row->keys.step;
	return tensor->rows;
}

/* Return whether the row is of the first updates. Rule poor_initialization reads no others. */
static bool is_early(const struct question *q)
{
	return (double)update_of(q->tensor, q->row) < q->rule->parameter[OUTFEED_POOR_STEPS];
}

static struct finding check_nonfinite(const struct question *q)
{
	if (q->row->n_nan != IPS_NULL && q->row->n_inf != IPS_NULL) {
		double bad = (double)q->row->n_nan + (double)q->row->n_inf;

		return found(bad > q->rule->threshold, bad, q->rule->threshold);
	}
	/* The row has no counts, but one non-finite value makes the greatest |x| non-finite. */
	return found(!isfinite(q->row->abs_max), q->row->abs_max, q->rule->threshold);
}

static struct finding check_exploding(const struct question *q)
{
	double greatest = q->row->abs_max;

	if (!isfinite(greatest))
		greatest = fmax(fabs(q->row->min), fabs(q->row->max)); /* of the finite ones */
	if (!isfinite(greatest))
		return unknown;
	return found(greatest > q->rule->threshold, greatest, q->rule->threshold);
}

static struct finding check_vanishing(const struct question *q)
{
	double finite = (double)q->row->n, mean; /* a damaged recording may have any counts */

	if (q->row->n_nan != IPS_NULL && q->row->n_inf != IPS_NULL)
		finite -= (double)q->row->n_nan + (double)q->row->n_inf;
	if (isnan(q->row->l1) || q->row->n == IPS_NULL || finite <= 0)
		return unknown;
	mean = q->row->l1 / finite;
	return found(mean < q->rule->threshold && mean > 0, mean, q->rule->threshold);
}

/* For activations: the fraction of dead or flat neurons. */
static struct finding check_inactive(const struct question *q)
{
	if (isnan(q->row->inactive))
		return unknown;
	return found(q->row->inactive > q->rule->threshold, q->row->inactive, q->rule->threshold);
}

static struct finding check_dead(const struct question *q)
{
	int64_t neurons = q->tensor->about.neurons;

	if (q->tensor->about.activity != OUTFEED_RELU)
		return unknown;
	/* With few cases, a healthy neuron is often 0 in all of them. */
	if (neurons > 0 && q->row->n != IPS_NULL &&
	    (double)(q->row->n / neurons) < q->rule->parameter[OUTFEED_DEAD_CASES])
		return unknown;
	return check_inactive(q);
}

static struct finding check_saturated(const struct question *q)
{
	if (q->tensor->about.activity != OUTFEED_TANH &&
	    q->tensor->about.activity != OUTFEED_SIGMOID)
		return unknown;
	return check_inactive(q);
}

/* A kernel whose values are still equal after an update: its neurons cannot become different,
 * because they get equal gradients or none. A kernel that does learn from equal values (zeros
 * before a softmax) differs after its first update. */
static struct finding check_constant_kernel(const struct question *q)
{
	double variance;

	if (!is_early(q) || isnan(q->row->std) || !isfinite(q->row->abs_max) || q->row->n < 2)
		return unknown;
	variance = q->row->std * q->row->std;
	return found(q->row->std <= EQUAL * q->row->abs_max, variance, 0);
}

/* A kernel whose gradients are all zero in the first updates: no gradient reaches it. */
static struct finding check_silent_kernel(const struct question *q)
{
	double zeros = zero_part(q->row);

	if (!is_early(q) || (isnan(zeros) && !is_not_zero(q->row)))
		return unknown;
	return found(zeros == 1, 0, 0);
}

static struct finding check_unchanged_variable(const struct question *q)
{
	/* Values below the absolute tolerance, such as squares of small gradients (Adam's v), may
	 * change on average although no single one counts as changed. */
	const bool moves = q->row->update_ratio > q->rule->threshold;

	if (q->row->n_changed == IPS_NULL)
		return unknown;
	return found(q->row->n_changed == 0 && !moves, 0, 0);
}

/* Return the greatest relative difference between the values of two rows. Differences up to @atol
 * are ignored. NaN: a value is unknown. */
static double difference_of(const struct outfeed_health_row *a, const struct outfeed_health_row *b,
			    double atol)
{
	const double from[] = {a->min, a->max, a->mean, a->std, a->l1, a->l2};
	const double to[] = {b->min, b->max, b->mean, b->std, b->l1, b->l2};
	double greatest = 0;

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		double change = fabs(to[i] - from[i]) - atol, relative = change / fabs(from[i]);

		if (isnan(change))
			return NAN;
		if (change > 0 && relative > greatest)
			greatest = relative;
	}
	return greatest;
}

static struct finding check_unchanged_row(const struct question *q)
{
	double difference;

	if (q->tensor->rows == 0)
		return unknown;
	difference = difference_of(&q->tensor->before, q->row,
				   q->rule->parameter[OUTFEED_UNCHANGED_ATOL]);
	if (isnan(difference))
		return unknown;
	/* Rule all_zero reports zeros that stay zeros. */
	return found(difference <= q->rule->threshold && zero_part(q->row) != 1, difference,
		     q->rule->threshold);
}

static struct finding check_all_zero(const struct question *q)
{
	double zeros = zero_part(q->row);

	if (!isnan(zeros))
		return found(zeros >= q->rule->threshold, zeros, q->rule->threshold);
	/* Some values are not zero: sound, if the threshold requires all to be zero. */
	if (is_not_zero(q->row) && q->rule->threshold >= 1)
		return found(false, 0, q->rule->threshold);
	return unknown;
}

static struct finding check_update_ratio(const struct question *q)
{
	double ratio = q->row->update_ratio, small = q->rule->parameter[OUTFEED_UPDATE_SMALL];

	if (isnan(ratio))
		return unknown;
	if (ratio > q->rule->threshold)
		return found(true, ratio, q->rule->threshold);
	/* Rule unchanged_tensor reports tensors that do not change at all. */
	return found(ratio < small && ratio > 0, ratio, small);
}

#define KIND(kind) (1u << OUTFEED_##kind)
#define ALL_KINDS  (KIND(ACTIVATION) | KIND(GRADIENT) | KIND(WEIGHT) | KIND(OPTIMIZER_STATE))
#define VARIABLES  (KIND(WEIGHT) | KIND(OPTIMIZER_STATE))
#define FLOWS      (KIND(ACTIVATION) | KIND(GRADIENT))
#define OF(rule)   OUTFEED_HEALTH_##rule

/* The checks of rows of tensors; some rules have two. */
static const struct {
	enum outfeed_health_id rule;
	unsigned kinds; /* bit 1 << enum outfeed_kind */
	bool matrices;  /* biases are skipped */
	bool at_once;   /* ignores the rule's patience */
	struct finding (*check)(const struct question *q);
} checks[] = {
	{OF(nonfinite), ALL_KINDS, false, false, check_nonfinite},
	{OF(exploding), ALL_KINDS, false, false, check_exploding},
	{OF(vanishing), KIND(GRADIENT), false, false, check_vanishing},
	{OF(dead_relu), KIND(ACTIVATION), false, false, check_dead},
	{OF(saturated_activation), KIND(ACTIVATION), false, false, check_saturated},
	{OF(poor_initialization), KIND(WEIGHT), true, true, check_constant_kernel},
	{OF(poor_initialization), KIND(GRADIENT), true, false, check_silent_kernel},
	{OF(unchanged_tensor), VARIABLES, false, false, check_unchanged_variable},
	{OF(unchanged_tensor), FLOWS, false, false, check_unchanged_row},
	{OF(all_zero), FLOWS, false, false, check_all_zero},
	{OF(update_ratio), KIND(WEIGHT), true, false, check_update_ratio},
};
_Static_assert(ARRAY_LEN(checks) == CHECKS, "a count for each check");

/* ---- rows of tensors ------------------------------------------------------------------------- */

#define RANGE_STD 3.29 /* from the 5th to the 95th percentile of a normal distribution */

/* Store what poor_initialization needs once the first losses are known. */
static void store_start(struct outfeed_health_tensor *tensor, const struct outfeed_health_row *row)
{
	struct outfeed_health *health = tensor->health;
	const struct question q = {&health->rules.rule[OF(poor_initialization)], tensor, row};
	const enum outfeed_kind kind = tensor->about.kind;

	if (!q.rule->enabled || !tensor->about.matrix ||
	    (kind != OUTFEED_WEIGHT && kind != OUTFEED_GRADIENT))
		return;
	/* Replicas and stages are never two updates apart. */
	if (update_of(tensor, row) >= 2 &&
	    !atomic_load_explicit(&health->started, memory_order_relaxed))
		atomic_store_explicit(&health->started, true, memory_order_release);
	if (tensor->rows > 0 || isnan(row->std) || !is_early(&q))
		return;

	pthread_mutex_lock(&health->start);
	if (kind == OUTFEED_GRADIENT)
		tensor->start_range = RANGE_STD * row->std;
	else
		tensor->start_variance = row->std * row->std;
	pthread_mutex_unlock(&health->start);
}

bool outfeed_health_row(struct outfeed_health_tensor *tensor, const struct outfeed_health_row *row)
{
	const struct outfeed_health_about_tensor *about = &tensor->about;
	struct question q = {.tensor = tensor, .row = row};
	bool matters = false;

	for (size_t i = 0; i < CHECKS; i++) {
		const int64_t before = tensor->broken[i];
		struct finding finding;

		q.rule = &tensor->health->rules.rule[checks[i].rule];
		if (!(checks[i].kinds & 1u << about->kind) || !q.rule->enabled ||
		    (checks[i].matrices && !about->matrix))
			continue;
		finding = checks[i].check(&q);
		if (is_onset(&tensor->broken[i], finding.verdict,
			     checks[i].at_once ? 1 : q.rule->patience))
			report_hit(tensor->health,
				   &(struct outfeed_hit){.rule = checks[i].rule,
							 .tensor_id = about->tensor_id,
							 .key = about->key,
							 .layer = about->layer,
							 .keys = row->keys,
							 .time_ns = row->time_ns,
							 .value = finding.value,
							 .threshold = finding.threshold});
		matters |= finding.verdict == BROKEN || (finding.verdict == SOUND && before > 0);
	}
	store_start(tensor, row);
	tensor->before = *row;
	tensor->rows++;
	return matters;
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* A loss counts as lower than another if it is lower by more than rounding. */
#define LOWER (1 - 1e-6)

/* Return a hit without a tensor. */
static struct outfeed_hit make_hit(const char *key, const struct ips_keys *keys, int64_t time_ns)
{
	return (struct outfeed_hit){
		.tensor_id = IPS_NULL, .key = key, .keys = *keys, .time_ns = time_ns};
}

/* Count a finding of a rule without a tensor, and report a hit if it breaks the rule. */
static void check_rule(struct outfeed_health *health, enum outfeed_health_id id, int64_t *broken,
		       int64_t patience, struct outfeed_hit hit, struct finding finding)
{
	if (!is_onset(broken, finding.verdict, patience))
		return;
	hit.rule = id;
	hit.value = finding.value;
	hit.threshold = finding.threshold;
	report_hit(health, &hit);
}

static void check_loss_finite(struct outfeed_health *health, int64_t *broken,
			      struct outfeed_hit hit, double loss)
{
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(nonfinite)];

	if (rule->enabled)
		check_rule(health, OF(nonfinite), broken, rule->patience, hit,
			   found(!isfinite(loss), loss, 0));
}

/* Return the range of the losses in the ring, relative to the greatest; NaN: all are below
 * @floor. */
static double loss_spread(const struct outfeed_health *health, double floor)
{
	double least = INFINITY, greatest = -INFINITY, size;

	for (int64_t i = 0; i < health->loss_steps; i++) {
		least = fmin(least, health->losses[i]);
		greatest = fmax(greatest, health->losses[i]);
	}
	size = fmax(fabs(least), fabs(greatest));
	return size < floor || size == 0 ? NAN : (greatest - least) / size;
}

static void check_steps(struct outfeed_health *health, struct outfeed_hit hit, double loss)
{
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(loss_not_decreasing)];
	double spread;

	if (!rule->enabled)
		return;
	if (!isfinite(loss)) {
		health->loss_count = 0; /* rule nonfinite reports it; start again */
		health->stuck_steps = 0;
		return;
	}
	health->losses[health->loss_count++ % health->loss_steps] = loss;
	if (health->loss_count < health->loss_steps)
		return;

	/* For steps the window replaces the rule's patience: `patience` itself counts epochs. */
	spread = loss_spread(health, rule->parameter[OUTFEED_LOSS_FLOOR]);
	if (!isnan(spread))
		check_rule(health, OF(loss_not_decreasing), &health->stuck_steps, 1, hit,
			   found(spread <= rule->threshold, spread, rule->threshold));
}

void outfeed_health_loss(struct outfeed_health *health, const struct ips_keys *keys,
			 int64_t time_ns, double loss)
{
	const struct outfeed_hit hit = make_hit("loss", keys, time_ns);
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(poor_initialization)];
	const int64_t steps = (int64_t)rule->parameter[OUTFEED_POOR_STEPS];
	struct start *first = &health->first;
	const int late = first->count >= steps - rule->patience;

	health->any_loss = true;
	check_loss_finite(health, &health->broken_loss, hit, loss);
	check_steps(health, hit, loss);
	/* poor_initialization compares the losses of its last `patience` steps with those before. */
	if (first->count >= steps)
		return;
	if (first->count == 0 || first->count == steps - rule->patience)
		first->least[late] = loss;
	first->sum[late] += loss;
	first->least[late] = fmin(first->least[late], loss);
	first->keys = *keys;
	first->time_ns = time_ns;
	first->count++;
}

/* ---- epochs and classes ---------------------------------------------------------------------- */

static void check_epochs(struct outfeed_health *health, struct outfeed_hit hit, double loss)
{
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(loss_not_decreasing)];
	double best = health->best_epoch, size = fabs(best), fall;

	if (!rule->enabled || !isfinite(loss))
		return;
	health->best_epoch = fmin(best, loss);
	if (isnan(best) || size == 0 || size < rule->parameter[OUTFEED_LOSS_FLOOR])
		return;
	fall = (best - loss) / size;
	check_rule(health, OF(loss_not_decreasing), &health->stuck_epochs, rule->patience, hit,
		   found(fall < rule->threshold, fall, rule->threshold));
}

void outfeed_health_epoch(struct outfeed_health *health, const struct ips_keys *keys,
			  int64_t time_ns, double loss, double val_loss, bool validated)
{
	const struct outfeed_hit hit = make_hit("loss", keys, time_ns);
	const struct outfeed_hit val_hit = make_hit("val_loss", keys, time_ns);
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(overfit)];
	const double excess = (val_loss - loss) / loss, best = health->best_val;

	/* If there were losses of steps, they were checked already. */
	if (!health->any_loss)
		check_loss_finite(health, &health->broken_loss, hit, loss);
	check_epochs(health, hit, loss);
	if (!validated)
		return;
	check_loss_finite(health, &health->broken_val_loss, val_hit, val_loss);
	/* A validation loss that still falls may be higher because training is ahead of it: that is
	 * learning, not overfitting. */
	health->best_val = fmin(best, val_loss);
	if (rule->enabled && loss > 0 && isfinite(excess))
		check_rule(health, OF(overfit), &health->overfit_epochs, rule->patience, val_hit,
			   found(val_loss >= best && excess > rule->threshold, excess,
				 rule->threshold));
}

void outfeed_health_classes(struct outfeed_health *health, const struct ips_keys *keys,
			    int64_t time_ns, int64_t samples, double imbalance,
			    double misprediction)
{
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(class_imbalance)];
	/* A class whose predictions are unknown counts as badly predicted. */
	const bool badly = !(misprediction <= rule->parameter[OUTFEED_CLASS_MISPREDICTION]);

	if (!rule->enabled || isnan(imbalance) ||
	    (double)samples < rule->parameter[OUTFEED_CLASS_SAMPLES])
		return;
	check_rule(health, OF(class_imbalance), &health->imbalanced, rule->patience,
		   make_hit("classes", keys, time_ns),
		   found(imbalance > rule->threshold && badly, imbalance, rule->threshold));
}

/* ---- the first updates ----------------------------------------------------------------------- */

/* Compare the last `patience` of the first steps with the steps before. Return true if neither the
 * minimum nor the mean of their losses is lower. */
static bool losses_stagnate(const struct start *first, const struct outfeed_health_rule *rule)
{
	double late = (double)rule->patience;
	double early = rule->parameter[OUTFEED_POOR_STEPS] - late;
	double before = first->sum[0] / early, after = first->sum[1] / late;
	double margin = (1 - LOWER) * fabs(before);

	return isfinite(before) && isfinite(after) && after >= before - margin &&
	       first->least[1] >= first->least[0] - margin;
}

static void report_start(struct outfeed_health *health, const struct outfeed_health_tensor *tensor,
			 double value, double threshold)
{
	struct outfeed_hit hit = {.rule = OF(poor_initialization),
				  .tensor_id = tensor->about.tensor_id,
				  .key = tensor->about.key,
				  .layer = tensor->about.layer,
				  .keys = health->first.keys,
				  .time_ns = health->first.time_ns,
				  .value = value,
				  .threshold = threshold};

	hit.keys.replica = tensor->about.replica;
	report_hit(health, &hit);
}

/* Find the least and the greatest value of the tensors of @one's replica, starting at @one (its
 * first). Zeros are skipped: they have rules of their own. NULL: none. */
static const struct outfeed_health_tensor *
find_least(const struct outfeed_health_tensor *one, bool gradients, double *least, double *greatest)
{
	const struct outfeed_health_tensor *found_one = NULL;

	*least = INFINITY;
	*greatest = 0;
	for (const struct outfeed_health_tensor *t = one; t; t = t->next) {
		double value = gradients ? t->start_range : t->start_variance;

		if (t->about.replica != one->about.replica || !(value > 0))
			continue;
		*greatest = fmax(*greatest, value);
		if (!found_one || value < *least) {
			*least = value;
			found_one = t;
		}
	}
	return found_one;
}

static bool is_first_of_replica(const struct outfeed_health *health,
				const struct outfeed_health_tensor *tensor)
{
	const struct outfeed_health_tensor *other = health->tensors;

	while (other->about.replica != tensor->about.replica)
		other = other->next;
	return other == tensor;
}

void outfeed_health_evaluate(struct outfeed_health *health)
{
	const struct outfeed_health_rule *rule = &health->rules.rule[OF(poor_initialization)];
	struct start *first = &health->first;

	if (!rule->enabled || first->checked ||
	    !atomic_load_explicit(&health->started, memory_order_acquire) ||
	    (double)first->count < rule->parameter[OUTFEED_POOR_STEPS])
		return;
	first->checked = true;
	if (!losses_stagnate(first, rule))
		return;

	pthread_mutex_lock(&health->start);
	for (const struct outfeed_health_tensor *t = health->tensors; t; t = t->next) {
		if (is_first_of_replica(health, t)) {
			/* At most one hit for kernels and one for gradients: a replica's tensors
			 * share its loss. */
			const double range = rule->parameter[OUTFEED_POOR_RANGE];
			double least, greatest;
			const struct outfeed_health_tensor *kernel =
				find_least(t, false, &least, &greatest);

			if (kernel && greatest / least > rule->threshold)
				report_start(health, kernel, greatest / least, rule->threshold);
			kernel = find_least(t, true, &least, &greatest);
			if (kernel && least < range)
				report_start(health, kernel, least, range);
		}
	}
	pthread_mutex_unlock(&health->start);
}

/* ---- saved state ----------------------------------------------------------------------------- */

bool outfeed_health_are_counts(const int64_t *counts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (counts[i] < 0 || counts[i] > INT64_C(1) << 48)
			return false;
	return true;
}

void outfeed_health_state(struct outfeed_health *health, outfeed_state_visit visit, void *user)
{
	const size_t ring = (size_t)health->loss_steps * sizeof(*health->losses);
	struct start *first = &health->first;
	int64_t counts[] = {health->loss_count,      health->any_loss,    health->broken_loss,
			    health->broken_val_loss, health->stuck_steps, health->stuck_epochs,
			    health->overfit_epochs,  health->imbalanced,  first->count,
			    first->checked,          health->started};
	int64_t where[] = {first->keys.epoch, first->keys.step};
	double values[] = {health->best_epoch, health->best_val, first->sum[0],
			   first->sum[1],      first->least[0],  first->least[1]};

	if (!visit(user, "counts", counts, sizeof(counts)) ||
	    !outfeed_health_are_counts(counts, ARRAY_LEN(counts)) ||
	    !visit(user, "where", where, sizeof(where)) ||
	    !visit(user, "values", values, sizeof(values)) ||
	    !visit(user, "losses", health->losses, ring))
		return;
	health->loss_count = counts[0];
	health->any_loss = counts[1] != 0;
	health->broken_loss = counts[2];
	health->broken_val_loss = counts[3];
	health->stuck_steps = counts[4];
	health->stuck_epochs = counts[5];
	health->overfit_epochs = counts[6];
	health->imbalanced = counts[7];
	first->count = counts[8];
	first->checked = counts[9] != 0;
	health->started = counts[10] != 0;
	first->keys = (struct ips_keys)IPS_KEYS_NULL;
	first->keys.mode = IPS_TRAIN;
	first->keys.epoch = where[0];
	first->keys.step = where[1];
	health->best_epoch = values[0];
	health->best_val = values[1];
	memcpy(first->sum, values + 2, sizeof(first->sum));
	memcpy(first->least, values + 4, sizeof(first->least));
}

void outfeed_health_tensor_state(struct outfeed_health_tensor *tensor, const char *name,
				 outfeed_state_visit visit, void *user)
{
	struct outfeed_health_row *before = &tensor->before;
	struct {
		int64_t counts[1 + CHECKS];
		double start[2], before[6];
	} state = {{tensor->rows},
		   {tensor->start_variance, tensor->start_range},
		   {before->min, before->max, before->mean, before->std, before->l1, before->l2}};

	memcpy(state.counts + 1, tensor->broken, sizeof(tensor->broken));
	if (!visit(user, name, &state, sizeof(state)) ||
	    !outfeed_health_are_counts(state.counts, ARRAY_LEN(state.counts)))
		return;
	tensor->rows = state.counts[0];
	memcpy(tensor->broken, state.counts + 1, sizeof(tensor->broken));
	tensor->start_variance = state.start[0];
	tensor->start_range = state.start[1];
	before->min = state.before[0];
	before->max = state.before[1];
	before->mean = state.before[2];
	before->std = state.before[3];
	before->l1 = state.before[4];
	before->l2 = state.before[5];
}
