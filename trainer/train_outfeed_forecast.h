/*
 * What looking at tensors will take, before the run: the same for ipu-train's line and for
 * ipu-plan.
 *
 * Pure functions of a session that is planned (train_outfeed_plan_session()): one thread.
 */
#ifndef TRAIN_OUTFEED_FORECAST_H
#define TRAIN_OUTFEED_FORECAST_H

#include "trainer/train_session.h"

struct train_outfeed_forecast {
	int tensors;
	double bytes;  /* of the report, as if there were no budget */
	double memory; /* bytes, while it runs */
};

void train_outfeed_forecast(struct train_outfeed_forecast *out,
			    const struct train_session *session);

/* outfeed.budget, or half of what the report's disk has free where that is less (*@disk, which may
 * be NULL). */
int64_t train_outfeed_budget(const struct train_session *session, bool *disk);

/* One line for people, without "\n"; "" where nothing is looked at. */
#define TRAIN_OUTFEED_FORECAST_SIZE 256
void train_outfeed_forecast_text(char out[TRAIN_OUTFEED_FORECAST_SIZE],
				 const struct train_session *session);

/* The first rule of outfeed.capture from @rule on that fits no tensor of the run; -1: none. */
int train_outfeed_unused_rule(const struct train_session *session, int rule);

#endif /* TRAIN_OUTFEED_FORECAST_H */
