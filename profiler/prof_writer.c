/*
 * The writer: one thread that turns rings and queued rows into commits.
 *
 * It sleeps until it is woken (a ring is half full, the queue a quarter full, a flush, the close)
 * or a commit is due. Then it drains rings and queue, and commits at least every commit_ms if
 * there is anything to commit: few large batches disturb the program less than many small ones.
 * The write-ahead log is copied into the database concurrently; the writer waits for readers only
 * when it is large, and not for long. The first failure ends writing permanently: everything
 * recorded afterwards is discarded, and waiting threads get the status. Without space on the disk
 * the transaction waits (both: prof_disk.h); what rings and queue cannot hold until there is some
 * is dropped and counted.
 *
 * The writer yields to the program: its thread has a high nice value. If no core is ever idle,
 * that would delay commits. So after the first round that mostly waited for a core, it hands
 * over, permanently, to a standby thread with the program's own priority.
 *
 * The writer's thread (one of the two at a time) owns struct prof_writer from prof__writer_main()
 * until it ends; before and after that, the thread that opens and closes the recording does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_disk.h"
#include "profiler/prof_internal.h"

#define SPACE_PAUSE_NS  50000000   /* between two trials without space on the disk */
#define SPACE_STOP_NS   1000000000 /* the longest wait for space at the close */
#define GAPS_SIZE       160
#define EVENTS_AT_ONCE  4096u    /* drained between two checks of the time */
#define KEYS_NS         10.0     /* cost of a change of keys at the call site (estimate) */
#define ROW_NS          150.0    /* cost of an appended row (estimate, from one profile) */
#define WRITER_NICE     19       /* yields to the program */
#define FIRST_COMMIT_NS 4000000u /* interval of the first commit; doubled at each one */
#define LANES_MANY      64       /* from which on lanes keep no buffers that are empty */
/* Per commit if no reader waits for it (params.alone): events; increments of levels, of which one
 * span has many where a track's spans are far apart; depths of all tracks (struct prof_levels),
 * which take 2 kB each. */
#define ALONE_EVENTS     (1u << 19)
#define ALONE_INCREMENTS (1 << 18)
#define ALONE_DEPTHS     (1u << 14)

/* ---- commits --------------------------------------------------------------------------------- */

