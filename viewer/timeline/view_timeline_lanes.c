/*
 * The timeline's lanes: the list of lanes, which of them are shown, and the call sites of their
 * spans.
 *
 * Keys choose a way to show lanes, an IPU or a replica, and lanes to hide. The list of hidden lanes
 * holds names that are unique in a rank, so lanes stay hidden after news, and in both of two
 * reports. At least one lane is always shown: the last shown lane cannot be hidden, and if the list
 * would hide all lanes of a report, none is hidden.
 *
 * Lanes can be folded: one lane then shows all tracks below a thread, process, device or rank, as
 * their parents say. Tracks are in the order of their parents, so members of a fold are neighbours.
 * Lanes of IPUs are not folded.
 *
 * A filter selects spans by name and category. Both belong to a call site, so the filter is matched
 * once per site, not per span. Excluded spans keep their position as a thin line below the selected
 * ones, and idle time is computed from all spans. A bucket of several spans counts as the site with
 * most of its time.
 *
 * Threading: one thread. Ownership: lanes are in the arena of tracks, until the next news; call
 * sites have an arena that is kept; the list owns the names of hidden lanes, and with two reports
 * the source owns the list.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/map.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"

#define MOST_SITES 200 /* named in a statement */

const char *const view__way_names[VIEW_WAYS] = {"Gantt", "Flame", "Flat", "BSP"};

const char *const view__fold_names[VIEW_FOLDS] = {"none", "thread and stream", "process and device",
						  "rank"};

/* ---- call sites ------------------------------------------------------------------------------ */

/* Does the filter exclude spans of this name and category? */
static bool view_filter_excludes(const struct view_span_filter *filter, const char *category,
				 const char *name)
{
	const char *const texts[] = {name, category};
	bool matches = false;

	if (!filter->active)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		matches |= texts[i] && regexec(&filter->expression, texts[i], 0, NULL, 0) == 0;
	return matches == (filter->text[0] == '!');
}

/* The index of @site_id in the sorted sites, or where it would be inserted. */
static size_t view_site_index(const struct view_timeline *tl, int64_t site_id)
{
	size_t low;

	SORTED_FIRST(low, 0, tl->sites.count, tl->sites.all[low].site_id < site_id);
	return low;
}

const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id)
{
	const size_t at = view_site_index(tl, site_id);

	return at < tl->sites.count && tl->sites.all[at].site_id == site_id ? &tl->sites.all[at]
									    : NULL;
}

/* Derive the phase from the site's name, for buckets, which have no phase; 0: not one of our
 * names. */
static char view_phase_of_name(const char *category, const char *name)
{
	static const struct {
		const char *word;
		char phase;
	} words[] = {{"forward", IPS_FORWARD},         {"backward", IPS_BACKWARD},
		     {"weight update", IPS_UPDATE},    {"update", IPS_UPDATE},
		     {"recompute", IPS_RECOMPUTATION}, {"weight", IPS_WEIGHTS}};

	if (!name || !category || strcmp(category, "stage") != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(name, words[i].word))
			return words[i].phase;
	return 0;
}

void view__read_site(struct view_timeline *tl, const struct prof_bar *bar)
{
	struct view_sites *sites = &tl->sites;
	const size_t at = view_site_index(tl, bar->site_id);
	struct view_site site = {.site_id = bar->site_id};

	if (bar->site_id == IPS_NULL || tl->status != ST_OK)
		return;
	if (at < sites->count && sites->all[at].site_id == bar->site_id) {
		if (bar->phase)
			sites->all[at].phase = bar->phase;
		return;
	}
	tl->status = prof_timeline_site(tl->db, bar->site_id, &sites->arena, &site.category,
					&site.name, &tl->err);
	if (tl->status != ST_OK)
		return;
	if (mem_grow(&sites->all, &sites->capacity, sites->count + 1, sizeof(*sites->all))) {
		tl->status = err_nomem(&tl->err);
		return;
	}
	site.phase = bar->phase ? bar->phase : view_phase_of_name(site.category, site.name);
	site.left_out = view_filter_excludes(&tl->filter, site.category, site.name);
	memmove(&sites->all[at + 1], &sites->all[at], (sites->count - at) * sizeof(*sites->all));
	sites->all[at] = site;
	sites->count++;
}

