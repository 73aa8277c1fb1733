/*
 * Looking for report directories. Threading: none. Ownership: paths are copied.
 */
#include "reports/report_find.h"

#include <dirent.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "common/str.h"

#define PREFIX "tf_report__"

/* The time of the last change of the database in @path; false: there is none. */
static bool find_time(const char *path, int64_t *ns)
{
	char database[FS_PATH_SIZE];
	struct stat info;

	if (!fs_path(database, "%s/profile.db", path) || stat(database, &info))
		return false;
	*ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
	return true;
}

bool report_find_newest(const char *directory, char out[FS_PATH_SIZE])
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	int64_t newest = INT64_MIN;

	out[0] = '\0';
	while (dir && (entry = readdir(dir))) {
		char path[FS_PATH_SIZE];
		int64_t ns;

		if (!str_starts_with(entry->d_name, PREFIX) ||
		    !fs_path(path, "%s/%s", directory, entry->d_name) || !find_time(path, &ns))
			continue;
		/* Names carry the time of their start: they decide where files are equally old. */
		if (ns > newest || (ns == newest && strcmp(path, out) > 0)) {
			newest = ns;
			str_copy(out, FS_PATH_SIZE, path);
		}
	}
	if (dir)
		closedir(dir);
	return out[0] != '\0';
}
