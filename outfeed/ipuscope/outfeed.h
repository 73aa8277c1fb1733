/*
 * ipuscope/outfeed.h: inspect the tensors of your own trainer, in a recording of
 * ipuscope/profiler.h: statistics, health rules, the first non-finite number, captured values.
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
 * ipu-view, ipu-report and sqlite3 then read the file like one of ipu-train's.
 *
 * Off: with a NULL outfeed or tensor every call does nothing and succeeds.
 *
 * Threads: one thread opens and closes an outfeed; one thread registers tensors while none is
 * recorded. Any number of threads may record, each tensor and replica in one at a time. One
 * thread, which may be any of those, passes losses. The order of execution, which determines the
 * first non-finite number, is the order in which calls of ips_outfeed_record() begin: record a
 * value computed from a tensor after the tensor itself.
 *
 * Functions that can fail return 0 or a positive status; ips_status_text() of ipuscope/profiler.h
 * returns its text, and @message (may be NULL; of @size bytes) gets one line that names the
 * place, or "". A NULL that is not allowed is such an error. ips_outfeed_status() has the
 * failures of functions without a message.
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

/* A violated health rule. Texts are valid until the call returns. */
struct ips_outfeed_hit {
	const char *rule;  /* "vanishing"; the view `health_rules` lists all */
	const char *key;   /* of the tensor; or "loss", "val_loss", "classes"; NULL: none */
	const char *layer; /* NULL: none */
	struct ips_keys keys;
	int64_t time_ns;
	double value, threshold; /* the measured value, the limit */
};

/* Start from ips_outfeed_defaults() and set the members that differ. */
struct ips_outfeed_params {
	size_t size; /* sizeof(struct ips_outfeed_params) in the program */
	/* Which tensors are recorded at which tier: the run file's outfeed.capture. A tier (off,
	 * health, counts, stats, histogram, full, last N), or rules as JSON text:
	 * [{"tensors": "dense*", "kind": "gradient", "tier": "full", "every": 10}].
	 * NULL: stats. */
	const char *capture;
	/*
	 * Changes of the health rules as JSON text, the run file's `health.rules`:
	 * {"vanishing": {"threshold": 1e-9, "patience": 5}, "overfit": false}. NULL: the defaults.
	 */
	const char *health;
	int without_health; /* 1: no health rules */
	int replicas;       /* keys.replica is below it; at least 1 */
	int64_t budget;     /* limit of recorded bytes; beyond it, tiers are lowered and @say gets a
			       line. 0: no limit */
	/* Print a line for people (a violated rule, a lowered tier), without "\n"; the first 20 of
	 * each rule, then one that there are more. NULL: none. */
	void (*say)(void *user, const char *line);
	/* Called for a violated rule, after its row is recorded. NULL: none. */
	void (*hit)(void *user, const struct ips_outfeed_hit *hit);
	/* For both. The thread whose call found the violation calls them, one at a time; they must
	 * not call this library, except ips_outfeed_broken() and ips_outfeed_flush(). */
	void *user;
};

static inline struct ips_outfeed_params ips_outfeed_defaults(void)
{
	struct ips_outfeed_params params = {
		sizeof(struct ips_outfeed_params), NULL, NULL, 0, 1, 0, NULL, NULL, NULL};

	return params;
}

/* @recording gets the rows; it is borrowed, and must be closed after the outfeed. NULL: only rules
 * and callbacks. @params may be NULL (defaults); texts are copied. On failure *@out is NULL. */
IPS_API int ips_outfeed_open(struct ips_outfeed **out, struct ips_recording *recording,
			     const struct ips_outfeed_params *params, char *message, size_t size);

/* Write what remains (the values of tier `last`, the first non-finite number) and free the outfeed
 * with its tensors. Accepts NULL. No other thread may use it any more. Returns 0, or the first
 * failure since it was opened. */
IPS_API int ips_outfeed_close(struct ips_outfeed *outfeed, char *message, size_t size);

/* Return 0, or the first failure of any call, with its text in @message. */
IPS_API int ips_outfeed_status(struct ips_outfeed *outfeed, char *message, size_t size);

/* ---- tensors --------------------------------------------------------------------------------- */

struct ips_outfeed_tensor; /* opaque; owned by its outfeed */

