/*
 * Recording what is watched. As the header says; which tensors there are, train_outfeed_watched.c
 * plans.
 */
#include "trainer/train_outfeed_watch.h"

#include "common/clock.h"

struct train_watch {
	const struct train_session *session;
	struct outfeed_tensor **activation; /* by layer; NULL: not watched, here and below */
	struct outfeed_tensor **gradient, **weight; /* by parameter */
	struct outfeed_tensor **state;              /* by slot and parameter */
	bool updates;                               /* any variable or slot is watched */
	/* What the trail of a bad number may name, watched or not. */
	struct outfeed_tensor_params *output;   /* by layer and 1: the first is the model's input */
	struct outfeed_tensor_params *variable; /* by parameter */
};

/* ---- making ---------------------------------------------------------------------------------- */

static enum status new_arrays(struct train_watch *watch, struct arena *arena, struct err *err)
{
	const struct model *model = watch->session->model;
	const size_t layers = (size_t)model->layer_count + 1;
	const size_t params = (size_t)model->param_count + 1;
	const size_t slots = (size_t)optimizer_slots(&watch->session->optimizer);

	watch->activation = arena_alloc(arena, layers, sizeof(struct outfeed_tensor *));
	watch->gradient = arena_alloc(arena, params, sizeof(struct outfeed_tensor *));
	watch->weight = arena_alloc(arena, params, sizeof(struct outfeed_tensor *));
	watch->state = arena_alloc(arena, params * (slots + 1), sizeof(struct outfeed_tensor *));
	watch->output = arena_alloc(arena, layers, sizeof(*watch->output));
	watch->variable = arena_alloc(arena, params, sizeof(*watch->variable));
	if (!watch->activation || !watch->gradient || !watch->weight || !watch->state ||
	    !watch->output || !watch->variable)
		return err_nomem(err);
	return ST_OK;
}

static enum status name_sources(struct train_watch *watch, struct train_session *session,
				struct err *err)
{
	const struct model *model = session->model;
	enum status status = ST_OK;

	for (int i = MODEL_INPUT; i < model->layer_count && status == ST_OK; i++)
		status = train_watch_output(&watch->output[i + 1], session, i, err);
	for (int p = 0; p < model->param_count; p++)
		watch->variable[p] = train_watch_variable(session, p);
	return status;
}

static struct outfeed_tensor **place_of(const struct train_watch *watch,
					const struct train_watched *watched)
{
	const int params = watch->session->model->param_count;

	switch (watched->tensor.kind) {
	case OUTFEED_GRADIENT:
		return &watch->gradient[watched->number];
	case OUTFEED_WEIGHT:
		return &watch->weight[watched->number];
	case OUTFEED_OPTIMIZER_STATE:
		return &watch->state[watched->slot * params + watched->number];
	default:
		return &watch->activation[watched->number];
	}
}

enum status train_watch_new(struct train_watch **out, struct train_session *session,
			    struct outfeed *outfeed, struct err *err)
{
	struct train_watch *watch = arena_alloc(&session->arena, 1, sizeof(*watch));
	enum status status;

	*out = watch;
	if (!watch)
		return err_nomem(err);
	watch->session = session;
	status = new_arrays(watch, &session->arena, err);
	if (status == ST_OK)
		status = name_sources(watch, session, err);
	for (int i = 0; i < session->watch_plan.count && status == ST_OK; i++) {
		const struct train_watched *watched = &session->watch_plan.tensors[i];

		status = outfeed_tensor_add(outfeed, place_of(watch, watched), &watched->tensor,
					    err);
		watch->updates |= watched->tensor.kind == OUTFEED_WEIGHT ||
				  watched->tensor.kind == OUTFEED_OPTIMIZER_STATE;
	}
	return status;
}

/* ---- what led to a value --------------------------------------------------------------------- */

static int add_variables(const struct train_watch *watch, int64_t replica, int layer,
			 struct outfeed_source out[OUTFEED_TRAIL], int count)
{
	const struct model *model = watch->session->model;
	const struct model_layer *of = &model->layers[layer];

	for (int p = of->first_param; p < of->first_param + of->param_count; p++) {
		if (count == OUTFEED_TRAIL)
			break;
		out[count++] = (struct outfeed_source){&watch->variable[p],
						       watch->session->replica[replica].weights +
							       model->params[p].offset,
						       model->params[p].count};
	}
	return count;
}

