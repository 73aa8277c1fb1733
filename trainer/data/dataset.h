/*
 * Items and their targets in memory, and the order in which batches use them.
 *
 * Images stay bytes, as in their files. Gathering a batch converts them to floats in [0, 1]:
 * value / 255, rounded once to float32, as the tutorials' x / 255.0. All other values are stored as
 * float32 and passed on unchanged. Layout: NHWC.
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
	int64_t count; /* items; 0: the set lacks this part */
	int ndim;      /* of an item as a batch contains it: at least 1 */
	int64_t shape[DATASET_RANK];

	/* Exactly one of these three is set; the first two hold count x the values of a stored
	 * item. */
	const uint8_t *bytes;
	const float *floats;
	/* Items are bytes in files, which a feed decodes when it needs them. */
	const struct dataset_decoder *decoder;
	int64_t decoder_first; /* index of item 0 among the decoder's items */
	uint64_t files_digest; /* of the files, whether decoded items are cached or not: see
				  `identify` */

	/* Exactly one of these two is set, unless `unlabelled`. */
	const int32_t *labels; /* [count]: class numbers, all below `classes` */
	const float *values;   /* [count, width]: any shape of an item, in C order */
	int classes;   /* exclusive bound of the class numbers, in `values` too; 0: `values` are no
			classes */
	int64_t width; /* of `values` */
	/* With several outputs: which columns of `values` belong to which output. */
	struct target_part parts[TARGET_PARTS];
	int part_count;                   /* 0: the model has one output */
	bool one_hot;                     /* batches contain class numbers as one-hot vectors */
	bool one_hot_parts[TARGET_PARTS]; /* likewise, those of a part */

	bool unlabelled; /* neither labels nor values: the items can only be predicted */

	/* [count, weight_width], see struct targets; with several outputs one for each part. NULL:
	 * no weights. */
	const float *weights;
	int64_t weight_width;

	const struct dataset_resize *resize; /* NULL: items keep their stored size */

	/* Names of the `classes` classes; for windows of a text the token that each number encodes.
	 * NULL: unknown. */
	const char *const *names;
	const char *source; /* "/data/mnist (IDX)", "synthetic digits" */
	bool synthetic;
	void *memory; /* owner of the above */
};

/* How the inputs of a table are scaled: each column by statistics of the training part. */
enum dataset_scale {
	DATASET_SCALE_NONE,
	DATASET_SCALE_MINMAX,  /* from 0 to 1 */
	DATASET_SCALE_STANDARD /* mean 0, standard deviation 1 */
};

/* Which columns of a table are used; for the set "csv". */
struct dataset_table {
	const char *const *columns; /* inputs, in this order; NULL: all except the two below */
	int column_count;
	const char *target; /* NULL: the last column */
	const char *weight; /* NULL: each item has weight 1 */
	enum dataset_scale scale;
};

/* The unit of tokens of the set "text". */
enum dataset_tokens {
	DATASET_CHARACTERS, /* of UTF-8 */
	DATASET_BYTES,
	DATASET_WORDS
};

/* How texts are encoded as numbers; for the set "text". */
struct dataset_texts {
	enum dataset_tokens tokens;
	int64_t sequence_length; /* tokens of an item */
	int64_t vocabulary_size; /* of labelled texts, including reserved numbers; 0: unlimited */
};

/* A number that may occur among an item's targets but is not one of the classes. */
struct dataset_ignored {
	bool any;
	int64_t number;
};

struct dataset_params {
	const char *name; /* "mnist" */
	const char *path; /* NULL: try $IPUSCOPE_DATA/NAME, then Keras's folder below
			     ~/.keras/datasets, then the synthetic default */
	int64_t limit;    /* items of either part; 0: all */
	bool one_hot;     /* encode class numbers as one-hot vectors, of several outputs all */
	bool one_hot_parts[TARGET_PARTS]; /* encode those of this one of @outputs */
	bool coarse;                      /* of cifar100: labels of the 20 groups of classes */
	/* Scale images to this size while gathering batches, as tf.image.resize does (bilinear,
	 * without antialiasing); height 0: keep their size. */
	struct {
		int64_t height, width;
	} resize;
	struct dataset_table table;
	struct dataset_texts texts;
	/* For the set "npz": arrays x_train_NAME, x_test_NAME, whose values are concatenated within
	 * an item. NULL: x_train and x_test alone. */
	const char *const *inputs;
	int input_count;
	/* Names of the model's outputs that have targets: y_train_NAME, y_test_NAME. NULL: y_train
	 * and y_test alone. */
	const char *const *outputs;
	int output_count;
	struct {
		bool gray;   /* one channel, else three */
	} images;            /* of the set "images" */
	unsigned threads;    /* that decode; 0: one per processor */
	int64_t cache_bytes; /* larger sets of images are decoded on demand; 0: half of the memory
				available */
	bool identify; /* read all files of images, so that dataset_digest() is of their contents
			  instead of their sizes */
	bool shapes;   /* do not decode images, all values are 0: see dataset_describe() */
	double validation_split; /* fraction of the training items, the last, to use as test
				    part; 0 */
	struct dataset_ignored
		ignored[TARGET_PARTS]; /* for each of @outputs; one output: the first */
	bool pictures;                 /* reject items that are not stored as bytes */
	bool no_train;                 /* nothing is trained: the training part may be missing */
	bool no_test_targets; /* nothing is evaluated: the test part's targets may be missing */
	/* Called once when the synthetic default is made or used; the text says how to get the real
	 * set. May be NULL. */
	void (*notice)(void *user, const char *text);
	/* Called repeatedly with the number of a part's files decoded so far; may be NULL. */
	void (*progress)(void *user, int64_t done, int64_t files);
	void *user;
};

