/*
 * fit, evaluate and predict: phases one after the other, callbacks between them; the backups that
 * fit makes and resumes from; and generated text.
 */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include <stdio.h>

#include "trainer/callbacks/callback.h"
#include "trainer/train_phase.h"
#include "trainer/train_screen.h"
#include "trainer/train_session.h"

struct train_result {
	int64_t epochs;             /* completed */
	double loss, evaluate_loss; /* of the last epoch, of the evaluation; NaN: none */
	double step_ns;             /* measured, of the last epoch; NaN: none */
	int64_t predicted;          /* items */
	bool interrupted;
};

struct train_fit_params {
	struct train_session *session;
	const struct callbacks *callbacks;
	struct train_screen *screen;
	_Atomic bool *stop; /* set by a callback: end after the current epoch */
	FILE *generated; /* receives the text that run->generate requests; NULL: do not generate */
};

/* Train all epochs, then evaluate and predict if the run file says so. Returns ST_INTERRUPTED after
 * train_interrupt(); @out has the results so far. */
enum status train_fit(const struct train_fit_params *params, struct train_result *out,
		      struct err *err);

/* ---- backups --------------------------------------------------------------------------------- */

/*
 * Backups of a training, and resuming from one. A backup holds weights, optimizer state, the
 * position in the data, the learning rate, the running means of an epoch and the state of
 * callbacks. Random numbers need no state: they are keyed by step.
 *
 * A run that is killed at any time and started again produces the same bytes as an uninterrupted
 * one, whatever the schedule, the threads and the ranks of either. A backup of another model,
 * optimizer or data is rejected, and the error names the first difference.
 *
 * All ranks call these functions together: rank 0 collects the other ranks' replicas and writes the
 * file; rank 0 reads the file and broadcasts its bytes.
 *
 * Called by the main thread, between executions.
 */

struct train_backup {
	struct train_session *session;
	const struct callbacks *callbacks;
	const struct callback_backup *wanted; /* NULL: make no backups */
	char *identity;                       /* what a backup must match, as JSON */
	float *first;              /* room for the first replica's weights; NULL on rank 0 */
	char *bytes;               /* of `from` */
	struct snapshot *from;     /* until train_backup_restore(); NULL: none */
	char path[FS_PATH_SIZE];   /* of `from` */
	char target[FS_PATH_SIZE]; /* where backups are written */
	int64_t last;              /* training steps at the last backup */
	/* The position: the current or next epoch, and its completed steps. */
	int64_t epoch, steps;
	bool stop; /* a callback has ended the training */
};

/* Check that the backup named by fit.resume exists. Called by rank 0 before anything is created. */
enum status train_backup_check(const struct run_file *run, struct err *err);

/* Find the backup to resume from, if any, and restore @session's state from it; @out
 * receives the position. Call before creating the training's phase. @first, borrowed, is room for
 * weights if this is not rank 0. @out may be closed whatever the result. */
enum status train_backup_open(struct train_backup *out, struct train_session *session,
			      const struct callbacks *callbacks, float *first,
			      struct train_screen *screen, struct err *err);

/* Restore the rest, the callbacks' state and the epoch's means, after both have begun. */
enum status train_backup_restore(struct train_backup *backup, struct train_phase *phase,
				 const struct callback_host *host, struct err *err);

/* Write a backup if one is due. The position is @epoch and @steps of it. */
enum status train_backup_write(struct train_backup *backup, struct train_phase *phase,
			       const struct callback_host *host, int64_t epoch, int64_t steps,
			       bool stop, struct err *err);
void train_backup_close(struct train_backup *backup); /* accepts a zeroed one */

/* Call at the end of a complete run: deletes the backup if the callback's options say so. */
void train_backup_finish(const struct callbacks *callbacks);

/* ---- generated text -------------------------------------------------------------------------- */

/*
 * Text generation with a model that has learnt the next token of a text.
 *
 * The model runs on the host with replica 0's weights, on a window of the last tokens at a time;
 * nothing is simulated or recorded. Without a temperature the likeliest token is chosen, the first
 * one among equals. With a temperature tokens are drawn with the probabilities p^(1 / temperature),
 * from a stream of fit.seed: same weights and seed, same bytes.
 */

/* Check that @model can continue generate.prompt with the tokens of @set; the error says why
 * not. */
enum status train_generate_check(const struct run_file *run, const struct model *model,
				 const struct dataset *set, struct err *err);

/* Write the prompt, generate.length more tokens and a newline. The workers must be idle. */
enum status train_generate(FILE *out, const struct train_session *session, struct err *err);

#endif /* TRAIN_FIT_H */
