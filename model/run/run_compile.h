/*
 * What a run file's section "compile" and those beside it say: the optimizer; loss and metrics of
 * training and evaluation.
 *
 * Pure: any thread.
 */
#ifndef RUN_COMPILE_H
#define RUN_COMPILE_H

#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "model/run/run_file.h"

/* What compile.optimizer says. */
enum status run_optimizer(struct optimizer *out, const struct run_file *run, struct err *err);

/*
 * Each of @section's loss and metrics, or compile's where it says nothing; they compare with
 * targets of @kind. *@metrics is the caller's (metric_list_free()).
 */
enum status run_measure(struct loss *loss, struct metric_list *metrics, const struct run_file *run,
			const char *section, const struct model *model,
			const struct target_kind *kind, struct err *err);

#endif /* RUN_COMPILE_H */
