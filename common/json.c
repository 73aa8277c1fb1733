/*
 * JSON reader whose errors name their place.
 *
 * Threading: the only state is cJSON's hooks, set once before main(). Ownership: the caller owns a
 * parsed tree (cJSON_Delete); cursors borrow it. Recursion depth is the nesting of the text, which
 * the parser limits to CJSON_NESTING_LIMIT.
 */
#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#define JSON_EXACT 9007199254740992.0 /* 2^53: greater integers are not all exact as doubles */

/* cJSON returns NULL for bad text and for out of memory; this flag distinguishes the two. */
static _Thread_local bool json_nomem;

static void *json_hook_alloc(size_t size)
{
	void *p = mem_alloc(size);

	if (!p)
		json_nomem = true;
	return p;
}

/* Runs before main(), so no thread can be inside cJSON while its hooks change. Memory that cJSON
 * got from malloc() may still reach mem_free(), which is free() except in tests. */
__attribute__((constructor)) static void json_set_hooks(void)
{
	cJSON_Hooks hooks = {.malloc_fn = json_hook_alloc, .free_fn = mem_free};

	cJSON_InitHooks(&hooks);
}

/* ---- syntax ---------------------------------------------------------------------------------- */

struct json_text {
	const char *text;
	size_t length;
	const char *name;
	struct err *err;
};

static enum status json_syntax_error(const struct json_text *in, size_t offset, const char *what)
{
	unsigned line = 1, column = 1;

	/* Columns are characters, not bytes; both are counted from 1. */
	for (size_t i = 0; i < offset && i < in->length; i++) {
		if (in->text[i] == '\n') {
			++line;
			column = 1;
		} else if (((unsigned char)in->text[i] & 0xc0) != 0x80) {
			++column;
		}
	}
	return err_set(in->err, ST_FORMAT, "%s:%u:%u: %s", in->name, line, column, what);
}

/* What cJSON accepts silently or cannot explain, found in one pass over brackets and strings. */
struct json_scan {
	size_t depth;      /* open brackets at the end */
	bool in_text;      /* the end is inside a string */
	size_t deep_at;    /* offset at which the nesting exceeds the limit, or SIZE_MAX */
	size_t nul_at;     /* offset of a \u0000 in a string, or SIZE_MAX */
	size_t control_at; /* offset of a raw control character, or SIZE_MAX */
};

static bool json_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void json_scan_text(const struct json_text *in, size_t *at, struct json_scan *scan)
{
	size_t i = *at + 1;

	scan->in_text = true;
	for (; i < in->length; i++) {
		unsigned char c = (unsigned char)in->text[i];

		if (c == '"') {
			scan->in_text = false;
			break;
		}
		if (c < 0x20 && scan->control_at == SIZE_MAX)
			scan->control_at = i;
		if (c == '\\') {
			/* cJSON would silently truncate the string at this character. */
			if (in->length - i >= 6 && !memcmp(in->text + i, "\\u0000", 6) &&
			    scan->nul_at == SIZE_MAX)
				scan->nul_at = i;
			i++;
		}
	}
	*at = i;
}

static void json_scan(const struct json_text *in, struct json_scan *scan)
{
	*scan = (struct json_scan){.deep_at = SIZE_MAX, .nul_at = SIZE_MAX, .control_at = SIZE_MAX};

	for (size_t i = 0; i < in->length; i++) {
		char c = in->text[i];

		if (c == '"') {
			json_scan_text(in, &i, scan);
		} else if (c == '{' || c == '[') {
			scan->depth++;
			if (scan->depth > CJSON_NESTING_LIMIT && scan->deep_at == SIZE_MAX)
				scan->deep_at = i;
		} else if ((c == '}' || c == ']') && scan->depth > 0) {
			scan->depth--;
		} else if ((unsigned char)c < 0x20 && !json_is_blank(c) &&
			   scan->control_at == SIZE_MAX) {
			scan->control_at = i; /* cJSON treats it as a blank */
		}
	}
}

/* When a key is missing, the parser reports the byte after the unexpected one: correct @offset. */
static size_t json_before_key(const struct json_text *in, size_t offset)
{
	struct json_text before = {.text = in->text, .length = offset ? offset - 1 : 0};
	struct json_scan scan;
	size_t at = before.length;

	if (!at || in->text[at] == '"' || json_is_blank(in->text[at]))
		return offset;
	json_scan(&before, &scan);
	while (at > 0 && json_is_blank(in->text[at - 1]))
		at--;
	if (!scan.in_text && at > 0 && (in->text[at - 1] == '{' || in->text[at - 1] == ','))
		return offset - 1;
	return offset;
}

