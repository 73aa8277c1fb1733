/*
 * Opening, polling and closing a report.
 *
 * Threading: one thread. Ownership: the source owns its handle.
 */
#include "viewer/view_source.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_announce.h"
#include "profiler/prof_process.h"
#include "reports/report_find.h"

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
	const enum status status = prof_db_look(db, &state, &alive, err);

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

/* Close the file so that the writer can end WAL mode; it tries for a second. */
static void view_close_for_writer(struct view_source *source, uint64_t now_ns)
{
	view_close_handle(source);
	source->state = VIEW_CLOSING;
	source->let_go_ns = now_ns;
	source->retry_wait_ns = RETRY_FIRST_NS;
	source->retry_ns = now_ns + RETRY_FIRST_NS;
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
		view_close_for_writer(source, now_ns);
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
