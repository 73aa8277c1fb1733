/*
 * Which process recorded, so that a reader can tell whether it still runs. Any thread.
 */
#ifndef PROF_PROCESS_H
#define PROF_PROCESS_H

#include <stdint.h>

#define PROF_HOST_SIZE 320

/* When process @pid started, in ticks since boot; 0: there is none (or it is a zombie). */
int64_t prof_process_start(int64_t pid);

/* What of this process lies in the machine's memory, bytes; 0: the system does not tell. */
int64_t prof_process_resident(void);

/* This host and its boot: "name boot-id". */
void prof_process_host(char out[PROF_HOST_SIZE]);

#endif /* PROF_PROCESS_H */
