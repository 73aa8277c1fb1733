/*
 * autoReport: the options in POPLAR_ENGINE_OPTIONS, and the report directory that they request.
 *
 * Option semantics are Poplar's: one JSON object of option name to value; values may be strings or
 * JSON booleans and numbers; `autoReport.all` enables everything that is not disabled by name
 * (except the serialized graph); without it, an option enables only itself. An unknown option is an
 * error that suggests the nearest name. Options of private formats are accepted and noted.
 */
#ifndef TRAIN_AUTO_H
#define TRAIN_AUTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/fs.h"
#include "model/plan/plan_run.h"

struct train_options {
	bool any; /* a report is requested: record */
	bool graph_profile, execution_profile, lowered_vars, archive, serialized_graph, debug_info;
	int64_t execution_profile_program_run_count; /* default PLAN_TRACED_EXECUTIONS */
	bool stream_at_each_run;
	bool allow_out_of_memory;
	int64_t replica_to_profile; /* -1: all */
	bool flop_estimates, cycle_estimates;
	char directory[FS_PATH_SIZE]; /* default "." */
	char *text;                   /* the given options, normalised JSON, owned; NULL: none */
	char *notes; /* newline-terminated sentences to print once, owned; NULL: none */
};

/* Parse @text (NULL or blank: nothing requested, as if the variable were unset). On failure @out
 * holds the defaults and owns nothing. */
enum status train_options_parse(struct train_options *out, const char *text, struct err *err);
void train_options_free(struct train_options *options);

enum train_option_kind {
	TRAIN_OPTION_BOOL,
	TRAIN_OPTION_INT,
	TRAIN_OPTION_REAL,
	TRAIN_OPTION_TEXT,
	TRAIN_OPTION_CHOICE /* type lists the words: "off|vertex|tile" */
};

enum train_option_effect {
	TRAIN_OPTION_WORKS,    /* changes what this program does */
	TRAIN_OPTION_STOOD_IN, /* its file format is proprietary; profile.db replaces it */
	TRAIN_OPTION_ACCEPTED  /* checked and stored in meta, without effect */
};

/* One entry per option: for parsing, documentation and shell completion. */
struct train_option_entry {
	const char *name, *type, *fallback, *help;
	enum train_option_effect effect;
	enum train_option_kind kind;
	int64_t least;         /* of an integer */
	size_t offset;         /* of the field in struct train_options; TRAIN_OPTION_NO_FIELD */
	bool in_all;           /* enabled by autoReport.all */
	const char *file_name; /* of the report that profile.db replaces, or NULL */
};
#define TRAIN_OPTION_NO_FIELD SIZE_MAX
const struct train_option_entry *train_option_entries(int *count);

/*
 * Create tf_report__YYYY-MM-DD__HH-MM-SS.mmm__PID under options->directory, which is created if
 * missing. The time is local; the three digits after the dot are padded, unlike TensorFlow's.
 * @directory receives its path, where profile.db goes. Directories of runs that were killed as
 * they made their database are removed. Leaves nothing behind on failure. Not writable: ST_INVALID.
 */
enum status train_auto_directory(const struct train_options *options, char directory[FS_PATH_SIZE],
				 struct err *err);

/* Check that train_auto_directory() could create the directory. Leaves nothing behind. */
enum status train_auto_check(const struct train_options *options, struct err *err);

/* framework.json: the documented keys ("TensorFlow": ..., "System Information": ...). @cluster is
 * the module name. app.json: @run_json, the effective run file. Each file is written atomically. */
enum status train_auto_write_framework(const char *directory, const char *cluster, struct err *err);
enum status train_auto_write_app(const char *directory, const char *run_json, struct err *err);

#endif /* TRAIN_AUTO_H */
