/*
 * Scan a trace front to back: its events with their arguments, and its other top-level
 * values, through a window that slides over the text. An event must fit into the window's maximum
 * size; a larger one is skipped and reported.
 *
 * Threading: one thread. Tokens point into the window; those passed to a callback are valid only
 * during the call.
 */
#ifndef REPORT_IMPORT_SCAN_H
#define REPORT_IMPORT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "reports/import/report_import_input.h"
#include "reports/import/report_import_intern.h"
#include "reports/import/report_import_json.h"

/* ---- arguments ------------------------------------------------------------------------------- */

/* Serialized arguments of an event within a record: struct import_arg, one after another, each at a
 * multiple of 8 bytes. The caller owns the buffer. */
#define IMPORT_ARG_TEXT 4096 /* maximum bytes of a text; longer ones are cut */
#define IMPORT_ARG_NAME 1024 /* maximum size of an argument's name; longer ones are cut */
/* Maximum size of all arguments of one event; more are dropped. Both halves of a span must fit into
 * one record. */
#define IMPORT_ARGS_SIZE ((size_t)30 << 10)

enum import_arg_type {
	IMPORT_ARG_INT,
	IMPORT_ARG_REAL,
	IMPORT_ARG_NULL,
	IMPORT_ARG_STRING, /* followed by `i` bytes and a 0, padded to a multiple of 8 */
	IMPORT_ARG_ROW     /* the same; a row about the span, of the table `name` */
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
	uint32_t left; /* number of values cut or dropped */
	unsigned char bytes[IMPORT_ARGS_SIZE] __attribute__((aligned(8)));
};

static inline const char *import_arg_text(const struct import_arg *arg)
{
	return (const char *)(arg + 1);
}

static inline size_t import_arg_size(const struct import_arg *arg)
{
	size_t text = arg->type >= IMPORT_ARG_STRING ? (size_t)arg->value.i + 1 : 0;

	return sizeof(*arg) + ((text + 7) & ~(size_t)7);
}

void report__import_args_put(struct import_args *args, uint32_t name,
			     const struct import_token *token);

/* ---- events ---------------------------------------------------------------------------------- */

/* Argument names with a meaning for the import; they are the first of the table. */
#define IMPORT_NAME_MAP(X)                                                                         \
	X(EPOCH, "epoch")                                                                          \
	X(EXECUTION, "execution")                                                                  \
	X(WEIGHT_UPDATE, "weight_update")                                                          \
	X(STEP, "step")                                                                            \
	X(MICROBATCH, "microbatch")                                                                \
	X(REPLICA, "replica")                                                                      \
	X(IPU, "ipu")                                                                              \
	X(STAGE, "stage")                                                                          \
	X(MODE, "mode")                                                                            \
	X(PHASE, "phase")                                                                          \
	X(OPERATION, "operation")                                                                  \
	X(NAME, "name")                                                                            \
	X(LABELS, "labels")                                                                        \
	X(SORT_INDEX, "sort_index")                                                                \
	X(VALUE, "value")                                                                          \
	X(ID, "id")                                                                                \
	X(TTS, "tts")                                                                              \
	X(TTS_END, "tts_end")                                                                      \
	X(TDUR, "tdur")                                                                            \
	X(ARGS, "args")                                                                            \
	X(UNFINISHED, "unfinished")                                                                \
	X(VALUE_NONFINITE, "value_nonfinite")                                                      \
	X(TRACK, "track")                                                                          \
	X(LANE, "lane")                                                                            \
	X(CLOCK, "clock")                                                                          \
	X(PARENT, "parent")                                                                        \
	X(SPAN_START_NS, "span_start_ns")                                                          \
	X(SPAN_DUR_NS, "span_dur_ns")                                                              \
	X(CORRELATION, "correlation")                                                              \
	X(DEVICE, "device")                                                                        \
	X(CONTEXT, "context")                                                                      \
	X(STREAM, "stream")                                                                        \
	X(GRID, "grid")                                                                            \
	X(BLOCK, "block")                                                                          \
	X(REGISTERS, "registers per thread")                                                       \
	X(SHARED, "shared memory")                                                                 \
	X(OCCUPANCY, "est. achieved occupancy %")                                                  \
	X(GRAPH, "graph id")                                                                       \
	X(GRAPH_NODE, "graph node id")                                                             \
	X(BYTES, "bytes")                                                                          \
	X(SIZE, "size")                                                                            \
	X(DIRECTION, "direction")                                                                  \
	X(BYTES_CHANGED, "Bytes")                                                                  \
	X(ADDR, "Addr")                                                                            \
	X(TOTAL_ALLOCATED, "Total Allocated")                                                      \
	X(TOTAL_RESERVED, "Total Reserved")                                                        \
	X(DEVICE_TYPE, "Device Type")                                                              \
	X(DEVICE_ID, "Device Id")

