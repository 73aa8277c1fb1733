/*
 * The one list of the appended tables' columns. Constant data.
 */
#include "profiler/prof_rows.h"

#include "common/mem.h"

#define INT(type, field)                                                                           \
	{                                                                                          \
#field, PROF_COLUMN_INT, offsetof(struct type, field), 0                           \
	}
#define NEEDED(type, field)                                                                        \
	{                                                                                          \
#field, PROF_COLUMN_NEEDED, offsetof(struct type, field), 0                        \
	}
#define REAL(type, field)                                                                          \
	{                                                                                          \
#field, PROF_COLUMN_REAL, offsetof(struct type, field), 0                          \
	}
#define TEXT(type, field)                                                                          \
	{                                                                                          \
#field, PROF_COLUMN_TEXT, offsetof(struct type, field), 0                          \
	}
#define TEXT_AS(column, type, field)                                                               \
	{                                                                                          \
		column, PROF_COLUMN_TEXT, offsetof(struct type, field), 0                          \
	}
#define NAME(column, type, field)                                                                  \
	{                                                                                          \
		column, PROF_COLUMN_NAME, offsetof(struct type, field), 0                          \
	}
#define MODE(type, field)                                                                          \
	{                                                                                          \
#field, PROF_COLUMN_MODE, offsetof(struct type, field), 0                          \
	}
#define KEYS(type, field)                                                                          \
	{                                                                                          \
		"context_id", PROF_COLUMN_KEYS, offsetof(struct type, field), 0                    \
	}
#define CONTEXT(type, field)                                                                       \
	{                                                                                          \
		"context_id", PROF_COLUMN_CONTEXT, offsetof(struct type, field), 0                 \
	}
#define RANK                                                                                       \
	{                                                                                          \
		"rank", PROF_COLUMN_RANK, 0, 0                                                     \
	}
#define BLOB(type, field, bytes)                                                                   \
	{                                                                                          \
#field, PROF_COLUMN_BLOB, offsetof(struct type, field),                            \
			offsetof(struct type, bytes)                                               \
	}

static const struct prof_column execution_columns[] = {
	RANK,
	MODE(ips_execution, mode),
	INT(ips_execution, epoch),
	INT(ips_execution, execution),
	INT(ips_execution, first_step),
	INT(ips_execution, steps),
	INT(ips_execution, updates),
	INT(ips_execution, start_ns),
	INT(ips_execution, dur_ns),
	INT(ips_execution, start_cycle),
	INT(ips_execution, cycles),
	INT(ips_execution, traced),
};

static const struct prof_column layer_columns[] = {
	TEXT(ips_layer, layer),           TEXT_AS("class", ips_layer, class_name),
	INT(ips_layer, position),         INT(ips_layer, stage),
	TEXT(ips_layer, output_shape),    INT(ips_layer, params),
	INT(ips_layer, trainable_params), INT(ips_layer, flops),
};

static const struct prof_column operation_columns[] = {
	TEXT(ips_operation, operation),      TEXT(ips_operation, layer),
	TEXT(ips_operation, kind),           TEXT(ips_operation, phase),
	INT(ips_operation, stage),           INT(ips_operation, flops),
	INT(ips_operation, cycles),          INT(ips_operation, compute_cycles),
	INT(ips_operation, exchange_cycles), INT(ips_operation, sync_cycles),
	INT(ips_operation, bytes_exchanged), INT(ips_operation, tiles_used),
	REAL(ips_operation, tile_balance),   INT(ips_operation, code_bytes),
};

static const struct prof_column plan_columns[] = {
	TEXT(ips_plan, operation),   TEXT(ips_plan, method),       INT(ips_plan, split_batch),
	INT(ips_plan, split_field),  INT(ips_plan, split_in),      INT(ips_plan, split_out),
	INT(ips_plan, split_kernel), INT(ips_plan, serial_splits), INT(ips_plan, temporary_bytes),
	INT(ips_plan, cycles),
};

static const struct prof_column program_columns[] = {
	INT(ips_program, program_id),   INT(ips_program, parent_id),   INT(ips_program, position),
	TEXT(ips_program, type),        TEXT(ips_program, name),       TEXT(ips_program, operation),
	INT(ips_program, repeat_count), INT(ips_program, call_target),
};

static const struct prof_column compute_set_columns[] = {
	TEXT(ips_compute_set, compute_set), TEXT(ips_compute_set, operation),
	INT(ips_compute_set, program_id),   INT(ips_compute_set, vertices),
	INT(ips_compute_set, tiles),        INT(ips_compute_set, max_cycles),
	REAL(ips_compute_set, mean_cycles),
};

static const struct prof_column device_trace_columns[] = {
	INT(ips_device_trace, trace_id),
	REAL(ips_device_trace, clock_hz),
	TEXT(ips_device_trace, name),
};

