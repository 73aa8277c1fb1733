/*
 * The contract: the views and their columns, the row descriptors, what becomes NULL.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_db.h"
#include "profiler/prof_queue.h"
#include "profiler/prof_rows.h"

#define KEYS "rank,mode,epoch,execution,weight_update,step,microbatch,replica"

/* ARCHITECTURE's list of views; more columns may follow these. */
static const struct {
	const char *view, *columns;
} contract[] = {
	{"meta", "key,value"},
	{"executions",
	 "rank,mode,epoch,execution,first_step,steps,updates,start_ns,dur_ns,start_cycle,"
	 "cycles,traced"},
	{"layers", "layer,class,position,stage,output_shape,params,trainable_params,flops"},
	{"operations",
	 "operation,layer,kind,phase,stage,flops,cycles,compute_cycles,exchange_cycles,"
	 "sync_cycles,bytes_exchanged,tiles_used,tile_balance,code_bytes"},
	{"plans", "operation,method,split_batch,split_field,split_in,split_out,split_kernel,"
		  "serial_splits,temporary_bytes,cycles"},
	{"programs", "program_id,parent_id,position,type,name,operation,repeat_count,call_target"},
	{"compute_sets", "compute_set,operation,program_id,vertices,tiles,max_cycles,mean_cycles"},
	{"device_steps",
	 KEYS ",ipu,stage,phase,trace_step,program_id,type,name,operation,start_cycle,"
	      "cycles,start_ns,dur_ns,cycles_overlapped,active_tiles,tile_balance,"
	      "active_tile_balance,bytes_in,bytes_out"},
	{"stage_timings", "clock," KEYS ",ipu,stage,phase,start_ns,dur_ns,cpu_ns"},
	{"bubbles",
	 "clock," KEYS ",schedule,stages,microbatches,makespan_ns,busy_ns,idle_fraction,"
	 "bubble_rate,bubble_over_ideal,theory_idle_fraction,theory_bubble_rate,"
	 "theory_bubble_over_ideal,ramp_up_ns,ramp_down_ns,imbalance_ns,communication_ns,"
	 "oversubscribed"},
	{"tracks", "track,clock,rank,pid,tid,ipu,name,parent"},
	{"spans", "clock,track,span_id,parent_id,depth,category,name,start_ns,dur_ns," KEYS
		  ",ipu,stage,phase,operation"},
	{"span_args", "span_id,name,value"},
	{"instants", "clock,track,category,name,time_ns," KEYS ",instant_id"},
	{"instant_args", "instant_id,name,value"},
	{"flows", "from_span_id,to_span_id,name"},
	{"counters", "track,name,time_ns,value"},
	{"variables", "variable_id,variable,layer,kind,shape,dtype,bytes,ipu,always_live,"
		      "first_program_step,last_program_step"},
	{"variable_tiles", "variable_id,ipu,tile,bytes"},
	{"tile_memory", "ipu,tile,category,region,bytes,capacity"},
	{"liveness", "ipu,program_step,program_id,always_live_bytes,not_always_live_bytes"},
	{"tensors", "queue,key,kind,layer,stage,shape,dtype,activity,dims"},
	{"tensor_tiers", "queue,key,kind,layer,tier,every,keep," KEYS ",time_ns,why"},
	{"tensor_stats",
	 "queue,key,kind,layer,stage,phase," KEYS
	 ",time_ns,n,n_nan,n_pos_inf,n_neg_inf,n_zero,n_neg,n_pos,min,max,mean,std,l1,"
	 "l2,abs_min_nonzero,abs_max,inactive,update_ratio,n_changed"},
	{"tensor_histograms", "queue,key," KEYS ",bin,low,high,count"},
	{"tensor_epochs", "rank,mode,epoch,callback,queue,key,shape,mean,std,min,max,nans,infs"},
	{"captures", "queue,key,kind,layer," KEYS ",dtype,shape,bytes,chunk,data"},
	{"metrics", "rank,mode,epoch,execution,step,time_ns,name,value"},
	{"health_rules", "rule,threshold,patience,enabled,why,parameters"},
	{"health", "rule,queue,key,layer,stage,phase," KEYS ",time_ns,value,threshold"},
	{"first_nonfinite", "queue,key,layer,stage,phase," KEYS ",time_ns,element,value"},
	{"nonfinite_trail",
	 "position,role,queue,key,kind,layer,stage,phase," KEYS
	 ",time_ns,n,n_nan,n_pos_inf,n_neg_inf,n_zero,n_neg,n_pos,min,max,mean,std,l1,"
	 "l2,abs_min_nonzero,abs_max"},
	{"overhead", "rank,time_ns,events,rows,bytes,dropped,record_ns_estimate,write_ns,lag_ns"},
	{"time_split", "clock,rank,execution,replica,ipu,compute_ns,exchange_ns,sync_ns,host_io_ns,"
		       "idle_ns"},
	{"stage_sums", "clock,rank,mode,replica,ipu,stage,phase,count,total_ns,mean_ns,least_ns,"
		       "greatest_ns,cpu_ns,first_start_ns,last_end_ns"},
	{"bubble_sums",
	 "clock,rank,mode,replica,schedule,stages,microbatches,runs,mean_idle_fraction,"
	 "mean_bubble_rate,mean_bubble_over_ideal,mean_theory_idle_fraction,"
	 "mean_theory_bubble_rate,mean_theory_bubble_over_ideal,total_makespan_ns,"
	 "least_makespan_ns,greatest_makespan_ns,total_ns,total_busy_ns,total_ramp_up_ns,"
	 "total_ramp_down_ns,total_imbalance_ns,total_communication_ns,oversubscribed_runs"},
	{"execution_sums", "rank,mode,epoch,executions,steps,updates,traced,untraced,"
			   "first_start_ns,last_end_ns,total_ns,total_cycles"},
	{"metric_sums", "rank,mode,name,per_step,count,least,greatest,last_epoch,last_execution,"
			"last_step,last_time_ns,last_value"},
	{"health_sums", "rule,hits,queue,key,layer,stage,phase," KEYS ",time_ns,value,threshold"},
	{"overhead_sums", "rank,commits,time_ns,events,rows,bytes,dropped,record_ns_estimate,"
			  "write_ns"},
	{"tensor_sums",
	 "queue,key,kind,layer,stage,shape,rank,rows,nonfinite_rows,n_nan,n_pos_inf,"
	 "n_neg_inf,first_ns,first_mode,first_epoch,first_weight_update,first_step,"
	 "last_ns,last_mode,last_epoch,last_weight_update,last_step"
	 ",first_mean,last_mean,least_mean,greatest_mean"
	 ",first_std,last_std,least_std,greatest_std"
	 ",first_min,last_min,least_min,greatest_min"
	 ",first_max,last_max,least_max,greatest_max"
	 ",first_abs_max,last_abs_max,least_abs_max,greatest_abs_max"
	 ",first_abs_min_nonzero,last_abs_min_nonzero,least_abs_min_nonzero,greatest_abs_min_"
	 "nonzero"
	 ",first_l1,last_l1,least_l1,greatest_l1"
	 ",first_l2,last_l2,least_l2,greatest_l2"
	 ",first_inactive,last_inactive,least_inactive,greatest_inactive"
	 ",first_update_ratio,last_update_ratio,least_update_ratio,greatest_update_ratio"},
	{"devices", "rank,device,number,model,architecture,memory_bytes,units,clock_hz,"
		    "memory_bytes_per_s"},
	{"kernels",
	 "span_id,launch_span_id,rank,device,context,stream,step,name,kind,start_ns,dur_ns,grid_x,"
	 "grid_y,grid_z,block_x,block_y,block_z,registers,shared_bytes,occupancy,graph,graph_node"},
	{"launches", "launch_span_id,span_id,rank,track,call,start_ns,dur_ns,device,stream,name,"
		     "device_start_ns,device_dur_ns,delay_ns"},
	{"copies", "span_id,launch_span_id,rank,device,context,stream,step,name,kind,start_ns,"
		   "dur_ns,bytes,source,target,to_device"},
	{"critical_path", "rank,step,position,kind,span_id,name,track,start_ns,dur_ns"},
	{"ranges", "span_id,kind,domain,name,rank,track,step,start_ns,dur_ns"},
	{"memory_events", "rank,device,time_ns,kind,bytes,address,total_bytes,reserved_bytes"},
};

