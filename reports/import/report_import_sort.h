/*
 * An external sort of records.
 *
 * Records are put into a buffer. When it is full, the sorter's thread sorts it and writes it to an
 * unnamed file as a run, while the next buffer fills. Reading merges the runs, a bounded number at
 * one time. If all records fit into one buffer, no file is created.
 *
 * Threading: one thread puts and then reads. The sorter owns the records.
 */
#ifndef REPORT_IMPORT_SORT_H
#define REPORT_IMPORT_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A part of an event before it is recorded. Its arguments (report_import_scan.h) follow, up to
 * @bytes. */
struct import_record {
	int64_t time_ns;
	int64_t dur_ns; /* of a span; -1: until the end of the enclosing span. Of a flow's side: of its span */
	uint64_t value;  /* a sample's bits, or the hash of a flow's, pair's or asynchronous id */
	uint64_t number; /* position of the event in the file */
	uint32_t thread; /* index */
	uint32_t site;   /* index */
	uint32_t bytes;  /* total size, a multiple of 8 */
	uint8_t kind;    /* enum import_record_kind */
	uint8_t async;   /* within asynchronous spans: 1 + depth, at most 255; else 0 */
	uint8_t unfinished; /* a begin without an end */
	uint8_t paired;     /* made from a begin and, unless unfinished, its end */
};
_Static_assert(sizeof(struct import_record) == 48, "records are packed by hand");

#define IMPORT_RECORD_LIMIT ((size_t)64 << 10) /* maximum bytes of a record */

/* Order of records with the same time. */
enum import_record_kind {
	IMPORT_RECORD_FLOW_NEXT, /* ends at the next span */
	IMPORT_RECORD_SPAN,
	/* sides of flows that name the span they belong to; sorted behind it, by its time and
	 * duration, before the spans within it */
	IMPORT_RECORD_SPAN_FLOW_OUT,
	IMPORT_RECORD_SPAN_FLOW_IN,
	IMPORT_RECORD_INSTANT,
	IMPORT_RECORD_SAMPLE,
	IMPORT_RECORD_MEMORY, /* its row is its argument */
	IMPORT_RECORD_FLOW_START,
	IMPORT_RECORD_FLOW_ON, /* a step, or the start of one that is not under way */
	IMPORT_RECORD_FLOW_STEP,
	IMPORT_RECORD_FLOW_END,
	/* halves of spans, still to be paired */
	IMPORT_RECORD_BEGIN,
	IMPORT_RECORD_STOP,
	IMPORT_RECORD_STATE /* begins a span that lasts until the next one; without a site: none */
};

/* Return less than 0 if @a comes first. Records that are equal come in the order of their puts. */
typedef int (*import_order)(const struct import_record *a, const struct import_record *b);
int report__import_by_time(const struct import_record *a, const struct import_record *b);
/* Groups the halves of a pair (by value), in order of time. */
int report__import_by_pair(const struct import_record *a, const struct import_record *b);

struct import_sorter; /* opaque */

/* @beside: a path in the folder for the file of runs. @memory: bytes of the buffers and their keys;
 * merging takes 16 MiB instead. */
enum status report__import_sorter_new(struct import_sorter **out, import_order order,
				      const char *beside, size_t memory, struct err *err);
void report__import_sorter_free(struct import_sorter *sorter); /* accepts NULL */

/* Reserve a record of @bytes (at most the limit, a multiple of 8). The caller fills it before the
 * next call. */
enum status report__import_sorter_put(struct import_sorter *sorter, size_t bytes,
				      struct import_record **out, struct err *err);

/* End putting, start reading. After a failure in @err (not NULL) nothing is done. */
enum status report__import_sorter_read(struct import_sorter *sorter, struct err *err);
/* Return the next record, valid until the next call; NULL: no more, or @err (not NULL) holds a
 * failure, of this call or an earlier one. */
const struct import_record *report__import_sorter_next(struct import_sorter *sorter,
						       struct err *err);

#endif /* REPORT_IMPORT_SORT_H */
