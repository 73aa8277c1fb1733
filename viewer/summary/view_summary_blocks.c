/*
 * The Summary's blocks, from the numbers of report_summary.
 *
 * Threading: one thread. Ownership: texts are the blocks' arena's.
 */
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/summary/view_summary_internal.h"

#define NAME_WIDTH 16
#define RULE_WIDTH 22 /* of "saturated_activation" */

/* ---- places that the cursor stops at --------------------------------------------------------- */

struct view_place *view__summary_link(struct view_summary *screen, enum view_screen leads)
{
	struct view_place *place;

	if (screen->link_count == VIEW_SUMMARY_LINKS)
		return NULL;
	screen->leads[screen->link_count] = (int)leads;
	place = &screen->links[screen->link_count++];
	view_place_clear(place);
	view_blocks_link(&screen->blocks, screen->link_count);
	return place;
}

static void view_link_stage(struct view_summary *screen, const struct report_stage *stage,
			    int clock)
{
	struct view_place *place = view__summary_link(screen, VIEW_SCREENS);

	if (!place)
		return;
	place->stage = stage->stage;
	place->ipu = stage->ipu;
	view_place_text(place->clock, clock ? "device" : "host");
	view_place_text(place->view, "stage_sums");
	snprintf(place->keys, sizeof(place->keys), "clock=%s stage=%lld", clock ? "device" : "host",
		 (long long)stage->stage);
}

static void view_link_metric(struct view_summary *screen, const char *metric, bool known)
{
	struct view_place *place = known ? view__summary_link(screen, VIEW_SCREENS) : NULL;

	if (!place)
		return;
	view_place_text(place->metric, metric);
	view_place_text(place->mode, "train");
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void view__summary_fact(struct view_summary *screen, const char *name, int name_width,
			const char *value)
{
	struct view_blocks *blocks = &screen->blocks;

	if (value && value[0])
		view_blocks_fold(blocks, name, VIEW_NORMAL,
				 view_blocks_line_width(blocks, false, screen->width) - name_width,
				 value);
}

static void view_add_count(struct view_blocks *blocks, const char *name, int64_t value)
{
	char text[FMT_SIZE];

	if (value != IPS_NULL && value > 0)
		view_blocks_fact(blocks, name, VIEW_NORMAL, "%s", fmt_count(text, value));
}

/* @bad: it is known, and no number. */
static void view_add_loss(struct view_blocks *blocks, const char *name, double value, bool bad)
{
	char text[FMT_SIZE];

	if (bad)
		view_blocks_fact(blocks, name, VIEW_BAD, "nan");
	else if (!isnan(value))
		view_blocks_fact(blocks, name, VIEW_BOLD, "%s", fmt_real(text, value));
}

static void view_block_run(struct view_summary *screen, enum view_state state)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;
	static const enum view_style styles[] = {[VIEW_RECORDING] = VIEW_WARN,
						 [VIEW_CLOSING] = VIEW_WARN,
						 [VIEW_KILLED] = VIEW_BAD,
						 [VIEW_COMPLETE] = VIEW_GOOD};
	char text[FMT_SIZE];

	view_blocks_begin(blocks, "Run", NAME_WIDTH);
	view__summary_fact(screen, "model", NAME_WIDTH, summary->model);
	view_blocks_fact(blocks, "state", styles[state], "%s",
			 summary->state ? summary->state : view_state_text(state));
	view__summary_fact(screen, "command", NAME_WIDTH, summary->command);
	if (report_summary_started(summary, text))
		view_blocks_fact(blocks, "started", VIEW_NORMAL, "%s (local)", text);
	if (summary->duration_ns > 0)
		view_blocks_fact(blocks, "duration", VIEW_NORMAL, "%s (host)",
				 fmt_ns(text, summary->duration_ns));
	if (summary->ranks > 1)
		view_blocks_fact(blocks, "ranks", VIEW_NORMAL, "%s, counted and added up together",
				 fmt_count(text, summary->ranks));
	view_add_count(blocks, "epochs", summary->epochs);
	view_add_count(blocks, "executions", summary->executions);
	if (summary->traced > 0 && summary->untraced > 0)
		view_blocks_fact(blocks, "device lanes", VIEW_NORMAL,
				 summary->ranks > 1 ? "hold %s of them"
						    : "hold the first %s of them",
				 fmt_count(text, summary->traced));
	view_add_count(blocks, "steps", summary->steps);
	view_add_count(blocks, "weight updates", summary->weight_updates);
}

