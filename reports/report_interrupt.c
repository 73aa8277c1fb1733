/*
 * See report_verbs.h. Threading: the handler may run on any thread and touches atomics only.
 * Ownership: none.
 */
#include "reports/report_verbs.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "common/mem.h"

#define SAME_NS 333000000

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
