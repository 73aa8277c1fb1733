/*
 * Which values were kept when: the captures of a tensor, those of two reports paired by their
 * moment.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

struct finding {
	struct view_tensors *screen;
	struct view_tensor_captures *found;
	struct prof_db *db;
	int side;
};

static enum status capture_add(struct view_tensor_captures *captures,
			       const struct view_tensor_capture *capture, struct err *err)
{
	if (mem_grow(&captures->list, &captures->capacity, (size_t)captures->count + 1,
		     sizeof(*captures->list)))
		return err_nomem(err);
	captures->list[captures->count++] = *capture;
	return ST_OK;
}

/* ---- of one report --------------------------------------------------------------------------- */

static enum status find_take(const struct finding *finding, const struct prof_query *query,
			     struct err *err)
{
	const char *mode = prof_column_text(query, 6);
	struct view_tensor_capture capture = {
		.step = prof_column_int(query, 2),
		.weight_update = prof_column_int(query, 3),
		.microbatch = prof_column_int(query, 4),
		.replica = prof_column_int(query, 5),
	};

	if (!view__replica_shows(finding->screen, capture.replica))
		return ST_OK;
	str_copy(capture.mode, sizeof(capture.mode), mode ? mode : "");
	capture.row_id[finding->side] = prof_column_int(query, 0);
	capture.context_id[finding->side] = prof_column_int(query, 1);
	capture.row_id[!finding->side] = capture.context_id[!finding->side] = IPS_NULL;
	return capture_add(finding->found, &capture, err);
}

/* Only first pieces: each is a capture. Its data is not read. */
static enum status find_range(void *user, int64_t from, int64_t to, struct err *err)
{
	const struct finding *finding = user;
	struct prof_query *query;
	enum status status = view__tensors_rows(
		&query, finding->screen, finding->side, finding->db,
		"SELECT p.row_id, p.context_id, c.step, c.weight_update, c.microbatch, c.replica, "
		"c.mode FROM capture_rows p LEFT JOIN contexts c ON c.context_id = p.context_id "
		"WHERE p.row_id >= :from AND p.row_id < :to AND p.tensor_id = :tensor "
		"AND coalesce(p.chunk, 0) = 0 AND (:rank IS NULL OR c.rank = :rank)",
		from, to, err);

	if (status != ST_OK)
		return status;
	while (prof_query_next(query, &status, err))
		status = find_take(finding, query, err);
	prof_query_close(query);
	finding->found->looked += to - from;
	return status;
}

static enum status find_all(struct finding *finding, struct err *err)
{
	struct view_tensor_captures *found = finding->found;
	enum status status;

	found->count = 0;
	found->looked = found->all = 0;
	if (!finding->db || finding->screen->id[finding->side] == IPS_NULL)
		return ST_OK;
	status = view__last_row(finding->db, "SELECT max(row_id) FROM capture_rows", &found->all,
				err);
	if (status == ST_OK)
		status = report_ranges(found->all, VIEW_TENSORS_CAPTURES, 64, find_range, finding,
				       err);
	return status;
}

/* ---- of both --------------------------------------------------------------------------------- */

/* A step tells alone; gradients have a weight update. */
static bool same_moment(const struct view_tensor_capture *a, const struct view_tensor_capture *b)
{
	if (a->replica != b->replica || a->step != b->step || strcmp(a->mode, b->mode) != 0)
		return false;
	return a->step != IPS_NULL ||
	       (a->weight_update == b->weight_update && a->microbatch == b->microbatch);
}

/* The capture of @target, from @from on and around the end, at @capture's moment that no other has
 * taken; -1: none. Those of two runs are in the same order mostly, so it is near. */
static int pair_find(const struct view_tensor_captures *target, const bool *taken, int from,
		     const struct view_tensor_capture *capture)
{
	for (int i = 0; i < target->count; i++) {
		const int at = (from + i) % target->count;

		if (!taken[at] && same_moment(&target->list[at], capture))
			return at;
	}
	return -1;
}

/* The captures only the Target has that come before its @end. */
static enum status pair_others(struct view_tensor_captures *both,
			       const struct view_tensor_captures *target, const bool *taken,
			       int *from, int end, struct err *err)
{
	enum status status = ST_OK;

	for (; *from < end && status == ST_OK; (*from)++)
		if (!taken[*from])
			status = capture_add(both, &target->list[*from], err);
	return status;
}

static enum status pair_up(struct view_tensor_values *values, int *partner, bool *taken,
			   struct err *err)
{
	const struct view_tensor_captures *source = &values->found[0], *target = &values->found[1];
	enum status status = ST_OK;
	int near = 0, from = 0;

	for (int i = 0; i < source->count; i++) {
		partner[i] = pair_find(target, taken, near, &source->list[i]);
		if (partner[i] >= 0) {
			taken[partner[i]] = true;
			near = partner[i] + 1;
		}
	}
	for (int i = 0; i < source->count && status == ST_OK; i++) {
		struct view_tensor_capture capture = source->list[i];

		if (partner[i] >= 0) {
			status = pair_others(&values->both, target, taken, &from, partner[i], err);
			capture.row_id[1] = target->list[partner[i]].row_id[1];
			capture.context_id[1] = target->list[partner[i]].context_id[1];
		}
		if (status == ST_OK)
			status = capture_add(&values->both, &capture, err);
	}
	if (status == ST_OK)
		status = pair_others(&values->both, target, taken, &from, target->count, err);
	return status;
}

enum status view__captures_load(struct view_tensors *screen, struct view_context *context,
				struct err *err)
{
	struct view_tensor_values *values = &screen->values;
	enum status status = ST_OK;
	bool *taken;
	int *partner;

	values->both.count = 0;
	arena_reset(&screen->page_arena);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++) {
		struct finding finding = {screen, &values->found[side],
					  view__tensors_db(context, side), side};

		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		status = find_all(&finding, err);
	}
	if (status != ST_OK)
		return status;
	partner = arena_alloc(&screen->page_arena, (size_t)values->found[0].count + 1,
			      sizeof(*partner));
	taken = arena_alloc(&screen->page_arena, (size_t)values->found[1].count + 1,
			    sizeof(*taken));
	if (!partner || !taken)
		return err_nomem(err);
	values->both.looked = values->found[0].looked + values->found[1].looked;
	values->both.all = values->found[0].all + values->found[1].all;
	return pair_up(values, partner, taken, err);
}
