/*
 * What the verbs about single operations share: the machine's options, the geometry of a
 * convolution, memory that is looked at, and parts of the answer. One thread.
 */
#ifndef PLAN_OPERATION_H
#define PLAN_OPERATION_H

#include "common/jsonw.h"
#include "ipu/plan/ipu_plan.h"
#include "model/plan/plan_command.h"

#define SIZE_MOST (INT64_C(1) << 40)

/* The machine that is asked, and how it answers: options of both. */
struct plan_request {
	const char *target;
	int64_t tiles;
	enum ipu_dtype dtype, partials;
	bool given_partials;
	double memory;
	bool json;
};

/* An operation that was asked for, and how its shapes are said. */
struct plan_question {
	struct ipu_op op;
	const char *pass;        /* "forward"; NULL: it has none */
	const char *shape;       /* "[64, 784] x [784, 128]" */
	const char *layout;      /* which dimension is what, or NULL */
	double operands, result; /* elements */
};

/* Rows that both tables of options begin with; a request of either begins with the machine's. */
enum {
	OPTION_TARGET,
	OPTION_TILES,
	OPTION_DTYPE,
	OPTION_PARTIALS,
	OPTION_MEMORY,
	OPTION_JSON,
	OPTION_OWN
};

#define MACHINE_OPTIONS                                                                            \
	[OPTION_TARGET] = {.name = "--target",                                                     \
			   .argument = "NAME",                                                     \
			   .choices = PLAN_TARGETS,                                                \
			   .help = PLAN_TARGET_HELP " (default ipu2).",                            \
			   .field = CLI_FIELD(TEXT, struct plan_request, target)},                 \
	[OPTION_TILES] = {.name = "--tiles",                                                       \
			  .argument = "COUNT",                                                     \
			  .help = "Tiles of the IPU (default: all of them).",                      \
			  .field = CLI_RANGE(NUMBER, struct plan_request, tiles, 1, INT32_MAX)},   \
	[OPTION_DTYPE] = {.name = "--dtype",                                                       \
			  .argument = "TYPE",                                                      \
			  .choices = "float32 float16",                                            \
			  .help = "Type of operands and result: float32 (default) or float16.",    \
			  .field = CLI_FIELD(CHOICE, struct plan_request, dtype)},                 \
	[OPTION_PARTIALS] = {.name = "--partials",                                                 \
			     .argument = "TYPE",                                                   \
			     .choices = "float32 float16",                                         \
			     .help = "Type that float16 products are summed in. Default: of "      \
				     "matmul that of --dtype, as the published float16 products "  \
				     "have it; of conv float32, as TensorFlow has it.",            \
			     .field = CLI_FIELD(CHOICE, struct plan_request, partials)},           \
	[OPTION_MEMORY] = {.name = "--available-memory-proportion",                                \
			   .argument = "FRACTION",                                                 \
			   .help = "Of a tile's memory, for the operation's own use (default "     \
				   "0.6)."},                                                       \
	[OPTION_JSON] = {.name = "--json",                                                         \
			 .help = "Print JSON.",                                                    \
			 .field = CLI_FIELD(SWITCH, struct plan_request, json)}

enum {
	OPTION_BATCH = OPTION_OWN,
	OPTION_IN,
	OPTION_OUT,
	OPTION_FIELD,
	OPTION_KERNEL,
	OPTION_STRIDE,
	OPTION_DILATION,
	OPTION_GROUPS,
	OPTION_PADDING,
	OPTION_PASS,
	CONV_OPTIONS
};

struct conv_request {
	struct plan_request machine; /* first: its fields are those of the table */
	struct ipu_conv conv;        /* channels of all groups until checked */
	int valid;                   /* --padding: not "same" */
	int pass;                    /* enum ipu_pass; IPU_PASSES: all */
};

#define CONV_COUNT(member)                                                                         \
	.field = CLI_RANGE(NUMBER, struct conv_request, conv.member, 1, SIZE_MOST)

