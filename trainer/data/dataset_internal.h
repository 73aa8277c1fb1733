/*
 * Shared by the data set's sources: memory, streams, and the readers of the file formats.
 */
#ifndef DATASET_INTERNAL_H
#define DATASET_INTERNAL_H

#include <zlib.h>

#include "common/fs.h"
#include "trainer/data/dataset.h"

#define DATASET_FILE_LIMIT  ((size_t)1 << 31)  /* bytes of a file, at most */
#define DATASET_ARRAY_LIMIT ((int64_t)1 << 31) /* bytes of an unpacked array, at most */
#define DATASET_PATH_SHOWN  4000 /* characters of a path in a source's text, at most */

/* Types of values in files, little-endian: suffix of the enumerator, NumPy's name, bytes, and
 * whether they are whole numbers. */
#define DATASET_TYPE_MAP(X)                                                                        \
	X(U8, "u1", 1, true)                                                                       \
	X(BOOL, "b1", 1, true)                                                                     \
	X(I8, "i1", 1, true)                                                                       \
	X(U16, "u2", 2, true)                                                                      \
	X(I16, "i2", 2, true)                                                                      \
	X(U32, "u4", 4, true)                                                                      \
	X(I32, "i4", 4, true)                                                                      \
	X(U64, "u8", 8, true)                                                                      \
	X(I64, "i8", 8, true)                                                                      \
	X(F16, "f2", 2, false)                                                                     \
	X(F32, "f4", 4, false)                                                                     \
	X(F64, "f8", 8, false)

enum dataset_type {
#define X(end, name, size, whole) DATASET_##end,
	DATASET_TYPE_MAP(X)
#undef X
	DATASET_TYPES
};

/* One array read from a file. */
struct dataset_array {
	enum dataset_type type;
	int ndim;
	int64_t dim[DATASET_RANK + 1];
	uint8_t *bytes; /* owned (mem_free) */
};

struct dataset_type_row {
	const char *name;
	size_t size; /* bytes */
	bool whole;
};
extern const struct dataset_type_row dataset__types[DATASET_TYPES];

/* Number of values of an array that was read: it fits memory, so the product cannot overflow. */
size_t dataset__array_count(const struct dataset_array *array);
void dataset__array_free(struct dataset_array *array); /* accepts a zeroed struct */

/* ---- values ---------------------------------------------------------------------------------- */

/* Convert @count values of @type to float32, rounding once. */
void dataset__to_floats(float *out, enum dataset_type type, const uint8_t *bytes, size_t count);

/* Return whole number @index, clamped to the range of int64. */
int64_t dataset__whole(enum dataset_type type, const uint8_t *bytes, size_t index);

/* ---- reading packed bytes -------------------------------------------------------------------- */

enum dataset_packing {
	DATASET_STORED,
	DATASET_GZIP,
	DATASET_DEFLATE
};

/* A stream unpacks bytes on demand, so that a small file cannot fill the memory. Failures stick in
 * its err: the functions below then do nothing, and a stream that did not open is read as empty. */
struct dataset_stream {
	const char *name; /* for messages */
	struct err *err;  /* borrowed, not NULL */
	enum dataset_packing packing;
	const uint8_t *in;
	size_t left;
	bool ended;
	bool sums;                 /* a zip member: compare with its archive's CRC */
	unsigned long crc, wanted; /* if `sums`: of the bytes read so far, and the archive's */
	z_stream inflate;
};

void dataset__stream_open(struct dataset_stream *stream, const char *name,
			  enum dataset_packing packing, const void *bytes, size_t length,
			  struct err *err);
void dataset__stream_close(struct dataset_stream *stream);

/* Read @size bytes; return their number, which is less only at the end and after a failure. */
size_t dataset__stream_read(struct dataset_stream *stream, void *out, size_t size);
/* Read exactly @size bytes, or fail: "is truncated@where". */
void dataset__stream_read_all(struct dataset_stream *stream, void *out, size_t size,
			      const char *where);
/* Check that nothing follows the @count values that were read, and the checksum. */
void dataset__stream_end(struct dataset_stream *stream, size_t count);

