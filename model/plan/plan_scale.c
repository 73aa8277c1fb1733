/*
 * `ipu-plan scale`: a run on increasing numbers of IPUs (weak scaling): each replica keeps the run
 * file's batch and amount of data, so the total data grow with the replicas.
 *
 * Threading: none. Ownership: every plan of a request is freed before it returns.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "model/plan/plan_command.h"
#include "model/plan/plan_run.h"

#define IPUS_MOST   4096
#define POINTS_MOST 64

struct scale_request {
	bool json, csv;
	const char *ipus;
};

static const struct cli_option scale_options[] = {
	{.name = "--ipus",
	 .argument = "LIST",
	 .help = "Numbers of IPUs from 1 to 4096, ascending, with commas; \"...\" goes on as the "
		 "two "
		 "before it do (default: a replica's IPUs and twice as many again and again, to "
		 "1024).",
	 .field = CLI_FIELD(TEXT, struct scale_request, ipus)},
	{.name = "--json",
	 .help = "Print JSON.",
	 .field = CLI_FIELD(SWITCH, struct scale_request, json)},
	{.name = "--csv",
	 .help = "Print CSV, the keys of --json as its first line.",
	 .field = CLI_FIELD(SWITCH, struct scale_request, csv)},
	{.name = "--target",
	 .argument = "NAME",
	 .choices = PLAN_TARGETS,
	 .help = PLAN_TARGET_HELP "; short for --ipu.target."},
};

struct scale_point {
	int64_t machines, hosts, domains; /* used */
	double efficiency;                /* items per IPU, relative to the first point */
	struct plan_figures figures;
};

/* Failures are sticky: after one in @err, nothing is added, planned or printed. */
struct scale {
	struct err *err;
	const struct plan_trainer *trainer;
	struct plan_words words;
	int64_t own_ipus, own_replicas; /* of the run file */
	int64_t ipus_per_replica;       /* including IPUs without a stage */
	int64_t ipus[POINTS_MOST];
	struct scale_point points[POINTS_MOST];
	int count;
	struct plan_run first; /* the other points reuse the cached plans of its device */
};

/* ---- numbers of IPUs ------------------------------------------------------------------------- */

static void add_ipus(struct scale *scale, int64_t ipus)
{
	if (err_stuck(scale->err))
		return;
	if (scale->count > 0 && ipus <= scale->ipus[scale->count - 1])
		err_set(scale->err, ST_INVALID, "--ipus: %" PRId64 " is not more than %" PRId64,
			ipus, scale->ipus[scale->count - 1]);
	else if (scale->count == POINTS_MOST)
		err_set(scale->err, ST_LIMIT, "--ipus: at most %d numbers", POINTS_MOST);
	else
		scale->ipus[scale->count++] = ipus;
}

/* Continue from the last two numbers to below @end: by their ratio if it is an integer,
 * otherwise by their difference. */
static void add_sequence(struct scale *scale, int64_t end)
{
	const int64_t *last;
	int64_t ratio, difference;

	if (scale->count < 2) {
		err_set(scale->err, ST_INVALID, "--ipus: two numbers must stand before \"...\"");
		return;
	}
	last = &scale->ipus[scale->count - 1];
	ratio = last[0] % last[-1] == 0 ? last[0] / last[-1] : 0;
	difference = last[0] - last[-1];
	for (int64_t ipus = *last; !err_stuck(scale->err); add_ipus(scale, ipus)) {
		ipus = ratio > 0 ? ipus * ratio : ipus + difference;
		if (ipus >= end)
			return;
	}
}

static void read_ipus(struct scale *scale, const char *list)
{
	bool between = false;

	while (!err_stuck(scale->err)) {
		const size_t length = strcspn(list, ",");
		int64_t ipus = 0;
		char word[32];

		snprintf(word, sizeof(word), "%.*s", (int)length, list);
		if (strcmp(word, "...") == 0) {
			between = list[length] != '\0';
			if (!between)
				err_set(scale->err, ST_INVALID,
					"--ipus: a number must stand after \"...\"");
		} else if (cli_number("--ipus", word, 1, IPUS_MOST, &ipus, scale->err) == ST_OK) {
			if (between)
				add_sequence(scale, ipus);
			add_ipus(scale, ipus);
			between = false;
		}
		if (list[length] == '\0')
			break;
		list += length + 1;
	}
}

