/*
 * `ipu-plan conv`: what a convolution costs, forwards and backwards.
 *
 * Threading: none.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/plan/plan_operation.h"

#define SIZE_MOST   (INT64_C(1) << 40)
#define SHAPE_SIZE  256
#define NUMBER_SIZE 32

enum {
	OPTION_BATCH = PLAN_OPTIONS,
	OPTION_IN,
	OPTION_OUT,
	OPTION_FIELD,
	OPTION_KERNEL,
	OPTION_STRIDE,
	OPTION_DILATION,
	OPTION_GROUPS,
	OPTION_PADDING,
	OPTION_PASS,
	OPTIONS
};

static const struct cli_option conv_options[] = {
	PLAN_OPERATION_OPTIONS(
		"Default: of matmul that of --dtype, as the published float16 products have it; "
		"of conv float32, as TensorFlow has it."),
	[OPTION_BATCH] = {.name = "--batch", .argument = "COUNT", .help = "Items (default 1)."},
	[OPTION_IN] = {.name = "--in-channels",
		       .argument = "COUNT",
		       .help = "Channels of the input, of all groups."},
	[OPTION_OUT] = {.name = "--out-channels",
			.argument = "COUNT",
			.help = "Channels of the output, of all groups."},
	[OPTION_FIELD] = {.name = "--field",
			  .argument = "HxW",
			  .help = "Rows and columns of the input: 56x56, or 56 for both."},
	[OPTION_KERNEL] = {.name = "--kernel",
			   .argument = "HxW",
			   .help = "Taps: 3x3, or 3 for both (default 1)."},
	[OPTION_STRIDE] = {.name = "--stride", .argument = "HxW", .help = "Default 1."},
	[OPTION_DILATION] = {.name = "--dilation", .argument = "HxW", .help = "Default 1."},
	[OPTION_GROUPS] = {.name = "--groups",
			   .argument = "COUNT",
			   .help = "Groups of channels (default 1); as many as channels: "
				   "depthwise."},
	[OPTION_PADDING] = {.name = "--padding",
			    .argument = "KIND",
			    .choices = "same valid",
			    .help = "As Keras says it: same (default) or valid."},
	[OPTION_PASS] = {.name = "--pass",
			 .argument = "PASS",
			 .choices = "forward backward-data backward-weights all",
			 .help = "forward (default): the output; backward-data: the input's "
				 "gradient; backward-weights: the weights' gradient; all: a plan "
				 "for each."},
};
_Static_assert(ARRAY_LEN(conv_options) == OPTIONS, "option table out of step");

static const char *const pass_names[] = {
	[IPU_FORWARD] = "forward",
	[IPU_BACKWARD_DATA] = "backward-data",
	[IPU_BACKWARD_WEIGHTS] = "backward-weights",
};
_Static_assert(ARRAY_LEN(pass_names) == IPU_PASSES, "passes out of step");

struct conv_request {
	struct plan_request plan;
	struct ipu_conv conv; /* channels of all groups until checked */
	const char *padding, *pass;
};

/* "3x5", or "3" for both. */
static enum status read_pair(const struct cli_argument *argument, int64_t out[2], struct err *err)
{
	const char *cross = strchr(argument->value, 'x');
	char first[NUMBER_SIZE];
	enum status status;

	if (!cross || (size_t)(cross - argument->value) >= sizeof(first)) {
		status = cli_number(argument->name, argument->value, 1, SIZE_MOST, &out[0], err);
		out[1] = out[0];
		return status;
	}
	str_copy(first, (size_t)(cross - argument->value) + 1, argument->value);
	status = cli_number(argument->name, first, 1, SIZE_MOST, &out[0], err);
	if (status == ST_OK)
		status = cli_number(argument->name, cross + 1, 1, SIZE_MOST, &out[1], err);
	return status;
}

static enum status read_option(void *asked, const struct cli_argument *argument, struct err *err)
{
	struct conv_request *request = asked;
	struct ipu_conv *conv = &request->conv;
	int row = (int)(argument->option - conv_options);

	switch (row) {
	case OPTION_BATCH:
		return cli_number(argument->name, argument->value, 1, SIZE_MOST, &conv->batch, err);
	case OPTION_IN:
		return cli_number(argument->name, argument->value, 1, SIZE_MOST, &conv->in_channels,
				  err);
	case OPTION_OUT:
		return cli_number(argument->name, argument->value, 1, SIZE_MOST,
				  &conv->out_channels, err);
	case OPTION_FIELD:
		return read_pair(argument, conv->in, err);
	case OPTION_KERNEL:
		return read_pair(argument, conv->kernel, err);
	case OPTION_STRIDE:
		return read_pair(argument, conv->stride, err);
	case OPTION_DILATION:
		return read_pair(argument, conv->dilation, err);
	case OPTION_GROUPS:
		return cli_number(argument->name, argument->value, 1, SIZE_MOST, &conv->groups,
				  err);
	case OPTION_PADDING:
		request->padding = argument->value;
		return ST_OK;
	case OPTION_PASS:
		request->pass = argument->value;
		return ST_OK;
	default:
		return plan_request_read(&request->plan, row, argument, err);
	}
}

