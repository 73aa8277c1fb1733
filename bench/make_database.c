/*
 * A recording as large as one likes, of a pipelined training run that never was:
 *
 *	make_database FILE [--spans N] [--timings N] [--stats N] [--metrics N] [--counters N]
 *		[--hits N] [--stages N] [--replicas N] [--microbatches N] [--epochs N] [--seed N]
 *		[--end complete|kill|hold]
 *
 * N may end in k or M. Spans (default 1M) say how many weight updates there are; rows of which no
 * number is given come as such a run has them. Every IPU has a host and a device track; forwards
 * and backwards of all micro-batches, with their operations inside, stand where the Grouped
 * schedule puts them, and flows lead from stage to stage. --end kill: die without an end, after the
 * last commit; hold: say "ready" and stay, recording, until killed.
 *
 * The same arguments give the same rows but for what is of the moment: the facts of the process,
 * the times of counters and instants, the cost of recording. One thread beside the recording's.
 */
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "profiler/ipuscope/profiler.h"

#define FORWARD_NS  30000 /* of a stage and micro-batch, on the device */
#define BACKWARD_NS 60000
#define UPDATE_NS   20000
#define HOST_SLOWER 10
#define OPERATIONS  4  /* of a stage's forward */
#define UPDATES     16 /* of an execution */
#define TENSORS     64

enum {
	SPANS,
	TIMINGS,
	STATS,
	METRICS,
	COUNTERS,
	HITS,
	STAGES,
	REPLICAS,
	MICROBATCHES,
	EPOCHS,
	SEED,
	NUMBERS
};

static const char *const number_names[NUMBERS] = {
	"--spans",  "--timings",  "--stats",        "--metrics", "--counters", "--hits",
	"--stages", "--replicas", "--microbatches", "--epochs",  "--seed"};

struct run {
	struct ips_recording *recording;
	int64_t numbers[NUMBERS]; /* -1: as such a run has it */
	const char *end;
	int64_t ipus, updates;
	struct ips_track *engine, **host, **device; /* by IPU */
	int64_t tensors[TENSORS];
	int64_t spans; /* so far */
	struct rng rng;
};

/* ---- what is known by name ------------------------------------------------------------------- */

enum {
	SITE_RUN,
	SITE_START,
	SITE_INFEED,
	SITE_FORWARD,
	SITE_FIFO,
	SITE_PUSH,
	SITE_SYNC,
	SITE_BACKWARD,
	SITE_UPDATE,
	SITE_ACTIVATION,
	SITE_GRADIENT,
	SITE_QUEUE,
	SITE_EPOCH,
	SITES
};

static struct ips_site sites[SITES] = {
	[SITE_RUN] = {.category = "execution", .name = "Engine::run"},
	[SITE_START] = {.category = "stage", .name = "Start"},
	[SITE_INFEED] = {.category = "transfer", .name = "Infeed"},
	[SITE_FORWARD] = {.category = "stage", .name = "forward"},
	[SITE_FIFO] = {.category = "stage", .name = "FIFO"},
	[SITE_PUSH] = {.category = "move", .name = "FIFO/Push"},
	[SITE_SYNC] = {.category = "transfer", .name = "Sync (External)"},
	[SITE_BACKWARD] = {.category = "stage", .name = "backward"},
	[SITE_UPDATE] = {.category = "stage", .name = "weight update"},
	[SITE_ACTIVATION] = {.category = "pipeline", .name = "activations"},
	[SITE_GRADIENT] = {.category = "pipeline", .name = "gradients"},
	[SITE_QUEUE] = {.category = "queue", .name = "queue depth"},
	[SITE_EPOCH] = {.category = "train", .name = "epoch end"},
};

/* Of the operations inside, by stage (as far as there are names) and place. */
#define NAMED 16
static struct ips_site operations[NAMED][2 * OPERATIONS];
static char operation_names[NAMED][2 * OPERATIONS][48];

static void name_operations(void)
{
	static const char *const names[2 * OPERATIONS] = {
		"MatMul",    "BiasAdd",      "Norm",         "Relu",
		"Relu/Grad", "MatMul/GradX", "MatMul/GradW", "BiasAdd/Grad",
	};

	for (int stage = 0; stage < NAMED; stage++) {
		for (int i = 0; i < 2 * OPERATIONS; i++) {
			snprintf(operation_names[stage][i], sizeof(operation_names[stage][i]),
				 "Dense_%d/%s", stage, names[i]);
			operations[stage][i] =
				(struct ips_site){.category = "operation",
						  .name = operation_names[stage][i],
						  .operation = operation_names[stage][i]};
		}
	}
}

