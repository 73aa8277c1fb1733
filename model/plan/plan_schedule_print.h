/*
 * What `ipu-plan schedule` prints: one schedule or all of them, for people or as JSON.
 */
#ifndef PLAN_SCHEDULE_PRINT_H
#define PLAN_SCHEDULE_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "ipu/ipu_pipeline.h"

struct plan_schedule_style {
	int width; /* columns of text */
	bool colour, unicode;
	bool timeline; /* JSON: with the works */
	bool halved;   /* a split schedule's B and W are halves of a backward given as one */
	bool hops;     /* communication takes time */
};

/* A schedule that was simulated, or the rule that forbids it. */
struct plan_schedule_row {
	enum ipu_schedule_kind kind;
	struct ipu_pipeline *pipeline; /* NULL: forbidden */
	struct err refusal;
};

/* Both return ST_NOMEM or ST_IO where it could not be printed. */
enum status plan_schedule_text(const struct ipu_pipeline *pipeline,
			       const struct plan_schedule_style *style, FILE *out, struct err *err);
enum status plan_schedule_json(const struct ipu_pipeline *pipeline,
			       const struct plan_schedule_style *style, FILE *out, struct err *err);

/* The same for the @count rows of a comparison; JSON is a list. */
enum status plan_schedule_text_all(const struct plan_schedule_row *rows, int count,
				   const struct plan_schedule_style *style, FILE *out,
				   struct err *err);
enum status plan_schedule_json_all(const struct plan_schedule_row *rows, int count,
				   const struct plan_schedule_style *style, FILE *out,
				   struct err *err);

#endif /* PLAN_SCHEDULE_PRINT_H */
