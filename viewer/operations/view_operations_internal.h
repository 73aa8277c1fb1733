/*
 * The state of the screen Operations, shared by the files that ask, that tell more of one row, and
 * that draw.
 *
 * The rows are operations as often as a weight update executes them
 * (reports/named/report_operations.h), or their sums by layer, kind, or stage and phase. All times
 * are the cost model's: simulated, not measured.
 */
#ifndef VIEW_OPERATIONS_INTERNAL_H
#define VIEW_OPERATIONS_INTERNAL_H

#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"

enum view_operations_way {
	VIEW_BY_OPERATION,
	VIEW_BY_LAYER,
	VIEW_BY_PART, /* layers, the optimizer and the accumulation of gradients beside them */
	VIEW_BY_KIND,
	VIEW_BY_STAGE,
	VIEW_OPERATIONS_WAYS
};

enum view_operations_parts {
	VIEW_NO_PARTS,
	VIEW_PARTS_SCALED, /* bars as long as the row's cycles are */
	VIEW_PARTS_EVEN,   /* all of the same length: shares */
	VIEW_OPERATIONS_PARTS
};

/* Sums of what the rows are taken from; NaN: unknown. */
struct view_operations_totals {
	int64_t operations;
	double cycles, compute, exchange, sync, flops, code_bytes;
};

struct view_operations {
	struct view_grid grid;
	enum view_operations_way way;
	enum view_operations_parts parts;
	bool ns;             /* times instead of cycles */
	bool closer;         /* Enter: the details are all there is, or as many as have room */
	int64_t stage, last; /* -1: all stages; the last stage there is */
	int64_t alone;       /* micro-batches are unknown: each operation is executed once */
	char inside[512];    /* a condition that rows must meet, ""; with its name for people */
	char inside_name[128];
	double clock_hz;   /* NaN: unknown, as below */
	double peak_cycle; /* FLOP that one IPU can do in a cycle */
	struct str sql;    /* behind the rows */
	struct str more;   /* behind the details */
	struct view_operations_totals totals[2];
	struct view_blocks details;
	/* Relative to the body; empty: not shown. */
	struct view_rect heading, table, bars, line, lower;
};

struct view_operations_look {
	const char *name;    /* "operation", for people */
	const char *column;  /* of the grid, which names a row */
	const char *keys;    /* of the grid */
	const char *columns; /* those that make a row */
	const char *group;   /* what is summed; NULL: nothing is */
};

/* view_operations.c */
extern const struct view_operations_look view__operations_looks[VIEW_OPERATIONS_WAYS];
extern const struct view_grid_column view__operations_columns[];
extern const int view__operations_column_count;
void view__operations_where(const struct view_operations *screen, struct str *out);
/* The condition that the grid's row is made of; false: there is no row. */
bool view__operations_condition(const struct view_operations *screen, struct str *out, char *name,
				size_t size);

/* view_operations_draw.c */
enum status view__operations_detail(struct view_operations *screen, struct view_context *context,
				    struct err *err);
void view__operations_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane);

#endif /* VIEW_OPERATIONS_INTERNAL_H */
