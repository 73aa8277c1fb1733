/*
 * What recording costs, beside what it cannot cost less than, all from one run:
 *
 *	bench_record [ROWS [DIRECTORY]]
 *
 * ns of a span with the writer draining, beside two reads of the time stamp counter; ns of a call
 * when recording is off; spans per second into SQLite from ring to commit and the bytes of each,
 * and stage timings per second from append to commit, both beside a bare loop of 64-row INSERTs of
 * the same seven integers. Medians; nothing is asserted.
 */
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "profiler/ipuscope/profiler.h"

#define ROUNDS 15
#define BATCH  50000
#define DEPTH  3
#define STAGES 4

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

static struct ips_recording *open_recording(const char *path, uint32_t slots, uint32_t finish_ms)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	char why[256];

	ips_recording_params_defaults(&params);
	params.ring_slots = slots;
	params.finish_ms = finish_ms;
	unlink(path);
	if (ips_recording_open(&recording, path, &params, why, sizeof(why)) != 0) {
		fprintf(stderr, "bench_record: %s\n", why);
		exit(1);
	}
	return recording;
}

static double counter_pair_ns(void)
{
	double rounds[ROUNDS];
	uint64_t sum = 0;

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t started = clock_ns();

		for (int i = 0; i < BATCH; i++) {
			sum += ips_ticks();
			sum += ips_ticks();
		}
		rounds[r] = (double)(clock_ns() - started) / BATCH;
	}
	return sum == 0 ? 0.0 : median(rounds, ROUNDS);
}

static double span_ns(const char *path)
{
	struct ips_recording *recording = open_recording(path, 1u << 18, 0);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	double rounds[ROUNDS];
	IPS_SITE(work, "bench", "work");

	/* The first round touches the ring's memory. */
	for (int r = -2; r < ROUNDS; r++) {
		uint64_t started = clock_ns();

		for (int i = 0; i < BATCH; i++) {
			ips_span_begin(track, &work);
			ips_span_end(track);
		}
		if (r >= 0)
			rounds[r] = (double)(clock_ns() - started) / BATCH;
		ips_recording_flush(recording);
	}
	if (track->dropped != 0)
		printf("(%llu events were dropped)\n", (unsigned long long)track->dropped);
	ips_recording_close(recording, NULL, 0);
	return median(rounds, ROUNDS);
}

static double off_ns(void)
{
	struct ips_track *volatile none = NULL;
	double rounds[ROUNDS];
	IPS_SITE(work, "bench", "work");

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t started = clock_ns();

		for (int i = 0; i < BATCH * 10; i++) {
			ips_span_begin(none, &work);
			ips_span_end(none);
		}
		rounds[r] = (double)(clock_ns() - started) / (BATCH * 20.0);
	}
	return median(rounds, ROUNDS);
}

static double file_bytes(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 ? (double)info.st_size : 0.0;
}

static void wait_for_room(const struct ips_track *track)
{
	while (track->head - __atomic_load_n(&track->consumed, __ATOMIC_RELAXED) > track->mask / 2)
		sched_yield();
}

/* Spans of three depths, as fast as the writer takes them; from the first to the last commit. */
static double sustained(const char *path, long rows, double *bytes_per_row)
{
	struct ips_recording *recording = open_recording(path, 1u << 16, 0);
	double empty, seconds;
	struct ips_track *track;
	uint64_t started;
	IPS_SITE(outer, "bench", "outer");
	IPS_SITE(inner, "bench", "inner");

	ips_recording_close(recording, NULL, 0);
	empty = file_bytes(path);
	recording = open_recording(path, 1u << 16, 0);
	track = ips_track_open(recording, "worker", NULL);
	started = clock_ns();
	for (long i = 0; i < rows; i += DEPTH) {
		if (i / DEPTH % 256 == 0)
			wait_for_room(track);
		ips_span_begin(track, &outer);
		for (int j = 1; j < DEPTH; j++) {
			ips_span_begin(track, &inner);
			ips_span_end(track);
		}
		ips_span_end(track);
	}
	ips_recording_flush(recording);
	seconds = (double)(clock_ns() - started) / 1e9;
	if (track->dropped != 0)
		printf("(%llu events were dropped)\n", (unsigned long long)track->dropped);
	ips_recording_close(recording, NULL, 0);
	*bytes_per_row = (file_bytes(path) - empty) / (double)rows;
	return (double)rows / seconds;
}

/* One after the other the stages' forwards and backwards of each micro-batch, on both clocks. */
static struct ips_stage_timing timing(long row)
{
	const long step = row / (4 * STAGES);
	struct ips_stage_timing out = {IPS_KEYS_NULL, .clock = row % 2, .start_ns = row * 100,
				       .dur_ns = 50 + row % 7};

