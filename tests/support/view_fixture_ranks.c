/*
 * Each rank comes to a bucket of an update at a time of its own, leaves with the others, and has
 * hidden a part. The recordings are merged as those of a training are.
 */
#include "support/view_fixture_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "profiler/prof_merge.h"
#include "support/support.h"
#include "support/view_fixture.h"

#define US        1000
#define UPDATE_US 4000
#define BUCKET_US 300

/* When a rank comes, in us after the bucket's time; 0 to 140. */
static int64_t late_us(int rank, int update, int bucket)
{
	return ((rank * 37 + update * 11) % 14 + (rank + bucket) % 2) * 10;
}

static void write_calls(struct ips_recording *recording, int rank,
			const struct view_fixture_ranks *params)
{
	struct ips_site *sites[] = {ips_site_intern("mpi", "MPI_Ialltoallv", NULL),
				    ips_site_intern("mpi", "MPI_Iallgatherv", NULL)};
	struct ips_site *work = ips_site_intern("stage", "stage 0 weight update", NULL);
	struct ips_track *track = ips_track_open(recording, "worker 0", NULL);
	struct ips_keys keys = IPS_KEYS_NULL;

	for (int u = 0; u < params->updates; u++) {
		if (!params->plain)
			keys = (struct ips_keys){1,        u / 10,   u, IPS_NULL,  IPS_NULL,
						 IPS_NULL, IPS_NULL, 0, IPS_TRAIN, IPS_UPDATE};
		ips_track_set_keys(track, &keys);
		for (int i = 0; i < 2 * params->buckets; i++) {
			const int64_t late = late_us(rank, u, i);
			const int64_t start = UPDATE_US * u + BUCKET_US * i + late;

			ips_span_at(track, sites[i % 2], start * US, (150 - late) * US);
			ips_span_arg_int(track, "bytes", 1000 * (rank + 1) + u);
			ips_span_arg_int(track, "size", 40000);
			ips_span_arg_int(track, "ranks", params->ranks);
			ips_span_arg_int(track, "bucket", i / 2);
			if (!params->plain)
				ips_span_arg_int(track, "hidden_ns", (rank + i) % 5 * 20 * US);
		}
		ips_span_at(track, work, (UPDATE_US * u + BUCKET_US * 2 * params->buckets) * US,
			    100 * US);
	}
}

static bool write_rank(const char *path, int rank, const struct view_fixture_ranks *params)
{
	struct ips_recording_params of;
	struct ips_recording *recording;

	ips_recording_params_defaults(&of);
	of.command = "ipu-train ranks.json";
	of.rank = rank;
	of.alone = 1;
	if (ips_recording_open(&recording, path, &of, NULL, 0))
		return false;
	write_calls(recording, rank, params);
	return ips_recording_close(recording, NULL, 0) == 0;
}

static bool write_merged(const char *path, const void *of)
{
	const struct view_fixture_ranks *params = of;
	const struct prof_merge_params how = {.align = PROF_MERGE_ALIGN_NONE};
	const size_t count = (size_t)params->ranks;
	char(*names)[FS_PATH_SIZE] = mem_calloc(count, sizeof(*names));
	struct prof_merge_source *sources = mem_calloc(count, sizeof(*sources));
	FILE *file = fopen(path, "wb");
	bool done = names && sources && file && fclose(file) == 0;

	for (int r = 0; r < params->ranks && done; r++) {
		done = fs_path(names[r], "%s.rank%d", path, r) && write_rank(names[r], r, params);
		sources[r].path = names[r];
	}
	done = done && prof_merge(path, sources, count, &how, NULL) == ST_OK;
	for (size_t r = 0; names && r < count; r++)
		if (names[r][0])
			unlink(names[r]);
	mem_free(sources);
	mem_free(names);
	return done;
}

bool view_fixture_ranks_write(const char *path, const struct view_fixture_ranks *params)
{
	return view_fixture_once(path, write_merged, params, sizeof(*params));
}
