/*
 * Losses at work: value and gradient in one pass over the outputs. model/learn/loss.h says what
 * each is and has the formulas. No state, nothing is allocated.
 */
#ifndef LOSS_RUN_H
#define LOSS_RUN_H

#include "model/learn/loss.h"

struct loss_result {
	double loss; /* mean */
};

/*
 * @outputs [batch, width]: what the model gives. @logits: the input of its last activation when
 * loss_takes_logits(), else NULL. @targets: as loss_check() allowed; a single value per item (or a
 * class number, where the loss takes values) is compared with every output of the item.
 * @gradient [batch, width]: of the logits when given, else of the outputs; NULL: not wanted.
 */
void loss_run(const struct loss *loss, const float *outputs, const float *logits,
	      const struct targets *targets, int64_t batch, int64_t width, float *gradient,
	      struct loss_result *out);

#endif /* LOSS_RUN_H */
