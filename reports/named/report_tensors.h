/*
 * Read a bounded sample of the rows of tensor statistics, for the Tensors screen.
 *
 * Rows are stored in order of time, not of tensors. If there are more than the bound, the sample
 * consists of ranges spread evenly over the run, including the first and the last row. The view
 * tensor_sums has the sums over all rows.
 */
#ifndef REPORT_TENSORS_H
#define REPORT_TENSORS_H

#include <stdint.h>

#include "common/err.h"
#include "profiler/prof_db.h"

struct report_tensor_row {
	int64_t tensor_id, rank, row_id;
	int64_t time_ns, epoch, weight_update, step, replica; /* IPS_NULL: unknown */
	int64_t n_bad;                                        /* NaN and Inf elements */
	double value;                                         /* NaN: unknown */
};

struct report_tensor_rows {
	struct report_tensor_row *row; /* in the order they were recorded */
	int count;
	int64_t looked, all; /* rows of all tensors: number read, and number recorded */
	size_t capacity;
};

/* Names of the statistics: the real columns of `tensor_stats` whose range is in `tensor_sums`. */
const char *const *report_tensor_columns(int *count);

/* Replace the rows of @out (initially zeroed) by those of @tensor_id and @rank (IPS_NULL: any)
 * among the @most rows read, with their @column. Unknown column: ST_NOTFOUND. */
enum status report_tensor_rows_read(struct report_tensor_rows *out, struct prof_db *db,
				    int64_t tensor_id, int64_t rank, const char *column,
				    int64_t most, struct err *err);
void report_tensor_rows_free(struct report_tensor_rows *rows); /* accepts a zeroed struct */

/* Look up the tensor @key, preferring the one in @queue; IPS_NULL: not found. */
enum status report_tensor_find(struct prof_db *db, const char *queue, const char *key, int64_t *out,
			       struct err *err);

/*
 * Call @take for ranges of row ids in 1 .. @last, with the first id and the one past the last. Up
 * to @most rows are one range; otherwise their number is chosen so that each has at least @least
 * rows.
 */
typedef enum status (*report_range_fn)(void *user, int64_t from, int64_t to, struct err *err);
enum status report_ranges(int64_t last, int64_t most, int64_t least, report_range_fn take,
			  void *user, struct err *err);

#endif /* REPORT_TENSORS_H */
