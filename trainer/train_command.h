/*
 * The command ipu-train: from a run file and a command line to a trained model and a report.
 */
#ifndef TRAIN_COMMAND_H
#define TRAIN_COMMAND_H

/* Returns the exit code: 0 done, 1 the work failed, 2 the request was wrong. */
int train_command(int argc, char **argv);

#endif /* TRAIN_COMMAND_H */
