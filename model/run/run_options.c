/*
 * The command line of a run: the run file's own flags, and `--key value`.
 *
 * An entry's name is one or several words. The entry applies if all of them are on the command
 * line; a word "--name=VALUE" requires that value. Entries apply in the order in which the file
 * lists them, independent of the command line's order; of a flag used twice, the last use
 * counts.
 *
 * Threading: none.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_words.h"

#define RUN_CHOICE "$choice"

/* A word of a flag's name: "--model-type=Model" of "--no-pipelining --model-type=Model". */
struct run_flag_word {
	char name[RUN_WORD_SIZE];  /* "--model-type" */
	char value[RUN_WORD_SIZE]; /* "Model", or "" */
	bool has_value, last;
};

/* ---- the words of an entry's name ------------------------------------------------------------ */

/* Read the next word of *@rest into *@out and advance; false at the end. Long words are truncated:
 * run_check_words() refuses them. */
static bool run_next_word(const char **rest, struct run_flag_word *out)
{
	const char *word = *rest + strspn(*rest, " ");
	size_t length = strcspn(word, " "), name = strcspn(word, "= ");

	*out = (struct run_flag_word){.has_value = word[name] == '='};
	if (!length)
		return false;
	snprintf(out->name, sizeof(out->name), "%.*s", (int)name, word);
	if (out->has_value)
		snprintf(out->value, sizeof(out->value), "%.*s", (int)(length - name - 1),
			 word + name + 1);
	*rest = word + length;
	out->last = !(*rest)[strspn(*rest, " ")];
	return true;
}

static const cJSON *run_flag_first(const struct run_words *in)
{
	const cJSON *flags = cJSON_GetObjectItemCaseSensitive(in->json, "flags");

	return cJSON_IsObject(flags) ? flags->child : NULL;
}

static const cJSON *run_choices(const cJSON *patch)
{
	return cJSON_GetObjectItemCaseSensitive(patch, RUN_CHOICE);
}

/* What @word, a word of the entry @flag, implies about its flag's argument. */
static enum run_takes run_word_takes(const cJSON *flag, const struct run_flag_word *word)
{
	if (word->has_value)
		return RUN_TAKES_VALUE;
	if (!word->last)
		return RUN_TAKES_NOTHING;
	return run_choices(flag) ? RUN_TAKES_VALUE : run__takes(flag);
}

/* What the flag @name takes according to all entries; false if no entry names it. */
static bool run_flag_takes(const struct run_words *in, const char *name, enum run_takes *out)
{
	bool found = false;

	*out = RUN_TAKES_NOTHING;
	for (const cJSON *flag = run_flag_first(in); flag; flag = flag->next) {
		const char *rest = flag->string;
		struct run_flag_word word;

		while (run_next_word(&rest, &word)) {
			enum run_takes takes = run_word_takes(flag, &word);

			if (strcmp(word.name, name) != 0)
				continue;
			found = true;
			if (takes > *out)
				*out = takes;
		}
	}
	return found;
}

/* List the words of all of the file's flags, with one for each "$choice". The caller frees *@out
 * (mem_free()). */
static enum status run_flag_words(const struct run_words *in, struct run_flag_word **out,
				  int *count, struct err *err)
{
	size_t most = 0;
	int n = 0;

	for (const cJSON *flag = run_flag_first(in); flag; flag = flag->next)
		most += strlen(flag->string) + (size_t)cJSON_GetArraySize(run_choices(flag));
	*count = 0;
	*out = mem_calloc(most, sizeof(**out));
	if (!*out)
		return err_nomem(err);

	for (const cJSON *flag = run_flag_first(in); flag; flag = flag->next) {
		const cJSON *choices = run_choices(flag);
		const char *rest = flag->string;

		while (run_next_word(&rest, &(*out)[n]))
			n++;
		for (const cJSON *item = choices ? choices->child : NULL; item; item = item->next) {
			(*out)[n] = (*out)[n - 1];
			(*out)[n].has_value = true;
			str_copy((*out)[n].value, sizeof((*out)[n].value), item->string);
			n++;
		}
	}
	*count = n;
	return ST_OK;
}

/* ---- checking the file's entries ------------------------------------------------------------- */

/* Check that the keys of a patch are run file keys; values are checked after merging. */
static enum status run_check_patch(const struct json_at *at, const struct run_key *section,
				   struct err *err)
{
	enum status status = ST_OK;
	struct json_at below = {0};

