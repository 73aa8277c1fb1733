/*
 * Learning-rate schedules. No state.
 */
#include "model/learn/schedule.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/elementary.h"
#include "common/mem.h"
#include "model/model_config.h"

/* A number or switch of a config: its offset in struct schedule, and the range. */
struct schedule_key {
	const char *key;
	size_t offset;
	double least, fallback; /* NaN fallback: the option is required */
	bool is_switch;
};

struct schedule_ops {
	const char *class_name;
	const struct schedule_key *keys;
	size_t key_count;
	/* Read more than the keys; may be NULL. */
	void (*read)(struct schedule *out, const struct json_at *config, struct err *err);
	double (*rate)(const struct schedule *schedule, double update);
};

#define AT(member) .offset = offsetof(struct schedule, member)

/* ---- the formulas ---------------------------------------------------------------------------- */

static double schedule_share(const struct schedule *s, double update)
{
	double share = update / s->steps;

	return s->decay.staircase ? floor(share) : share;
}

static double exponential_rate(const struct schedule *s, double update)
{
	return s->rate * elementary_pow(s->decay.rate, schedule_share(s, update));
}

static double inverse_rate(const struct schedule *s, double update)
{
	return s->rate / (1.0 + s->decay.rate * schedule_share(s, update));
}

static double polynomial_rate(const struct schedule *s, double update)
{
	double steps = s->steps, end = s->polynomial.end;

	if (s->polynomial.cycle)
		steps *= update > 0.0 ? ceil(update / steps) : 1.0;
	else
		update = fmin(update, steps);
	return (s->rate - end) * elementary_pow(1.0 - update / steps, s->polynomial.power) + end;
}

static double cosine_of(const struct schedule *s, double share, double height)
{
	double cosine = 0.5 * height * (1.0 + elementary_cos_pi(share));

	return s->rate * ((1.0 - s->cosine.alpha) * cosine + s->cosine.alpha);
}

static double cosine_rate(const struct schedule *s, double update)
{
	return cosine_of(s, fmin(update, s->steps) / s->steps, 1.0);
}

/* A period begins after (1 - t_mul^i) / (1 - t_mul) times the first period's length. */
static double restarts_rate(const struct schedule *s, double update)
{
	double share = update / s->steps, t = s->cosine.t_mul, restarts, length;

	if (!(t > 1.0)) {
		restarts = floor(share);
		return cosine_of(s, share - restarts, elementary_pow(s->cosine.m_mul, restarts));
	}
	restarts = floor(elementary_log(1.0 + share * (t - 1.0)) / elementary_log(t));
	/* The logarithm may be slightly too small and give the period before. */
	if (share - (elementary_pow(t, restarts + 1.0) - 1.0) / (t - 1.0) >= 0.0)
		restarts += 1.0;
	length = elementary_pow(t, restarts);
	return cosine_of(s, fmax(share - (length - 1.0) / (t - 1.0), 0.0) / length,
			 elementary_pow(s->cosine.m_mul, restarts));
}

static double piecewise_rate(const struct schedule *s, double update)
{
	int i = 0;

	while (i < s->piecewise.count && update > (double)s->piecewise.boundaries[i])
		i++;
	return s->piecewise.values[i];
}

/* ---- the table ------------------------------------------------------------------------------- */

static void piecewise_read(struct schedule *out, const struct json_at *config, struct err *err);

static const struct schedule_key decay_keys[] = {
	{"initial_learning_rate", AT(rate), .fallback = NAN},
	{"decay_steps", AT(steps), .least = DBL_MIN, .fallback = NAN},
	{"decay_rate", AT(decay.rate), .fallback = NAN},
	{"staircase", AT(decay.staircase), .is_switch = true},
};

static const struct schedule_key polynomial_keys[] = {
	{"initial_learning_rate", AT(rate), .fallback = NAN},
	{"decay_steps", AT(steps), .least = DBL_MIN, .fallback = NAN},
	{"end_learning_rate", AT(polynomial.end), .fallback = 0.0001},
	{"power", AT(polynomial.power), .fallback = 1.0},
	{"cycle", AT(polynomial.cycle), .is_switch = true},
};

static const struct schedule_key cosine_keys[] = {
	{"initial_learning_rate", AT(rate), .fallback = NAN},
	{"decay_steps", AT(steps), .least = DBL_MIN, .fallback = NAN},
	{"alpha", AT(cosine.alpha)},
};

static const struct schedule_key restarts_keys[] = {
	{"initial_learning_rate", AT(rate), .fallback = NAN},
	{"first_decay_steps", AT(steps), .least = DBL_MIN, .fallback = NAN},
	{"t_mul", AT(cosine.t_mul), .least = 1.0, .fallback = 2.0},
	{"m_mul", AT(cosine.m_mul), .fallback = 1.0},
	{"alpha", AT(cosine.alpha)},
};

#define KEYS(table) .keys = (table), .key_count = ARRAY_LEN(table)

static const struct schedule_ops schedule_rows[] = {
	{.class_name = "CosineDecay", KEYS(cosine_keys), .rate = cosine_rate},
	{.class_name = "CosineDecayRestarts", KEYS(restarts_keys), .rate = restarts_rate},
	{.class_name = "ExponentialDecay", KEYS(decay_keys), .rate = exponential_rate},
	{.class_name = "InverseTimeDecay", KEYS(decay_keys), .rate = inverse_rate},
	{.class_name = "PiecewiseConstantDecay", .read = piecewise_read, .rate = piecewise_rate},
	{.class_name = "PolynomialDecay", KEYS(polynomial_keys), .rate = polynomial_rate},
};

