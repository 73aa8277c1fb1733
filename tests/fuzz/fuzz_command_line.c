/*
 * Command lines: the first byte chooses a command, lines are its words. They are parsed, not run.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/mem.h"
#include "fuzz_target.h"
#include "reports/report_verbs.h"

#define WORDS_MOST 64

static const struct cli_command *const commands[] = {
	&report_diff_cli,   &report_export_cli, &report_merge_cli,      &report_whatif_cli,
	&report_import_cli, &report_losses_cli, &report_embeddings_cli, &report_attention_cli};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *words[WORDS_MOST + 1] = {"fuzz"}, *line;
	struct cli_argument argument;
	struct cli_walk walk;
	struct err err;
	int count = 1;
	bool more;

	if (!text || size < 2) {
		free(text);
		return 0;
	}
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	for (line = text; line && count < WORDS_MOST; count++) {
		words[count] = line;
		line = strchr(line, '\n');
		if (line)
			*line++ = '\0';
	}
	cli_begin(&walk, commands[data[0] % ARRAY_LEN(commands)], count, words, data[1] & 1);
	while (cli_next(&walk, &argument, &more, &err) == ST_OK && more)
		continue;
	free(text);
	return 0;
}
