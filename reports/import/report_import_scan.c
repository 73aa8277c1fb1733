/*
 * Scan a trace: its events and other values. See report_import_scan.h.
 */
#include "reports/import/report_import_scan.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

/* ---- arguments ------------------------------------------------------------------------------- */

/* Return false for a text. */
static bool put_number(struct import_arg *arg, const struct import_token *token)
{
	bool is_int;
	double r;

	arg->type = IMPORT_ARG_INT;
	arg->value.i = token->kind == IMPORT_TRUE;
	if (token->kind == IMPORT_TRUE || token->kind == IMPORT_FALSE)
		return true;
	arg->type = IMPORT_ARG_NULL;
	if (token->kind == IMPORT_NULL)
		return true;
	/* NaN would become NULL in the database, so store the word. */
	if (!report__import_number(token, &is_int, &arg->value.i, &r) || isnan(r))
		return false;
	arg->type = is_int ? IMPORT_ARG_INT : IMPORT_ARG_REAL;
	if (!is_int)
		arg->value.r = r;
	return true;
}

void report__import_args_put(struct import_args *args, uint32_t name,
			     const struct import_token *token)
{
	struct import_arg *arg = (struct import_arg *)(void *)(args->bytes + args->used);
	size_t room = sizeof(args->bytes) - args->used;
	bool cut = false;

	if (room < sizeof(*arg) + 8) {
		args->left++;
		return;
	}
	arg->name = name;
	if (!put_number(arg, token)) {
		size_t size = room - sizeof(*arg);

		size = min(size, IMPORT_ARG_TEXT + 1);
		arg->type = IMPORT_ARG_STRING;
		arg->value.i = (int64_t)report__import_unescape(token, (char *)(arg + 1), size,
								NULL, &cut);
		args->left += cut;
	}
	args->used += import_arg_size(arg);
}

