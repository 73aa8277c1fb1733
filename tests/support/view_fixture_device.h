/*
 * A recording of pipelines with uneven times on both clocks, whose bubbles are those of its works,
 * and whose device's steps are recorded.
 */
#ifndef SUPPORT_VIEW_FIXTURE_DEVICE_H
#define SUPPORT_VIEW_FIXTURE_DEVICE_H

#include <stdbool.h>

#define VIEW_DEVICE_UPDATES  160
#define VIEW_DEVICE_REPLICAS 2
#define VIEW_DEVICE_HERTZ    500000000 /* a cycle is 2 ns */

/* Write @path, which must not exist. false: it could not be written. */
bool view_fixture_device_write(const char *path);

#endif /* SUPPORT_VIEW_FIXTURE_DEVICE_H */
