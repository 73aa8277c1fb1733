/*
 * Two tables become one: rows joined by their keys, each number with its target and difference.
 *
 * A hash of the keys leads from a row of the source to those of the target; a row that has found
 * its partner leaves its chain, so that any number of equal keys costs no more.
 *
 * Threading: the screen's. Ownership: the joined table owns copies; scratch lives in an arena.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <string.h>

#include "viewer/draw/view_table.h"

#define JOIN_KEYS 16
#define JOIN_NONE (-1)

enum join_shape {
	JOIN_KEY,    /* one column, from either */
	JOIN_NUMBER, /* name, name_target, name_diff */
	JOIN_TEXT,   /* name, and where they differ name_target */
	JOIN_ONLY    /* "source", "target" */
};

struct join_column {
	int source, target; /* columns; JOIN_NONE: it has none */
	enum join_shape shape;
	bool twice; /* a text that differs somewhere */
};

struct join {
	const struct report_table *source, *target;
	int keys[2][JOIN_KEYS], key_count;
	struct join_column *columns;
	int column_count;
	int64_t *partner; /* of each row of the source; JOIN_NONE */
	bool *taken;      /* rows of the target that have one */
	int64_t *heads, *next;
	uint64_t mask;
	int64_t alone; /* rows that only the target has */
	bool lonely;   /* some row has no partner */
	const struct view_context *context;
	struct arena arena;
};

static const struct report_cell *join_cell(const struct report_table *table, int64_t row,
					   int column)
{
	static const struct report_cell none = {.type = PROF_NULL};

	return row < 0 || column < 0 ? &none : &table->cells[row * table->column_count + column];
}

/* At row @row: is it time to look, and does nobody wait? What is done then is not used. */
static bool join_stopped(const struct join *join, int64_t row)
{
	return row % VIEW_GRID_SLICE == 0 && view__grid_stopped(join->context);
}

static enum status join_go_on(const struct join *join, int64_t row, struct err *err)
{
	return join_stopped(join, row) ? err_set(err, ST_INTERRUPTED, "stopped") : ST_OK;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t join_mix(uint64_t hash, const void *bytes, size_t length)
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
			hash = join_mix(hash, cell->text, strlen(cell->text) + 1);
		else if (!isnan(number))
			hash = join_mix(hash, &number, sizeof(number));
		else
			hash = join_mix(hash, "", 1);
	}
	return hash;
}

static bool join_equal(const struct report_cell *a, const struct report_cell *b)
{
	const double x = view__cell_number(a), y = view__cell_number(b);

	if (a->type == PROF_TEXT || b->type == PROF_TEXT)
		return a->type == b->type && strcmp(a->text, b->text) == 0;
	if (a->type == PROF_INT && b->type == PROF_INT)
		return a->integer == b->integer;
	return (isnan(x) && isnan(y)) || (x <= y && x >= y);
}

static bool join_same_keys(const struct join *join, int64_t source, int64_t target)
{
	for (int i = 0; i < join->key_count; i++)
		if (!join_equal(join_cell(join->source, source, join->keys[0][i]),
				join_cell(join->target, target, join->keys[1][i])))
			return false;
	return true;
}

/* Rows of the target by their hash, in order. */
static void join_index(struct join *join)
{
	for (uint64_t i = 0; i <= join->mask; i++)
		join->heads[i] = JOIN_NONE;
	for (int64_t row = join->target->row_count - 1; row >= 0 && !join_stopped(join, row);
	     row--) {
		int64_t *head = &join->heads[join_hash(join, 1, row) & join->mask];

		join->next[row] = *head;
		*head = row;
	}
}

static int64_t join_take(struct join *join, int64_t source)
{
	int64_t *link = &join->heads[join_hash(join, 0, source) & join->mask];

	while (*link != JOIN_NONE && !join_same_keys(join, source, *link))
		link = &join->next[*link];
	if (*link != JOIN_NONE) {
		const int64_t found = *link;

		join->taken[found] = true;
		*link = join->next[found];
		return found;
	}
	return JOIN_NONE;
}

