/*
 * autoReport: what POPLAR_ENGINE_OPTIONS asks for, and the report directory it leads to.
 *
 * Option semantics are Poplar's: one JSON object of option name to value; values may be texts or
 * JSON booleans and numbers; `autoReport.all` turns everything on that is not turned off by name
 * (except the serialized graph); single options without it turn on only themselves. An unknown
 * option is an error that names the nearest. Options of private formats are accepted and noted.
 */
#ifndef TRAIN_AUTO_H
#define TRAIN_AUTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/fs.h"
#include "model/plan/plan_figures.h"

struct train_options {
	bool any; /* a report is wanted: record */
	bool graph_profile, execution_profile, lowered_vars, archive, serialized_graph, debug_info;
	int64_t execution_profile_program_run_count; /* default PLAN_TRACED_EXECUTIONS */
	bool stream_at_each_run;
	bool allow_out_of_memory;
	int64_t replica_to_profile; /* -1: all */
	bool flop_estimates, cycle_estimates;
	char directory[FS_PATH_SIZE]; /* default "." */
	char *text;                   /* the options as given, normalised JSON, owned; NULL: none */
	char *notes;                  /* newline-ended sentences to show once, owned; NULL: none */
};

/* Parse @text (NULL or blank: nothing asked for, as when the variable is unset). On failure @out
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
	TRAIN_OPTION_STOOD_IN, /* its file is another program's own; profile.db stands in for it */
	TRAIN_OPTION_ACCEPTED  /* checked and stored in meta, without effect here */
};

/* One entry per option: for parsing, documentation and completion. */
struct train_option_entry {
	const char *name, *type, *fallback, *help;
	enum train_option_effect effect;
	enum train_option_kind kind;
	int64_t least;         /* of an integer */
	size_t offset;         /* of the field in struct train_options; TRAIN_OPTION_NO_FIELD */
	bool in_all;           /* turned on by autoReport.all */
	const char *file_name; /* of the report that profile.db stands in for, or NULL */
};
#define TRAIN_OPTION_NO_FIELD SIZE_MAX
const struct train_option_entry *train_option_entries(int *count);

/*
 * Make tf_report__YYYY-MM-DD__HH-MM-SS.mmm__PID under options->directory (created if missing; local
 * time; the three digits after the dot are padded, unlike TensorFlow's). *@path is where profile.db
 * goes. Nothing is left behind on failure. Unwritable: ST_INVALID.
 */
enum status train_auto_directory(const struct train_options *options, char directory[FS_PATH_SIZE],
				 struct err *err);

/* Could it be made? Leaves nothing behind. */
enum status train_auto_check(const struct train_options *options, struct err *err);

/* framework.json: the documented keys ("TensorFlow": ..., "System Information": ...). @cluster is
 * the module name. app.json: @run_json, the run file as it was run. Each whole or not at all. */
enum status train_auto_write_framework(const char *directory, const char *cluster, struct err *err);
enum status train_auto_write_app(const char *directory, const char *run_json, struct err *err);

#endif /* TRAIN_AUTO_H */
