/*
 * The viewer as one sits before it: the program in a terminal of its own (a pty), on a recording of
 * any size.
 *
 *	bench_view IPU_VIEW DATABASE [REQUESTS [SCREEN]]
 *
 * First screens (from the start of the process to its last byte), requests all over the run (from
 * the key to the last byte), every screen's first picture, bytes that go over the line, memory, and
 * the CPU that drawing takes; beside them, in the same run, a plain SQL scan for the same picture.
 * With SCREEN: its first picture, and as many moves of its cursor.
 *
 * A picture is complete when the terminal is read empty and all threads of the viewer sleep. Memory
 * is what the process has of its own (RssAnon), looked at each millisecond while a picture is
 * waited for: pages of the mapped file are the page cache's and can be taken back.
 *
 * One thread. Linux only: /proc tells what the threads do.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/str.h"
#include "profiler/prof_db.h"
#include "viewer/view_screen.h"

#define WIDTH    250
#define HEIGHT   60
#define STARTS   15
#define REQUESTS 2000
#define STAY     20 /* requests at a place before the next */
#define PATIENCE (300 * UINT64_C(1000000000))

struct terminal {
	pid_t pid;
	int fd;
	uint64_t bytes; /* since the last request */
	long anon_kb;   /* the most seen */
	long high_kb;   /* VmHWM */
};

/* ---- the process ----------------------------------------------------------------------------- */

