/*
 * The command line's part of a run: the run file's own flags, then `--key value` overrides.
 *
 * Threading: none.
 */
#include "model/run/run_options.h"

#include <string.h>

#include "common/str.h"

/* Read the option at argv[*at] and step over it and the words that follow. */
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

int run__option_count(const struct run_option *option)
{
	return option->attached ? 1 : option->count;
}

const char *run__option_word(const struct run_words *in, const struct run_option *option, int index)
{
	if (index >= run__option_count(option))
		return NULL;
	return option->attached ? option->attached : in->argv[option->at + index];
}

enum status run__option_check(const struct run_words *in, const struct run_option *option,
			      enum run_takes takes, struct err *err)
{
	static const int most[] = {0, 1, INT32_MAX};

	if (option->attached) {
		/* The words after "--name=value" have no owner. */
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

enum status run__options_apply(cJSON *json, const char *file, int argc, char **argv,
			       struct err *err)
{
	const struct run_words in = {.json = json, .file = file, .argv = argv, .argc = argc};
	enum status status = run__flags_check(&in, err);

	if (status == ST_OK)
		status = run__flags_patch(&in, err);
	if (status == ST_OK)
		status = run__overrides_apply(&in, err);
	return status;
}
