/*
 * The timeline's lanes: which there are, which are shown, and the call sites of their spans.
 *
 * Keys choose a way to look at lanes, IPUs or replicas, and lanes that are hidden. A filter chooses
 * spans by name and category. Both are a call site's, so each site is matched once and no span is:
 * what the filter leaves out stays where it is, as a thin line under what it lets through, and idle
 * time is that of all spans. A bucket of many spans goes by the site with most of its time.
 *
 * Hidden lanes are listed by the names that are unique in a rank: so they stay hidden over news,
 * and in both of two reports. Never are all lanes hidden: the last one that is shown stays, and
 * where a report has no others, all of its lanes are shown.
 *
 * Threading: one thread. Ownership: lanes are the arena of tracks', until the next news; call sites
 * have an arena for good.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"

#define MOST_SITES 200 /* that a statement names */

static bool view_is_listed(const struct view_hidden *hidden, const struct prof_track *track)
{
	for (size_t i = 0; i < hidden->count && track->track; i++)
		if (hidden->lanes[i].rank == track->rank &&
		    strcmp(hidden->lanes[i].track, track->track) == 0)
			return true;
	return false;
}

static bool view_is_hidden(const struct view_timeline *tl, const struct prof_track *track)
{
	return !tl->hiding.none && view_is_listed(tl->hiding.list, track);
}

static void view_hidden_count(struct view_timeline *tl)
{
	bool some = false;

	tl->hiding.none = false;
	tl->hiding.lanes = 0;
	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];

		if (track->depth < 1 || track->first_ns > track->last_ns)
			continue;
		some |= !view_is_hidden(tl, track);
		tl->hiding.lanes += view_is_hidden(tl, track);
	}
	if (some)
		return;
	tl->hiding.none = true;
	tl->hiding.lanes = 0;
}

void view__hidden_forget(struct view_timeline *tl)
{
	struct view_hidden *own = &tl->hiding.own;

	for (size_t i = 0; i < own->count; i++)
		mem_free(own->lanes[i].track);
	mem_free(own->lanes);
	*own = (struct view_hidden){0};
}

/* What has no name, and what there is no memory for, is not hidden. */
static void view_hide(struct view_timeline *tl, const struct prof_track *track)
{
	struct view_hidden *hidden = tl->hiding.list;
	char *name;

	if (!track->track || view_is_listed(hidden, track) ||
	    mem_grow(&hidden->lanes, &hidden->capacity, hidden->count + 1, sizeof(*hidden->lanes)))
		return;
	name = mem_strdup(track->track);
	if (name)
		hidden->lanes[hidden->count++] = (struct view_hidden_lane){track->rank, name};
}

/* The cursor's lane: the cursor goes to the next one of its clock, or the one before. */
static void view_hide_lane(struct view_timeline *tl, struct view_context *context)
{
	const struct view_lane *lane = view__lane(tl);

	view_hide(tl, lane->track);
	view_message(context, lane->track->name, " is hidden: E shows all lanes again");
	for (int by = 1; by >= -1; by -= 2) {
		const int next = tl->cursor.lane + by;

		if (next < 0 || next >= tl->lane_count ||
		    tl->lanes[next].track->clock != lane->track->clock)
			continue;
		tl->cursor.track_id = tl->lanes[next].track->track_id;
		tl->cursor.depth = tl->lanes[next].work_depth;
		return;
	}
	tl->cursor.track_id = IPS_NULL;
}

/* All of @tl that are shown but the cursor's. */
static void view_hide_others(struct view_timeline *tl, const struct prof_track *kept)
{
	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *track = tl->lanes[i].track;

		if (track->rank != kept->rank || !track->track || !kept->track ||
		    strcmp(track->track, kept->track) != 0)
			view_hide(tl, track);
	}
}

