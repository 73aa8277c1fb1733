/*
 * Callbacks: Keras's rules for stopping, saving and logging, on logs made by hand.
 */
#include "trainer/callbacks/callback.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/math.h"

static const char dense[] = "[{'class_name': 'Dense', 'config': {'units': 3, 'name': 'd'}}]";

/* A training that only counts. */
struct sample {
	struct callbacks callbacks;
	struct math_model m;
	struct callback_host host;
	float *weights;
	double rate;
	int stops, said;
	char last[512];
};

static const float *sample_weights(void *user)
{
	return ((struct sample *)user)->weights;
}

static void sample_set_weights(void *user, const float *weights)
{
	struct sample *s = user;

	memcpy(s->weights, weights, s->m.model->weights * sizeof(*weights));
}

static void sample_stop(void *user)
{
	((struct sample *)user)->stops++;
}

static double sample_rate(void *user)
{
	return ((struct sample *)user)->rate;
}

static void sample_set_rate(void *user, double rate)
{
	((struct sample *)user)->rate = rate;
}

static void sample_say(void *user, const char *text)
{
	struct sample *s = user;

	s->said++;
	snprintf(s->last, sizeof(s->last), "%s", text);
}

static enum status sample_read(struct sample *s, const char *text, struct err *err)
{
	char json[1024];
	struct json_at root;
	cJSON *list;
	enum status status;

	snprintf(json, sizeof(json), "%s", text);
	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(json_parse(&list, json, strlen(json), "run.json", NULL), ST_OK);
	root = json_root("run.json", list);
	status = callbacks_read(&s->callbacks, &root, err);
	cJSON_Delete(list);
	return status;
}

static enum status sample_call(struct sample *s, enum callback_moment moment, struct err *err)
{
	const struct callback_event event = {.moment = moment, .host = &s->host, .err = err};

	return callbacks_call(&s->callbacks, &event);
}

static enum status sample_batch(struct sample *s, enum callback_which which, int64_t batch,
				const struct ips_logs *logs)
{
	const struct callback_event event = {.moment = CALLBACK_BATCH_END,
					     .host = &s->host,
					     .which = which,
					     .mode = IPS_TRAIN,
					     .batch = batch,
					     .logs = logs};

	return callbacks_call(&s->callbacks, &event);
}

static void sample_open(struct sample *s, const char *text)
{
	struct err err = {0};

	memset(s, 0, sizeof(*s));
	if (sample_read(s, text, &err) != ST_OK)
		fail_msg("%s: %s", text, err.text);
	math_model_open(&s->m, dense, 1, (int64_t[]){2});
	s->weights = mem_aligned(s->m.model->weights, sizeof(float));
	assert_non_null(s->weights);
	s->rate = 0.1;
	s->host = (struct callback_host){.user = s,
					 .model = s->m.model,
					 .weights = sample_weights,
					 .set_weights = sample_set_weights,
					 .stop = sample_stop,
					 .rate = sample_rate,
					 .set_rate = sample_set_rate,
					 .say = sample_say};
	assert_int_equal(sample_call(s, CALLBACK_TRAIN_BEGIN, NULL), ST_OK);
}

static void sample_close(struct sample *s)
{
	callbacks_fini(&s->callbacks);
	math_model_close(&s->m);
	mem_free(s->weights);
}

static enum status sample_epoch(struct sample *s, int64_t epoch, double loss, double accuracy,
				struct err *err)
{
	const struct ips_log items[] = {{"loss", loss}, {"accuracy", accuracy}};
	const struct ips_logs logs = {items, 2};
	struct callback_event event = {
		.moment = CALLBACK_EPOCH_BEGIN, .host = &s->host, .epoch = epoch, .err = err};
	enum status status;

	s->weights[0] = (float)epoch;
	status = callbacks_call(&s->callbacks, &event);
	event.moment = CALLBACK_EPOCH_END;
	event.logs = &logs;
	return status == ST_OK ? callbacks_call(&s->callbacks, &event) : status;
}

/* Returns the epoch at which the training was stopped; 0: never. */
static int64_t stopped_at(const char *text, const double *losses, int count)
{
	struct sample s;
	int64_t stopped = 0;

	sample_open(&s, text);
	for (int i = 0; i < count && !stopped; i++) {
		assert_int_equal(sample_epoch(&s, i + 1, losses[i], -losses[i], NULL), ST_OK);
		stopped = s.stops ? i + 1 : 0;
	}
	assert_int_equal(sample_call(&s, CALLBACK_TRAIN_END, NULL), ST_OK);
	sample_close(&s);
	return stopped;
}

