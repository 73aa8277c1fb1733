/*
 * The run file: one JSON file states what is trained, on what data, and how it is recorded.
 *
 * Reading has four steps: the file; the run file's own flags from the command line (merge
 * patches, applied in the order in which the file lists them); `--key value` overrides;
 * checking. Unknown keys are errors that name the key, its position and the nearest known key.
 * docs/run-file.md lists every key.
 */
#ifndef RUN_FILE_H
#define RUN_FILE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/fs.h"
#include "common/json.h"
#include "ipu/ipu_schedule.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"

enum run_reduction {
	RUN_SUM,
	RUN_MEAN,
	RUN_RUNNING_MEAN
};
enum run_outfeed_optimizer {
	RUN_AFTER_COMPUTE,
	RUN_BEFORE_APPLY
};

/* The implementation of matrix products. */
enum run_products {
	RUN_PRODUCTS_TILES,
	RUN_PRODUCTS_OPENBLAS
};

#define RUN_IPUS_MOST 4096 /* limit on attached IPUs */

/* The launcher that must have started the processes that train together. */
enum run_instances {
	RUN_INSTANCES_ANY = -1, /* null: any launcher, or none */
	RUN_INSTANCES_MPI
};

enum run_dtype {
	RUN_DTYPE_UNSAID = -1, /* null: the natural type */
	RUN_FLOAT32,
	RUN_FLOAT16,
	RUN_UINT8 /* of the infeed only */
};
enum run_partials {
	RUN_PARTIALS_FLOAT,
	RUN_PARTIALS_HALF,
	RUN_PARTIALS_UNSAID
};
enum run_maybe {
	RUN_UNSAID, /* null */
	RUN_NO,
	RUN_YES
};
enum run_recomputation {
	RUN_RECOMPUTE_AUTO,
	RUN_RECOMPUTE_THEN_BACKPROPAGATE,
	RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED,
	RUN_RECOMPUTE_NOTHING /* only returned by run_recomputation() */
};

/* What health rules examine where outfeed.capture has no rule. Weights and optimizer state need
 * rules of outfeed.capture: a bad weight shows in what it computes. */
enum run_watch {
	RUN_WATCH_NOTHING,
	RUN_WATCH_GRADIENTS,
	RUN_WATCH_ALL
};

/* How the inputs of a table are scaled. */
enum run_scale {
	RUN_SCALE_NONE,
	RUN_SCALE_MINMAX,
	RUN_SCALE_STANDARD
};

/* How texts are tokenized. */
enum run_tokens {
	RUN_TOKENS_CHARACTERS,
	RUN_TOKENS_BYTES,
	RUN_TOKENS_WORDS
};

/* How images by class are read. */
enum run_color {
	RUN_COLOR_RGB,
	RUN_COLOR_GRAYSCALE
};

/* data.label_mode. */
enum run_labels {
	RUN_LABELS_FINE,
	RUN_LABELS_COARSE
};

enum run_policy {
	RUN_POLICY_FLOAT32,
	RUN_POLICY_MIXED_FLOAT16,
	RUN_POLICY_MIXED_BFLOAT16
};

#define RUN_WHOLE_EPOCH (-1) /* "epoch": one execution runs all steps of an epoch */

/* A list of texts. NULL items with count 0 and `given` false: the key is absent or null. */
struct run_texts {
	const char *const *items;
	int count;
	bool given;
};

/* A list of integers, like run_texts. */
struct run_ints {
	const int *items;
	int count;
	bool given;
};

/* Planning options of one kind of operation. */
struct run_plan {
	double available_memory_proportion; /* 0 to 1; NaN: not given */
	enum run_partials partials_type;
};

/* Planning options of a stage's forward or backward pass, or of weight updates. */
struct run_poplar {
	struct run_plan convolution, matmul;
};
struct run_poplars {
	const struct run_poplar *items; /* one per stage; for null, nothing in it is given */
	int count;
	bool given;
};

/* Texts are in `json` or in the run's arena: they live as long as the run. */
struct run_file {
	const char *path;
	cJSON *json; /* after flags and overrides: what --print-run prints */

	const cJSON *model; /* the Keras JSON object; read from its own file if it was a path */
	const char *description; /* one line; NULL: none */
	const char *notes;       /* a line for each flag that has no effect; never NULL */
	const char *model_file;  /* the file of `model`, for messages */
	const char *model_place; /* its position there: "model", or "" in a separate file */

