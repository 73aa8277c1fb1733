/*
 * CIFAR-10's and CIFAR-100's binary records.
 */
#include "common/mem.h"
#include "fuzz_target.h"
#include "trainer/data/dataset_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Two labels where the first byte says so: records of CIFAR-100. */
	const struct dataset_cifar *kind = dataset__cifar(size > 0 && data[0] >= 128 ? 100 : 10);
	size_t records = size / DATASET_CIFAR_BYTES;
	struct dataset_array images = {.ndim = 4, .dim = {(int64_t)records, 32, 32, 3}};
	struct dataset_array labels = {.ndim = 1, .dim = {(int64_t)records}};
	struct err err;

	images.bytes = mem_alloc(records * DATASET_CIFAR_BYTES + 1);
	labels.bytes = mem_alloc(records + 1);
	if (images.bytes && labels.bytes)
		dataset__cifar_parse(&images, &labels, 0, kind, "fuzz", data, size, &err);
	mem_free(images.bytes);
	mem_free(labels.bytes);
	return 0;
}
