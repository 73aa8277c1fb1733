/*
 * Backups of a training, and resuming from one.
 *
 * Ownership: a struct train_backup owns its texts, the snapshot being read, and the snapshot's
 * bytes.
 */
#include "trainer/train_fit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "trainer/data/snapshot.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/model_weights.h"
#include "trainer/train_outfeed.h"
#include "trainer/train_ranks.h"
#include "trainer/train_record.h"

#define BACKUP_FILE "latest.backup"

/* ---- identity of a run ----------------------------------------------------------------------- */

static void add_copy(cJSON *to, const char *key, const cJSON *from)
{
	cJSON_AddItemToObject(to, key, from ? cJSON_Duplicate(from, true) : cJSON_CreateNull());
}

static void add_data(cJSON *to, const struct train_session *session)
{
	const struct run_file *run = session->run;
	const struct run_texts *one_hot = &run->data.one_hot;
	const double size[] = {(double)run->data.resize[0], (double)run->data.resize[1]};
	char digest[17];

	snprintf(digest, sizeof(digest), "%016" PRIx64, dataset_digest(session->train_set));
	cJSON_AddStringToObject(to, "name", run->data.name);
	cJSON_AddNumberToObject(to, "items", (double)session->train_set->count);
	cJSON_AddStringToObject(to, "digest", digest);
	cJSON_AddNumberToObject(to, "batch_size", (double)run->data.batch_size);
	cJSON_AddNumberToObject(to, "shuffle", (double)run->data.shuffle);
	cJSON_AddItemToObject(to, "resize", cJSON_CreateDoubleArray(size, 2));
	if (one_hot->count)
		cJSON_AddItemToObject(to, "one_hot",
				      cJSON_CreateStringArray(one_hot->items, one_hot->count));
	else
		cJSON_AddBoolToObject(to, "one_hot", one_hot->given);
	cJSON_AddBoolToObject(to, "drop_remainder", run->data.drop_remainder);
	cJSON_AddBoolToObject(to, "pad_remainder", run->data.pad_remainder);
}

/* Describe everything that the resulting bytes depend on. Schedules, stages, threads and the length
 * of executions do not change them. The caller frees *@out with cJSON_free(). */
static enum status describe_run(char **out, const struct train_session *session,
				const struct callbacks *callbacks, struct err *err)
{
	const struct run_file *run = session->run;
	const struct run_layout *layout = session->layout;
	cJSON *root = cJSON_CreateObject(), *part;

	add_copy(root, "model", run->model);
	part = cJSON_AddObjectToObject(root, "compile");
	add_copy(part, "optimizer", run->compile.optimizer);
	add_copy(part, "loss", run->compile.loss);
	add_copy(part, "loss_weights", run->compile.loss_weights);
	add_copy(part, "metrics", run->compile.metrics);
	add_copy(part, "weighted_metrics", run->compile.weighted);
	cJSON_AddStringToObject(part, "dtype_policy", model_policy_name(run_policy(run)));
	add_data(cJSON_AddObjectToObject(root, "data"), session);
	part = cJSON_AddObjectToObject(root, "fit");
	add_copy(part, "class_weight", run->fit.class_weight);
	cJSON_AddNumberToObject(part, "seed", (double)run->fit.seed);
	cJSON_AddNumberToObject(part, "steps_per_epoch", (double)layout->steps_per_epoch);
	cJSON_AddNumberToObject(root, "replicas", layout->replicas);
	part = cJSON_AddObjectToObject(root, "accumulation");
	cJSON_AddNumberToObject(part, "steps_per_replica", (double)layout->accumulation);
	cJSON_AddNumberToObject(part, "reduction", run->accumulation.reduction);
	cJSON_AddNumberToObject(part, "dtype", run->accumulation.dtype);
	cJSON_AddNumberToObject(root, "infeed.dtype", run->infeed.dtype);
	part = cJSON_AddArrayToObject(root, "callbacks");
	for (int i = 0; i < callbacks->count; i++)
		if (callback_snapshot_name(&callbacks->items[i]))
			cJSON_AddItemToArray(part, cJSON_CreateString(callback_snapshot_name(
							   &callbacks->items[i])));
	*out = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return *out ? ST_OK : err_nomem(err);
}

