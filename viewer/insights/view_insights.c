/*
 * The screen Insights: what to change in the run, as a list, and the text of the selected one.
 *
 * Threading: the session's; loads run on its worker, places are read on the terminal's thread.
 * Ownership: texts are in the arenas of the found insights; the grid has copies, and the blocks own
 * what is composed for them.
 */
#include "viewer/insights/view_insights_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_render.h"

/* ---- the list -------------------------------------------------------------------------------- */

static const struct view_grid_column insights_insight_columns[] = {
	{.name = "severity", .title = "kind", .width = 7, .least = 1, .importance = 90},
	{.name = "id", .title = "insight", .least = 10, .importance = 100},
	{.name = "subject_kind", .title = "about", .least = 5, .importance = 30},
	{.name = "subject", .title = "which", .least = 5, .importance = 40},
	{.name = "share", .title = "at stake", .importance = 80, .bar = true},
	{.name = "sentence", .title = "what", .least = 20, .importance = 60},
	{.importance = 0}, /* all others */
};

#define INSIGHT_KEYS "id,subject_kind,subject"

static void insights_find(struct view_insights *screen, struct view_context *context,
			  struct err *err)
{
	struct prof_db *const dbs[2] = {context->source->db,
					context->target ? context->target->db : NULL};
	struct report_insights found;

	screen->compared = context->target != NULL;
	for (int i = 0; i < 2; i++) {
		if (!dbs[i])
			continue;
		if (view_cancelled(context))
			err_set(err, ST_INTERRUPTED, "stopped");
		if (err_stuck(err) || report_insights_get(&found, dbs[i], err) != ST_OK)
			return;
		screen->selected[i] = NULL;
		report_insights_free(&screen->found[i]);
		screen->found[i] = found;
	}
}

void view__insight_place(const struct report_insight *insight, struct view_place *out)
{
	char subject[2 * VIEW_PLACE_NAME];

	view_place_clear(out);
	if (insight->sql && strlen(insight->sql) < sizeof(out->sql))
		strcpy(out->sql, insight->sql);
	view_place_keys(out, insight->keys);
	if (insight->subject) {
		snprintf(subject, sizeof(subject), "%s=%s", insight->subject_kind,
			 insight->subject);
		view_place_keys(out, subject);
	}
	/* The keys of the view metrics have a metric's name as `name`. */
	if (insight->view && strcmp(insight->view, "metrics") == 0 && insight->keys &&
	    strstr(insight->keys, "name="))
		view_place_text(out->metric, strstr(insight->keys, "name=") + strlen("name="));
	view_place_text(out->view, insight->view);
	view_place_text(out->keys, insight->keys);
}

/* The IPU of the insight; IPS_NULL: none. */
static int64_t insight_ipu(const struct report_insight *insight)
{
	struct view_place place;

	view__insight_place(insight, &place);
	return place.ipu;
}

/* The IPU after @ipu that an insight is about; IPS_NULL after the last. */
static int64_t insights_next_ipu(const struct view_insights *screen, int64_t ipu)
{
	int64_t next = IPS_NULL;

	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++) {
			const int64_t of = insight_ipu(&screen->found[r].items[i]);

			if (of != IPS_NULL && of > ipu && (next == IPS_NULL || of < next))
				next = of;
		}
	return next;
}

static bool insights_insight_passes(const struct view_insights *screen,
				    const struct report_insight *insight)
{
	if (screen->severity != VIEW_ALL_SEVERITIES && screen->severity != insight->severity)
		return false;
	return screen->ipu == IPS_NULL || screen->ipu == insight_ipu(insight);
}

/* Do those that match the other choice differ in severity, or @by_ipu in their IPU? */
static bool insights_part(const struct view_insights *screen, bool by_ipu)
{
	int64_t first = 0;
	bool known = false;

	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++) {
			const struct report_insight *insight = &screen->found[r].items[i];
			const int64_t ipu = insight_ipu(insight), severity = insight->severity;
			const int64_t value = by_ipu ? ipu : severity;

			if (by_ipu ? screen->severity != VIEW_ALL_SEVERITIES &&
					     (int64_t)screen->severity != severity
				   : screen->ipu != IPS_NULL && screen->ipu != ipu)
				continue;
			if (known && value != first)
				return true;
			first = value;
			known = true;
		}
	return false;
}

