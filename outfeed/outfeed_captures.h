/*
 * Kept values of a recorded run, read back as arrays: what numpy would have from the tutorial's
 * callback.
 *
 * An array stacks all captures of a tensor in order of time: (enqueues, [replicas,] shape...);
 * replicas is there only if there are two or more that were captured at the same steps. Otherwise
 * (`uneven`) all captures stand one after the other in the order they were made.
 *
 * Captures of a tensor with different shapes (a last, short batch) cannot be stacked: each shape is
 * an array of its own. The commonest has the tensor's name, another the shape behind it:
 * "dense@16x128"; where the types differ too, "dense@16x128@float16". A tensor has at most
 * OUTFEED_SHAPES of them; captures beyond are left out.
 *
 * A capture is there if its pieces are, one after the other, and add up to its shape. Others (a run
 * that was killed, a file that was damaged) are left out and counted.
 *
 * Works on a file that is being written: what is there at outfeed_captures_open() is read. One
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
	/* The key; "queue/key" where two queues have it; see above. Unique, valid UTF-8 without
	 * control characters, no path upwards. */
	const char *name;
	enum outfeed_dtype dtype;
	int64_t shape[OUTFEED_NDIM_MAX + 2]; /* the stacked one */
	int ndim;
	int replicas;       /* of the axis; 1: there is none */
	bool uneven;        /* of several replicas, without an axis */
	int64_t bytes;      /* of all of it */
	int64_t incomplete; /* captures of the tensor left out since a part of them is missing;
			       with the first of its arrays */
};

/* Captures in the database are indexed, not read. On failure *@out is NULL. @db is borrowed. */
enum status outfeed_captures_open(struct outfeed_captures **out, struct prof_db *db,
				  struct err *err);
void outfeed_captures_close(struct outfeed_captures *captures); /* accepts NULL */
int outfeed_captures_count(const struct outfeed_captures *captures);
const struct outfeed_array *outfeed_captures_at(const struct outfeed_captures *captures, int index);
/* All captures that were left out, those of tensors without an array too. */
int64_t outfeed_captures_incomplete(const struct outfeed_captures *captures);

/* All values of array @index in C order, piece by piece; @sink returns ST_OK to go on. Pieces are
 * as they were written: at most 1 MiB where this library did. */
typedef enum status (*outfeed_captures_sink)(void *user, const void *data, size_t bytes,
					     struct err *err);
enum status outfeed_captures_read(struct outfeed_captures *captures, int index,
				  outfeed_captures_sink sink, void *user, struct err *err);
/* The same for @count items of its first axis, from @first on. */
enum status outfeed_captures_read_part(struct outfeed_captures *captures, int index, int64_t first,
				       int64_t count, outfeed_captures_sink sink, void *user,
				       struct err *err);

/* The step of each enqueue of array @index, or its weight update where it has no step; IPS_NULL:
 * neither is known. @enqueue from 0 to shape[0] - 1. */
int64_t outfeed_captures_step(const struct outfeed_captures *captures, int index, int64_t enqueue);

/* When and where each enqueue of array @index was: @keys has its shape[0] (x replicas) entries. */
enum status outfeed_captures_keys(struct outfeed_captures *captures, int index,
				  struct ips_keys *keys, struct err *err);

#endif /* OUTFEED_CAPTURES_H */
