/*
 * State of the Memory screen, shared by the files that load, move, draw and query it.
 *
 * A tile's index counts IPU by IPU; each IPU gets as many indexes as the one with the most tiles
 * has. A position is the tile's rank in the order that is shown. Arrays by index hold bytes. They
 * are read once (view_memory_read.c); everything else is computed from them at load.
 *
 * The functions of a load work for screen->context. The first failure stays in screen->err; later
 * steps do nothing.
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
#define VIEW_MEMORY_TILES      (1 << 18) /* of all IPUs; further IPUs are omitted with a note */
#define VIEW_MEMORY_CATEGORIES 32        /* any more are added to the last, "others" */
#define VIEW_MEMORY_REGIONS    3
#define VIEW_MEMORY_STACK      VIEW_SERIES /* stacked areas; the last may be the rest */
#define VIEW_MEMORY_MARKS      6           /* tiles selected besides the cursor's */
#define VIEW_MEMORY_COLUMNS    18 /* of the details: cursor, marks, sums; in a comparison per side */
#define VIEW_MEMORY_LARGEST    40        /* variables of a tile */
#define VIEW_MEMORY_NAMES      2048      /* most variables examined to find these */
#define VIEW_MEMORY_RUNS_MOST  (1 << 20) /* rows of variables kept in memory per report */
#define VIEW_MEMORY_ROWS       20000 /* of the table on the screen: the fullest; files have all */
#define VIEW_MEMORY_BINS       64
#define VIEW_MEMORY_SPAN_LEAST 8 /* tiles in the curve's window */
#define VIEW_MEMORY_SCALE      9 /* columns left of the curve */

enum view_memory_view {
	VIEW_MEMORY_CURVE,
	VIEW_MEMORY_CHIP,
	VIEW_MEMORY_HISTOGRAM,
	VIEW_MEMORY_TABLE,
	VIEW_MEMORY_IPUS, /* only with several IPUs */
	VIEW_MEMORY_VIEWS
};

enum view_memory_breakdown {
	VIEW_MEMORY_WHOLE,
	VIEW_MEMORY_BY_CATEGORY,
	VIEW_MEMORY_BY_REGION,
	VIEW_MEMORY_BY_LIVENESS,
	VIEW_MEMORY_BREAKDOWNS
};

/* A number of bytes of a tile: read, or computed from those (VIEW_MEMORY_READ and above). */
enum view_memory_number {
	VIEW_MEMORY_TOTAL,
	VIEW_MEMORY_CAPACITY,
	VIEW_MEMORY_ALWAYS_LIVE,
	VIEW_MEMORY_NOT_ALWAYS_LIVE,
	VIEW_MEMORY_REGION, /* the first: not interleaved, interleaved, overflowed */
	VIEW_MEMORY_OVERFLOWED = VIEW_MEMORY_REGION + VIEW_MEMORY_REGIONS - 1,
	VIEW_MEMORY_CATEGORY,                                                /* the first */
	VIEW_MEMORY_SUBJECT = VIEW_MEMORY_CATEGORY + VIEW_MEMORY_CATEGORIES, /* the selected one */
	VIEW_MEMORY_READ,
	VIEW_MEMORY_FREE = VIEW_MEMORY_READ,
	VIEW_MEMORY_EXCESS, /* beyond the capacity; 0: the tile fits */
	VIEW_MEMORY_SAVED   /* by overlap of variables that are not always live */
};

/* @bytes on tile @index and on each of the @more tiles after it. */
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
	bool begun, many; /* was read before; exceeds the limit, so not all IPUs are read at once */
};

/* One report. */
struct view_memory_side {
	int64_t *bytes[VIEW_MEMORY_READ]; /* arrays by index; NULL: the report has none of it */
	int64_t ranks;                    /* of a merged report; otherwise 1 */
	int64_t first_other; /* the first IPU of another rank's model; IPS_NULL: none */
	int64_t *apart;      /* by IPU: sum of the sizes of variables that are not always live */
	struct view_memory_rows rows;
};

