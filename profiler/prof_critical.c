/*
 * The critical path of each step, or of a recording without steps. See prof_finish.h.
 *
 * The graph is that of Holistic Trace Analysis (hta/analyzers/critical_path_analysis.py), so that
 * figures can be compared. Its nodes are the starts and ends of spans: of the threads that call an
 * accelerator, and of kernels and copies. Its edges and their weights:
 *
 *   host           between neighbours of a thread within an outermost span: the time between them;
 *                  0 to the end of a call that blocks, since what it waits for counts
 *   dependency     from an outermost span to the thread's next, and between the threads of the
 *                  forward and the backward pass: 0
 *   launch         from a call to what it launched: the delay if the stream had nothing to do, else
 *                  0
 *   compute, communication, memory   from the start of a kernel or copy to its end: its duration
 *   kernel_delay   to the next kernel of the stream, below 1.5 ms, if it had been launched before
 *   sync           0: from the last kernels of the streams that a blocking call waits for to the
 *                  call's end; from the kernel before an event's record to the kernel behind a wait
 *
 * All edges lead forward in the order of time in which the nodes are sorted (ends before starts at
 * one time), so the longest path is found in one pass. A step has the spans of threads that begin
 * in it, and what they launched, whenever that ran.
 *
 * Spans of a lane are in order of start, so the lanes are read once, side by side, a step at a
 * time; memory is that of the largest step. Calls that wait are found by their times: the record of
 * a wait, on the track "... (sync)", ends within its call.
 */
#include "profiler/prof_finish.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "profiler/prof_insert.h"
#include "profiler/prof_sql.h"

#define NONE            UINT32_MAX
#define KERNEL_DELAY_NS 1500000
#define NEAR            64    /* candidates that a search by time looks at */
#define NAME_SIZE       256   /* of a track */
#define LATER_MOST      65536 /* kernels put aside for later steps */

enum kind {
	KIND_HOST,
	KIND_DEPENDENCY,
	KIND_LAUNCH,
	KIND_COMPUTE,
	KIND_COMMUNICATION,
	KIND_MEMORY,
	KIND_KERNEL_DELAY,
	KIND_SYNC
};
static const char *const kind_texts[] = {"host",          "dependency", "launch",       "compute",
					 "communication", "memory",     "kernel_delay", "sync"};

/* What a call does; the numbers of calls_sql. */
enum call {
	CALL_PLAIN,
	CALL_COPIES, /* may block, but no stream is known for which it waits */
	CALL_BLOCKS,
	CALL_WAITS_EVENT /* makes a stream wait */
};

struct window {
	int64_t rank, step, start, end; /* step IPS_NULL: the whole recording */
};

enum lane_kind {
	LANE_HOST,
	LANE_DEVICE,
	LANE_SYNC
};

struct lane {
	enum lane_kind kind;
	int64_t track, rank, pid;
	uint32_t base;  /* of a device's or a sync lane: the stream's first lane, or NONE */
	uint32_t group; /* of a thread: the first lane of those that take turns */
	bool owns;      /* streams have the lane's process, so a call waits for those alone */
	char name[NAME_SIZE];
	sqlite3_stmt *rows;
	bool ready; /* @rows is at a row that is not taken yet */
	/* While a step is solved: */
	uint32_t top;      /* of a thread: the innermost open event */
	uint32_t last;     /* of a thread: the last node; of a stream: the last end */
	uint32_t last_top; /* of a thread: the end of the last outermost span */
};

struct event {
	int64_t span, start, end;
	uint32_t lane;
	uint32_t other;     /* of a thread: the parent; of a device: the event of its call */
	uint32_t waits;     /* the event of a kernel that must end before; or NONE */
	uint32_t wait_lane; /* of a blocking call: the stream that it waits for; NONE: all */
	uint8_t kind, call;
};

/* Node 2 i is the start of event i, 2 i + 1 its end. */
struct node {
	int64_t length;      /* of the longest path to it */
	uint32_t before;     /* the node before it; NONE: the path begins here */
	unsigned about : 28; /* the event that the edge is about */
	unsigned kind : 4;
};

/* A row of a lane "... (sync)". */
struct wait {
	int64_t span, start, end;
	uint32_t lane;
	char what; /* 's' stream, 'c' context, 'e' event, 'w' stream waits for event */
};

struct launched {
	uint32_t lane, event;
	int64_t call_ns;
};

struct path {
	sqlite3 *db;
	struct window *windows;
	struct lane *lanes;
	struct event *events;
	struct node *nodes;
	uint32_t *order;    /* nodes by time */
	uint32_t *by_span;  /* events of threads by span */
	uint32_t *blocking; /* events that block or wait by their end */
	struct launched *launched;
	struct wait *waits;
	/* Kernels without a call that start after the step, while those behind them may be of it,
	 * by their calls. */
	struct event *later;
	size_t later_count, later_capacity;
	size_t window_count, window_capacity, lane_count, lane_capacity, count, capacity,
		host_count, blocking_count, launched_count, wait_count, wait_capacity,
		node_capacity;
	int64_t abouts;     /* rows about spans: calls, kernels and copies */
	bool events_waited; /* the recording says for which event a call waited */
	bool left_out;
	struct prof_insert rows;
	struct err *err; /* the first failure, after which nothing more is done */
};

