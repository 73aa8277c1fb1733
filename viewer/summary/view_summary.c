/*
 * The screen Summary: the numbers of report_summary, as blocks.
 *
 * What grows with the run is added up for a short while per load: the first picture is there at
 * once, however long the run, and the sums follow.
 *
 * Threading: one thread. Ownership: the state owns its summary, its sums and its blocks.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "reports/summary/report_summary.h"
#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_table.h"

#define NAME_WIDTH 16
#define BUDGET_NS  (25 * UINT64_C(1000000)) /* of adding up, per load */

struct view_summary {
	struct report_summary summary;
	struct report_sums sums;
	struct view_blocks blocks;
};

static enum status view_summary_open(void **state, struct view_context *context, struct err *err)
{
	(void)context;
	*state = mem_calloc(1, sizeof(struct view_summary));
	return *state ? ST_OK : err_nomem(err);
}

static void view_summary_close(void *state)
{
	struct view_summary *screen = state;

	if (!screen)
		return;
	report_summary_free(&screen->summary);
	report_sums_free(&screen->sums);
	view_blocks_fini(&screen->blocks);
	mem_free(screen);
}

static void view_add_fact(struct view_blocks *blocks, const char *name, const char *value)
{
	if (value && value[0])
		view_blocks_fact(blocks, name, VIEW_NORMAL, "%s", value);
}

static void view_add_count(struct view_blocks *blocks, const char *name, int64_t value)
{
	char text[FMT_SIZE];

	if (value != INT64_MIN && value > 0)
		view_blocks_fact(blocks, name, VIEW_NORMAL, "%s", fmt_count(text, value));
}

static void view_add_real(struct view_blocks *blocks, const char *name, double value)
{
	char text[FMT_SIZE];

	if (!isnan(value))
		view_blocks_fact(blocks, name, VIEW_BOLD, "%s", fmt_real(text, value));
}

static void view_block_run(struct view_blocks *blocks, const struct report_summary *summary,
			   enum view_state state)
{
	static const enum view_style styles[] = {[VIEW_RECORDING] = VIEW_WARN,
						 [VIEW_CLOSING] = VIEW_WARN,
						 [VIEW_KILLED] = VIEW_BAD,
						 [VIEW_COMPLETE] = VIEW_GOOD};
	char text[FMT_SIZE];

	view_blocks_begin(blocks, "Run", NAME_WIDTH);
	view_add_fact(blocks, "model", summary->model);
	view_blocks_fact(blocks, "state", styles[state], "%s",
			 summary->state ? summary->state : view_state_text(state));
	view_add_fact(blocks, "command", summary->command);
	if (summary->duration_ns > 0)
		view_blocks_fact(blocks, "duration", VIEW_NORMAL, "%s (host)",
				 fmt_ns(text, summary->duration_ns));
	view_add_count(blocks, "epochs", summary->epochs);
	view_add_count(blocks, "executions", summary->executions);
	if (summary->traced > 0 && summary->untraced > 0)
		view_blocks_fact(blocks, "device lanes", VIEW_NORMAL, "hold the first %s of them",
				 fmt_count(text, summary->traced));
	view_add_count(blocks, "steps", summary->steps);
	view_add_count(blocks, "weight updates", summary->weight_updates);
}

static void view_block_machine(struct view_blocks *blocks, const struct report_summary *summary)
{
	view_blocks_begin(blocks, "Simulated machine", NAME_WIDTH);
	view_add_fact(blocks, "target", summary->target);
	view_add_fact(blocks, "cost model", summary->cost_model);
	view_add_fact(blocks, "schedule", summary->schedule);
	view_add_count(blocks, "IPUs", summary->ipus);
	view_add_count(blocks, "replicas", summary->replicas);
	view_add_count(blocks, "stages", summary->stages);
	if (summary->oversubscribed)
		view_blocks_fact(blocks, "host times", VIEW_WARN,
				 "oversubscribed: more workers than processors");
}

