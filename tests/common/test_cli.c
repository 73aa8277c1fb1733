/*
 * The command line: walking, mistakes, help, completions and the manual page.
 */
#include "common/cli.h"

#include <inttypes.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "support/support.h"

static const struct cli_option options[] = {
	{.name = "--color",
	 .letter = 'c',
	 .argument = "WHEN",
	 .choices = "auto always never",
	 .help = "Use colours: auto (the default) asks the terminal; it's never a matter of "
		 "taste [or of colons: these]."},
	{.name = "--json", .help = "Print JSON."},
	{.name = "--output", .letter = 'o', .argument = "FILE", .help = "Write to FILE."},
	{.name = "--an-option-with-a-very-long-name",
	 .argument = "VALUE",
	 .help = "Has its text on the next line."},
};

static const struct cli_command command = {
	.name = "ipu-test",
	.synopsis = "RUN [--key value ...]",
	.summary = "test the command line",
	.about = "The first paragraph is so long that it must be wrapped somewhere before it "
		 "reaches the eightieth column.\n\n"
		 ".The second one begins with a point.\n'And a quote, and a back\\slash.",
	.options = options,
	.option_count = ARRAY_LEN(options),
	.examples = "ipu-test run.json\tTrain what the file says.\n"
		    "ipu-test run.json --json\tThe same, as JSON.\n",
	.words = "FILE",
	.details = "FILES\nrun.json: the run file.\n\nSecond paragraph.\n\nENVIRONMENT\nNO_COLOR",
};

/* ---- walking --------------------------------------------------------------------------------- */

enum {
	MOST_WORDS = 8
};

static int count_words(char **argv)
{
	int argc = 0;

	while (argc < MOST_WORDS && argv[argc])
		argc++;
	return argc;
}

/* Write what the walk gives as "name=value;" with "@" before what the table does not know. */
static enum status walk(char **argv, bool open, char *out, size_t size, struct err *err)
{
	struct cli_argument argument;
	struct cli_walk state;
	size_t used = 0;
	bool more;

	out[0] = '\0';
	cli_begin(&state, &command, count_words(argv), argv, open);
	for (;;) {
		enum status status = cli_next(&state, &argument, &more, err);

		if (status != ST_OK || !more)
			return status;
		used += (size_t)snprintf(out + used, size - used, "%s%s=%s;",
					 argument.name && !argument.option ? "@" : "",
					 argument.name ? argument.name : "",
					 argument.value ? argument.value : "(none)");
	}
}

static void test_walk_gives_options_and_words(void **state)
{
	static const struct {
		const char *argv[MOST_WORDS];
		bool open;
		const char *walked;
	} rows[] = {
		{{"x"}, false, ""},
		{{"x", "a", "b"}, false, "=a;=b;"},
		{{"x", "--json"}, false, "--json=(none);"},
		{{"x", "--color", "never"}, false, "--color=never;"},
		{{"x", "--color=never", "w"}, false, "--color=never;=w;"},
		{{"x", "-c", "auto", "-oF"}, false, "--color=auto;--output=F;"},
		{{"x", "--output="}, false, "--output=;"},
		{{"x", "--output=a=b"}, false, "--output=a=b;"},
		{{"x", "--output=--json"}, false, "--output=--json;"},
		{{"x", "--output", "-5"}, false, "--output=-5;"},
		{{"x", "--output", "-"}, false, "--output=-;"},
		{{"x", "-", "-5", "-.5"}, false, "=-;=-5;=-.5;"},
		{{"x", "--", "--json", "--"}, false, "=--json;=--;"},
		{{"x", "--fit.epochs", "5"}, true, "@--fit.epochs=5;"},
		{{"x", "--fit.epochs=5", "--fit.seed=3"}, true, "@--fit.epochs=5;@--fit.seed=3;"},
		{{"x", "--fit.rate", "-0.5", "w"}, true, "@--fit.rate=-0.5;=w;"},
		{{"x", "--switch", "--json"}, true, "@--switch=(none);--json=(none);"},
		{{"x", "--switch"}, true, "@--switch=(none);"},
		{{"x", "--switch", "--", "w"}, true, "@--switch=(none);=w;"},
	};
	char out[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *argv[MOST_WORDS];
		struct err err;

		memcpy(argv, rows[i].argv, sizeof(argv));
		if (walk(argv, rows[i].open, out, sizeof(out), &err) != ST_OK)
			fail_msg("%s", err.text);
		assert_string_equal(out, rows[i].walked);
	}
}