/* Does any insight match the choices? */
static bool insights_any(const struct view_insights *screen)
{
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++)
			if (insights_insight_passes(screen, &screen->found[r].items[i]))
				return true;
	return false;
}

/* The rows of one report. */
static void insights_rows(const struct view_insights *screen, int report, struct report_table *out,
			  struct err *err)
{
	const struct report_insights *found = &screen->found[report];
	struct report_insights some = {0};

	some.items = mem_calloc((size_t)found->count + 1, sizeof(*some.items));
	if (!some.items) {
		err_nomem(err);
		return;
	}
	for (int i = 0; i < found->count; i++)
		if (insights_insight_passes(screen, &found->items[i]))
			some.items[some.count++] = found->items[i];
	report_insights_table(out, &some, err);
	mem_free(some.items);
}

/* REPORT_INSIGHT_SEVERITIES: unknown. */
static int insights_row_severity(const struct report_table *rows, int64_t row)
{
	static const char *const columns[] = {"severity", "severity_target"};

	for (size_t n = 0; n < ARRAY_LEN(columns); n++)
		for (int c = 0; c < rows->column_count; c++) {
			const struct report_cell *cell = &rows->cells[row * rows->column_count + c];

			if (cell->type != PROF_TEXT ||
			    strcmp(rows->columns[c].name, columns[n]) != 0)
				continue;
			for (int s = 0; s < REPORT_INSIGHT_SEVERITIES; s++)
				if (strcmp(cell->text, report_insight_severity(
							       (enum report_insight_severity)s)) ==
				    0)
					return s;
		}
	return REPORT_INSIGHT_SEVERITIES;
}

/* Sort by severity: the comparison puts rows of the Target alone last. */
static void insights_list_order(struct report_table *rows, struct err *err)
{
	const size_t width = (size_t)rows->column_count;
	struct report_cell *cells =
		view_alloc(&rows->arena, (size_t)rows->row_count * width, sizeof(*cells), err);
	struct report_cell *to = cells;

	if (!cells)
		return;
	for (int s = 0; s <= REPORT_INSIGHT_SEVERITIES; s++)
		for (int64_t r = 0; r < rows->row_count; r++)
			if (insights_row_severity(rows, r) == s) {
				memcpy(to, &rows->cells[(size_t)r * width], width * sizeof(*to));
				to += width;
			}
	rows->cells = cells;
}

/* List the insights that match the choices. */
static void insights_list(struct view_insights *screen, struct view_context *context,
			  struct err *err)
{
	struct report_table rows[2] = {{0}}, joined = {0};

	insights_rows(screen, 0, &rows[0], err);
	if (!err_stuck(err) && screen->compared) {
		insights_rows(screen, 1, &rows[1], err);
		if (!err_stuck(err))
			view_grid_compare(&joined, context, &rows[0], &rows[1], INSIGHT_KEYS, err);
		report_table_free(&rows[0]);
		report_table_free(&rows[1]);
		rows[0] = joined;
		insights_list_order(&rows[0], err);
	}
	if (err_stuck(err)) {
		report_table_free(&rows[0]);
		return;
	}
	screen->grid.differ = context->differ;
	screen->chosen = false;
	view_grid_set(&screen->grid, context, &rows[0], insights_insight_columns,
		      (int)ARRAY_LEN(insights_insight_columns), INSIGHT_KEYS, err);
}

/* ---- the one under the cursor ---------------------------------------------------------------- */

static bool insights_same_text(const struct report_cell *cell, const char *text)
{
	if (!cell || cell->type != PROF_TEXT)
		return !text;
	return text && strcmp(cell->text, text) == 0;
}

/* Select the insight under the cursor, in both reports. */
static void insights_select(struct view_insights *screen)
{
	const struct report_cell *id = view_grid_cell(&screen->grid, "id");
	const struct report_cell *kind = view_grid_cell(&screen->grid, "subject_kind");
	const struct report_cell *subject = view_grid_cell(&screen->grid, "subject");

	for (int r = 0; r < 2; r++) {
		screen->selected[r] = NULL;
		for (int i = 0; i < screen->found[r].count && id && !screen->selected[r]; i++) {
			const struct report_insight *insight = &screen->found[r].items[i];

			if (insights_same_text(id, insight->id) &&
			    insights_same_text(kind, insight->subject_kind) &&
			    insights_same_text(subject, insight->subject))
				screen->selected[r] = insight;
		}
	}
}

/* ---- areas ----------------------------------------------------------------------------------- */

