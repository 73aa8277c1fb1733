/*
 * Iterate over the spans of a recording, track by track. See report_walk.h.
 *
 * Threading: none. Ownership: a walk owns its tracks, stacks and caches until it is closed.
 */
#include "reports/export/report_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "reports/table/report_internal.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

void report_pieces_init(struct report_pieces *pieces, struct prof_db *db, const char *sql,
			void (*render)(const struct prof_query *query, struct str *out),
			struct err *err)
{
	*pieces = (struct report_pieces){.db = db, .err = err, .sql = sql, .render = render};
	if (err_stuck(err))
		return;
	pieces->blocks = mem_calloc(REPORT_PIECES_BLOCKS, sizeof(*pieces->blocks));
	if (!pieces->blocks)
		err_nomem(err);
	for (int i = 0; i < REPORT_PIECES_BLOCKS && pieces->blocks; i++)
		pieces->blocks[i].number = IPS_NULL;
}

void report_pieces_fini(struct report_pieces *pieces)
{
	for (int i = 0; i < REPORT_PIECES_BLOCKS && pieces->blocks; i++)
		str_free(&pieces->blocks[i].text);
	mem_free(pieces->blocks);
	pieces->blocks = NULL;
}

void report__pieces_load(struct report_pieces *pieces, int64_t id)
{
	const int64_t number = id >> REPORT_PIECES_SHIFT;
	const int64_t first = id & ~(int64_t)(REPORT_PIECES_IDS - 1);
	struct report_pieces_block *block = &pieces->blocks[number & (REPORT_PIECES_BLOCKS - 1)];
	struct err *err = pieces->err;
	struct prof_query *query;
	int next = 0;

	block->number = IPS_NULL;
	block->last = IPS_NULL;
	block->round = pieces->round;
	str_clear(&block->text);
	if (err_stuck(err) || prof_query_open(&query, pieces->db, pieces->sql, err) != ST_OK)
		return;
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", first + REPORT_PIECES_IDS - 1);
	while (prof_query_next(query, &err->status, err)) {
		const int64_t row = prof_column_int(query, 0);

		for (; next <= row - first; next++)
			block->at[next] = block->text.length;
		pieces->render(query, &block->text);
		block->last = row;
	}
	prof_query_close(query);
	for (; next <= REPORT_PIECES_IDS; next++)
		block->at[next] = block->text.length;
	if (block->text.failed)
		err_nomem(err);
	if (!err_stuck(err))
		block->number = number;
}

/* Strip the braces around what an object writer appended from @from on. */
static void strip_braces(struct str *out, size_t from)
{
	if (out->failed || out->length < from + 2)
		return;
	memmove(out->text + from, out->text + from + 1, out->length - from - 2);
	out->length -= 2;
	out->text[out->length] = '\0';
}

