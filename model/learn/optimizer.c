/*
 * Optimizers: the table, and reading them. No state.
 */
#include "model/learn/optimizer.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "model/model_config.h"

#define OPTIMIZER_EPSILON 1e-7 /* Keras's backend.epsilon() */
#define CLIPPINGS         3

struct optimizer_ops {
	const char *class_name, *name;
	const char *other_name; /* of TensorFlow Addons, or NULL */
	double learning_rate, weight_decay;
	struct model_options options; /* beyond the common ones */
	/* Write the names of the slots to @names; returns their number. */
	int (*slots)(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS]);
	void (*elements)(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS]);
};

/* ---- SGD ------------------------------------------------------------------------------------- */

static int sgd_slots(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS])
{
	names[0] = "momentum";
	return optimizer->momentum > 0.0;
}

static void sgd_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	const bool momentum = optimizer->momentum > 0.0;

	/* a *= momentum; a -= r g; w += a, or w += momentum a; w -= r g */
	times[IPU_FN_SCALED_ADD] = momentum && optimizer->nesterov ? 3 : 1;
	times[IPU_FN_ADD] = momentum ? (optimizer->nesterov ? 1 : 2) : 0;
}

/* ---- RMSprop --------------------------------------------------------------------------------- */

static int rmsprop_slots(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS])
{
	int count = 0;

	names[count++] = "rms";
	if (optimizer->momentum > 0.0)
		names[count++] = "momentum";
	if (optimizer->centered)
		names[count++] = "mg";
	return count;
}

static void rmsprop_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	const bool momentum = optimizer->momentum > 0.0;

	/* s *= rho; s += (1 - rho) (g g); m alike; s - m m; + epsilon; root; division; the step */
	times[IPU_FN_SCALED_ADD] = optimizer->centered ? 3 : 2;
	times[IPU_FN_ADD] = (uint8_t)((optimizer->centered ? 6 : 3) + (momentum ? 2 : 0));
	times[IPU_FN_SQRT] = times[IPU_FN_DIVIDE] = 1;
}

/* ---- Adam ------------------------------------------------------------------------------------ */

static int adam_slots(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS])
{
	names[0] = "m";
	names[1] = "v";
	names[2] = "vhat";
	return optimizer->amsgrad ? 3 : 2;
}

static void adam_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	/* g - m, to m; g g - v, to v; the greater; root, + epsilon, division; the step */
	times[IPU_FN_SCALED_ADD] = 3;
	times[IPU_FN_ADD] = optimizer->amsgrad ? 5 : 4;
	times[IPU_FN_SQRT] = times[IPU_FN_DIVIDE] = 1;
}

/* ---- Adagrad, Nadam, Lamb, Lion -------------------------------------------------------------- */

static int adagrad_slots(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS])
{
	(void)optimizer;
	names[0] = "accumulator";
	return 1;
}

static void adagrad_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	(void)optimizer;
	/* g g, to a; root, + epsilon, division; the step */
	times[IPU_FN_SCALED_ADD] = 2;
	times[IPU_FN_ADD] = 2;
	times[IPU_FN_SQRT] = times[IPU_FN_DIVIDE] = 1;
}

static int nadam_slots(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS])
{
	(void)optimizer;
	names[0] = "m";
	names[1] = "v";
	return 2;
}

static void nadam_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	adam_elements(optimizer, times);
	times[IPU_FN_SCALED_ADD] += 2; /* u m + (1 - u) g */
}

static void lamb_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	adam_elements(optimizer, times);
	times[IPU_FN_SCALED_ADD] = optimizer->weight_decay_rate > 0.0 ? 4 : 3;
	times[IPU_FN_ADD] += 2; /* s s and w w, for the norms */
}

static int lion_slots(const struct optimizer *optimizer, const char *names[OPTIMIZER_SLOTS])
{
	(void)optimizer;
	names[0] = "m";
	return 1;
}

static void lion_elements(const struct optimizer *optimizer, uint8_t times[IPU_FUNCTIONS])
{
	(void)optimizer;
	/* beta_1 m + (1 - beta_1) g; its sign; the step; m alike */
	times[IPU_FN_SCALED_ADD] = 3;
	times[IPU_FN_ADD] = 3;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct optimizer, member)