static uint64_t file_bytes(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* The run's time that recording took: threads record in parallel, and wait together. */
static int64_t record_ns(struct ips_recording *recording, uint64_t events, uint64_t rows)
{
	struct prof_writer *writer = &recording->writer;
	const int64_t spent = __atomic_exchange_n(&recording->spent_ns, 0, __ATOMIC_RELAXED);
	const int64_t waited = __atomic_exchange_n(&recording->waited_ns, 0, __ATOMIC_RELAXED);
	const double calls = (double)events * (writer->clock.stamp_ns + 2.0) +
			     (double)(writer->keys - writer->keys_told) * KEYS_NS +
			     (double)rows * ROW_NS;
	const uint64_t threads = writer->threads > 0 ? writer->threads : 1;

	writer->threads = 0;
	return (int64_t)((calls + (double)spent) / (double)threads) + waited;
}

void prof__writer_cost(struct prof_writer *writer, const struct prof_sum_overhead *cost)
{
	struct prof_cell *cells = prof__writer_cells(writer, &writer->overhead);

	prof_cell_int(&cells[0], writer->rank);
	prof_cell_int(&cells[1], cost->time_ns);
	prof_cell_int(&cells[2], cost->events);
	prof_cell_int(&cells[3], cost->rows);
	prof_cell_int(&cells[4], cost->bytes);
	prof_cell_int(&cells[5], cost->dropped);
	prof_cell_int(&cells[6], cost->record_ns);
	prof_cell_int(&cells[7], cost->write_ns);
	prof_cell_int(&cells[8], writer->lag_ns);
	writer->lag_ns = IPS_NULL;
	prof__sums_add(writer, PROF_SUM_OVERHEAD, cost);
}

void prof__writer_overhead(struct ips_recording *recording, uint64_t dropped)
{
	struct prof_writer *writer = &recording->writer;
	const uint64_t events = writer->events - writer->events_told;
	const uint64_t rows = writer->rows_total - writer->rows_told;
	struct prof_sum_overhead cost;
	int pages = 0, peak = 0;

	sqlite3_db_status(writer->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &peak, 0);
	if (writer->bulk)
		pages += (int)(prof_bulk_pages(writer->bulk) + prof_bulk_pages(writer->flow_bulk));
	cost = (struct prof_sum_overhead){
		.time_ns = prof_clock_now(&writer->clock),
		.events = (int64_t)events,
		.rows = (int64_t)rows,
		.bytes = (int64_t)((uint64_t)pages - writer->pages_told) * PROF_PAGE_BYTES,
		.dropped = (int64_t)(dropped - writer->told.dropped),
		.record_ns = record_ns(recording, events, rows),
		.write_ns = (int64_t)writer->write_ns,
	};
	prof__writer_cost(writer, &cost);
	writer->events_told = writer->events;
	writer->keys_told = writer->keys;
	writer->rows_told = writer->rows_total;
	writer->pages_told = (uint64_t)pages;
	writer->write_ns = 0;
}

static void flush_dictionaries(struct prof_writer *writer)
{
	struct prof_insert *const inserts[] = {
		&writer->strings,      &writer->sites,          &writer->contexts,
		&writer->tracks,       &writer->flows,          &writer->instants,
		&writer->samples,      &writer->zones,          &writer->levels,
		&writer->longs,        &writer->counter_levels, &writer->overhead,
		&writer->sparse_zones,
	};

	for (size_t i = 0; i < ARRAY_LEN(inserts); i++)
		prof__writer_flush(writer, inserts[i]);
}

/* Return the current head of the list of lanes; the first *@count are safe to iterate. */
static struct prof_lane *first_lane(struct ips_recording *recording, int64_t *count)
{
	struct prof_lane *lane;

	pthread_mutex_lock(&recording->lock);
	lane = recording->lanes;
	*count = recording->lane_count;
	pthread_mutex_unlock(&recording->lock);
	return lane;
}

/* Return the next lane if there are @left from @lane on; the last one's link may be changing. */
static struct prof_lane *next_lane(const struct prof_lane *lane, int64_t left)
{
	return left > 1 ? lane->next : NULL;
}

/* Return the number of events dropped so far. */
static uint64_t flush_lanes(struct ips_recording *recording)
{
	struct prof_writer *writer = &recording->writer;
	uint64_t dropped = 0;
	int64_t left;
	struct prof_lane *lane = first_lane(recording, &left);
	const bool many = left >= LANES_MANY;
	const bool deep = recording->params.alone && writer->depths >= ALONE_DEPTHS;

	for (; left > 0; lane = next_lane(lane, left), left--) {
		if (prof__lane_waits(lane))
			prof__lane_flush(writer, lane);
		if (many || deep)
			prof__lane_free_empty(lane, deep);
		writer->threads += lane->tail != lane->tail_told;
		lane->tail_told = lane->tail;
		lane->dropped_told = __atomic_load_n(&lane->ring.dropped, __ATOMIC_RELAXED);
		dropped += lane->dropped_told;
	}
	writer->increments = 0;
	writer->depths = deep ? 0 : writer->depths;
	return dropped + writer->dropped_here;
}

static uint64_t tracks_refused(struct ips_recording *recording)
{
	return __atomic_load_n(&recording->tracks_refused, __ATOMIC_RELAXED);
}

/* Whether tracks were refused, or names cut, that the file does not tell of. */
static bool loses_names(struct ips_recording *recording)
{
	return tracks_refused(recording) != recording->writer.tracks_told ||
	       prof_names_lost() != recording->writer.names_told;
}

static void tell_count(struct prof_writer *writer, const char *key, uint64_t count, uint64_t *told)
{
	char text[24];

	if (count == *told)
		return;
	*told = count;
	snprintf(text, sizeof(text), "%" PRIu64, count);
	prof__writer_meta(writer, key, text);
}

static bool has_pending(struct ips_recording *recording)
{
	int64_t left;

	if (recording->writer.in_transaction ||
	    recording->writer.events != recording->writer.events_told || loses_names(recording))
		return true;
	for (struct prof_lane *lane = first_lane(recording, &left); left > 0;
	     lane = next_lane(lane, left), left--) {
		if (prof__lane_waits(lane))
			return true;
	}
	return false;
}

static void report_commit(struct ips_recording *recording, uint64_t dropped)
{
	struct prof_writer *writer = &recording->writer;
	struct ips_commit *told = &writer->told;
	const char *path = sqlite3_db_filename(writer->db, NULL);

	told->number++;
	told->spans = (uint64_t)writer->last_span;
	told->instants = (uint64_t)writer->last_row[PROF_ZONE_INSTANTS];
	told->counters = (uint64_t)writer->last_row[PROF_ZONE_COUNTERS];
	told->rows = writer->rows_total;
	told->dropped = dropped;
	told->bytes = file_bytes(path) + file_bytes(sqlite3_filename_wal(path));
	told->lag_ns = writer->lag_ns;
	told->safe_ns = writer->safe_ns;
	if (recording->params.on_commit)
		recording->params.on_commit(recording->params.user, told);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return min(a, b);
}

void prof__gaps_text(const struct prof_gaps *gaps, char *out, size_t size)
{
	snprintf(out, size,
		 "no space on the disk %" PRIu64 " times, for %.1f s in all: %" PRIu64
		 " events and %" PRIu64 " rows are missing",
		 gaps->count, (double)gaps->ns / 1e9, gaps->events, gaps->rows);
}

/* Commit what has been drained. @all: everything recorded before the round's begin. */
static void commit(struct ips_recording *recording, bool all)
{
	struct prof_writer *writer = &recording->writer;
	uint64_t dropped;

	if (!prof__writer_ok(writer))
		return;
	writer->committed_ns = clock_ns();
	writer->commit_ns =
		smaller(writer->commit_ns * 2, (uint64_t)recording->params.commit_ms * 1000000u);
	if (!has_pending(recording)) {
		writer->safe_ns = all ? writer->round_ns : writer->safe_ns;
		return;
	}
	prof__writer_begin(writer);
	dropped = flush_lanes(recording);
	prof__writer_flush_rows(writer);
	prof__writer_overhead(recording, dropped);
	prof__sums_flush(writer);
	if (writer->gaps.count > 0 && !writer->gaps.told) {
		char text[GAPS_SIZE];

		prof__gaps_text(&writer->gaps, text, sizeof(text));
		writer->gaps.told = true;
		prof__writer_meta(writer, "gaps", text);
	}
	tell_count(writer, "tracks_refused", tracks_refused(recording), &writer->tracks_told);
	tell_count(writer, "names_cut", prof_names_lost(), &writer->names_told);
	flush_dictionaries(writer);
	prof__writer_commit(writer);
	if (!prof__writer_ok(writer))
		return;
	if (all) {
		const uint64_t now = clock_ns();

		writer->lag_ns = (int64_t)(now - writer->safe_ns);
		writer->cost_ns = now - writer->round_ns;
		writer->safe_ns = writer->round_ns;
	}
	report_commit(recording, dropped);
	prof_copier_run(writer->copier, writer->db, writer->wal_pages);
	prof_clock_refine(&writer->clock);
}

/* ---- failure --------------------------------------------------------------------------------- */

void prof__writer_fail(struct ips_recording *recording)
{
	struct prof_writer *writer = &recording->writer;
	void (*failed)(void *user, int status, const char *message) = NULL;
	struct err err;
	void *user;

	if (writer->in_transaction)
		sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
	writer->in_transaction = false;
	/* The file has room for the reason on a full disk, too: in the log's space of the rows that
	 * were just rolled back; if the previous commit filled the log, at the log's start after a
	 * checkpoint. */
	if (writer->db &&
	    prof__meta_insert(writer->db, "failure", writer->err.text, NULL) != ST_OK) {
		sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
		prof__meta_insert(writer->db, "failure", writer->err.text, NULL);
	}
	pthread_mutex_lock(&recording->lock);
	if (recording->failure.status == ST_OK) {
		recording->failure = writer->err;
		err_prefix(&recording->failure, "%s", recording->path);
		failed = recording->failed_call;
	}
	user = recording->failed_user;
	err = recording->failure;
	/* A thread that sees the failure must find the queue stopped. */
	prof_queue_stop(&recording->queue, writer->err.status);
	__atomic_store_n(&recording->failed, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&recording->flushed);
	pthread_mutex_unlock(&recording->lock);
	if (failed)
		failed(user, (int)err.status, err.text);
}

/* ---- without space --------------------------------------------------------------------------- */

static uint64_t dropped_by_lanes(struct ips_recording *recording)
{
	uint64_t dropped = 0;
	int64_t left;

	for (struct prof_lane *lane = first_lane(recording, &left); left > 0;
	     lane = next_lane(lane, left), left--)
		dropped += __atomic_load_n(&lane->ring.dropped, __ATOMIC_RELAXED);
	return dropped;
}

/* Tell everybody: threads that wait for a flush, the program, and those that append rows. */
static void gap_begin(struct ips_recording *recording, int error)
{
	struct prof_gaps *gaps = &recording->writer.gaps;
	void (*failed)(void *user, int status, const char *message);
	struct err err = {ST_OK, ""};
	void *user;

	gaps->count++;
	gaps->full_at = clock_ns();
	gaps->full_dropped = dropped_by_lanes(recording);
	gaps->full_refused = prof_queue_no_space(&recording->queue, true);
	__atomic_store_n(&recording->no_space, 1, __ATOMIC_RELEASE);
	err_set(&err, ST_NOSPACE, "%s: %s: what is recorded now may be missing", recording->path,
		strerror(error));
	pthread_mutex_lock(&recording->lock);
	recording->gap = err;
	failed = recording->failed_call;
	user = recording->failed_user;
	recording->failed_call = NULL; /* is called once */
	pthread_cond_broadcast(&recording->flushed);
	pthread_mutex_unlock(&recording->lock);
	if (failed)
		failed(user, (int)err.status, err.text);
}

static void gap_end(struct ips_recording *recording)
{
	struct prof_gaps *gaps = &recording->writer.gaps;

	gaps->ns += clock_ns() - gaps->full_at;
	gaps->events += dropped_by_lanes(recording) - gaps->full_dropped;
	gaps->rows += prof_queue_no_space(&recording->queue, false) - gaps->full_refused;
	gaps->full_at = 0;
	__atomic_store_n(&recording->no_space, 0, __ATOMIC_RELEASE);
	gaps->told = false;
	pthread_mutex_lock(&recording->lock);
	recording->gap.status = ST_OK;
	pthread_mutex_unlock(&recording->lock);
}

/* For prof_space_wait(), within a write of the writer's transaction. A recording that is being
 * closed does not wait for long. */
static bool wait_for_space(void *user, int error)
{
	struct ips_recording *recording = user;
	struct prof_gaps *gaps = &recording->writer.gaps;
	const struct timespec pause = {0, SPACE_PAUSE_NS};
	const uint64_t now = clock_ns();

	if (error == 0) {
		gap_end(recording);
		return true;
	}
	if (gaps->full_at == 0)
		gap_begin(recording, error);
	if (__atomic_load_n(&recording->stop, __ATOMIC_ACQUIRE) != 0) {
		gaps->stop_at = gaps->stop_at == 0 ? now : gaps->stop_at;
		if (now - gaps->stop_at >= SPACE_STOP_NS)
			return false;
	}
	nanosleep(&pause, NULL);
	return true;
}

static void discard_all(struct ips_recording *recording)
{
	struct prof_turn turn;
	int64_t left;

	while (prof__turn_pop(recording, &turn))
		continue;
	for (struct prof_lane *lane = first_lane(recording, &left); left > 0;
	     lane = next_lane(lane, left), left--)
		prof__lane_discard(lane);
	for (struct prof_chunk *chunk = prof_queue_pop(&recording->queue); chunk;) {
		struct prof_chunk *next = chunk->next;

		prof_queue_release(&recording->queue, chunk);
		chunk = next;
	}
}

/* ---- the thread ------------------------------------------------------------------------------ */

/*
 * Return when the next round that ends with a commit begins. What is recorded from the begin of one
 * such round on is safe at the end of the next, at most an interval later: so the round's cost is
 * part of the interval.
 */
static uint64_t commit_at(const struct ips_recording *recording)
{
	const struct prof_writer *writer = &recording->writer;
	const uint64_t room = writer->commit_ns / 10 * 9;

	return writer->safe_ns + min(writer->commit_ns / 4 * 3,
				     max(room - min(room, writer->cost_ns), writer->commit_ns / 4));
}

static bool commit_due(const struct ips_recording *recording)
{
	const struct prof_writer *writer = &recording->writer;

	if (recording->params.alone)
		return writer->events - writer->events_told >= ALONE_EVENTS ||
		       writer->increments >= ALONE_INCREMENTS || writer->depths >= ALONE_DEPTHS;
	return clock_ns() >= commit_at(recording);
}

/* A round that takes long commits what it has drained so far. */
static bool commit_overdue(const struct ips_recording *recording)
{
	const struct prof_writer *writer = &recording->writer;

	if (recording->params.alone)
		return commit_due(recording);
	return clock_ns() >= max(writer->round_ns, writer->committed_ns) + writer->commit_ns / 2;
}

static void drain_rows(struct ips_recording *recording, uint64_t *work)
{
	struct prof_chunk *chunk = prof_queue_pop(&recording->queue);

	while (chunk) {
		struct prof_chunk *next = chunk->next;

		prof__writer_chunk(&recording->writer, chunk);
		*work += chunk->used / sizeof(struct ips_slot);
		prof_queue_release(&recording->queue, chunk);
		if (next && commit_overdue(recording))
			commit(recording, false);
		chunk = next;
	}
}

/* Drain one batch of @lane before @end, and commit if a commit is overdue. */
static void drain_batch(struct ips_recording *recording, struct prof_lane *lane, uint64_t end,
			uint64_t *work)
{
	const uint64_t before = lane->tail;
	const int64_t increments = prof__lane_increments(lane);
	const size_t depths = prof__lane_depths(lane);

	prof__lane_drain(&recording->writer, lane, end, EVENTS_AT_ONCE);
	*work += lane->tail - before;
	recording->writer.increments += prof__lane_increments(lane) - increments;
	recording->writer.depths += prof__lane_depths(lane) - depths;
	if (!prof__writer_ok(&recording->writer) || !commit_overdue(recording))
		return;
	/* Appended rows do not wait until full rings are empty: rare rows (a violated rule, the
	 * first non-finite number) matter most if a run is killed. */
	if (!recording->params.alone)
		drain_rows(recording, work);
	commit(recording, false);
}

/* Drain what every ring holds now, in batches. *@work counts slots. */
static void drain_lanes(struct ips_recording *recording, uint64_t *work)
{
	int64_t left;

	for (struct prof_lane *lane = first_lane(recording, &left); left > 0;
	     lane = next_lane(lane, left), left--) {
		const uint64_t end = __atomic_load_n(&lane->ring.published, __ATOMIC_ACQUIRE);

		while (lane->tail != end && prof__writer_ok(&recording->writer))
			drain_batch(recording, lane, end, work);
	}
}

/* The same in the order of the pending turns. */
static void drain_turns(struct ips_recording *recording, uint64_t *work)
{
	struct prof_turn turn;

	while (prof__turn_pop(recording, &turn)) {
		while (turn.lane->tail < turn.end && prof__writer_ok(&recording->writer))
			drain_batch(recording, turn.lane, turn.end, work);
	}
}

static uint64_t flush_ticket(struct ips_recording *recording)
{
	uint64_t ticket;

	pthread_mutex_lock(&recording->lock);
	ticket = recording->flush_wanted;
	pthread_mutex_unlock(&recording->lock);
	return ticket;
}

/* Do one round; *@work counts the slots and rows drained. */
static void work_round(struct ips_recording *recording, bool last, uint64_t *work)
{
	const uint64_t ticket = flush_ticket(recording), started = clock_ns();
	const bool wanted = last || ticket != recording->flush_done;
	const bool rows = __atomic_exchange_n(&recording->rows_wanted, 0, __ATOMIC_ACQ_REL) != 0 ||
			  wanted || !recording->params.alone;
	struct prof_writer *writer = &recording->writer;

	writer->round_ns = started;
	drain_turns(recording, work);
	if (wanted || !recording->params.alone)
		drain_lanes(recording, work);
	/* After a failure the queue stays full until it is stopped: whoever waits for room then gets
	 * the status. */
	if (rows && prof__writer_ok(writer))
		drain_rows(recording, work);
	if (wanted || commit_due(recording))
		commit(recording, wanted || !recording->params.alone);
	writer->write_ns += clock_ns() - started;
	if (!prof__writer_ok(writer)) {
		prof__writer_fail(recording);
	} else if (ticket != recording->flush_done) {
		pthread_mutex_lock(&recording->lock);
		recording->flush_done = ticket;
		pthread_cond_broadcast(&recording->flushed);
		pthread_mutex_unlock(&recording->lock);
	}
}

static void sleep_until_woken(struct ips_recording *recording)
{
	uint64_t now = clock_ns(), until = commit_at(recording);
	struct timespec at;

	if (until <= now)
		until = now + 1000000u;
	at.tv_sec = (time_t)(until / 1000000000u);
	at.tv_nsec = (long)(until % 1000000000u);
	sem_clockwait(&recording->wake, CLOCK_MONOTONIC, &at);
	__atomic_store_n(&recording->nudged, 0, __ATOMIC_RELEASE);
}

/*
 * Return whether a round of @wall_ns mostly waited for a core, so that commits may become late.
 */
static bool is_starved(const struct ips_recording *recording, uint64_t wall_ns, uint64_t cpu_ns)
{
	return wall_ns > 2 * cpu_ns &&
	       wall_ns > (uint64_t)recording->params.commit_ms * 1000000u / 2;
}

/* Write until the recording stops; false: starved before that (only if @gives_way). */
static bool write_rounds(struct ips_recording *recording, bool gives_way)
{
	bool last = false;

	/* An importer is told at once, and ends. */
	if (!recording->params.alone)
		prof_space_wait(wait_for_space, recording);
	while (!last) {
		uint64_t work = 0, started = clock_ns(), cpu = clock_thread_cpu_ns();

		last = __atomic_load_n(&recording->stop, __ATOMIC_ACQUIRE) != 0;
		if (recording->failed != 0)
			discard_all(recording);
		else
			work_round(recording, last, &work);
		if (gives_way && !last &&
		    is_starved(recording, clock_ns() - started, clock_thread_cpu_ns() - cpu))
			return false;
		if (!last && work < EVENTS_AT_ONCE)
			sleep_until_woken(recording);
	}
	return true;
}

void *prof__writer_main(void *user)
{
	struct ips_recording *recording = user;

	/* On Linux this sets the priority of the calling thread only. */
	if (!recording->params.alone)
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), WRITER_NICE);
	recording->writer.commit_ns =
		smaller(FIRST_COMMIT_NS, (uint64_t)recording->params.commit_ms * 1000000u);
	recording->starved = !write_rounds(recording, !recording->params.alone);
	sem_post(&recording->take_over);
	return NULL;
}

/* A thread cannot lower its nice value again, so a thread with the program's priority stands by. */
void *prof__standby_main(void *user)
{
	struct ips_recording *recording = user;

	while (sem_wait(&recording->take_over) != 0)
		continue;
	if (recording->starved)
		write_rounds(recording, false);
	return NULL;
}
