/*
 * What the rules' sources share.
 */
#ifndef RUN_RULES_INTERNAL_H
#define RUN_RULES_INTERNAL_H

#include "common/str.h"
#include "model/run/run_rules.h"

/* A layout in the making. */
struct run_rules {
	const struct run_file *run;
	struct model *model;
	int64_t train_items, test_items;
	const struct run_splitter *splitter;
	struct run_layout *layout;
	struct str warnings, notes;
	bool advised; /* that executions of one step are slow */
	struct err *err;
};

/* Fail with "FILE: @key: ..."; returns ST_INVALID. */
enum status run__refuse(const struct run_rules *rules, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * IPUs and what is done on them, the stages being known: device_mapping; IPUs and replicas; I/O
 * tiles; recomputation; what moves between the IPUs' and other memory; options of single stages.
 */
enum status run__rule_mapping(struct run_rules *rules);
enum status run__rule_ipus(struct run_rules *rules);
enum status run__rule_io_tiles(struct run_rules *rules);
enum status run__rule_recompute(struct run_rules *rules);
enum status run__rule_moving(struct run_rules *rules);
enum status run__rule_plans(struct run_rules *rules);

/* Steps and executions of each mode, the layout's replicas, stages and accumulation being known. */
enum status run__rule_fit(struct run_rules *rules);
enum status run__rule_repeat(struct run_rules *rules);
enum status run__rule_evaluate(struct run_rules *rules);
enum status run__rule_predict(struct run_rules *rules);

#endif /* RUN_RULES_INTERNAL_H */
