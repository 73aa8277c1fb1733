/*
 * Models from texts, for tests.
 */
#ifndef SUPPORT_MODEL_TEXTS_H
#define SUPPORT_MODEL_TEXTS_H

#include "support/support.h"
#include "model/model.h"

/* model_new() of the JSON @text, whose file is called "m.json". */
enum status support_model_read(struct model **out, const char *text,
			       const struct model_shape *input, struct err *err);
/* The same, and it must work. */
struct model *support_model(const char *text, const struct model_shape *input);

/* However many allocations it is left, reading @text gives a model, or ST_NOMEM and nothing. */
void support_model_no_memory(const char *text, const struct model_shape *input);

/* @text must hold all parts of @says, which '|' divides. */
void support_assert_says(const char *text, const char *says);

/* One text that is refused. */
struct support_refusal {
	const char *text;
	enum status status;
	const char *says;
};
void support_assert_refused(const struct support_refusal *refusal, const struct model_shape *input);

#endif /* SUPPORT_MODEL_TEXTS_H */
