/*
 * The call sites of a recording, by id, for exports whose spans refer to a shared list of names.
 *
 * Memory grows with the number of call sites, not of spans.
 */
#ifndef REPORT_SITES_H
#define REPORT_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"

struct report_site {
	int64_t site_id, line; /* line IPS_NULL: unknown */
	const char *name, *file;
};

struct report_sites {
	struct arena arena;        /* of the texts */
	struct report_site *items; /* ordered by id; the last one stands for unknown ids */
	size_t count, capacity;
};

/* Does nothing after an earlier failure, which is in @err. */
void report_sites_read(struct report_sites *sites, struct prof_db *db, struct err *err);
void report_sites_free(struct report_sites *sites); /* accepts a zeroed one */

/* Index of @site_id in items. */
size_t report_sites_find(const struct report_sites *sites, int64_t site_id);

#endif /* REPORT_SITES_H */
