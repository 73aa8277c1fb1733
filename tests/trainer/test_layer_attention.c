/*
 * MultiHeadAttention and Attention: values against the formulas worked in double, gradients against
 * central differences of these; several inputs, blocks, dropout, any number of threads, refusals,
 * device operations.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "trainer/models/stage.h"

#define HEADS(options)                                                                             \
	"[{'class_name': 'MultiHeadAttention', 'config': {'name': 'l', 'num_heads': 2, "           \
	"'key_dim': 3" options "}}]"

enum {
	BATCH = 2,
	STEPS = 4,
	WIDE = 5, /* features */
	MOST = 6  /* of a row, of any tensor */
};

/* Steps that count, of queries and keys in one. An item's last steps and the next item's first are
 * neighbours in memory, and each counts in one of the masks. */
static const float hole[BATCH][STEPS] = {{0, 1, 0, 1}, {1, 1, 1, 0}};
static const float late[BATCH][STEPS] = {{1, 1, 0, 1}, {0, 1, 1, 1}};

/* Sizes of a form; inputs of query, value and key. */
static const struct form {
	const char *options;
	int inputs, keys, key_dim, value_dim;
	bool causal, bias;
	const float (*counting)[STEPS]; /* NULL: no mask */
} forms[] = {
	{"", 1, STEPS, 3, 3, false, true, NULL},
	{", 'use_bias': false, 'value_dim': 2", 1, STEPS, 3, 2, false, false, NULL},
	{", 'use_causal_mask': true", 1, STEPS, 3, 3, true, true, NULL},
	{"", 2, 3, 3, 3, false, true, NULL},
	{", 'value_dim': 1", 3, 3, 3, 1, false, true, NULL},
	{", 'use_causal_mask': true", 2, 3, 3, 3, true, true, NULL},
	{"", 1, STEPS, 3, 3, false, true, hole},
	{", 'use_causal_mask': true", 1, STEPS, 3, 3, true, true, hole},
	{"", 1, STEPS, 3, 3, false, true, late},
	{", 'use_causal_mask': true", 1, STEPS, 3, 3, true, true, late},
};

/* ---- the formulas ---------------------------------------------------------------------------- */

enum {
	PARAMS = 8,
	INPUTS = 3
};

struct numbers {
	double x[INPUTS][BATCH * 6 * WIDE];
	double param[PARAMS][WIDE * 2 * 3]; /* kernel, bias; of query, key, value, output */
};

/* Row @row of [rows, wide] times a kernel [wide, out], and the bias. */
static void project(const double *row, const double *kernel, const double *bias, int wide, int out,
		    double *y)
{
	for (int j = 0; j < out; j++) {
		y[j] = bias[j];
		for (int i = 0; i < wide; i++)
			y[j] += row[i] * kernel[i * out + j];
	}
}

/* The sum of the outputs times @slopes; the outputs to @y, what is looked at to @scores: [item,
 * head, query, key]. */
static double reference(const struct form *form, const struct numbers *n, const float *slopes,
			double *y, double *scores)
{
	const int value = form->inputs > 1, key = form->inputs > 2 ? 2 : value;
	const int wide = 2 * form->key_dim, deep = 2 * form->value_dim;
	double sum = 0.0;

	for (int at = 0; at < BATCH * STEPS; at++) {
		const int item = at / STEPS, step = at % STEPS;
		const int seen = form->causal && step + 1 < form->keys ? step + 1 : form->keys;
		double q[MOST], k[MOST], v[MOST], context[MOST] = {0.0};
		bool any = false;

		/* Keras's large negative scores: without a key to look at all are alike. */
		for (int j = 0; j < seen; j++)
			any |= !form->counting || form->counting[item][j] != 0.0f;
		any &= !form->counting || form->counting[item][step] != 0.0f;

		project(n->x[0] + at * WIDE, n->param[0], n->param[1], WIDE, wide, q);
		for (int h = 0; h < 2; h++) {
			double weight[6], all = 0.0;

			for (int j = 0; j < (any ? seen : form->keys); j++) {
				double score = 0.0;

				weight[j] = any ? 0.0 : 1.0;
				if (!any || (form->counting && form->counting[item][j] == 0.0f)) {
					all += weight[j];
					continue;
				}

				project(n->x[key] + (item * form->keys + j) * WIDE, n->param[2],
					n->param[3], WIDE, wide, k);
				for (int i = 0; i < form->key_dim; i++)
					score +=
						q[h * form->key_dim + i] * k[h * form->key_dim + i];
				all += weight[j] = exp(score / sqrt((double)form->key_dim));
			}
			for (int j = 0; j < (any ? seen : form->keys); j++) {
				scores[((item * 2 + h) * STEPS + step) * form->keys + j] =
					weight[j] / all;
				project(n->x[value] + (item * form->keys + j) * WIDE, n->param[4],
					n->param[5], WIDE, deep, v);
				for (int i = 0; i < form->value_dim; i++)
					context[h * form->value_dim + i] +=
						weight[j] / all * v[h * form->value_dim + i];
			}
		}
		project(context, n->param[6], n->param[7], deep, WIDE, y + at * WIDE);
		for (int i = 0; i < WIDE; i++)
			sum += y[at * WIDE + i] * (double)slopes[at * WIDE + i];
	}
	return sum;
}

