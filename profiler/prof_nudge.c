/*
 * Nudges. See prof_nudge.h.
 */
#include "profiler/prof_nudge.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

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
