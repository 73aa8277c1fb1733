/*
 * One event. See report_import_event.h.
 */
#include "reports/import/report_import_event.h"

#include <string.h>

#include "common/mem.h"

#define NAME_SIZE  1024      /* of an argument's name; longer ones are cut */
#define MOST_NAMES (1 << 16) /* different ones */

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

/* A new name in valid text; false: no memory. */
static bool add_name(struct import_names *names, uint32_t id, const struct import_token *token)
{
	const size_t count = names->table.count;
	char clean[NAME_SIZE];

	report__import_unescape(token, clean, sizeof(clean), NULL, NULL);
	if (mem_grow(&names->clean, &names->capacity, count, sizeof(*names->clean)) != 0 ||
	    mem_grow(&names->next, &names->next_capacity, count, sizeof(*names->next)) != 0)
		return false;
	names->clean[id] = arena_strdup(&names->table.arena, clean);
	names->next[id] = 0;
	return names->clean[id] != NULL;
}

static uint32_t intern_name(struct import_names *names, const struct import_token *token)
{
	const uint32_t last = names->last;
	bool fresh;
	uint32_t id;

	if (names->table.count > 0 && is_name(names, names->next[last], token)) {
		names->last = names->next[last];
		return names->last;
	}
	id = report__import_intern(&names->table, token->at, token->length, MOST_NAMES, &fresh);
	if (fresh)
		names->failed = id == IMPORT_NO_ID || !add_name(names, id, token);
	if (id == IMPORT_NO_ID || names->failed)
		return id;
	names->next[last] = id;
	names->last = id;
	return id;
}

bool report__import_names_init(struct import_names *names)
{
	static const char *const known[] = {
#define NAME_TEXT(name, text) text,
		IMPORT_NAME_MAP(NAME_TEXT)
#undef NAME_TEXT
	};

	*names = (struct import_names){0};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct import_token token = {
			.at = known[i], .length = strlen(known[i]), .kind = IMPORT_TEXT};

		if (intern_name(names, &token) != i || names->failed)
			return false;
	}
	return true;
}

void report__import_names_fini(struct import_names *names)
{
	report__import_intern_fini(&names->table);
	mem_free(names->clean);
	mem_free(names->next);
	*names = (struct import_names){0};
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_field(const struct import_token *key, int field)
{
	return key->length == fields[field].length &&
	       memcmp(key->at, fields[field].name, key->length) == 0;
}

/* The field of this name, which came after @last; IMPORT_FIELDS: none. */
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

static bool take_args(struct import_reader *reader, struct import_names *names,
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
		uint32_t name = intern_name(names, &key);

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

/* Fields of the event that are kept as arguments of the span. */
static void add_fields(struct import_event *event)
{
	static const struct {
		enum import_field field;
		enum import_name name;
	} kept[] = {{IMPORT_FIELD_TTS, IMPORT_NAME_TTS}, {IMPORT_FIELD_TDUR, IMPORT_NAME_TDUR}};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		if (event->fields[kept[i].field].kind != IMPORT_ABSENT)
			report__import_args_put(&event->args, kept[i].name,
						&event->fields[kept[i].field]);
	}
}

bool report__import_event(struct import_reader *reader, struct import_names *names,
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
			if (!take_args(reader, names, out))
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
