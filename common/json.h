/*
 * JSON reader whose errors name their place.
 *
 * The parser is cJSON (at most 1,000 levels deep). This module adds limits, the line and column of
 * syntax errors, and a cursor that knows the path of its value. A failed read returns ST_INVALID
 * (ST_FORMAT for syntax) with a text like `run.json: model.config.layers[2]: unknown layer "Dens"
 * (did you mean "Dense"?)`. Cursors live on the stack and point to their parent: they must not
 * outlive it.
 */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define JSON_FILE_LIMIT (64u << 20) /* most bytes of a file that json_load() reads */

struct json_at {
	const char *file;         /* as shown in messages */
	const struct json_at *up; /* NULL at the root */
	const cJSON *node;        /* never NULL */
	const char *key;          /* the key in an object, else NULL */
	int index;                /* the index in an array, else -1 */
};

/* Parse @text; @name is used in messages. The caller owns *@out (cJSON_Delete). Duplicate keys are
 * errors. */
enum status json_parse(cJSON **out, const char *text, size_t length, const char *name,
		       struct err *err);
enum status json_load(cJSON **out, const char *path, struct err *err);

struct json_at json_root(const char *file, const cJSON *node);
bool json_child(const struct json_at *at, const char *key, struct json_at *out); /* false: absent */
bool json_item(const struct json_at *at, int index, struct json_at *out);
/* Advance @item, at first zeroed, to the next item of @at: json_item() counts from the first. */
bool json_next(const struct json_at *at, struct json_at *item);
int json_count(const struct json_at *at); /* items of an array or object, else 0 */
bool json_is_null(const struct json_at *at);

/* Write the path of @at as "a.b[2].c". */
void json_path(const struct json_at *at, char *out, size_t size);

/* Report a failure at @at; return ST_INVALID. json_unknown() suggests the nearest of @known, or
 * lists all of them if none is near and the list is short. */
enum status json_fail(const struct json_at *at, struct err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
enum status json_unknown(const struct json_at *at, const char *what, const char *word,
			 const char *const *known, size_t count, struct err *err);

/* Fail unless @at is an object whose keys are all among @keys. */
enum status json_only_keys(const struct json_at *at, const char *const *keys, size_t count,
			   struct err *err);

/* Read a text at @at as its index among @known; json_unknown() reports another, as an unknown
 * @what. *@out changes only on success. */
enum status json_choice(const struct json_at *at, const char *what, const char *const *known,
			size_t count, size_t *out, struct err *err);

/* Read the value at @at; fail if it has another type. */
enum status json_int(const struct json_at *at, int64_t least, int64_t greatest, int64_t *out,
		     struct err *err);
enum status json_real(const struct json_at *at, double *out, struct err *err);
enum status json_bool(const struct json_at *at, bool *out, struct err *err);
enum status json_text(const struct json_at *at, const char **out, struct err *err);
enum status json_array(const struct json_at *at, struct err *err);  /* fails unless an array */
enum status json_object(const struct json_at *at, struct err *err); /* fails unless an object */

#endif /* COMMON_JSON_H */
