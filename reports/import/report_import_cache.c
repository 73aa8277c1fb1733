/*
 * The cache of imports. See report_import.h.
 *
 * An import writes its database aside and renames it, so another process finds an entry whole or
 * not at all, and two that import the same file at once leave one of two equal entries. An entry
 * that is removed stays readable for those that have it open.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/arena.h"
#include "common/fs.h"
#include "common/map.h"
#include "common/mem.h"
#include "profiler/prof_db.h"
#include "reports/import/report_import.h"
#include "reports/import/report_import_internal.h"
#include "reports/report_output.h"

#define CACHE_MB   4096
#define SHOWN_MOST 80 /* bytes of the file's name in the entry's */

static struct arena paths; /* those returned */

/* ---- recognition ----------------------------------------------------------------------------- */

/* Where a database's head has two numbers of its writer's, and how much of it has them all. */
#define VERSION_AT     60
#define APPLICATION_AT 68
#define HEAD_BYTES     72

static uint32_t number_at(const unsigned char *head, size_t at)
{
	return (uint32_t)head[at] << 24 | (uint32_t)head[at + 1] << 16 |
	       (uint32_t)head[at + 2] << 8 | head[at + 3];
}

static bool is_own(const unsigned char *head, size_t size)
{
	return size >= HEAD_BYTES && number_at(head, APPLICATION_AT) == PROF_APPLICATION_ID;
}

enum content {
	CONTENT_OTHER,
	CONTENT_DATABASE, /* of another program; the import finds out which */
	CONTENT_TRACE
};

static enum content recognise(const char *path)
{
	enum content content = CONTENT_OTHER;
	const struct import_format *format;
	struct import_input input;
	struct err unused;

	if (report__import_input_open(&input, path, &unused) != ST_OK)
		return CONTENT_OTHER;
	format = report__import_format(input.head, input.head_bytes);
	if (format == &report__import_sqlite)
		content = is_own(input.head, input.head_bytes) ? CONTENT_OTHER : CONTENT_DATABASE;
	else if (format || report__import_remedy(&input))
		content = CONTENT_TRACE; /* the import says what can be done where it cannot */
	report__import_input_close(&input);
	return content;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Others' recordings may be private, and so is the folder. */
static enum status make_folder(char folder[FS_PATH_SIZE], const char *path, struct err *err)
{
	char base[FS_PATH_SIZE];
	enum status status;

