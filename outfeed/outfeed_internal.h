/*
 * Shared by the modules of the recorder. outfeed.c has the tensors and the path of a value. It
 * calls outfeed_bad.c (the first non-finite number), outfeed_retain.c (what queues send) and
 * outfeed_rows.c (rows, the budget, rings, messages); outfeed_queue.c uses all of them.
 *
 * Locks, in order of acquisition: outfeed_replica.lock, then one of outfeed_bad.lock and the
 * health rules' own, then outfeed.lock. None is held while a value is measured.
 */
#ifndef OUTFEED_INTERNAL_H
#define OUTFEED_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "outfeed/outfeed.h"

/* Number of values that a tensor and replica retains for the trail of the first non-finite number:
 * one thread may be this far ahead of another (in pipelines: micro-batches) without a gap in the
 * trail. */
#define OUTFEED_FRAMES 16

/* Measurements of a value. */
struct outfeed_measure {
	enum outfeed_tier known;    /* HEALTH: n and abs_max; COUNTS: and counts; STATS: all */
	struct outfeed_stats stats; /* as far as known */
	uint32_t abs_max;           /* if HEALTH: the bits of the greatest |x| */
	double inactive;            /* NaN: unknown */
	double update_ratio;        /* NaN: unknown */
	int64_t n_changed;          /* IPS_NULL: unknown */
};

/* A short form of the same, for the trail. */
struct outfeed_frame {
	uint64_t order;
	struct ips_keys keys;
	int64_t time_ns, n;
	uint32_t abs_max;
	enum outfeed_tier known; /* OFF: no measurement yet */
};

struct outfeed_entry {
	struct ips_keys keys;
	int64_t time_ns;
	size_t count;
};

/* The last values of a tensor and replica; all memory is allocated at the start. */
struct outfeed_ring {
	unsigned char *values; /* size x bytes of a value; NULL: no ring */
	struct outfeed_entry *entries;
	int64_t size, next, held;
	uint64_t flushed; /* the value of outfeed.flushes when it was last written */
};

/* State of one replica, written by the thread that records it. The lock guards ring and frames,
 * because outfeed_drain() reads them. */
struct outfeed_replica {
	struct outfeed_health_tensor *health; /* NULL: no rules */
	float *before;                        /* of variables: the previous value; or NULL */
	bool has_before;
	uint32_t *active; /* of activations: by neuron; or NULL */
	/* At tier `health`: consecutive values worth a row, and whether the last of them got
	 * none. */
	int64_t stretch;
	bool skipped;
	pthread_mutex_t lock;
	struct outfeed_ring ring;
	struct outfeed_frame *frames;      /* OUTFEED_FRAMES; NULL: nothing is recorded */
	struct outfeed_stats *frame_stats; /* their statistics; NULL if the tier measures none */
	unsigned frame;                    /* index of the next one */
} __attribute__((aligned(64)));

struct outfeed_tensor {
	struct outfeed *outfeed;
	size_t index;              /* in outfeed.tensors */
	char *queue, *key, *layer; /* layer NULL: none */
	enum outfeed_kind kind;
	enum dtype dtype;
	enum outfeed_activity activity;
	int stage; /* -1: none */
	int64_t shape[OUTFEED_NDIM_MAX];
	int ndim;
	size_t count;   /* elements of a whole value */
	size_t neurons; /* length of its last axis; 0: a scalar */
	int64_t tensor_id;
	struct outfeed_choice choice; /* as chosen */
	_Atomic int tier;             /* current one: the budget may lower it */
	struct outfeed_sent *sent;    /* state in its queue; NULL: no queue sends it */
	struct outfeed_replica *replica;
};

/* A tensor from which a non-finite number was computed. */
struct outfeed_cause {
	int64_t tensor_id;
	const char *role;
	struct outfeed_stats stats;
};

/* A non-finite number. */
struct outfeed_candidate {
	const struct outfeed_tensor *tensor;
	int64_t replica;
	struct ips_keys keys;
	int64_t time_ns;
	struct outfeed_stats stats;
	size_t element;
	const char *value;
	struct outfeed_cause causes[OUTFEED_TRAIL];
	int cause_count;
};

/* The first non-finite number so far. */
struct outfeed_bad {
	pthread_mutex_t lock;
	_Atomic uint64_t order; /* of the number found; UINT64_MAX: none yet; 0: it is written */
	bool found, written;
	struct outfeed_candidate first;
};

struct outfeed {
	struct outfeed_params params;
	struct outfeed_health *health; /* NULL: no rules */
	struct ips_track *track;
	struct ips_site *sites[OUTFEED_HEALTH_RULES]; /* of the instants */
	struct outfeed_tensor **tensors;
	size_t count, capacity;
	int64_t hits[OUTFEED_HEALTH_RULES]; /* so far, by rule */
	pthread_mutex_t lock;               /* guards the track, lines for people, hits, lowering */
	_Atomic uint64_t flushes;           /* number of requests */
	uint64_t drained;                   /* `flushes` when outfeed_drain() wrote rings */
	_Atomic int64_t spent;              /* bytes of the budget */
	_Atomic bool spent_up;              /* reported that the budget has no room for rows */
	_Atomic bool failed;                /* the recording's failure was reported */
	struct outfeed_bad bad;
};

