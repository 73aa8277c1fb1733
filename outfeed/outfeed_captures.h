/*
 * Kept values of a recorded run, read back as arrays: what numpy would have from the tutorial's
 * callback.
 *
 * An array stacks all captures of a tensor in order of time: (enqueues, [replicas,] shape...);
 * replicas is there only if there are two or more. One thread per reader. Reads a chunk at a time;
 * never the whole.
 */
#ifndef OUTFEED_CAPTURES_H
#define OUTFEED_CAPTURES_H

#include "common/err.h"
#include "outfeed/outfeed.h"
#include "profiler/prof_db.h"

struct outfeed_captures;

struct outfeed_array {
	const char *queue, *key;
	const char *name; /* the key; "queue/key" where two queues have it */
	enum outfeed_dtype dtype;
	int64_t shape[OUTFEED_NDIM_MAX + 2]; /* the stacked one */
	int ndim;
	int64_t bytes;      /* of all of it */
	int64_t incomplete; /* captures left out since a part of them is missing (a run that was
			       killed) */
};

enum status outfeed_captures_open(struct outfeed_captures **out, struct prof_db *db,
				  struct err *err);
void outfeed_captures_close(struct outfeed_captures *captures); /* accepts NULL */
int outfeed_captures_count(const struct outfeed_captures *captures);
const struct outfeed_array *outfeed_captures_at(const struct outfeed_captures *captures, int index);

/* All values of array @index in C order, piece by piece; @take returns ST_OK to go on. */
typedef enum status (*outfeed_captures_take)(void *user, const void *data, size_t bytes,
					     struct err *err);
enum status outfeed_captures_read(struct outfeed_captures *captures, int index,
				  outfeed_captures_take take, void *user, struct err *err);

/* When and where each enqueue of array @index was: @keys has its shape[0] (x replicas) entries. */
enum status outfeed_captures_keys(struct outfeed_captures *captures, int index,
				  struct ips_keys *keys, struct err *err);

#endif /* OUTFEED_CAPTURES_H */
