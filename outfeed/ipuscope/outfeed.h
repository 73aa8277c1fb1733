/*
 * ipuscope/outfeed.h: look at the tensors of a trainer of your own, into the recording of
 * ipuscope/profiler.h: statistics, health rules, the first bad number, kept values.
 *
 * For any C11 or C++11 program (GCC or Clang). Link with `pkg-config --libs ipuscope-outfeed` or
 * CMake's ipuscope::outfeed; libipuscope comes with it.
 *
 *	#include <ipuscope/outfeed.h>
 *
 *	int watch_gradient(struct ips_recording *recording, const float *values, int64_t steps,
 *			   double (*train_step)(void))
 *	{
 *		const int64_t shape[] = {784, 128};
 *		struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults("kernel_grad");
 *		struct ips_outfeed_tensor *gradient;
 *		struct ips_outfeed *outfeed;
 *		struct ips_keys keys = IPS_KEYS_NULL;
 *		char message[512];
 *
 *		if (ips_outfeed_open(&outfeed, recording, NULL, message, sizeof(message)) != 0)
 *			return -1;
 *		params.kind = IPS_OUTFEED_GRADIENT;
 *		params.shape = shape;
 *		params.ndim = 2;
 *		ips_outfeed_tensor(outfeed, &gradient, &params, message, sizeof(message));
 *		for (keys.step = 0; keys.step < steps; keys.step++) {
 *			double loss = train_step();
 *
 *			ips_outfeed_record(gradient, &keys, values, 784 * 128);
 *			ips_outfeed_loss(outfeed, &keys, loss);
 *		}
 *		return ips_outfeed_close(outfeed, message, sizeof(message));
 *	}
 *
 * The file then answers to ipu-view, ipu-report and sqlite3 as one of ipu-train's does.
 *
 * Off: with a NULL outfeed or tensor every call does nothing and succeeds.
 *
 * Threads: an outfeed is opened and closed by one thread; tensors are registered by one thread
 * while none is recorded. Recording goes on in any number of threads, each tensor and replica in
 * one at a time; losses come from one thread, which may be any of those. The order of execution, in
 * which the first bad number is first, is the order in which calls of ips_outfeed_record() begin:
 * record what is computed from a tensor after the tensor itself.
 *
 * Functions that can fail return 0 or a positive status; ips_status_text() of ipuscope/profiler.h
 * says it in words, and @message (may be NULL; of @size bytes) gets one line that names the place,
 * or "". A NULL that is not allowed is such an error. What has failed without a message is in
 * ips_outfeed_status().
 *
 * Times are ns from the run's start; bytes are bytes of the database.
 */
#ifndef IPUSCOPE_OUTFEED_H
#define IPUSCOPE_OUTFEED_H

#include <ipuscope/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- outfeeds -------------------------------------------------------------------------------- */

struct ips_outfeed; /* opaque */

/* A health rule broken. Texts are valid until the call returns. */
struct ips_outfeed_hit {
	const char *rule;  /* "vanishing"; all are in the view `health_rules` */
	const char *key;   /* of the tensor; or "loss", "val_loss", "classes"; NULL: none */
	const char *layer; /* NULL: none */
	struct ips_keys keys;
	int64_t time_ns;
	double value, threshold; /* what was seen, what is allowed */
};

/* Start from ips_outfeed_defaults() and set what differs. */
struct ips_outfeed_params {
	size_t size; /* sizeof(struct ips_outfeed_params) of the program */
	/* What is kept of which tensors: the run file's outfeed.capture. A tier (off, health,
	 * counts, stats, histogram, full, last N), or rules as JSON text:
	 * [{"tensors": "dense*", "kind": "gradient", "tier": "full", "every": 10}].
	 * NULL: stats. */
	const char *capture;
	/*
	 * Changes of the health rules as JSON text, the run file's `health.rules`:
	 * {"vanishing": {"threshold": 1e-9, "patience": 5}, "overfit": false}. NULL: the defaults.
	 */
	const char *health;
	int without_health; /* 1: no rule is asked */
	int replicas;       /* keys.replica is below it; at least 1 */
	int64_t budget;     /* bytes of what is kept; beyond, tiers are lowered, and said so. 0: no
			       end */
	/* A line for people (a rule broken, a tier lowered), without "\n"; of each rule the first
	 * 20, and one that there are more. NULL: none. */
	void (*say)(void *user, const char *line);
	/* A rule broken, after its row is recorded. NULL: none. */
	void (*hit)(void *user, const struct ips_outfeed_hit *hit);
	/* Of both. They are called by the thread whose call found it, one at a time, and must not
	 * call this library, but for ips_outfeed_broken() and ips_outfeed_flush(). */
	void *user;
};

