/*
 * What the profiler's tests share: a recording in a folder of its own, and plain questions to the
 * file it leaves, asked through SQLite directly and not through the library under test.
 */
#ifndef PROF_TESTING_H
#define PROF_TESTING_H

#include "support/support.h"

#include <stdlib.h>

#include "profiler/ipuscope/profiler.h"

struct prof_place {
	char folder[SUPPORT_PATH_SIZE];
	char path[SUPPORT_PATH_SIZE + 16]; /* FOLDER/run.db, not there yet */
};

void prof_place_make(struct prof_place *place);
void prof_place_remove(struct prof_place *place);
/* The same for cmocka: each test finds its place in *@state. */
int prof_place_setup(void **state);
int prof_place_teardown(void **state);

/* Opens FOLDER/run.db; @params may be NULL. Fails the test where that fails. */
struct ips_recording *prof_start(const struct prof_place *place,
				 const struct ips_recording_params *params);
void prof_stop(struct ips_recording *recording); /* must end well */

/* The first column of the first row. prof_ask() opens the file for one question, whose schema
 * SQLite parses each time; many questions share a reader, which the caller closes. */
int64_t prof_ask(const char *path, const char *sql);
struct sqlite3 *prof_reader_open(const char *path);
int64_t prof_reader_ask(struct sqlite3 *db, const char *sql);
void prof_ask_text(const char *path, const char *sql, char *out, size_t size);
/* All rows as "a|b\nc|d\n"; NULL as "-". The caller's (free). */
char *prof_ask_all(const char *path, const char *sql);
/* Changes a file behind the library's back. */
void prof_change(const char *path, const char *sql);

/* Every view can be read to its end, and the file is whole. */
void prof_check_file(const char *path);

#define assert_answer(path, sql, expected)                                                         \
	do {                                                                                       \
		char *answer_ = prof_ask_all((path), (sql));                                       \
		assert_string_equal(answer_, (expected));                                          \
		free(answer_);                                                                     \
	} while (0)

#endif /* PROF_TESTING_H */