static void view_block_training(struct view_blocks *blocks, const struct report_summary *summary)
{
	if (isnan(summary->loss) && isnan(summary->accuracy) && isnan(summary->evaluate_loss) &&
	    isnan(summary->evaluate_accuracy))
		return;
	view_blocks_begin(blocks, "Training", NAME_WIDTH);
	view_add_real(blocks, "loss", summary->loss);
	if (!isnan(summary->accuracy))
		view_blocks_bar(blocks, "accuracy", VIEW_GOOD, summary->accuracy, NAN, "%.2f%%",
				summary->accuracy * 100);
	view_add_real(blocks, "evaluation loss", summary->evaluate_loss);
	if (!isnan(summary->evaluate_accuracy))
		view_blocks_bar(blocks, "evaluation acc.", VIEW_GOOD, summary->evaluate_accuracy,
				NAN, "%.2f%%", summary->evaluate_accuracy * 100);
}

static void view_add_share(struct view_blocks *blocks, const char *name, double value,
			   double theory)
{
	if (isnan(value))
		return;
	if (isnan(theory))
		view_blocks_bar(blocks, name, VIEW_BUBBLE, value, NAN, "%.1f%%", value * 100);
	else
		view_blocks_bar(blocks, name, VIEW_BUBBLE, value, theory, "%.1f%% theory %.1f%%",
				value * 100, theory * 100);
}

static void view_block_bubble(struct view_blocks *blocks, const struct report_bubble_mean *bubble,
			      const char *title)
{
	char text[FMT_SIZE];

	if (!bubble->known)
		return;
	view_blocks_begin(blocks, title, NAME_WIDTH);
	view_blocks_fact(blocks, "pipeline runs", VIEW_NORMAL, "%s (means; the mark is theory)",
			 fmt_count(text, bubble->runs));
	view_add_share(blocks, "idle fraction", bubble->idle_fraction,
		       bubble->theory_idle_fraction);
	view_add_share(blocks, "bubble rate", bubble->bubble_rate, bubble->theory_bubble_rate);
	view_add_share(blocks, "over ideal", bubble->bubble_over_ideal,
		       bubble->theory_bubble_over_ideal);
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

static void view_block_stages(struct view_blocks *blocks, const struct report_summary *summary,
			      int clock)
{
	const double greatest = view_greatest_phase(summary, clock);
	char text[FMT_SIZE];

	if (summary->stages < 1 || !summary->stage || greatest <= 1)
		return;
	view_blocks_begin(blocks, clock ? "Stages: device time (simulated)" : "Stages: host time",
			  NAME_WIDTH);
	if (summary->summed < 1)
		view_blocks_text(blocks, VIEW_WARN, "being added up: %.0f%% of the run so far",
				 floor(summary->summed * 100));
	for (int64_t i = 0; i < summary->stages; i++) {
		const struct report_stage *stage = &summary->stage[i];
		const struct {
			const char *name;
			enum view_style style;
			int64_t ns;
		} phases[] = {{"  F forward", VIEW_FORWARD_TEXT, stage->forward_ns[clock]},
			      {"  B backward", VIEW_BACKWARD_TEXT, stage->backward_ns[clock]},
			      {"  U update", VIEW_UPDATE_TEXT, stage->update_ns[clock]}};

		view_blocks_text(blocks, VIEW_BOLD, "stage %lld on IPU %lld: %s",
				 (long long)stage->stage, (long long)stage->ipu,
				 stage->layers ? stage->layers : "");
		for (size_t p = 0; p < ARRAY_LEN(phases); p++)
			if (phases[p].ns > 0)
				view_blocks_bar(blocks, phases[p].name, phases[p].style,
						(double)phases[p].ns / greatest, NAN, "%s",
						fmt_ns(text, phases[p].ns));
	}
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
	if (summary->health_hits > 0)
		view_blocks_fact(blocks, "health hits", VIEW_WARN, "%s",
				 fmt_count(text, summary->health_hits));
	if (summary->database_bytes > 0)
		view_blocks_fact(blocks, "database", VIEW_NORMAL, "%s",
				 fmt_bytes(text, (uint64_t)summary->database_bytes));
	if (!isnan(summary->overhead_fraction))
		view_blocks_fact(blocks, "own cost", VIEW_NORMAL, "%s of the run",
				 fmt_percent(text, summary->overhead_fraction));
}

static void view_summary_fill(struct view_summary *screen, enum view_state state)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;

	view_blocks_clear(blocks);
	view_block_run(blocks, summary, state);
	view_block_training(blocks, summary);
	view_block_bubble(blocks, &summary->bubble[1], "Pipeline bubble: device (simulated)");
	view_block_bubble(blocks, &summary->bubble[0], "Pipeline bubble: host");
	view_block_stages(blocks, summary, 1);
	view_block_stages(blocks, summary, 0);
	view_block_machine(blocks, summary);
	view_block_recorded(blocks, summary);
	if (summary->option_count > 0)
		view_blocks_begin(blocks, "Options", 2 * NAME_WIDTH);
	for (int i = 0; i < summary->option_count; i++)
		view_add_fact(blocks, summary->options[i].name, summary->options[i].value);
}

