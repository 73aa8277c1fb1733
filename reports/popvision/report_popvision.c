/*
 * The files beside profile.db: which are written, where, and what stands at the head of each.
 *
 * Threading: none. Ownership: a database is open for one call.
 */
#include "reports/popvision/report_popvision.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/popvision/report_popvision_internal.h"

/* Tiles of a replica; a file that has more is damaged, and gets no arrays by tile. */
#define TILES_MAX (1 << 24)

/* --- a file ------------------------------------------------------------------------------------
 */

enum status report__pv_file_open(struct report_pv_file *file, const char *path, struct err *err)
{
	enum status status = fs_writer_open(&file->writer, path, err);

	if (status != ST_OK)
		return status;
	status = fs_writer_stream(&file->writer, &file->stream, err);
	if (status != ST_OK)
		fs_writer_drop(&file->writer);
	return status;
}

enum status report__pv_file_close(struct report_pv_file *file, enum status status, struct err *err)
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

/* --- a JSON file -------------------------------------------------------------------------------
 */

static void pv_head(struct report_pv *pv)
{
	jsonw_key(&pv->w, "ipuscope");
	jsonw_begin_object(&pv->w);
	jsonw_key_text(&pv->w, "version", IPUSCOPE_VERSION);
	jsonw_key_bool(&pv->w, "simulated", true);
	jsonw_key_text(&pv->w, "model", ips_report_info(pv->report)->model);
	jsonw_end_object(&pv->w);
}

enum status report__pv_write(struct ips_report *report, const char *path, int64_t replica,
			     void (*body)(struct report_pv *pv), struct err *err)
{
	struct report_pv pv = {.report = report, .replica = replica, .err = err};
	struct report_pv_file file;
	enum status status = report__pv_file_open(&file, path, err);

	if (status != ST_OK)
		return status;
	jsonw_init_file(&pv.w, file.stream, 0);
	pv.target = ips_report_target(report);
	if (pv.target->tiles_per_replica > 0 && pv.target->tiles_per_replica <= TILES_MAX)
		pv.tiles = pv.target->tiles_per_replica;
	jsonw_begin_object(&pv.w);
	pv_head(&pv);
	body(&pv);
	report__pv_check(&pv);
	jsonw_end_object(&pv.w);
	status = jsonw_end(&pv.w, pv.status == ST_OK ? err : NULL);
	if (pv.status == ST_OK && status != ST_OK)
		pv.status = err_prefix(err, "%s", path);
	return report__pv_file_close(&file, pv.status, err);
}

/* --- which files -------------------------------------------------------------------------------
 */

static enum status write_graph(struct ips_report *report, const char *path,
			       const struct report_options *options, struct err *err)
{
	(void)options;
	return report_popvision_graph(report, path, err);
}

static enum status write_execution(struct ips_report *report, const char *path,
				   const struct report_options *options, struct err *err)
{
	return report_popvision_execution(report, path, options->replica_to_profile, err);
}

static enum status write_debug(struct ips_report *report, const char *path,
			       const struct report_options *options, struct err *err)
{
	(void)options;
	return report_popvision_debug(report, path, err);
}

static const struct {
	const char *name;
	size_t wanted; /* offset of the option's field */
	bool compiled; /* known before the first execution */
	enum status (*write)(struct ips_report *report, const char *path,
			     const struct report_options *options, struct err *err);
} files[] = {
	{"graph.json", offsetof(struct report_options, graph_profile), true, write_graph},
	{"debug.cbor", offsetof(struct report_options, debug_info), true, write_debug},
	{"execution.json", offsetof(struct report_options, execution_profile), false,
	 write_execution},
};

static bool file_is_wanted(size_t i, const struct report_options *options, bool compiled)
{
	bool wanted;

	memcpy(&wanted, (const char *)options + files[i].wanted, sizeof(wanted));
	return wanted && files[i].compiled == compiled;
}

