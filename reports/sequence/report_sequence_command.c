/*
 * The verbs `attention`, `token-losses` and `embeddings`: their command lines, and printing.
 *
 * Threading: none. Ownership: the database is open while one is printed. Prints to standard output.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "popvision/popvision.h"
#include "reports/report_find.h"
#include "reports/report_verbs.h"
#include "reports/sequence/report_sequence.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_table.h"
#include "profiler/prof_db.h"

struct sequence_line {
	const char *words[2]; /* REPORT, KEY */
	int word_count;
	int64_t step, replica; /* IPS_NULL: the last, any */
	int sample, head, limit;
	const char *by;
	struct report_table_options table;
};

#define SAMPLE_OPTIONS                                                                             \
	{.name = "--step",                                                                         \
	 .argument = "STEP",                                                                       \
	 .help = "Values that were kept at this step (weights: weight update); default: the "      \
		 "last.",                                                                          \
	 .field = CLI_FIELD(NUMBER, struct sequence_line, step)},                                  \
	{                                                                                          \
		.name = "--replica", .argument = "REPLICA", .help = "Of this replica.",            \
		.field = CLI_FIELD(NUMBER, struct sequence_line, replica)                          \
	}
#define SAMPLE_OPTION                                                                              \
	{                                                                                          \
		.name = "--sample", .argument = "SAMPLE",                                          \
		.help = "This item of the batch, from 0 (default 0).",                             \
		.field = CLI_FIELD(SIZE, struct sequence_line, sample)                             \
	}
#define TABLE_OPTIONS                                                                              \
	REPORT_OPTION_CSV(struct sequence_line, "Comma separated values (RFC 4180), all rows."),   \
		REPORT_OPTION_JSON(struct sequence_line, "JSON, all rows."),                       \
		REPORT_OPTION_WIDTH(struct sequence_line),                                         \
		REPORT_OPTION_COLOR(struct sequence_line), REPORT_OPTION_UNLIMITED

static const struct cli_option attention_options[] = {
	SAMPLE_OPTIONS,
	SAMPLE_OPTION,
	{.name = "--head",
	 .argument = "HEAD",
	 .help = "The map of this head, from 0 (default 0).",
	 .field = CLI_FIELD(SIZE, struct sequence_line, head)},
	{.name = "--by",
	 .argument = "WHAT",
	 .choices = "head score",
	 .help = "A row for each head (default), or for each score of the map.",
	 .field = CLI_FIELD(TEXT, struct sequence_line, by)},
	TABLE_OPTIONS,
};

const struct cli_command report_attention_cli = {
	.name = "ipu-report attention",
	.synopsis = "[REPORT] [KEY] [--step STEP] [--sample SAMPLE] [--head HEAD]",
	.summary = "what a layer of attention looks at, as a map and by head",
	.about = "Print the scores that outfeed.capture kept of MultiHeadAttention or Attention "
		 "(KEY is LAYER_scores, or the layer; default: any): a map of one sample and head, "
		 "a line for each query and a column for each key, darker for more; and for each "
		 "head the mean over the sample's queries of the entropy (nats), of the distance "
		 "from a query to what it looks at, and of the greatest score.",
	.options = attention_options,
	.option_count = ARRAY_LEN(attention_options),
	.examples = "ipu-report attention run.db attention_0\tThe last map that was kept.\n"
		    "ipu-report attention run.db attention_0 --head 2 --by score --csv\tIts "
		    "numbers.\n",
	.words = "FILE",
};

static const struct cli_option losses_options[] = {
	SAMPLE_OPTIONS,
	SAMPLE_OPTION,
	{.name = "--by",
	 .argument = "WHAT",
	 .choices = "token position",
	 .help = "A row for each token of the sample (default), or for each position: the mean "
		 "over all that was kept, or of --step.",
	 .field = CLI_FIELD(TEXT, struct sequence_line, by)},
	TABLE_OPTIONS,
};

const struct cli_command report_losses_cli = {
	.name = "ipu-report token-losses",
	.synopsis = "[REPORT] [KEY] [--step STEP] [--sample SAMPLE]",
	.summary = "the loss of each token of a text, and by position",
	.about = "Print the losses that outfeed.capture kept of tokens (KEY: loss_tokens). In "
		 "colour the text stands above the table, each token on the colour of its loss; "
		 "without, the table has the numbers alone. Tokens have names where `targets` were "
		 "kept, too, and the data are a text's.",
	.options = losses_options,
	.option_count = ARRAY_LEN(losses_options),
	.examples = "ipu-report token-losses run.db\tThe last text that was kept.\n"
		    "ipu-report token-losses run.db --by position --csv\tIs the end of a window "
		    "easier than its beginning?\n",
	.words = "FILE",
};

