/*
 * What a run says of itself to ipu-monitor while it goes on: profiler/prof_announce.h.
 *
 * The main thread's, which looks at the workers often enough; an announcement that cannot be made
 * changes nothing. A zeroed struct tells nobody.
 */
#ifndef TRAIN_ANNOUNCE_H
#define TRAIN_ANNOUNCE_H

#include <ipuscope/profiler.h>

#include "model/run/run_rules.h"
#include "profiler/prof_announce.h"

struct plan_device;

struct train_announce {
	struct prof_announce *out;
	struct report_progress progress;
	double utilisation[IPS_PREDICT + 1]; /* by enum ips_mode; 0 until it is compiled */
};

/* Attach to the IPUs of @layout, of which there are some. @command may be NULL, @directory "": no
 * report. A failure's text is worth a warning; ST_NOTFOUND is not. */
enum status train_announce_open(struct train_announce *announce, const struct run_file *run,
				const struct run_layout *layout, const char *command,
				const char *directory, struct err *err);
void train_announce_close(struct train_announce *announce); /* accepts one that is not open */

/* How busy the device will be: the share of an execution, its fixed host time included, in which
 * its IPUs compute or exchange. */
void train_announce_device(struct train_announce *announce, const struct plan_device *device,
			   const struct run_layout *layout);

/* A part of the run begins: an epoch of @epochs, or (both 0) the evaluation or prediction. */
void train_announce_begin(struct train_announce *announce, enum ips_mode mode, int64_t epoch,
			  int64_t epochs);
void train_announce_steps(struct train_announce *announce, int64_t done, int64_t steps);

#endif /* TRAIN_ANNOUNCE_H */
