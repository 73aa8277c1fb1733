/*
 * Plans of convolutions and products: that more tiles never worsen what the planner minimises, that
 * splits fit the machine, that memory is respected, and that passes are what they should be. Random
 * operations are of a fixed seed.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"

#define RANDOM_OPS 60

static uint64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static int64_t upto(uint64_t *state, int64_t most)
{
	return 1 + (int64_t)(next(state) % (uint64_t)most);
}

/* Sizes of all magnitudes. */
static int64_t size_of(uint64_t *state, int bits)
{
	return upto(state, INT64_C(1) << upto(state, bits));
}

static void random_op(uint64_t *state, struct ipu_op *op)
{
	*op = (struct ipu_op){.kind = next(state) % 3 == 0 ? IPU_OP_MATMUL : IPU_OP_CONV,
			      .dtype = next(state) % 2 == 0 ? IPU_FLOAT16 : IPU_FLOAT32,
			      .name = "random"};
	if (op->kind == IPU_OP_MATMUL) {
		op->matmul = (struct ipu_matmul){size_of(state, 12), size_of(state, 12),
						 size_of(state, 12)};
		return;
	}
	op->conv = (struct ipu_conv){.pass = (enum ipu_pass)(next(state) % IPU_PASSES),
				     .batch = upto(state, 16),
				     .groups = next(state) % 4 == 0 ? upto(state, 64) : 1,
				     .in_channels = size_of(state, 8),
				     .out_channels = size_of(state, 8)};
	for (int i = 0; i < 2; i++) {
		op->conv.out[i] = upto(state, 30);
		op->conv.kernel[i] = upto(state, 5);
		op->conv.stride[i] = upto(state, 3);
		op->conv.dilation[i] = upto(state, 2);
		op->conv.in[i] = (op->conv.out[i] - 1) * op->conv.stride[i] +
				 (op->conv.kernel[i] - 1) * op->conv.dilation[i] + 1;
	}
}

static void plan_on(const char *name, int64_t tiles, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *out)
{
	const struct ipu_plan *plan;
	struct ipu_planner *planner;
	struct ipu_target target;

	assert_int_equal(ipu_target_get(name, tiles, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_plan(planner, op, options, &plan, NULL), ST_OK);
	*out = *plan;
	ipu_planner_free(planner);
}

static double limit_of(const char *name, const struct ipu_plan_options *options)
{
	struct ipu_target target;

	assert_int_equal(ipu_target_get(name, 0, &target, NULL), ST_OK);
	return (double)target.bytes_per_tile * options->available_memory_proportion;
}

/* What the planner minimises, as poplibs' does: the work of all phases without their sync. */
static int64_t estimate_of(const struct ipu_plan *plan)
{
	return plan->compute_cycles + plan->exchange_cycles;
}

static void test_more_tiles_never_worsen_the_estimate(void **state)
{
	static const int64_t tiles[] = {1, 3, 16, 61, 200, 736, 1000, 1471, 1472};
	struct ipu_plan_options options;
	uint64_t random = 4;

	(void)state;
	ipu_plan_options_defaults(&options);
	for (unsigned i = 0; i < support_rounds(RANDOM_OPS); i++) {
		int64_t before = 0;
		struct ipu_op op;

		random_op(&random, &op);
		options.partials = next(&random) % 2 == 0 ? IPU_FLOAT16 : IPU_FLOAT32;
		for (size_t t = 0; t < ARRAY_LEN(tiles); t++) {
			struct ipu_plan plan;

			plan_on("ipu2", tiles[t], &op, &options, &plan);
			/* What did not fit in memory had no plan that could run. */
			if (before > 0)
				assert_true(estimate_of(&plan) <= before);
			if ((double)plan.temporary_bytes <= limit_of("ipu2", &options))
				before = estimate_of(&plan);
		}
	}
}

static void test_splits_fit_the_tiles(void **state)
{
	struct ipu_plan_options options;
	uint64_t random = 11;

	(void)state;
	ipu_plan_options_defaults(&options);
	for (int i = 0; i < RANDOM_OPS; i++) {
		const int64_t tiles = upto(&random, 1472);
		struct ipu_plan plan;
		struct ipu_op op;
		int64_t parts;

		random_op(&random, &op);
		plan_on("ipu21", tiles, &op, &options, &plan);
		parts = plan.split_batch * plan.split_field * plan.split_in * plan.split_out *
			plan.split_kernel;
		assert_true(parts >= 1 && parts <= tiles);
		assert_int_equal(plan.tiles_used, parts);
		for (int p = 0; p < plan.phase_count; p++) {
			const struct ipu_phase *phase = &plan.phases[p];

			assert_int_equal(phase->tiles, parts);
			assert_true(phase->repeats == 1 || phase->repeats == plan.serial_splits);
			/* What a tile takes in at most 8 bytes a cycle. */
			if (phase->kind == IPU_EXCHANGE)
				assert_true((double)phase->bytes <=
					    8.0 * (double)phase->cycles * (double)parts);
			else
				assert_int_equal(phase->bytes, 0);
		}
		/* No faster than the matrix unit. */
		assert_true((double)plan.flops <=
			    128.0 * (double)plan.compute_cycles * (double)parts);
	}
}

static void test_memory_is_kept_to_where_it_can_be(void **state)
{
	struct ipu_plan_options options;
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .matmul = {4096, 4096, 4096}};
	int64_t before = 0;
	struct ipu_plan plan;

	(void)state;
	ipu_plan_options_defaults(&options);
	for (double proportion = 0.9; proportion > 0.15; proportion -= 0.1) {
		options.available_memory_proportion = proportion;
		plan_on("ipu2", 0, &op, &options, &plan);
		assert_true((double)plan.temporary_bytes <= limit_of("ipu2", &options));
		assert_true(estimate_of(&plan) >= before);
		before = estimate_of(&plan);
	}
	/* Less memory costs serial splits. */
	assert_true(plan.serial_splits > 1);

	/* Where nothing fits the plan says how much is missing. */
	op.matmul = (struct ipu_matmul){INT64_C(1) << 20, 4096, 4096};
	plan_on("ipu2", 0, &op, &options, &plan);
	assert_true((double)plan.temporary_bytes > limit_of("ipu2", &options));
}