/* Explain why the parser stopped at @offset. */
static enum status json_explain_stop(const struct json_text *in, size_t offset,
				     const struct json_scan *scan)
{
	size_t end = in->length;
	char text[64];
	unsigned char c;

	while (end > 0 && json_is_blank(in->text[end - 1]))
		end--;
	if (!end)
		return json_syntax_error(in, 0, "the text is empty");
	if (scan->in_text)
		return json_syntax_error(in, in->length, "unexpected end: a text is not closed");

	offset = json_before_key(in, offset);
	while (offset < end && json_is_blank(in->text[offset]))
		offset++;
	/* At a premature end the parser reports the last byte. */
	if (offset + 1 >= end && scan->depth > 0)
		return json_syntax_error(in, in->length, "unexpected end: a bracket is not closed");

	c = (unsigned char)in->text[offset < in->length ? offset : in->length - 1];
	if (c > 0x20 && c < 0x7f)
		snprintf(text, sizeof(text), "syntax error at '%c'", c);
	else
		snprintf(text, sizeof(text), "syntax error at byte 0x%02x", c);
	return json_syntax_error(in, offset, text);
}

/* ---- duplicate keys -------------------------------------------------------------------------- */

static int json_compare_keys(const void *a, const void *b)
{
	const cJSON *const *left = a, *const *right = b;

	return strcmp((*left)->string, (*right)->string);
}

/* Sort the keys to find duplicates: an object in a file may have any number of keys. */
static enum status json_unique_keys(const struct json_at *at, struct err *err)
{
	size_t count = (size_t)json_count(at), n = 0;
	enum status status = ST_OK;
	const cJSON **items;

	if (count < 2)
		return ST_OK;
	items = mem_calloc(count, sizeof(*items));
	if (!items)
		return err_nomem(err);

	for (const cJSON *item = at->node->child; item; item = item->next)
		items[n++] = item;
	qsort(items, count, sizeof(*items), json_compare_keys);
	for (size_t i = 1; i < count && status == ST_OK; i++)
		if (!strcmp(items[i - 1]->string, items[i]->string))
			status = json_fail(at, err, "the key \"%s\" is there twice",
					   items[i]->string);
	mem_free(items);
	return status;
}

static enum status json_check_tree(const struct json_at *at, struct err *err)
{
	enum status status = ST_OK;
	int index = 0;

	if (cJSON_IsObject(at->node))
		status = json_unique_keys(at, err);

	for (const cJSON *item = at->node->child; item && status == ST_OK; item = item->next) {
		struct json_at below = {.file = at->file, .up = at, .node = item, .index = -1};

		if (cJSON_IsObject(at->node))
			below.key = item->string;
		else
			below.index = index++;
		if (item->child)
			status = json_check_tree(&below, err);
	}
	return status;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static enum status json_check_scan(const struct json_text *in, const struct json_scan *scan)
{
	const char *nul = in->length ? memchr(in->text, 0, in->length) : NULL;
	char text[64];

	if (nul)
		return json_syntax_error(in, (size_t)(nul - in->text),
					 "a 0 byte; this is not text");
	if (scan->deep_at != SIZE_MAX) {
		snprintf(text, sizeof(text), "nested deeper than %d levels", CJSON_NESTING_LIMIT);
		return json_syntax_error(in, scan->deep_at, text);
	}
	if (scan->nul_at != SIZE_MAX)
		return json_syntax_error(in, scan->nul_at, "\\u0000 is not supported in a text");
	if (scan->control_at != SIZE_MAX)
		return json_syntax_error(in, scan->control_at,
					 "a control character (is a quote missing?)");
	return ST_OK;
}

enum status json_parse(cJSON **out, const char *text, size_t length, const char *name,
		       struct err *err)
{
	const struct json_text in = {.text = text, .length = length, .name = name, .err = err};
	const char *end = text;
	struct json_scan scan;
	struct json_at root;
	enum status status;
	cJSON *node;
	size_t at;

	*out = NULL;
	json_scan(&in, &scan);
	status = json_check_scan(&in, &scan);
	if (status != ST_OK)
		return status;

