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

/* The token at @at of @numbers; empty if @numbers is NULL. */
static struct report_cell token_cell(struct sequence *s, const float *numbers, int64_t at)
{
	char text[REPORT_TOKEN_SIZE];

	return report_cell_of_text(
		!numbers ? NULL
			 : arena_strdup(&s->arena,
					report_token_text(&s->tokens, (double)numbers[at], text)));
}

static enum status check_within(const struct sequence *s, const char *option, int64_t at,
				int64_t count, struct err *err)
{
	if (at < count)
		return ST_OK;
	return err_set(err, ST_INVALID, "%s %lld: %s has %lld, from 0", option, (long long)at,
		       s->kept.key, (long long)count);
}

/* Print "attention_0_scores, step 15: (2, 2, 32, 32): batch, heads, queries, keys". */
static void print_header(const struct sequence *s)
{
	printf("%s, %s %lld: %s%s%s\n", s->kept.key, s->kept.by_update ? "weight update" : "step",
	       (long long)s->kept.step, s->kept.shape_text, s->kept.dims ? ": " : "",
	       s->kept.dims ? s->kept.dims : "");
}

static enum status read_kept(struct sequence *s, const char *dims, struct err *err)
{
	struct report_kept_at at = kept_at(s, s->line->words[1]);

	at.dims = at.key ? NULL : dims;
	return report_kept_read(&s->kept, &s->arena, s->db, &at, err);
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
		printf("%*s%s  ", max(0, 8 - report__width(text)), "", text);
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

static enum status head_rows(struct sequence *s, int64_t heads, int64_t queries, int64_t keys,
			     struct err *err)
{
	static const struct report_column columns[] = {{"head", REPORT_NUMBER},
						       {"entropy", REPORT_REAL},
						       {"distance", REPORT_REAL},
						       {"greatest", REPORT_REAL}};
	const float *sample = s->kept.values + s->line->sample * heads * queries * keys;
	enum status status =
		report_table_new(&s->table, "attention", columns, ARRAY_LEN(columns), heads, err);

	for (int64_t h = 0; h < heads && status == ST_OK; h++) {
		const struct report_head head = report_head_of(sample + h * queries * keys, 1,
							       queries * keys, queries, keys);
		struct report_cell *row = report_table_add(&s->table);

		row[0] = report_cell_of_int(h);
		row[1] = report_cell_of_real(head.entropy);
		row[2] = report_cell_of_real(head.distance);
		row[3] = report_cell_of_real(head.greatest);
	}
	return status;
}

static enum status score_rows(struct sequence *s, const float *map, int64_t queries, int64_t keys,
			      const float *of_queries, const float *of_keys, struct err *err)
{
	static const struct report_column columns[] = {{"query", REPORT_NUMBER},
						       {"query_token", REPORT_TEXT},
						       {"key", REPORT_NUMBER},
						       {"key_token", REPORT_TEXT},
						       {"score", REPORT_REAL}};
	enum status status = report_table_new(&s->table, "attention", columns, ARRAY_LEN(columns),
					      queries * keys, err);

	for (int64_t i = 0; i < queries * keys && status == ST_OK; i++) {
		struct report_cell *row = report_table_add(&s->table);

		row[0] = report_cell_of_int(i / keys);
		row[1] = token_cell(s, of_queries, i / keys);
		row[2] = report_cell_of_int(i % keys);
		row[3] = token_cell(s, of_keys, i % keys);
		row[4] = report_cell_of_real((double)map[i]);
	}
	return status;
}

static enum status attention(struct sequence *s, struct err *err)
{
	const struct sequence_line *line = s->line;
	const struct report_kept *kept = &s->kept;
	const float *of_queries, *of_keys, *map;
	int64_t heads, queries, keys;
	enum status status = ST_OK;
	/* "attention_0" stands for "attention_0_scores" if that exists. */
	const char *word = line->words[1];
	const struct report_kept_at at =
		kept_at(s, word ? arena_printf(&s->arena, "%s_scores", word) : NULL);
	struct err none = {ST_OK, ""};

