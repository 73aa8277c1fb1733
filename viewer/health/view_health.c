/*
 * The screen Health: the broken rules, how often, where and when; and where bad numbers began.
 *
 * Threading: that of the session. Ownership: view_health_internal.h.
 */
#include "viewer/health/view_health_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_layout.h"

/* ---- drawing --------------------------------------------------------------------------------- */

#define HEAD_MOST 3 /* rows for where bad numbers began */
#define WHY_MOST  3

/* Rows for the longest explanation of a rule, so that the layout is the same for every cursor. */
static int health_why_rows(const struct view_health *screen, int width)
{
	const struct report_table *table = &screen->grid.table;
	const struct view_rect area = {0, 0, width - 2, WHY_MOST};
	int most = 0;

	for (int c = 0; c < table->column_count; c++) {
		if (strcmp(table->columns[c].name, "why") != 0)
			continue;
		for (int64_t row = 0; row < table->row_count; row++) {
			const struct report_cell *cell =
				&table->cells[row * table->column_count + c];
			const int rows =
				cell->type == PROF_TEXT
					? view_text_folded(NULL, area, VIEW_DIM, cell->text)
					: 0;

			most = max(rows, most);
		}
	}
	return most;
}

/* Below the grid: the explanation of a rule, the strips, an axis. */
void view__health_layout(struct view_health *screen, const struct view_context *context)
{
	const int height = context->body.height;
	const struct view_rect area = {0, 0, context->body.width - 2, HEAD_MOST};
	const int origin = screen->bad ? view_text_folded(NULL, area, VIEW_BAD, screen->origin) : 1;

	screen->head = height >= 12 ? 1 + origin : 2;
	screen->why_rows = context->whole ? 0 : health_why_rows(screen, context->body.width);
	screen->why_rows = height >= 20 || screen->why_rows == 0 ? screen->why_rows : 1;
	screen->foot = height < 12 ? 0 : screen->why_rows + (context->target ? 2 : 1) + 1;
	screen->grid_height = height - screen->head - screen->foot;
}

static void health_draw_origin(const struct view_health *screen, struct view_pane *pane)
{
	if (screen->bad) {
		view_text_folded(pane,
				 (struct view_rect){1, 1, pane->rect.width - 2, screen->head - 1},
				 VIEW_BAD, screen->origin);
		return;
	}
	/* Without rules nothing was watched, so nothing can be said. */
	if (screen->way != VIEW_HEALTH_RULES || screen->grid.table.row_count > 0)
		view_text_cut(pane, 1, 1, pane->rect.width - 2, VIEW_DIM,
			      "No NaN and no Inf was found in what is watched.");
}

static void health_draw_strip(const struct view_health_strip *strip, struct view_pane *pane, int y,
			      enum view_style style, const char *name)
{
	const int left = 8, width = pane->rect.width - left - 1;
	double most = 0;

	view_text_cut(pane, 1, y, left - 2, style, name);
	for (int round = 0; round < 2; round++)
		for (int x = 0; x < width; x++) {
			const int from = x * VIEW_HEALTH_BUCKETS / width;
			int to = (x + 1) * VIEW_HEALTH_BUCKETS / width;
			double hits = 0;

			if (to <= from)
				to = from + 1;
			for (int i = from; i < to; i++)
				hits += strip->bucket[i];
			if (round == 0)
				most = max(hits, most);
			else
				view_put(pane, left + x, y, style,
					 view_level_char(pane->canvas, most > 0 ? hits / most : 0));
		}
}

static void health_draw_axis(const struct view_health *screen, const struct view_context *context,
			     struct view_pane *pane, int y)
{
	const struct view_health_strip *strip = &screen->source;
	char hits[FMT_SIZE], every[FMT_SIZE], until[FMT_SIZE], text[160];
	int used;

	if (strip->hits == 0 && screen->target.hits == 0) {
		view_text(pane, 1, y, VIEW_GOOD, "No rule has been broken.");
		return;
	}
	if (context->target)
		snprintf(text, sizeof(text), "%s and %s hits over time",
			 fmt_count(hits, strip->hits), fmt_count(every, screen->target.hits));
	else if (strip->every > 1)
		snprintf(text, sizeof(text), "%s hits over time, by one in %s",
			 fmt_count(hits, strip->hits), fmt_count(every, strip->every));
	else
		snprintf(text, sizeof(text), "%s hits over time", fmt_count(hits, strip->hits));
	used = view_text_cut(pane, 8, y, pane->rect.width - 9, VIEW_DIM, text);
	fmt_ns(until, max(strip->until_ns, screen->target.until_ns));
	if (used + 12 + view_text_width(until) < pane->rect.width)
		view_text_right(pane, 8, y, pane->rect.width - 9, VIEW_DIM, until);
}

