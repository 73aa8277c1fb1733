/*
 * The words of a run's command line: options, and merging them into the run file's tree.
 *
 * Failures are sticky in `err`: after one, nothing is read or changed.
 *
 * Flags are merge patches: objects merge, any other value replaces, and null is stored instead of
 * removing the key (so that a flag can set "ipu": null).
 */
#ifndef RUN_WORDS_H
#define RUN_WORDS_H

#include "model/run/run_internal.h"

#define RUN_WORD_SIZE 256 /* of an option's name with "--" and terminator */

enum run_takes {
	RUN_TAKES_NOTHING,
	RUN_TAKES_VALUE,
	RUN_TAKES_VALUES
};

/* One option of the command line; its words remain in argv. */
struct run_option {
	char name[RUN_WORD_SIZE]; /* "--fit.epochs" */
	const char *attached;     /* the value of "--name=value", or NULL */
	int at, count;            /* the words up to the next option: argv[at] .. */
};

struct run_words {
	cJSON *json;
	const char *file;
	char **argv;
	int argc;
	struct err *err; /* never NULL */
};

/* Read the option at argv[*at] and advance past it and its words; false at the end and on
 * failure. */
bool run__next_option(const struct run_words *in, int *at, struct run_option *out);

/* Fail if @option has words that it does not accept, or lacks one. */
enum status run__option_check(const struct run_words *in, const struct run_option *option,
			      enum run_takes takes);

/* Word @index of @option, including an attached one; NULL after the last. */
const char *run__option_word(const struct run_words *in, const struct run_option *option,
			     int index);

/* Whether a patch contains "$value" or "$values". */
enum run_takes run__takes(const cJSON *patch);

/* Merge @patch into in->json, with "$value" and "$values" replaced by the words of @option. */
void run__patch(const struct run_words *in, const cJSON *patch, const struct run_option *option);

/* Set @key, or the value below it that the option names, to the option's word. */
void run__override(const struct run_words *in, const struct run_key *key,
		   const struct run_option *option);

#endif /* RUN_WORDS_H */
