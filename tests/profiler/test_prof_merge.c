/*
 * Merging: every view of the merged file has the rows of its sources, by rank and moved in time;
 * clocks are brought together; whatever the sources are, there is a whole file or a reason.
 */
#include "support/prof_testing.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/rng.h"
#include "common/str.h"
#include "profiler/prof_db.h"
#include "profiler/prof_merge.h"
#include "support/report_sample.h"
#include "support/sqlite_alloc.h"

#define MS          INT64_C(1000000)
#define FLIP_ROUNDS 60

struct place {
	char folder[SUPPORT_PATH_SIZE];
	char a[SUPPORT_PATH_SIZE + 16], b[SUPPORT_PATH_SIZE + 16], out[SUPPORT_PATH_SIZE + 16];
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	support_tempdir(place->folder);
	snprintf(place->a, sizeof(place->a), "%s/a.db", place->folder);
	snprintf(place->b, sizeof(place->b), "%s/b.db", place->folder);
	snprintf(place->out, sizeof(place->out), "%s/out.db", place->folder);
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	support_tempdir_remove(place->folder);
	free(place);
	return 0;
}

static enum status try_merge(const char *out, struct prof_merge_source *sources, size_t count,
			     const struct prof_merge_params *params, struct err *err)
{
	err->text[0] = 0;
	support_write_file(out, "", 0);
	return prof_merge(out, sources, count, params, err);
}

/* Merge @count files, which must go well; the file must be whole. */
static void merge(const char *out, struct prof_merge_source *sources, size_t count,
		  enum prof_merge_align align)
{
	const struct prof_merge_params params = {.align = align, .command = "test"};
	struct err err;

	if (try_merge(out, sources, count, &params, &err) != ST_OK)
		fail_msg("%s", err.text);
	prof_check_file(out);
	assert_answer(out, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
}

static void set_start(const char *path, int64_t epoch_ns)
{
	char sql[128];

	snprintf(sql, sizeof(sql),
		 "UPDATE meta_facts SET value = '%lld' WHERE key = 'start_epoch_ns'",
		 (long long)epoch_ns);
	prof_change(path, sql);
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* What was compiled, and what is known by name: once for all. */
static bool is_once(const char *view)
{
	static const char *const once[] = {
		"layers",       "operations", "plans",          "programs",
		"compute_sets", "variables",  "variable_tiles", "tile_memory",
		"liveness",     "tensors",    "health_rules",
	};

	for (size_t i = 0; i < ARRAY_LEN(once); i++) {
		if (strcmp(once[i], view) == 0)
			return true;
	}
	return false;
}

static bool is_time(const char *view, const char *column)
{
	static const char *const times[] = {"start_ns",    "time_ns",        "first_start_ns",
					    "last_end_ns", "last_time_ns",   "first_ns",
					    "last_ns",     "device_start_ns"};

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		if (strcmp(times[i], column) == 0)
			return strcmp(view, "device_steps") != 0;
	}
	return false;
}

static bool has_clock(const char *view)
{
	static const char *const with[] = {"stage_timings", "spans", "instants", "stage_sums"};

	for (size_t i = 0; i < ARRAY_LEN(with); i++) {
		if (strcmp(with[i], view) == 0)
			return true;
	}
	return false;
}

/* What is added to the ids of a source. */
struct firsts {
	int64_t span, instant;
};

/* The column as the merged file must have it. */
static void expected_column(struct str *sql, const char *view, const char *column, int64_t rank,
			    int64_t shift, const struct firsts *first)
{
	if (strcmp(column, "rank") == 0)
		str_addf(sql, "%lld", (long long)rank);
	else if (strcmp(column, "track") == 0 || strcmp(column, "parent") == 0 ||
		 (strcmp(view, "tracks") == 0 && strcmp(column, "name") == 0))
		str_addf(sql, "'rank %lld/' || %s", (long long)rank, column);
	else if (strstr(column, "span_id") || strcmp(column, "parent_id") == 0)
		str_addf(sql, "%s + %lld", column, (long long)first->span);
	else if (strcmp(column, "instant_id") == 0)
		str_addf(sql, "%s + %lld", column, (long long)first->instant);
	else if (is_time(view, column))
		str_addf(sql, has_clock(view) ? "%s + iif(clock = 'host', %lld, 0)" : "%s + %lld",
			 column, (long long)shift);
	else
		str_add(sql, column);
}

static void select_expected(struct str *sql, sqlite3 *db, const char *view, const char *schema,
			    const struct prof_merge_source *source, const struct firsts *first)
{
	sqlite3_stmt *columns;
	bool any = false;

	assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1, 'main')",
					    -1, &columns, NULL),
			 SQLITE_OK);
	sqlite3_bind_text(columns, 1, view, -1, SQLITE_STATIC);
	str_add(sql, "SELECT ");
	while (sqlite3_step(columns) == SQLITE_ROW) {
		str_add(sql, any ? ", " : "");
		any = true;
		if (is_once(view))
			str_add(sql, (const char *)sqlite3_column_text(columns, 0));
		else
			expected_column(sql, view, (const char *)sqlite3_column_text(columns, 0),
					source->rank, source->shift_ns, first);
	}
	sqlite3_finalize(columns);
	assert_true(any);
	str_addf(sql, " FROM %s.%s", schema, view);
}

