/*
 * State of the Programs screen: a tree of programs in arrays, and the rows that are shown.
 *
 * Programs refer to their parent, first child and next sibling by index, so trees of any depth
 * are walked without recursion. Two reports share one tree: programs at the same place in both
 * (same types and names of all ancestors, and the same rank among equal siblings) are one node.
 *
 * Cycles are simulated and belong to one run of the traced program (a weight update): a program's
 * own cycles, and those including all descendants. Called programs count at their definition, not
 * at their call.
 */
#ifndef VIEW_PROGRAMS_INTERNAL_H
#define VIEW_PROGRAMS_INTERNAL_H

#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_PROGRAMS_MOST 300000 /* per report; the status reports if more are omitted */
#define VIEW_NO_PROGRAM    (-1)

enum view_side {
	VIEW_SOURCE_SIDE,
	VIEW_TARGET_SIDE,
	VIEW_SIDES
};

struct view_program {
	int64_t id[VIEW_SIDES];     /* IPS_NULL: that report does not have it */
	int64_t own[VIEW_SIDES];    /* cycles without descendants */
	int64_t cycles[VIEW_SIDES]; /* including all descendants */
	int64_t times[VIEW_SIDES];  /* its own steps in one run */
	int64_t position, repeat, call;
	const char *type, *name, *operation; /* never NULL */
	uint64_t path;                       /* hash of its ancestors and itself */
	int parent, first, next, depth;
	int inside;   /* number of descendants */
	bool reached; /* from a root; false if its parents form a cycle */
	bool open, matches, shown;
};

struct view_tree {
	struct view_program *nodes; /* the source's by id, then those that only the target has */
	size_t capacity;
	int count, sources;
	int *walk; /* reachable programs in preorder */
	int walk_count, first;
	bool cut; /* more than VIEW_PROGRAMS_MOST exist */
	struct arena arena;
};

enum view_program_order {
	VIEW_PROGRAMS_AS_RUN,
	VIEW_PROGRAMS_BY_CYCLES,
	VIEW_PROGRAMS_BY_NAME,
	VIEW_PROGRAM_ORDERS
};

enum view_program_columns {
	VIEW_PROGRAM_ALL_COLUMNS,
	VIEW_PROGRAM_CYCLES,
	VIEW_PROGRAM_NAMES,
	VIEW_PROGRAM_COLUMN_SETS
};

/* A merged file: number of ranks, and number of ranks whose runs are counted; otherwise 1. */
struct view_program_ranks {
	int64_t all, seen;
};

struct view_programs {
	struct view_tree tree;
	int *rows; /* indexes of the shown programs */
	int count;
	int64_t at, scroll;
	int64_t selected; /* index of the cursor's program in the tree; kept over loads */
	bool flat;        /* show a list of leaves, longest first, instead of the tree */
	bool by_type;     /* the details show sums by type */
	enum view_program_order order;
	bool reverse;
	enum view_program_columns columns;
	int64_t ipu, last_ipu; /* IPU whose cycles are shown; -1: all */
	char filter[128], trouble[96];
	double clock_hz[VIEW_SIDES]; /* NaN: unknown */
	int64_t updates[VIEW_SIDES]; /* weight updates of the run so far; 0: unknown */
	struct view_program_ranks ranks[VIEW_SIDES];
	bool loaded;
	struct view_blocks details;
	struct view_rect table, line, lower;
};

/* The functions that read do nothing after a failure, which @err (not NULL) keeps. */

/* view_programs_draw.c */
void view__programs_detail(struct view_programs *screen, struct view_context *context,
			   struct err *err);
void view__programs_detail_sql(const struct view_programs *screen, struct str *out);
void view__programs_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane);

/* view_programs_tree.c */
void view__tree_read(struct view_tree *out, struct view_context *context, struct prof_db *db,
		     struct err *err);
/* Compute children, the walk and paths. @order of siblings. Call it after all programs are read. */
void view__tree_link(struct view_tree *tree, enum view_program_order order, bool reverse,
		     struct err *err);
void view__tree_cycles(struct view_tree *tree, struct prof_db *db, enum view_side side,
		       const struct view_program_ranks *ranks, int64_t ipu, struct err *err);
void view__tree_sums(struct view_tree *tree); /* compute cycles from own cycles */
int view__tree_find(const struct view_tree *tree, enum view_side side, int64_t id);
void view__tree_fini(struct view_tree *tree);
/* The SQL statement of the cycles, of all ranks together; @ipu -1: all. */
void view__tree_cycles_sql(struct str *out, const struct view_program_ranks *ranks, int64_t ipu);
void view__tree_ranks(struct prof_db *db, struct view_program_ranks *out, struct err *err);
extern const char view__tree_sql[];
/* Merge @target's programs into the source's @tree. Both must be linked; @tree must be linked again
 * afterwards. */
void view__tree_join(struct view_tree *tree, const struct view_tree *target, struct err *err);
/* Compute the rows from the tree, the filter and the open programs; keep the cursor's program. */
void view__programs_rows(struct view_programs *screen, bool differ);
void view__programs_scroll(struct view_programs *screen);
const struct view_program *view__programs_at(const struct view_programs *screen);
/* Open the ancestors of @program and move the cursor to it. */
void view__programs_show(struct view_programs *screen, int program, bool differ);
bool view__programs_search(void *state, struct view_context *context, const char *text,
			   bool forward);
void view__programs_filter(void *state, const char *text);

#endif /* VIEW_PROGRAMS_INTERNAL_H */
