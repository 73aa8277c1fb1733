/*
 * Draw the Programs screen: the tree with its cycles, and details of the program under the cursor.
 *
 * Threading: the terminal's, but loads compute the details. Ownership: none.
 */
#include "viewer/programs/view_programs_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_chart.h"

/* ---- one program ----------------------------------------------------------------------------- */

#define NAME_WIDTH 13
#define TYPES_MOST 24
#define PATH_MOST  64
#define TWO_FROM   110 /* least width of details in two columns */

static const char programs_set_sql[] =
	"SELECT compute_set, vertices, tiles, max_cycles, mean_cycles FROM "
	"compute_sets WHERE program_id = :program LIMIT 4";

static const char programs_live_sql[] =
	"SELECT l.ipu, l.program_step, v.variable, v.kind, v.bytes\n"
	"FROM (SELECT ipu, min(program_step) AS program_step FROM liveness WHERE program_id = "
	":program GROUP BY ipu) l\n"
	"JOIN variables v ON v.ipu = l.ipu AND v.always_live = 0 AND\n"
	"\tl.program_step BETWEEN v.first_program_step AND v.last_program_step\n"
	"ORDER BY v.bytes DESC LIMIT 12";

static struct prof_query *programs_open_query(struct prof_db *db, const char *sql, int64_t program,
					      struct err *err)
{
	struct prof_query *query = view_query_open(db, sql, err);