static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t value;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

/*
 * All rows of @view in the source that is attached as `src` are in the merged file; their number.
 */
static int64_t check_view(sqlite3 *db, const char *view, const struct prof_merge_source *source,
			  const struct firsts *first)
{
	struct str expected = {0}, sql = {0};
	int64_t rows;

	select_expected(&expected, db, view, "src", source, first);
	str_addf(&sql, "SELECT count(*) FROM (%s EXCEPT SELECT * FROM main.%s)",
		 str_peek(&expected), view);
	rows = ask(db, str_peek(&sql));
	if (rows != 0)
		fail_msg("%s: %lld rows of rank %lld are not in the merged file: %s", view,
			 (long long)rows, (long long)source->rank, str_peek(&expected));
	str_clear(&sql);
	str_addf(&sql, "SELECT count(*) FROM src.%s", view);
	rows = ask(db, str_peek(&sql));
	str_free(&expected);
	str_free(&sql);
	return rows;
}

static void check_views(const char *out, const struct prof_merge_source *sources, size_t count)
{
	size_t views;
	const char *const *names = prof_view_names(&views);
	int64_t totals[64] = {0};
	struct firsts first = {0, 0};
	sqlite3 *db;

	assert_true(views <= ARRAY_LEN(totals));
	assert_int_equal(sqlite3_open_v2(out, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	for (size_t i = 0; i < count; i++) {
		char sql[SUPPORT_PATH_SIZE + 64];

		snprintf(sql, sizeof(sql), "ATTACH '%s' AS src", sources[i].path);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		for (size_t v = 0; v < views; v++) {
			int64_t rows;

			if (strcmp(names[v], "meta") == 0)
				continue;
			rows = check_view(db, names[v], &sources[i], &first);
			totals[v] = is_once(names[v]) ? rows : totals[v] + rows;
		}
		first.span += ask(db, "SELECT max(span_id) FROM src.span_rows");
		first.instant += ask(db, "SELECT max(row_id) FROM src.instant_rows");
		assert_int_equal(sqlite3_exec(db, "DETACH src", NULL, NULL, NULL), SQLITE_OK);
	}
	for (size_t v = 0; v < views; v++) {
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", names[v]);
		if (strcmp(names[v], "meta") != 0 && ask(db, sql) != totals[v])
			fail_msg("%s: %lld rows instead of %lld", names[v], (long long)ask(db, sql),
				 (long long)totals[v]);
	}
	sqlite3_close(db);
}

static void test_views_are_those_of_both_by_rank_and_moved_in_time(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};

	report_sample_write(place->a);
	report_sample_write(place->b);
	set_start(place->a, 5000 * MS + 123);
	set_start(place->b, 5007 * MS);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[0].shift_ns, 0);
	assert_int_equal(sources[1].shift_ns, 7 * MS - 123);
	assert_int_equal(sources[1].same_model, 0);
	assert_int_equal(sources[1].anchors, 2);
	assert_int_equal(sources[1].residual_ns, 7 * MS - 123);
	check_views(place->out, sources, 2);
	assert_answer(place->out,
		      "SELECT key, value FROM meta WHERE key IN ('merge.1.shift_ns', "
		      "'merge.1.anchors', 'ranks', 'start_epoch_ns', 'model') ORDER BY key",
		      "merge.1.anchors|2\nmerge.1.shift_ns|6999877\nmodel|sequential\nranks|2\n"
		      "start_epoch_ns|5000000123\n");
}

