/*
 * Merging: the rows. See prof_merge.h.
 *
 * Tables are copied by statements made of their columns and of the rules below, which say what
 * happens to a column: most rules are by name, as a name means the same everywhere.
 */
#include "profiler/prof_merge_internal.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_sql.h"

enum rule {
	RULE_PLAIN,
	RULE_OWN, /* SQLite numbers the rows anew */
	RULE_BASE,
	RULE_RANK,
	RULE_WHERE, /* a context, or the one that says the rank alone */
	RULE_MAP,   /* looked up in a map of ids */
	RULE_HOST,  /* a time of the host clock */
	RULE_CLOCK, /* a time of the clock that the row names */
	RULE_TRACK  /* a time of its track's clock */
};

struct column_rule {
	const char *table; /* NULL: any */
	const char *column;
	enum rule rule;
	const char *with; /* the base's name, or the map */
};

/* The first that fits counts. */
static const struct column_rule rules[] = {
	{"health_rows", "row_id", RULE_BASE, ":health"},
	{"health_sum_rows", "first_row", RULE_BASE, ":health"},
	{"tensor_stat_rows", "row_id", RULE_BASE, ":stats"},
	{"tensor_sum_rows", "first_row", RULE_BASE, ":stats"},
	{"tensor_sum_rows", "last_row", RULE_BASE, ":stats"},
	{"tensor_sum_rows", "last_ns", RULE_HOST, NULL},
	{"program_rows", "parent_id", RULE_BASE, ":program"},
	{"program_rows", "call_target", RULE_BASE, ":program"},
	{"variable_rows", "ipu", RULE_BASE, ":ipu"},
	{"variable_tile_rows", "ipu", RULE_BASE, ":ipu"},
	{"tile_memory_rows", "ipu", RULE_BASE, ":ipu"},
	{"liveness_rows", "ipu", RULE_BASE, ":ipu"},
	{"execution_rows", "start_ns", RULE_HOST, NULL},
	{"execution_sum_rows", "first_start_ns", RULE_HOST, NULL},
	{"execution_sum_rows", "last_end_ns", RULE_HOST, NULL},
	{"span_rows", "start_ns", RULE_TRACK, NULL},
	{"instant_rows", "time_ns", RULE_TRACK, NULL},
	{"counter_rows", "time_ns", RULE_TRACK, NULL},
	{NULL, "row_id", RULE_OWN, NULL},
	{NULL, "sum_id", RULE_OWN, NULL},
	{NULL, "rank", RULE_RANK, NULL},
	{"contexts", "context_id", RULE_BASE, ":context"},
	{"span_rows", "context_id", RULE_BASE, ":context"}, /* the track says the rank */
	{"instant_rows", "context_id", RULE_BASE, ":context"},
	{NULL, "context_id", RULE_WHERE, NULL},
	{NULL, "track_id", RULE_BASE, ":track"},
	{NULL, "span_id", RULE_BASE, ":span"},
	{NULL, "from_span_id", RULE_BASE, ":span"},
	{NULL, "to_span_id", RULE_BASE, ":span"},
	{NULL, "trace_id", RULE_BASE, ":trace"},
	{NULL, "program_id", RULE_BASE, ":program"},
	{NULL, "variable_id", RULE_BASE, ":variable"},
	{NULL, "site_id", RULE_MAP, "site_map"},
	{NULL, "tensor_id", RULE_MAP, "tensor_map"},
	{NULL, "category_id", RULE_MAP, "text_map"},
	{NULL, "name_id", RULE_MAP, "text_map"},
	{NULL, "operation_id", RULE_MAP, "text_map"},
	{NULL, "region_id", RULE_MAP, "text_map"},
	{NULL, "type_id", RULE_MAP, "text_map"},
	{NULL, "schedule_id", RULE_MAP, "text_map"},
	{NULL, "rule_id", RULE_MAP, "text_map"},
	{NULL, "time_ns", RULE_HOST, NULL},
	{NULL, "first_ns", RULE_HOST, NULL},
	{NULL, "last_time_ns", RULE_HOST, NULL},
	{NULL, "start_ns", RULE_CLOCK, NULL},
	{NULL, "first_start_ns", RULE_CLOCK, NULL},
	{NULL, "last_end_ns", RULE_CLOCK, NULL},
};

/* What was compiled: no rank in it, so one copy where sources have the same. */
static const char *const model_tables[] = {
	"layer_rows",         "operation_rows",   "plan_rows",
	"program_rows",       "compute_set_rows", "variable_rows",
	"variable_tile_rows", "tile_memory_rows", "liveness_rows",
};

