/*
 * The screen Health: the broken rules, how often, where and when; and where bad numbers began.
 *
 * Threading: that of the session; loading that of its worker. Ownership: view_health_internal.h.
 */
#include "viewer/health/view_health_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/summary/report_summary.h"
#include "viewer/view_layout.h"

/* The columns of the view `health`, for rows selected by id. */
#define HITS_FROM                                                                                  \
	"health_rows h LEFT JOIN tensor_rows i ON i.tensor_id = h.tensor_id "                      \
	"LEFT JOIN contexts c ON c.context_id = h.context_id"
#define HITS_COLUMNS                                                                               \
	"h.time_ns AS at_ns, h.rule, coalesce(h.layer, i.layer) AS layer, coalesce(h.key, i.key) " \
	"AS key, "                                                                                 \
	"c.phase, c.epoch, c.step, h.value, h.threshold, coalesce(c.stage, i.stage) AS stage, "    \
	"i.queue, c.rank, c.mode, c.execution, c.weight_update, c.microbatch, c.replica"

static const char health_rules_sql[] =
	"SELECT r.rule, coalesce(s.hits, 0) AS hits, r.enabled, r.threshold, r.patience, s.layer, "
	"s.key, s.stage, s.phase, s.epoch, s.step, s.time_ns AS at_ns, s.value, s.queue, s.rank, "
	"s.mode, "
	"s.execution, s.weight_update, s.microbatch, s.replica, r.why "
	"FROM health_rules r LEFT JOIN health_sums s ON s.rule = r.rule UNION ALL "
	"SELECT rule, hits, NULL, threshold, NULL, layer, key, stage, phase, epoch, step, time_ns, "
	"value, queue, rank, mode, execution, weight_update, microbatch, replica, NULL "
	"FROM health_sums WHERE rule NOT IN (SELECT rule FROM health_rules)";

static const char health_origin_sql[] =
	"SELECT position, role, key, layer, phase, step, n_nan, n_pos_inf + n_neg_inf AS n_inf, n, "
	"abs_max, std, mean, min, max, kind, stage, time_ns AS at_ns, queue, rank, mode, epoch, "
	"execution, "
	"weight_update, microbatch, replica FROM nonfinite_trail ORDER BY rank, position";

static const struct view_grid_column health_rules_columns[] = {
	{.name = "rule", .importance = 100, .least = 16},
	{.name = "hits", .importance = 95, .bar = true},
	{.name = "enabled", .title = "on", .importance = 40},
	{.name = "threshold", .importance = 80},
	{.name = "patience", .importance = 10},
	{.name = "layer", .title = "first in", .importance = 70},
	{.name = "key", .title = "tensor", .importance = 15},
	{.name = "phase", .importance = 12},
	{.name = "epoch", .importance = 11},
	{.name = "step", .title = "at step", .importance = 60},
	{.name = "at_ns", .title = "at", .importance = 50},
	{.name = "value", .title = "found", .importance = 55},
	{.name = "why", .importance = 5},
	{.importance = 0}, /* all others */
};

static const struct view_grid_column health_hits_columns[] = {
	{.name = "at_ns", .title = "at", .importance = 100},
	{.name = "rule", .importance = 95, .least = 12},
	{.name = "layer", .importance = 60},
	{.name = "key", .title = "tensor", .importance = 90, .least = 20},
	{.name = "phase", .importance = 50},
	{.name = "epoch", .importance = 45},
	{.name = "step", .importance = 85},
	{.name = "value", .title = "found", .importance = 80},
	{.name = "threshold", .importance = 70},
	{.name = "stage", .importance = 40},
	{.name = "mode", .importance = 5},
	{.name = "weight_update", .title = "update", .importance = 30},
	{.name = "microbatch", .importance = 20},
	{.name = "replica", .importance = 10},
	{.importance = 0}, /* all others */
};

static const struct view_grid_column health_parts_columns[] = {
	{.name = "layer", .importance = 100},
	{.name = "key", .title = "tensor", .importance = 100},
	{.name = "hits", .importance = 95, .bar = true},
	{.name = "rules", .importance = 80},
	{.name = "first_ns", .title = "first at", .importance = 60},
	{.name = "last_ns", .title = "last at", .importance = 50},
};

