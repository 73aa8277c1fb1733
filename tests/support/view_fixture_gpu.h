/*
 * A recording of a training on a GPU, as an import of its profiler makes it: a thread that marks
 * steps, names ranges, launches kernels and waits for them, two streams, allocations.
 */
#ifndef SUPPORT_VIEW_FIXTURE_GPU_H
#define SUPPORT_VIEW_FIXTURE_GPU_H

#include <stdbool.h>

#define VIEW_GPU_STEPS 3

/* Write @path, which must not exist. @params: a bool, NULL for false: three kernels of attention
 * are fused into `flash_fwd`, which makes the steps shorter. false: it could not be written. */
bool view_fixture_gpu_write(const char *path, const void *params);

#endif /* SUPPORT_VIEW_FIXTURE_GPU_H */
