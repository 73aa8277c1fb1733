/*
 * The state of the screen Memory, shared by the files that load, move, draw and join it.
 *
 * A tile is known by its index: IPU by IPU, each with as many tiles as the one with the most. A
 * position is where a tile comes in the order that is shown. Arrays by index hold bytes; they are
 * read once (view_memory_data.c), all else is made of them at load.
 *
 * Invariant after a load: tile indexes are in range, or there are no tiles at all.
 */
#ifndef VIEW_MEMORY_INTERNAL_H
#define VIEW_MEMORY_INTERNAL_H

#include "common/arena.h"
#include "common/fmt.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_MEMORY_SIDES      2         /* source, target */
#define VIEW_MEMORY_TILES      (1 << 18) /* of all IPUs; further IPUs are left out, and said so */
#define VIEW_MEMORY_CATEGORIES 32        /* what more there is goes to the last, "others" */
#define VIEW_MEMORY_REGIONS    3
#define VIEW_MEMORY_STACK      VIEW_SERIES /* areas above each other; the last may be the rest */
#define VIEW_MEMORY_MARKS      6           /* tiles selected beside the cursor's */
#define VIEW_MEMORY_COLUMNS    18 /* of the details: cursor, marks, sums; comparing, of each side */
#define VIEW_MEMORY_LARGEST    40 /* variables of a tile */
#define VIEW_MEMORY_NAMES      2048      /* of variables that are gone through for these, at most */
#define VIEW_MEMORY_RUNS_MOST  (1 << 20) /* rows of variables held of a report */
#define VIEW_MEMORY_ROWS       20000 /* of the table on the screen: the fullest; files have all */
#define VIEW_MEMORY_BINS       64
#define VIEW_MEMORY_SCALE      9 /* columns left of the curve */

enum view_memory_view {
	VIEW_MEMORY_CURVE,
	VIEW_MEMORY_CHIP,
	VIEW_MEMORY_HISTOGRAM,
	VIEW_MEMORY_TABLE,
	VIEW_MEMORY_IPUS, /* where there are several */
	VIEW_MEMORY_VIEWS
};

enum view_memory_breakdown {
	VIEW_MEMORY_WHOLE,
	VIEW_MEMORY_BY_CATEGORY,
	VIEW_MEMORY_BY_REGION,
	VIEW_MEMORY_BY_LIVENESS,
	VIEW_MEMORY_BREAKDOWNS
};

enum view_memory_region {
	VIEW_MEMORY_NON_INTERLEAVED,
	VIEW_MEMORY_INTERLEAVED,
	VIEW_MEMORY_OVERFLOWED
};

/* Bytes on the tile @index, and on each of @more tiles after it. */
struct view_memory_run {
	int64_t bytes, variable_id;
	int32_t index;
	uint16_t more;
	bool passing; /* of a variable that is not always live */
};

/* The runs of variables on tiles @from .. @to - 1 (indexes), IPU by IPU. */
struct view_memory_rows {
	struct view_memory_run *runs;
	size_t count, capacity;
	int64_t from, to;
	bool begun, many; /* read from before; more than are held, and not all IPUs' at once */
};

/* Of one report. Arrays by index; NULL: it has no memory of tiles. */
struct view_memory_side {
	int64_t *total, *capacity, *always, *not_always;
	int64_t *region[VIEW_MEMORY_REGIONS];
	int64_t *category[VIEW_MEMORY_CATEGORIES];
	int64_t *subject;    /* of the variable or layer looked at; NULL: none is */
	int64_t ranks;       /* of a merged report; else 1 */
	int64_t first_other; /* the first IPU of another rank's model; IPS_NULL: none */
	int64_t *apart;      /* by IPU: what variables that are not always live have together */
	struct view_memory_rows rows;
};

/* What one number per tile is about. */
struct view_memory_series {
	const char *name;
	const int64_t *bytes[VIEW_MEMORY_SIDES];
	int64_t sum; /* over the tiles shown, both sides */
};

