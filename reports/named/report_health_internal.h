/*
 * State of the re-evaluation of a run's health rules.
 */
#ifndef REPORT_HEALTH_INTERNAL_H
#define REPORT_HEALTH_INTERNAL_H

#include "common/map.h"
#include "common/arena.h"
#include "reports/named/report_health.h"

/* A tensor of one replica of one process; texts belong to the arena and are NULL as in the file. */
struct health_tensor {
	const char *queue, *key, *layer;
	int64_t rank, replica, stage;
	struct outfeed_health_tensor *state; /* NULL: a kind without rules */
};

/* The state machine of one process. */
struct health_process {
	struct health_evaluation *evaluation;
	int64_t rank;
	struct outfeed_health *health;
};

struct health_found {
	struct outfeed_hit hit; /* texts belong to the arena */
	int64_t rank;
	int64_t order; /* breaks ties of equal times */
};

struct health_evaluation {
	struct prof_db *db;
	const struct outfeed_health_rules *rules;
	struct arena arena;
	struct health_process **processes;
	size_t process_count, process_capacity;
	struct health_tensor *tensors; /* indexed by a hit's tensor_id */
	size_t tensor_count, tensor_capacity;
	struct map map; /* index of the tensors */
	struct health_found *hits;
	size_t hit_count, hit_capacity;
	struct err *err; /* sticky: every step returns at once after a failure */
};

/* Evaluate the rules on all rows of the database and collect the hits, ordered by time. The result is
 * in evaluation->err. Call report__health_fini() afterwards, also on failure. */
void report__health_evaluate(struct health_evaluation *evaluation);
void report__health_fini(struct health_evaluation *evaluation);

#endif /* REPORT_HEALTH_INTERNAL_H */