char view__phase(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site = bar->phase ? NULL : view__site(tl, bar->site_id);

	return site ? site->phase : bar->phase;
}

bool view__is_filtered_out(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site = tl->filter.active ? view__site(tl, bar->site_id) : NULL;

	return site ? site->left_out : tl->filter.active && tl->filter.text[0] != '!';
}

/* ---- the filter ------------------------------------------------------------------------------ */

void view__filter_free(struct view_timeline *tl)
{
	if (tl->filter.active)
		regfree(&tl->filter.expression);
	tl->filter.active = false;
	str_free(&tl->filter.condition);
}

void view__timeline_filter(void *state, const char *text)
{
	struct view_timeline *tl = state;
	struct view_span_filter *filter = &tl->filter;
	const char *expression;

	view__filter_free(tl);
	str_copy(filter->text, sizeof(filter->text), text);
	filter->trouble[0] = '\0';
	filter->stale = true;
	expression = filter->text + (filter->text[0] == '!');
	if (*expression) {
		const int error = regcomp(&filter->expression, expression,
					  REG_EXTENDED | REG_ICASE | REG_NOSUB);

		filter->active = error == 0;
		if (error)
			regerror(error, &filter->expression, filter->trouble,
				 sizeof(filter->trouble));
	}
	for (size_t i = 0; i < tl->sites.count; i++)
		tl->sites.all[i].left_out = view_filter_excludes(filter, tl->sites.all[i].category,
								 tl->sites.all[i].name);
	tl->overview.track_id = IPS_NULL;
	tl->sums.known = false;
	if (tl->target)
		view__timeline_filter(tl->target, text);
}

/* Build the filter's condition in SQL: the names that it selects. */
static void view_read_condition(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT DISTINCT c.value, n.value FROM sites s JOIN strings c ON c.string_id = "
		"s.category_id JOIN strings n ON n.string_id = s.name_id ORDER BY 1, 2";
	struct view_span_filter *filter = &tl->filter;
	struct prof_query *query;

	str_clear(&filter->condition);
	filter->stale = true;
	filter->sites = 0;
	tl->status = prof_query_open(&query, tl->db, sql, &tl->err);
	while (filter->sites <= MOST_SITES && prof_query_next(query, &tl->status, &tl->err)) {
		const char *category = prof_column_text(query, 0);
		const char *name = prof_column_text(query, 1);

		if (!category || !name || view_filter_excludes(filter, category, name))
			continue;
		str_add(&filter->condition,
			filter->sites++ ? ", (" : "(category, name) IN (VALUES (");
		str_add_sql(&filter->condition, category);
		str_add(&filter->condition, ", ");
		str_add_sql(&filter->condition, name);
		str_add(&filter->condition, ")");
	}
	prof_query_close(query);
	str_add(&filter->condition, filter->sites ? ")" : "false");
	filter->stale = tl->status != ST_OK;
	if (tl->status == ST_OK && filter->condition.failed)
		tl->status = err_nomem(&tl->err);
}

void view__filter_load(struct view_timeline *tl, bool news)
{
	struct view_span_filter *filter = &tl->filter;

	if (tl->status == ST_OK && filter->active && (filter->stale || news))
		view_read_condition(tl);
	filter->all = filter->passed = 0;
	filter->rough = false;
	for (int i = 0; i < tl->lane_count && filter->active; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		for (int b = 0; b < lane->bar_count && lane->rows > 0; b++) {
			const struct prof_bar *bar = &lane->bars[b];

			filter->all += bar->count;
			filter->passed += view__is_filtered_out(tl, bar) ? 0 : bar->count;
			filter->rough |= bar->span_id == IPS_NULL && bar->count > 1;
		}
	}
}

void view__filter_query(const struct view_timeline *tl, struct str *out)
{
	if (!tl->filter.active || tl->filter.stale)
		return;
	if (tl->filter.sites > MOST_SITES)
		str_add(out, " /* and the filter, which lets too many names through to list */");
	else
		str_addf(out, "\n  AND %s", str_peek(&tl->filter.condition));
}