bool view__hide_request(struct view_timeline *tl, struct view_context *context,
			enum view_request request)
{
	if (request != VIEW_COLLAPSE_REQUEST && request != VIEW_COLLAPSE_ALL_REQUEST &&
	    request != VIEW_EXPAND_ALL_REQUEST)
		return false;
	if (request == VIEW_EXPAND_ALL_REQUEST) {
		view_message(context,
			     tl->hiding.list->count ? "all lanes are shown" : "no lane is hidden",
			     NULL);
		view__hidden_forget(tl);
	} else if (tl->lane_count == 1) {
		view_message(context, "the only lane that is shown stays", NULL);
	} else if (request == VIEW_COLLAPSE_REQUEST) {
		view_hide_lane(tl, context);
	} else {
		view_message(context, "only this lane: E shows all again", NULL);
		view_hide_others(tl, view__lane(tl)->track);
		if (tl->target)
			view_hide_others(tl->target, view__lane(tl)->track);
	}
	tl->cursor.pinned = IPS_NULL;
	tl->relane = true;
	if (tl->target)
		tl->target->relane = true;
	return true;
}

void view__hidden_query(const struct view_timeline *tl, struct str *out)
{
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

const char *view__hidden_text(const struct view_timeline *tl, char out[VIEW_UNIT_SIZE])
{
	const int count = tl->hiding.lanes;

	out[0] = '\0';
	if (count > 0)
		snprintf(out, VIEW_UNIT_SIZE, "%d lane%s hidden", count, count == 1 ? "" : "s");
	return out;
}

const char *const view__way_names[VIEW_WAYS] = {"Gantt", "Flame", "Flat", "BSP"};

/* ---- which lanes ----------------------------------------------------------------------------- */

int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu)
{
	const int64_t each = tl->facts.replicas > 0 ? tl->facts.ipus / tl->facts.replicas : 0;

	return each > 0 && ipu != IPS_NULL ? ipu / each : IPS_NULL;
}

int64_t view__first_ipu(const struct view_timeline *tl, int64_t replica)
{
	return replica > 0 && tl->facts.replicas > 0
		       ? replica * (tl->facts.ipus / tl->facts.replicas)
		       : 0;
}

static bool view_shows_track(const struct view_timeline *tl, const struct prof_track *track)
{
	if (track->depth < 1 || track->first_ns > track->last_ns || view_is_hidden(tl, track))
		return false;
	if (tl->choice.way == VIEW_BSP && (track->clock != IPS_DEVICE || track->ipu == IPS_NULL))
		return false;
	if (tl->choice.only_ipu != IPS_NULL)
		return track->ipu == tl->choice.only_ipu;
	if (tl->choice.only_replica != IPS_NULL)
		return track->ipu != IPS_NULL &&
		       view__replica_of(tl, track->ipu) == tl->choice.only_replica;
	return true;
}

static bool view_shows_any(const struct view_timeline *tl)
{
	for (int i = 0; i < tl->tracks.count; i++)
		if (view_shows_track(tl, &tl->tracks.all[i]))
			return true;
	return false;
}

/* The least IPU above @after that has a track; IPS_NULL: none. */
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

/* IPU after IPU, then replica after replica where there are several, then all. */
static void view_select_next(struct view_timeline *tl)
{
	if (tl->choice.only_replica != IPS_NULL) {
		if (++tl->choice.only_replica >= tl->facts.replicas)
			tl->choice.only_replica = IPS_NULL;
		return;
	}
	tl->choice.only_ipu =
		view_next_ipu(tl, tl->choice.only_ipu == IPS_NULL ? -1 : tl->choice.only_ipu);
	if (tl->choice.only_ipu == IPS_NULL && tl->facts.replicas > 1)
		tl->choice.only_replica = 0;
}

void view__filter_text(const struct view_timeline *tl, char *out, size_t size)
{
	if (tl->choice.only_ipu != IPS_NULL)
		snprintf(out, size, "IPU %lld", (long long)tl->choice.only_ipu);
	else if (tl->choice.only_replica != IPS_NULL)
		snprintf(out, size, "replica %lld", (long long)tl->choice.only_replica);
	else
		snprintf(out, size, "all IPUs");
}