	while (status == ST_OK && json_next(at, &below)) {
		char path[RUN_WORD_SIZE];
		const struct run_key *key;

		snprintf(path, sizeof(path), "%s%s%s", section ? section->path : "",
			 section ? "." : "", below.key);
		key = run__key_find(path);
		if (!key)
			return run__key_unknown(&below, section, err);
		if (key->kind == RUN_KEY_FLAGS)
			return json_fail(&below, err, "a flag cannot change the flags");
		if (key->kind == RUN_KEY_SECTION && cJSON_IsObject(below.node))
			status = run_check_patch(&below, key, err);
	}
	return status;
}

/* Whether siblings use both "$value" and "$values", which has no meaning. */
static bool run_takes_both(const cJSON *patch)
{
	bool one = false, many = false;

	for (const cJSON *item = patch->child; item; item = item->next) {
		enum run_takes takes = run__takes(item);

		one |= takes == RUN_TAKES_VALUE;
		many |= takes == RUN_TAKES_VALUES;
		if (run_takes_both(item))
			return true;
	}
	return one && many;
}

/* Check the words of the entry's name. */
static enum status run_check_words(const struct run_words *in, const struct json_at *at,
				   struct err *err)
{
	const char *rest = at->key;
	struct run_flag_word word, other;
	int count = 0;

	if (strlen(at->key) >= RUN_WORD_SIZE)
		return json_fail(at, err, "a flag's name is too long");
	for (; run_next_word(&rest, &word); count++) {
		enum run_takes here = run_word_takes(at->node, &word), all;
		const char *again = rest;

		if (!str_starts_with(word.name, "--") || !word.name[2] ||
		    (word.has_value && !word.value[0]))
			return json_fail(
				at, err,
				"a flag's name is \"--\" and a word, or several such, each "
				"with \"=VALUE\" or without");
		if (run__key_over(word.name + 2))
			return json_fail(at, err,
					 "%s is a key of the run file already; take another name",
					 word.name);
		while (run_next_word(&again, &other))
			if (!strcmp(other.name, word.name))
				return json_fail(at, err, "names %s twice", word.name);
		run_flag_takes(in, word.name, &all);
		if (here == RUN_TAKES_VALUE && all == RUN_TAKES_VALUES)
			return json_fail(at, err, "%s takes one value here and a list elsewhere",
					 word.name);
		if (word.last && word.has_value &&
		    (run_choices(at->node) || run__takes(at->node) != RUN_TAKES_NOTHING))
			return json_fail(at, err, "%s has its value already", word.name);
	}
	return count ? ST_OK : json_fail(at, err, "a flag's name is \"--\" and a word");
}

static enum status run_check_choices(const struct json_at *at, const struct json_at *choices,
				     struct err *err)
{
	enum status status = json_object(choices, err);
	struct json_at choice = {0};

	if (status == ST_OK && json_count(at) != 1)
		return json_fail(at, err, "\"" RUN_CHOICE "\" must stand alone");
	if (status == ST_OK && !json_count(choices))
		return json_fail(choices, err, "has no value to choose");
	while (status == ST_OK && json_next(choices, &choice)) {
		status = json_object(&choice, err);
		if (status == ST_OK)
			status = run_check_patch(&choice, NULL, err);
	}
	return status;
}

static enum status run_check_flag(const struct run_words *in, const struct json_at *at,
				  struct err *err)
{
	enum status status = json_object(at, err);
	struct json_at choices;

	if (status == ST_OK)
		status = run_check_words(in, at, err);
	if (status != ST_OK)
		return status;
	if (run_takes_both(at->node))
		return json_fail(at, err, "holds both \"$value\" and \"$values\"");
	if (json_child(at, RUN_CHOICE, &choices))
		return run_check_choices(at, &choices, err);
	return run_check_patch(at, NULL, err);
}

/* ---- the command line's flags ---------------------------------------------------------------- */

/* Find the last use of the flag @name on the command line. */
static enum status run_find_last_use(const struct run_words *in, const char *name, bool *used,
				     struct run_option *out, struct err *err)
{
	enum status status = ST_OK;
	struct run_option option;

	*used = false;
	for (int at = 0; at < in->argc && status == ST_OK;) {
		status = run__next_option(in, &at, &option, err);
		if (status == ST_OK && !strcmp(option.name, name)) {
			*out = option;
			*used = true;
		}
	}
	return status;
}

