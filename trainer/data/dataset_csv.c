/*
 * Tables of comma-separated values: a line of column names, then one item per line. The run file
 * says which columns are inputs, which is the target, which holds the weights of items, and how
 * inputs are scaled. A table for prediction alone may lack the target. A target whose values are
 * all whole numbers from 0 on is a class number; a target with words has one class for each word,
 * sorted by bytes; any other target is a value.
 *
 * Both parts are scaled by statistics of the training part.
 *
 * Files are read in pieces, and only what a training needs of them is kept: four bytes for each
 * input of the rows that data.limit leaves, and the texts of the targets.
 *
 * Threading: none. Source: RFC 4180, with any of its line ends.
 */
#include "trainer/data/dataset_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define CSV_COLUMNS_MOST 65536
#define CSV_NONE         SIZE_MAX /* no column */
#define CSV_PIECE        ((size_t)1 << 20)
#define CSV_ROWS_FIRST   16   /* with room */
#define CSV_ROWS_KNOWN   1024 /* that show how many the file has */

struct csv_column {
	char *name;
	int input; /* index among the inputs; -1: not an input */
};

struct csv {
	const char *name; /* of the file, for messages */
	const char *at, *end;
	struct fs_reader *reader; /* what follows after `end`; NULL: nothing */
	char *piece;              /* from there */
	uint64_t taken;           /* bytes from there so far */
	int64_t line;
	struct str field;
	struct csv_column *columns;
	size_t column_count, column_room;
	bool lacks;            /* the target and the weight may be missing */
	size_t target, weight; /* their columns, or CSV_NONE */
	size_t inputs;         /* number of input columns */
	/* Rows so far: the targets of all as 0-terminated strings, which decide on the classes; the inputs,
	 * row by row, and weights of the first `kept`. */
	float *values, *weights;
	size_t rows, kept, room, most; /* room: rows with memory; most: that may be kept */
	struct str targets;
	struct err *err;
};

/* ---- fields ---------------------------------------------------------------------------------- */

/* Whether there is another byte, at csv->at: read the next piece where one is used up. */
static bool has_more(struct csv *csv)
{
	size_t got;

	if (csv->at < csv->end)
		return true;
	if (!csv->reader || err_stuck(csv->err) ||
	    fs_reader_read(csv->reader, csv->piece, CSV_PIECE, &got, csv->err) != ST_OK || got == 0)
		return false;
	csv->at = csv->piece;
	csv->end = csv->piece + got;
	csv->taken += got;
	if (memchr(csv->piece, '\0', got))
		err_set(csv->err, ST_FORMAT, "%s: is no text: it holds a 0 byte", csv->name);
	return !err_stuck(csv->err);
}

static bool at_end_of_line(struct csv *csv)
{
	return !has_more(csv) || *csv->at == '\n' || *csv->at == '\r';
}

static void read_quoted(struct csv *csv)
{
	const int64_t begun = csv->line;

	for (csv->at++; has_more(csv); csv->at++) {
		if (*csv->at == '\n')
			csv->line++;
		if (*csv->at == '"') {
			csv->at++;
			if (!has_more(csv) || *csv->at != '"') {
				if (!at_end_of_line(csv) && *csv->at != ',')
					err_set(csv->err, ST_FORMAT,
						"%s: line %lld: text behind a closing quote",
						csv->name, (long long)csv->line);
				return;
			}
		}
		if (csv->field.length >= CSV_PIECE)
			break;
		str_add_bytes(&csv->field, csv->at, 1);
	}
	if (!err_stuck(csv->err))
		err_set(csv->err, ST_FORMAT,
			"%s: line %lld: a quote that begins here is not closed%s", csv->name,
			(long long)begun, csv->field.length >= CSV_PIECE ? " within 1 MiB" : "");
}

