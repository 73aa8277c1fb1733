/*
 * `ipu-plan model`: the cost of a run file, compiled and simulated but not trained.
 *
 * Threading: none. Ownership: the plan of a request is freed before it returns.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "common/cli.h"
#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "model/plan/plan_command.h"
#include "model/plan/plan_run.h"

struct model_request {
	bool json, measure_input;
};

static const struct cli_option model_options[] = {
	{.name = "--json",
	 .help = "Print JSON.",
	 .field = CLI_FIELD(SWITCH, struct model_request, json)},
	{.name = "--measure-input",
	 .help = "Prepare some batches of the run's data and count what that takes on this machine "
		 "as host.input_us; the data must be here.",
	 .field = CLI_FIELD(SWITCH, struct model_request, measure_input)},
	{.name = "--target",
	 .argument = "NAME",
	 .choices = PLAN_TARGETS,
	 .help = PLAN_TARGET_HELP "; short for --ipu.target."},
};

/* ---- splits: a row per stage, the given one and the best ------------------------------------- */

/* The stage's share of all stages' cycles. */
static double share_of(const struct ipu_partition *partition, int stage)
{
	int64_t sum = 0;

	for (int s = 0; s < partition->stages; s++)
		sum += partition->stage[s].cycles;
	return sum > 0 ? (double)partition->stage[stage].cycles / (double)sum : 0;
}

static enum status print_split(const struct partition_split *split, const char *what, FILE *out,
			       struct err *err)
{
	struct str text = {0};
	bool failed;

	partition_split_describe(split, what, &text);
	failed = text.failed;
	if (!failed) {
		const struct ipu_partition *partition = split->partition;

		fputs("  ", out);
		cli_print_text(out, str_peek(&text));
		fprintf(out, "    %5s  %12s  %12s  %12s  %12s  %7s  %9s  %9s  %s\n", "stage",
			"forward", "backward", "transfer", "cycles", "share", "sent", "memory",
			"from layer");
		for (int s = 0; s < partition->stages; s++) {
			const struct ipu_partition_stage *stage = &partition->stage[s];
			char forward[FMT_SIZE], backward[FMT_SIZE], transfer[FMT_SIZE];
			char cycles[FMT_SIZE], share[FMT_SIZE], sent[FMT_SIZE], memory[FMT_SIZE];

			cli_print(out, "    %5d  %12s  %12s  %12s  %12s  %7s  %9s  %9s  %s\n", s,
				  fmt_count(forward, stage->forward),
				  fmt_count(backward, stage->backward),
				  fmt_count(transfer, stage->transfer),
				  fmt_count(cycles, stage->cycles),
				  fmt_percent(share, share_of(partition, s)),
				  fmt_bytes(sent, (uint64_t)stage->sent_bytes),
				  fmt_bytes(memory, (uint64_t)stage->memory_bytes),
				  split->first_layer[s]);
		}
	}
	str_free(&text);
	return failed ? err_nomem(err) : ST_OK;
}

/* ---- splits as JSON -------------------------------------------------------------------------- */

