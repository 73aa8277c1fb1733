/*
 * ipu-plan, called in this program: what it prints for good and bad requests is what it printed
 * before, in tests/golden/plan_commands.txt, which UPDATE_GOLDEN=1 rewrites: the exit code, the
 * request and its answer, of several lines a digest.
 */
#include "model/plan/plan_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "support/run_checks.h"
#include "support/support.h"

#define WORDS_MOST 24

/* clang-format off */
#define RUN "run.json"
static const char run[] =
	"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
	"{\"class_name\": \"Dense\", \"config\": {\"units\": 8, \"batch_input_shape\": [null, 6]}}, "
	"{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}]}}, \"compile\": {\"loss\": \"mse\", "
	"\"steps_per_execution\": 24}, \"fit\": {\"steps_per_epoch\": 24}, \"data\": {\"name\": "
	"\"npz\", \"batch_size\": 4}, \"flags\": {\"--cpu\": {\"ipu\": null}, \"--pipe\": {\"ipu\": "
	"{\"auto_select_ipus\": 2}, \"gradient_accumulation\": {\"steps_per_replica\": 12}, "
	"\"pipeline\": {\"stages\": [0, 1]}}}}";

static const char *const lines[] = {
	"", "modle", "transformer", "--hlp", "--json", "-x", "model", "scale", "schedule", "op", "conv",
	"--help", "-h", "model --help", "scale -h", "schedule --help", "op --help", "conv --help",
	"matmul x --help", "--man", "--completion bash", "--completion zsh", "--completion fish",
	"--completion tcsh", "model --man",
	/* The run file. */
	"model nosuch", "model " RUN " --cpu", "model " RUN " --target ipu9", "model " RUN " --json --jsn",
	"model " RUN, "model " RUN " --target c600 --json", "model --target ipu1 " RUN " --pipe",
	"model " RUN " --pipe --json", "model " RUN " --pipe --pipeline.stages auto --json",
	"model " RUN " --fit null --predict {\"steps\":24}", "model " RUN " --measure-input",
	"model " RUN " --data.name mnist --data.path x", "model " RUN
	"model " RUN " --data.path x --compile.steps_per_execution 12",
	"model " RUN " --fit.steps_per_epoch null", "model " RUN " --data.inputs [\"x\",\"y\"]",
	"scale " RUN, "scale " RUN " --csv", "scale " RUN " --json", "scale " RUN " --pipe --ipus 2,4,...,32",
	"scale " RUN " --pipe --pipeline.stages auto --ipus 2,4", "scale " RUN " --pipe --ipus 1",
	"scale " RUN " --ipus 1,3,5,...,9,20 --host.input_us 3000", "scale " RUN " --ipus 1,1",
	"scale " RUN " --ipus 1,2,...,5000", "scale " RUN " --ipus 1,2,...", "scale " RUN " --ipus 1,...,4",
	"scale " RUN " --ipus 1,2,...,400 --csv", "scale " RUN " --ipus 1,x", "scale " RUN " --ipus ,",
	"scale " RUN " --ipus 4096 --host.input_us 0.5", "scale " RUN " --ipus 4097", "scale " RUN " --cpu",
	/* Operations. */
	"conv --in-channels 4 --out-channels 6 --field 8x9 --kernel 3x2 --dilation 2 --groups 2",
	"conv --in-channels 4 --out-channels 6 --field 8 --kernel 3 --dilation 2x1 --stride 2x3 --pass all",
	"conv --in-channels 4 --out-channels 6 --field 9 --kernel 5 --dilation 2 --padding valid",
	"conv --in-channels 4 --out-channels 6 --field 8 --kernel 5 --dilation 2 --padding valid",
	"conv --in-channels 4 --out-channels 6 --field 8 --dtype float16 --partials half --batch 3",
	"conv --in-channels 4 --out-channels 6 --field 8 --groups 4", "conv --out-channels 3 --field 3",
	"conv --in-channels 3 --field 3", "conv --in-channels 4 --out-channels 6 --field 8x",
	"conv --in-channels 4 --out-channels 6 --field x8",
	"conv --in-channels 4 --out-channels 6 --field 123456789012345678901234567890123x4",
	"conv --in-channels 4 --out-channels 6 --field 8 --json",
	"matmul 64 32 16 --available-memory-proportion 0.1 --tiles 8", "matmul 64 32 16 --dtype float16",
	"matmul 2000 3000 4000 --available-memory-proportion 0.01 --dtype float16 --partials float16",
	"matmul 64 32 16 --available-memory-proportion 0", "matmul 64 32 16 --available-memory-proportion 1",
	"op lstm --steps 5 --features 4 --units 3 --pass all", "op gru --steps 5 --features 4 --units 3 --json",
	"op rnn --steps 5 --features 4 --units 3 --csv --pass all",
	"op lstm --steps 5 --features 4 --units 3 --pass all --json",
	"op conv1d --in-channels 4 --out-channels 6 --length 9 --kernel 3 --stride 2 --dilation 1",
	"op conv1d --in-channels 4 --out-channels 6 --length 9 --kernel 3x1 --stride 2x3",
	"op conv1d --in-channels 4 --out-channels 6 --length 9 --dilation 2x3",
	"op conv1d --in-channels 4 --out-channels 6 --length 9 --groups 4",
	"op conv1d --in-channels 4 --out-channels 6 --length 9 --groups 3",
	"op conv2dtranspose --in-channels 4 --out-channels 6 --field 8 --kernel 3 --stride 2 --padding valid",
	"op conv2dtranspose --in-channels 4 --out-channels 6 --field 8 --kernel 2 --stride 3 --padding valid",
	"op conv2dtranspose --in-channels 4 --out-channels 6 --field 8 --kernel 3 --dilation 2 --padding valid",
	"op conv2dtranspose --in-channels 4 --out-channels 6 --field 1000000 --kernel 3 --stride 1000000",
	"op pool --channels 4 --field 8 --kernel 2 --pass all", "op pool --channels 4 --field 8 --kernel 2 "
	"--stride 3 --average", "op pool --channels 4 --field 3 --kernel 4",
	"op attention --length 6 --features 8 --heads 2 --keys 5", "op attention --length 6 --features 9 "
	"--heads 2", "op attention --length 6 --features 9 --heads 2 --head-size 4 --dtype float16",
	"op groupnorm --channels 8 --groups 4 --field 3", "op groupnorm --channels 8 --groups 3 --field 3",
	"op softmax --channels 9 --batch 7", "op reduce --inputs 100 --outputs 10",
	"op embedding --entries 50 --units 4 --lookups 3 --pass all", "op reduce --inputs 5 --pass backward-data",
	"op reduce --inputs 100 --outputs 10 --json", "op reduce --inputs 10 --outputs 10 --json",
	"op reduce --inputs 10 --outputs 10",
	/* Schedules. */
	"schedule --schedule gpipe --stages 3 --microbatches 4 --forward 1 --backward 2 --ascii",
	"schedule --schedule 1f1b --stages 2 --microbatches 3 --forward 1,2 --backward 2,4 --ascii "
	"--width 60", "schedule --all --stages 2 --microbatches 4 --forward 1 --backward 2 --ascii",
	"schedule --schedule zb-h1 --stages 3 --microbatches 6 --forward 1 --backward-input 1 --backward-weight 1 --json",
	"schedule --schedule 1f1b --stages 2 --microbatches 3 --forward 0 --backward 0 --ascii",
	"schedule --schedule 1f1b --stages 2 --microbatches 3 --forward 1,2,3 --backward 1",
	"schedule --schedule 1f2b --stages 2 --microbatches 3 --forward 1 --backward 1",
	"schedule --schedule 1f1b --stages 2 --microbatches 3 --forward 1x --backward 1",
	"schedule --schedule 1f1b --stages 2 --microbatches 3 --forward -1 --backward 1",
	"schedule --schedule 1f1b --stages 2 --microbatches 3 --forward 1e-9 --backward 1",
};
/* clang-format on */

