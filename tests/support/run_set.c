/*
 * Laying out the sample run file. See run_set.h.
 */
#include "support/run_set.h"

#include "support/support.h"

void run_set_lay_out(struct run_set *set, const char *line, int64_t train, int64_t test)
{
	*set = (struct run_set){0};
	if (run_sample_load(&set->run, line, &set->err) != ST_OK)
		print_error("%s: %s\n", line, set->err.text);
	assert_non_null(set->run);
	set->model = run_sample_model(set->run);
	set->status =
		run_layout_new(&set->layout, set->run, set->model, train, test, NULL, &set->err);
}

void run_set_clear(struct run_set *set)
{
	run_layout_free(set->layout);
	model_free(set->model);
	run_file_free(set->run);
}

void run_set_refuses_with(const char *line, int64_t train, int64_t test, const char *part)
{
	struct run_set set;

	run_set_lay_out(&set, line, train, test);
	assert_int_equal(set.status, ST_INVALID);
	assert_null(set.layout);
	assert_contains(set.err.text, part);
	run_set_clear(&set);
}

void run_set_refuses(const char *line, const char *part)
{
	run_set_refuses_with(line, 60000, 10000, part);
}

void run_set_undoes(const char *line)
{
	struct run_set set;

	run_set_lay_out(&set, line, 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	for (long n = 0;; n++) {
		struct run_layout *layout;
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = run_layout_new(&layout, set.run, set.model, 60000, 10000, NULL, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			run_layout_free(layout);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
		assert_null(layout);
	}
	run_set_clear(&set);
}

void run_set_warns(const char *line, const char *part)
{
	struct run_set set;

	run_set_lay_out(&set, line, 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_contains(set.layout->warnings, part);
	run_set_clear(&set);
}

void run_set_notes(const char *line, const char *part)
{
	struct run_set set;

	run_set_lay_out(&set, line, 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_contains(set.layout->notes, part);
	run_set_clear(&set);
}
