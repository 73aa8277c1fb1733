/*
 * Convolutions and matrix products: the forms of a pass, the joint plan of a trained layer's three
 * products, and the chosen cut as phases. Pure functions: any thread.
 *
 * A form expresses the pass as a convolution, with every choice of taps turned into input channels.
 *
 * In a joint plan the weights stay on the same tiles in all passes, as poplibs plans fully
 * connected layers (ConvModel.cpp: addBwdEstimates, addWuEstimates). The layer's batch is split
 * neither over tiles nor serially; its units and inputs are split the same way in all passes, and
 * the channel groups of one pass are those of the next.
 */
#include <assert.h>
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_conv_internal.h"

int64_t ipu__times(int64_t a, int64_t b)
{
	assert(a >= 1 && b >= 1);
	return a > CONV_MOST / b ? CONV_MOST : a * b;
}

static double volume(const struct conv_form *form)
{
	return (double)form->position[0] * (double)form->position[1] * (double)form->position[2];
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void forward(const struct ipu_conv *conv, struct conv_form *form)
{
	*form = (struct conv_form){.in = conv->in_channels,
				   .out = conv->out_channels,
				   .position = {conv->batch, conv->out[0], conv->out[1]}};
	for (int i = 0; i < 2; i++) {
		form->kernel[i] = conv->kernel[i];
		form->stride[i] = conv->stride[i];
		form->dilation[i] = conv->dilation[i];
		form->input_dilation[i] = 1;
		form->in_field[i] = conv->in[i];
	}
}

/* A convolution of the output's gradient; the kernel is transposed and rotated. With a stride the
 * gradient has zeros between its positions. With one tap only the strided positions are computed;
 * the rest is zeros. */
static void backward_data(const struct ipu_conv *conv, struct conv_form *form)
{
	bool one_tap = conv->kernel[0] == 1 && conv->kernel[1] == 1;

	*form = (struct conv_form){.in = conv->out_channels,
				   .out = conv->in_channels,
				   .position = {conv->batch, 1, 1},
				   .move_weights = true};
	for (int i = 0; i < 2; i++) {
		form->position[1 + i] = one_tap ? conv->out[i] : conv->in[i];
		form->kernel[i] = conv->kernel[i];
		form->stride[i] = 1;
		form->dilation[i] = conv->dilation[i];
		form->input_dilation[i] = one_tap ? 1 : conv->stride[i];
		form->in_field[i] = conv->out[i];
	}
	/* If the gradient has one position, as with a kernel as large as its field, each input
	 * position has its own tap: positions are channels, and the weights a matrix. */
	for (int i = 0; i < 2; i++) {
		if (conv->out[i] > 1 || conv->kernel[i] == 1)
			continue;
		form->out = ipu__times(form->out, form->position[1 + i]);
		form->position[1 + i] = 1;
		form->kernel[i] = form->dilation[i] = form->input_dilation[i] = 1;
		form->move_out = true;
	}
	if (one_tap && (conv->stride[0] > 1 || conv->stride[1] > 1))
		form->fill_elements = (double)conv->batch * (double)conv->in[0] *
				      (double)conv->in[1] * (double)conv->in_channels *
				      (double)conv->groups;
}

/* Positions are the kernel's taps, their batch the input's channels; the input channels, which are
 * summed over, are the batch, and the taps the output's field. */
static void backward_weights(const struct ipu_conv *conv, struct conv_form *form)
{
	*form = (struct conv_form){
		.in = conv->batch,
		.out = conv->out_channels,
		.position = {conv->in_channels, conv->kernel[0], conv->kernel[1]},
		.move_in = true,
		.move_weights = true,
		.move_out = true};
	for (int i = 0; i < 2; i++) {
		form->kernel[i] = conv->out[i];
		form->stride[i] = conv->dilation[i];
		form->dilation[i] = conv->stride[i];
		form->input_dilation[i] = 1;
		form->in_field[i] = conv->in[i];
	}
}

/* The same with its operands swapped: the batch is the gradient's channels, the taps are the
 * input's field. The result lies as the weights do. */
static void backward_weights_swapped(const struct ipu_conv *conv, struct conv_form *form)
{
	*form = (struct conv_form){
		.in = conv->batch,
		.out = conv->in_channels,
		.position = {conv->out_channels, conv->kernel[0], conv->kernel[1]},
		.move_in = true,
		.move_weights = true};
	for (int i = 0; i < 2; i++) {
		form->kernel[i] = conv->in[i];
		form->stride[i] = conv->dilation[i];
		form->dilation[i] = 1;
		form->input_dilation[i] = conv->stride[i];
		form->in_field[i] = conv->out[i];
	}
}

static void (*const passes[])(const struct ipu_conv *conv, struct conv_form *form) = {
	[IPU_FORWARD] = forward,
	[IPU_BACKWARD_DATA] = backward_data,
	[IPU_BACKWARD_WEIGHTS] = backward_weights,
};
_Static_assert(ARRAY_LEN(passes) == IPU_PASSES, "passes out of step");

/* ---- forms of a pass ------------------------------------------------------------------------- */

/* Turn the taps of dimension @i into input channels. If there is one, that only leaves out the
 * inputs that its stride skips. */
static void expand(struct conv_form *form, int i)
{
	form->move_in = true;
	form->move_weights = form->move_weights || form->kernel[i] > 1;
	form->in = ipu__times(form->in, form->kernel[i]);
	form->in_field[i] = form->position[1 + i];
	form->kernel[i] = form->stride[i] = form->dilation[i] = form->input_dilation[i] = 1;
}

/* Return whether poplibs tries to expand dimension @i: that must change something, and it does not
 * where there are more taps than inputs (ConvPlan.cpp, getExpandDimsCandidates). */
static bool is_expanded(const struct conv_form *form, int i)
{
	return (form->kernel[i] > 1 || form->stride[i] > 1) && form->kernel[i] <= form->in_field[i];
}

/* Return whether each position of dimension @i reads its own input. */
static bool is_one_to_one(const struct conv_form *form, int i)
{
	return form->kernel[i] == 1 && form->stride[i] == 1 && form->input_dilation[i] == 1 &&
	       form->in_field[i] == form->position[1 + i];
}

/* Turn the batch and all dimensions whose positions read their own inputs into one dimension, the
 * last of these (ConvModel.cpp, calculateFlattenedParams); if that is all there is, into a row. */
static void flatten(struct conv_form *form)
{
	const bool rows = is_one_to_one(form, 0), columns = is_one_to_one(form, 1);
	const int last = columns ? 1 : 0;
	int64_t *batch = &form->position[0];

	if (rows && columns) {
		*batch = ipu__times(*batch, ipu__times(form->position[1], form->position[2]));
		form->position[1] = form->position[2] = 1;
		form->in_field[0] = form->in_field[1] = 1;
		form->flat = true;
	} else if (rows || columns) {
		form->position[1 + last] = ipu__times(form->position[1 + last], *batch);
		form->in_field[last] = form->position[1 + last];
		*batch = 1;
	}
}

/* Flatten @form, count the elements of its operands and its result, and append it. */
static void add(struct conv_form *forms, int *count, struct conv_form form)
{
	const double groups = (double)form.groups;
	double positions; /* of the input */

	assert(*count < CONV_FORMS);
	flatten(&form);
	positions = form.flat ? volume(&form)
			      : (double)form.position[0] * (double)form.in_field[0] *
					(double)form.in_field[1];
	form.inputs = positions * (double)form.in * groups;
	form.weights = (double)form.in * (double)form.out *
		       ((double)form.kernel[0] * (double)form.kernel[1]) * groups;
	form.outputs = volume(&form) * (double)form.out * groups;
	forms[(*count)++] = form;
}

/* Add @form and, for the gradient of weights without taps left, the same with its operands
 * exchanged: what was expanded are then output channels (poplibs' flattening of output channels),
 * and the result lies as the weights only where nothing was and it did not before. */
static int add_forms(const struct ipu_conv *conv, struct conv_form form, struct conv_form *forms,
		     int count)
{
	struct conv_form exchanged;

	add(forms, &count, form);
	if (conv->pass != IPU_BACKWARD_WEIGHTS || !forms[count - 1].flat)
		return count;
	exchanged = forms[count - 1];
	exchanged.out = forms[count - 1].position[0];
	exchanged.position[0] = forms[count - 1].out;
	exchanged.move_out = !form.move_out || conv->kernel[0] > 1 || conv->kernel[1] > 1;
	add(forms, &count, exchanged);
	return count;
}

/* Combine groups of few channels into groups as large as the AMP reads at once. Weights between
 * channels of different groups are zeros, and all operands change layout. */
static bool combine_groups(struct ipu_conv *conv, enum ipu_dtype dtype)
{
	const int64_t in_group = dtype == IPU_FLOAT16 ? 16 : 8;
	int64_t together = in_group / conv->in_channels;

	if (together > conv->groups)
		together = conv->groups;
	if (together <= 1)
		return false;
	conv->groups = ipu__ceil_div(conv->groups, together);
	conv->in_channels *= together;
	conv->out_channels = ipu__times(conv->out_channels, together);
	return true;
}

/* Add the forms of one way to express a pass: with neither, either and both dimensions expanded. */
static int forms_of(const struct ipu_conv *conv,
		    void (*express)(const struct ipu_conv *conv, struct conv_form *form),
		    enum ipu_dtype dtype, enum ipu_dtype partials, struct conv_form *forms,
		    int count)
{
	struct conv_form base;

	express(conv, &base);
	base.groups = conv->groups;
	base.dtype = dtype;
	base.partials = partials;
	base.activations = conv->pass != IPU_BACKWARD_WEIGHTS;
	base.depthwise = conv->groups > 1 && conv->in_channels == 1 && conv->out_channels == 1;
	for (int which = 0; which < 4; which++) {
		struct conv_form form = base;
		bool skip = false;

		for (int i = 0; i < 2; i++) {
			if (!(which >> i & 1))
				continue;
			skip = skip || !is_expanded(&base, i);
			expand(&form, i);
		}
		if (!skip)
			count = add_forms(conv, form, forms, count);
	}
	return count;
}

static int pass_forms(const struct ipu_conv *conv, enum ipu_dtype dtype, enum ipu_dtype partials,
		      struct conv_form *forms, int count)
{
	count = forms_of(conv, passes[conv->pass], dtype, partials, forms, count);
	if (conv->pass != IPU_BACKWARD_WEIGHTS)
		return count;
	return forms_of(conv, backward_weights_swapped, dtype, partials, forms, count);
}

/* Store the forms of @op, a convolution or a matmul; return their number. */
static int ipu_conv_forms(const struct ipu_op *op, const struct ipu_plan_options *options,
			  struct conv_form forms[CONV_FORMS])
{
	const enum ipu_dtype dtype = op->dtype == IPU_FLOAT16 ? IPU_FLOAT16 : IPU_FLOAT32;
	const enum ipu_dtype partials = dtype == IPU_FLOAT16 ? options->partials : IPU_FLOAT32;
	struct conv_form base;
	struct ipu_conv conv;
	int count = 0, alone;

	if (op->kind == IPU_OP_MATMUL) {
		base = (struct conv_form){
			.groups = 1,
			.in = op->matmul.k,
			.out = op->matmul.m,
			.position = {op->matmul.n, 1, 1},
			.kernel = {1, 1},
			.stride = {1, 1},
			.dilation = {1, 1},
			.input_dilation = {1, 1},
			.in_field = {1, 1},
		};
		base.dtype = dtype;
		base.partials = partials;
		base.move_in = op->pass != IPU_FORWARD;
		base.move_out = op->pass == IPU_BACKWARD_WEIGHTS;
		add(forms, &count, base);
		base.out = op->matmul.n;
		base.position[0] = op->matmul.m;
		base.move_in = base.move_weights = base.move_out = true;
		add(forms, &count, base);
		return count;
	}
	conv = op->conv;
	alone = count = pass_forms(&conv, dtype, partials, forms, 0);
	if (combine_groups(&conv, dtype))
		count = pass_forms(&conv, dtype, partials, forms, count);
	for (int f = alone; f < count; f++)
		forms[f].move_in = forms[f].move_weights = forms[f].move_out = true;
	return count;
}

/* ---- joint plans of a layer ------------------------------------------------------------------ */

/* A layer's sizes. */
struct layer {
	int64_t batch, inputs, units;
	enum ipu_dtype dtype, partials;
};

static struct layer layer_of(const struct ipu_op *op, const struct ipu_plan_options *options)
{
	const struct ipu_matmul *product = &op->matmul;
	const enum ipu_dtype dtype = op->dtype == IPU_FLOAT16 ? IPU_FLOAT16 : IPU_FLOAT32;
	const enum ipu_dtype partials = dtype == IPU_FLOAT16 ? options->partials : IPU_FLOAT32;

	switch (op->pass) {
	case IPU_FORWARD:
		return (struct layer){product->m, product->k, product->n, dtype, partials};
	case IPU_BACKWARD_DATA:
		return (struct layer){product->m, product->n, product->k, dtype, partials};
	default:
		return (struct layer){product->k, product->m, product->n, dtype, partials};
	}
}

/* The product of @pass in @op's layer. */
static struct ipu_op pass_of(const struct ipu_op *op, const struct layer *layer, enum ipu_pass pass)
{
	const struct ipu_matmul products[] = {
		[IPU_FORWARD] = {layer->batch, layer->inputs, layer->units},
		[IPU_BACKWARD_DATA] = {layer->batch, layer->units, layer->inputs},
		[IPU_BACKWARD_WEIGHTS] = {layer->inputs, layer->batch, layer->units},
	};
	struct ipu_op out = *op;

	out.pass = pass;
	out.matmul = products[pass];
	return out;
}

/* The method of each pass. */
struct ways {
	struct conv_way way[IPU_PASSES];
};

struct joint {
	const struct ipu_target *target;
	struct conv_form forms[IPU_PASSES];
	double limit, best;
	struct conv_choice *choices; /* by pass; the best so far */
};

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
	while (b > 0) {
		const int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The backward pass reads weights that their tile transposes, in blocks as large as groups and
 * channels allow; where these are rows of one, it reads them as they are (Convolution.cpp,
 * fullyConnectedWeightTranspose). */
static void transpose_weights(struct joint *joint, const struct ways *ways)
{
	const struct conv_form *form = &joint->forms[IPU_FORWARD];
	const int64_t group = (int64_t)ways->way[IPU_FORWARD].in_group;
	const int64_t rows = greatest_common_divisor(group, form->position[0]);
	const int64_t columns = greatest_common_divisor(group, form->in);
	int64_t *transposed = joint->forms[IPU_BACKWARD_DATA].transposed;

	transposed[0] = rows > 1 && columns > 1 ? rows : 0;
	transposed[1] = columns;
}

static void try_cut(struct joint *joint, const struct ways *ways, int64_t units, int64_t inputs)
{
	const double grain = ways->way[IPU_FORWARD].in_group;
	const double unit_grains = ceil((double)joint->forms[IPU_FORWARD].position[0] / grain);
	const double input_grains = ceil((double)joint->forms[IPU_FORWARD].in / grain);
	const double share[] = {ceil(unit_grains / (double)units) * grain,
				ceil(input_grains / (double)inputs) * grain};
	const int64_t fields[] = {units, inputs, units};
	const double positions[] = {share[0], share[1], share[0]};
	const struct conv_cut cuts[] = {
		[IPU_FORWARD] = {1, inputs, 1, 1, 1, 1, false},
		[IPU_BACKWARD_DATA] = {1, units, 1, 1, 1, 1, false},
		[IPU_BACKWARD_WEIGHTS] = {1, 1, inputs, 1, 1, 1, false},
	};
	struct conv_choice made[IPU_PASSES];
	double cycles = 0;

	for (int p = 0; p < IPU_PASSES; p++) {
		struct conv_choice *choice = &made[p];

		choice->form = joint->forms[p];
		choice->way = ways->way[p];
		choice->cut = cuts[p];
		choice->field = (struct conv_field){
			.split = {(int32_t)fields[p], 1, 1},
			.parts = (double)fields[p],
			.positions = positions[p],
			.inputs = positions[p],
			.worker = positions[p],
			.balance = fmin(1, (double)joint->forms[p].position[0] /
						   ((double)fields[p] * positions[p])),
		};
		ipu__conv_cost(joint->target, &choice->form, &choice->way, &choice->cut,
			       &choice->field, &choice->cost);
		cycles += choice->cost.estimate;
		if (choice->cost.memory > joint->limit || cycles >= joint->best)
			return;
	}
	joint->best = cycles;
	for (int p = 0; p < IPU_PASSES; p++)
		joint->choices[p] = made[p];
}

static void try_cuts(struct joint *joint, const struct ways *ways)
{
	const int64_t grain = (int64_t)ways->way[IPU_FORWARD].in_group;
	const int64_t units = ipu__ceil_div(joint->forms[IPU_FORWARD].position[0], grain);
	const int64_t inputs = ipu__ceil_div(joint->forms[IPU_FORWARD].in, grain);
	int64_t last_unit = 0;

	transpose_weights(joint, ways);
	for (int64_t u = 1; u <= units && u <= joint->target->tiles; u++) {
		int64_t last_input = 0;

		if (ipu__ceil_div(units, u) == last_unit)
			continue;
		last_unit = ipu__ceil_div(units, u);
		for (int64_t i = 1; i <= inputs && u * i <= joint->target->tiles; i++) {
			if (ipu__ceil_div(inputs, i) == last_input)
				continue;
			last_input = ipu__ceil_div(inputs, i);
			try_cut(joint, ways, u, i);
		}
	}
}

static struct conv_way amp_way(enum ipu_amp_mode mode, double units, double in, double out)
{
	return (struct conv_way){.method = IPU_METHOD_AMP_1X1,
				 .amp = {.mode = mode,
					 .units = units,
					 .in_group = in,
					 .passes = out / units,
					 .height = 1},
				 .in_group = in,
				 .out_group = out,
				 .conv_group = 1};
}

static void try_amp(struct joint *joint)
{
	const struct conv_form *form = &joint->forms[IPU_FORWARD];
	const enum ipu_amp_mode mode = ipu__conv_amp_mode(form);
	const struct ipu_amp *amp = &joint->target->amp[mode];

	for (int64_t units = amp->units; units >= 4 && units >= amp->units / 2; units /= 2) {
		const struct conv_way way =
			amp_way(mode, (double)units, (double)amp->in_group, (double)amp->in_group);

		if (amp->in_group % units == 0 && (units == amp->units || amp->in_group == units))
			try_cuts(joint, &(struct ways){{way, way, way}});
	}
}

/* The update after a forward pass of the horizontal MAC with groups of @in channels (ConvModel.cpp,
 * getFullyConnectedWUMethod): the forward groups are its outputs' groups. */
static struct conv_way update_way(const struct joint *joint, double in, double out)
{
	const enum ipu_amp_mode mode = ipu__conv_amp_mode(&joint->forms[IPU_FORWARD]);
	const struct ipu_amp *amp = &joint->target->amp[mode];

	if (joint->forms[IPU_BACKWARD_WEIGHTS].in == 1 && out < 2)
		return (struct conv_way){.method = IPU_METHOD_OUTER_PRODUCT,
					 .in_group = 1,
					 .out_group = in,
					 .conv_group = 1};
	if (in < 2)
		return (struct conv_way){.method = IPU_METHOD_HORIZONTAL_MAC,
					 .in_group = out,
					 .out_group = 1,
					 .conv_group = 1};
	return amp_way(mode, (double)amp->units, (double)amp->in_group, (double)amp->units);
}

/* The forward groups are whole units of the AMP, or of float32 one channel (ConvVertexType.cpp). */
static void try_hmac(struct joint *joint)
{
	const struct conv_form *form = &joint->forms[IPU_FORWARD];
	const double out = form->partials == IPU_FLOAT16 ? 2 : 1;
	const int64_t units = joint->target->amp[ipu__conv_amp_mode(form)].units;
	const int64_t most = ipu__ceil_div(form->in, units);
	int64_t last = 0;

	for (int64_t at = form->dtype == IPU_FLOAT32 ? 0 : 1; at <= most; at++) {
		const int64_t group = at > 0 ? at * units : 1;
		const double in = (double)group;
		const struct conv_way way = {.method = IPU_METHOD_HORIZONTAL_MAC,
					     .in_group = in,
					     .out_group = out,
					     .conv_group = 1};

		if (ipu__ceil_div(form->in, group) == last)
			continue;
		last = ipu__ceil_div(form->in, group);
		try_cuts(joint, &(struct ways){{way, way, update_way(joint, in, out)}});
	}
}

/* ---- phases ---------------------------------------------------------------------------------- */

#define OF_TYPE(vertex)                                                                            \
	{                                                                                          \
		vertex "<float>", vertex "<half>"                                                  \
	}
#define REDUCE_ADD                                                                                 \
	{                                                                                          \
		"poplin::ReduceAdd<float,float>", "poplin::ReduceAdd<half,half>"                   \
	}

/* Phases in order of execution, with vertices by data type. */
static const struct {
	const char *part;
	enum ipu_phase_kind kind;
	const char *vertex[2]; /* float32, float16; NULL: an exchange, or depends on the method */
} conv_parts[] = {
	[CONV_INPUT_EXCHANGE] = {"BroadcastInput/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_PRE_EXCHANGE] = {"PreArrange/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_PRE_COPY] = {"PreArrange/OnTileCopy-0", IPU_COMPUTE, OF_TYPE("poputil::Transpose2d")},
	[CONV_SLICE] = {"DynamicSlice", IPU_COMPUTE, OF_TYPE("popops::DynamicSlice1d")},
	[CONV_EXCHANGE] = {"Convolve/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_COMPUTE] = {"Convolve", IPU_COMPUTE, {NULL}},
	[CONV_REDUCE_EXCHANGE_0] = {"Reduce0/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_REDUCE_0] = {"Reduce0", IPU_COMPUTE, REDUCE_ADD},
	[CONV_REDUCE_EXCHANGE_1] = {"Reduce1/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_REDUCE_1] = {"Reduce1", IPU_COMPUTE, REDUCE_ADD},
	[CONV_REDUCE_EXCHANGE_2] = {"Reduce2/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_REDUCE_2] = {"Reduce2", IPU_COMPUTE, REDUCE_ADD},
	[CONV_ADD] = {"AddInPlace",
		      IPU_COMPUTE,
		      {"popops::BinaryOp1DInPlaceSupervisor<ADD,float>",
		       "popops::BinaryOp1DInPlaceSupervisor<ADD,half>"}},
	[CONV_UPDATE] = {"DynamicUpdate", IPU_COMPUTE, OF_TYPE("popops::DynamicUpdateSlice1d")},
	[CONV_CAST] = {"Cast",
		       IPU_COMPUTE,
		       {"popops::Cast<float,half>", "popops::Cast<float,half>"}},
	[CONV_FILL] = {"Fill", IPU_COMPUTE, OF_TYPE("popops::Fill")},
	[CONV_POST_EXCHANGE] = {"PostArrange/ExchangePre", IPU_EXCHANGE, {NULL}},
	[CONV_POST_COPY] = {"PostArrange/OnTileCopy-0", IPU_COMPUTE,
			    OF_TYPE("poputil::Transpose2d")},
};
_Static_assert(ARRAY_LEN(conv_parts) == CONV_PARTS, "parts out of step");

/* clang-format off */
#define AMP_OF_TYPES(vertex, types, in_group) \
	{vertex "<" types ",true,false,4," in_group ">", \
	 vertex "<" types ",true,false,8," in_group ">", \
	 vertex "<" types ",true,false,16," in_group ">"}
#define AMP(vertex) \
	{AMP_OF_TYPES(vertex, "float,float", "8"), AMP_OF_TYPES(vertex, "half,float", "16"), \
	 AMP_OF_TYPES(vertex, "half,half", "16")}
#define BY_TYPES(vertex, end) \
	{{vertex "<float,float" end}, {vertex "<half,float" end}, {vertex "<half,half" end}}
/* By types (float32; float16 with float32 partials; float16 with float16 partials), then by units
 * (4, 8, 16), which only the AMP has. */
static const char *const vertex_names[IPU_METHODS][3][3] = {
	[IPU_METHOD_AMP_1X1] = AMP("poplin::ConvPartial1x1Out"),
	[IPU_METHOD_AMP_NX1] = AMP("poplin::ConvPartialnx1"),
	[IPU_METHOD_HORIZONTAL_MAC] = BY_TYPES("poplin::ConvPartialHorizontalMac", ",true>"),
	[IPU_METHOD_VERTICAL_MAC] = BY_TYPES("poplin::ConvPartialVerticalMac", ",true>"),
	[IPU_METHOD_OUTER_PRODUCT] = {{"poplin::OuterProduct<float>"},
				      {"poplin::OuterProduct<half>"},
				      {"poplin::OuterProduct<half>"}},
	[IPU_METHOD_SLIC] = BY_TYPES("poplin::ConvPartial1xNSLIC", ">"),
};
/* clang-format on */

static const char *vertex_name(const struct conv_form *form, const struct conv_way *way)
{
	const int types = form->dtype != IPU_FLOAT16 ? 0 : form->partials != IPU_FLOAT16 ? 1 : 2;
	const int units = way->amp.units >= 16 ? 2 : way->amp.units >= 8 ? 1 : 0;

	return vertex_names[way->method][types][units];
}

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
	int64_t vertices = part == CONV_COMPUTE ? ipu__whole(cost->vertices) : 1;
	const struct ipu_phase phase = {
		.kind = conv_parts[part].kind,
		.part = conv_parts[part].part,
		.vertex = vertex,
		.cycles = cycles,
		.mean_cycles = (double)cycles * cost->balance,
		.tiles = tiles,
		.vertices = computes ? ipu__times(tiles, vertices) : 0,
		.bytes = ipu__whole(floor(cost->bytes[part] * cost->tiles * cost->balance)),
		.repeats = ipu__conv_part_loops(part) ? plan->serial_splits : 1,
		.sources = ipu__whole(cost->sources[part]),
		.sent = ipu__whole(floor(cost->sent[part] * cost->tiles * cost->balance)),
	};

	if (cost->part[part] > 0)
		ipu__plan_add(plan, &phase);
}

/* ---- plans ----------------------------------------------------------------------------------- */

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
	plan->list_bytes = ipu__whole(choice->cost.lists);
	plan->pointer_bytes = ipu__whole(choice->cost.pointers);
	for (int p = 0; p < CONV_PARTS; p++)
		fill_phase(choice, (enum conv_part)p, plan);
}

static void plan_product(const struct ipu_target *target, const struct ipu_op *op,
			 const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	struct conv_form forms[CONV_FORMS];
	int count = ipu_conv_forms(op, options, forms);
	struct conv_choice choice;

	ipu__conv_search(target, forms, count, memory_limit(target, options), &choice);
	fill_plan(&choice, plan);
}

/* The joint plan counts if it is faster than the three plans that are made alone. */
void ipu__plan_layer(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, struct ipu_op ops[IPU_PASSES],
		     struct ipu_plan plans[IPU_PASSES])
{
	const struct layer layer = layer_of(op, options);
	const double limit = memory_limit(target, options);
	struct conv_choice choices[IPU_PASSES];
	struct joint joint = {.target = target, .limit = limit, .choices = choices};
	bool fits = true;
	double alone;

	for (int p = 0; p < IPU_PASSES; p++) {
		struct conv_form forms[CONV_FORMS];
		int count;

		ops[p] = pass_of(op, &layer, (enum ipu_pass)p);
		count = ipu_conv_forms(&ops[p], options, forms);
		ipu__conv_search(target, forms, count, limit, &choices[p]);
		joint.best += choices[p].cost.estimate;
		fits = fits && choices[p].cost.memory <= limit;
		joint.forms[p] = forms[0];
		joint.forms[p].move_in = p == IPU_BACKWARD_WEIGHTS;
		joint.forms[p].move_out = false;
		joint.forms[p].apart = p != IPU_FORWARD;
	}
	if (!fits)
		joint.best = INFINITY;
	alone = joint.best;
	try_amp(&joint);
	try_hmac(&joint);
	for (int p = 0; p < IPU_PASSES; p++) {
		plans[p].joint = joint.best < alone;
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