static void test_four_sources_are_merged_as_two_are(void **state)
{
	struct place *place = *state;
	char paths[4][SUPPORT_PATH_SIZE + 16];
	struct prof_merge_source sources[4] = {{0}};

	for (int i = 0; i < 4; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.db", place->folder, i);
		report_sample_write(paths[i]);
		set_start(paths[i], 9000 * MS - i * 77777);
		sources[i].path = paths[i];
	}
	merge(place->out, sources, 4, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[3].shift_ns, 0);
	assert_int_equal(sources[0].shift_ns, 3 * 77777);
	check_views(place->out, sources, 4);
}

static void test_a_source_may_be_given_twice(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->a}};

	report_sample_write(place->a);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[1].residual_ns, 0);
	check_views(place->out, sources, 2);
}

/* ---- zones and levels ------------------------------------------------------------------------ */

#define TRACKS 3

/* Spans of many lengths, nested, on tracks that are written in turns; samples beside them. */
static void write_busy(const char *path, int64_t rank, uint64_t seed)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *tracks[TRACKS];
	int64_t now[TRACKS] = {0};
	struct rng rng;
	IPS_SITE(outer, "test", "outer");
	IPS_SITE(inner, "test", "inner");
	IPS_SITE(depth, "test", "depth");

	ips_recording_params_defaults(&params);
	params.rank = rank;
	rng_init(&rng, seed, 1, 0, 0);
	assert_int_equal(ips_recording_open(&recording, path, &params, NULL, 0), 0);
	for (int t = 0; t < TRACKS; t++) {
		char name[16];

		snprintf(name, sizeof(name), "track %d", t);
		tracks[t] = ips_track_open(recording, name, NULL);
	}
	for (int i = 0; i < 6000; i++) {
		const int t = (int)rng_below(&rng, TRACKS);
		const int64_t dur = (int64_t)1 << rng_below(&rng, i % 50 == 0 ? 33 : 20);

		ips_span_at(tracks[t], &outer, now[t], dur);
		ips_span_at(tracks[t], &inner, now[t] + dur / 4, dur / 2);
		now[t] += dur + rng_below(&rng, 10000);
		ips_counter(tracks[t], &depth, (double)rng_below(&rng, 9));
		if (i % 1000 == 999)
			assert_int_equal(ips_recording_flush(recording), 0);
	}
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

/* Level 12 has every span that is not long there; finer ones those of zones that have them. */
static void check_levels(const char *path)
{
	assert_answer(path,
		      "SELECT (SELECT count(*) FROM span_rows WHERE dur_ns IS NOT NULL) - "
		      "(SELECT count(*) FROM long_spans WHERE level = 12) - "
		      "(SELECT sum(count) FROM span_levels WHERE level = 12)",
		      "0\n");
	assert_answer(path,
		      "SELECT (SELECT sum(dur_ns) FROM span_rows WHERE span_id NOT IN "
		      "(SELECT span_id FROM long_spans WHERE level = 12)) - "
		      "(SELECT sum(busy_ns) FROM span_levels WHERE level = 12)",
		      "0\n");
	assert_answer(path,
		      "SELECT l.level FROM (SELECT DISTINCT level FROM span_levels) l WHERE "
		      "(SELECT sum(count) FROM span_levels s WHERE s.level = l.level) <> "
		      "(SELECT count(*) FROM zones z JOIN span_rows r ON r.span_id BETWEEN "
		      "z.first_row AND z.last_row WHERE z.kind = 0 AND z.finest <= l.level AND "
		      "r.dur_ns < 1 << (16 + 2 * l.level + 2))",
		      "");
	assert_answer(path,
		      "SELECT count(*) FROM span_rows r WHERE (SELECT count(*) FROM zones z WHERE "
		      "z.kind = 0 AND z.track_id = r.track_id AND r.span_id BETWEEN z.first_row "
		      "AND z.last_row AND r.start_ns BETWEEN z.first_ns AND z.last_ns) <> 1",
		      "0\n");
	assert_answer(path,
		      "SELECT count(*) FROM zones z WHERE kind = 0 AND finest > 0 AND NOT EXISTS "
		      "(SELECT 1 FROM sparse_zones s WHERE s.first_row = z.first_row)",
		      "0\n");
	assert_answer(path,
		      "SELECT (SELECT count(*) FROM counter_rows) - "
		      "(SELECT sum(count) FROM counter_levels WHERE level = 0)",
		      "0\n");
}

