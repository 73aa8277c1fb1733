/*
 * The picture of a pipeline: as wide as asked for, with every stage in it.
 */
#include "support/pipeline_sample.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

#include "model/plan/plan_command.h"

static struct ipu_pipeline *pipeline_of(enum ipu_schedule_kind kind, int stages, int microbatches)
{
	struct pipeline_sample sample;
	struct ipu_pipeline *pipeline;

	pipeline_sample_fill(&sample, kind, stages, microbatches, 2);
	pipeline_sample_times(&sample, 10, 10, 10, 2);
	pipeline = pipeline_sample_run(&sample);
	return pipeline;
}

/* Characters of the line at *@text; moves it to the next. */
static int line_width(const char **text)
{
	int width = 0;

	for (; **text != '\0' && **text != '\n'; ++*text)
		width += ((unsigned char)**text & 0xc0) != 0x80;
	*text += **text == '\n';
	return width;
}

static void test_every_row_is_as_wide_as_asked_for(void **state)
{
	struct ipu_pipeline *pipeline = pipeline_of(IPU_ZB_H2, 12, 30);

	(void)state;
	for (int width = 20; width < 300; width += 7) {
		for (int unicode = 0; unicode < 2; unicode++) {
			const struct plan_gantt_params params = {.width = width,
								 .unicode = unicode == 1};
			struct str text = {0};
			const char *at;

			plan_gantt(pipeline, &params, &text);
			assert_false(text.failed);
			at = text.text;
			for (int s = 0; s < 12; s++) {
				char name[32];

				snprintf(name, sizeof(name), "stage %d ", s);
				assert_int_equal(strncmp(at, name, strlen(name)), 0);
				assert_int_equal(line_width(&at), width);
			}
			str_free(&text);
		}
	}
	ipu_pipeline_free(pipeline);
}

static void test_ascii_is_ascii_and_without_colour_nothing_is_escaped(void **state)
{
	struct ipu_pipeline *pipeline = pipeline_of(IPU_1F1B_INTERLEAVED, 4, 8);
	const struct plan_gantt_params plain = {.width = 80};
	const struct plan_gantt_params coloured = {.width = 80, .colour = true};
	struct str text = {0};

	(void)state;
	plan_gantt(pipeline, &plain, &text);
	for (size_t i = 0; i < text.length; i++)
		assert_true(text.text[i] == '\n' || (text.text[i] >= ' ' && text.text[i] <= '~'));
	str_clear(&text);
	plan_gantt(pipeline, &coloured, &text);
	assert_contains(text.text, "\033[44;97mF0");
	assert_contains(text.text, "\033[0m");
	str_free(&text);
	ipu_pipeline_free(pipeline);
}

static void test_a_pipeline_that_takes_no_time_is_drawn_idle(void **state)
{
	const struct plan_gantt_params params = {.width = 28};
	struct pipeline_sample sample;
	struct ipu_pipeline *pipeline;
	struct str text = {0};

	(void)state;
	pipeline_sample_fill(&sample, IPU_GPIPE, 2, 4, 1);
	pipeline_sample_times(&sample, 0, 0, 0, 0);
	pipeline = pipeline_sample_run(&sample);
	plan_gantt(pipeline, &params, &text);
	assert_contains(text.text, "stage 0 ....................\nstage 1 ....................\n");
	str_free(&text);
	ipu_pipeline_free(pipeline);
}

/* A makespan near the greatest: no column's border overflows. */
static void test_the_longest_pipeline_is_drawn_too(void **state)
{
	const struct plan_gantt_params params = {.width = 24};
	struct pipeline_sample sample;
	struct ipu_pipeline *pipeline;
	struct str text = {0};

	(void)state;
	pipeline_sample_fill(&sample, IPU_GPIPE, 1, 1, 1);
	pipeline_sample_times(&sample, INT64_C(1) << 59, INT64_C(1) << 59, 0, 0);
	pipeline = pipeline_sample_run(&sample);
	plan_gantt(pipeline, &params, &text);
	assert_contains(text.text, "stage 0 F0------B0------\n");
	str_free(&text);
	ipu_pipeline_free(pipeline);
}

static void test_no_failed_allocation_goes_unnoticed(void **state)
{
	struct ipu_pipeline *pipeline = pipeline_of(IPU_1F1B, 4, 8);
	const struct plan_gantt_params params = {.width = 80, .unicode = true};
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct str text = {0};

		support_fail_alloc(n);
		plan_gantt(pipeline, &params, &text);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(text.failed, failed);
		str_free(&text);
	}
	ipu_pipeline_free(pipeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_as_wide_as_asked_for),
		cmocka_unit_test(test_ascii_is_ascii_and_without_colour_nothing_is_escaped),
		cmocka_unit_test(test_a_pipeline_that_takes_no_time_is_drawn_idle),
		cmocka_unit_test(test_the_longest_pipeline_is_drawn_too),
		cmocka_unit_test(test_no_failed_allocation_goes_unnoticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
