/*
 * The screen Insights: what the run is worth changing for, as a list, and what the selected one
 * says.
 *
 * Threading: as view_screen.h says. Ownership: the state owns the insights, the grid and the lines.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/insights/view_insights_internal.h"

/* ---- loading --------------------------------------------------------------------------------- */

/* What is told is of the selected one, so a move of the cursor comes here, too. */
static enum status view_insights_load(void *state, struct view_context *context, bool news,
				      struct err *err)
{
	struct view_insights *screen = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	enum status status = news ? view__insights_find(screen, context, err) : ST_OK;

	if (status == ST_OK && (news || screen->chosen))
		status = view__insights_list(screen, context, err);
	if (status != ST_OK)
		return status;
	screen->areas = view_insights_areas(body, (int)screen->grid.count + 1,
					    screen->grid.table.row_count > 0 ? screen->show
									     : VIEW_INSIGHTS_TOLD);
	if (context->whole)
		screen->areas =
			view_insights_areas(body, (int)screen->grid.count + 1, VIEW_INSIGHTS_BOTH);
	view_grid_layout(&screen->grid, screen->areas.list.width, screen->areas.list.height);
	view__insights_select(screen);
	return view__insights_tell(screen, screen->areas.told.width, screen->areas.told.height,
				   context->whole, err);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/*
 * "advice" as "Advice", or as "A" where there is no room: the letter carries what the colour does.
 */
static void view_draw_severities(const struct view_insights *screen, bool whole,
				 struct view_pane *pane)
{
	const struct view_grid *grid = &screen->grid;

	for (int p = 0; p < grid->place_count; p++) {
		const struct view_grid_place *place = &grid->places[p];

		if (strcmp(grid->table.columns[place->column].name, "severity") != 0)
			continue;
		for (int y = 1; y < pane->rect.height && grid->scroll + y - 1 < grid->count; y++) {
			const int64_t row = grid->order[grid->scroll + y - 1];
			const struct report_cell *cell =
				&grid->table.cells[row * grid->table.column_count + place->column];
			const bool cursor = !whole && grid->scroll + y - 1 == grid->at;
			const enum view_style style =
				cursor ? VIEW_CURSOR
				       : grid->style(&grid->table, row, place->column);

			if (cell->type == PROF_TEXT)
				view_put(pane, place->x, y, style,
					 (uint32_t)toupper((unsigned char)cell->text[0]));
		}
	}
}

static void view_draw_rule(const struct view_insights *screen, struct view_pane *pane)
{
	const struct view_rect rule = screen->areas.rule;

	for (int y = 0; screen->areas.beside && y < rule.height; y++)
		view_glyphs(pane, rule.x, rule.y + y, VIEW_DIM, VIEW_GLYPH_VERTICAL, 1);
	if (!screen->areas.beside && rule.height > 0)
		view_glyphs(pane, rule.x, rule.y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, rule.width);
}

static void view_insights_draw(const void *state, const struct view_context *context,
			       struct view_pane *pane)
{
	const struct view_insights *screen = state;
	struct view_pane list = view_pane_sub(pane, screen->areas.list);
	struct view_pane told = view_pane_sub(pane, screen->areas.told);

	if (list.rect.height > 0) {
		view_grid_draw(&screen->grid, &list, !context->whole);
		view_draw_severities(screen, context->whole, &list);
	}
	view_draw_rule(screen, pane);
	if (told.rect.height > 0)
		view_blocks_draw(&screen->told, &told);
}

/* Severities by colour, and what only one report has. */
static enum view_style view_insight_style(const struct report_table *table, int64_t row, int column)
{
	static const struct {
		const char *text;
		enum view_style style;
	} styles[] = {{"problem", VIEW_BAD},
		      {"advice", VIEW_WARN},
		      {"note", VIEW_DIM},
		      {"source", VIEW_GOOD},
		      {"target", VIEW_WARN}};
	const struct report_cell *cell = &table->cells[row * table->column_count + column];
	const char *name = table->columns[column].name;