/* A zone has rows of its track alone, and where the next one goes on with it, as many as can be. */
static void check_merged_zones(const char *path)
{
	assert_answer(path,
		      "SELECT count(*) FROM zones z JOIN span_rows r ON r.span_id BETWEEN "
		      "z.first_row AND z.last_row WHERE z.kind = 0 AND r.track_id <> z.track_id",
		      "0\n");
	assert_answer(path,
		      "SELECT count(*) FROM zones a JOIN zones b ON b.kind = a.kind AND "
		      "b.track_id = a.track_id AND b.first_row = a.last_row + 1 AND b.first_ns >= "
		      "a.last_ns WHERE a.last_row - a.first_row + 1 < 8192",
		      "0\n");
}

static void test_zones_and_levels_are_those_of_the_moved_rows(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};

	write_busy(place->a, 3, 1);
	write_busy(place->b, 7, 2);
	check_levels(place->a);
	set_start(place->a, 1000 * MS);
	set_start(place->b, 1000 * MS + 98765);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	check_levels(place->out);
	check_merged_zones(place->out);
	assert_int_equal(sources[0].rank, 3);
	assert_int_equal(sources[1].rank, 7);
	check_views(place->out, sources, 2);
}

static void test_unmoved_levels_are_what_the_recorder_wrote(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->a}};
	static const char sql[] =
		"SELECT t.name, l.bucket, l.depth, l.busy_ns, l.count FROM span_levels l JOIN "
		"track_rows t USING (track_id) WHERE l.level = 12 AND t.rank = 0 ORDER BY 1, 2, 3";
	char *recorded, *merged;

	write_busy(place->a, 0, 5);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_NONE);
	prof_change(place->out, "UPDATE track_rows SET name = substr(name, 8)");
	recorded = prof_ask_all(place->a, sql);
	merged = prof_ask_all(place->out, sql);
	assert_true(recorded[0] != '\0');
	assert_string_equal(recorded, merged);
	free(recorded);
	free(merged);
}

/* ---- ranks and clocks ------------------------------------------------------------------------ */

static void test_recorded_ranks_are_kept_where_they_differ(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
	struct prof_merge_params params = {.ranks = PROF_MERGE_RANKS_ORDER};
	struct err err;

	write_busy(place->a, 5, 1);
	write_busy(place->b, 2, 2);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_answer(place->out, "SELECT DISTINCT rank FROM spans ORDER BY rank", "2\n5\n");
	assert_int_equal(try_merge(place->out, sources, 2, &params, &err), ST_OK);
	assert_answer(place->out, "SELECT DISTINCT rank FROM spans ORDER BY rank", "0\n1\n");
	params.ranks = PROF_MERGE_RANKS_KEEP;
	sources[1].path = place->a;
	assert_int_equal(try_merge(place->out, sources, 2, &params, &err), ST_INVALID);
	assert_non_null(strstr(err.text, "same rank"));
}

