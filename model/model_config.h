/*
 * Reading what Keras writes: which options of a config are known, and what they may say. For
 * layers, losses and optimizers alike.
 *
 * An option that would change the mathematics in a way we do not have is an error that names its
 * place; one that says what we do anyway passes.
 *
 * Failures stick: a reader begins with err_start(), and where @err (not NULL) has a failure the
 * functions below do nothing.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include "common/json.h"

enum model_rule {
	MODEL_ANY,           /* says nothing about the mathematics, or is read by who lists it */
	MODEL_NULL,          /* must be null */
	MODEL_FALSE,         /* must be false (or null) */
	MODEL_TRUE,          /* must be true (or null) */
	MODEL_ZERO,          /* must be 0 (or null) */
	MODEL_FLOAT32,       /* "float32" or a DTypePolicy of it (or null) */
	MODEL_DTYPE,         /* the same, or of a mixed policy */
	MODEL_INPUT_DTYPE,   /* "float32" or another type of numbers (or null) */
	MODEL_CHANNELS_LAST, /* "channels_last" (or null) */
	MODEL_RULES
};

struct model_option {
	const char *key;
	enum model_rule rule;
};

/* Keys that may stand in none, one or both of two tables; @more may be NULL. */
enum status model_config_check(const struct json_at *at, const struct model_option *options,
			       size_t count, const struct model_option *more, size_t more_count,
			       struct err *err);

/* Like json_fail(), with the status ST_UNSUPPORTED. Does not ask whether @err, which may be NULL,
 * has a failure; model_config_limit() neither, whose status is ST_LIMIT. */
enum status model_config_unsupported(const struct json_at *at, struct err *err, const char *format,
				     ...) __attribute__((format(printf, 3, 4)));
enum status model_config_limit(const struct json_at *at, struct err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The name of an object {"class_name": "SGD", ...}, and its place: @here points to @at. Keys that
 * Keras does not write in such an object are errors. */
enum status model_config_class(const struct json_at *at, const char **class_name,
			       struct json_at *here, struct err *err);

/*
 * A thing named by a text ("sgd") or an object {"class_name": "SGD", "config": {...}}, with the
 * other keys that Keras writes beside them. @config_here is false where there is no config (or a
 * null one). The cursors point to @at.
 */
enum status model_config_object(const struct json_at *at, const char **class_name,
				struct json_at *config, bool *config_here, struct err *err);

/* ---- one option ------------------------------------------------------------------------------ */

/* Is @key there (not null), and no failure so far? *@here is its place, which points to @config. */
bool model_option_at(const struct json_at *config, const char *key, struct json_at *here,
		     struct err *err);
/* The same where null is a value like others. */
bool model_option_given(const struct json_at *config, const char *key, struct json_at *here,
			struct err *err);
/* The place of what must be there; fails with "KEY is missing". False: a failure. */
bool model_option_need(const struct json_at *config, const char *key, struct json_at *here,
		       struct err *err);

/* The value of @key; absent, null or after a failure *@out stays as it is. */
void model_option_bool(const struct json_at *config, const char *key, bool *out, struct err *err);
void model_option_text(const struct json_at *config, const char *key, const char **out,
		       struct err *err);

/* ---- what Keras no longer writes ------------------------------------------------------------- */

/* Fails where @class_name or a key of the model config @config is of a time before TensorFlow 2.4,
 * or holds what no file can hold; the message names the replacement. */
void model_legacy_class(const struct json_at *at, const char *class_name, struct err *err);
void model_legacy_keys(const struct json_at *config, struct err *err);
/* Today's name of the class. */
const char *model_legacy_present(const char *class_name);

/* Arguments that Keras had for IPUs: TensorFlow 2.1's, those of set_pipelining_options() and of
 * set_gradient_accumulation_options(); and what stands for them today. */
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

#endif /* MODEL_CONFIG_H */