/* Find the first difference and append its path to @path; *@a and *@b receive the differing values,
 * NULL: absent. Return false if they are equal. The parser limits the depth. */
static bool find_difference(const cJSON **a, const cJSON **b, struct str *path)
{
	const size_t length = strlen(str_peek(path));
	const cJSON *there = *a, *here = *b;
	const bool objects = cJSON_IsObject(there) && cJSON_IsObject(here);
	const bool arrays = cJSON_IsArray(there) && cJSON_IsArray(here);
	int at = 0;

	if (cJSON_Compare(there, here, true))
		return false;
	if (!objects && !arrays)
		return true;
	for (const cJSON *x = there->child, *y = here->child; x || y; at++) {
		if (objects) {
			const char *key = x ? x->string : y->string;

			str_addf(path, "%s%s", length ? "." : "", key);
			*a = x ? x : cJSON_GetObjectItemCaseSensitive(there, key);
			*b = x ? cJSON_GetObjectItemCaseSensitive(here, key) : y;
		} else {
			str_addf(path, "[%d]", at);
			*a = x;
			*b = y;
		}
		if (!*a || !*b || find_difference(a, b, path))
			return true;
		if (path->text)
			path->text[path->length = length] = '\0';
		/* Of objects, first the keys that are there, then those that are here. */
		if (y && (arrays || !x))
			y = y->next;
		x = x ? x->next : NULL;
	}
	return false;
}

/* Format a value ("null" and so on), truncating a long one. */
static void format_value(const cJSON *value, char out[64])
{
	char *text = value ? cJSON_PrintUnformatted(value) : NULL;

	snprintf(out, 64, "%.60s", text ? text : "absent");
	cJSON_free(text);
}

/* Reject the backup of another run: @there describes the run that made it. */
static enum status compare_run(const struct train_backup *backup, const char *there,
			       struct err *err)
{
	const cJSON *a, *b;
	cJSON *saved = NULL, *wanted = NULL;
	struct str path = {0};
	char before[64], now[64];

	if (json_parse(&saved, there, strlen(there), backup->path, err) != ST_OK ||
	    json_parse(&wanted, backup->identity, strlen(backup->identity), "run", err) != ST_OK)
		goto end;
	a = saved;
	b = wanted;
	if (find_difference(&a, &b, &path)) {
		format_value(a, before);
		format_value(b, now);
		err_set(err, ST_INVALID,
			"%s: is the backup of another run: %s is %s there, %s here; use another "
			"backup_dir, or delete the backup",
			backup->path, str_peek(&path), before, now);
	}
end:
	str_free(&path);
	cJSON_Delete(saved);
	cJSON_Delete(wanted);
	return err->status;
}

/* ---- saved state ----------------------------------------------------------------------------- */

static void sync_rate(struct train_session *session, struct snapshot *snapshot)
{
	struct schedule *schedule = &session->optimizer.learning_rate;
	double rate;

	if (schedule_name(schedule))
		return;
	rate = schedule_rate(schedule, 0);
	snapshot_real(snapshot, "learning_rate", &rate);
	if (err_stuck(snapshot_err(snapshot)) || !snapshot_reads(snapshot))
		return;
	if (rate >= 0.0 && rate <= 3e38)
		*schedule = schedule_constant(rate);
	else
		err_set(snapshot_err(snapshot), ST_INVALID, "%s: the learning rate is %g",
			snapshot_path(snapshot), rate);
}

