/*
 * The screen Tensors: a table of keys with the chosen statistic over the run, and its curve for the
 * selected key.
 *
 * Curves are asked for with as many points as there are cells. Those of the table are read for the
 * visible rows only, unless the order depends on them.
 *
 * Threading: one thread. Ownership: arenas: the list (until the next news), the curve of the
 * selected tensor (until the next load).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "reports/report_tensors.h"
#include "viewer/view_chart.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"
#include "viewer/view_table.h"

#define SPARK_POINTS 40
#define CURVE_POINTS 2000
#define NO_SORT      (-1)

struct view_tensor {
	const struct report_tensor *tensor;
	bool loaded; /* the statistics below are there, for the chosen one */
	struct view_chart_point points[SPARK_POINTS];
	int point_count;
	double first, last, least, greatest;
};

struct view_tensors {
	struct arena list_arena, curve_arena;
	struct report_tensor *tensors;
	struct view_tensor *rows;
	int *order; /* rows as shown */
	int count;
	int at, scroll; /* in order */
	int64_t selected_id;
	int sort; /* column, or NO_SORT: as recorded */
	bool reverse;
	int statistic;
	struct view_tensors_layout areas;

	struct view_chart_point *curve;
	int curve_count;
	int64_t first_step, last_step, first_update, last_update, bad;
	double low, high;
};

static const char *view_statistic(const struct view_tensors *screen)
{
	int count;
	const char *const *names = report_tensor_columns(&count);

	return names[screen->statistic % count];
}

/* --- columns ---------------------------------------------------------------------------------- */

struct view_tensor_column {
	const char *title; /* NULL: the statistic's name stands above */
	int width;         /* 0: what is left */
	int from_width;    /* shown on screens as wide as that */
	bool right;
	bool statistic; /* needs the curves of all rows to sort by */
};

enum {
	COLUMN_KEY,
	COLUMN_KIND,
	COLUMN_STAGE,
	COLUMN_SHAPE,
	COLUMN_ROWS,
	COLUMN_NAN,
	COLUMN_INF,
	COLUMN_FIRST,
	COLUMN_LAST,
	COLUMN_LEAST,
	COLUMN_GREATEST,
	COLUMN_TREND,
	COLUMNS
};

static const struct view_tensor_column view_columns[] = {
	[COLUMN_KEY] = {"key", 0, 0, false, false},
	[COLUMN_KIND] = {"kind", 10, 96, false, false},
	[COLUMN_STAGE] = {"stage", 5, 120, true, false},
	[COLUMN_SHAPE] = {"shape", 16, 140, false, false},
	[COLUMN_ROWS] = {"rows", 7, 60, true, false},
	[COLUMN_NAN] = {"NaN", 6, 0, true, false},
	[COLUMN_INF] = {"Inf", 6, 0, true, false},
	[COLUMN_FIRST] = {"first", 10, 160, true, true},
	[COLUMN_LAST] = {"last", 10, 50, true, true},
	[COLUMN_LEAST] = {"least", 10, 112, true, true},
	[COLUMN_GREATEST] = {"greatest", 10, 112, true, true},
	[COLUMN_TREND] = {"trend", 14, 70, false, true},
};
_Static_assert(ARRAY_LEN(view_columns) == COLUMNS, "column table out of step");

static bool view_column_shown(int column, int width)
{
	return width >= view_columns[column].from_width;
}

/* The width of @column; the key gets the rest, and the trend of a wide screen some of it. */
static int view_column_width(int column, int width)
{
	const int trend = width >= 160 ? SPARK_POINTS : width >= 100 ? 20 : 14;
	int rest = width - 2;

	if (column == COLUMN_TREND)
		return trend;
	if (column != COLUMN_KEY)
		return view_columns[column].width;
	for (int i = 1; i < COLUMNS; i++)
		if (view_column_shown(i, width))
			rest -= 1 + (i == COLUMN_TREND ? trend : view_columns[i].width);
	return rest > 8 ? rest : 8;
}

