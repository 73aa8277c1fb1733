/*
 * Identity of the recording process, so that a reader can check whether it still runs. Any thread.
 */
#ifndef PROF_PROCESS_H
#define PROF_PROCESS_H

#include <stdint.h>

#define PROF_HOST_SIZE 320

/* Start time of process @pid in ticks since boot; 0 if no such process exists or it is a zombie. */
int64_t prof_process_start(int64_t pid);

/* Resident memory of this process in bytes; 0 if the system does not report it. */
int64_t prof_process_resident(void);

/* The name of this host and the id of its current boot: "name boot-id". */
void prof_process_host(char out[PROF_HOST_SIZE]);

#endif /* PROF_PROCESS_H */
