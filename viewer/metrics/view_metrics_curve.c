/*
 * The curves of one metric: which points the window holds, over what, and the cursor among them.
 *
 * Threading: where screens load; view__metrics_point() anywhere. Ownership: the state's arena.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "viewer/metrics/view_metrics_internal.h"

#define ZOOM_LEAST 1e-9 /* of all of x */

static const int view_means[] = {1, 10, 100};

int view__metrics_mean(const struct view_metrics *screen)
{
	return view_means[(size_t)screen->smoothing % ARRAY_LEN(view_means)];
}

/* ---- which metric ---------------------------------------------------------------------------- */

static const struct report_cell *view_key(const struct view_metrics *screen, int64_t row,
					  int column)
{
	return &screen->grid.table.cells[row * screen->grid.table.column_count + column];
}

struct view_metric *view__metrics_at(const struct view_metrics *screen, int side, int64_t row)
{
	const struct report_cell *rank = view_key(screen, row, VIEW_METRICS_RANK);
	const struct report_cell *per = view_key(screen, row, VIEW_METRICS_PER);

	return view_metrics_find(&screen->lists[side], rank->integer,
				 view_key(screen, row, VIEW_METRICS_MODE)->text,
				 view_key(screen, row, VIEW_METRICS_NAME)->text,
				 per->text && strcmp(per->text, "step") == 0);
}

/* ---- over what ------------------------------------------------------------------------------- */

static double view_x_of(const struct view_metric_point *point, enum view_metrics_x x, int64_t index)
{
	const int64_t numbers[VIEW_METRICS_XS] = {[VIEW_METRICS_STEP] = point->step,
						  [VIEW_METRICS_EPOCH] = point->epoch,
						  [VIEW_METRICS_TIME] = point->time_ns,
						  [VIEW_METRICS_ORDER] = index + 1};

	return numbers[x] == IPS_NULL ? (double)NAN : (double)numbers[x];
}

/* Does every point have such a number, and none a lesser one than the one before? Of epochs, each
 * a greater one: a curve of steps over epochs would be made of upright lines. */
static bool view_has_x(const struct view_metric *metric, enum view_metrics_x x)
{
	double before = -INFINITY;

	for (size_t i = 0; i < metric->point_count; i++) {
		const double at = view_x_of(&metric->points[i], x, (int64_t)i);

		if (isnan(at) || at < before || (x == VIEW_METRICS_EPOCH && at == before))
			return false;
		before = at;
	}
	return true;
}

static void view_choose_x(struct view_metrics *screen,
			  struct view_metric *const metrics[VIEW_METRICS_SIDES])
{
	for (int x = 0; x < VIEW_METRICS_XS; x++) {
		screen->has_x[x] = true;
		for (int side = 0; side < VIEW_METRICS_SIDES; side++)
			if (metrics[side] && !view_has_x(metrics[side], (enum view_metrics_x)x))
				screen->has_x[x] = false;
	}
	screen->x = screen->wanted;
	while (!screen->has_x[screen->x])
		screen->x = (enum view_metrics_x)((screen->x + 1) % VIEW_METRICS_XS);
}

static void view_ends(struct view_metrics *screen,
		      struct view_metric *const metrics[VIEW_METRICS_SIDES])
{
	screen->least_x = INFINITY;
	screen->greatest_x = -INFINITY;
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		const struct view_metric *metric = metrics[side];

		if (!metric || metric->point_count == 0)
			continue;
		screen->least_x =
			fmin(screen->least_x, view_x_of(&metric->points[0], screen->x, 0));
		screen->greatest_x = fmax(screen->greatest_x,
					  view_x_of(&metric->points[metric->point_count - 1],
						    screen->x, (int64_t)metric->point_count - 1));
	}
	if (screen->least_x > screen->greatest_x)
		screen->least_x = screen->greatest_x = 0;
}

/* ---- the window ------------------------------------------------------------------------------ */

static void view_settle_window(struct view_metrics *screen, bool follow)
{
	const double width = screen->to - screen->from;

	if (screen->zoomed && follow) {
		screen->to = screen->greatest_x;
		screen->from = screen->to - width;
	}
	if (screen->zoomed && width >= screen->greatest_x - screen->least_x)
		screen->zoomed = false;
	if (!screen->zoomed) {
		screen->from = screen->least_x;
		screen->to = screen->greatest_x;
	} else if (screen->from < screen->least_x) {
		screen->from = screen->least_x;
		screen->to = screen->from + width;
	} else if (screen->to > screen->greatest_x) {
		screen->to = screen->greatest_x;
		screen->from = screen->to - width;
	}
}

/* The window of a metric of which only some points are known: read again, from the last known row
 * before it to the first after it. */