static enum status describe(struct run_data *out, const struct run_file *file, struct err *err)
{
	if (file->data.path)
		return err_set(err, ST_NOTFOUND, "%s: there is no such file", file->data.path);
	return plan_run_data(out, file, err);
}

static enum status measure_input(double *us, const struct run_file *file, struct err *err)
{
	(void)file;
	(void)err;
	*us = 12.5;
	return ST_OK;
}

static enum status looking(double *bytes, const struct plan_run *plan, struct err *err)
{
	(void)plan;
	(void)err;
	*bytes = 1000;
	return ST_OK;
}

static const struct plan_trainer trainer = {.checks = &support_run_checks,
					    .describe = describe,
					    .looking = looking,
					    .measure_input = measure_input};

/* A text of several lines: their number and a digest. */
static void print_text(const char *text, FILE *out)
{
	int count = 0;

	for (const char *c = text; *c; c++)
		count += *c == '\n';
	if (count == 1) {
		fprintf(out, " => %s", text);
		return;
	}
	fprintf(out, " => %d lines, %016" PRIx64 "\n", count, support_digest_output(text));
}

static void print_line(const char *line, FILE *out)
{
	char *words = mem_printf("ipu-plan %s", line), *argv[WORDS_MOST], *rest = NULL, *text[2];
	struct support_caught caught[2];
	int argc = 0, code;

	assert_non_null(words);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS_MOST);
		argv[argc++] = word;
	}
	support_catch(&caught[0], STDOUT_FILENO, -1);
	support_catch(&caught[1], STDERR_FILENO, -1);
	code = plan_command(argc, argv, &trainer);
	text[1] = support_give_back(&caught[1]);
	text[0] = support_give_back(&caught[0]);
	/* What is refused prints nothing else. */
	assert_int_equal(!text[0][0], code != 0);
	assert_int_equal(!text[1][0], code == 0);
	fprintf(out, "%d ipu-plan %s", code, line);
	print_text(text[code != 0], out);
	free(text[0]);
	free(text[1]);
	mem_free(words);
}

static void print_all(FILE *out)
{
	support_enter();
	support_write_file(RUN, run, strlen(run));
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		print_line(lines[i], out);
	support_leave();
}

static void test_nothing_that_is_answered_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("plan_commands.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_that_is_answered_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
