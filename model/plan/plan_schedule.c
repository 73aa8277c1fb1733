/*
 * `ipu-plan schedule`: how well a pipeline schedule utilizes its devices.
 *
 * Threading: none. Ownership: the pipelines of a request are freed before it returns.
 */
#include "model/plan/plan_command.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/jsonw.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "ipu/ipu_pipeline.h"

#define NS_PER_MS      1e6
#define MS_MAX         1e12
#define WIDTH_MAX      100000
#define CHUNKS_DEFAULT 2
#define NUMBER_SIZE    64
#define FIGURE_SIZE    48

enum {
	OPTION_SCHEDULE,
	OPTION_STAGES,
	OPTION_MICROBATCHES,
	OPTION_FORWARD,
	OPTION_BACKWARD,
	OPTION_BACKWARD_INPUT,
	OPTION_BACKWARD_WEIGHT,
	OPTION_COMMUNICATION,
	OPTION_CHUNKS,
	OPTION_ALL,
	OPTION_JSON,
	OPTION_TIMELINE,
	OPTION_WIDTH,
	OPTION_COLOR,
	OPTION_ASCII,
	OPTIONS
};

/* Times by stage in ns; a single time is for all stages. */
struct times {
	int count; /* 0: not given */
	int64_t ns[IPU_PIPELINE_STAGES_MAX];
};

struct request {
	const char *schedule, *color;
	int stages, microbatches, chunks, width; /* 0: not given */
	struct times forward, backward, input, weight, communication;
	bool all, json, timeline, ascii;
};

static const struct cli_option schedule_options[] = {
	[OPTION_SCHEDULE] = {.name = "--schedule",
			     .argument = "NAME",
			     .choices = IPU_SCHEDULE_NAMES,
			     .help = "One of " IPU_SCHEDULE_NAMES
				     "(with a capital: the IPU's, in lockstep).",
			     .field = CLI_FIELD(TEXT, struct request, schedule)},
	[OPTION_STAGES] = {.name = "--stages",
			   .argument = "COUNT",
			   .help = "Stages, each on a device of its own (default: as many as a "
				   "list of times has).",
			   .field = CLI_RANGE(SIZE, struct request, stages, 1, INT_MAX)},
	[OPTION_MICROBATCHES] = {.name = "--microbatches",
				 .argument = "COUNT",
				 .help = "Micro-batches of one weight update.",
				 .field =
					 CLI_RANGE(SIZE, struct request, microbatches, 1, INT_MAX)},
	[OPTION_FORWARD] = {.name = "--forward",
			    .argument = "MS",
			    .help = "Forward of one micro-batch on one stage, in ms; or a list, "
				    "stage by stage: 1.5,2,2,1."},
	[OPTION_BACKWARD] =
		{.name = "--backward",
		 .argument = "MS",
		 .help = "The whole backward, where its parts are not given. A schedule "
			 "that splits it takes half for each part, and says so."},
	[OPTION_BACKWARD_INPUT] = {.name = "--backward-input",
				   .argument = "MS",
				   .help = "The backward's part for the gradient of the input."},
	[OPTION_BACKWARD_WEIGHT] = {.name = "--backward-weight",
				    .argument = "MS",
				    .help = "The backward's part for the gradients of the "
					    "weights."},
	[OPTION_COMMUNICATION] = {.name = "--communication",
				  .argument = "MS",
				  .help = "From a stage to the next, in ms (default 0); keeps no "
					  "device busy."},
	[OPTION_CHUNKS] = {.name = "--chunks",
			   .argument = "COUNT",
			   .help = "1f1b-interleaved: chunks of the model on each device (default "
				   "2).",
			   .field = CLI_RANGE(SIZE, struct request, chunks, 1, INT_MAX)},
	[OPTION_ALL] = {.name = "--all",
			.help = "Compare all schedules in one table; those whose rules forbid the "
				"numbers are listed with the rule.",
			.field = CLI_FIELD(SWITCH, struct request, all)},
	[OPTION_JSON] = {.name = "--json",
			 .help = "JSON instead of text: an object, with --all a list of them.",
			 .field = CLI_FIELD(SWITCH, struct request, json)},
	[OPTION_TIMELINE] = {.name = "--timeline",
			     .help = "JSON with every piece of work.",
			     .field = CLI_FIELD(SWITCH, struct request, timeline)},
	[OPTION_WIDTH] = {.name = "--width",
			  .argument = "COLUMNS",
			  .help = "Width of the picture (default: the terminal's, 80 elsewhere).",
			  .field = CLI_RANGE(SIZE, struct request, width, 1, WIDTH_MAX)},
	[OPTION_COLOR] =
		{.name = "--color",
		 .argument = "WHEN",
		 .choices = "auto always never",
		 .help = "Colours: auto (on a terminal, unless NO_COLOR is set), always or "
			 "never.",
		 .field = CLI_FIELD(TEXT, struct request, color)},
	[OPTION_ASCII] = {.name = "--ascii",
			  .help = "Draw with ASCII, as is done where the locale is not UTF-8.",
			  .field = CLI_FIELD(SWITCH, struct request, ascii)},
};
_Static_assert(ARRAY_LEN(schedule_options) == OPTIONS, "options out of step");

