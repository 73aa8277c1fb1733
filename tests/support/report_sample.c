/*
 * A recorded run made by hand. See report_sample.h.
 *
 * Times: a forward takes 100 us on stage 0 and 200 us on stage 1, a backward twice as much, an
 * update 50 us; on the device clock a tenth of that. With 2 replicas, 2 updates and 4 micro-batches
 * a stage has 16 forwards: 1.6 ms and 3.2 ms on the host.
 */
#include "support/report_sample.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "ipuscope/profiler.h"
#include "support/support.h"

#define US 1000

enum {
	REPLICAS = 2,
	STAGES = 2,
	UPDATES = 2,
	MICROBATCHES = 4,
	TENSORS = 2
};

static struct ips_keys sample_keys(int replica, int stage, int step, char phase)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = 0;
	keys.step = step;
	keys.weight_update = step / MICROBATCHES;
	keys.microbatch = step % MICROBATCHES;
	keys.replica = replica;
	if (stage >= 0) {
		keys.stage = stage;
		keys.ipu = replica * STAGES + stage;
	}
	keys.phase = phase;
	return keys;
}

static void sample_meta(struct ips_recording *r)
{
	static const char *const facts[][2] = {
		{"model", "sequential"},
		{"schedule", "Grouped"},
		{"target", "ipu2"},
		{"architecture", "Mk2"},
		{"tiles_per_ipu", "1472"},
		{"bytes_per_tile", "638976"},
		{"cost_model", "planner"},
		{"ipus", "4"},
		{"replicas", "2"},
		{"stages", "2"},
		{"batch_size", "32"},
		{"gradient_accumulation", "4"},
		{"dataset", "mnist"},
		{"host_threads", "2"},
		{"oversubscribed", "1"},
		{"engine_options", "{\"autoReport.all\":true}"},
		{"run", "{\"fit\":{\"epochs\":1}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		assert_int_equal(ips_meta_set(r, facts[i][0], facts[i][1]), 0);
}

static void sample_model(struct ips_recording *r)
{
	ips_append_layer(r, &(struct ips_layer){"flatten", "Flatten", 0, 0, "(32, 784)", 0, 0, 0});
	ips_append_layer(r, &(struct ips_layer){"Dense_128", "Dense", 1, 0, "(32, 128)", 100480,
						100480, 6422528});
	ips_append_layer(
		r, &(struct ips_layer){"Dense_10", "Dense", 2, 1, "(32, 10)", 1290, 1290, 81920});
	ips_append_operation(r, &(struct ips_operation){"Dense_128/fwd", "Dense_128", "matmul", "F",
							0, 6422528, 1800, 1500, 200, 100, 65536,
							1472, 0.9, 4096});
	ips_append_operation(r, &(struct ips_operation){"Dense_10/fwd", "Dense_10", "matmul", "F",
							1, 81920, 300, 250, 30, 20, 4096, 128, 0.5,
							1024});
	ips_append_plan(
		r, &(struct ips_plan){"Dense_128/fwd", "split", 4, 8, 16, 2, 1, 1, 8192, 1800});
	ips_append_program(r, &(struct ips_program){0, IPS_NULL, 0, "Sequence", "main", NULL,
						    IPS_NULL, IPS_NULL});
	ips_append_program(r, &(struct ips_program){1, 0, 0, "OnTileExecute", "Dense_128/fwd",
						    "Dense_128/fwd", IPS_NULL, IPS_NULL});
	ips_append_program(r, &(struct ips_program){2, 0, 1, "OnTileExecute", "Dense_10/fwd",
						    "Dense_10/fwd", IPS_NULL, IPS_NULL});
	ips_append_compute_set(r, &(struct ips_compute_set){"Dense_128/fwd/cs", "Dense_128/fwd", 1,
							    1472, 1472, 1500, 1400.5});
}

static void sample_memory(struct ips_recording *r)
{
	ips_append_variable(r,
			    &(struct ips_variable){0, "Dense_128/kernel:0", "Dense_128", "weight",
						   "(784, 128)", "float32", 401408, 0, 1, 0, 2});
	ips_append_variable(r, &(struct ips_variable){1, "Dense_128/out", "Dense_128", "activation",
						      "(32, 128)", "float32", 16384, 0, 0, 1, 2});
	ips_append_variable_tile(r, &(struct ips_variable_tile){0, 0, 3, 200704, 1});
	ips_append_tile_memory(
		r, &(struct ips_tile_memory){0, 3, "variables", "interleaved", 200704, 638976, 1});
	ips_append_liveness(r, &(struct ips_liveness){0, 0, 0, 401408, 0});
	ips_append_liveness(r, &(struct ips_liveness){0, 1, 1, 401408, 16384});
	ips_append_liveness(r, &(struct ips_liveness){0, 2, 2, 401408, 1024});
}

static void sample_timing(struct ips_recording *r, const struct ips_keys *keys, int64_t start_ns,
			  int64_t dur_ns)
{
	for (int clock = 0; clock < 2; clock++) {
		struct ips_stage_timing row = {.keys = *keys,
					       .clock = clock,
					       .start_ns = clock ? start_ns / 10 : start_ns,
					       .dur_ns = clock ? dur_ns / 10 : dur_ns,
					       .cpu_ns = clock ? IPS_NULL : dur_ns - US};

		assert_int_equal(ips_append_stage_timing(r, &row), 0);
	}
}

static void sample_timings(struct ips_recording *r)
{
	for (int replica = 0; replica < REPLICAS; replica++) {
		for (int step = 0; step < UPDATES * MICROBATCHES; step++) {
			for (int stage = 0; stage < STAGES; stage++) {
				struct ips_keys f = sample_keys(replica, stage, step, 'F');
				struct ips_keys b = sample_keys(replica, stage, step, 'B');
				int64_t start = (step * 1000 + stage * 100) * US;
				int64_t forward = (stage + 1) * 100 * US;

				sample_timing(r, &f, start, forward);
				sample_timing(r, &b, start + 400 * US, 2 * forward);
			}
		}
		for (int stage = 0; stage < STAGES; stage++) {
			struct ips_keys u = sample_keys(replica, stage, MICROBATCHES - 1, 'U');

			sample_timing(r, &u, 3900 * US, 50 * US);
		}
	}
}

/* Update 0: idle 0.25, update 1: idle 0.5. Means: 0.375. Of 2 IPUs x 1,000 us. */
static void sample_bubbles(struct ips_recording *r)
{
	for (int clock = 0; clock < 2; clock++) {
		for (int update = 0; update < UPDATES; update++) {
			struct ips_bubble row = {
				.clock = clock,
				.schedule = "Grouped",
				.stages = STAGES,
				.microbatches = MICROBATCHES,
				.makespan_ns = 1000 * US,
				.busy_ns = update ? 1000 * US : 1500 * US,
				.idle_fraction = update ? 0.5 : 0.25,
				.bubble_rate = update ? 0.4 : 0.2,
				.bubble_over_ideal = update ? 1.0 : 1.0 / 3,
				.theory_idle_fraction = 0.2,
				.theory_bubble_rate = 0.2,
				.theory_bubble_over_ideal = 0.25,
				.ramp_up_ns = update ? 400 * US : 200 * US,
				.ramp_down_ns = 200 * US,
				.imbalance_ns = update ? 300 * US : 50 * US,
				.communication_ns = update ? 100 * US : 50 * US,
				.oversubscribed = clock ? 0 : 1,
			};

			row.keys = sample_keys(0, -1, update * MICROBATCHES, 0);
			row.keys.step = row.keys.microbatch = IPS_NULL;
			assert_int_equal(ips_append_bubble(r, &row), 0);
		}
	}
}

static void sample_device(struct ips_recording *r)
{
	const struct ips_device_trace trace = {.clock_hz = 1.33e9, .name = "train"};
	const struct ips_device_run run = {.mode = IPS_TRAIN, .epoch = 1};
	struct ips_device_step step = {.phase = "F",
				       .program_id = 1,
				       .type = "OnTileExecute",
				       .name = "Dense_128/fwd",
				       .operation = "Dense_128/fwd",
				       .start_cycle = 0,
				       .cycles = 1800,
				       .cycles_overlapped = 0,
				       .active_tiles = 1472,
				       .tile_balance = 0.9,
				       .active_tile_balance = 0.9,
				       .bytes_in = 65536,
				       .bytes_out = 16384};

	ips_append_device_trace(r, &trace);
	ips_append_device_step(r, &step);
	ips_append_device_run(r, &run);
	for (int clock = 0; clock < 2; clock++)
		ips_append_time_split(r,
				      &(struct ips_time_split){clock, 0, 0, 0, 600 * US, 100 * US,
							       50 * US, 50 * US, 200 * US});
}

/* As chosen, and lowered at step 4 where @lowered. */
static void sample_tiers(struct ips_recording *r, int64_t id, bool lowered)
{
	struct ips_tensor_tier row = {IPS_KEYS_NULL, id,       "full",           1,
				      IPS_NULL,      IPS_NULL, "outfeed.capture"};

	ips_append_tensor_tier(r, &row);
	row = (struct ips_tensor_tier){
		sample_keys(0, 0, 4, 0), id, "stats", 1, IPS_NULL, 4000 * US, "budget"};
	if (lowered)
		ips_append_tensor_tier(r, &row);
}

/* What led to the bad number in the last tensor: the one before it. */
static void sample_trail(struct ips_recording *r, const int64_t ids[TENSORS])
{
	static const char *const roles[TENSORS] = {"bad", "input"};

	for (int i = 0; i < TENSORS; i++) {
		struct ips_nonfinite_trail row = {
			.keys = sample_keys(0, 1, 7, 'F'),
			.position = -i,
			.role = roles[i],
			.tensor_id = ids[TENSORS - 1 - i],
			.time_ns = 7000 * US,
			.n = 320,
			.n_nan = i ? 0 : 2,
			.n_pos_inf = i ? 0 : 1,
			.n_zero = 20,
			.n_neg = 100,
			.n_pos = 197,
			.min = -7,
			.max = 7,
			.mean = (double)NAN,
			.std = (double)NAN,
			.l1 = (double)NAN,
			.l2 = (double)NAN,
			.abs_min_nonzero = 1e-6,
			.abs_max = 7,
		};

		ips_append_nonfinite_trail(r, &row);
	}
}

static void sample_tensors(struct ips_recording *r)
{
	static const char *const keys[TENSORS] = {"Dense_128/kernel:0_grad", "Dense_10/out"};
	static const char *const layers[TENSORS] = {"Dense_128", "Dense_10"};
	int64_t ids[TENSORS];

	for (int t = 0; t < TENSORS; t++) {
		struct ips_tensor tensor = {"outfeed",
					    keys[t],
					    t ? "activation" : "gradient",
					    layers[t],
					    t,
					    t ? "(32, 10)" : "(784, 128)",
					    "float32",
					    t ? "relu" : NULL,
					    t ? "batch, features" : NULL};
		int64_t id = ids[t] = ips_tensor_add(r, &tensor);

		for (int step = 0; step < UPDATES * MICROBATCHES; step++) {
			struct ips_tensor_stats row = {
				.keys = sample_keys(0, t, step, t ? 'F' : 'B'),
				.tensor_id = id,
				.time_ns = step * 1000 * US,
				.n = 320,
				.n_nan = step == 7 ? 2 : 0,
				.n_pos_inf = step == 7 ? 1 : 0,
				.n_zero = 20,
				.n_neg = 100,
				.n_pos = 197,
				.min = -step,
				.max = step,
				.mean = step,
				.std = 1.5,
				.l1 = 3.0 * step,
				.l2 = 10.0 * step,
				.abs_min_nonzero = 1e-6,
				.abs_max = step,
				.inactive = t ? 0.1 * step : (double)NAN,
				.update_ratio = t ? (double)NAN : 1e-3,
				.n_changed = t ? IPS_NULL : 300,
			};

			assert_int_equal(ips_append_tensor_stats(r, &row), 0);
		}
		ips_append_tensor_histogram(
			r, &(struct ips_tensor_histogram){sample_keys(0, t, 0, 'B'), id, 0, -1, 0,
							  120});
		ips_append_capture(r,
				   &(struct ips_capture){sample_keys(0, t, 0, 'B'), id, "float32",
							 "(2,)", 8, 0, "\0\0\0\0\0\0\200?"});
		ips_append_first_nonfinite(r,
					   &(struct ips_first_nonfinite){sample_keys(0, t, 7, 'B'),
									 id, 7000 * US, 17, "nan"});
		ips_append_health(r, &(struct ips_health){sample_keys(0, t, 7, 'B'), "nonfinite",
							  id, NULL, 7000 * US, 3, 0, NULL});
		sample_tiers(r, id, t);
	}
	sample_trail(r, ids);
	ips_append_health(r, &(struct ips_health){sample_keys(0, 0, 7, 0), "loss_not_decreasing",
						  IPS_NULL, NULL, 7000 * US, 2.3, 0.1, "loss"});
	ips_append_tensor_epoch(r, &(struct ips_tensor_epoch){IPS_TRAIN, 1, "Gradients", "outfeed",
							      keys[0], "(8, 784, 128)", 3.5, 1.5,
							      -7, INFINITY, 2, 1});
	ips_append_health_rule(r,
			       &(struct ips_health_rule){"nonfinite", 0, 1, 1, "NaN or Inf", NULL});
	ips_append_health_rule(r, &(struct ips_health_rule){"loss_not_decreasing", 0.1, 5, 1,
							    "no progress", "{\"window\":10}"});
}

static void sample_metrics(struct ips_recording *r)
{
	static const struct {
		int64_t mode, epoch, execution, step;
		const char *name;
		double value;
	} rows[] = {
		{IPS_TRAIN, 1, 0, 3, "loss", 2.5},
		{IPS_TRAIN, 1, 0, 7, "loss", 1.5},
		{IPS_TRAIN, 1, IPS_NULL, IPS_NULL, "loss", 2.0},
		{IPS_TRAIN, 1, IPS_NULL, IPS_NULL, "accuracy", 0.75},
		{IPS_EVALUATE, IPS_NULL, 1, IPS_NULL, "loss", 1.25},
		{IPS_EVALUATE, IPS_NULL, 1, IPS_NULL, "accuracy", 0.875},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ips_append_metric(r, &(struct ips_metric){rows[i].mode, rows[i].epoch,
							  rows[i].execution, rows[i].step,
							  (int64_t)i * US, rows[i].name,
							  rows[i].value});
	ips_append_execution(
		r, &(struct ips_execution){IPS_TRAIN, 1, 0, 0, 8, 2, 0, 9000 * US, 0, 1197000, 1});
	ips_append_execution(r, &(struct ips_execution){IPS_EVALUATE, IPS_NULL, 1, 0, 4, 0,
							9000 * US, 1000 * US, 1197000, 133000, 0});
}

/* A row of each table of accelerators: the first span of @track launches the second. */
static void sample_accelerator(struct ips_recording *r, struct ips_track *track, int at)
{
	if (at == 0) {
		ips_append_device(r, &(struct ips_device){"GPU 0", 0, "Simulated", "9.0", 1 << 30,
							  132, 1000000000, IPS_NULL});
		ips_append_memory_event(r, &(struct ips_memory_event){"GPU 0", 500 * US, "alloc",
								      4096, 64, 4096, 8192});
		ips_span_row(track, IPS_TABLE_range, &(struct ips_range){"step", NULL});
		ips_span_row(track, IPS_TABLE_call, &(struct ips_call){7});
		return;
	}
	ips_span_row(track, IPS_TABLE_range, &(struct ips_range){"nvtx", NULL});
	ips_span_row(track, IPS_TABLE_kernel,
		     &(struct ips_kernel){"GPU 0", 1, 7, "compute", 7, 1, 1, 1, 32, 1, 1, 16, 0,
					  0.5, IPS_NULL, IPS_NULL});
	ips_span_row(track, IPS_TABLE_copy,
		     &(struct ips_copy){"GPU 0", 1, 7, "HtoD", 7, 4096, NULL, NULL, NULL});
}

static void sample_spans(struct ips_recording *r)
{
	IPS_SITE(forward, "stage", "forward");
	IPS_SITE(load, "data", "load, \"batch\"");
	IPS_SITE(sent, "pipeline", "activation");
	IPS_SITE(queue, "queue", "queue depth");
	IPS_SITE(epoch, "train", "epoch end");
	IPS_SITE(gather, "mpi", "MPI_Iallgatherv");
	struct ips_track *host = ips_track_open(r, "worker 0", NULL);
	struct ips_track *other = ips_track_open(r, "worker 1", NULL);
	struct ips_track_params params = {.name = "IPU 0", .ipu = 0, .clock = IPS_DEVICE};
	struct ips_track *device = ips_track_open(r, "ipu 0", &params);
	struct ips_track *exchange = ips_track_open(r, "exchange", NULL);
	struct ips_keys keys = sample_keys(0, 0, 1, 'F');

	ips_track_set_keys(host, &keys);
	ips_span_begin(host, &load);
	ips_span_arg_int(host, "bytes", 25088);
	ips_span_begin(host, &forward);
	ips_flow_out(host, &sent, 1);
	ips_span_begin(other, &forward);
	ips_flow_in(other, &sent, 1);
	ips_span_end(other);
	ips_span_end(host);
	ips_span_end(host);
	ips_instant(host, &epoch);
	ips_instant_arg_int(host, "number", 1);
	ips_counter(host, &queue, 3);
	ips_span_at(device, &forward, 0, 1353);
	for (int i = 0; i < 2; i++) {
		ips_track_set_keys(exchange,
				   &(struct ips_keys){1, 0, i, IPS_NULL, IPS_NULL, IPS_NULL,
						      IPS_NULL, 0, IPS_TRAIN, IPS_UPDATE});
		ips_span_at(exchange, &gather, (1000 + 4000 * i) * US, 500 * US);
		ips_span_arg_int(exchange, "bytes", 30000);
		ips_span_arg_int(exchange, "size", 40000);
		ips_span_arg_int(exchange, "ranks", 4);
		sample_accelerator(r, exchange, i);
	}
}

/* @alone: the rows do not depend on when the writer commits, but a kill would damage the file. */
static struct ips_recording *sample_open(const char *path, bool alone)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	char message[1024] = "";

	ips_recording_params_defaults(&params);
	params.command = "ipu-train sample.json";
	params.alone = alone;
	if (ips_recording_open(&recording, path, &params, message, sizeof(message)))
		fail_msg("%s", message);
	return recording;
}

static struct ips_recording *sample_record(const char *path, bool alone)
{
	struct ips_recording *r = sample_open(path, alone);

	sample_meta(r);
	sample_model(r);
	sample_memory(r);
	sample_timings(r);
	sample_bubbles(r);
	sample_device(r);
	sample_tensors(r);
	sample_metrics(r);
	sample_spans(r);
	return r;
}

void report_sample_write(const char *path)
{
	char message[1024] = "";

	if (ips_recording_close(sample_record(path, true), message, sizeof(message)))
		fail_msg("%s", message);
}

void report_sample_write_empty(const char *path)
{
	assert_int_equal(ips_recording_close(sample_open(path, true), NULL, 0), 0);
}

void report_sample_write_killed(const char *path)
{
	pid_t child = fork();
	int state;

	assert_true(child >= 0);
	if (!child) {
		struct ips_recording *r = sample_record(path, false);

		ips_recording_flush(r);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &state, 0), child);
	assert_true(WIFSIGNALED(state));
}
