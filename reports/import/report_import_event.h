/*
 * One event of a trace: the fields of its object, as tokens of the text.
 *
 * One thread. Tokens point into the text and end with it.
 */
#ifndef REPORT_IMPORT_EVENT_H
#define REPORT_IMPORT_EVENT_H

#include "reports/import/report_import_args.h"
#include "reports/import/report_import_intern.h"
#include "reports/import/report_import_json.h"

/* Names of arguments that mean something here; they are the first of their table. */
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
	X(TDUR, "tdur")                                                                            \
	X(ARGS, "args")                                                                            \
	X(UNFINISHED, "unfinished")                                                                \
	X(VALUE_NONFINITE, "value_nonfinite")                                                      \
	X(TRACK, "track")                                                                          \
	X(LANE, "lane")                                                                            \
	X(CLOCK, "clock")

enum import_name {
#define IMPORT_NAME_ENUM(name, text) IMPORT_NAME_##name,
	IMPORT_NAME_MAP(IMPORT_NAME_ENUM) IMPORT_NAMES
};
#define IMPORT_NAME_KEYS (IMPORT_NAME_PHASE + 1) /* those of struct ips_keys */

/* Names of arguments by number: as written in the trace, and as valid text. */
struct import_names {
	struct import_intern table;
	const char **clean;
	uint32_t *next; /* which came after each, as far as seen: traces repeat themselves */
	size_t capacity, next_capacity;
	uint32_t last;
	bool failed; /* no memory */
};
bool report__import_names_init(
	struct import_names *names); /* false: no memory; fini all the same */
void report__import_names_fini(struct import_names *names);

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
	uint64_t offset; /* of the event in the file */
	struct import_token fields[IMPORT_FIELDS];
	struct import_token operation; /* the argument of that name, where it is a text */
	uint32_t others;               /* fields that are none of the above */
	struct import_args args;
};

/* Which field comes after which, as far as seen: traces repeat themselves. Start with {0}. */
struct import_guess {
	unsigned char next[IMPORT_FIELDS + 1];
};

/* The object at reader->at. False: `more`, `why`, or (with neither) no memory. */
bool report__import_event(struct import_reader *reader, struct import_names *names,
			  struct import_guess *guess, struct import_event *out);

#endif /* REPORT_IMPORT_EVENT_H */
