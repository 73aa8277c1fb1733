/*
 * What is sent to which queue of a run: layers that outfeed.layers names.
 */
#include "model/run/run_queues.h"

#include "common/mem.h"
#include "common/str.h"
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

/* ---- queues of outfeed layers ---------------------------------------------------------------- */

/* A layer of a model of Dense layers and outfeeds; ' stands for a quotation mark. */
#define DENSE(name)         "{'class_name': 'Dense', 'config': {'name': '" name "', 'units': 2}}"
#define OUTFEED(name, more) "{'class_name': 'Outfeed', 'config': {'name': '" name "'" more "}}"
#define MAYBE(name, more)   "{'class_name': 'MaybeOutfeed', 'config': {'name': '" name "'" more "}}"
#define NOT_FINAL           ", 'final_outfeed': false"
#define QUEUE(name)         ", 'queue': '" name "'"

/* Plan the queues of @layers in @stages; @outfeed: the section's members. */
static enum status setup_layers(struct planned *p, const char *layers, const char *stages,
				const char *outfeed, struct err *err)
{
	char *text = mem_printf(
		"{'model': {'class_name': 'Sequential', 'config': {'name': 'm', 'layers': [%s]}}, "
		"'compile': {'loss': 'mse', 'steps_per_execution': 4}, 'fit': {'steps_per_epoch': "
		"4}, 'ipu': {'auto_select_ipus': 2}, 'gradient_accumulation': "
		"{'steps_per_replica': 4}, 'pipeline': {'stages': [%s]}, 'outfeed': {%s}}",
		layers, stages, outfeed);

	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	p->run = run_sample_of(text);
	mem_free(text);
	p->model = run_sample_model_of(p->run, &(struct model_shape){1, {2}});
	assert_int_equal(arena_init(&p->arena, 0), 0);
	if (run_layout_new(&p->layout, p->run, p->model, 600, 0, NULL, err) != ST_OK)
		fail_msg("%s", err->text);
	if (run_queues_plan(&p->queues, &p->arena, p->run, p->model, p->layout, err) != ST_OK)
		return err->status;
	return run_queues_check(&p->queues, p->run, p->model, err);
}

/* A line for each queue, and below it one for each of its sends. */
static void describe(const struct run_queues *plan, struct str *out)
{
	for (int q = 0; q < plan->queue_count; q++) {
		const struct run_queue *queue = &plan->queues[q];

		str_addf(out, "%s, stage %d%s: %s\n", queue->name, queue->stage,
			 queue->wrapped ? ", wrapped" : "", queue->callback);
		for (int i = 0; i < plan->send_count; i++)
			if (plan->sends[i].queue == q)
				str_addf(out, " %s of %d%s%s%s%s\n", plan->sends[i].key,
					 plan->sends[i].layer,
					 plan->sends[i].placed ? " placed" : "",
					 plan->sends[i].passes ? " passes" : "",
					 plan->sends[i].final ? " final" : "",
					 plan->sends[i].sent ? " sent" : "");
	}
}

