/*
 * The history of statements. A line of the file is a statement, its own ends of lines being "\n"
 * and its backslashes "\\".
 *
 * Threading and ownership: see the header.
 */
#include "viewer/sql/view_sql_history.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/view_own.h"
#include "viewer/view_place.h"

#define HISTORY_NAME "sql_history"
#define FILE_MOST    (VIEW_SQL_HISTORY_MOST * 2 * VIEW_PLACE_SQL)

static void view_history_remove(struct view_sql_history *history, int at)
{
	mem_free(history->items[at]);
	history->count--;
	memmove(history->items + at, history->items + at + 1,
		(size_t)(history->count - at) * sizeof(history->items[0]));
}

static void view_history_put(struct view_sql_history *history, const char *text)
{
	char *copy = mem_strdup(text);

	if (!copy)
		return;
	for (int i = history->count - 1; i >= 0; i--)
		if (strcmp(history->items[i], text) == 0)
			view_history_remove(history, i);
	if (history->count == VIEW_SQL_HISTORY_MOST)
		view_history_remove(history, 0);
	history->items[history->count++] = copy;
}

/* In place. */
static void view_unescape(char *line)
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

static void view_escape(struct str *out, const char *text)
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

static void view_history_lines(struct view_sql_history *history, char *text)
{
	char *rest;

	for (char *line = text; line && *line; line = rest) {
		rest = strchr(line, '\n');
		if (rest)
			*rest++ = '\0';
		view_unescape(line);
		if (line[0] && strlen(line) < VIEW_PLACE_SQL)
			view_history_put(history, line);
	}
}

enum status view_sql_history_read(struct view_sql_history *history, struct err *err)
{
	char path[FS_PATH_SIZE], *text;
	size_t length;
	enum status status;

	if (!view_own_path(path, HISTORY_NAME))
		return ST_OK;
	status = view_own_read(path, FILE_MOST, &text, &length, err);
	if (status != ST_OK)
		return status == ST_NOTFOUND ? ST_OK : status;
	view_history_lines(history, text);
	mem_free(text);
	return ST_OK;
}

static enum status view_history_write(const struct view_sql_history *history, struct err *err)
{
	char path[FS_PATH_SIZE];
	struct str text = {0};
	enum status status;

	if (!view_own_path(path, HISTORY_NAME))
		return ST_OK;
	for (int i = 0; i < history->count; i++)
		view_escape(&text, history->items[i]);
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

	view_history_put(history, text);
	/* What cannot be read is not written over. */
	if (status == ST_OK)
		status = view_history_write(history, err);
	view_own_unlock(lock);
	return status;
}

void view_sql_history_fini(struct view_sql_history *history)
{
	for (int i = 0; i < history->count; i++)
		mem_free(history->items[i]);
	history->count = 0;
}