static void conv_of(enum ipu_pass pass, int64_t groups, int64_t in, int64_t out, int64_t field,
		    int64_t kernel, int64_t stride, struct ipu_op *op)
{
	*op = (struct ipu_op){.kind = IPU_OP_CONV};
	op->conv = (struct ipu_conv){
		.pass = pass, .batch = 4, .groups = groups, .in_channels = in, .out_channels = out};
	for (int i = 0; i < 2; i++) {
		op->conv.in[i] = field * stride;
		op->conv.out[i] = field;
		op->conv.kernel[i] = kernel;
		op->conv.stride[i] = stride;
		op->conv.dilation[i] = 1;
	}
}

static bool has_phase(const struct ipu_plan *plan, const char *part)
{
	for (int p = 0; p < plan->phase_count; p++)
		if (strcmp(plan->phases[p].part, part) == 0)
			return true;
	return false;
}

/* A convolution of one tap is a product of matrices, and costs the same but for the groups of
 * channels that the next convolution reads. */
/* The passes of a layer of @batch rows. */
static void layer_of(int64_t batch, int64_t inputs, int64_t units, enum ipu_dtype dtype,
		     bool trained, struct ipu_op ops[IPU_PASSES])
{
	const struct ipu_matmul products[] = {
		{batch, inputs, units}, {batch, units, inputs}, {inputs, batch, units}};

	for (int p = 0; p < IPU_PASSES; p++)
		ops[p] = (struct ipu_op){.kind = IPU_OP_MATMUL,
					 .dtype = dtype,
					 .pass = (enum ipu_pass)p,
					 .trained = trained,
					 .matmul = products[p]};
}

/* Plan all passes; return the sum of what the planner minimises. */
static int64_t plan_layer(const char *name, int64_t tiles, const struct ipu_op ops[IPU_PASSES],
			  struct ipu_plan plans[IPU_PASSES])
{
	int64_t cycles = 0;

	for (int p = 0; p < IPU_PASSES; p++) {
		plan_on(name, tiles, &ops[p], NULL, &plans[p]);
		cycles += estimate_of(&plans[p]);
	}
	return cycles;
}

/* Weights lie where all passes use them: they are not sent, their tile transposes them for the
 * gradient of the input, and of the update the gradient of the output alone is laid out anew. */
