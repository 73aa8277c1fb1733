/*
 * Editing a statement: characters, words, lines.
 *
 * Threading and ownership: see the header.
 */
#include "viewer/sql/view_sql_edit.h"

#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/view_keys.h"

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

/* ---- where things begin ---------------------------------------------------------------------- */

static bool view_is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t view_before(const struct view_edit *edit)
{
	size_t at = edit->at;

	while (at > 0 && view_is_inside(edit->text[--at]))
		;
	return at;
}

static size_t view_after(const struct view_edit *edit)
{
	size_t at = edit->at;

	if (edit->text[at])
		at++;
	while (view_is_inside(edit->text[at]))
		at++;
	return at;
}

static size_t view_line_end(const struct view_edit *edit, size_t at)
{
	return at + strcspn(edit->text + at, "\n");
}

static size_t view_word_begin(const struct view_edit *edit)
{
	size_t at = edit->at;

	while (at > 0 && isspace((unsigned char)edit->text[at - 1]))
		at--;
	while (at > 0 && !isspace((unsigned char)edit->text[at - 1]))
		at--;
	return at;
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

static bool view_erase(struct view_edit *edit, size_t from, size_t to)
{
	memmove(edit->text + from, edit->text + to, strlen(edit->text + to) + 1);
	edit->at = from;
	return true;
}

static bool view_erase_before(struct view_edit *edit)
{
	return view_erase(edit, view_before(edit), edit->at);
}

static bool view_erase_after(struct view_edit *edit)
{
	return view_erase(edit, edit->at, view_after(edit));
}

static bool view_erase_word(struct view_edit *edit)
{
	return view_erase(edit, view_word_begin(edit), edit->at);
}

static bool view_erase_line_begin(struct view_edit *edit)
{
	size_t begin;

	view_edit_line(edit, edit->at, &begin);
	return view_erase(edit, begin, edit->at);
}

static bool view_erase_line_end(struct view_edit *edit)
{
	return view_erase(edit, edit->at, view_line_end(edit, edit->at));
}

static bool view_go_left(struct view_edit *edit)
{
	edit->at = view_before(edit);
	return true;
}

static bool view_go_right(struct view_edit *edit)
{
	edit->at = view_after(edit);
	return true;
}

static bool view_go_line_begin(struct view_edit *edit)
{
	view_edit_line(edit, edit->at, &edit->at);
	return true;
}

static bool view_go_line_end(struct view_edit *edit)
{
	edit->at = view_line_end(edit, edit->at);
	return true;
}

/* To the same number of characters in the line that begins at @to. */
static bool view_go_line(struct view_edit *edit, size_t begin, size_t to)
{
	size_t characters = 0;

	for (size_t i = begin; i < edit->at; i++)
		characters += !view_is_inside(edit->text[i]);
	edit->at = to;
	for (; characters > 0 && edit->text[edit->at] && edit->text[edit->at] != '\n'; characters--)
		edit->at = view_after(edit);
	return true;
}

static bool view_go_up(struct view_edit *edit)
{
	size_t begin, to;

	if (view_edit_line(edit, edit->at, &begin) == 0)
		return false;
	view_edit_line(edit, begin - 1, &to);
	return view_go_line(edit, begin, to);
}

static bool view_go_down(struct view_edit *edit)
{
	const size_t end = view_line_end(edit, edit->at);
	size_t begin;

	view_edit_line(edit, edit->at, &begin);
	return edit->text[end] ? view_go_line(edit, begin, end + 1) : false;
}

static const struct {
	uint32_t key;
	bool (*run)(struct view_edit *edit);
} view_edit_keys[] = {
	{VIEW_KEY_LEFT, view_go_left},
	{VIEW_KEY_RIGHT, view_go_right},
	{VIEW_KEY_UP, view_go_up},
	{VIEW_KEY_DOWN, view_go_down},
	{VIEW_KEY_HOME, view_go_line_begin},
	{VIEW_CTRL('A'), view_go_line_begin},
	{VIEW_KEY_END, view_go_line_end},
	{VIEW_CTRL('E'), view_go_line_end},
	{VIEW_KEY_BACKSPACE, view_erase_before},
	{'\b', view_erase_before},
	{VIEW_KEY_DELETE, view_erase_after},
	{VIEW_CTRL('W'), view_erase_word},
	{VIEW_CTRL('U'), view_erase_line_begin},
	{VIEW_CTRL('K'), view_erase_line_end},
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
