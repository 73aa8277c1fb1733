/*
 * Values of sequences, by formulas.
 */
#include "support/view_fixture_sequence.h"

#include <stdint.h>

#include "common/mem.h"
#include "profiler/ipuscope/profiler.h"
#include "support/support.h"
#include "support/view_fixture.h"

#define BATCH   VIEW_SEQUENCE_BATCH
#define TOKENS  VIEW_SEQUENCE_TOKENS
#define HEADS   VIEW_SEQUENCE_HEADS
#define ROWS    VIEW_SEQUENCE_ROWS
#define WIDTH   4 /* of a row of the Embedding */
#define MOST    (BATCH * HEADS * TOKENS * TOKENS)
#define EARLIER 4 /* the steps, and weight updates, of which values are kept */
#define LATER   8

/* Four Dense layers in two stages. */
static const char run_text[] =
	"{\"model\":{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":["
	"{\"class_name\":\"Dense\",\"config\":{\"name\":\"a\",\"units\":64}},"
	"{\"class_name\":\"Dense\",\"config\":{\"name\":\"b\",\"units\":32}},"
	"{\"class_name\":\"Dense\",\"config\":{\"name\":\"c\",\"units\":32}},"
	"{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":10}}]}},"
	"\"compile\":{\"loss\":\"sparse_categorical_crossentropy\",\"steps_per_execution\":16},"
	"\"data\":{\"name\":\"mnist\",\"batch_size\":4},\"fit\":{\"steps_per_epoch\":32},"
	"\"ipu\":{\"auto_select_ipus\":2},\"gradient_accumulation\":{\"steps_per_replica\":8},"
	"\"pipeline\":{\"stages\":[0,0,1,1]}}";
static const char data_text[] =
	"{\"train_items\":1000,\"test_items\":200,\"item\":[16],"
	"\"train\":{\"classes\":10,\"width\":0},\"test\":{\"classes\":10,\"width\":0}}";
static const char tokens_text[] =
	"{\"key\":\"tokens\",\"names\":[\"\\n\",\" \",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\","
	"\"h\",\"ing\",\"the\",\"\\u00e9t\",\"n\",\"o\",\"p\",\"q\",\"r\",\"s\",\"t\",\"u\",\"v\","
	"\"w\",\"x\",\"y\",\"z\"]}";

static const struct ips_tensor tensors[] = {
	{"activations", "tokens", "activation", "embedding", 0, "(3, 40)", "float32", NULL,
	 "batch, tokens"},
	{"activations", "targets", "activation", "loss", 1, "(3, 40)", "float32", NULL,
	 "batch, tokens"},
	{"activations", "loss_tokens", "activation", "loss", 1, "(3, 40)", "float32", NULL,
	 "batch, tokens"},
	{"activations", "attention:scores", "activation", "attention", 1, "(3, 2, 40, 40)",
	 "float32", NULL, "batch, heads, queries, keys"},
	{"weights", "embedding/kernel", "weight", "embedding", 0, "(26, 4)", "float32", NULL,
	 "tokens, features"},
};

/* Where it is a weight, the third row and each after nine more do not change. */
static float value_of(int tensor, int i, int moment, bool other)
{
	const int scale = moment + 2 * other;

	switch (tensor) {
	case 0:
	case 1:
		return (float)((i * 7 + tensor * 3 + other) % ROWS);
	case 2:
		return (float)((i * 5 % 17) * (10 + scale)) / 64;
	case 3:
		return (float)((i * 11 + scale) % 37) / 740;
	default:
		return (float)(i % 19 - 9) / 8 * (float)(i / WIDTH % 10 == 3 ? 1 : 1 + scale);
	}
}

static void add_values(struct ips_recording *recording, int tensor, int moment, bool other)
{
	static const int counts[] = {BATCH * TOKENS, BATCH * TOKENS, BATCH * TOKENS, MOST,
				     ROWS * WIDTH};
	static float values[MOST];
	struct ips_keys keys = IPS_KEYS_NULL;

	for (int i = 0; i < counts[tensor]; i++)
		values[i] = value_of(tensor, i, moment, other);
	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.replica = 0;
	if (tensor < 4)
		keys.step = moment ? LATER : EARLIER;
	keys.weight_update = moment ? LATER : EARLIER;
	assert_int_equal(
		ips_append_capture(recording, &(struct ips_capture){.keys = keys,
								    .tensor_id = tensor + 1,
								    .dtype = "float32",
								    .shape = tensors[tensor].shape,
								    .bytes = counts[tensor] * 4,
								    .chunk = 0,
								    .data = values}),
		0);
}

bool view_fixture_sequence_write(const char *path, bool other)
{
	const struct ips_execution execution = {.mode = IPS_TRAIN,
						.epoch = 1,
						.steps = 16,
						.updates = 2,
						.dur_ns = 1000,
						.cycles = 90000};
	struct ips_recording *recording = view_fixture_record(path, NULL);

	if (!recording)
		return false;
	assert_int_equal(ips_meta_set(recording, "run", run_text), 0);
	assert_int_equal(ips_meta_set(recording, "data", data_text), 0);
	if (!other)
		assert_int_equal(ips_meta_set(recording, "tokens", tokens_text), 0);
	assert_int_equal(ips_append_execution(recording, &execution), 0);
	for (size_t i = 0; i < ARRAY_LEN(tensors); i++)
		assert_int_equal(ips_tensor_add(recording, &tensors[i]), i + 1);
	for (int moment = 0; moment < 2; moment++)
		for (int tensor = 0; tensor < (int)ARRAY_LEN(tensors); tensor++)
			add_values(recording, tensor, moment, other);
	return ips_recording_close(recording, NULL, 0) == 0;
}