/* Read the bytes of an unquoted field that this piece has. */
static void read_run(struct csv *csv)
{
	const char *from = csv->at;

	while (csv->at < csv->end && *csv->at != '\n' && *csv->at != '\r' && *csv->at != ',')
		csv->at++;
	if (csv->field.length > CSV_PIECE)
		err_set(csv->err, ST_LIMIT, "%s: line %lld: a field is longer than 1 MiB",
			csv->name, (long long)csv->line);
	else
		str_add_bytes(&csv->field, from, (size_t)(csv->at - from));
}

/* Read the next field of the line, without blanks around it. */
static const char *read_field(struct csv *csv)
{
	struct str *field = &csv->field;

	str_clear(field);
	while (has_more(csv) && (*csv->at == ' ' || *csv->at == '\t'))
		csv->at++;
	if (has_more(csv) && *csv->at == '"') {
		read_quoted(csv);
	} else {
		while (!at_end_of_line(csv) && *csv->at != ',')
			read_run(csv);
		while (field->length > 0 && (field->text[field->length - 1] == ' ' ||
					     field->text[field->length - 1] == '\t'))
			field->text[--field->length] = '\0';
	}
	if (field->failed)
		err_nomem(csv->err);
	return str_peek(field);
}

/* Skip the separator after a field; return true if another field follows in the line. */
static bool next_in_line(struct csv *csv)
{
	if (err_stuck(csv->err) || !has_more(csv))
		return false;
	if (*csv->at == ',') {
		csv->at++;
		return true;
	}
	if (*csv->at == '\r')
		csv->at++;
	if (has_more(csv) && *csv->at == '\n')
		csv->at++;
	csv->line++;
	return false;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void read_header(struct csv *csv)
{
	do {
		struct csv_column *column;

		read_field(csv);
		if (err_stuck(csv->err))
			return;
		if (csv->column_count == CSV_COLUMNS_MOST) {
			err_set(csv->err, ST_LIMIT, "%s: more than %d columns", csv->name,
				CSV_COLUMNS_MOST);
			return;
		}
		if (mem_grow(&csv->columns, &csv->column_room, csv->column_count + 1,
			     sizeof(*csv->columns))) {
			err_nomem(csv->err);
			return;
		}
		column = &csv->columns[csv->column_count++];
		*column = (struct csv_column){mem_strdup(str_peek(&csv->field)), -1};
		if (!column->name)
			err_nomem(csv->err);
	} while (next_in_line(csv));
}

/* Return the column @name that is preceded by @before columns of the same name, or CSV_NONE. */
static size_t find_column(const struct csv *csv, const char *name, size_t before)
{
	for (size_t i = 0; i < csv->column_count; i++)
		if (!strcmp(csv->columns[i].name, name) && before-- == 0)
			return i;
	return CSV_NONE;
}

/* @who asks for the column: a key, or the other part, which has it. */
static size_t report_missing_column(struct csv *csv, const char *who, const char *name)
{
	const char **known = mem_calloc(csv->column_count + 1, sizeof(*known)), *near;

	for (size_t i = 0; known && i < csv->column_count; i++)
		known[i] = csv->columns[i].name;
	near = known ? str_nearest(name, known, csv->column_count) : NULL;
	err_set(csv->err, ST_INVALID, "%s: %s: there is no column \"%s\" in its first line%s%s%s",
		csv->name, who, name, near ? " (did you mean \"" : "", near ? near : "",
		near ? "\"?)" : "");
	mem_free(known);
	return 0;
}

static size_t require_column(struct csv *csv, const char *key, const char *name)
{
	const size_t found = find_column(csv, name, 0);

	return found == CSV_NONE ? report_missing_column(csv, key, name) : found;
}

static void report_no_counterpart(struct csv *csv, const struct csv *other, const char *name)
{
	char who[FS_PATH_SIZE + 8];

	snprintf(who, sizeof(who), "unlike %s", other->name);
	report_missing_column(csv, who, name);
}

/* Find the target by the key's name or by that of @train's (NULL: none) and its rank among columns
 * of that name; default: the last column. */
static void choose_target(struct csv *csv, const struct dataset_table *table,
			  const struct csv *train)
{
	const char *name = train ? train->columns[train->target].name : NULL;
	size_t before = 0;

	for (size_t i = 0; train && i < train->target; i++)
		before += !strcmp(train->columns[i].name, name);
	if (table->target)
		csv->target = csv->lacks ? find_column(csv, table->target, 0)
					 : require_column(csv, "data.target", table->target);
	else
		csv->target = train ? find_column(csv, name, before) : csv->column_count - 1;
	if (csv->target == CSV_NONE && !csv->lacks)
		report_no_counterpart(csv, train, name);
}

static void choose_weight(struct csv *csv, const struct dataset_table *table,
			  const struct csv *train)
{
	csv->weight = CSV_NONE;
	if (table->weight)
		csv->weight = csv->lacks || train
				      ? find_column(csv, table->weight, 0)
				      : require_column(csv, "data.weight", table->weight);
	if (!err_stuck(csv->err) && csv->weight != CSV_NONE && csv->weight == csv->target)
		err_set(csv->err, ST_INVALID, "%s: data.weight: \"%s\" is the target", csv->name,
			table->weight);
}

static void choose_input(struct csv *csv, const char *name)
{
	const size_t at = require_column(csv, "data.columns", name);

	if (err_stuck(csv->err))
		return;
	if (at == csv->target || at == csv->weight || csv->columns[at].input >= 0)
		err_set(csv->err, ST_INVALID, "%s: data.columns: \"%s\" is %s", csv->name, name,
			at == csv->target   ? "the target"
			: at == csv->weight ? "the weight"
					    : "there twice");
	csv->columns[at].input = (int)csv->inputs++;
}

static int by_name(const void *a, const void *b)
{
	const struct csv_column *const *left = a, *const *right = b;
	const int names = strcmp((*left)->name, (*right)->name);

	return names ? names : (*left > *right) - (*left < *right);
}

/* Return the columns that are neither target nor weight, sorted by name; free with mem_free(). */
static struct csv_column **sort_rest(struct csv *csv, size_t *count)
{
	struct csv_column **rest = mem_calloc(csv->column_count, sizeof(struct csv_column *));

	*count = 0;
	for (size_t i = 0; rest && i < csv->column_count; i++)
		if (i != csv->target && i != csv->weight)
			rest[(*count)++] = &csv->columns[i];
	if (rest)
		qsort(rest, *count, sizeof(struct csv_column *), by_name);
	else
		err_nomem(csv->err);
	return rest;
}

/* Match inputs with those of @train by name, and by rank among columns of one name. */
static void match_inputs(struct csv *csv, struct csv *train)
{
	struct csv_column **here, **there;
	size_t count, there_count;

	here = sort_rest(csv, &count);
	there = sort_rest(train, &there_count);
	if (!err_stuck(csv->err) && count != there_count)
		err_set(csv->err, ST_FORMAT, "%s: has %zu columns of inputs, %s has %zu", csv->name,
			count, train->name, there_count);
	for (size_t i = 0; i < count && !err_stuck(csv->err); i++) {
		const int names = strcmp(here[i]->name, there[i]->name);

		here[i]->input = there[i]->input;
		if (names)
			report_no_counterpart(names < 0 ? train : csv, names < 0 ? csv : train,
					      names < 0 ? here[i]->name : there[i]->name);
	}
	csv->inputs = count;
	mem_free(here);
	mem_free(there);
}

static void choose_columns(struct csv *csv, const struct dataset_table *table, struct csv *train)
{
	choose_target(csv, table, train);
	if (!err_stuck(csv->err))
		choose_weight(csv, table, train);
	for (int i = 0; i < table->column_count && !err_stuck(csv->err); i++)
		choose_input(csv, table->columns[i]);
	if (!table->columns && train && !err_stuck(csv->err))
		match_inputs(csv, train);
	for (size_t i = 0; !table->columns && !train && i < csv->column_count; i++)
		if (i != csv->target && i != csv->weight)
			csv->columns[i].input = (int)csv->inputs++;
	if (!err_stuck(csv->err) && csv->inputs == 0)
		err_set(csv->err, ST_FORMAT,
			"%s: its first line names no column but the target%s; inputs are wanted",
			csv->name, csv->weight == CSV_NONE ? "" : " and the weight");
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void read_value(struct csv *csv, const char *column, const char *text, float *out)
{
	double value;

	if (!str_to_double(text, &value) || !isfinite((float)value))
		err_set(csv->err, ST_FORMAT,
			"%s: line %lld: column \"%s\": \"%.40s\" is no number (data.columns "
			"chooses "
			"those that are inputs)",
			csv->name, (long long)csv->line, column, text);
	else
		*out = (float)value;
}

/* Return how many rows to have memory for: as many as the file will have by what was read of it so
 * far, if that is known. */
static size_t estimate_rows(const struct csv *csv)
{
	const double read = (double)(csv->taken - (uint64_t)(csv->end - csv->at));
	double rows = 2.0 * (double)csv->room;

	if (csv->kept >= CSV_ROWS_KNOWN && csv->reader && csv->reader->size > 0 && read > 0.0)
		rows = max(1.02 * (double)csv->kept * (double)csv->reader->size / read,
			   1.25 * (double)csv->room);
	rows = min(max(rows, (double)CSV_ROWS_FIRST), 1e15);
	return min((size_t)rows, csv->most);
}

/* Have memory for another row, if the machine has it. */
static void reserve_row(struct csv *csv)
{
	const size_t rows = estimate_rows(csv), row = (csv->inputs + 1) * sizeof(float);
	const double bytes = (double)rows * (double)row;
	char need_text[FMT_SIZE], have_text[FMT_SIZE];
	float *values, *weights;

	if (bytes - (double)csv->room * (double)row > (double)mem_available()) {
		err_set(csv->err, ST_LIMIT,
			"%s: its rows take about %s of memory, and this machine has %s: "
			"data.columns chooses fewer inputs, data.limit the first so many rows",
			csv->name, fmt_bytes(need_text, (uint64_t)bytes),
			fmt_bytes(have_text, (uint64_t)mem_available()));
		return;
	}
	values = mem_resize(csv->values, rows * csv->inputs, sizeof(*values));
	csv->values = values ? values : csv->values;
	weights = mem_resize(csv->weights, rows, sizeof(*weights));
	csv->weights = weights ? weights : csv->weights;
	if (values && weights)
		csv->room = rows;
	else
		err_nomem(csv->err);
}

static void read_row(struct csv *csv)
{
	const int64_t line = csv->line;
	const bool keeps = csv->kept < csv->most;
	size_t at = 0;

	if (keeps && csv->kept == csv->room)
		reserve_row(csv);
	if (err_stuck(csv->err))
		return;
	do {
		const char *text = read_field(csv);

		if (err_stuck(csv->err))
			return;
		if (at == csv->target)
			str_add_bytes(&csv->targets, text, strlen(text) + 1);
		else if (keeps && at == csv->weight)
			read_value(csv, csv->columns[at].name, text, &csv->weights[csv->kept]);
		else if (keeps && at < csv->column_count && csv->columns[at].input >= 0)
			read_value(csv, csv->columns[at].name, text,
				   &csv->values[csv->kept * csv->inputs +
						(size_t)csv->columns[at].input]);
		at++;
	} while (next_in_line(csv));
	csv->kept += keeps;
	csv->rows++;
	if (csv->targets.failed && !err_stuck(csv->err))
		err_nomem(csv->err);
	if (!err_stuck(csv->err) && at != csv->column_count)
		err_set(csv->err, ST_FORMAT,
			"%s: line %lld: has %zu fields, but the first line names %zu columns",
			csv->name, (long long)line, at, csv->column_count);
}

static void read_table(struct csv *csv, const struct dataset_table *table, struct csv *train)
{
	has_more(csv);
	if (csv->end > csv->at && memchr(csv->at, '\0', (size_t)(csv->end - csv->at)))
		err_set(csv->err, ST_FORMAT, "%s: is no text: it holds a 0 byte", csv->name);
	if (err_stuck(csv->err))
		return;
	if (csv->end - csv->at >= 3 && !memcmp(csv->at, "\xef\xbb\xbf", 3))
		csv->at += 3;
	read_header(csv);
	if (!err_stuck(csv->err))
		choose_columns(csv, table, train);
	while (!err_stuck(csv->err) && has_more(csv)) {
		if (at_end_of_line(csv))
			next_in_line(csv); /* an empty line */
		else
			read_row(csv);
	}
	if (!err_stuck(csv->err) && csv->rows == 0)
		err_set(csv->err, ST_FORMAT, "%s: has no rows", csv->name);
}

static void csv_free(struct csv *csv)
{
	for (size_t i = 0; i < csv->column_count; i++)
		mem_free(csv->columns[i].name);
	mem_free(csv->columns);
	mem_free(csv->piece);
	mem_free(csv->values);
	mem_free(csv->weights);
	str_free(&csv->field);
	str_free(&csv->targets);
}

/* ---- scales ---------------------------------------------------------------------------------- */

struct csv_scale {
	double shift, by;
};

static struct csv_scale compute_scale(const struct csv *csv, size_t column, enum dataset_scale kind)
{
	double sum = 0.0, squares = 0.0, least = INFINITY, most = -INFINITY, mean;
	struct csv_scale scale = {0.0, 1.0};

	for (size_t r = 0; r < csv->kept; r++) {
		const double value = (double)csv->values[r * csv->inputs + column];

		sum += value;
		least = min(least, value);
		most = max(most, value);
	}
	mean = sum / (double)csv->kept;
	for (size_t r = 0; r < csv->kept; r++) {
		const double off = (double)csv->values[r * csv->inputs + column] - mean;

		squares += off * off;
	}
	if (kind == DATASET_SCALE_MINMAX)
		scale = (struct csv_scale){least, most - least};
	else if (kind == DATASET_SCALE_STANDARD)
		scale = (struct csv_scale){mean, sqrt(squares / (double)csv->kept)};
	if (scale.by == 0.0)
		scale.by = 1.0;
	return scale;
}

/* Scale both parts by the statistics of @train. */
static void scale_inputs(struct csv *train, struct csv *test, enum dataset_scale kind)
{
	for (size_t c = 0; kind != DATASET_SCALE_NONE && c < train->inputs; c++) {
		const struct csv_scale scale = compute_scale(train, c, kind);

		for (int part = 0; part < 2; part++) {
			const struct csv *csv = part == 0 ? train : test;

			for (size_t r = 0; r < csv->kept; r++) {
				float *value = &csv->values[r * csv->inputs + c];

				*value = (float)(((double)*value - scale.shift) / scale.by);
			}
		}
	}
}

/* ---- targets --------------------------------------------------------------------------------- */

enum csv_target {
	CSV_CLASSES,
	CSV_VALUES,
	CSV_WORDS
};

/* The kind of @csv's targets, which without them is @kind. */
static enum csv_target target_kind(const struct csv *csv, enum csv_target kind)
{
	const char *text = csv->targets.text;

	for (size_t r = 0; csv->target != CSV_NONE && r < csv->rows;
	     r++, text += strlen(text) + 1) {
		double value;

		if (!str_to_double(text, &value))
			return CSV_WORDS;
		if (value < 0.0 || value >= INT32_MAX || value != floor(value))
			kind = CSV_VALUES;
	}
	return kind;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Return the distinct words of the targets, pointing into their text; free with mem_free(). */
static const char **find_words(const struct csv *csv, int *count)
{
	const char **words = mem_calloc(csv->rows + 1, sizeof(*words));
	const char *text = csv->targets.text;
	size_t kept = 0;

	if (!words)
		return NULL;
	for (size_t r = 0; r < csv->rows; r++, text += strlen(text) + 1)
		words[r] = text;
	qsort(words, csv->rows, sizeof(*words), by_bytes);
	for (size_t r = 0; r < csv->rows; r++)
		if (kept == 0 || strcmp(words[kept - 1], words[r]) != 0)
			words[kept++] = words[r];
	*count = (int)kept;
	return words;
}

/* Store one target as a class number or a value. */
static void store_target(struct csv *csv, enum csv_target kind, const char *text,
			 const struct dataset_about *about, uint8_t *out, size_t row)
{
	double value = 0.0;

	if (kind == CSV_WORDS) {
		const char *const *found = bsearch(&text, about->names, (size_t)about->classes,
						   sizeof(*about->names), by_bytes);

		if (!found) {
			err_set(csv->err, ST_FORMAT,
				"%s: \"%.80s\" is no class: no item to train with has it",
				csv->name, text);
			return;
		}
		value = (double)(found - about->names);
	} else if (!str_to_double(text, &value) || !isfinite((float)value)) {
		err_set(csv->err, ST_FORMAT,
			"%s: the target \"%.80s\" is no number, as in training", csv->name, text);
		return;
	}
	if (kind == CSV_VALUES) {
		const float real = (float)value;

		memcpy(out + row * sizeof(real), &real, sizeof(real));
	} else {
		const int64_t class = (int64_t)value;

		memcpy(out + row * sizeof(class), &class, sizeof(class));
	}
}

static void join_table(struct dataset *out, struct csv *csv, enum csv_target kind,
		       const struct dataset_about *about)
{
	const bool labelled = csv->target != CSV_NONE;
	const size_t each = kind == CSV_VALUES ? sizeof(float) : sizeof(int64_t);
	struct dataset_array inputs = {
		.type = DATASET_F32, .ndim = 2, .dim = {(int64_t)csv->kept, (int64_t)csv->inputs}};
	struct dataset_array targets = {.type = kind == CSV_VALUES ? DATASET_F32 : DATASET_I64,
					.ndim = labelled,
					.dim = {(int64_t)csv->kept}};
	struct dataset_array weights = {
		.type = DATASET_F32, .ndim = 1, .dim = {(int64_t)csv->kept}};
	const char *text = csv->targets.text;

	targets.bytes = mem_calloc(csv->kept, each);
	if (!targets.bytes)
		err_nomem(csv->err);
	for (size_t r = 0; labelled && r < csv->kept && !err_stuck(csv->err); r++) {
		store_target(csv, kind, text, about, targets.bytes, r);
		text += strlen(text) + 1;
	}
	inputs.bytes = (uint8_t *)csv->values;
	csv->values = NULL;
	dataset__join(out, about, &inputs, &targets, csv->err);
	if (err_stuck(csv->err) || !labelled || csv->weight == CSV_NONE)
		return;
	weights.bytes = (uint8_t *)csv->weights;
	csv->weights = NULL;
	dataset__weigh(out, csv->columns[csv->weight].name, &weights, csv->err);
	dataset__array_free(&weights);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_there(const struct dataset_csv *part)
{
	return part->bytes || part->reader;
}

static void read_parts(struct csv csv[2], const struct dataset_params *params,
		       const struct dataset_csv parts[2], struct err *err)
{
	for (int part = 0; part < 2; part++) {
		csv[part] =
			(struct csv){.name = parts[part].name,
				     .at = parts[part].bytes,
				     .reader = parts[part].reader,
				     .line = 1,
				     .most = params->limit > 0 ? (size_t)params->limit : SIZE_MAX,
				     .lacks = part == 1 && params->no_test_targets,
				     .err = err};
		if (!is_there(&parts[part]) || err_stuck(err))
			continue;
		csv[part].end = parts[part].bytes ? parts[part].bytes + parts[part].length : NULL;
		csv[part].piece = parts[part].reader ? mem_alloc(CSV_PIECE) : NULL;
		if (parts[part].reader && !csv[part].piece)
			err_nomem(err);
		else
			read_table(&csv[part], &params->table,
				   part == 1 && is_there(&parts[0]) ? &csv[0] : NULL);
	}
	if (err_stuck(err))
		return;
	if (!is_there(&parts[0]) && params->table.scale != DATASET_SCALE_NONE)
		err_set(err, ST_INVALID,
			"%s: data.scale: columns are scaled by the training part, and there is "
			"none: give a folder with train.csv and test.csv",
			csv[1].name);
}

enum status dataset__csv_parse(struct dataset *train, struct dataset *test,
			       const struct dataset_params *params,
			       const struct dataset_csv parts[2], struct err *err)
{
	const struct csv *labelled;
	struct csv csv[2];
	struct dataset_about about = {
		.inputs = "rows", .targets = "targets", .limit = params->limit};
	const char **words = NULL;
	enum csv_target kind = CSV_VALUES;
	struct err own;

	err = err_start(err, &own);
	read_parts(csv, params, parts, err);
	labelled = csv[0].rows > 0 ? &csv[0] : &csv[1];
	if (!err_stuck(err) && labelled->target != CSV_NONE) {
		kind = target_kind(labelled, CSV_CLASSES);
		/* A value in the other part makes all of them values. */
		if (kind == CSV_CLASSES && target_kind(&csv[1], kind) == CSV_VALUES)
			kind = CSV_VALUES;
		if (kind == CSV_WORDS) {
			words = find_words(labelled, &about.classes);
			about.names = words;
			if (!words)
				err_nomem(err);
		}
	}
	if (!err_stuck(err))
		scale_inputs(&csv[0], &csv[1], params->table.scale);
	for (int part = 0; part < 2 && !err_stuck(err); part++) {
		about.source = csv[part].name;
		if (csv[part].rows > 0)
			join_table(part == 0 ? train : test, &csv[part], kind, &about);
	}
	if (err_stuck(err)) {
		dataset_close(train);
		dataset_close(test);
	}
	mem_free(words);
	csv_free(&csv[0]);
	csv_free(&csv[1]);
	return err->status;
}

/* Set the paths of the parts; "" for a missing one. */
static void find_parts(const struct dataset_opening *o, char paths[2][FS_PATH_SIZE])
{
	const bool folder = fs_is_dir(o->path);
	bool fits = true;

	paths[0][0] = paths[1][0] = '\0';
	if (folder)
		fits = fs_path(paths[0], "%s/train.csv", o->path) &&
		       fs_path(paths[1], "%s/test.csv", o->path);
	else
		fits = fs_path(paths[dataset__only_part(o->params)], "%s", o->path);
	if (!fits)
		err_set(o->err, ST_LIMIT, "%s: the path is too long", o->path);
	else if (folder && !fs_exists(paths[1]))
		paths[1][0] = '\0';
	else if (folder && o->params->no_train && !fs_exists(paths[0]))
		paths[0][0] = '\0';
}

void dataset__csv_open(const struct dataset_opening *o)
{
	struct dataset_csv parts[2] = {{0}};
	struct fs_reader readers[2] = {{.fd = -1}, {.fd = -1}};
	char paths[2][FS_PATH_SIZE];

	if (o->path)
		find_parts(o, paths);
	else
		err_set(o->err, ST_INVALID,
			"data set \"%s\": which file? Give it with --data.path FILE.csv, or a "
			"folder with train.csv and test.csv",
			o->known->name);
	for (int part = 0; part < 2 && !err_stuck(o->err); part++) {
		if (paths[part][0] == '\0')
			continue;
		fs_reader_open(&readers[part], paths[part], o->err);
		parts[part].name = paths[part];
		parts[part].reader = &readers[part];
	}
	if (!err_stuck(o->err))
		dataset__csv_parse(o->parts[0], o->parts[1], o->params, parts, o->err);
	fs_reader_close(&readers[0]);
	fs_reader_close(&readers[1]);
}
