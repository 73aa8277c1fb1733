/*
 * The class of outputs and of one-hot targets; counts of targets and mispredictions by class.
 */
#include "trainer/learn/measure_run.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/learn/metric.h"

int64_t class_greatest(const float *x, int64_t count)
{
	float greatest = -FLT_MAX;
	int64_t at = 0;

	for (int64_t j = 0; j < count; j++) {
		if (x[j] > greatest) {
			greatest = x[j];
			at = j;
		}
	}
	return at;
}

enum status class_counts_init(struct class_counts *out, int64_t classes, struct err *err)
{
	*out = (struct class_counts){.targets = mem_calloc((size_t)classes, 2 * sizeof(int64_t))};
	if (!out->targets)
		return err_nomem(err);
	out->missed = out->targets + classes;
	out->classes = classes;
	return ST_OK;
}

void class_counts_fini(struct class_counts *counts)
{
	mem_free(counts->targets);
	*counts = (struct class_counts){0};
}

void class_counts_clear(struct class_counts *counts)
{
	memset(counts->targets, 0, (size_t)counts->classes * 2 * sizeof(*counts->targets));
	counts->items = 0;
	counts->predicted = 0;
}

/* The class of item @i, or -1 if it has none. */
static int64_t class_of(const struct class_counts *counts, const struct targets *targets, int64_t i)
{
	const float *values;
	int64_t found;

	if (targets->classes) {
		found = targets->classes[i];
		return found >= 0 && found < counts->classes ? found : -1;
	}
	values = targets->values + i * targets->width;
	if (targets->width == 1) {
		if (!(values[0] >= 0 && values[0] < (float)counts->classes))
			return -1;
		found = (int64_t)values[0];
		return (float)found == values[0] ? found : -1;
	}
	return targets->width == counts->classes ? class_greatest(values, targets->width) : -1;
}

void class_counts_add(struct class_counts *counts, const float *outputs,
		      const struct targets *targets, int64_t batch, int64_t width)
{
	for (int64_t i = 0; i < batch; i++) {
		int64_t class = class_of(counts, targets, i);

		if (class < 0 || (targets->mask && targets->mask[i] == 0.0f))
			continue;
		counts->targets[class]++;
		counts->items++;
		if (width != counts->classes || width == 1)
			continue;
		counts->predicted++;
		counts->missed[class] += class_greatest(outputs + i * width, width) != class;
	}
}

void class_counts_merge(struct class_counts *into, const struct class_counts *from)
{
	for (int64_t i = 0; i < into->classes && i < from->classes; i++) {
		into->targets[i] += from->targets[i];
		into->missed[i] += from->missed[i];
	}
	into->items += from->items;
	into->predicted += from->predicted;
}

struct class_figures class_counts_figures(const struct class_counts *counts)
{
	struct class_figures out = {counts->items, NAN, NAN};
	int64_t commonest = 0, rarest = INT64_MAX;

	for (int64_t i = 0; i < counts->classes; i++) {
		int64_t count = counts->targets[i];

		if (count == 0)
			continue;
		commonest = max(count, commonest);
		rarest = min(count, rarest);
		if (counts->predicted > 0)
			out.misprediction =
				fmax(out.misprediction, (double)counts->missed[i] / (double)count);
	}
	if (commonest > 0 && counts->items / counts->classes >= CLASS_ITEMS_LEAST)
		out.imbalance = (double)commonest / (double)rarest;
	return out;
}
