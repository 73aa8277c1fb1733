/*
 * The examples: run files that are installed beside the program and can be given by name,
 * "inspect-tensors" for inspect-tensors.json.
 *
 * Threading: none.
 */
#ifndef RUN_EXAMPLE_H
#define RUN_EXAMPLE_H

#include <stdio.h>

#include "common/fs.h"

/* Resolve the run file of a command line: a path; or, for a word without '/', WORD.json in the
 * working directory, then the example. If none exists, ST_NOTFOUND names the nearest example. A
 * path is not checked: reading it reports the most precise error. */
enum status run_example_find(char path[FS_PATH_SIZE], const char *word, struct err *err);

/* Print a line for each example, sorted by name: the name and the run file's description. */
enum status run_example_list(FILE *out, struct err *err);

#endif /* RUN_EXAMPLE_H */
