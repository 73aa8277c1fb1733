/*
 * Metrics: Keras's rules by hand, how names are resolved, ties and bad numbers.
 */
#include "model/learn/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/learn/measure_run.h"

#define DENSE(units)                                                                               \
	"[{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": " units "}}]"
#define METRIC(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"

static const struct target_kind classes = {.classes = 4}, values = {.width = 4}, one = {.width = 1};

/* What a test reads, for as long as names point into it. */
struct reading {
	cJSON *json;
	struct math_model m;
	struct metric metric;
};

static enum status open_reading(struct reading *r, const char *text, const char *layers,
				const struct target_kind *kind, struct err *err)
{
	struct json_at root;

	assert_int_equal(json_parse(&r->json, text, strlen(text), "m.json", NULL), ST_OK);
	math_model_open(&r->m, layers, 1, (int64_t[]){3});
	root = json_root("m.json", r->json);
	return metric_get(&r->metric, &root, r->m.model->outputs, kind, err);
}

static void close_reading(struct reading *r)
{
	math_model_close(&r->m);
	cJSON_Delete(r->json);
}

static double measure(const char *text, const struct target_kind *kind, const float *outputs,
		      const struct targets *targets, int64_t batch, int64_t width)
{
	double states[2] = {0.0, 10.0};
	struct reading r;
	struct err err;

	if (open_reading(&r, text, width == 1 ? DENSE("1") : DENSE("4"), kind, &err) != ST_OK)
		fail_msg("%s", err.text);
	metric_run(&r.metric, outputs, targets, batch, width, states);
	assert_int_equal(r.metric.states, 2);
	assert_close(states[1], (double)(10 + batch), 0.0);
	close_reading(&r);
	return states[0];
}

static const float outputs[] = {
	0.1f, 0.4f, 0.3f, 0.2f, /* 1 */
	0.7f, 0.1f, 0.1f, 0.1f, /* 0 */
	0.3f, 0.3f, 0.3f, 0.1f, /* the first of equals: 0 */
};
static const int32_t labels[] = {1, 2, 1};
static const float vectors[] = {0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0};
static const float singles[] = {1, 2, 1};

static const struct targets by_class = {.classes = labels};
static const struct targets by_vector = {.values = vectors, .width = 4};
static const struct targets by_single = {.values = singles, .width = 1};

static void test_accuracy_counts_the_first_greatest(void **state)
{
	(void)state;
	assert_close(measure("\"accuracy\"", &classes, outputs, &by_class, 3, 4), 1.0, 0.0);
	assert_close(measure("\"sparse_categorical_accuracy\"", &one, outputs, &by_single, 3, 4),
		     1.0, 0.0);
	assert_close(measure("\"CategoricalAccuracy\"", &values, outputs, &by_vector, 3, 4), 1.0,
		     0.0);
}

static void test_the_greatest_passes_nan_over(void **state)
{
	const float bad[] = {NAN, 0.5f, -INFINITY, 0.25f, NAN, NAN, NAN, NAN};
	const int32_t right[] = {1, 0};
	const struct targets targets = {.classes = right};

	(void)state;
	assert_close(measure("\"acc\"", &classes, bad, &targets, 2, 4), 2.0, 0.0);
}

