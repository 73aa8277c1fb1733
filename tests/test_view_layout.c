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
				const struct view_rect rects[] = {t.table, t.heading, t.scale,
								  t.curve, t.axis};

				/* The axis is drawn under the scale, too. */
				check(rects, 5, body);
				assert_true(t.table.height > 0);
			}
}

static void test_blocks_keep_apart(void **state)
{
	const int heights[] = {9, 3, 11, 1, 7, 7, 4, 20};
	struct view_rect places[8];

	(void)state;
	for (int w = 1; w <= MOST_WIDTH; w++)
		for (int count = 0; count <= 8; count++) {
			const int height = view_blocks_layout(w, 100, heights, count, places);

			for (int i = 0; i < count; i++) {
				assert_int_equal(places[i].height, heights[i]);
				assert_true(places[i].y + places[i].height <= height);
				assert_true(places[i].x >= 0 && places[i].x + places[i].width <= w);
				for (int j = 0; j < i; j++)
					assert_false(overlap(places[i], places[j]));
			}
		}
}

static void test_lanes_share_rows_fairly(void **state)
{
	const int depths[] = {1, 5, 3, 8, 2};
	int heights[5], used;

	(void)state;
	for (int rows = 0; rows < 40; rows++) {
		used = 0;
		view_lane_heights(depths, 5, rows, 4, heights);
		for (int i = 0; i < 5; i++) {
			assert_true(heights[i] <= depths[i] && heights[i] <= 4);
			assert_true(heights[i] >= (i < rows ? 1 : 0));
			used += heights[i];
		}
		assert_true(used <= rows);
	}
	assert_int_equal(used, 1 + 4 + 3 + 4 + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_never_overlap_and_stay_inside),
		cmocka_unit_test(test_timelines_never_overlap_and_stay_inside),
		cmocka_unit_test(test_tensors_never_overlap_and_stay_inside),
		cmocka_unit_test(test_blocks_keep_apart),
		cmocka_unit_test(test_lanes_share_rows_fairly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
