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

/* List the words of all of the file's flags, with one for each "$choice". The caller frees them
 * (mem_free()). NULL: a failure. */
static struct run_flag_word *run_flag_words(const struct run_words *in, int *count)
{
	struct run_flag_word *out;
	size_t most = 0;
	int n = 0;

	for (const cJSON *flag = run_flag_first(in); flag; flag = flag->next)
		most += strlen(flag->string) + (size_t)cJSON_GetArraySize(run_choices(flag));
	out = mem_calloc(most, sizeof(*out));
	if (!out)
		err_nomem(in->err);

	for (const cJSON *flag = run_flag_first(in); flag && out; flag = flag->next) {
		const cJSON *choices = run_choices(flag);
		const char *rest = flag->string;

		while (run_next_word(&rest, &out[n]))
			n++;
		for (const cJSON *item = choices ? choices->child : NULL; item; item = item->next) {
			out[n] = out[n - 1];
			out[n].has_value = true;
			str_copy(out[n].value, sizeof(out[n].value), item->string);
			n++;
		}
	}
	*count = n;
	return out;
}

/* ---- checking the file's entries ------------------------------------------------------------- */

/* Check that the keys of a patch are run file keys; values are checked after merging. */
static void run_check_patch(const struct json_at *at, const struct run_key *section,
			    struct err *err)
{
	struct json_at below = {0};

	while (!err_stuck(err) && json_next(at, &below)) {
		char path[RUN_WORD_SIZE];
		const struct run_key *key;

		snprintf(path, sizeof(path), "%s%s%s", section ? section->path : "",
			 section ? "." : "", below.key);
		key = run__key_find(path);
		if (!key)
			run__key_unknown(&below, section, err);
		else if (key->kind == RUN_KEY_FLAGS)
			json_fail(&below, err, "a flag cannot change the flags");
		else if (key->kind == RUN_KEY_SECTION && cJSON_IsObject(below.node))
			run_check_patch(&below, key, err);
	}
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
static enum status run_check_words(const struct run_words *in, const struct json_at *at)
{
	struct err *err = in->err;
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

static void run_check_choices(const struct json_at *at, const struct json_at *choices,
			      struct err *err)
{
	struct json_at choice = {0};

