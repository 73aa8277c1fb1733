/*
 * From and to other screens: tiles by number, variables and layers by their tiles, and the
 * statements behind what is shown.
 *
 * Threading: as viewer/view_screen.h says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "viewer/memory/view_memory_internal.h"

static const char sql_by_id[] =
	"SELECT variable_id, variable, ipu FROM variables WHERE variable_id = :id";

/* The next one that contains the text; before it in a search that goes back. */
static const char sql_after[] = "SELECT variable_id, variable, ipu FROM variables "
				"WHERE instr(lower(variable), lower(:text)) > 0 "
				"ORDER BY variable_id <= :id, variable_id LIMIT 1";

static const char sql_before[] = "SELECT variable_id, variable, ipu FROM variables "
				 "WHERE instr(lower(variable), lower(:text)) > 0 "
				 "ORDER BY variable_id >= :id, variable_id DESC LIMIT 1";

static const char sql_layer[] = "SELECT 1 FROM variables WHERE layer = :text LIMIT 1";

/* ---- subjects -------------------------------------------------------------------------------- */

static void view_set_subject(struct view_memory *screen, int64_t variable_id, const char *name)
{
	screen->subject.variable_id = variable_id;
	view_place_text(screen->subject.name, name);
	screen->subject_stale = screen->grid_stale = true;
}

static void view_show_ipu(struct view_memory *screen, int64_t ipu)
{
	if (screen->ipu == IPS_NULL || screen->ipu == ipu)
		return;
	screen->ipu = IPS_NULL;
	screen->span = 0;
	screen->grid_stale = true;
}

/* The variable that @sql finds becomes the subject. *@found: there is one. */
static enum status view_find_variable(struct view_memory *screen, struct prof_db *db,
				      const char *sql, const char *text, int64_t id, bool *found,
				      struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*found = false;
	if (status != ST_OK)
		return status;
	if (text)
		prof_query_text(query, ":text", text);
	prof_query_int(query, ":id", id);
	status = prof_query_step(query, found, err);
	if (status == ST_OK && *found) {
		const char *name = prof_column_text(query, 1);

		view_set_subject(screen, prof_column_int(query, 0), name ? name : "?");
		view_show_ipu(screen, prof_column_int(query, 2));
		screen->jump = true;
	}
	prof_query_close(query);
	return status;
}

static enum status view_has_layer(struct prof_db *db, const char *layer, bool *found,
				  struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_layer, err);

	*found = false;
	if (status != ST_OK)
		return status;
	prof_query_text(query, ":text", layer);
	status = prof_query_step(query, found, err);
	prof_query_close(query);
	return status;
}

/* ---- searching ------------------------------------------------------------------------------- */

/* "37", "tile 37", "1,37": @ipu is IPS_NULL where none is said. false: it is a name. */
static bool view_numbers(const char *text, int64_t *ipu, int64_t *tile)
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

/* Without an IPU: this one's, and where the cursor is there already the next one's. */
static bool view_search_tile(struct view_memory *screen, int64_t ipu, int64_t tile, bool forward)
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
	view_show_ipu(screen, screen->ipu_ids[at]);
	view__memory_set_cursor(screen, index);
	screen->span = 0;
	return true;
}

bool view__memory_search(void *state, struct view_context *context, const char *text, bool forward)
{
	struct view_memory *screen = state;
	const int64_t from = screen->subject.variable_id;
	int64_t ipu, tile;
	bool found = false;

	if (screen->ipus == 0)
		return false;
	if (view_numbers(text, &ipu, &tile))
		return view_search_tile(screen, ipu, tile, forward);
	if (view_find_variable(screen, context->source->db, forward ? sql_after : sql_before, text,
			       from == IPS_NULL && !forward ? INT64_MAX : from, &found,
			       NULL) != ST_OK)
		return false;
	return found;
}

/* ---- places ---------------------------------------------------------------------------------- */

bool view__memory_place(const void *state, const struct view_context *context,
			struct view_place *out)
{
	const struct view_memory *screen = state;
	const struct view_memory_details *details = &screen->details;
	const struct view_memory_line *line = details->active && details->at < details->count
						      ? &details->lines[details->at]
						      : NULL;