/* Layers, their stages, the section "outfeed", and what describe() says of the plan. */
static const struct {
	const char *layers, *stages, *outfeed, *plan;
} plans[] = {
	{DENSE("a") ", " OUTFEED("p", "") ", " DENSE("b") ", " OUTFEED("q", ""), "0, 0, 1, 1",
	 "'activations': ['p']",
	 "activations_outfeed_queue_p, stage 0: Single layer activations callback "
	 "(activations_outfeed_queue_p)\n"
	 " p of 1 passes final sent\n"
	 "activations_outfeed_queue_q, stage 1: Single layer activations callback "
	 "(activations_outfeed_queue_q)\n"
	 " q of 3 final sent\n"},
	{DENSE("a") ", " OUTFEED("p", "") ", " DENSE("b"), "0, 0, 1", "'gradients': ['a']",
	 "optimizer_outfeed_queue, stage -1, wrapped: Gradients callback\n"
	 "activations_outfeed_queue, stage 0: Single layer activations callback\n"
	 " p of 1 passes final sent\n"},
	{DENSE("a") ", " OUTFEED("p", QUEUE("x")) ", " DENSE("b") ", " OUTFEED("q", ""),
	 "0, 0, 1, 1", "",
	 "x, stage 0: Single layer activations callback (x)\n"
	 " p of 1 passes final sent\n"
	 "activations_outfeed_queue, stage 1: Single layer activations callback "
	 "(activations_outfeed_queue)\n"
	 " q of 3 passes final sent\n"},
	{DENSE("a") ", " MAYBE("p", NOT_FINAL) ", " DENSE("b") ", " MAYBE("q", "") ", " DENSE(
		 "c") ", " OUTFEED("r", ""),
	 "0, 0, 0, 0, 1, 1", "'activations': ['p']",
	 "activations_outfeed_queue, stage 1: Single layer activations callback\n"
	 " r of 5 final sent\n"
	 "multi_activations_outfeed_queue, stage 0, wrapped: Multi-layer activations "
	 "callback\n"
	 " p of 1 passes sent\n"
	 " q of 3 final\n"},
	{DENSE("a") ", " MAYBE("p", NOT_FINAL) ", " DENSE("b") ", " MAYBE("q", "") ", " DENSE("z"),
	 "0, 0, 0, 0, 1", "'activations': ['q']",
	 "multi_activations_outfeed_queue, stage 0, wrapped: Multi-layer activations "
	 "callback\n"
	 " p of 1\n"
	 " q of 3 passes final sent\n"},
	{DENSE("a") ", " MAYBE("p", "") ", " DENSE("b") ", " MAYBE("q", ""), "0, 0, 1, 1",
	 "'activations': ['none', 'q']",
	 "multi_activations_outfeed_queue_stage_0, stage 0, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_0)\n"
	 " p of 1 final\n"
	 "multi_activations_outfeed_queue_stage_1, stage 1, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_1)\n"
	 " q of 3 passes final sent\n"},
	{DENSE("a") ", " MAYBE("p", QUEUE("x")) ", " DENSE("b") ", " MAYBE("q", ""), "0, 0, 1, 1",
	 "",
	 "x, stage 0, wrapped: Multi-layer activations callback (x)\n"
	 " p of 1 passes final sent\n"
	 "multi_activations_outfeed_queue, stage 1, wrapped: Multi-layer activations "
	 "callback (multi_activations_outfeed_queue)\n"
	 " q of 3 passes final sent\n"},
	{DENSE("a") ", " MAYBE("p", NOT_FINAL) ", " DENSE("b") ", " MAYBE("q", NOT_FINAL),
	 "0, 0, 1, 1", "",
	 "multi_activations_outfeed_queue_stage_0, stage 0, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_0)\n"
	 " p of 1 passes\n"
	 "multi_activations_outfeed_queue_stage_1, stage 1, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_1)\n"
	 " q of 3 passes\n"},
	{DENSE("a") ", " MAYBE("p", NOT_FINAL) ", " DENSE("b") ", " MAYBE("q", "") ", " DENSE("c"),
	 "0, 0, 0, 0, 1", "'layers': ['a', 'b', 'c'], 'activations': ['b', 'c']",
	 "multi_activations_outfeed_queue_stage_0, stage 0, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_0)\n"
	 " a_acts of 0 placed passes sent\n"
	 " p of 1\n"
	 " b_acts of 2 placed passes sent\n"
	 " q of 3 final\n"
	 "multi_activations_outfeed_queue_stage_1, stage 1, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_1)\n"
	 " c_acts of 4 placed passes final sent\n"},
	{DENSE("a") ", " MAYBE("p", "") ", " DENSE("b"), "0, 0, 1",
	 "'layers': {'b': 'w', 'a': 'v'}, 'gradients': ['kernel'], 'activations': ['p']",
	 "optimizer_outfeed_queue, stage -1, wrapped: Gradients callback\n"
	 "multi_activations_outfeed_queue_stage_0, stage 0, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_0)\n"
	 " v of 0 placed\n"
	 " p of 1 passes final sent\n"
	 "multi_activations_outfeed_queue_stage_1, stage 1, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_1)\n"
	 " w of 2 placed final\n"},
	{DENSE("a") ", " OUTFEED("p", "") ", " DENSE("b") ", " MAYBE("q", "") ", " DENSE("c"),
	 "0, 0, 0, 0, 1", "'layers': ['c'], 'gradients': ['kernel']",
	 "optimizer_outfeed_queue, stage -1, wrapped: Gradients callback\n"
	 "activations_outfeed_queue, stage 0: Single layer activations callback\n"
	 " p of 1 passes final sent\n"
	 "multi_activations_outfeed_queue_stage_0, stage 0, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_0)\n"
	 " q of 3 passes final sent\n"
	 "multi_activations_outfeed_queue_stage_1, stage 1, wrapped: Multi-layer "
	 "activations callback (multi_activations_outfeed_queue_stage_1)\n"
	 " c_acts of 4 placed passes final sent\n"},
	{DENSE("a") ", " MAYBE("p", "") ", " DENSE("b") ", " MAYBE("q", "") ", " DENSE("z"),
	 "0, 0, 0, 0, 1", "'activations': ['q']",
	 "multi_activations_outfeed_queue, stage 0, wrapped: Multi-layer activations "
	 "callback\n"
	 " p of 1 final\n"
	 " q of 3 passes final sent\n"},
};

