/*
 * Join two tables by their keys; each number gets its target and difference.
 *
 * A hash of the keys leads from a row of the source to those of the target. A matched target row is
 * removed from its chain, so many equal keys cost no more than few. The first failure is kept in
 * `err`, and later steps then do nothing.
 *
 * Threading: the screen's. Ownership: the joined table owns copies; scratch lives in an arena.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/diff/report_diff.h"
#include "reports/table/report_render.h"
#include "viewer/draw/view_table.h"

#define JOIN_KEYS 16
#define JOIN_NONE (-1)

enum join_shape {
	JOIN_KEY,    /* one column, from either table */
	JOIN_NUMBER, /* name, name_target, name_diff */
	JOIN_TEXT    /* name, and name_target if any row differs */
};

struct join_column {
	int source, target; /* columns; JOIN_NONE: missing */
	enum join_shape shape;
	bool twice; /* a text that differs somewhere */
};

struct join {
	const struct report_table *source, *target;
	int keys[2][JOIN_KEYS], key_count;
	struct join_column *columns;
	int column_count;
	int64_t *partner; /* per row of the source; JOIN_NONE */
	bool *taken;      /* rows of the target that have a partner */
	int64_t *heads, *next;
	uint64_t mask;
	int64_t alone; /* number of rows that only the target has */
	const struct view_context *context;
	struct arena arena;
	struct report_table *out;
	struct err *err; /* of the first step that failed; not NULL */
};

static const struct report_cell *join_cell(const struct report_table *table, int64_t row,
					   int column)
{
	static const struct report_cell none = {.type = PROF_NULL};

	return row < 0 || column < 0 ? &none : &table->cells[row * table->column_count + column];
}