static void test_a_layer_is_planned_at_once(void **state)
{
	struct ipu_plan apart[IPU_PASSES], joint[IPU_PASSES];
	struct ipu_op ops[IPU_PASSES];

	(void)state;
	layer_of(128, 768, 3072, IPU_FLOAT16, false, ops);
	plan_layer("ipu2", 0, ops, apart);
	layer_of(8, 1000, 1000, IPU_FLOAT32, true, ops);
	plan_layer("ipu2", 0, ops, joint);
	for (int p = 0; p < IPU_PASSES; p++)
		assert_int_equal(joint[p].serial_splits, 1);
	assert_int_equal(joint[IPU_FORWARD].split_out, 1);
	assert_int_equal(joint[IPU_BACKWARD_DATA].split_field, joint[IPU_FORWARD].split_in);
	assert_int_equal(joint[IPU_BACKWARD_DATA].split_in, joint[IPU_FORWARD].split_field);
	assert_int_equal(joint[IPU_BACKWARD_WEIGHTS].split_field, joint[IPU_FORWARD].split_field);
	assert_int_equal(joint[IPU_BACKWARD_WEIGHTS].split_out, joint[IPU_FORWARD].split_in);
	assert_true(has_phase(&joint[IPU_BACKWARD_DATA], "PreArrange/OnTileCopy-0"));
	assert_false(has_phase(&joint[IPU_BACKWARD_DATA], "PreArrange/ExchangePre"));
	assert_true(has_phase(&joint[IPU_BACKWARD_WEIGHTS], "PreArrange/OnTileCopy-0"));
	assert_false(has_phase(&joint[IPU_BACKWARD_WEIGHTS], "PostArrange/OnTileCopy-0"));
	/* Alone the update lays its result out, too. */
	assert_true(has_phase(&apart[IPU_BACKWARD_DATA], "PreArrange/OnTileCopy-0"));
	assert_true(has_phase(&apart[IPU_BACKWARD_WEIGHTS], "PostArrange/OnTileCopy-0"));
}

/* With one row the update is an outer product, whose groups are those of the channels that the
 * forward pass reads, in the type of its operands. */
static void test_the_update_of_one_row_is_an_outer_product(void **state)
{
	struct ipu_plan joint[IPU_PASSES];
	struct ipu_op ops[IPU_PASSES];
	const struct ipu_plan *update = &joint[IPU_BACKWARD_WEIGHTS];

	(void)state;
	layer_of(1, 1000, 1000, IPU_FLOAT16, true, ops);
	plan_layer("ipu2", 0, ops, joint);
	assert_true(update->joint);
	assert_int_equal(joint[IPU_FORWARD].method, IPU_METHOD_HORIZONTAL_MAC);
	assert_int_equal(joint[IPU_BACKWARD_DATA].method, IPU_METHOD_HORIZONTAL_MAC);
	assert_int_equal(update->method, IPU_METHOD_OUTER_PRODUCT);
	assert_int_equal(update->split_out, joint[IPU_FORWARD].split_in);
	assert_false(has_phase(update, "Cast"));
	assert_true(has_phase(&joint[IPU_FORWARD], "Cast") ||
		    has_phase(&joint[IPU_FORWARD], "Reduce0"));
	/* A vertex for each worker. */
	for (int p = 0; p < update->phase_count; p++)
		if (strcmp(update->phases[p].part, "Convolve") == 0)
			assert_int_equal(update->phases[p].vertices, 6 * update->phases[p].tiles);
	/* Each vertex has a pointer of 4 bytes to each of its groups of outputs: one here. On
	 * few tiles they are several. */
	assert_int_equal(update->pointer_bytes, 6 * 4);
	plan_layer("ipu2", 16, ops, joint);
	assert_int_equal(update->method, IPU_METHOD_OUTER_PRODUCT);
	assert_true(update->pointer_bytes > 6 * 4);
	assert_int_equal(update->pointer_bytes % (6 * 4), 0);
}

/* An outer product adds up nothing: two rows are too many for it. */
static void test_the_update_of_two_rows_is_no_outer_product(void **state)
{
	struct ipu_plan joint[IPU_PASSES];
	struct ipu_op ops[IPU_PASSES];

	(void)state;
	layer_of(2, 1000, 1000, IPU_FLOAT16, true, ops);
	plan_layer("ipu2", 100, ops, joint);
	assert_true(joint[IPU_BACKWARD_WEIGHTS].joint);
	assert_int_equal(joint[IPU_FORWARD].method, IPU_METHOD_HORIZONTAL_MAC);
	assert_int_equal(joint[IPU_BACKWARD_WEIGHTS].method, IPU_METHOD_AMP_1X1);
}

