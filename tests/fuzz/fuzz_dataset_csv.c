/*
 * Tables: the first byte chooses the scale, whether the text is the test part, too, whether that
 * may lack its target, and whether a column weighs.
 */
#include "fuzz_target.h"
#include "trainer/data/dataset_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dataset train = {0}, test = {0};
	struct dataset_params params = {0};
	struct dataset_csv parts[2] = {{.name = "one"}, {.name = "two"}};
	struct err err;

	if (size == 0)
		return 0;
	params.table.scale = (enum dataset_scale)(data[0] % 3);
	params.no_test_targets = data[0] & 8;
	params.table.weight = data[0] & 16 ? "w" : NULL;
	parts[0] = (struct dataset_csv){
		.name = "one", .bytes = (const char *)data + 1, .length = size - 1};
	if (data[0] & 4)
		parts[1] = (struct dataset_csv){
			.name = "two", .bytes = (const char *)data + 1, .length = size - 1};
	if (dataset__csv_parse(&train, &test, &params, parts, &err) == ST_OK) {
		dataset_close(&train);
		dataset_close(&test);
	}
	return 0;
}