	out.cpu_ns = out.clock == IPS_HOST ? out.dur_ns : IPS_NULL;
	out.keys.mode = IPS_TRAIN;
	out.keys.phase = row / 2 % 2 ? 'B' : 'F';
	out.keys.stage = row / 4 % STAGES;
	out.keys.ipu = out.keys.stage;
	out.keys.replica = 0;
	out.keys.epoch = 1;
	out.keys.execution = step / 1024;
	out.keys.step = step;
	out.keys.weight_update = step / 16;
	out.keys.microbatch = step % 16;
	return out;
}

/* Rows of stage timings, as fast as the queue takes them; from the first to the last commit. */
static double sustained_rows(const char *path, long rows)
{
	struct ips_recording *recording = open_recording(path, 1u << 12, 0);
	struct ips_stage_timing some[64];
	uint64_t started = clock_ns();
	double seconds;

	for (long i = 0; i < rows; i += 64) {
		for (long j = 0; j < 64; j++)
			some[j] = timing(i + j);
		ips_append(recording, IPS_TABLE_stage_timing, some, 64);
	}
	ips_recording_flush(recording);
	seconds = (double)(clock_ns() - started) / 1e9;
	ips_recording_close(recording, NULL, 0);
	return (double)rows / seconds;
}

static void must(sqlite3 *db, int code)
{
	if (code != SQLITE_OK && code != SQLITE_DONE) {
		fprintf(stderr, "bench_record: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
}

static sqlite3_stmt *many_rows(sqlite3 *db)
{
	char sql[64 * 32] = "INSERT INTO t (a, b, c, d, e, f, g) VALUES ";
	sqlite3_stmt *statement;

	for (int i = 0; i < 64; i++)
		strcat(sql, i == 0 ? "(?,?,?,?,?,?,?)" : ",(?,?,?,?,?,?,?)");
	must(db, sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
	return statement;
}

/* The limit: the same row, bare, in one transaction. */
static double bare_insert(const char *path, long rows, double *bytes_per_row)
{
	sqlite3_stmt *statement;
	uint64_t started;
	double seconds;
	sqlite3 *db;

	unlink(path);
	must(NULL, sqlite3_open(path, &db));
	must(db,
	     sqlite3_exec(
		     db,
		     "PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
		     "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d, e, f, g)",
		     NULL, NULL, NULL));
	statement = many_rows(db);
	started = clock_ns();
	must(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
	for (long i = 0; i < rows; i += 64) {
		for (int j = 0; j < 64; j++) {
			const sqlite3_int64 n = i + j,
					    values[] = {1, n & 1, n * 60, 40, n >> 10, 1, n % 3};

			for (int k = 0; k < 7; k++)
				sqlite3_bind_int64(statement, j * 7 + k + 1, values[k]);
		}
		sqlite3_step(statement);
		must(db, sqlite3_reset(statement));
	}
	must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
	seconds = (double)(clock_ns() - started) / 1e9;
	sqlite3_finalize(statement);
	sqlite3_close(db);
	*bytes_per_row = file_bytes(path) / (double)rows;
	return (double)rows / seconds;
}

int main(int argc, char **argv)
{
	long rows = argc > 1 ? strtol(argv[1], NULL, 10) : 3000000;
	const char *directory = argc > 2 ? argv[2] : ".";
	char path[4096];
	double pair, span, off, rate[3], row_rate[3], limit[3], bytes = 0.0, limit_bytes = 0.0;

	if (rows < 64 ||
	    snprintf(path, sizeof(path), "%s/bench_record.db", directory) >= (int)sizeof(path))
		return 2;
	pair = counter_pair_ns();
	span = span_ns(path);
	off = off_ns();
	printf("span              %8.1f ns   two counter reads %6.1f ns   ratio %.2f\n", span, pair,
	       span / pair);
	printf("call when off     %8.2f ns\n", off);
	for (int r = 0; r < 3; r++) {
		limit[r] = bare_insert(path, rows, &limit_bytes);
		rate[r] = sustained(path, rows, &bytes);
		row_rate[r] = sustained_rows(path, rows);
	}
	unlink(path);
	printf("spans into SQLite %8.2f M/s  bare INSERT loop %7.2f M/s  ratio %.2f\n",
	       median(rate, 3) / 1e6, median(limit, 3) / 1e6, median(rate, 3) / median(limit, 3));
	printf("timings into SQLite %6.2f M/s  bare INSERT loop %7.2f M/s  ratio %.2f\n",
	       median(row_rate, 3) / 1e6, median(limit, 3) / 1e6,
	       median(row_rate, 3) / median(limit, 3));
	printf("bytes per span    %8.1f      bare row         %7.1f      ratio %.2f\n", bytes,
	       limit_bytes, bytes / limit_bytes);
	return 0;
}
