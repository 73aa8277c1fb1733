/*
 * Rows of spans, for the timeline: by id, by time, and by ancestry. See prof_timeline_internal.h.
 *
 * One thread per database handle.
 */
#include "profiler/prof_timeline_internal.h"

#include <string.h>

#include "common/sorted.h"

#define ROW_BY_ID                                                                                  \
	PROF_ROW_COLUMNS "FROM span_rows r LEFT JOIN contexts c ON c.context_id = r.context_id "   \
			 "WHERE r.span_id = :span"

/* ---- one snapshot ---------------------------------------------------------------------------- */

static enum status run(struct prof_db *db, const char *sql, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	prof_query_next(query, &status, err);
	prof_query_close(query);
	return status;
}

struct prof_timeline prof__timeline_begin(struct prof_db *db, struct err *err)
{
	const enum status status = run(db, "SAVEPOINT prof_timeline", err);

	return (struct prof_timeline){db, err, status, status == ST_OK};
}

enum status prof__timeline_end(struct prof_timeline *t)
{
	if (t->begun)
		run(t->db, "RELEASE prof_timeline", NULL);
	return t->status;
}

struct prof_query *prof__timeline_ask(struct prof_timeline *t, const char *sql)
{
	struct prof_query *query = NULL;

	if (t->status == ST_OK)
		t->status = prof_query_open(&query, t->db, sql, t->err);
	return query;
}

bool prof__timeline_next(struct prof_timeline *t, struct prof_query *query)
{
	return prof_query_next(query, &t->status, t->err);
}

int64_t prof__timeline_number(struct prof_timeline *t, const char *sql, int64_t id)
{
	struct prof_query *query = prof__timeline_ask(t, sql);
	int64_t number = IPS_NULL;

	if (id != IPS_NULL)
		prof_query_int(query, ":id", id);
	if (prof__timeline_next(t, query))
		number = prof_column_int(query, 0);
	prof_query_close(query);
	return number;
}

char *prof__timeline_text(struct prof_timeline *t, struct arena *arena, const char *text)
{
	char *copy = !text ? NULL : arena_strdup(arena, text);

	if (text && !copy)
		prof__timeline_nomem(t);
	return copy;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void read_span(const struct prof_query *query, int64_t now_ns, struct prof_timeline_row *out)
{
	struct prof_bar *bar = &out->bar;
	int64_t dur_ns = prof_column_int(query, 2), back = prof_column_int(query, 5);

	memset(out, 0, sizeof(*out));
	bar->span_id = prof_column_int(query, 0);
	bar->start_ns = prof__within(prof_column_int(query, 1), -PROF_TIME_MOST, PROF_TIME_MOST);
	bar->open = dur_ns == IPS_NULL;
	bar->dur_ns = prof__within(dur_ns, 0, PROF_TIME_MOST);
	if (bar->open)
		bar->dur_ns = prof__within(now_ns, bar->start_ns, PROF_TIME_MOST) - bar->start_ns;
	bar->busy_ns = bar->dur_ns;
	bar->count = 1;
	bar->site_id = prof_column_int(query, 3);
	bar->depth = (int)prof__within(prof_column_int(query, 4), 0, PROF_DEPTH_MOST);
	out->parent_id = back <= 0 || back >= bar->span_id ? IPS_NULL : bar->span_id - back;
}

/* Read from column @first on: stage, microbatch, step, weight_update, phase, execution. */
static void read_context(const struct prof_query *query, int first,
			 struct prof_timeline_context *out)
{
	const char *phase = prof_column_text(query, first + 4);

	out->stage = prof_column_int(query, first);
	out->microbatch = prof_column_int(query, first + 1);
	out->step = prof_column_int(query, first + 2);
	out->weight_update = prof_column_int(query, first + 3);
	out->phase = !phase ? 0 : phase[0];
	out->execution = prof_column_int(query, first + 5);
}

static void put_context(const struct prof_timeline_context *context, struct prof_bar *bar)
{
	bar->stage = context->stage;
	bar->microbatch = context->microbatch;
	bar->step = context->step;
	bar->weight_update = context->weight_update;
	bar->phase = context->phase;
	bar->execution = context->execution;
}

void prof__timeline_read(const struct prof_query *query, int64_t now_ns,
			 struct prof_timeline_row *out)
{
	struct prof_timeline_context context;

	read_span(query, now_ns, out);
	read_context(query, 6, &context);
	put_context(&context, &out->bar);
}

void prof__timeline_read_lean(struct prof_timeline *t, const struct prof_query *query,
			      int64_t now_ns, struct prof_timeline_context *known,
			      struct prof_timeline_row *out)
{
	const int64_t context_id = prof_column_int(query, 6);

	read_span(query, now_ns, out);
	if (context_id != known->context_id) {
		struct prof_query *found = prof__timeline_ask(
			t, "SELECT stage, microbatch, step, weight_update, phase, execution "
			   "FROM contexts WHERE context_id = :context");

		*known = PROF_NO_CONTEXT;
		prof_query_int(found, ":context", context_id);
		if (prof__timeline_next(t, found))
			read_context(found, 0, known);
		known->context_id = context_id;
		prof_query_close(found);
	}
	put_context(known, &out->bar);
}

bool prof__timeline_ancestor(struct prof_timeline *t, int64_t span_id, int64_t now_ns, int *below,
			     struct prof_timeline_row *out)
{
	struct prof_query *query;
	bool found;

	if (span_id == IPS_NULL)
		return false;
	query = prof__timeline_ask(t, ROW_BY_ID);
	prof_query_int(query, ":span", span_id);
	found = prof__timeline_next(t, query);
	if (found)
		prof__timeline_read(query, now_ns, out);
	prof_query_close(query);
	if (!found || out->bar.depth >= *below)
		return false;
	*below = out->bar.depth;
	return true;
}

static bool starts_before(struct prof_timeline *t, int64_t span_id, int64_t time_ns)
{
	struct prof_query *query =
		prof__timeline_ask(t, "SELECT start_ns FROM span_rows WHERE span_id = :span");
	bool before;

	prof_query_int(query, ":span", span_id);
	before = prof__timeline_next(t, query) && prof_column_int(query, 0) < time_ns;
	prof_query_close(query);
	return before;
}

int64_t prof__timeline_first_at(struct prof_timeline *t, int64_t first, int64_t last,
				int64_t time_ns)
{
	int64_t row;

	SORTED_FIRST(row, first, last + 1, starts_before(t, row, time_ns));
	return row;
}

int64_t prof__timeline_last_before(struct prof_timeline *t, int64_t track_id, int64_t time_ns)
{
	struct prof_query *query = prof__timeline_ask(
		t, "SELECT first_row, last_row FROM zones WHERE kind = 0 AND track_id = :track "
		   "AND first_ns < :time ORDER BY first_ns DESC, first_row DESC LIMIT 1");
	struct prof_timeline_zone zone = {0, 0};
	bool row;

	prof_query_int(query, ":track", track_id);
	prof_query_int(query, ":time", time_ns);
	row = prof__timeline_next(t, query);
	if (row) {
		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
	}
	prof_query_close(query);
	return row ? prof__timeline_first_at(t, zone.first_row, zone.last_row, time_ns) - 1
		   : IPS_NULL;
}