static void health_draw_foot(const struct view_health *screen, const struct view_context *context,
			     struct view_pane *pane, int y)
{
	const char *why = view_grid_text(&screen->grid, "why");

	if (why && !context->whole)
		view_text_folded(pane,
				 (struct view_rect){1, y, pane->rect.width - 2, screen->why_rows},
				 VIEW_DIM, why);
	y += screen->why_rows;
	health_draw_strip(&screen->source, pane, y, VIEW_BAD, context->target ? "Source" : "hits");
	if (context->target)
		health_draw_strip(&screen->target, pane, ++y, VIEW_TARGET, "Target");
	health_draw_axis(screen, context, pane, y + 1);
}

static const char *health_nothing(const struct view_health *screen)
{
	if (screen->grid.table.row_count > 0)
		return "";
	switch (screen->way) {
	case VIEW_HEALTH_RULES:
		return "Nothing was watched: this was recorded without health rules.";
	case VIEW_HEALTH_ORIGIN:
		return "There is no trail: no bad number was found.";
	default:
		return "No rule has been broken.";
	}
}

static void health_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_health *screen = state;
	int x = 1;

	for (int way = 0; way < VIEW_HEALTH_WAY_COUNT; way++) {
		const bool active = way == (int)screen->way;

		x += view_textf(pane, x, 0, active ? VIEW_KEY : VIEW_DIM, active ? "[%s]" : " %s ",
				view__health_title(screen, (enum view_health_way)way));
		x++;
	}
	health_draw_origin(screen, pane);
	if (screen->grid.table.row_count > 0)
		view_grid_draw(&screen->grid, pane, !context->whole);
	else if (screen->head + screen->foot + 1 < pane->rect.height)
		view_text(pane, 1, screen->head + 1, VIEW_DIM, health_nothing(screen));
	if (screen->foot > 0)
		health_draw_foot(screen, context, pane, pane->rect.height - screen->foot);
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void health_init(void *state)
{
	struct view_health *screen = state;

	screen->page = 1;
}

static void health_fini(void *state)
{
	view_grid_fini(&((struct view_health *)state)->grid);
}

static struct view_grid *health_grid(void *state)
{
	return &((struct view_health *)state)->grid;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Change the page of hits if the cursor leaves it; true: changed. */
static bool health_turn_page(struct view_health *screen, enum view_request request)
{
	struct view_grid *grid = &screen->grid;
	const int64_t all = screen->source.hits, before = screen->page;
	const bool plain = grid->sort < 0 && !grid->filter[0];
	const bool down = request == VIEW_DOWN_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
	const bool up = request == VIEW_UP_REQUEST || request == VIEW_PAGE_UP_REQUEST;

	if (screen->way != VIEW_HEALTH_HITS)
		return false;
	if (request == VIEW_HOME_REQUEST && plain)
		screen->page = 1;
	else if (request == VIEW_END_REQUEST && plain)
		screen->page = all - VIEW_HEALTH_PAGE + 1;
	else if (down && grid->at + 1 >= grid->count && all - before >= VIEW_HEALTH_PAGE)
		screen->page += VIEW_HEALTH_PAGE;
	else if (up && grid->at == 0)
		screen->page -= VIEW_HEALTH_PAGE;
	if (screen->page < 1)
		screen->page = 1;
	if (screen->page == before)
		return false;
	grid->at = up || request == VIEW_END_REQUEST ? VIEW_HEALTH_PAGE - 1 : 0;
	return true;
}

/* The row's number; 0: none. */
static int64_t health_row_number(const struct view_health *screen, const char *column)
{
	const int64_t number = view_grid_int(&screen->grid, column);

	return number != IPS_NULL ? number : 0;
}

static enum view_answer health_open_rule(struct view_health *screen, struct view_context *context)
{
	const char *rule = view_grid_text(&screen->grid, "rule");
	const bool source = health_row_number(screen, "hits") > 0;
	const bool target = !source && health_row_number(screen, "hits_target") > 0;
	const int64_t first = health_row_number(screen, target ? "at_ns_target" : "at_ns");
	char name[64] = "";

