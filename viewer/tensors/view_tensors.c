/*
 * The screen Tensors: the list, the statistics over the run, and one tensor in detail.
 *
 * Threading: that of the session. Ownership: view_tensors_internal.h.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

/* ---- drawing --------------------------------------------------------------------------------- */

#define PAGE_ROWS               24 /* in text output, of curve and histograms */
#define LIST_PAGE               10 /* rows of the list, hidden by an open page, of its PgUp and PgDn */
#define PAGE_TITLE(page, title) [VIEW_TENSOR_##page] = title,

/* Draw the names of all pages if they fit, else of the shown one. */
static void tensors_draw_heading(const struct view_tensors *screen, struct view_pane *pane)
{
	static const char *const titles[] = {VIEW_TENSOR_PAGES(PAGE_TITLE)};
	const int width = pane->rect.width;
	char replica[48];
	int names = 0, x = 1, room;

	view__replica_text(screen, replica, sizeof(replica));
	for (int i = 0; i < VIEW_TENSOR_PAGE_COUNT; i++)
		names += utf8_columns(titles[i]) + 3;
	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, width);
	for (int i = 0; i < VIEW_TENSOR_PAGE_COUNT; i++) {
		const bool shown = i == (int)screen->page;

		if (!shown && width < names + 20)
			continue;
		x += view_textf(pane, x, 0, shown ? VIEW_KEY : VIEW_DIM, shown ? "[%s]" : " %s ",
				titles[i]);
	}
	if (x + 8 >= width)
		return;
	/* The status line shows "all replicas" as well: drop it here if the key needs the space. */
	if (screen->replica < 0 &&
	    x + utf8_columns(screen->key) + utf8_columns(replica) + 3 > width)
		replica[0] = '\0';
	room = width - x - 3 - utf8_columns(replica);
	view_text(pane, x, 0, VIEW_NORMAL, " ");
	x += 1 + view_text_cut(pane, x + 1, 0, room, VIEW_BOLD, screen->key);
	x += view_text(pane, x, 0, VIEW_BOLD, replica);
	view_text(pane, x, 0, VIEW_NORMAL, " ");
}

static void tensors_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_tensors *screen = state;
	struct view_pane heading = view_pane_sub(pane, screen->heading);
	struct view_pane body = view_pane_sub(pane, screen->body);

	if (screen->list.table.row_count == 0) {
		view_nothing(pane, "No tensors have been recorded:",
			     "outfeed.capture, .activations and .gradients of the run file say "
			     "which are.",
			     context->source->none);
		return;
	}
	if (screen->table.height > 0)
		view__tensors_list_draw(screen, context, pane);
	if (screen->list.count == 0) {
		if (screen->opened)
			view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
				      "No tensor matches the filter.");
		return;
	}
	if (heading.rect.height < 1)
		return;
	tensors_draw_heading(screen, &heading);
	if (screen->body.height < 1)
		return;
	switch (screen->page) {
	case VIEW_TENSOR_HISTOGRAM:
		view__histogram_draw(screen, context, &body);
		break;
	case VIEW_TENSOR_VALUES:
		view__values_draw(screen, &body);
		break;
	case VIEW_TENSOR_RULES:
	case VIEW_TENSOR_ROWS:
		if (screen->grid.table.row_count > 0)
			view_grid_draw(&screen->grid, pane, screen->opened && !context->whole);
		else
			view_text(&body, 1, 0, VIEW_DIM,
				  screen->page == VIEW_TENSOR_RULES ? "It broke no rule."
								    : "No rows are kept of it.");
		break;
	default:
		view__curve_draw(screen, context, &body);
		break;
	}
}

/* ---- other screens --------------------------------------------------------------------------- */