/* clang-format off */
#define POSITIVE .most = 3e38, .must = "must be at least 0 and at most 3e38"
#define SHARE    .most = 1.0, .must = "must be at least 0 and at most 1"
#define BELOW_1  .most = MODEL_BELOW_1, .must = "must be at least 0 and below 1"
#define SCALE    .most = LOSS_SCALE_MOST, .must = "must be at least 0 and at most 8.50706e+37"
#define EPSILON  {"epsilon", MODEL_REAL, AT(epsilon), POSITIVE, .fallback = OPTIMIZER_EPSILON}
#define BETA_1   {"beta_1", MODEL_REAL, AT(beta_1), BELOW_1, .fallback = 0.9}
#define BETA_2   {"beta_2", MODEL_REAL, AT(beta_2), BELOW_1, .fallback = 0.999}
#define MOMENTUM {"momentum", MODEL_REAL, AT(momentum), SHARE}
static const struct model_option adam_options[] = {BETA_1, BETA_2, EPSILON, {"amsgrad", MODEL_BOOL, AT(amsgrad)}};
static const struct model_option nadam_options[] = {BETA_1, BETA_2, EPSILON};
static const struct model_option lamb_options[] = {
	BETA_1, BETA_2, EPSILON, {"weight_decay_rate", MODEL_REAL, AT(weight_decay_rate), POSITIVE}};
static const struct model_option lion_options[] = {
	{"beta_1", MODEL_REAL, AT(beta_1), SHARE, .fallback = 0.9},
	{"beta_2", MODEL_REAL, AT(beta_2), SHARE, .fallback = 0.99},
};
static const struct model_option adagrad_options[] = {
	{"initial_accumulator_value", MODEL_REAL, AT(initial_accumulator_value), POSITIVE, .fallback = 0.1},
	EPSILON,
};
static const struct model_option rmsprop_options[] = {
	{"rho", MODEL_REAL, AT(rho), SHARE, .fallback = 0.9},
	MOMENTUM,
	EPSILON,
	{"centered", MODEL_BOOL, AT(centered)},
};
static const struct model_option sgd_options[] = {MOMENTUM, {"nesterov", MODEL_BOOL, AT(nesterov)}};
/* Options that every optimizer of Keras 2 and 3 writes. */
static const struct model_option common_options[] = {
	{"decay", MODEL_REAL, AT(decay), POSITIVE},
	{"weight_decay", MODEL_REAL, AT(weight_decay), POSITIVE},
	{"clipvalue", MODEL_REAL, AT(clipvalue), POSITIVE},
	{"clipnorm", MODEL_REAL, AT(clipnorm), POSITIVE},
	{"global_clipnorm", MODEL_REAL, AT(global_clipnorm), POSITIVE},
	{"loss_scale_factor", MODEL_REAL, AT(loss_scale), SCALE, .fallback = 1.0},
	{"name", .rule = MODEL_ANY},
	{"learning_rate", .rule = MODEL_ANY},
	{"lr", .rule = MODEL_ANY},
	{"use_ema", .rule = MODEL_FALSE},
	{"ema_momentum", .rule = MODEL_ANY},
	{"ema_overwrite_frequency", .rule = MODEL_NULL},
	{"gradient_accumulation_steps", .rule = MODEL_NULL},
	{"jit_compile", .rule = MODEL_ANY},
	{"is_legacy_optimizer", .rule = MODEL_ANY},
};
/* clang-format on */
static const struct model_options common = MODEL_OPTIONS(common_options);

/* Class and name; options beyond the common ones; slots and elements; the default rate. */
#define OPTIMIZER(class_, name_, own, by, on_elements, rate, ...)                                  \
	{                                                                                          \
		.class_name = (class_), .name = (name_), .options = MODEL_OPTIONS(own##_options),  \
		.slots = by##_slots, .elements = on_elements##_elements, .learning_rate = (rate),  \
		__VA_ARGS__                                                                        \
	}

static const struct optimizer_ops optimizer_rows[OPTIMIZER_KINDS] = {
	[OPTIMIZER_ADAGRAD] = OPTIMIZER("Adagrad", "adagrad", adagrad, adagrad, adagrad, 0.001,
					.other_name = NULL),
	[OPTIMIZER_ADAM] = OPTIMIZER("Adam", "adam", adam, adam, adam, 0.001, .other_name = NULL),
	[OPTIMIZER_ADAMW] = OPTIMIZER("AdamW", "adamw", adam, adam, adam, 0.001,
				      .weight_decay = 0.004, .other_name = NULL),
	[OPTIMIZER_LAMB] =
		OPTIMIZER("Lamb", "lamb", lamb, nadam, lamb, 0.001, .other_name = "LAMB"),
	[OPTIMIZER_LION] = OPTIMIZER("Lion", "lion", lion, lion, lion, 0.001, .other_name = NULL),
	[OPTIMIZER_NADAM] =
		OPTIMIZER("Nadam", "nadam", nadam, nadam, nadam, 0.001, .other_name = NULL),
	[OPTIMIZER_RMSPROP] = OPTIMIZER("RMSprop", "rmsprop", rmsprop, rmsprop, rmsprop, 0.001,
					.other_name = NULL),
	[OPTIMIZER_SGD] = OPTIMIZER("SGD", "sgd", sgd, sgd, sgd, 0.01, .other_name = NULL),
};

static const struct optimizer_ops *optimizer_ops(const struct optimizer *optimizer)
{
	return &optimizer_rows[optimizer->kind];
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The row named @name, or -1. */
static int optimizer_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(optimizer_rows); i++) {
		const struct optimizer_ops *ops = &optimizer_rows[i];

		if (!strcmp(ops->class_name, name) || !strcmp(ops->name, name) ||
		    (ops->other_name && !strcmp(ops->other_name, name)))
			return (int)i;
	}
	return -1;
}

