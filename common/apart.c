/*
 * Work in a child process. Its result comes through a pipe, which no limit on files concerns; how
 * it ended, and why, is in memory that both processes share.
 */
#include "common/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"

#define APART_WAIT_S 60                 /* in addition to twice the processor time */
#define APART_PROBE  ((size_t)1 << 20)  /* bytes that are there unless memory has ended */
#define APART_PIECE  ((size_t)64 << 10) /* read at once: what a pipe holds */

enum apart_state {
	APART_CRASHED, /* until it has ended otherwise */
	APART_DONE,
	APART_FAILED /* with an err */
};

struct apart_shared {
	_Atomic enum apart_state state;
	struct err err;
};

struct apart_out {
	int fd;
	const char *name;
};

enum status apart_put(struct apart_out *out, const void *bytes, size_t length, struct err *err)
{
	const char *at = bytes;

	while (length > 0) {
		const ssize_t done = write(out->fd, at, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_set(err, ST_IO, "%s: not handed over: %s", out->name,
				       strerror(errno));
		at += done;
		length -= (size_t)done;
	}
	return ST_OK;
}

/* ---- the child ------------------------------------------------------------------------------- */

/* Limit the address space to @bytes more than what is in use; 0: no limit. Return the limit before.
 * Not under sanitizers, which reserve most of it. */
static struct rlimit limit_memory(size_t bytes)
{
	struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_AS, &before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	struct rlimit space = before;
	unsigned long pages = 0;
	FILE *file = bytes ? fopen("/proc/self/statm", "re") : NULL;

	if (!file)
		return before;
	if (fscanf(file, "%lu", &pages) == 1) {
		space.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
		if (space.rlim_cur < before.rlim_cur)
			setrlimit(RLIMIT_AS, &space);
	}
	fclose(file);
#else
	(void)bytes;
#endif
	return before;
}

static bool is_memory_there(void)
{
	char *volatile some = mem_alloc(APART_PROBE);
	const bool there = some != NULL;

	mem_free(some);
	return there;
}

/* A crash ends the child without a word, and so does the end of this process. */
static void prepare_child(pid_t parent, int seconds)
{
	const struct rlimit time = {(rlim_t)seconds, (rlim_t)seconds}, none = {0, 0};
	static const int signals[] = {SIGALRM, SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL};
	const int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sigset_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (silence >= 0)
		dup2(silence, STDERR_FILENO);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		signal(signals[i], SIG_DFL);
		sigaddset(&set, signals[i]);
	}
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	setrlimit(RLIMIT_CPU, &time);
	/* Nor does a crash leave the memory of this process in a file, or with a handler. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	/* A child that is blocked on a lock uses no processor time. */
	alarm(2 * (unsigned)seconds + APART_WAIT_S);
}

static void run_child(apart_work work, void *user, const struct apart *request,
		      struct apart_out *out, struct apart_shared *shared)
{
	const struct rlimit before = limit_memory(request->memory);
	struct err err = {ST_OK, ""};

	if (work(user, out, &err) == ST_OK) {
		shared->state = APART_DONE;
		return;
	}
	/* The library takes an end of memory for damage. */
	setrlimit(RLIMIT_AS, &before);
	if (!is_memory_there())
		err_set(&err, ST_NOMEM, "%s: %s", request->name, status_text(ST_NOMEM));
	else if (err.status == ST_NOMEM && request->memory)
		return;
	shared->err = err;
	shared->state = APART_FAILED;
}

/* ---- this process ---------------------------------------------------------------------------- */

/* Open a pipe whose write end is not the standard error, which the child closes. */
static int open_pipe(int ends[2])
{
	int other, failed;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	if (ends[1] > STDERR_FILENO)
		return 0;
	other = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	failed = errno;
	close(ends[1]);
	ends[1] = other;
	if (other < 0)
		close(ends[0]);
	errno = failed;
	return other < 0 ? -1 : 0;
}

