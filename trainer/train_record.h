/*
 * From the training loop to the rows of the database. Everything here does nothing without a
 * recording.
 */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "ipu/compile/ipu_trace.h"
#include "trainer/train_session.h"

/* Facts, layers, operations, tracks and call sites: once, before the first execution. */
enum status train_record_start(struct train_session *session, struct err *err);

/* The lane of what the feeds of @mode decode; nothing without a recording. */
enum status train_record_data(struct train_session *session, enum ips_mode mode, struct err *err);

/* The keys of a work of @worker; @microbatch -1 for none. */
struct ips_keys train_record_keys(const struct train_worker *worker, int stage, char phase,
				  int64_t run, int64_t microbatch);

/* A stage has done its phase. */
enum status train_record_work(struct train_worker *worker, const struct ips_keys *keys,
			      int64_t start_ns, int64_t end_ns, int64_t cpu_ns);

/*
 * The device's rows of the present execution, up to pipeline run @runs. They are a plan, so the
 * main thread writes them ahead of the workers; not beyond where an interrupt ends the execution.
 */
enum status train_record_device(struct train_session *session, int64_t runs);

/* The host's bubbles of the pipeline runs that have ended since the last call; @all: of all that
 * the execution has (the workers have finished). By the main thread. */
enum status train_record_runs(struct train_session *session, bool all);

/* An execution has ended. */
enum status train_record_execution(struct train_session *session, int64_t start_ns, int64_t end_ns);

/* @execution, @step IPS_NULL: a metric of the epoch. */
enum status train_record_metric(struct train_session *session, enum ips_mode mode, int64_t epoch,
				int64_t execution, int64_t step, const char *name, double value);

/* The epoch's confusion matrix, rows by target: a tensor of the queue "metrics". */
enum status train_record_confusion(struct train_session *session, enum ips_mode mode, int64_t epoch,
				   const struct metric *metric, const double *counts);

/* ---- between the files that write rows ------------------------------------------------------- */

/* IPU @ipu of a replica, counted over all replicas; IPS_NULL without a device. */
int64_t train__global_ipu(const struct train_session *session, int replica, int ipu);

/* The first worker of a replica speaks for it. */
struct train_worker *train__first_worker(struct train_session *session, int replica);

/* The device's memory: variables and their tiles, each tile's categories, liveness. */
enum status train__append_memory(const struct train_session *session);

/* The bubble of pipeline run @run. */
enum status train__append_bubble(const struct train_worker *worker, int64_t run,
				 enum ips_clock clock, const struct plan_bubble *bubble);

#endif /* TRAIN_RECORD_H */
