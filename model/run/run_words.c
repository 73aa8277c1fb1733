/*
 * The words of a run's command line: as options, as JSON, and merged into the run file's tree.
 *
 * Threading: none. Ownership: the caller owns the tree that is patched. Recursion follows the
 * nesting of JSON texts, which the parser bounds.
 */
#include "model/run/run_words.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* ---- options --------------------------------------------------------------------------------- */

enum status run__next_option(const struct run_words *in, int *at, struct run_option *out,
			     struct err *err)
{
	const char *word = in->argv[*at];
	size_t length = strcspn(word, "=");

	*out = (struct run_option){.at = *at + 1};
	if (!str_starts_with(word, "--") || !word[2])
		return err_set(err, ST_INVALID,
			       "unexpected word \"%s\" (options are written --key value)", word);
	if (length >= sizeof(out->name))
		return err_set(err, ST_INVALID, "the option %.40s... is too long", word);

	memcpy(out->name, word, length);
	if (word[length])
		out->attached = word + length + 1;
	for (++*at; *at < in->argc && !str_starts_with(in->argv[*at], "--"); ++*at)
		out->count++;
	return ST_OK;
}

static int run_option_count(const struct run_option *option)
{
	return option->attached ? 1 : option->count;
}

const char *run__option_word(const struct run_words *in, const struct run_option *option, int index)
{
	if (index >= run_option_count(option))
		return NULL;
	return option->attached ? option->attached : in->argv[option->at + index];
}

enum status run__option_check(const struct run_words *in, const struct run_option *option,
			      enum run_takes takes, struct err *err)
{
	static const int most[] = {0, 1, INT32_MAX};

	if (option->attached) {
		/* Words after "--name=value" belong to no option. */
		if (option->count > 0)
			return err_set(err, ST_INVALID, "%s: unexpected word \"%s\" after it",
				       option->name, in->argv[option->at]);
		if (takes == RUN_TAKES_NOTHING)
			return err_set(err, ST_INVALID, "%s takes no value", option->name);
		return ST_OK;
	}
	if (takes != RUN_TAKES_NOTHING && !option->count)
		return err_set(err, ST_INVALID, "%s needs a value", option->name);
	if (option->count > most[takes])
		return err_set(err, ST_INVALID, "%s takes %s: unexpected word \"%s\"", option->name,
			       takes == RUN_TAKES_NOTHING ? "no value" : "one value",
			       in->argv[option->at + most[takes]]);
	return ST_OK;
}

/* ---- signs in a patch ------------------------------------------------------------------------ */

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

/* Parse @word as JSON; if that fails, it is a text, unless it begins like a JSON list or object. */
static enum status run_json_or_text(cJSON **out, const char *name, const char *word,
				    struct err *err)
{
	struct err why;
	enum status status = json_parse(out, word, strlen(word), name, &why);

	if (status == ST_OK)
		return status;
	if (status == ST_NOMEM || *word == '{' || *word == '[')
		return err_set(err, status, "%s", why.text);
	return run_text_node(out, word, err);
}

/* Whether @word is a text by its key's kind; items of a list may also be objects. */
static bool run_is_texts(const struct run_key *key, const char *word)
{
	return key && (key->kind == RUN_KEY_TEXTS || key->kind == RUN_KEY_FILTERS ||
		       ((key->kind == RUN_KEY_LIST || key->kind == RUN_KEY_LISTS) && *word != '{'));
}

static enum status run_parse_word(cJSON **out, const struct run_key *key, bool item,
				  const char *name, const char *word, struct err *err)
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

/* ---- patching -------------------------------------------------------------------------------- */

/* Expand Keras's short form: "sgd" becomes {"class_name": "sgd"}, so that a config can be added. */
static enum status run_expand_name(cJSON *node, struct err *err)
{
	cJSON *name = cJSON_CreateString(node->valuestring);

	if (!name)
		return err_nomem(err);
	cJSON_free(node->valuestring);
	node->valuestring = NULL;
	node->type = cJSON_Object | (node->type & ~0xff);
	if (cJSON_AddItemToObject(node, "class_name", name))
		return ST_OK;
	cJSON_Delete(name);
	return err_nomem(err);
}

static enum status run_set_member(cJSON *at, const char *key, cJSON *value, struct err *err)
{
	cJSON *old = cJSON_GetObjectItemCaseSensitive(at, key);
	char *name;

	if (!old) {
		if (cJSON_AddItemToObject(at, key, value))
			return ST_OK;
		cJSON_Delete(value);
		return err_nomem(err);
	}

	/* cJSON's replacement by name does not notice (in 1.7.15) that it ran out of memory. */
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