static const struct view_grid_column health_origin_columns[] = {
	{.name = "position", .title = "order", .importance = 100},
	{.name = "role", .importance = 90},
	{.name = "key", .title = "tensor", .importance = 95, .least = 22},
	{.name = "layer", .importance = 40},
	{.name = "phase", .importance = 85},
	{.name = "step", .importance = 86},
	{.name = "n_nan", .title = "NaN", .importance = 80},
	{.name = "n_inf", .title = "Inf", .importance = 79},
	{.name = "n", .title = "of", .importance = 70},
	{.name = "abs_max", .importance = 60},
	{.name = "std", .importance = 50},
	{.name = "mean", .importance = 20},
	{.name = "min", .importance = 19},
	{.name = "max", .importance = 18},
	{.name = "kind", .importance = 15},
	{.name = "stage", .importance = 14},
	{.name = "at_ns", .title = "at", .importance = 13},
	{.importance = 0}, /* all others */
};

#define KEYS_OF_HIT "rule,queue,key,layer,phase,epoch,step,microbatch,replica,rank"

static const struct health_way {
	const char *title, *keys, *sort;
	const struct view_grid_column *columns;
	int column_count;
} health_ways[] = {
	[VIEW_HEALTH_RULES] = {"rules", "rule,rank", "hits", health_rules_columns,
			       ARRAY_LEN(health_rules_columns)},
	[VIEW_HEALTH_HITS] = {"hits", KEYS_OF_HIT, "", health_hits_columns,
			      ARRAY_LEN(health_hits_columns)},
	[VIEW_HEALTH_PARTS] = {"by layer", NULL, "hits", health_parts_columns,
			       ARRAY_LEN(health_parts_columns)},
	[VIEW_HEALTH_ORIGIN] = {"where bad numbers began", "rank,position", "",
				health_origin_columns, ARRAY_LEN(health_origin_columns)},
};

static const struct health_part {
	const char *name, *title, *sql;
} health_parts[] = {
	[VIEW_HEALTH_BY_LAYER] = {"layer", "by layer", "coalesce(h.layer, i.layer)"},
	[VIEW_HEALTH_BY_KEY] = {"key", "by tensor", "coalesce(h.key, i.key)"},
	[VIEW_HEALTH_BY_STAGE] = {"stage", "by stage", "coalesce(c.stage, i.stage)"},
	[VIEW_HEALTH_BY_PHASE] = {"phase", "by phase", "c.phase"},
	[VIEW_HEALTH_BY_EPOCH] = {"epoch", "by epoch", "c.epoch"},
};

static const char *health_title(const struct view_health *screen, enum view_health_way way)
{
	return way == VIEW_HEALTH_PARTS ? health_parts[screen->part].title : health_ways[way].title;
}

/* Switch to another way, with a new grid. */
static void health_turn_to(struct view_health *screen, enum view_health_way way)
{
	if (screen->way == way)
		return;
	view_grid_fini(&screen->grid);
	screen->ranked[way] = false;
	screen->way = way;
}

/* ---- over the run ---------------------------------------------------------------------------- */

static const char health_time_sql[] = "SELECT time_ns FROM health_rows WHERE row_id = :row";

/* Every n-th hit, starting with the first. */
#define SAMPLED                                                                                    \
	"WITH sample(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM sample WHERE i + 1 < %d) "

