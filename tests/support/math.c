/*
 * What the tests of the trainer's mathematics share.
 */
#include "support/math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

void math_model_open(struct math_model *out, const char *layers, int ndim, const int64_t *dims)
{
	struct model_shape shape = {.ndim = ndim};
	struct err err = {0};
	struct json_at root;
	char *text = mem_printf("{\"layers\": %s}", layers);

	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	memcpy(shape.dim, dims, (size_t)ndim * sizeof(*dims));
	if (json_parse(&out->json, text, strlen(text), "test", &err) != ST_OK)
		fail_msg("%s", err.text);
	mem_free(text);
	root = json_root("test", out->json);
	if (model_new(&out->model, &root, &shape, &err) != ST_OK)
		fail_msg("%s", err.text);
}

void math_model_close(struct math_model *model)
{
	model_free(model->model);
	cJSON_Delete(model->json);
}

uint32_t math_lcg(uint32_t *state)
{
	*state = 1664525u * *state + 1013904223u;
	return *state >> 8;
}

float math_lcg_unit(uint32_t *state)
{
	return (float)math_lcg(state) * 0x1p-24f;
}

void math_fill(float *values, size_t count, uint32_t seed, float low, float high)
{
	for (size_t i = 0; i < count; i++)
		values[i] = low + (high - low) * math_lcg_unit(&seed);
}

void math_check_slopes(double (*value)(const void *context), const void *context, double *numbers,
		       size_t count, const float *gradient, double error, double floor,
		       const char *what)
{
	for (size_t i = 0; i < count; i++) {
		const double kept = numbers[i];
		double up, slope;

		numbers[i] = kept + 1e-5;
		up = value(context);
		numbers[i] = kept - 1e-5;
		slope = (up - value(context)) / 2e-5;
		numbers[i] = kept;
		if (fabs((double)gradient[i] - slope) > error * (fabs(slope) + floor))
			fail_msg("%s: gradient %zu is %g, not %g", what, i, (double)gradient[i],
				 slope);
	}
}