	if (!at.key || report_kept_read(&s->kept, &s->arena, s->db, &at, &none) != ST_OK)
		status = read_kept(s, "%queries, keys", err);
	if (status != ST_OK)
		return status;
	if (kept->ndim < 3 || kept->ndim > 4)
		return err_set(err, ST_INVALID,
			       "%s is %s: scores are (batch, heads, queries, keys)", kept->key,
			       kept->shape_text);
	heads = kept->ndim == 4 ? kept->shape[1] : 1;
	queries = kept->shape[kept->ndim - 2];
	keys = kept->shape[kept->ndim - 1];
	status = check_within(s, "--sample", line->sample, kept->shape[0], err);
	if (status == ST_OK)
		status = check_within(s, "--head", line->head, heads, err);
	if (status == ST_OK)
		status = report_tokens_of(&of_queries, &s->arena, s->db, &s->tokens, kept, NULL,
					  line->sample, queries, err);
	if (status == ST_OK)
		status = report_tokens_of(&of_keys, &s->arena, s->db, &s->tokens, kept, NULL,
					  line->sample, keys, err);
	if (status != ST_OK)
		return status;
	map = kept->values + (line->sample * heads + line->head) * queries * keys;
	if (s->render.format == REPORT_AS_TEXT && !line->by) {
		print_header(s);
		printf("sample %d, head %d: a line for each query, a column for each key\n\n",
		       line->sample, line->head);
		print_map(s, map, queries, keys, of_queries, of_keys);
	}
	if (line->by && strcmp(line->by, "score") == 0)
		return score_rows(s, map, queries, keys, of_queries, of_keys, err);
	return head_rows(s, heads, queries, keys, err);
}

/* ---- token-losses ---------------------------------------------------------------------------- */

/* Mean at each position, over all captures or those of one step. */
static enum status position_rows(struct sequence *s, int64_t length, struct err *err)
{
	static const struct report_column columns[] = {
		{"position", REPORT_NUMBER}, {"loss", REPORT_REAL}, {"count", REPORT_COUNT}};
	double *sums = arena_alloc(&s->arena, (size_t)length, sizeof(*sums));
	struct report_kept_at at = kept_at(s, s->kept.key);
	struct report_kept kept = s->kept;
	enum status status = sums ? ST_OK : err_nomem(err);
	struct err none = {ST_OK, ""};
	struct arena arena;
	int64_t count = 0;

	if (status != ST_OK || arena_init(&arena, 0) != 0)
		return err_nomem(err);
	while (status == ST_OK) {
		const bool fits = kept.ndim == 2 && kept.shape[1] == length;

		for (int64_t i = 0; fits && i < kept.count; i++)
			sums[i % length] += (double)kept.values[i];
		count += fits ? kept.count / length : 0;
		at.below = kept.row_id;
		arena_reset(&arena);
		status = report_kept_read(&kept, &arena, s->db, &at, &none);
	}
	arena_fini(&arena);
	if (status != ST_NOTFOUND)
		return err_set(err, status, "%s", none.text);
	status = report_table_new(&s->table, "token-losses", columns, ARRAY_LEN(columns), length,
				  err);
	for (int64_t i = 0; i < length && status == ST_OK; i++) {
		struct report_cell *row = report_table_add(&s->table);

		row[0] = report_cell_of_int(i);
		row[1] = report_cell_of_real(sums[i] / (double)count);
		row[2] = report_cell_of_int(count);
	}
	return status;
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
		column += report__width(text);
		if (column > width) {
			printf("\n");
			column = report__width(text);
		}
		printf("\033[97;48;5;%dm%s\033[0m",
		       loss_colours[share > 0.0f ? min((int)(share * (float)colours), colours - 1)
						 : 0],
		       text);
	}
	printf("\nfrom 0 to %.3g, the brighter the greater\n\n", (double)most);
}

static enum status losses(struct sequence *s, struct err *err)
{
	static const struct report_column columns[] = {
		{"position", REPORT_NUMBER}, {"token", REPORT_TEXT}, {"loss", REPORT_REAL}};
	const struct sequence_line *line = s->line;
	const struct report_kept *kept = &s->kept;
	const struct report_kept_at at =
		kept_at(s, line->words[1] ? line->words[1] : "loss_tokens");
	const float *targets = NULL, *values;
	int64_t length;
	enum status status;

