/*
 * The screen What if: the recorded training beside predictions for every schedule, split and
 * target, as in `ipu-report what-if`; Enter shows the flags that train a row.
 *
 * A load plans all rows on the session's worker and can be cancelled between two rows.
 *
 * Threading: that of the session. Ownership: the screen owns the recording's plan and the rows; the
 * grid owns its texts.
 */
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "reports/whatif/report_whatif.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"

#define WHATIF_FOOT 9 /* rows of the change under the cursor, its heading included */
#define WHATIF_TALL 16

struct view_whatif {
	struct view_grid grid;        /* first: view_state_grid() */
	struct report_whatif *whatif; /* NULL: there is nothing to predict from */
	struct err trouble;           /* why */
	struct report_whatif_row rows[REPORT_WHATIF_ROWS_MAX];
	int count;
};

/* "speedup" is the most important figure, so it comes first. */
static const struct view_grid_column whatif_shown[] = {
	{.name = "change", .least = 25, .importance = 20},
	{.name = "speedup", .importance = 19},
	{.name = "weight_update_ns", .title = "update", .importance = 18},
	{.name = "idle_fraction", .title = "bubble", .importance = 17, .bar = true},
	{.name = "samples_second", .title = "samples/s", .importance = 16},
	{.name = "memory_ipu_bytes", .title = "IPU memory", .importance = 15},
	{.name = "memory_fits", .title = "fits", .importance = 14},
	{.name = "schedule", .least = 16, .importance = 5},
	{.name = "stages", .importance = 9},
	{.name = "micro_batches", .title = "micro-batches", .importance = 8},
	{.name = "target", .importance = 7},
	{.name = "step_ns", .title = "step", .importance = 6},
	{.name = "slowest_stage", .title = "slowest", .importance = 5},
	{.name = "slowest_stage_ns", .title = "its F+B", .importance = 4},
	{.name = "memory_tile_bytes", .title = "fullest tile", .importance = 3},
	{.importance = 0}, /* all others */
};

static void whatif_fini(void *state)
{
	struct view_whatif *screen = state;

	report_whatif_close(screen->whatif);
	view_grid_fini(&screen->grid);
}

/* Predict all rows again: the run file is the same, but the figures of a recording run may
 * change. */
static enum status whatif_read(struct view_whatif *screen, struct view_context *context,
			       struct err *err)
{
	struct report_whatif *whatif = NULL;
	struct report_table table;
	enum status status = report_whatif_open(&whatif, context->source->db, REPORT_WHATIF_DEVICE,
						&screen->trouble);
	bool more = true;

	report_whatif_close(screen->whatif);
	screen->whatif = whatif;
	screen->count = 0;
	if (status != ST_OK && err)
		*err = screen->trouble;
	/* A run that cannot be predicted is no failure of the screen. */
	if (status != ST_OK)
		return status == ST_NOMEM || status == ST_INTERRUPTED ? status : ST_OK;
	screen->trouble = (struct err){0};
	while (more) {
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "stopped");
		status = report_whatif_row_at(&screen->rows[screen->count], whatif, screen->count,
					      &more, err);
		if (status != ST_OK)
			return status;
		screen->count += more;
	}
	status = report_whatif_table(&table, screen->rows, screen->count, "all", err);
	if (status != ST_OK)
		return status;
	return view_grid_set(&screen->grid, context, &table, whatif_shown, ARRAY_LEN(whatif_shown),
			     "change", err);
}

static enum status whatif_load(void *state, struct view_context *context, bool news,
			       struct err *err)
{
	struct view_whatif *screen = state;
	const enum status status = news ? whatif_read(screen, context, err) : ST_OK;
	const bool foot = context->body.height >= WHATIF_TALL && !context->whole;

	view_grid_layout(&screen->grid,
			 (struct view_rect){0, 1, context->body.width,
					    context->body.height - 1 - (foot ? WHATIF_FOOT : 0)});
	return status;
}

/* The row under the cursor; NULL: none. */
static const struct report_whatif_row *whatif_row(const struct view_whatif *screen)
{
	const struct view_grid *grid = &screen->grid;

	return grid->at < grid->count && screen->count > 0 ? &screen->rows[grid->order[grid->at]]
							   : NULL;
}

static bool whatif_has_flags(const struct report_whatif_row *row)
{
	return row && row->prediction.flags[0] && !row->why_not[0];
}

