/*
 * predict: outputs gathered execution by execution and written into an .npz.
 */
#include "trainer/train_predict.h"

#include <string.h>

#include "common/mem.h"
#include "common/npz_writer.h"
#include "trainer/train_phase.h"

struct predictions {
	float *values; /* [items, width]; NULL: nobody wants them */
	int64_t items;
	size_t width;
};

static const struct model_shape *output_shape(const struct train_session *session)
{
	return &session->model->layers[session->model->layer_count - 1].output;
}

static enum status predictions_new(struct predictions *out, const struct train_session *session,
				   struct err *err)
{
	const int64_t most = session->layout->predict_steps * session->layout->replicas *
			     session->run->data.batch_size;
	size_t count;

	*out = (struct predictions){.width = (size_t)model_shape_count(output_shape(session))};
	if (!session->run->predict.output)
		return ST_OK;
	if (__builtin_mul_overflow((size_t)most, out->width, &count))
		return err_nomem(err);
	out->values = mem_calloc(count, sizeof(*out->values));
	if (!out->values)
		return err_set(err, ST_NOMEM, "out of memory: %.1f GB for the predictions",
			       (double)count * 4e-9);
	return ST_OK;
}

/* What the execution has put out, batch after batch. */
static void take(struct predictions *out, const struct train_phase *phase)
{
	const int64_t replicas = phase->session->layout->replicas;
	const size_t batch = (size_t)phase->session->run->data.batch_size;

	for (int64_t i = 0; i < phase->steps_per_execution * replicas; i++) {
		const int64_t items = train_phase_items(phase, i / replicas, i % replicas);

		if (out->values)
			memcpy(out->values + (size_t)out->items * out->width,
			       phase->outputs + (size_t)i * batch * out->width,
			       (size_t)items * out->width * sizeof(float));
		out->items += items;
	}
}

static enum status save(const struct predictions *predictions, const struct train_session *session,
			struct err *err)
{
	const struct model_shape *shape = output_shape(session);
	struct npz_member array = {.name = "predictions", .ndim = shape->ndim + 1};
	struct npz_writer writer;
	enum status status;

	if (!predictions->values)
		return ST_OK;
	if (array.ndim > NPZ_WRITER_DIMS)
		return err_set(err, ST_UNSUPPORTED, "predict.output: an output of %d dimensions",
			       shape->ndim);
	array.dim[0] = predictions->items;
	memcpy(array.dim + 1, shape->dim, (size_t)shape->ndim * sizeof(*shape->dim));
	status = npz_writer_open(&writer, session->run->predict.output, err);
	if (status != ST_OK)
		return status;
	status = npz_writer_put(&writer, &array, predictions->values,
				(size_t)predictions->items * predictions->width);
	return npz_writer_close(&writer, status);
}

enum status train_predict(struct train_session *session, struct train_screen *screen,
			  int64_t *items, struct err *err)
{
	static const struct train_figures none = {0, NULL, NULL};
	const struct run_layout *layout = session->layout;
	struct predictions predictions;
	struct train_phase *phase;
	enum status status = train_phase_new(&phase, session, IPS_PREDICT, screen, err);

	*items = 0;
	if (status != ST_OK)
		return status;
	status = predictions_new(&predictions, session, err);
	train_screen_evaluate(screen, IPS_PREDICT, layout->predict_steps * layout->replicas, &none);
	for (int64_t i = 0;
	     status == ST_OK && i < layout->predict_steps / layout->predict_steps_per_execution;
	     i++) {
		status = train_phase_execute(phase, IPS_NULL, err);
		if (status == ST_OK)
			take(&predictions, phase);
		if (status == ST_OK && train_interrupted())
			status = err_set(err, ST_INTERRUPTED, "interrupted in the prediction");
	}
	train_screen_end(screen, train_phase_device_step_ns(phase));
	if (status == ST_OK)
		status = save(&predictions, session, err);
	*items = predictions.items;
	mem_free(predictions.values);
	train_phase_free(phase);
	return status;
}
