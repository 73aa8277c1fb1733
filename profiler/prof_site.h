/*
 * Call sites: interned sites, and the ids that all recordings of a process share.
 */
#ifndef PROF_SITE_H
#define PROF_SITE_H

#include <stdint.h>

#include "profiler/ipuscope/profiler.h"

/* Return the id of @site, from 1; the first call assigns it. Any thread. */
uint32_t prof_site_id(struct ips_site *site);

#endif /* PROF_SITE_H */
