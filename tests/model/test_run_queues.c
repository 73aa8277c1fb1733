/*
 * What is sent to which queue of a run: layers that outfeed.layers names.
 */
#include "model/run/run_queues.h"

#include "common/mem.h"
#include "support/run_sample.h"
#include "support/support.h"

/* Queues borrow from what they are planned of. */
struct planned {
	struct run_file *run;
	struct model *model;
	struct run_layout *layout;
	struct arena arena;
	struct run_queues queues;
};

static enum status setup_planned(struct planned *p, const char *line, struct err *err)
{
	p->run = run_sample_get(line);
	p->model = run_sample_model(p->run);
	assert_int_equal(arena_init(&p->arena, 0), 0);
	assert_int_equal(run_layout_new(&p->layout, p->run, p->model, 60000, 10000, NULL, NULL),
			 ST_OK);
	return run_queues_plan(&p->queues, &p->arena, p->run, p->model, p->layout, err);
}

static void teardown_planned(struct planned *p)
{
	arena_fini(&p->arena);
	run_layout_free(p->layout);
	model_free(p->model);
	run_file_free(p->run);
}

static void test_layers_are_sent_with_the_keys_that_they_are_given(void **state)
{
	const struct run_send *sends;
	struct planned p;

	(void)state;
	assert_int_equal(setup_planned(&p,
				       "--outfeed.layers "
				       "{\"out\":\"last\",\"flatten\":null}",
				       NULL),
			 ST_OK);
	sends = p.queues.sends;
	assert_int_equal(p.queues.send_count, 2);
	assert_int_equal(sends[0].layer, 0);
	assert_string_equal(sends[0].key, "flatten_acts");
	assert_int_equal(sends[1].layer, 2);
	assert_string_equal(sends[1].key, "last");
	assert_true(sends[0].placed && sends[1].placed);
	teardown_planned(&p);
}

static void test_a_layer_that_is_not_there_is_named(void **state)
{
	struct planned p;
	struct err err;

	(void)state;
	assert_int_equal(setup_planned(&p, "--outfeed.layers [\"ou\"]", &err), ST_INVALID);
	assert_contains(err.text, "\"ou\"");
	assert_contains(err.text, "did you mean \"out\"?");
	teardown_planned(&p);
}

static void test_one_layer_is_sent_by_its_name(void **state)
{
	struct planned p;

	(void)state;
	assert_int_equal(setup_planned(&p, "--outfeed.layers out", NULL), ST_OK);
	assert_int_equal(p.queues.send_count, 1);
	assert_string_equal(p.queues.sends[0].key, "out_acts");
	teardown_planned(&p);
}

static void test_what_names_no_layers_is_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{"--outfeed.layers 3", "outfeed.layers: must be a layer, a list of layers"},
		{"--outfeed.layers [\"out\",\"out\"]", "layers[1]: has the layer \"out\" twice"},
		{"--outfeed.layers {\"out\":\"\"}", "layers.out: is no key; null: \"out_acts\""},
	};
	struct planned p;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(setup_planned(&p, rows[i].line, &err), ST_INVALID);
		assert_contains(err.text, rows[i].says);
		teardown_planned(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_are_sent_with_the_keys_that_they_are_given),
		cmocka_unit_test(test_a_layer_that_is_not_there_is_named),
		cmocka_unit_test(test_one_layer_is_sent_by_its_name),
		cmocka_unit_test(test_what_names_no_layers_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