	prof_query_int(query, ":program", program);
	return query;
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* The unit of cycles and times: "a weight update", or "an execution" if nothing was trained. */
static const char *programs_cycles_unit(const struct view_programs *screen)
{
	const struct view_program_ranks *of = screen->ranks;
	const struct view_program_ranks *ranks = &of[of[1].all > of[0].all];

	if (ranks->all > ranks->seen)
		return screen->updates[0] > 0 ? "the first ranks' update"
					      : "the first ranks' execution";
	if (ranks->all > 1)
		return screen->updates[0] > 0 ? "all ranks' update" : "all ranks' execution";
	return screen->updates[0] > 0 ? "a weight update" : "an execution";
}

static void programs_describe_cycles(struct view_programs *screen, const struct view_program *node,
				     int side)
{
	struct view_blocks *blocks = &screen->details;
	const double times = (double)node->cycles[side] * (double)screen->updates[side];
	const double seconds = times / screen->clock_hz[side];
	char own[FMT_SIZE], all[FMT_SIZE], count[FMT_SIZE], time[FMT_SIZE];

	if (node->cycles[side] == 0) {
		view_blocks_fact(blocks, "cycles", VIEW_DIM, "none in %s",
				 programs_cycles_unit(screen));
		return;
	}
	if (node->own[side] > 0)
		view_blocks_fact(blocks, "itself", VIEW_NORMAL,
				 "%s cycles, run %s times in %s (simulated)",
				 fmt_count(own, node->own[side]),
				 fmt_count(count, node->times[side]), programs_cycles_unit(screen));
	if (node->first != VIEW_NO_PROGRAM)
		view_blocks_fact(blocks, "all of it", VIEW_NORMAL, "%s cycles in %s (simulated)",
				 fmt_count(all, node->cycles[side]), programs_cycles_unit(screen));
	/* Ranks may differ in their number of updates, so a merged file has no such product. */
	if (screen->ranks[side].all < 2 && screen->updates[side] > 0 && seconds < 9e8)
		view_blocks_fact(blocks, "the run", VIEW_NORMAL,
				 "%s simulated in %s weight update%s",
				 fmt_ns(time, (int64_t)(seconds * 1e9)),
				 fmt_count(count, screen->updates[side]),
				 screen->updates[side] == 1 ? "" : "s");
}

/* Show the ancestors, outermost first, to distinguish programs of the same name. */
static void programs_describe_inside(struct view_programs *screen, const struct view_program *node)
{
	const struct view_program *nodes = screen->tree.nodes;
	int above[PATH_MOST], count = 0;
	struct str path = {0};

	for (int at = node->parent; at != VIEW_NO_PROGRAM && count < PATH_MOST;
	     at = nodes[at].parent)
		above[count++] = at;
	for (int i = count - 1; i >= 0; i--)
		str_addf(&path, "%s%s", i < count - 1 ? " > " : "",
			 nodes[above[i]].name[0] ? nodes[above[i]].name : nodes[above[i]].type);
	if (count > 0 && !path.failed)
		view_blocks_fact(&screen->details, "inside", VIEW_NORMAL, "%s", str_peek(&path));
	str_free(&path);
}

/* Show the facts that both reports have in common. */
static void programs_describe_program(struct view_programs *screen, const struct view_program *node,
				      bool compared)
{
	struct view_blocks *blocks = &screen->details;
	char inside[FMT_SIZE];
	const enum view_side side = node->id[0] == IPS_NULL ? VIEW_TARGET_SIDE : VIEW_SOURCE_SIDE;
	const int target = node->call == IPS_NULL
				   ? VIEW_NO_PROGRAM
				   : view__tree_find(&screen->tree, side, node->call);

	view_blocks_begin(blocks, "Program", NAME_WIDTH);
	if (compared)
		view_blocks_fact(blocks, "is in", VIEW_NORMAL, "%s",
				 node->id[0] == IPS_NULL   ? "the target only"
				 : node->id[1] == IPS_NULL ? "the source only"
							   : "both");
	programs_describe_inside(screen, node);
	if (node->operation[0])
		view_blocks_fact(blocks, "operation", VIEW_NORMAL, "%s", node->operation);
	if (node->repeat != IPS_NULL)
		view_blocks_fact(blocks, "repeats", VIEW_NORMAL, "%s times what is in it",
				 fmt_count(inside, node->repeat));
	if (node->call != IPS_NULL)
		view_blocks_fact(blocks, "calls", VIEW_NORMAL, "#%lld %s", (long long)node->call,
				 target >= 0 ? screen->tree.nodes[target].name : "");
	if (node->inside > 0)
		view_blocks_fact(blocks, "has", VIEW_NORMAL, "%s programs in it",
				 fmt_count(inside, node->inside));
}

static void programs_describe_sets(struct view_programs *screen, struct prof_db *db,
				   int64_t program, struct err *err)
{
	struct prof_query *query = programs_open_query(db, programs_set_sql, program, err);

	while (view_query_next(query, err)) {
		char vertices[FMT_SIZE], tiles[FMT_SIZE], cycles[FMT_SIZE], balance[FMT_SIZE];
		const char *name = prof_column_text(query, 0);

		view_blocks_fact(
			&screen->details, "compute set", VIEW_NORMAL,
			"%s vertices on %s tiles, %s cycles at most, balance of these "
			"tiles %s: %s",
			fmt_count(vertices, prof_column_int(query, 1)),
			fmt_count(tiles, prof_column_int(query, 2)),
			fmt_count(cycles, prof_column_int(query, 3)),
			fmt_share(balance, prof_column_real(query, 4) / prof_column_real(query, 3)),
			name ? name : "-");
	}
	prof_query_close(query);
}

static void programs_describe_live(struct view_programs *screen, struct prof_db *db,
				   int64_t program, const char *title, struct err *err)
{
	struct prof_query *query = programs_open_query(db, programs_live_sql, program, err);
	bool any = false;

	while (view_query_next(query, err)) {
		const int64_t size = prof_column_int(query, 4);
		const char *name = prof_column_text(query, 2), *kind = prof_column_text(query, 3);
		char bytes[FMT_SIZE];

		if (!any)
			view_blocks_begin(&screen->details, title, NAME_WIDTH);
		any = true;
		view_blocks_text(&screen->details, VIEW_NORMAL, "%9s  %s (%s), IPU %lld",
				 fmt_bytes(bytes, size < 0 ? 0 : (uint64_t)size), name ? name : "-",
				 kind ? kind : "-", (long long)prof_column_int(query, 0));
	}
	prof_query_close(query);
}

/* ---- sums by type ---------------------------------------------------------------------------- */

struct detail_type {
	const char *type;
	int64_t programs, cycles[VIEW_SIDES];
};

/* Sum @program and its descendants, which directly follow it in the walk, by type. */
static int programs_sum_types(const struct view_programs *screen, int program,
			      struct detail_type *types)
{
	const struct view_tree *tree = &screen->tree;
	int at = 0, count = 0;