static void test_mistakes_are_explained(void **state)
{
	static const struct {
		const char *argv[MOST_WORDS];
		const char *message;
	} rows[] = {
		{{"x", "--colour", "never"}, "unknown option --colour (did you mean --color?)"},
		{{"x", "--jsno"}, "unknown option --jsno (did you mean --json?)"},
		{{"x", "--colour=never"}, "unknown option --colour (did you mean --color?)"},
		{{"x", "--xyzzy"}, "unknown option --xyzzy (--help lists them)"},
		{{"x", "--versoin"}, "unknown option --versoin (did you mean --version?)"},
		{{"x", "-q"}, "unknown option -q"},
		{{"x", "--json=1"}, "--json takes no value"},
		{{"x", "--output"}, "--output needs a value: FILE"},
		{{"x", "--output", "--json"},
		 "--output needs a value: FILE (--output='--json' where that is it)"},
		{{"x", "-o"}, "--output needs a value: FILE"},
		{{"x", "--color", "alwys"},
		 "--color: unknown WHEN \"alwys\" (did you mean \"always\"?)"},
		{{"x", "--color", "blue"},
		 "--color: unknown WHEN \"blue\" (one of: auto always never)"},
		{{"x", "--color", ""}, "--color: unknown WHEN \"\""},
		{{"x", "--color", "auto always"}, "--color: unknown WHEN \"auto always\""},
		{{"x", "--completion", "fish"}, "--completion: unknown SHELL \"fish\""},
		{{"x", "--completion"}, "--completion needs a value: SHELL"},
	};
	char out[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *argv[MOST_WORDS];
		struct err err = {.text = ""};

		memcpy(argv, rows[i].argv, sizeof(argv));
		assert_int_equal(walk(argv, false, out, sizeof(out), &err), ST_INVALID);
		assert_contains(err.text, rows[i].message);
		assert_false(cli_standard(&command, count_words(argv), argv, stderr));
	}
}

static void test_an_endless_open_name_is_refused(void **state)
{
	char name[CLI_NAME_SIZE + 8], out[64];
	char *argv[MOST_WORDS] = {(char[]){"x"}, name};
	struct err err;

	(void)state;
	memset(name, 'n', sizeof(name));
	memcpy(name, "--", 2);
	memcpy(name + sizeof(name) - 3, "=1", 3);
	assert_int_equal(walk(argv, true, out, sizeof(out), &err), ST_INVALID);
	assert_contains(err.text, "too long");
	assert_int_equal(walk(argv, false, out, sizeof(out), &err), ST_INVALID);
}

static void test_a_word_can_be_given_back(void **state)
{
	char *argv[] = {(char[]){"x"}, (char[]){"--no-pipelining"}, (char[]){"run.json"}};
	struct cli_argument argument;
	struct cli_walk at;
	bool more;

	(void)state;
	cli_begin(&at, &command, 3, argv, true);
	assert_int_equal(cli_next(&at, &argument, &more, NULL), ST_OK);
	assert_string_equal(argument.value, "run.json");
	at.at--;
	assert_int_equal(cli_next(&at, &argument, &more, NULL), ST_OK);
	assert_true(more);
	assert_null(argument.name);
	assert_string_equal(argument.value, "run.json");
}

static void test_no_word_behind_the_last_is_a_value(void **state)
{
	char *argv[] = {(char[]){"x"}, (char[]){"--output"}, (char[]){"not counted"}};
	struct cli_argument argument;
	struct cli_walk at;
	struct err err;
	bool more;

	(void)state;
	cli_begin(&at, &command, 2, argv, false);
	assert_int_equal(cli_next(&at, &argument, &more, &err), ST_INVALID);
	assert_string_equal(err.text, "--output needs a value: FILE");
}

/* An empty table makes a list that is only a blank. Here blanks stand before it, too. */
static void test_a_list_of_no_words_is_empty(void **state)
{
	static const char blanks[] = "   ";
	static const struct cli_option none = {
		.name = "--none", .argument = "NAME", .choices = blanks + 2, .help = "None."};
	static const struct cli_command without = {
		.name = "x", .options = &none, .option_count = 1};
	char *argv[] = {(char[]){"x"}, (char[]){"--none=a"}, NULL};
	struct cli_argument argument;
	struct cli_walk at;
	struct err err;
	bool more;

	(void)state;
	cli_begin(&at, &without, 2, argv, false);
	assert_int_equal(cli_next(&at, &argument, &more, &err), ST_INVALID);
	assert_string_equal(err.text, "--none: unknown NAME \"a\" (one of: )");
}

/* ---- what is printed ------------------------------------------------------------------------- */

/*
 * What cli_standard() prints for one or two words; the caller's (free). NULL where it prints none.
 */
static char *standard(const char *word, const char *value)
{
	char *argv[] = {(char[]){"ipu-test"}, strdup(word), value ? strdup(value) : NULL};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	bool shown = cli_standard(&command, value ? 3 : 2, argv, out);

	fclose(out);
	free(argv[1]);
	free(argv[2]);
	if (!shown) {
		assert_int_equal(length, 0);
		free(text);
		return NULL;
	}
	return text;
}

static void test_help_is_tidy(void **state)
{
	char *text = standard("--help", NULL), *brief = standard("-h", NULL);

	(void)state;
	assert_string_equal(text, brief);
	assert_memory_equal(text, "Usage: ipu-test RUN [--key value ...]\n\n", 39);
	assert_contains(text, "\n  -c, --color WHEN        Use colours: auto");
	assert_contains(text, "\n      --json              Print JSON.\n");
	assert_contains(text, "\n      --an-option-with-a-very-long-name VALUE\n"
			      "                          Has its text on the next line.\n");
	assert_contains(text, "\n  -h, --help              Print this text.\n");
	assert_contains(text, "\n  ipu-test run.json\n      Train what the file says.\n");
	assert_contains(text,
			"\nExit codes: 0 done, 1 the work failed, 2 the request was wrong.\n");
	for (char *line = text; *line; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");

		assert_true(length <= 80);
		assert_true(!length || line[length - 1] != ' ');
	}
	free(text);
	free(brief);
}

