/*
 * What an insight says, in lines: its sentence, what to do, what that would change, its numbers,
 * where its rows are and the query behind them.
 *
 * Threading: the session's worker. Ownership: texts are the blocks' arena's.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "reports/table/report_render.h"
#include "viewer/insights/view_insights_internal.h"

#define LINE_MOST  100 /* longer ones are hard to read */
#define NAME_WIDTH 14

static const enum view_style view_severity_styles[] = {[REPORT_INSIGHT_PROBLEM] = VIEW_BAD,
						       [REPORT_INSIGHT_ADVICE] = VIEW_WARN,
						       [REPORT_INSIGHT_NOTE] = VIEW_NORMAL};

/* A pair of bars: now and then, to the scale of the greater one. */
static void view_tell_pair(struct view_blocks *blocks, const char *name, const double pair[2],
			   enum report_quantity quantity)
{
	static const char *const when[2] = {"measured", "predicted"};
	const double scale = fmax(pair[0], pair[1]);
	char text[FMT_SIZE], label[64];

	if (!isfinite(pair[0]) || !isfinite(pair[1]))
		return;
	for (int i = 0; i < 2; i++) {
		const struct report_cell cell = {.type = PROF_REAL, .real = pair[i]};
		char *copy;

		snprintf(label, sizeof(label), "%s %s", name, when[i]);
		copy = arena_strdup(&blocks->arena, label);
		blocks->failed |= !copy;
		view_blocks_bar(blocks, copy, i ? VIEW_GOOD : VIEW_BUBBLE,
				scale > 0 ? pair[i] / scale : 0, (double)NAN, "%s",
				report_cell_text(&cell, quantity, text, sizeof(text)));
	}
}

static void view_tell_gain(struct view_blocks *blocks, const struct report_insight *insight)
{
	const struct report_insight_gain *gain = &insight->gain;

	if (!isfinite(gain->step_ns[1]) && !isfinite(gain->idle_fraction[1]) &&
	    !isfinite(gain->bytes[1]))
		return;
	view_blocks_begin(blocks, "What it would change", (int)sizeof("always live predicted "));
	view_tell_pair(blocks, "step", gain->step_ns, REPORT_NS);
	view_tell_pair(blocks, "idle", gain->idle_fraction, REPORT_FRACTION);
	view_tell_pair(blocks, "always live", gain->bytes, REPORT_BYTES);
}

static void view_tell_numbers(struct view_blocks *blocks, const struct report_insight *insight)
{
	char text[FMT_SIZE];
	int width = 0;

	if (insight->number_count == 0)
		return;
	for (int i = 0; i < insight->number_count; i++) {
		const int name = view_text_width(insight->numbers[i].name) + 2;

		width = max(name, width);
	}
	view_blocks_begin(blocks, "Numbers", width);
	for (int i = 0; i < insight->number_count; i++) {
		const struct report_insight_number *number = &insight->numbers[i];
		const struct report_cell cell = {.type = PROF_REAL, .real = number->value};

		if (number->quantity == REPORT_FRACTION)
			view_blocks_bar(blocks, number->name, VIEW_CURVE, number->value,
					(double)NAN, "%s", fmt_percent(text, number->value));
		else
			view_blocks_fact(
				blocks, number->name, VIEW_BOLD, "%s",
				report_cell_text(&cell, number->quantity, text, sizeof(text)));
	}
}

/* The query in lines of its own making: its indents are for a wider page. */
static void view_tell_query(struct view_blocks *blocks, const char *sql, int width)
{
	struct str text = {0};

	for (bool blank = false; *sql; sql++) {
		const bool space = *sql == ' ' || *sql == '\n' || *sql == '\t';

		if (!space)
			str_addf(&text, "%s%c", blank ? " " : "", *sql);
		blank = space;
	}
	blocks->failed |= text.failed;
	view_blocks_fold(blocks, "query (y)", VIEW_DIM, width - NAME_WIDTH, str_peek(&text));
	str_free(&text);
}

static void view_tell_where(struct view_blocks *blocks, const struct report_insight *insight,
			    int width)
{
	if (insight->view || insight->sql)
		view_blocks_begin(blocks, "Where its rows are: Enter goes there", NAME_WIDTH);
	if (insight->view)
		view_blocks_fact(blocks, "view", VIEW_NORMAL, "%s", insight->view);
	if (insight->keys && insight->keys[0])
		view_blocks_fold(blocks, "rows", VIEW_NORMAL, width - NAME_WIDTH, insight->keys);
	if (insight->sql)
		view_tell_query(blocks, insight->sql, width);
}

