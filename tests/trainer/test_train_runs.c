/*
 * Small trainings by the program itself: what it prints, the files that it leaves and what it
 * records are those of before, but for what the host measured: digests in
 * tests/golden/train_runs.txt, which UPDATE_GOLDEN=1 rewrites.
 */
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/npz_writer.h"
#include "support/prof_testing.h"

#define ROWS 48

/* clang-format off */
static const char run[] =
	"{\"description\": \"d\", \"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 8, \"activation\": \"relu\"}}, "
	"{\"class_name\": \"Dropout\", \"config\": {\"name\": \"drop\", \"rate\": 0.25}}, "
	"{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"norm\"}}, "
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": 3, \"activation\": \"softmax\"}}]}}, "
	"\"compile\": {\"loss\": \"sparse_categorical_crossentropy\", \"metrics\": [\"accuracy\"], \"optimizer\": \"adam\"}, "
	"\"data\": {\"name\": \"csv\", \"path\": \"data.csv\", \"batch_size\": 4, \"validation_split\": 0.25}, "
	"\"fit\": {\"epochs\": 2, \"validation\": true}, \"evaluate\": {}, \"ipu\": null, "
	"\"flags\": {\"--full\": {\"compile\": {\"steps_per_execution\": 4}, \"fit\": {\"steps_per_epoch\": 8}, \"predict\": "
	"{\"steps\": 2, \"output\": \"out.npz\"}, \"evaluate\": {\"steps\": 2}, \"weights\": {\"save\": \"w.npz\"}, "
	"\"gradient_accumulation\": {\"steps_per_replica\": 2}, \"ipu\": {\"auto_select_ipus\": 4}, \"pipeline\": "
	"{\"stages\": [0, 0, 0, 1], \"schedule\": \"1f1b\"}, \"outfeed\": {\"activations\": [\"a\"], \"gradients\": [\"b\"], "
	"\"capture\": \"full\"}, \"callbacks\": [{\"class_name\": \"CSVLogger\", \"config\": {\"filename\": \"log.csv\"}}]}, "
	"\"--watch\": {\"callbacks\": [{\"class_name\": \"EarlyStopping\", \"config\": {\"monitor\": \"val_loss\", \"patience\": 0}}, "
	"{\"class_name\": \"ReduceLROnPlateau\", \"config\": {\"monitor\": \"loss\", \"patience\": 0, \"factor\": 0.5}}, "
	"{\"class_name\": \"ModelCheckpoint\", \"config\": {\"filepath\": \"best.npz\", \"monitor\": \"loss\", \"save_best_only\": true}}, "
	"{\"class_name\": \"BackupAndRestore\", \"config\": {\"backup_dir\": \"backup\"}}, "
	"{\"class_name\": \"TerminateOnNaN\", \"config\": {}}]}}}";

#define NODE(class_name, name, config, from)                                                       \
	", {\"class_name\": \"" class_name "\", \"config\": {\"name\": \"" name "\"" config           \
	"}, \"inbound_nodes\": [[[\"" from "\", 0, 0, {}]]]}"

/* A class of each of four positions, and two numbers. */
static const char outputs[] =
	"{\"model\": {\"class_name\": \"Functional\", \"config\": {\"name\": \"f\", \"layers\": [{\"class_name\": \"InputLayer\", "
	"\"config\": {\"name\": \"x\", \"batch_input_shape\": [null, 4, 3]}, \"inbound_nodes\": []}"
	NODE("Masking", "mask", "", "x") NODE("GRU", "g", ", \"units\": 5, \"return_sequences\": true", "mask")
	NODE("Dense", "a", ", \"units\": 3, \"kernel_regularizer\": \"l2\"", "g")
	NODE("GlobalAveragePooling1D", "p", "", "g") NODE("Dense", "b", ", \"units\": 2, \"activation\": \"tanh\"", "p")
	"], \"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"a\", 0, 0], [\"b\", 0, 0]]}}, \"compile\": {\"loss\": "
	"[{\"class_name\": \"SparseCategoricalCrossentropy\", \"config\": {\"from_logits\": true, \"ignore_class\": 2}}, \"mse\"], "
	"\"loss_weights\": [0.5, 2], \"metrics\": [[\"accuracy\"], [\"mae\"]], \"optimizer\": {\"class_name\": \"SGD\", \"config\": "
	"{\"momentum\": 0.5, \"global_clipnorm\": 0.1}}}, \"data\": {\"name\": \"npz\", \"path\": \"data.npz\", \"batch_size\": 4, "
	"\"outputs\": [\"b\", \"a\"]}, \"fit\": {\"epochs\": 2, \"validation\": true}, \"ipu\": {}, \"predict\": {\"output\": "
	"\"out.npz\"}, \"weights\": {\"save\": \"w.npz\"}}";

