/*
 * MultiHeadAttention and Attention: see model/layers/layer_attention.c for the formulas.
 *
 * One thread computes a head of an item, in blocks of ATTENTION_BLOCK queries. The scores of a
 * block are computed, used and discarded, so that memory grows linearly with the sequence instead
 * of quadratically; the backward pass recomputes them. Gradients of keys and values are summed
 * block by block from the first: the same bytes for any pool.
 */
#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "common/rng.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

#define ATTENTION_BLOCK 64 /* queries */

/* Queries, keys, values, and the result: [batch, length or keys, heads, width]. */
enum {
	QUERY,
	KEY,
	VALUE,
	CONTEXT,
	PARTS
};

struct attention {
	const struct layer_pass *pass;
	struct layer_attention own;
	int64_t batch, length, keys;
	int64_t from;           /* the first query to compute */
	const float *in[PARTS]; /* QUERY is scaled; CONTEXT is written */
	float *grad[PARTS];
	int64_t wide[PARTS]; /* floats of a row, over all heads */
	int64_t rows[PARTS]; /* of the micro-batch */
	float *lanes;        /* lane_floats() per lane */
	float *partial;      /* an input's gradient, to be added to another part's */
	struct kernel_room room;
	const float *mask, *key_mask; /* [batch, length], [batch, keys]: 0 is masked; may be NULL */
	struct rng stream;            /* for dropout */
	bool drops, backward;
};

/* ---- sizes and memory ------------------------------------------------------------------------ */

/* An attention without memory. */
static struct attention attention_sizes(const struct layer_pass *pass)
{
	const struct layer_attention *own = pass->layer->config;
	struct attention a = {
		.pass = pass,
		.own = *own,
		.batch = pass->batch,
		.length = pass->layer->input.dim[0],
		.keys = model_input_shape(pass->model, pass->layer, own->input[LAYER_ATTENTION_KEY])
				->dim[0],
	};

	for (int p = 0; p < PARTS; p++) {
		const bool values = p == VALUE || p == CONTEXT;
		const bool queries = p == QUERY || p == CONTEXT;

		a.wide[p] = own->heads * (values ? own->value_dim : own->key_dim);
		a.rows[p] = a.batch * (queries ? a.length : a.keys);
	}
	return a;
}

static size_t part_floats(const struct attention *a, int part)
{
	return model_align((size_t)(a->rows[part] * a->wide[part]));
}

/* Floats of a block's scores. */
static size_t score_floats(const struct attention *a)
{
	return model_align((size_t)(ATTENTION_BLOCK * a->keys));
}

/* Scores, their gradient, a dropout mask, sums for gradients, and the product's scratch. */
static size_t lane_floats(const struct attention *a)
{
	return KERNEL_GEMM_LANE + 3 * score_floats(a) +
	       model_align((size_t)(a->keys * max(a->own.key_dim, a->own.value_dim)));
}

static size_t input_floats(const struct layer_pass *pass)
{
	int64_t largest = 0;

	for (int i = 0; i < pass->layer->input_count; i++)
		largest = max(largest,
			      model_shape_count(model_input_shape(pass->model, pass->layer, i)));
	return model_align((size_t)(pass->batch * largest));
}

static size_t attention_kept(const struct layer_pass *pass)
{
	const struct attention a = attention_sizes(pass);
	size_t floats = 0;

	for (int p = 0; p < PARTS && a.own.projects; p++)
		floats += part_floats(&a, p);
	return floats * sizeof(float);
}

static size_t attention_scratch(const struct layer_pass *pass)
{
	const struct attention a = attention_sizes(pass);
	const unsigned lanes = pool_lanes(pass->pool);
	size_t floats = lanes * lane_floats(&a) + input_floats(pass);

	for (int p = 0; p < PARTS && pass->training; p++)
		floats += part_floats(&a, p);
	return floats * sizeof(float) + kernel_gemm_scratch(lanes);
}

static size_t attention_scores(const struct layer_pass *pass)
{
	const struct attention a = attention_sizes(pass);

	return (size_t)(a.batch * a.own.heads * a.length * a.keys) * sizeof(float);
}

