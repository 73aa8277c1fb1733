/*
 * Where the parts of the screen SQL are. Pure functions.
 */
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/sql/view_sql_internal.h"
#include "viewer/view_layout.h"

#define SIDE         44 /* columns of the views beside the result */
#define RESULT_LEAST 76
#define COLUMNS_ROWS 3 /* of the names of a view's columns */
#define COLUMNS_SIDE 6
#define VIEWS_LEAST  4 /* rows of the views above them */
#define MAIN_LEAST   3
#define ROW_LINES    4 /* of a row's cells, with the line above them */
#define RESULT_ROWS  6 /* of the result above those, with the headings */

/* Rows at the foot of @area; an area too low keeps all. */
static struct view_rect view_cut_foot(struct view_rect *area, int rows, int least)
{
	struct view_rect foot = *area;

	if (area->height < least + rows)
		rows = 0;
	area->height -= rows;
	foot.y += area->height;
	foot.height = rows;
	return foot;
}

struct view_sql_areas view__sql_areas(struct view_rect body, int prompt, bool wide)
{
	struct view_sql_areas areas = {.prompt = body, .heading = body, .main = body};
	const int rest = body.height - 1 - MAIN_LEAST;
	struct view_sides sides;

	areas.prompt.height = prompt < rest ? prompt : rest > 1 ? rest : min(1, body.height);
	areas.heading.y += areas.prompt.height;
	areas.heading.height = min(1, body.height - areas.prompt.height);
	areas.main.y = areas.heading.y + areas.heading.height;
	areas.main.height = body.height - areas.prompt.height - areas.heading.height;
	sides = view_split_sides(areas.main, wide ? SIDE : 0, RESULT_LEAST);
	if (wide && sides.right.width > 0) {
		areas.main = sides.left;
		areas.side = sides.right;
		areas.columns = view_cut_foot(&areas.side, COLUMNS_SIDE, VIEWS_LEAST);
	} else {
		areas.columns = view_cut_foot(&areas.main, COLUMNS_ROWS, VIEWS_LEAST);
	}
	return areas;
}

void view__sql_areas_row(struct view_sql_areas *areas)
{
	areas->row = view_cut_foot(&areas->main, ROW_LINES, RESULT_ROWS);
}

/* Lines of the text, a caret, and two of what is wrong. */
int view__sql_prompt_rows(const struct view_sql *screen, int width)
{
	const int lines = view_edit_lines(&screen->edit);

	(void)width;
	if (screen->trouble.status == ST_OK)
		return lines;
	return lines + (screen->wrong_at >= 0) + 1;
}
