/*
 * Plans the registry of tensors from the run file's queues and rules. See the header.
 */
#include "trainer/train_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer.h"
#include "model/layers/layer_config.h"

#define WATCH "watch" /* the queue of tensors that no queue sends */
#define INPUT "input" /* the model's input */

/* ---- properties of tensors ------------------------------------------------------------------- */

int train_tensors_origin(const struct model *model, int layer)
{
	while (layer != MODEL_INPUT && model->layers[layer].ops->pass_through)
		layer = model->layers[layer].inputs[0];
	return layer;
}

/* Return when values of the output of @layer count as active. */
static enum outfeed_activity activity_of(const struct model *model, int layer)
{
	static const enum outfeed_activity activities[MODEL_ACTIVATIONS] = {
		[MODEL_RELU] = OUTFEED_RELU,
		[MODEL_RELU6] = OUTFEED_RELU,
		[MODEL_TANH] = OUTFEED_TANH,
		[MODEL_SIGMOID] = OUTFEED_SIGMOID,
	};
	const int origin = train_tensors_origin(model, layer);
	float most;

	if (origin == MODEL_INPUT)
		return OUTFEED_NO_ACTIVITY;
	if (layer_is_relu(&model->layers[origin], &most))
		return OUTFEED_RELU;
	return activities[model->layers[origin].activation];
}

/* Does an Embedding use the output of @layer (or MODEL_INPUT) as row numbers? */
static bool is_looked_up(const struct model *model, int layer)
{
	for (int i = 0; i < model->layer_count; i++)
		if (model->layers[i].ops->looks_up &&
		    train_tensors_origin(model, model->layers[i].inputs[0]) == layer)
			return true;
	return false;
}

const char *train_tensors_tokens(const struct train_session *session)
{
	const struct model *model = session->model;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		if (!layer->ops->looks_up)
			continue;
		i = train_tensors_origin(model, layer->inputs[0]);
		return i == MODEL_INPUT ? INPUT : model->layers[i].name;
	}
	return NULL;
}

/* Return the names of the dimensions of a layer's output. */
static const char *output_dims(const struct model *model, int layer,
			       const struct model_shape *shape)
{
	static const char *const plain[] = {"batch", "batch, features", "batch, steps, features",
					    "batch, height, width, channels"};

	if (shape->ndim == 1 && is_looked_up(model, layer))
		return "batch, tokens";
	if (shape->ndim == 2 && model_input_is_rows(model))
		return "batch, tokens, features";
	return shape->ndim < (int)ARRAY_LEN(plain) ? plain[shape->ndim] : NULL;
}

static const char *variable_dims(const struct model *model, const struct model_param *param)
{
	const struct model_layer *layer = &model->layers[param->layer];
	const bool last =
		param ==
		&model->params[layer->first_param + layer->param_count - 1 - layer->use_bias];

	switch (layer->ops->kind) {
	case LAYER_KIND_embedding:
		return "tokens, features";
	case LAYER_KIND_position_embedding:
		return "positions, features";
	case LAYER_KIND_multi_head_attention:
		if (param->shape.ndim == 3)
			return last ? "heads, width, features" : "features, heads, width";
		return param->shape.ndim == 2 ? "heads, width" : NULL;
	default:
		return NULL;
	}
}

/* Describe the output of a layer; MODEL_INPUT: the model's input. */
static void describe_output(struct outfeed_tensor_params *out, const struct train_session *session,
			    int number, int64_t shape[MODEL_DIMS + 1])
{
	const struct model *model = session->model;
	const struct model_layer *layer = number == MODEL_INPUT ? NULL : &model->layers[number];
	const struct model_shape *from = !layer ? &model->input : &layer->output;

	shape[0] = session->run->data.batch_size;
	memcpy(shape + 1, from->dim, sizeof(from->dim));
	*out = (struct outfeed_tensor_params){
		.queue = WATCH,
		.key = !layer ? INPUT : layer->name,
		.kind = OUTFEED_ACTIVATION,
		.layer = !layer ? NULL : layer->name,
		.stage = !layer ? 0 : session->layout->stage[number],
		.shape = shape,
		.ndim = min(from->ndim + 1, OUTFEED_NDIM_MAX),
		.activity = activity_of(model, number),
		.dims = output_dims(model, number, from),
	};
}

