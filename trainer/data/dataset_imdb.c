/*
 * Keras's imdb.npz: movie reviews as lists of word numbers, each with a label.
 *
 * Its arrays x_... hold objects: a pickle, which is a program for Python. This reader executes none
 * of it. It scans the opcodes: numbers after the start of a list within the array's list are that
 * item's; any opcode that lists of whole numbers do not need is rejected. Memory grows with the
 * numbers actually present.
 *
 * Numbers become those of keras.datasets.imdb.load_data(): 1 starts a review, words are shifted by
 * 3, and words from vocabulary_size on become 2. Reviews are padded and truncated at the beginning.
 *
 * Threading: none. Sources: Python's pickletools; NumPy's format description (numpy.lib.format).
 */
#include "trainer/data/dataset_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

#define IMDB_FROM         3 /* Keras's index_from */
#define IMDB_NUMBER_MOST  (1 << 24)
#define IMDB_NUMBERS_MOST ((size_t)1 << 28)

struct pickle {
	struct dataset_stream *stream;
	uint8_t bytes[4096];
	size_t at, have;
	/* Lists in the array's list so far; `begins` has the index of each list's first number. */
	bool listed;
	size_t *begins, items, items_room;
	int32_t *numbers;
	size_t count, room;
	struct err *err;
};

/* ---- opcodes --------------------------------------------------------------------------------- */

static uint8_t next_byte(struct pickle *pickle)
{
	if (pickle->at == pickle->have && !err_stuck(pickle->err)) {
		pickle->at = 0;
		pickle->have =
			dataset__stream_read(pickle->stream, pickle->bytes, sizeof(pickle->bytes));
		if (!err_stuck(pickle->err) && pickle->have == 0)
			err_set(pickle->err, ST_FORMAT, "%s: is truncated within its lists",
				pickle->stream->name);
	}
	return err_stuck(pickle->err) ? 0 : pickle->bytes[pickle->at++];
}

/* Read a little-endian number of @size bytes. */
static uint64_t next_number(struct pickle *pickle, int size)
{
	uint64_t number = 0;

	for (int i = 0; i < size; i++)
		number |= (uint64_t)next_byte(pickle) << (8 * i);
	return number;
}

static void skip_bytes(struct pickle *pickle, uint64_t size)
{
	for (uint64_t i = 0; i < size && !err_stuck(pickle->err); i++)
		next_byte(pickle);
}

static void skip_line(struct pickle *pickle)
{
	while (!err_stuck(pickle->err) && next_byte(pickle) != '\n')
		;
}

static void begin_list(struct pickle *pickle)
{
	if (!pickle->listed)
		pickle->listed = true;
	else if (mem_grow(&pickle->begins, &pickle->items_room, pickle->items + 1,
			  sizeof(*pickle->begins)))
		err_nomem(pickle->err);
	else
		pickle->begins[pickle->items++] = pickle->count;
}

/* Add @number to the current list. Numbers before the first list belong to the array's shape and
 * type and are ignored. */
static void add_number(struct pickle *pickle, uint64_t number)
{
	if (err_stuck(pickle->err) || pickle->items == 0)
		return;
	if (number >= IMDB_NUMBER_MOST || pickle->count == IMDB_NUMBERS_MOST)
		err_set(pickle->err, ST_LIMIT, "%s: item %zu: %s", pickle->stream->name,
			pickle->items - 1,
			number >= IMDB_NUMBER_MOST ? "a number that is no word's"
						   : "too many numbers");
	else if (mem_grow(&pickle->numbers, &pickle->room, pickle->count + 1,
			  sizeof(*pickle->numbers)))
		err_nomem(pickle->err);
	else
		pickle->numbers[pickle->count++] = (int32_t)number;
}

static void reject_opcode(struct pickle *pickle, uint8_t opcode)
{
	err_set(pickle->err, ST_UNSUPPORTED,
		"%s: its pickle holds more than lists of whole numbers (opcode 0x%02x): "
		"keras.utils.pad_sequences() makes an array of them, for data.name npz",
		pickle->stream->name, opcode);
}

static void read_pickle(struct pickle *pickle)
{
	/* Whole numbers, lists, marks, memos, frames, and the end of the array's state. A text or
	 * True would be another item of a list, which nothing below counts. */
	static const char list_opcodes[] = "KMJ]a(eqr\x94\x95tb.";

	while (!err_stuck(pickle->err)) {
		const uint8_t opcode = next_byte(pickle);

		if (err_stuck(pickle->err))
			return;
		if (pickle->listed && !memchr(list_opcodes, opcode, sizeof(list_opcodes) - 1))
			reject_opcode(pickle, opcode);
		switch (opcode) {
		case '.':
			return;
		case ']':
			begin_list(pickle);
			break;
		case 'K':
			add_number(pickle, next_number(pickle, 1));
			break;
		case 'M':
			add_number(pickle, next_number(pickle, 2));
			break;
		case 'J':
			add_number(pickle, next_number(pickle, 4));
			break;
		case 0x80: /* the protocol */
		case 'q':  /* store the stack's top in the memo */
			skip_bytes(pickle, 1);
			break;
		case 'r':
			skip_bytes(pickle, 4);
			break;
		case 0x95: /* a frame */
			skip_bytes(pickle, 8);
			break;
		case 'c': /* a class: NumPy's array and type, before the lists */
			skip_line(pickle);
			skip_line(pickle);
			break;
		case 'U':
		case 'C':
		case 0x8c:
			skip_bytes(pickle, next_byte(pickle));
			break;
		case 'T':
		case 'B':
		case 'X':
			skip_bytes(pickle, next_number(pickle, 4));
			break;
		case 'h': /* push an object from the memo */
		case 'j':
			skip_bytes(pickle, opcode == 'h' ? 1 : 4);
			break;
		default: /* marks, tuples, ends of lists, calls, constants, \x94: a memo */
			if (!memchr("(e)t\x85\x86\x87"
				    "aRbN\x88\x89\x94\x93",
				    opcode, 15))
				reject_opcode(pickle, opcode);
		}
	}
}

