/*
 * A damaged database for fuzz targets. See damaged_database.h.
 */
#include "support/damaged_database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/report_sample.h"
#include "support/support.h"

#define LENGTH_MOST 16

static char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
static char *sample, *damaged;
static size_t sample_size;

static void clean(void)
{
	support_tempdir_remove(folder);
	free(sample);
	free(damaged);
}

static void begin(void)
{
	support_tempdir(folder);
	atexit(clean);
	snprintf(path, sizeof(path), "%s/sample.db", folder);
	report_sample_write(path);
	sample = support_read_file(path, &sample_size);
	damaged = malloc(sample_size);
	snprintf(path, sizeof(path), "%s/fuzz.db", folder);
}

const char *damaged_database(const uint8_t *bytes, size_t size)
{
	const uint8_t *at = bytes, *end = bytes + size;

	if (!folder[0])
		begin();
	if (!sample || !damaged)
		return NULL;
	memcpy(damaged, sample, sample_size);
	while (end - at >= 4) {
		const size_t place = ((size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2]);
		const size_t length = at[3] % LENGTH_MOST;

		at += 4;
		for (size_t i = 0; i < length && at < end; i++)
			damaged[(place + i) % sample_size] = (char)*at++;
	}
	support_write_file(path, damaged, sample_size);
	return path;
}