/* The tiles shown, summed up. */
struct view_memory_sums {
	int64_t bytes, capacity, tiles; /* tiles: those that hold something */
	int64_t over, excess; /* tiles that hold more than they have; at most by so much */
	int64_t fullest;      /* index; -1: no tile */
	int64_t least;        /* bytes of the emptiest tile that holds something */
	int64_t greatest;     /* bytes of what is shown on the tile that has most of it */
};

/* A variable or a layer whose tiles are looked at. */
struct view_memory_subject {
	int64_t variable_id; /* IPS_NULL: a layer's, or nothing */
	char name[VIEW_PLACE_NAME];
};

enum view_memory_line_kind {
	VIEW_MEMORY_VALUE,
	VIEW_MEMORY_GROUP,
	VIEW_MEMORY_VARIABLE,
	VIEW_MEMORY_NOTE
};

struct view_memory_line {
	enum view_memory_line_kind kind;
	int depth, group;        /* of enum view_memory_group; what it opens, or lies in */
	const char *name, *more; /* more: kind and layer of a variable */
	int64_t value[VIEW_MEMORY_COLUMNS]; /* IPS_NULL: not recorded */
	int64_t most;                       /* what lines are sorted by */
	int64_t variable_id;
	int side; /* whose number that is */
	const char *layer;
};

enum view_memory_group {
	VIEW_MEMORY_NO_GROUP = -1,
	VIEW_MEMORY_CATEGORY_GROUP,
	VIEW_MEMORY_REGION_GROUP,
	VIEW_MEMORY_LIVENESS_GROUP,
	VIEW_MEMORY_VARIABLE_GROUP,
	VIEW_MEMORY_GROUPS
};

#define VIEW_MEMORY_ALL_GROUPS ((1u << VIEW_MEMORY_GROUPS) - 1)

/* A column of the details: a tile of a report, or a sum. Comparing, they are in pairs. */
struct view_memory_tile {
	int64_t index; /* or one of: */
	int side;
};

#define VIEW_MEMORY_ALL      (-1) /* all tiles that are shown */
#define VIEW_MEMORY_TOGETHER (-2) /* the selected ones and the cursor's */

struct view_memory_details {
	struct arena arena;
	struct view_memory_tile columns[VIEW_MEMORY_COLUMNS];
	int column_count;
	int width[VIEW_MEMORY_COLUMNS]; /* cells that its numbers and a gap before them need */
	int64_t together[VIEW_MEMORY_MARKS + 1]; /* the tiles that are VIEW_MEMORY_TOGETHER */
	int together_count;
	/* What of them variables that are not always live have together. */
	int64_t apart[VIEW_MEMORY_SIDES][VIEW_MEMORY_MARKS + 1];
	struct view_memory_line *lines;
	int count, variables_at; /* lines from there on are the variables */
	int at;                  /* the line under the cursor */
	unsigned open;           /* bits of groups */
	bool active;             /* moves go to the lines, not to the picture */
};

/* The curve: a number for each column, which is that of its fullest tile. Arrays of `count`. */
struct view_memory_curve {
	int64_t from, span; /* the window that it was made for */
	int count;
	double *bytes[VIEW_MEMORY_SIDES];
	double *part[VIEW_MEMORY_STACK]; /* what the fullest tile holds of each area */
	int parts;                       /* of them; the breakdown may have changed since */
	int64_t *index;                  /* that tile */
};

struct view_memory_bin {
	int64_t tiles[VIEW_MEMORY_SIDES];
	int64_t fullest; /* index; -1: none */
};

/*
 * The floor plans of the IPUs on one page, in the picture's coordinates. Comparing, an IPU has one
 * of the difference; where it is wide two, of Source and Target; where it is wider yet all three.
 */
