/*
 * Streaming JSON writer: no tree, constant memory.
 *
 * Calls must nest as JSON does (asserted). Integers are exact; reals are written with the fewest
 * digits that read back the same; NaN and infinities are null. Invalid UTF-8 bytes are replaced by
 * U+FFFD. jsonw_end() returns the first write error.
 */
#ifndef COMMON_JSONW_H
#define COMMON_JSONW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/str.h"

#define JSONW_DEPTH 32

struct jsonw {
	FILE *file; /* one of file and str is set */
	struct str *str;
	int indent; /* blanks per level; 0: one line */
	int depth;
	bool comma[JSONW_DEPTH];
	bool after_key;
};

void jsonw_init_file(struct jsonw *w, FILE *file, int indent);
void jsonw_init_str(struct jsonw *w, struct str *str, int indent);
void jsonw_begin_object(struct jsonw *w);
void jsonw_end_object(struct jsonw *w);
void jsonw_begin_array(struct jsonw *w);
void jsonw_end_array(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
void jsonw_text(struct jsonw *w, const char *text); /* NULL writes null */
void jsonw_int(struct jsonw *w, int64_t value);
void jsonw_real(struct jsonw *w, double value);
void jsonw_bool(struct jsonw *w, bool value);
void jsonw_null(struct jsonw *w);

/* Write @json, one value as JSON text, as it is; hidden characters in it become escapes. */
void jsonw_value(struct jsonw *w, const char *json);

/* Write a key, and its value or the begin of it. */
void jsonw_key_object(struct jsonw *w, const char *key);
void jsonw_key_array(struct jsonw *w, const char *key);
void jsonw_key_text(struct jsonw *w, const char *key, const char *text); /* NULL writes null */
void jsonw_key_int(struct jsonw *w, const char *key, int64_t value);
void jsonw_key_real(struct jsonw *w, const char *key, double value);
void jsonw_key_bool(struct jsonw *w, const char *key, bool value);

/* Write @value, at most 20 bytes and no NUL, so that it ends before @end; return its start. Exports
 * write millions of numbers, for which snprintf() takes several times as long. */
char *jsonw_digits(char *end, int64_t value);

enum status jsonw_end(struct jsonw *w, struct err *err); /* line feed; ST_IO if a write failed */

#endif /* COMMON_JSONW_H */