static double view_sort_number(const struct view_tensor *row, int column)
{
	const struct report_tensor *tensor = row->tensor;

	switch (column) {
	case COLUMN_STAGE:
		return tensor->stage == INT64_MIN ? NAN : (double)tensor->stage;
	case COLUMN_ROWS:
		return (double)tensor->rows;
	case COLUMN_NAN:
		return (double)tensor->n_nan;
	case COLUMN_INF:
		return (double)tensor->n_inf;
	case COLUMN_FIRST:
		return row->first;
	case COLUMN_LAST:
		return row->last;
	case COLUMN_LEAST:
		return row->least;
	case COLUMN_GREATEST:
		return row->greatest;
	case COLUMN_TREND:
		/* How far it has moved. */
		return fabs(row->last - row->first);
	default:
		return NAN;
	}
}

static const char *view_sort_text(const struct view_tensor *row, int column)
{
	const struct report_tensor *tensor = row->tensor;
	const char *text = column == COLUMN_KEY    ? tensor->key
			   : column == COLUMN_KIND ? tensor->kind
						   : tensor->shape;

	return text ? text : "";
}

static int view_compare(const void *a, const void *b, void *user)
{
	const struct view_tensors *screen = user;
	const int left = *(const int *)a, right = *(const int *)b;
	const struct view_tensor *one = &screen->rows[left], *two = &screen->rows[right];
	int order = 0;

	if (screen->sort == COLUMN_KEY || screen->sort == COLUMN_KIND ||
	    screen->sort == COLUMN_SHAPE) {
		order = strcmp(view_sort_text(one, screen->sort),
			       view_sort_text(two, screen->sort));
	} else if (screen->sort != NO_SORT) {
		const double x = view_sort_number(one, screen->sort);
		const double y = view_sort_number(two, screen->sort);

		/* Unknown last, whatever the direction. */
		if (isnan(x) || isnan(y))
			return isnan(x) != isnan(y) ? (isnan(x) ? 1 : -1) : left - right;
		/* The greatest first: that is what is looked for. */
		order = x > y ? -1 : x < y;
	}
	if (order == 0)
		order = left < right ? -1 : left > right;
	return screen->reverse ? -order : order;
}

/* --- loading ---------------------------------------------------------------------------------- */

static enum status view_load_row(struct view_tensors *screen, struct view_tensor *row,
				 struct prof_db *db, struct err *err)
{
	struct report_point *points;
	enum status status;
	int count;

	if (row->loaded)
		return ST_OK;
	status = report_tensor_curve(db, row->tensor->tensor_id, view_statistic(screen),
				     SPARK_POINTS, &screen->list_arena, &points, &count, err);
	if (status != ST_OK)
		return status;
	row->first = row->last = row->least = row->greatest = NAN;
	row->point_count = count < SPARK_POINTS ? count : SPARK_POINTS;
	for (int i = 0; i < row->point_count; i++) {
		const struct report_point *point = &points[i];

		row->points[i] = (struct view_chart_point){point->mean, point->least,
							   point->greatest, point->n_bad > 0};
		if (isnan(point->mean))
			continue;
		if (isnan(row->first))
			row->first = point->mean;
		row->last = point->mean;
		row->least = fmin(row->least, point->least);
		row->greatest = fmax(row->greatest, point->greatest);
	}
	row->loaded = true;
	return ST_OK;
}

static enum status view_load_list(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	enum status status;

	arena_reset(&screen->list_arena);
	screen->count = 0;
	status =
		report_tensors_list(db, &screen->list_arena, &screen->tensors, &screen->count, err);
	if (status != ST_OK)
		return status;
	screen->rows =
		arena_alloc(&screen->list_arena, (size_t)screen->count + 1, sizeof(*screen->rows));
	screen->order =
		arena_alloc(&screen->list_arena, (size_t)screen->count + 1, sizeof(*screen->order));
	if (!screen->rows || !screen->order) {
		screen->count = 0;
		return err_nomem(err);
	}
	for (int i = 0; i < screen->count; i++)
		screen->rows[i].tensor = &screen->tensors[i];
	return ST_OK;
}