static bool tensors_place(const void *state, struct view_place *out)
{
	const struct view_tensors *screen = state;
	const struct view_tensor_capture *capture;
	const struct report_tensor_row *row;

	view_place_clear(out);
	if (screen->list.count == 0)
		return false;
	view_grid_place(&screen->list, "key,queue,layer,stage,rank", "", out);
	if (!screen->opened)
		return true;
	/* Step, time and other fields are those of the row under the page's cursor. */
	row = view__curve_row(screen);
	capture = view__values_capture(screen);
	if (screen->page >= VIEW_TENSOR_RULES) {
		view_grid_place(&screen->grid,
				"step,weight_update,epoch,microbatch,replica,phase,mode,rule", "",
				out);
		out->time_ns = view_grid_int(&screen->grid, "at_ns");
	} else if (screen->page == VIEW_TENSOR_VALUES && capture) {
		out->step = capture->step;
		out->weight_update = capture->weight_update;
		out->microbatch = capture->microbatch;
		out->replica = capture->replica;
	} else if (row) {
		out->replica = row->replica;
		out->step = row->step;
		out->weight_update = row->weight_update;
		out->epoch = row->epoch;
		out->time_ns = row->time_ns;
	}
	if (out->time_ns != IPS_NULL)
		view_place_text(out->clock, "host");
	return true;
}

/* Does @place mean a stage with captured tensors, but none in particular? */
static bool tensors_is_of_stage(const struct view_place *place)
{
	return place->queue[0] && !place->key[0] && !place->layer[0] && place->stage != IPS_NULL;
}

static bool tensors_offers(const struct view_place *place, char *out, size_t size)
{
	const bool stage = tensors_is_of_stage(place);
	/* A metric in a health rule has a key, too. */
	const bool key = place->key[0] && (place->queue[0] || !place->metric[0]);
	char what[VIEW_PLACE_NAME + 32];

	if (stage)
		snprintf(what, sizeof(what), "tensors of stage %lld", (long long)place->stage);
	else
		str_copy(what, sizeof(what), place->key);
	if ((key || stage) && place->step != IPS_NULL)
		snprintf(out, size, "%s at step %lld", what, (long long)place->step);
	else if ((key || stage) && place->weight_update != IPS_NULL)
		snprintf(out, size, "%s at weight update %lld", what,
			 (long long)place->weight_update);
	else if (key)
		snprintf(out, size, "statistics of %s", what);
	else if (place->layer[0])
		snprintf(out, size, "tensors of %s", place->layer);
	else
		return false;
	return true;
}

/* Move to the list's row of the key, preferably with the queue of @place. */
static bool tensors_go_key(struct view_tensors *screen, const struct view_place *place)
{
	struct view_grid *list = &screen->list;

	if (!view_grid_go(list, "key", place->key, 0))
		return false;
	for (int64_t i = 0; place->queue[0] && i < list->count; i++) {
		const int64_t before = list->at;
		const char *key, *queue;

		list->at = i;
		key = view_grid_text(list, "key");
		queue = view_grid_text(list, "queue");
		if (key && queue && strcmp(key, place->key) == 0 &&
		    strcmp(queue, place->queue) == 0)
			return true;
		list->at = before;
	}
	return true;
}

/* Score how well the list's row matches the work of a stage; -1: not at all. */
static int tensors_stage_score(const struct view_grid *list, const struct view_place *place)
{
	const int64_t stage = view_grid_int(list, "stage");
	const char *kind = view_grid_text(list, "kind");
	const bool forward = strcmp(place->phase, "F") == 0;

	if (stage == IPS_NULL || stage != place->stage)
		return -1;
	return 2 * (view_grid_int(list, "rows") > 0) +
	       (kind && (strcmp(kind, "activation") == 0) == forward);
}

/* Move to a tensor of @place's stage, preferably one with rows, of the kind that the phase
 * makes. */
static bool tensors_go_stage(struct view_tensors *screen, const struct view_place *place)
{
	struct view_grid *list = &screen->list;
	int64_t found = -1;
	int best = -1;

	for (list->at = 0; list->at < list->count; list->at++) {
		const int score = tensors_stage_score(list, place);

		if (score > best) {
			best = score;
			found = list->at;
		}
	}
	list->at = max(0, found);
	return found >= 0;
}

static bool tensors_go_row(struct view_tensors *screen, const struct view_place *place)
{
	if (tensors_is_of_stage(place))
		return tensors_go_stage(screen, place);
	return place->key[0] ? tensors_go_key(screen, place)
			     : view_grid_go(&screen->list, "layer", place->layer, 0);
}

