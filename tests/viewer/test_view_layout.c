/*
 * Layout: at every size nothing overlaps and nothing is outside.
 */
#include <string.h>

#include "support/support.h"
#include "viewer/view_layout.h"

#define MOST_WIDTH  300
#define MOST_HEIGHT 100

static bool overlap(struct view_rect a, struct view_rect b)
{
	return a.width > 0 && a.height > 0 && b.width > 0 && b.height > 0 && a.x < b.x + b.width &&
	       b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

static bool inside(struct view_rect a, struct view_rect outer)
{
	return a.width >= 0 && a.height >= 0 &&
	       (a.width == 0 || a.height == 0 ||
		(a.x >= outer.x && a.y >= outer.y && a.x + a.width <= outer.x + outer.width &&
		 a.y + a.height <= outer.y + outer.height));
}

static void check(const struct view_rect *rects, int count, struct view_rect outer)
{
	for (int i = 0; i < count; i++) {
		assert_true(inside(rects[i], outer));
		for (int j = 0; j < i; j++)
			assert_false(overlap(rects[i], rects[j]));
	}
}

static void test_frames_never_overlap_and_stay_inside(void **state)
{
	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int h = 1; h <= MOST_HEIGHT; h++) {
			const struct view_frame f = view_frame_layout(w, h);
			const struct view_rect rects[] = {f.line, f.title, f.body, f.status,
							  f.keys};

			check(rects, 5, (struct view_rect){0, 0, w, h});
			assert_int_equal(f.too_small, w < VIEW_MIN_WIDTH || h < VIEW_MIN_HEIGHT);
			if (f.too_small)
				assert_int_equal(f.line.height, 1);
			else
				assert_true(f.body.height >= VIEW_MIN_HEIGHT - 3);
		}
}

static void test_frames_leave_nothing_out(void **state)
{
	(void)state;
	for (int w = VIEW_MIN_WIDTH; w <= MOST_WIDTH; w++)
		for (int h = VIEW_MIN_HEIGHT; h <= MOST_HEIGHT; h++) {
			const struct view_frame f = view_frame_layout(w, h);

			assert_int_equal(f.title.height + f.body.height + f.status.height +
						 f.keys.height,
					 h);
			assert_int_equal(f.body.width, w);
		}
	for (int odd = -3; odd <= 0; odd++) {
		const struct view_frame f = view_frame_layout(odd, odd);

		assert_true(f.too_small && f.line.width == 0 && f.line.height == 0);
	}
}

static void test_popups_stay_in_the_middle_of_their_body(void **state)
{
	static const int wanted[] = {-1, 0, 1, 7, 39, 40, 120, 400};
	const int kinds = (int)(sizeof(wanted) / sizeof(wanted[0]));

	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int h = 1; h <= MOST_HEIGHT; h++)
			for (int kind = 0; kind < kinds * kinds; kind++) {
				const int columns = wanted[kind % kinds],
					  rows = wanted[kind / kinds];
				const struct view_rect body = {2, 1, w, h};
				const struct view_rect p = view_popup_area(body, columns, rows);
				const int left = p.x - body.x, above = p.y - body.y;

				check(&p, 1, body);
				assert_int_equal(p.width, columns < 0   ? 0
							  : columns < w ? columns
									: w);
				assert_int_equal(p.height, rows < 0 ? 0 : rows < h ? rows : h);
				assert_in_range(w - p.width - 2 * left, 0, 1);
				assert_in_range(h - p.height - 2 * above, 0, 1);
			}
}