/* Whether any argument of @name is valid; false if entries name its values. */
static bool run_takes_anything(const struct run_words *in, const char *name)
{
	bool anything = false;

	for (const cJSON *flag = run_flag_first(in); flag; flag = flag->next) {
		const char *rest = flag->string;
		struct run_flag_word word;

		while (run_next_word(&rest, &word)) {
			if (strcmp(word.name, name) != 0 || !word.last || word.has_value)
				continue;
			if (run_choices(flag))
				return false;
			anything |= run__takes(flag) != RUN_TAKES_NOTHING;
		}
	}
	return anything;
}

/* Append @value to @values unless it is already there; returns the new count. */
static size_t run_add_value(const char **values, size_t count, const char *value)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(values[i], value))
			return count;
	values[count] = value;
	return count + 1;
}

/* Check that @option's argument is one of the values that entries name. */
static enum status run_check_choice(const struct run_words *in, const struct run_option *option,
				    struct err *err)
{
	const char *given = run__option_word(in, option, 0), **values;
	struct run_flag_word *words;
	enum status status;
	size_t known;
	int count;

	if (run_takes_anything(in, option->name))
		return ST_OK;
	status = run_flag_words(in, &words, &count, err);
	if (status != ST_OK)
		return status;
	/* One extra, for the argument itself. */
	values = mem_calloc((size_t)count + 1, sizeof(*values));
	if (values) {
		/* The values of the flag option->name that entries name, as pointers into
		 * words. */
		known = 0;
		for (int i = 0; i < count; i++)
			if (words[i].has_value && !strcmp(words[i].name, option->name))
				known = run_add_value(values, known, words[i].value);

		if (run_add_value(values, known, given) != known) {
			const char *near = str_nearest(given, values, known);
			struct str list = {0};

			for (size_t i = 0; i < known && !near; i++)
				str_addf(&list, "%s%s", i ? " " : "", values[i]);
			if (near)
				err_set(err, ST_INVALID,
					"%s: unknown value \"%s\" (did you mean \"%s\"?)",
					option->name, given, near);
			else
				err_set(err, ST_INVALID, "%s: unknown value \"%s\" (there is: %s)",
					option->name, given, str_peek(&list));
			str_free(&list);
			status = ST_INVALID;
		}
	} else {
		status = err_nomem(err);
	}
	mem_free(values);
	mem_free(words);
	return status;
}

/* Check that every flag on the command line has the arguments that it takes. */
static enum status run_check_uses(const struct run_words *in, struct err *err)
{
	enum status status = ST_OK;

	for (int at = 0; at < in->argc && status == ST_OK;) {
		struct run_option option;
		enum run_takes takes;

		status = run__next_option(in, &at, &option, err);
		if (status != ST_OK || !run_flag_takes(in, option.name, &takes))
			continue;
		status = run__option_check(in, &option, takes, err);
		if (status == ST_OK && takes == RUN_TAKES_VALUE)
			status = run_check_choice(in, &option, err);
	}
	return status;
}

/* Whether all words of the entry @flag are given. @missing receives the first that is not, or "" if
 * only a value differs; @option the last word's use. */
static enum status run_flag_applies(const struct run_words *in, const cJSON *flag, bool *applies,
				    struct run_option *option, char missing[RUN_WORD_SIZE],
				    struct err *err)
{
	const char *rest = flag->string;
	struct run_flag_word word;

	*applies = false;
	missing[0] = '\0';
	while (run_next_word(&rest, &word)) {
		bool used;
		enum status status = run_find_last_use(in, word.name, &used, option, err);

		if (status != ST_OK)
			return status;
		if (!used) {
			str_copy(missing, RUN_WORD_SIZE, word.name);
			return ST_OK;
		}
		if (word.has_value && strcmp(run__option_word(in, option, 0), word.value) != 0)
			return ST_OK;
	}
	*applies = true;
	return ST_OK;
}

static bool run_flag_names(const cJSON *flag, const char *name)
{
	const char *rest = flag->string;
	struct run_flag_word word;

	while (run_next_word(&rest, &word))
		if (!strcmp(word.name, name))
			return true;
	return false;
}

/* Note for each flag without effect which other flag the nearest entry needs. */
static enum status run_note_unused(const struct run_words *in, struct str *notes, struct err *err)
{
	char lacks[RUN_WORD_SIZE], missing[RUN_WORD_SIZE];
	struct run_option given, last = {.name = ""};
	enum status status = ST_OK;