static void test_top_k_counts_ties_in_favour(void **state)
{
	static const struct {
		const char *k;
		double right;
	} rows[] = {{"1", 2.0}, {"2", 3.0}, {"4", 3.0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[128];

		snprintf(text, sizeof(text), METRIC("SparseTopKCategoricalAccuracy", "\"k\": %s"),
			 rows[i].k);
		assert_close(measure(text, &classes, outputs, &by_class, 3, 4), rows[i].right, 0.0);
		snprintf(text, sizeof(text), METRIC("TopKCategoricalAccuracy", "\"k\": %s"),
			 rows[i].k);
		assert_close(measure(text, &values, outputs, &by_vector, 3, 4), rows[i].right, 0.0);
	}
	/* k is 5 by default: of 4 all are in */
	assert_close(measure("\"sparse_top_k_categorical_accuracy\"", &classes, outputs, &by_class,
			     3, 4),
		     3.0, 0.0);
}

static void test_top_k_of_bad_numbers_is_false(void **state)
{
	const float bad[] = {
		NAN,  0.5f, 0.1f, 0.1f,     /* the class's own */
		0.5f, 0.1f, NAN,  0.1f,     /* one that is looked at */
		0.9f, 0.8f, 0.7f, INFINITY, /* two above: looking stops before it */
		0.5f, 0.1f, 0.1f, 0.1f,
	};
	const int32_t right[] = {0, 0, 2, 0};
	const struct targets targets = {.classes = right};

	(void)state;
	assert_close(measure(METRIC("SparseTopKCategoricalAccuracy", "\"k\": 1"), &classes, bad,
			     &targets, 4, 4),
		     1.0, 0.0);
}

static void test_binary_accuracy_is_above_the_threshold(void **state)
{
	const float p[] = {0.5f, 0.6f, 0.2f, NAN}, y[] = {0, 1, 1, 0};
	const int32_t numbers[] = {0, 1, 1, 0};
	const struct targets single = {.values = y, .width = 1}, number = {.classes = numbers};

	(void)state;
	/* NaN is not above 0.5: a 0 */
	assert_close(measure("\"accuracy\"", &one, p, &single, 4, 1), 3.0, 0.0);
	assert_close(measure("\"binary_accuracy\"", &classes, p, &number, 4, 1), 3.0, 0.0);
	assert_close(
		measure(METRIC("BinaryAccuracy", "\"threshold\": 0.1"), &one, p, &single, 4, 1),
		3.0, 0.0);
	/* the share of an item's outputs that are right; one target for all of them */
	assert_close(measure("\"binary_accuracy\"", &values, outputs, &by_vector, 3, 4),
		     0.75 + 0.5 + 0.75, 1e-12);
	assert_close(measure("\"binary_accuracy\"", &one, outputs, &by_single, 3, 4),
		     0.0 + 0.0 + 0.0, 0.0);
}

static void test_errors_and_losses_are_means_of_items(void **state)
{
	(void)state;
	assert_close(measure("\"mae\"", &values, outputs, &by_vector, 3, 4),
		     (0.1 + 0.6 + 0.3 + 0.2 + 0.7 + 0.1 + 0.9 + 0.1 + 0.3 + 0.7 + 0.3 + 0.1) / 4.0,
		     1e-6);
	assert_close(measure("\"mse\"", &values, outputs, &by_vector, 3, 4),
		     (0.01 + 0.36 + 0.09 + 0.04 + 0.49 + 0.01 + 0.81 + 0.01 + 0.09 + 0.49 + 0.09 +
		      0.01) / 4.0,
		     1e-6);
	assert_close(measure("\"mean_absolute_error\"", &one, outputs, &by_single, 1, 4), 0.75,
		     1e-6);
	assert_close(measure("\"crossentropy\"", &classes, outputs, &by_class, 3, 4),
		     -log(0.4) - log(0.1) - log(0.3), 1e-6);
	assert_close(measure("\"ce\"", &values, outputs, &by_vector, 3, 4),
		     -log(0.4) - log(0.1) - log(0.3), 1e-6);
	assert_close(measure(METRIC("SparseCategoricalCrossentropy", "\"from_logits\": true"),
			     &classes, outputs, &by_class, 1, 4),
		     log(exp(0.1) + exp(0.4) + exp(0.3) + exp(0.2)) - 0.4, 1e-6);
}

static void test_names_are_those_that_keras_shows(void **state)
{
	static const struct {
		const char *text, *name;
		const struct target_kind *kind;
	} rows[] = {
		{"\"accuracy\"", "accuracy", &classes},
		{"\"acc\"", "acc", &values},
		{"\"sparse_categorical_accuracy\"", "sparse_categorical_accuracy", &classes},
		{"\"SparseCategoricalAccuracy\"", "sparse_categorical_accuracy", &classes},
		{"\"TopKCategoricalAccuracy\"", "top_k_categorical_accuracy", &values},
		{"\"mse\"", "mse", &values},
		{"\"MSE\"", "MSE", &values},
		{"\"MeanSquaredError\"", "mean_squared_error", &values},
		{"\"mae\"", "mae", &values},
		{"\"MeanAbsoluteError\"", "mean_absolute_error", &values},
		{"\"ce\"", "ce", &classes},
		{"\"CategoricalCrossentropy\"", "categorical_crossentropy", &values},
		{METRIC("SparseTopKCategoricalAccuracy", "\"name\": \"top3\", \"k\": 3"), "top3",
		 &classes},
		{METRIC("CategoricalCrossentropy", "\"name\": \"h\", \"dtype\": \"float32\""), "h",
		 &values},
		{METRIC("BinaryAccuracy", "\"name\": null, \"dtype\": \"float32\""),
		 "binary_accuracy", &values},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reading r;
		struct err err;

		if (open_reading(&r, rows[i].text, DENSE("4"), rows[i].kind, &err) != ST_OK)
			fail_msg("%s", err.text);
		assert_string_equal(r.metric.name, rows[i].name);
		close_reading(&r);
	}
}

static void test_bad_metrics_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text;
		const struct target_kind *kind;
		const char *says;
	} rows[] = {
		{"\"acuracy\"", &classes,
		 "unknown metric \"acuracy\" (did you mean \"accuracy\"?)"},
		{"3", &classes, "must be a name or an object"},
		{"\"categorical_accuracy\"", &classes,
		 "set data.one_hot to true, or use sparse_categorical_accuracy"},
		{"\"sparse_categorical_accuracy\"", &values,
		 "does not fit the model's output (None, 4) and data with 4 targets"},
		{"\"categorical_crossentropy\"", &classes, "set data.one_hot to true"},
		{METRIC("TopKCategoricalAccuracy", "\"k\": 0"), &values,
		 "config.k: must be from 1"},
		{METRIC("CategoricalAccuracy", "\"k\": 1"), &values, "unknown option \"k\""},
		{METRIC("BinaryAccuracy", "\"threshold\": \"x\""), &values,
		 "config.threshold: must be a number"},
		{METRIC("CategoricalAccuracy", "\"name\": 3"), &values,
		 "config.name: must be a text"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reading r;
		struct err err = {0};

		assert_int_not_equal(open_reading(&r, rows[i].text, DENSE("4"), rows[i].kind, &err),
				     ST_OK);
		assert_contains(err.text, rows[i].says);
		close_reading(&r);
	}
}