static void check_split(struct view_rect body, int upper, int least)
{
	const struct view_split s = view_split_rows(body, upper, least);
	const struct view_rect rects[] = {s.upper, s.heading, s.lower};

	check(rects, 3, body);
	assert_int_equal(s.upper.height + s.heading.height + s.lower.height, body.height);
	assert_int_equal(s.upper.width, body.width);
	if (s.lower.height == 0) {
		assert_true(s.heading.height == 0);
		assert_true(least < 1 || body.height < 2 * least + 1);
		return;
	}
	assert_int_equal(s.heading.height, 1);
	assert_true(s.upper.y < s.heading.y && s.heading.y < s.lower.y);
	assert_true(s.upper.height >= least && s.lower.height >= least);
	/* The upper one gets what it asks for, but for the least of each. */
	if (upper >= least && upper <= body.height - 1 - least)
		assert_int_equal(s.upper.height, upper);
}

static void test_split_rows_share_out_all_rows(void **state)
{
	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w += 23)
		for (int h = 1; h <= MOST_HEIGHT; h++)
			for (int upper = -2; upper <= MOST_HEIGHT + 5; upper += 3)
				for (int least = -1; least <= 12; least++)
					check_split((struct view_rect){3, 2, w, h}, upper, least);
}

static void check_sides(struct view_rect body, int columns, int least)
{
	const struct view_sides s = view_split_sides(body, columns, least);
	const struct view_rect rects[] = {s.left, s.right};

	check(rects, 2, body);
	assert_int_equal(s.left.height, body.height);
	if (s.right.width == 0) {
		assert_int_equal(s.left.width, body.width);
		assert_true(columns < 1 || body.width < columns + 1 + least);
		return;
	}
	assert_int_equal(s.right.width, columns);
	assert_int_equal(s.left.width + 1 + s.right.width, body.width);
	assert_int_equal(s.right.x, s.left.x + s.left.width + 1);
	assert_int_equal(s.right.height, body.height);
	assert_true(s.left.width >= least);
}

static void test_split_sides_share_out_all_columns(void **state)
{
	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int h = 1; h <= MOST_HEIGHT; h += 9)
			for (int columns = -1; columns <= MOST_WIDTH + 4; columns += 5)
				for (int least = 0; least <= 60; least += 12)
					check_sides((struct view_rect){1, 4, w, h}, columns, least);
}

static void test_timelines_never_overlap_and_stay_inside(void **state)
{
	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int h = 1; h <= MOST_HEIGHT; h++)
			for (int label = 0; label <= 16; label += 8)
				for (int details = 0; details < 2; details++) {
					const struct view_rect body = {3, 1, w, h};
					const struct view_timeline_layout t =
						view_timeline_areas(body, label, details != 0);
					const struct view_rect rects[] = {
						t.overview, t.labels, t.lanes, t.idle, t.details};

					check(rects, 5, body);
					assert_true(t.lanes.height > 0);
				}
}

static void test_tensors_never_overlap_and_stay_inside(void **state)
{
	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int h = 1; h <= MOST_HEIGHT; h++)
			for (int rows = 0; rows < 50; rows += 7) {
				const struct view_rect body = {0, 2, w, h};
				const struct view_tensors_layout t = view_tensors_areas(body, rows);
				const struct view_rect rects[] = {t.table, t.heading, t.body};

				check(rects, 3, body);
				assert_true(t.table.height > 0);
			}
}

/* One picture begins where the one before it ends, and together they are the page. */
static void check_shares(struct view_rect area, int count)
{
	struct view_rect shares[4];
	const struct view_rect *last = &shares[count - 1];

	for (int i = 0; i < count; i++)
		shares[i] = view_tensors_share(area, count, i);
	check(shares, count, area);
	assert_true(shares[0].x == area.x && shares[0].y == area.y);
	for (int i = 1; i < count; i++) {
		const struct view_rect *a = &shares[i - 1], *b = &shares[i];

		assert_true(b->y == a->y ? b->x == a->x + a->width
					 : b->x == a->x && b->y == a->y + a->height);
	}
	assert_int_equal(last->x + last->width, area.x + area.width);
	assert_int_equal(last->y + last->height, area.y + area.height);
}

