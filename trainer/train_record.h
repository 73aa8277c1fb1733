/*
 * Writes the rows of the database for the training loop. Without a recording, these functions do
 * nothing. Once a run has begun, a recording that has failed is reported when it is closed, not
 * here.
 */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "trainer/train_session.h"

/* Record facts, layers, operations, the device's memory, tracks and call sites: once, before the
 * first execution. */
enum status train_record_start(struct train_session *session, struct err *err);

/* Create the lane for the decoding of @mode's feeds; nothing without a recording. */
enum status train_record_data(struct train_session *session, enum ips_mode mode, struct err *err);

/* Record a fact that is a number; return the status of the recording. */
int train_record_number(struct ips_recording *recording, const char *key, int64_t value);

/* Return the keys of a work item of @worker; @microbatch -1 for none. */
struct ips_keys train_record_keys(const struct train_worker *worker, int stage, char phase,
				  int64_t run, int64_t microbatch);

/* Keep the worker's first failure; without a text in @err it is the recording's. Does nothing if
 * @status is ST_OK. */
void train_record_failed(struct train_worker *worker, enum status status, const struct err *err);

/* Record that a stage has completed its phase; a failure is the worker's. */
void train_record_work(struct train_worker *worker, const struct ips_keys *keys, int64_t start_ns,
		       int64_t end_ns, int64_t cpu_ns);

/*
 * Record the device's rows of the current execution, up to pipeline run @runs. They are planned, so
 * the main thread writes them ahead of the workers, but not beyond the run after which an interrupt
 * ends the execution.
 */
void train_record_device(struct train_session *session, int64_t runs);

/* Record the host's bubbles of the pipeline runs that have ended since the last call; @all: of all
 * runs of the execution (the workers have finished). Called by the main thread. */
void train_record_runs(struct train_session *session, bool all);

/* Record an execution that has ended. */
void train_record_execution(struct train_session *session, int64_t start_ns, int64_t end_ns);

/* Record a metric; @execution, @step IPS_NULL: of the epoch. */
void train_record_metric(struct train_session *session, enum ips_mode mode, int64_t epoch,
			 int64_t execution, int64_t step, const char *name, double value);

/* Record the epoch's confusion matrix, rows by target, as a tensor of the queue "metrics". */
void train_record_confusion(struct train_session *session, enum ips_mode mode, int64_t epoch,
			    const struct metric *metric, const double *counts);

/* ---- shared by the files that write rows ----------------------------------------------------- */

/* Return the index over all replicas of IPU @ipu of a replica; IPS_NULL without a device. */
int64_t train__global_ipu(const struct train_session *session, int replica, int ipu);

/* Return the first worker of a replica, which writes the replica's rows. */
struct train_worker *train__first_worker(struct train_session *session, int replica);

/* Record the bubble of pipeline run @run. */
enum status train__append_bubble(const struct train_worker *worker, int64_t run,
				 enum ips_clock clock, const struct plan_bubble *bubble);

#endif /* TRAIN_RECORD_H */
