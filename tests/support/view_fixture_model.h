/*
 * A recording of a compiled model for the viewer's tests: layers, operations, plans, compute sets,
 * programs, variables, and one device trace of a training step.
 */
#ifndef SUPPORT_VIEW_FIXTURE_MODEL_H
#define SUPPORT_VIEW_FIXTURE_MODEL_H

#include <stdbool.h>

/* Write @path, which must not exist. @changed: as another compiler would have it: one operation is
 * slower, one more is there and one less. false: it could not be written. */
bool view_fixture_model_write(const char *path, bool changed);

/* Only a tree of programs: @wide sequences of @deep programs in each other with a leaf each. */
bool view_fixture_programs_write(const char *path, int wide, int deep);

#endif /* SUPPORT_VIEW_FIXTURE_MODEL_H */
