/*
 * A small recording with given times, for the viewer's tests: the same bytes of text on every
 * screen, every time.
 *
 * Two simulated IPUs train 24 weight updates of 4 micro-batches in a grouped pipeline; host workers
 * do the same with uneven times. One gradient meets NaN, and names carry what a hostile program
 * could put there.
 */
#include "support/view_fixture.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/support.h"

#define UPDATES      24
#define BATCHES      4
#define STAGES       2
#define UNIT_NS      10000 /* a forward on the device */
#define RUN_UNITS    15
#define EXECUTION_OF 8 /* weight updates of one Engine::run */
#define HOST_SCALE   7 /* the host is that much slower */

struct fixture {
	struct ips_recording *recording;
	struct ips_track *device[STAGES], *worker[STAGES], *engine, *main;
	struct ips_site *site[STAGES][3], *matmul, *relu, *run, *load;
	int64_t tensors[4];
};

/* Grouped, two stages, four micro-batches: when (in units) forward and backward of one begin. */
static const int forward_at[STAGES][BATCHES] = {{0, 1, 2, 3}, {1, 2, 3, 4}};
static const int backward_at[STAGES][BATCHES] = {{7, 9, 11, 13}, {5, 7, 9, 11}};

static struct ips_keys keys_of(int update, int batch, int stage, char phase)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.epoch = 1 + update / 12;
	keys.execution = update / EXECUTION_OF;
	keys.weight_update = update;
	keys.step = update * BATCHES + (batch < 0 ? BATCHES - 1 : batch);
	keys.microbatch = batch < 0 ? IPS_NULL : batch;
	keys.replica = 0;
	keys.ipu = stage;
	keys.stage = stage;
	keys.mode = IPS_TRAIN;
	keys.phase = phase;
	return keys;
}

static void fixture_tracks(struct fixture *f)
{
	static const char *const phases[] = {"forward", "backward", "weight update"};
	struct ips_track_params params = {.ipu = IPS_NULL, .clock = IPS_DEVICE};
	char name[64];

	f->engine = ips_track_open(f->recording, "Engine", &params);
	params.clock = IPS_HOST;
	f->main = ips_track_open(f->recording, "main", &params);
	for (int s = 0; s < STAGES; s++) {
		params = (struct ips_track_params){.ipu = s, .clock = IPS_DEVICE};
		snprintf(name, sizeof(name), "IPU %d", s);
		f->device[s] = ips_track_open(f->recording, name, &params);
		params.clock = IPS_HOST;
		snprintf(name, sizeof(name), "worker %d", s);
		f->worker[s] = ips_track_open(f->recording, name, &params);
		for (int p = 0; p < 3; p++) {
			snprintf(name, sizeof(name), "stage %d %s", s, phases[p]);
			f->site[s][p] = ips_site_intern("stage", name, NULL);
		}
	}
	f->matmul = ips_site_intern("operation", "MatMul/Dense_256", "Dense_256/MatMul");
	f->relu = ips_site_intern("operation", "Relu \x1b[31m\xff\xe4\xb8\xad\xe6\x96\x87", NULL);
	f->run = ips_site_intern("engine", "Engine::run", NULL);
	f->load = ips_site_intern("data", "load batch", NULL);
}

static void fixture_span(struct ips_track *track, struct ips_site *site,
			 const struct ips_keys *keys, int64_t start, int64_t dur)
{
	ips_track_set_keys(track, keys);
	ips_span_at(track, site, start, dur);
}

/* One phase of one micro-batch; on the device with what it runs inside. */
static void fixture_work(struct fixture *f, bool device, int update, int batch, int stage,
			 char phase, int64_t start, int64_t dur)
{
	const struct ips_keys keys = keys_of(update, batch, stage, phase);
	const int site = phase == 'F' ? 0 : phase == 'B' ? 1 : 2;
	struct ips_track *track = device ? f->device[stage] : f->worker[stage];
	const struct ips_stage_timing timing = {.keys = keys,
						.clock = device ? IPS_DEVICE : IPS_HOST,
						.start_ns = start,
						.dur_ns = dur,
						.cpu_ns = IPS_NULL};

	fixture_span(track, f->site[stage][site], &keys, start, dur);
	if (device) {
		ips_span_arg_int(track, "cycles", dur * 133 / 100);
		fixture_span(track, f->matmul, &keys, start, dur * 6 / 10);
		fixture_span(track, f->relu, &keys, start + dur * 6 / 10, dur * 2 / 10);
	}
	ips_append_stage_timing(f->recording, &timing);
}

