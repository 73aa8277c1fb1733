/*
 * The formats of `export`. Threading: none. Ownership: constant data.
 */
#include "reports/report_export.h"

#include <string.h>
#include <sys/stat.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

static const struct report_export export_table[] = {
	{"npz", "captured tensors, for numpy.load()", "captures.npz", report_export_npz},
};

const struct report_export *report_exports(int *count)
{
	*count = (int)ARRAY_LEN(export_table);
	return export_table;
}

static enum status export_find(const struct report_export **out, const char *name, struct err *err)
{
	const char *names[ARRAY_LEN(export_table)], *near;
	struct str all = {0};

	*out = NULL;
	for (size_t i = 0; i < ARRAY_LEN(export_table); i++) {
		names[i] = export_table[i].name;
		str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
		if (name != NULL && strcmp(names[i], name) == 0)
			*out = &export_table[i];
	}
	near = name == NULL ? NULL : str_nearest(name, names, ARRAY_LEN(names));
	if (*out == NULL && name == NULL)
		err_set(err, ST_INVALID, "export: no format given (%s)", str_peek(&all));
	else if (*out == NULL && near != NULL)
		err_set(err, ST_INVALID, "export: unknown format \"%s\" (did you mean \"%s\"?)",
			name, near);
	else if (*out == NULL)
		err_set(err, ST_INVALID, "export: unknown format \"%s\" (%s)", name,
			str_peek(&all));
	str_free(&all);
	return *out == NULL ? ST_INVALID : ST_OK;
}

enum status report_run_export(const struct report_entry *entry,
			      const struct report_request *request, struct err *err)
{
	const struct report_export *format;
	enum status status = export_find(&format, request->word, err);
	struct stat info;
	const char *path;

	(void)entry;
	if (status != ST_OK)
		return status;
	path = request->file == NULL ? format->file : request->file;
	if (!request->force && fs_exists(path))
		return err_set(err, ST_INVALID, "%s: is there already (--force replaces it)", path);
	/* Opening a pipe would wait for its reader. */
	if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
		return err_set(err, ST_INVALID, "%s: is a device or pipe, not a file", path);
	return format->run(request, path, err);
}