#define STOP(options) "[{'class_name': 'EarlyStopping', 'config': {" options "}}]"

static void test_early_stopping_waits_for_its_patience(void **state)
{
	static const double losses[] = {5, 4, 4.5, 3.9, 3.95, 3.95, 3.95, 3};
	static const double bad[] = {NAN, 5, 6, NAN, 7};

	(void)state;
	assert_int_equal(stopped_at(STOP("'monitor': 'loss'"), losses, 8), 3);
	assert_int_equal(stopped_at(STOP("'monitor': 'loss', 'patience': 2"), losses, 8), 6);
	assert_int_equal(stopped_at(STOP("'monitor': 'loss', 'patience': 3"), losses, 8), 7);
	assert_int_equal(stopped_at(STOP("'monitor': 'loss', 'patience': 4"), losses, 8), 0);
	assert_int_equal(
		stopped_at(STOP("'monitor': 'loss', 'patience': 2, 'min_delta': 0.5"), losses, 8),
		4);
	/* "accuracy" is to grow; it is -loss here. */
	assert_int_equal(stopped_at(STOP("'monitor': 'accuracy', 'patience': 2"), losses, 8), 6);
	assert_int_equal(
		stopped_at(STOP("'monitor': 'accuracy', 'mode': 'min', 'patience': 2"), losses, 8),
		3);
	assert_int_equal(
		stopped_at(STOP("'monitor': 'loss', 'patience': 3, 'baseline': 3.5"), losses, 8),
		3);
	assert_int_equal(stopped_at(STOP("'monitor': 'loss', 'baseline': 3.5"), losses, 8), 2);
	assert_int_equal(stopped_at(STOP("'monitor': 'loss', 'start_from_epoch': 4"), losses, 8),
			 6);
	assert_int_equal(stopped_at(STOP("'monitor': 'loss', 'patience': 2"), bad, 5), 4);
}

static void test_early_stopping_restores_the_best_weights(void **state)
{
	static const double losses[] = {5, 4, 4.5, 4.6};
	struct sample s;

	(void)state;
	sample_open(&s, STOP("'monitor': 'loss', 'patience': 2, 'restore_best_weights': true, "
			     "'verbose': 1"));
	for (int i = 0; i < 4; i++)
		assert_int_equal(sample_epoch(&s, i + 1, losses[i], 0, NULL), ST_OK);
	assert_int_equal(s.stops, 1);
	assert_int_equal(sample_call(&s, CALLBACK_TRAIN_END, NULL), ST_OK);
	assert_true(s.weights[0] >= 2.0f && s.weights[0] <= 2.0f);
	assert_string_equal(s.last,
			    "Epoch 4: early stopping. Weights restored from the best epoch: 2");
	sample_close(&s);
}

static void test_a_metric_that_is_not_there_is_told_once(void **state)
{
	struct sample s;

	(void)state;
	sample_open(&s, STOP(""));
	for (int i = 1; i < 4; i++)
		assert_int_equal(sample_epoch(&s, i, 1, 1, NULL), ST_OK);
	assert_int_equal(s.said, 1);
	assert_int_equal(s.stops, 0);
	assert_contains(s.last, "EarlyStopping: the metric \"val_loss\" is not available; there "
				"are: loss, accuracy (fit.validation gives");
	sample_close(&s);
}

static void test_the_csv_has_a_line_per_epoch(void **state)
{
	char path[] = "test_callback.csv", *text;
	struct sample s;
	size_t length;

	(void)state;
	/* A file to append to that is still empty gets the heading. */
	fclose(fopen(path, "w"));
	for (int run = 0; run < 2; run++) {
		sample_open(&s, "[{'class_name': 'CSVLogger', 'config': {'filename': "
				"'test_callback.csv', 'separator': ';', 'append': true}}]");
		assert_int_equal(sample_epoch(&s, 1, 0.5, 0.25, NULL), ST_OK);
		assert_int_equal(sample_epoch(&s, 2, NAN, INFINITY, NULL), ST_OK);
		assert_int_equal(sample_call(&s, CALLBACK_TRAIN_END, NULL), ST_OK);
		sample_close(&s);
	}
	assert_int_equal(fs_read(path, 4096, &text, &length, NULL), ST_OK);
	assert_string_equal(text, "epoch;loss;accuracy\n0;0.5;0.25\n1;nan;inf\n0;0.5;0.25\n"
				  "1;nan;inf\n");
	mem_free(text);
	unlink(path);
}

