/*
 * Shared by the writers of graph.json and execution.json: rows of a query as JSON; by them and the
 * writer of debug.cbor: the file. Derived data (the target, the program tree, the memory of tiles)
 * comes from ipuscope/report.h.
 *
 * A failure is sticky, in the err: later calls then write nulls at most.
 */
#ifndef POPVISION_INTERNAL_H
#define POPVISION_INTERNAL_H

#include "common/fs.h"
#include "common/jsonw.h"
#include "popvision/popvision.h"

struct popvision {
	struct ips_report *report;
	const struct ips_report_target *target; /* name NULL: no device was simulated */
	struct jsonw w;
	int64_t replica; /* or POPVISION_ALL_REPLICAS */
	int64_t tiles;   /* per replica; 0: no device */
	struct err *err; /* not NULL */
};

/* Write an integer; IPS_NULL becomes null. */
void popvision__int(struct popvision *pv, const char *key, int64_t value);

/* Write the columns of the only row of @sql as keys of the open object: a column "a.b" is b in an
 * object a, which adjacent columns share. A real that is not finite is null, and KEY_nonfinite has
 * its name. */
void popvision__fields(struct popvision *pv, const char *sql);

/* Write an array under @key: an object per row; the first column; the first column, each in a
 * separate array. */
void popvision__objects(struct popvision *pv, const char *key, const char *sql);
void popvision__column(struct popvision *pv, const char *key, const char *sql);
void popvision__listed(struct popvision *pv, const char *key, const char *sql);

/* Write a number per tile of a replica (@values NULL: zeros), run-length encoded: {"runs":
 * [[count, value], ...]}. */
void popvision__by_tile(struct popvision *pv, const char *key, const int64_t *values);

/* A file being written under a temporary name. */
struct popvision_file {
	struct fs_writer writer;
	FILE *stream;
};
enum status popvision__file_open(struct popvision_file *file, const char *path, struct err *err);
/* Install the file if @err, which is not NULL, has no failure and all writes succeeded; otherwise
 * remove it. */
enum status popvision__file_close(struct popvision_file *file, struct err *err);

/* Write "ipuscope" and the output of @body to @path. */
enum status popvision__write(struct ips_report *report, const char *path, int64_t replica,
			     void (*body)(struct popvision *pv), struct err *err);

/* Write the memory section of graph.json. */
void popvision__memory(struct popvision *pv);

/* Write the known cycles by tile of each compute set, in their order. */
void popvision__compute_set_cycles(struct popvision *pv, const char *key);

#endif /* POPVISION_INTERNAL_H */