	struct {
		const cJSON *optimizer; /* NULL: SGD with defaults */
		/* Text or {class_name, config}, or such per output, in a list or by name; never
		 * NULL. */
		const cJSON *loss;
		const cJSON *loss_weights; /* per output; NULL: 1 each */
		const cJSON *metrics;      /* a list of metrics, or lists per output; NULL: none */
		const cJSON *weighted;     /* metrics of weighted rows: likewise */
		int64_t steps_per_execution;  /* default 1; or RUN_WHOLE_EPOCH */
		enum run_policy dtype_policy; /* for layers without a dtype */
	} compile;

	struct {
		const char *name;   /* "mnist" */
		const char *path;   /* NULL: searched for */
		int64_t batch_size; /* default 32 */
		int64_t shuffle;    /* 0: no; -1: the whole set; otherwise the buffer's size */
		int64_t limit;      /* 0: no limit */
		bool repeat;        /* default true: restart when the set ends within fit */
		int64_t resize[2];  /* height, width; 0: images keep their size */
		/* Not given (default): class numbers stay numbers. Given: they become vectors, those
		 * of the outputs named, or all if none is. */
		struct run_texts one_hot;
		bool drop_remainder;        /* default true: drop an incomplete last batch */
		bool pad_remainder;         /* default false: do not pad the incomplete batch */
		struct run_texts columns;   /* inputs of a table; not given: all but the target */
		struct run_texts inputs;    /* of an .npz: the model's inputs; not given: one */
		struct run_texts outputs;   /* and its outputs that have targets: likewise */
		const char *target;         /* target column of a table; NULL: the last column */
		const char *weight;         /* the column of item weights; NULL: none */
		enum run_scale scale;       /* of a table's inputs; default none */
		enum run_tokens tokens;     /* of texts; default characters */
		int64_t sequence_length;    /* tokens of an item; default 128 */
		int64_t vocabulary_size;    /* of labelled texts; 0: all that occur */
		enum run_color color_mode;  /* of images by class; default rgb */
		enum run_labels label_mode; /* of cifar100; default fine */
		double validation_split;    /* 0: none */
		int64_t prefetch;           /* batches made ahead; -1: chosen automatically */
		int64_t cache_bytes; /* cache of decoded images; 0: half of the free memory */
	} data;

	struct {
		bool wanted;                 /* false: "fit": null, no training */
		int64_t epochs;              /* default 1; 0 without training */
		int64_t steps_per_epoch;     /* 0: the whole set */
		uint64_t seed;               /* default 1 */
		bool validation;             /* evaluate after each epoch; default false */
		bool asynchronous_callbacks; /* default false */
		const char *resume;          /* a folder of backups; NULL: no */
		const cJSON *class_weight;   /* run_class_weights(); NULL: none */
	} fit;

	struct {
		bool wanted;                 /* the key is present and not null */
		int64_t steps_per_execution; /* 0: that of compile; or RUN_WHOLE_EPOCH */
		int64_t steps;               /* 0: the whole test set */
		const cJSON *loss, *metrics; /* NULL: those of compile */
	} evaluate;

	struct {
		bool wanted;                 /* the key is present and not null */
		int64_t steps_per_execution; /* 0: that of compile; or RUN_WHOLE_EPOCH */
		int64_t steps;               /* 0: the whole test set */
		const char *output;          /* write the outputs to this .npz file; NULL: do not */
	} predict;

	struct {
		bool wanted;        /* the key is present and not null */
		const char *prompt; /* the beginning of the text; NULL: not given */
		int64_t length;     /* tokens after the prompt; default 200 */
		double temperature; /* default 0: always the most likely token */
	} generate;

	const cJSON *callbacks; /* a list of {class_name, config}; NULL: none */

	struct {
		const char *load, *save; /* files of weights; NULL: no */
		const char *save_model;  /* .keras or .h5; NULL: no */
		bool by_name;            /* default false */
	} weights;

	struct {
		int64_t threads;            /* 0: the number of processors */
		enum run_products products; /* default tiles */
		double input_us;            /* time to prepare a batch; NaN: not given */
	} host;

	struct {
		int64_t replicas; /* of all processes; 0: not given */
		enum run_instances instances;
		int64_t bucket_bytes; /* default 1 MiB */
		int64_t timeout_s;    /* default 10; 0: no timeout */
	} distribution;

	struct {
		bool wanted;              /* false: "ipu": null, training on the CPU only */
		const char *target;       /* default "ipu2" */
		int64_t auto_select_ipus; /* default 1 */
		int64_t tiles_per_ipu;    /* 0: all */
		bool allow_recompute;     /* default false; see run_recomputation() */
		struct {
			int64_t num_io_tiles;               /* default 0 */
			bool place_ops_on_io_tiles;         /* default false */
			double available_memory_proportion; /* default 0.9 */
		} io_tiles;
		struct {
			int64_t cross_replica_sum_buffer; /* bytes; default 0 */
		} optimizations;
		struct run_plan convolutions, matmuls; /* default 0.6, float; see run_poplar_of() */
	} ipu;