	status = report_kept_read(&s->kept, &s->arena, s->db, &at, err);
	if (status != ST_OK)
		return status;
	if (kept->ndim != 2)
		return err_set(err, ST_INVALID, "%s is %s: losses of tokens are (batch, tokens)",
			       kept->key, kept->shape_text);
	length = kept->shape[1];
	if (line->by && strcmp(line->by, "position") == 0)
		return position_rows(s, length, err);
	status = check_within(s, "--sample", line->sample, kept->shape[0], err);
	if (status == ST_OK)
		status = report_tokens_of(&targets, &s->arena, s->db, &s->tokens, kept, "targets",
					  line->sample, length, err);
	if (status != ST_OK)
		return status;
	values = kept->values + line->sample * length;
	if (s->render.format == REPORT_AS_TEXT) {
		print_header(s);
		if (s->render.bold && targets)
			print_text(s, values, targets, length);
	}
	status = report_table_new(&s->table, "token-losses", columns, ARRAY_LEN(columns), length,
				  err);
	for (int64_t i = 0; i < length && status == ST_OK; i++) {
		struct report_cell *row = report_table_add(&s->table);

		row[0] = report_cell_of_int(i);
		row[1] = token_cell(s, targets, i);
		row[2] = report_cell_of_real((double)values[i]);
	}
	return status;
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static void add_norm_row(struct sequence *s, const struct report_row *norm, const char *which)
{
	struct report_cell *row = report_table_add(&s->table);
	const float number = (float)norm->row;

	row[0] = report_cell_of_int(norm->row);
	row[1] = token_cell(s, s->tokens.bytes || norm->row < s->tokens.count ? &number : NULL, 0);
	row[2] = report_cell_of_real(norm->norm);
	row[3] = report_cell_of_real(norm->change);
	row[4] = report_cell_of_text(which);
}

static enum status embeddings(struct sequence *s, struct err *err)
{
	static const struct report_column columns[] = {{"row", REPORT_NUMBER},
						       {"token", REPORT_TEXT},
						       {"norm", REPORT_REAL},
						       {"change", REPORT_REAL},
						       {"which", REPORT_TEXT}};
	const bool text = s->render.format == REPORT_AS_TEXT;
	struct report_row *norms;
	int64_t rows, most, still = 0;
	enum status status = read_kept(s, "tokens, features", err);

	if (status == ST_OK)
		status = report_rows_of(&norms, &s->arena, s->db, &s->kept, err);
	if (status != ST_OK)
		return status;
	if (text)
		print_header(s);
	rows = s->kept.shape[0];
	most = min(rows, s->line->limit);
	status = report_table_new(&s->table, "embeddings", columns, ARRAY_LEN(columns),
				  text ? 3 * most : rows, err);
	if (status != ST_OK)
		return status;
	for (int64_t r = 0; r < rows && !text; r++)
		add_norm_row(s, &norms[r], norms[r].change == 0.0 ? "unchanged" : NULL);
	if (!text)
		return ST_OK;
	for (int64_t r = 0; r < rows; r++) {
		if (norms[r].change == 0.0 && still++ < most)
			add_norm_row(s, &norms[r], "unchanged");
	}
	report_rows_sort(norms, rows);
	for (int64_t r = 0; r < most; r++)
		add_norm_row(s, &norms[r], "largest");
	for (int64_t r = max(rows - most, most); r < rows; r++)
		add_norm_row(s, &norms[r], "smallest");
	if (isnan(norms[0].change))
		s->table.note = "Values were kept once: which rows change is not known.";
	else
		s->table.note = arena_printf(&s->arena,
					     "%lld of %lld rows have not changed since values were "
					     "first kept.",
					     (long long)still, (long long)rows);
	return s->table.note ? ST_OK : err_nomem(err);
}

/* ---- the commands ---------------------------------------------------------------------------- */

static enum status run(const struct cli_command *cli, int argc, char **argv,
		       enum status (*make)(struct sequence *s, struct err *err), struct err *err)
{
	char newest[FS_PATH_SIZE];
	struct sequence_line line = {
		.step = IPS_NULL, .replica = IPS_NULL, .limit = 10, .table = {.width = -1}};
	struct sequence s = {.line = &line};
	struct ips_report *report = NULL;
	const struct cli_words words = {line.words, ARRAY_LEN(line.words), &line.word_count,
					"REPORT and KEY are enough"};
	enum status status = cli_parse(cli, argc, argv, NULL, &line, &words, err);

	/* A single word is the report if such a file exists, otherwise the key. */
	if (line.word_count == 1 && !fs_exists(line.words[0])) {
		line.words[1] = line.words[0];
		line.words[0] = NULL;
	}
	if (status == ST_OK)
		status = report_verb_render(&s.render, &line.table, err);
	if (status == ST_OK)
		status = report_find_report(&line.words[0], newest, cli->name, err);
	if (status == ST_OK)
		status = report_public_open(&report, line.words[0], err);
	if (status != ST_OK)
		return status;
	s.db = report_public_db(report);
	status = arena_init(&s.arena, 0) == 0 ? report_tokens_read(&s.tokens, &s.arena, s.db, err)
					      : err_nomem(err);
	if (status == ST_OK)
		status = make(&s, err);
	if (status == ST_OK)
		status = report_render(&s.table, &s.render, stdout, err);
	report_table_free(&s.table);
	arena_fini(&s.arena);
	ips_report_close(report);
	return status;
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
