/*
 * The screen Health: which rules were broken, how often, where and when; where bad numbers began.
 *
 * Threading: as view_screen.h says. Ownership: the grid has its rows, the rest is numbers.
 */
#include "viewer/health/view_health_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

static enum status view_health_open(void **state, struct view_context *context, struct err *err)
{
	struct view_health *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = screen;
	if (!screen)
		return err_nomem(err);
	screen->page = 1;
	return ST_OK;
}

static void view_health_close(void *state)
{
	struct view_health *screen = state;

	if (!screen)
		return;
	view_grid_fini(&screen->grid);
	mem_free(screen);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum view_answer show_way(struct view_health *screen, struct view_context *context, int by)
{
	const int way = ((int)screen->way + by + VIEW_HEALTH_WAY_COUNT) % VIEW_HEALTH_WAY_COUNT;

	(void)context;
	view__health_way(screen, (enum view_health_way)way);
	return VIEW_LOAD;
}

static enum view_answer show_part(struct view_health *screen)
{
	if (screen->way == VIEW_HEALTH_PARTS) {
		screen->part = (screen->part + 1) % VIEW_HEALTH_PART_COUNT;
		view_grid_fini(&screen->grid);
		memset(&screen->grid, 0, sizeof(screen->grid));
		screen->ranked[VIEW_HEALTH_PARTS] = false;
	}
	view__health_way(screen, VIEW_HEALTH_PARTS);
	return VIEW_LOAD;
}

/* Another page of hits where the cursor leaves this one; true: it did. */
static bool turn_page(struct view_health *screen, enum view_request request)
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
static int64_t row_number(const struct view_health *screen, const char *column)
{
	const struct report_cell *cell = view_grid_cell(&screen->grid, column);

	return cell && cell->type == PROF_INT ? cell->integer : 0;
}

static enum view_answer open_rule(struct view_health *screen, struct view_context *context)
{
	const struct report_cell *rule = view_grid_cell(&screen->grid, "rule");
	const bool source = row_number(screen, "hits") > 0;
	const bool target = !source && row_number(screen, "hits_target") > 0;
	const int64_t first = row_number(screen, target ? "at_ns_target" : "at_ns");
	char name[64] = "";

	if (!rule || !rule->text || (!source && !target)) {
		snprintf(context->message, sizeof(context->message),
			 "this rule has not been broken");
		return VIEW_DRAW;
	}
	/* Rules are named by letters and underscores: a regular expression as it is. */
	str_copy(name, sizeof(name), rule->text);
	view__health_way(screen, VIEW_HEALTH_HITS);
	if (view__health_page_at(screen, context, target, first, NULL) != ST_OK)
		screen->page = 1;
	str_copy(screen->grid.filter, sizeof(screen->grid.filter), name);
	return VIEW_LOAD;
}

static enum view_answer view_health_request(void *state, struct view_context *context,
					    enum view_request request)
{
	struct view_health *screen = state;
	enum view_answer answer;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		return show_way(screen, context, request == VIEW_VIEW_REQUEST ? 1 : -1);
	case VIEW_BREAKDOWN_REQUEST:
		return show_part(screen);
	case VIEW_ENTER_REQUEST:
		return screen->way == VIEW_HEALTH_RULES ? open_rule(screen, context) : VIEW_JOIN;
	case VIEW_JOIN_REQUEST:
		return VIEW_JOIN;
	case VIEW_SELECT_REQUEST:
		snprintf(context->message, sizeof(context->message),
			 "rules are of all IPUs: b breaks hits down by stage");
		return VIEW_DRAW;
	default:
		break;
	}
	if (turn_page(screen, request))
		return VIEW_LOAD;
	answer = view_grid_request(&screen->grid, screen->grid_height, request);
	if (answer == VIEW_UNHANDLED && request == VIEW_BACK_REQUEST &&
	    screen->way != VIEW_HEALTH_RULES) {
		view__health_way(screen, VIEW_HEALTH_RULES);
		return VIEW_LOAD;
	}
	return answer;
}

static bool view_health_search(void *state, struct view_context *context, const char *text,
			       bool forward)
{
	struct view_health *screen = state;

	(void)context;
	return view_grid_search(&screen->grid, screen->grid_height, text, forward);
}

static void view_health_filter(void *state, const char *text)
{
	struct view_health *screen = state;

	view_grid_filter(&screen->grid, text);
}

