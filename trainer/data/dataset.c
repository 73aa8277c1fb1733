/*
 * Data sets: looks a set up by name, searches the folders that may hold it, and makes its two parts
 * one set: checked against each other, resized, split.
 *
 * Threading: an open data set is read-only.
 */
#include "trainer/data/dataset_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define ONE_HOT_MOST (1 << 20) /* numbers of an item: bounds memory if one class number is stray */

/* ---- known sets ------------------------------------------------------------------------------ */

static const char *const digit_names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const char *const fashion_names[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
					    "Coat",        "Sandal",    "Shirt",    "Sneaker",
					    "Bag",         "Ankle boot"};
static const char *const cifar_names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
					  "dog",      "frog",       "horse", "ship", "truck"};

static const struct dataset_known known_sets[] = {
	{.name = "mnist",
	 .classes = 10,
	 .shape = {28, 28, 1},
	 .count = 60000,
	 .test_count = 10000,
	 .names = digit_names,
	 .folder = dataset__idx_open,
	 .layout = "folder of IDX files",
	 .keras = {"mnist.npz"},
	 .synthetic = dataset__digits_open,
	 .script = "get-mnist",
	 .remedy = " fetches that, or give its folder or .npz file with "
		   "--data.path"},
	{.name = "fashion_mnist",
	 .classes = 10,
	 .shape = {28, 28, 1},
	 .count = 60000,
	 .test_count = 10000,
	 .names = fashion_names,
	 .folder = dataset__idx_open,
	 .layout = "folder of IDX files",
	 .keras = {"fashion-mnist", "fashion_mnist.npz"},
	 .synthetic = dataset__digits_open,
	 .remedy = "keras.datasets.fashion_mnist.load_data() fetches that, or give its folder or "
		   ".npz file with --data.path"},
	{.name = "cifar10",
	 .classes = 10,
	 .shape = {32, 32, 3},
	 .count = 50000,
	 .test_count = 10000,
	 .names = cifar_names,
	 .folder = dataset__cifar_open,
	 .layout = "folder of CIFAR-10's binary version",
	 .keras = {"cifar10.npz", "cifar-10-batches-bin", "cifar-10-batches-py"},
	 .synthetic = dataset__pictures_open,
	 .script = "get-cifar10",
	 .remedy = " fetches that, or give its folder (binary version) or .npz "
		   "file with --data.path"},
	{.name = "cifar100",
	 .classes = 100,
	 .groups = 20,
	 .shape = {32, 32, 3},
	 .count = 50000,
	 .test_count = 10000,
	 .folder = dataset__cifar_open,
	 .layout = "folder of CIFAR-100's binary version",
	 .keras = {"cifar100.npz", "cifar-100-binary", "cifar-100-python"},
	 .remedy = "give its folder (binary version) or .npz file with --data.path"},
	{.name = "npz"},
	{.name = "csv", .open = dataset__csv_open},
	{.name = "text", .open = dataset__text_open},
	{.name = "imdb", .keras = {"imdb.npz"}, .open = dataset__imdb_open},
	{.name = "images", .open = dataset__images_open},
};

/* Look up @params->name; coarse labels replace the number of classes by that of their groups. */
static void dataset_find(struct dataset_known *out, const struct dataset_params *params,
			 struct err *err)
{
	const char *names[ARRAY_LEN(known_sets)], *name = params->name, *near;

	for (size_t i = 0; i < ARRAY_LEN(known_sets); i++) {
		names[i] = known_sets[i].name;
		if (strcmp(known_sets[i].name, name) != 0)
			continue;
		*out = known_sets[i];
		if (params->coarse && !out->groups)
			err_set(err, ST_INVALID,
				"data.label_mode: coarse labels are of data.name cifar100, and "
				"this is %s",
				name);
		if (params->coarse)
			out->classes = out->groups;
		return;
	}
	near = str_nearest(name, names, ARRAY_LEN(names));
	if (near)
		err_set(err, ST_INVALID, "unknown data set \"%s\" (did you mean \"%s\"?)", name,
			near);
	else
		err_set(err, ST_INVALID,
			"unknown data set \"%s\" (there are: mnist, fashion_mnist, cifar10, "
			"cifar100, npz, csv, text, imdb, images)",
			name);
}

const char *dataset__script(char out[FS_PATH_SIZE], const char *name)
{
	char place[FS_PATH_SIZE];

	out[0] = '\0';
	if (name && fs_path(place, "script/%s", name) && !fs_shared(out, place))
		memcpy(out, place, sizeof(place));
	return out;
}

