/*
 * Keras for IPU's rules of the IPUs: which stage is on which, how many a replica takes, and which
 * of the options of memory and tiles go together.
 *
 * Threading: none. Every failed rule names the key at fault and what would work.
 */
#include <string.h>

#include "ipu/ipu_target.h"
#include "model/layers/layer.h"
#include "model/run/run_rules_internal.h"

/* ---- stages on IPUs -------------------------------------------------------------------------- */

/* Which stages may share an IPU is the schedule's. */
static enum status run_mapping_shared(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	const struct run_layout *layout = rules->layout;
	const struct ipu_schedule_params params = {.kind = run->pipeline.schedule,
						   .stages = layout->stages,
						   .training = run->fit.wanted,
						   .ipus = layout->ipus_used,
						   .device = layout->device};
	struct err why;

	if (ipu_schedule_check_stages(&params, &why) == ST_OK)
		return ST_OK;
	for (int s = 0;
	     ipu_schedule_row(params.kind)->sharing != IPU_SHARE_IN_TURN && s < params.stages; s++)
		for (int other = 0; other < s; other++)
			if (params.device[other] == params.device[s])
				return run__refuse(rules, "pipeline.device_mapping",
						   "stages %d and %d are both on IPU %d, but "
						   "%s training needs an IPU for each stage; give "
						   "each its own, or take Grouped or Sequential",
						   other, s, params.device[s],
						   ipu_schedule_name(params.kind));
	return run__refuse(rules, "pipeline.device_mapping", "%s", why.text);
}

enum status run__rule_mapping(struct run_rules *rules)
{
	const struct run_ints *mapping = &rules->run->pipeline.device_mapping;
	const bool mapped = rules->run->pipeline.wanted && mapping->given;
	struct run_layout *layout = rules->layout;

	if (mapped && mapping->count != layout->stages)
		return run__refuse(rules, "pipeline.device_mapping",
				   "has %d entr%s, but the pipeline has %d stages; give each its "
				   "IPU",
				   mapping->count, mapping->count == 1 ? "y" : "ies",
				   layout->stages);
	for (int s = 0; s < layout->stages; s++) {
		layout->device[s] = mapped ? mapping->items[s] : s;
		if (layout->device[s] >= layout->ipus_used)
			layout->ipus_used = layout->device[s] + 1;
	}
	return rules->run->pipeline.wanted ? run_mapping_shared(rules) : ST_OK;
}

/* ---- IPUs and replicas ----------------------------------------------------------------------- */

static enum status run_too_few(struct run_rules *rules)
{
	const struct run_layout *layout = rules->layout;

	if (rules->run->pipeline.device_mapping.given)
		return run__refuse(rules, "ipu.auto_select_ipus",
				   "%d attached, but pipeline.device_mapping goes up to IPU %d and "
				   "so needs %d (rounded up to a power of two): give a multiple of "
				   "%d",
				   layout->ipus, layout->ipus_used - 1, layout->ipus_per_replica,
				   layout->ipus_per_replica);
	return run__refuse(rules, "ipu.auto_select_ipus",
			   "%d attached, but a pipeline of %d stages needs %d (stages rounded up "
			   "to a power of two): give a multiple of %d",
			   layout->ipus, layout->stages, layout->ipus_per_replica,
			   layout->ipus_per_replica);
}

enum status run__rule_ipus(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	int unused;

	layout->replicas = 1;
	layout->ipus_per_replica = 1;
	if (!run->ipu.wanted) {
		if (run->pipeline.wanted)
			return run__refuse(rules, "pipeline",
					   "needs IPUs, but \"ipu\" is null: set pipeline to null "
					   "too, or give ipu.auto_select_ipus");
		return ST_OK;
	}

	while (layout->ipus_per_replica < layout->ipus_used)
		layout->ipus_per_replica *= 2;
	layout->ipus = (int)run->ipu.auto_select_ipus;
	layout->replicas = layout->ipus / layout->ipus_per_replica;
	if (!layout->replicas)
		return run_too_few(rules);

	unused = layout->ipus - layout->replicas * layout->ipus_per_replica;
	if (unused)
		str_addf(&rules->warnings,
			 "ipu.auto_select_ipus: %d of %d IPUs stay idle: each replica takes %d.\n",
			 unused, layout->ipus, layout->ipus_per_replica);
	return ST_OK;
}

/* ---- I/O tiles ------------------------------------------------------------------------------- */

enum status run__rule_io_tiles(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	const int64_t tiles = run->ipu.io_tiles.num_io_tiles;
	struct ipu_target target;
	enum status status;

	if (!run->ipu.wanted)
		return ST_OK;
	if (!tiles)
		return !run->ipu.io_tiles.place_ops_on_io_tiles
			       ? ST_OK
			       : run__refuse(rules, "ipu.io_tiles.place_ops_on_io_tiles",
					     "is true, but there are no I/O tiles: give "
					     "ipu.io_tiles.num_io_tiles (32, for one)");
	status = ipu_target_get(run->ipu.target, run->ipu.tiles_per_ipu, &target, rules->err);
	if (status != ST_OK)
		return status;
	if (tiles >= target.tiles)
		return run__refuse(rules, "ipu.io_tiles.num_io_tiles",
				   "%lld of the %lld tiles of an IPU leave none to compute; at "
				   "most %lld would do",
				   (long long)tiles, (long long)target.tiles,
				   (long long)target.tiles - 1);
	if (run->pipeline.wanted && ipu_schedule_row(run->pipeline.schedule)->pace != IPU_PACE_BOTH)
		return run__refuse(rules, "ipu.io_tiles.num_io_tiles",
				   "a pipeline has I/O tiles with the schedule Grouped alone, not "
				   "with %s; set it to 0, or take Grouped",
				   ipu_schedule_name(run->pipeline.schedule));
	return ST_OK;
}