/* One clock's part of a pipeline run; spans of a track in order of time. */
static void fixture_run(struct fixture *f, bool device, int update, int64_t start, int64_t unit)
{
	for (int s = 0; s < STAGES; s++) {
		for (int t = 0; t < RUN_UNITS; t++)
			for (int b = 0; b < BATCHES; b++) {
				const int64_t dur = unit - unit / 10 * s;

				if (forward_at[s][b] == t)
					fixture_work(f, device, update, b, s, 'F', start + t * unit,
						     dur);
				if (backward_at[s][b] == t)
					fixture_work(f, device, update, b, s, 'B', start + t * unit,
						     dur * 18 / 10);
			}
		fixture_work(f, device, update, -1, s, 'U', start + (RUN_UNITS + 1) * unit,
			     unit / 2);
	}
}

static void fixture_tensors(struct fixture *f)
{
	static const struct ips_tensor tensors[] = {
		{"activations", "Dense_128:0", "activation", "Dense_128", 1, "(125, 128)",
		 "float32", NULL, NULL},
		{"gradients", "Dense_128/bias:0_grad", "gradient", "Dense_128", 1, "(125, 128)",
		 "float32", NULL, NULL},
		{"gradients", "Dense_128/kernel:0_grad", "gradient", "Dense_128", 1,
		 "(125, 256, 128)", "float32", NULL, NULL},
		{"gradients", "evil\x07\x1b]0;pwned\x07/kernel:0_grad", "gradient", "evil", 0,
		 "(125, 10)", "float32", NULL, NULL}};

	for (int i = 0; i < 4; i++)
		f->tensors[i] = ips_tensor_add(f->recording, &tensors[i]);
}

static void fixture_statistics(struct fixture *f, int update)
{
	for (int i = 0; i < 4; i++) {
		const double x = update / (double)UPDATES;
		const double value = (1 + i) * exp(-3 * x) * (1 + 0.2 * sin(12 * x + i));
		struct ips_tensor_stats row = {.keys = keys_of(update, 0, 1, 'B'),
					       .tensor_id = f->tensors[i],
					       .time_ns = update * 1000000,
					       .n = 1000,
					       .n_nan = i == 3 && update == 20 ? 7 : 0,
					       .n_pos = 600,
					       .n_neg = 400,
					       .min = -value,
					       .max = 2 * value,
					       .mean = value / 3,
					       .std = value,
					       .l1 = 100 * value,
					       .l2 = 10 * value,
					       .abs_min_nonzero = value / 100,
					       .abs_max = 2 * value,
					       .inactive = (double)NAN,
					       .update_ratio = (double)NAN,
					       .n_changed = IPS_NULL};

		ips_append_tensor_stats(f->recording, &row);
	}
}

static void fixture_bubble(struct fixture *f, int update, int clock, int64_t unit)
{
	const struct ips_bubble row = {.keys = keys_of(update, -1, 0, 0),
				       .clock = clock,
				       .schedule = "Grouped",
				       .stages = STAGES,
				       .microbatches = BATCHES,
				       .makespan_ns = RUN_UNITS * unit,
				       .busy_ns = 22 * unit,
				       .idle_fraction = 0.2143,
				       .bubble_rate = 0.1905,
				       .bubble_over_ideal = 0.2727,
				       .theory_idle_fraction = 0.2,
				       .theory_bubble_rate = 0.2,
				       .theory_bubble_over_ideal = 0.25,
				       .ramp_up_ns = unit,
				       .ramp_down_ns = unit,
				       .imbalance_ns = 3 * unit,
				       .communication_ns = unit,
				       .oversubscribed = 0};

	ips_append_bubble(f->recording, &row);
}

