/*
 * Find report directories (tf_report__*).
 */
#ifndef REPORT_FIND_H
#define REPORT_FIND_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"
#include "common/fs.h"

/* Find the newest report directory (tf_report__*, with a profile.db) in @directory. @out is a path
 * for prof_db_open(). Return false if @directory has none. */
bool report_find_newest(const char *directory, char out[FS_PATH_SIZE]);

/* Fail with @what as the message, and suggest "@command NEWEST" if @directory has a report. */
enum status report_find_suggest(const char *directory, const char *command, const char *what,
				struct err *err);

/* Default report of a command line that names none: the newest one here. Log its name to @notes. */
enum status report_find_default(const char *command, FILE *notes, char out[FS_PATH_SIZE],
				struct err *err);

/* If @argv names more than @most report directories (a shell expands tf_report__*), drop all but
 * the newest and log its name to @notes. */
void report_find_choose(int *argc, char **argv, int most, const char *command, FILE *notes);

/* Check that there is a file or folder *@path; the error names the newest report here. Another
 * program's recording becomes the path of its imported database (report_import_cached()). */
enum status report_find_recording(const char **path, const char *command, struct err *err);

/* The same, and check that a folder is a report directory. For a folder of reports the error names
 * the newest. */
enum status report_find_resolve(const char **path, const char *command, struct err *err);

/* The same; if *@path is NULL, it becomes the default report, in @newest. */
enum status report_find_report(const char **path, char newest[FS_PATH_SIZE], const char *command,
			       struct err *err);

#endif /* REPORT_FIND_H */
