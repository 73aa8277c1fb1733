/*
 * Work in a child process: what it hands over, how it fails, and what its crash leaves.
 */
#include "common/apart.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/mem.h"
#include "support/support.h"

#define TIMES 100000

static const struct apart request = {
	.name = "here", .status = ST_FORMAT, .crash = "is damaged", .memory = 64 << 20};
static int changed;

static enum status put_text(void *user, struct apart_out *out, struct err *err)
{
	changed++;
	return apart_put(out, user, strlen(user), err);
}

/* Far more than a pipe holds. */
static enum status put_much(void *user, struct apart_out *out, struct err *err)
{
	for (int i = 0; i < TIMES && !err_stuck(err); i++)
		put_text(user, out, err);
	return err->status;
}

static enum status fail_late(void *user, struct apart_out *out, struct err *err)
{
	put_text(user, out, err);
	return err_set(err, ST_LIMIT, "there: no more");
}

static enum status crash(void *user, struct apart_out *out, struct err *err)
{
	put_text(user, out, err);
	raise(SIGSEGV);
	return ST_OK;
}

/* As exit() in a library, or a handler of signals: with every code that may mean something. */
static enum status end_well(void *user, struct apart_out *out, struct err *err)
{
	put_text(user, out, err);
	_exit(0);
}

static enum status end_badly(void *user, struct apart_out *out, struct err *err)
{
	put_text(user, out, err);
	_exit(1);
}

static enum status forget_memory(void *user, struct apart_out *out, struct err *err)
{
	put_text(user, out, err);
	return err_nomem(err);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Three quarters of what it may. */
static enum status take_some_memory(void *user, struct apart_out *out, struct err *err)
{
	char *volatile some = mem_alloc((size_t)48 << 20);

	if (!some)
		return err_nomem(err);
	mem_free(some);
	return put_text(user, out, err);
}
#endif

static enum status take_memory(void *user, struct apart_out *out, struct err *err)
{
	char *volatile much = mem_alloc((size_t)256 << 20);

	(void)user;
	(void)out;
	if (!much)
		return err_nomem(err);
	mem_free(much);
	return ST_OK;
}

static void assert_handed_over(char *text)
{
	size_t length;
	struct err err;
	char *bytes;

	assert_int_equal(apart_call(put_text, text, &request, &bytes, &length, &err), ST_OK);
	assert_int_equal(length, strlen(text));
	assert_string_equal(bytes, text);
	mem_free(bytes);
}

static void test_what_is_put_is_handed_over(void **state)
{
	char text[] = "a text that a child has put", none[] = "", *bytes;
	size_t length;

	(void)state;
	assert_handed_over(text);
	assert_handed_over(none);
	assert_int_equal(changed, 0);
	assert_int_equal(apart_call(put_much, text, &request, &bytes, &length, NULL), ST_OK);
	assert_int_equal(length, TIMES * strlen(text));
	for (int i = 0; i < TIMES; i++)
		assert_memory_equal(bytes + (size_t)i * strlen(text), text, strlen(text));
	mem_free(bytes);
}

static void test_failures_and_crashes_are_told(void **state)
{
	static const struct {
		apart_work work;
		enum status status;
		const char *text;
	} cases[] = {
		{fail_late, ST_LIMIT, "there: no more"},
		{end_well, ST_FORMAT, "here: is damaged"},
		{end_badly, ST_FORMAT, "here: is damaged"},
		{forget_memory, ST_FORMAT, "here: is damaged"},
		{crash, ST_FORMAT, "here: is damaged"},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		{take_memory, ST_FORMAT, "here: is damaged"},
#endif
	};
	char text[4096];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *bytes = text;
		size_t length = 1;
		struct err err;

		assert_int_equal(apart_call(cases[i].work, text, &request, &bytes, &length, &err),
				 cases[i].status);
		assert_string_equal(err.text, cases[i].text);
		assert_null(bytes);
		assert_int_equal(length, 0);
	}
}

static void test_memory_below_the_limit_is_there(void **state)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* However much this process has. */
	char *volatile much = mem_alloc((size_t)256 << 20);
	char text[] = "text", *bytes;
	size_t length;

	assert_non_null(much);
	assert_int_equal(apart_call(take_some_memory, text, &request, &bytes, &length, NULL),
			 ST_OK);
	assert_string_equal(bytes, "text");
	mem_free(bytes);
	mem_free(much);
#endif
	(void)state;
}

/* Memory that ends without a limit of its own is no damage. */
static void test_without_a_limit_memory_ends(void **state)
{
	const struct apart unlimited = {.name = "here", .status = ST_FORMAT, .crash = "is damaged"};
	char text[] = "text", *bytes;
	size_t length;

	(void)state;
	assert_int_equal(apart_call(forget_memory, text, &unlimited, &bytes, &length, NULL),
			 ST_NOMEM);
	assert_int_equal(apart_call(take_memory, text, &unlimited, &bytes, &length, NULL), ST_OK);
	mem_free(bytes);
}

