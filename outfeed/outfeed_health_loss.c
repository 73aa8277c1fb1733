/*
 * The health rules of losses, epochs and classes, and the one that joins losses with tensors.
 *
 * All of it by one thread; what tensors keep of their first updates is read under a lock.
 */
#include "outfeed/outfeed_health.h"

#include <math.h>

#include "outfeed/outfeed_health_internal.h"

/* A loss is lower than another where it is by more than rounding. */
#define HEALTH_LOWER (1 - 1e-6)

static const struct outfeed_health_rule *health_rule(const struct outfeed_health *health,
						     enum outfeed_health_id id)
{
	return &health->rules.rule[id];
}

/* Of no tensor. */
static struct outfeed_hit health_hit(enum outfeed_health_id rule, const char *key,
				     const struct ips_keys *keys, int64_t time_ns)
{
	return (struct outfeed_hit){
		.rule = rule, .tensor_id = IPS_NULL, .key = key, .keys = *keys, .time_ns = time_ns};
}

/* Count a finding of rule @hit->rule, and hand it on where it is an onset. */
static void health_count(struct outfeed_health *health, int64_t *broken, struct outfeed_hit hit,
			 struct health_finding finding)
{
	hit.value = finding.value;
	hit.threshold = finding.threshold;
	if (outfeed__health_onset(broken, finding.verdict, health_rule(health, hit.rule)->patience))
		outfeed__health_hand_on(health, &hit);
}

static struct health_finding health_found(bool broken, double value, double threshold)
{
	return (struct health_finding){broken ? HEALTH_BROKEN : HEALTH_SOUND, value, threshold};
}

