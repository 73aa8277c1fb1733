/*
 * The screen Tensors: which there are, how they went over the run, and one of them closely.
 *
 * Threading: as view_screen.h says. Ownership: grids have their rows, arenas what is drawn.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

const char *view__statistic(const struct view_tensors *screen)
{
	int count;
	const char *const *names = report_tensor_columns(&count);

	return names[screen->statistic % count];
}

/* ---- loading --------------------------------------------------------------------------------- */

void view__tensors_areas(struct view_tensors *screen, const struct view_context *context)
{
	const struct view_rect whole = {0, 0, context->body.width, context->body.height};
	const int64_t rows = min(screen->list.count, 1000);
	struct view_tensors_layout areas;

	screen->table = screen->heading = screen->body = (struct view_rect){0};
	if (screen->opened) {
		screen->heading = (struct view_rect){0, 0, whole.width, 1};
		screen->body = (struct view_rect){0, 1, whole.width, whole.height - 1};
		return;
	}
	areas = view_tensors_areas(whole, (int)rows + 1);
	screen->table = areas.table;
	screen->heading = areas.heading;
	screen->body = areas.body;
}

/* Another tensor: nothing of where the page was is left. */
static void choose_afresh(struct view_tensors *screen)
{
	screen->values.at = -1;
	screen->values.wanted = IPS_NULL;
	screen->values.row = screen->values.column = 0;
	memset(screen->values.first, 0, sizeof(screen->values.first));
}

enum status view__tensors_choose(struct view_tensors *screen, struct view_context *context,
				 struct err *err)
{
	const struct report_cell *key = view_grid_cell(&screen->list, "key");
	const struct report_cell *queue = view_grid_cell(&screen->list, "queue");
	const struct report_cell *rank = view_grid_cell(&screen->list, "rank");
	const struct report_cell *rows = view_grid_cell(&screen->list, "rows");
	int64_t before[VIEW_TENSORS_SIDES];
	enum status status = ST_OK;

	memcpy(before, screen->id, sizeof(before));
	screen->has_queue = queue && queue->text;
	screen->rank = rank && rank->type == PROF_INT ? rank->integer : IPS_NULL;
	screen->row_count = rows && rows->type == PROF_INT ? rows->integer : 0;
	str_copy(screen->key, sizeof(screen->key), key && key->text ? key->text : "");
	str_copy(screen->queue, sizeof(screen->queue), screen->has_queue ? queue->text : "");
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		struct prof_db *db = view__tensors_db(context, side);

		screen->id[side] = IPS_NULL;
		if (key && db && status == ST_OK)
			status = report_tensor_find(db, screen->has_queue ? queue->text : NULL,
						    key->text, &screen->id[side], err);
	}
	if (memcmp(before, screen->id, sizeof(before)) != 0)
		choose_afresh(screen);
	return status;
}

static enum status load_page(struct view_tensors *screen, struct view_context *context,
			     struct err *err)
{
	static enum status (*const loads[])(struct view_tensors *, struct view_context *,
					    struct err *) = {
		[VIEW_TENSOR_HISTOGRAM] = view__histogram_load,
		[VIEW_TENSOR_VALUES] = view__values_load,
		[VIEW_TENSOR_RULES] = view__grids_load,
		[VIEW_TENSOR_ROWS] = view__grids_load,
	};
	enum status status = view__curve_load(screen, context, err);

	if (status == ST_OK && view_cancelled(context))
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (status == ST_OK && screen->page != VIEW_TENSOR_CURVE)
		status = loads[screen->page](screen, context, err);
	return status;
}

/* With D only tensors that differ are listed; the one whose page is open stays. */
static void list_differ(struct view_tensors *screen, const struct view_context *context)
{
	const bool differ = context->target && context->differ && !screen->opened;

	if (screen->list.differ == differ)
		return;
	screen->list.differ = differ;
	view_grid_filter(&screen->list, screen->list.filter);
	if (!differ && screen->key[0])
		view_grid_go(&screen->list, screen->table.height, "key", screen->key, 0);
}

enum status view__tensors_load(void *state, struct view_context *context, bool news,
			       struct err *err)
{
	struct view_tensors *screen = state;
	enum status status = ST_OK;