	if (cell->type == PROF_TEXT && (strcmp(name, "severity") == 0 || strcmp(name, "only") == 0))
		for (size_t i = 0; i < ARRAY_LEN(styles); i++)
			if (strcmp(styles[i].text, cell->text) == 0)
				return styles[i].style;
	return VIEW_NORMAL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void view_say_choice(struct view_context *context, const struct view_insights *screen)
{
	static const char *const what[] = {"problems", "advice", "notes",
					   "problems, advice, notes"};
	char about[48] = "";

	if (screen->ipu != IPS_NULL)
		snprintf(about, sizeof(about), " about IPU %lld", (long long)screen->ipu);
	snprintf(context->message, sizeof(context->message), "%s%s", what[screen->severity], about);
}

/* Choices that let nothing through are stepped over. */
static enum view_answer view_choose_severity(struct view_insights *screen,
					     struct view_context *context)
{
	do
		screen->severity = (screen->severity + 1) % (VIEW_ALL_SEVERITIES + 1);
	while (screen->severity != VIEW_ALL_SEVERITIES && !view__insights_any(screen));
	screen->chosen = true;
	view_say_choice(context, screen);
	return VIEW_LOAD;
}

static enum view_answer view_choose_ipu(struct view_insights *screen, struct view_context *context)
{
	do
		screen->ipu = view__insights_next_ipu(screen, screen->ipu);
	while (screen->ipu != IPS_NULL && !view__insights_any(screen));
	screen->chosen = true;
	view_say_choice(context, screen);
	return VIEW_LOAD;
}

static enum view_answer view_show(struct view_insights *screen, int by)
{
	screen->show = (enum view_insights_show)(((int)screen->show + by + VIEW_INSIGHTS_SHOWS) %
						 VIEW_INSIGHTS_SHOWS);
	return VIEW_LOAD;
}

/* What is told alone: Up and Down scroll it, Left and Right go from one insight to the next. */
static enum view_answer view_told_request(struct view_insights *screen, enum view_request request)
{
	const int list = screen->areas.told.height;

	if (request == VIEW_LEFT_REQUEST || request == VIEW_RIGHT_REQUEST) {
		screen->told.scroll = 0;
		view_grid_request(&screen->grid, list,
				  request == VIEW_LEFT_REQUEST ? VIEW_UP_REQUEST
							       : VIEW_DOWN_REQUEST);
		return VIEW_LOAD;
	}
	return view_blocks_request(&screen->told, screen->areas.told.height, request);
}

static enum view_answer view_list_request(struct view_insights *screen, enum view_request request)
{
	const int64_t before = screen->grid.at;
	const enum view_answer answer =
		view_grid_request(&screen->grid, screen->areas.list.height, request);

	if (screen->grid.at != before)
		screen->told.scroll = 0;
	return answer == VIEW_UNHANDLED ? VIEW_UNHANDLED : VIEW_LOAD;
}

/* Choices of the list, where it is not shown. */
static bool view_is_unseen(const struct view_insights *screen, enum view_request request)
{
	static const enum view_request of_list[] = {VIEW_BREAKDOWN_REQUEST, VIEW_SELECT_REQUEST,
						    VIEW_COLUMNS_REQUEST,   VIEW_SORT_NEXT_REQUEST,
						    VIEW_SORT_BACK_REQUEST, VIEW_REVERSE_REQUEST};

	if (screen->show != VIEW_INSIGHTS_TOLD || screen->grid.table.row_count == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(of_list); i++)
		if (request == of_list[i])
			return true;
	return false;
}

static enum view_answer view_insights_request(void *state, struct view_context *context,
					      enum view_request request)
{
	struct view_insights *screen = state;
	enum view_answer answer = VIEW_UNHANDLED;

