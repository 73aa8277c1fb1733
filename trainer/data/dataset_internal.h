/*
 * What the data set's sources share: memory, streams, and the readers of single formats.
 */
#ifndef DATASET_INTERNAL_H
#define DATASET_INTERNAL_H

#include <zlib.h>

#include "common/fs.h"
#include "trainer/data/dataset.h"

#define DATASET_FILE_LIMIT  ((size_t)1 << 31)  /* bytes of a file we agree to read */
#define DATASET_ARRAY_LIMIT ((int64_t)1 << 31) /* bytes of an array, unpacked */
#define DATASET_PATH_SHOWN  4000               /* characters of a path in a source's text */

/* Types of values in files, little-endian: the enumerator's end, NumPy's name, bytes, and whether
 * they are whole numbers. */
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

/* One array as a file gave it. */
struct dataset_array {
	enum dataset_type type;
	int ndim;
	int64_t dim[DATASET_RANK + 1];
	uint8_t *bytes; /* owned (mem_free) */
};

const char *dataset__type_name(enum dataset_type type);
size_t dataset__type_size(enum dataset_type type);
bool dataset__type_whole(enum dataset_type type);

/* Values of an array that was read: it fits memory, so the product does too. */
size_t dataset__array_count(const struct dataset_array *array);
void dataset__array_free(struct dataset_array *array); /* accepts a zeroed struct */

/* ---- values ---------------------------------------------------------------------------------- */

/* @count values of @type as float32, rounded once. */
void dataset__to_floats(float *out, enum dataset_type type, const uint8_t *bytes, size_t count);

/* Value @index of whole numbers; those beyond int64 are given as the nearest that is not. */
int64_t dataset__whole(enum dataset_type type, const uint8_t *bytes, size_t index);

/* ---- reading packed bytes -------------------------------------------------------------------- */

enum dataset_packing {
	DATASET_STORED,
	DATASET_GZIP,
	DATASET_DEFLATE
};

/* Bytes that are unpacked as they are asked for, so that a small file cannot fill the memory. */
struct dataset_stream {
	const char *name; /* for messages */
	enum dataset_packing packing;
	const uint8_t *in;
	size_t left;
	bool ended;
	bool sums;         /* a zip member: its archive has the CRC to compare with */
	unsigned long crc; /* of what was read, where it sums */
	z_stream inflate;
};

enum status dataset__stream_open(struct dataset_stream *stream, const char *name,
				 enum dataset_packing packing, const void *bytes, size_t length,
				 struct err *err);
void dataset__stream_close(struct dataset_stream *stream);

/* Fewer than @size bytes (*@got) come only at the end. */
enum status dataset__stream_read(struct dataset_stream *stream, void *out, size_t size, size_t *got,
				 struct err *err);

/* ---- zip archives in memory, read member by member ------------------------------------------- */

/* Set name, bytes and length; dataset__zip_open() sets the rest to the directory's first entry. */
struct dataset_zip {
	const char *name; /* for messages */
	const uint8_t *bytes;
	size_t length;
	size_t at, left; /* of the directory: where the next entry is, and bytes from there on */
	uint32_t entry, entries;
};

struct dataset_zip_member {
	const char *name; /* in the archive's bytes, not ended by 0; NULL: there is no more */
	size_t name_length;
	uint32_t flags, method, crc, packed, unpacked, local;
};

enum status dataset__zip_open(struct dataset_zip *zip, struct err *err);
enum status dataset__zip_next(struct dataset_zip *zip, struct dataset_zip_member *out,
			      struct err *err);

/* A stream over @member's bytes; @name is for messages and borrowed. */
enum status dataset__zip_member_open(const struct dataset_zip *zip,
				     const struct dataset_zip_member *member, const char *name,
				     struct dataset_stream *out, struct err *err);

/* ---- formats --------------------------------------------------------------------------------- */

/* An IDX file in memory, gzipped or not, of @ndim dimensions. */
enum status dataset__idx_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, int ndim, struct err *err);

/* The array @member ("x_train") of an .npz file in memory: any type, 1 to DATASET_RANK + 1
 * dimensions. ST_NOTFOUND: there is none of that name. */
enum status dataset__npz_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, const char *member, struct err *err);

/* The directory's entry for "@member.npy". ST_NOTFOUND: there is none. */
enum status dataset__npz_find(struct dataset_zip *zip, const char *member,
			      struct dataset_zip_member *out, struct err *err);

/* The header of an .npy array (all before the values): @out's type and dimensions. */
enum status dataset__npy_header(struct dataset_stream *stream, struct dataset_array *out,
				struct err *err);

