/*
 * Every loss, metric, optimizer and learning-rate schedule with its options, and requests that are
 * refused: what is read of them is that of before, in tests/golden/learn.txt, which UPDATE_GOLDEN=1
 * rewrites. What they compute has its own tests, in the trainer's rooms.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "support/ipu_functions.h"
#include "support/support.h"

static FILE *out;

/* Targets of an item. */
static const struct target {
	const char *name;
	struct target_kind kind;
} targets[] = {
	{"a class of 4", {.classes = 4}},
	{"a class of 5", {.classes = 5}},
	{"4 values", {.width = 4}},
	{"1 value", {.width = 1}},
	{"1 value, weighted", {.width = 1, .weights = 1}},
	{"3 classes of 4", {.classes = 4, .width = 3}},
	{"12 values", {.width = 12}},
	{"3 classes of 4, weighted each", {.classes = 4, .width = 3, .weights = 3}},
	{"3 classes of 4, weighted wrongly", {.classes = 4, .width = 3, .weights = 2}},
	{"a class of 4 and one that is ignored", {.classes = 4, .ignores = true, .ignored = -1}},
	{"a class of 4 of which one is ignored", {.classes = 4, .ignores = true, .ignored = 2}},
};

static const struct model_output outputs[] = {
	{.name = "row", .shape = {1, {4}}},
	{.name = "one", .shape = {1, {1}}},
	{.name = "rows", .shape = {2, {3, 4}}},
	{.name = "number", .shape = {0}},
};

