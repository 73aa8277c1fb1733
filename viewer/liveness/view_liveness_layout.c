/*
 * Where the chart of live bytes is, and where the variables.
 *
 * Threading: pure functions. Ownership: none.
 */
#include "viewer/liveness/view_liveness_internal.h"
#include "viewer/view_layout.h"

#define BESIDE_FROM  150 /* columns of body: the table stands beside the chart */
#define CHART_LEAST  3
#define LEGEND_FROM  6 /* rows of the chart's part */
#define LIFE_FROM    5
#define STRIP_FROM   8
#define HEADING_FROM 8 /* rows of body */

static struct view_rect view_take(struct view_rect *rest, int rows)
{
	struct view_rect out = *rest;

	out.height = rows;
	rest->y += rows;
	rest->height -= rows;
	return out;
}

/* The chart with what belongs to it, from its top to its foot. */
static void view_live_chart(struct view_liveness_layout *out, struct view_rect part, bool life)
{
	const int height = part.height;

	if (height >= LEGEND_FROM)
		out->legend = view_take(&part, 1);
	if (height >= STRIP_FROM)
		out->overview = view_take(&part, 1);
	out->chart = part;
	if (life && height >= LIFE_FROM) {
		out->chart.height--;
		out->life = (struct view_rect){part.x, part.y + out->chart.height, part.width, 1};
	}
}

struct view_liveness_layout view_liveness_areas(struct view_rect body, bool table)
{
	struct view_liveness_layout out = {0};
	struct view_rect rest = body;
	int rows;

	if (!table) {
		if (body.height >= HEADING_FROM)
			out.heading = view_take(&rest, 1);
		view_live_chart(&out, rest, false);
		return out;
	}
	if (body.width >= BESIDE_FROM) {
		const struct view_sides sides = view_split_sides(body, body.width / 2, 60);

		out.table = sides.right;
		if (body.height >= HEADING_FROM)
			out.heading = view_take(&out.table, 1);
		view_live_chart(&out, sides.left, true);
		return out;
	}
	rows = body.height >= HEADING_FROM ? body.height / 2 : body.height - CHART_LEAST - 1;
	if (rows < CHART_LEAST) {
		view_live_chart(&out, rest, false);
		return out;
	}
	view_live_chart(&out, view_take(&rest, rows), true);
	if (body.height >= HEADING_FROM)
		out.heading = view_take(&rest, 1);
	out.table = rest;
	return out;
}
