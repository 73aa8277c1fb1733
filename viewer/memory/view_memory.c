/*
 * The Memory screen: which tile is the fullest, how full, and what occupies it.
 *
 * Threading: the session's. Ownership: view_memory_internal.h.
 */
#include "viewer/memory/view_memory_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/minmax.h"
#include "common/str.h"

/* ---- layout ---------------------------------------------------------------------------------- */

#define HEADING_ROWS  2
#define WIDE          110 /* least width with details beside the picture */
#define DETAILS_LEAST 46
#define DETAILS_TWO   72  /* comparison: two tiles and their difference */
#define DETAILS_FOUR  122 /* comparison: the same twice */
#define DETAILS_MOST  96
#define PICTURE_LEAST 66 /* a floor plan and a little */
#define ROWS_LEAST    4
#define WHOLE_PICTURE 17

/* Least columns of the picture beside the details; a comparison needs room for two plans. */
static int memory_min_picture_width(const struct view_memory *screen)
{
	const bool plans = screen->view == VIEW_MEMORY_CHIP && !screen->differ;

	return screen->sides > 1 && plans ? VIEW_MEMORY_PLANS_TWO : PICTURE_LEAST;
}

static int memory_details_columns(const struct view_memory *screen, int width)
{
	const int left = width - 1 - memory_min_picture_width(screen);
	int columns = max(DETAILS_LEAST, width * 2 / 5);

	/* A single plan or a histogram gains nothing from more columns: give them to the
	 * details. */
	if ((screen->view == VIEW_MEMORY_CHIP || screen->view == VIEW_MEMORY_HISTOGRAM) &&
	    left < columns + PICTURE_LEAST)
		columns = max(columns, left);
	columns = min(DETAILS_MOST, columns);
	if (screen->sides == 1)
		return columns;
	return left >= DETAILS_FOUR ? DETAILS_FOUR : max(DETAILS_TWO, min(left, columns));
}

static void memory_layout(struct view_memory *screen, const struct view_context *context)
{
	const int width = context->body.width;
	const int heading = context->body.height > 4 ? HEADING_ROWS : 1;
	const struct view_rect rest = {0, heading, width, context->body.height - heading};
	struct view_memory_areas *areas = &screen->areas;
	int upper = rest.height * 3 / 5;
	struct view_split split;

	*areas = (struct view_memory_areas){.heading = {0, 0, width, heading}};
	if (context->whole)
		upper = WHOLE_PICTURE;
	else if (screen->view == VIEW_MEMORY_CHIP && rest.height > 16)
		upper = max(14, upper);
	if (width >= WIDE && !context->whole) {
		const struct view_sides sides =
			view_split_sides(rest, memory_details_columns(screen, width),
					 memory_min_picture_width(screen));

		areas->picture = sides.left;
		areas->details = sides.right;
		if (areas->details.width > 0)
			return;
	}
	split = view_split_rows(rest, upper, ROWS_LEAST);
	areas->picture = split.upper;
	areas->rule = split.heading;
	areas->details = split.lower;
	/* If only one of them fits, show the one that has the focus. */
	if (areas->details.height == 0 && screen->details.active) {
		areas->details = areas->picture;
		areas->picture.height = 0;
	}
}