static const struct prof_column device_step_columns[] = {
	NEEDED(ips_device_step, trace_id),
	INT(ips_device_step, trace_step),
	INT(ips_device_step, ipu),
	INT(ips_device_step, stage),
	TEXT(ips_device_step, phase),
	INT(ips_device_step, microbatch),
	INT(ips_device_step, program_id),
	NAME("type_id", ips_device_step, type),
	NAME("name_id", ips_device_step, name),
	NAME("operation_id", ips_device_step, operation),
	INT(ips_device_step, start_cycle),
	INT(ips_device_step, cycles),
	INT(ips_device_step, cycles_overlapped),
	INT(ips_device_step, active_tiles),
	REAL(ips_device_step, tile_balance),
	REAL(ips_device_step, active_tile_balance),
	INT(ips_device_step, bytes_in),
	INT(ips_device_step, bytes_out),
};

static const struct prof_column device_run_columns[] = {
	NEEDED(ips_device_run, trace_id), RANK,
	MODE(ips_device_run, mode),       INT(ips_device_run, epoch),
	INT(ips_device_run, execution),   INT(ips_device_run, weight_update),
	INT(ips_device_run, first_step),  INT(ips_device_run, first_microbatch),
	INT(ips_device_run, replica),     INT(ips_device_run, first_ipu),
	INT(ips_device_run, start_cycle),
};

static const struct prof_column stage_timing_columns[] = {
	NEEDED(ips_stage_timing, clock),    CONTEXT(ips_stage_timing, keys),
	NEEDED(ips_stage_timing, start_ns), NEEDED(ips_stage_timing, dur_ns),
	INT(ips_stage_timing, cpu_ns),
};

static const struct prof_column bubble_columns[] = {
	NEEDED(ips_bubble, clock),
	KEYS(ips_bubble, keys),
	TEXT(ips_bubble, schedule),
	INT(ips_bubble, stages),
	INT(ips_bubble, microbatches),
	INT(ips_bubble, makespan_ns),
	INT(ips_bubble, busy_ns),
	REAL(ips_bubble, idle_fraction),
	REAL(ips_bubble, bubble_rate),
	REAL(ips_bubble, bubble_over_ideal),
	REAL(ips_bubble, theory_idle_fraction),
	REAL(ips_bubble, theory_bubble_rate),
	REAL(ips_bubble, theory_bubble_over_ideal),
	INT(ips_bubble, ramp_up_ns),
	INT(ips_bubble, ramp_down_ns),
	INT(ips_bubble, imbalance_ns),
	INT(ips_bubble, communication_ns),
	INT(ips_bubble, oversubscribed),
};

static const struct prof_column variable_columns[] = {
	INT(ips_variable, variable_id),
	TEXT(ips_variable, variable),
	TEXT(ips_variable, layer),
	TEXT(ips_variable, kind),
	TEXT(ips_variable, shape),
	TEXT(ips_variable, dtype),
	INT(ips_variable, bytes),
	INT(ips_variable, ipu),
	INT(ips_variable, always_live),
	INT(ips_variable, first_program_step),
	INT(ips_variable, last_program_step),
};

static const struct prof_column variable_tile_columns[] = {
	INT(ips_variable_tile, variable_id), INT(ips_variable_tile, ipu),
	INT(ips_variable_tile, tile),        INT(ips_variable_tile, bytes),
	INT(ips_variable_tile, more_tiles),
};

static const struct prof_column tile_memory_columns[] = {
	INT(ips_tile_memory, ipu),
	INT(ips_tile_memory, tile),
	NAME("category_id", ips_tile_memory, category),
	NAME("region_id", ips_tile_memory, region),
	INT(ips_tile_memory, bytes),
	INT(ips_tile_memory, capacity),
	INT(ips_tile_memory, more_tiles),
};

static const struct prof_column liveness_columns[] = {
	INT(ips_liveness, ipu),
	INT(ips_liveness, program_step),
	INT(ips_liveness, program_id),
	INT(ips_liveness, always_live_bytes),
	INT(ips_liveness, not_always_live_bytes),
};

static const struct prof_column tensor_stats_columns[] = {
	NEEDED(ips_tensor_stats, tensor_id),
	KEYS(ips_tensor_stats, keys),
	INT(ips_tensor_stats, time_ns),
	INT(ips_tensor_stats, n),
	INT(ips_tensor_stats, n_nan),
	INT(ips_tensor_stats, n_pos_inf),
	INT(ips_tensor_stats, n_neg_inf),
	INT(ips_tensor_stats, n_zero),
	INT(ips_tensor_stats, n_neg),
	INT(ips_tensor_stats, n_pos),
	REAL(ips_tensor_stats, min),
	REAL(ips_tensor_stats, max),
	REAL(ips_tensor_stats, mean),
	REAL(ips_tensor_stats, std),
	REAL(ips_tensor_stats, l1),
	REAL(ips_tensor_stats, l2),
	REAL(ips_tensor_stats, abs_min_nonzero),
	REAL(ips_tensor_stats, abs_max),
	REAL(ips_tensor_stats, inactive),
	REAL(ips_tensor_stats, update_ratio),
	INT(ips_tensor_stats, n_changed),
};