static void test_sends_go_to_the_queues_of_their_kind_and_stage(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		struct str text = {0};
		struct planned p;
		struct err err = {0};

		if (setup_layers(&p, plans[i].layers, plans[i].stages, plans[i].outfeed, &err) !=
		    ST_OK)
			fail_msg("row %zu: %s", i, err.text);
		describe(&p.queues, &text);
		assert_string_equal(str_peek(&text), plans[i].plan);
		str_free(&text);
		teardown_planned(&p);
	}
}

static void test_what_cannot_share_a_queue_is_named(void **state)
{
	static const struct {
		const char *layers, *stages, *outfeed, *says;
	} rows[] = {
		{DENSE("a") ", " OUTFEED("o", "") ", " DENSE("b") ", " OUTFEED(
			 "p", QUEUE("x")) ", " OUTFEED("q", QUEUE("x")) ", " DENSE("z"),
		 "0, 0, 0, 0, 0, 1", "",
		 "run.json: outfeed queue \"x\": a queue is enqueued in one place, but both \"p\" "
		 "and \"q\" use it (give each a queue, or use MaybeOutfeed)"},
		{DENSE("a") ", " OUTFEED("o", "") ", " DENSE("b") ", " OUTFEED(
			 "p", QUEUE("x")) ", " MAYBE("q", QUEUE("x")) ", " DENSE("z"),
		 "0, 0, 0, 0, 0, 1", "",
		 "run.json: layer \"q\": outfeed queue \"x\" is used by an Outfeed and by a "
		 "MaybeOutfeed (\"p\"): an Outfeed has a queue of its own"},
		{DENSE("a") ", " MAYBE("o", QUEUE("y")) ", " DENSE("b") ", " MAYBE(
			 "p", QUEUE("x")) ", " MAYBE("q", QUEUE("x")) ", " DENSE("z"),
		 "0, 0, 0, 0, 0, 1", "",
		 "run.json: outfeed queue \"x\": a queue is enqueued in one place, so \"q\" cannot "
		 "be a second final outfeed (give all but the last layer final_outfeed=False)"},
		{DENSE("a") ", " MAYBE("p", QUEUE("x")) ", " DENSE("b") ", " MAYBE("q", QUEUE("x")),
		 "0, 0, 1, 1", "'gradients': ['kernel'], 'layers': ['a']",
		 "run.json: layer \"q\" of stage 1: outfeed queue \"x\" is that of stage 0 "
		 "(\"p\"), and what a queue sends is put together in one stage: name another, or "
		 "leave \"queue\" out"},
		{DENSE("a") ", " OUTFEED("p", QUEUE("optimizer_outfeed_queue")) ", " DENSE("b"),
		 "0, 0, 1", "'gradients': ['a']",
		 "run.json: layer \"p\": \"optimizer_outfeed_queue\" is the optimizer's queue, and "
		 "a queue is enqueued in one place: name another"},
		{DENSE("a") ", " MAYBE("p", "") ", " DENSE("b") ", " MAYBE("q", "") ", " DENSE("z"),
		 "0, 0, 0, 0, 1", "",
		 "run.json: outfeed queue \"multi_activations_outfeed_queue\": a queue is enqueued "
		 "in one place, so \"q\" cannot be a second final outfeed (give all but the last "
		 "layer final_outfeed=False)"},
		{DENSE("a") ", " MAYBE("p", QUEUE("x")) ", " DENSE("b") ", " MAYBE(
			 "q", QUEUE("y")) ", " MAYBE("r", QUEUE("y")) ", " DENSE("z"),
		 "0, 0, 0, 0, 0, 1", "",
		 "run.json: outfeed queue \"y\": a queue is enqueued in one place, so \"r\" cannot "
		 "be a second final outfeed (give all but the last layer final_outfeed=False)"},
		{DENSE("a") ", " DENSE("b") ", " DENSE("c"), "0, 0, 1",
		 "'layers': {'a': 'k', 'b': 'k'}",
		 "run.json: outfeed queue \"multi_activations_outfeed_queue\": both layer \"a\" "
		 "and layer \"b\" have the key \"k\" (outfeed.layers may say {layer: key})"},
		{DENSE("a") ", " DENSE("b") ", " DENSE("c"), "0, 0, 1",
		 "'layers': {'b': 'k', 'a': 'k', 'c': null}, 'activations': ['k']",
		 "run.json: outfeed queue \"multi_activations_outfeed_queue_stage_0\": both layer "
		 "\"a\" and layer \"b\" have the key \"k\" (outfeed.layers may say {layer: key})"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct planned p;
		struct err err = {0};

		assert_int_equal(
			setup_layers(&p, rows[i].layers, rows[i].stages, rows[i].outfeed, &err),
			ST_INVALID);
		assert_string_equal(err.text, rows[i].says);
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
		cmocka_unit_test(test_sends_go_to_the_queues_of_their_kind_and_stage),
		cmocka_unit_test(test_what_cannot_share_a_queue_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
