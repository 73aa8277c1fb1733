/*
 * Walk what a run recorded, as a tutorial of libpva does: the target, the memory of tiles, the peak
 * of liveness, programs by type, runs, the longest steps, what the stages cost. C and C++.
 *
 *	cc walk_report.c $(pkg-config --cflags --libs ipuscope-report) -o walk_report
 *	./walk_report tf_report__...
 */
#include <inttypes.h>
#include <ipuscope/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 5
#define STAGES  64

/* A text that may be unknown. */
static const char *named(const char *text)
{
	return text ? text : "?";
}

/* ---- compilation ----------------------------------------------------------------------------- */

static void print_target(struct ips_report *report)
{
	const struct ips_report_target *target = ips_report_target(report);
	const struct ips_report_graph *graph = ips_report_graph(report);

	if (target->type == IPS_REPORT_TARGET_UNKNOWN) {
		printf("Target: none\n");
		return;
	}
	printf("Target: %s %s, %" PRId64 " IPUs, %" PRId64 " tiles of %" PRId64
	       " bytes, %.0f MHz\n",
	       target->type_name, target->name, target->num_ipus, target->num_tiles,
	       target->bytes_per_tile, target->clock_frequency / 1e6);
	printf("Graph: %" PRId64 " compute sets, %" PRId64 " vertices, %" PRId64 " variables\n",
	       graph->num_compute_sets, graph->num_vertices, graph->num_variables);
}

static void print_memory(struct ips_report *report)
{
	const int64_t tiles = ips_report_tile_count(report);

	for (int64_t ipu = 0; ipu < ips_report_ipu_count(report); ipu++) {
		const struct ips_report_memory *memory = ips_report_ipu_memory(report, ipu), *tile;
		int64_t fullest = 0, most = -1, overflowing = 0;

		if (!memory)
			continue;
		for (int64_t t = 0; t < tiles; t++) {
			tile = ips_report_tile_memory(report, ipu, t);
			if (!tile)
				continue;
			overflowing += tile->overflowed_including_gaps > 0;
			if (tile->total_including_gaps > most) {
				most = tile->total_including_gaps;
				fullest = t;
			}
		}
		printf("Memory of IPU %" PRId64 ": %" PRId64 " of %" PRId64 " bytes, always live "
		       "%" PRId64 ", fullest tile %" PRId64 " with %" PRId64
		       ", overflowing %" PRId64 "\n",
		       ipu, memory->total_including_gaps, memory->capacity,
		       memory->always_live_bytes, fullest, most, overflowing);
		for (int64_t i = 0; i < memory->num_categories; i++)
			printf("  %s: %" PRId64 "\n", memory->categories[i].name,
			       memory->categories[i].total);
	}
}

/* What is alive when most is. */
static void print_liveness(struct ips_report *report)
{
	const struct ips_report_liveness *peak = ips_report_liveness_peak(report, IPS_NULL);
	const struct ips_report_program *program;
	int64_t alive = 0, bytes = 0;

	if (!peak)
		return;
	program = ips_report_program(report, peak->program);
	printf("Peak of liveness: IPU %" PRId64 ", step %" PRId64 " (%s), %" PRId64
	       " always live, %" PRId64 " not always live\n",
	       peak->ipu, peak->program_step, named(program ? program->name : NULL),
	       peak->always_live_bytes, peak->not_always_live_bytes);
	for (int64_t i = 0; i < ips_report_variable_count(report); i++) {
		const struct ips_report_variable *variable = ips_report_variable(report, i);

		if (variable->ipu != peak->ipu || variable->always_live == 1 ||
		    !ips_report_variable_alive(variable, peak->program_step))
			continue;
		alive++;
		bytes += variable->bytes;
	}
	printf("  %" PRId64 " variables not always live, %" PRId64 " bytes\n", alive, bytes);
}

/* How many programs of each type there are; counted by a visitor. */
struct tally {
	const char *names[IPS_REPORT_PROGRAM_TYPES];
	int64_t counts[IPS_REPORT_PROGRAM_TYPES];
};

static enum ips_report_visit count_program(void *user, const struct ips_report_program *program)
{
	struct tally *tally = (struct tally *)user;

	tally->names[program->kind] = program->type;
	tally->counts[program->kind]++;
	return IPS_REPORT_VISIT_ON;
}

static void print_programs(struct ips_report *report)
{
	struct ips_report_visitor visitor;
	struct tally tally;

	memset(&visitor, 0, sizeof(visitor));
	memset(&tally, 0, sizeof(tally));
	visitor.other = count_program;
	visitor.user = &tally;
	ips_report_program_accept(report, IPS_REPORT_NONE, &visitor);
	printf("Programs:\n");
	for (int i = 0; i < IPS_REPORT_PROGRAM_TYPES; i++)
		if (tally.counts[i] > 0)
			printf("  %s: %" PRId64 "\n", named(tally.names[i]), tally.counts[i]);
}

/* ---- execution ------------------------------------------------------------------------------- */

