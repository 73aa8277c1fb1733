/*
 * The order of execution as numbers. A value has a greater number than those it is computed from,
 * whatever the schedule, so that the first bad value of a run is the one with the least number.
 *
 * Values are ordered by weight update; within it by micro-batch, with the update itself last;
 * within a micro-batch forward before backward; within an update gradients in the order of the
 * backward pass, then slots, then variables. Layers and parameters are ordered by their numbers,
 * which grow along the stages (model_order()). The numbers are independent of the number of stages.
 *
 * Pure functions: any thread.
 */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H

#include <stdint.h>

#include "outfeed/outfeed_policy.h"

/* The ranges of a value's indices. */
struct train_order {
	int layers, params, slots; /* slots: per parameter */
	int64_t accumulation;
};

/* A value's indices. */
struct train_order_place {
	int64_t update, microbatch; /* microbatch: of its pipeline run; unused in an update */
	char phase;                 /* enum ips_phase: F, B, U */
	enum outfeed_kind kind;
	int number; /* the layer of an activation; of all other kinds the parameter */
	int slot;   /* of optimizer state */
};

uint64_t train_order_of(const struct train_order *order, const struct train_order_place *place);

/* Return a bound: at most the numbers of @update's micro-batch @microbatch and all after it,
 * greater than all before it. The accumulation count stands for the update itself. */
uint64_t train_order_begin(const struct train_order *order, int64_t update, int64_t microbatch);

#endif /* TRAIN_ORDER_H */
