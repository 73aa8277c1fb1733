/*
 * The command ipu-report.
 */
#ifndef REPORT_COMMAND_H
#define REPORT_COMMAND_H

/* Everything behind main(): returns the exit code. */
int report_command(int argc, char **argv);

#endif /* REPORT_COMMAND_H */