	if (news || screen->list.table.row_count == 0)
		status = view__tensors_list(screen, context, err);
	if (status != ST_OK)
		return status;
	list_differ(screen, context);
	view__tensors_areas(screen, context);
	if (!screen->opened)
		view_grid_layout(&screen->list, context->body.width, screen->table.height);
	status = view__tensors_choose(screen, context, err);
	if (status != ST_OK || screen->list.count == 0 || screen->heading.height == 0)
		return status;
	return load_page(screen, context, err);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum view_answer choose_statistic(struct view_tensors *screen, struct view_context *context,
					 int by)
{
	struct err err;
	int count;

	report_tensor_columns(&count);
	screen->statistic = (screen->statistic + by + count) % count;
	if (view__tensors_list(screen, context, &err) != ST_OK)
		str_copy(context->message, sizeof(context->message), err.text);
	return VIEW_LOAD;
}

static enum view_answer turn_page(struct view_tensors *screen, int by)
{
	screen->page =
		(screen->page + (unsigned)(by + VIEW_TENSOR_PAGE_COUNT)) % VIEW_TENSOR_PAGE_COUNT;
	return VIEW_LOAD;
}

/* What the open page does with it. */
static enum view_answer page_request(struct view_tensors *screen, enum view_request request)
{
	if (request == VIEW_BACK_REQUEST) {
		screen->opened = false;
		return VIEW_LOAD;
	}
	switch (screen->page) {
	case VIEW_TENSOR_VALUES:
		return view__values_request(screen, request);
	case VIEW_TENSOR_RULES:
	case VIEW_TENSOR_ROWS:
		return view__grids_request(screen, request);
	case VIEW_TENSOR_CURVE:
	case VIEW_TENSOR_HISTOGRAM:
		return view__curve_request(screen, request);
	default:
		return VIEW_UNHANDLED;
	}
}

/* Back to tensors of all kinds, where some are not listed. */
static enum view_answer list_leave(struct view_tensors *screen, struct view_context *context)
{
	struct err err;

	if (!screen->kind[0])
		return VIEW_UNHANDLED;
	if (view__tensors_list_kind(screen, context, "", &err) != ST_OK)
		str_copy(context->message, sizeof(context->message), err.text);
	return VIEW_LOAD;
}

/* In an open page rows up and down are other tensors, where the page has none. */
static enum view_answer list_request(struct view_tensors *screen, struct view_context *context,
				     enum view_request request)
{
	const int height = screen->opened ? 10 : screen->table.height;
	const enum view_answer answer = view_grid_request(&screen->list, height, request);

	if (answer == VIEW_DRAW)
		return VIEW_LOAD;
	if (answer == VIEW_UNHANDLED && request == VIEW_BACK_REQUEST)
		return list_leave(screen, context);
	return answer;
}

static enum view_answer turn_scale(struct view_tensors *screen, struct view_context *context)
{
	const bool curve = screen->page == VIEW_TENSOR_CURVE && screen->list.count > 0;

	str_copy(context->message, sizeof(context->message),
		 curve ? view_scale_turn(&screen->scale, &screen->y, &screen->spread)
		       : "for the curve of a statistic (v)");
	return curve ? VIEW_LOAD : VIEW_DRAW;
}

static enum view_answer view_tensors_request(void *state, struct view_context *context,
					     enum view_request request)
{
	struct view_tensors *screen = state;
	enum view_answer answer = VIEW_UNHANDLED;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		return turn_page(screen, request == VIEW_VIEW_REQUEST ? 1 : -1);
	case VIEW_ENTER_REQUEST:
		if (screen->opened)
			return VIEW_JOIN;
		screen->opened = screen->list.count > 0;
		return VIEW_LOAD;
	case VIEW_JOIN_REQUEST:
		return VIEW_JOIN;
	case VIEW_UNIT_REQUEST:
		return turn_scale(screen, context);
	case VIEW_SELECT_REQUEST:
		return view__replica_next(screen, context);
	default:
		break;
	}
	if (screen->opened)
		answer = page_request(screen, request);
	if (answer != VIEW_UNHANDLED)
		return answer;
	switch (request) {
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		return choose_statistic(screen, context,
					request == VIEW_STATISTIC_REQUEST ? 1 : -1);
	case VIEW_BREAKDOWN_REQUEST:
		if (!screen->opened)
			return view__tensors_next_kind(screen, context);
		str_copy(context->message, sizeof(context->message),
			 "for the values of a capture (v) and for the list (Esc)");
		return VIEW_DRAW;
	default:
		return list_request(screen, context, request);
	}
}