/* clang-format off */
/* ' stands for a quotation mark. */
static const char *const losses[] = {
	"'binary_crossentropy'", "'BinaryFocalCrossentropy'", "'categorical_crossentropy'",
	"'categorical_focal_crossentropy'", "'categorical_hinge'", "'hinge'", "'Huber'", "'kld'",
	"'logcosh'", "'mae'", "'MSE'", "'squared_hinge'", "'sparse_categorical_crossentropy'",
	"{'class_name': 'SparseCategoricalCrossentropy', 'config': {'from_logits': true, 'ignore_class': -1}}",
	"{'class_name': 'SparseCategoricalCrossentropy', 'config': {'ignore_class': 2, 'axis': -1}}",
	"{'class_name': 'CategoricalCrossentropy', 'config': {'label_smoothing': 0.25, 'reduction': 'auto'}}",
	"{'class_name': 'BinaryFocalCrossentropy', 'config': {'gamma': 3, 'alpha': 0.5, 'apply_class_balancing': true}}",
	"{'class_name': 'Huber', 'config': {'delta': 2.5, 'reduction': 'sum_over_batch_size'}}",
	"{'class_name': 'Huber', 'config': {'delta': 0}}",
	"{'class_name': 'Huber', 'config': {'reduction': 'none'}}",
	"{'class_name': 'Huber', 'config': {'axis': -1}}",
	"{'class_name': 'CategoricalCrossentropy', 'config': {'axis': 1}}",
	"{'class_name': 'CategoricalCrossentropy', 'config': {'label_smoothing': 1.5}}",
	"'mean_squared_eror'", "'x'", "3",
};
static const char *const metrics[] = {
	"'accuracy'", "'acc'", "'crossentropy'", "'ce'", "'mse'", "'BinaryAccuracy'",
	"'categorical_accuracy'", "'sparse_categorical_accuracy'", "'TopKCategoricalAccuracy'",
	"'sparse_top_k_categorical_accuracy'", "'Precision'", "'recall'", "'AUC'", "'f1_score'",
	"'MeanIoU'", "'ConfusionMatrix'", "'Perplexity'", "'acuracy'",
	"{'class_name': 'BinaryAccuracy', 'config': {'threshold': 0.25, 'name': 'own'}}",
	"{'class_name': 'TopKCategoricalAccuracy', 'config': {'k': 2}}",
	"{'class_name': 'TopKCategoricalAccuracy', 'config': {'k': 0}}",
	"{'class_name': 'Precision', 'config': {'thresholds': 0.75}}",
	"{'class_name': 'Precision', 'config': {'thresholds': [0.25]}}",
	"{'class_name': 'Precision', 'config': {'thresholds': [0.25, 0.5]}}",
	"{'class_name': 'Recall', 'config': {'class_id': 1}}",
	"{'class_name': 'AUC', 'config': {'num_thresholds': 3, 'curve': 'PR'}}",
	"{'class_name': 'AUC', 'config': {'curve': 'XY'}}",
	"{'class_name': 'AUC', 'config': {'summation_method': 'majoring'}}",
	"{'class_name': 'F1Score', 'config': {'average': 'micro', 'threshold': 0.25}}",
	"{'class_name': 'F1Score', 'config': {'average': 'weighted'}}",
	"{'class_name': 'F1Score', 'config': {'average': null}}",
	"{'class_name': 'MeanIoU', 'config': {'num_classes': 4, 'sparse_y_pred': false}}",
	"{'class_name': 'MeanIoU', 'config': {'num_classes': 4}}",
	"{'class_name': 'OneHotMeanIoU', 'config': {'num_classes': 4, 'ignore_class': 1}}",
	"{'class_name': 'OneHotMeanIoU', 'config': {'num_classes': 5}}",
	"{'class_name': 'Perplexity', 'config': {'from_logits': true, 'mask_token_id': 0}}",
	"{'class_name': 'CategoricalCrossentropy', 'config': {'name': 'ce', 'from_logits': true}}",
	"{'class_name': 'MeanSquaredError', 'config': {'nam': 'x'}}",
};
static const char *const optimizers[] = {
	"null", "'sgd'", "'Adagrad'", "'adam'", "'AdamW'", "'Lamb'", "'lion'", "'Nadam'", "'RMSprop'", "'adem'",
	"{'class_name': 'SGD', 'config': {'learning_rate': 0.5, 'momentum': 0.9, 'nesterov': true, 'decay': 0.25}}",
	"{'class_name': 'SGD', 'config': {'lr': 0.5, 'clipvalue': 1}}",
	"{'class_name': 'SGD', 'config': {'clipnorm': 1, 'weight_decay': 0.5}}",
	"{'class_name': 'SGD', 'config': {'global_clipnorm': 2, 'nesterov': true}}",
	"{'class_name': 'SGD', 'config': {'clipnorm': 1, 'clipvalue': 2}}",
	"{'class_name': 'SGD', 'config': {'momentum': 1.5}}",
	"{'class_name': 'SGD', 'config': {'learning_rate': -1}}",
	"{'class_name': 'Adam', 'config': {'amsgrad': true, 'epsilon': 0, 'beta_1': 0.5, 'beta_2': 0.75}}",
	"{'class_name': 'Adam', 'config': {'beta_1': 1}}",
	"{'class_name': 'AdamW', 'config': {'weight_decay': 0}}",
	"{'class_name': 'Lamb', 'config': {'weight_decay_rate': 0.01}}",
	"{'class_name': 'Adagrad', 'config': {'initial_accumulator_value': 0.5}}",
	"{'class_name': 'RMSprop', 'config': {'centered': true, 'rho': 0.5, 'momentum': 0.25}}",
	"{'class_name': 'RMSprop', 'config': {'centered': true}}",
	"{'class_name': 'RMSprop', 'config': {'momentum': 0.25}}",
	"{'class_name': 'Adam', 'config': {'loss_scale_factor': 1024}}",
	"{'class_name': 'Adam', 'config': {'loss_scale_factor': 0}}",
	"{'class_name': 'Adam', 'config': {'use_ema': true}}",
	"{'class_name': 'LossScaleOptimizer', 'config': {'inner_optimizer': 'adam'}}",
	"{'class_name': 'LossScaleOptimizer', 'config': {'inner_optimizer': {'class_name': 'SGD', 'config': {'momentum': 0.5}}, 'initial_scale': 64, 'dynamic_growth_steps': 3}}",
	"{'class_name': 'LossScaleOptimizer', 'config': {'inner_optimizer': 'adam', 'dynamic': false, 'initial_scale': 64}}",
	"{'class_name': 'LossScaleOptimizer', 'config': {'inner_optimizer': {'class_name': 'Adam', 'config': {'loss_scale_factor': 2}}}}",
	"{'class_name': 'LossScaleOptimizer', 'config': {}}",
#define SCHEDULE(name, config) "{'class_name': 'SGD', 'config': {'learning_rate': {'class_name': '" name "', 'config': {" config "}}}}"
	SCHEDULE("ExponentialDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'decay_rate': 0.5"),
	SCHEDULE("ExponentialDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'decay_rate': 0.5, 'staircase': true"),
	SCHEDULE("InverseTimeDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'decay_rate': 0.5"),
	SCHEDULE("InverseTimeDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'decay_rate': 0.5, 'staircase': true"),
	SCHEDULE("PiecewiseConstantDecay", "'boundaries': [2, 5], 'values': [0.5, 0.25, 0.125]"),
	SCHEDULE("PiecewiseConstantDecay", "'boundaries': [2, 5], 'values': [0.5, 0.25]"),
	SCHEDULE("PiecewiseConstantDecay", "'boundaries': [5, 2], 'values': [0.5, 0.25, 0.125]"),
	SCHEDULE("PolynomialDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'end_learning_rate': 0.25, 'power': 2"),
	SCHEDULE("PolynomialDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'cycle': true"),
	SCHEDULE("CosineDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'alpha': 0.25"),
	SCHEDULE("CosineDecay", "'initial_learning_rate': 0.5, 'decay_steps': 0"),
	SCHEDULE("CosineDecay", "'initial_learning_rate': 0.5, 'decay_steps': 4, 'warmup_steps': 5"),
	SCHEDULE("CosineDecayRestarts", "'initial_learning_rate': 0.5, 'first_decay_steps': 2, 'm_mul': 0.5"),
	SCHEDULE("CosineDecayRestarts", "'initial_learning_rate': 0.5, 'first_decay_steps': 2, 't_mul': 1, 'alpha': 0.25"),
	SCHEDULE("CosineDecayRestarts", "'initial_learning_rate': 0.5, 'first_decay_steps': 2, 't_mul': 0.5"),
	SCHEDULE("CosineDecy", ""),
};
/* clang-format on */

