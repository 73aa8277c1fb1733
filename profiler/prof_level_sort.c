/*
 * Sorting the increments of levels. See prof_bulk.h.
 */
#include "profiler/prof_bulk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define RUNS_MOST 2000

struct level_row {
	int64_t track_id, bucket, busy_ns, count, site_ns;
	uint32_t depth, site;
	int32_t level;
	uint32_t number; /* in the buffer */
};

/* A part of the file, in rows, and of the buffer that holds its next ones. */
struct level_run {
	uint64_t at, end;
	struct level_row *window;
	size_t from, to, size;
};

struct prof_level_sort {
	const char *beside;
	struct level_row *rows;
	size_t count, capacity;
	int fd; /* -1: everything fits into the buffer */
	uint64_t written;
	struct level_run *runs;
	size_t run_count, run_capacity;
	size_t *heap; /* of the runs that have rows left: that with the least one is the first */
	size_t heap_count;
};

enum status prof_level_sort_new(struct prof_level_sort **out, const char *beside, size_t rows,
				struct err *err)
{
	struct prof_level_sort *sort = mem_calloc(1, sizeof(*sort));

	*out = NULL;
	if (!sort)
		return err_nomem(err);
	sort->beside = beside;
	sort->fd = -1;
	sort->capacity = rows;
	sort->rows = mem_alloc(rows * sizeof(*sort->rows));
	if (!sort->rows) {
		mem_free(sort);
		return err_nomem(err);
	}
	*out = sort;
	return ST_OK;
}

void prof_level_sort_free(struct prof_level_sort *sort)
{
	if (!sort)
		return;
	if (sort->fd >= 0)
		close(sort->fd);
	mem_free(sort->heap);
	mem_free(sort->runs);
	mem_free(sort->rows);
	mem_free(sort);
}

/* ---- putting --------------------------------------------------------------------------------- */

static int compare_keys(const struct level_row *a, const struct level_row *b)
{
	return SORTED_BY(a, b, track_id, level, bucket, depth);
}

static int compare_rows(const void *a, const void *b)
{
	const struct level_row *x = a, *y = b;
	const int order = compare_keys(x, y);

	return order != 0 ? order : SORTED_BY(x, y, number);
}

static void sort_buffer(struct prof_level_sort *sort)
{
	qsort(sort->rows, sort->count, sizeof(*sort->rows), compare_rows);
}

/* Write the buffer as a run, and empty it. */
static enum status write_run(struct prof_level_sort *sort, struct err *err)
{
	enum status status = ST_OK;

	/* The merge has a row of the buffer for each run. */
	if (sort->run_count == RUNS_MOST || sort->run_count == sort->capacity)
		return err_set(err, ST_LIMIT, "too many rows of levels");
	if (mem_grow(&sort->runs, &sort->run_capacity, sort->run_count + 1, sizeof(*sort->runs)) !=
	    0)
		return err_nomem(err);
	sort_buffer(sort);
	if (sort->fd < 0)
		status = fs_unnamed(sort->beside, &sort->fd, err);
	if (status == ST_OK)
		status = fs_write_at(sort->fd, sort->written * sizeof(*sort->rows), sort->rows,
				     sort->count * sizeof(*sort->rows), "rows of levels", err);
	sort->runs[sort->run_count++] =
		(struct level_run){.at = sort->written, .end = sort->written + sort->count};
	sort->written += sort->count;
	sort->count = 0;
	return status;
}

enum status prof_level_sort_put(struct prof_level_sort *sort, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err)
{
	enum status status = prof_levels_compact(levels, finest, err);

	for (size_t i = 0; i < levels->count && status == ST_OK; i++) {
		const struct prof_increment *increment = &levels->increments[i];

		if (sort->count == sort->capacity)
			status = write_run(sort, err);
		if (status != ST_OK)
			break;
		sort->rows[sort->count] = (struct level_row){
			.track_id = track_id,
			.bucket = increment->bucket,
			.busy_ns = increment->busy_ns,
			.count = increment->count,
			.site_ns = increment->share.ns,
			.depth = increment->depth,
			.site = increment->share.site,
			.level = increment->level,
			.number = (uint32_t)sort->count,
		};
		sort->count++;
	}
	levels->count = 0;
	return status;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Let the run's window have its next row, if there is one. */
static enum status fill_window(struct prof_level_sort *sort, struct level_run *run, struct err *err)
{
	const size_t count = (size_t)min((uint64_t)run->size, run->end - run->at);
	enum status status;

