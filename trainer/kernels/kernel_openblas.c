/*
 * Loading OpenBLAS and calling its matrix product.
 *
 * State: the library, once per process; it is never unloaded. Source: cblas.h of OpenBLAS 0.3.
 */
#include "trainer/kernels/kernel_gemm.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/apart.h"
#include "common/mem.h"

#define OPENBLAS_FILE    "libopenblas.so.0"
#define OPENBLAS_THREADS "OPENBLAS_NUM_THREADS"

/* Bytes of a buffer: BUFFER_SIZE and a page of OpenBLAS 0.3 on x86-64; less on other machines. */
#define OPENBLAS_BUFFER (((size_t)128 << 20) + ((size_t)1 << 16))

/* Values of cblas.h. */
#define CBLAS_ROW_MAJOR 101
#define CBLAS_NO_TRANS  111
#define CBLAS_TRANS     112

static struct {
	void *library;
	int threads; /* whose buffers are allocated */
	void (*set_num_threads)(int threads);
	/* Not in cblas.h; NULL if a build hides them. */
	void *(*memory_alloc)(int unused);
	void (*memory_free)(void *buffer);
	void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
		      const float *a, int lda, const float *b, int ldb, float beta, float *c,
		      int ldc);
} openblas;

static const char no_buffer[] = "out of memory: OpenBLAS needs 128 MB of address space or more for "
				"each thread: give fewer host.threads, or leave host.products out";

/* OpenBLAS retries for ever if it gets no buffer, so check that there is room for @count. */
static enum status check_buffers(int count, struct err *err)
{
	const size_t bytes = OPENBLAS_BUFFER * (size_t)count;
	void *room =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return err_set(err, ST_NOMEM, "host.products: %s", no_buffer);
	munmap(room, bytes);
	return ST_OK;
}

/* Load the library, which then has one thread of its own: our pool runs the slices. */
static enum status load(struct err *err)
{
	const char *given = getenv(OPENBLAS_THREADS);
	char *before = given ? mem_strdup(given) : NULL;

	if (given && !before)
		return err_nomem(err);
	/* The library reads the variable when it is loaded. */
	setenv(OPENBLAS_THREADS, "1", 1);
	openblas.library = dlopen(OPENBLAS_FILE, RTLD_NOW | RTLD_LOCAL);
	if (before)
		setenv(OPENBLAS_THREADS, before, 1);
	else
		unsetenv(OPENBLAS_THREADS);
	mem_free(before);
	if (!openblas.library)
		return err_set(err, ST_UNSUPPORTED,
			       "host.products: cannot load OpenBLAS (%s): install it (Debian: "
			       "libopenblas0), or leave host.products out",
			       dlerror());
	*(void **)&openblas.set_num_threads = dlsym(openblas.library, "openblas_set_num_threads");
	*(void **)&openblas.memory_alloc = dlsym(openblas.library, "blas_memory_alloc");
	*(void **)&openblas.memory_free = dlsym(openblas.library, "blas_memory_free");
	*(void **)&openblas.sgemm = dlsym(openblas.library, "cblas_sgemm");
	if (openblas.sgemm && openblas.set_num_threads) {
		/* The program may have loaded the library with more. */
		openblas.set_num_threads(1);
		return ST_OK;
	}
	dlclose(openblas.library);
	openblas.library = NULL;
	return err_set(err, ST_UNSUPPORTED,
		       "host.products: %s has no cblas_sgemm: install OpenBLAS (Debian: "
		       "libopenblas0), or leave host.products out",
		       OPENBLAS_FILE);
}

static enum status try_buffers(void *user, struct apart_out *out, struct err *err)
{
	const int *threads = user;

	(void)out;
	/* What keeps it from being loaded is said where this process loads it. */
	if (load(NULL) == ST_OK && openblas.memory_alloc)
		for (int i = 0; i < *threads && openblas.memory_alloc(0); i++)
			;
	return err->status;
}

/* Buffers may be larger than that, and some versions allocate some as they are loaded: only the
 * library knows. So a child, which sees the memory of this process, tries both first. */
static enum status try_apart(int threads, struct err *err)
{
	const struct apart request = {
		.name = "host.products", .status = ST_NOMEM, .crash = no_buffer, .seconds = 1};
	size_t length;
	char *none;
	const enum status status = apart_call(try_buffers, &threads, &request, &none, &length, err);

	mem_free(none);
	return status;
}

/* The library reuses a buffer that was freed, so allocate all before freeing them. */
static enum status allocate_buffers(int threads, struct err *err)
{
	void **buffers = mem_calloc((size_t)threads, sizeof(*buffers));
	enum status status = ST_OK;
	int count = 0;

	if (!buffers)
		return err_nomem(err);
	for (; count < threads && status == ST_OK; count++) {
		buffers[count] = openblas.memory_alloc(0);
		if (!buffers[count]) {
			status = err_set(err, ST_LIMIT,
					 "host.threads: OpenBLAS has buffers for %d threads, not "
					 "for %d",
					 count, threads);
			break;
		}
	}
	while (count > 0)
		openblas.memory_free(buffers[--count]);
	mem_free(buffers);
	return status;
}

enum status kernel_openblas_open(int threads, struct err *err)
{
	enum status status;

	if (threads <= openblas.threads)
		return ST_OK;
	status = check_buffers(threads - openblas.threads, err);
	if (status == ST_OK && !openblas.library)
		status = try_apart(threads, err);
	if (status == ST_OK && !openblas.library)
		status = load(err);
	if (status == ST_OK && openblas.memory_alloc && openblas.memory_free)
		status = allocate_buffers(threads, err);
	if (status == ST_OK)
		openblas.threads = threads;
	return status;
}

void kernel_openblas_multiply(const struct kernel_gemm *gemm, int64_t row, int64_t rows,
			      int64_t column, int64_t columns)
{
	assert(openblas.sgemm);
	openblas.sgemm(CBLAS_ROW_MAJOR, gemm->transpose_a ? CBLAS_TRANS : CBLAS_NO_TRANS,
		       gemm->transpose_b ? CBLAS_TRANS : CBLAS_NO_TRANS, (int)rows, (int)columns,
		       (int)gemm->k, 1.0f, gemm->a + (gemm->transpose_a ? row : row * gemm->lda),
		       (int)gemm->lda, gemm->b + (gemm->transpose_b ? column * gemm->ldb : column),
		       (int)gemm->ldb, 0.0f, gemm->c + row * gemm->ldc + column, (int)gemm->ldc);
}