/* The state of a dynamic LossScaleOptimizer, which is the same for all workers. */
static void sync_loss_scale(struct train_session *session, struct snapshot *snapshot)
{
	struct train_loss_scale *scale = &session->worker[0].loss_scale;

	if (!session->optimizer.loss_scale_dynamic)
		return;
	snapshot_real(snapshot, "loss_scale", &scale->scale);
	snapshot_integer(snapshot, "finite_updates", &scale->finite, 0, session->updates);
	snapshot_integer(snapshot, "skipped_updates", &scale->skipped, 0, session->updates);
	if (!err_stuck(snapshot_err(snapshot)) &&
	    !(scale->scale > 0.0 && scale->scale <= LOSS_SCALE_MOST))
		err_set(snapshot_err(snapshot), ST_INVALID, "%s: the loss scale is %g",
			snapshot_path(snapshot), scale->scale);
	for (int i = 1; i < session->worker_count; i++)
		session->worker[i].loss_scale = *scale;
}

/* The state that a replica's stateful layers pass to the next batch. */
static void sync_states(const struct train_session *session, const struct train_replica *replica,
			struct snapshot *snapshot)
{
	for (int s = 0; s < session->layout->stages; s++) {
		const struct train_stage *stage = &replica->stage[s];

		for (int i = stage->first_layer; i < stage->first_layer + stage->layer_count; i++) {
			size_t count;
			float *state = stage_state(stage->stage, i, &count);

			snapshot_prefix(snapshot, "state %d ", replica->number);
			if (count > 0)
				snapshot_field(snapshot, session->model->layers[i].name, state,
					       count * sizeof(*state));
			snapshot_prefix(snapshot, "%s", "");
		}
	}
}

/* Replicas have the weights of the first one, @first, except for moving statistics. */
static void sync_replica(struct train_session *session, struct train_replica *replica,
			 const float *first, struct snapshot *snapshot)
{
	const struct model *model = session->model;
	const bool reads = snapshot_reads(snapshot);
	bool own = replica->number == 0 ||
		   memcmp(replica->weights, first, model->weights * sizeof(float)) != 0;
	char name[64];

	snprintf(name, sizeof(name), "replica %d", replica->number);
	snapshot_flag(snapshot, name, &own);
	if (!own)
		snprintf(name, sizeof(name), "replica 0");
	if (own || reads)
		model_weights_snapshot(model, replica->weights, name, snapshot);
	if (reads)
		train_replica_round(session, replica);
}

/* The optimizer's variables, which are the same for all replicas: rank 0 saves those of the first
 * one. If they are sharded, all ranks gather the shares in session->reduced. */
static void sync_slots(struct train_session *session, struct snapshot *snapshot)
{
	const size_t slots = (size_t)optimizer_slots(&session->optimizer);
	const size_t weights = session->model->weights;
	const bool reads = snapshot_reads(snapshot), sharded = session->sharded;
	char name[64];

	for (size_t s = 0; s < slots; s++) {
		float *whole = sharded ? session->reduced : session->replica[0].slots + s * weights;

		if (sharded && !reads) {
			train_shard_publish_slot(session, s);
			for (int stage = 0; stage < session->layout->stages; stage++)
				train_ranks_gather(session, stage, NULL);
		}
		snprintf(name, sizeof(name), "slot %zu", s);
		if (reads || ranks_rank(session->ranks) == 0)
			model_weights_snapshot(session->model, whole, name, snapshot);
		for (int r = 0; reads && r < session->replicas; r++)
			if (sharded)
				train_shard_fetch_slot(session, &session->replica[r], s);
			else if (r > 0)
				memcpy(session->replica[r].slots + s * weights, whole,
				       weights * sizeof(*whole));
	}
}

