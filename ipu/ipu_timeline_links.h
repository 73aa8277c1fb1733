/*
 * The links between the IPUs of a replica: a ladder whose rungs are the pairs.
 *
 * IPU 2k and 2k + 1 are a pair with four links between them; two links lead from each to its
 * neighbour up and two to its neighbour down the ladder. A copy follows its own side to the target
 * pair, then crosses. Copies on a link share its rate.
 */
#ifndef IPU_TIMELINE_LINKS_H
#define IPU_TIMELINE_LINKS_H

#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_target.h"

struct ipu_links {
	int64_t *load; /* bytes on each directed link in the current step; owned */
	int pairs;
};

enum status ipu__links_init(struct ipu_links *links, int ipus, struct err *err);
void ipu__links_fini(struct ipu_links *links);
void ipu__links_clear(struct ipu_links *links);
void ipu__links_add(struct ipu_links *links, int from, int to, int64_t bytes);
/*
 * Cycles of a copy from @from to @to after all copies of the step were added: its slowest link's.
 */
int64_t ipu__links_cycles(const struct ipu_links *links, const struct ipu_target *target, int from,
			  int to);

#endif /* IPU_TIMELINE_LINKS_H */