static enum status tensors_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err)
{
	struct view_tensors *screen = state;
	const bool key = place->key[0] != '\0';
	bool found = tensors_go_row(screen, place);
	struct err own;

	err = err_start(err, &own);
	if (!found && screen->kind[0]) {
		view__tensors_list_kind(screen, context, "", err);
		found = !err_stuck(err) && tensors_go_row(screen, place);
	}
	if (err_stuck(err))
		return err->status;
	if (!found && tensors_is_of_stage(place))
		return err_set(err, ST_NOTFOUND, "no tensor of stage %lld has been recorded",
			       (long long)place->stage);
	if (!found)
		return err_set(err, ST_NOTFOUND, "no tensor %s%s has been recorded",
			       key ? "" : "of the layer ", key ? place->key : place->layer);
	screen->wanted_step = place->step;
	screen->wanted_update = place->weight_update;
	if (place->step != IPS_NULL || place->weight_update != IPS_NULL) {
		screen->opened = true;
		screen->page = VIEW_TENSOR_CURVE;
	}
	return ST_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Lay out the body: the list, and the page below a heading. */
static void tensors_layout(struct view_tensors *screen, const struct view_context *context)
{
	const struct view_rect whole = {0, 0, context->body.width, context->body.height};
	const int64_t rows = min(screen->list.count, 1000);
	struct view_tensors_layout areas;

	screen->table = screen->heading = screen->body = (struct view_rect){0};
	if (screen->opened) {
		screen->heading = (struct view_rect){0, 0, whole.width, 1};
		screen->body = (struct view_rect){0, 1, whole.width, whole.height - 1};
		screen->list.area.height = LIST_PAGE;
		return;
	}
	areas = view_tensors_areas(whole, (int)rows + 1);
	screen->table = areas.table;
	screen->heading = areas.heading;
	screen->body = areas.body;
}

/* Choose the tensor under the list's cursor. */
static void tensors_choose(struct view_tensors *screen, struct view_context *context,
			   struct err *err)
{
	const struct view_grid *list = &screen->list;
	const char *key = view_grid_text(list, "key"), *queue = view_grid_text(list, "queue");
	const int64_t rows = view_grid_int(list, "rows");
	int64_t before[VIEW_TENSORS_SIDES];

	memcpy(before, screen->id, sizeof(before));
	screen->has_queue = queue != NULL;
	screen->rank = view_grid_int(list, "rank");
	screen->row_count = rows != IPS_NULL ? rows : 0;
	str_copy(screen->key, sizeof(screen->key), key ? key : "");
	str_copy(screen->queue, sizeof(screen->queue), queue ? queue : "");
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		struct prof_db *db = view__tensors_db(context, side);

		screen->id[side] = IPS_NULL;
		if (key && db && !err_stuck(err))
			report_tensor_find(db, queue, key, &screen->id[side], err);
	}
	if (memcmp(before, screen->id, sizeof(before)) != 0) {
		/* Reset the page for another tensor. */
		screen->values.at = -1;
		screen->values.wanted = IPS_NULL;
		screen->values.row = screen->values.column = 0;
		memset(screen->values.first, 0, sizeof(screen->values.first));
		view__sequence_choose(screen, context);
	}
}

static void tensors_load_page(struct view_tensors *screen, struct view_context *context,
			      struct err *err)
{
	static void (*const loads[])(struct view_tensors *, struct view_context *, struct err *) = {
		[VIEW_TENSOR_HISTOGRAM] = view__histogram_load,
		[VIEW_TENSOR_VALUES] = view__values_load,
		[VIEW_TENSOR_RULES] = view__grids_load,
		[VIEW_TENSOR_ROWS] = view__grids_load,
	};

	if (err_stuck(err))
		return;
	view__curve_load(screen, context, err);
	if (!err_stuck(err) && view_cancelled(context))
		err_set(err, ST_INTERRUPTED, "interrupted");
	if (!err_stuck(err) && screen->page != VIEW_TENSOR_CURVE)
		loads[screen->page](screen, context, err);
}

