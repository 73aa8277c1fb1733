/*
 * A phase of a run: the executions of fit, of an evaluation or of a prediction, one after the
 * other, and what they come to.
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
	struct train_screen *screen; /* NULL: nothing is shown */
	enum ips_mode mode;
	int64_t steps_per_execution;
	struct train_measure *measure;
	struct dataset_feed *feed;
	float *class_weights; /* fit.class_weight; NULL: none */
	/* Of an execution, as struct train_execution has them. */
	double *losses, *penalties;
	double *sums;
	float *outputs; /* prediction alone */
	/* Called when an execution is laid out and the workers still rest; may be NULL. */
	void (*planned)(void *user);
	void *user;
	double *values;  /* room for those of one step */
	double *step;    /* and for the metrics' states of steps that belong together */
	double *addends; /* the loss and states of all replicas, number by number */
	bool gathered;   /* the execution's results of other ranks are there */
	int64_t judged;  /* steps of the execution whose losses the health rules have seen */
	/* Since train_phase_begin(), over replicas: Keras's running means and counts. */
	double loss, weight; /* the sum of losses, and of what they weigh */
	double *states;      /* of all metrics */
};

/* Batches come from the beginning: of the set in evaluation and prediction, which a phase goes
 * through once; of all passes in training. Evaluation and prediction give every replica the first
 * one's weights, so that moving statistics are those that are saved. */
enum status train_phase_new(struct train_phase **out, struct train_session *session,
			    enum ips_mode mode, struct train_screen *screen, struct err *err);
void train_phase_free(struct train_phase *phase); /* accepts NULL */

/* Means begin anew. */
void train_phase_begin(struct train_phase *phase);

/* Items that the batch of @step (of the present execution) has on @replica. */
int64_t train_phase_items(const struct train_phase *phase, int64_t step, int64_t replica);

/* Of a step's predictions on one replica: [batch, output]. */
size_t train_phase_output_floats(const struct train_phase *phase);

/* Write or read the running means, after train_phase_begin(). */
void train_phase_keep(struct train_phase *phase, struct snapshot *snapshot);

/* One Engine::run; @epoch IPS_NULL: none. */
enum status train_phase_execute(struct train_phase *phase, int64_t epoch, struct err *err);

/* The means of what has been executed since the beginning, as rows. */
void train_phase_record(const struct train_phase *phase, int64_t epoch);

/* Loss and metrics of @step of the present execution on @replica alone, in the order of the
 * figures; with pipeline.accumulate_outfeed those of its pipeline run: the mean over micro-batches.
 * @values has room for them. */
void train_phase_step(const struct train_phase *phase, int64_t step, int64_t replica,
		      double *values);

/* Steps of the present execution that all replicas have done: their results are there. */
int64_t train_phase_steps_done(const struct train_phase *phase);

/* Steps that have results in common: pipeline.accumulate_outfeed sends them once a pipeline run. */
int64_t train_phase_together(const struct train_phase *phase);

/* The loss of @step of the present execution, its penalty in it: the mean over replicas. */
double train_phase_loss(const struct train_phase *phase, int64_t step);

/* Simulated ns of a step as Keras counts them, over all replicas, with each execution's fixed host
 * cost; NaN: no device. */
double train_phase_device_step_ns(const struct train_phase *phase);

/* A recording that failed is reported when it is closed; training goes on. */
bool train_recording_failed(const struct train_session *session);

#endif /* TRAIN_PHASE_H */
