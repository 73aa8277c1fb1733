/*
 * Reports in folders: found by their names, then each opened briefly.
 *
 * Threading: one thread. Ownership: view_runs.h.
 */
#include "viewer/view_runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/summary/report_summary.h"

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

/* The last part of the path. */
static const char *runs_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Make the run's line. An unreadable file is listed as such; opening it then reports why. */
static enum status runs_describe(struct view_runs *runs, struct view_run *run, struct err *err)
{
	char model[META_SIZE] = "-", schedule[META_SIZE] = "", text[META_SIZE], when[FMT_SIZE];
	const char *state = "unreadable", *started;
	struct view_source source;
	long long start_ns;

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
	run->text = arena_printf(&runs->arena, "%-19s  %-10.*s  %s  %s", started ? started : "-",
				 (int)strcspn(state, ":"), state, runs_name(run->path), text);
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
	if (arena_init(&out->arena, 0))
		return err_nomem(err);
	if (!runs_database(context->source->path, &open))
		(void)runs_stat(context->source->path, &open);
	status = runs_scan_folder(out, ".", &open, err);
	if (status == ST_OK && runs_folder(context->source->path, folder) &&
	    !fs_is_same(folder, "."))
		status = runs_scan_folder(out, folder, &open, err);
	if (status == ST_OK && out->count > 0) {
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
