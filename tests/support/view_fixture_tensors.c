/*
 * A recording of tensors. See view_fixture_tensors.h.
 *
 * Threading: one thread. Ownership: none is kept.
 */
#include "support/view_fixture_tensors.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "support/view_fixture.h"

#define VALUES (3 * 4 * 5)

static const struct ips_tensor tensors[VIEW_FIXTURE_TENSORS] = {
	{"gradients", "Dense_1/kernel:0_grad", "gradient", "Dense_1", 1, "(3, 4, 5)", "float32",
	 NULL, NULL},
	{"gradients", "Dense_0/kernel:0_grad", "gradient", "Dense_0", 0, "(784, 10)", "float32",
	 NULL, NULL},
	{"activations", "it's \x1b[31m\xff odd", "activation", "odd", 0, "(8,)", "float32", NULL,
	 NULL},
	{"watch", "Watched", "activation", "Watched", 0, "(8,)", "float32", NULL, NULL},
};

static struct ips_keys keys_of(int step, int replica, char phase)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.step = step;
	keys.weight_update = step / 2;
	keys.replica = replica;
	keys.phase = phase;
	return keys;
}

static void add_statistics(struct ips_recording *recording, int step, int replica, int tensor,
			   const struct view_fixture_tensors *params)
{
	const double value = params->nan ? (double)NAN
					 : params->scale * (1 + replica) * (tensor + 1) *
						   (1 + step / (double)params->steps);
	const bool bad = params->hits > 0 && tensor == 2 && step == VIEW_FIXTURE_BAD;
	struct ips_tensor_stats row = {.keys = keys_of(step, replica, 'B'),
				       .tensor_id = tensor + 1,
				       .time_ns = step * 1000000 + tensor,
				       .n = 60,
				       .n_nan = bad ? 5 : 0,
				       .n_pos_inf = bad ? 2 : 0,
				       .n_pos = 60,
				       .min = value / 10,
				       .max = value * 10,
				       .mean = value / 2,
				       .std = value,
				       .l1 = value * 30,
				       .l2 = value * 5,
				       .abs_min_nonzero = value / 10,
				       .abs_max = value * 10,
				       .inactive = (double)NAN,
				       .update_ratio = (double)NAN,
				       .n_changed = IPS_NULL};

	if (params->microbatches > 0)
		row.keys.microbatch = step % params->microbatches;
	ips_append_tensor_stats(recording, &row);
}

static void add_histogram(struct ips_recording *recording, int step, int replica,
			  const struct view_fixture_tensors *params)
{
	static const struct {
		int bin;
		double low, high;
	} bins[] = {{-128, -2, -1}, {0, 0, 0}, {127, 0.5, 1}, {128, 1, 2}};

	for (int b = 0; b < 4; b++) {
		const struct ips_tensor_histogram row = {.keys = keys_of(step, replica, 'B'),
							 .tensor_id = 2,
							 .bin = bins[b].bin,
							 .low = bins[b].low,
							 .high = bins[b].high,
							 .count = 1 + b * step + params->more};

		ips_append_tensor_histogram(recording, &row);
	}
}

/* Value i is 1000 x step + i, but for a NaN and an infinity, and half more in each other replica;
 * pieces share no border with rows. */
static void add_capture(struct ips_recording *recording, int step, int replica,
			const struct view_fixture_tensors *params)
{
	const int size = params->captures_empty ? 1 : (int)sizeof(float) * VALUES;
	float values[VALUES];

	for (int i = 0; i < VALUES; i++)
		values[i] = (float)(params->scale * (1000 * step + i) + replica / 2.0);
	values[3] = NAN;
	values[7] = -INFINITY;
	for (int at = 0, piece = 0; at < size; at += VIEW_FIXTURE_PIECE, piece++) {
		const int rest = params->captures_empty ? 0 : size - at;
		const struct ips_capture row = {
			.keys = keys_of(step, replica, 'B'),
			.tensor_id = 1,
			.dtype = "float32",
			.shape = params->shape ? params->shape : "(3, 4, 5)",
			.bytes = rest < VIEW_FIXTURE_PIECE ? rest : VIEW_FIXTURE_PIECE,
			.chunk = piece,
			.data = (const char *)values + at};

		ips_append_capture(recording, &row);
	}
}

