/*
 * A file that a command writes: what it must not replace, and Ctrl-C meanwhile.
 */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdbool.h>

#include "common/err.h"

/* Return ST_INVALID if @file is the database of @path or one of its SQLite side files: replacing it
 * would destroy the report that is being read. */
enum status report_output_check_source(const char *path, const char *file, struct err *err);

/* Return ST_INVALID if SQLite would replay a log beside @file into the database that replaces it:
 * the log belongs to a recording that was killed, or that is still written. */
enum status report_output_check_log(const char *file, struct err *err);

/* Return ST_INVALID if there is a file already and @force is not set, or a device or pipe; and as
 * report_output_check_log(). */
enum status report_output_check(const char *file, bool force, struct err *err);

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

/*
 * The first signal asks the verb to stop and clean up, a second one ends the program.
 *
 * timeout(1) sends its signal twice at once, to the program and to its process group: signals of
 * one process within a third of a second of the first count as the same one. Call from the main
 * thread; signal handlers belong to the process.
 */

/* Install the handler for SIGINT, SIGTERM and SIGHUP. */
void report_interrupt_install(void);
/* Undo it: signals do what they did before. */
void report_interrupt_remove(void);
/* Return true once a signal has arrived. */
bool report_interrupted(void);

#endif /* REPORT_OUTPUT_H */