/* Read until the child has closed the pipe. */
static void read_all(int fd, const char *name, char **out, size_t *length, struct err *err)
{
	size_t room = 0;

	for (;;) {
		ssize_t got;

		if (mem_grow(out, &room, *length + APART_PIECE + 1, 1)) {
			err_nomem(err);
			return;
		}
		got = read(fd, *out + *length, APART_PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err_set(err, ST_IO, "%s: not handed over: %s", name, strerror(errno));
		if (got <= 0)
			break;
		*length += (size_t)got;
	}
	(*out)[*length] = '\0';
}

/* Whether this process may take so much address space. */
static bool is_space_there(size_t bytes)
{
	void *space = bytes ? mmap(NULL, bytes, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
			    : NULL;

	if (space == MAP_FAILED)
		return false;
	if (space)
		munmap(space, bytes);
	return true;
}

/* How the call of a child ended. */
enum apart_end {
	APART_END_OURS,  /* done, or this process failed */
	APART_END_CHILD, /* the child failed or crashed */
	APART_END_KILLED /* the child was stopped: after minutes, or by the system */
};

static enum apart_end call_once(apart_work work, void *user, const struct apart *request,
				struct apart_shared *shared, char **out, size_t *length,
				struct err *err)
{
	const char *name = request->name;
	const pid_t parent = getpid();
	int ends[2], how = 0;
	pid_t child, waited;

	shared->state = APART_CRASHED;
	if (open_pipe(ends) != 0) {
		err_set(err, ST_FAILED, "%s: no pipe: %s", name, strerror(errno));
		return APART_END_OURS;
	}
	child = fork();
	if (child < 0)
		err_set(err, ST_FAILED, "%s: no child process: %s", name, strerror(errno));
	if (child == 0) {
		/* Where this process gives up reading, the child shall not go on. */
		close(ends[0]);
		prepare_child(parent, request->seconds ? request->seconds : APART_SECONDS);
		run_child(work, user, request, &(struct apart_out){ends[1], name}, shared);
		_exit(0);
	}
	close(ends[1]);
	if (child > 0)
		read_all(ends[0], name, out, length, err);
	/* A child that still writes gets an error; one that nobody may wait for has ended. */
	close(ends[0]);
	do
		waited = child > 0 ? waitpid(child, &how, 0) : -1;
	while (child > 0 && waited < 0 && errno == EINTR);
	if (err_stuck(err) || shared->state == APART_DONE)
		return APART_END_OURS;
	if (shared->state == APART_FAILED)
		*err = shared->err;
	else
		err_set(err, request->status, "%s: %s", name, request->crash);
	/* The limit of processor time ends in SIGKILL. Where nobody may wait for it, it is not known. */
	return waited < 0 || (WIFSIGNALED(how) &&
			      (WTERMSIG(how) == SIGKILL || WTERMSIG(how) == SIGALRM))
		       ? APART_END_KILLED
		       : APART_END_CHILD;
}

/* A library takes an allocation that fails for damage. Damage fails again, an allocation that
 * failed alone does not, and where the memory that the work may take is not there, nobody knows. */
enum status apart_call(apart_work work, void *user, const struct apart *request, char **out,
		       size_t *length, struct err *err)
{
	struct apart_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum apart_end end = APART_END_CHILD;
	struct err own;
	bool crashed;

	*out = NULL;
	*length = 0;
	err = err_start(err, &own);
	if (shared == MAP_FAILED)
		return err_nomem(err);
	for (int tries = 0; tries < 2 && end == APART_END_CHILD; tries++) {
		mem_free(*out);
		*out = NULL;
		*length = 0;
		end = call_once(work, user, request, shared, out, length, err_start(err, err));
	}
	crashed = shared->state == APART_CRASHED;
	munmap(shared, sizeof(*shared));
	if (end == APART_END_CHILD && err->status == request->status &&
	    !is_space_there(request->memory))
		err_set(err, ST_NOMEM, "%s%s", err->text, crashed ? "" : "; or memory ended");
	if (err_stuck(err)) {
		mem_free(*out);
		*out = NULL;
		*length = 0;
	}
	return err->status;
}
