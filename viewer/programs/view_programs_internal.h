/*
 * The state of the screen Programs: a tree of programs in arrays, and the rows of it that are
 * shown.
 *
 * Programs know their parent, first child and next sibling by number, so that trees of any depth
 * are walked without recursion. Of two reports there is one tree: programs that are at the same
 * place of both (the same types and names above them, the n-th so called of its siblings) are one.
 *
 * Cycles are the simulator's, of one run of the traced program (a weight update): a program's own,
 * and those of all that is in it. Programs that are called count where they stand, not where they
 * are called from.
 */
#ifndef VIEW_PROGRAMS_INTERNAL_H
#define VIEW_PROGRAMS_INTERNAL_H

#include <regex.h>

#include "viewer/draw/view_blocks.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_PROGRAMS_MOST 300000 /* of a report; more are left out, and the status says so */
#define VIEW_NO_PROGRAM    (-1)

enum view_side {
	VIEW_SOURCE_SIDE,
	VIEW_TARGET_SIDE,
	VIEW_SIDES
};

struct view_program {
	int64_t id[VIEW_SIDES];     /* IPS_NULL: that report does not have it */
	int64_t own[VIEW_SIDES];    /* cycles */
	int64_t cycles[VIEW_SIDES]; /* with all that is in it */
	int64_t times[VIEW_SIDES];  /* its own steps in one run */
	int64_t position, repeat, call;
	const char *type, *name, *operation; /* never NULL */
	uint64_t path;                       /* what is above it, and what it is */
	int parent, first, next, depth;
	int inside;   /* programs in it, at any depth */
	bool reached; /* from a root: not so where parents go round in circles */
	bool open, matches, shown;
};

struct view_tree {
	struct view_program *nodes; /* those of the source by id, then those of the target alone */
	size_t capacity;
	int count, sources;
	int *walk; /* those that can be reached, parents first, in order */
	int walk_count, first;
	bool cut; /* there are more than VIEW_PROGRAMS_MOST */
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

/* Of a merged file: how many ranks, and of how many runs are counted; else 1. */
struct view_program_ranks {
	int64_t all, seen;
};

struct view_programs {
	struct view_tree tree;
	int *rows; /* programs as shown */
	int count, at, scroll;
	int64_t selected; /* the cursor's program, over loads: its place in the tree */
	bool flat;        /* what works, the longest first, instead of the tree */
	bool by_type;     /* the details are sums by type */
	enum view_program_order order;
	bool reverse;
	enum view_program_columns columns;
	int64_t ipu, last_ipu; /* whose cycles; -1: all */
	char filter[128], trouble[96];
	double clock_hz[VIEW_SIDES]; /* NaN: unknown */
	int64_t updates[VIEW_SIDES]; /* of the run so far; 0: unknown */
	struct view_program_ranks ranks[VIEW_SIDES];
	bool loaded;
	struct view_blocks details;
	struct view_rect table, line, lower;
};

/* view_programs_draw.c */
enum status view__programs_detail(struct view_programs *screen, struct view_context *context,
				  struct err *err);
void view__programs_detail_sql(const struct view_programs *screen, struct str *out);
void view__programs_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane);

/* view_programs_tree.c */
enum status view__tree_read(struct view_tree *out, struct view_context *context, struct prof_db *db,
			    struct err *err);
/* Parents, children, the walk and paths, once all programs are there. @order of siblings. */
enum status view__tree_link(struct view_tree *tree, enum view_program_order order, bool reverse,
			    struct err *err);
enum status view__tree_cycles(struct view_tree *tree, struct prof_db *db, enum view_side side,
			      const struct view_program_ranks *ranks, int64_t ipu, struct err *err);
void view__tree_sums(struct view_tree *tree); /* own cycles to those with all in it */
int view__tree_find(const struct view_tree *tree, enum view_side side, int64_t id);
void view__tree_fini(struct view_tree *tree);
/* The statement behind cycles, of all ranks together; @ipu -1: all. */
void view__tree_cycles_sql(struct str *out, const struct view_program_ranks *ranks, int64_t ipu);
enum status view__tree_ranks(struct prof_db *db, struct view_program_ranks *out, struct err *err);
extern const char view__tree_sql[];
/* @target's programs into @tree, the source's; both linked. @tree has to be linked again. */
enum status view__tree_join(struct view_tree *tree, const struct view_tree *target,
			    struct err *err);
/* The rows from the tree, the filter, and what is open; the cursor stays on its program. */
void view__programs_rows(struct view_programs *screen, bool differ);
void view__programs_scroll(struct view_programs *screen);
const struct view_program *view__programs_at(const struct view_programs *screen);
/* Open what is above @program, and make it the cursor's. */
void view__programs_show(struct view_programs *screen, int program, bool differ);
bool view__programs_search(struct view_programs *screen, struct view_context *context,
			   const char *text, bool forward);
void view__programs_filter(struct view_programs *screen, const char *text);

#endif /* VIEW_PROGRAMS_INTERNAL_H */
