/*
 * Captured values of sequences: read a value, map tokens to names, and compute statistics of
 * attention heads and rows of an Embedding.
 *
 * Values are allocated in the caller's arena. Threading: one thread at a time.
 */
#ifndef REPORT_SEQUENCE_H
#define REPORT_SEQUENCE_H

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"

/* ---- a captured value ------------------------------------------------------------------------ */

#define REPORT_KEPT_NDIM 8
#define REPORT_KEPT_MOST (INT64_C(1) << 25) /* maximum number of values read at once */

struct report_kept {
	const char *key, *dims, *shape_text; /* dims: "batch, tokens"; NULL: unknown */
	int64_t shape[REPORT_KEPT_NDIM];
	int ndim;
	int64_t count;
	float *values;
	int64_t row_id, step, replica, rank;
	bool by_update; /* step is a weight update, because the value belongs to no step */
};

/* Selects the last matching value; IPS_NULL: any. */
struct report_kept_at {
	const char *key, *dims; /* one of these; dims: a pattern of LIKE */
	int64_t step, replica, rank;
	int64_t near;  /* search only rows near this row_id */
	int64_t below; /* only rows before this row_id */
};
#define REPORT_KEPT_ANY                                                                            \
	{                                                                                          \
		.step = IPS_NULL, .replica = IPS_NULL, .rank = IPS_NULL, .near = IPS_NULL,         \
		.below = IPS_NULL                                                                  \
	}

/* ST_NOTFOUND: no match; the error has the reason. */
enum status report_kept_read(struct report_kept *out, struct arena *arena, struct prof_db *db,
			     const struct report_kept_at *at, struct err *err);

/* ---- tokens ---------------------------------------------------------------------------------- */

struct report_tokens {
	const char *key; /* tensor with the token numbers; NULL: no Embedding reads any */
	const char **names;
	int count; /* of names; 0: unknown */
	bool bytes;
};

enum status report_tokens_read(struct report_tokens *out, struct arena *arena, struct prof_db *db,
			       struct err *err);

/* Format token @number in UTF-8 without control characters: "e", "\n", "\xe2"; the number itself if
 * its name is unknown. */
#define REPORT_TOKEN_SIZE 32
const char *report_token_text(const struct report_tokens *tokens, double number,
			      char out[REPORT_TOKEN_SIZE]);

/* Return the numbers of @length tokens of @sample, of the same step and replica as @kept. NULL if
 * none were captured, or with another length. @key: "targets"; NULL: the input tokens. */
enum status report_tokens_of(const float **out, struct arena *arena, struct prof_db *db,
			     const struct report_tokens *tokens, const struct report_kept *kept,
			     const char *key, int64_t sample, int64_t length, struct err *err);

/* ---- statistics ------------------------------------------------------------------------------ */

struct report_head {
	double entropy;  /* of a query's scores, in nats: mean over queries */
	double distance; /* |query - key| in positions, weighted by the scores: mean over queries */
	double greatest; /* of a query's scores: mean over queries */
};

/* @scores: @count matrices (queries, keys), at a distance of @stride. */
struct report_head report_head_of(const float *scores, int64_t count, int64_t stride,
				  int64_t queries, int64_t keys);

struct report_row {
	int64_t row;
	double norm, change; /* change: since the first capture; NaN: there was only one */
};

/* Compute the rows of a kernel (rows, features). Another shape: ST_INVALID. */
enum status report_rows_of(struct report_row **out, struct arena *arena, struct prof_db *db,
			   const struct report_kept *kept, struct err *err);
/* Sort by norm, largest first; ties by row. */
void report_rows_sort(struct report_row *rows, int64_t count);

#endif /* REPORT_SEQUENCE_H */
