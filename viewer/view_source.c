/*
 * Opening, polling, reading and closing a report; finding others in folders by their names, each
 * then opened briefly.
 *
 * Threading: one thread. Ownership: the source owns its handle, the list of runs its texts.
 */
#include "viewer/view_source.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "profiler/prof_announce.h"
#include "profiler/prof_process.h"
#include "reports/report_find.h"
#include "reports/summary/report_summary.h"
#include "viewer/view_screen.h"

#define RETRY_FIRST_NS (250 * UINT64_C(1000000))
#define RETRY_MOST_NS  (2000 * UINT64_C(1000000))
#define LEAVING_NS     (1500 * UINT64_C(1000000)) /* a writer tries to close for a second */

static const char *const view_state_texts[] = {
	[VIEW_RECORDING] = "recording",
	[VIEW_CLOSING] = "closing",
	[VIEW_KILLED] = "killed: the writer died",
	[VIEW_COMPLETE] = "complete",
};

const char *view_state_text(enum view_state state)
{
	return view_state_texts[state];
}

/* On failure *@out is unchanged. */
static enum status view_read_state(struct prof_db *db, enum view_state *out, struct err *err)
{
	enum prof_state state;
	bool alive;
	const enum status status = prof_db_poll(db, &state, &alive, err);

	/* A damaged file is shown as far as it can be read. */
	if (status != ST_OK && status != ST_FORMAT)
		return status;
	if (state == PROF_COMPLETE)
		*out = VIEW_COMPLETE;
	else if (!alive)
		*out = VIEW_KILLED;
	else
		*out = state == PROF_CLOSING ? VIEW_CLOSING : VIEW_RECORDING;
	return ST_OK;
}

/* Set the name: the last part of the path, without profile.db. */
static void view_name(struct view_source *source)
{
	char path[FS_PATH_SIZE];
	char *slash;

	str_copy(path, sizeof(path), source->path);
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	slash = strrchr(path, '/');
	if (slash && slash != path && strcmp(slash, "/profile.db") == 0) {
		*slash = '\0';
		slash = strrchr(path, '/');
	}
	str_copy(source->name, sizeof(source->name), slash && slash[1] ? slash + 1 : path);
}

static void view_close_handle(struct view_source *source)
{
	prof_db_close(source->db);
	source->db = NULL;
}

enum status view_source_open(struct view_source *source, const char *path, struct err *err)
{
	enum status status;

	memset(source, 0, sizeof(*source));
	source->watch = -1;
	if (!fs_path(source->path, "%s", path))
		return err_set(err, ST_LIMIT, "the path is too long");
	view_name(source);
	status = prof_db_open(&source->db, path, err);
	if (status == ST_OK)
		status = view_read_state(source->db, &source->state, err);
	if (status != ST_OK) {
		view_close_handle(source);
		return status;
	}
	source->none = prof_origin_none(prof_db_origin(source->db));
	source->version = prof_db_version(source->db);
	if (source->state != VIEW_COMPLETE)
		source->watch = prof_nudge_watch(prof_db_path(source->db));
	return ST_OK;
}

void view_source_close(struct view_source *source)
{
	if (!source->path[0])
		return;
	view_close_handle(source);
	if (source->watch >= 0)
		close(source->watch);
	source->watch = -1;
}

/* Is the writer still closing a complete file? Its log exists while it waits for readers, and
 * remains for good if a reader kept the file open. */
static bool view_is_still_closing(const struct view_source *source, uint64_t now_ns)
{
	char log[FS_PATH_SIZE];

	return source->state == VIEW_COMPLETE && now_ns - source->let_go_ns < LEAVING_NS &&
	       fs_path(log, "%s-wal", prof_db_path(source->db)) && fs_exists(log);
}

/* Reopen the file if its writer has finished. Each try is short, and the intervals double. */
static bool view_reopen_source(struct view_source *source, uint64_t now_ns, bool nudged)
{
	if (now_ns < source->retry_ns && !nudged)
		return false;
	source->retry_wait_ns = source->retry_wait_ns < RETRY_MOST_NS / 2
					? source->retry_wait_ns * 2
					: RETRY_MOST_NS;
	source->retry_ns = now_ns + source->retry_wait_ns;
	if (prof_db_open(&source->db, source->path, NULL) != ST_OK)
		return false;

	if (view_read_state(source->db, &source->state, NULL) != ST_OK ||
	    source->state == VIEW_CLOSING || view_is_still_closing(source, now_ns)) {
		source->state = VIEW_CLOSING;
		view_close_handle(source);
		return false;
	}
	source->version = prof_db_version(source->db);
	return true;
}