/* This process's replicas, and the state of their health rules. */
static void sync_replicas(struct train_backup *backup, struct snapshot *snapshot)
{
	struct train_session *session = backup->session;
	const float *first = backup->first ? backup->first : session->replica[0].weights;

	for (int r = 0; r < session->replicas; r++)
		sync_replica(session, &session->replica[r], first, snapshot);
	sync_slots(session, snapshot);
	for (int r = 0; r < session->replicas; r++)
		sync_states(session, &session->replica[r], snapshot);
	for (int r = 0; r < session->replicas; r++)
		train_health_snapshot(session, r, snapshot);
}

/* State that is the same on all ranks. */
static void sync_session(struct train_backup *backup, struct snapshot *snapshot)
{
	struct train_session *session = backup->session;
	const int64_t epochs = session->run->fit.epochs, each = session->layout->steps_per_epoch;

	snapshot_integer(snapshot, "part", &session->part, 1, INT32_MAX);
	snapshot_integer(snapshot, "epoch", &backup->epoch, 1, epochs + 1);
	snapshot_integer(snapshot, "epoch_steps", &backup->steps, 0, each);
	snapshot_flag(snapshot, "stop", &backup->stop);
	snapshot_integer(snapshot, "steps", &session->steps[IPS_TRAIN], 0, epochs * each);
	snapshot_integer(snapshot, "evaluated", &session->steps[IPS_EVALUATE], 0, INT64_MAX / 4);
	snapshot_integer(snapshot, "updates", &session->updates, 0, epochs * each);
	sync_rate(session, snapshot);
	sync_loss_scale(session, snapshot);
}

static void sync_rest(const struct train_backup *backup, struct train_phase *phase,
		      const struct callback_host *host, struct snapshot *snapshot)
{
	if (backup->steps > 0)
		train_phase_snapshot(phase, snapshot);
	callbacks_snapshot(backup->callbacks, host, snapshot);
}

/* ---- resuming -------------------------------------------------------------------------------- */

/* @place is a folder of backups or a backup. */
static bool backup_path(char out[FS_PATH_SIZE], const char *place)
{
	return fs_path(out, fs_is_dir(place) ? "%s/" BACKUP_FILE : "%s", place);
}

enum status train_backup_check(const struct run_file *run, struct err *err)
{
	char path[FS_PATH_SIZE];

	if (!run->fit.wanted || !run->fit.resume)
		return ST_OK;
	if (backup_path(path, run->fit.resume) && fs_exists(path))
		return ST_OK;
	return err_set(err, ST_NOTFOUND,
		       "fit.resume: %s: there is no backup (" BACKUP_FILE
		       "), which the callback BackupAndRestore makes and removes at a run's end",
		       run->fit.resume);
}

static enum status prepare_folder(struct train_backup *backup, struct err *err)
{
	const char *folder = backup->wanted->folder;

	if (fs_make_dirs(folder, err) != ST_OK)
		return err->status;
	if (!fs_path(backup->target, "%s/" BACKUP_FILE, folder))
		return err_set(err, ST_LIMIT, "%s: the path is too long", folder);
	return fs_check_write(backup->target, err);
}

/* Record in the report which one it continues: that of the same rank if the earlier run had @ranks
 * with it, else the first rank's. */
static void record_part(const struct train_backup *backup, const char *first, int64_t ranks)
{
	const struct train_session *session = backup->session;
	const int rank = ranks_rank(session->ranks);
	char report[FS_PATH_SIZE];

	if (rank == 0 || rank >= ranks || first[0] == '\0' ||
	    !fs_path(report, "%s/rank%d", first, rank))
		str_copy(report, sizeof(report), first);
	train_record_number(session->recording, "part", session->part);
	ips_meta_set(session->recording, "continues", report);
	train_record_number(session->recording, "continues_after_step", session->steps[IPS_TRAIN]);
}