/* Give the details the columns that the table does not need. */
static void memory_widen_details(struct view_memory *screen)
{
	const struct view_grid *grid = view__memory_shown_grid(screen);
	struct view_memory_areas *areas = &screen->areas;
	int spare = grid ? areas->picture.width - view_grid_used(grid) : 0;

	if (screen->sides > 1 || areas->rule.height > 0 || areas->details.width == 0)
		return;
	spare = min(spare, DETAILS_MOST - areas->details.width);
	if (spare <= 0)
		return;
	areas->picture.width -= spare;
	areas->details.x -= spare;
	areas->details.width += spare;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* If the selected IPU or tile does not exist in the new data, move the cursor to the fullest tile,
 * which is also its initial position. */
static void memory_validate_cursor(struct view_memory *screen)
{
	struct view_memory_sums sums;

	if (screen->ipu != IPS_NULL && view__memory_ipu_at(screen, screen->ipu) < 0)
		screen->ipu = IPS_NULL;
	if (screen->view == VIEW_MEMORY_IPUS && screen->ipus == 1)
		screen->view = VIEW_MEMORY_CURVE;
	if (screen->placed && view__memory_index(screen, screen->at_ipu, screen->at_tile) >= 0) {
		view__memory_set_cursor(screen, view__memory_cursor(screen));
		return;
	}
	view__memory_sum(screen, 0, view__memory_first(screen), view__memory_shown(screen), &sums);
	view__memory_set_cursor(screen, max(sums.fullest, view__memory_first(screen)));
}

static enum status memory_load(void *state, struct view_context *context, bool news,
			       struct err *err)
{
	struct view_memory *screen = state;
	int64_t first, shown, at = -1, most = 0;

	view__memory_begin(screen, context);
	if (news || screen->sides != (context->target ? 2 : 1)) {
		view__memory_read(screen);
		screen->grid_stale = true;
	}
	if (!err_stuck(&screen->err) && screen->ipus > 0 && screen->subject_stale)
		view__memory_subject(screen);
	if (err_stuck(&screen->err) || screen->ipus == 0)
		return view__memory_end(screen, err);
	screen->differ = context->differ;
	memory_layout(screen, context);
	memory_validate_cursor(screen);
	view__memory_series(screen);
	/* A jump leads to the tile with the greatest shown value. */
	first = view__memory_first(screen);
	shown = view__memory_shown(screen);
	for (int s = 0; s < screen->sides && screen->jump; s++)
		for (int64_t i = first; i < first + shown; i++)
			if (view__memory_value(screen, s, i) > most) {
				most = view__memory_value(screen, s, i);
				at = i;
			}
	view__memory_set_cursor(screen, at);
	screen->jump = false;
	view__memory_picture(screen);
	view__memory_load_grid(screen);
	memory_widen_details(screen);
	view__memory_details(screen);
	view__memory_heading(screen);
	return view__memory_end(screen, err);
}

/* ---- status, opening, closing ---------------------------------------------------------------- */

/* Forms of the status text, from the longest to the shortest; the first that fits is used. */
enum view_status_form {
	STATUS_ALL,
	STATUS_NO_WAY_BACK, /* without the key that unselects the subject */
	STATUS_NO_TILE,     /* the table's row names the tile */
	STATUS_ROWS
};

static void memory_status_text(const struct view_memory *screen, enum view_status_form form,
			       const char *rows, char *out, size_t size)
{
	static const char *const views[] = {"curve", "floor plan", "histogram", "table", "IPUs"};
	static const char *const by[] = {"", " by category", " by region", " by liveness"};
	const struct view_memory_details *details = &screen->details;
	const struct view_memory_line *at =
		details->at < details->count &&
				(details->active || screen->view == VIEW_MEMORY_CURVE)
			? &details->lines[details->at]
			: NULL;
	/* The full name of a value, a variable or a note, as the line itself may be cut. */
	const bool named = at && at->kind != VIEW_MEMORY_GROUP &&
			   (at->group >= 0 || at->kind == VIEW_MEMORY_NOTE);
	char name[FMT_SIZE], tile[FMT_SIZE + 8] = "", window[2 * FMT_SIZE + 16];
	char last[FMT_SIZE], first[FMT_SIZE];

	if (form == STATUS_ROWS) {
		str_copy(out, size, rows);
		return;
	}
	if (form < STATUS_NO_TILE)
		snprintf(tile, sizeof(tile), ", tile %s",
			 view__memory_name(screen, view__memory_cursor(screen), name));
	if (screen->view == VIEW_MEMORY_TABLE && view__memory_shown(screen) > VIEW_MEMORY_ROWS)
		snprintf(window, sizeof(window), ", the fullest of %s",
			 fmt_count(first, view__memory_shown(screen)));
	else if (screen->view != VIEW_MEMORY_CURVE || screen->span == 0)
		window[0] = '\0';
	else
		snprintf(window, sizeof(window), ", tiles %s to %s",
			 view__memory_name(screen, view__memory_at(screen, screen->from), first),
			 view__memory_name(screen,
					   view__memory_at(screen, screen->from + screen->span - 1),
					   last));
	snprintf(out, size, "%s of %s%s%s%s%s%s%s%s%s", views[screen->view],
		 view__memory_what(screen),
		 screen->subject.name[0] ? form == STATUS_ALL ? " (Esc: all memory)" : ""
		 : screen->chosen >= 0   ? ""
					 : by[screen->breakdown],
		 tile, window, screen->physical ? ", physical order" : "", rows[0] ? ", " : "",
		 rows, named ? ", " : "", named ? at->name : "");
}

static void memory_status(const void *state, const struct view_context *context, char *out,
			  size_t size)
{
	const struct view_memory *screen = state;
	const struct view_grid *grid = view__memory_shown_grid(screen);
	/* If the filter is invalid, the status is only its error. */
	int form = grid && grid->trouble[0] ? STATUS_ROWS : STATUS_ALL;
	char rows[VIEW_MESSAGE_SIZE] = "";

	if (screen->ipus == 0) {
		snprintf(out, size, "no memory of tiles recorded");
		return;
	}
	if (grid)
		view_grid_status(grid, rows, sizeof(rows));
	do
		memory_status_text(screen, (enum view_status_form)form, rows, out, size);
	while (form++ < (grid ? STATUS_ROWS : STATUS_NO_WAY_BACK) &&
	       utf8_columns(out) > context->body.width - 1);
}

static int memory_height(const void *state, const struct view_context *context)
{
	const struct view_memory *screen = state;

	(void)context;
	if (screen->ipus == 0)
		return 4;
	return HEADING_ROWS + WHOLE_PICTURE + 2 + screen->details.count;
}

static void memory_filter(void *state, const char *text)
{
	struct view_memory *screen = state;

	if (screen->view != VIEW_MEMORY_IPUS)
		screen->view = VIEW_MEMORY_TABLE;
	view_grid_filter(view__memory_shown_grid(screen), text);
}

static void memory_init(void *state)
{
	struct view_memory *screen = state;

	screen->runs_most = VIEW_MEMORY_RUNS_MOST;
	screen->chosen = -1;
	screen->breakdown = VIEW_MEMORY_BY_CATEGORY;
	screen->ipu = IPS_NULL;
	screen->subject.variable_id = IPS_NULL;
	screen->details.open =
		VIEW_MEMORY_ALL_GROUPS & ~(1u << VIEW_MEMORY_REGION_GROUP); /* rarely needed */
}

static void memory_fini(void *state)
{
	struct view_memory *screen = state;

	view_grid_fini(&screen->grid);
	view_grid_fini(&screen->ipu_grid);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		view__memory_rows_fini(&screen->side[s].rows);
	arena_fini(&screen->data_arena);
	arena_fini(&screen->subject_arena);
	arena_fini(&screen->picture_arena);
	arena_fini(&screen->details.arena);
}

/* ---- other screens --------------------------------------------------------------------------- */

#define SQL_MATCHING " FROM variables WHERE instr(lower(variable), lower(:text)) > 0 "

/* The next or previous variable whose name contains the text, wrapping around. */
static const char memory_sql_after[] = "SELECT variable_id, variable, ipu" SQL_MATCHING
				       "ORDER BY variable_id <= :id, variable_id LIMIT 1";

static const char memory_sql_before[] = "SELECT variable_id, variable, ipu" SQL_MATCHING
					"ORDER BY variable_id >= :id, variable_id DESC LIMIT 1";

static const char memory_sql_hits[] = "SELECT sum(variable_id <= :id), count(*)" SQL_MATCHING;

static void memory_show_ipu(struct view_memory *screen, int64_t ipu)
{
	if (screen->ipu == IPS_NULL || screen->ipu == ipu)
		return;
	screen->ipu = IPS_NULL;
	screen->span = 0;
	screen->grid_stale = true;
}

/* Make the variable (or the layer, without an id) that @sql finds the subject. false: there is
 * none. */
static bool memory_find_variable(struct view_memory *screen, const char *sql, const char *text,
				 int64_t id)
{
	struct prof_query *query = view_query_open(view__memory_db(screen, 0), sql, &screen->err);
	bool found;

	if (text)
		prof_query_text(query, ":text", text);
	if (id != IPS_NULL)
		prof_query_int(query, ":id", id);
	found = view_query_next(query, &screen->err);
	if (found) {
		const char *name = prof_column_text(query, 1);

		view__memory_select(screen, prof_column_int(query, 0), name ? name : "?");
		memory_show_ipu(screen, prof_column_int(query, 2));
		screen->jump = true;
	}
	prof_query_close(query);
	return found;
}

/* Parse "37", "tile 37" or "1,37". @ipu is IPS_NULL if not given. Return false for a name. */
static bool memory_parse_tile(const char *text, int64_t *ipu, int64_t *tile)
{
	char first[32];
	const char *comma;
	long long number;

	if (str_starts_with(text, "tile "))
		text += strlen("tile ");
	*ipu = IPS_NULL;
	comma = strchr(text, ',');
	if (comma && (size_t)(comma - text) < sizeof(first)) {
		snprintf(first, sizeof(first), "%.*s", (int)(comma - text), text);
		if (!str_to_int(first, &number))
			return false;
		*ipu = number;
		text = comma + 1 + (comma[1] == ' ');
	}
	if (!str_to_int(text, &number))
		return false;
	*tile = number;
	return true;
}

/* Without an IPU, search the cursor's IPU; if the cursor is on that tile already, the next IPU. */
static bool memory_search_tile(struct view_memory *screen, int64_t ipu, int64_t tile, bool forward)
{
	int at = view__memory_ipu_at(screen, ipu == IPS_NULL ? screen->at_ipu : ipu);
	int64_t index;

	if (at < 0)
		return false;
	if (ipu == IPS_NULL && screen->at_tile == tile)
		at = (at + (forward ? 1 : screen->ipus - 1)) % screen->ipus;
	index = view__memory_index(screen, screen->ipu_ids[at], tile);
	if (index < 0)
		return false;
	memory_show_ipu(screen, screen->ipu_ids[at]);
	view__memory_set_cursor(screen, index);
	screen->span = 0;
	return true;
}

static bool memory_search(void *state, struct view_context *context, const char *text, bool forward)
{
	struct view_memory *screen = state;
	const int64_t from = screen->subject.variable_id;
	struct prof_query *query;
	int64_t ipu, tile;

	if (screen->ipus == 0)
		return false;
	if (memory_parse_tile(text, &ipu, &tile))
		return memory_search_tile(screen, ipu, tile, forward);
	view__memory_begin(screen, context);
	if (!memory_find_variable(screen, forward ? memory_sql_after : memory_sql_before, text,
				  from == IPS_NULL && !forward ? INT64_MAX : from))
		return false;
	query = view_query_open(context->source->db, memory_sql_hits, &screen->err);
	prof_query_text(query, ":text", text);
	prof_query_int(query, ":id", screen->subject.variable_id);
	if (view_query_next(query, &screen->err)) {
		context->hit = prof_column_int(query, 0);
		context->hits = prof_column_int(query, 1);
	}
	prof_query_close(query);
	return true;
}

static bool memory_current_place(const void *state, struct view_place *out)
{
	const struct view_memory *screen = state;
	const struct view_memory_details *details = &screen->details;
	const struct view_memory_line *line = details->active && details->at < details->count
						      ? &details->lines[details->at]
						      : NULL;

	if (screen->ipus == 0)
		return false;
	out->ipu = screen->at_ipu;
	out->tile = screen->at_tile;
	if (line && line->kind == VIEW_MEMORY_VARIABLE) {
		/* Other screens show the Source, so a variable of only the Target is no link. */
		if (line->side == 0)
			out->variable_id = line->variable_id;
		view_place_text(out->layer, line->layer);
	} else if (screen->subject.name[0] && screen->subject.variable_id != IPS_NULL) {
		out->variable_id = screen->subject.variable_id;
	} else if (screen->subject.name[0]) {
		view_place_text(out->layer, screen->subject.name);
	}
	return true;
}

static bool memory_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->variable_id != IPS_NULL)
		snprintf(out, size, "the tiles that hold variable %" PRId64, place->variable_id);
	else if (place->tile != IPS_NULL && place->ipu != IPS_NULL)
		snprintf(out, size, "tile %" PRId64 " of IPU %" PRId64, place->tile, place->ipu);
	else if (place->layer[0])
		snprintf(out, size, "the tiles that hold %s", place->layer);
	else if (place->ipu != IPS_NULL)
		snprintf(out, size, "the tiles of IPU %" PRId64, place->ipu);
	else
		return false;
	return true;
}

