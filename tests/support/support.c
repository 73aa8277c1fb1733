/*
 * What tests of every room need. See support.h.
 */
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"

/* ---- comparing ------------------------------------------------------------------------------- */

bool support_is_close(double a, double b, double tol)
{
	double scale = fmax(fmax(fabs(a), fabs(b)), 1e-300);

	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	if (isinf(a) || isinf(b))
		return a == b;
	return fabs(a - b) <= tol * scale;
}

void support_assert_close(double a, double b, double tol, const char *a_text, const char *b_text,
			  const char *file, int line)
{
	if (support_is_close(a, b, tol))
		return;

	print_error("%s = %.17g is not close to %s = %.17g (tolerance %g)\n", a_text, a, b_text, b,
		    tol);
	_fail(file, line);
}

void support_assert_contains(const char *text, const char *part, const char *file, int line)
{
	if (text && strstr(text, part))
		return;

	print_error("\"%s\" is not in:\n%s\n", part, text ? text : "(NULL)");
	_fail(file, line);
}

static void support_must(bool good, const char *what)
{
	if (good)
		return;

	print_error("support: %s: %s\n", what, strerror(errno));
	fail();
}

/* ---- folders and files ----------------------------------------------------------------------- */

void support_tempdir(char out[SUPPORT_PATH_SIZE])
{
	const char *base = getenv("TMPDIR");

	snprintf(out, SUPPORT_PATH_SIZE, "%s/ipuscope-test-XXXXXX", base && *base ? base : "/tmp");
	support_must(mkdtemp(out) != NULL, "mkdtemp");
}

static int support_remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info;
	(void)type;
	(void)walk;
	return remove(path);
}