/* Of all passes together, what holds of one that is planned alone. */
static void test_a_layer_at_once_never_worsens_the_estimate(void **state)
{
	static const int64_t tiles[] = {16, 61, 736, 1472};
	uint64_t random = 21;

	(void)state;
	for (int i = 0; i < RANDOM_OPS / 6; i++) {
		const int64_t batch = size_of(&random, 9), inputs = size_of(&random, 11);
		const int64_t units = size_of(&random, 11);
		const enum ipu_dtype dtype = next(&random) % 2 == 0 ? IPU_FLOAT16 : IPU_FLOAT32;
		int64_t before = INT64_MAX;

		for (size_t t = 0; t < ARRAY_LEN(tiles); t++) {
			struct ipu_plan apart[IPU_PASSES], joint[IPU_PASSES];
			struct ipu_op ops[IPU_PASSES];
			int64_t alone, together;
			bool fits = true;

			layer_of(batch, inputs, units, dtype, false, ops);
			alone = plan_layer("ipu2", tiles[t], ops, apart);
			layer_of(batch, inputs, units, dtype, true, ops);
			together = plan_layer("ipu2", tiles[t], ops, joint);
			for (int p = 0; p < IPU_PASSES; p++)
				fits = fits && (double)apart[p].temporary_bytes <= 0.6 * 638976;
			if (!fits)
				continue;
			assert_true(together <= alone && together <= before);
			before = together;
		}
	}
}

static void test_one_tap_is_a_product(void **state)
{
	const struct ipu_plan_options options = {0.6, IPU_FLOAT16};
	struct ipu_plan conv, product;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 1, 64, 128, 14, 1, 1, &op);
	op.dtype = IPU_FLOAT16;
	plan_on("ipu2", 0, &op, &options, &conv);
	op = (struct ipu_op){
		.kind = IPU_OP_MATMUL, .dtype = IPU_FLOAT16, .matmul = {128, 64, 4 * 14 * 14}};
	plan_on("ipu2", 0, &op, &options, &product);
	assert_int_equal(conv.method, IPU_METHOD_AMP_1X1);
	assert_true(conv.cycles >= product.cycles && conv.cycles < product.cycles + 100);
	assert_int_equal(conv.flops, product.flops);
	assert_false(has_phase(&conv, "PreArrange/OnTileCopy-0"));
}

static void test_passes_lay_out_what_they_need(void **state)
{
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	/* The AMP makes float32 channels in groups of 16 and reads them in groups of 8: the result
	 * stays as it was made, and whatever reads it takes it so. */
	conv_of(IPU_FORWARD, 1, 64, 64, 14, 3, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_false(has_phase(&plan, "PostArrange/OnTileCopy-0"));
	assert_false(has_phase(&plan, "PostArrange/ExchangePre"));
	/* Weights are transposed for the gradient of the input. */
	conv_of(IPU_BACKWARD_DATA, 1, 64, 64, 14, 3, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_true(has_phase(&plan, "PreArrange/OnTileCopy-0"));
	/* Activations and gradients for that of the weights. */
	conv_of(IPU_BACKWARD_WEIGHTS, 1, 64, 64, 14, 3, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_true(has_phase(&plan, "PreArrange/OnTileCopy-0"));
	/* With a stride and one tap, most of the input's gradient is zeros. */
	conv_of(IPU_BACKWARD_DATA, 1, 64, 64, 14, 1, 2, &op);
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_true(has_phase(&plan, "Fill"));
	/* What is summed in float32 ends in float16. */
	op = (struct ipu_op){.kind = IPU_OP_MATMUL, .dtype = IPU_FLOAT16, .matmul = {16, 16, 4096}};
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.split_in, 1);
	assert_true(has_phase(&plan, "Cast"));
}

/* A tap that skips inputs is expanded, which leaves them out; so what it reads is laid out anew. */
static void test_a_stride_of_one_tap_lays_out_its_input(void **state)
{
	struct ipu_plan dense, strided;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 1, 512, 256, 14, 1, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &dense);
	conv_of(IPU_FORWARD, 1, 512, 256, 14, 1, 2, &op);
	plan_on("ipu2", 0, &op, NULL, &strided);
	assert_false(has_phase(&dense, "PreArrange/ExchangePre"));
	assert_true(has_phase(&strided, "PreArrange/ExchangePre"));
	assert_int_equal(strided.method, IPU_METHOD_AMP_1X1);
	assert_true(strided.cycles > dense.cycles);
}

static struct ipu_op conv_7x1(int64_t batch, int64_t columns)
{
	return (struct ipu_op){.kind = IPU_OP_CONV,
			       .name = "7x1",
			       .dtype = IPU_FLOAT16,
			       .conv = {.pass = IPU_FORWARD,
					.batch = batch,
					.groups = 1,
					.in_channels = 192,
					.out_channels = 192,
					.in = {17, columns},
					.out = {17, columns},
					.kernel = {7, 1},
					.stride = {1, 1},
					.dilation = {1, 1}}};
}

/* Rows of taps are cut into any number of parts. The memory that Graphcore recorded of this one
 * fits columns of taps as input channels and two parts of its 17 rows. */
static void test_rows_of_taps_are_cut(void **state)
{
	struct ipu_op op = conv_7x1(4, 17);
	struct ipu_plan plan;

	(void)state;
	op.conv.pass = IPU_BACKWARD_WEIGHTS;
	op.conv.in_channels = op.conv.out_channels = 160;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.method, IPU_METHOD_AMP_NX1);
	assert_int_equal(plan.split_kernel, 2);
}