/* ---- recomputation --------------------------------------------------------------------------- */

enum status run__rule_recompute(struct run_rules *rules)
{
	static const struct {
		const char *name;
		unsigned replay;
	} modes[] = {
		[RUN_RECOMPUTE_AUTO] = {"Auto", IPU_REPLAY_AHEAD | IPU_REPLAY_LATE},
		[RUN_RECOMPUTE_THEN_BACKPROPAGATE] = {"RecomputeThenBackpropagate",
						      IPU_REPLAY_AHEAD},
		[RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED] =
			{"RecomputeAndBackpropagateInterleaved", IPU_REPLAY_LATE},
	};
	const struct run_file *run = rules->run;
	const enum run_recomputation mode = run->pipeline.recomputation_mode;
	const unsigned replays = ipu_schedule_row(run->pipeline.schedule)->replays;
	const int other = replays & IPU_REPLAY_AHEAD ? RUN_RECOMPUTE_THEN_BACKPROPAGATE
						     : RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
	struct str names = {0};
	enum status status;

	if (run->ipu.wanted && run->ipu.allow_recompute && !run->pipeline.wanted)
		str_addf(&rules->warnings, "ipu.allow_recompute: has no effect without a pipeline: "
					   "all activations are kept.\n");
	if (!run->pipeline.wanted || (mode == RUN_RECOMPUTE_AUTO && !run->ipu.allow_recompute))
		return ST_OK;
	if (!run->ipu.allow_recompute)
		return run__refuse(rules, "pipeline.recomputation_mode",
				   "%s needs ipu.allow_recompute to be true", modes[mode].name);
	if (replays == 0)
		return run__refuse(rules, "ipu.allow_recompute",
				   "is true, but the schedule %s reads activations once more for "
				   "the gradients of the weights, so none can be let go; set it to "
				   "false, or take Grouped",
				   ipu_schedule_name(run->pipeline.schedule));
	if (replays & modes[mode].replay)
		return ST_OK;
	for (int k = 0; k < IPU_SCHEDULE_KINDS; k++)
		if (ipu_schedule_row((enum ipu_schedule_kind)k)->replays & modes[mode].replay)
			str_addf(&names, "%s%s", names.length > 0 ? ", " : "",
				 ipu_schedule_name((enum ipu_schedule_kind)k));
	status = run__refuse(rules, "pipeline.recomputation_mode",
			     "%s is for the schedules %s, not for %s; take %s", modes[mode].name,
			     str_peek(&names), ipu_schedule_name(run->pipeline.schedule),
			     modes[other].name);
	str_free(&names);
	return status;
}

/* ---- what lies elsewhere --------------------------------------------------------------------- */

/* A share of one replica is all of it. */
static void run_tell_sharding(struct run_rules *rules, const char *key, enum run_maybe asked)
{
	if (asked == RUN_YES && rules->layout->replicas == 1)
		str_addf(&rules->warnings,
			 "%s: has no effect: there is one replica, which keeps all.\n", key);
}

/* The numbers are those of the host, which does update them. */
static void run_tell_moving_statistics(struct run_rules *rules)
{
	const struct model *model = rules->model;

	for (int i = 0; i < model->layer_count; i++) {
		if (strcmp(model_layer_class(&model->layers[i]), "BatchNormalization") != 0)
			continue;
		str_addf(&rules->warnings,
			 "pipeline: BatchNormalization (layer \"%s\") does not update its moving "
			 "statistics properly in a pipeline of Keras for IPUs; here they are "
			 "updated in the order of the micro-batches.\n",
			 model->layers[i].name);
		return;
	}
}

enum status run__rule_moving(struct run_rules *rules)
{
	const struct run_file *run = rules->run;

	if (!run->pipeline.wanted)
		return ST_OK;
	if (run->pipeline.offload_activations == RUN_YES &&
	    ipu_schedule_row(run->pipeline.schedule)->pace == IPU_PACE_ALONE)
		return run__refuse(rules, "pipeline.offload_activations",
				   "the schedule %s has no activations that wait: set it to false, "
				   "or take Grouped or Interleaved",
				   ipu_schedule_name(run->pipeline.schedule));
	run_tell_sharding(rules, "pipeline.replicated_optimizer_state_sharding",
			  run->pipeline.replicated_optimizer_state_sharding);
	run_tell_sharding(rules, "pipeline.replicated_weight_sharding",
			  run->pipeline.replicated_weight_sharding);
	if (run->pipeline.accumulate_outfeed && run->fit.wanted && run->fit.asynchronous_callbacks)
		str_addf(
			&rules->warnings,
			"fit.asynchronous_callbacks: is ignored: pipeline.accumulate_outfeed sends "
			"no results of single steps.\n");
	if (run->fit.wanted)
		run_tell_moving_statistics(rules);
	return ST_OK;
}

/* ---- options of single stages ---------------------------------------------------------------- */

enum status run__rule_plans(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	const struct {
		const char *key;
		const struct run_poplars *poplars;
	} lists[] = {
		{"pipeline.forward_propagation_stages_poplar_options",
		 &run->pipeline.forward_options},
		{"pipeline.backward_propagation_stages_poplar_options",
		 &run->pipeline.backward_options},
	};

	for (size_t i = 0; run->pipeline.wanted && i < 2; i++)
		if (lists[i].poplars->given && lists[i].poplars->count != rules->layout->stages)
			return run__refuse(rules, lists[i].key,
					   "has %d entr%s, but the pipeline has %d stages; give "
					   "each an object or null",
					   lists[i].poplars->count,
					   lists[i].poplars->count == 1 ? "y" : "ies",
					   rules->layout->stages);
	return ST_OK;
}