/* 50 executions of 10 ms; rank 1 reaches each 1.6 ms after rank 0, give or take 100 us. */
static void write_job(const char *path, int64_t rank)
{
	struct ips_recording_params params;
	struct ips_recording *recording;

	ips_recording_params_defaults(&params);
	params.rank = rank;
	assert_int_equal(ips_recording_open(&recording, path, &params, NULL, 0), 0);
	for (int64_t i = 0; i < 50; i++) {
		const int64_t late = rank * (1600000 + (i % 3 - 1) * 100000);

		ips_append_execution(recording,
				     &(struct ips_execution){IPS_TRAIN, 1, i, i, 1, 1,
							     20 * MS + i * 10 * MS + late, 10 * MS,
							     IPS_NULL, IPS_NULL, IPS_NULL});
	}
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

static void test_skewed_clocks_are_shown_and_aligned_by_steps(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
	const int64_t start = 1700000000000 * MS, skew = 11560 * MS;

	write_job(place->a, 0);
	write_job(place->b, 1);
	set_start(place->a, start);
	set_start(place->b, start + skew);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[1].anchors, 50);
	assert_int_equal(sources[1].residual_ns, skew + 1600000);
	assert_int_equal(sources[1].greatest_ns, skew + 1700000);
	set_start(place->b, start - skew);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[1].residual_ns, 1600000 - skew);
	assert_int_equal(sources[1].greatest_ns, skew - 1500000);
	set_start(place->b, start + skew);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_STEPS);
	assert_int_equal(sources[1].residual_ns, 0);
	assert_int_equal(sources[1].greatest_ns, 100000);
	assert_int_equal(sources[0].shift_ns, 1600000); /* nothing starts before 0 */
	assert_int_equal(sources[1].shift_ns, 0);
	assert_answer(place->out,
		      "SELECT max(abs(a.start_ns - b.start_ns)) FROM executions a JOIN executions "
		      "b USING (execution) WHERE a.rank = 0 AND b.rank = 1",
		      "100000\n");
}

static void test_what_does_not_say_when_it_started_is_at_the_start(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};

	write_job(place->a, 0);
	write_job(place->b, 1);
	prof_change(place->b, "DELETE FROM meta_facts WHERE key = 'start_epoch_ns'");
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_false(sources[1].has_clock);
	assert_int_equal(sources[0].shift_ns, 0);
	assert_int_equal(sources[1].shift_ns, 0);
	check_views(place->out, sources, 2);
}

/* ---- other sources --------------------------------------------------------------------------- */

static void test_killed_and_empty_sources_are_merged(void **state)
{
	struct place *place = *state;
	char empty[SUPPORT_PATH_SIZE + 16];
	struct prof_merge_source sources[] = {
		{.path = place->a}, {.path = place->b}, {.path = empty}};

	snprintf(empty, sizeof(empty), "%s/empty.db", place->folder);
	report_sample_write(place->a);
	report_sample_write_killed(place->b);
	report_sample_write_empty(empty);
	merge(place->out, sources, 3, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[1].state, PROF_RECORDING);
	assert_false(sources[1].alive);
	assert_int_equal(prof_ask(place->out, "SELECT count(DISTINCT rank) FROM spans"), 2);
	assert_int_equal(prof_ask(place->out, "SELECT count(DISTINCT rank) FROM overhead"), 3);
	assert_answer(place->out,
		      "SELECT rank, count(*) FROM stage_timings WHERE rank < 2 GROUP BY rank "
		      "EXCEPT SELECT rank, sum(count) FROM stage_sums GROUP BY rank",
		      "");
}

