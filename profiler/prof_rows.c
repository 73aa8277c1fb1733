/*
 * The descriptors of the appended tables, generated from the lists of columns in
 * ipuscope/profiler.h, and the schema: tables and views generated from the descriptors, followed by
 * schema.sql, which is embedded. No threads.
 */
#include "profiler/prof_rows.h"

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_sql.h"

#define PLAIN(t, kind, column, field, about)                                                       \
	{column, about, PROF_COLUMN_##kind, offsetof(struct t, field), 0},
#define COLUMN_ID(t, name, about)      PLAIN(t, ID, #name, name, about)
#define COLUMN_INT(t, name, about)     PLAIN(t, INT, #name, name, about)
#define COLUMN_NEEDED(t, name, about)  PLAIN(t, NEEDED, #name, name, about)
#define COLUMN_REAL(t, name, about)    PLAIN(t, REAL, #name, name, about)
#define COLUMN_TEXT(t, name, about)    PLAIN(t, TEXT, #name, name, about)
#define COLUMN_CLASS(t, name, about)   PLAIN(t, TEXT, "class", name, about)
#define COLUMN_NAME(t, name, about)    PLAIN(t, NAME, #name "_id", name, about)
#define COLUMN_MODE(t, name, about)    PLAIN(t, MODE, #name, name, about)
#define COLUMN_KEYS(t, name, about)    PLAIN(t, KEYS, "context_id", name, about)
#define COLUMN_CONTEXT(t, name, about) PLAIN(t, CONTEXT, "context_id", name, about)
#define COLUMN_RANK(t, name, about)    {"rank", about, PROF_COLUMN_RANK, 0, 0},
#define COLUMN_SPAN(t, name, about)    {#name, about, PROF_COLUMN_SPAN, 0, 0},
#define COLUMN_BLOB(t, name, about)                                                                \
	{#name, about, PROF_COLUMN_BLOB, offsetof(struct t, name), offsetof(struct t, bytes)},
#define COLUMN(t, kind, name, about) COLUMN_##kind(t, name, about)
#define COLUMNS(name, type)                                                                        \
	static const struct prof_column name##_columns[] = {IPS_COLUMNS_##name(COLUMN, type)};
IPS_TABLE_MAP(COLUMNS)

#define TENSOR(kind, name) PLAIN(prof_tensor_row, kind, #name, tensor.name, "")
static const struct prof_column tensor_columns[] = {
	COLUMN_ID(prof_tensor_row, tensor_id, "") TENSOR(TEXT, queue) TENSOR(TEXT, key)
		TENSOR(TEXT, kind) TENSOR(TEXT, layer) TENSOR(INT, stage) TENSOR(TEXT, shape)
			TENSOR(TEXT, dtype) TENSOR(TEXT, activity) TENSOR(TEXT, dims)};

static const struct prof_column meta_columns[] = {COLUMN_TEXT(prof_meta_row, key, "")
							  COLUMN_TEXT(prof_meta_row, value, "")};

#define ROW_TYPE(name, type, table_name, view_name)                                                \
	{                                                                                          \
		table_name, view_name, sizeof(struct type), name##_columns,                        \
			ARRAY_LEN(name##_columns)                                                  \
	}

const struct prof_row_type prof_row_types[PROF_TABLES] = {
	[IPS_TABLE_execution] = ROW_TYPE(execution, ips_execution, "execution_rows", "executions"),
	[IPS_TABLE_layer] = ROW_TYPE(layer, ips_layer, "layer_rows", "layers"),
	[IPS_TABLE_operation] = ROW_TYPE(operation, ips_operation, "operation_rows", "operations"),
	[IPS_TABLE_plan] = ROW_TYPE(plan, ips_plan, "plan_rows", "plans"),
	[IPS_TABLE_program] = ROW_TYPE(program, ips_program, "program_rows", "programs"),
	[IPS_TABLE_compute_set] =
		ROW_TYPE(compute_set, ips_compute_set, "compute_set_rows", "compute_sets"),
	[IPS_TABLE_device_trace] = ROW_TYPE(device_trace, ips_device_trace, "device_traces", NULL),
	[IPS_TABLE_device_step] = ROW_TYPE(device_step, ips_device_step, "device_step_rows", NULL),
	[IPS_TABLE_device_run] = ROW_TYPE(device_run, ips_device_run, "device_run_rows", NULL),
	[IPS_TABLE_stage_timing] =
		ROW_TYPE(stage_timing, ips_stage_timing, "stage_timing_rows", NULL),
	[IPS_TABLE_bubble] = ROW_TYPE(bubble, ips_bubble, "bubble_rows", NULL),
	[IPS_TABLE_variable] = ROW_TYPE(variable, ips_variable, "variable_rows", "variables"),
	[IPS_TABLE_variable_tile] =
		ROW_TYPE(variable_tile, ips_variable_tile, "variable_tile_rows", NULL),
	[IPS_TABLE_tile_memory] = ROW_TYPE(tile_memory, ips_tile_memory, "tile_memory_rows", NULL),
	[IPS_TABLE_liveness] = ROW_TYPE(liveness, ips_liveness, "liveness_rows", "liveness"),
	[IPS_TABLE_tensor_stats] =
		ROW_TYPE(tensor_stats, ips_tensor_stats, "tensor_stat_rows", NULL),
	[IPS_TABLE_tensor_histogram] =
		ROW_TYPE(tensor_histogram, ips_tensor_histogram, "tensor_histogram_rows", NULL),
	[IPS_TABLE_tensor_epoch] =
		ROW_TYPE(tensor_epoch, ips_tensor_epoch, "tensor_epoch_rows", "tensor_epochs"),
	[IPS_TABLE_capture] = ROW_TYPE(capture, ips_capture, "capture_rows", NULL),
	[IPS_TABLE_metric] = ROW_TYPE(metric, ips_metric, "metric_rows", NULL),
	[IPS_TABLE_health_rule] =
		ROW_TYPE(health_rule, ips_health_rule, "health_rule_rows", "health_rules"),
	[IPS_TABLE_health] = ROW_TYPE(health, ips_health, "health_rows", NULL),
	[IPS_TABLE_first_nonfinite] =
		ROW_TYPE(first_nonfinite, ips_first_nonfinite, "first_nonfinite_rows", NULL),
	[IPS_TABLE_time_split] = ROW_TYPE(time_split, ips_time_split, "time_split_rows", NULL),
	[IPS_TABLE_tensor_tier] = ROW_TYPE(tensor_tier, ips_tensor_tier, "tensor_tier_rows", NULL),
	[IPS_TABLE_nonfinite_trail] =
		ROW_TYPE(nonfinite_trail, ips_nonfinite_trail, "nonfinite_trail_rows", NULL),
	[IPS_TABLE_device] = ROW_TYPE(device, ips_device, "device_rows", "devices"),
	[IPS_TABLE_kernel] = ROW_TYPE(kernel, ips_kernel, "kernel_rows", NULL),
	[IPS_TABLE_copy] = ROW_TYPE(copy, ips_copy, "copy_rows", NULL),
	[IPS_TABLE_call] = ROW_TYPE(call, ips_call, "call_rows", NULL),
	[IPS_TABLE_range] = ROW_TYPE(range, ips_range, "range_rows", NULL),
	[IPS_TABLE_memory_event] =
		ROW_TYPE(memory_event, ips_memory_event, "memory_event_rows", NULL),
	[PROF_TABLE_TENSOR] = ROW_TYPE(tensor, prof_tensor_row, "tensor_rows", NULL),
	[PROF_TABLE_META] = ROW_TYPE(meta, prof_meta_row, "meta_facts", NULL),
};

const char *prof_mode_text(int64_t mode)
{
	static const char *const texts[] = {
		[IPS_MODE_NULL] = NULL,
		[IPS_TRAIN] = "train",
		[IPS_EVALUATE] = "evaluate",
		[IPS_PREDICT] = "predict",
	};

	return mode < 0 || mode >= (int64_t)ARRAY_LEN(texts) ? NULL : texts[mode];
}

/* ---- the schema ------------------------------------------------------------------------------ */

static const char schema_sql[] = {
#include "prof_schema_text.h"
};

static const char *const definitions[] = {
	[PROF_COLUMN_ID] = "INTEGER PRIMARY KEY",
	[PROF_COLUMN_INT] = "INTEGER",
	[PROF_COLUMN_NEEDED] = "INTEGER NOT NULL",
	[PROF_COLUMN_REAL] = "REAL",
	[PROF_COLUMN_TEXT] = "TEXT",
	[PROF_COLUMN_NAME] = "INTEGER",
	[PROF_COLUMN_MODE] = "TEXT",
	[PROF_COLUMN_KEYS] = "INTEGER",
	[PROF_COLUMN_CONTEXT] = "INTEGER NOT NULL",
	[PROF_COLUMN_RANK] = "INTEGER NOT NULL",
	[PROF_COLUMN_SPAN] = "INTEGER PRIMARY KEY",
	[PROF_COLUMN_BLOB] = "BLOB",
};

void prof_schema_text(struct str *sql)
{
	for (size_t t = 0; t < PROF_TABLES; t++) {
		const struct prof_row_type *type = &prof_row_types[t];
		const char *before = "";

		if (t == PROF_TABLE_META) /* a WITHOUT ROWID table: in schema.sql */
			continue;
		str_addf(sql, "CREATE TABLE %s (\n", type->table);
		if (type->columns[0].kind != PROF_COLUMN_ID &&
		    type->columns[0].kind != PROF_COLUMN_SPAN) {
			str_add(sql, "\trow_id INTEGER PRIMARY KEY");
			before = ",\n";
		}
		for (size_t i = 0; i < type->count; i++, before = ",\n")
			str_addf(sql, "%s\t%s %s", before, type->columns[i].name,
				 definitions[type->columns[i].kind]);
		str_add(sql, ");\n");
		if (!type->view)
			continue;
		str_addf(sql, "CREATE VIEW %s AS SELECT", type->view);
		for (size_t i = 0; i < type->count; i++)
			str_addf(sql, "%s %s", i == 0 ? "" : ",", type->columns[i].name);
		str_addf(sql, " FROM %s;\n", type->table);
	}
	str_add(sql, schema_sql);
}

enum status prof_schema_create(sqlite3 *db, struct err *err)
{
	struct str sql = {0};
	enum status status;

	prof_schema_text(&sql);
	status = sql.failed ? err_nomem(err) : prof_sql_run(db, str_peek(&sql), err);
	str_free(&sql);
	return status;
}
