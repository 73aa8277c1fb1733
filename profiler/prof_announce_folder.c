/*
 * The folder of announcements: opened with care, and read.
 *
 * Threading: none; another process may write at the same time. Ownership: descriptors are the
 * caller's. Everything is done relative to the open folder, without following links.
 */
#include "profiler/prof_announce_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "profiler/prof_process.h"

#define FOLDER     "ipuscope"
#define FILE_LIMIT (64 << 10) /* bytes of an announcement */
#define RUN_LIMIT  4096       /* announcements that are looked at */

/* ---- opening --------------------------------------------------------------------------------- */

/* Open folder @name in @at, which must be ours and nobody else's. */
static enum status folder_open(int *fd, int at, const char *name, const char *shown,
			       struct err *err)
{
	struct stat info;

	*fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at < 0 ? 0 : O_NOFOLLOW));
	if (*fd < 0)
		return err_set(err, errno == ENOENT ? ST_NOTFOUND : ST_INVALID,
			       "%s: cannot be opened: %s", shown, strerror(errno));
	if (fstat(*fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0)
		return ST_OK;
	close(*fd);
	*fd = -1;
	return err_set(err, ST_INVALID, "%s: must be yours and have mode 0700 (XDG_RUNTIME_DIR)",
		       shown);
}

enum status prof__announce_folder(int *fd, bool make, struct err *err)
{
	char base[FS_PATH_SIZE], path[FS_PATH_SIZE];
	enum status status;
	int at;

	*fd = -1;
	if (!fs_xdg(path, "XDG_RUNTIME_DIR", NULL))
		return err_set(err, ST_NOTFOUND, "XDG_RUNTIME_DIR is not set");
	str_copy(base, strlen(path) - strlen(FOLDER), path);
	status = folder_open(&at, -1, base, base, err);
	/* One that is promised and not there is worth a word, not only to who wants to write. */
	if (status == ST_NOTFOUND)
		return err_set(err, ST_INVALID, "XDG_RUNTIME_DIR: %s is not there", base);
	if (status != ST_OK)
		return status;
	if (make && mkdirat(at, FOLDER, 0700) != 0 && errno != EEXIST)
		status = err_set(err, ST_INVALID, "%s: cannot be made: %s", path, strerror(errno));
	else
		status = folder_open(fd, at, FOLDER, path, err);
	close(at);
	return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* "123.json" and "123.tmp": the process, else 0. */
static int64_t folder_pid(const char *name, const char *end)
{
	const size_t digits = strspn(name, "0123456789");

	if (digits == 0 || digits > 10 || name[0] == '0' || strcmp(name + digits, end) != 0)
		return 0;
	return strtoll(name, NULL, 10);
}

static enum status folder_get(int fd, char *text, size_t *length, const char *name, struct err *err)
{
	struct stat info;
	ssize_t got = 1;

	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
		return err_set(err, ST_INVALID, "%s: is no file of yours", name);
	if (info.st_size > FILE_LIMIT)
		return err_set(err, ST_LIMIT, "%s: is larger than an announcement", name);
	for (*length = 0; *length < FILE_LIMIT && got > 0; *length += got > 0 ? (size_t)got : 0)
		got = read(fd, text + *length, FILE_LIMIT - *length);
	text[*length] = '\0';
	return got < 0 ? err_set(err, ST_IO, "%s: cannot be read: %s", name, strerror(errno))
		       : ST_OK;
}

static enum status folder_read(struct prof_announcement *out, int folder, const char *name,
			       struct err *err)
{
	const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = mem_alloc(FILE_LIMIT + 1);
	enum status status = ST_OK;
	size_t length = 0;

	if (!text)
		status = err_nomem(err);
	else if (fd < 0 && errno == ENOENT)
		status = ST_NOTFOUND;
	else if (fd < 0)
		status =
			err_set(err, ST_INVALID, "%s: cannot be opened: %s", name, strerror(errno));
	if (status == ST_OK)
		status = folder_get(fd, text, &length, name, err);
	if (status == ST_OK)
		status = prof__announce_parse(out, text, length, name, err);
	if (status == ST_OK && out->pid != folder_pid(name, ".json"))
		status = err_set(err, ST_INVALID, "%s: is of another process, %lld", name,
				 (long long)out->pid);
	if (fd >= 0)
		close(fd);
	mem_free(text);
	return status;
}

/* One file; only a lack of memory is a failure. */
static enum status folder_take(struct prof_announcements *out, int folder, const char *name,
			       bool tidy, struct str *notes, struct err *err)
{
	struct err why = {ST_OK, ""};
	struct prof_announcement run;
	enum status status = folder_read(&run, folder, name, &why);

	if (status == ST_NOMEM)
		return err_nomem(err);
	if (status != ST_OK) {
		/* Gone since the folder was listed: that is how runs end. */
		if (status != ST_NOTFOUND && notes)
			str_addf(notes, "%s\n", why.text);
		return ST_OK;
	}
	if (prof_process_start(run.pid) != run.process_start) {
		if (tidy)
			unlinkat(folder, name, 0);
		return ST_OK;
	}
	if (mem_grow(&out->items, &out->capacity, (size_t)out->count + 1, sizeof(*out->items)) != 0)
		return err_nomem(err);
	out->items[out->count++] = run;
	return ST_OK;
}

static int folder_compare(const void *left, const void *right)
{
	const struct prof_announcement *a = left, *b = right;

	if (a->started_ms != b->started_ms)
		return a->started_ms < b->started_ms ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* A writer that was killed between its temporary and the renaming. */
static void folder_tidy_temporary(int folder, const char *name)
{
	const int64_t pid = folder_pid(name, ".tmp");

	if (pid > 0 && prof_process_start(pid) == 0)
		unlinkat(folder, name, 0);
}

enum status prof__announce_list(struct prof_announcements *out, int folder, bool tidy,
				struct str *notes, struct err *err)
{
	const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	enum status status = ST_OK;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return err_set(err, ST_IO, "the announcements cannot be listed: %s",
			       strerror(errno));
	}
	while (status == ST_OK && out->count < RUN_LIMIT && (entry = readdir(dir))) {
		if (folder_pid(entry->d_name, ".json") > 0)
			status = folder_take(out, folder, entry->d_name, tidy, notes, err);
		else if (tidy)
			folder_tidy_temporary(folder, entry->d_name);
	}
	closedir(dir);
	if (out->count > 1)
		qsort(out->items, (size_t)out->count, sizeof(*out->items), folder_compare);
	return status;
}

enum status prof_announcements_read(struct prof_announcements *out, bool tidy, struct str *notes,
				    struct err *err)
{
	enum status status;
	int folder;

	*out = (struct prof_announcements){0};
	status = prof__announce_folder(&folder, false, err);
	if (status != ST_OK)
		return status;
	/* Whoever begins to announce has the lock: a file is not taken away in its first moment. */
	tidy = tidy && flock(folder, LOCK_EX | LOCK_NB) == 0;
	status = prof__announce_list(out, folder, tidy, notes, err);
	close(folder);
	if (status != ST_OK)
		prof_announcements_free(out);
	return status;
}

void prof_announcements_free(struct prof_announcements *list)
{
	mem_free(list->items);
	*list = (struct prof_announcements){0};
}
