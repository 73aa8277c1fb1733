/*
 * Where the reports are.
 */
#ifndef REPORT_FIND_H
#define REPORT_FIND_H

#include <stdbool.h>

#include "common/fs.h"

/* The newest report directory (tf_report__*, with a profile.db) in @directory, as a path to give to
 * prof_db_open(). false: none. */
bool report_find_newest(const char *directory, char out[FS_PATH_SIZE]);

#endif /* REPORT_FIND_H */
