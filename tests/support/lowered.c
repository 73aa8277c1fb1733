/*
 * Device operations as one line of text each, and the comparison of a layer's lines with those that
 * a test expects.
 */
#include "support/lowered.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/ipu_functions.h"
#include "support/support.h"

static void add(char out[LOWERED_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(char out[LOWERED_TEXT], const char *format, ...)
{
	const size_t at = strlen(out);
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(out + at, LOWERED_TEXT - at, format, list);
	va_end(list);
	assert_true(length >= 0 && (size_t)length < LOWERED_TEXT - at);
}

static void add_pair(char out[LOWERED_TEXT], const char *before, const int64_t pair[2])
{
	add(out, "%s%lldx%lld", before, (long long)pair[0], (long long)pair[1]);
}

static void conv_text(const struct ipu_conv *conv, char out[LOWERED_TEXT])
{
	add(out, " %c %lld %lld*%lld>%lld", "fdw"[conv->pass], (long long)conv -> batch,
	    (long long)conv -> groups, (long long)conv -> in_channels,
	    (long long)conv -> out_channels);
	add_pair(out, " ", conv->in);
	add_pair(out, ">", conv->out);
	add_pair(out, " k", conv->kernel);
	add_pair(out, " s", conv->stride);
	add_pair(out, " d", conv->dilation);
}

static void pool_text(const struct ipu_pool *pool, char out[LOWERED_TEXT])
{
	add(out, " %s%s %lld*%lld", pool->max ? "max" : "mean", pool->backward ? " backward" : "",
	    (long long)pool->batch, (long long)pool->channels);
	add_pair(out, " ", pool->in);
	add_pair(out, ">", pool->out);
	add_pair(out, " k", pool->kernel);
	add_pair(out, " s", pool->stride);
}

static void elements_text(const struct ipu_elements *elements, char out[LOWERED_TEXT])
{
	add(out, " %lld*%lld", (long long)elements->count, (long long)elements->operands);
	if (elements->broadcast)
		add(out, "/%lld", (long long)elements->broadcast);
	for (int f = 0; f < IPU_FUNCTIONS; f++)
		if (elements->times[f])
			add(out, " %s=%d", ipu_function_names[f], elements->times[f]);
}

static void sizes_text(const struct ipu_op *op, char out[LOWERED_TEXT])
{
	static const char *const works[] = {
		[IPU_ROWS_SOFTMAX] = "softmax",
		[IPU_ROWS_SOFTMAX_GRAD] = "softmax_grad",
		[IPU_ROWS_CROSS_ENTROPY] = "cross_entropy",
		[IPU_ROWS_ERROR] = "error",
		[IPU_ROWS_ARGMAX] = "argmax",
	};

	_Static_assert(ARRAY_LEN(works) == IPU_ROWS_WORKS, "works out of step");
	switch (op->kind) {
	case IPU_OP_CONV:
		conv_text(&op->conv, out);
		break;
	case IPU_OP_MATMUL:
		add(out, " %lldx%lldx%lld", (long long)op->matmul.m, (long long)op->matmul.k,
		    (long long)op->matmul.n);
		break;
	case IPU_OP_ELEMENTWISE:
		elements_text(&op->elements, out);
		break;
	case IPU_OP_REDUCE:
		add(out, " %lld>%lld", (long long)op->reduce.inputs, (long long)op->reduce.outputs);
		break;
	case IPU_OP_POOL:
		pool_text(&op->pool, out);
		break;
	case IPU_OP_ROWS:
		add(out, " %s %lldx%lld", works[op->rows.work], (long long)op->rows.rows,
		    (long long)op->rows.columns);
		break;
	case IPU_OP_COPY:
		add(out, " %lld/%lld", (long long)op->copy.count, (long long)op->copy.atom);
		break;
	case IPU_OP_SLICE:
		add(out, " ");
		if (op->slice.tables > 1)
			add(out, "%lld*", (long long)op->slice.tables);
		add(out, "%lldx%lld/%lld", (long long)op->slice.entries,
		    (long long)op->slice.columns, (long long)op->slice.lookups);
		break;
	default:
		fail_msg("operation of kind %d", (int)op->kind);
	}
}

static void operands_text(unsigned operands, char out[LOWERED_TEXT])
{
	static const struct {
		unsigned operand;
		const char *name;
	} own[] = {{LAYER_INPUT, "x"},      {LAYER_OUTPUT, "y"},      {LAYER_KEPT, "k"},
		   {LAYER_BETWEEN, "b"},    {LAYER_BETWEEN_TOO, "c"}, {LAYER_GRAD_OUTPUT, "dy"},
		   {LAYER_GRAD_INPUT, "dx"}};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (operands & own[i].operand)
			add(out, " %s", own[i].name);
	for (int i = 0; i < 8; i++) {
		if (operands & LAYER_PARAM(i))
			add(out, " p%d", i);
		if (operands & LAYER_GRAD_PARAM(i))
			add(out, " dp%d", i);
		if (operands & LAYER_GRAD_INPUT_AT(i))
			add(out, " dx%d", i);
	}
}

void lowered_text(const struct layer_op *op, char out[LOWERED_TEXT])
{
	out[0] = '\0';
	add(out, "%s %s", op->op.name, ipu_op_kind_name(op->op.kind));
	sizes_text(&op->op, out);
	if (op->op.repeats > 1)
		add(out, " times=%lld", (long long)op->op.repeats);
	if (op->makes && op->writes & (LAYER_KEPT | LAYER_BETWEEN | LAYER_BETWEEN_TOO))
		add(out, " makes=%lld%s", (long long)op->makes, op->bytes ? "B" : "");
	if (op->op.dtype == IPU_FLOAT16)
		add(out, " half");
	if (op->training_only)
		add(out, " training");
	add(out, ":");
	operands_text(op->reads, out);
	add(out, " ->");
	operands_text(op->writes, out);
}

static void check(struct layer_lowering *lowering, const char *const *lines)
{
	char text[LOWERED_TEXT];
	struct arena arena;
	int count = 0;

	assert_int_equal(arena_init(&arena, 0), 0);
	lowering->arena = &arena;
	if (lowering->layer->ops->lower)
		lowering->layer->ops->lower(lowering);
	assert_false(lowering->failed);
	while (lines[count])
		count++;
	for (int i = 0; i < lowering->count; i++) {
		lowered_text(&lowering->ops[i], text);
		if (i < count)
			assert_string_equal(text, lines[i]);
		assert_int_equal(lowering->ops[i].op.phase, lowering->phase);
		assert_ptr_equal(lowering->ops[i].op.layer, lowering->layer->name);
	}
	assert_int_equal(lowering->count, count);
	arena_fini(&arena);
}

void lowered_check(const struct model *model, int layer, int64_t batch, char phase, bool first,
		   const char *const *lines)
{
	static const bool all[] = {true, true, true, true, true, true, true, true};
	const struct model_layer *at = &model->layers[layer];
	struct layer_lowering lowering = {
		.model = model,
		.layer = at,
		.batch = batch,
		.phase = phase,
		.training = true,
		.retains = true,
		.wanted = phase == 'F' || first ? NULL : all,
	};

	assert_true(at->input_count <= (int)ARRAY_LEN(all));
	check(&lowering, lines);
}

void lowered_check_evaluation(const struct model *model, int layer, int64_t batch,
			      const char *const *lines)
{
	struct layer_lowering lowering = {
		.model = model,
		.layer = &model->layers[layer],
		.batch = batch,
		.phase = 'F',
	};

	check(&lowering, lines);
}

void lowered_check_composite(const struct model *model, int layer, int64_t batch, char phase,
			     const struct ipu_composite *from, const enum ipu_pass *passes,
			     int count)
{
	static const bool all[] = {true};
	struct layer_lowering lowering = {
		.model = model,
		.layer = &model->layers[layer],
		.batch = batch,
		.phase = phase,
		.training = true,
		.retains = true,
		.wanted = phase == 'F' ? NULL : all,
	};
	struct arena arena;
	int at = 0;

	assert_int_equal(arena_init(&arena, 0), 0);
	lowering.arena = &arena;
	if (lowering.layer->ops->lower)
		lowering.layer->ops->lower(&lowering);
	assert_false(lowering.failed);
	for (int p = 0; p < count; p++) {
		struct ipu_composite composite = *from;
		struct ipu_op ops[IPU_COMPOSITE_OPS];
		int made;

		composite.pass = passes[p];
		made = ipu_composite_ops(&composite, ops);
		assert_true(made > 0);
		for (int i = 0; i < made; i++) {
			char wanted[LOWERED_TEXT] = "", text[LOWERED_TEXT] = "";

			sizes_text(&ops[i], wanted);
			for (; at < lowering.count; at++) {
				text[0] = '\0';
				sizes_text(&lowering.ops[at].op, text);
				if (lowering.ops[at].op.kind == ops[i].kind &&
				    strcmp(text, wanted) == 0)
					break;
			}
			if (at == lowering.count)
				fail_msg("%s%s is not among the layer's", ops[i].name, wanted);
			at++;
		}
	}
	arena_fini(&arena);
}
