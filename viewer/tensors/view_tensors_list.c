/*
 * The list of tensors: sums of the chosen statistic, and a sparkline of sampled rows for each.
 *
 * Threading: the session's worker; drawing on the terminal's thread.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* The titles name the statistic of the column. */
#define LIST_COLUMNS(name)                                                                         \
	static const struct view_grid_column list_##name[] = {                                     \
		{"key", NULL, 0, 24, 100, false},                                                  \
		{"kind", NULL, 0, 8, 80, false},                                                   \
		{"greatest", "max " #name, 0, 0, 95, false},                                       \
		{"last", "last " #name, 0, 0, 90, false},                                          \
		{"trend", NULL, 16, 16, 85, false},                                                \
		{"n_nan", "NaN", 0, 0, 88, false},                                                 \
		{"n_inf", "Inf", 0, 0, 87, false},                                                 \
		{"least", "min " #name, 0, 0, 60, false},                                          \
		{"first", "first " #name, 0, 0, 40, false},                                        \
		{"rows", NULL, 0, 0, 55, false},                                                   \
		{"layer", NULL, 0, 10, 30, false},                                                 \
		{"stage", NULL, 0, 0, 45, false},                                                  \
		{"shape", NULL, 0, 10, 35, false},                                                 \
		{"queue", NULL, 0, 8, 5, false},                                                   \
		{"rank", NULL, 0, 0, 0, false},                                                    \
	};
#define STATISTICS(X)                                                                              \
	X(mean)                                                                                    \
	X(std)                                                                                     \
	X(min)                                                                                     \
	X(max)                                                                                     \
	X(abs_max)                                                                                 \
	X(abs_min_nonzero)                                                                         \
	X(l1)                                                                                      \
	X(l2)                                                                                      \
	X(inactive)                                                                                \
	X(update_ratio)
STATISTICS(LIST_COLUMNS)

static const struct list_statistic {
	const char *name;
	const struct view_grid_column *columns;
	int count;
} list_statistics[] = {
#define LIST_STATISTIC(name) {#name, list_##name, (int)ARRAY_LEN(list_##name)},
	STATISTICS(LIST_STATISTIC)
#undef LIST_STATISTIC
};

/* LEFT JOIN: tensors whose health is watched without recording rows have no sums. */
void view__tensors_list_sql(const struct view_tensors *screen, bool compared, struct str *out)
{
	const char *name = view__statistic(screen);

	str_addf(out,
		 "SELECT t.key, t.kind, s.greatest_%s AS greatest, s.last_%s AS last, %s"
		 "s.n_nan, s.n_pos_inf + s.n_neg_inf AS n_inf, s.least_%s AS least, "
		 "s.first_%s AS first, s.rows, t.layer, t.stage, t.shape, t.queue, s.rank "
		 "FROM tensors t LEFT JOIN tensor_sums s ON s.key = t.key AND s.queue IS t.queue",
		 name, name, compared ? "" : "NULL AS trend, ", name, name);
	if (!screen->kind[0])
		return;
	str_add(out, " WHERE t.kind = ");
	str_add_sql(out, screen->kind);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Gradients come first, as the most used kind. Names longer than 47 bytes are excluded. */
static const char tensors_list_kinds_sql[] =
	"SELECT kind FROM tensors WHERE length(CAST(kind AS BLOB)) BETWEEN 1 AND 47\n"
	"GROUP BY kind ORDER BY kind <> 'gradient', kind";
_Static_assert(VIEW_TENSORS_KIND == 48, "the query says 47");

static enum view_style tensors_list_style(const struct report_table *table, int64_t row, int column)
{
	const struct report_cell *cell = &table->cells[row * table->column_count + column];
	const char *name = table->columns[column].name;

	if (strncmp(name, "n_nan", 5) == 0 || strncmp(name, "n_inf", 5) == 0)
		return cell->type == PROF_INT && cell->integer > 0 ? VIEW_BAD : VIEW_DIM;
	if (cell->type == PROF_REAL && !isfinite(cell->real))
		return VIEW_BAD;
	return strcmp(name, "key") == 0 || cell->type == PROF_REAL ? VIEW_NORMAL : VIEW_DIM;
}

struct spark_index {
	struct view_spark **by;
	size_t count;
};

static int tensors_spark_order(const void *a, const void *b)
{
	const struct view_spark *one = *(struct view_spark *const *)a;
	const struct view_spark *two = *(struct view_spark *const *)b;

	return SORTED_BY(one, two, tensor_id, rank);
}

/* Add row @at of its replica. The replicas' rows of one moment share a point. */
static void tensors_spark_add(struct view_spark *spark, int64_t at,
			      const struct report_tensor_row *row)
{
	const int count = spark->most < VIEW_SPARK_POINTS ? (int)spark->most : VIEW_SPARK_POINTS;
	struct view_chart_point *point = &spark->points[at * count / spark->most];

	if (spark->count == 0)
		for (int i = 0; i < count; i++)
			spark->points[i] = (struct view_chart_point){NAN, NAN, NAN, false};
	spark->count = count;
	point->bad |= row->n_bad > 0;
	if (!isfinite(row->value))
		return;
	/* The value of a point is that of its last row. */
	point->value = row->value;
	point->least = fmin(point->least, row->value);
	point->greatest = fmax(point->greatest, row->value);
}

/* Number of rows so far, per spark and replica. */
struct spark_rows {
	int64_t *of;
	size_t replicas;
};

static void tensors_sparks_fill(struct view_tensors *screen, struct err *err)
{
	struct spark_index index = {.count = (size_t)screen->spark_count};
	struct spark_rows rows;

	for (int i = 0; i < screen->sampled.count; i++)
		(void)view__replica_shows(screen, screen->sampled.row[i].replica);
	rows.replicas = (size_t)screen->replicas + 1;
	index.by = view_alloc(&screen->spark_arena, index.count, sizeof(*index.by), err);
	rows.of = view_alloc(&screen->spark_arena, index.count * rows.replicas, sizeof(*rows.of),
			     err);
	if (err_stuck(err))
		return;
	for (size_t i = 0; i < index.count; i++)
		index.by[i] = &screen->sparks[i];
	qsort(index.by, index.count, sizeof(struct view_spark *), tensors_spark_order);
	/* First pass: count the rows of the replica with most rows. Second pass: add the points. */
	for (int pass = 0; pass < 2; pass++) {
		memset(rows.of, 0, index.count * rows.replicas * sizeof(*rows.of));
		for (int i = 0; i < screen->sampled.count; i++) {
			const struct report_tensor_row *row = &screen->sampled.row[i];
			const struct view_spark wanted = {.tensor_id = row->tensor_id,
							  .rank = row->rank};
			const struct view_spark *key = &wanted;
			struct view_spark *const *found =
				bsearch(&key, index.by, index.count, sizeof(struct view_spark *),
					tensors_spark_order);
			struct view_spark *spark = found ? *found : NULL;
			int64_t *count;

			if (!spark || !view__replica_shows(screen, row->replica))
				continue;
			count = &rows.of[(size_t)(spark - screen->sparks) * rows.replicas +
					 (size_t)view__replica_number(row->replica)];
			if (pass == 1)
				tensors_spark_add(spark, *count, row);
			++*count;
			if (pass == 0)
				spark->most = max(spark->most, *count);
		}
	}
}

static const struct report_cell *tensors_list_cell(const struct report_table *table, int64_t row,
						   const char *name)
{
	return &table->cells[row * table->column_count + view_table_column(table, name)];
}

static void tensors_sparks_load(struct view_tensors *screen, struct view_context *context,
				struct err *err)
{
	const struct report_table *table = &screen->list.table;
	struct prof_db *db = context->source->db;

	report_tensor_rows_read(&screen->sampled, db, IPS_NULL, IPS_NULL, view__statistic(screen),
				VIEW_TENSORS_SPARKS, err);
	arena_reset(&screen->spark_arena);
	screen->spark_count = 0;
	screen->sparks = view_alloc(&screen->spark_arena, (size_t)table->row_count,
				    sizeof(*screen->sparks), err);
	for (int64_t row = 0; row < table->row_count && !err_stuck(err); row++) {
		const struct report_cell *rank = tensors_list_cell(table, row, "rank");

		screen->sparks[row].rank = rank->type == PROF_INT ? rank->integer : IPS_NULL;
		report_tensor_find(db, tensors_list_cell(table, row, "queue")->text,
				   tensors_list_cell(table, row, "key")->text,
				   &screen->sparks[row].tensor_id, err);
		screen->spark_count = row + 1;
	}
	if (!err_stuck(err))
		tensors_sparks_fill(screen, err);
}

void view__tensors_list(struct view_tensors *screen, struct view_context *context, struct err *err)
{
	const struct list_statistic *statistic = list_statistics;
	struct str sql = {0};

	for (size_t i = 0; i < ARRAY_LEN(list_statistics); i++)
		if (strcmp(list_statistics[i].name, view__statistic(screen)) == 0)
			statistic = &list_statistics[i];
	view__tensors_list_sql(screen, context->target != NULL, &sql);
	if (sql.failed)
		err_nomem(err);
	else
		view_grid_query(&screen->list, context, "tensors", str_peek(&sql),
				/* Two runs may have the same keys in other queues. */
				context->target ? "key" : "queue,key,rank", statistic->columns,
				statistic->count, 0, err);
	str_free(&sql);
	if (err_stuck(err))
		return;
	screen->list.style = tensors_list_style;
	if (!screen->ranked && !view_grid_sort(&screen->list, "greatest", false)) {
		err_set(err, ST_INTERRUPTED, "stopped");
		return;
	}
	screen->ranked = true;
	if (!context->target)
		tensors_sparks_load(screen, context, err);
}

void view__tensors_list_kind(struct view_tensors *screen, struct view_context *context,
			     const char *kind, struct err *err)
{
	char before[VIEW_TENSORS_KIND];

	memcpy(before, screen->kind, sizeof(before));
	str_copy(screen->kind, sizeof(screen->kind), kind);
	view__tensors_list(screen, context, err);
	if (err_stuck(err))
		memcpy(screen->kind, before, sizeof(before));
}

enum view_answer view__tensors_next_kind(struct view_tensors *screen, struct view_context *context)
{
	char kind[VIEW_TENSORS_KIND];
	struct err err = {0};
	struct prof_query *query =
		view_query_open(context->source->db, tensors_list_kinds_sql, &err);
	bool next = !screen->kind[0];

	/* The kind after the shown one; "" after the last. */
	kind[0] = '\0';
	while (!kind[0] && view_query_next(query, &err)) {
		const char *name = prof_column_text(query, 0);

		if (next)
			str_copy(kind, sizeof(kind), name);
		next |= strcmp(name, screen->kind) == 0;
	}
	prof_query_close(query);
	if (!err_stuck(&err))
		view__tensors_list_kind(screen, context, kind, &err);
	if (err_stuck(&err))
		view_message(context, err.text, NULL);
	else if (!kind[0])
		view_message(context, "tensors of all kinds", NULL);
	else
		screen->list.at = 0;
	return VIEW_LOAD;
}

/* ---- sparklines ------------------------------------------------------------------------------ */

void view__tensors_list_draw(const struct view_tensors *screen, const struct view_context *context,
			     struct view_pane *pane)
{
	const struct view_grid *grid = &screen->list;

	struct view_pane table = view_pane_sub(pane, grid->area);

	view_grid_draw(grid, pane, !screen->opened && !context->whole);
	for (int i = 0; i < grid->place_count; i++) {
		const struct view_grid_place *place = &grid->places[i];

		if (strcmp(grid->table.columns[place->column].name, "trend") != 0)
			continue;
		for (int y = 1; y < table.rect.height && grid->scroll + y <= grid->count; y++) {
			const int64_t at = grid->scroll + y - 1, row = grid->order[at];
			const bool cursor = at == grid->at && !context->whole && !screen->opened;

			view_fill(&table, place->x, y, place->width,
				  cursor ? VIEW_CURSOR : VIEW_NORMAL);
			if (row < screen->spark_count)
				view_chart_spark(&table, place->x, y, place->width,
						 cursor ? VIEW_CURSOR : VIEW_CURVE,
						 screen->sparks[row].points,
						 screen->sparks[row].count);
		}
	}
}

/* ---- all statistics, for CSV and JSON -------------------------------------------------------- */

/* Is row @row of @all the same tensor as row @listed of the list? */
static bool tensors_is_listed(const struct report_table *all, int64_t row,
			      const struct report_table *list, int64_t listed)
{
	static const char *const keys[] = {"key", "queue", "rank"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct report_cell *a = tensors_list_cell(all, row, keys[i]);
		const struct report_cell *b = tensors_list_cell(list, listed, keys[i]);

		if (a->text && b->text ? strcmp(a->text, b->text) != 0
				       : a->text != b->text ||
						 (a->type == PROF_INT && a->integer != b->integer))
			return false;
	}
	return true;
}

/* Bring the rows of @all into the order and filter of the list. */
static void tensors_list_order(const struct view_grid *list, struct report_table *all,
			       struct err *err)
{
	const size_t columns = (size_t)all->column_count;
	struct report_cell *cells =
		view_alloc(&all->arena, (size_t)list->count * columns, sizeof(*cells), err);
	int64_t rows = 0;

	for (int64_t i = 0; i < list->count && cells; i++)
		for (int64_t row = 0; row < all->row_count; row++)
			if (tensors_is_listed(all, row, &list->table, list->order[i])) {
				memcpy(cells + (size_t)rows++ * columns,
				       all->cells + (size_t)row * columns,
				       columns * sizeof(*cells));
				break;
			}
	all->cells = cells;
	all->row_count = rows;
}

void view__tensors_list_table(const struct view_tensors *screen, struct view_context *context,
			      struct report_table *out, struct err *err)
{
	if (context->target)
		view_grid_table(&screen->list, out, err);
	else if (report_table_query(out, context->source->db, "tensors",
				    "SELECT * FROM tensor_sums", 0, err) == ST_OK)
		tensors_list_order(&screen->list, out, err);
}