static void join_pair_up(struct join *join)
{
	join_index(join);
	join->alone = join->target->row_count;
	for (int64_t row = 0; row < join->source->row_count && !join_stopped(join, row); row++) {
		join->partner[row] = join_take(join, row);
		if (join->partner[row] == JOIN_NONE)
			join->lonely = true;
		else
			join->alone--;
	}
	join->lonely |= join->alone > 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

static enum report_quantity join_quantity(const struct join *join, const struct join_column *column)
{
	enum report_quantity quantity = REPORT_TEXT;

	/* A column without any value does not know that it is a number. */
	if (column->source >= 0)
		quantity = join->source->columns[column->source].quantity;
	if (quantity == REPORT_TEXT && column->target >= 0)
		quantity = join->target->columns[column->target].quantity;
	return quantity;
}

static bool join_differs(const struct join *join, const struct join_column *column)
{
	for (int64_t row = 0; row < join->source->row_count && !join_stopped(join, row); row++)
		if (join->partner[row] != JOIN_NONE &&
		    !join_equal(join_cell(join->source, row, column->source),
				join_cell(join->target, join->partner[row], column->target)))
			return true;
	return false;
}

/* The columns of the source; then those that only the target has. */
static void join_columns(struct join *join, const char *keys)
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
		const char *name = column->source >= 0 ? source->columns[column->source].name
						       : target->columns[column->target].name;

		if (view__grid_listed(keys, name))
			column->shape = JOIN_KEY;
		else if (quantity != REPORT_TEXT && quantity != REPORT_BOOL &&
			 quantity != REPORT_NUMBER)
			column->shape = JOIN_NUMBER;
	}
}

static void join_find_keys(struct join *join)
{
	for (int i = 0; i < join->column_count && join->key_count < JOIN_KEYS; i++) {
		if (join->columns[i].shape != JOIN_KEY)
			continue;
		join->keys[0][join->key_count] = join->columns[i].source;
		join->keys[1][join->key_count++] = join->columns[i].target;
	}
}

static int join_width(const struct join_column *column)
{
	return column->shape == JOIN_NUMBER ? 3 : column->twice ? 2 : 1;
}

/* ---- the joined table ------------------------------------------------------------------------ */

static enum status join_name(struct report_table *out, int *at, const char *name,
			     const char *suffix, enum report_quantity quantity, struct err *err)
{
	struct report_column *column = &out->columns[(*at)++];

	column->name = arena_printf(&out->arena, "%s%s", name, suffix);
	column->quantity = quantity;
	return column->name ? ST_OK : err_nomem(err);
}

static enum status join_column_names(const struct join *join, struct report_table *out,
				     struct err *err)
{
	static const char *const suffixes[] = {"", "_target", "_diff"};
	enum status status = ST_OK;
	int at = 0;

	for (int i = 0; i < join->column_count; i++) {
		const struct join_column *column = &join->columns[i];
		const char *name = column->source >= 0 ? join->source->columns[column->source].name
						       : join->target->columns[column->target].name;

		for (int part = 0; status == ST_OK && part < join_width(column); part++)
			status = join_name(out, &at, name, suffixes[part],
					   join_quantity(join, column), err);
	}
	if (status == ST_OK && join->lonely)
		status = join_name(out, &at, "only", "", REPORT_TEXT, err);
	return status;
}

static enum status join_copy(struct report_table *out, struct report_cell *to,
			     const struct report_cell *from, struct err *err)
{
	*to = *from;
	if (from->type != PROF_TEXT)
		return ST_OK;
	to->text = arena_strdup(&out->arena, from->text);
	if (to->text)
		return ST_OK;
	*to = (struct report_cell){.type = PROF_NULL};
	return err_nomem(err);
}

static struct report_cell join_diff(const struct report_cell *a, const struct report_cell *b)
{
	const double diff = view__cell_number(b) - view__cell_number(a);
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

static enum status join_row(const struct join *join, struct report_table *out, int64_t at,
			    int64_t source, int64_t target, struct err *err)
{
	struct report_cell *cell = &out->cells[at * out->column_count];
	enum status status = join_go_on(join, at, err);

	for (int i = 0; status == ST_OK && i < join->column_count; i++) {
		const struct join_column *column = &join->columns[i];
		const struct report_cell *a = join_cell(join->source, source, column->source);
		const struct report_cell *b = join_cell(join->target, target, column->target);
		const int width = join_width(column);

		status = join_copy(out, cell, width == 1 && source < 0 ? b : a, err);
		if (status == ST_OK && width > 1)
			status = join_copy(out, cell + 1, b, err);
		if (status == ST_OK && width > 2)
			cell[2] = join_diff(a, b);
		cell += width;
	}
	if (status == ST_OK && join->lonely && (source < 0 || target < 0))
		status = view_table_text(out, at, out->column_count - 1,
					 target < 0 ? "source" : "target", err);
	return status;
}

static enum status join_rows(const struct join *join, struct report_table *out, struct err *err)
{
	enum status status = ST_OK;
	int64_t at = 0;