#define BESIDE_FROM 120 /* columns of body */
#define TOLD_LEAST  52  /* columns of what is told beside the list */
#define TOLD_MOST   92
#define ROWS_LEAST  5 /* of body, for both */

struct view_insights_layout view_insights_areas(struct view_rect body, int rows,
						enum view_insights_show show)
{
	struct view_insights_layout out = {.list = body};
	struct view_sides sides;
	struct view_split split;
	int columns, upper;

	if (show == VIEW_INSIGHTS_LIST)
		return out;
	if (show == VIEW_INSIGHTS_TOLD) {
		out.told = body;
		out.list = (struct view_rect){body.x, body.y, 0, 0};
		return out;
	}
	columns = body.width * 2 / 5;
	columns = min(max(columns, TOLD_LEAST), TOLD_MOST);
	sides = view_split_sides(body, columns, BESIDE_FROM - TOLD_LEAST - 1);
	if (sides.right.width > 0) {
		out.list = sides.left;
		out.told = sides.right;
		out.rule =
			(struct view_rect){sides.left.x + sides.left.width, body.y, 1, body.height};
		out.beside = true;
		return out;
	}
	upper = min(rows, (body.height - 1) / 2);
	split = view_split_rows(body, upper, body.height >= ROWS_LEAST ? 2 : body.height);
	out.list = split.upper;
	out.rule = split.heading;
	out.told = split.lower;
	return out;
}

/* ---- the text of an insight ------------------------------------------------------------------ */

#define LINE_MOST  100 /* longer ones are hard to read */
#define NAME_WIDTH 14

static const enum view_style insights_severity_styles[] = {[REPORT_INSIGHT_PROBLEM] = VIEW_BAD,
							   [REPORT_INSIGHT_ADVICE] = VIEW_WARN,
							   [REPORT_INSIGHT_NOTE] = VIEW_NORMAL};

/* Add a pair of bars, recorded and predicted, scaled to the greater one. */
static void insights_describe_pair(struct view_blocks *blocks, const char *name,
				   const double pair[2], enum report_quantity quantity)
{
	static const char *const when[2] = {"recorded", "predicted"};
	const double scale = fmax(pair[0], pair[1]);
	char text[FMT_SIZE], label[64];

	if (!isfinite(pair[0]) || !isfinite(pair[1]))
		return;
	for (int i = 0; i < 2; i++) {
		const struct report_cell cell = {.type = PROF_REAL, .real = pair[i]};
		char *copy;

		snprintf(label, sizeof(label), "%s %s", name, when[i]);
		copy = arena_strdup(&blocks->arena, label);
		blocks->failed |= !copy;
		view_blocks_bar(blocks, copy, i ? VIEW_GOOD : VIEW_BUBBLE,
				scale > 0 ? pair[i] / scale : 0, (double)NAN, "%s",
				report_cell_text(&cell, quantity, text, sizeof(text)));
	}
}

static void insights_describe_numbers(struct view_blocks *blocks,
				      const struct report_insight *insight)
{
	char text[FMT_SIZE];
	int width = 0;

	if (insight->number_count == 0)
		return;
	for (int i = 0; i < insight->number_count; i++) {
		const int name = utf8_columns(insight->numbers[i].name) + 2;

		width = max(name, width);
	}
	view_blocks_begin(blocks, "Numbers", width);
	for (int i = 0; i < insight->number_count; i++) {
		const struct report_insight_number *number = &insight->numbers[i];
		const struct report_cell cell = {.type = PROF_REAL, .real = number->value};

		if (number->quantity == REPORT_FRACTION)
			view_blocks_bar(blocks, number->name, VIEW_CURVE, number->value,
					(double)NAN, "%s", fmt_percent(text, number->value));
		else
			view_blocks_fact(
				blocks, number->name, VIEW_BOLD, "%s",
				report_cell_text(&cell, number->quantity, text, sizeof(text)));
	}
}

/* Fold the query to @width: its own line breaks are for a wider page. */
static void insights_describe_query(struct view_blocks *blocks, const char *sql, int width)
{
	struct str text = {0};

	for (bool blank = false; *sql; sql++) {
		const bool space = *sql == ' ' || *sql == '\n' || *sql == '\t';

		if (!space)
			str_addf(&text, "%s%c", blank ? " " : "", *sql);
		blank = space;
	}
	blocks->failed |= text.failed;
	view_blocks_fold(blocks, "query (y)", VIEW_DIM, width - NAME_WIDTH, str_peek(&text));
	str_free(&text);
}