/* Where columns have no taps, those of all items are one dimension. */
static void test_the_batch_lies_along_columns_without_taps(void **state)
{
	const struct ipu_op items = conv_7x1(4, 17), one = conv_7x1(1, 4 * 17);
	struct ipu_plan batch, row;

	(void)state;
	plan_on("ipu2", 0, &items, NULL, &batch);
	plan_on("ipu2", 0, &one, NULL, &row);
	assert_int_equal(batch.cycles, row.cycles);
	assert_int_equal(batch.split_field, row.split_field);
	assert_int_equal(batch.temporary_bytes, row.temporary_bytes);
}

/* poplibs has a gradient of weights by swapped operands too, which leaves it as the weights lie:
 * its positions are the [160 x 7] of output channels and taps, of which a tile has 102. */
static void test_a_gradient_of_weights_has_its_operands_swapped(void **state)
{
	struct ipu_op op = conv_7x1(4, 17);
	struct ipu_plan plan;

	(void)state;
	op.conv.pass = IPU_BACKWARD_WEIGHTS;
	op.conv.kernel[0] = 1;
	op.conv.kernel[1] = 7;
	op.conv.in_channels = op.conv.out_channels = 160;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.method, IPU_METHOD_AMP_1X1);
	assert_int_equal(plan.split_field, (160 * 7 + 101) / 102);
	assert_int_equal(plan.split_out, 160 / 16);
	assert_false(has_phase(&plan, "PostArrange/ExchangePre"));
}

/* A vertex has a list of work for each tap and worker, an entry of three 16-bit numbers for each
 * piece of a row; of one tap an entry for each worker. */
static void test_vertices_have_lists_of_work(void **state)
{
	struct ipu_plan one, taps;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 1, 64, 128, 14, 1, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &one);
	assert_int_equal(one.method, IPU_METHOD_AMP_1X1);
	assert_int_equal(one.list_bytes, 6 * 3 * 2);
	conv_of(IPU_FORWARD, 1, 512, 512, 14, 3, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &taps);
	assert_int_equal(taps.method, IPU_METHOD_AMP_NX1);
	assert_int_equal(taps.split_kernel, 1);
	assert_int_equal(taps.list_bytes % (9 * 3 * 2), 0);
	assert_true(taps.list_bytes >= 6 * 9 * 3 * 2);
}

/* A vertex points to each group of its operands and to each of its lists; an exchange has an
 * instruction of 4 bytes for each tile that is listened to and for each 64 words. */
static void test_vertices_and_exchanges_take_memory(void **state)
{
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 1, 64, 128, 14, 1, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_true(plan.pointer_bytes >= 4 * (3 + 1));
	for (int i = 0, code = 0; i < plan.phase_count; i++) {
		const struct ipu_phase *phase = &plan.phases[i];
		const int64_t each = (phase->sent + phase->tiles - 1) / phase->tiles;

		code += (int)ipu_phase_code_bytes(&plan, phase);
		if (phase->kind == IPU_EXCHANGE)
			assert_int_equal(ipu_phase_code_bytes(&plan, phase),
					 32 + 4 * (phase->sources + (each + 255) / 256));
		else if (strcmp(phase->part, "Convolve") == 0)
			assert_int_equal(ipu_phase_state_bytes(&plan, phase),
					 48 + plan.pointer_bytes);
		if (i + 1 == plan.phase_count)
			assert_true(plan.code_bytes <= code && plan.code_bytes > 0);
	}
}