	for (int64_t row = 0; status == ST_OK && row < join->source->row_count; row++)
		status = join_row(join, out, at++, row, join->partner[row], err);
	for (int64_t row = 0; status == ST_OK && row < join->target->row_count; row++)
		if (!join->taken[row])
			status = join_row(join, out, at++, JOIN_NONE, row, err);
	return status;
}

static enum status join_table(const struct join *join, struct report_table *out, struct err *err)
{
	const char *note = join->source->note ? join->source->note : join->target->note;
	const int64_t rows = join->source->row_count + join->alone;
	size_t cells;
	int columns = join->lonely;

	for (int i = 0; i < join->column_count; i++)
		columns += join_width(&join->columns[i]);
	cells = (size_t)(rows > 0 ? rows : 1) * (size_t)columns;
	memset(out, 0, sizeof(*out));
	if (arena_init(&out->arena, 0))
		return err_nomem(err);
	out->column_count = columns;
	out->row_count = rows;
	out->columns = arena_alloc(&out->arena, (size_t)columns + 1, sizeof(*out->columns));
	out->cells = arena_alloc(&out->arena, cells, sizeof(*out->cells));
	out->name = arena_strdup(&out->arena, join->source->name ? join->source->name : "table");
	if (note)
		out->note = arena_strdup(&out->arena, note);
	if (!out->columns || !out->cells || !out->name || (note && !out->note))
		return err_nomem(err);
	return join_column_names(join, out, err);
}

static enum status join_scratch(struct join *join, struct err *err)
{
	const size_t columns =
		(size_t)join->source->column_count + (size_t)join->target->column_count;
	const size_t sources = (size_t)join->source->row_count + 1;
	const size_t targets = (size_t)join->target->row_count + 1;
	size_t heads = 16;

	while (heads < 2 * targets)
		heads *= 2;
	join->mask = heads - 1;
	if (arena_init(&join->arena, 0))
		return err_nomem(err);
	join->columns = arena_alloc(&join->arena, columns + 1, sizeof(*join->columns));
	join->partner = arena_alloc(&join->arena, sources, sizeof(*join->partner));
	join->taken = arena_alloc(&join->arena, targets, sizeof(*join->taken));
	join->heads = arena_alloc(&join->arena, heads, sizeof(*join->heads));
	join->next = arena_alloc(&join->arena, targets, sizeof(*join->next));
	return join->columns && join->partner && join->taken && join->heads && join->next
		       ? ST_OK
		       : err_nomem(err);
}

enum status view_grid_compare(struct report_table *out, const struct view_context *context,
			      const struct report_table *source, const struct report_table *target,
			      const char *keys, struct err *err)
{
	struct join join = {.source = source, .target = target, .context = context};
	enum status status = join_scratch(&join, err);

	memset(out, 0, sizeof(*out));
	if (status == ST_OK) {
		join_columns(&join, keys);
		join_find_keys(&join);
		join_pair_up(&join);
		for (int i = 0; i < join.column_count; i++)
			join.columns[i].twice = join.columns[i].shape == JOIN_TEXT &&
						join_differs(&join, &join.columns[i]);
		/* Partners are known only where nothing was left out. */
		status = join_go_on(&join, 0, err);
	}
	if (status == ST_OK)
		status = join_table(&join, out, err);
	if (status == ST_OK)
		status = join_rows(&join, out, err);
	arena_fini(&join.arena);
	if (status != ST_OK)
		report_table_free(out);
	return status;
}

enum status view_grid_query(struct view_grid *grid, struct view_context *context, const char *name,
			    const char *sql, const char *keys,
			    const struct view_grid_column *columns, int column_count, int64_t limit,
			    struct err *err)
{
	struct report_table source = {0}, target = {0}, table = {0};
	enum status status;

	grid->differ = context->target && context->differ;
	status = report_table_query(&source, context->source->db, name, sql, limit, err);
	if (status != ST_OK)
		return status;
	if (!context->target)
		return view_grid_set(grid, context, &source, columns, column_count, keys, err);
	if (view_cancelled(context))
		status = err_set(err, ST_INTERRUPTED, "stopped");
	if (status == ST_OK)
		status = report_table_query(&target, context->target->db, name, sql, limit, err);
	if (status == ST_OK)
		status = view_grid_compare(&table, context, &source, &target, keys, err);
	report_table_free(&source);
	report_table_free(&target);
	if (status != ST_OK)
		return status;
	return view_grid_set(grid, context, &table, columns, column_count, keys, err);
}