/* A part of the breakdown. */
struct view_memory_series {
	const char *name;
	int number;  /* enum view_memory_number */
	int64_t sum; /* over the shown tiles, both sides */
};

/* Totals over some tiles of a report. */
struct view_memory_sums {
	int64_t bytes, capacity, always, not_always;
	int64_t tiles;          /* number of those with more than 0 bytes */
	int64_t over;           /* number of those out of memory */
	int64_t excess, shrink; /* bytes beyond the capacity: the greatest; of all tiles */
	int64_t fullest;        /* index; -1: no tile */
	int64_t least;          /* bytes of the emptiest nonempty tile */
	int64_t greatest;       /* greatest value of the shown quantity on a tile */
};

/* The selected variable or layer whose tiles are shown. */
struct view_memory_subject {
	int64_t variable_id; /* IPS_NULL: a layer, or nothing selected */
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
	int depth, group;        /* enum view_memory_group: the one it opens or belongs to */
	const char *name, *more; /* more: kind and layer of a variable */
	int64_t value[VIEW_MEMORY_COLUMNS]; /* IPS_NULL: not recorded */
	int64_t most;                       /* sort key */
	int64_t variable_id;
	int side; /* report of variable_id */
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

/* A column of the details: a tile of a report, or a sum. In a comparison columns come in pairs. */
struct view_memory_tile {
	int64_t index; /* or one of the constants below */
	int side;
};

#define VIEW_MEMORY_ALL      (-1) /* all shown tiles */
#define VIEW_MEMORY_TOGETHER (-2) /* the selected tiles and the cursor's */

struct view_memory_details {
	struct arena arena;
	struct view_memory_tile columns[VIEW_MEMORY_COLUMNS];
	int column_count;
	int width[VIEW_MEMORY_COLUMNS]; /* cells of the longest number and a gap before it */
	int64_t together[VIEW_MEMORY_MARKS + 1]; /* the tiles of VIEW_MEMORY_TOGETHER */
	int together_count;
	/* Of these tiles: sum of the sizes of variables that are not always live. */
	int64_t apart[VIEW_MEMORY_SIDES][VIEW_MEMORY_MARKS + 1];
	struct view_memory_line *lines;
	int count, variables_at; /* variables_at: the first line of the variables */
	int at;                  /* the cursor's line */
	unsigned open;           /* bit set of open groups */
	bool active;             /* moves affect the lines, not the picture */
};

/* The curve: each column shows the number of its fullest tile. Arrays of `count`. */
struct view_memory_curve {
	int64_t from, span; /* the window for which it was computed */
	int count;
	double *bytes[VIEW_MEMORY_SIDES];
	double *part[VIEW_MEMORY_STACK]; /* bytes of each area on the fullest tile */
	int parts;                       /* number of areas; the breakdown may have changed since */
	int64_t *index;                  /* the fullest tile */
};

struct view_memory_bin {
	int64_t tiles[VIEW_MEMORY_SIDES];
	int64_t fullest; /* index; -1: none */
};

/*
 * The floor plans of the IPUs on one page, in the picture's coordinates. In a comparison each IPU
 * has a plan of the difference; on wide screens instead Source and Target; on wider ones all three.
 */
struct view_memory_floor {
	int columns, rows; /* tiles of a plan */
	int width, height; /* cells of a plan */
	int title;         /* rows above a plan */
	int each;          /* plans per IPU */
	int across, first,
		count;    /* plans per row; index of the page's first plan, and their number */
	double *values;   /* of the page's plans, one after another; NaN: no such tile */
	double low, high; /* range of the colours */
	double most;      /* greatest absolute difference */
};

#define VIEW_MEMORY_PLANS_TWO 130 /* columns for two plans side by side */

struct view_memory_areas {
	struct view_rect heading, picture, rule, details;
};

struct view_memory {
	struct view_context *context; /* of the current call */
	struct err err;

