/*
 * State of the Operations screen, shared by its files.
 *
 * Rows are operations multiplied by their executions in a weight update
 * (reports/named/report_named.h), or their sums by layer, kind, or stage and phase. All times
 * come from the cost model: simulated, not measured.
 */
#ifndef VIEW_OPERATIONS_INTERNAL_H
#define VIEW_OPERATIONS_INTERNAL_H

#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"

#define VIEW_OPERATIONS_TWO_FROM 110 /* least width of details in two columns */

enum view_operations_way {
	VIEW_BY_OPERATION,
	VIEW_BY_LAYER,
	VIEW_BY_PART, /* layers; the optimizer and gradient accumulation separately */
	VIEW_BY_KIND,
	VIEW_BY_STAGE,
	VIEW_OPERATIONS_WAYS
};

enum view_operations_parts {
	VIEW_NO_PARTS,
	VIEW_PARTS_SCALED, /* bars proportional to the row's cycles */
	VIEW_PARTS_EVEN,   /* bars of equal length: shares */
	VIEW_OPERATIONS_PARTS
};

/* Sums over the operations behind the rows; NaN: unknown. */
struct view_operations_totals {
	int64_t operations;
	double cycles, compute, exchange, sync, flops, code_bytes;
};

struct view_operations {
	struct view_grid grid; /* first: view_state_grid() */
	enum view_operations_way way;
	enum view_operations_parts parts;
	bool ns;               /* times instead of cycles */
	bool closer;           /* Enter enlarged the details as far as they need or fit */
	int64_t stage, last;   /* selected stage, -1: all; the last existing stage */
	int64_t alone;         /* micro-batches are unknown: count each operation once */
	char inside[512];      /* SQL condition on the rows, or "" */
	char inside_name[128]; /* its description for the user */
	double clock_hz;       /* NaN: unknown, as below */
	double peak_cycle;     /* peak FLOP of one IPU in a cycle */
	struct str sql;        /* the statement of the rows */
	struct str more;       /* the statements of the details */
	struct view_operations_totals totals[2];
	struct view_blocks details;
	/* Relative to the body; empty: not shown. */
	struct view_rect heading, table, bars, line, lower;
};

struct view_operations_grouping {
	const char *name;    /* "operation", for the user */
	const char *column;  /* the grid's column that names a row */
	const char *keys;    /* of the grid */
	const char *columns; /* SQL of the columns that identify a row */
	const char *group;   /* SQL of GROUP BY; NULL: no sums */
};

/* view_operations_read.c; the functions that read do nothing after a failure, which @err (not NULL)
 * keeps. */
extern const struct view_operations_grouping view__operations_groupings[VIEW_OPERATIONS_WAYS];
/* Read the rows of the grid, their totals, and the facts that the screen needs. */
void view__operations_read(struct view_operations *screen, struct view_context *context,
			   struct err *err);
/* "layer Dense_128", "stage 1, phase F" */
void view__operations_row_name(const struct view_operations *screen, char *out, size_t size);
/* Add the SQL condition that selects the operations of the grid's row. Return false if there is no
 * row. */
bool view__operations_condition(const struct view_operations *screen, struct str *out, char *name,
				size_t size);
/* Read the details of the grid's row. */
void view__operations_detail(struct view_operations *screen, struct view_context *context,
			     struct err *err);

/* view_operations_draw.c */
void view__operations_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane);

#endif /* VIEW_OPERATIONS_INTERNAL_H */
