/*
 * Layers as operations: the products of recurrent cells with their weights, and how often they run;
 * and each operation of any layer beside what it was before (tests/golden/ipu_composites.txt, which
 * UPDATE_GOLDEN=1 rewrites).
 */
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_op.h"

struct product {
	const char *name;
	int64_t repeats, m, k, n;
};

/* Of 3 items, 5 steps, 8 features and 16 units. */
static const struct {
	enum ipu_composite_kind kind;
	bool reset_before;
	struct product products[2];
} cells[] = {
	/* The input's product needs no state: all steps at once. */
	{IPU_COMPOSITE_RNN,
	 false,
	 {{"Rnn/WeightInput", 1, 15, 8, 16}, {"Rnn/State", 5, 3, 16, 16}}},
	/* One product of input and state for all four gates. */
	{IPU_COMPOSITE_LSTM, false, {{"Rnn/Gates", 5, 3, 24, 64}}},
	{IPU_COMPOSITE_GRU, false, {{"Rnn/Input", 5, 3, 8, 48}, {"Rnn/State", 5, 3, 16, 48}}},
	/* The candidate's product is of the state that the reset gate has made. */
	{IPU_COMPOSITE_GRU, true, {{"Rnn/Gates", 5, 3, 24, 32}, {"Rnn/Candidate", 5, 3, 24, 16}}},
};

static struct ipu_composite cell_of(size_t row)
{
	return (struct ipu_composite){.kind = cells[row].kind,
				      .reset_before = cells[row].reset_before,
				      .dtype = IPU_FLOAT32,
				      .batch = 3,
				      .steps = 5,
				      .features = 8,
				      .units = 16};
}

static void test_cells_multiply_input_and_state_as_popnn_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		const struct ipu_composite cell = cell_of(i);
		struct ipu_op ops[IPU_COMPOSITE_OPS];
		const int count = ipu_composite_ops(&cell, ops);
		int products = 0;

		for (int o = 0; o < count; o++) {
			const struct product *wanted = &cells[i].products[products];

			if (ops[o].kind != IPU_OP_MATMUL)
				continue;
			assert_true(products < 2 && wanted->name);
			assert_string_equal(ops[o].name, wanted->name);
			assert_int_equal(ops[o].repeats, wanted->repeats);
			assert_int_equal(ops[o].matmul.m, wanted->m);
			assert_int_equal(ops[o].matmul.k, wanted->k);
			assert_int_equal(ops[o].matmul.n, wanted->n);
			products++;
		}
		assert_int_equal(products, cells[i].kind == IPU_COMPOSITE_LSTM ? 1 : 2);
	}
}

/* The gradient of a product's input is that of its result times the weights. Inputs that need none,
 * the first 8 columns, are left out, and a product of them alone is not there. */