bool view__filter_status(const struct view_timeline *tl, char *out, size_t size)
{
	const struct view_span_filter *filter = &tl->filter;
	char passed[FMT_SIZE], all[FMT_SIZE];

	if (filter->trouble[0]) {
		snprintf(out, size, "filter: %s", filter->trouble);
		return true;
	}
	if (!filter->active || tl->choice.way == VIEW_BSP)
		return false;
	snprintf(out, size, "filter %s: %s%s of %s spans in view%s; idle time of all", filter->text,
		 filter->rough ? "about " : "", fmt_count(passed, filter->passed),
		 fmt_count(all, filter->all), filter->rough ? " (a cell by its most)" : "");
	return true;
}

/* ---- hidden lanes ---------------------------------------------------------------------------- */

/* Is it the track of that name in the rank? Some have no name. */
static bool view_is_named(const struct prof_track *track, int64_t rank, const char *name)
{
	return track->track && name && track->rank == rank && strcmp(track->track, name) == 0;
}

static bool view_is_listed(const struct view_hidden *list, const struct prof_track *track)
{
	for (size_t i = 0; i < list->count; i++)
		if (view_is_named(track, list->lanes[i].rank, list->lanes[i].track))
			return true;
	return false;
}

static bool view_is_hidden(const struct view_timeline *tl, const struct prof_track *track)
{
	return !tl->hiding.none && view_is_listed(tl->hiding.list, track);
}

/* Count the hidden tracks. If all would be hidden, hide none. */
static void view_count_hidden(struct view_timeline *tl)
{
	int shown = 0;

	tl->hiding.none = false;
	tl->hiding.lanes = 0;
	for (int i = 0; i < tl->tracks.count; i++)
		if (view__has_spans(&tl->tracks.all[i])) {
			const bool hidden = view_is_hidden(tl, &tl->tracks.all[i]);

			tl->hiding.lanes += hidden;
			shown += !hidden;
		}
	if (shown > 0)
		return;
	tl->hiding.none = true;
	tl->hiding.lanes = 0;
}

void view__hidden_free(struct view_timeline *tl)
{
	struct view_hidden *own = &tl->hiding.own;

	for (size_t i = 0; i < own->count; i++)
		mem_free(own->lanes[i].track);
	mem_free(own->lanes);
	*own = (struct view_hidden){0};
}

static void view_hide_members(struct view_timeline *tl, const struct view_lane *lane)
{
	for (int i = 0; i < lane->member_count; i++) {
		struct view_hidden *list = tl->hiding.list;
		char *name;

		/* A lane without a name, or for which memory is short, stays shown. */
		if (!lane->members[i]->track || view_is_listed(list, lane->members[i]) ||
		    mem_grow(&list->lanes, &list->capacity, list->count + 1, sizeof(*list->lanes)))
			continue;
		name = mem_strdup(lane->members[i]->track);
		if (name)
			list->lanes[list->count++] =
				(struct view_hidden_lane){lane->members[i]->rank, name};
	}
}

/* Hide all shown lanes of @tl except that of @stays. */
static void view_hide_others(struct view_timeline *tl, const struct prof_track *stays)
{
	for (int i = 0; i < tl->lane_count; i++) {
		bool found = false;

		for (int m = 0; m < tl->lanes[i].member_count; m++)
			found |= view_is_named(tl->lanes[i].members[m], stays->rank, stays->track);
		if (!found)
			view_hide_members(tl, &tl->lanes[i]);
	}
}

/* Hide the cursor's lane. Move the cursor to the next lane of its clock, or to the previous one. */
static void view_hide_lane(struct view_timeline *tl)
{
	const struct view_lane *lane = view__lane(tl);

	view_hide_members(tl, lane);
	view_message(tl->context, lane->fold ? lane->fold : lane->track->name,
		     " is hidden: E shows all lanes again");
	tl->cursor.track_id = IPS_NULL;
	for (int by = 1; by >= -1; by -= 2) {
		const int next = tl->cursor.lane + by;

		if (next < 0 || next >= tl->lane_count ||
		    tl->lanes[next].track->clock != lane->track->clock)
			continue;
		tl->cursor.track_id = tl->lanes[next].track->track_id;
		tl->cursor.depth = tl->lanes[next].work_depth;
		return;
	}
}

