/*
 * Recurrent layers as operations: the products of each cell with its weights, and how often they
 * run.
 */
#include "support/support.h"

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

static void test_cells_multiply_input_and_state_as_popnn_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		const struct ipu_composite cell = {.kind = cells[i].kind,
						   .reset_before = cells[i].reset_before,
						   .dtype = IPU_FLOAT32,
						   .batch = 3,
						   .steps = 5,
						   .features = 8,
						   .units = 16};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_multiply_input_and_state_as_popnn_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