/* An allocation that fails alone is no damage, whatever a library makes of it. */
static enum status fail_once(void *user, struct apart_out *out, struct err *err)
{
	int *calls = user;

	apart_put(out, "text", 4, err);
	return (*calls)++ ? ST_OK : err_set(err, ST_FORMAT, "here: no such name");
}

static enum status crash_once(void *user, struct apart_out *out, struct err *err)
{
	int *calls = user;

	apart_put(out, "text", 4, err);
	if ((*calls)++ == 0)
		raise(SIGSEGV);
	return ST_OK;
}

/* As the system kills what takes too much. */
static enum status be_killed(void *user, struct apart_out *out, struct err *err)
{
	int *calls = user;

	(void)out;
	++*calls;
	raise(SIGKILL);
	return err->status;
}

static void test_what_fails_once_is_done(void **state)
{
	int *calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	static const apart_work works[] = {fail_once, crash_once};
	size_t length;
	char *bytes;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(works); i++) {
		*calls = 0;
		assert_int_equal(apart_call(works[i], calls, &request, &bytes, &length, NULL),
				 ST_OK);
		assert_string_equal(bytes, "text");
		assert_int_equal(length, 4);
		assert_int_equal(*calls, 2);
		mem_free(bytes);
	}
	*calls = 0;
	assert_int_equal(apart_call(be_killed, calls, &request, &bytes, &length, NULL), ST_FORMAT);
	assert_int_equal(*calls, 1);
	munmap(calls, sizeof(*calls));
}

/* With less memory than the work may take, a crash is not told from its end. */
static void test_a_crash_without_memory(void **state)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	struct apart large = request;
	struct rlimit before, few;
	char text[] = "text", *bytes;
	size_t length;
	struct err err;

	large.memory = (size_t)1 << 40;
	getrlimit(RLIMIT_AS, &before);
	few = (struct rlimit){(rlim_t)1 << 40, before.rlim_max};
	setrlimit(RLIMIT_AS, &few);
	assert_int_equal(apart_call(crash, text, &large, &bytes, &length, &err), ST_NOMEM);
	assert_string_equal(err.text, "here: is damaged");
	assert_int_equal(apart_call(crash, text, &request, &bytes, &length, &err), ST_FORMAT);
	setrlimit(RLIMIT_AS, &before);
#endif
	(void)state;
}

/* At whichever growth memory ends, the child that still puts is not waited for. */
static void test_no_memory_for_what_is_handed_over(void **state)
{
	char text[] = "a text that a child has put", *bytes;
	enum status status = ST_NOMEM;
	size_t length;

	(void)state;
	for (long n = 0; status != ST_OK; n++) {
		support_fail_alloc(n);
		status = apart_call(put_much, text, &request, &bytes, &length, NULL);
		support_fail_alloc(-1);
		assert_true(status == ST_OK ? n > 1 : status == ST_NOMEM && !bytes);
	}
	mem_free(bytes);
}

/* Files that may not grow, no standard error, children that nobody waits for, blocked signals. */
static void test_whatever_the_process_is_started_with(void **state)
{
	const int error = dup(STDERR_FILENO);
	struct rlimit before, none;
	char text[] = "a text that a child has put", *bytes;
	sigset_t all, mask;
	size_t length;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	none = (struct rlimit){0, before.rlim_max};
	setrlimit(RLIMIT_FSIZE, &none);
	assert_handed_over(text);
	assert_int_not_equal(apart_call(fail_late, text, &request, &bytes, &length, NULL), ST_OK);
	setrlimit(RLIMIT_FSIZE, &before);

	close(STDERR_FILENO);
	assert_handed_over(text);
	dup2(error, STDERR_FILENO);
	close(error);

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	signal(SIGCHLD, SIG_IGN);
	assert_handed_over(text);
	assert_int_equal(apart_call(crash, text, &request, &bytes, &length, NULL), ST_FORMAT);
	signal(SIGCHLD, SIG_DFL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void test_no_descriptor_is_left(void **state)
{
	char text[] = "text", *bytes;
	const int next = dup(0);
	size_t length;

	(void)state;
	close(next);
	assert_handed_over(text);
	assert_int_not_equal(apart_call(crash, text, &request, &bytes, &length, NULL), ST_OK);
	assert_int_equal(dup(0), next);
	close(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_put_is_handed_over),
		cmocka_unit_test(test_failures_and_crashes_are_told),
		cmocka_unit_test(test_memory_below_the_limit_is_there),
		cmocka_unit_test(test_without_a_limit_memory_ends),
		cmocka_unit_test(test_what_fails_once_is_done),
		cmocka_unit_test(test_a_crash_without_memory),
		cmocka_unit_test(test_no_memory_for_what_is_handed_over),
		cmocka_unit_test(test_whatever_the_process_is_started_with),
		cmocka_unit_test(test_no_descriptor_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
