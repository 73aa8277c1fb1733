/*
 * A slice of a capture: reading its values chunk by chunk, the difference of two slices, and
 * drawing them as numbers under their indexes or as a heat map. Sequences, of one report only, are
 * drawn with their tokens: beside a map of attention, as a text coloured by its losses, and as the
 * norms of an Embedding's rows.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the screen's.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/dtype.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_table.h"

#define PIECES_MOST 4096

/* ---- reading --------------------------------------------------------------------------------- */

/* The elements of the slice are at @base + row * pitch + column. */
struct window {
	int64_t base, pitch, rows, columns;
	double *out; /* rows x stride */
	int64_t stride;
	enum dtype type;
};

/* Copy the window's elements from @data, which has the elements @from to @from + @count - 1. */
static void tensors_window_copy(const struct window *w, int64_t from, int64_t count,
				const unsigned char *data)
{
	const int64_t first = from - w->base;
	int64_t row = first > 0 ? first / w->pitch : 0;

	for (; row < w->rows && w->base + row * w->pitch < from + count; row++)
		for (int64_t c = 0; c < w->columns; c++) {
			const int64_t at = w->base + row * w->pitch + c - from;

			if (at >= 0 && at < count)
				w->out[row * w->stride + c] =
					dtype_read(w->type, data + at * dtype_bytes(w->type));
		}
}

static bool tensors_window_overlaps(const struct window *w, int64_t from, int64_t to)
{
	const int64_t row = from > w->base ? (from - w->base) / w->pitch : 0;

	for (int64_t r = row; r < w->rows && r <= row + 1; r++) {
		const int64_t at = w->base + r * w->pitch;

		if (at < to && at + w->columns > from)
			return true;
	}
	return false;
}

/* The capture being read: its tensor, and the row of its first piece. */
struct reading {
	struct prof_db *db;
	int64_t tensor_id, row_id, context_id;
};

/* Read a piece of the capture by its number. Row ids of pieces rise, with other tensors'
 * between. */
static void tensors_window_piece(const struct window *w, const struct reading *reading,
				 int64_t piece, int64_t *each, struct err *err)
{
	struct prof_query *query = view_query_open(
		reading->db,
		"SELECT data FROM capture_rows WHERE row_id >= :row AND row_id < :row + :most "
		"AND tensor_id = :tensor AND context_id IS :context AND coalesce(chunk, 0) = "
		":piece "
		"LIMIT 1",
		err);
	const void *data;
	size_t size = 0;

	prof_query_int(query, ":row", reading->row_id);
	prof_query_int(query, ":most", PIECES_MOST);
	prof_query_int(query, ":tensor", reading->tensor_id);
	if (reading->context_id != IPS_NULL)
		prof_query_int(query, ":context", reading->context_id);
	prof_query_int(query, ":piece", piece);
	data = view_query_next(query, err) ? prof_column_blob(query, 0, &size) : NULL;
	if (data) {
		const int64_t count = (int64_t)size / dtype_bytes(w->type);

		if (piece == 0)
			*each = count;
		tensors_window_copy(w, piece * *each, count, data);
	}
	prof_query_close(query);
}

static void tensors_window_read(const struct window *w, const struct reading *reading,
				struct view_context *context, struct err *err)
{
	const int64_t end = w->base + (w->rows - 1) * w->pitch + w->columns;
	int64_t each = 0;

	tensors_window_piece(w, reading, 0, &each, err);
	for (int64_t piece = 1; !err_stuck(err) && each > 0 && piece * each < end; piece++) {
		if (!tensors_window_overlaps(w, piece * each, (piece + 1) * each))
			continue;
		if (view_cancelled(context))
			err_set(err, ST_INTERRUPTED, "interrupted");
		tensors_window_piece(w, reading, piece, &each, err);
	}
}

/* ---- the slice ------------------------------------------------------------------------------- */

/* Is the shape valid, and the number of elements within the limit of a capture? */
static bool tensors_shape_fits(const struct view_tensor_matrix *matrix)
{
	int64_t all = 1;

	for (int i = 0; i < matrix->ndim; i++)
		if (matrix->shape[i] < 1 || __builtin_mul_overflow(all, matrix->shape[i], &all) ||
		    all > INT64_C(1) << 50)
			return false;
	return matrix->rows > 0 && matrix->columns > 0;
}

static int64_t tensors_clamp_offset(int64_t at, int64_t most)
{
	return at > most ? max(most, 0) : at < 0 ? 0 : at;
}

/* Choose the part of the slice to read: as much as fits the screen, or for a picture all of it up
 * to VIEW_TENSORS_SLICE values. */
