/*
 * Flushing a lane: what was gathered in its arrays goes to the database.
 *
 * Here spans get their ids, in order of begin, so the rows of one track lie together and one zone
 * row describes them; references into the arrays (struct prof_ref) become ids.
 *
 * On the writer's thread.
 */
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_inserts.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_site.h"

/* ---- spans ----------------------------------------------------------------------------------- */

static enum status flush_track(struct prof_writer *writer, struct prof_lane *lane)
{
	struct prof_cell *cells;
	enum status status;

	if (lane->known)
		return ST_OK;
	status = prof_insert_row(&writer->tracks, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], lane->track_id);
	prof_cell_int(&cells[1], writer->rank);
	prof_cell_int(&cells[2], lane->clock);
	prof_cell_int(&cells[3], lane->clock == IPS_HOST ? lane->pid : IPS_NULL);
	prof_cell_int(&cells[4], lane->clock == IPS_HOST ? lane->tid : IPS_NULL);
	prof_cell_int(&cells[5], lane->ipu);
	prof_cell_text(&cells[6], lane->track);
	prof_cell_text(&cells[7], lane->name);
	prof_cell_text(&cells[8], lane->parent);
	lane->known = true;
	return ST_OK;
}

static int bind_or_null(sqlite3_stmt *statement, int index, int64_t value, int64_t null)
{
	return value == null ? sqlite3_bind_null(statement, index)
			     : sqlite3_bind_int64(statement, index, value);
}

static int bind_span(sqlite3_stmt *statement, int at, const struct prof_lane *lane,
		     const struct prof_span_row *row, int64_t base, int64_t index)
{
	int64_t back = prof_span_back(row, base + index, base);
	int code;

	code = sqlite3_bind_int64(statement, at + 1, lane->track_id);
	code |= sqlite3_bind_int64(statement, at + 2, row->site);
	code |= sqlite3_bind_int64(statement, at + 3, row->start_ns);
	code |= bind_or_null(statement, at + 4, row->dur_ns, IPS_NULL);
	code |= bind_or_null(statement, at + 5, row->context, 0);
	code |= bind_or_null(statement, at + 6, back, 0);
	code |= sqlite3_bind_int64(statement, at + 7, row->depth);
	return code;
}

static enum status insert_spans(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	size_t count = lane->spans.count, step;
	enum status status = ST_OK;

	for (size_t i = 0; i < count && status == ST_OK; i += step) {
		sqlite3_stmt *statement;
		int code = SQLITE_OK;

		step = count - i >= PROF_BATCH ? PROF_BATCH : 1;
		statement = step == 1 ? writer->spans_one : writer->spans_many;
		for (size_t j = 0; j < step; j++)
			code |= bind_span(statement, (int)j * 7, lane, &lane->spans.items[i + j],
					  base, (int64_t)(i + j));
		if (code != SQLITE_OK)
			return prof_sql_error(writer->db, SQLITE_NOMEM, &writer->err, "bind");
		status = prof_sql_execute(statement, &writer->err, "insert spans");
	}
	/* SQLite numbers the rows; the numbers given to parents and arguments rely on it. */
	if (status == ST_OK && sqlite3_last_insert_rowid(writer->db) != base + (int64_t)count - 1)
		return err_set(&writer->err, ST_FAILED,
			       "another program has written to the database");
	return status;
}

static enum status insert_zone(struct prof_writer *writer, const struct prof_lane *lane, int kind,
			       int64_t first_ns, int64_t last_ns, int64_t first_row,
			       int64_t last_row, int64_t finest)
{
	struct prof_cell *cells;
	enum status status = prof_insert_row(&writer->zones, &cells, &writer->err);

	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], kind);
	prof_cell_int(&cells[1], lane->track_id);
	prof_cell_int(&cells[2], first_ns);
	prof_cell_int(&cells[3], first_row);
	prof_cell_int(&cells[4], last_ns);
	prof_cell_int(&cells[5], last_row);
	prof_cell_int(&cells[6], finest);
	return ST_OK;
}

static enum status insert_sparse_zone(struct prof_writer *writer, const struct prof_lane *lane,
				      int64_t base, int finest)
{
	struct prof_cell *cells;
	enum status status;

	if (finest == 0)
		return ST_OK;
	status = prof_insert_row(&writer->sparse_zones, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], lane->track_id);
	prof_cell_int(&cells[1], finest);
	prof_cell_int(&cells[2], lane->spans.items[0].start_ns);
	prof_cell_int(&cells[3], base);
	prof_cell_int(&cells[4], lane->spans.items[lane->spans.count - 1].start_ns);
	prof_cell_int(&cells[5], base + (int64_t)lane->spans.count - 1);
	return ST_OK;
}

