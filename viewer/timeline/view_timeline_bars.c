/*
 * The bars of the lanes in the picture, kept from one picture to the next: who pans, or moves the
 * cursor, waits for what is new only.
 *
 * Bars of one level are the same whatever window they are read for, and the bars of a window are
 * those of its parts. So as long as the level stays, what is kept is cut to the new window, and
 * what it lacks is read to the left and to the right.
 *
 * Threading: one thread. Ownership: bars are tl->bars', until the next picture or news.
 */
#include <string.h>

#include "common/mem.h"
#include "viewer/timeline/view_timeline_internal.h"

static struct view_bars *view_bars_of(struct view_timeline *tl, int64_t track_id)
{
	for (size_t i = 0; i < tl->bars_count; i++)
		if (tl->bars[i].track_id == track_id)
			return &tl->bars[i];
	if (mem_grow(&tl->bars, &tl->bars_capacity, tl->bars_count + 1, sizeof(*tl->bars)))
		return NULL;
	tl->bars[tl->bars_count] = (struct view_bars){.track_id = track_id};
	return &tl->bars[tl->bars_count++];
}

/* As prof_timeline_bars() has it: what has no length is where it starts. */
static bool view_overlaps(const struct prof_bar *bar, struct view_window window)
{
	return bar->start_ns < window.to &&
	       (bar->start_ns >= window.from || bar->start_ns + bar->dur_ns > window.from);
}

/* Merge the @count bars at @more into those of @kept that are in @window; bars of both are one. */
static enum status view_merge(struct view_bars *kept, struct view_window window,
			      const struct prof_bar *more, int count, struct err *err)
{
	struct prof_bar *all = mem_calloc((size_t)kept->count + (size_t)count + 1, sizeof(*all));
	int used = 0;

	if (!all)
		return err_nomem(err);
	for (int a = 0, b = 0; a < kept->count || b < count;) {
		const int order = a == kept->count ? 1
				  : b == count     ? -1
						   : prof_timeline_order(&kept->bars[a], &more[b]);
		const struct prof_bar *bar = order <= 0 ? &kept->bars[a] : &more[b];

		a += order <= 0;
		b += order >= 0;
		if (view_overlaps(bar, window))
			all[used++] = *bar;
	}
	mem_free(kept->bars);
	kept->bars = all;
	kept->count = used;
	return ST_OK;
}

/* Read @part of the track, which leaves @kept with the bars of @window as far as they are known. */
static enum status view_read_part(struct view_timeline *tl, struct view_bars *kept,
				  struct view_window part, struct view_window window,
				  int64_t now_ns, struct prof_db *db, struct err *err)
{
	struct prof_bar *bars;
	int count;
	enum status status =
		prof_timeline_bars_at(db, kept->track_id, kept->level, part.from, part.to, now_ns,
				      &tl->picture, &bars, &count, err);

	return status == ST_OK ? view_merge(kept, window, bars, count, err) : status;
}

static enum status view_bars_read(struct view_timeline *tl, struct view_bars *kept,
				  const struct view_clock *clock, struct prof_db *db,
				  struct err *err)
{
	const struct view_window window = clock->window, had = kept->window;
	const int level = prof_timeline_level(window.to - window.from, tl->width);
	const int64_t now_ns = clock->extent.to;
	enum status status = ST_OK;

	if (!kept->bars || kept->level != level || had.to <= window.from || had.from >= window.to) {
		kept->count = 0;
		kept->level = level;
		return view_read_part(tl, kept, window, window, now_ns, db, err);
	}
	if (had.from == window.from && had.to == window.to)
		return ST_OK;
	if (window.from < had.from)
		status = view_read_part(tl, kept, (struct view_window){window.from, had.from},
					window, now_ns, db, err);
	if (status == ST_OK && window.to > had.to)
		status = view_read_part(tl, kept, (struct view_window){had.to, window.to}, window,
					now_ns, db, err);
	if (status == ST_OK && window.from >= had.from && window.to <= had.to)
		status = view_merge(kept, window, NULL, 0, err);
	return status;
}

enum status view__bars_load(struct view_timeline *tl, struct view_lane *lane, struct prof_db *db,
			    struct err *err)
{
	const struct view_clock *clock = &tl->clock[lane->track->clock == IPS_DEVICE];
	struct view_bars *kept = view_bars_of(tl, lane->track->track_id);
	enum status status;

	lane->bars = NULL;
	lane->bar_count = 0;
	if (!kept)
		return err_nomem(err);
	status = view_bars_read(tl, kept, clock, db, err);
	if (status != ST_OK) {
		/* What is half read is as good as nothing. */
		mem_free(kept->bars);
		kept->bars = NULL;
		return status;
	}
	kept->window = clock->window;
	kept->used = true;
	lane->bars = kept->bars;
	lane->bar_count = kept->count;
	return ST_OK;
}

void view__bars_trim(struct view_timeline *tl)
{
	size_t used = 0;

	for (size_t i = 0; i < tl->bars_count; i++) {
		if (!tl->bars[i].used) {
			mem_free(tl->bars[i].bars);
			continue;
		}
		tl->bars[i].used = false;
		tl->bars[used++] = tl->bars[i];
	}
	tl->bars_count = used;
}

void view__bars_forget(struct view_timeline *tl)
{
	for (size_t i = 0; i < tl->bars_count; i++)
		mem_free(tl->bars[i].bars);
	tl->bars_count = 0;
}
