/*
 * Convolutions and matrix products: the chosen cut as phases. Pure functions: any thread.
 */
#include "ipu/plan/plan_conv_internal.h"

#include <math.h>

#include "common/mem.h"

/* Phases in order of execution, with vertices by data type. */
static const struct {
	const char *part;
	const char *vertex[2]; /* float32, float16; NULL: an exchange, or depends on the method */
	enum ipu_phase_kind kind;
} conv_parts[] = {
	[CONV_PRE_EXCHANGE] = {"PreArrange/ExchangePre", {NULL, NULL}, IPU_EXCHANGE},
	[CONV_PRE_COPY] = {"PreArrange/OnTileCopy-0",
			   {"poputil::Transpose2d<float>", "poputil::Transpose2d<half>"},
			   IPU_COMPUTE},
	[CONV_SLICE] = {"DynamicSlice",
			{"popops::DynamicSlice1d<float>", "popops::DynamicSlice1d<half>"},
			IPU_COMPUTE},
	[CONV_EXCHANGE] = {"Convolve/ExchangePre", {NULL, NULL}, IPU_EXCHANGE},
	[CONV_COMPUTE] = {"Convolve", {NULL, NULL}, IPU_COMPUTE},
	[CONV_REDUCE_EXCHANGE_0] = {"Reduce0/ExchangePre", {NULL, NULL}, IPU_EXCHANGE},
	[CONV_REDUCE_0] = {"Reduce0",
			   {"poplin::ReduceAdd<float,float>", "poplin::ReduceAdd<half,half>"},
			   IPU_COMPUTE},
	[CONV_REDUCE_EXCHANGE_1] = {"Reduce1/ExchangePre", {NULL, NULL}, IPU_EXCHANGE},
	[CONV_REDUCE_1] = {"Reduce1",
			   {"poplin::ReduceAdd<float,float>", "poplin::ReduceAdd<half,half>"},
			   IPU_COMPUTE},
	[CONV_REDUCE_EXCHANGE_2] = {"Reduce2/ExchangePre", {NULL, NULL}, IPU_EXCHANGE},
	[CONV_REDUCE_2] = {"Reduce2",
			   {"poplin::ReduceAdd<float,float>", "poplin::ReduceAdd<half,half>"},
			   IPU_COMPUTE},
	[CONV_ADD] = {"AddInPlace",
		      {"popops::BinaryOp1DInPlaceSupervisor<ADD,float>",
		       "popops::BinaryOp1DInPlaceSupervisor<ADD,half>"},
		      IPU_COMPUTE},
	[CONV_UPDATE] = {"DynamicUpdate",
			 {"popops::DynamicUpdateSlice1d<float>",
			  "popops::DynamicUpdateSlice1d<half>"},
			 IPU_COMPUTE},
	[CONV_CAST] = {"Cast",
		       {"popops::Cast<float,half>", "popops::Cast<float,half>"},
		       IPU_COMPUTE},
	[CONV_FILL] = {"Fill", {"popops::Fill<float>", "popops::Fill<half>"}, IPU_COMPUTE},
	[CONV_POST_EXCHANGE] = {"PostArrange/ExchangePre", {NULL, NULL}, IPU_EXCHANGE},
	[CONV_POST_COPY] = {"PostArrange/OnTileCopy-0",
			    {"poputil::Transpose2d<float>", "poputil::Transpose2d<half>"},
			    IPU_COMPUTE},
};
_Static_assert(ARRAY_LEN(conv_parts) == CONV_PARTS, "parts out of step");

/* By types (float32; float16 with float32 partials; float16 with float16 partials), then units. */
static const char *const amp_1x1_names[3][3] = {
	{"poplin::ConvPartial1x1Out<float,float,true,false,4,8>",
	 "poplin::ConvPartial1x1Out<float,float,true,false,8,8>",
	 "poplin::ConvPartial1x1Out<float,float,true,false,16,8>"},
	{"poplin::ConvPartial1x1Out<half,float,true,false,4,16>",
	 "poplin::ConvPartial1x1Out<half,float,true,false,8,16>",
	 "poplin::ConvPartial1x1Out<half,float,true,false,16,16>"},
	{"poplin::ConvPartial1x1Out<half,half,true,false,4,16>",
	 "poplin::ConvPartial1x1Out<half,half,true,false,8,16>",
	 "poplin::ConvPartial1x1Out<half,half,true,false,16,16>"},
};
static const char *const amp_nx1_names[3][3] = {
	{"poplin::ConvPartialnx1<float,float,true,false,4,8>",
	 "poplin::ConvPartialnx1<float,float,true,false,8,8>",
	 "poplin::ConvPartialnx1<float,float,true,false,16,8>"},
	{"poplin::ConvPartialnx1<half,float,true,false,4,16>",
	 "poplin::ConvPartialnx1<half,float,true,false,8,16>",
	 "poplin::ConvPartialnx1<half,float,true,false,16,16>"},
	{"poplin::ConvPartialnx1<half,half,true,false,4,16>",
	 "poplin::ConvPartialnx1<half,half,true,false,8,16>",
	 "poplin::ConvPartialnx1<half,half,true,false,16,16>"},
};
static const char *const mac_names[] = {"poplin::ConvPartialHorizontalMac<float,float,true>",
					"poplin::ConvPartialHorizontalMac<half,float,true>",
					"poplin::ConvPartialHorizontalMac<half,half,true>"};
static const char *const vertical_names[] = {"poplin::ConvPartialVerticalMac<float,float,true>",
					     "poplin::ConvPartialVerticalMac<half,float,true>",
					     "poplin::ConvPartialVerticalMac<half,half,true>"};
