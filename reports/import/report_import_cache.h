/*
 * Recordings of other programs that are opened as they are: imported once, and kept in the user's
 * cache.
 */
#ifndef REPORT_IMPORT_CACHE_H
#define REPORT_IMPORT_CACHE_H

#include "common/err.h"

/*
 * If *@path is a file of a format that can be imported, replace *@path by its database in
 * $XDG_CACHE_HOME/ipuscope/imports, which is made if it is not there; otherwise leave *@path
 * unchanged, and its opener reports what is wrong with it.
 *
 * An entry is named after the file's path, size and time of change, so a changed file is imported
 * again. The least recently opened entries are removed when all together exceed
 * $IPUSCOPE_CACHE_MB (4096). The new path lives as long as the process.
 *
 * On a terminal, progress is shown and what the import changed is summed up in a line of standard
 * error that begins with @command. Ctrl-C ends the import with ST_INTERRUPTED.
 *
 * Threading: the main thread, before any other handles signals.
 */
enum status report_import_cached(const char **path, const char *command, struct err *err);

#endif /* REPORT_IMPORT_CACHE_H */
