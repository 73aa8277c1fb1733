/*
 * What the writers of graph.json and execution.json share: rows of a question, as JSON. What is
 * concluded from rows (the target, the tree of programs, the memory of tiles) is
 * ipuscope/report.h's.
 *
 * The first failure stays in `status`, and makes the calls after it write nulls and nothing more.
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
	int64_t replica; /* POPVISION_ALL_REPLICAS */
	int64_t tiles;   /* of a replica; 0: no device */
	enum status status;
	struct err *err;
};

/* Keep the report's own failure, if it has one. */
void popvision__check(struct popvision *pv);

/* Bound in each question: :replica (NULL: all). */
struct prof_query *popvision__open(struct popvision *pv, const char *sql); /* NULL: failed */
bool popvision__step(struct popvision *pv, struct prof_query *query);

/* IPS_NULL is null. */
void popvision__int(struct popvision *pv, const char *key, int64_t value);

/* The columns of @query as keys of the open object: a column "a.b" is b in an object a, which
 * neighbours share. A real that is not finite is null, and KEY_nonfinite says which. */
void popvision__columns(struct popvision *pv, const struct prof_query *query);
void popvision__fields(struct popvision *pv, const char *sql); /* of its one row */

/* Under @key an array: an object for each row; the first column; the first column, each in an array
 * of its own. */
void popvision__objects(struct popvision *pv, const char *key, const char *sql);
void popvision__column(struct popvision *pv, const char *key, const char *sql);
void popvision__listed(struct popvision *pv, const char *key, const char *sql);

/* A number for each tile of a replica (NULL: zeros), run-length coded: {"runs": [[count, value],
 * ...]}. */
void popvision__by_tile(struct popvision *pv, const char *key, const int64_t *values);

/* A file that is being written beside its place. */
struct popvision_file {
	struct fs_writer writer;
	FILE *stream;
};
enum status popvision__file_open(struct popvision_file *file, const char *path, struct err *err);
/* In its place where @status is ST_OK and all could be written; else nothing is left of it. */
enum status popvision__file_close(struct popvision_file *file, enum status status, struct err *err);

/* Write "ipuscope", then what @body writes: into @path. */
enum status popvision__write(struct ips_report *report, const char *path, int64_t replica,
			     void (*body)(struct popvision *pv), struct err *err);

/* memory of graph.json. */
void popvision__memory(struct popvision *pv);

/* The compute sets in their order, what is known of their cycles by tile. */
void popvision__compute_set_cycles(struct popvision *pv, const char *key);

#endif /* POPVISION_INTERNAL_H */
