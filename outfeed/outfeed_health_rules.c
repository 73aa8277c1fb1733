/*
 * The table of health rules, and reading changes of it. Constant data and pure functions: any
 * thread.
 *
 * Sources of the defaults: "SageMaker" is the documentation of Amazon SageMaker Debugger's built-in
 * rules; docs/health.md explains the others.
 */
#include "outfeed/outfeed_health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define STEPS_GREATEST 10000 /* losses that can be retained for comparison */

#define RULE(name) [OUTFEED_HEALTH_##name]

static const struct outfeed_health_about rules_about[OUTFEED_HEALTH_RULES] = {
	RULE(nonfinite) = {"nonfinite",
			   "more NaN or infinite values than the threshold in a tensor, or such a "
			   "loss (SageMaker ExplodingTensor)",
			   {NULL},
			   {true, 0, 1, {0}}},
	RULE(exploding) = {"exploding",
			   "a finite value of a tensor is greater than the threshold",
			   {NULL},
			   {true, 1e6, 1, {0}}},
	RULE(vanishing) = {"vanishing",
			   "the mean |gradient| is below the threshold, and not all are zero "
			   "(SageMaker VanishingGradient)",
			   {NULL},
			   {true, 1e-7, 5, {0}}},
	RULE(dead_relu) = {"dead_relu",
			   "a greater part of a relu's neurons than the threshold is 0 in 99 % of "
			   "cases or more (SageMaker DeadRelu)",
			   {"cases"},
			   {true, 0.5, 5, {16}}},
	RULE(saturated_activation) = {"saturated_activation",
				      "a greater part of a tanh's or sigmoid's neurons than the "
				      "threshold is flat in 99 % of cases or more (SageMaker "
				      "SaturatedActivation)",
				      {NULL},
				      {true, 0.5, 5, {0}}},
	RULE(poor_initialization) = {"poor_initialization",
				     "a kernel begins with equal values or zero gradients; or the "
				     "loss does not fall at first and kernels' variances differ "
				     "more than the threshold (SageMaker PoorWeightInitialization)",
				     {"range", "steps"},
				     {true, 10, 5, {0.001, 10}}},
	RULE(unchanged_tensor) = {"unchanged_tensor",
				  "a tensor stays as it was, but for the threshold of its size "
				  "(SageMaker UnchangedTensor)",
				  {"atol"},
				  {true, 1e-5, 3, {1e-8}}},
	RULE(all_zero) = {"all_zero",
			  "a part of an activation or gradient that is not below the threshold is "
			  "zero (SageMaker AllZero)",
			  {NULL},
			  {true, 1, 5, {0}}},
	RULE(update_ratio) = {"update_ratio",
			      "a kernel changes by more than the threshold, or less than `small`, "
			      "times its size (SageMaker WeightUpdateRatio)",
			      {"small"},
			      {true, 10, 3, {1e-8}}},
	RULE(loss_not_decreasing) =
		{"loss_not_decreasing",
		 "the last steps' losses are equal but for the threshold, or an "
		 "epoch's is not lower by it than the best before (SageMaker "
		 "LossNotDecreasing)",
		 {"steps", "floor"},
		 {true, 0.001, 1, {10, 1e-7}}},
	RULE(overfit) = {"overfit",
			 "the validation loss no longer falls, and is above the training loss by "
			 "more than the threshold of it (SageMaker Overfit)",
			 {NULL},
			 {true, 0.1, 1, {0}}},
	RULE(class_imbalance) =
		{"class_imbalance",
		 "the commonest class has more than the threshold times the samples "
		 "of the rarest, and a class is mostly predicted wrong (SageMaker "
		 "ClassImbalance)",
		 {"misprediction", "samples"},
		 {true, 10, 1, {0.7, 500}}},
};

/* Parameters that must be integers, and their bounds; others are any numbers from 0 on. */
static const struct whole {
	enum outfeed_health_id rule;
	int parameter;
	int64_t least, greatest;
} wholes[] = {
	{OUTFEED_HEALTH_dead_relu, OUTFEED_DEAD_CASES, 1, INT64_MAX},
	{OUTFEED_HEALTH_poor_initialization, OUTFEED_POOR_STEPS, 2, INT64_MAX},
	{OUTFEED_HEALTH_loss_not_decreasing, OUTFEED_LOSS_STEPS, 2, STEPS_GREATEST},
	{OUTFEED_HEALTH_class_imbalance, OUTFEED_CLASS_SAMPLES, 1, INT64_MAX},
};

const struct outfeed_health_about *outfeed_health_describe(enum outfeed_health_id id)
{
	return &rules_about[id];
}

bool outfeed_health_find(enum outfeed_health_id *out, const char *name)
{
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		if (strcmp(rules_about[i].name, name) == 0) {
			*out = (enum outfeed_health_id)i;
			return true;
		}
	}
	return false;
}