/* Rows or columns of the output, by Keras's rules. */
static enum status set_field(struct conv_request *request, int i, struct err *err)
{
	struct ipu_conv *conv = &request->conv;
	int64_t covered = 1;

	if (strcmp(request->padding, "same") == 0) {
		conv->out[i] = (conv->in[i] - 1) / conv->stride[i] + 1;
		return ST_OK;
	}
	if (conv->kernel[i] > 1 && conv->dilation[i] > (conv->in[i] - 1) / (conv->kernel[i] - 1))
		return err_set(err, ST_INVALID,
			       "--padding valid: %lld taps do not fit in a field of %lld",
			       (long long)conv->kernel[i], (long long)conv->in[i]);
	covered += (conv->kernel[i] - 1) * conv->dilation[i];
	conv->out[i] = (conv->in[i] - covered) / conv->stride[i] + 1;
	return ST_OK;
}

static enum status check_request(struct conv_request *request, struct err *err)
{
	struct ipu_conv *conv = &request->conv;
	enum status status = ST_OK;

	if (conv->in_channels == 0 || conv->out_channels == 0)
		return err_set(err, ST_INVALID, "%s is missing",
			       conv->in_channels == 0 ? "--in-channels" : "--out-channels");
	if (conv->in[0] == 0)
		return err_set(err, ST_INVALID, "--field is missing: rows and columns, 56x56");
	if (conv->in_channels % conv->groups != 0 || conv->out_channels % conv->groups != 0)
		return err_set(err, ST_INVALID,
			       "--groups: %lld groups do not divide %lld channels in and %lld out",
			       (long long)conv->groups, (long long)conv->in_channels,
			       (long long)conv->out_channels);
	conv->in_channels /= conv->groups;
	conv->out_channels /= conv->groups;
	for (int i = 0; i < 2 && status == ST_OK; i++)
		status = set_field(request, i, err);
	return status;
}

static void say_shape(const struct ipu_conv *conv, char out[SHAPE_SIZE])
{
	snprintf(out, SHAPE_SIZE,
		 "[%lld, %lld, %lld, %lld] to [%lld, %lld, %lld, %lld], %lld x %lld taps",
		 (long long)conv->batch, (long long)conv->in[0], (long long)conv->in[1],
		 (long long)(conv->in_channels * conv->groups), (long long)conv->batch,
		 (long long)conv->out[0], (long long)conv->out[1],
		 (long long)(conv->out_channels * conv->groups), (long long)conv->kernel[0],
		 (long long)conv->kernel[1]);
}

static enum status run_conv(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			    struct err *err)
{
	struct conv_request request = {
		.padding = "same",
		.pass = pass_names[IPU_FORWARD],
		.conv = {.batch = 1,
			 .groups = 1,
			 .kernel = {1, 1},
			 .stride = {1, 1},
			 .dilation = {1, 1}},
	};
	struct plan_question questions[IPU_PASSES];
	char shape[SHAPE_SIZE];
	enum status status;
	int count = 0;

	(void)trainer;
	plan_request_defaults(&request.plan);
	status = plan_read_options(&plan_convolution.command, argc, argv, read_option, &request,
				   err);
	if (status == ST_OK)
		status = check_request(&request, err);
	if (status != ST_OK)
		return status;
	say_shape(&request.conv, shape);
	for (int p = 0; p < IPU_PASSES; p++) {
		if (strcmp(request.pass, "all") != 0 && strcmp(request.pass, pass_names[p]) != 0)
			continue;
		questions[count] = (struct plan_question){
			.pass = pass_names[p],
			.shape = shape,
			.op = {.kind = IPU_OP_CONV,
			       .name = "conv",
			       .dtype = request.plan.dtype,
			       .conv = request.conv},
		};
		questions[count++].op.conv.pass = (enum ipu_pass)p;
	}
	return plan_answer(&request.plan, questions, count, out, err);
}

const struct plan_subcommand plan_convolution = {
	.name = "conv",
	.command =
		{.name = "ipu-plan conv",
		 .synopsis = "--in-channels COUNT --out-channels COUNT --field HxW [OPTION ...]",
		 .summary = "what a convolution costs",
		 .about = "Plans a convolution on one IPU: how it is cut over tiles, and what each "
			  "phase takes. The shapes are the forward pass's in all passes.",
		 .options = conv_options,
		 .option_count = ARRAY_LEN(conv_options),
		 .examples = "ipu-plan conv --in-channels 64 --out-channels 64 --field 56 --pass "
			     "all\tthe three passes of a "
			     "layer of ResNet50\n"},
	.run = run_conv,
};
