/*
 * The order of execution as numbers: what is computed from what has a greater one, whatever the
 * schedule, so that the first bad number of a run is the least.
 *
 * By weight update; within it by micro-batch, its update last; within a micro-batch forward before
 * backward; within an update the gradients in the order of the backward pass, then slots, then
 * variables. Layers and parameters by their numbers, which grow along the stages (model_order()).
 * Stages do not matter otherwise: as many as there are, the first bad number is the same.
 *
 * Pure: any thread.
 */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H

#include <stdint.h>

#include "outfeed/outfeed_policy.h"

/* What there is to be told apart. */
struct train_order {
	int layers, params, slots; /* slots: of a parameter */
	int64_t accumulation;
};

/* A value that is looked at. */
struct train_order_place {
	int64_t update, microbatch; /* microbatch: of its pipeline run; not of an update */
	char phase;                 /* enum ips_phase: F, B, U */
	enum outfeed_kind kind;
	int number; /* the layer; of all other kinds the parameter */
	int slot;   /* of optimizer state */
};

uint64_t train_order_of(const struct train_order *order, const struct train_order_place *place);

/* Less than all of @update's micro-batch @microbatch and what comes after it (the accumulation
 * count: its update), greater than all before. */
uint64_t train_order_begin(const struct train_order *order, int64_t update, int64_t microbatch);

#endif /* TRAIN_ORDER_H */
