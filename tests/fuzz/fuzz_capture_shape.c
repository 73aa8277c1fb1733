/*
 * What a row of the captures says it is: a type, and after a 0 byte a shape. Its bytes are those of
 * its elements, or it is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "outfeed/outfeed_captures_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 2);
	struct captures_shape shape;
	double bytes;

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	if (captures__shape(&shape, text, text + strlen(text) + 1)) {
		bytes = dtype_bytes(shape.dtype);
		for (int i = 0; i < shape.ndim; i++)
			bytes *= (double)shape.dim[i];
		if (shape.bytes < 0 || (double)shape.bytes > bytes * 1.0001 ||
		    (double)shape.bytes < bytes * 0.9999)
			abort();
	}
	free(text);
	return 0;
}