/* How CIFAR-10 and CIFAR-100 are laid out. */
struct dataset_cifar {
	const char *title;
	int classes;
	int labels, label;        /* bytes of labels before a record's pixels, and which counts */
	const char *train, *test; /* names of files, without .bin */
	int batches;              /* files to train with, which are numbered; 0: one */
	const char *names;        /* the file of classes' names */
	const char *unpacked;     /* the folder in the archive */
	const char *pickle;       /* a file of the version for Python */
};
const struct dataset_cifar *dataset__cifar(int classes); /* 10, 100, or its 20 groups */

/* Their binary records in memory: images as HWC. Both arrays are written from item @first on and
 * must have room. */
#define DATASET_CIFAR_SIDE  32
#define DATASET_CIFAR_BYTES (3 * DATASET_CIFAR_SIDE * DATASET_CIFAR_SIDE)
enum status dataset__cifar_parse(struct dataset_array *images, struct dataset_array *labels,
				 int64_t first, const struct dataset_cifar *kind, const char *name,
				 const void *bytes, size_t length, struct err *err);

/* Tables in memory, the second for the test part; bytes NULL: there is none. Of @params the table,
 * the limit and no_test_targets count. On failure nothing is left to close. */
struct dataset_csv {
	const char *name;
	const char *bytes;
	size_t length;
};
enum status dataset__csv_parse(struct dataset *train, struct dataset *test,
			       const struct dataset_params *params,
			       const struct dataset_csv parts[2], struct err *err);

/* A text in memory, which a 0 follows, as windows of characters or bytes. On failure nothing is
 * left to close. */
enum status dataset__text_parse(struct dataset *out, const struct dataset_texts *texts,
				int64_t limit, const struct dataset_csv *text, struct err *err);

/* A part of Keras's imdb.npz in memory: its lists @x with the labels @y. */
enum status dataset__imdb_parse(struct dataset *out, const struct dataset_texts *texts,
				int64_t limit, const struct dataset_csv *file, const char *x,
				const char *y, struct err *err);

/* Read an array whose dimensions are set, and see that nothing follows. Memory is asked for only
 * where the packed bytes can hold that much. On failure the array has no bytes. */
enum status dataset__array_read(struct dataset_array *array, struct dataset_stream *stream,
				struct err *err);

/* ---- sources --------------------------------------------------------------------------------- */

/* Which part is a file or folder that names none: 0, what is trained on; 1, where nothing is
 * trained, what is evaluated or predicted. */
int dataset__only_part(const struct dataset_params *params);

/* What is known of a part besides its arrays. */
struct dataset_about {
	const char *source;       /* copied */
	const char *inputs;       /* what messages call them: "images", "x_train" */
	const char *targets;      /* "labels", "y_train" */
	int classes;              /* 0: the greatest class number + 1 */
	bool tokens;              /* targets have one of the classes for each place of an item */
	const char *const *names; /* of the classes, copied; may be NULL */
	struct dataset_ignored ignored;
	int64_t limit;
};

/* What of whole numbers or values @array is, as targets of their own: see struct target_part. */
struct target_part dataset__target_part(const struct dataset_about *about,
					const struct dataset_array *array);

/* What a part's items weigh, of any shape of an item; @weights' memory is taken over on success. */
enum status dataset__weigh(struct dataset *set, const char *name, struct dataset_array *weights,
			   struct err *err);

/* Join inputs and targets, which are taken over on success; checks counts, shapes and classes.
 * Targets without dimensions: the set is unlabelled. */
enum status dataset__join(struct dataset *out, const struct dataset_about *about,
			  struct dataset_array *inputs, struct dataset_array *targets,
			  struct err *err);

/* The files of one part, mixed by class. */
struct dataset_files {
	char folder[FS_PATH_SIZE]; /* empty: there is no such part */
	bool unlabelled;           /* its files are of no class */
	struct dataset_file {
		int64_t at, of; /* its place among the files of its class, and how many those are */
		int label;
		char *path; /* owned */
	} * files;
	size_t count, room;
};

struct dataset_folder {
	struct fs_list labels;
	struct dataset_files parts[2]; /* to train and to test with */
};

/* Which files of a class's folder are items. */
struct dataset_wanted {
	bool (*is)(const char *name);
	const char *text; /* "*.txt", for messages */
};

/* The folder @params->path of folders by class, or train and test with such folders; each part has
 * a file. On failure nothing is left to free. */
enum status dataset__folder_list(struct dataset_folder *out, const struct dataset_params *params,
				 const struct dataset_wanted *wanted, struct err *err);
void dataset__folder_free(struct dataset_folder *folder);

