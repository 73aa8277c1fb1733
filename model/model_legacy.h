/*
 * Arguments that Keras had for IPUs: TensorFlow 2.1's, those of set_pipelining_options() and of
 * set_gradient_accumulation_options(); and what stands for them today. Constant data.
 */
#ifndef MODEL_LEGACY_H
#define MODEL_LEGACY_H

enum model_legacy_kind {
	MODEL_LEGACY_PLACE,   /* `what` is its key in a run file */
	MODEL_LEGACY_REMOVED, /* gone after TensorFlow 2.1: `what` is done now */
	MODEL_LEGACY_REFUSED  /* of pipelines, but not of Keras's: `what` is done */
};

struct model_legacy_option {
	const char *name;
	enum model_legacy_kind kind;
	const char *what;
};

const struct model_legacy_option *model_legacy_option(const char *name); /* NULL: unknown */

#endif /* MODEL_LEGACY_H */
