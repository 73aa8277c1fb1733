/*
 * Interface between the files of the public report: lists that are read once, rows read by a table
 * of fields, interned texts, cursors.
 *
 * Threading: none. Ownership: the report owns all of it.
 */
#ifndef REPORT_PUBLIC_INTERNAL_H
#define REPORT_PUBLIC_INTERNAL_H

#include <ipuscope/report.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/map.h"
#include "profiler/prof_db.h"

/* ---- rows ------------------------------------------------------------------------------------ */

/* Conversion of a column to a member. */
enum report_public__member {
	PUBLIC_INT,
	PUBLIC_REAL,
	PUBLIC_TEXT, /* interned by report_public__text() */
	PUBLIC_KIND, /* a program's type, as enum */
	PUBLIC_MODE, /* "train", as enum ips_mode */
	PUBLIC_MODE_BYTE,
	PUBLIC_CLOCK, /* 0 or 1, as enum ips_clock */
	PUBLIC_PHASE  /* its first letter */
};

struct report_public__field {
	size_t offset;
	enum report_public__member member;
};

/* The member @name of struct ips_report_@type. */
#define PUBLIC_FIELD(type, name, member)                                                           \
	{                                                                                          \
		offsetof(struct ips_report_##type, name), PUBLIC_##member                          \
	}

/* ---- lists ----------------------------------------------------------------------------------- */

enum report_public__list_id {
	PUBLIC_PROGRAMS,
	PUBLIC_COMPUTE_SETS,
	PUBLIC_OPERATIONS,
	PUBLIC_LAYERS,
	PUBLIC_VARIABLES,
	PUBLIC_LIVENESS,
	PUBLIC_RUNS,
	PUBLIC_TRACKS,
	PUBLIC_LISTS
};

struct report_public__list {
	bool loaded;
	enum status status; /* of reading it; on failure the list is empty */
	unsigned char *items;
	size_t count, capacity;
};

/* The public struct, and the key of its spans. */
struct report_public__track {
	struct ips_report_track track;
	int64_t track_id;
};

/* ---- report ---------------------------------------------------------------------------------- */

/* Interned texts, stored in the arena. */
struct report_public__texts {
	struct map map;
	const char **items; /* map.count of them */
	size_t capacity;
};

struct report_public__memory; /* report_public_memory.c */

struct ips_report {
	struct prof_db *db;
	struct err first; /* the first failure; status ST_OK: none */
	struct ips_report_info info;
	bool target_known, graph_known;
	struct ips_report_target target;
	struct ips_report_graph graph;
	int64_t first_root;
	struct report_public__list lists[PUBLIC_LISTS];
	struct report_public__memory *memory; /* NULL: not loaded yet */
	struct report_public__texts texts;
	struct arena arena; /* texts */
};

/* Return the status of @err for a public function, with its text in @message (may be NULL). Record
 * a failure that is the report's first; pass NULL as @report for a wrong request. */
int report_public__status(struct ips_report *report, const struct err *err, char *message,
			  size_t size);
/* Report ST_INVALID: the argument @name must not be NULL. */
int report_public__null_argument(const char *name, char *message, size_t size);

/* Intern @text until the report is closed: equal texts are equal pointers. NULL for a NULL @text,
 * and after a failure, which is in @err. */
const char *report_public__text(struct ips_report *report, const char *text, struct err *err);

/* Fill @item from the current row of @query: column i by @fields[i]. A failure is in @err. */
void report_public__row(struct ips_report *report, const struct prof_query *query,
			const struct report_public__field *fields, size_t count, void *item,
			struct err *err);

/* -1: the list cannot be read. */
int64_t report_public__count(struct ips_report *report, enum report_public__list_id id);
/* NULL: no such item. */
void *report_public__item(struct ips_report *report, enum report_public__list_id id, int64_t index);

/* Index of an item by its number in the database; IPS_REPORT_NONE: no such item. */
int64_t report_public__program_index(struct ips_report *report, int64_t program_id);
int64_t report_public__variable_index(struct ips_report *report, int64_t variable_id);
int64_t report_public__track_index(struct ips_report *report, int64_t track_id);

void report_public__memory_free(struct report_public__memory *memory); /* accepts NULL */

/* ---- cursors --------------------------------------------------------------------------------- */

/* First member of every cursor. */
struct report_public__cursor {
	struct ips_report *report;
	struct prof_query *query; /* NULL: at the end */
	struct err err;           /* why it ended; status ST_OK: no more rows */
};

#endif /* REPORT_PUBLIC_INTERNAL_H */
