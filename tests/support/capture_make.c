/*
 * capture_make FILE KIND [MEGABYTES]: write a recording with captured tensors, for scripts.
 *
 * tutorial: the keys and shapes of the tutorial's outfed gradients, 125 enqueues, and an activation
 * whose last batch is short. replicas: two, even and uneven. none: no captures. large: one tensor
 * of so many megabytes in enqueues of 10 MB, and one of many small ones. Value i of enqueue e of
 * replica r is e + 1000 r + i / 65536.
 */
#include <ipuscope/profiler.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (1 << 20)

struct kept {
	struct ips_recording *recording;
	int64_t id;
	const char *shape;
	size_t count; /* of one enqueue */
	bool half;
};

static struct kept keep(struct ips_recording *recording, const char *queue, const char *key,
			const char *kind, const char *shape, size_t count)
{
	const struct ips_tensor tensor = {.queue = queue,
					  .key = key,
					  .kind = kind,
					  .stage = IPS_NULL,
					  .shape = shape,
					  .dtype = "float32"};

	return (struct kept){recording, ips_tensor_add(recording, &tensor), shape, count, false};
}

/* Enqueue @number of @replica, as the library that records cuts it. */
static int put(const struct kept *kept, int64_t number, int64_t replica)
{
	struct ips_capture row = {.keys = IPS_KEYS_NULL,
				  .tensor_id = kept->id,
				  .dtype = kept->half ? "float16" : "float32",
				  .shape = kept->shape};
	const size_t size = kept->half ? 2 : 4;
	char *values = calloc(kept->count, 4);
	int status = !values;

	for (size_t i = 0; i < kept->count && status == 0; i++) {
		const float value =
			(float)(number + 1000 * replica) + (float)(i % 65536) / 65536.0f;
		const uint16_t half = (uint16_t)(0x3c00 + i % 1024); /* 1 + i / 1024 */

		memcpy(values + size * i, kept->half ? (const void *)&half : &value, size);
	}
	row.keys.mode = IPS_TRAIN;
	row.keys.replica = replica;
	row.keys.weight_update = number;
	for (size_t at = 0; at < size * kept->count && status == 0; at += CHUNK, row.chunk++) {
		size_t left = size * kept->count - at;

		row.bytes = (int64_t)(left < CHUNK ? left : CHUNK);
		row.data = values + at;
		status = ips_append_capture(kept->recording, &row);
	}
	free(values);
	return status;
}

static int write_tutorial(struct ips_recording *recording)
{
	const struct kept kernel = keep(recording, "gradients", "Dense_128/kernel:0_grad",
					"gradient", "(256, 128)", 256 * 128);
	const struct kept bias =
		keep(recording, "gradients", "Dense_128/bias:0_grad", "gradient", "(128,)", 128);
	struct kept dense =
		keep(recording, "activations", "Dense_128", "activation", "(32, 128)", 32 * 128);
	struct kept half = keep(recording, "activations", "Half", "activation", "(3, 7)", 21);
	int status = 0;

	half.half = true;
	for (int i = 0; i < 125 && status == 0; i++) {
		status = put(&kernel, i, 0) | put(&bias, i, 0) | put(&half, i, 0);
		dense.shape = i == 124 ? "(5, 128)" : "(32, 128)";
		dense.count = i == 124 ? 5 * 128 : 32 * 128;
		status |= put(&dense, i, 0);
	}
	return status;
}

static int write_replicas(struct ips_recording *recording)
{
	const struct kept even =
		keep(recording, "gradients", "even", "gradient", "(256, 2048)", 256 * 2048);
	const struct kept uneven = keep(recording, "gradients", "uneven", "gradient", "()", 1);
	int status = 0;

	for (int i = 0; i < 3 && status == 0; i++) {
		status = put(&even, i, 1) | put(&even, i, 0) | put(&uneven, i, 0);
		if (i > 0)
			status |= put(&uneven, i, 1);
	}
	return status;
}

static int write_large(struct ips_recording *recording, int megabytes)
{
	const struct kept large = keep(recording, "weights", "embeddings:0", "weight",
				       "(10, 1024, 256)", 10 * 1024 * 256);
	const struct kept small = keep(recording, "weights", "bias:0", "weight", "(16,)", 16);
	int status = 0;

	for (int i = 0; i < megabytes / 10 && status == 0; i++) {
		status = put(&large, i, 0);
		for (int j = 0; j < 100 && status == 0; j++)
			status = put(&small, 100 * i + j, 0);
	}
	return status;
}

int main(int argc, char **argv)
{
	struct ips_recording *recording;
	char message[256] = "";
	int status = 0;

	if (argc < 3) {
		fputs("usage: capture_make FILE KIND [MEGABYTES]\n", stderr);
		return 2;
	}
	if (ips_recording_open(&recording, argv[1], NULL, message, sizeof(message)) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	if (strcmp(argv[2], "tutorial") == 0)
		status = write_tutorial(recording);
	else if (strcmp(argv[2], "replicas") == 0)
		status = write_replicas(recording);
	else if (strcmp(argv[2], "large") == 0)
		status = write_large(recording, argc > 3 ? atoi(argv[3]) : 100);
	if (ips_recording_close(recording, message, sizeof(message)) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	return status;
}
