/*
 * The schedules of TensorFlow for IPU: micro-batches in lines, all IPUs in lockstep.
 *
 * Pure functions.
 */
#include <math.h>

#include "ipu/ipu_schedule_internal.h"

static const char *stages_rule(const struct ipu_schedule_shape *shape, int lines)
{
	return lines == shape->stages ? "the number of stages" : "the lines that fit the IPUs";
}

/* ---- Grouped --------------------------------------------------------------------------------- */

static int grouped_lines(const struct ipu_schedule_shape *shape, int *offsets)
{
	const int lines = ipu__program_count(shape);

	for (int i = 0; i < lines; i++)
		offsets[i] = i;
	return lines;
}

static const char *grouped_rule(const struct ipu_schedule_shape *shape, int lines)
{
	return lines == shape->stages ? "the number of stages" : "2 x stages";
}

static struct ipu__form sequential_closed(const struct ipu__times *t)
{
	return ipu__form_same(t->m * (t->forward_sum + t->backward_sum + 2 * (t->p - 1) * t->c));
}

/* m + 2p - 1 steps: p of one forward, m - 1 of both, p of one backward. All but the last send. */
static struct ipu__form grouped_closed(const struct ipu__times *t)
{
	if (t->p == 1)
		return sequential_closed(t);
	if (!t->equal)
		return ipu__form_unknown();
	return ipu__form_same((t->m + t->p - 1) * ipu__times_all(t) + (t->m + 2 * t->p - 2) * t->c);
}

const struct ipu_schedule_row ipu__schedule_grouped = {
	.about = "of the IPU: all stages in every step, in lockstep",
	.pace = IPU_PACE_BOTH,
	.sharing = IPU_SHARE_ANY,
	.replays = IPU_REPLAY_AHEAD | IPU_REPLAY_LATE,
	.lines = grouped_lines,
	.rule = grouped_rule,
	.closed = grouped_closed,
};

/* ---- Interleaved ----------------------------------------------------------------------------- */

/* Return whether lines at offsets @a and @b ever use an IPU in the same step. Both are periodic
 * with the programs of a micro-batch, so one period suffices. */
static bool lines_collide(const struct ipu_schedule_shape *shape, int a, int b)
{
	const int programs = ipu__program_count(shape);

	for (int p = 0; p < programs; p++) {
		const int q = ((p + b - a) % programs + programs) % programs;

		if (ipu__program_ipu(shape, p) == ipu__program_ipu(shape, q))
			return true;
	}
	return false;
}

static int interleaved_lines(const struct ipu_schedule_shape *shape, int *offsets)
{
	int lines = 0;

	for (int offset = 0; offset < ipu__program_count(shape); offset++) {
		bool free_of_all = true;

		for (int i = 0; i < lines && free_of_all; i++)
			free_of_all = !lines_collide(shape, offset, offsets[i]);
		if (free_of_all)
			offsets[lines++] = offset;
	}
	return lines;
}

/* 2m + 2p - 2 steps: p with only forwards, p with only backwards, and the rest with forwards on
 * half of the IPUs and backwards on the others. All but the last send; with two stages only every
 * other. */
static struct ipu__form interleaved_closed(const struct ipu__times *t)
{
	double backward = t->b + t->w;
	double hops = t->p > 2 ? 2 * t->m + 2 * t->p - 3 : t->m + 1;

	if (t->p == 1)
		return sequential_closed(t);
	if (!t->equal)
		return ipu__form_unknown();
	return ipu__form_same(t->p * ipu__times_all(t) + (2 * t->m - 2) * fmax(t->f, backward) +
			      hops * t->c);
}

const struct ipu_schedule_row ipu__schedule_interleaved = {
	.about = "of the IPU: forward and backward steps in turn, in lockstep",
	.pace = IPU_PACE_ONE,
	.sharing = IPU_SHARE_FORWARD,
	.replays = IPU_REPLAY_AHEAD,
	.lines = interleaved_lines,
	.rule = stages_rule,
	.closed = interleaved_closed,
};

/* ---- Sequential ------------------------------------------------------------------------------ */

static int sequential_lines(const struct ipu_schedule_shape *shape, int *offsets)
{
	(void)shape;
	offsets[0] = 0;
	return 1;
}

const struct ipu_schedule_row ipu__schedule_sequential = {
	.about = "of the IPU: one stage at a time",
	.pace = IPU_PACE_ALONE,
	.sharing = IPU_SHARE_ANY,
	.replays = IPU_REPLAY_LATE,
	.lines = sequential_lines,
	.rule = stages_rule,
	.closed = sequential_closed,
};