	while (at < tree->walk_count && tree->walk[at] != program)
		at++;
	for (int i = at; i < tree->walk_count && i <= at + tree->nodes[program].inside; i++) {
		const struct view_program *node = &tree->nodes[tree->walk[i]];
		int type = 0;

		while (type < count && strcmp(types[type].type, node->type) != 0)
			type++;
		/* If there are too many types, the last one collects the rest. */
		if (type == count && count == TYPES_MOST)
			type--;
		else if (type == count)
			types[count++] = (struct detail_type){.type = node->type};
		types[type].programs++;
		for (int side = 0; side < VIEW_SIDES; side++)
			types[type].cycles[side] += node->own[side];
	}
	for (int i = 1; i < count; i++)
		for (int j = i; j > 0 && types[j].cycles[0] > types[j - 1].cycles[0]; j--) {
			const struct detail_type swap = types[j];

			types[j] = types[j - 1];
			types[j - 1] = swap;
		}
	return count;
}

static void programs_describe_types(struct view_programs *screen, const struct view_program *node,
				    bool compared)
{
	struct detail_type types[TYPES_MOST];
	const int count = programs_sum_types(screen, screen->rows[screen->at], types);
	char cycles[FMT_SIZE], other[FMT_SIZE];

	view_blocks_begin(&screen->details, "By type, with all in it (simulated)", 16);
	for (int i = 0; i < count; i++) {
		const double share = node->cycles[0] > 0
					     ? (double)types[i].cycles[0] / (double)node->cycles[0]
					     : (double)NAN;

		if (compared)
			view_blocks_fact(&screen->details, types[i].type, VIEW_NORMAL,
					 "%s cycles, target %s",
					 fmt_count(cycles, types[i].cycles[0]),
					 fmt_count(other, types[i].cycles[1]));
		else
			view_blocks_bar(&screen->details, types[i].type, VIEW_CURVE, share,
					(double)NAN, "%s cycles in %s",
					fmt_count(cycles, types[i].cycles[0]),
					fmt_count(other, types[i].programs));
	}
}

/* ---- the details ----------------------------------------------------------------------------- */

/* Show the facts of one report; in a comparison, below its name. */
static void programs_describe_side(struct view_programs *screen, const struct view_program *node,
				   struct prof_db *db, int side, const char *title,
				   const char *live, struct err *err)
{
	if (title)
		view_blocks_begin(&screen->details, title, NAME_WIDTH);
	programs_describe_cycles(screen, node, side);
	view_blocks_fact(&screen->details, "number", VIEW_NORMAL, "#%lld, position %lld, depth %d",
			 (long long)node->id[side], (long long)node->position, node->depth);
	programs_describe_sets(screen, db, node->id[side], err);
	programs_describe_live(screen, db, node->id[side], live, err);
}

void view__programs_detail(struct view_programs *screen, struct view_context *context,
			   struct err *err)
{
	const struct view_program *node = view__programs_at(screen);
	struct prof_db *const dbs[VIEW_SIDES] = {context->source->db,
						 context->target ? context->target->db : NULL};
	static const char *const titles[VIEW_SIDES] = {"Source", "Target"};
	static const char *const live[VIEW_SIDES] = {
		"Source: live while it runs, beside what always is",
		"Target: live while it runs, beside what always is"};

