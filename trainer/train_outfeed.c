/*
 * The session's tensors in the recorder, and the path of their values from a worker to the order of
 * execution. See the header.
 *
 * One registry: for each value of a training (the output of a layer, the gradient of a parameter, a
 * slot, a variable) the tensors recorded from it, whether a queue sends them or they are watched.
 * Ownership: the session's arena owns everything except the recorder and queues.
 */
#include "trainer/train_outfeed.h"

#include <assert.h>
#include <string.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "trainer/train_record.h"
#include "trainer/train_tensors.h"

struct train_outfeed {
	struct outfeed *outfeed;
	struct outfeed_queue **queues; /* in the plan's order; NULL: off */
	int queue_count;
	struct train_tensor **registry; /* by value: see registered_of() */
	struct train_order order;
	bool updates;  /* any variable or slot is recorded */
	float *tokens; /* losses of a micro-batch's tokens, by replica; NULL: not needed */
};

/* ---- the registry ---------------------------------------------------------------------------- */

/* Return the registry's entry. Parts of forward passes come first, by part and layer, then
 * parameter gradients, variables, and slots, each by parameter. */
static struct train_tensor **registered_of(const struct train_session *session,
					   enum outfeed_kind kind, int number, int slot)
{
	const int layers = session->model->layer_count, params = session->model->param_count;
	const int first[OUTFEED_KINDS] = {
		[OUTFEED_ACTIVATION] = slot * layers,
		[OUTFEED_GRADIENT] = TRAIN_PARTS * layers,
		[OUTFEED_WEIGHT] = TRAIN_PARTS * layers + params,
		[OUTFEED_OPTIMIZER_STATE] = TRAIN_PARTS * layers + (2 + slot) * params,
	};

	return &session->outfeed->registry[first[kind] + number];
}

static enum status register_tensor(struct train_session *session, struct train_tensor *of,
				   struct err *err)
{
	struct train_outfeed *outfeed = session->outfeed;
	struct train_tensor **end = registered_of(session, of->params.kind, of->number, of->slot);
	const struct model_layer *layer = &session->model->layers[of->number];
	enum status status;

	if (of->queue < 0)
		status = outfeed_tensor_add(outfeed->outfeed, &of->tensor, &of->params, err);
	else if (of->params.kind == OUTFEED_ACTIVATION && layer->output.ndim >= OUTFEED_NDIM_MAX)
		status = err_set(err, ST_LIMIT,
				 "layer \"%s\": its output has %d dimensions, and an outfeed queue "
				 "takes %d at most",
				 layer->name, layer->output.ndim + 1, OUTFEED_NDIM_MAX);
	else
		status = outfeed_queue_add(outfeed->queues[of->queue], &of->tensor, &of->params,
					   of->final, err);
	if (status != ST_OK || !of->tensor)
		return status;
	while (*end)
		end = &(*end)->next;
	*end = of;
	outfeed->updates |=
		of->params.kind == OUTFEED_WEIGHT || of->params.kind == OUTFEED_OPTIMIZER_STATE;
	if (of->params.kind == OUTFEED_ACTIVATION && of->slot >= TRAIN_TARGETS &&
	    !outfeed->tokens) {
		outfeed->tokens =
			arena_alloc(&session->arena, (size_t)session->layout->replicas * of->count,
				    sizeof(*outfeed->tokens));
		if (!outfeed->tokens)
			return err_nomem(err);
	}
	return ST_OK;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static bool rules_wanted(const struct train_session *session)
{
	return session->layout->steps_per_epoch > 0 && session->run->health.wanted &&
	       train_tensors_watched(session->run, session->recording != NULL);
}

static enum status add_queue(struct train_session *session, int number, struct err *err)
{
	const struct run_queue *plan = &session->outfeed_plan.queues[number];
	const struct run_file *run = session->run;
	const struct run_texts *filters =
		plan->gradients ? &run->outfeed.gradients : &run->outfeed.activations;
	struct train_outfeed *of = session->outfeed;
	struct outfeed_queue_params params = {
		.name = plan->name,
		.mode = run->outfeed.last ? OUTFEED_LAST : OUTFEED_ALL,
		.replicas = session->replicas,
		.wrapped = plan->wrapped,
	};
	enum status status;

