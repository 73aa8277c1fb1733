/*
 * What the executions of a phase came to: each step's loss and metrics, and Keras's running means
 * of them.
 *
 * Threading: the main thread's, between executions; train_phase_step() reads what the workers have
 * finished.
 */
#include <math.h>

#include "trainer/train_phase.h"
#include "trainer/train_record.h"

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
	const int64_t replicas = phase->session->layout->replicas;
	const double penalty = penalty_of(phase, step);
	double loss = 0;

	for (int64_t r = 0; r < replicas; r++)
		loss += phase->losses[step * replicas + r] + penalty;
	return loss / (double)replicas;
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

static void add_metrics(struct train_phase *phase, int64_t place)
{
	const int count = phase->measure->metrics.count;
	const struct metric_sum *sums = phase->sums + place * count;

	for (int m = 0; m < count; m++) {
		phase->metrics[m].total += sums[m].total;
		phase->metrics[m].count += sums[m].count;
	}
}

int64_t train_phase_items(const struct train_phase *phase, int64_t step, int64_t replica)
{
	return dataset_feed_items(phase->feed, (int)replica,
				  phase->session->execution.first_step + step);
}

/* Keras weighs a batch's loss with its items: a short one counts for as many as it has. */
static void add_loss(struct train_phase *phase, double loss, int64_t step, int64_t replica)
{
	const int64_t weight = phase->session->run->data.drop_remainder
				       ? 1
				       : train_phase_items(phase, step, replica);

	phase->loss.total += loss * (double)weight;
	phase->loss.count += weight;
}

static void add_results(struct train_phase *phase)
{
	struct train_session *session = phase->session;
	const struct train_execution *execution = &session->execution;
	const int64_t replicas = session->layout->replicas;

	for (int64_t i = 0; i < execution->steps; i++) {
		const double penalty = penalty_of(phase, i);

		for (int64_t r = 0; r < replicas; r++) {
			add_loss(phase, phase->losses[i * replicas + r] + penalty, i, r);
			add_metrics(phase, i * replicas + r);
		}
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
	const int64_t replicas = session->layout->replicas, together = train_phase_together(phase);

	for (int64_t i = together - 1; i < execution->steps; i += together) {
		double loss = 0;

		for (int64_t r = 0; r < replicas; r++) {
			train_phase_step(phase, i, r, phase->values);
			loss += phase->values[0];
			phase->loss.total += phase->values[0];
			phase->loss.count++;
			for (int m = 0; m < phase->measure->metrics.count; m++) {
				phase->metrics[m].total += phase->values[m + 1];
				phase->metrics[m].count++;
			}
		}
		train_record_metric(session, execution->mode, execution->epoch,
				    execution->execution, execution->first_step + i, "loss",
				    loss / (double)replicas);
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
