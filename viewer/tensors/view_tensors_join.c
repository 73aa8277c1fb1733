/*
 * From the screen Tensors to others and back.
 *
 * Threading: as view_screen.h says.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/minmax.h"
#include "common/str.h"

static void take_number(const struct view_grid *grid, const char *column, int64_t *out)
{
	const struct report_cell *cell = view_grid_cell(grid, column);

	if (cell && cell->type == PROF_INT)
		*out = cell->integer;
}

static void take_text(const struct view_grid *grid, const char *column, char *out)
{
	const struct report_cell *cell = view_grid_cell(grid, column);

	if (cell && cell->text)
		view_place_text(out, cell->text);
}

/* When: the row under the cursor of the page that is open. */
static void place_moment(const struct view_tensors *screen, struct view_place *out)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const struct view_tensor_capture *capture = view__values_capture(screen);

	if (screen->page >= VIEW_TENSOR_RULES) {
		take_number(&screen->grid, "step", &out->step);
		take_number(&screen->grid, "weight_update", &out->weight_update);
		take_number(&screen->grid, "epoch", &out->epoch);
		take_number(&screen->grid, "microbatch", &out->microbatch);
		take_number(&screen->grid, "replica", &out->replica);
		take_number(&screen->grid, "at_ns", &out->time_ns);
		take_text(&screen->grid, "phase", out->phase);
		take_text(&screen->grid, "mode", out->mode);
		take_text(&screen->grid, "rule", out->rule);
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
}

bool view__tensors_place(const void *state, const struct view_context *context,
			 struct view_place *out)
{
	const struct view_tensors *screen = state;

	(void)context;
	view_place_clear(out);
	if (screen->list.count == 0)
		return false;
	take_text(&screen->list, "key", out->key);
	take_text(&screen->list, "queue", out->queue);
	take_text(&screen->list, "layer", out->layer);
	take_number(&screen->list, "stage", &out->stage);
	take_number(&screen->list, "rank", &out->rank);
	if (screen->opened)
		place_moment(screen, out);
	return true;
}

/* The tensors of a stage, some of which are of @place's queue. */
static bool is_of_stage(const struct view_place *place)
{
	return place->queue[0] && !place->key[0] && !place->layer[0] && place->stage != IPS_NULL;
}

bool view__tensors_offers(const struct view_place *place, char *out, size_t size)
{
	const bool stage = is_of_stage(place);
	/* A metric that a rule is about is called by a key, too. */
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

/* The row of the list of @key, and of @queue where it has such a one. */
static bool go_key(struct view_tensors *screen, const struct view_place *place)
{
	struct view_grid *list = &screen->list;
	const int height = screen->table.height;

	if (!view_grid_go(list, height, "key", place->key, 0))
		return false;
	for (int64_t i = 0; place->queue[0] && i < list->count; i++) {
		const int64_t before = list->at;
		const struct report_cell *key, *queue;

		list->at = i;
		key = view_grid_cell(list, "key");
		queue = view_grid_cell(list, "queue");
		if (key && queue && key->text && queue->text &&
		    strcmp(key->text, place->key) == 0 && strcmp(queue->text, place->queue) == 0)
			return true;
		list->at = before;
	}
	return true;
}

/* How well the list's row fits the work of a stage; -1: not at all. */
static int stage_score(const struct view_grid *list, const struct view_place *place)
{
	const struct report_cell *stage = view_grid_cell(list, "stage");
	const struct report_cell *kind = view_grid_cell(list, "kind");
	const struct report_cell *rows = view_grid_cell(list, "rows");
	const bool forward = strcmp(place->phase, "F") == 0;

	if (!stage || stage->type != PROF_INT || stage->integer != place->stage)
		return -1;
	return 2 * (rows && rows->type == PROF_INT && rows->integer > 0) +
	       (kind && kind->text && (strcmp(kind->text, "activation") == 0) == forward);
}

/* The row of a tensor of @place's stage: one that has rows, of the kind that the phase makes. */
static bool go_stage(struct view_tensors *screen, const struct view_place *place)
{
	struct view_grid *list = &screen->list;
	int64_t found = -1;
	int best = -1;

	for (list->at = 0; list->at < list->count; list->at++) {
		const int score = stage_score(list, place);

		if (score > best) {
			best = score;
			found = list->at;
		}
	}
	list->at = max(0, found);
	return found >= 0;
}

static bool go_row(struct view_tensors *screen, const struct view_place *place)
{
	if (is_of_stage(place))
		return go_stage(screen, place);
	return place->key[0] ? go_key(screen, place)
			     : view_grid_go(&screen->list, screen->table.height, "layer",
					    place->layer, 0);
}

enum status view__tensors_go(void *state, struct view_context *context,
			     const struct view_place *place, struct err *err)
{
	struct view_tensors *screen = state;
	const bool key = place->key[0] != '\0';
	bool found = go_row(screen, place);

	if (!found && screen->kind[0]) {
		const enum status status = view__tensors_list_kind(screen, context, "", err);

		if (status != ST_OK)
			return status;
		found = go_row(screen, place);
	}
	if (!found && is_of_stage(place))
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
