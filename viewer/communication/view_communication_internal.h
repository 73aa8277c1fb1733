/*
 * The state of the screen Communication, shared by the file that reads and the one that draws and
 * handles it.
 *
 * The rows of the report `communication` by weight update are read once for all news: they are the
 * cells of the map, whose columns are weight updates and whose rows are ranks, for every quantity.
 * The table beside it is the same report by what the user chooses.
 */
#ifndef VIEW_COMMUNICATION_INTERNAL_H
#define VIEW_COMMUNICATION_INTERNAL_H

#include "common/arena.h"
#include "reports/table/report_axis.h"
#include "viewer/draw/view_grid.h"
#include "viewer/draw/view_time.h"
#include "viewer/view_screen.h"

#define VIEW_COMM_ROWS 500000 /* most cells of the map; the status reports any more */

/* What the map shows, in the order of view__comm_quantities. */
enum view_comm_quantity {
	VIEW_COMM_EXPOSED,
	VIEW_COMM_HIDDEN,
	VIEW_COMM_WAITED,
	VIEW_COMM_BYTES,
	VIEW_COMM_LAST,
	VIEW_COMM_QUANTITIES
};

struct view_comm_quantity_info {
	const char *column, *name; /* of the report; as shown */
	enum report_quantity quantity;
};

extern const struct view_comm_quantity_info view__comm_quantities[VIEW_COMM_QUANTITIES];

/* What a rank exchanged in a weight update, or, without one, in its calls of this number. */
struct view_comm_cell {
	int64_t rank, execution, epoch, weight_update, number, start_ns, span_id;
	const char *mode;                   /* in the arena; NULL: none */
	double value[VIEW_COMM_QUANTITIES]; /* NaN: unknown */
	int column, row;                    /* of the map */
};

enum view_comm_show {
	VIEW_COMM_BOTH,
	VIEW_COMM_MAP,
	VIEW_COMM_TABLE,
	VIEW_COMM_SHOWS
};

/* Areas within the body; those that are not shown are empty. */
struct view_comm_layout {
	struct view_rect heading; /* the cell under the cursor */
	struct view_rect map;     /* without the ranks at its left */
	struct view_rect legend;
	struct view_rect table;
};

struct view_communication {
	struct view_comm_cell *cells; /* by column, then rank */
	size_t count, capacity;
	bool cut;       /* more rows exist */
	int64_t *ranks; /* ascending */
	size_t *first;  /* the first cell of each column, and the end */
	int rank_count, columns;
	double greatest[VIEW_COMM_QUANTITIES]; /* of all cells */
	struct arena arena;                    /* of the above but the cells */

	enum view_comm_quantity quantity;
	enum view_comm_show show;
	int by; /* grouping of the table */
	int row, column;
	struct view_window window, extent; /* columns of the map; `to` is exclusive */
	bool begun;

	struct view_comm_layout areas;
	double *picture; /* across x down values, of the window */
	int across, down;
	struct arena picture_arena;

	struct view_grid grid;
	int listed; /* the grouping of the grid's rows; -1: none, or they are old */
};

/* view_communication_read.c */
const struct report_grouping *view__comm_grouping(const char *by); /* of the report, which has it */
enum status view__comm_read(struct view_communication *screen, struct view_context *context,
			    struct err *err);
enum status view__comm_list(struct view_communication *screen, struct view_context *context,
			    struct err *err);
/* The cell of a rank and a weight update; NULL: the rank has exchanged nothing then. */
const struct view_comm_cell *view__comm_cell(const struct view_communication *screen, int row,
					     int column);
int view__comm_row_of(const struct view_communication *screen, int64_t rank); /* -1: none */
/* The column of the cells with the keys of @like; NULL mode, IPS_NULL execution: any. -1: none. */
int view__comm_column_of(const struct view_communication *screen,
			 const struct view_comm_cell *like);
/* The column with the greatest value (of shares hidden, the least), and its row. */
bool view__comm_worst(const struct view_communication *screen, int *row, int *column);

/* view_communication.c */
/* Find what is drawn in the cell @x, @y of the body. */
bool view__comm_find(const struct view_communication *screen, int x, int y, int *row, int *column);

#endif /* VIEW_COMMUNICATION_INTERNAL_H */
