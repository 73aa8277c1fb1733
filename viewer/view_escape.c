/*
 * The table of sequences: those of xterm, rxvt, the Linux console and VT220.
 *
 * Threading: constant data.
 */
#include "viewer/view_escape.h"

#include <string.h>

#include "common/mem.h"
#include "viewer/view_keys.h"

static const struct {
	const char *text;
	uint32_t key;
} view_escapes[] = {
	{"[A", VIEW_KEY_UP},
	{"[B", VIEW_KEY_DOWN},
	{"[C", VIEW_KEY_RIGHT},
	{"[D", VIEW_KEY_LEFT},
	{"OA", VIEW_KEY_UP},
	{"OB", VIEW_KEY_DOWN},
	{"OC", VIEW_KEY_RIGHT},
	{"OD", VIEW_KEY_LEFT},
	{"[H", VIEW_KEY_HOME},
	{"OH", VIEW_KEY_HOME},
	{"[1~", VIEW_KEY_HOME},
	{"[7~", VIEW_KEY_HOME},
	{"[F", VIEW_KEY_END},
	{"OF", VIEW_KEY_END},
	{"[4~", VIEW_KEY_END},
	{"[8~", VIEW_KEY_END},
	{"[3~", VIEW_KEY_DELETE},
	{"[5~", VIEW_KEY_PAGE_UP},
	{"[6~", VIEW_KEY_PAGE_DOWN},
	{"[Z", VIEW_KEY_BACK_TAB},
	{"[1;2C", VIEW_KEY_SHIFT_RIGHT},
	{"[1;2D", VIEW_KEY_SHIFT_LEFT},
	{"[c", VIEW_KEY_SHIFT_RIGHT},
	{"[d", VIEW_KEY_SHIFT_LEFT},
	{"OP", VIEW_KEY_F1},
	{"[11~", VIEW_KEY_F1},
	{"[[A", VIEW_KEY_F1},
	{"OR", VIEW_KEY_F3},
	{"[13~", VIEW_KEY_F3},
	{"[[C", VIEW_KEY_F3},
	{"OS", VIEW_KEY_F4},
	{"[14~", VIEW_KEY_F4},
	{"[[D", VIEW_KEY_F4},
	{"[15~", VIEW_KEY_F5},
	{"[[E", VIEW_KEY_F5},
	{"[17~", VIEW_KEY_F6},
	{"[21~", VIEW_KEY_F10},
	{"OM", VIEW_KEY_ENTER},
};

uint32_t view_escape_key(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(view_escapes); i++)
		if (strcmp(view_escapes[i].text, text) == 0)
			return view_escapes[i].key;
	return VIEW_KEY_NONE;
}
