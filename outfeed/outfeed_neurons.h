/*
 * How many neurons of an activation are as good as dead or stuck in one enqueue.
 *
 * A neuron is a position along the last axis of the tensor; its cases are all the others (batch and
 * space). It is inactive when less than 1 % of its cases are active. Active is, by the activation
 * that made the values (docs/health.md names the source of the bounds):
 * relu: x > 0; tanh: |x| < tanh(9.4999); sigmoid: sigmoid(-23) < x < sigmoid(16.99999), bounds
 * rounded to float. NaN is not active.
 *
 * Pure functions on the caller's data: any thread.
 */
#ifndef OUTFEED_NEURONS_H
#define OUTFEED_NEURONS_H

#include <stddef.h>
#include <stdint.h>

#include "outfeed/outfeed_tier.h"

/* @values: [cases, neurons]. Adds to @active, by neuron, the cases in which it is active. */
void outfeed_neurons_add(uint32_t *active, enum outfeed_activity activity, const float *values,
			 size_t cases, size_t neurons);

/* The fraction of @neurons that are inactive over @cases; NaN where there are none. */
double outfeed_neurons_inactive(const uint32_t *active, uint64_t cases, size_t neurons);

#endif /* OUTFEED_NEURONS_H */
