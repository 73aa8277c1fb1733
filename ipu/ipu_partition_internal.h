/*
 * Private to the partitioner: the cost of any range of units as any stage.
 */
#ifndef IPU_PARTITION_INTERNAL_H
#define IPU_PARTITION_INTERNAL_H

#include "ipu/ipu_partition.h"

/* A unit's backward pass reads a flow; @before is the previous unit that does, or -1. */
struct ipu_partition_keep {
	int64_t bytes, fifo;
	int before;
};

struct ipu_partition_end {
	int64_t bytes;
	int made;
};

/* Tables for the costs of ranges; a border has the number of the unit after it. */
struct ipu_partition_table {
	const struct ipu_partition_params *params;
	int64_t *border_bytes;           /* over each border; border 0: from the host */
	int64_t *border_sent;            /* the part that is sent between IPUs */
	int64_t *border_cycles;          /* of a link; 0 at both ends */
	struct ipu_partition_keep *keep; /* those of unit u from keep_first[u] on */
	struct ipu_partition_end *end;   /* flows whose last reader is u, from end_first[u] on */
	int *keep_first, *end_first;
	int64_t *memory; /* by stage */
	int64_t *live;   /* by stage: micro-batches whose kept tensors it holds */
	bool *fifo;      /* by stage: it has one */
};

enum status ipu__partition_table_init(struct ipu_partition_table *table,
				      const struct ipu_partition_params *params, struct err *err);
void ipu__partition_table_fini(struct ipu_partition_table *table);

/* Sums over the units @first to @end - 1; extended by one unit at a time. */
struct ipu_partition_range {
	const struct ipu_partition_table *table;
	int first, end;
	bool computes;
	struct ipu_unit sum;
	int64_t kept_bytes, kept_fifo, passing_bytes;
};

void ipu__partition_range_begin(struct ipu_partition_range *range,
				const struct ipu_partition_table *table, int first);
void ipu__partition_range_extend(struct ipu_partition_range *range);

/* Compute the cost of the range as stage @stage. */
void ipu__partition_stage(struct ipu_partition_stage *out, const struct ipu_partition_range *range,
			  int stage);

#endif /* IPU_PARTITION_INTERNAL_H */
