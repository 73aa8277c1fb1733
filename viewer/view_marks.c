/*
 * Bookmarks to JSON and back.
 *
 * Threading: none. Ownership: view_session.h.
 */
#include "viewer/view_session.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/view_config.h"

#define FILE_MOST (4 << 20) /* bytes: 200 bookmarks of 20 kB */
#define PLACE_SQL "sql"     /* the key of a place's statement, which is none of its fields */

/* ---- reading --------------------------------------------------------------------------------- */

static enum status view_mark_text(const struct json_at *at, const char *key, char *out, size_t size,
				  struct err *err)
{
	struct json_at child;
	const char *text;
	enum status status;

	if (!json_child(at, key, &child))
		return json_fail(at, err, "%s is missing", key);
	status = json_text(&child, &text, err);
	if (status == ST_OK)
		str_copy(out, size, text);
	return status;
}

static enum status view_mark_field(const struct json_at *at, struct view_place *place,
				   struct err *err)
{
	const struct view_place_field *field = view_place_field(at->key);
	const bool is_sql = strcmp(at->key, PLACE_SQL) == 0;
	const char *text;
	enum status status;

	if (field && !field->text)
		return json_int(at, INT64_MIN + 1, INT64_MAX, view_place_number(place, field), err);
	if (!field && !is_sql)
		return ST_OK; /* written by a later version */
	status = json_text(at, &text, err);
	if (status == ST_OK && is_sql)
		str_copy(place->sql, sizeof(place->sql), text);
	else if (status == ST_OK)
		view_place_text(view_place_chars(place, field), text);
	return status;
}

static enum status view_mark_read(const struct json_at *at, struct view_mark *mark, struct err *err)
{
	struct json_at place, field;
	enum status status;

	memset(mark, 0, sizeof(*mark));
	view_place_clear(&mark->place);
	status = view_mark_text(at, "name", mark->name, sizeof(mark->name), err);
	if (status == ST_OK)
		status = view_mark_text(at, "screen", mark->screen, sizeof(mark->screen), err);
	if (status != ST_OK || !json_child(at, "place", &place))
		return status;
	status = json_object(&place, err);
	for (int i = 0; i < json_count(&place) && status == ST_OK; i++)
		if (json_item(&place, i, &field))
			status = view_mark_field(&field, &mark->place, err);
	return status;
}

static enum status view_marks_parse(struct view_marks *marks, const struct json_at *root,
				    struct err *err)
{
	struct json_at list, item;
	enum status status = ST_OK;

	if (!json_child(root, "bookmarks", &list))
		return json_fail(root, err, "bookmarks is missing");
	status = json_array(&list, err);
	for (int i = 0; i < json_count(&list) && i < VIEW_MARKS_MOST && status == ST_OK; i++) {
		if (!json_item(&list, i, &item))
			continue;
		status = view_mark_read(&item, &marks->items[marks->count], err);
		marks->count += status == ST_OK;
	}
	return status;
}

/* Replace the items by those of the file; a missing file is no error. */
static enum status view_marks_load(struct view_marks *marks, struct err *err)
{
	struct json_at root;
	enum status status;
	size_t length;
	cJSON *json;
	char *text;

	marks->count = 0;
	if (!marks->path[0])
		return ST_OK;
	status = view_own_read(marks->path, FILE_MOST, &text, &length, err);
	if (status != ST_OK)
		return status == ST_NOTFOUND ? ST_OK : status;
	status = json_parse(&json, text, length, marks->path, err);
	mem_free(text);
	if (status != ST_OK)
		return status;
	root = json_root(marks->path, json);
	status = view_marks_parse(marks, &root, err);
	cJSON_Delete(json);
	return status;
}

enum status view_marks_read(struct view_marks *marks, struct prof_db *db, struct err *err)
{
	static const char *const keys[] = {"start_epoch_ns", "pid", "rank"};
	char run[128], name[160], value[64];
	size_t length = 0;
	enum status status;

	if (marks->read)
		return ST_OK;
	if (!marks->items)
		marks->items = mem_calloc(VIEW_MARKS_MOST, sizeof(marks->items[0]));
	if (!marks->items)
		return err_nomem(err);

	/* Identify the run by start time, process and rank, as part of a file name. */
	run[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!prof_db_meta(db, keys[i], value, sizeof(value)))
			continue;
		if (strspn(value, "0123456789-") != strlen(value))
			continue; /* a file name is made of it */
		length += (size_t)snprintf(run + length, sizeof(run) - length, "%s%s",
					   length ? "-" : "", value);
		if (length >= sizeof(run))
			break;
	}
	snprintf(name, sizeof(name), "bookmarks/%s.json", run);
	if (!run[0] || !view_own_path(marks->path, name))
		marks->path[0] = '\0';
	status = view_marks_load(marks, err);
	/* `read` stays false if the file could not be read, so that it is never overwritten. */
	marks->read = status == ST_OK;
	if (!marks->read)
		marks->count = 0;
	return status;
}

void view_marks_free(struct view_marks *marks)
{
	mem_free(marks->items);
	memset(marks, 0, sizeof(*marks));
}

/* ---- writing --------------------------------------------------------------------------------- */

