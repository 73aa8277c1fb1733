/*
 * Announcing the run of this process.
 *
 * Threading: one thread an announcement; that a process has one at a time is an atomic flag.
 * Ownership: the announcement owns its folder's descriptor and its text, which is reused.
 */
#include "profiler/prof_announce.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "profiler/prof_process.h"
#include "profiler/prof_announce_internal.h"

#define PAUSE_NS   (250 * UINT64_C(1000000)) /* between two writings */
#define LOCK_LOOKS 20                        /* 5 ms apart: a lock that stays is not waited for */
#define MACHINE    16                        /* IPUs that runs are spread over, at least */

struct prof_announce {
	struct prof_announcement run;
	int folder;
	uint64_t written_ns;
	struct str text;
	char name[32], temporary[32];
};

static atomic_flag announced = ATOMIC_FLAG_INIT;

/* ---- places ---------------------------------------------------------------------------------- */

static int64_t power_of_two(int64_t least, int64_t number)
{
	while (least < number)
		least *= 2;
	return least;
}

int64_t prof_announce_machine(int64_t ipus)
{
	return power_of_two(4, ipus);
}

static int place_runs(const struct prof_announcements *others, int64_t first, int64_t end)
{
	int runs = 0;

	for (int i = 0; i < others->count; i++) {
		const struct prof_announcement *other = &others->items[i];

		runs += other->first_id < end && first < other->first_id + other->ipus;
	}
	return runs;
}

int64_t prof_announce_place(const struct prof_announcements *others, int64_t ipus)
{
	const int64_t block = power_of_two(1, ipus), machine = power_of_two(MACHINE, ipus);
	int64_t best = 0;
	int least = place_runs(others, 0, ipus);

	for (int64_t first = block; first < machine && least > 0; first += block) {
		const int runs = place_runs(others, first, first + ipus);

		if (runs < least) {
			least = runs;
			best = first;
		}
	}
	return best;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool announce_save(struct prof_announce *announce)
{
	const int fd = openat(announce->folder, announce->temporary,
			      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, announce->text.text, announce->text.length) ==
	       (ssize_t)announce->text.length;
	done = close(fd) == 0 && done;
	/* Not synced: it is of no use once the machine is down. */
	done = done && renameat(announce->folder, announce->temporary, announce->folder,
				announce->name) == 0;
	if (!done)
		unlinkat(announce->folder, announce->temporary, 0);
	return done;
}

static enum status announce_write(struct prof_announce *announce, struct err *err)
{
	announce->written_ns = clock_ns();
	str_clear(&announce->text);
	prof__announce_write(&announce->run, &announce->text);
	if (announce->text.failed)
		return err_nomem(err);
	if (!announce_save(announce))
		return err_set(err, ST_IO, "ipuscope/%s: cannot be written: %s", announce->name,
			       strerror(errno));
	return ST_OK;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void announce_user(char *out, size_t size)
{
	char room[1024];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(geteuid(), &entry, room, sizeof(room), &found) == 0 && found)
		str_copy(out, size, entry.pw_name);
	else
		snprintf(out, size, "%lu", (unsigned long)geteuid());
}

static void announce_describe(struct prof_announce *announce, const struct prof_announcement *run)
{
	const int64_t pid = getpid();

	announce->run = *run;
	announce->run.pid = pid;
	announce->run.process_start = prof_process_start(pid);
	announce->run.started_ms = clock_epoch_ns() / 1000000;
	announce_user(announce->run.user, sizeof(announce->run.user));
	snprintf(announce->name, sizeof(announce->name), "%lld.json", (long long)pid);
	snprintf(announce->temporary, sizeof(announce->temporary), "%lld.tmp", (long long)pid);
}

/* Two runs that begin at once would take the same IPUs: without the lock they may. */
static void announce_lock(int folder)
{
	const struct timespec pause = {.tv_nsec = 5000000};

	for (int i = 0; i < LOCK_LOOKS && flock(folder, LOCK_EX | LOCK_NB) != 0; i++)
		nanosleep(&pause, NULL);
}

static enum status announce_first(struct prof_announce *announce, struct err *err)
{
	struct prof_announcements others = {0};
	enum status status;

	announce_lock(announce->folder);
	status = prof__announce_list(&others, announce->folder, false, NULL, err);
	if (status == ST_OK) {
		announce->run.first_id = prof_announce_place(&others, announce->run.ipus);
		status = announce_write(announce, err);
	}
	flock(announce->folder, LOCK_UN);
	prof_announcements_free(&others);
	return status;
}

static void announce_free(struct prof_announce *announce)
{
	if (announce->folder >= 0)
		close(announce->folder);
	str_free(&announce->text);
	mem_free(announce);
	atomic_flag_clear(&announced);
}

enum status prof_announce_open(struct prof_announce **out, const struct prof_announcement *run,
			       struct err *err)
{
	struct prof_announce *announce;
	enum status status;

	*out = NULL;
	if (atomic_flag_test_and_set(&announced))
		return err_set(err, ST_NOTFOUND, "this process has announced another run");
	announce = mem_calloc(1, sizeof(*announce));
	if (!announce) {
		atomic_flag_clear(&announced);
		return err_nomem(err);
	}
	announce_describe(announce, run);
	status = prof__announce_folder(&announce->folder, true, err);
	if (status == ST_OK)
		status = announce_first(announce, err);
	if (status == ST_OK)
		*out = announce;
	else
		announce_free(announce);
	return status;
}

/* ---- going on, ending ------------------------------------------------------------------------ */

void prof_announce_progress(struct prof_announce *announce, const struct report_progress *progress)
{
	if (!announce || clock_ns() - announce->written_ns < PAUSE_NS)
		return;
	announce->run.progress = *progress;
	announce_write(announce, NULL);
}

void prof_announce_close(struct prof_announce *announce)
{
	if (!announce)
		return;
	unlinkat(announce->folder, announce->name, 0);
	announce_free(announce);
}
