/*
 * Levels: buckets, their roll-up, increments and rows. See prof_levels.h.
 */
#include "profiler/prof_levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"

void prof_levels_fini(struct prof_levels *levels)
{
	mem_free(levels->depths);
	mem_free(levels->increments);
	memset(levels, 0, sizeof(*levels));
}

void prof_levels_free_empty(struct prof_levels *levels, bool depths)
{
	mem_free(levels->increments);
	levels->increments = NULL;
	levels->capacity = 0;
	if (!depths)
		return;
	mem_free(levels->depths);
	levels->depths = NULL;
	levels->depth_count = 0;
	levels->depth_capacity = 0;
}

/* Add to @site's share. The least of the four shares is evicted; the new site inherits its slot. */
static void share_add(struct prof_share *shares, uint32_t site, int64_t ns)
{
	struct prof_share *least = &shares[0];

	for (int i = 0; i < PROF_SHARES; i++) {
		if (shares[i].site == site || shares[i].site == 0) {
			shares[i].site = site;
			shares[i].ns += ns;
			return;
		}
		if (shares[i].ns < least->ns)
			least = &shares[i];
	}
	if (ns > least->ns) {
		least->site = site;
		least->ns = ns;
	}
}

static struct prof_share greatest_share(const struct prof_share *shares)
{
	struct prof_share best = shares[0];

	for (int i = 1; i < PROF_SHARES; i++) {
		if (shares[i].site != 0 && shares[i].ns > best.ns)
			best = shares[i];
	}
	return best;
}

static void merge_shares(struct prof_share *into, const struct prof_share *from)
{
	for (int i = 0; i < PROF_SHARES && from[i].site != 0; i++)
		share_add(into, from[i].site, from[i].ns);
}

static void emit(struct prof_levels *levels, uint32_t depth, int level,
		 const struct prof_bucket *bucket)
{
	struct prof_increment *increment;

	if (mem_grow(&levels->increments, &levels->capacity, levels->count + 1,
		     sizeof(*levels->increments)) != 0) {
		levels->failed = true;
		return;
	}
	increment = &levels->increments[levels->count++];
	increment->bucket = bucket->index;
	increment->busy_ns = bucket->busy_ns;
	increment->count = bucket->count;
	increment->share = greatest_share(bucket->whole);
	increment->depth = depth;
	increment->level = level;
}

/* Make @bucket the one with number @index; its previous contents must have been flushed. */
static void switch_bucket(struct prof_bucket *bucket, int64_t index)
{
	if (bucket->index == index)
		return;
	memset(bucket, 0, sizeof(*bucket));
	bucket->index = index;
}

static bool is_empty(const struct prof_bucket *bucket)
{
	return bucket->count == 0 && bucket->busy_ns == 0;
}

/* Flush bucket @low of @depth: emit its increment and add it to the next coarser level. If the open
 * bucket there has another number, flush that one first, and so on upwards. */
static void flush_bucket(struct prof_levels *levels, uint32_t depth, int low)
{
	struct prof_bucket *buckets = levels->depths[depth];
	int high = low;

	while (high + 1 < PROF_LEVELS && !is_empty(&buckets[high + 1]) &&
	       buckets[high + 1].index != buckets[high].index >> 2)
		high++;
	for (int l = high; l >= low; l--) {
		struct prof_bucket *bucket = &buckets[l];

		merge_shares(bucket->whole, bucket->part);
		emit(levels, depth, l, bucket);
		if (l + 1 < PROF_LEVELS) {
			switch_bucket(&buckets[l + 1], bucket->index >> 2);
			buckets[l + 1].busy_ns += bucket->busy_ns;
			buckets[l + 1].count += bucket->count;
			merge_shares(buckets[l + 1].part, bucket->part);
		}
		bucket->busy_ns = 0;
		bucket->count = 0;
		memset(bucket->part, 0, sizeof(bucket->part));
	}
}

static void flush_below(struct prof_levels *levels, uint32_t depth, int level)
{
	for (int l = 0; l < level; l++) {
		if (!is_empty(&levels->depths[depth][l]))
			flush_bucket(levels, depth, l);
	}
}

