/*
 * Initial values, rounded copies, and weights in .npz files.
 *
 * Threading: only the pool's; slices depend on the parameters' sizes only.
 */
#include "trainer/models/model_weights.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/npz_writer.h"
#include "common/str.h"
#include "model/model_reader.h"
#include "trainer/data/npz.h"
#include "trainer/data/snapshot.h"
#include "trainer/models/keras_file.h"
#include "trainer/models/keras_hdf5.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"

#define ROUND_GRAIN 65536 /* floats per slice */

/* ---- initial values -------------------------------------------------------------------------- */

/* The dot product of two vectors whose elements are @stride apart. */
static double product_of(const float *a, const float *b, size_t length, size_t stride)
{
	double sum = 0.0;

	for (size_t i = 0; i < length; i++)
		sum += (double)a[i * stride] * (double)b[i * stride];
	return sum;
}

/*
 * Keras's Orthogonal: the Q of a normal matrix whose R has a positive diagonal, by Gram-Schmidt. If
 * the matrix is wider than high its rows are orthonormal, else its columns.
 */
static void init_orthogonal(const struct model_init *init, float *values, size_t count,
			    struct rng *rng)
{
	const size_t columns = (size_t)init->columns, rows = count / columns;
	const bool by_row = rows < columns;
	const size_t vectors = min(rows, columns), length = max(rows, columns);
	const size_t step = by_row ? columns : 1, stride = by_row ? 1 : columns;

	for (size_t i = 0; i < count; i++)
		values[i] = rng_normal(rng);
	for (size_t v = 0; v < vectors; v++) {
		float *vector = values + v * step;
		double size;

		for (size_t w = 0; w < v; w++) {
			const float *other = values + w * step;
			const double part = product_of(vector, other, length, stride);

			for (size_t i = 0; i < length; i++)
				vector[i * stride] -= (float)(part * (double)other[i * stride]);
		}
		size = sqrt(product_of(vector, vector, length, stride));
		for (size_t i = 0; i < length; i++)
			vector[i * stride] = (float)((double)vector[i * stride] / size);
	}
	for (size_t i = 0; i < count; i++)
		values[i] *= (float)init->low;
}

void model_init_fill(const struct model_init *init, float *values, size_t count, struct rng *rng)
{
	float low = (float)init->low, high = (float)init->high;

	if (init->kind == MODEL_INIT_ORTHOGONAL) {
		init_orthogonal(init, values, count, rng);
		return;
	}

	for (size_t i = 0; i < count; i++) {
		switch (init->kind) {
		case MODEL_INIT_CONSTANT:
			values[i] = low;
			break;
		case MODEL_INIT_UNIFORM:
			values[i] = low + (high - low) * rng_uniform(rng);
			break;
		case MODEL_INIT_NORMAL:
			values[i] = low + high * rng_normal(rng);
			break;
		case MODEL_INIT_TRUNCATED:
			do
				values[i] = rng_normal(rng);
			while (values[i] < -2.0f || values[i] > 2.0f);
			values[i] = low + high * values[i];
			break;
		case MODEL_INIT_ONES_AT:
			values[i] =
				i >= (size_t)init->low && i < 2 * (size_t)init->low ? high : 0.0f;
			break;
		case MODEL_INIT_ORTHOGONAL:
			break;
		}
	}
}

void model_init_weights(const struct model *model, float *weights, uint64_t seed)
{
	memset(weights, 0, model->weights * sizeof(*weights));
	for (int i = 0; i < model->param_count; i++) {
		const struct model_param *param = &model->params[i];
		const struct model_layer *layer = &model->layers[param->layer];
		struct rng rng;

		/* The parameter's index in its layer takes the replica's position in the key: all
		 * replicas start with the same weights. */
		rng_init(&rng, seed, rng_stream(layer->name), 0,
			 (uint32_t)(i - layer->first_param));
		model_init_fill(&param->init, weights + param->offset, param->count, &rng);
	}
}

/* ---- the rounded copy ------------------------------------------------------------------------ */

struct round_work {
	const float *from;
	float *to;
	size_t count;
	void (*round)(float *to, const float *from, size_t count);
};

static void round_slice(void *context, unsigned slice)
{
	const struct round_work *r = context;
	const size_t begin = (size_t)slice * ROUND_GRAIN, left = r->count - begin;

	r->round(r->to + begin, r->from + begin, min(left, ROUND_GRAIN));
}

