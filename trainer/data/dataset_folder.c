/*
 * Folders of files by class: PATH/CLASS/FILE, or PATH/train/CLASS/FILE and PATH/test/CLASS/FILE.
 * Classes are in the order of their names' bytes. Files of the classes are mixed, so that a split
 * or a limit has its share of each, in the same order on every machine.
 *
 * Threading: none.
 */
#include "trainer/data/dataset_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"

#define FOLDER_FILES_MOST (1 << 24)

static void add_file(struct dataset_files *part, const char *folder, const char *name, int label,
		     struct err *err)
{
	char path[FS_PATH_SIZE];
	struct dataset_file *file;

	if (part->count == FOLDER_FILES_MOST || !fs_path(path, "%s/%s", folder, name)) {
		err_set(err, ST_LIMIT, "%s: too many files, or too long a path", folder);
	} else if (mem_grow(&part->files, &part->room, part->count + 1, sizeof(*part->files))) {
		err_nomem(err);
	} else {
		file = &part->files[part->count];
		*file = (struct dataset_file){.label = label, .path = mem_strdup(path)};
		part->count += file->path != NULL;
		if (!file->path)
			err_nomem(err);
	}
}

static void list_class(struct dataset_files *part, const char *folder, int label,
		       const struct dataset_wanted *wanted, struct err *err)
{
	const size_t first = part->count;
	struct fs_list names;

	if (fs_list(&names, folder, err) != ST_OK)
		return;
	for (size_t i = 0; i < names.count && !err_stuck(err); i++)
		if (wanted->is(names.names[i]))
			add_file(part, folder, names.names[i], label, err);
	for (size_t i = first; i < part->count; i++) {
		part->files[i].at = (int64_t)(i - first);
		part->files[i].of = (int64_t)(part->count - first);
	}
	fs_list_free(&names);
}

/* By how much of a class's files comes before each, so that every stretch has all classes. */
static int by_share(const void *left, const void *right)
{
	const struct dataset_file *a = left, *b = right;
	const int64_t x = (2 * a->at + 1) * b->of, y = (2 * b->at + 1) * a->of;

	return x != y ? SORTED_ORDER(x, y) : SORTED_BY(a, b, label);
}

static void list_part(struct dataset_files *part, const struct fs_list *labels,
		      const struct dataset_wanted *wanted, struct err *err)
{
	for (size_t label = 0; label < labels->count && !err_stuck(err); label++) {
		char path[FS_PATH_SIZE];

		if (!fs_path(path, "%s/%s", part->folder, labels->names[label]))
			err_set(err, ST_LIMIT, "%s: the path is too long", part->folder);
		else if (fs_is_dir(path))
			list_class(part, path, (int)label, wanted, err);
	}
	if (!err_stuck(err) && part->count == 0)
		err_set(err, ST_NOTFOUND, "%s: has no files LABEL/%s", part->folder, wanted->text);
	if (!err_stuck(err))
		qsort(part->files, part->count, sizeof(*part->files), by_share);
}

/* The folders of @folder, by name. */
static void list_labels(struct fs_list *labels, const char *folder, struct err *err)
{
	size_t kept = 0;

	if (fs_list(labels, folder, err) != ST_OK)
		return;
	for (size_t i = 0; i < labels->count; i++) {
		char path[FS_PATH_SIZE], *name = labels->names[i];

		if (fs_path(path, "%s/%s", folder, name) && fs_is_dir(path))
			labels->names[kept++] = name;
		else
			mem_free(name);
	}
	labels->count = kept;
}

/* The test part has no label but @labels. */
static void check_labels(const struct fs_list *labels, const char *folder, struct err *err)
{
	struct fs_list others;

	list_labels(&others, folder, err);
	for (size_t i = 0; !err_stuck(err) && i < others.count; i++) {
		size_t at = 0;

		while (at < labels->count && strcmp(labels->names[at], others.names[i]) != 0)
			at++;
		if (at == labels->count)
			err_set(err, ST_FORMAT, "%s/%s: is no label of the training part", folder,
				others.names[i]);
	}
	fs_list_free(&others);
}

enum status dataset__folder_list(struct dataset_folder *out, const char *path,
				 const struct dataset_wanted *wanted, struct err *err)
{
	struct dataset_files *parts = out->parts;
	struct err own;

	err = err_start(err, &own);
	*out = (struct dataset_folder){0};
	if (!fs_path(parts[0].folder, "%s/train", path) || !fs_is_dir(parts[0].folder)) {
		if (!fs_path(parts[0].folder, "%s", path))
			err_set(err, ST_LIMIT, "%s: the path is too long", path);
	} else if (!fs_path(parts[1].folder, "%s/test", path) || !fs_is_dir(parts[1].folder)) {
		parts[1].folder[0] = '\0';
	}
	if (!err_stuck(err))
		list_labels(&out->labels, parts[0].folder, err);
	if (!err_stuck(err) && parts[1].folder[0])
		check_labels(&out->labels, parts[1].folder, err);
	for (int i = 0; i < 2 && !err_stuck(err); i++)
		if (parts[i].folder[0])
			list_part(&parts[i], &out->labels, wanted, err);
	if (err_stuck(err))
		dataset__folder_free(out);
	return err->status;
}

void dataset__folder_free(struct dataset_folder *folder)
{
	for (int i = 0; i < 2; i++) {
		for (size_t file = 0; file < folder->parts[i].count; file++)
			mem_free(folder->parts[i].files[file].path);
		mem_free(folder->parts[i].files);
	}
	fs_list_free(&folder->labels);
	*folder = (struct dataset_folder){0};
}

enum status dataset__folder_join(struct dataset *out, const struct dataset_folder *folder,
				 const struct dataset_files *part, const char *what, int64_t limit,
				 struct dataset_array *inputs, struct err *err)
{
	const struct dataset_about about = {.source = part->folder,
					    .inputs = what,
					    .targets = "labels",
					    .classes = (int)folder->labels.count,
					    .names = (const char *const *)folder->labels.names,
					    .limit = limit};
	struct dataset_array targets = {.type = DATASET_I32, .ndim = 1, .dim = {inputs->dim[0]}};
	enum status status;

	targets.bytes = mem_calloc((size_t)inputs->dim[0], sizeof(int32_t));
	for (int64_t i = 0; targets.bytes && i < inputs->dim[0]; i++) {
		const int32_t label = part->files[i].label;

		memcpy(targets.bytes + (size_t)i * sizeof(label), &label, sizeof(label));
	}
	status = targets.bytes ? dataset__join(out, &about, inputs, &targets, err) : err_nomem(err);
	dataset__array_free(&targets);
	return status;
}
