/*
 * `ipu-plan matmul`: what a product of two matrices costs.
 *
 * Threading: none.
 */
#include <stdio.h>

#include "common/mem.h"
#include "model/plan/plan_operation.h"

#define SIZE_MOST  (INT64_C(1) << 40)
#define SIZES      3
#define SHAPE_SIZE 96

static const struct cli_option product_options[] = {
	PLAN_OPERATION_OPTIONS(
		"Default: of matmul that of --dtype, as the published float16 products have it; "
		"of conv float32, as TensorFlow has it."),
};
_Static_assert(ARRAY_LEN(product_options) == PLAN_OPTIONS, "option table out of step");

struct product_request {
	struct plan_request plan;
	int64_t size[SIZES]; /* M, K, N */
	int sizes;
	bool partials; /* given? */
};

static enum status read_request(struct product_request *request, int argc, char **argv,
				struct err *err)
{
	static const char *const names[SIZES] = {"M", "K", "N"};
	struct cli_argument argument;
	struct cli_walk walk;
	bool more;

	cli_begin(&walk, &plan_product.command, argc, argv, false);
	for (;;) {
		enum status status = cli_next(&walk, &argument, &more, err);

		if (status != ST_OK || !more)
			return status;
		if (argument.option) {
			int row = (int)(argument.option - product_options);

			request->partials = request->partials || row == PLAN_OPTION_PARTIALS;
			status = plan_request_read(&request->plan, row, &argument, err);
		} else if (request->sizes < SIZES) {
			status = cli_number(names[request->sizes], argument.value, 1, SIZE_MOST,
					    &request->size[request->sizes], err);
			request->sizes++;
		} else {
			status = err_set(err, ST_INVALID,
					 "a word too many: \"%s\" (M K N are three sizes)",
					 argument.value);
		}
		if (status != ST_OK)
			return status;
	}
}

static enum status run_product(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			       struct err *err)
{
	struct product_request request = {.sizes = 0};
	struct plan_question question = {
		.layout = "rows of A are channels out, columns of B the field"};
	char shape[SHAPE_SIZE];
	enum status status;

	(void)trainer;
	plan_request_defaults(&request.plan);
	status = read_request(&request, argc, argv, err);
	if (status != ST_OK)
		return status;
	if (request.sizes < SIZES)
		return err_set(err, ST_INVALID,
			       "sizes are missing: `ipu-plan matmul M K N`, A of M x K times B of "
			       "K x N");
	if (!request.partials)
		request.plan.partials = request.plan.dtype;
	snprintf(shape, sizeof(shape), "[%lld, %lld] x [%lld, %lld]", (long long)request.size[0],
		 (long long)request.size[1], (long long)request.size[1],
		 (long long)request.size[2]);
	question.shape = shape;
	question.op = (struct ipu_op){
		.kind = IPU_OP_MATMUL,
		.name = "matmul",
		.dtype = request.plan.dtype,
		.matmul = {.m = request.size[2], .k = request.size[1], .n = request.size[0]}};
	return plan_answer(&request.plan, &question, 1, out, err);
}

const struct plan_subcommand plan_product = {
	.name = "matmul",
	.command =
		{.name = "ipu-plan matmul",
		 .synopsis = "M K N [OPTION ...]",
		 .summary = "what a product of two matrices costs",
		 .about = "Plans A, of M x K, times B, of K x N, on one IPU: how it is cut over "
			  "tiles, and what each phase takes. The operands' layout is fixed: A's M "
			  "rows are the output's channels, B's N columns the field (the batch) "
			  "that A's weights work on, K is summed over. Both operands lie where "
			  "the plan wants them, and the result stays where it is made. So "
			  "`matmul 1024 1024 4` and `matmul 4 1024 1024` differ: a Dense layer of "
			  "128 units on 784 inputs, batch 64, is `matmul 128 784 64`.",
		 .options = product_options,
		 .option_count = ARRAY_LEN(product_options),
		 .examples =
			 "ipu-plan matmul 4096 4096 1024 --target ipu21 --dtype float16\ta large "
			 "product on a Bow\n"
			 "ipu-plan matmul 128 784 64 --json\ta Dense layer, for a program\n"},
	.run = run_product,
};
