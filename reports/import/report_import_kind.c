/*
 * What the category and the name of an event say of it: the categories of PyTorch's profiler, and
 * the kinds of kernels.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_internal.h"

/* ---- categories ------------------------------------------------------------------------------ */

/* The first row that fits an event; @name NULL: events of any name. */
static const struct {
	const char *category, *name;
	enum import_kineto kineto;
} categories[] = {
	{"kernel", NULL, KINETO_KERNEL},
	{"Kernel", NULL, KINETO_KERNEL},
	{"gpu_memcpy", NULL, KINETO_COPY},
	{"Memcpy", NULL, KINETO_COPY},
	{"gpu_memset", NULL, KINETO_FILL},
	{"Memset", NULL, KINETO_FILL},
	{"mtia_ccp_events", "dma_request", KINETO_COPY},
	{"mtia_ccp_events", "event_wait", KINETO_SYNC},
	{"mtia_ccp_events", "event_record", KINETO_SYNC},
	{"mtia_ccp_events", NULL, KINETO_KERNEL},
	{"cuda_runtime", NULL, KINETO_CALL},
	{"cuda_driver", NULL, KINETO_CALL},
	{"Runtime", NULL, KINETO_CALL},
	{"xpu_runtime", NULL, KINETO_CALL},
	{"xpu_driver", NULL, KINETO_CALL},
	{"mtia_runtime", NULL, KINETO_CALL},
	{"privateuse1_runtime", NULL, KINETO_CALL},
	{"privateuse1_driver", NULL, KINETO_CALL},
	{"user_annotation", NULL, KINETO_ANNOTATION},
	{"gpu_user_annotation", NULL, KINETO_DEVICE_ANNOTATION},
	{"python_function", NULL, KINETO_PYTHON},
	{"cuda_sync", NULL, KINETO_SYNC},
	{"xpu_sync", NULL, KINETO_SYNC},
	{"ac2g", NULL, KINETO_LAUNCH},
	{"async_cpu_to_gpu", NULL, KINETO_LAUNCH},
	{"async_gpu", NULL, KINETO_LAUNCH},
};

enum import_kineto report__import_kineto(const char *category, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
		if (strcmp(categories[i].category, category) == 0 &&
		    (!categories[i].name || strcmp(categories[i].name, name) == 0))
			return categories[i].kineto;
	}
	return strcmp(name, "[memory]") == 0 ? KINETO_MEMORY : KINETO_NONE;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* As Holistic Trace Analysis tells communication and memory from computation. */
const char *report__import_kernel_kind(const char *name)
{
	static const struct {
		const char *text, *kind;
		bool anywhere;
	} kinds[] = {
		{"nccl", "communication", false},
		{"ncclKernel", "communication", true},
		{"ncclDevKernel", "communication", true},
		{"rccl", "communication", true},
		{"hccl", "communication", false},
		/* of XLA, which runs them on any device */
		{"all-reduce", "communication", false},
		{"all-gather", "communication", false},
		{"all-to-all", "communication", false},
		{"reduce-scatter", "communication", false},
		{"collective-", "communication", false},
		{"copy-start", "memory", false},
		{"copy-done", "memory", false},
		{"Memcpy", "memory", false},
		{"Memset", "memory", false},
		{"hipMemcpy", "memory", false},
		{"hipMemset", "memory", false},
		{"dma", "memory", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].anywhere ? strstr(name, kinds[i].text) != NULL
				      : str_starts_with(name, kinds[i].text))
			return kinds[i].kind;
	}
	return "compute";
}
