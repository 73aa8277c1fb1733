/*
 * Interface between the files of the schedules: the rows, lists of works, and parameters of closed
 * forms.
 */
#ifndef IPU_SCHEDULE_INTERNAL_H
#define IPU_SCHEDULE_INTERNAL_H

#include "ipu/ipu_schedule.h"

#define IPU__SCHEDULE_ROW(kind, row, name) extern const struct ipu_schedule_row ipu__schedule_##row;
IPU_SCHEDULE_MAP(IPU__SCHEDULE_ROW)
#undef IPU__SCHEDULE_ROW

/* IPU of program @p of a micro-batch: F0 .. F(N-1), B(N-1) .. B0. */
int ipu__program_ipu(const struct ipu_schedule_shape *shape, int p);
int ipu__program_count(const struct ipu_schedule_shape *shape);

/* Write position in the list of works of a place. */
struct ipu__list {
	const struct ipu_schedule_shape *shape;
	struct ipu_work *next;
	int place;
};

void ipu__list_add(struct ipu__list *list, char phase, int chunk, int microbatch);

/* Build the schedule of @shape, which must satisfy ipu_schedule_check(). */
enum status ipu__schedule_make(struct ipu_schedule **out, enum ipu_schedule_kind kind,
			       const struct ipu_schedule_shape *shape, struct err *err);

/* The times of one stage if all are equal, and sums and maxima over the stages. In ns, as doubles:
 * exact up to 2^53 ns, which is 104 days. */
struct ipu__times {
	bool equal;
	double p, m, v;
	double f, b, w, c; /* b: for the input's gradient; c: a hop */
	double forward_sum, backward_sum, forward_most, backward_most;
};

/* Closed forms; NaN if unknown. */
struct ipu__form {
	double makespan, span;
};

struct ipu__form ipu__form_unknown(void);
struct ipu__form ipu__form_same(double makespan);
double ipu__times_all(const struct ipu__times *times); /* F + B + W of an equal stage */

#endif /* IPU_SCHEDULE_INTERNAL_H */