/* A's rows are channels, B's columns positions: then nothing is laid out anew where channels fill
 * groups, but for a layer's gradients the right operand. */
static void test_products_have_their_operands_free(void **state)
{
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .matmul = {64, 4096, 512}};
	struct ipu_plan free_, gradient;

	(void)state;
	plan_on("ipu2", 0, &op, NULL, &free_);
	assert_false(has_phase(&free_, "PreArrange/ExchangePre"));
	assert_false(has_phase(&free_, "PostArrange/ExchangePre"));
	op.pass = IPU_BACKWARD_WEIGHTS;
	plan_on("ipu2", 0, &op, NULL, &gradient);
	assert_true(has_phase(&gradient, "PreArrange/ExchangePre"));
	assert_true(gradient.cycles > free_.cycles);
}

/* Of a kernel as large as its field every position of the gradient has one tap: a product, where a
 * convolution would do as many taps as there are positions. */
static void test_a_kernel_as_large_as_its_field_is_a_product(void **state)
{
	struct ipu_plan gradient, product;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_BACKWARD_DATA, 1, 64, 128, 1, 14, 14, &op);
	plan_on("ipu2", 0, &op, NULL, &gradient);
	op = (struct ipu_op){.kind = IPU_OP_MATMUL, .matmul = {4, 128, 64 * 14 * 14}};
	plan_on("ipu2", 0, &op, NULL, &product);
	assert_int_equal(gradient.flops, product.flops);
	assert_true(gradient.compute_cycles < 4 * product.compute_cycles);
}

/* A tile's share of a phase's bytes. */
static double received(const struct ipu_plan *plan, const char *part)
{
	for (int i = 0; i < plan->phase_count; i++)
		if (strcmp(plan->phases[i].part, part) == 0)
			return (double)plan->phases[i].bytes / (double)plan->phases[i].tiles;
	return 0;
}

/* SLIC does rows of four taps of groups of one channel, and takes channels as they lie. */
static void test_depthwise_convolutions_have_slic(void **state)
{
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 128, 1, 1, 56, 3, 1, &op);
	op.dtype = IPU_FLOAT16;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.method, IPU_METHOD_SLIC);
	assert_string_equal(ipu_method_name(plan.method), "SLIC");
	assert_false(has_phase(&plan, "PreArrange/ExchangePre"));
	/* float32 is nothing for it. */
	op.dtype = IPU_FLOAT32;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_true(plan.method != IPU_METHOD_SLIC);
}

/* A strided pass backwards does the same multiply-adds as forwards: not as many more as there are
 * positions between the strides. */
/* SLIC reads the rows and columns of zeros around a field from memory, so they are sent to it. */
static void test_slic_reads_its_padding(void **state)
{
	struct ipu_op op = {.kind = IPU_OP_CONV,
			    .name = "depthwise",
			    .dtype = IPU_FLOAT16,
			    .conv = {.batch = 4,
				     .groups = 1024,
				     .in_channels = 1,
				     .out_channels = 1,
				     .in = {8, 8},
				     .out = {8, 8},
				     .kernel = {3, 3},
				     .stride = {1, 1},
				     .dilation = {1, 1}}};
	struct ipu_plan plan;

	(void)state;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.method, IPU_METHOD_SLIC);
	assert_int_equal(plan.split_field, 1);
	assert_int_equal(plan.split_batch, 4);
	/* Four channels of 10 rows of 11, less the 8 rows of 8 that are there. */
	assert_in_range((int)received(&plan, "Convolve/ExchangePre"), 4 * 2 * (10 * 11 - 8 * 8),
			4 * 2 * (10 * 11 - 8 * 8) + 200);
}

static void test_a_fractional_stride_skips_its_zeros(void **state)
{
	struct ipu_plan forward, backward, dense;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 1, 128, 128, 28, 3, 2, &op);
	plan_on("ipu2", 0, &op, NULL, &forward);
	op.conv.pass = IPU_BACKWARD_DATA;
	plan_on("ipu2", 0, &op, NULL, &backward);
	conv_of(IPU_FORWARD, 1, 128, 128, 56, 3, 1, &op);
	plan_on("ipu2", 0, &op, NULL, &dense);
	assert_int_equal(forward.flops, backward.flops);
	assert_true(backward.compute_cycles < dense.compute_cycles);
}

