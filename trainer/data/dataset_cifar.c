/*
 * The binary versions of CIFAR-10 and CIFAR-100: records of a label and 32x32 red, green and blue
 * bytes, in data_batch_1.bin to data_batch_5.bin (as far as present) and test_batch.bin;
 * batches.meta.txt names the classes. CIFAR-100 has train.bin and test.bin; its records begin with
 * the label of one of 20 groups, then that of one of 100 classes: Keras's label_mode "coarse" and
 * "fine"; coarse_label_names.txt and fine_label_names.txt name them. Images become HWC.
 *
 * Threading: none. Source: the sets' own page, "Binary version".
 */
#include "trainer/data/dataset_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"

#define CIFAR_BATCHES 5
#define CIFAR_CLASSES 100 /* at most */
#define CIFAR_PLANE   (DATASET_CIFAR_SIDE * DATASET_CIFAR_SIDE)
#define CIFAR_META    4096 /* bytes of batches.meta.txt at most */

static const struct dataset_cifar cifar_kinds[] = {
	{.title = "CIFAR-10",
	 .classes = 10,
	 .labels = 1,
	 .train = "data_batch_",
	 .batches = CIFAR_BATCHES,
	 .test = "test_batch",
	 .names = "batches.meta.txt",
	 .unpacked = "cifar-10-batches-bin",
	 .pickle = "data_batch_1"},
	{.title = "CIFAR-100",
	 .classes = 100,
	 .labels = 2,
	 .label = 1,
	 .train = "train",
	 .test = "test",
	 .names = "fine_label_names.txt",
	 .unpacked = "cifar-100-binary",
	 .pickle = "train"},
	{.title = "CIFAR-100",
	 .classes = 20,
	 .labels = 2,
	 .train = "train",
	 .test = "test",
	 .names = "coarse_label_names.txt",
	 .unpacked = "cifar-100-binary",
	 .pickle = "train"},
};

const struct dataset_cifar *dataset__cifar(int classes)
{
	size_t i = 0;

	while (cifar_kinds[i].classes != classes)
		i++;
	return &cifar_kinds[i];
}

static size_t cifar_record(const struct dataset_cifar *kind)
{
	return (size_t)kind->labels + DATASET_CIFAR_BYTES;
}