/* Blank lines, line feeds and blanks at the end: whatever a help text has, no line ends in one. */
static void test_help_texts_keep_their_lines(void **state)
{
	static const struct cli_option spoken[] = {
		{.name = "--one", .help = "First.\n\nSecond,\nthird. \n"},
		{.name = "--two", .help = "Last.\n\n"},
	};
	static const struct cli_command with_lines = {
		.name = "x", .summary = "x", .options = spoken, .option_count = ARRAY_LEN(spoken)};
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	cli_help(&with_lines, out);
	fclose(out);
	assert_contains(text, "\n      --one               First.\n"
			      "\n"
			      "                          Second,\n"
			      "                          third.\n"
			      "\n");
	assert_contains(text, "\n      --two               Last.\n\n\n");
	for (const char *line = strstr(text, "Second"); (line = strchr(line, '\n')); line++)
		assert_true(line[-1] != ' ');
	free(text);
}

/* Two blanks stand before a text; without room for them it begins below. Nothing is too long. */
static void test_options_stand_beside_their_texts_where_they_fit(void **state)
{
	(void)state;
	for (int length = 1; length < 300; length++) {
		char argument[300], shown[128], expected[256], *text;
		struct cli_option option = {.name = "-x", .argument = argument, .help = "Text."};
		const struct cli_command one = {
			.name = "x", .summary = "x", .options = &option, .option_count = 1};
		size_t size;
		FILE *out = open_memstream(&text, &size);

		memset(argument, 'A', sizeof(argument));
		argument[length] = '\0';
		snprintf(shown, sizeof(shown), "      -x %.118s", argument);
		if (length <= 26 - 2 - 9)
			snprintf(expected, sizeof(expected), "\n%-26sText.\n", shown);
		else
			snprintf(expected, sizeof(expected), "\n%s\n%26sText.\n", shown, "");
		cli_help(&one, out);
		fclose(out);
		assert_contains(text, expected);
		free(text);
	}
}

/* A word that ends in the last column stays; one letter or byte of another character decides. */
static void test_help_is_wrapped_after_80_columns(void **state)
{
	(void)state;
	for (int length = 1; length < 60; length++) {
		char help[512], wide[256] = "", *text;
		struct cli_option option = {.name = "--one", .help = help};
		const struct cli_command one = {
			.name = "x", .summary = "x", .options = &option, .option_count = 1};
		size_t size;
		FILE *out = open_memstream(&text, &size);

		/* As many columns, and twice as many bytes. */
		for (int i = 0; i < length; i++)
			memcpy(wide + 2 * i, "\303\244", 3);
		snprintf(help, sizeof(help), "a %s b", wide);
		cli_help(&one, out);
		fclose(out);
		snprintf(help, sizeof(help), "%s%s%sb\n", "      --one               a",
			 28 + length > 80 ? "\n                          " : " ", wide);
		strcpy(strrchr(help, 'b'),
		       28 + length + 2 > 80 ? "\n                          b\n" : " b\n");
		assert_contains(text, help);
		free(text);
	}
}

static void test_version_is_one_line(void **state)
{
	char *text = standard("--version", NULL);

	(void)state;
	assert_memory_equal(text, "ipu-test ", 9);
	assert_true(strspn(text + 9, "0123456789.") >= 5);
	assert_string_equal(text + 9 + strspn(text + 9, "0123456789."), "\n");
	free(text);
}

static void test_standard_looks_only_at_options(void **state)
{
	char *no[] = {(char[]){"x"}, (char[]){"--output=--help"}, (char[]){"--"},
		      (char[]){"--help"}};
	char *yes[] = {(char[]){"x"}, (char[]){"--xyzzy"}, (char[]){"--color"}, (char[]){"blue"},
		       (char[]){"-h"}};
	FILE *null = fopen("/dev/null", "w");

	(void)state;
	assert_false(cli_standard(&command, 4, no, null));
	assert_false(cli_standard(&command, 1, no, null));
	assert_true(cli_standard(&command, 5, yes, null));
	fclose(null);
}

/* Write @text into @name of a new folder @dir. */
static void keep(char dir[SUPPORT_PATH_SIZE], char path[FS_PATH_SIZE], const char *text)
{
	support_tempdir(dir);
	assert_true(fs_path(path, "%s/text", dir));
	support_write_file(path, text, strlen(text));
}

static void check_bash(const char *path, const char *words, const char *replies)
{
	struct support_result result;

	support_shell(&result,
		      "bash -c 'source \"%s\"; COMP_WORDS=(%s); "
		      "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ipu_test; echo ${COMPREPLY[@]}'",
		      path, words);
	assert_string_equal(result.err, "");
	assert_string_equal(result.out, replies);
	support_result_free(&result);
}

static void test_bash_completion_works(void **state)
{
	char *text = standard("--completion", "bash"), *same = standard("--completion=bash", NULL);
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE];
	struct support_result result;

	(void)state;
	assert_string_equal(text, same);
	assert_contains(text, "complete -o filenames -F _ipu_test ipu-test\n");
	assert_contains(text, "\t--output|-o)\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n");
	assert_contains(text, "\t--an-option-with-a-very-long-name)\n\t\treturn\n");
	if (!support_has_program("bash"))
		skip();
	keep(dir, path, text);
	support_shell(&result, "bash -n '%s'", path);
	assert_int_equal(result.exit_code, 0);
	assert_string_equal(result.err, "");
	support_result_free(&result);

	check_bash(path, "ipu-test --co", "--color --completion\n");
	check_bash(path, "ipu-test --color al", "always\n");
	check_bash(path, "ipu-test -c \"\"", "auto always never\n");
	check_bash(path, "ipu-test --color = n", "never\n");
	check_bash(path, "ipu-test --color =", "auto always never\n");
	check_bash(path, "ipu-test --completion \"\"", "bash zsh\n");
	support_tempdir_remove(dir);
	free(text);
	free(same);
}

