/*
 * The floor plan of an IPU: 16 columns of islands of four tiles (19 islands on Mk1, 23 on Mk2).
 *
 * A recording numbers its tiles as software does and does not say where each tile lies on the chip.
 * The plan is drawn in rows: tiles 0 .. 3 are the first column's first island, 4 .. 7 the second
 * column's, so a row of islands has 64 tiles. The physical order goes through each column from its
 * first island to its last.
 *
 * Pure functions; @tiles: number of tiles of the IPU.
 */
#ifndef REPORT_FLOOR_H
#define REPORT_FLOOR_H

#include <stdint.h>

#include "common/minmax.h"

#define REPORT_FLOOR_COLUMNS 16
#define REPORT_FLOOR_ISLAND  4
#define REPORT_FLOOR_ACROSS  (REPORT_FLOOR_COLUMNS * REPORT_FLOOR_ISLAND)

static inline int64_t report_floor_rows(int64_t tiles)
{
	return (tiles + REPORT_FLOOR_ACROSS - 1) / REPORT_FLOOR_ACROSS;
}

static inline int64_t report_floor_column(int64_t tile)
{
	return tile % REPORT_FLOOR_ACROSS / REPORT_FLOOR_ISLAND;
}

/* Number of tiles in the columns before @column: those in full rows, and those in the last row. */
static inline int64_t report_floor_before(int64_t column, int64_t tiles)
{
	const int64_t rest = tiles % REPORT_FLOOR_ACROSS, before = column * REPORT_FLOOR_ISLAND;

	return tiles / REPORT_FLOOR_ACROSS * before + min(rest, before);
}

/* Position of @tile in the physical order. */
static inline int64_t report_floor_position(int64_t tile, int64_t tiles)
{
	return report_floor_before(report_floor_column(tile), tiles) +
	       tile / REPORT_FLOOR_ACROSS * REPORT_FLOOR_ISLAND + tile % REPORT_FLOOR_ISLAND;
}

/* The tile at @position of the physical order. */
static inline int64_t report_floor_tile(int64_t position, int64_t tiles)
{
	int64_t column = REPORT_FLOOR_COLUMNS - 1;

	while (column > 0 && report_floor_before(column, tiles) > position)
		column--;
	position -= report_floor_before(column, tiles);
	return position / REPORT_FLOOR_ISLAND * REPORT_FLOOR_ACROSS + column * REPORT_FLOOR_ISLAND +
	       position % REPORT_FLOOR_ISLAND;
}

#endif /* REPORT_FLOOR_H */
