/*
 * The files beside profile.db: the list of them, and their places.
 *
 * Threading: none. Ownership: a database is open for one call.
 */
#include "popvision/popvision.h"

#include <string.h>

#include "common/fs.h"
#include "common/mem.h"

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

static enum status write_wanted(const char *directory, const struct popvision_files *wanted,
				bool compiled, struct err *err)
{
	enum status status = ST_OK;
	struct ips_report *report = NULL;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[FS_PATH_SIZE];
		struct err own = {0};
		enum status one = ST_OK;
		bool wanted_now;

		memcpy(&wanted_now, (const char *)wanted + files[i].wanted, sizeof(wanted_now));
		if (!wanted_now || files[i].compiled != compiled)
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