/* Split "a,b,c" into sorted-by-nature names, one a line. */
static void check_columns(const char *path, const char *view, const char *columns)
{
	char sql[256], wanted[2048], *found;

	snprintf(sql, sizeof(sql), "SELECT name FROM pragma_table_info('%s') ORDER BY name", view);
	found = prof_ask_all(path, sql);
	/* The columns sorted: by SQLite, too. */
	snprintf(wanted, sizeof(wanted),
		 "WITH RECURSIVE s(w, r) AS (SELECT '', '%s' || ',' UNION ALL SELECT "
		 "substr(r, 1, instr(r, ',') - 1), substr(r, instr(r, ',') + 1) FROM s WHERE r <> "
		 "'')"
		 "SELECT w FROM s WHERE w <> '' ORDER BY w",
		 columns);
	assert_answer(path, wanted, found);
	free(found);
}

static void test_every_view_of_the_contract_answers_on_an_empty_recording(void **state)
{
	struct prof_place *place = *state;
	const char *const *names;
	size_t count;

	prof_stop(prof_start(place, NULL));
	names = prof_view_names(&count);
	assert_int_equal(count, ARRAY_LEN(contract));
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(names[i], contract[i].view);
		check_columns(place->path, contract[i].view, contract[i].columns);
	}
	prof_check_file(place->path);
	assert_int_equal(
		prof_ask(place->path, "SELECT count(*) FROM sqlite_schema WHERE type = 'view'"),
		(int64_t)count);
	assert_answer(place->path,
		      "SELECT value FROM meta WHERE key IN ('state', 'schema_version') "
		      "ORDER BY key",
		      "1\ncomplete\n");
	assert_int_equal(prof_ask(place->path, "PRAGMA application_id"), PROF_APPLICATION_ID);
	assert_answer(place->path, "PRAGMA journal_mode", "delete\n");
	assert_int_equal(prof_ask(place->path, "PRAGMA page_size"), 16384);
}