/* ---- what is printed ------------------------------------------------------------------------- */

static void print_error_of(const struct err *err)
{
	fprintf(out, "  %s: %s\n", status_text(err->status), err->text);
}

static void print_loss_values(const struct loss *loss)
{
	fprintf(out, "  %s (%s)%s%s%s smoothing %.6g delta %.6g gamma %.6g alpha %.6g",
		loss_name(loss), loss_class_name(loss), loss->from_logits ? " from logits" : "",
		loss->apply_class_balancing ? " balanced" : "", loss_is_error(loss) ? " error" : "",
		(double)loss->label_smoothing, loss->delta, loss->gamma, loss->alpha);
	if (loss->ignores)
		fprintf(out, " without class %lld", (long long)loss->ignore_class);
	fprintf(out, "\n");
}

/* Prints a text once for all outputs and targets in a row of which it is said: "row 0 1, one 3". */
struct said {
	char text[1200];
	size_t output;
};

static void say_of(struct said *said, const char *text, size_t output, size_t target)
{
	const bool same = strcmp(said->text, text) == 0;

	if (!same)
		fprintf(out, "%s  %s\n   ", said->text[0] ? "\n" : "", text);
	if (!same || output != said->output)
		fprintf(out, "%s %s", same ? "," : "", outputs[output].name);
	fprintf(out, " %zu", target);
	snprintf(said->text, sizeof(said->text), "%s", text);
	said->output = output;
}

static void print_loss(const struct json_at *at)
{
	struct said said = {0};
	struct loss loss;
	struct err err = {0};

	if (loss_get(&loss, at, &err) != ST_OK) {
		print_error_of(&err);
		return;
	}
	print_loss_values(&loss);
	for (size_t o = 0; o < ARRAY_LEN(outputs); o++)
		for (size_t t = 0; t < ARRAY_LEN(targets); t++) {
			err = (struct err){0};
			loss_check(&loss, &outputs[o], &targets[t].kind, &err);
			say_of(&said, err.status == ST_OK ? "fits" : err.text, o, t);
		}
	fprintf(out, "\n");
}

