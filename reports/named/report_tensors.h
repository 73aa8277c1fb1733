/*
 * Rows of tensors' statistics over a run, no more than may be looked at: for the Tensors screen.
 *
 * Rows are in order of time, not of tensors. Where there are more than may be looked at, ranges of
 * them are, spread evenly over the run, the first row and the last among them; what is said of all
 * rows is in the view tensor_sums.
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
	int64_t looked, all; /* rows of all tensors: looked at, and there */
	size_t capacity;
};

/* The statistics there are: the reals of `tensor_stats` that `tensor_sums` has the range of. */
const char *const *report_tensor_columns(int *count);

/* @out (zeroed at first; its rows are replaced) gets the rows of @tensor_id of @rank (IPS_NULL:
 * of any) that are among the @most looked at, with their @column; a column there is not:
 * ST_NOTFOUND. */
enum status report_tensor_rows_read(struct report_tensor_rows *out, struct prof_db *db,
				    int64_t tensor_id, int64_t rank, const char *column,
				    int64_t most, struct err *err);
void report_tensor_rows_free(struct report_tensor_rows *rows); /* accepts a zeroed struct */

/* The tensor @key, that of @queue where there are several; IPS_NULL: there is none. */
enum status report_tensor_find(struct prof_db *db, const char *queue, const char *key, int64_t *out,
			       struct err *err);

/*
 * Ranges of row ids 1 .. @last: all in one where there are at most @most, else so many that each
 * has at least @least. Calls @take with the ends (the second one beyond).
 */
typedef enum status (*report_range_take)(void *user, int64_t from, int64_t to, struct err *err);
enum status report_ranges(int64_t last, int64_t most, int64_t least, report_range_take take,
			  void *user, struct err *err);

#endif /* REPORT_TENSORS_H */