/* Describe all values that can be recorded or named in the trail of a bad number. */
static enum status describe_model(struct train_session *session, struct err *err)
{
	const struct model *model = session->model;
	struct train_tensors *tensors = &session->tensors;
	const size_t outputs = (size_t)model->layer_count + 1;
	int64_t(*shapes)[MODEL_DIMS + 1] = arena_alloc(&session->arena, outputs, sizeof(*shapes));

	tensors->output = arena_alloc(&session->arena, outputs, sizeof(*tensors->output));
	tensors->variable = arena_alloc(&session->arena, (size_t)model->param_count + 1,
					sizeof(*tensors->variable));
	if (!shapes || !tensors->output || !tensors->variable)
		return err_nomem(err);
	for (int i = MODEL_INPUT; i < model->layer_count; i++)
		describe_output(&tensors->output[i + 1], session, i, shapes[i + 1]);
	for (int p = 0; p < model->param_count; p++) {
		const struct model_param *param = &model->params[p];

		tensors->variable[p] = (struct outfeed_tensor_params){
			.queue = WATCH,
			.key = param->name,
			.kind = OUTFEED_WEIGHT,
			.layer = model->layers[param->layer].name,
			.stage = session->layout->stage[param->layer],
			.shape = param->shape.dim,
			.ndim = param->shape.ndim,
			.dims = variable_dims(model, param),
		};
	}
	return ST_OK;
}

static size_t output_count(const struct train_session *session, int layer)
{
	return (size_t)session->run->data.batch_size *
	       (size_t)model_shape_count(&session->model->layers[layer].output);
}

/* ---- tensors sent by queues ------------------------------------------------------------------ */

static struct train_tensor *add_sent_tensor(struct train_session *session, int queue,
					    const struct outfeed_tensor_params *what,
					    const char *key)
{
	struct train_tensors *tensors = &session->tensors;
	struct train_tensor *tensor = &tensors->items[tensors->count++];

	*tensor = (struct train_tensor){.params = *what, .queue = queue};
	tensor->params.key = key;
	tensor->choice = outfeed_policy_choose(&tensors->policy, key, what->kind, OUTFEED_SENT);
	return tensor;
}

/* Add gradients in reverse order, as the tutorial's optimizer does. */
static void add_queues(struct train_session *session)
{
	const struct run_queues *plan = &session->outfeed_plan;
	const struct model *model = session->model;
	struct train_tensor *tensor;

	for (int i = 0; i < plan->send_count; i++) {
		const struct run_send *send = &plan->sends[i];

		tensor = add_sent_tensor(session, send->queue,
					 &session->tensors.output[send->layer + 1], send->key);
		tensor->number = send->layer;
		tensor->count = output_count(session, send->layer);
		tensor->final = send->final;
		tensor->sent = send->sent;
		if (send->sent)
			session->taps[send->layer] |= STAGE_LOOK;
	}
	for (int q = 0; q < plan->queue_count; q++) {
		for (int p = model->param_count - 1; plan->queues[q].gradients && p >= 0; p--) {
			struct outfeed_tensor_params gradient = session->tensors.variable[p];

			if (!model->params[p].trainable)
				continue;
			gradient.kind = OUTFEED_GRADIENT;
			tensor = add_sent_tensor(session, q, &gradient, plan->gradients[p].key);
			tensor->number = p;
			tensor->count = model->params[p].count;
			tensor->final = true;
			tensor->sent = plan->gradients[p].sent;
		}
	}
}

/* A ring is as deep as the device's. A worker of several stages may have enqueued a micro-batch's
 * gradients of one stage before those of an earlier micro-batch of another stage, so the ring gets
 * room for the micro-batches of a pipeline run. */