/* References into the buffer become ids; open spans remember their zone's finest level. */
static void resolve_all(struct prof_lane *lane, int64_t base, int finest)
{
	for (size_t i = 0; i < lane->stack.count; i++) {
		struct prof_open_span *open = &lane->stack.items[i];

		if (open->span.here)
			open->finest = finest;
		open->span = (struct prof_ref){prof_span_id(open->span, base), false};
	}
	lane->target = (struct prof_ref){prof_span_id(lane->target, base), false};
}

/* The spans, their zone, and what they bring to the levels. */
static enum status flush_spans(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	size_t count = lane->spans.count;
	int64_t first_ns, last_ns;
	enum status status;
	int finest;

	if (count == 0)
		return ST_OK;
	status = insert_spans(writer, lane, base);
	if (status != ST_OK)
		return status;
	writer->last_span = base + (int64_t)count - 1;
	first_ns = lane->spans.items[0].start_ns;
	last_ns = lane->spans.items[count - 1].start_ns;
	prof_levels_flush(&lane->levels);
	finest = prof_levels_finest(&lane->levels, last_ns - first_ns);
	resolve_all(lane, base, finest);
	status = insert_zone(writer, lane, PROF_ZONE_SPANS, first_ns, last_ns, base,
			     writer->last_span, finest);
	if (status == ST_OK)
		status = insert_sparse_zone(writer, lane, base, finest);
	return status == ST_OK ? prof__insert_levels(&writer->levels, lane->track_id, &lane->levels,
						     finest, &writer->err)
			       : status;
}

static enum status flush_late(struct prof_writer *writer, struct prof_lane *lane)
{
	prof_levels_flush(&lane->late);
	return prof__insert_levels(&writer->levels, lane->track_id, &lane->late, 0, &writer->err);
}

static enum status flush_ends(struct prof_writer *writer, struct prof_lane *lane)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < lane->ends.count && status == ST_OK; i++) {
		sqlite3_bind_int64(writer->end_span, 1, lane->ends.items[i].dur_ns);
		sqlite3_bind_int64(writer->end_span, 2, lane->ends.items[i].span_id);
		status = prof_sql_execute(writer->end_span, &writer->err, "end a span");
	}
	return status;
}

static enum status flush_longs(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	for (size_t i = 0; i < lane->longs.count; i++) {
		const struct prof_long_span *span = &lane->longs.items[i];
		struct prof_cell *cells;
		enum status status = prof_insert_row(&writer->longs, &cells, &writer->err);

		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], span->level);
		prof_cell_int(&cells[2], span->start_ns);
		prof_cell_int(&cells[3], prof_span_id(span->span, base));
	}
	return ST_OK;
}

/* ---- arguments and flows --------------------------------------------------------------------- */

static void set_value(struct prof_cell *cell, const struct prof_arg *arg)
{
	double real;

	memcpy(&real, &arg->bits, sizeof(real));
	if (arg->type == PROF_ARG_INT)
		prof_cell_int(cell, (int64_t)arg->bits);
	else if (arg->type == PROF_ARG_REAL)
		prof_cell_real(cell, real);
	else if (arg->type == PROF_ARG_LONG_TEXT)
		prof_cell_text(cell, (const char *)(uintptr_t)arg->bits);
	else
		prof_cell_text(cell, arg->bits == 0 ? NULL : arg->text);
}

static enum status flush_args(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < lane->args.count && status == ST_OK; i++) {
		const struct prof_arg *arg = &lane->args.items[i];
		struct prof_cell *cells;
		int64_t name;

		status = prof__writer_text(writer, arg->name, &name);
		if (status == ST_OK)
			status = prof_insert_row(&writer->args, &cells, &writer->err);
		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], prof_span_id(arg->span, base));
		prof_cell_int(&cells[1], name);
		set_value(&cells[2], arg);
	}
	/* The rows point to texts of the lane, which frees them after this flush. */
	return status == ST_OK ? prof_insert_flush(&writer->args, &writer->err) : status;
}

void prof__lane_free_texts(struct prof_lane *lane)
{
	for (size_t i = 0; i < lane->args.count; i++) {
		if (lane->args.items[i].type == PROF_ARG_LONG_TEXT)
			mem_free((void *)(uintptr_t)lane->args.items[i].bits);
	}
}

struct flow_key {
	uint64_t site, id;
};

