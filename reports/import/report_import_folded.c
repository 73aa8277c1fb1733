/*
 * Folded stacks: lines `OUTER;INNER;... COUNT`, as flamegraph.pl, perf's stackcollapse, py-spy and
 * async-profiler write them. See report_import_reader.h.
 *
 * The stacks have no times, only weights. They become one track, line after line, on which a count
 * takes 1 ns; frames that adjacent lines share are one span. So a span lasts what was counted in
 * it, and its self time is that of its own stack.
 */
#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_internal.h"

#define LINE_MOST  ((size_t)1 << 20) /* bytes */
#define DEPTH_MOST 4096
#define PROGRESS   4096 /* lines between two reports of the progress */

/* Failures stick in `err`: nothing is handed over after the first. */
struct stacks {
	struct import *import;
	struct err *err;
	uint32_t track;
	struct frame {
		uint32_t site;
		int64_t start_ns;
	} open[DEPTH_MOST]; /* of the line before, the outermost first */
	int depth;
	int64_t now_ns;
	uint64_t offset;        /* of the line in the file */
	char buffer[LINE_MOST]; /* holds the longest line */
};

/* Split a line without its end into stack and count. Return the length of the stack, 0: it is no
 * such line. */
static size_t parse_count(const char *line, size_t length, int64_t *count)
{
	size_t digits = 0;

	*count = 0;
	while (digits < length && line[length - 1 - digits] >= '0' &&
	       line[length - 1 - digits] <= '9')
		digits++;
	if (digits == 0 || digits > 18 || length < digits + 2 || line[length - digits - 1] != ' ')
		return 0;
	for (size_t i = length - digits; i < length; i++)
		*count = *count * 10 + (line[i] - '0');
	return length - digits - 1;
}

static size_t trim_end(const char *line, size_t length)
{
	while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' '))
		length--;
	return length;
}

/* End the open frames from @depth on: each is a span. Of equal times the first one encloses. */
static void close_frames(struct stacks *stacks, int depth)
{
	for (int i = depth; i < stacks->depth && !err_stuck(stacks->err); i++) {
		const struct frame *frame = &stacks->open[i];

		stacks->import->counts->events++;
		report__import_span(stacks->import, stacks->track, frame->site, frame->start_ns,
				    stacks->now_ns - frame->start_ns, stacks->err);
	}
	stacks->depth = min(stacks->depth, depth);
}

/* A frame of the line's stack: the same as that of the line before, or a new one. */
static void enter_frame(struct stacks *stacks, int depth, const char *name, size_t length,
			bool *same)
{
	char text[IMPORT_TEXT_SIZE];
	const size_t kept = min(length, sizeof(text) - 1);
	uint32_t site;

	memcpy(text, name, kept);
	text[kept] = '\0';
	if (report__import_name_site(stacks->import, "stack", text, &site, stacks->err) != ST_OK)
		return;
	*same = *same && depth < stacks->depth && stacks->open[depth].site == site;
	if (*same)
		return;
	close_frames(stacks, depth);
	stacks->open[stacks->depth++] = (struct frame){site, stacks->now_ns};
}

static void read_line(struct stacks *stacks, const char *line, size_t length)
{
	bool same = true;
	int64_t count;
	int depth = 0;

	length = trim_end(line, length);
	if (length == 0)
		return;
	length = parse_count(line, length, &count);
	if (length == 0 || count == 0 || stacks->now_ns > INT64_MAX / 2 - count) {
		stacks->import->counts->events++;
		if (length == 0 || count == 0)
			report__import_left_what(stacks->import,
						 length == 0 ? "lines without a count"
							     : "lines with a count of 0",
						 1);
		else
			report__import_left_at(stacks->import, REPORT_IMPORT_LEFT_TIME_RANGE,
					       stacks->offset);
		return;
	}
	for (const char *at = line, *end = line + length; at && !err_stuck(stacks->err); depth++) {
		const char *next = memchr(at, ';', (size_t)(end - at));

		if (depth == DEPTH_MOST) {
			stacks->import->counts->events++;
			report__import_left_at(stacks->import, REPORT_IMPORT_LEFT_TOO_DEEP,
					       stacks->offset);
			break;
		}
		enter_frame(stacks, depth, at, (size_t)((next ? next : end) - at), &same);
		at = next ? next + 1 : NULL;
	}
	close_frames(stacks, depth);
	stacks->now_ns += count;
}

static void read_lines(struct stacks *stacks)
{
	struct import_input *input = &stacks->import->input;
	char *buffer = stacks->buffer;
	struct err *err = stacks->err;
	size_t filled = 0, got = 1;
	uint64_t lines = 0;

	while (got > 0 && !err_stuck(err) &&
	       report__import_input_read(input, buffer + filled, LINE_MOST - filled, &got, err) ==
		       ST_OK) {
		size_t at = 0;

		filled += got;
		while (at < filled && !err_stuck(err)) {
			const char *end = memchr(buffer + at, '\n', filled - at);
			const size_t length = end ? (size_t)(end - buffer) - at : filled - at;

			/* The rest of the line is still to be read, unless the file ends here. */
			if (!end && got > 0 && length < LINE_MOST)
				break;
			if (!end && length == LINE_MOST) {
				err_set(err, ST_FORMAT,
					"%s: byte %" PRIu64 ": a line of more than 1 MiB",
					input->name, stacks->offset);
				return;
			}
			read_line(stacks, buffer + at, length);
			at += length + (end ? 1 : 0);
			stacks->offset += length + (end ? 1 : 0);
			if (++lines % PROGRESS == 0)
				report__import_progress_read(stacks->import, input->taken,
							     input->size, err);
		}
		filled -= at;
		memmove(buffer, buffer + at, filled);
	}
	close_frames(stacks, 0);
}

static enum status read_folded(struct import *import, struct err *err)
{
	const struct import_track track = {.kind = IMPORT_THREAD,
					   .thread = "stacks",
					   .name = "stacks",
					   .process_sort = IPS_NULL};
	struct stacks *stacks = mem_calloc(1, sizeof(*stacks));
	struct err own;

	err = err_start(err, &own);
	if (!stacks)
		return err_nomem(err);
	stacks->import = import;
	stacks->err = err;
	if (report__import_track(import, &track, &stacks->track, err) == ST_OK &&
	    report__import_fact(import, "unit", "1 ns is a count of 1", err) == ST_OK)
		read_lines(stacks);
	import->counts->bytes = stacks->offset;
	mem_free(stacks);
	return err->status;
}

/* Every whole line of the beginning is a stack with a count, and one has two frames. */
static bool is_folded(const unsigned char *head, size_t size)
{
	const char *at = (const char *)head, *end = at + size;
	bool nested = false, any = false;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		size_t length;
		int64_t count;

		if (!line_end && size == IMPORT_HEAD && any)
			break;
		length = trim_end(at, (size_t)((line_end ? line_end : end) - at));
		if (length > 0 &&
		    (parse_count(at, length, &count) == 0 || memchr(at, '\0', length)))
			return false;
		nested = nested || memchr(at, ';', length);
		any = true;
		at = line_end ? line_end + 1 : end;
	}
	return nested && head[0] != '{' && head[0] != '[';
}

const struct import_format report__import_folded = {"folded stacks", is_folded, read_folded};