static const struct prof_column tensor_tier_columns[] = {
	NEEDED(ips_tensor_tier, tensor_id), TEXT(ips_tensor_tier, tier),
	INT(ips_tensor_tier, every),        INT(ips_tensor_tier, keep),
	KEYS(ips_tensor_tier, keys),        INT(ips_tensor_tier, time_ns),
	TEXT(ips_tensor_tier, why),
};

static const struct prof_column tensor_histogram_columns[] = {
	NEEDED(ips_tensor_histogram, tensor_id), KEYS(ips_tensor_histogram, keys),
	INT(ips_tensor_histogram, bin),          REAL(ips_tensor_histogram, low),
	REAL(ips_tensor_histogram, high),        INT(ips_tensor_histogram, count),
};

static const struct prof_column tensor_epoch_columns[] = {
	RANK,
	MODE(ips_tensor_epoch, mode),
	INT(ips_tensor_epoch, epoch),
	TEXT(ips_tensor_epoch, callback),
	TEXT(ips_tensor_epoch, queue),
	TEXT(ips_tensor_epoch, key),
	TEXT(ips_tensor_epoch, shape),
	REAL(ips_tensor_epoch, mean),
	REAL(ips_tensor_epoch, std),
	REAL(ips_tensor_epoch, min),
	REAL(ips_tensor_epoch, max),
	INT(ips_tensor_epoch, nans),
	INT(ips_tensor_epoch, infs),
};

static const struct prof_column capture_columns[] = {
	NEEDED(ips_capture, tensor_id), KEYS(ips_capture, keys), TEXT(ips_capture, dtype),
	TEXT(ips_capture, shape),       INT(ips_capture, bytes), INT(ips_capture, chunk),
	BLOB(ips_capture, data, bytes),
};

static const struct prof_column metric_columns[] = {
	RANK,
	MODE(ips_metric, mode),
	INT(ips_metric, epoch),
	INT(ips_metric, execution),
	INT(ips_metric, step),
	INT(ips_metric, time_ns),
	NAME("name_id", ips_metric, name),
	REAL(ips_metric, value),
};

static const struct prof_column health_rule_columns[] = {
	TEXT(ips_health_rule, rule),    REAL(ips_health_rule, threshold),
	INT(ips_health_rule, patience), INT(ips_health_rule, enabled),
	TEXT(ips_health_rule, why),     TEXT(ips_health_rule, parameters),
};

static const struct prof_column health_columns[] = {
	TEXT(ips_health, rule),      INT(ips_health, tensor_id), TEXT(ips_health, layer),
	KEYS(ips_health, keys),      INT(ips_health, time_ns),   REAL(ips_health, value),
	REAL(ips_health, threshold), TEXT(ips_health, key),
};

static const struct prof_column first_nonfinite_columns[] = {
	INT(ips_first_nonfinite, tensor_id), KEYS(ips_first_nonfinite, keys),
	INT(ips_first_nonfinite, time_ns),   INT(ips_first_nonfinite, element),
	TEXT(ips_first_nonfinite, value),
};

static const struct prof_column nonfinite_trail_columns[] = {
	INT(ips_nonfinite_trail, position),
	TEXT(ips_nonfinite_trail, role),
	NEEDED(ips_nonfinite_trail, tensor_id),
	KEYS(ips_nonfinite_trail, keys),
	INT(ips_nonfinite_trail, time_ns),
	INT(ips_nonfinite_trail, n),
	INT(ips_nonfinite_trail, n_nan),
	INT(ips_nonfinite_trail, n_pos_inf),
	INT(ips_nonfinite_trail, n_neg_inf),
	INT(ips_nonfinite_trail, n_zero),
	INT(ips_nonfinite_trail, n_neg),
	INT(ips_nonfinite_trail, n_pos),
	REAL(ips_nonfinite_trail, min),
	REAL(ips_nonfinite_trail, max),
	REAL(ips_nonfinite_trail, mean),
	REAL(ips_nonfinite_trail, std),
	REAL(ips_nonfinite_trail, l1),
	REAL(ips_nonfinite_trail, l2),
	REAL(ips_nonfinite_trail, abs_min_nonzero),
	REAL(ips_nonfinite_trail, abs_max),
};

static const struct prof_column time_split_columns[] = {
	NEEDED(ips_time_split, clock),    RANK,
	INT(ips_time_split, execution),   INT(ips_time_split, replica),
	INT(ips_time_split, ipu),         INT(ips_time_split, compute_ns),
	INT(ips_time_split, exchange_ns), INT(ips_time_split, sync_ns),
	INT(ips_time_split, host_io_ns),  INT(ips_time_split, idle_ns),
};