/* A waiting side of a flow is stored under its key as its span's id, negative for the out side. */
static enum status flush_flow(struct prof_writer *writer, const struct prof_flow *flow,
			      int64_t span_id)
{
	const struct flow_key key = {prof_site_id(flow->site), flow->id};
	int64_t side = flow->out ? -span_id : span_id, other, name;
	struct prof_cell *cells;
	enum status status;
	bool found = prof_recent_get(&writer->open_flows, &key, &other);

	if (!found || (other < 0) == flow->out) {
		writer->dropped_here += found; /* the same side twice: the first is lost */
		return prof_recent_put(&writer->open_flows, &key, side) ? ST_OK
									: err_nomem(&writer->err);
	}
	prof_recent_remove(&writer->open_flows, &key);
	status = prof__writer_text(writer, flow->site->name, &name);
	if (status == ST_OK)
		status = prof_insert_row(&writer->flows, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], flow->out ? span_id : -other);
	prof_cell_int(&cells[1], flow->out ? other : span_id);
	prof_cell_int(&cells[2], name);
	return ST_OK;
}

static enum status flush_flows(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < lane->flows.count && status == ST_OK; i++)
		status = flush_flow(writer, &lane->flows.items[i],
				    prof_span_id(lane->flows.items[i].span, base));
	return status;
}

/* ---- points in time -------------------------------------------------------------------------- */

static enum status flush_instants(struct prof_writer *writer, struct prof_lane *lane)
{
	int64_t first = writer->last_row[PROF_ZONE_INSTANTS] + 1;
	size_t count = lane->instants.count;

	if (count == 0)
		return ST_OK;
	for (size_t i = 0; i < count; i++) {
		const struct prof_instant *instant = &lane->instants.items[i];
		struct prof_cell *cells;
		enum status status = prof_insert_row(&writer->instants, &cells, &writer->err);

		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], instant->site);
		prof_cell_int(&cells[2], instant->time_ns);
		prof_cell_int(&cells[3], instant->context == 0 ? IPS_NULL : instant->context);
	}
	writer->last_row[PROF_ZONE_INSTANTS] += (int64_t)count;
	return insert_zone(writer, lane, PROF_ZONE_INSTANTS, lane->instants.items[0].time_ns,
			   lane->instants.items[count - 1].time_ns, first,
			   writer->last_row[PROF_ZONE_INSTANTS], IPS_NULL);
}

static enum status flush_samples(struct prof_writer *writer, struct prof_lane *lane)
{
	int64_t first = writer->last_row[PROF_ZONE_COUNTERS] + 1;
	size_t count = lane->samples.count;

	if (count == 0)
		return ST_OK;
	for (size_t i = 0; i < count; i++) {
		const struct prof_sample *sample = &lane->samples.items[i];
		struct prof_cell *cells;
		enum status status = prof_insert_row(&writer->samples, &cells, &writer->err);

		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], sample->site);
		prof_cell_int(&cells[2], sample->time_ns);
		prof_cell_real(&cells[3], sample->value);
	}
	writer->last_row[PROF_ZONE_COUNTERS] += (int64_t)count;
	return insert_zone(writer, lane, PROF_ZONE_COUNTERS, lane->samples.items[0].time_ns,
			   lane->samples.items[count - 1].time_ns, first,
			   writer->last_row[PROF_ZONE_COUNTERS], IPS_NULL);
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool prof__lane_waits(const struct prof_lane *lane)
{
	return !lane->known || lane->spans.count > 0 || lane->ends.count > 0 ||
	       lane->longs.count > 0 || lane->args.count > 0 || lane->flows.count > 0 ||
	       lane->instants.count > 0 || lane->samples.count > 0 ||
	       lane->dropped_told != __atomic_load_n(&lane->ring.dropped, __ATOMIC_RELAXED);
}

static void empty(struct prof_lane *lane)
{
	prof__lane_free_texts(lane);
	lane->spans.count = 0;
	lane->ends.count = 0;
	lane->longs.count = 0;
	lane->args.count = 0;
	lane->flows.count = 0;
	lane->instants.count = 0;
	lane->samples.count = 0;
}

enum status prof__lane_flush(struct prof_writer *writer, struct prof_lane *lane)
{
	int64_t base = writer->last_span + 1;
	enum status status = prof__writer_begin(writer);

	if (status == ST_OK)
		status = flush_track(writer, lane);
	if (status == ST_OK)
		status = flush_spans(writer, lane, base);
	if (status == ST_OK)
		status = flush_ends(writer, lane);
	if (status == ST_OK)
		status = flush_longs(writer, lane, base);
	if (status == ST_OK)
		status = flush_args(writer, lane, base);
	if (status == ST_OK)
		status = flush_flows(writer, lane, base);
	if (status == ST_OK)
		status = flush_instants(writer, lane);
	if (status == ST_OK)
		status = flush_samples(writer, lane);
	if (status == ST_OK)
		status = flush_late(writer, lane);
	if (status == ST_OK)
		status = prof__insert_counters(&writer->counter_levels, lane->track_id,
					       &lane->counters, &writer->err);
	empty(lane);
	return status;
}
