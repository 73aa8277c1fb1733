/*
 * The command ipu-train: from a run file and a command line to a trained model and a report.
 */
#ifndef TRAIN_COMMAND_H
#define TRAIN_COMMAND_H

/* Return the exit code: 0 success, 1 the work failed, 2 the request was invalid. */
int train_command(int argc, char **argv);

#endif /* TRAIN_COMMAND_H */