static void test_a_live_source_gives_what_it_has_committed(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
	struct ips_recording *recording;
	struct ips_track *track;
	IPS_SITE(site, "test", "open");

	report_sample_write(place->a);
	assert_int_equal(ips_recording_open(&recording, place->b, NULL, NULL, 0), 0);
	track = ips_track_open(recording, "live", NULL);
	ips_span_begin(track, &site);
	assert_int_equal(ips_recording_flush(recording), 0);
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_true(sources[1].alive);
	assert_answer(place->out, "SELECT track, dur_ns FROM spans WHERE rank = 1", "live|-\n");
	ips_span_end(track);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

static void test_a_merged_file_is_merged_again(void **state)
{
	struct place *place = *state;
	char both[SUPPORT_PATH_SIZE + 16];
	struct prof_merge_source first[] = {{.path = place->a}, {.path = place->b}};
	struct prof_merge_source second[] = {{.path = place->a}, {.path = both}};

	snprintf(both, sizeof(both), "%s/both.db", place->folder);
	report_sample_write(place->a);
	report_sample_write(place->b);
	merge(both, first, 2, PROF_MERGE_ALIGN_WALL);
	merge(place->out, second, 2, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(second[1].ranks, 2);
	assert_answer(place->out,
		      "SELECT rank, count(*) FROM spans GROUP BY rank UNION ALL "
		      "SELECT rank, count(*) FROM device_steps GROUP BY rank",
		      "0|6\n1|6\n2|6\n0|1\n1|1\n2|1\n");
	assert_answer(place->out, "SELECT track FROM tracks WHERE name LIKE '%IPU 0' ORDER BY 1",
		      "rank 0/ipu 0\nrank 1/ipu 0\nrank 2/ipu 0\n");
	assert_int_equal(
		prof_ask(place->out, "SELECT count(*) FROM meta WHERE key GLOB 'merge.[012].pid'"),
		3);
}

/* Write the merged report of two ranks, @folder/both.db; @continues: the part before, or NULL. */
static void write_ranks(const char *folder, const char *continues,
			char both[SUPPORT_PATH_SIZE + 16])
{
	char paths[2][SUPPORT_PATH_SIZE + 16], sql[SUPPORT_PATH_SIZE + 200];
	struct prof_merge_source sources[] = {{.path = paths[0]}, {.path = paths[1]}};

	for (int64_t r = 0; r < 2; r++) {
		snprintf(paths[r], sizeof(paths[r]), "%s/%d.db", folder, (int)r);
		write_job(paths[r], r);
		snprintf(sql, sizeof(sql),
			 "INSERT INTO meta_facts VALUES ('part', 2), ('continues_after_step', 50), "
			 "('continues', '%s')",
			 continues ? continues : "");
		if (continues)
			prof_change(paths[r], sql);
	}
	snprintf(both, SUPPORT_PATH_SIZE + 16, "%s/both.db", folder);
	merge(both, sources, 2, PROF_MERGE_ALIGN_WALL);
}

static void test_merged_ranks_go_on_after_merged_ranks(void **state)
{
	struct place *place = *state;
	char real[PATH_MAX], next[SUPPORT_PATH_SIZE + 8];
	char first[SUPPORT_PATH_SIZE + 16], second[SUPPORT_PATH_SIZE + 16];
	struct prof_merge_source sources[] = {{.path = first}, {.path = second}};

	assert_non_null(realpath(place->folder, real));
	snprintf(next, sizeof(next), "%s/next", place->folder);
	assert_int_equal(mkdir(next, 0700), 0);
	write_ranks(place->folder, NULL, first);
	write_ranks(next, real, second);
	assert_answer(second, "SELECT value FROM meta WHERE key = 'part'", "2\n");
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_int_equal(sources[1].part, 2);
	assert_int_equal(sources[1].after_rank, 0);
	assert_answer(place->out, "SELECT value FROM meta WHERE key = 'parts'",
		      "rank 2 goes on after rank 0\n");
}

static void test_models_that_differ_are_all_kept(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};

	report_sample_write(place->a);
	report_sample_write(place->b);
	prof_change(place->b, "UPDATE operation_rows SET cycles = cycles + 1");
	merge(place->out, sources, 2, PROF_MERGE_ALIGN_WALL);
	assert_true(sources[1].own_model);
	assert_int_equal(prof_ask(place->out, "SELECT count(*) FROM operations"),
			 2 * prof_ask(place->a, "SELECT count(*) FROM operations"));
	/* Memory of one tile of one IPU is that of one model. */
	assert_int_equal(prof_ask(place->out, "SELECT max(n) FROM (SELECT count(*) AS n FROM "
					      "tile_memory GROUP BY ipu, tile, category, region)"),
			 prof_ask(place->a, "SELECT max(n) FROM (SELECT count(*) AS n FROM "
					    "tile_memory GROUP BY ipu, tile, category, region)"));
	/* Steps find the program that they executed. */
	assert_answer(place->out,
		      "SELECT DISTINCT rank, program_id IN (SELECT program_id FROM programs) FROM "
		      "device_steps WHERE program_id - (SELECT min(program_id) FROM device_steps "
		      "s WHERE s.rank = device_steps.rank) = 0 EXCEPT SELECT rank, 1 FROM tracks",
		      "");
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_views_in_the_place_of_tables_are_refused(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
	const struct prof_merge_params params = {0};
	struct err err;

	report_sample_write(place->a);
	report_sample_write(place->b);
	prof_change(place->b,
		    "ALTER TABLE flow_rows RENAME TO elsewhere; CREATE VIEW FLOW_ROWS AS "
		    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
		    "SELECT i AS row_id, i AS from_span_id, i AS to_span_id, i AS name_id "
		    "FROM n");
	assert_int_equal(try_merge(place->out, sources, 2, &params, &err), ST_FORMAT);
	assert_non_null(strstr(err.text, place->b));
}

static void test_absurd_rows_end_in_a_file_or_a_reason(void **state)
{
	static const char *const damages[] = {
		"UPDATE span_rows SET depth = 1000000000",
		"UPDATE span_rows SET start_ns = -9223372036854775807, dur_ns = "
		"9223372036854775807",
		"UPDATE span_rows SET start_ns = 'x', dur_ns = x'00'",
		"UPDATE span_rows SET track_id = 77, site_id = -5, context_id = 1e9",
		"UPDATE span_rows SET span_id = span_id + 9223372036854775000",
		"UPDATE zones SET first_row = 5, last_row = 9223372036854775807",
		"UPDATE track_rows SET rank = -9, parent = track",
		"UPDATE meta_facts SET value = '9223372036854775807' WHERE key IN "
		"('start_epoch_ns', 'rank')",
		"INSERT INTO meta_facts VALUES ('last_rank', '999999999999')",
		"INSERT INTO meta_facts VALUES ('clock_offset_ns', '9223372036854775807'), "
		"('clock_bound_ns', '-9223372036854775808')",
		"UPDATE meta_facts SET value = '9223372036854775807' WHERE key = "
		"'start_epoch_ns'; INSERT INTO meta_facts VALUES ('clock_offset_ns', "
		"'-9223372036854775807')",
		"UPDATE meta_facts SET value = '-9223372036854775808' WHERE key = 'rank'; INSERT "
		"INTO meta_facts VALUES ('last_rank', '9223372036854775807')",
		"UPDATE execution_rows SET start_ns = -9223372036854775807",
		"UPDATE execution_rows SET start_ns = 9e99, execution = 0",
		"UPDATE contexts SET rank = 'x'",
		"DROP TABLE span_levels; DROP TABLE strings",
		"DELETE FROM strings; DELETE FROM track_rows; DELETE FROM contexts",
	};
	struct place *place = *state;
	int merged = 0;
	size_t length;
	char *bytes;

	report_sample_write(place->a);
	report_sample_write(place->b);
	bytes = support_read_file(place->b, &length);
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
		const struct prof_merge_params params = {0};
		struct err err;

		support_write_file(place->b, bytes, length);
		prof_change(place->b, damages[i]);
		if (try_merge(place->out, sources, 2, &params, &err) == ST_OK) {
			prof_check_file(place->out);
			merged++;
		} else {
			assert_contains(err.text, place->b);
		}
	}
	free(bytes);
	assert_true(merged > 4);
}

static void test_flipped_bytes_end_in_a_file_or_a_reason(void **state)
{
	struct place *place = *state;
	int merged = 0;
	size_t length;
	char *bytes, *damaged;

	report_sample_write(place->a);
	bytes = support_read_file(place->a, &length);
	damaged = malloc(length);
	assert_non_null(damaged);
	for (uint32_t round = 0; round < support_rounds(FLIP_ROUNDS); round++) {
		struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
		const struct prof_merge_params params = {0};
		struct err err;
		struct rng rng;

		rng_init(&rng, 7, 2, round, 0);
		memcpy(damaged, bytes, length);
		for (int i = 0; i < 1 + (int)rng_below(&rng, 10); i++)
			damaged[16384 + rng_below(&rng, (uint32_t)length - 16384)] =
				(char)rng_u32(&rng);
		support_write_file(place->b, damaged, length);
		if (try_merge(place->out, sources, 2, &params, &err) == ST_OK)
			merged++;
		else
			assert_true(err.text[0] != '\0');
	}
	assert_true(merged > 0);
	free(bytes);
	free(damaged);
}

static bool stop_at_once(void *user, size_t source, const char *what)
{
	(void)user;
	(void)source;
	(void)what;
	return false;
}

static void test_it_can_be_stopped(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->a}};
	const struct prof_merge_params params = {.progress = stop_at_once};
	struct err err;

	write_busy(place->a, 0, 1);
	assert_int_equal(try_merge(place->out, sources, 2, &params, &err), ST_INTERRUPTED);
}

