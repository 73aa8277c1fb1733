/*
 * The report directory and the JSON files in it.
 *
 * Threading: no state; localtime_r() reads the process's time zone. Ownership: paths are copied.
 */
#include "trainer/auto/train_auto.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

#define MS_NS          1000000
#define S_NS           1000000000
#define REPORT_PREFIX  "tf_report__"
#define DIRECTORY_NEXT 1000 /* milliseconds tried before giving up on a free name */

/* ---- the directory --------------------------------------------------------------------------- */

static bool auto_name(char out[FS_PATH_SIZE], const char *parent, int64_t epoch_ns)
{
	time_t seconds = (time_t)(epoch_ns / S_NS);
	int ms = (int)(epoch_ns % S_NS / MS_NS);
	struct tm local;
	char stamp[64];

	if (!localtime_r(&seconds, &local) ||
	    !strftime(stamp, sizeof(stamp), "%Y-%m-%d__%H-%M-%S", &local))
		return false;
	return fs_path(out, "%s/" REPORT_PREFIX "%s.%03d__%ld", parent, stamp, ms, (long)getpid());
}

/* Return the length of the shortest leading part of @path that does not exist yet; 0: all
 * exists. */
static size_t auto_missing(const char *path)
{
	char part[FS_PATH_SIZE];

	str_copy(part, sizeof(part), path);
	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		part[i] = '\0';
		if (!fs_exists(part))
			return i;
		part[i] = path[i];
	}
	return 0;
}

/* Remove the folders that fs_make_dirs() created in @path beyond its first @from bytes, deepest
 * first, if they are empty. */
static void auto_remove(const char *path, size_t from)
{
	char part[FS_PATH_SIZE];

	str_copy(part, sizeof(part), path);
	for (size_t i = strlen(part); from && i >= from; i--) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		part[i] = '\0';
		if (rmdir(part))
			(void)0; /* never created, or in use by another process */
	}
}

/* Whether @name is that of a report directory whose process has ended. */
static bool auto_has_ended(const char *name)
{
	const char *last = strrchr(name, '_');
	char *end = NULL;
	const long pid = last ? strtol(last + 1, &end, 10) : 0;

	return str_starts_with(name, REPORT_PREFIX) && pid > 0 && *end == '\0' &&
	       kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Remove the directories of runs that were killed as they made their database. An empty one stays:
 * it may be that of a run which starts now, where process ids are others. */
static void auto_remove_killed(const char *parent)
{
	char directory[FS_PATH_SIZE], database[FS_PATH_SIZE];
	const struct dirent *entry;
	DIR *dir = opendir(parent);

	while (dir && (entry = readdir(dir)))
		if (auto_has_ended(entry->d_name) &&
		    fs_path(directory, "%s/%s", parent, entry->d_name) &&
		    fs_path(database, "%s/profile.db", directory) && !fs_exists(database) &&
		    fs_remove_stale(database) && rmdir(directory))
			(void)0; /* it has other files */
	if (dir)
		closedir(dir);
}

static enum status auto_make(const char *parent, char directory[FS_PATH_SIZE], struct err *err)
{
	int64_t now = clock_epoch_ns();

	for (int i = 0; i < DIRECTORY_NEXT; i++, now += MS_NS) {
		if (!auto_name(directory, parent, now))
			return err_set(err, ST_INVALID, "%s: the path is too long", parent);
		if (!mkdir(directory, 0777))
			return ST_OK;
		if (errno != EEXIST)
			break;
	}
	return err_set(err, ST_INVALID, "make the folder %s: %s", directory, strerror(errno));
}

enum status train_auto_directory(const struct train_options *options, char directory[FS_PATH_SIZE],
				 struct err *err)
{
	const char *parent = options->directory;
	size_t missing = auto_missing(parent);

	directory[0] = '\0';
	auto_remove_killed(parent);
	if (fs_make_dirs(parent, err) == ST_OK && auto_make(parent, directory, err) == ST_OK)
		return ST_OK;

	auto_remove(parent, missing);
	directory[0] = '\0';
	err_prefix(err, "autoReport.directory");
	if (err)
		err->status = ST_INVALID;
	return ST_INVALID;
}

enum status train_auto_check(const struct train_options *options, struct err *err)
{
	const size_t missing = auto_missing(options->directory);
	char directory[FS_PATH_SIZE];
	enum status status = train_auto_directory(options, directory, err);

	if (status == ST_OK && rmdir(directory) == 0)
		auto_remove(options->directory, missing);
	return status;
}

/* ---- framework.json -------------------------------------------------------------------------- */

/* Return the number that follows @key in /proc/cpuinfo; 0: unknown. */
static double auto_cpuinfo(const char *key)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[512];
	double value = 0;

	while (file && value <= 0 && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');

		if (colon && !strncmp(line, key, strlen(key)))
			value = strtod(colon + 1, NULL);
	}
	if (file)
		fclose(file);
	return value;
}

/* Return the nominal clock if the kernel reports it, else the current one. 0: unknown. */
static double auto_cpu_ghz(void)
{
	static const char *const files[] = {
		"/sys/devices/system/cpu/cpu0/cpufreq/base_frequency",
		"/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		FILE *file = fopen(files[i], "re");
		char line[64] = "";
		bool read = file && fgets(line, sizeof(line), file);
		double khz = read ? strtod(line, NULL) : 0;

		if (file)
			fclose(file);
		if (khz > 0)
			return khz / 1e6;
	}
	return auto_cpuinfo("cpu MHz") / 1e3;
}

enum status train_auto_write_framework(const char *directory, const char *cluster, struct err *err)
{
	struct utsname name = {0};
	struct str text = {0};
	char path[FS_PATH_SIZE], ghz[32];
	enum status status;
	struct jsonw w;

	if (!fs_path(path, "%s/framework.json", directory))
		return err_set(err, ST_INVALID, "%s: the path is too long", directory);
	if (uname(&name))
		(void)0; /* the values stay empty; the keys are written anyway */
	snprintf(ghz, sizeof(ghz), "%.2f", auto_cpu_ghz());
	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	jsonw_key(&w, "TensorFlow");
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "Version", "ipuscope " IPUSCOPE_VERSION);
	jsonw_key_text(&w, "Githash", "unknown");
	jsonw_key_text(&w, "Cluster", cluster);
	jsonw_end_object(&w);
	jsonw_key(&w, "System Information");
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "Operating system", name.sysname);
	jsonw_key_text(&w, "Operating system version", name.release);
	jsonw_key_text(&w, "Machine", name.machine);
	jsonw_key_text(&w, "Nominal CPU frequency [GHz]", ghz);
	jsonw_key_int(&w, "Number of total cpus", sysconf(_SC_NPROCESSORS_ONLN));
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	status = jsonw_end(&w, err);
	if (status == ST_OK)
		status = fs_write(path, text.text, text.length, err);
	str_free(&text);
	return status;
}

enum status train_auto_write_app(const char *directory, const char *run_json, struct err *err)
{
	char path[FS_PATH_SIZE];
	struct str text = {0};
	struct jsonw w;
	enum status status;

	if (!fs_path(path, "%s/app.json", directory))
		return err_set(err, ST_INVALID, "%s: the path is too long", directory);
	jsonw_init_str(&w, &text, 0);
	jsonw_value(&w, run_json);
	status = text.failed ? err_nomem(err) : fs_write(path, str_peek(&text), text.length, err);
	str_free(&text);
	return status;
}
