/*
 * The reason of a failure, in words for a person.
 *
 * A fallible function takes an optional last `struct err *err`. It fills it where the reason is
 * known and returns the status: `return err_set(err, ST_IO, "open %s: %s", path, why);`. The text
 * is one line: the place first, then what is wrong and, where there is one, the remedy.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

#define ERR_TEXT_SIZE 1024

struct err {
	enum status status;
	char text[ERR_TEXT_SIZE]; /* cut, never overflown; control characters are replaced by '?' */
};

/* Record @status and the text; returns @status. @err may be NULL. */
enum status err_set(struct err *err, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "PREFIX: " before the recorded text, to add the place on the way up; returns err->status
 * (ST_FAILED where @err is NULL). */
enum status err_prefix(struct err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "out of memory" without a place; returns ST_NOMEM. */
enum status err_nomem(struct err *err);

/*
 * Failures that stick: steps that stand one below the other return at once where an earlier one has
 * failed, so that only the last is asked. err_start() begins such a row: it returns @err, or @own
 * where that is NULL, without a failure.
 */
static inline struct err *err_start(struct err *err, struct err *own)
{
	struct err *at = err ? err : own;

	at->status = ST_OK;
	at->text[0] = '\0';
	return at;
}

static inline bool err_stuck(const struct err *err)
{
	return err->status != ST_OK;
}

#endif /* COMMON_ERR_H */