static void optimizer_check_scale(const struct optimizer *optimizer, const struct json_at *config,
				  const char *key, struct err *err)
{
	struct json_at here;

	if (!err_stuck(err) && !(optimizer->loss_scale > 0.0) &&
	    model_option_at(config, key, &here, err))
		json_fail(&here, err, "a loss times 0 has no gradient");
}

/* Like Keras, accept only one kind of clipping. */
static void optimizer_check_clipping(const struct optimizer *optimizer,
				     const struct json_at *config, struct err *err)
{
	static const char *const names[CLIPPINGS] = {"clipvalue", "clipnorm", "global_clipnorm"};
	const double values[CLIPPINGS] = {optimizer->clipvalue, optimizer->clipnorm,
					  optimizer->global_clipnorm};
	const char *other = NULL;
	struct json_at here;

	for (int i = 0; i < CLIPPINGS; i++) {
		if (!(values[i] > 0.0))
			continue;
		if (other && model_option_at(config, names[i], &here, err))
			json_fail(&here, err, "%s clips already: give one of the two", other);
		other = names[i];
	}
}

/* Read the optimizer @name; @given: its config, or NULL. */
static void optimizer_read(struct optimizer *out, const struct json_at *at, const char *name,
			   const struct json_at *given, struct err *err)
{
	const char *known[ARRAY_LEN(optimizer_rows) + 1];
	const struct optimizer_ops *ops;
	struct json_at here;
	int found = optimizer_find(name);

	if (found < 0) {
		for (size_t i = 0; i < ARRAY_LEN(optimizer_rows); i++)
			known[i] = optimizer_rows[i].class_name;
		known[ARRAY_LEN(optimizer_rows)] = OPTIMIZER_LOSS_SCALE;
		json_unknown(at, "optimizer", name, known, ARRAY_LEN(known), err);
		return;
	}
	out->kind = (enum optimizer_kind)found;
	ops = optimizer_ops(out);
	out->learning_rate = schedule_constant(ops->learning_rate);
	if (given)
		model_config_check(given, ops->options.rows, ops->options.count, common.rows,
				   common.count, err);
	model_config_read(given, &common, out, NULL, err);
	if (!given || !model_option_given(given, "weight_decay", &here, err))
		out->weight_decay = ops->weight_decay;
	model_config_read(given, &ops->options, out, NULL, err);
	if (!(out->epsilon > 0.0))
		out->epsilon = OPTIMIZER_EPSILON;
	if (given) {
		struct json_at now, old;
		bool new_key = model_option_given(given, "learning_rate", &now, err);
		bool old_key = model_option_given(given, "lr", &old, err);

		if (new_key && old_key)
			json_fail(&old, err,
				  "\"lr\" is the old name of \"learning_rate\": give one");
		else if (new_key || old_key)
			schedule_get(&out->learning_rate, new_key ? &now : &old, err);

		optimizer_check_clipping(out, given, err);
		optimizer_check_scale(out, given, "loss_scale_factor", err);
	}
}

/* Read LossScaleOptimizer's @config: the wrapped optimizer, and how the loss is scaled. */
static void optimizer_read_scaled(struct optimizer *out, const struct json_at *config,
				  struct err *err)
{
	static const struct model_option rows[] = {
		{"inner_optimizer", .rule = MODEL_ANY},
		{"dynamic", MODEL_BOOL, AT(loss_scale_dynamic), .fallback = true},
		{"initial_scale", MODEL_REAL, AT(loss_scale), SCALE, .fallback = 32768.0},
		{"dynamic_growth_steps", MODEL_REAL, AT(loss_scale_growth), .most = 1e15,
		 .must = "must be at least 0 and at most 1e+15", .fallback = 2000.0},
		{"weight_decay", .rule = MODEL_NULL},
		{"clipvalue", .rule = MODEL_NULL},
		{"clipnorm", .rule = MODEL_NULL},
		{"global_clipnorm", .rule = MODEL_NULL},
		{"loss_scale_factor", .rule = MODEL_NULL},
	};
	static const struct model_options options = MODEL_OPTIONS(rows);
	struct json_at inner, inner_config;
	bool config_here = false;
	const char *name;

