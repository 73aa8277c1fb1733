/*
 * A run from its file to its finished report.
 *
 * Ownership: the job owns everything that it has opened. Threading: one thread, which is the main
 * thread of the session.
 */
#include "trainer/train_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "popvision/popvision.h"
#include "trainer/models/keras_file.h"
#include "trainer/models/keras_save.h"
#include "trainer/models/model_weights.h"
#include "trainer/train_fit.h"
#include "trainer/train_ranks.h"
#include "trainer/train_outfeed.h"
#include "trainer/train_record.h"
#include "trainer/train_session.h"
#include "trainer/train_screen.h"
#include "trainer/train_tensors.h"

#define LAG_NS 5000000000 /* shorter lags are in the database only: a busy disk has them */

void train_job_init(struct train_job *job, FILE *out, bool quiet)
{
	memset(job, 0, sizeof(*job));
	train_screen_init(&job->screen, out, quiet);
}

void train_job_free(struct train_job *job)
{
	train_session_free(job->session);
	callbacks_fini(&job->callbacks);
	plan_run_fini(&job->plan);
	ranks_close(job->ranks);
	dataset_close(&job->train_set);
	dataset_close(&job->test_set);
	keras_file_close(&job->weights);
	mem_free(job->loaded);
	train_options_free(&job->options);
	str_free(&job->notices);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum status train_job_join(struct train_job *job, struct err *err)
{
	enum status status = ranks_open(&job->ranks, err);

	if (ranks_rank(job->ranks) == 0)
		return status;
	job->screen.out = NULL;
	job->screen.terminal = false;
	job->generated = NULL;
	job->callbacks.silent = true;
	return status;
}

enum status train_job_check_launched(const struct train_job *job, struct err *err)
{
	const struct run_file *run = job->plan.run;

	if (run->distribution.instances != RUN_INSTANCES_MPI || ranks_launched())
		return ST_OK;
	return err_set(
		err, ST_INVALID,
		"%s: distribution.instances: is \"mpi\", but no launcher has started the run: use "
		"`ipu-run --num-instances 2 %s` or mpirun, or set it to null",
		run->path, run->path);
}

/* Continue on all ranks, or fail on all of them. */
static enum status agree(struct train_job *job, enum status status, struct err *err)
{
	return train_ranks_agree(job->ranks, status, &job->others, err);
}

static enum status check_ranks(struct train_job *job, struct err *err)
{
	const struct plan_run *plan = &job->plan;
	const int count = ranks_count(job->ranks);
	const bool named = plan->run->distribution.replicas > 0;

	if (!job->ranks)
		return ST_OK;
	if (plan->layout->replicas < count)
		return err_set(err, ST_INVALID,
			       "%d ranks cannot share %d replica%s: start fewer, or give the run "
			       "more replicas (--%s %d)",
			       count, plan->layout->replicas,
			       plan->layout->replicas == 1 ? "" : "s",
			       named ? "distribution.replicas" : "ipu.auto_select_ipus",
			       named ? count : count * plan->layout->ipus_per_replica);
	if (plan->run->distribution.instances == RUN_INSTANCES_MPI &&
	    plan->layout->replicas % count)
		return err_set(
			err, ST_INVALID,
			"%s: distribution.instances: %d replicas do not divide among %d ranks: "
			"start a number of ranks that divides them, or set it to null",
			plan->run->path, plan->layout->replicas, count);
	return ST_OK;
}

/* Check that all ranks have the same run, data and version. */
static enum status check_same(struct train_job *job, struct err *err)
{
	struct str same = {0};
	enum status status;
	char *text;

	if (!job->ranks)
		return ST_OK;
	status = run_file_text(&text, job->plan.run, err);
	if (status != ST_OK)
		return status;
	str_addf(&same, "%s %s %" PRId64 " %" PRId64 " %" PRIx64 " %" PRIx64, IPUSCOPE_VERSION,
		 text, job->train_set.count, job->test_set.count, dataset_digest(&job->train_set),
		 dataset_digest(&job->test_set));
	cJSON_free(text);
	status = same.failed ? err_nomem(err)
			     : train_ranks_same(job->ranks, str_peek(&same), &job->others, err);
	str_free(&same);
	return status;
}

/* ---- the request ----------------------------------------------------------------------------- */

const struct run_checks train_run_checks = {
	.capture = outfeed_policy_check, .rules = outfeed_health_check, .load = keras_file_json};

enum status train_job_load(struct train_job *job, const char *path, int count, char **words,
			   struct err *err)
{
	if (run_file_load(&job->plan.run, path, count, words, &train_run_checks, err) != ST_OK ||
	    run_check_compile(job->plan.run, err) != ST_OK)
		return err->status;
	return callbacks_load(&job->callbacks, job->plan.run, err);
}

static void add_notice(void *user, const char *text)
{
	struct train_job *job = user;

	str_addf(&job->notices, "%s\n", text);
}

static void print_progress(void *user, int64_t done, int64_t files)
{
	struct train_job *job = user;

	train_screen_decoded(&job->screen, done, files);
}

/* All ranks use rank 0's options: launchers do not hand the environment on to other machines. */
static enum status read_options(struct train_job *job, struct err *err)
{
	const char *own = ranks_rank(job->ranks) == 0 ? getenv("POPLAR_ENGINE_OPTIONS") : NULL;
	char *text = own ? mem_strdup(own) : NULL;
	size_t length = text ? strlen(text) + 1 : 0;

	if (agree(job, own && !text ? err_nomem(err) : ST_OK, err) == ST_OK &&
	    train_ranks_share_bytes(job->ranks, &text, &length, err) == ST_OK)
		train_options_parse(&job->options, text, err);
	mem_free(text);
	if (job->options.notes)
		str_add(&job->notices, job->options.notes);
	return err->status;
}

static enum status write_json_files(struct train_job *job, struct err *err)
{
	const struct run_data data = train_data_of(&job->train_set, &job->test_set);
	struct str of_data = {0};
	char *text;

	if (run_file_text(&text, job->plan.run, err) != ST_OK)
		return err->status;
	run_data_write(&of_data, &data);
	if (train_auto_write_framework(job->directory, job->plan.model->name, err) != ST_OK ||
	    train_auto_write_app(job->directory, text, err) != ST_OK)
		goto end;
	if (ips_meta_set(job->recording, "run", text) != 0)
		err_set(err, ST_FAILED, "%s: recording the run file failed", job->directory);
	else if (of_data.failed || ips_meta_set(job->recording, "data", str_peek(&of_data)) != 0)
		err_set(err, ST_FAILED, "%s: recording the data's shape failed", job->directory);
	else if (job->options.text)
		ips_meta_set(job->recording, "engine_options", job->options.text);
end:
	str_free(&of_data);
	cJSON_free(text);
	return err->status;
}

/* Create the report's directory: the job's on rank 0; the other ranks' are inside it. */
static enum status make_directory(struct train_job *job, struct err *err)
{
	const int rank = ranks_rank(job->ranks);
	char first[FS_PATH_SIZE] = "";
	enum status status = ST_OK;

	if (rank == 0)
		status = train_auto_directory(&job->options, job->directory, err);
	memcpy(first, job->directory, sizeof(first));
	ranks_broadcast(job->ranks, 0, first, sizeof(first));
	if (rank == 0)
		return status;
	if (!fs_path(job->directory, "%s/rank%d", first, rank))
		return err_set(err, ST_INVALID, "%s: the path is too long", first);
	return first[0] == '\0' ? err_set(err, ST_FAILED, "rank 0 has no report")
				: fs_make_dirs(job->directory, err);
}

/* On the recording's thread. Every lag is in the view overhead; the run says the first one that is
 * far beyond the promised tenth of a second. */
static void watch_commit(void *user, const struct ips_commit *commit)
{
	struct train_job *job = user;

	if (job->lagged || commit->lag_ns < LAG_NS)
		return;
	job->lagged = true;
	train_screen_say(&job->screen, job->screen.log,
			 "ipu-train: the report lags: disk or processor do not keep up, and a kill "
			 "now would lose %.1f s of the recording, not 0.1 s (`lag_ns` in the view "
			 "overhead)\n",
			 (double)commit->lag_ns / 1e9);
}

static enum status open_report(struct train_job *job, struct err *err)
{
	struct ips_recording_params params;
	char path[FS_PATH_SIZE], message[ERR_TEXT_SIZE];
	int failed;

	if (!job->options.any)
		return ST_OK;
	if (make_directory(job, err) != ST_OK)
		return err->status;
	if (!fs_path(path, "%s/profile.db", job->directory))
		return err_set(err, ST_INVALID, "%s: the path is too long", job->directory);
	ips_recording_params_defaults(&params);
	params.command = job->command;
	params.rank = ranks_rank(job->ranks);
	params.on_commit = watch_commit;
	params.user = job;
	failed = ips_recording_open(&job->recording, path, &params, message, sizeof(message));
	if (failed != 0)
		return err_set(err, (enum status)failed, "%s", message);
	if (job->ranks) {
		ips_meta_set(job->recording, "mpi", ranks_transport_name(job->ranks));
		train_record_number(job->recording, "clock_offset_ns", job->clock.offset_ns);
		train_record_number(job->recording, "clock_bound_ns", job->clock.bound_ns);
	}
	return write_json_files(job, err);
}

/* A request that fails before the first step leaves no report behind. */
static void discard_report(struct train_job *job)
{
	static const char *const files[] = {"profile.db",     "profile.db-wal", "profile.db-shm",
					    "framework.json", "app.json",       "graph.json",
					    "execution.json", "debug.cbor"};
	char path[FS_PATH_SIZE], *slash;

	if (job->directory[0] == '\0')
		return;
	ips_recording_close(job->recording, NULL, 0);
	job->recording = NULL;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (fs_path(path, "%s/%s", job->directory, files[i]))
			unlink(path);
	rmdir(job->directory);
	/* The other ranks' directories are inside rank 0's: the last rank can remove that one. */
	slash = strrchr(job->directory, '/');
	if (ranks_rank(job->ranks) > 0 && slash) {
		*slash = '\0';
		rmdir(job->directory);
	}
}

/* Print the notices, the device, and the model, once the request has been checked. */
static enum status print_run(struct train_job *job, struct err *err)
{
	const struct plan_run *plan = &job->plan;
	const int ipus = plan->layout->ipus;
	FILE *out = job->screen.out;
	struct str split = {0};

	if (plan->best)
		partition_split_describe(plan->best, "pipeline.stages auto", &split);
	if (split.failed || job->notices.failed) {
		str_free(&split);
		return err_nomem(err);
	}
	cli_print_text(out, str_peek(&job->notices));
	cli_print_text(out, plan->run->notes);
	/* The lines about the device that the tutorials' logs have, marked as simulated. */
	if (plan->run->ipu.wanted)
		fprintf(out,
			"Poplar version: none (simulated by ipuscope %s, cost model %s)\n"
			"Device /device:IPU:0 attached to %d IPU%s with Poplar device ID: 0 "
			"(simulated %s)\n",
			IPUSCOPE_VERSION, IPU_COST_MODEL, ipus, ipus == 1 ? "" : "s",
			plan->run->ipu.target);
	train_summary_model(out, plan->model, plan->model->batch);
	train_summary_stages(out, plan->model, plan->layout);
	cli_print_text(out, str_peek(&split));
	str_free(&split);
	for (int i = 0; i < 2; i++) {
		const char *text = i == 0 ? plan->layout->warnings : plan->layout->notes;

		if (text)
			cli_print_text(out, text);
	}
	return ST_OK;
}

/* Check a file of weights, or of a @model, that the run will write; @path NULL: none. */
static enum status check_saved(const char *path, const cJSON *model, struct err *err)
{
	enum status status = path ? keras_save_check(path, model, err) : ST_OK;

	return status == ST_OK && path ? fs_check_write(path, err) : status;
}

/* Check that files can be read or written before hours of training, not after. */
static enum status check_files(struct train_job *job, struct err *err)
{
	const struct run_file *run = job->plan.run;
	const char *output = run->predict.wanted ? run->predict.output : NULL;

	if (run->weights.load && model_weights_open(&job->weights, run->weights.load, err) != ST_OK)
		return err->status;
	if (ranks_rank(job->ranks) == 0 && train_backup_check(run, err) != ST_OK)
		return err->status;
	if (check_saved(run->weights.save, NULL, err) != ST_OK ||
	    check_saved(run->weights.save_model, run->model, err) != ST_OK)
		return err->status;
	return output ? fs_check_write(output, err) : ST_OK;
}

/* Reject a replica that does not exist, whose report would be empty, and a directory that cannot
 * be made. */
static enum status check_report(const struct train_job *job, struct err *err)
{
	const int64_t replica = job->options.replica_to_profile;

	if (!job->options.any)
		return ST_OK;
	if (replica >= job->plan.layout->replicas)
		return err_set(err, ST_INVALID,
			       "POPLAR_ENGINE_OPTIONS: profiler.replicaToProfile: there is no "
			       "replica %lld (the run has %d, from 0)",
			       (long long)replica, job->plan.layout->replicas);
	return ranks_rank(job->ranks) == 0 ? train_auto_check(&job->options, err) : ST_OK;
}

/* Check an Embedding's inputs: a number without a row would make the training compute NaN. */
static enum status check_rows_of(const struct train_job *job, const struct dataset *set, int layer,
				 const struct model_part *part, struct err *err)
{
	const struct model *model = job->plan.model;
	const struct model_layer *embedding = &model->layers[layer];
	const int64_t rows = model->params[embedding->first_param].shape.dim[0];
	const int64_t first = !part ? 0 : part->first;
	const int64_t count = model_shape_count(!part ? &model->input : &part->shape);
	const char *name = job->plan.run->data.name;
	float number, most;
	const int64_t item = dataset_beyond(set, first, count, rows, &number, &most);

	if (item < 0)
		return ST_OK;
	if (most < (float)rows)
		return err_set(err, ST_INVALID,
			       "%s: item %lld has the number %g, and layer \"%s\" looks up rows "
			       "from 0 to %lld",
			       set->source, (long long)item, (double)number, embedding->name,
			       (long long)rows - 1);
	if (set->labels && (!strcmp(name, "text") || !strcmp(name, "imdb")))
		return err_set(
			err, ST_INVALID,
			"data.vocabulary_size: the tokens of %s have numbers up to %.0f, but "
			"layer \"%s\" has %lld rows: set it to %lld, or the layer's input_dim "
			"to %.0f",
			set->source, (double)most, embedding->name, (long long)rows,
			(long long)rows, (double)most + 1.0);
	return err_set(err, ST_INVALID,
		       "%s: item %lld has the number %g, the greatest is %g, but layer \"%s\" has "
		       "%lld rows: set its input_dim to %.0f",
		       set->source, (long long)item, (double)number, (double)most, embedding->name,
		       (long long)rows, (double)most + 1.0);
}

static enum status check_rows(const struct train_job *job, struct err *err)
{
	const struct run_file *run = job->plan.run;
	const bool tests = run->evaluate.wanted || run->fit.validation || run->predict.wanted;
	const struct model *model = job->plan.model;
	const struct model_part *part;

	for (int i = 0; i < model->layer_count; i++) {
		if (!model_layer_looks_up(model, i, &part))
			continue;
		if (run->fit.wanted && check_rows_of(job, &job->train_set, i, part, err) != ST_OK)
			return err->status;
		if (tests && check_rows_of(job, &job->test_set, i, part, err) != ST_OK)
			return err->status;
	}
	return ST_OK;
}

/* Read the file's weights before there is a session, whose memory a child process would copy. */
static enum status read_weights(struct train_job *job, struct err *err)
{
	const struct run_file *run = job->plan.run;
	const struct model *model = job->plan.model;

	if (!run->weights.load)
		return ST_OK;
	job->loaded = mem_alloc(model->weights * sizeof(*job->loaded));
	if (!job->loaded)
		return err_nomem(err);
	/* What the file does not have is as every replica has it. */
	model_init_weights(model, job->loaded, run->fit.seed);
	if (model_weights_read(model, job->loaded, &job->weights, run->weights.by_name,
			       &job->loaded_count, err) != ST_OK)
		return err->status;
	keras_file_close(&job->weights);
	return ST_OK;
}

/* Open what the run needs and check it. Ranks share the options; the rest each finds out alone. */
static enum status open_run(struct train_job *job, struct err *err)
{
	struct plan_run *plan = &job->plan;
	struct dataset_params params = train_data_params(plan->run);
	struct run_data data;

	/* A backup must not go on with other images. */
	params.identify = callbacks_backup(&job->callbacks) || plan->run->fit.resume;
	params.notice = add_notice;
	params.progress = print_progress;
	params.user = job;
	if (read_options(job, err) != ST_OK || check_files(job, err) != ST_OK ||
	    dataset_open(&job->train_set, &job->test_set, &params, err) != ST_OK)
		return err->status;
	data = train_data_of(&job->train_set, &job->test_set);
	if (plan_run_build(plan, &data, false, err) != ST_OK || read_weights(job, err) != ST_OK ||
	    check_rows(job, err) != ST_OK ||
	    train_generate_check(plan->run, plan->model, &job->train_set, err) != ST_OK ||
	    check_report(job, err) != ST_OK)
		return err->status;
	return check_ranks(job, err);
}

enum status train_job_prepare(struct train_job *job, struct err *err)
{
	err_start(err, err);
	if (agree(job, open_run(job, err), err) != ST_OK || check_same(job, err) != ST_OK ||
	    train_ranks_clock(job->ranks, &job->clock, err) != ST_OK)
		return err->status;
	ranks_watch(job->ranks, job->plan.run->distribution.timeout_s);
	return job->screen.out ? print_run(job, err) : ST_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Write the files beside profile.db; if that fails, print a warning and continue. */
static void write_beside(struct train_job *job,
			 enum status (*write)(const char *directory,
					      const struct popvision_files *wanted,
					      struct err *err))
{
	const struct popvision_files wanted = {
		.graph = job->options.graph_profile,
		.execution = job->options.execution_profile,
		.debug = job->options.debug_info,
		.replica = job->options.replica_to_profile,
	};
	struct err err = {0};

	if (write(job->directory, &wanted, &err) != ST_OK)
		train_screen_say(&job->screen, job->screen.log,
				 "ipu-train: %s (the run goes on without it)\n", err.text);
}

/* Written before the first step, so that a killed run has them. A failure of the recording is
 * reported when the report is closed. */
static void write_compiled(struct train_job *job)
{
	uint64_t begun;

	if (!job->recording || ips_recording_flush(job->recording) != 0)
		return;
	begun = clock_ns();
	write_beside(job, popvision_compiled);
	ips_recording_spent(job->recording, (int64_t)(clock_ns() - begun), 1);
}

/* A model that does not fit is not run; keep the report of its memory if the options allow it. */
static enum status check_memory(struct train_job *job, struct err *err)
{
	const struct plan_device *device = job->session->device;
	enum status status;

	if (train_session_fits(job->session))
		return ST_OK;
	status = ipu_memory_check(device->memory, device->executable, &device->target, err);
	if (status != ST_FAILED || !job->recording || !job->options.allow_out_of_memory)
		return status;
	job->out_of_memory = true;
	return err_prefix(err, "%s/profile.db has the memory of a run that is not started",
			  job->directory);
}

/* Print, before the first step, what the tensors will add to the report. */
static void print_forecast(const struct train_job *job)
{
	char text[TRAIN_TENSORS_TEXT];

	if (!job->recording || !job->screen.out)
		return;
	train_tensors_text(text, job->session);
	if (text[0] != '\0')
		cli_print(job->screen.out, "%s\n", text);
	for (int i = train_tensors_unused_rule(job->session, 0); i >= 0;
	     i = train_tensors_unused_rule(job->session, i + 1))
		cli_print(job->screen.out, "%s: outfeed.capture[%d] fits no tensor of this run\n",
			  job->plan.run->path, i);
}

/* Announce the run to ipu-monitor; a failure is only a warning. */
static void announce(struct train_job *job)
{
	struct err err = {ST_OK, ""};
	enum status status;

	if (!job->plan.run->ipu.wanted || ranks_rank(job->ranks) > 0)
		return;
	status = train_announce_open(&job->screen.announce, job->plan.run, job->plan.layout,
				     job->command, job->directory, &err);
	if (status != ST_OK && status != ST_NOTFOUND)
		train_screen_say(&job->screen, job->screen.out,
				 "ipu-monitor will not show this run: %s\n", err.text);
}

/* Print progress as TensorFlow for IPU does, for the device only: CPU programs are not compiled. */
static void print_compile(struct train_job *job, int step)
{
	if (job->plan.run->ipu.wanted)
		train_screen_compile(&job->screen, job->plan.model->name, step);
}

/* Give all replicas the weights that were loaded. */
static void share_weights(struct train_job *job)
{
	const struct model *model = job->plan.model;

	if (!job->loaded)
		return;
	for (int r = 0; r < job->session->replicas; r++) {
		struct train_replica *replica = &job->session->replica[r];

		memcpy(replica->weights, job->loaded, model->weights * sizeof(*job->loaded));
		train_replica_round(job->session, replica);
	}
	if (job->screen.out)
		cli_print(job->screen.out, "Loaded %d of %d variables from %s\n", job->loaded_count,
			  model->param_count, job->plan.run->weights.load);
	mem_free(job->loaded);
	job->loaded = NULL;
}

/* Open the report and make a session that is ready to train. */
static enum status compile(struct train_job *job, struct err *err)
{
	struct train_session_params params = {
		.plan = &job->plan,
		.train_set = &job->train_set,
		.test_set = &job->test_set,
	};
	const struct run_data data = train_data_of(&job->train_set, &job->test_set);

	print_compile(job, 0);
	if (open_report(job, err) != ST_OK)
		return err->status;
	announce(job);
	print_compile(job, 2);
	params.recording = job->recording;
	params.values = train_values_of(job->plan.run, &job->callbacks, job->keep_outfeeds);
	params.screen = &job->screen;
	params.ranks = job->ranks;
	params.broken = job->broken;
	if (job->options.execution_profile)
		params.trace_executions = job->options.execution_profile_program_run_count;
	params.report = !job->recording ? NULL : job->directory;
	if (plan_run_compile(&job->plan, &data, err) != ST_OK ||
	    train_session_new(&job->session, &params, err) != ST_OK)
		return err->status;
	write_compiled(job);
	if (check_memory(job, err) != ST_OK)
		return err->status;
	if (job->session->device)
		train_announce_device(&job->screen.announce, job->session->device,
				      job->plan.layout);
	print_compile(job, 3);
	print_compile(job, 4);
	print_forecast(job);
	share_weights(job);
	return ST_OK;
}

static enum status train(struct train_job *job, struct err *err)
{
	const struct train_fit_params params = {
		.session = job->session,
		.callbacks = &job->callbacks,
		.screen = &job->screen,
		.stop = &job->stop,
		.generated = job->generated,
	};
	const struct run_file *run = job->plan.run;
	const float *weights = job->session->replica[0].weights;

	if (train_fit(&params, &job->result, err) != ST_OK || ranks_rank(job->ranks) > 0)
		return err->status;
	if (run->weights.save &&
	    keras_save_weights(job->plan.model, weights, run->weights.save, err) != ST_OK)
		return err->status;
	if (run->weights.save_model && keras_save_model(job->plan.model, run->model, weights,
							run->weights.save_model, err) != ST_OK)
		return err->status;
	train_backup_finish(&job->callbacks);
	return ST_OK;
}

/* Print the digest of the weights, however the run ended: equal digests mean equal weights. If
 * it trained fewer steps than planned, for example after an interrupt, add their number as the
 * progress bar counts them. */
static void report_weights(const struct train_job *job)
{
	const struct run_layout *layout = job->plan.layout;
	const int64_t done = job->session->steps[IPS_TRAIN] * layout->replicas;
	const int64_t wanted =
		layout->steps_per_epoch * job->plan.run->fit.epochs * layout->replicas;
	char digest[17], after[64] = "";
	uint64_t number;

	/* Each replica has its own moving statistics: the run's weights are the first one's. */
	if (ranks_rank(job->ranks) > 0)
		return;
	if (model_weights_digest(&number, job->plan.model, job->session->replica[0].weights,
				 NULL) != ST_OK)
		return;
	snprintf(digest, sizeof(digest), "%016" PRIx64, number);
	ips_meta_set(job->recording, "weights_xxh3", digest);
	if (done < wanted)
		snprintf(after, sizeof(after), " after %" PRId64 " of %" PRId64 " steps", done,
			 wanted);
	if (job->screen.out)
		fprintf(job->screen.out, "Weights: XXH3 %s%s%s\n", digest, after,
			job->plan.run->host.products == RUN_PRODUCTS_OPENBLAS
				? " (with host.products openblas: on this machine)"
				: "");
}

static void report_loss_scale(const struct train_job *job)
{
	const struct train_loss_scale *at = &job->session->worker[0].loss_scale;
	char scale[32];

	if (!job->session->optimizer.loss_scale_dynamic)
		return;
	snprintf(scale, sizeof(scale), "%g", at->scale);
	ips_meta_set(job->recording, "loss_scale", scale);
	train_record_number(job->recording, "updates_skipped", at->skipped);
	if (job->screen.out)
		fprintf(job->screen.out,
			"Loss scale: %s; updates skipped for gradients that are not finite: "
			"%" PRId64 "\n",
			scale, at->skipped);
}

/* Finish the report whatever came before; an incomplete report fails the run. */
static enum status close_report(struct train_job *job, enum status status, struct err *err)
{
	char message[ERR_TEXT_SIZE];
	int failed;

	if (!job->recording)
		return status;
	failed = ips_recording_close(job->recording, message, sizeof(message));
	job->recording = NULL;
	if (failed == 0 && !job->out_of_memory)
		write_beside(job, popvision_executed);
	if (failed != 0 && status == ST_OK)
		status = err_set(err, ST_FAILED, "%s: the report is incomplete: %s", job->directory,
				 message);
	else if (job->screen.out)
		cli_print(job->screen.out, "Report: %s (look at it with `ipu-view %s`)\n",
			  job->directory, job->directory);
	return status;
}

/* Called after all ranks have closed their reports; rank 0 merges them. */
static void join_reports(struct train_job *job, enum status status)
{
	struct err err = {ST_OK, ""};
	char out[FS_PATH_SIZE];

	status = train_ranks_agree(job->ranks, status, NULL, &err);
	if (status != ST_OK || !job->ranks || !job->options.any)
		return;
	status = train_ranks_report(job->ranks, job->directory, job->command, out, &err);
	if (ranks_rank(job->ranks) > 0)
		return;
	if (status != ST_OK)
		cli_print(
			stderr,
			"ipu-train: the reports of %d ranks are not joined: %s (`ipu-report merge` "
			"joins what lies on one machine)\n",
			ranks_count(job->ranks), err.text);
	else if (job->screen.out)
		cli_print(job->screen.out, "All %d ranks: %s (`ipu-view %s`)\n",
			  ranks_count(job->ranks), out, out);
}

enum status train_job_run(struct train_job *job, struct err *err)
{
	enum status status = compile(job, err);
	bool begun, together, early;

	if (job->session)
		status = train_ranks_fail_together(job->session, status, err);
	if (status == ST_OK)
		status = train(job, err);
	train_screen_leave(&job->screen);
	/* A run that executed nothing (a callback refused to begin) leaves no report behind. */
	begun = job->session && (job->session->executions > 0 || job->session->part > 1);
	if (begun) {
		report_weights(job);
		report_loss_scale(job);
	}
	begun = begun || job->out_of_memory;
	early = status == ST_INTERRUPTED ||
		(begun && job->session && train_stop_asked(&job->session->stop_early));
	together = status == ST_OK || status == ST_INTERRUPTED ||
		   (job->session && job->session->together);
	/* Workers may record until they have ended. */
	train_session_free(job->session);
	job->session = NULL;
	train_announce_close(&job->screen.announce);
	if (!begun)
		discard_report(job);
	if (job->screen.out) {
		char *health =
			train_health_text(job->broken, job->recording ? job->directory : NULL);

		if (health)
			cli_print(job->screen.out, "%s\n", health);
		mem_free(health);
	}
	status = close_report(job, status, err);
	job->others = job->others || (together && ranks_rank(job->ranks) > 0);
	if (together) {
		join_reports(job, early ? ST_OK : status);
	} else if (job->ranks) {
		/* This rank alone has failed: the others would wait for it forever. */
		fprintf(stderr, "ipu-train: rank %d: %s\n", ranks_rank(job->ranks), err->text);
		ranks_abort(job->ranks, 1);
	}
	if (status == ST_OK && job->screen.out)
		fprintf(job->screen.out, "Program ran successfully%s\n",
			job->plan.run->ipu.wanted ? " (IPUs simulated)" : "");
	return status;
}