static bool ok(const struct path *p)
{
	return !err_stuck(p->err);
}

static sqlite3_stmt *prepare(struct path *p, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int code;

	if (!ok(p))
		return NULL;
	code = sqlite3_prepare_v2(p->db, sql, -1, &statement, NULL);
	if (code != SQLITE_OK)
		prof_sql_error(p->db, code, p->err, "find the critical path");
	return statement;
}

/* Go to the next row. After the last one, or a failure, the statement is finalized and NULL. */
static bool next(struct path *p, sqlite3_stmt **rows)
{
	const int code = ok(p) && *rows ? sqlite3_step(*rows) : SQLITE_DONE;

	if (code == SQLITE_ROW)
		return true;
	if (code != SQLITE_DONE)
		prof_sql_error(p->db, code, p->err, "find the critical path");
	sqlite3_finalize(*rows);
	*rows = NULL;
	return false;
}

static void run(struct path *p, const char *sql)
{
	if (ok(p))
		prof_sql_run(p->db, sql, p->err);
}

static bool grow(struct path *p, void *items, size_t *capacity, size_t needed, size_t size)
{
	if (ok(p) && mem_grow(items, capacity, needed, size) != 0)
		err_nomem(p->err);
	return ok(p);
}

static void *allocate(struct path *p, void *old, size_t count, size_t size)
{
	void *items;

	mem_free(old);
	items = mem_alloc((count + 1) * size);
	if (!items && ok(p))
		err_nomem(p->err);
	return items;
}

static int64_t column(sqlite3_stmt *statement, int at, int64_t otherwise)
{
	return sqlite3_column_type(statement, at) == SQLITE_NULL
		       ? otherwise
		       : sqlite3_column_int64(statement, at);
}

/* ---- what there is --------------------------------------------------------------------------- */

/* Steps of each rank that follow each other; without any, all of the rank. Ranges are few beside
 * spans, which SQLite does not know. */
static const char windows_sql[] =
	"SELECT t.rank, c.step, r.start_ns, r.start_ns + r.dur_ns FROM range_rows g "
	"CROSS JOIN strings k ON k.string_id = g.kind_id AND k.value = 'step' "
	"CROSS JOIN span_rows r ON r.span_id = g.span_id JOIN track_rows t USING (track_id) "
	"LEFT JOIN contexts c ON c.context_id = r.context_id WHERE r.dur_ns > 0 "
	"UNION ALL SELECT rank, NULL, NULL, NULL FROM (SELECT DISTINCT rank FROM track_rows) "
	"ORDER BY 1, 3 NULLS LAST";

static void read_windows(struct path *p)
{
	sqlite3_stmt *rows = prepare(p, windows_sql);

	while (next(p, &rows)) {
		const struct window *last =
			p->window_count ? &p->windows[p->window_count - 1] : NULL;
		const struct window window = {column(rows, 0, 0), column(rows, 1, IPS_NULL),
					      column(rows, 2, INT64_MIN),
					      column(rows, 3, INT64_MAX)};

		if (last && last->rank == window.rank &&
		    (window.start == INT64_MIN || window.start < last->end))
			continue;
		if (grow(p, &p->windows, &p->window_capacity, p->window_count + 1,
			 sizeof(*p->windows)))
			p->windows[p->window_count++] = window;
	}
}

/* Find the lane of @rank and @kind whose name is the first @length bytes of @name. */
static uint32_t find_lane(const struct path *p, int64_t rank, enum lane_kind kind, const char *name,
			  size_t length)
{
	for (size_t i = 0; i < p->lane_count; i++) {
		const struct lane *lane = &p->lanes[i];

		if (lane->rank == rank && lane->kind == kind && strlen(lane->name) == length &&
		    memcmp(lane->name, name, length) == 0)
			return (uint32_t)i;
	}
	return NONE;
}

/* What calls do, by their names in CUDA's runtime and driver and in HIP. */
static const char calls_sql[] =
	"CREATE TABLE temp.critical_calls (site_id INTEGER PRIMARY KEY, call INTEGER);"
	"WITH what (pattern, call) AS (VALUES ('DeviceSynchronize*', 2), ('CtxSynchronize*', 2), "
	"('StreamSynchronize*', 2), ('EventSynchronize*', 2), ('EventQuery*', 2), ('Memcpy*', 1), "
	"('StreamWaitEvent*', 3)), "
	"prefix (text) AS (VALUES ('cuda'), ('cu'), ('hip')) "
	"INSERT OR IGNORE INTO temp.critical_calls SELECT s.site_id, w.call FROM sites s "
	"JOIN strings n ON n.string_id = s.name_id "
	"JOIN prefix p JOIN what w ON n.value GLOB p.text || w.pattern;"
	"CREATE TABLE temp.critical_records (correlation INTEGER, pid INTEGER, start_ns INTEGER, "
	"PRIMARY KEY (correlation, pid)) WITHOUT ROWID;";