static inline struct ips_outfeed_params ips_outfeed_defaults(void)
{
	struct ips_outfeed_params params = {
		sizeof(struct ips_outfeed_params), NULL, NULL, 0, 1, 0, NULL, NULL, NULL};

	return params;
}

/* @recording: where rows go; borrowed, and closed after the outfeed. NULL: rules and callbacks
 * alone. @params may be NULL (defaults); texts are copied. On failure *@out is NULL. */
IPS_API int ips_outfeed_open(struct ips_outfeed **out, struct ips_recording *recording,
			     const struct ips_outfeed_params *params, char *message, size_t size);

/* Write what is left (the values of tier `last`, the first bad number) and free the outfeed with
 * its tensors. Accepts NULL. No other thread may use it any more. Returns 0, or the first failure
 * of the outfeed's life. */
IPS_API int ips_outfeed_close(struct ips_outfeed *outfeed, char *message, size_t size);

/* 0 while all is well, else the first failure of any call; its text in @message. */
IPS_API int ips_outfeed_status(struct ips_outfeed *outfeed, char *message, size_t size);

/* ---- tensors --------------------------------------------------------------------------------- */

struct ips_outfeed_tensor; /* opaque; owned by its outfeed */

enum ips_outfeed_kind {
	IPS_OUTFEED_ACTIVATION = 0,
	IPS_OUTFEED_GRADIENT = 1,
	IPS_OUTFEED_WEIGHT = 2,
	IPS_OUTFEED_OPTIMIZER_STATE = 3
};

enum ips_outfeed_dtype {
	IPS_OUTFEED_FLOAT32 = 0,
	IPS_OUTFEED_FLOAT16 = 1 /* IEEE binary16, as uint16_t */
};

/* What made an activation: tells which of its neurons are dead or saturated. */
enum ips_outfeed_activity {
	IPS_OUTFEED_NO_ACTIVITY = 0,
	IPS_OUTFEED_RELU = 1,
	IPS_OUTFEED_TANH = 2,
	IPS_OUTFEED_SIGMOID = 3
};

#define IPS_OUTFEED_NDIM_MAX 8

/* Start from ips_outfeed_tensor_defaults() and set what is known. */
struct ips_outfeed_tensor_params {
	size_t size;       /* sizeof(struct ips_outfeed_tensor_params) of the program */
	const char *queue; /* with `key` it names the tensor; NULL: "outfeed" */
	const char *key;
	enum ips_outfeed_kind kind;
	enum ips_outfeed_dtype dtype;
	enum ips_outfeed_activity activity; /* of activations */
	const char *layer;                  /* NULL: none */
	int64_t stage;                      /* of a pipeline; IPS_NULL: none */
	const int64_t *shape; /* of one recorded value, in C order; its last axis is that of an
			       * activation's neurons */
	int ndim;             /* 0 (a number) .. IPS_OUTFEED_NDIM_MAX */
};

/* An activation of float32, of no layer and no shape (a number). */
static inline struct ips_outfeed_tensor_params ips_outfeed_tensor_defaults(const char *key)
{
	struct ips_outfeed_tensor_params params = {sizeof(struct ips_outfeed_tensor_params),
						   NULL,
						   key,
						   IPS_OUTFEED_ACTIVATION,
						   IPS_OUTFEED_FLOAT32,
						   IPS_OUTFEED_NO_ACTIVITY,
						   NULL,
						   IPS_NULL,
						   NULL,
						   0};

	return params;
}

/* Register a tensor. @params is copied. *@out is NULL where its tier is `off`, and on failure: the
 * key is missing or taken, the shape is impossible. */
IPS_API int ips_outfeed_tensor(struct ips_outfeed *outfeed, struct ips_outfeed_tensor **out,
			       const struct ips_outfeed_tensor_params *params, char *message,
			       size_t size);

/* 1: @tensor is looked at in this step (update). Saves the work of fetching values; not needed
 * otherwise. 0 for NULL. */
IPS_API int ips_outfeed_due(const struct ips_outfeed_tensor *tensor, const struct ips_keys *keys);

/* Record one value: @values, of @count elements of the tensor's dtype, which are read within the
 * call. @count is the shape's, or less by whole rows of its first axis (a last, short batch). @keys
 * may be NULL; `every` counts keys->step, or keys->weight_update where that is not known. Weights
 * and optimizer states are recorded after each update: what changed since the last time is what
 * the update did. */
