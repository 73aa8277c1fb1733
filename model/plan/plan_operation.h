/*
 * What `ipu-plan matmul` and `ipu-plan conv` share: the options of the machine, and how a plan is
 * printed.
 */
#ifndef PLAN_OPERATION_H
#define PLAN_OPERATION_H

#include "ipu/plan/ipu_plan.h"
#include "model/plan/plan_command.h"

/* Rows that both tables of options begin with. */
enum {
	PLAN_OPTION_TARGET,
	PLAN_OPTION_TILES,
	PLAN_OPTION_DTYPE,
	PLAN_OPTION_PARTIALS,
	PLAN_OPTION_MEMORY,
	PLAN_OPTION_JSON,
	PLAN_OPTIONS
};

#define PLAN_OPERATION_OPTIONS(partials_default)                                                   \
	[PLAN_OPTION_TARGET] = {.name = "--target",                                                \
				.argument = "NAME",                                                \
				.choices = PLAN_TARGETS,                                           \
				.help = PLAN_TARGET_HELP " (default ipu2)."},                      \
	[PLAN_OPTION_TILES] = {.name = "--tiles",                                                  \
			       .argument = "COUNT",                                                \
			       .help = "Tiles of the IPU (default: all of them)."},                \
	[PLAN_OPTION_DTYPE] = {.name = "--dtype",                                                  \
			       .argument = "TYPE",                                                 \
			       .choices = "float32 float16",                                       \
			       .help = "Type of operands and result: float32 (default) or "        \
				       "float16."},                                                \
	[PLAN_OPTION_PARTIALS] =                                                                   \
		{.name = "--partials",                                                             \
		 .argument = "TYPE",                                                               \
		 .choices = "float32 float16",                                                     \
		 .help = "Type that float16 products are summed in. " partials_default},           \
	[PLAN_OPTION_MEMORY] = {.name = "--available-memory-proportion",                           \
				.argument = "FRACTION",                                            \
				.help = "Of a tile's memory, for the operation's own use "         \
					"(default 0.6)."},                                         \
	[PLAN_OPTION_JSON] = {.name = "--json", .help = "Print JSON."}

struct plan_request {
	const char *target;
	int64_t tiles;
	enum ipu_dtype dtype, partials;
	double memory;
	bool json;
};

/* ipu2, all tiles, float32, 0.6. */
void plan_request_defaults(struct plan_request *request);
/* @row: of PLAN_OPTIONS. */
enum status plan_request_read(struct plan_request *request, int row,
			      const struct cli_argument *argument, struct err *err);

/* An operation that was asked for, and how its shapes are said. */
struct plan_question {
	struct ipu_op op;
	const char *pass;   /* "forward"; NULL: it has none */
	const char *shape;  /* "[64, 784] x [784, 128]" */
	const char *layout; /* which dimension is what, or NULL */
};

/* Plan each and print: text, or JSON (one object; several: a list). */
enum status plan_answer(const struct plan_request *request, const struct plan_question *questions,
			int count, FILE *out, struct err *err);

#endif /* PLAN_OPERATION_H */