/* What the layer makes of the numbers, as math_check_slopes() asks for it. */
struct slope {
	const struct form *form;
	const struct numbers *n;
	const float *slopes;
};

static double slope_value(const void *context)
{
	const struct slope *at = context;
	double y[BATCH * STEPS * WIDE], scores[BATCH * 2 * STEPS * STEPS];

	return reference(at->form, at->n, at->slopes, y, scores);
}

/* A layer at work with inputs of its own, of which each has a gradient. */
struct work {
	struct math_model m;
	const struct model_layer *layer;
	struct layer_pass pass;
	float *weights, *gradients;
	float x[INPUTS][BATCH * STEPS * WIDE], dx[INPUTS][BATCH * STEPS * WIDE];
	float y[BATCH * STEPS * WIDE], dy[BATCH * STEPS * WIDE];
	const float *inputs[INPUTS + 1];
	float *grad_inputs[INPUTS + 1];
	float dmask[BATCH * STEPS];
	float scores[BATCH * 2 * STEPS * STEPS];
};

#define CROPPED(name)                                                                              \
	"{'class_name': 'Cropping1D', 'name': '" name "', 'config': {'name': '" name               \
	"', 'cropping': [0, 1]}, 'inbound_nodes': [[['i', 0, 0, {}]]]}, "

/* Keys and values are the first steps of what queries are made of, by layers that do nothing else:
 * the model is there for its shapes. */
