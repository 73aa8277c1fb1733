/*
 * See prof_disk.h. A file of this VFS is a file of SQLite's own behind a table of methods that
 * pass everything on; writes, and the growing of the log's index, are tried again.
 */
#include "profiler/prof_disk.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stddef.h>

#define VFS_NAME "ipuscope-space"

struct space_file {
	sqlite3_file base;
	sqlite3_file inner[]; /* SQLite's own, which is larger, as aligned as SQLite places files */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sqlite3_vfs vfs, *own;
static bool registered;

static _Thread_local bool (*wait_call)(void *user, int error);
static _Thread_local void *wait_user;

static sqlite3_file *inner_of(sqlite3_file *file)
{
	return ((struct space_file *)(void *)file)->inner;
}

/* Return whether a call that ended with @code found no space and is to be tried again; @waited: it
 * was before. */
static bool tries_again(int code, bool *waited)
{
	const int error = errno;
	const bool full = (code & 0xff) == SQLITE_FULL ||
			  ((code & 0xff) == SQLITE_IOERR &&
			   (error == ENOSPC || error == EDQUOT || error == EFBIG));

	if (!wait_call)
		return false;
	if (!full) {
		if (*waited)
			wait_call(wait_user, 0);
		return false;
	}
	*waited = wait_call(wait_user, error == 0 ? ENOSPC : error);
	errno = error;
	return *waited;
}

static int space_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
	sqlite3_file *inner = inner_of(file);
	bool waited = false;
	int code;

	do {
		errno = 0;
		code = inner->pMethods->xWrite(inner, bytes, count, offset);
	} while (tries_again(code, &waited));
	return code;
}

static int space_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
	sqlite3_file *inner = inner_of(file);
	bool waited = false;
	int code;

	do {
		errno = 0;
		code = inner->pMethods->xShmMap(inner, region, size, extend, out);
	} while (extend && tries_again(code, &waited));
	return code;
}

/* ---- passed on ------------------------------------------------------------------------------- */

static int space_close(sqlite3_file *file)
{
	return inner_of(file)->pMethods->xClose(inner_of(file));
}

static int space_read(sqlite3_file *file, void *out, int count, sqlite3_int64 offset)
{
	return inner_of(file)->pMethods->xRead(inner_of(file), out, count, offset);
}

static int space_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return inner_of(file)->pMethods->xTruncate(inner_of(file), size);
}

static int space_sync(sqlite3_file *file, int flags)
{
	return inner_of(file)->pMethods->xSync(inner_of(file), flags);
}

static int space_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return inner_of(file)->pMethods->xFileSize(inner_of(file), size);
}

static int space_lock(sqlite3_file *file, int level)
{
	return inner_of(file)->pMethods->xLock(inner_of(file), level);
}

static int space_unlock(sqlite3_file *file, int level)
{
	return inner_of(file)->pMethods->xUnlock(inner_of(file), level);
}

static int space_check_lock(sqlite3_file *file, int *out)
{
	return inner_of(file)->pMethods->xCheckReservedLock(inner_of(file), out);
}

static int space_control(sqlite3_file *file, int operation, void *argument)
{
	return inner_of(file)->pMethods->xFileControl(inner_of(file), operation, argument);
}

static int space_sector(sqlite3_file *file)
{
	return inner_of(file)->pMethods->xSectorSize(inner_of(file));
}

static int space_traits(sqlite3_file *file)
{
	return inner_of(file)->pMethods->xDeviceCharacteristics(inner_of(file));
}

static int space_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	return inner_of(file)->pMethods->xShmLock(inner_of(file), offset, count, flags);
}

static void space_shm_barrier(sqlite3_file *file)
{
	inner_of(file)->pMethods->xShmBarrier(inner_of(file));
}

static int space_shm_unmap(sqlite3_file *file, int remove)
{
	return inner_of(file)->pMethods->xShmUnmap(inner_of(file), remove);
}

/* Version 2: without mapped reads, which the writer does not use. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = space_close,
	.xRead = space_read,
	.xWrite = space_write,
	.xTruncate = space_truncate,
	.xSync = space_sync,
	.xFileSize = space_size,
	.xLock = space_lock,
	.xUnlock = space_unlock,
	.xCheckReservedLock = space_check_lock,
	.xFileControl = space_control,
	.xSectorSize = space_sector,
	.xDeviceCharacteristics = space_traits,
	.xShmMap = space_shm_map,
	.xShmLock = space_shm_lock,
	.xShmBarrier = space_shm_barrier,
	.xShmUnmap = space_shm_unmap,
};

static int space_open(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags,
		      int *out_flags)
{
	sqlite3_file *inner = inner_of(file);
	int code;

	(void)self;
	file->pMethods = NULL;
	inner->pMethods = NULL;
	code = own->xOpen(own, name, inner, flags, out_flags);
	if (code == SQLITE_OK && inner->pMethods->iVersion < 2) {
		inner->pMethods->xClose(inner);
		return SQLITE_CANTOPEN; /* it cannot have a write-ahead log */
	}
	if (inner->pMethods)
		file->pMethods = &methods;
	return code;
}

static void make_vfs(void)
{
	own = sqlite3_vfs_find(NULL);
	if (!own || own->iVersion < 2)
		return;
	vfs = *own; /* its other functions take its files' names, which are the same */
	vfs.pNext = NULL;
	vfs.zName = VFS_NAME;
	vfs.szOsFile = (int)offsetof(struct space_file, inner) + own->szOsFile;
	vfs.xOpen = space_open;
	registered = sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

const char *prof_space_vfs(void)
{
	pthread_once(&once, make_vfs);
	return registered ? VFS_NAME : NULL;
}

void prof_space_wait(bool (*wait)(void *user, int error), void *user)
{
	wait_call = wait;
	wait_user = user;
}