static void check_zsh(const char *path)
{
	struct support_result result;

	support_shell(&result, "zsh -n '%s'", path);
	assert_string_equal(result.err, "");
	assert_int_equal(result.exit_code, 0);
	support_result_free(&result);
}

static void test_zsh_completion_works(void **state)
{
	char *text = standard("--completion", "zsh");
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE];

	(void)state;
	assert_contains(text, "#compdef ipu-test\n");
	assert_contains(text, "'(-c --color)'{-c,--color=}'[Use colours\\: auto");
	assert_contains(text, "it'\\''s never");
	assert_contains(text, "\\[or of colons\\: these\\]");
	assert_contains(text, ":WHEN:(auto always never)'");
	assert_contains(text, ":FILE:_files'");
	if (support_has_program("zsh")) {
		keep(dir, path, text);
		check_zsh(path);
		support_tempdir_remove(dir);
	}
	assert_null(standard("--completion", "fish"));
	free(text);
}

static void test_words_complete_the_first_argument(void **state)
{
	struct cli_command worded = command;
	char *argv[] = {(char[]){"x"}, (char[]){"--completion"}, (char[]){"bash"}};
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE], *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	worded.words = "model matmul conv";
	assert_true(cli_standard(&worded, 3, argv, out));
	fclose(out);
	if (support_has_program("bash")) {
		keep(dir, path, text);
		check_bash(path, "ipu-test m", "model matmul\n");
		support_tempdir_remove(dir);
	}
	free(text);
}

static const char *second_word(size_t at)
{
	static const char *const words[] = {"summary", "spans", NULL};

	return words[at];
}

static const char *format_word(size_t at)
{
	static const char *const words[] = {"npz", "chrome"};

	return at < ARRAY_LEN(words) ? words[at] : NULL;
}

static const struct cli_command *verb_row(size_t at)
{
	static const struct cli_option of_diff[] = {
		{.name = "--gate", .argument = "PERCENT", .choices = "5 10", .help = "Fail."}};
	static const struct cli_command verbs[] = {
		{.name = "ipu-test diff",
		 .synopsis = "A B",
		 .options = of_diff,
		 .option_count = 1,
		 .words = "FILE"},
		{.name = "ipu-test export",
		 .synopsis = "FILE WHAT",
		 .words = "FILE",
		 .second = format_word},
	};

	return at < ARRAY_LEN(verbs) ? &verbs[at] : NULL;
}

/* Verbs have functions of their own, wherever they stand; the second word has its names. */
static void test_verbs_and_second_words_complete(void **state)
{
	static const struct {
		const char *words, *replies;
	} cases[] = {
		{"ipu-test nofile s", "summary spans\n"},
		{"ipu-test nofile e", "export\n"},
		{"ipu-test diff --ga", "--gate\n"},
		{"ipu-test nofile diff --gate \"\"", "5 10\n"},
		{"ipu-test export nofile n", "npz\n"},
		{"ipu-test nofile export c", "chrome\n"},
		{"ipu-test dif", "diff\n"},
		{"ipu-test nofile --co", "--color --completion\n"},
	};
	struct cli_command verbose = command;
	char *argv[] = {(char[]){"x"}, (char[]){"--completion"}, (char[]){"bash"}};
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE], *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	verbose.second = second_word;
	verbose.verb = verb_row;
	assert_true(cli_standard(&verbose, 3, argv, out));
	fclose(out);
	if (support_has_program("bash")) {
		keep(dir, path, text);
		for (size_t i = 0; i < ARRAY_LEN(cases); i++)
			check_bash(path, cases[i].words, cases[i].replies);
		support_tempdir_remove(dir);
	}
	free(text);

	out = open_memstream(&text, &length);
	argv[2] = (char[]){"zsh"};
	assert_true(cli_standard(&verbose, 3, argv, out));
	fclose(out);
	assert_contains(text, "_ipu_test_diff() {\n");
	assert_contains(text, "'2:name:(summary spans diff export)'");
	if (support_has_program("zsh")) {
		keep(dir, path, text);
		check_zsh(path);
		support_tempdir_remove(dir);
	}
	free(text);
}

static void test_manual_page_has_its_sections(void **state)
{
	static const char *const parts[] = {
		".TH IPU-TEST 1 ",
		".SH NAME\nipu\\-test \\- test the command line\n",
		".SH SYNOPSIS\n",
		".SH DESCRIPTION\n",
		"\\&.The second one begins with a point.\n\\&'And a quote, and a back\\eslash.",
		".SH OPTIONS\n.TP\n\\fB\\-c\\fR, \\fB\\-\\-color\\fR \\fIWHEN\\fR\n",
		".SH EXAMPLES\n",
		".SH \"EXIT STATUS\"\n",
		".SH \"FILES\"\nrun.json: the run file.\n.PP\nSecond paragraph.\n",
		".SH \"ENVIRONMENT\"\nNO_COLOR\n",
	};
	char *text = standard("--man", NULL);
	const char *from = text;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		assert_contains(from, parts[i]);
		from = strstr(from, parts[i]); /* and in this order */
	}
	free(text);
}