static const char records_sql[] =
	"INSERT OR IGNORE INTO temp.critical_records SELECT c.launch_key & 0xffffffffffff, "
	"coalesce(t.pid, -1), r.start_ns FROM call_rows c JOIN span_rows r USING (span_id) "
	"JOIN track_rows t USING (track_id) JOIN sites s USING (site_id) JOIN strings n ON "
	"n.string_id = s.name_id WHERE n.value GLOB '*EventRecord*'";

#define HAS(table)                                                                                 \
	"EXISTS (SELECT 1 FROM zones z CROSS JOIN " table " x ON x.span_id BETWEEN z.first_row "   \
	"AND z.last_row WHERE z.kind = 0 AND z.track_id = t.track_id) "

/* Enumerators of enum lane_kind; what waits is on lanes "... (sync)". */
static const char lanes_sql[] =
	"SELECT track_id, rank, coalesce(pid, -1), track, CASE "
	"WHEN " HAS("kernel_rows") "OR " HAS("copy_rows") "THEN 1 WHEN " HAS(
		"call_rows") "THEN 0 WHEN track LIKE '% (sync)%' THEN 2 END AS kind "
			     "FROM track_rows t WHERE clock = 0 AND kind IS NOT NULL ORDER BY kind "
			     "= 2, track_id";

/* The rows of a lane in order of start. Ranges that only annotate are no work: they enclose it. */
#define LANE(columns, joins, where)                                                                \
	"SELECT r.span_id, r.start_ns, r.dur_ns, " columns " FROM zones z CROSS JOIN span_rows r " \
	"ON r.span_id BETWEEN z.first_row AND z.last_row AND r.track_id = z.track_id " joins       \
	" WHERE z.kind = 0 AND z.track_id = ?1 AND r.dur_ns > 0 " where                            \
	" ORDER BY z.first_ns, z.first_row, r.span_id"

static const char *const lane_sql[] = {
	[LANE_HOST] = LANE("m.call",
			   "LEFT JOIN temp.critical_calls m ON m.site_id = r.site_id "
			   "LEFT JOIN range_rows g ON g.span_id = r.span_id",
			   "AND (g.kind_id IS NULL OR (SELECT value FROM strings WHERE "
			   "string_id = g.kind_id) NOT IN ('step', 'annotation', 'device'))"),
	[LANE_DEVICE] = LANE("(SELECT value FROM strings WHERE string_id = k.kind_id), "
			     "l.launch_span_id, c.start_ns",
			     "LEFT JOIN kernel_rows k ON k.span_id = r.span_id "
			     "LEFT JOIN copy_rows p ON p.span_id = r.span_id "
			     "LEFT JOIN launch_rows l ON l.span_id = r.span_id "
			     "LEFT JOIN span_rows c ON c.span_id = l.launch_span_id",
			     "AND (k.span_id IS NOT NULL OR p.span_id IS NOT NULL)"),
	[LANE_SYNC] = LANE("n.value",
			   "JOIN sites s ON s.site_id = r.site_id "
			   "JOIN strings n ON n.string_id = s.name_id",
			   ""),
};

static void read_lanes(struct path *p)
{
	sqlite3_stmt *rows = prepare(p, lanes_sql);

	while (next(p, &rows)) {
		struct lane lane = {.kind = (enum lane_kind)sqlite3_column_int(rows, 4),
				    .track = column(rows, 0, 0),
				    .rank = column(rows, 1, 0),
				    .pid = column(rows, 2, -1),
				    .base = NONE,
				    .group = (uint32_t)p->lane_count};
		const char *name = (const char *)sqlite3_column_text(rows, 3), *end;

		if (p->lane_count == PROF_CRITICAL_LANES) {
			p->left_out = true;
			p->window_count = 0;
			break;
		}
		snprintf(lane.name, sizeof(lane.name), "%s", name ? name : "");
		end = strstr(lane.name, lane.kind == LANE_SYNC ? " (sync)" : " (overlap ");
		if (lane.kind != LANE_HOST)
			lane.base = find_lane(p, lane.rank, LANE_DEVICE, lane.name,
					      end ? (size_t)(end - lane.name) : strlen(lane.name));
		if (lane.kind == LANE_DEVICE && lane.base == NONE)
			lane.base = (uint32_t)p->lane_count;
		if (!grow(p, &p->lanes, &p->lane_capacity, p->lane_count + 1, sizeof(*p->lanes)))
			continue;
		lane.rows = prepare(p, lane_sql[lane.kind]);
		sqlite3_bind_int64(lane.rows, 1, lane.track);
		p->lanes[p->lane_count++] = lane;
	}
	sqlite3_finalize(rows);
	for (size_t i = 0; i < p->lane_count; i++) {
		for (size_t j = 0; j < p->lane_count && !p->lanes[i].owns; j++)
			p->lanes[i].owns = p->lanes[j].kind == LANE_DEVICE &&
					   p->lanes[j].rank == p->lanes[i].rank &&
					   p->lanes[j].pid == p->lanes[i].pid;
	}
}