static void add_to_bucket(struct prof_levels *levels, uint32_t depth, int level, int64_t index,
			  int64_t ns, int64_t count, uint32_t site)
{
	struct prof_bucket *bucket = &levels->depths[depth][level];

	if (bucket->index != index) {
		if (!is_empty(bucket))
			flush_bucket(levels, depth, level);
		switch_bucket(bucket, index);
	}
	bucket->busy_ns += ns;
	bucket->count += count;
	share_add(bucket->part, site, ns);
}

void prof_levels_add(struct prof_levels *levels, uint32_t depth, int64_t start_ns, int64_t dur_ns,
		     uint32_t site, int finest)
{
	int level = prof_level_enter(dur_ns), shift;
	int64_t end_ns = start_ns + dur_ns, count = 1;

	if (level < finest)
		level = finest;
	if (level >= PROF_LEVELS)
		return;
	shift = prof_level_shift(level);
	if (depth >= levels->depth_count) {
		if (mem_grow(&levels->depths, &levels->depth_capacity, (size_t)depth + 1,
			     sizeof(*levels->depths)) != 0) {
			levels->failed = true;
			return;
		}
		memset(levels->depths + levels->depth_count, 0,
		       ((size_t)depth + 1 - levels->depth_count) * sizeof(*levels->depths));
		levels->depth_count = (size_t)depth + 1;
	}
	if (level > 0)
		flush_below(levels, depth, level);
	while (start_ns >> shift < end_ns >> shift) {
		int64_t edge = ((start_ns >> shift) + 1) << shift;

		add_to_bucket(levels, depth, level, start_ns >> shift, edge - start_ns, count,
			      site);
		start_ns = edge;
		count = 0;
	}
	if (start_ns < end_ns || count > 0)
		add_to_bucket(levels, depth, level, start_ns >> shift, end_ns - start_ns, count,
			      site);
}

static int compare_increments(const void *a, const void *b)
{
	const struct prof_increment *x = a, *y = b;

	return SORTED_BY(x, y, level, bucket, depth);
}

void prof_levels_flush(struct prof_levels *levels)
{
	for (size_t depth = 0; depth < levels->depth_count; depth++)
		flush_below(levels, (uint32_t)depth, PROF_LEVELS);
}

int prof_levels_finest(const struct prof_levels *levels, int64_t length_ns)
{
	int64_t rows[PROF_LEVELS] = {0}, spans[PROF_LEVELS] = {0}, most[PROF_LEVELS] = {0};
	int level = 0;

	for (size_t i = 0; i < levels->count; i++) {
		const struct prof_increment *increment = &levels->increments[i];

		rows[increment->level]++;
		spans[increment->level] += increment->count;
		if (increment->count > most[increment->level])
			most[increment->level] = increment->count;
	}
	while (level + 1 < PROF_LEVELS && spans[level] < PROF_DENSE * rows[level] &&
	       most[level] <= PROF_CROWD && length_ns >> prof_level_shift(level) > 0)
		level++;
	return level;
}

static bool same_bucket(const struct prof_increment *a, const struct prof_increment *b)
{
	return a->level == b->level && a->bucket == b->bucket && a->depth == b->depth;
}

enum status prof_levels_compact(struct prof_levels *levels, int finest, struct err *err)
{
	struct prof_increment *all = levels->increments, *last = NULL;
	size_t kept = 0;

	if (levels->failed)
		return err_nomem(err);
	for (size_t i = 0; i < levels->count; i++) {
		if (all[i].level >= finest)
			all[kept++] = all[i];
	}
	if (kept > 1)
		qsort(all, kept, sizeof(*all), compare_increments);
	levels->count = 0;
	for (size_t i = 0; i < kept; i++) {
		if (!last || !same_bucket(last, &all[i])) {
			last = &all[levels->count++];
			*last = all[i];
			continue;
		}
		last->busy_ns += all[i].busy_ns;
		last->count += all[i].count;
		if (all[i].share.ns > last->share.ns)
			last->share = all[i].share;
	}
	return ST_OK;
}

/* ---- counters -------------------------------------------------------------------------------- */

void prof_counters_fini(struct prof_counters *counters)
{
	mem_free(counters->series);
	mem_free(counters->increments);
	memset(counters, 0, sizeof(*counters));
}

void prof_counters_free_empty(struct prof_counters *counters)
{
	mem_free(counters->increments);
	counters->increments = NULL;
	counters->capacity = 0;
}

static void samples_merge(struct prof_samples *into, const struct prof_samples *from)
{
	if (into->count == 0 || from->least < into->least)
		into->least = from->least;
	if (into->count == 0 || from->greatest > into->greatest)
		into->greatest = from->greatest;
	into->total += from->total;
	into->count += from->count;
}