/* ---- zip archives in memory, read member by member ------------------------------------------- */

/* The caller sets name, bytes and length; dataset__zip_open() seeks to the directory's first
 * entry. */
struct dataset_zip {
	const char *name; /* for messages */
	const uint8_t *bytes;
	size_t length;
	size_t at, left; /* of the directory: offset of the next entry, and bytes from there on */
	uint32_t entry, entries;
};

struct dataset_zip_member {
	const char *name; /* in the archive's bytes, not terminated; NULL: no more members */
	size_t name_length;
	uint32_t flags, method, crc, packed, unpacked, local;
};

enum status dataset__zip_open(struct dataset_zip *zip, struct err *err);
enum status dataset__zip_next(struct dataset_zip *zip, struct dataset_zip_member *out,
			      struct err *err);
/* Find the first member named @name or, with @ends, whose name ends so, in a zip that is not open.
 * ST_NOTFOUND, without a message: no such member. */
enum status dataset__zip_find(struct dataset_zip *zip, const char *name, bool ends,
			      struct dataset_zip_member *out, struct err *err);

/* Open a stream over @member's bytes; @name is for messages and borrowed. */
void dataset__zip_member_open(const struct dataset_zip *zip,
			      const struct dataset_zip_member *member, const char *name,
			      struct dataset_stream *out, struct err *err);

/* ---- formats --------------------------------------------------------------------------------- */

/* Parse an IDX file in memory, gzipped or not, of @ndim dimensions. */
enum status dataset__idx_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, int ndim, struct err *err);

/* Parse the array @member ("x_train") of an .npz file in memory: any type, 1 to DATASET_RANK + 1
 * dimensions. ST_NOTFOUND: no such member. */
enum status dataset__npz_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, const char *member, struct err *err);

/* Find the directory's entry for "@member.npy". ST_NOTFOUND: no such entry. */
enum status dataset__npz_find(struct dataset_zip *zip, const char *member,
			      struct dataset_zip_member *out, struct err *err);

/* Read the header of an .npy array (everything before the values): @out's type and dimensions. */
void dataset__npy_header(struct dataset_stream *stream, struct dataset_array *out);

/* The file layouts of CIFAR-10 and CIFAR-100. */
struct dataset_cifar {
	const char *title;
	int classes;
	int labels, label; /* bytes of labels before a record's pixels; index of the used one */
	const char *train, *test; /* names of files, without .bin */
	int batches;          /* number of numbered training files; 0: one file without a number */
	const char *names;    /* the file of class names */
	const char *unpacked; /* the folder in the archive */
	const char *pickle;   /* a file of the version for Python */
};
const struct dataset_cifar *dataset__cifar(int classes); /* 10, 100, or 20: CIFAR-100's groups */

/* Parse their binary records in memory; images become HWC. Both arrays are written from item @first
 * on and must have room. */
#define DATASET_CIFAR_SIDE  32
#define DATASET_CIFAR_BYTES (3 * DATASET_CIFAR_SIDE * DATASET_CIFAR_SIDE)
enum status dataset__cifar_parse(struct dataset_array *images, struct dataset_array *labels,
				 int64_t first, const struct dataset_cifar *kind, const char *name,
				 const void *bytes, size_t length, struct err *err);

/* A text: @bytes, followed by what @reader gives. */
struct dataset_csv {
	const char *name;
	const char *bytes;
	size_t length;
	struct fs_reader *reader; /* open, borrowed; NULL: only bytes. Of tables alone */
};
/* Parse tables, the second for the test part; neither bytes nor reader: no such part. Of @params
 * only the table, the limit and no_test_targets are used. On failure nothing is left to close. */
enum status dataset__csv_parse(struct dataset *train, struct dataset *test,
			       const struct dataset_params *params,
			       const struct dataset_csv parts[2], struct err *err);

/* Parse a 0-terminated text in memory into windows of characters or bytes. On failure nothing is
 * left to close. */
