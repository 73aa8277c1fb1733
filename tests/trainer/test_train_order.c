/*
 * The order of execution: no two values have the same number, and nothing comes before what it is
 * computed from.
 */
#include <stdlib.h>

#include "support/support.h"
#include "common/sorted.h"
#include "trainer/train_outfeed.h"

#define UPDATES 3
#define MOST    4096

struct seen {
	struct train_order_place place;
	uint64_t order;
};

static void add(struct seen *all, size_t *count, const struct train_order *order,
		struct train_order_place place)
{
	assert_true(*count < MOST);
	all[(*count)++] = (struct seen){place, train_order_of(order, &place)};
}

static void add_microbatch(struct seen *all, size_t *count, const struct train_order *order,
			   int64_t update, int64_t m)
{
	for (int l = 0; l < order->layers; l++)
		add(all, count, order,
		    (struct train_order_place){update, m, 'F', OUTFEED_ACTIVATION, l, 0});
	for (int p = 0; p < order->params; p++)
		add(all, count, order,
		    (struct train_order_place){update, m, 'B', OUTFEED_GRADIENT, p, 0});
}

static void add_update(struct seen *all, size_t *count, const struct train_order *order,
		       int64_t update)
{
	for (int p = 0; p < order->params; p++) {
		struct train_order_place place = {update, -1, 'U', OUTFEED_GRADIENT, p, 0};

		add(all, count, order, place);
		place.kind = OUTFEED_WEIGHT;
		add(all, count, order, place);
		place.kind = OUTFEED_OPTIMIZER_STATE;
		for (place.slot = 0; place.slot < order->slots; place.slot++)
			add(all, count, order, place);
	}
}

static size_t add_all(struct seen *all, const struct train_order *order)
{
	size_t count = 0;

	for (int64_t update = 0; update < UPDATES; update++) {
		for (int64_t m = 0; m < order->accumulation; m++)
			add_microbatch(all, &count, order, update, m);
		add_update(all, &count, order, update);
	}
	return count;
}

static int in_update(const struct train_order_place *place)
{
	return place->phase == 'U' ? 1 + (int)place->kind : 0;
}

/* Is @a an operand of @b, or of what @b comes from? */
static bool comes_from(const struct train_order_place *b, const struct train_order_place *a)
{
	if (a->update != b->update)
		return a->update < b->update;
	if (in_update(a) == 0 && in_update(b) == 0) {
		if (a->microbatch != b->microbatch)
			return false;
		if (a->kind != b->kind)
			return a->kind == OUTFEED_ACTIVATION;
		return a->kind == OUTFEED_ACTIVATION ? a->number < b->number
						     : a->number > b->number;
	}
	if (in_update(a) == 0 || in_update(b) == 0)
		return in_update(a) == 0;
	if (a->kind == OUTFEED_GRADIENT && b->kind == OUTFEED_GRADIENT)
		return a->number > b->number;
	/* Slots come before variables: not only their own, so that stages do not matter. */
	if (a->kind == b->kind)
		return false;
	return a->kind == OUTFEED_GRADIENT ||
	       (a->kind == OUTFEED_OPTIMIZER_STATE && b->kind == OUTFEED_WEIGHT);
}

static int by_order(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return SORTED_BY(x, y, order);
}

static const struct train_order orders[] = {
	{.layers = 1, .params = 1, .slots = 0, .accumulation = 1},
	{.layers = 9, .params = 2, .slots = 1, .accumulation = 3},
	{.layers = 6, .params = 7, .slots = 2, .accumulation = 4},
	{.layers = 3, .params = 9, .slots = 3, .accumulation = 2},
	{.layers = 11, .params = 8, .slots = 0, .accumulation = 1},
};

static void test_no_two_values_have_the_same_number(void **state)
{
	static struct seen all[MOST];

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		const size_t count = add_all(all, &orders[i]);

		qsort(all, count, sizeof(all[0]), by_order);
		for (size_t k = 1; k < count; k++)
			assert_true(all[k - 1].order < all[k].order);
	}
}

static void test_nothing_comes_before_what_it_is_computed_from(void **state)
{
	static struct seen all[MOST];

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		const size_t count = add_all(all, &orders[i]);

		for (size_t a = 0; a < count; a++)
			for (size_t b = 0; b < count; b++)
				if (comes_from(&all[b].place, &all[a].place))
					assert_true(all[a].order < all[b].order);
	}
}

static void test_a_beginning_parts_what_was_from_what_will_be(void **state)
{
	static struct seen all[MOST];

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		const struct train_order *order = &orders[i];
		const size_t count = add_all(all, order);

		for (size_t k = 0; k < count; k++) {
			const struct train_order_place *place = &all[k].place;
			const uint64_t update = train_order_begin(order, 1, order->accumulation);

			assert_true((all[k].order < train_order_begin(order, 1, 0)) ==
				    (place->update < 1));
			assert_true(
				(all[k].order < update) ==
				(place->update < 1 || (place->update == 1 && place->phase != 'U')));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_two_values_have_the_same_number),
		cmocka_unit_test(test_nothing_comes_before_what_it_is_computed_from),
		cmocka_unit_test(test_a_beginning_parts_what_was_from_what_will_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
