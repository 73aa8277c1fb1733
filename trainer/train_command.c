/*
 * The command ipu-train: its options, signals, and the run.
 */
#include "trainer/train_command.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/cli.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "model/applications/application.h"
#include "model/layers/layer.h"
#include "model/learn/loss.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "model/learn/schedule.h"
#include "model/run/run_file.h"
#include "trainer/callbacks/callback.h"
#include "trainer/train_job.h"
#include "trainer/train_ranks.h"

static const struct cli_option OPTIONS[] = {
	{.name = "--generate",
	 .argument = "TEXT",
	 .help = "Let the model go on with TEXT after each epoch and at the end: "
		 "--generate.prompt, of data.name text."},
	{.name = "--list",
	 .help = "List the examples by name, with a line each, then the layers, losses, "
		 "optimizers, metrics, callbacks and applications that a run file may name, and "
		 "stop."},
	{.name = "--print-run",
	 .help = "Print the run file that results from the file, its flags and the overrides, and "
		 "stop."},
	{.name = "--quiet", .letter = 'q', .help = "Print errors and broken health rules only."},
	{.name = "--summary",
	 .help = "Print the model's summary and the stage of each layer, and stop."},
};

static const struct cli_command *train_verb(size_t at)
{
	return at == 0 ? &train_compare_cli : NULL;
}

static const struct cli_command COMMAND = {
	.name = "ipu-train",
	.synopsis = "RUN [FLAG ...] [--key value ...] | compare ...",
	.summary = "train a Keras-style model on a simulated IPU system",
	.about =
		"Trains the model of the run file RUN (JSON) on the CPU while it plays a Graphcore "
		"IPU system, and prints what a Keras user expects to see.\n\n"
		"RUN is a path, or the name of an example that is installed with the program: "
		"`--list` lists them. Without a '/' in it, RUN and RUN.json in the working "
		"directory come first.\n\n"
		"`ipu-train compare` trains the networks of keras.applications for a few steps "
		"each; `ipu-train compare --help` says more.\n\n"
		"RUN may define flags of its own; any other option is a key of the run file: "
		"`--fit.epochs 5`. `ipu-train RUN --help` lists both.\n\n"
		"With POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\"}' everything that "
		"happens "
		"is recorded in a report directory tf_report__...; look at it with ipu-view, "
		"ipu-report or sqlite3. Without the variable nothing is recorded. SIGUSR1 writes "
		"what outfeed.capture keeps in memory (\"last N\") into the report.\n\n"
		"While a recorded run trains, health rules look at its tensors and losses: a "
		"line that begins with [HEALTH] on stderr says which was broken, where and when, "
		"and first_nonfinite where bad numbers began. `--health.stop nonfinite` ends the "
		"run then, recorded or not.",
	.options = OPTIONS,
	.option_count = ARRAY_LEN(OPTIONS),
	.examples = "ipu-train inspect-tensors\ttrain an example: the tensor inspection tutorial\n"
		    "ipu-train inspect-tensors --no-pipelining\twith a flag of the run file\n"
		    "ipu-train run.json --fit.epochs 1 --data.path ~/mnist\twith keys overridden\n"
		    "ipu-train run.json --outfeed.capture full --outfeed.gradients none\tkeep the "
		    "values of all gradients, for `ipu-report REPORT export npz`\n"
		    "ipu-train gpt --data.path book.txt --generate 'In the beginning'\tlearn a "
		    "text, and go on with a few words\n"
		    "mpirun -n 2 ipu-train keras-mnist --ipu.auto_select_ipus 4\tshare four "
		    "replicas out over two processes (docs/distributed.md)\n"
		    "ipu-train run.json --health.stop nonfinite\tend at the first number that is "
		    "none\n",
	.words = "FILE",
	.names = "ipu-train --list",
	.verb = train_verb,
	.details =
		"FILES\nBelow share/ipuscope, beside the folder of the program: examples has the "
		"examples (copy one to begin a run file), script what fetches MNIST and CIFAR-10, "
		"docs/run-file.md every key.\n\n"
		"SIGNALS\nSIGINT and SIGTERM end the run after the present weight update, with a "
		"finished report; a second one ends it at once. SIGUSR1 writes the values that "
		"outfeed.capture keeps in memory (\"last N\") into the report, and training goes "
		"on.\n\n"
		"ENVIRONMENT\nPOPLAR_ENGINE_OPTIONS: a JSON object of engine options; autoReport.* "
		"turn reports on. IPUSCOPE_DATA: a folder of data sets. XDG_CACHE_HOME: where the "
		"synthetic data set is kept. XDG_RUNTIME_DIR: where the run announces itself for "
		"ipu-monitor; where it is not set, a folder of the user's own in TMPDIR or /tmp.",
};

