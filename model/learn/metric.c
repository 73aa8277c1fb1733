/*
 * Metrics: what each is, and what it fits. No state but the list's own memory.
 */
#include "model/learn/metric.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/model_config.h"

enum metric_targets {
	METRIC_VALUES,  /* of the output's size, or one for all outputs */
	METRIC_ONE_HOT, /* of the output's size */
	METRIC_SPARSE   /* one for each item: the class */
};

struct metric_ops {
	const char *class_name, *name;
	const char *other_names[2]; /* that Keras accepts, or NULL */
	enum metric_targets targets;
	const struct model_option *options; /* beyond those of all metrics */
	size_t option_count;
};

/* ---- the table ------------------------------------------------------------------------------- */

static const struct model_option metric_threshold[] = {{"threshold", MODEL_ANY}};
static const struct model_option metric_k[] = {{"k", MODEL_ANY}};

static const struct metric_ops metric_rows[METRIC_KINDS] = {
	[METRIC_BINARY] = {.class_name = "BinaryAccuracy",
			   .name = "binary_accuracy",
			   .options = metric_threshold,
			   .option_count = ARRAY_LEN(metric_threshold)},
	[METRIC_CATEGORICAL] = {.class_name = "CategoricalAccuracy",
				.name = "categorical_accuracy",
				.targets = METRIC_ONE_HOT},
	[METRIC_SPARSE_CATEGORICAL] = {.class_name = "SparseCategoricalAccuracy",
				       .name = "sparse_categorical_accuracy",
				       .targets = METRIC_SPARSE},
	[METRIC_TOP_K] = {.class_name = "TopKCategoricalAccuracy",
			  .name = "top_k_categorical_accuracy",
			  .targets = METRIC_ONE_HOT,
			  .options = metric_k,
			  .option_count = ARRAY_LEN(metric_k)},
	[METRIC_SPARSE_TOP_K] = {.class_name = "SparseTopKCategoricalAccuracy",
				 .name = "sparse_top_k_categorical_accuracy",
				 .targets = METRIC_SPARSE,
				 .options = metric_k,
				 .option_count = ARRAY_LEN(metric_k)},
};

/* Those that are resolved by the shapes. Losses are metrics too. */
static const char *const metric_accuracy[] = {"accuracy", "acc"};
static const char *const metric_crossentropy[] = {"crossentropy", "ce"};

static bool metric_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && !strcmp(names[i], name))
			return true;
	return false;
}

/* -1: none is called so. */
static int metric_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(metric_rows); i++) {
		const struct metric_ops *row = &metric_rows[i];

		if (!strcmp(row->class_name, name) || !strcmp(row->name, name) ||
		    metric_among(name, row->other_names, ARRAY_LEN(row->other_names)))
			return (int)i;
	}
	return -1;
}

static const struct metric_ops *metric_ops(const struct metric *metric)
{
	return &metric_rows[metric->kind];
}

const char *metric_kind_name(enum metric_kind kind)
{
	return metric_rows[kind].name;
}

const char *metric_kind_class(enum metric_kind kind)
{
	return metric_rows[kind].class_name;
}

/* The list is of the functions' names; a class that is misspelt is found all the same. */
static enum status metric_unknown(const struct json_at *at, const char *name, struct err *err)
{
	enum {
		NAMES = 1 + METRIC_KINDS + LOSS_KINDS
	};
	const char *known[2 * NAMES];
	int count = 0;

	known[count++] = metric_accuracy[0];
	known[NAMES] = metric_accuracy[1];
	for (int i = 0; i < METRIC_KINDS; i++, count++) {
		known[count] = metric_rows[i].name;
		known[NAMES + count] = metric_rows[i].class_name;
	}
	for (int i = 0; i < LOSS_KINDS; i++, count++) {
		const struct loss loss = {.kind = (enum loss_kind)i};

		known[count] = loss_name(&loss);
		known[NAMES + count] = loss_class_name(&loss);
	}
	return json_unknown(at, "metric", name, known,
			    str_nearest(name, known, ARRAY_LEN(known)) ? ARRAY_LEN(known) : NAMES,
			    err);
}

