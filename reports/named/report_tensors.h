/*
 * Tensor statistics over a run, by key: for the Tensors screen and its text form.
 */
#ifndef REPORT_TENSORS_H
#define REPORT_TENSORS_H

#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"

struct report_tensor {
	int64_t tensor_id, stage;
	const char *queue, *key, *kind, *layer, *shape;
	int64_t rows, n_nan, n_inf; /* over all rows */
};

enum status report_tensors_list(struct prof_db *db, struct arena *arena, struct report_tensor **out,
				int *count, struct err *err);

/* A column of `tensor_stats` as a curve: at most @points points, each the mean, least and greatest
 * of the rows it stands for, in order of time. */
struct report_point {
	int64_t first_row_time_ns, step, weight_update, epoch; /* of its first row */
	double mean, least, greatest;                          /* NaN: only NULLs */
	int64_t rows, n_bad;                                   /* NaN and Inf elements */
};

/* @column is one of report_tensor_columns(); anything else is ST_NOTFOUND. */
const char *const *report_tensor_columns(int *count);
enum status report_tensor_curve(struct prof_db *db, int64_t tensor_id, const char *column,
				int points, struct arena *arena, struct report_point **out,
				int *count, struct err *err);

#endif /* REPORT_TENSORS_H */
