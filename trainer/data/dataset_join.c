/*
 * From the arrays of a file to a part of a data set: types, shapes and classes are checked here.
 *
 * Threading: none. Ownership: struct dataset_memory holds the arrays, the names and the source's
 * text.
 */
#include "trainer/data/dataset_internal.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

struct dataset_memory {
	void *inputs, *targets;
	char *source;
	void *names; /* pointers, then what they point to */
};

static void dataset_memory_free(struct dataset_memory *memory)
{
	mem_free(memory->inputs);
	mem_free(memory->targets);
	mem_free(memory->source);
	mem_free(memory->names);
	mem_free(memory);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static enum status join_shape(struct dataset *out, const struct dataset_about *about,
			      const struct dataset_array *inputs, struct err *err)
{
	out->count = inputs->dim[0];
	out->ndim = inputs->ndim - 1;
	if (out->ndim > DATASET_RANK)
		return err_set(err, ST_FORMAT, "%s: %s has %d dimensions; at most %d are read",
			       about->source, about->inputs, inputs->ndim, DATASET_RANK + 1);
	for (int i = 0; i < out->ndim; i++)
		out->shape[i] = inputs->dim[i + 1];
	/* Grey images have one channel, single values are vectors of one. */
	if (out->ndim == 0 || (out->ndim == 2 && inputs->type == DATASET_U8))
		out->shape[out->ndim++] = 1;
	if (out->count > INT32_MAX)
		return err_set(err, ST_LIMIT, "%s: %s has %lld items; at most %d are read",
			       about->source, about->inputs, (long long)out->count, INT32_MAX);
	return ST_OK;
}

/* @array's values as floats, its memory taken where it holds just that; NULL: no memory. */
static float *join_floats(struct dataset_array *array)
{
	size_t count = dataset__array_count(array);
	float *floats;

	if (array->type == DATASET_F32) {
		floats = (float *)(void *)array->bytes;
		dataset__to_floats(floats, DATASET_F32, array->bytes, count);
		array->bytes = NULL;
		return floats;
	}
	floats = mem_resize(NULL, count, sizeof(*floats));
	if (floats)
		dataset__to_floats(floats, array->type, array->bytes, count);
	return floats;
}

static enum status join_inputs(struct dataset *out, const struct dataset_about *about,
			       struct dataset_array *inputs, struct err *err)
{
	struct dataset_memory *memory = out->memory;
	enum status status = join_shape(out, about, inputs, err);

	if (status != ST_OK)
		return status;
	if (inputs->type == DATASET_U8) {
		out->bytes = memory->inputs = inputs->bytes;
		inputs->bytes = NULL;
		return ST_OK;
	}
	out->floats = memory->inputs = join_floats(inputs);
	return out->floats ? ST_OK : err_nomem(err);
}

/* ---- targets --------------------------------------------------------------------------------- */

static enum status join_class_bad(const struct dataset_about *about, size_t item, int64_t class,
				  struct err *err)
{
	if (about->classes)
		return err_set(
			err, ST_FORMAT, "%s: %s: item %zu has class %lld; classes are from 0 to %d",
			about->source, about->targets, item, (long long)class, about->classes - 1);
	return err_set(err, ST_FORMAT,
		       "%s: %s: item %zu has class %lld; classes are from 0 to %d "
		       "(astype('float32') makes values of them)",
		       about->source, about->targets, item, (long long)class, INT32_MAX - 1);
}

static enum status join_classes(struct dataset *out, const struct dataset_about *about,
				const struct dataset_array *targets, struct err *err)
{
	struct dataset_memory *memory = out->memory;
	int64_t bound = about->classes ? about->classes : INT32_MAX;
	size_t count = dataset__array_count(targets);
	int32_t *labels;

	labels = memory->targets = mem_resize(NULL, count, sizeof(*labels));
	if (!labels)
		return err_nomem(err);
	out->labels = labels;
	out->classes = about->classes;
	for (size_t i = 0; i < count; i++) {
		int64_t class = dataset__whole(targets->type, targets->bytes, i);

		if (class < 0 || class >= bound)
			return join_class_bad(about, i, class, err);
		labels[i] = (int32_t) class;
		if (!about->classes && labels[i] >= out->classes)
			out->classes = labels[i] + 1;
	}
	return ST_OK;
}

static enum status join_targets(struct dataset *out, const struct dataset_about *about,
				struct dataset_array *targets, struct err *err)
{
	struct dataset_memory *memory = out->memory;
	int64_t width = targets->ndim == 2 ? targets->dim[1] : 1;

	if (targets->ndim > 2)
		return err_set(err, ST_FORMAT,
			       "%s: %s has %d dimensions; targets have 1 (class numbers or values) "
			       "or 2 (vectors)",
			       about->source, about->targets, targets->ndim);
	if (width == 1 && dataset__type_whole(targets->type))
		return join_classes(out, about, targets, err);
	out->values = memory->targets = join_floats(targets);
	out->width = width;
	return out->values ? ST_OK : err_nomem(err);
}

static enum status join_names(struct dataset *out, const struct dataset_about *about,
			      struct err *err)
{
	struct dataset_memory *memory = out->memory;
	size_t size = 0;
	char **names, *text;

	if (!about->names || !out->labels)
		return ST_OK;
	assert(about->classes == out->classes);
	for (int i = 0; i < out->classes; i++)
		size += sizeof(*names) + strlen(about->names[i]) + 1;
	names = memory->names = mem_alloc(size);
	if (!names)
		return err_nomem(err);
	text = (char *)(names + out->classes);
	for (int i = 0; i < out->classes; i++) {
		size_t length = strlen(about->names[i]) + 1;

		names[i] = memcpy(text, about->names[i], length);
		text += length;
	}
	out->names = (const char *const *)names;
	return ST_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

enum status dataset__join(struct dataset *out, const struct dataset_about *about,
			  struct dataset_array *inputs, struct dataset_array *targets,
			  struct err *err)
{
	struct dataset_memory *memory;
	enum status status;

	assert(inputs->ndim > 0 && targets->ndim > 0);
	*out = (struct dataset){0};
	if (inputs->dim[0] != targets->dim[0])
		return err_set(err, ST_FORMAT, "%s: there are %lld %s but %lld %s", about->source,
			       (long long)inputs->dim[0], about->inputs, (long long)targets->dim[0],
			       about->targets);
	memory = mem_calloc(1, sizeof(*memory));
	if (!memory)
		return err_nomem(err);
	out->memory = memory;
	/*
	 * The targets first: inputs are taken over, not copied, and stay the caller's on failure.
	 */
	memory->source = mem_strdup(about->source);
	status = memory->source ? join_targets(out, about, targets, err) : err_nomem(err);
	if (status == ST_OK)
		status = join_names(out, about, err);
	if (status == ST_OK)
		status = join_inputs(out, about, inputs, err);
	if (status != ST_OK) {
		dataset_close(out);
		return status;
	}
	out->source = memory->source;
	if (about->limit > 0 && about->limit < out->count)
		out->count = about->limit;
	dataset__array_free(inputs);
	dataset__array_free(targets);
	return ST_OK;
}

void dataset_close(struct dataset *dataset)
{
	if (dataset->memory) {
		dataset_memory_free(dataset->memory);
		dataset__resize_free((struct dataset_resize *)(uintptr_t)dataset->resize);
	}
	*dataset = (struct dataset){0};
}
