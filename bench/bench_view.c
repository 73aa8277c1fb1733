/*
 * The viewer's pictures: the first one, and any pan or zoom after it, beside a plain scan of the
 * spans.
 *
 * bench_view [UPDATES]: a recording of that many weight updates (69 spans each) is made in $TMPDIR.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "support/view_fixture.h"
#include "viewer/view_session.h"

#define MOVES  600
#define WIDTH  200
#define HEIGHT 50

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double milliseconds(uint64_t since)
{
	return (double)(clock_ns() - since) / 1e6;
}

/* The same picture without levels: every span's time laid on a column. */
static double scan(const char *path, int64_t *spans)
{
	static const char sql[] =
		"SELECT track, start_ns * 200 / (SELECT max(start_ns) + 1 FROM spans), count(*), "
		"sum(dur_ns) FROM spans GROUP BY 1, 2";
	const uint64_t start = clock_ns();
	struct prof_query *query;
	struct prof_db *db;
	bool row = true;

	*spans = 0;
	if (prof_db_open(&db, path, NULL) != ST_OK)
		return -1;
	if (prof_query_open(&query, db, sql, NULL) == ST_OK) {
		while (prof_query_step(query, &row, NULL) == ST_OK && row)
			*spans += prof_column_int(query, 2);
		prof_query_close(query);
	}
	prof_db_close(db);
	return milliseconds(start);
}

static void measure(struct view_session *session, double *times)
{
	static const char keys[] = "++-=)(+-]}l+h-[{+0+++++jk";

	for (int i = 0; i < MOVES; i++) {
		const char key = keys[rand() % (int)(sizeof(keys) - 1)];
		const uint64_t start = clock_ns();

		view_session_key(session, (uint32_t)key);
		view_session_draw(session);
		times[i] = milliseconds(start);
	}
	qsort(times, MOVES, sizeof(*times), compare);
}

static int run(const char *path, int updates)
{
	static double times[MOVES];
	struct view_session session;
	struct rusage usage;
	uint64_t start;
	int64_t spans;
	double summary, sums, first, plain;

	if (!view_fixture_write(path, updates))
		return 1;
	start = clock_ns();
	if (view_session_open(&session, path, NULL, false, NULL) != ST_OK)
		return 1;
	if (view_session_size(&session, WIDTH, HEIGHT, NULL) != ST_OK)
		return 1;
	view_session_draw(&session);
	summary = milliseconds(start);
	while (session.context.more) {
		view_session_tick(&session, clock_ns());
		view_session_draw(&session);
	}
	sums = milliseconds(start);
	view_session_close(&session);
	start = clock_ns();
	if (view_session_open(&session, path, NULL, false, NULL) != ST_OK)
		return 1;
	view_session_show(&session, VIEW_TIMELINE);
	if (view_session_size(&session, WIDTH, HEIGHT, NULL) != ST_OK)
		return 1;
	view_session_draw(&session);
	first = milliseconds(start);
	measure(&session, times);
	view_session_close(&session);
	getrusage(RUSAGE_SELF, &usage);
	plain = scan(path, &spans);
	printf("spans                        %lld\n", (long long)spans);
	printf("first summary                %.2f ms (limit 150)\n", summary);
	printf("its sums complete            %.2f ms\n", sums);
	printf("first timeline               %.2f ms (limit 150)\n", first);
	printf("a move, median               %.2f ms (limit 16)\n", times[MOVES / 2]);
	printf("a move, 99th percentile      %.2f ms (limit 50)\n", times[MOVES * 99 / 100]);
	printf("the same picture by a scan   %.2f ms (%.0f times the median move)\n", plain,
	       plain / times[MOVES / 2]);
	printf("greatest memory              %.1f MB, making the recording included\n",
	       (double)usage.ru_maxrss / 1024);
	return 0;
}

int main(int argc, char **argv)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	int code;

	snprintf(path, sizeof(path), "%s/bench_view.%d.db", folder ? folder : "/tmp",
		 (int)getpid());
	srand(5);
	code = run(path, argc > 1 ? atoi(argv[1]) : 2000);
	unlink(path);
	return code;
}