static const struct cli_option embeddings_options[] = {
	SAMPLE_OPTIONS,
	{.name = "--limit",
	 .argument = "COUNT",
	 .help = "So many of the largest, the smallest, and those that never changed (default "
		 "10; text alone).",
	 .field = CLI_FIELD(SIZE, struct sequence_line, limit)},
	TABLE_OPTIONS,
};

const struct cli_command report_embeddings_cli = {
	.name = "ipu-report embeddings",
	.synopsis = "[REPORT] [KEY] [--step WEIGHT_UPDATE] [--limit COUNT]",
	.summary = "the length of each row of an Embedding, and rows that never changed",
	.about = "Print the rows of an Embedding's kernel that outfeed.capture kept (KEY: "
		 "embedding/embeddings:0; default: any): each token's norm, and how far its row "
		 "has moved since the first values that were kept. Text has the largest, the "
		 "smallest and those that have not moved at all; CSV and JSON have all rows.",
	.options = embeddings_options,
	.option_count = ARRAY_LEN(embeddings_options),
	.examples = "ipu-report embeddings run.db\tThe last that were kept.\n",
	.words = "FILE",
};

/* ---- common parts ---------------------------------------------------------------------------- */

struct sequence {
	const struct sequence_line *line;
	struct prof_db *db;
	struct err *err; /* sticky */
	struct report_render_params render;
	struct arena arena; /* owns everything but the table */
	struct report_table table;
	struct report_tokens tokens;
	struct report_kept kept;
};

/* The captures that the options select, of @key (NULL: any). */
static struct report_kept_at kept_at(const struct sequence *s, const char *key)
{
	struct report_kept_at at = REPORT_KEPT_ANY;

	at.key = key;
	at.step = s->line->step;
	at.replica = s->line->replica;
	return at;
}

/* Format the token at @at of @numbers; an empty cell if @numbers is NULL. */
static struct report_cell token_cell(const struct sequence *s, const float *numbers, int64_t at,
				     char text[REPORT_TOKEN_SIZE])
{
	return report_cell_of_text(
		numbers ? report_token_text(&s->tokens, (double)numbers[at], text) : NULL);
}

static void check_within(const struct sequence *s, const char *option, int64_t at, int64_t count)
{
	if (at >= count && !err_stuck(s->err))
		err_set(s->err, ST_INVALID, "%s %lld: %s has %lld, from 0", option, (long long)at,
			s->kept.key, (long long)count);
}

/* The numbers of @length tokens of the sample; NULL if they are not known. */
static const float *tokens_of(struct sequence *s, const char *key, int64_t length)
{
	const float *numbers = NULL;

	if (!err_stuck(s->err))
		report_tokens_of(&numbers, &s->arena, s->db, &s->tokens, &s->kept, key,
				 s->line->sample, length, s->err);
	return numbers;
}

/* Print "attention_0_scores, step 15: (2, 2, 32, 32): batch, heads, queries, keys". */
static void print_header(const struct sequence *s)
{
	cli_print(stdout, "%s, %s %lld: %s%s%s\n", s->kept.key,
		  s->kept.by_update ? "weight update" : "step", (long long)s->kept.step,
		  s->kept.shape_text, s->kept.dims ? ": " : "", s->kept.dims ? s->kept.dims : "");
}