static bool view_tensors_search(void *state, struct view_context *context, const char *text,
				bool forward)
{
	struct view_tensors *screen = state;

	(void)context;
	if (screen->opened && screen->page >= VIEW_TENSOR_RULES)
		return view_grid_search(&screen->grid, screen->body.height, text, forward);
	return view_grid_search(&screen->list, screen->table.height, text, forward);
}

static void view_tensors_filter(void *state, const char *text)
{
	struct view_tensors *screen = state;
	const bool page = screen->opened && screen->page >= VIEW_TENSOR_RULES;

	view_grid_filter(page ? &screen->grid : &screen->list, text);
}

static void view_tensors_status(const void *state, const struct view_context *context, char *out,
				size_t size)
{
	const struct view_tensors *screen = state;
	char grid[160], replica[48], kind[VIEW_TENSORS_KIND + 8] = "", scale[VIEW_SCALE_TEXT] = "";

	(void)context;
	if (screen->list.table.row_count == 0) {
		snprintf(out, size, "no tensors recorded");
		return;
	}
	if (screen->opened && screen->page == VIEW_TENSOR_VALUES) {
		view__values_status(screen, out, size);
		return;
	}
	view_grid_status(screen->opened && screen->page >= VIEW_TENSOR_RULES ? &screen->grid
									     : &screen->list,
			 grid, sizeof(grid));
	view__replica_text(screen, replica, sizeof(replica));
	if (screen->kind[0])
		snprintf(kind, sizeof(kind), ", kind %s", screen->kind);
	if (screen->page == VIEW_TENSOR_CURVE)
		(void)view_scale_text(&screen->y, scale);
	snprintf(out, size, "statistic %s%s%s%s, %s", view__statistic(screen), scale, replica, kind,
		 grid);
}

static int view_tensors_height(const void *state, const struct view_context *context)
{
	const struct view_tensors *screen = state;
	const int64_t rows = min(screen->list.count, 1000);

	(void)context;
	return rows > 0 ? (int)rows + 1 + 14 : VIEW_NOTHING_ROWS;
}

static enum view_answer view_tensors_click(void *state, struct view_context *context, int x, int y)
{
	struct view_tensors *screen = state;
	enum view_answer answer = VIEW_UNHANDLED;

	(void)context;
	if (!screen->opened && y < screen->table.height)
		answer = view_grid_click(&screen->list, screen->table.height, x, y);
	else if (screen->page >= VIEW_TENSOR_RULES && y >= screen->body.y)
		answer = view_grid_click(&screen->grid, screen->body.height, x, y - screen->body.y);
	return answer == VIEW_DRAW ? VIEW_LOAD : answer;
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
	(void)arena_init(&screen->spark_arena, 0);
	(void)arena_init(&screen->curve_arena, 0);
	(void)arena_init(&screen->page_arena, 0);
	screen->id[0] = screen->id[1] = IPS_NULL;
	screen->grid_of[0] = screen->grid_of[1] = screen->values.wanted = IPS_NULL;
	screen->replica = -1;
	screen->wanted_step = screen->wanted_update = IPS_NULL;
	screen->cursor = screen->values.at = -1;
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
	view_grid_fini(&screen->list);
	view_grid_fini(&screen->grid);
	report_tensor_rows_free(&screen->sampled);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		report_tensor_rows_free(&screen->curve[side].rows);
		mem_free(screen->values.found[side].list);
	}
	for (int i = 0; i < VIEW_TENSOR_SHARES; i++)
		mem_free(screen->values.part[i].numbers);
	mem_free(screen->values.both.list);
	mem_free(screen->values.equals);
	arena_fini(&screen->spark_arena);
	arena_fini(&screen->curve_arena);
	arena_fini(&screen->page_arena);
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
	.load = view__tensors_load,
	.draw = view__tensors_draw,
	.request = view_tensors_request,
	.search = view_tensors_search,
	.filter = view_tensors_filter,
	.status = view_tensors_status,
	.height = view_tensors_height,
	.table = view__tensors_table,
	.place = view__tensors_place,
	.offers = view__tensors_offers,
	.go = view__tensors_go,
	.query = view__tensors_query,
	.click = view_tensors_click,
};
