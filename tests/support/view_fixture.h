/*
 * The recording that the viewer's tests look at.
 */
#ifndef SUPPORT_VIEW_FIXTURE_H
#define SUPPORT_VIEW_FIXTURE_H

#include <stdbool.h>

#include "profiler/ipuscope/profiler.h"

/*
 * Write @path, which must not exist; @updates 0: as many as usual. false: it could not be written.
 */
bool view_fixture_write(const char *path, int updates);

/* How every fixture begins: a recording to @path, made by @command (may be NULL). NULL: it could
 * not be opened. */
struct ips_recording *view_fixture_record(const char *path, const char *command);

#endif /* SUPPORT_VIEW_FIXTURE_H */