/* Fail if the tensor lacks what the command line requests: the page would show something else. */
static void tensors_check_opening(const struct view_tensors *screen,
				  const struct view_opening *opening, struct err *err)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct view_tensor_matrix *first = &v->part[v->part[VIEW_OF_SOURCE].ndim == 0];
	const bool text = v->sequence.kind == VIEW_SEQUENCE_LOSSES && first->ndim == 2;
	const int64_t step = !capture                    ? IPS_NULL
			     : capture->step != IPS_NULL ? capture->step
							 : capture->weight_update;
	const struct {
		const char *option;
		int64_t at, count;
	} axes[] = {{"--sample", opening->sample, text || first->ndim > 2 ? first->shape[0] : 1},
		    {"--head", opening->head, first->ndim > 3 ? first->shape[1] : 1}};

	if (err_stuck(err))
		return;
	if (screen->page != VIEW_TENSOR_VALUES) {
		if (opening->step != IPS_NULL || opening->sample != 0 || opening->head != 0)
			err_set(err, ST_INVALID,
				"--step, --sample and --head go only with --page values");
		return;
	}
	if (opening->step != IPS_NULL && step != opening->step)
		err_set(err, ST_NOTFOUND, "--step %lld: no values of %s were kept then",
			(long long)opening->step, opening->key);
	for (size_t i = 0; i < ARRAY_LEN(axes) && !err_stuck(err); i++)
		if (axes[i].at > 0 && (!capture || axes[i].at >= axes[i].count))
			err_set(err, ST_INVALID, "%s %lld: %s has %lld, from 0", axes[i].option,
				(long long)axes[i].at, opening->key,
				(long long)(capture ? axes[i].count : 0));
}

/* Open the page of the tensor that the command line names. */
static void tensors_begin(struct view_tensors *screen, struct view_context *context,
			  struct err *err)
{
	const struct view_opening *opening = &context->opening;
	struct view_tensor_values *v = &screen->values;

	if (!view_grid_go(&screen->list, "key", opening->key, 0)) {
		err_set(err, ST_NOTFOUND,
			"--tensor %s: it is not recorded; --view tensors --csv has those that are",
			opening->key);
		return;
	}
	screen->opened = true;
	tensors_layout(screen, context);
	tensors_choose(screen, context, err);
	v->wanted = opening->step;
	v->first[0] = v->sample = opening->sample;
	v->first[1] = opening->head;
	screen->page =
		opening->page < 0 ? VIEW_TENSOR_VALUES : (enum view_tensor_page)opening->page;
	tensors_load_page(screen, context, err);
	tensors_check_opening(screen, opening, err);
	if (!err_stuck(err) && opening->page < 0 && v->both.count == 0) {
		screen->page = VIEW_TENSOR_CURVE;
		tensors_load_page(screen, context, err);
	}
}

static enum status tensors_load(void *state, struct view_context *context, bool news,
				struct err *err)
{
	struct view_tensors *screen = state;
	const bool differ = context->target && context->differ && !screen->opened;
	struct err own;

	err = err_start(err, &own);
	if (news || screen->list.table.row_count == 0)
		view__tensors_list(screen, context, err);
	if (err_stuck(err))
		return err->status;
	if (context->opening.key && !screen->begun) {
		screen->begun = true;
		tensors_begin(screen, context, err);
		return err->status;
	}
	/* With D list only tensors that differ, unless a page is open. */
	if (screen->list.differ != differ) {
		screen->list.differ = differ;
		view_grid_filter(&screen->list, screen->list.filter);
		if (!differ && screen->key[0])
			view_grid_go(&screen->list, "key", screen->key, 0);
	}
	tensors_layout(screen, context);
	if (!screen->opened)
		view_grid_layout(&screen->list, screen->table);
	tensors_choose(screen, context, err);
	if (screen->list.count > 0 && screen->heading.height > 0)
		tensors_load_page(screen, context, err);
	return err->status;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Handle a request of the open page. */
static enum view_answer tensors_page_request(struct view_tensors *screen, enum view_request request)
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

/* Handle a movement in the list. In an open page without rows it chooses another tensor. */
static enum view_answer tensors_list_request(struct view_tensors *screen,
					     struct view_context *context,
					     enum view_request request)
{
	const enum view_answer answer = view_grid_request(&screen->list, request);

