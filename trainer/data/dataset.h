/*
 * Items and their targets in memory, and the order in which batches take them.
 *
 * Images stay bytes (as their files have them); a batch is converted to floats in [0, 1] when it is
 * gathered: value / 255 rounded once to float32, as the tutorials' x / 255.0 does. Everything else
 * is kept as float32 and given out as it is. NHWC.
 */
#ifndef DATASET_H
#define DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/learn/targets.h"

#define DATASET_RANK 4 /* dimensions of an item at most */

struct dataset_resize;
struct dataset_decoder;

struct dataset {
	int64_t count; /* items; 0: the set has no such part */
	int ndim;      /* of an item as batches give it out: at least 1 */
	int64_t shape[DATASET_RANK];

	/* One of the three; of the first two count x the values of a stored item. */
	const uint8_t *bytes;
	const float *floats;
	/* Items are bytes in files, which are decoded as a feed needs them. */
	const struct dataset_decoder *decoder;
	int64_t decoder_first; /* the first item among the decoder's */
	uint64_t files_digest; /* of the names and sizes of such files, also where they are kept */

	/* One of the two. */
	const int32_t *labels; /* [count]: class numbers, all below `classes` */
	const float *values;   /* [count, width]: any shape of an item, in C order */
	int classes;           /* `values` too are whole numbers from 0 to below this; 0: not */
	int64_t width;         /* of `values` */
	/* Of several outputs: what of `values` is whose. */
	struct target_part parts[TARGET_PARTS];
	int part_count; /* 0: there is one output */
	bool one_hot;   /* class numbers are given out as vectors */

	bool unlabelled; /* there are none of the two: the items can only be predicted */

	/* [count, weight_width], see struct targets; of several outputs one for each part. NULL:
	 * none. */
	const float *weights;
	int64_t weight_width;

	const struct dataset_resize *resize; /* NULL: items are given out as they are stored */

	/* Of the classes, `classes` of them; of windows of a text what each number stands for. NULL:
	 * not known. */
	const char *const *names;
	const char *source; /* "/data/mnist (IDX)", "synthetic digits" */
	bool synthetic;
	void *memory; /* what owns the above */
};

/* How the inputs of a table are scaled, column by column, by what the training part has. */
enum dataset_scale {
	DATASET_SCALE_NONE,
	DATASET_SCALE_MINMAX,  /* from 0 to 1 */
	DATASET_SCALE_STANDARD /* mean 0, standard deviation 1 */
};

/* What of a table is taken, of the set "csv". */
struct dataset_table {
	const char *const *columns; /* inputs, in this order; NULL: all but the two below */
	int column_count;
	const char *target; /* NULL: the last column */
	const char *weight; /* NULL: items weigh 1 each */
	enum dataset_scale scale;
};

/* What a token of the set "text" is. */
enum dataset_tokens {
	DATASET_CHARACTERS, /* of UTF-8 */
	DATASET_BYTES,
	DATASET_WORDS
};

/* How texts become numbers, of the set "text". */
struct dataset_texts {
	enum dataset_tokens tokens;
	int64_t sequence_length; /* tokens of an item */
	int64_t vocabulary_size; /* numbers of labelled texts, the reserved ones in them; 0: all */
};

/* A number that is none of the classes, though it stands at a place of an item. */
struct dataset_ignored {
	bool any;
	int64_t number;
};

struct dataset_params {
	const char *name; /* "mnist" */
	const char *path; /* NULL: $IPUSCOPE_DATA/NAME, Keras's place below ~/.keras/datasets, the
			     synthetic default */
	int64_t limit;    /* of either part; 0: all */
	bool one_hot;     /* class numbers become vectors with a 1 at that place */
	bool coarse;      /* of cifar100: labels of the 20 groups of classes */
	/* Images are scaled to this as batches are gathered, as tf.image.resize does it (bilinear,
	 * without antialiasing); height 0: as they are. */
	struct {
		int64_t height, width;
	} resize;
	struct dataset_table table;
	struct dataset_texts texts;
	/* Of the set "npz": arrays x_train_NAME, x_test_NAME, whose values stand one after the
	 * other in an item. NULL: x_train and x_test alone. */
	const char *const *inputs;
	int input_count;
	/* And of the model's outputs that have targets: y_train_NAME, y_test_NAME. NULL: y_train
	 * and y_test alone. */
	const char *const *outputs;
	int output_count;
	struct {
		bool gray;   /* one channel, else three */
	} images;            /* of the set "images" */
	unsigned threads;    /* that decode; 0: as many as there are processors */
	int64_t cache_bytes; /* images of more bytes are decoded as they are needed; 0: of more than
				half of the memory that is there */
	bool shapes;         /* images are not decoded: all values are 0, see dataset_describe() */
	double validation_split; /* the last part of the training items becomes the test part; 0 */
	struct dataset_ignored ignored[TARGET_PARTS]; /* of each of @outputs; of one: the first */
	bool pictures;        /* items that are not stored as bytes are refused */
	bool no_train;        /* nothing is trained: the training part may be missing */
	bool no_test_targets; /* nothing is evaluated: the test part's targets may be missing */
	/* Told once when the synthetic default is made or used, and how to get the real set; may be
	 * NULL. */
	void (*notice)(void *user, const char *text);
	/* Told now and then how many of a part's files are decoded; may be NULL. */
	void (*progress)(void *user, int64_t done, int64_t files);
	void *user;
};