/* Every column of the table but its own row number, in order, with its type and NOT NULL. */
static void check_descriptor(const char *path, const struct prof_row_type *type)
{
	static const struct {
		const char *type;
		bool not_null;
	} kinds[] = {
		[PROF_COLUMN_ID] = {"INTEGER", false},     [PROF_COLUMN_INT] = {"INTEGER", false},
		[PROF_COLUMN_NEEDED] = {"INTEGER", true},  [PROF_COLUMN_REAL] = {"REAL", false},
		[PROF_COLUMN_TEXT] = {"TEXT", false},      [PROF_COLUMN_NAME] = {"INTEGER", false},
		[PROF_COLUMN_MODE] = {"TEXT", false},      [PROF_COLUMN_KEYS] = {"INTEGER", false},
		[PROF_COLUMN_CONTEXT] = {"INTEGER", true}, [PROF_COLUMN_RANK] = {"INTEGER", true},
		[PROF_COLUMN_SPAN] = {"INTEGER", false},   [PROF_COLUMN_BLOB] = {"BLOB", false},
	};
	char sql[256], line[256], expected[4096] = "", *found;

	assert_true(type->count <= PROF_MAX_COLUMNS);
	for (size_t i = 0; i < type->count; i++) {
		const struct prof_column *column = &type->columns[i];

		snprintf(line, sizeof(line), "%s|%s|%d\n", column->name, kinds[column->kind].type,
			 kinds[column->kind].not_null);
		strcat(expected, line);
		assert_true(column->offset < type->size);
	}
	snprintf(sql, sizeof(sql),
		 "SELECT name, type, \"notnull\" AND NOT pk FROM pragma_table_info('%s') "
		 "WHERE name <> 'row_id' ORDER BY cid",
		 type->table);
	found = prof_ask_all(path, sql);
	assert_string_equal(found, expected);
	free(found);
}