static uint32_t lane_of_track(const struct path *p, int64_t track)
{
	for (size_t i = 0; i < p->lane_count; i++) {
		if (p->lanes[i].track == track)
			return (uint32_t)i;
	}
	return NONE;
}

/* PyTorch's backward pass runs on a thread of its own while the forward thread waits for it: the
 * threads between which the flows `fwdbwd` lead take turns. Without the name no flow is read. */
static void join_threads(struct path *p)
{
	sqlite3_stmt *rows =
		prepare(p, "SELECT DISTINCT a.track_id, b.track_id FROM strings n "
			   "CROSS JOIN flow_rows f ON f.name_id = n.string_id "
			   "JOIN span_rows a ON a.span_id = f.from_span_id "
			   "JOIN span_rows b ON b.span_id = f.to_span_id WHERE n.value = 'fwdbwd'");

	while (next(p, &rows)) {
		const uint32_t a = lane_of_track(p, column(rows, 0, -1)),
			       b = lane_of_track(p, column(rows, 1, -1));
		const uint32_t group = b == NONE ? NONE : p->lanes[b].group;

		for (size_t i = 0; i < p->lane_count && a != NONE && b != NONE; i++) {
			if (p->lanes[i].group == group)
				p->lanes[i].group = p->lanes[a].group;
		}
	}
}

/* ---- the events of a step -------------------------------------------------------------------- */

static uint32_t find_call(const struct path *p, int64_t span)
{
	size_t at;

	SORTED_FIRST(at, 0, p->host_count, p->events[p->by_span[at]].span < span);
	return at < p->host_count && p->events[p->by_span[at]].span == span ? p->by_span[at] : NONE;
}

static char wait_kind(const char *name)
{
	if (!name || sqlite3_strnicmp(name, "context", 7) == 0)
		return 'c';
	if (sqlite3_strnicmp(name, "event", 5) == 0)
		return 'e';
	if (sqlite3_strnicmp(name, "stream w", 8) == 0)
		return 'w';
	return sqlite3_strnicmp(name, "stream", 6) == 0 ? 's' : 'c';
}

static void add_event(struct path *p, const struct event *event)
{
	if (grow(p, &p->events, &p->capacity, p->count + 1, sizeof(*p->events)))
		p->events[p->count++] = *event;
}

/* Put aside a kernel of a later step: return false if all that follow are of later steps, too. A
 * stream runs kernels in the order of their calls. */
static bool put_aside(struct path *p, const struct event *event, bool launched)
{
	if (p->lanes[event->lane].kind != LANE_DEVICE || launched || p->later_count == LATER_MOST ||
	    !grow(p, &p->later, &p->later_capacity, p->later_count + 1, sizeof(*p->later)))
		return false;
	p->later[p->later_count++] = *event;
	return true;
}

/* Add the kernels of the lane that were put aside and are of this step; drop those of other ranks,
 * whose steps are done. */
static void add_put_aside(struct path *p, uint32_t at, const struct window *window)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->later_count; i++) {
		const struct event event = p->later[i];

		if (p->lanes[event.lane].rank != window->rank)
			continue;
		if (event.lane != at || event.start > window->end)
			p->later[kept++] = event;
		else if (event.start >= window->start)
			add_event(p, &event);
	}
	p->later_count = kept;
}

/* Add the row that the lane is at, unless it and all that follow are of later steps. */
static bool add_lane_row(struct path *p, uint32_t at, const struct window *window)
{
	struct lane *lane = &p->lanes[at];
	const int64_t start = column(lane->rows, 1, 0), dur = column(lane->rows, 2, 0);
	const char *text = (const char *)sqlite3_column_text(lane->rows, 3);
	struct event event = {.span = column(lane->rows, 0, 0),
			      .start = start,
			      .end = start > INT64_MAX - dur ? INT64_MAX : start + dur,
			      .lane = at,
			      .other = NONE,
			      .waits = NONE,
			      .wait_lane = NONE,
			      .kind = KIND_HOST};
	/* What a device runs is of the step of its call. */
	const int64_t when = lane->kind == LANE_DEVICE ? column(lane->rows, 5, start) : start;

	if (lane->kind == LANE_DEVICE)
		event.kind = !text || strcmp(text, "memory") == 0 ? KIND_MEMORY
			     : strcmp(text, "communication") == 0 ? KIND_COMMUNICATION
								  : KIND_COMPUTE;
	if (when > window->end) {
		lane->ready = !put_aside(p, &event, column(lane->rows, 5, IPS_NULL) != IPS_NULL);
		return !lane->ready;
	}
	lane->ready = false;
	if (when < window->start)
		return true;
	if (lane->kind == LANE_SYNC) {
		if (grow(p, &p->waits, &p->wait_capacity, p->wait_count + 1, sizeof(*p->waits)))
			p->waits[p->wait_count++] =
				(struct wait){event.span, start, event.end, at, wait_kind(text)};
		return true;
	}
	if (lane->kind == LANE_HOST)
		event.call = (uint8_t)column(lane->rows, 3, CALL_PLAIN);
	else
		event.other = find_call(p, column(lane->rows, 4, -1));
	add_event(p, &event);
	return true;
}