static void view_mark_write(struct jsonw *w, const struct view_mark *mark)
{
	const struct view_place_field *fields;
	struct view_place place = mark->place;
	int count;

	fields = view_place_fields(&count);
	jsonw_begin_object(w);
	jsonw_key_text(w, "name", mark->name);
	jsonw_key_text(w, "screen", mark->screen);
	jsonw_key(w, "place");
	jsonw_begin_object(w);
	for (int i = 0; i < count; i++) {
		if (!view_place_knows(&place, &fields[i]))
			continue;
		if (fields[i].text)
			jsonw_key_text(w, fields[i].name, view_place_chars(&place, &fields[i]));
		else
			jsonw_key_int(w, fields[i].name, *view_place_number(&place, &fields[i]));
	}
	if (place.sql[0])
		jsonw_key_text(w, PLACE_SQL, place.sql);
	jsonw_end_object(w);
	jsonw_end_object(w);
}

static enum status view_marks_write(const struct view_marks *marks, struct err *err)
{
	struct str text = {0};
	struct jsonw w;
	enum status status;

	jsonw_init_str(&w, &text, 1);
	jsonw_begin_object(&w);
	jsonw_key(&w, "bookmarks");
	jsonw_begin_array(&w);
	for (int i = 0; i < marks->count; i++)
		view_mark_write(&w, &marks->items[i]);
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	status = jsonw_end(&w, err);
	if (status == ST_OK)
		status = text.length <= FILE_MOST
				 ? view_own_write(marks->path, str_peek(&text), text.length, err)
				 : err_set(err, ST_LIMIT, "%s: larger than the limit of %d bytes",
					   marks->path, FILE_MOST);
	str_free(&text);
	return status;
}

/* ---- changes --------------------------------------------------------------------------------- */

static bool view_marks_full(const struct view_marks *marks)
{
	return marks->count == VIEW_MARKS_MOST;
}

static void view_marks_put(struct view_marks *marks, const struct view_mark *mark)
{
	if (view_marks_full(marks))
		return;
	marks->items[marks->count] = *mark;
	marks->items[marks->count++].unkept = true;
}

static void view_marks_drop(struct view_marks *marks, int at)
{
	memmove(marks->items + at, marks->items + at + 1,
		(size_t)(marks->count - at - 1) * sizeof(marks->items[0]));
	marks->count--;
}

static int view_marks_find(const struct view_marks *marks, const struct view_mark *mark)
{
	for (int i = 0; i < marks->count; i++)
		if (strcmp(marks->items[i].name, mark->name) == 0 &&
		    strcmp(marks->items[i].screen, mark->screen) == 0 &&
		    view_place_same(&marks->items[i].place, &mark->place))
			return i;
	return -1;
}

/* *@out: the items of the file, then the items of @marks not yet saved. *@out owns its items. */
static enum status view_marks_merged(const struct view_marks *marks, struct view_marks *out,
				     struct err *err)
{
	enum status status;

	*out = *marks;
	out->items = mem_calloc(VIEW_MARKS_MOST, sizeof(out->items[0]));
	if (!out->items)
		return err_nomem(err);
	status = view_marks_load(out, err);
	for (int i = 0; i < marks->count && status == ST_OK; i++)
		if (marks->items[i].unkept)
			view_marks_put(out, &marks->items[i]);
	return status;
}

/* Write @next to the file and make it the content of @marks. */
static enum status view_marks_commit(struct view_marks *marks, struct view_marks *next,
				     struct err *err)
{
	enum status status = view_marks_write(next, err);

	/* Read the file back, so that names are as the file has them. */
	if (status == ST_OK)
		status = view_marks_load(next, err);
	if (status != ST_OK)
		return status;
	mem_free(marks->items);
	*marks = *next;
	next->items = NULL;
	return ST_OK;
}

static enum status view_marks_too_many(struct err *err)
{
	return err_set(err, ST_LIMIT, "there are %d bookmarks already: ' and d forget some",
		       VIEW_MARKS_MOST);
}

enum status view_marks_refresh(struct view_marks *marks, struct err *err)
{
	struct view_marks next;
	enum status status = view_marks_merged(marks, &next, err);

	if (status == ST_OK) {
		mem_free(marks->items);
		*marks = next;
	} else {
		mem_free(next.items);
	}
	return status;
}

enum status view_marks_add(struct view_marks *marks, const struct view_mark *mark, struct err *err)
{
	struct view_marks next;
	enum status status;
	int lock;

	if (view_marks_full(marks))
		return view_marks_too_many(err);
	view_marks_put(marks, mark);
	if (!marks->path[0])
		return ST_OK;
	lock = view_own_lock();
	status = view_marks_merged(marks, &next, err);
	/* Other viewers may have filled the file. */
	if (status == ST_OK)
		status = view_marks_find(&next, &marks->items[marks->count - 1]) >= 0
				 ? view_marks_commit(marks, &next, err)
				 : view_marks_too_many(err);
	mem_free(next.items);
	view_own_unlock(lock);
	return status;
}

enum status view_marks_remove(struct view_marks *marks, int at, struct err *err)
{
	struct view_marks next;
	struct view_mark mark;
	enum status status;
	int lock;

	if (at < 0 || at >= marks->count)
		return ST_OK;
	mark = marks->items[at];
	if (!marks->path[0]) {
		view_marks_drop(marks, at);
		return ST_OK;
	}
	lock = view_own_lock();
	status = view_marks_merged(marks, &next, err);
	if (status == ST_OK) {
		at = view_marks_find(&next, &mark);
		if (at >= 0)
			view_marks_drop(&next, at);
		status = view_marks_commit(marks, &next, err);
	}
	mem_free(next.items);
	view_own_unlock(lock);
	return status;
}