enum ips_outfeed_kind {
	IPS_OUTFEED_ACTIVATION = 0,
	IPS_OUTFEED_GRADIENT = 1,
	IPS_OUTFEED_WEIGHT = 2,
	IPS_OUTFEED_OPTIMIZER_STATE = 3
};

/* Captured values keep their type. Statistics, histograms and rules are those of the values
 * rounded to float; a finite number beyond the range of float counts as the float of that sign that
 * is nearest to it and neither 0 nor infinite. */
enum ips_outfeed_dtype {
	IPS_OUTFEED_FLOAT32 = 0,
	IPS_OUTFEED_FLOAT16 = 1,  /* IEEE binary16, as uint16_t */
	IPS_OUTFEED_BFLOAT16 = 2, /* the upper 16 bits of a float, as uint16_t */
	IPS_OUTFEED_FLOAT64 = 3,
	IPS_OUTFEED_INT8 = 4,
	IPS_OUTFEED_UINT8 = 5,
	IPS_OUTFEED_INT16 = 6,
	IPS_OUTFEED_INT32 = 7,
	IPS_OUTFEED_INT64 = 8,
	IPS_OUTFEED_BOOL = 9 /* a byte; 0 is false */
};

/* The activation function: defines which neurons are dead or saturated. */
enum ips_outfeed_activity {
	IPS_OUTFEED_NO_ACTIVITY = 0,
	IPS_OUTFEED_RELU = 1,
	IPS_OUTFEED_TANH = 2,
	IPS_OUTFEED_SIGMOID = 3
};

#define IPS_OUTFEED_NDIM_MAX 8

/* Start from ips_outfeed_tensor_defaults() and set the known members. */
struct ips_outfeed_tensor_params {
	size_t size;       /* sizeof(struct ips_outfeed_tensor_params) in the program */
	const char *queue; /* together with `key` identifies the tensor; NULL: "outfeed" */
	const char *key;
	enum ips_outfeed_kind kind;
	enum ips_outfeed_dtype dtype;
	enum ips_outfeed_activity activity; /* of activations */
	const char *layer;                  /* NULL: none */
	int64_t stage;                      /* of a pipeline; IPS_NULL: none */
	const int64_t *shape; /* of one recorded value, in C order; the last axis of an activation
			       * are its neurons */
	int ndim;             /* 0 (a scalar) .. IPS_OUTFEED_NDIM_MAX */
};

/* An activation of float32, without a layer, a scalar. */
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

/* Register a tensor. @params is copied. *@out is NULL if its tier is `off`, and on failure: the
 * key is missing or already registered, the key, queue or layer has more than IPS_NAME_MOST bytes,
 * or the shape is invalid. */
IPS_API int ips_outfeed_tensor(struct ips_outfeed *outfeed, struct ips_outfeed_tensor **out,
			       const struct ips_outfeed_tensor_params *params, char *message,
			       size_t size);

/* Return 1 if @tensor is recorded in this step (update). Optional: saves the work of fetching
 * values that are not needed. 0 for NULL. */
IPS_API int ips_outfeed_due(const struct ips_outfeed_tensor *tensor, const struct ips_keys *keys);

/* Record one value: @values, @count elements of the tensor's dtype, which are read during the call.
 * @count is that of the shape, or less by whole rows of its first axis (a last, short batch). @keys
 * may be NULL, in all functions: those of ips_thread_set_keys(). `every` counts keys->step, or
 * keys->weight_update if that is unknown. Record weights and optimizer states after each update:
 * the difference to the previous value is the effect of the update. */
IPS_API int ips_outfeed_record(struct ips_outfeed_tensor *tensor, const struct ips_keys *keys,
			       const void *values, size_t count);

/* ---- losses ---------------------------------------------------------------------------------- */

/* In these, a mode of 0 means IPS_TRAIN; rules are checked for training only. */

/* Pass the loss of a step, over all replicas, in order of steps; after its tensors. Adds a row
 * `loss` to the view `metrics` and checks the rules. NaN is recorded as such. */

IPS_API int ips_outfeed_loss(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss);

/* Pass the losses of an epoch (keys->epoch); @val_loss NULL: no validation. Adds rows to the view
 * `metrics`, of mode `train` and `evaluate`, and checks the rules. */
