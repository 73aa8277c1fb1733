/*
 * Records in order, more of them than memory holds.
 *
 * Records are put into a buffer; a full buffer is sorted by a thread of the sorter's own and goes
 * to an unnamed file as a run, while the next buffer fills. Reading merges the runs. What fits in
 * one buffer never sees a file.
 *
 * One thread puts and then reads. The records are the sorter's.
 */
#ifndef REPORT_IMPORT_SORT_H
#define REPORT_IMPORT_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A part of an event, on its way into the database. Followed by its arguments
 * (report_import_scan.h) up to @bytes. */
struct import_record {
	int64_t time_ns;
	int64_t dur_ns;  /* of a span; -1: to the end of what encloses it */
	uint64_t value;  /* a sample's bits; the hash of a flow's, a pair's or an asynchronous id */
	uint64_t number; /* of the event, in order of the file */
	uint32_t thread; /* index */
	uint32_t site;   /* index */
	uint32_t bytes;  /* of all, a multiple of 8 */
	uint8_t kind;    /* enum import_record_kind */
	uint8_t async;   /* within asynchronous spans: 1 + depth, at most 255; else 0 */
	uint8_t unfinished; /* a begin whose end never came */
	uint8_t paired;     /* stands for a begin and, unless unfinished, its end */
};
_Static_assert(sizeof(struct import_record) == 48, "records are packed by hand");

#define IMPORT_RECORD_LIMIT ((size_t)64 << 10) /* bytes of a record */

/* At one time, records come in this order. */
enum import_record_kind {
	IMPORT_RECORD_FLOW_NEXT, /* ends at the next span */
	IMPORT_RECORD_SPAN,
	IMPORT_RECORD_INSTANT,
	IMPORT_RECORD_SAMPLE,
	IMPORT_RECORD_FLOW_START,
	IMPORT_RECORD_FLOW_STEP,
	IMPORT_RECORD_FLOW_END,
	/* halves of spans, which are paired first */
	IMPORT_RECORD_BEGIN,
	IMPORT_RECORD_STOP
};

/* Less than 0: @a comes first. Total: the number decides at last. */
typedef int (*import_order)(const struct import_record *a, const struct import_record *b);
int report__import_by_time(const struct import_record *a, const struct import_record *b);
/* The halves of one pair lie together (value), in order of time. */
int report__import_by_pair(const struct import_record *a, const struct import_record *b);

struct import_sorter; /* opaque */

/* @beside: a path whose folder takes the file of runs. @memory: bytes of both buffers. */
enum status report__import_sorter_new(struct import_sorter **out, import_order order,
				      const char *beside, size_t memory, struct err *err);
void report__import_sorter_free(struct import_sorter *sorter); /* accepts NULL */

/* Room for a record of @bytes (at most the limit, a multiple of 8), for the caller to fill before
 * the next call. */
enum status report__import_sorter_put(struct import_sorter *sorter, size_t bytes,
				      struct import_record **out, struct err *err);

/* No more puts. */
enum status report__import_sorter_turn(struct import_sorter *sorter, struct err *err);
/* The next record, valid until the next call; *@out NULL: there are no more. */
enum status report__import_sorter_next(struct import_sorter *sorter,
				       const struct import_record **out, struct err *err);

#endif /* REPORT_IMPORT_SORT_H */