static void test_the_row_descriptors_are_the_tables_of_the_schema(void **state)
{
	struct prof_place *place = *state;

	prof_stop(prof_start(place, NULL));
	for (size_t i = 0; i < PROF_TABLES; i++)
		check_descriptor(place->path, &prof_row_types[i]);
}

static void test_bytes_on_neighbouring_tiles_are_a_row_for_each_tile(void **state)
{
	static const struct ips_variable_tile tiles[] = {
		{7, 1, 3000, 5, 0}, {7, 1, 1470, 8, 1}, {8, 1, 2, 4, IPS_NULL}};
	static const struct ips_tile_memory memory[] = {
		{1, 2045, "stack", "interleaved", 9, 100, 2}};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);

	assert_int_equal(ips_append(recording, IPS_TABLE_variable_tile, tiles, 3), 0);
	assert_int_equal(ips_append(recording, IPS_TABLE_tile_memory, memory, 1), 0);
	prof_stop(recording);
	assert_answer(place->path, "SELECT * FROM variable_tiles ORDER BY variable_id, tile",
		      "7|1|1470|8\n7|1|1471|8\n7|1|3000|5\n8|1|2|4\n");
	assert_answer(place->path, "SELECT variable_id FROM variable_tiles WHERE tile = 1471",
		      "7\n");
	assert_answer(place->path, "SELECT * FROM tile_memory WHERE tile > 2045",
		      "1|2046|stack|interleaved|9|100\n1|2047|stack|interleaved|9|100\n");
}

/* A struct whose every field says "unknown". */
static void make_unknown(const struct prof_row_type *type, unsigned char *row)
{
	static const struct ips_keys none = IPS_KEYS_NULL;
	const int64_t null = IPS_NULL, needed = 1, no_mode = IPS_MODE_NULL;
	const double nan_value = (double)NAN;

	memset(row, 0, type->size);
	for (size_t i = 0; i < type->count; i++) {
		const struct prof_column *column = &type->columns[i];

		if (column->kind == PROF_COLUMN_INT || column->kind == PROF_COLUMN_ID)
			memcpy(row + column->offset, &null, sizeof(null));
		else if (column->kind == PROF_COLUMN_NEEDED)
			memcpy(row + column->offset, &needed, sizeof(needed));
		else if (column->kind == PROF_COLUMN_MODE)
			memcpy(row + column->offset, &no_mode, sizeof(no_mode));
		else if (column->kind == PROF_COLUMN_REAL)
			memcpy(row + column->offset, &nan_value, sizeof(nan_value));
		else if (column->kind == PROF_COLUMN_KEYS || column->kind == PROF_COLUMN_CONTEXT)
			memcpy(row + column->offset, &none, sizeof(none));
	}
}