	if (run->from < run->to || count == 0)
		return ST_OK;
	status = fs_read_at(sort->fd, run->at * sizeof(*run->window), run->window,
			    count * sizeof(*run->window), "rows of levels", err);
	run->at += count;
	run->from = 0;
	run->to = count;
	return status;
}

/* Of equal rows that of the earlier run comes first. */
static bool run_before(const void *items, size_t a, size_t b)
{
	const struct level_run *runs = items, *x = &runs[a], *y = &runs[b];
	const int order = compare_keys(&x->window[x->from], &y->window[y->from]);

	return order != 0 ? order < 0 : a < b;
}

/* Prepare the merge: a buffer that was never full is the only run. */
static enum status begin_merge(struct prof_level_sort *sort, struct err *err)
{
	enum status status = ST_OK;

	if (sort->fd >= 0) {
		status = write_run(sort, err);
	} else {
		if (mem_grow(&sort->runs, &sort->run_capacity, 1, sizeof(*sort->runs)) != 0)
			return err_nomem(err);
		sort_buffer(sort);
		sort->runs[sort->run_count++] =
			(struct level_run){.window = sort->rows, .to = sort->count};
	}
	if (status != ST_OK)
		return status;
	sort->heap = mem_calloc(sort->run_count, sizeof(*sort->heap));
	if (!sort->heap)
		return err_nomem(err);
	for (size_t i = 0; i < sort->run_count && status == ST_OK; i++) {
		struct level_run *run = &sort->runs[i];

		if (sort->fd >= 0) {
			run->size = sort->capacity / sort->run_count;
			run->window = sort->rows + i * run->size;
			status = fill_window(sort, run, err);
		}
		if (run->from < run->to)
			sort->heap[sort->heap_count++] = i;
	}
	for (size_t i = sort->heap_count / 2; i-- > 0 && status == ST_OK;)
		sorted_sift(sort->heap, sort->heap_count, i, run_before, sort->runs);
	return status;
}

/* Go on to the row after the least. */
static enum status advance_merge(struct prof_level_sort *sort, struct err *err)
{
	struct level_run *run = &sort->runs[sort->heap[0]];
	enum status status;

	run->from++;
	status = fill_window(sort, run, err);
	if (status != ST_OK)
		return status;
	if (run->from == run->to)
		sort->heap[0] = sort->heap[--sort->heap_count];
	sorted_sift(sort->heap, sort->heap_count, 0, run_before, sort->runs);
	return ST_OK;
}

static enum status put_row(struct prof_insert *rows, const struct level_row *row, struct err *err)
{
	struct prof_cell *cells;
	enum status status = prof_insert_row(rows, &cells, err);

	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], row->track_id);
	prof_cell_int(&cells[1], row->level);
	prof_cell_int(&cells[2], row->bucket);
	prof_cell_int(&cells[3], row->depth);
	prof_cell_int(&cells[4], row->busy_ns);
	prof_cell_int(&cells[5], row->count);
	prof_cell_int(&cells[6], row->site);
	prof_cell_int(&cells[7], row->site_ns);
	return ST_OK;
}

enum status prof_level_sort_load(struct prof_level_sort *sort, struct prof_insert *rows,
				 struct err *err)
{
	struct level_row sum = {.count = 0};
	enum status status = begin_merge(sort, err);
	bool any = false;

	while (status == ST_OK && sort->heap_count > 0) {
		const struct level_run *run = &sort->runs[sort->heap[0]];
		const struct level_row *row = &run->window[run->from];

		if (any && compare_keys(&sum, row) == 0) {
			sum.busy_ns += row->busy_ns;
			sum.count += row->count;
			sum.site = row->site_ns >= sum.site_ns ? row->site : sum.site;
			sum.site_ns = max(row->site_ns, sum.site_ns);
		} else {
			if (any)
				status = put_row(rows, &sum, err);
			if (status != ST_OK)
				return status;
			sum = *row;
			any = true;
		}
		status = advance_merge(sort, err);
	}
	if (status == ST_OK && any)
		status = put_row(rows, &sum, err);
	return status == ST_OK ? prof_insert_flush(rows, err) : status;
}
