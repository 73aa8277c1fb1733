/*
 * What the run file's sources share: the table of keys, and the command line's part.
 */
#ifndef RUN_INTERNAL_H
#define RUN_INTERNAL_H

#include "common/arena.h"
#include "common/fs.h"
#include "common/json.h"
#include "model/run/run_file.h"

#define RUN_KEYS_MOST 128 /* rows of the table at most */

/* The row of @path ("fit.epochs"), or NULL. */
const struct run_key *run__key_find(const char *path);

/* The row that governs @path: its own, or that of the tree it lies in ("model.config.name"). */
const struct run_key *run__key_over(const char *path);

/* Is @key one of the section @section (NULL: the top level) itself, not of one within it? */
bool run__key_within(const struct run_key *key, const struct run_key *section);
const char *run__key_last(const struct run_key *key); /* "epochs" of "fit.epochs" */

/* The number of @word in the list @choices ("sum mean"), or -1. */
int run__choice(const char *choices, const char *word);

/* Fail at @at with "unknown key", naming the nearest of the section, else of all. */
enum status run__key_unknown(const struct json_at *at, const struct run_key *section,
			     struct err *err);

/* What stands for a name that is none of ours but known ("gradient_accumulation_count"), into @out;
 * false: it is not known. */
bool run__renamed_text(const char *name, char *out, size_t size);

/* A value of the file on its way into the struct. */
struct run_value {
	struct run_file *run;
	struct arena *arena; /* of the run */
	const struct run_key *key;
	const struct json_at *at;
	const struct run_checks *checks;
	struct err *err;
};

/* Check the value as the key's kind says and store it. null stands for nothing given. */
enum status run__fill(const struct run_value *value);

/* Put what @value fills into the struct; @size is that of the key's field. */
void run__store(const struct run_value *value, const void *from, size_t size);

/* A number in the key's range, or a text that is one ("0.4"), at @at. */
enum status run__fill_number(const struct run_value *value, const struct json_at *at, double least,
			     double greatest, double *out);

/* RUN_KEY_PLAN and RUN_KEY_PLANS (run_poplar.c). */
enum status run__fill_plan(const struct run_value *value);
enum status run__fill_plans(const struct run_value *value);

/* RUN_KEY_CAPTURE and RUN_KEY_BYTES (run_outfeed.c). */
enum status run__fill_capture(const struct run_value *value);
enum status run__fill_bytes(const struct run_value *value);

/* The path of @name, relative to the run file's folder; false: too long. */
bool run__beside(const struct run_file *run, const char *name, char path[FS_PATH_SIZE]);

/* The health section's rules, once its keys are read. Where they stand in a file of their own, that
 * is *@file, the caller's (cJSON_Delete(), on failure too); !@files: no file is read. */
enum status run__read_health(struct run_file *run, cJSON **file, const struct run_checks *checks,
			     bool files, struct err *err);

/* Check the file's flags, then apply those of @argv and its overrides to @json. */
enum status run__options_apply(cJSON *json, const char *file, int argc, char **argv,
			       struct err *err);

#endif /* RUN_INTERNAL_H */
