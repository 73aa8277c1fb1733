/*
 * What the files of the command line share.
 */
#ifndef COMMON_CLI_INTERNAL_H
#define COMMON_CLI_INTERNAL_H

#include "common/cli.h"

/* Row @i of the command's options and the standard ones after them; NULL past the end. */
const struct cli_option *cli__row(const struct cli_command *command, size_t i);

/* Print the completion for @shell; false: there is none (cli_next() says what there is). */
bool cli__completion(const struct cli_command *command, const char *shell, FILE *out);

#endif /* COMMON_CLI_INTERNAL_H */
