/*
 * Kept values of sequences: a value as a whole, what tokens stand for, and what is said of heads of
 * attention, of losses by their place and of rows of an Embedding.
 *
 * Values lie in the caller's arena. One thread at a time.
 */
#ifndef REPORT_SEQUENCE_H
#define REPORT_SEQUENCE_H

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"

/* ---- a kept value ---------------------------------------------------------------------------- */

#define REPORT_KEPT_NDIM 8
#define REPORT_KEPT_MOST (INT64_C(1) << 25) /* numbers that are read at once */

struct report_kept {
	const char *key, *dims, *shape_text; /* dims: "batch, tokens"; NULL: not known */
	int64_t shape[REPORT_KEPT_NDIM];
	int ndim;
	int64_t count;
	float *values;
	int64_t row_id, step, replica, rank;
	bool by_update; /* step is a weight update: it is of no step */
};

/* Which one: the last that fits; IPS_NULL: any. */
struct report_kept_at {
	const char *key, *dims; /* one of the two; dims: a pattern of LIKE */
	int64_t step, replica, rank;
	int64_t near;  /* of the rows about this one alone */
	int64_t below; /* kept before this row */
};
#define REPORT_KEPT_ANY                                                                            \
	{                                                                                          \
		.step = IPS_NULL, .replica = IPS_NULL, .rank = IPS_NULL, .near = IPS_NULL,         \
		.below = IPS_NULL                                                                  \
	}

/* ST_NOTFOUND: none fits, and why. */
enum status report_kept_read(struct report_kept *out, struct arena *arena, struct prof_db *db,
			     const struct report_kept_at *at, struct err *err);

/* ---- tokens ---------------------------------------------------------------------------------- */

struct report_tokens {
	const char *key; /* of the tensor with their numbers; NULL: no Embedding looks any up */
	const char **names;
	int count; /* of names; 0: they are not known */
	bool bytes;
};

enum status report_tokens_read(struct report_tokens *out, struct arena *arena, struct prof_db *db,
			       struct err *err);

/* What @number stands for, in UTF-8 without control characters: "e", "\n", "\xe2"; the number where
 * no name is known. */
#define REPORT_TOKEN_SIZE 32
const char *report_token_text(const struct report_tokens *tokens, double number,
			      char out[REPORT_TOKEN_SIZE]);

/* The numbers of @length tokens of @sample beside @kept: of the same step and replica. NULL where
 * none were kept, or of another length. @key: "targets"; NULL: those that go in. */
enum status report_tokens_of(const float **out, struct arena *arena, struct prof_db *db,
			     const struct report_tokens *tokens, const struct report_kept *kept,
			     const char *key, int64_t sample, int64_t length, struct err *err);

/* ---- what is said of them -------------------------------------------------------------------- */

struct report_head {
	double entropy;  /* nats, of a query's scores: the mean over queries */
	double distance; /* places from the query to what it looks at, weighed by the scores */
	double greatest; /* of a query's scores: the mean */
};

/* @scores: (.., queries, keys), @count of such matrices, each @stride after the other. */
struct report_head report_head_of(const float *scores, int64_t count, int64_t stride,
				  int64_t queries, int64_t keys);

struct report_row {
	int64_t row;
	double norm,
		change; /* change: from when values were first kept; NaN: they were once alone */
};

/* The rows of a kernel (rows, features), of which ST_INVALID. */
enum status report_rows_of(struct report_row **out, struct arena *arena, struct prof_db *db,
			   const struct report_kept *kept, struct err *err);
/* The largest first; equals by their number. */
void report_rows_sort(struct report_row *rows, int64_t count);

#endif /* REPORT_SEQUENCE_H */
