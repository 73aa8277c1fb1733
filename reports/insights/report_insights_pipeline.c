/*
 * Insights on the simulated pipeline: its ramps, its split, its schedule, idle IPUs.
 *
 * Threading: none. Ownership: texts belong to the insights' arena, or are literals.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/sat.h"
#include "common/str.h"
#include "ipu/ipu_pipeline.h"
#include "reports/insights/report_insights_internal.h"

/* ---- ramps ----------------------------------------------------------------------------------- */

/* Theoretical idle fraction for equal stages in which F, B and W take the same time. */
static double ramp_idle(const struct insight_facts *facts, int64_t microbatches)
{
	const int64_t stages = facts->summary.stages;
	const double all = (double)(stages - 1) / (double)(microbatches + stages - 1);
	double times[3 * IPU_PIPELINE_STAGES_MAX];
	const struct ipu_schedule_costs costs = {
		.forward = times, .backward = times + stages, .weight = times + 2 * stages};
	struct ipu_schedule_params params = {
		.stages = (int)stages, .microbatches = (int)microbatches, .training = true};
	struct ipu_schedule *schedule;
	struct ipu_bubble bubble;

	if (stages > IPU_PIPELINE_STAGES_MAX ||
	    ipu_schedule_kind_get(facts->summary.schedule, &params.kind, NULL) != ST_OK ||
	    !ipu_schedule_row(params.kind)->splits ||
	    ipu_schedule_new(&schedule, &params, NULL) != ST_OK)
		return all;
	for (int64_t i = 0; i < 3 * stages; i++)
		times[i] = 1e6;
	if (ipu_bubble_theory(schedule, &costs, &bubble, NULL) != ST_OK)
		bubble.idle_fraction = all;
	ipu_schedule_free(schedule);
	return bubble.idle_fraction;
}

/* Suggest about four times as many, in whole rounds; prefer a divisor of steps_per_execution. */
static int64_t more_microbatches(const struct insight_facts *facts, int64_t now, int64_t round)
{
	const int64_t steps = facts->options.known ? facts->options.steps_per_execution : 0;
	int64_t best = 0;

	for (int64_t more = (2 * now / round + (2 * now % round != 0)) * round; more <= 8 * now;
	     more += round) {
		const bool nearer = best == 0 || llabs(more - 4 * now) < llabs(best - 4 * now);

		if (steps > 0 && steps % more == 0 && nearer)
			best = more;
	}
	return best ? best : (4 * now + round - 1) / round * round;
}

static void suggest_more_microbatches(struct insight_facts *facts, struct report_insight *insight,
				      int64_t now, int64_t round)
{
	const int64_t more = more_microbatches(facts, now, round);
	const struct report_whatif_change change = {.microbatches = more};
	struct report_whatif_prediction predicted;

	char multiple[64] = "number";

	if (round > 1)
		snprintf(multiple, sizeof(multiple), "multiple of %" PRId64, round);
	insight->remedy = report__insight_text(
		facts,
		"`--gradient_accumulation.steps_per_replica %" PRId64 "`, or another %s that "
		"divides `compile.steps_per_execution`. Weights are then updated less often, "
		"which the learning rate must suit.",
		more, multiple);
	if (report__insight_predict(facts, &change, &predicted))
		report__insight_gain(facts, insight, &predicted);
}

