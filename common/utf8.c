/*
 * UTF-8 characters and their columns. Threading: constant data only. Ownership: none.
 */
#include "common/str.h"

#include <string.h>

#include "common/mem.h"

/* Ranges that occupy two columns, and none. wcwidth() would depend on the locale. */
static const uint32_t utf8_wide[][2] = {
	{0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},
	{0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
	{0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
	{0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};
static const uint32_t utf8_zero[][2] = {
	{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
	{0x064b, 0x065f}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x1160, 0x11ff},
	{0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0x302a, 0x302f},
	{0xe000, 0xf8ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xf0000, 0x10ffff}};
/* Controls, the soft hyphen, marks of direction, separators of lines, joiners, fillers, tags. */
static const uint32_t utf8_hidden[][2] = {
	{0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c}, {0x180e, 0x180e},
	{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164}, {0xfeff, 0xfeff},
	{0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

static bool utf8_in(const uint32_t (*ranges)[2], size_t count, uint32_t character)
{
	for (size_t i = 0; i < count; i++)
		if (character >= ranges[i][0] && character <= ranges[i][1])
			return true;
	return false;
}

int utf8_read(const char *at, uint32_t *out)
{
	const unsigned char *text = (const unsigned char *)at;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t value;
	int length;

	if (text[0] < 0x80) {
		*out = text[0];
		return 1;
	}
	length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc2 ? 2 : 0;
	if (!length || text[0] > 0xf4)
		return 0;
	value = text[0] & (0x7fu >> length);
	for (int i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3fu);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*out = value;
	return length;
}

bool utf8_is_hidden(uint32_t character)
{
	return utf8_in(utf8_hidden, ARRAY_LEN(utf8_hidden), character);
}

size_t utf8_show(char *text, size_t length, const char *kept)
{
	size_t to = 0;

	for (size_t at = 0; at < length;) {
		uint32_t character;
		const int found = utf8_read(text + at, &character);
		const size_t bytes = found > 0 ? (size_t)found : 1;

		/* A byte that is no UTF-8 may be a control in another character set. */
		if (found <= 0)
			character = (unsigned char)text[at];
		if (utf8_is_hidden(character) &&
		    (character == 0 || character > 0x7f || !strchr(kept, (int)character))) {
			text[to++] = '?';
		} else {
			memmove(text + to, text + at, bytes);
			to += bytes;
		}
		at += bytes;
	}
	return to;
}

int utf8_decode(const char *text, uint32_t *character, int *columns)
{
	int length;

	*columns = 1;
	*character = '?';
	if (text[0] == '\0')
		return 0;

	length = utf8_read(text, character);
	if (length == 0) {
		*character = '?';
		return 1;
	}
	if (*character == '\t' || *character == '\n') {
		*character = ' ';
	} else if (*character >= ' ' && *character < 0x7f) {
		; /* nearly all text: needs no table */
	} else if (utf8_is_hidden(*character)) {
		*character = '?';
	} else if (utf8_in(utf8_zero, ARRAY_LEN(utf8_zero), *character)) {
		*columns = 0;
	} else if (utf8_in(utf8_wide, ARRAY_LEN(utf8_wide), *character)) {
		*columns = 2;
	}
	return length;
}

int utf8_columns(const char *text)
{
	uint32_t character;
	int width = 0, columns, bytes;

	for (; text && (bytes = utf8_decode(text, &character, &columns)) > 0; text += bytes)
		width += columns;
	return width;
}

int utf8_cut(const char *text, int columns)
{
	uint32_t character;
	int at = 0, width = 0, wide, bytes;

	for (; (bytes = utf8_decode(text + at, &character, &wide)) > 0; at += bytes) {
		if (width + wide > columns)
			break;
		width += wide;
	}
	return at;
}
