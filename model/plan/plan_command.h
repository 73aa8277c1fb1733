/*
 * The command ipu-plan: queries to the simulated IPU that need no training.
 *
 * Each query is a subcommand, one row of a table in plan_command.c; its source file exports the
 * row.
 */
#ifndef PLAN_COMMAND_H
#define PLAN_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "common/cli.h"
#include "common/err.h"
#include "common/str.h"
#include "ipu/ipu_pipeline.h"
#include "model/plan/plan_run.h"

/* What planning needs from the trainer, which this room does not know. */
struct plan_trainer {
	const struct run_checks *checks; /* of the run file */
	/*
	 * Describe the data that @run names: count and measure them without opening them. Also
	 * checks the parts of the run file that only the trainer reads.
	 */
	enum status (*describe)(struct run_data *out, const struct run_file *run, struct err *err);
	/* Bytes that captured tensors will take in the report, within their budget. */
	enum status (*looking)(double *bytes, const struct plan_run *plan, struct err *err);
	/* Measure the microseconds that this machine needs to prepare a batch of the run's data. */
	enum status (*measure_input)(double *us, const struct run_file *run, struct err *err);
};

/* A subcommand. Options of the same name must have the same meaning in all subcommands, because
 * completion and man page list them once. */
struct plan_subcommand {
	const char *name;           /* "schedule" */
	struct cli_command command; /* its --help; command.name is "ipu-plan schedule" */
	/* argv[0] is the subcommand's name. Prints to @out; --help is not among the arguments. @err
	 * is not NULL and holds no failure. */
	enum status (*run)(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			   struct err *err);
};

/* Shared by --target of all subcommands. */
#define PLAN_TARGETS     "ipu1 ipu2 ipu21 c600"
#define PLAN_TARGET_HELP "The kind of IPU: ipu1 (Mk1), ipu2 (Mk2), ipu21 (Bow) or c600"

extern const struct plan_subcommand plan_convolution;
extern const struct plan_subcommand plan_kind;
extern const struct plan_subcommand plan_product;
extern const struct plan_subcommand plan_model;
extern const struct plan_subcommand plan_scale;
extern const struct plan_subcommand plan_schedule;

/* The words of a subcommand that has only options. */
#define PLAN_NO_WORDS ((struct cli_words){.enough = "every value has an option"})

/* A run file with its flags and overrides. `words` has room for PLAN_WORDS_MORE that the subcommand
 * may append. */
struct plan_words {
	const char *run_path;
	char **words;
	int count;
};
#define PLAN_WORDS_MORE 4

/* Parse @argv of a subcommand that accepts RUN, its flags and its keys. --target means
 * --ipu.target; other options of the table are stored in @request. Free words->words even on
 * failure. @err of both functions is not NULL. */
enum status plan_read_words(const struct cli_command *command, int argc, char **argv,
			    struct plan_words *words, void *request, struct err *err);
/* Read the run file and describe its data; call plan_run_fini() on @plan even on failure. */
enum status plan_read_run(struct plan_run *plan, struct run_data *data,
			  const struct plan_words *words, const struct plan_trainer *trainer,
			  struct err *err);

/* The main() of the command; returns the exit code: 0 success, 1 the work failed, 2 the request was
 * invalid. */
int plan_command(int argc, char **argv, const struct plan_trainer *trainer);

/* Width of text on @out: @given if positive, otherwise the terminal's width, or 80. */
int plan_width(FILE *out, int given);

/*
 * A Gantt chart of a pipeline's works in letters: a row per stage, time from left to right.
 */

struct plan_gantt_params {
	int width;    /* columns, including the row's name; at least 20 are used */
	bool colour;  /* ANSI colours */
	bool unicode; /* otherwise ASCII */
};

/*
 * Append the chart, a time axis and a legend. A column shows what the stage does for most of its
 * time span; a work of three columns or more shows its micro-batch beside its letter if that
 * fits. Check out->failed at the end.
 */
void plan_gantt(const struct ipu_pipeline *pipeline, const struct plan_gantt_params *params,
		struct str *out);

#endif /* PLAN_COMMAND_H */
