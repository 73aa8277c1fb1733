/*
 * Recordings of every kind, made by the fixtures.
 *
 * Threading: one thread. Ownership: the paths are the file's own.
 */
#include "support/view_recordings.h"

#include <stdio.h>

#include "common/mem.h"
#include "profiler/prof_merge.h"
#include "support/report_sample.h"
#include "reports/import/report_import.h"
#include "support/support.h"
#include "support/view_fixture.h"
#include "support/view_fixture_device.h"
#include "support/view_fixture_gpu.h"
#include "support/view_fixture_liveness.h"
#include "support/view_fixture_memory.h"
#include "support/view_fixture_metrics.h"
#include "support/view_fixture_model.h"
#include "support/view_fixture_ranks.h"
#include "support/view_fixture_tensors.h"

static void make_sample(const char *path)
{
	report_sample_write(path);
}

static void make_killed(const char *path)
{
	report_sample_write_killed(path);
}

static void make_empty(const char *path)
{
	report_sample_write_empty(path);
}

static void make_timeline(const char *path)
{
	assert_true(view_fixture_write(path, 3));
}

static void make_model(const char *path)
{
	assert_true(view_fixture_model_write(path, false));
}

static void make_other_model(const char *path)
{
	assert_true(view_fixture_model_write(path, true));
}

static void make_memory(const char *path)
{
	assert_true(view_fixture_memory_write(path, VIEW_FIXTURE_FULL, 2));
}

static void make_liveness(const char *path)
{
	const struct view_fixture_liveness params = {
		.steps = 40, .variables = 12, .scale = 1, .tiles = 6};

	assert_true(view_fixture_liveness_write(path, &params));
}

static void make_metrics(const char *path)
{
	const struct view_fixture_metrics params = {
		.epochs = 2, .steps = 30, .factor = 2, .nan_every = 7};

	assert_true(view_fixture_metrics_write(path, &params));
}

static void make_device(const char *path)
{
	assert_true(view_fixture_device_write(path));
}

static void make_programs(const char *path)
{
	assert_true(view_fixture_programs_write(path, 5, 6));
}

/* Another program's trace. */
static void make_foreign(const char *path)
{
	static const char text[] =
		"[{\"ph\":\"X\",\"ts\":1,\"dur\":50,\"pid\":1,\"tid\":1,\"name\":\"outer\"},"
		"{\"ph\":\"X\",\"ts\":5,\"dur\":20,\"pid\":1,\"tid\":1,\"name\":\"inner\","
		"\"args\":{\"layer\":\"Dense\",\"step\":-3}},"
		"{\"ph\":\"i\",\"ts\":9,\"pid\":1,\"tid\":2,\"name\":\"instant\",\"s\":\"t\"},"
		"{\"ph\":\"C\",\"ts\":3,\"pid\":1,\"name\":\"counter\",\"args\":{\"v\":2.5}}]";
	char trace[SUPPORT_PATH_SIZE + 64];
	struct report_import_params params = {.trace = trace, .output = path, .force = true};
	struct report_import_counts counts;

	snprintf(trace, sizeof(trace), "%s.json", path);
	support_write_file(trace, text, sizeof(text) - 1);
	assert_int_equal(report_import(&params, &counts, NULL), ST_OK);
}

static void make_ranks(const char *path)
{
	const struct view_fixture_ranks params = {.ranks = 3, .updates = 40, .buckets = 1};

	assert_true(view_fixture_ranks_write(path, &params));
}

static void make_tensors(const char *path)
{
	const struct view_fixture_tensors params = {.steps = 30, .hits = 12, .scale = 1};

	assert_true(view_fixture_tensors_write(path, &params));
}

static void make_gpu(const char *path)
{
	assert_true(view_fixture_gpu_write(path, NULL));
}

/* Two ranks of one sample. */
static void make_merged(const char *path)
{
	char part[SUPPORT_PATH_SIZE + 64];
	struct prof_merge_source sources[2] = {{.path = part}, {.path = part}};

	snprintf(part, sizeof(part), "%s.part", path);
	report_sample_write(part);
	support_write_file(path, "", 0);
	assert_int_equal(prof_merge(path, sources, 2, &(struct prof_merge_params){0}, NULL), ST_OK);
}

static void (*const recordings[])(const char *) = {
	make_sample,      make_killed, make_empty,    make_foreign, make_timeline, make_model,
	make_other_model, make_memory, make_liveness, make_metrics, make_device,   make_programs,
	make_tensors,     make_ranks,  make_gpu,      make_merged};
const size_t view_recordings_count = ARRAY_LEN(recordings);

const char *view_recording(const char *folder, size_t which)
{
	static char paths[ARRAY_LEN(recordings)][SUPPORT_PATH_SIZE + 32];

	which %= ARRAY_LEN(recordings);
	if (!paths[which][0]) {
		snprintf(paths[which], sizeof(paths[which]), "%s/%zu.db", folder, which);
		recordings[which](paths[which]);
	}
	return paths[which];
}