#define OPTIONS_MOST 160

/* Return the command with every key of a run file as an option: for the man page, the
 * completions and `RUN --help`. @arena owns the texts; keys are omitted if it runs out of
 * memory. */
static struct cli_command full_command(struct cli_option options[OPTIONS_MOST], struct arena *arena)
{
	struct cli_command command = COMMAND;
	int count;
	const struct run_key *keys = run_file_keys(&count);
	size_t used = ARRAY_LEN(OPTIONS);

	memcpy(options, OPTIONS, sizeof(OPTIONS));
	for (int i = 0; i < count && used < OPTIONS_MOST; i++) {
		const char *fallback = !keys[i].fallback ? "must be given" : keys[i].fallback;
		const struct cli_option option = {
			.name = arena_printf(arena, "--%s", keys[i].path),
			.argument = "VALUE",
			.choices = keys[i].choices,
			.help = arena_printf(arena, "%s (%s; %s%s)", keys[i].help,
					     run_key_type(&keys[i]),
					     !keys[i].fallback ? "" : "default ", fallback),
		};

		if (option.name && option.help)
			options[used++] = option;
	}
	command.options = options;
	command.option_count = used;
	return command;
}

/* The command line, except for the words that belong to the run file. */
struct request {
	char *command; /* the whole command line, as typed */
	const char *run_path;
	bool list, print_run, summary, quiet, help;
	int count; /* words for the run file */
	char **words;
};

/* ---- what a run file may name ---------------------------------------------------------------- */

#define WIDTH 80

/* Lists of names in lines of at most WIDTH columns, each below a heading. */
struct lists {
	FILE *out;
	size_t column; /* 0: before the first list */
	bool any;      /* the list has a name */
};

static void begin_list(struct lists *lists, const char *heading)
{
	fprintf(lists->out, "%s\n%s:", lists->column > 0 ? "\n" : "", heading);
	lists->column = WIDTH;
	lists->any = false;
}

/* Losses and metrics are named by their class, with the @function's name in brackets; else NULL. */
static void add_name(struct lists *lists, const char *name, const char *function)
{
	const size_t length = strlen(name) + (function ? strlen(function) + strlen(" ()") : 0);

	fputs(lists->any ? "," : "", lists->out);
	if (lists->column + strlen(", ,") + length > WIDTH) {
		fputs("\n ", lists->out);
		lists->column = 1;
	}
	fprintf(lists->out, function ? " %s (%s)" : " %s", name, function);
	lists->column += strlen(", ") + length;
	lists->any = true;
}