static bool start(struct terminal *out, const char *program, const char *database, const char *view)
{
	struct winsize size = {.ws_row = HEIGHT, .ws_col = WIDTH};

	*out = (struct terminal){.fd = -1};
	out->pid = forkpty(&out->fd, NULL, NULL, &size);
	if (out->pid == 0) {
		setenv("TERM", "xterm-256color", 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		execl(program, program, database, "--view", view, (char *)NULL);
		_exit(127);
	}
	return out->pid > 0;
}

/* The first number after @key in /proc/PID/@name; -1: none. */
static long proc_number(pid_t pid, const char *name, const char *key)
{
	char path[64], line[256];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	file = fopen(path, "r");
	while (file && value < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtol(line + strlen(key), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

/* Nanoseconds of CPU of the first thread, which draws. */
static double drawing_ns(pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "task/%d/schedstat", (int)pid);
	return (double)proc_number(pid, name, "");
}

static bool thread_sleeps(pid_t pid, const char *task)
{
	char path[320], text[512] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task);
	file = fopen(path, "r");
	if (!file)
		return true; /* it has ended */
	state = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	return !state || state[2] == 'S' || state[2] == 'Z';
}

static bool sleeps(pid_t pid)
{
	bool all = true;
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && all && (entry = readdir(tasks)))
		all = entry->d_name[0] == '.' || thread_sleeps(pid, entry->d_name);
	if (tasks)
		closedir(tasks);
	return all;
}

static void weigh(struct terminal *terminal)
{
	const long anon = proc_number(terminal->pid, "status", "RssAnon:");
	const long high = proc_number(terminal->pid, "status", "VmHWM:");

	terminal->anon_kb = anon > terminal->anon_kb ? anon : terminal->anon_kb;
	terminal->high_kb = high > terminal->high_kb ? high : terminal->high_kb;
}

/* Read until the picture is complete; milliseconds from @since to its last byte, or, where nothing
 * came, to the end of the wait. Negative: the viewer is gone. */
static double picture(struct terminal *terminal, uint64_t since)
{
	struct pollfd wait = {terminal->fd, POLLIN, 0};
	uint64_t last = 0, now = since;
	char bytes[65536];
	int quiet = 0;

	terminal->bytes = 0;
	while (quiet < 2 && now - since < PATIENCE) {
		const int ready = poll(&wait, 1, 1);

		now = clock_ns();
		if (ready > 0) {
			const ssize_t got = read(terminal->fd, bytes, sizeof(bytes));

			if (got <= 0)
				return -1;
			terminal->bytes += (uint64_t)got;
			last = now;
			quiet = 0;
			continue;
		}
		weigh(terminal);
		quiet = sleeps(terminal->pid) ? quiet + 1 : 0;
	}
	return (double)((last ? last : now) - since) / 1e6;
}

static double press(struct terminal *terminal, const char *keys)
{
	const uint64_t since = clock_ns();

	if (write(terminal->fd, keys, strlen(keys)) < 0)
		return -1;
	return picture(terminal, since);
}

static void leave(struct terminal *terminal)
{
	char bytes[4096];

	if (write(terminal->fd, "Q", 1) == 1)
		while (read(terminal->fd, bytes, sizeof(bytes)) > 0)
			;
	close(terminal->fd);
	waitpid(terminal->pid, NULL, 0);
}

/* ---- figures --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The @share-th of @values, which get sorted. */
static double quantile(double *values, size_t count, double share)
{
	qsort(values, count, sizeof(*values), compare);
	return count ? values[(size_t)((double)(count - 1) * share)] : 0;
}

/* What the system keeps of the file is given back, so that it has to be read. */
static void forget(const char *database)
{
	const char *const endings[] = {"", "-wal"};
	char path[4096];

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s%s", database, endings[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

static bool first_screens(const char *program, const char *database)
{
	static const char *const views[] = {"summary", "timeline"};
	double times[STARTS];
	struct terminal terminal;

	for (size_t v = 0; v < ARRAY_LEN(views); v++)
		for (int cold = 1; cold >= 0; cold--) {
			for (int i = 0; i < STARTS; i++) {
				uint64_t since;

				if (cold)
					forget(database);
				since = clock_ns();
				if (!start(&terminal, program, database, views[v]))
					return false;
				times[i] = picture(&terminal, since);
				leave(&terminal);
				if (times[i] < 0)
					return false;
			}
			printf("first %-8s %s          median %7.1f ms   most %7.1f ms\n", views[v],
			       cold ? "cold" : "warm", quantile(times, STARTS, 0.5),
			       quantile(times, STARTS, 1));
		}
	return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

#define KINDS 7

static const struct {
	const char *name;
	const char *keys[8];
} kinds[KINDS] = {
	{"pan", {"h", "l", "(", ")", "l", "h", ")", "("}},
	{"zoom", {"+", "-", "+", "-", "+", "-", "z", "-"}},
	{"jump", {"g", "G", "0", "M", ",", ".", "j", "k"}},
	{"span", {"]", "[", "]", "[", "]", "[", "]", "u"}},
	{"gap", {"}", "{", "}", "{", "}", "{", "}", "w"}},
	{"longest child", {"L", "L", "L", "L", "L", "L", "L", "L"}},
	{"search", {"/weight\r", "/relu\r", "n", "N", "n", "N", "/engine\r", "/nowhere\r"}},
};

struct measured {
	double *times[KINDS + 1], *bytes; /* the last: all; bytes of pans */
	size_t counts[KINDS + 1];
	double drawing_ns;
};

/* Anywhere in the run, at any zoom but the least. Not measured. */
static bool go_anywhere(struct terminal *terminal, struct rng *rng)
{
	bool well = press(terminal, "0") >= 0 && press(terminal, "g") >= 0;

	for (uint32_t i = rng_below(rng, WIDTH / 2); well && i > 0; i--)
		well = press(terminal, "..") >= 0;
	/* Less, and nothing would be left to pan to. */
	for (uint32_t i = 3 + rng_below(rng, 15); well && i > 0; i--)
		well = press(terminal, "+") >= 0;
	return well;
}

static bool request(struct terminal *terminal, struct rng *rng, struct measured *out)
{
	const uint32_t kind = rng_below(rng, KINDS);
	const double before = drawing_ns(terminal->pid);
	const double time = press(terminal, kinds[kind].keys[rng_below(rng, 8)]);

	out->drawing_ns += drawing_ns(terminal->pid) - before;
	if (kind == 0)
		out->bytes[out->counts[kind]] = (double)terminal->bytes;
	out->times[kind][out->counts[kind]++] = time;
	out->times[KINDS][out->counts[KINDS]++] = time;
	return time >= 0;
}

static void tell_requests(struct measured *measured, const struct terminal *terminal)
{
	const size_t all = measured->counts[KINDS];

	for (size_t k = 0; k <= KINDS; k++)
		printf("%-14s %5zu requests  median %7.2f ms   p99 %9.2f ms   most %9.2f ms\n",
		       k < KINDS ? kinds[k].name : "all", measured->counts[k],
		       quantile(measured->times[k], measured->counts[k], 0.5),
		       quantile(measured->times[k], measured->counts[k], 0.99),
		       quantile(measured->times[k], measured->counts[k], 1));
	printf("bytes to the terminal per pan  median %7.0f      p99 %9.0f\n",
	       quantile(measured->bytes, measured->counts[0], 0.5),
	       quantile(measured->bytes, measured->counts[0], 0.99));
	printf("CPU of the drawing thread per request %7.2f ms\n",
	       measured->drawing_ns / (double)(all ? all : 1) / 1e6);
	printf("own memory %.1f MB at most (with pages of the mapped file %.1f MB)\n",
	       (double)terminal->anon_kb / 1024, (double)terminal->high_kb / 1024);
}

static bool requests(const char *program, const char *database, size_t count, double *median)
{
	struct measured measured = {.drawing_ns = 0};
	struct terminal terminal;
	struct rng rng;
	bool well = true;

	for (size_t k = 0; k <= KINDS && well; k++)
		well = (measured.times[k] = mem_calloc(count, sizeof(double))) != NULL;
	measured.bytes = mem_calloc(count, sizeof(double));
	well = well && measured.bytes;
	rng_init(&rng, 7, rng_stream("bench_view"), 0, 0);
	well = well && start(&terminal, program, database, "timeline") &&
	       picture(&terminal, clock_ns()) >= 0;
	for (size_t i = 0; i < count && well; i++)
		well = (i % STAY != 0 || go_anywhere(&terminal, &rng)) &&
		       request(&terminal, &rng, &measured);
	if (well) {
		tell_requests(&measured, &terminal);
		*median = quantile(measured.times[KINDS], count, 0.5);
		leave(&terminal);
	}
	for (size_t k = 0; k <= KINDS; k++)
		mem_free(measured.times[k]);
	mem_free(measured.bytes);
	return well;
}

/* ---- every screen ---------------------------------------------------------------------------- */

static bool screens(const char *program, const char *database)
{
	struct terminal terminal;

	if (!start(&terminal, program, database, "help") || picture(&terminal, clock_ns()) < 0)
		return false;
	for (int i = 0; i < VIEW_SCREENS; i++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)i);
		const char key[2] = {(char)ops->key, '\0'};
		double time;

		/* Of a screen that takes text, Tab alone leads away. */
		if (i > 0 && view_screen((enum view_screen)(i - 1))->typing)
			press(&terminal, "\t");
		time = press(&terminal, key);
		if (time < 0)
			return false;
		printf("first %-14s %9.1f ms %9llu bytes   own memory %6.1f MB so far\n", ops->name,
		       time, (unsigned long long)terminal.bytes, (double)terminal.anon_kb / 1024);
	}
	leave(&terminal);
	return true;
}

/* ---- a cursor -------------------------------------------------------------------------------- */

/* More to the right than to the left: on a screen's curve all over it, and back from its end. */
static bool moves(const char *program, const char *database, const char *screen, size_t count)
{
	static const char *const keys[] = {"l", "l", "l", "h"};
	double *times = mem_calloc(count, sizeof(*times)), first, far;
	struct terminal terminal;
	struct rng rng;
	bool well;

	rng_init(&rng, 7, rng_stream("moves"), 0, 0);
	well = times && start(&terminal, program, database, screen);
	if (!well) {
		mem_free(times);
		return false;
	}
	first = picture(&terminal, clock_ns());
	far = press(&terminal, "g");
	well = first >= 0 && far >= 0;
	for (size_t i = 0; i < count && well; i++) {
		well = i % (2 * WIDTH) != 0 || press(&terminal, "g") >= 0;
		times[i] = press(&terminal, keys[rng_below(&rng, ARRAY_LEN(keys))]);
		well = well && times[i] >= 0;
	}
	if (well) {
		printf("first %-14s %9.1f ms   to its other end %9.1f ms\n", screen, first, far);
		printf("moves of its cursor  median %7.2f ms   p99 %9.2f ms   most %9.2f ms\n",
		       quantile(times, count, 0.5), quantile(times, count, 0.99),
		       quantile(times, count, 1));
		printf("own memory %.1f MB at most\n", (double)terminal.anon_kb / 1024);
		leave(&terminal);
	}
	mem_free(times);
	return well;
}

/* ---- the scan -------------------------------------------------------------------------------- */

/* The whole run's picture without levels: the time of every span laid on its column. */
static double scan(const char *database)
{
	static const char sql[] =
		"WITH ends AS (SELECT t.clock AS clock, max(z.last_ns) + 1 AS ns FROM zones z "
		"JOIN track_rows t USING (track_id) WHERE z.kind = 0 GROUP BY 1), "
		"lanes AS MATERIALIZED (SELECT track_id, ns FROM track_rows JOIN ends USING "
		"(clock)) "
		"SELECT r.track_id, r.depth, r.start_ns * 250 / l.ns, sum(r.dur_ns), count(*) "
		"FROM span_rows r CROSS JOIN lanes l ON l.track_id = r.track_id GROUP BY 1, 2, 3";
	const uint64_t since = clock_ns();
	struct prof_query *query;
	struct prof_db *db;
	bool row = true;

	if (prof_db_open(&db, database, NULL) != ST_OK)
		return -1;
	if (prof_query_open(&query, db, sql, NULL) == ST_OK) {
		while (row && prof_query_step(query, &row, NULL) == ST_OK)
			;
		prof_query_close(query);
	}
	prof_db_close(db);
	return (double)(clock_ns() - since) / 1e6;
}

int main(int argc, char **argv)
{
	long long count = REQUESTS;
	double median = 0, plain;
	bool well;

	if (argc < 3 || argc > 5 || (argc > 3 && !str_to_int(argv[3], &count)) || count < 1) {
		fprintf(stderr, "usage: bench_view IPU_VIEW DATABASE [REQUESTS [SCREEN]]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	well = argc > 4 ? moves(argv[1], argv[2], argv[4], (size_t)count)
			: first_screens(argv[1], argv[2]) &&
				  requests(argv[1], argv[2], (size_t)count, &median) &&
				  screens(argv[1], argv[2]);
	if (!well) {
		fprintf(stderr, "bench_view: the viewer ended before its time\n");
		return 1;
	}
	if (argc > 4)
		return 0;
	plain = scan(argv[2]);
	printf("the whole run's picture by a plain scan %.0f ms: %.0f times a request's median\n",
	       plain, plain / median);
	return 0;
}