enum status dataset__text_parse(struct dataset *out, const struct dataset_texts *texts,
				int64_t limit, const struct dataset_csv *text, struct err *err);

/* Parse one part of Keras's imdb.npz in memory: its lists @x with the labels @y. */
enum status dataset__imdb_parse(struct dataset *out, const struct dataset_texts *texts,
				int64_t limit, const struct dataset_csv *file, const char *x,
				const char *y, struct err *err);

/* Read an array whose dimensions are set, to the stream's end. Allocate memory only if the packed
 * bytes can hold that much. On failure the array has no bytes. */
void dataset__array_read(struct dataset_array *array, struct dataset_stream *stream);

/* ---- sources --------------------------------------------------------------------------------- */

/* The part that a single file or folder provides: 0, the training part; 1, the test part, if
 * nothing is trained. */
static inline int dataset__only_part(const struct dataset_params *params)
{
	return params->no_train && !(params->validation_split > 0.0);
}

/* Facts about a part besides its arrays. */
struct dataset_about {
	const char *source;  /* copied */
	const char *inputs;  /* the inputs' name in messages: "images", "x_train" */
	const char *targets; /* "labels", "y_train" */
	int classes;         /* 0: the greatest class number + 1 */
	/* The targets are the inputs' numbers from the second on, one more than the items hold: one
	 * class number for each position. Of @targets only the shape is read. */
	bool tokens;
	const char *const *names; /* of the classes, copied; may be NULL */
	struct dataset_ignored ignored;
	int64_t limit;
};

/* Classify @array as the targets of one output: class numbers or values; see struct target_part. */
struct target_part dataset__target_part(const struct dataset_about *about,
					const struct dataset_array *array);

/* Set the weights of a part's items, of any shape of an item; moves @weights' memory on success. */
enum status dataset__weigh(struct dataset *set, const char *name, struct dataset_array *weights,
			   struct err *err);

/* Join inputs and targets after checking counts, shapes and classes. Targets without dimensions:
 * the set is unlabelled. Both arrays are empty afterwards, in any case. If @err has a failure
 * already, that is all it does; it is not NULL. */
void dataset__join(struct dataset *out, const struct dataset_about *about,
		   struct dataset_array *inputs, struct dataset_array *targets, struct err *err);

/* ---- folders of files by class --------------------------------------------------------------- */

/* The files of one part, interleaved by class. */
struct dataset_files {
	char folder[FS_PATH_SIZE]; /* empty: no such part */
	bool unlabelled;           /* its files have no class */
	struct dataset_file {
		int64_t at, of; /* index among the files of its class, and their number */
		int label;
		char *path; /* owned */
	} * files;
	size_t count, room;
};

struct dataset_folder {
	struct fs_list labels;
	struct dataset_files parts[2]; /* training and test */
};

/* Which files of a class's folder are items. */
struct dataset_wanted {
	bool (*is)(const char *name);
	const char *text; /* "*.txt", for messages */
};

/* List the folder @params->path of folders by class, or its subfolders train and test with such
 * folders. Each part that exists has at least one file. On failure the folder is empty. */
void dataset__folder_list(struct dataset_folder *out, const struct dataset_params *params,
			  const struct dataset_wanted *wanted, struct err *err);
void dataset__folder_free(struct dataset_folder *folder);

/* dataset__join() @inputs with the classes of the first files of @part, one file for each item.
 * @what: the inputs' name in messages. */
void dataset__folder_join(struct dataset *out, const struct dataset_folder *folder,
			  const struct dataset_files *part, const char *what, int64_t limit,
			  struct dataset_array *inputs, struct err *err);

/* ---- images as items ------------------------------------------------------------------------- */

/* How a part's files of images become items. */
struct dataset_decoder {
	char **paths; /* owned, [count] */
	int64_t count, height, width, channels;
	bool resizes;
};

/* Take the paths of the first @params->limit of @files. After an error in @err the result may be
 * NULL or a decoder to free. */
struct dataset_decoder *dataset__decoder_new(struct dataset_files *files,
					     const struct dataset_params *params, struct err *err);
void dataset__decoder_free(struct dataset_decoder *decoder); /* accepts NULL */