static void json_split(const struct partition_split *split, struct jsonw *w)
{
	if (!split) {
		jsonw_null(w);
		return;
	}
	jsonw_begin_object(w);
	jsonw_key(w, "first_layers");
	jsonw_begin_array(w);
	for (int s = 0; s < split->partition->stages; s++)
		jsonw_text(w, split->first_layer[s]);
	jsonw_end_array(w);
	jsonw_key_int(w, "slowest_stage", split->partition->slowest);
	jsonw_key_int(w, "slowest_stage_cycles", split->partition->cycles);
	jsonw_key_real(w, "slowest_stage_us", split->slowest_us);
	jsonw_key_real(w, "step_us_estimate", split->step_us);
	jsonw_key_int(w, "overflow_bytes", split->partition->most_overflow);
	jsonw_key(w, "stages");
	jsonw_begin_array(w);
	for (int s = 0; s < split->partition->stages; s++) {
		const struct ipu_partition_stage *stage = &split->partition->stage[s];

		jsonw_begin_object(w);
		jsonw_key_text(w, "first_layer", split->first_layer[s]);
		jsonw_key_int(w, "layers", stage->count);
		jsonw_key_int(w, "forward_cycles", stage->forward);
		jsonw_key_int(w, "backward_cycles", stage->backward);
		jsonw_key_int(w, "transfer_cycles", stage->transfer);
		jsonw_key_int(w, "update_cycles", stage->update);
		jsonw_key_int(w, "cycles", stage->cycles);
		jsonw_key_real(w, "share", share_of(split->partition, s));
		jsonw_key_int(w, "sent_bytes", stage->sent_bytes);
		jsonw_key_int(w, "memory_bytes", stage->memory_bytes);
		jsonw_key_int(w, "overflow_bytes", stage->overflow_bytes);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
	jsonw_end_object(w);
}

static void json_splits(const struct plan_run *plan, struct jsonw *w)
{
	jsonw_key(w, "stages_cycles");
	if (plan->split) {
		jsonw_begin_array(w);
		for (int s = 0; s < plan->split->partition->stages; s++)
			jsonw_int(w, plan->split->partition->stage[s].cycles);
		jsonw_end_array(w);
	} else {
		jsonw_null(w);
	}
	jsonw_key(w, "split");
	json_split(plan->split, w);
	jsonw_key(w, "auto_split");
	json_split(plan->best, w);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void json_shape(struct jsonw *w, const struct plan_run *plan, const struct plan_figures *f)
{
	jsonw_key_text(w, "model", plan->model->name);
	jsonw_key_text(w, "target", plan->device->target.name);
	jsonw_key_text(w, "mode",
		       f->mode == RUN_TRAIN      ? "train"
		       : f->mode == RUN_EVALUATE ? "evaluate"
						 : "predict");
	jsonw_key_text(w, "cost_model", IPU_COST_MODEL);
	jsonw_key_int(w, "ipus", f->ipus);
	jsonw_key_int(w, "replicas", f->replicas);
	jsonw_key_int(w, "stages", f->stages);
	jsonw_key_int(w, "batch_size", f->batch);
	jsonw_key_int(w, "gradient_accumulation", f->accumulation);
	jsonw_key_int(w, "effective_batch_size", f->effective_batch);
	jsonw_key_int(w, "steps_per_execution", f->steps_per_execution);
	jsonw_key_int(w, "operations", f->operations);
	jsonw_key_int(w, "programs", f->programs);
}

static enum status print_json(const struct plan_run *plan, const struct plan_figures *f,
			      double looking, FILE *out, struct err *err)
{
	struct jsonw w;

	jsonw_init_file(&w, out, 2);
	jsonw_begin_object(&w);
	json_shape(&w, plan, f);
	jsonw_key_real(&w, "device_step_us", f->device_step_us);
	jsonw_key_real(&w, "keras_step_us", f->keras_step_us);
	jsonw_key_real(&w, "update_us", f->update_us);
	jsonw_key_real(&w, "all_reduce_us", f->all_reduce_us);
	jsonw_key_real(&w, "execution_us", f->execution_us);
	jsonw_key_real(&w, "step_us", f->step_us);
	jsonw_key_real(&w, "host_input_us", f->input_us);
	jsonw_key_real(&w, "device_busy_fraction", f->device_busy);
	jsonw_key(&w, "waits");
	if (isfinite(f->input_us))
		jsonw_text(&w, f->waits_for_input ? "device" : "host");
	else
		jsonw_null(&w);
	jsonw_key_real(&w, "images_per_second", f->items_second);
	jsonw_key_int(&w, "cycles_per_step", f->cycles_per_step);
	jsonw_key_real(&w, "compute_fraction", f->compute_fraction);
	jsonw_key_real(&w, "exchange_fraction", f->exchange_fraction);
	jsonw_key_real(&w, "sync_fraction", f->sync_fraction);
	jsonw_key_real(&w, "host_io_fraction", f->host_io_fraction);
	jsonw_key_real(&w, "wait_fraction", f->wait_fraction);
	jsonw_key_real(&w, "idle_fraction", f->idle_fraction);
	jsonw_key_real(&w, "bubble_rate", f->bubble_rate);
	jsonw_key_real(&w, "bubble_over_ideal", f->bubble_over_ideal);
	jsonw_key_int(&w, "report_bytes_forecast", plan_forecast_report(plan, looking));
	jsonw_key_int(&w, "flops_per_step", f->flops_per_step);
	jsonw_key_int(&w, "memory_bytes_per_ipu", f->memory_bytes_per_ipu);
	jsonw_key_int(&w, "memory_bytes_per_tile", f->memory_bytes_per_tile);
	jsonw_key_bool(&w, "memory_fits", f->memory_fits);
	jsonw_key_real(&w, "tflops", f->tflops);
	json_splits(plan, &w);
	jsonw_end_object(&w);
	return jsonw_end(&w, err);
}

static void line(FILE *out, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void line(FILE *out, const char *what, const char *format, ...)
{
	va_list args;

	fprintf(out, "  %-28s", what);
	va_start(args, format);
	cli_vprint(out, format, args);
	va_end(args);
	fputc('\n', out);
}

static void print_memory(const struct plan_run *plan, const struct plan_figures *f, FILE *out)
{
	const struct plan_device *device = plan->device;
	struct err err = {ST_OK, ""};
	char ipu[FMT_SIZE], tile[FMT_SIZE], limit[FMT_SIZE];

	line(out, "memory", "%s of the fullest IPU, %s of %s bytes of the fullest tile",
	     fmt_bytes(ipu, (uint64_t)f->memory_bytes_per_ipu),
	     fmt_count(tile, f->memory_bytes_per_tile),
	     fmt_count(limit, device->target.bytes_per_tile));
	if (ipu_memory_check(device->memory, device->executable, &device->target, &err) != ST_OK)
		line(out, "", "%s", err.text);
}

/* Print the host's input time and how it limits the device. */
static void print_host(const struct plan_figures *f, FILE *out)
{
	char busy[FMT_SIZE];

	fmt_percent(busy, f->device_busy);
	if (isfinite(f->input_us))
		line(out, "host",
		     "prepares a step's input in %.1f us: the %s waits; the device works %s of the "
		     "time",
		     f->input_us, f->waits_for_input ? "device" : "host", busy);
	else
		line(out, "host",
		     "its input is not counted (--measure-input, host.input_us); the device works "
		     "%s of the time",
		     busy);
}

static void print_text(const struct plan_run *plan, const struct plan_figures *f, double looking,
		       FILE *out)
{
	const struct ipu_target *target = &plan->device->target;
	char text[FMT_SIZE];

	cli_print(out, "%s: %s on %" PRId64 " IPU%s (%s), simulated (%s)\n", plan->run->path,
		  plan->model->name, f->ipus, f->ipus == 1 ? "" : "s", target->description,
		  IPU_COST_MODEL);
	line(out, "layout",
	     "%" PRId64 " replica%s of %" PRId64 " stage%s, batch %" PRId64
	     ", effective batch %" PRId64,
	     f->replicas, f->replicas == 1 ? "" : "s", f->stages, f->stages == 1 ? "" : "s",
	     f->batch, f->effective_batch);
	line(out, "step (a batch per replica)", "%.1f us, %s cycles", f->device_step_us,
	     fmt_count(text, f->cycles_per_step));
	line(out, "step as Keras prints it", "%.1f us", f->keras_step_us);
	if (f->mode == RUN_TRAIN)
		line(out, "weight update", "%.1f us", f->update_us);
	if (f->all_reduce_us > 0)
		line(out, "sums over replicas", "%.1f us of the step", f->all_reduce_us);
	line(out, "execution", "%.3f ms of %s steps, %.1f ms of it the host's fixed cost",
	     f->execution_us / 1e3, fmt_count(text, f->steps_per_execution),
	     target->execution_host_ns / 1e6);
	print_host(f, out);
	line(out, "throughput", "%s items/s", fmt_count(text, llround(f->items_second)));
	line(out, "arithmetic", "%.2f TFLOP/s of all IPUs", f->tflops);
	line(out, "IPU time",
	     "compute %.1f %%, exchange %.1f %%, sync %.1f %%, host I/O %.1f %%, "
	     "waiting %.1f %%",
	     f->compute_fraction * 100, f->exchange_fraction * 100, f->sync_fraction * 100,
	     f->host_io_fraction * 100, f->wait_fraction * 100);
	print_memory(plan, f, out);
	line(out, "report", "about %s with autoReport.all",
	     fmt_bytes(text, (uint64_t)plan_forecast_report(plan, looking)));
	if (isfinite(f->idle_fraction))
		line(out, "bubble", "idle_fraction %.4f, bubble_rate %.4f, bubble_over_ideal %.4f",
		     f->idle_fraction, f->bubble_rate, f->bubble_over_ideal);
}

/* Plan what @words request, and print it. */
static enum status answer(struct plan_run *plan, const struct model_request *request,
			  const struct plan_words *words, const struct plan_trainer *trainer,
			  FILE *out, struct err *err)
{
	struct plan_figures figures;
	struct run_data data;
	double looking;

	if (plan_read_run(plan, &data, words, trainer, err) != ST_OK)
		return err->status;
	if (request->measure_input &&
	    trainer->measure_input(&plan->run->host.input_us, plan->run, err) != ST_OK)
		return err->status;
	if (plan_run_build(plan, &data, true, err) != ST_OK ||
	    plan_run_compile(plan, &data, err) != ST_OK ||
	    trainer->looking(&looking, plan, err) != ST_OK)
		return err->status;
	plan_figures_get(&figures, plan);
	if (request->json)
		return print_json(plan, &figures, looking, out, err);
	cli_print_text(out, plan->run->notes);
	if (plan->layout->warnings)
		cli_print_text(out, plan->layout->warnings);
	print_text(plan, &figures, looking, out);
	if (plan->split && !plan->run->pipeline.stages_auto &&
	    print_split(plan->split, "pipeline.stages", out, err) != ST_OK)
		return err->status;
	return plan->best ? print_split(plan->best, "pipeline.stages auto", out, err) : ST_OK;
}

static enum status run_model(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			     struct err *err)
{
	struct model_request request = {false, false};
	struct plan_words words = {0};
	struct plan_run plan = {0};
	enum status status =
		plan_read_words(&plan_model.command, argc, argv, &words, &request, err);

	if (status == ST_OK)
		status = answer(&plan, &request, &words, trainer, out, err);
	plan_run_fini(&plan);
	mem_free(words.words);
	return status;
}

const struct plan_subcommand plan_model = {
	.name = "model",
	.command = {.name = "ipu-plan model",
		    .synopsis = "RUN [FLAG ...] [--key value ...]",
		    .summary = "what a run file would cost, without training",
		    .about =
			    "Compiles the run file RUN for the simulated IPUs and simulates a step "
			    "of it; nothing is trained, and no data is read: a known data set's "
			    "published size is taken. So models far larger than this machine "
			    "could train can be asked for. RUN, its flags and keys are those of "
			    "`ipu-train --help RUN`: a path, or the name of an example.\n\nA step "
			    "is one batch on every replica, "
			    "in steady state, its share of the weight update and of the pipeline's "
			    "ramps included. docs/ipu-plan.md has the keys of --json.",
		    .options = model_options,
		    .option_count = ARRAY_LEN(model_options),
		    .examples = "ipu-plan model keras-mnist --use-ipu\tthe "
				"convolutional network on two replicas\n"
				"ipu-plan model run.json --target ipu21 --json\ton a Bow, for a "
				"program\n",
		    .words = "FILE",
		    .names = "ipu-train --list"},
	.run = run_model,
};