void dataset__synthetic(const struct dataset_opening *o, const char *what, const char *how)
{
	char text[2 * FS_PATH_SIZE + 512], script[FS_PATH_SIZE];

	if (err_stuck(o->err))
		return;
	o->parts[0]->synthetic = o->parts[1]->synthetic = true;
	if (!o->params->notice)
		return;
	snprintf(text, sizeof(text), "data: synthetic %s (%s), not the real %s: %s%s", what, how,
		 o->known->name, dataset__script(script, o->known->script), o->known->remedy);
	o->params->notice(o->params->user, text);
}

/* ---- search order ---------------------------------------------------------------------------- */

/* $IPUSCOPE_DATA/NAME; the default is the XDG data folder, which script/get-... fill. */
static bool dataset_data_folder(char out[FS_PATH_SIZE], const char *name)
{
	const char *base = getenv("IPUSCOPE_DATA");
	char data[FS_PATH_SIZE];

	if (base && *base)
		return fs_path(out, "%s/%s", base, name);
	return fs_xdg(data, "XDG_DATA_HOME", ".local/share") && fs_path(out, "%s/%s", data, name);
}

/* A set that exists but cannot be read is an error: do not fall back to another one. */
static void dataset_open_any(struct dataset_opening o)
{
	const struct dataset_known *known = o.known;
	const char *home = getenv("HOME");
	char path[FS_PATH_SIZE];

	/* Sets that are opened in their own way are not looked for in the data folder. */
	if (!o.path && !known->open && known->classes && dataset_data_folder(path, known->name) &&
	    fs_exists(path))
		o.path = path;
	for (const char *const *place = known->keras; home && *home && *place && !o.path; place++)
		if (fs_path(path, "%s/.keras/datasets/%s", home, *place) && fs_exists(path))
			o.path = path;
	if (known->open)
		known->open(&o);
	else if (!o.path && !known->classes)
		err_set(o.err, ST_INVALID,
			"data set \"%s\": which file? Give it with --data.path FILE.npz, or a "
			"folder of .npy files",
			known->name);
	else if (!o.path && !known->synthetic)
		err_set(o.err, ST_NOTFOUND, "data set \"%s\": is not on this machine: %s",
			known->name, known->remedy);
	else if (!o.path)
		known->synthetic(&o);
	else if (!fs_exists(o.path))
		err_set(o.err, ST_NOTFOUND, "%s: there is no such %s%s.npz file", o.path,
			known->folder ? known->layout : "folder of .npy files", " or ");
	else if (!fs_is_dir(o.path) || !known->folder)
		dataset__npz_open(&o);
	else
		known->folder(&o);
}

/* ---- the two parts together ------------------------------------------------------------------ */

static bool is_bytes(const struct dataset *set)
{
	return set->bytes || set->decoder;
}

static void dataset_shape_text(const struct dataset *set, char *out, size_t size)
{
	size_t at = 0;

	*out = '\0';
	for (int i = 0; i < set->ndim && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "x" : "",
				       (long long)set->shape[i]);
}

static enum status dataset_check_parts(struct dataset *train, struct dataset *test, struct err *err)
{
	char one[128], other[128];

	dataset_shape_text(train, one, sizeof(one));
	dataset_shape_text(test, other, sizeof(other));
	if (strcmp(one, other) != 0)
		return err_set(err, ST_FORMAT, "%s: items to train with are %s, to test with %s",
			       train->source, one, other);
	if (is_bytes(train) != is_bytes(test))
		return err_set(err, ST_FORMAT,
			       "%s: items to train with and to test with are not of one type (%s "
			       "are bytes)",
			       train->source, is_bytes(train) ? "the former" : "the latter");
	if (test->unlabelled) {
		test->classes = train->classes;
		test->width = train->width;
		test->part_count = train->part_count;
		memcpy(test->parts, train->parts, sizeof(test->parts));
		return ST_OK;
	}
	for (int i = 0; i < train->part_count; i++) {
		struct target_part *trained = &train->parts[i], *tested = &test->parts[i];

		if (!trained->classes != !tested->classes || trained->width != tested->width)
			return err_set(err, ST_FORMAT,
				       "%s: targets to train with and to test with differ in type "
				       "or width, those of output %d",
				       train->source, i);
		trained->classes = tested->classes = max(trained->classes, tested->classes);
	}
	if (train->width > 0 && (!train->classes || !test->classes))
		train->classes = test->classes = 0;
	if (!train->classes != !test->classes || train->width != test->width)
		return err_set(err, ST_FORMAT,
			       "%s: targets to train with and to test with differ in type or width",
			       train->source);
	/* Without a known number of classes, each part has counted up to its own greatest class. */
	if (train->classes < test->classes)
		train->classes = test->classes;
	test->classes = train->classes;
	return ST_OK;
}