void model_round_weights(const struct model *model, struct pool *pool, int first_layer,
			 int layer_count, bool learning, const float *weights, float *halves)
{
	for (int i = first_layer; i < first_layer + layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int p = layer->first_param; p < layer->first_param + layer->param_count; p++) {
			const struct model_param *param = &model->params[p];
			struct round_work round = {.from = weights + param->offset,
						   .to = halves + param->offset,
						   .count = param->count,
						   .round = param->half ? kernel_round_half
									: kernel_round_bfloat16};

			if ((param->half || param->bfloat16) && (param->trainable || !learning))
				pool_share(
					pool, kernel_work_floats(2 * (int64_t)param->count),
					round_slice, &round,
					(unsigned)((param->count + ROUND_GRAIN - 1) / ROUND_GRAIN));
		}
	}
}

/* ---- saving ---------------------------------------------------------------------------------- */

enum status model_weights_save(const struct model *model, const float *weights, const char *path,
			       struct err *err)
{
	struct npz_writer writer;
	enum status status = npz_writer_open(&writer, path, err);

	if (status != ST_OK)
		return status;
	for (int i = 0; i < model->param_count && status == ST_OK; i++) {
		const struct model_param *param = &model->params[i];
		struct npz_member array = {.name = param->name, .ndim = param->shape.ndim};

		_Static_assert(MODEL_DIMS <= NPZ_DIMS, "a parameter has too many dimensions");
		memcpy(array.dim, param->shape.dim, sizeof(param->shape.dim));
		status = npz_writer_put(&writer, &array, weights + param->offset, param->count);
	}
	return npz_writer_close(&writer, status);
}

void model_weights_snapshot(const struct model *model, float *weights, const char *what,
			    struct snapshot *snapshot)
{
	struct str name = {0};

	for (int i = 0; i < model->param_count && !err_stuck(snapshot_err(snapshot)); i++) {
		const struct model_param *param = &model->params[i];

		str_clear(&name);
		str_addf(&name, "%s/%s", what, param->name);
		if (name.failed)
			err_nomem(snapshot_err(snapshot));
		else
			snapshot_field(snapshot, name.text, weights + param->offset,
				       param->count * sizeof(*weights));
	}
	str_free(&name);
}

/* ---- the digest ------------------------------------------------------------------------------ */

#define DIGEST_BLOCK 1024        /* values per update */
#define DIGEST_NAN   0x7fc00000u /* canonical: a NaN's bits depend on the processor */

static int digest_order(const void *a, const void *b)
{
	const struct model_param *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void digest_values(XXH3_state_t *state, const float *values, size_t count)
{
	uint32_t words[DIGEST_BLOCK];

	for (size_t done = 0; done < count;) {
		const size_t more = min(count - done, DIGEST_BLOCK);

		memcpy(words, values + done, more * sizeof(*words));
		for (size_t i = 0; i < more; i++)
			words[i] = htole32(isnan(values[done + i]) ? DIGEST_NAN : words[i]);
		XXH3_64bits_update(state, words, more * sizeof(*words));
		done += more;
	}
}

enum status model_weights_digest(uint64_t *out, const struct model *model, const float *weights,
				 struct err *err)
{
	const size_t count = (size_t)model->param_count;
	const struct model_param **params = mem_calloc(count + 1, sizeof(*params));
	XXH3_state_t *state = XXH3_createState();

	*out = 0;
	if (params && state) {
		for (size_t i = 0; i < count; i++)
			params[i] = &model->params[i];
		qsort(params, count, sizeof(*params), digest_order);
		XXH3_64bits_reset(state);
		for (size_t i = 0; i < count; i++)
			digest_values(state, weights + params[i]->offset, params[i]->count);
		*out = XXH3_64bits_digest(state);
	}
	XXH3_freeState(state);
	mem_free(params);
	return params && state ? ST_OK : err_nomem(err);
}

/* ---- loading --------------------------------------------------------------------------------- */

struct weights_reader {
	const struct model *model;
	const struct npz_array *arrays;
	int count;
	const char *path;
	int *from;                /* by parameter: index of its array, or -1 */
	struct model_names names; /* maps names to parameters */
	struct err *err;
};

static void weights_array_text(const struct npz_array *array, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "(");

	for (int i = 0; i < array->ndim && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? ", " : "",
					 (long long)array->dim[i]);
	if (used < size)
		snprintf(out + used, size - used, "%s)", array->ndim == 1 ? "," : "");
}

static void weights_param_text(const struct model_param *param, char *out, size_t size)
{
	struct npz_array array = {.ndim = param->shape.ndim};

	_Static_assert(MODEL_DIMS <= NPZ_DIMS, "a parameter has too many dimensions");
	memcpy(array.dim, param->shape.dim, sizeof(param->shape.dim));
	weights_array_text(&array, out, size);
}