static void test_manual_page_formats_without_warnings(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE], *text;
	struct support_result result;

	(void)state;
	if (!support_has_program("groff")) {
		print_message("groff is absent: the manual page is not formatted\n");
		skip();
	}
	text = standard("--man", NULL);
	keep(dir, path, text);
	support_shell(&result, "groff -ww -man -Tutf8 -z '%s'", path);
	assert_string_equal(result.err, "");
	assert_int_equal(result.exit_code, 0);
	support_result_free(&result);
	support_tempdir_remove(dir);
	free(text);
}

/* ---- failing and colour ---------------------------------------------------------------------- */

static void test_fail_prints_one_line_and_gives_the_exit_code(void **state)
{
	/* The test program plays the command itself: see main(). */
	const char *argv[] = {"/proc/self/exe", "test_cli", NULL};
	struct support_result result;

	(void)state;
	setenv("IPUSCOPE_TEST_FAIL", "1", 1);
	support_run(&result, argv, NULL);
	unsetenv("IPUSCOPE_TEST_FAIL");
	assert_string_equal(result.out, "");
	assert_string_equal(result.err, "ipu-test: run.json: two?lines\n");
	assert_int_equal(result.exit_code, 2);
	support_result_free(&result);
}

static int play_failing(void)
{
	struct err err;

	err_set(&err, ST_INVALID, "run.json: two\nlines");
	return cli_fail(&command, &err);
}

/* Read a mapped file that is shortened: a signal without cli_main(). */
static int read_shortened(int argc, char **argv)
{
	FILE *file = tmpfile();
	const long page = sysconf(_SC_PAGESIZE);
	volatile char *bytes;

	(void)argc;
	(void)argv;
	if (!file || ftruncate(fileno(file), page) != 0)
		return 3;
	bytes = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, fileno(file), 0);
	if (bytes == MAP_FAILED || ftruncate(fileno(file), 0) != 0)
		return 3;
	return 4 + bytes[0];
}

/* Use 2 MB of stack, here and in a thread. */
static int use_stack(int argc, char **argv)
{
	volatile char bytes[2 << 20];

	for (size_t i = 0; i < sizeof(bytes); i += 512)
		bytes[i] = (char)argc;
	(void)argv;
	return bytes[512] == argc ? 7 : 8;
}

static void *use_stack_there(void *user)
{
	*(int *)user = use_stack(1, NULL);
	return NULL;
}

static int use_stacks(int argc, char **argv)
{
	pthread_t thread;
	int code = 0;

	if (use_stack(argc, argv) != 7 ||
	    pthread_create(&thread, NULL, use_stack_there, &code) != 0)
		return 9;
	pthread_join(thread, NULL);
	return code;
}

static void test_a_command_ends_with_a_line_where_a_signal_would_end_it(void **state)
{
	const char *const argv[] = {"/proc/self/exe", "test_cli", NULL};
	struct support_result result;

	(void)state;
	setenv("IPUSCOPE_TEST_FAIL", "bus", 1);
	support_run(&result, argv, NULL);
	assert_string_equal(result.err, "ipu-test: a file became shorter while it was read: "
					"another program has overwritten it\n");
	assert_int_equal(result.exit_code, 1);
	support_result_free(&result);
	setenv("IPUSCOPE_TEST_FAIL", "stack", 1);
	support_run(&result, argv, NULL);
	unsetenv("IPUSCOPE_TEST_FAIL");
	assert_string_equal(result.err, "");
	assert_int_equal(result.exit_code, 7);
	support_result_free(&result);
}

static int print_much(int argc, char **argv)
{
	char much[5000];

	(void)argc;
	(void)argv;
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	support_fail_alloc(0);
	cli_print(stdout, "%s", much);
	support_fail_alloc(-1);
	return 0;
}

static int play(const char *which)
{
	char *none[] = {"x", NULL};
	struct rlimit stack;

	if (strcmp(which, "bus") == 0)
		return cli_main("ipu-test", read_shortened, 1, none);
	if (strcmp(which, "much") == 0)
		return cli_main("ipu-test", print_much, 1, none);
	if (strcmp(which, "stack") != 0)
		return play_failing();
	getrlimit(RLIMIT_STACK, &stack);
	stack.rlim_cur = 256 << 10;
	setrlimit(RLIMIT_STACK, &stack);
	return cli_main("ipu-test", use_stacks, 1, none);
}