static void must(int status)
{
	if (status != 0) {
		fprintf(stderr, "make_database: %s\n", ips_status_text(status));
		exit(1);
	}
}

/* ---- when ------------------------------------------------------------------------------------ */

/* A stage's work on a micro-batch, from the start of its weight update, on the device. */
static int64_t forward_at(const struct run *run, int64_t stage, int64_t microbatch)
{
	(void)run;
	return (microbatch + stage) * FORWARD_NS;
}

static int64_t backward_at(const struct run *run, int64_t stage, int64_t microbatch)
{
	const int64_t stages = run->numbers[STAGES], ramp = run->numbers[MICROBATCHES] + stages - 1;

	return ramp * FORWARD_NS + (microbatch + stages - 1 - stage) * BACKWARD_NS;
}

static int64_t makespan(const struct run *run)
{
	return (run->numbers[MICROBATCHES] + run->numbers[STAGES] - 1) * (FORWARD_NS + BACKWARD_NS);
}

static int64_t update_start(const struct run *run, int64_t update)
{
	return update * (makespan(run) + UPDATE_NS);
}

/* @ns and up to a fifth less. */
static int64_t about(struct run *run, int64_t ns)
{
	return ns - (int64_t)rng_below(&run->rng, (uint32_t)(ns / 5 + 1));
}