static void read_lane(struct path *p, uint32_t at, const struct window *window)
{
	struct lane *lane = &p->lanes[at];

	add_put_aside(p, at, window);
	while (ok(p) && p->count <= PROF_CRITICAL_SPANS && p->wait_count <= PROF_CRITICAL_SPANS) {
		if (!lane->ready)
			lane->ready = next(p, &lane->rows);
		if (!lane->ready || !add_lane_row(p, at, window))
			return;
	}
}

/* qsort() has no argument for its comparison, and two recordings may end at once. */
static _Thread_local const struct event *sorted;

static int by_span(const void *a, const void *b)
{
	const int64_t x = sorted[*(const uint32_t *)a].span, y = sorted[*(const uint32_t *)b].span;

	return (x > y) - (x < y);
}

static int by_end(const void *a, const void *b)
{
	const struct event *x = &sorted[*(const uint32_t *)a], *y = &sorted[*(const uint32_t *)b];

	return x->end != y->end ? (x->end > y->end) - (x->end < y->end)
				: (x->span > y->span) - (x->span < y->span);
}

static int by_launch(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->lane != y->lane)
		return (x->lane > y->lane) - (x->lane < y->lane);
	if (x->call_ns != y->call_ns)
		return (x->call_ns > y->call_ns) - (x->call_ns < y->call_ns);
	return (x->event > y->event) - (x->event < y->event);
}

static void read_window(struct path *p, const struct window *window)
{
	p->count = p->wait_count = p->blocking_count = 0;
	for (int kind = LANE_HOST; kind <= LANE_SYNC; kind++) {
		for (uint32_t i = 0; i < p->lane_count; i++) {
			if ((int)p->lanes[i].kind == kind && p->lanes[i].rank == window->rank)
				read_lane(p, i, window);
		}
		if (kind != LANE_HOST || !ok(p))
			continue;
		p->host_count = p->count;
		p->by_span = allocate(p, p->by_span, p->count, sizeof(*p->by_span));
		p->blocking = allocate(p, p->blocking, p->count, sizeof(*p->blocking));
		if (!ok(p))
			return;
		for (uint32_t i = 0; i < p->count; i++) {
			p->by_span[i] = i;
			if (p->events[i].call == CALL_BLOCKS ||
			    p->events[i].call == CALL_WAITS_EVENT)
				p->blocking[p->blocking_count++] = i;
		}
		sorted = p->events;
		qsort(p->by_span, p->count, sizeof(*p->by_span), by_span);
		qsort(p->blocking, p->blocking_count, sizeof(*p->blocking), by_end);
	}
}

/* ---- what waits for what --------------------------------------------------------------------- */

/* Find the call in which the wait ended. */
static uint32_t waiting_call(const struct path *p, const struct wait *wait)
{
	size_t first;

	SORTED_FIRST(first, 0, p->blocking_count, p->events[p->blocking[first]].end < wait->end);
	for (size_t i = first; i < p->blocking_count && i < first + NEAR; i++) {
		const struct event *call = &p->events[p->blocking[i]];

		if (call->start <= wait->start &&
		    (!p->lanes[call->lane].owns ||
		     p->lanes[call->lane].pid == p->lanes[wait->lane].pid) &&
		    (call->call == CALL_WAITS_EVENT) == (wait->what == 'w'))
			return p->blocking[i];
	}
	return NONE;
}

/* Return the first of @lane whose call began at @ns or later. */
static size_t launched_from(const struct path *p, uint32_t lane, int64_t ns)
{
	size_t at;

	SORTED_FIRST(at, 0, p->launched_count,
		     p->launched[at].lane < lane ||
			     (p->launched[at].lane == lane && p->launched[at].call_ns < ns));
	return at;
}

static int64_t argument(sqlite3_stmt *arguments, int64_t span, const char *name)
{
	int64_t value = -1;

	sqlite3_bind_int64(arguments, 1, span);
	sqlite3_bind_text(arguments, 2, name, -1, SQLITE_STATIC);
	if (sqlite3_step(arguments) == SQLITE_ROW)
		value = column(arguments, 0, -1);
	sqlite3_reset(arguments);
	return value;
}

/* Does a lane's name, without the process before it and what is in brackets behind it, say
 * @stream? */