/* ---- arguments ------------------------------------------------------------------------------- */

/* Read one time of a list: @length bytes of @text. */
static enum status read_time(const char *name, const char *text, size_t length, int64_t *out,
			     struct err *err)
{
	char number[NUMBER_SIZE];
	double ms;

	str_copy(number, min(length + 1, sizeof(number)), text);
	if (length >= sizeof(number) || !str_to_double(number, &ms) || !(ms >= 0 && ms <= MS_MAX))
		return err_set(err, ST_INVALID, "%s: \"%s\" is not a time in ms, from 0 to %g",
			       name, number, MS_MAX);
	*out = llround(ms * NS_PER_MS);
	if (ms > 0 && *out == 0)
		return err_set(err, ST_INVALID, "%s: %s ms is less than the 1 ns that is counted",
			       name, number);
	return ST_OK;
}

static enum status read_times(const struct cli_argument *argument, struct times *out,
			      struct err *err)
{
	const char *at = argument->value;

	out->count = 0;
	for (;;) {
		size_t length = strcspn(at, ",");
		enum status status;

		if (out->count == IPU_PIPELINE_STAGES_MAX)
			return err_set(err, ST_LIMIT, "%s: more than %d times", argument->name,
				       IPU_PIPELINE_STAGES_MAX);
		status = read_time(argument->name, at, length, &out->ns[out->count++], err);
		if (status != ST_OK || at[length] == '\0')
			return status;
		at += length + 1;
	}
}

static enum status read_option(void *user, const struct cli_argument *argument, struct err *err)
{
	struct request *request = user;

	switch (argument->option - schedule_options) {
	case OPTION_FORWARD:
		return read_times(argument, &request->forward, err);
	case OPTION_BACKWARD:
		return read_times(argument, &request->backward, err);
	case OPTION_BACKWARD_INPUT:
		return read_times(argument, &request->input, err);
	case OPTION_BACKWARD_WEIGHT:
		return read_times(argument, &request->weight, err);
	case OPTION_COMMUNICATION:
		return read_times(argument, &request->communication, err);
	default:
		return cli_set(argument, request, err);
	}
}

/* ---- checks ---------------------------------------------------------------------------------- */

static enum status check_given(const struct request *request, struct err *err)
{
	if (request->all && request->schedule)
		return err_set(err, ST_INVALID, "--schedule and --all exclude each other");
	if (!request->all && !request->schedule)
		return err_set(err, ST_INVALID,
			       "--schedule is missing (--all compares all of them)");
	if (request->microbatches == 0)
		return err_set(err, ST_INVALID, "--microbatches is missing");
	if (request->forward.count == 0)
		return err_set(err, ST_INVALID, "--forward is missing: ms on one stage");
	if (request->backward.count > 0 && request->input.count + request->weight.count > 0)
		return err_set(err, ST_INVALID,
			       "--backward is the whole of --backward-input and "
			       "--backward-weight: give it or the two parts");
	if (request->backward.count == 0 &&
	    (request->input.count == 0 || request->weight.count == 0))
		return err_set(err, ST_INVALID, "%s is missing%s",
			       request->input.count > 0    ? "--backward-weight"
			       : request->weight.count > 0 ? "--backward-input"
							   : "--backward",
			       request->input.count + request->weight.count > 0
				       ? ""
				       : " (or its parts, --backward-input and --backward-weight)");
	if (request->communication.count > 1)
		return err_set(err, ST_INVALID, "--communication is one time for all hops");
	if (request->timeline && !request->json)
		return err_set(err, ST_INVALID, "--timeline goes with --json");
	return ST_OK;
}