static void view_select(struct view_timeline *tl, struct view_context *context)
{
	char text[32];

	if (view_next_ipu(tl, -1) == IPS_NULL) {
		snprintf(context->message, sizeof(context->message), "no lane is of an IPU");
		return;
	}
	do
		view_select_next(tl);
	while (!view_shows_any(tl));
	tl->relane = true;
	view__filter_text(tl, text, sizeof(text));
	snprintf(context->message, sizeof(context->message), "%s", text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void view_turn(struct view_timeline *tl, struct view_context *context, int by)
{
	const enum view_way before = tl->choice.way;

	do
		tl->choice.way =
			(enum view_way)(((int)tl->choice.way + by + VIEW_WAYS) % VIEW_WAYS);
	while (!view_shows_any(tl));
	tl->relane = (tl->choice.way == VIEW_BSP) != (before == VIEW_BSP);
	tl->cursor.pinned = IPS_NULL;
	snprintf(context->message, sizeof(context->message), "view: %s",
		 view__way_names[tl->choice.way]);
}

static void view_change_unit(struct view_timeline *tl, struct view_context *context)
{
	if (tl->facts.hertz <= 0) {
		snprintf(context->message, sizeof(context->message),
			 "the recording does not tell the device's clock");
		return;
	}
	tl->choice.cycles = !tl->choice.cycles;
	snprintf(context->message, sizeof(context->message), "device times in %s",
		 tl->choice.cycles ? "cycles" : "ns");
}

/*
 * The bubble as a whole, by its causes, or sums by name; of steps, tiles at work or their balance.
 */
static void view_break_down(struct view_timeline *tl, struct view_context *context)
{
	if (tl->choice.way == VIEW_BSP) {
		tl->choice.balance = !tl->choice.balance;
		snprintf(context->message, sizeof(context->message), "heights are %s",
			 tl->choice.balance ? "tile balances" : "tiles at work");
		return;
	}
	if (tl->choice.by_name) {
		tl->choice.by_name = false;
	} else if (tl->choice.by_cause ||
		   (tl->bubbles.mean[0].runs == 0 && tl->bubbles.mean[1].runs == 0)) {
		tl->choice.by_cause = false;
		tl->choice.by_name = tl->under.wanted = true;
	} else {
		tl->choice.by_cause = true;
		tl->choice.way = VIEW_GANTT;
	}
	if (view__sums_lack_room(tl, context, context->message, sizeof(context->message)))
		return;
	snprintf(context->message, sizeof(context->message), "%s",
		 tl->choice.by_name    ? "sums by name, of this lane"
		 : tl->choice.by_cause ? "the bubble by its causes"
				       : "the bubble as a whole");
}

bool view__way_request(struct view_timeline *tl, struct view_context *context,
		       enum view_request request)
{
	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		view_turn(tl, context, request == VIEW_VIEW_REQUEST ? 1 : -1);
		return true;
	case VIEW_SELECT_REQUEST:
		view_select(tl, context);
		return true;
	case VIEW_BREAKDOWN_REQUEST:
		view_break_down(tl, context);
		return true;
	case VIEW_UNIT_REQUEST:
		view_change_unit(tl, context);
		return true;
	default:
		return false;
	}
}

static bool view_is_no(const struct view_filter *filter)
{
	return filter->text[0] == '!';
}

static bool view_matches(const struct view_filter *filter, const char *text)
{
	return text && regexec(&filter->expression, text, 0, NULL, 0) == 0;
}

/* Does the filter leave out what has this name and category? */
static bool view_leaves_out(const struct view_filter *filter, const char *category,
			    const char *name)
{
	return filter->active &&
	       (view_matches(filter, name) || view_matches(filter, category)) == view_is_no(filter);
}

static void view_judge_site(const struct view_timeline *tl, struct view_site *site)
{
	site->left_out = view_leaves_out(&tl->filter, site->category, site->name);
}

bool view__left_out(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site;

	if (!tl->filter.active)
		return false;
	site = view__site(tl, bar->site_id);
	return site ? site->left_out : !view_is_no(&tl->filter);
}

void view__filter_free(struct view_timeline *tl)
{
	if (tl->filter.active)
		regfree(&tl->filter.expression);
	tl->filter.active = false;
	str_free(&tl->filter.condition);
}

static void view_set_filter(struct view_timeline *tl, const char *text)
{
	struct view_filter *filter = &tl->filter;
	const char *expression;

	view__filter_free(tl);
	str_copy(filter->text, sizeof(filter->text), text);
	filter->trouble[0] = '\0';
	filter->stale = true;
	expression = filter->text + view_is_no(filter);
	if (*expression) {
		const int error = regcomp(&filter->expression, expression,
					  REG_EXTENDED | REG_ICASE | REG_NOSUB);

		filter->active = error == 0;
		if (error)
			regerror(error, &filter->expression, filter->trouble,
				 sizeof(filter->trouble));
	}
	for (size_t i = 0; i < tl->sites.count; i++)
		view_judge_site(tl, &tl->sites.all[i]);
	tl->overview.track_id = IPS_NULL;
	tl->sums.known = false;
}

void view__timeline_filter(void *state, const char *text)
{
	struct view_timeline *tl = state;

	view_set_filter(tl, text);
	if (tl->target)
		view_set_filter(tl->target, text);
}

/* ---- the statement's condition --------------------------------------------------------------- */

static void view_add_condition(struct str *out, const char *category, const char *name, int number)
{
	str_add(out, number ? ", (" : "(category, name) IN (VALUES (");
	str_add_sql(out, category);
	str_add(out, ", ");
	str_add_sql(out, name);
	str_add(out, ")");
}

enum status view__filter_load(struct view_timeline *tl, struct prof_db *db, bool news,
			      struct err *err)
{
	static const char sql[] =
		"SELECT DISTINCT c.value, n.value FROM sites s JOIN strings c ON c.string_id = "
		"s.category_id JOIN strings n ON n.string_id = s.name_id ORDER BY 1, 2";
	struct view_filter *filter = &tl->filter;
	struct prof_query *query;
	bool row = false;
	int count = 0;
	enum status status;

	if (!filter->active || (!filter->stale && !news))
		return ST_OK;
	filter->stale = true;
	str_clear(&filter->condition);
	status = prof_query_open(&query, db, sql, err);
	if (status != ST_OK)
		return status;
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row &&
	       count <= MOST_SITES) {
		const char *category = prof_column_text(query, 0);
		const char *name = prof_column_text(query, 1);

		if (category && name && !view_leaves_out(filter, category, name))
			view_add_condition(&filter->condition, category, name, count++);
	}
	prof_query_close(query);
	filter->sites = count;
	str_add(&filter->condition, count ? ")" : "false");
	filter->stale = status != ST_OK;
	return status == ST_OK && filter->condition.failed ? err_nomem(err) : status;
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

/* ---- what it does to the picture ------------------------------------------------------------- */

void view__filter_count(struct view_timeline *tl)
{
	struct view_filter *filter = &tl->filter;

	filter->all = filter->passed = 0;
	filter->rough = false;
	for (int i = 0; i < tl->lane_count && filter->active; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		for (int b = 0; b < lane->bar_count && lane->rows > 0; b++) {
			const struct prof_bar *bar = &lane->bars[b];

			filter->all += bar->count;
			filter->passed += view__left_out(tl, bar) ? 0 : bar->count;
			filter->rough |= bar->span_id == IPS_NULL && bar->count > 1;
		}
	}
}

bool view__filter_status(const struct view_timeline *tl, char *out, size_t size)
{
	const struct view_filter *filter = &tl->filter;
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

/* What is known of a lane and stays so when the tracks are read afresh. */
struct view_kept {
	int64_t track_id;
	int work_depth;
	bool work_known;
};

/* ---- call sites ------------------------------------------------------------------------------ */

/* Where @site_id is in the order of the sites, or would be. */
static size_t view_site_place(const struct view_timeline *tl, int64_t site_id)
{
	size_t low;

	SORTED_FIRST(low, 0, tl->sites.count, tl->sites.all[low].site_id < site_id);
	return low;
}

const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id)
{
	const size_t place = view_site_place(tl, site_id);

	if (place == tl->sites.count || tl->sites.all[place].site_id != site_id)
		return NULL;
	return &tl->sites.all[place];
}

/* Buckets have no phase of their own; the name of their site tells it where it is one of ours. */
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

enum status view__learn_site(struct view_timeline *tl, struct prof_db *db,
			     const struct prof_bar *bar, struct err *err)
{
	const size_t place = view_site_place(tl, bar->site_id);
	struct view_site site = {.site_id = bar->site_id};
	enum status status;

	if (bar->site_id == IPS_NULL)
		return ST_OK;
	if (place < tl->sites.count && tl->sites.all[place].site_id == bar->site_id) {
		if (bar->phase)
			tl->sites.all[place].phase = bar->phase;
		return ST_OK;
	}
	status = prof_timeline_site(db, bar->site_id, &tl->sites.arena, &site.category, &site.name,
				    err);
	if (status != ST_OK)
		return status;
	site.phase = bar->phase ? bar->phase : view_phase_of_name(site.category, site.name);
	view_judge_site(tl, &site);
	if (mem_grow(&tl->sites.all, &tl->sites.capacity, tl->sites.count + 1,
		     sizeof(*tl->sites.all)))
		return err_nomem(err);
	memmove(&tl->sites.all[place + 1], &tl->sites.all[place],
		(tl->sites.count - place) * sizeof(*tl->sites.all));
	tl->sites.all[place] = site;
	tl->sites.count++;
	return ST_OK;
}

char view__phase(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site;

	if (bar->phase)
		return bar->phase;
	site = view__site(tl, bar->site_id);
	return site ? site->phase : 0;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* What the whole run is like. */
static void view_read_facts(struct view_timeline *tl, struct prof_db *db)
{
	const struct {
		const char *key;
		int64_t *out;
	} facts[] = {{"replicas", &tl->facts.replicas}, {"ipus", &tl->facts.ipus}};
	char text[64];
	double number;

	tl->facts.hertz = 0;
	if (prof_db_meta(db, "clock_hz", text, sizeof(text)) && str_to_double(text, &number) &&
	    number > 0)
		tl->facts.hertz = number;
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		*facts[i].out = 0;
		if (prof_db_meta(db, facts[i].key, text, sizeof(text)) &&
		    str_to_double(text, &number) && number > 0 && number < 1e6)
			*facts[i].out = (int64_t)number;
	}
}

static void view_add_lane(struct view_timeline *tl, const struct prof_track *track,
			  const struct view_kept *kept, int kept_count)
{
	struct view_lane *lane = &tl->lanes[tl->all_lanes++];

	lane->track = track;
	lane->pipeline = track->ipu != IPS_NULL;
	for (int i = 0; i < kept_count; i++)
		if (kept[i].track_id == track->track_id) {
			lane->work_depth = kept[i].work_depth;
			lane->work_known = kept[i].work_known;
		}
}

/* Lanes are the tracks with spans, those that are shown first. What is known of a lane stays with
 * its track_id. */
static enum status view_make_lanes(struct view_timeline *tl, const struct view_kept *kept,
				   int kept_count, struct err *err)
{
	tl->lane_count = tl->all_lanes = 0;
	tl->lanes =
		arena_alloc(&tl->tracks.arena, (size_t)tl->tracks.count + 1, sizeof(*tl->lanes));
	if (!tl->lanes)
		return err_nomem(err);
	for (int shown = 1; shown >= 0; shown--) {
		for (int i = 0; i < tl->tracks.count; i++) {
			const struct prof_track *track = &tl->tracks.all[i];

			if (track->depth < 1 || track->first_ns > track->last_ns ||
			    view_shows_track(tl, track) != (shown == 1))
				continue;
			view_add_lane(tl, track, kept, kept_count);
			tl->lane_count += shown;
		}
	}
	return ST_OK;
}

/* Where stages are on a lane: looked for in a short window around a span in its middle. */
static enum status view_sample(struct view_timeline *tl, struct view_lane *lane, struct prof_db *db,
			       struct err *err)
{
	const struct prof_track *track = lane->track;
	const int64_t middle = track->first_ns + (track->last_ns - track->first_ns) / 2;
	struct prof_bar *bars;
	struct prof_span span;
	int64_t id;
	int count;
	enum status status;

	status =
		prof_timeline_find(db, track->track_id, track->clock, NULL, middle, true, &id, err);
	if (status != ST_OK || id == IPS_NULL)
		return status;
	status = prof_timeline_span(db, id, &tl->picture, &span, err);
	if (status != ST_OK)
		return status;
	status = prof_timeline_bars(db, track->track_id, span.start_ns,
				    span.start_ns + (span.dur_ns > 0 ? span.dur_ns : 1), 64,
				    track->last_ns, &tl->picture, &bars, &count, err);
	for (int i = 0; i < count && status == ST_OK; i++) {
		status = view__learn_site(tl, db, &bars[i], err);
		if (view__phase(tl, &bars[i]) && !lane->work_known) {
			lane->work_known = true;
			lane->work_depth = bars[i].depth;
		}
	}
	return status;
}

/* In the picture's arena, since the arena of tracks is about to be emptied. NULL: no memory. */
static struct view_kept *view_keep(struct view_timeline *tl)
{
	struct view_kept *kept =
		arena_alloc(&tl->picture, (size_t)tl->all_lanes + 1, sizeof(*kept));

	for (int i = 0; kept && i < tl->all_lanes; i++)
		kept[i] = (struct view_kept){tl->lanes[i].track->track_id, tl->lanes[i].work_depth,
					     tl->lanes[i].work_known};
	return kept;
}

/* A lane for the cursor whose own is not shown: of the same clock if there is one, of an IPU if
 * there is one. */
static void view_choose_lane(struct view_timeline *tl)
{
	const int clock = tl->cursor.clock;
	int best = 0, best_score = -1;

	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int score =
			2 * ((lane->track->clock == IPS_DEVICE) == (clock == IPS_DEVICE)) +
			(lane->pipeline ? 1 : 0);

		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	tl->cursor.lane = best;
	if (tl->lane_count == 0)
		return;
	tl->cursor.depth = tl->lanes[best].work_depth;
	if (view__lead(tl) == clock || !tl->started)
		return;
	tl->cursor.ns =
		view_link_map(tl->links.points, tl->links.count, tl->cursor.ns, view__lead(tl));
	tl->clock[view__lead(tl)].window = view_window_show(
		tl->clock[view__lead(tl)].window, tl->cursor.ns, tl->clock[view__lead(tl)].extent);
}

/* What was all stays all; what is followed stays at the end. */
static void view_keep_windows(struct view_timeline *tl, const struct view_context *context,
			      const bool all[2])
{
	for (int c = 0; c < 2; c++) {
		struct view_clock *clock = &tl->clock[c];
		const int64_t length = clock->window.to - clock->window.from;

		if (all[c])
			clock->window = clock->extent;
		else if (context->follow)
			clock->window = view_window_clamp(
				(struct view_window){clock->extent.to - length, clock->extent.to},
				clock->extent);
	}
}

enum status view__tracks_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err)
{
	struct prof_db *db = context->source->db;
	const int kept_count = tl->all_lanes;
	const bool first = !tl->started;
	const bool all[2] = {view__shows_all(&tl->clock[IPS_HOST]),
			     view__shows_all(&tl->clock[IPS_DEVICE])};
	const struct view_kept *kept = view_keep(tl);
	enum status status;

