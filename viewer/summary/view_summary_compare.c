/*
 * The Summary of two runs: the rows of `ipu-report diff` as a table; where their numbers diverge
 * first; and the places and screens to which its rows link.
 *
 * Threading: the session's. Ownership: the grid owns its rows.
 */
#include "viewer/summary/view_summary_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/table/report_render.h"
#include "viewer/draw/view_table.h"

/* ---- keys ------------------------------------------------------------------------------------ */

/* Words of a key that give a location, and the corresponding fields of a place. A counted word is
 * followed by its number. */
static const struct {
	const char *word, *field;
	bool counted;
} view_words[] = {
	{"host", "clock", false},     {"device", "clock", false}, {"train", "mode", false},
	{"evaluate", "mode", false},  {"predict", "mode", false}, {"F", "phase", false},
	{"B", "phase", false},        {"U", "phase", false},      {"stage", "stage", true},
	{"replica", "replica", true}, {"rank", "rank", true},     {"IPU", "ipu", true},
	{"epoch", "epoch", true},
};

/*
 * Read one of these words at the beginning of @key. Return the rest, or NULL if there is none.
 */
static const char *summary_parse_word(struct view_place *place, const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(view_words); i++) {
		const struct view_place_field *field = view_place_field(view_words[i].field);
		const size_t length = strlen(view_words[i].word);
		const char *rest = key + length;
		char *end;

		if (!str_starts_with(key, view_words[i].word) || (*rest && *rest != ' '))
			continue;
		if (!view_words[i].counted) {
			view_place_text(view_place_chars(place, field), view_words[i].word);
			return rest + strspn(rest, " ");
		}
		*view_place_number(place, field) = strtoll(rest, &end, 10);
		return end + strspn(end, " ");
	}
	return NULL;
}

/* Read all such words; return the rest. */
static const char *summary_parse_words(struct view_place *place, const char *key)
{
	for (const char *rest = key; rest && *rest; rest = summary_parse_word(place, key))
		key = rest;
	return key;
}

/* "device train stage 0 B replica 0", "IPU 0 controlCode nonInterleaved" */
static void summary_parse_location(struct view_place *place, const char *key)
{
	(void)summary_parse_words(place, key);
}

/* "train epoch 1 loss" */
static void summary_parse_metric(struct view_place *place, const char *key)
{
	view_place_text(place->metric, summary_parse_words(place, key));
}

static void summary_parse_layer(struct view_place *place, const char *key)
{
	view_place_text(place->layer, key);
}

/* "Dense_128/MatMul F" */
static void summary_parse_operation(struct view_place *place, const char *key)
{
	const char *blank = strrchr(key, ' ');

	view_place_text(place->operation, key);
	if (!blank || strlen(blank) != 2 || blank - key >= VIEW_PLACE_NAME)
		return;
	view_place_text(place->phase, blank + 1);
	place->operation[blank - key] = '\0';
}

/* "exploding Dense_128_acts" */
static void summary_parse_rule(struct view_place *place, const char *key)
{
	view_place_text(place->rule, key);
	place->rule[strcspn(place->rule, " ")] = '\0';
	view_place_text(place->key, key + strcspn(key, " ") + (strchr(key, ' ') != NULL));
}

