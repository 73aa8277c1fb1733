/*
 * Sequences: tokens beside a map of attention, a text coloured by the losses of its tokens, and the
 * norms of an Embedding's rows. Not used for two reports.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the page's arena.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_heat.h"
#include "viewer/draw/view_table.h"

#define LABEL    6  /* columns of a token beside a map */
#define NUMBERED 10 /* columns of a token with its loss */
#define BARS     4  /* rows of the curve by position */
#define COLUMN   26 /* width of a list of norms */

void view__sequence_choose(struct view_tensors *screen, const struct view_context *context)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_sequence *s = &v->sequence;
	const int side = screen->id[0] == IPS_NULL;
	struct err err;
	struct prof_query *query;
	enum status status;

	/* A choice made because the last tensor was a sequence does not apply to another one. */
	v->picture = v->picture && s->kind == VIEW_SEQUENCE_NONE;
	*s = (struct view_tensor_sequence){0};
	v->paged = false;
	v->sample = v->token = 0;
	if (screen->id[side] == IPS_NULL)
		return;
	/* A file of an earlier version has no such column: nothing is known then. */
	status = prof_query_open(&query, view__tensors_db(context, side),
				 "SELECT dims, kind FROM tensor_rows WHERE tensor_id = :id", &err);
	prof_query_int(query, ":id", screen->id[side]);
	if (prof_query_next(query, &status, &err)) {
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
	view__matrix_scale(v);
}

/* Compute the figures of an attention head, if the picture's cells contain the whole slice. */
static enum status load_head(struct view_tensors *screen, const struct view_tensor_matrix *matrix,
			     struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	const int64_t count = matrix->rows * matrix->columns;
	float *scores;

	v->sequence.headed = v->cut == 0 && matrix->cell;
	if (!v->sequence.headed)
		return ST_OK;
	scores = arena_alloc(&screen->page_arena, (size_t)count, sizeof(*scores));
	if (!scores)
		return err_nomem(err);
	for (int64_t i = 0; i < count; i++)
		scores[i] = (float)matrix->cell[i];
	v->sequence.head = report_head_of(scores, 1, count, matrix->rows, matrix->columns);
	return ST_OK;
}

static enum status load_losses(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_sequence *s = &v->sequence;
	const int64_t length = s->kept.shape[1];

	v->sample = min(v->sample, s->kept.shape[0] - 1);
	v->token = min(v->token, length - 1);
	s->by_position = arena_alloc(&screen->page_arena, (size_t)length, sizeof(double));
	if (!s->by_position)
		return err_nomem(err);
	for (int64_t i = 0; i < s->kept.count; i++)
		s->by_position[i % length] += (double)s->kept.values[i] / (double)s->kept.shape[0];
	return report_tokens_of(&s->of_rows, &screen->page_arena, db, &s->tokens, &s->kept,
				"targets", v->sample, length, err);
}

static enum status load_rows(struct view_tensors *screen, struct prof_db *db, struct err *err)
{
	struct view_tensor_sequence *s = &screen->values.sequence;
	enum status status = report_rows_of(&s->rows, &screen->page_arena, db, &s->kept, err);

	for (int64_t r = 0; r < s->kept.shape[0] && status == ST_OK; r++)
		s->still += s->rows[r].change == 0.0;
	if (status == ST_OK)
		report_rows_sort(s->rows, s->kept.shape[0]);
	return status;
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

enum status view__sequence_load(struct view_tensors *screen, struct view_context *context,
				struct err *err)
{
	struct view_tensor_values *v = &screen->values;
	struct view_tensor_sequence *s = &v->sequence;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const int side = v->part[VIEW_OF_SOURCE].ndim == 0;
	const struct view_tensor_matrix *matrix = &v->part[side];
	struct prof_db *db = view__tensors_db(context, side);
	struct report_kept_at at = REPORT_KEPT_ANY;
	struct arena *arena = &screen->page_arena;
	enum status status;

	if (s->kind == VIEW_SEQUENCE_NONE || !capture || view__values_parts(v) != 1 ||
	    (!v->paged && !(v->picture && s->kind == VIEW_SEQUENCE_SCORES)))
		return ST_OK;
	at.key = screen->key;
	at.step = capture->step != IPS_NULL ? capture->step : capture->weight_update;
	at.replica = capture->replica;
	at.rank = screen->rank;
	at.near = capture->row_id[side];
	status = report_tokens_read(&s->tokens, arena, db, err);
	if (status == ST_OK && s->kind == VIEW_SEQUENCE_SCORES) {
		const struct report_kept beside = {
			.row_id = at.near, .step = at.step, .replica = at.replica, .rank = at.rank};

		status = report_tokens_of(&s->of_rows, arena, db, &s->tokens, &beside, NULL,
					  v->first[0], matrix->rows, err);
		if (status == ST_OK)
			status = report_tokens_of(&s->of_columns, arena, db, &s->tokens, &beside,
						  NULL, v->first[0], matrix->columns, err);
		if (status == ST_OK)
			status = load_head(screen, matrix, err);
		if (status == ST_OK && v->by_row && s->headed)
			scale_rows(v, matrix);
		return status;
	}
	if (status == ST_OK)
		status = report_kept_read(&s->kept, arena, db, &at, err);
	/* Too large, or a part is missing: its numbers can still be shown. */
	if (status == ST_NOTFOUND || status == ST_LIMIT || status == ST_FORMAT) {
		str_copy(s->note, sizeof(s->note), err->text);
		return ST_OK;
	}
	if (status != ST_OK)
		return status;
	if (s->kept.ndim != 2)
		str_copy(s->note, sizeof(s->note), "its shape is another");
	else if (s->kind == VIEW_SEQUENCE_LOSSES)
		return load_losses(screen, db, err);
	else
		return load_rows(screen, db, err);
	return ST_OK;
}

/* ---- maps ------------------------------------------------------------------------------------ */

void view__sequence_draw_head(const struct view_tensor_values *values, struct view_pane *pane,
			      int y)
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

struct view_rect view__sequence_sides(const struct view_tensor_values *values,
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
		if (text[0] == '\\' && text[1] && at.width < view_text_width(text))
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
		width = numbers ? NUMBERED : view_text_width(text);
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

void view__sequence_draw(const struct view_tensors *screen, struct view_pane *pane, int y)
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

enum status view__sequence_table(const struct view_tensor_values *v, struct report_table *out,
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
	enum status status = s->kind == VIEW_SEQUENCE_ROWS
				     ? view_table_new(out, "embeddings", norms,
						      (int)ARRAY_LEN(norms), count, err)
				     : view_table_new(out, "token-losses", losses,
						      (int)ARRAY_LEN(losses), count, err);

	for (int64_t i = 0; i < count && status == ST_OK; i++) {
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

		status = view_table_row(out, i, cells, err);
	}
	if (s->note[0] && status == ST_OK)
		out->note = arena_strdup(&out->arena, s->note);
	return status;
}
