/*
 * Ctrl-C while a verb writes a file: the first signal asks the work to end and to leave nothing
 * behind, another one ends the program.
 *
 * timeout(1) sends its signal twice at once, to the program and to its group: what comes within a
 * third of a second of the first counts as the same. For the main thread; signals are the
 * process's.
 */
#ifndef REPORT_INTERRUPT_H
#define REPORT_INTERRUPT_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP ask. */
void report_interrupt_catch(void);
/* Has anybody asked? */
bool report_interrupt_asked(void);

#endif /* REPORT_INTERRUPT_H */
