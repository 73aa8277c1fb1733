/*
 * Ctrl-C while a verb writes a file: the first signal asks the verb to stop and clean up, a second
 * one ends the program.
 *
 * timeout(1) sends its signal twice at once, to the program and to its process group: signals of
 * one process within a third of a second of the first count as the same one. Call from the main
 * thread; signal handlers belong to the process.
 */
#ifndef REPORT_INTERRUPT_H
#define REPORT_INTERRUPT_H

#include <stdbool.h>

/* Install the handler for SIGINT, SIGTERM and SIGHUP. */
void report_interrupt_install(void);
/* Undo it: signals do what they did before. */
void report_interrupt_remove(void);
/* Return true once a signal has arrived. */
bool report_interrupted(void);

#endif /* REPORT_INTERRUPT_H */