static void health_finite(struct outfeed_health *health, int64_t *broken, struct outfeed_hit hit,
			  double loss)
{
	const struct outfeed_health_rule *rule = health_rule(health, OUTFEED_HEALTH_nonfinite);

	hit.rule = OUTFEED_HEALTH_nonfinite;
	if (rule->enabled)
		health_count(health, broken, hit, health_found(!isfinite(loss), loss, 0));
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* How far the losses in the ring lie apart, relative to the greatest; NaN: all are below @floor. */
static double health_spread(const struct outfeed_health *health, double floor)
{
	double least = INFINITY, greatest = -INFINITY, size;

	for (int64_t i = 0; i < health->loss_steps; i++) {
		least = fmin(least, health->losses[i]);
		greatest = fmax(greatest, health->losses[i]);
	}
	size = fmax(fabs(least), fabs(greatest));
	return size < floor || size == 0 ? NAN : (greatest - least) / size;
}

static void health_stuck_steps(struct outfeed_health *health, struct outfeed_hit hit, double loss)
{
	const struct outfeed_health_rule *rule =
		health_rule(health, OUTFEED_HEALTH_loss_not_decreasing);
	double spread;

	if (!rule->enabled)
		return;
	if (!isfinite(loss)) {
		health->loss_count = 0; /* nonfinite's; begin again */
		health->stuck_steps = 0;
		return;
	}
	health->losses[health->loss_count++ % health->loss_steps] = loss;
	if (health->loss_count < health->loss_steps)
		return;

	/* The window is this rule's patience over steps: `patience` itself counts epochs. */
	spread = health_spread(health, rule->parameter[HEALTH_LOSS_FLOOR]);
	hit.value = spread;
	hit.threshold = rule->threshold;
	if (!isnan(spread) &&
	    outfeed__health_onset(&health->stuck_steps,
				  spread <= rule->threshold ? HEALTH_BROKEN : HEALTH_SOUND, 1))
		outfeed__health_hand_on(health, &hit);
}

/* The first losses, for poor_initialization: those of its last `patience` steps beside the ones
 * before. */
static void health_first_losses(struct outfeed_health *health, const struct ips_keys *keys,
				int64_t time_ns, double loss)
{
	const struct outfeed_health_rule *rule =
		health_rule(health, OUTFEED_HEALTH_poor_initialization);
	struct health_start *first = &health->first;
	int64_t steps = (int64_t)rule->parameter[HEALTH_POOR_STEPS];
	int late = first->count >= steps - rule->patience;

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

void outfeed_health_loss(struct outfeed_health *health, const struct ips_keys *keys,
			 int64_t time_ns, double loss)
{
	struct outfeed_hit hit =
		health_hit(OUTFEED_HEALTH_loss_not_decreasing, "loss", keys, time_ns);

	health->any_loss = true;
	health_finite(health, &health->broken_loss, hit, loss);
	health_stuck_steps(health, hit, loss);
	health_first_losses(health, keys, time_ns, loss);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static void health_stuck_epochs(struct outfeed_health *health, struct outfeed_hit hit, double loss)
{
	const struct outfeed_health_rule *rule =
		health_rule(health, OUTFEED_HEALTH_loss_not_decreasing);
	double best = health->best_epoch, size = fabs(best), fall;

	if (!rule->enabled || !isfinite(loss))
		return;
	health->best_epoch = fmin(best, loss);
	if (isnan(best) || size == 0 || size < rule->parameter[HEALTH_LOSS_FLOOR])
		return;
	fall = (best - loss) / size;
	health_count(health, &health->stuck_epochs, hit,
		     health_found(fall < rule->threshold, fall, rule->threshold));
}

static void health_overfit(struct outfeed_health *health, struct outfeed_hit hit, double loss,
			   double val_loss)
{
	const struct outfeed_health_rule *rule = health_rule(health, OUTFEED_HEALTH_overfit);
	double excess = (val_loss - loss) / loss;

	if (!rule->enabled || !(loss > 0) || !isfinite(excess))
		return;
	health_count(health, &health->overfit_epochs, hit,
		     health_found(excess > rule->threshold, excess, rule->threshold));
}

void outfeed_health_epoch(struct outfeed_health *health, const struct ips_keys *keys,
			  int64_t time_ns, double loss, double val_loss, bool validated)
{
	struct outfeed_hit hit =
		health_hit(OUTFEED_HEALTH_loss_not_decreasing, "loss", keys, time_ns);
	struct outfeed_hit val_hit = health_hit(OUTFEED_HEALTH_overfit, "val_loss", keys, time_ns);

	/* Its steps have told, where they were asked. */
	if (!health->any_loss)
		health_finite(health, &health->broken_loss, hit, loss);
	health_stuck_epochs(health, hit, loss);
	if (!validated)
		return;
	health_finite(health, &health->broken_val_loss, val_hit, val_loss);
	health_overfit(health, val_hit, loss, val_loss);
}

void outfeed_health_classes(struct outfeed_health *health, const struct ips_keys *keys,
			    int64_t time_ns, int64_t samples, double imbalance,
			    double misprediction)
{
	const struct outfeed_health_rule *rule =
		health_rule(health, OUTFEED_HEALTH_class_imbalance);
	struct outfeed_hit hit =
		health_hit(OUTFEED_HEALTH_class_imbalance, "classes", keys, time_ns);

	if (!rule->enabled || isnan(imbalance) ||
	    (double)samples < rule->parameter[HEALTH_CLASS_SAMPLES])
		return;
	/* What is not known to be predicted well counts as predicted badly. */
	health_count(health, &health->imbalanced, hit,
		     health_found(imbalance > rule->threshold &&
					  !(misprediction <=
					    rule->parameter[HEALTH_CLASS_MISPREDICTION]),
				  imbalance, rule->threshold));
}

/* ---- the first updates ----------------------------------------------------------------------- */

/* Did the losses of the last `patience` of the first steps neither bring a new least one, nor are
 * they less on average? */
static bool health_no_fall(const struct health_start *first, const struct outfeed_health_rule *rule)
{
	double late = (double)rule->patience;
	double early = rule->parameter[HEALTH_POOR_STEPS] - late;
	double before = first->sum[0] / early, after = first->sum[1] / late;
	double margin = (1 - HEALTH_LOWER) * fabs(before);

	return isfinite(before) && isfinite(after) && after >= before - margin &&
	       first->least[1] >= first->least[0] - margin;
}

static struct outfeed_hit health_start_hit(const struct health_start *first,
					   const struct outfeed_health_tensor *tensor)
{
	struct outfeed_hit hit = {.rule = OUTFEED_HEALTH_poor_initialization,
				  .tensor_id = tensor->about.tensor_id,
				  .key = tensor->about.key,
				  .layer = tensor->about.layer,
				  .keys = first->keys,
				  .time_ns = first->time_ns};

	hit.keys.replica = tensor->about.replica;
	return hit;
}

/* The least and the greatest value of the tensors of @one's replica, from @one (its first) on.
 * Zeros, which their rows have told of, do not count. NULL: none. */
static const struct outfeed_health_tensor *health_least(const struct outfeed_health_tensor *one,
							bool gradients, double *least,
							double *greatest)
{
	const struct outfeed_health_tensor *found = NULL;

	*least = INFINITY;
	*greatest = 0;
	for (const struct outfeed_health_tensor *t = one; t; t = t->next) {
		double value = gradients ? t->start_range : t->start_variance;

		if (t->about.replica != one->about.replica || !(value > 0))
			continue;
		*greatest = fmax(*greatest, value);
		if (!found || value < *least) {
			*least = value;
			found = t;
		}
	}
	return found;
}

/* One hit of a replica for each: its tensors have the loss that does not fall in common. */
static void health_judge_start(struct outfeed_health *health,
			       const struct outfeed_health_tensor *one,
			       const struct outfeed_health_rule *rule)
{
	double least, greatest, range = rule->parameter[HEALTH_POOR_RANGE];
	const struct outfeed_health_tensor *kernel = health_least(one, false, &least, &greatest);
	struct outfeed_hit hit;

	if (kernel && greatest / least > rule->threshold) {
		hit = health_start_hit(&health->first, kernel);
		hit.value = greatest / least;
		hit.threshold = rule->threshold;
		outfeed__health_hand_on(health, &hit);
	}
	kernel = health_least(one, true, &least, &greatest);
	if (kernel && least < range) {
		hit = health_start_hit(&health->first, kernel);
		hit.value = least;
		hit.threshold = range;
		outfeed__health_hand_on(health, &hit);
	}
}

static bool health_is_first_of_replica(const struct outfeed_health *health,
				       const struct outfeed_health_tensor *tensor)
{
	const struct outfeed_health_tensor *other = health->tensors;

	while (other->about.replica != tensor->about.replica)
		other = other->next;
	return other == tensor;
}

void outfeed_health_settle(struct outfeed_health *health)
{
	const struct outfeed_health_rule *rule =
		health_rule(health, OUTFEED_HEALTH_poor_initialization);
	struct health_start *first = &health->first;

	if (!rule->enabled || first->judged ||
	    !atomic_load_explicit(&health->started, memory_order_acquire) ||
	    (double)first->count < rule->parameter[HEALTH_POOR_STEPS])
		return;
	first->judged = true;
	if (!health_no_fall(first, rule))
		return;

	pthread_mutex_lock(&health->start);
	for (const struct outfeed_health_tensor *t = health->tensors; t; t = t->next)
		if (health_is_first_of_replica(health, t))
			health_judge_start(health, t, rule);
	pthread_mutex_unlock(&health->start);
}