void report_pieces_members(const struct prof_query *query, struct str *out)
{
	const size_t from = out->length;
	struct report_cell cell;
	struct jsonw w;

	jsonw_init_str(&w, out, 0);
	jsonw_begin_object(&w);
	for (int i = 1; i < prof_column_count(query); i++) {
		report__cell(query, i, &cell);
		if (cell.type != PROF_NULL)
			report__json_cell(&w, prof_column_name(query, i), &cell);
	}
	jsonw_end_object(&w);
	strip_braces(out, from);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int compare_track_ids(const void *a, const void *b)
{
	const struct prof_track *const *x = a, *const *y = b;

	return SORTED_BY(*x, *y, track_id);
}

static void read_tracks(struct report_walk *walk)
{
	if (prof_timeline_tracks(walk->db, &walk->arena, &walk->tracks, &walk->track_count,
				 walk->err) != ST_OK ||
	    walk->track_count == 0)
		return;
	walk->by_id = arena_alloc(&walk->arena, (size_t)walk->track_count, sizeof(*walk->by_id));
	if (!walk->by_id) {
		err_nomem(walk->err);
		return;
	}
	for (int i = 0; i < walk->track_count; i++)
		walk->by_id[i] = &walk->tracks[i];
	qsort(walk->by_id, (size_t)walk->track_count, sizeof(*walk->by_id), compare_track_ids);
}

/* A range without an end is of an execution that was running when the recording ended. */
static void add_execution(struct report_walk *walk, const struct prof_query *query)
{
	struct report_walk_execution *execution;

	if (mem_grow(&walk->ranks, &walk->rank_capacity, walk->rank_count + 1,
		     sizeof(*walk->ranks)) != 0) {
		err_nomem(walk->err);
		return;
	}
	execution = &walk->ranks[walk->rank_count++];
	*execution = (struct report_walk_execution){.rank = prof_column_int(query, 0)};
	for (int clock = 0; clock < 2; clock++) {
		const int64_t from = prof_column_int(query, 1 + 2 * clock);
		const int64_t to = prof_column_int(query, 2 + 2 * clock);

		if (from == IPS_NULL)
			continue;
		execution->from_ns[clock] = from;
		execution->to_ns[clock] = to == IPS_NULL ? INT64_MAX : to;
	}
}

/* Find the time ranges of the selected execution: in a merged file each rank has one. */
static void find_execution(struct report_walk *walk)
{
	const int64_t execution = walk->request->execution;
	struct err *err = walk->err;
	struct prof_query *query;

	if (execution == IPS_NULL || err_stuck(err))
		return;
	prof_query_open(&query, walk->db,
			"SELECT rank, start_ns, start_ns + dur_ns, "
			"CAST(round(start_cycle * 1e9 / hz) AS INTEGER), "
			"CAST(round((start_cycle + cycles) * 1e9 / hz) AS INTEGER) FROM "
			"executions, (SELECT (SELECT CAST(value AS REAL) FROM meta "
			"WHERE key = 'clock_hz') AS hz) WHERE execution = :execution",
			err);
	prof_query_int(query, ":execution", execution);
	while (prof_query_next(query, &err->status, err))
		add_execution(walk, query);
	prof_query_close(query);
	if (!err_stuck(err) && walk->rank_count == 0)
		err_set(err, ST_NOTFOUND,
			"--execution %lld: %s has none of this number (`ipu-report "
			"%s executions` lists them)",
			(long long)execution, walk->request->path, walk->request->path);
}

static void render_execution(const struct prof_query *query, struct str *out)
{
	const int64_t execution = prof_column_int(query, 1);

	str_add_bytes(out, (const char *)&execution, sizeof(execution));
}

void report_walk_open(struct report_walk *walk, const struct report_export_request *request,
		      struct err *err)
{
	*walk = (struct report_walk){.request = request, .db = request->db, .err = err};
	if (arena_init(&walk->arena, 0) != 0)
		err_nomem(err);
	/* Read the last row before the tracks, so that no row lacks its track. */
	else if (prof_db_number(walk->db, "SELECT max(span_id) FROM span_rows", &walk->last_span,
				err) == ST_OK)
		read_tracks(walk);
	if (!err_stuck(err)) {
		int64_t committed;

		/* Open spans last until the recording's end on their clock. */
		prof_db_number(walk->db, "SELECT max(time_ns) FROM overhead", &committed, err);
		walk->end_ns[IPS_HOST] = max(committed, 0);
		for (int i = 0; i < walk->track_count; i++) {
			int64_t *end = &walk->end_ns[walk->tracks[i].clock != IPS_HOST];

			*end = max(*end, walk->tracks[i].last_ns);
		}
	}
	find_execution(walk);
	report_pieces_init(&walk->executions, walk->db,
			   "SELECT context_id, execution FROM contexts WHERE "
			   "context_id BETWEEN :first AND :last ORDER BY context_id",
			   render_execution, err);
}

void report_walk_close(struct report_walk *walk)
{
	for (int i = 0; i < REPORT_WALK_LANES; i++)
		mem_free(walk->lanes[i].enclosing);
	prof_query_close(walk->arguments);
	report_pieces_fini(&walk->executions);
	mem_free(walk->ranks);
	str_free(&walk->text);
	arena_fini(&walk->arena);
	*walk = (struct report_walk){0};
}

/* ---- selection ------------------------------------------------------------------------------- */

bool report_walk_selects_track(const struct report_walk *walk, const struct prof_track *track)
{
	return walk->request->clock < 0 || walk->request->clock == track->clock;
}

const struct prof_track *report_walk_track(const struct report_walk *walk, int64_t track_id)
{
	size_t low;

	SORTED_FIRST(low, 0, (size_t)walk->track_count, walk->by_id[low]->track_id < track_id);
	if (low == (size_t)walk->track_count || walk->by_id[low]->track_id != track_id)
		return NULL;
	return report_walk_selects_track(walk, walk->by_id[low]) ? walk->by_id[low] : NULL;
}

bool report_walk_selects_row(struct report_walk *walk, int64_t from_ns, int64_t to_ns,
			     int64_t context_id)
{
	const struct report_export_request *request = walk->request;
	struct report_piece piece;
	int64_t execution = IPS_NULL;

	if (from_ns >= request->to_ns || to_ns < request->from_ns)
		return false;
	if (request->execution == IPS_NULL)
		return true;
	piece = report_pieces_get(&walk->executions, context_id);
	if (piece.length == sizeof(execution))
		memcpy(&execution, piece.bytes, sizeof(execution));
	return execution == request->execution;
}

bool report_walk_selects_point(const struct report_walk *walk, const struct prof_track *track,
			       int64_t time_ns)
{
	const int clock = track->clock != IPS_HOST;

	if (time_ns < walk->request->from_ns || time_ns >= walk->request->to_ns)
		return false;
	for (size_t i = 0; i < walk->rank_count; i++)
		if (walk->ranks[i].rank == track->rank &&
		    time_ns >= walk->ranks[i].from_ns[clock] &&
		    time_ns < walk->ranks[i].to_ns[clock])
			return true;
	return walk->request->execution == IPS_NULL;
}

/* ---- nesting --------------------------------------------------------------------------------- */

/* Pop spans that end at or before @ns. */
static void leave_spans(struct report_walk *walk, int number, int64_t ns)
{
	struct report_walk_lane *lane = &walk->lanes[number];

	while (lane->count > 0 && lane->enclosing[lane->count - 1].end_ns <= ns &&
	       !err_stuck(walk->err)) {
		lane->count--;
		if (walk->callbacks->leave)
			walk->callbacks->leave(walk->callbacks->user, walk->track,
					       &lane->enclosing[lane->count], number);
	}
}

/* Return true if the span nests in the lane's open spans. If it exceeds an unfinished one, cut it
 * to that end and mark it as unfinished, too. */
static bool fits_lane(const struct report_walk_lane *lane, struct report_walk_span *span)
{
	const struct report_walk_enclosing *top;

	if (lane->count == 0)
		return true;
	top = &lane->enclosing[lane->count - 1];
	if (span->start_ns + span->dur_ns <= top->end_ns)
		return true;
	if (!top->open)
		return false;
	span->dur_ns = top->end_ns - span->start_ns;
	span->open = true;
	return true;
}

/* Assign a lane to the span. Return false if none is left. */
static bool assign_lane(struct report_walk *walk, struct report_walk_span *span)
{
	for (span->lane = 0; span->lane < REPORT_WALK_LANES; span->lane++) {
		struct report_walk_lane *lane = &walk->lanes[span->lane];

		if (span->start_ns < lane->last_ns)
			continue;
		leave_spans(walk, span->lane, span->start_ns);
		if (!fits_lane(lane, span))
			continue;
		span->depth = lane->count;
		walk->counts.moved += span->lane > 0;
		lane->last_ns = span->start_ns;
		/* Nothing nests in a span of length 0. */
		if (span->dur_ns != 0) {
			if (mem_grow(&lane->enclosing, &lane->capacity, lane->count + 1,
				     sizeof(*lane->enclosing)) != 0)
				err_nomem(walk->err);
			else
				lane->enclosing[lane->count++] = (struct report_walk_enclosing){
					span->site_id, span->start_ns + span->dur_ns, span->open};
		}
		return true;
	}
	walk->counts.lost++;
	return false;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void next_argument(struct report_walk *walk)
{
	if (!walk->arguments)
		return;
	if (prof_query_next(walk->arguments, &walk->err->status, walk->err)) {
		walk->argument_span = prof_column_int(walk->arguments, 0);
		return;
	}
	prof_query_close(walk->arguments);
	walk->arguments = NULL;
	walk->argument_span = INT64_MAX;
}

/* Return true for the keys of a span; an argument of that name is prefixed with "arg.", as is one
 * that has the prefix already: a reader removes it once. */
static bool is_key(const char *name)
{
	static const char *const keys[] = {"mode",  "epoch",      "execution", "weight_update",
					   "step",  "microbatch", "replica",   "ipu",
					   "stage", "phase",      "operation", "open"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i], name) == 0)
			return true;
	return strncmp(name, "arg.", 4) == 0;
}

