/*
 * The Summary screen: the numbers of report_summary as blocks; the progress of a recording run; and
 * the differences from another report.
 *
 * Threading: the session's. Ownership: view_summary_internal.h.
 */
#include "viewer/summary/view_summary_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- a run that is recording ----------------------------------------------------------------- */

#define SUMMARY_LIVE_NAME_WIDTH 16
#define NAME_MOST               28
#define VIEW_WHEN_SIZE          48

/* The last pipeline runs on the device clock, or on the host clock if there is none. */
static const char summary_bubble_sql[] =
	"SELECT clock, count(*), 1 - 1.0 * sum(busy_ns) / sum(busy_ns + ramp_up_ns + ramp_down_ns "
	"+ "
	"imbalance_ns + communication_ns), avg(theory_idle_fraction) FROM "
	"(SELECT * FROM bubble_rows WHERE stages IS NOT 1 ORDER BY row_id DESC LIMIT 32) GROUP BY "
	"clock "
	"ORDER BY clock DESC LIMIT 1";

/* Each tensor's latest row among the last 64 rows. */
static const char summary_latest_sql[] =
	"SELECT i.key, c.step, c.weight_update, s.n_nan + s.n_pos_inf + s.n_neg_inf, s.mean, "
	"s.std, max(s.row_id) "
	"FROM (SELECT * FROM tensor_stat_rows ORDER BY row_id DESC LIMIT 64) s "
	"JOIN tensor_rows i ON i.tensor_id = s.tensor_id "
	"LEFT JOIN contexts c ON c.context_id = s.context_id "
	"GROUP BY s.tensor_id ORDER BY i.key LIMIT 6";

static const char summary_loss_sql[] =
	"SELECT last_value, last_step, last_epoch FROM metric_sums WHERE "
	"name = 'loss' AND mode = 'train' "
	"ORDER BY last_time_ns DESC LIMIT 1";

/* The end of the last execution in device cycles. */
static const char summary_device_sql[] =
	"SELECT start_cycle + cycles FROM execution_rows ORDER BY row_id DESC LIMIT 1";

static void summary_read_device(struct view_now *now, const struct prof_query *query)
{
	now->device_cycles = prof_column_int(query, 0);
}

static void summary_read_bubble(struct view_now *now, const struct prof_query *query)
{
	now->clock = prof_column_int(query, 0) ? "device" : "host";
	now->runs = prof_column_int(query, 1);
	now->idle_fraction = prof_column_real(query, 2);
	now->theory_idle_fraction = prof_column_real(query, 3);
}

static void summary_read_latest(struct view_now *now, const struct prof_query *query)
{
	struct view_latest *latest = &now->latest[now->latest_count];
	const char *key = prof_column_text(query, 0);

	if (now->latest_count == VIEW_LATEST)
		return;
	str_copy(latest->key, sizeof(latest->key), key ? key : "");
	latest->step = prof_column_int(query, 1);
	latest->weight_update = prof_column_int(query, 2);
	latest->bad = prof_column_int(query, 3);
	latest->mean = prof_column_real(query, 4);
	latest->std = prof_column_real(query, 5);
	now->latest_count++;
}

static void summary_read_loss(struct view_now *now, const struct prof_query *query)
{
	now->loss = prof_column_real(query, 0);
	now->loss_step = prof_column_int(query, 1);
	now->loss_epoch = prof_column_int(query, 2);
}

static const struct {
	const char *sql;
	void (*read_row)(struct view_now *now, const struct prof_query *query);
} view_now_queries[] = {{summary_bubble_sql, summary_read_bubble},
			{summary_latest_sql, summary_read_latest},
			{summary_loss_sql, summary_read_loss},
			{summary_device_sql, summary_read_device}};

/* Read the progress that the trainer writing @path announces. */
static void summary_read_announcement(struct view_now *now, const char *path)
{
	struct prof_announcements runs;

	if (prof_announcements_read(&runs, false, NULL, NULL) != ST_OK)
		return;
	for (int i = 0; i < runs.count && !now->announced; i++) {
		char database[FS_PATH_SIZE];

		if (!runs.items[i].report[0] ||
		    !fs_path(database, "%s/profile.db", runs.items[i].report))
			continue;
		if (fs_is_same(path, runs.items[i].report) || fs_is_same(path, database)) {
			now->announced = true;
			now->progress = runs.items[i].progress;
		}
	}
	prof_announcements_free(&runs);
}

/* Read the progress of a recording run. */
static void summary_load_progress(struct view_summary *screen, struct view_context *context,
				  struct err *err)
{
	struct view_now *now = &screen->now;

