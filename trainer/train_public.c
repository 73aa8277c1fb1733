/*
 * The public trainer: a job behind a handle.
 *
 * Threading and ownership: see ipuscope/trainer.h.
 */
#include <ipuscope/trainer.h>

#include <pthread.h>
#include <string.h>

#include "common/cpu.h"
#include "common/mem.h"
#include "common/str.h"
#include "trainer/train_job.h"
#include "trainer/train_outfeed.h"

struct ips_trainer {
	struct train_job job;
	char *command; /* the command that the report records */
	bool ran;
	pthread_t thread;                 /* that called ips_trainer_run() */
	struct ips_trainer_array *arrays; /* of the last dequeue */
};

static int public_status(enum status status, const struct err *err, char *message, size_t size)
{
	if (message && size > 0)
		str_copy(message, size,
			 status == ST_OK
				 ? ""
				 : (err->text[0] != '\0' ? err->text : status_text(status)));
	return (int)status;
}

/* Return ST_INVALID: the argument @name must not be NULL. */
static int public_null(const char *name, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	return public_status(err_set(&err, ST_INVALID, "%s: is NULL", name), &err, message, size);
}

static enum status open_job(struct ips_trainer *trainer, const char *run_path, int count,
			    char *const words[], struct err *err)
{
	char **copy = mem_calloc((size_t)count + 1, sizeof(*copy));
	struct str command = {0};

	str_addf(&command, "ips_trainer_open %s", run_path);
	for (int i = 0; i < count; i++)
		str_addf(&command, " %s", words[i]);
	trainer->command = command.text;
	trainer->job.command = command.text;
	if (!copy || command.failed) {
		mem_free(copy);
		return err_nomem(err);
	}
	for (int i = 0; i < count; i++)
		copy[i] = words[i];
	if (train_job_load(&trainer->job, run_path, count, copy, err) == ST_OK &&
	    train_job_check_launched(&trainer->job, err) == ST_OK)
		train_job_prepare(&trainer->job, err);
	mem_free(copy);
	return err->status;
}

int ips_trainer_open(struct ips_trainer **out, const char *run_path, int count, char *const words[],
		     char *message, size_t message_size)
{
	struct ips_trainer *trainer;
	struct err err = {ST_OK, ""};
	enum status status;
	uint64_t mode;

	if (!out)
		return public_null("out", message, message_size);
	*out = NULL;
	if (!run_path || (!words && count > 0))
		return public_null(!run_path ? "run_path" : "words", message, message_size);
	trainer = mem_calloc(1, sizeof(*trainer));
	if (!trainer)
		return public_status(err_nomem(&err), &err, message, message_size);
	train_job_init(&trainer->job, NULL, true);
	mode = float_mode_begin();
	status = open_job(trainer, run_path, count, words, &err);
	float_mode_end(mode);
	if (status == ST_OK)
		*out = trainer;
	else
		ips_trainer_close(trainer);
	return public_status(status, &err, message, message_size);
}

void ips_trainer_close(struct ips_trainer *trainer)
{
	if (!trainer)
		return;
	train_job_free(&trainer->job);
	mem_free(trainer->command);
	mem_free(trainer->arrays);
	mem_free(trainer);
}

int ips_trainer_add_callback(struct ips_trainer *trainer, const struct ips_callback *callback)
{
	/* Callbacks may be running, on the polling thread too. */
	if (!trainer || !callback || trainer->ran)
		return (int)ST_INVALID;
	return (int)callbacks_add(&trainer->job.callbacks, callback, trainer, NULL);
}

