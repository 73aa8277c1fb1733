/*
 * The arguments of an event as they travel in a record: struct import_arg, one after another, each
 * at a multiple of 8 bytes.
 *
 * One thread. The buffer is the caller's.
 */
#ifndef REPORT_IMPORT_ARGS_H
#define REPORT_IMPORT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reports/import/report_import_json.h"

#define IMPORT_ARG_TEXT 4096 /* bytes of a text; what is longer is cut */
/* Room for all of one event; those beyond are left out. Two halves of a span make one record. */
#define IMPORT_ARGS_SIZE ((size_t)30 << 10)

enum import_arg_type {
	IMPORT_ARG_INT,
	IMPORT_ARG_REAL,
	IMPORT_ARG_NULL,
	IMPORT_ARG_STRING /* followed by `i` bytes and a 0, filled up to a multiple of 8 */
};

struct import_arg {
	uint32_t name; /* in the table of argument names */
	uint32_t type;
	union {
		int64_t i;
		double r;
	} value;
};

struct import_args {
	size_t used;
	uint32_t left; /* values cut or left out */
	unsigned char bytes[IMPORT_ARGS_SIZE] __attribute__((aligned(8)));
};

static inline const char *import_arg_text(const struct import_arg *arg)
{
	return (const char *)(arg + 1);
}

static inline size_t import_arg_size(const struct import_arg *arg)
{
	size_t text = arg->type == IMPORT_ARG_STRING ? (size_t)arg->value.i + 1 : 0;

	return sizeof(*arg) + ((text + 7) & ~(size_t)7);
}

void report__import_args_put(struct import_args *args, uint32_t name,
			     const struct import_token *token);

#endif /* REPORT_IMPORT_ARGS_H */
