/*
 * The external sort. See report_import_sort.h.
 *
 * There are two buffers: the caller fills one while the thread sorts and writes the other. `lock`
 * guards `waiting`, `stop` and `failure`. `waiting` is the thread's buffer; the other is the
 * caller's.
 *
 * A buffer is sorted by the bytes of its keys, which is stable; records of one key are then sorted
 * by the whole order. Of records that are equal the one that was put first comes first, whatever
 * the memory.
 *
 * At most MERGED runs are read at one time: where there are more, neighbours are merged into longer
 * runs first, whose room in the file is given back.
 */
#include "reports/import/report_import_sort.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "common/sorted.h"

#define RUN_READ  ((size_t)128 << 10) /* bytes of each run in memory while merging */
#define RUN_WRITE ((size_t)1 << 20)
#define MERGED    128 /* runs */

_Static_assert(RUN_READ >= 2 * IMPORT_RECORD_LIMIT, "a run's window holds a whole record");

struct sort_key {
	uint64_t major; /* leading key, nearly always decisive: avoids reading the record */
	const struct import_record *record;
};

struct sort_buffer {
	unsigned char *bytes;
	size_t used;
	struct sort_key *keys;
	size_t count, capacity;
};

struct sort_run {
	off_t at, end; /* unread range in the file */
	off_t begin;
	unsigned char *window;
	size_t from, to; /* unread range in the window */
};

struct import_sorter {
	import_order order;
	const char *beside;
	size_t size; /* bytes of a buffer */
	struct sort_buffer buffers[2];
	int current;
	struct sort_key *spare; /* of the thread that sorts */
	size_t spare_capacity;
	/* the file */
	int fd;
	off_t file_end;
	struct sort_run *runs;
	size_t run_count, run_capacity;
	unsigned char *write;
	size_t write_used;
	/* the thread */
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sort_buffer *waiting; /* the thread's buffer; NULL: the thread is idle */
	bool stop;
	struct err failure;
	/* reading */
	size_t next_key; /* in the only buffer, if nothing was merged */
	size_t *heap, heap_count;
	bool begun;
	unsigned char *windows; /* of the runs that are merged */
};

/* ---- orders ---------------------------------------------------------------------------------- */

static bool is_span_flow(const struct import_record *record)
{
	return record->kind == IMPORT_RECORD_SPAN_FLOW_OUT ||
	       record->kind == IMPORT_RECORD_SPAN_FLOW_IN;
}

static int rank_of(const struct import_record *record)
{
	return is_span_flow(record) ? IMPORT_RECORD_SPAN : record->kind;
}

int report__import_by_time(const struct import_record *a, const struct import_record *b)
{
	int order = SORTED_BY(a, b, time_ns);

	if (order == 0)
		order = SORTED_ORDER(rank_of(a), rank_of(b));
	/* The longest first, so that enclosing spans precede; -1 (no end) is the longest. */
	if (order == 0)
		order = SORTED_ORDER((uint64_t)b->dur_ns, (uint64_t)a->dur_ns);
	if (order == 0)
		order = SORTED_ORDER(is_span_flow(a), is_span_flow(b));
	return order != 0 ? order : SORTED_BY(a, b, number);
}

int report__import_by_pair(const struct import_record *a, const struct import_record *b)
{
	return SORTED_BY(a, b, value, time_ns, number);
}

static int compare_keys(const void *a, const void *b, void *user)
{
	const struct sort_key *x = a, *y = b;
	const struct import_sorter *sorter = user;

	int order = SORTED_BY(x, y, major);

	if (order == 0)
		order = sorter->order(x->record, y->record);
	/* a buffer has its records in the order of their puts */
	return order != 0 ? order : SORTED_ORDER((uintptr_t)x->record, (uintptr_t)y->record);
}

/* ---- sorting a buffer ------------------------------------------------------------------------ */

static uint64_t key_of_time(const struct import_record *record)
{
	return (uint64_t)record->time_ns ^ (uint64_t)1 << 63;
}

static uint64_t key_of_value(const struct import_record *record)
{
	return record->value;
}

/* Fill the keys, and return whether they are in order already. */
static bool fill_keys(const struct import_sorter *sorter, struct sort_buffer *buffer,
		      uint64_t (*key_of)(const struct import_record *record))
{
	bool sorted = true;

	for (size_t i = 0; i < buffer->count; i++) {
		buffer->keys[i].major = key_of(buffer->keys[i].record);
		sorted = sorted && (i == 0 || compare_keys(&buffer->keys[i - 1], &buffer->keys[i],
							   (void *)(uintptr_t)sorter) <= 0);
	}
	return sorted;
}