/* Both parts; @test may come without items (count 0, but the shape and targets of @train). On
 * failure nothing is left to free. */
enum status dataset_open(struct dataset *train, struct dataset *test,
			 const struct dataset_params *params, struct err *err);
void dataset_close(struct dataset *dataset); /* accepts a zeroed struct */

/* The same without the items: counts, shapes and kinds of targets, for those who only plan. Of a
 * known set without a path they are the published ones, whatever lies on this machine; others are
 * opened for it. To be closed too. */
enum status dataset_describe(struct dataset *train, struct dataset *test,
			     const struct dataset_params *params, struct err *err);

/* What the targets are like as batches give them out. */
struct target_kind dataset_targets(const struct dataset *dataset);

/* Floats of one item as batches give it out. */
size_t dataset_item_floats(const struct dataset *dataset);

/* The first item whose @count numbers from @first on are not all from 0 to below @rows: that
 * number, and the greatest of all items. -1: there is none. */
int64_t dataset_beyond(const struct dataset *dataset, int64_t first, int64_t count, int64_t rows,
		       float *number, float *most);

/* One number for all items, as they are stored (of images the names and sizes of their files), and
 * targets: XXH3 with 64 bits. */
uint64_t dataset_digest(const struct dataset *dataset);

/*
 * The order of items: pass after pass over the set, batch after batch. A pass depends on (seed,
 * pass) only. Two passes are held at a time, so that takers on both sides of a border do not make
 * each other's permutation anew.
 */
struct dataset_order_params {
	int64_t count, batch;
	int64_t shuffle; /* as in the run file: 0 none, -1 the whole set anew in each pass, else a
			    buffer of that many items (tf.data's rule) */
	uint64_t seed;
	bool partial; /* a pass ends with a batch of what is left, else that is dropped */
	int64_t pad;  /* a pass has a multiple of so many batches, the last of them short or
			 empty; 0: it has not */
};

struct dataset_order {
	int64_t count, batch, shuffle;
	int64_t batches; /* of a pass */
	uint64_t seed;
	int64_t pass[2];    /* whose permutations are in `items`, by pass modulo 2; -1: none */
	uint32_t *items[2]; /* owned */
	uint32_t *buffer;   /* of the shuffle, owned */
};

enum status dataset_order_new(struct dataset_order **out, const struct dataset_order_params *params,
			      struct err *err);
void dataset_order_free(struct dataset_order *order); /* accepts NULL */

/* The items of batch @number (from 0 over all passes), @count of them: @batch but for the last of a
 * partial or padded pass. Valid until the next call. Not thread safe. */
const uint32_t *dataset_order_batch(struct dataset_order *order, int64_t number, int64_t *count);

/* How many those are. Thread safe. */
int64_t dataset_order_size(const struct dataset_order *order, int64_t number);

/* The inputs of @count @items: [count, shape], of a set without a decoder. Thread safe. */
void dataset_gather_inputs(const struct dataset *dataset, const uint32_t *items, int64_t count,
			   float *inputs);

/* Are targets given out as class numbers, one of each item, else as values? */
bool dataset_gives_classes(const struct dataset *dataset);

/* Their targets: @classes [count] or @values [count, width of dataset_targets()], whichever
 * dataset_gives_classes() says; the other is not looked at. Thread safe. */
void dataset_gather_targets(const struct dataset *dataset, const uint32_t *items, int64_t count,
			    int32_t *classes, float *values);

#endif /* DATASET_H */