static void print_metric(const struct json_at *at)
{
	static const char *const works[] = {
		[METRIC_OF_ELEMENTS] = "elements",
		[METRIC_OF_GREATEST] = "greatest",
		[METRIC_OF_LOSS] = "loss",
	};
	struct said said = {0};

	for (size_t o = 0; o < ARRAY_LEN(outputs); o++)
		for (size_t t = 0; t < ARRAY_LEN(targets); t++) {
			struct metric metric;
			struct err err = {0};
			char text[512];

			if (metric_get(&metric, at, &outputs[o], &targets[t].kind, &err) != ST_OK) {
				say_of(&said, err.text, o, t);
				continue;
			}
			snprintf(text, sizeof(text),
				 "%s, kind %d, of %s, %lld states%s, threshold %.6g, k %lld, "
				 "%lld classes, average %d, %lld thresholds%s, loss %s%s %d",
				 metric.name, (int)metric.kind, works[metric_work(&metric)],
				 (long long)metric.states, metric_is_mean(&metric) ? ", mean" : "",
				 isnan(metric.threshold) ? -1.0 : (double)metric.threshold,
				 (long long)metric.k, (long long)metric.classes,
				 (int)metric.average, (long long)metric.thresholds,
				 metric.pr ? ", PR" : "", loss_name(&metric.loss),
				 metric.loss.from_logits ? " from logits" : "",
				 metric.loss.ignores ? (int)metric.loss.ignore_class : -1);
			say_of(&said, text, o, t);
		}
	fprintf(out, "\n");
}

static void print_optimizer(const struct json_at *at)
{
	const bool none = cJSON_IsNull(at->node);
	struct ipu_elements elements;
	struct optimizer o;
	struct err err = {0};

	if (optimizer_get(&o, none ? NULL : at, &err) != ST_OK) {
		print_error_of(&err);
		return;
	}
	fprintf(out,
		"  %s decay %.6g momentum %.6g rho %.6g epsilon %.6g beta_1 %.6g beta_2 %.6g "
		"accumulator %.6g weight_decay %.6g weight_decay_rate %.6g clip %.6g %.6g "
		"%.6g%s%s%s\n",
		optimizer_name(&o), o.decay, o.momentum, o.rho, o.epsilon, o.beta_1, o.beta_2,
		o.initial_accumulator_value, o.weight_decay, o.weight_decay_rate, o.clipvalue,
		o.clipnorm, o.global_clipnorm, o.nesterov ? " nesterov" : "",
		o.centered ? " centered" : "", o.amsgrad ? " amsgrad" : "");
	if (optimizer_scales_loss(&o))
		fprintf(out, "  loss scale %.6g%s, growth %.6g\n", o.loss_scale,
			o.loss_scale_dynamic ? " dynamic" : "", o.loss_scale_growth);
	fprintf(out, "  slots from %.6g:", (double)optimizer_slot_start(&o));
	for (int slot = 0; slot < optimizer_slots(&o); slot++)
		fprintf(out, " %s", optimizer_slot_name(&o, slot));
	fprintf(out, "%s%s\n  update", optimizer_needs_norms(&o) ? ", norms" : "",
		optimizer_needs_whole_norm(&o) ? ", whole norm" : "");
	elements = optimizer_elements(&o, 100);
	fprintf(out, " of %lld*%lld", (long long)elements.count, (long long)elements.operands);
	for (int f = 0; f < IPU_FUNCTIONS; f++)
		if (elements.times[f])
			fprintf(out, " %s=%d", ipu_function_names[f], elements.times[f]);
	fprintf(out,
		"\n  %s:", o.learning_rate.ops ? schedule_name(&o.learning_rate) : "constant rate");
	for (int64_t update = 0; update < 10; update++)
		fprintf(out, " %.9g", optimizer_rate(&o, update));
	fprintf(out, "\n");
}

static void print_each(const char *what, const char *const *texts, size_t count,
		       void (*print)(const struct json_at *at))
{
	for (size_t i = 0; i < count; i++) {
		char *text = mem_printf("%s", texts[i]);
		struct json_at root;
		cJSON *json;

		assert_non_null(text);
		for (char *c = text; *c; c++)
			if (*c == '\'')
				*c = '"';
		assert_int_equal(json_parse(&json, text, strlen(text), "run.json", NULL), ST_OK);
		root = json_root("run.json", json);
		fprintf(out, "%s %s\n", what, text);
		print(&root);
		cJSON_Delete(json);
		mem_free(text);
	}
}

static void print_all(FILE *to)
{
	out = to;
	for (size_t t = 0; t < ARRAY_LEN(targets); t++)
		fprintf(out, "target %zu: %s\n", t, targets[t].name);
	print_each("loss", losses, ARRAY_LEN(losses), print_loss);
	print_each("metric", metrics, ARRAY_LEN(metrics), print_metric);
	print_each("optimizer", optimizers, ARRAY_LEN(optimizers), print_optimizer);
}

static void test_nothing_that_is_learned_with_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("learn.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_that_is_learned_with_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
