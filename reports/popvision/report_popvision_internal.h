/*
 * What the writers of graph.json and execution.json share: rows of a question, as JSON. What is
 * concluded from rows (the target, the tree of programs, the memory of tiles) is
 * ipuscope/report.h's.
 *
 * The first failure stays in `status`, and makes the calls after it write nulls and nothing more.
 */
#ifndef REPORT_POPVISION_INTERNAL_H
#define REPORT_POPVISION_INTERNAL_H

#include "common/fs.h"
#include "common/jsonw.h"
#include "reports/popvision/report_popvision.h"

struct report_pv {
	struct ips_report *report;
	const struct ips_report_target *target; /* name NULL: no device was simulated */
	struct jsonw w;
	int64_t replica; /* REPORT_ALL_REPLICAS */
	int64_t tiles;   /* of a replica; 0: no device */
	enum status status;
	struct err *err;
};

/* Keep the report's own failure, if it has one. */
void report__pv_check(struct report_pv *pv);

/* Bound in each question: :replica (NULL: all). */
struct prof_query *report__pv_open(struct report_pv *pv, const char *sql); /* NULL: failed */
bool report__pv_step(struct report_pv *pv, struct prof_query *query);

/* INT64_MIN is null. */
void report__pv_int(struct report_pv *pv, const char *key, int64_t value);

/* The columns of @query as keys of the open object: a column "a.b" is b in an object a, which
 * neighbours share. A real that is not finite is null, and KEY_nonfinite says which. */
void report__pv_columns(struct report_pv *pv, const struct prof_query *query);
void report__pv_fields(struct report_pv *pv, const char *sql); /* of its one row */

/* Under @key an array: an object for each row; the first column; the first column, each in an array
 * of its own. */
void report__pv_objects(struct report_pv *pv, const char *key, const char *sql);
void report__pv_column(struct report_pv *pv, const char *key, const char *sql);
void report__pv_listed(struct report_pv *pv, const char *key, const char *sql);

/* A number for each tile of a replica (NULL: zeros), run-length coded: {"runs": [[count, value],
 * ...]}. */
void report__pv_by_tile(struct report_pv *pv, const char *key, const int64_t *values);

/* A file that is being written beside its place. */
struct report_pv_file {
	struct fs_writer writer;
	FILE *stream;
};
enum status report__pv_file_open(struct report_pv_file *file, const char *path, struct err *err);
/* In its place where @status is ST_OK and all could be written; else nothing is left of it. */
enum status report__pv_file_close(struct report_pv_file *file, enum status status, struct err *err);

/* Write "ipuscope", then what @body writes: into @path. */
enum status report__pv_write(struct ips_report *report, const char *path, int64_t replica,
			     void (*body)(struct report_pv *pv), struct err *err);

/* memory of graph.json. */
void report__pv_memory(struct report_pv *pv);

/* The compute sets in their order, what is known of their cycles by tile. */
void report__pv_compute_set_cycles(struct report_pv *pv, const char *key);

#endif /* REPORT_POPVISION_INTERNAL_H */
