/*
 * Bookmarks to JSON and back.
 *
 * Threading: none. Ownership: see the header.
 */
#include "viewer/view_marks.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

/* What tells this run from all others, as a file's name. */
static void view_marks_run(struct prof_db *db, char *out, size_t size)
{
	static const char *const keys[] = {"start_epoch_ns", "pid", "rank"};
	char value[64];
	size_t length = 0;

	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!prof_db_meta(db, keys[i], value, sizeof(value)))
			continue;
		if (strspn(value, "0123456789-") != strlen(value))
			continue; /* a name of a file is made of it */
		length += (size_t)snprintf(out + length, size - length, "%s%s", length ? "-" : "",
					   value);
		if (length >= size)
			break;
	}
}

static void view_marks_place(struct view_marks *marks, struct prof_db *db)
{
	char folder[FS_PATH_SIZE], run[128];

	view_marks_run(db, run, sizeof(run));
	if (!run[0] || !fs_xdg(folder, "XDG_STATE_HOME", ".local/state") ||
	    !fs_path(marks->path, "%s/bookmarks/%s.json", folder, run))
		marks->path[0] = '\0';
}

/* --- reading ---------------------------------------------------------------------------------- */

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
	const char *text;
	enum status status;

	if (!field)
		return ST_OK; /* of a later version */
	if (!field->text)
		return json_int(at, INT64_MIN + 1, INT64_MAX, view_place_number(place, field), err);
	status = json_text(at, &text, err);
	if (status == ST_OK)
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

static enum status view_marks_take(struct view_marks *marks, const struct json_at *root,
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

/* A file that cannot be read is not written over: nothing is taken for read. */
static enum status view_marks_spared(struct view_marks *marks, enum status status)
{
	if (status != ST_OK) {
		marks->count = 0;
		marks->read = false;
	}
	return status;
}

enum status view_marks_read(struct view_marks *marks, struct prof_db *db, struct err *err)
{
	struct json_at root;
	enum status status;
	cJSON *json;

	if (marks->read)
		return ST_OK;
	if (!marks->items)
		marks->items = mem_calloc(VIEW_MARKS_MOST, sizeof(marks->items[0]));
	if (!marks->items)
		return err_nomem(err);
	view_marks_place(marks, db);
	marks->read = true;
	if (!marks->path[0] || !fs_exists(marks->path))
		return ST_OK;
	status = json_load(&json, marks->path, err);
	if (status != ST_OK)
		return view_marks_spared(marks, status);
	root = json_root(marks->path, json);
	status = view_marks_take(marks, &root, err);
	cJSON_Delete(json);
	return view_marks_spared(marks, status);
}

void view_marks_free(struct view_marks *marks)
{
	mem_free(marks->items);
	memset(marks, 0, sizeof(*marks));
}

/* --- writing ---------------------------------------------------------------------------------- */

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
	jsonw_end_object(w);
	jsonw_end_object(w);
}

static enum status view_marks_write(const struct view_marks *marks, struct err *err)
{
	char folder[FS_PATH_SIZE];
	struct str text = {0};
	struct jsonw w;
	enum status status;

	if (!marks->path[0])
		return ST_OK;
	jsonw_init_str(&w, &text, 1);
	jsonw_begin_object(&w);
	jsonw_key(&w, "bookmarks");
	jsonw_begin_array(&w);
	for (int i = 0; i < marks->count; i++)
		view_mark_write(&w, &marks->items[i]);
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	status = jsonw_end(&w, err);
	str_copy(folder, sizeof(folder), marks->path);
	*strrchr(folder, '/') = '\0';
	if (status == ST_OK)
		status = fs_make_dirs(folder, err);
	if (status == ST_OK)
		status = fs_write(marks->path, str_peek(&text), strlen(str_peek(&text)), err);
	str_free(&text);
	return status;
}

enum status view_marks_add(struct view_marks *marks, const struct view_mark *mark, struct err *err)
{
	if (marks->count == VIEW_MARKS_MOST)
		return err_set(err, ST_LIMIT, "there are %d bookmarks already: ' and d forget some",
			       VIEW_MARKS_MOST);
	marks->items[marks->count++] = *mark;
	return view_marks_write(marks, err);
}

enum status view_marks_remove(struct view_marks *marks, int at, struct err *err)
{
	if (at < 0 || at >= marks->count)
		return ST_OK;
	memmove(marks->items + at, marks->items + at + 1,
		(size_t)(marks->count - at - 1) * sizeof(marks->items[0]));
	marks->count--;
	return view_marks_write(marks, err);
}