	if (plan->wrapped && filters->given) {
		params.filters = filters->items;
		params.filter_count = filters->count;
	}
	status = outfeed_queue_new(&of->queues[number], of->outfeed, &params, err);
	of->queue_count += status == ST_OK;
	return status;
}

static enum status register_all(struct train_session *session, struct err *err)
{
	const struct model *model = session->model;
	const int values = TRAIN_PARTS * model->layer_count +
			   (2 + optimizer_slots(&session->optimizer)) * model->param_count;
	const struct outfeed_params params = {
		.recording = session->recording,
		.policy = &session->tensors.policy,
		.rules = rules_wanted(session) ? &session->health.rules : NULL,
		.say = train_health_print,
		.hit = train_health_hit,
		.user = session,
		.replicas = session->replicas,
		.first_replica = session->first_replica,
		.budget = train_tensors_budget(session, NULL),
		.pool = session->pool,
	};
	struct train_outfeed *of = session->outfeed;
	enum status status = outfeed_new(&of->outfeed, &params, err);

	if (status != ST_OK)
		return status;
	of->registry =
		arena_alloc(&session->arena, (size_t)values + 1, sizeof(struct train_tensor *));
	if (!of->registry)
		return err_nomem(err);
	if (!session->run->outfeed.off) {
		of->queues =
			arena_alloc(&session->arena, (size_t)session->outfeed_plan.queue_count + 1,
				    sizeof(struct outfeed_queue *));
		if (!of->queues)
			return err_nomem(err);
	}
	for (int q = 0; q < session->outfeed_plan.queue_count && status == ST_OK; q++)
		status = add_queue(session, q, err);
	for (int i = 0; i < session->tensors.count && status == ST_OK; i++)
		status = register_tensor(session, &session->tensors.items[i], err);
	for (int q = 0;
	     session->values != TRAIN_VALUES_NONE && q < of->queue_count && status == ST_OK; q++)
		status = outfeed_retain(of->queues[q], train_tensors_room(session, q),
					session->values == TRAIN_VALUES_RUNNING, err);
	return status;
}

enum status train_outfeed_new(struct train_session *session, struct err *err)
{
	if (session->run->outfeed.off && session->tensors.count == 0 && !rules_wanted(session))
		return ST_OK;
	session->outfeed = arena_alloc(&session->arena, 1, sizeof(*session->outfeed));
	if (!session->outfeed)
		return err_nomem(err);
	session->outfeed->order = (struct train_order){
		.layers = session->model->layer_count,
		.params = session->model->param_count,
		.slots = optimizer_slots(&session->optimizer),
		.accumulation = session->layout->accumulation,
	};
	return register_all(session, err);
}

enum status train_outfeed_close(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	enum status status;

	if (!of)
		return ST_OK;
	status = outfeed_close(of->outfeed, err);
	for (int q = 0; q < of->queue_count; q++)
		outfeed_queue_free(of->queues[q]);
	session->outfeed = NULL;
	return status;
}

void train_outfeed_state(const struct train_session *session, int index, outfeed_state_visit visit,
			 void *user)
{
	outfeed_state(session->outfeed->outfeed, index, visit, user);
}

struct outfeed_health *train_outfeed_health(const struct train_session *session)
{
	return !session->outfeed ? NULL : outfeed_health_of(session->outfeed->outfeed);
}

/* ---- the order of execution ------------------------------------------------------------------ */

/* Mixed-radix numbers: update, micro-batch, direction, tensor. */

/* Return how many numbers the tensors of a direction take. */
static uint64_t tensors(const struct train_order *order)
{
	const uint64_t variables = ((uint64_t)order->slots + 1) * (uint64_t)order->params;
	const uint64_t layers = (uint64_t)order->layers;

	return variables > layers ? variables : layers;
}

uint64_t train_order_begin(const struct train_order *order, int64_t update, int64_t microbatch)
{
	const uint64_t parts = (uint64_t)order->accumulation + 1;

	return ((uint64_t)update * parts + (uint64_t)microbatch) * 2 * tensors(order);
}

uint64_t train_order_of(const struct train_order *order, const struct train_order_place *place)
{
	const int64_t microbatch =
		place->phase == IPS_UPDATE ? order->accumulation : place->microbatch;
	/* Within a micro-batch: forward, then backward. Within an update: gradients, then slots
	 * and variables. */
	const enum outfeed_kind first =
		place->phase == IPS_UPDATE ? OUTFEED_GRADIENT : OUTFEED_ACTIVATION;
	const uint64_t begin = train_order_begin(order, place->update, microbatch) +
			       (place->kind == first ? 0 : tensors(order));
	const uint64_t params = (uint64_t)order->params, number = (uint64_t)place->number;

	assert(microbatch >= 0 && microbatch <= order->accumulation);
	switch (place->kind) {
	case OUTFEED_GRADIENT:
		return begin + params - 1 - number;
	case OUTFEED_OPTIMIZER_STATE:
		return begin + (uint64_t)place->slot * params + number;
	case OUTFEED_WEIGHT:
		return begin + (uint64_t)order->slots * params + number;
	default:
		return begin + number;
	}
}

/* While workers are running, the updates of the last completed run may still be pending. */
void train_outfeed_finalize(struct train_session *session, int64_t runs, bool ended)
{
	const int64_t update = session->execution.first_update + runs;
	struct err err = {ST_OK, ""};
	const struct train_order *order;
	uint64_t before;
	enum status status;

	if (!session->outfeed || session->execution.mode != IPS_TRAIN)
		return;
	if (train_flush_wanted())
		outfeed_flush(session->outfeed->outfeed);
	if (update == 0)
		return;
	order = &session->outfeed->order;
	before = ended ? train_order_begin(order, update, 0)
		       : train_order_begin(order, update - 1, order->accumulation);
	status = outfeed_drain(session->outfeed->outfeed, before, &err);
	if (status != ST_OK && session->looking.status == ST_OK)
		session->looking = err;
}

/* ---- the path of a value --------------------------------------------------------------------- */

/* A value: its indices, its memory, and the values it was computed from. */
struct value {
	enum outfeed_kind kind;
	int number, slot;
	const float *values;
	size_t count;
	bool abs_max_known;
	uint32_t abs_max;
	struct outfeed_source sources[OUTFEED_TRAIL];
	int source_count;
};

static bool is_due(const struct train_tensor *registered, const struct ips_keys *keys)
{
	for (; registered; registered = registered->next)
		if (outfeed_due(registered->tensor, keys))
			return true;
	return false;
}

/* Return the entry of a value of this worker's training; NULL: nothing is recorded of it now. */
static const struct train_tensor *due_of(const struct train_outfeed_place *place,
					 enum outfeed_kind kind, int number, int slot)
{
	const struct train_session *session = place->worker->session;
	const struct train_tensor *first;

