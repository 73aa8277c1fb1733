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
	return metric_get(&r->metric, &root, r->m.model, kind, err);
}

static void close_reading(struct reading *r)
{
	math_model_close(&r->m);
	cJSON_Delete(r->json);
}

static double measure(const char *text, const struct target_kind *kind, const float *outputs,
		      const struct targets *targets, int64_t batch, int64_t width)
{
	struct metric_sum sum = {0.0, 10};
	struct reading r;
	struct err err;

	if (open_reading(&r, text, width == 1 ? DENSE("1") : DENSE("4"), kind, &err) != ST_OK)
		fail_msg("%s", err.text);
	metric_run(&r.metric, outputs, targets, batch, width, &sum);
	assert_int_equal(sum.count, 10 + batch);
	close_reading(&r);
	return sum.total;
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
	return metric_list_new(out, &root, model, &classes, err);
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
		{"{}", "must be an array"},
		{"[\"acc\", \"x\"]", "[1]: unknown metric"},
	};
	struct metric_list list;
	struct math_model m;
	cJSON *json;

	(void)state;
	math_model_open(&m, DENSE("4"), 1, (int64_t[]){3});
	assert_int_equal(metric_list_new(&list, NULL, m.model, &classes, NULL), ST_OK);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
