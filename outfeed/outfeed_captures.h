/*
 * Captured values of a recorded run, read back as arrays, as the tutorial's callback gets them in
 * numpy.
 *
 * An array stacks all captures of a tensor in order of time: (enqueues, [replicas,] shape...). It
 * has the axis of replicas only if two or more replicas were captured at the same steps. Otherwise
 * (`uneven`) all captures are stacked in the order in which they were recorded.
 *
 * Captures of a tensor with different shapes (a last, short batch) cannot be stacked: each shape is
 * an array of its own. The most frequent one has the tensor's name, the others append their shape:
 * "dense@16x128"; if the types differ too, "dense@16x128@float16". A tensor has at most
 * OUTFEED_SHAPES of them; captures of further shapes are omitted.
 *
 * A capture is complete if its pieces are consecutive and add up to its shape. Others (of a killed
 * run or a damaged file) are omitted and counted.
 *
 * Works on a file that is being written: outfeed_captures_open() indexes what it has then. One
 * thread per reader. Memory: 40 bytes per capture and 8 per piece, and one piece at a time.
 */
#ifndef OUTFEED_CAPTURES_H
#define OUTFEED_CAPTURES_H

#include "common/err.h"
#include "outfeed/outfeed.h"
#include "profiler/prof_db.h"

struct outfeed_captures;

#define OUTFEED_SHAPES 16

struct outfeed_array {
	const char *queue, *key;
	/* The key; "queue/key" if two queues have it; see above. Unique, valid UTF-8 without
	 * control characters, never an absolute path or one with "..". */
	const char *name;
	enum dtype dtype;
	int64_t shape[OUTFEED_NDIM_MAX + 2]; /* of the stacked array */
	int ndim;
	int replicas;       /* length of the axis of replicas; 1: no such axis */
	bool uneven;        /* captures of several replicas, without an axis */
	int64_t bytes;      /* of the whole array */
	int64_t incomplete; /* omitted captures of the tensor, with missing parts; stored with the
			       first of its arrays */
};

/* Index the captures of the database; values are not read. On failure *@out is NULL. @db is
 * borrowed. */
enum status outfeed_captures_open(struct outfeed_captures **out, struct prof_db *db,
				  struct err *err);
void outfeed_captures_close(struct outfeed_captures *captures); /* accepts NULL */
int outfeed_captures_count(const struct outfeed_captures *captures);
const struct outfeed_array *outfeed_captures_at(const struct outfeed_captures *captures, int index);
/* Number of all omitted captures, including those of tensors without an array. */
int64_t outfeed_captures_incomplete(const struct outfeed_captures *captures);

/* Pass all values of array @index in C order to @sink, piece by piece, until it returns another
 * status than ST_OK. Pieces are as they were written: at most 1 MiB if by this library. */
typedef enum status (*outfeed_captures_sink)(void *user, const void *data, size_t bytes,
					     struct err *err);
enum status outfeed_captures_read(struct outfeed_captures *captures, int index,
				  outfeed_captures_sink sink, void *user, struct err *err);
/* The same for @count items of its first axis, starting at @first. */
enum status outfeed_captures_read_part(struct outfeed_captures *captures, int index, int64_t first,
				       int64_t count, outfeed_captures_sink sink, void *user,
				       struct err *err);

/* Return the step of an enqueue of array @index, or its weight update if it has no step; IPS_NULL
 * if both are unknown. @enqueue from 0 to shape[0] - 1. */
int64_t outfeed_captures_step(const struct outfeed_captures *captures, int index, int64_t enqueue);

/* Read the keys of each enqueue of array @index: @keys has shape[0] (x replicas) entries. */
enum status outfeed_captures_keys(struct outfeed_captures *captures, int index,
				  struct ips_keys *keys, struct err *err);

#endif /* OUTFEED_CAPTURES_H */