IPS_API int ips_outfeed_record(struct ips_outfeed_tensor *tensor, const struct ips_keys *keys,
			       const void *values, size_t count);

/* ---- losses ---------------------------------------------------------------------------------- */

/* In these, a mode that is not given (0) is IPS_TRAIN; rules are asked about training alone. */

/* The loss of a step, over all replicas, in order of steps; after its tensors. A row `loss` of the
 * view `metrics`, and the rules'. NaN stands for itself. */
IPS_API int ips_outfeed_loss(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss);

/* The losses of an epoch (keys->epoch); @val_loss NULL: it was not validated. Rows of the view
 * `metrics`, of mode `train` and `evaluate`, and the rules'. */
IPS_API int ips_outfeed_epoch(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss,
			      const double *val_loss);

/* The targets so far: how many of each of @classes were seen, and how many of these were predicted
 * wrong (@wrong NULL: unknown). For the rule class_imbalance; a class that never came does not
 * count. */
IPS_API int ips_outfeed_classes(struct ips_outfeed *outfeed, const struct ips_keys *keys,
				const int64_t *seen, const int64_t *wrong, int classes);

/* ---- rules and rings ------------------------------------------------------------------------- */

/* How often rule @rule was broken so far; NULL: any. -1: no rule is called so. Any thread. */
IPS_API int64_t ips_outfeed_broken(const struct ips_outfeed *outfeed, const char *rule);

/* Have the rings of tier `last` written, each at the next call that records. Safe in a signal
 * handler. (They are also written when a rule is broken, and at the end.) */
IPS_API void ips_outfeed_flush(struct ips_outfeed *outfeed);

/* ---- statistics alone ------------------------------------------------------------------------ */

/* The statistics of @count values in one pass, without a recording: all fields of @out but keys,
 * tensor_id, time_ns and what needs more than the values (inactive, update_ratio, n_changed), which
 * say "unknown". Moments are of the finite values; `std` is the population's. */
IPS_API int ips_outfeed_stats(struct ips_tensor_stats *out, const void *values, size_t count,
			      enum ips_outfeed_dtype dtype);

/* Make @into the statistics of both: exact in counts, stable in moments. What needs more than the
 * values becomes unknown; keys, tensor_id and time_ns stay. */
IPS_API void ips_outfeed_stats_merge(struct ips_tensor_stats *into,
				     const struct ips_tensor_stats *from);

/* ---- kept values read back ------------------------------------------------------------------- */

/*
 * The values that tiers `full` and `last` have kept in a recorded run, as arrays: all captures of a
 * tensor in order of time, stacked: (captures, [replicas,] shape...); replicas is there only if
 * there are two or more. A tensor that was captured in several shapes has an array for each. One
 * thread per handle.
 */
struct ips_captures; /* opaque */

struct ips_captures_array {
	const char *queue, *key;
	/* Unique: the key; "queue/key" where two queues have it; with "@" and the shape behind it
	 * for all shapes but the commonest. */
	const char *name;
	enum ips_outfeed_dtype dtype;
	int64_t shape[IPS_OUTFEED_NDIM_MAX + 2]; /* the stacked one */
	int ndim;
	int replicas;       /* of the second axis; 1: there is none */
	int uneven;         /* 1: of replicas that were not captured alike: one after the other */
	int64_t bytes;      /* of all of it */
	int64_t incomplete; /* captures left out, a part being missing (a run that was killed) */
};

/* @path: a database, or a report's directory; also one that is still recorded, of which what is
 * there now is seen. On failure *@out is NULL. */
IPS_API int ips_captures_open(struct ips_captures **out, const char *path, char *message,
			      size_t size);
IPS_API void ips_captures_close(struct ips_captures *captures); /* accepts NULL */
IPS_API int ips_captures_count(const struct ips_captures *captures);

/* Array @index, from 0; valid until the close. NULL: there is none. */
IPS_API const struct ips_captures_array *ips_captures_at(const struct ips_captures *captures,
							 int index);

/* Copy @count items of the stacked shape's first axis, from @first on, of array @index to @buffer,
 * in C order: bytes / shape[0] for each. */
IPS_API int ips_captures_read(struct ips_captures *captures, int index, int64_t first,
			      int64_t count, void *buffer, char *message, size_t size);

/* When and where the captures of array @index were: shape[0] times `replicas` entries, as they
 * stand in the array. */
IPS_API int ips_captures_keys(struct ips_captures *captures, int index, struct ips_keys *keys,
			      char *message, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* IPUSCOPE_OUTFEED_H */
