/*
 * Files and folders, with errors that name the path.
 *
 * Threading: the only state is a counter that keeps names of temporary files distinct.
 */
#include "common/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define FS_CHUNK       ((size_t)64 << 10) /* first read from a file of unknown size */
#define FS_DEVICE_MOST ((size_t)1 << 20)
#define FS_PIPE_MOST   ((size_t)1 << 30)

static enum status fs_fail(struct err *err, int number, const char *what, const char *path)
{
	char text[256];
	enum status status = ST_IO;

	if (number == ENOENT || number == ENOTDIR)
		status = ST_NOTFOUND;
	else if (number == ENOSPC || number == EDQUOT || number == EFBIG)
		status = ST_NOSPACE;
	else if (number == ENOMEM)
		status = ST_NOMEM;

	/* GNU strerror_r(), which may return a string other than @text. */
	return err_set(err, status, "%s: cannot %s: %s", path, what,
		       strerror_r(number, text, sizeof(text)));
}

static ssize_t fs_read_chunk(int fd, char *to, size_t size)
{
	ssize_t got;

	do
		got = read(fd, to, size);
	while (got < 0 && errno == EINTR);
	return got;
}

/* ---- at offsets ------------------------------------------------------------------------------ */

enum status fs_unnamed(const char *beside, int *fd, struct err *err)
{
	char path[FS_PATH_SIZE];

	*fd = -1;
	if (!fs_path(path, "%s.XXXXXX", beside))
		return err_set(err, ST_INVALID, "%s: the path is too long", beside);
	*fd = mkostemp(path, O_CLOEXEC);
	if (*fd < 0)
		return fs_fail(err, errno, "write", beside);
	unlink(path);
	return ST_OK;
}

enum status fs_write_at(int fd, uint64_t at, const void *data, size_t length, const char *what,
			struct err *err)
{
	const char *bytes = data;

	while (length > 0) {
		const ssize_t done = pwrite(fd, bytes, length, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fs_fail(err, errno, "write", what);
		bytes += done;
		at += (uint64_t)done;
		length -= (size_t)done;
	}
	return ST_OK;
}

enum status fs_read_at(int fd, uint64_t at, void *out, size_t length, const char *what,
		       struct err *err)
{
	char *bytes = out;

	while (length > 0) {
		const ssize_t done = pread(fd, bytes, length, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fs_fail(err, errno, "read", what);
		if (done == 0)
			return err_set(err, ST_IO, "%s: cannot read: it ends too early", what);
		bytes += done;
		at += (uint64_t)done;
		length -= (size_t)done;
	}
	return ST_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum status fs_reader_open(struct fs_reader *reader, const char *path, struct err *err)
{
	enum status status = ST_OK;
	struct stat info;

	*reader = (struct fs_reader){.path = path, .size = -1, .left = UINT64_MAX};
	reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (reader->fd < 0)
		return fs_fail(err, errno, "open", path);
	if (fstat(reader->fd, &info))
		status = fs_fail(err, errno, "read", path);
	else if (S_ISDIR(info.st_mode))
		status = err_set(err, ST_INVALID, "%s: is a folder, not a file", path);
	else if (S_ISREG(info.st_mode))
		/* Files in /proc report size 0. */
		reader->size = info.st_size > 0 ? (int64_t)info.st_size : -1;
	else if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))
		reader->left = FS_DEVICE_MOST;
	else
		reader->left = FS_PIPE_MOST;
	if (status != ST_OK)
		fs_reader_close(reader);
	return status;
}

void fs_reader_close(struct fs_reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	reader->fd = -1;
}

enum status fs_reader_read(struct fs_reader *reader, void *out, size_t size, size_t *got,
			   struct err *err)
{
	*got = 0;
	while (*got < size) {
		const ssize_t part = fs_read_chunk(reader->fd, (char *)out + *got, size - *got);

		if (part < 0)
			return fs_fail(err, errno, "read", reader->path);
		if (part == 0)
			return ST_OK;
		if ((uint64_t)part > reader->left)
			return err_set(err, ST_LIMIT,
				       "%s: larger than the limit of its kind, a device or pipe",
				       reader->path);
		reader->left -= (uint64_t)part;
		*got += (size_t)part;
	}
	return ST_OK;
}

/* Read to the end of the file into a growing buffer. */
static enum status fs_read_all(int fd, const char *path, size_t limit, size_t expected, char **out,
			       size_t *length, struct err *err)
{
	size_t capacity = 0, have = 0;
	char *text = NULL;
	enum status status;

	for (;;) {
		/* One byte more than needed, so that the end is detected without growing. */
		size_t needed = have ? have + 2 : expected + 2;
		ssize_t got;

		if (mem_grow(&text, &capacity, needed, 1)) {
			status = err_nomem(err);
			goto fail;
		}
		got = fs_read_chunk(fd, text + have, capacity - have - 1);
		if (got < 0) {
			status = fs_fail(err, errno, "read", path);
			goto fail;
		}
		have += (size_t)got;
		if (have > limit) {
			status = err_set(err, ST_LIMIT, "%s: larger than the limit of %zu bytes",
					 path, limit);
			goto fail;
		}
		if (!got)
			break;
	}

	text[have] = '\0';
	*out = text;
	*length = have;
	return ST_OK;

fail:
	mem_free(text);
	return status;
}

enum status fs_read(const char *path, size_t limit, char **out, size_t *length, struct err *err)
{
	struct fs_reader reader;
	enum status status = fs_reader_open(&reader, path, err);

