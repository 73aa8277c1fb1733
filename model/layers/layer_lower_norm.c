/*
 * The device operations that the normalising layers share. No state.
 *
 * What poplibs computes (popnn's batchNormStatistics, batchNormParamGradients): the statistics are
 * two reductions, gradients of gamma and beta another two, and everything else maps over elements
 * with numbers of channels broadcast. poplibs has two reductions in the same compute sets, and
 * every step of a map in one of its own: the phases are about as many (docs/cost-model.md).
 */
#include "model/layers/layer_norm.h"

void layer__lower_norm(struct layer_lowering *lowering, const char *name, const char *part,
		       const struct layer_op *op)
{
	const char *text = arena_printf(lowering->arena, "%s/%s", name, part);

	if (text)
		layer__lower(lowering, text, op);
	else
		lowering->failed = true;
}

void layer__lower_statistics(struct layer_lowering *lowering, const char *name, int64_t groups,
			     bool training_only)
{
	const int64_t count = layer__lower_count(lowering);
	struct layer_op sum = layer__reduce(count, groups, LAYER_INPUT, LAYER_BETWEEN);
	struct layer_op squares = layer__reduce(count, groups, LAYER_INPUT, LAYER_BETWEEN_TOO);

	sum.training_only = squares.training_only = training_only;
	layer__lower_norm(lowering, name, "Mean", &sum);
	layer__lower_norm(lowering, name, "PowerSum", &squares);
}

struct layer_op layer__norm_map(const struct layer_lowering *lowering, int adds, unsigned reads,
				unsigned writes)
{
	return layer__map(
		&(struct ipu_elements){
			.count = layer__lower_count(lowering),
			.operands = (reads & LAYER_INPUT) && (reads & LAYER_GRAD_OUTPUT) ? 2 : 1,
			.broadcast = layer_last_dim(&lowering->layer->input),
			.times = {[IPU_FN_ADD] = (uint8_t)adds}},
		reads, writes);
}

unsigned layer__norm_params(const struct layer_norm *norm)
{
	return (norm->scale ? LAYER_PARAM(0) : 0u) | (norm->center ? LAYER_PARAM(norm->scale) : 0u);
}

static unsigned norm_gamma_sum(const struct layer_norm *norm)
{
	return norm->scale ? LAYER_GRAD_PARAM(0) : (unsigned)LAYER_BETWEEN_TOO;
}

static unsigned norm_beta_sum(const struct layer_norm *norm)
{
	return norm->center ? LAYER_GRAD_PARAM(norm->scale) : (unsigned)LAYER_BETWEEN;
}

unsigned layer__norm_sums(const struct layer_norm *norm)
{
	return norm_gamma_sum(norm) | norm_beta_sum(norm);
}

void layer__lower_norm_sums(struct layer_lowering *lowering, const char *name,
			    const struct layer_norm *norm, bool both)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t channels = layer_last_dim(&lowering->layer->input);
	struct layer_op op = layer__norm_map(
		lowering, 3, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);

	if (both || norm->scale) {
		op.makes = count;
		layer__lower_norm(lowering, name, "GradWhitened", &op);
		op = layer__reduce(count, channels, LAYER_BETWEEN, norm_gamma_sum(norm));
		layer__lower_norm(lowering, name, "GradGamma", &op);
	}
	op = layer__reduce(count, channels, LAYER_GRAD_OUTPUT, norm_beta_sum(norm));
	if (both || norm->center)
		layer__lower_norm(lowering, name, "GradBeta", &op);
}
