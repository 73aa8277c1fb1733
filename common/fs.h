/*
 * Files and folders, with errors that name the path.
 */
#ifndef COMMON_FS_H
#define COMMON_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

#define FS_PATH_SIZE 4096

/* Read all of @path (a regular file or a pipe) of at most @limit bytes. *@out is owned by the
 * caller (mem_free) and is followed by a 0 byte. A missing file is ST_NOTFOUND. */
enum status fs_read(const char *path, size_t limit, char **out, size_t *length, struct err *err);

/* Read a file in pieces, of any size. A device or a pipe may have no end: it is limited. */
struct fs_reader {
	const char *path; /* borrowed */
	int fd;
	int64_t size;  /* of a regular file; -1: unknown */
	uint64_t left; /* bytes that may still come */
};
enum status fs_reader_open(struct fs_reader *reader, const char *path, struct err *err);
/* Read up to @size bytes; *@got is less only at the end of the file. */
enum status fs_reader_read(struct fs_reader *reader, void *out, size_t size, size_t *got,
			   struct err *err);
void fs_reader_close(struct fs_reader *reader); /* accepts one that did not open */

/* Remove the temporary files of @path, PATH.PID-N.tmp, and those whose names go on after it, of
 * processes that were killed as they wrote it. Return whether any was removed. */
bool fs_remove_stale(const char *path);
/* Write @path atomically: a temporary file beside it, then rename. Calls fs_remove_stale(). */
enum status fs_write(const char *path, const void *data, size_t length, struct err *err);

/* Check in advance whether fs_write() to @path can succeed: its folder exists and is writable. An
 * existing file is not changed. */
enum status fs_check_write(const char *path, struct err *err);

/* Flags of fs_writer_begin(). */
enum {
	FS_NEW = 1 << 0,    /* fail if the path exists, at the start or at the end */
	FS_PRIVATE = 1 << 1 /* create with mode 0600 */
};
enum status fs_write_private(const char *path, const void *data, size_t length, struct err *err);

/* fs_write() in pieces. A failed fs_writer_put() has already cleaned up. Otherwise
 * fs_writer_close() installs the file, and fs_writer_drop() removes it. */
struct fs_writer {
	const char *path;             /* borrowed */
	int fd;                       /* -1: closed */
	bool replaces;                /* writes a temporary file that close renames */
	bool is_new;                  /* FS_NEW */
	bool remade;                  /* the contents can be regenerated: close does not sync */
	char target[FS_PATH_SIZE];    /* @path without links */
	char temporary[FS_PATH_SIZE]; /* beside it, locked while the writer is open */
};
enum status fs_writer_open(struct fs_writer *writer, const char *path, struct err *err);
enum status fs_writer_begin(struct fs_writer *writer, const char *path, unsigned flags,
			    struct err *err);
enum status fs_writer_put(struct fs_writer *writer, const void *data, size_t length,
			  struct err *err);
/* Overwrite earlier bytes from offset @at on; regular files only. Fails as fs_writer_put() does. */
enum status fs_writer_patch(struct fs_writer *writer, uint64_t at, const void *data, size_t length,
			    struct err *err);
enum status fs_writer_close(struct fs_writer *writer, struct err *err);
void fs_writer_drop(struct fs_writer *writer); /* accepts a closed one */
/* Open a buffered stream that appends to the file. The caller fclose()s it before closing or
 * dropping the writer. On failure the writer is unchanged. */
enum status fs_writer_stream(struct fs_writer *writer, FILE **out, struct err *err);

/* Open a file without a name, which disappears with the process, in the folder of @beside; *@fd is
 * the caller's. Errors name @beside. */
enum status fs_unnamed(const char *beside, int *fd, struct err *err);
/* Write, or read, all @length bytes at the offset @at. Errors name @what, which the bytes are. */
enum status fs_write_at(int fd, uint64_t at, const void *data, size_t length, const char *what,
			struct err *err);
enum status fs_read_at(int fd, uint64_t at, void *out, size_t length, const char *what,
		       struct err *err);

enum status fs_make_dirs(const char *path, struct err *err); /* like mkdir -p */
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
bool fs_is_same(const char *a, const char *b); /* both exist and are the same file */

/* Names in a folder in byte order, without those that begin with a dot. On failure the list is
 * empty. */
struct fs_list {
	char **names; /* owned, including each string */
	size_t count;
};
enum status fs_list(struct fs_list *out, const char *folder, struct err *err);
void fs_list_free(struct fs_list *list); /* accepts a zeroed struct */

/* Our folder below an XDG base: $@variable ("XDG_CACHE_HOME"), else $HOME/@fallback, followed by
 * "/ipuscope". False if neither is set or the path is too long. Nothing is created. */
bool fs_xdg(char out[FS_PATH_SIZE], const char *variable, const char *fallback);

/* Resolve @relative against the folder of this program, with links resolved. False if nothing
 * exists there. */
bool fs_beside_program(char out[FS_PATH_SIZE], const char *relative);

/* Path of an installed file such as "examples" or "script/get-mnist", with links resolved. It is
 * found relative to the running program, so an installed tree may be moved. False if absent. */
bool fs_shared(char out[FS_PATH_SIZE], const char *name);

/* printf() a path; false if it does not fit (then @out is empty). */
bool fs_path(char out[FS_PATH_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* COMMON_FS_H */
