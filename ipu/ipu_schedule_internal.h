/*
 * What the files of the schedules share: the rows, lists of works, and what closed forms are made
 * of.
 */
#ifndef IPU_SCHEDULE_INTERNAL_H
#define IPU_SCHEDULE_INTERNAL_H

#include "ipu/ipu_schedule.h"

#define IPU__SCHEDULE_ROW(kind, row, name) extern const struct ipu_schedule_row ipu__schedule_##row;
IPU_SCHEDULE_MAP(IPU__SCHEDULE_ROW)
#undef IPU__SCHEDULE_ROW

/* Program @p of a micro-batch: F0 .. F(N-1), B(N-1) .. B0; on which IPU it runs. */
int ipu__program_stage(const struct ipu_schedule_shape *shape, int p);
int ipu__program_ipu(const struct ipu_schedule_shape *shape, int p);
int ipu__program_count(const struct ipu_schedule_shape *shape);

/* Where the next work of a place's list goes. */
struct ipu__list {
	const struct ipu_schedule_shape *shape;
	struct ipu_work *next;
	int place;
};

void ipu__list_add(struct ipu__list *list, char phase, int chunk, int microbatch);

/* @shape's schedule, which no rule of ipu_schedule_check() forbids. */
enum status ipu__schedule_make(struct ipu_schedule **out, enum ipu_schedule_kind kind,
			       const struct ipu_schedule_shape *shape, struct err *err);

/* One stage's times where all are equal, and sums and maxima over the stages. In ns, as doubles:
 * exact up to 2^53 ns, which is 104 days. */
struct ipu__times {
	bool equal;
	double p, m, v;
	double f, b, w, c; /* b: the input's part; c: a hop */
	double forward_sum, backward_sum, forward_most, backward_most;
};

/* Each NaN where it is not known. */
struct ipu__form {
	double makespan, span;
};

struct ipu__form ipu__form_unknown(void);
struct ipu__form ipu__form_same(double makespan);
double ipu__times_all(const struct ipu__times *times); /* F + B + W of an equal stage */

#endif /* IPU_SCHEDULE_INTERNAL_H */