static const char writer[] =
	"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
	"{\"class_name\": \"Embedding\", \"config\": {\"input_dim\": 12, \"output_dim\": 4, \"batch_input_shape\": [null, 6]}}, "
	"{\"class_name\": \"LSTM\", \"config\": {\"units\": 5, \"return_sequences\": true}}, "
	"{\"class_name\": \"Dense\", \"config\": {\"units\": 12, \"activation\": \"softmax\"}}]}}, \"compile\": {\"loss\": "
	"\"sparse_categorical_crossentropy\", \"metrics\": [\"perplexity\"]}, \"data\": {\"name\": \"text\", \"path\": \"text.txt\", "
	"\"sequence_length\": 6, \"batch_size\": 4}, \"fit\": {\"epochs\": 2, \"steps_per_epoch\": 6}, \"generate\": {\"prompt\": "
	"\"the \", \"length\": 30}, \"ipu\": {\"auto_select_ipus\": 2}}";

/* With a report where the name begins with '+'. */
static const char *const lines[][2] = {
	{"on the processor", "run.json --data.drop_remainder false --weights.save w.npz"},
	{"watched", "run.json --watch --fit.epochs 5 --compile.optimizer.config.learning_rate 0.5"},
	{"weighted and padded", "run.json --ipu {} --data.pad_remainder true --fit.class_weight {\"0\":1,\"1\":2,\"2\":0.5} --predict {} --weights.save w.h5"},
	{"in half, on two replicas", "run.json --ipu.auto_select_ipus 2 --compile.dtype_policy mixed_float16 --data.pad_remainder true --weights.save w.npz"},
	{"+as a pipeline", "run.json --full"},
	{"+with statistics alone", "run.json --full --outfeed.capture stats --outfeed.optimizer_mode AFTER_COMPUTE --pipeline.schedule Grouped --gradient_accumulation.steps_per_replica 4 --evaluate null --fit.validation false --predict null"},
	{"+with bad numbers", "run.json --ipu {} --compile.optimizer {\"class_name\":\"SGD\",\"config\":{\"learning_rate\":1e38}}"},
	{"callbacks by step", "run.json --full --fit.asynchronous_callbacks true --fit.epochs 3"},
	{"offloaded and recomputed", "run.json --full --ipu.allow_recompute true --pipeline.offload_activations true --pipeline.accumulate_outfeed true --outfeed null"},
	{"two outputs", "outputs.json"},
	{"two outputs, on two replicas", "outputs.json --ipu.auto_select_ipus 2 --data.batch_size 3"},
	{"+two outputs, accumulated", "outputs.json --gradient_accumulation {\"steps_per_replica\":2,\"reduction\":\"mean\"} --compile.steps_per_execution 6 --outfeed {\"capture\":\"full\"}"},
	{"what comes next", "writer.json"},
	{"what may come next", "writer.json --generate.temperature 0.7 --fit.seed 5"},
	{"a summary", "run.json --full --summary"},
	{"the run file", "run.json --full --print-run"},
	{"a quiet run", "run.json --quiet"},
	{"what there is", "--list"},
	{"help of a run", "run.json --help"},
	{"help of a comparison", "compare --help"},
	{"no such file", "nosuch"},
	{"no such data", "run.json --data.path nosuch.csv"},
	{"other data", "run.json --data.target nosuch"},
	{"weights that do not fit", "run.json --weights.load data.csv"},
	{"too many steps", "run.json --full --fit.steps_per_epoch 7"},
	{"a comparison of nothing", "compare nosuch"},
};

/* A number to nine digits: versions of SQLite differ in the fifteenth. */
#define REAL(x) "CASE WHEN " x " NOT NULL THEN printf('%.9g', " x ") END"