/* Open both parts. @test may have no items: count 0, but the shape and targets of @train. On
 * failure nothing is left to free. */
enum status dataset_open(struct dataset *train, struct dataset *test,
			 const struct dataset_params *params, struct err *err);
void dataset_close(struct dataset *dataset); /* accepts a zeroed struct */

/* Like dataset_open(), without the items: counts, shapes and kinds of targets, for planning. A
 * known set without a path gets its published numbers, whatever is installed on this machine; other
 * sets are opened for this. Close both parts with dataset_close(). */
enum status dataset_describe(struct dataset *train, struct dataset *test,
			     const struct dataset_params *params, struct err *err);

/* Return the kind of targets that batches contain. */
struct target_kind dataset_targets(const struct dataset *dataset);

/* Return the number of floats of one item in a batch. */
size_t dataset_item_floats(const struct dataset *dataset);

/* Return the first item with a number outside [0, @rows) among its @count numbers from @first on,
 * or -1. @number receives that number, @most the greatest number of all items. */
int64_t dataset_beyond(const struct dataset *dataset, int64_t first, int64_t count, int64_t rows,
		       float *number, float *most);

/* Return a 64-bit XXH3 digest of all stored items and targets. Images that are decoded on demand
 * contribute their files' names and, as `identify` says, contents or sizes. */
uint64_t dataset_digest(const struct dataset *dataset);

/*
 * The order of items: pass after pass over the set, batch after batch. A pass depends on (seed,
 * pass) only. Two passes are cached, so that callers on both sides of a pass's end do not evict
 * each other's permutation.
 */
struct dataset_order_params {
	int64_t count, batch;
	int64_t shuffle; /* as in the run file: 0 none, -1 reshuffle the whole set for each pass,
			    else a buffer of that many items (tf.data's rule) */
	uint64_t seed;
	bool partial; /* end a pass with a short batch of the remaining items, else drop them */
	int64_t pad;  /* round the batches of a pass up to a multiple of this; the last ones are
			short or empty; 0: do not */
};

struct dataset_order {
	int64_t count, batch, shuffle;
	int64_t batches; /* of a pass */
	uint64_t seed;
	int64_t pass
		[2]; /* pass whose permutation `items` holds, indexed by pass modulo 2; -1: none */
	uint32_t *items[2]; /* owned */
	uint32_t *buffer;   /* of the shuffle, owned */
};

enum status dataset_order_new(struct dataset_order **out, const struct dataset_order_params *params,
			      struct err *err);
void dataset_order_free(struct dataset_order *order); /* accepts NULL */

/* Return the items of batch @number (from 0 over all passes). @count receives their number: @batch,
 * or less at the end of a partial or padded pass. Valid until the next call. Not thread safe. */
const uint32_t *dataset_order_batch(struct dataset_order *order, int64_t number, int64_t *count);

/* Return that number of items. Thread safe. */
int64_t dataset_order_size(const struct dataset_order *order, int64_t number);

/* Store the inputs of @count @items as [count, shape]; the set has no decoder. Thread safe. */
void dataset_gather_inputs(const struct dataset *dataset, const uint32_t *items, int64_t count,
			   float *inputs);

/* Do batches contain targets as one class number for each item, not as values? */
bool dataset_gives_classes(const struct dataset *dataset);

/* Store the targets of @count @items: @classes [count] if dataset_gives_classes(), else @values
 * [count, width of dataset_targets()]; the other pointer is ignored. Thread safe. */
void dataset_gather_targets(const struct dataset *dataset, const uint32_t *items, int64_t count,
			    int32_t *classes, float *values);

#endif /* DATASET_H */