static struct ips_keys keys_of(const struct run *run, int64_t update, int64_t ipu,
			       int64_t microbatch, char phase)
{
	const int64_t microbatches = run->numbers[MICROBATCHES], stages = run->numbers[STAGES];
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1 + update * run->numbers[EPOCHS] / run->updates;
	keys.execution = update / UPDATES;
	keys.weight_update = update;
	if (microbatch != IPS_NULL) {
		keys.step = update * microbatches + microbatch;
		keys.microbatch = microbatch;
	}
	keys.replica = ipu / stages;
	keys.ipu = ipu;
	keys.stage = ipu % stages;
	keys.phase = phase;
	return keys;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void span(struct run *run, struct ips_track *track, struct ips_site *site, int64_t start_ns,
		 int64_t dur_ns)
{
	if (run->spans >= run->numbers[SPANS])
		return;
	ips_span_at(track, site, start_ns, dur_ns);
	run->spans++;
}

/* A span with @count others that fill it. */
static void span_of(struct run *run, struct ips_track *track, struct ips_site *site,
		    struct ips_site *inner, int count, int64_t start_ns, int64_t dur_ns)
{
	const int64_t step = dur_ns / count;

	span(run, track, site, start_ns, dur_ns);
	for (int i = 0; i < count; i++)
		span(run, track, &inner[i], start_ns + i * step, about(run, step));
}

static void flows(struct run *run, struct ips_track *track, int64_t update, int64_t ipu,
		  int64_t microbatch, bool forward)
{
	const int64_t stages = run->numbers[STAGES], stage = ipu % stages;
	const int64_t first = forward ? 0 : stages - 1, last = forward ? stages - 1 : 0;
	struct ips_site *site = &sites[forward ? SITE_ACTIVATION : SITE_GRADIENT];
	const int64_t from = forward ? ipu - 1 : ipu + 1;
	const int64_t step = update * run->numbers[MICROBATCHES] + microbatch;

	if (update + 1 == run->updates) /* which may be cut: no flow has but one side */
		return;
	if (stage != first)
		ips_flow_in(track, site, (uint64_t)(step * run->ipus + from));
	if (stage != last)
		ips_flow_out(track, site, (uint64_t)(step * run->ipus + ipu));
}

/* One stage's forward or backward of a micro-batch, on both clocks. */
static void put_work(struct run *run, int64_t update, int64_t ipu, int64_t microbatch, bool forward)
{
	const int64_t stage = ipu % run->numbers[STAGES];
	const struct ips_keys keys = keys_of(run, update, ipu, microbatch, forward ? 'F' : 'B');
	struct ips_site *work = &sites[forward ? SITE_FORWARD : SITE_BACKWARD];
	struct ips_site *inner = &operations[stage % NAMED][forward ? 0 : OPERATIONS];
	const int64_t whole = forward ? FORWARD_NS : BACKWARD_NS;
	const int64_t at =
		update_start(run, update) + (forward ? forward_at(run, stage, microbatch)
						     : backward_at(run, stage, microbatch));
	const int64_t part = whole / 10;

	ips_track_set_keys(run->device[ipu], &keys);
	ips_track_set_keys(run->host[ipu], &keys);
	span(run, run->device[ipu], &sites[SITE_INFEED], at, about(run, part));
	span_of(run, run->device[ipu], work, inner, OPERATIONS, at + part, about(run, 6 * part));
	span_of(run, run->device[ipu], &sites[SITE_FIFO], &sites[SITE_PUSH], 1, at + 7 * part,
		part);
	span(run, run->device[ipu], &sites[SITE_SYNC], at + 8 * part, about(run, part));
	span_of(run, run->host[ipu], work, inner, OPERATIONS, at * HOST_SLOWER,
		about(run, whole * HOST_SLOWER));
	flows(run, run->host[ipu], update, ipu, microbatch, forward);
}

static void put_update(struct run *run, int64_t update, int64_t ipu)
{
	const struct ips_keys keys = keys_of(run, update, ipu, IPS_NULL, 'U');
	const int64_t at = update_start(run, update) + makespan(run);

	ips_track_set_keys(run->device[ipu], &keys);
	ips_track_set_keys(run->host[ipu], &keys);
	span_of(run, run->device[ipu], &sites[SITE_UPDATE], &sites[SITE_PUSH], 1, at, UPDATE_NS);
	span(run, run->host[ipu], &sites[SITE_UPDATE], at * HOST_SLOWER,
	     about(run, UPDATE_NS * HOST_SLOWER));
}

/* Counters and the sides of flows are lost where a ring is full. */
static void wait_for_room(const struct ips_track *track)
{
	while (track->head - __atomic_load_n(&track->consumed, __ATOMIC_RELAXED) > track->mask / 2)
		sched_yield();
}

static void put_spans(struct run *run, int64_t update)
{
	for (int64_t ipu = 0; ipu < run->ipus && run->spans < run->numbers[SPANS]; ipu++) {
		wait_for_room(run->host[ipu]);
		for (int64_t m = 0; m < run->numbers[MICROBATCHES]; m++)
			put_work(run, update, ipu, m, true);
		for (int64_t m = 0; m < run->numbers[MICROBATCHES]; m++)
			put_work(run, update, ipu, m, false);
		put_update(run, update, ipu);
	}
}

static int64_t spans_of_update(const struct run *run)
{
	return run->ipus * (2 * run->numbers[MICROBATCHES] * (5 + 2 * OPERATIONS + 1) + 3);
}

/* ---- rows: each kind a sequence of its own, row @i of it ------------------------------------- */

static int64_t timings_of_update(const struct run *run)
{
	return run->ipus * (2 * run->numbers[MICROBATCHES] + 1) * 2;
}

static void put_timing(struct run *run, int64_t i)
{
	const int64_t microbatches = run->numbers[MICROBATCHES];
	const int64_t update = i / timings_of_update(run), slots = 2 * microbatches + 1;
	const int64_t slot = i / 2 % slots, ipu = i / 2 / slots % run->ipus;
	const int64_t stage = ipu % run->numbers[STAGES];
	const bool last = slot == 2 * microbatches, forward = slot < microbatches;
	const int64_t microbatch = slot % microbatches;
	const int64_t within = last      ? makespan(run)
			       : forward ? forward_at(run, stage, microbatch)
					 : backward_at(run, stage, microbatch);
	const int64_t slower = i % 2 ? 1 : HOST_SLOWER;
	struct ips_stage_timing row = {.clock = i % 2 ? IPS_DEVICE : IPS_HOST};

	row.keys = last ? keys_of(run, update, ipu, IPS_NULL, 'U')
			: keys_of(run, update, ipu, microbatch, forward ? 'F' : 'B');
	row.start_ns = (update_start(run, update) + within) * slower;
	row.dur_ns = about(run, slower * (last ? UPDATE_NS : forward ? FORWARD_NS : BACKWARD_NS));
	row.cpu_ns = i % 2 ? IPS_NULL : row.dur_ns * 9 / 10;
	must(ips_append_stage_timing(run->recording, &row));
}

/* Of each weight update and replica, on both clocks. */
static void put_bubbles(struct run *run, int64_t update)
{
	for (int64_t i = 0; i < 2 * run->numbers[REPLICAS]; i++) {
		const int64_t slower = i % 2 ? 1 : HOST_SLOWER, stages = run->numbers[STAGES];
		const int64_t all = makespan(run) * slower * stages;
		const double idle =
			(double)(stages - 1) / (double)(run->numbers[MICROBATCHES] + stages - 1);
		struct ips_bubble row = {.clock = i % 2 ? IPS_DEVICE : IPS_HOST,
					 .schedule = "Grouped",
					 .stages = stages,
					 .microbatches = run->numbers[MICROBATCHES]};

		row.keys = keys_of(run, update, i / 2 * stages, IPS_NULL, 0);
		row.keys.ipu = row.keys.stage = IPS_NULL;
		row.makespan_ns = all / stages;
		row.imbalance_ns = (int64_t)rng_below(&run->rng, (uint32_t)(all / 100 + 1));
		row.ramp_up_ns = row.ramp_down_ns = (int64_t)(idle * (double)all) / 2;
		row.busy_ns = all - row.imbalance_ns - 2 * row.ramp_up_ns;
		row.idle_fraction = 1 - (double)row.busy_ns / (double)all;
		row.bubble_rate = row.idle_fraction;
		row.bubble_over_ideal = row.idle_fraction / (1 - row.idle_fraction);
		row.theory_idle_fraction = row.theory_bubble_rate = idle;
		row.theory_bubble_over_ideal = idle / (1 - idle);
		must(ips_append_bubble(run->recording, &row));
	}
}

/* A step's row of each tensor, at the end of its host work. */
static void put_stat(struct run *run, int64_t i)
{
	const int64_t step = i / TENSORS % (run->updates * run->numbers[MICROBATCHES]);
	const int64_t update = step / run->numbers[MICROBATCHES];
	const int64_t microbatch = step % run->numbers[MICROBATCHES];
	const int64_t tensor = i % TENSORS, stage = tensor % run->numbers[STAGES];
	const double mean = (double)rng_normal(&run->rng) * 0.01, std = 1 + fabs(mean);
	struct ips_tensor_stats row = {
		.keys = keys_of(run, update, stage, microbatch, tensor % 2 ? 'B' : 'F'),
		.tensor_id = run->tensors[tensor],
		.n = 32768,
		.n_zero = 12,
		.n_neg = 16000,
		.n_pos = 16756,
		.min = mean - 4 * std,
		.max = mean + 4 * std,
		.mean = mean,
		.std = std,
		.l1 = 26000 * std,
		.l2 = 181 * std,
		.abs_min_nonzero = 1e-6,
		.abs_max = 4 * std,
		.inactive = (double)NAN,
		.update_ratio = (double)NAN,
		.n_changed = IPS_NULL,
	};

	row.time_ns =
		(update_start(run, update) + backward_at(run, stage, microbatch)) * HOST_SLOWER;
	must(ips_append_tensor_stats(run->recording, &row));
}

/* The loss of each step. */
static void put_metric(struct run *run, int64_t i)
{
	const int64_t steps = run->updates * run->numbers[MICROBATCHES], step = i % steps;
	const int64_t update = step / run->numbers[MICROBATCHES];
	const struct ips_keys keys = keys_of(run, update, 0, 0, 0);
	const double loss = 2.3 * exp(-3.0 * (double)step / (double)steps) +
			    0.05 * (double)rng_uniform(&run->rng);

	must(ips_append_metric(run->recording,
			       &(struct ips_metric){IPS_TRAIN, keys.epoch, keys.execution, step,
						    update_start(run, update + 1) * HOST_SLOWER,
						    "loss", loss}));
}

static void put_hit(struct run *run, int64_t i)
{
	static const char *const rules[] = {"exploding_gradient", "dead_activations", "nonfinite"};
	const int64_t update = i % run->updates;
	const struct ips_health row = {.keys = keys_of(run, update, 0, 0, 'B'),
				       .rule = rules[rng_below(&run->rng, 3)],
				       .tensor_id = run->tensors[rng_below(&run->rng, TENSORS)],
				       .time_ns = update_start(run, update) * HOST_SLOWER,
				       .value = 2,
				       .threshold = 1};

	must(ips_append_health(run->recording, &row));
}

static void put_counter(struct run *run, int64_t i)
{
	if (i % 1024 == 0)
		wait_for_room(run->engine);
	ips_counter(run->engine, &sites[SITE_QUEUE], (double)rng_below(&run->rng, 16));
}

/* An execution ends with @update; an epoch, too, where it is its last. */
static void put_execution(struct run *run, int64_t update)
{
	const struct ips_keys keys = keys_of(run, update, 0, IPS_NULL, 0);
	const int64_t first = keys.execution * UPDATES, count = update - first + 1;
	const int64_t start = update_start(run, first), dur = update_start(run, update + 1) - start;
	const struct ips_execution row = {IPS_TRAIN,
					  keys.epoch,
					  keys.execution,
					  first * run->numbers[MICROBATCHES],
					  count * run->numbers[MICROBATCHES],
					  count,
					  start * HOST_SLOWER,
					  dur * HOST_SLOWER - 1,
					  start * 133 / 100,
					  dur * 133 / 100,
					  1};

	must(ips_append_execution(run->recording, &row));
	ips_track_set_keys(run->engine, &keys);
	span(run, run->engine, &sites[SITE_RUN], start * HOST_SLOWER, dur * HOST_SLOWER - 1);
}

static void put_epoch(struct run *run, int64_t epoch, int64_t update)
{
	static const char *const names[] = {"loss", "accuracy"};

	for (int i = 0; i < 2; i++)
		must(ips_append_metric(
			run->recording,
			&(struct ips_metric){IPS_TRAIN, epoch, IPS_NULL, IPS_NULL,
					     update_start(run, update + 1) * HOST_SLOWER + i,
					     names[i], i ? 0.9 : 0.5 / (double)epoch}));
	ips_instant(run->engine, &sites[SITE_EPOCH]);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_facts(struct run *run)
{
	static const char *const facts[][2] = {
		{"model", "sequential"}, {"schedule", "Grouped"}, {"target", "ipu2"},
		{"cost_model", "none"},  {"dataset", "none"},     {"batch_size", "32"},
	};
	static const struct {
		const char *key;
		int number;
	} counts[] = {{"stages", STAGES},
		      {"replicas", REPLICAS},
		      {"gradient_accumulation", MICROBATCHES}};
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		must(ips_meta_set(run->recording, facts[i][0], facts[i][1]));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		snprintf(text, sizeof(text), "%lld", (long long)run->numbers[counts[i].number]);
		must(ips_meta_set(run->recording, counts[i].key, text));
	}
	snprintf(text, sizeof(text), "%lld", (long long)run->ipus);
	must(ips_meta_set(run->recording, "ipus", text));
}

static void put_model(struct run *run)
{
	for (int64_t stage = 0; stage < run->numbers[STAGES]; stage++) {
		char name[32];

		snprintf(name, sizeof(name), "Dense_%lld", (long long)stage);
		must(ips_append_layer(run->recording,
				      &(struct ips_layer){name, "Dense", stage, stage, "(32, 1024)",
							  1049600, 1049600, 67108864}));
	}
	for (int t = 0; t < TENSORS; t++) {
		char key[48];
		const struct ips_tensor tensor = {"outfeed",
						  key,
						  t % 2 ? "gradient" : "activation",
						  "Dense_0",
						  t % run->numbers[STAGES],
						  "(32, 1024)",
						  "float32",
						  NULL,
						  NULL};

		snprintf(key, sizeof(key), "Dense_%d/tensor_%d", t % NAMED, t);
		run->tensors[t] = ips_tensor_add(run->recording, &tensor);
	}
	must(ips_append_health_rule(run->recording,
				    &(struct ips_health_rule){"nonfinite", 0, 1, 1, "", NULL}));
}

static void open_tracks(struct run *run)
{
	run->engine = ips_track_open(run->recording, "host/Engine::run", NULL);
	run->host = mem_calloc((size_t)run->ipus, sizeof(struct ips_track *));
	run->device = mem_calloc((size_t)run->ipus, sizeof(struct ips_track *));
	if (!run->host || !run->device)
		must(1);
	for (int64_t ipu = 0; ipu < run->ipus; ipu++) {
		struct ips_track_params params = {.ipu = ipu};
		char name[32], track[48];

		snprintf(name, sizeof(name), "IPU %lld", (long long)ipu);
		params.name = name;
		snprintf(track, sizeof(track), "host/%s", name);
		run->host[ipu] = ips_track_open(run->recording, track, &params);
		params.clock = IPS_DEVICE;
		snprintf(track, sizeof(track), "device/%s", name);
		run->device[ipu] = ips_track_open(run->recording, track, &params);
	}
}

/* Rows of every sequence, so that all are done with the last update. */
static void put_rows(struct run *run, int64_t update)
{
	static const struct {
		int number;
		void (*put)(struct run *run, int64_t i);
	} kinds[] = {{TIMINGS, put_timing},
		     {STATS, put_stat},
		     {METRICS, put_metric},
		     {HITS, put_hit},
		     {COUNTERS, put_counter}};

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		const double rows = (double)run->numbers[kinds[k].number];
		const double share = rows / (double)run->updates;
		const int64_t end = update + 1 == run->updates
					    ? run->numbers[kinds[k].number]
					    : (int64_t)(share * (double)(update + 1));

		for (int64_t i = (int64_t)(share * (double)update); i < end; i++)
			kinds[k].put(run, i);
	}
}

