/*
 * Keras's callbacks: what runs between the steps, executions and epochs of a training.
 *
 * All are called on the main thread, but for batch_end() and outfeed() of asynchronous callbacks,
 * which a polling thread calls while an execution runs; then nothing else is called until that
 * thread has ended.
 */
#ifndef CALLBACK_H
#define CALLBACK_H

#include <ipuscope/trainer.h>

#include "common/json.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/run/run_file.h"
#include "trainer/data/snapshot.h"

/* Functions and data of the training that callbacks use. */
struct callback_host {
	void *user;
	const struct model *model;
	bool resumed; /* training resumes from a backup: append to existing files */
	const float *(*weights)(void *user);                   /* of the first replica */
	void (*set_weights)(void *user, const float *weights); /* of all replicas */
	void (*stop)(void *user);                              /* after the current execution */
	double (*rate)(void *user);                /* the learning rate; NaN: it is a schedule */
	void (*set_rate)(void *user, double rate); /* for the following updates */
	void (*say)(void *user, const char *text); /* print a line */
	/* What an OutfeedCallback called @name does with @queue at the end of an epoch; may be
	 * NULL. */
	enum status (*outfeed)(void *user, const char *queue, const char *name, int64_t epoch,
			       struct err *err);
};

enum callback_moment {
	CALLBACK_TRAIN_BEGIN,
	CALLBACK_EPOCH_BEGIN,
	CALLBACK_BATCH_END,
	CALLBACK_EPOCH_END,
	CALLBACK_TRAIN_END,
	CALLBACK_SNAPSHOT, /* write or read the state of the epochs so far; read after train_begin */
	CALLBACK_MOMENTS
};

/* Which callbacks' batch_end to call: with asynchronous callbacks those of any thread are called
 * while an execution runs, the others after it. */
enum callback_which {
	CALLBACK_ALL,
	CALLBACK_RUNNING,
	CALLBACK_RESTING
};

/* A moment at which callbacks are called; members that it does not have are 0. */
struct callback_event {
	enum callback_moment moment;
	const struct callback_host *host;
	enum callback_which which;
	enum ips_mode mode;
	int64_t epoch;               /* from 1 */
	int64_t batch;               /* the last of the execution, or the step */
	const struct ips_logs *logs; /* at train_begin: the names of an epoch's; NULL: unknown */
	struct snapshot *snapshot;
	struct err *err; /* the first failure, after which no callback is called */
};

struct callback {
	const struct callback_ops *ops;
	void *state; /* private to the class */
};

/* Any member may be NULL. */
struct callback_ops {
	const char *class_name;
	bool writes;     /* writes a file: only the first of several ranks calls it */
	bool moves_rate; /* changes the learning rate, so an epoch's logs include it */
	bool any_thread; /* batch_end may be called while an execution runs */
	size_t size;     /* of the state, which is zeroed and then gets the options, texts copied */
	struct model_options options;
	/* Called when the options have been read. */
	void (*read)(struct callback *callback, const struct json_at *config, struct err *err);
	void (*on[CALLBACK_MOMENTS])(struct callback *callback, const struct callback_event *event);
	void (*fini)(struct callback *callback); /* frees what is neither a text nor the state */
};

struct callbacks {
	struct callback *items;
	int count;
	size_t capacity;
	bool silent; /* this rank is not the one that writes files */
};

/* Return the class of row @index of the table; NULL after the last. */
const char *callback_class_name(int index);

/* Parse @list: [{class_name, config}, ...], or NULL. On failure @out is empty except for
 * `silent`. */
enum status callbacks_read(struct callbacks *out, const struct json_at *list, struct err *err);
/* Parse the callbacks of @run, if it has any; on failure as callbacks_read(). */
enum status callbacks_load(struct callbacks *out, const struct run_file *run, struct err *err);
void callbacks_fini(struct callbacks *callbacks); /* accepts a zeroed struct */

