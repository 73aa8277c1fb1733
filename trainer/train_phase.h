/*
 * A phase of a run: the executions of fit, of an evaluation or of a prediction, and their results,
 * down to those of a micro-batch.
 *
 * Threading: a phase belongs to the main thread. Workers write the results of an execution while it
 * runs.
 */
#ifndef TRAIN_PHASE_H
#define TRAIN_PHASE_H

#include "trainer/callbacks/callback.h"
#include "trainer/learn/measure_run.h"
#include "trainer/train_screen.h"
#include "trainer/train_session.h"

struct train_phase {
	struct train_session *session;
	struct train_screen *screen; /* NULL: print nothing */
	enum ips_mode mode;
	const struct plan_program *program;
	struct train_figures *figures;
	struct dataset_feed *feed;
	struct class_weights class_weights; /* fit.class_weight */
	/* Results of an execution, laid out as struct train_execution describes. */
	double *losses, *penalties;
	double *sums;
	float *outputs; /* prediction only */
	/* Called when an execution is planned and the workers are still idle; may be NULL. */
	void (*planned)(void *user);
	void *user;
	double *values;    /* buffer for the values of one step */
	double *step;      /* buffer for the metrics' states of steps with common results */
	double *addends;   /* the loss and states of all replicas, grouped by number */
	bool gathered;     /* the execution's results of other ranks have arrived */
	int64_t evaluated; /* steps of the execution whose losses the health rules have seen */
	/* Running means and counts as in Keras, since train_phase_begin(), over replicas. */
	double loss, weight; /* the sum of losses, and of their weights */
	double *states;      /* of all metrics */
};

/* Batches start at the beginning: in training of all passes; in evaluation and prediction of the
 * set, which a phase visits once. Evaluation and prediction copy the first replica's weights to
 * every replica, so that moving statistics are those that are saved. */
enum status train_phase_new(struct train_phase **out, struct train_session *session,
			    enum ips_mode mode, struct train_screen *screen, struct err *err);
void train_phase_free(struct train_phase *phase); /* accepts NULL */

/* Reset the running means. */
void train_phase_begin(struct train_phase *phase);

/* Return the number of items in the batch of @step (of the current execution) on @replica. */
int64_t train_phase_items(const struct train_phase *phase, int64_t step, int64_t replica);

/* Write or read the running means, after train_phase_begin(). */
void train_phase_snapshot(struct train_phase *phase, struct snapshot *snapshot);

/* Run one Engine::run; @epoch IPS_NULL: none. */
enum status train_phase_execute(struct train_phase *phase, int64_t epoch, struct err *err);

/* Record the running means as rows. */
void train_phase_record(const struct train_phase *phase, int64_t epoch);

/* Compute loss and metrics of @step of the current execution on @replica alone, in the order of the
 * figures; with pipeline.accumulate_outfeed those of its pipeline run: the mean over micro-batches.
 * @values has room for them. */
void train_phase_step(const struct train_phase *phase, int64_t step, int64_t replica,
		      double *values);

/* Return the steps of the current execution that all replicas have completed. */
int64_t train_phase_steps_done(const struct train_phase *phase);

/* Return the simulated ns of a step as Keras counts them, over all replicas, including each
 * execution's fixed host cost; NaN: no device. */
double train_phase_device_step_ns(const struct train_phase *phase);

/* Has the recording failed? That is reported when it is closed; training continues. */
bool train_recording_failed(const struct train_session *session);

/* ---- a micro-batch --------------------------------------------------------------------------- */

/*
 * The measurements of the last stage on a micro-batch: the loss with its gradient, and the metrics.
 *
 * A model of several outputs produces one row per item that concatenates all outputs (model.h), and
 * the data's targets have the same layout. Losses and metrics need each output's rows contiguously,
 * so parts are copied out, and gradients back. Results are sums in a fixed order. Nothing is
 * allocated.
 */

struct train_measured {
	const struct model *model;
	const struct loss_list *losses;
	const struct metric_list *metrics;
	const float *outputs;
	const float *logits;               /* NULL: the loss does not use them */
	struct targets targets;            /* of the items, without masks */
	const float *masks[MODEL_OUTPUTS]; /* NULL: all rows of the output count */
	int64_t items, there;         /* there: items without the padding, which is at the end */
	float *gradient;              /* shaped like the outputs; NULL: not needed */
	float *parts;                 /* train_measure_parts() floats; NULL if that is 0 */
	struct class_counts *classes; /* NULL: not needed */
	double *states;               /* of the metrics, written */
	float *each;                  /* losses of one output's rows, written; NULL: not needed */
};

/* Return the floats needed to copy out the parts of @batch items; 0: the model has one output. */
size_t train_measure_parts(const struct model *model, int64_t batch);

/* Return the loss, without the weights' penalties. */
double train_measure_run(const struct train_measured *measured);

#endif /* TRAIN_PHASE_H */
