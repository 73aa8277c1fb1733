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

static void write_all(struct ips_report *report, const struct report_export_request *request,
		      const char *path, struct err *err)
{
	struct prof_db *db = report_public_db(report);
	int64_t replica, lack = 0; /* @lack: bits of the files without content */
	struct str notes = {0}, what = {0};
	const char *name;

	/* The replica that the run's options select; if they select none, all replicas. Options are
	 * stored as given: a number may be a text. */
	if (prof_db_number(db,
			   "SELECT CAST(json_extract(value, '$.\"profiler.replicaToProfile\"') AS "
			   "INTEGER) FROM meta WHERE key = 'engine_options' AND json_valid(value)",
			   &replica, NULL) != ST_OK ||
	    replica < 0)
		replica = POPVISION_ALL_REPLICAS;
	prof_db_number(db,
		       "SELECT (NOT EXISTS (SELECT 1 FROM programs)) + "
		       "2 * (NOT EXISTS (SELECT 1 FROM device_steps))",
		       &lack, err);
	if (lack & 1)
		str_add(&notes, "no program was recorded: graph.json and debug.cbor have none\n");
	if (lack & 2)
		str_add(&notes, "no traced execution was recorded: execution.json has no steps\n");
	for (size_t i = 0; (name = popvision_file_name(i)) && !err_stuck(err); i++) {
		char file[FS_PATH_SIZE];

		if (!fs_path(file, "%s/%s", path, name))
			err_set(err, ST_INVALID, "%s: the path is too long", path);
		else if (popvision_file_write(i, report, file, replica, err) == ST_OK)
			report_export_tick(request, 0, 0, err);
		str_addf(&what, "%s%s", i > 0 ? ", " : "", name);
	}
	if (err->status == ST_INTERRUPTED)
		err_set(err, ST_INTERRUPTED, "interrupted: %s has %s", path, str_peek(&what));
	report_export_print_result(request, path, &notes, err, "%s", str_peek(&what));
	str_free(&what);
}

enum status report_export_popvision(const struct report_export_request *request, const char *path,
				    struct err *err)
{
	const bool made = !fs_is_dir(path);
	struct ips_report *report;
	struct err own;

	err = err_start(err, &own);
	if (report_public_open(&report, request->path, err) != ST_OK)
		return err->status;
	if (!made || fs_make_dirs(path, err) == ST_OK)
		write_all(report, request, path, err);
	if (err_stuck(err) && made)
		rmdir(path); /* fails if a file is in it, which then stays */
	ips_report_close(report);
	return err->status;
}
