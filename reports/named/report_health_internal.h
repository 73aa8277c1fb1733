/*
 * A run on its way through the health rules.
 */
#ifndef REPORT_HEALTH_INTERNAL_H
#define REPORT_HEALTH_INTERNAL_H

#include "common/map.h"
#include "common/arena.h"
#include "reports/named/report_health.h"

/* A tensor of a replica of a process; texts are the arena's, NULL where the file has NULL. */
struct health_tensor {
	const char *queue, *key, *layer;
	int64_t rank, replica, stage;
	struct outfeed_health_tensor *state; /* NULL: of no kind that rules know */
};

/* The rules of one process. */
struct health_process {
	struct health_judgement *judgement;
	int64_t rank;
	struct outfeed_health *health;
};

struct health_found {
	struct outfeed_hit hit; /* its texts are the arena's */
	int64_t rank;
	int64_t order; /* among hits of the same time */
};

struct health_judgement {
	struct prof_db *db;
	const struct outfeed_health_rules *rules;
	struct arena arena;
	struct health_process **processes;
	size_t process_count, process_capacity;
	struct health_tensor *tensors; /* a hit's tensor_id is an index */
	size_t tensor_count, tensor_capacity;
	struct map map; /* of the tensors */
	struct health_found *hits;
	size_t hit_count, hit_capacity;
	bool failed; /* memory is short */
};

/* Judge all that @judgement->db has recorded; the hits are in it, in order of time. Afterwards
 * report__health_fini(), whatever came out. */
enum status report__health_judge(struct health_judgement *judgement, struct err *err);
void report__health_fini(struct health_judgement *judgement);

#endif /* REPORT_HEALTH_INTERNAL_H */
