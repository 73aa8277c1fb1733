/*
 * A run that is recording: progress, the bubble of its last pipeline runs, its latest numbers.
 *
 * The trainer's announcement (prof_announce.h) says how far it is; the rest are the last rows of
 * the file, a fixed number of them, found by number.
 *
 * Threading: one thread. Ownership: texts are the blocks' arena's.
 */
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/summary/view_summary_internal.h"

#define NAME_WIDTH     16
#define NAME_MOST      28
#define VIEW_WHEN_SIZE 48

/* The last pipeline runs of the device, or of the host where none is of the device. */
static const char bubble_sql[] =
	"SELECT clock, count(*), avg(idle_fraction), avg(theory_idle_fraction) FROM "
	"(SELECT * FROM bubble_rows ORDER BY row_id DESC LIMIT 32) GROUP BY clock "
	"ORDER BY clock DESC LIMIT 1";

/* Of the last rows each tensor's last one. */
static const char latest_sql[] =
	"SELECT i.key, c.step, c.weight_update, s.n_nan + s.n_pos_inf + s.n_neg_inf, s.mean, "
	"s.std, max(s.row_id) "
	"FROM (SELECT * FROM tensor_stat_rows ORDER BY row_id DESC LIMIT 64) s "
	"JOIN tensor_rows i ON i.tensor_id = s.tensor_id "
	"LEFT JOIN contexts c ON c.context_id = s.context_id "
	"GROUP BY s.tensor_id ORDER BY i.key LIMIT 6";

static const char loss_sql[] = "SELECT last_value, last_step, last_epoch FROM metric_sums WHERE "
			       "name = 'loss' AND mode = 'train' "
			       "ORDER BY last_time_ns DESC LIMIT 1";

static void view_take_bubble(struct view_now *now, const struct prof_query *query)
{
	now->clock = prof_column_int(query, 0) ? "device" : "host";
	now->runs = prof_column_int(query, 1);
	now->idle_fraction = prof_column_real(query, 2);
	now->theory_idle_fraction = prof_column_real(query, 3);
}

static void view_take_latest(struct view_now *now, const struct prof_query *query)
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

static void view_take_loss(struct view_now *now, const struct prof_query *query)
{
	now->loss = prof_column_real(query, 0);
	now->loss_step = prof_column_int(query, 1);
	now->loss_epoch = prof_column_int(query, 2);
}

static const struct {
	const char *sql;
	void (*take)(struct view_now *now, const struct prof_query *query);
} view_now_queries[] = {
	{bubble_sql, view_take_bubble}, {latest_sql, view_take_latest}, {loss_sql, view_take_loss}};

/* What the trainer that writes @path says of itself. */
static void view_now_progress(struct view_now *now, const char *path)
{
	struct prof_announcements runs;

	if (prof_announcements_read(&runs, false, NULL, NULL) != ST_OK)
		return;
	for (int i = 0; i < runs.count && !now->told; i++) {
		char database[FS_PATH_SIZE];

		if (!runs.items[i].report[0] ||
		    !fs_path(database, "%s/profile.db", runs.items[i].report))
			continue;
		if (fs_is_same(path, runs.items[i].report) || fs_is_same(path, database)) {
			now->told = true;
			now->progress = runs.items[i].progress;
		}
	}
	prof_announcements_free(&runs);
}

enum status view__summary_now(struct view_summary *screen, struct view_context *context,
			      struct err *err)
{
	struct view_now *now = &screen->now;
	enum status status = ST_OK;

	memset(now, 0, sizeof(*now));
	now->loss = NAN;
	now->live = context->source->state == VIEW_RECORDING;
	if (!now->live)
		return ST_OK;
	view_now_progress(now, context->source->path);
	for (size_t i = 0; i < sizeof(view_now_queries) / sizeof(view_now_queries[0]); i++) {
		struct prof_query *query;

		status = prof_query_open(&query, context->source->db, view_now_queries[i].sql, err);
		while (prof_query_next(query, &status, err))
			view_now_queries[i].take(now, query);
		prof_query_close(query);
		if (status != ST_OK)
			return status;
	}
	return ST_OK;
}