	struct {
		int64_t prefetch_depth; /* default 3 */
		enum run_dtype dtype;   /* of the inputs: default float32 */
	} infeed;

	struct {
		bool wanted;
		int64_t steps_per_replica;    /* >= 1 */
		enum run_reduction reduction; /* default sum */
		enum run_dtype dtype;         /* not given: that of the gradients */
	} accumulation;

	struct {
		bool wanted;
		/* Array, object or text; resolved against the model by run_stages(). */
		const cJSON *stages;
		bool stages_auto;    /* `stages` is the text "auto" */
		int64_t auto_stages; /* their number; 0: the number of mapped or attached IPUs */
		enum ipu_schedule_kind schedule; /* default Grouped */
		struct run_ints device_mapping;  /* by stage; not given: stage s on IPU s */
		bool accumulate_outfeed;         /* default false */
		enum run_recomputation recomputation_mode; /* as given; see run_recomputation() */
		/* As given; see run_poplar_of(). */
		struct run_poplars forward_options, backward_options;
		struct run_poplar update_options;
		enum run_maybe offload_weight_update_variables, replicated_optimizer_state_sharding,
			offload_activations, offload_gradient_accumulation_buffers,
			replicated_weight_sharding, offload_weights;
	} pipeline;

	struct {
		bool wanted;
		struct run_texts activations,
			gradients; /* filters; ["none"] (any case): given, items NULL */
		enum run_outfeed_optimizer optimizer_mode; /* default BEFORE_APPLY */
		bool last;                                 /* queue_mode LAST */
		/*
		 * A list of layers, or {layer: key}, resolved by run_queues_plan(); NULL: none
		 */
		const cJSON *layers;
		int64_t buffer_depth; /* default 3 */
		const cJSON *capture; /* as given, a tier or rules; never NULL */
		bool off;             /* `capture` is the text "off": there are no queues */
		int64_t budget;       /* bytes; INT64_MAX: unlimited */
	} outfeed;

	struct {
		bool wanted;           /* default true; false: "health": null, no rules */
		const cJSON *rules;    /* the object; read from its file if it was a path; NULL:
					* defaults */
		struct run_texts stop; /* the run ends when one of these rules is broken */
		enum run_watch watch;  /* default all */
	} health;
};

/*
 * The keys: one table row each serves the checks, the defaults, --help RUN, docs/run-file.md and
 * the shell completion. Rows are in the file's order, a section before its keys.
 */
enum run_key_kind {
	RUN_KEY_SECTION,
	RUN_KEY_INT,
	RUN_KEY_BOOL,
	RUN_KEY_TEXT,
	RUN_KEY_CHOICE, /* a text, stored as its index among the choices */
	RUN_KEY_TEXTS,
	RUN_KEY_NAMED,   /* true, false or a list of names: given without items means true */
	RUN_KEY_FILTERS, /* texts; only ["none"], in any case: no filter */
	RUN_KEY_STEPS,   /* an integer, or "epoch" */
	RUN_KEY_SHUFFLE, /* true, false or a number of items */
	RUN_KEY_TREE,    /* JSON that other modules read: a model, a loss, an optimizer, stages */
	RUN_KEY_LIST,    /* a list of objects that other modules read: callbacks */
	RUN_KEY_FLAGS,
	RUN_KEY_SIZE,    /* [height, width], or null */
	RUN_KEY_REAL,    /* a number, or a text that is a number */
	RUN_KEY_MAYBE,   /* true, false or null */
	RUN_KEY_INTS,    /* a list of integers */
	RUN_KEY_PLAN,    /* {convolution, matmul: {availableMemoryProportion, partialsType}} */
	RUN_KEY_PLANS,   /* a list of such objects, any of which may be null */
	RUN_KEY_CAPTURE, /* a tier, or rules: see run_checks.capture */
	RUN_KEY_BYTES,   /* a number, or a text with a unit; null: unlimited */
	RUN_KEY_LISTS,   /* RUN_KEY_LIST, or an object of lists per output */
	RUN_KEY_KINDS
};

struct run_key {
	/* The table (run_table.c) gives the first three by their order. */
	const char *path;     /* "fit.epochs" */
	const char *fallback; /* the default as JSON; NULL: the key is required */
	const char *help;
	const char *choices;     /* "sum mean running_mean", or NULL */
	int64_t least, greatest; /* of numbers; of each, in lists */
	int64_t absent;          /* the value of null, for integers and choices */
	enum run_key_kind kind;
	size_t offset, size; /* of the member that it fills in struct run_file; size 0: none */
};

