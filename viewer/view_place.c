/*
 * Places: cleared, compared, parsed, and completed by lookups.
 *
 * Threading: that of the database handle.
 */
#include "viewer/view_place.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "profiler/prof_timeline.h"
#include "viewer/view_source.h"

void view_place_clear(struct view_place *place)
{
	memset(place, 0, sizeof(*place));
#define VIEW_PLACE_UNKNOWN(name) place->name = IPS_NULL;
	VIEW_PLACE_NUMBERS(VIEW_PLACE_UNKNOWN)
#undef VIEW_PLACE_UNKNOWN
}

void view_place_text(char out[VIEW_PLACE_NAME], const char *text)
{
	str_copy(out, VIEW_PLACE_NAME, text ? text : "");
}

/* ---- rules of completion --------------------------------------------------------------------- */

#define KIND_OF_PHASE "iif(:phase = 'F', 'activation', 'gradient')"
#define WHOLE_STAGE                                                                                \
	":operation IS NULL AND :layer IS NULL AND :key IS NULL AND :variable_id IS NULL "         \
	"AND :phase IS NOT NULL"

/* Rules of completion: if field `from` is known, the columns of the query's first row fill the
 * fields that are unknown. The order lets each rule use what the earlier ones found. */
static const struct view_place_rule {
	const char *from, *sql;
} view_place_rules[] = {
	/* Rows of a view, as an insight names them, to a time: sums lead to the pipeline execution
	 * with the largest idle fraction among the first 2000; hits of a rule to the first hit. */
	{"view",
	 "SELECT clock, mode, execution, weight_update FROM (SELECT * FROM bubbles LIMIT 2000) "
	 "WHERE :view IN ('bubbles', 'bubble_sums', 'stage_sums', 'stage_timings', "
	 "'time_split', 'device_steps') AND clock = coalesce(:clock, 'device') "
	 "AND mode = coalesce(:mode, 'train') AND weight_update > 0 "
	 "AND :weight_update IS NULL AND :step IS NULL AND :time_ns IS NULL "
	 "ORDER BY idle_fraction DESC LIMIT 1"},
	{"view", "SELECT first_step AS step FROM executions WHERE :view = 'executions' "
		 "AND execution = :execution AND mode = coalesce(:mode, 'train') "
		 "AND :step IS NULL LIMIT 1"},
	{"rule", "SELECT queue, key, layer, stage, phase, rank, mode, execution, step, "
		 "weight_update, microbatch, replica, time_ns, 'host' AS clock FROM (SELECT * "
		 "FROM health LIMIT 5000) WHERE :view = 'health' AND rule = :rule AND "
		 ":time_ns IS NULL ORDER BY time_ns LIMIT 1"},
	{"program_id", "SELECT operation FROM programs WHERE program_id = :program_id"},
	{"variable_id", "SELECT layer, ipu, first_program_step AS program_step FROM variables "
			"WHERE variable_id = :variable_id"},
	{"key", "SELECT queue, layer, stage FROM tensors WHERE key = :key "
		"ORDER BY queue IS NOT :queue LIMIT 1"},
	/* A key that no tensor has may be a metric's name: rules on the loss. */
	{"key", "SELECT name AS metric FROM metric_sums WHERE name = :key AND NOT EXISTS (SELECT 1 "
		"FROM tensors WHERE key = :key) LIMIT 1"},
	/* The operation that makes the tensor: the last of its layer's forward operations, or the
	 * one on its variable. */
	{"key", "SELECT operation FROM (SELECT o.operation, o.phase, o.row_id, t.kind, "
		"substr(t.key, 1, instr(t.key || ':', ':') - 1) AS variable "
		"FROM tensors t JOIN operation_rows o ON o.layer = t.layer "
		"WHERE t.key = :key AND t.queue IS :queue) ORDER BY phase IS NOT coalesce(:phase, "
		"CASE kind WHEN 'activation' THEN 'F' WHEN 'gradient' THEN 'B' ELSE 'U' END), "
		"CASE WHEN kind = 'activation' THEN -row_id "
		"WHEN operation LIKE '%bias%/Grad' THEN variable NOT LIKE '%/bias' "
		"WHEN operation LIKE '%/GradW' THEN variable LIKE '%/bias' "
		"WHEN operation LIKE '%/' || variable THEN 1 ELSE 2 END, row_id LIMIT 1"},
	{"operation", "SELECT layer, stage, phase FROM operations WHERE operation = :operation"},
	{"operation", "SELECT program_id FROM programs WHERE operation = :operation "
		      "ORDER BY program_id LIMIT 1"},
	{"layer", "SELECT stage FROM layers WHERE layer = :layer"},
	{"layer", "SELECT operation FROM operations WHERE layer = :layer "
		  "ORDER BY phase IS NOT :phase, cycles DESC LIMIT 1"},
	{"layer", "SELECT queue, key FROM tensors WHERE layer = :layer AND :key IS NULL "
		  "ORDER BY kind IS NOT " KIND_OF_PHASE ", "
		  "instr(:operation, substr(key, 1, instr(key || ':', ':') - 1)) IS 0, "
		  "(key LIKE '%/bias:%') IS NOT (:operation LIKE '%bias%'), key LIMIT 1"},
	/* With more than 5000 hits, assume that every layer has some. */
	{"layer", "SELECT CASE WHEN (SELECT max(row_id) FROM health_rows) > 5000 THEN 1 "
		  "ELSE EXISTS (SELECT 1 FROM health WHERE layer = :layer) END AS layer_hits"},
	/* The program and program step of a whole stage. */
	{"stage", "SELECT program_id FROM programs WHERE " WHOLE_STAGE " AND parent_id IS NULL "
		  "AND name = 'Stage' || :stage || '/' || CASE :mode WHEN 'evaluate' THEN "
		  "'Evaluate' WHEN 'predict' THEN 'Predict' ELSE :phase END LIMIT 1"},
	{"stage", "SELECT program_step FROM liveness WHERE " WHOLE_STAGE " AND program_id IN "
		  "(SELECT program_id FROM programs WHERE operation IN (SELECT operation "
		  "FROM operations WHERE stage = :stage AND phase = :phase)) "
		  "ORDER BY not_always_live_bytes DESC LIMIT 1"},
	{"stage", "SELECT queue FROM tensors WHERE " WHOLE_STAGE " AND stage = :stage "
		  "AND (:step IS NOT NULL OR :weight_update IS NOT NULL) "
		  "ORDER BY kind IS NOT " KIND_OF_PHASE " LIMIT 1"},
	/* A stage need not be on the IPU of its number, and each replica has its own IPUs. */
	{"replica", "SELECT ipu FROM stage_sums WHERE replica = :replica AND stage = :stage "
		    "AND (:rank IS NULL OR rank = :rank) LIMIT 1"},
	{"program_step", "SELECT program_id FROM liveness WHERE program_step = :program_step "
			 "ORDER BY ipu IS NOT :ipu LIMIT 1"},
};

