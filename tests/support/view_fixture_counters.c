/*
 * Waves, no two neighbours alike, with a spike now and then, which only who keeps the greatest of a
 * cell shows.
 */
#include "support/view_fixture_counters.h"

#include <math.h>

#include "support/view_fixture.h"

#define SPIKE_EVERY 997

static void write_busy(struct ips_track *track, int samples, double most)
{
	struct ips_site *site = ips_site_intern("counter", "queue depth", NULL);

	for (int i = 0; i < samples; i++) {
		const double wave = 1 + sin(i * 12.0 / samples);
		const int64_t time = (int64_t)((double)VIEW_COUNTERS_NS * i / samples);

		ips_counter_at(track, site, time,
			       i % SPIKE_EVERY == SPIKE_EVERY / 2 ? most
								  : floor(most / 4 * wave) + i % 2);
	}
}

/* 0, 1 MB, 2 MB, ..., each at an eighth, three eighths, ... of the run. */
static void write_rare(struct ips_track *track)
{
	struct ips_site *site = ips_site_intern("counter", "pool bytes", NULL);

	for (int i = 0; i < VIEW_COUNTERS_RARE; i++)
		ips_counter_at(track, site,
			       (int64_t)VIEW_COUNTERS_NS * (2 * i + 1) / (2 * VIEW_COUNTERS_RARE),
			       i * 1048576.0);
}

bool view_fixture_counters_write(const char *path, int samples, double most)
{
	struct ips_recording *recording = view_fixture_record(path, "view_fixture_counters");
	struct ips_track *lanes[3];
	struct ips_site *run;

	if (!recording)
		return false;
	run = ips_site_intern("data", "load", NULL);
	lanes[0] = ips_track_open(recording, "main", NULL);
	lanes[1] = ips_track_open(recording, "loader", NULL);
	lanes[2] = ips_track_open(recording, "pool", NULL);
	for (int i = 0; i < 2; i++)
		for (int64_t at = 0; at < VIEW_COUNTERS_NS; at += VIEW_COUNTERS_NS / 100)
			ips_span_at(lanes[i], run, at, VIEW_COUNTERS_NS / 150);
	write_busy(lanes[0], samples, most);
	write_busy(lanes[1], samples / 10, most / 2);
	write_rare(lanes[2]);
	return ips_recording_close(recording, NULL, 0) == 0;
}
