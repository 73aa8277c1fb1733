/*
 * A run from its file to its finished report: the common part of ipu-train and the public trainer.
 *
 * Call in this order: init, load, prepare, run; then free, whatever the results. One thread.
 */
#ifndef TRAIN_JOB_H
#define TRAIN_JOB_H

#include "common/fs.h"
#include "common/str.h"
#include "model/plan/plan_command.h"
#include "model/plan/plan_run.h"
#include "model/run/run_rules.h"
#include "model/run/run_file.h"
#include "trainer/auto/train_auto.h"
#include "trainer/callbacks/callback.h"
#include "trainer/data/dataset.h"
#include "trainer/models/keras_file.h"
#include "trainer/train_fit.h"
#include "trainer/train_ranks.h"
#include "trainer/train_screen.h"

struct train_job {
	const char *command; /* for the report; borrowed */
	struct train_screen screen;
	struct str notices; /* printed once the run has been checked */
	struct plan_run plan;
	struct callbacks callbacks;
	bool keep_outfeeds; /* the program dequeues them */
	struct dataset train_set, test_set;
	struct keras_file weights; /* weights.load, until its values are in loaded */
	float *loaded; /* first weights of every replica, until they have them; NULL: drawn ones */
	int loaded_count; /* of the model's parameters */
	struct train_options options;
	struct ranks *ranks; /* NULL: one process */
	struct train_clock clock;
	bool others; /* rank 0 reports the error */
	struct ips_recording *recording;
	bool lagged; /* the run has said that the recording lags; the recording's thread */
	struct train_session *session;
	struct train_result result;
	/* How often each health rule was broken. */
	int64_t broken[OUTFEED_HEALTH_RULES];
	FILE *generated;              /* receives generated text; NULL: do not generate */
	_Atomic bool stop;            /* set by a callback: end after the current epoch */
	bool out_of_memory;           /* the report has only the memory, nothing is executed */
	char directory[FS_PATH_SIZE]; /* of the report; "": none */
};

void train_job_init(struct train_job *job, FILE *out, bool quiet);
void train_job_free(struct train_job *job);

/* Join the processes that an MPI launcher has started with this one, if any. Then only rank 0
 * prints and writes files other than reports. Call before train_job_load(). */
enum status train_job_join(struct train_job *job, struct err *err);

/* Reject a loaded run for several processes if no launcher started this one. */
enum status train_job_check_launched(const struct train_job *job, struct err *err);

/* The outfeeds' checks of a run file. */
extern const struct run_checks train_run_checks;

/* Load the run file with its flags and overrides, and its callbacks. */
enum status train_job_load(struct train_job *job, const char *path, int count, char **words,
			   struct err *err);

/* Open data, build model and layout, checking the whole request; print the model's summary. */
enum status train_job_prepare(struct train_job *job, struct err *err);

/* Compile, train, evaluate, predict, save; the report is finished in any case. */
enum status train_job_run(struct train_job *job, struct err *err);

/* ---- planning -------------------------------------------------------------------------------- */

/* What planning needs from the trainer: the data of a run, and the cost of inspecting its
 * tensors. */

struct run_data train_data_of(const struct dataset *train, const struct dataset *test);

/* Convert the section "data" of @run; the caller sets `notice`, `progress` and `user`. */
struct dataset_params train_data_params(const struct run_file *run);

extern const struct plan_trainer train_plan;

#endif /* TRAIN_JOB_H */
