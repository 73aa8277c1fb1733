/*
 * Loading the screen Health: its grid, the strip of hits over time, and where bad numbers began.
 *
 * Threading: the session's worker.
 */
#include "viewer/health/view_health_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/summary/report_summary.h"

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
	{.name = "stage", .importance = 0},
	{.name = "phase", .importance = 12},
	{.name = "epoch", .importance = 11},
	{.name = "step", .title = "at step", .importance = 60},
	{.name = "at_ns", .title = "at", .importance = 50},
	{.name = "value", .title = "found", .importance = 55},
	{.name = "queue", .importance = 0},
	{.name = "rank", .importance = 0},
	{.name = "mode", .importance = 0},
	{.name = "execution", .importance = 0},
	{.name = "weight_update", .importance = 0},
	{.name = "microbatch", .importance = 0},
	{.name = "replica", .importance = 0},
	{.name = "why", .importance = 5},
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
	{.name = "queue", .importance = 0},
	{.name = "rank", .importance = 0},
	{.name = "mode", .importance = 5},
	{.name = "execution", .importance = 0},
	{.name = "weight_update", .title = "update", .importance = 30},
	{.name = "microbatch", .importance = 20},
	{.name = "replica", .importance = 10},
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
	{.name = "queue", .importance = 0},
	{.name = "rank", .importance = 0},
	{.name = "mode", .importance = 0},
	{.name = "epoch", .importance = 0},
	{.name = "execution", .importance = 0},
	{.name = "weight_update", .importance = 0},
	{.name = "microbatch", .importance = 0},
	{.name = "replica", .importance = 0},
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
	[VIEW_HEALTH_BY_layer] = {"layer", "by layer", "coalesce(h.layer, i.layer)"},
	[VIEW_HEALTH_BY_key] = {"key", "by tensor", "coalesce(h.key, i.key)"},
	[VIEW_HEALTH_BY_stage] = {"stage", "by stage", "coalesce(c.stage, i.stage)"},
	[VIEW_HEALTH_BY_phase] = {"phase", "by phase", "c.phase"},
	[VIEW_HEALTH_BY_epoch] = {"epoch", "by epoch", "c.epoch"},
};

const char *view__health_title(const struct view_health *screen, enum view_health_way way)
{
	return way == VIEW_HEALTH_PARTS ? health_parts[screen->part].title : health_ways[way].title;
}

void view__health_way(struct view_health *screen, enum view_health_way way)
{
	if (screen->way == way)
		return;
	view_grid_fini(&screen->grid);
	memset(&screen->grid, 0, sizeof(screen->grid));
	screen->ranked[way] = false;
	screen->way = way;
}

/* ---- over the run ---------------------------------------------------------------------------- */

