/*
 * Models from texts: see model_texts.h.
 */
#include "support/model_texts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer.h"

/* ---- what was read --------------------------------------------------------------------------- */

static uint64_t digest = SUPPORT_DIGEST;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	digest = support_digest_text(digest, text, strlen(text));
}

static void note_shape(const char *what, const struct model_shape *shape)
{
	note(" %s", what);
	for (int i = 0; i < shape->ndim; i++)
		note(",%" PRId64, shape->dim[i]);
}

static void note_layer(const struct model *model, int i)
{
	const struct model_layer *l = &model->layers[i];

	note("%s %s at %d of row %d, home %s:", l->name, model_layer_class(l), l->position, l->row,
	     l->home ? l->home : "-");
	for (int input = 0; input < l->input_count; input++)
		note(" %d", l->inputs[input]);
	note(", masks %d %d,", l->mask, l->key_mask);
	note_shape("input", &l->input);
	note_shape("output", &l->output);
	note(", parameters %d+%d, policy %d, activation %d, units %" PRId64 ", state %" PRId64,
	     l->first_param, l->param_count, (int)l->policy, (int)l->activation, l->units,
	     l->state);
	note(", queue %s, %" PRId64 " flops, %" PRId64 " values%s%s%s%s%s%s%s%s%s%s%s%s\n",
	     l->outfeed_queue ? l->outfeed_queue : "-", model_layer_flops(model, i, 2),
	     model_layer_params(model, i), l->trainable ? ", trainable" : "",
	     l->reads_inputs ? ", reads inputs" : "", l->reads_output ? ", reads output" : "",
	     l->use_bias ? ", bias" : "", l->causal_mask ? ", causal" : "",
	     l->returns_state ? ", returns state" : "", l->makes_mask ? ", makes a mask" : "",
	     l->inference ? ", inference" : "", l->final_outfeed ? ", final" : "",
	     l->half ? ", half" : "", model_layer_again(model, l) ? ", again" : "",
	     model_layer_again_in_row(model, l) ? ", again in its row" : "");
}

static void note_row(const struct model_row *row)
{
	note("row %s %s%s", row->name, row->class_name, row->any_batch ? ", any batch" : "");
	note_shape("output", &row->output);
	for (int i = 0; i < row->input_count; i++)
		note(" %d:%d", row->inputs[i], row->calls[i]);
	note("\n");
}

static void note_param(const struct model_param *p)
{
	note("%s %s of %d at %zu+%zu,", p->name, p->short_name, p->layer, p->offset, p->count);
	note_shape("shape", &p->shape);
	note(", init %d %.9g %.9g %" PRId64 ", %g %g%s%s%s%s\n", (int)p->init.kind, p->init.low,
	     p->init.high, p->init.columns, (double)p->l1, (double)p->l2,
	     p->trainable ? ", trainable" : "", p->autocast ? ", cast" : "",
	     p->half ? ", half" : "", p->bfloat16 ? ", bfloat16" : "");
}

static void note_model(const struct model *model)
{
	const struct model_part *part;

	note("%s%s, %zu weights, batch %" PRId64 ", final %d, policy %s%s", model->name,
	     model->functional ? ", functional" : "", model->weights, model->batch,
	     model_final_activation(model), model_policy_name(model_policy(model)),
	     model_input_is_rows(model) ? ", of rows" : "");
	note_shape("input", &model->input);
	note("\n");
	for (int i = 0; i < model->layer_count; i++) {
		note_layer(model, i);
		if (model_layer_looks_up(model, i, &part))
			note("looks up in %s\n", part ? part->name : "the input");
	}
	for (int i = 0; i < model->row_count; i++)
		note_row(&model->rows[i]);
	for (int i = 0; i < model->param_count; i++)
		note_param(&model->params[i]);
	for (int i = 0; i < model->part_count; i++) {
		note("%s at %" PRId64, model->parts[i].name, model->parts[i].first);
		note_shape("part", &model->parts[i].shape);
	}
	for (int i = 0; i < model->output_count; i++) {
		note("%s at %" PRId64 " under %d", model->outputs[i].name, model->outputs[i].first,
		     model->outputs[i].mask);
		note_shape("of", &model->outputs[i].shape);
	}
	note("\n");
}

uint64_t support_models_digest(void)
{
	const uint64_t now = digest;

	digest = SUPPORT_DIGEST;
	return now;
}

void support_assert_models(uint64_t wanted)
{
	const uint64_t now = support_models_digest();

	if (now != wanted)
		fail_msg("what was read of the models is now %#018" PRIx64
			 " (IPUSCOPE_TEST_DIGESTED=1 prints it)",
			 now);
}

/* ---- models from texts ----------------------------------------------------------------------- */

enum status support_model_read_at(struct model **out, const struct json_at *at,
				  const struct model_shape *input, struct err *err)
{
	static const enum model_policy policies[] = {MODEL_POLICY_MIXED,
						     MODEL_POLICY_MIXED_BFLOAT16};
	const enum status status = model_new(out, at, input, err);

	if (status == ST_OK) {
		note_model(*out);
		/* What policies make of large models takes long to print. */
		for (size_t i = 0; (*out)->layer_count < 100 && i < ARRAY_LEN(policies); i++) {
			model_set_policy(*out, policies[i]);
			note_model(*out);
		}
		model_set_policy(*out, MODEL_POLICY_TEXT);
	} else {
		note("%s\n", err->text);
	}
	return status;
}

enum status support_model_read(struct model **out, const char *text,
			       const struct model_shape *input, struct err *err)
{
	enum status status;
	struct json_at root;
	cJSON *json;

	*out = NULL;
	status = json_parse(&json, text, strlen(text), "m.json", err);
	if (status != ST_OK)
		return status;
	root = json_root("m.json", json);
	status = support_model_read_at(out, &root, input, err);
	cJSON_Delete(json);
	return status;
}

struct model *support_model(const char *text, const struct model_shape *input)
{
	struct model *model;
	struct err err;

	if (support_model_read(&model, text, input, &err) != ST_OK)
		fail_msg("%s", err.text);
	return model;
}

void support_model_no_memory(const char *text, const struct model_shape *input)
{
	struct json_at root;
	bool failed = true;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "m.json", NULL), ST_OK);
	root = json_root("m.json", json);
	for (long n = 0; failed; n++) {
		struct model *model;
		enum status status;
		struct err err;

		support_fail_alloc(n);
		status = model_new(&model, &root, input, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* A failed block may be made up for by a smaller one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_true((status == ST_OK) == !!model);
		model_free(model);
	}
	cJSON_Delete(json);
}

void support_assert_says(const char *text, const char *says)
{
	char part[256];

	while (*says) {
		size_t length = strcspn(says, "|");

		assert_true(length < sizeof(part));
		memcpy(part, says, length);
		part[length] = '\0';
		assert_contains(text, part);
		says += length + (says[length] == '|');
	}
}

void support_assert_refused(const struct support_refusal *refusal, const struct model_shape *input)
{
	struct model *model;
	struct err err = {0};
	enum status status = support_model_read(&model, refusal->text, input, &err);

	if (status != refusal->status)
		fail_msg("%s: status %d, \"%s\"", refusal->text, (int)status, err.text);
	assert_null(model);
	assert_int_equal(err.status, status);
	support_assert_says(err.text, refusal->says);
}