static void view_block_training(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;
	char text[FMT_SIZE];

	if (!summary->loss_nan && !summary->evaluate_loss_nan && isnan(summary->loss) &&
	    isnan(summary->accuracy) && isnan(summary->evaluate_loss) &&
	    isnan(summary->evaluate_accuracy))
		return;
	view_blocks_begin(blocks, "Training", NAME_WIDTH);
	view_add_loss(blocks, "loss", summary->loss, summary->loss_nan);
	view_link_metric(screen, "loss", summary->loss_nan || !isnan(summary->loss));
	if (!isnan(summary->accuracy))
		view_blocks_bar(blocks, "accuracy", VIEW_GOOD, summary->accuracy, NAN, "%s",
				fmt_percent(text, summary->accuracy));
	view_link_metric(screen, "accuracy", !isnan(summary->accuracy));
	view_add_loss(blocks, "evaluation loss", summary->evaluate_loss,
		      summary->evaluate_loss_nan);
	if (!isnan(summary->evaluate_accuracy))
		view_blocks_bar(blocks, "evaluation acc.", VIEW_GOOD, summary->evaluate_accuracy,
				NAN, "%s", fmt_percent(text, summary->evaluate_accuracy));
}

static void view_add_share(struct view_blocks *blocks, const char *name, double value,
			   double theory)
{
	char text[FMT_SIZE], ideal[FMT_SIZE];

	if (isnan(value))
		return;
	if (isnan(theory))
		view_blocks_bar(blocks, name, VIEW_BUBBLE, value, NAN, "%s",
				fmt_percent(text, value));
	else
		view_blocks_bar(blocks, name, VIEW_BUBBLE, value, theory, "%s theory %s",
				fmt_percent(text, value), fmt_percent(ideal, theory));
}

static void view_block_bubble(struct view_blocks *blocks, const struct report_bubble_mean *bubble,
			      const char *title)
{
	char text[FMT_SIZE];
	double together;

	if (!bubble->known)
		return;
	view_blocks_begin(blocks, title, NAME_WIDTH);
	view_blocks_fact(blocks, "pipeline runs", VIEW_NORMAL, "%s (mean of runs; mark: theory)",
			 fmt_count(text, bubble->runs));
	view_add_share(blocks, "idle fraction", bubble->idle_fraction,
		       bubble->theory_idle_fraction);
	view_add_share(blocks, "bubble rate", bubble->bubble_rate, bubble->theory_bubble_rate);
	view_add_share(blocks, "over ideal", bubble->bubble_over_ideal,
		       bubble->theory_bubble_over_ideal);
	/* Not a part of the means above: each run counts for as long as it took. */
	together = bubble->ramp_up + bubble->ramp_down + bubble->imbalance + bubble->communication;
	if (!isnan(together))
		view_blocks_bar(blocks, "idle, by cause", VIEW_BUBBLE, together, NAN,
				"%s runs together", fmt_percent(text, together));
	view_add_share(blocks, "  ramp-up", bubble->ramp_up, NAN);
	view_add_share(blocks, "  ramp-down", bubble->ramp_down, NAN);
	view_add_share(blocks, "  imbalance", bubble->imbalance, NAN);
	view_add_share(blocks, "  communication", bubble->communication, NAN);
}

/* The greatest sum of a phase on a clock, as the full bar. */
static double view_greatest_phase(const struct report_summary *summary, int clock)
{
	double greatest = 1;

	for (int64_t i = 0; i < summary->stages; i++) {
		greatest = fmax(greatest, (double)summary->stage[i].forward_ns[clock]);
		greatest = fmax(greatest, (double)summary->stage[i].backward_ns[clock]);
		greatest = fmax(greatest, (double)summary->stage[i].update_ns[clock]);
	}
	return greatest;
}

int64_t view__summary_slowest(const struct report_summary *summary, int clock)
{
	int64_t most = -1, slowest = -1;

	for (int64_t i = 0; i < summary->stages; i++) {
		const struct report_stage *stage = &summary->stage[i];
		const int64_t sum =
			sat_add(sat_add(stage->forward_ns[clock], stage->backward_ns[clock]),
				stage->update_ns[clock]);

		if (sum > most)
			slowest = i;
		most = max(sum, most);
	}
	return summary->stages > 1 ? slowest : -1;
}

static void view_block_stages(struct view_summary *screen, int clock)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;
	const double greatest = view_greatest_phase(summary, clock);
	const int64_t slowest = view__summary_slowest(summary, clock);
	char text[FMT_SIZE];

	if (summary->stages < 1 || !summary->stage || greatest <= 1)
		return;
	view_blocks_begin(blocks,
			  clock ? "Stages in training: device time (simulated)"
				: "Stages in training: host time",
			  NAME_WIDTH);
	if (summary->replicas > 1)
		view_blocks_text(blocks, VIEW_NORMAL, "of %s replicas, added up; IPUs of the first",
				 fmt_count(text, summary->replicas));
	for (int64_t i = 0; i < summary->stages; i++) {
		const struct report_stage *stage = &summary->stage[i];
		const struct {
			const char *name;
			enum view_style style;
			int64_t ns;
		} phases[] = {{"  F forward", VIEW_FORWARD_TEXT, stage->forward_ns[clock]},
			      {"  B backward", VIEW_BACKWARD_TEXT, stage->backward_ns[clock]},
			      {"  U update", VIEW_UPDATE_TEXT, stage->update_ns[clock]}};

		view_blocks_text(blocks, VIEW_BOLD, "stage %lld on IPU %lld%s",
				 (long long)stage->stage, (long long)stage->ipu,
				 i == slowest ? ", the slowest" : "");
		view_link_stage(screen, stage, clock);
		view__summary_fact(screen, "  layers", NAME_WIDTH, stage->layers);
		for (size_t p = 0; p < ARRAY_LEN(phases); p++)
			if (phases[p].ns > 0)
				view_blocks_bar(blocks, phases[p].name, phases[p].style,
						(double)phases[p].ns / greatest, NAN, "%s",
						fmt_ns(text, phases[p].ns));
	}
}