/* ---- fitting --------------------------------------------------------------------------------- */

static const struct model_shape *metric_output(const struct model *model)
{
	return &model->layers[model->layer_count - 1].output;
}

/* Keras's rule for "accuracy" and "crossentropy". */
static enum metric_kind metric_resolve(const struct model *model, const struct target_kind *kind)
{
	const struct model_shape *output = metric_output(model);

	if (output->ndim && output->dim[output->ndim - 1] == 1)
		return METRIC_BINARY;
	return kind->classes || kind->width == 1 ? METRIC_SPARSE_CATEGORICAL : METRIC_CATEGORICAL;
}

static enum status metric_check(const struct metric *metric, const struct json_at *at,
				const struct model *model, const struct target_kind *kind,
				struct err *err)
{
	const struct model_shape *output = metric_output(model);
	int64_t width = kind->classes ? 1 : kind->width;
	bool one = width == 1, same = !kind->classes && width == model_shape_count(output);
	char text[192];

	if (metric_ops(metric)->targets == METRIC_VALUES
		    ? same || (one && output->ndim == 1)
		    : output->ndim == 1 &&
			      (metric_ops(metric)->targets == METRIC_SPARSE ? one : same))
		return ST_OK;
	if (metric_ops(metric)->targets == METRIC_ONE_HOT && kind->classes)
		return json_fail(at, err,
				 "the metric %s needs values, but the data's targets are class "
				 "numbers: set data.one_hot to true, or use sparse_%s",
				 metric_ops(metric)->name, metric_ops(metric)->name);
	model_shape_text(output, 0, text, sizeof(text));
	return json_fail(at, err,
			 "the metric %s does not fit the model's output %s and data with %lld "
			 "target%s for each item",
			 metric_ops(metric)->name, text, (long long)width, one ? "" : "s");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void metric_config(struct metric *out, const struct json_at *config, struct err *err)
{
	static const struct model_option options[] = {{"name", MODEL_ANY},
						      {"dtype", MODEL_FLOAT32}};
	struct json_at here;
	double threshold = 0.5;

	model_config_check(config, metric_ops(out)->options, metric_ops(out)->option_count, options,
			   ARRAY_LEN(options), err);
	if (model_option_given(config, "k", &here, err))
		json_int(&here, 1, INT32_MAX, &out->k, err);
	if (model_option_given(config, "threshold", &here, err))
		json_real(&here, &threshold, err);
	out->threshold = (float)threshold;
}

/* A name as shown: the config's, else that of a function as it was given, else the class's. */
static void metric_name(struct metric *out, const struct json_at *at, const char *given,
			const char *class_name, const char *name, struct err *err)
{
	struct json_at config;

	out->name = !strcmp(given, class_name) ? name : given;
	if (cJSON_IsObject(at->node) && json_child(at, "config", &config))
		model_option_text(&config, "name", &out->name, err);
}

static enum status metric_get_loss(struct metric *out, const struct json_at *at, const char *given,
				   const struct model *model, const struct target_kind *kind,
				   struct err *err)
{
	char path[512];