static void read_kept(struct sequence *s, const char *dims)
{
	struct report_kept_at at = kept_at(s, s->line->words[1]);

	at.dims = at.key ? NULL : dims;
	report_kept_read(&s->kept, &s->arena, s->db, &at, s->err);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Print a map of at most @width columns; each shows the maximum of its share of the keys. */
static void print_map(const struct sequence *s, const float *map, int64_t queries, int64_t keys,
		      const float *of_queries, const float *of_keys)
{
	static const char shades[] = " .:-=+*#%@";
	const int64_t room = s->render.width > 20 ? s->render.width - 10 : keys;
	const int64_t columns = min(keys, room);
	char text[REPORT_TOKEN_SIZE];
	float most = 0.0f;

	for (int64_t i = 0; i < queries * keys; i++)
		most = max(most, map[i]);
	printf("%8s  ", "");
	for (int64_t c = 0; c < columns && of_keys && columns == keys; c++) {
		report_token_text(&s->tokens, (double)of_keys[c], text);
		printf("%.*s", (int)(str_utf8(text) ? str_utf8(text) : 1), text);
	}
	printf("\n");
	for (int64_t q = 0; q < queries; q++) {
		if (of_queries)
			report_token_text(&s->tokens, (double)of_queries[q], text);
		else
			snprintf(text, sizeof(text), "%lld", (long long)q);
		printf("%*s%s  ", max(0, 8 - utf8_columns(text)), "", text);
		for (int64_t c = 0; c < columns; c++) {
			float greatest = 0.0f;

			for (int64_t k = c * keys / columns; k < (c + 1) * keys / columns; k++)
				greatest = max(greatest, map[q * keys + k]);
			putchar(shades[greatest > 0.0f && most > 0.0f
					       ? min((int)(greatest / most * 9.0f) + 1, 9)
					       : 0]);
		}
		printf("\n");
	}
	printf("from 0 (blank) to %.3g (@)\n\n", (double)most);
}

static void head_rows(struct sequence *s, int64_t heads, int64_t queries, int64_t keys)
{
	const float *sample = s->kept.values + s->line->sample * heads * queries * keys;

	report_table_begin(&s->table, "attention", heads, s->err);
	for (int64_t h = 0; h < heads; h++) {
		const struct report_head head = report_head_of(sample + h * queries * keys, 1,
							       queries * keys, queries, keys);
		const struct report_value values[] = {
			{{"head", REPORT_NUMBER}, report_cell_of_int(h)},
			{{"entropy", REPORT_REAL}, report_cell_of_real(head.entropy)},
			{{"distance", REPORT_REAL}, report_cell_of_real(head.distance)},
			{{"greatest", REPORT_REAL}, report_cell_of_real(head.greatest)},
		};

		report_table_put(&s->table, values, ARRAY_LEN(values), s->err);
	}
}

static void score_rows(struct sequence *s, const float *map, int64_t queries, int64_t keys,
		       const float *of_queries, const float *of_keys)
{
	report_table_begin(&s->table, "attention", queries * keys, s->err);
	for (int64_t i = 0; i < queries * keys; i++) {
		char query[REPORT_TOKEN_SIZE], key[REPORT_TOKEN_SIZE];
		const struct report_value values[] = {
			{{"query", REPORT_NUMBER}, report_cell_of_int(i / keys)},
			{{"query_token", REPORT_TEXT}, token_cell(s, of_queries, i / keys, query)},
			{{"key", REPORT_NUMBER}, report_cell_of_int(i % keys)},
			{{"key_token", REPORT_TEXT}, token_cell(s, of_keys, i % keys, key)},
			{{"score", REPORT_REAL}, report_cell_of_real((double)map[i])},
		};

		report_table_put(&s->table, values, ARRAY_LEN(values), s->err);
	}
}

static void attention(struct sequence *s)
{
	const struct sequence_line *line = s->line;
	const struct report_kept *kept = &s->kept;
	const float *of_queries, *of_keys, *map;
	int64_t heads, queries, keys;
	/* "attention_0" stands for "attention_0_scores" if that exists. */
	const char *word = line->words[1];
	const struct report_kept_at at =
		kept_at(s, word ? arena_printf(&s->arena, "%s_scores", word) : NULL);
	struct err none = {ST_OK, ""};

	if (!at.key || report_kept_read(&s->kept, &s->arena, s->db, &at, &none) != ST_OK)
		read_kept(s, "%queries, keys");
	if (err_stuck(s->err))
		return;
	if (kept->ndim < 3 || kept->ndim > 4) {
		err_set(s->err, ST_INVALID, "%s is %s: scores are (batch, heads, queries, keys)",
			kept->key, kept->shape_text);
		return;
	}
	heads = kept->ndim == 4 ? kept->shape[1] : 1;
	queries = kept->shape[kept->ndim - 2];
	keys = kept->shape[kept->ndim - 1];
	check_within(s, "--sample", line->sample, kept->shape[0]);
	check_within(s, "--head", line->head, heads);
	of_queries = tokens_of(s, NULL, queries);
	of_keys = tokens_of(s, NULL, keys);
	if (err_stuck(s->err))
		return;
	map = kept->values + (line->sample * heads + line->head) * queries * keys;
	if (s->render.format == REPORT_AS_TEXT && !line->by) {
		print_header(s);
		printf("sample %d, head %d: a line for each query, a column for each key\n\n",
		       line->sample, line->head);
		print_map(s, map, queries, keys, of_queries, of_keys);
	}
	if (line->by && strcmp(line->by, "score") == 0)
		score_rows(s, map, queries, keys, of_queries, of_keys);
	else
		head_rows(s, heads, queries, keys);
}

/* ---- token-losses ---------------------------------------------------------------------------- */

/* Mean at each position, over all captures or those of one step. */
static void position_rows(struct sequence *s, int64_t length)
{
	double *sums = arena_alloc(&s->arena, (size_t)length, sizeof(*sums));
	struct report_kept_at at = kept_at(s, s->kept.key);
	struct report_kept kept = s->kept;
	struct err end = {ST_OK, ""};
	struct arena arena;
	int64_t count = 0;

	if (!sums || arena_init(&arena, 0) != 0) {
		err_nomem(s->err);
		return;
	}
	while (!err_stuck(&end)) {
		const bool fits = kept.ndim == 2 && kept.shape[1] == length;

		for (int64_t i = 0; fits && i < kept.count; i++)
			sums[i % length] += (double)kept.values[i];
		count += fits ? kept.count / length : 0;
		at.below = kept.row_id;
		arena_reset(&arena);
		report_kept_read(&kept, &arena, s->db, &at, &end);
	}
	arena_fini(&arena);
	if (end.status != ST_NOTFOUND) {
		*s->err = end;
		return;
	}
	report_table_begin(&s->table, "token-losses", length, s->err);
	for (int64_t i = 0; i < length; i++) {
		const struct report_value values[] = {
			{{"position", REPORT_NUMBER}, report_cell_of_int(i)},
			{{"loss", REPORT_REAL}, report_cell_of_real(sums[i] / (double)count)},
			{{"count", REPORT_COUNT}, report_cell_of_int(count)},
		};

		report_table_put(&s->table, values, ARRAY_LEN(values), s->err);
	}
}

/* From dark to bright red, in the 256-colour palette. */
static const int loss_colours[] = {16, 52, 88, 124, 160, 196};

static void print_text(const struct sequence *s, const float *losses, const float *targets,
		       int64_t length)
{
	const int colours = (int)ARRAY_LEN(loss_colours), width = max(s->render.width, 20);
	char text[REPORT_TOKEN_SIZE];
	float most = 0.0f;
	int column = 0;

	for (int64_t i = 0; i < length; i++)
		most = max(most, losses[i]);
	for (int64_t i = 0; i < length; i++) {
		const float share = most > 0.0f ? losses[i] / most : 0.0f;

		report_token_text(&s->tokens, (double)targets[i], text);
		column += utf8_columns(text);
		if (column > width) {
			printf("\n");
			column = utf8_columns(text);
		}
		printf("\033[97;48;5;%dm%s\033[0m",
		       loss_colours[share > 0.0f ? min((int)(share * (float)colours), colours - 1)
						 : 0],
		       text);
	}
	printf("\nfrom 0 to %.3g, the brighter the greater\n\n", (double)most);
}

static void losses(struct sequence *s)
{
	const struct sequence_line *line = s->line;
	const struct report_kept *kept = &s->kept;
	const struct report_kept_at at =
		kept_at(s, line->words[1] ? line->words[1] : "loss_tokens");
	const float *targets, *values;
	int64_t length;

	if (report_kept_read(&s->kept, &s->arena, s->db, &at, s->err) != ST_OK)
		return;
	if (kept->ndim != 2) {
		err_set(s->err, ST_INVALID, "%s is %s: losses of tokens are (batch, tokens)",
			kept->key, kept->shape_text);
		return;
	}
	length = kept->shape[1];
	if (line->by && strcmp(line->by, "position") == 0) {
		position_rows(s, length);
		return;
	}
	check_within(s, "--sample", line->sample, kept->shape[0]);
	targets = tokens_of(s, "targets", length);
	if (err_stuck(s->err))
		return;
	values = kept->values + line->sample * length;
	if (s->render.format == REPORT_AS_TEXT) {
		print_header(s);
		if (s->render.bold && targets)
			print_text(s, values, targets, length);
	}
	report_table_begin(&s->table, "token-losses", length, s->err);
	for (int64_t i = 0; i < length; i++) {
		char token[REPORT_TOKEN_SIZE];
		const struct report_value row[] = {
			{{"position", REPORT_NUMBER}, report_cell_of_int(i)},
			{{"token", REPORT_TEXT}, token_cell(s, targets, i, token)},
			{{"loss", REPORT_REAL}, report_cell_of_real((double)values[i])},
		};

		report_table_put(&s->table, row, ARRAY_LEN(row), s->err);
	}
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static void put_norm(struct sequence *s, const struct report_row *norm, const char *which)
{
	const float number = (float)norm->row;
	const bool named = s->tokens.bytes || norm->row < s->tokens.count;
	char token[REPORT_TOKEN_SIZE];
	const struct report_value values[] = {
		{{"row", REPORT_NUMBER}, report_cell_of_int(norm->row)},
		{{"token", REPORT_TEXT}, token_cell(s, named ? &number : NULL, 0, token)},
		{{"norm", REPORT_REAL}, report_cell_of_real(norm->norm)},
		{{"change", REPORT_REAL}, report_cell_of_real(norm->change)},
		{{"which", REPORT_TEXT}, report_cell_of_text(which)},
	};

	report_table_put(&s->table, values, ARRAY_LEN(values), s->err);
}

static void embeddings(struct sequence *s)
{
	const bool text = s->render.format == REPORT_AS_TEXT;
	struct report_row *norms;
	int64_t rows, most, still = 0;

	read_kept(s, "tokens, features");
	if (err_stuck(s->err) ||
	    report_rows_of(&norms, &s->arena, s->db, &s->kept, s->err) != ST_OK)
		return;
	if (text)
		print_header(s);
	rows = s->kept.shape[0];
	most = min(rows, s->line->limit);
	report_table_begin(&s->table, "embeddings", text ? 3 * most : rows, s->err);
	put_norm(s, &norms[0], NULL); /* names the columns of a table without rows */
	s->table.row_count = 0;
	for (int64_t r = 0; r < rows && !text; r++)
		put_norm(s, &norms[r], norms[r].change == 0.0 ? "unchanged" : NULL);
	if (!text)
		return;
	for (int64_t r = 0; r < rows; r++)
		if (norms[r].change == 0.0 && still++ < most)
			put_norm(s, &norms[r], "unchanged");
	report_rows_sort(norms, rows);
	for (int64_t r = 0; r < most; r++)
		put_norm(s, &norms[r], "largest");
	for (int64_t r = max(rows - most, most); r < rows; r++)
		put_norm(s, &norms[r], "smallest");
	if (isnan(norms[0].change))
		s->table.note = "Values were kept once: which rows change is not known.";
	else
		s->table.note = arena_printf(&s->arena,
					     "%lld of %lld rows have not changed since values were "
					     "first kept.",
					     (long long)still, (long long)rows);
	if (!s->table.note && !err_stuck(s->err))
		err_nomem(s->err);
}

/* ---- the commands ---------------------------------------------------------------------------- */

static enum status run(const struct cli_command *cli, int argc, char **argv,
		       void (*make)(struct sequence *s), struct err *err)
{
	char newest[FS_PATH_SIZE];
	struct sequence_line line = {
		.step = IPS_NULL, .replica = IPS_NULL, .limit = 10, .table = {.width = -1}};
	struct sequence s = {.line = &line, .err = err};
	struct ips_report *report;
	const struct cli_words words = {line.words, ARRAY_LEN(line.words), &line.word_count,
					"REPORT and KEY are enough"};

	if (cli_parse(cli, argc, argv, NULL, &line, &words, err) != ST_OK ||
	    report_verb_render(&s.render, &line.table, err) != ST_OK)
		return err->status;
	/* A single word is the report if such a file exists, otherwise the key. */
	if (line.word_count == 1 && !fs_exists(line.words[0])) {
		line.words[1] = line.words[0];
		line.words[0] = NULL;
	}
	if (report_find_report(&line.words[0], newest, cli->name, err) != ST_OK ||
	    report_public_open(&report, line.words[0], err) != ST_OK)
		return err->status;
	s.db = report_public_db(report);
	if (arena_init(&s.arena, 0) != 0)
		err_nomem(err);
	else if (report_tokens_read(&s.tokens, &s.arena, s.db, err) == ST_OK)
		make(&s);
	if (!err_stuck(err))
		report_render(&s.table, &s.render, stdout, err);
	report_table_free(&s.table);
	arena_fini(&s.arena);
	ips_report_close(report);
	return err->status;
}

enum status report_attention_run(int argc, char **argv, struct err *err)
{
	return run(&report_attention_cli, argc, argv, attention, err);
}

enum status report_losses_run(int argc, char **argv, struct err *err)
{
	return run(&report_losses_cli, argc, argv, losses, err);
}

enum status report_embeddings_run(int argc, char **argv, struct err *err)
{
	return run(&report_embeddings_cli, argc, argv, embeddings, err);
}