static void view_change_hidden(struct view_timeline *tl, enum view_request request)
{
	const struct prof_track *track = view__lane(tl)->track;

	if (request == VIEW_EXPAND_ALL_REQUEST) {
		view__say(tl, tl->hiding.list->count ? "all lanes are shown" : "no lane is hidden");
		view__hidden_free(tl);
	} else if (tl->lane_count == 1) {
		view__say(tl, "the only lane that is shown stays");
	} else if (request == VIEW_COLLAPSE_REQUEST) {
		view_hide_lane(tl);
	} else {
		view__say(tl, "only this lane: E shows all again");
		view_hide_others(tl, track);
		if (tl->target)
			view_hide_others(tl->target, track);
	}
	tl->cursor.pinned = IPS_NULL;
	tl->relane = true;
	if (tl->target)
		tl->target->relane = true;
}

void view__lanes_query(const struct view_timeline *tl, struct str *out)
{
	const int64_t each = tl->facts.replicas > 0 ? tl->facts.ipus / tl->facts.replicas : 0;
	const int64_t replica = tl->choice.only_replica;

	if (tl->choice.only_ipu != IPS_NULL)
		str_addf(out, " AND ipu = %lld", (long long)tl->choice.only_ipu);
	else if (replica != IPS_NULL)
		str_addf(out, " AND ipu BETWEEN %lld AND %lld", (long long)(replica * each),
			 (long long)((replica + 1) * each - 1));
	for (size_t i = 0; i < tl->hiding.list->count && !tl->hiding.none; i++) {
		const struct view_hidden_lane *lane = &tl->hiding.list->lanes[i];

		str_add(out, "\n  AND NOT (track IS ");
		str_add_sql(out, lane->track);
		if (lane->rank == IPS_NULL)
			str_add(out, " AND rank IS NULL)");
		else
			str_addf(out, " AND rank IS %lld)", (long long)lane->rank);
	}
}

/* ---- selection of lanes ---------------------------------------------------------------------- */

int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu)
{
	const int64_t each = tl->facts.replicas > 0 ? tl->facts.ipus / tl->facts.replicas : 0;

	return each > 0 && ipu != IPS_NULL ? ipu / each : IPS_NULL;
}

static bool view_shows_track(const struct view_timeline *tl, const struct prof_track *track)
{
	const struct view_chosen *choice = &tl->choice;

	if (!view__has_spans(track) || view_is_hidden(tl, track))
		return false;
	if (choice->way == VIEW_BSP && (track->clock != IPS_DEVICE || track->ipu == IPS_NULL))
		return false;
	if (choice->only_ipu != IPS_NULL)
		return track->ipu == choice->only_ipu;
	if (choice->only_replica != IPS_NULL)
		return track->ipu != IPS_NULL &&
		       view__replica_of(tl, track->ipu) == choice->only_replica;
	return true;
}

static bool view_shows_any(const struct view_timeline *tl)
{
	for (int i = 0; i < tl->tracks.count; i++)
		if (view_shows_track(tl, &tl->tracks.all[i]))
			return true;
	return false;
}

/* The lowest IPU above @after that has a track; IPS_NULL: none. */
static int64_t view_next_ipu(const struct view_timeline *tl, int64_t after)
{
	int64_t next = IPS_NULL;

	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];

		if (track->depth > 0 && track->ipu > after &&
		    (next == IPS_NULL || track->ipu < next))
			next = track->ipu;
	}
	return next;
}

void view__only_text(const struct view_timeline *tl, char *out, size_t size)
{
	if (tl->choice.only_ipu != IPS_NULL)
		snprintf(out, size, "IPU %lld", (long long)tl->choice.only_ipu);
	else if (tl->choice.only_replica != IPS_NULL)
		snprintf(out, size, "replica %lld", (long long)tl->choice.only_replica);
	else
		snprintf(out, size, "all IPUs");
}

