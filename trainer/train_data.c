/*
 * Data sets as plans know them. No state.
 */
#include "trainer/train_data.h"

#include <string.h>

struct run_data train_data_of(const struct dataset *train, const struct dataset *test)
{
	struct run_data data = {
		.train_items = train->count,
		.test_items = test->count,
		.item = {.ndim = train->ndim},
		.train = dataset_targets(train),
		.test = dataset_targets(test),
	};

	memcpy(data.item.dim, train->shape, sizeof(train->shape));
	return data;
}

struct dataset_params train_data_params(const struct run_file *run)
{
	return (struct dataset_params){
		.name = run->data.name,
		.path = run->data.path,
		.limit = run->data.limit,
		.one_hot = run->data.one_hot,
		.resize = {run->data.resize[0], run->data.resize[1]},
	};
}
