/*
 * Keras's tables of a model: model.summary() and print_pipeline_stage_assignment_summary().
 */
#ifndef TRAIN_SUMMARY_H
#define TRAIN_SUMMARY_H

#include <stdio.h>

#include "model/model.h"
#include "model/run/run_rules.h"

/* @batch: of the input layer; 0: (None, ...). */
void train_summary_model(FILE *out, const struct model *model, int64_t batch);

/* Layers and the stages they are in; nothing without a pipeline. */
void train_summary_stages(FILE *out, const struct model *model, const struct run_layout *layout);

#endif /* TRAIN_SUMMARY_H */