static void test_unknown_fields_of_every_table_become_null(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);

	for (unsigned t = 0; t < IPS_TABLES; t++) {
		_Alignas(16) unsigned char row[1024];

		assert_true(prof_row_types[t].size <= sizeof(row));
		make_unknown(&prof_row_types[t], row);
		/* rows about a span: test_rows_about_spans_and_their_launches() */
		assert_int_equal(ips_append(recording, (enum ips_table)t, row, 1),
				 prof_row_types[t].columns[0].kind == PROF_COLUMN_SPAN ? 2 : 0);
	}
	prof_stop(recording);
	for (unsigned t = 0; t < IPS_TABLES; t++) {
		const struct prof_row_type *type = &prof_row_types[t];

		for (size_t i = 0; i < type->count && type->columns[0].kind != PROF_COLUMN_SPAN;
		     i++) {
			char sql[256];
			enum prof_column_kind kind = type->columns[i].kind;

			snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE \"%s\" IS NULL",
				 type->table, type->columns[i].name);
			/* ids of the caller's are made up by SQLite */
			if (i == 0 && (t == IPS_TABLE_program || t == IPS_TABLE_variable ||
				       t == IPS_TABLE_device_trace))
				continue;
			assert_int_equal(prof_ask(place->path, sql),
					 kind != PROF_COLUMN_NEEDED && kind != PROF_COLUMN_RANK &&
						 kind != PROF_COLUMN_CONTEXT);
		}
	}
	prof_check_file(place->path);
}

static void test_numbers_survive_infinities_too_and_nan_is_null(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const double values[] = {1.5, (double)INFINITY, -(double)INFINITY, (double)NAN, 0.0, 1e308};
	struct ips_metric row = {IPS_TRAIN, 3, IPS_NULL, 7, 11, "loss", 0.0};

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		row.value = values[i];
		assert_int_equal(ips_append_metric(recording, &row), 0);
	}
	prof_stop(recording);
	assert_answer(
		place->path,
		"SELECT mode, epoch, execution, step, time_ns, name, value FROM metrics",
		"train|3|-|7|11|loss|1.5\ntrain|3|-|7|11|loss|Inf\ntrain|3|-|7|11|loss|-Inf\n"
		"train|3|-|7|11|loss|-\ntrain|3|-|7|11|loss|0.0\ntrain|3|-|7|11|loss|1.0e+308\n");
}

/* A graph's launch starts three kernels on two streams, recorded before and after the call. */
static void test_rows_about_spans_and_their_launches(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *host = ips_track_open(recording, "thread", NULL);
	struct ips_track *lanes[2] = {ips_track_open(recording, "GPU 0 stream 7", NULL),
				      ips_track_open(recording, "GPU 0 stream 8", NULL)};
	const struct ips_call calls[] = {{41}, {42}};
	const struct ips_range range = {"nvtx", "loader"};
	struct ips_kernel kernel = {"GPU 0", 1, 7, "compute", 42,   4,   1,        1,
				    256,     1, 1, 32,        1024, 0.5, IPS_NULL, IPS_NULL};
	const struct ips_copy copy = {"GPU 0", 1, 8, "HtoD", 41, 4096, "pinned", "device", NULL};

	IPS_SITE(named, "nvtx", "load");
	IPS_SITE(call, "cuda_runtime", "cudaGraphLaunch");
	IPS_SITE(work, "kernel", "gemm");
	ips_span_at(lanes[1], &work, 100, 50);
	ips_span_row(lanes[1], IPS_TABLE_copy, &copy);
	ips_span_at(host, &named, 0, 400);
	ips_span_row(host, IPS_TABLE_range, &range);
	ips_span_at(host, &call, 10, 20);
	ips_span_row(host, IPS_TABLE_call, &calls[0]);
	ips_span_at(host, &call, 190, 20);
	ips_span_row(host, IPS_TABLE_call, &calls[1]);
	for (int i = 0; i < 3; i++) {
		ips_span_at(lanes[i % 2], &work, 200 + 100 * i, 50);
		kernel.stream = 7 + i % 2;
		ips_span_row(lanes[i % 2], IPS_TABLE_kernel, &kernel);
	}
	ips_span_row(host, IPS_TABLE_metric, &kernel); /* not about spans: nothing */
	ips_span_row(NULL, IPS_TABLE_kernel, &kernel);
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT device, stream, name, kind, start_ns, dur_ns, block_x, registers, "
		      "occupancy, graph FROM kernels ORDER BY start_ns",
		      "GPU 0|7|gemm|compute|200|50|256|32|0.5|-\n"
		      "GPU 0|8|gemm|compute|300|50|256|32|0.5|-\n"
		      "GPU 0|7|gemm|compute|400|50|256|32|0.5|-\n");
	assert_answer(place->path,
		      "SELECT track, call, start_ns, device, stream, device_start_ns, delay_ns "
		      "FROM launches ORDER BY device_start_ns",
		      "thread|cudaGraphLaunch|10|GPU 0|8|100|70\n"
		      "thread|cudaGraphLaunch|190|GPU 0|7|200|0\n"
		      "thread|cudaGraphLaunch|190|GPU 0|8|300|90\n"
		      "thread|cudaGraphLaunch|190|GPU 0|7|400|190\n");
	assert_answer(place->path, "SELECT kind, bytes, source, target, to_device FROM copies",
		      "HtoD|4096|pinned|device|-\n");
	assert_answer(place->path, "SELECT kind, domain, name, track, dur_ns FROM ranges",
		      "nvtx|loader|load|thread|400\n");
	assert_answer(place->path,
		      "SELECT count(*) FROM flows f JOIN launches l ON l.span_id = f.to_span_id "
		      "AND l.launch_span_id = f.from_span_id WHERE f.name = 'launch'",
		      "4\n");
	prof_check_file(place->path);
}

