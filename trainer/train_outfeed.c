/*
 * From the run file to queues and tensors, and from a worker's place to the order of execution.
 *
 * Ownership: the session's; keys belong to their queues. Threading: as the header says.
 */
#include "trainer/train_outfeed.h"

#include <string.h>
#include <sys/statvfs.h>

#include "common/mem.h"

/* By replica nothing differs, so keys are the session's: a key has a state per replica itself. */
struct train_outfeed {
	struct outfeed *outfeed;
	struct outfeed_queue *activations, *maybe_activations, *gradients; /* NULL: none */
	struct outfeed_key **activation;                                   /* by layer */
	struct outfeed_key **gradient;                                     /* by parameter */
};

/* ---- making -----------------------------------------------------------------------------------
 */

static enum status new_queue(struct train_session *session, struct outfeed_queue **out,
			     const char *name, const struct run_texts *filters, bool wrapped,
			     struct err *err)
{
	const struct outfeed_queue_params params = {
		.name = name,
		.mode = session->run->outfeed.last ? OUTFEED_LAST : OUTFEED_ALL,
		.filters = filters->given ? filters->items : NULL,
		.filter_count = filters->given ? filters->count : 0,
		.replicas = session->layout->replicas,
		.wrapped = wrapped,
	};

	if (*out != NULL)
		return ST_OK;
	return outfeed_queue_new(out, session->outfeed->outfeed, &params, err);
}

static enum status add_activation(struct train_session *session, int position, struct err *err)
{
	static const struct run_texts no_filters = {NULL, 0, false};
	const struct model_layer *layer = &session->model->layers[position];
	struct train_outfeed *of = session->outfeed;
	const bool plain = model_layer_outfeed(layer) == MODEL_OUTFEED;
	struct outfeed_queue **queue = plain ? &of->activations : &of->maybe_activations;
	int64_t shape[MODEL_DIMS + 1];
	const struct outfeed_tensor_params tensor = {
		.key = layer->name,
		.kind = OUTFEED_ACTIVATION,
		.layer = layer->name,
		.stage = session->layout->stage[position],
		.shape = shape,
		.ndim = layer->output.ndim + 1,
	};
	enum status status;

	status = new_queue(session, queue,
			   plain ? "activations_outfeed_queue" : "multi_activations_outfeed_queue",
			   plain ? &no_filters : &session->run->outfeed.activations, !plain, err);
	if (status != ST_OK)
		return status;
	shape[0] = session->run->data.batch_size;
	memcpy(shape + 1, layer->output.dim, sizeof(layer->output.dim));
	return outfeed_queue_add(*queue, &of->activation[position], &tensor,
				 plain || layer->final_outfeed, err);
}

static enum status add_gradient(struct train_session *session, int number, struct err *err)
{
	const struct model_param *param = &session->model->params[number];
	struct train_outfeed *of = session->outfeed;
	const struct outfeed_tensor_params tensor = {
		.key = arena_printf(&session->arena, "%s_grad", param->name),
		.kind = OUTFEED_GRADIENT,
		.layer = session->model->layers[param->layer].name,
		.stage = session->layout->stage[param->layer],
		.shape = param->shape.dim,
		.ndim = param->shape.ndim,
	};

	if (tensor.key == NULL)
		return err_nomem(err);
	return outfeed_queue_add(of->gradients, &of->gradient[number], &tensor, true, err);
}

static enum status add_keys(struct train_session *session, struct err *err)
{
	const struct run_file *run = session->run;
	struct train_outfeed *of = session->outfeed;
	enum status status = ST_OK;

	for (int i = 0; i < session->model->layer_count && status == ST_OK; i++)
		if (model_layer_outfeed(&session->model->layers[i]) != MODEL_NO_OUTFEED)
			status = add_activation(session, i, err);
	if (status != ST_OK || !run->outfeed.gradients.given)
		return status;
	status = new_queue(session, &of->gradients, "optimizer_outfeed_queue",
			   &run->outfeed.gradients, true, err);
	for (int p = session->model->param_count - 1; p >= 0 && status == ST_OK; p--)
		status = add_gradient(session, p, err);
	return status;
}

/* A report never takes more than half of what its disk has free. */
static int64_t budget_of(const struct train_session *session)
{
	int64_t budget = session->run->outfeed.budget;
	struct statvfs disk;
	double half;

	if (session->report == NULL || statvfs(session->report, &disk) != 0)
		return budget;
	half = (double)disk.f_bavail * (double)disk.f_frsize / 2;
	return half < (double)budget ? (int64_t)half : budget;
}

static enum status new_recorder(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	const struct outfeed_params params = {
		.recording = session->recording,
		.policy = &session->run->outfeed.capture,
		.replicas = session->layout->replicas,
		.budget = budget_of(session),
		.pool = session->pool,
	};

	return outfeed_new(&of->outfeed, &params, err);
}