const struct import_arg *report__import_find_arg(const struct import_event *event, uint32_t name)
{
	const struct import_arg *arg;

	for (size_t at = 0; at < event->args.used; at += import_arg_size(arg)) {
		arg = (const struct import_arg *)(const void *)(event->args.bytes + at);
		if (arg->name == name)
			return arg;
	}
	return NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

#define MOST_NAMES  (1 << 16)          /* maximum number of different names */
#define NAMES_BYTES ((size_t)16 << 20) /* and of their bytes */

static const struct {
	const char *name;
	size_t length;
} fields[] = {
#define FIELD(key, text) [IMPORT_FIELD_##key] = {text, sizeof(text) - 1}
	FIELD(NAME, "name"), FIELD(CAT, "cat"),     FIELD(PH, "ph"),     FIELD(TS, "ts"),
	FIELD(DUR, "dur"),   FIELD(PID, "pid"),     FIELD(TID, "tid"),   FIELD(ID, "id"),
	FIELD(ID2, "id2"),   FIELD(SCOPE, "scope"), FIELD(S, "s"),       FIELD(BP, "bp"),
	FIELD(TTS, "tts"),   FIELD(TDUR, "tdur"),   FIELD(ARGS, "args"),
#undef FIELD
};
_Static_assert(ARRAY_LEN(fields) == IMPORT_FIELDS, "field table out of step");

/* ---- names of arguments ---------------------------------------------------------------------- */

static bool is_name(const struct import_names *names, uint32_t id, const struct import_token *token)
{
	const struct import_string *name = &names->table.strings[id];

	return name->length == token->length && memcmp(name->text, token->at, token->length) == 0;
}

uint32_t report__import_names_add(struct import_names *names, const struct import_token *token)
{
	const uint32_t last = names->last;
	struct str key = {0};
	bool fresh;
	uint32_t id;

	if (names->table.count > 0 && is_name(names, names->next[last], token)) {
		names->last = names->next[last];
		return names->last;
	}
	report__import_key_add(&key, token->at, token->length, IMPORT_ARG_NAME);
	fresh = key.failed;
	id = key.failed ? IMPORT_NO_ID
			: report__import_intern(&names->table, str_peek(&key), key.length,
						names->table.bytes < NAMES_BYTES ? MOST_NAMES : 0,
						&fresh);
	str_free(&key);
	if (fresh) {
		const size_t count = names->table.count;
		char clean[IMPORT_ARG_NAME];

		/* Names are kept as valid UTF-8. */
		report__import_unescape(token, clean, sizeof(clean), NULL, NULL);
		names->failed =
			id == IMPORT_NO_ID ||
			mem_grow(&names->clean, &names->capacity, count, sizeof(*names->clean)) ||
			mem_grow(&names->next, &names->next_capacity, count, sizeof(*names->next));
		if (!names->failed) {
			names->clean[id] = arena_strdup(&names->table.arena, clean);
			names->next[id] = 0;
			names->failed = !names->clean[id];
		}
	}
	if (id == IMPORT_NO_ID || names->failed)
		return id;
	names->next[last] = id;
	names->last = id;
	return id;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_field(const struct import_token *key, int field)
{
	return key->length == fields[field].length &&
	       memcmp(key->at, fields[field].name, key->length) == 0;
}

/* Look up the field @key, which followed @last; IMPORT_FIELDS: unknown. */
static int find_field(struct import_guess *guess, int last, const struct import_token *key)
{
	int field = guess->next[last];

	if (is_field(key, field))
		return field;
	for (field = 0; field < IMPORT_FIELDS; field++) {
		if (is_field(key, field)) {
			guess->next[last] = (unsigned char)field;
			return field;
		}
	}
	return IMPORT_FIELDS;
}

static bool parse_args(struct import_reader *reader, struct import_names *names,
		       struct import_event *event)
{
	struct import_token key, value;

	event->args.used = 0;
	event->args.left = 0;
	event->operation.kind = IMPORT_ABSENT;
	if (report__import_peek(reader) != '{') {
		if (!report__import_value(reader, &value))
			return false;
		report__import_args_put(&event->args, IMPORT_NAME_ARGS, &value);
		return true;
	}
	reader->at++;
	while (report__import_member(reader, &key)) {
		uint32_t name = report__import_names_add(names, &key);

		if (names->failed || !report__import_value(reader, &value))
			return false;
		if (name == IMPORT_NO_ID)
			event->args.left++;
		else if (name == IMPORT_NAME_OPERATION && value.kind == IMPORT_TEXT)
			event->operation = value;
		else
			report__import_args_put(&event->args, name, &value);
	}
	return !reader->more && !reader->why;
}

/* Append event fields that are stored as arguments of the span. The arguments of a counter are its
 * series, and the thread's time at an end is not that of the begin. */
static void add_fields(struct import_event *event)
{
	const struct import_token *ph = &event->fields[IMPORT_FIELD_PH];
	const struct import_token *tts = &event->fields[IMPORT_FIELD_TTS];
	const struct import_token *tdur = &event->fields[IMPORT_FIELD_TDUR];
	const char phase = ph->kind == IMPORT_TEXT && ph->length == 1 ? *ph->at : 0;
	const bool ends = phase == 'E' || phase == 'e' || phase == 'F';

	if (phase == 'C')
		return;
	if (tts->kind != IMPORT_ABSENT)
		report__import_args_put(&event->args, ends ? IMPORT_NAME_TTS_END : IMPORT_NAME_TTS,
					tts);
	if (tdur->kind != IMPORT_ABSENT)
		report__import_args_put(&event->args, IMPORT_NAME_TDUR, tdur);
}

/* Parse the object at reader->at. False: `more`, `why`, or (with neither) out of memory. */
static bool parse_event(struct import_reader *reader, struct import_names *names,
			struct import_guess *guess, struct import_event *out)
{
	struct import_token key, value;
	int field = IMPORT_FIELDS;

	memset(out->fields, 0, sizeof(out->fields));
	out->operation.kind = IMPORT_ABSENT;
	out->others = 0;
	out->args.used = 0;
	out->args.left = 0;
	reader->at++;
	while (report__import_member(reader, &key)) {
		field = find_field(guess, field, &key);
		if (field == IMPORT_FIELD_ARGS) {
			if (!parse_args(reader, names, out))
				return false;
			continue;
		}
		if (!report__import_value(reader, &value))
			return false;
		if (field < IMPORT_FIELDS)
			out->fields[field] = value;
		else
			out->others++;
	}
	if (reader->more || reader->why)
		return false;
	add_fields(out);
	return true;
}

/* ---- the scan -------------------------------------------------------------------------------- */

bool report__import_scan_init(struct import_scan *scan, struct import_input *input)
{
	static const char *const known[] = {
#define NAME_TEXT(name, text) text,
		IMPORT_NAME_MAP(NAME_TEXT)
#undef NAME_TEXT
	};

	memset(scan, 0, sizeof(*scan));
	scan->input = input;
	scan->capacity = IMPORT_WINDOW;
	scan->window = mem_alloc(IMPORT_WINDOW + IMPORT_PADDING);
	if (!scan->window)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct import_token token = {
			.at = known[i], .length = strlen(known[i]), .kind = IMPORT_TEXT};

		if (report__import_names_add(&scan->names, &token) != i || scan->names.failed)
			return false;
	}
	memset(scan->window, 0, IMPORT_PADDING);
	scan->reader.at = scan->window;
	scan->reader.end = scan->window;
	return true;
}

void report__import_scan_fini(struct import_scan *scan)
{
	report__import_intern_fini(&scan->names.table);
	mem_free(scan->names.clean);
	mem_free(scan->names.next);
	scan->names = (struct import_names){0};
	mem_free(scan->window);
	scan->window = NULL;
}

uint64_t report__import_scan_at(const struct import_scan *scan)
{
	return scan->offset + (uint64_t)(scan->reader.at - scan->window);
}

/* ---- the window ------------------------------------------------------------------------------ */

/* The text is broken, or something failed: nothing more is scanned. */
static bool stopped(const struct import_scan *scan)
{
	return scan->broken || err_stuck(scan->err);
}

static void set_broken(struct import_scan *scan, const char *why)
{
	if (stopped(scan))
		return;
	scan->broken = why;
	scan->broken_at = report__import_scan_at(scan);
}

/* Discard the window before reader.at and read more. At the end of the text only set `ended`. */
static void refill(struct import_scan *scan)
{
	struct import_reader *reader = &scan->reader;
	size_t have = (size_t)(reader->end - reader->at);

	scan->offset = report__import_scan_at(scan);
	memmove(scan->window, reader->at, have);
	reader->at = scan->window;
	reader->end = scan->window + have;
	reader->more = false;
	if (have == scan->capacity) {
		char *larger = mem_resize(scan->window, scan->capacity * 2 + IMPORT_PADDING, 1);

		if (larger) {
			scan->window = larger;
			scan->capacity *= 2;
			reader->at = larger;
		} else {
			err_nomem(scan->err);
		}
	}
	while (have < scan->capacity && !scan->ended && !err_stuck(scan->err)) {
		size_t got = 0;

		report__import_input_read(scan->input, scan->window + have, scan->capacity - have,
					  &got, scan->err);
		have += got;
		scan->ended = got == 0;
	}
	reader->end = scan->window + have;
	memset(scan->window + have, 0, IMPORT_PADDING);
	if (!err_stuck(scan->err) && scan->calls->progress)
		scan->calls->progress(scan->calls->user, scan->input->taken, scan->err);
}

/* Skip blanks; return the next character, or 0 at the end of the text and after a stop. */
static char peek(struct import_scan *scan)
{
	while (!stopped(scan)) {
		const char c = report__import_peek(&scan->reader);

		if (!scan->reader.more || scan->ended)
			return c;
		refill(scan);
	}
	return 0;
}

/* Is the character @c of peek() the text's end? */
static bool at_end(const struct import_scan *scan, char c)
{
	return c == 0 && scan->reader.at >= scan->reader.end;
}

/* ---- values larger than the window ----------------------------------------------------------- */

/* State of skipping a value: nesting depth, and whether a text or an escape is open. */
struct skipping {
	int64_t depth;
	bool text, escape;
};

/* Skip in the window; true: the value ended. */
static bool skip_in_window(struct import_reader *reader, struct skipping *skipping)
{
	for (; reader->at < reader->end; reader->at++) {
		char c = *reader->at;

		if (skipping->escape) {
			skipping->escape = false;
		} else if (skipping->text) {
			skipping->escape = c == '\\';
			skipping->text = c != '"';
		} else if (c == '"') {
			skipping->text = true;
			continue;
		} else if (c == '{' || c == '[') {
			skipping->depth++;
			continue;
		} else if (c == '}' || c == ']') {
			skipping->depth--;
		}
		if (skipping->depth == 0 && !skipping->text) {
			reader->at++;
			return true;
		}
	}
	return false;
}

/* Skip the value at reader.at, which is an object, an array or a text. */
static void skip_value(struct import_scan *scan)
{
	struct skipping skipping = {0, false, false};

	while (!stopped(scan) && !skip_in_window(&scan->reader, &skipping)) {
		refill(scan);
		if (scan->ended && scan->reader.at == scan->reader.end)
			set_broken(scan, "the text ends within a value");
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

enum outcome {
	WHOLE,     /* parsed */
	TOO_LARGE, /* larger than @most: reader.at is at its start */
	STOPPED
};

/* Parse a value, or with @out NULL an event into scan->event. */
static enum outcome parse_value(struct import_scan *scan, size_t most, struct import_token *out)
{
	struct import_reader *reader = &scan->reader;

	while (!stopped(scan)) {
		const char *start = reader->at;

		if (!out)
			scan->event.offset = report__import_scan_at(scan);
		if (out ? report__import_value(reader, out)
			: parse_event(reader, &scan->names, &scan->guess, &scan->event))
			return WHOLE;
		if (reader->why) {
			set_broken(scan, reader->why);
		} else if (!reader->more) {
			err_nomem(scan->err);
		} else if (scan->ended) {
			reader->at = reader->end;
			set_broken(scan, "the text ends here, within a value");
		} else {
			reader->at = start;
			if ((size_t)(reader->end - start) >= most) {
				reader->more = false;
				return TOO_LARGE;
			}
			refill(scan); /* and parse again */
		}
	}
	return STOPPED;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void handle_event(struct import_scan *scan, char first)
{
	const struct import_scan_calls *calls = scan->calls;
	uint64_t offset = report__import_scan_at(scan);
	struct import_token token;
	const enum outcome outcome =
		parse_value(scan, IMPORT_EVENT_MOST, first == '{' ? NULL : &token);

	if (outcome == TOO_LARGE && (first == '{' || first == '[' || first == '"'))
		skip_value(scan);
	else if (outcome == TOO_LARGE)
		set_broken(scan, "a word that is no value");
	if (stopped(scan))
		return;
	if (outcome == WHOLE && first == '{')
		calls->event(calls->user, &scan->event, scan->err);
	else
		calls->other(calls->user, outcome == TOO_LARGE, offset, scan->err);
}

/* Read the events behind "[". If nothing follows the array (@alone), its closing bracket is
 * optional. */
static void parse_events(struct import_scan *scan, bool alone)
{
	scan->found = true;
	while (!stopped(scan)) {
		const char c = peek(scan);

		if (c == ',') {
			scan->reader.at++;
		} else if (c == ']') {
			scan->reader.at++;
			return;
		} else if (at_end(scan, c)) {
			if (!alone || scan->input->cut)
				set_broken(scan, "the text ends here, among the events");
			return;
		} else {
			handle_event(scan, c);
		}
	}
}

/* ---- the top level --------------------------------------------------------------------------- */

/* Read the value of the member @key (copied out of the window); reader.at is at the value. */
static void parse_member(struct import_scan *scan, const struct import_token *key)
{
	const struct import_scan_calls *calls = scan->calls;
	struct import_token token;
	enum outcome outcome;

	if (peek(scan) == '[' && report__import_is(key, "traceEvents")) {
		scan->reader.at++;
		parse_events(scan, false);
		return;
	}
	outcome = parse_value(scan, IMPORT_VALUE_MOST, &token);
	if (outcome == TOO_LARGE)
		skip_value(scan);
	if (!err_stuck(scan->err) && outcome != STOPPED)
		calls->value(calls->user, key, outcome == WHOLE ? &token : NULL, scan->err);
}

static void parse_top(struct import_scan *scan, char first)
{
	char name[256];

	scan->reader.at++;
	if (first == '[')
		parse_events(scan, true);
	/* The members behind "{". */
	while (first == '{' && !stopped(scan)) {
		const char c = peek(scan);
		struct import_token key;
		enum outcome outcome;

		if (c == '}' || c == ',')
			scan->reader.at++;
		if (c == '}')
			return;
		if (c == ',')
			continue;
		if (at_end(scan, c))
			set_broken(scan, "the text ends here, before the closing }");
		if (c != '"')
			set_broken(scan, "a key in quotes or } is expected");
		outcome = parse_value(scan, IMPORT_VALUE_MOST, &key);
		if (outcome == TOO_LARGE)
			set_broken(scan, "a key of more than 64 KiB");
		if (outcome != WHOLE)
			return;
		key.length = report__import_unescape(&key, name, sizeof(name), NULL, NULL);
		key.at = name;
		if (peek(scan) != ':') {
			set_broken(scan, "a colon is expected");
			return;
		}
		scan->reader.at++;
		parse_member(scan, &key);
	}
}

enum status report__import_scan(struct import_scan *scan, struct err *err)
{
	const char *name = scan->input->name;
	struct err own;
	char c;

	err = err_start(err, &own);
	scan->err = err;
	refill(scan);
	/* A byte order mark is no part of the text. */
	if (scan->reader.end - scan->reader.at >= 3 &&
	    memcmp(scan->reader.at, "\xef\xbb\xbf", 3) == 0)
		scan->reader.at += 3;
	c = peek(scan);
	if (err_stuck(err))
		return err->status;
	if (at_end(scan, c))
		return err_set(err, ST_FORMAT, "%s: is empty", name);
	if (c != '[' && c != '{')
		return err_set(err, ST_FORMAT,
			       "%s: byte %llu: is no Chrome trace: that begins with { or [", name,
			       (unsigned long long)report__import_scan_at(scan));
	parse_top(scan, c);
	peek(scan);
	if (scan->reader.at < scan->reader.end)
		set_broken(scan, "text after the end of the trace");
	if (scan->input->cut)
		set_broken(scan, "the compressed data end here, early or damaged");
	return err->status;
}
