/*
 * Rows as SQLite stores them (section 2.1 of its file format). See prof_btree.h.
 */
#include <string.h>

#include "profiler/prof_btree.h"

#include "profiler/ipuscope/profiler.h"

size_t prof_varint_put(unsigned char *out, uint64_t value)
{
	size_t length = 1;

	while (length < 8 && value >> (7 * length) != 0)
		length++;
	for (size_t i = 0; i < length; i++)
		out[i] = (unsigned char)((value >> (7 * (length - 1 - i)) & 0x7f) |
					 (i + 1 < length ? 0x80 : 0));
	return length;
}

void prof_row_begin(struct prof_row_text *row)
{
	row->types = 0;
	row->values = 0;
}

void prof_row_null(struct prof_row_text *row)
{
	row->type[row->types++] = 0;
}

static void put_bytes(struct prof_row_text *row, unsigned char type, uint64_t bits, int bytes)
{
	row->type[row->types++] = type;
	for (int i = bytes - 1; i >= 0; i--)
		row->value[row->values++] = (unsigned char)(bits >> (8 * i));
}

void prof_row_int(struct prof_row_text *row, int64_t value)
{
	static const struct {
		unsigned char type, bytes;
	} sizes[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 6}, {6, 8}};
	const uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
	size_t size = 0;

	if (value == IPS_NULL) {
		prof_row_null(row);
		return;
	}
	if (value == 0 || value == 1) {
		row->type[row->types++] = (unsigned char)(8 + value);
		return;
	}
	while (sizes[size].bytes < 8 && magnitude >> (8 * sizes[size].bytes - 1) != 0)
		size++;
	put_bytes(row, sizes[size].type, (uint64_t)value, sizes[size].bytes);
}

void prof_row_real(struct prof_row_text *row, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (value == value)
		put_bytes(row, 7, bits, 8);
	else
		prof_row_null(row);
}

bool prof_row_bytes(struct prof_row_text *row, const char *text, size_t length)
{
	if (length > sizeof(row->value) - row->values)
		return false;
	row->types += prof_varint_put(row->type + row->types, 13 + 2 * (uint64_t)length);
	memcpy(row->value + row->values, text, length);
	row->values += length;
	return true;
}
