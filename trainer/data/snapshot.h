/*
 * Named fields of bytes in one file: what a stopped training goes on from.
 *
 * One function names the fields, and both writes and reads them: a snapshot is open for either. The
 * file is written aside, synced and renamed: it is there whole or not at all. It ends with a digest
 * of all that comes before, which is compared before anything is believed. Numbers have this
 * machine's order of bytes; a file of the other order is refused.
 *
 * Errors stick in the snapshot's struct err: after the first, fields do nothing. One thread.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct snapshot; /* opaque */

/* For writing. @path and @err are borrowed; @err is not NULL. On failure *@out is NULL. */
enum status snapshot_create(struct snapshot **out, const char *path, struct err *err);

/* For writing fields into memory, which snapshot_append() puts into another snapshot. */
enum status snapshot_create_part(struct snapshot **out, struct err *err);
const void *snapshot_part(const struct snapshot *snapshot, size_t *bytes); /* until it is closed */
void snapshot_append(struct snapshot *snapshot, const void *part, size_t bytes);

/* For reading @bytes that the caller keeps, the file @path. What is no snapshot or is damaged is
 * ST_INVALID. */
enum status snapshot_parse(struct snapshot **out, const char *path, const void *bytes,
			   size_t length, struct err *err);

/* Put a written file in its place, or leave nothing of it where anything failed. NULL: ST_OK. */
enum status snapshot_close(struct snapshot *snapshot);

bool snapshot_reads(const struct snapshot *snapshot);
struct err *snapshot_err(const struct snapshot *snapshot);
const char *snapshot_path(const struct snapshot *snapshot);

/* What stands before the names of all fields from now on: "" at first. Copied. */
void snapshot_prefix(struct snapshot *snapshot, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Write @bytes of @data, or read them: a field that is absent or has another size is an error. */
void snapshot_field(struct snapshot *snapshot, const char *name, void *data, size_t bytes);

/* While reading: is there such a field, of that size? */
bool snapshot_fits(const struct snapshot *snapshot, const char *name, size_t bytes);

/* Write *@bytes of @data. Reading lends the field's, until the snapshot's bytes go; NULL where it
 * failed. */
const void *snapshot_bytes(struct snapshot *snapshot, const char *name, const void *data,
			   size_t *bytes);

/* A number; what is read is at least @least and at most @greatest, else it is an error. */
void snapshot_integer(struct snapshot *snapshot, const char *name, int64_t *value, int64_t least,
		      int64_t greatest);
void snapshot_real(struct snapshot *snapshot, const char *name, double *value);
void snapshot_flag(struct snapshot *snapshot, const char *name, bool *value);

/* A text: write @text. Reading lends the field's bytes, followed by a 0, until the snapshot is
 * closed; NULL where it failed. */
const char *snapshot_text(struct snapshot *snapshot, const char *name, const char *text);

#endif /* SNAPSHOT_H */