static void test_a_csv_that_cannot_be_written_is_an_error(void **state)
{
	struct err err = {0};
	struct sample s;

	(void)state;
	memset(&s, 0, sizeof(s));
	assert_int_equal(sample_read(&s,
				     "[{'class_name': 'CSVLogger', 'config': {'filename': "
				     "'/nowhere/a.csv'}}]",
				     &err),
			 ST_OK);
	assert_int_equal(sample_call(&s, CALLBACK_TRAIN_BEGIN, &err), ST_NOTFOUND);
	assert_contains(err.text, "CSVLogger: /nowhere/a.csv: No such file or directory");
	callbacks_fini(&s.callbacks);
}

struct shown {
	struct sample s;
	char queue[32], name[32];
	int64_t epoch;
};

static enum status sample_outfeed(void *user, const char *queue, const char *name, int64_t epoch,
				  struct err *err)
{
	struct shown *shown = user;

	snprintf(shown->queue, sizeof(shown->queue), "%s", queue);
	snprintf(shown->name, sizeof(shown->name), "%s", name);
	shown->epoch = epoch;
	return err_set(err, ST_FAILED, "as asked for");
}

static void test_an_outfeed_callback_names_its_queue(void **state)
{
	const struct callback_host host = {.outfeed = sample_outfeed};
	const struct ips_logs logs = {NULL, 0};
	struct err err = {0};
	struct shown shown = {0};
	struct callback_host at = host;
	const struct callback_event event = {
		.moment = CALLBACK_EPOCH_END, .host = &at, .epoch = 7, .logs = &logs, .err = &err};

	(void)state;
	at.user = &shown;
	assert_int_equal(sample_read(&shown.s,
				     "[{'class_name': 'OutfeedCallback', 'config': {'queue': 'q', "
				     "'name': 'n'}}]",
				     &err),
			 ST_OK);
	assert_true(callbacks_show_outfeeds(&shown.s.callbacks));
	assert_int_equal(callbacks_call(&shown.s.callbacks, &event), ST_FAILED);
	assert_string_equal(shown.queue, "q");
	assert_string_equal(shown.name, "n");
	assert_int_equal(shown.epoch, 7);
	callbacks_fini(&shown.s.callbacks);
	assert_int_equal(sample_read(&shown.s, "[{'class_name': 'OutfeedCallback'}]", &err),
			 ST_INVALID);
	assert_contains(err.text, "\"queue\" is missing");
	assert_int_equal(sample_read(&shown.s,
				     "[{'class_name': 'OutfeedCallback', 'config': {'queu': 'q'}}]",
				     &err),
			 ST_INVALID);
	assert_contains(err.text, "unknown option \"queu\" (did you mean \"queue\"?)");
	assert_false(callbacks_show_outfeeds(&shown.s.callbacks));
}

static void test_file_names_take_the_epoch_and_logs(void **state)
{
	static const struct ips_log items[] = {
		{"loss", 0.123456}, {"val_loss", 12.5}, {"lost", -(double)NAN}, {"huge", 1e20}};
	static const struct ips_logs logs = {items, ARRAY_LEN(items)};
	static const struct {
		const char *pattern, *name;
	} rows[] = {
		{"w.npz", "w.npz"},
		{"w.{epoch:02d}-{val_loss:.2f}.npz", "w.07-12.50.npz"},
		{"{epoch}{loss:.3e}", "71.235e-01"},
		{"{epoch:4d}|{loss}", "   7|0.123456"},
		{"{epoch:06}{epoch:.1f}", "0000077.0"},
		{"{val_loss:08.3f}{val_loss:5d}{val_loss:04d}", "0012.500   120012"},
		{"{lost:d}{lost:.2f}{huge:d}", "nannan100000000000000000000"},
	};
	char name[64];
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(callback_name_check(rows[i].pattern, NULL), ST_OK);
		assert_int_equal(callback_name(rows[i].pattern, 7, &logs, name, sizeof(name), NULL),
				 ST_OK);
		assert_string_equal(name, rows[i].name);
	}
	assert_int_equal(callback_name("{acc:.2f}", 7, &logs, name, sizeof(name), &err),
			 ST_INVALID);
	assert_contains(err.text,
			"there is no {acc} among the logs (epoch, loss, val_loss, lost, huge)");
	assert_int_equal(callback_name("{loss:40f}{loss:40f}", 7, &logs, name, sizeof(name), &err),
			 ST_INVALID);
	assert_contains(err.text, "too long");
}

