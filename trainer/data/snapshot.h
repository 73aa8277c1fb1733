/*
 * Named fields of bytes in one file: the state from which a stopped training resumes.
 *
 * The same function both writes and reads a set of fields, depending on how the snapshot was
 * opened. The file is written under a temporary name, synced and renamed, so it is complete or
 * absent. It ends with a digest of everything before, which is checked before any field is read.
 * Numbers are in this machine's byte order; a file of the other order is rejected.
 *
 * Errors stick in the snapshot's struct err: after the first one, fields do nothing. One thread.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct snapshot; /* opaque */

/* Open for writing. @path and @err are borrowed; @err is not NULL. On failure *@out is NULL. */
enum status snapshot_create(struct snapshot **out, const char *path, struct err *err);

/* Open for writing fields to memory, which snapshot_append() copies into another snapshot. */
enum status snapshot_create_part(struct snapshot **out, struct err *err);
const void *snapshot_part(const struct snapshot *snapshot, size_t *bytes); /* until it is closed */
void snapshot_append(struct snapshot *snapshot, const void *part, size_t bytes);

/* Open for reading the borrowed @bytes of file @path. Bytes that are damaged or no snapshot are
 * ST_INVALID. */
enum status snapshot_parse(struct snapshot **out, const char *path, const void *bytes,
			   size_t length, struct err *err);

/* Rename a written file to its path, or delete it if anything failed. NULL: ST_OK. */
enum status snapshot_close(struct snapshot *snapshot);

bool snapshot_reads(const struct snapshot *snapshot);
struct err *snapshot_err(const struct snapshot *snapshot);
const char *snapshot_path(const struct snapshot *snapshot);

/* Set the prefix of the names of all following fields; initially "". Copied. */
void snapshot_prefix(struct snapshot *snapshot, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Write @bytes of @data, or read them: a field that is absent or has another size is an error. */
void snapshot_field(struct snapshot *snapshot, const char *name, void *data, size_t bytes);

/* While reading: does a field of that name and size exist? */
bool snapshot_fits(const struct snapshot *snapshot, const char *name, size_t bytes);

/* Write *@bytes of @data. When reading, return the field's bytes, borrowed from the snapshot's;
 * NULL on failure. */
const void *snapshot_bytes(struct snapshot *snapshot, const char *name, const void *data,
			   size_t *bytes);

/* Write or read a number; a number read outside [@least, @greatest] is an error. */
void snapshot_integer(struct snapshot *snapshot, const char *name, int64_t *value, int64_t least,
		      int64_t greatest);
void snapshot_real(struct snapshot *snapshot, const char *name, double *value);
void snapshot_flag(struct snapshot *snapshot, const char *name, bool *value);

/* Write @text. When reading, return the field's 0-terminated bytes, valid until the snapshot is
 * closed; NULL on failure. */
const char *snapshot_text(struct snapshot *snapshot, const char *name, const char *text);

#endif /* SNAPSHOT_H */