static void tensors_values_window(struct view_tensors *screen)
{
	struct view_tensor_values *v = &screen->values;
	const int parts = view__values_parts(v);
	int64_t rows, columns;

	if (v->picture) {
		const int64_t most = VIEW_TENSORS_SLICE / (parts > 1 ? 4 : 1);

		columns = min(v->columns, most);
		rows = min(v->rows, most / columns);
		v->row = v->column = 0;
	} else {
		const bool names = view__values_parts(v) > 1;

		/* Rows above the numbers: the title, a note, names, indexes. */
		rows = screen->body.height - (1 + (v->note[0] != '\0') + names + !v->picture);
		columns = (screen->body.width - VIEW_MATRIX_INDEX) / parts / VIEW_MATRIX_CELL;
		rows = min(v->rows, max(rows, 1));
		columns = min(v->columns, max(columns, 1));
		v->row = tensors_clamp_offset(v->row, v->rows - rows);
		v->column = tensors_clamp_offset(v->column, v->columns - columns);
	}
	v->shown_rows = (int)rows;
	v->shown_columns = (int)columns;
	v->cut = v->picture ? v->rows * v->columns - rows * columns : 0;
}

static size_t tensors_values_count(const struct view_tensor_values *v)
{
	return (size_t)v->shown_rows * (size_t)v->shown_columns;
}

static void tensors_part_cells(const struct view_tensor_values *v,
			       struct view_tensor_matrix *matrix, struct err *err)
{
	const size_t count = tensors_values_count(v);

	if (mem_grow(&matrix->numbers, &matrix->capacity, count + 1, sizeof(*matrix->numbers)))
		err_nomem(err);
	else
		for (size_t i = 0; i < count; i++)
			matrix->numbers[i] = (double)NAN;
}

static void tensors_part_read(struct view_tensors *screen, struct view_context *context, int side,
			      struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_matrix *matrix = &v->part[side];
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct reading reading = {view__tensors_db(context, side), screen->id[side],
					capture->row_id[side], capture->context_id[side]};
	struct window w = {.type = dtype_find(matrix->dtype),
			   .pitch = matrix->columns,
			   .stride = v->shown_columns,
			   .rows = min(v->shown_rows, matrix->rows - v->row),
			   .columns = min(v->shown_columns, matrix->columns - v->column)};

	if (matrix->ndim == 0 || w.type == DTYPES || !tensors_shape_fits(matrix))
		return;
	tensors_part_cells(v, matrix, err);
	for (int i = 0; i < matrix->ndim - 2; i++)
		w.base = w.base * matrix->shape[i] + v->first[i];
	w.base = (w.base * matrix->rows + v->row) * matrix->columns + v->column;
	w.out = matrix->numbers;
	if (w.rows > 0 && w.columns > 0)
		tensors_window_read(&w, &reading, context, err);
	matrix->cell = err_stuck(err) ? NULL : matrix->numbers;
}

/* ---- the difference -------------------------------------------------------------------------- */

static void tensors_diff_make(struct view_tensor_values *v, bool differ, struct err *err)
{
	const double *source = v->part[VIEW_OF_SOURCE].cell, *target = v->part[VIEW_OF_TARGET].cell;
	struct view_tensor_matrix *diff = &v->part[VIEW_OF_DIFF];
	const size_t count = tensors_values_count(v);

	if (err_stuck(err) || !source || !target || view__values_parts(v) < VIEW_TENSOR_SHARES)
		return;
	tensors_part_cells(v, diff, err);
	if (mem_grow(&v->equals, &v->equal_capacity, count + 1, sizeof(*v->equals)))
		err_nomem(err);
	if (err_stuck(err))
		return;
	for (size_t i = 0; i < count; i++) {
		const bool nan = isnan(source[i]) || isnan(target[i]);

		v->equals[i] = nan ? isnan(source[i]) && isnan(target[i])
				   : !(source[i] < target[i] || source[i] > target[i]);
		v->differs |= !v->equals[i];
		/* Equal infinities differ by 0. */
		diff->numbers[i] = v->equals[i] && !isnan(source[i]) ? 0 : target[i] - source[i];
	}
	diff->rows = v->rows;
	diff->columns = v->columns;
	diff->cell = diff->numbers;
	v->equal = differ ? v->equals : NULL;
}

static void tensors_scale_over(struct report_axis *scale, const struct view_tensor_values *v,
			       int from, int to)
{
	*scale = (struct report_axis){.quantity = REPORT_REAL};
	report_axis_begin(scale);
	for (int i = from; i <= to; i++)
		if (v->part[i].cell)
			report_axis_include(scale, v->part[i].cell,
					    (int64_t)tensors_values_count(v));
	report_axis_finish(scale);
}

/* Compute the scale of the picture's shades from its cells. */
static void tensors_matrix_scale(struct view_tensor_values *values)
{
	tensors_scale_over(&values->scale, values, VIEW_OF_SOURCE, VIEW_OF_TARGET);
}

