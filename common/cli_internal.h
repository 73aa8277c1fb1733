/*
 * Internal interface between the command-line files.
 */
#ifndef COMMON_CLI_INTERNAL_H
#define COMMON_CLI_INTERNAL_H

#include "common/cli.h"

/* Row @i of the command's options followed by the standard ones; NULL past the end. */
const struct cli_option *cli__row(const struct cli_command *command, size_t i);

/* Print the completion for @shell. False: unsupported shell (cli_next() reports the choices). */
bool cli__completion(const struct cli_command *command, const char *shell, FILE *out);

#endif /* COMMON_CLI_INTERNAL_H */