void report__insight_ramps(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	const int64_t now = s->gradient_accumulation, stages = s->stages;
	int64_t round = 0; /* micro-batches of a round: the schedule's period; 0: no ramps */
	enum ipu_schedule_kind kind;
	struct report_insight *insight;
	char share[FMT_SIZE], here[FMT_SIZE], rounds[96] = "";
	double idle;

	if (s->schedule && ipu_schedule_kind_get(s->schedule, &kind, NULL) == ST_OK &&
	    ipu_schedule_row(kind)->pace != IPU_PACE_ALONE)
		round = ipu_schedule_multiple(&(struct ipu_schedule_params){
			.kind = kind, .stages = (int)stages, .training = true});
	if (facts->options.known && !facts->options.trains)
		return;
	if (round <= 0 || now < round || now > INSIGHT_MICROBATCHES_MAX)
		return;
	idle = ramp_idle(facts, now);
	if (now >= 2 * round && idle < report_insight_limit(REPORT_LIMIT_RAMP_IDLE))
		return;
	insight = report__insight_add(facts, "ramps", REPORT_INSIGHT_ADVICE, "bubbles",
				      "clock=device mode=train", report__insight_sql_bubbles);
	/* The measured ramps, not the theory for equal stages: the upper bound of the gain. */
	insight->share = s->bubble[1].known ? s->bubble[1].ramp_up + s->bubble[1].ramp_down : idle;
	fmt_percent(here, insight->share);
	if (round > 1)
		snprintf(rounds, sizeof(rounds),
			 " goes in rounds of %" PRId64 " micro-batches, and", round);
	else
		str_copy(rounds, sizeof(rounds), " fills and empties for each weight update, and");
	insight->sentence = report__insight_text(
		facts,
		now < 2 * round
			? "The pipeline never leaves its ramps: %s with %" PRId64
			  " stages%s a weight update has %" PRId64
			  ". It fills and empties with no steady part between: ramp-up and "
			  "ramp-down "
			  "are %s of the IPUs' time (simulated); the bubble would be %s by theory "
			  "if all stages were alike."
			: "Ramps are long: %s with %" PRId64
			  " stages%s a weight update has %" PRId64
			  ". Ramp-up and ramp-down are %s of the IPUs' time (simulated); the "
			  "bubble "
			  "would be %s by theory if all stages were alike.",
		s->schedule, stages, rounds, now, here, fmt_percent(share, idle));
	report__insight_number(insight, "micro_batches", (double)now, REPORT_COUNT);
	report__insight_number(insight, "round", (double)round, REPORT_COUNT);
	report__insight_number(insight, "theory_ramp_idle_fraction", idle, REPORT_FRACTION);
	if (s->bubble[1].known)
		report__insight_number(insight, "ramp_share",
				       s->bubble[1].ramp_up + s->bubble[1].ramp_down,
				       REPORT_FRACTION);
	suggest_more_microbatches(facts, insight, now, round);
}

/* ---- the split ------------------------------------------------------------------------------- */

static const char *stage_layers(const struct insight_facts *facts, int64_t stage)
{
	for (int64_t i = 0; i < facts->summary.stages; i++)
		if (facts->summary.stage[i].stage == stage && facts->summary.stage[i].layers)
			return facts->summary.stage[i].layers;
	return "its layers";
}

/* Shorten a long list of layers. */
static const char *layers_text(struct insight_facts *facts, const char *layers)
{
	char cut[64];

	str_copy(cut, sizeof(cut), layers);
	return report__insight_text(facts, "%s%s", cut, strlen(layers) > strlen(cut) ? "..." : "");
}

void report__insight_slow_stage(struct insight_facts *facts)
{
	const struct report_whatif_change change = {.split = "auto"};
	struct report_whatif_prediction predicted;
	struct report_insight *insight;
	char work[FMT_SIZE], more[FMT_SIZE];
	double all, mean, imbalance;
	const struct insight_stage *most = report__insight_slowest(facts, 1, &all);
	bool better;

	if (!most || most->microbatches <= 0 || !(all > 0))
		return;
	mean = all / facts->stage_count[1];
	imbalance = most->work_ns / mean - 1;
	better =
		report__insight_predict(facts, &change, &predicted) && *predicted.split &&
		report__insight_saved(facts, &predicted) >= report_insight_limit(REPORT_LIMIT_GAIN);
	if (!better && imbalance < report_insight_limit(REPORT_LIMIT_IMBALANCE))
		return;
	insight = report__insight_add(facts, "slow_stage", REPORT_INSIGHT_ADVICE, "stage_sums",
				      "clock=device mode=train", report__insight_sql_stages);
	report__insight_subject(facts, insight, "stage", most->stage);
	insight->sentence = report__insight_text(
		facts,
		"Stage %" PRId64 " (%s) is the slowest: %s for each micro-batch, %s more than the "
		"mean of the %d stages (simulated). The others wait for it.%s",
		most->stage, layers_text(facts, stage_layers(facts, most->stage)),
		fmt_ns(work, sat_real(most->work_ns / (double)most->microbatches)),
		fmt_percent(more, imbalance), facts->stage_count[1],
		better || !facts->whatif ? ""
					 : " No other cut of the layers, in their order, is much "
					   "faster.");
	report__insight_number(insight, "stage_ns", most->work_ns / (double)most->microbatches,
			       REPORT_NS);
	report__insight_number(insight, "imbalance", imbalance, REPORT_FRACTION);
	insight->share = 1 - mean / most->work_ns;
	if (better) {
		/* The split without its first layer, which always begins stage 0. */
		const char *comma = strchr(predicted.split, ',');

		report__insight_gain(facts, insight, &predicted);
		insight->share = report__insight_saved(facts, &predicted);
		insight->remedy =
			report__insight_text(facts,
					     "`--pipeline.stages auto --pipeline.auto_stages "
					     "%d`, which begins stages at %.200s.",
					     predicted.stages, comma ? comma + 1 : predicted.split);
	}
}

/* ---- the schedule ---------------------------------------------------------------------------- */