static void switch_samples(struct prof_samples *samples, int64_t index)
{
	if (samples->index == index)
		return;
	memset(samples, 0, sizeof(*samples));
	samples->index = index;
}

static void flush_samples(struct prof_counters *counters, struct prof_series *series, int low)
{
	struct prof_samples *levels = series->levels;
	int high = low;

	while (high + 1 < PROF_LEVELS && levels[high + 1].count > 0 &&
	       levels[high + 1].index != levels[high].index >> 2)
		high++;
	for (int l = high; l >= low; l--) {
		if (mem_grow(&counters->increments, &counters->capacity, counters->count + 1,
			     sizeof(*counters->increments)) != 0) {
			counters->failed = true;
			return;
		}
		counters->increments[counters->count++] =
			(struct prof_sample_increment){series->site, l, levels[l]};
		if (l + 1 < PROF_LEVELS) {
			switch_samples(&levels[l + 1], levels[l].index >> 2);
			samples_merge(&levels[l + 1], &levels[l]);
		}
		levels[l] = (struct prof_samples){levels[l].index, 0, 0.0, 0.0, 0.0};
	}
}

static struct prof_series *get_series(struct prof_counters *counters, uint32_t site)
{
	for (size_t i = 0; i < counters->series_count; i++) {
		if (counters->series[i].site == site)
			return &counters->series[i];
	}
	if (mem_grow(&counters->series, &counters->series_capacity, counters->series_count + 1,
		     sizeof(*counters->series)) != 0) {
		counters->failed = true;
		return NULL;
	}
	memset(&counters->series[counters->series_count], 0, sizeof(*counters->series));
	counters->series[counters->series_count].site = site;
	return &counters->series[counters->series_count++];
}

void prof_counters_add(struct prof_counters *counters, uint32_t site, int64_t time_ns, double value)
{
	struct prof_series *series = isnan(value) ? NULL : get_series(counters, site);
	struct prof_samples *samples,
		sample = {time_ns >> PROF_LEVEL_SHIFT, 1, value, value, value};

	if (!series)
		return;
	samples = &series->levels[0];
	if (samples->index != sample.index && samples->count > 0)
		flush_samples(counters, series, 0);
	switch_samples(samples, sample.index);
	samples_merge(samples, &sample);
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum status prof__insert_levels(struct prof_insert *rows, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err)
{
	enum status status = prof_levels_compact(levels, finest, err);

	for (size_t i = 0; i < levels->count && status == ST_OK; i++) {
		const struct prof_increment *increment = &levels->increments[i];
		struct prof_cell *cells;

		status = prof_insert_row(rows, &cells, err);
		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], track_id);
		prof_cell_int(&cells[1], increment->level);
		prof_cell_int(&cells[2], increment->bucket);
		prof_cell_int(&cells[3], increment->depth);
		prof_cell_int(&cells[4], increment->busy_ns);
		prof_cell_int(&cells[5], increment->count);
		prof_cell_int(&cells[6], increment->share.site);
		prof_cell_int(&cells[7], increment->share.ns);
	}
	levels->count = 0;
	return status;
}

enum status prof__insert_counters(struct prof_insert *rows, int64_t track_id,
				  struct prof_counters *counters, struct err *err)
{
	for (size_t i = 0; i < counters->series_count; i++) {
		for (int l = 0; l < PROF_LEVELS; l++) {
			if (counters->series[i].levels[l].count > 0)
				flush_samples(counters, &counters->series[i], l);
		}
	}
	if (counters->failed)
		return err_nomem(err);
	for (size_t i = 0; i < counters->count; i++) {
		const struct prof_sample_increment *increment = &counters->increments[i];
		struct prof_cell *cells;
		enum status status = prof_insert_row(rows, &cells, err);

		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], track_id);
		prof_cell_int(&cells[1], increment->site);
		prof_cell_int(&cells[2], increment->level);
		prof_cell_int(&cells[3], increment->samples.index);
		prof_cell_int(&cells[4], increment->samples.count);
		prof_cell_real(&cells[5], increment->samples.least);
		prof_cell_real(&cells[6], increment->samples.greatest);
		prof_cell_real(&cells[7], increment->samples.total);
	}
	counters->count = 0;
	return ST_OK;
}