int64_t train_tensors_room(const struct train_session *session, int number)
{
	const struct run_queue *queue = &session->outfeed_plan.queues[number];
	const struct run_layout *layout = session->layout;
	const bool ahead = queue->gradients && layout->ipus_used < layout->stages &&
			   session->run->outfeed.optimizer_mode == RUN_AFTER_COMPUTE;
	const int64_t ring =
		session->run->outfeed.buffer_depth + (ahead ? layout->accumulation : 0);
	const int64_t all =
		queue->gradients && session->run->outfeed.optimizer_mode == RUN_BEFORE_APPLY
			? layout->updates_per_execution
			: layout->steps_per_execution;

	if (session->run->outfeed.last)
		return 1;
	if (session->values == TRAIN_VALUES_RUNNING)
		return min(ring, all);
	return session->values == TRAIN_VALUES_EPOCH ? all * layout->executions_per_epoch : all;
}

double train_tensors_retained(const struct train_session *session)
{
	const struct train_tensors *tensors = &session->tensors;
	double bytes = 0;

	if (session->values == TRAIN_VALUES_NONE)
		return 0;
	for (int i = 0; i < tensors->count; i++) {
		const struct train_tensor *tensor = &tensors->items[i];

		if (tensor->sent)
			bytes += ((double)sizeof(struct ips_keys) +
				  (double)tensor->count * sizeof(float)) *
				 (double)train_tensors_room(session, tensor->queue);
	}
	return bytes * session->replicas;
}

/* ---- watched tensors ------------------------------------------------------------------------- */

static bool is_output_sent(const struct train_session *session, int layer)
{
	const struct run_queues *plan = &session->outfeed_plan;

	for (int i = 0; i < plan->send_count; i++)
		if (plan->sends[i].sent &&
		    train_tensors_origin(session->model, plan->sends[i].layer) == layer)
			return true;
	return false;
}

/* Mark the rules that match a tensor: a rule that matches none is probably misspelt. */
static void mark_rules(const struct train_tensors *tensors, const char *key, enum outfeed_kind kind,
		       enum outfeed_asked asked)
{
	for (int i = 0; i < tensors->policy.count; i++) {
		struct outfeed_rule rule = tensors->policy.rules[i];
		const struct outfeed_policy alone = {&rule, 1, 0};

		rule.tier = OUTFEED_FULL;
		tensors->used[i] |=
			outfeed_policy_choose(&alone, key, kind, asked).tier == OUTFEED_FULL;
	}
}

/* Add a tensor unless its tier is `off`; return the tier. */
static enum outfeed_tier add_watched(struct train_tensors *tensors,
				     const struct outfeed_tensor_params *params, int number,
				     int slot, size_t count)
{
	const struct outfeed_choice choice =
		outfeed_policy_choose(&tensors->policy, params->key, params->kind, params->asked);

	mark_rules(tensors, params->key, params->kind, params->asked);
	if (choice.tier != OUTFEED_OFF)
		tensors->items[tensors->count++] = (struct train_tensor){.params = *params,
									 .choice = choice,
									 .count = count,
									 .queue = -1,
									 .number = number,
									 .slot = slot};
	return choice.tier;
}

/* Watch attention scores that rules name. */
static enum status watch_scores(struct train_session *session, struct err *err)
{
	const struct model *model = session->model;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		const struct layer_attention *own = layer->config;
		struct outfeed_tensor_params params = session->tensors.output[i + 1];
		int64_t *shape;
		size_t count = 1;