static void view_health_status(const void *state, const struct view_context *context, char *out,
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

static int view_health_height(const void *state, const struct view_context *context)
{
	const struct view_health *screen = state;
	const int64_t rows = min(screen->grid.count, 1000);

	return screen->head + 1 + (int)rows + 1 + (context->target ? 4 : 3);
}

static enum status view_health_table(void *state, struct view_context *context,
				     struct report_table *out, struct err *err)
{
	struct view_health *screen = state;

	(void)context;
	return view_grid_table(&screen->grid, out, err);
}

static enum view_answer view_health_click(void *state, struct view_context *context, int x, int y)
{
	struct view_health *screen = state;

	(void)context;
	return view_grid_click(&screen->grid, screen->grid_height, x, y - screen->head);
}

/* ---- from screen to screen ------------------------------------------------------------------- */

static const struct report_cell *target_cell(const struct view_grid *grid, const char *column)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_target", column);
	return view_grid_cell(grid, name);
}

static bool has_number(const struct report_cell *cell)
{
	return cell && cell->type == PROF_INT;
}

/* Of two reports only the target has what the row is about. */
static bool is_the_targets(const struct view_health *screen)
{
	const char *when = screen->way == VIEW_HEALTH_PARTS ? "first_ns" : "at_ns";

	return has_number(target_cell(&screen->grid, when)) &&
	       !has_number(view_grid_cell(&screen->grid, when));
}

/* The target's where the source has none: what is the same in both stands once. */
static const struct report_cell *either_cell(const struct view_grid *grid, const char *column)
{
	const struct report_cell *cell = view_grid_cell(grid, column);
	const struct report_cell *its = target_cell(grid, column);

	return cell && cell->type == PROF_NULL && its ? its : cell;
}

static void take_number(const struct view_grid *grid, const char *column, int64_t *out)
{
	const struct report_cell *cell = either_cell(grid, column);

	if (cell && cell->type == PROF_INT)
		*out = cell->integer;
}

static void take_text(const struct view_grid *grid, const char *column, char *out)
{
	const struct report_cell *cell = either_cell(grid, column);

	if (cell && cell->text)
		view_place_text(out, cell->text);
}

static bool view_health_place(const void *state, const struct view_context *context,
			      struct view_place *out)
{
	const struct view_health *screen = state;
	const struct view_grid *grid = &screen->grid;

	(void)context;
	view_place_clear(out);
	if (grid->count == 0)
		return false;
#define TAKE_NUMBER(name) take_number(grid, #name, &out->name);
	VIEW_PLACE_NUMBERS(TAKE_NUMBER)
#undef TAKE_NUMBER
#define TAKE_TEXT(name) take_text(grid, #name, out->name);
	VIEW_PLACE_TEXTS(TAKE_TEXT)
#undef TAKE_TEXT
	if (is_the_targets(screen))
		out->target_only = 1;
	take_number(grid, screen->way == VIEW_HEALTH_PARTS ? "first_ns" : "at_ns", &out->time_ns);
	if (out->time_ns != IPS_NULL)
		view_place_text(out->clock, "host");
	return true;
}

static bool view_health_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->rule[0])
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

static enum status view_health_go(void *state, struct view_context *context,
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

	screen->part = VIEW_HEALTH_BY_layer;
	view__health_way(screen, way);
	if (at != IPS_NULL)
		status = view__health_page_at(screen, context, target, at, err);
	if (status == ST_OK)
		status = view__health_load(screen, context, false, err);
	if (status != ST_OK)
		return status;
	found = at != IPS_NULL && view_grid_go(&screen->grid, screen->grid_height,
					       target ? "at_ns_target" : "at_ns", NULL, at);
	if (!found)
		found = view_grid_go(&screen->grid, screen->grid_height, rule ? "rule" : "layer",
				     rule ? place->rule : place->layer, 0);
	return found  ? ST_OK
	       : rule ? err_set(err, ST_NOTFOUND, "the rule %s has not been broken", place->rule)
		      : err_set(err, ST_NOTFOUND, "no rule has been broken in %s", place->layer);
}

/* The same on the contract's views. */
static void view_health_query(const void *state, const struct view_context *context,
			      struct str *out)
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

const struct view_screen_ops view_health_ops = {
	.name = "health",
	.title = "Health",
	.brief = "Hlth",
	.key = 'H',
	.where = VIEW_ON_HEALTH,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_health_open,
	.close = view_health_close,
	.load = view__health_load,
	.draw = view__health_draw,
	.request = view_health_request,
	.search = view_health_search,
	.filter = view_health_filter,
	.status = view_health_status,
	.height = view_health_height,
	.table = view_health_table,
	.place = view_health_place,
	.offers = view_health_offers,
	.go = view_health_go,
	.query = view_health_query,
	.click = view_health_click,
};
