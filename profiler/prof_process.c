/*
 * Process identity, from /proc, and nudges. See prof_process.h.
 */
#include "profiler/prof_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/minmax.h"

/* Read the first line of a small file, without its newline; "" if it cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[max(0, length)] = 0;
	out[strcspn(out, "\n")] = 0;
}

int64_t prof_process_start(int64_t pid)
{
	char path[64], text[1024], *field;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	read_line(path, text, sizeof(text));
	/* The name in parentheses may hold any character; state is field 3, the start time field
	 * 22. */
	field = strrchr(text, ')');
	if (!field || field[1] == 0 || field[2] == 'Z' || field[2] == 'X')
		return 0;
	for (int i = 2; i < 22 && field; i++)
		field = strchr(field + 1, ' ');
	return !field ? 0 : strtoll(field + 1, NULL, 10);
}

int64_t prof_process_resident(void)
{
	char text[128], *field;

	/* Fields: total pages, resident pages. */
	read_line("/proc/self/statm", text, sizeof(text));
	field = strchr(text, ' ');
	return !field ? 0 : strtoll(field + 1, NULL, 10) * sysconf(_SC_PAGESIZE);
}

void prof_process_host(char out[PROF_HOST_SIZE])
{
	char boot[64];
	size_t length;

	if (gethostname(out, 256) != 0)
		out[0] = 0;
	out[255] = 0;
	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	length = strlen(out);
	snprintf(out + length, PROF_HOST_SIZE - length, " %s", boot);
}

/* ---- nudges ---------------------------------------------------------------------------------- */

void prof_nudge_send(const char *path)
{
	/* If the touch fails, readers still notice at their next poll. */
	(void)utimensat(AT_FDCWD, path, NULL, 0);
}

int prof_nudge_watch(const char *path)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (watch >= 0 && inotify_add_watch(watch, path, IN_ATTRIB) < 0) {
		close(watch);
		watch = -1;
	}
	return watch;
}

bool prof_nudge_taken(int watch)
{
	char events[1024];
	bool taken = false;

	while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
		taken = true;
	return taken;
}