/* "Dense_128_acts (multi_activations_outfeed_queue)" */
static void summary_parse_tensor(struct view_place *place, const char *key)
{
	const char *queue = strstr(key, " (");

	view_place_text(place->key, key);
	if (!queue)
		return;
	place->key[strcspn(place->key, " ")] = '\0';
	view_place_text(place->queue, queue + 2);
	place->queue[strcspn(place->queue, ")")] = '\0';
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct view_section {
	const char *section, *key; /* NULL: any */
	enum view_screen leads;
	const char *view; /* the view of these rows, or NULL */
	void (*parse_key)(struct view_place *place, const char *key);
} view_sections[] = {
	{"totals", "host step", VIEW_TIMELINE, "stage_sums", summary_parse_location},
	{"totals", "device step", VIEW_TIMELINE, "stage_sums", summary_parse_location},
	{"totals", "fullest IPU", VIEW_MEMORY, NULL, summary_parse_location},
	{"totals", "fullest tile", VIEW_MEMORY, NULL, summary_parse_location},
	{"totals", "code", VIEW_OPERATIONS, NULL, summary_parse_location},
	{"totals", "model", VIEW_OPERATIONS, NULL, summary_parse_location},
	{"bubbles", NULL, VIEW_TIMELINE, "bubble_sums", summary_parse_location},
	{"stages", NULL, VIEW_TIMELINE, "stage_sums", summary_parse_location},
	{"time_split", NULL, VIEW_TIMELINE, "time_split", summary_parse_location},
	{"layers", NULL, VIEW_OPERATIONS, NULL, summary_parse_layer},
	{"operations", NULL, VIEW_OPERATIONS, NULL, summary_parse_operation},
	{"memory", NULL, VIEW_MEMORY, NULL, summary_parse_location},
	{"liveness", NULL, VIEW_LIVENESS, NULL, summary_parse_location},
	{"metrics", NULL, VIEW_METRICS, NULL, summary_parse_metric},
	{"health", NULL, VIEW_HEALTH, NULL, summary_parse_rule},
	{"tensors", NULL, VIEW_TENSORS, NULL, summary_parse_tensor},
};

static const char *summary_cell_text(const struct view_grid *grid, const char *column)
{
	const char *text = view_grid_text(grid, column);

	return text ? text : "";
}

/* The section of the row under the cursor; NULL: the row has no link. */
static const struct view_section *summary_current_section(const struct view_grid *grid)
{
	const char *section = summary_cell_text(grid, "section"),
		   *key = summary_cell_text(grid, "key");

	for (size_t i = 0; i < ARRAY_LEN(view_sections); i++)
		if (strcmp(view_sections[i].section, section) == 0 &&
		    (!view_sections[i].key || strcmp(view_sections[i].key, key) == 0))
			return &view_sections[i];
	return NULL;
}

bool view__compare_place(const struct view_summary *screen, struct view_place *out)
{
	const struct view_section *section = summary_current_section(&screen->grid);

	if (!section)
		return false;
	section->parse_key(out, summary_cell_text(&screen->grid, "key"));
	view_place_text(out->view, section->view);
	return true;
}

enum view_screen view__compare_leads(const struct view_summary *screen)
{
	const struct view_section *section = summary_current_section(&screen->grid);

	return section ? section->leads : VIEW_SCREENS;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define ROWS_READ INT64_C(2000000) /* of both runs; takes 2 to 4 s */
#define CELL_SIZE 128

#define WHOLE_ROWS 3  /* for the cursor's row, with the line above it */
#define WHOLE_FROM 16 /* least rows of the body for that */

static const char summary_quick_sections[] =
	"settings,totals,bubbles,stages,time_split,layers,operations,"
	"memory,liveness,metrics,health";

static const char summary_all_sections[] =
	"settings,totals,bubbles,stages,time_split,layers,operations,"
	"memory,liveness,metrics,health,tensors";

static const struct report_column summary_columns[] = {
	{"section", REPORT_TEXT},
	{"what", REPORT_TEXT},
	{"key", REPORT_TEXT},
	{"name", REPORT_TEXT},
	{"source_text", REPORT_TEXT},
	{"target_text", REPORT_TEXT},
	{"diff_text", REPORT_TEXT},
	{"verdict", REPORT_TEXT},
	{"diff_fraction", REPORT_FRACTION},
	{"source", REPORT_REAL},
	{"target", REPORT_REAL},
	{"measured", REPORT_BOOL},
};

/* Texts and numbers share columns, which fit "-15,050,624"; names are cut. */
static const struct view_grid_column summary_shown[] = {
	{"section", NULL, 0, 6, 5, false},
	{"what", NULL, 0, 24, 9, false},
	{"source_text", "Source", 0, 10, 7, false},
	{"target_text", "Target", 0, 10, 7, false},
	{"diff_text", "Diff", 0, 11, 6, false},
	{"verdict", NULL, 0, 7, 7, false},
	{"diff_fraction", "of larger", 0, 8, 6, false},
	{.importance = 0}, /* all others */
};

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *summary_value_text(const struct report_diff_value *value,
				      enum report_quantity quantity, char out[CELL_SIZE])
{
	const struct report_cell cell = {.type = value->text ? PROF_TEXT : PROF_REAL,
					 .real = value->number,
					 .text = value->text};

	if (!value->known)
		return NULL;
	return report_cell_text(&cell, quantity, out, CELL_SIZE);
}

/* The difference with its sign, so that its direction shows without colour. NULL for texts. */
static const char *summary_diff_text(const struct report_diff_row *row, char out[CELL_SIZE])
{
	const double amount = report_diff_amount(row);
	const struct report_cell cell = {.type = PROF_REAL, .real = fabs(amount)};
	char text[CELL_SIZE - 1];

	if (isnan(amount))
		return NULL;
	snprintf(out, CELL_SIZE, "%s%s",
		 amount > 0   ? "+"
		 : amount < 0 ? "-"
			      : "",
		 report_cell_text(&cell, row->quantity, text, sizeof(text)));
	return out;
}

/* Key and name in one text; of a setting only the key; without " replica 0" if it is the only
 * one. */
static const char *summary_row_what(const struct report_diff_row *row, bool replicas, char *out,
				    size_t size)
{
	static const char replica[] = " replica 0";
	const char *at = replicas ? NULL : strstr(row->key, replica);
	char name[CELL_SIZE];
	size_t length;

	if (strcmp(row->section, "settings") == 0) {
		str_copy(out, size, row->key);
		return out;
	}
	/* "mean_ns" becomes "mean": values include their unit. */
	str_copy(name, CELL_SIZE, row->name);
	length = strlen(name);
	if (length > 3 && strcmp(name + length - 3, "_ns") == 0)
		name[length - 3] = '\0';
	for (char *blank = strchr(name, '_'); blank; blank = strchr(blank, '_'))
		*blank = ' ';
	snprintf(out, size, "%.*s%s %s", at ? (int)(at - row->key) : (int)strlen(row->key),
		 row->key, at ? at + strlen(replica) : "", name);
	return out;
}

/* ---- order of rows --------------------------------------------------------------------------- */

struct view_ranked {
	const struct report_diff_row *row;
	int last, section, measured;
	double change;
	size_t at;
};

/*
 * Rank of the least informative rows, which come last: equal settings, then notes of a merge.
 */
static int summary_last_rank(const struct report_diff_row *row)
{
	if (strcmp(row->section, "settings") != 0)
		return 0;
	if (str_starts_with(row->key, "merge"))
		return 2;
	return report_diff_same(row);
}

/* In each section the largest change comes first; simulated values come before host times, which
 * differ in every run. */
static int summary_by_rank(const void *a, const void *b)
{
	const struct view_ranked *one = a, *two = b;
	int order = SORTED_BY(one, two, last, section, measured);

	if (order == 0)
		order = SORTED_BY(two, one, change);
	return order != 0 ? order : SORTED_BY(one, two, at);
}

/* List the shown rows in order; with @differ, only changed ones, by change. Return their number. */
static size_t summary_rank_rows(struct view_ranked *out, const struct report_diff *diff,
				bool differ)
{
	int section = 0;
	size_t count = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const struct report_diff_row *row = &diff->rows[i];
		const double fraction = fabs(report_diff_fraction(row));

		section += i > 0 && strcmp(row->section, row[-1].section) != 0;
		if (differ && report_diff_same(row))
			continue;
		out[count] = (struct view_ranked){
			.row = row, .last = summary_last_rank(row), .section = section, .at = i};
		if (differ) {
			out[count].measured = row->measured;
			out[count].change = isnan(fraction) ? (double)INFINITY : fraction;
		}
		count++;
	}
	qsort(out, count, sizeof(*out), summary_by_rank);
	return count;
}

static void summary_fill_rows(struct report_table *out, const struct report_diff *diff, bool differ,
			      struct err *err)
{
	bool replicas = false;
	struct view_ranked *ranked = mem_calloc(diff->count + 1, sizeof(*ranked));
	size_t count;

	if (!ranked) {
		err_nomem(err);
		return;
	}
	for (size_t i = 0; i < diff->count && !replicas; i++)
		replicas = strstr(diff->rows[i].key, " replica 1") != NULL;
	count = summary_rank_rows(ranked, diff, differ);
	view_table_new(out, "compare", summary_columns, ARRAY_LEN(summary_columns), (int64_t)count,
		       err);
	for (size_t i = 0; i < count && !err_stuck(err); i++) {
		const struct report_diff_row *row = ranked[i].row;
		const struct report_diff_value *from = &row->source, *to = &row->target;
		char source[CELL_SIZE], target[CELL_SIZE], change[CELL_SIZE], what[2 * CELL_SIZE];
		const struct report_cell cells[] = {
			view_text_cell(row->section),
			view_text_cell(summary_row_what(row, replicas, what, sizeof(what))),
			view_text_cell(row->key),
			view_text_cell(row->name),
			view_text_cell(summary_value_text(from, row->quantity, source)),
			view_text_cell(summary_value_text(to, row->quantity, target)),
			view_text_cell(summary_diff_text(row, change)),
			view_text_cell(report_diff_verdict(row)),
			view_real(report_diff_fraction(row)),
			view_real(from->known && !from->text ? from->number : (double)NAN),
			view_real(to->known && !to->text ? to->number : (double)NAN),
			view_int(row->measured),
		};

		view_table_row(out, (int64_t)i, cells, err);
	}
	mem_free(ranked);
}

/* ---- loading --------------------------------------------------------------------------------- */

static int64_t summary_count_rows(struct prof_db *db)
{
	static const char sql[] = "SELECT ifnull((SELECT max(row_id) FROM tensor_stat_rows), 0) + "
				  "ifnull((SELECT max(row_id) FROM metric_rows), 0)";
	int64_t rows;

	if (prof_db_number(db, sql, &rows, NULL) != ST_OK)
		return INT64_MAX / 4;
	return min(max(rows, 0), INT64_MAX / 4);
}

void view__compare_load(struct view_summary *screen, struct view_context *context, bool news,
			struct err *err)
{
	const int height = context->body.height;
	const int head = height > VIEW_COMPARE_HEAD ? VIEW_COMPARE_HEAD : 0;
	struct view_rect area = {0, head, context->body.width, height - head};
	struct prof_db *source = context->source->db, *target = context->target->db;
	struct report_table table = {0};
	struct report_diff fresh = {0};

	if (news) {
		screen->all_compared =
			summary_count_rows(source) + summary_count_rows(target) <= ROWS_READ;
		if (report_diff_get(&fresh, source, target,
				    screen->all_compared ? summary_all_sections
							 : summary_quick_sections,
				    err) == ST_OK) {
			report_diff_free(&screen->diff);
			screen->diff = fresh;
			summary_fill_rows(&table, &screen->diff, context->differ, err);
		} else {
			report_diff_free(&fresh);
		}
		if (!err_stuck(err))
			view_grid_set(&screen->grid, context, &table, summary_shown,
				      ARRAY_LEN(summary_shown), "section,what", err);
		report_table_free(&table);
	}
	if (err_stuck(err))
		return;
	view_grid_layout(&screen->grid, area);
	/* If cells are cut, reserve rows at the bottom for the complete cursor's row. */
	if (!context->whole && height >= WHOLE_FROM && view_grid_is_cut(&screen->grid)) {
		area.height -= WHOLE_ROWS;
		view_grid_layout(&screen->grid, area);
	}
}

void view__compare_fini(struct view_summary *screen)
{
	report_diff_free(&screen->diff);
	view_grid_fini(&screen->grid);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Draw ", step 4", or nothing if the value is unknown. */
static int summary_draw_number(struct view_pane *pane, int x, int y, const char *name,
			       int64_t value)
{
	return value == IPS_NULL ? 0
				 : view_textf(pane, x, y, VIEW_WARN, ", %s %" PRId64, name, value);
}

/* Draw where the numbers of the two runs diverge first, or why that is unknown. */
static void summary_draw_first_difference(const struct view_summary *screen, struct view_pane *pane,
					  int y)
{
	if (!screen->all_compared)
		view_text(pane, 1, y, VIEW_DIM,
			  "tensors by step are too many to be read at once: ipu-report diff does");
	else if (screen->diff.part.known) {
		char source[FMT_SIZE], target[FMT_SIZE];
		int x = 1;

		x += view_textf(pane, x, y, VIEW_WARN, "the numbers part first at %s",
				screen->diff.part.key);
		x += summary_draw_number(pane, x, y, "update", screen->diff.part.weight_update);
		x += summary_draw_number(pane, x, y, "step", screen->diff.part.step);
		x += summary_draw_number(pane, x, y, "micro-batch", screen->diff.part.microbatch);
		view_textf(pane, x, y, VIEW_WARN, ": %s %s > %s",
			   screen->diff.part.column ? screen->diff.part.column : "value",
			   fmt_real(source, screen->diff.part.source),
			   fmt_real(target, screen->diff.part.target));
	} else if (screen->diff.compared > 0)
		view_textf(pane, 1, y, VIEW_GOOD,
			   "%" PRId64 " rows of tensors and metrics: no number differs",
			   screen->diff.compared);
}

void view__compare_draw(const struct view_summary *screen, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_rect table = screen->grid.area;
	struct view_pane whole =
		view_pane_sub(pane, (struct view_rect){0, table.y + table.height, pane->rect.width,
						       pane->rect.height - table.y - table.height});
	char glance[REPORT_GLANCE_SIZE];

	if (table.y > 0) {
		int x = view_text(pane, 1, 0, VIEW_DIM, "Source ");

		x += view_text(pane, 1 + x, 0, VIEW_BOLD, context->source->name);
		x += view_text(pane, 1 + x, 0, VIEW_DIM, "  Target ");
		view_text(pane, 1 + x, 0, VIEW_BOLD, context->target->name);
		view_text(pane, 1, 1, VIEW_BOLD, report_diff_glance(&screen->diff, glance));
		summary_draw_first_difference(screen, pane, 2);
	}
	view_grid_draw_whole(&screen->grid, &whole);
	view_grid_draw(&screen->grid, pane, !context->whole);
	if (context->differ && screen->grid.table.row_count == 0)
		view_text(pane, 1, table.y + 1, VIEW_DIM, "Nothing differs: D shows all.");
}
