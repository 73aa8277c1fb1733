/*
 * Texts as numbers. A text file is a language-modelling set: windows of sequence_length tokens that
 * do not overlap; the targets are the same windows shifted by one token. A folder of folders has
 * one class for each subfolder, and each .txt file in it is an item.
 *
 * Tokens are bytes, characters or words. A file's characters are numbered by their rank among all
 * characters of the file, sorted by bytes, which is the order of code points; a file's bytes are
 * their own numbers. Labelled texts have Keras's reserved numbers (those of its imdb), then the
 * tokens of the training part, the most frequent first; items are padded and truncated at their
 * beginning, as pad_sequences() does. Words are those of Keras's TextVectorization: lower case,
 * punctuation removed, both for ASCII only, so that the locale does not matter.
 *
 * Items of the classes are interleaved, so that a split or a limit includes a share of each.
 *
 * Threading: none.
 */
#include "trainer/data/dataset_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"

#define TEXT_TOKENS_MOST ((size_t)1 << 29)

/* Reserved numbers of labelled texts. */
enum {
	TEXT_PAD,
	TEXT_START,
	TEXT_UNKNOWN,
	TEXT_RESERVED
};

static const char *const token_names[] = {"characters", "bytes", "words"};

/* ---- tokens ---------------------------------------------------------------------------------- */

struct text_reader {
	const char *name; /* of the file, for messages */
	const char *begin, *at, *end;
	enum dataset_tokens tokens;
	struct str word;
	struct err *err;
};

struct text_token {
	const char *text; /* valid until the next one is read */
	size_t length;
};

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool read_word(struct text_reader *reader, struct text_token *out)
{
	static const char punctuation[] = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'";

	str_clear(&reader->word);
	for (; reader->at < reader->end; reader->at++) {
		char c = *reader->at;

		if (is_blank(c) && reader->word.length > 0)
			break;
		if (is_blank(c) || memchr(punctuation, c, sizeof(punctuation) - 1))
			continue;
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		str_add_bytes(&reader->word, &c, 1);
	}
	if (reader->word.failed)
		err_nomem(reader->err);
	*out = (struct text_token){str_peek(&reader->word), reader->word.length};
	return out->length > 0 && !err_stuck(reader->err);
}

static void report_no_character(const struct text_reader *reader)
{
	int64_t line = 1;

	for (const char *at = reader->begin; at < reader->at; at++)
		line += *at == '\n';
	err_set(reader->err, ST_FORMAT,
		"%s: line %lld: the byte 0x%02x is no character of UTF-8: data.tokens bytes reads "
		"it as it is",
		reader->name, (long long)line, (unsigned)(unsigned char)*reader->at);
}

