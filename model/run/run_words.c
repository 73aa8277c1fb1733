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

bool run__next_option(const struct run_words *in, int *at, struct run_option *out)
{
	const char *word;
	size_t length;

	if (err_stuck(in->err) || *at >= in->argc)
		return false;
	word = in->argv[*at];
	length = strcspn(word, "=");
	*out = (struct run_option){.at = *at + 1};
	if (!str_starts_with(word, "--") || !word[2])
		err_set(in->err, ST_INVALID,
			"unexpected word \"%s\" (options are written --key value)", word);
	else if (length >= sizeof(out->name))
		err_set(in->err, ST_INVALID, "the option %.40s... is too long", word);
	if (err_stuck(in->err))
		return false;

	memcpy(out->name, word, length);
	if (word[length])
		out->attached = word + length + 1;
	for (++*at; *at < in->argc && !str_starts_with(in->argv[*at], "--"); ++*at)
		out->count++;
	return true;
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
			      enum run_takes takes)
{
	static const int most[] = {0, 1, INT32_MAX};
	struct err *err = in->err;

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

/* The functions that return a node return NULL on failure. */

static cJSON *run_text_node(const char *word, struct err *err)
{
	cJSON *node = cJSON_CreateString(word);

	if (!node)
		err_nomem(err);
	return node;
}

/* Parse @word as JSON; if that fails, it is a text, unless it begins like a JSON list or object. */
static cJSON *run_json_or_text(const char *name, const char *word, struct err *err)
{
	struct err why;
	cJSON *node;

	if (json_parse(&node, word, strlen(word), name, &why) == ST_OK)
		return node;
	if (why.status != ST_NOMEM && *word != '{' && *word != '[')
		return run_text_node(word, err);
	err_set(err, why.status, "%s", why.text);
	return NULL;
}

/* Whether @word is a text by its key's kind; items of a list may also be objects. */
static bool run_is_texts(const struct run_key *key, const char *word)
{
	return key && (key->kind == RUN_KEY_TEXTS || key->kind == RUN_KEY_FILTERS ||
		       ((key->kind == RUN_KEY_LIST || key->kind == RUN_KEY_LISTS) && *word != '{'));
}

static cJSON *run_parse_word(const struct run_key *key, bool item, const char *name,
			     const char *word, struct err *err)
{
	bool text = key && (key->kind == RUN_KEY_TEXT || key->kind == RUN_KEY_CHOICE);
	cJSON *node, *list;

	if (item && run_is_texts(key, word))
		return run_text_node(word, err);
	if (text && *word != '"' && strcmp(word, "null") != 0)
		return run_text_node(word, err);
	if (!run_is_texts(key, word) || *word == '[' || !strcmp(word, "null"))
		return run_json_or_text(name, word, err);

	node = run_text_node(word, err);
	list = cJSON_CreateArray();
	if (node && list && cJSON_AddItemToArray(list, node))
		return list;
	cJSON_Delete(node);
	cJSON_Delete(list);
	err_nomem(err);
	return NULL;
}

/* ---- patching -------------------------------------------------------------------------------- */

/* Expand Keras's short form: "sgd" becomes {"class_name": "sgd"}, so that a config can be added. */
static void run_expand_name(cJSON *node, struct err *err)
{
	cJSON *name = cJSON_CreateString(node->valuestring);

	if (!name) {
		err_nomem(err);
		return;
	}
	cJSON_free(node->valuestring);
	node->valuestring = NULL;
	node->type = cJSON_Object | (node->type & ~0xff);
	if (cJSON_AddItemToObject(node, "class_name", name))
		return;
	cJSON_Delete(name);
	err_nomem(err);
}

/* Takes ownership of @value; NULL: out of memory. */
static void run_set_member(cJSON *at, const char *key, cJSON *value, struct err *err)
{
	cJSON *old = cJSON_GetObjectItemCaseSensitive(at, key);
	char *name;

	if (value && !old && cJSON_AddItemToObject(at, key, value))
		return;

	/* cJSON's replacement by name does not notice (in 1.7.15) that it ran out of memory. */
	name = value && old ? mem_strdup(key) : NULL;
	if (!name) {
		cJSON_Delete(value);
		err_nomem(err);
		return;
	}
	cJSON_free(value->string);
	value->string = name;
	cJSON_ReplaceItemViaPointer(at, old, value);
}

static void run_merge(cJSON *target, const cJSON *patch, struct err *err)
{
	for (const cJSON *item = patch->child; item && !err_stuck(err); item = item->next) {
		cJSON *old = cJSON_GetObjectItemCaseSensitive(target, item->string);

		if (cJSON_IsString(old) && cJSON_GetObjectItemCaseSensitive(item, "config") &&
		    !cJSON_HasObjectItem(item, "class_name"))
			run_expand_name(old, err);
		if (cJSON_IsObject(item) && cJSON_IsObject(old))
			run_merge(old, item, err);
		else
			run_set_member(target, item->string, cJSON_Duplicate(item, true), err);
	}
}

/* State while the signs of a flag's patch are replaced. */
struct run_substitution {
	const struct run_words *in;
	const struct run_option *option;
};

static cJSON *run_substitute_value(const struct run_substitution *fill, const struct run_key *key,
				   bool item, const char *sign)
{
	cJSON *list, *node;

	if (strcmp(sign, "$values") != 0)
		return run_parse_word(key, item, fill->option->name,
				      run__option_word(fill->in, fill->option, 0), fill->in->err);
	list = cJSON_CreateArray();
	if (!list)
		err_nomem(fill->in->err);
	for (int i = 0; i < run_option_count(fill->option) && !err_stuck(fill->in->err); i++) {
		node = run_parse_word(key, true, fill->option->name,
				      run__option_word(fill->in, fill->option, i), fill->in->err);
		cJSON_AddItemToArray(list, node);
	}
	if (!err_stuck(fill->in->err))
		return list;
	cJSON_Delete(list);
	return NULL;
}

/* Replace "$value" and "$values" below @node, whose path is @path and whose governing row is
 * @key. */
static void run_substitute_words(const struct run_substitution *fill, cJSON *node, const char *path,
				 const struct run_key *key)
{
	for (cJSON *item = node->child, *next; item && !err_stuck(fill->in->err); item = next) {
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
			run_substitute_words(fill, item, place, below);
			continue;
		}

		/* The members of a list's objects are not governed by the list's row. */
		if (cJSON_IsObject(node) && below && below == key &&
		    (key->kind == RUN_KEY_LIST || key->kind == RUN_KEY_LISTS))
			below = NULL;
		value = run_substitute_value(fill, below, cJSON_IsArray(node), item->valuestring);
		if (value && cJSON_IsArray(node))
			cJSON_ReplaceItemViaPointer(node, item, value);
		else if (value)
			run_set_member(node, item->string, value, fill->in->err);
	}
}