/* Sort by the bytes in which the keys differ, the lowest first. */
static void sort_by_bytes(struct import_sorter *sorter, struct sort_buffer *buffer)
{
	uint64_t differs = 0;

	for (size_t i = 1; i < buffer->count; i++)
		differs |= buffer->keys[i].major ^ buffer->keys[0].major;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct sort_key *from = buffer->keys, *to = sorter->spare;
		size_t at[256] = {0}, sum = 0, capacity = buffer->capacity;

		if ((differs >> shift & 255) == 0)
			continue;
		for (size_t i = 0; i < buffer->count; i++)
			at[from[i].major >> shift & 255]++;
		for (size_t i = 0; i < ARRAY_LEN(at); i++) {
			const size_t count = at[i];

			at[i] = sum;
			sum += count;
		}
		for (size_t i = 0; i < buffer->count; i++)
			to[at[from[i].major >> shift & 255]++] = from[i];
		buffer->keys = to;
		buffer->capacity = sorter->spare_capacity;
		sorter->spare = from;
		sorter->spare_capacity = capacity;
	}
}

static enum status sort_buffer(struct import_sorter *sorter, struct sort_buffer *buffer,
			       struct err *err)
{
	const bool by_pair = sorter->order == report__import_by_pair;
	struct sort_key *keys;

	if (fill_keys(sorter, buffer, by_pair ? key_of_value : key_of_time))
		return ST_OK;
	if (mem_grow(&sorter->spare, &sorter->spare_capacity, buffer->count,
		     sizeof(*sorter->spare)) != 0)
		return err_nomem(err);
	if (by_pair) {
		/* by time first, which stays the order of equal pairs */
		fill_keys(sorter, buffer, key_of_time);
		sort_by_bytes(sorter, buffer);
		fill_keys(sorter, buffer, key_of_value);
	}
	sort_by_bytes(sorter, buffer);
	/* Records of one key are sorted by the whole order. */
	keys = buffer->keys;
	for (size_t i = 0, end; i < buffer->count; i = end) {
		bool sorted = true;

		for (end = i + 1; end < buffer->count && keys[end].major == keys[i].major; end++)
			sorted = sorted &&
				 sorter->order(keys[end - 1].record, keys[end].record) <= 0;
		if (!sorted)
			qsort_r(keys + i, end - i, sizeof(*keys), compare_keys, sorter);
	}
	return ST_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Write what is buffered, or after a failure discard it: there is room for a record again. */
static void flush_write(struct import_sorter *sorter, struct err *err)
{
	if (!err_stuck(err))
		fs_write_at(sorter->fd, (uint64_t)sorter->file_end, sorter->write,
			    sorter->write_used, sorter->beside, err);
	sorter->file_end += (off_t)sorter->write_used;
	sorter->write_used = 0;
}

static void write_record(struct import_sorter *sorter, const struct import_record *record,
			 struct err *err)
{
	if (sorter->write_used + record->bytes > RUN_WRITE)
		flush_write(sorter, err);
	memcpy(sorter->write + sorter->write_used, record, record->bytes);
	sorter->write_used += record->bytes;
}

static enum status write_run(struct import_sorter *sorter, struct sort_buffer *buffer,
			     struct err *err)
{
	off_t at = sorter->file_end;