	if (!rule || (!source && !target)) {
		view_messagef(context, "this rule has not been broken");
		return VIEW_DRAW;
	}
	/* Names of rules are letters and underscores, so they are valid regular expressions. */
	str_copy(name, sizeof(name), rule);
	view__health_way(screen, VIEW_HEALTH_HITS);
	if (view__health_page_at(screen, context, target, first, NULL) != ST_OK)
		screen->page = 1;
	str_copy(screen->grid.filter, sizeof(screen->grid.filter), name);
	return VIEW_LOAD;
}

static enum view_answer health_request(void *state, struct view_context *context,
				       enum view_request request)
{
	struct view_health *screen = state;
	enum view_answer answer;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		view__health_way(screen, (enum view_health_way)view_next_choice(
						 (int)screen->way, VIEW_HEALTH_WAY_COUNT, request));
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		if (screen->way == VIEW_HEALTH_PARTS) {
			screen->part = (screen->part + 1) % VIEW_HEALTH_PART_COUNT;
			view_grid_fini(&screen->grid);
			memset(&screen->grid, 0, sizeof(screen->grid));
			screen->ranked[VIEW_HEALTH_PARTS] = false;
		}
		view__health_way(screen, VIEW_HEALTH_PARTS);
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		return screen->way == VIEW_HEALTH_RULES ? health_open_rule(screen, context)
							: VIEW_JOIN;
	case VIEW_JOIN_REQUEST:
		return VIEW_JOIN;
	default:
		break;
	}
	if (health_turn_page(screen, request))
		return VIEW_LOAD;
	answer = view_grid_request(&screen->grid, request);
	if (answer == VIEW_UNHANDLED && request == VIEW_BACK_REQUEST &&
	    screen->way != VIEW_HEALTH_RULES) {
		view__health_way(screen, VIEW_HEALTH_RULES);
		return VIEW_LOAD;
	}
	return answer;
}

static void health_status(const void *state, const struct view_context *context, char *out,
			  size_t size)
{
	const struct view_health *screen = state;
	char from[FMT_SIZE], to[FMT_SIZE], all[FMT_SIZE], grid[160];

	(void)context;
	view_grid_status(&screen->grid, grid, sizeof(grid));
	if (screen->way == VIEW_HEALTH_HITS && screen->source.hits > VIEW_HEALTH_PAGE)
		snprintf(out, size, "hits %s to %s of %s: %s", fmt_count(from, screen->page),
			 fmt_count(to, screen->page + screen->grid.table.row_count - 1),
			 fmt_count(all, screen->source.hits), grid);
	else if (screen->way == VIEW_HEALTH_PARTS && screen->source.every > 1)
		snprintf(out, size, "estimated from one hit in %s: %s",
			 fmt_count(all, screen->source.every), grid);
	else
		snprintf(out, size, "%s: %s", view__health_title(screen, screen->way), grid);
}

static int health_height(const void *state, const struct view_context *context)
{
	const struct view_health *screen = state;
	const int64_t rows = min(screen->grid.count, 1000);

	return screen->head + 1 + (int)rows + 1 + (context->target ? 4 : 3);
}

/* ---- from screen to screen ------------------------------------------------------------------- */

static bool health_place(const void *state, struct view_place *out)
{
	const struct view_health *screen = state;
	const struct view_grid *grid = &screen->grid;
	const bool parts = screen->way == VIEW_HEALTH_PARTS;
	const int64_t its = view_grid_int(grid, parts ? "first_ns_target" : "at_ns_target");

	view_place_clear(out);
	if (grid->count == 0)
		return false;
	view_grid_place(grid, NULL, "", out);
	view_grid_place(grid, NULL, "_target", out);
	out->time_ns = view_grid_int(grid, parts ? "first_ns" : "at_ns");
	if (out->time_ns == IPS_NULL && its != IPS_NULL) {
		out->target_only = 1;
		out->time_ns = its;
	}
	if (out->time_ns != IPS_NULL)
		view_place_text(out->clock, "host");
	return true;
}

/* Is it about where bad numbers began? */
static bool health_is_of_origin(const struct view_place *place)
{
	return strcmp(place->view, "nonfinite_trail") == 0 ||
	       strcmp(place->view, "first_nonfinite") == 0;
}

