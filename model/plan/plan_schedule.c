/*
 * `ipu-plan schedule`: how well a pipeline schedule fills its devices.
 *
 * Threading: none. Ownership: the pipelines of a request are freed before it returns.
 */
#include "model/plan/plan_command.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "ipu/ipu_pipeline.h"
#include "model/plan/plan_schedule_print.h"

#define NS_PER_MS      1e6
#define MS_MAX         1e12
#define WIDTH_MAX      100000
#define CHUNKS_DEFAULT 2
#define NUMBER_SIZE    64

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

/* Times by stage, ns; one stands for all. */
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
			     .choices = "gpipe 1f1b 1f1b-interleaved zb-h1 zb-h2 Grouped "
					"Interleaved Sequential",
			     .help = "gpipe, 1f1b, 1f1b-interleaved, zb-h1, zb-h2; or one of the "
				     "IPU's, in lockstep: Grouped, Interleaved, Sequential.",
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
	[OPTION_BACKWARD] = {.name = "--backward",
			     .argument = "MS",
			     .help = "The whole backward, where its parts are not given. zb-h1 and "
				     "zb-h2 need the parts: they take half for each, and say so."},
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

/* One time of a list: @length bytes of @text. */
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

static enum status read_option(void *asked, const struct cli_argument *argument, struct err *err)
{
	struct request *request = asked;

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

/* ---- what goes together ---------------------------------------------------------------------- */

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

/* Make every list as long as the pipeline. */
static enum status spread(struct request *request, struct err *err)
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

/* A backward given as one: halves, whose sum is the whole to the ns. */
static void halve(struct request *request)
{
	if (request->backward.count == 0)
		return;
	for (int s = 0; s < request->stages; s++) {
		request->input.ns[s] = request->backward.ns[s] / 2;
		request->weight.ns[s] = request->backward.ns[s] - request->input.ns[s];
	}
}

/* ---- simulation ------------------------------------------------------------------------------ */

static enum status simulate(const struct request *request, enum ipu_schedule_kind kind,
			    struct ipu_pipeline **out, struct err *err)
{
	const struct ipu_pipeline_params params = {
		.kind = kind,
		.stages = request->stages,
		.microbatches = request->microbatches,
		/* A comparison's chunks are for the one schedule that has any. */
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
	enum status status = ipu_schedule_kind_get(request->schedule, &kind, err);

	if (status == ST_OK)
		status = simulate(request, kind, &pipeline, err);
	if (status != ST_OK)
		return status;
	status = request->json ? plan_schedule_json(pipeline, style, out, err)
			       : plan_schedule_text(pipeline, style, out, err);
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
		status = plan_schedule_json_all(rows, IPU_SCHEDULE_KINDS, style, out, err);
	else
		status = plan_schedule_text_all(rows, IPU_SCHEDULE_KINDS, style, out, err);
	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++)
		ipu_pipeline_free(rows[i].pipeline);
	return status;
}

static enum status schedule_run(int argc, char **argv, const struct plan_trainer *trainer,
				FILE *out, struct err *err)
{
	struct request request = {.schedule = NULL};
	struct plan_schedule_style style;
	enum status status =
		plan_read_options(&plan_schedule.command, argc, argv, read_option, &request, err);

	(void)trainer;
	if (status == ST_OK)
		status = check_given(&request, err);
	if (status == ST_OK)
		status = spread(&request, err);
	if (status != ST_OK)
		return status;
	halve(&request);
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
				"zb-h1 and zb-h2 run W on its own. All others run B and W as one "
				"backward, and its gradient leaves when both are done. The IPU's "
				"schedules go in steps that last as long as their busiest IPU, and "
				"then the time of a hop.",
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
