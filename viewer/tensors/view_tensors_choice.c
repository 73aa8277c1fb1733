/*
 * What is chosen on the Tensors screen: the statistic, the replica, the capture; and how the rows
 * of the chosen tensor are opened. The files of all pages rest on this one.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the screen's.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- the statistic and the replica ----------------------------------------------------------- */

const char *view__statistic(const struct view_tensors *screen)
{
	int count;
	const char *const *names = report_tensor_columns(&count);

	return names[screen->statistic % count];
}

bool view__replica_shows(struct view_tensors *screen, int64_t replica)
{
	const int number = view__replica_number(replica);

	if (replica == number && number >= screen->replicas)
		screen->replicas = number + 1;
	return screen->replica < 0 || number == screen->replica;
}

void view__replica_text(const struct view_tensors *screen, char *out, size_t size)
{
	out[0] = '\0';
	if (screen->replicas > 1 && screen->replica < 0)
		snprintf(out, size, ", all %d replicas", screen->replicas);
	else if (screen->replicas > 1)
		snprintf(out, size, ", replica %d", screen->replica);
}

/* ---- rows of the tensor ---------------------------------------------------------------------- */

struct prof_query *view__tensors_rows(const struct view_tensors *screen, int side,
				      struct prof_db *db, const char *sql, int64_t from, int64_t to,
				      struct err *err)
{
	struct prof_query *query = view_query_open(db, sql, err);

	prof_query_int(query, ":from", from);
	prof_query_int(query, ":to", to);
	prof_query_int(query, ":tensor", screen->id[side]);
	if (screen->rank != IPS_NULL)
		prof_query_int(query, ":rank", screen->rank);
	return query;
}

/* ---- the capture ----------------------------------------------------------------------------- */

const struct view_tensor_capture *view__values_capture(const struct view_tensors *screen)
{
	const struct view_tensor_values *values = &screen->values;

	return values->at >= 0 && values->at < values->both.count ? &values->both.list[values->at]
								  : NULL;
}

int view__values_parts(const struct view_tensor_values *values)
{
	const struct view_tensor_matrix *source = &values->part[VIEW_OF_SOURCE];
	const struct view_tensor_matrix *target = &values->part[VIEW_OF_TARGET];
	bool same;

	if (source->ndim == 0 || target->ndim == 0)
		return source->ndim > 0 || target->ndim > 0;
	same = source->ndim == target->ndim &&
	       memcmp(source->shape, target->shape,
		      (size_t)source->ndim * sizeof(source->shape[0])) == 0;
	return same ? VIEW_TENSOR_SHARES : 2;
}