/* Read the next token; false: the text's end, or an error. */
static bool read_token(struct text_reader *reader, struct text_token *out)
{
	if (reader->tokens == DATASET_WORDS)
		return read_word(reader, out);
	if (reader->at == reader->end)
		return false;
	*out = (struct text_token){reader->at,
				   reader->tokens == DATASET_BYTES ? 1 : str_utf8(reader->at)};
	if (out->length == 0)
		report_no_character(reader);
	reader->at += out->length;
	return out->length > 0;
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

struct text_entry {
	size_t text; /* offset in `texts` of a 0-terminated string */
	int64_t count;
	int32_t number;
};

struct vocabulary {
	struct str texts;
	struct text_entry *entries; /* in the order of first occurrence */
	size_t count, room;
	struct map map;
};

static const char *entry_text(const struct vocabulary *vocabulary, size_t entry)
{
	return vocabulary->texts.text + vocabulary->entries[entry].text;
}

static size_t find_entry(const struct vocabulary *vocabulary, const struct text_token *token,
			 uint64_t hash)
{
	size_t at;

	MAP_FIND(at, &vocabulary->map, hash,
		 !strncmp(entry_text(vocabulary, at), token->text, token->length) &&
			 entry_text(vocabulary, at)[token->length] == '\0');
	return at;
}

/* Count one more occurrence of @token, adding an entry for a new one; return its entry. */
static size_t count_token(struct vocabulary *vocabulary, const struct text_token *token,
			  struct err *err)
{
	const uint64_t hash = map_bytes(MAP_SEED, token->text, token->length);
	size_t at = find_entry(vocabulary, token, hash);

	if (at == MAP_NONE) {
		at = vocabulary->count;
		if (mem_grow(&vocabulary->entries, &vocabulary->room, at + 1,
			     sizeof(*vocabulary->entries)) ||
		    map_add(&vocabulary->map, hash, at)) {
			err_nomem(err);
			return 0;
		}
		vocabulary->entries[at] = (struct text_entry){.text = vocabulary->texts.length};
		vocabulary->count++;
		str_add_bytes(&vocabulary->texts, token->text, token->length);
		str_add_bytes(&vocabulary->texts, "", 1);
		if (vocabulary->texts.failed)
			err_nomem(err);
	}
	vocabulary->entries[at].count++;
	return at;
}

static void vocabulary_fini(struct vocabulary *vocabulary)
{
	str_free(&vocabulary->texts);
	mem_free(vocabulary->entries);
	map_fini(&vocabulary->map);
}

struct ranked {
	int64_t rank; /* ascending */
	const char *text;
	size_t entry;
};

static int by_rank(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	return a->rank != b->rank ? SORTED_BY(a, b, rank) : strcmp(a->text, b->text);
}

/* Number the entries from @first on, sorted by bytes, or if @frequent by descending frequency
 * first. Numbers from @most on become TEXT_UNKNOWN. Returns the texts in that order; free with
 * mem_free(). */
static const char **number_entries(struct vocabulary *vocabulary, int32_t first, int64_t most,
				   bool frequent)
{
	const size_t count = vocabulary->count;
	struct ranked *ranked = mem_calloc(count + 1, sizeof(*ranked));
	const char **names = mem_calloc(count + 1, sizeof(*names));

	for (size_t i = 0; ranked && i < count; i++)
		ranked[i] = (struct ranked){.rank = frequent ? -vocabulary->entries[i].count : 0,
					    .text = entry_text(vocabulary, i),
					    .entry = i};
	if (ranked)
		qsort(ranked, count, sizeof(*ranked), by_rank);
	for (size_t i = 0; ranked && names && i < count; i++) {
		const int64_t number = first + (int64_t)i;

		vocabulary->entries[ranked[i].entry].number =
			number < most ? (int32_t)number : TEXT_UNKNOWN;
		names[i] = ranked[i].text;
	}
	mem_free(ranked);
	return names;
}

/* ---- token sequences ------------------------------------------------------------------------- */

struct sequence {
	uint32_t *entries; /* of the vocabulary; UINT32_MAX: not in it */
	size_t count, room;
	bool counts_only; /* no entries */
};

static void report_too_many(struct err *err)
{
	err_set(err, ST_LIMIT, "data.path: more than %zu tokens are not read", TEXT_TOKENS_MOST);
}

static void add_to_sequence(struct sequence *sequence, size_t entry, struct err *err)
{
	if (sequence->count == TEXT_TOKENS_MOST)
		report_too_many(err);
	else if (sequence->counts_only)
		sequence->count++;
	else if (mem_grow(&sequence->entries, &sequence->room, sequence->count + 1,
			  sizeof(*sequence->entries)))
		err_nomem(err);
	else
		sequence->entries[sequence->count++] = (uint32_t)entry;
}

static bool check_text(const struct dataset_csv *text, struct err *err)
{
	if (memchr(text->bytes, '\0', text->length))
		err_set(err, ST_FORMAT, "%s: is no text: it holds a 0 byte", text->name);
	return !err_stuck(err);
}

/* Append the tokens of the 0-terminated @text to @sequence; @counts: add and count tokens. */
static void read_sequence(struct sequence *sequence, struct vocabulary *vocabulary, bool counts,
			  enum dataset_tokens tokens, const struct dataset_csv *text,
			  struct err *err)
{
	struct text_reader reader = {.name = text->name,
				     .begin = text->bytes,
				     .at = text->bytes,
				     .end = text->bytes + text->length,
				     .tokens = tokens,
				     .err = err};
	struct text_token token;

	(void)check_text(text, err);
	while (!err_stuck(err) && read_token(&reader, &token)) {
		size_t entry;

		if (counts)
			entry = count_token(vocabulary, &token, err);
		else
			entry = find_entry(vocabulary, &token,
					   map_bytes(MAP_SEED, token.text, token.length));
		if (!err_stuck(err))
			add_to_sequence(sequence, entry, err);
	}
	str_free(&reader.word);
}

/* ---- windows of one text --------------------------------------------------------------------- */

/* Name every byte by the string that consists of it. */
static const char **name_bytes(char texts[256][2])
{
	const char **names = mem_calloc(256, sizeof(*names));

	for (int i = 0; names && i < 256; i++) {
		texts[i][0] = (char)i;
		texts[i][1] = '\0';
		names[i] = texts[i];
	}
	return names;
}

/* The tokens of @text: every byte, or the characters, which are added to @vocabulary. */
static size_t count_tokens(struct vocabulary *vocabulary, const struct dataset_texts *texts,
			   const struct dataset_csv *text, struct err *err)
{
	struct sequence sequence = {.counts_only = true};

	if (texts->tokens != DATASET_BYTES)
		read_sequence(&sequence, vocabulary, true, texts->tokens, text, err);
	else if (check_text(text, err))
		sequence.count = text->length;
	if (sequence.count > TEXT_TOKENS_MOST)
		report_too_many(err);
	return sequence.count;
}

/* The numbers of the first @count tokens of a text that was counted; NULL: out of memory. */
static float *number_tokens(size_t count, const struct vocabulary *vocabulary,
			    const struct dataset_texts *texts, const struct dataset_csv *text,
			    struct err *err)
{
	struct text_reader reader = {.at = text->bytes,
				     .end = text->bytes + text->length,
				     .tokens = texts->tokens,
				     .err = err};
	float *numbers = mem_resize(NULL, count, sizeof(*numbers));
	struct text_token token;

	for (size_t i = 0; numbers && i < count && read_token(&reader, &token); i++)
		numbers[i] = texts->tokens == DATASET_BYTES
				     ? (float)(unsigned char)*token.text
				     : (float)vocabulary
					       ->entries[find_entry(vocabulary, &token,
								    map_bytes(MAP_SEED, token.text,
									      token.length))]
					       .number;
	if (!numbers)
		err_nomem(err);
	return numbers;
}

/* The numbers are stored once: number t of the inputs is number t - 1 of the targets. */
enum status dataset__text_parse(struct dataset *out, const struct dataset_texts *texts,
				int64_t limit, const struct dataset_csv *text, struct err *err)
{
	const bool bytes = texts->tokens == DATASET_BYTES;
	const int64_t length = texts->sequence_length;
	struct dataset_about about = {.source = text->name,
				      .inputs = "windows",
				      .targets = "windows",
				      .limit = limit,
				      .tokens = true};
	struct dataset_array windows = {.type = DATASET_F32, .ndim = 2};
	struct vocabulary vocabulary = {0};
	const char **names = NULL;
	char byte_texts[256][2];
	struct err own;
	size_t count = 0;

	err = err_start(err, &own);
	if (texts->tokens == DATASET_WORDS)
		err_set(err, ST_INVALID,
			"%s: data.tokens: words are of a folder of texts by label; a text is read "
			"as characters or bytes",
			text->name);
	if (!err_stuck(err))
		count = count_tokens(&vocabulary, texts, text, err);
	if (!err_stuck(err) && (int64_t)count <= length)
		err_set(err, ST_INVALID,
			"%s: has %zu %s, but a window takes %lld and the one behind it: "
			"data.sequence_length",
			text->name, count, token_names[texts->tokens], (long long)length);
	if (!err_stuck(err)) {
		names = bytes ? name_bytes(byte_texts)
			      : number_entries(&vocabulary, 0, INT32_MAX, false);
		about.names = names;
		about.classes = bytes ? 256 : (int)vocabulary.count;
		windows.dim[0] = ((int64_t)count - 1) / length;
		windows.dim[1] = length;
		if (!names)
			err_nomem(err);
	}
	if (!err_stuck(err))
		windows.bytes = (uint8_t *)number_tokens((size_t)(windows.dim[0] * length) + 1,
							 &vocabulary, texts, text, err);
	dataset__join(out, &about, &windows, &windows, err);
	mem_free(names);
	vocabulary_fini(&vocabulary);
	return err->status;
}

/* ---- folders of texts by label --------------------------------------------------------------- */

/* The tokens of a part's files. */
struct text_part {
	const struct dataset_files *files;
	struct text_range {
		size_t first, count; /* tokens, of the sequence */
	} * ranges;                  /* of each file */
	struct sequence sequence;
};

static bool is_text(const char *name)
{
	const size_t length = strlen(name);

	return length > 4 && strcmp(name + length - 4, ".txt") == 0;
}

static void read_part(struct text_part *part, struct vocabulary *vocabulary, bool counts,
		      enum dataset_tokens tokens, struct err *err)
{
	part->ranges = mem_calloc(part->files->count + 1, sizeof(*part->ranges));
	if (!part->ranges)
		err_nomem(err);
	for (size_t i = 0; i < part->files->count && !err_stuck(err); i++) {
		struct dataset_csv text = {.name = part->files->files[i].path};
		struct text_range *range = &part->ranges[i];
		char *bytes;

		if (fs_read(text.name, DATASET_FILE_LIMIT, &bytes, &text.length, err) != ST_OK)
			return;
		text.bytes = bytes;
		range->first = part->sequence.count;
		read_sequence(&part->sequence, vocabulary, counts, tokens, &text, err);
		range->count = part->sequence.count - range->first;
		mem_free(bytes);
	}
}

/* Store TEXT_START and the item's tokens, of both the last @length; pad at the beginning. */
static void fill_item(float *out, size_t length, const struct text_range *item,
		      const struct sequence *sequence, const struct vocabulary *vocabulary)
{
	for (size_t i = 0; i < length; i++) {
		const size_t back = length - i; /* distance from the item's end */
		const uint32_t entry = back <= item->count
					       ? sequence->entries[item->first + item->count - back]
					       : UINT32_MAX;

		if (back > item->count)
			out[i] = back == item->count + 1 ? TEXT_START : TEXT_PAD;
		else
			out[i] = entry == UINT32_MAX ? (float)TEXT_UNKNOWN
						     : (float)vocabulary->entries[entry].number;
	}
}

static void join_part(struct dataset *out, const struct dataset_folder *folder,
		      const struct text_part *part, const struct vocabulary *vocabulary,
		      const struct dataset_params *params, struct err *err)
{
	const size_t count = part->files->count;
	const int64_t length = params->texts.sequence_length;
	struct dataset_array inputs = {
		.type = DATASET_F32, .ndim = 2, .dim = {(int64_t)count, length}};

	if (length > DATASET_ARRAY_LIMIT / (int64_t)sizeof(float) / (int64_t)count) {
		err_set(err, ST_LIMIT, "%s: %zu texts of data.sequence_length %lld are too many",
			part->files->folder, count, (long long)length);
		return;
	}
	inputs.bytes = mem_calloc(count * (size_t)length, sizeof(float));
	if (!inputs.bytes)
		err_nomem(err);
	for (size_t i = 0; inputs.bytes && i < count; i++)
		fill_item((float *)(void *)inputs.bytes + i * (size_t)length, (size_t)length,
			  &part->ranges[i], &part->sequence, vocabulary);
	dataset__folder_join(out, folder, part->files, "texts", params->limit, &inputs, err);
}

static void open_labelled(const struct dataset_opening *o)
{
	static const struct dataset_wanted wanted = {is_text, "*.txt"};
	const struct dataset_params *params = o->params;
	const struct dataset_texts *texts = &params->texts;
	const int64_t most = texts->vocabulary_size ? texts->vocabulary_size : INT32_MAX;
	struct dataset_folder folder;
	struct text_part parts[2] = {{.files = &folder.parts[0]}, {.files = &folder.parts[1]}};
	struct vocabulary vocabulary = {0};
	struct err *err = o->err;
	const char **names = NULL;

	dataset__folder_list(&folder, params, &wanted, err);
	if (!err_stuck(err) && folder.parts[0].count == 0)
		err_set(err, ST_INVALID,
			"%s: there are no texts to train with, which number the tokens: they are "
			"wanted in train/LABEL beside what is in test",
			params->path);
	for (int i = 0; i < 2 && !err_stuck(err); i++)
		read_part(&parts[i], &vocabulary, i == 0, texts->tokens, err);
	if (!err_stuck(err)) {
		names = number_entries(&vocabulary, TEXT_RESERVED, most, true);
		if (!names)
			err_nomem(err);
	}
	for (int i = 0; i < 2 && !err_stuck(err); i++)
		if (parts[i].files->count > 0)
			join_part(o->parts[i], &folder, &parts[i], &vocabulary, params, err);
	if (!err_stuck(err) && params->notice) {
		char text[128];

		snprintf(text, sizeof(text),
			 "Texts: %zu %s of the training part and the numbers 0 to 2",
			 vocabulary.count, token_names[texts->tokens]);
		params->notice(params->user, text);
	}
	mem_free(names);
	vocabulary_fini(&vocabulary);
	for (int i = 0; i < 2; i++) {
		mem_free(parts[i].ranges);
		mem_free(parts[i].sequence.entries);
	}
	dataset__folder_free(&folder);
}

/* ---- the set --------------------------------------------------------------------------------- */

void dataset__text_open(const struct dataset_opening *o)
{
	struct dataset_csv text = {.name = o->path};
	char *bytes = NULL;

	if (!o->path)
		err_set(o->err, ST_INVALID,
			"data set \"%s\": which text? Give it with --data.path FILE.txt, or a "
			"folder with a folder of .txt files for each label",
			o->known->name);
	else if (fs_is_dir(o->path))
		open_labelled(o);
	else if (fs_read(o->path, DATASET_FILE_LIMIT, &bytes, &text.length, o->err) == ST_OK) {
		text.bytes = bytes;
		dataset__text_parse(o->parts[dataset__only_part(o->params)], &o->params->texts,
				    o->params->limit, &text, o->err);
	}
	mem_free(bytes);
}
