/*
 * The table of screens, their states, and the messages that they leave for the status line.
 *
 * Threading: view_screen.h. Ownership: the caller owns a state.
 */
#include "viewer/view_screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_grid.h"

/* ---- the table ------------------------------------------------------------------------------- */

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

void *view_state_new(const struct view_screen_ops *ops)
{
	void *state = mem_calloc(1, ops->size);

	if (state && ops->init)
		ops->init(state);
	return state;
}

void view_state_free(const struct view_screen_ops *ops, void *state)
{
	if (state && ops->fini)
		ops->fini(state);
	mem_free(state);
}

enum status view_screen_rows(const struct view_screen_ops *ops, void *state,
			     struct view_context *context, struct report_table *out,
			     struct err *err)
{
	struct view_grid *grid = ops->grid ? ops->grid(state) : NULL;

	if (ops->table)
		return ops->table(state, context, out, err);
	if (grid)
		return view_grid_table(grid, out, err);
	return err_set(err, ST_INVALID, "the screen %s has no rows: use --text", ops->name);
}

/* ---- messages -------------------------------------------------------------------------------- */

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

void view_messagef(struct view_context *context, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(context->message, sizeof(context->message), format, args);
	va_end(args);
}

void view_append(char *out, size_t size, const char *format, ...)
{
	const size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + used, size - used, format, args);
	va_end(args);
}