/* Keys whose last bits are equal share a place among the calls that are remembered. */
static void test_launches_are_found_among_calls_that_share_a_place(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *host = ips_track_open(recording, "thread", NULL);
	struct ips_track *lane = ips_track_open(recording, "GPU 0 stream 7", NULL);
	struct ips_kernel kernel = {.device = "GPU 0", .kind = "compute"};
	struct ips_call call;

	IPS_SITE(named, "cuda_runtime", "cudaLaunchKernel");
	IPS_SITE(work, "kernel", "gemm");
	for (int64_t i = 0; i < 20; i++) { /* the second half has the keys of the first, later */
		call.launch_key = i % 10 << 32;
		ips_span_at(host, &named, 10 * i, 5);
		ips_span_row(host, IPS_TABLE_call, &call);
	}
	for (int64_t i = 0; i < 11; i++) { /* the last was launched by nobody */
		kernel.launch_key = i << 32;
		ips_span_at(lane, &work, 1000 + 10 * i, 5);
		ips_span_row(lane, IPS_TABLE_kernel, &kernel);
	}
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT count(*), sum(device_start_ns - start_ns = 1000) FROM launches",
		      "10|10\n");
}

static void test_a_row_without_what_it_needs_is_refused(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_stage_timing row = {IPS_KEYS_NULL, IPS_HOST, IPS_NULL, 3, IPS_NULL};

	assert_int_equal(ips_append_stage_timing(recording, &row), 2);
	row.start_ns = 5;
	assert_int_equal(ips_append_stage_timing(recording, &row), 0);
	assert_int_equal(ips_append(recording, IPS_TABLES, &row, 1), 2);
	prof_stop(recording);
	assert_answer(place->path, "SELECT clock, rank, step, start_ns, dur_ns FROM stage_timings",
		      "host|0|-|5|3\n");
}

static void test_keys_reach_the_views(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_stage_timing row = {
		{2, 3, 4, 17, 1, 0, 5, 6, IPS_EVALUATE, 'W'}, IPS_DEVICE, 10, 20, 30};

	ips_recording_params_defaults(&params);
	params.rank = 9;
	recording = prof_start(place, &params);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ips_append_stage_timing(recording, &row), 0);
	row.keys.phase = '?';
	assert_int_equal(ips_append_stage_timing(recording, &row), 0);
	prof_stop(recording);
	assert_answer(place->path, "SELECT DISTINCT * FROM stage_timings",
		      "device|9|evaluate|2|3|4|17|1|0|5|6|W|10|20|30\n"
		      "device|9|evaluate|2|3|4|17|1|0|5|6|-|10|20|30\n");
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM contexts"), 2);
}