/* Make @missing an empty part of the same kind as @there. */
static void dataset_empty_part(const struct dataset *there, struct dataset *missing)
{
	*missing = *there;
	missing->count = 0;
	missing->bytes = NULL;
	missing->floats = NULL;
	missing->decoder = NULL;
	missing->labels = NULL;
	missing->values = NULL;
	missing->weights = NULL;
	missing->resize = NULL;
	missing->memory = NULL;
}

/* Keras's validation_split: the last items, before any shuffling. @test borrows @train's memory. */
static enum status dataset_split(struct dataset *train, struct dataset *test, double split,
				 struct err *err)
{
	const int64_t left = (int64_t)floor((double)train->count * (1.0 - split));
	const size_t stored = dataset__stored_floats(train);

	if (test->count)
		return err_set(err, ST_INVALID,
			       "%s: data.validation_split: the set has %lld items to test with "
			       "already: leave the key out",
			       train->source, (long long)test->count);
	if (left < 1 || left >= train->count)
		return err_set(err, ST_INVALID,
			       "%s: data.validation_split: %g of %lld items leaves none %s",
			       train->source, split, (long long)train->count,
			       left < 1 ? "to train with" : "to test with");
	*test = *train;
	test->memory = NULL;
	test->count = train->count - left;
	train->count = left;
	if (test->bytes)
		test->bytes += (size_t)left * stored;
	if (test->floats)
		test->floats += (size_t)left * stored;
	test->decoder_first += left;
	if (test->labels)
		test->labels += left;
	if (test->values)
		test->values += (size_t)left * (size_t)train->width;
	if (test->weights)
		test->weights += left * train->weight_width;
	return ST_OK;
}

static enum status set_one_hot(struct dataset *train, struct dataset *test,
			       const struct dataset_params *params, struct err *err)
{
	const struct dataset *any = train->count ? train : test;

	if (params->one_hot && !any->classes && !any->unlabelled)
		return err_set(err, ST_INVALID,
			       "%s: data.one_hot: the targets are values, not class numbers",
			       any->source);
	if (params->one_hot && train->classes > ONE_HOT_MOST / max(train->width, 1))
		return err_set(err, ST_LIMIT,
			       "%s: data.one_hot: vectors of %d classes are too long; at most %d "
			       "numbers are made of an item's %lld",
			       any->source, train->classes, ONE_HOT_MOST,
			       (long long)max(train->width, 1));
	train->one_hot = test->one_hot = params->one_hot;
	return ST_OK;
}

static enum status set_one_hot_parts(struct dataset *train, struct dataset *test,
				     const struct dataset_params *params, struct err *err)
{
	const struct dataset *any = train->count ? train : test;
	int64_t left = ONE_HOT_MOST;

	for (int i = 0; i < any->part_count; i++) {
		const struct target_part *part = &any->parts[i];

		if (params->one_hot_parts[i] && !part->classes && !any->unlabelled)
			return err_set(
				err, ST_INVALID,
				"%s: data.one_hot: the targets of \"%s\" are values, not class "
				"numbers",
				any->source, params->outputs[i]);
		if (!part->classes || !(params->one_hot || params->one_hot_parts[i]))
			continue;
		if (part->classes > left / max(part->width, 1))
			return err_set(
				err, ST_LIMIT,
				"%s: data.one_hot: vectors of %d classes of \"%s\" are too long: "
				"at most %d numbers are made of an item",
				any->source, part->classes, params->outputs[i], ONE_HOT_MOST);
		left -= part->classes * max(part->width, 1);
		train->one_hot_parts[i] = test->one_hot_parts[i] = true;
	}
	return ST_OK;
}

static void dataset_finish(const struct dataset_opening *o)
{
	struct dataset *train = o->parts[0], *test = o->parts[1];
	const struct dataset *any = train->count ? train : test;
	const struct dataset_params *params = o->params;
	struct err *err = o->err;

	if (!err_stuck(err) && train->count && test->count)
		dataset_check_parts(train, test, err);
	if (!err_stuck(err) && any->part_count)
		set_one_hot_parts(train, test, params, err);
	else if (!err_stuck(err))
		set_one_hot(train, test, params, err);
	if (!err_stuck(err) && params->pictures && !is_bytes(any))
		err_set(err, ST_INVALID,
			"%s: infeed.dtype: uint8 is for pictures stored as bytes, and these are "
			"float values: take float16 or float32",
			any->source);
	for (int part = 0; part < 2 && params->resize.height && !err_stuck(err); part++)
		if (o->parts[part]->count)
			dataset__resize_set(o->parts[part], params->resize.height,
					    params->resize.width, err);
	if (err_stuck(err))
		return;
	if (params->validation_split > 0.0)
		dataset_split(train, test, params->validation_split, err);
	else if (!train->count)
		dataset_empty_part(test, train);
	else if (!test->count)
		dataset_empty_part(train, test);
}

