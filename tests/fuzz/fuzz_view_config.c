/*
 * The user's settings of ipu-view.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "viewer/view_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("view.json", MFD_CLOEXEC);
	struct view_config config;
	char path[64];
	struct err err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	view_config_defaults(&config);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
		view_config_load(&config, path, &err);
	if (fd >= 0)
		close(fd);
	return 0;
}
