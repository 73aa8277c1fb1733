/*
 * Call sites: interned ones, and the numbers that all recordings of a process share.
 */
#ifndef PROF_SITE_H
#define PROF_SITE_H

#include <stdint.h>

#include "profiler/ipuscope/profiler.h"

/* The number of @site, from 1; given at the first call. Any thread. */
uint32_t prof_site_id(struct ips_site *site);

#endif /* PROF_SITE_H */
