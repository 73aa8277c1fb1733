/*
 * What the executions of a phase came to: each step's loss and metrics, and Keras's running means
 * of them.
 *
 * Threading: the main thread's, between executions; train_phase_step() reads what the workers have
 * finished.
 */
#include <math.h>

#include "trainer/learn/metric_run.h"
#include "trainer/train_phase.h"
#include "trainer/train_record.h"
#include "trainer/train_tree.h"

/* What the regularisers added to each loss of @step; the weights change with the pipeline run. */
static double penalty_of(const struct train_phase *phase, int64_t step)
{
	const struct train_session *session = phase->session;
	const int stages = session->layout->stages;
	const double *penalties =
		phase->penalties + step / session->execution.microbatches * stages;
	double sum = 0;

	for (int s = 0; session->regularized && s < stages; s++)
		sum += penalties[s];
	return sum;
}

double train_phase_loss(const struct train_phase *phase, int64_t step)
{
	const int replicas = phase->session->layout->replicas;

	return train_tree_sum(phase->losses + step * replicas, replicas) / (double)replicas +
	       penalty_of(phase, step);
}

static double mean_of(const struct metric_sum *sum)
{
	return sum->count > 0 ? sum->total / (double)sum->count : NAN;
}

int64_t train_phase_together(const struct train_phase *phase)
{
	return phase->session->run->pipeline.accumulate_outfeed
		       ? phase->session->execution.microbatches
		       : 1;
}

void train_phase_step(const struct train_phase *phase, int64_t step, int64_t replica,
		      double *values)
{
	const int64_t replicas = phase->session->layout->replicas;
	const int64_t together = train_phase_together(phase), first = step / together * together;
	const int count = phase->measure->metrics.count;

	for (int i = 0; i <= count; i++)
		values[i] = 0;
	for (int64_t s = first; s < first + together; s++) {
		const int64_t place = s * replicas + replica;

		values[0] += phase->losses[place];
		for (int m = 0; m < count; m++)
			values[m + 1] += mean_of(&phase->sums[place * count + m]);
	}
	for (int i = 0; i <= count; i++)
		values[i] /= (double)together;
	values[0] += penalty_of(phase, first);
}

int64_t train_phase_items(const struct train_phase *phase, int64_t step, int64_t replica)
{
	return dataset_feed_items(phase->feed, (int)replica,
				  phase->session->execution.first_step + step);
}

/* Where figure @figure (0: the loss) of @replica waits to be summed over replicas. */
static double *addend_of(const struct train_phase *phase, int figure, int64_t replica)
{
	return phase->addends + figure * phase->session->layout->replicas + replica;
}

static void add_addends(struct train_phase *phase)
{
	const int replicas = phase->session->layout->replicas;

	phase->loss.total += train_tree_sum(addend_of(phase, 0, 0), replicas);
	for (int m = 0; m < phase->measure->metrics.count; m++)
		phase->metrics[m].total += train_tree_sum(addend_of(phase, m + 1, 0), replicas);
}

/* Keras weighs a batch's loss with its items: a short one counts for as many as it has. */
static void add_step(struct train_phase *phase, int64_t step)
{
	const int64_t replicas = phase->session->layout->replicas;
	const int count = phase->measure->metrics.count;
	const double penalty = penalty_of(phase, step);

	for (int64_t r = 0; r < replicas; r++) {
		const int64_t place = step * replicas + r;
		const int64_t weight = phase->session->run->data.drop_remainder
					       ? 1
					       : train_phase_items(phase, step, r);

		*addend_of(phase, 0, r) = (phase->losses[place] + penalty) * (double)weight;
		phase->loss.count += weight;
		for (int m = 0; m < count; m++) {
			*addend_of(phase, m + 1, r) = phase->sums[place * count + m].total;
			phase->metrics[m].count += phase->sums[place * count + m].count;
		}
	}
	add_addends(phase);
}

static void add_results(struct train_phase *phase)
{
	struct train_session *session = phase->session;
	const struct train_execution *execution = &session->execution;

	for (int64_t i = 0; i < execution->steps; i++) {
		add_step(phase, i);
		train_record_metric(session, execution->mode, execution->epoch,
				    execution->execution, execution->first_step + i, "loss",
				    train_phase_loss(phase, i));
	}
}

/* One result for each pipeline run and replica, and all weigh the same. */
static void add_accumulated(struct train_phase *phase)
{
	struct train_session *session = phase->session;
	const struct train_execution *execution = &session->execution;
	const int replicas = session->layout->replicas;
	const int64_t together = train_phase_together(phase);
	const int count = phase->measure->metrics.count;

	for (int64_t i = together - 1; i < execution->steps; i += together) {
		for (int64_t r = 0; r < replicas; r++) {
			train_phase_step(phase, i, r, phase->values);
			for (int f = 0; f <= count; f++)
				*addend_of(phase, f, r) = phase->values[f];
		}
		phase->loss.count += replicas;
		for (int m = 0; m < count; m++)
			phase->metrics[m].count += replicas;
		add_addends(phase);
		train_record_metric(session, execution->mode, execution->epoch,
				    execution->execution, execution->first_step + i, "loss",
				    train_tree_sum(addend_of(phase, 0, 0), replicas) /
					    (double)replicas);
	}
}

static void update_figures(struct train_phase *phase)
{
	struct train_figures *figures = &phase->measure->figures;

	if (figures->count == 0)
		return;
	figures->values[0] = mean_of(&phase->loss);
	for (int m = 0; m + 1 < figures->count; m++)
		figures->values[m + 1] = mean_of(&phase->metrics[m]);
}

void train_phase_gather(struct train_phase *phase)
{
	if (phase->mode != IPS_PREDICT && train_phase_together(phase) > 1)
		add_accumulated(phase);
	else if (phase->mode != IPS_PREDICT)
		add_results(phase);
	update_figures(phase);
}

void train_phase_begin(struct train_phase *phase)
{
	phase->loss = (struct metric_sum){0};
	for (int m = 0; m < phase->measure->metrics.count; m++)
		phase->metrics[m] = (struct metric_sum){0};
	update_figures(phase);
}

void train_phase_record(const struct train_phase *phase, int64_t epoch)
{
	const struct train_figures *figures = &phase->measure->figures;

	for (int i = 0; phase->loss.count > 0 && i < figures->count; i++)
		train_record_metric(phase->session, phase->mode, epoch, IPS_NULL, IPS_NULL,
				    figures->names[i], figures->values[i]);
}