/* "idle_ipu (ipu 0)" */
static const char *view_insight_head(struct view_blocks *blocks,
				     const struct report_insight *insight)
{
	char *head = insight->subject ? arena_printf(&blocks->arena, "%s (%s %s)", insight->id,
						     insight->subject_kind, insight->subject)
				      : arena_strdup(&blocks->arena, insight->id);

	blocks->failed |= !head;
	return head ? head : "";
}

/* @report: "Source: ", "Target: " or "". */
static void view_tell_one(struct view_blocks *blocks, const struct report_insight *insight,
			  const char *report, int width)
{
	const char *title = arena_printf(&blocks->arena, "%s%s %s", report,
					 report_insight_severity(insight->severity),
					 view_insight_head(blocks, insight));

	blocks->failed |= !title;
	view_blocks_begin(blocks, title ? title : "", NAME_WIDTH);
	view_blocks_fold(blocks, NULL, view_severity_styles[insight->severity], width,
			 insight->sentence);
	if (insight->remedy) {
		view_blocks_begin(blocks, "What to do", NAME_WIDTH);
		view_blocks_fold(blocks, NULL, VIEW_NORMAL, width, insight->remedy);
	}
	view_tell_gain(blocks, insight);
	view_tell_numbers(blocks, insight);
}

static void view_tell_selected(struct view_insights *screen, int width)
{
	static const char *const reports[2] = {"Source: ", "Target: "};
	static const char *const lacks[2] = {"The Source does not have it: it is new.",
					     "The Target does not have it: it is gone."};
	const struct report_insight *const *selected = screen->selected;

	for (int r = 0; r < 2; r++)
		if (selected[r])
			view_tell_one(&screen->told, selected[r],
				      screen->compared ? reports[r] : "", width);
		else if (screen->compared) {
			view_blocks_begin(&screen->told, r ? "Target" : "Source", NAME_WIDTH);
			view_blocks_text(&screen->told, VIEW_GOOD, "%s", lacks[r]);
		}
	view_tell_where(&screen->told, selected[0] ? selected[0] : selected[1], width);
}

/* Every insight, for a file: a block for each severity. */
static void view_tell_all(struct view_insights *screen, int width)
{
	static const char *const heads[REPORT_INSIGHT_SEVERITIES] = {"Problems", "Advice", "Notes"};
	struct view_blocks *blocks = &screen->told;
	int last = -1;

	for (int i = 0; i < screen->found[0].count; i++) {
		const struct report_insight *insight = &screen->found[0].items[i];

		if ((int)insight->severity != last)
			view_blocks_begin(blocks, heads[insight->severity], NAME_WIDTH);
		else
			view_blocks_text(blocks, VIEW_NORMAL, "%s", "");
		last = (int)insight->severity;
		view_blocks_text(blocks, VIEW_BOLD, "%s", view_insight_head(blocks, insight));
		view_blocks_fold(blocks, NULL, VIEW_NORMAL, width, insight->sentence);
		if (insight->remedy)
			view_blocks_fold(blocks, "Do:", VIEW_NORMAL, width - NAME_WIDTH,
					 insight->remedy);
	}
}

/* A report without insights: what was looked for. */
static void view_tell_looked(struct view_blocks *blocks, int width)
{
	struct str ids = {0};

	for (int i = 0; report_insight_id(i); i++)
		str_addf(&ids, "%s%s", i ? ", " : "", report_insight_id(i));
	blocks->failed |= ids.failed;
	view_blocks_begin(blocks, "Nothing was found to say; looked for", NAME_WIDTH);
	view_blocks_fold(blocks, NULL, VIEW_NORMAL, width, str_peek(&ids));
	str_free(&ids);
}

static void view_tell_not_looked(struct view_insights *screen, int width)
{
	static const char *const heads[2] = {"Not looked for, as the recording lacks it",
					     "Not looked for in the Target"};

	for (int r = 0; r < 2; r++)
		if (screen->found[r].not_looked) {
			view_blocks_begin(&screen->told, heads[r], NAME_WIDTH);
			view_blocks_fold(&screen->told, NULL, VIEW_DIM, width,
					 screen->found[r].not_looked);
		}
}

enum status view__insights_tell(struct view_insights *screen, int width, int height, bool whole,
				struct err *err)
{
	const int line = min(width, LINE_MOST) - 4;

	view_blocks_clear(&screen->told);
	screen->told.two_from = 2 * LINE_MOST; /* never: it is fitted to less */
	if (whole && !screen->compared)
		view_tell_all(screen, line);
	else if (screen->selected[0] || screen->selected[1])
		view_tell_selected(screen, line);
	if (screen->found[0].count + screen->found[1].count == 0)
		view_tell_looked(&screen->told, line);
	view_tell_not_looked(screen, line);
	return view_blocks_fit(&screen->told, min(width, LINE_MOST), height, err);
}
