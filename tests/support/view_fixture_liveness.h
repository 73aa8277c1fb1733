/*
 * A recording with live bytes of two IPUs, for tests of the screen Liveness.
 */
#ifndef SUPPORT_VIEW_FIXTURE_LIVENESS_H
#define SUPPORT_VIEW_FIXTURE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

struct view_fixture_liveness {
	int64_t steps; /* of IPU 0; IPU 1 has half as many */
	int variables; /* of each IPU that come and go */
	int64_t scale; /* bytes of a variable times that: another report has other sizes */
	int64_t tiles; /* with memory recorded; 0: none */
	bool less;     /* without every seventh variable */
	int64_t ids;   /* the first variable's */
};

/* Write @path, which must not exist. The live bytes are what the variables add up to. false: it
 * could not be written. */
bool view_fixture_liveness_write(const char *path, const struct view_fixture_liveness *params);

#endif /* SUPPORT_VIEW_FIXTURE_LIVENESS_H */