	if (answer == VIEW_DRAW)
		return VIEW_LOAD;
	if (answer == VIEW_UNHANDLED && request == VIEW_BACK_REQUEST) {
		struct err err = {0};

		/* Tensors of all kinds again. */
		if (!screen->kind[0])
			return VIEW_UNHANDLED;
		view__tensors_list_kind(screen, context, "", &err);
		if (err_stuck(&err))
			view_message(context, err.text, NULL);
		return VIEW_LOAD;
	}
	return answer;
}

/* Show the next replica, and after the last one all. */
static enum view_answer replica_next(struct view_tensors *screen, struct view_context *context)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const struct view_tensor_capture *capture = view__values_capture(screen);

	if (screen->replicas < 2) {
		view_messagef(context, screen->replicas == 1
					       ? "tensors are of one replica"
					       : "no replica is recorded of these rows");
		return VIEW_DRAW;
	}
	screen->replica = screen->replica + 1 < screen->replicas ? screen->replica + 1 : -1;
	if (row) {
		screen->wanted_step = row->step;
		screen->wanted_update = row->weight_update;
	}
	if (capture) {
		screen->values.wanted =
			capture->step != IPS_NULL ? capture->step : capture->weight_update;
		screen->values.at = -1;
	}
	if (screen->replica < 0)
		view_messagef(context, "all %d replicas", screen->replicas);
	else
		view_messagef(context, "replica %d of %d", screen->replica, screen->replicas);
	return VIEW_LOAD;
}

static enum view_answer tensors_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_tensors *screen = state;
	enum view_answer answer = VIEW_UNHANDLED;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->page = (enum view_tensor_page)view_next_choice(
			(int)screen->page, VIEW_TENSOR_PAGE_COUNT, request);
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		if (screen->opened)
			return VIEW_JOIN;
		screen->opened = screen->list.count > 0;
		return VIEW_LOAD;
	case VIEW_JOIN_REQUEST:
		return VIEW_JOIN;
	case VIEW_UNIT_REQUEST: {
		struct view_tensor_values *v = &screen->values;
		const bool curve = screen->page == VIEW_TENSOR_CURVE && screen->list.count > 0;
		const bool map = screen->page == VIEW_TENSOR_VALUES && v->sequence.headed;

		v->by_row ^= map;
		view_message(context,
			     curve  ? report_scale_turn(&screen->scale, &screen->y, &screen->spread)
			     : !map ? "for the curve of a statistic (v), and maps of attention"
			     : v->by_row ? "shades: each row to its own greatest"
					 : "shades: one scale for all rows",
			     NULL);
		return curve || map ? VIEW_LOAD : VIEW_DRAW;
	}
	case VIEW_SELECT_REQUEST:
		return replica_next(screen, context);
	default:
		break;
	}
	if (screen->opened)
		answer = tensors_page_request(screen, request);
	if (answer != VIEW_UNHANDLED)
		return answer;
	switch (request) {
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST: {
		struct err err = {0};
		int count;

		report_tensor_columns(&count);
		screen->statistic = view_next_choice(screen->statistic, count, request);
		view__tensors_list(screen, context, &err);
		if (err_stuck(&err))
			view_message(context, err.text, NULL);
		return VIEW_LOAD;
	}
	case VIEW_BREAKDOWN_REQUEST:
		if (!screen->opened)
			return view__tensors_next_kind(screen, context);
		view_message(context, "for the values of a capture (v) and for the list (Esc)",
			     NULL);
		return VIEW_DRAW;
	default:
		return tensors_list_request(screen, context, request);
	}
}