static struct attention attention_of(const struct layer_pass *pass, bool backward)
{
	struct attention a = attention_sizes(pass);
	float *kept = pass->kept, *scratch = pass->scratch;

	a.backward = backward;
	a.lanes = scratch;
	scratch += pool_lanes(pass->pool) * lane_floats(&a);
	a.partial = scratch;
	scratch += input_floats(pass);
	for (int p = 0; p < PARTS; p++) {
		if (p == CONTEXT && !a.own.projects) {
			a.in[p] = pass->output;
			a.grad[p] = pass->grad_output;
			continue;
		}
		a.in[p] = a.own.projects ? kept : pass->inputs[a.own.input[p]];
		kept += a.own.projects ? part_floats(&a, p) : 0;
		if (backward) {
			a.grad[p] = scratch;
			scratch += part_floats(&a, p);
		}
	}
	a.room = (struct kernel_room){pass->pool, scratch};
	a.from = pass->one_step ? pass->step_at : 0;
	if (pass->layer->mask)
		a.mask = pass->inputs[pass->layer->mask];
	if (pass->layer->key_mask)
		a.key_mask = pass->inputs[pass->layer->key_mask];
	a.drops = compute__is_random(pass) && a.own.drop.threshold > 0;
	rng_init(&a.stream, pass->seed, rng_stream(pass->layer->name) ^ a.own.seed, pass->step,
		 pass->replica);
	return a;
}

static bool is_masked(const struct attention *a)
{
	return a->mask || a->key_mask;
}

/* Zero the outputs of Attention, or their gradients, for masked queries. */
static void mask_rows(const struct attention *a, float *rows)
{
	for (int64_t i = 0; a->mask && !a->own.projects && i < a->rows[QUERY]; i++)
		if (a->mask[i] == 0.0f)
			memset(rows + i * a->wide[CONTEXT], 0,
			       (size_t)a->wide[CONTEXT] * sizeof(*rows));
}

/* ---- one head -------------------------------------------------------------------------------- */

/* A block of queries of one head of one item. */
struct block {
	const struct attention *a;
	int64_t item, head, first, rows, columns; /* queries; keys that they may attend to */
	float *scores, *slopes, *sums, *memory;
	uint8_t *mask;
};

static const float *part_at(const struct block *b, int part, int64_t row)
{
	const struct attention *a = b->a;
	const int64_t of_item = a->rows[part] / a->batch;

	return a->in[part] + (b->item * of_item + row) * a->wide[part] +
	       b->head * (a->wide[part] / a->own.heads);
}

static float *grad_at(const struct block *b, int part, int64_t row)
{
	return b->a->grad[part] + (part_at(b, part, row) - b->a->in[part]);
}

static int64_t head_width(const struct block *b, int part)
{
	return b->a->wide[part] / b->a->own.heads;
}

static void multiply_head(const struct block *b, struct kernel_gemm gemm)
{
	for (unsigned slice = 0; slice < kernel_gemm_slices(&gemm); slice++)
		kernel_gemm_slice(&gemm, slice, b->memory);
}

/* @out[rows, columns] = a block's rows @left times the transpose of all keys' @right. */
static void multiply_keys(const struct block *b, const float *left, int part, const float *right,
			  float *out)
{
	multiply_head(b, (struct kernel_gemm){.transpose_b = true,
					      .m = b->rows,
					      .n = b->columns,
					      .k = head_width(b, part),
					      .a = left,
					      .lda = b->a->wide[part],
					      .b = right,
					      .ldb = b->a->wide[part],
					      .c = out,
					      .ldc = b->columns});
}

/* @out, rows of a block, = @scores times rows of @part. */
static void multiply_scores(const struct block *b, const float *scores, int part, float *out)
{
	multiply_head(b, (struct kernel_gemm){.m = b->rows,
					      .n = head_width(b, part),
					      .k = b->columns,
					      .a = scores,
					      .lda = b->columns,
					      .b = part_at(b, part, 0),
					      .ldb = b->a->wide[part],
					      .c = out,
					      .ldc = b->a->wide[part]});
}

