/*
 * Two replicas of a pipeline of two stages, four micro-batches a weight update, grouped: the works
 * of view_fixture.c's schedule with times that differ from update to update.
 */
#include "support/view_fixture_device.h"

#include <math.h>
#include <stdio.h>

#include "common/mem.h"
#include "common/rng.h"
#include "support/view_fixture.h"
#include "support/view_fixture_bubble.h"

#define REPLICAS     VIEW_DEVICE_REPLICAS
#define STAGES       2
#define BATCHES      4
#define WORKS        (STAGES * BATCHES * 2)
#define EXECUTION_OF 8
#define RUN_NS       400000 /* of a weight update, on both clocks */
#define RUN_CYCLES   (RUN_NS / 2)
#define STEPS        5

struct device {
	struct ips_recording *recording;
	struct ips_track *track[2][REPLICAS * STAGES]; /* host, device */
	struct ips_site *site[STAGES][2];
	struct rng rng;
};

static const char *const phases[] = {"forward", "backward"};

static void open_tracks(struct device *d)
{
	char name[64];

	for (int clock = 0; clock < 2; clock++)
		for (int ipu = 0; ipu < REPLICAS * STAGES; ipu++) {
			const struct ips_track_params params = {
				.ipu = ipu, .clock = clock ? IPS_DEVICE : IPS_HOST};

			snprintf(name, sizeof(name), "IPU %d", ipu);
			d->track[clock][ipu] = ips_track_open(d->recording, name, &params);
		}
	for (int s = 0; s < STAGES; s++)
		for (int p = 0; p < 2; p++) {
			snprintf(name, sizeof(name), "stage %d %s", s, phases[p]);
			d->site[s][p] = ips_site_intern("stage", name, NULL);
		}
}

static struct ips_keys keys_of(int replica, int update)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.execution = update / EXECUTION_OF;
	keys.weight_update = update;
	keys.replica = replica;
	return keys;
}

/* The works of a run in order of time on each IPU; each waits for its input. */
static int make_works(struct device *d, int64_t start, struct ipu_interval *out)
{
	static const char order[STAGES][WORKS / STAGES + 1] = {"FFFFBBBB", "FFBFBFBB"};
	int64_t made[2][STAGES][BATCHES] = {{{0}}}, at[STAGES] = {start, start};
	int done[STAGES] = {0, 0}, next[2][STAGES] = {{0}}, count = 0;

	while (count < WORKS)
		for (int s = 0; s < STAGES; s++) {
			const int back = done[s] < WORKS / STAGES && order[s][done[s]] == 'B';
			const int batch = next[back][s];
			int64_t input = start;

			if (done[s] == WORKS / STAGES)
				continue;
			if (s == 1 - back)
				input = made[back][back ? 1 : 0][batch];
			else if (back)
				input = made[0][s][batch];
			if (input == 0)
				continue;
			input += 500 + rng_below(&d->rng, 4000);
			out[count] = (struct ipu_interval){
				.ipu = s, .stage = s, .microbatch = batch, .phase = "FB"[back]};
			out[count].start_ns = (at[s] > input ? at[s] : input) / 2 * 2;
			out[count].dur_ns = 8000 + 2 * rng_below(&d->rng, 6000);
			at[s] = made[back][s][batch] = out[count].start_ns + out[count].dur_ns;
			at[s] += 2 * rng_below(&d->rng, 2) * 900;
			next[back][s]++;
			done[s]++;
			count++;
		}
	return count;
}

static void write_bubble(struct device *d, int clock, int replica, int update,
			 const struct ipu_interval *works)
{
	struct ips_bubble row = {.keys = keys_of(replica, update),
				 .clock = clock ? IPS_DEVICE : IPS_HOST,
				 .schedule = "Grouped",
				 .stages = STAGES,
				 .microbatches = BATCHES,
				 .theory_idle_fraction = 0.2 + 0.001 * update,
				 .theory_bubble_rate = 0.2,
				 .theory_bubble_over_ideal = 0.25};

	view_fixture_bubble(&row, works, WORKS);
	ips_append_bubble(d->recording, &row);
}

