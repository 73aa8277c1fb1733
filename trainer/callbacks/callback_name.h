/*
 * File names that contain the epoch and its logs, as Keras's ModelCheckpoint accepts them:
 * "weights.{epoch:02d}-{val_loss:.2f}.npz".
 */
#ifndef CALLBACK_NAME_H
#define CALLBACK_NAME_H

#include <ipuscope/trainer.h>

#include "common/err.h"

/* Check a pattern when the run file is parsed: every field is {NAME} or {NAME:FORMAT}, where FORMAT
 * is a width with d, or a precision with f, e or g. */
enum status callback_name_check(const char *pattern, struct err *err);

/* Format the name for @epoch (from 1). A field that is not in the logs is an error that lists
 * them. */
enum status callback_name(const char *pattern, int64_t epoch, const struct ips_logs *logs,
			  char *out, size_t size, struct err *err);

#endif /* CALLBACK_NAME_H */
