/*
 * What the subcommands about single operations share: the machine's options, the geometry of a
 * convolution, the memory check, and parts of the output. One thread.
 */
#ifndef PLAN_OPERATION_H
#define PLAN_OPERATION_H

#include "common/jsonw.h"
#include "ipu/plan/ipu_plan.h"
#include "model/plan/plan_command.h"

#define SIZE_MOST (INT64_C(1) << 40)

/* Options of the machine and of the output. */
struct plan_request {
	const char *target;
	int64_t tiles;
	enum ipu_dtype dtype, partials;
	bool given_partials;
	double memory;
	bool json;
};

/* A requested operation, and the texts that describe its shapes. */
struct plan_question {
	struct ipu_op op;
	const char *pass;        /* "forward"; NULL: none */
	const char *shape;       /* "[64, 784] x [784, 128]" */
	const char *layout;      /* the meaning of the dimensions, or NULL */
	double operands, result; /* elements */
};

/* The first rows of both tables of options; each request struct begins with a plan_request. */
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
	struct plan_request machine; /* must be first: the table's rows refer to its members */
	struct ipu_conv conv;        /* until checked, channels are those of all groups */
	int valid;                   /* --padding valid */
	int pass;                    /* enum ipu_pass; IPU_PASSES: all */
};

#define CONV_COUNT(member)                                                                         \
	.field = CLI_RANGE(NUMBER, struct conv_request, conv.member, 1, SIZE_MOST)

/* Rows of conv, which are also the first rows of op. */
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

/* Find the target that @request names, and create its planner; NULL on failure. */
enum status plan_machine(struct ipu_planner **out, struct ipu_target *target,
			 const struct plan_request *request, struct err *err);

/* Read the value of a row of GEOMETRY_OPTIONS. */
enum status plan_read_geometry(struct conv_request *request, int row,
			       const struct cli_argument *argument, struct err *err);
/* Set the output's rows (@i 0) or columns (1), by Keras's rules. */
enum status plan_set_field(struct conv_request *request, int i, struct err *err);

double plan_microseconds(const struct ipu_target *target, const struct ipu_plan *plan);
double plan_teraflops(const struct ipu_target *target, const struct ipu_plan *plan);
/* Bytes of operands and result, on all tiles together. */
double plan_stored_bytes(const struct plan_question *question);
/* ST_FAILED if operands, result and temporaries exceed a tile's memory. */
enum status plan_check_memory(const struct ipu_target *target, const struct plan_question *question,
			      const struct ipu_plan *plan, struct err *err);
/* Write keys of the open object: times; bytes moved and stored; phases. */
void plan_json_cycles(struct jsonw *w, const struct ipu_target *target,
		      const struct ipu_plan *plan);
void plan_json_bytes(struct jsonw *w, const struct ipu_target *target,
		     const struct plan_question *question, const struct ipu_plan *plan);
void plan_json_phases(struct jsonw *w, const struct ipu_plan *plan);

#endif /* PLAN_OPERATION_H */
