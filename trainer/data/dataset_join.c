/*
 * Parts of data sets: built from the arrays of a file, after checking their types, shapes and
 * classes, and closed.
 *
 * Ownership: struct dataset_memory owns the arrays, the class names and the source's text.
 */
#include "trainer/data/dataset_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define CLASS_MOST (1 << 24) /* float32 represents every whole number up to here exactly */

struct dataset_memory {
	void *inputs, *targets, *weights;
	struct dataset_decoder *decoder;
	char *source;
	void *names; /* the pointers, followed by the strings that they point to */
};

struct dataset_about dataset__about_images(const struct dataset_opening *o)
{
	return (struct dataset_about){.inputs = "images",
				      .targets = "labels",
				      .classes = o->known->classes,
				      .names = o->known->names,
				      .limit = o->params->limit};
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Return @array's values as floats; reuse its memory if they are float32 already. NULL: out of
 * memory. */
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

	assert(inputs->ndim > 0);
	out->count = inputs->dim[0];
	out->ndim = inputs->ndim - 1;
	if (out->ndim > DATASET_RANK)
		return err_set(err, ST_FORMAT, "%s: %s has %d dimensions; at most %d are read",
			       about->source, about->inputs, inputs->ndim, DATASET_RANK + 1);
	for (int i = 0; i < out->ndim; i++)
		out->shape[i] = inputs->dim[i + 1];
	/* Grey images get one channel; single values become vectors of length 1. */
	if (out->ndim == 0 || (out->ndim == 2 && inputs->type == DATASET_U8))
		out->shape[out->ndim++] = 1;
	if (out->count > INT32_MAX)
		return err_set(err, ST_LIMIT, "%s: %s has %lld items; at most %d are read",
			       about->source, about->inputs, (long long)out->count, INT32_MAX);
	if (inputs->type == DATASET_U8) {
		out->bytes = memory->inputs = inputs->bytes;
		inputs->bytes = NULL;
		return ST_OK;
	}
	out->floats = memory->inputs = join_floats(inputs);
	return out->floats ? ST_OK : err_nomem(err);
}

void dataset__decode_later(struct dataset *set, struct dataset_decoder *decoder)
{
	struct dataset_memory *memory = set->memory;

	set->decoder = memory->decoder = decoder;
}

/* ---- targets --------------------------------------------------------------------------------- */

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
			return err_set(
				err, ST_FORMAT,
				"%s: %s: item %zu has class %lld; classes are from 0 to %lld%s",
				about->source, about->targets, i, (long long)class,
				(long long)bound - 1,
				about->classes ? "" : " (astype('float32') makes values of them)");
		labels[i] = (int32_t) class;
		if (!about->classes && labels[i] >= out->classes)
			out->classes = labels[i] + 1;
	}
	return ST_OK;
}

/*
 * Return the exclusive upper bound of @targets as class numbers of an item's positions. Return 0 if
 * they cannot be class numbers: one is negative or too large for an exact float32.
 */
static int class_bound(const struct dataset_about *about, const struct dataset_array *targets)
{
	const size_t count = dataset__array_count(targets);
	int64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		const int64_t number = dataset__whole(targets->type, targets->bytes, i);

		if (about->ignored.any && number == about->ignored.number)
			continue;
		if (number < 0 || number >= CLASS_MOST)
			return 0;
		most = max(most, number);
	}
	return (int)most + 1;
}

struct target_part dataset__target_part(const struct dataset_about *about,
					const struct dataset_array *array)
{
	const int64_t width = (int64_t)(dataset__array_count(array) / (size_t)array->dim[0]);
	const int classes = dataset__types[array->type].whole ? class_bound(about, array) : 0;

	return (struct target_part){.classes = classes, .width = width == 1 && classes ? 0 : width};
}

static enum status join_targets(struct dataset *out, const struct dataset_about *about,
				struct dataset_array *targets, struct err *err)
{
	struct dataset_memory *memory = out->memory;
	const bool whole = dataset__types[targets->type].whole;

	out->width = (int64_t)(dataset__array_count(targets) / (size_t)targets->dim[0]);
	if (out->width == 1 && whole) {
		out->width = 0;
		return join_classes(out, about, targets, err);
	}
	if (about->tokens) { /* values: see dataset__join() */
		out->classes = about->classes;
		return ST_OK;
	}
	out->classes = whole ? class_bound(about, targets) : 0;
	out->values = memory->targets = join_floats(targets);
	return out->values ? ST_OK : err_nomem(err);
}

static enum status join_names(struct dataset *out, const struct dataset_about *about,
			      struct err *err)
{
	struct dataset_memory *memory = out->memory;
	size_t size = 0;
	char **names, *text;

	if (!about->names || (!out->labels && !about->tokens))
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

/* The targets are joined first: of tokens they are the inputs' numbers, which are moved then. */
void dataset__join(struct dataset *out, const struct dataset_about *about,
		   struct dataset_array *inputs, struct dataset_array *targets, struct err *err)
{
	struct dataset_memory *memory = err_stuck(err) ? NULL : mem_calloc(1, sizeof(*memory));

	if (memory) {
		*out = (struct dataset){.unlabelled = targets->ndim == 0, .memory = memory};
		out->source = memory->source = mem_strdup(about->source);
	}
	if (!err_stuck(err) && (!memory || !out->source))
		err_nomem(err);
	else if (!err_stuck(err) && !out->unlabelled && inputs->dim[0] != targets->dim[0])
		err_set(err, ST_FORMAT, "%s: there are %lld %s but %lld %s", about->source,
			(long long)inputs->dim[0], about->inputs, (long long)targets->dim[0],
			about->targets);
	if (!err_stuck(err) && !out->unlabelled)
		join_targets(out, about, targets, err);
	if (!err_stuck(err))
		join_names(out, about, err);
	if (!err_stuck(err))
		join_inputs(out, about, inputs, err);
	if (!err_stuck(err) && about->tokens)
		out->values = out->floats + 1;
	if (!err_stuck(err) && about->limit > 0 && about->limit < out->count)
		out->count = about->limit;
	if (memory && err_stuck(err))
		dataset_close(out);
	dataset__array_free(inputs);
	dataset__array_free(targets);
}

enum status dataset__weigh(struct dataset *set, const char *name, struct dataset_array *weights,
			   struct err *err)
{
	struct dataset_memory *memory = set->memory;
	const size_t count = dataset__array_count(weights);
	float *floats;

	if (weights->dim[0] < set->count)
		return err_set(err, ST_FORMAT, "%s: %s has %lld items, the targets more: %lld",
			       set->source, name, (long long)weights->dim[0],
			       (long long)set->count);
	floats = memory->weights = join_floats(weights);
	if (!floats)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		if (!isfinite(floats[i]))
			return err_set(err, ST_FORMAT, "%s: %s: number %zu is %g: no weight",
				       set->source, name, i, (double)floats[i]);
	set->weights = floats;
	set->weight_width = (int64_t)(count / (size_t)weights->dim[0]);
	return ST_OK;
}

void dataset_close(struct dataset *dataset)
{
	struct dataset_memory *memory = dataset->memory;

	if (memory) {
		mem_free(memory->inputs);
		dataset__decoder_free(memory->decoder);
		mem_free(memory->targets);
		mem_free(memory->weights);
		mem_free(memory->source);
		mem_free(memory->names);
		mem_free(memory);
		dataset__resize_free((struct dataset_resize *)(uintptr_t)dataset->resize);
	}
	*dataset = (struct dataset){0};
}
