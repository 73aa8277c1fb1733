/*
 * Three stages on three IPUs: all forward, then all backward; each work waits for its input and for
 * a while more. Bubbles and stage timings are those of the works, lanes of the device are there for
 * executions that are traced.
 */
#include "support/view_fixture_runs.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"
#include "support/view_fixture.h"
#include "support/view_fixture_bubble.h"

#define STAGES   VIEW_RUNS_STAGES
#define CYCLE_NS (1000000000 / VIEW_RUNS_HERTZ)

struct runs {
	struct ips_recording *recording;
	struct ips_track *track[2][STAGES]; /* host, device */
	struct ips_site *site[STAGES][2], *arrow;
	struct ips_track *engine; /* NULL: there is none */
	struct rng rng;
	int64_t at[2]; /* ns */
	int64_t step[2], update;
};

struct made {
	struct ipu_interval *works; /* by stage, then time */
	int count;
	int64_t end;
};

static void open_tracks(struct runs *r)
{
	char name[64];

	r->arrow = ips_site_intern("flow", "activations", NULL);
	for (int s = 0; s < STAGES; s++) {
		for (int clock = 0; clock < 2; clock++) {
			const struct ips_track_params params = {
				.ipu = s, .clock = clock ? IPS_DEVICE : IPS_HOST};

			snprintf(name, sizeof(name), "IPU %d", s);
			r->track[clock][s] = ips_track_open(r->recording, name, &params);
		}
		for (int p = 0; p < 2; p++) {
			snprintf(name, sizeof(name), "stage %d %s", s, p ? "backward" : "forward");
			r->site[s][p] = ips_site_intern("stage", name, NULL);
		}
	}
}

/* The works of a run that begins at @start; @phases: forward alone, or backward, too. */
static bool make_works(struct runs *r, int64_t start, int batches, int phases, struct made *out)
{
	int64_t *input = calloc((size_t)batches, sizeof(*input));
	int64_t at[STAGES] = {start, start, start};

	out->count = STAGES * batches * phases;
	out->works = calloc((size_t)out->count, sizeof(*out->works));
	out->end = start;
	for (int i = 0; input && out->works && i < phases * STAGES; i++) {
		const int back = i / STAGES, s = back ? 2 * STAGES - 1 - i : i;

		for (int b = 0; b < batches; b++) {
			struct ipu_interval *work = &out->works[(s * phases + back) * batches + b];
			const int64_t ready =
				i == 0 ? start : input[b] + 2 * rng_below(&r->rng, 900);

			*work = (struct ipu_interval){
				.ipu = s, .stage = s, .microbatch = b, .phase = "FB"[back]};
			work->start_ns = at[s] > ready ? at[s] : ready;
			work->dur_ns = 2000 + 2 * rng_below(&r->rng, 1500);
			input[b] = work->start_ns + work->dur_ns;
			at[s] = input[b] + 2 * rng_below(&r->rng, 2) * 150;
			out->end = input[b] > out->end ? input[b] : out->end;
		}
	}
	free(input);
	return input && out->works;
}

/* The host's forward works lead to each other, from stage to stage. */
static void write_arrow(struct runs *r, const struct ipu_interval *work, uint64_t step)
{
	const int s = work->stage;

	if (work->phase != 'F')
		return;
	if (s > 0)
		ips_flow_in_at(r->track[0][s], r->arrow, step * STAGES + (uint64_t)s - 1,
			       work->start_ns);
	if (s + 1 < STAGES)
		ips_flow_out_at(r->track[0][s], r->arrow, step * STAGES + (uint64_t)s,
				work->start_ns + work->dur_ns);
}

static void write_works(struct runs *r, int clock, bool spans, const struct ips_keys *run,
			const struct made *made)
{
	for (int i = 0; i < made->count; i++) {
		const struct ipu_interval *work = &made->works[i];
		struct ips_stage_timing row = {.keys = *run,
					       .clock = clock ? IPS_DEVICE : IPS_HOST,
					       .start_ns = work->start_ns,
					       .dur_ns = work->dur_ns,
					       .cpu_ns = IPS_NULL};

		row.keys.microbatch = work->microbatch;
		row.keys.step = run->step + work->microbatch;
		row.keys.ipu = row.keys.stage = work->stage;
		row.keys.phase = work->phase;
		ips_append_stage_timing(r->recording, &row);
		if (!spans)
			continue;
		ips_track_set_keys(r->track[clock][work->ipu], &row.keys);
		ips_span_at(r->track[clock][work->ipu], r->site[work->stage][work->phase == 'B'],
			    work->start_ns, work->dur_ns);
		if (!clock)
			write_arrow(r, work,
				    2 * (uint64_t)row.keys.step + (run->mode == IPS_TRAIN));
	}
}

