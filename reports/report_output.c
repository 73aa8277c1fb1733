/*
 * See report_output.h.
 *
 * Threading: the signal handler may run on any thread and touches atomics only. Ownership: none.
 */
#include "reports/report_output.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "common/fs.h"
#include "common/mem.h"

enum status report_output_check_source(const char *path, const char *file, struct err *err)
{
	/* SQLite's side files while a database is being written, or after its writer was killed. */
	static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
	const char *inside = fs_is_dir(path) ? "/profile.db" : "";
	char own[FS_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (fs_path(own, "%s%s%s", path, inside, endings[i]) && fs_is_same(own, file))
			return err_set(err, ST_INVALID,
				       "%s: belongs to a report that is read; write another file",
				       file);
	return ST_OK;
}

enum status report_output_check_log(const char *file, struct err *err)
{
	static const char *const endings[] = {"-wal", "-journal"};
	char log[FS_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (fs_path(log, "%s%s", file, endings[i]) && fs_exists(log))
			return err_set(err, ST_INVALID,
				       "%s: belongs to a recording that is not finished "
				       "(`ipu-report %s repair` first, or another FILE)",
				       log, file);
	return ST_OK;
}

enum status report_output_check(const char *file, bool force, struct err *err)
{
	struct stat info;

	if (!force && fs_exists(file))
		return err_set(err, ST_INVALID, "%s: is there already (--force replaces it)", file);
	if (stat(file, &info) == 0 && !S_ISREG(info.st_mode))
		return err_set(err, ST_INVALID, "%s: is a device or pipe, not a file", file);
	return report_output_check_log(file, err);
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

#define SAME_NS 333000000 /* signals of one process within it count as one */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[ARRAY_LEN(signals)];

static volatile sig_atomic_t asked;
static int64_t asked_ns;
static pid_t asked_pid; /* 0: the terminal */

static void on_signal(int number, siginfo_t *info, void *context)
{
	const pid_t pid = info->si_code == SI_USER ? info->si_pid : 0;
	struct timespec now;
	int64_t ns;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (!asked) {
		asked = 1;
		__atomic_store_n(&asked_ns, ns, __ATOMIC_RELAXED);
		__atomic_store_n(&asked_pid, pid, __ATOMIC_RELAXED);
	} else if (pid == 0 || pid != __atomic_load_n(&asked_pid, __ATOMIC_RELAXED) ||
		   ns - __atomic_load_n(&asked_ns, __ATOMIC_RELAXED) > SAME_NS) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

void report_interrupt_install(void)
{
	/* Without SA_RESTART, so that a blocking read from a pipe returns. */
	const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	asked = 0;
	/* Keep SIGHUP ignored under nohup(1). */
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (sigaction(signals[i], NULL, &before[i]) == 0 &&
		    (signals[i] != SIGHUP || before[i].sa_handler != SIG_IGN))
			sigaction(signals[i], &action, NULL);
}

void report_interrupt_remove(void)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &before[i], NULL);
}

bool report_interrupted(void)
{
	return asked != 0;
}