/* Find the parameter with this name, with or without ":0"; -1: none. */
static int weights_find(const struct weights_reader *reader, const char *name)
{
	char full[1024];
	const int *found = model__names_find(&reader->names, name);

	if (!found && strlen(name) + 3 <= sizeof(full)) {
		snprintf(full, sizeof(full), "%s:0", name);
		found = model__names_find(&reader->names, full);
	}
	return found ? *found : -1;
}

static enum status weights_report_unknown(const struct weights_reader *reader,
					  const struct npz_array *array)
{
	const struct model *model = reader->model;
	const char **known = mem_calloc((size_t)model->param_count + 1, sizeof(*known));
	const char *near;
	char shape[256];

	if (!known)
		return err_nomem(reader->err);
	for (int i = 0; i < model->param_count; i++)
		known[i] = model->params[i].name;
	near = str_nearest(array->name, known, (size_t)model->param_count);
	mem_free(known);
	weights_array_text(array, shape, sizeof(shape));
	return err_set(reader->err, ST_INVALID,
		       "%s: \"%.256s\" %s is no variable of the model%s%s%s (load by name to skip "
		       "it)",
		       reader->path, array->name, shape, near ? ": did you mean \"" : "",
		       near ? near : "", near ? "\"?" : "");
}

static enum status weights_match(struct weights_reader *reader, int index, bool by_name)
{
	const struct npz_array *array = &reader->arrays[index];
	int at = weights_find(reader, array->name);
	const struct model_param *param;
	char found[256], wanted[256];

	if (at < 0)
		return by_name ? ST_OK : weights_report_unknown(reader, array);
	param = &reader->model->params[at];
	if (reader->from[at] >= 0)
		return err_set(reader->err, ST_INVALID, "%s: \"%s\" is there twice", reader->path,
			       param->name);
	reader->from[at] = index;
	if (array->ndim == param->shape.ndim &&
	    !memcmp(array->dim, param->shape.dim, (size_t)array->ndim * sizeof(array->dim[0])))
		return ST_OK;
	weights_array_text(array, found, sizeof(found));
	weights_param_text(param, wanted, sizeof(wanted));
	return err_set(reader->err, ST_INVALID, "%s: \"%s\" has the shape %s, but %s in the model",
		       reader->path, param->name, found, wanted);
}

static enum status weights_check_missing(const struct weights_reader *reader)
{
	for (int i = 0; i < reader->model->param_count; i++) {
		const struct model_param *param = &reader->model->params[i];
		char shape[256];

		if (reader->from[i] >= 0)
			continue;
		weights_param_text(param, shape, sizeof(shape));
		return err_set(reader->err, ST_NOTFOUND,
			       "%s: there is no variable \"%s\" %s, which the model has (load by "
			       "name to leave it as it is)",
			       reader->path, param->name, shape);
	}
	return ST_OK;
}

static enum status weights_match_all(struct weights_reader *reader, bool by_name)
{
	const struct model *model = reader->model;
	enum status status = ST_OK;

	reader->from = mem_calloc((size_t)model->param_count + 1, sizeof(*reader->from));
	if (!reader->from)
		return err_nomem(reader->err);
	for (int i = 0; i < model->param_count; i++) {
		reader->from[i] = -1;
		if (model__names_add(&reader->names, model->params[i].name, i))
			return err_nomem(reader->err);
	}
	for (int i = 0; i < reader->count && status == ST_OK; i++)
		status = weights_match(reader, i, by_name);
	return status == ST_OK && !by_name ? weights_check_missing(reader) : status;
}

static enum status weights_from(const struct model *model, float *weights,
				const struct weights_source *source, const char *path, bool by_name,
				int *loaded, struct err *err)
{
	struct weights_reader reader = {.model = model,
					.path = path,
					.arrays = source->arrays,
					.count = source->count,
					.err = err};
	enum status status = weights_match_all(&reader, by_name);
	int count = 0;

	for (int i = 0; i < model->param_count && status == ST_OK; i++) {
		if (reader.from[i] < 0)
			continue;
		status = source->read(source->file, reader.from[i],
				      weights + model->params[i].offset, model->params[i].count,
				      err);
		count++;
	}
	model__names_free(&reader.names);
	mem_free(reader.from);
	if (loaded)
		*loaded = status == ST_OK ? count : 0;
	return status;
}

