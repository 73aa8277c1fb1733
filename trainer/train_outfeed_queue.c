/*
 * From the plan of queues to queues, and their callbacks.
 *
 * Ownership: keys belong to their queues, queues to the struct; by replica nothing differs, since a
 * key has a state per replica itself. Threading: as the header says.
 */
#include "trainer/train_outfeed_queue.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "trainer/train_outfeed_watch.h"

struct train_queues {
	const struct run_queues *plan;
	struct outfeed_queue **queues;   /* as the plan's */
	struct outfeed_key **activation; /* as the plan's sends; NULL entries: refused */
	int *first_send;                 /* by layer, and one more: where its sends begin */
	struct outfeed_key **gradient;   /* by parameter; NULL entries: refused, or none */
	bool last;                       /* their mode */
};

/* ---- making ---------------------------------------------------------------------------------- */

static enum status new_queue(const struct train_queues *queues, int number,
			     const struct train_session *session, struct outfeed *outfeed,
			     struct err *err)
{
	const struct run_queue *plan = &queues->plan->queues[number];
	const struct run_file *run = session->run;
	const struct run_texts *filters =
		plan->gradients ? &run->outfeed.gradients : &run->outfeed.activations;
	struct outfeed_queue_params params = {
		.name = plan->name,
		.mode = run->outfeed.last ? OUTFEED_LAST : OUTFEED_ALL,
		.replicas = session->layout->replicas,
		.wrapped = plan->wrapped,
	};

	if (plan->wrapped && filters->given) {
		params.filters = filters->items;
		params.filter_count = filters->count;
	}
	return outfeed_queue_new(&queues->queues[number], outfeed, &params, err);
}

static enum status add_activation(const struct train_queues *queues, int number,
				  const struct train_session *session, struct err *err)
{
	const struct run_send *send = &queues->plan->sends[number];
	const struct model_layer *layer = &session->model->layers[send->layer];
	int64_t shape[MODEL_DIMS + 1];
	const struct outfeed_tensor_params tensor = {
		.key = send->key,
		.kind = OUTFEED_ACTIVATION,
		.activity = train_watch_activity(session->model, send->layer),
		.layer = layer->name,
		.stage = session->layout->stage[send->layer],
		.shape = shape,
		.ndim = layer->output.ndim + 1,
	};

	if (tensor.ndim > OUTFEED_NDIM_MAX)
		return err_set(err, ST_LIMIT,
			       "layer \"%s\": its output has %d dimensions, and an outfeed queue "
			       "takes %d at most",
			       layer->name, tensor.ndim, OUTFEED_NDIM_MAX);
	shape[0] = session->run->data.batch_size;
	memcpy(shape + 1, layer->output.dim, sizeof(layer->output.dim));
	return outfeed_queue_add(queues->queues[send->queue], &queues->activation[number], &tensor,
				 send->final, err);
}

static enum status add_gradient(const struct train_queues *queues, int queue, int number,
				const struct train_session *session, struct err *err)
{
	const struct model_param *param = &session->model->params[number];
	const struct outfeed_tensor_params tensor = {
		.key = queues->plan->gradients[number].key,
		.kind = OUTFEED_GRADIENT,
		.layer = session->model->layers[param->layer].name,
		.stage = session->layout->stage[param->layer],
		.shape = param->shape.dim,
		.ndim = param->shape.ndim,
	};

	if (!param->trainable)
		return ST_OK;
	return outfeed_queue_add(queues->queues[queue], &queues->gradient[number], &tensor, true,
				 err);
}

/* Gradients in reverse order, as the tutorial's optimizer adds them. */
static enum status add_keys(const struct train_queues *queues, const struct train_session *session,
			    struct err *err)
{
	const struct run_queues *plan = queues->plan;
	enum status status = ST_OK;

	for (int i = 0; i < plan->send_count && status == ST_OK; i++)
		status = add_activation(queues, i, session, err);
	for (int q = 0; q < plan->queue_count; q++) {
		if (!plan->queues[q].gradients)
			continue;
		for (int p = session->model->param_count - 1; p >= 0 && status == ST_OK; p--)
			status = add_gradient(queues, q, p, session, err);
	}
	return status;
}

/* Sends stand in the order of their layers. */
static void find_first_sends(const struct train_queues *queues, int layers)
{
	int send = 0;

	for (int i = 0; i <= layers; i++) {
		while (send < queues->plan->send_count && queues->plan->sends[send].layer < i)
			send++;
		queues->first_send[i] = send;
	}
}

