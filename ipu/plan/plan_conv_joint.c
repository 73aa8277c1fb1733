/*
 * Joint plan of the three products of a trained layer: the weights stay on the same tiles in all
 * passes, as poplibs plans fully connected layers (ConvModel.cpp: addBwdEstimates,
 * addWuEstimates). The layer's batch is split neither over tiles nor serially; its units and inputs
 * are split the same way in all passes, and the channel groups of one pass are those of the next.
 */
#include "ipu/plan/plan_conv_internal.h"

#include <math.h>

#include "common/minmax.h"

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
		[IPU_FORWARD] = {1, inputs, 1, 1, 1, 1},
		[IPU_BACKWARD_DATA] = {1, units, 1, 1, 1, 1},
		[IPU_BACKWARD_WEIGHTS] = {1, 1, inputs, 1, 1, 1},
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
		cycles += choice->cost.cycles;
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

static void try_hmac(struct joint *joint)
{
	const struct conv_form *form = &joint->forms[IPU_FORWARD];
	const double out = form->partials == IPU_FLOAT16 ? 2 : 1;
	const enum ipu_amp_mode mode = ipu__conv_amp_mode(form);
	const struct ipu_amp *amp = &joint->target->amp[mode];
	const double units = (double)amp->units;

	for (double parts = 1; parts <= HMAC_PARTS; parts *= 2) {
		const double in = ceil(ceil((double)form->in / parts) / units) * units;
		const struct conv_way way = {.method = IPU_METHOD_HORIZONTAL_MAC,
					     .in_group = in,
					     .out_group = out,
					     .conv_group = 1};
		const struct conv_way update = amp_way(mode, units, (double)amp->in_group, units);

		try_cuts(joint, &(struct ways){{way, way, update}});
		if (in <= units)
			break;
	}
}

bool ipu__conv_joint(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, double limit,
		     struct ipu_op ops[IPU_PASSES], struct conv_choice choices[IPU_PASSES])
{
	const struct layer layer = layer_of(op, options);
	struct joint joint = {.target = target, .limit = limit, .choices = choices};
	bool fits = true;
	double alone;
	const struct conv_form *form;
	enum ipu_amp_mode mode;
	const struct ipu_amp *amp;

	for (int p = 0; p < IPU_PASSES; p++) {
		struct conv_form forms[CONV_FORMS];
		int count;

		ops[p] = pass_of(op, &layer, (enum ipu_pass)p);
		count = ipu__conv_forms(&ops[p], options, forms);
		ipu__conv_search(target, forms, count, limit, &choices[p]);
		joint.best += choices[p].cost.cycles;
		fits = fits && choices[p].cost.memory <= limit;
		joint.forms[p] = forms[0];
		joint.forms[p].move_in = p == IPU_BACKWARD_WEIGHTS;
		joint.forms[p].move_out = false;
		joint.forms[p].apart = p != IPU_FORWARD;
	}
	if (!fits)
		joint.best = INFINITY;
	alone = joint.best;
	form = &joint.forms[IPU_FORWARD];
	mode = ipu__conv_amp_mode(form);
	amp = &joint.target->amp[mode];
	for (int64_t units = amp->units; units >= 4 && units >= amp->units / 2; units /= 2) {
		const struct conv_way way =
			amp_way(mode, (double)units, (double)amp->in_group, (double)amp->in_group);

		if (amp->in_group % units == 0 && (units == amp->units || amp->in_group == units))
			try_cuts(&joint, &(struct ways){{way, way, way}});
	}
	try_hmac(&joint);
	return joint.best < alone;
}
