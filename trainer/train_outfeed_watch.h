/*
 * Tensors that are looked at without a queue: those that a rule of outfeed.capture asks for, and
 * those of the kinds whose health is watched. Outputs of layers, gradients, variables and the
 * optimizer's slots after each update.
 *
 * What an outfeed queue sends is not watched again. Layers that pass their input on (Flatten,
 * Reshape, outfeeds) have no output of their own. Only training is watched.
 *
 * Threads: planned and made by the main thread while the workers rest; a worker records what its
 * own stages have. All memory is the session's arena's; tensors are the recorder's.
 */
#ifndef TRAIN_OUTFEED_WATCH_H
#define TRAIN_OUTFEED_WATCH_H

#include "outfeed/outfeed.h"
#include "trainer/train_outfeed.h"

struct train_watch;

/* What tensors are: the output of a layer (MODEL_INPUT: what comes into the model), a variable. */
enum status train_watch_output(struct outfeed_tensor_params *out, struct train_session *session,
			       int layer, struct err *err);
struct outfeed_tensor_params train_watch_variable(const struct train_session *session, int number);
/*
 * The layer (or MODEL_INPUT) that has computed what comes out of @layer, and what makes it active.
 */
int train_watch_origin(const struct model *model, int layer);
enum outfeed_activity train_watch_activity(const struct model *model, int layer);

/* Is anything looked at that no queue sends, are rules asked? Without a recording nobody sees what
 * comes of it, unless a rule was asked for. */
bool train_watch_wanted(const struct run_file *run, bool recorded);

/* session->watch_plan, and what it needs of session->taps. @recorded: there is (or would be) a
 * recording. */
enum status train_watch_plan(struct train_session *session, bool recorded, struct err *err);

/* Add the planned tensors to @outfeed. */
enum status train_watch_new(struct train_watch **out, struct train_session *session,
			    struct outfeed *outfeed, struct err *err);

/* Is the output of any layer of the stage looked at in this pass? */
bool train_watch_looks(const struct train_watch *watch, const struct train_outfeed_place *place);

/* What @tapped was computed from and is still there; returns how many. */
int train_watch_sources(const struct train_watch *watch, const struct train_outfeed_place *place,
			const struct stage_tapped *tapped,
			struct outfeed_source out[OUTFEED_TRAIL]);

enum status train_watch_activation(const struct train_watch *watch,
				   const struct outfeed_moment *moment,
				   const struct stage_tapped *tapped, struct err *err);
enum status train_watch_gradient(const struct train_watch *watch,
				 const struct train_outfeed_place *place, int param,
				 const float *values, struct err *err);

/* The slots and variables of a stage after its update. */
enum status train_watch_update(const struct train_watch *watch,
			       const struct train_outfeed_place *place, struct err *err);

#endif /* TRAIN_OUTFEED_WATCH_H */