/* Add the transpose of @scores times a block's rows @right to the gradient of @part. */
static void add_scores(const struct block *b, const float *scores, const float *right, int part)
{
	const int64_t width = head_width(b, part);

	multiply_head(b, (struct kernel_gemm){.transpose_a = true,
					      .m = b->columns,
					      .n = width,
					      .k = b->rows,
					      .a = scores,
					      .lda = b->columns,
					      .b = right,
					      .ldb = b->a->wide[part],
					      .c = b->sums,
					      .ldc = width});
	for (int64_t j = 0; j < b->columns; j++)
		kernel_add(grad_at(b, part, j), b->sums + j * width, (size_t)width);
}

/* Whether row @row has keys to attend to. In MultiHeadAttention the query must be unmasked, too. */
static bool row_attends(const struct block *b, int64_t row)
{
	const struct attention *a = b->a;
	const int64_t query = b->first + row;
	const int64_t seen = a->own.causal ? min(b->columns, query + 1) : b->columns;

	if (a->mask && a->own.projects && a->mask[b->item * a->length + query] == 0.0f)
		return false;
	for (int64_t j = 0; j < seen; j++)
		if (!a->key_mask || a->key_mask[b->item * a->keys + j] != 0.0f)
			return true;
	return false;
}

/* Masked keys get no score. A row without keys to attend to gets equal scores, whose gradient is 0:
 * see mask_slopes(). */
static void mask_scores(const struct block *b)
{
	const struct attention *a = b->a;

	for (int64_t i = 0; i < b->rows && is_masked(a); i++) {
		float *scores = b->scores + i * b->columns;

		if (!row_attends(b, i)) {
			memset(scores, 0, (size_t)b->columns * sizeof(*scores));
			continue;
		}
		for (int64_t j = 0; a->key_mask && j < b->columns; j++)
			if (a->key_mask[b->item * a->keys + j] == 0.0f)
				scores[j] = -INFINITY;
	}
}

static void mask_slopes(const struct block *b)
{
	for (int64_t i = 0; i < b->rows && is_masked(b->a); i++)
		if (!row_attends(b, i))
			memset(b->slopes + i * b->columns, 0, (size_t)b->columns * sizeof(float));
}

/* Compute the softmax of the scores; with causal attention keys after the query get 0. */
static void block_scores(const struct block *b)
{
	multiply_keys(b, part_at(b, QUERY, b->first), QUERY, part_at(b, KEY, 0), b->scores);
	for (int64_t i = 0; i < b->rows && b->a->own.causal; i++)
		for (int64_t j = b->first + i + 1; j < b->columns; j++)
			b->scores[i * b->columns + j] = -INFINITY;
	mask_scores(b);
	kernel_softmax(b->scores, b->scores, b->rows, b->columns);
}

/* Apply dropout to @x; with @decide draw the mask, keyed by item, head, query and key, first. */
static void block_drop(const struct block *b, bool decide, float *x)
{
	const struct attention *a = b->a;
	const int64_t row = (b->item * a->own.heads + b->head) * a->length + b->first;
	/* Random numbers reserved for a row, in whole groups. */
	const int64_t each =
		(a->keys + KERNEL_DROPOUT_GROUP - 1) / KERNEL_DROPOUT_GROUP * KERNEL_DROPOUT_GROUP;

	if (!a->drops)
		return;
	for (int64_t i = 0; i < b->rows && decide; i++)
		kernel_dropout_mask(&a->stream, a->own.drop.threshold, (size_t)((row + i) * each),
				    (size_t)b->columns, b->mask + i * b->columns);
	kernel_dropout_apply(x, b->mask, a->own.drop.scale, x, (size_t)(b->rows * b->columns));
}

static void block_backward(const struct block *b)
{
	float *slopes = grad_at(b, CONTEXT, b->first);

	multiply_keys(b, slopes, VALUE, part_at(b, VALUE, 0), b->slopes);
	block_drop(b, true, b->slopes);
	kernel_softmax_grad(b->scores, b->slopes, b->slopes, b->rows, b->columns);
	mask_slopes(b);
	block_drop(b, false, b->scores);
	add_scores(b, b->scores, slopes, VALUE);
	multiply_scores(b, b->slopes, KEY, grad_at(b, QUERY, b->first));
	add_scores(b, b->slopes, part_at(b, QUERY, b->first), KEY);
}

