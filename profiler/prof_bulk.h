/*
 * Spans and their arguments of a recording that nobody reads meanwhile: their tables are built as
 * pages (prof_btree.h) instead of by INSERTs, and join the database at its end.
 *
 * What does not come in order goes through SQL: ends of spans that are written already, arguments
 * of spans before the last one written, very long texts. It waits in tables of its own.
 *
 * On the writer's thread; joining on the thread that closes the recording.
 */
#ifndef PROF_BULK_H
#define PROF_BULK_H

#include "profiler/prof_internal.h"

/* Within the transaction that makes the schema. *@out stays NULL where SQLite keeps bytes of each
 * page for itself: then rows are inserted as ever. */
enum status prof__bulk_new(struct prof_bulk **out, sqlite3 *db, struct err *err);
void prof__bulk_free(struct prof_bulk *bulk); /* accepts NULL */

/* What the statements of late rows are instead; values as in those of prof_writer_open.c. */
#define PROF_BULK_END  "INSERT OR REPLACE INTO late_ends (dur_ns, span_id) VALUES (?, ?)"
#define PROF_BULK_ARGS "INSERT INTO late_args (span_id, name_id, value)"

/* The spans of @lane, the first of them as row @base; its arguments. */
enum status prof__bulk_spans(struct prof_writer *writer, const struct prof_lane *lane,
			     int64_t base);
enum status prof__bulk_args(struct prof_writer *writer, const struct prof_lane *lane, int64_t base);

/* At the end, in this order. Find where the tables are. */
enum status prof__bulk_locate(struct prof_bulk *bulk, sqlite3 *db, struct err *err);
/* With the database closed: put the pages into it. */
enum status prof__bulk_join(struct prof_bulk *bulk, struct err *err);
/* With it open again: the late rows go to their places. */
enum status prof__bulk_settle(sqlite3 *db, struct err *err);

#endif /* PROF_BULK_H */