	if (!cJSON_IsObject(config->node) ||
	    !model_option_at(config, "inner_optimizer", &inner, err))
		json_fail(config, err,
			  "lacks inner_optimizer, which " OPTIMIZER_LOSS_SCALE " is around");
	else
		model_config_check(config, options.rows, options.count, common.rows, common.count,
				   err);
	if (err_stuck(err) ||
	    model_config_object(&inner, &name, &inner_config, &config_here, err) != ST_OK)
		return;
	if (strcmp(name, OPTIMIZER_LOSS_SCALE) != 0)
		optimizer_read(out, &inner, name, config_here ? &inner_config : NULL, err);
	if (!err_stuck(err) && out->loss_scale != 1.0)
		json_fail(&inner, err, "scales the loss, too: name %s around one that does not",
			  OPTIMIZER_LOSS_SCALE);
	model_config_read(config, &options, out, NULL, err);
	optimizer_check_scale(out, config, "initial_scale", err);
}

enum status optimizer_get(struct optimizer *out, const struct json_at *at, struct err *err)
{
	const char *name = "SGD";
	struct json_at config;
	bool config_here = false;
	struct err own;

	err = err_start(err, &own);
	*out = (struct optimizer){0};
	if (at && model_config_object(at, &name, &config, &config_here, err) != ST_OK)
		return err->status;
	if (!strcmp(name, OPTIMIZER_LOSS_SCALE))
		optimizer_read_scaled(out, &config, err);
	else
		optimizer_read(out, at, name, config_here ? &config : NULL, err);
	return err->status;
}

/* ---- queries --------------------------------------------------------------------------------- */

const char *optimizer_name(const struct optimizer *optimizer)
{
	return optimizer_ops(optimizer)->class_name;
}

double optimizer_rate(const struct optimizer *optimizer, int64_t update)
{
	return schedule_rate(&optimizer->learning_rate, update) /
	       (1.0 + optimizer->decay * (double)update);
}

int optimizer_slots(const struct optimizer *optimizer)
{
	const char *names[OPTIMIZER_SLOTS];

	return optimizer_ops(optimizer)->slots(optimizer, names);
}

const char *optimizer_slot_name(const struct optimizer *optimizer, int slot)
{
	const char *names[OPTIMIZER_SLOTS];

	assert(slot >= 0 && slot < optimizer_slots(optimizer));
	optimizer_ops(optimizer)->slots(optimizer, names);
	return names[slot];
}

float optimizer_slot_start(const struct optimizer *optimizer)
{
	return optimizer->kind == OPTIMIZER_ADAGRAD ? (float)optimizer->initial_accumulator_value
						    : 0.0f;
}

bool optimizer_needs_norms(const struct optimizer *optimizer)
{
	return optimizer->kind == OPTIMIZER_LAMB || optimizer->clipnorm > 0.0 ||
	       optimizer_needs_whole_norm(optimizer);
}

/* A dynamic scale needs to know whether the norm is finite. */
bool optimizer_needs_whole_norm(const struct optimizer *optimizer)
{
	return optimizer->global_clipnorm > 0.0 || optimizer->loss_scale_dynamic;
}

bool optimizer_scales_loss(const struct optimizer *optimizer)
{
	return optimizer->loss_scale_dynamic ||
	       (optimizer->loss_scale > 0.0 && optimizer->loss_scale != 1.0);
}

struct ipu_elements optimizer_elements(const struct optimizer *optimizer, int64_t count)
{
	struct ipu_elements elements = {.count = count, .operands = 2 + optimizer_slots(optimizer)};

	optimizer_ops(optimizer)->elements(optimizer, elements.times);
	if (optimizer->weight_decay > 0.0)
		elements.times[IPU_FN_SCALED_ADD]++;
	if (optimizer->clipvalue > 0.0)
		elements.times[IPU_FN_ADD] += 2; /* two comparisons */
	if (optimizer->clipnorm > 0.0 || optimizer->global_clipnorm > 0.0)
		elements.times[IPU_FN_ADD] += 2; /* g g, and g times the ratio of norms */
	else if (optimizer->loss_scale_dynamic)
		elements.times[IPU_FN_ADD]++; /* g g */
	if (optimizer_scales_loss(optimizer))
		elements.times[IPU_FN_ADD]++; /* g divided by the scale */
	return elements;
}
