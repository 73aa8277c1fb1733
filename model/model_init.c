/*
 * Initial values and regularisers of parameters: one table row for each of Keras's. No state.
 *
 * Variance scaling as in Keras: variance = scale / fan. A uniform distribution has the limit
 * sqrt(3 variance); a normal one is truncated at two deviations and widened to compensate.
 */
#include "model/model.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "model/model_config.h"

#define INIT_TRUNCATED     0.87962566103423978 /* deviation of a normal truncated at 2 deviations */
#define REGULARIZER_FACTOR 0.01 /* Keras's default of L1 and L2; L1L2's is 0 in an object */

enum init_fan {
	INIT_NO_FAN,
	INIT_FAN_IN,
	INIT_FAN_OUT,
	INIT_FAN_AVERAGE
};

struct init_row {
	const char *class_name, *short_name;
	enum model_init_kind kind;
	enum init_fan fan; /* variance = scale / fan */
	double scale;
	const char *low, *high;       /* options that set low and high, or NULL */
	double low_value, high_value; /* their defaults */
	const char *other_name;       /* the class in some versions of Keras 3, or NULL */
};

/* clang-format off */
static const struct init_row init_rows[] = {
	{"GlorotUniform", "glorot_uniform", MODEL_INIT_UNIFORM, INIT_FAN_AVERAGE, 1.0, NULL, NULL, 0, 0, NULL},
	{"GlorotNormal", "glorot_normal", MODEL_INIT_TRUNCATED, INIT_FAN_AVERAGE, 1.0, NULL, NULL, 0, 0, NULL},
	{"LecunUniform", "lecun_uniform", MODEL_INIT_UNIFORM, INIT_FAN_IN, 1.0, NULL, NULL, 0, 0, NULL},
	{"LecunNormal", "lecun_normal", MODEL_INIT_TRUNCATED, INIT_FAN_IN, 1.0, NULL, NULL, 0, 0, NULL},
	{"VarianceScaling", "variance_scaling", MODEL_INIT_TRUNCATED, INIT_FAN_IN, 1.0, NULL, NULL, 0, 0, NULL},
	{"HeUniform", "he_uniform", MODEL_INIT_UNIFORM, INIT_FAN_IN, 2.0, NULL, NULL, 0, 0, NULL},
	{"HeNormal", "he_normal", MODEL_INIT_TRUNCATED, INIT_FAN_IN, 2.0, NULL, NULL, 0, 0, NULL},
	{"Zeros", "zeros", MODEL_INIT_CONSTANT, INIT_NO_FAN, 0, NULL, NULL, 0, 0, NULL},
	{"Ones", "ones", MODEL_INIT_CONSTANT, INIT_NO_FAN, 0, NULL, NULL, 1, 0, NULL},
	{"Constant", "constant", MODEL_INIT_CONSTANT, INIT_NO_FAN, 0, "value", NULL, 0, 0, NULL},
	{"RandomUniform", "random_uniform", MODEL_INIT_UNIFORM, INIT_NO_FAN, 0, "minval", "maxval", -0.05, 0.05, NULL},
	{"RandomNormal", "random_normal", MODEL_INIT_NORMAL, INIT_NO_FAN, 0, "mean", "stddev", 0, 0.05, NULL},
	{"Orthogonal", "orthogonal", MODEL_INIT_ORTHOGONAL, INIT_NO_FAN, 0, "gain", NULL, 1, 0, "OrthogonalInitializer"},
	{"TruncatedNormal", "truncated_normal", MODEL_INIT_TRUNCATED, INIT_NO_FAN, 0, "mean", "stddev", 0, 0.05, NULL},
};
/* clang-format on */

static const struct init_row *init_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(init_rows); i++)
		if (!strcmp(init_rows[i].class_name, name) ||
		    !strcmp(init_rows[i].short_name, name) ||
		    (init_rows[i].other_name && !strcmp(init_rows[i].other_name, name)))
			return &init_rows[i];
	return NULL;
}