static void open_work(struct work *work, const char *class_name, const char *config, int inputs,
		      const float (*counting)[STEPS])
{
	static const char *const calls[] = {"['i', 0, 0, {}]", "['i', 0, 0, {}], ['a', 0, 0, {}]",
					    "['i', 0, 0, {}], ['a', 0, 0, {}], ['b', 0, 0, {}]"};
	static const char *const of_mask[] = {"['m', 0, 0, {}]",
					      "['m', 0, 0, {}], ['m', 0, 0, {}]"};
	static const char masking[] =
		"{'class_name': 'Masking', 'name': 'm', 'config': {'name': 'm'}, 'inbound_nodes': "
		"[[['i', 0, 0, {}]]]}, ";
	static const char end[] = ", {'class_name': 'Flatten', 'name': 'f', 'config': {'name': "
				  "'f'}, 'inbound_nodes': [[['l', 0, 0, {}]]]}";
	const struct compute_ops *ops;
	const struct model *model;
	char text[2048];

	memset(work, 0, sizeof(*work));
	snprintf(text, sizeof(text),
		 "[{'class_name': 'InputLayer', 'name': 'i', 'config': {'name': 'i', "
		 "'batch_input_shape': [null, 4, 5]}, 'inbound_nodes': []}, %s%s%s"
		 "{'class_name': '%s', 'name': 'l', 'config': {'name': 'l'%s}, 'inbound_nodes': "
		 "[[%s]]}%s], 'input_layers': [['i', 0, 0]], 'output_layers': [['%s', 0, 0]]",
		 counting ? masking : "", inputs > 1 && !counting ? CROPPED("a") : "",
		 inputs > 2 ? CROPPED("b") : "", class_name, config,
		 counting ? of_mask[inputs - 1] : calls[inputs - 1], counting ? end : "",
		 counting ? "f" : "l");
	math_model_open(&work->m, text, 2, (int64_t[]){STEPS, WIDE});
	model = work->m.model;
	for (int i = 0; i < model->layer_count; i++)
		if (!strcmp(model->layers[i].name, "l"))
			work->layer = &model->layers[i];
	assert_int_equal(work->layer->input_count, inputs + (counting != NULL));
	ops = compute_of(work->layer);
	work->weights = mem_aligned(model->weights + 1, sizeof(float));
	work->gradients = mem_aligned(model->weights + 1, sizeof(float));
	assert_true(work->weights && work->gradients);
	math_fill(work->weights, model->weights, 5, -0.9f, 0.9f);
	math_fill(work->dy, ARRAY_LEN(work->dy), 2, -1.0f, 1.0f);
	for (int i = 0; i < INPUTS; i++) {
		math_fill(work->x[i], ARRAY_LEN(work->x[i]), 7 + (uint32_t)i, -1.0f, 1.0f);
		work->inputs[i] = work->x[i];
		work->grad_inputs[i] = work->dx[i];
	}
	if (counting) {
		math_fill(work->dmask, ARRAY_LEN(work->dmask), 1, 7.0f, 7.0f);
		work->inputs[inputs] = counting[0];
		work->grad_inputs[inputs] = work->dmask;
	}
	work->pass = (struct layer_pass){.model = model,
					 .layer = work->layer,
					 .batch = BATCH,
					 .training = true,
					 .weights = work->weights,
					 .inputs = work->inputs,
					 .output = work->y,
					 .relu_most = INFINITY,
					 .scores = work->scores,
					 .grad_output = work->dy,
					 .grad_inputs = work->grad_inputs,
					 .gradients = work->gradients};
	work->pass.kept = mem_aligned(ops->kept(&work->pass) + 1, 1);
	work->pass.scratch = mem_aligned(ops->scratch(&work->pass), 1);
	assert_true(work->pass.kept && work->pass.scratch);
	ops->forward(&work->pass);
	ops->backward(&work->pass);
}

static void close_work(struct work *work)
{
	mem_free(work->weights);
	mem_free(work->gradients);
	mem_free(work->pass.kept);
	mem_free(work->pass.scratch);
	math_model_close(&work->m);
}

static void run_form(const struct form *form)
{
	static const char *const names[] = {"query", "query bias", "key",    "key bias",
					    "value", "value bias", "output", "output bias"};
	float slopes[BATCH * STEPS * WIDE];
	static struct work work;
	double y[BATCH * STEPS * WIDE], scores[ARRAY_LEN(work.scores)] = {0};
	const struct model_param *params;
	struct numbers n = {0};
	const struct slope slope = {form, &n, slopes};
	char config[256];

	snprintf(config, sizeof(config), ", 'num_heads': 2, 'key_dim': 3%s", form->options);
	math_fill(slopes, ARRAY_LEN(slopes), 2, -1.0f, 1.0f);
	open_work(&work, "MultiHeadAttention", config, form->inputs, form->counting);
	params = work.m.model->params;
	assert_int_equal(work.m.model->param_count, form->bias ? 8 : 4);
	for (int i = 0; i < form->inputs; i++)
		for (size_t j = 0; j < ARRAY_LEN(work.x[i]); j++)
			n.x[i][j] = (double)work.x[i][j];
	for (int p = 0; p < work.m.model->param_count; p++)
		for (size_t i = 0; i < params[p].count; i++)
			n.param[form->bias ? p : 2 * p][i] =
				(double)work.weights[params[p].offset + i];

	reference(form, &n, slopes, y, scores);
	assert_int_equal(compute_of(work.layer)->scores(&work.pass),
			 (size_t)(BATCH * 2 * STEPS * form->keys) * sizeof(float));
	for (size_t i = 0; i < ARRAY_LEN(scores); i++)
		if (fabs((double)work.scores[i] - scores[i]) > 1e-6)
			fail_msg("%d inputs%s: score %zu is %g, not %g", form->inputs,
				 form->options, i, (double)work.scores[i], scores[i]);
	for (size_t i = 0; i < ARRAY_LEN(y); i++)
		if (fabs((double)work.y[i] - y[i]) > 4e-6)
			fail_msg("%d inputs%s: output %zu is %g, not %g", form->inputs,
				 form->options, i, (double)work.y[i], y[i]);
	for (int i = 0; i < form->inputs; i++)
		math_check_slopes(slope_value, &slope, n.x[i],
				  (size_t)(BATCH * WIDE * (i ? form->keys : STEPS)), work.dx[i],
				  2e-5, 0.1, "an input");
	for (int p = 0; p < work.m.model->param_count; p++) {
		const int to = form->bias ? p : 2 * p;

		math_check_slopes(slope_value, &slope, n.param[to], params[p].count,
				  work.gradients + params[p].offset, 2e-5, 0.1, names[to]);
	}
	for (size_t i = 0; i < ARRAY_LEN(work.dmask); i++)
		assert_true(work.dmask[i] == 0.0f);
	close_work(&work);
}