/* Copy the scores for the caller. Keys after the block's last query were not computed: 0. */
static void copy_scores(const struct block *b)
{
	const struct attention *a = b->a;
	const int64_t row = (b->item * a->own.heads + b->head) * a->length + b->first;
	float *out = a->pass->scores + row * a->keys;

	for (int64_t i = 0; i < b->rows; i++, out += a->keys) {
		memcpy(out, b->scores + i * b->columns, (size_t)b->columns * sizeof(*out));
		memset(out + b->columns, 0, (size_t)(a->keys - b->columns) * sizeof(*out));
	}
}

static void head_body(void *context, unsigned slice, unsigned lane)
{
	const struct attention *a = context;
	float *memory = a->lanes + lane * lane_floats(a);
	struct block b = {
		.a = a,
		.item = slice / a->own.heads,
		.head = slice % a->own.heads,
		.memory = memory,
		.scores = memory + KERNEL_GEMM_LANE,
		.slopes = memory + KERNEL_GEMM_LANE + score_floats(a),
		.mask = (uint8_t *)(memory + KERNEL_GEMM_LANE + 2 * score_floats(a)),
		.sums = memory + KERNEL_GEMM_LANE + 3 * score_floats(a),
	};

	for (int p = KEY; p <= VALUE && a->backward; p++)
		for (int64_t j = 0; j < a->keys; j++)
			memset(grad_at(&b, p, j), 0, (size_t)head_width(&b, p) * sizeof(float));
	for (b.first = a->from; b.first < a->length; b.first += b.rows) {
		const int64_t block = b.first - b.first % ATTENTION_BLOCK;
		const int64_t end = min(a->length, block + ATTENTION_BLOCK);

		b.rows = a->pass->one_step ? 1 : end - b.first;
		/* With a mask a row may spread its scores evenly over all keys. */
		b.columns = a->own.causal && !is_masked(a) ? min(a->keys, end) : a->keys;
		block_scores(&b);
		if (a->backward) {
			block_backward(&b);
			continue;
		}
		if (a->pass->scores)
			copy_scores(&b);
		block_drop(&b, true, b.scores);
		multiply_scores(&b, b.scores, VALUE,
				(float *)(uintptr_t)part_at(&b, CONTEXT, b.first));
		if (a->pass->one_step)
			break;
	}
}

static void run_heads(struct attention *a)
{
	const int64_t queries = a->pass->one_step ? 1 : a->length;
	const int64_t scores = a->batch * a->own.heads * queries * a->keys;
	const int64_t wide = a->own.key_dim + a->own.value_dim;

	pool_share_lanes(a->pass->pool,
			 kernel_work_products(scores * wide) + kernel_work_floats(8 * scores),
			 head_body, a, (unsigned)(a->batch * a->own.heads));
}

/* ---- projections ----------------------------------------------------------------------------- */

/* The index of a part's kernel among the parameters; its bias follows. */
static int kernel_of(const struct attention *a, int part)
{
	return part * (1 + a->pass->layer->use_bias);
}

static int64_t features_of(const struct attention *a, int part)
{
	const struct layer_pass *pass = a->pass;

	return layer_last_dim(
		part == CONTEXT ? &pass->layer->output
				: model_input_shape(pass->model, pass->layer, a->own.input[part]));
}

/* @y[rows, n] = @x[rows, k] times the part's kernel, plus its bias; with one_step only that row. */
static void project(const struct attention *a, int part, const float *x, int64_t k, float *y,
		    int64_t n)
{
	const struct layer_pass *pass = a->pass;
	struct kernel_gemm gemm = {.m = pass->one_step ? 1 : a->rows[part],
				   .n = n,
				   .k = k,
				   .a = x + a->from * k,
				   .lda = k,
				   .b = compute__weights(pass, kernel_of(a, part)),
				   .ldb = n,
				   .c = y + a->from * n,
				   .ldc = n,
				   .openblas = pass->openblas};

	if (pass->layer->use_bias)
		gemm.finish.bias = compute__weights(pass, kernel_of(a, part) + 1);
	kernel_gemm(&gemm, &a->room);
}