void run__patch(const struct run_words *in, const cJSON *patch, const struct run_option *option)
{
	const struct run_substitution fill = {.in = in, .option = option};
	cJSON *copy = cJSON_Duplicate(patch, true);

	if (!copy) {
		err_nomem(in->err);
		return;
	}
	run_substitute_words(&fill, copy, "", NULL);
	run_merge(in->json, copy, in->err);
	cJSON_Delete(copy);
}

/* ---- `--key value` --------------------------------------------------------------------------- */

/* Return the child @name of @at; an absent or null child becomes an object. */
static cJSON *run_descend(cJSON *at, const char *name, const struct run_option *option,
			  struct err *err)
{
	cJSON *next = cJSON_GetObjectItemCaseSensitive(at, name);
	long long index;

	if (cJSON_IsArray(at)) {
		int count = cJSON_GetArraySize(at);

		if (str_to_int(name, &index) && index >= 0 && index < count)
			return cJSON_GetArrayItem(at, (int)index);
		err_set(err, ST_INVALID, "%s: \"%s\" is not an index of a list of %d", option->name,
			name, count);
	} else if (!cJSON_IsObject(at)) {
		err_set(err, ST_INVALID, "%s: there is no \"%s\" in a plain value", option->name,
			name);
	} else if (!next || cJSON_IsNull(next)) {
		next = cJSON_CreateObject();
		run_set_member(at, name, next, err);
	}
	return err_stuck(err) ? NULL : next;
}

/* Takes ownership of @value. */
static void run_set_path(cJSON *json, char *path, cJSON *value, const struct run_option *option,
			 struct err *err)
{
	/* Here an optimizer, a loss or a metric may be given by its name only. */
	const bool named = str_starts_with(path, "compile.") || str_starts_with(path, "evaluate.");
	char *name = path, *dot;
	long long index;

	for (;; name = dot + 1) {
		dot = strchr(name, '.');
		if (dot)
			*dot = '\0';
		if (named && cJSON_IsString(json) && !strcmp(name, "config"))
			run_expand_name(json, err);
		if (dot && !err_stuck(err))
			json = run_descend(json, name, option, err);
		if (!dot || err_stuck(err))
			break;
	}
	/* The last name of the path takes over the value. */
	if (!err_stuck(err) && cJSON_IsObject(json)) {
		run_set_member(json, name, value, err);
		return;
	}
	if (!err_stuck(err) && cJSON_IsArray(json) && str_to_int(name, &index) && index >= 0 &&
	    index < cJSON_GetArraySize(json) && cJSON_ReplaceItemInArray(json, (int)index, value))
		return;
	cJSON_Delete(value);
	if (!err_stuck(err))
		err_set(err, ST_INVALID, "%s: there is no \"%s\" to set", option->name, name);
}

void run__override(const struct run_words *in, const struct run_key *key,
		   const struct run_option *option)
{
	char path[RUN_WORD_SIZE];
	cJSON *value;

	if (run__option_check(in, option, RUN_TAKES_VALUE) != ST_OK)
		return;
	str_copy(path, sizeof(path), option->name + 2);
	value = run_parse_word(!strcmp(key->path, path) ? key : NULL, false, option->name,
			       run__option_word(in, option, 0), in->err);
	if (value)
		run_set_path(in->json, path, value, option, in->err);
}
