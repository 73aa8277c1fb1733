/*
 * What must hold of every graph that a model is lowered to, and looking into one.
 */
#ifndef SUPPORT_LOWERING_CHECK_H
#define SUPPORT_LOWERING_CHECK_H

#include "support/lowering.h"

/* Fails the test where anything is read before it was written, by nobody, or in a stage that does
 * not have it; where a gradient is made twice, or changed in place while others want it as it was;
 * where products have other flops than their layers. */
void lowered_check_graph(const struct lowered *lowered);

int lowered_tensors(const struct ipu_graph *graph, enum ipu_tensor_kind kind);
int lowered_nodes(const struct ipu_graph *graph, const char *part); /* of their names */
const struct ipu_node *lowered_find(const struct ipu_graph *graph, const char *name);
/* "operation: reads -> writes", by the tensors' names. */
void lowered_check_node(const struct ipu_graph *graph, const char *wanted);

#endif /* SUPPORT_LOWERING_CHECK_H */