static void write_bubble(struct runs *r, int clock, const struct ips_keys *run, int batches,
			 const struct made *made)
{
	struct ips_bubble row = {.keys = *run,
				 .clock = clock ? IPS_DEVICE : IPS_HOST,
				 .schedule = "Grouped",
				 .stages = STAGES,
				 .microbatches = batches,
				 .theory_idle_fraction = 0.2};

	row.keys.step = IPS_NULL;
	view_fixture_bubble(&row, made->works, made->count);
	ips_append_bubble(r->recording, &row);
}

static bool write_run(struct runs *r, int clock, const struct view_runs_execution *of,
		      const struct ips_keys *run)
{
	struct made made = {0};
	const bool ok = make_works(r, r->at[clock], of->batches, of->train ? 2 : 1, &made);

	if (ok) {
		write_works(r, clock, !clock || of->traced, run, &made);
		write_bubble(r, clock, run, of->batches, &made);
		r->at[clock] = made.end + 1000;
	}
	free(made.works);
	return ok;
}

static bool write_execution(struct runs *r, int number, const struct view_runs_execution *of)
{
	const int64_t from[2] = {r->at[0], r->at[1]}, steps = (int64_t)of->updates * of->batches;
	struct ips_execution row = {.mode = of->train ? IPS_TRAIN : IPS_EVALUATE,
				    .epoch = of->train ? 1 + number : IPS_NULL,
				    .execution = number,
				    .first_step = r->step[of->train],
				    .steps = steps,
				    .updates = of->train ? of->updates : 0,
				    .traced = of->traced};
	bool ok = true;

	for (int i = 0; i < of->updates && ok; i++) {
		struct ips_keys keys = IPS_KEYS_NULL;

		keys.mode = of->train ? IPS_TRAIN : IPS_EVALUATE;
		keys.epoch = row.epoch;
		keys.execution = number;
		keys.replica = 0;
		keys.step = r->step[of->train];
		if (of->train)
			keys.weight_update = r->update++;
		ok = write_run(r, 0, of, &keys) && write_run(r, 1, of, &keys);
		r->step[of->train] += of->batches;
	}
	row.start_ns = from[0];
	row.dur_ns = r->at[0] - from[0];
	row.start_cycle = from[1] / CYCLE_NS;
	row.cycles = (r->at[1] - from[1]) / CYCLE_NS;
	ips_append_execution(r->recording, &row);
	if (r->engine)
		ips_span_at(r->engine, ips_site_intern("engine", "Engine::run", NULL), from[1],
			    r->at[1] - from[1] + 1);
	for (int clock = 0; clock < 2; clock++)
		r->at[clock] += VIEW_RUNS_PAUSE_NS;
	return ok;
}

static bool write_all(const char *path, const struct view_runs_execution *executions, int count,
		      bool engine)
{
	const struct ips_track_params params = {.ipu = IPS_NULL, .clock = IPS_DEVICE};
	struct runs r = {.recording = view_fixture_record(path, "view_fixture_runs"),
			 .at = {1000, 1000}};
	bool ok = true;

	if (!r.recording)
		return false;
	rng_init(&r.rng, 11, 1, 0, 0);
	ips_meta_set(r.recording, "clock_hz", "500000000");
	ips_meta_set(r.recording, "replicas", "1");
	ips_meta_set(r.recording, "ipus", "3");
	open_tracks(&r);
	if (engine)
		r.engine = ips_track_open(r.recording, "Engine", &params);
	for (int i = 0; i < count && ok; i++)
		ok = write_execution(&r, i, &executions[i]);
	return ips_recording_close(r.recording, NULL, 0) == 0 && ok;
}

bool view_fixture_runs_write(const char *path, const struct view_runs_execution *executions,
			     int count)
{
	return write_all(path, executions, count, false);
}

bool view_fixture_runs_engine_write(const char *path, const struct view_runs_execution *executions,
				    int count)
{
	return write_all(path, executions, count, true);
}
