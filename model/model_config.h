/*
 * Reading what Keras writes: which options of a config are known, and what they may say.
 *
 * An option that would change the mathematics in a way we do not have is an error that names its
 * place; one that says what we do anyway passes. For layers, losses and optimizers alike.
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
	MODEL_DTYPE,         /* the same, or of "mixed_float16" */
	MODEL_INPUT_DTYPE,   /* "float32" or "float16" (or null) */
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

/* The name that a "dtype" says: a text's own or its policy object's; NULL: it says none. */
const char *model_config_dtype(const cJSON *node);

/* Like json_fail(), with the status ST_UNSUPPORTED. */
enum status model_config_unsupported(const struct json_at *at, struct err *err, const char *format,
				     ...) __attribute__((format(printf, 3, 4)));

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

#endif /* MODEL_CONFIG_H */
