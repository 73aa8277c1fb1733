/*
 * Options of how a stage is planned, as Keras for IPUs takes them for each stage of a pipeline.
 *
 * Threading: none. Ownership: lists lie in the run's arena.
 */
#include <math.h>

#include "common/mem.h"
#include "model/run/run_internal.h"

static const struct run_plan run_unsaid = {NAN, RUN_PARTIALS_UNSAID};

static enum status run_read_partials(const struct run_value *fill, const struct json_at *at,
				     enum run_partials *out)
{
	const char *text;
	enum status status = json_text(at, &text, fill->err);
	int number;

	if (status != ST_OK)
		return status;
	number = run__choice("float half", text);
	if (number < 0)
		return json_fail(at, fill->err, "must be \"float\" or \"half\", not \"%s\"", text);
	*out = (enum run_partials)number;
	return ST_OK;
}

/* {availableMemoryProportion, partialsType}, or null. */
static enum status run_read_plan(const struct run_value *fill, const struct json_at *at,
				 struct run_plan *out)
{
	static const char *const keys[] = {"availableMemoryProportion", "partialsType"};
	enum status status;
	struct json_at value;

	*out = run_unsaid;
	if (json_is_null(at))
		return ST_OK;
	status = json_only_keys(at, keys, ARRAY_LEN(keys), fill->err);
	if (status == ST_OK && json_child(at, keys[0], &value) && !json_is_null(&value))
		status = run__fill_number(fill, &value, 0, 1, &out->available_memory_proportion);
	if (status == ST_OK && json_child(at, keys[1], &value) && !json_is_null(&value))
		status = run_read_partials(fill, &value, &out->partials_type);
	return status;
}

/* {convolution, matmul}, or null. */
static enum status run_read_poplar(const struct run_value *fill, const struct json_at *at,
				   struct run_poplar *out)
{
	static const char *const keys[] = {"convolution", "matmul"};
	enum status status = ST_OK;
	struct json_at value;

	*out = (struct run_poplar){run_unsaid, run_unsaid};
	if (json_is_null(at))
		return ST_OK;
	if (json_child(at, "slice", &value))
		return json_fail(&value, fill->err,
				 "slices are not planned here: give convolution and matmul alone");
	status = json_only_keys(at, keys, ARRAY_LEN(keys), fill->err);
	if (status == ST_OK && json_child(at, keys[0], &value))
		status = run_read_plan(fill, &value, &out->convolution);
	if (status == ST_OK && json_child(at, keys[1], &value))
		status = run_read_plan(fill, &value, &out->matmul);
	return status;
}

enum status run__fill_plan(const struct run_value *fill)
{
	struct run_poplar poplar;
	enum status status = run_read_poplar(fill, fill->at, &poplar);

	if (status == ST_OK)
		run__store(fill, &poplar, sizeof(poplar));
	return status;
}

enum status run__fill_plans(const struct run_value *fill)
{
	struct run_poplars poplars = {.given = !json_is_null(fill->at)};
	enum status status = poplars.given ? json_array(fill->at, fill->err) : ST_OK;
	struct run_poplar *items = NULL;
	struct json_at item;

	if (status == ST_OK && poplars.given) {
		items = arena_alloc(fill->arena, (size_t)json_count(fill->at) + 1, sizeof(*items));
		if (!items)
			return err_nomem(fill->err);
	}
	while (status == ST_OK && poplars.given && json_item(fill->at, poplars.count, &item)) {
		status = run_read_poplar(fill, &item, &items[poplars.count]);
		poplars.count++;
	}
	poplars.items = items;
	if (status == ST_OK)
		run__store(fill, &poplars, sizeof(poplars));
	return status;
}

/* ---- what they come to ----------------------------------------------------------------------- */

static void run_say(struct run_plan *into, const struct run_plan *from)
{
	if (!isnan(from->available_memory_proportion))
		into->available_memory_proportion = from->available_memory_proportion;
	if (from->partials_type != RUN_PARTIALS_UNSAID)
		into->partials_type = from->partials_type;
}

struct run_poplar run_poplar_of(const struct run_file *run, char phase, int stage)
{
	const struct run_poplars *all = phase == IPU_PHASE_F ? &run->pipeline.forward_options
							     : &run->pipeline.backward_options;
	struct run_poplar out = {run->ipu.convolutions, run->ipu.matmuls};
	const struct run_poplar *from = NULL;

	if (phase == IPU_PHASE_U)
		from = &run->pipeline.update_options;
	else if (stage >= 0 && stage < all->count)
		from = &all->items[stage];
	if (from) {
		run_say(&out.convolution, &from->convolution);
		run_say(&out.matmul, &from->matmul);
	}
	return out;
}

enum run_recomputation run_recomputation(const struct run_file *run)
{
	if (!run->pipeline.wanted || !run->ipu.wanted || !run->ipu.allow_recompute)
		return RUN_RECOMPUTE_NOTHING;
	if (run->pipeline.recomputation_mode != RUN_RECOMPUTE_AUTO)
		return run->pipeline.recomputation_mode;
	return ipu_schedule_row(run->pipeline.schedule)->replays & IPU_REPLAY_AHEAD
		       ? RUN_RECOMPUTE_THEN_BACKPROPAGATE
		       : RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
}