static void view_add_bad(struct view_summary *screen)
{
	const struct report_bad *bad = &screen->summary.bad;
	const bool stepped = bad->step != IPS_NULL;
	struct view_place *place;

	if (!bad->known)
		return;
	view_blocks_fact(&screen->blocks, "first bad number", VIEW_BAD, "%s in %s, %s %lld",
			 bad->value ? bad->value : "?", bad->key ? bad->key : "?",
			 stepped ? "step" : "weight update",
			 (long long)(stepped ? bad->step : bad->weight_update));
	place = view__summary_link(screen, VIEW_SCREENS);
	if (!place)
		return;
	view_place_text(place->key, bad->key);
	view_place_text(place->layer, bad->layer);
	view_place_text(place->phase, bad->phase);
	place->step = bad->step;
	place->weight_update = bad->weight_update;
	place->microbatch = bad->microbatch;
	place->stage = bad->stage;
	place->replica = bad->replica;
	place->time_ns = bad->time_ns;
	view_place_text(place->clock, "host");
}

static void view_add_broken(struct view_summary *screen, const struct report_broken *broken)
{
	const bool stepped = broken->step != IPS_NULL;
	char text[FMT_SIZE];
	struct view_place *place;

	view_blocks_fact(&screen->blocks, broken->rule, VIEW_WARN, "%s hit%s, first in %s %lld%s%s",
			 fmt_count(text, broken->hits), broken->hits == 1 ? "" : "s",
			 stepped ? "step" : "weight update",
			 (long long)(stepped ? broken->step : broken->weight_update),
			 broken->key ? ": " : "", broken->key ? broken->key : "");
	place = view__summary_link(screen, VIEW_SCREENS);
	if (!place)
		return;
	view_place_text(place->rule, broken->rule);
	view_place_text(place->key, broken->key);
	place->step = broken->step;
	place->weight_update = broken->weight_update;
	place->time_ns = broken->first_ns;
	view_place_text(place->clock, "host");
}

static void view_block_health(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;

	if (summary->rules <= 0 && summary->broken_count == 0 && !summary->bad.known)
		return;
	view_blocks_begin(&screen->blocks, "Health", RULE_WIDTH);
	if (summary->broken_count == 0)
		view_blocks_fact(&screen->blocks, "rules", VIEW_GOOD, "%lld in force, none broken",
				 (long long)summary->rules);
	view_add_bad(screen);
	for (int i = 0; i < summary->broken_count; i++)
		view_add_broken(screen, &summary->broken[i]);
}

static void view_block_recorded(struct view_blocks *blocks, const struct report_summary *summary)
{
	char text[FMT_SIZE];

	view_blocks_begin(blocks, "Recorded", NAME_WIDTH);
	view_add_count(blocks, "spans", summary->spans);
	view_add_count(blocks, "events", summary->events);
	if (summary->dropped > 0)
		view_blocks_fact(blocks, "dropped", VIEW_BAD, "%s",
				 fmt_count(text, summary->dropped));
	else
		view_blocks_fact(blocks, "dropped", VIEW_NORMAL, "none");
	view_add_count(blocks, "tensors", summary->tensors);
	view_add_count(blocks, "tensor rows", summary->tensor_rows);
	if (summary->database_bytes > 0)
		view_blocks_fact(blocks, "database", VIEW_NORMAL, "%s",
				 fmt_bytes(text, (uint64_t)summary->database_bytes));
	if (!isnan(summary->overhead_fraction))
		view_blocks_fact(blocks, "own cost", VIEW_NORMAL, "%s of the run",
				 fmt_percent(text, summary->overhead_fraction));
}

void view__summary_fill(struct view_summary *screen, const struct view_source *source)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;

	view_blocks_clear(blocks);
	screen->link_count = 0;
	blocks->heads = 1 + screen->now.live;
	view__summary_live(screen);
	view__summary_glance(screen);
	view_block_bubble(blocks, &summary->bubble[1], "Pipeline bubble: device (simulated)");
	view_block_stages(screen, 1);
	view_block_training(screen);
	view_block_health(screen);
	view_block_bubble(blocks, &summary->bubble[0], "Pipeline bubble: host");
	view_block_stages(screen, 0);
	view_block_run(screen, source->state);
	view_block_recorded(blocks, summary);
	view__summary_made(screen, source->path);
}