	if (view_is_unseen(screen, request)) {
		view_message(context, "that is for the list: v shows it", NULL);
		return VIEW_DRAW;
	}
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return VIEW_JOIN;
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		return view_show(screen, request == VIEW_VIEW_REQUEST ? 1 : -1);
	case VIEW_BREAKDOWN_REQUEST:
		return view_choose_severity(screen, context);
	case VIEW_SELECT_REQUEST:
		return view_choose_ipu(screen, context);
	default:
		if (screen->areas.list.height == 0)
			answer = view_told_request(screen, request);
		return answer == VIEW_UNHANDLED ? view_list_request(screen, request) : answer;
	}
}

static bool view_insights_search(void *state, struct view_context *context, const char *text,
				 bool forward)
{
	struct view_insights *screen = state;

	(void)context;
	screen->told.scroll = 0;
	return view_grid_search(&screen->grid, screen->areas.list.height, text, forward);
}

static void view_insights_filter(void *state, const char *text)
{
	struct view_insights *screen = state;

	screen->told.scroll = 0;
	view_grid_filter(&screen->grid, text);
}

static enum view_answer view_insights_click(void *state, struct view_context *context, int x, int y)
{
	struct view_insights *screen = state;

	(void)context;
	if (y >= screen->areas.list.height || x >= screen->areas.list.width)
		return VIEW_UNHANDLED;
	screen->told.scroll = 0;
	return view_grid_click(&screen->grid, screen->areas.list.height, x, y) == VIEW_UNHANDLED
		       ? VIEW_UNHANDLED
		       : VIEW_LOAD;
}

/* ---- status and rows ------------------------------------------------------------------------- */

static void view_insights_status(const void *state, const struct view_context *context, char *out,
				 size_t size)
{
	const struct view_insights *screen = state;
	size_t length;
	int counts[2][REPORT_INSIGHT_SEVERITIES] = {{0}};

	(void)context;
	view_grid_status(&screen->grid, out, size);
	if (screen->grid.trouble[0])
		return;
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++)
			counts[r][screen->found[r].items[i].severity]++;
	length = strlen(out);
	snprintf(out + length, size - length, "; %s%d problem%s, %d advice, %d note%s",
		 screen->compared ? "Source " : "", counts[0][REPORT_INSIGHT_PROBLEM],
		 counts[0][REPORT_INSIGHT_PROBLEM] == 1 ? "" : "s",
		 counts[0][REPORT_INSIGHT_ADVICE], counts[0][REPORT_INSIGHT_NOTE],
		 counts[0][REPORT_INSIGHT_NOTE] == 1 ? "" : "s");
	length = strlen(out);
	if (screen->compared)
		snprintf(out + length, size - length, "; Target %d, %d, %d",
			 counts[1][REPORT_INSIGHT_PROBLEM], counts[1][REPORT_INSIGHT_ADVICE],
			 counts[1][REPORT_INSIGHT_NOTE]);
}

static int view_insights_height(const void *state, const struct view_context *context)
{
	const struct view_insights *screen = state;
	const int rows = (int)screen->grid.count + 1;

	(void)context;
	/* Above one another the list has at most half of it. */
	return screen->areas.beside || rows < screen->told.height ? rows + 1 + screen->told.height
								  : 2 * rows + 1;
}

static enum status view_insights_table(void *state, struct view_context *context,
				       struct report_table *out, struct err *err)
{
	const struct view_insights *screen = state;
	enum status status = view_grid_table(&screen->grid, out, err);

	(void)context;
	if (status == ST_OK)
		out->name = "insights";
	return status;
}

/* ---- from screen to screen ------------------------------------------------------------------- */

static const struct report_insight *view_selected(const struct view_insights *screen)
{
	return screen->selected[0] ? screen->selected[0] : screen->selected[1];
}

static bool view_insights_place(const void *state, const struct view_context *context,
				struct view_place *out)
{
	const struct report_insight *insight = view_selected(state);

	(void)context;
	view_place_clear(out);
	if (!insight)
		return false;
	view__insight_place(insight, out);
	return true;
}