static void test_memory_that_is_short_is_told(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->b}};
	const struct prof_merge_params params = {0};
	bool failed = true;

	write_job(place->a, 0);
	write_job(place->b, 1);
	/* The first ones one by one, then in strides: SQLite's own memory is not counted. */
	for (long n = 0; failed; n += n < 30 ? 1 : 37 * support_stride()) {
		enum status status;
		struct err err;

		support_write_file(place->out, "", 0);
		support_fail_alloc(n);
		status = prof_merge(place->out, sources, 2, &params, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/*
		 * What one fact of meta needs may be missing: then it is as if it were not there.
		 */
		if (failed && status == ST_OK)
			prof_check_file(place->out);
		else
			assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
	}
}

/* Merge @path with itself while SQLite's allocation @n fails; return whether both
 * sources were read before. */
static bool merge_lacking(struct place *place, const char *path, long n)
{
	struct prof_merge_source sources[] = {{.path = path}, {.path = path}};
	const struct prof_merge_params params = {0};
	enum status status;
	struct err err;

	support_write_file(place->out, "", 0);
	sqlite_alloc_fail(n);
	status = prof_merge(place->out, sources, 2, &params, &err);
	sqlite_alloc_fail(-1);
	if (status == ST_OK)
		assert_int_equal(sources[1].state, PROF_COMPLETE);
	else
		assert_int_equal(status, ST_NOMEM);
	return sources[1].ranks > 0;
}

