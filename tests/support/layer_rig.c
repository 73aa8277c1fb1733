/*
 * One layer at work.
 */
#include "support/layer_rig.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "trainer/models/model_weights.h"

static void *rig_memory(size_t bytes)
{
	void *memory = mem_aligned(bytes ? bytes : 1, 1);

	assert_non_null(memory);
	return memory;
}

#define GUARD 16 /* floats behind what a pass writes */

static float *rig_unwritten(size_t count)
{
	float *values = rig_memory((count + GUARD) * sizeof(float));

	math_fill(values, count + GUARD, 1, LAYER_RIG_UNWRITTEN, LAYER_RIG_UNWRITTEN);
	return values;
}

static void rig_check_unwritten(const float *values, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		assert_true(values[i] == LAYER_RIG_UNWRITTEN);
}

static void rig_check_gradients(const struct layer_rig *rig)
{
	const struct model *model = rig->m.model;
	size_t end = 0;

	for (int p = 0; p < model->param_count; p++) {
		rig_check_unwritten(rig->gradients, end, model->params[p].offset);
		end = model->params[p].offset + model->params[p].count;
	}
	rig_check_unwritten(rig->gradients, end, model->weights + GUARD);
}

void layer_rig_open(struct layer_rig *rig, const char *layers, int ndim, const int64_t *dims,
		    int64_t batch, bool training, struct pool *pool)
{
	const struct model_layer *layer;
	const struct model *model;

	memset(rig, 0, sizeof(*rig));
	math_model_open(&rig->m, layers, ndim, dims);
	model = rig->m.model;
	/* Masking, its mask, the layer, Flatten. */
	layer = &model->layers[model->layer_count > 1 ? 2 : 0];
	assert_int_equal(model->layer_count, layer->input_count > 1 ? 4 : 1);
	rig->in = (size_t)(batch * model_shape_count(&layer->input));
	rig->out = (size_t)(batch * model_shape_count(&layer->output));
	rig->x = rig_memory(rig->in * sizeof(float));
	rig->dx = rig_unwritten(rig->in);
	rig->y = rig_unwritten(rig->out);
	rig->dy = rig_memory(rig->out * sizeof(float));
	rig->weights = rig_memory(model->weights * sizeof(float));
	rig->gradients = rig_unwritten(model->weights);
	model_init_weights(model, rig->weights, 1);
	if (layer->input_count > 1) {
		const size_t steps = (size_t)(batch * layer->input.dim[0]);

		rig->mask = rig_memory(steps * sizeof(float));
		math_fill(rig->mask, steps, 1, 1.0f, 1.0f);
	}

	rig->pass = (struct layer_pass){.model = model,
					.layer = layer,
					.batch = batch,
					.training = training,
					.pool = pool,
					.weights = rig->weights,
					.output = rig->y,
					.relu_most = INFINITY,
					.grad_output = rig->dy,
					.gradients = rig->gradients};
	if (compute_of(layer)->kept && training)
		rig->pass.kept = rig_memory(compute_of(layer)->kept(&rig->pass));
	if (compute_of(layer)->scratch) {
		struct layer_pass training_pass = rig->pass, inference_pass = rig->pass;
		size_t trains, infers;

		training_pass.training = true;
		inference_pass.training = false;
		trains = compute_of(layer)->scratch(&training_pass);
		infers = compute_of(layer)->scratch(&inference_pass);

		assert_true(trains >= infers); /* a stage that trains evaluates, too */
		rig->pass.scratch = rig_memory(training ? trains : infers);
	}
}

void layer_rig_close(struct layer_rig *rig)
{
	mem_free(rig->x);
	mem_free(rig->dx);
	mem_free(rig->mask);
	mem_free(rig->y);
	mem_free(rig->dy);
	mem_free(rig->weights);
	mem_free(rig->gradients);
	mem_free(rig->pass.kept);
	mem_free(rig->pass.scratch);
	math_model_close(&rig->m);
}

void layer_rig_fill(struct layer_rig *rig)
{
	math_fill(rig->x, rig->in, 1, -1.0f, 1.0f);
	math_fill(rig->dy, rig->out, 2, -1.0f, 1.0f);
	math_fill(rig->dx, rig->in, 3, 7.0f, 7.0f);
}

void layer_rig_forward(struct layer_rig *rig)
{
	rig->inputs[0] = rig->x;
	rig->inputs[1] = rig->mask;
	rig->pass.inputs = rig->inputs;
	compute_of(rig->pass.layer)->forward(&rig->pass);
	rig_check_unwritten(rig->y, rig->out, rig->out + GUARD);
}

void layer_rig_backward(struct layer_rig *rig)
{
	rig->inputs[0] = rig->x;
	rig->inputs[1] = rig->mask;
	if (!rig->pass.grad_inputs)
		rig->grad_inputs[0] = rig->dx;
	rig->pass.inputs = rig->inputs;
	rig->pass.grad_inputs = rig->grad_inputs;
	rig->pass.add = rig->add;
	compute_of(rig->pass.layer)->backward(&rig->pass);
	rig_check_unwritten(rig->dx, rig->in, rig->in + GUARD);
	rig_check_gradients(rig);
}

static size_t rig_offset(const struct layer_rig *rig, const char *short_name)
{
	const struct model *model = rig->m.model;

	for (int i = 0; i < model->param_count; i++)
		if (!strcmp(model->params[i].short_name, short_name))
			return model->params[i].offset;
	fail_msg("there is no parameter %s", short_name);
	return 0;
}

float *layer_rig_weights(struct layer_rig *rig, const char *short_name)
{
	return rig->weights + rig_offset(rig, short_name);
}

const float *layer_rig_gradients(struct layer_rig *rig, const char *short_name)
{
	return rig->gradients + rig_offset(rig, short_name);
}

void layer_rig_refused(const char *layers, int ndim, const int64_t *dims, enum status status,
		       const char *part)
{
	struct model_shape shape = {.ndim = ndim};
	char *text = mem_printf("{\"layers\": %s}", layers);
	struct model *model = NULL;
	struct err err = {0};
	struct json_at root;
	cJSON *json;

	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	memcpy(shape.dim, dims, (size_t)ndim * sizeof(*dims));
	assert_int_equal(json_parse(&json, text, strlen(text), "test", &err), ST_OK);
	root = json_root("test", json);
	assert_int_equal(model_new(&model, &root, &shape, &err), status);
	assert_null(model);
	assert_contains(err.text, part);
	cJSON_Delete(json);
	mem_free(text);
}

void layer_rig_check_pools(const char *layer, const int64_t dims[3], int64_t batch,
			   void (*fill)(struct layer_rig *rig),
			   void (*more)(struct layer_rig *rig, const float *y, const float *dx))
{
	static const unsigned helpers[] = {0, 1, 3};
	float *y = NULL, *dx = NULL;

	for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
		struct layer_rig rig;
		struct pool *pool;

		assert_int_equal(pool_new(&pool, helpers[i], NULL), ST_OK);
		layer_rig_open(&rig, layer, 3, dims, batch, true, pool);
		fill(&rig);
		support_fail_alloc(0);
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		assert_false(support_alloc_failed());
		support_fail_alloc(-1);
		if (!i) {
			y = rig.y;
			dx = rig.dx;
			rig.y = rig.dx = NULL;
		} else {
			assert_memory_equal(y, rig.y, rig.out * sizeof(float));
			assert_memory_equal(dx, rig.dx, rig.in * sizeof(float));
			if (more)
				more(&rig, y, dx);
		}
		layer_rig_close(&rig);
		pool_free(pool);
	}
	mem_free(y);
	mem_free(dx);
}