	for (int at = 0; at < in->argc && status == ST_OK;) {
		bool vain = true;

		lacks[0] = '\0';
		status = run__next_option(in, &at, &given, err);
		for (const cJSON *flag = run_flag_first(in); flag && status == ST_OK && vain;
		     flag = flag->next) {
			bool applies;

			if (!run_flag_names(flag, given.name))
				continue;
			status = run_flag_applies(in, flag, &applies, &last, missing, err);
			vain = !applies && missing[0];
			if (vain && !lacks[0])
				str_copy(lacks, sizeof(lacks), missing);
		}
		if (status == ST_OK && vain && lacks[0])
			str_addf(notes, "%s has no effect without %s.\n", given.name, lacks);
	}
	return status;
}

/* Apply the flags of the command line. @notes gets a line for each that has no effect. */
static enum status run_flags_patch(const struct run_words *in, struct str *notes, struct err *err)
{
	enum status status = run_check_uses(in, err);

	for (const cJSON *flag = run_flag_first(in); flag && status == ST_OK; flag = flag->next) {
		const cJSON *patch = flag, *choices = run_choices(flag);
		struct run_option option = {.name = ""};
		char missing[RUN_WORD_SIZE];
		bool applies;

		status = run_flag_applies(in, flag, &applies, &option, missing, err);
		if (status != ST_OK || !applies)
			continue;
		if (choices)
			patch = cJSON_GetObjectItemCaseSensitive(choices,
								 run__option_word(in, &option, 0));
		if (patch)
			status = run__patch(in, patch, &option, err);
	}
	return status == ST_OK ? run_note_unused(in, notes, err) : status;
}

/* ---- what is neither a flag nor a key -------------------------------------------------------- */

/* The flag or key among @names that @word ("epoch") is nearest to; otherwise the key that ends
 * in it: data.batch_size for "batch-size". */
static const char *run_nearest_option(const char *word, const char *const *names, size_t count)
{
	const char *near = str_nearest(word, names, count);
	char key[RUN_WORD_SIZE];
	int key_count;
	const struct run_key *keys = run_file_keys(&key_count);

	str_copy(key, sizeof(key), word);
	for (char *dash = key; (dash = strchr(dash, '-'));)
		*dash = '_';
	for (int i = 0; !near && i < key_count; i++)
		if (keys[i].kind != RUN_KEY_FLAGS && !strcmp(run__key_last(&keys[i]), key))
			near = keys[i].path;
	return near;
}

/* Report "--gradient_accumulation_count", "--pipeline.repeat_count": known names, but no
 * options. */
static bool run_renamed_option(const char *name, struct err *err)
{
	const char *dot = strrchr(name, '.');
	char text[ERR_TEXT_SIZE];

	if (!run__renamed_text(dot ? dot + 1 : name + 2, text, sizeof(text)))
		return false;
	err_set(err, ST_INVALID, "%s %s", name, text);
	return true;
}

/* Report a word that is neither a flag nor a key, with the nearest of both. */
static enum status run_unknown_option(const struct run_words *in, const char *name, struct err *err)
{
	const char **names, *near;
	struct run_flag_word *words;
	int key_count, flag_count;
	const struct run_key *keys = run_file_keys(&key_count);
	enum status status = run_flag_words(in, &words, &flag_count, err);
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

/* ---- the whole command line ------------------------------------------------------------------ */

enum status run__options_flags(cJSON *json, const char *file, int argc, char **argv,
			       struct str *notes, struct err *err)
{
	const struct run_words in = {.json = json, .file = file, .argv = argv, .argc = argc};
	struct json_at root = json_root(file, json), flags, flag = {0};
	enum status status = ST_OK;

	if (json_child(&root, "flags", &flags) && !json_is_null(&flags)) {
		status = json_object(&flags, err);
		while (status == ST_OK && json_next(&flags, &flag))
			status = run_check_flag(&in, &flag, err);
	}
	return status == ST_OK ? run_flags_patch(&in, notes, err) : status;
}

enum status run__options_keys(cJSON *json, const char *file, int argc, char **argv, struct err *err)
{
	const struct run_words in = {.json = json, .file = file, .argv = argv, .argc = argc};
	enum status status = ST_OK;

	/* The flags of the file have been applied: here are the other options. */
	for (int at = 0; at < in.argc && status == ST_OK;) {
		const struct run_key *key;
		struct run_option option;
		enum run_takes takes;

		status = run__next_option(&in, &at, &option, err);
		if (status != ST_OK || run_flag_takes(&in, option.name, &takes))
			continue;
		key = run__key_over(option.name + 2);
		if (!key && run_renamed_option(option.name, err))
			return ST_INVALID;
		if (!key || key->kind == RUN_KEY_FLAGS)
			return run_unknown_option(&in, option.name, err);
		status = run__override(&in, key, &option, err);
	}
	return status;
}
