/*
 * What else there is to say of the span under the cursor: its own time without that of the spans in
 * it, and the arrows that lead to it and away from it.
 *
 * Arrows are looked up by index. A recording that has none, since it goes on or was not given any,
 * is asked where it has few arrows.
 *
 * Threading: one thread. Ownership: texts are the details'.
 */
#include "viewer/timeline/view_timeline_internal.h"

#define COLUMNS    256 /* that a span's children are read for */
#define MOST_FLOWS 2   /* that are named */

int64_t view__self_ns(struct view_timeline *tl, struct prof_db *db, bool *exact)
{
	const struct prof_span *span = &tl->span;
	struct prof_bar *bars;
	int64_t inside = 0;
	int count;

	*exact = true;
	if (span->dur_ns == IPS_NULL || span->dur_ns <= 0 ||
	    prof_timeline_bars(db, span->track_id, span->start_ns, span->start_ns + span->dur_ns,
			       COLUMNS, 0, &tl->detail, &bars, &count, NULL) != ST_OK)
		return IPS_NULL;
	for (int i = 0; i < count; i++) {
		if (bars[i].depth != span->depth + 1)
			continue;
		inside += bars[i].busy_ns;
		*exact = *exact && bars[i].span_id != IPS_NULL;
	}
	return inside == 0 ? IPS_NULL : inside < span->dur_ns ? span->dur_ns - inside : 0;
}

static bool view_has_arrows(struct prof_db *db)
{
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db,
			    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND "
			    "name = 'flow_to') OR (SELECT ifnull(max(row_id), 0) FROM flow_rows) "
			    "< 10000",
			    NULL) != ST_OK)
		return false;
	if (prof_query_step(query, &row, NULL) != ST_OK)
		row = false;
	row = row && prof_column_int(query, 0) == 1;
	prof_query_close(query);
	return row;
}

const char *view__flow_text(struct view_timeline *tl, struct prof_db *db, bool in)
{
	static const char *const sql[] = {
		"SELECT s.name, s.track FROM flows f JOIN spans s ON s.span_id = f.to_span_id "
		"WHERE f.from_span_id = :span LIMIT 3",
		"SELECT s.name, s.track FROM flows f JOIN spans s ON s.span_id = f.from_span_id "
		"WHERE f.to_span_id = :span LIMIT 3"};
	struct prof_query *query;
	const char *text = NULL;
	bool row = false;

	if (!view_has_arrows(db) || prof_query_open(&query, db, sql[in], NULL) != ST_OK)
		return NULL;
	prof_query_int(query, ":span", tl->span.span_id);
	for (int i = 0; prof_query_step(query, &row, NULL) == ST_OK && row; i++) {
		const char *name = prof_column_text(query, 0), *track = prof_column_text(query, 1);

		if (i == MOST_FLOWS) {
			text = arena_printf(&tl->detail, "%s, ...", text ? text : "");
			break;
		}
		text = arena_printf(&tl->detail, "%s%s%s on %s", text ? text : "", text ? ", " : "",
				    name ? name : "?", track ? track : "?");
	}
	prof_query_close(query);
	return text;
}
