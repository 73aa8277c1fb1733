/*
 * fit, evaluate and predict: phases one after the other, callbacks between them.
 */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "trainer/callbacks/callback.h"
#include "trainer/train_screen.h"
#include "trainer/train_session.h"

struct train_result {
	int64_t epochs;             /* completed */
	double loss, evaluate_loss; /* of the last epoch, of the evaluation; NaN: none */
	double step_ns;             /* measured, of the last epoch; NaN: none */
	int64_t predicted;          /* items */
	bool interrupted;
};

struct train_fit_params {
	struct train_session *session;
	const struct callbacks *callbacks;
	struct train_screen *screen;
	_Atomic bool *stop; /* set by a callback: end after the current epoch */
	FILE *generated; /* receives the text that run->generate requests; NULL: do not generate */
};

/* Train all epochs, then evaluate and predict if the run file says so. Returns ST_INTERRUPTED after
 * train_interrupt(); @out has the results so far. */
enum status train_fit(const struct train_fit_params *params, struct train_result *out,
		      struct err *err);

#endif /* TRAIN_FIT_H */
