/*
 * Which replica's numbers are shown: one's, or those of all, each told apart.
 *
 * Which replicas there are is learnt from the rows that pages read: no statement asks for it. The
 * list above the pages is made of sums, which are of all replicas.
 *
 * Threading: the session's worker; texts on the terminal's thread.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>

int view__replica_number(int64_t replica)
{
	return replica >= 0 && replica < VIEW_REPLICAS_MOST ? (int)replica : 0;
}

bool view__replica_shows(struct view_tensors *screen, int64_t replica)
{
	const int number = view__replica_number(replica);

	if (replica == number && number >= screen->replicas)
		screen->replicas = number + 1;
	return screen->replica < 0 || number == screen->replica;
}

enum status view__tensors_rows(struct prof_query **out, const struct view_tensors *screen, int side,
			       struct prof_db *db, const char *sql, int64_t from, int64_t to,
			       struct err *err)
{
	enum status status = prof_query_open(out, db, sql, err);

	if (status != ST_OK)
		return status;
	prof_query_int(*out, ":from", from);
	prof_query_int(*out, ":to", to);
	prof_query_int(*out, ":tensor", screen->id[side]);
	if (screen->rank != IPS_NULL)
		prof_query_int(*out, ":rank", screen->rank);
	return ST_OK;
}

enum view_answer view__replica_next(struct view_tensors *screen, struct view_context *context)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const struct view_tensor_capture *capture = view__values_capture(screen);

	if (screen->replicas < 2) {
		snprintf(context->message, sizeof(context->message),
			 screen->replicas == 1 ? "tensors are of one replica"
					       : "no replica is recorded of these rows");
		return VIEW_DRAW;
	}
	screen->replica = screen->replica + 1 < screen->replicas ? screen->replica + 1 : -1;
	if (row) {
		screen->wanted_step = row->step;
		screen->wanted_update = row->weight_update;
	}
	if (capture) {
		screen->values.wanted =
			capture->step != IPS_NULL ? capture->step : capture->weight_update;
		screen->values.at = -1;
	}
	if (screen->replica < 0)
		snprintf(context->message, sizeof(context->message), "all %d replicas",
			 screen->replicas);
	else
		snprintf(context->message, sizeof(context->message), "replica %d of %d",
			 screen->replica, screen->replicas);
	return VIEW_LOAD;
}

void view__replica_text(const struct view_tensors *screen, char *out, size_t size)
{
	out[0] = '\0';
	if (screen->replicas > 1 && screen->replica < 0)
		snprintf(out, size, ", all %d replicas", screen->replicas);
	else if (screen->replicas > 1)
		snprintf(out, size, ", replica %d", screen->replica);
}

void view__tensors_where(const struct view_tensors *screen, const char *key, const char *queue,
			 const char *context, struct str *out)
{
	str_addf(out, " WHERE %s = ", key);
	str_add_sql(out, screen->key);
	if (screen->has_queue && queue) {
		str_addf(out, " AND %s = ", queue);
		str_add_sql(out, screen->queue);
	}
	if (screen->rank != IPS_NULL)
		str_addf(out, " AND %srank = %lld", context, (long long)screen->rank);
	if (screen->replica >= 0)
		str_addf(out, " AND %sreplica = %d", context, screen->replica);
}
