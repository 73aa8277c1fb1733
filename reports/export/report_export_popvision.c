/*
 * `export popvision`: write the files that PopVision reads into a folder, from a recorded run.
 *
 * Threading: none. Ownership: a database is open for one call.
 */
#include <unistd.h>

#include "common/fs.h"
#include "common/str.h"
#include "popvision/popvision.h"
#include "reports/export/report_export.h"

/* The replica that the run's options select; if they select none, all replicas. */
static int64_t recorded_replica(struct ips_report *report)
{
	int64_t replica;

	/* Options are stored as given: a number may be a text. */
	if (prof_db_number(report_public_db(report),
			   "SELECT CAST(json_extract(value, '$.\"profiler.replicaToProfile\"') AS "
			   "INTEGER) FROM meta WHERE key = 'engine_options' AND json_valid(value)",
			   &replica, NULL) != ST_OK ||
	    replica < 0)
		replica = POPVISION_ALL_REPLICAS;
	return replica;
}

/* Notes on files without content, as lines. */
static enum status missing_notes(struct prof_db *db, const char **notes, struct err *err)
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
	const int64_t replica = recorded_replica(report);
	const char *notes = "";
	enum status status = missing_notes(report_public_db(report), &notes, err);
	struct str what = {0};
	const char *name;

	for (size_t i = 0; (name = popvision_file_name(i)) && status == ST_OK; i++) {
		char file[FS_PATH_SIZE];

		if (!fs_path(file, "%s/%s", path, name))
			status = err_set(err, ST_INVALID, "%s: the path is too long", path);
		if (status == ST_OK)
			status = popvision_file_write(i, report, file, replica, err);
		str_addf(&what, "%s%s", i > 0 ? ", " : "", name);
		if (status == ST_OK)
			status = report_export_tick(request, 0, 0, err);
	}
	if (status == ST_INTERRUPTED)
		err_set(err, status, "interrupted: %s has %s", path, str_peek(&what));
	else if (status == ST_OK)
		status = report_export_print_result(request, path, str_peek(&what), notes, err);
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
		rmdir(path); /* fails if a file is in it, which then stays */
	ips_report_close(report);
	return status;
}