/* Return true if a step has failed or, checked at some rows only, the work was cancelled. */
static bool join_stopped(struct join *join, int64_t row)
{
	if (!err_stuck(join->err) && row % VIEW_GRID_SLICE == 0 &&
	    view__grid_stopped(join->context))
		err_set(join->err, ST_INTERRUPTED, "stopped");
	return err_stuck(join->err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t join_hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

static uint64_t join_hash(const struct join *join, int side, int64_t row)
{
	const struct report_table *table = side == 0 ? join->source : join->target;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < join->key_count; i++) {
		const struct report_cell *cell = join_cell(table, row, join->keys[side][i]);
		const double number = view__cell_number(cell) + 0.0;

		if (cell->type == PROF_TEXT)
			hash = join_hash_bytes(hash, cell->text, strlen(cell->text) + 1);
		else if (!isnan(number))
			hash = join_hash_bytes(hash, &number, sizeof(number));
		else
			hash = join_hash_bytes(hash, "", 1);
	}
	return hash;
}

static bool join_cells_equal(const struct report_cell *a, const struct report_cell *b)
{
	const double x = view__cell_number(a), y = view__cell_number(b);

	if (a->type == PROF_TEXT || b->type == PROF_TEXT)
		return a->type == b->type && strcmp(a->text, b->text) == 0;
	if (a->type == PROF_INT && b->type == PROF_INT)
		return a->integer == b->integer;
	return (isnan(x) && isnan(y)) || (x <= y && x >= y);
}

static bool join_keys_equal(const struct join *join, int64_t source, int64_t target)
{
	for (int i = 0; i < join->key_count; i++)
		if (!join_cells_equal(join_cell(join->source, source, join->keys[0][i]),
				      join_cell(join->target, target, join->keys[1][i])))
			return false;
	return true;
}

/* Pair each source row with the first target row that has equal keys and no partner yet. */
static void join_pair_rows(struct join *join)
{
	for (uint64_t i = 0; i <= join->mask; i++)
		join->heads[i] = JOIN_NONE;
	for (int64_t row = join->target->row_count - 1; row >= 0 && !join_stopped(join, row);
	     row--) {
		int64_t *head = &join->heads[join_hash(join, 1, row) & join->mask];

		join->next[row] = *head;
		*head = row;
	}
	join->alone = join->target->row_count;
	for (int64_t row = 0; row < join->source->row_count && !join_stopped(join, row); row++) {
		int64_t *link = &join->heads[join_hash(join, 0, row) & join->mask];

		while (*link != JOIN_NONE && !join_keys_equal(join, row, *link))
			link = &join->next[*link];
		join->partner[row] = *link;
		if (*link == JOIN_NONE)
			continue;
		join->taken[*link] = true;
		join->alone--;
		*link = join->next[*link];
	}
}

/* ---- columns --------------------------------------------------------------------------------- */

static enum report_quantity join_quantity(const struct join *join, const struct join_column *column)
{
	enum report_quantity quantity = REPORT_TEXT;

	/* A column without any value has type TEXT even if it is a number in the other table. */
	if (column->source >= 0)
		quantity = join->source->columns[column->source].quantity;
	if (quantity == REPORT_TEXT && column->target >= 0)
		quantity = join->target->columns[column->target].quantity;
	return quantity;
}

static const char *join_column_name(const struct join *join, const struct join_column *column)
{
	return column->source >= 0 ? join->source->columns[column->source].name
				   : join->target->columns[column->target].name;
}

static bool join_differs(struct join *join, const struct join_column *column)
{
	for (int64_t row = 0; row < join->source->row_count && !join_stopped(join, row); row++)
		if (join->partner[row] != JOIN_NONE &&
		    !join_cells_equal(join_cell(join->source, row, column->source),
				      join_cell(join->target, join->partner[row], column->target)))
			return true;
	return false;
}

/* List the source's columns, then those that only the target has, and find the keys. */
static void join_list_columns(struct join *join, const char *keys)
{
	const struct report_table *source = join->source, *target = join->target;

	for (int i = 0; i < source->column_count; i++)
		join->columns[join->column_count++] = (struct join_column){
			i, view_table_column(target, source->columns[i].name), JOIN_TEXT, false};
	for (int i = 0; i < target->column_count; i++)
		if (view_table_column(source, target->columns[i].name) < 0)
			join->columns[join->column_count++] =
				(struct join_column){JOIN_NONE, i, JOIN_TEXT, false};
	for (int i = 0; i < join->column_count; i++) {
		struct join_column *column = &join->columns[i];
		const enum report_quantity quantity = join_quantity(join, column);
		const char *name = join_column_name(join, column);

		if (view__grid_listed(keys, name)) {
			column->shape = JOIN_KEY;
			if (join->key_count == JOIN_KEYS)
				continue;
			join->keys[0][join->key_count] = column->source;
			join->keys[1][join->key_count++] = column->target;
		} else if (quantity != REPORT_TEXT && quantity != REPORT_BOOL &&
			   quantity != REPORT_NUMBER) {
			column->shape = JOIN_NUMBER;
		}
	}
}

static int join_width(const struct join_column *column)
{
	return column->shape == JOIN_NUMBER ? 3 : column->twice ? 2 : 1;
}

/* ---- the joined table ------------------------------------------------------------------------ */

static void join_add_name(struct join *join, int *at, const char *name, const char *suffix,
			  enum report_quantity quantity)
{
	struct report_column *column = &join->out->columns[(*at)++];

	column->name = arena_printf(&join->out->arena, "%s%s", name, suffix);
	column->quantity = quantity;
	if (!column->name)
		err_nomem(join->err);
}

static void join_copy_cell(struct join *join, struct report_cell *to,
			   const struct report_cell *from)
{
	*to = *from;
	if (from->type != PROF_TEXT)
		return;
	to->text = arena_strdup(&join->out->arena, from->text);
	if (to->text)
		return;
	*to = (struct report_cell){.type = PROF_NULL};
	err_nomem(join->err);
}

static struct report_cell join_diff(const struct report_cell *a, const struct report_cell *b,
				    enum report_quantity quantity)
{
	const double diff =
		report_amount_shown(view__cell_number(b) - view__cell_number(a), quantity);
	struct report_cell cell = {.type = PROF_INT};

	if (a->type == PROF_INT && b->type == PROF_INT &&
	    !__builtin_sub_overflow(b->integer, a->integer, &cell.integer))
		cell.real = (double)cell.integer;
	else if (!isnan(diff))
		cell = (struct report_cell){.type = PROF_REAL, .real = diff};
	else
		cell.type = PROF_NULL;
	return cell;
}

/* Return true if the column is a duration rather than a point in time. */
static bool join_is_duration(const struct join *join, const struct join_column *column)
{
	static const char *const moments[] = {"time", "start", "end", "first", "last", "at_"};
	const enum report_quantity quantity = join_quantity(join, column);
	const char *name = join_column_name(join, column);

	if (column->shape != JOIN_NUMBER || (quantity != REPORT_NS && quantity != REPORT_CYCLES))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(moments); i++)
		if (str_starts_with(name, moments[i]))
			return false;
	return true;
}