/* Rows of conv, with which those of op begin too. */
#define GEOMETRY_OPTIONS                                                                           \
	MACHINE_OPTIONS,                                                                           \
		[OPTION_BATCH] = {.name = "--batch",                                               \
				  .argument = "COUNT",                                             \
				  .help = "Items (default 1).",                                    \
				  CONV_COUNT(batch)},                                              \
		[OPTION_IN] = {.name = "--in-channels",                                            \
			       .argument = "COUNT",                                                \
			       .help = "Channels of the input, of all groups.",                    \
			       CONV_COUNT(in_channels)},                                           \
		[OPTION_OUT] = {.name = "--out-channels",                                          \
				.argument = "COUNT",                                               \
				.help = "Channels of the output, of all groups.",                  \
				CONV_COUNT(out_channels)},                                         \
		[OPTION_FIELD] =                                                                   \
			{.name = "--field",                                                        \
			 .argument = "HxW",                                                        \
			 .help = "Rows and columns of the input: 56x56, or 56 for both."},         \
		[OPTION_KERNEL] = {.name = "--kernel",                                             \
				   .argument = "HxW",                                              \
				   .help = "Taps: 3x3, or 3 for both (default 1)."},               \
		[OPTION_STRIDE] = {.name = "--stride", .argument = "HxW", .help = "Default 1."},   \
		[OPTION_DILATION] = {.name = "--dilation",                                         \
				     .argument = "HxW",                                            \
				     .help = "Default 1."},                                        \
		[OPTION_GROUPS] = {.name = "--groups",                                             \
				   .argument = "COUNT",                                            \
				   .help = "Groups of channels (default 1); as many as channels: " \
					   "depthwise.",                                           \
				   CONV_COUNT(groups)},                                            \
		[OPTION_PADDING] = {.name = "--padding",                                           \
				    .argument = "KIND",                                            \
				    .choices = "same valid",                                       \
				    .help = "As Keras says it: same (default) or valid.",          \
				    .field = CLI_FIELD(CHOICE, struct conv_request, valid)},       \
		[OPTION_PASS] = {                                                                  \
			.name = "--pass",                                                          \
			.argument = "PASS",                                                        \
			.choices = "forward backward-data backward-weights all",                   \
			.help = "forward (default): the output; backward-data: the input's "       \
				"gradient; backward-weights: the weights' gradient; all: a plan "  \
				"for each.",                                                       \
			.field = CLI_FIELD(CHOICE, struct conv_request, pass)}

extern const struct plan_request plan_machine_defaults;
extern const char *const plan_pass_names[IPU_PASSES];

/* The value of a row of GEOMETRY_OPTIONS. */
enum status plan_read_geometry(struct conv_request *request, int row,
			       const struct cli_argument *argument, struct err *err);
/* Rows (@i 0) or columns (1) of the output, by Keras's rules. */
enum status plan_set_field(struct conv_request *request, int i, struct err *err);

double plan_microseconds(const struct ipu_target *target, const struct ipu_plan *plan);
double plan_teraflops(const struct ipu_target *target, const struct ipu_plan *plan);
/* Of operands and result, on all tiles. */
double plan_stored_bytes(const struct plan_question *question);
/* ST_FAILED where operands, result and temporaries are more than a tile has. */
enum status plan_check_memory(const struct ipu_target *target, const struct plan_question *question,
			      const struct ipu_plan *plan, struct err *err);
/* Keys of the object that is open: what takes time, and what is moved and stored. */
void plan_json_cycles(struct jsonw *w, const struct ipu_target *target,
		      const struct ipu_plan *plan);
void plan_json_bytes(struct jsonw *w, const struct ipu_target *target,
		     const struct plan_question *question, const struct ipu_plan *plan);
void plan_json_phases(struct jsonw *w, const struct ipu_plan *plan);

#endif /* PLAN_OPERATION_H */
