/*
 * Looking keys up in the table, and what to say of those that are not there.
 *
 * Threading: constant data.
 */
#include "model/run/run_internal.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

const char *run_key_type(const struct run_key *key)
{
	static const char *const types[] = {
		[RUN_KEY_SECTION] = "object",
		[RUN_KEY_INT] = "whole number",
		[RUN_KEY_BOOL] = "true or false",
		[RUN_KEY_TEXT] = "text",
		[RUN_KEY_CHOICE] = "text",
		[RUN_KEY_TEXTS] = "text or list of texts",
		[RUN_KEY_FILTERS] = "list of texts",
		[RUN_KEY_STEPS] = "whole number or text",
		[RUN_KEY_SHUFFLE] = "true, false or whole number",
		[RUN_KEY_TREE] = "text, list or object",
		[RUN_KEY_LIST] = "list",
		[RUN_KEY_FLAGS] = "object",
		[RUN_KEY_SIZE] = "list of two whole numbers",
		[RUN_KEY_REAL] = "number",
		[RUN_KEY_MAYBE] = "true or false",
		[RUN_KEY_INTS] = "list of whole numbers",
		[RUN_KEY_PLAN] = "object",
		[RUN_KEY_PLANS] = "list of objects",
		[RUN_KEY_CAPTURE] = "text or list",
		[RUN_KEY_BYTES] = "number or text",
	};

	_Static_assert(ARRAY_LEN(types) == RUN_KEY_KINDS, "key types out of step");
	return types[key->kind];
}

const struct run_key *run__key_find(const char *path)
{
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; i < count; i++)
		if (!strcmp(keys[i].path, path))
			return &keys[i];
	return NULL;
}

/* Kinds whose values have places of their own below the key. */
static bool run_key_is_tree(const struct run_key *key)
{
	return key->kind == RUN_KEY_TREE || key->kind == RUN_KEY_LIST ||
	       key->kind == RUN_KEY_INTS || key->kind == RUN_KEY_PLAN ||
	       key->kind == RUN_KEY_PLANS || key->kind == RUN_KEY_CAPTURE;
}

const struct run_key *run__key_over(const char *path)
{
	const struct run_key *key = run__key_find(path);
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; !key && i < count; i++) {
		size_t length = strlen(keys[i].path);

		if (run_key_is_tree(&keys[i]) && path[0] && !strncmp(path, keys[i].path, length) &&
		    path[length] == '.' && path[length + 1])
			key = &keys[i];
	}
	return key;
}

const char *run__key_last(const struct run_key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot ? dot + 1 : key->path;
}

bool run__key_within(const struct run_key *key, const struct run_key *section)
{
	size_t length = section ? strlen(section->path) : 0;

	if (!section)
		return !strchr(key->path, '.');
	return !strncmp(key->path, section->path, length) && key->path[length] == '.' &&
	       !strchr(key->path + length + 1, '.');
}

int run__choice(const char *choices, const char *word)
{
	size_t length = strlen(word);

	for (int i = 0; *choices; i++) {
		size_t next = strcspn(choices, " ");

		if (next == length && !memcmp(choices, word, length))
			return i;
		choices += next;
		choices += strspn(choices, " ");
	}
	return -1;
}

/* "epochs" at the top level: the key of another section that is called so. */
static const char *run_key_elsewhere(const char *word)
{
	const char *last[RUN_KEYS_MOST], *near;
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; i < count; i++)
		last[i] = run__key_last(&keys[i]);
	near = str_nearest(word, last, (size_t)count);
	for (int i = 0; near && i < count; i++)
		if (last[i] == near)
			return keys[i].path;
	return NULL;
}

enum status run__key_unknown(const struct json_at *at, const struct run_key *section,
			     struct err *err)
{
	const char *names[RUN_KEYS_MOST], *near;
	char text[ERR_TEXT_SIZE];
	size_t within = 0;
	int count;
	const struct run_key *keys = run_file_keys(&count);

	if (run__renamed_text(at->key, text, sizeof(text)))
		return json_fail(at, err, "%s", text);
	for (int i = 0; i < count; i++)
		if (run__key_within(&keys[i], section))
			names[within++] = run__key_last(&keys[i]);

	near = str_nearest(at->key, names, within);
	if (!near)
		near = run_key_elsewhere(at->key);
	if (near)
		return json_fail(at, err, "unknown key (did you mean \"%s\"?)", near);
	return json_fail(at, err, "unknown key (docs/run-file.md lists them)");
}