static void test_tensors_have_one_id_each_and_rows_join_them(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_tensor a = {"q",      "Dense/kernel:0", "weight", "Dense",          1,
				     "(2, 3)", "float32",        "relu",   "inputs, outputs"};
	const struct ips_tensor b = {NULL, "Dense/kernel:0", NULL, NULL, IPS_NULL, NULL, NULL, NULL,
				     NULL};
	int64_t first = ips_tensor_add(recording, &a), second = ips_tensor_add(recording, &b);
	const float data[] = {1.0f, 2.0f};
	const struct ips_capture capture = {IPS_KEYS_NULL, first, "float32", "(2,)",
					    sizeof(data),  0,     data};
	const struct ips_tensor unnamed = {.kind = "unnamed"}, empty = {.key = "", .kind = "empty"};
	const int64_t third = ips_tensor_add(recording, &unnamed);

	assert_int_equal(ips_tensor_add(recording, &a), first);
	assert_int_not_equal(first, second);
	assert_int_not_equal(ips_tensor_add(recording, &empty), third);
	assert_int_equal(ips_append_capture(recording, &capture), 0);
	prof_stop(recording);
	assert_answer(place->path, "SELECT * FROM tensors",
		      "q|Dense/kernel:0|weight|Dense|1|(2, "
		      "3)|float32|relu|inputs, outputs\n"
		      "-|Dense/kernel:0|-|-|-|-|-|-|-\n"
		      "-|-|unnamed|-|0|-|-|-|-\n-||empty|-|0|-|-|-|-\n");
	assert_answer(place->path, "SELECT queue, layer, bytes, hex(data) FROM captures",
		      "q|Dense|8|0000803F00000040\n");
}

static void test_a_later_row_with_the_same_id_replaces_and_meta_keeps_the_last(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_program row = {7, IPS_NULL, 0, "Sequence", "a", NULL, IPS_NULL, IPS_NULL};

	assert_int_equal(ips_append_program(recording, &row), 0);
	row.name = "b";
	assert_int_equal(ips_append_program(recording, &row), 0);
	assert_int_equal(ips_meta_set(recording, "colour", "red"), 0);
	assert_int_equal(ips_meta_set(recording, "colour", "blue"), 0);
	assert_int_equal(ips_meta_set(recording, "state", "complete"), 2);
	assert_int_equal(ips_meta_set(recording, NULL, "x"), 2);
	prof_stop(recording);
	assert_answer(place->path, "SELECT program_id, name FROM programs", "7|b\n");
	assert_answer(place->path, "SELECT value FROM meta WHERE key = 'colour'", "blue\n");
}

static void not_woken(void *user)
{
	(void)user;
	fail_msg("the queue is far from full");
}

/* However long the writer has the rows of before. */
static void test_rows_find_room_while_the_writer_has_others(void **state)
{
	const struct prof_meta_row row = {"colour", "red"};
	struct prof_queue queue;
	bool filling;

	(void)state;
	assert_int_equal(prof_queue_init(&queue, 1 << 20), ST_OK);
	support_fail_alloc(0);
	for (int i = 0; i < 3; i++) {
		struct prof_chunk *taken;

		assert_int_equal(
			prof_queue_put(&queue, PROF_TABLE_META, &row, 1, not_woken, NULL, &filling),
			ST_OK);
		taken = prof_queue_pop(&queue);
		assert_non_null(taken);
		assert_int_equal(
			prof_queue_put(&queue, PROF_TABLE_META, &row, 1, not_woken, NULL, &filling),
			ST_OK);
		prof_queue_release(&queue, taken);
		prof_queue_release(&queue, prof_queue_pop(&queue));
	}
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	prof_queue_fini(&queue);
}

