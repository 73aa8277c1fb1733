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
/* The same of JSON. */
enum status support_model_read_at(struct model **out, const struct json_at *at,
				  const struct model_shape *input, struct err *err);
/* The same as support_model_read(), and it must work. */
struct model *support_model(const char *text, const struct model_shape *input);

/* The digest of all that was read of models since it was last asked for, and of what was said
 * against the others. */
uint64_t support_models_digest(void);
/* That it is @wanted. The last test of a module: whatever its other tests look at, the rest of
 * their models does not change unseen. */
void support_assert_models(uint64_t wanted);

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
