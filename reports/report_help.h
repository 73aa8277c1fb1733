/*
 * The manual page's section of the reports.
 */
#ifndef REPORT_HELP_H
#define REPORT_HELP_H

#include <stdbool.h>
#include <stdio.h>

#include "common/cli.h"

/* cli_standard() of @command, whose page names every report beside its own details. */
bool report_help(const struct cli_command *command, int argc, char **argv, FILE *out);

#endif /* REPORT_HELP_H */