/* ---- room for values ------------------------------------------------------------------------- */

/* Of an execution, by each replica. */
static int64_t enqueues_of(const struct train_session *session, const struct run_queue *plan)
{
	const struct run_layout *layout = session->layout;

	return plan->gradients && session->run->outfeed.optimizer_mode == RUN_BEFORE_APPLY
		       ? layout->updates_per_execution
		       : layout->steps_per_execution;
}

/* Enqueues that there is room for. A ring is as deep as the device's. A worker of several stages
 * may have a micro-batch's gradients of one, and not yet those of another that it had before: it
 * gets room for all that it may be ahead of itself, within a pipeline run. */
static int64_t room_of(const struct train_session *session, const struct run_queue *plan)
{
	const struct run_layout *layout = session->layout;
	const bool ahead = plan->gradients && layout->ipus_used < layout->stages &&
			   session->run->outfeed.optimizer_mode == RUN_AFTER_COMPUTE;
	const int64_t ring =
		session->run->outfeed.buffer_depth + (ahead ? layout->accumulation : 0);
	const int64_t all = enqueues_of(session, plan);

	if (session->run->outfeed.last)
		return 1;
	if (session->values == TRAIN_VALUES_RUNNING)
		return min(ring, all);
	return session->values == TRAIN_VALUES_EPOCH ? all * layout->executions_per_epoch : all;
}

static enum status keep_values(const struct train_queues *queues,
			       const struct train_session *session, struct err *err)
{
	enum status status = ST_OK;

	if (session->values == TRAIN_VALUES_NONE)
		return ST_OK;
	for (int q = 0; q < queues->plan->queue_count && status == ST_OK; q++)
		status = outfeed_keep(queues->queues[q], room_of(session, &queues->plan->queues[q]),
				      session->values == TRAIN_VALUES_RUNNING, err);
	return status;
}

/* Of one enqueue, with when and where each value was. */
static double floats_of(const struct train_session *session, int queue)
{
	const struct run_queues *plan = &session->outfeed_plan;
	const struct model *model = session->model;
	const double place = sizeof(struct ips_keys) / sizeof(float);
	double floats = 0;

	for (int i = 0; i < plan->send_count; i++)
		if (plan->sends[i].queue == queue && plan->sends[i].sent)
			floats += place +
				  (double)session->run->data.batch_size *
					  (double)model_shape_count(
						  &model->layers[plan->sends[i].layer].output);
	for (int p = 0; plan->queues[queue].gradients && p < model->param_count; p++)
		if (plan->gradients[p].sent)
			floats += place + (double)model->params[p].count;
	return floats;
}