static const char *const outer_names[] = {
	"poplin::OuterProduct<float>", "poplin::OuterProduct<half>", "poplin::OuterProduct<half>"};

static const char *const slic_names[] = {"poplin::ConvPartial1xNSLIC<float,float>",
					 "poplin::ConvPartial1xNSLIC<half,float>",
					 "poplin::ConvPartial1xNSLIC<half,half>"};

static const char *vertex_name(const struct conv_form *form, const struct conv_way *way)
{
	int types = form->dtype != IPU_FLOAT16 ? 0 : form->partials != IPU_FLOAT16 ? 1 : 2;
	int units = way->amp.units >= 16 ? 2 : way->amp.units >= 8 ? 1 : 0;

	switch (way->method) {
	case IPU_METHOD_AMP_1X1:
		return amp_1x1_names[types][units];
	case IPU_METHOD_AMP_NX1:
		return amp_nx1_names[types][units];
	case IPU_METHOD_HORIZONTAL_MAC:
		return mac_names[types];
	case IPU_METHOD_VERTICAL_MAC:
		return vertical_names[types];
	case IPU_METHOD_SLIC:
		return slic_names[types];
	default:
		return outer_names[types];
	}
}

/* Code bytes on a tile. Vertices: estimated at 4 bytes per instruction. Exchanges: 16 bytes per
 * source tile, 8 per 64 words sent. */
static const int64_t vertex_code[] = {
	[IPU_METHOD_NONE] = 0,           [IPU_METHOD_AMP_1X1] = 1200,
	[IPU_METHOD_AMP_NX1] = 2000,     [IPU_METHOD_HORIZONTAL_MAC] = 800,
	[IPU_METHOD_VERTICAL_MAC] = 800, [IPU_METHOD_OUTER_PRODUCT] = 400,
	[IPU_METHOD_SLIC] = 1200,
};
_Static_assert(ARRAY_LEN(vertex_code) == IPU_METHODS, "code table out of step");
#define CODE_OTHER_VERTEX 400
#define CODE_SOURCE       16
#define CODE_SEND         8
#define SEND_BYTES        256

static void fill_phase(const struct conv_choice *choice, enum conv_part part, struct ipu_plan *plan)
{
	const struct conv_cost *cost = &choice->cost;
	const struct conv_form *form = &choice->form;
	bool computes = conv_parts[part].kind == IPU_COMPUTE;
	enum ipu_dtype dtype =
		part >= CONV_REDUCE_EXCHANGE_0 && part <= CONV_ADD ? form->partials : form->dtype;
	const char *vertex = part == CONV_COMPUTE ? vertex_name(form, &choice->way)
						  : conv_parts[part].vertex[dtype == IPU_FLOAT16];
	int64_t tiles = ipu__whole(cost->tiles), cycles = ipu__whole(cost->part[part]);
	const struct ipu_phase phase = {
		.kind = conv_parts[part].kind,
		.part = conv_parts[part].part,
		.vertex = vertex,
		.cycles = cycles,
		.mean_cycles = (double)cycles * cost->balance,
		.tiles = tiles,
		.vertices = computes ? tiles : 0,
		.bytes = ipu__whole(floor(cost->bytes[part] * cost->tiles * cost->balance)),
		.repeats = ipu__conv_part_loops(part) ? plan->serial_splits : 1,
	};

	if (cost->part[part] <= 0)
		return;
	ipu__plan_add(plan, &phase);
	plan->code_bytes += computes ? (part == CONV_COMPUTE ? vertex_code[choice->way.method]
							     : CODE_OTHER_VERTEX)
				     : ipu__whole(cost->bytes[part] / SEND_BYTES) * CODE_SEND;
}

static double memory_limit(const struct ipu_target *target, const struct ipu_plan_options *options)
{
	return (double)target->bytes_per_tile * options->available_memory_proportion;
}

static void fill_plan(const struct conv_choice *choice, struct ipu_plan *plan)
{
	plan->method = choice->way.method;
	plan->split_batch = choice->field.split[0];
	plan->split_field = (int64_t)choice->field.split[1] * choice->field.split[2];
	if (choice->form.flat) {
		plan->split_batch = 1;
		plan->split_field = choice->field.split[0];
	}
	plan->split_in = choice->cut.in;
	plan->split_out = choice->cut.out * choice->cut.groups;
	plan->split_kernel = choice->cut.kernel;
	plan->serial_splits = choice->cut.serial_in * choice->cut.serial_out;
	plan->temporary_bytes = ipu__whole(choice->cost.temporary);
	plan->code_bytes = ipu__whole(choice->cost.sources) * CODE_SOURCE;
	for (int p = 0; p < CONV_PARTS; p++)
		fill_phase(choice, (enum conv_part)p, plan);
}

static void plan_product(const struct ipu_target *target, const struct ipu_op *op,
			 const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	struct conv_form forms[CONV_FORMS];
	int count = ipu__conv_forms(op, options, forms);
	struct conv_choice choice;

	ipu__conv_search(target, forms, count, memory_limit(target, options), &choice);
	fill_plan(&choice, plan);
}

void ipu__plan_layer(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, struct ipu_op ops[IPU_PASSES],
		     struct ipu_plan plans[IPU_PASSES])
{
	struct conv_choice choices[IPU_PASSES];

	const bool joint =
		ipu__conv_joint(target, op, options, memory_limit(target, options), ops, choices);

	for (int p = 0; p < IPU_PASSES; p++) {
		plans[p].joint = joint;
		fill_plan(&choices[p], &plans[p]);
	}
}

void ipu__plan_conv(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	plan_product(target, op, options, plan);
}

void ipu__plan_matmul(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	plan_product(target, op, options, plan);
}
