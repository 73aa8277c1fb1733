/*
 * Losses of tokens and pixels against what PyTorch said of them (tests/golden/torch_losses.txt,
 * made by script/make-torch-golden.py, which makes the same inputs): values, and gradients of the
 * outputs or logits, to 1e-5.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/learn/measure_run.h"

enum {
	ITEMS = 3,
	MOST = 256 /* outputs of a case */
};

/* A model whose output is its input: an item's shape ends with the classes. */
static const struct oracle_loss {
	const char *name;
	enum loss_kind kind;
	bool logits;
	int ndim;
	int64_t dims[3];
} cases[] = {
	{"sparse_tokens", LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true, 2, {5, 4}},
	{"sparse_pixels", LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true, 3, {2, 3, 4}},
	{"dense_tokens", LOSS_CATEGORICAL_CROSSENTROPY, true, 2, {5, 4}},
	{"binary_pixels", LOSS_BINARY_CROSSENTROPY, true, 3, {4, 3, 1}},
	{"binary_tokens", LOSS_BINARY_CROSSENTROPY, false, 2, {5, 4}},
	{"squared_pixels", LOSS_MEAN_SQUARED_ERROR, false, 3, {2, 3, 4}},
	{"huber_tokens", LOSS_HUBER, false, 2, {5, 4}},
};

/* The script's numbers: outputs, then targets. Those of a categorical loss sum to 1. */
static void fill(const struct oracle_loss *c, struct loss_rows of_item, float *x, float *y)
{
	const int64_t rows = ITEMS * of_item.positions, width = of_item.width;
	uint32_t seed = 1;

	for (int64_t i = 0; i < rows * width; i++)
		x[i] = math_lcg_unit(&seed) * (c->logits ? 4.0f : 1.0f);
	for (int64_t i = 0; c->kind == LOSS_SPARSE_CATEGORICAL_CROSSENTROPY && i < rows; i++)
		y[i] = floorf(math_lcg_unit(&seed) * (float)width);
	for (int64_t i = 0; c->kind != LOSS_SPARSE_CATEGORICAL_CROSSENTROPY && i < rows * width;
	     i++)
		y[i] = math_lcg_unit(&seed) * 3.0f;
	for (int64_t r = 0; c->kind == LOSS_CATEGORICAL_CROSSENTROPY && r < rows; r++) {
		double sum = 0.0;

		for (int64_t j = 0; j < width; j++)
			sum += (double)y[r * width + j];
		for (int64_t j = 0; j < width; j++)
			y[r * width + j] = (float)((double)y[r * width + j] / sum);
	}
	for (int64_t i = 0; c->kind == LOSS_BINARY_CROSSENTROPY && i < rows * width; i++)
		y[i] = y[i] > 1.5f ? 1.0f : 0.0f;
}

static void check_number(const struct oracle_loss *c, const char *what, double own, char **text)
{
	const double wanted = strtod(*text, text);

	if (!(fabs(own - wanted) <= 1e-5 * (fabs(wanted) + 0.01)))
		fail_msg("%s: %s is %.9g, PyTorch says %.9g", c->name, what, own, wanted);
}

static void check_case(const struct oracle_loss *c, char *text)
{
	float x[MOST], y[MOST], gradient[MOST];
	struct loss loss = loss_of(c->kind);
	struct targets targets = {.values = y};
	struct math_model m;
	struct loss_rows of_item;
	double value;

	math_model_open(&m, "[{'class_name': 'Activation', 'config': {'activation': 'linear'}}]",
			c->ndim, c->dims);
	of_item = loss_rows_of(m.model->outputs);
	assert_true(ITEMS * of_item.positions * of_item.width <= MOST);
	fill(c, of_item, x, y);
	targets.width = c->kind == LOSS_SPARSE_CATEGORICAL_CROSSENTROPY ? 1 : of_item.width;
	loss.from_logits = c->logits;
	value = loss_run(&loss, x, NULL, &targets, ITEMS * of_item.positions, of_item.width,
			 gradient);
	check_number(c, "the loss", value, &text);
	for (int64_t i = 0; i < ITEMS * of_item.positions * of_item.width; i++)
		check_number(c, "a gradient", (double)gradient[i], &text);
	math_model_close(&m);
}

static void test_losses_of_tokens_and_pixels_are_pytorchs(void **state)
{
	char path[4096], line[16384];

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/torch_losses.txt", support_source_dir());
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const size_t length = strlen(cases[i].name);
		FILE *file = fopen(path, "r");
		int lines = 0;

		assert_non_null(file);
		while (fgets(line, sizeof(line), file)) {
			if (strncmp(line, cases[i].name, length) != 0 || line[length] != ' ')
				continue;
			check_case(&cases[i], line + length);
			lines++;
		}
		assert_int_equal(lines, 1);
		fclose(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses_of_tokens_and_pixels_are_pytorchs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