/* Load the strip up to the end of the run, as far as hits and executions show it. */
static void health_strip_load(struct view_health_strip *strip, struct prof_db *db, struct err *err)
{
	const int64_t last = view_query_number(db, "SELECT max(row_id) FROM health_rows", err);
	struct prof_query *query;
	int64_t end;
	char sql[512];

	*strip = (struct view_health_strip){.every = 1};
	if (last < 1)
		return;
	strip->hits = last;
	strip->every = 1 + (last - 1) / VIEW_HEALTH_SAMPLE;
	end = view_query_number(db, "SELECT max(last_end_ns) FROM execution_sums", err);
	strip->until_ns = max(view_query_at(db, health_time_sql, last, err), end);
	strip->until_ns = max(strip->until_ns, 0);
	snprintf(sql, sizeof(sql),
		 SAMPLED "SELECT h.time_ns FROM sample CROSS JOIN health_rows h "
			 "WHERE h.row_id = 1 + sample.i * %lld",
		 VIEW_HEALTH_SAMPLE, (long long)strip->every);
	query = view_query_open(db, sql, err);
	while (view_query_next(query, err)) {
		const int64_t at = prof_column_int(query, 0);
		const double part = (double)at / ((double)strip->until_ns + 1);

		if (part >= 0 && part < 1)
			strip->bucket[(int)(part * VIEW_HEALTH_BUCKETS)] += (double)strip->every;
	}
	prof_query_close(query);
}

/* ---- where bad numbers began ----------------------------------------------------------------- */

static void health_origin_part(struct str *out, const struct prof_query *query, int column,
			       const char *name)
{
	if (prof_column_type(query, column) == PROF_TEXT)
		str_addf(out, ", %s %s", name, prof_column_text(query, column));
	else if (prof_column_type(query, column) == PROF_INT)
		str_addf(out, ", %s %lld", name, (long long)prof_column_int(query, column));
}

static void health_origin_load(struct view_health *screen, struct prof_db *db, struct err *err)
{
	struct prof_query *query = view_query_open(db, REPORT_FIRST_BAD, err);
	struct str text = {0};
	char when[FMT_SIZE];

	screen->origin[0] = '\0';
	screen->bad = view_query_next(query, err);
	if (screen->bad) {
		const char *value = prof_column_text(query, 11), *key = prof_column_text(query, 0);
		const char *phase = prof_column_text(query, 2);
		static const struct {
			const char *phase, *name;
		} names[] = {{"F", "forward"},
			     {"B", "backward"},
			     {"W", "weight part"},
			     {"R", "recomputation"},
			     {"U", "weight update"}};

		str_addf(&text, "Bad numbers began with %s in %s", value ? value : "?",
			 key ? key : "?");
		health_origin_part(&text, query, 10, "element");
		health_origin_part(&text, query, 2, "phase");
		for (size_t i = 0; i < ARRAY_LEN(names) && phase; i++)
			if (strcmp(phase, names[i].phase) == 0)
				str_addf(&text, " (%s)", names[i].name);
		health_origin_part(&text, query, 5, "step");
		health_origin_part(&text, query, 4, "update");
		health_origin_part(&text, query, 3, "epoch");
		if (prof_column_type(query, 9) == PROF_INT)
			str_addf(&text, ", at %s", fmt_ns(when, prof_column_int(query, 9)));
		if (text.failed)
			err_nomem(err);
		else
			str_copy(screen->origin, sizeof(screen->origin), str_peek(&text));
	}
	str_free(&text);
	prof_query_close(query);
}

/* ---- the grid -------------------------------------------------------------------------------- */

static void health_sql(struct view_health *screen, bool follow)
{
	const struct health_part *part = &health_parts[screen->part];
	const int64_t every = max(screen->source.every, screen->target.every);
	const int64_t all = max(screen->source.hits, screen->target.hits);
	const int64_t last = all > VIEW_HEALTH_PAGE ? all - VIEW_HEALTH_PAGE + 1 : 1;

	switch (screen->way) {
	case VIEW_HEALTH_HITS:
		if (follow || screen->page > last)
			screen->page = last;
		if (screen->page < 1)
			screen->page = 1;
		snprintf(screen->sql, sizeof(screen->sql),
			 "SELECT " HITS_COLUMNS " FROM " HITS_FROM
			 " WHERE h.row_id BETWEEN %lld AND %lld ORDER BY h.row_id",
			 (long long)screen->page, (long long)screen->page + (VIEW_HEALTH_PAGE - 1));
		break;
	case VIEW_HEALTH_PARTS:
		snprintf(screen->sql, sizeof(screen->sql),
			 SAMPLED
			 "SELECT %s AS %s, %lld * count(*) AS hits, group_concat(DISTINCT h.rule) "
			 "AS rules, min(h.time_ns) AS first_ns, max(h.time_ns) AS last_ns FROM "
			 "sample CROSS JOIN " HITS_FROM
			 " WHERE h.row_id = 1 + sample.i * %lld GROUP BY 1",
			 VIEW_HEALTH_SAMPLE, part->sql, part->name, (long long)every,
			 (long long)every);
		break;
	default:
		str_copy(screen->sql, sizeof(screen->sql),
			 screen->way == VIEW_HEALTH_RULES ? health_rules_sql : health_origin_sql);
		break;
	}
}