static const char *const row_tables[] = {
	"contexts", /* first */
	"span_rows",
	"span_arg_rows",
	"instant_rows",
	"flow_rows",
	"counter_rows",
	"execution_rows",
	"device_traces",
	"device_step_rows",
	"device_run_rows",
	"stage_timing_rows",
	"bubble_rows",
	"tensor_tier_rows",
	"tensor_stat_rows",
	"tensor_histogram_rows",
	"tensor_epoch_rows",
	"capture_rows",
	"metric_rows",
	"health_rows",
	"first_nonfinite_rows",
	"nonfinite_trail_rows",
	"overhead_rows",
	"time_split_rows",
	"stage_sum_rows",
	"bubble_sum_rows",
	"execution_sum_rows",
	"metric_sum_rows",
	"health_sum_rows",
	"overhead_sum_rows",
	"tensor_sum_rows",
};

/* ---- the statements -------------------------------------------------------------------------- */

static const struct column_rule *rule_of(const char *table, const char *column)
{
	static const struct column_rule plain = {NULL, NULL, RULE_PLAIN, NULL};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (strcmp(rules[i].column, column) == 0 &&
		    (!rules[i].table || strcmp(rules[i].table, table) == 0))
			return &rules[i];
	}
	return &plain;
}

/* INSERT INTO main.table (NAMES) SELECT VALUES FROM src.table x JOINS, in pieces. */
struct copy {
	const char *table;
	struct str names, values, joins;
	int maps;
	bool by_track;
};

static void copy_free(struct copy *copy)
{
	str_free(&copy->names);
	str_free(&copy->values);
	str_free(&copy->joins);
}

static void add_map(struct copy *copy, const char *column, const char *map, bool needed)
{
	int number = copy->maps++;

	str_addf(&copy->values, needed ? "coalesce(j%d.new, 0)" : "j%d.new", number);
	str_addf(&copy->joins, " LEFT JOIN temp.%s j%d ON j%d.old = x.%s", map, number, number,
		 column);
}

static void add_value(struct copy *copy, const struct column_rule *rule, const char *column,
		      bool needed)
{
	struct str *to = &copy->values;

	switch (rule->rule) {
	case RULE_PLAIN:
	case RULE_OWN:
		str_addf(to, "x.%s", column);
		break;
	case RULE_BASE:
		str_addf(to, "x.%s + %s", column, rule->with);
		break;
	case RULE_RANK:
		str_addf(to, "coalesce((SELECT new FROM temp.rank_map WHERE old = x.%s), :rank)",
			 column);
		break;
	case RULE_WHERE:
		str_addf(to, "coalesce(x.%s + :context, :nowhere)", column);
		break;
	case RULE_MAP:
		add_map(copy, column, rule->with, needed);
		break;
	case RULE_HOST:
		str_addf(to, "x.%s + :shift", column);
		break;
	case RULE_CLOCK:
		str_addf(to, "x.%s + iif(x.clock = 0, :shift, 0)", column);
		break;
	case RULE_TRACK:
		copy->by_track = true;
		str_addf(to, "x.%s + coalesce(k.shift, 0)", column);
		break;
	}
}

static void add_column(struct copy *copy, const char *column, bool needed)
{
	const struct column_rule *rule = rule_of(copy->table, column);

	if (rule->rule == RULE_OWN)
		return;
	str_addf(&copy->names, "%s%s", copy->names.length == 0 ? "" : ", ", column);
	if (copy->values.length > 0)
		str_add(&copy->values, ", ");
	add_value(copy, rule, column, needed);
}

/* After a failure the copy's texts may be short; they are to be freed all the same. */
static void copy_make(struct merge *m, struct copy *copy, const char *table)
{
	sqlite3_stmt *columns = prof__merge_prepare(
		m, "SELECT name, \"notnull\" FROM pragma_table_info(?1, 'main')");

	*copy = (struct copy){.table = table};
	if (columns)
		sqlite3_bind_text(columns, 1, table, -1, SQLITE_STATIC);
	while (prof__merge_step(m, columns))
		add_column(copy, (const char *)sqlite3_column_text(columns, 0),
			   sqlite3_column_int(columns, 1) != 0);
	sqlite3_finalize(columns);
	if (copy->by_track)
		str_add(&copy->joins, " LEFT JOIN temp.track_map k ON k.old = x.track_id");
	if (copy->names.failed || copy->values.failed || copy->joins.failed)
		err_nomem(&m->err);
}

/* In the order of row ids: a table's own order, which the planner keeps for the outer loop. */
static void copy_table(struct merge *m, const char *table)
{
	struct str sql = {0};
	struct copy copy;

	copy_make(m, &copy, table);
	str_addf(&sql, "INSERT INTO main.%s (%s) SELECT %s FROM src.%s x%s", table,
		 str_peek(&copy.names), str_peek(&copy.values), table, str_peek(&copy.joins));
	m->what = table;
	if (sql.failed)
		err_nomem(&m->err);
	prof__merge_run(m, str_peek(&sql));
	str_free(&sql);
	copy_free(&copy);
}

