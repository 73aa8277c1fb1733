/*
 * Files in the user's folder of state, and the lock beside them.
 *
 * Threading and ownership: see the header.
 */
#include "viewer/view_own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/str.h"

#define LOCK_TRIES   1000
#define LOCK_WAIT_NS 1000000 /* between two tries */

bool view_own_path(char out[FS_PATH_SIZE], const char *name)
{
	char folder[FS_PATH_SIZE];

	out[0] = '\0';
	return fs_xdg(folder, "XDG_STATE_HOME", ".local/state") &&
	       fs_path(out, "%s/%s", folder, name);
}

enum status view_own_read(const char *path, size_t most, char **text, size_t *length,
			  struct err *err)
{
	struct stat info;

	*text = NULL;
	*length = 0;
	if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
		return err_set(err, ST_INVALID, "%s: is not a file", path);
	return fs_read(path, most, text, length, err);
}

static enum status view_own_folder(const char *path, struct err *err)
{
	char folder[FS_PATH_SIZE];

	str_copy(folder, sizeof(folder), path);
	*strrchr(folder, '/') = '\0';
	return fs_make_dirs(folder, err);
}

enum status view_own_write(const char *path, const void *data, size_t length, struct err *err)
{
	enum status status = view_own_folder(path, err);

	if (status == ST_OK)
		status = fs_write_private(path, data, length, err);
	return status;
}

int view_own_lock(void)
{
	const struct timespec wait = {.tv_nsec = LOCK_WAIT_NS};
	char path[FS_PATH_SIZE];
	int lock;

	if (!view_own_path(path, "lock") || view_own_folder(path, NULL) != ST_OK)
		return -1;
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	for (int i = 0; lock >= 0 && i < LOCK_TRIES; i++) {
		if (flock(lock, LOCK_EX | LOCK_NB) == 0)
			return lock;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&wait, NULL);
	}
	view_own_unlock(lock);
	return -1;
}

void view_own_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}