static enum status health_query_rules(struct prof_db *db, const char *sql, int64_t row,
				      int64_t *out, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*out = IPS_NULL;
	if (row != IPS_NULL)
		prof_query_int(query, ":row", row);
	if (prof_query_next(query, &status, err))
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

/* Every n-th hit, starting with the first. */
#define SAMPLED                                                                                    \
	"WITH sample(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM sample WHERE i + 1 < %d) "

static enum status health_strip_fill(struct view_health_strip *strip, struct prof_db *db,
				     struct err *err)
{
	struct prof_query *query;
	char sql[512];
	enum status status;

	snprintf(sql, sizeof(sql),
		 SAMPLED "SELECT h.time_ns FROM sample CROSS JOIN health_rows h "
			 "WHERE h.row_id = 1 + sample.i * %lld",
		 VIEW_HEALTH_SAMPLE, (long long)strip->every);
	status = prof_query_open(&query, db, sql, err);
	while (prof_query_next(query, &status, err)) {
		const int64_t at = prof_column_int(query, 0);
		const double part = (double)at / ((double)strip->until_ns + 1);

		if (part >= 0 && part < 1)
			strip->bucket[(int)(part * VIEW_HEALTH_BUCKETS)] += (double)strip->every;
	}
	prof_query_close(query);
	return status;
}

/* Load the strip up to the end of the run, as far as hits and executions show it. */
static enum status health_strip_load(struct view_health_strip *strip, struct prof_db *db,
				     struct err *err)
{
	int64_t last, end;
	enum status status;

	memset(strip, 0, sizeof(*strip));
	strip->every = 1;
	status =
		health_query_rules(db, "SELECT max(row_id) FROM health_rows", IPS_NULL, &last, err);
	if (status != ST_OK || last < 1)
		return status;
	strip->hits = last;
	strip->every = 1 + (last - 1) / VIEW_HEALTH_SAMPLE;
	status = health_query_rules(db, "SELECT max(last_end_ns) FROM execution_sums", IPS_NULL,
				    &strip->until_ns, err);
	if (status == ST_OK)
		status = health_query_rules(
			db, "SELECT time_ns FROM health_rows WHERE row_id = :row", last, &end, err);
	if (status != ST_OK)
		return status;
	if (end > strip->until_ns)
		strip->until_ns = end;
	if (strip->until_ns < 0)
		strip->until_ns = 0;
	return health_strip_fill(strip, db, err);
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

static void health_origin_phase(struct str *out, const char *phase)
{
	static const struct {
		const char *phase, *name;
	} names[] = {{"F", "forward"},
		     {"B", "backward"},
		     {"W", "weight part"},
		     {"R", "recomputation"},
		     {"U", "weight update"}};

	for (size_t i = 0; i < ARRAY_LEN(names) && phase; i++)
		if (strcmp(phase, names[i].phase) == 0)
			str_addf(out, " (%s)", names[i].name);
}

static enum status health_origin_load(struct view_health *screen, struct prof_db *db,
				      struct err *err)
{
	struct prof_query *query;
	struct str text = {0};
	char when[FMT_SIZE];
	enum status status = prof_query_open(&query, db, REPORT_FIRST_BAD, err);

	screen->origin[0] = '\0';
	screen->bad = prof_query_next(query, &status, err);
	if (screen->bad) {
		const char *value = prof_column_text(query, 11), *key = prof_column_text(query, 0);

		str_addf(&text, "Bad numbers began with %s in %s", value ? value : "?",
			 key ? key : "?");
		health_origin_part(&text, query, 10, "element");
		health_origin_part(&text, query, 2, "phase");
		health_origin_phase(&text, prof_column_text(query, 2));
		health_origin_part(&text, query, 5, "step");
		health_origin_part(&text, query, 4, "update");
		health_origin_part(&text, query, 3, "epoch");
		if (prof_column_type(query, 9) == PROF_INT)
			str_addf(&text, ", at %s", fmt_ns(when, prof_column_int(query, 9)));
		if (text.failed)
			status = err_nomem(err);
		else
			str_copy(screen->origin, sizeof(screen->origin), str_peek(&text));
	}
	str_free(&text);
	prof_query_close(query);
	return status;
}

/* ---- the grid -------------------------------------------------------------------------------- */

static void health_hits_clamp(struct view_health *screen, bool follow)
{
	const int64_t all = max(screen->source.hits, screen->target.hits);
	const int64_t last = all > VIEW_HEALTH_PAGE ? all - VIEW_HEALTH_PAGE + 1 : 1;

	if (follow || screen->page > last)
		screen->page = last;
	if (screen->page < 1)
		screen->page = 1;
}

static void health_sql(struct view_health *screen, bool follow)
{
	const struct health_part *part = &health_parts[screen->part];
	const int64_t every = max(screen->source.every, screen->target.every);

	switch (screen->way) {
	case VIEW_HEALTH_HITS:
		health_hits_clamp(screen, follow);
		snprintf(screen->sql, sizeof(screen->sql),
			 "SELECT " HITS_COLUMNS " FROM " HITS_FROM
			 " WHERE h.row_id >= %lld AND h.row_id < %lld ORDER BY h.row_id",
			 (long long)screen->page, (long long)screen->page + VIEW_HEALTH_PAGE);
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

static enum status health_grid_load(struct view_health *screen, struct view_context *context,
				    struct err *err)
{
	const struct health_way *way = &health_ways[screen->way];
	const char *keys = screen->way == VIEW_HEALTH_RULES && context->target
				   ? "rule" /* those without hits have no rank */
			   : screen->way == VIEW_HEALTH_PARTS ? health_parts[screen->part].name
			   : screen->way == VIEW_HEALTH_HITS && !context->target
				   ? NULL /* many hits are alike: the cursor keeps its number */
				   : way->keys;
	enum status status;

	health_sql(screen, context->follow);
	screen->grid.style = health_style;
	screen->grid.differ = context->differ;
	status = view_grid_query(&screen->grid, context, "health", screen->sql, keys, way->columns,
				 way->column_count, 0, err);
	if (status != ST_OK)
		return status;
	if (!screen->ranked[screen->way] && !view_grid_sort(&screen->grid, way->sort, false))
		return err_set(err, ST_INTERRUPTED, "stopped");
	/* The trail ends with the first bad tensor: show that end. */
	if (!screen->ranked[screen->way] && screen->way == VIEW_HEALTH_ORIGIN)
		view_grid_request(&screen->grid, VIEW_END_REQUEST);
	screen->ranked[screen->way] = true;
	return ST_OK;
}

enum status view__health_load(void *state, struct view_context *context, bool news, struct err *err)
{
	struct view_health *screen = state;
	enum status status = ST_OK;

	if (news) {
		status = health_strip_load(&screen->source, context->source->db, err);
		if (status == ST_OK && context->target)
			status = health_strip_load(&screen->target, context->target->db, err);
		if (status == ST_OK)
			status = health_origin_load(screen, context->source->db, err);
	}
	if (status == ST_OK && view_cancelled(context))
		status = err_set(err, ST_INTERRUPTED, "interrupted");
	if (status == ST_OK)
		status = health_grid_load(screen, context, err);
	if (status != ST_OK)
		return status;
	view__health_layout(screen, context);
	view_grid_layout(&screen->grid, (struct view_rect){0, screen->head, context->body.width,
							   screen->grid_height});
	return ST_OK;
}

static bool health_is_before(struct prof_db *db, int64_t row, int64_t time_ns, enum status *status,
			     struct err *err)
{
	int64_t at = INT64_MAX;

	if (*status == ST_OK)
		*status = health_query_rules(
			db, "SELECT time_ns FROM health_rows WHERE row_id = :row", row, &at, err);
	return *status == ST_OK && at < time_ns;
}

/* Hits are in order of time; with merged ranks approximately. */
enum status view__health_page_at(struct view_health *screen, const struct view_context *context,
				 bool target, int64_t time_ns, struct err *err)
{
	struct prof_db *db = target ? context->target->db : context->source->db;
	const int64_t last = target ? screen->target.hits : screen->source.hits;
	enum status status = ST_OK;
	int64_t low;

	SORTED_FIRST(low, 1, last, health_is_before(db, low, time_ns, &status, err));
	screen->page = low > VIEW_HEALTH_PAGE / 2 ? low - VIEW_HEALTH_PAGE / 2 : 1;
	return status;
}