static enum status view_sort(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	enum status status = ST_OK;

	if (screen->sort != NO_SORT && view_columns[screen->sort].statistic)
		for (int i = 0; i < screen->count && status == ST_OK; i++)
			status = view_load_row(screen, &screen->rows[i], db, err);
	if (status != ST_OK)
		return status;
	for (int i = 0; i < screen->count; i++)
		screen->order[i] = i;
	if (screen->count > 1)
		qsort_r(screen->order, (size_t)screen->count, sizeof(*screen->order), view_compare,
			screen);
	/* The selection stays with its tensor. */
	for (int i = 0; i < screen->count; i++)
		if (screen->tensors[screen->order[i]].tensor_id == screen->selected_id)
			screen->at = i;
	return ST_OK;
}

static void view_scroll(struct view_tensors *screen)
{
	const int rows = screen->areas.table.height - 1;

	if (screen->at >= screen->count)
		screen->at = screen->count - 1;
	if (screen->at < 0)
		screen->at = 0;
	if (screen->at < screen->scroll)
		screen->scroll = screen->at;
	if (rows > 0 && screen->at >= screen->scroll + rows)
		screen->scroll = screen->at - rows + 1;
	if (screen->scroll > screen->count - rows)
		screen->scroll = screen->count > rows ? screen->count - rows : 0;
	if (screen->count > 0)
		screen->selected_id = screen->tensors[screen->order[screen->at]].tensor_id;
}

static enum status view_load_curve(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	const int width = screen->areas.curve.width * 2;
	struct report_point *points;
	enum status status;
	int count;

	arena_reset(&screen->curve_arena);
	screen->curve_count = 0;
	screen->bad = 0;
	if (screen->count == 0 || width < 2 || screen->areas.curve.height < 1)
		return ST_OK;
	status = report_tensor_curve(db, screen->selected_id, view_statistic(screen),
				     width < CURVE_POINTS ? width : CURVE_POINTS,
				     &screen->curve_arena, &points, &count, err);
	if (status != ST_OK || count == 0)
		return status;
	screen->curve = arena_alloc(&screen->curve_arena, (size_t)count, sizeof(*screen->curve));
	if (!screen->curve)
		return err_nomem(err);
	for (int i = 0; i < count; i++) {
		screen->curve[i] = (struct view_chart_point){
			points[i].mean, points[i].least, points[i].greatest, points[i].n_bad > 0};
		screen->bad += points[i].n_bad;
	}
	screen->curve_count = count;
	screen->first_step = points[0].step;
	screen->last_step = points[count - 1].step;
	screen->first_update = points[0].weight_update;
	screen->last_update = points[count - 1].weight_update;
	view_chart_range(screen->curve, count, &screen->low, &screen->high);
	return ST_OK;
}

static enum status view_tensors_load(void *state, struct view_context *context, bool news,
				     struct err *err)
{
	struct view_tensors *screen = state;
	struct prof_db *db = context->source->db;
	enum status status = ST_OK;
	int rows;

	if (news)
		status = view_load_list(screen, db, err);
	if (status == ST_OK)
		status = view_sort(screen, db, err);
	if (status != ST_OK) {
		screen->count = 0;
		return status;
	}
	screen->areas = view_tensors_areas(
		(struct view_rect){0, 0, context->body.width, context->body.height},
		screen->count + 1);
	view_scroll(screen);
	rows = screen->areas.table.height - 1;
	for (int i = screen->scroll; i < screen->scroll + rows && i < screen->count; i++) {
		status = view_load_row(screen, &screen->rows[screen->order[i]], db, err);
		if (status != ST_OK)
			return status;
	}
	return view_load_curve(screen, db, err);
}