static const char memory_sql_by_id[] =
	"SELECT variable_id, variable, ipu FROM variables WHERE variable_id = :id";

static const char memory_sql_layer[] =
	"SELECT NULL, layer, NULL FROM variables WHERE layer = :text LIMIT 1";

static enum status memory_go(void *state, struct view_context *context,
			     const struct view_place *place, struct err *err)
{
	struct view_memory *screen = state;
	bool found = false;

	if (screen->ipus == 0)
		return err_set(err, ST_NOTFOUND, "no memory of tiles was recorded");
	view__memory_begin(screen, context);
	view__memory_select(screen, IPS_NULL, "");
	view__memory_choose(screen, -1);
	if (place->variable_id != IPS_NULL)
		found = memory_find_variable(screen, memory_sql_by_id, NULL, place->variable_id);
	else if (place->layer[0])
		found = memory_find_variable(screen, memory_sql_layer, place->layer, IPS_NULL);
	if (err_stuck(&screen->err))
		return view__memory_end(screen, err);
	if (place->tile != IPS_NULL && place->ipu != IPS_NULL) {
		const int64_t index = view__memory_index(screen, place->ipu, place->tile);

		if (index < 0)
			return err_set(err, ST_NOTFOUND,
				       "tile %" PRId64 " of IPU %" PRId64 " has no memory recorded",
				       place->tile, place->ipu);
		memory_show_ipu(screen, place->ipu);
		view__memory_set_cursor(screen, index);
		screen->span = 0;
		screen->jump = false;
		return ST_OK;
	}
	if (found)
		return ST_OK;
	if (place->ipu == IPS_NULL)
		return err_set(err, ST_NOTFOUND, "no memory of that was recorded");
	if (view__memory_ipu_at(screen, place->ipu) < 0)
		return err_set(err, ST_NOTFOUND, "no memory of IPU %" PRId64 " was recorded",
			       place->ipu);
	screen->grid_stale |= screen->ipu != place->ipu;
	screen->ipu = place->ipu;
	screen->span = 0;
	screen->jump = true;
	return ST_OK;
}