/* ---- the block ------------------------------------------------------------------------------- */

static void view_live_progress(struct view_summary *screen)
{
	const struct report_progress *progress = &screen->now.progress;
	const struct report_reached *reached = &screen->summary.reached;
	struct view_blocks *blocks = &screen->blocks;

	if (!screen->now.told && reached->known)
		view_blocks_fact(blocks, "reached", VIEW_BOLD, "epoch %lld, step %lld",
				 (long long)reached->epoch, (long long)reached->step);
	if (!screen->now.told)
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

/* How far training is by its recording, and until when. */
static void view_live_left(struct view_summary *screen)
{
	const struct view_glance *glance = &screen->glance;
	const int64_t left_ns = view__summary_left_ns(glance);
	char done[FMT_SIZE], all[FMT_SIZE], left[FMT_SIZE];

	if (left_ns < 0)
		return;
	if (!screen->now.told)
		view_blocks_bar(&screen->blocks, "training", VIEW_GOOD,
				(double)glance->steps / (double)glance->steps_of, NAN,
				"%s of %s steps", fmt_count(done, glance->steps),
				fmt_count(all, glance->steps_of));
	view_blocks_fact(&screen->blocks, "time left", VIEW_BOLD,
			 left_ns > 0 ? "about %s of training, at its pace so far"
				     : "training is done",
			 fmt_ns(left, left_ns));
}

/* "step 12: ", "update 3: ", or nothing. */
static const char *view_when(char out[VIEW_WHEN_SIZE], int64_t step, int64_t weight_update)
{
	out[0] = '\0';
	if (step != IPS_NULL)
		snprintf(out, VIEW_WHEN_SIZE, "step %lld: ", (long long)step);
	else if (weight_update != IPS_NULL)
		snprintf(out, VIEW_WHEN_SIZE, "update %lld: ", (long long)weight_update);
	return out;
}

static void view_live_loss(struct view_summary *screen)
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

static void view_live_tensor(struct view_summary *screen, const struct view_latest *latest)
{
	char mean[FMT_SIZE], std[FMT_SIZE], when[VIEW_WHEN_SIZE];
	struct view_place *place;

	view_blocks_fact(&screen->blocks, latest->key, latest->bad > 0 ? VIEW_BAD : VIEW_NORMAL,
			 "%smean %s, std %s%s",
			 view_when(when, latest->step, latest->weight_update),
			 fmt_real(mean, latest->mean), fmt_real(std, latest->std),
			 latest->bad > 0 ? ", NaN or Inf" : "");
	place = view__summary_link(screen, VIEW_SCREENS);
	if (!place)
		return;
	view_place_text(place->key, latest->key);
	place->step = latest->step;
	place->weight_update = latest->weight_update;
}

/* Columns of names: keys of tensors are long. */
static int view_live_width(const struct view_now *now)
{
	int width = NAME_WIDTH;

	for (int i = 0; i < now->latest_count; i++) {
		const int key = view_text_width(now->latest[i].key) + 1;

		width = max(key, width);
	}
	return min(width, NAME_MOST);
}

void view__summary_live(struct view_summary *screen)
{
	const struct view_now *now = &screen->now;
	struct view_blocks *blocks = &screen->blocks;
	char done[FMT_SIZE];

	if (!now->live)
		return;
	view_blocks_begin(blocks, "Now", view_live_width(now));
	view_live_progress(screen);
	view_live_left(screen);
	if (screen->summary.weight_updates > 0)
		view_blocks_fact(blocks, "done", VIEW_NORMAL, "%s weight updates",
				 fmt_count(done, screen->summary.weight_updates));
	if (now->runs > 0)
		view_blocks_bar(blocks, "idle fraction", VIEW_BUBBLE, now->idle_fraction,
				now->theory_idle_fraction, "%.1f%% %s, %lld runs",
				now->idle_fraction * 100, now->clock, (long long)now->runs);
	view_live_loss(screen);
	for (int i = 0; i < now->latest_count; i++)
		view_live_tensor(screen, &now->latest[i]);
}
