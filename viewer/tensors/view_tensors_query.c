/*
 * The statements behind the screen Tensors. Of two reports the same one goes to both.
 *
 * Threading: the terminal's thread.
 */
#include "viewer/tensors/view_tensors_internal.h"

static void query_order(struct str *out, const char *columns)
{
	str_addf(out, " ORDER BY %s;\n", columns);
}

static void query_curve(const struct view_tensors *screen, const char *queue, struct str *out)
{
	str_addf(out,
		 "SELECT step, weight_update, replica, time_ns, n_nan, n_pos_inf, n_neg_inf, %s "
		 "FROM tensor_stats",
		 view__statistic(screen));
	view__tensors_where(screen, "key", queue, "", out);
	query_order(out, "weight_update, step, replica, time_ns");
}

static void query_histogram(const struct view_tensors *screen, const char *queue, struct str *out)
{
	str_add(out, "SELECT mode, weight_update, step, microbatch, bin, low, high, sum(count) AS "
		     "count FROM tensor_histograms");
	view__tensors_where(screen, "key", queue, "", out);
	str_add(out, " GROUP BY mode, weight_update, step, microbatch, bin");
	query_order(out, "mode, weight_update, step, microbatch, bin");
}

static void query_number(struct str *out, const char *column, int64_t number)
{
	if (number == IPS_NULL)
		str_addf(out, " AND %s IS NULL", column);
	else
		str_addf(out, " AND %s = %lld", column, (long long)number);
}

/* The pieces of the capture that is shown, and which captures there are. */
static void query_values(const struct view_tensors *screen, const char *queue, struct str *out)
{
	const struct view_tensor_capture *capture = view__values_capture(screen);

	if (capture) {
		str_add(out,
			"SELECT step, weight_update, microbatch, replica, chunk, dtype, shape, "
			"bytes, data FROM captures");
		view__tensors_where(screen, "key", queue, "", out);
		query_number(out, "step", capture->step);
		if (capture->step == IPS_NULL)
			query_number(out, "weight_update", capture->weight_update);
		if (screen->replica < 0)
			query_number(out, "replica", capture->replica);
		str_addf(out, " AND mode IS %s%s%s", capture->mode[0] ? "'" : "NULL", capture->mode,
			 capture->mode[0] ? "'" : "");
		query_order(out, "chunk");
	}
	str_add(out, "SELECT mode, weight_update, step, microbatch, replica, dtype, shape, "
		     "sum(bytes) AS bytes FROM captures");
	view__tensors_where(screen, "key", queue, "", out);
	str_add(out, " GROUP BY mode, weight_update, step, microbatch, replica");
	query_order(out, "mode, weight_update, step, replica");
}

static void query_rules(const struct view_tensors *screen, const char *queue, struct str *out)
{
	(void)queue;
	str_add(out, "SELECT * FROM health");
	view__tensors_where(screen, "key", NULL, "", out);
	query_order(out, "time_ns");
}

static void query_rows(const struct view_tensors *screen, const char *queue, struct str *out)
{
	str_add(out, "SELECT * FROM tensor_stats");
	view__tensors_where(screen, "key", queue, "", out);
	query_order(out, "time_ns");
}

void view__tensors_query(const void *state, const struct view_context *context, struct str *out)
{
	static void (*const queries[])(const struct view_tensors *, const char *, struct str *) = {
		[VIEW_TENSOR_CURVE] = query_curve,   [VIEW_TENSOR_HISTOGRAM] = query_histogram,
		[VIEW_TENSOR_VALUES] = query_values, [VIEW_TENSOR_RULES] = query_rules,
		[VIEW_TENSOR_ROWS] = query_rows,
	};
	const struct view_tensors *screen = state;

	if (!screen->opened) {
		view__tensors_list_sql(screen, context->target != NULL, out);
		query_order(out, "greatest DESC");
	}
	if (screen->key[0])
		queries[screen->page](screen, context->target ? NULL : "queue", out);
}
