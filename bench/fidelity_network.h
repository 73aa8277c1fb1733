/*
 * A step of a network, simulated from its run file.
 */
#ifndef FIDELITY_NETWORK_H
#define FIDELITY_NETWORK_H

#include "model/plan/plan_run.h"

/* @run: a path below the source tree; @words: its flags and keys, split at blanks. Ends the program
 * where it fails. */
struct plan_figures fidelity_network(const char *run, const char *words);

#endif /* FIDELITY_NETWORK_H */
