/*
 * What the files that write a recording's rows share.
 */
#ifndef TRAIN_RECORD_INTERNAL_H
#define TRAIN_RECORD_INTERNAL_H

#include "ipu/compile/ipu_trace.h"
#include "trainer/train_record.h"

/* IPU @ipu of a replica, counted over all replicas; IPS_NULL without a device. */
int64_t train__global_ipu(const struct train_session *session, int replica, int ipu);

/* The first worker of a replica speaks for it. */
struct train_worker *train__first_worker(struct train_session *session, int replica);

/* Pipeline run @run of the present execution into the execution trace, from @start_cycle on the
 * device's clock; the steps of its mode once, before the first such row. By the main thread. */
enum status train__append_device_run(struct train_worker *worker, int64_t run, int64_t start_cycle);

/* The device's memory: variables and their tiles, each tile's categories, liveness. */
enum status train__append_memory(const struct train_session *session);

/* The bubble of pipeline run @run. */
enum status train__append_bubble(const struct train_worker *worker, int64_t run,
				 enum ips_clock clock, const struct plan_bubble *bubble);

#endif /* TRAIN_RECORD_INTERNAL_H */
