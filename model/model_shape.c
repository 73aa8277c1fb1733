/*
 * Shapes: what they are called, and what a config gives. No state.
 */
#include "model/model.h"

#include <limits.h>
#include <stdio.h>

#include "model/model_reader.h"

#define SHAPE_VALUES (INT64_C(1) << 40) /* the most values of an item in a layer */

int64_t model_shape_count(const struct model_shape *shape)
{
	int64_t count = 1;

	for (int i = 0; i < shape->ndim; i++)
		count *= shape->dim[i];
	return count;
}

void model_shape_text(const struct model_shape *shape, int64_t batch, char *out, size_t size)
{
	size_t used;
	int put;

	if (batch > 0)
		put = snprintf(out, size, "(%lld", (long long)batch);
	else
		put = snprintf(out, size, "(None");
	for (int i = 0; i < shape->ndim; i++) {
		used = put > 0 ? (size_t)put : 0;
		if (used >= size)
			return;
		if (shape->dim[i])
			put += snprintf(out + used, size - used, ", %lld",
					(long long)shape->dim[i]);
		else
			put += snprintf(out + used, size - used, ", None");
	}
	used = put > 0 ? (size_t)put : 0;
	if (used < size)
		snprintf(out + used, size - used, "%s", shape->ndim ? ")" : ",)");
}

static enum status shape_limit(const struct json_at *at, struct err *err, const char *what,
			       double bytes)
{
	json_fail(at, err, "%s: it would take %.1f GB", what, bytes * 1e-9);
	if (err)
		err->status = ST_LIMIT;
	return ST_LIMIT;
}

enum status model__check_shape(const struct json_at *at, const struct model_shape *shape,
			       struct err *err)
{
	double count = 1.0;
	bool wide = false;

	for (int i = 0; i < shape->ndim; i++) {
		count *= (double)shape->dim[i];
		wide = wide || shape->dim[i] > INT_MAX;
	}
	if (wide || count > (double)SHAPE_VALUES)
		return shape_limit(at, err, "the shape is beyond the limit", 4.0 * count);
	return ST_OK;
}

enum status model__read_shape(const struct json_at *at, struct model_shape *out, int64_t *batch,
			      struct err *err)
{
	enum status status = json_array(at, err);
	struct json_at here;

	if (status != ST_OK)
		return status;
	if (json_count(at) < 1 || json_count(at) > MODEL_DIMS + 1)
		return json_fail(at, err,
				 "a shape has the batch (null) and at most %d more dimensions",
				 MODEL_DIMS);

	*out = (struct model_shape){.ndim = json_count(at) - 1};
	*batch = 0;
	for (int i = 0; json_item(at, i, &here); i++) {
		if (json_is_null(&here))
			continue;
		status = json_int(&here, 1, INT64_MAX, i ? &out->dim[i - 1] : batch, err);
		if (status != ST_OK)
			return status;
	}
	return model__check_shape(at, out, err);
}
