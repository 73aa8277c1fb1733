/*
 * A run from its file to its finished report: what ipu-train and the public trainer both do.
 *
 * Call in this order: init, load, prepare, run; then free, whatever came before. One thread.
 */
#ifndef TRAIN_JOB_H
#define TRAIN_JOB_H

#include "common/fs.h"
#include "common/str.h"
#include "model/plan/plan_run.h"
#include "trainer/auto/train_auto.h"
#include "trainer/callbacks/callback.h"
#include "trainer/models/keras_file.h"
#include "trainer/train_fit.h"
#include "trainer/train_ranks.h"
#include "trainer/train_screen.h"

struct train_job {
	const char *command; /* for the report; borrowed */
	struct train_screen screen;
	struct str notices; /* that wait until the run is found good */
	struct plan_run plan;
	struct callbacks callbacks;
	bool keep_outfeeds; /* the program dequeues them */
	struct dataset train_set, test_set;
	struct keras_file weights; /* weights.load, until the replicas have it */
	struct train_options options;
	struct ranks *ranks; /* NULL: the process is alone */
	struct train_clock clock;
	bool others; /* rank 0 says what is wrong */
	struct ips_recording *recording;
	struct train_session *session;
	struct train_result result;
	/* Health rules, how often broken. */
	int64_t broken[OUTFEED_HEALTH_RULES];
	FILE *generated;              /* gets text that the run file asks for; NULL: nowhere */
	_Atomic bool stop;            /* set by a callback: end after the present epoch */
	bool out_of_memory;           /* the report is of the memory alone, nothing is executed */
	char directory[FS_PATH_SIZE]; /* of the report; "": none */
};

void train_job_init(struct train_job *job, FILE *out, bool quiet);
void train_job_free(struct train_job *job);

/* Join the processes that a launcher of MPI has started with this one, if one has: then only rank 0
 * shows anything and writes files beside the report. Before train_job_load(). */
enum status train_job_join(struct train_job *job, struct err *err);

/* What of a run file outfeeds understand. */
extern const struct run_checks train_run_checks;

/* The run file with its flags and overrides, and its callbacks. */
enum status train_job_load(struct train_job *job, const char *path, int count, char **words,
			   struct err *err);

/* The callbacks of a run file; on failure nothing is left in @out. */
enum status train_job_callbacks(struct callbacks *out, const struct run_file *run, struct err *err);

/* Data, model and layout: all that can be wrong with the request; the model's summary is shown. */
enum status train_job_prepare(struct train_job *job, struct err *err);

/* Compile, train, evaluate, predict, save; the report is finished whatever comes. */
enum status train_job_run(struct train_job *job, struct err *err);

#endif /* TRAIN_JOB_H */