static void whatif_draw_foot(const struct view_whatif *screen, struct view_pane *pane, int y)
{
	const struct report_whatif_row *row = whatif_row(screen);
	const int width = pane->rect.width - 2, rows = pane->rect.height - y - 1;
	struct view_rect rect = {1, y + 1, width, rows};
	char text[2 * REPORT_WHATIF_FLAGS_SIZE];

	view_glyphs(pane, 0, y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	if (!row)
		return;
	view_textf(pane, 2, y, VIEW_BOLD, " %s ", row->change);
	if (row->why_not[0]) {
		view_text_folded(pane, rect, VIEW_WARN, row->why_not);
		return;
	}
	if (row->prediction.split[0])
		snprintf(text, sizeof(text), "Stages begin at %s.", row->prediction.split);
	else
		text[0] = '\0';
	if (row->measured)
		str_copy(text, sizeof(text),
			 "The run as it was recorded; each other row changes one thing.");
	else
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%sEnter shows the flags to copy: %s", text[0] ? " " : "",
			 row->prediction.flags[0] ? row->prediction.flags : "too many");
	rect.y += view_text_folded(pane, rect, VIEW_NORMAL, text);
	for (int i = 0; i < REPORT_WHATIF_ASSUMPTIONS; i++) {
		rect.height = pane->rect.height - rect.y;
		if ((row->prediction.assumptions & 1u << i) && rect.height > 0)
			rect.y += view_text_folded(
				pane, rect, VIEW_DIM,
				report_whatif_assumption((enum report_whatif_assumption)i));
	}
}

static void whatif_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_whatif *screen = state;
	const int foot = 1 + screen->grid.area.height;
	char update[FMT_SIZE];

	if (context->source->none) {
		view_nothing(pane, "No run file to plan again has been recorded:", NULL,
			     context->source->none);
		return;
	}
	if (screen->trouble.status != ST_OK || screen->count == 0) {
		view_text_folded(pane,
				 (struct view_rect){1, 1, pane->rect.width - 2,
						    max(pane->rect.height - 2, 1)},
				 VIEW_DIM,
				 screen->trouble.status != ST_OK
					 ? screen->trouble.text
					 : "Nothing has been predicted yet.");
		return;
	}
	view_textf(pane, 1, 0, VIEW_BOLD,
		   "simulated: the recorded run takes %s a weight update; had it been otherwise",
		   fmt_ns(update, screen->rows[0].prediction.run_ns));
	view_grid_draw(&screen->grid, pane, !context->whole);
	if (foot < pane->rect.height)
		whatif_draw_foot(screen, pane, foot);
}

static enum view_answer whatif_request(void *state, struct view_context *context,
				       enum view_request request)
{
	struct view_whatif *screen = state;
	const struct report_whatif_row *row = whatif_row(screen);

	if (request != VIEW_ENTER_REQUEST)
		return VIEW_UNHANDLED;
	if (whatif_has_flags(row))
		return VIEW_COPY;
	view_message(context,
		     !row              ? "nothing is under the cursor"
		     : row->why_not[0] ? "this cannot be trained: the reason stands below"
		     : row->measured   ? "this is the run as it was: no flags"
				       : "its flags are too many to be shown",
		     NULL);
	return VIEW_DRAW;
}

static void whatif_copy(const void *state, struct str *out)
{
	const struct report_whatif_row *row = whatif_row(state);

	str_add(out, row ? row->prediction.flags : "");
}

static void whatif_status(const void *state, const struct view_context *context, char *out,
			  size_t size)
{
	const struct view_whatif *screen = state;
	char rows[160];

	if (screen->count == 0) {
		snprintf(out, size, "nothing to predict from");
		return;
	}
	view_grid_status(&screen->grid, rows, sizeof(rows));
	snprintf(out, size, "%s%s", context->target ? "of the source; " : "", rows);
}

static int whatif_height(const void *state, const struct view_context *context)
{
	const struct view_whatif *screen = state;

	/* The text of an error is folded: at most so many lines of 40 columns. */
	(void)context;
	return screen->count > 0 ? screen->count + 3 : (int)(sizeof(screen->trouble.text) / 40) + 2;
}

static const char *whatif_word(const void *state, enum view_request request)
{
	if (request == VIEW_ENTER_REQUEST)
		return whatif_has_flags(whatif_row(state)) ? "flags" : "";
	return NULL;
}

const struct view_screen_ops view_whatif_ops = {
	.name = "whatif",
	.title = "What if",
	.brief = "If",
	.key = 'P',
	.where = VIEW_ON_WHATIF,
	.least_ns = 30 * UINT64_C(1000000000),
	.size = sizeof(struct view_whatif),
	.fini = whatif_fini,
	.grid = view_state_grid,
	.load = whatif_load,
	.draw = whatif_draw,
	.request = whatif_request,
	.word = whatif_word,
	.status = whatif_status,
	.height = whatif_height,
	.copy = whatif_copy,
};
