/*
 * Train a run file from a program of one's own, and look on: each epoch's logs, each step's loss
 * and what the outfeed queues send as soon as it is there where the run file has
 * fit.asynchronous_callbacks, and the greatest weight of a layer; and stop when the loss is below a
 * bound.
 *
 *	cc watch_training.c $(pkg-config --cflags --libs ipuscope-trainer) -o watch_training
 *	./watch_training run.json 0.3 [--key value ...]
 */
#include <ipuscope/trainer.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct watch {
	double enough;
	long batches, epochs; /* how often each was called */
	double least_batch;
	long values; /* sent by outfeed queues */
	float greatest;
	char key[64]; /* its */
};

static void batch_end(void *user, struct ips_trainer *trainer, enum ips_mode mode, int64_t batch,
		      const struct ips_logs *logs)
{
	struct watch *watch = user;

	(void)trainer;
	(void)mode;
	(void)batch;
	watch->batches++;
	if (logs->items[0].value < watch->least_batch)
		watch->least_batch = logs->items[0].value;
}

static void outfeed(void *user, struct ips_trainer *trainer, const struct ips_trainer_outfeed *sent)
{
	struct watch *watch = user;

	(void)trainer;
	watch->values++;
	for (size_t i = 0; i < sent->count; i++) {
		if (!(fabsf(sent->values[i]) > watch->greatest))
			continue;
		watch->greatest = fabsf(sent->values[i]);
		snprintf(watch->key, sizeof(watch->key), "%s", sent->key);
	}
}

static float greatest_weight(const struct ips_trainer *trainer, const char *name)
{
	size_t count = 0;
	const float *weights = ips_trainer_weights(trainer, name, &count);
	float most = 0.0f;

	for (size_t i = 0; weights && i < count; i++)
		most = fabsf(weights[i]) > most ? fabsf(weights[i]) : most;
	return most;
}

static void epoch_end(void *user, struct ips_trainer *trainer, int64_t epoch,
		      const struct ips_logs *logs)
{
	struct watch *watch = user;

	watch->epochs++;
	printf("epoch %lld:", (long long)epoch);
	for (int i = 0; i < logs->count; i++)
		printf(" %s %.4f", logs->items[i].name, logs->items[i].value);
	printf(", greatest weight %.4f\n", (double)greatest_weight(trainer, "Dense_10/kernel:0"));
	if (logs->items[0].value < watch->enough)
		ips_trainer_stop(trainer);
}

int main(int argc, char **argv)
{
	struct watch watch = {.enough = argc > 2 ? atof(argv[2]) : 0.0, .least_batch = INFINITY};
	struct ips_callback callback = {.size = sizeof(callback), .user = &watch};
	struct ips_train_result result;
	struct ips_trainer *trainer;
	char message[512];

	callback.epoch_end = epoch_end;
	callback.batch_end = batch_end;
	callback.outfeed = outfeed;
	if (argc < 3) {
		fprintf(stderr, "usage: watch_training RUN LOSS [--key value ...]\n");
		return 2;
	}
	if (ips_trainer_open(&trainer, argv[1], argc - 3, argv + 3, message, sizeof(message)) !=
	    0) {
		fprintf(stderr, "watch_training: %s\n", message);
		return 2;
	}
	if (ips_trainer_add_callback(trainer, &callback) != 0 ||
	    ips_trainer_run(trainer, &result, message, sizeof(message)) != 0) {
		fprintf(stderr, "watch_training: %s\n", message);
		ips_trainer_close(trainer);
		return 1;
	}
	printf("%lld epochs, loss %.4f, %ld batches seen, the best %.4f\n",
	       (long long)result.epochs, result.loss, watch.batches, watch.least_batch);
	if (watch.values > 0)
		printf("%ld values were sent, the greatest %.4f in %s\n", watch.values,
		       watch.greatest, watch.key);
	ips_trainer_close(trainer);
	return 0;
}
