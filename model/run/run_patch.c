/*
 * Words of the command line as JSON, and merging them into the run file's tree.
 *
 * Threading: none. Ownership: the tree that is patched stays the caller's; recursion follows the
 * nesting of JSON texts, which the parser bounds.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_options.h"

/* ---- what a patch says ----------------------------------------------------------------------- */

enum run_takes run__takes(const cJSON *patch)
{
	enum run_takes takes = RUN_TAKES_NOTHING;

	if (cJSON_IsString(patch)) {
		if (!strcmp(patch->valuestring, "$value"))
			return RUN_TAKES_VALUE;
		if (!strcmp(patch->valuestring, "$values"))
			return RUN_TAKES_VALUES;
	}
	for (const cJSON *item = patch->child; item; item = item->next) {
		enum run_takes below = run__takes(item);

		if (below > takes)
			takes = below;
	}
	return takes;
}

/* ---- words to JSON --------------------------------------------------------------------------- */

static enum status run_text_node(cJSON **out, const char *word, struct err *err)
{
	*out = cJSON_CreateString(word);
	return *out ? ST_OK : err_nomem(err);
}

/* JSON where @word parses as such; a text otherwise, unless it is clearly meant to be JSON. */
static enum status run_json_or_text(cJSON **out, const char *name, const char *word,
				    struct err *err)
{
	enum status status = json_parse(out, word, strlen(word), name, err);

	if (status == ST_OK || status == ST_NOMEM || *word == '{' || *word == '[')
		return status;
	return run_text_node(out, word, err);
}

/* Where a word stands for itself; a list of things to be read may hold objects too. */
static bool run_is_texts(const struct run_key *key, const char *word)
{
	return key && (key->kind == RUN_KEY_TEXTS || key->kind == RUN_KEY_FILTERS ||
		       (key->kind == RUN_KEY_LIST && *word != '{'));
}

/* What @word means as the value of @key: texts need no quotes, and a list of one no brackets. */
enum status run__word(cJSON **out, const struct run_key *key, bool item, const char *name,
		      const char *word, struct err *err)
{
	bool text = key && (key->kind == RUN_KEY_TEXT || key->kind == RUN_KEY_CHOICE);
	enum status status;
	cJSON *list;

	if (item && run_is_texts(key, word))
		return run_text_node(out, word, err);
	if (text && *word != '"' && strcmp(word, "null") != 0)
		return run_text_node(out, word, err);
	if (!run_is_texts(key, word) || *word == '[' || !strcmp(word, "null"))
		return run_json_or_text(out, name, word, err);

	status = run_text_node(out, word, err);
	if (status != ST_OK)
		return status;
	list = cJSON_CreateArray();
	if (!list) {
		cJSON_Delete(*out);
		*out = NULL;
		return err_nomem(err);
	}
	cJSON_AddItemToArray(list, *out);
	*out = list;
	return ST_OK;
}

static enum status run_word_list(cJSON **out, const struct run_words *in,
				 const struct run_option *option, const struct run_key *key,
				 struct err *err)
{
	cJSON *list = cJSON_CreateArray();
	enum status status = list ? ST_OK : err_nomem(err);

	for (int i = 0; i < run__option_count(option) && status == ST_OK; i++) {
		const char *word = run__option_word(in, option, i);
		cJSON *node;

		status = run__word(&node, key, true, option->name, word, err);
		if (status == ST_OK)
			cJSON_AddItemToArray(list, node);
	}
	if (status != ST_OK) {
		cJSON_Delete(list);
		list = NULL;
	}
	*out = list;
	return status;
}

/* ---- patching -------------------------------------------------------------------------------- */

/* Put @value (handed over, on failure too) where the object @at has @key. */
enum status run__put(cJSON *at, const char *key, cJSON *value, struct err *err)
{
	cJSON *old = cJSON_GetObjectItemCaseSensitive(at, key);
	char *name;

	if (!old) {
		if (cJSON_AddItemToObject(at, key, value))
			return ST_OK;
		cJSON_Delete(value);
		return err_nomem(err);
	}

	/*
	 * cJSON's own replacing by name does not notice (in 1.7.15) that it got no memory for it.
	 */
	name = mem_strdup(key);
	if (!name) {
		cJSON_Delete(value);
		return err_nomem(err);
	}
	cJSON_free(value->string);
	value->string = name;
	cJSON_ReplaceItemViaPointer(at, old, value);
	return ST_OK;
}

static enum status run_merge(cJSON *target, const cJSON *patch, struct err *err)
{
	enum status status = ST_OK;

	for (const cJSON *item = patch->child; item && status == ST_OK; item = item->next) {
		cJSON *old = cJSON_GetObjectItemCaseSensitive(target, item->string), *copy;

		if (cJSON_IsObject(item) && cJSON_IsObject(old)) {
			status = run_merge(old, item, err);
			continue;
		}
		copy = cJSON_Duplicate(item, true);
		if (!copy)
			return err_nomem(err);
		status = run__put(target, item->string, copy, err);
	}
	return status;
}

/* A flag on its way into the tree. */
struct run_fill {
	const struct run_words *in;
	const struct run_option *option;
	struct err *err;
};

static enum status run_fill_value(const struct run_fill *fill, const struct run_key *key, bool item,
				  const char *sign, cJSON **out)
{
	if (!strcmp(sign, "$values"))
		return run_word_list(out, fill->in, fill->option, key, fill->err);
	return run__word(out, key, item, fill->option->name,
			 run__option_word(fill->in, fill->option, 0), fill->err);
}

/* Replace the signs below @node, whose key is governed by @key; @path is that of @node. */
static enum status run_fill(const struct run_fill *fill, cJSON *node, const char *path,
			    const struct run_key *key)
{
	enum status status = ST_OK;

	for (cJSON *item = node->child, *next; item && status == ST_OK; item = next) {
		const struct run_key *below = key;
		char place[RUN_WORD_SIZE] = "";
		cJSON *value;

		next = item->next;
		/* Below a row that is no section its kind holds. */
		if (cJSON_IsObject(node) && (!key || key->kind == RUN_KEY_SECTION)) {
			str_copy(place, sizeof(place), path);
			if (*path)
				strncat(place, ".", sizeof(place) - strlen(place) - 1);
			strncat(place, item->string, sizeof(place) - strlen(place) - 1);
			below = run__key_find(place);
		}
		if (run__takes(item) == RUN_TAKES_NOTHING)
			continue;
		if (!cJSON_IsString(item)) {
			status = run_fill(fill, item, place, below);
			continue;
		}

		/* Inside of what a list holds, nothing is a list by the table. */
		if (cJSON_IsObject(node) && below && below == key && key->kind == RUN_KEY_LIST)
			below = NULL;
		status =
			run_fill_value(fill, below, cJSON_IsArray(node), item->valuestring, &value);
		if (status != ST_OK)
			break;
		if (cJSON_IsArray(node))
			cJSON_ReplaceItemViaPointer(node, item, value);
		else
			status = run__put(node, item->string, value, fill->err);
	}
	return status;
}

enum status run__patch(const struct run_words *in, const cJSON *patch,
		       const struct run_option *option, struct err *err)
{
	const struct run_fill fill = {.in = in, .option = option, .err = err};
	cJSON *copy = cJSON_Duplicate(patch, true);
	enum status status;

	if (!copy)
		return err_nomem(err);
	status = run_fill(&fill, copy, "", NULL);
	if (status == ST_OK)
		status = run_merge(in->json, copy, err);
	cJSON_Delete(copy);
	return status;
}