double train_queues_bytes(const struct train_session *session)
{
	double bytes = 0;

	for (int q = 0;
	     session->values != TRAIN_VALUES_NONE && q < session->outfeed_plan.queue_count; q++)
		bytes += floats_of(session, q) * sizeof(float) *
			 (double)room_of(session, &session->outfeed_plan.queues[q]) *
			 session->layout->replicas;
	return bytes;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum status queues_init(struct train_queues *queues, const struct train_session *session,
			       struct outfeed *outfeed, struct err *err)
{
	const struct run_queues *plan = queues->plan;
	const size_t layers = (size_t)session->model->layer_count;
	enum status status = ST_OK;

	queues->queues = mem_calloc((size_t)plan->queue_count + 1, sizeof(*queues->queues));
	queues->activation = mem_calloc((size_t)plan->send_count + 1, sizeof(*queues->activation));
	queues->first_send = mem_calloc(layers + 1, sizeof(*queues->first_send));
	queues->gradient =
		mem_calloc((size_t)session->model->param_count + 1, sizeof(*queues->gradient));
	if (!queues->queues || !queues->activation || !queues->first_send || !queues->gradient)
		return err_nomem(err);
	find_first_sends(queues, session->model->layer_count);
	for (int q = 0; q < plan->queue_count && status == ST_OK; q++)
		status = new_queue(queues, q, session, outfeed, err);
	if (status == ST_OK)
		status = add_keys(queues, session, err);
	return status == ST_OK ? keep_values(queues, session, err) : status;
}

enum status train_queues_new(struct train_queues **out, const struct train_session *session,
			     struct outfeed *outfeed, struct err *err)
{
	struct train_queues *queues = mem_calloc(1, sizeof(*queues));
	enum status status;

	*out = NULL;
	if (!queues)
		return err_nomem(err);
	queues->plan = &session->outfeed_plan;
	queues->last = session->run->outfeed.last;
	status = queues_init(queues, session, outfeed, err);
	if (status != ST_OK) {
		train_queues_free(queues);
		return status;
	}
	*out = queues;
	return ST_OK;
}

void train_queues_free(struct train_queues *queues)
{
	if (!queues)
		return;
	for (int q = 0; queues->queues && q < queues->plan->queue_count; q++)
		outfeed_queue_free(queues->queues[q]);
	mem_free(queues->queues);
	mem_free(queues->activation);
	mem_free(queues->first_send);
	mem_free(queues->gradient);
	mem_free(queues);
}

/* ---- enqueueing ------------------------------------------------------------------------------ */

enum status train_queues_activation(struct train_queues *queues, int layer,
				    const struct outfeed_moment *moment, const float *values,
				    size_t count, struct err *err)
{
	enum status status = ST_OK;

	for (int i = queues->first_send[layer];
	     i < queues->first_send[layer + 1] && status == ST_OK; i++)
		status = outfeed_enqueue(queues->activation[i], moment, values, count, err);
	return status;
}

enum status train_queues_gradient(struct train_queues *queues, int number,
				  const struct outfeed_moment *moment, const float *values,
				  size_t count, struct err *err)
{
	return outfeed_enqueue(queues->gradient[number], moment, values, count, err);
}

bool train_queues_takes_gradient(const struct train_queues *queues, int number)
{
	return queues->gradient[number] != NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool train_queues_take(struct train_queues *queues, bool running, outfeed_visit visit, void *user)
{
	bool any = false;

	for (int q = 0; q < queues->plan->queue_count; q++)
		if (!running || !queues->last)
			any |= outfeed_next(queues->queues[q], visit, user);
	return any;
}

void train_queues_let_go(struct train_queues *queues)
{
	for (int q = 0; q < queues->plan->queue_count; q++)
		outfeed_let_go(queues->queues[q]);
}

void train_queues_restart(struct train_queues *queues)
{
	for (int q = 0; q < queues->plan->queue_count; q++)
		outfeed_restart(queues->queues[q]);
}

struct outfeed_queue *train_queues_find(const struct train_queues *queues, const char *name)
{
	for (int q = 0; q < queues->plan->queue_count; q++)
		if (strcmp(queues->plan->queues[q].name, name) == 0)
			return queues->queues[q];
	return NULL;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static const char *nearest_queue(const struct run_queues *plan, const char *name)
{
	const char *names[64];
	size_t count = 0;

	while (count < ARRAY_LEN(names) && (int)count < plan->queue_count) {
		names[count] = plan->queues[count].name;
		count++;
	}
	return str_nearest(name, names, count);
}

static void show_queues(const struct run_queues *plan, FILE *out)
{
	for (int q = 0; q < plan->queue_count; q++)
		fprintf(out, "%s\"%s\"", q == 0 ? ": there is " : ", ", plan->queues[q].name);
}

/* The tutorial's line, and why. */
static void show_no_queue(const struct train_session *session, bool off, const char *queue,
			  const char *callback, FILE *out)
{
	const struct run_queues *plan = &session->outfeed_plan;
	const char *near = nearest_queue(plan, queue);

	fprintf(out, "\n%s\nNo data enqueued\n(queue \"%s\" is not attached", callback, queue);
	if (off)
		fprintf(out, ": outfeed.capture is \"off\"");
	else if (strcmp(queue, RUN_OPTIMIZER_QUEUE) == 0)
		fprintf(out, ": outfeed.gradients is null");
	else if (near)
		fprintf(out, ": did you mean \"%s\"?", near);
	else if (plan->queue_count == 0)
		fprintf(out, ": the model has no outfeed layer");
	else
		show_queues(plan, out);
	fprintf(out, ")\n");
}

enum status train_queues_callback(struct train_queues *queues, const struct train_session *session,
				  const char *queue, const char *callback, FILE *out, int64_t epoch,
				  struct err *err)
{
	struct outfeed_queue *found = queues ? train_queues_find(queues, queue) : NULL;

	if (found)
		return outfeed_callback(found, callback, IPS_TRAIN, epoch, out, err);
	if (out)
		show_no_queue(session, !queues, queue, callback, out);
	return ST_OK;
}
