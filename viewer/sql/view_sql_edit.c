/*
 * Editing a statement by characters, words and lines; and the history of statements. Each line of
 * the history file is a statement, with newlines written as "\n" and backslashes as "\\".
 *
 * Threading: none. Ownership: the history owns its statements.
 */
#include "viewer/sql/view_sql_internal.h"

#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/view_config.h"
#include "viewer/view_keys.h"
#include "viewer/view_place.h"

void view_edit_set(struct view_edit *edit, const char *text)
{
	str_copy(edit->text, sizeof(edit->text), text);
	edit->at = strlen(edit->text);
}

bool view_edit_replace(struct view_edit *edit, size_t count, const char *text)
{
	const size_t length = strlen(edit->text), more = strlen(text);
	char *from;

	if (count > edit->at || length - count + more >= sizeof(edit->text))
		return false;
	from = edit->text + edit->at - count;
	memmove(from + more, edit->text + edit->at, length - edit->at + 1);
	memcpy(from, text, more);
	edit->at += more - count;
	return true;
}

bool view_edit_insert(struct view_edit *edit, const char *text)
{
	return view_edit_replace(edit, 0, text);
}

/* ---- boundaries ------------------------------------------------------------------------------ */

static bool sql_is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t sql_previous_char(const struct view_edit *edit)
{
	size_t at = edit->at;

	while (at > 0 && sql_is_continuation(edit->text[--at]))
		;
	return at;
}

static size_t sql_next_char(const struct view_edit *edit)
{
	size_t at = edit->at;

	if (edit->text[at])
		at++;
	while (sql_is_continuation(edit->text[at]))
		at++;
	return at;
}

static size_t sql_line_end(const struct view_edit *edit, size_t at)
{
	return at + strcspn(edit->text + at, "\n");
}

int view_edit_line(const struct view_edit *edit, size_t at, size_t *begin)
{
	int line = 0;

	*begin = 0;
	for (size_t i = 0; i < at && edit->text[i]; i++)
		if (edit->text[i] == '\n') {
			line++;
			*begin = i + 1;
		}
	return line;
}

int view_edit_lines(const struct view_edit *edit)
{
	size_t begin;

	return 1 + view_edit_line(edit, strlen(edit->text), &begin);
}

