/*
 * Folders of files by class: PATH/CLASS/FILE, or PATH/train/CLASS/FILE and PATH/test/CLASS/FILE.
 * Files for prediction alone need no classes: PATH/test/FILE or PATH/FILE, in the order of names.
 * If nothing is trained, PATH holds the test part. Classes are sorted by the bytes of their names.
 * The files of the classes are interleaved, so that a split or a limit includes a share of each, in
 * the same order on every machine.
 *
 * Threading: none.
 */
#include "trainer/data/dataset_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"

#define FOLDER_FILES_MOST (1 << 24)

static void list_class(struct dataset_files *part, const char *folder, int label,
		       const struct dataset_wanted *wanted, struct err *err)
{
	const size_t first = part->count;
	struct fs_list names;

	if (fs_list(&names, folder, err) != ST_OK)
		return;
	for (size_t i = 0; i < names.count && !err_stuck(err); i++) {
		char path[FS_PATH_SIZE];

		if (!wanted->is(names.names[i]))
			continue;
		if (part->count == FOLDER_FILES_MOST ||
		    !fs_path(path, "%s/%s", folder, names.names[i])) {
			err_set(err, ST_LIMIT, "%s: too many files, or too long a path", folder);
		} else if (mem_grow(&part->files, &part->room, part->count + 1,
				    sizeof(*part->files))) {
			err_nomem(err);
		} else {
			struct dataset_file *file = &part->files[part->count];

			*file = (struct dataset_file){.label = label, .path = mem_strdup(path)};
			part->count += file->path != NULL;
			if (!file->path)
				err_nomem(err);
		}
	}
	for (size_t i = first; i < part->count; i++) {
		part->files[i].at = (int64_t)(i - first);
		part->files[i].of = (int64_t)(part->count - first);
	}
	fs_list_free(&names);
}

/* Order by the fraction of the class's files that precede each, to spread every class evenly. */
static int by_share(const void *left, const void *right)
{
	const struct dataset_file *a = left, *b = right;
	const int64_t x = (2 * a->at + 1) * b->of, y = (2 * b->at + 1) * a->of;

	return x != y ? SORTED_ORDER(x, y) : SORTED_BY(a, b, label);
}

static void list_part(struct dataset_files *part, const struct fs_list *labels,
		      const struct dataset_wanted *wanted, struct err *err)
{
	if (part->unlabelled)
		list_class(part, part->folder, -1, wanted, err);
	for (size_t label = 0; label < labels->count && !part->unlabelled && !err_stuck(err);
	     label++) {
		char path[FS_PATH_SIZE];

		if (!fs_path(path, "%s/%s", part->folder, labels->names[label]))
			err_set(err, ST_LIMIT, "%s: the path is too long", part->folder);
		else if (fs_is_dir(path))
			list_class(part, path, (int)label, wanted, err);
	}
	if (!err_stuck(err) && part->count == 0)
		err_set(err, ST_NOTFOUND, "%s: has no files %s%s", part->folder,
			part->unlabelled ? "" : "LABEL/", wanted->text);
	if (!err_stuck(err))
		qsort(part->files, part->count, sizeof(*part->files), by_share);
}

/* List the subfolders of @folder, by name. */
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

/* Check that the test part's labels @others are all among @labels. */
static void check_labels(const struct fs_list *labels, const struct fs_list *others,
			 const char *folder, struct err *err)
{
	for (size_t i = 0; !err_stuck(err) && i < others->count; i++) {
		size_t at = 0;

		while (at < labels->count && strcmp(labels->names[at], others->names[i]) != 0)
			at++;
		if (at == labels->count)
			err_set(err, ST_FORMAT, "%s/%s: is no label of the training part", folder,
				others->names[i]);
	}
}

/* Set the folders of the parts; "" for a missing one. */
static void find_parts(struct dataset_folder *out, const struct dataset_params *params,
		       struct err *err)
{
	char paths[2][FS_PATH_SIZE];

	if (!fs_path(paths[0], "%s/train", params->path) ||
	    !fs_path(paths[1], "%s/test", params->path)) {
		err_set(err, ST_LIMIT, "%s: the path is too long", params->path);
		return;
	}
	if (fs_is_dir(paths[0]) || (params->no_train && fs_is_dir(paths[1]))) {
		for (int i = 0; i < 2; i++)
			if (fs_is_dir(paths[i]))
				str_copy(out->parts[i].folder, FS_PATH_SIZE, paths[i]);
	} else {
		str_copy(out->parts[dataset__only_part(params)].folder, FS_PATH_SIZE, params->path);
	}
}

void dataset__folder_list(struct dataset_folder *out, const struct dataset_params *params,
			  const struct dataset_wanted *wanted, struct err *err)
{
	struct dataset_files *parts = out->parts;

	*out = (struct dataset_folder){0};
	find_parts(out, params, err);
	if (!err_stuck(err) && parts[0].folder[0])
		list_labels(&out->labels, parts[0].folder, err);
	if (!err_stuck(err) && parts[1].folder[0]) {
		struct fs_list labels = {0};

		list_labels(&labels, parts[1].folder, err);
		parts[1].unlabelled = params->no_test_targets && labels.count == 0;
		if (!err_stuck(err) && parts[0].folder[0])
			check_labels(&out->labels, &labels, parts[1].folder, err);
		if (parts[0].folder[0])
			fs_list_free(&labels);
		else
			out->labels = labels;
	}
	for (int i = 0; i < 2 && !err_stuck(err); i++)
		if (parts[i].folder[0])
			list_part(&parts[i], &out->labels, wanted, err);
	if (err_stuck(err))
		dataset__folder_free(out);
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

void dataset__folder_join(struct dataset *out, const struct dataset_folder *folder,
			  const struct dataset_files *part, const char *what, int64_t limit,
			  struct dataset_array *inputs, struct err *err)
{
	const struct dataset_about about = {.source = part->folder,
					    .inputs = what,
					    .targets = "labels",
					    .classes = (int)folder->labels.count,
					    .names = (const char *const *)folder->labels.names,
					    .limit = limit};
	struct dataset_array targets = {
		.type = DATASET_I32, .ndim = !part->unlabelled, .dim = {inputs->dim[0]}};

	if (!err_stuck(err)) {
		targets.bytes = mem_calloc((size_t)inputs->dim[0], sizeof(int32_t));
		if (!targets.bytes)
			err_nomem(err);
	}
	for (int64_t i = 0; targets.bytes && i < inputs->dim[0]; i++) {
		const int32_t label = part->files[i].label;

		memcpy(targets.bytes + (size_t)i * sizeof(label), &label, sizeof(label));
	}
	dataset__join(out, &about, inputs, &targets, err);
}
