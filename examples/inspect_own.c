/*
 * A trainer written by hand in plain loops, with what each step computes looked at. C and C++.
 *
 *	cc inspect_own.c $(pkg-config --cflags --libs ipuscope-outfeed) -lm -o inspect_own
 *	./inspect_own run.db [nan]	(nan: in step 60 an input is no number)
 */
#include <ipuscope/outfeed.h>
#include <math.h>
#include <stdio.h>

#define BATCH  32
#define INPUTS 8
#define UNITS  4

static float x[BATCH][INPUTS], units[BATCH][UNITS], kernel[INPUTS][UNITS], slope[INPUTS][UNITS];

static float noise(void) /* -1 .. 1 */
{
	static unsigned state = 1;

	state = state * 1664525u + 1013904223u;
	return (float)(state >> 8) / 8388608.0f - 1.0f;
}

/* units = sigmoid(x kernel) of a new batch; one step down the slope of the binary cross-entropy
 * (returned) between a unit and whether its input is above the next. */
static double train_step(int bad)
{
	double loss = 0;

	for (int b = 0; b < BATCH; b++)
		for (int i = 0; i < INPUTS; i++)
			x[b][i] = bad && b == 3 && i == 5 ? NAN : noise();
	for (int u = 0; u < UNITS; u++) {
		for (int i = 0; i < INPUTS; i++)
			slope[i][u] = 0;
		for (int b = 0; b < BATCH; b++) {
			const float target = x[b][u] > x[b][u + 1] ? 1.0f : 0.0f;
			float sum = 0;

			for (int i = 0; i < INPUTS; i++)
				sum += x[b][i] * kernel[i][u];
			units[b][u] = 1 / (1 + expf(-sum));
			for (int i = 0; i < INPUTS; i++)
				slope[i][u] += (units[b][u] - target) * x[b][i] / BATCH;
			loss -= log(fabs(1.0 - (double)target - (double)units[b][u]));
		}
		for (int i = 0; i < INPUTS; i++)
			kernel[i][u] -= 0.5f * slope[i][u];
	}
	return loss / (BATCH * UNITS);
}

static struct ips_outfeed_tensor *watch(struct ips_outfeed *outfeed, const char *key,
					enum ips_outfeed_kind kind, int64_t rows)
{
	const int64_t shape[] = {rows, UNITS};
	struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults(key);
	struct ips_outfeed_tensor *tensor;

	params.kind = kind;
	params.activity = IPS_OUTFEED_SIGMOID; /* of the activation */
	params.layer = "dense";
	params.shape = shape;
	params.ndim = 2;
	ips_outfeed_tensor(outfeed, &tensor, &params, NULL, 0);
	return tensor;
}

int main(int argc, char **argv)
{
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;
	struct ips_outfeed_tensor *activation, *gradient, *weight;
	struct ips_keys keys = IPS_KEYS_NULL;
	char why[256];

	if (ips_recording_open(&recording, argc > 1 ? argv[1] : "run.db", NULL, why, 256) != 0 ||
	    ips_outfeed_open(&outfeed, recording, NULL, why, 256) != 0)
		return fprintf(stderr, "inspect_own: %s\n", why), 1;
	activation = watch(outfeed, "dense", IPS_OUTFEED_ACTIVATION, BATCH);
	gradient = watch(outfeed, "dense/kernel_grad", IPS_OUTFEED_GRADIENT, INPUTS);
	weight = watch(outfeed, "dense/kernel", IPS_OUTFEED_WEIGHT, INPUTS);
	for (int i = 0; i < INPUTS * UNITS; i++)
		kernel[i / UNITS][i % UNITS] = noise() / 2;
	for (keys.step = 0, keys.mode = IPS_TRAIN; keys.step < 100; keys.step++) {
		const double loss = train_step(argc > 2 && keys.step == 60);

		ips_outfeed_record(activation, &keys, units, BATCH * UNITS);
		ips_outfeed_record(gradient, &keys, slope, INPUTS * UNITS);
		ips_outfeed_record(weight, &keys, kernel, INPUTS * UNITS);
		ips_outfeed_loss(outfeed, &keys, loss);
	}
	printf("rules broken: %d\n", (int)ips_outfeed_broken(outfeed, NULL));
	if (ips_outfeed_close(outfeed, why, 256) + ips_recording_close(recording, why, 256) != 0)
		return fprintf(stderr, "inspect_own: %s\n", why), 1;
	return 0;
}