static const struct prof_column tensor_columns[] = {
	INT(prof_tensor_row, tensor_id),
	TEXT_AS("queue", prof_tensor_row, tensor.queue),
	TEXT_AS("key", prof_tensor_row, tensor.key),
	TEXT_AS("kind", prof_tensor_row, tensor.kind),
	TEXT_AS("layer", prof_tensor_row, tensor.layer),
	{"stage", PROF_COLUMN_INT, offsetof(struct prof_tensor_row, tensor.stage), 0},
	TEXT_AS("shape", prof_tensor_row, tensor.shape),
	TEXT_AS("dtype", prof_tensor_row, tensor.dtype),
	TEXT_AS("activity", prof_tensor_row, tensor.activity),
};

static const struct prof_column meta_columns[] = {
	TEXT(prof_meta_row, key),
	TEXT(prof_meta_row, value),
};

#define ROW_TYPE(name, type, table_name)                                                           \
	{                                                                                          \
		table_name, sizeof(struct type), name##_columns, ARRAY_LEN(name##_columns)         \
	}

const struct prof_row_type prof_row_types[PROF_TABLES] = {
	[IPS_TABLE_execution] = ROW_TYPE(execution, ips_execution, "execution_rows"),
	[IPS_TABLE_layer] = ROW_TYPE(layer, ips_layer, "layer_rows"),
	[IPS_TABLE_operation] = ROW_TYPE(operation, ips_operation, "operation_rows"),
	[IPS_TABLE_plan] = ROW_TYPE(plan, ips_plan, "plan_rows"),
	[IPS_TABLE_program] = ROW_TYPE(program, ips_program, "program_rows"),
	[IPS_TABLE_compute_set] = ROW_TYPE(compute_set, ips_compute_set, "compute_set_rows"),
	[IPS_TABLE_device_trace] = ROW_TYPE(device_trace, ips_device_trace, "device_traces"),
	[IPS_TABLE_device_step] = ROW_TYPE(device_step, ips_device_step, "device_step_rows"),
	[IPS_TABLE_device_run] = ROW_TYPE(device_run, ips_device_run, "device_run_rows"),
	[IPS_TABLE_stage_timing] = ROW_TYPE(stage_timing, ips_stage_timing, "stage_timing_rows"),
	[IPS_TABLE_bubble] = ROW_TYPE(bubble, ips_bubble, "bubble_rows"),
	[IPS_TABLE_variable] = ROW_TYPE(variable, ips_variable, "variable_rows"),
	[IPS_TABLE_variable_tile] =
		ROW_TYPE(variable_tile, ips_variable_tile, "variable_tile_rows"),
	[IPS_TABLE_tile_memory] = ROW_TYPE(tile_memory, ips_tile_memory, "tile_memory_rows"),
	[IPS_TABLE_liveness] = ROW_TYPE(liveness, ips_liveness, "liveness_rows"),
	[IPS_TABLE_tensor_stats] = ROW_TYPE(tensor_stats, ips_tensor_stats, "tensor_stat_rows"),
	[IPS_TABLE_tensor_histogram] =
		ROW_TYPE(tensor_histogram, ips_tensor_histogram, "tensor_histogram_rows"),
	[IPS_TABLE_tensor_epoch] = ROW_TYPE(tensor_epoch, ips_tensor_epoch, "tensor_epoch_rows"),
	[IPS_TABLE_capture] = ROW_TYPE(capture, ips_capture, "capture_rows"),
	[IPS_TABLE_metric] = ROW_TYPE(metric, ips_metric, "metric_rows"),
	[IPS_TABLE_health_rule] = ROW_TYPE(health_rule, ips_health_rule, "health_rule_rows"),
	[IPS_TABLE_health] = ROW_TYPE(health, ips_health, "health_rows"),
	[IPS_TABLE_first_nonfinite] =
		ROW_TYPE(first_nonfinite, ips_first_nonfinite, "first_nonfinite_rows"),
	[IPS_TABLE_time_split] = ROW_TYPE(time_split, ips_time_split, "time_split_rows"),
	[IPS_TABLE_tensor_tier] = ROW_TYPE(tensor_tier, ips_tensor_tier, "tensor_tier_rows"),
	[IPS_TABLE_nonfinite_trail] =
		ROW_TYPE(nonfinite_trail, ips_nonfinite_trail, "nonfinite_trail_rows"),
	[PROF_TABLE_TENSOR] = ROW_TYPE(tensor, prof_tensor_row, "tensor_rows"),
	[PROF_TABLE_META] = ROW_TYPE(meta, prof_meta_row, "meta_facts"),
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
