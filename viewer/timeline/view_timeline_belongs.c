/*
 * What belongs to the span or step under the cursor: its layer, its program, how many tensors its
 * layer sends. Keys lead there (o); here it is said that there is something.
 *
 * Tables of a model's size are asked, once for each operation in a row.
 *
 * Threading: one thread. Ownership: none.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <string.h>

static void view_ask(struct view_belongs *belongs, struct prof_db *db)
{
	static const char sql[] =
		"WITH l AS (SELECT coalesce((SELECT layer FROM operations WHERE operation = :name "
		"LIMIT 1), (SELECT layer FROM layers WHERE layer = :name)) AS layer) "
		"SELECT layer, (SELECT min(program_id) FROM programs WHERE operation = :name), "
		"(SELECT count(*) FROM tensors t WHERE t.layer = l.layer) FROM l";
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db, sql, NULL) != ST_OK)
		return;
	prof_query_text(query, ":name", belongs->of);
	if (prof_query_step(query, &row, NULL) == ST_OK && row) {
		view_place_text(belongs->layer, prof_column_text(query, 0));
		belongs->program_id = prof_column_int(query, 1);
		belongs->tensors = belongs->layer[0] ? prof_column_int(query, 2) : 0;
	}
	prof_query_close(query);
}

const struct view_belongs *view__belongs(struct view_timeline *tl, struct prof_db *db,
					 const char *name)
{
	struct view_belongs *belongs = &tl->belongs;

	if (!name || !name[0] || strlen(name) >= sizeof(belongs->of))
		return NULL;
	if (strcmp(belongs->of, name) != 0) {
		*belongs = (struct view_belongs){.program_id = IPS_NULL};
		view_place_text(belongs->of, name);
		view_ask(belongs, db);
	}
	return belongs;
}
