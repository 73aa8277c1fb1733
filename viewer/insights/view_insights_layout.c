/*
 * Where the list of insights is, and where what they say.
 *
 * Threading: pure functions. Ownership: none.
 */
#include "viewer/insights/view_insights_internal.h"

#define BESIDE_FROM 120 /* columns of body */
#define TOLD_LEAST  52  /* columns of what is told beside the list */
#define TOLD_MOST   92
#define ROWS_LEAST  5 /* of body, for both */

struct view_insights_layout view_insights_areas(struct view_rect body, int rows,
						enum view_insights_show show)
{
	struct view_insights_layout out = {.list = body};
	struct view_sides sides;
	struct view_split split;
	int columns, upper;

	if (show == VIEW_INSIGHTS_LIST)
		return out;
	if (show == VIEW_INSIGHTS_TOLD) {
		out.told = body;
		out.list = (struct view_rect){body.x, body.y, 0, 0};
		return out;
	}
	columns = body.width * 2 / 5;
	columns = columns < TOLD_LEAST ? TOLD_LEAST : columns > TOLD_MOST ? TOLD_MOST : columns;
	sides = view_split_sides(body, columns, BESIDE_FROM - TOLD_LEAST - 1);
	if (sides.right.width > 0) {
		out.list = sides.left;
		out.told = sides.right;
		out.rule =
			(struct view_rect){sides.left.x + sides.left.width, body.y, 1, body.height};
		out.beside = true;
		return out;
	}
	upper = rows < (body.height - 1) / 2 ? rows : (body.height - 1) / 2;
	split = view_split_rows(body, upper, body.height >= ROWS_LEAST ? 2 : body.height);
	out.list = split.upper;
	out.rule = split.heading;
	out.told = split.lower;
	return out;
}