	if (json_object(choices, err) != ST_OK)
		return;
	if (json_count(at) != 1)
		json_fail(at, err, "\"" RUN_CHOICE "\" must stand alone");
	else if (!json_count(choices))
		json_fail(choices, err, "has no value to choose");
	while (!err_stuck(err) && json_next(choices, &choice))
		if (json_object(&choice, err) == ST_OK)
			run_check_patch(&choice, NULL, err);
}

static void run_check_flag(const struct run_words *in, const struct json_at *at)
{
	struct json_at choices;

	if (json_object(at, in->err) != ST_OK || run_check_words(in, at) != ST_OK)
		return;
	if (run_takes_both(at->node))
		json_fail(at, in->err, "holds both \"$value\" and \"$values\"");
	else if (json_child(at, RUN_CHOICE, &choices))
		run_check_choices(at, &choices, in->err);
	else
		run_check_patch(at, NULL, in->err);
}

/* ---- the command line's flags ---------------------------------------------------------------- */

/* Find the last use of the flag @name on the command line; false: there is none. */
static bool run_find_last_use(const struct run_words *in, const char *name, struct run_option *out)
{
	struct run_option option;
	bool used = false;

	for (int at = 0; run__next_option(in, &at, &option);)
		if (!strcmp(option.name, name)) {
			*out = option;
			used = true;
		}
	return used;
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
static void run_check_choice(const struct run_words *in, const struct run_option *option)
{
	const char *given = run__option_word(in, option, 0), **values, *near;
	struct run_flag_word *words;
	struct str list = {0};
	size_t known = 0;
	int count;

	if (run_takes_anything(in, option->name))
		return;
	words = run_flag_words(in, &count);
	/* One extra, for the argument itself. */
	values = mem_calloc((size_t)count + 1, sizeof(*values));
	if (!values)
		err_nomem(in->err);
	/* The values of the flag option->name that entries name, as pointers into words. */
	for (int i = 0; i < count && !err_stuck(in->err); i++)
		if (words[i].has_value && !strcmp(words[i].name, option->name))
			known = run_add_value(values, known, words[i].value);
	if (!err_stuck(in->err) && run_add_value(values, known, given) != known) {
		near = str_nearest(given, values, known);
		for (size_t i = 0; i < known && !near; i++)
			str_addf(&list, "%s%s", i ? " " : "", values[i]);
		if (near)
			err_set(in->err, ST_INVALID,
				"%s: unknown value \"%s\" (did you mean \"%s\"?)", option->name,
				given, near);
		else
			err_set(in->err, ST_INVALID, "%s: unknown value \"%s\" (there is: %s)",
				option->name, given, str_peek(&list));
		str_free(&list);
	}
	mem_free(values);
	mem_free(words);
}

/* Check that every flag on the command line has the arguments that it takes. */
static void run_check_uses(const struct run_words *in)
{
	struct run_option option;
	enum run_takes takes;

	for (int at = 0; run__next_option(in, &at, &option);)
		if (run_flag_takes(in, option.name, &takes) &&
		    run__option_check(in, &option, takes) == ST_OK && takes == RUN_TAKES_VALUE)
			run_check_choice(in, &option);
}

/* Whether all words of the entry @flag are given. @missing receives the first that is not, or "" if
 * only a value differs; @option the last word's use. */
static bool run_flag_applies(const struct run_words *in, const cJSON *flag,
			     struct run_option *option, char missing[RUN_WORD_SIZE])
{
	const char *rest = flag->string;
	struct run_flag_word word;

	missing[0] = '\0';
	while (run_next_word(&rest, &word)) {
		if (!run_find_last_use(in, word.name, option)) {
			str_copy(missing, RUN_WORD_SIZE, word.name);
			return false;
		}
		if (word.has_value && strcmp(run__option_word(in, option, 0), word.value) != 0)
			return false;
	}
	return true;
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
static void run_note_unused(const struct run_words *in, struct str *notes)
{
	char lacks[RUN_WORD_SIZE], missing[RUN_WORD_SIZE];
	struct run_option given, last = {.name = ""};

	for (int at = 0; run__next_option(in, &at, &given);) {
		bool vain = true;

		lacks[0] = '\0';
		for (const cJSON *flag = run_flag_first(in); flag && vain; flag = flag->next) {
			if (!run_flag_names(flag, given.name))
				continue;
			vain = !run_flag_applies(in, flag, &last, missing) && missing[0];
			if (vain && !lacks[0])
				str_copy(lacks, sizeof(lacks), missing);
		}
		if (vain && lacks[0])
			str_addf(notes, "%s has no effect without %s.\n", given.name, lacks);
	}
}

/* Apply the flags of the command line. @notes gets a line for each that has no effect. */
static void run_flags_patch(const struct run_words *in, struct str *notes)
{
	run_check_uses(in);
	for (const cJSON *flag = run_flag_first(in); flag && !err_stuck(in->err);
	     flag = flag->next) {
		const cJSON *patch = flag, *choices = run_choices(flag);
		struct run_option option = {.name = ""};
		char missing[RUN_WORD_SIZE];

		if (!run_flag_applies(in, flag, &option, missing))
			continue;
		if (choices)
			patch = cJSON_GetObjectItemCaseSensitive(choices,
								 run__option_word(in, &option, 0));
		if (patch)
			run__patch(in, patch, &option);
	}
	run_note_unused(in, notes);
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
static void run_unknown_option(const struct run_words *in, const char *name)
{
	const char **names, *near;
	int key_count, flag_count;
	struct run_flag_word *words = run_flag_words(in, &flag_count);
	const struct run_key *keys = run_file_keys(&key_count);
	size_t count = 0;

	names = mem_calloc((size_t)key_count + (size_t)flag_count, sizeof(*names));
	if (!names)
		err_nomem(in->err);
	if (!err_stuck(in->err)) {
		for (int i = 0; i < key_count; i++)
			if (keys[i].kind != RUN_KEY_FLAGS)
				names[count++] = keys[i].path;
		for (int i = 0; i < flag_count; i++)
			names[count++] = words[i].name + 2;
		near = run_nearest_option(name + 2, names, count);
		if (near)
			err_set(in->err, ST_INVALID, "unknown option %s (did you mean --%s?)", name,
				near);
		else
			err_set(in->err, ST_INVALID,
				"unknown option %s (`ipu-train --help RUN` lists flags and keys)",
				name);
	}
	mem_free(names);
	mem_free(words);
}

/* ---- the whole command line ------------------------------------------------------------------ */

void run__options_flags(cJSON *json, const char *file, int argc, char **argv, struct str *notes,
			struct err *err)
{
	const struct run_words in = {
		.json = json, .file = file, .argv = argv, .argc = argc, .err = err};
	struct json_at root = json_root(file, json), flags, flag = {0};

	if (json_child(&root, "flags", &flags) && !json_is_null(&flags) &&
	    json_object(&flags, err) == ST_OK)
		while (!err_stuck(err) && json_next(&flags, &flag))
			run_check_flag(&in, &flag);
	run_flags_patch(&in, notes);
}

void run__options_keys(cJSON *json, const char *file, int argc, char **argv, struct err *err)
{
	const struct run_words in = {
		.json = json, .file = file, .argv = argv, .argc = argc, .err = err};
	struct run_option option;
	enum run_takes takes;

	/* The flags of the file have been applied: here are the other options. */
	for (int at = 0; run__next_option(&in, &at, &option);) {
		const struct run_key *key = run__key_over(option.name + 2);

		if (run_flag_takes(&in, option.name, &takes) ||
		    (!key && run_renamed_option(option.name, err)))
			continue;
		if (!key || key->kind == RUN_KEY_FLAGS)
			run_unknown_option(&in, option.name);
		else
			run__override(&in, key, &option);
	}
}