/* Rows of tier `health`, hits of no tensor, tiers and trails as they come back. */
static void test_what_is_not_known_of_new_rows_is_null(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_tensor tensor = {"q",    "k",       "weight", "l", 1,
					  "(2,)", "float32", NULL,     NULL};
	const double none = (double)NAN;
	int64_t id = ips_tensor_add(recording, &tensor);
	struct ips_tensor_stats row = {.keys = IPS_KEYS_NULL,
				       .tensor_id = id,
				       .time_ns = 5,
				       .n = 7,
				       .n_nan = IPS_NULL,
				       .n_pos_inf = IPS_NULL,
				       .n_neg_inf = IPS_NULL,
				       .n_zero = IPS_NULL,
				       .n_neg = IPS_NULL,
				       .n_pos = IPS_NULL,
				       .min = none,
				       .max = none,
				       .mean = none,
				       .std = none,
				       .l1 = none,
				       .l2 = none,
				       .abs_min_nonzero = none,
				       .abs_max = (double)INFINITY,
				       .inactive = none,
				       .update_ratio = 0.25,
				       .n_changed = 3};
	struct ips_tensor_tier tier = {IPS_KEYS_NULL, id, "last", 2, 20, IPS_NULL, "rule 1"};
	struct ips_nonfinite_trail bad = {
		.keys = IPS_KEYS_NULL, .position = -1, .role = "input", .tensor_id = IPS_NULL};
	struct ips_health hit = {IPS_KEYS_NULL, "overfit", IPS_NULL, NULL, 9, 1, 0.5, "val_loss"};

	assert_int_equal(ips_append_tensor_stats(recording, &row), 0);
	assert_int_equal(ips_append_tensor_tier(recording, &tier), 0);
	assert_int_equal(ips_append_health(recording, &hit), 0);
	hit.key = NULL;
	hit.tensor_id = id;
	assert_int_equal(ips_append_health(recording, &hit), 0);
	/* A trail is of tensors, and so are tiers. */
	assert_int_not_equal(ips_append_nonfinite_trail(recording, &bad), 0);
	tier.tensor_id = IPS_NULL;
	assert_int_not_equal(ips_append_tensor_tier(recording, &tier), 0);
	bad.tensor_id = id;
	assert_int_equal(ips_append_nonfinite_trail(recording, &bad), 0);
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT n, n_nan, n_pos, mean, abs_max, inactive, update_ratio, n_changed "
		      "FROM tensor_stats",
		      "7|-|-|-|Inf|-|0.25|3\n");
	assert_answer(place->path,
		      "SELECT key, tier, every, keep, rank, time_ns, why "
		      "FROM tensor_tiers",
		      "k|last|2|20|-|-|rule 1\n");
	assert_answer(place->path, "SELECT queue, key, layer FROM health", "-|val_loss|-\nq|k|l\n");
	assert_answer(place->path, "SELECT position, role, key, stage, n FROM nonfinite_trail",
		      "-1|input|k|1|0\n");
	prof_check_file(place->path);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_every_view_of_the_contract_answers_on_an_empty_recording),
		CASE(test_the_row_descriptors_are_the_tables_of_the_schema),
		CASE(test_bytes_on_neighbouring_tiles_are_a_row_for_each_tile),
		CASE(test_unknown_fields_of_every_table_become_null),
		CASE(test_numbers_survive_infinities_too_and_nan_is_null),
		CASE(test_what_is_not_known_of_new_rows_is_null),
		CASE(test_rows_about_spans_and_their_launches),
		CASE(test_launches_are_found_among_calls_that_share_a_place),
		CASE(test_a_row_without_what_it_needs_is_refused),
		CASE(test_keys_reach_the_views),
		cmocka_unit_test(test_rows_find_room_while_the_writer_has_others),
		CASE(test_tensors_have_one_id_each_and_rows_join_them),
		CASE(test_a_later_row_with_the_same_id_replaces_and_meta_keeps_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