	*out = NULL;
	*length = 0;
	if (status != ST_OK)
		return status;
	if (reader.size > 0 && (uintmax_t)reader.size > limit)
		status = err_set(err, ST_LIMIT, "%s: larger than the limit of %zu bytes", path,
				 limit);
	else
		status = fs_read_all(reader.fd, path, (size_t)min((uint64_t)limit, reader.left),
				     reader.size > 0 ? (size_t)reader.size : FS_CHUNK, out, length,
				     err);
	fs_reader_close(&reader);
	return status;
}

/* Return the length of "BASE.PID-N.tmp", with which @name begins, or 0. */
static size_t fs_temporary_length(const char *name, const char *base)
{
	const char *at = name + strlen(base);
	char *end;

	if (!str_starts_with(name, base) || *at != '.' || strtol(at + 1, &end, 10) <= 0 ||
	    *end != '-')
		return 0;
	at = strstr(end, ".tmp");
	return at ? (size_t)(at - name) + strlen(".tmp") : 0;
}

/* A writer holds its file's lock until the file is in place, and the lock ends with its process,
 * whose id may soon be another one's. Files whose names go on after @length bytes are its, too. */
static bool fs_remove_unlocked(int folder, const char *name, size_t length)
{
	char owner[FS_PATH_SIZE];
	bool removed = false;
	int fd;

	if (!fs_path(owner, "%.*s", (int)length, name))
		return false;
	fd = openat(folder, owner, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 ? errno == ENOENT : flock(fd, LOCK_EX | LOCK_NB) == 0)
		removed = unlinkat(folder, name, 0) == 0;
	if (fd >= 0)
		close(fd);
	return removed;
}

bool fs_remove_stale(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char folder[FS_PATH_SIZE];
	const struct dirent *entry;
	bool removed = false;
	DIR *dir;

	if (slash && !fs_path(folder, "%.*s", (int)(base - path), path))
		return false;
	dir = opendir(slash ? folder : ".");
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		const size_t length = fs_temporary_length(entry->d_name, base);

		if (length > 0 && fs_remove_unlocked(dirfd(dir), entry->d_name, length))
			removed = true;
	}
	closedir(dir);
	return removed;
}

/* Lock a new file. Return false if another process took it for a left one before. */
static bool fs_lock_new(int fd)
{
	struct stat info;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return errno != EWOULDBLOCK; /* else this file system has no locks */
	return fstat(fd, &info) != 0 || info.st_nlink > 0;
}

/* Create a file beside @target, locked, and store its path in @name. Return -1 with errno set on
 * failure. */
static int fs_open_temporary(char name[FS_PATH_SIZE], const char *target, mode_t mode)
{
	static atomic_uint counter;

	for (;;) {
		int fd;

		if (!fs_path(name, "%s.%ld-%u.tmp", target, (long)getpid(),
			     atomic_fetch_add(&counter, 1))) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			return -1;
		if (fd >= 0 && fs_lock_new(fd))
			return fd;
		if (fd >= 0)
			close(fd);
	}
}

enum status fs_writer_open(struct fs_writer *writer, const char *path, struct err *err)
{
	return fs_writer_begin(writer, path, 0, err);
}

enum status fs_writer_begin(struct fs_writer *writer, const char *path, unsigned flags,
			    struct err *err)
{
	const mode_t mode = flags & FS_PRIVATE ? 0600 : 0666;
	bool exists = false;
	struct stat info;

