/*
 * What tests and their golden files call the functions of a map.
 */
#ifndef SUPPORT_IPU_FUNCTIONS_H
#define SUPPORT_IPU_FUNCTIONS_H

#include "ipu/plan/ipu_op.h"

static const char *const ipu_function_names[IPU_FUNCTIONS] = {
	[IPU_FN_ADD] = "add",
	[IPU_FN_DIVIDE] = "divide",
	[IPU_FN_DIVIDE_BY] = "divide_by",
	[IPU_FN_SELECT] = "select",
	[IPU_FN_EXP] = "exp",
	[IPU_FN_LOG] = "log",
	[IPU_FN_SQRT] = "sqrt",
	[IPU_FN_SIGMOID] = "sigmoid",
	[IPU_FN_TANH] = "tanh",
	[IPU_FN_RELU] = "relu",
	[IPU_FN_RELU_GRAD] = "relu_grad",
	[IPU_FN_RANDOM] = "random",
	[IPU_FN_SCALED_ADD] = "scaled_add",
	[IPU_FN_FILL] = "fill",
	[IPU_FN_CAST] = "cast",
};

#endif /* SUPPORT_IPU_FUNCTIONS_H */
