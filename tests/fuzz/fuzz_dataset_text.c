/*
 * Windows of a text: the first byte chooses tokens and length.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "trainer/data/dataset_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dataset set = {0};
	struct dataset_texts texts;
	struct dataset_csv text = {.name = "text"};
	struct err err;
	char *bytes;

	if (size == 0)
		return 0;
	texts = (struct dataset_texts){.tokens = (enum dataset_tokens)(data[0] % 3),
				       .sequence_length = 1 + data[0] / 3 % 7};
	bytes = malloc(size);
	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, size - 1);
	bytes[size - 1] = '\0';
	text.bytes = bytes;
	text.length = size - 1;
	if (dataset__text_parse(&set, &texts, 0, &text, &err) == ST_OK)
		dataset_close(&set);
	free(bytes);
	return 0;
}
