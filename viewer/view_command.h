/*
 * The command ipu-view: from arguments to a session.
 */
#ifndef VIEW_COMMAND_H
#define VIEW_COMMAND_H

/* Returns the exit code. Prints errors as one line on stderr. */
int view_command(int argc, char **argv);

#endif /* VIEW_COMMAND_H */