	json_nomem = false;
	node = cJSON_ParseWithLengthOpts(text, length, &end, 0);
	if (!node && json_nomem)
		return err_nomem(err);
	at = end && length ? (size_t)(end - text) : 0;
	if (!node)
		return json_explain_stop(&in, at, &scan);

	while (at < length && json_is_blank(text[at]))
		at++;
	if (at < length) {
		cJSON_Delete(node);
		return json_syntax_error(&in, at, "more text after the end of the value");
	}

	root = json_root(name, node);
	status = json_check_tree(&root, err);
	if (status != ST_OK) {
		cJSON_Delete(node);
		return status;
	}
	*out = node;
	return ST_OK;
}

enum status json_load(cJSON **out, const char *path, struct err *err)
{
	enum status status;
	size_t length;
	char *text;

	*out = NULL;
	status = fs_read(path, JSON_FILE_LIMIT, &text, &length, err);
	if (status != ST_OK)
		return status;

	status = json_parse(out, text, length, path, err);
	mem_free(text);
	return status;
}

/* ---- cursors --------------------------------------------------------------------------------- */

struct json_at json_root(const char *file, const cJSON *node)
{
	return (struct json_at){.file = file, .node = node, .index = -1};
}

bool json_child(const struct json_at *at, const char *key, struct json_at *out)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(at->node, key);

	if (!cJSON_IsObject(at->node) || !node)
		return false;

	*out = (struct json_at){
		.file = at->file, .up = at, .node = node, .key = node->string, .index = -1};
	return true;
}

bool json_item(const struct json_at *at, int index, struct json_at *out)
{
	const cJSON *node;

	if (index < 0 || !(cJSON_IsArray(at->node) || cJSON_IsObject(at->node)))
		return false;
	node = cJSON_GetArrayItem(at->node, index);
	if (!node)
		return false;

	*out = (struct json_at){.file = at->file, .up = at, .node = node, .index = -1};
	if (cJSON_IsObject(at->node))
		out->key = node->string;
	else
		out->index = index;
	return true;
}

bool json_next(const struct json_at *at, struct json_at *item)
{
	const bool array = cJSON_IsArray(at->node);
	const cJSON *node = NULL;
	int index = -1;

	if (item->node)
		node = item->node->next;
	else if (array || cJSON_IsObject(at->node))
		node = at->node->child;
	if (!node)
		return false;

	if (array)
		index = item->node ? item->index + 1 : 0;
	*item = (struct json_at){.file = at->file,
				 .up = at,
				 .node = node,
				 .key = array ? NULL : node->string,
				 .index = index};
	return true;
}

int json_count(const struct json_at *at)
{
	if (!cJSON_IsArray(at->node) && !cJSON_IsObject(at->node))
		return 0;

	return cJSON_GetArraySize(at->node);
}

bool json_is_null(const struct json_at *at)
{
	return cJSON_IsNull(at->node);
}

/* Other keys would be ambiguous in a dotted path and are written in brackets. */
static bool json_is_plain_key(const char *key)
{
	return *key && !key[strcspn(key, ".[]\" ")];
}

void json_path(const struct json_at *at, char *out, size_t size)
{
	size_t used = 0, depth = 0;

	if (!size)
		return;
	out[0] = '\0';
	for (const struct json_at *step = at; step->up; step = step->up)
		depth++;

	/* From the root down without a list: walk up to the n-th ancestor each time. */
	for (; depth > 0 && used < size - 1; depth--) {
		const struct json_at *step = at;
		int put;

		for (size_t i = 1; i < depth; i++)
			step = step->up;
		if (!step->key)
			put = snprintf(out + used, size - used, "[%d]", step->index);
		else if (json_is_plain_key(step->key))
			put = snprintf(out + used, size - used, "%s%s", used ? "." : "", step->key);
		else
			put = snprintf(out + used, size - used, "[\"%s\"]", step->key);
		if (put > 0)
			used += (size_t)put;
	}
}

/* ---- errors ---------------------------------------------------------------------------------- */

enum status json_fail(const struct json_at *at, struct err *err, const char *format, ...)
{
	char path[ERR_TEXT_SIZE / 2], text[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		str_copy(text, sizeof(text), status_text(ST_INVALID));
	va_end(args);

	json_path(at, path, sizeof(path));
	return err_set(err, ST_INVALID, "%s: %s%s%s", at->file, path, *path ? ": " : "", text);
}

/* Write "a, b, c", or "" if the list does not fit. */
static void json_list(char *out, size_t size, const char *const *words, size_t count)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < count; i++) {
		int put = snprintf(out + used, size - used, "%s%s", i ? ", " : "", words[i]);

		if (put < 0 || (size_t)put >= size - used) {
			*out = '\0';
			return;
		}
		used += (size_t)put;
	}
}