static bool is_stream(const char *name, const char *stream)
{
	const char *at = strstr(name, stream);
	const size_t length = strlen(stream);

	return at && (at == name || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' ');
}

/* Find the kernel before the event that @wait waits for, by the record's correlation and stream
 * (imports of PyTorch's profiler and of Nsight Systems have both). Where streams have processes, it
 * is one of the wait's. */
static uint32_t recorded_kernel(const struct path *p, sqlite3_stmt *arguments,
				sqlite3_stmt *records, const struct wait *wait)
{
	const int64_t record = argument(arguments, wait->span, "wait_on_cuda_event_record_corr_id");
	const int64_t stream = argument(arguments, wait->span, "wait_on_stream");
	const struct lane *at = &p->lanes[wait->lane];
	const char *end = strstr(at->name, " stream "), *device = strstr(at->name, ": ");
	char name[NAME_SIZE];
	uint32_t lane = 0;
	size_t next = 0;

	if (record < 0 || !end)
		return NONE;
	device = device && device < end ? device + 2 : at->name;
	snprintf(name, sizeof(name), "%.*s stream %lld", (int)(end - device), device,
		 (long long)stream);
	while (lane < p->lane_count &&
	       (p->lanes[lane].kind != LANE_DEVICE || p->lanes[lane].rank != at->rank ||
		p->lanes[lane].pid != at->pid || !is_stream(p->lanes[lane].name, name)))
		lane++;
	sqlite3_bind_int64(records, 1, record);
	sqlite3_bind_int64(records, 2, at->pid);
	if (lane < p->lane_count && sqlite3_step(records) == SQLITE_ROW)
		next = launched_from(p, lane, column(records, 0, 0));
	sqlite3_reset(records);
	return next > 0 && p->launched[next - 1].lane == lane ? p->launched[next - 1].event : NONE;
}

static void link_event(struct path *p, sqlite3_stmt *arguments, sqlite3_stmt *records,
		       const struct wait *wait)
{
	const uint32_t call = waiting_call(p, wait), stream = p->lanes[wait->lane].base;
	const uint32_t kernel = call == NONE ? NONE : recorded_kernel(p, arguments, records, wait);

	if (kernel == NONE)
		return;
	if (wait->what == 'e') {
		p->events[call].waits = kernel;
		return;
	}
	/* The stream's next kernel that the same thread launches. */
	for (size_t i = launched_from(p, stream, p->events[call].start), last = i + NEAR;
	     i < last && i < p->launched_count && p->launched[i].lane == stream; i++) {
		struct event *event = &p->events[p->launched[i].event];

		if (p->events[event->other].lane != p->events[call].lane)
			continue;
		event->waits = kernel;
		return;
	}
}

static void link_waits(struct path *p)
{
	sqlite3_stmt *arguments =
		prepare(p, "SELECT value FROM span_arg_rows WHERE span_id = ?1 AND "
			   "name_id = (SELECT string_id FROM strings WHERE value = ?2)");
	sqlite3_stmt *records =
		prepare(p, "SELECT start_ns FROM temp.critical_records WHERE correlation = ?1 "
			   "ORDER BY pid = ?2 DESC, start_ns LIMIT 1");

	p->launched_count = 0;
	if (p->events_waited)
		p->launched =
			allocate(p, p->launched, p->count - p->host_count, sizeof(*p->launched));
	for (size_t i = p->host_count; i < p->count && p->events_waited && ok(p); i++) {
		const struct event *event = &p->events[i];

		if (event->other != NONE)
			p->launched[p->launched_count++] =
				(struct launched){p->lanes[event->lane].base, (uint32_t)i,
						  p->events[event->other].start};
	}
	if (p->launched_count > 0)
		qsort(p->launched, p->launched_count, sizeof(*p->launched), by_launch);
	for (size_t i = 0; i < p->wait_count && ok(p); i++) {
		const struct wait *wait = &p->waits[i];
		const uint32_t call = wait->what == 's' ? waiting_call(p, wait) : NONE;

		if (call != NONE)
			p->events[call].wait_lane = p->lanes[wait->lane].base;
		if (p->events_waited && (wait->what == 'e' || wait->what == 'w'))
			link_event(p, arguments, records, wait);
	}
	sqlite3_finalize(arguments);
	sqlite3_finalize(records);
}

/* ---- the longest path ------------------------------------------------------------------------ */

static int64_t node_ns(const struct event *events, uint32_t node)
{
	return node & 1 ? events[node / 2].end : events[node / 2].start;
}

/* By time; at one time first ends, of devices before those of threads and of what is within before
 * what encloses it; then starts, the other way round. */