enum status dataset__cifar_parse(struct dataset_array *images, struct dataset_array *labels,
				 int64_t first, const struct dataset_cifar *kind, const char *name,
				 const void *bytes, size_t length, struct err *err)
{
	const uint8_t *record = bytes;
	size_t each = cifar_record(kind), count = length / each;

	assert(first + (int64_t)count <= images->dim[0] && images->dim[0] == labels->dim[0]);
	if (!length)
		return err_set(err, ST_FORMAT, "%s: is empty", name);
	if (length % each)
		return err_set(err, ST_FORMAT,
			       "%s: is truncated or no %s file: %zu bytes are no whole number of "
			       "records of %zu (%s and 3x32x32 pixels)",
			       name, kind->title, length, each,
			       kind->labels > 1 ? "two labels" : "a label");
	for (size_t i = 0; i < count; i++, record += each) {
		uint8_t *to = images->bytes + ((size_t)first + i) * DATASET_CIFAR_BYTES;
		const uint8_t *from = record + kind->labels, label = record[kind->label];

		if (label >= kind->classes)
			return err_set(err, ST_FORMAT,
				       "%s: record %zu has the label %d; labels are from 0 to %d",
				       name, i, label, kind->classes - 1);
		labels->bytes[(size_t)first + i] = label;
		for (int p = 0; p < CIFAR_PLANE; p++, to += 3) {
			to[0] = from[p];
			to[1] = from[CIFAR_PLANE + p];
			to[2] = from[2 * CIFAR_PLANE + p];
		}
	}
	return ST_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

struct cifar_file {
	char path[FS_PATH_SIZE];
	char *bytes;
	size_t length;
};

static void cifar_join(struct dataset *out, const struct dataset_about *about,
		       const struct dataset_cifar *kind, const struct cifar_file *files, int count,
		       struct err *err)
{
	const int64_t side = DATASET_CIFAR_SIDE;
	struct dataset_array images = {.ndim = 4, .dim = {0, side, side, 3}}, labels = {.ndim = 1};
	int64_t first = 0, total = 0;

	for (int i = 0; i < count; i++)
		total += (int64_t)(files[i].length / cifar_record(kind));
	images.dim[0] = labels.dim[0] = total;
	images.bytes = mem_resize(NULL, (size_t)total + 1, DATASET_CIFAR_BYTES);
	labels.bytes = mem_alloc((size_t)total + 1);
	if (!images.bytes || !labels.bytes)
		err_nomem(err);
	for (int i = 0; i < count && !err_stuck(err); i++) {
		dataset__cifar_parse(&images, &labels, first, kind, files[i].path, files[i].bytes,
				     files[i].length, err);
		first += (int64_t)(files[i].length / cifar_record(kind));
	}
	dataset__join(out, about, &images, &labels, err);
}

/* Read the files @stem1.bin to @stem<most>.bin, as far as present; @most 0: @stem.bin alone. */
static void cifar_part(struct dataset *out, const struct dataset_about *about,
		       const struct dataset_cifar *kind, const char *folder, const char *stem,
		       int most, struct err *err)
{
	struct cifar_file *files = mem_calloc(CIFAR_BATCHES, sizeof(*files));
	int count = 0;

	if (!files)
		err_nomem(err);
	for (int i = 1; i <= (most ? most : 1) && !err_stuck(err); i++) {
		struct cifar_file *file = &files[count];
		char number[12] = "";

		if (most)
			snprintf(number, sizeof(number), "%d", i);
		if (!fs_path(file->path, "%s/%s%s.bin", folder, stem, number) ||
		    !fs_exists(file->path))
			continue;
		if (fs_read(file->path, DATASET_FILE_LIMIT, &file->bytes, &file->length, err) ==
		    ST_OK)
			count++;
	}
	if (!err_stuck(err) && !count)
		err_set(err, ST_NOTFOUND,
			"%s: there is no %s%s.bin in this folder (%s's binary version)", folder,
			stem, most ? "1" : "", kind->title);
	if (!err_stuck(err))
		cifar_join(out, about, kind, files, count, err);
	for (int i = 0; i < count; i++)
		mem_free(files[i].bytes);
	mem_free(files);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Parse the names, one a line; modifies @text, which owns them. */
static enum status cifar_names(char *text, size_t length, const char *path, int classes,
			       const char *names[CIFAR_CLASSES], struct err *err)
{
	int count = 0;
	char *rest = NULL;

	if (memchr(text, '\0', length))
		return err_set(err, ST_FORMAT, "%s: is no text", path);
	for (char *line = strtok_r(text, "\r\n", &rest); line;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		if (count < classes)
			names[count] = line;
		count++;
	}
	if (count != classes)
		return err_set(err, ST_FORMAT, "%s: has %d lines, not the names of %d classes",
			       path, count, classes);
	return ST_OK;
}

void dataset__cifar_open(const struct dataset_opening *o)
{
	const struct dataset_cifar *kind = dataset__cifar(o->known->classes);
	char inner[FS_PATH_SIZE], path[FS_PATH_SIZE], script[FS_PATH_SIZE],
		source[FS_PATH_SIZE + 32];
	struct dataset_about about = dataset__about_images(o);
	const char *names[CIFAR_CLASSES], *folder = o->path;
	char *text = NULL;
	size_t length;

	/* Accept the archive unpacked below the folder. */
	if (fs_path(inner, "%s/%s", folder, kind->unpacked) && fs_is_dir(inner))
		folder = inner;
	/* Keras stores the set as Python pickles, which only Python can read. */
	if (fs_path(path, "%s/%s", folder, kind->pickle) && fs_exists(path)) {
		dataset__script(script, o->known->script);
		err_set(o->err, ST_UNSUPPORTED,
			"%s: holds %s as Python pickles, which are not read: %s%sor save Keras's "
			"arrays with numpy.savez as ~/.keras/datasets/%s.npz (x_train, y_train, "
			"x_test, y_test)",
			folder, kind->title, *script ? script : "get",
			*script ? " fetches the binary version, " : " the binary version, ",
			o->known->name);
		return;
	}
	snprintf(source, sizeof(source), "%.*s (%s)", DATASET_PATH_SHOWN, folder, kind->title);
	about.source = source;
	if (fs_path(path, "%s/%s", folder, kind->names) && fs_exists(path)) {
		if (fs_read(path, CIFAR_META, &text, &length, o->err) == ST_OK)
			cifar_names(text, length, path, kind->classes, names, o->err);
		about.names = names;
	}
	for (int part = 0; part < 2 && !err_stuck(o->err); part++)
		cifar_part(o->parts[part], &about, kind, folder, part ? kind->test : kind->train,
			   part ? 0 : kind->batches, o->err);
	mem_free(text);
}
