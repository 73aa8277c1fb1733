/*
 * Layers' device operations as text, one line each:
 *
 *	LAYER/PART KIND SIZES [FLAGS]: READS -> WRITES
 *
 * Operands: x, y (input, output), k (kept), b, c (between), dy, dx, dx0 (gradients), p0, dp0
 * (parameters and their gradients). Sizes by kind:
 *
 *	matmul MxKxN
 *	conv PASS BATCH GROUPS*IN>OUT HEIGHTxWIDTH>HEIGHTxWIDTH kKxK sSxS dDxD	PASS: f, d, w
 *	elementwise COUNT*OPERANDS[/BROADCAST] FUNCTION=TIMES ...
 *	reduce INPUTS>OUTPUTS
 *	pool max|mean[ backward] BATCH*CHANNELS HEIGHTxWIDTH>HEIGHTxWIDTH kKxK sSxS
 *	rows WORK ROWSxCOLUMNS
 *	copy COUNT/ATOM
 *
 * Flags: "times=N" (runs so often), "makes=N" (elements of what is new), "half", "training".
 */
#ifndef SUPPORT_LOWERED_H
#define SUPPORT_LOWERED_H

#include "ipu/plan/ipu_op.h"
#include "model/layers/layer.h"

#define LOWERED_TEXT 256

void lowered_text(const struct layer_op *op, char out[LOWERED_TEXT]);

/* The operations of a layer of @model in @phase, for @batch items, in training. @first: nobody
 * wants the gradient of its inputs. @lines: what they must be, up to a NULL. */
void lowered_check(const struct model *model, int layer, int64_t batch, char phase, bool first,
		   const char *const *lines);
/* The same, of an evaluation. */
void lowered_check_evaluation(const struct model *model, int layer, int64_t batch,
			      const char *const *lines);

/* What `ipu-plan op` adds up, pass after pass, stands among a layer's operations of @phase, in that
 * order and with those sizes. */
void lowered_check_composite(const struct model *model, int layer, int64_t batch, char phase,
			     const struct ipu_composite *from, const enum ipu_pass *passes,
			     int count);

#endif /* SUPPORT_LOWERED_H */