/* Groups of one channel are for the vector pipe, or are combined: zeros between them, and all
 * operands laid out for it. */
static void test_depthwise_convolutions_pay_for_the_amp(void **state)
{
	struct ipu_plan plan, whole;
	struct ipu_op op;

	(void)state;
	for (int d = IPU_FLOAT32; d <= IPU_FLOAT16; d++) {
		for (int p = 0; p < IPU_PASSES; p++) {
			conv_of((enum ipu_pass)p, 96, 1, 1, 14, 3, 1, &op);
			op.dtype = (enum ipu_dtype)d;
			plan_on("ipu2", 0, &op, NULL, &plan);
			if (plan.method == IPU_METHOD_AMP_1X1 || plan.method == IPU_METHOD_AMP_NX1)
				assert_true(has_phase(&plan, "PreArrange/OnTileCopy-0") &&
					    has_phase(&plan, "PostArrange/OnTileCopy-0"));
			/* An eighth of the multiply-adds of 8 times 8 channels, in no eighth of the
			 * time. */
			conv_of((enum ipu_pass)p, 12, 8, 8, 14, 3, 1, &op);
			op.dtype = (enum ipu_dtype)d;
			plan_on("ipu2", 0, &op, NULL, &whole);
			assert_true(plan.cycles * 8 > whole.cycles);
		}
	}
}

/* Sixteen groups together are what all layers lay out as channels: only weights move. */
static void test_sixteen_groups_together_lie_as_channels_do(void **state)
{
	struct ipu_plan_options options;
	struct ipu_plan plan, odd;
	struct ipu_op op;

	(void)state;
	ipu_plan_options_defaults(&options);
	options.partials = IPU_FLOAT16;
	conv_of(IPU_FORWARD, 240, 1, 1, 28, 5, 1, &op);
	op.dtype = IPU_FLOAT16;
	plan_on("ipu2", 0, &op, &options, &plan);
	assert_true(plan.method == IPU_METHOD_VERTICAL_MAC || plan.method == IPU_METHOD_SLIC);
	assert_false(has_phase(&plan, "PreArrange/ExchangePre"));
	assert_false(has_phase(&plan, "PostArrange/ExchangePre"));
	op.conv.groups = 234;
	plan_on("ipu2", 0, &op, &options, &odd);
	assert_true(odd.cycles > plan.cycles);
	/* Nor do positions that a stride leaves out. */
	conv_of(IPU_FORWARD, 240, 1, 1, 49, 1, 2, &op);
	op.dtype = IPU_FLOAT16;
	op.conv.batch = 16;
	plan_on("ipu2", 0, &op, &options, &plan);
	op.conv.groups = 234;
	plan_on("ipu2", 0, &op, &options, &odd);
	assert_true(odd.cycles > plan.cycles);
}

/* Four 16-bit numbers for each piece of the rows of taps: six workers share the five taps of each
 * of a tile's six positions, so each has a whole row, in each of the kernel's five rows. */
static void test_the_vertical_mac_has_a_list_of_each_workers_rows(void **state)
{
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 16, 1, 1, 28, 5, 1, &op);
	op.dtype = IPU_FLOAT16;
	op.conv.batch = 2;
	op.conv.in[0] = op.conv.in[1] = 32;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.method, IPU_METHOD_VERTICAL_MAC);
	assert_int_equal(plan.list_bytes, 5 * 6 * 4 * 2);
}

/* How many tiles there are makes nothing greater: a sample has a quarter of them. */
static void test_huge_convolutions_come_to_an_end(void **state)
{
	const int64_t tiles = support_stride() > 1 ? 368 : 0;
	const int64_t huge = INT64_C(1) << 40;
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 1, 1, 1, 1, 1, 1, &op);
	op.conv = (struct ipu_conv){IPU_FORWARD,  huge,         huge,         huge,
				    huge,         {huge, huge}, {huge, huge}, {huge, huge},
				    {huge, huge}, {huge, huge}};
	for (int p = 0; p < IPU_PASSES; p++) {
		op.conv.pass = (enum ipu_pass)p;
		plan_on("ipu2", tiles, &op, NULL, &plan);
		assert_true(plan.cycles > 0 && plan.temporary_bytes > 0 && plan.code_bytes >= 0);
		assert_true(plan.tile_balance > 0 && plan.tile_balance <= 1);
	}
}