/* Does the list have an OutfeedCallback? Without one, every queue gets the tutorial's default. */
bool callbacks_show_outfeeds(const struct callbacks *callbacks);

/* Does any callback change the learning rate? */
bool callbacks_move_rate(const struct callbacks *callbacks);

/* Add a program's callback (ipuscope/trainer.h); @own is copied. */
enum status callbacks_add(struct callbacks *callbacks, const struct ips_callback *own,
			  struct ips_trainer *trainer, struct err *err);

/* Options of the first BackupAndRestore, owned by the callbacks; NULL: none. */
struct callback_backup {
	const char *folder;
	int64_t every; /* batches; 0: epochs */
	bool deletes;  /* delete the backup when the run has completed */
};
const struct callback_backup *callbacks_backup(const struct callbacks *callbacks);

/* Return the class name of a callback with state to back up; NULL: it has none. */
const char *callback_snapshot_name(const struct callback *callback);

/* Write or read the state of all callbacks; errors stick in the snapshot. */
void callbacks_snapshot(const struct callbacks *callbacks, const struct callback_host *host,
			struct snapshot *snapshot);

/* Does any callback receive the values that queues send? callbacks_outfeed() passes one on, on any
 * thread. */
bool callbacks_dequeue_outfeeds(const struct callbacks *callbacks);
void callbacks_outfeed(const struct callbacks *callbacks, const struct ips_trainer_outfeed *sent);

/* Call every callback, in order; stop at the first that fails. @event->err may be NULL. */
enum status callbacks_call(const struct callbacks *callbacks, const struct callback_event *event);

/* ---- the callbacks --------------------------------------------------------------------------- */

extern const struct callback_ops callback_backup_and_restore;
extern const struct callback_ops callback_csv_logger;
extern const struct callback_ops callback_early_stopping;
extern const struct callback_ops callback_learning_rate_scheduler;
extern const struct callback_ops callback_model_checkpoint;
extern const struct callback_ops callback_outfeed;
extern const struct callback_ops callback_reduce_lr_on_plateau;
extern const struct callback_ops callback_terminate_on_nan;

/* ---- helpers of the callbacks ---------------------------------------------------------------- */

/* Return the log @name, or NULL. */
const double *callback_log(const struct ips_logs *logs, const char *name);

/* Which values are better: the smaller, the greater, or (auto) what Keras takes from the metric's
 * name. */
enum callback_mode {
	CALLBACK_AUTO,
	CALLBACK_MIN,
	CALLBACK_MAX
};
extern const char *const callback_modes[];

/* Is @value better than @best by more than @min_delta? A NaN never is; any number is better than a
 * NaN @best. */
bool callback_improves(enum callback_mode mode, const char *monitor, double value, double best,
		       double min_delta);

/* Read save_freq: a number of batches, or 0 for "epoch" (also if it is absent or null). */
void callback_read_frequency(const struct json_at *config, int64_t *out, struct err *err);

/* Have the host print a line. */
void callback_say(const struct callback_event *event, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Return the log @monitor; if it is absent return NULL, and the first time (@warned) say so with
 * the logs that there are. */
const double *callback_monitored(const struct callback *callback,
				 const struct callback_event *event, const char *monitor,
				 bool *warned);

/* ---- file names that contain the epoch and its logs ------------------------------------------ */

/* As Keras's ModelCheckpoint accepts them: "weights.{epoch:02d}-{val_loss:.2f}.npz". */

/* Check a pattern when the run file is parsed: every field is {NAME} or {NAME:FORMAT}, where FORMAT
 * is a width with d, or a precision with f, e or g. */
enum status callback_name_check(const char *pattern, struct err *err);

/* Format the name for @epoch (from 1). A field that is not in the logs is an error that lists
 * them. */
enum status callback_name(const char *pattern, int64_t epoch, const struct ips_logs *logs,
			  char *out, size_t size, struct err *err);

#endif /* CALLBACK_H */