void report_walk_add_argument(struct report_walk *walk, const struct prof_query *query)
{
	const char *name = prof_column_text(query, 1);
	char key[256];
	struct report_cell cell;
	struct jsonw w;
	size_t from;

	snprintf(key, sizeof(key), "%s%s", name && is_key(name) ? "arg." : "", !name ? "" : name);
	report__cell(query, 2, &cell);
	if (walk->text.length > 0)
		str_add(&walk->text, ",");
	from = walk->text.length;
	jsonw_init_str(&w, &walk->text, 0);
	jsonw_begin_object(&w);
	report__json_cell(&w, key, &cell);
	jsonw_end_object(&w);
	strip_braces(&walk->text, from);
}

static void collect_arguments(struct report_walk *walk, struct report_walk_span *span)
{
	span->arguments = (struct report_piece){"", 0};
	if (walk->argument_span > span->span_id)
		return;
	str_clear(&walk->text);
	while (walk->argument_span <= span->span_id) {
		if (walk->argument_span == span->span_id)
			report_walk_add_argument(walk, walk->arguments);
		next_argument(walk);
	}
	span->arguments = (struct report_piece){str_peek(&walk->text), walk->text.length};
	if (walk->text.failed)
		err_nomem(walk->err);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct range {
	int64_t first_ns, first_row, last_row;
};

static void read_span(struct report_walk *walk, struct report_walk_span *span)
{
	const int64_t most = INT64_MAX / 4, end = walk->end_ns[walk->track->clock != IPS_HOST];

	/* Clamp the times of a damaged file so that nothing overflows. */
	if (span->start_ns < -most || span->start_ns > most)
		span->start_ns = span->start_ns < 0 ? -most : most;
	span->open = span->dur_ns == IPS_NULL;
	if (span->open)
		span->dur_ns = end - span->start_ns;
	if (span->dur_ns < 0 || span->dur_ns > most)
		span->dur_ns = span->dur_ns < 0 ? 0 : most;
	if (!report_walk_selects_row(walk, span->start_ns, span->start_ns + span->dur_ns,
				     span->context_id) ||
	    !assign_lane(walk, span))
		return;
	if (walk->has_arguments)
		collect_arguments(walk, span);
	walk->counts.spans++;
	walk->counts.open += span->open;
	if (!err_stuck(walk->err))
		walk->callbacks->enter(walk->callbacks->user, walk->track, span);
}

static void read_range(struct report_walk *walk, const struct range *range)
{
	struct prof_query *query;

	prof_query_open(&query, walk->db,
			"SELECT span_id, site_id, start_ns, dur_ns, context_id FROM span_rows "
			"WHERE span_id BETWEEN :first AND :last AND track_id = :track "
			"ORDER BY span_id",
			walk->err);
	prof_query_int(query, ":first", range->first_row);
	prof_query_int(query, ":last", range->last_row);
	prof_query_int(query, ":track", walk->track->track_id);
	if (walk->has_arguments && query) {
		prof_query_open(
			&walk->arguments, walk->db,
			"SELECT a.span_id, n.value, a.value FROM span_arg_rows a "
			"LEFT JOIN strings n ON n.string_id = a.name_id "
			"WHERE a.span_id BETWEEN :first AND :last ORDER BY a.span_id, a.name_id",
			walk->err);
		prof_query_int(walk->arguments, ":first", range->first_row);
		prof_query_int(walk->arguments, ":last", range->last_row);
		next_argument(walk);
	}
	while (prof_query_next(query, &walk->err->status, walk->err)) {
		struct report_walk_span span = {
			.span_id = prof_column_int(query, 0),
			.site_id = prof_column_int(query, 1),
			.start_ns = prof_column_int(query, 2),
			.dur_ns = prof_column_int(query, 3),
			.context_id = prof_column_int(query, 4),
		};

		if (span.start_ns >= walk->request->to_ns)
			break;
		read_span(walk, &span);
	}
	prof_query_close(walk->arguments);
	walk->arguments = NULL;
	prof_query_close(query);
	walk->executions.round++;
}

/* Find the next range of the track's rows after @range; false: no more. */
static bool next_range(const struct report_walk *walk, struct range *range)
{
	struct prof_query *query;
	bool found;

	prof_query_open(&query, walk->db,
			"SELECT first_ns, first_row, last_row FROM zones WHERE kind = 0 "
			"AND track_id = :track AND (first_ns, first_row) > (:ns, :row) "
			"ORDER BY first_ns, first_row LIMIT 1",
			walk->err);
	prof_query_int(query, ":track", walk->track->track_id);
	prof_query_int(query, ":ns", range->first_ns);
	prof_query_int(query, ":row", range->first_row);
	found = prof_query_next(query, &walk->err->status, walk->err);
	if (found)
		*range = (struct range){prof_column_int(query, 0), prof_column_int(query, 1),
					prof_column_int(query, 2)};
	prof_query_close(query);
	range->last_row = min(range->last_row, walk->last_span);
	return found && range->first_row <= walk->last_span &&
	       range->first_ns < walk->request->to_ns;
}

void report_walk_spans(struct report_walk *walk, const struct prof_track *track,
		       const struct report_walk_callbacks *callbacks)
{
	struct range range = {-INT64_MAX, -INT64_MAX, -INT64_MAX};
	int64_t arguments;

	if (err_stuck(walk->err))
		return;
	prof_db_number(walk->db, "SELECT span_id FROM span_arg_rows LIMIT 1", &arguments,
		       walk->err);
	walk->track = track;
	walk->callbacks = callbacks;
	walk->has_arguments = arguments != IPS_NULL;
	for (int i = 0; i < REPORT_WALK_LANES; i++) {
		walk->lanes[i].count = 0;
		walk->lanes[i].last_ns = IPS_NULL;
	}
	while (!err_stuck(walk->err) && next_range(walk, &range)) {
		read_range(walk, &range);
		if (!err_stuck(walk->err))
			report_export_tick(walk->request, walk->counts.spans, walk->last_span,
					   walk->err);
	}
	for (int i = 0; i < REPORT_WALK_LANES; i++)
		leave_spans(walk, i, INT64_MAX);
}

/* ---- report to the user ---------------------------------------------------------------------- */

void report_walk_note(struct str *notes, int64_t count, const char *one, const char *many)
{
	char text[FMT_SIZE];

	if (count > 0)
		str_addf(notes, "%s %s\n", fmt_count(text, count), count == 1 ? one : many);
}

/* Count the rows that no zone lists: the walk cannot find these. */
static int64_t count_unlisted(const struct report_walk *walk)
{
	const struct report_export_request *request = walk->request;
	int64_t rows;

	if (request->live || request->clock >= 0 || request->execution != IPS_NULL ||
	    request->from_ns != IPS_NULL || request->to_ns != INT64_MAX || err_stuck(walk->err))
		return 0;
	if (prof_db_number(walk->db, "SELECT count(*) FROM span_rows", &rows, walk->err) != ST_OK)
		return 0;
	return rows - walk->counts.spans - walk->counts.lost;
}

void report_walk_notes(const struct report_walk *walk, struct str *notes)
{
	report_walk_note(notes, walk->counts.open, "span was open: it ends with the recording",
			 "spans were open: they end with the recording");
	report_walk_note(notes, walk->counts.moved,
			 "span did not nest: it is on a further lane of its track",
			 "spans did not nest: they are on further lanes of their tracks");
	report_walk_note(notes, walk->counts.lost + count_unlisted(walk),
			 "span left out: the file is damaged",
			 "spans left out: the file is damaged");
}

/* ---- call sites ------------------------------------------------------------------------------ */

static void add_site(struct report_sites *sites, struct report_site site, struct err *err)
{
	if (err_stuck(err))
		return;
	if (mem_grow(&sites->items, &sites->capacity, sites->count + 1, sizeof(*sites->items)) != 0)
		err_nomem(err);
	else
		sites->items[sites->count++] = site;
}

void report_sites_read(struct report_sites *sites, struct prof_db *db, struct err *err)
{
	struct prof_query *query;

	*sites = (struct report_sites){0};
	if (err_stuck(err))
		return;
	if (arena_init(&sites->arena, 0) != 0) {
		err_nomem(err);
		return;
	}
	prof_query_open(&query, db,
			"SELECT s.site_id, n.value, f.value, s.line FROM sites s "
			"LEFT JOIN strings n ON n.string_id = s.name_id "
			"LEFT JOIN strings f ON f.string_id = s.file_id "
			"ORDER BY s.site_id",
			err);
	while (prof_query_next(query, &err->status, err))
		add_site(sites,
			 (struct report_site){
				 .site_id = prof_column_int(query, 0),
				 .name = report__copy(&sites->arena, prof_column_text(query, 1),
						      err),
				 .file = report__copy(&sites->arena, prof_column_text(query, 2),
						      err),
				 .line = prof_column_int(query, 3),
			 },
			 err);
	prof_query_close(query);
	add_site(sites, (struct report_site){INT64_MAX, IPS_NULL, "(unknown)", NULL}, err);
}

void report_sites_free(struct report_sites *sites)
{
	mem_free(sites->items);
	arena_fini(&sites->arena);
	*sites = (struct report_sites){0};
}

size_t report_sites_find(const struct report_sites *sites, int64_t site_id)
{
	const size_t last = sites->count - 1;
	size_t low;

	/* Usually ids are contiguous from 1. */
	if (site_id > 0 && site_id <= (int64_t)last && sites->items[site_id - 1].site_id == site_id)
		return (size_t)site_id - 1;
	SORTED_FIRST(low, 0, last, sites->items[low].site_id < site_id);
	return sites->items[low].site_id == site_id ? low : last;
}