static void set_or_unset(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void test_printed_names_control_nothing(void **state)
{
	static const char lines[] = "a?[m???\xc3\xa4\xff?\t3\n"
				    "\na?forged\tline?: 7\n\n?\n"
				    "?\nb\xa9\xc3\n\xa9"
				    "two\n?lines\n\nand one";
	char much[10000], *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	much[9000] = '\033';
	assert_non_null(out);
	cli_print(out, "%s\t%d\n", "a\033[m\x7f\xc2\x9b\xe2\x80\xae\xc3\xa4\xff\x9b", 3);
	cli_print(out, "%s", "");
	cli_print(out, "\n%s: %d\n\n%s\n", "a\nforged\tline\n", 7, "\n");
	/* The line before becomes shorter, which moves this one: its last byte stays alone. */
	cli_print(out, "%s\n%s\n%s", "\xe2\x80\xae", "b\xa9\xc3", "\xa9");
	cli_print_text(out, "two\n\033lines\n\nand one");
	cli_print(out, "%s", much);
	fclose(out);
	much[9000] = '?';
	assert_memory_equal(text, lines, sizeof(lines) - 1);
	assert_string_equal(text + sizeof(lines) - 1, much);
	free(text);
}

static void test_a_line_without_memory_fails_the_command(void **state)
{
	const char *argv[] = {"/proc/self/exe", "test_cli", NULL};
	struct support_result result;

	(void)state;
	setenv("IPUSCOPE_TEST_FAIL", "much", 1);
	support_run(&result, argv, NULL);
	unsetenv("IPUSCOPE_TEST_FAIL");
	assert_string_equal(result.out, "");
	assert_string_equal(result.err, "ipu-test: write: output was lost\n");
	assert_int_equal(result.exit_code, 1);
	support_result_free(&result);
}

static void test_colour_follows_the_conventions(void **state)
{
	static const struct {
		const char *when, *no_color, *force, *term;
		bool colour; /* on a stream that is no terminal */
	} rows[] = {
		{"always", "1", NULL, "dumb", true},  {"never", NULL, "1", "xterm", false},
		{"auto", NULL, NULL, "xterm", false}, {NULL, NULL, NULL, "xterm", false},
		{NULL, NULL, "1", "xterm", true},     {NULL, NULL, "0", "xterm", false},
		{NULL, "", "1", "xterm", true},       {NULL, "1", "1", "xterm", false},
		{"auto", NULL, "1", "dumb", true},    {NULL, NULL, "", NULL, false},
	};
	FILE *null = fopen("/dev/null", "w");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		set_or_unset("NO_COLOR", rows[i].no_color);
		set_or_unset("CLICOLOR_FORCE", rows[i].force);
		set_or_unset("TERM", rows[i].term);
		assert_int_equal(cli_colour(null, rows[i].when), rows[i].colour);
	}
	fclose(null);
}

struct bound {
	const char *file;
	int64_t rows, before, copies;
	bool force;
	int width, stages;
	enum {
		BOUND_AUTO,
		BOUND_AUTOMATIC,
		BOUND_NEVER
	} when;
};

static const struct cli_option bound_options[] = {
	{.name = "--file", .argument = "FILE", .field = CLI_FIELD(TEXT, struct bound, file)},
	{.name = "--rows", .argument = "N", .field = CLI_FIELD(NUMBER, struct bound, rows)},
	{.name = "--force", .field = CLI_FIELD(SWITCH, struct bound, force)},
	{.name = "--width", .argument = "N", .field = CLI_FIELD(SIZE, struct bound, width)},
	{.name = "--copies",
	 .argument = "N",
	 .field = CLI_RANGE(NUMBER, struct bound, copies, 2, INT64_C(1) << 40)},
	{.name = "--stages", .argument = "N", .field = CLI_RANGE(SIZE, struct bound, stages, 1, 9)},
	{.name = "--when",
	 .argument = "W",
	 .choices = "auto automatic never",
	 .field = CLI_FIELD(CHOICE, struct bound, when)},
	{.name = "--never", .field = CLI_IS(struct bound, when, BOUND_NEVER)},
	{.name = "--own", .argument = "X"},
};

static enum status bind_all(struct bound *out, char **argv, struct err *err)
{
	const struct cli_command bound_command = {.name = "ipu-bound",
						  .options = bound_options,
						  .option_count = ARRAY_LEN(bound_options)};
	struct cli_argument argument;
	struct cli_walk state;
	enum status status;
	bool more;

	cli_begin(&state, &bound_command, count_words(argv), argv, false);
	while ((status = cli_next(&state, &argument, &more, err)) == ST_OK && more)
		if ((status = cli_set(&argument, out, err)) != ST_OK)
			break;
	return status;
}

static void test_numbers_keep_to_the_range_of_their_option(void **state)
{
	char *legal[][6] = {{"x", "--copies", "2", "--stages", "1", NULL},
			    {"x", "--copies", "1099511627776", "--stages", "9", NULL}};
	char *wrong[][4] = {{"x", "--copies", "1", NULL},
			    {"x", "--copies", "1099511627777", NULL},
			    {"x", "--stages", "0", NULL},
			    {"x", "--stages", "10", NULL}};
	const char *const why[] = {"from 2 to 1099511627776", "from 2 to 1099511627776",
				   "from 1 to 9", "from 1 to 9"};
	struct bound bound = {0};
	struct err err = {ST_OK, ""};

	(void)state;
	assert_int_equal(bind_all(&bound, legal[0], &err), ST_OK);
	assert_int_equal(bound.copies, 2);
	assert_int_equal(bound.stages, 1);
	assert_int_equal(bind_all(&bound, legal[1], &err), ST_OK);
	assert_int_equal(bound.copies, INT64_C(1) << 40);
	assert_int_equal(bound.stages, 9);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		assert_int_equal(bind_all(&bound, wrong[i], &err), ST_INVALID);
		assert_contains(err.text, why[i]);
		assert_int_equal(bound.copies, INT64_C(1) << 40);
		assert_int_equal(bound.stages, 9);
	}
}