	if (!fs_xdg(base, "XDG_CACHE_HOME", ".cache") || !fs_path(folder, "%s/imports", base))
		return err_set(err, ST_NOTFOUND,
			       "%s: no cache for the imported database, since XDG_CACHE_HOME and "
			       "HOME are not set: `ipu-report import %s` makes one here",
			       path, path);
	status = fs_make_dirs(base, err);
	if (status == ST_OK && mkdir(folder, 0700) != 0 && errno != EEXIST)
		status = err_set(err, ST_IO, "%s: cannot create: %s", folder, strerror(errno));
	return status;
}

static enum status name_entry(char entry[FS_PATH_SIZE], const char *folder, const char *path,
			      const struct stat *info, struct err *err)
{
	char *real = realpath(path, NULL);
	const char *slash = !real ? NULL : strrchr(real, '/');
	const int64_t state[] = {info->st_size, info->st_mtim.tv_sec, info->st_mtim.tv_nsec};
	uint64_t hash;
	bool fits;

	if (!slash) {
		free(real);
		return err_set(err, ST_IO, "%s: %s", path, strerror(errno));
	}
	/* Another version may read more of the same file. */
	hash = map_text(map_text(MAP_SEED, IPUSCOPE_VERSION), real);
	hash = map_bytes(hash, state, sizeof(state));
	fits = fs_path(entry, "%s/%.*s.%016" PRIx64 ".db", folder, SHOWN_MOST, slash + 1, hash);
	free(real);
	return fits ? ST_OK : err_set(err, ST_INVALID, "%s: the path is too long", folder);
}

struct entry {
	char *name;
	int64_t bytes, opened_ns;
};

static int by_time(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return (a->opened_ns > b->opened_ns) - (a->opened_ns < b->opened_ns);
}

/* Remove the least recently opened entries but @entry until the others fit the limit. A failure
 * leaves the cache larger. */
static void prune(const char *folder, const char *entry)
{
	const char *text = getenv("IPUSCOPE_CACHE_MB");
	char *end;
	long long value = !text ? 0 : strtoll(text, &end, 10);
	const int64_t limit = (value > 0 && value < INT32_MAX && !*end ? value : CACHE_MB) << 20;
	struct fs_list list;
	struct entry *entries;
	struct err unused;
	size_t count = 0;
	int64_t bytes = 0;

	if (fs_list(&list, folder, &unused) != ST_OK)
		return;
	entries = mem_calloc(list.count + 1, sizeof(*entries));
	for (size_t i = 0; entries && i < list.count; i++) {
		char path[FS_PATH_SIZE];
		struct stat info;

		if (fnmatch("*.db", list.names[i], 0) != 0 ||
		    !fs_path(path, "%s/%s", folder, list.names[i]) || lstat(path, &info) != 0 ||
		    !S_ISREG(info.st_mode))
			continue;
		bytes += info.st_size;
		if (strcmp(path, entry) != 0)
			entries[count++] = (struct entry){
				list.names[i], info.st_size,
				(int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec};
	}
	if (entries)
		qsort(entries, count, sizeof(*entries), by_time);
	for (size_t i = 0; i < count && bytes > limit; i++) {
		char path[FS_PATH_SIZE];

		if (fs_path(path, "%s/%s", folder, entries[i].name) && unlink(path) == 0)
			bytes -= entries[i].bytes;
	}
	mem_free(entries);
	fs_list_free(&list);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Is there an import that this ipuscope reads? Mark it as opened now. */
static bool find_entry(const char *entry)
{
	unsigned char head[HEAD_BYTES];
	FILE *file = fopen(entry, "rb");
	const size_t size = file ? fread(head, 1, sizeof(head), file) : 0;

	if (file)
		fclose(file);
	return is_own(head, size) && number_at(head, VERSION_AT) == PROF_SCHEMA_VERSION &&
	       utimensat(AT_FDCWD, entry, NULL, 0) == 0;
}

static enum status import(const char *path, const char *entry, const char *command, struct err *err)
{
	struct report_import_counts counts;
	struct import_progress progress;
	const struct report_import_params params = {.trace = path,
						    .output = entry,
						    .force = true,
						    .command = command,
						    .progress = report__import_on_progress,
						    .user = &progress};
	uint64_t left = 0;
	enum status status;

	report__import_begin_progress(&progress, false);
	status = report_import(&params, &counts, err);
	report__import_end_progress(&progress);
	report_interrupt_remove();
	if (status == ST_INTERRUPTED)
		return err_set(err, status, "%s: the import was interrupted", path);
	if (status != ST_OK)
		return status;
	for (int i = 0; i < REPORT_IMPORT_LEFTS; i++)
		left += counts.left[i];
	if (counts.broken)
		cli_print(stderr,
			  "%s: %s: byte %" PRIu64 ": %s; everything before it was imported\n",
			  command, path, counts.broken_at, counts.why);
	if (left > 0 && progress.shown)
		cli_print(stderr,
			  "%s: %s: %" PRIu64 " of %" PRIu64
			  " events have no place here (`ipu-report import` lists them)\n",
			  command, path, left, counts.events);
	return ST_OK;
}

enum status report_import_cached(const char **path, const char *command, struct err *err)
{
	char folder[FS_PATH_SIZE], entry[FS_PATH_SIZE];
	enum content content;
	const char *kept;
	enum status status;
	struct stat info;
	struct err own;

	/* Only the content of regular files can be read twice. */
	if (stat(*path, &info) != 0 || !S_ISREG(info.st_mode))
		return ST_OK;
	content = recognise(*path);
	if (content == CONTENT_OTHER)
		return ST_OK;
	err = err_start(err, &own);
	if (make_folder(folder, *path, err) != ST_OK ||
	    name_entry(entry, folder, *path, &info, err) != ST_OK)
		return err->status;
	if (!find_entry(entry)) {
		status = import(*path, entry, command, err);
		if (status == ST_FORMAT && content == CONTENT_DATABASE) {
			err_start(err, &own); /* what opens the file says what it is */
			return ST_OK;
		}
		if (status != ST_OK)
			return status;
		prune(folder, entry);
	}
	kept = arena_strdup(&paths, entry);
	if (!kept)
		return err_nomem(err);
	*path = kept;
	return ST_OK;
}
