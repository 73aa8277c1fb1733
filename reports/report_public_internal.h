/*
 * What the files of the public report share: lists that are read once, rows read by a table of
 * fields, texts that are kept once, cursors.
 *
 * Threading: none. Ownership: all of it is the report's.
 */
#ifndef REPORT_PUBLIC_INTERNAL_H
#define REPORT_PUBLIC_INTERNAL_H

#include <ipuscope/report.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"

/* ---- rows ---------------------------------------------------------------------------------------
 */

/* How a column becomes a member. */
enum report__member {
	REPORT__INT,
	REPORT__REAL,
	REPORT__TEXT, /* kept: report__text() */
	REPORT__KIND, /* a program's type, as enum */
	REPORT__MODE, /* "train", as enum ips_mode */
	REPORT__MODE_BYTE,
	REPORT__CLOCK, /* 0 or 1, as enum ips_clock */
	REPORT__PHASE  /* its first letter */
};

struct report__field {
	size_t offset;
	enum report__member member;
};

/* ---- lists --------------------------------------------------------------------------------------
 */

enum report__list_id {
	REPORT__PROGRAMS,
	REPORT__COMPUTE_SETS,
	REPORT__OPERATIONS,
	REPORT__LAYERS,
	REPORT__VARIABLES,
	REPORT__LIVENESS,
	REPORT__RUNS,
	REPORT__TRACKS,
	REPORT__LISTS
};

struct report__list {
	bool loaded;
	enum status status; /* of reading it; then it is empty */
	unsigned char *items;
	size_t count, capacity;
};

/* The public struct with what finds its spans. */
struct report__track {
	struct ips_report_track track;
	int64_t track_id;
};

/* ---- the report ---------------------------------------------------------------------------------
 */

/* Texts, each once: an open hash table of pointers into the arena. */
struct report__texts {
	const char **slots;
	size_t capacity, count; /* capacity is a power of two, or 0 */
};

struct report__memory; /* report_public_memory.c */

struct ips_report {
	struct prof_db *db;
	struct err first; /* failure; its status ST_OK: none */
	struct ips_report_info info;
	bool target_known, graph_known;
	struct ips_report_target target;
	struct ips_report_graph graph;
	int64_t first_root;
	struct report__list lists[REPORT__LISTS];
	struct report__memory *memory; /* NULL: not asked for yet */
	struct report__texts texts;
	struct arena arena; /* texts */
};

/* @status as the public functions return it, with its text in @message (may be NULL). The first
 * failure is kept, but for a NULL @report: of requests that are wrong. */
int report__status(struct ips_report *report, enum status status, const struct err *err,
		   char *message, size_t size);
/* ST_INVALID: the argument @name is NULL and must not be. */
int report__null(const char *name, char *message, size_t size);

/* The one copy of @text, until the report is closed; equal texts are equal pointers. *@out NULL for
 * a NULL @text. */
enum status report__text(struct ips_report *report, const char **out, const char *text,
			 struct err *err);

/* The first column of the first row of @sql; IPS_NULL where there is none, or a failure, which is
 * kept. */
int64_t report__number(struct ips_report *report, const char *sql);

/* Fill @item from the row that @query stands on: column i by @fields[i]. */
enum status report__row(struct ips_report *report, const struct prof_query *query,
			const struct report__field *fields, size_t count, void *item,
			struct err *err);

/* Read the list @id, if it was not yet, with what others say of its items. */
enum status report__load(struct ips_report *report, enum report__list_id id);
/* -1: it cannot be read. */
int64_t report__count(struct ips_report *report, enum report__list_id id);
/* NULL: there is none. */
void *report__item(struct ips_report *report, enum report__list_id id, int64_t index);

/* IPS_REPORT_NONE: there is none. */
int64_t report__program_index(struct ips_report *report, int64_t program_id);
int64_t report__variable_index(struct ips_report *report, int64_t variable_id);
int64_t report__track_index(struct ips_report *report, int64_t track_id);

/* What the lists say of each other, once they are read: the tree of programs; operations with their
 * programs and layers, and compute sets with both. */
enum status report__link_tree(struct ips_report *report, struct err *err);
enum status report__link_operations(struct ips_report *report, struct err *err);

void report__memory_free(struct report__memory *memory); /* accepts NULL */

/* ---- cursors ------------------------------------------------------------------------------------
 */

/* The first member of every cursor. */
struct report__cursor {
	struct ips_report *report;
	struct prof_query *query; /* NULL: it has come to its end */
	struct err err;           /* why; its status ST_OK: there is no more */
};

/* Allocate a cursor of @size bytes over @sql; bind and go on, or end it. On failure *@out is NULL.
 */
enum status report__cursor_open(void **out, size_t size, struct ips_report *report, const char *sql,
				struct err *err);
/* Step, and fill @item from the row; false: no more, or a failure. */
bool report__cursor_next(struct report__cursor *cursor, const struct report__field *fields,
			 size_t count, void *item);
void report__cursor_stop(struct report__cursor *cursor); /* that was the last */
/* ST_OK, or why there was no more. */
enum status report__cursor_failure(const struct report__cursor *cursor, struct err *err);
int report__cursor_close(struct report__cursor *cursor);

#endif /* REPORT_PUBLIC_INTERNAL_H */
