/*
 * The recording that the viewer's tests look at.
 */
#ifndef SUPPORT_VIEW_FIXTURE_H
#define SUPPORT_VIEW_FIXTURE_H

#include <stdbool.h>

/* Write @path, which must not exist; @updates 0: as many as usual. false: it could not be written.
 */
bool view_fixture_write(const char *path, int updates);

#endif /* SUPPORT_VIEW_FIXTURE_H */
