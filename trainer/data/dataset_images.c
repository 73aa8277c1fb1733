/*
 * Folders of images by class, as Keras's image_dataset_from_directory() reads them. All are decoded
 * at the start, scaled to one size as data.resize scales (see dataset_resize.c), rounded to bytes
 * again, and kept so: a quarter of what floats take.
 *
 * Threading: files are decoded on all processors; each writes its own item.
 */
#include "trainer/data/dataset_internal.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "trainer/data/image.h"

#define IMAGES_ROUND      256 /* files of a round, after which errors are looked for */
#define IMAGES_BYTES_MOST ((int64_t)1 << 34)

struct image_part {
	const char *folder;
	const struct dataset_file *files;
	bool gray, resizes;
	struct dataset_array array; /* [count, height, width, channels] */
	int64_t first;              /* of the round */
	struct err errors[IMAGES_ROUND];
};

static bool is_image(const char *name)
{
	static const char *const ends[] = {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"};
	const size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const size_t end = strlen(ends[i]);

		if (length > end && !strcmp(name + length - end, ends[i]))
			return true;
	}
	return false;
}

static void decode_file(struct image *out, const char *path, bool gray, struct err *err)
{
	size_t length;
	char *bytes;

	*out = (struct image){0};
	if (fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, err) != ST_OK)
		return;
	image_decode(out, gray, path, bytes, length, err);
	mem_free(bytes);
}

/* @image in the part's size, values rounded to the nearest byte. */
static void scale_image(const struct image_part *part, uint8_t *to, const struct image *image,
			const char *path, struct err *err)
{
	const int64_t height = part->array.dim[1], width = part->array.dim[2];
	const size_t count = (size_t)(height * width * image->channels);
	struct dataset set = {
		.ndim = 3, .shape = {image->height, image->width, image->channels}, .source = path};
	float *floats;

	if (image->height == height && image->width == width) {
		memcpy(to, image->bytes, count);
		return;
	}
	if (!part->resizes) {
		err_set(err, ST_FORMAT,
			"%s: has %lld x %lld pixels, %s has %lld x %lld: data.resize makes them "
			"one size",
			path, (long long)image->height, (long long)image->width,
			part->files[0].path, (long long)height, (long long)width);
		return;
	}
	if (dataset__resize_set(&set, height, width, err) != ST_OK)
		return;
	floats = mem_resize(NULL, count, sizeof(*floats));
	if (floats)
		dataset__resize_bytes(set.resize, image->bytes, floats);
	else
		err_nomem(err);
	for (size_t i = 0; floats && i < count; i++)
		to[i] = (uint8_t)(floats[i] * 255.0f + 0.5f);
	mem_free(floats);
	dataset__resize_free((struct dataset_resize *)(uintptr_t)set.resize);
}

static void decode_item(void *context, unsigned slice)
{
	struct image_part *part = context;
	const int64_t *dim = part->array.dim, item = part->first + slice;
	const char *path = part->files[item].path;
	struct err *err = err_start(&part->errors[slice], NULL);
	struct image image;

	decode_file(&image, path, part->gray, err);
	if (!err_stuck(err))
		scale_image(part, part->array.bytes + (size_t)(item * dim[1] * dim[2] * dim[3]),
			    &image, path, err);
	mem_free(image.bytes);
}

/* The size of all: data.resize, else the first file's. */
static void find_size(struct image_part *part, const struct dataset_params *params, struct err *err)
{
	int64_t *dim = part->array.dim;
	struct image image;

	dim[1] = params->resize.height;
	dim[2] = params->resize.width;
	dim[3] = params->images.gray ? 1 : 3;
	part->resizes = dim[1] > 0;
	if (!part->resizes) {
		decode_file(&image, part->files[0].path, part->gray, err);
		dim[1] = image.height;
		dim[2] = image.width;
		mem_free(image.bytes);
	}
	if (!err_stuck(err) && (dim[1] > IMAGE_SIDE_MOST || dim[2] > IMAGE_SIDE_MOST ||
				dim[1] * dim[2] > IMAGES_BYTES_MOST / 3 / dim[0]))
		err_set(err, ST_LIMIT,
			"%s: %lld images of %lld x %lld pixels are too many for the memory: "
			"data.resize makes them smaller, data.limit takes fewer",
			part->folder, (long long)dim[0], (long long)dim[1], (long long)dim[2]);
}

/* The first file in which something is wrong is named, on any number of threads. */
static void decode_files(struct image_part *part, struct pool *pool, struct err *err)
{
	for (int64_t left; !err_stuck(err) && (left = part->array.dim[0] - part->first) > 0;) {
		const unsigned count = (unsigned)min(left, (int64_t)IMAGES_ROUND);

		pool_run(pool, decode_item, part, count);
		for (unsigned i = 0; i < count && !err_stuck(err); i++)
			if (err_stuck(&part->errors[i]))
				*err = part->errors[i];
		part->first += count;
	}
}

static void open_part(struct dataset *out, const struct dataset_folder *folder,
		      const struct dataset_files *files, const struct dataset_params *params,
		      struct pool *pool, struct err *err)
{
	struct image_part *part = mem_calloc(1, sizeof(*part));
	const int64_t count = (int64_t)files->count;
	int64_t *dim;

	if (!part) {
		err_nomem(err);
		return;
	}
	part->folder = files->folder;
	part->files = files->files;
	part->gray = params->images.gray;
	part->array = (struct dataset_array){.type = DATASET_U8, .ndim = 4};
	dim = part->array.dim;
	dim[0] = params->limit > 0 ? min(count, params->limit) : count;
	find_size(part, params, err);
	if (!err_stuck(err)) {
		part->array.bytes = mem_calloc((size_t)dim[0], (size_t)(dim[1] * dim[2] * dim[3]));
		if (!part->array.bytes)
			err_nomem(err);
	}
	if (!err_stuck(err) && !params->shapes)
		decode_files(part, pool, err);
	if (!err_stuck(err))
		dataset__folder_join(out, folder, files, "images", 0, &part->array, err);
	dataset__array_free(&part->array);
	mem_free(part);
}

enum status dataset__images_open(struct dataset *train, struct dataset *test,
				 const struct dataset_known *known,
				 const struct dataset_params *params, struct err *err)
{
	static const struct dataset_wanted wanted = {is_image, "*.png, *.jpg or *.jpeg"};
	const unsigned threads = params->threads ? params->threads : pool_processors();
	struct dataset_folder folder;
	struct pool *pool = NULL;
	struct err own;

	err = err_start(err, &own);
	if (!params->path)
		return err_set(err, ST_INVALID,
			       "data set \"%s\": which images? Give a folder with a folder of PNG "
			       "and JPEG files for each class with --data.path FOLDER",
			       known->name);
	if (image_usable(params->path, err) != ST_OK ||
	    dataset__folder_list(&folder, params, &wanted, err) != ST_OK)
		return err->status;
	if (!params->shapes)
		pool_new(&pool, threads - 1, err);
	for (int i = 0; i < 2 && !err_stuck(err); i++)
		if (folder.parts[i].count > 0)
			open_part(i == 0 ? train : test, &folder, &folder.parts[i], params, pool,
				  err);
	if (err_stuck(err)) {
		dataset_close(train);
		dataset_close(test);
	}
	pool_free(pool);
	dataset__folder_free(&folder);
	return err->status;
}