/* Query the tiles' memory by part of the breakdown, or the selected part. */
static void memory_query_memory(const struct view_memory *screen, struct str *out)
{
	static const char always[] = "category <> 'notAlwaysLiveVariables'";
	static const char *const by[] = {[VIEW_MEMORY_WHOLE] = NULL,
					 [VIEW_MEMORY_BY_CATEGORY] = "category",
					 [VIEW_MEMORY_BY_REGION] = "region",
					 [VIEW_MEMORY_BY_LIVENESS] = always};
	const bool live = screen->breakdown == VIEW_MEMORY_BY_LIVENESS;
	const char *part = screen->chosen < 0 ? by[screen->breakdown] : NULL;
	const char *name = view__memory_what(screen), *before = " WHERE ";

	str_addf(out, "SELECT ipu, tile, %s%s%ssum(bytes) AS bytes, max(capacity) AS capacity\n",
		 part ? part : "", part && live ? " AS always_live" : "", part ? ", " : "");
	str_add(out, "FROM tile_memory");
	if (screen->ipu != IPS_NULL) {
		str_addf(out, " WHERE ipu = %" PRId64, screen->ipu);
		before = " AND ";
	}
	if (screen->chosen >= 0 && live) {
		str_addf(out, "%s%s", before,
			 strcmp(name, "always live") == 0 ? always
							  : "category = 'notAlwaysLiveVariables'");
	} else if (screen->chosen >= 0) {
		str_addf(out, "%s%s = ", before, by[screen->breakdown]);
		str_add_sql(out, name);
	}
	str_addf(out, "\nGROUP BY ipu, tile%s%s ORDER BY ipu, tile", part ? ", " : "",
		 part ? part : "");
}