/* Allocation @fail of the reading fails; negative: none. */
static enum status read_list(struct metric_list *out, const char *text, cJSON **json,
			     const struct model *model, long fail, struct err *err)
{
	struct json_at root;

	assert_int_equal(json_parse(json, text, strlen(text), "m.json", NULL), ST_OK);
	root = json_root("m.json", *json);
	support_fail_alloc(fail);
	*out = (struct metric_list){0};
	return metric_list_add(out, &root, false, model, 0, &classes, err);
}

static void test_a_list_keeps_its_order_and_no_name_twice(void **state)
{
	static const char good[] =
		"[\"accuracy\", \"ce\", " METRIC("SparseTopKCategoricalAccuracy", "\"k\": 2") "]";
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"[\"acc\", \"acc\"]", "[1]: the name \"acc\" is taken"},
		{"[" METRIC("SparseCategoricalAccuracy", "\"name\": \"loss\"") "]",
		 "[0]: the name \"loss\" is taken"},
		{"{}", "\"class_name\" is missing"},
		{"[\"acc\", \"x\"]", "[1]: unknown metric"},
	};
	struct metric_list list = {0};
	struct math_model m;
	cJSON *json;

	(void)state;
	math_model_open(&m, DENSE("4"), 1, (int64_t[]){3});
	assert_int_equal(metric_list_add(&list, NULL, false, m.model, 0, &classes, NULL), ST_OK);
	assert_int_equal(list.count, 0);
	for (long n = 0;; n++) {
		enum status status;
		bool failed;

		status = read_list(&list, good, &json, m.model, n, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		if (!failed)
			break;
		assert_true(list.count == 0 && !list.items);
		cJSON_Delete(json);
	}
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[1].name, "ce");
	metric_list_free(&list);
	cJSON_Delete(json);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		assert_int_equal(read_list(&list, rows[i].text, &json, m.model, -1, &err),
				 ST_INVALID);
		assert_contains(err.text, rows[i].says);
		assert_true(list.count == 0 && !list.items);
		cJSON_Delete(json);
	}
	math_model_close(&m);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* What is shown after two batches of half the items each. */
