/*
 * Bytes on IPU-Links. Threads: none.
 */
#include "ipu/ipu_timeline_links.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"

/* Directed links of each pair: across to the even and odd IPU; up and down on either side. */
enum {
	LINK_ACROSS,
	LINK_UP = 2,
	LINK_DOWN = 4,
	LINKS_OF_PAIR = 6
};

enum status ipu__links_init(struct ipu_links *links, int ipus, struct err *err)
{
	links->pairs = (ipus + 1) / 2;
	links->load = mem_calloc((size_t)links->pairs * LINKS_OF_PAIR, sizeof(*links->load));
	return links->load ? ST_OK : err_nomem(err);
}

void ipu__links_fini(struct ipu_links *links)
{
	mem_free(links->load);
}

void ipu__links_clear(struct ipu_links *links)
{
	memset(links->load, 0, (size_t)links->pairs * LINKS_OF_PAIR * sizeof(*links->load));
}

/* Return the next link of a copy from *@from to @to; advance *@from over it. */
static int link_next(int *from, int to)
{
	const int pair = *from / 2, side = *from % 2;

	assert(*from != to);
	if (pair == to / 2) {
		*from = to;
		return pair * LINKS_OF_PAIR + LINK_ACROSS + to % 2;
	}
	*from += pair < to / 2 ? 2 : -2;
	return pair * LINKS_OF_PAIR + (pair < to / 2 ? LINK_UP : LINK_DOWN) + side;
}

void ipu__links_add(struct ipu_links *links, int from, int to, int64_t bytes)
{
	while (from != to)
		links->load[link_next(&from, to)] += bytes;
}

int64_t ipu__links_cycles(const struct ipu_links *links, const struct ipu_target *target, int from,
			  int to)
{
	double seconds = 0;

	while (from != to) {
		const int link = link_next(&from, to);
		const double rate = link % LINKS_OF_PAIR < LINK_UP ? target->link_bytes_second
								   : target->link_bytes_second / 2;

		seconds = fmax(seconds, (double)links->load[link] / rate);
	}
	return (int64_t)ceil(seconds * target->clock_hz);
}