static void tensors_status(const void *state, const struct view_context *context, char *out,
			   size_t size)
{
	const struct view_tensors *screen = state;
	char grid[160], replica[48], kind[VIEW_TENSORS_KIND + 8] = "",
							      scale[REPORT_SCALE_TEXT] = "";

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
		(void)report_scale_text(&screen->y, scale);
	snprintf(out, size, "statistic %s%s%s%s, %s", view__statistic(screen), scale, replica, kind,
		 grid);
}

static int tensors_height(const void *state, const struct view_context *context)
{
	const struct view_tensors *screen = state;
	const int64_t rows = min(screen->list.count, 1000);

	if (rows < 1)
		return VIEW_NOTHING_ROWS;
	if (!screen->opened)
		return (int)rows + 1 + 14;
	return screen->page == VIEW_TENSOR_VALUES
		       ? 1 + view__values_height(&screen->values, context->body.width)
		       : PAGE_ROWS;
}

static enum view_answer tensors_click(void *state, struct view_context *context, int x, int y)
{
	struct view_tensors *screen = state;
	enum view_answer answer = VIEW_UNHANDLED;

	(void)context;
	if (!screen->opened)
		answer = view_grid_click(&screen->list, x, y);
	if (answer == VIEW_UNHANDLED && screen->page >= VIEW_TENSOR_RULES)
		answer = view_grid_click(&screen->grid, x, y);
	return answer == VIEW_UNHANDLED ? VIEW_DRAW : VIEW_LOAD;
}

static void tensors_init(void *state)
{
	struct view_tensors *screen = state;
	const char *const *names;
	int count;

	screen->id[0] = screen->id[1] = IPS_NULL;
	screen->grid_of[0] = screen->grid_of[1] = screen->values.wanted = IPS_NULL;
	screen->replica = -1;
	screen->wanted_step = screen->wanted_update = IPS_NULL;
	screen->cursor = screen->values.at = -1;
	names = report_tensor_columns(&count);
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], "std") == 0)
			screen->statistic = i;
}

static void tensors_fini(void *state)
{
	struct view_tensors *screen = state;

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
}

/* The open page if it is a table, else the list, in which an open page leads to other tensors. */
static struct view_grid *tensors_grid(void *state)
{
	struct view_tensors *screen = state;

	return screen->opened && screen->page >= VIEW_TENSOR_RULES ? &screen->grid : &screen->list;
}

static const char *tensors_word(const void *state, enum view_request request)
{
	const struct view_tensors *screen = state;
	const bool values = screen->opened && screen->page == VIEW_TENSOR_VALUES;
	const bool rows = screen->opened && screen->page >= VIEW_TENSOR_RULES;

	if (screen->list.table.row_count == 0)
		return "";
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return screen->opened ? "" : NULL; /* opened: the same as o */
	case VIEW_BREAKDOWN_REQUEST:
		return values ? view__values_next(&screen->values) : screen->opened ? "" : "kind";
	case VIEW_SELECT_REQUEST:
		return screen->replicas > 1 ? "replica" : "";
	case VIEW_UNIT_REQUEST:
		return screen->page == VIEW_TENSOR_VALUES && screen->values.sequence.headed
			       ? "shades"
			       : NULL;
	case VIEW_STATISTIC_REQUEST:
		return rows ? "" : !values ? NULL : screen->values.both.count > 1 ? "time" : "";
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_REVERSE_REQUEST:
	case VIEW_FILTER_REQUEST:
		return !screen->opened || rows ? NULL : "";
	default:
		return NULL;
	}
}

const struct view_screen_ops view_tensors_ops = {
	.name = "tensors",
	.title = "Tensors",
	.brief = "Tens",
	.key = '8',
	.where = VIEW_ON_TENSORS,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_tensors),
	.init = tensors_init,
	.fini = tensors_fini,
	.grid = tensors_grid,
	.load = tensors_load,
	.draw = tensors_draw,
	.request = tensors_request,
	.word = tensors_word,
	.status = tensors_status,
	.height = tensors_height,
	.table = view__tensors_table,
	.place = tensors_place,
	.offers = tensors_offers,
	.go = tensors_go,
	.query = view__tensors_query,
	.click = tensors_click,
};