	view_blocks_clear(&screen->details);
	screen->details.two_from = TWO_FROM;
	screen->details.folds = true;
	if (!node)
		return;
	if (screen->by_type) {
		programs_describe_types(screen, node, context->target != NULL);
		return;
	}
	programs_describe_program(screen, node, context->target != NULL);
	if (!context->target)
		programs_describe_side(screen, node, dbs[0], VIEW_SOURCE_SIDE, NULL,
				       "Live while it runs, beside what always is", err);
	for (int side = 0; side < VIEW_SIDES && context->target; side++)
		if (node->id[side] != IPS_NULL)
			programs_describe_side(screen, node, dbs[side], side, titles[side],
					       live[side], err);
}

static void programs_substitute_id(struct str *out, const char *sql, int64_t program)
{
	const char *at;

	while ((at = strstr(sql, ":program"))) {
		str_add_bytes(out, sql, (size_t)(at - sql));
		str_addf(out, "%lld", (long long)program);
		sql = at + strlen(":program");
	}
	str_addf(out, "%s;\n", sql);
}

void view__programs_detail_sql(const struct view_programs *screen, struct str *out)
{
	const struct view_program *node = view__programs_at(screen);

	if (!node || screen->by_type)
		return;
	programs_substitute_id(out, programs_set_sql, node->id[node->id[0] == IPS_NULL]);
	programs_substitute_id(out, programs_live_sql, node->id[node->id[0] == IPS_NULL]);
}

/* ---- drawing --------------------------------------------------------------------------------- */

#define NUMBER_WIDTH 11 /* of cycles */
#define NUMBER_LEAST 7  /* "Source" and the mark of the order */
#define NARROW       60 /* on narrower screens numbers are as wide as they need */
#define DIFF_WIDTH   21 /* with percent */
#define TIMES_WIDTH  7
#define SHARE_WIDTH  8
#define BAR_WIDTH    12
#define NAME_LEAST   20
#define NAME_NARROW  12 /* in a comparison on a narrow screen */
#define NAME_MOST    96 /* remaining columns then go to the bar */
#define NAME_GOOD    40 /* columns of names before columns other than cycles are added */

/* Letters and colours by type; the colours are PopVision's. */
static const struct {
	const char *type;
	char letter;
	enum view_style style;
} marks[] = {
	{"Sequence", 's', VIEW_WEIGHT_TEXT},
	{"Repeat", 'r', VIEW_WEIGHT_TEXT},
	{"Call", 'c', VIEW_TITLE},
	{"OnTileExecute", 'X', VIEW_BAD},
	{"DoExchange", 'e', VIEW_FORWARD_TEXT},
	{"GlobalExchange", 'g', VIEW_UPDATE_TEXT},
	{"Sync", 'y', VIEW_WARN},
	{"StreamCopyBegin", 'b', VIEW_OTHER_TEXT},
	{"StreamCopyMid", 'm', VIEW_BACKWARD_TEXT},
	{"StreamCopyEnd", 'd', VIEW_WARN},
	{"WriteUndef", 'u', VIEW_OTHER_TEXT},
};

/* ---- columns --------------------------------------------------------------------------------- */

/* Widths of the right-aligned columns; 0: not shown. */
struct draw_columns {
	int name, times, cycles, target, diff, share, bar;
};

static bool programs_reserve(int *room, int *column, int width, int name)
{
	if (*room - width - 1 < name)
		return false;
	*column = width;
	*room -= width + 1;
	return true;
}

/* Cycles of all roots: the base of shares. */
static double programs_total_cycles(const struct view_programs *screen, int side)
{
	const struct view_tree *tree = &screen->tree;
	double whole = 0;

	for (int i = tree->first; tree->walk_count > 0 && i >= 0; i = tree->nodes[i].next)
		whole += (double)tree->nodes[i].cycles[side];
	return whole;
}

/* The width of numbers: the sum of all has the most digits. */
static int programs_number_width(const struct view_programs *screen, int width)
{
	int wide = NUMBER_LEAST;
	char text[FMT_SIZE];

	for (int side = 0; side < VIEW_SIDES && width < NARROW; side++) {
		const int digits =
			(int)strlen(fmt_count(text, (int64_t)programs_total_cycles(screen, side))) +
			1;

		wide = max(digits, wide);
	}
	return width < NARROW && wide < NUMBER_WIDTH ? wide : NUMBER_WIDTH;
}

static struct draw_columns programs_layout_columns(const struct view_programs *screen, int width,
						   bool compared)
{
	struct draw_columns columns = {0};
	int room = width - 3; /* marks at both edges and a blank before the right one */

	if (compared && screen->columns != VIEW_PROGRAM_NAMES) {
		const int number = programs_number_width(screen, room);
		const int name = room < NARROW ? NAME_NARROW : NAME_LEAST;
		bool fits = screen->columns == VIEW_PROGRAM_CYCLES;

		/* Reserve Source, Target and Diff if they fit; with fewer columns selected, only
		 * Diff. */
		if (!fits)
			fits = programs_reserve(&room, &columns.cycles, number, name) &&
			       programs_reserve(&room, &columns.target, number, name);
		if (fits)
			programs_reserve(&room, &columns.diff,
					 room > NAME_GOOD + DIFF_WIDTH ? DIFF_WIDTH : number, name);
	} else if (screen->columns != VIEW_PROGRAM_NAMES &&
		   programs_reserve(&room, &columns.cycles, NUMBER_WIDTH, NAME_LEAST) &&
		   screen->columns == VIEW_PROGRAM_ALL_COLUMNS) {
		programs_reserve(&room, &columns.share, SHARE_WIDTH, NAME_GOOD);
		programs_reserve(&room, &columns.times, TIMES_WIDTH, NAME_GOOD);
		programs_reserve(&room, &columns.bar, BAR_WIDTH, NAME_GOOD);
	}
	/* Keep numbers near the names: a wide screen widens the bar. */
	if (columns.bar > 0 && room > NAME_MOST) {
		columns.bar += room - NAME_MOST;
		room = NAME_MOST;
	}
	columns.name = room;
	return columns;
}

static const char *programs_cycles_text(const struct view_programs *screen,
					const struct view_program *node, int side,
					char out[FMT_SIZE])
{
	const int64_t cycles = screen->flat ? node->own[side] : node->cycles[side];

	return node->id[side] == IPS_NULL || cycles == 0 ? "-" : fmt_count(out, cycles);
}

static void programs_draw_diff(struct view_pane *pane, int x, int y, int width, bool selected,
			       const int64_t cycles[VIEW_SIDES], bool both)
{
	const int64_t diff = cycles[1] - cycles[0];
	const int64_t larger = max(cycles[1], cycles[0]);
	char count[FMT_SIZE], share[FMT_SIZE], text[2 * FMT_SIZE + 8];
	const enum view_style style = selected            ? VIEW_CURSOR
				      : both && diff != 0 ? VIEW_WARN
							  : VIEW_DIM;

	if (!both)
		snprintf(text, sizeof(text), "-");
	else if (diff == 0)
		snprintf(text, sizeof(text), "0");
	else if (width >= DIFF_WIDTH)
		snprintf(text, sizeof(text), "%c%s (%s)", diff < 0 ? '-' : '+',
			 fmt_count(count, diff < 0 ? -diff : diff),
			 fmt_percent(share, fabs((double)diff) / (double)larger));
	else
		snprintf(text, sizeof(text), "%c%s", diff < 0 ? '-' : '+',
			 fmt_count(count, diff < 0 ? -diff : diff));
	view_text_right(pane, x, y, width, style, text);
}

static void programs_draw_numbers(const struct view_programs *screen,
				  const struct draw_columns *columns,
				  const struct view_program *node, int y, bool selected,
				  double whole, struct view_pane *pane)
{
	const enum view_style style = selected ? VIEW_CURSOR : VIEW_NORMAL;
	const int64_t *cycles = screen->flat ? node->own : node->cycles;
	const double share = whole > 0 ? (double)cycles[0] / whole : 0;
	int x = 1 + columns->name + 1;
	char text[FMT_SIZE];

	if (columns->times > 0) {
		view_text_right(pane, x, y, columns->times, style,
				node->times[0] > 0 ? fmt_count(text, node->times[0]) : "");
		x += columns->times + 1;
	}
	if (columns->cycles > 0) {
		view_text_right(pane, x, y, columns->cycles, style,
				programs_cycles_text(screen, node, VIEW_SOURCE_SIDE, text));
		x += columns->cycles + 1;
	}
	if (columns->target > 0) {
		view_text_right(pane, x, y, columns->target, style,
				programs_cycles_text(screen, node, VIEW_TARGET_SIDE, text));
		x += columns->target + 1;
	}
	if (columns->diff > 0)
		programs_draw_diff(pane, x, y, columns->diff, selected, cycles,
				   node->id[0] != IPS_NULL && node->id[1] != IPS_NULL);
	if (columns->share > 0) {
		view_text_right(pane, x, y, columns->share, style,
				cycles[0] > 0 ? fmt_percent(text, share) : "");
		x += columns->share + 1;
	}
	if (columns->bar > 0)
		view_chart_bar(pane, x, y, columns->bar, selected ? VIEW_CURSOR : VIEW_CURVE,
			       share);
}

static void programs_draw_headings(const struct view_programs *screen,
				   const struct draw_columns *columns, bool compared,
				   struct view_pane *pane)
{
	const struct {
		int width;
		const char *title;
	} titles[] = {{columns->times, "times"},
		      {columns->cycles, compared ? "Source" : "cycles"},
		      {columns->target, "Target"},
		      {columns->diff, "Diff"},
		      {columns->share, "share"}};
	char title[128];
	int x = 1 + columns->name + 1;