static void test_gradients_of_inputs_are_products_with_the_same_weights(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(cells); i++) {
		const bool fixed = i >= ARRAY_LEN(cells);
		const size_t row = i % ARRAY_LEN(cells);
		const struct product *from = cells[row].products;
		struct ipu_composite cell = cell_of(row);
		struct ipu_op ops[IPU_COMPOSITE_OPS];
		int o = 0, count;

		cell.fixed_input = fixed;
		cell.pass = IPU_BACKWARD_DATA;
		count = ipu_composite_ops(&cell, ops);
		for (int p = 0; p < 2 && from[p].name; p++) {
			const int64_t left_out = fixed && from[p].k != 16 ? 8 : 0;
			const int64_t inputs = from[p].k - left_out;

			if (inputs == 0)
				continue;
			while (o < count && ops[o].kind != IPU_OP_MATMUL)
				o++;
			assert_true(o < count);
			assert_memory_equal(ops[o].name, from[p].name, strlen(from[p].name));
			assert_string_equal(ops[o].name + strlen(from[p].name), "/GradX");
			assert_int_equal(ops[o].repeats, from[p].repeats);
			assert_int_equal(ops[o].matmul.m, from[p].m);
			assert_int_equal(ops[o].matmul.k, from[p].n);
			assert_int_equal(ops[o].matmul.n, inputs);
			o++;
		}
		assert_int_equal(o, count);
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Sizes differ, so that none stands for another. */
#define SIZES                                                                                      \
	.batch = 3, .steps = 5, .features = 7, .units = 11, .length = 13, .keys = 17, .heads = 2,  \
	.head = 19, .entries = 1009, .lookups = 23, .inputs = 4001, .outputs = 29, .channels = 12, \
	.groups = 4, .in_channels = 20, .out_channels = 28, .field = {31, 37}, .out = {15, 9},     \
	.kernel = {2, 5}, .stride = {2, 4}, .dilation = {1, 3}

static const struct ipu_composite composites[] = {
	{.kind = IPU_COMPOSITE_ATTENTION, SIZES},
	{.kind = IPU_COMPOSITE_ATTENTION, .values = 41, SIZES},
	{.kind = IPU_COMPOSITE_CONV1D, SIZES},
	{.kind = IPU_COMPOSITE_CONV2DTRANSPOSE, SIZES},
	{.kind = IPU_COMPOSITE_EMBEDDING, SIZES},
	{.kind = IPU_COMPOSITE_GROUPNORM, SIZES},
	{.kind = IPU_COMPOSITE_GRU, SIZES},
	{.kind = IPU_COMPOSITE_GRU, .reset_before = true, .trained = true, SIZES},
	{.kind = IPU_COMPOSITE_LSTM, .trained = true, SIZES},
	{.kind = IPU_COMPOSITE_LSTM, .fixed_input = true, SIZES},
	{.kind = IPU_COMPOSITE_POOL, .max = true, SIZES},
	{.kind = IPU_COMPOSITE_POOL, SIZES},
	{.kind = IPU_COMPOSITE_REDUCE, SIZES},
	{.kind = IPU_COMPOSITE_RNN, .trained = true, SIZES},
	{.kind = IPU_COMPOSITE_SOFTMAX, SIZES},
};

static void print_conv(FILE *out, const struct ipu_conv *conv)
{
	fprintf(out,
		"pass %d, %" PRId64 " x %" PRId64 " x %" PRId64 " to %" PRId64 ", %" PRId64
		" x %" PRId64 " to %" PRId64 " x %" PRId64,
		(int)conv->pass, conv->batch, conv->groups, conv->in_channels, conv->out_channels,
		conv->in[0], conv->in[1], conv->out[0], conv->out[1]);
	for (int i = 0; i < 2; i++)
		fprintf(out, ", %" PRId64 " by %" PRId64 " of %" PRId64, conv->kernel[i],
			conv->stride[i], conv->dilation[i]);
}

static void print_op(FILE *out, const struct ipu_op *op)
{
	fprintf(out, "\t%s %s %s x %" PRId64 ", pass %d%s: ", ipu_op_kind_name(op->kind), op->name,
		ipu_dtype_name(op->dtype), op->repeats, (int)op->pass,
		op->trained ? ", trained" : "");
	switch (op->kind) {
	case IPU_OP_CONV:
		print_conv(out, &op->conv);
		break;
	case IPU_OP_MATMUL:
		fprintf(out, "%" PRId64 " %" PRId64 " %" PRId64, op->matmul.m, op->matmul.k,
			op->matmul.n);
		break;
	case IPU_OP_ELEMENTWISE:
		fprintf(out, "%" PRId64 " of %" PRId64 ", %" PRId64 ",", op->elements.count,
			op->elements.operands, op->elements.broadcast);
		for (int f = 0; f < IPU_FUNCTIONS; f++)
			fprintf(out, " %d", op->elements.times[f]);
		break;
	case IPU_OP_REDUCE:
		fprintf(out, "%" PRId64 " to %" PRId64, op->reduce.inputs, op->reduce.outputs);
		break;
	case IPU_OP_POOL:
		fprintf(out, "%d %d", op->pool.max, op->pool.backward);
		print_conv(out,
			   &(struct ipu_conv){.batch = op->pool.batch,
					      .in_channels = op->pool.channels,
					      .in = {op->pool.in[0], op->pool.in[1]},
					      .out = {op->pool.out[0], op->pool.out[1]},
					      .kernel = {op->pool.kernel[0], op->pool.kernel[1]},
					      .stride = {op->pool.stride[0], op->pool.stride[1]}});
		break;
	case IPU_OP_ROWS:
		fprintf(out, "%d of %" PRId64 " %" PRId64, (int)op->rows.work, op->rows.rows,
			op->rows.columns);
		break;
	default:
		fprintf(out, "%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, op->slice.update,
			op->slice.entries, op->slice.columns, op->slice.lookups, op->slice.tables);
	}
	fprintf(out, ", %" PRId64 " flops\n", ipu_op_flops(op));
}

static void print_all(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(composites); i++) {
		for (int pass = 0; pass < IPU_PASSES; pass++) {
			struct ipu_composite composite = composites[i];
			struct ipu_op ops[IPU_COMPOSITE_OPS];
			double operands, result;
			int count;

			composite.pass = (enum ipu_pass)pass;
			composite.dtype = pass ? IPU_FLOAT16 : IPU_FLOAT32;
			count = ipu_composite_ops(&composite, ops);
			ipu_composite_elements(&composite, &operands, &result);
			fprintf(out, "%zu, pass %d: %d operations, %.0f to %.0f\n", i, pass, count,
				operands, result);
			for (int o = 0; o < count; o++)
				print_op(out, &ops[o]);
		}
	}
}

static void test_no_operation_of_a_layer_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("ipu_composites.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_multiply_input_and_state_as_popnn_does),
		cmocka_unit_test(test_gradients_of_inputs_are_products_with_the_same_weights),
		cmocka_unit_test(test_no_operation_of_a_layer_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