static void print_runs(struct ips_report *report)
{
	for (int64_t i = 0; i < ips_report_run_count(report); i++) {
		const struct ips_report_run *run = ips_report_run(report, i);

		printf("Engine::run #%" PRId64 ": %.3f us here (measured)", run->execution,
		       run->microseconds.end - run->microseconds.start);
		if (run->cycles != IPS_NULL)
			printf(", %" PRId64 " cycles (simulated)", run->cycles);
		printf("%s\n", run->traced == 1 ? "" : ", not traced");
	}
}

/* Keep the longest, the first of equal ones. */
static void keep_longest(struct ips_report_step longest[LONGEST],
			 const struct ips_report_step *step)
{
	int at = LONGEST;

	while (at > 0 && step->cycles > longest[at - 1].cycles)
		at--;
	if (at == LONGEST)
		return;
	memmove(&longest[at + 1], &longest[at], (size_t)(LONGEST - 1 - at) * sizeof(*longest));
	longest[at] = *step;
}

/* What libpva's users get from GlobalExchange windows is in the steps here: their stage. */
struct cost {
	int64_t compute, exchange, other, steps;
};

static void add_cost(struct cost *cost, const struct ips_report_step *step)
{
	cost->steps++;
	if (step->kind == IPS_REPORT_ON_TILE_EXECUTE)
		cost->compute += step->cycles;
	else if (step->kind == IPS_REPORT_DO_EXCHANGE)
		cost->exchange += step->cycles;
	else
		cost->other += step->cycles;
}

static int print_steps(struct ips_report *report, char *message, size_t size)
{
	static const char phases[] = "FBWRU";
	static struct cost costs[STAGES][sizeof(phases)];
	struct ips_report_step longest[LONGEST];
	const struct ips_report_step *step;
	struct ips_report_steps *steps;
	int status = ips_report_steps_open(report, &steps, NULL, message, size);

	if (status != 0)
		return status;
	memset(longest, 0, sizeof(longest));
	while ((step = ips_report_steps_next(steps))) {
		const char *phase = step->phase != 0 ? strchr(phases, step->phase) : NULL;

		if (step->kind != IPS_REPORT_SYNC && step->kind != IPS_REPORT_SYNC_ANS)
			keep_longest(longest, step);
		if (phase && step->stage >= 0 && step->stage < STAGES)
			add_cost(&costs[step->stage][phase - phases], step);
	}
	status = ips_report_steps_close(steps);
	printf("Longest steps but waits:\n");
	for (int i = 0; i < LONGEST && longest[i].cycles > 0; i++)
		printf("  %" PRId64 " cycles: %s %s on IPU %" PRId64 "\n", longest[i].cycles,
		       named(longest[i].type), named(longest[i].name), longest[i].ipu);
	printf("Stages, cycles of all traced steps:\n");
	for (int s = 0; s < STAGES; s++)
		for (int p = 0; phases[p] != 0; p++)
			if (costs[s][p].steps > 0)
				printf("  stage %d %c: %" PRId64 " compute, %" PRId64
				       " exchange, %" PRId64 " other\n",
				       s, phases[p], costs[s][p].compute, costs[s][p].exchange,
				       costs[s][p].other);
	return status;
}

/* ---- the trace of the host ------------------------------------------------------------------- */

/* The outermost spans of each track, and how much of them is in their children. */
static int print_tracks(struct ips_report *report, char *message, size_t size)
{
	struct ips_report_span_filter filter = ips_report_span_filter_all();
	const struct ips_report_span *span;
	struct ips_report_spans *spans;

	for (filter.track = 0; filter.track < ips_report_track_count(report); filter.track++) {
		const struct ips_report_track *track = ips_report_track(report, filter.track);
		int64_t count[2] = {0, 0}, ns[2] = {0, 0};
		int status;

		if (track->clock != IPS_HOST)
			continue;
		filter.max_depth = 1;
		status = ips_report_spans_open(report, &spans, &filter, message, size);
		if (status != 0)
			return status;
		while ((span = ips_report_spans_next(spans))) {
			count[span->depth > 0]++;
			if (span->dur_ns != IPS_NULL)
				ns[span->depth > 0] += span->dur_ns;
		}
		status = ips_report_spans_close(spans);
		if (status != 0)
			return status;
		printf("Thread %s: %" PRId64 " spans, %" PRId64 " us; %" PRId64
		       " children, %" PRId64 " us\n",
		       track->name, count[0], ns[0] / 1000, count[1], ns[1] / 1000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct ips_report *report;
	char message[1024] = "";
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: %s REPORT\n", argv[0]);
		return 2;
	}
	if (ips_report_open(&report, argv[1], message, sizeof(message)) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	print_target(report);
	print_memory(report);
	print_liveness(report);
	print_programs(report);
	print_runs(report);
	status = print_steps(report, message, sizeof(message));
	if (status == 0)
		status = print_tracks(report, message, sizeof(message));
	/* The first failure of all calls: lists have no message of their own. */
	if (ips_report_status(report, message, sizeof(message)) != 0) {
		fprintf(stderr, "%s\n", message);
		status = 1;
	}
	ips_report_close(report);
	return status != 0;
}