		if (cJSON_IsString(old) && cJSON_GetObjectItemCaseSensitive(item, "config") &&
		    !cJSON_HasObjectItem(item, "class_name"))
			status = run_expand_name(old, err);
		if (cJSON_IsObject(item) && cJSON_IsObject(old)) {
			if (status == ST_OK)
				status = run_merge(old, item, err);
			continue;
		}
		copy = cJSON_Duplicate(item, true);
		if (!copy)
			return err_nomem(err);
		status = run_set_member(target, item->string, copy, err);
	}
	return status;
}

/* State while the signs of a flag's patch are replaced. */
struct run_substitution {
	const struct run_words *in;
	const struct run_option *option;
	struct err *err;
};

static enum status run_substitute_value(const struct run_substitution *fill,
					const struct run_key *key, bool item, const char *sign,
					cJSON **out)
{
	if (!strcmp(sign, "$values")) {
		cJSON *list = cJSON_CreateArray();
		enum status status = list ? ST_OK : err_nomem(fill->err);

		for (int i = 0; i < run_option_count(fill->option) && status == ST_OK; i++) {
			const char *word = run__option_word(fill->in, fill->option, i);
			cJSON *node;

			status = run_parse_word(&node, key, true, fill->option->name, word,
						fill->err);
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
	return run_parse_word(out, key, item, fill->option->name,
			      run__option_word(fill->in, fill->option, 0), fill->err);
}

/* Replace "$value" and "$values" below @node, whose path is @path and whose governing row is
 * @key. */
static enum status run_substitute_words(const struct run_substitution *fill, cJSON *node,
					const char *path, const struct run_key *key)
{
	enum status status = ST_OK;

	for (cJSON *item = node->child, *next; item && status == ST_OK; item = next) {
		const struct run_key *below = key;
		char place[RUN_WORD_SIZE] = "";
		cJSON *value;

		next = item->next;
		/* Below a row that is not a section, that row's kind applies. */
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
			status = run_substitute_words(fill, item, place, below);
			continue;
		}

		/* The members of a list's objects are not governed by the list's row. */
		if (cJSON_IsObject(node) && below && below == key &&
		    (key->kind == RUN_KEY_LIST || key->kind == RUN_KEY_LISTS))
			below = NULL;
		status = run_substitute_value(fill, below, cJSON_IsArray(node), item->valuestring,
					      &value);
		if (status != ST_OK)
			break;
		if (cJSON_IsArray(node))
			cJSON_ReplaceItemViaPointer(node, item, value);
		else
			status = run_set_member(node, item->string, value, fill->err);
	}
	return status;
}

enum status run__patch(const struct run_words *in, const cJSON *patch,
		       const struct run_option *option, struct err *err)
{
	const struct run_substitution fill = {.in = in, .option = option, .err = err};
	cJSON *copy = cJSON_Duplicate(patch, true);
	enum status status;

	if (!copy)
		return err_nomem(err);
	status = run_substitute_words(&fill, copy, "", NULL);
	if (status == ST_OK)
		status = run_merge(in->json, copy, err);
	cJSON_Delete(copy);
	return status;
}

/* ---- `--key value` --------------------------------------------------------------------------- */

/* Descend to the child @name of *@at; an absent or null child becomes an object. */
static enum status run_descend(cJSON **at, const char *name, const struct run_option *option,
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
		status = run_set_member(*at, name, next, err);
		if (status != ST_OK)
			return status;
	}
	*at = next;
	return ST_OK;
}

static enum status run_set_path(cJSON *json, char *path, cJSON *value,
				const struct run_option *option, struct err *err)
{
	/* Here an optimizer, a loss or a metric may be given by its name only. */
	const bool named = str_starts_with(path, "compile.") || str_starts_with(path, "evaluate.");
	enum status status = ST_OK;
	char *name = path, *dot;

	for (;; name = dot + 1) {
		dot = strchr(name, '.');
		if (dot)
			*dot = '\0';
		if (named && cJSON_IsString(json) && !strcmp(name, "config"))
			status = run_expand_name(json, err);
		if (status == ST_OK && dot)
			status = run_descend(&json, name, option, err);
		if (status == ST_OK && !dot) {
			/* The last name of the path takes over the value. */
			long long index;

			if (cJSON_IsObject(json))
				return run_set_member(json, name, value, err);
			if (cJSON_IsArray(json) && str_to_int(name, &index) && index >= 0 &&
			    index < cJSON_GetArraySize(json) &&
			    cJSON_ReplaceItemInArray(json, (int)index, value))
				return ST_OK;
			cJSON_Delete(value);
			return err_set(err, ST_INVALID, "%s: there is no \"%s\" to set",
				       option->name, name);
		}
		if (status != ST_OK) {
			cJSON_Delete(value);
			return status;
		}
	}
}

enum status run__override(const struct run_words *in, const struct run_key *key,
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
	status = run_parse_word(&value, exact ? key : NULL, false, option->name,
				run__option_word(in, option, 0), err);
	if (status != ST_OK)
		return status;
	return run_set_path(in->json, path, value, option, err);
}