	if (!session->outfeed || session->execution.mode != IPS_TRAIN)
		return NULL;
	first = *registered_of(session, kind, number, slot);
	return is_due(first, &place->keys) ? first : NULL;
}

/* Record @value in all its tensors. Time spent on watched tensors counts as recording overhead. */
static enum status record_value(const struct train_outfeed_place *place, const struct value *value)
{
	const struct train_session *session = place->worker->session;
	const struct train_order_place at = {
		.update = place->update,
		.microbatch = place->microbatch,
		.phase = place->keys.phase,
		.kind = value->kind,
		.number = value->number,
		.slot = value->slot,
	};
	const struct outfeed_moment moment = {
		.keys = place->keys,
		.time_ns = ips_recording_now_ns(session->recording),
		.order = train_order_of(&session->outfeed->order, &at),
		.abs_max_known = value->abs_max_known,
		.abs_max = value->abs_max,
		.sources = value->sources,
		.source_count = value->source_count,
	};
	struct err err = {ST_OK, ""};
	enum status status = ST_OK;

	for (const struct train_tensor *one =
		     *registered_of(session, value->kind, value->number, value->slot);
	     one && status == ST_OK; one = one->next) {
		const uint64_t begun = clock_ns();

		if (!outfeed_due(one->tensor, &place->keys))
			continue;
		status = outfeed_record(one->tensor, &moment, value->values, value->count, NULL,
					&err);
		if (one->queue < 0)
			ips_recording_spent(session->recording, (int64_t)(clock_ns() - begun), 0);
	}
	train_record_failed(place->worker, status, &err);
	return status;
}

/* Add the variable of @param as a source. */
static void add_source(const struct train_outfeed_place *place, int param, struct value *out)
{
	const struct train_session *session = place->worker->session;
	const struct model_param *of = &session->model->params[param];

	if (out->source_count < OUTFEED_TRAIL)
		out->sources[out->source_count++] = (struct outfeed_source){
			&session->tensors.variable[param],
			place->worker->replica->weights + of->offset, of->count};
}

bool train_outfeed_due(const struct train_outfeed_place *place, enum train_part first)
{
	const struct train_stage *stage = &place->worker->replica->stage[place->keys.stage];

	for (int i = stage->first_layer; i < stage->first_layer + stage->layer_count; i++)
		for (int part = (int)first; part <= TRAIN_SCORES; part++)
			if (due_of(place, OUTFEED_ACTIVATION, i, part))
				return true;
	return false;
}

/* Record a part of a forward pass without sources or a known maximum. */
static enum status record_part(const struct train_outfeed_place *place, enum train_part part,
			       int layer, const float *values, size_t count)
{
	const struct value value = {.kind = OUTFEED_ACTIVATION,
				    .number = layer,
				    .slot = (int)part,
				    .values = values,
				    .count = count};

	return due_of(place, value.kind, layer, value.slot) ? record_value(place, &value) : ST_OK;
}

void train_outfeed_input(const struct train_outfeed_place *place, const float *values, size_t count)
{
	record_part(place, TRAIN_INPUT, 0, values, count);
}

float *train_outfeed_tokens(const struct train_outfeed_place *place)
{
	const struct train_session *session = place->worker->session;
	const int last = session->model->layer_count - 1;

	if (!due_of(place, OUTFEED_ACTIVATION, last, TRAIN_TARGETS) &&
	    !due_of(place, OUTFEED_ACTIVATION, last, TRAIN_LOSSES))
		return NULL;
	return session->outfeed->tokens +
	       (size_t)place->keys.replica *
		       (size_t)(session->run->data.batch_size * loss_positions(session->model));
}

void train_outfeed_losses(const struct train_outfeed_place *place, const struct targets *targets,
			  float *tokens, int64_t count)
{
	const int last = place->worker->session->model->layer_count - 1;
	const enum status status = record_part(place, TRAIN_LOSSES, last, tokens, (size_t)count);

	for (int64_t i = 0; targets->classes && i < count; i++)
		tokens[i] = (float)targets->classes[i];
	if (status == ST_OK)
		record_part(place, TRAIN_TARGETS, last, targets->classes ? tokens : targets->values,
			    (size_t)count);
}

void train_outfeed_activation(const struct train_outfeed_place *place,
			      const struct stage_tapped *tapped)
{
	const struct train_session *session = place->worker->session;
	const struct model *model = session->model;
	const struct model_layer *layer = &model->layers[tapped->layer];
	const int origin = train_tensors_origin(model, tapped->layer);
	struct value value = {.kind = OUTFEED_ACTIVATION,
			      .number = tapped->layer,
			      .values = tapped->values,
			      .count = tapped->count,
			      .abs_max_known = tapped->abs_max_known,
			      .abs_max = tapped->abs_max};

	if (tapped->scores && record_part(place, TRAIN_SCORES, tapped->layer, tapped->scores,
					  tapped->score_count) != ST_OK)
		return;
	if (!due_of(place, OUTFEED_ACTIVATION, tapped->layer, TRAIN_OUTPUT))
		return;
	/* A layer that passes its input on has the sources of that input. */
	for (int i = 0; i < tapped->input_count && origin == tapped->layer; i++) {
		const int from = train_tensors_origin(model, layer->inputs[i]);

		if (tapped->inputs[i].values)
			value.sources[value.source_count++] = (struct outfeed_source){
				&session->tensors.output[from + 1], tapped->inputs[i].values,
				tapped->inputs[i].count};
	}
	/* Variables of another stage belong to another worker: do not read them here. */
	if (origin != MODEL_INPUT && session->layout->stage[origin] == (int)place->keys.stage) {
		layer = &model->layers[origin];
		for (int p = layer->first_param; p < layer->first_param + layer->param_count; p++)
			add_source(place, p, &value);
	}
	record_value(place, &value);
}

/* Record a gradient, a slot or a variable. */
static enum status record_variable(const struct train_outfeed_place *place, enum outfeed_kind kind,
				   int number, int slot, const float *values)
{
	const struct model_param *param = &place->worker->session->model->params[number];
	const struct train_tensor *due = due_of(place, kind, number, slot);
	struct value value = {.kind = kind,
			      .number = number,
			      .slot = slot,
			      .values = values + param->offset,
			      .count = param->count};

	if (!due)
		return ST_OK;
	if (kind == OUTFEED_GRADIENT && due->queue < 0)
		add_source(place, number, &value);
	return record_value(place, &value);
}

void train_outfeed_gradients(const struct train_outfeed_place *place,
			     enum run_outfeed_optimizer mode, const float *gradients)
{
	const struct train_session *session = place->worker->session;
	enum status status = ST_OK;

