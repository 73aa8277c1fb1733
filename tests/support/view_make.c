/*
 * view_make FILE [UPDATES | TOPIC]: write one of the viewer's test recordings, for scripts: the
 * general one, with so many weight updates, or the one that the tests of a screen look at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_counters.h"
#include "support/view_fixture_device.h"
#include "support/view_fixture_gpu.h"
#include "support/view_fixture_liveness.h"
#include "support/view_fixture_memory.h"
#include "support/view_fixture_metrics.h"
#include "support/view_fixture_model.h"
#include "support/view_fixture_ranks.h"
#include "support/view_fixture_tensors.h"

static bool make_memory(const char *path)
{
	return view_fixture_memory_write(path, VIEW_FIXTURE_FULL, 2);
}

static bool make_counters(const char *path)
{
	return view_fixture_counters_write(path, 60000, 12);
}

static bool make_gpu(const char *path)
{
	return view_fixture_gpu_write(path, NULL);
}

static bool make_liveness(const char *path)
{
	const struct view_fixture_liveness params = {
		.steps = 60, .variables = 40, .scale = 1, .tiles = 8};

	return view_fixture_liveness_write(path, &params);
}

static bool make_metrics(const char *path)
{
	const struct view_fixture_metrics params = {.epochs = 3, .steps = 40, .factor = 2.5};

	return view_fixture_metrics_write(path, &params);
}

static bool make_model(const char *path)
{
	return view_fixture_model_write(path, false);
}

static bool make_ranks(const char *path)
{
	const struct view_fixture_ranks params = {.ranks = 4, .updates = 60, .buckets = 2};

	return view_fixture_ranks_write(path, &params);
}

static bool make_ranks64(const char *path)
{
	const struct view_fixture_ranks params = {.ranks = 64, .updates = 200, .buckets = 4};

	return view_fixture_ranks_write(path, &params);
}

static bool make_tensors(const char *path)
{
	const struct view_fixture_tensors params = {.steps = 60, .hits = 30, .scale = 1};

	return view_fixture_tensors_write(path, &params);
}

static const struct {
	const char *name;
	bool (*write)(const char *path);
} topics[] = {
	{"counters", make_counters}, {"device", view_fixture_device_write},
	{"gpu", make_gpu},           {"liveness", make_liveness},
	{"memory", make_memory},     {"metrics", make_metrics},
	{"model", make_model},       {"ranks", make_ranks},
	{"ranks64", make_ranks64},   {"tensors", make_tensors},
};

static bool make(const char *path, const char *what)
{
	for (size_t i = 0; i < ARRAY_LEN(topics); i++)
		if (strcmp(what, topics[i].name) == 0)
			return topics[i].write(path);
	return view_fixture_write(path, atoi(what));
}

/*
 * What recording cost is all that this machine measured; on a busy one there is an insight on it.
 */
static bool forget_cost(const char *path)
{
	static const char sql[] =
		"UPDATE overhead_rows SET record_ns_estimate = 0, write_ns = 0;"
		"UPDATE overhead_sum_rows SET record_ns_estimate = 0, write_ns = 0;";
	sqlite3 *db;
	bool done = sqlite3_open(path, &db) == SQLITE_OK &&
		    sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;

	return sqlite3_close(db) == SQLITE_OK && done;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: view_make FILE [UPDATES | TOPIC]\n", stderr);
		return 2;
	}
	return make(argv[1], argc > 2 ? argv[2] : "0") && forget_cost(argv[1]) ? 0 : 1;
}
