/*
 * Regularisers: one table row each. No state.
 */
#include "model/model_regularizer.h"

#include <string.h>

#include "common/mem.h"
#include "model/model_config.h"

#define REGULARIZER_FACTOR 0.01 /* Keras's default of L1 and L2; L1L2's is 0 in an object */

static const struct {
	const char *class_name, *name;
	bool l1, l2;
	double fallback; /* of a factor that an object does not give */
} regularizer_rows[] = {
	{"L1", "l1", true, false, REGULARIZER_FACTOR},
	{"L2", "l2", false, true, REGULARIZER_FACTOR},
	{"L1L2", "l1_l2", true, true, 0.0},
};

static enum status regularizer_factor(float *out, const struct json_at *config, const char *key,
				      double fallback, struct err *err)
{
	struct json_at here;
	enum status status;
	double value;

	*out = (float)fallback;
	if (!json_child(config, key, &here) || json_is_null(&here))
		return ST_OK;
	status = json_real(&here, &value, err);
	if (status != ST_OK)
		return status;
	if (!(value >= 0.0 && value <= 3e38))
		return json_fail(&here, err, "must be at least 0, not %g", value);
	*out = (float)value;
	return ST_OK;
}

enum status model_regularizer_read(float *l1, float *l2, const struct json_at *at, struct err *err)
{
	static const struct model_option options[] = {{"l1", MODEL_ANY}, {"l2", MODEL_ANY}};
	const char *known[ARRAY_LEN(regularizer_rows)], *name;
	struct json_at config;
	bool config_here;
	enum status status;

	*l1 = *l2 = 0.0f;
	if (json_is_null(at))
		return ST_OK;
	status = model_config_object(at, &name, &config, &config_here, err);
	if (status == ST_OK && config_here)
		status = model_config_check(&config, options, ARRAY_LEN(options), NULL, 0, err);
	if (status != ST_OK)
		return status;

	for (size_t i = 0; i < ARRAY_LEN(regularizer_rows); i++) {
		double fallback = config_here ? regularizer_rows[i].fallback : REGULARIZER_FACTOR;

		known[i] = regularizer_rows[i].class_name;
		if (strcmp(name, regularizer_rows[i].class_name) != 0 &&
		    strcmp(name, regularizer_rows[i].name) != 0)
			continue;
		if (!config_here)
			config = *at;
		if (regularizer_rows[i].l1)
			status = regularizer_factor(l1, &config, "l1", fallback, err);
		if (status == ST_OK && regularizer_rows[i].l2)
			status = regularizer_factor(l2, &config, "l2", fallback, err);
		return status;
	}
	return json_unknown(at, "regularizer", name, known, ARRAY_LEN(known), err);
}