static void put_updates(struct run *run)
{
	for (int64_t update = 0; update < run->updates; update++) {
		const int64_t epoch = keys_of(run, update, 0, 0, 0).epoch;

		put_spans(run, update);
		put_rows(run, update);
		put_bubbles(run, update);
		if (update + 1 == run->updates || (update + 1) % UPDATES == 0)
			put_execution(run, update);
		if (update + 1 == run->updates || keys_of(run, update + 1, 0, 0, 0).epoch != epoch)
			put_epoch(run, epoch, update);
	}
}

static int finish(struct run *run)
{
	char why[256];

	if (strcmp(run->end, "complete") == 0) {
		if (ips_recording_close(run->recording, why, sizeof(why)) == 0)
			return 0;
		fprintf(stderr, "make_database: %s\n", why);
		return 1;
	}
	must(ips_recording_flush(run->recording));
	if (strcmp(run->end, "hold") == 0) {
		puts("ready");
		fflush(stdout);
		pause();
	}
	return raise(SIGKILL);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int64_t number_of(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end == 'k' || *end == 'M')
		value *= *end++ == 'k' ? 1e3 : 1e6;
	return *end == 0 && value >= 0 && value < 1e15 ? (int64_t)value : -1;
}

static bool take_argument(struct run *run, const char *name, const char *value)
{
	if (strcmp(name, "--end") == 0) {
		run->end = value;
		return strcmp(value, "complete") == 0 || strcmp(value, "kill") == 0 ||
		       strcmp(value, "hold") == 0;
	}
	for (size_t i = 0; i < NUMBERS; i++)
		if (strcmp(name, number_names[i]) == 0)
			return (run->numbers[i] = number_of(value)) >= 0;
	return false;
}