static const struct view_place_field view_place_table[] = {
#define VIEW_PLACE_NUMBER(name) {#name, offsetof(struct view_place, name), false},
	VIEW_PLACE_NUMBERS(VIEW_PLACE_NUMBER)
#undef VIEW_PLACE_NUMBER
#define VIEW_PLACE_TEXT(name) {#name, offsetof(struct view_place, name), true},
		VIEW_PLACE_TEXTS(VIEW_PLACE_TEXT)
#undef VIEW_PLACE_TEXT
};

const struct view_place_field *view_place_fields(int *count)
{
	*count = ARRAY_LEN(view_place_table);
	return view_place_table;
}

const struct view_place_field *view_place_field(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(view_place_table); i++)
		if (strcmp(view_place_table[i].name, name) == 0)
			return &view_place_table[i];
	return NULL;
}

int64_t *view_place_number(struct view_place *place, const struct view_place_field *field)
{
	return (int64_t *)(void *)((char *)place + field->offset);
}

char *view_place_chars(struct view_place *place, const struct view_place_field *field)
{
	return (char *)place + field->offset;
}

bool view_place_knows(const struct view_place *place, const struct view_place_field *field)
{
	const char *at = (const char *)place + field->offset;

	return field->text ? at[0] != '\0' : *(const int64_t *)(const void *)at != IPS_NULL;
}