	*writer = (struct fs_writer){.path = path, .fd = -1, .is_new = flags & FS_NEW};
	/* lstat(): a dangling link counts as existing. */
	if (writer->is_new && lstat(path, &info) == 0)
		return fs_fail(err, EEXIST, "write", path);
	/* Resolve links: the target of a link is replaced, not the link. */
	if (!realpath(path, writer->target) && !fs_path(writer->target, "%s", path))
		return fs_fail(err, ENAMETOOLONG, "write", path);

	if (!stat(writer->target, &info)) {
		exists = true;
		if (S_ISDIR(info.st_mode))
			return err_set(err, ST_INVALID, "%s: is a folder, not a file", path);
	}
	/* A device or pipe cannot be replaced; write to it directly. */
	writer->replaces = !exists || S_ISREG(info.st_mode);
	if (writer->replaces)
		fs_remove_stale(writer->target);
	if (writer->replaces)
		writer->fd = fs_open_temporary(writer->temporary, writer->target, mode);
	else
		writer->fd = open(writer->target, O_WRONLY | O_CLOEXEC);
	if (writer->fd < 0)
		return fs_fail(err, errno, "write", path);
	/* Ignore a failure to copy the mode: the contents matter more. */
	if (writer->replaces && exists && fchmod(writer->fd, info.st_mode & 07777))
		(void)0;
	return ST_OK;
}

void fs_writer_drop(struct fs_writer *writer)
{
	if (writer->fd < 0)
		return;
	close(writer->fd);
	writer->fd = -1;
	if (writer->replaces)
		unlink(writer->temporary);
}

enum status fs_writer_put(struct fs_writer *writer, const void *data, size_t length,
			  struct err *err)
{
	const char *at = data;

	while (length) {
		const ssize_t put = write(writer->fd, at, length);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			const int number = errno;

			fs_writer_drop(writer);
			return fs_fail(err, number, "write", writer->path);
		}
		at += put;
		length -= (size_t)put;
	}
	return ST_OK;
}

enum status fs_writer_patch(struct fs_writer *writer, uint64_t at, const void *data, size_t length,
			    struct err *err)
{
	enum status status = fs_write_at(writer->fd, at, data, length, writer->path, err);

	if (status != ST_OK)
		fs_writer_drop(writer);
	return status;
}

enum status fs_writer_stream(struct fs_writer *writer, FILE **out, struct err *err)
{
	int fd = fcntl(writer->fd, F_DUPFD_CLOEXEC, 0), number;

	*out = fd < 0 ? NULL : fdopen(fd, "w");
	if (*out)
		return ST_OK;
	number = errno; /* before close() changes it */
	if (fd >= 0)
		close(fd);
	return fs_fail(err, number, "write", writer->path);
}

/* Return 0 or an errno. link(), unlike rename(), never replaces a file created meanwhile. */
static int fs_install(const struct fs_writer *writer)
{
	struct stat info;

	if (writer->is_new) {
		if (link(writer->temporary, writer->target) == 0)
			return unlink(writer->temporary) ? errno : 0;
		/* The file system has no hard links. */
		if (errno == EEXIST || lstat(writer->target, &info) == 0)
			return EEXIST;
	}
	return rename(writer->temporary, writer->target) ? errno : 0;
}

/* Sync the folder of @path: a new name is durable only after that. Ignore failures (a file system
 * without sync, an unreadable folder), since the file itself exists. */
