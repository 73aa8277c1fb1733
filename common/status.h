/*
 * Status codes of fallible functions. One list defines the enum and its texts.
 *
 * The values are fixed: databases and foreign programs store them. Append new ones at the end.
 */
#ifndef COMMON_STATUS_H
#define COMMON_STATUS_H

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

#endif /* COMMON_STATUS_H */