/* What could not be read of a source is not taken for missing: it was not killed. */
static void test_memory_that_sqlite_lacks_is_told(void **state)
{
	struct place *place = *state;
	long least = 0, most = 1 << 20;

	report_sample_write(place->a);
	while (most - least > 1) {
		const long middle = (least + most) / 2;

		if (merge_lacking(place, place->a, middle))
			most = middle;
		else
			least = middle;
	}
	for (long n = max(most - 120, 0L); n < most + 20; n += support_stride())
		merge_lacking(place, place->a, n);
}

static void test_a_full_disk_is_told(void **state)
{
	struct place *place = *state;
	struct prof_merge_source sources[] = {{.path = place->a}, {.path = place->a}};
	const struct prof_merge_params params = {0};
	enum status status;
	struct err err;

	write_busy(place->a, 0, 1);
	support_write_file(place->out, "", 0);
	support_limit_files(600000);
	status = prof_merge(place->out, sources, 2, &params, &err);
	support_limit_files(-1);
	assert_int_equal(status, ST_NOSPACE);
	assert_null(strstr(err.text, place->a)); /* the file that is read is not what is full */
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_views_are_those_of_both_by_rank_and_moved_in_time),
		CASE(test_four_sources_are_merged_as_two_are),
		CASE(test_a_source_may_be_given_twice),
		CASE(test_zones_and_levels_are_those_of_the_moved_rows),
		CASE(test_unmoved_levels_are_what_the_recorder_wrote),
		CASE(test_recorded_ranks_are_kept_where_they_differ),
		CASE(test_skewed_clocks_are_shown_and_aligned_by_steps),
		CASE(test_what_does_not_say_when_it_started_is_at_the_start),
		CASE(test_killed_and_empty_sources_are_merged),
		CASE(test_a_live_source_gives_what_it_has_committed),
		CASE(test_a_merged_file_is_merged_again),
		CASE(test_merged_ranks_go_on_after_merged_ranks),
		CASE(test_models_that_differ_are_all_kept),
		CASE(test_views_in_the_place_of_tables_are_refused),
		CASE(test_absurd_rows_end_in_a_file_or_a_reason),
		CASE(test_flipped_bytes_end_in_a_file_or_a_reason),
		CASE(test_it_can_be_stopped),
		CASE(test_memory_that_is_short_is_told),
		CASE(test_memory_that_sqlite_lacks_is_told),
		CASE(test_a_full_disk_is_told),
	};

	sqlite_alloc_hook();
	/* SQLite's own store of small pieces does not fail. */
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
