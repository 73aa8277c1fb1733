/*
 * Metrics joined to the other screens, and the queries behind them.
 *
 * Threading: place, offers and query where screens draw, go where they load.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "viewer/metrics/view_metrics_internal.h"

static const char *view_text_of(const struct view_metrics *screen, const char *column)
{
	const struct report_cell *cell = view_grid_cell(&screen->grid, column);

	return cell && cell->type == PROF_TEXT ? cell->text : NULL;
}

bool view__metrics_place(const void *state, const struct view_context *context,
			 struct view_place *out)
{
	const struct view_metrics *screen = state;
	const struct report_cell *rank = view_grid_cell(&screen->grid, "rank");
	const struct view_metric_point *point;
	double at;

	(void)context;
	view_place_clear(out);
	if (screen->grid.count == 0)
		return false;
	view_place_text(out->metric, view_text_of(screen, "metric"));
	view_place_text(out->mode, view_text_of(screen, "mode"));
	if (rank && rank->type == PROF_INT)
		out->rank = rank->integer;
	point = view__metrics_point(screen, VIEW_METRICS_SOURCE, &at);
	if (!point)
		return true;
	out->epoch = point->epoch;
	out->execution = point->execution;
	out->step = point->step;
	out->time_ns = point->time_ns;
	view_place_text(out->clock, "host");
	return true;
}

bool view__metrics_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->metric[0] && place->step != IPS_NULL)
		snprintf(out, size, "%s at step %lld", place->metric, (long long)place->step);
	else if (place->metric[0] && place->epoch != IPS_NULL)
		snprintf(out, size, "the curve of %s, epoch %lld", place->metric,
			 (long long)place->epoch);
	else if (place->metric[0])
		snprintf(out, size, "the curve of %s", place->metric);
	else if (place->step != IPS_NULL)
		snprintf(out, size, "metrics at step %lld", (long long)place->step);
	else
		return false;
	return true;
}

/* How well row @row fits @place; 0: not at all. */
static int view_fits(const struct view_metrics *screen, const struct view_place *place, int64_t row)
{
	const struct report_cell *cells =
		&screen->grid.table.cells[row * screen->grid.table.column_count];
	const char *mode = cells[VIEW_METRICS_MODE].text, *name = cells[VIEW_METRICS_NAME].text;
	const bool step = strcmp(cells[VIEW_METRICS_PER].text, "step") == 0;
	int fits = 1;

	if (place->metric[0] && (!name || strcmp(place->metric, name) != 0))
		return 0;
	if (place->mode[0] && (!mode || strcmp(place->mode, mode) != 0))
		return 0;
	if (!place->metric[0] && !step)
		return 0;
	fits += step == (place->step != IPS_NULL);
	fits += place->rank == cells[VIEW_METRICS_RANK].integer;
	return fits;
}

enum status view__metrics_go(void *state, struct view_context *context,
			     const struct view_place *place, struct err *err)
{
	struct view_metrics *screen = state;
	int64_t best = -1;
	int fit = 0;
	enum status status;

	view_grid_filter(&screen->grid, "");
	for (int64_t i = 0; i < screen->grid.count; i++) {
		const int fits = view_fits(screen, place, screen->grid.order[i]);

		if (fits > fit) {
			fit = fits;
			best = i;
		}
	}
	if (best < 0)
		return err_set(err, ST_NOTFOUND, "no metric of that %s is recorded",
			       place->metric[0] ? "name" : "mode");
	screen->grid.at = best;
	screen->zoomed = false;
	screen->cursor = NAN;
	if (place->step != IPS_NULL)
		screen->wanted = VIEW_METRICS_STEP;
	status = view__metrics_curves(screen, context, err);
	if (status != ST_OK)
		return status;
	if (screen->x == VIEW_METRICS_STEP && place->step != IPS_NULL)
		screen->cursor = (double)place->step;
	else if (screen->x == VIEW_METRICS_EPOCH && place->epoch != IPS_NULL)
		screen->cursor = (double)place->epoch;
	return ST_OK;
}

static void view_add_quoted(struct str *out, const char *column, const char *text)
{
	str_addf(out, text ? " AND %s = " : " AND %s IS NULL", column);
	if (text)
		str_add_sql(out, text);
}

void view__metrics_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_metrics *screen = state;
	const struct report_cell *rank = view_grid_cell(&screen->grid, "rank");
	const char *per = view_text_of(screen, "per");

	(void)context;
	str_add(out, "SELECT rank, mode, name, per_step, count, last_value, least, greatest\n"
		     "FROM metric_sums ORDER BY mode, name, per_step, rank;\n");
	if (screen->grid.count == 0 || !rank)
		return;
	str_addf(out,
		 "SELECT epoch, execution, step, time_ns, value FROM metrics\n"
		 "WHERE rank = %lld AND step IS %sNULL",
		 (long long)rank->integer, per && strcmp(per, "step") == 0 ? "NOT " : "");
	view_add_quoted(out, "mode", view_text_of(screen, "mode"));
	view_add_quoted(out, "name", view_text_of(screen, "metric"));
	str_add(out, ";\n");
}
