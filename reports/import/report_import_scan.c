/*
 * The walk over a trace. See report_import_scan.h.
 */
#include "reports/import/report_import_scan.h"

#include <string.h>

#include "common/mem.h"

bool report__import_scan_init(struct import_scan *scan, struct import_input *input,
			      const struct import_scan_calls *calls)
{
	memset(scan, 0, sizeof(*scan));
	scan->input = input;
	scan->calls = calls;
	scan->capacity = IMPORT_WINDOW;
	scan->window = mem_alloc(IMPORT_WINDOW + IMPORT_PADDING);
	if (!scan->window || !report__import_names_init(&scan->names))
		return false;
	memset(scan->window, 0, IMPORT_PADDING);
	scan->reader.at = scan->window;
	scan->reader.end = scan->window;
	return true;
}

void report__import_scan_fini(struct import_scan *scan)
{
	report__import_names_fini(&scan->names);
	mem_free(scan->window);
	scan->window = NULL;
}

uint64_t report__import_scan_at(const struct import_scan *scan)
{
	return scan->offset + (uint64_t)(scan->reader.at - scan->window);
}

/* ---- the window ------------------------------------------------------------------------------ */

static enum status grow_window(struct import_scan *scan, struct err *err)
{
	size_t have = (size_t)(scan->reader.end - scan->window);
	char *larger = mem_resize(scan->window, scan->capacity * 2 + IMPORT_PADDING, 1);

	if (!larger)
		return err_nomem(err);
	scan->window = larger;
	scan->capacity *= 2;
	scan->reader.at = larger;
	scan->reader.end = larger + have;
	return ST_OK;
}

/* Drop what lies before reader.at and read on. At the end of the text only `ended` changes. */
static enum status refill(struct import_scan *scan, struct err *err)
{
	struct import_reader *reader = &scan->reader;
	size_t have = (size_t)(reader->end - reader->at), got = 0;
	enum status status = ST_OK;

	scan->offset = report__import_scan_at(scan);
	memmove(scan->window, reader->at, have);
	reader->at = scan->window;
	reader->end = scan->window + have;
	reader->more = false;
	if (have == scan->capacity)
		status = grow_window(scan, err);
	while (status == ST_OK && have < scan->capacity && !scan->ended) {
		status = report__import_input_read(scan->input, scan->window + have,
						   scan->capacity - have, &got, err);
		have += got;
		scan->ended = got == 0;
	}
	reader->end = scan->window + have;
	memset(scan->window + have, 0, IMPORT_PADDING);
	if (status == ST_OK && scan->calls->progress)
		status = scan->calls->progress(scan->calls->user, scan->input->taken, err);
	return status;
}

/* Blanks, then the next character; 0: the text ends. */
static enum status peek(struct import_scan *scan, char *out, struct err *err)
{
	for (;;) {
		enum status status;

		*out = report__import_peek(&scan->reader);
		if (!scan->reader.more || scan->ended)
			return ST_OK;
		status = refill(scan, err);
		if (status != ST_OK)
			return status;
	}
}

static enum status broken(struct import_scan *scan, const char *why)
{
	scan->broken = why;
	scan->broken_at = report__import_scan_at(scan);
	return ST_OK;
}

/* ---- what is too large for the window -------------------------------------------------------- */

/* A value goes by, without being kept: @depth brackets or a text are open. */
struct passing {
	int64_t depth;
	bool text, escape;
};

/* Go on in the window; true: the value is over. */
static bool pass_window(struct import_reader *reader, struct passing *passing)
{
	for (; reader->at < reader->end; reader->at++) {
		char c = *reader->at;

		if (passing->escape) {
			passing->escape = false;
		} else if (passing->text) {
			passing->escape = c == '\\';
			passing->text = c != '"';
		} else if (c == '"') {
			passing->text = true;
			continue;
		} else if (c == '{' || c == '[') {
			passing->depth++;
			continue;
		} else if (c == '}' || c == ']') {
			passing->depth--;
		}
		if (passing->depth == 0 && !passing->text) {
			reader->at++;
			return true;
		}
	}
	return false;
}