/* --- drawing ---------------------------------------------------------------------------------- */

static const char *view_cell_text(const struct view_tensor *row, int column, char out[FMT_SIZE])
{
	const struct report_tensor *tensor = row->tensor;

	switch (column) {
	case COLUMN_KEY:
		return tensor->key ? tensor->key : "-";
	case COLUMN_KIND:
		return tensor->kind ? tensor->kind : "-";
	case COLUMN_SHAPE:
		return tensor->shape ? tensor->shape : "-";
	case COLUMN_STAGE:
		if (tensor->stage == INT64_MIN)
			return "-";
		snprintf(out, FMT_SIZE, "%lld", (long long)tensor->stage);
		return out;
	case COLUMN_ROWS:
		return fmt_count(out, tensor->rows);
	case COLUMN_NAN:
		return fmt_count(out, tensor->n_nan);
	case COLUMN_INF:
		return fmt_count(out, tensor->n_inf);
	default:
		break;
	}
	if (!row->loaded || isnan(view_sort_number(row, column)))
		return "-";
	snprintf(out, FMT_SIZE, "%.4g", view_sort_number(row, column));
	return out;
}

static enum view_style view_cell_style(const struct view_tensor *row, int column)
{
	const struct report_tensor *tensor = row->tensor;

	if (column == COLUMN_NAN)
		return tensor->n_nan > 0 ? VIEW_BAD : VIEW_DIM;
	if (column == COLUMN_INF)
		return tensor->n_inf > 0 ? VIEW_BAD : VIEW_DIM;
	if (column == COLUMN_KIND || column == COLUMN_SHAPE || column == COLUMN_STAGE)
		return VIEW_DIM;
	return VIEW_NORMAL;
}

static void view_draw_titles(const struct view_tensors *screen, struct view_pane *pane)
{
	const int width = pane->rect.width;
	char title[32];
	int x = 1;

	view_fill(pane, 0, 0, width, VIEW_BOLD);
	for (int column = 0; column < COLUMNS; column++) {
		const int cells = view_column_width(column, width);
		const bool sorted = column == screen->sort;

		if (!view_column_shown(column, width))
			continue;
		snprintf(title, sizeof(title), "%s%s", view_columns[column].title,
			 !sorted           ? ""
			 : screen->reverse ? " ^"
					   : " v");
		if (view_columns[column].right)
			view_text_right(pane, x, 0, cells, sorted ? VIEW_KEY : VIEW_DIM, title);
		else
			view_text_cut(pane, x, 0, cells, sorted ? VIEW_KEY : VIEW_DIM, title);
		x += cells + 1;
	}
}

static void view_draw_tensor(const struct view_tensor *row, int y, bool selected,
			     struct view_pane *pane)
{
	const int width = pane->rect.width;
	char text[FMT_SIZE];
	int x = 1;