/* "idle_ipu (ipu 0)" */
static const char *insights_insight_head(struct view_blocks *blocks,
					 const struct report_insight *insight)
{
	char *head = insight->subject ? arena_printf(&blocks->arena, "%s (%s %s)", insight->id,
						     insight->subject_kind, insight->subject)
				      : arena_strdup(&blocks->arena, insight->id);

	blocks->failed |= !head;
	return head ? head : "";
}

/* @report: "Source: ", "Target: " or "". */
static void insights_describe_one(struct view_blocks *blocks, const struct report_insight *insight,
				  const char *report, int width)
{
	const char *title = arena_printf(&blocks->arena, "%s%s %s", report,
					 report_insight_severity(insight->severity),
					 insights_insight_head(blocks, insight));
	const struct report_insight_gain *gain = &insight->gain;

	blocks->failed |= !title;
	view_blocks_begin(blocks, title ? title : "", NAME_WIDTH);
	view_blocks_fold(blocks, NULL, insights_severity_styles[insight->severity], width,
			 insight->sentence);
	if (insight->remedy) {
		view_blocks_begin(blocks, "What to do", NAME_WIDTH);
		view_blocks_fold(blocks, NULL, VIEW_NORMAL, width, insight->remedy);
	}
	if (isfinite(gain->step_ns[1]) || isfinite(gain->idle_fraction[1]) ||
	    isfinite(gain->bytes[1])) {
		view_blocks_begin(blocks, "What it would change (simulated)",
				  (int)sizeof("always live predicted "));
		insights_describe_pair(blocks, "step", gain->step_ns, REPORT_NS);
		insights_describe_pair(blocks, "bubble", gain->idle_fraction, REPORT_FRACTION);
		insights_describe_pair(blocks, "always live", gain->bytes, REPORT_BYTES);
	}
	insights_describe_numbers(blocks, insight);
}

static void insights_describe_selected(struct view_insights *screen, int width)
{
	static const char *const reports[2] = {"Source: ", "Target: "};
	static const char *const lacks[2] = {"The Source does not have it: it is new.",
					     "The Target does not have it: it is gone."};
	const struct report_insight *const *selected = screen->selected;
	const struct report_insight *insight;
	char keys[2 * VIEW_PLACE_NAME];

	for (int r = 0; r < 2; r++)
		if (selected[r])
			insights_describe_one(&screen->told, selected[r],
					      screen->compared ? reports[r] : "", width);
		else if (screen->compared) {
			view_blocks_begin(&screen->told, r ? "Target" : "Source", NAME_WIDTH);
			view_blocks_text(&screen->told, VIEW_GOOD, "%s", lacks[r]);
		}

	insight = selected[0] ? selected[0] : selected[1];
	if (insight->view || insight->sql)
		view_blocks_begin(&screen->told, "Where its rows are: Enter goes there",
				  NAME_WIDTH);
	if (insight->view)
		view_blocks_fact(&screen->told, "view", VIEW_NORMAL, "%s", insight->view);
	str_shorten(keys, sizeof(keys), insight->keys ? insight->keys : "");
	if (keys[0])
		view_blocks_fold(&screen->told, "rows", VIEW_NORMAL, width - NAME_WIDTH, keys);
	if (insight->sql)
		insights_describe_query(&screen->told, insight->sql, width);
}

/* Every insight, for a file: a block for each severity. */
static void insights_describe_all(struct view_insights *screen, int width)
{
	static const char *const heads[REPORT_INSIGHT_SEVERITIES] = {"Problems", "Advice", "Notes"};
	struct view_blocks *blocks = &screen->told;
	int last = -1;

	for (int i = 0; i < screen->found[0].count; i++) {
		const struct report_insight *insight = &screen->found[0].items[i];

		if ((int)insight->severity != last)
			view_blocks_begin(blocks, heads[insight->severity], NAME_WIDTH);
		else
			view_blocks_text(blocks, VIEW_NORMAL, "%s", "");
		last = (int)insight->severity;
		view_blocks_text(blocks, VIEW_BOLD, "%s", insights_insight_head(blocks, insight));
		view_blocks_fold(blocks, NULL, VIEW_NORMAL, width, insight->sentence);
		if (insight->remedy)
			view_blocks_fold(blocks, "Do:", VIEW_NORMAL, width - NAME_WIDTH,
					 insight->remedy);
	}
}

