/*
 * CSVLogger: one line per epoch with the epoch's number (from 0, as in Keras) and its logs.
 *
 * A line is flushed before the next epoch begins.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/callbacks/callback.h"

struct csv_logger {
	const char *path, *separator;
	bool append, headed;
	FILE *file;
};

static const struct model_option csv_options[] = {
	{"filename", MODEL_TEXT, .offset = offsetof(struct csv_logger, path), .required = true},
	{"separator", MODEL_TEXT, .offset = offsetof(struct csv_logger, separator), .text = ","},
	{"append", MODEL_BOOL, .offset = offsetof(struct csv_logger, append)},
	{"name", .rule = MODEL_ANY},
};

static void csv_fail(const struct csv_logger *csv, struct err *err)
{
	const bool nowhere = errno == ENOENT || errno == ENOTDIR;

	err_set(err, nowhere ? ST_NOTFOUND : ST_IO, "CSVLogger: %s: %s", csv->path,
		strerror(errno));
}

static void csv_begin(struct callback *callback, const struct callback_event *event)
{
	struct csv_logger *csv = callback->state;

	csv->file = fopen(csv->path, csv->append || event->host->resumed ? "a" : "w");
	if (!csv->file || fseek(csv->file, 0, SEEK_END) != 0)
		csv_fail(csv, event->err);
	else
		csv->headed = csv->append && ftell(csv->file) > 0;
}

static void csv_epoch(struct callback *callback, const struct callback_event *event)
{
	struct csv_logger *csv = callback->state;
	const struct ips_logs *logs = event->logs;

	if (!csv->headed) {
		fputs("epoch", csv->file);
		for (int i = 0; i < logs->count; i++)
			fprintf(csv->file, "%s%s", csv->separator, logs->items[i].name);
		fputc('\n', csv->file);
		csv->headed = true;
	}
	fprintf(csv->file, "%lld", (long long)event->epoch - 1);
	for (int i = 0; i < logs->count; i++) {
		const double value = logs->items[i].value;

		fputs(csv->separator, csv->file);
		if (isnan(value))
			fputs("nan", csv->file); /* never "-nan" */
		else
			fprintf(csv->file, "%.17g", value);
	}
	fputc('\n', csv->file);
	if (fflush(csv->file) || ferror(csv->file))
		csv_fail(csv, event->err);
}

static void csv_end(struct callback *callback, const struct callback_event *event)
{
	struct csv_logger *csv = callback->state;

	if (csv->file && fclose(csv->file) != 0)
		csv_fail(csv, event->err);
	csv->file = NULL;
}

/* Truncate the file to its size at the backup: the epochs after it are trained and written
 * again. */
static void csv_snapshot(struct callback *callback, const struct callback_event *event)
{
	struct csv_logger *csv = callback->state;
	struct snapshot *snapshot = event->snapshot;
	struct err *err = event->err;
	int64_t bytes;

	if (err_stuck(err))
		return;
	bytes = fseeko(csv->file, 0, SEEK_END) == 0 ? (int64_t)ftello(csv->file) : -1;
	if (bytes < 0) {
		csv_fail(csv, err);
		return;
	}
	snapshot_integer(snapshot, "bytes", &bytes, 0,
			 snapshot_reads(snapshot) ? bytes : INT64_MAX);
	snapshot_flag(snapshot, "headed", &csv->headed);
	if (err_stuck(err) && snapshot_reads(snapshot))
		err_prefix(err, "CSVLogger: %s has lost lines", csv->path);
	else if (snapshot_reads(snapshot) && ftruncate(fileno(csv->file), bytes) != 0)
		csv_fail(csv, err);
}

static void csv_fini(struct callback *callback)
{
	const struct csv_logger *csv = callback->state;

	if (csv->file)
		fclose(csv->file);
}

const struct callback_ops callback_csv_logger = {
	.class_name = "CSVLogger",
	.writes = true,
	.size = sizeof(struct csv_logger),
	.options = MODEL_OPTIONS(csv_options),
	.on = {[CALLBACK_TRAIN_BEGIN] = csv_begin,
	       [CALLBACK_EPOCH_END] = csv_epoch,
	       [CALLBACK_TRAIN_END] = csv_end,
	       [CALLBACK_SNAPSHOT] = csv_snapshot},
	.fini = csv_fini,
};
