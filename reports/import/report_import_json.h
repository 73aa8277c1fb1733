/*
 * JSON as import reads it: values within a stretch of text that may end anywhere.
 *
 * A reader that comes to the end of its text before the value is complete says `more`: the caller
 * gets more text and begins the value again. Lenient where traces are known to be wrong and the
 * meaning is clear (control characters in strings, unknown escapes, NaN, a comma too many); strict
 * about brackets and quotes. No recursion.
 *
 * The text must be followed by JSON_PADDING readable bytes, the first of which is 0.
 */
#ifndef REPORT_IMPORT_JSON_H
#define REPORT_IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPORT_PADDING 64
#define IMPORT_DEPTH   1024 /* brackets within brackets of one value */

struct import_reader {
	const char *at, *end;
	bool more;       /* the text ends within the value */
	const char *why; /* what is wrong at `at`; NULL: nothing */
};

enum import_kind {
	IMPORT_ABSENT,
	IMPORT_NULL,
	IMPORT_FALSE,
	IMPORT_TRUE,
	IMPORT_NUMBER, /* the token, unchecked; also NaN and Infinity */
	IMPORT_TEXT,   /* between the quotes, not unescaped */
	IMPORT_OBJECT, /* with its brackets */
	IMPORT_ARRAY
};

struct import_token {
	const char *at;
	size_t length;
	enum import_kind kind;
	bool escaped; /* a text with backslashes */
};

/* Skip blanks; the character there, 0 (and `more`) at the end. */
char report__import_peek(struct import_reader *reader);
/* A value of any kind, blanks before it skipped. False: `more`, or `why` and the place in `at`. */
bool report__import_value(struct import_reader *reader, struct import_token *out);
/* A text, which must be one. */
bool report__import_text(struct import_reader *reader, struct import_token *out);
/*
 * The members of an object: `at` stands behind "{" or a value. *@key is set and `at` is behind the
 * colon; false with neither `more` nor `why`: it stands behind "}".
 */
bool report__import_member(struct import_reader *reader, struct import_token *key);

bool report__import_is(const struct import_token *token, const char *text);

/* ---- what tokens say ------------------------------------------------------------------------- */

/* Microseconds as ns, exactly, rounded to the nearest where there are more than 3 decimals: of a
 * number, or a text that is one. */
enum import_time {
	IMPORT_TIME_GOOD,
	IMPORT_TIME_NONE, /* absent, null, NaN, or no number */
	IMPORT_TIME_RANGE
};
enum import_time report__import_time(const struct import_token *token, int64_t *ns);

/*
 * A number token: as an integer where it is one, else as a real (*@is_int false). False: neither.
 */
bool report__import_number(const struct import_token *token, bool *is_int, int64_t *i, double *r);

/* Unescape a text (other kinds are copied as they are) as valid UTF-8, at most @size - 1 bytes and
 * 0-terminated; what is not UTF-8, and the character 0, become U+FFFD. Returns the length;
 * *@mended, *@cut (may be NULL) are set where it was wrong or too long, else left alone. */
size_t report__import_unescape(const struct import_token *token, char *out, size_t size,
			       bool *mended, bool *cut);

#endif /* REPORT_IMPORT_JSON_H */