/* Classify a row: by its first duration that differs, otherwise by whether anything differs. */
static const char *join_verdict(const struct join *join, int64_t source, int64_t target)
{
	const char *whole = "equal";

	if (source < 0 || target < 0)
		return target < 0 ? REPORT_ONLY_SOURCE : REPORT_ONLY_TARGET;
	for (int i = 0; i < join->column_count; i++) {
		const struct join_column *column = &join->columns[i];
		const struct report_cell *a = join_cell(join->source, source, column->source);
		const struct report_cell *b = join_cell(join->target, target, column->target);
		const bool duration = join_is_duration(join, column);
		const char *name = join_column_name(join, column), *verdict;
		const size_t length = strlen(name);

		/* Ids and positions are assigned anew by each recording, so their differences mean
		 * nothing. */
		if (column->shape == JOIN_KEY || strcmp(name, "position") == 0 ||
		    (length > 3 && strcmp(name + length - 3, "_id") == 0) ||
		    (column->shape == JOIN_TEXT && !column->twice))
			continue;
		if (column->shape == JOIN_TEXT || a->type == PROF_NULL || b->type == PROF_NULL)
			verdict = join_cells_equal(a, b) ? "equal" : "changed";
		else
			verdict =
				report_verdict(view__cell_number(a), view__cell_number(b),
					       join_quantity(join, column),
					       duration ? REPORT_DIFF_LOWER : REPORT_DIFF_NEITHER);
		if (strcmp(verdict, "faster") == 0 || strcmp(verdict, "slower") == 0)
			return verdict;
		if (strcmp(verdict, "equal") != 0 && strcmp(whole, "changed") != 0)
			whole = verdict;
	}
	return whole;
}

static void join_write_row(struct join *join, int64_t at, int64_t source, int64_t target)
{
	struct report_table *out = join->out;
	struct report_cell *cell = &out->cells[at * out->column_count];

	for (int i = 0; i < join->column_count && !join_stopped(join, at); i++) {
		const struct join_column *column = &join->columns[i];
		const struct report_cell *a = join_cell(join->source, source, column->source);
		const struct report_cell *b = join_cell(join->target, target, column->target);
		const int width = join_width(column);

		join_copy_cell(join, cell, width == 1 && source < 0 ? b : a);
		if (width > 1)
			join_copy_cell(join, cell + 1, b);
		if (width > 2)
			cell[2] = join_diff(a, b, join_quantity(join, column));
		cell += width;
	}
	if (!err_stuck(join->err)) {
		const struct report_cell verdict =
			view_text_cell(join_verdict(join, source, target));

		join_copy_cell(join, &out->cells[(at + 1) * out->column_count - 1], &verdict);
	}
}

