/*
 * PNG and JPEG files, in colour and grey.
 */
#include "common/mem.h"
#include "fuzz_target.h"
#include "trainer/data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int gray = 0; gray < 2; gray++) {
		struct image image;
		struct err err;

		if (image_decode(&image, gray != 0, "fuzz", data, size, &err) == ST_OK)
			mem_free(image.bytes);
	}
	return 0;
}
