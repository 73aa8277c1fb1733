/*
 * Which tensors are watched, before anything is made. As train_outfeed_watch.h says.
 */
#include <string.h>

#include "model/layers/layer.h"
#include "trainer/train_outfeed_watch.h"

#define WATCH "watch" /* the queue of what no queue sends */

struct planning {
	struct train_session *session;
	struct train_watch_plan *plan;
	struct err *err;
};

/* ---- what tensors are ------------------------------------------------------------------------ */

int train_watch_origin(const struct model *model, int layer)
{
	while (layer != MODEL_INPUT && model->layers[layer].ops->pass_through)
		layer = model->layers[layer].inputs[0];
	return layer;
}

enum outfeed_activity train_watch_activity(const struct model *model, int layer)
{
	static const enum outfeed_activity activities[MODEL_ACTIVATIONS] = {
		[MODEL_RELU] = OUTFEED_RELU,
		[MODEL_RELU6] = OUTFEED_RELU,
		[MODEL_TANH] = OUTFEED_TANH,
		[MODEL_SIGMOID] = OUTFEED_SIGMOID,
	};
	const int origin = train_watch_origin(model, layer);
	float most;

	if (origin == MODEL_INPUT)
		return OUTFEED_NO_ACTIVITY;
	if (layer_is_relu(&model->layers[origin], &most))
		return OUTFEED_RELU;
	return activities[model->layers[origin].activation];
}

enum status train_watch_output(struct outfeed_tensor_params *out, struct train_session *session,
			       int layer, struct err *err)
{
	const struct model *model = session->model;
	const struct model_shape *from =
		layer == MODEL_INPUT ? &model->input : &model->layers[layer].output;
	int64_t *shape = arena_alloc(&session->arena, MODEL_DIMS + 1, sizeof(*shape));

	if (!shape)
		return err_nomem(err);
	shape[0] = session->run->data.batch_size;
	memcpy(shape + 1, from->dim, sizeof(from->dim));
	*out = (struct outfeed_tensor_params){
		.queue = WATCH,
		.key = layer == MODEL_INPUT ? "input" : model->layers[layer].name,
		.kind = OUTFEED_ACTIVATION,
		.layer = layer == MODEL_INPUT ? NULL : model->layers[layer].name,
		.stage = layer == MODEL_INPUT ? 0 : session->layout->stage[layer],
		.shape = shape,
		.ndim = from->ndim < OUTFEED_NDIM_MAX ? from->ndim + 1 : OUTFEED_NDIM_MAX,
		.activity = train_watch_activity(model, layer),
	};
	return ST_OK;
}

struct outfeed_tensor_params train_watch_variable(const struct train_session *session, int number)
{
	const struct model_param *param = &session->model->params[number];

	return (struct outfeed_tensor_params){
		.queue = WATCH,
		.key = param->name,
		.kind = OUTFEED_WEIGHT,
		.layer = session->model->layers[param->layer].name,
		.stage = session->layout->stage[param->layer],
		.shape = param->shape.dim,
		.ndim = param->shape.ndim,
	};
}

/* ---- what a queue sends ---------------------------------------------------------------------- */