int train_watch_sources(const struct train_watch *watch, const struct train_outfeed_place *place,
			const struct stage_tapped *tapped, struct outfeed_source out[OUTFEED_TRAIL])
{
	const struct model *model = watch->session->model;
	const struct model_layer *layer = &model->layers[tapped->layer];
	const int origin = train_watch_origin(model, tapped->layer);
	int count = 0;

	/* What passes its input on has come from where that came from. */
	for (int i = 0; i < tapped->input_count && origin == tapped->layer; i++) {
		const int from = train_watch_origin(model, layer->inputs[i]);

		if (tapped->inputs[i].values)
			out[count++] = (struct outfeed_source){&watch->output[from + 1],
							       tapped->inputs[i].values,
							       tapped->inputs[i].count};
	}
	/* Another stage's variables are another worker's. */
	if (origin == MODEL_INPUT ||
	    watch->session->layout->stage[origin] != (int)place->keys.stage)
		return count;
	return add_variables(watch, place->keys.replica, origin, out, count);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* What a tensor is watched for is the recording's, so it pays. */
static enum status look(const struct train_watch *watch, struct outfeed_tensor *tensor,
			const struct outfeed_moment *moment, const float *values, size_t count,
			struct err *err)
{
	const uint64_t begun = clock_ns();
	enum status status = outfeed_record(tensor, moment, values, count, NULL, err);

	ips_recording_spent(watch->session->recording, (int64_t)(clock_ns() - begun), 0);
	return status;
}

bool train_watch_looks(const struct train_watch *watch, const struct train_outfeed_place *place)
{
	const struct train_session *session = watch->session;
	const struct train_stage *stage =
		&session->replica[place->keys.replica].stage[place->keys.stage];

	for (int i = stage->first_layer; i < stage->first_layer + stage->layer_count; i++)
		if (outfeed_due(watch->activation[i], &place->keys))
			return true;
	return false;
}

enum status train_watch_activation(const struct train_watch *watch,
				   const struct outfeed_moment *moment,
				   const struct stage_tapped *tapped, struct err *err)
{
	struct outfeed_tensor *tensor = watch->activation[tapped->layer];

	if (!outfeed_due(tensor, &moment->keys))
		return ST_OK;
	return look(watch, tensor, moment, tapped->values, tapped->count, err);
}

enum status train_watch_gradient(const struct train_watch *watch,
				 const struct train_outfeed_place *place, int param,
				 const float *values, struct err *err)
{
	const struct train_session *session = watch->session;
	const struct model_param *of = &session->model->params[param];
	const struct outfeed_source source = {
		&watch->variable[param], session->replica[place->keys.replica].weights + of->offset,
		of->count};
	struct outfeed_moment moment;

	if (!outfeed_due(watch->gradient[param], &place->keys))
		return ST_OK;
	moment = train_outfeed_moment(session, place, OUTFEED_GRADIENT, param, 0);
	moment.sources = &source;
	moment.source_count = 1;
	return look(watch, watch->gradient[param], &moment, values, of->count, err);
}

static enum status record(const struct train_watch *watch, struct outfeed_tensor *tensor,
			  const struct train_outfeed_place *place, enum outfeed_kind kind,
			  int number, int slot, const float *values, struct err *err)
{
	const struct train_session *session = watch->session;
	struct outfeed_moment moment;

	if (!outfeed_due(tensor, &place->keys))
		return ST_OK;
	moment = train_outfeed_moment(session, place, kind, number, slot);
	return look(watch, tensor, &moment, values, session->model->params[number].count, err);
}

enum status train_watch_update(const struct train_watch *watch,
			       const struct train_outfeed_place *place, struct err *err)
{
	const struct train_session *session = watch->session;
	const struct model *model = session->model;
	const struct train_replica *replica = &session->replica[place->keys.replica];
	const int slots = optimizer_slots(&session->optimizer);
	enum status status = ST_OK;

	for (int p = 0; watch->updates && p < model->param_count && status == ST_OK; p++) {
		const struct model_param *param = &model->params[p];

		if (session->layout->stage[param->layer] != (int)place->keys.stage)
			continue;
		for (int s = 0; s < slots && status == ST_OK; s++)
			status = record(watch, watch->state[s * model->param_count + p], place,
					OUTFEED_OPTIMIZER_STATE, p, s,
					replica->slots + (size_t)s * model->weights + param->offset,
					err);
		if (status == ST_OK)
			status = record(watch, watch->weight[p], place, OUTFEED_WEIGHT, p, 0,
					replica->weights + param->offset, err);
	}
	return status;
}
