/*
 * `export npz`: captured tensors as NumPy arrays.
 *
 * Values are copied from the database to the file piece by piece: memory does not grow with them.
 * Threading: none. Ownership: the reader and the writer live for one export.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "common/cli.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/npz_writer.h"
#include "outfeed/outfeed_captures.h"
#include "reports/export/report_export.h"

#define STEPS_AT_ONCE 512

_Static_assert(OUTFEED_NDIM_MAX + 2 <= NPZ_WRITER_DIMS, "an npz_member has too few dimensions");

struct npz_export {
	const struct report_export_request *request;
	struct outfeed_captures *captures;
	struct npz_writer writer;
	int arrays;
	int64_t bytes;
};

static bool npz_selected(const struct npz_export *export, const struct outfeed_array *array)
{
	const char *pattern = export->request->keys;

	return !pattern || fnmatch(pattern, array->key, 0) == 0 ||
	       fnmatch(pattern, array->name, 0) == 0;
}

static enum status npz_write_data(void *user, const void *data, size_t bytes, struct err *err)
{
	struct npz_export *export = user;
	enum status status = report_export_tick(export->request, export->arrays, 0, err);

	return status == ST_OK ? npz_writer_data(&export->writer, data, bytes) : status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool npz_has_steps(const struct npz_export *export, int index, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		if (outfeed_captures_step(export->captures, index, i) != IPS_NULL)
			return true;
	return false;
}

/* Write NAME@step if any step is known; -1 stands for an unknown one. */
static enum status npz_write_steps(struct npz_export *export, int index, struct err *err)
{
	const struct outfeed_array *array = outfeed_captures_at(export->captures, index);
	const int64_t count = array->shape[0];
	struct npz_member member = {.type = DTYPE_INT64, .ndim = 1, .dim = {count}};
	enum status status;
	char *name;

	if (!npz_has_steps(export, index, count))
		return ST_OK;
	name = mem_printf("%s@step", array->name);
	if (!name)
		return err_nomem(err);
	member.name = name;
	status = npz_writer_begin(&export->writer, &member, 8 * (uint64_t)count);
	for (int64_t done = 0; done < count && status == ST_OK;) {
		uint8_t bytes[8 * STEPS_AT_ONCE];
		size_t part = 0;

		for (; part < STEPS_AT_ONCE && done < count; part++, done++) {
			int64_t step = outfeed_captures_step(export->captures, index, done);
			uint64_t bits = step == IPS_NULL ? UINT64_MAX : (uint64_t)step;

			for (size_t j = 0; j < 8; j++)
				bytes[8 * part + j] = (uint8_t)(bits >> 8 * j);
		}
		status = npz_writer_data(&export->writer, bytes, 8 * part);
	}
	if (status == ST_OK)
		status = npz_writer_end(&export->writer);
	mem_free(name);
	return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Check that there is an array to write. */
static enum status npz_check(const struct npz_export *export, struct err *err)
{
	const int count = outfeed_captures_count(export->captures);
	const struct report_export_request *request = export->request;

	for (int i = 0; i < count; i++)
		if (npz_selected(export, outfeed_captures_at(export->captures, i)))
			return ST_OK;
	if (count > 0)
		return err_set(err, ST_NOTFOUND,
			       "%s: no captured tensor is called \"%s\" (there are %d, such as %s)",
			       request->path, request->keys, count,
			       outfeed_captures_at(export->captures, 0)->name);
	if (outfeed_captures_incomplete(export->captures) > 0)
		return err_set(err, ST_NOTFOUND,
			       "%s: %lld captures, none of them whole (was the run killed?)",
			       request->path,
			       (long long)outfeed_captures_incomplete(export->captures));
	return err_set(err, ST_NOTFOUND,
		       "%s: no values were captured; run again with \"capture\": \"full\" in the "
		       "run file's \"outfeed\" (or --outfeed.capture full)",
		       request->path);
}

static enum status npz_write(struct npz_export *export, const char *path, struct err *err)
{
	const int count = outfeed_captures_count(export->captures);
	struct npz_writer *writer = &export->writer;

	if (npz_writer_open(writer, path, err) != ST_OK)
		return err->status;
	for (int i = 0; i < count && !err_stuck(err); i++) {
		const struct outfeed_array *array = outfeed_captures_at(export->captures, i);
		struct npz_member member = {
			.name = array->name, .type = array->dtype, .ndim = array->ndim};

		if (!npz_selected(export, array))
			continue;
		memcpy(member.dim, array->shape, (size_t)array->ndim * sizeof(member.dim[0]));
		if (npz_writer_begin(writer, &member, (uint64_t)array->bytes) == ST_OK &&
		    outfeed_captures_read(export->captures, i, npz_write_data, export, err) ==
			    ST_OK &&
		    npz_writer_end(writer) == ST_OK && export->request->steps)
			npz_write_steps(export, i, err);
		export->arrays++;
		export->bytes += array->bytes;
	}
	return npz_writer_close(writer, err->status);
}

static enum status npz_report_result(const struct npz_export *export, const char *path,
				     struct err *err)
{
	const int64_t incomplete = outfeed_captures_incomplete(export->captures);
	FILE *out = export->request->out;
	char bytes[FMT_SIZE];

	cli_print(out, "%s: %d array%s, %s\n", path, export->arrays, export->arrays == 1 ? "" : "s",
		  fmt_bytes(bytes, (uint64_t) export->bytes));
	for (int i = 0; i < outfeed_captures_count(export->captures); i++) {
		const struct outfeed_array *array = outfeed_captures_at(export->captures, i);

		if (array->uneven && npz_selected(export, array))
			cli_print(
				out,
				"%s: replicas were captured at different steps: in order of time, "
				"without an axis of replicas\n",
				array->name);
	}
	if (incomplete > 0)
		fprintf(out,
			"%lld capture%s left out: not whole (a run that was killed, or is "
			"still going on)\n",
			(long long)incomplete, incomplete == 1 ? "" : "s");
	if (fflush(out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}

enum status report_export_npz(const struct report_export_request *request, const char *path,
			      struct err *err)
{
	struct npz_export export = {.request = request};
	struct err own;

	err = err_start(err, &own);
	if (outfeed_captures_open(&export.captures, request->db, err) != ST_OK)
		return err->status;
	if (npz_check(&export, err) == ST_OK && npz_write(&export, path, err) == ST_OK)
		npz_report_result(&export, path, err);
	outfeed_captures_close(export.captures);
	return err->status;
}
