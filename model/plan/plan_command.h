/*
 * The command ipu-plan: questions to the simulated IPU that need no training.
 *
 * Each question is a subcommand, one row of a table in plan_command.c; its file exports the row.
 */
#ifndef PLAN_COMMAND_H
#define PLAN_COMMAND_H

#include <stdio.h>

#include "common/cli.h"
#include "common/err.h"
#include "model/plan/plan_run.h"

/* What planning asks of the side that trains, which this room does not know. */
struct plan_trainer {
	const struct run_checks *checks; /* of the run file */
	/*
	 * The data that @run names, counted and measured but not opened; what of the run file the
	 * trainer alone reads is checked on the way.
	 */
	enum status (*describe)(struct run_data *out, const struct run_file *run, struct err *err);
	/* Bytes of the report that looking at tensors will take, within their budget. */
	enum status (*looking)(double *bytes, const struct plan_run *plan, struct err *err);
	/* Microseconds that this machine takes to prepare a batch of the run's data. */
	enum status (*measure_input)(double *us, const struct run_file *run, struct err *err);
};

/* A subcommand. Options of the same name in several subcommands mean the same, so that completion
 * and man page can list them once. */
struct plan_subcommand {
	const char *name;           /* "schedule" */
	struct cli_command command; /* its --help; command.name is "ipu-plan schedule" */
	/* argv[0] is the subcommand's name. Prints to @out; --help is not among the arguments. */
	enum status (*run)(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			   struct err *err);
};

/* Of --target, in all subcommands alike. */
#define PLAN_TARGETS     "ipu1 ipu2 ipu21 c600"
#define PLAN_TARGET_HELP "The kind of IPU: ipu1 (Mk1), ipu2 (Mk2), ipu21 (Bow) or c600"

extern const struct plan_subcommand plan_convolution;
extern const struct plan_subcommand plan_kind;
extern const struct plan_subcommand plan_product;
extern const struct plan_subcommand plan_model;
extern const struct plan_subcommand plan_scale;
extern const struct plan_subcommand plan_schedule;

/* Walk @argv of a subcommand that takes options alone: @read gets each of them. */
typedef enum status (*plan_read_fn)(void *request, const struct cli_argument *argument,
				    struct err *err);
enum status plan_read_options(const struct cli_command *command, int argc, char **argv,
			      plan_read_fn read, void *request, struct err *err);

/* A run file with its own words, which the run file's table knows. `words` has room for more that
 * the subcommand adds. */
struct plan_words {
	const char *run_path;
	char **words;
	int count;
};
#define PLAN_WORDS_MORE 4

/* @argv of a subcommand that takes RUN, its flags and its keys; --target stands for --ipu.target,
 * other options of the table are put into @request. Free words->words whatever comes. */
enum status plan_read_words(const struct cli_command *command, int argc, char **argv,
			    struct plan_words *words, void *request, struct err *err);
/* The run file and what its data are like; @plan needs plan_run_fini() in any case. */
enum status plan_read_run(struct plan_run *plan, struct run_data *data,
			  const struct plan_words *words, const struct plan_trainer *trainer,
			  struct err *err);

/* Everything behind main(): returns the exit code. 0 done, 1 the work failed, 2 the request was
 * wrong. */
int plan_command(int argc, char **argv, const struct plan_trainer *trainer);

/* How wide text on @out may be: @given if positive, else the terminal's width, 80 elsewhere. */
int plan_width(FILE *out, int given);

#endif /* PLAN_COMMAND_H */