/* What an insight can be about. One that comes from here leads elsewhere. */
static bool view_insights_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->view[0])
		return false;
	if (place->rule[0])
		snprintf(out, size, "an insight on the rule %s", place->rule);
	else if (place->operation[0])
		snprintf(out, size, "an insight on %s, if there is one", place->operation);
	else if (place->stage != IPS_NULL)
		snprintf(out, size, "an insight on stage %lld, if there is one",
			 (long long)place->stage);
	else if (place->ipu != IPS_NULL)
		snprintf(out, size, "an insight on IPU %lld, if there is one",
			 (long long)place->ipu);
	else
		return false;
	return true;
}

/* How much of @insight is @place: 0: nothing. */
static int view_insight_match(const struct report_insight *insight, const struct view_place *place)
{
	struct view_place its;

	view__insight_place(insight, &its);
	if (place->view[0])
		return strcmp(its.view, place->view) == 0 && strcmp(its.keys, place->keys) == 0 &&
				       strcmp(its.sql, place->sql) == 0
			       ? 16
			       : 0;
	return (place->rule[0] && strcmp(its.rule, place->rule) == 0) * 8 +
	       (place->operation[0] && strcmp(its.operation, place->operation) == 0) * 4 +
	       (place->stage != IPS_NULL && its.stage == place->stage) * 2 +
	       (place->ipu != IPS_NULL && its.ipu == place->ipu);
}

static enum status view_insights_go(void *state, struct view_context *context,
				    const struct view_place *place, struct err *err)
{
	struct view_insights *screen = state;
	const char *const positions[2] = {"position", "position_target"};
	int best = 0, best_report = 0, best_row = 0;

	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++) {
			const int match = view_insight_match(&screen->found[r].items[i], place);

			if (match > best) {
				best = match;
				best_report = r;
				best_row = i;
			}
		}
	if (best == 0)
		return err_set(err, ST_NOTFOUND, "no insight is about this");
	if (screen->severity != VIEW_ALL_SEVERITIES || screen->ipu != IPS_NULL) {
		enum status status;

		screen->severity = VIEW_ALL_SEVERITIES;
		screen->ipu = IPS_NULL;
		status = view__insights_list(screen, context, err);
		if (status != ST_OK)
			return status;
	}
	screen->told.scroll = 0;
	view_grid_go(&screen->grid, screen->areas.list.height, positions[best_report], NULL,
		     best_row);
	return ST_OK;
}

static void view_insights_query(const void *state, const struct view_context *context,
				struct str *out)
{
	const struct report_insight *insight = view_selected(state);

	(void)context;
	if (insight && insight->sql)
		str_addf(out, "%s;\n", insight->sql);
}

/* ---- the row --------------------------------------------------------------------------------- */

static enum status view_insights_open(void **state, struct view_context *context, struct err *err)
{
	struct view_insights *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = NULL;
	if (!screen)
		return err_nomem(err);
	screen->severity = VIEW_ALL_SEVERITIES;
	screen->ipu = IPS_NULL;
	screen->grid.style = view_insight_style;
	*state = screen;
	return ST_OK;
}

static void view_insights_close(void *state)
{
	struct view_insights *screen = state;

	if (!screen)
		return;
	for (int i = 0; i < 2; i++)
		report_insights_free(&screen->found[i]);
	view_grid_fini(&screen->grid);
	view_blocks_fini(&screen->told);
	mem_free(screen);
}

const struct view_screen_ops view_insights_ops = {
	.name = "insights",
	.title = "Insights",
	.brief = "Ins",
	.key = '2',
	.where = VIEW_ON_INSIGHTS,
	.least_ns = 2000 * UINT64_C(1000000),
	.open = view_insights_open,
	.close = view_insights_close,
	.load = view_insights_load,
	.draw = view_insights_draw,
	.request = view_insights_request,
	.search = view_insights_search,
	.filter = view_insights_filter,
	.status = view_insights_status,
	.height = view_insights_height,
	.table = view_insights_table,
	.place = view_insights_place,
	.offers = view_insights_offers,
	.go = view_insights_go,
	.query = view_insights_query,
	.click = view_insights_click,
};
