/*
 * What the run file's sources share: the table of keys, and applying the command line.
 */
#ifndef RUN_INTERNAL_H
#define RUN_INTERNAL_H

#include "common/arena.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/str.h"
#include "model/run/run_file.h"

#define RUN_KEYS_MOST 160 /* limit on rows of the table */

/* The row of @path ("fit.epochs"), or NULL. */
const struct run_key *run__key_find(const char *path);

/* The row that governs @path: its own, or that of the tree that contains it
 * ("model.config.name"). */
const struct run_key *run__key_over(const char *path);

const char *run__key_last(const struct run_key *key); /* "epochs" of "fit.epochs" */

/* The index of @word in the list @choices ("sum mean"), or -1. */
int run__choice(const char *choices, const char *word);

/* Fail at @at with "unknown key", naming the nearest key of the section, otherwise of all. */
enum status run__key_unknown(const struct json_at *at, const struct run_key *section,
			     struct err *err);
/* Check that every key of @at is a key of @section (NULL: the top level). */
void run__keys_check(const struct json_at *at, const struct run_key *section, struct err *err);

/* Write to @out what replaces the obsolete name @name ("gradient_accumulation_count"); false: the
 * name is unknown. */
bool run__renamed_text(const char *name, char *out, size_t size);

/* Where a value is: `at`, linked to the others. */
struct run_place {
	struct json_at root, section, at;
};

/* Find the value of @key in @section; false: absent or null. */
bool run__value_find(const struct run_file *run, const char *section, const char *key,
		     struct run_place *out);

/* A value of the file that is to be stored in the struct. */
struct run_value {
	struct run_file *run;
	struct arena *arena; /* of the run */
	const struct run_key *key;
	const struct json_at *at;
	const struct run_checks *checks;
	struct err *err;
};

/* Check the value by the kind of its key and store it, unless @err holds a failure. null counts as
 * not given. */
enum status run__fill(const struct run_value *value);

/* Check the file's flags, and apply those in @argv to @json. @notes gets a line for each flag that
 * has no effect. */
void run__options_flags(cJSON *json, const char *file, int argc, char **argv, struct str *notes,
			struct err *err);
/* Then apply the keys in @argv, which override what the flags made. */
void run__options_keys(cJSON *json, const char *file, int argc, char **argv, struct err *err);

#endif /* RUN_INTERNAL_H */
