/*
 * Status codes and error reports: a status and a message for the user.
 *
 * A fallible function takes an optional last parameter `struct err *err`. Where it knows the reason
 * it fills @err and returns the status: `return err_set(err, ST_IO, "open %s: %s", path, why);`.
 * The text is one line: the place, what is wrong, and the remedy if there is one.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Status codes of fallible functions. One list defines the enum and its texts.
 *
 * The values are fixed: databases and foreign programs store them. Append new ones at the end.
 */

#define STATUS_MAP(X)                                                                              \
	X(ST_OK, 0, "done")                                                                        \
	X(ST_NOMEM, 1, "out of memory")                                                            \
	X(ST_INVALID, 2, "invalid request")                                                        \
	X(ST_NOTFOUND, 3, "not found")                                                             \
	X(ST_FORMAT, 4, "malformed data")                                                          \
	X(ST_VERSION, 5, "unknown version")                                                        \
	X(ST_UNSUPPORTED, 6, "not supported")                                                      \
	X(ST_LIMIT, 7, "beyond a limit")                                                           \
	X(ST_IO, 20, "input/output error")                                                         \
	X(ST_NOSPACE, 21, "no space left")                                                         \
	X(ST_BUSY, 22, "busy")                                                                     \
	X(ST_INTERRUPTED, 23, "interrupted")                                                       \
	X(ST_CLOSED, 24, "closed")                                                                 \
	X(ST_FAILED, 25, "failed")

enum status {
#define STATUS_ENUM(name, value, text) name = value,
	STATUS_MAP(STATUS_ENUM)
#undef STATUS_ENUM
};

/* The text of @status; never NULL. */
const char *status_text(enum status status);

/* Exit code of a command that ends with @status: 0 done, 2 the request was wrong (values below 20
 * except ST_NOMEM), 1 the work failed. */
int status_exit_code(enum status status);

#define ERR_TEXT_SIZE 1024

struct err {
	enum status status;
	char text[ERR_TEXT_SIZE]; /* truncated to fit; control characters are replaced by '?' */
};

/* Record @status and the text; return @status. @err may be NULL. */
enum status err_set(struct err *err, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prepend "PREFIX: " to the recorded text, to add context on the way up. Return err->status
 * (ST_FAILED if @err is NULL). */
enum status err_prefix(struct err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Record "out of memory" without a place; return ST_NOMEM. */
enum status err_nomem(struct err *err);

/*
 * Sticky failures: a series of steps each of which returns at once after an earlier failure, so the
 * caller checks only the last. err_start() begins a series: it clears and returns @err, or @own if
 * @err is NULL.
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
