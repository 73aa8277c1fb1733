/*
 * A whole import of the bytes, whatever format they are: recognising, reading, sorting, recording.
 * The corpus has databases of other profilers; fuzz_trace has the texts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "reports/import/report_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	char folder[] = "/tmp/fuzz_import.XXXXXX", trace[64], output[64];
	/* Little memory to sort in: taking it costs more than reading a small file. */
	struct report_import_params params = {
		.trace = trace, .output = output, .sort_bytes = 1 << 16};
	struct report_import_counts counts;

	snprintf(trace, sizeof(trace), "/proc/self/fd/%d", fd);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size && mkdtemp(folder)) {
		snprintf(output, sizeof(output), "%s/x.db", folder);
		report_import(&params, &counts, NULL);
		unlink(output);
		rmdir(folder);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
