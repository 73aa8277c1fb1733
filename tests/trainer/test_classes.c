/*
 * Counts of classes and mispredictions against loops that say the same.
 */
#include "support/math.h"

#include <math.h>
#include <string.h>

#include "trainer/learn/measure_run.h"

#define CLASSES 4
#define ITEMS   1000

static float outputs[ITEMS * CLASSES], vectors[ITEMS * CLASSES], singles[ITEMS];
static int32_t labels[ITEMS];

static void fill(void)
{
	uint32_t state = 5;

	math_fill(outputs, ITEMS * CLASSES, 3, 0, 1);
	memset(vectors, 0, sizeof(vectors));
	for (int i = 0; i < ITEMS; i++) {
		labels[i] = (int32_t)(math_lcg(&state) % 10) % CLASSES; /* 0 and 1 are commoner */
		singles[i] = (float)labels[i];
		vectors[i * CLASSES + labels[i]] = 1;
	}
}

static void test_class_numbers_values_and_vectors_count_alike(void **state)
{
	const struct targets kinds[] = {{.classes = labels},
					{.values = vectors, .width = CLASSES},
					{.values = singles, .width = 1}};
	int64_t wanted[CLASSES] = {0}, missed[CLASSES] = {0};

	(void)state;
	fill();
	for (int i = 0; i < ITEMS; i++) {
		int greatest = 0;

		for (int c = 1; c < CLASSES; c++)
			if (outputs[i * CLASSES + c] > outputs[i * CLASSES + greatest])
				greatest = c;
		wanted[labels[i]]++;
		missed[labels[i]] += greatest != labels[i];
	}
	for (int k = 0; k < 3; k++) {
		struct class_counts counts;
		struct class_figures figures;

		assert_int_equal(class_counts_init(&counts, CLASSES, NULL), ST_OK);
		class_counts_add(&counts, outputs, &kinds[k], ITEMS, CLASSES);
		assert_memory_equal(counts.targets, wanted, sizeof(wanted));
		assert_memory_equal(counts.missed, missed, sizeof(missed));
		figures = class_counts_figures(&counts);
		assert_int_equal(figures.items, ITEMS);
		assert_true(figures.imbalance > 1 && figures.imbalance < 2.5);
		assert_true(figures.misprediction > 0.7 && figures.misprediction < 0.85);
		class_counts_clear(&counts);
		assert_int_equal(counts.items, 0);
		assert_int_equal(counts.targets[0] + counts.missed[CLASSES - 1], 0);
		class_counts_fini(&counts);
	}
}

static void test_parts_merge_to_the_whole(void **state)
{
	struct class_counts whole, parts[2];

	(void)state;
	fill();
	assert_int_equal(class_counts_init(&whole, CLASSES, NULL), ST_OK);
	class_counts_add(&whole, outputs, &(struct targets){.classes = labels}, ITEMS, CLASSES);
	for (int i = 0; i < 2; i++)
		assert_int_equal(class_counts_init(&parts[i], CLASSES, NULL), ST_OK);
	class_counts_add(&parts[0], outputs, &(struct targets){.classes = labels}, 300, CLASSES);
	class_counts_add(&parts[1], outputs + 300 * CLASSES,
			 &(struct targets){.classes = labels + 300}, ITEMS - 300, CLASSES);
	class_counts_merge(&parts[0], &parts[1]);
	assert_memory_equal(parts[0].targets, whole.targets, 2 * CLASSES * sizeof(int64_t));
	assert_int_equal(parts[0].items, whole.items);
	assert_int_equal(parts[0].predicted, whole.predicted);
	for (int i = 0; i < 2; i++)
		class_counts_fini(&parts[i]);
	class_counts_fini(&whole);
}

static void test_what_is_no_class_is_not_counted(void **state)
{
	const int32_t numbers[] = {-1, 4, 3};
	const float values[] = {NAN, 1.5f, 4, -1, 2};
	struct class_counts counts;

	(void)state;
	fill();
	assert_int_equal(class_counts_init(&counts, CLASSES, NULL), ST_OK);
	class_counts_add(&counts, outputs, &(struct targets){.classes = numbers}, 3, CLASSES);
	assert_int_equal(counts.items, 1);
	class_counts_add(&counts, outputs, &(struct targets){.values = values, .width = 1}, 5,
			 CLASSES);
	assert_int_equal(counts.items, 2);
	assert_int_equal(counts.targets[2] + counts.targets[3], 2);
	class_counts_fini(&counts);
}

static void test_figures_wait_until_rare_classes_can_be_told(void **state)
{
	static int32_t two[201];
	static const float single[201];
	struct class_counts counts;
	struct class_figures figures;

	(void)state;
	memset(two, 0, sizeof(two));
	two[0] = 1;
	assert_int_equal(class_counts_init(&counts, CLASSES, NULL), ST_OK);
	assert_true(isnan(class_counts_figures(&counts).imbalance));
	/* One output for each item: no prediction. */
	class_counts_add(&counts, single, &(struct targets){.classes = two},
			 CLASSES * CLASS_ITEMS_LEAST - 1, 1);
	figures = class_counts_figures(&counts);
	assert_true(isnan(figures.imbalance) && isnan(figures.misprediction));
	class_counts_add(&counts, single, &(struct targets){.classes = two + 1}, 1, 1);
	figures = class_counts_figures(&counts);
	/* Classes that never came do not count. */
	assert_close(figures.imbalance, CLASSES * CLASS_ITEMS_LEAST - 1, 1e-12);
	class_counts_fini(&counts);
}

static void test_no_memory_is_no_counts(void **state)
{
	struct class_counts counts;

	(void)state;
	support_fail_alloc(0);
	assert_int_equal(class_counts_init(&counts, 10, NULL), ST_NOMEM);
	support_fail_alloc(-1);
	assert_null(counts.targets);
	class_counts_fini(&counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_class_numbers_values_and_vectors_count_alike),
		cmocka_unit_test(test_parts_merge_to_the_whole),
		cmocka_unit_test(test_what_is_no_class_is_not_counted),
		cmocka_unit_test(test_figures_wait_until_rare_classes_can_be_told),
		cmocka_unit_test(test_no_memory_is_no_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