static const char memory_query_ipus[] =
	"SELECT ipu, sum(bytes) AS bytes,\n"
	"  1.0 * sum(bytes) / sum(capacity) AS used_share,\n"
	"  max(bytes) AS fullest_bytes, sum(bytes) / count(*) AS mean_bytes,\n"
	"  min(bytes) AS least_bytes, sum(bytes > capacity) AS tiles_over,\n"
	"  sum(always) AS always_live_bytes, count(*) AS tiles\n"
	"FROM (SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity,\n"
	"    sum(CASE WHEN category <> 'notAlwaysLiveVariables' THEN bytes ELSE 0\n"
	"      END) AS always FROM tile_memory GROUP BY ipu, tile)\n"
	"GROUP BY ipu ORDER BY max(bytes) DESC, ipu;\n";

/* Add the details' tiles as pairs of an IPU and a tile. */
static void memory_add_tiles(const struct view_memory *screen, struct str *out)
{
	const struct view_memory_details *details = &screen->details;

	str_add(out, "(VALUES ");
	for (int i = 0; i < details->together_count; i++)
		str_addf(out, "%s(%" PRId64 ", %" PRId64 ")", i ? ", " : "",
			 view__memory_ipu_of(screen, details->together[i]),
			 view__memory_tile_of(screen, details->together[i]));
	str_add(out, ")");
}