static void list_supported(FILE *out)
{
	struct lists lists = {.out = out};
	const char *const *names, *name;
	int count;

	begin_list(&lists, "Layers");
	names = layer_names(&count);
	for (int i = 0; i < count; i++)
		add_name(&lists, names[i], NULL);
	begin_list(&lists, "Losses");
	for (int i = 0; i < LOSS_KINDS; i++) {
		const struct loss loss = {.kind = (enum loss_kind)i};

		add_name(&lists, loss_class_name(&loss), loss_name(&loss));
	}
	begin_list(&lists, "Optimizers");
	for (int i = 0; i < OPTIMIZER_KINDS; i++) {
		const struct optimizer optimizer = {.kind = (enum optimizer_kind)i};

		add_name(&lists, optimizer_name(&optimizer), NULL);
	}
	add_name(&lists, OPTIMIZER_LOSS_SCALE, NULL);
	begin_list(&lists, "Learning-rate schedules");
	for (int i = 0; (name = schedule_kind_name(i)); i++)
		add_name(&lists, name, NULL);
	begin_list(&lists, "Metrics");
	for (int i = 0; i < METRIC_KINDS; i++)
		add_name(&lists, metric_kind_class((enum metric_kind)i),
			 metric_kind_name((enum metric_kind)i));
	add_name(&lists, "accuracy", NULL);
	add_name(&lists, "every loss", NULL);
	begin_list(&lists, "Callbacks");
	for (int i = 0; (name = callback_class_name(i)); i++)
		add_name(&lists, name, NULL);
	begin_list(&lists, "Applications (models of their own, or layers)");
	names = application_names(&count);
	for (int i = 0; i < count; i++)
		add_name(&lists, names[i], NULL);
	fputc('\n', out);
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool is_option(const char *word, const char *name)
{
	const size_t length = strlen(name);

	return strncmp(word, name, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

/* --generate TEXT is short for a key of the run file. Return whether @next was used as the text. */
static bool add_prompt(struct request *request, char *word, char *next)
{
	static char key[] = "--generate.prompt";
	char *value = strchr(word, '=');
	const bool separate = !value && next && next[0] != '-';

	request->words[request->count++] = key;
	if (value || separate)
		request->words[request->count++] = value ? value + 1 : next;
	return separate;
}

/* Return the field of the switch @word; NULL if it is none, and with an error if it has a value. */
static bool *find_switch(struct request *request, const char *word, struct err *err)
{
	const struct {
		const char *name, *letter;
		bool *field;
	} switches[] = {
		{"--list", NULL, &request->list},       {"--print-run", NULL, &request->print_run},
		{"--quiet", "-q", &request->quiet},     {"--help", "-h", &request->help},
		{"--summary", NULL, &request->summary},
	};

	for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
		if (strcmp(word, switches[i].name) == 0 ||
		    (switches[i].letter && strcmp(word, switches[i].letter) == 0))
			return switches[i].field;
		if (is_option(word, switches[i].name))
			err_set(err, ST_INVALID, "%s takes no value", switches[i].name);
	}
	return NULL;
}

/* Parse the command's own options; pass all other words to the run file. */
static enum status read_request(struct request *request, int argc, char **argv, struct err *err)
{
	struct str command = {0};

	str_add(&command, COMMAND.name);
	for (int i = 1; i < argc; i++)
		str_addf(&command, " %s", argv[i]);
	request->command = command.text;
	request->words = mem_calloc(2 * (size_t)argc + 1, sizeof(*request->words));
	if (command.failed || !request->words)
		return err_nomem(err);
	for (int i = 1; i < argc; i++) {
		bool *on = find_switch(request, argv[i], err);

		if (err->status != ST_OK)
			return err->status;
		if (on)
			*on = true;
		else if (is_option(argv[i], "--generate"))
			i += add_prompt(request, argv[i], argv[i + 1]);
		else if (!request->run_path && argv[i][0] != '-')
			request->run_path = argv[i];
		else
			request->words[request->count++] = argv[i];
	}
	if (!request->run_path && !request->list)
		return err_set(err, ST_INVALID,
			       "a run file is missing: `ipu-train RUN` (--list lists examples, "
			       "--help says more)");
	return ST_OK;
}

/* ---- actions --------------------------------------------------------------------------------- */

static enum status print_run(const struct run_file *run, struct err *err)
{
	char *text = cJSON_Print(run->json);
	struct jsonw w;

	if (!text)
		return err_nomem(err);
	jsonw_init_file(&w, stdout, 0);
	jsonw_value(&w, text);
	cJSON_free(text);
	return jsonw_end(&w, err);
}

static enum status print_help(const struct run_file *run, struct err *err)
{
	struct cli_option options[OPTIONS_MOST];
	struct cli_command command;
	struct arena arena;
	enum status status;

	if (arena_init(&arena, 0) != 0)
		return err_nomem(err);
	/* First the file's own flags, then the keys that every run file has. */
	status = run_file_help(run, stdout);
	command = full_command(options, &arena);
	putchar('\n');
	cli_help(&command, stdout);
	arena_fini(&arena);
	return status == ST_NOMEM ? err_nomem(err) : status;
}

/* --help lists only the command's options; man page and completions include the keys, too. */
static bool standard_request(int argc, char **argv)
{
	struct cli_option options[OPTIONS_MOST];
	struct cli_command command;
	struct arena arena;
	bool done;

	if (argc < 2 || argv[1][0] != '-')
		return false;
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cli_standard(&COMMAND, argc, argv, stdout);
	if (arena_init(&arena, 0) != 0)
		return false;
	command = full_command(options, &arena);
	done = cli_standard(&command, argc, argv, stdout);
	arena_fini(&arena);
	return done;
}

static bool trains(const struct request *request)
{
	return !request->help && !request->print_run && !request->summary && !request->list;
}

/* Before the run begins an interrupt loses nothing: the first one ends the program. */
static volatile sig_atomic_t training;

static enum status run_request(struct train_job *job, const struct request *request,
			       struct err *err)
{
	char path[FS_PATH_SIZE];

	if (request->list) {
		enum status status = run_example_list(stdout, err);

		list_supported(stdout);
		return status;
	}
	if (trains(request) && train_job_join(job, err) != ST_OK)
		return err->status;
	if (run_example_find(path, request->run_path, err) == ST_OK &&
	    train_job_load(job, path, request->count, request->words, err) == ST_OK &&
	    trains(request))
		train_job_check_launched(job, err);
	if (train_ranks_agree(job->ranks, err->status, &job->others, err) != ST_OK)
		return err->status;
	if (request->help)
		return print_help(job->plan.run, err);
	if (request->print_run)
		return print_run(job->plan.run, err);
	if (train_job_prepare(job, err) != ST_OK || request->summary)
		return err->status;
	training = 1;
	return train_job_run(job, err);
}

/* ---- signals: the first Ctrl-C ends the run in an orderly way, the second at once ------------ */

static void on_signal(int number)
{
	train_interrupt();
	/* The kernel repeats SIGXCPU each second until the limit that kills. */
	signal(number, number == SIGXCPU ? SIG_IGN : SIG_DFL);
	if (!training)
		raise(number);
}

static void on_flush(int number)
{
	(void)number;
	train_flush();
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigaction before;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGXCPU, &action, NULL);
	/* Keep it ignored under nohup(1). */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	action.sa_handler = on_flush;
	sigaction(SIGUSR1, &action, NULL);
	/* A closed pipe is an error of a training to report, not a reason to be killed. */
	signal(SIGPIPE, SIG_IGN);
}

int train_command(int argc, char **argv)
{
	struct request request = {0};
	struct train_job job;
	struct err err = {ST_OK, ""};
	enum status status;
	int code = 0;

	if (argc > 1 && strcmp(argv[1], "compare") == 0)
		return train_compare_command(argc - 1, argv + 1);
	/* After a run file, --help is about that file. */
	if (standard_request(argc, argv))
		return 0;
	status = read_request(&request, argc, argv, &err);
	train_job_init(&job, stdout, request.quiet);
	job.command = request.command;
	job.screen.log = stderr;
	job.generated = stdout;
	if (status == ST_OK) {
		if (trains(&request))
			catch_signals();
		status = run_request(&job, &request, &err);
	}
	/* Print before this rank ends, since the launcher may kill all ranks once one has
	 * failed. */
	if (status != ST_OK)
		code = job.others ? status_exit_code(status) : cli_fail(&COMMAND, &err);
	train_job_free(&job);
	mem_free(request.words);
	mem_free(request.command);
	return code;
}
