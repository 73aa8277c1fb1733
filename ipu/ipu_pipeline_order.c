/*
 * In which order a stage does its works, by schedule.
 *
 * Pure functions: each fills the stage's part of the list, whose length follows from the schedule
 * (2 m works for each chunk, 3 m where the backward is split).
 */
#include "ipu/ipu_pipeline_internal.h"

/* Where the next work of the list goes. */
struct list {
	struct ipu_pipeline_work *next;
	int stage;
};

static void add(struct list *list, char phase, int chunk, int microbatch)
{
	*list->next++ = (struct ipu_pipeline_work){
		.stage = list->stage, .chunk = chunk, .microbatch = microbatch, .phase = phase};
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

void ipu__order_gpipe(const struct ipu_pipeline *pipeline, int stage, struct ipu_pipeline_work *out)
{
	struct list list = {out, stage};

	for (int i = 0; i < pipeline->microbatches; i++)
		add(&list, 'F', 0, i);
	for (int i = 0; i < pipeline->microbatches; i++)
		add(&list, 'B', 0, i);
}

/* ---- one forward, one backward --------------------------------------------------------------- */

/* @flight forwards first, then a backward and a forward in turn; with W's, once more than @hold
 * backwards are done, one after each backward. @hold < 0: there are none. */
static void in_turn(const struct ipu_pipeline *pipeline, int stage, int flight, int hold,
		    struct ipu_pipeline_work *out)
{
	struct list list = {out, stage};
	int m = pipeline->microbatches, forwards = least(m, flight), weights = 0;

	for (int i = 0; i < forwards; i++)
		add(&list, 'F', 0, i);
	for (int i = 0; i < m; i++) {
		add(&list, 'B', 0, i);
		if (hold >= 0 && i >= hold)
			add(&list, 'W', 0, weights++);
		if (forwards < m)
			add(&list, 'F', 0, forwards++);
	}
	while (hold >= 0 && weights < m)
		add(&list, 'W', 0, weights++);
}

void ipu__order_1f1b(const struct ipu_pipeline *pipeline, int stage, struct ipu_pipeline_work *out)
{
	in_turn(pipeline, stage, pipeline->stages - stage, -1, out);
}

void ipu__order_zb_h1(const struct ipu_pipeline *pipeline, int stage, struct ipu_pipeline_work *out)
{
	in_turn(pipeline, stage, pipeline->stages - stage, stage, out);
}

void ipu__order_zb_h2(const struct ipu_pipeline *pipeline, int stage, struct ipu_pipeline_work *out)
{
	in_turn(pipeline, stage, 2 * (pipeline->stages - stage) - 1, 2 * stage, out);
}

/* ---- interleaved ----------------------------------------------------------------------------- */

/* The k-th forward or backward: p micro-batches through a chunk, then through the next one. */
static void add_kth(struct list *list, const struct ipu_pipeline *pipeline, char phase, int k)
{
	int p = pipeline->stages, round = p * pipeline->chunks;
	int chunk = k % round / p, microbatch = k / round * p + k % p;

	add(list, phase, phase == 'F' ? chunk : pipeline->chunks - 1 - chunk, microbatch);
}

void ipu__order_1f1b_interleaved(const struct ipu_pipeline *pipeline, int stage,
				 struct ipu_pipeline_work *out)
{
	struct list list = {out, stage};
	int total = pipeline->microbatches * pipeline->chunks;
	int warm = least(total, 2 * (pipeline->stages - stage - 1) +
					(pipeline->chunks - 1) * pipeline->stages);

	for (int k = 0; k < warm; k++)
		add_kth(&list, pipeline, 'F', k);
	for (int k = 0; k < total; k++) {
		if (warm + k < total)
			add_kth(&list, pipeline, 'F', warm + k);
		add_kth(&list, pipeline, 'B', k);
	}
}