	if (selected) {
		view_fill(pane, 0, y, width, VIEW_CURSOR);
		view_glyphs(pane, 0, y, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
	}
	for (int column = 0; column < COLUMNS; column++) {
		const int cells = view_column_width(column, width);
		const enum view_style style = selected ? VIEW_CURSOR : view_cell_style(row, column);

		if (!view_column_shown(column, width))
			continue;
		if (column == COLUMN_TREND)
			view_chart_spark(pane, x, y, cells, selected ? VIEW_CURSOR : VIEW_CURVE,
					 row->points, row->point_count);
		else if (view_columns[column].right)
			view_text_right(pane, x, y, cells, style,
					view_cell_text(row, column, text));
		else
			view_text_cut(pane, x, y, cells, style, view_cell_text(row, column, text));
		x += cells + 1;
	}
}

static struct view_pane view_sub(struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

static void view_draw_heading(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct report_tensor *tensor = &screen->tensors[screen->order[screen->at]];
	char text[256];
	int x = 2;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	snprintf(text, sizeof(text), " %s of %s ", view_statistic(screen),
		 tensor->key ? tensor->key : "?");
	x += view_text_cut(pane, x, 0, pane->rect.width - 4, VIEW_BOLD, text);
	snprintf(text, sizeof(text), " %s%s%s ", tensor->kind ? tensor->kind : "",
		 tensor->shape ? " " : "", tensor->shape ? tensor->shape : "");
	if (x + 10 < pane->rect.width)
		x += view_text_cut(pane, x + 1, 0, pane->rect.width - x - 3, VIEW_DIM, text) + 1;
	if (screen->bad > 0 && x + 12 < pane->rect.width) {
		snprintf(text, sizeof(text), " %lld NaN, %lld Inf ", (long long)tensor->n_nan,
			 (long long)tensor->n_inf);
		view_text_cut(pane, x + 1, 0, pane->rect.width - x - 3, VIEW_BAD, text);
	}
}

static void view_draw_scale(const struct view_tensors *screen, struct view_pane *pane)
{
	const int height = pane->rect.height;
	char text[FMT_SIZE];

	for (int y = 0; y < height; y++) {
		/* A number every few rows, the first and the last always. */
		const bool edge = y == 0 || y == height - 1;
		const double part = height > 1 ? (double)y / (height - 1) : 0;

		const bool number = edge || (y % 4 == 0 && height - 1 - y >= 2);

		view_glyphs(pane, pane->rect.width - 1, y, VIEW_DIM,
			    number ? VIEW_GLYPH_TEE : VIEW_GLYPH_VERTICAL, 1);
		if (!number)
			continue;
		snprintf(text, sizeof(text), "%.4g",
			 screen->high - part * (screen->high - screen->low));
		view_text_right(pane, 0, y, pane->rect.width - 2, VIEW_DIM, text);
	}
}

static void view_draw_axis(const struct view_tensors *screen, struct view_pane *pane)
{
	const bool steps = screen->first_step != INT64_MIN && screen->last_step != INT64_MIN;
	const int64_t first = steps ? screen->first_step : screen->first_update;
	const int64_t last = steps ? screen->last_step : screen->last_update;
	const int left = screen->areas.scale.width - 1;
	char text[FMT_SIZE];

	view_glyphs(pane, left, 0, VIEW_DIM, VIEW_GLYPH_CORNER, 1);
	view_glyphs(pane, left + 1, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL,
		    pane->rect.width - left - 1);
	if (first == INT64_MIN || last == INT64_MIN) {
		view_text(pane, left + 2, 0, VIEW_DIM, " in order of time ");
		return;
	}
	snprintf(text, sizeof(text), " %s %lld ", steps ? "step" : "update", (long long)first);
	view_text(pane, left + 2, 0, VIEW_DIM, text);
	snprintf(text, sizeof(text), " %lld ", (long long)last);
	view_text_right(pane, left + 2, 0, pane->rect.width - left - 4, VIEW_DIM, text);
}

static void view_tensors_draw(const void *state, const struct view_context *context,
			      struct view_pane *pane)
{
	const struct view_tensors *screen = state;
	struct view_pane table = view_sub(pane, screen->areas.table);
	struct view_pane heading = view_sub(pane, screen->areas.heading);
	struct view_pane scale = view_sub(pane, screen->areas.scale);
	struct view_pane curve = view_sub(pane, screen->areas.curve);
	struct view_pane axis = view_sub(pane, screen->areas.axis);

	if (screen->count == 0) {
		view_text(pane, 2, 1, VIEW_DIM, "No tensors have been recorded.");
		return;
	}
	view_draw_titles(screen, &table);
	for (int i = 0; i + 1 < table.rect.height && screen->scroll + i < screen->count; i++)
		view_draw_tensor(&screen->rows[screen->order[screen->scroll + i]], i + 1,
				 screen->scroll + i == screen->at && !context->whole, &table);
	if (heading.rect.height < 1)
		return;
	view_draw_heading(screen, &heading);
	view_draw_scale(screen, &scale);
	view_draw_axis(screen, &axis);
	view_chart_curve(&curve, VIEW_CURVE, screen->curve, screen->curve_count, screen->low,
			 screen->high);
	if (screen->curve_count == 0)
		view_text(&curve, 1, 0, VIEW_DIM, "no values");
}

/* --- requests --------------------------------------------------------------------------------- */

static void view_choose_statistic(struct view_tensors *screen, int by)
{
	int count;

	report_tensor_columns(&count);
	screen->statistic = (screen->statistic + by + count) % count;
	for (int i = 0; i < screen->count; i++)
		screen->rows[i].loaded = false;
}

static void view_choose_sort(struct view_tensors *screen, int by, int width)
{
	do {
		screen->sort += by;
		if (screen->sort >= COLUMNS)
			screen->sort = NO_SORT;
		if (screen->sort < NO_SORT)
			screen->sort = COLUMNS - 1;
	} while (screen->sort != NO_SORT && !view_column_shown(screen->sort, width));
}

static void view_select(struct view_tensors *screen, int at)
{
	if (at >= screen->count)
		at = screen->count - 1;
	screen->at = at < 0 ? 0 : at;
	if (screen->count > 0)
		screen->selected_id = screen->tensors[screen->order[screen->at]].tensor_id;
}

static enum view_answer view_tensors_request(void *state, struct view_context *context,
					     enum view_request request)
{
	struct view_tensors *screen = state;
	const int page = screen->areas.table.height > 2 ? screen->areas.table.height - 2 : 1;

	switch (request) {
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
		view_select(screen, screen->at + (request == VIEW_UP_REQUEST ? -1 : 1));
		return VIEW_LOAD;
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		view_select(screen, screen->at + (request == VIEW_PAGE_UP_REQUEST ? -page : page));
		return VIEW_LOAD;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		view_select(screen, request == VIEW_HOME_REQUEST ? 0 : screen->count - 1);
		return VIEW_LOAD;
	case VIEW_LEFT_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		view_choose_statistic(screen, -1);
		return VIEW_LOAD;
	case VIEW_RIGHT_REQUEST:
	case VIEW_STATISTIC_REQUEST:
		view_choose_statistic(screen, 1);
		return VIEW_LOAD;
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_SORT_BACK_REQUEST:
		view_choose_sort(screen, request == VIEW_SORT_NEXT_REQUEST ? 1 : -1,
				 context->body.width);
		return VIEW_LOAD;
	case VIEW_REVERSE_REQUEST:
		screen->reverse = !screen->reverse;
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

static bool view_tensors_search(void *state, struct view_context *context, const char *text,
				bool forward)
{
	struct view_tensors *screen = state;

	(void)context;
	for (int i = 1; i <= screen->count; i++) {
		const int at = (screen->at + (forward ? i : screen->count - i)) % screen->count;
		const char *key = screen->tensors[screen->order[at]].key;

		if (key && strcasestr(key, text)) {
			view_select(screen, at);
			return true;
		}
	}
	return false;
}

static void view_tensors_status(const void *state, const struct view_context *context, char *out,
				size_t size)
{
	const struct view_tensors *screen = state;

	(void)context;
	if (screen->count == 0) {
		snprintf(out, size, "no tensors recorded");
		return;
	}
	snprintf(out, size, "statistic %s, tensor %d of %d, order: %s%s", view_statistic(screen),
		 screen->at + 1, screen->count,
		 screen->sort == NO_SORT ? "as recorded" : view_columns[screen->sort].title,
		 screen->reverse ? ", reversed" : "");
}

static int view_tensors_height(const void *state, const struct view_context *context)
{
	const struct view_tensors *screen = state;

	(void)context;
	return screen->count > 0 ? screen->count + 1 + 14 : 2;
}

/* --- rows for CSV and JSON -------------------------------------------------------------------- */

static const struct report_column view_table_columns[] = {
	{"queue", REPORT_TEXT},     {"key", REPORT_TEXT},     {"kind", REPORT_TEXT},
	{"layer", REPORT_TEXT},     {"shape", REPORT_TEXT},   {"stage", REPORT_NUMBER},
	{"rows", REPORT_COUNT},     {"n_nan", REPORT_COUNT},  {"n_inf", REPORT_COUNT},
	{"statistic", REPORT_TEXT}, {"first", REPORT_REAL},   {"last", REPORT_REAL},
	{"least", REPORT_REAL},     {"greatest", REPORT_REAL}};

static enum status view_table_row(const struct view_tensors *screen, struct report_table *out,
				  int at, struct err *err)
{
	const struct view_tensor *row = &screen->rows[screen->order[at]];
	const struct report_tensor *tensor = row->tensor;
	const char *texts[] = {tensor->queue, tensor->key, tensor->kind, tensor->layer,
			       tensor->shape};
	enum status status;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		status = view_table_text(out, at, (int)i, texts[i], err);
		if (status != ST_OK)
			return status;
	}
	view_table_int(out, at, 5, tensor->stage);
	view_table_int(out, at, 6, tensor->rows);
	view_table_int(out, at, 7, tensor->n_nan);
	view_table_int(out, at, 8, tensor->n_inf);
	view_table_real(out, at, 10, row->first);
	view_table_real(out, at, 11, row->last);
	view_table_real(out, at, 12, row->least);
	view_table_real(out, at, 13, row->greatest);
	return view_table_text(out, at, 9, view_statistic(screen), err);
}

static enum status view_tensors_table(void *state, struct view_context *context,
				      struct report_table *out, struct err *err)
{
	struct view_tensors *screen = state;
	enum status status = view_table_new(out, "tensors", view_table_columns,
					    (int)ARRAY_LEN(view_table_columns), screen->count, err);

	if (status != ST_OK)
		return status;
	for (int i = 0; i < screen->count && status == ST_OK; i++) {
		status = view_load_row(screen, &screen->rows[screen->order[i]], context->source->db,
				       err);
		if (status == ST_OK)
			status = view_table_row(screen, out, i, err);
	}
	if (status != ST_OK) {
		report_table_free(out);
		memset(out, 0, sizeof(*out));
	}
	return status;
}

static enum status view_tensors_open(void **state, struct view_context *context, struct err *err)
{
	struct view_tensors *screen = mem_calloc(1, sizeof(*screen));
	const char *const *names;
	int count;

	(void)context;
	*state = NULL;
	if (!screen)
		return err_nomem(err);
	(void)arena_init(&screen->list_arena, 0);
	(void)arena_init(&screen->curve_arena, 0);
	screen->sort = NO_SORT;
	screen->selected_id = INT64_MIN;
	names = report_tensor_columns(&count);
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], "std") == 0)
			screen->statistic = i;
	*state = screen;
	return ST_OK;
}

static void view_tensors_close(void *state)
{
	struct view_tensors *screen = state;

	if (!screen)
		return;
	arena_fini(&screen->list_arena);
	arena_fini(&screen->curve_arena);
	mem_free(screen);
}

const struct view_screen_ops view_tensors_ops = {
	.name = "tensors",
	.title = "Tensors",
	.where = VIEW_ON_TENSORS,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_tensors_open,
	.close = view_tensors_close,
	.load = view_tensors_load,
	.draw = view_tensors_draw,
	.request = view_tensors_request,
	.search = view_tensors_search,
	.status = view_tensors_status,
	.height = view_tensors_height,
	.table = view_tensors_table,
};
