/*
 * What the command ipu-report prints, called within the test.
 */
#ifndef VERB_OUT_H
#define VERB_OUT_H

#include <stddef.h>
#include <stdio.h>

/* Run `ipu-report @words`, split at blanks, and return what it printed to both of its outputs;
 * *@code, unless NULL: its exit code. 0-terminated; the caller's (free). */
char *verb_out(const char *words, int *code);

/* Print @commands and what each prints; more than a few lines as digests, one of each eight lines.
 * The version is shown as Vs. */
void verb_print(FILE *out, const char *const *commands, size_t count);

/* Print the digest of what @command prints, and the exit code, without an end of line. */
void verb_digest(FILE *out, const char *command);

#endif /* VERB_OUT_H */
