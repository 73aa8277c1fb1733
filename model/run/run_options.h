/*
 * What the command line's sources share: words, options, and merging into the tree.
 *
 * Flags are merge patches: objects merge, everything else replaces, and null is set rather than
 * removed (so that a flag can say "ipu": null).
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include "model/run/run_internal.h"

#define RUN_WORD_SIZE 256 /* of an option's name, "--" and end included */

enum run_takes {
	RUN_TAKES_NOTHING,
	RUN_TAKES_VALUE,
	RUN_TAKES_VALUES
};

/* One option of the command line, its words still where they stand. */
struct run_option {
	char name[RUN_WORD_SIZE]; /* "--fit.epochs" */
	const char *attached;     /* of "--name=value", or NULL */
	int at, count;            /* following words that may be its own: argv[at] .. */
};

struct run_words {
	cJSON *json;
	const char *file;
	char **argv;
	int argc;
};

/* Read the option at argv[*at] and step over it and the words that follow. */
enum status run__next_option(const struct run_words *in, int *at, struct run_option *out,
			     struct err *err);

/* Fail where @option has words that it does not take, or lacks one. */
enum status run__option_check(const struct run_words *in, const struct run_option *option,
			      enum run_takes takes, struct err *err);

/* Word @index of @option, the attached one included; NULL beyond the last. */
const char *run__option_word(const struct run_words *in, const struct run_option *option,
			     int index);

/* Does a patch hold "$value" or "$values"? */
enum run_takes run__takes(const cJSON *patch);

/* Merge @patch into in->json, "$value" and "$values" replaced by the words of @option. */
enum status run__patch(const struct run_words *in, const cJSON *patch,
		       const struct run_option *option, struct err *err);

/* Check the file's flags, and apply those of the command line; @notes gets a line for each that has
 * no effect. */
enum status run__flags_check(const struct run_words *in, struct err *err);
enum status run__flags_patch(const struct run_words *in, struct str *notes, struct err *err);

/* Is @name ("--epochs") one of the file's flags? */
bool run__flag_known(const struct run_words *in, const char *name);

/* A word of an entry's name: "--model-type=Model" of "--no-pipelining --model-type=Model". */
struct run_flag_word {
	char name[RUN_WORD_SIZE];  /* "--model-type" */
	char value[RUN_WORD_SIZE]; /* "Model", or "" */
	bool has_value, last;
};

/* The words of all of the file's flags, and one for each "$choice"; mem_free() ends *@out. */
enum status run__flag_words(const struct run_words *in, struct run_flag_word **out, int *count,
			    struct err *err);

#endif /* RUN_OPTIONS_H */