static void test_values_reach_the_fields_that_options_name(void **state)
{
	char *all[] = {"x", "--file=a b", "--rows", "12", "--force", "--width", "80", NULL};
	char *choice[] = {"x", "--when", "automatic", "--own", "1", NULL};
	char *constant[] = {"x", "--never", NULL};
	char *last[] = {"x", "--when", "never", NULL}, *first[] = {"x", "--when=auto", NULL};
	char *wrong[][4] = {{"x", "--rows", "-1", NULL},
			    {"x", "--rows", "x", NULL},
			    {"x", "--width", "100001", NULL}};
	struct bound bound = {.before = 7, .when = BOUND_NEVER};
	struct err err = {ST_OK, ""};

	(void)state;
	assert_int_equal(bind_all(&bound, all, &err), ST_OK);
	assert_string_equal(bound.file, "a b");
	assert_int_equal(bound.rows, 12);
	assert_true(bound.force);
	assert_int_equal(bound.width, 80);
	assert_int_equal(bound.when, BOUND_NEVER);
	assert_int_equal(bind_all(&bound, first, &err), ST_OK);
	assert_int_equal(bound.when, BOUND_AUTO);
	assert_int_equal(bind_all(&bound, choice, &err), ST_OK);
	assert_int_equal(bound.when, BOUND_AUTOMATIC);
	assert_int_equal(bind_all(&bound, last, &err), ST_OK);
	assert_int_equal(bound.when, BOUND_NEVER);
	assert_int_equal(bind_all(&bound, first, &err), ST_OK);
	assert_int_equal(bind_all(&bound, constant, &err), ST_OK);
	assert_int_equal(bound.when, BOUND_NEVER);
	assert_int_equal(bound.before, 7);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		assert_int_equal(bind_all(&bound, wrong[i], &err), ST_INVALID);
		assert_contains(err.text, wrong[i][1]);
		assert_int_equal(bound.rows, 12);
		assert_int_equal(bound.width, 80);
	}
}

/* ---- parsing all of a line ------------------------------------------------------------------- */

static int acted;

static void act(void)
{
	acted++;
}

struct parsed {
	bool json;
	const char *output;
};

static const struct cli_option parsed_options[] = {
	{.name = "--json", .help = "JSON.", .field = CLI_FIELD(SWITCH, struct parsed, json)},
	{.name = "--act", .letter = 'a', .action = act, .help = "Act."},
	{.name = "--output",
	 .letter = 'o',
	 .argument = "FILE",
	 .help = "To FILE.",
	 .field = CLI_FIELD(TEXT, struct parsed, output)},
};

static enum status refuse_output(void *line, const struct cli_argument *argument, struct err *err)
{
	if (argument->option->letter == 'o')
		return err_set(err, ST_LIMIT, "--output is refused");
	return cli_set(argument, line, err);
}

static void test_a_line_has_as_many_words_as_are_enough(void **state)
{
	static const struct cli_command parsing = {
		.name = "p", .options = parsed_options, .option_count = ARRAY_LEN(parsed_options)};
	static const struct {
		const char *line;
		int most, words, acts;
		enum status status;
		bool refuses;
	} rows[] = {
		{"", 2, 0, 0, ST_OK, false},
		{"one", 2, 1, 0, ST_OK, false},
		{"one two", 2, 2, 0, ST_OK, false},
		{"one two three", 2, 2, 0, ST_INVALID, false},
		{"one", 0, 0, 0, ST_INVALID, false},
		{"--json --output f", 0, 0, 0, ST_OK, false},
		{"--act one -a --json -a", 2, 1, 3, ST_OK, false},
		{"-a", 0, 0, 1, ST_OK, false},
		{"--jsn one", 2, 0, 0, ST_INVALID, false},
		{"--act --jsn", 2, 0, 1, ST_INVALID, false},
		{"one --output f two", 2, 1, 0, ST_LIMIT, true},
		{"one --json two", 2, 2, 0, ST_OK, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[64], *argv[MOST_WORDS] = {text}, *rest = NULL;
		const char *list[2] = {"", ""};
		int argc = 1, count = 0;
		const struct cli_words words = {list, rows[i].most, &count, "that is enough"};
		struct parsed parsed = {false, NULL};
		struct err err = {ST_OK, ""};

		acted = 0;
		str_copy(text, sizeof(text), rows[i].line);
		for (char *word = strtok_r(text, " ", &rest); word;
		     word = strtok_r(NULL, " ", &rest))
			argv[argc++] = word;
		assert_int_equal(cli_parse(&parsing, argc, argv,
					   rows[i].refuses ? refuse_output : NULL, &parsed, &words,
					   &err),
				 rows[i].status);
		assert_int_equal(err.status, rows[i].status);
		assert_int_equal(count, rows[i].words);
		assert_int_equal(acted, rows[i].acts);
		assert_string_equal(list[0], rows[i].words > 0 ? "one" : "");
		assert_string_equal(list[1], rows[i].words > 1 ? "two" : "");
		if (rows[i].status == ST_OK)
			assert_int_equal(parsed.json, !!strstr(rows[i].line, "--json"));
		if (strstr(rows[i].line, "three"))
			assert_string_equal(err.text,
					    "one word too many: \"three\" (that is enough)");
	}
}

static void test_a_file_is_as_wide_as_a_terminal_is(void **state)
{
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	assert_int_equal(cli_width(file), 80);
	fclose(file);
}

/* ---- all that a command says of itself ------------------------------------------------------- */

static const struct cli_command plain_verb = {
	.name = "ipu-test plain", .synopsis = "", .summary = "do it", .about = "Does it."};
static const struct cli_command other_verb = {.name = "ipu-test other",
					      .synopsis = "FILE",
					      .summary = "do another",
					      .about = "TITLE\nBelow it.\n\nAND\nmore.\n\n",
					      .options = options,
					      .option_count = ARRAY_LEN(options),
					      .words = "PATH"};

static const struct cli_command *two_verbs(size_t at)
{
	static const struct cli_command *const verbs[] = {&plain_verb, &other_verb};

	return at < ARRAY_LEN(verbs) ? verbs[at] : NULL;
}

static const char *two_words(size_t at)
{
	static const char *const words[] = {"first", "second"};

	return at < ARRAY_LEN(words) ? words[at] : NULL;
}

#define SAID(more)                                                                                 \
	{                                                                                          \
		.name = "ipu-test", .synopsis = "WORD", .summary = "say", .about = "Says.",        \
		.options = options, .option_count = ARRAY_LEN(options), more                       \
	}
#define AND ,

static const struct cli_command said[] = {
	SAID(.words = NULL),
	SAID(.words = "RUN" AND.names = "ipu-test --list"),
	SAID(.names = "ipu-test --list"),
	SAID(.words = "one two" AND.second = two_words),
	SAID(.second = two_words AND.verb = two_verbs),
	SAID(.words = "FILE" AND.names = "ipu-test --list" AND.verb = two_verbs),
	SAID(.words = "REPORT" AND.verb = two_verbs AND.examples =
		     "ipu-test x\tWhy.\n\nipu-test y\n"
		     "ipu-test z\t"),
	SAID(.details = "No title here.\n\nA B\nis one, C\nis none." AND.examples = "x\ty\n"),
	SAID(.details = "FILES\na: b.\n\nENV 2\nno title."),
	{.name = "ipu-test bare", .synopsis = "", .summary = "-", .about = "\\ . -\n.x\n'y"},
};

static void print_said(FILE *out)
{
	static const char *const requests[] = {"--help", "--man", "--completion=bash",
					       "--completion=zsh"};

	for (size_t c = 0; c < ARRAY_LEN(said); c++) {
		for (size_t r = 0; r < ARRAY_LEN(requests); r++) {
			char *argv[] = {"ipu-test", (char *)(uintptr_t)requests[r], NULL};
			char *text = NULL;
			size_t length = 0;
			FILE *memory = open_memstream(&text, &length);

			assert_non_null(memory);
			assert_true(cli_standard(&said[c], 2, argv, memory));
			fclose(memory);
			fprintf(out, "%s%016" PRIx64 "%s", r ? " " : "",
				support_digest_output(text),
				r + 1 < ARRAY_LEN(requests) ? "" : "\n");
			free(text);
		}
	}
}

/* Of each a digest. */
static void test_nothing_that_commands_say_of_themselves_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("cli_texts.txt", print_said);
}

