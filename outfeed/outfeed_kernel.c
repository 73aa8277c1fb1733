/*
 * The portable variant of the loops, in plain C for every processor, and the choice of a variant.
 *
 * The choice is one atomic index, determined once; any thread.
 */
#include "outfeed/outfeed_kernel.h"

#include <stdatomic.h>

#include "common/mem.h"

static bool always(void)
{
	return true;
}

#define KERNEL static const struct outfeed_kernel portable
#define NAME   "portable"
#define RUNS   always
#define TARGET
#define INLINE static inline __attribute__((always_inline))
#include "outfeed/outfeed_kernel_loops.h"

static const struct outfeed_kernel *const kernels[] = {
#if defined(__x86_64__)
	&outfeed__kernel_avx512,
	&outfeed__kernel_avx2,
#endif
	&portable,
};

/* Index of the variant in use plus one; 0: not yet chosen. Concurrent choices are equal. */
static _Atomic int chosen;

const struct outfeed_kernel *outfeed_kernel_get(void)
{
	int index = atomic_load_explicit(&chosen, memory_order_relaxed) - 1;

	if (index < 0) {
		index = 0;
		while (!kernels[index]->runs())
			index++;
		atomic_store_explicit(&chosen, index + 1, memory_order_relaxed);
	}
	return kernels[index];
}

const struct outfeed_kernel *outfeed_kernel_at(int index)
{
	return index >= 0 && index < (int)ARRAY_LEN(kernels) ? kernels[index] : NULL;
}

bool outfeed_kernel_use(int index)
{
	if (!outfeed_kernel_at(index) || !kernels[index]->runs())
		return false;
	atomic_store_explicit(&chosen, index + 1, memory_order_relaxed);
	return true;
}