/* The value at reader.at, which is an object, an array or a text. */
static enum status pass(struct import_scan *scan, struct err *err)
{
	struct passing passing = {0, false, false};

	while (!pass_window(&scan->reader, &passing)) {
		enum status status = refill(scan, err);

		if (status != ST_OK)
			return status;
		if (scan->ended && scan->reader.at == scan->reader.end)
			return broken(scan, "the text ends within a value");
	}
	return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum outcome {
	WHOLE,     /* parsed */
	TOO_LARGE, /* larger than @most: reader.at is where it begins */
	BROKEN
};

/* A try to parse has failed: bring more text, or say that there is none. *@again: try again. */
static enum status after_failure(struct import_scan *scan, const char *start, size_t most,
				 enum outcome *outcome, bool *again, struct err *err)
{
	struct import_reader *reader = &scan->reader;

	*again = false;
	*outcome = BROKEN;
	if (reader->why)
		return broken(scan, reader->why);
	if (!reader->more)
		return err_nomem(err);
	reader->at = start;
	if (scan->ended) {
		reader->at = reader->end;
		return broken(scan, "the text ends here, within a value");
	}
	if ((size_t)(reader->end - start) >= most) {
		reader->more = false;
		*outcome = TOO_LARGE;
		return ST_OK;
	}
	*again = true;
	return refill(scan, err);
}

static enum status take_event(struct import_scan *scan, enum outcome *outcome, struct err *err)
{
	enum status status = ST_OK;
	bool again = true;

	while (again && status == ST_OK) {
		const char *start = scan->reader.at;

		scan->event.offset = report__import_scan_at(scan);
		*outcome = WHOLE;
		if (report__import_event(&scan->reader, &scan->names, &scan->guess, &scan->event))
			return ST_OK;
		status = after_failure(scan, start, IMPORT_EVENT_MOST, outcome, &again, err);
	}
	return status;
}

static enum status take_value(struct import_scan *scan, size_t most, struct import_token *out,
			      enum outcome *outcome, struct err *err)
{
	enum status status = ST_OK;
	bool again = true;

	while (again && status == ST_OK) {
		const char *start = scan->reader.at;

		*outcome = WHOLE;
		if (report__import_value(&scan->reader, out))
			return ST_OK;
		status = after_failure(scan, start, most, outcome, &again, err);
	}
	return status;
}

/* ---- events ---------------------------------------------------------------------------------- */

static enum status one_event(struct import_scan *scan, char first, struct err *err)
{
	const struct import_scan_calls *calls = scan->calls;
	uint64_t offset = report__import_scan_at(scan);
	struct import_token token;
	enum outcome outcome;
	enum status status;

	if (first == '{')
		status = take_event(scan, &outcome, err);
	else
		status = take_value(scan, IMPORT_EVENT_MOST, &token, &outcome, err);
	if (status != ST_OK || outcome == BROKEN)
		return status;
	if (outcome == TOO_LARGE && (first == '{' || first == '[' || first == '"')) {
		status = pass(scan, err);
	} else if (outcome == TOO_LARGE) {
		return broken(scan, "a word that is no value");
	} else if (first == '{') {
		return calls->event(calls->user, &scan->event, err);
	}
	if (status != ST_OK || scan->broken)
		return status;
	return calls->other(calls->user, outcome == TOO_LARGE, offset, err);
}

/* Behind "[". The closing bracket is optional where @alone: nothing follows the array. */
static enum status take_events(struct import_scan *scan, bool alone, struct err *err)
{
	enum status status = ST_OK;
	char c;