/* Extend every list to the number of stages. */
static enum status spread_times(struct request *request, struct err *err)
{
	const struct {
		const char *name;
		struct times *times;
	} lists[] = {
		{"--forward", &request->forward},
		{"--backward", &request->backward},
		{"--backward-input", &request->input},
		{"--backward-weight", &request->weight},
	};

	for (size_t i = 0; request->stages == 0 && i < ARRAY_LEN(lists); i++)
		if (lists[i].times->count > 1)
			request->stages = lists[i].times->count;
	if (request->stages == 0)
		return err_set(err, ST_INVALID, "--stages is missing (or a list of times)");
	if (request->stages > IPU_PIPELINE_STAGES_MAX)
		return err_set(err, ST_LIMIT, "--stages: at most %d, not %d",
			       IPU_PIPELINE_STAGES_MAX, request->stages);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct times *times = lists[i].times;

		if (times->count > 1 && times->count != request->stages)
			return err_set(err, ST_INVALID,
				       "%s has %d times for %d stages: one for each, or one for "
				       "all",
				       lists[i].name, times->count, request->stages);
		for (int s = times->count; times->count > 0 && s < request->stages; s++)
			times->ns[s] = times->ns[0];
	}
	return ST_OK;
}

struct plan_schedule_style {
	int width; /* columns of text */
	bool colour, unicode;
	bool timeline; /* JSON: include the works */
	bool halved;   /* B and W of a split schedule are halves of --backward */
	bool hops;     /* communication takes time */
};

/* A simulated schedule, or the rule that forbids it. */
struct plan_schedule_row {
	enum ipu_schedule_kind kind;
	struct ipu_pipeline *pipeline; /* NULL: forbidden */
	struct err refusal;
};

