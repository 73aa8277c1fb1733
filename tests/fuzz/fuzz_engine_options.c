/*
 * POPLAR_ENGINE_OPTIONS.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "trainer/auto/train_auto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct train_options options;
	char *text = malloc(size + 1);
	struct err err;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (train_options_parse(&options, text, &err) == ST_OK)
		train_options_free(&options);
	free(text);
	return 0;
}