	(void)context;
	if (screen->ipus == 0)
		return false;
	out->ipu = screen->at_ipu;
	out->tile = screen->at_tile;
	if (line && line->kind == VIEW_MEMORY_VARIABLE) {
		/* What only the Target has leads nowhere: other screens look into the Source. */
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

bool view__memory_offers(const struct view_place *place, char *out, size_t size)
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

static enum status view_go_tile(struct view_memory *screen, const struct view_place *place,
				struct err *err)
{
	const int64_t index = view__memory_index(screen, place->ipu, place->tile);

	if (index < 0)
		return err_set(err, ST_NOTFOUND,
			       "tile %" PRId64 " of IPU %" PRId64 " has no memory recorded",
			       place->tile, place->ipu);
	view_show_ipu(screen, place->ipu);
	view__memory_set_cursor(screen, index);
	screen->span = 0;
	screen->jump = false;
	return ST_OK;
}

static enum status view_go_ipu(struct view_memory *screen, int64_t ipu, struct err *err)
{
	if (view__memory_ipu_at(screen, ipu) < 0)
		return err_set(err, ST_NOTFOUND, "no memory of IPU %" PRId64 " was recorded", ipu);
	if (screen->ipu != ipu)
		screen->grid_stale = true;
	screen->ipu = ipu;
	screen->span = 0;
	screen->jump = true;
	return ST_OK;
}

enum status view__memory_go(void *state, struct view_context *context,
			    const struct view_place *place, struct err *err)
{
	struct view_memory *screen = state;
	enum status status = ST_OK;
	bool found = false;

	if (screen->ipus == 0)
		return err_set(err, ST_NOTFOUND, "no memory of tiles was recorded");
	view_set_subject(screen, IPS_NULL, "");
	view__memory_choose(screen, -1);
	if (place->variable_id != IPS_NULL) {
		status = view_find_variable(screen, context->source->db, sql_by_id, NULL,
					    place->variable_id, &found, err);
	} else if (place->layer[0]) {
		status = view_has_layer(context->source->db, place->layer, &found, err);
		if (found) {
			view_set_subject(screen, IPS_NULL, place->layer);
			view_show_ipu(screen, IPS_NULL);
			screen->jump = true;
		}
	}
	if (status != ST_OK)
		return status;
	if (place->tile != IPS_NULL && place->ipu != IPS_NULL)
		return view_go_tile(screen, place, err);
	if (found)
		return ST_OK;
	if (place->ipu != IPS_NULL)
		return view_go_ipu(screen, place->ipu, err);
	return err_set(err, ST_NOTFOUND, "no memory of that was recorded");
}

/* ---- the statements -------------------------------------------------------------------------- */

/* What the chosen series are rows of. */
static void view_add_choice(const struct view_memory *screen, struct str *out, const char *before)
{
	const char *name = view__memory_what(screen);

	if (screen->chosen < 0)
		return;
	str_add(out, before);
	if (screen->breakdown == VIEW_MEMORY_BY_LIVENESS) {
		str_add(out, strcmp(name, "always live") == 0
				     ? "category <> 'notAlwaysLiveVariables'"
				     : "category = 'notAlwaysLiveVariables'");
		return;
	}
	str_add(out, screen->breakdown == VIEW_MEMORY_BY_REGION ? "region = " : "category = ");
	str_add_sql(out, name);
}

static void view_query_subject(const struct view_memory *screen, struct str *out)
{
	str_add(out, "SELECT t.ipu, t.tile, sum(t.bytes) AS bytes FROM variable_tiles t\n"
		     "JOIN variables v ON v.variable_id = t.variable_id WHERE ");
	str_add(out, screen->subject.variable_id == IPS_NULL ? "v.layer = " : "v.variable = ");
	str_add_sql(out, screen->subject.name);
	if (screen->ipu != IPS_NULL)
		str_addf(out, " AND t.ipu = %" PRId64, screen->ipu);
	str_add(out, "\nGROUP BY t.ipu, t.tile ORDER BY t.ipu, t.tile");
}

static void view_query_memory(const struct view_memory *screen, struct str *out)
{
	static const char *const by[] = {[VIEW_MEMORY_WHOLE] = NULL,
					 [VIEW_MEMORY_BY_CATEGORY] = "category",
					 [VIEW_MEMORY_BY_REGION] = "region",
					 [VIEW_MEMORY_BY_LIVENESS] =
						 "category <> 'notAlwaysLiveVariables'"};
	const char *part = screen->chosen < 0 ? by[screen->breakdown] : NULL;
	const bool live = part && screen->breakdown == VIEW_MEMORY_BY_LIVENESS;

	str_addf(out, "SELECT ipu, tile, %s%s%ssum(bytes) AS bytes, max(capacity) AS capacity\n",
		 part ? part : "", live ? " AS always_live" : "", part ? ", " : "");
	str_add(out, "FROM tile_memory");
	if (screen->ipu != IPS_NULL)
		str_addf(out, " WHERE ipu = %" PRId64, screen->ipu);
	view_add_choice(screen, out, screen->ipu != IPS_NULL ? " AND " : " WHERE ");
	str_addf(out, "\nGROUP BY ipu, tile%s%s ORDER BY ipu, tile", part ? ", " : "",
		 part ? part : "");
}

/* The tiles of the details, as pairs of an IPU and a tile. */
static void view_add_tiles(const struct view_memory *screen, struct str *out)
{
	const struct view_memory_details *details = &screen->details;

	str_add(out, "(VALUES ");
	for (int i = 0; i < details->together_count; i++)
		str_addf(out, "%s(%" PRId64 ", %" PRId64 ")", i ? ", " : "",
			 view__memory_ipu_of(screen, details->together[i]),
			 view__memory_tile_of(screen, details->together[i]));
	str_add(out, ")");
}

/* Of each tile and, where there are several, of each by its number. */
static void view_query_tiles(const struct view_memory *screen, struct str *out)
{
	const bool several = screen->details.together_count > 1;
	const char *tiles = several ? "m.ipu, m.tile, " : "";

	str_addf(out,
		 "SELECT %sm.category, m.region, sum(m.bytes) AS bytes,\n"
		 "  max(m.capacity) AS capacity\nFROM tile_memory m WHERE (m.ipu, m.tile) IN ",
		 tiles);
	view_add_tiles(screen, out);
	str_addf(out, "\nGROUP BY %sm.category, m.region ORDER BY %ssum(m.bytes) DESC;\n", tiles,
		 tiles);
	str_addf(out,
		 "SELECT %sv.variable, v.kind, v.layer, sum(m.bytes) AS bytes, v.always_live\n",
		 tiles);
	str_add(out, "FROM variable_tiles m JOIN variables v ON v.variable_id = m.variable_id\n"
		     "WHERE (m.ipu, m.tile) IN ");
	view_add_tiles(screen, out);
	str_addf(out, "\nGROUP BY %sv.variable ORDER BY %ssum(m.bytes) DESC, v.variable", tiles,
		 tiles);
	if (!several)
		str_addf(out, " LIMIT %d", VIEW_MEMORY_LARGEST);
	str_add(out, ";\nSELECT m.ipu, m.tile, sum(m.bytes) - (SELECT coalesce(sum(t.bytes), 0)\n"
		     "    FROM tile_memory t WHERE t.ipu = m.ipu AND t.tile = m.tile\n"
		     "    AND t.category = 'notAlwaysLiveVariables') AS saved_by_overlap\n"
		     "FROM variable_tiles m JOIN variables v ON v.variable_id = m.variable_id\n"
		     "WHERE v.always_live = 0 AND (m.ipu, m.tile) IN ");
	view_add_tiles(screen, out);
	str_add(out, "\nGROUP BY m.ipu, m.tile ORDER BY m.ipu, m.tile;\n");
}

void view__memory_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_memory *screen = state;
	const bool bins = screen->view == VIEW_MEMORY_HISTOGRAM && screen->bin_bytes > 0;

	(void)context;
	if (screen->view == VIEW_MEMORY_IPUS) {
		view__memory_query_ipus(out);
		view_query_tiles(screen, out);
		return;
	}
	if (bins)
		str_addf(out,
			 "SELECT bytes / %" PRId64 " * %" PRId64
			 " AS from_bytes, count(*) AS tiles FROM (\n",
			 screen->bin_bytes, screen->bin_bytes);
	if (screen->subject.name[0])
		view_query_subject(screen, out);
	else
		view_query_memory(screen, out);
	str_add(out, bins ? ")\nGROUP BY 1 ORDER BY 1;\n" : ";\n");
	if (screen->ipus > 0)
		view_query_tiles(screen, out);
}
