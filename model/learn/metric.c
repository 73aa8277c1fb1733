/*
 * Metrics: the table, reading, and checks against outputs and targets. No state except the
 * memory of a list.
 */
#include "model/learn/metric.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/model_config.h"

enum metric_targets {
	METRIC_VALUES,  /* of the output's size, or one for all outputs of an item */
	METRIC_SAME,    /* of the output's size */
	METRIC_ONE_HOT, /* the same, as one-hot classes */
	METRIC_SPARSE,  /* one class number per row */
	METRIC_CLASSES  /* one-hot or sparse */
};

struct metric_ops {
	const char *class_name, *name;
	const char *other_names[2]; /* that Keras accepts, or NULL */
	enum metric_targets targets;
	struct model_options options; /* beyond those of all metrics */
};

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct metric, member)

/* clang-format off */
#define FROM_LOGITS {"from_logits", MODEL_BOOL, AT(loss.from_logits)}
static const struct model_option metric_threshold[] = {{"threshold", .rule = MODEL_ANY}};
static const struct model_option metric_k[] = {
	{"k", MODEL_INT, AT(k), .strict = true, .least = 1, .most = INT32_MAX},
};
static const struct model_option metric_positives[] = {
	{"thresholds", .rule = MODEL_ANY},
	{"top_k", .rule = MODEL_NULL},
	{"class_id", .rule = MODEL_NULL},
};
static const struct model_option metric_auc[] = {
	{"num_thresholds", MODEL_INT, AT(thresholds), .least = 2, .most = 100000},
	{"curve", .rule = MODEL_ANY},
	{"summation_method", .rule = MODEL_ANY},
	{"thresholds", .rule = MODEL_NULL},
	{"multi_label", .rule = MODEL_FALSE},
	{"num_labels", .rule = MODEL_NULL},
	{"label_weights", .rule = MODEL_NULL},
	{"from_logits", .rule = MODEL_FALSE},
};
static const struct model_option metric_f1[] = {{"average", .rule = MODEL_ANY}, {"threshold", .rule = MODEL_ANY}};
static const struct model_option metric_iou[] = {
	{"num_classes", MODEL_INT, AT(classes), .least = 1, .most = 4096},
	{"ignore_class", .rule = MODEL_ANY},
	{"sparse_y_true", .rule = MODEL_ANY},
	{"sparse_y_pred", .rule = MODEL_ANY},
	{"axis", .rule = MODEL_ANY},
};
static const struct model_option metric_perplexity[] = {FROM_LOGITS, {"mask_token_id", .rule = MODEL_ANY}};
/* clang-format on */

#define OPTIONS(own) .options = MODEL_OPTIONS(own)

static const struct metric_ops metric_rows[METRIC_KINDS] = {
	[METRIC_BINARY] = {"BinaryAccuracy", "binary_accuracy", OPTIONS(metric_threshold)},
	[METRIC_CATEGORICAL] = {"CategoricalAccuracy", "categorical_accuracy",
				.targets = METRIC_ONE_HOT},
	[METRIC_SPARSE_CATEGORICAL] = {"SparseCategoricalAccuracy", "sparse_categorical_accuracy",
				       .targets = METRIC_SPARSE},
	[METRIC_TOP_K] = {"TopKCategoricalAccuracy", "top_k_categorical_accuracy",
			  .targets = METRIC_ONE_HOT, OPTIONS(metric_k)},
	[METRIC_SPARSE_TOP_K] = {"SparseTopKCategoricalAccuracy",
				 "sparse_top_k_categorical_accuracy", .targets = METRIC_SPARSE,
				 OPTIONS(metric_k)},
	[METRIC_PRECISION] = {"Precision", "precision", .targets = METRIC_SAME,
			      OPTIONS(metric_positives)},
	[METRIC_RECALL] = {"Recall", "recall", .targets = METRIC_SAME, OPTIONS(metric_positives)},
	[METRIC_AUC] = {"AUC", "auc", .targets = METRIC_SAME, OPTIONS(metric_auc)},
	[METRIC_F1] = {"F1Score", "f1_score", .targets = METRIC_CLASSES, OPTIONS(metric_f1)},
	[METRIC_MEAN_IOU] = {"MeanIoU", "mean_io_u", .targets = METRIC_CLASSES,
			     OPTIONS(metric_iou)},
	[METRIC_ONE_HOT_MEAN_IOU] = {"OneHotMeanIoU", "one_hot_mean_io_u",
				     .targets = METRIC_CLASSES, OPTIONS(metric_iou)},
	[METRIC_CONFUSION] = {"ConfusionMatrix", "confusion_matrix", .targets = METRIC_CLASSES},
	[METRIC_PERPLEXITY] = {"Perplexity", "perplexity", .targets = METRIC_SPARSE,
			       OPTIONS(metric_perplexity)},
};