static enum status view_read_detail(struct view_metrics *screen, struct view_context *context,
				    int side, struct view_metric **metric, struct err *err)
{
	const struct view_source *source =
		side == VIEW_METRICS_SOURCE ? context->source : context->target;
	struct view_metrics_list *detail = &screen->detail[side];
	const struct view_metric whole = **metric;
	int64_t from = 1, to = screen->lists[side].rows;
	enum status status;

	for (size_t i = 0; i < whole.point_count; i++) {
		const double x = view_x_of(&whole.points[i], screen->x, (int64_t)i);

		if (x <= screen->from)
			from = whole.points[i].row;
		if (x >= screen->to) {
			to = whole.points[i].row;
			break;
		}
	}
	view_metrics_fini(detail);
	if (arena_init(&detail->arena, 0))
		return err_nomem(err);
	detail->items = arena_alloc(&detail->arena, 1, sizeof(*detail->items));
	if (!detail->items)
		return err_nomem(err);
	detail->items[0] = whole;
	detail->items[0].points = NULL;
	detail->items[0].point_count = detail->items[0].capacity = 0;
	detail->count = 1;
	status = view_metrics_read(detail, source->db, context, from, to, err);
	if (status == ST_OK)
		*metric = &detail->items[0];
	return status;
}

/* Means of the last points, those that are numbers. */
static double *view_smooth(struct view_metrics *screen, const struct view_metric *metric,
			   size_t first, size_t count)
{
	const size_t width = (size_t)view__metrics_mean(screen);
	double *out = arena_alloc(&screen->arena, count + 1, sizeof(*out));

	for (size_t i = 0; out && i < count; i++) {
		const size_t end = first + i + 1;
		double sum = 0;
		int numbers = 0;

		for (size_t p = end > width ? end - width : 0; p < end; p++)
			if (isfinite(metric->points[p].value)) {
				sum += metric->points[p].value;
				numbers++;
			}
		out[i] = numbers > 0 ? sum / numbers : (double)NAN;
	}
	return out;
}

static enum status view_cut_curve(struct view_metrics *screen, const struct view_metric *metric,
				  struct view_metrics_curve *curve, struct err *err)
{
	size_t first = 0, end;

	while (first < metric->point_count &&
	       view_x_of(&metric->points[first], screen->x, (int64_t)first) < screen->from)
		first++;
	for (end = first; end < metric->point_count; end++)
		if (view_x_of(&metric->points[end], screen->x, (int64_t)end) > screen->to)
			break;
	curve->points = metric->points ? metric->points + first : NULL;
	curve->at = arena_alloc(&screen->arena, end - first + 1, sizeof(double));
	curve->values = arena_alloc(&screen->arena, end - first + 1, sizeof(double));
	if (!curve->at || !curve->values)
		return err_nomem(err);
	for (size_t i = first; i < end; i++) {
		curve->at[i - first] = view_x_of(&metric->points[i], screen->x, (int64_t)i);
		curve->values[i - first] = metric->points[i].value;
		curve->bad += !isfinite(metric->points[i].value);
	}
	curve->count = (int64_t)(end - first);
	curve->recorded = metric->count;
	if (view__metrics_mean(screen) > 1) {
		curve->smooth = view_smooth(screen, metric, first, end - first);
		if (!curve->smooth)
			return err_nomem(err);
	}
	return ST_OK;
}

static void view_settle_axes(struct view_metrics *screen)
{
	static const char *const titles[VIEW_METRICS_XS] = {[VIEW_METRICS_STEP] = "step",
							    [VIEW_METRICS_EPOCH] = "epoch",
							    [VIEW_METRICS_TIME] = "time",
							    [VIEW_METRICS_ORDER] = "value"};

	screen->axis_x = (struct view_axis){
		.low = screen->from,
		.high = screen->to,
		.quantity = screen->x == VIEW_METRICS_TIME ? REPORT_NS : REPORT_COUNT,
		.title = titles[screen->x]};
	if (screen->axis_x.low >= screen->axis_x.high)
		screen->axis_x.high = screen->axis_x.low + 1;
	screen->axis_y = (struct view_axis){.quantity = REPORT_REAL};
	screen->spread = (struct view_spread){0};
	view_axis_begin(&screen->axis_y);
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		const struct view_metrics_curve *curve = &screen->curves[side];

		view_axis_take(&screen->axis_y, curve->values, curve->count);
		view_spread_take(&screen->spread, curve->values, curve->count);
	}
	view_axis_scale(&screen->axis_y, &screen->spread, screen->scale);
	(void)view_axis_settle(&screen->axis_y);
}

enum status view__metrics_curves(struct view_metrics *screen, struct view_context *context,
				 struct err *err)
{
	struct view_metric *metrics[VIEW_METRICS_SIDES] = {NULL};
	enum status status = ST_OK;
	const int sides = context->target ? VIEW_METRICS_SIDES : 1;

