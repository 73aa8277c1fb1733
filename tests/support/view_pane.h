/*
 * A pane in a frame, for tests of what draws in panes: nothing is drawn on the frame.
 */
#ifndef SUPPORT_VIEW_PANE_H
#define SUPPORT_VIEW_PANE_H

#include "viewer/draw/view_canvas.h"

/* @canvas becomes a pane of @width x @height with a frame of '#' around it. */
struct view_pane view_pane_framed(struct view_canvas *canvas, int width, int height);
/* The frame is as it was; what is drawn has styles that there are, and in ASCII is ASCII. */
void view_pane_assert_inside(const struct view_canvas *canvas);

#endif /* SUPPORT_VIEW_PANE_H */
