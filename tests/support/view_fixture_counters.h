/*
 * A recording of counters: a busy one and a rare one on a lane, and another of the busy one's name
 * on another lane.
 */
#ifndef SUPPORT_VIEW_FIXTURE_COUNTERS_H
#define SUPPORT_VIEW_FIXTURE_COUNTERS_H

#include <stdbool.h>

#define VIEW_COUNTERS_NS   2000000000 /* of the run */
#define VIEW_COUNTERS_RARE 4          /* samples of the rare one */

/* Write @path, which must not exist, with @samples of the busy counter, evenly over the run,
 * between 0 and @most. false: it could not be written. */
bool view_fixture_counters_write(const char *path, int samples, double most);

#endif /* SUPPORT_VIEW_FIXTURE_COUNTERS_H */
