/*
 * What the tests of the public outfeed share.
 */
#include "support/public_sample.h"

struct ips_outfeed *public_open(struct ips_recording *recording,
				const struct ips_outfeed_params *params)
{
	struct ips_outfeed *outfeed;
	char message[512];

	if (ips_outfeed_open(&outfeed, recording, params, message, sizeof(message)) != 0)
		fail_msg("%s", message);
	assert_string_equal(message, "");
	return outfeed;
}

void public_close(struct ips_outfeed *outfeed)
{
	char message[512];

	if (ips_outfeed_close(outfeed, message, sizeof(message)) != 0)
		fail_msg("%s", message);
}

struct ips_outfeed_tensor *public_add(struct ips_outfeed *outfeed, const char *key,
				      enum ips_outfeed_kind kind, int64_t rows, int64_t columns)
{
	struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults(key);
	const int64_t shape[] = {rows, columns};
	struct ips_outfeed_tensor *tensor;
	char message[512];

	params.kind = kind;
	params.layer = "dense";
	params.stage = 1;
	params.shape = shape;
	params.ndim = 2;
	if (ips_outfeed_tensor(outfeed, &tensor, &params, message, sizeof(message)) != 0)
		fail_msg("%s", message);
	return tensor;
}

struct ips_keys public_step(int64_t step)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.step = step;
	return keys;
}