const char *view_edit_peek(const struct view_edit *edit, int line, size_t *length)
{
	const char *at = edit->text;

	for (; line > 0 && strchr(at, '\n'); line--)
		at = strchr(at, '\n') + 1;
	*length = strcspn(at, "\n");
	return at;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool sql_erase(struct view_edit *edit, size_t from, size_t to)
{
	memmove(edit->text + from, edit->text + to, strlen(edit->text + to) + 1);
	edit->at = from;
	return true;
}

static bool sql_erase_before(struct view_edit *edit)
{
	return sql_erase(edit, sql_previous_char(edit), edit->at);
}

static bool sql_erase_after(struct view_edit *edit)
{
	return sql_erase(edit, edit->at, sql_next_char(edit));
}

static bool sql_erase_word(struct view_edit *edit)
{
	size_t at = edit->at;

	while (at > 0 && isspace((unsigned char)edit->text[at - 1]))
		at--;
	while (at > 0 && !isspace((unsigned char)edit->text[at - 1]))
		at--;
	return sql_erase(edit, at, edit->at);
}

static bool sql_erase_line_begin(struct view_edit *edit)
{
	size_t begin;

	view_edit_line(edit, edit->at, &begin);
	return sql_erase(edit, begin, edit->at);
}

static bool sql_erase_line_end(struct view_edit *edit)
{
	return sql_erase(edit, edit->at, sql_line_end(edit, edit->at));
}

static bool sql_go_left(struct view_edit *edit)
{
	edit->at = sql_previous_char(edit);
	return true;
}

static bool sql_go_right(struct view_edit *edit)
{
	edit->at = sql_next_char(edit);
	return true;
}

static bool sql_go_line_begin(struct view_edit *edit)
{
	view_edit_line(edit, edit->at, &edit->at);
	return true;
}

static bool sql_go_line_end(struct view_edit *edit)
{
	edit->at = sql_line_end(edit, edit->at);
	return true;
}

/* Move to the same character column of the line that begins at @to. */
static bool sql_go_line(struct view_edit *edit, size_t begin, size_t to)
{
	size_t characters = 0;

	for (size_t i = begin; i < edit->at; i++)
		characters += !sql_is_continuation(edit->text[i]);
	edit->at = to;
	for (; characters > 0 && edit->text[edit->at] && edit->text[edit->at] != '\n'; characters--)
		edit->at = sql_next_char(edit);
	return true;
}

static bool sql_go_up(struct view_edit *edit)
{
	size_t begin, to;

	if (view_edit_line(edit, edit->at, &begin) == 0)
		return false;
	view_edit_line(edit, begin - 1, &to);
	return sql_go_line(edit, begin, to);
}

static bool sql_go_down(struct view_edit *edit)
{
	const size_t end = sql_line_end(edit, edit->at);
	size_t begin;

	view_edit_line(edit, edit->at, &begin);
	return edit->text[end] ? sql_go_line(edit, begin, end + 1) : false;
}

static const struct {
	uint32_t key;
	bool (*run)(struct view_edit *edit);
} view_edit_keys[] = {
	{VIEW_KEY_LEFT, sql_go_left},
	{VIEW_KEY_RIGHT, sql_go_right},
	{VIEW_KEY_UP, sql_go_up},
	{VIEW_KEY_DOWN, sql_go_down},
	{VIEW_KEY_HOME, sql_go_line_begin},
	{VIEW_CTRL('A'), sql_go_line_begin},
	{VIEW_KEY_END, sql_go_line_end},
	{VIEW_CTRL('E'), sql_go_line_end},
	{VIEW_KEY_BACKSPACE, sql_erase_before},
	{'\b', sql_erase_before},
	{VIEW_KEY_DELETE, sql_erase_after},
	{VIEW_CTRL('W'), sql_erase_word},
	{VIEW_CTRL('U'), sql_erase_line_begin},
	{VIEW_CTRL('K'), sql_erase_line_end},
};

bool view_edit_key(struct view_edit *edit, uint32_t key)
{
	char bytes[5];

	for (size_t i = 0; i < ARRAY_LEN(view_edit_keys); i++)
		if (view_edit_keys[i].key == key)
			return view_edit_keys[i].run(edit);
	if (key < ' ' || key >= 0x110000)
		return false;
	view_encode(key, bytes);
	view_edit_insert(edit, bytes);
	return true;
}

/* ---- history --------------------------------------------------------------------------------- */

#define HISTORY_NAME "sql_history"
#define FILE_MOST    (VIEW_SQL_HISTORY_MOST * 2 * VIEW_PLACE_SQL)

static void sql_history_remove(struct view_sql_history *history, int at)
{
	mem_free(history->items[at]);
	history->count--;
	memmove(history->items + at, history->items + at + 1,
		(size_t)(history->count - at) * sizeof(history->items[0]));
}

static void sql_history_put(struct view_sql_history *history, const char *text)
{
	char *copy = mem_strdup(text);

	if (!copy)
		return;
	for (int i = history->count - 1; i >= 0; i--)
		if (strcmp(history->items[i], text) == 0)
			sql_history_remove(history, i);
	if (history->count == VIEW_SQL_HISTORY_MOST)
		sql_history_remove(history, 0);
	history->items[history->count++] = copy;
}

/* Unescape in place. */
static void sql_unescape(char *line)
{
	char *out = line;

	for (; *line; line++) {
		if (*line == '\\' && line[1]) {
			line++;
			*out++ = *line == 'n' ? '\n' : *line;
		} else {
			*out++ = *line;
		}
	}
	*out = '\0';
}

static void sql_escape(struct str *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			str_add(out, "\\n");
		else if (*text == '\\')
			str_add(out, "\\\\");
		else
			str_add_bytes(out, text, 1);
	str_add(out, "\n");
}

enum status view_sql_history_read(struct view_sql_history *history, struct err *err)
{
	char path[FS_PATH_SIZE], *text;
	size_t length;
	enum status status;
	char *rest;

	if (!view_own_path(path, HISTORY_NAME))
		return ST_OK;
	status = view_own_read(path, FILE_MOST, &text, &length, err);
	if (status != ST_OK)
		return status == ST_NOTFOUND ? ST_OK : status;
	for (char *line = text; line && *line; line = rest) {
		rest = strchr(line, '\n');
		if (rest)
			*rest++ = '\0';
		sql_unescape(line);
		if (line[0] && strlen(line) < VIEW_PLACE_SQL)
			sql_history_put(history, line);
	}
	mem_free(text);
	return ST_OK;
}

static enum status sql_history_write(const struct view_sql_history *history, struct err *err)
{
	char path[FS_PATH_SIZE];
	struct str text = {0};
	enum status status;

	if (!view_own_path(path, HISTORY_NAME))
		return ST_OK;
	for (int i = 0; i < history->count; i++)
		sql_escape(&text, history->items[i]);
	if (text.failed)
		status = err_nomem(err);
	else
		status = view_own_write(path, str_peek(&text), text.length, err);
	str_free(&text);
	return status;
}

enum status view_sql_history_add(struct view_sql_history *history, const char *text,
				 struct err *err)
{
	const int lock = view_own_lock();
	enum status status = view_sql_history_read(history, err);

	sql_history_put(history, text);
	/* Do not overwrite a file that cannot be read. */
	if (status == ST_OK)
		status = sql_history_write(history, err);
	view_own_unlock(lock);
	return status;
}

void view_sql_history_fini(struct view_sql_history *history)
{
	for (int i = 0; i < history->count; i++)
		mem_free(history->items[i]);
	history->count = 0;
}