	if (sorter->fd < 0) {
		if (fs_unnamed(sorter->beside, &sorter->fd, err) != ST_OK)
			return err->status;
		sorter->write = mem_alloc(RUN_WRITE);
	}
	if (!sorter->write || mem_grow(&sorter->runs, &sorter->run_capacity, sorter->run_count + 1,
				       sizeof(*sorter->runs)) != 0)
		return err_nomem(err);
	for (size_t i = 0; i < buffer->count && !err_stuck(err); i++)
		write_record(sorter, buffer->keys[i].record, err);
	flush_write(sorter, err);
	if (err_stuck(err))
		return err->status;
	sorter->runs[sorter->run_count++] =
		(struct sort_run){.at = at, .end = sorter->file_end, .begin = at};
	buffer->used = 0;
	buffer->count = 0;
	return ST_OK;
}

static void *sort_main(void *user)
{
	struct import_sorter *sorter = user;

	pthread_mutex_lock(&sorter->lock);
	while (!sorter->stop || sorter->waiting) {
		struct err err = {ST_OK, ""};

		if (!sorter->waiting) {
			pthread_cond_wait(&sorter->changed, &sorter->lock);
			continue;
		}
		pthread_mutex_unlock(&sorter->lock);
		if (sort_buffer(sorter, sorter->waiting, &err) == ST_OK)
			write_run(sorter, sorter->waiting, &err);
		pthread_mutex_lock(&sorter->lock);
		if (sorter->failure.status == ST_OK)
			sorter->failure = err;
		sorter->waiting = NULL;
		pthread_cond_broadcast(&sorter->changed);
	}
	pthread_mutex_unlock(&sorter->lock);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status report__import_sorter_new(struct import_sorter **out, import_order order,
				      const char *beside, size_t memory, struct err *err)
{
	struct import_sorter *sorter = mem_calloc(1, sizeof(*sorter));

	*out = NULL;
	if (!sorter)
		return err_nomem(err);
	sorter->order = order;
	sorter->beside = beside;
	sorter->fd = -1;
	/* A record of the least size has a key of a third of it; there are two buffers, and the
	 * keys of one more. */
	sorter->size = max(memory / 3, 2 * IMPORT_RECORD_LIMIT);
	pthread_mutex_init(&sorter->lock, NULL);
	pthread_cond_init(&sorter->changed, NULL);
	*out = sorter;
	return ST_OK;
}

static void stop_thread(struct import_sorter *sorter)
{
	if (!sorter->threaded)
		return;
	pthread_mutex_lock(&sorter->lock);
	sorter->stop = true;
	pthread_cond_broadcast(&sorter->changed);
	pthread_mutex_unlock(&sorter->lock);
	pthread_join(sorter->thread, NULL);
	sorter->threaded = false;
}

static void free_buffer(struct sort_buffer *buffer)
{
	mem_free(buffer->bytes);
	mem_free(buffer->keys);
	*buffer = (struct sort_buffer){0};
}

void report__import_sorter_free(struct import_sorter *sorter)
{
	if (!sorter)
		return;
	stop_thread(sorter);
	for (size_t i = 0; i < ARRAY_LEN(sorter->buffers); i++)
		free_buffer(&sorter->buffers[i]);
	mem_free(sorter->spare);
	mem_free(sorter->windows);
	if (sorter->fd >= 0)
		close(sorter->fd);
	pthread_cond_destroy(&sorter->changed);
	pthread_mutex_destroy(&sorter->lock);
	mem_free(sorter->runs);
	mem_free(sorter->write);
	mem_free(sorter->heap);
	mem_free(sorter);
}

/* ---- putting --------------------------------------------------------------------------------- */

/* Hand the full buffer to the thread, after waiting until the thread has finished the other. */
static enum status submit_buffer(struct import_sorter *sorter, struct err *err)
{
	enum status status;

	if (!sorter->threaded) {
		if (thread_start(&sorter->thread, sort_main, sorter) != 0)
			return err_set(err, ST_NOMEM, "cannot start a thread for sorting");
		sorter->threaded = true;
	}
	pthread_mutex_lock(&sorter->lock);
	while (sorter->waiting)
		pthread_cond_wait(&sorter->changed, &sorter->lock);
	status = sorter->failure.status;
	if (status == ST_OK) {
		sorter->waiting = &sorter->buffers[sorter->current];
		sorter->current = 1 - sorter->current;
		pthread_cond_broadcast(&sorter->changed);
	} else if (err) {
		*err = sorter->failure;
	}
	pthread_mutex_unlock(&sorter->lock);
	return status;
}

enum status report__import_sorter_put(struct import_sorter *sorter, size_t bytes,
				      struct import_record **out, struct err *err)
{
	struct sort_buffer *buffer = &sorter->buffers[sorter->current];
	enum status status;

	if (buffer->used + bytes > sorter->size) {
		status = submit_buffer(sorter, err);
		if (status != ST_OK)
			return status;
		buffer = &sorter->buffers[sorter->current];
	}
	if (!buffer->bytes)
		buffer->bytes = mem_alloc(sorter->size);
	if (!buffer->bytes || (buffer->count == buffer->capacity &&
			       mem_grow(&buffer->keys, &buffer->capacity, buffer->count + 1,
					sizeof(*buffer->keys)) != 0))
		return err_nomem(err);
	*out = (struct import_record *)(void *)(buffer->bytes + buffer->used);
	buffer->keys[buffer->count++].record = *out;
	buffer->used += bytes;
	return ST_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Return the run's next record, or NULL at its end. The window must hold the whole record. */
static const struct import_record *run_record(const struct sort_run *run)
{
	return run->from == run->to
		       ? NULL
		       : (const struct import_record *)(const void *)(run->window + run->from);
}

/* Fill the window so that it holds the whole next record, if there is one. */
static void fill_run(struct import_sorter *sorter, struct sort_run *run, struct err *err)
{
	size_t have = run->to - run->from, want;
	const struct import_record *record = run_record(run);

	if (err_stuck(err) || (have >= sizeof(*record) && have >= record->bytes))
		return;
	memmove(run->window, run->window + run->from, have);
	run->from = 0;
	run->to = have;
	want = RUN_READ - have;
	if ((off_t)want > run->end - run->at)
		want = (size_t)(run->end - run->at);
	fs_read_at(sorter->fd, (uint64_t)run->at, run->window + have, want, sorter->beside, err);
	run->at += (off_t)want;
	run->to += want;
}

/* Of equal records that of the earlier run comes first. */
static bool run_before(const void *items, size_t a, size_t b)
{
	const struct import_sorter *sorter = items;
	const int order = sorter->order(run_record(&sorter->runs[a]), run_record(&sorter->runs[b]));

	return order != 0 ? order < 0 : a < b;
}

/* Begin to merge @count runs from @first on, at most MERGED. */
static void begin_merge(struct import_sorter *sorter, size_t first, size_t count, struct err *err)
{
	sorter->heap_count = 0;
	for (size_t i = 0; i < count && !err_stuck(err); i++) {
		sorter->runs[first + i].window = sorter->windows + i * RUN_READ;
		fill_run(sorter, &sorter->runs[first + i], err);
		sorter->heap[sorter->heap_count++] = first + i;
	}
	for (size_t i = sorter->heap_count / 2; i-- > 0 && !err_stuck(err);)
		sorted_sift(sorter->heap, sorter->heap_count, i, run_before, sorter);
}

/* Go on to the record after the first. */
static void advance_merge(struct import_sorter *sorter, struct err *err)
{
	struct sort_run *run = &sorter->runs[sorter->heap[0]];

	run->from += run_record(run)->bytes;
	fill_run(sorter, run, err);
	if (err_stuck(err))
		return;
	if (!run_record(run))
		sorter->heap[0] = sorter->heap[--sorter->heap_count];
	sorted_sift(sorter->heap, sorter->heap_count, 0, run_before, sorter);
}

/* Merge @count runs from @first on into one that takes their place, and give back their room. */
static void merge_runs(struct import_sorter *sorter, size_t first, size_t count, struct err *err)
{
	struct sort_run merged = {.at = sorter->file_end, .begin = sorter->file_end};

	begin_merge(sorter, first, count, err);
	while (!err_stuck(err) && sorter->heap_count > 0) {
		write_record(sorter, run_record(&sorter->runs[sorter->heap[0]]), err);
		advance_merge(sorter, err);
	}
	flush_write(sorter, err);
	if (err_stuck(err))
		return;
	merged.end = sorter->file_end;
	for (size_t i = first; i < first + count; i++)
		/* where the file system cannot, the room is taken until the import ends */
		(void)fallocate(sorter->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				sorter->runs[i].begin, sorter->runs[i].end - sorter->runs[i].begin);
	sorter->runs[first] = merged;
}

enum status report__import_sorter_read(struct import_sorter *sorter, struct err *err)
{
	if (err_stuck(err))
		return err->status;
	if (!sorter->threaded)
		return sort_buffer(sorter, &sorter->buffers[sorter->current], err);
	if (sorter->buffers[sorter->current].count > 0)
		submit_buffer(sorter, err);
	stop_thread(sorter);
	if (!err_stuck(err) && err_stuck(&sorter->failure))
		*err = sorter->failure;
	for (size_t i = 0; i < ARRAY_LEN(sorter->buffers); i++)
		free_buffer(&sorter->buffers[i]);
	mem_free(sorter->spare);
	sorter->spare = NULL;
	sorter->heap = mem_calloc(MERGED, sizeof(*sorter->heap));
	sorter->windows = mem_alloc(min(sorter->run_count, (size_t)MERGED) * RUN_READ);
	if (!err_stuck(err) && (!sorter->heap || !sorter->windows))
		err_nomem(err);
	/* Neighbours are merged until there are at most MERGED runs. */
	while (!err_stuck(err) && sorter->run_count > MERGED) {
		size_t kept = 0;

		for (size_t i = 0; i < sorter->run_count && !err_stuck(err); i += MERGED) {
			const size_t count = min(sorter->run_count - i, (size_t)MERGED);

			if (count > 1)
				merge_runs(sorter, i, count, err);
			sorter->runs[kept++] = sorter->runs[i];
		}
		sorter->run_count = kept;
	}
	mem_free(sorter->write);
	sorter->write = NULL;
	begin_merge(sorter, 0, sorter->run_count, err);
	return err->status;
}

const struct import_record *report__import_sorter_next(struct import_sorter *sorter,
						       struct err *err)
{
	const struct sort_buffer *buffer = &sorter->buffers[sorter->current];

	if (err_stuck(err))
		return NULL;
	if (!sorter->heap)
		return sorter->next_key < buffer->count ? buffer->keys[sorter->next_key++].record
							: NULL;
	if (sorter->begun && sorter->heap_count > 0)
		advance_merge(sorter, err);
	sorter->begun = true;
	if (err_stuck(err) || sorter->heap_count == 0)
		return NULL;
	return run_record(&sorter->runs[sorter->heap[0]]);
}