const struct run_key *run_file_keys(int *count);
const char *run_key_type(const struct run_key *key); /* "whole number", "list of texts" */

/*
 * Checks of values that other rooms define. They fail for what they do not understand; errors name
 * the position.
 */
struct run_checks {
	enum status (*capture)(const struct json_at *at, struct err *err); /* outfeed.capture */
	enum status (*rules)(const struct json_at *at, struct err *err);   /* health.rules */
	/* Load a run file or model as JSON from whatever format the file has; NULL: it is JSON. */
	enum status (*load)(cJSON **out, const char *path, struct err *err);
};

/*
 * Load the run file @path. @argv: the words of the command line after it: run file flags and
 * `--key value` overrides (`--fit.epochs 5`, `--pipeline null`). A value is JSON if it parses as
 * JSON, otherwise a text. @checks are called while the file is read. On failure *@out is NULL.
 */
enum status run_file_load(struct run_file **out, const char *path, int argc, char **argv,
			  const struct run_checks *checks, struct err *err);
void run_file_free(struct run_file *run); /* accepts NULL */

/* The same from @text; messages call it @name. It has no folder, so a model given by path is
 * refused. */
enum status run_file_parse(struct run_file **out, const char *name, const char *text, size_t length,
			   int argc, char **argv, const struct run_checks *checks, struct err *err);

/*
 * The run as one self-contained text: with flags and overrides applied, and with the model even if
 * that is in a file of its own. The caller frees *@out (cJSON_free()).
 */
enum status run_file_text(char **out, const struct run_file *run, struct err *err);

/* Print the description, the run file's own flags and what each sets, for RUN --help. Prints
 * nothing if it has none. */
enum status run_file_help(const struct run_file *run, FILE *out);

/* Planning options of @stage in @phase (F, B, U): those of the pipeline, otherwise those of ipu. */
struct run_poplar run_poplar_of(const struct run_file *run, char phase, int stage);

/* How activations are recomputed in the backward pass; RUN_RECOMPUTE_AUTO is resolved to the
 * schedule's default. RUN_RECOMPUTE_NOTHING without a pipeline or ipu.allow_recompute. */
enum run_recomputation run_recomputation(const struct run_file *run);

/* Find the model, in a file of its own or in the run file: *@out is linked to *@root. */
enum status run_model_at(struct json_at *root, struct json_at *out, const struct run_file *run,
			 struct err *err);

/* Check that the names of optimizer, losses and metrics are known. run_measure() checks whether
 * they fit the model and the data. */
enum status run_check_compile(const struct run_file *run, struct err *err);

/* compile.dtype_policy, for model_set_policy(). */
enum model_policy run_policy(const struct run_file *run);

/* Read compile.optimizer. */
enum status run_optimizer(struct optimizer *out, const struct run_file *run, struct err *err);

/* Whether compile's loss of the output data.outputs[@i] (single output: 0) ignores a class. */
bool run_ignored(const struct run_file *run, int i, int64_t *class);

/* The targets that @section's loss, or compile's, needs for the outputs of @model; for runs without
 * data. */
enum status run_targets(struct target_kind *out, const struct run_file *run, const char *section,
			const struct model *model, struct err *err);

/*
 * Read @section's losses and metrics (if it has none, compile's) and compile's weighted_metrics;
 * they compare with targets of @kind. With several outputs, the metrics begin with each output's
 * loss. The caller frees *@metrics (metric_list_free()).
 */
enum status run_measure(struct loss_list *losses, struct metric_list *metrics,
			const struct run_file *run, const char *section, const struct model *model,
			const struct target_kind *kind, struct err *err);

/* Weights per item (see struct target_kind): those of the data, or those that the run's class
 * weights and padding need. */
int64_t run_row_weights(const struct run_file *run, const struct target_kind *kind,
			const struct model *model, bool training);

/* Read fit.class_weight, in the order of data.outputs. The caller frees it. */
enum status run_class_weights(struct class_weights *out, const struct run_file *run,
			      struct err *err);
void run_class_weights_free(struct class_weights *weights);

/*
 * The examples: run files that are installed beside the program and can be given by name,
 * "inspect-tensors" for inspect-tensors.json.
 *
 * Threading: none.
 */

/* Resolve the run file of a command line: a path; or, for a word without '/', WORD.json in the
 * working directory, then the example. If none exists, ST_NOTFOUND names the nearest example. A
 * path is not checked: reading it reports the most precise error. */
enum status run_example_find(char path[FS_PATH_SIZE], const char *word, struct err *err);

/* Print a line for each example, sorted by name: the name and the run file's description. */
enum status run_example_list(FILE *out, struct err *err);

#endif /* RUN_FILE_H */