bool view_place_same(const struct view_place *a, const struct view_place *b)
{
	for (size_t i = 0; i < ARRAY_LEN(view_place_table); i++) {
		const struct view_place_field *field = &view_place_table[i];
		const char *left = (const char *)a + field->offset;
		const char *right = (const char *)b + field->offset;

		if (field->text ? strcmp(left, right) != 0
				: memcmp(left, right, sizeof(int64_t)) != 0)
			return false;
	}
	return strcmp(a->sql, b->sql) == 0;
}

/* Find where the next " name=" begins, or the end of @text. */
static const char *view_place_pair_end(const char *text)
{
	for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
		const size_t name = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");

		if (name > 0 && at[1 + name] == '=')
			return at;
	}
	return text + strlen(text);
}

void view_place_keys(struct view_place *place, const char *keys)
{
	char name[VIEW_PLACE_NAME], value[VIEW_PLACE_NAME];
	const struct view_place_field *field;
	const char *equal, *end;
	long long number;

	while (keys && (equal = strchr(keys, '='))) {
		end = view_place_pair_end(equal);
		snprintf(name, sizeof(name), "%.*s", (int)(equal - keys), keys);
		snprintf(value, sizeof(value), "%.*s", (int)(end - equal - 1), equal + 1);
		field = view_place_field(name);
		if (field && !view_place_knows(place, field)) {
			if (field->text)
				view_place_text(view_place_chars(place, field), value);
			else if (str_to_int(value, &number))
				*view_place_number(place, field) = number;
		}
		keys = *end ? end + 1 : NULL;
	}
}

/* Bind the parameters of @sql: each has the name of a field. */
static void view_place_bind(struct view_place *place, struct prof_query *query, const char *sql)
{
	char name[32];

	for (size_t i = 0; i < ARRAY_LEN(view_place_table); i++) {
		const struct view_place_field *field = &view_place_table[i];
		const char *at;

		snprintf(name, sizeof(name), ":%s", field->name);
		at = strstr(sql, name);
		if (!at || (at[strlen(name)] >= 'a' && at[strlen(name)] <= 'z') ||
		    at[strlen(name)] == '_' || !view_place_knows(place, field))
			continue; /* unknown: NULL */
		if (field->text)
			prof_query_text(query, name, view_place_chars(place, field));
		else
			prof_query_int(query, name, *view_place_number(place, field));
	}
}

/* Fill the unknown fields of @place from the columns of the same name in the first row of @sql. */
static void view_place_query(struct view_place *place, struct prof_db *db, const char *sql,
			     struct err *err)
{
	struct prof_query *query = view_query_open(db, sql, err);

	view_place_bind(place, query, sql);
	if (view_query_next(query, err))
		for (int c = 0; c < prof_column_count(query); c++) {
			const struct view_place_field *field =
				view_place_field(prof_column_name(query, c));

			if (!field || view_place_knows(place, field))
				continue;
			if (field->text)
				view_place_text(view_place_chars(place, field),
						prof_column_text(query, c));
			else
				*view_place_number(place, field) = prof_column_int(query, c);
		}
	prof_query_close(query);
}

/* ---- hits of a step -------------------------------------------------------------------------- */

/* Is hit :row before the place? A hit without an execution counts as the nearest earlier one with
 * an execution, at most 64 rows back. */
static const char view_place_before_sql[] =
	"SELECT c.execution < :execution OR (c.execution = :execution AND "
	"c.weight_update < :weight_update) FROM health_rows h JOIN contexts c USING (context_id) "
	"WHERE h.row_id BETWEEN :row - 64 AND :row AND c.execution IS NOT NULL "
	"ORDER BY h.row_id DESC LIMIT 1";