static void add_rules(struct ips_recording *recording)
{
	static const struct ips_health_rule rules[] = {
		{"nonfinite", 0, 1, 1, "more NaN or infinite values than the threshold", NULL},
		{"exploding", 100, 1, 1, "a finite value is greater than the threshold", NULL},
		{"overfit", 0.1, 1, 0, "the validation loss is above the training loss", NULL}};

	for (int i = 0; i < 3; i++)
		ips_append_health_rule(recording, &rules[i]);
}

/* Two of three hits are of numbers that are not finite. */
static void add_hits(struct ips_recording *recording, const struct view_fixture_tensors *params)
{
	for (int i = 0; i < params->hits; i++) {
		const bool bad = i % 3 != 2;
		const int step = VIEW_FIXTURE_BAD + i % params->steps;
		const struct ips_health row = {.keys = keys_of(step, 0, 'B'),
					       .rule = bad ? "nonfinite" : "exploding",
					       .tensor_id = bad ? 3 : 1,
					       .time_ns = (int64_t)i * 1000 + 7000000,
					       .value = bad ? 7 : 123.5,
					       .threshold = bad ? 0 : 100};

		ips_append_health(recording, &row);
	}
}

static void add_origin(struct ips_recording *recording)
{
	const struct ips_first_nonfinite first = {.keys = keys_of(VIEW_FIXTURE_BAD, 0, 'F'),
						  .tensor_id = 3,
						  .time_ns = 7000002,
						  .element = 4,
						  .value = "nan"};
	static const char *const roles[] = {"input", "weight", "bad"};

	ips_append_first_nonfinite(recording, &first);
	for (int i = 0; i < 3; i++) {
		const struct ips_nonfinite_trail row = {.keys = keys_of(VIEW_FIXTURE_BAD, 0, 'F'),
							.position = i - 2,
							.role = roles[i],
							.tensor_id = i + 1,
							.time_ns = 7000000 + i,
							.n = 60,
							.n_nan = i == 2 ? 5 : 0,
							.abs_max = 31.25};

		ips_append_nonfinite_trail(recording, &row);
	}
}

static void add_step(struct ips_recording *recording, int step, int replica,
		     const struct view_fixture_tensors *params)
{
	for (int tensor = 0; tensor < 3; tensor++)
		add_statistics(recording, step, replica, tensor, params);
	if (!params->histograms_none)
		add_histogram(recording, step, replica, params);
	if (!params->captures_none && step % VIEW_FIXTURE_EVERY == 0)
		add_capture(recording, step, replica, params);
}

/* Replicas hand over the two steps of a weight update one after another. */
static void add_steps(struct ips_recording *recording, const struct view_fixture_tensors *params)
{
	const int replicas = params->replicas > 0 ? params->replicas : 1;

	for (int update = 0; 2 * update < params->steps; update++)
		for (int replica = 0; replica < replicas; replica++)
			for (int step = 2 * update; step < 2 * update + 2 && step < params->steps;
			     step++)
				add_step(recording, step, replica, params);
}

static void add_tensors(struct ips_recording *recording, const char *suffix)
{
	for (int i = 0; i < VIEW_FIXTURE_TENSORS; i++) {
		struct ips_tensor tensor = tensors[i];
		char key[128];

		snprintf(key, sizeof(key), "%s%s", tensor.key, suffix ? suffix : "");
		tensor.key = key;
		ips_tensor_add(recording, &tensor);
	}
}

static bool write_tensors(const char *path, const void *of)
{
	const struct view_fixture_tensors *params = of;
	struct ips_recording *recording = view_fixture_record(path, "view_fixture_tensors");

	if (!recording)
		return false;
	add_tensors(recording, params->suffix);
	add_rules(recording);
	add_steps(recording, params);
	add_hits(recording, params);
	if (params->hits > 0)
		add_origin(recording);
	return ips_recording_close(recording, NULL, 0) == 0;
}

bool view_fixture_tensors_write(const char *path, const struct view_fixture_tensors *params)
{
	if (params->shape || params->suffix)
		return write_tensors(path, params);
	return view_fixture_once(path, write_tensors, params, sizeof(*params));
}