static double init_fan(enum init_fan fan, int64_t fan_in, int64_t fan_out)
{
	double value = fan == INIT_FAN_IN    ? (double)fan_in
		       : fan == INIT_FAN_OUT ? (double)fan_out
					     : ((double)fan_in + (double)fan_out) / 2.0;

	return max(1.0, value);
}

static struct model_init init_scaled(enum model_init_kind kind, double variance)
{
	struct model_init init = {.kind = kind};

	if (kind == MODEL_INIT_UNIFORM) {
		init.high = sqrt(3.0 * variance);
		init.low = -init.high;
	} else if (kind == MODEL_INIT_TRUNCATED) {
		init.high = sqrt(variance) / INIT_TRUNCATED;
	} else {
		init.high = sqrt(variance);
	}
	return init;
}

static struct model_init init_default(const struct init_row *row, int64_t fan_in, int64_t fan_out)
{
	if (row->fan == INIT_NO_FAN)
		return (struct model_init){row->kind, row->low_value, row->high_value, 1};
	return init_scaled(row->kind, row->scale / init_fan(row->fan, fan_in, fan_out));
}

struct model_init model_init_named(const char *name, int64_t fan_in, int64_t fan_out)
{
	const struct init_row *row = init_find(name);

	assert(row);
	return init_default(row, fan_in, fan_out);
}

/* VarianceScaling is the only initializer whose fan and distribution are options. "normal" is
 * Keras's old name of "truncated_normal". */
static void init_variance_scaling(const struct json_at *config, struct model_init *init,
				  int64_t fan_in, int64_t fan_out, struct err *err)
{
	static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
	static const enum init_fan fans[] = {INIT_FAN_IN, INIT_FAN_OUT, INIT_FAN_AVERAGE};
	static const char *const distributions[] = {"truncated_normal", "normal",
						    "untruncated_normal", "uniform", NULL};
	static const enum model_init_kind kinds[] = {MODEL_INIT_TRUNCATED, MODEL_INIT_TRUNCATED,
						     MODEL_INIT_NORMAL, MODEL_INIT_UNIFORM};
	struct scaling {
		double scale;
		int mode, distribution;
	} s;
	static const struct model_option rows[] = {
		{"scale", MODEL_REAL, offsetof(struct scaling, scale), .strict = true,
		 .least = DBL_MIN, .most = 1e30, .must = "must be greater than 0", .fallback = 1.0},
		{"mode", MODEL_CHOICE, offsetof(struct scaling, mode), .strict = true,
		 .choices = modes},
		{"distribution", MODEL_CHOICE, offsetof(struct scaling, distribution),
		 .strict = true, .choices = distributions},
		{"seed", .rule = MODEL_ANY},
		{"dtype", .rule = MODEL_FLOAT32},
	};
	static const struct model_options options = MODEL_OPTIONS(rows);

	model_config_check(config, rows, ARRAY_LEN(rows), NULL, 0, err);
	if (model_config_read(config, &options, &s, NULL, err) == ST_OK)
		*init = init_scaled(kinds[s.distribution],
				    s.scale / init_fan(fans[s.mode], fan_in, fan_out));
}

/* The row of an option; the field already has the default. */
#define INIT_OPTION(key_, member)                                                                  \
	{                                                                                          \
		.key = (key_), .rule = MODEL_REAL, .strict = true, .fallback = out->member,        \
		.offset = offsetof(struct model_init, member)                                      \
	}