struct view_memory_floor {
	int columns, rows;        /* tiles of a plan */
	int width, height;        /* its cells */
	int title;                /* rows above it */
	int each;                 /* plans of an IPU */
	int across, first, count; /* plans in a row; the first of all plans, and how many */
	double *values;           /* of all plans, one after another; NaN: no such tile */
	double low, high;         /* of the colours */
	double most;              /* of the differences, from 0 */
};

#define VIEW_MEMORY_PLANS_TWO 130 /* columns that two plans beside each other need */

struct view_memory_areas {
	struct view_rect heading, picture, rule, details;
};

struct view_memory {
	/* The reports' tiles; arrays and names in data_arena, the subject's in its own. */
	struct arena data_arena, subject_arena, picture_arena;
	struct view_memory_side side[VIEW_MEMORY_SIDES];
	int sides, ipus;
	int64_t *ipu_ids;
	int64_t tiles;    /* of each IPU */
	int64_t all_ipus; /* recorded; more than ipus: some are left out */
	size_t runs_most; /* rows of variables held of a report */
	const char *category[VIEW_MEMORY_CATEGORIES];
	int categories;
	struct view_memory_subject subject;
	bool jump; /* at the next load the cursor goes to the tile with most of what is shown */
	bool subject_stale;

	/* What is shown. */
	enum view_memory_view view;
	enum view_memory_breakdown breakdown;
	char part[VIEW_PLACE_NAME]; /* of the breakdown, by name; "": all of it */
	int chosen;              /* the series that is; -1: all; view__memory_choose() sets both */
	int64_t ipu;             /* its id; IPS_NULL: all */
	bool physical;           /* order */
	bool capacity;           /* the curve's scale goes up to the tile's memory */
	bool placed;             /* the cursor has been set */
	bool differ;             /* comparing, floor plans show the difference alone */
	int64_t at_ipu, at_tile; /* the cursor */
	int64_t from, span;      /* positions in the curve's window; span 0: all */
	struct {
		int64_t ipu, tile;
	} mark[VIEW_MEMORY_MARKS];
	int marks;

	/* Made at load for the size of the body. */
	struct view_memory_areas areas;
	struct view_memory_series series[VIEW_MEMORY_CATEGORIES];
	int series_count, stack_count;
	struct view_memory_sums sums[VIEW_MEMORY_SIDES];
	struct view_memory_curve curve;
	struct view_memory_floor floor;
	struct view_memory_bin bins[VIEW_MEMORY_BINS];
	int bin_count, bin_at;
	int64_t bin_base, bin_bytes;        /* where the first begins; width of each */
	char fullest[2][VIEW_MESSAGE_SIZE]; /* the heading */
	bool fits;
	struct view_memory_details details;
	struct view_grid grid; /* of tiles */
	bool grid_stale;
	struct view_grid ipu_grid;
	char filter[128];
};

/* A table of one report; @rows: which ones, as its maker needs it. */
typedef enum status (*view_memory_build)(const struct view_memory *screen, int side,
					 const void *rows, struct report_table *out,
					 struct err *err);

/* view_memory.c */
/* Tiles by IPU, number, index and position. Pure. */
int view__memory_ipu_at(const struct view_memory *screen, int64_t ipu); /* -1: none such */
int64_t view__memory_index(const struct view_memory *screen, int64_t ipu, int64_t tile); /* or -1 */
int64_t view__memory_ipu_of(const struct view_memory *screen, int64_t index);
int64_t view__memory_tile_of(const struct view_memory *screen, int64_t index);
int64_t view__memory_shown(const struct view_memory *screen); /* tiles */
int64_t view__memory_first(const struct view_memory *screen); /* the least index shown */
int64_t view__memory_at(const struct view_memory *screen, int64_t position); /* index */
int64_t view__memory_position(const struct view_memory *screen, int64_t index);
int64_t view__memory_cursor(const struct view_memory *screen); /* index */
void view__memory_set_cursor(struct view_memory *screen, int64_t index);
void view__memory_window(struct view_memory *screen); /* clamps from and span */
/* "37", or where there are several IPUs "1,37". */
const char *view__memory_name(const struct view_memory *screen, int64_t index, char out[FMT_SIZE]);

