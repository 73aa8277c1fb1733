/*
 * The files beside profile.db: the list of them, their places, and the head of each.
 *
 * Threading: none. Ownership: a database is open for one call.
 */
#include "popvision/popvision.h"

#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "popvision/popvision_internal.h"

/* Most tiles of a replica; a file with more is damaged, and gets no arrays by tile. */
#define TILES_MAX (1 << 24)

/* ---- files ----------------------------------------------------------------------------------- */

enum status popvision__file_open(struct popvision_file *file, const char *path, struct err *err)
{
	enum status status = fs_writer_open(&file->writer, path, err);

	if (status != ST_OK)
		return status;
	file->writer.remade = true; /* it can be regenerated from profile.db */
	status = fs_writer_stream(&file->writer, &file->stream, err);
	if (status != ST_OK)
		fs_writer_drop(&file->writer);
	return status;
}

enum status popvision__file_close(struct popvision_file *file, enum status status, struct err *err)
{
	const bool failed = ferror(file->stream) != 0;
	int number = 0;

	if (fclose(file->stream))
		number = errno;
	if (status == ST_OK && (failed || number != 0))
		status = err_set(err, number == ENOSPC ? ST_NOSPACE : ST_IO, "%s: cannot write: %s",
				 file->writer.path, number ? strerror(number) : status_text(ST_IO));
	if (status == ST_OK)
		return fs_writer_close(&file->writer, err);
	fs_writer_drop(&file->writer);
	return status;
}

/* ---- JSON files ------------------------------------------------------------------------------ */

static void write_head(struct popvision *pv)
{
	jsonw_key(&pv->w, "ipuscope");
	jsonw_begin_object(&pv->w);
	jsonw_key_text(&pv->w, "version", IPUSCOPE_VERSION);
	jsonw_key_bool(&pv->w, "simulated", true);
	jsonw_key_text(&pv->w, "model", ips_report_info(pv->report)->model);
	jsonw_end_object(&pv->w);
}

enum status popvision__write(struct ips_report *report, const char *path, int64_t replica,
			     void (*body)(struct popvision *pv), struct err *err)
{
	struct popvision pv = {.report = report, .replica = replica, .err = err};
	struct popvision_file file;
	enum status status = popvision__file_open(&file, path, err);

	if (status != ST_OK)
		return status;
	jsonw_init_file(&pv.w, file.stream, 0);
	pv.target = ips_report_target(report);
	if (pv.target->tiles_per_replica > 0 && pv.target->tiles_per_replica <= TILES_MAX)
		pv.tiles = pv.target->tiles_per_replica;
	jsonw_begin_object(&pv.w);
	write_head(&pv);
	body(&pv);
	popvision__check(&pv);
	jsonw_end_object(&pv.w);
	status = jsonw_end(&pv.w, pv.status == ST_OK ? err : NULL);
	if (pv.status == ST_OK && status != ST_OK)
		pv.status = err_prefix(err, "%s", path);
	return popvision__file_close(&file, pv.status, err);
}

/* ---- list of files --------------------------------------------------------------------------- */

static enum status write_graph(struct ips_report *report, const char *path, int64_t replica,
			       struct err *err)
{
	(void)replica;
	return popvision_graph(report, path, err);
}

static enum status write_debug(struct ips_report *report, const char *path, int64_t replica,
			       struct err *err)
{
	(void)replica;
	return popvision_debug(report, path, err);
}

static const struct {
	const char *name;
	size_t wanted; /* offset of the flag in struct popvision_files */
	bool compiled; /* available before the first execution */
	enum status (*write)(struct ips_report *report, const char *path, int64_t replica,
			     struct err *err);
} files[] = {
	{"graph.json", offsetof(struct popvision_files, graph), true, write_graph},
	{"debug.cbor", offsetof(struct popvision_files, debug), true, write_debug},
	{"execution.json", offsetof(struct popvision_files, execution), false, popvision_execution},
};

const char *popvision_file_name(size_t number)
{
	return number < ARRAY_LEN(files) ? files[number].name : NULL;
}

enum status popvision_file_write(size_t number, struct ips_report *report, const char *path,
				 int64_t replica, struct err *err)
{
	return files[number].write(report, path, replica, err);
}

static bool file_is_wanted(size_t i, const struct popvision_files *wanted, bool compiled)
{
	bool is;

	memcpy(&is, (const char *)wanted + files[i].wanted, sizeof(is));
	return is && files[i].compiled == compiled;
}

static enum status write_wanted(const char *directory, const struct popvision_files *wanted,
				bool compiled, struct err *err)
{
	enum status status = ST_OK;
	struct ips_report *report = NULL;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[FS_PATH_SIZE];
		struct err own = {0};
		enum status one = ST_OK;

		if (!file_is_wanted(i, wanted, compiled))
			continue;
		if (!report)
			one = report_public_open(&report, directory, &own);
		if (one == ST_OK && !fs_path(path, "%s/%s", directory, files[i].name))
			one = err_set(&own, ST_INVALID, "%s: the path is too long", directory);
		if (one == ST_OK)
			one = files[i].write(report, path, wanted->replica, &own);
		if (status == ST_OK && one != ST_OK)
			status = err_set(err, one, "%s", own.text);
	}
	ips_report_close(report);
	return status;
}

enum status popvision_compiled(const char *directory, const struct popvision_files *wanted,
			       struct err *err)
{
	return write_wanted(directory, wanted, true, err);
}

enum status popvision_executed(const char *directory, const struct popvision_files *wanted,
			       struct err *err)
{
	return write_wanted(directory, wanted, false, err);
}
