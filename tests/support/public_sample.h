/*
 * What the tests of the public outfeed share: opening and tensors that must not fail.
 */
#ifndef PUBLIC_SAMPLE_H
#define PUBLIC_SAMPLE_H

#include "support/prof_testing.h"

#include <ipuscope/outfeed.h>

struct ips_outfeed *public_open(struct ips_recording *recording,
				const struct ips_outfeed_params *params);
void public_close(struct ips_outfeed *outfeed);

/* Of layer "dense", stage 1, shape (@rows, @columns). */
struct ips_outfeed_tensor *public_add(struct ips_outfeed *outfeed, const char *key,
				      enum ips_outfeed_kind kind, int64_t rows, int64_t columns);

/* Of training, epoch 1. */
struct ips_keys public_step(int64_t step);

#endif /* PUBLIC_SAMPLE_H */