/* The first files of @part, as many as @inputs has items, joined with their classes. @what: what
 * messages call the inputs. */
enum status dataset__folder_join(struct dataset *out, const struct dataset_folder *folder,
				 const struct dataset_files *part, const char *what, int64_t limit,
				 struct dataset_array *inputs, struct err *err);

/* The bytes of item @item of a decoder's into @to. Thread safe. */
enum status dataset__decode(const struct dataset_decoder *decoder, int64_t item, uint8_t *to,
			    struct err *err);
void dataset__decoder_free(struct dataset_decoder *decoder); /* accepts NULL */

/* @set, which was joined without bytes, has @decoder's items, and owns it. */
void dataset__decode_later(struct dataset *set, struct dataset_decoder *decoder);

/* A known set: its name, what its classes are called and what opens its folder. */
struct dataset_known {
	const char *name;
	int classes;
	int64_t shape[3];          /* of an item, as published */
	int64_t count, test_count; /* items, as published */
	const char *const *names;
	/* A folder in the set's own layout; NULL: it is not kept in folders. */
	enum status (*folder)(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known, const char *folder, int64_t limit,
			      struct err *err);
	int groups;         /* of classes, whose labels data.label_mode coarse takes; 0: none */
	const char *layout; /* of such a folder, for messages */
	/* Below ~/.keras/datasets, in the order in which they are tried; ended by NULL. */
	const char *keras[4];
	/* Opens params->path, whatever it is; NULL: the above does. */
	enum status (*open)(struct dataset *train, struct dataset *test,
			    const struct dataset_known *known, const struct dataset_params *params,
			    struct err *err);
	/* The default where nothing is found; NULL where a path must be given. */
	enum status (*synthetic)(struct dataset *train, struct dataset *test,
				 const struct dataset_known *known,
				 const struct dataset_params *params, struct err *err);
	/* How to get the real set: the script that fetches it, or NULL, and the words behind its
	 * place. */
	const char *script, *remedy;
};

/* The script @name as a message calls it: where it is installed, else its place in the source; ""
 * for NULL. */
const char *dataset__script(char out[FS_PATH_SIZE], const char *name);

enum status dataset__idx_open(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known, const char *folder, int64_t limit,
			      struct err *err);
enum status dataset__cifar_open(struct dataset *train, struct dataset *test,
				const struct dataset_known *known, const char *folder,
				int64_t limit, struct err *err);
enum status dataset__csv_open(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known,
			      const struct dataset_params *params, struct err *err);
enum status dataset__imdb_open(struct dataset *train, struct dataset *test,
			       const struct dataset_known *known,
			       const struct dataset_params *params, struct err *err);
enum status dataset__text_open(struct dataset *train, struct dataset *test,
			       const struct dataset_known *known,
			       const struct dataset_params *params, struct err *err);
enum status dataset__images_open(struct dataset *train, struct dataset *test,
				 const struct dataset_known *known,
				 const struct dataset_params *params, struct err *err);
enum status dataset__npz_open(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known, const char *path,
			      const struct dataset_params *params, struct err *err);
enum status dataset__digits_open(struct dataset *train, struct dataset *test,
				 const struct dataset_known *known,
				 const struct dataset_params *params, struct err *err);

enum status dataset__pictures_open(struct dataset *train, struct dataset *test,
				   const struct dataset_known *known,
				   const struct dataset_params *params, struct err *err);

/* ---- resizing -------------------------------------------------------------------------------- */

/* Plan the resizing of @set's items, which must be images; @set takes it over and tells the new
 * shape. Nothing happens where they have that size already. */
enum status dataset__resize_set(struct dataset *set, int64_t height, int64_t width,
				struct err *err);

/* One item, bytes (value / 255 first) or floats. Thread safe. */
void dataset__resize_bytes(const struct dataset_resize *resize, const uint8_t *from, float *to);
void dataset__resize_floats(const struct dataset_resize *resize, const float *from, float *to);

/* Floats of a stored item. */
size_t dataset__stored_floats(const struct dataset *set);

/* value / 255, rounded once: see dataset_feed.c. */
#define DATASET_BYTE_HIGH (257.0f / 65536.0f)
#define DATASET_BYTE_LOW  (1.0f / (255.0f * 65536.0f))

void dataset__resize_free(struct dataset_resize *resize); /* accepts NULL */

/* ---- synthetic digits ------------------------------------------------------------------------ */

#define DATASET_DIGIT_SIDE  28
#define DATASET_DIGIT_BYTES (DATASET_DIGIT_SIDE * DATASET_DIGIT_SIDE)

#endif /* DATASET_INTERNAL_H */