static int by_time(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct event *e = &sorted[x / 2], *f = &sorted[y / 2];
	const int64_t s = node_ns(sorted, x), t = node_ns(sorted, y);
	const bool end = x & 1;

	if (s != t)
		return s < t ? -1 : 1;
	if (end != (bool)(y & 1))
		return end ? -1 : 1;
	if ((e->kind == KIND_HOST) != (f->kind == KIND_HOST))
		return (e->kind == KIND_HOST) == end ? 1 : -1;
	if (end && e->start != f->start)
		return e->start > f->start ? -1 : 1;
	if (!end && e->end != f->end)
		return e->end > f->end ? -1 : 1;
	if (e->span != f->span)
		return (e->span < f->span) == end ? 1 : -1;
	return 0;
}

/* Take the edge from @before if it makes the path to @to longer. */
static void relax(struct path *p, uint32_t to, uint32_t before, int64_t weight, enum kind kind,
		  uint32_t about)
{
	struct node *node = &p->nodes[to];
	const int64_t length = p->nodes[before].length + weight;

	if (node->before != NONE && length <= node->length)
		return;
	*node = (struct node){length, before, about & 0xfffffff, kind};
}

static void host_start(struct path *p, uint32_t at)
{
	struct event *event = &p->events[at];
	struct lane *lane = &p->lanes[event->lane];

	if (lane->top != NONE) {
		const uint32_t about = lane->last & 1 ? lane->top : lane->last / 2;

		relax(p, 2 * at, lane->last, event->start - node_ns(p->events, lane->last),
		      KIND_HOST, about);
	} else {
		for (size_t i = 0; i < p->lane_count; i++) {
			if (p->lanes[i].kind == LANE_HOST && p->lanes[i].group == lane->group &&
			    p->lanes[i].last_top != NONE)
				relax(p, 2 * at, p->lanes[i].last_top, 0, KIND_DEPENDENCY, at);
		}
	}
	event->other = lane->top;
	lane->top = at;
	lane->last = 2 * at;
}

static void host_end(struct path *p, uint32_t at)
{
	const struct event *event = &p->events[at];
	struct lane *lane = &p->lanes[event->lane];
	const uint32_t end = 2 * at + 1;
	const bool blocks = event->call == CALL_BLOCKS || event->call == CALL_COPIES;

	relax(p, end, lane->last, blocks ? 0 : event->end - node_ns(p->events, lane->last),
	      KIND_HOST, at);
	if (event->call == CALL_BLOCKS && event->waits != NONE) {
		if (p->events[event->waits].end <= event->end)
			relax(p, end, 2 * event->waits + 1, 0, KIND_SYNC, at);
	} else if (event->call == CALL_BLOCKS) {
		for (uint32_t i = 0; i < p->lane_count; i++) {
			const struct lane *stream = &p->lanes[i];

			if (stream->kind == LANE_DEVICE && stream->last != NONE &&
			    (event->wait_lane == NONE ? !lane->owns || stream->pid == lane->pid
						      : event->wait_lane == i))
				relax(p, end, stream->last, 0, KIND_SYNC, at);
		}
	}
	lane->top = event->other;
	lane->last = end;
	if (lane->top == NONE)
		lane->last_top = end;
}

static void device_start(struct path *p, uint32_t at)
{
	const struct event *event = &p->events[at];
	const struct lane *stream = &p->lanes[p->lanes[event->lane].base];
	const struct event *call = event->other == NONE ? NULL : &p->events[event->other];
	const struct event *waits = event->waits == NONE ? NULL : &p->events[event->waits];
	const int64_t idle = stream->last == NONE ? INT64_MIN : node_ns(p->events, stream->last);
	const bool launched = call && call->start <= event->start;

	if (waits && waits->end <= event->start)
		relax(p, 2 * at, 2 * event->waits + 1, 0, KIND_SYNC, at);
	if (launched && idle < call->start && (!waits || waits->end < call->start))
		relax(p, 2 * at, 2 * event->other, event->start - call->start, KIND_LAUNCH,
		      event->other);
	else if (stream->last != NONE && event->start - idle < KERNEL_DELAY_NS &&
		 (!waits || waits->end < idle))
		relax(p, 2 * at, stream->last, event->start - idle, KIND_KERNEL_DELAY,
		      stream->last / 2);
	if (launched)
		relax(p, 2 * at, 2 * event->other, 0, KIND_LAUNCH, event->other);
}

/* Order the nodes and find the longest path to each. Return the end of the longest of all. */
static uint32_t solve(struct path *p)
{
	const size_t count = 2 * p->count;
	uint32_t longest = 0;

	if (p->node_capacity < count) {
		p->node_capacity = count;
		p->nodes = allocate(p, p->nodes, count, sizeof(*p->nodes));
		p->order = allocate(p, p->order, count, sizeof(*p->order));
		if (!ok(p))
			return NONE;
	}
	for (uint32_t i = 0; i < count; i++) {
		p->nodes[i] = (struct node){0, NONE, 0, KIND_HOST};
		p->order[i] = i;
	}
	for (size_t i = 0; i < p->lane_count; i++)
		p->lanes[i].top = p->lanes[i].last = p->lanes[i].last_top = NONE;
	sorted = p->events;
	qsort(p->order, count, sizeof(*p->order), by_time);
	for (size_t i = 0; i < count; i++) {
		const uint32_t node = p->order[i], at = node / 2;
		const struct event *event = &p->events[at];

		if (event->kind == KIND_HOST) {
			(node & 1 ? host_end : host_start)(p, at);
		} else if (node & 1) {
			relax(p, node, node - 1, event->end - event->start, (enum kind)event->kind,
			      at);
			p->lanes[p->lanes[event->lane].base].last = node;
		} else {
			device_start(p, at);
		}
		if (p->nodes[node].length > p->nodes[longest].length)
			longest = node;
	}
	return longest;
}

