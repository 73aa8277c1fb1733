/*
 * The table of screens.
 *
 * Threading: constant data.
 */
#include "viewer/view_screen.h"

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
