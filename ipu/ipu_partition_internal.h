/*
 * Private to the partitioner: what any range of units costs as any stage.
 */
#ifndef IPU_PARTITION_INTERNAL_H
#define IPU_PARTITION_INTERNAL_H

#include "ipu/ipu_partition.h"

/* A unit's backward pass reads a flow that @before, another unit, has read last; -1: none has. */
struct ipu_partition_keep {
	int64_t bytes, fifo;
	int before;
};

struct ipu_partition_end {
	int64_t bytes;
	int made;
};

/* What the ranges' costs are found by; borders are numbered by the unit after them. */
struct ipu_partition_table {
	const struct ipu_partition_params *params;
	int64_t *border_bytes;           /* over each border; 0: from the host */
	int64_t *border_sent;            /* of them what goes from IPU to IPU */
	int64_t *border_cycles;          /* of a link; 0 at both ends */
	struct ipu_partition_keep *keep; /* unit u has those from keep_first[u] */
	struct ipu_partition_end *end;   /* flows whose last reader is u, from end_first[u] */
	int *keep_first, *end_first;
	int64_t *memory; /* of each stage */
	int64_t *live;   /* micro-batches whose kept tensors a stage holds */
	bool *fifo;      /* a stage has one */
};

enum status ipu__partition_table_init(struct ipu_partition_table *table,
				      const struct ipu_partition_params *params, struct err *err);
void ipu__partition_table_fini(struct ipu_partition_table *table);

/* The sums of the units from @first to @end - 1; grown a unit at a time. */
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

/* The range as stage @stage. */
void ipu__partition_stage(struct ipu_partition_stage *out, const struct ipu_partition_range *range,
			  int stage);

#endif /* IPU_PARTITION_INTERNAL_H */