bool view_source_poll(struct view_source *source, uint64_t now_ns)
{
	const enum view_state before = source->state;
	const bool nudged = prof_nudge_taken(source->watch);
	int64_t version;
	bool news;

	source->looked_ns = now_ns;
	if (!source->db)
		return view_reopen_source(source, now_ns, nudged);
	if (source->state == VIEW_COMPLETE)
		return false;

	version = prof_db_version(source->db);
	if (view_read_state(source->db, &source->state, NULL) != ST_OK)
		return false; /* the next poll tries again */
	/* COMPLETE: the run closed and completed since the last poll, so treat it as closing. */
	if (source->state == VIEW_CLOSING || source->state == VIEW_COMPLETE) {
		/* Close the file so that the writer can end WAL mode; it tries for a second. */
		view_close_handle(source);
		source->state = VIEW_CLOSING;
		source->let_go_ns = now_ns;
		source->retry_wait_ns = RETRY_FIRST_NS;
		source->retry_ns = now_ns + RETRY_FIRST_NS;
		return true;
	}
	news = version != source->version || source->state != before;
	source->version = version;
	return news;
}

bool view_source_nudged(const struct view_source *source)
{
	struct pollfd watch = {source->watch, POLLIN, 0};

	return source->watch >= 0 && poll(&watch, 1, 0) == 1;
}

/* Return the report of the youngest run that records one; false: none. */
static bool view_running(char out[FS_PATH_SIZE])
{
	struct prof_announcements runs;

	out[0] = '\0';
	if (prof_announcements_read(&runs, false, NULL, NULL) != ST_OK)
		return false;
	for (int i = 0; i < runs.count; i++)
		if (runs.items[i].report[0])
			str_copy(out, FS_PATH_SIZE, runs.items[i].report);
	prof_announcements_free(&runs);
	return out[0] != '\0';
}

enum status view_source_newest(const char *folder, char out[FS_PATH_SIZE], struct err *err)
{
	char running[FS_PATH_SIZE];

	if (report_find_newest(folder, out))
		return ST_OK;
	if (view_running(running))
		return err_set(err, ST_NOTFOUND,
			       "no report in %s (tf_report__*/profile.db); running now: "
			       "ipu-view %s",
			       strcmp(folder, ".") == 0 ? "this directory" : folder, running);
	return err_set(err, ST_NOTFOUND,
		       "no report in %s (tf_report__*/profile.db): name one, or train with "
		       "POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\"}'",
		       strcmp(folder, ".") == 0 ? "this directory" : folder);
}

/* ---- reading as a series of steps ------------------------------------------------------------ */

struct prof_query *view_query_open(struct prof_db *db, const char *sql, struct err *err)
{
	struct prof_query *query = NULL;

	if (!err_stuck(err))
		prof_query_open(&query, db, sql, err);
	return query;
}

int64_t view_query_number(struct prof_db *db, const char *sql, struct err *err)
{
	int64_t number = IPS_NULL;

	if (!err_stuck(err))
		prof_db_number(db, sql, &number, err);
	return number;
}

int64_t view_query_at(struct prof_db *db, const char *sql, int64_t row, struct err *err)
{
	struct prof_query *query = view_query_open(db, sql, err);
	int64_t number;

	prof_query_int(query, ":row", row);
	number = view_query_next(query, err) ? prof_column_int(query, 0) : INT64_MAX;
	prof_query_close(query);
	return number;
}

void *view_alloc(struct arena *arena, size_t count, size_t size, struct err *err)
{
	void *items = err_stuck(err) ? NULL : arena_alloc(arena, count + 1, size);

	if (!items && !err_stuck(err))
		err_nomem(err);
	return items;
}

double view_source_fact(struct prof_db *db, const char *key)
{
	char text[64];
	double value;

	return prof_db_meta(db, key, text, sizeof(text)) && str_to_double(text, &value) && value > 0
		       ? value
		       : (double)NAN;
}

/* ---- runs to compare with -------------------------------------------------------------------- */

#define RUNS_MOST   256 /* each takes a millisecond or two */
#define META_SIZE   64
#define DATABASE    "/profile.db"
#define NEWER(a, b) SORTED_BY((b), (a), when_ns)

/* Read when the file was written, and which it is, whatever its name. */
static bool runs_stat(const char *database, struct view_run *run)
{
	struct stat info;

	if (stat(database, &info) || !S_ISREG(info.st_mode))
		return false;
	run->when_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
	run->device = info.st_dev;
	run->inode = info.st_ino;
	return true;
}

/* Find the database of the report directory or database @path; false: @path is neither. */
static bool runs_database(const char *path, struct view_run *run)
{
	char database[FS_PATH_SIZE];
	const size_t length = strlen(path);

	if (fs_is_dir(path))
		return fs_path(database, "%s" DATABASE, path) && runs_stat(database, run);
	return length >= 3 && strcmp(path + length - 3, ".db") == 0 && runs_stat(path, run);
}

static bool runs_are_same(const struct view_run *one, const struct view_run *two)
{
	return one->device == two->device && one->inode == two->inode;
}