		if (layer->ops->kind != LAYER_KIND_multi_head_attention &&
		    layer->ops->kind != LAYER_KIND_attention)
			continue;
		shape = arena_alloc(&session->arena, 4, sizeof(*shape));
		params.key = arena_printf(&session->arena, "%s_scores", layer->name);
		if (!shape || !params.key)
			return err_nomem(err);
		params.asked = OUTFEED_NAMED;
		params.dims =
			own->projects ? "batch, heads, queries, keys" : "batch, queries, keys";
		params.shape = shape;
		params.ndim = 0;
		shape[params.ndim++] = session->run->data.batch_size;
		if (own->projects)
			shape[params.ndim++] = own->heads;
		shape[params.ndim++] = layer->input.dim[0];
		shape[params.ndim++] =
			model_input_shape(model, layer, own->input[LAYER_ATTENTION_KEY])->dim[0];
		params.activity = OUTFEED_NO_ACTIVITY;
		for (int d = 0; d < params.ndim; d++)
			count *= (size_t)shape[d];
		if (add_watched(&session->tensors, &params, i, TRAIN_SCORES, count) != OUTFEED_OFF)
			session->taps[i] |= STAGE_SCORES;
	}
	return ST_OK;
}

/* Watch values of the whole model that rules name: its input; and if its output has one row for
 * each token, the targets and losses of tokens. */
static enum status watch_tokens(struct train_session *session, struct err *err)
{
	const struct model *model = session->model;
	const struct loss_rows rows = loss_rows_of(&model->outputs[0]);
	const struct model_shape *output = &model->layers[model->layer_count - 1].output;
	const size_t batch = (size_t)session->run->data.batch_size;
	const int last = model->layer_count - 1;
	struct target_kind kind = {.classes = 1,
				   .width = rows.positions}; /* assumed without data */
	struct outfeed_tensor_params params = session->tensors.output[0];
	int64_t *shape;

	params.asked = OUTFEED_NAMED;
	add_watched(&session->tensors, &params, 0, TRAIN_INPUT,
		    batch * (size_t)model_shape_count(&model->input));
	/* The losses of several outputs are not losses of tokens. */
	if (output->ndim < 2 || model->output_count > 1)
		return ST_OK;
	shape = arena_alloc(&session->arena, MODEL_DIMS, sizeof(*shape));
	if (!shape)
		return err_nomem(err);
	shape[0] = (int64_t)batch;
	memcpy(shape + 1, output->dim, (size_t)(output->ndim - 1) * sizeof(*shape));
	params.shape = shape;
	params.ndim = output->ndim;
	params.stage = session->layout->stages - 1;
	params.activity = OUTFEED_NO_ACTIVITY;
	params.dims = output->ndim > 2 ? "batch, height, width" : "batch, tokens";
	params.key = "targets";
	if (session->train_set)
		kind = dataset_targets(session->train_set);
	if (targets_are_classes(&kind, rows.positions))
		add_watched(&session->tensors, &params, last, TRAIN_TARGETS,
			    batch * (size_t)rows.positions);
	params.key = "loss_tokens";
	add_watched(&session->tensors, &params, last, TRAIN_LOSSES, batch * (size_t)rows.positions);
	return ST_OK;
}

/* Watch a variable's gradient, its slots (unless sharded: a replica then has only a part of each),
 * and the variable. */
static enum status watch_variable(struct train_session *session, int number, struct err *err)
{
	const struct model_param *param = &session->model->params[number];
	const struct run_gradient *gradient = &session->outfeed_plan.gradients[number];
	const struct optimizer *optimizer = &session->optimizer;
	struct train_tensors *tensors = &session->tensors;
	struct outfeed_tensor_params params = tensors->variable[number];

	if (param->trainable) {
		params.kind = OUTFEED_GRADIENT;
		params.key = gradient->key;
		if (gradient->sent)
			mark_rules(tensors, params.key, params.kind, OUTFEED_WATCHED);
		else
			add_watched(tensors, &params, number, 0, param->count);
	}
	params.kind = OUTFEED_OPTIMIZER_STATE;
	for (int s = 0; param->trainable && !session->sharded && s < optimizer_slots(optimizer);
	     s++) {
		params.key = arena_printf(&session->arena, "%s/%s/%s", optimizer_name(optimizer),
					  optimizer_slot_name(optimizer, s), param->name);
		if (!params.key)
			return err_nomem(err);
		add_watched(tensors, &params, number, s, param->count);
	}
	add_watched(tensors, &tensors->variable[number], number, 0, param->count);
	return ST_OK;
}

