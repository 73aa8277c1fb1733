/*
 * The state machine of the health rules: tensors and their rows. See outfeed_health.h for threads.
 *
 * A row asks all judges of its tensor; a rule is hit when one of them has found it broken for
 * `patience` rows in a row. Nothing is allocated after a tensor has been added.
 */
#include "outfeed/outfeed_health.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_health_internal.h"

#define HEALTH_RANGE_STD 3.29 /* from the 5th to the 95th percentile of a normal distribution */

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
	health->best_epoch = NAN;

	loss = &health->rules.rule[OUTFEED_HEALTH_loss_not_decreasing];
	health->loss_steps = (int64_t)loss->parameter[HEALTH_LOSS_STEPS];
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

static void health_free_tensor(struct outfeed_health_tensor *tensor)
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
		health_free_tensor(tensor);
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
		health_free_tensor(tensor);
		return err_nomem(err);
	}

	*health->end = tensor;
	health->end = &tensor->next;
	*out = tensor;
	return ST_OK;
}

bool outfeed__health_onset(int64_t *broken, enum health_verdict verdict, int64_t patience)
{
	if (verdict == HEALTH_SOUND)
		*broken = 0;
	if (verdict != HEALTH_BROKEN)
		return false;
	++*broken;
	return *broken == patience;
}

void outfeed__health_hand_on(struct outfeed_health *health, const struct outfeed_hit *hit)
{
	if (!health->hit)
		return;
	pthread_mutex_lock(&health->hits);
	health->hit(health->user, hit);
	pthread_mutex_unlock(&health->hits);
}

/* Keep what poor_initialization wants to know when the first losses are there. */
static void health_keep_start(struct outfeed_health_tensor *tensor,
			      const struct outfeed_health_row *row)
{
	struct outfeed_health *health = tensor->health;
	const struct outfeed_health_rule *rule =
		&health->rules.rule[OUTFEED_HEALTH_poor_initialization];
	enum outfeed_kind kind = tensor->about.kind;

	if (!rule->enabled || !tensor->about.matrix ||
	    (kind != OUTFEED_WEIGHT && kind != OUTFEED_GRADIENT))
		return;
	/* Replicas and stages are never two updates apart. */
	if (outfeed__health_age(tensor, row) >= 2 &&
	    !atomic_load_explicit(&health->started, memory_order_relaxed))
		atomic_store_explicit(&health->started, true, memory_order_release);
	if (tensor->rows > 0 || isnan(row->std) ||
	    !((double)outfeed__health_age(tensor, row) < rule->parameter[HEALTH_POOR_STEPS]))
		return;

	pthread_mutex_lock(&health->start);
	if (kind == OUTFEED_GRADIENT)
		tensor->start_range = HEALTH_RANGE_STD * row->std;
	else
		tensor->start_variance = row->std * row->std;
	pthread_mutex_unlock(&health->start);
}

/* Ask one judge; is its verdict one to be recorded? */
static bool health_ask(struct outfeed_health_tensor *tensor, enum health_judge_id id,
		       const struct outfeed_health_row *row)
{
	const struct health_judge *judge = &outfeed__health_judges[id];
	const struct outfeed_health_about_tensor *about = &tensor->about;
	const struct outfeed_health_rule *rule = &tensor->health->rules.rule[judge->rule];
	int64_t before = tensor->broken[id];
	struct health_finding finding;

	if (!rule->enabled || !(judge->kinds & 1u << about->kind) ||
	    (judge->matrices && !about->matrix))
		return false;
	finding = judge->ask(rule, tensor, row);
	if (outfeed__health_onset(&tensor->broken[id], finding.verdict,
				  judge->at_once ? 1 : rule->patience))
		outfeed__health_hand_on(tensor->health, &(struct outfeed_hit){
								.rule = judge->rule,
								.tensor_id = about->tensor_id,
								.key = about->key,
								.layer = about->layer,
								.keys = row->keys,
								.time_ns = row->time_ns,
								.value = finding.value,
								.threshold = finding.threshold,
							});
	return finding.verdict == HEALTH_BROKEN || (finding.verdict == HEALTH_SOUND && before > 0);
}

bool outfeed_health_row(struct outfeed_health_tensor *tensor, const struct outfeed_health_row *row)
{
	bool matters = false;

	for (int id = 0; id < HEALTH_JUDGES; id++)
		if (health_ask(tensor, (enum health_judge_id)id, row))
			matters = true;
	health_keep_start(tensor, row);
	tensor->before = *row;
	tensor->rows++;
	return matters;
}