enum status model_init_read(struct model_init *out, const struct json_at *at, int64_t fan_in,
			    int64_t fan_out, struct err *err)
{
	const struct init_row *row;
	struct json_at config;
	const char *name;
	bool config_here;
	struct err own;

	err = err_start(err, &own);
	if (model_config_object(at, &name, &config, &config_here, err) != ST_OK)
		return err->status;
	row = init_find(name);
	if (!row) {
		struct str known = {0};

		for (size_t i = 0; i < ARRAY_LEN(init_rows); i++)
			str_addf(&known, "%s%s", i ? ", " : "", init_rows[i].class_name);
		if (known.failed)
			err_nomem(err);
		else
			model_config_unsupported(
				at, err, "initializer \"%s\" is not supported (there are %s)", name,
				str_peek(&known));
		str_free(&known);
		return err->status;
	}

	*out = init_default(row, fan_in, fan_out);
	if (config_here && !strcmp(row->class_name, "VarianceScaling")) {
		init_variance_scaling(&config, out, fan_in, fan_out, err);
		return err->status;
	}
	if (config_here) {
		const struct model_option rows[] = {
			{"seed", .rule = MODEL_ANY},
			{"dtype", .rule = MODEL_FLOAT32},
			INIT_OPTION(row->low, low),
			INIT_OPTION(row->high, high),
		};
		const struct model_options options = {rows, 2u + (row->low != NULL) +
								    (row->high != NULL)};

		model_config_check(&config, options.rows, options.count, NULL, 0, err);
		model_config_read(&config, &options, out, NULL, err);
	}
	if (!err_stuck(err) && out->kind != MODEL_INIT_UNIFORM && out->high < 0.0)
		json_fail(at, err, "stddev must be at least 0");
	if (!err_stuck(err) && out->kind == MODEL_INIT_UNIFORM && out->high < out->low)
		json_fail(at, err, "maxval must be at least minval");
	return err->status;
}

/* ---- regularisers ---------------------------------------------------------------------------- */

static const struct {
	const char *class_name, *name;
	bool l1, l2;
	double fallback; /* a factor that the object omits */
} regularizer_rows[] = {
	{"L1", "l1", true, false, REGULARIZER_FACTOR},
	{"L2", "l2", false, true, REGULARIZER_FACTOR},
	{"L1L2", "l1_l2", true, true, 0.0},
};

static void regularizer_factor(float *out, const struct json_at *config, const char *key,
			       double fallback, struct err *err)
{
	struct json_at here;
	double value = fallback;

	if (model_option_at(config, key, &here, err) && json_real(&here, &value, err) == ST_OK &&
	    !(value >= 0.0 && value <= 3e38))
		json_fail(&here, err, "must be at least 0, not %g", value);
	else
		*out = (float)value;
}

enum status model_regularizer_read(float *l1, float *l2, const struct json_at *at, struct err *err)
{
	static const struct model_option options[] = {{"l1", .rule = MODEL_ANY},
						      {"l2", .rule = MODEL_ANY}};
	const char *known[ARRAY_LEN(regularizer_rows)], *name;
	struct json_at config;
	bool config_here;
	struct err own;

	*l1 = *l2 = 0.0f;
	if (json_is_null(at))
		return ST_OK;
	err = err_start(err, &own);
	model_config_object(at, &name, &config, &config_here, err);
	if (config_here)
		model_config_check(&config, options, ARRAY_LEN(options), NULL, 0, err);
	if (err_stuck(err))
		return err->status;

	for (size_t i = 0; i < ARRAY_LEN(regularizer_rows); i++) {
		double fallback = config_here ? regularizer_rows[i].fallback : REGULARIZER_FACTOR;

		known[i] = regularizer_rows[i].class_name;
		if (strcmp(name, regularizer_rows[i].class_name) != 0 &&
		    strcmp(name, regularizer_rows[i].name) != 0)
			continue;
		if (!config_here)
			config = *at;
		if (regularizer_rows[i].l1)
			regularizer_factor(l1, &config, "l1", fallback, err);
		if (regularizer_rows[i].l2)
			regularizer_factor(l2, &config, "l2", fallback, err);
		return err->status;
	}
	return json_unknown(at, "regularizer", name, known, ARRAY_LEN(known), err);
}