void view__matrix_load(struct view_tensors *screen, struct view_context *context, struct err *err)
{
	struct view_tensor_values *v = &screen->values;

	v->equal = NULL;
	v->differs = false;
	v->shown_rows = v->shown_columns = 0;
	v->cut = 0;
	if (v->rows < 1 || v->columns < 1)
		return;
	tensors_values_window(screen);
	for (int side = 0; side < VIEW_TENSORS_SIDES && !err_stuck(err); side++)
		tensors_part_read(screen, context, side, err);
	tensors_diff_make(v, context->target && context->differ, err);
	tensors_matrix_scale(v);
	tensors_scale_over(&v->diff_scale, v, VIEW_OF_DIFF, VIEW_OF_DIFF);
	if (v->picture && v->equal) {
		/* With D a picture has holes where both are equal. */
		for (int i = 0; i < VIEW_TENSOR_SHARES; i++)
			for (size_t at = 0; v->part[i].cell && at < tensors_values_count(v); at++)
				if (v->equal[at])
					v->part[i].cell[at] = (double)NAN;
	}
}

/* ---- sequences: tokens beside a map, a text by its losses, norms of rows --------------------- */

#define LABEL    6  /* columns of a token beside a map */
#define NUMBERED 10 /* columns of a token with its loss */
#define BARS     4  /* rows of the curve by position */
#define COLUMN   26 /* width of a list of norms */

void view__sequence_choose(struct view_tensors *screen, const struct view_context *context)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_sequence *s = &v->sequence;
	const int side = screen->id[0] == IPS_NULL;
	struct err err = {0};
	struct prof_query *query;

	/* A choice made because the last tensor was a sequence does not apply to another one. */
	v->picture = v->picture && s->kind == VIEW_SEQUENCE_NONE;
	*s = (struct view_tensor_sequence){0};
	v->paged = false;
	v->sample = v->token = 0;
	if (screen->id[side] == IPS_NULL)
		return;
	/* A file of an earlier version has no such column: nothing is known then. */
	query = view_query_open(view__tensors_db(context, side),
				"SELECT dims, kind FROM tensor_rows WHERE tensor_id = :id", &err);
	prof_query_int(query, ":id", screen->id[side]);
	if (view_query_next(query, &err)) {
		const char *dims = prof_column_text(query, 0), *kind = prof_column_text(query, 1);
		const size_t length = dims ? strlen(dims) : 0;

		str_copy(s->dims, sizeof(s->dims), dims ? dims : "");
		if (length > 13 && strcmp(dims + length - 13, "queries, keys") == 0)
			s->kind = VIEW_SEQUENCE_SCORES;
		else if (strcmp(screen->key, "loss_tokens") == 0 &&
			 strcmp(s->dims, "batch, tokens") == 0)
			s->kind = VIEW_SEQUENCE_LOSSES;
		else if (strcmp(s->dims, "tokens, features") == 0 && kind &&
			 strcmp(kind, "weight") == 0)
			s->kind = VIEW_SEQUENCE_ROWS;
	}
	prof_query_close(query);
	/* With two reports the numbers are shown side by side, without a page. */
	if (screen->id[!side] != IPS_NULL && view__sequence_has_page(v))
		s->kind = VIEW_SEQUENCE_NONE;
	v->paged = view__sequence_has_page(v);
	if (s->kind != VIEW_SEQUENCE_NONE)
		v->picture = !v->paged;
}

