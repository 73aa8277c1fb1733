/*
 * Recurrent layers as operations: the products of each cell with its weights, and how often they
 * run.
 */
#include "support/support.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_multiply_input_and_state_as_popnn_does),
		cmocka_unit_test(test_gradients_of_inputs_are_products_with_the_same_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
