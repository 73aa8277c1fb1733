/*
 * The table of screens, and what they say.
 *
 * Threading: constant data; a message is written by whoever has the context.
 */
#include "viewer/view_screen.h"

#include <string.h>

#include "common/mem.h"

static const struct view_screen_ops *const view_screens[] = {
#define VIEW_SCREEN_ROW(screen, ops) [VIEW_##screen] = &view_##ops##_ops,
	VIEW_SCREEN_MAP(VIEW_SCREEN_ROW)
#undef VIEW_SCREEN_ROW
};
_Static_assert(ARRAY_LEN(view_screens) == VIEW_SCREENS, "screen table out of step");

const struct view_screen_ops *view_screen(enum view_screen screen)
{
	return view_screens[screen];
}

unsigned view_screen_where(enum view_screen screen, const struct view_context *context)
{
	const bool table = screen == VIEW_SUMMARY && context->target;

	return view_screens[screen]->where | (table ? VIEW_ON_COMPARED : 0);
}

void view_message(struct view_context *context, const char *text, const char *rest)
{
	static const char dots[] = "...";
	char *out = context->message;
	size_t used, room;

	str_copy(out, VIEW_MESSAGE_SIZE, text);
	used = strlen(out);
	room = VIEW_MESSAGE_SIZE - 1 - used;
	if (rest && strlen(rest) > room && room > sizeof(dots)) {
		str_copy(out + used, VIEW_MESSAGE_SIZE - used, dots);
		used += sizeof(dots) - 1;
		rest += strlen(rest) - (room - (sizeof(dots) - 1));
		while (((unsigned char)*rest & 0xc0) == 0x80)
			rest++;
	}
	str_copy(out + used, VIEW_MESSAGE_SIZE - used, rest ? rest : "");
}