static enum status add_watches(struct train_session *session, struct err *err)
{
	const struct run_queues *plan = &session->outfeed_plan;
	struct train_tensors *tensors = &session->tensors;

	tensors->used = arena_alloc(&session->arena, (size_t)tensors->policy.count + 1,
				    sizeof(*tensors->used));
	if (!tensors->used)
		return err_nomem(err);
	for (int i = 0; i < plan->send_count; i++)
		mark_rules(tensors, plan->sends[i].key, OUTFEED_ACTIVATION, OUTFEED_WATCHED);
	for (int i = 0; i < session->model->layer_count; i++) {
		const struct model_layer *layer = &session->model->layers[i];
		enum outfeed_tier tier;

		if (layer->ops->pass_through || layer->output.ndim >= OUTFEED_NDIM_MAX ||
		    is_output_sent(session, i))
			continue;
		tier = add_watched(tensors, &tensors->output[i + 1], i, 0,
				   output_count(session, i));
		if (tier != OUTFEED_OFF)
			session->taps[i] |=
				tier == OUTFEED_HEALTH ? STAGE_LOOK | STAGE_ABS_MAX : STAGE_LOOK;
	}
	if (watch_scores(session, err) != ST_OK || watch_tokens(session, err) != ST_OK)
		return err->status;
	for (int p = session->model->param_count - 1; p >= 0; p--)
		if (watch_variable(session, p, err) != ST_OK)
			return err->status;
	return ST_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

bool train_tensors_watched(const struct run_file *run, bool recorded)
{
	return recorded ||
	       (run->health.wanted && (run->health.stop.count > 0 || run->health.rules));
}

enum status train_tensors_plan(struct train_session *session, bool recorded, struct err *err)
{
	static const unsigned watched[] = {
		[RUN_WATCH_NOTHING] = 0,
		[RUN_WATCH_GRADIENTS] = 1u << OUTFEED_GRADIENT,
		[RUN_WATCH_ALL] = 1u << OUTFEED_ACTIVATION | 1u << OUTFEED_GRADIENT,
	};
	const struct json_at capture = json_root(session->run->path, session->run->outfeed.capture);
	const struct model *model = session->model;
	const size_t variables = 3 + (size_t)optimizer_slots(&session->optimizer);
	struct run_queues *plan = &session->outfeed_plan;
	struct train_tensors *tensors = &session->tensors;