/* Make the joined table with its columns; the cells are NULL. */
static void join_make_table(struct join *join)
{
	static const char *const suffixes[] = {"", "_target", "_diff"};
	const struct report_table *source = join->source, *target = join->target;
	const char *note = source->note ? source->note : target->note;
	struct report_table *out = join->out;
	int columns = 1, at = 0;

	for (int i = 0; i < join->column_count; i++)
		columns += join_width(&join->columns[i]);
	if (view_table_new(out, "table", NULL, columns, source->row_count + join->alone,
			   join->err) != ST_OK)
		return;
	out->name = arena_strdup(&out->arena, source->name ? source->name : "table");
	if (note)
		out->note = arena_strdup(&out->arena, note);
	if (!out->name || (note && !out->note))
		err_nomem(join->err);
	for (int i = 0; i < join->column_count; i++) {
		const struct join_column *column = &join->columns[i];
		const char *name = join_column_name(join, column);

		for (int part = 0; part < join_width(column); part++)
			join_add_name(join, &at, name, suffixes[part], join_quantity(join, column));
	}
	join_add_name(join, &at, VIEW_GRID_VERDICT, "", REPORT_TEXT);
}

enum status view_grid_compare(struct report_table *out, const struct view_context *context,
			      const struct report_table *source, const struct report_table *target,
			      const char *keys, struct err *err)
{
	struct err own;
	struct join join = {.source = source,
			    .target = target,
			    .context = context,
			    .out = out,
			    .err = err_start(err, &own)};
	const size_t columns = (size_t)source->column_count + (size_t)target->column_count;
	const size_t targets = (size_t)target->row_count + 1;
	size_t heads = 16;
	int64_t at = 0;

	memset(out, 0, sizeof(*out));
	while (heads < 2 * targets)
		heads *= 2;
	join.mask = heads - 1;
	join.columns = view_alloc(&join.arena, columns, sizeof(*join.columns), join.err);
	join.partner =
		view_alloc(&join.arena, (size_t)source->row_count, sizeof(*join.partner), join.err);
	join.taken = view_alloc(&join.arena, targets, sizeof(*join.taken), join.err);
	join.heads = view_alloc(&join.arena, heads, sizeof(*join.heads), join.err);
	join.next = view_alloc(&join.arena, targets, sizeof(*join.next), join.err);
	if (!err_stuck(join.err)) {
		join_list_columns(&join, keys);
		join_pair_rows(&join);
	}
	for (int i = 0; !err_stuck(join.err) && i < join.column_count; i++)
		join.columns[i].twice =
			join.columns[i].shape == JOIN_TEXT && join_differs(&join, &join.columns[i]);
	if (!join_stopped(&join, 0))
		join_make_table(&join);
	for (int64_t row = 0; !err_stuck(join.err) && row < source->row_count; row++)
		join_write_row(&join, at++, row, join.partner[row]);
	for (int64_t row = 0; !err_stuck(join.err) && row < target->row_count; row++)
		if (!join.taken[row])
			join_write_row(&join, at++, JOIN_NONE, row);
	arena_fini(&join.arena);
	if (err_stuck(join.err))
		report_table_free(out);
	return join.err->status;
}

enum status view_grid_query(struct view_grid *grid, struct view_context *context, const char *name,
			    const char *sql, const char *keys,
			    const struct view_grid_column *columns, int column_count, int64_t limit,
			    struct err *err)
{
	struct report_table source = {0}, target = {0}, table = {0};
	struct err own;

	err = err_start(err, &own);
	grid->differ = context->target && context->differ;
	if (report_table_query(&source, context->source->db, name, sql, limit, err) != ST_OK)
		return err->status;
	if (!context->target)
		return view_grid_set(grid, context, &source, columns, column_count, keys, err);
	if (view_cancelled(context))
		err_set(err, ST_INTERRUPTED, "stopped");
	else if (report_table_query(&target, context->target->db, name, sql, limit, err) == ST_OK)
		view_grid_compare(&table, context, &source, &target, keys, err);
	report_table_free(&source);
	report_table_free(&target);
	if (!err_stuck(err))
		view_grid_set(grid, context, &table, columns, column_count, keys, err);
	return err->status;
}