static void print_part(const struct train_backup *backup, FILE *out, const char *report)
{
	const struct train_session *session = backup->session;
	const int64_t replicas = session->layout->replicas;
	const bool ended = backup->epoch > session->run->fit.epochs;

	cli_print(out, "Resumed from %s: ", backup->path);
	if (ended || backup->stop)
		fprintf(out, "all epochs were trained");
	else
		fprintf(out, "epoch %" PRId64 ", step %" PRId64 " of %" PRId64, backup->epoch,
			backup->steps * replicas, session->layout->steps_per_epoch * replicas);
	cli_print(out, "; part %" PRId64 "%s%s\n", session->part, report[0] ? ", continues " : "",
		  report);
}

/* Restore the session from the file's @length bytes. */
static void read_session(struct train_backup *backup, size_t length, struct train_screen *screen,
			 struct err *err)
{
	struct train_session *session = backup->session;
	const char *identity, *report;
	int64_t ranks = 1;

	if (snapshot_parse(&backup->from, backup->path, backup->bytes, length, err) != ST_OK)
		return;
	identity = snapshot_text(backup->from, "run", NULL);
	report = snapshot_text(backup->from, "report", NULL);
	snapshot_integer(backup->from, "ranks", &ranks, 1, INT32_MAX);
	if (err_stuck(err) || compare_run(backup, identity, err) != ST_OK)
		return;
	sync_session(backup, backup->from);
	sync_replicas(backup, backup->from);
	if (err_stuck(err))
		return;
	if (backup->steps % session->layout->steps_per_execution != 0) {
		err_set(err, ST_INVALID,
			"%s: was made after %" PRId64 " steps of an epoch, between two executions; "
			"compile.steps_per_execution must divide that",
			backup->path, backup->steps);
		return;
	}
	session->part++;
	backup->last = session->steps[IPS_TRAIN];
	record_part(backup, report, ranks);
	if (screen->out)
		print_part(backup, screen->out, report);
}

/* On rank 0: read the file to resume from, if any, into backup->bytes. */
static void find_backup(struct train_backup *backup, size_t *length, struct err *err)
{
	const char *resume = backup->session->run->fit.resume;

	if (backup->wanted && prepare_folder(backup, err) != ST_OK) {
		err_prefix(err, "BackupAndRestore");
		return;
	}
	/* Prefer the run's own backup: it is later, since the run resumed from the other one. */
	if (backup->wanted && fs_exists(backup->target))
		str_copy(backup->path, sizeof(backup->path), backup->target);
	else if (!resume || !backup_path(backup->path, resume))
		return;
	fs_read(backup->path, SIZE_MAX / 2, &backup->bytes, length, err);
}

enum status train_backup_open(struct train_backup *out, struct train_session *session,
			      const struct callbacks *callbacks, float *first,
			      struct train_screen *screen, struct err *err)
{
	struct ranks *ranks = session->ranks;
	size_t length = 0;

	*out = (struct train_backup){.session = session,
				     .callbacks = callbacks,
				     .wanted = callbacks_backup(callbacks),
				     .first = first,
				     .epoch = 1};
	if (!out->wanted && !session->run->fit.resume)
		return ST_OK;
	if (describe_run(&out->identity, session, callbacks, err) == ST_OK &&
	    ranks_rank(ranks) == 0)
		find_backup(out, &length, err);
	/* All ranks resume from the same backup, or none does. */
	if (train_ranks_fail_together(session, err->status, err) != ST_OK)
		return err->status;
	if (ranks_rank(ranks) > 0)
		str_copy(out->path, sizeof(out->path), BACKUP_FILE);
	if (train_ranks_share_bytes(ranks, &out->bytes, &length, err) == ST_OK && out->bytes)
		read_session(out, length, screen, err);
	return train_ranks_fail_together(session, err->status, err);
}

enum status train_backup_restore(struct train_backup *backup, struct train_phase *phase,
				 const struct callback_host *host, struct err *err)
{
	enum status status;

	if (!backup->from)
		return ST_OK;
	sync_rest(backup, phase, host, backup->from);
	status = snapshot_close(backup->from);
	backup->from = NULL;
	mem_free(backup->bytes);
	backup->bytes = NULL;
	return status == ST_OK ? ST_OK : err_prefix(err, "going on from a backup");
}