static enum status view_summary_load(void *state, struct view_context *context, bool news,
				     struct err *err)
{
	struct view_summary *screen = state;
	enum status status;

	if (news) {
		const int found = screen->blocks.found;
		struct report_summary fresh;

		status = report_summary_add(&fresh, context->source->db, &screen->sums,
					    context->whole ? 0 : BUDGET_NS, err);
		if (status != ST_OK)
			return status;
		report_summary_free(&screen->summary);
		screen->summary = fresh;
		context->more = !screen->sums.complete;
		view_summary_fill(screen, context->source->state);
		screen->blocks.found = found;
	}
	return view_blocks_fit(&screen->blocks, context->body.width, context->body.height, err);
}

static void view_summary_draw(const void *state, const struct view_context *context,
			      struct view_pane *pane)
{
	(void)context;
	view_blocks_draw(&((const struct view_summary *)state)->blocks, pane);
}

static enum view_answer view_summary_request(void *state, struct view_context *context,
					     enum view_request request)
{
	return view_blocks_request(&((struct view_summary *)state)->blocks, context->body.height,
				   request);
}

static bool view_summary_search(void *state, struct view_context *context, const char *text,
				bool forward)
{
	return view_blocks_search(&((struct view_summary *)state)->blocks, context->body.height,
				  text, forward);
}

static void view_summary_status(const void *state, const struct view_context *context, char *out,
				size_t size)
{
	view_blocks_status(&((const struct view_summary *)state)->blocks, context->body.height, out,
			   size);
}

static int view_summary_height(const void *state, const struct view_context *context)
{
	(void)context;
	return ((const struct view_summary *)state)->blocks.height;
}

/* What the screen says, a line per row. */
static enum status view_summary_table(void *state, struct view_context *context,
				      struct report_table *out, struct err *err)
{
	static const struct report_column columns[] = {
		{"section", REPORT_TEXT}, {"name", REPORT_TEXT}, {"value", REPORT_TEXT}};
	const struct view_blocks *blocks = &((struct view_summary *)state)->blocks;
	enum status status;
	int64_t rows = 0, row = 0;

	(void)context;
	for (int b = 0; b < blocks->count; b++)
		rows += (int64_t)blocks->block[b].count;
	status = view_table_new(out, "summary", columns, ARRAY_LEN(columns), rows, err);
	for (int b = 0; b < blocks->count && status == ST_OK; b++)
		for (size_t i = 0; i < blocks->block[b].count && status == ST_OK; i++, row++) {
			const struct view_line *line = &blocks->block[b].lines[i];
			const char *name = line->name ? line->name : "";

			status = view_table_text(out, row, 0, blocks->block[b].title, err);
			if (status == ST_OK)
				status =
					view_table_text(out, row, 1, name + strspn(name, " "), err);
			if (status == ST_OK)
				status = view_table_text(out, row, 2, line->value, err);
		}
	return status;
}

const struct view_screen_ops view_summary_ops = {
	.name = "summary",
	.title = "Summary",
	.brief = "Sum",
	.key = '1',
	.where = VIEW_ON_SUMMARY,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_summary_open,
	.close = view_summary_close,
	.load = view_summary_load,
	.draw = view_summary_draw,
	.request = view_summary_request,
	.search = view_summary_search,
	.status = view_summary_status,
	.height = view_summary_height,
	.table = view_summary_table,
};
