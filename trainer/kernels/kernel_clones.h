/*
 * Function clones: one source compiled for several instruction sets, selected at load time.
 *
 * Only for loops whose elements are independent: with -ffp-contract=off the wider instructions do
 * the same operations in the same order. Disabled under sanitizers, whose runtime is not
 * initialized when the loader resolves the clones.
 */
#ifndef KERNEL_CLONES_H
#define KERNEL_CLONES_H

#include "common/cpu.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KERNEL_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KERNEL_SANITIZED
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__) &&    \
	!defined(__clang__) && !defined(KERNEL_SANITIZED)
#define KERNEL_CLONED
#endif

#if defined(KERNEL_CLONED) && CPU_LEVEL >= 2
#define KERNEL_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#elif defined(KERNEL_CLONED) && CPU_LEVEL == 1
#define KERNEL_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define KERNEL_CLONES
#endif

/* For functions that such a loop calls: compiled again in each clone. */
#define KERNEL_INLINE static inline __attribute__((always_inline))

/* Precedes a loop whose iterations are independent whatever the compiler assumes about aliasing. An
 * output stored over an input, element by element, then costs no runtime check. */
#if defined(__GNUC__) && !defined(__clang__)
#define KERNEL_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(__clang__)
#define KERNEL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define KERNEL_INDEPENDENT
#endif

#endif /* KERNEL_CLONES_H */