static void test_bad_fields_are_refused(void **state)
{
	static const char *const bad[] = {
		"{",     "}",        "{}", "{:d}", "{loss:x}", "{loss:.f}", "{loss:99999999f}",
		"{loss", "{loss:%s}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(callback_name_check(bad[i], NULL), ST_INVALID);
}

static void test_checkpoints_are_written_when_asked(void **state)
{
	static const double losses[] = {3, 2, 2.5};
	struct sample s;

	(void)state;
	sample_open(&s, "[{'class_name': 'ModelCheckpoint', 'config': {'filepath': "
			"'test_callback_{epoch}.npz', 'monitor': 'loss', 'save_best_only': true, "
			"'verbose': 1}}]");
	for (int i = 0; i < 3; i++)
		assert_int_equal(sample_epoch(&s, i + 1, losses[i], 0, NULL), ST_OK);
	assert_true(fs_exists("test_callback_1.npz"));
	assert_true(fs_exists("test_callback_2.npz"));
	assert_false(fs_exists("test_callback_3.npz"));
	assert_int_equal(s.said, 2);
	assert_string_equal(s.last, "Epoch 2: saving model to test_callback_2.npz");
	unlink("test_callback_1.npz");
	unlink("test_callback_2.npz");
	sample_close(&s);
}

static void test_checkpoints_count_batches_over_executions(void **state)
{
	const struct ips_log items[] = {{"loss", 1}};
	const struct ips_logs logs = {items, 1};
	struct sample s;
	int written = 0;

	(void)state;
	sample_open(&s, "[{'class_name': 'ModelCheckpoint', 'config': {'filepath': "
			"'test_callback_b.npz', 'save_freq': 10}}]");
	for (int64_t batch = 3; batch < 40; batch += 4) {
		assert_int_equal(sample_batch(&s, CALLBACK_RUNNING, batch, &logs), ST_OK);
		assert_false(fs_exists("test_callback_b.npz"));
		assert_int_equal(sample_batch(&s, CALLBACK_RESTING, batch, &logs), ST_OK);
		written += !unlink("test_callback_b.npz");
	}
	assert_int_equal(written, 3);
	sample_close(&s);
}

static void test_bad_options_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"[{'class_name': 'EarlyStop'}]",
		 "[0]: unknown callback \"EarlyStop\" (did you mean \"EarlyStopping\"?)"},
		{"[{'class_name': 'CSVLogger'}]", "\"filename\" is missing"},
		{"[{'class_name': 'ModelCheckpoint'}]", "\"filepath\" is missing"},
		{STOP("'monitr': 'loss'"), "unknown option \"monitr\" (did you mean \"monitor\"?)"},
		{STOP("'mode': 'most'"), "config.mode: unknown mode \"most\""},
		{STOP("'patience': -1"), "config.patience: must be"},
		{"[{'class_name': 'ModelCheckpoint', 'config': {'filepath': 'a{'}}]",
		 "config.filepath: \"{\": a field is"},
		{"[{'class_name': 'ModelCheckpoint', 'config': {'filepath': 'a', 'save_freq': "
		 "'batch'}}]",
		 "save_freq: must be \"epoch\" or a number of batches"},
		/* Of several errors the first. */
		{"[{'class_name': 'ModelCheckpoint', 'config': {'filepath': 'a{', 'save_freq': "
		 "0}}]",
		 "save_freq: must be"},
		{"[{'class_name': 'BackupAndRestore', 'config': {'save_freq': 0}}]",
		 "save_freq: must be"},
		{"[{'class_name': 'LearningRateScheduler', 'config': {'schedule': [[-1, -1]]}}]",
		 "schedule[0][0]: must be"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};
		struct sample s = {.stops = 0};

		assert_int_not_equal(sample_read(&s, rows[i].text, &err), ST_OK);
		assert_contains(err.text, rows[i].says);
		assert_int_equal(s.callbacks.count, 0);
	}
}

