/*
 * A recording of every kind there is, for what is tried on all: each holds what some screen has
 * most to show of, and the rest hardly anything.
 */
#ifndef SUPPORT_VIEW_RECORDINGS_H
#define SUPPORT_VIEW_RECORDINGS_H

#include <stddef.h>

extern const size_t view_recordings_count;

/* The path of the recording @which (modulo their number) in @folder, which stays the same in one
 * process; written when first asked for. */
const char *view_recording(const char *folder, size_t which);

#endif /* SUPPORT_VIEW_RECORDINGS_H */