static void test_values_and_gradients_are_the_formulas(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(forms); f++)
		run_form(&forms[f]);
}

/* Zeros, which no gradient comes through; nobody looks at keys that do not count. */
static void test_attention_of_a_masked_query_is_none(void **state)
{
	static struct work work;

	(void)state;
	open_work(&work, "Attention", "", 2, hole);
	for (int at = 0; at < BATCH * STEPS; at++)
		for (int i = 0; i < WIDE; i++) {
			const bool counts = hole[at / STEPS][at % STEPS] != 0.0f;

			assert_true((work.y[at * WIDE + i] != 0.0f) == counts);
			for (int input = 0; input < 2; input++)
				assert_true((work.dx[input][at * WIDE + i] != 0.0f) == counts);
		}
	close_work(&work);
}

/* One head whose projections are the identity, without a scale, is Attention. */
static void test_attention_has_no_projections(void **state)
{
	static struct work work;

	(void)state;
	open_work(&work, "Attention", "", 3, NULL);
	assert_int_equal(work.m.model->param_count, 0);
	for (int item = 0; item < BATCH; item++) {
		for (int i = 0; i < STEPS; i++) {
			double weight[3], all = 0.0;

			for (int j = 0; j < 3; j++) {
				double score = 0.0;

				for (int c = 0; c < WIDE; c++)
					score += (double)work.x[0][(item * STEPS + i) * WIDE + c] *
						 (double)work.x[2][(item * 3 + j) * WIDE + c];
				all += weight[j] = exp(score);
			}
			for (int c = 0; c < WIDE; c++) {
				double sum = 0.0;

				for (int j = 0; j < 3; j++)
					sum += weight[j] / all *
					       (double)work.x[1][(item * 3 + j) * WIDE + c];
				assert_true(
					fabs(sum - (double)work.y[(item * STEPS + i) * WIDE + c]) <
					2e-6);
			}
		}
	}
	close_work(&work);
}

/* ---- blocks and dropout ---------------------------------------------------------------------- */

#define LONG HEADS(", 'use_causal_mask': true, 'dropout': 0.25")

static double value_of(struct layer_rig *rig, const float *x, const float *slopes)
{
	double value = 0.0;

	memcpy(rig->x, x, rig->in * sizeof(*x));
	layer_rig_forward(rig);
	for (size_t i = 0; i < rig->out; i++)
		value += (double)rig->y[i] * (double)slopes[i];
	return value;
}