/* view_memory_details.c */
enum status view__memory_details(struct view_memory *screen, struct view_context *context,
				 struct err *err);
void view__memory_draw_details(const struct view_memory *screen, const struct view_context *context,
			       struct view_pane *pane);

/* view_memory_draw.c */
void view__memory_heading(struct view_memory *screen);
/* The name of a category, or of a variable called after one; abbreviated where it takes more than
 * @width columns. */
const char *view__memory_brief(const char *name, int width, char out[VIEW_PLACE_NAME]);
void view__memory_draw(const void *state, const struct view_context *context,
		       struct view_pane *pane);

/* view_memory_keys.c */
enum view_answer view__memory_request(void *state, struct view_context *context,
				      enum view_request request);
enum view_answer view__memory_click(void *state, struct view_context *context, int x, int y);

/* view_memory_picture.c */
/* Which numbers are shown, and the pictures made of them. */
void view__memory_series(struct view_memory *screen);
/* Series @at is shown, and stays so whatever its place among others; -1: all are. */
void view__memory_choose(struct view_memory *screen, int at);
/* Bytes of all memory that the tile has no room for; 0: it fits. */
int64_t view__memory_excess(const struct view_memory_side *side, int64_t index);
double view__memory_share(int64_t bytes, int64_t of); /* NaN: of nothing */
/* What is shown of a tile; comparing, of that report. */
int64_t view__memory_value(const struct view_memory *screen, int side, int64_t index);
/* "all memory", "vertexCode", "variable Dense_128/kernel:0". */
const char *view__memory_what(const struct view_memory *screen);
enum status view__memory_picture(struct view_memory *screen, struct err *err);
int view__memory_column_of(const struct view_memory *screen, int64_t position); /* or -1 */
int64_t view__memory_top(const struct view_memory *screen); /* of the curve's scale, at least 1 */
/* The tile drawn at @x, @y of the picture; -1: none. */
int64_t view__memory_floor_find(const struct view_memory *screen, int x, int y);
void view__memory_draw_floor(const struct view_memory *screen, const struct view_context *context,
			     struct view_pane *pane);

/* view_memory_read.c */
/* What the databases hold. */
enum status view__memory_read(struct view_memory *screen, struct view_context *context,
			      struct err *err);
enum status view__memory_subject(struct view_memory *screen, struct view_context *context,
				 struct err *err);
extern const char *const view__memory_regions[VIEW_MEMORY_REGIONS];
/* Have the runs of variables on tile @index at hand; then go through them, from
 * NULL on. */
enum status view__memory_rows(struct view_memory *screen, struct view_context *context, int side,
			      int64_t index, struct err *err);
const struct view_memory_run *view__memory_next_run(const struct view_memory *screen, int side,
						    int64_t index,
						    const struct view_memory_run *run);
void view__memory_rows_fini(struct view_memory_rows *rows);
/* Makes details->apart of the tiles selected. */
enum status view__memory_apart(struct view_memory *screen, struct view_context *context,
			       struct err *err);
int64_t view__memory_saved(const struct view_memory *screen, int side, int64_t index);
int64_t view__memory_saved_of_all(const struct view_memory *screen, int side);

/* view_memory_table.c */
enum status view__memory_table(void *state, struct view_context *context, struct report_table *out,
			       struct err *err);
/* The table that is shown; NULL: a picture is. */
struct view_grid *view__memory_shown_grid(struct view_memory *screen);
/* The rows of what is shown, as the last load made them or, where keys came faster, now. */
enum status view__memory_load_grid(struct view_memory *screen, struct view_context *context,
				   struct err *err);
void view__memory_query_ipus(struct str *out);

#endif /* VIEW_MEMORY_INTERNAL_H */
