/*
 * The embedded data set: synthetic digits, made on first use and kept as IDX files under the XDG
 * cache.
 *
 * Threading: images are drawn by a pool of their own, in slices that depend on nothing but their
 * numbers. The cache is written file by file, each whole or not at all, the checksums last; it is
 * believed only where they fit, and made anew otherwise. A limited set is drawn without the cache:
 * it is small.
 */
#include "trainer/data/dataset_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/pool.h"

#define DIGITS_SLICE 500
/* Counts up with every change of the images, so that an old cache is not taken for the new set. */
#define DIGITS_FOLDER "synthetic-digits-2"
#define DIGITS_SOURCE "synthetic digits"

static const struct digits_part {
	int64_t count;
	const char *images, *labels;
} digits_parts[2] = {
	{60000, "train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	{10000, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

struct digits {
	struct dataset_array images[2], labels[2];
};

static void digits_free(struct digits *digits)
{
	for (int part = 0; part < 2; part++) {
		dataset__array_free(&digits->images[part]);
		dataset__array_free(&digits->labels[part]);
	}
}

/* ---- making ---------------------------------------------------------------------------------- */

struct digits_work {
	int part;
	int64_t count;
	uint8_t *pixels, *labels;
};

static void digits_slice(void *context, unsigned slice)
{
	const struct digits_work *work = context;
	int64_t first = (int64_t)slice * DIGITS_SLICE, end = first + DIGITS_SLICE;

	for (int64_t i = first; i < end && i < work->count; i++)
		work->labels[i] = dataset__digit(work->part, (uint32_t)i,
						 work->pixels + i * DATASET_DIGIT_BYTES);
}

static enum status digits_make_part(struct digits *digits, int part, int64_t limit,
				    struct pool *pool, struct err *err)
{
	int64_t count = digits_parts[part].count;
	struct digits_work work = {.part = part};

	if (limit > 0 && limit < count)
		count = limit;
	work.count = count;
	work.pixels = mem_alloc((size_t)count * DATASET_DIGIT_BYTES);
	work.labels = mem_alloc((size_t)count);
	digits->images[part] =
		(struct dataset_array){.ndim = 3,
				       .dim = {count, DATASET_DIGIT_SIDE, DATASET_DIGIT_SIDE},
				       .bytes = work.pixels};
	digits->labels[part] =
		(struct dataset_array){.ndim = 1, .dim = {count}, .bytes = work.labels};
	if (!work.pixels || !work.labels)
		return err_nomem(err);
	pool_run(pool, digits_slice, &work, (unsigned)((count + DIGITS_SLICE - 1) / DIGITS_SLICE));
	return ST_OK;
}

static enum status digits_make(struct digits *digits, int64_t limit, struct err *err)
{
	unsigned processors = pool_processors();
	enum status status = ST_OK;
	struct pool *pool = NULL;

	/* Without helpers it takes longer, that is all. */
	if (processors > 1)
		pool_new(&pool, processors - 1, NULL);
	for (int part = 0; part < 2 && status == ST_OK; part++)
		status = digits_make_part(digits, part, limit, pool, err);
	pool_free(pool);
	if (status != ST_OK)
		digits_free(digits);
	return status;
}

/* ---- the cache ------------------------------------------------------------------------------- */

static uint64_t digits_sum(const struct dataset_array *array)
{
	return XXH3_64bits(array->bytes, dataset__array_count(array));
}

/* The text of the file that vouches for the other four. */
static void digits_sums(const struct digits *digits, char *out, size_t size)
{
	snprintf(out, size, "xxh3 %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64 "\n",
		 digits_sum(&digits->images[0]), digits_sum(&digits->labels[0]),
		 digits_sum(&digits->images[1]), digits_sum(&digits->labels[1]));
}

static enum status digits_read_file(struct dataset_array *out, const char *folder, const char *name,
				    int ndim, int64_t count)
{
	char path[FS_PATH_SIZE], *bytes;
	enum status status;
	size_t length;

	if (!fs_path(path, "%s/%s", folder, name))
		return ST_NOTFOUND;
	status = fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, NULL);
	if (status != ST_OK)
		return status;
	status = dataset__idx_parse(out, path, bytes, length, ndim, NULL);
	mem_free(bytes);
	if (status == ST_OK && out->dim[0] != count)
		status = ST_FORMAT;
	if (status == ST_OK && ndim == 3 &&
	    (out->dim[1] != DATASET_DIGIT_SIDE || out->dim[2] != DATASET_DIGIT_SIDE))
		status = ST_FORMAT;
	return status;
}

static bool digits_read(struct digits *digits, const char *folder)
{
	char path[FS_PATH_SIZE], sums[128], *text = NULL;
	enum status status = ST_OK;
	size_t length;
	bool good;

	if (!fs_path(path, "%s/xxh3", folder) ||
	    fs_read(path, sizeof(sums) - 1, &text, &length, NULL) != ST_OK)
		return false;
	for (int part = 0; part < 2 && status == ST_OK; part++) {
		const struct digits_part *row = &digits_parts[part];

		status =
			digits_read_file(&digits->images[part], folder, row->images, 3, row->count);
		if (status == ST_OK)
			status = digits_read_file(&digits->labels[part], folder, row->labels, 1,
						  row->count);
	}
	if (status == ST_OK)
		digits_sums(digits, sums, sizeof(sums));
	good = status == ST_OK && !strcmp(sums, text);
	mem_free(text);
	if (!good)
		digits_free(digits);
	return good;
}

static enum status digits_write_file(const struct dataset_array *array, const char *folder,
				     const char *name, struct err *err)
{
	size_t header = 4 + 4 * (size_t)array->ndim, size = dataset__array_count(array);
	char path[FS_PATH_SIZE];
	enum status status;
	uint8_t *bytes;

	if (!fs_path(path, "%s/%s", folder, name))
		return err_set(err, ST_INVALID, "%s: the path is too long", folder);
	bytes = mem_calloc(1, header + size);
	if (!bytes)
		return err_nomem(err);
	bytes[2] = 0x08;
	bytes[3] = (uint8_t)array->ndim;
	for (int i = 0; i < array->ndim; i++)
		for (int b = 0; b < 4; b++)
			bytes[4 + 4 * i + b] = (uint8_t)(array->dim[i] >> (24 - 8 * b));
	memcpy(bytes + header, array->bytes, size);
	status = fs_write(path, bytes, header + size, err);
	mem_free(bytes);
	return status;
}

static enum status digits_write(const struct digits *digits, const char *folder, struct err *err)
{
	char path[FS_PATH_SIZE], sums[128];
	enum status status;

	status = fs_make_dirs(folder, err);
	for (int part = 0; part < 2 && status == ST_OK; part++) {
		status = digits_write_file(&digits->images[part], folder, digits_parts[part].images,
					   err);
		if (status == ST_OK)
			status = digits_write_file(&digits->labels[part], folder,
						   digits_parts[part].labels, err);
	}
	if (status != ST_OK)
		return status;
	if (!fs_path(path, "%s/xxh3", folder))
		return err_set(err, ST_INVALID, "%s: the path is too long", folder);
	digits_sums(digits, sums, sizeof(sums));
	return fs_write(path, sums, strlen(sums), err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void digits_notice(const struct dataset_known *known, const struct dataset_params *params,
			  const char *how)
{
	char text[2 * FS_PATH_SIZE + 512], script[FS_PATH_SIZE];

	if (!params->notice)
		return;
	snprintf(text, sizeof(text), "data: synthetic digits (%s), not the real %s: %s%s", how,
		 known->name, dataset__script(script, known->script), known->remedy);
	params->notice(params->user, text);
}

/* From the cache, or made and left there; @how becomes what the notice says. */
static enum status digits_get(struct digits *digits, const struct dataset_params *params, char *how,
			      size_t size, struct err *err)
{
	char base[FS_PATH_SIZE], folder[FS_PATH_SIZE] = "";
	enum status status;
	struct err why = {.text = "neither XDG_CACHE_HOME nor HOME is set"};

	if (fs_xdg(base, "XDG_CACHE_HOME", ".cache") &&
	    fs_path(folder, "%s/" DIGITS_FOLDER, base) && digits_read(digits, folder)) {
		snprintf(how, size, "from %s", folder);
		return ST_OK;
	}
	status = digits_make(digits, params->limit, err);
	if (status != ST_OK)
		return status;

	if (params->limit > 0)
		snprintf(how, size, "made now");
	else if (*folder && digits_write(digits, folder, &why) == ST_OK)
		snprintf(how, size, "made now, kept in %s", folder);
	else
		snprintf(how, size, "made now, not kept: %s", why.text);
	return ST_OK;
}

enum status dataset__digits_open(struct dataset *train, struct dataset *test,
				 const struct dataset_known *known,
				 const struct dataset_params *params, struct err *err)
{
	static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
	const struct dataset_about about = {.source = DIGITS_SOURCE,
					    .inputs = "images",
					    .targets = "labels",
					    .classes = (int)ARRAY_LEN(names),
					    .names = names,
					    .limit = params->limit};
	char how[FS_PATH_SIZE + 64];
	struct digits digits = {0};
	enum status status;

	status = digits_get(&digits, params, how, sizeof(how), err);
	if (status != ST_OK)
		return status;
	status = dataset__join(train, &about, &digits.images[0], &digits.labels[0], err);
	if (status == ST_OK)
		status = dataset__join(test, &about, &digits.images[1], &digits.labels[1], err);
	digits_free(&digits);
	if (status != ST_OK) {
		dataset_close(train);
		return status;
	}
	train->synthetic = test->synthetic = true;
	digits_notice(known, params, how);
	return ST_OK;
}