void report__insight_other_schedule(struct insight_facts *facts)
{
	static const char *const names[] = {"Grouped", "Interleaved", "Sequential"};
	const struct report_whatif_prediction *measured = report_whatif_measured(facts->whatif);
	struct report_whatif_prediction predicted, best = {0};
	struct report_insight *insight;
	const char *name = NULL;
	char now[FMT_SIZE], then[FMT_SIZE], gain[FMT_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct report_whatif_change change = {.schedule = names[i]};

		if (!strcmp(names[i], ipu_schedule_name(measured->schedule)) ||
		    !report__insight_predict(facts, &change, &predicted) ||
		    (name && predicted.step_ns >= best.step_ns))
			continue;
		best = predicted;
		name = names[i];
	}
	if (!name || report__insight_saved(facts, &best) < report_insight_limit(REPORT_LIMIT_GAIN))
		return;
	insight = report__insight_add(facts, "other_schedule", REPORT_INSIGHT_ADVICE, "bubbles",
				      "clock=device mode=train", report__insight_sql_bubbles);
	insight->subject_kind = "schedule";
	insight->subject = ipu_schedule_name(measured->schedule);
	report__insight_gain(facts, insight, &best);
	insight->share = report__insight_saved(facts, &best);
	insight->sentence = report__insight_text(
		facts,
		"With the same stages and micro-batches the schedule %s would take %s for each "
		"step where %s takes %s: %s less (simulated).",
		name, fmt_ns(then, (int64_t)best.step_ns), ipu_schedule_name(measured->schedule),
		fmt_ns(now, (int64_t)measured->step_ns), fmt_percent(gain, insight->share));
	report__insight_number(insight, "faster", insight->share, REPORT_FRACTION);
	insight->remedy = report__insight_text(facts, "`--pipeline.schedule %s`.", name);
}

void report__insight_one_ipu(struct insight_facts *facts)
{
	const struct report_whatif_prediction *measured = report_whatif_measured(facts->whatif);
	const struct report_whatif_change change = {.stages = 1};
	struct report_whatif_prediction predicted;
	struct report_insight *insight;
	char now[FMT_SIZE], then[FMT_SIZE];

	if (!report__insight_predict(facts, &change, &predicted) ||
	    report__insight_saved(facts, &predicted) < 0)
		return;
	insight = report__insight_add(facts, "one_ipu", REPORT_INSIGHT_ADVICE, "bubbles",
				      "clock=device mode=train", report__insight_sql_bubbles);
	report__insight_gain(facts, insight, &predicted);
	insight->share = report__insight_saved(facts, &predicted);
	insight->sentence = report__insight_text(
		facts,
		"The pipeline does not pay: one IPU that does all layers alone would take %s for "
		"each step where %d IPUs take %s (simulated).",
		fmt_ns(then, (int64_t)predicted.step_ns), measured->stages,
		fmt_ns(now, (int64_t)measured->step_ns));
	report__insight_number(insight, "faster", insight->share, REPORT_FRACTION);
	insight->remedy = report__insight_text(
		facts,
		"`--pipeline null --ipu.auto_select_ipus 1`; with `--ipu.auto_select_ipus %d` that "
		"makes %d replicas. Pipelines are for models that do not fit one IPU.",
		measured->stages, measured->stages);
}

/* ---- idle IPUs ------------------------------------------------------------------------------- */

void report__insight_idle_ipu(struct insight_facts *facts)
{
	const struct insight_time *most = report__insight_most(facts, 1, INSIGHT_IDLE);
	struct report_insight *insight;
	char idle[FMT_SIZE], compute[FMT_SIZE];

	if (!most || most->share[INSIGHT_IDLE] < report_insight_limit(REPORT_LIMIT_IDLE_IPU))
		return;
	insight = report__insight_add(facts, "idle_ipu", REPORT_INSIGHT_ADVICE, "time_split",
				      "clock=device", report__insight_sql_time);
	report__insight_subject(facts, insight, "ipu", most->ipu);
	insight->share = most->share[INSIGHT_IDLE];
	insight->sentence = report__insight_text(
		facts,
		"IPU %" PRId64 " is waiting for %s of the time of executions, and computes for %s "
		"(simulated).",
		most->ipu, fmt_percent(idle, most->share[INSIGHT_IDLE]),
		fmt_percent(compute, most->share[INSIGHT_COMPUTE]));
	report__insight_number(insight, "waiting_share", most->share[INSIGHT_IDLE],
			       REPORT_FRACTION);
	report__insight_number(insight, "compute_share", most->share[INSIGHT_COMPUTE],
			       REPORT_FRACTION);
	insight->remedy = "More layers for its stage (`--pipeline.stages`), more micro-batches "
			  "(`--gradient_accumulation.steps_per_replica`), or fewer IPUs.";
}