/* Query the details' tiles; if there are several, grouped by tile. */
static void memory_query_tiles(const struct view_memory *screen, struct str *out)
{
	const bool several = screen->details.together_count > 1;
	const char *tiles = several ? "m.ipu, m.tile, " : "";

	str_addf(out,
		 "SELECT %sm.category, m.region, sum(m.bytes) AS bytes,\n"
		 "  max(m.capacity) AS capacity\nFROM tile_memory m WHERE (m.ipu, m.tile) IN ",
		 tiles);
	memory_add_tiles(screen, out);
	str_addf(out, "\nGROUP BY %sm.category, m.region ORDER BY %ssum(m.bytes) DESC;\n", tiles,
		 tiles);
	str_addf(out,
		 "SELECT %sv.variable, v.kind, v.layer, sum(m.bytes) AS bytes, v.always_live\n",
		 tiles);
	str_add(out, "FROM variable_tiles m JOIN variables v ON v.variable_id = m.variable_id\n"
		     "WHERE (m.ipu, m.tile) IN ");
	memory_add_tiles(screen, out);
	str_addf(out, "\nGROUP BY %sv.variable ORDER BY %ssum(m.bytes) DESC, v.variable", tiles,
		 tiles);
	if (!several)
		str_addf(out, " LIMIT %d", VIEW_MEMORY_LARGEST);
	str_add(out, ";\nSELECT m.ipu, m.tile, sum(m.bytes) - (SELECT coalesce(sum(t.bytes), 0)\n"
		     "    FROM tile_memory t WHERE t.ipu = m.ipu AND t.tile = m.tile\n"
		     "    AND t.category = 'notAlwaysLiveVariables') AS saved_by_overlap\n"
		     "FROM variable_tiles m JOIN variables v ON v.variable_id = m.variable_id\n"
		     "WHERE v.always_live = 0 AND (m.ipu, m.tile) IN ");
	memory_add_tiles(screen, out);
	str_add(out, "\nGROUP BY m.ipu, m.tile ORDER BY m.ipu, m.tile;\n");
}

