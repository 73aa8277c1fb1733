/*
 * The index of captured values: which rows of capture_rows belong to which capture of which array.
 *
 * One thread per index. struct outfeed_captures owns everything.
 */
#ifndef OUTFEED_CAPTURES_INTERNAL_H
#define OUTFEED_CAPTURES_INTERNAL_H

#include "outfeed/outfeed_captures.h"

/* Common properties of the captures of one array. */
struct captures_shape {
	enum dtype dtype;
	int ndim;
	int64_t dim[OUTFEED_NDIM_MAX];
	int64_t bytes; /* of one capture */
};

/* Parse @shape ("(32, 128)") and @dtype ("float32"); false if they are invalid. */
bool captures__shape(struct captures_shape *out, const char *dtype, const char *shape);

/* One complete capture: its pieces are row[0 .. rows - 1] of capture_rows. */
struct captures_one {
	const int64_t *row; /* owned by its lane */
	int64_t rows;
	int64_t step; /* or weight update; IPS_NULL */
	int32_t shape;
};

/* A replica of a tensor: its captures are recorded one after the other. */
struct captures_lane {
	int64_t rank, replica;
	int64_t *row;
	size_t row_count, row_capacity;
	struct captures_one *captures; /* `row` is set when all are indexed */
	size_t count, capacity;
	/* The capture being assembled: of `shape`, its pieces start at row[start]. */
	enum {
		CAPTURES_IDLE,
		CAPTURES_OPEN,
		CAPTURES_SKIP /* following pieces belong to a broken capture */
	} state;
	size_t start;
	int64_t received, next, step; /* next: number of the next piece */
	struct captures_shape shape;
};

struct captures_tensor {
	int64_t tensor_id, incomplete;
	char *queue, *key;
	struct captures_shape *shapes;
	size_t shape_count, shape_capacity;
	struct captures_lane *lanes;
	size_t lane_count, lane_capacity;
};

struct captures_array {
	struct outfeed_array shown;
	char *name;
	const struct captures_tensor *tensor;
	const struct captures_shape *shape;
	bool main; /* has the tensor's name */
	const struct captures_one **captures;
};

struct outfeed_captures {
	struct prof_db *db;
	struct captures_tensor *tensors; /* by id */
	size_t tensor_count, tensor_capacity;
	struct captures_array *arrays;
	size_t array_count, array_capacity;
	int64_t incomplete; /* of tensors without an array or identity */
};

/* Set the names of all arrays. */
enum status captures__names(struct outfeed_captures *captures, struct err *err);

#endif /* OUTFEED_CAPTURES_INTERNAL_H */
