/*
 * How many neurons of an activation are as good as dead or stuck in one enqueue.
 *
 * A neuron is a position along the last axis of the tensor; its cases are all the others (batch and
 * space). It is inactive when less than 1 % of its cases are active. Active is, by the activation
 * that made the values:
 *
 *	relu     x > 0
 *	tanh     |x| < tanh(9.4999), which in float is 1: x is neither 1 nor -1
 *	sigmoid  sigmoid(-23) < x < sigmoid(16.99999), in float 0x1.c3527ep-34 and 0x1.fffffep-1,
 *		 the last number below 1
 *
 * NaN is not active. The bounds are the defaults of SageMaker Debugger's rule SaturatedActivation,
 * a tanh beyond +-9.4999 and a sigmoid outside (-23, 16.99999), which it compares with what goes
 * into the activation; here they are compared with what comes out, so they went through the
 * activation and were rounded to float. Near 1 floats are too coarse to tell more: a tanh is 1
 * from an input of about 9.01 on, a sigmoid 0x1.fffffep-1 from about 16.23 on, so both are found
 * saturated a little earlier than by the rule. Rounded to half precision they are 1 from about 4.51
 * (tanh) and 8.32 (sigmoid) on.
 *
 * Pure functions on the caller's data: any thread.
 */
#ifndef OUTFEED_NEURONS_H
#define OUTFEED_NEURONS_H

#include <stddef.h>
#include <stdint.h>

#include "outfeed/outfeed_tier.h"

/* @values: [cases, neurons]. Adds to @active, by neuron, the cases in which it is active;
 * @activity is not OUTFEED_NO_ACTIVITY. */
void outfeed_neurons_add(uint32_t *active, enum outfeed_activity activity, const float *values,
			 size_t cases, size_t neurons);

/* The fraction of @neurons that are inactive over @cases; NaN where there are none. */
double outfeed_neurons_inactive(const uint32_t *active, uint64_t cases, size_t neurons);

#endif /* OUTFEED_NEURONS_H */