static void fs_sync_folder(const char *path)
{
	char folder[FS_PATH_SIZE];
	char *end;
	int fd;

	str_copy(folder, sizeof(folder), path);
	end = strrchr(folder, '/');
	if (end)
		end[end == folder] = '\0';
	fd = open(end ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

enum status fs_writer_close(struct fs_writer *writer, struct err *err)
{
	/* Closing one of two descriptors keeps the lock. */
	const int lock = writer->replaces ? fcntl(writer->fd, F_DUPFD_CLOEXEC, 0) : -1;
	int number = 0;

	if (writer->replaces && !writer->remade && fsync(writer->fd))
		number = errno;
	if (close(writer->fd) && !number)
		number = errno;
	writer->fd = -1;
	if (!number && writer->replaces)
		number = fs_install(writer);
	if (lock >= 0)
		close(lock);
	if (!number && writer->replaces && !writer->remade)
		fs_sync_folder(writer->target);
	if (!number)
		return ST_OK;
	if (writer->replaces)
		unlink(writer->temporary);
	return fs_fail(err, number, "write", writer->path);
}

static enum status fs_write_with(const char *path, unsigned flags, const void *data, size_t length,
				 struct err *err)
{
	struct fs_writer writer;
	enum status status = fs_writer_begin(&writer, path, flags, err);

	if (status == ST_OK)
		status = fs_writer_put(&writer, data, length, err);
	return status == ST_OK ? fs_writer_close(&writer, err) : status;
}

enum status fs_write(const char *path, const void *data, size_t length, struct err *err)
{
	return fs_write_with(path, 0, data, length, err);
}

enum status fs_write_private(const char *path, const void *data, size_t length, struct err *err)
{
	return fs_write_with(path, FS_PRIVATE, data, length, err);
}

enum status fs_check_write(const char *path, struct err *err)
{
	struct fs_writer writer;
	enum status status;
	struct stat info;

	/* Opening a pipe would block until it has a reader. */
	if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
		return ST_OK;
	status = fs_writer_open(&writer, path, err);
	if (status == ST_OK)
		fs_writer_drop(&writer);
	return status;
}

enum status fs_make_dirs(const char *path, struct err *err)
{
	char partial[FS_PATH_SIZE];
	size_t length = strlen(path);

	if (!length || !fs_path(partial, "%s", path))
		return fs_fail(err, length ? ENAMETOOLONG : ENOENT, "make the folder", path);

	for (size_t i = 1; i <= length; i++) {
		if (partial[i] != '/' && partial[i] != '\0')
			continue;
		partial[i] = '\0';
		if (mkdir(partial, 0777)) {
			int number = errno;

			/* Check after mkdir(): another process may create the same folder. */
			if (!fs_is_dir(partial)) {
				if (number == EEXIST)
					number = ENOTDIR;
				return fs_fail(err, number, "make the folder", path);
			}
		}
		if (i < length)
			partial[i] = '/';
	}

	return ST_OK;
}

bool fs_exists(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0;
}

bool fs_is_dir(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum status fs_list(struct fs_list *out, const char *folder, struct err *err)
{
	size_t room = 0;
	const struct dirent *entry;
	DIR *dir = opendir(folder);
	enum status status = ST_OK;

	*out = (struct fs_list){0};
	if (!dir)
		return fs_fail(err, errno, "list", folder);
	while (status == ST_OK && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (mem_grow(&out->names, &room, out->count + 1, sizeof(*out->names)) == 0)
			out->names[out->count] = mem_strdup(entry->d_name);
		else
			status = err_nomem(err);
		if (status == ST_OK && !out->names[out->count])
			status = err_nomem(err);
		out->count += status == ST_OK;
	}
	closedir(dir);
	if (status != ST_OK)
		fs_list_free(out);
	else if (out->count > 0)
		qsort(out->names, out->count, sizeof(*out->names), by_bytes);
	return status;
}

void fs_list_free(struct fs_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		mem_free(list->names[i]);
	mem_free(list->names);
	*list = (struct fs_list){0};
}

bool fs_is_same(const char *a, const char *b)
{
	struct stat one, other;

	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

bool fs_xdg(char out[FS_PATH_SIZE], const char *variable, const char *fallback)
{
	const char *base = getenv(variable);
	const char *home = getenv("HOME");

	/* XDG base directory specification: ignore relative paths. */
	if (base && base[0] == '/')
		return fs_path(out, "%s/ipuscope", base);
	if (fallback && home && home[0] == '/')
		return fs_path(out, "%s/%s/ipuscope", home, fallback);

	out[0] = '\0';
	return false;
}

bool fs_beside_program(char out[FS_PATH_SIZE], const char *relative)
{
	char program[FS_PATH_SIZE], path[FS_PATH_SIZE];
	const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
	int folder = 0; /* length of the folder part of the path */

	out[0] = '\0';
	/* A result that fills the buffer is truncated. */
	if (length <= 0 || (size_t)length >= sizeof(program))
		return false;
	program[length] = '\0';
	folder = (int)(strrchr(program, '/') - program);
	if (fs_path(path, "%.*s/%s", folder, program, relative) && realpath(path, out))
		return true;
	out[0] = '\0';
	return false;
}

bool fs_shared(char out[FS_PATH_SIZE], const char *name)
{
	char relative[FS_PATH_SIZE];

	out[0] = '\0';
	return fs_path(relative, "%s/%s", IPUSCOPE_SHARED, name) &&
	       fs_beside_program(out, relative);
}

bool fs_path(char out[FS_PATH_SIZE], const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(out, FS_PATH_SIZE, format, args);
	va_end(args);

	if (length >= 0 && length < FS_PATH_SIZE)
		return true;

	/* A truncated path names another file: return an empty one. */
	out[0] = '\0';
	return false;
}