static void memory_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_memory *screen = state;
	const bool bins = screen->view == VIEW_MEMORY_HISTOGRAM && screen->bin_bytes > 0;

	(void)context;
	if (screen->view == VIEW_MEMORY_IPUS) {
		str_add(out, memory_query_ipus);
		memory_query_tiles(screen, out);
		return;
	}
	if (bins)
		str_addf(out,
			 "SELECT bytes / %" PRId64 " * %" PRId64
			 " AS from_bytes, count(*) AS tiles FROM (\n",
			 screen->bin_bytes, screen->bin_bytes);
	if (screen->subject.name[0]) {
		str_add(out, "SELECT t.ipu, t.tile, sum(t.bytes) AS bytes FROM variable_tiles t\n"
			     "JOIN variables v ON v.variable_id = t.variable_id WHERE ");
		str_add(out,
			screen->subject.variable_id == IPS_NULL ? "v.layer = " : "v.variable = ");
		str_add_sql(out, screen->subject.name);
		if (screen->ipu != IPS_NULL)
			str_addf(out, " AND t.ipu = %" PRId64, screen->ipu);
		str_add(out, "\nGROUP BY t.ipu, t.tile ORDER BY t.ipu, t.tile");
	} else
		memory_query_memory(screen, out);
	str_add(out, bins ? ")\nGROUP BY 1 ORDER BY 1;\n" : ";\n");
	if (screen->ipus > 0)
		memory_query_tiles(screen, out);
}

static const char *memory_word(const void *state, enum view_request request)
{
	const struct view_memory *screen = state;
	const struct view_memory_details *details = &screen->details;
	const struct view_memory_line *line =
		details->at < details->count ? &details->lines[details->at] : NULL;
	const bool curve = screen->view == VIEW_MEMORY_CURVE,
		   chip = screen->view == VIEW_MEMORY_CHIP;

	if (screen->ipus == 0)
		return "";
	switch (request) {
	case VIEW_ENTER_REQUEST:
		if (screen->areas.details.height == 0)
			return "";
		return !details->active                             ? "details"
		       : line && line->kind == VIEW_MEMORY_GROUP    ? "open"
		       : line && line->kind == VIEW_MEMORY_VARIABLE ? "its tiles"
								    : "";
	case VIEW_BREAKDOWN_REQUEST: /* has no visible effect on pictures of one number */
		return screen->chosen < 0 && !screen->subject.name[0] &&
				       (chip || screen->view == VIEW_MEMORY_HISTOGRAM ||
					screen->sides > 1)
			       ? ""
			       : NULL;
	case VIEW_SELECT_REQUEST:
		return screen->ipus > 1 ? NULL : "";
	case VIEW_EXPAND_REQUEST:
		return line && line->group >= 0 && !(details->open & 1u << line->group) ? NULL : "";
	case VIEW_STATISTIC_REQUEST:
		return "part";
	case VIEW_ZOOM_IN_REQUEST:
		return curve && (screen->span == 0 || screen->span > VIEW_MEMORY_SPAN_LEAST) ? NULL
											     : "";
	case VIEW_ZOOM_ALL_REQUEST: /* of all tiles it turns the scale */
		return curve && screen->span > 0               ? NULL
		       : curve || (chip && screen->sides == 1) ? "scale"
							       : "";
	case VIEW_LONGEST_GAP_REQUEST:
		return "fullest";
	default:
		return NULL;
	}
}

const struct view_screen_ops view_memory_ops = {
	.name = "memory",
	.title = "Memory",
	.brief = "Mem",
	.key = '3',
	.where = VIEW_ON_MEMORY,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_memory),
	.init = memory_init,
	.fini = memory_fini,
	.load = memory_load,
	.draw = view__memory_draw,
	.request = view__memory_request,
	.search = memory_search,
	.filter = memory_filter,
	.word = memory_word,
	.status = memory_status,
	.height = memory_height,
	.table = view__memory_table,
	.place = memory_current_place,
	.offers = memory_offers,
	.go = memory_go,
	.query = memory_query,
	.click = view__memory_click,
};
