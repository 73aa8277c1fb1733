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
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

#define CURVE_POINTS 2000

const char *view__statistic(const struct view_tensors *screen)
{
	int count;
	const char *const *names = report_tensor_columns(&count);

	return names[screen->statistic % count];
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
	status = report_tensor_curve(db, row->tensor->tensor_id, view__statistic(screen),
				     VIEW_SPARK_POINTS, &screen->list_arena, &points, &count, err);
	if (status != ST_OK)
		return status;
	row->first = row->last = row->least = row->greatest = NAN;
	row->point_count = count < VIEW_SPARK_POINTS ? count : VIEW_SPARK_POINTS;
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
	screen->all = 0;
	status = report_tensors_list(db, &screen->list_arena, &screen->tensors, &screen->all, err);
	if (status != ST_OK)
		return status;
	screen->rows =
		arena_alloc(&screen->list_arena, (size_t)screen->all + 1, sizeof(*screen->rows));
	screen->order =
		arena_alloc(&screen->list_arena, (size_t)screen->all + 1, sizeof(*screen->order));
	if (!screen->rows || !screen->order) {
		screen->all = 0;
		return err_nomem(err);
	}
	for (int i = 0; i < screen->all; i++)
		screen->rows[i].tensor = &screen->tensors[i];
	return ST_OK;
}

static bool view_passes(const struct view_tensors *screen, const char *key)
{
	return !screen->filter[0] || (key && strcasestr(key, screen->filter));
}

static enum status view_sort(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	enum status status = ST_OK;

	if (screen->sort != VIEW_NO_SORT && view__columns[screen->sort].statistic)
		for (int i = 0; i < screen->all && status == ST_OK; i++)
			status = view_load_row(screen, &screen->rows[i], db, err);
	if (status != ST_OK)
		return status;
	screen->count = 0;
	for (int i = 0; i < screen->all; i++)
		if (view_passes(screen, screen->tensors[i].key))
			screen->order[screen->count++] = i;
	if (screen->count > 1)
		qsort_r(screen->order, (size_t)screen->count, sizeof(*screen->order), view__compare,
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
	status = report_tensor_curve(db, screen->selected_id, view__statistic(screen),
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
		screen->count = screen->all = 0;
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

/* --- requests --------------------------------------------------------------------------------- */

static void view_choose_statistic(struct view_tensors *screen, int by)
{
	int count;

	report_tensor_columns(&count);
	screen->statistic = (screen->statistic + by + count) % count;
	for (int i = 0; i < screen->all; i++)
		screen->rows[i].loaded = false;
}

static void view_choose_sort(struct view_tensors *screen, int by, int width)
{
	do {
		screen->sort += by;
		if (screen->sort >= VIEW_COLUMNS)
			screen->sort = VIEW_NO_SORT;
		if (screen->sort < VIEW_NO_SORT)
			screen->sort = VIEW_COLUMNS - 1;
	} while (screen->sort != VIEW_NO_SORT && !view__column_shown(screen->sort, width));
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
	case VIEW_BACK_REQUEST:
		if (!screen->filter[0])
			return VIEW_UNHANDLED;
		screen->filter[0] = '\0';
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

static void view_tensors_filter(void *state, const char *text)
{
	struct view_tensors *screen = state;

	str_copy(screen->filter, sizeof(screen->filter), text);
}

static void view_tensors_status(const void *state, const struct view_context *context, char *out,
				size_t size)
{
	const struct view_tensors *screen = state;

	(void)context;
	if (screen->all == 0) {
		snprintf(out, size, "no tensors recorded");
		return;
	}
	if (screen->filter[0]) {
		snprintf(out, size, "filter \"%s\": %d of %d keys (Esc: all), statistic %s",
			 screen->filter, screen->count, screen->all, view__statistic(screen));
		return;
	}
	snprintf(out, size, "statistic %s, tensor %d of %d, order: %s%s", view__statistic(screen),
		 screen->at + 1, screen->count,
		 screen->sort == VIEW_NO_SORT ? "as recorded" : view__columns[screen->sort].title,
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
	return view_table_text(out, at, 9, view__statistic(screen), err);
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
	screen->sort = VIEW_NO_SORT;
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
	.brief = "Tens",
	.key = '8',
	.where = VIEW_ON_TENSORS,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_tensors_open,
	.close = view_tensors_close,
	.load = view_tensors_load,
	.draw = view__tensors_draw,
	.request = view_tensors_request,
	.search = view_tensors_search,
	.filter = view_tensors_filter,
	.status = view_tensors_status,
	.height = view_tensors_height,
	.table = view_tensors_table,
};
