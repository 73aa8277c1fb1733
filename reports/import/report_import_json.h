/*
 * An incremental JSON reader: parses values in a text that may end anywhere.
 *
 * If the text ends within a value, the reader sets `more`: the caller supplies more text and parses
 * the value again from its start. The reader tolerates known errors of trace writers whose meaning
 * is clear (control characters in strings, unknown escapes, NaN, superfluous commas); it is strict
 * about brackets and quotes. It does not recurse.
 *
 * The text must be followed by JSON_PADDING readable bytes, the first of which is 0.
 */
#ifndef REPORT_IMPORT_JSON_H
#define REPORT_IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IMPORT_PADDING 64
#define IMPORT_DEPTH   1024 /* maximum nesting of one value */

struct import_reader {
	const char *at, *end;
	bool more;       /* the text ends within the value */
	const char *why; /* error at `at`; NULL: none */
};

enum import_kind {
	IMPORT_ABSENT,
	IMPORT_NULL,
	IMPORT_FALSE,
	IMPORT_TRUE,
	IMPORT_NUMBER, /* the unvalidated token; also NaN and Infinity */
	IMPORT_TEXT,   /* the text between the quotes, still escaped */
	IMPORT_OBJECT, /* including its brackets */
	IMPORT_ARRAY
};

struct import_token {
	const char *at;
	size_t length;
	enum import_kind kind;
	bool escaped; /* the text contains backslashes */
};

/* A text that is no JSON as a token, which is copied as it is. NULL: absent. */
static inline struct import_token import_token_of(const char *text)
{
	/* A number's text is not unescaped. */
	return (struct import_token){.at = !text ? "" : text,
				     .length = !text ? 0 : strlen(text),
				     .kind = !text ? IMPORT_ABSENT : IMPORT_NUMBER};
}

/* Skip blanks; return the next character, or 0 (and set `more`) at the end. */
char report__import_peek(struct import_reader *reader);
/* Parse a value of any kind after skipping blanks. False: `more`, or `why` with its position in
 * `at`. */
bool report__import_value(struct import_reader *reader, struct import_token *out);
/*
 * Parse the next key of an object; `at` must be behind "{" or a value. Sets *@key and leaves `at`
 * behind the colon. False with neither `more` nor `why`: the object ended, `at` is behind "}".
 */
bool report__import_member(struct import_reader *reader, struct import_token *key);

bool report__import_is(const struct import_token *token, const char *text);

/* ---- values of tokens ------------------------------------------------------------------------ */

/* Convert microseconds to ns exactly; more than 3 decimals are rounded to the nearest ns. Accepts a
 * number, or a text that contains one. */
enum import_time {
	IMPORT_TIME_GOOD,
	IMPORT_TIME_NONE, /* absent, null, NaN, or not a number */
	IMPORT_TIME_RANGE
};
enum import_time report__import_time(const struct import_token *token, int64_t *ns);

/*
 * Convert a number token to an integer if it is one, otherwise to a real (*@is_int false). Return
 * false if it is neither.
 */
bool report__import_number(const struct import_token *token, bool *is_int, int64_t *i, double *r);

/* Unescape a text (other kinds are copied unchanged) to valid UTF-8, at most @size - 1 bytes and
 * 0-terminated; invalid UTF-8 and the character 0 become U+FFFD. Return the length. *@mended and
 * *@cut (may be NULL) are set if the text was invalid or too long, otherwise left unchanged. */
size_t report__import_unescape(const struct import_token *token, char *out, size_t size,
			       bool *mended, bool *cut);

#endif /* REPORT_IMPORT_JSON_H */