	if (session->run->outfeed.optimizer_mode != mode)
		return;
	for (int p = session->model->param_count - 1; p >= 0 && status == ST_OK; p--)
		if (session->layout->stage[session->model->params[p].layer] ==
		    (int)place->keys.stage)
			status = record_variable(place, OUTFEED_GRADIENT, p, 0, gradients);
}

void train_outfeed_update(const struct train_outfeed_place *place)
{
	const struct train_session *session = place->worker->session;
	const struct model *model = session->model;
	const struct train_replica *replica = place->worker->replica;
	const int slots = session->sharded ? 0 : optimizer_slots(&session->optimizer);
	enum status status = ST_OK;

	if (!session->outfeed || !session->outfeed->updates)
		return;
	for (int p = 0; p < model->param_count && status == ST_OK; p++) {
		if (session->layout->stage[model->params[p].layer] != (int)place->keys.stage)
			continue;
		for (int s = 0; s < slots && status == ST_OK; s++)
			status = record_variable(place, OUTFEED_OPTIMIZER_STATE, p, s,
						 replica->slots + (size_t)s * model->weights);
		if (status == ST_OK)
			status = record_variable(place, OUTFEED_WEIGHT, p, 0, replica->weights);
	}
}

/* ---- queues ---------------------------------------------------------------------------------- */

static int queue_count(const struct train_session *session)
{
	return session->outfeed ? session->outfeed->queue_count : 0;
}

struct outfeed_queue *train_outfeed_queue(const struct train_session *session, const char *name)
{
	for (int q = 0; q < queue_count(session); q++)
		if (strcmp(session->outfeed_plan.queues[q].name, name) == 0)
			return session->outfeed->queues[q];
	return NULL;
}

bool train_outfeed_next(const struct train_session *session, bool running, outfeed_visit visit,
			void *user)
{
	bool any = false;

	for (int q = 0; q < queue_count(session); q++)
		if (!running || !session->run->outfeed.last)
			any |= outfeed_next(session->outfeed->queues[q], visit, user);
	return any;
}

void train_outfeed_abandon(const struct train_session *session)
{
	for (int q = 0; q < queue_count(session); q++)
		outfeed_abandon(session->outfeed->queues[q]);
}

void train_outfeed_restart(const struct train_session *session)
{
	for (int q = 0; q < queue_count(session); q++)
		outfeed_restart(session->outfeed->queues[q]);
}

/* Print the tutorial's line, and why nothing was enqueued. */
static void show_no_queue(const struct train_session *session, const char *queue,
			  const char *callback, FILE *out)
{
	const struct run_queues *plan = &session->outfeed_plan;
	const char *names[64], *near;
	size_t count = 0;

	for (; count < ARRAY_LEN(names) && (int)count < plan->queue_count; count++)
		names[count] = plan->queues[count].name;
	near = str_nearest(queue, names, count);
	cli_print(out, "\n%s\nNo data enqueued\n(queue \"%s\" is not attached", callback, queue);
	if (!session->outfeed || !session->outfeed->queues)
		fprintf(out, ": outfeed.capture is \"off\"");
	else if (strcmp(queue, RUN_OPTIMIZER_QUEUE) == 0)
		fprintf(out, ": outfeed.gradients is null");
	else if (near)
		cli_print(out, ": did you mean \"%s\"?", near);
	else if (plan->queue_count == 0)
		fprintf(out, ": the model has no outfeed layer");
	else
		for (int q = 0; q < plan->queue_count; q++)
			cli_print(out, "%s\"%s\"", q == 0 ? ": there is " : ", ",
				  plan->queues[q].name);
	fprintf(out, ")\n");
}

enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err)
{
	struct outfeed_queue *found = train_outfeed_queue(session, queue);

	if (found)
		return outfeed_callback(found, callback, IPS_TRAIN, epoch, out, err);
	if (out)
		show_no_queue(session, queue, callback, out);
	return ST_OK;
}