/* What is recorded, but for times of the host. */
static const char *const questions[] = {
	"SELECT rank, mode, epoch, execution, step, name, " REAL("value") " FROM metrics WHERE name NOT LIKE '%second%' AND name NOT LIKE '%time%' AND name NOT LIKE '%_us' ORDER BY 1, 2, 3, 4, 5, 6",
	"SELECT rank, mode, epoch, execution, first_step, steps, updates, start_cycle, cycles, traced FROM executions ORDER BY 1, 4",
	"SELECT layer, class, position, stage, output_shape, params, trainable_params, flops FROM layers ORDER BY position",
	"SELECT queue, key, kind, layer, stage, shape, dtype FROM tensors ORDER BY 1, 2",
	"SELECT queue, key, kind, layer, stage, phase, mode, epoch, execution, weight_update, step, microbatch, replica, n, n_nan, n_zero, n_pos, n_neg, " REAL("min") ", " REAL("max") ", " REAL("mean") ", " REAL("std") ", " REAL("l1") ", " REAL("l2") " FROM tensor_stats ORDER BY 1, 2, 7, 8, 9, 10, 11, 12, 13",
	"SELECT queue, key, mode, epoch, weight_update, step, microbatch, replica, shape, hex(data) FROM captures ORDER BY 1, 2, 3, 4, 5, 6, 7, 8",
	"SELECT mode, epoch, callback, queue, key, shape, " REAL("mean") ", " REAL("std") ", " REAL("min") ", " REAL("max") ", nans, infs FROM tensor_epochs ORDER BY 1, 2, 3, 4, 5",
	"SELECT rule, queue, key, layer, stage, phase, mode, epoch, execution, weight_update, step, microbatch, replica FROM health ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13",
	"SELECT position, role, queue, key, kind, layer, stage, phase, step, n, n_nan, n_pos_inf FROM nonfinite_trail ORDER BY 1",
	"SELECT clock, phase, mode, epoch, execution, weight_update, step, microbatch, replica, ipu, stage FROM stage_timings ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
	"SELECT schedule, stages, microbatches, mode, replica, step, makespan_ns, " REAL("idle_fraction") ", " REAL("theory_idle_fraction") " FROM bubbles WHERE clock = 'device' ORDER BY 4, 5, 6, 7",
	"SELECT mode, epoch, execution, weight_update, step, microbatch, replica, ipu, stage, phase, trace_step, type, name, operation, cycles FROM device_steps ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
	"SELECT variable, layer, kind, shape, dtype, bytes, ipu FROM variables ORDER BY 1, 7",
	"SELECT category, name, mode, epoch, execution, step, microbatch, replica, stage, phase, count(*) FROM spans WHERE category NOT IN ('writer', 'wait') GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
};
/* clang-format on */

static uint64_t digest;

static void add(const char *text, size_t length)
{
	digest = support_digest_text(digest, text, length);
}

static void print_digest(const char *what, FILE *out)
{
	fprintf(out, "%s%016" PRIx64, what, digest);
	digest = SUPPORT_DIGEST;
}

static void write_data(void)
{
	char text[ROWS * 64] = "w,x,y,z,class\n";
	uint32_t state = 7;

	for (int i = 0; i < ROWS; i++) {
		double v[4];

		for (int k = 0; k < 4; k++) {
			state = state * 1664525 + 1013904223;
			v[k] = (double)(state >> 20) / 4096;
		}
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%g,%g,%g,%g,%d\n", v[0],
			 v[1], v[2], v[3], (v[0] * 2 + v[2] > 1.2) + (v[1] > 0.7));
	}
	support_write_file("data.csv", text, strlen(text));
	support_write_file("run.json", run, strlen(run));
	support_write_file("outputs.json", outputs, strlen(outputs));
	support_write_file("writer.json", writer, strlen(writer));
	text[0] = '\0';
	for (int i = 0; i < 20; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "the %s hat a cat\n",
			 i % 3 ? "cat" : "tea");
	support_write_file("text.txt", text, strlen(text));
}