	scan->found = true;
	while (status == ST_OK && !scan->broken) {
		status = peek(scan, &c, err);
		if (status != ST_OK)
			return status;
		if (c == ']') {
			scan->reader.at++;
			return ST_OK;
		}
		if (c == 0 && scan->reader.at >= scan->reader.end)
			return alone && !scan->input->cut
				       ? ST_OK
				       : broken(scan, "the text ends here, among the events");
		if (c == ',')
			scan->reader.at++;
		else
			status = one_event(scan, c, err);
	}
	return status;
}

/* ---- the top level --------------------------------------------------------------------------- */

/* The member whose key is @key (in memory of its own); reader.at is at its value. */
static enum status take_member(struct import_scan *scan, const struct import_token *key,
			       struct err *err)
{
	const struct import_scan_calls *calls = scan->calls;
	struct import_token token;
	enum outcome outcome;
	enum status status;
	char c;

	status = peek(scan, &c, err);
	if (status != ST_OK)
		return status;
	if (c == '[' && report__import_is(key, "traceEvents")) {
		scan->reader.at++;
		return take_events(scan, false, err);
	}
	status = take_value(scan, IMPORT_VALUE_MOST, &token, &outcome, err);
	if (status != ST_OK || outcome == BROKEN)
		return status;
	if (outcome == WHOLE)
		return calls->value(calls->user, key, &token, err);
	status = pass(scan, err);
	return status != ST_OK ? status : calls->value(calls->user, key, NULL, err);
}

/* Behind "{". */
static enum status take_object(struct import_scan *scan, struct err *err)
{
	enum status status = ST_OK;
	char name[256], c;

	while (status == ST_OK && !scan->broken) {
		struct import_token key;
		enum outcome outcome;

		status = peek(scan, &c, err);
		if (status != ST_OK)
			return status;
		if (c == '}') {
			scan->reader.at++;
			return ST_OK;
		}
		if (c == ',') {
			scan->reader.at++;
			continue;
		}
		if (c == 0 && scan->reader.at >= scan->reader.end)
			return broken(scan, "the text ends here, before the closing }");
		if (c != '"')
			return broken(scan, "a key in quotes or } is expected");
		status = take_value(scan, IMPORT_VALUE_MOST, &key, &outcome, err);
		if (status != ST_OK || scan->broken)
			return status;
		if (outcome == TOO_LARGE)
			return broken(scan, "a key of more than 64 KiB");
		key.length = report__import_unescape(&key, name, sizeof(name), NULL, NULL);
		key.at = name;
		status = peek(scan, &c, err);
		if (status == ST_OK && c != ':')
			return broken(scan, "a colon is expected");
		scan->reader.at++;
		if (status == ST_OK)
			status = take_member(scan, &key, err);
	}
	return status;
}

static enum status take_top(struct import_scan *scan, char first, struct err *err)
{
	scan->reader.at++;
	if (first == '[')
		return take_events(scan, true, err);
	return take_object(scan, err);
}

static void skip_mark(struct import_scan *scan)
{
	if (scan->reader.end - scan->reader.at >= 3 &&
	    memcmp(scan->reader.at, "\xef\xbb\xbf", 3) == 0)
		scan->reader.at += 3;
}

enum status report__import_scan(struct import_scan *scan, struct err *err)
{
	const char *name = scan->input->name;
	enum status status = refill(scan, err);
	char c = 0;

	if (status == ST_OK) {
		skip_mark(scan);
		status = peek(scan, &c, err);
	}
	if (status != ST_OK)
		return status;
	if (c == 0 && scan->reader.at >= scan->reader.end)
		return err_set(err, ST_FORMAT, "%s: is empty", name);
	if (c != '[' && c != '{')
		return err_set(err, ST_FORMAT,
			       "%s: byte %llu: is no Chrome trace: that begins with { or [", name,
			       (unsigned long long)report__import_scan_at(scan));
	status = take_top(scan, c, err);
	if (status != ST_OK || scan->broken)
		return status;
	status = peek(scan, &c, err);
	if (status == ST_OK && scan->reader.at < scan->reader.end)
		return broken(scan, "text after the end of the trace");
	if (status == ST_OK && scan->input->cut)
		return broken(scan, "the compressed data end here, early or damaged");
	return status;
}
