/*
 * Overrides: `--key value` sets one key of the run file, or a place below one.
 *
 * Threading: none.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_options.h"

/* ---- a place in the tree --------------------------------------------------------------------- */

/* The child @name of @at, an object where there was none. */
static enum status run_step(cJSON **at, const char *name, const struct run_option *option,
			    struct err *err)
{
	long long index;
	cJSON *next;

	if (cJSON_IsArray(*at)) {
		int count = cJSON_GetArraySize(*at);

		if (!str_to_int(name, &index) || index < 0 || index >= count)
			return err_set(err, ST_INVALID,
				       "%s: \"%s\" is not an index of a list of %d", option->name,
				       name, count);
		*at = cJSON_GetArrayItem(*at, (int)index);
		return ST_OK;
	}
	if (!cJSON_IsObject(*at))
		return err_set(err, ST_INVALID, "%s: there is no \"%s\" in a plain value",
			       option->name, name);

	next = cJSON_GetObjectItemCaseSensitive(*at, name);
	if (!next || cJSON_IsNull(next)) {
		enum status status;

		next = cJSON_CreateObject();
		if (!next)
			return err_nomem(err);
		status = run__put(*at, name, next, err);
		if (status != ST_OK)
			return status;
	}
	*at = next;
	return ST_OK;
}

/* Set the last name of the path; @value is handed over. */
static enum status run_set_last(cJSON *at, const char *name, cJSON *value,
				const struct run_option *option, struct err *err)
{
	long long index;

	if (cJSON_IsObject(at))
		return run__put(at, name, value, err);
	if (cJSON_IsArray(at) && str_to_int(name, &index) && index >= 0 &&
	    index < cJSON_GetArraySize(at) && cJSON_ReplaceItemInArray(at, (int)index, value))
		return ST_OK;
	cJSON_Delete(value);
	return err_set(err, ST_INVALID, "%s: there is no \"%s\" to set", option->name, name);
}

static enum status run_set_path(cJSON *json, char *path, cJSON *value,
				const struct run_option *option, struct err *err)
{
	enum status status = ST_OK;
	char *name = path, *dot;

	while ((dot = strchr(name, '.'))) {
		*dot = '\0';
		status = run_step(&json, name, option, err);
		if (status != ST_OK) {
			cJSON_Delete(value);
			return status;
		}
		name = dot + 1;
	}
	return run_set_last(json, name, value, option, err);
}

static enum status run_apply_override(const struct run_words *in, const struct run_key *key,
				      const struct run_option *option, struct err *err)
{
	enum status status = run__option_check(in, option, RUN_TAKES_VALUE, err);
	char path[RUN_WORD_SIZE];
	cJSON *value;
	bool exact;

	if (status != ST_OK)
		return status;
	str_copy(path, sizeof(path), option->name + 2);
	exact = !strcmp(key->path, path);
	status = run__word(&value, exact ? key : NULL, false, option->name,
			   run__option_word(in, option, 0), err);
	if (status != ST_OK)
		return status;
	return run_set_path(in->json, path, value, option, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The flag or key that @word ("epoch") was meant to be, among @names; else the key that ends so. */
static const char *run_nearest_option(const char *word, const char *const *names, size_t count)
{
	const char *near = str_nearest(word, names, count);
	int key_count;
	const struct run_key *keys = run_file_keys(&key_count);

	for (int i = 0; !near && i < key_count; i++)
		if (keys[i].kind != RUN_KEY_FLAGS && !strcmp(run__key_last(&keys[i]), word))
			near = keys[i].path;
	return near;
}

/* "--gradient_accumulation_count", "--pipeline.repeat_count": known, but not an option. */
static bool run_renamed_option(const char *name, struct err *err)
{
	const char *dot = strrchr(name, '.');
	char text[ERR_TEXT_SIZE];

	if (!run__renamed_text(dot ? dot + 1 : name + 2, text, sizeof(text)))
		return false;
	err_set(err, ST_INVALID, "%s %s", name, text);
	return true;
}

/* Neither a flag nor a key: name the nearest of both. */
static enum status run_unknown_option(const struct run_words *in, const char *name, struct err *err)
{
	const char **names, *near;
	struct run_flag_word *words;
	int key_count, flag_count;
	const struct run_key *keys = run_file_keys(&key_count);
	enum status status = run__flag_words(in, &words, &flag_count, err);
	size_t count = 0;

	if (status != ST_OK)
		return status;
	names = mem_calloc((size_t)key_count + (size_t)flag_count, sizeof(*names));
	if (!names) {
		mem_free(words);
		return err_nomem(err);
	}
	for (int i = 0; i < key_count; i++)
		if (keys[i].kind != RUN_KEY_FLAGS)
			names[count++] = keys[i].path;
	for (int i = 0; i < flag_count; i++)
		names[count++] = words[i].name + 2;

	near = run_nearest_option(name + 2, names, count);
	if (near)
		err_set(err, ST_INVALID, "unknown option %s (did you mean --%s?)", name, near);
	else
		err_set(err, ST_INVALID,
			"unknown option %s (`ipu-train --help RUN` lists flags and keys)", name);
	mem_free(names);
	mem_free(words);
	return ST_INVALID;
}

enum status run__overrides_apply(const struct run_words *in, struct err *err)
{
	enum status status = ST_OK;

	for (int at = 0; at < in->argc && status == ST_OK;) {
		const struct run_key *key;
		struct run_option option;

		status = run__next_option(in, &at, &option, err);
		if (status != ST_OK || run__flag_known(in, option.name))
			continue;
		key = run__key_over(option.name + 2);
		if (!key && run_renamed_option(option.name, err))
			return ST_INVALID;
		if (!key || key->kind == RUN_KEY_FLAGS)
			return run_unknown_option(in, option.name, err);
		status = run_apply_override(in, key, &option, err);
	}
	return status;
}