static bool queue_sends_output(const struct train_session *session, int layer)
{
	const struct run_queues *plan = &session->outfeed_plan;

	for (int i = 0; i < plan->send_count; i++)
		if (plan->sends[i].sent &&
		    train_watch_origin(session->model, plan->sends[i].layer) == layer)
			return true;
	return false;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* A rule that fits nothing is most likely misspelt. */
static void mark_rules(const struct train_watch_plan *plan, const char *key, enum outfeed_kind kind)
{
	for (int i = 0; i < plan->policy.count; i++) {
		struct outfeed_rule rule = plan->policy.rules[i];
		const struct outfeed_policy alone = {&rule, 1, 0};

		rule.tier = OUTFEED_FULL;
		plan->used[i] |=
			outfeed_policy_choose(&alone, key, kind, false).tier == OUTFEED_FULL;
	}
}

static bool add(const struct planning *p, const struct outfeed_tensor_params *tensor, int number,
		int slot, size_t count)
{
	const struct outfeed_choice choice =
		outfeed_policy_choose(&p->plan->policy, tensor->key, tensor->kind, false);

	mark_rules(p->plan, tensor->key, tensor->kind);
	if (choice.tier == OUTFEED_OFF)
		return false;
	p->plan->tensors[p->plan->count++] =
		(struct train_watched){*tensor, choice, count, number, slot};
	return true;
}

static enum status plan_outputs(const struct planning *p)
{
	struct train_session *session = p->session;

	for (int i = 0; i < session->model->layer_count; i++) {
		const struct model_layer *layer = &session->model->layers[i];
		const size_t count = (size_t)session->run->data.batch_size *
				     (size_t)model_shape_count(&layer->output);
		struct outfeed_tensor_params tensor;

		if (layer->ops->pass_through || layer->output.ndim >= OUTFEED_NDIM_MAX ||
		    queue_sends_output(session, i))
			continue;
		if (train_watch_output(&tensor, session, i, p->err) != ST_OK)
			return ST_NOMEM;
		if (add(p, &tensor, i, -1, count))
			session->taps[i] |=
				p->plan->tensors[p->plan->count - 1].choice.tier == OUTFEED_HEALTH
					? STAGE_LOOK | STAGE_ABS_MAX
					: STAGE_LOOK;
	}
	return ST_OK;
}

/* Of one variable: its gradient, its slots, itself. */
static enum status plan_variable(const struct planning *p, int number)
{
	const struct model_param *param = &p->session->model->params[number];
	const struct run_gradient *gradient = &p->session->outfeed_plan.gradients[number];
	const struct optimizer *optimizer = &p->session->optimizer;
	const struct outfeed_tensor_params variable = train_watch_variable(p->session, number);
	struct outfeed_tensor_params tensor = variable;

	for (int s = -1; param->trainable && s < optimizer_slots(optimizer); s++) {
		tensor.kind = s < 0 ? OUTFEED_GRADIENT : OUTFEED_OPTIMIZER_STATE;
		tensor.key = s < 0 ? gradient->key
				   : arena_printf(&p->session->arena, "%s/%s/%s",
						  optimizer_name(optimizer),
						  optimizer_slot_name(optimizer, s), param->name);
		if (!tensor.key)
			return err_nomem(p->err);
		if (s >= 0 || !gradient->sent)
			add(p, &tensor, number, s, param->count);
		else
			mark_rules(p->plan, tensor.key, tensor.kind);
	}
	add(p, &variable, number, -1, param->count);
	return ST_OK;
}

bool train_watch_wanted(const struct run_file *run, bool recorded)
{
	return recorded ||
	       (run->health.wanted && (run->health.stop.count > 0 || run->health.rules));
}

static unsigned watched_kinds(const struct run_file *run)
{
	static const unsigned kinds[] = {
		[RUN_WATCH_NOTHING] = 0,
		[RUN_WATCH_GRADIENTS] = 1u << OUTFEED_GRADIENT,
		[RUN_WATCH_ALL] = 1u << OUTFEED_ACTIVATION | 1u << OUTFEED_GRADIENT,
	};

	return run->health.wanted ? kinds[run->health.watch] : 0;
}

enum status train_watch_plan(struct train_session *session, bool recorded, struct err *err)
{
	const struct json_at capture = json_root(session->run->path, session->run->outfeed.capture);
	const struct model *model = session->model;
	const size_t each = 2 + (size_t)optimizer_slots(&session->optimizer);
	struct train_watch_plan *plan = &session->watch_plan;
	const struct planning p = {session, plan, err};
	enum status status;

	status = outfeed_policy_read(&plan->policy, &capture, err);
	if (status != ST_OK)
		return status;
	plan->policy.watched = watched_kinds(session->run);
	if (session->layout->steps_per_epoch == 0 || !train_watch_wanted(session->run, recorded))
		return ST_OK;
	plan->tensors = arena_alloc(&session->arena,
				    (size_t)model->layer_count + each * (size_t)model->param_count,
				    sizeof(*plan->tensors));
	plan->used =
		arena_alloc(&session->arena, (size_t)plan->policy.count + 1, sizeof(*plan->used));
	if (!plan->tensors || !plan->used)
		return err_nomem(err);
	for (int i = 0; i < session->outfeed_plan.send_count; i++)
		mark_rules(plan, session->outfeed_plan.sends[i].key, OUTFEED_ACTIVATION);
	status = plan_outputs(&p);
	for (int i = model->param_count - 1; i >= 0 && status == ST_OK; i--)
		status = plan_variable(&p, i);
	return status;
}