/* Steps are masked where all their numbers are 0. */
static void write_arrays(void)
{
	static const struct npz_member members[] = {
		{"x_train", DTYPE_FLOAT32, 3, {26, 4, 3}}, {"y_train_a", DTYPE_INT32, 2, {26, 4}},
		{"y_train_b", DTYPE_FLOAT32, 2, {26, 2}},  {"x_test", DTYPE_FLOAT32, 3, {9, 4, 3}},
		{"y_test_a", DTYPE_INT32, 2, {9, 4}},      {"y_test_b", DTYPE_FLOAT32, 2, {9, 2}},
	};
	struct npz_writer npz;
	enum status status = npz_writer_open(&npz, "data.npz", NULL);
	uint32_t state = 3;

	for (size_t m = 0; m < sizeof(members) / sizeof(*members) && status == ST_OK; m++) {
		float values[26 * 4 * 3];
		int32_t classes[26 * 4];
		const bool whole = members[m].type == DTYPE_INT32;
		size_t count = 1;

		for (int d = 0; d < members[m].ndim; d++)
			count *= (size_t)members[m].dim[d];
		for (size_t i = 0; i < count; i++) {
			state = state * 1664525 + 1013904223;
			if (whole)
				classes[i] = (int32_t)(state >> 24) / 86;
			else
				values[i] = !m && i % 24 < 3 ? 0 : (float)(state >> 16) / 65536;
		}
		npz_writer_begin(&npz, &members[m], 4 * count);
		npz_writer_data(&npz, whole ? (const void *)classes : values, 4 * count);
		status = npz_writer_end(&npz);
	}
	assert_int_equal(npz_writer_close(&npz, status), ST_OK);
}

/* Add a text's lines without what differs from run to run: where the report is, how long a step
 * took, where its line was broken for that, and what the compilation has come to. */
static void add_screen(const char *text)
{
	while (*text) {
		const size_t length = strcspn(text, "\n");
		const char *end = text + length, *took = memmem(text, length, "] - ", 4),
			   *step = took ? memmem(took, (size_t)(end - took), "/step", 5) : NULL;
		const bool differs = memmem(text, length, "report/tf_", 10) || text[0] == '[';

		if (step) {
			add(text, (size_t)(took - text));
			add(step, (size_t)(end - step));
		} else if (!differs) {
			add(text, length);
		}
		text = end + (*end == '\n');
		if (strncmp(text, "    ", 4) == 0) {
			add(" - ", 3);
			text += 4;
		} else if (!differs) {
			add("\n", 1);
		}
	}
}

static void add_files(const char *pattern)
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		size_t length;
		char *text = support_read_file(found.gl_pathv[i], &length);

		add(found.gl_pathv[i], strlen(found.gl_pathv[i]));
		add(text, length);
		free(text);
		assert_int_equal(unlink(found.gl_pathv[i]), 0);
	}
	globfree(&found);
}

static void print_report(FILE *out)
{
	glob_t found;

	assert_int_equal(glob("report/*/profile.db", 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	for (size_t q = 0; q < sizeof(questions) / sizeof(*questions); q++) {
		char *rows = prof_ask_all(found.gl_pathv[0], questions[q]);

		add(rows, strlen(rows));
		free(rows);
		print_digest(q % 7 ? " " : "\n    ", out);
	}
	globfree(&found);
	support_tempdir_remove("report");
}

static void print_all(FILE *out)
{
	support_enter();
	write_data();
	write_arrays();
	digest = SUPPORT_DIGEST;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		const bool reports = lines[i][0][0] == '+';
		struct support_result result;

		support_shell(&result,
			      "LC_ALL=C.UTF-8 POPLAR_ENGINE_OPTIONS='%s' '%s/ipu-train' $(cat "
			      "<<'E'\n%s\nE\n)",
			      reports ? "{\"autoReport.all\":\"true\",\"autoReport.directory\":"
					"\"report\"}"
				      : "",
			      support_bin_dir(), lines[i][1]);
		add_screen(result.out);
		/* What is said beside a training's screen depends on what else the machine does. */
		if (result.exit_code != 0)
			add_screen(result.err);
		fprintf(out, "%s: exit code %d", lines[i][0], result.exit_code);
		print_digest(", screen ", out);
		add_files("out.npz");
		add_files("w.npz");
		add_files("best.npz");
		add_files("log.csv");
		print_digest(", files ", out);
		if (reports)
			print_report(out);
		fputc('\n', out);
		support_result_free(&result);
	}
	support_leave();
}

static void test_no_training_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("train_runs.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_training_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