/* Select the next IPU, then the next replica if there are several, then all. */
static void view_select_next(struct view_timeline *tl)
{
	struct view_chosen *choice = &tl->choice;
	char text[32];

	if (!view__lanes_have_ipu(tl)) {
		view__say(tl, "no lane is of an IPU");
		return;
	}
	do {
		if (choice->only_replica != IPS_NULL) {
			if (++choice->only_replica >= tl->facts.replicas)
				choice->only_replica = IPS_NULL;
			continue;
		}
		choice->only_ipu =
			view_next_ipu(tl, choice->only_ipu == IPS_NULL ? -1 : choice->only_ipu);
		if (choice->only_ipu == IPS_NULL && tl->facts.replicas > 1)
			choice->only_replica = 0;
	} while (!view_shows_any(tl));
	tl->relane = true;
	view__only_text(tl, text, sizeof(text));
	view__say(tl, text);
}

/* ---- folded lanes ---------------------------------------------------------------------------- */

/* The track or rank that @track is folded into; IPS_NULL: it is a lane of its own. */
static int64_t view_fold_of(const struct prof_track *track, enum view_fold fold)
{
	if (track->ipu != IPS_NULL || fold == VIEW_FOLD_NONE)
		return IPS_NULL;
	return fold == VIEW_FOLD_THREAD    ? track->branch_id
	       : fold == VIEW_FOLD_PROCESS ? track->top_id
					   : track->rank;
}

/* Are both shown in one lane? */
static bool view_fold_together(const struct prof_track *a, const struct prof_track *b,
			       enum view_fold fold)
{
	const int64_t into = view_fold_of(a, fold);

	return into != IPS_NULL && a->clock == b->clock && a->rank == b->rank &&
	       into == view_fold_of(b, fold);
}

static int view_count_lanes(const struct view_timeline *tl, enum view_fold fold)
{
	const struct prof_track *last = NULL;
	int count = 0;

	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];

		if (!view_shows_track(tl, track))
			continue;
		count += !last || !view_fold_together(last, track, fold);
		last = track;
	}
	return count;
}

/* Does @fold show fewer than @count lanes? Ranks are folded if there are several. */
static bool view_can_fold(const struct view_timeline *tl, enum view_fold fold, int count)
{
	bool ranks = false;

	for (int i = 1; i < tl->tracks.count; i++)
		ranks |= tl->tracks.all[i].rank != tl->tracks.all[0].rank;
	return (fold != VIEW_FOLD_RANK || ranks) && view_count_lanes(tl, fold) < count;
}

/* The name of the lane of all that @track is folded with. */
static const char *view_fold_name(struct view_timeline *tl, const struct prof_track *track)
{
	const int64_t into = view_fold_of(track, tl->choice.fold);
	const char *name = NULL;
	char rank[32];

	snprintf(rank, sizeof(rank), "rank %lld", (long long)into);
	if (tl->choice.fold == VIEW_FOLD_RANK)
		name = rank;
	for (int i = 0; i < tl->tracks.count && !name; i++)
		if (tl->tracks.all[i].track_id == into)
			name = tl->tracks.all[i].name;
	name = arena_printf(&tl->tracks.arena, "+%s", name ? name : "");
	if (!name)
		tl->status = err_nomem(&tl->err);
	return name;
}

/* Choose the next fold that shows fewer lanes; after the last one none. */
static void view_fold_next(struct view_timeline *tl)
{
	const enum view_fold before = tl->choice.fold;
	const int count = view_count_lanes(tl, before);
	enum view_fold fold = before;

	do
		fold = (enum view_fold)(((int)fold + 1) % VIEW_FOLDS);
	while (fold != VIEW_FOLD_NONE && !view_can_fold(tl, fold, count));
	tl->choice.fold = fold;
	tl->cursor.depth = 0;
	tl->cursor.pinned = IPS_NULL;
	tl->relane = true;
	if (fold == before)
		view__say(tl, "no lanes can be folded");
	else if (fold == VIEW_FOLD_NONE)
		view__say(tl, "all lanes are shown");
	else
		view_message(tl->context, "one lane for each ", view__fold_names[fold]);
}

