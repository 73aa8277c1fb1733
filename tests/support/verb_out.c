/*
 * See verb_out.h. For the test's main thread.
 */
#include "support/verb_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/report_verbs.h"
#include "support/support.h"

#define WORDS 32

char *verb_out(const char *words, int *code)
{
	char *line = strdup(words), *argv[WORDS + 1] = {"ipu-report"}, *rest = NULL;
	struct support_caught caught;
	int argc = 1, result;

	setenv("TZ", "UTC", 1);
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS);
		argv[argc++] = word;
	}
	support_catch(&caught, STDOUT_FILENO, STDERR_FILENO);
	result = report_command(argc, argv);
	if (code)
		*code = result;
	free(line);
	return support_give_back(&caught);
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