IPS_API int ips_outfeed_epoch(struct ips_outfeed *outfeed, const struct ips_keys *keys, double loss,
			      const double *val_loss);

/* Pass the targets so far: the number seen of each of @classes, and how many of these were
 * mispredicted (@wrong NULL: unknown). For the rule class_imbalance; a class with no samples is
 * ignored. */
IPS_API int ips_outfeed_classes(struct ips_outfeed *outfeed, const struct ips_keys *keys,
				const int64_t *seen, const int64_t *wrong, int classes);

/* ---- rules and rings ------------------------------------------------------------------------- */

/* Return how often @rule was violated so far; NULL: any rule. -1: no such rule. Any thread. */
IPS_API int64_t ips_outfeed_broken(const struct ips_outfeed *outfeed, const char *rule);

/* Request that the rings of tier `last` are written, each at the next call that records. Safe in a
 * signal handler. (They are also written when a rule is violated, and at the end.) */
IPS_API void ips_outfeed_flush(struct ips_outfeed *outfeed);

/* ---- statistics alone ------------------------------------------------------------------------ */

/* Compute the statistics of @count values in one pass, without a recording: all fields of @out.
 * Keys, tensor_id, time_ns and what needs more than the values (inactive, update_ratio,
 * n_changed) are unknown. Moments are of the finite values; `std` is the population's. */
IPS_API int ips_outfeed_stats(struct ips_tensor_stats *out, const void *values, size_t count,
			      enum ips_outfeed_dtype dtype);

/* Merge @from into @into: exact in counts, stable in moments. What needs more than the values
 * becomes unknown; keys, tensor_id and time_ns stay. */
IPS_API void ips_outfeed_stats_merge(struct ips_tensor_stats *into,
				     const struct ips_tensor_stats *from);

/* ---- captured values ------------------------------------------------------------------------- */

/*
 * The values of a recorded run that tiers `full` and `last` have recorded, as arrays: all captures
 * of a tensor in order of time, stacked: (captures, [replicas,] shape...); the axis of replicas is
 * there only for two or more. A tensor that was captured in several shapes has an array for each.
 * One thread per handle.
 */
struct ips_captures; /* opaque */

struct ips_captures_array {
	const char *queue, *key;
	/* Unique: the key; "queue/key" if two queues have it; followed by "@" and the shape for all
	 * shapes but the most frequent. */
	const char *name;
	enum ips_outfeed_dtype dtype;
	int64_t shape[IPS_OUTFEED_NDIM_MAX + 2]; /* of the stacked array */
	int ndim;
	int replicas;       /* length of the second axis; 1: no such axis */
	int uneven;         /* 1: replicas captured at different steps: no axis of replicas */
	int64_t bytes;      /* of the whole array */
	int64_t incomplete; /* captures omitted because parts are missing (a killed run) */
};

/* @path: a database, or a report's directory; also one that is still being recorded, whose present
 * contents are read. On failure *@out is NULL. */
IPS_API int ips_captures_open(struct ips_captures **out, const char *path, char *message,
			      size_t size);
IPS_API void ips_captures_close(struct ips_captures *captures); /* accepts NULL */
IPS_API int ips_captures_count(const struct ips_captures *captures);

/* Return array @index, from 0; valid until the close. NULL: no such array. */
IPS_API const struct ips_captures_array *ips_captures_at(const struct ips_captures *captures,
							 int index);

/* Copy @count items of the stacked shape's first axis, starting at @first, of array @index to
 * @buffer, in C order: bytes / shape[0] for each. */
IPS_API int ips_captures_read(struct ips_captures *captures, int index, int64_t first,
			      int64_t count, void *buffer, char *message, size_t size);

/* Read the keys of the captures of array @index: shape[0] times `replicas` entries, in the order of
 * the array. */
IPS_API int ips_captures_keys(struct ips_captures *captures, int index, struct ips_keys *keys,
			      char *message, size_t size);

#ifdef __cplusplus
}

/* Names for C++, where a function hides the struct of its name unless `struct` precedes it. */
namespace ipuscope
{
typedef struct ips_outfeed outfeed;
typedef struct ips_outfeed_tensor outfeed_tensor;
} // namespace ipuscope
#endif

#endif /* IPUSCOPE_OUTFEED_H */
