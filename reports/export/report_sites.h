/*
 * The call sites of a recording, by id: what exports that share names among spans number them by.
 *
 * Memory grows with the call sites, not with the spans.
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
	struct arena arena; /* of the texts */
	struct report_site
		*items; /* in order of id; the last stands for those that are not there */
	size_t count, capacity;
};

enum status report_sites_read(struct report_sites *sites, struct prof_db *db, struct err *err);
void report_sites_free(struct report_sites *sites); /* accepts a zeroed one */

/* The place of @site_id in items. */
size_t report_sites_find(const struct report_sites *sites, int64_t site_id);

#endif /* REPORT_SITES_H */
