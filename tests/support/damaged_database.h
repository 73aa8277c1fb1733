/*
 * A damaged database for fuzz targets: the sample recording (report_sample.h), changed at some
 * places. An input of a few bytes so reaches what reads the rows, where one that were a whole file
 * would mostly be refused by SQLite.
 */
#ifndef DAMAGED_DATABASE_H
#define DAMAGED_DATABASE_H

#include <stddef.h>
#include <stdint.h>

/* Write the sample with the changes of @bytes: each is three bytes of the place (modulo the size,
 * big-endian), one of the length (modulo 16), and that many bytes. Return its path, the same each
 * time; NULL: it cannot be written. */
const char *damaged_database(const uint8_t *bytes, size_t size);

#endif /* DAMAGED_DATABASE_H */
