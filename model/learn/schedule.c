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

struct schedule_ops {
	const char *class_name;
	struct model_options options;
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

/* clang-format off */
#define NUMBER(least_, must_) .least = (least_), .most = 3e38, .must = (must_)
#define POSITIVE     NUMBER(0.0, "must be at least 0")
#define ABOVE_0      NUMBER(DBL_MIN, "must be above 0")
#define AT_LEAST_1   NUMBER(1.0, "must be at least 1")
#define INITIAL_RATE {"initial_learning_rate", MODEL_REAL, AT(rate), POSITIVE, .required = true}
#define STEPS(key)   {(key), MODEL_REAL, AT(steps), ABOVE_0, .required = true}
/* clang-format on */

static const struct model_option decay_options[] = {
	INITIAL_RATE,
	STEPS("decay_steps"),
	{"decay_rate", MODEL_REAL, AT(decay.rate), POSITIVE, .required = true},
	{"staircase", MODEL_BOOL, AT(decay.staircase)},
};
static const struct model_option polynomial_options[] = {
	INITIAL_RATE,
	STEPS("decay_steps"),
	{"end_learning_rate", MODEL_REAL, AT(polynomial.end), POSITIVE, .fallback = 0.0001},
	{"power", MODEL_REAL, AT(polynomial.power), POSITIVE, .fallback = 1.0},
	{"cycle", MODEL_BOOL, AT(polynomial.cycle)},
};
static const struct model_option cosine_options[] = {
	INITIAL_RATE,
	STEPS("decay_steps"),
	{"alpha", MODEL_REAL, AT(cosine.alpha), POSITIVE},
};
static const struct model_option restarts_options[] = {
	INITIAL_RATE,
	STEPS("first_decay_steps"),
	{"t_mul", MODEL_REAL, AT(cosine.t_mul), AT_LEAST_1, .fallback = 2.0},
	{"m_mul", MODEL_REAL, AT(cosine.m_mul), POSITIVE, .fallback = 1.0},
	{"alpha", MODEL_REAL, AT(cosine.alpha), POSITIVE},
};
static const struct model_option piecewise_options[] = {{"boundaries", .rule = MODEL_ANY},
							{"values", .rule = MODEL_ANY}};

#define OPTIONS(table) .options = MODEL_OPTIONS(table)

static const struct schedule_ops schedule_rows[] = {
	{.class_name = "CosineDecay", OPTIONS(cosine_options), .rate = cosine_rate},
	{.class_name = "CosineDecayRestarts", OPTIONS(restarts_options), .rate = restarts_rate},
	{.class_name = "ExponentialDecay", OPTIONS(decay_options), .rate = exponential_rate},
	{.class_name = "InverseTimeDecay", OPTIONS(decay_options), .rate = inverse_rate},
	{.class_name = "PiecewiseConstantDecay",
	 OPTIONS(piecewise_options),
	 .read = piecewise_read,
	 .rate = piecewise_rate},
	{.class_name = "PolynomialDecay", OPTIONS(polynomial_options), .rate = polynomial_rate},
};

/* Options of any schedule; the warm-up is Keras 3's. */
static const struct model_option schedule_options[] = {
	{"name", .rule = MODEL_ANY},
	{"warmup_target", .rule = MODEL_NULL},
	{"warmup_steps", .rule = MODEL_ZERO},
};

/* ---- reading --------------------------------------------------------------------------------- */

static const struct model_option schedule_rate_option = {.rule = MODEL_REAL, POSITIVE};

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
		out->piecewise.values[i] = model_option_number(&schedule_rate_option, &here, err);
	out->rate = out->piecewise.values[0];
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
		out->rate = model_option_number(&schedule_rate_option, at, err);
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

	model_config_check(&config, out->ops->options.rows, out->ops->options.count,
			   schedule_options, ARRAY_LEN(schedule_options), err);
	model_config_read(&config, &out->ops->options, out, NULL, err);
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