/* The best match among the 2000 hits from :row on. */
static const char view_place_hit_sql[] =
	"SELECT h.time_ns FROM (SELECT * FROM health_rows WHERE row_id >= :row "
	"ORDER BY row_id LIMIT 2000) h JOIN contexts c USING (context_id) "
	"LEFT JOIN tensor_rows i USING (tensor_id) WHERE c.execution = :execution "
	"AND iif(:step IS NULL, c.weight_update = :weight_update, c.step = :step) "
	"AND (:rank IS NULL OR c.rank = :rank) ORDER BY coalesce(c.stage, i.stage) IS NOT :stage, "
	"c.phase IS NOT :phase, h.row_id LIMIT 1";

/* Return the first column of the first row of @sql, whose :row is @row; @none if there is no row or
 * it is NULL. */
static int64_t view_place_value(struct view_place *place, struct prof_db *db, const char *sql,
				int64_t row, int64_t none, struct err *err)
{
	struct prof_query *query = view_query_open(db, sql, err);
	int64_t value = none;

	view_place_bind(place, query, sql);
	prof_query_int(query, ":row", row);
	if (view_query_next(query, err) && prof_column_type(query, 0) == PROF_INT)
		value = prof_column_int(query, 0);
	prof_query_close(query);
	return value;
}

/* Find the time of the place's hit. Hits are in order of time, so of executions and updates, and
 * there may be millions: bisect. */
static void view_place_of_hit(struct view_place *place, struct prof_db *db, struct err *err)
{
	int64_t at, last;

	if (place->rule[0] || place->execution == IPS_NULL ||
	    (place->step == IPS_NULL && place->weight_update == IPS_NULL))
		return;
	last = view_query_number(db, "SELECT max(row_id) FROM health_rows", err);
	if (last < 1)
		return;
	SORTED_FIRST(at, 1, last, view_place_value(place, db, view_place_before_sql, at, 0, err));
	place->hit_ns = view_place_value(place, db, view_place_hit_sql, at, IPS_NULL, err);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void view_place_of_span(struct view_place *place, struct prof_db *db, struct err *err)
{
	struct arena arena = {0};
	struct prof_span span;

	if (prof_timeline_span(db, place->span_id, &arena, &span, err) == ST_OK) {
		const int64_t end =
			span.dur_ns == IPS_NULL ? IPS_NULL : span.start_ns + span.dur_ns;
		const struct {
			int64_t *field, value;
		} numbers[] = {{&place->execution, span.execution},
			       {&place->epoch, span.epoch},
			       {&place->weight_update, span.weight_update},
			       {&place->step, span.step},
			       {&place->microbatch, span.microbatch},
			       {&place->replica, span.replica},
			       {&place->ipu, span.ipu},
			       {&place->stage, span.stage},
			       {&place->track_id, span.track_id},
			       {&place->time_ns, span.start_ns},
			       {&place->until_ns, end}};

		for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
			if (*numbers[i].field == IPS_NULL)
				*numbers[i].field = numbers[i].value;
		view_place_text(place->clock, span.clock);
		view_place_text(place->mode, span.mode);
		view_place_text(place->operation, span.operation);
		if (span.phase)
			snprintf(place->phase, sizeof(place->phase), "%c", span.phase);
	}
	arena_fini(&arena);
	if (err->status == ST_NOTFOUND)
		err->status = ST_OK;
}

enum status view_place_complete(struct view_place *place, struct prof_db *db, struct err *err)
{
	struct err own;

	err = err_start(err, &own);
	if (place->span_id != IPS_NULL)
		view_place_of_span(place, db, err);
	for (size_t i = 0; i < ARRAY_LEN(view_place_rules); i++)
		if (view_place_knows(place, view_place_field(view_place_rules[i].from)))
			view_place_query(place, db, view_place_rules[i].sql, err);
	view_place_of_hit(place, db, err);
	return err->status;
}