static void test_pictures_of_tensors_share_their_page(void **state)
{
	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int h = 1; h <= MOST_HEIGHT; h += 3)
			for (int count = 1; count <= 4; count++)
				check_shares((struct view_rect){2, 5, w, h}, count);
	/* A narrow page has them one above the other, a wide or low one side by side. */
	assert_int_equal(view_tensors_share((struct view_rect){0, 0, 80, 20}, 2, 1).height, 10);
	assert_int_equal(view_tensors_share((struct view_rect){0, 0, 120, 20}, 2, 1).height, 20);
	assert_int_equal(view_tensors_share((struct view_rect){0, 0, 80, 6}, 2, 1).height, 6);
}

static void check_blocks(int width, int two_from, const int *heights, int count)
{
	struct view_rect places[8];
	const int height = view_blocks_layout(width, two_from, heights, count, places);
	int lowest = 0;

	for (int i = 0; i < count; i++) {
		const int end = places[i].y + places[i].height;

		assert_int_equal(places[i].height, heights[i]);
		assert_true(places[i].x >= 0 && places[i].x + places[i].width <= width);
		assert_true(places[i].y >= 0 && end <= height);
		lowest = end > lowest ? end : lowest;
		for (int j = 0; j < i; j++)
			assert_false(overlap(places[i], places[j]));
		/* In order: below the one before, or in a column further right. */
		if (i > 0)
			assert_true(places[i].x > places[i - 1].x ||
				    (places[i].x == places[i - 1].x &&
				     places[i].y > places[i - 1].y + places[i - 1].height));
	}
	assert_int_equal(height, lowest);
}

static void test_blocks_keep_apart_and_in_order(void **state)
{
	static const int heights[][8] = {{9, 3, 11, 1, 7, 7, 4, 20},
					 {1, 1, 1, 1, 1, 1, 1, 1},
					 {40, 2, 2, 2, 2, 2, 2, 2},
					 {2, 2, 2, 2, 2, 2, 2, 40}};

	(void)state;
	for (int w = 8; w <= MOST_WIDTH; w++)
		for (int two_from = 40; two_from <= 140; two_from += 20)
			for (size_t kind = 0; kind < sizeof(heights) / sizeof(heights[0]); kind++)
				for (int count = 0; count <= 8; count++)
					check_blocks(w, two_from, heights[kind], count);
}

static void test_lanes_share_rows_fairly(void **state)
{
	const int depths[] = {1, 5, 3, 8, 2};
	int heights[5], before[5] = {0}, used;

	(void)state;
	for (int rows = 0; rows < 40; rows++) {
		used = 0;
		view_lane_heights(depths, 5, rows, 4, heights);
		for (int i = 0; i < 5; i++) {
			assert_true(heights[i] <= depths[i] && heights[i] <= 4);
			assert_true(heights[i] >= (i < rows ? 1 : 0));
			used += heights[i];
			/* More rows take none away. */
			assert_true(heights[i] >= before[i]);
			before[i] = heights[i];
		}
		assert_true(used <= rows);
		assert_true(used == rows || used == 1 + 4 + 3 + 4 + 2);
	}
	assert_int_equal(used, 1 + 4 + 3 + 4 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_never_overlap_and_stay_inside),
		cmocka_unit_test(test_frames_leave_nothing_out),
		cmocka_unit_test(test_popups_stay_in_the_middle_of_their_body),
		cmocka_unit_test(test_split_rows_share_out_all_rows),
		cmocka_unit_test(test_split_sides_share_out_all_columns),
		cmocka_unit_test(test_timelines_never_overlap_and_stay_inside),
		cmocka_unit_test(test_tensors_never_overlap_and_stay_inside),
		cmocka_unit_test(test_pictures_of_tensors_share_their_page),
		cmocka_unit_test(test_blocks_keep_apart_and_in_order),
		cmocka_unit_test(test_lanes_share_rows_fairly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
