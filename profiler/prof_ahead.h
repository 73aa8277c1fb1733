/*
 * Rows that a thread reads before they are asked for: the reader of a long result decodes the next
 * ones while its caller works on the present one.
 *
 * The thread has @step for itself, and what that uses, from prof_ahead_start() to
 * prof_ahead_stop(). Rows are handed over in blocks of bounded size. Values are converted as SQLite
 * does it.
 *
 * One thread at a time calls these functions.
 */
#ifndef PROF_AHEAD_H
#define PROF_AHEAD_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct prof_ahead;

/* Steps to the next row of @statement, as prof_query_step(). */
typedef enum status (*prof_ahead_step)(void *user, bool *row, struct err *err);

/* Start to read. ST_NOMEM: no memory, or no thread. */
enum status prof_ahead_start(struct prof_ahead **out, sqlite3_stmt *statement, prof_ahead_step step,
			     void *user, struct err *err);
/* The next row. At the end, and after a failure, which comes behind the rows before it, the same
 * again. */
enum status prof_ahead_next(struct prof_ahead *ahead, bool *row, struct err *err);
/* Values of the row, as SQLite's functions for columns give them; @column is one of the
 * statement's. The text is that, or a blob with a 0 behind it, or NULL; it stays until the next
 * row. */
int prof_ahead_type(const struct prof_ahead *ahead, int column);
int64_t prof_ahead_int(const struct prof_ahead *ahead, int column);
double prof_ahead_real(const struct prof_ahead *ahead, int column);
const char *prof_ahead_text(struct prof_ahead *ahead, int column, size_t *size);
/* Stop the thread, wherever it is, and free. Accepts NULL. */
void prof_ahead_stop(struct prof_ahead *ahead);

#endif /* PROF_AHEAD_H */
