/*
 * See verb_out.h. For the test's main thread.
 */
#include "support/verb_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "reports/report_verbs.h"
#include "support/support.h"

enum {
	OUTPUTS = 2,
	WORDS = 32
};

static char left[SUPPORT_PATH_SIZE], folder[SUPPORT_PATH_SIZE];

const char *verb_enter(void)
{
	char *source = realpath(support_source_dir(), NULL);

	/* Where goldens are found from then on, too. */
	assert_non_null(source);
	setenv("IPUSCOPE_SOURCE_DIR", source, 1);
	free(source);
	assert_non_null(getcwd(left, sizeof(left)));
	support_tempdir(folder);
	assert_int_equal(chdir(folder), 0);
	return folder;
}

void verb_leave(void)
{
	assert_int_equal(chdir(left), 0);
	support_tempdir_remove(folder);
}

static char *read_all(FILE *file)
{
	const long size = ftell(file);
	char *text = calloc(1, (size_t)size + 1);

	assert_non_null(text);
	rewind(file);
	assert_int_equal(fread(text, 1, (size_t)size, file), size);
	return text;
}

char *verb_out(const char *words, int *code)
{
	static const int outputs[OUTPUTS] = {STDOUT_FILENO, STDERR_FILENO};
	char *line = strdup(words), *argv[WORDS + 1] = {"ipu-report"}, *rest = NULL, *text;
	FILE *file = tmpfile();
	int kept[OUTPUTS], argc = 1, result;

	assert_non_null(file);
	setenv("TZ", "UTC", 1);
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS);
		argv[argc++] = word;
	}
	fflush(NULL);
	for (int i = 0; i < OUTPUTS; i++) {
		kept[i] = dup(outputs[i]);
		assert_true(kept[i] >= 0 && dup2(fileno(file), outputs[i]) >= 0);
	}
	result = report_command(argc, argv);
	fflush(stdout);
	for (int i = 0; i < OUTPUTS; i++) {
		dup2(kept[i], outputs[i]);
		close(kept[i]);
	}
	fseek(file, 0, SEEK_END);
	if (code)
		*code = result;
	text = read_all(file);
	fclose(file);
	free(line);
	return text;
}

/* The same, its version as Vs. */
static char *verb_masked(const char *words, int *code)
{
	char *text = verb_out(words, code), *version;

	while ((version = strstr(text, IPUSCOPE_VERSION)))
		memset(version, 'V', strlen(IPUSCOPE_VERSION));
	return text;
}

#define LONG_LINES 8
#define LONG_BYTES 2000

/* The digests of each eight lines. */
static void print_digests(FILE *out, const char *text)
{
	uint64_t digest = SUPPORT_DIGEST;
	int line = 0, column = 0;

	for (const char *end; *text; text = end) {
		end = text + strcspn(text, "\n");
		end += *end == '\n';
		digest = support_digest_text(digest, text, (size_t)(end - text));
		if (++line % 8 == 0 || !*end) {
			fprintf(out, "%s%08" PRIx32,
				column == 0        ? ""
				: column % 16 == 0 ? "\n"
						   : " ",
				(uint32_t)digest);
			column++;
			digest = SUPPORT_DIGEST;
		}
	}
	fprintf(out, "\n");
}

void verb_digest(FILE *out, const char *command)
{
	int code;
	char *text = verb_masked(command, &code);

	fprintf(out, "%08" PRIx32 " %d %-56s",
		(uint32_t)support_digest_text(SUPPORT_DIGEST, text, strlen(text)), code, command);
	free(text);
}

void verb_print(FILE *out, const char *const *commands, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int lines = 0, code;
		char *text = verb_masked(commands[i], &code);

		for (const char *c = text; *c; c++)
			lines += *c == '\n';
		fprintf(out, "$ ipu-report %s", commands[i]);
		if (code != 0)
			fprintf(out, " # exit code %d", code);
		if (lines > LONG_LINES || strlen(text) > LONG_BYTES) {
			fprintf(out, " # %d lines\n", lines);
			print_digests(out, text);
		} else {
			fprintf(out, "\n%s", text);
		}
		free(text);
	}
}