/* Names that are resolved by the shapes. */
static const char *const metric_accuracy[] = {"accuracy", "acc"};
static const char *const metric_crossentropy[] = {"crossentropy", "ce"};

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && !strcmp(names[i], name))
			return true;
	return false;
}

/* The row named @name, or -1. */
static int metric_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(metric_rows); i++) {
		const struct metric_ops *row = &metric_rows[i];

		if (!strcmp(row->class_name, name) || !strcmp(row->name, name) ||
		    is_among(name, row->other_names, ARRAY_LEN(row->other_names)))
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

/* The error lists the function names only, but suggests a class if the name is near one. */
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

/* ---- checks against outputs and targets ------------------------------------------------------ */

/* Keras's rule for "accuracy" and "crossentropy". */
static enum metric_kind metric_resolve(const struct model_output *output,
				       const struct target_kind *kind)
{
	const struct model_shape *shape = &output->shape;

	if (shape->ndim && shape->dim[shape->ndim - 1] == 1)
		return METRIC_BINARY;
	return targets_per_item(kind) == loss_rows_of(output).positions ? METRIC_SPARSE_CATEGORICAL
									: METRIC_CATEGORICAL;
}

static enum status metric_check(const struct metric *metric, const struct json_at *at,
				const struct model_output *output, const struct target_kind *kind,
				struct err *err)
{
	const struct model_shape *shape = &output->shape;
	const struct loss_rows rows = loss_rows_of(output);
	const int64_t width = targets_per_item(kind);
	const bool size = width == rows.positions * rows.width, each = width == rows.positions;
	const bool same = size && !targets_are_classes(kind, rows.positions);
	const bool fits[] = {
		[METRIC_VALUES] = size || (width == 1 && shape->ndim == 1),
		[METRIC_SAME] = size,
		[METRIC_ONE_HOT] = same,
		[METRIC_SPARSE] = each,
		[METRIC_CLASSES] = (same && rows.width > 1) || each,
	};
	const enum metric_targets targets = metric_ops(metric)->targets;
	char text[192];

	if (fits[targets] && (metric->kind != METRIC_F1 || shape->ndim == 1))
		return ST_OK;
	if (targets == METRIC_ONE_HOT && targets_are_classes(kind, rows.positions))
		return json_fail(at, err,
				 "the metric %s needs values, but the data's targets are class "
				 "numbers: set data.one_hot to true, or use sparse_%s",
				 metric_ops(metric)->name, metric_ops(metric)->name);
	model_shape_text(shape, 0, text, sizeof(text));
	return json_fail(at, err,
			 "the metric %s does not fit the model's output %s and data with %lld "
			 "target%s for each item",
			 metric_ops(metric)->name, text, (long long)width, width == 1 ? "" : "s");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The index of the text at @key among @known; if it is absent or null, @fallback. */
static int metric_choice(const struct json_at *config, const char *key, const char *const *known,
			 size_t count, int fallback, struct err *err)
{
	size_t choice = (size_t)fallback;
	struct json_at here;

	if (model_option_at(config, key, &here, err))
		json_choice(&here, key, known, count, &choice, err);
	return (int)choice;
}

/* Read a number, or a list of one. */
static void metric_read_threshold(const struct json_at *config, const char *key, float *out,
				  struct err *err)
{
	struct json_at here, item;
	double value = (double)*out;

	if (!model_option_at(config, key, &here, err))
		return;
	if (cJSON_IsArray(here.node) && json_count(&here) == 1 && json_item(&here, 0, &item))
		here = item;
	json_real(&here, &value, err);
	*out = (float)value;
}

static void metric_config(struct metric *out, const struct json_at *config, struct err *err)
{
	static const struct model_option options[] = {{"name", .rule = MODEL_ANY},
						      {"dtype", .rule = MODEL_FLOAT32}};
	const struct model_options *own = &metric_ops(out)->options;
	static const char *const averages[] = {"macro", "micro", "weighted"};
	static const char *const curves[] = {"ROC", "PR"}, *const sums[] = {"interpolation"};
	struct json_at here;
	bool sparse = out->kind == METRIC_MEAN_IOU;

	model_config_check(config, own->rows, own->count, options, ARRAY_LEN(options), err);
	model_config_read(config, own, out, NULL, err);
	metric_read_threshold(config, "threshold", &out->threshold, err);
	metric_read_threshold(config, "thresholds", &out->threshold, err);

	/* The options of AUC, F1Score and the MeanIoUs. */
	out->pr = metric_choice(config, "curve", curves, ARRAY_LEN(curves), 0, err) == 1;
	metric_choice(config, "summation_method", sums, ARRAY_LEN(sums), 0, err);
	if (out->kind == METRIC_F1 && !model_option_at(config, "average", &here, err))
		model_config_unsupported(config, err,
					 "not supported: F1Score without \"average\" is a list of "
					 "numbers: give \"macro\", \"micro\" or \"weighted\"");
	out->average = (enum metric_average)metric_choice(config, "average", averages,
							  ARRAY_LEN(averages), METRIC_MACRO, err);
	model_option_bool(config, "sparse_y_pred", &sparse, err);
	if (sparse && !err_stuck(err))
		model_config_unsupported(config, err,
					 "not supported: predictions are the greatest output here: "
					 "set sparse_y_pred to false, or use OneHotMeanIoU");

	loss_read_ignored(&out->loss, config,
			  out->kind == METRIC_PERPLEXITY ? "mask_token_id" : "ignore_class", err);
}

/* Limit: until they are added up, each micro-batch of an execution has separate counts. */
#define CONFUSION_CLASSES 128

/* Set what follows from the shapes: the classes and the number of states. */
static enum status metric_size(struct metric *out, const struct json_at *at,
			       const struct model_output *output, struct err *err)
{
	const int64_t width = loss_rows_of(output).width;

	if (out->kind == METRIC_F1)
		out->classes = width;
	if (out->kind == METRIC_MEAN_IOU || out->kind == METRIC_ONE_HOT_MEAN_IOU) {
		if (out->classes != width)
			return json_fail(at, err,
					 "num_classes must be %lld, as many as the model has "
					 "outputs, not %lld",
					 (long long)width, (long long)out->classes);
		out->states = width * width;
	} else if (out->kind == METRIC_CONFUSION) {
		if (width > CONFUSION_CLASSES)
			return json_fail(at, err,
					 "a confusion matrix of %lld classes is too large: at most "
					 "%d",
					 (long long)width, CONFUSION_CLASSES);
		out->classes = width;
		out->states = width * width;
	} else if (out->kind == METRIC_F1) {
		out->states = 3 * width;
	} else if (out->kind == METRIC_AUC) {
		out->states = 2 * (out->thresholds + 1);
	} else {
		out->states = metric_is_mean(out) || out->kind == METRIC_PERPLEXITY ? 2 : 3;
	}
	return ST_OK;
}

/* Set the name to show: that of the config; otherwise @given, or @name if @given is the class. */
static void metric_name(struct metric *out, const struct json_at *at, const char *given,
			const char *class_name, const char *name, struct err *err)
{
	struct json_at config;

	out->name = !strcmp(given, class_name) ? name : given;
	if (cJSON_IsObject(at->node) && json_child(at, "config", &config))
		model_option_text(&config, "name", &out->name, err);
}

/* Prefix the error of a loss with the metric's position. */
static enum status prefix_position(const struct json_at *at, struct err *err)
{
	char path[512];

	json_path(at, path, sizeof(path));
	return err_prefix(err, "%s: %s", at->file, path);
}

static enum status metric_get_loss(struct metric *out, const struct json_at *at, const char *given,
				   const struct model_output *output,
				   const struct target_kind *kind, struct err *err)
{
	if (loss_get(&out->loss, at, err) == ST_OK)
		metric_name(out, at, given, loss_class_name(&out->loss), loss_name(&out->loss),
			    err);
	if (!err_stuck(err) && loss_check(&out->loss, output, kind, err) != ST_OK)
		prefix_position(at, err);
	return err->status;
}

/* Resolve "crossentropy" by the shapes, and read it as a loss. */
static enum status metric_get_crossentropy(struct metric *out, const struct json_at *at,
					   const char *given, const struct model_output *output,
					   const struct target_kind *kind, struct err *err)
{
	static const char *const names[] = {
		[METRIC_BINARY] = "binary_crossentropy",
		[METRIC_CATEGORICAL] = "categorical_crossentropy",
		[METRIC_SPARSE_CATEGORICAL] = "sparse_categorical_crossentropy",
	};
	const cJSON text = {.type = cJSON_String,
			    .valuestring = (char *)(uintptr_t)names[metric_resolve(output, kind)]};
	struct json_at here = *at;

	here.node = &text;
	return metric_get_loss(out, &here, given, output, kind, err);
}

static bool metric_is_accuracy(const char *name)
{
	return is_among(name, metric_accuracy, ARRAY_LEN(metric_accuracy));
}

static bool metric_is_crossentropy(const char *name)
{
	return is_among(name, metric_crossentropy, ARRAY_LEN(metric_crossentropy));
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

enum status metric_get(struct metric *out, const struct json_at *at,
		       const struct model_output *output, const struct target_kind *kind,
		       struct err *err)
{
	struct json_at config;
	const char *name;
	bool config_here;
	struct err own;
	int found;

	err = err_start(err, &own);
	*out = (struct metric){
		.kind = METRIC_LOSS, .threshold = 0.5f, .k = 5, .thresholds = 200, .states = 2};
	if (model_config_object(at, &name, &config, &config_here, err) != ST_OK)
		return err->status;
	if (loss_known(name))
		return metric_get_loss(out, at, name, output, kind, err);
	if (metric_is_crossentropy(name))
		return metric_get_crossentropy(out, at, name, output, kind, err);
	found = metric_is_accuracy(name) ? (int)metric_resolve(output, kind) : metric_find(name);
	if (found < 0)
		return metric_unknown(at, name, err);
	out->kind = (enum metric_kind)found;

	metric_name(out, at, name, metric_ops(out)->class_name, metric_ops(out)->name, err);
	if (out->kind == METRIC_F1)
		out->threshold = NAN;
	if (out->kind == METRIC_PERPLEXITY)
		out->loss = loss_of(LOSS_SPARSE_CATEGORICAL_CROSSENTROPY);
	if (config_here) {
		metric_config(out, &config, err);
	} else {
		/* F1Score and the MeanIoUs have required options. */
		if (out->kind == METRIC_F1)
			json_fail(at, err,
				  "F1Score needs its \"average\": {\"class_name\": \"F1Score\", "
				  "\"config\": {\"average\": \"macro\"}}");
		else if (out->kind == METRIC_MEAN_IOU || out->kind == METRIC_ONE_HOT_MEAN_IOU)
			json_fail(
				at, err,
				"%s needs its \"num_classes\": {\"class_name\": \"OneHotMeanIoU\", "
				"\"config\": {\"num_classes\": 10}}",
				metric_ops(out)->class_name);
	}
	if (err_stuck(err) || metric_check(out, at, output, kind, err) != ST_OK)
		return err->status;
	if (out->kind == METRIC_PERPLEXITY &&
	    loss_check_ignored(&out->loss, output, kind, err) != ST_OK)
		return prefix_position(at, err);
	return metric_size(out, at, output, err);
}

/* Make room for @count more; false: out of memory. */
static bool metric_list_grow(struct metric_list *list, int count)
{
	struct metric *items =
		mem_resize(list->items, (size_t)(list->count + count), sizeof(*items));

	list->items = items ? items : list->items;
	return items;
}

/* With several outputs, the name is prefixed with the output's. */
static void metric_list_append(struct metric_list *list, struct metric *metric,
			       const struct model *model, int output, struct err *err)
{
	struct str name = {0};

	metric->output = output;
	if (model->output_count > 1) {
		str_addf(&name, "%s_%s", model->outputs[output].name, metric->name);
		if (name.failed)
			err_nomem(err);
		metric->name = metric->own = name.text;
	}
	metric->first_state = list->states;
	list->states += metric->states;
	list->count++;
}

static bool metric_list_has(const struct metric_list *list, const char *name)
{
	bool has = !strcmp(name, "loss");

	for (int i = 0; i < list->count; i++)
		has = has || !strcmp(list->items[i].name, name);
	return has;
}

enum status metric_list_add(struct metric_list *list, const struct json_at *at, bool weighted,
			    const struct model *model, int output, const struct target_kind *kind,
			    struct err *err)
{
	const bool array = at && cJSON_IsArray(at->node);
	const int count = array ? json_count(at) : at && !json_is_null(at);
	struct json_at here = {0};
	struct err own;

	err = err_start(err, &own);
	if (!err_stuck(err) && count && !metric_list_grow(list, count))
		err_nomem(err);
	for (int n = 0; n < count && !err_stuck(err); n++) {
		struct metric *metric = &list->items[list->count];
		struct metric_list before = *list;

		if (array)
			json_next(at, &here);
		else
			here = *at;
		if (metric_get(metric, &here, &model->outputs[output], kind, err) == ST_OK)
			metric_list_append(list, metric, model, output, err);
		metric->weighted = weighted;
		if (!err_stuck(err) && metric_list_has(&before, metric->name))
			json_fail(&here, err,
				  "the name \"%s\" is taken: give another in \"config\"",
				  metric->name);
	}
	if (err_stuck(err))
		metric_list_free(list);
	return err->status;
}

enum status metric_list_add_loss(struct metric_list *list, const struct loss *loss,
				 const struct model *model, int output, struct err *err)
{
	struct err own;

	err = err_start(err, &own);
	if (!metric_list_grow(list, 1)) {
		err_nomem(err);
	} else {
		struct metric *metric = &list->items[list->count];

		*metric = (struct metric){
			.kind = METRIC_OUTPUT_LOSS, .loss = *loss, .name = "loss", .states = 2};
		metric_list_append(list, metric, model, output, err);
	}
	if (err_stuck(err))
		metric_list_free(list);
	return err->status;
}

bool metric_is_mean(const struct metric *metric)
{
	return metric->kind >= METRIC_LOSS || metric->kind < METRIC_PRECISION;
}

enum metric_work metric_work(const struct metric *metric)
{
	if (metric->kind >= METRIC_LOSS || metric->kind == METRIC_PERPLEXITY)
		return METRIC_OF_LOSS;
	return metric_ops(metric)->targets <= METRIC_SAME ? METRIC_OF_ELEMENTS : METRIC_OF_GREATEST;
}

void metric_list_free(struct metric_list *list)
{
	for (int i = 0; i < list->count; i++)
		mem_free(list->items[i].own);
	mem_free(list->items);
	*list = (struct metric_list){0};
}
