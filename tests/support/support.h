/*
 * What tests of every room need: close numbers, temporary folders, failing allocations, files, and
 * running commands.
 *
 * Threading: for the test's main thread; the failing allocator alone may be met by any thread. What
 * goes wrong in here fails the test.
 */
#ifndef SUPPORT_SUPPORT_H
#define SUPPORT_SUPPORT_H

/* cmocka.h wants these four before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>

#define SUPPORT_PATH_SIZE 4096
#define SUPPORT_SKIP      77 /* exit code of a test program that has nothing to test here */

/* |a - b| is at most @tol times the greater of |a|, |b| and 1e-300; NaN is close to NaN, an
 * infinity to itself. cmocka 1.1.5 would compare as float. */
#define assert_close(a, b, tol) support_assert_close((a), (b), (tol), #a, #b, __FILE__, __LINE__)
void support_assert_close(double a, double b, double tol, const char *a_text, const char *b_text,
			  const char *file, int line);
bool support_is_close(double a, double b, double tol);

/* Where @text must contain @part. */
#define assert_contains(text, part) support_assert_contains((text), (part), __FILE__, __LINE__)
void support_assert_contains(const char *text, const char *part, const char *file, int line);

/* A new empty folder, under $TMPDIR or /tmp; removed with all that is in it. */
void support_tempdir(char out[SUPPORT_PATH_SIZE]);
void support_tempdir_remove(const char *path);

/*
 * Let the n-th allocation from now on (0: the next) fail, and only that one; all of mem.h goes
 * through it. Negative: back to normal. support_alloc_failed() tells whether it came to that, so a
 * sweep is
 *
 *	for (long n = 0;; n++) {
 *		support_fail_alloc(n);
 *		status = thing_new(&thing, &err);
 *		failed = support_alloc_failed();
 *		support_fail_alloc(-1);
 *		... failed: status is ST_NOMEM and thing NULL; else: ST_OK, and the sweep is over
 *	}
 */
void support_fail_alloc(long n);
/* The same of this thread's allocations alone, while others allocate as they like. */
void support_fail_alloc_here(long n);
bool support_alloc_failed(void);

/* How often a test of many rounds goes round: $IPUSCOPE_TEST_ROUNDS times, else @released, and
 * under sanitizers, which take several times as long, a third of that, unless
 * $IPUSCOPE_TEST_SWEEPS is "all". */
unsigned support_rounds(unsigned released);

/* The step through a table of samples: 1; under sanitizers 3, unless $IPUSCOPE_TEST_ROUNDS is set
 * or $IPUSCOPE_TEST_SWEEPS is "all". */
unsigned support_stride(void);

/* Make a new folder the current one, so that names in it are the same everywhere; it is static.
 * support_source_dir() stays right. And go back, and remove it. */
const char *support_enter(void);
void support_leave(void);

/* What this process writes to a descriptor or two goes to a file, until it is given back. */
struct support_caught {
	FILE *file;
	int to[2], kept[2]; /* to[1] negative: one alone */
};
void support_catch(struct support_caught *caught, int to, int also);
/* The text, 0-terminated; the caller's (free). */
char *support_give_back(struct support_caught *caught);

/* All of a file, 0-terminated; the caller's (free). @length may be NULL. */
char *support_read_file(const char *path, size_t *length);
void support_write_file(const char *path, const void *data, size_t length);
/* Fail, naming the first line that differs, unless what @print writes is tests/golden/@name.
 * UPDATE_GOLDEN=1 in the environment rewrites the file first. */
void support_check_golden(const char *name, void (*print)(FILE *out));

#define SUPPORT_DIGEST UINT64_C(14695981039346656037)
/* FNV-1a of @size bytes, from @digest on, which is SUPPORT_DIGEST at first: for goldens of what is
 * too long to be kept. */
uint64_t support_digest(uint64_t digest, const void *bytes, size_t size);
/* The same of a text, which IPUSCOPE_TEST_DIGESTED=1 in the environment prints to stderr. */
uint64_t support_digest_text(uint64_t digest, const char *text, size_t length);
/* The digest of what a command prints, but for the version, which changes with each release. */
uint64_t support_digest_output(const char *text);

/* As if the disk were full: no file may grow beyond @bytes from now on; negative: any may again. */
void support_limit_files(long bytes);

/* What a command did: exit code (128 + signal where killed) and all it printed. */
struct support_result {
	int exit_code;
	char *out; /* 0-terminated; support_result_free() */
	char *err;
};

/* Run @argv (NULL at its end, found on PATH where it has no slash) with @input as its standard
 * input (NULL: empty). A command that cannot be run has the exit code 127. */
void support_run(struct support_result *result, const char *const *argv, const char *input);
/* The same through `sh -c`. */
void support_shell(struct support_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void support_result_free(struct support_result *result);

/* Is there a program @name on PATH? */
bool support_has_program(const char *name);

/*
 * The built programs and the source tree, as CTest tells in the environment; "." where it does not.
 */
const char *support_bin_dir(void);
const char *support_source_dir(void);

#endif /* SUPPORT_SUPPORT_H */