static enum view_style health_style(const struct report_table *table, int64_t row, int column)
{
	const struct report_cell *cell = &table->cells[row * table->column_count + column];
	const char *name = table->columns[column].name;
	const bool count = strcmp(name, "hits") == 0 || strcmp(name, "n_nan") == 0 ||
			   strcmp(name, "n_inf") == 0;

	if (count && cell->type == PROF_INT)
		return cell->integer > 0 ? VIEW_BAD : VIEW_DIM;
	if (strcmp(name, "role") == 0 && cell->text && strcmp(cell->text, "bad") == 0)
		return VIEW_BAD;
	return strcmp(name, "why") == 0 ? VIEW_DIM : VIEW_NORMAL;
}

static void health_grid_load(struct view_health *screen, struct view_context *context,
			     struct err *err)
{
	const struct health_way *way = &health_ways[screen->way];
	const char *keys = screen->way == VIEW_HEALTH_RULES && context->target
				   ? "rule" /* those without hits have no rank */
			   : screen->way == VIEW_HEALTH_PARTS ? health_parts[screen->part].name
			   : screen->way == VIEW_HEALTH_HITS && !context->target
				   ? NULL /* many hits are alike: the cursor keeps its number */
				   : way->keys;

	health_sql(screen, context->follow);
	screen->grid.style = health_style;
	if (view_grid_query(&screen->grid, context, "health", screen->sql, keys, way->columns,
			    way->column_count, 0, err) != ST_OK)
		return;
	if (!screen->ranked[screen->way] && !view_grid_sort(&screen->grid, way->sort, false)) {
		err_set(err, ST_INTERRUPTED, "stopped");
		return;
	}
	/* The trail ends with the first bad tensor: show that end. */
	if (!screen->ranked[screen->way] && screen->way == VIEW_HEALTH_ORIGIN)
		view_grid_request(&screen->grid, VIEW_END_REQUEST);
	screen->ranked[screen->way] = true;
}

/* ---- loading --------------------------------------------------------------------------------- */

#define HEAD_MOST 3 /* rows for where bad numbers began */
#define WHY_MOST  3

/* Rows for the longest explanation of a rule, so that the layout is the same for every cursor. */
static int health_why_rows(const struct view_health *screen, int width)
{
	const struct report_table *table = &screen->grid.table;
	const struct view_rect area = {0, 0, width - 2, WHY_MOST};
	int most = 0;

	for (int c = 0; c < table->column_count; c++) {
		if (strcmp(table->columns[c].name, "why") != 0)
			continue;
		for (int64_t row = 0; row < table->row_count; row++) {
			const struct report_cell *cell =
				&table->cells[row * table->column_count + c];
			const int rows =
				cell->type == PROF_TEXT
					? view_text_folded(NULL, area, VIEW_DIM, cell->text)
					: 0;

			most = max(rows, most);
		}
	}
	return most;
}

static enum status health_load(void *state, struct view_context *context, bool news,
			       struct err *err)
{
	struct view_health *screen = state;
	const int width = context->body.width, height = context->body.height;
	struct err own;
	int origin = 1;