/* ---- writing --------------------------------------------------------------------------------- */

static void append_part(void *user, const void *part, size_t bytes)
{
	snapshot_append(user, part, bytes);
}

/* On rank 0: write its own state and that of the other ranks. */
static enum status write_backup(struct train_backup *backup, struct train_phase *phase,
				const struct callback_host *host, struct err *err)
{
	struct train_session *session = backup->session;
	int64_t ranks = ranks_count(session->ranks);
	char report[FS_PATH_SIZE] = "";
	struct snapshot *snapshot;
	enum status status;

	if (session->report && !realpath(session->report, report))
		str_copy(report, sizeof(report), session->report);
	status = snapshot_create(&snapshot, backup->target, err);
	if (status != ST_OK)
		return status;
	snapshot_text(snapshot, "run", backup->identity);
	snapshot_text(snapshot, "report", report);
	snapshot_integer(snapshot, "ranks", &ranks, 1, INT32_MAX);
	sync_session(backup, snapshot);
	sync_rest(backup, phase, host, snapshot);
	sync_replicas(backup, snapshot);
	/* The first failure sticks; still receive the other ranks' parts. */
	train_ranks_collect(session->ranks, NULL, 0, append_part, snapshot,
			    err_stuck(err) ? NULL : err);
	return snapshot_close(snapshot);
}

static enum status send_replicas(struct train_backup *backup, struct err *err)
{
	struct snapshot *snapshot;
	const void *part = NULL;
	size_t bytes = 0;

	if (snapshot_create_part(&snapshot, err) == ST_OK) {
		sync_replicas(backup, snapshot);
		part = snapshot_part(snapshot, &bytes);
	}
	/* The first failure sticks; rank 0 still waits for this part. */
	train_ranks_collect(backup->session->ranks, part, bytes, NULL, NULL,
			    err_stuck(err) ? NULL : err);
	snapshot_close(snapshot);
	return err->status;
}

enum status train_backup_write(struct train_backup *backup, struct train_phase *phase,
			       const struct callback_host *host, int64_t epoch, int64_t steps,
			       bool stop, struct err *err)
{
	struct train_session *session = backup->session;
	const int64_t since = session->steps[IPS_TRAIN] - backup->last;
	int64_t every;
	enum status status;
	struct err own;

	err = err_start(err, &own);
	backup->epoch = epoch;
	backup->steps = steps;
	backup->stop = stop;
	if (!backup->wanted)
		return ST_OK;
	/* With save_freq in batches, write one at each epoch's end too: callbacks' state has
	 * changed. */
	every = backup->wanted->every;
	if (steps > 0 && (every <= 0 || since * session->layout->replicas < every))
		return ST_OK;
	ips_span_begin(session->main_track, ips_site_intern("callback", "BackupAndRestore", NULL));
	train_ranks_weights(session, backup->first ? backup->first : session->replica[0].weights);
	status = ranks_rank(session->ranks) == 0 ? write_backup(backup, phase, host, err)
						 : send_replicas(backup, err);
	ips_span_end(session->main_track);
	backup->last = session->steps[IPS_TRAIN];
	return status == ST_OK ? ST_OK : err_prefix(err, "BackupAndRestore");
}

void train_backup_close(struct train_backup *backup)
{
	snapshot_close(backup->from);
	mem_free(backup->bytes);
	cJSON_free(backup->identity);
	*backup = (struct train_backup){0};
}

void train_backup_finish(const struct callbacks *callbacks)
{
	const struct callback_backup *backup = callbacks_backup(callbacks);
	char path[FS_PATH_SIZE];

	if (backup && backup->deletes && fs_path(path, "%s/" BACKUP_FILE, backup->folder))
		unlink(path);
}