static enum status weights_read_npz(const void *file, int index, float *out, size_t count,
				    struct err *err)
{
	return npz_read(file, index, out, count, err);
}

enum status model_weights_from(const struct model *model, float *weights, const struct npz *npz,
			       const char *path, bool by_name, int *loaded, struct err *err)
{
	struct weights_source source = {.file = npz, .read = weights_read_npz};

	source.arrays = npz_arrays(npz, &source.count);
	return weights_from(model, weights, &source, path, by_name, loaded, err);
}

static enum status weights_parse_npz(struct npz **out, const struct keras_file *file,
				     struct err *err)
{
	const size_t spaces = strspn(file->bytes, " \t\r\n");

	*out = NULL;
	if (file->bytes[spaces] == '{')
		return err_set(err, ST_UNSUPPORTED,
			       "%s: is JSON: weights come from .npz, .h5, .weights.h5 and .keras "
			       "files",
			       file->path);
	return npz_parse(out, file->path, file->bytes, file->length, err);
}

static bool holds_hdf5(const struct keras_file *file)
{
	return file->kind == KERAS_HDF5 || file->kind == KERAS_ARCHIVE;
}

struct hdf5_reading {
	const struct model *model;
	float *weights;
	const struct keras_file *file;
	bool by_name;
};

/* Hand over the number of parameters that have been loaded, and all weights. */
static enum status read_hdf5(void *user, struct apart_out *out, struct err *err)
{
	const struct hdf5_reading *r = user;
	struct weights_source source;
	int loaded;

	if (keras_hdf5_open(&source, r->model, r->file->path, r->file->hdf5, r->file->hdf5_length,
			    r->by_name, err) != ST_OK ||
	    weights_from(r->model, r->weights, &source, r->file->path, r->by_name, &loaded, err) !=
		    ST_OK ||
	    apart_put(out, &loaded, sizeof(loaded), err) != ST_OK)
		return err->status;
	return apart_put(out, r->weights, r->model->weights * sizeof(*r->weights), err);
}

static enum status load_hdf5(const struct model *model, float *weights, struct keras_file *file,
			     bool by_name, int *loaded, struct err *err)
{
	struct hdf5_reading reading = {model, weights, file, by_name};
	enum status status = keras_file_unpack(file, err);
	struct apart request;
	size_t length;
	char *bytes;
	int count;

	if (status != ST_OK)
		return status;
	request = keras_hdf5_reading(file->path, file->hdf5_length);
	status = apart_call(read_hdf5, &reading, &request, &bytes, &length, err);
	if (status != ST_OK)
		return status;
	/* A library that has damaged the child's memory may end without a crash. */
	if (length == sizeof(count) + model->weights * sizeof(*weights)) {
		memcpy(&count, bytes, sizeof(count));
		memcpy(weights, bytes + sizeof(count), model->weights * sizeof(*weights));
		if (loaded)
			*loaded = count;
	} else {
		status = err_set(err, request.status, "%s: %s", request.name, request.crash);
	}
	mem_free(bytes);
	return status;
}

enum status model_weights_read(const struct model *model, float *weights, struct keras_file *file,
			       bool by_name, int *loaded, struct err *err)
{
	struct npz *npz;
	enum status status;

	if (loaded)
		*loaded = 0;
	if (holds_hdf5(file))
		return load_hdf5(model, weights, file, by_name, loaded, err);
	status = weights_parse_npz(&npz, file, err);
	if (status != ST_OK)
		return status;
	status = model_weights_from(model, weights, npz, file->path, by_name, loaded, err);
	npz_close(npz);
	return status;
}

enum status model_weights_load(const struct model *model, float *weights, const char *path,
			       bool by_name, int *loaded, struct err *err)
{
	struct keras_file file;
	enum status status;

	if (loaded)
		*loaded = 0;
	status = keras_file_open(&file, path, err);
	if (status == ST_OK)
		status = model_weights_read(model, weights, &file, by_name, loaded, err);
	keras_file_close(&file);
	return status;
}

enum status model_weights_open(struct keras_file *out, const char *path, struct err *err)
{
	struct npz *npz = NULL;
	enum status status = keras_file_open(out, path, err);

	if (status != ST_OK)
		return status;
	if (!holds_hdf5(out))
		status = weights_parse_npz(&npz, out, err);
	else if ((status = keras_file_unpack(out, err)) == ST_OK)
		status = keras_hdf5_check(path, out->hdf5, out->hdf5_length, err);
	npz_close(npz);
	if (status != ST_OK)
		keras_file_close(out);
	return status;
}
