/*
 * Whole networks with numbers to run them on, for the tests of stages.
 */
#ifndef SUPPORT_NETWORK_H
#define SUPPORT_NETWORK_H

#include "support/math.h"
#include "trainer/models/stage.h"

#define NETWORK_BATCH 2
#define NETWORKS      5

extern const char *const networks[NETWORKS];

struct network {
	cJSON *json;
	struct model *model;
	float *initial; /* weights */
	float *input, *slopes;
	size_t input_count, output_count;
};

float *network_floats(size_t count); /* on a line; mem_free() */

/* @text as in a run file's "model", {"application": ...}. */
void network_open(struct network *net, const char *text);
void network_close(struct network *net);

#endif /* SUPPORT_NETWORK_H */
