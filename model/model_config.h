/*
 * Reading Keras's JSON: which options of a config are known and which values they may have. Used
 * for layers, losses and optimizers alike.
 *
 * An option that would change the mathematics in an unsupported way is an error that names its
 * position; a value that means the supported behaviour passes.
 *
 * Failures are sticky: a reader begins with err_start(), and the functions below do nothing if
 * @err (not NULL) already holds a failure.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include "common/json.h"
#include "common/mem.h"

enum model_rule {
	MODEL_ANY,           /* no effect on the mathematics, or read by the owner of the table */
	MODEL_NULL,          /* must be null */
	MODEL_FALSE,         /* must be false (or null) */
	MODEL_TRUE,          /* must be true (or null) */
	MODEL_ZERO,          /* must be 0 (or null) */
	MODEL_FLOAT32,       /* "float32" or a DTypePolicy of it (or null) */
	MODEL_DTYPE,         /* the same, or a mixed policy */
	MODEL_INPUT_DTYPE,   /* "float32" or another numeric type (or null) */
	MODEL_CHANNELS_LAST, /* "channels_last" (or null) */
	/* The value goes to a field of this type. */
	MODEL_BOOL,
	MODEL_INT,   /* int64_t */
	MODEL_REAL,  /* double */
	MODEL_FLOAT, /* float; what does not fit is out of bounds */
	MODEL_TEXT,  /* const char *, of the JSON */
	MODEL_CHOICE /* an enum: the index of a text among `choices` */
};

/* A row of a table of options. */
struct model_option {
	const char *key;
	enum model_rule rule;
	size_t offset; /* of the field in the object that is read into, */
	bool second;   /* or in the second one */
	bool required; /* otherwise, if the option is absent, the field becomes `fallback`, or */
	/* `text`; it stays as it is if both are 0 */
	bool strict;        /* null is an error; otherwise it counts as absent */
	double least, most; /* of a number; 0x1p63: a whole one has no upper bound */
	const char *must;   /* of a real number: what a message says of the bounds; NULL: none */
	double fallback;
	const char *text;           /* the fallback of a text */
	const char *const *choices; /* ended by NULL */
};

struct model_options {
	const struct model_option *rows;
	size_t count;
};
#define MODEL_OPTIONS(table)                                                                       \
	{                                                                                          \
		(table), ARRAY_LEN(table)                                                          \
	}

#define MODEL_BELOW_1 0x1.fffffffffffffp-1 /* the greatest number below 1 */

/* Check that each key of @at is in one of the two tables and follows its rule. @more may be
 * NULL. */
enum status model_config_check(const struct json_at *at, const struct model_option *options,
			       size_t count, const struct model_option *more, size_t more_count,
			       struct err *err);

/* Store the options that have a field in the objects @into and @second (NULL: no row needs it).
 * @config NULL: all are absent. */
enum status model_config_read(const struct json_at *config, const struct model_options *options,
			      void *into, void *second, struct err *err);

/* Like json_fail(), with status ST_UNSUPPORTED; model_config_limit() has ST_LIMIT. Neither checks
 * whether @err (may be NULL) already holds a failure. */
enum status model_config_unsupported(const struct json_at *at, struct err *err, const char *format,
				     ...) __attribute__((format(printf, 3, 4)));
enum status model_config_limit(const struct json_at *at, struct err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Read the class name of an object {"class_name": "SGD", ...}; @here receives the name's position,
 * linked to @at. Keys that Keras does not write in such an object are errors. */
enum status model_config_class(const struct json_at *at, const char **class_name,
			       struct json_at *here, struct err *err);

/*
 * Read an object given as a text ("sgd") or as {"class_name": "SGD", "config": {...}} with the
 * other keys that Keras writes beside them. @config_here is false if config is absent or null.
 * The cursors are linked to @at.
 */
enum status model_config_object(const struct json_at *at, const char **class_name,
				struct json_at *config, bool *config_here, struct err *err);

/* ---- one option ------------------------------------------------------------------------------ */

/* Whether @key is present and not null, and @err holds no failure. @here is linked to @config. */
bool model_option_at(const struct json_at *config, const char *key, struct json_at *here,
		     struct err *err);
/* The same, but null counts as present. */
bool model_option_given(const struct json_at *config, const char *key, struct json_at *here,
			struct err *err);
/* Find a required option; fails with "KEY is missing". Returns false on failure. */
bool model_option_need(const struct json_at *config, const char *key, struct json_at *here,
		       struct err *err);

/* Read the number at @here within the option's bounds; @here NULL: its fallback. */
double model_option_number(const struct model_option *option, const struct json_at *here,
			   struct err *err);

/* Read the value of @key. If it is absent or null, or after a failure, *@out does not change. */
void model_option_bool(const struct json_at *config, const char *key, bool *out, struct err *err);
void model_option_text(const struct json_at *config, const char *key, const char **out,
		       struct err *err);

/* Read the text at @key as an index into @known. If it is absent or after a failure, *@out does not
 * change. */
void model_option_choice(const struct json_at *config, const char *key, const char *const *known,
			 size_t count, size_t *out, struct err *err);

/* ---- obsolete forms -------------------------------------------------------------------------- */

/* Fail if @class_name, or a key of the model config @config, dates from before TensorFlow 2.4 or
 * denotes something that no file can hold. The message names the replacement. */
void model_legacy_class(const struct json_at *at, const char *class_name, struct err *err);
void model_legacy_keys(const struct json_at *config, struct err *err);
/* The class of layer that computes the same as the TensorFlow function (a TFOpLambda) of this entry
 * of a list of layers; NULL: it is no such function, or no layer does. */
const char *model_legacy_function(const cJSON *entry);
/* The current name of the class. */
const char *model_legacy_present(const char *class_name);

/* Arguments that Keras had for IPUs: those of TensorFlow 2.1, of set_pipelining_options() and of
 * set_gradient_accumulation_options(); and what replaces them. */
enum model_legacy_kind {
	MODEL_LEGACY_PLACE,   /* `what` is its key in a run file */
	MODEL_LEGACY_REMOVED, /* removed after TensorFlow 2.1: `what` is the behaviour now */
	MODEL_LEGACY_REFUSED  /* of pipelines, but not Keras's: `what` is the behaviour */
};

struct model_legacy_option {
	const char *name;
	enum model_legacy_kind kind;
	const char *what;
};

const struct model_legacy_option *model_legacy_option(const char *name); /* NULL: unknown */

#endif /* MODEL_CONFIG_H */