bool view__lanes_have_ipu(const struct view_timeline *tl)
{
	return view_next_ipu(tl, -1) != IPS_NULL;
}

bool view__lanes_request(struct view_timeline *tl, enum view_request request)
{
	enum view_way *way = &tl->choice.way;
	const enum view_way before = *way;

	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		do
			*way = (enum view_way)view_next_choice((int)*way, VIEW_WAYS, request);
		while (!view_shows_any(tl));
		tl->relane = (*way == VIEW_BSP) != (before == VIEW_BSP);
		tl->cursor.pinned = IPS_NULL;
		view_message(tl->context, "view: ", view__way_names[*way]);
		return true;
	case VIEW_SELECT_REQUEST:
		view_select_next(tl);
		return true;
	case VIEW_EXPAND_REQUEST:
		view_fold_next(tl);
		return true;
	case VIEW_COLLAPSE_REQUEST:
	case VIEW_COLLAPSE_ALL_REQUEST:
	case VIEW_EXPAND_ALL_REQUEST:
		view_change_hidden(tl, request);
		return true;
	default:
		return false;
	}
}

/* ---- lanes ----------------------------------------------------------------------------------- */

int view__lane_of(const struct view_timeline *tl, int64_t track_id)
{
	for (int i = 0; i < tl->lane_count; i++)
		for (int m = 0; m < tl->lanes[i].member_count; m++)
			if (tl->lanes[i].members[m]->track_id == track_id)
				return i;
	return -1;
}

int view__same_lane(const struct view_timeline *tl, const struct prof_track *track)
{
	for (int i = 0; i < tl->lane_count; i++)
		for (int m = 0; m < tl->lanes[i].member_count; m++) {
			const struct prof_track *its = tl->lanes[i].members[m];

			if (its->clock == track->clock && its->ipu == track->ipu &&
			    (track->ipu != IPS_NULL || strcmp(its->name, track->name) == 0))
				return i;
		}
	return -1;
}

/* Lanes belong to one group if clock, rank, replica and parent are the same. */
int64_t view__group(const struct view_timeline *tl, const struct view_lane *lane)
{
	for (int i = 0; i < tl->all_lanes; i++) {
		const struct prof_track *a = tl->lanes[i].track, *b = lane->track;

		if (a->clock == b->clock && a->rank == b->rank && tl->lanes[i].pipeline &&
		    view__replica_of(tl, a->ipu) == view__replica_of(tl, b->ipu) &&
		    strcmp(a->parent ? a->parent : "", b->parent ? b->parent : "") == 0)
			return i;
	}
	return -1;
}

bool view__is_work(const struct view_timeline *tl, const struct view_lane *lane,
		   const struct prof_bar *bar)
{
	const char phase = view__phase(tl, bar);

	return bar->span_id != IPS_NULL &&
	       (bar->weight_update != IPS_NULL || bar->execution != IPS_NULL) &&
	       bar->depth == lane->work_depth && phase && strchr("FBWR", phase);
}

bool view__next_span(struct view_timeline *tl, const struct prof_track *track, int64_t time,
		     bool forward, struct arena *arena, struct prof_span *out)
{
	int64_t id;

	return prof_timeline_find(tl->db, track->track_id, track->clock, NULL, time, forward, &id,
				  NULL) == ST_OK &&
	       id != IPS_NULL && prof_timeline_span(tl->db, id, arena, out, NULL) == ST_OK;
}

bool view__span_at(struct view_timeline *tl, const struct prof_track *track, int64_t time,
		   int depth, struct arena *arena, struct prof_span *out)
{
	int64_t id;

	return prof_timeline_at(tl->db, track->track_id, time, depth, &id, NULL) == ST_OK &&
	       id != IPS_NULL && prof_timeline_span(tl->db, id, arena, out, NULL) == ST_OK;
}

