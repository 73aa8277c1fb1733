/*
 * Where the reports are.
 */
#ifndef REPORT_FIND_H
#define REPORT_FIND_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"
#include "common/fs.h"

/* The newest report directory (tf_report__*, with a profile.db) in @directory, as a path to give to
 * prof_db_open(). false: none. */
bool report_find_newest(const char *directory, char out[FS_PATH_SIZE]);

/* Fails with @what is wrong, and names the newest report in @directory, where there is one, as what
 * to write behind @command. */
enum status report_find_suggest(const char *directory, const char *command, const char *what,
				struct err *err);

/* The newest report here, for a command line that names none: @notes gets a line with its name. */
enum status report_find_default(const char *command, FILE *notes, char out[FS_PATH_SIZE],
				struct err *err);

/* Of more than @most report directories among the words, as a shell makes them of tf_report__*, the
 * newest alone stays; @notes gets a line that says which. */
void report_find_choose(int *argc, char **argv, int most, const char *command, FILE *notes);

/* Is @path a database or a report directory? A folder of reports is neither: names the newest. */
enum status report_find_check(const char *path, const char *command, struct err *err);

/* ST_INVALID where @file is the database of @path, or one of the files beside it: to replace it
 * would end the report. */
enum status report_find_check_output(const char *path, const char *file, struct err *err);

#endif /* REPORT_FIND_H */