static enum status write_file(size_t i, struct ips_report *report, const char *directory,
			      const struct report_options *options, struct err *err)
{
	char path[FS_PATH_SIZE];

	if (!fs_path(path, "%s/%s", directory, files[i].name))
		return err_set(err, ST_INVALID, "%s: the path is too long", directory);
	return files[i].write(report, path, options, err);
}

static enum status write_wanted(const char *directory, const struct report_options *options,
				bool compiled, struct err *err)
{
	enum status status = ST_OK;
	struct ips_report *report = NULL;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct err own = {0};
		enum status one = ST_OK;

		if (!file_is_wanted(i, options, compiled))
			continue;
		if (!report)
			one = report_public_open(&report, directory, &own);
		if (one == ST_OK)
			one = write_file(i, report, directory, options, &own);
		if (status == ST_OK && one != ST_OK)
			status = err_set(err, one, "%s", own.text);
	}
	ips_report_close(report);
	return status;
}

enum status report_popvision_compiled(const char *directory, const struct report_options *options,
				      struct err *err)
{
	return write_wanted(directory, options, true, err);
}

enum status report_popvision_executed(const char *directory, const struct report_options *options,
				      struct err *err)
{
	return write_wanted(directory, options, false, err);
}

/* --- by hand -----------------------------------------------------------------------------------
 */

/* The replica that the run was asked for; options that cannot be read asked for none. */
static int64_t recorded_replica(struct ips_report *report)
{
	const char *text = ips_report_fact(report, "engine_options");
	struct report_options options;
	int64_t replica = REPORT_ALL_REPLICAS;

	if (report_options_parse(&options, text, NULL) == ST_OK) {
		replica = options.replica_to_profile;
		report_options_free(&options);
	}
	return replica;
}

/* What the files have nothing of, in lines. */
static enum status empty_notes(struct prof_db *db, const char **notes, struct err *err)
{
	static const char *const by_lack[] = {
		"",
		"no program was recorded: graph.json and debug.cbor have none\n",
		"no traced execution was recorded: execution.json has no steps\n",
		("no program was recorded: graph.json and debug.cbor have none\n"
		 "no traced execution was recorded: execution.json has no steps\n"),
	};
	int64_t lack;
	enum status status = prof_db_number(db,
					    "SELECT (NOT EXISTS (SELECT 1 FROM programs)) + "
					    "2 * (NOT EXISTS (SELECT 1 FROM device_steps))",
					    &lack, err);

	if (status == ST_OK)
		*notes = by_lack[lack & 3];
	return status;
}

static enum status write_all(struct ips_report *report, const struct report_export_request *request,
			     const char *path, struct err *err)
{
	const struct report_options options = {.replica_to_profile = recorded_replica(report)};
	const char *notes = "";
	enum status status = empty_notes(report_public_db(report), &notes, err);
	struct str what = {0};

	for (size_t i = 0; i < ARRAY_LEN(files) && status == ST_OK; i++) {
		status = write_file(i, report, path, &options, err);
		str_addf(&what, "%s%s", i > 0 ? ", " : "", files[i].name);
		if (status == ST_OK)
			status = report_export_tick(request, 0, 0, err);
	}
	if (status == ST_INTERRUPTED)
		err_set(err, status, "interrupted: %s has %s", path, str_peek(&what));
	else if (status == ST_OK)
		status = report_export_tell(request, path, str_peek(&what), notes, err);
	str_free(&what);
	return status;
}

enum status report_export_popvision(const struct report_export_request *request, const char *path,
				    struct err *err)
{
	struct ips_report *report;
	enum status status = report_public_open(&report, request->path, err);
	bool made = false;

	if (status != ST_OK)
		return status;
	if (!fs_is_dir(path)) {
		made = true;
		status = fs_make_dirs(path, err);
	}
	if (status == ST_OK)
		status = write_all(report, request, path, err);
	if (status != ST_OK && made)
		rmdir(path); /* stays where a file is in it */
	ips_report_close(report);
	return status;
}