/* ---- planning a point ------------------------------------------------------------------------ */

/* Read the run for @ipus (0: as it is). "auto" keeps the number of stages that the run file's IPUs
 * give. */
static enum status read_run(struct scale *scale, int64_t ipus, struct plan_run *plan,
			    struct run_data *data)
{
	static char key[] = "--ipu.auto_select_ipus";
	struct plan_words words = scale->words;
	char number[32];

	snprintf(number, sizeof(number), "%" PRId64, ipus);
	if (ipus > 0) {
		words.words[words.count++] = key;
		words.words[words.count++] = number;
	}
	if (plan_read_run(plan, data, &words, scale->trainer, scale->err) != ST_OK)
		return scale->err->status;
	if (scale->own_ipus == 0)
		scale->own_ipus = plan->run->ipu.auto_select_ipus;
	if (plan->run->pipeline.wanted && plan->run->pipeline.stages_auto &&
	    plan->run->pipeline.auto_stages <= 0 && !plan->run->pipeline.device_mapping.given)
		plan->run->pipeline.auto_stages =
			scale->own_ipus *
			(ipu_schedule_row(plan->run->pipeline.schedule)->sharing ==
					 IPU_SHARE_IN_TURN
				 ? 2
				 : 1);
	return ST_OK;
}

/* Scale a count so that each replica has what a replica of the run file has, in whole @units. */
static void scale_count(int64_t *count, int64_t unit, int64_t own_replicas, int64_t replicas)
{
	*count = *count / unit / own_replicas * unit * replicas;
}

/* Plan the run as it is to find the number of IPUs per replica. */
static void measure_replica(struct scale *scale)
{
	struct plan_run plan = {0};
	struct run_data data;

	if (err_stuck(scale->err))
		return;
	if (read_run(scale, 0, &plan, &data) == ST_OK &&
	    plan_run_build(&plan, &data, false, scale->err) == ST_OK) {
		scale->ipus_per_replica = plan.layout->ipus_per_replica;
		scale->own_replicas = plan.layout->replicas;
	}
	plan_run_fini(&plan);
}

static int64_t divide_up(int64_t ipus, int64_t each)
{
	return (ipus + each - 1) / each;
}

/* Read the run for the point's IPUs, and plan it with as many times the data and steps. */
static enum status plan_replicas(struct scale *scale, int at, struct plan_run *plan)
{
	const int64_t replicas = scale->ipus[at] / scale->ipus_per_replica;
	struct run_data data;
	struct run_file *run;

	if (read_run(scale, scale->ipus[at], plan, &data) != ST_OK)
		return scale->err->status;
	run = plan->run;
	scale_count(&data.train_items, run->data.batch_size, scale->own_replicas, replicas);
	scale_count(&data.test_items, run->data.batch_size, scale->own_replicas, replicas);
	scale_count(&run->fit.steps_per_epoch, 1, scale->own_replicas, replicas);
	scale_count(&run->evaluate.steps, 1, scale->own_replicas, replicas);
	scale_count(&run->predict.steps, 1, scale->own_replicas, replicas);

	plan->like = at == 0 ? NULL : scale->first.device;
	if (plan_run_build(plan, &data, false, scale->err) != ST_OK)
		return scale->err->status;
	return plan_run_compile(plan, &data, scale->err);
}

