/*
 * Recordings of other programs, whatever format they are: recognising, reading, pairing halves.
 * Nothing is recorded, which takes a hundred times as long; fuzz_import has the whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "reports/import/report_import_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct report_import_params params = {.sort_bytes = 1 << 16};
	struct report_import_counts counts = {0};
	struct import *import = calloc(1, sizeof(*import));
	int fd = memfd_create("recording", MFD_CLOEXEC);
	char trace[64];

	snprintf(trace, sizeof(trace), "/proc/self/fd/%d", fd);
	if (import && fd >= 0 && write(fd, data, size) == (ssize_t)size) {
		import->params = &params;
		import->counts = &counts;
		import->input.fd = -1;
		if (report__import_input_open(&import->input, trace, NULL) == ST_OK &&
		    report__import_init(import, "/tmp/fuzz_recording", size % 2 == 0, NULL) ==
			    ST_OK &&
		    report__import_read(import, NULL) == ST_OK)
			report__import_pair(import, NULL);
		report__import_fini(import);
	}
	if (fd >= 0)
		close(fd);
	free(import);
	return 0;
}
