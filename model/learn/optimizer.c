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

/* A number or switch of a config: its offset in struct optimizer, and the range. */
struct optimizer_key {
	const char *key;
	size_t offset;
	double fallback, greatest;
	bool below; /* must be less than `greatest`, not equal */
	bool is_switch;
};

struct optimizer_ops {
	const char *class_name, *name;
	const char *other_name; /* of TensorFlow Addons, or NULL */
	double learning_rate, weight_decay;
	const struct optimizer_key *keys; /* beyond the common ones */
	size_t key_count;
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

static const struct optimizer_key adam_keys[] = {
	{"beta_1", AT(beta_1), .fallback = 0.9, .greatest = 1.0, .below = true},
	{"beta_2", AT(beta_2), .fallback = 0.999, .greatest = 1.0, .below = true},
	{"epsilon", AT(epsilon), .fallback = OPTIMIZER_EPSILON, .greatest = 3e38},
	{"amsgrad", AT(amsgrad), .is_switch = true},
};

static const struct optimizer_key nadam_keys[] = {
	{"beta_1", AT(beta_1), .fallback = 0.9, .greatest = 1.0, .below = true},
	{"beta_2", AT(beta_2), .fallback = 0.999, .greatest = 1.0, .below = true},
	{"epsilon", AT(epsilon), .fallback = OPTIMIZER_EPSILON, .greatest = 3e38},
};

static const struct optimizer_key lamb_keys[] = {
	{"beta_1", AT(beta_1), .fallback = 0.9, .greatest = 1.0, .below = true},
	{"beta_2", AT(beta_2), .fallback = 0.999, .greatest = 1.0, .below = true},
	{"epsilon", AT(epsilon), .fallback = OPTIMIZER_EPSILON, .greatest = 3e38},
	{"weight_decay_rate", AT(weight_decay_rate), .greatest = 3e38},
};

static const struct optimizer_key lion_keys[] = {
	{"beta_1", AT(beta_1), .fallback = 0.9, .greatest = 1.0},
	{"beta_2", AT(beta_2), .fallback = 0.99, .greatest = 1.0},
};

static const struct optimizer_key adagrad_keys[] = {
	{"initial_accumulator_value", AT(initial_accumulator_value), .fallback = 0.1,
	 .greatest = 3e38},
	{"epsilon", AT(epsilon), .fallback = OPTIMIZER_EPSILON, .greatest = 3e38},
};

static const struct optimizer_key rmsprop_keys[] = {
	{"rho", AT(rho), .fallback = 0.9, .greatest = 1.0},
	{"momentum", AT(momentum), .greatest = 1.0},
	{"epsilon", AT(epsilon), .fallback = OPTIMIZER_EPSILON, .greatest = 3e38},
	{"centered", AT(centered), .is_switch = true},
};

static const struct optimizer_key sgd_keys[] = {
	{"momentum", AT(momentum), .greatest = 1.0},
	{"nesterov", AT(nesterov), .is_switch = true},
};

static const struct optimizer_key common_keys[] = {
	{"decay", AT(decay), .greatest = 3e38},
	{"weight_decay", AT(weight_decay), .greatest = 3e38},
	{"clipvalue", AT(clipvalue), .greatest = 3e38},
	{"clipnorm", AT(clipnorm), .greatest = 3e38},
	{"global_clipnorm", AT(global_clipnorm), .greatest = 3e38},
	{"loss_scale_factor", AT(loss_scale), .fallback = 1.0, .greatest = LOSS_SCALE_MOST},
};

/* Options of LossScaleOptimizer, beside "dynamic" and the wrapped optimizer. */
static const struct optimizer_key loss_scale_keys[] = {
	{"initial_scale", AT(loss_scale), .fallback = 32768.0, .greatest = LOSS_SCALE_MOST},
	{"dynamic_growth_steps", AT(loss_scale_growth), .fallback = 2000.0, .greatest = 1e15},
};

/* Class and name; keys beyond the common ones; slots and elements; the default rate. */
#define OPTIMIZER(class_, name_, own, by, on_elements, rate, ...)                                  \
	{                                                                                          \
		.class_name = (class_), .name = (name_), .keys = own##_keys,                       \
		.key_count = ARRAY_LEN(own##_keys), .slots = by##_slots,                           \
		.elements = on_elements##_elements, .learning_rate = (rate), __VA_ARGS__           \
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

/* Options that every optimizer of Keras 2 and 3 writes. */
static const struct model_option optimizer_options[] = {
	{"name", MODEL_ANY},
	{"learning_rate", MODEL_ANY},
	{"lr", MODEL_ANY},
	{"use_ema", MODEL_FALSE},
	{"ema_momentum", MODEL_ANY},
	{"ema_overwrite_frequency", MODEL_NULL},
	{"gradient_accumulation_steps", MODEL_NULL},
	{"jit_compile", MODEL_ANY},
	{"is_legacy_optimizer", MODEL_ANY},
};

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

static void optimizer_read_rate(struct optimizer *out, const struct json_at *config,
				struct err *err)
{
	struct json_at here, old;
	bool new_key = model_option_given(config, "learning_rate", &here, err);
	bool old_key = model_option_given(config, "lr", &old, err);

	if (new_key && old_key)
		json_fail(&old, err, "\"lr\" is the old name of \"learning_rate\": give one");
	else if (new_key || old_key)
		schedule_get(&out->learning_rate, new_key ? &here : &old, err);
}

/* If the option is absent or null, or @config is NULL, set the default. */
static void optimizer_read_key(struct optimizer *out, const struct optimizer_key *key,
			       const struct json_at *config, struct err *err)
{
	void *to = (char *)out + key->offset;
	struct json_at here;
	bool given = config && model_option_at(config, key->key, &here, err), on = false;
	double value = key->fallback;

	if (key->is_switch) {
		if (given)
			json_bool(&here, &on, err);
		memcpy(to, &on, sizeof(on));
		return;
	}
	if (given && json_real(&here, &value, err) == ST_OK &&
	    (!(value >= 0.0) || !(value <= key->greatest) ||
	     (key->below && value >= key->greatest)))
		json_fail(&here, err, "must be at least 0 and %s %g, not %g",
			  key->below ? "below" : "at most", key->greatest, value);
	memcpy(to, &value, sizeof(value));
}

static void optimizer_check(const struct optimizer *optimizer, const struct json_at *config,
			    struct err *err)
{
	const struct optimizer_ops *ops = optimizer_ops(optimizer);
	struct model_option own[12];
	size_t count = 0;

	assert(ops->key_count + ARRAY_LEN(common_keys) <= ARRAY_LEN(own));
	for (size_t i = 0; i < ops->key_count; i++)
		own[count++] = (struct model_option){ops->keys[i].key, MODEL_ANY};
	for (size_t i = 0; i < ARRAY_LEN(common_keys); i++)
		own[count++] = (struct model_option){common_keys[i].key, MODEL_ANY};
	model_config_check(config, own, count, optimizer_options, ARRAY_LEN(optimizer_options),
			   err);
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
		optimizer_check(out, given, err);
	for (size_t i = 0; i < ARRAY_LEN(common_keys); i++)
		optimizer_read_key(out, &common_keys[i], given, err);
	if (!given || !model_option_given(given, "weight_decay", &here, err))
		out->weight_decay = ops->weight_decay;
	for (size_t i = 0; i < ops->key_count; i++)
		optimizer_read_key(out, &ops->keys[i], given, err);
	if (!(out->epsilon > 0.0))
		out->epsilon = OPTIMIZER_EPSILON;
	if (given) {
		optimizer_read_rate(out, given, err);
		optimizer_check_clipping(out, given, err);
		optimizer_check_scale(out, given, "loss_scale_factor", err);
	}
}

/* Read LossScaleOptimizer's @config: the wrapped optimizer, and how the loss is scaled. */
static void optimizer_read_scaled(struct optimizer *out, const struct json_at *config,
				  struct err *err)
{
	static const struct model_option options[] = {
		{"inner_optimizer", MODEL_ANY},    {"dynamic", MODEL_ANY},
		{"initial_scale", MODEL_ANY},      {"dynamic_growth_steps", MODEL_ANY},
		{"weight_decay", MODEL_NULL},      {"clipvalue", MODEL_NULL},
		{"clipnorm", MODEL_NULL},          {"global_clipnorm", MODEL_NULL},
		{"loss_scale_factor", MODEL_NULL},
	};
	struct json_at inner, inner_config, here;
	bool config_here = false;
	const char *name;

	out->loss_scale_dynamic = true;
	if (!cJSON_IsObject(config->node) ||
	    !model_option_at(config, "inner_optimizer", &inner, err))
		json_fail(config, err,
			  "lacks inner_optimizer, which " OPTIMIZER_LOSS_SCALE " is around");
	else
		model_config_check(config, options, ARRAY_LEN(options), optimizer_options,
				   ARRAY_LEN(optimizer_options), err);
	if (err_stuck(err) ||
	    model_config_object(&inner, &name, &inner_config, &config_here, err) != ST_OK)
		return;
	if (strcmp(name, OPTIMIZER_LOSS_SCALE) != 0)
		optimizer_read(out, &inner, name, config_here ? &inner_config : NULL, err);
	if (!err_stuck(err) && out->loss_scale != 1.0)
		json_fail(&inner, err, "scales the loss, too: name %s around one that does not",
			  OPTIMIZER_LOSS_SCALE);
	for (size_t i = 0; i < ARRAY_LEN(loss_scale_keys); i++)
		optimizer_read_key(out, &loss_scale_keys[i], config, err);
	optimizer_check_scale(out, config, "initial_scale", err);
	if (model_option_at(config, "dynamic", &here, err))
		json_bool(&here, &out->loss_scale_dynamic, err);
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
