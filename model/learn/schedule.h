/*
 * Learning-rate schedules, one table row each: the rate of a weight update by its number, from
 * 0.
 *
 * Formulas are those of tf.keras.optimizers.schedules in TensorFlow 2.6, computed in double; s
 * is the update, S decay_steps, r the initial rate:
 *
 *	ExponentialDecay         r decay_rate^(s / S); s / S is rounded down with staircase
 *	InverseTimeDecay         r / (1 + decay_rate s / S), likewise
 *	PiecewiseConstantDecay   values[i], i the number of boundaries below s
 *	PolynomialDecay          (r - end) (1 - s / S)^power + end, s at most S; with cycle, S is
 *	                         replaced by its first multiple that is not below s
 *	CosineDecay              r ((1 - alpha) (1 + cos(pi s / S)) / 2 + alpha), s at most S
 *	CosineDecayRestarts      the same, restarted in periods of first_decay_steps t_mul^i with the
 *	                         cosine scaled by m_mul^i
 *
 * Plain data: nothing to free.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "common/json.h"

#define SCHEDULE_BOUNDARIES 32 /* limit of PiecewiseConstantDecay */

struct schedule_ops;

struct schedule {
	const struct schedule_ops *ops; /* NULL: a constant rate */
	double rate;                    /* the initial one */
	double steps;
	union {
		struct {
			double rate;
			bool staircase;
		} decay;
		struct {
			double end, power;
			bool cycle;
		} polynomial;
		struct {
			double alpha, t_mul, m_mul;
		} cosine;
		struct {
			int64_t boundaries[SCHEDULE_BOUNDARIES];
			double values[SCHEDULE_BOUNDARIES + 1];
			int count; /* of the boundaries */
		} piecewise;
	};
};

/* Read a number, or {class_name, config}. */
enum status schedule_get(struct schedule *out, const struct json_at *at, struct err *err);
struct schedule schedule_constant(double rate);
double schedule_rate(const struct schedule *schedule, int64_t update);
const char *schedule_name(const struct schedule *schedule); /* NULL: a constant rate */

const char *schedule_kind_name(int index); /* of the table's row; NULL after the last */

#endif /* SCHEDULE_H */
