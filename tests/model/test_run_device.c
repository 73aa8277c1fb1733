/*
 * What a run file says of the simulated IPUs: defaults, values, sections within sections, and what
 * a stage's own options come to.
 */
#include <math.h>

#include "support/run_sample.h"
#include "support/support.h"

static void test_defaults_are_those_of_keras(void **state)
{
	struct run_file *run = run_sample_get("");

	(void)state;
	assert_false(run->ipu.allow_recompute || run->ipu.io_tiles.place_ops_on_io_tiles);
	assert_int_equal(run->ipu.io_tiles.num_io_tiles, 0);
	assert_close(run->ipu.io_tiles.available_memory_proportion, 0.9, 0);
	assert_close(run->ipu.convolutions.available_memory_proportion, 0.6, 0);
	assert_close(run->ipu.matmuls.available_memory_proportion, 0.6, 0);
	assert_int_equal(run->ipu.convolutions.partials_type, RUN_PARTIALS_FLOAT);
	assert_int_equal(run->ipu.matmuls.partials_type, RUN_PARTIALS_FLOAT);
	assert_int_equal(run->infeed.prefetch_depth, 3);
	assert_int_equal(run->outfeed.buffer_depth, 3);
	assert_int_equal(run->accumulation.dtype, RUN_DTYPE_UNSAID);
	assert_false(run->pipeline.stages_auto || run->pipeline.device_mapping.given ||
		     run->pipeline.accumulate_outfeed);
	assert_int_equal(run->pipeline.recomputation_mode, RUN_RECOMPUTE_AUTO);
	assert_false(run->pipeline.forward_options.given || run->pipeline.backward_options.given);
	assert_true(isnan(run->pipeline.update_options.matmul.available_memory_proportion));
	assert_int_equal(run->pipeline.offload_weight_update_variables, RUN_UNSAID);
	assert_int_equal(run->pipeline.offload_weights, RUN_UNSAID);
	run_file_free(run);
}

static void test_sections_may_lie_within_sections(void **state)
{
	struct run_file *run;

	(void)state;
	run = run_sample_get(
		"--ipu.io_tiles.num_io_tiles 32 --ipu.io_tiles.place_ops_on_io_tiles true "
		"--ipu.matmuls {\"availableMemoryProportion\":\"0.25\"} "
		"--ipu.convolutions.partialsType half");
	assert_int_equal(run->ipu.io_tiles.num_io_tiles, 32);
	assert_true(run->ipu.io_tiles.place_ops_on_io_tiles);
	assert_close(run->ipu.matmuls.available_memory_proportion, 0.25, 0);
	assert_int_equal(run->ipu.convolutions.partials_type, RUN_PARTIALS_HALF);
	assert_int_equal(run->ipu.matmuls.partials_type, RUN_PARTIALS_FLOAT);
	run_file_free(run);
	/* null is the default, of one that lies in nothing too. */
	run = run_sample_get("--cpu --ipu.io_tiles null");
	assert_int_equal(run->ipu.io_tiles.num_io_tiles, 0);
	run_file_free(run);
	run = run_sample_get("--ipu null --pipeline null");
	assert_close(run->ipu.io_tiles.available_memory_proportion, 0.9, 0);
	run_file_free(run);
}

static void test_options_of_the_device_have_types_and_ranges(void **state)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{"--ipu.io_tiles 3", "run.json: ipu.io_tiles: must be an object"},
		{"--ipu.io_tiles {\"num_io_tile\":3}",
		 "ipu.io_tiles.num_io_tile: unknown key (did you mean \"num_io_tiles\"?)"},
		{"--ipu.io_tiles.num_io_tiles -1", "ipu.io_tiles.num_io_tiles: must be from 0"},
		{"--ipu.convolutions.availableMemoryProportion 1.5",
		 "ipu.convolutions.availableMemoryProportion: must be from 0 to 1, not 1.5"},
		{"--ipu.matmuls.availableMemoryProportion \"much\"",
		 "ipu.matmuls.availableMemoryProportion: must be a number, not \"much\""},
		{"--ipu.matmuls.partialsType float16", "unknown value \"float16\""},
		{"--infeed.prefetch_depth 0", "infeed.prefetch_depth: must be from 1"},
		{"--outfeed.buffer_depth 0", "outfeed.buffer_depth: must be from 1"},
		{"--gradient_accumulation.dtype float64", "gradient_accumulation.dtype: "},
		{"--pipeline.device_mapping 3", "pipeline.device_mapping: must be an array"},
		{"--pipeline.device_mapping [0,-1]",
		 "pipeline.device_mapping[1]: must be from 0 to 255"},
		{"--pipeline.device_mapping [0,0.5]",
		 "pipeline.device_mapping[1]: must be a whole number"},
		{"--pipeline.accumulate_outfeed 1", "pipeline.accumulate_outfeed: must be true"},
		{"--pipeline.offload_weights 1", "pipeline.offload_weights: must be true or false"},
		{"--pipeline.recomputation_mode Then", "pipeline.recomputation_mode: unknown"},
		{"--pipeline.forward_propagation_stages_poplar_options {}", "must be an array"},
		{"--pipeline.forward_propagation_stages_poplar_options [null,{\"conv\":{}}]",
		 "pipeline.forward_propagation_stages_poplar_options[1]: unknown key \"conv\""},
		{"--pipeline.forward_propagation_stages_poplar_options [{\"slice\":{}}]",
		 "[0].slice: slices are not planned here"},
		{"--pipeline.backward_propagation_stages_poplar_options "
		 "[{\"matmul\":{\"partialsType\":\"double\"}}]",
		 "[0].matmul.partialsType: must be \"float\" or \"half\", not \"double\""},
		{"--pipeline.weight_update_poplar_options "
		 "{\"matmul\":{\"availableMemoryProportion\":-1}}",
		 "pipeline.weight_update_poplar_options.matmul.availableMemoryProportion: must be "
		 "from 0 to 1, not -1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_sample_refuses(cases[i].line, cases[i].part);
}