	err = err_start(err, &own);
	if (news) {
		health_strip_load(&screen->source, context->source->db, err);
		if (context->target)
			health_strip_load(&screen->target, context->target->db, err);
		health_origin_load(screen, context->source->db, err);
	}
	if (!err_stuck(err) && view_cancelled(context))
		err_set(err, ST_INTERRUPTED, "interrupted");
	if (!err_stuck(err))
		health_grid_load(screen, context, err);
	if (err_stuck(err))
		return err->status;
	if (screen->bad)
		origin = view_text_folded(NULL, (struct view_rect){0, 0, width - 2, HEAD_MOST},
					  VIEW_BAD, screen->origin);
	screen->head = height >= 12 ? 1 + origin : 2;
	screen->why_rows = context->whole ? 0 : health_why_rows(screen, width);
	screen->why_rows = height >= 20 || screen->why_rows == 0 ? screen->why_rows : 1;
	/* Below the grid: the explanation of a rule, the strips, an axis. */
	screen->foot = height < 12 ? 0 : screen->why_rows + (context->target ? 2 : 1) + 1;
	screen->grid_height = height - screen->head - screen->foot;
	view_grid_layout(&screen->grid,
			 (struct view_rect){0, screen->head, width, screen->grid_height});
	return ST_OK;
}

/* Choose the page with the first hit at or after @time_ns, in the source or the @target. Hits are
 * in order of time; with merged ranks approximately. */
