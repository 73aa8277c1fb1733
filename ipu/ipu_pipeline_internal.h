/*
 * What the files of the pipeline schedules share: a row of rules per schedule.
 */
#ifndef IPU_PIPELINE_INTERNAL_H
#define IPU_PIPELINE_INTERNAL_H

#include "ipu/ipu_pipeline.h"

struct ipu__pipeline_rules {
	const char *name, *about;
	bool splits;  /* W is a work of its own */
	bool chunked; /* takes chunks, at least 2 */
	/* The works of @stage in their order, into @out; NULL: @lockstep says. */
	void (*order)(const struct ipu_pipeline *pipeline, int stage,
		      struct ipu_pipeline_work *out);
	enum ipu_schedule_kind lockstep;
};

extern const struct ipu__pipeline_rules ipu__pipeline_rules[IPU_PIPELINE_KINDS];

/* ipu_pipeline_order.c */
void ipu__order_gpipe(const struct ipu_pipeline *pipeline, int stage,
		      struct ipu_pipeline_work *out);
void ipu__order_1f1b(const struct ipu_pipeline *pipeline, int stage, struct ipu_pipeline_work *out);
void ipu__order_1f1b_interleaved(const struct ipu_pipeline *pipeline, int stage,
				 struct ipu_pipeline_work *out);
void ipu__order_zb_h1(const struct ipu_pipeline *pipeline, int stage,
		      struct ipu_pipeline_work *out);
void ipu__order_zb_h2(const struct ipu_pipeline *pipeline, int stage,
		      struct ipu_pipeline_work *out);

/* ipu_pipeline_simulate.c: give the works, which are in their order, their times. */
enum status ipu__pipeline_events(struct ipu_pipeline *pipeline,
				 const struct ipu_pipeline_params *params, struct err *err);
/* The same in the steps of @schedule, whose works are pipeline->works one by one. */
enum status ipu__pipeline_lockstep(struct ipu_pipeline *pipeline,
				   const struct ipu_pipeline_params *params,
				   const struct ipu_schedule *schedule, struct err *err);

#endif /* IPU_PIPELINE_INTERNAL_H */
