/*
 * The ipu-report command.
 */
#ifndef REPORT_COMMAND_H
#define REPORT_COMMAND_H

/* Run the command with main()'s arguments. Return the exit code. */
int report_command(int argc, char **argv);

#endif /* REPORT_COMMAND_H */