/* ---- a part ---------------------------------------------------------------------------------- */

/* Store the reviews of @pickle as [items, length] floats. */
static void fill_reviews(struct dataset_array *out, const struct pickle *pickle,
			 const struct dataset_texts *texts)
{
	const size_t length = (size_t)texts->sequence_length;
	float *row = mem_calloc(pickle->items * length, sizeof(*row));

	out->bytes = (uint8_t *)row;
	if (!row) {
		err_nomem(pickle->err);
		return;
	}
	for (size_t item = 0; item < pickle->items; item++, row += length) {
		const size_t first = pickle->begins[item];
		const size_t end =
			item + 1 < pickle->items ? pickle->begins[item + 1] : pickle->count;

		for (size_t i = 0; i < length; i++) {
			const size_t back = length - i; /* distance from the review's end */
			int64_t number =
				back == end - first + 1; /* 1 starts the review, 0 pads it */

			if (back <= end - first) {
				number = pickle->numbers[end - back] + IMDB_FROM;
				if (texts->vocabulary_size && number >= texts->vocabulary_size)
					number = 2;
			}
			row[i] = (float)number;
		}
	}
}

static void read_reviews(struct dataset_array *out, const struct dataset_csv *file,
			 const char *member, const struct dataset_texts *texts, struct err *err)
{
	struct dataset_zip zip = {
		.name = file->name, .bytes = (const uint8_t *)file->bytes, .length = file->length};
	struct dataset_zip_member entry;
	struct dataset_stream stream;
	struct pickle pickle = {.stream = &stream, .err = err};
	char place[FS_PATH_SIZE + 64];

	snprintf(place, sizeof(place), "%.*s: %s", DATASET_PATH_SHOWN, file->name, member);
	dataset__npz_find(&zip, member, &entry, err);
	dataset__zip_member_open(&zip, &entry, place, &stream, err);
	/* Skip the .npy header; if the array does not hold objects, the opcodes will not parse. */
	skip_bytes(&pickle, 8);
	skip_bytes(&pickle, next_number(&pickle, 2));
	read_pickle(&pickle);
	*out = (struct dataset_array){.type = DATASET_F32,
				      .ndim = 2,
				      .dim = {(int64_t)pickle.items, texts->sequence_length}};
	if (!err_stuck(err) && pickle.items == 0)
		err_set(err, ST_FORMAT, "%s: has no lists", place);
	if (!err_stuck(err) && texts->sequence_length > DATASET_ARRAY_LIMIT /
								(int64_t)sizeof(float) /
								(int64_t)pickle.items)
		err_set(err, ST_LIMIT, "%s: %zu reviews of data.sequence_length %lld are too many",
			place, pickle.items, (long long)texts->sequence_length);
	if (!err_stuck(err))
		fill_reviews(out, &pickle, texts);
	dataset__stream_close(&stream);
	mem_free(pickle.begins);
	mem_free(pickle.numbers);
}

enum status dataset__imdb_parse(struct dataset *out, const struct dataset_texts *texts,
				int64_t limit, const struct dataset_csv *file, const char *x,
				const char *y, struct err *err)
{
	static const char *const names[] = {"negative", "positive"};
	const struct dataset_about about = {.source = file->name,
					    .inputs = x,
					    .targets = y,
					    .classes = 2,
					    .names = names,
					    .limit = limit};
	struct dataset_array inputs = {0}, targets = {0};
	struct err own;

	err = err_start(err, &own);
	read_reviews(&inputs, file, x, texts, err);
	if (!err_stuck(err))
		dataset__npz_parse(&targets, file->name, file->bytes, file->length, y, err);
	dataset__join(out, &about, &inputs, &targets, err);
	return err->status;
}

void dataset__imdb_open(const struct dataset_opening *o)
{
	static const char *const arrays[2][2] = {{"x_train", "y_train"}, {"x_test", "y_test"}};
	struct dataset_csv file = {.name = o->path};
	char *bytes = NULL;

	if (!o->path)
		err_set(o->err, ST_NOTFOUND,
			"data set \"%s\": keras.datasets.imdb.load_data() fetches it to "
			"~/.keras/datasets/imdb.npz; or give that file with --data.path, or texts "
			"by label with data.name text",
			o->known->name);
	else
		fs_read(o->path, DATASET_FILE_LIMIT, &bytes, &file.length, o->err);
	file.bytes = bytes;
	for (int part = 0; part < 2 && !err_stuck(o->err); part++)
		dataset__imdb_parse(o->parts[part], &o->params->texts, o->params->limit, &file,
				    arrays[part][0], arrays[part][1], o->err);
	mem_free(bytes);
}
