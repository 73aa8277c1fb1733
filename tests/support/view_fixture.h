/*
 * The recording that the viewer's tests look at.
 */
#ifndef SUPPORT_VIEW_FIXTURE_H
#define SUPPORT_VIEW_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "profiler/ipuscope/profiler.h"

/*
 * Write @path, which must not exist; @updates 0: as many as usual. false: it could not be written.
 */
bool view_fixture_write(const char *path, int updates);

/* Write @path, which must not exist, by @write of @params, which are @size bytes without pointers,
 * or copy what the same call has written before: a process writes a recording once, and each of
 * its tests has a copy. false: it could not be written. */
typedef bool view_fixture_make(const char *path, const void *params);
bool view_fixture_once(const char *path, view_fixture_make *write, const void *params, size_t size);

/* How every fixture begins: a recording to @path, made by @command (may be NULL), whose rows do not
 * depend on when its writer commits. NULL: it could not be opened. */
struct ips_recording *view_fixture_record(const char *path, const char *command);

#endif /* SUPPORT_VIEW_FIXTURE_H */