bool view__lane_rows(struct view_timeline *tl, const struct prof_track *track,
		     struct view_window window, struct view_window *rows)
{
	const int64_t id = track->track_id;

	return prof_timeline_at(tl->db, id, window.from, 0, &rows->from, NULL) == ST_OK &&
	       (rows->from != IPS_NULL ||
		prof_timeline_find(tl->db, id, track->clock, NULL, window.from - 1, true,
				   &rows->from, NULL) == ST_OK) &&
	       prof_timeline_find(tl->db, id, track->clock, NULL, window.to, false, &rows->to,
				  NULL) == ST_OK &&
	       rows->from != IPS_NULL && rows->to != IPS_NULL && rows->from <= rows->to;
}

const char *view__lane_name(const struct view_timeline *tl, int lane)
{
	const struct view_lane *mine = &tl->lanes[lane];

	if (mine->fold)
		return mine->fold;
	return mine->namesake ? mine->track->track : mine->track->name;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Facts of a lane that are kept when the tracks are read again. */
struct view_known_lane {
	int64_t track_id;
	int work_depth;
	bool work_known;
};

/* Read a positive number below @most from the run's meta data; 0: missing or out of range. */
static double view_read_fact(struct prof_db *db, const char *key, double most)
{
	const double number = view_source_fact(db, key);

	return number < most ? number : 0;
}

static int view_by_track(const void *left, const void *right)
{
	const struct view_known_lane *a = left, *b = right;

	return SORTED_BY(a, b, track_id);
}

/* Find the lanes of a clock and rank whose paths end alike. */
static void view_find_namesakes(struct view_timeline *tl)
{
	struct map names = {0};

	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *mine = tl->lanes[i].track, *other;
		const uint64_t hash = map_text(MAP_SEED, mine->name);
		size_t at;

		if (tl->lanes[i].fold)
			continue;
		MAP_FIND(at, &names, hash,
			 (other = tl->lanes[at].track)->clock == mine->clock &&
				 other->rank == mine->rank && strcmp(other->name, mine->name) == 0);
		if (at != MAP_NONE)
			tl->lanes[i].namesake = tl->lanes[at].namesake = true;
		else if (map_add(&names, hash, (size_t)i) != 0)
			tl->status = err_nomem(&tl->err);
	}
	map_fini(&names);
}

/* Make a lane of each track with spans, or of those that are folded together, the shown ones first.
 * @known is sorted. */
static void view_make_lanes(struct view_timeline *tl, const struct view_known_lane *known,
			    int known_count)
{
	const size_t most = (size_t)tl->tracks.count + 1;
	const struct prof_track **member =
		view__alloc(tl, &tl->tracks.arena, most, sizeof(const struct prof_track *));
	struct view_lane *lane = NULL;

	tl->lanes = member ? view__alloc(tl, &tl->tracks.arena, most, sizeof(*tl->lanes)) : NULL;
	for (int shown = 1; shown >= 0 && tl->lanes; shown--)
		for (int i = 0; i < tl->tracks.count; i++) {
			const struct prof_track *track = &tl->tracks.all[i];
			int k;

			if (!view__has_spans(track) || view_shows_track(tl, track) != (shown == 1))
				continue;
			*member = track;
			if (shown && lane &&
			    view_fold_together(lane->track, track, tl->choice.fold)) {
				lane->member_count++; /* members are neighbours */
				if (track->track_id == tl->cursor.track_id)
					lane->track = track;
				member++;
				continue;
			}
			lane = &tl->lanes[tl->all_lanes++];
			*lane = (struct view_lane){.track = track,
						   .members = member++,
						   .member_count = 1,
						   .pipeline = track->ipu != IPS_NULL};
			SORTED_FIRST(k, 0, known_count, known[k].track_id < track->track_id);
			if (k < known_count && known[k].track_id == track->track_id) {
				lane->work_depth = known[k].work_depth;
				lane->work_known = known[k].work_known;
			}
			tl->lane_count += shown;
		}
	tl->folds = tl->choice.fold != VIEW_FOLD_NONE;
	for (int fold = 0; fold < VIEW_FOLDS && !tl->folds; fold++)
		tl->folds = view_can_fold(tl, (enum view_fold)fold, tl->lane_count);
	for (int i = 0; i < tl->lane_count && tl->lanes; i++) {
		const int64_t into = view_fold_of(tl->lanes[i].track, tl->choice.fold);

		/* A thread without anything below it is a lane as before. */
		lane = &tl->lanes[i];
		if (into == IPS_NULL || (lane->member_count == 1 && into == lane->track->track_id &&
					 tl->choice.fold != VIEW_FOLD_RANK))
			continue;
		lane->fold = view_fold_name(tl, lane->track);
		lane->work_known = true;
		lane->work_depth = 0;
	}
}

