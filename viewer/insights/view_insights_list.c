/*
 * The list of insights: found in one report or two, chosen by severity and IPU, and joined.
 *
 * Threading: the session's worker; places are read on the terminal's thread. Ownership: the found
 * insights' arenas own all texts but those of the grid, which copies.
 */
#include "viewer/insights/view_insights_internal.h"

#include <string.h>

#include "common/mem.h"

static const struct view_grid_column insights_insight_columns[] = {
	{.name = "severity", .title = "kind", .width = 7, .least = 1, .importance = 90},
	{.name = "id", .title = "insight", .least = 10, .importance = 100},
	{.name = "subject_kind", .title = "about", .least = 5, .importance = 30},
	{.name = "subject", .title = "which", .least = 5, .importance = 40},
	{.name = "share", .title = "at stake", .importance = 80, .bar = true},
	{.name = "sentence", .title = "what", .least = 20, .importance = 60},
	{.name = "remedy", .importance = 0},
	{.name = "measured_step_ns", .importance = 0},
	{.name = "predicted_step_ns", .importance = 0},
	{.name = "measured_idle_fraction", .importance = 0},
	{.name = "predicted_idle_fraction", .importance = 0},
	{.name = "measured_bytes", .importance = 0},
	{.name = "predicted_bytes", .importance = 0},
	{.name = "numbers", .importance = 0},
	{.name = "view", .importance = 0},
	{.name = "keys", .importance = 0},
	{.name = "sql", .importance = 0},
	{.name = "position", .importance = 0},
};

#define INSIGHT_KEYS "id,subject_kind,subject"

enum status view__insights_find(struct view_insights *screen, struct view_context *context,
				struct err *err)
{
	struct prof_db *const dbs[2] = {context->source->db,
					context->target ? context->target->db : NULL};
	struct report_insights found;
	enum status status;

	screen->compared = context->target != NULL;
	for (int i = 0; i < 2; i++) {
		if (!dbs[i])
			continue;
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "stopped");
		status = report_insights_get(&found, dbs[i], err);
		if (status != ST_OK)
			return status;
		screen->selected[i] = NULL;
		report_insights_free(&screen->found[i]);
		screen->found[i] = found;
	}
	return ST_OK;
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

int64_t view__insights_next_ipu(const struct view_insights *screen, int64_t ipu)
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

bool view__insights_part(const struct view_insights *screen, bool by_ipu)
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

bool view__insights_any(const struct view_insights *screen)
{
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < screen->found[r].count; i++)
			if (insights_insight_passes(screen, &screen->found[r].items[i]))
				return true;
	return false;
}

/* The rows of one report. */
static enum status insights_rows(const struct view_insights *screen, int report,
				 struct report_table *out, struct err *err)
{
	const struct report_insights *found = &screen->found[report];
	struct report_insights some = {0};
	enum status status;

	memset(out, 0, sizeof(*out));
	some.items = mem_calloc((size_t)found->count + 1, sizeof(*some.items));
	if (!some.items)
		return err_nomem(err);
	for (int i = 0; i < found->count; i++)
		if (insights_insight_passes(screen, &found->items[i]))
			some.items[some.count++] = found->items[i];
	status = report_insights_table(out, &some, err);
	mem_free(some.items);
	return status;
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
static enum status insights_list_order(struct report_table *rows, struct err *err)
{
	const size_t width = (size_t)rows->column_count;
	struct report_cell *cells =
		arena_alloc(&rows->arena, (size_t)rows->row_count * width + 1, sizeof(*cells));
	struct report_cell *to = cells;

	if (!cells)
		return err_nomem(err);
	for (int s = 0; s <= REPORT_INSIGHT_SEVERITIES; s++)
		for (int64_t r = 0; r < rows->row_count; r++)
			if (insights_row_severity(rows, r) == s) {
				memcpy(to, &rows->cells[(size_t)r * width], width * sizeof(*to));
				to += width;
			}
	rows->cells = cells;
	return ST_OK;
}

enum status view__insights_list(struct view_insights *screen, struct view_context *context,
				struct err *err)
{
	struct report_table rows[2] = {{0}}, joined = {0};
	enum status status = insights_rows(screen, 0, &rows[0], err);

	if (status == ST_OK && screen->compared) {
		status = insights_rows(screen, 1, &rows[1], err);
		if (status == ST_OK)
			status = view_grid_compare(&joined, context, &rows[0], &rows[1],
						   INSIGHT_KEYS, err);
		report_table_free(&rows[0]);
		report_table_free(&rows[1]);
		rows[0] = joined;
		if (status == ST_OK)
			status = insights_list_order(&rows[0], err);
	}
	if (status != ST_OK) {
		report_table_free(&rows[0]);
		return status;
	}
	screen->grid.differ = context->differ;
	screen->chosen = false;
	return view_grid_set(&screen->grid, context, &rows[0], insights_insight_columns,
			     (int)ARRAY_LEN(insights_insight_columns), INSIGHT_KEYS, err);
}

/* ---- the one under the cursor ---------------------------------------------------------------- */

static bool insights_same_text(const struct report_cell *cell, const char *text)
{
	if (!cell || cell->type != PROF_TEXT)
		return !text;
	return text && strcmp(cell->text, text) == 0;
}

void view__insights_select(struct view_insights *screen)
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