/* The gradients of a projection of @x[rows, k], from @dy[rows, n]; @dx may be NULL. */
static void project_back(const struct attention *a, int part, const float *x, float *dx, int64_t k,
			 const float *dy, int64_t n)
{
	const struct layer_pass *pass = a->pass;
	const bool learns = compute__learns(pass);

	if (dx)
		kernel_gemm(&(struct kernel_gemm){.transpose_b = true,
						  .m = a->rows[part],
						  .n = k,
						  .k = n,
						  .a = dy,
						  .lda = n,
						  .b = compute__weights(pass, kernel_of(a, part)),
						  .ldb = n,
						  .c = dx,
						  .ldc = k,
						  .openblas = pass->openblas},
			    &a->room);
	if (learns)
		kernel_gemm(&(struct kernel_gemm){.transpose_a = true,
						  .m = k,
						  .n = n,
						  .k = a->rows[part],
						  .a = x,
						  .lda = k,
						  .b = dy,
						  .ldb = n,
						  .c = compute__gradients(pass, kernel_of(a, part)),
						  .ldc = n,
						  .openblas = pass->openblas},
			    &a->room);
	if (learns && pass->layer->use_bias)
		kernel_column_sums(dy, n, a->rows[part], n,
				   compute__gradients(pass, kernel_of(a, part) + 1));
}

static void attention_forward(const struct layer_pass *pass)
{
	struct attention a = attention_of(pass, false);

	for (int p = QUERY; p <= VALUE && a.own.projects; p++) {
		float *projected = (float *)(uintptr_t)a.in[p];

		project(&a, p, pass->inputs[a.own.input[p]], features_of(&a, p), projected,
			a.wide[p]);
		if (p == QUERY)
			kernel_scale(projected + a.from * a.wide[p], a.own.scale,
				     (size_t)((pass->one_step ? 1 : a.rows[p]) * a.wide[p]));
	}
	run_heads(&a);
	mask_rows(&a, pass->output);
	if (a.own.projects)
		project(&a, CONTEXT, a.in[CONTEXT], a.wide[CONTEXT], pass->output,
			features_of(&a, CONTEXT));
}

/* If several parts read one input, their gradients are added in the order query, key, value. */
static void inputs_backward(const struct attention *a)
{
	const struct layer_pass *pass = a->pass;
	bool written[PARTS] = {false};

	for (int p = QUERY; p <= VALUE; p++) {
		const int input = a->own.input[p];
		const int64_t features = features_of(a, p);
		const size_t count = (size_t)(a->rows[p] * features);
		float *dx = pass->grad_inputs[input];
		float *here = dx && written[input] ? a->partial : dx;

		if (a->own.projects)
			project_back(a, p, pass->inputs[input], here, features, a->grad[p],
				     a->wide[p]);
		else if (here)
			memcpy(here, a->grad[p], count * sizeof(*here));
		if (dx && written[input])
			kernel_add(dx, here, count);
		written[input] = true;
	}
}

static void attention_backward(const struct layer_pass *pass)
{
	struct attention a = attention_of(pass, true);

	compute__masks_backward(pass);
	if (a.own.projects)
		project_back(&a, CONTEXT, a.in[CONTEXT], a.grad[CONTEXT], a.wide[CONTEXT],
			     pass->grad_output, features_of(&a, CONTEXT));
	mask_rows(&a, a.grad[CONTEXT]);
	run_heads(&a);
	if (a.own.projects)
		kernel_scale(a.grad[QUERY], a.own.scale, (size_t)(a.rows[QUERY] * a.wide[QUERY]));
	inputs_backward(&a);
}

const struct compute_ops compute_attention = {
	.forward = attention_forward,
	.backward = attention_backward,
	.kept = attention_kept,
	.scratch = attention_scratch,
	.scores = attention_scores,
};