/* Write the edges of the path that ends with @last. */
static void write_path(struct path *p, const struct window *window, uint32_t last)
{
	size_t count = 0;

	for (uint32_t node = last; p->nodes[node].before != NONE; node = p->nodes[node].before)
		p->order[count++] = node;
	for (size_t i = count; i-- > 0;) {
		const struct node *node = &p->nodes[p->order[i]];
		struct prof_cell *cells;

		if (prof_insert_row(&p->rows, &cells, p->err) != ST_OK)
			return;
		prof_cell_int(&cells[0], window->rank);
		prof_cell_int(&cells[1], window->step);
		prof_cell_int(&cells[2], (int64_t)(count - 1 - i));
		prof_cell_int(&cells[3], p->events[node->about].span);
		prof_cell_text(&cells[4], kind_texts[node->kind]);
		prof_cell_int(&cells[5], node_ns(p->events, node->before));
		prof_cell_int(&cells[6], node->length - p->nodes[node->before].length);
	}
}

static void find_path(struct path *p, const struct window *window)
{
	/* A recording without steps has them all: they need not be read to be counted. */
	const bool large = p->window_count == 1 && window->start == INT64_MIN &&
			   p->abouts > PROF_CRITICAL_SPANS;
	uint32_t last;

	if (!large)
		read_window(p, window);
	if (large || p->count > PROF_CRITICAL_SPANS || p->wait_count > PROF_CRITICAL_SPANS) {
		p->left_out = true;
		return;
	}
	if (!ok(p) || p->count == p->host_count) /* nothing was launched */
		return;
	link_waits(p);
	last = ok(p) ? solve(p) : NONE;
	if (ok(p))
		write_path(p, window, last);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const char needed_sql[] =
	"SELECT EXISTS (SELECT 1 FROM launch_rows) AND NOT EXISTS (SELECT 1 FROM critical_rows), "
	"EXISTS (SELECT 1 FROM strings WHERE value = 'wait_on_cuda_event_record_corr_id'), (SELECT "
	"count(*) FROM call_rows) + (SELECT count(*) FROM kernel_rows) + (SELECT count(*) FROM "
	"copy_rows)";

static void find_all(struct path *p)
{
	prof_insert_init(&p->rows, p->db,
			 "INSERT INTO critical_rows (rank, step, position, span_id, kind, time_ns, "
			 "dur_ns)",
			 7, NULL, p->err);
	run(p, calls_sql);
	if (p->events_waited)
		run(p, records_sql);
	read_windows(p);
	read_lanes(p);
	join_threads(p);
	for (size_t i = 0; i < p->window_count && ok(p); i++)
		find_path(p, &p->windows[i]);
	if (ok(p))
		prof_insert_flush(&p->rows, p->err);
	prof_insert_fini(&p->rows);
	if (p->left_out)
		run(p, "INSERT OR REPLACE INTO meta_facts VALUES ('critical_path', "
		       "'left out where a step has more than 400000 spans, or the recording more "
		       "than 2048 tracks')");
	for (size_t i = 0; i < p->lane_count; i++)
		sqlite3_finalize(p->lanes[i].rows);
	run(p, "DROP TABLE temp.critical_calls; DROP TABLE temp.critical_records");
	mem_free(p->windows);
	mem_free(p->lanes);
	mem_free(p->events);
	mem_free(p->nodes);
	mem_free(p->order);
	mem_free(p->by_span);
	mem_free(p->blocking);
	mem_free(p->launched);
	mem_free(p->waits);
	mem_free(p->later);
}

void prof_critical_find(sqlite3 *db, struct err *err)
{
	struct path path = {.db = db, .err = err};
	sqlite3_stmt *needed = prepare(&path, needed_sql);
	bool find = false;

	while (next(&path, &needed)) {
		find = sqlite3_column_int(needed, 0) == 1;
		path.events_waited = sqlite3_column_int(needed, 1) == 1;
		path.abouts = sqlite3_column_int64(needed, 2);
	}
	if (!find)
		return;
	run(&path, "SAVEPOINT critical");
	if (!ok(&path))
		return;
	find_all(&path);
	if (ok(&path))
		run(&path, "RELEASE critical");
	else
		sqlite3_exec(db, "ROLLBACK TO critical; RELEASE critical", NULL, NULL, NULL);
}