/* Return the bytes of an item. */
static inline int64_t dataset__decoder_bytes(const struct dataset_decoder *decoder)
{
	return decoder->height * decoder->width * decoder->channels;
}

/* Decode item @item into the bytes @to. Thread safe. */
enum status dataset__decode(const struct dataset_decoder *decoder, int64_t item, uint8_t *to,
			    struct err *err);

/* Give @set, which was joined without bytes, the items of @decoder; @set becomes its owner. */
void dataset__decode_later(struct dataset *set, struct dataset_decoder *decoder);

/* ---- known sets ------------------------------------------------------------------------------ */

struct dataset_known;

/* A known set that is being opened. */
struct dataset_opening {
	/* Training and test, empty before. What a failure leaves in them is closed by
	 * dataset_open(). */
	struct dataset *parts[2];
	const struct dataset_known *known;
	const struct dataset_params *params;
	const char *path; /* where the set is; NULL: not known */
	struct err *err;  /* not NULL; failures stick in it */
};

typedef void dataset_open_fn(const struct dataset_opening *opening);

/* The images and labels of a known set, without the source. */
struct dataset_about dataset__about_images(const struct dataset_opening *opening);

/* A known set: its name, its class names and the function that opens its folder. */
struct dataset_known {
	const char *name;
	int classes;
	int64_t shape[3];          /* of an item, as published */
	int64_t count, test_count; /* items, as published */
	const char *const *names;
	dataset_open_fn *folder; /* in the set's own layout; NULL: the set has no such layout */
	int groups;              /* of classes: the labels of data.label_mode coarse; 0: none */
	const char *layout;      /* of such a folder, for messages */
	/* Names below ~/.keras/datasets, tried in this order; ended by NULL. */
	const char *keras[4];
	dataset_open_fn *open;      /* NULL: use the members above */
	dataset_open_fn *synthetic; /* if no files are found; NULL: a path must be given */
	/* How to get the real set: the script that fetches it (or NULL), and the words that follow
	 * its path. */
	const char *script, *remedy;
};

/* Return the path of script @name for a message: the installed one, else that in the source tree;
 * "" for NULL. */
const char *dataset__script(char out[FS_PATH_SIZE], const char *name);

/* Mark both parts as synthetic @what ("digits") in place of the known set, and say so, unless
 * opening failed; @how: "made now". */
void dataset__synthetic(const struct dataset_opening *opening, const char *what, const char *how);

/* From a file or folder that exists. */
dataset_open_fn dataset__idx_open, dataset__cifar_open, dataset__npz_open;
/* From the path, whatever it is; the last two make the set. */
dataset_open_fn dataset__csv_open, dataset__imdb_open, dataset__text_open, dataset__images_open,
	dataset__digits_open, dataset__pictures_open;

/* ---- resizing -------------------------------------------------------------------------------- */

/* Plan the resizing of @set's items, which must be images. @set owns the plan and gets the new
 * shape. Does nothing if the items have that size already. */
enum status dataset__resize_set(struct dataset *set, int64_t height, int64_t width,
				struct err *err);

/* Resize one item, of @bytes (scaled to value / 255 first) or if that is NULL of @floats. Thread
 * safe. */
void dataset__resize(const struct dataset_resize *resize, const uint8_t *bytes, const float *floats,
		     float *to);

/* Return the number of values of a stored item. */
size_t dataset__stored_floats(const struct dataset *set);

/* Factors for value / 255, rounded once: see dataset_feed.c. */
#define DATASET_BYTE_HIGH (257.0f / 65536.0f)
#define DATASET_BYTE_LOW  (1.0f / (255.0f * 65536.0f))

void dataset__resize_free(struct dataset_resize *resize); /* accepts NULL */

/* ---- synthetic digits ------------------------------------------------------------------------ */

#define DATASET_DIGIT_SIDE  28
#define DATASET_DIGIT_BYTES (DATASET_DIGIT_SIDE * DATASET_DIGIT_SIDE)

#endif /* DATASET_INTERNAL_H */