static void note_epoch(void *user, struct ips_trainer *trainer, int64_t epoch,
		       const struct ips_logs *logs)
{
	double *seen = user;

	assert_null(trainer);
	seen[0] = (double)epoch;
	seen[1] = logs->items[0].value;
}

static void test_a_program_built_earlier_knows_fewer_members(void **state)
{
	double seen[2] = {0, 0};
	struct ips_callback own = {.user = seen, .epoch_end = note_epoch};
	struct sample s;

	(void)state;
	sample_open(&s, "[]");
	own.size = offsetof(struct ips_callback, batch_end);
	own.batch_end = (void (*)(void *, struct ips_trainer *, enum ips_mode, int64_t,
				  const struct ips_logs *))(void (*)(void))abort;
	assert_int_equal(callbacks_add(&s.callbacks, &own, NULL, NULL), ST_OK);
	assert_int_equal(sample_epoch(&s, 3, 0.5, 0, NULL), ST_OK);
	assert_true(seen[0] >= 3.0 && seen[1] >= 0.5);
	assert_int_equal(sample_batch(&s, CALLBACK_ALL, 1, &(struct ips_logs){NULL, 0}), ST_OK);
	sample_close(&s);
}

static const void *save_state(void *user, struct ips_trainer *trainer, size_t *bytes)
{
	(void)trainer;
	*bytes = sizeof(double);
	return user;
}

static int restore_state(void *user, struct ips_trainer *trainer, const void *state, size_t bytes)
{
	(void)trainer;
	if (bytes != sizeof(double))
		return 1;
	memcpy(user, state, bytes);
	return *(double *)user < 0.0; /* refused */
}

/* Two callbacks of a program, of which one keeps something, before and after. */
static enum status keep_own(double before, double *after, struct err *err)
{
	static const char path[] = "test_callback.backup";
	struct ips_callback own = {
		.size = sizeof(own), .save = save_state, .restore = restore_state};
	struct ips_callback plain = {.size = sizeof(plain)};
	struct snapshot *snapshot;
	struct sample s;
	enum status status;
	size_t length;
	char *bytes;

	for (int part = 0; part < 2; part++) {
		sample_open(&s, "[]");
		own.user = part == 0 ? &before : after;
		assert_int_equal(callbacks_add(&s.callbacks, &plain, NULL, NULL), ST_OK);
		assert_int_equal(callbacks_add(&s.callbacks, &own, NULL, NULL), ST_OK);
		assert_null(callback_snapshot_name(&s.callbacks.items[0]));
		assert_non_null(callback_snapshot_name(&s.callbacks.items[1]));
		if (part == 0) {
			assert_int_equal(snapshot_create(&snapshot, path, err), ST_OK);
		} else {
			assert_int_equal(fs_read(path, 4096, &bytes, &length, err), ST_OK);
			assert_int_equal(snapshot_parse(&snapshot, path, bytes, length, err),
					 ST_OK);
		}
		callbacks_snapshot(&s.callbacks, &s.host, snapshot);
		status = snapshot_close(snapshot);
		sample_close(&s);
	}
	mem_free(bytes);
	unlink(path);
	return status;
}

static void test_what_a_program_keeps_is_part_of_a_backup(void **state)
{
	double after = 0.0;
	struct err err;

	(void)state;
	assert_int_equal(keep_own(0.25, &after, &err), ST_OK);
	assert_true(after == 0.25);
	assert_int_equal(keep_own(-1.0, &after, &err), ST_INVALID);
	assert_contains(err.text, "a callback of the program refuses its state");
}

/* ---- the learning rate ----------------------------------------------------------------------- */

/* The rates of epochs with these losses. */
static void rates_of(const char *text, const double *losses, int count, double *rates)
{
	struct sample s;

	sample_open(&s, text);
	for (int i = 0; i < count; i++) {
		assert_int_equal(sample_epoch(&s, i + 1, losses[i], 0.0, NULL), ST_OK);
		rates[i] = s.rate;
	}
	sample_close(&s);
}

#define PLATEAU(options)                                                                           \
	"[{'class_name': 'ReduceLROnPlateau', 'config': {'monitor': 'loss', " options "}}]"

