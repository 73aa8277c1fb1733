/*
 * For bench_import.sh: a trace to import, and what reading it costs without importing.
 *
 *	bench_trace make FILE EVENTS     write a trace (about 125 bytes per event)
 *	bench_trace scan|read|cjson FILE what is said
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "reports/import/report_import_scan.h"

#define THREADS 16

/* Spans of 16 threads, each within or after the one before, two arguments each. */
static int make(const char *path, long events)
{
	static const char *const names[] = {"conv2d_fwd", "conv2d_bwd", "matmul",    "relu",
					    "maxpool",    "exchange",   "host_copy", "sgd"};
	static const char *const categories[] = {"compute", "exchange", "host"};
	FILE *file = fopen(path, "w");
	uint64_t seed = 1, ns = 0;

	if (!file)
		return 1;
	setvbuf(file, NULL, _IOFBF, 1 << 20);
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
	for (long i = 0; i < events; i++) {
		uint64_t dur;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		/* Every other span of a thread encloses the next. */
		ns += 100 + (seed >> 33) % 1900;
		dur = i / THREADS % 2 == 0 ? 60000 : 50 + (seed >> 40) % 1000;
		fprintf(file,
			"{\"name\":\"%s/%d\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64
			".%03d,\"dur\":%" PRIu64 ".%03d,\"pid\":1,\"tid\":%d,\"args\":{\"tile\":%d,"
			"\"bytes\":%d}}%s\n",
			names[seed >> 20 & 7], (int)((seed >> 24) % 25),
			categories[(seed >> 30) % 3], ns / 1000, (int)(ns % 1000), dur / 1000,
			(int)(dur % 1000), (int)(i % THREADS), (int)((seed >> 36) % 1472),
			(int)(seed >> 44 & 65535), i + 1 < events ? "," : "");
	}
	fputs("]}\n", file);
	return fclose(file) != 0;
}

static enum status count_event(void *user, const struct import_event *event, struct err *err)
{
	(void)event;
	(void)err;
	++*(uint64_t *)user;
	return ST_OK;
}

static enum status pass_other(void *user, bool too_large, uint64_t offset, struct err *err)
{
	(void)user;
	(void)too_large;
	(void)offset;
	(void)err;
	return ST_OK;
}

static enum status pass_value(void *user, const struct import_token *key,
			      const struct import_token *value, struct err *err)
{
	(void)user;
	(void)key;
	(void)value;
	(void)err;
	return ST_OK;
}

static int scan(const char *path)
{
	uint64_t events = 0;
	const struct import_scan_calls calls = {
		.event = count_event, .other = pass_other, .value = pass_value, .user = &events};
	struct import_scan *walk = calloc(1, sizeof(*walk));
	struct import_input input;
	enum status status = ST_NOMEM;

	if (walk && report__import_input_open(&input, path, NULL) == ST_OK) {
		if (report__import_scan_init(walk, &input)) {
			walk->calls = &calls;
			status = report__import_scan(walk, NULL);
		}
		report__import_scan_fini(walk);
		report__import_input_close(&input);
	}
	free(walk);
	printf("%" PRIu64 " events\n", events);
	return status != ST_OK;
}

static int read_file(const char *path)
{
	static char buffer[1 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, buffer, sizeof(buffer))) > 0)
		bytes += (uint64_t)got;
	if (fd >= 0)
		close(fd);
	printf("%" PRIu64 " bytes\n", bytes);
	return got != 0;
}

static int parse(const char *path)
{
	char *text;
	size_t length;
	cJSON *tree;

	if (fs_read(path, SIZE_MAX / 2, &text, &length, NULL) != ST_OK)
		return 1;
	tree = cJSON_ParseWithLength(text, length);
	printf("%s\n", !tree ? "malformed" : "parsed");
	cJSON_Delete(tree);
	mem_free(text);
	return !tree;
}

int main(int argc, char **argv)
{
	int code = 2;

	if (argc == 4 && strcmp(argv[1], "make") == 0)
		code = make(argv[2], atol(argv[3]));
	else if (argc == 3 && strcmp(argv[1], "scan") == 0)
		code = scan(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "read") == 0)
		code = read_file(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "cjson") == 0)
		code = parse(argv[2]);
	if (code != 0)
		fprintf(stderr, "bench_trace: %s\n",
			code == 2 ? "make FILE EVENTS, scan FILE, read FILE or cjson FILE"
				  : "failed");
	return code;
}
