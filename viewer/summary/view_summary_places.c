/*
 * Where the rows of two runs lead to: from the section and the key that `ipu-report diff` gives a
 * row to the place, and to the screen that shows what it is about.
 *
 * Threading: none of its own. Ownership: none.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/summary/view_summary_internal.h"

/* ---- keys ------------------------------------------------------------------------------------ */

/* Words of a key that say where it is, and the place's field; one that is counted has its number
 * behind it. */
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
 * Take one of the words from the beginning of @key. Returns what is behind it; NULL: it has none.
 */
static const char *view_take_word(struct view_place *place, const char *key)
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

/* All such words; returns what is left. */
static const char *view_take_words(struct view_place *place, const char *key)
{
	for (const char *rest = key; rest && *rest; rest = view_take_word(place, key))
		key = rest;
	return key;
}

/* "device train stage 0 B replica 0", "IPU 0 controlCode nonInterleaved" */
static void view_take_where(struct view_place *place, const char *key)
{
	(void)view_take_words(place, key);
}

/* "train epoch 1 loss" */
static void view_take_metric(struct view_place *place, const char *key)
{
	view_place_text(place->metric, view_take_words(place, key));
}

static void view_take_layer(struct view_place *place, const char *key)
{
	view_place_text(place->layer, key);
}

/* "Dense_128/MatMul F" */
static void view_take_operation(struct view_place *place, const char *key)
{
	const char *blank = strrchr(key, ' ');

	view_place_text(place->operation, key);
	if (!blank || strlen(blank) != 2 || blank - key >= VIEW_PLACE_NAME)
		return;
	view_place_text(place->phase, blank + 1);
	place->operation[blank - key] = '\0';
}

/* "exploding Dense_128_acts" */
static void view_take_rule(struct view_place *place, const char *key)
{
	view_place_text(place->rule, key);
	place->rule[strcspn(place->rule, " ")] = '\0';
	view_place_text(place->key, key + strcspn(key, " ") + (strchr(key, ' ') != NULL));
}

/* "Dense_128_acts (multi_activations_outfeed_queue)" */
static void view_take_tensor(struct view_place *place, const char *key)
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
	const char *view; /* the rows are of, or NULL */
	void (*take)(struct view_place *place, const char *key);
} view_sections[] = {
	{"totals", "host step", VIEW_TIMELINE, "stage_sums", view_take_where},
	{"totals", "device step", VIEW_TIMELINE, "stage_sums", view_take_where},
	{"totals", "fullest IPU", VIEW_MEMORY, NULL, view_take_where},
	{"totals", "fullest tile", VIEW_MEMORY, NULL, view_take_where},
	{"totals", "code", VIEW_OPERATIONS, NULL, view_take_where},
	{"totals", "model", VIEW_OPERATIONS, NULL, view_take_where},
	{"bubbles", NULL, VIEW_TIMELINE, "bubble_sums", view_take_where},
	{"stages", NULL, VIEW_TIMELINE, "stage_sums", view_take_where},
	{"time_split", NULL, VIEW_TIMELINE, "time_split", view_take_where},
	{"layers", NULL, VIEW_OPERATIONS, NULL, view_take_layer},
	{"operations", NULL, VIEW_OPERATIONS, NULL, view_take_operation},
	{"memory", NULL, VIEW_MEMORY, NULL, view_take_where},
	{"liveness", NULL, VIEW_LIVENESS, NULL, view_take_where},
	{"metrics", NULL, VIEW_METRICS, NULL, view_take_metric},
	{"health", NULL, VIEW_HEALTH, NULL, view_take_rule},
	{"tensors", NULL, VIEW_TENSORS, NULL, view_take_tensor},
};

static const char *view_text_of(const struct view_grid *grid, const char *column)
{
	const struct report_cell *cell = view_grid_cell(grid, column);

	return cell && cell->type == PROF_TEXT && cell->text ? cell->text : "";
}

/* Of the row under the cursor; NULL: it leads nowhere. */
static const struct view_section *view_section_of(const struct view_grid *grid)
{
	const char *section = view_text_of(grid, "section"), *key = view_text_of(grid, "key");

	for (size_t i = 0; i < ARRAY_LEN(view_sections); i++)
		if (strcmp(view_sections[i].section, section) == 0 &&
		    (!view_sections[i].key || strcmp(view_sections[i].key, key) == 0))
			return &view_sections[i];
	return NULL;
}

bool view__compare_place(const struct view_summary *screen, struct view_place *out)
{
	const struct view_section *section = view_section_of(&screen->grid);

	if (!section)
		return false;
	section->take(out, view_text_of(&screen->grid, "key"));
	view_place_text(out->view, section->view);
	return true;
}

enum view_screen view__compare_leads(const struct view_summary *screen)
{
	const struct view_section *section = view_section_of(&screen->grid);

	return section ? section->leads : VIEW_SCREENS;
}