/* Options of any schedule; the warm-up is Keras 3's. */
static const struct model_option schedule_options[] = {
	{"name", MODEL_ANY},
	{"warmup_target", MODEL_NULL},
	{"warmup_steps", MODEL_ZERO},
};

/* ---- reading --------------------------------------------------------------------------------- */

static void schedule_number(double *out, const struct json_at *at, double least, struct err *err)
{
	if (json_real(at, out, err) != ST_OK)
		return;
	if (!(*out <= 3e38))
		json_fail(at, err, "must be at most 3e38, not %g", *out);
	else if (*out < least && least > 0.0 && least < 1.0)
		json_fail(at, err, "must be above 0, not %g", *out);
	else if (*out < least)
		json_fail(at, err, "must be at least %g, not %g", least, *out);
}

static void schedule_read_key(struct schedule *out, const struct schedule_key *key,
			      const struct json_at *config, struct err *err)
{
	void *to = (char *)out + key->offset;
	struct json_at here;
	bool given = model_option_at(config, key->key, &here, err), on = false;
	double value = key->fallback;

	if (err_stuck(err))
		return;
	if (!given && isnan(key->fallback))
		json_fail(config, err, "\"%s\" is missing", key->key);
	else if (given && key->is_switch)
		json_bool(&here, &on, err);
	else if (given)
		schedule_number(&value, &here, key->least, err);
	if (key->is_switch)
		memcpy(to, &on, sizeof(on));
	else
		memcpy(to, &value, sizeof(value));
}

static void piecewise_read(struct schedule *out, const struct json_at *config, struct err *err)
{
	struct json_at boundaries, values, here;
	int64_t before = -1, at = 0;

	if (!model_option_need(config, "boundaries", &boundaries, err) ||
	    json_array(&boundaries, err) != ST_OK ||
	    !model_option_need(config, "values", &values, err) || json_array(&values, err) != ST_OK)
		return;
	out->piecewise.count = json_count(&boundaries);
	if (out->piecewise.count > SCHEDULE_BOUNDARIES)
		json_fail(&boundaries, err, "at most %d are supported", SCHEDULE_BOUNDARIES);
	else if (json_count(&values) != out->piecewise.count + 1)
		json_fail(&values, err, "must be one more than the boundaries: %d, not %d",
			  out->piecewise.count + 1, json_count(&values));
	for (int i = 0; !err_stuck(err) && json_item(&boundaries, i, &here); i++) {
		if (json_int(&here, 0, INT64_C(1) << 53, &at, err) == ST_OK && at <= before)
			json_fail(&here, err, "boundaries must increase");
		out->piecewise.boundaries[i] = before = at;
	}
	for (int i = 0; !err_stuck(err) && json_item(&values, i, &here); i++)
		schedule_number(&out->piecewise.values[i], &here, 0.0, err);
	out->rate = out->piecewise.values[0];
}

static void schedule_check(const struct schedule_ops *ops, const struct json_at *config,
			   struct err *err)
{
	struct model_option own[8] = {{"boundaries", MODEL_ANY}, {"values", MODEL_ANY}};
	size_t count = ops->read ? 2 : ops->key_count;

	for (size_t i = 0; i < ops->key_count; i++)
		own[i] = (struct model_option){ops->keys[i].key, MODEL_ANY};
	model_config_check(config, own, count, schedule_options, ARRAY_LEN(schedule_options), err);
}

enum status schedule_get(struct schedule *out, const struct json_at *at, struct err *err)
{
	const char *known[ARRAY_LEN(schedule_rows)], *name;
	struct json_at config;
	bool config_here;
	struct err own;

	err = err_start(err, &own);
	*out = (struct schedule){0};
	if (!cJSON_IsObject(at->node)) {
		schedule_number(&out->rate, at, 0.0, err);
		return err->status;
	}
	if (model_config_object(at, &name, &config, &config_here, err) != ST_OK)
		return err->status;
	for (size_t i = 0; i < ARRAY_LEN(schedule_rows); i++) {
		known[i] = schedule_rows[i].class_name;
		if (!strcmp(name, known[i]))
			out->ops = &schedule_rows[i];
	}
	if (!out->ops)
		return json_unknown(at, "schedule", name, known, ARRAY_LEN(known), err);
	if (!config_here)
		return json_fail(at, err, "\"config\" is missing");

	schedule_check(out->ops, &config, err);
	for (size_t i = 0; i < out->ops->key_count; i++)
		schedule_read_key(out, &out->ops->keys[i], &config, err);
	if (out->ops->read)
		out->ops->read(out, &config, err);
	return err->status;
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct schedule schedule_constant(double rate)
{
	return (struct schedule){.rate = rate};
}

double schedule_rate(const struct schedule *schedule, int64_t update)
{
	return schedule->ops ? schedule->ops->rate(schedule, (double)update) : schedule->rate;
}

const char *schedule_name(const struct schedule *schedule)
{
	return schedule->ops ? schedule->ops->class_name : NULL;
}

const char *schedule_kind_name(int index)
{
	return (size_t)index < ARRAY_LEN(schedule_rows) ? schedule_rows[index].class_name : NULL;
}