	session->taps = arena_alloc(&session->arena, (size_t)model->layer_count + 1,
				    sizeof(*session->taps));
	if (!session->taps)
		return err_nomem(err);
	if (session->layout->steps_per_epoch == 0)
		return ST_OK;
	if (run_queues_plan(plan, &session->arena, session->run, model, session->layout, err) !=
		    ST_OK ||
	    run_queues_check(plan, session->run, model, err) != ST_OK ||
	    outfeed_policy_read(&tensors->policy, &capture, err) != ST_OK ||
	    describe_model(session, err) != ST_OK)
		return err->status;
	tensors->policy.watched =
		session->run->health.wanted ? watched[session->run->health.watch] : 0;
	tensors->items = arena_alloc(&session->arena,
				     (size_t)plan->send_count + 2 * (size_t)model->layer_count + 3 +
					     variables * (size_t)model->param_count + 1,
				     sizeof(*tensors->items));
	if (!tensors->items)
		return err_nomem(err);
	add_queues(session);
	return train_tensors_watched(session->run, recorded) ? add_watches(session, err) : ST_OK;
}

void train_tensors_fini(struct train_tensors *tensors)
{
	outfeed_policy_fini(&tensors->policy);
}

/* ---- forecast -------------------------------------------------------------------------------- */

/* Bytes of the rows that describe a tensor, from dbstat over reports of the examples. */
#define TENSOR_ROWS 180.0

int64_t train_tensors_budget(const struct train_session *session, bool *disk)
{
	const int64_t budget = session->run->outfeed.budget;
	struct statvfs of;
	double half = INFINITY;
	bool less;

	if (session->report && statvfs(session->report, &of) == 0)
		half = (double)of.f_bavail * (double)of.f_frsize / 2;
	less = half < (double)budget;
	if (disk)
		*disk = less;
	return less ? (int64_t)half : budget;
}

/* Return the number of values of a tensor of @kind on one replica. */
static double values_of(const struct train_session *session, enum outfeed_kind kind)
{
	const double steps =
		(double)session->layout->steps_per_epoch * (double)session->run->fit.epochs;
	const bool by_step = kind == OUTFEED_ACTIVATION ||
			     (kind == OUTFEED_GRADIENT &&
			      session->run->outfeed.optimizer_mode == RUN_AFTER_COMPUTE);

	return by_step ? steps : steps / (double)session->layout->accumulation;
}

void train_tensors_forecast(struct train_tensors_forecast *out, const struct train_session *session)
{
	const struct outfeed_choice full = {OUTFEED_FULL, 1, 0};
	const int replicas = session->replicas;

	*out = (struct train_tensors_forecast){0};
	for (int i = 0; i < session->tensors.count; i++) {
		const struct train_tensor *tensor = &session->tensors.items[i];
		const struct outfeed_choice *choice = &tensor->choice;
		const enum outfeed_kind kind = tensor->params.kind;
		const double values = ceil(values_of(session, kind) / (double)choice->every);
		const double bytes = outfeed_bytes(choice, tensor->count, DTYPE_FLOAT32);

		if ((tensor->queue >= 0 && !tensor->sent) || choice->tier == OUTFEED_OFF)
			continue;
		out->tensors++;
		out->bytes += TENSOR_ROWS + replicas * values * bytes;
		/* The values in a ring are written at the end. */
		if (choice->tier == OUTFEED_LAST_N)
			out->bytes += replicas * fmin(values, (double)choice->last) *
				      (outfeed_bytes(&full, tensor->count, DTYPE_FLOAT32) - bytes);
		out->memory += outfeed_memory(choice, kind, tensor->count, DTYPE_FLOAT32, replicas);
	}
}

static const char *bytes_text(char out[FMT_SIZE], double bytes)
{
	return fmt_bytes(out, bytes < 0x1p63 ? (uint64_t)bytes : (uint64_t)INT64_MAX);
}

void train_tensors_text(char out[TRAIN_TENSORS_TEXT], const struct train_session *session)
{
	char bytes[FMT_SIZE], memory[FMT_SIZE], limit[FMT_SIZE];
	struct train_tensors_forecast forecast;
	bool disk;
	const int64_t budget = train_tensors_budget(session, &disk);
	int length;

	train_tensors_forecast(&forecast, session);
	out[0] = '\0';
	if (forecast.tensors == 0)
		return;
	length = snprintf(out, TRAIN_TENSORS_TEXT,
			  "Looking at %d tensor%s: about %s of the report and %s of memory",
			  forecast.tensors, forecast.tensors == 1 ? "" : "s",
			  bytes_text(bytes, forecast.bytes), bytes_text(memory, forecast.memory));
	if (forecast.bytes > (double)budget)
		snprintf(out + length, (size_t)(TRAIN_TENSORS_TEXT - length),
			 "; the budget is %s%s, so tiers will be lowered",
			 bytes_text(limit, (double)budget),
			 disk ? ", half of what the disk has free" : " (outfeed.budget)");
	else if (disk)
		snprintf(out + length, (size_t)(TRAIN_TENSORS_TEXT - length),
			 "; the budget is lowered to %s, half of what the disk has free",
			 bytes_text(limit, (double)budget));
}

int train_tensors_unused_rule(const struct train_session *session, int rule)
{
	const struct train_tensors *tensors = &session->tensors;

	for (int i = rule; tensors->used && i < tensors->policy.count; i++)
		if (!tensors->used[i] && !tensors->policy.rules[i].queued_only)
			return i;
	return -1;
}