/* Find the depth of stages on a lane, from the bars of a span in the middle of its time. */
static void view_find_work_depth(struct view_timeline *tl, struct view_lane *lane)
{
	const struct prof_track *track = lane->track;
	const int64_t middle = track->first_ns + (track->last_ns - track->first_ns) / 2;
	struct prof_bar *bars = NULL;
	struct prof_span span;
	int64_t id = IPS_NULL;
	int count = 0;

	tl->status = prof_timeline_find(tl->db, track->track_id, track->clock, NULL, middle, true,
					&id, &tl->err);
	if (tl->status != ST_OK || id == IPS_NULL)
		return;
	tl->status = prof_timeline_span(tl->db, id, &tl->picture, &span, &tl->err);
	if (tl->status != ST_OK)
		return;
	tl->status = prof_timeline_bars(tl->db, track->track_id, span.start_ns,
					span.start_ns + max(span.dur_ns, 1), 64, track->last_ns,
					&tl->picture, &bars, &count, &tl->err);
	for (int i = 0; i < count && tl->status == ST_OK; i++) {
		view__read_site(tl, &bars[i]);
		/* Skip bars without busy time: a stage without work has a phase of length 0, inside
		 * a sync. */
		if (bars[i].busy_ns > 0 && view__phase(tl, &bars[i]) && !lane->work_known) {
			lane->work_known = true;
			lane->work_depth = bars[i].depth;
		}
	}
}

void view__make_lanes(struct view_timeline *tl)
{
	const int known_count = tl->all_lanes;
	/* In the picture's arena, since the arena of tracks is reset below. */
	struct view_known_lane *known =
		view__alloc(tl, &tl->picture, (size_t)known_count + 1, sizeof(*known));

	if (!known)
		return;
	for (int i = 0; i < known_count; i++)
		known[i] =
			(struct view_known_lane){tl->lanes[i].track->track_id,
						 tl->lanes[i].work_depth, tl->lanes[i].work_known};
	qsort(known, (size_t)known_count, sizeof(*known), view_by_track);
	arena_reset(&tl->tracks.arena);
	view__bars_free(tl);
	tl->lane_count = tl->all_lanes = tl->tracks.count = tl->links.count = 0;
	tl->counters.known = tl->path.known = false;
	tl->links.points = NULL;
	tl->under.belongs.of[0] = '\0';
	tl->overview.track_id = IPS_NULL;
	tl->facts.hertz = view_read_fact(tl->db, "clock_hz", INFINITY);
	tl->facts.replicas = (int64_t)view_read_fact(tl->db, "replicas", 1e6);
	tl->facts.ipus = (int64_t)view_read_fact(tl->db, "ipus", 1e6);
	tl->status = prof_timeline_tracks(tl->db, &tl->tracks.arena, &tl->tracks.all,
					  &tl->tracks.count, &tl->err);
	/* The clock is used as an index, and a file may contain any number. */
	for (int i = 0; i < tl->tracks.count; i++)
		tl->tracks.all[i].clock = tl->tracks.all[i].clock == IPS_DEVICE;
	view_count_hidden(tl);
	view_make_lanes(tl, known, known_count);
	view_find_namesakes(tl);
	for (int i = 0; i < tl->all_lanes && tl->status == ST_OK; i++)
		if (!tl->lanes[i].work_known)
			view_find_work_depth(tl, &tl->lanes[i]);
}