	if (!kept)
		return err_nomem(err);
	arena_reset(&tl->tracks.arena);
	view__bars_forget(tl);
	tl->lane_count = tl->all_lanes = tl->tracks.count = tl->links.count = 0;
	tl->counters.known = false;
	tl->links.points = NULL;
	tl->under.belongs.of[0] = '\0';
	tl->overview.track_id = IPS_NULL;
	view_read_facts(tl, db);
	status = prof_timeline_tracks(db, &tl->tracks.arena, &tl->tracks.all, &tl->tracks.count,
				      err);
	view_hidden_count(tl);
	if (status == ST_OK)
		status = view_make_lanes(tl, kept, kept_count, err);
	if (status != ST_OK)
		return status;
	view__measure_clocks(tl);
	status = view__links_load(tl, db, tl->links.rank, err);
	if (status == ST_OK)
		status = view__traced_load(tl, db, err);
	if (status == ST_OK)
		status = view__bubbles_forget(tl, db, err);
	for (int i = 0; i < tl->all_lanes && status == ST_OK; i++)
		if (!tl->lanes[i].work_known)
			status = view_sample(tl, &tl->lanes[i], db, err);
	if (status != ST_OK)
		return status;

	tl->cursor.lane = view__lane_of(tl, tl->cursor.track_id);
	if (!tl->started && tl->lane_count > 0)
		view__first_window(tl, context);
	if (tl->cursor.lane < 0)
		view_choose_lane(tl);
	if (!first)
		view_keep_windows(tl, context, all);
	tl->relane = false;
	return ST_OK;
}