int64_t dataset_beyond(const struct dataset *dataset, int64_t first, int64_t count, int64_t rows,
		       float *number, float *most)
{
	const int64_t width = (int64_t)dataset__stored_floats(dataset);
	int64_t found = -1;

	*most = 0.0f;
	for (int64_t item = 0; dataset->floats && item < dataset->count; item++) {
		const float *numbers = dataset->floats + item * width + first;

		for (int64_t i = 0; i < count; i++) {
			const bool fits = numbers[i] >= 0.0f && numbers[i] < (float)rows;

			if (!fits && found < 0) {
				found = item;
				*number = numbers[i];
			}
			*most = max(*most, numbers[i]);
		}
	}
	return found;
}

uint64_t dataset_digest(const struct dataset *dataset)
{
	const size_t count = (size_t)dataset->count;
	const size_t values = count * dataset__stored_floats(dataset);
	uint64_t digest = 0;

	if (dataset->files_digest)
		digest = XXH3_64bits_withSeed(dataset->shape, sizeof(dataset->shape),
					      dataset->files_digest);
	else if (dataset->bytes)
		digest = XXH3_64bits(dataset->bytes, values);
	else if (dataset->floats)
		digest = XXH3_64bits(dataset->floats, values * sizeof(*dataset->floats));
	if (dataset->labels)
		digest = XXH3_64bits_withSeed(dataset->labels, count * sizeof(*dataset->labels),
					      digest);
	else if (dataset->values)
		digest = XXH3_64bits_withSeed(
			dataset->values, count * (size_t)dataset->width * sizeof(float), digest);
	if (dataset->weights)
		digest = XXH3_64bits_withSeed(dataset->weights,
					      count * (size_t)dataset->weight_width * sizeof(float),
					      digest);
	return digest;
}

static struct dataset dataset_of(const struct dataset_known *known,
				 const struct dataset_params *params, int64_t count)
{
	struct dataset set = {
		.count = params->limit && params->limit < count ? params->limit : count,
		.ndim = 3,
		.classes = known->classes,
		.one_hot = params->one_hot,
		.source = known->name,
	};

	memcpy(set.shape, known->shape, sizeof(known->shape));
	if (params->resize.height) {
		set.shape[0] = params->resize.height;
		set.shape[1] = params->resize.width;
	}
	return set;
}

enum status dataset_describe(struct dataset *train, struct dataset *test,
			     const struct dataset_params *params, struct err *err)
{
	struct dataset_params shapes = *params;
	struct dataset_known known = {0};
	struct err own;

	err = err_start(err, &own);
	*train = *test = (struct dataset){0};
	dataset_find(&known, params, err);
	if (err_stuck(err))
		return err->status;
	shapes.shapes = true;
	if (params->path || !known.classes || params->validation_split > 0.0)
		return dataset_open(train, test, &shapes, err);
	*train = dataset_of(&known, params, known.count);
	*test = dataset_of(&known, params, known.test_count);
	return ST_OK;
}

enum status dataset_open(struct dataset *train, struct dataset *test,
			 const struct dataset_params *params, struct err *err)
{
	struct dataset_known known = {0};
	struct err own;
	const struct dataset_opening opening = {.parts = {train, test},
						.known = &known,
						.params = params,
						.path = params->path,
						.err = err_start(err, &own)};

	err = opening.err;
	*train = *test = (struct dataset){0};
	dataset_find(&known, params, err);
	if (!err_stuck(err) && (params->input_count || params->output_count) &&
	    (known.open || known.classes))
		err_set(err, ST_INVALID, "data.%s: names arrays of data.name npz, and this is %s",
			params->input_count ? "inputs" : "outputs", known.name);
	else if (!err_stuck(err) && params->output_count > TARGET_PARTS)
		err_set(err, ST_LIMIT, "data.outputs: %d outputs are beyond the limit: at most %d",
			params->output_count, TARGET_PARTS);
	if (!err_stuck(err))
		dataset_open_any(opening);
	dataset_finish(&opening);
	if (err_stuck(err)) {
		dataset_close(train);
		dataset_close(test);
	}
	return err->status;
}