/* Unknown figures print as "-", in JSON as null. */

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_timeline(struct jsonw *w, const struct ipu_pipeline *pipeline)
{
	jsonw_key(w, "timeline");
	jsonw_begin_array(w);
	for (int i = 0; i < pipeline->first[pipeline->stages]; i++) {
		const struct ipu_pipeline_work *work = &pipeline->works[i];
		const char phase[2] = {work->phase, '\0'};

		jsonw_begin_object(w);
		jsonw_key_int(w, "stage", work->stage);
		jsonw_key_int(w, "chunk", work->chunk);
		jsonw_key_int(w, "microbatch", work->microbatch);
		jsonw_key_text(w, "phase", phase);
		jsonw_key_real(w, "start_ms", (double)work->start_ns / NS_PER_MS);
		jsonw_key_real(w, "end_ms", (double)work->end_ns / NS_PER_MS);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

static void json_pipeline(struct jsonw *w, const struct ipu_pipeline *pipeline,
			  const struct plan_schedule_style *style)
{
	const struct ipu_bubble *bubble = &pipeline->bubble;
	const struct ipu_pipeline_closed *closed = &pipeline->closed;

	jsonw_begin_object(w);
	jsonw_key_text(w, "schedule", ipu_schedule_name(pipeline->kind));
	jsonw_key_int(w, "stages", pipeline->stages);
	jsonw_key_int(w, "microbatches", pipeline->microbatches);
	jsonw_key_int(w, "chunks", pipeline->chunks);
	jsonw_key_real(w, "makespan_ms", (double)bubble->makespan_ns / NS_PER_MS);
	jsonw_key_real(w, "idle_fraction", bubble->idle_fraction);
	jsonw_key_real(w, "bubble_rate", bubble->bubble_rate);
	jsonw_key_real(w, "bubble_over_ideal", bubble->bubble_over_ideal);
	jsonw_key_real(w, "closed_form_makespan_ms", closed->makespan_ns / NS_PER_MS);
	jsonw_key_real(w, "closed_form_idle_fraction", closed->idle_fraction);
	jsonw_key_real(w, "closed_form_bubble_rate", closed->bubble_rate);
	jsonw_key_real(w, "closed_form_bubble_over_ideal", closed->bubble_over_ideal);
	jsonw_key(w, "peak_activations");
	jsonw_begin_array(w);
	for (int s = 0; s < pipeline->stages; s++)
		jsonw_real(w, pipeline->peak_activations[s]);
	jsonw_end_array(w);
	jsonw_key(w, "peak_weight_gradients");
	jsonw_begin_array(w);
	for (int s = 0; s < pipeline->stages; s++)
		jsonw_int(w, pipeline->peak_weights[s]);
	jsonw_end_array(w);
	if (style->timeline)
		json_timeline(w, pipeline);
	jsonw_end_object(w);
}

static enum status print_json(const struct ipu_pipeline *pipeline,
			      const struct plan_schedule_style *style, FILE *out, struct err *err)
{
	struct jsonw w;

	jsonw_init_file(&w, out, 2);
	json_pipeline(&w, pipeline, style);
	return jsonw_end(&w, err);
}

static enum status print_json_all(const struct plan_schedule_row *rows, int count,
				  const struct plan_schedule_style *style, FILE *out,
				  struct err *err)
{
	struct jsonw w;

	jsonw_init_file(&w, out, 2);
	jsonw_begin_array(&w);
	for (int i = 0; i < count; i++) {
		if (rows[i].pipeline) {
			json_pipeline(&w, rows[i].pipeline, style);
		} else {
			jsonw_begin_object(&w);
			jsonw_key_text(&w, "schedule", ipu_schedule_name(rows[i].kind));
			jsonw_key_text(&w, "error", rows[i].refusal.text);
			jsonw_end_object(&w);
		}
	}
	jsonw_end_array(&w);
	return jsonw_end(&w, err);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *figure(char out[FIGURE_SIZE], double value, int decimals, const char *unit)
{
	if (isfinite(value))
		snprintf(out, FIGURE_SIZE, "%.*f%s", decimals, value, unit);
	else
		snprintf(out, FIGURE_SIZE, "-");
	return out;
}

static void text_pair(struct str *text, const char *name, double simulated, double closed,
		      int decimals, const char *unit)
{
	char a[FIGURE_SIZE], b[FIGURE_SIZE];

	str_addf(text, "%-23s%18s%18s\n", name, figure(a, simulated, decimals, unit),
		 figure(b, closed, decimals, unit));
}

/* Print a list by stage, wrapped at the width and indented to its first figure. */
static void text_list(struct str *text, const char *name, const struct ipu_pipeline *pipeline,
		      bool weights, int width)
{
	char one[FIGURE_SIZE];
	int indent = 25, column = indent;

	str_addf(text, "%-*s", indent, name);
	for (int s = 0; s < pipeline->stages; s++) {
		double value = weights ? pipeline->peak_weights[s] : pipeline->peak_activations[s];
		int length = snprintf(one, sizeof(one), " %.4g", value);

		if (column > indent && column + length > width) {
			str_addf(text, "\n%*s", indent, "");
			column = indent;
		}
		str_add(text, one);
		column += length;
	}
	str_add(text, "\n");
}

static void text_notes(struct str *text, enum ipu_schedule_kind kind,
		       const struct plan_schedule_style *style)
{
	const struct ipu_schedule_row *row = ipu_schedule_row(kind);

	if (style->halved && row->splits)
		str_addf(text,
			 "%s: --backward is taken as half for the input, half for the weights\n",
			 ipu_schedule_name(kind));
	if (style->hops && row->closed_note)
		str_addf(text, "%s: %s\n", ipu_schedule_name(kind), row->closed_note);
}

static enum status print(struct str *text, FILE *out, struct err *err)
{
	enum status status = ST_OK;

	if (text->failed)
		status = err_nomem(err);
	else if (fwrite(str_peek(text), 1, text->length, out) != text->length || fflush(out) != 0)
		status = err_set(err, ST_IO, "write: %s", strerror(errno));
	str_free(text);
	return status;
}

static enum status print_text(const struct ipu_pipeline *pipeline,
			      const struct plan_schedule_style *style, FILE *out, struct err *err)
{
	struct plan_gantt_params gantt = {
		.width = style->width, .colour = style->colour, .unicode = style->unicode};
	struct str text = {0};
	const struct ipu_bubble *bubble = &pipeline->bubble;
	const struct ipu_pipeline_closed *closed = &pipeline->closed;

	str_addf(&text, "%s, %d stages, %d micro-batches", ipu_schedule_name(pipeline->kind),
		 pipeline->stages, pipeline->microbatches);
	if (pipeline->chunks > 1)
		str_addf(&text, ", %d chunks", pipeline->chunks);
	str_addf(&text, "\n%s\n\n", ipu_schedule_row(pipeline->kind)->about);
	plan_gantt(pipeline, &gantt, &text);
	str_add(&text, "\n");

	str_addf(&text, "%-23s%18s%18s\n", "", "simulated", "closed form");
	text_pair(&text, "makespan", (double)bubble->makespan_ns / NS_PER_MS,
		  closed->makespan_ns / NS_PER_MS, 3, " ms");
	text_pair(&text, "idle_fraction", bubble->idle_fraction, closed->idle_fraction, 4, "");
	text_pair(&text, "bubble_rate", bubble->bubble_rate, closed->bubble_rate, 4, "");
	text_pair(&text, "bubble_over_ideal", bubble->bubble_over_ideal, closed->bubble_over_ideal,
		  4, "");

	str_add(&text, "\nmicro-batches at most at once, by stage\n");
	text_list(&text, "activations", pipeline, false, style->width);
	if (ipu_schedule_row(pipeline->kind)->splits)
		text_list(&text, "held-back W", pipeline, true, style->width);
	text_notes(&text, pipeline->kind, style);
	return print(&text, out, err);
}

static double peak_of_stages(const struct ipu_pipeline *pipeline)
{
	double most = 0;

	for (int s = 0; s < pipeline->stages; s++)
		most = fmax(most, pipeline->peak_activations[s]);
	return most;
}

static enum status print_text_all(const struct plan_schedule_row *rows, int count,
				  const struct plan_schedule_style *style, FILE *out,
				  struct err *err)
{
	struct str text = {0};

	str_addf(&text, "%-17s%13s%10s%8s%8s%8s%12s\n", "schedule", "makespan", "idle", "bubble",
		 "over", "closed", "activations");
	str_addf(&text, "%-17s%13s%10s%8s%8s%8s%12s\n", "", "ms", "fraction", "rate", "ideal",
		 "rate", "at most");
	for (int i = 0; i < count; i++) {
		if (rows[i].pipeline) {
			const struct ipu_pipeline *pipeline = rows[i].pipeline;
			const struct ipu_bubble *bubble = &pipeline->bubble;
			char figures[6][FIGURE_SIZE];

			str_addf(&text, "%-17s%13s%10s%8s%8s%8s%12s\n",
				 ipu_schedule_name(pipeline->kind),
				 figure(figures[0], (double)bubble->makespan_ns / NS_PER_MS, 3, ""),
				 figure(figures[1], bubble->idle_fraction, 4, ""),
				 figure(figures[2], bubble->bubble_rate, 4, ""),
				 figure(figures[3], bubble->bubble_over_ideal, 4, ""),
				 figure(figures[4], pipeline->closed.bubble_rate, 4, ""),
				 figure(figures[5], peak_of_stages(pipeline),
					pipeline->chunks > 1 ? 2 : 0, ""));
		}
	}
	for (int i = 0; i < count; i++)
		if (!rows[i].pipeline)
			str_addf(&text, "not possible: %s\n", rows[i].refusal.text);
	for (int i = 0; i < count; i++)
		if (rows[i].pipeline)
			text_notes(&text, rows[i].kind, style);
	return print(&text, out, err);
}

/* ---- simulation ------------------------------------------------------------------------------ */

static enum status simulate(const struct request *request, enum ipu_schedule_kind kind,
			    struct ipu_pipeline **out, struct err *err)
{
	const struct ipu_pipeline_params params = {
		.kind = kind,
		.stages = request->stages,
		.microbatches = request->microbatches,
		/* When comparing, --chunks applies only to the schedules that have chunks. */
		.chunks = ipu_pipeline_chunked(kind)
				  ? (request->chunks > 0 ? request->chunks : CHUNKS_DEFAULT)
			  : request->all ? 1
					 : request->chunks,
		.forward_ns = request->forward.ns,
		.backward_input_ns = request->input.ns,
		.backward_weight_ns = request->weight.ns,
		.communication_ns =
			request->communication.count > 0 ? request->communication.ns[0] : 0,
	};

	return ipu_pipeline_new(out, &params, err);
}

static enum status run_one(const struct request *request, const struct plan_schedule_style *style,
			   FILE *out, struct err *err)
{
	struct ipu_pipeline *pipeline;
	enum ipu_schedule_kind kind;
	enum status status;

	if (ipu_schedule_kind_get(request->schedule, &kind, err) != ST_OK ||
	    simulate(request, kind, &pipeline, err) != ST_OK)
		return err->status;
	status = request->json ? print_json(pipeline, style, out, err)
			       : print_text(pipeline, style, out, err);
	ipu_pipeline_free(pipeline);
	return status;
}

static enum status run_all(const struct request *request, const struct plan_schedule_style *style,
			   FILE *out, struct err *err)
{
	struct plan_schedule_row rows[IPU_SCHEDULE_KINDS] = {{.kind = IPU_GPIPE}};
	enum status status = ST_OK;
	bool any = false;

	for (int i = 0; i < IPU_SCHEDULE_KINDS && status != ST_NOMEM; i++) {
		rows[i].kind = (enum ipu_schedule_kind)i;
		status = simulate(request, rows[i].kind, &rows[i].pipeline, &rows[i].refusal);
		any = any || status == ST_OK;
	}
	if (status == ST_NOMEM)
		err_nomem(err);
	else if (!any)
		status = err_set(err, rows[0].refusal.status, "%s", rows[0].refusal.text);
	else if (request->json)
		status = print_json_all(rows, IPU_SCHEDULE_KINDS, style, out, err);
	else
		status = print_text_all(rows, IPU_SCHEDULE_KINDS, style, out, err);
	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++)
		ipu_pipeline_free(rows[i].pipeline);
	return status;
}

static enum status schedule_run(int argc, char **argv, const struct plan_trainer *trainer,
				FILE *out, struct err *err)
{
	struct request request = {.schedule = NULL};
	struct plan_schedule_style style;

	(void)trainer;
	if (cli_parse(&plan_schedule.command, argc, argv, read_option, &request, &PLAN_NO_WORDS,
		      err) != ST_OK ||
	    check_given(&request, err) != ST_OK || spread_times(&request, err) != ST_OK)
		return err->status;

	/* The halves of a --backward have a sum that is exact to the ns. */
	if (request.backward.count != 0) {
		for (int s = 0; s < request.stages; s++) {
			request.input.ns[s] = request.backward.ns[s] / 2;
			request.weight.ns[s] = request.backward.ns[s] - request.input.ns[s];
		}
	}

	style = (struct plan_schedule_style){
		.width = plan_width(out, request.width),
		.colour = cli_colour(out, request.color),
		.unicode = !request.ascii && cli_locale(),
		.timeline = request.timeline,
		.halved = request.backward.count > 0,
		.hops = request.communication.count > 0 && request.communication.ns[0] > 0,
	};
	return request.all ? run_all(&request, &style, out, err)
			   : run_one(&request, &style, out, err);
}

const struct plan_subcommand plan_schedule = {
	.name = "schedule",
	.command =
		{
			.name = "ipu-plan schedule",
			.synopsis = "(--schedule NAME | --all) --microbatches COUNT --forward MS "
				    "--backward MS [OPTION ...]",
			.summary = "how well a pipeline schedule fills its devices",
			.about =
				"Simulates a pipeline of stages, each on a device of its own, over "
				"the micro-batches of one weight update: F is a forward, B the "
				"gradient of a stage's input, W the gradient of its weights. "
				"Prints "
				"who does what when, the bubble by three definitions, beside it "
				"the closed form where one is known, and how many micro-batches' "
				"activations a stage holds at most.\n\n"
				"idle_fraction is idle time over devices x makespan; bubble_rate "
				"is 1 - (a stage's work) / (longest span of one stage); "
				"bubble_over_ideal is idle time over work.\n\n"
				"A zero-bubble schedule (zb) runs W on its own. All others run B "
				"and W as one backward, and its gradient leaves when both are "
				"done. The IPU's schedules go in steps that last as long as their "
				"busiest IPU, and then the time of a hop.",
			.options = schedule_options,
			.option_count = OPTIONS,
			.examples =
				"ipu-plan schedule --all --stages 8 --microbatches 24 --forward 1 "
				"--backward 2\tall schedules beside one another\n"
				"ipu-plan schedule --schedule 1f1b --microbatches 8 --forward "
				"1,2 --backward 3\ttwo unequal stages\n",
		},
	.run = schedule_run,
};
