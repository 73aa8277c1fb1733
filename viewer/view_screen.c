/*
 * The table of screens.
 *
 * Threading: constant data.
 */
#include "viewer/view_screen.h"

#include "common/mem.h"

static const struct view_screen_ops *const view_screens[] = {
	[VIEW_SUMMARY] = &view_summary_ops,
	[VIEW_TIMELINE] = &view_timeline_ops,
	[VIEW_TENSORS] = &view_tensors_ops,
	[VIEW_HELP_SCREEN] = &view_help_ops,
};
_Static_assert(ARRAY_LEN(view_screens) == VIEW_SCREENS, "screen table out of step");

const struct view_screen_ops *view_screen(enum view_screen screen)
{
	return view_screens[screen];
}