/* Three blocks; the backward pass must drop what the forward pass dropped. */
static void test_blocks_and_dropout_have_their_gradient(void **state)
{
	float x[150 * 5], slopes[150 * 5], way[150 * 5], moved[150 * 5];
	double along = 0.0, up, down;
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LONG, 2, (int64_t[]){150, 5}, 1, true, NULL);
	math_fill(rig.weights, rig.m.model->weights, 5, -0.9f, 0.9f);
	math_fill(x, ARRAY_LEN(x), 1, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 2, -1.0f, 1.0f);
	math_fill(way, ARRAY_LEN(way), 3, -1.0f, 1.0f);
	value_of(&rig, x, slopes);
	memcpy(rig.dy, slopes, sizeof(slopes));
	layer_rig_backward(&rig);
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		along += (double)rig.dx[i] * (double)way[i];
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		moved[i] = x[i] + 1e-3f * way[i];
	up = value_of(&rig, moved, slopes);
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		moved[i] = x[i] - 1e-3f * way[i];
	down = value_of(&rig, moved, slopes);
	if (fabs((up - down) / 2e-3 - along) > 0.01 * (fabs(along) + 1.0))
		fail_msg("along a way the slope is %g, not %g", along, (up - down) / 2e-3);
	rig.pass.training = false;
	up = value_of(&rig, x, slopes);
	rig.pass.step = 1;
	assert_true(value_of(&rig, x, slopes) == up);
	rig.pass.training = true;
	down = value_of(&rig, x, slopes);
	assert_true(down != up);
	rig.pass.step = 2;
	assert_true(value_of(&rig, x, slopes) != down);
	layer_rig_close(&rig);
}

/* What comes later changes nothing that was before. */
static void test_a_causal_mask_hides_what_comes(void **state)
{
	struct layer_rig rig;
	float before[150 * 5];

	(void)state;
	layer_rig_open(&rig, HEADS(", 'use_causal_mask': true"), 2, (int64_t[]){150, 5}, 1, true,
		       NULL);
	math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
	layer_rig_forward(&rig);
	memcpy(before, rig.y, sizeof(before));
	for (size_t i = 100 * 5; i < 150 * 5; i++)
		rig.x[i] += 1.0f;
	layer_rig_forward(&rig);
	assert_memory_equal(before, rig.y, 100 * 5 * sizeof(float));
	for (int i = 100; i < 150; i++)
		assert_true(memcmp(before + i * 5, rig.y + i * 5, 5 * sizeof(float)) != 0);
	layer_rig_close(&rig);
}

/* Three blocks, of which dropout is not seen: what is before the query adds up to 1. */
static void test_what_is_looked_at_adds_up(void **state)
{
	enum {
		LENGTH = 150
	};
	static float scores[2 * LENGTH * LENGTH];
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LONG, 2, (int64_t[]){LENGTH, 5}, 1, true, NULL);
	math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
	math_fill(scores, ARRAY_LEN(scores), 1, 7.0f, 7.0f);
	rig.pass.scores = scores;
	layer_rig_forward(&rig);
	for (int row = 0; row < 2 * LENGTH; row++) {
		double sum = 0.0;

		for (int key = 0; key < LENGTH; key++) {
			const float score = scores[row * LENGTH + key];

			assert_true(key <= row % LENGTH ? score > 0.0f : score == 0.0f);
			sum += (double)score;
		}
		assert_true(fabs(sum - 1.0) < 1e-5);
	}
	layer_rig_close(&rig);
}

static void test_any_pool_gives_the_same_bytes(void **state)
{
	float *first = NULL, *dx = NULL;

	(void)state;
	for (unsigned helpers = 0; helpers < 3; helpers++) {
		struct pool *pool = NULL;
		struct layer_rig rig;
		size_t floats;

		if (helpers)
			assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
		layer_rig_open(&rig,
			       "[{'class_name': 'MultiHeadAttention', 'config': {'num_heads': 3, "
			       "'key_dim': 17, 'dropout': 0.1, 'use_causal_mask': true}}]",
			       2, (int64_t[]){170, 33}, 5, true, pool);
		math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
		math_fill(rig.dy, rig.out, 2, -1.0f, 1.0f);
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		floats = rig.m.model->weights;
		if (!first) {
			first = mem_aligned(floats, sizeof(float));
			dx = mem_aligned(rig.in, sizeof(float));
			assert_true(first && dx);
			memcpy(first, rig.gradients, floats * sizeof(float));
			memcpy(dx, rig.dx, rig.in * sizeof(float));
		}
		assert_memory_equal(first, rig.gradients, floats * sizeof(float));
		assert_memory_equal(dx, rig.dx, rig.in * sizeof(float));
		layer_rig_close(&rig);
		pool_free(pool);
	}
	mem_free(first);
	mem_free(dx);
}