void support_tempdir_remove(const char *path)
{
	nftw(path, support_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *support_read_stream(FILE *file, size_t *length)
{
	size_t have = 0, capacity = 4096;
	char *text = malloc(capacity);

	support_must(text != NULL, "malloc");
	for (;;) {
		size_t got = fread(text + have, 1, capacity - have - 1, file);

		have += got;
		if (!got)
			break;
		if (capacity - have < 2) {
			capacity *= 2;
			text = realloc(text, capacity);
			support_must(text != NULL, "realloc");
		}
	}
	support_must(!ferror(file), "read");

	text[have] = '\0';
	if (length)
		*length = have;
	return text;
}

char *support_read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *text;

	support_must(file != NULL, path);
	text = support_read_stream(file, length);
	fclose(file);
	return text;
}

void support_write_file(const char *path, const void *data, size_t length)
{
	FILE *file = fopen(path, "wb");

	support_must(file != NULL, path);
	support_must(fwrite(data, 1, length, file) == length, path);
	support_must(fclose(file) == 0, path);
}

void support_check_golden(const char *name, void (*print)(FILE *out))
{
	char path[SUPPORT_PATH_SIZE], *golden, *text = NULL;
	size_t line = 1, at = 0, size = 0;
	FILE *out = open_memstream(&text, &size);

	support_must(out != NULL, name);
	print(out);
	support_must(fclose(out) == 0, name);
	snprintf(path, sizeof(path), "%s/tests/golden/%s", support_source_dir(), name);
	if (getenv("UPDATE_GOLDEN"))
		support_write_file(path, text, strlen(text));
	golden = support_read_file(path, NULL);
	while (text[at] && text[at] == golden[at])
		line += text[at++] == '\n';
	if (text[at] != golden[at])
		fail_msg("%s:%zu is no longer what comes out: %.200s", path, line, text + at);
	free(golden);
	free(text);
}

static char entered[SUPPORT_PATH_SIZE], left[SUPPORT_PATH_SIZE];

const char *support_enter(void)
{
	char *source = realpath(support_source_dir(), NULL);

	support_must(source != NULL, support_source_dir());
	setenv("IPUSCOPE_SOURCE_DIR", source, 1);
	free(source);
	support_must(getcwd(left, sizeof(left)) != NULL, "the current folder");
	support_tempdir(entered);
	support_must(chdir(entered) == 0, entered);
	return entered;
}

void support_leave(void)
{
	support_must(chdir(left) == 0, left);
	support_tempdir_remove(entered);
}

void support_catch(struct support_caught *caught, int to, int also)
{
	fflush(NULL);
	*caught = (struct support_caught){.file = tmpfile(), .to = {to, also}};
	support_must(caught->file != NULL, "a temporary file");
	for (int i = 0; i < 2 && caught->to[i] >= 0; i++) {
		caught->kept[i] = dup(caught->to[i]);
		support_must(caught->kept[i] >= 0, "dup()");
		support_must(dup2(fileno(caught->file), caught->to[i]) >= 0, "dup2()");
	}
}

char *support_give_back(struct support_caught *caught)
{
	char *text;

	fflush(NULL);
	for (int i = 0; i < 2 && caught->to[i] >= 0; i++) {
		support_must(dup2(caught->kept[i], caught->to[i]) >= 0, "dup2()");
		close(caught->kept[i]);
	}
	rewind(caught->file);
	text = support_read_stream(caught->file, NULL);
	fclose(caught->file);
	return text;
}

uint64_t support_digest(uint64_t digest, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		digest = (digest ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
	return digest;
}

uint64_t support_digest_text(uint64_t digest, const char *text, size_t length)
{
	if (getenv("IPUSCOPE_TEST_DIGESTED"))
		fwrite(text, 1, length, stderr);
	return support_digest(digest, text, length);
}

uint64_t support_digest_output(const char *text)
{
	uint64_t digest = SUPPORT_DIGEST;

	for (const char *version; (version = strstr(text, IPUSCOPE_VERSION));
	     text = version + strlen(IPUSCOPE_VERSION))
		digest = support_digest_text(digest, text, (size_t)(version - text));
	return support_digest_text(digest, text, strlen(text));
}

/* ---- failing allocations --------------------------------------------------------------------- */

static atomic_long alloc_left;  /* allocations until the one that fails; below 0: past it */
static atomic_bool alloc_alone; /* those of one thread: */
static _Thread_local bool alloc_mine;

static _Thread_local bool alloc_asked, alloc_here;

static bool support_alloc_fails(void)
{
	if (alloc_asked) {
		alloc_here = true;
		return false;
	}
	if (atomic_load(&alloc_alone) && !alloc_mine)
		return false;
	return atomic_fetch_sub(&alloc_left, 1) == 0;
}

static void *support_resize(void *old, size_t size)
{
	return support_alloc_fails() ? NULL : realloc(old, size);
}

static void *support_aligned(size_t alignment, size_t size)
{
	return support_alloc_fails() ? NULL : aligned_alloc(alignment, size);
}

/* Whether allocations come here: a test may have functions of its own. */
static bool support_is_asked(void)
{
	alloc_asked = true;
	alloc_here = false;
	mem_free(mem_alloc(1));
	alloc_asked = false;
	return alloc_here;
}

/* Threads may allocate while a test chooses which allocation fails, so the functions are replaced
 * before there are any. */
__attribute__((constructor)) static void support_count_allocations(void)
{
	static const struct mem_functions failing = {
		.resize = support_resize,
		.aligned = support_aligned,
		.release = free,
	};

	atomic_store(&alloc_left, -1);
	mem_set_functions(&failing);
}

void support_fail_alloc(long n)
{
	atomic_store(&alloc_alone, false);
	if (n >= 0 && !support_is_asked())
		support_count_allocations();
	atomic_store(&alloc_left, n);
}

void support_fail_alloc_here(long n)
{
	/* Before they count, so that no other thread's is among them. */
	support_fail_alloc(LONG_MAX);
	alloc_mine = true;
	atomic_store(&alloc_alone, true);
	atomic_store(&alloc_left, n);
}

bool support_alloc_failed(void)
{
	return atomic_load(&alloc_left) < 0;
}

void support_limit_files(long bytes)
{
	struct rlimit limit;

	support_must(getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
	limit.rlim_cur = bytes < 0 ? limit.rlim_max : (rlim_t)bytes;
	/* The signal is ignored until the limit is lifted: another thread may be writing. */
	signal(SIGXFSZ, SIG_IGN);
	support_must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
	if (bytes < 0)
		signal(SIGXFSZ, SIG_DFL);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* In the child: does not return. */
static void support_exec(const char *const *argv, FILE *in, FILE *out, FILE *err)
{
	if (dup2(fileno(in), STDIN_FILENO) < 0 || dup2(fileno(out), STDOUT_FILENO) < 0 ||
	    dup2(fileno(err), STDERR_FILENO) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int support_wait(pid_t child)
{
	int state;

	while (waitpid(child, &state, 0) < 0)
		support_must(errno == EINTR, "waitpid");
	return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

void support_run(struct support_result *result, const char *const *argv, const char *input)
{
	/* Files and not pipes: nothing blocks, whatever the order of reading and writing. */
	FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
	pid_t child;

	support_must(in && out && err, "tmpfile");
	if (input)
		support_must(fputs(input, in) >= 0, "write");
	rewind(in);
	fflush(stdout);
	fflush(stderr);

	/* fork() would copy the page tables of the sanitizers' shadow memory: a third of some tests. */
	child = vfork();
	support_must(child >= 0, "vfork");
	if (!child)
		support_exec(argv, in, out, err);
	result->exit_code = support_wait(child);
	rewind(out);
	rewind(err);
	result->out = support_read_stream(out, NULL);
	result->err = support_read_stream(err, NULL);
	fclose(in);
	fclose(out);
	fclose(err);
}

void support_shell(struct support_result *result, const char *format, ...)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	char *command = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&command, format, args);
	va_end(args);
	support_must(length >= 0, "vasprintf");
	argv[2] = command;
	support_run(result, argv, NULL);
	free(command);
}

void support_result_free(struct support_result *result)
{
	free(result->out);
	free(result->err);
	*result = (struct support_result){0};
}

bool support_has_program(const char *name)
{
	struct support_result result;
	bool found;

	support_shell(&result, "command -v %s", name);
	found = result.exit_code == 0;
	support_result_free(&result);
	return found;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUPPORT_STRIDE 5
#else
#define SUPPORT_STRIDE 1
#endif

unsigned support_stride(void)
{
	const char *sweeps = getenv("IPUSCOPE_TEST_SWEEPS");
	const bool all = sweeps && strcmp(sweeps, "all") == 0;

	return all || getenv("IPUSCOPE_TEST_ROUNDS") ? 1 : SUPPORT_STRIDE;
}

unsigned support_rounds(unsigned released)
{
	const char *text = getenv("IPUSCOPE_TEST_ROUNDS");

	if (text && atoi(text) > 0)
		return (unsigned)atoi(text);
	return (released + support_stride() - 1) / support_stride();
}

static const char *support_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : ".";
}

const char *support_bin_dir(void)
{
	return support_environment("IPUSCOPE_BIN_DIR");
}

const char *support_source_dir(void)
{
	return support_environment("IPUSCOPE_SOURCE_DIR");
}
