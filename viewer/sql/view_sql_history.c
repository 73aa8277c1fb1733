/*
 * The history of statements. A line of the file is a statement, its own ends of lines being "\n"
 * and its backslashes "\\".
 *
 * Threading and ownership: see the header.
 */
#include "viewer/sql/view_sql_history.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/view_place.h"

#define FILE_MOST (VIEW_SQL_HISTORY_MOST * 2 * VIEW_PLACE_SQL)

static bool view_history_path(char folder[FS_PATH_SIZE], char path[FS_PATH_SIZE])
{
	return fs_xdg(folder, "XDG_STATE_HOME", ".local/state") &&
	       fs_path(path, "%s/sql_history", folder);
}

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

void view_sql_history_read(struct view_sql_history *history)
{
	char folder[FS_PATH_SIZE], path[FS_PATH_SIZE], *text, *rest;
	size_t length;

	if (!view_history_path(folder, path) ||
	    fs_read(path, FILE_MOST, &text, &length, NULL) != ST_OK)
		return;
	for (char *line = text; line && *line; line = rest) {
		rest = strchr(line, '\n');
		if (rest)
			*rest++ = '\0';
		view_unescape(line);
		if (line[0] && strlen(line) < VIEW_PLACE_SQL)
			view_history_put(history, line);
	}
	mem_free(text);
}

/* The user's own from its first byte on: a file keeps its mode when it is written anew. */
static void view_history_create(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

static void view_history_write(const struct view_sql_history *history, const char *folder,
			       const char *path)
{
	struct str text = {0};

	for (int i = 0; i < history->count; i++)
		view_escape(&text, history->items[i]);
	if (!text.failed && fs_make_dirs(folder, NULL) == ST_OK) {
		view_history_create(path);
		(void)fs_write(path, str_peek(&text), text.length, NULL);
	}
	str_free(&text);
}

void view_sql_history_add(struct view_sql_history *history, const char *text)
{
	char folder[FS_PATH_SIZE], path[FS_PATH_SIZE];

	view_sql_history_read(history);
	view_history_put(history, text);
	if (view_history_path(folder, path))
		view_history_write(history, folder, path);
}

void view_sql_history_fini(struct view_sql_history *history)
{
	for (int i = 0; i < history->count; i++)
		mem_free(history->items[i]);
	history->count = 0;
}