	arena_reset(&screen->arena);
	memset(screen->curves, 0, sizeof(screen->curves));
	for (int side = 0; side < sides && screen->grid.count > 0; side++)
		metrics[side] = view__metrics_at(screen, side, screen->grid.order[screen->grid.at]);
	view_choose_x(screen, metrics);
	view_ends(screen, metrics);
	view_settle_window(screen, context->follow);
	for (int side = 0; side < sides && status == ST_OK; side++) {
		if (!metrics[side])
			continue;
		/* The number of a point is not known where some are left out. */
		if (screen->lists[side].sampled && screen->zoomed &&
		    screen->x != VIEW_METRICS_ORDER)
			status = view_read_detail(screen, context, side, &metrics[side], err);
		if (status == ST_OK)
			status = view_cut_curve(screen, metrics[side], &screen->curves[side], err);
	}
	view_settle_axes(screen);
	return status;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

/* The place in @curve of what is nearest to @x, the last of NaN; -1: it is empty. */
static int64_t view_nearest(const struct view_metrics_curve *curve, double x)
{
	int64_t low;

	if (curve->count == 0 || isnan(x))
		return curve->count - 1;
	SORTED_FIRST(low, 0, curve->count - 1, curve->at[low] < x);
	if (low > 0 && x - curve->at[low - 1] < curve->at[low] - x)
		low--;
	return low;
}

/* The curve that the cursor moves along. */
static const struct view_metrics_curve *view_main(const struct view_metrics *screen)
{
	const struct view_metrics_curve *source = &screen->curves[VIEW_METRICS_SOURCE];
	const struct view_metrics_curve *target = &screen->curves[VIEW_METRICS_TARGET];

	if (source->count == 0 || target->count == 0)
		return source->count > 0 ? source : target;
	return target->at[target->count - 1] > source->at[source->count - 1] ? target : source;
}

bool view__metrics_moment(const struct view_metrics *screen, double *x)
{
	const struct view_metrics_curve *curve = view_main(screen);
	const int64_t at = view_nearest(curve, screen->cursor);

	if (at >= 0)
		*x = curve->at[at];
	return at >= 0;
}

const struct view_metric_point *view__metrics_point(const struct view_metrics *screen, int side,
						    double *x)
{
	const struct view_metrics_curve *curve = &screen->curves[side];
	double moment;
	int64_t at;
	bool beyond;

	if (curve->count == 0 || !view__metrics_moment(screen, &moment))
		return NULL;
	at = view_nearest(curve, moment);
	*x = curve->at[at];
	beyond = moment < curve->at[0] || moment > curve->at[curve->count - 1];
	if ((*x < moment || *x > moment) && screen->x != VIEW_METRICS_TIME &&
	    (beyond || !screen->lists[side].sampled))
		return NULL;
	return &curve->points[at];
}

double view__metrics_column(const struct view_metrics *screen)
{
	const int width = screen->areas.chart.width - 8;
	const int64_t count = view_main(screen)->count;

	return width > 0 && count > width ? (double)(count / width) : 1;
}

void view__metrics_move(struct view_metrics *screen, int by)
{
	const struct view_metrics_curve *curve = view_main(screen);
	const int sign = by < 0 ? -1 : 1;
	int64_t from = view_nearest(curve, screen->cursor), to = from + by;

	if (from < 0)
		return;
	/* Past what stands at the same place. */
	while (to > 0 && to < curve->count - 1 && curve->at[to] == curve->at[from])
		to += sign;
	to = to < 0 ? 0 : to >= curve->count ? curve->count - 1 : to;
	screen->cursor = curve->at[to];
	/* At the end it stays there while the run goes on. */
	if (to == curve->count - 1 && curve->at[to] >= screen->greatest_x)
		screen->cursor = NAN;
}

/* ---- zooming --------------------------------------------------------------------------------- */

enum view_answer view__metrics_zoom(struct view_metrics *screen, enum view_request request)
{
	const double width = screen->to - screen->from;
	const double about = isnan(screen->cursor) ? screen->to : screen->cursor;
	const double all = screen->greatest_x - screen->least_x;
	double part = width > 0 ? (about - screen->from) / width : 0.5, wanted = width;

	if (request == VIEW_ZOOM_ALL_REQUEST || all <= 0) {
		screen->zoomed = false;
		return VIEW_LOAD;
	}
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	if (request == VIEW_ZOOM_IN_REQUEST)
		wanted = fmax(width / 2, fmax(all * ZOOM_LEAST, 1));
	else if (request == VIEW_ZOOM_OUT_REQUEST)
		wanted = fmin(width * 2, all);
	if (request == VIEW_PAGE_LEFT_REQUEST)
		screen->from -= width;
	else if (request == VIEW_PAGE_RIGHT_REQUEST)
		screen->from += width;
	else
		screen->from = about - part * wanted;
	screen->to = screen->from + wanted;
	screen->zoomed = true;
	if (request == VIEW_PAGE_LEFT_REQUEST || request == VIEW_PAGE_RIGHT_REQUEST) {
		view_settle_window(screen, false);
		screen->cursor = screen->from + part * (screen->to - screen->from);
	}
	return VIEW_LOAD;
}