static double counted(const char *text, const struct target_kind *kind, const float *scores,
		      const struct targets *targets, int64_t batch, int64_t width)
{
	double states[1024] = {0.0}, value;
	struct targets second = *targets;
	struct reading r;
	struct err err;

	if (open_reading(&r, text, width == 1 ? DENSE("1") : DENSE("4"), kind, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_true(r.metric.states <= (int64_t)ARRAY_LEN(states));
	assert_false(metric_is_mean(&r.metric));
	metric_run(&r.metric, scores, targets, batch / 2, width, states);
	if (second.classes)
		second.classes += batch / 2;
	else
		second.values += batch / 2 * targets->width;
	metric_run(&r.metric, scores + batch / 2 * width, &second, batch - batch / 2, width,
		   states);
	value = metric_result(&r.metric, states);
	close_reading(&r);
	return value;
}

enum {
	SCORES = 40
};

/* Scores between 0 and 1, some of them on thresholds; positives are rather above. */
static void make_scores(float scores[SCORES], float truth[SCORES])
{
	uint32_t lcg = 7;

	for (int i = 0; i < SCORES; i++) {
		scores[i] = i % 5 == 0 ? (float)(i / 5) / 8.0f : math_lcg_unit(&lcg);
		truth[i] = 0.5f * scores[i] + 0.5f * math_lcg_unit(&lcg) > 0.5f;
	}
}

/* Keras's formula with a loop over all scores for each threshold. */
static double slow_auc(const float *scores, const float *truth, int thresholds, bool pr)
{
	double right[512], wrong[512], positives = 0.0, area = 0.0;

	for (int i = 0; i < SCORES; i++)
		positives += (double)truth[i];
	for (int t = 0; t < thresholds; t++) {
		const float at = t == 0                ? -1e-7f
				 : t == thresholds - 1 ? 1.0f + 1e-7f
						       : (float)(t / (thresholds - 1.0));

		right[t] = wrong[t] = 0.0;
		for (int i = 0; i < SCORES; i++) {
			right[t] += scores[i] > at && truth[i] > 0.0f;
			wrong[t] += scores[i] > at && !(truth[i] > 0.0f);
		}
	}
	for (int t = 0; t + 1 < thresholds; t++) {
		const double dtp = right[t] - right[t + 1], p = right[t] + wrong[t];
		const double next = right[t + 1] + wrong[t + 1];
		const double slope = p > next ? dtp / (p - next) : 0.0;
		const double intercept = right[t + 1] - slope * next;

		if (pr)
			area += slope *
				(dtp + intercept * (p > 0.0 && next > 0.0 ? log(p / next) : 0.0)) /
				positives;
		else
			area += (wrong[t] - wrong[t + 1]) / (SCORES - positives) *
				(right[t] + right[t + 1]) / 2.0 / positives;
	}
	return area;
}

static void test_auc_is_kerass_sum_over_thresholds(void **state)
{
	float scores[SCORES], truth[SCORES];
	const struct targets targets = {.values = truth, .width = 1};

	(void)state;
	make_scores(scores, truth);
	assert_close(counted("\"AUC\"", &one, scores, &targets, SCORES, 1),
		     slow_auc(scores, truth, 200, false), 1e-12);
	assert_close(counted(METRIC("AUC", "\"curve\": \"PR\""), &one, scores, &targets, SCORES, 1),
		     slow_auc(scores, truth, 200, true), 1e-12);
	assert_close(
		counted(METRIC("AUC", "\"num_thresholds\": 9"), &one, scores, &targets, SCORES, 1),
		slow_auc(scores, truth, 9, false), 1e-12);
	/* What is sorted perfectly. */
	for (int i = 0; i < SCORES; i++)
		truth[i] = scores[i] > 0.5f;
	assert_close(counted("\"auc\"", &one, scores, &targets, SCORES, 1), 1.0, 1e-12);
}

static void test_precision_and_recall_by_hand(void **state)
{
	static const float scores[] = {0.9f, 0.6f, 0.5f, 0.4f, NAN, 0.2f};
	static const float truth[] = {1, 0, 1, 1, 1, 0};
	const struct targets targets = {.values = truth, .width = 1};

	(void)state;
	/* Above 0.5: one right of two; four are there. */
	assert_close(counted("\"Precision\"", &one, scores, &targets, 6, 1), 0.5, 1e-12);
	assert_close(counted("\"recall\"", &one, scores, &targets, 6, 1), 0.25, 1e-12);
	assert_close(
		counted(METRIC("Precision", "\"thresholds\": [0.3]"), &one, scores, &targets, 6, 1),
		0.75, 1e-12);
	assert_close(
		counted(METRIC("Recall", "\"thresholds\": 0.95"), &one, scores, &targets, 6, 1),
		0.0, 0.0);
	assert_close(
		counted(METRIC("Precision", "\"thresholds\": 0.95"), &one, scores, &targets, 6, 1),
		0.0, 0.0);
}

#define F1(average) METRIC("F1Score", "\"average\": \"" average "\"")

/* Predicted 1, 0, 0; there 1, 2, 1. Class 0: none of 2 + 0; class 1: 2 / (1 + 2); class 2: 0. */
static void test_f1_and_iou_by_hand(void **state)
{
	const char *iou = METRIC("OneHotMeanIoU", "\"num_classes\": 4");

	(void)state;
	assert_close(counted(F1("macro"), &values, outputs, &by_vector, 3, 4), 2.0 / 3.0 / 4.0,
		     1e-12);
	assert_close(counted(F1("micro"), &classes, outputs, &by_class, 3, 4), 1.0 / 3.0, 1e-12);
	assert_close(counted(F1("weighted"), &classes, outputs, &by_class, 3, 4), 4.0 / 9.0, 1e-12);
	/* Classes 0, 1 and 2 came or were predicted; of 1 one of two. */
	assert_close(counted(iou, &values, outputs, &by_vector, 3, 4), 0.5 / 3.0, 1e-12);
	assert_close(counted(iou, &classes, outputs, &by_class, 3, 4), 0.5 / 3.0, 1e-12);
	assert_close(counted(METRIC("MeanIoU", "\"num_classes\": 4, \"sparse_y_pred\": false"),
			     &classes, outputs, &by_class, 3, 4),
		     0.5 / 3.0, 1e-12);
	/* One of three is on the diagonal. */
	assert_close(counted("\"ConfusionMatrix\"", &values, outputs, &by_vector, 3, 4), 1.0 / 3.0,
		     1e-12);
	assert_close(counted("\"confusion_matrix\"", &classes, outputs, &by_class, 3, 4), 1.0 / 3.0,
		     1e-12);
}

enum {
	ROWS = 12,
	CLASSES = 4
};

/* A whole weight is so many rows of the same kind; without weights a row weighs 1. */
static void test_a_weight_is_so_many_rows(void **state)
{
	static const char *const texts[] = {
		"\"accuracy\"",
		"\"sparse_top_k_categorical_accuracy\"",
		"\"sparse_categorical_crossentropy\"",
		"\"perplexity\"",
		"\"confusion_matrix\"",
		METRIC("F1Score", "\"average\": \"macro\""),
		METRIC("OneHotMeanIoU", "\"num_classes\": 4"),
		METRIC("Precision", "\"thresholds\": 0.4"),
		"\"recall\"",
		"\"auc\"",
		"\"binary_accuracy\"",
	};
	float scores[ROWS * CLASSES], truth[ROWS * CLASSES], weights[ROWS];
	float more_scores[4 * ROWS * CLASSES], more_truth[4 * ROWS * CLASSES];
	int32_t numbers[ROWS], more_numbers[4 * ROWS];
	float mask[ROWS], weights_left[ROWS];
	int64_t rows = 0;

	(void)state;
	math_fill(scores, ARRAY_LEN(scores), 3, 0.01f, 0.99f);
	math_fill(truth, ARRAY_LEN(truth), 4, 0.0f, 1.0f);
	for (int i = 0; i < ROWS * CLASSES; i++)
		truth[i] = truth[i] > 0.6f ? 1.0f : 0.0f;
	for (int r = 0; r < ROWS; r++) {
		weights[r] = (float)(r % 4);
		mask[r] = r % 4 ? 1.0f : 0.0f;
		weights_left[r] = r % 4 ? weights[r] : 7.0f;
		numbers[r] = 5 * r % CLASSES;
		for (int n = 0; n < r % 4; n++, rows++) {
			more_numbers[rows] = numbers[r];
			memcpy(more_scores + rows * CLASSES, scores + (ptrdiff_t)r * CLASSES,
			       CLASSES * sizeof(*scores));
			memcpy(more_truth + rows * CLASSES, truth + (ptrdiff_t)r * CLASSES,
			       CLASSES * sizeof(*truth));
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const bool same = i >= ARRAY_LEN(texts) - 4;
		const struct targets once = {.classes = same ? NULL : numbers,
					     .values = truth,
					     .width = CLASSES,
					     .weights = weights};
		const struct targets often = {.classes = same ? NULL : more_numbers,
					      .values = more_truth,
					      .width = CLASSES};
		const struct targets masked = {.classes = once.classes,
					       .values = truth,
					       .width = CLASSES,
					       .weights = weights_left,
					       .mask = mask};
		double weighed[1024] = {0.0}, repeated[1024] = {0.0}, left[1024] = {0.0};
		struct reading r;
		struct err err;

		if (open_reading(&r, texts[i], DENSE("4"), same ? &values : &classes, &err) !=
		    ST_OK)
			fail_msg("%s", err.text);
		metric_run(&r.metric, scores, &once, ROWS, CLASSES, weighed);
		metric_run(&r.metric, more_scores, &often, rows, CLASSES, repeated);
		metric_run(&r.metric, scores, &masked, ROWS, CLASSES, left);
		assert_close(metric_result(&r.metric, weighed), metric_result(&r.metric, repeated),
			     1e-12);
		for (int64_t s = 0; s < r.metric.states; s++)
			assert_close(weighed[s], repeated[s], 1e-12);
		for (int64_t s = 0; s < r.metric.states; s++)
			assert_close(weighed[s], left[s], 1e-12);
		close_reading(&r);
	}
}

static void test_a_weighted_mean_of_nothing_is_0(void **state)
{
	const float scores[] = {0.25f, 0.25f, 0.25f, 0.25f}, none = 0.0f;
	const int32_t label = 1;
	const struct targets targets = {.classes = &label, .weights = &none};
	double states[2] = {0.0, 0.0};
	struct reading r;

	(void)state;
	assert_int_equal(open_reading(&r, "\"accuracy\"", DENSE("4"), &classes, NULL), ST_OK);
	assert_true(isnan(metric_result(&r.metric, states)));
	r.metric.weighted = true;
	metric_run(&r.metric, scores, &targets, 1, 4, states);
	assert_close(metric_result(&r.metric, states), 0.0, 0.0);
	close_reading(&r);
}

static void test_perplexity_is_exp_of_the_mean_crossentropy(void **state)
{
	static const float half[] = {0.5f, 0.25f, 0.125f, 0.125f, 0.5f, 0.25f, 0.125f, 0.125f};
	static const int32_t right[] = {0, 1};
	const struct targets targets = {.classes = right};

	(void)state;
	assert_close(counted("\"Perplexity\"", &classes, half, &targets, 2, 4), sqrt(8.0), 1e-6);
}

static void test_counting_metrics_that_cannot_be_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"\"F1Score\"", "F1Score needs its \"average\""},
		{METRIC("F1Score", "\"average\": null"), "is a list of numbers"},
		{METRIC("F1Score", "\"average\": \"mean\""), "config.average"},
		{"\"MeanIoU\"", "needs its \"num_classes\""},
		{METRIC("MeanIoU", "\"num_classes\": 4"), "sparse_y_pred"},
		{METRIC("OneHotMeanIoU", "\"num_classes\": 3"), "num_classes must be 4"},
		{METRIC("AUC", "\"num_thresholds\": 1"), "config.num_thresholds"},
		{METRIC("AUC", "\"curve\": \"PRC\""), "config.curve"},
		{"\"Precision\"", "does not fit"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reading r;
		struct err err = {0};

		assert_true(open_reading(&r, rows[i].text, DENSE("4"), &classes, &err) != ST_OK);
		assert_contains(err.text, rows[i].says);
		close_reading(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auc_is_kerass_sum_over_thresholds),
		cmocka_unit_test(test_precision_and_recall_by_hand),
		cmocka_unit_test(test_f1_and_iou_by_hand),
		cmocka_unit_test(test_perplexity_is_exp_of_the_mean_crossentropy),
		cmocka_unit_test(test_a_weight_is_so_many_rows),
		cmocka_unit_test(test_a_weighted_mean_of_nothing_is_0),
		cmocka_unit_test(test_counting_metrics_that_cannot_be_are_refused),
		cmocka_unit_test(test_accuracy_counts_the_first_greatest),
		cmocka_unit_test(test_the_greatest_passes_nan_over),
		cmocka_unit_test(test_top_k_counts_ties_in_favour),
		cmocka_unit_test(test_top_k_of_bad_numbers_is_false),
		cmocka_unit_test(test_binary_accuracy_is_above_the_threshold),
		cmocka_unit_test(test_errors_and_losses_are_means_of_items),
		cmocka_unit_test(test_names_are_those_that_keras_shows),
		cmocka_unit_test(test_bad_metrics_are_refused_with_their_place),
		cmocka_unit_test(test_a_list_keeps_its_order_and_no_name_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