	memset(now, 0, sizeof(*now));
	now->loss = NAN;
	now->live = context->source->state == VIEW_RECORDING;
	if (!now->live)
		return;
	summary_read_announcement(now, context->source->path);
	for (size_t i = 0; i < ARRAY_LEN(view_now_queries); i++) {
		struct prof_query *query =
			view_query_open(context->source->db, view_now_queries[i].sql, err);

		while (view_query_next(query, err))
			view_now_queries[i].read_row(now, query);
		prof_query_close(query);
	}
}

/* ---- the block ------------------------------------------------------------------------------- */

static void summary_add_progress(struct view_summary *screen)
{
	const struct report_progress *progress = &screen->now.progress;
	const struct report_reached *reached = &screen->summary.reached;
	struct view_blocks *blocks = &screen->blocks;

	if (!screen->now.announced && reached->known)
		view_blocks_fact(blocks, "reached", VIEW_BOLD, "epoch %lld, step %lld",
				 (long long)reached->epoch, (long long)reached->step);
	if (!screen->now.announced)
		return;
	if (progress->epochs > 0)
		view_blocks_bar(blocks, report_run_state_text(progress->state), VIEW_GOOD,
				(double)progress->epoch / (double)progress->epochs, NAN,
				"epoch %lld of %lld", (long long)progress->epoch,
				(long long)progress->epochs);
	if (progress->steps > 0)
		view_blocks_bar(
			blocks, "step", VIEW_GOOD, (double)progress->step / (double)progress->steps,
			NAN, "%lld of %lld", (long long)progress->step, (long long)progress->steps);
}

/* Show the progress of training according to the recording, and the time left. */
static void summary_add_time_left(struct view_summary *screen)
{
	const struct view_glance *glance = &screen->glance;
	const int64_t left_ns = view__summary_left_ns(glance);
	char done[FMT_SIZE], all[FMT_SIZE], left[FMT_SIZE];

	if (left_ns < 0)
		return;
	if (!screen->now.announced)
		view_blocks_bar(&screen->blocks, "training", VIEW_GOOD,
				(double)glance->steps / (double)glance->steps_of, NAN,
				"%s of %s steps", fmt_count(done, glance->steps),
				fmt_count(all, glance->steps_of));
	view_blocks_fact(&screen->blocks, "time left", VIEW_BOLD,
			 left_ns > 0 ? "about %s of training, at its pace so far"
				     : "training is done",
			 fmt_ns(left, left_ns));
}

/* Show the time up to which data is written, on both clocks (`?` explains them). */
static void summary_add_clocks(struct view_summary *screen)
{
	const int64_t cycles = screen->now.device_cycles;
	const bool device = cycles > 0 && screen->machine.clock_hz > 0;
	char host[FMT_SIZE], simulated[FMT_SIZE];

	if (screen->summary.last_commit_ns <= 0)
		return;
	if (device)
		fmt_ns(simulated, (int64_t)((double)cycles * 1e9 / screen->machine.clock_hz));
	view_blocks_fact(&screen->blocks, "written", VIEW_NORMAL, "up to host %s%s%s",
			 fmt_ns(host, screen->summary.last_commit_ns),
			 device ? ", device (sim) " : "", device ? simulated : "");
}

static void summary_add_latest_loss(struct view_summary *screen)
{
	const struct view_now *now = &screen->now;
	char text[FMT_SIZE], when[VIEW_WHEN_SIZE] = "";

	if (isnan(now->loss))
		return;
	if (now->loss_step != IPS_NULL)
		snprintf(when, sizeof(when), " at step %lld", (long long)now->loss_step);
	else if (now->loss_epoch != IPS_NULL)
		snprintf(when, sizeof(when), " after epoch %lld", (long long)now->loss_epoch);
	view_blocks_fact(&screen->blocks, "loss", VIEW_BOLD, "%s%s", fmt_real(text, now->loss),
			 when);
}

static void summary_add_latest_tensor(struct view_summary *screen, const struct view_latest *latest)
{
	char mean[FMT_SIZE], std[FMT_SIZE], when[VIEW_WHEN_SIZE];
	struct view_place *place;

	/* "step 12: ", "update 3: ", or "". */
	when[0] = '\0';
	if (latest->step != IPS_NULL)
		snprintf(when, VIEW_WHEN_SIZE, "step %lld: ", (long long)latest->step);
	else if (latest->weight_update != IPS_NULL)
		snprintf(when, VIEW_WHEN_SIZE, "update %lld: ", (long long)latest->weight_update);
	view_blocks_fact(&screen->blocks, latest->key, latest->bad > 0 ? VIEW_BAD : VIEW_NORMAL,
			 "%smean %s, std %s%s", when, fmt_real(mean, latest->mean),
			 fmt_real(std, latest->std), latest->bad > 0 ? ", NaN or Inf" : "");
	place = view__summary_link(screen, VIEW_SCREENS);
	view_place_text(place->key, latest->key);
	place->step = latest->step;
	place->weight_update = latest->weight_update;
}

