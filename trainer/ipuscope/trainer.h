/*
 * ipuscope/trainer.h: train the model of a run file from a program of your own, with callbacks.
 *
 * For any C11 or C++11 program. Link with `pkg-config --libs ipuscope-trainer` or CMake's
 * ipuscope::trainer.
 *
 *	#include <ipuscope/trainer.h>
 *
 *	static void epoch_end(void *user, struct ips_trainer *trainer, int64_t epoch,
 *			      const struct ips_logs *logs)
 *	{
 *		(void)epoch;
 *		if (logs->items[0].value < *(const double *)user)
 *			ips_trainer_stop(trainer);
 *	}
 *
 *	int train_until(double loss)
 *	{
 *		static struct ips_callback callback;
 *		struct ips_trainer *trainer;
 *		char message[512];
 *		int status = ips_trainer_open(&trainer, "run.json", 0, NULL, message, sizeof(message));
 *
 *		if (status != 0)
 *			return status;
 *		callback.size = sizeof(callback);
 *		callback.user = &loss;
 *		callback.epoch_end = epoch_end;
 *		ips_trainer_add_callback(trainer, &callback);
 *		status = ips_trainer_run(trainer, NULL, message, sizeof(message));
 *		ips_trainer_close(trainer);
 *		return status;
 *	}
 *
 * Functions that can fail return 0 or a positive status. ips_status_text() of ipuscope/profiler.h
 * describes it, and @message (may be NULL) receives one line that names the place. A NULL that is
 * not allowed is such an error.
 *
 * Threads: a trainer belongs to one thread. Callbacks are called on it, except for batch_end and
 * outfeed of asynchronous callbacks (the run file's fit.asynchronous_callbacks), which are called
 * on another thread while an execution runs.
 */
#ifndef IPUSCOPE_TRAINER_H
#define IPUSCOPE_TRAINER_H

#include <ipuscope/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ips_trainer;

/* Keras's logs: "loss", "accuracy", "val_loss" and so on, the loss first. A value may be NaN. */
struct ips_log {
	const char *name;
	double value;
};
struct ips_logs {
	const struct ips_log *items;
	int count;
};

/*
 * A value that an outfeed queue has sent: one key of one replica at one enqueue, @count float32 in
 * row-major order. All of it is valid until the call returns.
 */
struct ips_trainer_outfeed {
	const char *queue, *key;
	const char *kind;  /* "activation" or "gradient" */
	const char *layer; /* the layer that it belongs to */
	const int64_t *shape;
	int ndim;
	struct ips_keys keys; /* step, replica, stage and so on */
	const float *values;
	size_t count;
};

/*
 * Members that are NULL are not called. @epoch is from 1, @batch from 0.
 *
 * batch_end: as on the IPU, called once for every Engine::run, with its last batch and that batch's
 * results; with asynchronous callbacks once for each step and replica, as soon as it has been
 * computed. Logs and their names are valid until the call returns.
 *
 * outfeed: called once for every value that a queue has sent, ordered by enqueue, then by replica,
 * then by key. It is called after each execution (a queue of the mode LAST then has the last
 * enqueue); with asynchronous callbacks while it runs, as soon as all replicas have enqueued. In
 * that case up to outfeed.buffer_depth enqueues are buffered, and training waits if more come.
 *
 * save and restore, both or neither: the callback's state, as a part of the backups that
 * BackupAndRestore makes. save returns *@bytes of state, which must stay valid until the next call.
 * restore receives them, aligned as by malloc(), after train_begin in a run that resumes from a
 * backup; a result other than 0 rejects them and ends the run.
 */
struct ips_callback {
	size_t size; /* sizeof(struct ips_callback) of the program */
	void *user;
	void (*train_begin)(void *user, struct ips_trainer *trainer);
	void (*train_end)(void *user, struct ips_trainer *trainer);
	void (*epoch_begin)(void *user, struct ips_trainer *trainer, int64_t epoch);
	void (*epoch_end)(void *user, struct ips_trainer *trainer, int64_t epoch,
			  const struct ips_logs *logs);
	void (*batch_end)(void *user, struct ips_trainer *trainer, enum ips_mode mode,
			  int64_t batch, const struct ips_logs *logs);
	void (*outfeed)(void *user, struct ips_trainer *trainer,
			const struct ips_trainer_outfeed *sent);
	const void *(*save)(void *user, struct ips_trainer *trainer, size_t *bytes);
	int (*restore)(void *user, struct ips_trainer *trainer, const void *state, size_t bytes);
};

/* The results of a run; missing values are NaN. */
struct ips_train_result {
	int64_t epochs; /* completed */
	double loss, evaluate_loss;
	int interrupted; /* 1: by ips_trainer_stop() or a signal */
};

/* @words: @count flags and overrides of the run file ("--fit.epochs", "5"). */
IPS_API int ips_trainer_open(struct ips_trainer **out, const char *run_path, int count,
			     char *const words[], char *message, size_t message_size);
IPS_API void ips_trainer_close(struct ips_trainer *trainer); /* accepts NULL */

/* @callback is copied. Call before ips_trainer_run(): later the call fails. */
IPS_API int ips_trainer_add_callback(struct ips_trainer *trainer,
				     const struct ips_callback *callback);

/* Compile, train, evaluate and predict as the run file says. May be called once. Prints nothing;
 * with autoReport in $POPLAR_ENGINE_OPTIONS the run is recorded as by ipu-train. @result may be
 * NULL. */
IPS_API int ips_trainer_run(struct ips_trainer *trainer, struct ips_train_result *result,
			    char *message, size_t message_size);

/* Keras's model.stop_training: end after the current execution. Called from a callback. */
IPS_API void ips_trainer_stop(struct ips_trainer *trainer);

/* Return the variable called @name ("dense/kernel:0") of the first replica, or NULL. Valid until
 * the callback returns; not available in an asynchronous batch_end. */
IPS_API const float *ips_trainer_weights(const struct ips_trainer *trainer, const char *name,
					 size_t *count);

/*
 * Use IPUOutfeedQueue.dequeue() instead of a callback: retain all that queues send until the end of
 * an epoch. Call before ips_trainer_run(), which allocates memory for an epoch of all queues.
 */
IPS_API int ips_trainer_keep_outfeeds(struct ips_trainer *trainer);

/* The values of one key, stacked: [enqueues,] [replicas,] and the shape of a value. The dimension
 * of enqueues is missing if outfeed.queue_mode is LAST, that of replicas if there is only one. */
struct ips_trainer_array {
	const char *key, *kind, *layer;
	const int64_t *shape;
	int ndim;
	const float *values;
	size_t count; /* of all values */
};

/*
 * Everything that @queue has sent since the last dequeue, or since the epoch began: *@count arrays
 * at *@out, one for each of its keys. The arrays are valid until the next call, their values until
 * the next epoch. Called from a callback. A queue that was never enqueued is an error. On the
 * thread of an asynchronous callback it is not: *@count is 0, and otherwise the arrays hold what
 * has arrived so far; for a queue of the mode LAST nothing, since its value is known only when the
 * execution has ended.
 */
IPS_API int ips_trainer_dequeue(struct ips_trainer *trainer, const char *queue,
				const struct ips_trainer_array **out, int *count, char *message,
				size_t message_size);

#ifdef __cplusplus
}
#endif

#endif /* IPUSCOPE_TRAINER_H */