/* What follows from what was asked. */
static bool settle(struct run *run)
{
	for (int i = STAGES; i <= EPOCHS; i++)
		if (run->numbers[i] < 1 || run->numbers[i] > 1024)
			return false;
	run->ipus = run->numbers[STAGES] * run->numbers[REPLICAS];
	run->updates = run->numbers[SPANS] / spans_of_update(run) + 1;
	if (run->numbers[TIMINGS] < 0)
		run->numbers[TIMINGS] = run->updates * timings_of_update(run);
	if (run->numbers[METRICS] < 0)
		run->numbers[METRICS] = run->updates * run->numbers[MICROBATCHES];
	if (run->numbers[STATS] < 0)
		run->numbers[STATS] = run->updates * TENSORS;
	if (run->numbers[COUNTERS] < 0)
		run->numbers[COUNTERS] = run->updates * run->numbers[MICROBATCHES];
	return true;
}

int main(int argc, char **argv)
{
	struct run run = {.numbers = {1000000, -1, -1, -1, -1, 100, 4, 2, 8, 10, 1},
			  .end = "complete"};
	struct ips_recording_params params;
	bool right = argc >= 2 && argc % 2 == 0;
	char why[512];

	for (int i = 2; right && i < argc; i += 2)
		right = take_argument(&run, argv[i], argv[i + 1]);
	if (!right || !settle(&run)) {
		fprintf(stderr, "usage: make_database FILE [--spans N] ... (see the file's top)\n");
		return 2;
	}
	ips_recording_params_defaults(&params);
	params.command = "make_database";
	if (ips_recording_open(&run.recording, argv[1], &params, why, sizeof(why)) != 0) {
		fprintf(stderr, "make_database: %s\n", why);
		return 1;
	}
	rng_init(&run.rng, (uint64_t)run.numbers[SEED], rng_stream("make_database"), 0, 0);
	name_operations();
	put_facts(&run);
	open_tracks(&run);
	put_model(&run);
	put_updates(&run);
	mem_free(run.host);
	mem_free(run.device);
	return finish(&run);
}