static void summary_add_now_block(struct view_summary *screen)
{
	const struct view_now *now = &screen->now;
	struct view_blocks *blocks = &screen->blocks;
	int width = SUMMARY_LIVE_NAME_WIDTH;
	char done[FMT_SIZE];

	if (!now->live)
		return;
	/* Tensor keys are long. */
	for (int i = 0; i < now->latest_count; i++) {
		const int key = utf8_columns(now->latest[i].key) + 1;

		width = max(key, width);
	}
	view_blocks_begin(blocks, "Now", min(width, NAME_MOST));
	summary_add_progress(screen);
	summary_add_time_left(screen);
	if (screen->summary.weight_updates > 0)
		view_blocks_fact(blocks, "done", VIEW_NORMAL, "%s weight update%s",
				 fmt_count(done, screen->summary.weight_updates),
				 screen->summary.weight_updates == 1 ? "" : "s");
	summary_add_clocks(screen);
	if (now->runs > 0)
		view_blocks_bar(blocks, "latest bubble", VIEW_BUBBLE, now->idle_fraction,
				now->theory_idle_fraction, "%.1f %% %s, %lld runs",
				now->idle_fraction * 100, now->clock, (long long)now->runs);
	summary_add_latest_loss(screen);
	for (int i = 0; i < now->latest_count; i++)
		summary_add_latest_tensor(screen, &now->latest[i]);
}

/* ---- the screen ------------------------------------------------------------------------------ */

#define LARGE_BYTES (64 << 20) /* reading this from disk takes a tenth of a second */

static void summary_init(void *state)
{
	struct view_summary *screen = state;

	screen->large_bytes = LARGE_BYTES;
}

static void summary_fini(void *state)
{
	struct view_summary *screen = state;

	report_summary_free(&screen->summary);
	report_table_free(&screen->run);
	view_blocks_fini(&screen->blocks);
	view__compare_fini(screen);
}

static struct view_grid *summary_grid(void *state)
{
	struct view_summary *screen = state;

	return screen->compared ? &screen->grid : NULL;
}

static void summary_fill(struct view_summary *screen, const struct view_source *source)
{
	struct view_blocks *blocks = &screen->blocks;

	view_blocks_clear(blocks);
	screen->link_count = 0;
	blocks->folds = true;
	blocks->heads = 1 + screen->now.live;
	summary_add_now_block(screen);
	view__summary_glance(screen);
	view__summary_results(screen);
	/* Results come first for any number of columns; facts of the run follow below them. */
	blocks->later = blocks->count;
	view__summary_facts(screen, source);
}

static enum status summary_load(void *state, struct view_context *context, bool news,
				struct err *err)
{
	struct view_summary *screen = state;
	struct err own;

	err = err_start(err, &own);
	screen->compared = context->target != NULL;
	if (screen->compared) {
		view__compare_load(screen, context, news, err);
		return err->status;
	}
	if (news) {
		struct report_summary fresh;

		if (report_summary_get(&fresh, context->source->db, err) != ST_OK)
			return err->status;
		report_summary_free(&screen->summary);
		screen->summary = fresh;
		summary_load_progress(screen, context, err);
		view__summary_check(screen, context, err);
		if (err_stuck(err))
			return err->status;
	}
	if (news || screen->width != context->body.width) {
		const int found = screen->started ? screen->blocks.found : -1;

		screen->started = true;
		screen->width = context->body.width;
		summary_fill(screen, context->source);
		screen->blocks.found = found;
	}
	return view_blocks_fit(&screen->blocks, context->body.width, context->body.height, err);
}

static void summary_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_summary *screen = state;

	if (context->target)
		view__compare_draw(screen, context, pane);
	else
		view_blocks_draw(&screen->blocks, pane);
}

static bool summary_current_place(const void *state, struct view_place *out)
{
	const struct view_summary *screen = state;
	const int link = view_blocks_linked(&screen->blocks);

	view_place_clear(out);
	if (screen->compared)
		return view__compare_place(screen, out);
	if (link)
		*out = screen->links[link - 1];
	return link != 0;
}