	snprintf(title, sizeof(title), "program (simulated cycles of %s%s)",
		 programs_cycles_unit(screen), compared ? "; - Source, + Target only" : "");
	view_fill(pane, 0, 0, pane->rect.width, VIEW_BOLD);
	view_text_cut(pane, 1, 0, columns->name, VIEW_DIM,
		      screen->flat ? "what works (simulated cycles)" : title);
	for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
		const bool sorted =
			i == 1 && (screen->order == VIEW_PROGRAMS_BY_CYCLES || screen->flat);

		if (titles[i].width == 0)
			continue;
		view_text_right(pane, x, 0, titles[i].width - sorted, sorted ? VIEW_KEY : VIEW_DIM,
				titles[i].title);
		if (sorted)
			view_glyphs(pane, x + titles[i].width - 1, 0, VIEW_KEY,
				    screen->reverse ? VIEW_GLYPH_UP : VIEW_GLYPH_DOWN, 1);
		x += titles[i].width + 1;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void programs_draw_name(const struct view_programs *screen,
			       const struct draw_columns *columns, const struct view_program *node,
			       int y, bool selected, struct view_pane *pane)
{
	const enum view_style style = selected ? VIEW_CURSOR : VIEW_NORMAL;
	const int deepest = (columns->name - NAME_LEAST) / 2;
	const int depth = screen->flat ? 0 : node->depth;
	int x = 1 + 2 * (depth < deepest ? depth : deepest > 0 ? deepest : 0);
	enum view_style colour = VIEW_OTHER_TEXT;
	char text[512], times[FMT_SIZE], letter = '?';

	/* Too deep to indent: show the depth as a number. */
	if (depth > deepest)
		x += view_textf(pane, x, y, selected ? VIEW_CURSOR : VIEW_DIM, "%d:", depth);
	if (node->first != VIEW_NO_PROGRAM && !screen->flat)
		view_glyphs(pane, x, y, style, node->open ? VIEW_GLYPH_DOWN : VIEW_GLYPH_SELECT, 1);
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strcmp(marks[i].type, node->type) == 0) {
			letter = marks[i].letter;
			colour = marks[i].style;
		}
	view_put(pane, x + 2, y, selected ? VIEW_CURSOR : colour, (uint32_t)letter);
	if (node->repeat != IPS_NULL)
		snprintf(text, sizeof(text), "%.100s (%.300s) x %s", node->type, node->name,
			 fmt_count(times, node->repeat));
	else if (node->call != IPS_NULL)
		snprintf(text, sizeof(text), "%.100s (%.300s) > #%lld", node->type, node->name,
			 (long long)node->call);
	else
		snprintf(text, sizeof(text), "%.100s (%.300s)", node->type, node->name);
	view_text_cut(pane, x + 4, y, columns->name - x - 3, style, text);
}

static void programs_draw_tree(const struct view_programs *screen,
			       const struct view_context *context, struct view_pane *pane)
{
	const bool compared = context->target != NULL;
	const struct draw_columns columns =
		programs_layout_columns(screen, pane->rect.width, compared);
	const double whole = programs_total_cycles(screen, VIEW_SOURCE_SIDE);
	const int rows = pane->rect.height - 1;

	programs_draw_headings(screen, &columns, compared, pane);
	if (screen->count == 0)
		view_text(pane, 1, 1, VIEW_DIM,
			  screen->filter[0] ? "Nothing matches the filter: Esc shows all."
					    : "Nothing differs: D shows all.");
	for (int i = 0; i < rows && screen->scroll + i < screen->count; i++) {
		const bool selected = screen->scroll + i == screen->at && !context->whole;
		const int y = i + 1;
		const struct view_program *node =
			&screen->tree.nodes[screen->rows[screen->scroll + i]];

		if (selected) {
			view_fill(pane, 0, y, pane->rect.width, VIEW_CURSOR);
			view_glyphs(pane, 0, y, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
		} else if (columns.target > 0 || columns.diff > 0) {
			if (node->id[VIEW_TARGET_SIDE] == IPS_NULL)
				view_put(pane, 0, y, VIEW_WARN, '-');
			else if (node->id[VIEW_SOURCE_SIDE] == IPS_NULL)
				view_put(pane, 0, y, VIEW_WARN, '+');
		}
		programs_draw_name(screen, &columns, node, y, selected, pane);
		programs_draw_numbers(screen, &columns, node, y, selected, whole, pane);
	}
	if (screen->count > rows && rows > 0) {
		const int size = (int)((double)rows * rows / screen->count) + 1;
		int from = (int)((double)screen->scroll * rows / screen->count);

		if (screen->scroll + rows >= screen->count || from > rows - size)
			from = rows - size;
		for (int y = 0; y < rows; y++)
			view_glyphs(pane, pane->rect.width - 1, y + 1, VIEW_DIM,
				    y >= from && y < from + size ? VIEW_GLYPH_FULL
								 : VIEW_GLYPH_VERTICAL,
				    1);
	}
}

void view__programs_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_programs *screen = state;
	struct view_pane table = view_pane_sub(pane, screen->table);
	struct view_pane line = view_pane_sub(pane, screen->line);
	struct view_pane lower = view_pane_sub(pane, screen->lower);
	const struct view_program *node = view__programs_at(screen);
	char text[400];

	if (screen->tree.count == 0) {
		view_nothing(pane, "No programs have been recorded:",
			     "the run had no simulated device, or its plan is not written yet.",
			     context->source->none);
		return;
	}
	programs_draw_tree(screen, context, &table);
	if (line.rect.height > 0)
		view_glyphs(&line, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, line.rect.width);
	if (line.rect.height > 0 && node) {
		snprintf(text, sizeof(text), " %.80s (%.280s) ", node->type, node->name);
		view_text_cut(&line, 2, 0, line.rect.width - 4, VIEW_BOLD, text);
	}
	if (lower.rect.height > 0)
		view_blocks_draw(&screen->details, &lower);
}