enum status json_unknown(const struct json_at *at, const char *what, const char *word,
			 const char *const *known, size_t count, struct err *err)
{
	const char *near = str_nearest(word, known, count);
	char list[640];

	if (near)
		return json_fail(at, err, "unknown %s \"%s\" (did you mean \"%s\"?)", what, word,
				 near);
	json_list(list, sizeof(list), known, count);
	return json_fail(at, err, "unknown %s \"%s\"%s%s%s", what, word, *list ? " (one of: " : "",
			 list, *list ? ")" : "");
}

enum status json_only_keys(const struct json_at *at, const char *const *keys, size_t count,
			   struct err *err)
{
	enum status status = json_object(at, err);

	if (status != ST_OK)
		return status;
	for (const cJSON *item = at->node->child; item; item = item->next) {
		size_t i = 0;

		while (i < count && strcmp(item->string, keys[i]) != 0)
			i++;
		if (i == count)
			return json_unknown(at, "key", item->string, keys, count, err);
	}
	return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status json_wrong_type(const struct json_at *at, const char *wanted, struct err *err)
{
	static const struct {
		int type;
		const char *text;
	} rows[] = {
		{cJSON_False, "false"},      {cJSON_True, "true"},     {cJSON_NULL, "null"},
		{cJSON_Number, "a number"},  {cJSON_String, "a text"}, {cJSON_Array, "an array"},
		{cJSON_Object, "an object"},
	};
	const char *type = "something else";

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((at->node->type & 0xff) == rows[i].type)
			type = rows[i].text;
	return json_fail(at, err, "must be %s, not %s", wanted, type);
}

enum status json_int(const struct json_at *at, int64_t least, int64_t greatest, int64_t *out,
		     struct err *err)
{
	double value;
	int64_t whole;

	if (!cJSON_IsNumber(at->node))
		return json_wrong_type(at, "a whole number", err);
	value = at->node->valuedouble;
	if (!(fabs(value) <= JSON_EXACT))
		return json_fail(at, err, "%g is too large to be exact (at most 2^53)", value);
	if (value != floor(value))
		return json_fail(at, err, "must be a whole number, not %g", value);

	whole = (int64_t)value;
	if (whole < least || whole > greatest) {
		if (greatest == INT64_MAX)
			return json_fail(at, err, "must be at least %" PRId64 ", not %" PRId64,
					 least, whole);
		if (least == INT64_MIN)
			return json_fail(at, err, "must be at most %" PRId64 ", not %" PRId64,
					 greatest, whole);
		return json_fail(at, err, "must be from %" PRId64 " to %" PRId64 ", not %" PRId64,
				 least, greatest, whole);
	}

	*out = whole;
	return ST_OK;
}

enum status json_real(const struct json_at *at, double *out, struct err *err)
{
	if (!cJSON_IsNumber(at->node))
		return json_wrong_type(at, "a number", err);
	if (!isfinite(at->node->valuedouble))
		return json_fail(at, err, "is too large for a number");

	*out = at->node->valuedouble;
	return ST_OK;
}

enum status json_bool(const struct json_at *at, bool *out, struct err *err)
{
	if (!cJSON_IsBool(at->node))
		return json_wrong_type(at, "true or false", err);

	*out = cJSON_IsTrue(at->node);
	return ST_OK;
}

enum status json_text(const struct json_at *at, const char **out, struct err *err)
{
	if (!cJSON_IsString(at->node))
		return json_wrong_type(at, "a text", err);

	*out = at->node->valuestring;
	return ST_OK;
}

enum status json_choice(const struct json_at *at, const char *what, const char *const *known,
			size_t count, size_t *out, struct err *err)
{
	const char *text;
	enum status status = json_text(at, &text, err);

	if (status != ST_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(text, known[i])) {
			*out = i;
			return ST_OK;
		}
	return json_unknown(at, what, text, known, count, err);
}

enum status json_array(const struct json_at *at, struct err *err)
{
	return cJSON_IsArray(at->node) ? ST_OK : json_wrong_type(at, "an array", err);
}

enum status json_object(const struct json_at *at, struct err *err)
{
	return cJSON_IsObject(at->node) ? ST_OK : json_wrong_type(at, "an object", err);
}
