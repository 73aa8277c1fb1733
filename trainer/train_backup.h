/*
 * Backups of a training, and going on from one: weights, optimizer state, the position in the data,
 * the learning rate, the running means of an epoch, what callbacks know. Random numbers need
 * nothing: they are keyed by step.
 *
 * A run that is killed at any moment and started again ends with the bytes of one that was not,
 * whatever the schedule, the threads and the ranks of either. A backup of another model, optimizer
 * or data is refused, and the error names the first difference.
 *
 * Of several ranks all do the same: rank 0 gets what the others have of their replicas and writes
 * the file; it reads it, and all get the bytes.
 *
 * The main thread's, between executions.
 */
#ifndef TRAIN_BACKUP_H
#define TRAIN_BACKUP_H

#include "trainer/train_phase.h"

struct train_backup {
	struct train_session *session;
	const struct callbacks *callbacks;
	const struct callback_backup *wanted; /* NULL: no backups are made */
	char *identity;                       /* what a backup must be of, as JSON */
	float *first;              /* room for the first replica's weights; NULL: rank 0 */
	char *bytes;               /* of `from` */
	struct snapshot *from;     /* until train_backup_restore(); NULL: none */
	char path[FS_PATH_SIZE];   /* of `from` */
	char target[FS_PATH_SIZE]; /* where backups go */
	int64_t last;              /* steps of training at the last backup */
	/* The position: the epoch that is under way or begins, and steps of it that are done. */
	int64_t epoch, steps;
	bool stop; /* a callback has ended the training */
};

/* Is there what fit.resume names? Asked by rank 0 before anything is made. */
enum status train_backup_check(const struct run_file *run, struct err *err);

/* Find the backup to go on from, if there is any, and give @session what it has; the position
 * stands in @out. Before the training's phase is made. @first, borrowed, is room for weights where
 * this is not rank 0. @out may be closed whatever comes. */
enum status train_backup_open(struct train_backup *out, struct train_session *session,
			      const struct callbacks *callbacks, float *first,
			      struct train_screen *screen, struct err *err);

/* The rest of it: the callbacks' state and the epoch's means, when both have begun. */
enum status train_backup_restore(struct train_backup *backup, struct train_phase *phase,
				 const struct callback_host *host, struct err *err);

/* Make one where one is due. The position is @epoch and @steps of it. */
enum status train_backup_write(struct train_backup *backup, struct train_phase *phase,
			       const struct callback_host *host, int64_t epoch, int64_t steps,
			       bool stop, struct err *err);
void train_backup_close(struct train_backup *backup); /* accepts a zeroed one */

/* The run has come to its end: remove the backup where the callback says so. */
void train_backup_finish(const struct callbacks *callbacks);

#endif /* TRAIN_BACKUP_H */
