/*
 * A phase of a run: the executions of fit, of an evaluation or of a prediction, and their results.
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
	int64_t steps_per_execution;
	struct train_measure *measure;
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

/* Return the floats of a step's predictions on one replica: [batch, output]. */
size_t train_phase_output_floats(const struct train_phase *phase);

/* Write or read the running means, after train_phase_begin(). */
void train_phase_keep(struct train_phase *phase, struct snapshot *snapshot);

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

/* Return the steps with common results: pipeline.accumulate_outfeed sends them once a pipeline
 * run. */
int64_t train_phase_together(const struct train_phase *phase);

/* Return the loss of @step of the current execution, including its penalty: the mean over
 * replicas. */
double train_phase_loss(const struct train_phase *phase, int64_t step);

/* Return the simulated ns of a step as Keras counts them, over all replicas, including each
 * execution's fixed host cost; NaN: no device. */
double train_phase_device_step_ns(const struct train_phase *phase);

/* Has the recording failed? That is reported when it is closed; training continues. */
bool train_recording_failed(const struct train_session *session);

#endif /* TRAIN_PHASE_H */
