/*
 * A trace, front to back: its events and its other top-level values, out of a window that slides
 * over the text. One event must fit into the window's greatest size; what is larger is skipped as a
 * stream and told.
 *
 * One thread. Tokens given to the calls are valid within them.
 */
#ifndef REPORT_IMPORT_SCAN_H
#define REPORT_IMPORT_SCAN_H

#include "reports/import/report_import_event.h"
#include "reports/import/report_import_input.h"

#define IMPORT_WINDOW     ((size_t)1 << 20)
#define IMPORT_EVENT_MOST ((size_t)16 << 20)
#define IMPORT_VALUE_MOST ((size_t)64 << 10) /* of a top-level value that is kept */

struct import_scan_calls {
	enum status (*event)(void *user, const struct import_event *event, struct err *err);
	/* An element of the events that cannot be one: no object, or larger than is read. */
	enum status (*other)(void *user, bool too_large, uint64_t offset, struct err *err);
	/* A top-level value; @value NULL: too long to be kept. */
	enum status (*value)(void *user, const struct import_token *key,
			     const struct import_token *value, struct err *err);
	/* Now and then; @done of the file's bytes. */
	enum status (*progress)(void *user, uint64_t done, struct err *err);
	void *user;
};

struct import_scan {
	struct import_input *input;
	const struct import_scan_calls *calls;
	struct import_names names;
	struct import_guess guess;
	struct import_event event;
	struct import_reader reader;
	char *window;
	size_t capacity;
	uint64_t offset; /* in the text, of window[0] */
	bool ended;      /* the window holds the text's end */
	bool found;      /* events, be they none */
	/* how the text ended: NULL where it should */
	const char *broken;
	uint64_t broken_at;
};

/* false: no memory. fini all the same. */
bool report__import_scan_init(struct import_scan *scan, struct import_input *input,
			      const struct import_scan_calls *calls);
void report__import_scan_fini(struct import_scan *scan);

/* Read all. A text that breaks off or is malformed ends the scan with ST_OK and `broken`; other
 * failures are those of the calls, of reading and of memory. */
enum status report__import_scan(struct import_scan *scan, struct err *err);

/* Bytes of the text before the window's present place. */
uint64_t report__import_scan_at(const struct import_scan *scan);

#endif /* REPORT_IMPORT_SCAN_H */