static enum view_answer summary_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_summary *screen = state;
	struct view_place place;

	if (request == VIEW_FILTER_REQUEST && !context->target) {
		view_message(context, "this screen has no filter: / searches", NULL);
		return VIEW_DRAW;
	}
	if (request != VIEW_ENTER_REQUEST && request != VIEW_JOIN_REQUEST)
		return context->target ? VIEW_UNHANDLED
				       : view_blocks_request(&screen->blocks, context->body.height,
							     request);
	if (summary_current_place(screen, &place)) {
		const int link = view_blocks_linked(&screen->blocks);

		/* The screen that Enter opens; VIEW_SCREENS: ask the user. */
		context->leads = context->target ? (int)view__compare_leads(screen)
				 : link          ? screen->leads[link - 1]
						 : VIEW_SCREENS;
		return request == VIEW_JOIN_REQUEST || context->leads == VIEW_SCREENS ? VIEW_JOIN
										      : VIEW_LEAD;
	}
	view_message(context,
		     context->target ? "no other screen shows a setting: other rows lead on"
				     : "j and k lead to lines that can be opened",
		     NULL);
	return VIEW_DRAW;
}

/* A click follows a line's link; in a comparison it selects a row. */
static enum view_answer summary_click(void *state, struct view_context *context, int x, int y)
{
	struct view_summary *screen = state;

	return !context->target && view_blocks_click(&screen->blocks, x, y)
		       ? summary_request(screen, context, VIEW_ENTER_REQUEST)
		       : VIEW_UNHANDLED;
}

static bool summary_search(void *state, struct view_context *context, const char *text,
			   bool forward)
{
	struct view_summary *screen = state;

	if (context->target)
		return view_grid_search(&screen->grid, context, text, forward);
	return view_blocks_search(&screen->blocks, context, context->body.height, text, forward);
}

static void summary_status(const void *state, const struct view_context *context, char *out,
			   size_t size)
{
	const struct view_summary *screen = state;

	if (context->target)
		view_grid_status(&screen->grid, out, size);
	else
		view_blocks_status(&screen->blocks, context->body.height, out, size);
}

static int summary_height(const void *state, const struct view_context *context)
{
	const struct view_summary *screen = state;

	return context->target ? (int)screen->grid.count + 1 + VIEW_COMPARE_HEAD
			       : screen->blocks.height;
}

/* Write the blocks, one row per line. */
static enum status summary_table(void *state, struct view_context *context,
				 struct report_table *out, struct err *err)
{
	static const struct report_column columns[] = {
		{"section", REPORT_TEXT}, {"name", REPORT_TEXT}, {"value", REPORT_TEXT}};
	const struct view_blocks *blocks = &((struct view_summary *)state)->blocks;
	struct err own;
	int64_t rows = 0, row = 0;

	err = err_start(err, &own);
	if (context->target)
		return view_grid_table(&((struct view_summary *)state)->grid, out, err);
	for (int b = 0; b < blocks->count; b++)
		rows += (int64_t)blocks->block[b].count;
	view_table_new(out, "summary", columns, ARRAY_LEN(columns), rows, err);
	for (int b = 0; b < blocks->count; b++)
		for (size_t i = 0; i < blocks->block[b].count && !err_stuck(err); i++, row++) {
			const struct view_line *line = &blocks->block[b].lines[i];
			const char *name = line->name ? line->name : "";

			const struct report_cell cells[] = {
				view_text_cell(blocks->block[b].title),
				view_text_cell(name + strspn(name, " ")),
				view_text_cell(line->value)};

			view_table_row(out, row, cells, err);
		}
	if (err_stuck(err))
		report_table_free(out);
	return err->status;
}

static void summary_query(const void *state, const struct view_context *context, struct str *out)
{
	static const char *const views[] = {"meta",         "execution_sums", "metric_sums",
					    "bubble_sums",  "stage_sums",     "health_sums",
					    "overhead_sums"};

	(void)state;
	(void)context;
	for (size_t i = 0; i < ARRAY_LEN(views); i++)
		str_addf(out, "SELECT * FROM %s;\n", views[i]);
}

static const char *summary_word(const void *state, enum view_request request)
{
	const struct view_summary *screen = state;
	struct view_place place;
	const bool here = summary_current_place(screen, &place);

	if (request == VIEW_ENTER_REQUEST && !here)
		return "";
	if (request == VIEW_DOWN_REQUEST && !here && !screen->compared)
		return "to what opens";
	return NULL;
}

const struct view_screen_ops view_summary_ops = {
	.name = "summary",
	.title = "Summary",
	.brief = "Sum",
	.key = '1',
	.where = VIEW_ON_SUMMARY,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_summary),
	.init = summary_init,
	.fini = summary_fini,
	.grid = summary_grid,
	.load = summary_load,
	.draw = summary_draw,
	.request = summary_request,
	.search = summary_search,
	.click = summary_click,
	.word = summary_word,
	.status = summary_status,
	.height = summary_height,
	.table = summary_table,
	.place = summary_current_place,
	.query = summary_query,
};