static bool health_offers(const struct view_place *place, char *out, size_t size)
{
	if (health_is_of_origin(place))
		snprintf(out, size, "where bad numbers began");
	else if (place->rule[0])
		snprintf(out, size, "hits of the rule %s", place->rule);
	else if (place->hit_ns != IPS_NULL && place->step != IPS_NULL)
		snprintf(out, size, "rules broken at step %lld", (long long)place->step);
	else if (place->hit_ns != IPS_NULL)
		snprintf(out, size, "rules broken at weight update %lld",
			 (long long)place->weight_update);
	else if (place->layer[0] && place->layer_hits != 0)
		snprintf(out, size, "rules broken in %s", place->layer);
	else
		return false;
	return true;
}

static enum status health_go(void *state, struct view_context *context,
			     const struct view_place *place, struct err *err)
{
	struct view_health *screen = state;
	const bool rule = place->rule[0] != '\0';
	const int64_t at = rule ? place->time_ns : place->hit_ns;
	const bool target = place->target_only == 1 && context->target;
	const enum view_health_way way = at != IPS_NULL ? VIEW_HEALTH_HITS
					 : rule         ? VIEW_HEALTH_RULES
							: VIEW_HEALTH_PARTS;
	enum status status = ST_OK;
	bool found;

	if (health_is_of_origin(place)) {
		view__health_way(screen, VIEW_HEALTH_ORIGIN);
		return view__health_load(screen, context, false, err);
	}
	screen->part = VIEW_HEALTH_BY_layer;
	view__health_way(screen, way);
	if (at != IPS_NULL)
		status = view__health_page_at(screen, context, target, at, err);
	if (status == ST_OK)
		status = view__health_load(screen, context, false, err);
	if (status != ST_OK)
		return status;
	found = at != IPS_NULL &&
		view_grid_go(&screen->grid, target ? "at_ns_target" : "at_ns", NULL, at);
	if (!found)
		found = view_grid_go(&screen->grid, rule ? "rule" : "layer",
				     rule ? place->rule : place->layer, 0);
	return found  ? ST_OK
	       : rule ? err_set(err, ST_NOTFOUND, "the rule %s has not been broken", place->rule)
		      : err_set(err, ST_NOTFOUND, "no rule has been broken in %s", place->layer);
}

/* The same statement on the contract's views. */
static void health_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_health *screen = state;
	static const char *const groups[] = {
#define GROUP(part, title) [VIEW_HEALTH_BY_##part] = #part,
		VIEW_HEALTH_PARTS_OF(GROUP)
#undef GROUP
	};

	(void)context;
	switch (screen->way) {
	case VIEW_HEALTH_HITS:
		str_addf(out, "SELECT * FROM health LIMIT %d OFFSET %lld;\n", VIEW_HEALTH_PAGE,
			 (long long)screen->page - 1);
		break;
	case VIEW_HEALTH_PARTS:
		str_addf(out,
			 "SELECT %s, count(*) AS hits, group_concat(DISTINCT rule) AS rules, "
			 "min(time_ns) AS first_ns, max(time_ns) AS last_ns FROM health "
			 "GROUP BY 1 ORDER BY 2 DESC;\n",
			 groups[screen->part]);
		break;
	default:
		str_addf(out, "%s;\n", screen->sql);
		break;
	}
}

static const char *health_word(const void *state, enum view_request request)
{
	const struct view_health *screen = state;

	if (request == VIEW_BREAKDOWN_REQUEST)
		return "group";
	if (request == VIEW_ENTER_REQUEST && screen->way == VIEW_HEALTH_RULES)
		return health_row_number(screen, "hits") > 0 ||
				       health_row_number(screen, "hits_target") > 0
			       ? NULL
			       : "";
	return request == VIEW_ENTER_REQUEST && screen->grid.count == 0 ? "" : NULL;
}

const struct view_screen_ops view_health_ops = {
	.name = "health",
	.title = "Health",
	.brief = "Hlth",
	.key = 'H',
	.where = VIEW_ON_HEALTH,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_health),
	.init = health_init,
	.fini = health_fini,
	.grid = health_grid,
	.load = view__health_load,
	.draw = health_draw,
	.request = health_request,
	.word = health_word,
	.status = health_status,
	.height = health_height,
	.place = health_place,
	.offers = health_offers,
	.go = health_go,
	.query = health_query,
};