/* Is @run listed already, under another name: a link, or a folder reached by two paths? */
static bool runs_has(const struct view_runs *runs, const struct view_run *run)
{
	for (size_t i = 0; i < runs->count; i++)
		if (runs_are_same(&runs->items[i], run))
			return true;
	return false;
}

/* Add the reports in @folder except @open; paths begin with @folder unless that is ".". */
static enum status runs_scan_folder(struct view_runs *runs, const char *folder,
				    const struct view_run *open, struct err *err)
{
	const bool here = strcmp(folder, ".") == 0;
	struct fs_list list;
	enum status status = fs_list(&list, folder, err);

	/* A folder that cannot be listed is no error: the user can still type the path of a
	 * report. */
	if (status != ST_OK && status != ST_NOMEM)
		return ST_OK;
	for (size_t i = 0; i < list.count && status == ST_OK; i++) {
		char path[FS_PATH_SIZE];
		struct view_run run = {0};

		if (!fs_path(path, "%s%s%s", here ? "" : folder, here ? "" : "/", list.names[i]) ||
		    !runs_database(path, &run) || runs_are_same(&run, open) || runs_has(runs, &run))
			continue;
		run.path = arena_strdup(&runs->arena, path);
		if (!run.path ||
		    mem_grow(&runs->items, &runs->capacity, runs->count + 1, sizeof(*runs->items)))
			status = err_nomem(err);
		else
			runs->items[runs->count++] = run;
	}
	fs_list_free(&list);
	return status;
}

static int runs_by_age(const void *a, const void *b)
{
	const struct view_run *one = a, *two = b;
	const int order = NEWER(one, two);

	return order != 0 ? order : strcmp(two->path, one->path);
}

/* Make the run's line. An unreadable file is listed as such; opening it then reports why. */
static enum status runs_describe(struct view_runs *runs, struct view_run *run, struct err *err)
{
	char model[META_SIZE] = "-", schedule[META_SIZE] = "", text[META_SIZE], when[FMT_SIZE];
	const char *state = "unreadable", *started;
	struct view_source source;
	long long start_ns;
	const char *slash = strrchr(run->path, '/');

	if (view_source_open(&source, run->path, NULL) == ST_OK) {
		state = view_state_text(source.state);
		if (prof_db_meta(source.db, "start_epoch_ns", text, sizeof(text)) &&
		    str_to_int(text, &start_ns))
			run->when_ns = start_ns;
		(void)prof_db_meta(source.db, "model", model, sizeof(model));
		(void)prof_db_meta(source.db, "schedule", schedule, sizeof(schedule));
		view_source_close(&source);
	}
	if (strcmp(schedule, "none") == 0)
		schedule[0] = '\0';
	snprintf(text, sizeof(text), "%.24s%s%.24s", model, schedule[0] ? ", " : "", schedule);
	started = report_summary_started(run->when_ns, when);
	/* The name comes before the model: it identifies the run and still fits at 80 columns. */
	run->text =
		arena_printf(&runs->arena, "%-19s  %-10.*s  %s  %s", started ? started : "-",
			     (int)strcspn(state, ":"), state, slash ? slash + 1 : run->path, text);
	return run->text ? ST_OK : err_nomem(err);
}

/* Return the folder that contains the report at @path. */
static bool runs_folder(const char *path, char out[FS_PATH_SIZE])
{
	char *slash;

	if (!realpath(path, out))
		return false;
	slash = strrchr(out, '/');
	if (slash && strcmp(slash, DATABASE) == 0) {
		*slash = '\0';
		slash = strrchr(out, '/');
	}
	if (!slash)
		return false;
	slash[slash == out] = '\0';
	return true;
}

enum status view_runs_read(struct view_runs *out, const struct view_context *context,
			   struct err *err)
{
	char folder[FS_PATH_SIZE];
	struct view_run open = {0};
	enum status status;

	view_runs_free(out);
	if (!runs_database(context->source->path, &open))
		(void)runs_stat(context->source->path, &open);
	status = runs_scan_folder(out, ".", &open, err);
	if (status == ST_OK && runs_folder(context->source->path, folder) &&
	    !fs_is_same(folder, "."))
		status = runs_scan_folder(out, folder, &open, err);
	if (out->count > 0) {
		qsort(out->items, out->count, sizeof(*out->items), runs_by_age);
		out->count = out->count < RUNS_MOST ? out->count : RUNS_MOST;
	}
	for (size_t i = 0; i < out->count && status == ST_OK; i++)
		status = view_cancelled(context) ? err_set(err, ST_INTERRUPTED, "stopped")
						 : runs_describe(out, &out->items[i], err);
	if (status != ST_OK)
		view_runs_free(out);
	else if (out->count > 0)
		qsort(out->items, out->count, sizeof(*out->items), runs_by_age);
	return status;
}

void view_runs_free(struct view_runs *runs)
{
	mem_free(runs->items);
	arena_fini(&runs->arena);
	*runs = (struct view_runs){0};
}