/* For a report without insights: list the rules that were checked. */
static void insights_describe_looked(struct view_blocks *blocks, int width)
{
	struct str ids = {0};

	for (int i = 0; report_insight_id(i); i++)
		str_addf(&ids, "%s%s", i ? ", " : "", report_insight_id(i));
	blocks->failed |= ids.failed;
	view_blocks_begin(blocks, "Nothing was found to say; looked for", NAME_WIDTH);
	view_blocks_fold(blocks, NULL, VIEW_NORMAL, width, str_peek(&ids));
	str_free(&ids);
}

/* Describe the selected insight (@whole: all of them) in lines of at most @width columns. */
static enum status insights_describe(struct view_insights *screen, int width, int height,
				     bool whole, struct err *err)
{
	static const char *const heads[2] = {"Not looked for, as the recording lacks it",
					     "Not looked for in the Target"};
	const int line = min(width, LINE_MOST) - 4;

	view_blocks_clear(&screen->told);
	screen->told.two_from = 2 * LINE_MOST; /* never: it is fitted to less */
	if (whole && !screen->compared)
		insights_describe_all(screen, line);
	else if (screen->selected[0] || screen->selected[1])
		insights_describe_selected(screen, line);
	if (screen->found[0].count + screen->found[1].count == 0)
		insights_describe_looked(&screen->told, line);
	for (int r = 0; r < 2; r++)
		if (screen->found[r].not_looked) {
			view_blocks_begin(&screen->told, heads[r], NAME_WIDTH);
			view_blocks_fold(&screen->told, NULL, VIEW_DIM, line,
					 screen->found[r].not_looked);
		}
	return view_blocks_fit(&screen->told, min(width, LINE_MOST), height, err);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Every move of the cursor loads as well, since the text is of the selected insight. */
static enum status insights_load(void *state, struct view_context *context, bool news,
				 struct err *err)
{
	struct view_insights *screen = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	struct err own;

	err = err_start(err, &own);
	if (news)
		insights_find(screen, context, err);
	if (!err_stuck(err) && (news || screen->chosen))
		insights_list(screen, context, err);
	if (err_stuck(err))
		return err->status;
	screen->areas = view_insights_areas(body, (int)screen->grid.count + 1,
					    screen->grid.table.row_count > 0 ? screen->show
									     : VIEW_INSIGHTS_TOLD);
	if (context->whole)
		screen->areas =
			view_insights_areas(body, (int)screen->grid.count + 1, VIEW_INSIGHTS_BOTH);
	view_grid_layout(&screen->grid, screen->areas.list);
	insights_select(screen);
	return insights_describe(screen, screen->areas.told.width, screen->areas.told.height,
				 context->whole, err);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Capitalize severities: "Advice", or "A" if space is short; the letter is enough without
 * colour. */
static void insights_draw_severities(const struct view_insights *screen, bool whole,
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

static void insights_draw(const void *state, const struct view_context *context,
			  struct view_pane *pane)
{
	const struct view_insights *screen = state;
	struct view_pane list = view_pane_sub(pane, screen->areas.list);
	struct view_pane told = view_pane_sub(pane, screen->areas.told);
	struct view_rect rule;

	view_grid_draw(&screen->grid, pane, !context->whole);
	insights_draw_severities(screen, context->whole, &list);

	rule = screen->areas.rule;
	for (int y = 0; screen->areas.beside && y < rule.height; y++)
		view_glyphs(pane, rule.x, rule.y + y, VIEW_DIM, VIEW_GLYPH_VERTICAL, 1);
	if (!screen->areas.beside && rule.height > 0)
		view_glyphs(pane, rule.x, rule.y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, rule.width);
	if (told.rect.height > 0)
		view_blocks_draw(&screen->told, &told);
}

/* Colour the severities. */
static enum view_style insights_insight_style(const struct report_table *table, int64_t row,
					      int column)
{
	static const struct {
		const char *text;
		enum view_style style;
	} styles[] = {{"problem", VIEW_BAD}, {"advice", VIEW_WARN}, {"note", VIEW_DIM}};
	const struct report_cell *cell = &table->cells[row * table->column_count + column];
	const char *name = table->columns[column].name;

	if (cell->type == PROF_TEXT && strcmp(name, "severity") == 0)
		for (size_t i = 0; i < ARRAY_LEN(styles); i++)
			if (strcmp(styles[i].text, cell->text) == 0)
				return styles[i].style;
	return VIEW_NORMAL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void insights_say_choice(struct view_context *context, const struct view_insights *screen)
{
	static const char *const what[] = {"problems", "advice", "notes",
					   "problems, advice, notes"};
	char about[48] = "";

	if (screen->ipu != IPS_NULL)
		snprintf(about, sizeof(about), " about IPU %lld", (long long)screen->ipu);
	view_messagef(context, "%s%s", what[screen->severity], about);
}

/* With the text alone, Up and Down scroll it, Left and Right change the insight. */
static enum view_answer insights_told_request(struct view_insights *screen,
					      enum view_request request)
{
	if (request == VIEW_LEFT_REQUEST || request == VIEW_RIGHT_REQUEST) {
		screen->told.scroll = 0;
		view_grid_request(&screen->grid, request == VIEW_LEFT_REQUEST ? VIEW_UP_REQUEST
									      : VIEW_DOWN_REQUEST);
		return VIEW_LOAD;
	}
	return view_blocks_request(&screen->told, screen->areas.told.height, request);
}

/* Is it a choice of the list while the list is hidden? */
static bool insights_is_unseen(const struct view_insights *screen, enum view_request request)
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

static enum view_answer insights_request(void *state, struct view_context *context,
					 enum view_request request)
{
	struct view_insights *screen = state;

	if (insights_is_unseen(screen, request)) {
		view_message(context, "that is for the list: v shows it", NULL);
		return VIEW_DRAW;
	}
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return VIEW_JOIN;
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->show = (enum view_insights_show)view_next_choice(
			(int)screen->show, VIEW_INSIGHTS_SHOWS, request);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		/* Skip choices without any match. */
		do
			screen->severity = (screen->severity + 1) % (VIEW_ALL_SEVERITIES + 1);
		while (screen->severity != VIEW_ALL_SEVERITIES && !insights_any(screen));
		screen->chosen = true;
		insights_say_choice(context, screen);
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		do
			screen->ipu = insights_next_ipu(screen, screen->ipu);
		while (screen->ipu != IPS_NULL && !insights_any(screen));
		screen->chosen = true;
		insights_say_choice(context, screen);
		return VIEW_LOAD;
	default: {
		const int64_t before = screen->grid.at;
		enum view_answer answer = VIEW_UNHANDLED;

		if (screen->areas.list.height == 0)
			answer = insights_told_request(screen, request);
		if (answer != VIEW_UNHANDLED)
			return answer;
		answer = view_grid_request(&screen->grid, request);
		if (screen->grid.at != before)
			screen->told.scroll = 0;
		return answer == VIEW_UNHANDLED ? VIEW_UNHANDLED : VIEW_LOAD;
	}
	}
}

static bool insights_search(void *state, struct view_context *context, const char *text,
			    bool forward)
{
	struct view_insights *screen = state;

	screen->told.scroll = 0;
	return view_grid_search(&screen->grid, context, text, forward);
}

static void insights_filter(void *state, const char *text)
{
	struct view_insights *screen = state;

	screen->told.scroll = 0;
	view_grid_filter(&screen->grid, text);
}

static enum view_answer insights_click(void *state, struct view_context *context, int x, int y)
{
	struct view_insights *screen = state;

	(void)context;
	if (view_grid_click(&screen->grid, x, y) == VIEW_UNHANDLED)
		return VIEW_UNHANDLED;
	screen->told.scroll = 0;
	return VIEW_LOAD;
}

/* ---- status and rows ------------------------------------------------------------------------- */

static void insights_status(const void *state, const struct view_context *context, char *out,
			    size_t size)
{
	const struct view_insights *screen = state;
	int counts[2][REPORT_INSIGHT_SEVERITIES] = {{0}};

	(void)context;
	view_grid_status(&screen->grid, out, size);
	if (screen->grid.trouble[0])
		return;
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++)
			counts[r][screen->found[r].items[i].severity]++;
	view_append(out, size, "; %s%d problem%s, %d advice, %d note%s",
		    screen->compared ? "Source " : "", counts[0][REPORT_INSIGHT_PROBLEM],
		    counts[0][REPORT_INSIGHT_PROBLEM] == 1 ? "" : "s",
		    counts[0][REPORT_INSIGHT_ADVICE], counts[0][REPORT_INSIGHT_NOTE],
		    counts[0][REPORT_INSIGHT_NOTE] == 1 ? "" : "s");
	if (screen->compared)
		view_append(out, size, "; Target %d, %d, %d", counts[1][REPORT_INSIGHT_PROBLEM],
			    counts[1][REPORT_INSIGHT_ADVICE], counts[1][REPORT_INSIGHT_NOTE]);
}

static int insights_height(const void *state, const struct view_context *context)
{
	const struct view_insights *screen = state;
	const int rows = (int)screen->grid.count + 1;

	(void)context;
	/* If stacked, the list has at most half of the height. */
	return screen->areas.beside || rows < screen->told.height ? rows + 1 + screen->told.height
								  : 2 * rows + 1;
}

static enum status insights_table(void *state, struct view_context *context,
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

static const struct report_insight *insights_selected(const struct view_insights *screen)
{
	return screen->selected[0] ? screen->selected[0] : screen->selected[1];
}

static bool insights_place(const void *state, struct view_place *out)
{
	const struct report_insight *insight = insights_selected(state);

	view_place_clear(out);
	if (!insight)
		return false;
	view__insight_place(insight, out);
	return true;
}

/* Insights are about these. A place from this screen is not offered here again. */
static bool insights_offers(const struct view_place *place, char *out, size_t size)
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

/* Score how well @insight matches @place; 0: not at all. */
static int insights_insight_match(const struct report_insight *insight,
				  const struct view_place *place)
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

static enum status insights_go(void *state, struct view_context *context,
			       const struct view_place *place, struct err *err)
{
	struct view_insights *screen = state;
	const char *const positions[2] = {"position", "position_target"};
	int best = 0, best_report = 0, best_row = 0;
	struct err own;

	err = err_start(err, &own);
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++) {
			const int match = insights_insight_match(&screen->found[r].items[i], place);

			if (match > best) {
				best = match;
				best_report = r;
				best_row = i;
			}
		}
	if (best == 0)
		return err_set(err, ST_NOTFOUND, "no insight is about this");
	if (screen->severity != VIEW_ALL_SEVERITIES || screen->ipu != IPS_NULL) {
		screen->severity = VIEW_ALL_SEVERITIES;
		screen->ipu = IPS_NULL;
		insights_list(screen, context, err);
		if (err_stuck(err))
			return err->status;
	}
	screen->told.scroll = 0;
	view_grid_go(&screen->grid, positions[best_report], NULL, best_row);
	return ST_OK;
}

static void insights_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct report_insight *insight = insights_selected(state);

	(void)context;
	if (insight && insight->sql)
		str_addf(out, "%s;\n", insight->sql);
}

/* ---- the row --------------------------------------------------------------------------------- */

static void insights_init(void *state)
{
	struct view_insights *screen = state;

	screen->severity = VIEW_ALL_SEVERITIES;
	screen->ipu = IPS_NULL;
	screen->grid.style = insights_insight_style;
}

static void insights_fini(void *state)
{
	struct view_insights *screen = state;

	for (int i = 0; i < 2; i++)
		report_insights_free(&screen->found[i]);
	view_grid_fini(&screen->grid);
	view_blocks_fini(&screen->told);
}

static const char *insights_word(const void *state, enum view_request request)
{
	const struct view_insights *screen = state;

	if (insights_is_unseen(screen, request) || screen->grid.table.row_count == 0)
		return "";
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return "go there";
	case VIEW_BREAKDOWN_REQUEST:
		return insights_part(screen, false) ? "kind" : "";
	case VIEW_SELECT_REQUEST:
		return insights_part(screen, true) ? NULL : "";
	default:
		return NULL;
	}
}

const struct view_screen_ops view_insights_ops = {
	.name = "insights",
	.title = "Insights",
	.brief = "Ins",
	.key = '2',
	.where = VIEW_ON_INSIGHTS,
	.least_ns = 2000 * UINT64_C(1000000),
	.size = sizeof(struct view_insights),
	.init = insights_init,
	.fini = insights_fini,
	.grid = view_state_grid,
	.load = insights_load,
	.draw = insights_draw,
	.request = insights_request,
	.search = insights_search,
	.filter = insights_filter,
	.word = insights_word,
	.status = insights_status,
	.height = insights_height,
	.table = insights_table,
	.place = insights_place,
	.offers = insights_offers,
	.go = insights_go,
	.query = insights_query,
	.click = insights_click,
};