	/* The reports' tiles. data_arena owns arrays and names, subject_arena the subject's. */
	struct arena data_arena, subject_arena, picture_arena;
	struct view_memory_side side[VIEW_MEMORY_SIDES];
	int sides, ipus;
	int64_t *ipu_ids;
	int64_t tiles;    /* of each IPU */
	int64_t all_ipus; /* recorded; if greater than ipus, some are omitted */
	size_t runs_most; /* rows of variables kept in memory per report */
	const char *category[VIEW_MEMORY_CATEGORIES];
	int categories;
	struct view_memory_subject subject;
	bool jump; /* at the next load, move the cursor to the tile with the greatest shown value */
	bool subject_stale;

	/* The user's choices. */
	enum view_memory_view view;
	enum view_memory_breakdown breakdown;
	char part[VIEW_PLACE_NAME]; /* selected part of the breakdown, by name; "": all */
	int chosen;              /* index of its series; -1: all; view__memory_choose() sets both */
	int64_t ipu;             /* id of the shown IPU; IPS_NULL: all */
	bool physical;           /* physical order */
	bool capacity;           /* the curve's scale extends to the tile's memory */
	bool placed;             /* the cursor has been set */
	bool differ;             /* in a comparison, floor plans show only the difference */
	int64_t at_ipu, at_tile; /* the cursor */
	int64_t from, span;      /* positions in the curve's window; span 0: all */
	struct {
		int64_t ipu, tile;
	} mark[VIEW_MEMORY_MARKS];
	int marks;