static void write_run(struct device *d, int clock, int replica, int update)
{
	struct ipu_interval works[WORKS];
	const int64_t start = (int64_t)update * RUN_NS + 1000;
	const int count = make_works(d, start, works);

	for (int i = 0; i < count; i++) {
		const int s = works[i].stage;
		struct ips_track *track = d->track[clock][replica * STAGES + s];
		struct ips_keys keys = keys_of(replica, update);

		keys.microbatch = works[i].microbatch;
		keys.step = (int64_t)update * BATCHES + works[i].microbatch;
		keys.ipu = replica * STAGES + s;
		keys.stage = s;
		keys.phase = works[i].phase;
		ips_track_set_keys(track, &keys);
		ips_span_at(track, d->site[s][works[i].phase == 'B'], works[i].start_ns,
			    works[i].dur_ns);
	}
	write_bubble(d, clock, replica, update, works);
}

/* ---- the device's steps ---------------------------------------------------------------------- */

static void write_trace(struct device *d)
{
	static const char *const types[STEPS] = {"Sync", "DoExchange", "OnTileExecute",
						 "StreamCopyMid", "Sync"};
	static const int64_t cycles[STEPS] = {5000, 15000, 80000, 40000, 20000};
	const struct ips_device_trace trace = {
		.trace_id = 1, .clock_hz = VIEW_DEVICE_HERTZ, .name = "train"};

	ips_append_device_trace(d->recording, &trace);
	for (int ipu = 0; ipu < STAGES; ipu++) {
		int64_t at = 0;

		for (int i = 0; i < STEPS; i++) {
			const bool executes = i == 2;
			const struct ips_device_step step = {
				.trace_id = 1,
				.trace_step = i,
				.ipu = ipu,
				.stage = ipu,
				.phase = executes ? "F" : NULL,
				.microbatch = executes ? 1 : IPS_NULL,
				.program_id = 10 * ipu + i,
				.type = types[i],
				.name = executes ? "Dense/Multiply" : NULL,
				.operation = executes ? "Dense_256/MatMul" : NULL,
				.start_cycle = at,
				.cycles = cycles[i],
				.cycles_overlapped = IPS_NULL,
				.active_tiles = i == 3     ? IPS_NULL
						: executes ? 700 + ipu
							   : 1472,
				.tile_balance = executes ? 0.25 : (double)NAN,
				.active_tile_balance = executes ? 0.5 : (double)NAN,
				.bytes_in = 0,
				.bytes_out = 0};

			ips_append_device_step(d->recording, &step);
			at += cycles[i];
		}
	}
}

static void write_device_run(struct device *d, int replica, int update)
{
	const struct ips_device_run run = {.trace_id = 1,
					   .mode = IPS_TRAIN,
					   .epoch = 1,
					   .execution = update / EXECUTION_OF,
					   .weight_update = update,
					   .first_step = (int64_t)update * BATCHES,
					   .replica = replica,
					   .first_ipu = replica * STAGES,
					   .start_cycle = (int64_t)update * RUN_CYCLES};

	ips_append_device_run(d->recording, &run);
}

static void write_execution(struct device *d, int execution)
{
	const struct ips_execution row = {.mode = IPS_TRAIN,
					  .epoch = 1,
					  .execution = execution,
					  .first_step = (int64_t)execution * EXECUTION_OF * BATCHES,
					  .steps = EXECUTION_OF * BATCHES,
					  .updates = EXECUTION_OF,
					  .start_ns = (int64_t)execution * EXECUTION_OF * RUN_NS,
					  .dur_ns = (int64_t)EXECUTION_OF * RUN_NS,
					  .start_cycle =
						  (int64_t)execution * EXECUTION_OF * RUN_CYCLES,
					  .cycles = (int64_t)EXECUTION_OF * RUN_CYCLES,
					  .traced = 1};

	ips_append_execution(d->recording, &row);
}

bool view_fixture_device_write(const char *path)
{
	struct device d = {.recording = view_fixture_record(path, "view_fixture_device")};

	if (!d.recording)
		return false;
	rng_init(&d.rng, 7, 1, 0, 0);
	ips_meta_set(d.recording, "clock_hz", "500000000");
	ips_meta_set(d.recording, "replicas", "2");
	ips_meta_set(d.recording, "ipus", "4");
	open_tracks(&d);
	write_trace(&d);
	for (int update = 0; update < VIEW_DEVICE_UPDATES; update++) {
		if (update % EXECUTION_OF == 0)
			write_execution(&d, update / EXECUTION_OF);
		for (int r = 0; r < REPLICAS; r++) {
			write_device_run(&d, r, update);
			for (int clock = 1; clock >= 0; clock--)
				write_run(&d, clock, r, update);
		}
	}
	return ips_recording_close(d.recording, NULL, 0) == 0;
}