void outfeed_health_defaults(struct outfeed_health_rules *out)
{
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		out->rule[i] = rules_about[i].fallback;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status read_real(double *out, const struct json_at *at, struct err *err)
{
	double value;
	enum status status = json_real(at, &value, err);

	if (status != ST_OK)
		return status;
	if (!isfinite(value))
		return json_fail(at, err, "must be finite");
	if (value < 0)
		return json_fail(at, err, "must not be negative, as %g is", value);
	*out = value;
	return ST_OK;
}

/* Read one key of a rule, already checked to be valid. */
static enum status read_key(struct outfeed_health_rule *rule, enum outfeed_health_id id,
			    const struct json_at *at, struct err *err)
{
	const struct outfeed_health_about *about = &rules_about[id];

	if (strcmp(at->key, "enabled") == 0)
		return json_bool(at, &rule->enabled, err);
	if (strcmp(at->key, "threshold") == 0)
		return read_real(&rule->threshold, at, err);
	if (strcmp(at->key, "patience") == 0)
		return json_int(at, 1, INT64_MAX, &rule->patience, err);
	for (int i = 0; i < OUTFEED_HEALTH_PARAMETERS && about->parameter[i]; i++) {
		if (strcmp(at->key, about->parameter[i]) == 0) {
			for (size_t j = 0; j < ARRAY_LEN(wholes); j++) {
				const struct whole *whole = &wholes[j];
				enum status status;
				int64_t value;

				if (whole->rule != id || whole->parameter != i)
					continue;
				status = json_int(at, whole->least, whole->greatest, &value, err);
				if (status == ST_OK)
					rule->parameter[i] = (double)value;
				return status;
			}
			return read_real(&rule->parameter[i], at, err);
		}
	}
	return ST_OK;
}

static enum status read_health_rule(struct outfeed_health_rules *rules, const struct json_at *at,
				    struct err *err)
{
	static const char *const names[] = {
#define HEALTH_NAME(name) #name,
		OUTFEED_HEALTH_MAP(HEALTH_NAME)
#undef HEALTH_NAME
	};
	const char *keys[3 + OUTFEED_HEALTH_PARAMETERS] = {"threshold", "patience", "enabled"};
	const struct outfeed_health_about *about;
	struct outfeed_health_rule *rule;
	enum outfeed_health_id id;
	enum status status;
	struct json_at key;
	size_t count = 3;

	if (!outfeed_health_find(&id, at->key))
		return json_unknown(at->up, "health rule", at->key, names, ARRAY_LEN(names), err);
	about = &rules_about[id];
	rule = &rules->rule[id];
	if (cJSON_IsBool(at->node)) {
		rule->enabled = cJSON_IsTrue(at->node);
		return ST_OK;
	}
	if (!cJSON_IsObject(at->node))
		return json_fail(at, err,
				 "must be true, false, or an object such as "
				 "{\"threshold\": %g}",
				 about->fallback.threshold);
	for (int i = 0; i < OUTFEED_HEALTH_PARAMETERS && about->parameter[i]; i++)
		keys[count++] = about->parameter[i];
	status = json_only_keys(at, keys, count, err);
	for (size_t i = 0; i < count && status == ST_OK; i++)
		if (json_child(at, keys[i], &key))
			status = read_key(rule, id, &key, err);
	if (status != ST_OK)
		return status;
	if (id == OUTFEED_HEALTH_poor_initialization &&
	    (double)rule->patience >= rule->parameter[OUTFEED_POOR_STEPS])
		return json_fail(at, err,
				 "patience (%lld) must be below steps (%g), of which it is "
				 "the last part",
				 (long long)rule->patience, rule->parameter[OUTFEED_POOR_STEPS]);
	return ST_OK;
}

enum status outfeed_health_read(struct outfeed_health_rules *rules, const struct json_at *at,
				struct err *err)
{
	struct outfeed_health_rules read = *rules;
	enum status status = json_object(at, err);
	struct json_at rule = {0};

	while (status == ST_OK && json_next(at, &rule))
		status = read_health_rule(&read, &rule, err);
	if (status == ST_OK)
		*rules = read;
	return status;
}

enum status outfeed_health_check(const struct json_at *at, struct err *err)
{
	struct outfeed_health_rules rules;

	outfeed_health_defaults(&rules);
	return outfeed_health_read(&rules, at, err);
}

/* Format with the fewest digits that parse to the same value, with a point in every locale. */
static void format_number(char *out, size_t size, double value)
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out, size, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			break;
	}
	for (char *c = out; *c != '\0'; c++)
		if (!strchr("0123456789+-e", *c))
			*c = '.';
}

void outfeed_health_parameters(char out[OUTFEED_HEALTH_TEXT],
			       const struct outfeed_health_rules *rules, enum outfeed_health_id id)
{
	const struct outfeed_health_about *about = &rules_about[id];
	char number[40];
	int used = snprintf(out, OUTFEED_HEALTH_TEXT, "{");

	for (int i = 0; i < OUTFEED_HEALTH_PARAMETERS && about->parameter[i]; i++) {
		format_number(number, sizeof(number), rules->rule[id].parameter[i]);
		used += snprintf(out + used, OUTFEED_HEALTH_TEXT - (size_t)used, "%s\"%s\": %s",
				 i > 0 ? ", " : "", about->parameter[i], number);
	}
	snprintf(out + used, OUTFEED_HEALTH_TEXT - (size_t)used, "}");
}