bool view__sequence_has_page(const struct view_tensor_values *values)
{
	return values->sequence.kind == VIEW_SEQUENCE_LOSSES ||
	       values->sequence.kind == VIEW_SEQUENCE_ROWS;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Scale each row of the picture to its greatest value: a causal map's first row has only one
 * key. */
static void scale_rows(struct view_tensor_values *v, const struct view_tensor_matrix *matrix)
{
	for (int r = 0; r < v->shown_rows && matrix->cell; r++) {
		double *row = matrix->cell + (int64_t)r * v->shown_columns, most = 0.0;

		for (int c = 0; c < v->shown_columns; c++)
			most = fmax(most, row[c]);
		for (int c = 0; c < v->shown_columns && most > 0.0; c++)
			row[c] /= most;
	}
	tensors_matrix_scale(v);
}

/* Compute the figures of an attention head, if the picture's cells contain the whole slice. */
static void load_head(struct view_tensors *screen, const struct view_tensor_matrix *matrix,
		      struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	const int64_t count = matrix->rows * matrix->columns;
	float *scores;

	v->sequence.headed = v->cut == 0 && matrix->cell;
	if (!v->sequence.headed)
		return;
	scores = view_alloc(&screen->page_arena, (size_t)count, sizeof(*scores), err);
	if (!scores)
		return;
	for (int64_t i = 0; i < count; i++)
		scores[i] = (float)matrix->cell[i];
	v->sequence.head = report_head_of(scores, 1, count, matrix->rows, matrix->columns);
}

static void load_losses(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_sequence *s = &v->sequence;
	const int64_t length = s->kept.shape[1];

	v->sample = min(v->sample, s->kept.shape[0] - 1);
	v->token = min(v->token, length - 1);
	s->by_position = view_alloc(&screen->page_arena, (size_t)length, sizeof(double), err);
	if (!s->by_position)
		return;
	for (int64_t i = 0; i < s->kept.count; i++)
		s->by_position[i % length] += (double)s->kept.values[i] / (double)s->kept.shape[0];
	report_tokens_of(&s->of_rows, &screen->page_arena, db, &s->tokens, &s->kept, "targets",
			 v->sample, length, err);
}

void view__sequence_reset(struct view_tensor_sequence *s)
{
	s->of_rows = s->of_columns = NULL;
	s->headed = false;
	s->rows = NULL;
	s->by_position = NULL;
	s->still = 0;
	s->note[0] = '\0';
}

void view__sequence_load(struct view_tensors *screen, struct view_context *context, struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_sequence *s = &v->sequence;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const int side = v->part[VIEW_OF_SOURCE].ndim == 0;
	const struct view_tensor_matrix *matrix = &v->part[side];
	struct prof_db *db = view__tensors_db(context, side);
	struct report_kept_at at = REPORT_KEPT_ANY;
	struct arena *arena = &screen->page_arena;

	if (err_stuck(err) || s->kind == VIEW_SEQUENCE_NONE || !capture ||
	    view__values_parts(v) != 1 ||
	    (!v->paged && !(v->picture && s->kind == VIEW_SEQUENCE_SCORES)))
		return;
	at.key = screen->key;
	at.step = capture->step != IPS_NULL ? capture->step : capture->weight_update;
	at.replica = capture->replica;
	at.rank = screen->rank;
	at.near = capture->row_id[side];
	if (report_tokens_read(&s->tokens, arena, db, err) != ST_OK)
		return;
	if (s->kind == VIEW_SEQUENCE_SCORES) {
		const struct report_kept beside = {
			.row_id = at.near, .step = at.step, .replica = at.replica, .rank = at.rank};

		if (report_tokens_of(&s->of_rows, arena, db, &s->tokens, &beside, NULL, v->first[0],
				     matrix->rows, err) == ST_OK &&
		    report_tokens_of(&s->of_columns, arena, db, &s->tokens, &beside, NULL,
				     v->first[0], matrix->columns, err) == ST_OK)
			load_head(screen, matrix, err);
		if (!err_stuck(err) && v->by_row && s->headed)
			scale_rows(v, matrix);
		return;
	}
	switch (report_kept_read(&s->kept, arena, db, &at, err)) {
	case ST_OK:
		if (s->kept.ndim != 2)
			str_copy(s->note, sizeof(s->note), "its shape is another");
		else if (s->kind == VIEW_SEQUENCE_LOSSES)
			load_losses(screen, db, err);
		else if (report_rows_of(&s->rows, arena, db, &s->kept, err) == ST_OK) {
			for (int64_t r = 0; r < s->kept.shape[0]; r++)
				s->still += s->rows[r].change == 0.0;
			report_rows_sort(s->rows, s->kept.shape[0]);
		}
		break;
	case ST_NOTFOUND:
	case ST_LIMIT:
	case ST_FORMAT:
		/* Too large, or a part is missing: its numbers can still be shown. */
		str_copy(s->note, sizeof(s->note), err->text);
		err->status = ST_OK;
		break;
	default:
		break;
	}
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* "sample 0, head 1: entropy 2.55 ..." */
static void tensors_draw_sequence_head(const struct view_tensor_values *values,
				       struct view_pane *pane, int y)
{
	const struct view_tensor_matrix *first =
		&values->part[values->part[VIEW_OF_SOURCE].ndim == 0];
	const struct report_head *head = &values->sequence.head;
	int x = 1;

	x += view_textf(pane, x, y, VIEW_BOLD, "sample %lld", (long long)values->first[0]);
	if (first->ndim > 3)
		x += view_textf(pane, x, y, VIEW_BOLD, ", head %lld", (long long)values->first[1]);
	x += view_textf(pane, x, y, VIEW_NORMAL, ": entropy %.3g, distance %.3g, greatest %.3g",
			head->entropy, head->distance, head->greatest);
	if (values->by_row)
		view_text(pane, x, y, VIEW_WARN, "; shades by row");
}

/* Draw tokens to the left of and above a map in @area; return the area left for the map. */
static struct view_rect tensors_draw_tokens(const struct view_tensor_values *values,
					    struct view_rect area, struct view_pane *pane)
{
	const struct view_tensor_sequence *s = &values->sequence;
	const int rows = values->shown_rows, columns = values->shown_columns;
	struct view_pane map;
	char text[REPORT_TOKEN_SIZE];
	int last = -1;

	if ((!s->of_rows && !s->of_columns) || area.width < 4 * LABEL || area.height < 4)
		return area;
	area.x += LABEL;
	area.width -= LABEL;
	area.y++;
	area.height--;
	map = view_pane_at(pane->canvas, area);
	for (int r = 0; r < rows && s->of_rows; r++) {
		const struct view_rect at = view_heat_place(&map, columns, rows, 0, r);

		if (at.y == last)
			continue;
		last = at.y;
		report_token_text(&s->tokens, (double)s->of_rows[r], text);
		view_text_right(pane, area.x - pane->rect.x - LABEL, area.y - pane->rect.y + at.y,
				LABEL - 1, VIEW_DIM, text);
	}
	last = -1;
	for (int c = 0; c < columns && s->of_columns; c++) {
		const struct view_rect at = view_heat_place(&map, columns, rows, c, 0);

		if (at.x == last)
			continue;
		last = at.x;
		report_token_text(&s->tokens, (double)s->of_columns[c], text);
		/* Cut to a backslash, "\\n" would look like another token. */
		if (text[0] == '\\' && text[1] && at.width < utf8_columns(text))
			str_copy(text, sizeof(text), "·");
		view_text_cut(pane, area.x - pane->rect.x + at.x, area.y - pane->rect.y - 1,
			      max(at.width, 1), VIEW_DIM, text);
	}
	return area;
}

/* ---- a text by its losses -------------------------------------------------------------------- */

/* Draw the tokens, each on the colour of its loss; without colours with the number beside it.
 * Return the row below. *@end: the first token that does not fit. */
static int draw_text(const struct view_tensor_values *v, struct view_pane *pane, int y, int bottom,
		     int64_t *end)
{
	const struct view_tensor_sequence *s = &v->sequence;
	const int64_t length = s->kept.shape[1];
	const float *losses = s->kept.values + v->sample * length;
	const bool numbers =
		view_colourless(pane->canvas) || !view_heat_halves(pane->canvas) || !s->of_rows;
	char text[REPORT_TOKEN_SIZE], cell[REPORT_TOKEN_SIZE + 32];
	float most = 0.0f;
	int x = 1;

	for (int64_t i = 0; i < length; i++)
		most = max(most, losses[i]);
	*end = v->token;
	for (int64_t i = v->token; i < length && y < bottom; i++) {
		const double part = most > 0.0f ? (double)(losses[i] / most) : 0.0;
		const int shade = part > 0.0 ? min((int)(part * (VIEW_HEAT_STEPS - 1)) + 1,
						   VIEW_HEAT_STEPS - 1)
					     : 0;
		int width;

		text[0] = '\0';
		if (s->of_rows)
			report_token_text(&s->tokens, (double)s->of_rows[i], text);
		snprintf(cell, sizeof(cell), numbers ? "%s %.3g" : "%s", text, (double)losses[i]);
		width = numbers ? NUMBERED : utf8_columns(text);
		if (x + width > pane->rect.width - 1) {
			x = 1;
			y++;
		}
		if (y >= bottom)
			break;
		if (numbers)
			view_text_cut(pane, x, y, width - 1, VIEW_NORMAL, cell);
		else
			view_text(pane, x, y,
				  (enum view_style)(
					  VIEW_HEAT_PAIR +
					  (shade > VIEW_HEAT_STEPS / 2 ? 0 : VIEW_HEAT_STEPS - 1) *
						  VIEW_HEAT_STEPS +
					  shade),
				  text);
		x += width;
		*end = i + 1;
	}
	return y + 1;
}

/* Draw the mean loss over samples: one bar per position, or per range of positions. */
static void draw_positions(const struct view_tensor_values *v, struct view_pane *pane, int y)
{
	const struct view_tensor_sequence *s = &v->sequence;
	const int64_t length = s->kept.shape[1];
	const int columns = (int)min(length, pane->rect.width - 2);
	double most = 0.0;

	for (int64_t i = 0; i < length; i++)
		most = fmax(most, s->by_position[i]);
	view_textf(pane, 1, y++, VIEW_BOLD,
		   "mean loss by position, of %lld samples: from 0 to %.3g",
		   (long long)s->kept.shape[0], most);
	for (int c = 0; c < columns && most > 0.0; c++) {
		const int64_t from = c * length / columns, to = (c + 1) * length / columns;
		double sum = 0.0;

		for (int64_t i = from; i < to; i++)
			sum += s->by_position[i] / (double)(to - from);
		for (int row = 0; row < BARS; row++) {
			const double fill = sum / most * BARS - (BARS - 1 - row);

			if (fill > 0.0)
				view_put(pane, 1 + c, y + row, VIEW_CURVE,
					 view_level_char(pane->canvas, fmin(fill, 1.0)));
		}
	}
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void draw_row(const struct view_tensor_sequence *s, const struct report_row *row,
		     struct view_pane *pane, int x, int y)
{
	char text[REPORT_TOKEN_SIZE] = "", line[REPORT_TOKEN_SIZE + 64];

	if (s->tokens.bytes || row->row < s->tokens.count)
		report_token_text(&s->tokens, (double)row->row, text);
	snprintf(line, sizeof(line), "%6lld %-6s %.4g", (long long)row->row, text, row->norm);
	view_text_cut(pane, x, y, COLUMN - 1, VIEW_NORMAL, line);
}

/* Draw three lists side by side, as long as they fit. */
static void draw_norms(const struct view_tensor_sequence *s, struct view_pane *pane, int y)
{
	const int64_t count = s->kept.shape[0];
	const int64_t most = min(count, max(pane->rect.height - y - 1, 0));
	int64_t still = 0;

	view_text(pane, 1, y, VIEW_BOLD, "largest norms");
	view_text(pane, 1 + COLUMN, y, VIEW_BOLD, "smallest norms");
	if (isnan(s->rows[0].change))
		view_text(pane, 1 + 2 * COLUMN, y, VIEW_DIM, "kept once: changes unknown");
	else
		view_textf(pane, 1 + 2 * COLUMN, y, VIEW_BOLD, "%lld never changed",
			   (long long)s->still);
	for (int64_t i = 0; i < most; i++) {
		draw_row(s, &s->rows[i], pane, 1, y + 1 + (int)i);
		draw_row(s, &s->rows[count - 1 - i], pane, 1 + COLUMN, y + 1 + (int)i);
	}
	for (int64_t i = 0; i < count && still < most; i++)
		if (s->rows[i].change == 0.0)
			draw_row(s, &s->rows[i], pane, 1 + 2 * COLUMN, y + 1 + (int)still++);
}

static void tensors_draw_sequence(const struct view_tensors *screen, struct view_pane *pane, int y)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_sequence *s = &v->sequence;
	const int bars = pane->rect.height - BARS - 1;

	if (s->note[0]) {
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_WARN, s->note);
	} else if (s->kind == VIEW_SEQUENCE_ROWS && s->rows) {
		draw_norms(s, pane, y);
	} else if (s->by_position) {
		const int heading = y++;
		int64_t end;
		int x;

		const int behind = draw_text(v, pane, y, bars, &end);

		/* If there is no space for both, the text takes precedence over the curve. */
		if (behind <= bars)
			draw_positions(v, pane, min(behind + 1, bars));
		else
			draw_text(v, pane, y, pane->rect.height, &end);
		x = 1 + view_textf(pane, 1, heading, VIEW_BOLD, "sample %lld of %lld",
				   (long long)v->sample, (long long)s->kept.shape[0]);
		if (v->token > 0 || end < s->kept.shape[1])
			view_textf(pane, x, heading, VIEW_NORMAL, ", tokens %lld to %lld of %lld",
				   (long long)v->token, (long long)end - 1,
				   (long long)s->kept.shape[1]);
	}
}

int64_t view__sequence_height(const struct view_tensor_sequence *s, int width)
{
	if (s->rows)
		return s->kept.shape[0] + 2;
	return s->by_position ? 1 + s->kept.shape[1] / max((width - 2) / NUMBERED, 1) + 1 + BARS + 1
			      : 1;
}

/* ---- as rows --------------------------------------------------------------------------------- */

void view__sequence_table(const struct view_tensor_values *v, struct report_table *out,
			  struct err *err)
{
	static const struct report_column losses[] = {
		{"position", REPORT_NUMBER}, {"token", REPORT_TEXT}, {"loss", REPORT_REAL}};
	static const struct report_column norms[] = {{"row", REPORT_NUMBER},
						     {"token", REPORT_TEXT},
						     {"norm", REPORT_REAL},
						     {"change", REPORT_REAL}};
	const struct view_tensor_sequence *s = &v->sequence;
	const int64_t count = s->rows ? s->kept.shape[0] : s->by_position ? s->kept.shape[1] : 0;

	if (s->kind == VIEW_SEQUENCE_ROWS)
		view_table_new(out, "embeddings", norms, (int)ARRAY_LEN(norms), count, err);
	else
		view_table_new(out, "token-losses", losses, (int)ARRAY_LEN(losses), count, err);
	for (int64_t i = 0; i < count && !err_stuck(err); i++) {
		const int64_t number = s->rows ? s->rows[i].row : i;
		const bool named = s->tokens.bytes || number < s->tokens.count;
		const bool known = (s->rows && named) || (!s->rows && s->of_rows);
		const double token = s->rows || !known ? (double)number : (double)s->of_rows[i];
		char text[REPORT_TOKEN_SIZE];
		const struct report_cell cells[] = {
			view_int(number),
			view_text_cell(known ? report_token_text(&s->tokens, token, text) : NULL),
			view_real(s->rows ? s->rows[i].norm
					  : (double)s->kept.values[v->sample * count + i]),
			view_real(s->rows ? s->rows[i].change : (double)NAN)};

		view_table_row(out, i, cells, err);
	}
	if (s->note[0] && !err_stuck(err))
		out->note = arena_strdup(&out->arena, s->note);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static const char *const tensors_part_names[] = {"Source", "Target", "Diff"};

static const enum view_style tensors_part_styles[] = {VIEW_SOURCE, VIEW_TARGET, VIEW_BOLD};

/* The index of the @at-th shown matrix. */
static int tensors_part_at(const struct view_tensor_values *v, int at)
{
	return v->part[VIEW_OF_SOURCE].ndim > 0 ? at : VIEW_OF_TARGET;
}

/* ---- as numbers ------------------------------------------------------------------------------ */

static void tensors_draw_cell(const struct view_tensor_values *v, int part, int row, int column,
			      int x, int y, struct view_pane *pane)
{
	const struct view_tensor_matrix *matrix = &v->part[part];
	const int64_t at = (int64_t)row * v->shown_columns + column;
	const double value = matrix->cell[at];
	const bool diff = part == VIEW_OF_DIFF;
	const enum view_style finite = !diff                    ? VIEW_NORMAL
				       : value < 0 || value > 0 ? VIEW_WARN
								: VIEW_DIM;
	char text[32];

	if (!view__values_has(v, matrix, row, column))
		return;
	if (v->equal && v->equal[at])
		snprintf(text, sizeof(text), "=");
	else
		snprintf(text, sizeof(text), diff && value > 0 ? "+%.4g" : "%.4g", value);
	view_text_right(pane, x, y, VIEW_MATRIX_CELL - 1,
			v->equal && v->equal[at] ? VIEW_DIM
			: isfinite(value)        ? finite
						 : VIEW_BAD,
			text);
}

static void tensors_draw_numbers(const struct view_tensor_values *v, int y, struct view_pane *pane)
{
	const int parts = view__values_parts(v);
	const int width = v->shown_columns * VIEW_MATRIX_CELL, top = y + (parts > 1);

	for (int r = 0; r < v->shown_rows; r++) {
		char text[32];

		snprintf(text, sizeof(text), "[%lld]", (long long)(v->row + r));
		view_text_right(pane, 0, top + 1 + r, VIEW_MATRIX_INDEX - 1, VIEW_DIM, text);
	}
	for (int i = 0; i < parts; i++) {
		const int part = tensors_part_at(v, i), x = VIEW_MATRIX_INDEX + i * width;

		if (parts > 1)
			view_text_right(pane, x, y, VIEW_MATRIX_CELL - 1, tensors_part_styles[part],
					tensors_part_names[part]);
		for (int c = 0; c < v->shown_columns; c++) {
			char text[32];

			snprintf(text, sizeof(text), "[%lld]", (long long)(v->column + c));
			view_text_right(pane, x + c * VIEW_MATRIX_CELL, top, VIEW_MATRIX_CELL - 1,
					VIEW_DIM, text);
		}
		for (int r = 0; r < v->shown_rows && v->part[part].cell; r++)
			for (int c = 0; c < v->shown_columns; c++)
				tensors_draw_cell(v, part, r, c, x + c * VIEW_MATRIX_CELL,
						  top + 1 + r, pane);
	}
}

/* ---- as pictures ----------------------------------------------------------------------------- */

static void tensors_draw_heat(const struct view_tensor_values *v, int part, struct view_rect area,
			      struct view_canvas *canvas, bool named)
{
	const struct view_tensor_matrix *matrix = &v->part[part];
	struct view_pane map = view_pane_at(canvas, area);

	if (named) {
		view_text(&map, 1, 0, tensors_part_styles[part], tensors_part_names[part]);
		area.y++;
		area.height--;
		map = view_pane_at(canvas, area);
	}
	if (!matrix->cell || area.height < 1)
		return;
	if (part == VIEW_OF_DIFF && !v->differs) {
		view_text_cut(&map, 1, 0, area.width - 2, VIEW_DIM, "nothing differs");
		return;
	}
	view_heat_map(&map, matrix->cell, v->shown_columns, v->shown_rows,
		      part == VIEW_OF_DIFF ? &v->diff_scale : &v->scale);
	/* Mark NaN and infinities, which are holes in the map. With D equal cells stay holes. */
	for (int r = 0; r < v->shown_rows; r++)
		for (int c = 0; c < v->shown_columns; c++) {
			const int64_t at = (int64_t)r * v->shown_columns + c;
			struct view_rect place;

			if (isfinite(matrix->cell[at]) || !view__values_has(v, matrix, r, c) ||
			    (v->equal && v->equal[at]))
				continue;
			place = view_heat_place(&map, v->shown_columns, v->shown_rows, c, r);
			view_put(&map, place.x, place.y, VIEW_BAD, '!');
		}
}

static void tensors_draw_pictures(const struct view_tensor_values *v, int y, struct view_pane *pane)
{
	const int parts = view__values_parts(v);
	struct view_rect area = pane->rect;
	const int bottom = pane->rect.height - 1;
	const bool diff = parts > VIEW_OF_DIFF && v->differs;
	const int width = diff ? pane->rect.width / 2 : pane->rect.width;
	int x = 1;

	area.y += y;
	area.height -= y + 1;
	if (parts == 1)
		area = tensors_draw_tokens(v, area, pane);
	for (int i = 0; i < parts && area.height > 0; i++) {
		struct view_rect share = view_tensors_share(area, parts, i);

		share.width -= i + 1 < parts; /* a gap */
		tensors_draw_heat(v, tensors_part_at(v, i), share, pane->canvas, parts > 1);
	}
	view_heat_legend(pane, x, bottom, width - 2, &v->scale);
	if (!diff)
		return;
	x = width + view_text(pane, width, bottom, VIEW_BOLD, "Diff ");
	view_heat_legend(pane, x, bottom, pane->rect.width - x - 1, &v->diff_scale);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Draw "step 30: float32 (3, 4, 5)  [0, :, :]". */
static void tensors_draw_slice(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const struct view_tensor_matrix *first = &v->part[tensors_part_at(v, 0)];
	int x = 1;

	if (capture->step != IPS_NULL)
		x += view_textf(pane, x, 0, VIEW_BOLD, "step %lld", (long long)capture->step);
	else if (capture->weight_update != IPS_NULL)
		x += view_textf(pane, x, 0, VIEW_BOLD, "weight update %lld",
				(long long)capture->weight_update);
	if (screen->replica < 0 && screen->replicas > 1)
		x += view_textf(pane, x, 0, VIEW_BOLD, ", replica %lld",
				(long long)capture->replica);
	x += view_textf(pane, x, 0, VIEW_NORMAL, ": %s %s", first->dtype, first->shape_text);
	if (first->ndim > 2) {
		x += view_text(pane, x, 0, VIEW_KEY, "  [");
		for (int i = 0; i < first->ndim - 2; i++)
			x += view_textf(pane, x, 0, VIEW_KEY, "%lld, ", (long long)v->first[i]);
		x += view_text(pane, x, 0, VIEW_KEY, ":, :]");
	}
	if (v->sequence.dims[0] && v->cut == 0)
		view_text_cut(pane, x + 2, 0, pane->rect.width - x - 3, VIEW_DIM, v->sequence.dims);
	if (v->cut > 0)
		view_text(pane, x + 2, 0, VIEW_WARN, "only its beginning is in the picture");
}

void view__values_draw(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_values *v = &screen->values;
	int y = 1;

	if (!view__values_capture(screen)) {
		const struct view_tensor_captures *both = &screen->values.both;

		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      both->looked < both->all
				      ? "None of its captures is among those looked at."
			      : screen->replica >= 0
				      ? "No values of this replica were kept: i shows another."
				      : "No values were kept of it (outfeed.capture full).");
		return;
	}
	tensors_draw_slice(screen, pane);
	if (v->note[0])
		view_text_cut(pane, 1, y++, pane->rect.width - 2, VIEW_WARN, v->note);
	if (!v->part[VIEW_OF_SOURCE].cell && !v->part[VIEW_OF_TARGET].cell)
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_WARN,
			      "values of this type or shape cannot be shown");
	else if (v->equal && !v->differs)
		view_text_cut(pane, 1, y, pane->rect.width - 2, VIEW_DIM,
			      "Nothing of what is shown differs: D shows all.");
	else if (v->paged)
		tensors_draw_sequence(screen, pane, y);
	else if (v->picture) {
		if (v->sequence.headed)
			tensors_draw_sequence_head(v, pane, y++);
		tensors_draw_pictures(v, y, pane);
	} else
		tensors_draw_numbers(v, y, pane);
}
