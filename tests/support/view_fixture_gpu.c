/*
 * A recording of a training on a GPU: support/view_fixture_gpu.h. Times are us.
 */
#include "support/view_fixture_gpu.h"

#include <ipuscope/profiler.h>

#include "common/mem.h"
#include "support/view_fixture.h"

#define US 1000

struct gpu {
	struct ips_track *thread, *streams[2];
	int64_t launches;
};

struct kernel {
	struct ips_site *site;
	const char *kind;
	int stream;
	int64_t us;
};

static const struct kernel *kernels_of(bool fused, int *count)
{
	IPS_SITE(scores, "kernel", "softmax_scores");
	IPS_SITE(mask, "kernel", "mask");
	IPS_SITE(values, "kernel", "gemm_values");
	IPS_SITE(flash, "kernel", "flash_fwd");
	IPS_SITE(reduce, "kernel", "ncclDevKernel_AllReduce");
	static const struct kernel apart[] = {{&scores, "compute", 0, 40},
					      {&mask, "compute", 0, 20},
					      {&values, "compute", 0, 60},
					      {&reduce, "communication", 1, 50}};
	static const struct kernel one[] = {{&flash, "compute", 0, 90},
					    {&reduce, "communication", 1, 50}};

	*count = fused ? (int)ARRAY_LEN(one) : (int)ARRAY_LEN(apart);
	return fused ? one : apart;
}

/* Write a step that begins at @at us. Return when it ends. */
static int64_t write_step(struct gpu *gpu, int step, int64_t at, bool fused)
{
	IPS_SITE(marked, "user_annotation", "ProfilerStep");
	IPS_SITE(forward, "nvtx", "forward");
	IPS_SITE(launch, "cuda_runtime", "cudaLaunchKernel");
	IPS_SITE(wait, "cuda_runtime", "cudaDeviceSynchronize");
	struct ips_keys keys = IPS_KEYS_NULL;
	int count;
	const struct kernel *kernels = kernels_of(fused, &count);
	int64_t free = at + 12, end;

	for (int i = 0; i < count; i++)
		free += kernels[i].us + 2;
	end = free + 10;
	keys.step = step;
	for (int i = 0; i < 2; i++)
		ips_track_set_keys(gpu->streams[i], &keys);
	ips_track_set_keys(gpu->thread, &keys);
	ips_span_at(gpu->thread, &marked, at * US, (end - at) * US);
	ips_span_row(gpu->thread, IPS_TABLE_range, &(struct ips_range){"step", NULL});
	ips_span_at(gpu->thread, &forward, (at + 1) * US, 60 * US);
	ips_span_row(gpu->thread, IPS_TABLE_range, &(struct ips_range){"nvtx", NULL});
	free = at + 12;
	for (int i = 0; i < count; i++) {
		const struct ips_kernel row = {"GPU 0",
					       1,
					       7 + kernels[i].stream,
					       kernels[i].kind,
					       ++gpu->launches,
					       1,
					       1,
					       1,
					       64,
					       1,
					       1,
					       32,
					       0,
					       0.5,
					       IPS_NULL,
					       IPS_NULL};
		const struct ips_call call = {gpu->launches};

		ips_span_at(gpu->thread, &launch, (at + 2 + 10 * i) * US, 5 * US);
		ips_span_row(gpu->thread, IPS_TABLE_call, &call);
		ips_span_at(gpu->streams[kernels[i].stream], kernels[i].site, free * US,
			    kernels[i].us * US);
		ips_span_row(gpu->streams[kernels[i].stream], IPS_TABLE_kernel, &row);
		free += kernels[i].us + 2;
	}
	ips_span_at(gpu->thread, &wait, (at + 62) * US, (end - at - 64) * US);
	ips_span_row(gpu->thread, IPS_TABLE_call, &(struct ips_call){++gpu->launches});
	return end;
}

bool view_fixture_gpu_write(const char *path, const void *params)
{
	const bool fused = params && *(const bool *)params;
	struct ips_recording *recording = view_fixture_record(path, NULL);
	struct gpu gpu = {0};
	int64_t at = 0;

	if (!recording)
		return false;
	gpu.thread = ips_track_open(recording, "python", NULL);
	gpu.streams[0] = ips_track_open(recording, "GPU 0 stream 7", NULL);
	gpu.streams[1] = ips_track_open(recording, "GPU 0 stream 8", NULL);
	ips_append_device(recording,
			  &(struct ips_device){"GPU 0", 0, "H100", "9.0", INT64_C(1) << 36, 132,
					       IPS_NULL, IPS_NULL});
	for (int i = 0; i < VIEW_GPU_STEPS; i++) {
		for (int j = 0; j < 4; j++) {
			const int64_t bytes = (j % 2 ? -1 : 1) * ((int64_t)(j + 1) << 20);

			ips_append_memory_event(
				recording, &(struct ips_memory_event){
						   "GPU 0", (at + 10 * j) * US,
						   j % 2 ? "free" : "alloc", bytes, 4096 * j,
						   (int64_t)(i + 2) * (j + 1) << 20, 64 << 20});
		}
		at = write_step(&gpu, i, at, fused) + 1;
	}
	return ips_recording_close(recording, NULL, 0) == 0;
}