	if (loss_get(&out->loss, at, err) == ST_OK)
		metric_name(out, at, given, loss_class_name(&out->loss), loss_name(&out->loss),
			    err);
	if (!err_stuck(err) && loss_check(&out->loss, model, kind, err) != ST_OK) {
		json_path(at, path, sizeof(path));
		err_prefix(err, "%s: %s", at->file, path);
	}
	return err->status;
}

/* Crossentropy by the shapes: the loss of the same row. */
static enum status metric_get_crossentropy(struct metric *out, const struct json_at *at,
					   const char *given, const struct model *model,
					   const struct target_kind *kind, struct err *err)
{
	static const char *const names[] = {
		[METRIC_BINARY] = "binary_crossentropy",
		[METRIC_CATEGORICAL] = "categorical_crossentropy",
		[METRIC_SPARSE_CATEGORICAL] = "sparse_categorical_crossentropy",
	};
	const cJSON text = {.type = cJSON_String,
			    .valuestring = (char *)(uintptr_t)names[metric_resolve(model, kind)]};
	struct json_at here = *at;

	here.node = &text;
	return metric_get_loss(out, &here, given, model, kind, err);
}

static bool metric_is_accuracy(const char *name)
{
	return metric_among(name, metric_accuracy, ARRAY_LEN(metric_accuracy));
}

static bool metric_is_crossentropy(const char *name)
{
	return metric_among(name, metric_crossentropy, ARRAY_LEN(metric_crossentropy));
}

enum status metric_check_name(const struct json_at *at, struct err *err)
{
	struct json_at config;
	const char *name;
	bool config_here;
	enum status status = model_config_object(at, &name, &config, &config_here, err);

	if (status != ST_OK || metric_is_accuracy(name) || metric_is_crossentropy(name) ||
	    loss_known(name) || metric_find(name) >= 0)
		return status;
	return metric_unknown(at, name, err);
}

enum status metric_get(struct metric *out, const struct json_at *at, const struct model *model,
		       const struct target_kind *kind, struct err *err)
{
	struct json_at config;
	const char *name;
	bool config_here;
	struct err own;
	int found;

	err = err_start(err, &own);
	*out = (struct metric){.kind = METRIC_LOSS, .threshold = 0.5f, .k = 5};
	if (model_config_object(at, &name, &config, &config_here, err) != ST_OK)
		return err->status;
	if (loss_known(name))
		return metric_get_loss(out, at, name, model, kind, err);
	if (metric_is_crossentropy(name))
		return metric_get_crossentropy(out, at, name, model, kind, err);
	found = metric_is_accuracy(name) ? (int)metric_resolve(model, kind) : metric_find(name);
	if (found < 0)
		return metric_unknown(at, name, err);
	out->kind = (enum metric_kind)found;

	metric_name(out, at, name, metric_ops(out)->class_name, metric_ops(out)->name, err);
	if (config_here)
		metric_config(out, &config, err);
	return err_stuck(err) ? err->status : metric_check(out, at, model, kind, err);
}

enum status metric_list_new(struct metric_list *out, const struct json_at *at,
			    const struct model *model, const struct target_kind *kind,
			    struct err *err)
{
	struct json_at here;
	struct err own;

	err = err_start(err, &own);
	*out = (struct metric_list){0};
	if (!at || json_is_null(at) || json_array(at, err) != ST_OK || !json_count(at))
		return err->status;
	out->items = mem_calloc((size_t)json_count(at), sizeof(*out->items));
	if (!out->items)
		return err_nomem(err);
	while (!err_stuck(err) && json_item(at, out->count, &here)) {
		const struct metric *metric = &out->items[out->count];
		bool taken = false;

		if (metric_get(&out->items[out->count], &here, model, kind, err) == ST_OK)
			taken = !strcmp(metric->name, "loss");
		for (int i = 0; !err_stuck(err) && i < out->count; i++)
			taken = taken || !strcmp(out->items[i].name, metric->name);
		if (taken)
			json_fail(&here, err,
				  "the name \"%s\" is taken: give another in \"config\"",
				  metric->name);
		out->count++;
	}
	if (err_stuck(err))
		metric_list_free(out);
	return err->status;
}

enum metric_work metric_work(const struct metric *metric)
{
	if (metric->kind == METRIC_LOSS)
		return METRIC_OF_LOSS;
	return metric_ops(metric)->targets == METRIC_VALUES ? METRIC_OF_ELEMENTS
							    : METRIC_OF_GREATEST;
}

void metric_list_free(struct metric_list *list)
{
	mem_free(list->items);
	*list = (struct metric_list){0};
}
