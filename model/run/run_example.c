/*
 * Finding and listing examples by name.
 *
 * Threading: none. Ownership: a struct examples owns its entries, which scandir() has allocated.
 */
#include "model/run/run_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define SUFFIX        ".json"
#define SUFFIX_LENGTH (sizeof(SUFFIX) - 1)

struct examples {
	char folder[FS_PATH_SIZE];
	struct dirent **entries; /* d_name without the suffix */
	int count;
};

/* Length of a run file's name without its suffix. */
static size_t stem_length(const char *name)
{
	const size_t length = strlen(name);

	if (length > SUFFIX_LENGTH && strcmp(name + length - SUFFIX_LENGTH, SUFFIX) == 0)
		return length - SUFFIX_LENGTH;
	return length;
}

static int is_run(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_name[stem_length(entry->d_name)] != '\0';
}

static int by_name(const void *a, const void *b)
{
	const struct dirent *const *one = a, *const *other = b;

	return strcmp((*one)->d_name, (*other)->d_name);
}

static void examples_close(struct examples *examples)
{
	for (int i = 0; i < examples->count; i++)
		free(examples->entries[i]);
	free(examples->entries);
}

static enum status examples_open(struct examples *examples, struct err *err)
{
	*examples = (struct examples){.count = 0};
	if (!fs_shared(examples->folder, "examples"))
		return err_set(err, ST_NOTFOUND,
			       "no examples are installed beside this program (%s)",
			       "share/ipuscope/examples");
	examples->count = scandir(examples->folder, &examples->entries, is_run, NULL);
	if (examples->count < 0) {
		examples->count = 0;
		return err_set(err, ST_IO, "%s: cannot read: %s", examples->folder,
			       strerror(errno));
	}
	for (int i = 0; i < examples->count; i++)
		examples->entries[i]->d_name[stem_length(examples->entries[i]->d_name)] = '\0';
	/* Sort by bytes: alphasort() depends on the locale, and would include the suffix. */
	if (examples->count > 0)
		qsort(examples->entries, (size_t)examples->count, sizeof(*examples->entries),
		      by_name);
	return ST_OK;
}

static bool is_file(const char *path)
{
	return fs_exists(path) && !fs_is_dir(path);
}

/* Report that @word is neither a file nor an example, with the nearest example. */
static enum status report_not_found(const struct examples *examples, const char *word,
				    struct err *err)
{
	const char **names = mem_calloc((size_t)examples->count + 1, sizeof(*names)), *nearest;
	enum status status;

	if (!names)
		return err_nomem(err);
	for (int i = 0; i < examples->count; i++)
		names[i] = examples->entries[i]->d_name;
	nearest = str_nearest(word, names, (size_t)examples->count);
	status = err_set(err, ST_NOTFOUND,
			 "%s: there is no such file, and no example of that name%s%s%s "
			 "(`ipu-train --list` lists them)",
			 word, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
			 nearest ? "\"?" : "");
	mem_free(names);
	return status;
}

enum status run_example_find(char path[FS_PATH_SIZE], const char *word, struct err *err)
{
	const size_t length = stem_length(word);
	struct examples examples;
	enum status status;
	bool found = false;

	if (strchr(word, '/') || is_file(word)) {
		if (fs_path(path, "%s", word))
			return ST_OK;
		return err_set(err, ST_INVALID, "%.40s...: the path is too long", word);
	}
	if (fs_path(path, "%s" SUFFIX, word) && is_file(path))
		return ST_OK;

	status = examples_open(&examples, err);
	/* Without installed examples a word can only be a path. */
	if (status == ST_NOTFOUND && fs_path(path, "%s", word))
		return ST_OK;
	for (int i = 0; i < examples.count && status == ST_OK && !found; i++) {
		const char *name = examples.entries[i]->d_name;

		if (strlen(name) == length && memcmp(name, word, length) == 0)
			found = fs_path(path, "%s/%s" SUFFIX, examples.folder, name);
	}
	if (status == ST_OK && !found)
		status = report_not_found(&examples, word, err);
	examples_close(&examples);
	return status;
}

/* Print a line of the list; the name is padded to @width columns. */
static enum status print_example(const char *folder, const char *name, int width, FILE *out,
				 struct err *err)
{
	char path[FS_PATH_SIZE];
	const cJSON *description;
	enum status status;
	cJSON *run;

	if (!fs_path(path, "%s/%s" SUFFIX, folder, name))
		return err_set(err, ST_INVALID, "%s: the path is too long", name);
	status = json_load(&run, path, err);
	if (status != ST_OK)
		return status;
	description = cJSON_GetObjectItemCaseSensitive(run, "description");
	if (cJSON_IsString(description))
		cli_print(out, "%-*s  %s\n", width, name, description->valuestring);
	else
		cli_print(out, "%s\n", name);
	cJSON_Delete(run);
	return ST_OK;
}

enum status run_example_list(FILE *out, struct err *err)
{
	struct examples examples;
	enum status status = examples_open(&examples, err);
	int width = 0;

	for (int i = 0; i < examples.count; i++) {
		const int length = (int)strlen(examples.entries[i]->d_name);

		width = max(length, width);
	}
	for (int i = 0; i < examples.count && status == ST_OK; i++)
		status = print_example(examples.folder, examples.entries[i]->d_name, width, out,
				       err);
	examples_close(&examples);
	return status;
}