int ips_trainer_run(struct ips_trainer *trainer, struct ips_train_result *result, char *message,
		    size_t message_size)
{
	struct err err = {ST_OK, ""};
	enum status status;
	uint64_t mode;

	if (!trainer)
		return public_null("trainer", message, message_size);
	if (trainer->ran)
		return public_status(err_set(&err, ST_INVALID, "a trainer runs once: open another"),
				     &err, message, message_size);
	trainer->ran = true;
	trainer->thread = pthread_self();
	mode = float_mode_begin(); /* its threads inherit it */
	status = train_job_run(&trainer->job, &err);
	float_mode_end(mode);
	if (result)
		*result = (struct ips_train_result){
			.epochs = trainer->job.result.epochs,
			.loss = trainer->job.result.loss,
			.evaluate_loss = trainer->job.result.evaluate_loss,
			.interrupted = trainer->job.result.interrupted,
		};
	return public_status(status, &err, message, message_size);
}

void ips_trainer_stop(struct ips_trainer *trainer)
{
	if (trainer)
		atomic_store(&trainer->job.stop, true);
}

const float *ips_trainer_weights(const struct ips_trainer *trainer, const char *name, size_t *count)
{
	const struct train_job *job;

	if (!trainer || !name)
		return NULL;
	job = &trainer->job;
	for (int i = 0; job->session && i < job->plan.model->param_count; i++) {
		const struct model_param *param = &job->plan.model->params[i];

		if (strcmp(param->name, name) != 0)
			continue;
		if (count)
			*count = param->count;
		return job->session->replica[0].weights + param->offset;
	}
	return NULL;
}

/* ---- outfeeds -------------------------------------------------------------------------------- */

int ips_trainer_keep_outfeeds(struct ips_trainer *trainer)
{
	if (!trainer || trainer->ran)
		return (int)ST_INVALID;
	trainer->job.keep_outfeeds = true;
	return (int)ST_OK;
}

static enum status find_queue(const struct ips_trainer *trainer, const char *name,
			      struct outfeed_queue **out, struct err *err)
{
	const struct train_job *job = &trainer->job;

	*out = NULL;
	if (!job->keep_outfeeds)
		return err_set(err, ST_INVALID,
			       "ips_trainer_dequeue: ips_trainer_keep_outfeeds() was not called "
			       "before the run");
	if (!job->session || !trainer->ran)
		return err_set(err, ST_INVALID, "ips_trainer_dequeue: is for callbacks of a run");
	*out = train_outfeed_queue(job->session, name);
	return *out ? ST_OK
		    : err_set(err, ST_NOTFOUND, "there is no outfeed queue \"%s\" in this run",
			      name);
}

static enum status show_arrays(struct ips_trainer *trainer, const struct outfeed_array *from,
			       int count, struct err *err)
{
	struct ips_trainer_array *arrays =
		mem_resize(trainer->arrays, (size_t)count + 1, sizeof(*arrays));

	if (!arrays)
		return err_nomem(err);
	trainer->arrays = arrays;
	for (int i = 0; i < count; i++) {
		arrays[i] = (struct ips_trainer_array){.key = from[i].key,
						       .kind = outfeed_kind_text(from[i].kind),
						       .layer = from[i].layer,
						       .shape = from[i].shape,
						       .ndim = from[i].ndim,
						       .values = from[i].values,
						       .count = 1};
		for (int d = 0; d < from[i].ndim; d++)
			arrays[i].count *= (size_t)from[i].shape[d];
	}
	return ST_OK;
}

int ips_trainer_dequeue(struct ips_trainer *trainer, const char *queue,
			const struct ips_trainer_array **out, int *count, char *message,
			size_t message_size)
{
	const struct outfeed_array *arrays = NULL;
	struct outfeed_queue *found;
	struct err err = {ST_OK, ""};

	if (!out || !count)
		return public_null(!out ? "out" : "count", message, message_size);
	*out = NULL;
	*count = 0;
	if (!trainer || !queue)
		return public_null(!trainer ? "trainer" : "queue", message, message_size);
	if (find_queue(trainer, queue, &found, &err) == ST_OK &&
	    outfeed_dequeue(found, pthread_equal(trainer->thread, pthread_self()) != 0, &arrays,
			    count, &err) == ST_OK &&
	    show_arrays(trainer, arrays, *count, &err) == ST_OK)
		*out = trainer->arrays;
	else
		*count = 0;
	return public_status(err.status, &err, message, message_size);
}