static void test_options_of_pipelines_are_read(void **state)
{
	struct run_file *run;

	(void)state;
	run = run_sample_get("--pipeline.device_mapping [1,0] --pipeline.accumulate_outfeed true "
			     "--pipeline.offload_weights true --pipeline.offload_activations false "
			     "--gradient_accumulation.dtype float16 "
			     "--pipeline.recomputation_mode RecomputeAndBackpropagateInterleaved");
	assert_true(run->pipeline.device_mapping.given);
	assert_int_equal(run->pipeline.device_mapping.count, 2);
	assert_int_equal(run->pipeline.device_mapping.items[0], 1);
	assert_int_equal(run->pipeline.device_mapping.items[1], 0);
	assert_true(run->pipeline.accumulate_outfeed);
	assert_int_equal(run->pipeline.offload_weights, RUN_YES);
	assert_int_equal(run->pipeline.offload_activations, RUN_NO);
	assert_int_equal(run->pipeline.offload_gradient_accumulation_buffers, RUN_UNSAID);
	assert_int_equal(run->accumulation.dtype, RUN_FLOAT16);
	assert_int_equal(run->pipeline.recomputation_mode,
			 RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED);
	run_file_free(run);
	run = run_sample_get("--pipeline.stages auto");
	assert_true(run->pipeline.stages_auto);
	run_file_free(run);
}

static void test_overrides_reach_into_lists_of_options(void **state)
{
	struct run_file *run;

	(void)state;
	run = run_sample_get("--pipeline.device_mapping [0,0] --pipeline.device_mapping.1 1 "
			     "--pipeline.weight_update_poplar_options.matmul.partialsType half");
	assert_int_equal(run->pipeline.device_mapping.items[1], 1);
	assert_int_equal(run->pipeline.update_options.matmul.partials_type, RUN_PARTIALS_HALF);
	run_file_free(run);
}

static void test_a_stage_s_options_come_before_those_of_the_ipu(void **state)
{
	struct run_file *run;
	struct run_poplar poplar;

	(void)state;
	run = run_sample_get(
		"--ipu.convolutions.availableMemoryProportion 0.3 --ipu.matmuls.partialsType half "
		"--pipeline.forward_propagation_stages_poplar_options "
		"[null,{\"matmul\":{\"availableMemoryProportion\":0.1},\"convolution\":null}] "
		"--pipeline.weight_update_poplar_options "
		"{\"matmul\":{\"partialsType\":\"float\"}}");
	poplar = run_poplar_of(run, 'F', 0);
	assert_close(poplar.convolution.available_memory_proportion, 0.3, 0);
	assert_close(poplar.matmul.available_memory_proportion, 0.6, 0);
	assert_int_equal(poplar.matmul.partials_type, RUN_PARTIALS_HALF);
	poplar = run_poplar_of(run, 'F', 1);
	assert_close(poplar.convolution.available_memory_proportion, 0.3, 0);
	assert_close(poplar.matmul.available_memory_proportion, 0.1, 0);
	assert_int_equal(poplar.matmul.partials_type, RUN_PARTIALS_HALF);
	poplar = run_poplar_of(run, 'B', 1);
	assert_close(poplar.matmul.available_memory_proportion, 0.6, 0);
	poplar = run_poplar_of(run, 'U', 1);
	assert_int_equal(poplar.matmul.partials_type, RUN_PARTIALS_FLOAT);
	run_file_free(run);
}

static void test_recomputation_is_what_the_schedule_has_by_default(void **state)
{
	static const struct {
		const char *line;
		enum run_recomputation mode;
	} cases[] = {
		{"", RUN_RECOMPUTE_NOTHING},
		{"--pipeline null --ipu.allow_recompute true", RUN_RECOMPUTE_NOTHING},
		{"--ipu.allow_recompute true", RUN_RECOMPUTE_THEN_BACKPROPAGATE},
		{"--ipu.allow_recompute true --pipeline.schedule Interleaved",
		 RUN_RECOMPUTE_THEN_BACKPROPAGATE},
		{"--ipu.allow_recompute true --pipeline.schedule Sequential",
		 RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED},
		{"--ipu.allow_recompute true --pipeline.recomputation_mode "
		 "RecomputeAndBackpropagateInterleaved",
		 RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run_file *run = run_sample_get(cases[i].line);

		assert_int_equal(run_recomputation(run), cases[i].mode);
		run_file_free(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_are_those_of_keras),
		cmocka_unit_test(test_sections_may_lie_within_sections),
		cmocka_unit_test(test_options_of_the_device_have_types_and_ranges),
		cmocka_unit_test(test_options_of_pipelines_are_read),
		cmocka_unit_test(test_overrides_reach_into_lists_of_options),
		cmocka_unit_test(test_a_stage_s_options_come_before_those_of_the_ipu),
		cmocka_unit_test(test_recomputation_is_what_the_schedule_has_by_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
