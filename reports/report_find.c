/*
 * Find report directories. Threading: none. Ownership: paths are copied.
 */
#include "reports/report_find.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cli.h"
#include "common/str.h"
#include "profiler/ipuscope/profiler.h"
#include "reports/import/report_import.h"

#define PREFIX "tf_report__"

/* Modification time of the database in @path; false if it has none. */
static bool database_time(const char *path, int64_t *ns)
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
	int64_t newest = IPS_NULL;

	out[0] = '\0';
	while (dir && (entry = readdir(dir))) {
		char path[FS_PATH_SIZE];
		int64_t ns;

		if (!str_starts_with(entry->d_name, PREFIX) ||
		    !fs_path(path, "%s/%s", directory, entry->d_name) || !database_time(path, &ns))
			continue;
		/* Names contain the start time: they break ties between equal modification
		 * times. */
		if (ns > newest || (ns == newest && strcmp(path, out) > 0)) {
			newest = ns;
			str_copy(out, FS_PATH_SIZE, path);
		}
	}
	if (dir)
		closedir(dir);
	return out[0] != '\0';
}

enum status report_find_suggest(const char *directory, const char *command, const char *what,
				struct err *err)
{
	char newest[FS_PATH_SIZE];

	if (report_find_newest(directory, newest))
		return err_set(err, ST_INVALID, "%s; the newest here: %s %s", what, command,
			       newest);
	return err_set(err, ST_NOTFOUND,
		       "%s, and no tf_report__... here to choose from (--help says more)", what);
}

enum status report_find_default(const char *command, FILE *notes, char out[FS_PATH_SIZE],
				struct err *err)
{
	if (!report_find_newest(".", out))
		return report_find_suggest(".", command, "no report given", err);
	cli_print(notes, "%s: the newest report here: %s\n", command, out);
	return ST_OK;
}

/* Return true if @word is named like a report directory and has a database; @ns: its modification
 * time. */
static bool parse_report_word(const char *word, int64_t *ns)
{
	const char *slash = strrchr(word, '/');

	/* Shell completion appends a slash to a folder's name. */
	while (slash && !slash[1] && slash > word)
		slash = memrchr(word, '/', (size_t)(slash - word));
	return str_starts_with(slash ? slash + 1 : word, PREFIX) && database_time(word, ns);
}

void report_find_choose(int *argc, char **argv, int most, const char *command, FILE *notes)
{
	int count = 0, newest = 0, left = 1;
	int64_t ns, newest_ns = IPS_NULL;

	for (int i = 1; i < *argc; i++) {
		if (!parse_report_word(argv[i], &ns))
			continue;
		count++;
		if (ns > newest_ns || (ns == newest_ns && strcmp(argv[i], argv[newest]) > 0)) {
			newest = i;
			newest_ns = ns;
		}
	}
	if (count <= most)
		return;
	cli_print(notes, "%s: the newest of %d reports: %s\n", command, count, argv[newest]);
	for (int i = 1; i < *argc; i++)
		if (i == newest || !parse_report_word(argv[i], &ns))
			argv[left++] = argv[i];
	*argc = left;
	argv[left] = NULL;
}

enum status report_find_recording(const char **path, const char *command, struct err *err)
{
	char what[FS_PATH_SIZE + 32];
	struct stat info;

	/* What cannot be looked at for another reason is told when it is opened. */
	if (stat(*path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return report_import_cached(path, command, err);
	snprintf(what, sizeof(what), "%s: no such file or folder", *path);
	return report_find_suggest(".", command, what, err);
}

enum status report_find_resolve(const char **path, const char *command, struct err *err)
{
	char database[FS_PATH_SIZE], newest[FS_PATH_SIZE];
	enum status status = report_find_recording(path, command, err);

	if (status != ST_OK || !fs_is_dir(*path))
		return status;
	if (fs_path(database, "%s/profile.db", *path) && fs_exists(database))
		return ST_OK;
	if (report_find_newest(*path, newest))
		return err_set(err, ST_INVALID, "%s: holds reports but is none; the newest: %s %s",
			       *path, command, newest);
	return err_set(err, ST_NOTFOUND, "%s: no profile.db in this folder", *path);
}

enum status report_find_report(const char **path, char newest[FS_PATH_SIZE], const char *command,
			       struct err *err)
{
	if (!*path) {
		enum status status = report_find_default(command, stderr, newest, err);

		if (status != ST_OK)
			return status;
		*path = newest;
	}
	return report_find_resolve(path, command, err);
}