/* ---- the compiled model ---------------------------------------------------------------------- */

static void digest_bytes(uint64_t digest[2], const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < size; i++) {
		digest[0] = (digest[0] ^ byte[i]) * 1099511628211u;
		digest[1] = (digest[1] + byte[i]) * 11400714819323198485u;
		digest[1] ^= digest[1] >> 29;
	}
}

static void digest_row(uint64_t digest[2], sqlite3_stmt *row)
{
	for (int i = 0; i < sqlite3_column_count(row); i++) {
		const int type = sqlite3_column_type(row, i);
		const void *value = sqlite3_column_blob(row, i);
		const int size = sqlite3_column_bytes(row, i);

		digest_bytes(digest, &type, sizeof(type));
		digest_bytes(digest, &size, sizeof(size));
		if (value)
			digest_bytes(digest, value, (size_t)size);
	}
}

/* Of the rows as they would be copied, names by their common ids; the bases are 0 as yet. */
static void digest_table(struct merge *m, const char *table, uint64_t digest[2], int64_t *rows)
{
	sqlite3_stmt *statement;
	struct str sql = {0};
	struct copy copy;

	copy_make(m, &copy, table);
	str_addf(&sql, "SELECT %s FROM src.%s x%s", str_peek(&copy.values), table,
		 str_peek(&copy.joins));
	m->what = table;
	if (sql.failed)
		err_nomem(&m->err);
	statement = prof__merge_prepare(m, str_peek(&sql));
	digest_bytes(digest, table, strlen(table));
	prof__merge_bind(m, statement);
	while (prof__merge_step(m, statement)) {
		digest_row(digest, statement);
		++*rows;
	}
	sqlite3_finalize(statement);
	str_free(&sql);
	copy_free(&copy);
}

static void digest_model(struct merge *m, struct merge_model *model, int64_t *rows)
{
	static const enum merge_base of_model[] = {MERGE_PROGRAM, MERGE_VARIABLE, MERGE_IPU};

	*model = (struct merge_model){.digest = {14695981039346656037u, 0}};
	memcpy(model->base, m->base, sizeof(model->base));
	model->rank = m->source->rank;
	for (size_t i = 0; i < ARRAY_LEN(of_model); i++)
		m->base[of_model[i]] = 0;
	for (size_t i = 0; i < ARRAY_LEN(model_tables) && prof__merge_ok(m); i++)
		digest_table(m, model_tables[i], model->digest, rows);
}

static void add_model(struct merge *m, const struct merge_model *model)
{
	if (mem_grow(&m->models, &m->model_capacity, m->model_count + 1, sizeof(*m->models)) != 0) {
		err_nomem(&m->err);
		return;
	}
	m->models[m->model_count++] = *model;
	memcpy(m->base, model->base, sizeof(m->base));
	for (size_t i = 0; i < ARRAY_LEN(model_tables) && prof__merge_ok(m); i++)
		copy_table(m, model_tables[i]);
}

/* One that is there already is not copied again; its numbers are those of the first copy. */
static void copy_model(struct merge *m)
{
	struct merge_model model;
	int64_t rows = 0;

	digest_model(m, &model, &rows);
	if (!prof__merge_ok(m) || rows == 0)
		return;
	for (size_t i = 0; i < m->model_count; i++) {
		const struct merge_model *other = &m->models[i];

		if (memcmp(other->digest, model.digest, sizeof(model.digest)) != 0)
			continue;
		m->base[MERGE_PROGRAM] = other->base[MERGE_PROGRAM];
		m->base[MERGE_VARIABLE] = other->base[MERGE_VARIABLE];
		m->base[MERGE_IPU] = other->base[MERGE_IPU];
		m->source->same_model = other->rank;
		return;
	}
	m->source->own_model = m->model_count > 0;
	add_model(m, &model);
}

/* ---- all rows -------------------------------------------------------------------------------- */

/* After the contexts: the one of rows that have none. */
static void add_nowhere(struct merge *m)
{
	prof__merge_run(m, "INSERT INTO main.contexts (rank) VALUES (:rank)");
	m->nowhere = sqlite3_last_insert_rowid(m->db);
}

void prof__merge_copy(struct merge *m)
{
	copy_model(m);
	for (size_t i = 0; i < ARRAY_LEN(row_tables) && prof__merge_ok(m); i++) {
		copy_table(m, row_tables[i]);
		if (i == 0)
			add_nowhere(m);
	}
}
