/*
 * fit, evaluate and predict: phases one after the other, callbacks between them.
 */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "trainer/callbacks/callback.h"
#include "trainer/train_screen.h"
#include "trainer/train_session.h"

struct train_result {
	int64_t epochs;             /* finished */
	double loss, evaluate_loss; /* of the last epoch, of the evaluation; NaN: none */
	double step_ns;             /* measured, of the last epoch; NaN: there was none */
	int64_t predicted;          /* items */
	bool interrupted;
};

struct train_fit_params {
	struct train_session *session;
	const struct callbacks *callbacks;
	struct train_screen *screen;
	_Atomic bool *stop; /* set by a callback: end after the present epoch */
	FILE *generated;    /* gets the text that run->generate asks for; NULL: nowhere */
};

/* Train all epochs, then evaluate and predict where the run file asks for it. ST_INTERRUPTED after
 * train_interrupt(): what was done stands in @out. */
enum status train_fit(const struct train_fit_params *params, struct train_result *out,
		      struct err *err);

#endif /* TRAIN_FIT_H */
