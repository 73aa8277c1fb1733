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

#include "common/fs.h"
#include "common/mem.h"
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

static enum status csv_fail(const struct csv_logger *csv, struct err *err)
{
	const bool nowhere = errno == ENOENT || errno == ENOTDIR;

	return err_set(err, nowhere ? ST_NOTFOUND : ST_IO, "CSVLogger: %s: %s", csv->path,
		       strerror(errno));
}

static enum status csv_begin(struct callback *callback, const struct callback_host *host,
			     struct err *err)
{
	struct csv_logger *csv = callback->state;

	csv->file = fopen(csv->path, csv->append || host->resumed ? "a" : "w");
	if (!csv->file || fseek(csv->file, 0, SEEK_END) != 0)
		return csv_fail(csv, err);
	csv->headed = csv->append && ftell(csv->file) > 0;
	return ST_OK;
}

static enum status csv_epoch(struct callback *callback, const struct callback_host *host,
			     int64_t epoch, const struct ips_logs *logs, struct err *err)
{
	struct csv_logger *csv = callback->state;

	(void)host;
	if (!csv->headed) {
		fputs("epoch", csv->file);
		for (int i = 0; i < logs->count; i++)
			fprintf(csv->file, "%s%s", csv->separator, logs->items[i].name);
		fputc('\n', csv->file);
		csv->headed = true;
	}
	fprintf(csv->file, "%lld", (long long)epoch - 1);
	for (int i = 0; i < logs->count; i++) {
		const double value = logs->items[i].value;

		fputs(csv->separator, csv->file);
		if (isnan(value))
			fputs("nan", csv->file); /* never "-nan" */
		else
			fprintf(csv->file, "%.17g", value);
	}
	fputc('\n', csv->file);
	return fflush(csv->file) || ferror(csv->file) ? csv_fail(csv, err) : ST_OK;
}

static enum status csv_end(struct callback *callback, const struct callback_host *host,
			   struct err *err)
{
	struct csv_logger *csv = callback->state;
	int failed = csv->file ? fclose(csv->file) : 0;

	(void)host;
	csv->file = NULL;
	return failed ? csv_fail(csv, err) : ST_OK;
}

/* Truncate the file to its size at the backup: the epochs after it are trained and written
 * again. */
static void csv_keep(struct callback *callback, const struct callback_host *host,
		     struct snapshot *snapshot)
{
	struct csv_logger *csv = callback->state;
	struct err *err = snapshot_err(snapshot);
	int64_t bytes;

	(void)host;
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
	.train_begin = csv_begin,
	.epoch_end = csv_epoch,
	.train_end = csv_end,
	.keep = csv_keep,
	.fini = csv_fini,
};