/* Four times the sequence needs four times the memory, about: no square of it. */
static void test_memory_grows_with_the_sequence(void **state)
{
	size_t bytes[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct math_model m;
		struct layer_pass pass = {.batch = 1, .training = true};

		math_model_open(&m, HEADS(""), 2, (int64_t[]){i ? 4096 : 1024, 5});
		pass.model = m.model;
		pass.layer = &m.model->layers[0];
		bytes[i] = compute_of(pass.layer)->kept(&pass) +
			   compute_of(pass.layer)->scratch(&pass);
		math_model_close(&m);
	}
	assert_true(bytes[1] < 4 * bytes[0]);
}

/* ---- refusals and costs ---------------------------------------------------------------------- */

/* All axes but the batch and the last, as Keras 3 writes its default. */
static void test_the_axis_of_steps_is_the_default(void **state)
{
	static const char *const axes[] = {"null", "[1]", "[-2]", "1"};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(axes); i++) {
		struct math_model m;

		snprintf(text, sizeof(text), HEADS(", 'attention_axes': %s"), axes[i]);
		math_model_open(&m, text, 2, (int64_t[]){STEPS, WIDE});
		math_model_close(&m);
	}
}

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{HEADS(", 'attention_axes': [1, 2]"), "config.attention_axes", ST_UNSUPPORTED},
		{HEADS(", 'attention_axes': [2]"), "config.attention_axes", ST_UNSUPPORTED},
		{HEADS(", 'output_shape': 7"), "config.output_shape", ST_UNSUPPORTED},
		{HEADS(", 'dropout': 1.0"), "config.dropout", ST_INVALID},
		{HEADS(", 'value_dim': 0"), "config.value_dim", ST_INVALID},
		{HEADS(", 'heads': 2"), "unknown option \"heads\"", ST_INVALID},
		{"[{'class_name': 'MultiHeadAttention', 'config': {'key_dim': 2}}]", "num_heads",
		 ST_INVALID},
		{"[{'class_name': 'MultiHeadAttention', 'config': {'num_heads': 2}}]", "key_dim",
		 ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 2, (int64_t[]){5, 3}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(HEADS(""), 2, (int64_t[]){1000000, 3}, ST_LIMIT, "2 heads over 1000000");
	layer_rig_refused(HEADS(""), 1, (int64_t[]){5}, ST_INVALID, "needs sequences");
}

/* ---- step by step ---------------------------------------------------------------------------- */

#define AT(name) "[['" name "', 0, 0, {}]]"
#define LAYER(class_name, name, config, from)                                                      \
	"{'class_name': '" class_name "', 'name': '" name "', 'config': {'name': '" name           \
	"'" config "}, 'inbound_nodes': [" from "]}"
#define PLACES  LAYER("PositionEmbedding", "p", ", 'sequence_length': 70", AT("i"))
#define PLACED  LAYER("Add", "s", "", "[['i', 0, 0, {}], ['p', 0, 0, {}]]")
#define NORMAL  LAYER("LayerNormalization", "n", "", AT("s"))
#define OPTIONS ", 'num_heads': 2, 'key_dim': 3"
#define LOOKS(causal)                                                                              \
	LAYER("MultiHeadAttention", "l", OPTIONS,                                                  \
	      "[['n', 0, 0, {'value': ['n', 0, 0], 'use_causal_mask': " causal "}]]")
#define JOINED LAYER("Add", "t", "", "[['s', 0, 0, {}], ['l', 0, 0, {}]]")
#define DENSE  LAYER("Dense", "d", ", 'units': 5, 'activation': 'gelu'", AT("t"))
#define MIXED                                                                                      \
	LAYER("Attention", "a", "", "[['d', 0, 0, {}], ['t', 0, 0, {'use_causal_mask': true}]]")