enum import_name {
#define IMPORT_NAME_ENUM(name, text) IMPORT_NAME_##name,
	IMPORT_NAME_MAP(IMPORT_NAME_ENUM) IMPORT_NAMES
};
#define IMPORT_NAME_KEYS (IMPORT_NAME_PHASE + 1) /* names of fields of struct ips_keys */

/* Argument names by id: as written in the trace, and as valid UTF-8. */
struct import_names {
	struct import_intern table;
	const char **clean;
	uint32_t *next; /* predicted successor of each name: traces repeat the same sequences */
	size_t capacity, next_capacity;
	uint32_t last;
	bool failed; /* out of memory */
};
/* Return the id of a name; IMPORT_NO_ID: too many, or out of memory (then `failed`). */
uint32_t report__import_names_add(struct import_names *names, const struct import_token *token);

enum import_field {
	IMPORT_FIELD_NAME,
	IMPORT_FIELD_CAT,
	IMPORT_FIELD_PH,
	IMPORT_FIELD_TS,
	IMPORT_FIELD_DUR,
	IMPORT_FIELD_PID,
	IMPORT_FIELD_TID,
	IMPORT_FIELD_ID,
	IMPORT_FIELD_ID2,
	IMPORT_FIELD_SCOPE,
	IMPORT_FIELD_S,
	IMPORT_FIELD_BP,
	IMPORT_FIELD_TTS,
	IMPORT_FIELD_TDUR,
	IMPORT_FIELD_ARGS,
	IMPORT_FIELDS
};

struct import_event {
	uint64_t offset; /* byte offset of the event in the file */
	struct import_token fields[IMPORT_FIELDS];
	struct import_token operation; /* the argument "operation", if it is a text */
	uint32_t others;               /* number of other fields */
	struct import_args args;
};

/* The first argument of this name; NULL: there is none. */
const struct import_arg *report__import_find_arg(const struct import_event *event, uint32_t name);

/* Predicted successor of each field: traces repeat the same sequences. Initialize with {0}. */
struct import_guess {
	unsigned char next[IMPORT_FIELDS + 1];
};

/* ---- the scan -------------------------------------------------------------------------------- */

#define IMPORT_WINDOW     ((size_t)1 << 20)
#define IMPORT_EVENT_MOST ((size_t)16 << 20)
#define IMPORT_VALUE_MOST ((size_t)64 << 10) /* maximum size of a stored top-level value */

struct import_scan_calls {
	enum status (*event)(void *user, const struct import_event *event, struct err *err);
	/* An element of the events that is not an object, or too large. */
	enum status (*other)(void *user, bool too_large, uint64_t offset, struct err *err);
	/* A top-level value; @value NULL: too long. */
	enum status (*value)(void *user, const struct import_token *key,
			     const struct import_token *value, struct err *err);
	/* Called periodically; @done: bytes of the file read. */
	enum status (*progress)(void *user, uint64_t done, struct err *err);
	void *user;
};

struct import_scan {
	struct import_input *input;
	const struct import_scan_calls *calls; /* set by the caller after init */
	struct import_names names;
	struct import_guess guess;
	struct import_event event;
	struct import_reader reader;
	char *window;
	size_t capacity;
	uint64_t offset; /* offset of window[0] in the text */
	bool ended;      /* the window contains the text's end */
	bool found;      /* the list of events was found, even if empty */
	/* why and where the text is malformed; NULL: it is not */
	const char *broken;
	uint64_t broken_at;
	/* of report__import_scan(): holds the first failure, which ends the scan */
	struct err *err;
};

/* Return false if out of memory; call fini all the same. */
bool report__import_scan_init(struct import_scan *scan, struct import_input *input);
void report__import_scan_fini(struct import_scan *scan);

/* Scan the whole text. A truncated or malformed text ends the scan with ST_OK and sets `broken`;
 * other errors come from callbacks, reading and allocation. */
enum status report__import_scan(struct import_scan *scan, struct err *err);

/* Byte offset of the reader in the text. */
uint64_t report__import_scan_at(const struct import_scan *scan);

#endif /* REPORT_IMPORT_SCAN_H */
