/*
 * What the command ipu-report prints, called within the test.
 */
#ifndef VERB_OUT_H
#define VERB_OUT_H

/* Run `ipu-report @words`, words split at blanks, and return what it printed to both of its outputs;
 * *@code, unless NULL: its exit code. 0-terminated; the caller's (free). */
char *verb_out(const char *words, int *code);

#endif /* VERB_OUT_H */