static inline double outfeed__float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return (double)value;
}

static inline enum outfeed_tier outfeed__tier(const struct outfeed_tensor *tensor)
{
	return (enum outfeed_tier)atomic_load_explicit(&tensor->tier, memory_order_relaxed);
}

/* ---- outfeed_rows.c: an int is the recording's status, 0 on success -------------------------- */

/* Convert @status, the result of appending a row, to a failure of @outfeed with a message: once,
 * then ST_OK. With @err NULL the failure is not marked as reported. */
enum status outfeed__failed(struct outfeed *outfeed, int status, struct err *err);

/* Format a shape like Python: "(125, 256, 128)", "(125,)" and "()". */
#define OUTFEED_SHAPE_TEXT ((OUTFEED_NDIM_MAX + 2) * 22 + 4)
const char *outfeed__shape_text(char out[OUTFEED_SHAPE_TEXT], const int64_t *shape, int ndim);

/* A line for people; truncated if it is too long. */
struct outfeed_line {
	char text[512];
	size_t length;
};
void outfeed__line_add(struct outfeed_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void outfeed__line_add_place(struct outfeed_line *line, const char *key, const char *layer,
			     const struct ips_keys *keys);
/* With outfeed->lock held: record an instant on the track and print the line. */
void outfeed__report(struct outfeed *outfeed, struct ips_site *site, const struct ips_keys *keys,
		     const struct outfeed_line *line);

/* Return the tier at which to record a value of @count elements now: @tier or, if the budget does
 * not allow it, a lower one. Its bytes are charged. */
enum outfeed_tier outfeed__afford(struct outfeed_tensor *tensor, enum outfeed_tier tier,
				  const struct outfeed_moment *moment, size_t count);
/* Charge the bytes of a row of tier `health`; false: the budget does not allow it. */
bool outfeed__afford_health(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			    size_t count, bool whole);

/* Append a row of `tensors`; return its id, IPS_NULL without a recording or if out of memory. */
int64_t outfeed__append_tensor(struct outfeed *outfeed, const struct outfeed_tensor_params *params);
int outfeed__append_tier(const struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			 const char *why);
int outfeed__append_stats(const struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			  const struct outfeed_measure *measure);
int outfeed__append_histogram(const struct outfeed_tensor *tensor,
			      const struct outfeed_moment *moment, const void *values,
			      size_t count);
int outfeed__append_capture(const struct outfeed_tensor *tensor, const struct ips_keys *keys,
			    const void *values, size_t count);
int outfeed__append_rules(struct outfeed *outfeed);

enum status outfeed__ring_new(struct outfeed_ring *ring, const struct outfeed_tensor *tensor,
			      struct err *err);
void outfeed__ring_free(struct outfeed_ring *ring);
void outfeed__ring_push(const struct outfeed_tensor *tensor, struct outfeed_ring *ring,
			const struct outfeed_moment *moment, const void *values, size_t count);
/* With the replica's lock held: write the ring if a flush was requested since the last time. */
int outfeed__ring_flush(struct outfeed_tensor *tensor, struct outfeed_ring *ring);
int outfeed__rings_flush(struct outfeed *outfeed);

/* A rule is violated: write its row, line and instant, and request a flush of the rings. */
void outfeed__hit(void *user, const struct outfeed_hit *hit);

/* ---- outfeed_bad.c --------------------------------------------------------------------------- */

void outfeed__bad_init(struct outfeed_bad *bad);
void outfeed__bad_fini(struct outfeed_bad *bad);
/* @measure has a value that is not finite: add it as a candidate. */
void outfeed__bad_add(const struct outfeed_tensor *tensor, int64_t replica,
		      const struct outfeed_moment *moment, const struct outfeed_measure *measure,
		      const void *values, size_t count);
/* With the replica's lock held: store a value for the trail. */
void outfeed__bad_remember(const struct outfeed *outfeed, struct outfeed_replica *replica,
			   const struct outfeed_moment *moment,
			   const struct outfeed_measure *measure);
/* Write the number found if its order is below @before. */
int outfeed__bad_write(struct outfeed *outfeed, uint64_t before);

/* ---- outfeed_retain.c ------------------------------------------------------------------------ */

/* Return whether its queue ever sends the tensor. */
bool outfeed__sends(const struct outfeed_sent *sent);
/* Enqueue one value: @stats is its whole row. */
enum status outfeed__enqueue(struct outfeed_sent *sent, const struct outfeed_moment *moment,
			     int64_t replica, const struct outfeed_stats *stats, const void *values,
			     size_t count, struct err *err);

#endif /* OUTFEED_INTERNAL_H */
