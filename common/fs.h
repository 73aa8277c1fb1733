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

/* Write @path whole or not at all (a temporary beside it, then rename). */
enum status fs_write(const char *path, const void *data, size_t length, struct err *err);

/* What fs_write() would say of @path, asked before there is anything to write: its folder is there
 * and takes a new file. What is there already stays as it is. */
enum status fs_check_write(const char *path, struct err *err);

/* What fs_writer_begin() is asked for beside that. */
enum {
	FS_NEW = 1 << 0,    /* fails where there is something already, now or at the end */
	FS_PRIVATE = 1 << 1 /* what is new is for the user alone to read */
};
enum status fs_write_private(const char *path, const void *data, size_t length, struct err *err);

/* As fs_write(), piece by piece. After a failed fs_writer_put() there is nothing more to do; else
 * fs_writer_close() puts the file in its place, and fs_writer_drop() leaves nothing of it. */
struct fs_writer {
	const char *path; /* borrowed */
	int fd;           /* -1: closed */
	bool replaces;    /* a temporary is to be renamed */
	bool is_new;      /* FS_NEW */
	bool remade;      /* what is lost can be made anew: closing waits for no disk */
	char target[FS_PATH_SIZE], temporary[FS_PATH_SIZE];
};
enum status fs_writer_open(struct fs_writer *writer, const char *path, struct err *err);
enum status fs_writer_begin(struct fs_writer *writer, const char *path, unsigned flags,
			    struct err *err);
enum status fs_writer_put(struct fs_writer *writer, const void *data, size_t length,
			  struct err *err);
/* Over what was put before, from byte @at on; a file's alone. Fails as fs_writer_put() does. */
enum status fs_writer_patch(struct fs_writer *writer, uint64_t at, const void *data, size_t length,
			    struct err *err);
enum status fs_writer_close(struct fs_writer *writer, struct err *err);
void fs_writer_drop(struct fs_writer *writer); /* accepts a closed one */
/* A buffered stream onto what was put so far: the caller closes it (fclose) before he closes or
 * drops the writer, which is as it was on failure. */
enum status fs_writer_stream(struct fs_writer *writer, FILE **out, struct err *err);

enum status fs_make_dirs(const char *path, struct err *err); /* like mkdir -p */
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
bool fs_is_same(const char *a, const char *b); /* both are there, and are one file */

/* What lies in a folder, by name in the order of their bytes; names that begin with a dot are left
 * out. On failure the list is empty. */
struct fs_list {
	char **names; /* owned, as each of them */
	size_t count;
};
enum status fs_list(struct fs_list *out, const char *folder, struct err *err);
void fs_list_free(struct fs_list *list); /* accepts a zeroed struct */

/* A folder of ours under an XDG base: @variable ("XDG_CACHE_HOME"), else $HOME/@fallback, then
 * "/ipuscope". false where neither is set or it does not fit. Nothing is created. */
bool fs_xdg(char out[FS_PATH_SIZE], const char *variable, const char *fallback);

/* What lies at @relative, seen from the folder of this program: its place, without links. false
 * where nothing is there. */
bool fs_beside_program(char out[FS_PATH_SIZE], const char *relative);

/* What is installed for this program, "examples" or "script/get-mnist": its place, without links,
 * found from where the program itself lies, so that an installed tree may be moved. false where it
 * is not there. */
bool fs_shared(char out[FS_PATH_SIZE], const char *name);

/* printf a path; false where it does not fit. */
bool fs_path(char out[FS_PATH_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* COMMON_FS_H */