/* Keras's counting: the epoch that fills the patience reduces the rate for the next ones. */
static void test_a_plateau_reduces_the_rate(void **state)
{
	static const double losses[] = {5, 4, 4, 4, 4, 4, 3, NAN, 3, 3};
	static const struct {
		const char *text;
		double rates[10]; /* after each epoch */
	} rows[] = {
		{PLATEAU("'patience': 2"),
		 {0.1, 0.1, 0.1, 0.01, 0.01, 1e-3, 1e-3, 1e-3, 1e-4, 1e-4}},
		{PLATEAU("'patience': 2, 'factor': 0.5, 'cooldown': 2"),
		 {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.025, 0.025}},
		{PLATEAU("'patience': 1, 'min_lr': 0.02"),
		 {0.1, 0.1, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02}},
		{PLATEAU("'patience': 3, 'min_delta': 2"),
		 {0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 1e-3, 1e-3, 1e-3, 1e-4}},
		{PLATEAU("'patience': 1, 'mode': 'max'"),
		 {0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double rates[10];

		rates_of(rows[i].text, losses, 10, rates);
		for (int e = 0; e < 10; e++)
			if (fabs(rates[e] - rows[i].rates[e]) > 1e-9 * rates[e])
				fail_msg("%s: after epoch %d %g, not %g", rows[i].text, e + 1,
					 rates[e], rows[i].rates[e]);
	}
}

static void test_a_scheduler_sets_the_rate_by_its_table(void **state)
{
	static const double losses[4] = {0}, expected[] = {0.1, 0.5, 0.5, 0.25};
	double rates[4];

	(void)state;
	rates_of("[{'class_name': 'LearningRateScheduler', 'config': {'schedule': [[1, 0.5], [3, "
		 "0.25]]}}]",
		 losses, 4, rates);
	for (int e = 0; e < 4; e++)
		assert_close(rates[e], expected[e], 1e-12);
}

static void test_a_rate_that_is_a_schedule_cannot_be_changed(void **state)
{
	struct sample s;
	struct err err = {0};

	(void)state;
	sample_open(&s, "[{'class_name': 'LearningRateScheduler', 'config': {'schedule': []}}]");
	assert_true(callbacks_move_rate(&s.callbacks));
	s.rate = NAN;
	assert_int_equal(sample_call(&s, CALLBACK_TRAIN_BEGIN, &err), ST_INVALID);
	assert_contains(err.text, "the optimizer's is a schedule");
	sample_close(&s);
}

static void test_a_loss_that_is_no_number_ends_training(void **state)
{
	static const double losses[] = {1.0, NAN, INFINITY};

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct ips_log item = {"loss", losses[i]};
		const struct ips_logs logs = {&item, 1};
		struct sample s;

		sample_open(&s, "[{'class_name': 'TerminateOnNaN'}]");
		assert_int_equal(sample_batch(&s, CALLBACK_ALL, 7, &logs), ST_OK);
		assert_int_equal(s.stops, i > 0);
		if (i > 0)
			assert_string_equal(s.last, "Batch 7: Invalid loss, terminating training");
		sample_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plateau_reduces_the_rate),
		cmocka_unit_test(test_a_scheduler_sets_the_rate_by_its_table),
		cmocka_unit_test(test_a_rate_that_is_a_schedule_cannot_be_changed),
		cmocka_unit_test(test_a_loss_that_is_no_number_ends_training),
		cmocka_unit_test(test_early_stopping_waits_for_its_patience),
		cmocka_unit_test(test_early_stopping_restores_the_best_weights),
		cmocka_unit_test(test_a_metric_that_is_not_there_is_told_once),
		cmocka_unit_test(test_the_csv_has_a_line_per_epoch),
		cmocka_unit_test(test_a_csv_that_cannot_be_written_is_an_error),
		cmocka_unit_test(test_an_outfeed_callback_names_its_queue),
		cmocka_unit_test(test_file_names_take_the_epoch_and_logs),
		cmocka_unit_test(test_bad_fields_are_refused),
		cmocka_unit_test(test_checkpoints_are_written_when_asked),
		cmocka_unit_test(test_checkpoints_count_batches_over_executions),
		cmocka_unit_test(test_bad_options_are_refused_with_their_place),
		cmocka_unit_test(test_a_program_built_earlier_knows_fewer_members),
		cmocka_unit_test(test_what_a_program_keeps_is_part_of_a_backup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