static void test_characters_are_the_user_s_and_letters_of_no_country(void **state)
{
	const char *before = getenv("LC_ALL");
	char *kept = before ? strdup(before) : NULL;

	(void)state;
	setenv("LC_ALL", "C.UTF-8", 1);
	assert_true(cli_locale());
	assert_string_equal(setlocale(LC_CTYPE, NULL), "C.UTF-8");
	setenv("LC_ALL", "C", 1);
	assert_false(cli_locale());
	assert_string_equal(setlocale(LC_CTYPE, NULL), "C");
	if (kept)
		setenv("LC_ALL", kept, 1);
	else
		unsetenv("LC_ALL");
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters_are_the_user_s_and_letters_of_no_country),
		cmocka_unit_test(test_walk_gives_options_and_words),
		cmocka_unit_test(test_mistakes_are_explained),
		cmocka_unit_test(test_an_endless_open_name_is_refused),
		cmocka_unit_test(test_a_word_can_be_given_back),
		cmocka_unit_test(test_no_word_behind_the_last_is_a_value),
		cmocka_unit_test(test_a_list_of_no_words_is_empty),
		cmocka_unit_test(test_help_is_tidy),
		cmocka_unit_test(test_help_texts_keep_their_lines),
		cmocka_unit_test(test_help_is_wrapped_after_80_columns),
		cmocka_unit_test(test_options_stand_beside_their_texts_where_they_fit),
		cmocka_unit_test(test_version_is_one_line),
		cmocka_unit_test(test_standard_looks_only_at_options),
		cmocka_unit_test(test_bash_completion_works),
		cmocka_unit_test(test_zsh_completion_works),
		cmocka_unit_test(test_words_complete_the_first_argument),
		cmocka_unit_test(test_verbs_and_second_words_complete),
		cmocka_unit_test(test_manual_page_has_its_sections),
		cmocka_unit_test(test_manual_page_formats_without_warnings),
		cmocka_unit_test(test_fail_prints_one_line_and_gives_the_exit_code),
		cmocka_unit_test(test_a_command_ends_with_a_line_where_a_signal_would_end_it),
		cmocka_unit_test(test_printed_names_control_nothing),
		cmocka_unit_test(test_a_line_without_memory_fails_the_command),
		cmocka_unit_test(test_colour_follows_the_conventions),
		cmocka_unit_test(test_numbers_keep_to_the_range_of_their_option),
		cmocka_unit_test(test_values_reach_the_fields_that_options_name),
		cmocka_unit_test(test_a_line_has_as_many_words_as_are_enough),
		cmocka_unit_test(test_a_file_is_as_wide_as_a_terminal_is),
		cmocka_unit_test(test_nothing_that_commands_say_of_themselves_changes_unseen),
	};

	if (getenv("IPUSCOPE_TEST_FAIL"))
		return play(getenv("IPUSCOPE_TEST_FAIL"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