enum status train_outfeed_new(struct train_session *session, struct err *err)
{
	const struct model *model = session->model;
	struct train_outfeed *of;
	enum status status;

	if (session->run->outfeed.off)
		return ST_OK;
	of = mem_calloc(1, sizeof(*of));
	session->outfeed = of;
	if (of == NULL)
		return err_nomem(err);
	of->activation = mem_calloc((size_t)model->layer_count + 1, sizeof(struct outfeed_key *));
	of->gradient = mem_calloc((size_t)model->param_count + 1, sizeof(struct outfeed_key *));
	if (of->activation == NULL || of->gradient == NULL)
		return err_nomem(err);
	status = new_recorder(session, err);
	return status == ST_OK ? add_keys(session, err) : status;
}

enum status train_outfeed_close(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	enum status status;

	if (of == NULL)
		return ST_OK;
	status = outfeed_close(of->outfeed, err);
	outfeed_queue_free(of->activations);
	outfeed_queue_free(of->maybe_activations);
	outfeed_queue_free(of->gradients);
	mem_free(of->activation);
	mem_free(of->gradient);
	mem_free(of);
	session->outfeed = NULL;
	return status;
}

/* ---- the order of execution ---------------------------------------------------------------------
 */

/*
 * Numbers that grow along every chain of computation, and are the same for any schedule: by weight
 * update, micro-batch, forward before backward before update, stages as the data flows, and within
 * a stage as the data flows.
 */
static uint64_t order_of(const struct train_session *session, int64_t update, int64_t microbatch,
			 uint64_t position, uint64_t within)
{
	const uint64_t stages = (uint64_t)session->layout->stages;
	const uint64_t tensors = (uint64_t)session->model->layer_count +
				 4 * (uint64_t)session->model->param_count + 1;
	const uint64_t parts = (uint64_t)session->layout->accumulation + 1;

	return (((uint64_t)update * parts + (uint64_t)microbatch) * (2 * stages) + position) *
		       tensors +
	       within;
}

static struct outfeed_moment moment_of(const struct train_session *session,
				       const struct train_outfeed_place *place, uint64_t within)
{
	const uint64_t stage = (uint64_t)place->keys.stage;
	const uint64_t position = place->keys.phase == 'B'
					  ? 2 * (uint64_t)session->layout->stages - 1 - stage
					  : stage;

	return (struct outfeed_moment){
		.keys = place->keys,
		.time_ns = ips_recording_now_ns(session->recording),
		.order = order_of(session, place->update, place->microbatch, position, within),
	};
}

/* ---- recording ----------------------------------------------------------------------------------
 */

enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place, int layer,
				     const float *values, size_t count, struct err *err)
{
	struct outfeed_moment moment;

	if (session->outfeed == NULL || session->outfeed->activation[layer] == NULL)
		return ST_OK;
	moment = moment_of(session, place, (uint64_t)layer);
	return outfeed_enqueue(session->outfeed->activation[layer], &moment, values, count, err);
}

enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err)
{
	const struct model *model = session->model;
	const struct train_outfeed *of = session->outfeed;
	enum status status = ST_OK;

	if (of == NULL || of->gradients == NULL || session->run->outfeed.optimizer_mode != mode)
		return ST_OK;
	for (int p = model->param_count - 1; p >= 0 && status == ST_OK; p--) {
		const struct model_param *param = &model->params[p];
		struct outfeed_moment moment;

		if (of->gradient[p] == NULL ||
		    session->layout->stage[param->layer] != (int)place->keys.stage)
			continue;
		moment = moment_of(session, place, (uint64_t)(model->param_count - p));
		status = outfeed_enqueue(of->gradient[p], &moment, gradients + param->offset,
					 param->count, err);
	}
	return status;
}

/* ---- callbacks ----------------------------------------------------------------------------------
 */

enum status train_outfeed_show(struct train_session *session, FILE *out, int64_t epoch,
			       struct err *err)
{
	const struct train_outfeed *of = session->outfeed;
	enum status status = ST_OK;

	if (of == NULL)
		return ST_OK;
	const struct {
		struct outfeed_queue *queue;
		const char *name;
	} callbacks[] = {
		{of->gradients, "Gradients callback"},
		{of->activations, "Single layer activations callback"},
		{of->maybe_activations, "Multi-layer activations callback"},
	};

	for (size_t i = 0; i < ARRAY_LEN(callbacks) && status == ST_OK; i++)
		if (callbacks[i].queue != NULL)
			status = outfeed_callback(callbacks[i].queue, callbacks[i].name, IPS_TRAIN,
						  epoch, out, err);
	return status;
}