static void health_page_at(struct view_health *screen, const struct view_context *context,
			   bool target, int64_t time_ns, struct err *err)
{
	struct prof_db *db = target ? context->target->db : context->source->db;
	const int64_t last = target ? screen->target.hits : screen->source.hits;
	int64_t low;

	SORTED_FIRST(low, 1, last, view_query_at(db, health_time_sql, low, err) < time_ns);
	screen->page = low > VIEW_HEALTH_PAGE / 2 ? low - VIEW_HEALTH_PAGE / 2 : 1;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void health_draw_strip(const struct view_health_strip *strip, struct view_pane *pane, int y,
			      enum view_style style, const char *name)
{
	const int left = 8, width = pane->rect.width - left - 1;
	double most = 0;

	view_text_cut(pane, 1, y, left - 2, style, name);
	for (int round = 0; round < 2; round++)
		for (int x = 0; x < width; x++) {
			const int from = x * VIEW_HEALTH_BUCKETS / width;
			int to = (x + 1) * VIEW_HEALTH_BUCKETS / width;
			double hits = 0;

			if (to <= from)
				to = from + 1;
			for (int i = from; i < to; i++)
				hits += strip->bucket[i];
			if (round == 0)
				most = max(hits, most);
			else
				view_put(pane, left + x, y, style,
					 view_level_char(pane->canvas, most > 0 ? hits / most : 0));
		}
}

static void health_draw_axis(const struct view_health *screen, const struct view_context *context,
			     struct view_pane *pane, int y)
{
	const struct view_health_strip *strip = &screen->source;
	char hits[FMT_SIZE], every[FMT_SIZE], until[FMT_SIZE], text[160];
	int used;

	if (strip->hits == 0 && screen->target.hits == 0) {
		view_text(pane, 1, y, VIEW_GOOD, "No rule has been broken.");
		return;
	}
	if (context->target)
		snprintf(text, sizeof(text), "%s and %s hits over time",
			 fmt_count(hits, strip->hits), fmt_count(every, screen->target.hits));
	else if (strip->every > 1)
		snprintf(text, sizeof(text), "%s hits over time, by one in %s",
			 fmt_count(hits, strip->hits), fmt_count(every, strip->every));
	else
		snprintf(text, sizeof(text), "%s hits over time", fmt_count(hits, strip->hits));
	used = view_text_cut(pane, 8, y, pane->rect.width - 9, VIEW_DIM, text);
	fmt_ns(until, max(strip->until_ns, screen->target.until_ns));
	if (used + 12 + utf8_columns(until) < pane->rect.width)
		view_text_right(pane, 8, y, pane->rect.width - 9, VIEW_DIM, until);
}

static const char *health_nothing(const struct view_health *screen)
{
	if (screen->grid.table.row_count > 0)
		return "";
	switch (screen->way) {
	case VIEW_HEALTH_RULES:
		return "Nothing was watched: this was recorded without health rules.";
	case VIEW_HEALTH_ORIGIN:
		return "There is no trail: no bad number was found.";
	default:
		return "No rule has been broken.";
	}
}

static void health_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_health *screen = state;
	const char *why = view_grid_text(&screen->grid, "why");
	int x = 1, y;

	for (int way = 0; way < VIEW_HEALTH_WAY_COUNT; way++) {
		const bool active = way == (int)screen->way;

		x += view_textf(pane, x, 0, active ? VIEW_KEY : VIEW_DIM, active ? "[%s]" : " %s ",
				health_title(screen, (enum view_health_way)way));
		x++;
	}
	/* Without rules nothing was watched, so nothing can be said. */
	if (screen->bad)
		view_text_folded(pane,
				 (struct view_rect){1, 1, pane->rect.width - 2, screen->head - 1},
				 VIEW_BAD, screen->origin);
	else if (screen->way != VIEW_HEALTH_RULES || screen->grid.table.row_count > 0)
		view_text_cut(pane, 1, 1, pane->rect.width - 2, VIEW_DIM,
			      "No NaN and no Inf was found in what is watched.");
	if (screen->grid.table.row_count > 0)
		view_grid_draw(&screen->grid, pane, !context->whole);
	else if (screen->head + screen->foot + 1 < pane->rect.height)
		view_text(pane, 1, screen->head + 1, VIEW_DIM, health_nothing(screen));
	if (screen->foot <= 0)
		return;
	y = pane->rect.height - screen->foot;
	if (why && !context->whole)
		view_text_folded(pane,
				 (struct view_rect){1, y, pane->rect.width - 2, screen->why_rows},
				 VIEW_DIM, why);
	y += screen->why_rows;
	health_draw_strip(&screen->source, pane, y, VIEW_BAD, context->target ? "Source" : "hits");
	if (context->target)
		health_draw_strip(&screen->target, pane, ++y, VIEW_TARGET, "Target");
	health_draw_axis(screen, context, pane, y + 1);
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void health_init(void *state)
{
	struct view_health *screen = state;

	screen->page = 1;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Change the page of hits if the cursor leaves it; true: changed. */
static bool health_turn_page(struct view_health *screen, enum view_request request)
{
	struct view_grid *grid = &screen->grid;
	const int64_t all = screen->source.hits, before = screen->page;
	const bool plain = grid->sort < 0 && !grid->filter[0];
	const bool down = request == VIEW_DOWN_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
	const bool up = request == VIEW_UP_REQUEST || request == VIEW_PAGE_UP_REQUEST;

	if (screen->way != VIEW_HEALTH_HITS)
		return false;
	if (request == VIEW_HOME_REQUEST && plain)
		screen->page = 1;
	else if (request == VIEW_END_REQUEST && plain)
		screen->page = all - VIEW_HEALTH_PAGE + 1;
	else if (down && grid->at + 1 >= grid->count && all - before >= VIEW_HEALTH_PAGE)
		screen->page += VIEW_HEALTH_PAGE;
	else if (up && grid->at == 0)
		screen->page -= VIEW_HEALTH_PAGE;
	if (screen->page < 1)
		screen->page = 1;
	if (screen->page == before)
		return false;
	grid->at = up || request == VIEW_END_REQUEST ? VIEW_HEALTH_PAGE - 1 : 0;
	return true;
}

/* The row's number; 0: none. */
static int64_t health_row_number(const struct view_health *screen, const char *column)
{
	const int64_t number = view_grid_int(&screen->grid, column);

	return number != IPS_NULL ? number : 0;
}

static enum view_answer health_open_rule(struct view_health *screen, struct view_context *context)
{
	const char *rule = view_grid_text(&screen->grid, "rule");
	const bool source = health_row_number(screen, "hits") > 0;
	const bool target = !source && health_row_number(screen, "hits_target") > 0;
	const int64_t first = health_row_number(screen, target ? "at_ns_target" : "at_ns");
	struct err err = {0};
	char name[64] = "";

	if (!rule || (!source && !target)) {
		view_messagef(context, "this rule has not been broken");
		return VIEW_DRAW;
	}
	/* Names of rules are letters and underscores, so they are valid regular expressions. */
	str_copy(name, sizeof(name), rule);
	health_turn_to(screen, VIEW_HEALTH_HITS);
	health_page_at(screen, context, target, first, &err);
	if (err_stuck(&err))
		screen->page = 1;
	str_copy(screen->grid.filter, sizeof(screen->grid.filter), name);
	return VIEW_LOAD;
}

static enum view_answer health_request(void *state, struct view_context *context,
				       enum view_request request)
{
	struct view_health *screen = state;
	enum view_answer answer;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		health_turn_to(screen, (enum view_health_way)view_next_choice(
					       (int)screen->way, VIEW_HEALTH_WAY_COUNT, request));
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		if (screen->way == VIEW_HEALTH_PARTS) {
			screen->part = (screen->part + 1) % VIEW_HEALTH_PART_COUNT;
			view_grid_fini(&screen->grid);
			screen->ranked[VIEW_HEALTH_PARTS] = false;
		}
		health_turn_to(screen, VIEW_HEALTH_PARTS);
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		return screen->way == VIEW_HEALTH_RULES ? health_open_rule(screen, context)
							: VIEW_JOIN;
	case VIEW_JOIN_REQUEST:
		return VIEW_JOIN;
	default:
		break;
	}
	if (health_turn_page(screen, request))
		return VIEW_LOAD;
	answer = view_grid_request(&screen->grid, request);
	if (answer == VIEW_UNHANDLED && request == VIEW_BACK_REQUEST &&
	    screen->way != VIEW_HEALTH_RULES) {
		health_turn_to(screen, VIEW_HEALTH_RULES);
		return VIEW_LOAD;
	}
	return answer;
}

static void health_status(const void *state, const struct view_context *context, char *out,
			  size_t size)
{
	const struct view_health *screen = state;
	char from[FMT_SIZE], to[FMT_SIZE], all[FMT_SIZE], grid[160];

	(void)context;
	view_grid_status(&screen->grid, grid, sizeof(grid));
	if (screen->way == VIEW_HEALTH_HITS && screen->source.hits > VIEW_HEALTH_PAGE)
		snprintf(out, size, "hits %s to %s of %s: %s", fmt_count(from, screen->page),
			 fmt_count(to, screen->page - 1 + screen->grid.table.row_count),
			 fmt_count(all, screen->source.hits), grid);
	else if (screen->way == VIEW_HEALTH_PARTS && screen->source.every > 1)
		snprintf(out, size, "estimated from one hit in %s: %s",
			 fmt_count(all, screen->source.every), grid);
	else
		snprintf(out, size, "%s: %s", health_title(screen, screen->way), grid);
}

static int health_height(const void *state, const struct view_context *context)
{
	const struct view_health *screen = state;
	const int64_t rows = min(screen->grid.count, 1000);

	return screen->head + 1 + (int)rows + 1 + (context->target ? 4 : 3);
}

/* ---- from screen to screen ------------------------------------------------------------------- */

static bool health_place(const void *state, struct view_place *out)
{
	const struct view_health *screen = state;
	const struct view_grid *grid = &screen->grid;
	const bool parts = screen->way == VIEW_HEALTH_PARTS;
	const int64_t its = view_grid_int(grid, parts ? "first_ns_target" : "at_ns_target");

	view_place_clear(out);
	if (grid->count == 0)
		return false;
	view_grid_place(grid, NULL, "", out);
	view_grid_place(grid, NULL, "_target", out);
	out->time_ns = view_grid_int(grid, parts ? "first_ns" : "at_ns");
	if (out->time_ns == IPS_NULL && its != IPS_NULL) {
		out->target_only = 1;
		out->time_ns = its;
	}
	if (out->time_ns != IPS_NULL)
		view_place_text(out->clock, "host");
	return true;
}

/* Is it about where bad numbers began? */
static bool health_is_of_origin(const struct view_place *place)
{
	return strcmp(place->view, "nonfinite_trail") == 0 ||
	       strcmp(place->view, "first_nonfinite") == 0;
}

static bool health_offers(const struct view_place *place, char *out, size_t size)
{
	if (health_is_of_origin(place))
		snprintf(out, size, "where bad numbers began");
	else if (place->rule[0])
		snprintf(out, size, "hits of the rule %s", place->rule);
	else if (place->hit_ns != IPS_NULL && place->step != IPS_NULL)
		snprintf(out, size, "rules broken at step %lld", (long long)place->step);
	else if (place->hit_ns != IPS_NULL)
		snprintf(out, size, "rules broken at weight update %lld",
			 (long long)place->weight_update);
	else if (place->layer[0] && place->layer_hits != 0)
		snprintf(out, size, "rules broken in %s", place->layer);
	else
		return false;
	return true;
}

static enum status health_go(void *state, struct view_context *context,
			     const struct view_place *place, struct err *err)
{
	struct view_health *screen = state;
	const bool rule = place->rule[0] != '\0';
	const int64_t at = rule ? place->time_ns : place->hit_ns;
	const bool target = place->target_only == 1 && context->target;
	const enum view_health_way way = at != IPS_NULL ? VIEW_HEALTH_HITS
					 : rule         ? VIEW_HEALTH_RULES
							: VIEW_HEALTH_PARTS;
	struct err own;
	bool found;

	err = err_start(err, &own);
	if (health_is_of_origin(place)) {
		health_turn_to(screen, VIEW_HEALTH_ORIGIN);
		return health_load(screen, context, false, err);
	}
	screen->part = VIEW_HEALTH_BY_LAYER;
	health_turn_to(screen, way);
	if (at != IPS_NULL)
		health_page_at(screen, context, target, at, err);
	if (err_stuck(err) || health_load(screen, context, false, err) != ST_OK)
		return err->status;
	found = at != IPS_NULL &&
		view_grid_go(&screen->grid, target ? "at_ns_target" : "at_ns", NULL, at);
	if (!found)
		found = view_grid_go(&screen->grid, rule ? "rule" : "layer",
				     rule ? place->rule : place->layer, 0);
	return found  ? ST_OK
	       : rule ? err_set(err, ST_NOTFOUND, "the rule %s has not been broken", place->rule)
		      : err_set(err, ST_NOTFOUND, "no rule has been broken in %s", place->layer);
}

/* The same statement on the contract's views. */
static void health_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_health *screen = state;

	(void)context;
	switch (screen->way) {
	case VIEW_HEALTH_HITS:
		str_addf(out, "SELECT * FROM health LIMIT %d OFFSET %lld;\n", VIEW_HEALTH_PAGE,
			 (long long)screen->page - 1);
		break;
	case VIEW_HEALTH_PARTS:
		str_addf(out,
			 "SELECT %s, count(*) AS hits, group_concat(DISTINCT rule) AS rules, "
			 "min(time_ns) AS first_ns, max(time_ns) AS last_ns FROM health "
			 "GROUP BY 1 ORDER BY 2 DESC;\n",
			 health_parts[screen->part].name);
		break;
	default:
		str_addf(out, "%s;\n", screen->sql);
		break;
	}
}

static const char *health_word(const void *state, enum view_request request)
{
	const struct view_health *screen = state;

	if (request == VIEW_BREAKDOWN_REQUEST)
		return "group";
	if (request == VIEW_ENTER_REQUEST && screen->way == VIEW_HEALTH_RULES)
		return health_row_number(screen, "hits") > 0 ||
				       health_row_number(screen, "hits_target") > 0
			       ? NULL
			       : "";
	return request == VIEW_ENTER_REQUEST && screen->grid.count == 0 ? "" : NULL;
}

const struct view_screen_ops view_health_ops = {
	.name = "health",
	.title = "Health",
	.brief = "Hlth",
	.key = 'H',
	.where = VIEW_ON_HEALTH,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_health),
	.init = health_init,
	.fini = view_state_grid_fini,
	.grid = view_state_grid,
	.load = health_load,
	.draw = health_draw,
	.request = health_request,
	.word = health_word,
	.status = health_status,
	.height = health_height,
	.place = health_place,
	.offers = health_offers,
	.go = health_go,
	.query = health_query,
};