#define RELU LAYER("ReLU", "r", "", AT("a"))
#define BLOCK(causal, last)                                                                        \
	"[{'class_name': 'InputLayer', 'name': 'i', 'config': {'name': 'i', "                      \
	"'batch_input_shape': [null, 70, 5]}, 'inbound_nodes': []}, " PLACES ", " PLACED           \
	", " NORMAL                                                                                \
	", " LOOKS(causal) ", " JOINED ", " DENSE ", " MIXED ", " RELU ", " last                   \
			   "], 'input_layers': [['i', 0, 0]], 'output_layers': [['o', 0, 0]]"
#define NEXT LAYER("Dense", "o", ", 'units': 4, 'activation': 'softmax'", AT("r"))

/* A step more is the same bytes as all steps again, whatever stood there before. */
static void test_a_step_more_is_the_same_bytes(void **state)
{
	enum {
		ALL = 70, /* more than a block of queries */
		FIRST = 3
	};
	struct math_model m;
	struct stage_params p = {.batch = 1, .slots = 1};
	struct stage *all, *each;
	float *weights;

	(void)state;
	math_model_open(&m, BLOCK("true", NEXT), 2, (int64_t[]){ALL, WIDE});
	assert_true(stage_by_steps(m.model));
	p.model = m.model;
	p.layer_count = m.model->layer_count;
	weights = mem_aligned(m.model->weights, sizeof(float));
	assert_non_null(weights);
	math_fill(weights, m.model->weights, 5, -0.9f, 0.9f);
	assert_int_equal(stage_new(&all, &p, NULL), ST_OK);
	p.unshared = true;
	assert_int_equal(stage_new(&each, &p, NULL), ST_OK);
	math_fill(stage_input(all, 0), ALL * WIDE, 7, -1.0f, 1.0f);
	math_fill(stage_input(each, 0), ALL * WIDE, 8, -1.0f, 1.0f);
	memcpy(stage_input(each, 0), stage_input(all, 0), FIRST * WIDE * sizeof(float));
	stage_forward(all, 0, 1, 0, weights, NULL, NULL);
	stage_forward(each, 0, 1, 0, weights, NULL, NULL);
	for (int64_t at = FIRST; at < ALL; at++) {
		memcpy(stage_input(each, 0) + at * WIDE, stage_input(all, 0) + at * WIDE,
		       WIDE * sizeof(float));
		assert_memory_not_equal(stage_output(each, 0) + at * 4,
					stage_output(all, 0) + at * 4, 4 * sizeof(float));
		stage_forward_step(each, 0, at, weights);
		assert_memory_equal(stage_output(each, 0), stage_output(all, 0),
				    (size_t)(at + 1) * 4 * sizeof(float));
	}
	stage_free(all);
	stage_free(each);
	mem_free(weights);
	math_model_close(&m);
}

static void test_models_that_look_ahead_have_no_steps(void **state)
{
	static const char *const texts[] = {
		BLOCK("false", NEXT),
		BLOCK("true",
		      LAYER("Softmax", "q", "", AT("r")) ", " LAYER("Flatten", "o", "", AT("q"))),
		BLOCK("true", LAYER("Conv1D", "o",
				    ", 'filters': 4, 'kernel_size': 3, 'padding': "
				    "'same'",
				    AT("r"))),
		BLOCK("true",
		      LAYER("LSTM", "o", ", 'units': 4, 'return_sequences': true", AT("r"))),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct math_model m;

		math_model_open(&m, texts[i], 2, (int64_t[]){70, WIDE});
		assert_false(stage_by_steps(m.model));
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_gradients_are_the_formulas),
		cmocka_unit_test(test_attention_has_no_projections),
		cmocka_unit_test(test_attention_of_a_masked_query_is_none),
		cmocka_unit_test(test_blocks_and_dropout_have_their_gradient),
		cmocka_unit_test(test_a_causal_mask_hides_what_comes),
		cmocka_unit_test(test_what_is_looked_at_adds_up),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes),
		cmocka_unit_test(test_memory_grows_with_the_sequence),
		cmocka_unit_test(test_a_step_more_is_the_same_bytes),
		cmocka_unit_test(test_models_that_look_ahead_have_no_steps),
		cmocka_unit_test(test_the_axis_of_steps_is_the_default),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