static void fixture_execution(struct fixture *f, int execution, int64_t host_run,
			      int64_t device_run)
{
	struct ips_keys keys = IPS_KEYS_NULL;
	const struct ips_execution row = {.mode = IPS_TRAIN,
					  .epoch = 1,
					  .execution = execution,
					  .first_step = (int64_t)execution * EXECUTION_OF * BATCHES,
					  .steps = EXECUTION_OF * BATCHES,
					  .updates = EXECUTION_OF,
					  .start_ns = execution * EXECUTION_OF * host_run,
					  .dur_ns = EXECUTION_OF * host_run,
					  .start_cycle = execution * EXECUTION_OF * device_run,
					  .cycles = EXECUTION_OF * device_run,
					  .traced = 1};

	keys.execution = execution;
	keys.mode = IPS_TRAIN;
	ips_append_execution(f->recording, &row);
	fixture_span(f->engine, f->run, &keys, execution * EXECUTION_OF * device_run,
		     EXECUTION_OF * device_run);
	fixture_span(f->main, f->run, &keys, execution * EXECUTION_OF * host_run,
		     EXECUTION_OF * host_run - host_run / 10);
}

static void fixture_fill(struct fixture *f, int updates)
{
	const int64_t device_run = (RUN_UNITS + 2) * UNIT_NS, host_run = HOST_SCALE * device_run;

	ips_meta_set(f->recording, "model", "inspect tensors");
	ips_meta_set(f->recording, "run", "{}");
	fixture_tracks(f);
	fixture_tensors(f);
	for (int update = 0; update < updates; update++) {
		if (update % EXECUTION_OF == 0)
			fixture_execution(f, update / EXECUTION_OF, host_run, device_run);
		fixture_run(f, true, update, update * device_run, UNIT_NS);
		fixture_run(f, false, update, update * host_run,
			    HOST_SCALE * UNIT_NS - (update % 3) * UNIT_NS / 2);
		fixture_bubble(f, update, IPS_DEVICE, UNIT_NS);
		fixture_bubble(f, update, IPS_HOST, HOST_SCALE * UNIT_NS);
		fixture_statistics(f, update);
	}
}

struct ips_recording *view_fixture_record(const char *path, const char *command)
{
	struct ips_recording *recording;
	struct ips_recording_params params;

	ips_recording_params_defaults(&params);
	params.command = command;
	params.alone = 1;
	return ips_recording_open(&recording, path, &params, NULL, 0) == 0 ? recording : NULL;
}

/* ---- made once ------------------------------------------------------------------------------- */

#define KEPT_MOST        8
#define KEPT_PARAMS_MOST 64

/* What was written, until the process ends. */
static struct kept {
	view_fixture_make *write;
	unsigned char params[KEPT_PARAMS_MOST];
	size_t size;
	char *bytes;
	size_t length;
} kept[KEPT_MOST];

static size_t kept_count;

bool view_fixture_once(const char *path, view_fixture_make *write, const void *params, size_t size)
{
	for (size_t i = 0; i < kept_count; i++) {
		if (kept[i].write == write && kept[i].size == size &&
		    memcmp(kept[i].params, params, size) == 0) {
			support_write_file(path, kept[i].bytes, kept[i].length);
			return true;
		}
	}
	if (!write(path, params))
		return false;
	if (kept_count < KEPT_MOST && size <= KEPT_PARAMS_MOST) {
		struct kept *now = &kept[kept_count++];

		now->write = write;
		memcpy(now->params, params, size);
		now->size = size;
		now->bytes = support_read_file(path, &now->length);
	}
	return true;
}

static bool write_usual(const char *path, const void *params)
{
	const int updates = *(const int *)params;
	struct fixture f = {.recording = view_fixture_record(path, "view_fixture")};

	if (!f.recording)
		return false;
	fixture_fill(&f, updates > 0 ? updates : UPDATES);
	return ips_recording_close(f.recording, NULL, 0) == 0;
}

bool view_fixture_write(const char *path, int updates)
{
	return view_fixture_once(path, write_usual, &updates, sizeof(updates));
}
