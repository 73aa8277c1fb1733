/*
 * Tables: the first byte chooses the scale, and whether the text is the test part, too.
 */
#include "fuzz_target.h"
#include "trainer/data/dataset_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dataset train = {0}, test = {0};
	struct dataset_table table = {0};
	struct dataset_csv parts[2] = {{"one", NULL, 0}, {"two", NULL, 0}};
	struct err err;

	if (size == 0)
		return 0;
	table.scale = (enum dataset_scale)(data[0] % 3);
	parts[0] = (struct dataset_csv){"one", (const char *)data + 1, size - 1};
	if (data[0] & 4)
		parts[1] = (struct dataset_csv){"two", (const char *)data + 1, size - 1};
	if (dataset__csv_parse(&train, &test, &table, 0, parts, &err) == ST_OK) {
		dataset_close(&train);
		dataset_close(&test);
	}
	return 0;
}
