/*
 * The examples: run files that are installed beside the program and go by their names,
 * "inspect-tensors" for inspect-tensors.json.
 *
 * Threading: none.
 */
#ifndef RUN_EXAMPLE_H
#define RUN_EXAMPLE_H

#include <stdio.h>

#include "common/fs.h"

/* What a command line calls a run file: a path; else, for a word without '/', WORD.json in the
 * working directory, then the example. Where there is none of them, ST_NOTFOUND names the nearest
 * example. A path is not looked at: reading it says best what is wrong with it. */
enum status run_example_find(char path[FS_PATH_SIZE], const char *word, struct err *err);

/* Print a line for each example, by name: the name, and the description that the run file has. */
enum status run_example_list(FILE *out, struct err *err);

#endif /* RUN_EXAMPLE_H */
