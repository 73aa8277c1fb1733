/*
 * A recording of nothing but the memory of tiles, for the tests of the viewer's screen Memory.
 */
#ifndef SUPPORT_VIEW_FIXTURE_MEMORY_H
#define SUPPORT_VIEW_FIXTURE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define VIEW_FIXTURE_TILES    150 /* of each IPU: two rows of the floor plan and a part */
#define VIEW_FIXTURE_CAPACITY 65536

enum view_fixture_memory {
	VIEW_FIXTURE_FITS,
	VIEW_FIXTURE_FULL, /* tile 77 of the last IPU holds more than it has; two more variables */
	VIEW_FIXTURE_LARGE /* rows by the hundred for each IPU, with 1472 tiles */
};

/* Write @path, which must not exist; IPUs 0 .. @ipus - 1. false: it could not be written. */
bool view_fixture_memory_write(const char *path, enum view_fixture_memory what, int ipus);

#endif /* SUPPORT_VIEW_FIXTURE_MEMORY_H */