	/* Computed at load for the size of the body. */
	struct view_memory_areas areas;
	struct view_memory_series series[VIEW_MEMORY_CATEGORIES];
	int series_count, stack_count;
	struct view_memory_sums sums[VIEW_MEMORY_SIDES];
	struct view_memory_curve curve;
	struct view_memory_floor floor;
	struct view_memory_bin bins[VIEW_MEMORY_BINS];
	int bin_count, bin_at;
	int64_t bin_base, bin_bytes;        /* start of the first bin; width of each */
	char fullest[2][VIEW_MESSAGE_SIZE]; /* lines of the heading */
	bool fits;
	struct view_memory_details details;
	struct view_grid grid; /* of tiles */
	bool grid_stale;
	struct view_grid ipu_grid;
};

static inline void view__memory_begin(struct view_memory *screen, struct view_context *context)
{
	screen->context = context;
	err_start(&screen->err, NULL);
}

/* Return the status of the call and copy its error. */
static inline enum status view__memory_end(const struct view_memory *screen, struct err *err)
{
	if (err && err_stuck(&screen->err))
		*err = screen->err;
	return screen->err.status;
}

/* The database of a report. */
static inline struct prof_db *view__memory_db(const struct view_memory *screen, int side)
{
	return (side == 0 ? screen->context->source : screen->context->target)->db;
}

static inline int64_t view__memory_ipu_of(const struct view_memory *screen, int64_t index)
{
	return screen->ipu_ids[index / screen->tiles];
}

static inline int64_t view__memory_tile_of(const struct view_memory *screen, int64_t index)
{
	return index % screen->tiles;
}

/* The bytes of a tile, of which @number is read; 0: the report has none of it. */
static inline int64_t view__memory_bytes(const struct view_memory *screen, int side, int number,
					 int64_t index)
{
	const int64_t *bytes = screen->side[side].bytes[number];

	return bytes ? bytes[index] : 0;
}

/* view_memory_tiles.c */
/* Conversions between IPU, tile number, index and position. Pure. */
int view__memory_ipu_at(const struct view_memory *screen, int64_t ipu); /* -1: no such IPU */
int64_t view__memory_index(const struct view_memory *screen, int64_t ipu, int64_t tile); /* or -1 */
int64_t view__memory_shown(const struct view_memory *screen); /* number of shown tiles */
int64_t view__memory_first(const struct view_memory *screen); /* least shown index */
int64_t view__memory_at(const struct view_memory *screen, int64_t position); /* index */
int64_t view__memory_position(const struct view_memory *screen, int64_t index);
int64_t view__memory_cursor(const struct view_memory *screen);         /* index */
int64_t view__memory_mark(const struct view_memory *screen, int mark); /* index, or -1 */
void view__memory_set_cursor(struct view_memory *screen, int64_t index);
/* Make a variable (IPS_NULL: the layer of that name; "": nothing) the subject. */
void view__memory_select(struct view_memory *screen, int64_t variable_id, const char *name);
void view__memory_window(struct view_memory *screen); /* clamp from and span */
/* "37", or with several IPUs "1,37". */
const char *view__memory_name(const struct view_memory *screen, int64_t index, char out[FMT_SIZE]);
/* The name of a category, or of a variable named after one; abbreviated if it is wider than @width
 * columns. */
const char *view__memory_brief(const char *name, int width, char out[VIEW_PLACE_NAME]);

/* view_memory_details.c */
void view__memory_details(struct view_memory *screen);
void view__memory_draw_details(const struct view_memory *screen, const struct view_context *context,
			       struct view_pane *pane);

/* view_memory_draw.c */
void view__memory_heading(struct view_memory *screen);
void view__memory_draw(const void *state, const struct view_context *context,
		       struct view_pane *pane);

/* view_memory_keys.c */
enum view_answer view__memory_request(void *state, struct view_context *context,
				      enum view_request request);
enum view_answer view__memory_click(void *state, struct view_context *context, int x, int y);

/* view_memory_picture.c */
/* Select the shown numbers, and compute the pictures from them. */
void view__memory_series(struct view_memory *screen);
/* Show series @at; it remains selected by name when the order of series changes. -1: all. */
void view__memory_choose(struct view_memory *screen, int at);
/* The sum of a number that is read over the shown tiles. */
int64_t view__memory_all(const struct view_memory *screen, int side, int number);
/* Sum the tiles with indexes @first .. @first + @count - 1. */
void view__memory_sum(const struct view_memory *screen, int side, int64_t first, int64_t count,
		      struct view_memory_sums *sums);
/* Bytes beyond the tile's capacity, or else those recorded as overflowed; 0: it fits. */
int64_t view__memory_excess(const struct view_memory *screen, int side, int64_t index);
double view__memory_share(int64_t bytes, int64_t of); /* NaN: of nothing */
/* The shown number of a tile in report @side. */
int64_t view__memory_value(const struct view_memory *screen, int side, int64_t index);
/* "all memory", "vertexCode", "variable Dense_128/kernel:0". */
const char *view__memory_what(const struct view_memory *screen);
void view__memory_picture(struct view_memory *screen);
int view__memory_column_of(const struct view_memory *screen, int64_t position); /* or -1 */
int64_t view__memory_top(const struct view_memory *screen); /* top of the curve's scale, >= 1 */
/* The tile drawn at @x, @y of the picture; -1: none. */
int64_t view__memory_floor_find(const struct view_memory *screen, int x, int y);
void view__memory_draw_floor(const struct view_memory *screen, const struct view_context *context,
			     struct view_pane *pane);

/* view_memory_read.c */
/* Read tiles and the subject from the databases. */
void view__memory_read(struct view_memory *screen);
void view__memory_subject(struct view_memory *screen);
extern const char *const view__memory_regions[VIEW_MEMORY_REGIONS];
/* The run of variables on tile @index that follows @run (NULL: the first). NULL: the end, or a
 * failure to read them. */
const struct view_memory_run *view__memory_next_run(struct view_memory *screen, int side,
						    int64_t index,
						    const struct view_memory_run *run);
void view__memory_rows_fini(struct view_memory_rows *rows);

/* view_memory_table.c */
enum status view__memory_table(void *state, struct view_context *context, struct report_table *out,
			       struct err *err);
/* The grid that is shown; NULL: a picture is. Only who may change the screen may change it. */
struct view_grid *view__memory_shown_grid(const struct view_memory *screen);
/* Fill and lay out the shown grid: during a load, or now if keys arrive before the load. */
void view__memory_load_grid(struct view_memory *screen);

#endif /* VIEW_MEMORY_INTERNAL_H */
