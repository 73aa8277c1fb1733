/*
 * Chrome traces: the walk over the text with everything that is made of an event. The text comes
 * from a file in memory, which may be gzip; nothing is recorded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "reports/import/report_import_scan.h"

static enum status take_event(void *user, const struct import_event *event, struct err *err)
{
	int64_t ns;
	char text[64];

	(void)user;
	(void)err;
	report__import_time(&event->fields[IMPORT_FIELD_TS], &ns);
	report__import_unescape(&event->fields[IMPORT_FIELD_NAME], text, sizeof(text), NULL, NULL);
	for (size_t at = 0; at < event->args.used;
	     at +=
	     import_arg_size((const struct import_arg *)(const void *)(event->args.bytes + at)))
		continue;
	return ST_OK;
}

static enum status take_other(void *user, bool too_large, uint64_t offset, struct err *err)
{
	(void)user;
	(void)too_large;
	(void)offset;
	(void)err;
	return ST_OK;
}

static enum status take_value(void *user, const struct import_token *key,
			      const struct import_token *value, struct err *err)
{
	(void)user;
	(void)key;
	(void)value;
	(void)err;
	return ST_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct import_scan_calls calls = {
		.event = take_event, .other = take_other, .value = take_value};
	struct import_scan *scan = calloc(1, sizeof(*scan));
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct import_input input;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (scan && fd >= 0 && write(fd, data, size) == (ssize_t)size &&
	    report__import_input_open(&input, path, NULL) == ST_OK) {
		const bool ready = report__import_scan_init(scan, &input);

		scan->calls = &calls;
		if (ready)
			report__import_scan(scan, NULL);
		report__import_scan_fini(scan);
		report__import_input_close(&input);
	}
	if (fd >= 0)
		close(fd);
	free(scan);
	return 0;
}