/* No element is on two tiles: the rows at the edges of windows are sent, though the output's
 * channels are not cut and weights are few. */
static void test_windows_are_brought_together(void **state)
{
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	conv_of(IPU_FORWARD, 64, 1, 1, 112, 3, 1, &op);
	op.dtype = IPU_FLOAT16;
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_true(plan.split_field > 1);
	assert_true(received(&plan, "Convolve/ExchangePre") >
		    10.0 * 64 * 9 * 2 / (double)plan.split_out);
}

/* Partials wait for those that arrive to be summed; what was laid out anew is there while the
 * vertex reads its own copy of it. */
static void test_memory_counts_what_waits(void **state)
{
	int sums = 0, moves = 0;
	struct ipu_plan plan;
	struct ipu_op op;

	(void)state;
	for (int64_t channels = 16; channels <= 1024; channels *= 2) {
		op = (struct ipu_op){
			.kind = IPU_OP_CONV,
			.name = "grad",
			.dtype = IPU_FLOAT16,
			.conv = {.pass = IPU_BACKWARD_WEIGHTS,
				 .batch = 4,
				 .groups = 1,
				 .in_channels = channels,
				 .out_channels = channels,
				 .in = {14, 14},
				 .out = {14, 14},
				 .kernel = {1, 1},
				 .stride = {1, 1},
				 .dilation = {1, 1}},
		};
		double partials, moved;

		plan_on("ipu2", 0, &op, NULL, &plan);
		partials = received(&plan, "Reduce0/ExchangePre");
		moved = received(&plan, "PreArrange/ExchangePre");
		assert_true((double)plan.temporary_bytes >= 2 * partials);
		assert_true((double)plan.temporary_bytes >=
			    moved + received(&plan, "Convolve/ExchangePre") + partials);
		sums += partials > 0;
		moves += moved > 0;
	}
	assert_true(sums > 0 && moves > 0);
	/* Float32 partials that nothing is done with are the result, a tensor of its own. */
	op = (struct ipu_op){.kind = IPU_OP_MATMUL, .matmul = {4096, 16, 4096}};
	plan_on("ipu2", 0, &op, NULL, &plan);
	assert_int_equal(plan.split_in * plan.serial_splits, 1);
	assert_true(received(&plan, "Convolve/ExchangePre") > 0);
	assert_true((double)plan.temporary_bytes < 4096.0 * 4096 * 4 / 1472);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_counts_what_waits),
		cmocka_unit_test(test_more_tiles_never_worsen_the_estimate),
		cmocka_unit_test(test_splits_fit_the_tiles),
		cmocka_unit_test(test_memory_is_kept_to_where_it_can_be),
		cmocka_unit_test(test_a_layer_is_planned_at_once),
		cmocka_unit_test(test_the_update_of_one_row_is_an_outer_product),
		cmocka_unit_test(test_the_update_of_two_rows_is_no_outer_product),
		cmocka_unit_test(test_a_layer_at_once_never_worsens_the_estimate),
		cmocka_unit_test(test_one_tap_is_a_product),
		cmocka_unit_test(test_passes_lay_out_what_they_need),
		cmocka_unit_test(test_a_stride_of_one_tap_lays_out_its_input),
		cmocka_unit_test(test_rows_of_taps_are_cut),
		cmocka_unit_test(test_the_batch_lies_along_columns_without_taps),
		cmocka_unit_test(test_a_gradient_of_weights_has_its_operands_swapped),
		cmocka_unit_test(test_vertices_have_lists_of_work),
		cmocka_unit_test(test_vertices_and_exchanges_take_memory),
		cmocka_unit_test(test_products_have_their_operands_free),
		cmocka_unit_test(test_windows_are_brought_together),
		cmocka_unit_test(test_a_kernel_as_large_as_its_field_is_a_product),
		cmocka_unit_test(test_depthwise_convolutions_have_slic),
		cmocka_unit_test(test_slic_reads_its_padding),
		cmocka_unit_test(test_a_fractional_stride_skips_its_zeros),
		cmocka_unit_test(test_depthwise_convolutions_pay_for_the_amp),
		cmocka_unit_test(test_sixteen_groups_together_lie_as_channels_do),
		cmocka_unit_test(test_the_vertical_mac_has_a_list_of_each_workers_rows),
		cmocka_unit_test(test_huge_convolutions_come_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