static void plan_point(struct scale *scale, int at)
{
	struct scale_point *point = &scale->points[at];
	const struct plan_figures *first = &scale->points[0].figures;
	struct plan_run own = {0}, *plan = at == 0 ? &scale->first : &own;

	if (err_stuck(scale->err))
		return;
	if (plan_replicas(scale, at, plan) == ST_OK) {
		const struct ipu_target *target = &plan->device->target;

		plan_figures_get(&point->figures, plan);
		point->machines = divide_up(point->figures.ipus, target->ipus_host_link);
		point->hosts = divide_up(point->figures.ipus, target->ipus_host);
		point->domains = divide_up(point->figures.ipus, target->ipus_link_domain);
		point->efficiency = point->figures.items_second / (double)point->figures.ipus /
				    (first->items_second / (double)first->ipus);
	}
	plan_run_fini(&own);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Write the figures of a point, for JSON and CSV alike. */
static void write_point(const struct scale_point *point,
			void (*whole)(void *out, const char *key, int64_t value),
			void (*real)(void *out, const char *key, double value), void *out)
{
	const struct plan_figures *f = &point->figures;

	whole(out, "ipus", f->ipus);
	whole(out, "replicas", f->replicas);
	whole(out, "machines", point->machines);
	whole(out, "hosts", point->hosts);
	whole(out, "link_domains", point->domains);
	whole(out, "effective_batch_size", f->effective_batch);
	real(out, "device_step_us", f->device_step_us);
	real(out, "step_us", f->step_us);
	real(out, "items_per_second", f->items_second);
	real(out, "efficiency", point->efficiency);
	real(out, "all_reduce_us", f->all_reduce_us);
	real(out, "host_io_us", f->host_io_fraction * f->device_step_us);
	real(out, "host_input_us", f->input_us);
	real(out, "device_busy_fraction", f->device_busy);
	whole(out, "memory_bytes_per_tile", f->memory_bytes_per_tile);
	whole(out, "memory_fits", f->memory_fits);
}

static void point_whole(void *out, const char *key, int64_t value)
{
	if (strcmp(key, "memory_fits") == 0)
		jsonw_key_bool(out, key, value != 0);
	else
		jsonw_key_int(out, key, value);
}

static void point_real(void *out, const char *key, double value)
{
	jsonw_key_real(out, key, value);
}

static void print_json(const struct scale *scale, FILE *out)
{
	struct jsonw w;

	jsonw_init_file(&w, out, 2);
	jsonw_begin_array(&w);
	for (int i = 0; i < scale->count; i++) {
		jsonw_begin_object(&w);
		write_point(&scale->points[i], point_whole, point_real, &w);
		jsonw_end_object(&w);
	}
	jsonw_end_array(&w);
	jsonw_end(&w, scale->err);
}

struct csv {
	FILE *out;
	bool head, begun;
};

static void csv_comma(struct csv *csv, const char *key)
{
	fprintf(csv->out, "%s%s", csv->begun ? "," : "", csv->head ? key : "");
	csv->begun = true;
}

static void csv_whole(void *out, const char *key, int64_t value)
{
	struct csv *csv = out;

	csv_comma(csv, key);
	if (!csv->head)
		fprintf(csv->out, "%" PRId64, value);
}

static void csv_real(void *out, const char *key, double value)
{
	struct csv *csv = out;

	csv_comma(csv, key);
	if (!csv->head && isfinite(value))
		fprintf(csv->out, "%.17g", value);
}

static void print_csv(const struct scale *scale, FILE *out)
{
	for (int i = -1; i < scale->count; i++) {
		struct csv csv = {.out = out, .head = i < 0};

		write_point(&scale->points[i < 0 ? 0 : i], csv_whole, csv_real, &csv);
		fputc('\n', out);
	}
}

/* Print a line if more than one machine, host or link domain becomes necessary. */
static void print_boundaries(const struct scale *scale, int at, FILE *out)
{
	const struct ipu_target *target = &scale->first.device->target;
	const struct scale_point *now = &scale->points[at], *before = &scale->points[at - 1];

	if (before->machines == 1 && now->machines > 1)
		fprintf(out, "  -- more than one %s (%" PRId64 " IPU%s)\n", target->machine,
			target->ipus_host_link, target->ipus_host_link == 1 ? "" : "s");
	if (before->hosts == 1 && now->hosts > 1)
		fprintf(out, "  -- more than one host (%" PRId64 " IPUs each)\n",
			target->ipus_host);
	if (before->domains == 1 && now->domains > 1)
		fprintf(out, "  -- beyond IPU-Links (%" PRId64 " IPUs), through gateways\n",
			target->ipus_link_domain);
}

/* Without a buffer each gradient is summed over the replicas by a program of its own. */
static bool sums_need_room(const struct scale *scale)
{
	const struct plan_figures *last = &scale->points[scale->count - 1].figures;

	return !last->memory_fits && last->replicas > 1 &&
	       scale->first.run->ipu.optimizations.cross_replica_sum_buffer == 0;
}

static void print_text(const struct scale *scale, FILE *out)
{
	const struct plan_run *first = &scale->first;
	const bool input = isfinite(scale->points[0].figures.input_us);
	char limit[FMT_SIZE];

	cli_print(out,
		  "%s: %s on %s, a batch of %" PRId64
		  " and the same data for each replica, simulated (%s)\n"
		  "%6s  %8s  %8s  %9s  %12s  %12s  %10s  %12s  %12s%s  %12s\n",
		  first->run->path, first->model->name, first->device->target.description,
		  first->run->data.batch_size, IPU_COST_MODEL, "IPUs", "machines", "replicas",
		  "eff.batch", "step us", "items/s", "efficiency", "all-red. us", "host I/O us",
		  input ? "      input us" : "", "tile bytes");
	for (int i = 0; i < scale->count; i++) {
		const struct plan_figures *f = &scale->points[i].figures;
		char batch[FMT_SIZE], items[FMT_SIZE], share[FMT_SIZE], bytes[FMT_SIZE];

		if (i > 0)
			print_boundaries(scale, i, out);
		fprintf(out,
			"%6" PRId64 "  %8" PRId64 "  %8" PRId64
			"  %9s  %12.1f  %12s  %10s  %12.1f  %12.1f",
			f->ipus, scale->points[i].machines, f->replicas,
			fmt_count(batch, f->effective_batch), f->step_us,
			fmt_count(items, llround(f->items_second)),
			fmt_percent(share, scale->points[i].efficiency), f->all_reduce_us,
			f->host_io_fraction * f->device_step_us);
		if (input)
			fprintf(out, "  %12.1f", f->input_us);
		fprintf(out, "  %12s%s\n", fmt_count(bytes, f->memory_bytes_per_tile),
			f->memory_fits ? "" : "  too much");
	}
	fprintf(out, "  A tile has %s bytes.%s\n",
		fmt_count(limit, first->device->target.bytes_per_tile),
		!input ? ""
		: scale->points[scale->count - 1].figures.waits_for_input
			? " At the end the device waits for the host's input."
			: " The host's input is there in time.");
	if (sums_need_room(scale))
		fputs("  Each gradient is summed by a program of its own, as TensorFlow for IPU "
		      "does "
		      "by default;\n  --ipu.optimizations.maximum_cross_replica_sum_buffer_size "
		      "52428800 sums them in groups.\n",
		      out);
}

static enum status run_scale(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			     struct err *err)
{
	struct scale_request request = {false, false, NULL};
	struct scale *scale = mem_calloc(1, sizeof(*scale));

	if (!scale)
		return err_nomem(err);
	scale->err = err;
	scale->trainer = trainer;
	plan_read_words(&plan_scale.command, argc, argv, &scale->words, &request, err);
	if (!err_stuck(err) && request.json && request.csv)
		err_set(err, ST_INVALID, "--json and --csv: give one of them");
	measure_replica(scale);
	if (request.ipus)
		read_ipus(scale, request.ipus);
	for (int64_t ipus = scale->ipus_per_replica;
	     !request.ipus && ipus <= 1024 && !err_stuck(err); ipus *= 2)
		add_ipus(scale, ipus);
	for (int i = 0; i < scale->count; i++)
		plan_point(scale, i);
	if (!err_stuck(err))
		(request.json ? print_json : request.csv ? print_csv : print_text)(scale, out);
	plan_run_fini(&scale->first);
	mem_free(scale->words.words);
	mem_free(scale);
	return err->status;
}

const struct plan_subcommand plan_scale = {
	.name = "scale",
	.command =
		{.name = "ipu-plan scale",
		 .synopsis = "RUN [FLAG ...] [--key value ...] [--ipus LIST]",
		 .summary = "throughput and memory of a run by number of IPUs",
		 .about = "Plans the run file RUN as `ipu-plan model` does, on more and more "
			  "IPUs. More IPUs are more replicas: each keeps its batch, and there is "
			  "as much more data, so that every replica has as many steps. Lines "
			  "between the rows say where one machine, one host and one domain of "
			  "IPU-Links end.\n\nThe time that a step takes has the host's fixed cost "
			  "and, where host.input_us is given, what the host takes to prepare the "
			  "batches of its replicas. Efficiency is items a second and IPU, beside "
			  "the first row's. docs/ipu-plan.md has the keys of --json and --csv.",
		 .options = scale_options,
		 .option_count = ARRAY_LEN(scale_options),
		 .examples = "ipu-plan scale keras-mnist --use-ipu\tto 1024 IPUs\n"
			     "ipu-plan scale run.json --ipus 1,2,4,...,64 --csv\ta table for a "
			     "spreadsheet\n",
		 .words = "FILE",
		 .names = "ipu-train --list"},
	.run = run_scale,
};
