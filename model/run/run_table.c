/*
 * The table of the run file's keys, a section before its keys; and looking keys up in it.
 *
 * Threading: constant data. docs/run-file.md lists the same keys; a test compares the two.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/model_config.h"
#include "model/run/run_internal.h"

#define AT(member)                                                                                 \
	.offset = offsetof(struct run_file, member), .size = sizeof(((struct run_file *)0)->member)

/* A key whose path is that of its field: kind, default (NULL: required), help, bounds. The
 * path, the default and the help are in the order of struct run_key. */
#define KEY(member_, ...) NAMED_KEY(#member_, member_, __VA_ARGS__)
#define NAMED_KEY(path_, member_, kind_, ...)                                                      \
	{                                                                                          \
		AT(member_), .kind = RUN_KEY_##kind_, .path = (path_), __VA_ARGS__                 \
	}
/* A key without a field. */
#define ROW(path_, kind_, ...)                                                                     \
	{                                                                                          \
		.kind = RUN_KEY_##kind_, .path = (path_), __VA_ARGS__                              \
	}

#define RUN_STEPS_MOST  1000000000
#define RUN_EPOCHS_MOST 1000000
#define RUN_EXACT_MOST  9007199254740992 /* 2^53 */

static const struct run_key run_keys[] = {
	KEY(description, TEXT, "null",
	    "What the run is, in a line: RUN --help prints it, and --list of an example."),
	KEY(model, TREE, NULL,
	    "The model as Keras's model.to_json() gives it, or the path of a file that holds that, "
	    "relative to the run file: JSON, .keras, .h5, TensorFlow.js's model.json."),

	ROW("compile", SECTION, "{}", "What Keras's model.compile() is given."),
	KEY(compile.optimizer, TREE, "null",
	    "Name, or {class_name, config}; null: SGD with learning_rate 0.01."),
	KEY(compile.loss, TREE, NULL,
	    "Name, or {class_name, config}: sparse_categorical_crossentropy, "
	    "categorical_crossentropy, binary_crossentropy, mean_squared_error. Of a model of "
	    "several outputs: one for all, a list in the order of output_layers, or an object by "
	    "their names, null: not trained on."),
	KEY(compile.loss_weights, LISTS, "null",
	    "Of a model of several outputs: what each one's loss counts for in the sum, a list in "
	    "the order of output_layers or an object by their names; null: 1 each."),
	KEY(compile.metrics, LISTS, "null",
	    "What is measured beside the loss: a list of names (accuracy, "
	    "top_k_categorical_accuracy, mean_absolute_error ...) or {class_name, config}, of each "
	    "output, or a list of such lists, or an object of them by output; null: nothing."),
	NAMED_KEY("compile.weighted_metrics", compile.weighted, LISTS, "null",
		  "Metrics in which rows count by sample_weight and class_weight, as those of "
		  "compile.metrics do not; null: none."),
	KEY(compile.steps_per_execution, STEPS, "1",
	    "Steps of one Engine::run, per replica. A divisor of the steps of an epoch and a "
	    "multiple of gradient_accumulation.steps_per_replica; epoch: all of them.",
	    .least = 1, .greatest = RUN_STEPS_MOST, .choices = "epoch"),
	KEY(compile.dtype_policy, CHOICE, "\"float32\"",
	    "Keras's mixed_precision.set_global_policy(): the policy of the layers whose own dtype "
	    "leaves it open. mixed_float16: compute in half, variables in float32. mixed_bfloat16: "
	    "variables are read rounded to bfloat16; the IPU has no such type, and its figures are "
	    "those of float32.",
	    .choices = "float32 mixed_float16 mixed_bfloat16"),

	ROW("data", SECTION, "{}", "What is trained on."),
	KEY(data.name, TEXT, "\"mnist\"", "The data set.",
	    .choices = "mnist fashion_mnist cifar10 cifar100 npz csv text imdb images"),
	KEY(data.path, TEXT, "null",
	    "A folder of IDX files (gzipped or not) or of CIFAR-10's binary version, or an .npz "
	    "file or a folder of .npy files with x_train, y_train, x_test and y_test; of csv a "
	    ".csv file, or a folder with train.csv and test.csv; of text a text file, or a folder "
	    "with a folder of .txt files for each label; of images a folder with a folder of PNG "
	    "and JPEG files for each class; relative to the working directory. null: searched for; "
	    "a synthetic set where nothing is found; of npz ipu-plan takes what the model and its "
	    "loss do."),
	KEY(data.columns, TEXTS, "null",
	    "Of csv: the columns that are inputs, in this order, by the names of its first line; "
	    "null: all but the target and the weight."),
	KEY(data.inputs, TEXTS, "null",
	    "Of npz, for a model of several inputs: their names, as input_layers has them; the "
	    "file has x_train_NAME and x_test_NAME for each. null: x_train and x_test."),
	KEY(data.outputs, TEXTS, "null",
	    "Of npz, for a model of several outputs: the names of those that have targets, as "
	    "output_layers has them; the file has y_train_NAME and y_test_NAME for each. null: "
	    "y_train and y_test."),
	KEY(data.target, TEXT, "null",
	    "Of csv: the column of the target; null: the last. What is predicted alone may lack "
	    "it."),
	KEY(data.weight, TEXT, "null",
	    "Of csv: the column of what each item weighs, as sample_weight; null: all weigh 1."),
	KEY(data.scale, CHOICE, "\"none\"",
	    "Of csv: scale each column of inputs by what the training part has: minmax from 0 to "
	    "1, standard to mean 0 and standard deviation 1.",
	    .choices = "none minmax standard"),
	KEY(data.tokens, CHOICE, "\"characters\"",
	    "Of text: what gets a number. Words, of labelled texts alone, are in lower case and "
	    "without punctuation.",
	    .choices = "characters bytes words"),
	KEY(data.sequence_length, INT, "128",
	    "Of text and imdb: tokens of an item: of each window of a file, or what labelled texts "
	    "are filled up or cut to, at their beginning.",
	    .least = 1, .greatest = 1 << 20),
	KEY(data.vocabulary_size, INT, "null",
	    "Of labelled texts and imdb: numbers that tokens have, with 0 (padding), 1 (start) and "
	    "2 (unknown); the most frequent tokens have the others. null: as many as the training "
	    "part needs.",
	    .least = 4, .greatest = 1 << 24),
	KEY(data.color_mode, CHOICE, "\"rgb\"",
	    "Of images: the channels that they are read with, three or one.",
	    .choices = "rgb grayscale"),
	KEY(data.label_mode, CHOICE, "\"fine\"",
	    "Of cifar100: the labels of the 100 classes, or of their 20 groups.",
	    .choices = "fine coarse"),
	KEY(data.validation_split, REAL, "0",
	    "The last part of the training set, before it is shuffled, becomes the test set, of "
	    "sets that have none; 0: none.",
	    .least = 0, .greatest = 1),
	KEY(data.batch_size, INT, "32", "Images of one micro-batch on one replica.", .least = 1,
	    .greatest = 1000000),
	KEY(data.shuffle, SHUFFLE, "true",
	    "true: the whole set anew in each pass; false: never; a number: through a buffer of "
	    "that many images.",
	    .least = 1, .greatest = INT32_MAX),
	KEY(data.limit, INT, "null",
	    "Only the first so many images of the training and of the test set; null: all.",
	    .least = 1, .greatest = INT32_MAX),
	KEY(data.repeat, BOOL, "true",
	    "Begin again where the set ends. false: a set too small for epochs x steps_per_epoch, "
	    "or for the steps of evaluate or predict, is an error."),
	KEY(data.resize, SIZE, "null",
	    "[height, width]: images are scaled to that, as tf.image.resize does it (of the set "
	    "images rounded to bytes); null: they stay as they are.",
	    .least = 1, .greatest = 65536),
	KEY(data.one_hot, NAMED, "false",
	    "Class numbers become vectors with a 1 at that place, for categorical_crossentropy. Of "
	    "several outputs: true for all that have class numbers, or the names of those meant."),
	KEY(data.drop_remainder, BOOL, "true",
	    "false: images that do not fill a batch at a pass's end are a batch of their own; on "
	    "the CPU alone (\"ipu\": null)."),
	KEY(data.pad_remainder, BOOL, "false",
	    "true: what does not fill a batch at a pass's end, on any replica and in any weight "
	    "update, is filled up with zeros of weight 0."),
	KEY(data.prefetch, INT, "null",
	    "Steps whose batches a thread makes ahead (of a pipeline at least as many as its first "
	    "stage is ahead of its last); 0: none. null: 2, with a pipeline 1 more than it has "
	    "stages, where images are resized or decoded as they are needed, else 0. Changes no "
	    "result.",
	    .least = 0, .greatest = 1024, .absent = -1),
	KEY(data.cache_bytes, INT, "null",
	    "Of images: bytes that are decoded at the start and kept. A part that takes more is "
	    "decoded as it is needed, ahead of the training. null: half of the memory that the "
	    "machine has to give. Changes no result.",
	    .least = 1, .greatest = INT64_C(1) << 50),

	NAMED_KEY("fit", fit.wanted, SECTION, "{}",
		  "What Keras's model.fit() is given; null: train nothing, evaluate or predict "
		  "alone."),
	KEY(fit.epochs, INT, "1", "Epochs to train.", .least = 1, .greatest = RUN_EPOCHS_MOST),
	KEY(fit.steps_per_epoch, INT, "null",
	    "Batches of an epoch, divided among the replicas; null: the whole set.", .least = 1,
	    .greatest = RUN_STEPS_MOST),
	KEY(fit.seed, INT, "1",
	    "Of the initial weights and of the order of images: same seed, same bytes.", .least = 0,
	    .greatest = RUN_EXACT_MOST),
	KEY(fit.validation, BOOL, "false",
	    "Evaluate the test set after each epoch, as validation_data does (val_loss ...), in "
	    "the steps that evaluate asks for."),
	KEY(fit.asynchronous_callbacks, BOOL, "false",
	    "Call callbacks for each step as its results arrive, not for each execution."),
	KEY(fit.class_weight, TREE, "null",
	    "What targets of each class weigh in the loss, an object with every class: {\"0\": "
	    "1.0, \"1\": 2.5}; times sample_weight, where the data has it. Of several outputs such "
	    "an object by output's name, or a list by position. null: 1 each."),
	KEY(fit.resume, TEXT, "null",
	    "The backup_dir of a BackupAndRestore whose run is to go on from its last backup; "
	    "null: the callback's own, where it has one."),

	NAMED_KEY("evaluate", evaluate.wanted, SECTION, "null",
		  "Evaluate on the test set after training; null: do not."),
	KEY(evaluate.steps_per_execution, STEPS, "null",
	    "As in compile, for the evaluation; null: the same.", .least = 1,
	    .greatest = RUN_STEPS_MOST, .choices = "epoch"),
	KEY(evaluate.steps, INT, "null",
	    "Batches to evaluate, divided among the replicas; null: the whole test set.",
	    .least = 1, .greatest = RUN_STEPS_MOST),
	KEY(evaluate.loss, TREE, "null", "The loss that is measured; null: as in compile."),
	KEY(evaluate.metrics, LISTS, "null", "What else is measured; null: as in compile."),

	NAMED_KEY("predict", predict.wanted, SECTION, "null",
		  "Predict the test set at the end; null: do not."),
	KEY(predict.steps, INT, "null",
	    "Batches to predict, divided among the replicas; null: the whole test set.", .least = 1,
	    .greatest = RUN_STEPS_MOST),
	KEY(predict.steps_per_execution, STEPS, "null",
	    "As in compile, for the prediction; null: the same.", .least = 1,
	    .greatest = RUN_STEPS_MOST, .choices = "epoch"),
	KEY(predict.output, TEXT, "null",
	    "The .npz file that gets the outputs, relative to the working directory; null: none."),
	NAMED_KEY("generate", generate.wanted, SECTION, "null",
		  "Write text after each epoch and at the end, of a model that learns what follows "
		  "each token of a text file; null: do not."),
	KEY(generate.prompt, TEXT, "null",
	    "What the text begins with; --generate TEXT says the same."),
	KEY(generate.length, INT, "200", "Tokens behind the prompt.", .least = 1,
	    .greatest = 1000000),
	KEY(generate.temperature, REAL, "0",
	    "0: the likeliest token each time; else tokens are drawn, by fit.seed, with "
	    "probabilities to the power of 1 / temperature.",
	    .least = 0, .greatest = 100),

	KEY(callbacks, LIST, "null",
	    "What Keras's callbacks are: a list of {class_name, config} of EarlyStopping, "
	    "ReduceLROnPlateau, LearningRateScheduler, TerminateOnNaN, ModelCheckpoint, CSVLogger, "
	    "BackupAndRestore, OutfeedCallback; null: none."),

	ROW("weights", SECTION, "{}", "Files of weights."),
	KEY(weights.load, TEXT, "null",
	    "The file of the first weights (.npz, .h5, .weights.h5, .keras), relative to the "
	    "working directory; null: initial values."),
	KEY(weights.by_name, BOOL, "false",
	    "Load only what the file has of the model's layers; false: it must have all."),
	KEY(weights.save, TEXT, "null",
	    "The file that gets the weights at the end, relative to the working directory: "
	    ".weights.h5 and .h5 as Keras has them, any other .npz; null: none."),
	KEY(weights.save_model, TEXT, "null",
	    "The file that gets the model with its weights at the end, for Keras's load_model(), "
	    "relative to the working directory: .keras or .h5; null: none."),

	ROW("host", SECTION, "{}", "This machine."),
	KEY(host.threads, INT, "0",
	    "Threads that compute; 0: one for each processor. Changes no result.", .least = 0,
	    .greatest = 1024),
	KEY(host.products, CHOICE, "\"tiles\"",
	    "What computes matrix products: our tiles, with the same bytes on every machine, or "
	    "OpenBLAS, whose rounding is its own on each kind of processor.",
	    .choices = "tiles openblas"),

	KEY(host.input_us, REAL, "null",
	    "Microseconds that the simulated host takes to prepare a batch, for ipu-plan; its "
	    "--measure-input finds what this machine takes. null: not counted. Changes no result.",
	    .least = 0, .greatest = 1e9),

	ROW("distribution", SECTION, "{}",
	    "Several processes that train together: see docs/distributed.md."),
	KEY(distribution.replicas, INT, "null",
	    "Replicas of all processes together, each with the IPUs that its stages need; null: as "
	    "many as ipu.auto_select_ipus make.",
	    .least = 1, .greatest = RUN_IPUS_MOST),
	KEY(distribution.instances, CHOICE, "null",
	    "mpi: a launcher of MPI must have started the run (ipu-run, mpirun, srun), with a "
	    "number of processes that divides the replicas; null: any number of processes.",
	    .choices = "mpi", .absent = RUN_INSTANCES_ANY),
	KEY(distribution.timeout_s, INT, "10",
	    "Seconds after which a process that sends no sign of life ends the run; 0: it is "
	    "waited for.",
	    .least = 0, .greatest = 86400),
	KEY(distribution.bucket_bytes, INT, "1048576",
	    "Gradients go to other processes in pieces of at most so many bytes, while the layers "
	    "before them still have their backward pass. Changes no result.",
	    .least = 1024, .greatest = 67108864),

	NAMED_KEY("ipu", ipu.wanted, SECTION, "{}",
		  "The simulated IPUs; null: train on the CPU alone."),
	KEY(ipu.target, TEXT, "\"ipu2\"",
	    "The kind of IPU: ipu1 (Mk1), ipu2 (Mk2), ipu21 (Bow), c600."),
	KEY(ipu.auto_select_ipus, INT, "1",
	    "IPUs to attach; what stages do not need is used for replicas.", .least = 1,
	    .greatest = RUN_IPUS_MOST),
	KEY(ipu.tiles_per_ipu, INT, "0", "Tiles of each IPU; 0: all that the target has.",
	    .least = 0, .greatest = 1000000),
	KEY(ipu.allow_recompute, BOOL, "false",
	    "Let stages of a pipeline compute activations again instead of keeping them; "
	    "pipeline.recomputation_mode says how."),
	ROW("ipu.io_tiles", SECTION, "{}",
	    "Tiles that copy to and from the host while the others compute."),
	KEY(ipu.io_tiles.num_io_tiles, INT, "0",
	    "Tiles of each IPU that only copy; 0: none. The others are left for computing.",
	    .least = 0, .greatest = 1000000),
	KEY(ipu.io_tiles.place_ops_on_io_tiles, BOOL, "false",
	    "Stream copies go through these tiles and overlap with computing; false: the tiles are "
	    "merely kept back."),
	KEY(ipu.io_tiles.available_memory_proportion, REAL, "0.9",
	    "How much of an I/O tile's memory what is fed may take.", .least = 0, .greatest = 1),
	ROW("ipu.optimizations", SECTION, "{}", "How the device's program is arranged."),
	NAMED_KEY(
		"ipu.optimizations.maximum_cross_replica_sum_buffer_size",
		ipu.optimizations.cross_replica_sum_buffer, INT, "0",
		"Bytes of gradients that are summed over the replicas together; 0: each by itself. "
		"Changes no result.",
		.least = 0, .greatest = INT64_C(1) << 40),
	ROW("ipu.convolutions", SECTION, "{}",
	    "How convolutions are planned; pipeline.forward_propagation_stages_poplar_options "
	    "and its like say otherwise for a stage."),
	NAMED_KEY("ipu.convolutions.availableMemoryProportion",
		  ipu.convolutions.available_memory_proportion, REAL, "0.6",
		  "How much of a tile's memory a convolution may take while it is computed.",
		  .least = 0, .greatest = 1),
	NAMED_KEY("ipu.convolutions.partialsType", ipu.convolutions.partials_type, CHOICE,
		  "\"float\"", "What sums are kept in on the device; changes no result.",
		  .choices = "float half"),
	ROW("ipu.matmuls", SECTION, "{}", "How matrix multiplications are planned."),
	NAMED_KEY("ipu.matmuls.availableMemoryProportion", ipu.matmuls.available_memory_proportion,
		  REAL, "0.6", "As of ipu.convolutions.", .least = 0, .greatest = 1),
	NAMED_KEY("ipu.matmuls.partialsType", ipu.matmuls.partials_type, CHOICE, "\"float\"",
		  "As of ipu.convolutions.", .choices = "float half"),

	ROW("infeed", SECTION, "{}", "How batches reach the IPUs."),
	KEY(infeed.prefetch_depth, INT, "3",
	    "Batches that the simulated host has ready ahead of the device; changes no result.",
	    .least = 1, .greatest = 1024),
	KEY(infeed.dtype, CHOICE, "\"float32\"",
	    "What the inputs are sent as; the IPU casts them. float16 rounds them, but for numbers "
	    "that an Embedding looks up, which go as int32; uint8 is for pictures: their bytes are "
	    "sent and divided by 255 there, and what data.resize has made of them is rounded to "
	    "bytes.",
	    .choices = "float32 float16 uint8"),

	NAMED_KEY("gradient_accumulation", accumulation.wanted, SECTION, "null",
		  "Add the gradients of several micro-batches up before a weight update; null: do "
		  "not."),
	NAMED_KEY("gradient_accumulation.steps_per_replica", accumulation.steps_per_replica, INT,
		  NULL, "Micro-batches of one weight update.", .least = 1,
		  .greatest = RUN_STEPS_MOST),
	NAMED_KEY("gradient_accumulation.reduction", accumulation.reduction, CHOICE, "\"sum\"",
		  "How they are added up.", .choices = "sum mean running_mean"),
	NAMED_KEY(
		"gradient_accumulation.dtype", accumulation.dtype, CHOICE, "null",
		"What the sums are kept in: float16 rounds them after each addition. null: as the "
		"gradients are.",
		.choices = "float32 float16", .absent = RUN_DTYPE_UNSAID),

	NAMED_KEY("pipeline", pipeline.wanted, SECTION, "null",
		  "Spread the layers over IPUs as a pipeline; null: do not."),
	KEY(pipeline.stages, TREE, NULL,
	    "A list with the stage of each layer, {layer: the stage that starts there}, or "
	    "\"auto\": the split whose slowest stage is fastest."),
	KEY(pipeline.auto_stages, INT, "null",
	    "Stages of pipeline.stages \"auto\"; null: one for each entry of "
	    "pipeline.device_mapping, else for each of ipu.auto_select_ipus, with 1f1b-interleaved "
	    "two.",
	    .least = 2, .greatest = 256),
	KEY(pipeline.schedule, CHOICE, "\"Grouped\"",
	    "The order of work. With a capital: of TensorFlow for IPU, in lockstep. "
	    "1f1b-interleaved deals the stages to the IPUs in turn: see pipeline.device_mapping.",
	    .choices = IPU_SCHEDULE_NAMES),
	KEY(pipeline.device_mapping, INTS, "null",
	    "The IPU of each stage, counted from 0 within a replica; null: stage s on IPU s, with "
	    "1f1b-interleaved dealt in turn to as many of ipu.auto_select_ipus as give each the "
	    "same number of stages, at least two.",
	    .least = 0, .greatest = 255),
	KEY(pipeline.accumulate_outfeed, BOOL, "false",
	    "Send loss and metrics once per weight update (or per execution, where nothing is "
	    "trained), as the mean of its micro-batches."),
	KEY(pipeline.recomputation_mode, CHOICE, "\"Auto\"",
	    "With ipu.allow_recompute. Auto: RecomputeThenBackpropagate; of Sequential "
	    "RecomputeAndBackpropagateInterleaved.",
	    .choices = "Auto RecomputeThenBackpropagate RecomputeAndBackpropagateInterleaved"),
	NAMED_KEY("pipeline.forward_propagation_stages_poplar_options", pipeline.forward_options,
		  PLANS, "null",
		  "One object or null for each stage, for its forward pass: {convolution, matmul: "
		  "{availableMemoryProportion, partialsType}}; what it does not say is as of ipu."),
	NAMED_KEY("pipeline.backward_propagation_stages_poplar_options", pipeline.backward_options,
		  PLANS, "null", "The same for backward passes."),
	NAMED_KEY("pipeline.weight_update_poplar_options", pipeline.update_options, PLAN, "null",
		  "One such object for all weight updates."),
	KEY(pipeline.offload_weight_update_variables, MAYBE, "null",
	    "Keep the optimizer's variables in the host's memory but for the update; null: no."),
	KEY(pipeline.replicated_optimizer_state_sharding, MAYBE, "null",
	    "Each replica keeps a share of the optimizer's variables; null: no."),
	KEY(pipeline.offload_activations, MAYBE, "null",
	    "Keep the activations that wait for their backward pass in the host's memory; "
	    "null: no."),
	KEY(pipeline.offload_gradient_accumulation_buffers, MAYBE, "null",
	    "Keep the accumulated gradients in the host's memory but when they are added to; "
	    "null: no."),
	KEY(pipeline.replicated_weight_sharding, MAYBE, "null",
	    "Each replica keeps a share of offloaded weights; null: no."),
	KEY(pipeline.offload_weights, MAYBE, "null",
	    "Keep the weights in the host's memory but while they are used; null: no."),

	NAMED_KEY("outfeed", outfeed.wanted, SECTION, "null",
		  "Which tensors come back to the host; null: what outfeed layers send, "
		  "unfiltered, and no gradients."),
	KEY(outfeed.activations, FILTERS, "null",
	    "Keep the activations whose key contains one of these texts; null or [\"none\"]: all; "
	    "[]: none."),
	KEY(outfeed.gradients, FILTERS, "null",
	    "The same for gradients; null: no gradients are sent; [\"none\"]: all are."),
	KEY(outfeed.layers, TREE, "null",
	    "Layers after which a MaybeOutfeed is placed: one, a list (keys \"LAYER_acts\"), or "
	    "{layer: key}; the last of a stage is the final one."),
	KEY(outfeed.optimizer_mode, CHOICE, "\"BEFORE_APPLY\"",
	    "Gradients of each micro-batch (AFTER_COMPUTE), or accumulated (BEFORE_APPLY).",
	    .choices = "AFTER_COMPUTE BEFORE_APPLY"),
	NAMED_KEY("outfeed.queue_mode", outfeed.last, CHOICE, "\"ALL\"",
		  "Keep all that is enqueued until it is dequeued, or the last alone.",
		  .choices = "ALL LAST"),
	KEY(outfeed.buffer_depth, INT, "3",
	    "Results that the simulated device may have waiting for the host; changes no result.",
	    .least = 1, .greatest = 1024),
	KEY(outfeed.capture, CAPTURE, "\"stats\"",
	    "How much is kept of what queues send: one of these tiers, or \"last N\"; off: there "
	    "are no queues. Or a list of rules {tensors, kind, tier, every}, of which the first "
	    "that fits a tensor decides, sent or not.",
	    .choices = "off health counts stats histogram full"),
	KEY(outfeed.budget, BYTES, "\"1 GB\"",
	    "Bytes of the report for what is looked at, over the run (at most half of what its "
	    "disk has free): a number, or a text as \"500 MB\". Then tiers are lowered. null: no "
	    "end.",
	    .least = 0, .greatest = RUN_EXACT_MOST),

	NAMED_KEY("health", health.wanted, SECTION, "{}",
		  "The health rules: what is looked for while training (docs/health.md); null: "
		  "nothing is."),
	KEY(health.rules, TREE, "null",
	    "What differs from the defaults: {rule: {threshold, patience, enabled ...}, or true or "
	    "false}; or the path of a JSON file of that, relative to the run file, else to the "
	    "working directory."),
	KEY(health.stop, TEXTS, "null",
	    "The rules that end the run when they are broken, with exit code 1 and a complete "
	    "report: a name or a list of them; null: none.",
	    .choices = "nonfinite exploding vanishing dead_relu saturated_activation "
		       "poor_initialization unchanged_tensor all_zero update_ratio "
		       "loss_not_decreasing overfit class_imbalance"),
	KEY(health.watch, CHOICE, "\"all\"",
	    "What is looked at, with tier health, where outfeed.capture has no rule for it: "
	    "gradients alone, or activations too (all). Weights and optimizer state are for rules "
	    "of outfeed.capture.",
	    .choices = "none gradients all"),

	ROW("flags", FLAGS, "{}",
	    "The run file's own command line flags: {\"--name\": merge patch}, where \"$value\" "
	    "stands for the flag's argument and \"$values\" for all of them."),
};

_Static_assert(ARRAY_LEN(run_keys) <= RUN_KEYS_MOST, "more keys than there is room for");

const struct run_key *run_file_keys(int *count)
{
	*count = (int)ARRAY_LEN(run_keys);
	return run_keys;
}

/* ---- looking keys up ------------------------------------------------------------------------- */

const char *run_key_type(const struct run_key *key)
{
	static const char *const types[] = {
		[RUN_KEY_SECTION] = "object",
		[RUN_KEY_INT] = "whole number",
		[RUN_KEY_BOOL] = "true or false",
		[RUN_KEY_TEXT] = "text",
		[RUN_KEY_CHOICE] = "text",
		[RUN_KEY_TEXTS] = "text or list of texts",
		[RUN_KEY_NAMED] = "true, false or list of texts",
		[RUN_KEY_FILTERS] = "list of texts",
		[RUN_KEY_STEPS] = "whole number or text",
		[RUN_KEY_SHUFFLE] = "true, false or whole number",
		[RUN_KEY_TREE] = "text, list or object",
		[RUN_KEY_LIST] = "list",
		[RUN_KEY_FLAGS] = "object",
		[RUN_KEY_SIZE] = "list of two whole numbers",
		[RUN_KEY_REAL] = "number",
		[RUN_KEY_MAYBE] = "true or false",
		[RUN_KEY_INTS] = "list of whole numbers",
		[RUN_KEY_PLAN] = "object",
		[RUN_KEY_PLANS] = "list of objects",
		[RUN_KEY_CAPTURE] = "text or list",
		[RUN_KEY_BYTES] = "number or text",
		[RUN_KEY_LISTS] = "list or object",
	};

	_Static_assert(ARRAY_LEN(types) == RUN_KEY_KINDS, "key types out of step");
	return types[key->kind];
}

const struct run_key *run__key_find(const char *path)
{
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; i < count; i++)
		if (!strcmp(keys[i].path, path))
			return &keys[i];
	return NULL;
}

const struct run_key *run__key_over(const char *path)
{
	/* Kinds whose values may be addressed below the key. */
	static const bool trees[RUN_KEY_KINDS] = {
		[RUN_KEY_TREE] = true,  [RUN_KEY_LIST] = true,  [RUN_KEY_INTS] = true,
		[RUN_KEY_PLAN] = true,  [RUN_KEY_PLANS] = true, [RUN_KEY_CAPTURE] = true,
		[RUN_KEY_LISTS] = true,
	};
	const struct run_key *key = run__key_find(path);
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; !key && i < count; i++) {
		size_t length = strlen(keys[i].path);

		if (trees[keys[i].kind] && path[0] && !strncmp(path, keys[i].path, length) &&
		    path[length] == '.' && path[length + 1])
			key = &keys[i];
	}
	return key;
}

const char *run__key_last(const struct run_key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot ? dot + 1 : key->path;
}

/* Whether @key is directly in @section (NULL: the top level), not in a section within it. */
static bool run_key_within(const struct run_key *key, const struct run_key *section)
{
	size_t length = section ? strlen(section->path) : 0;

	if (!section)
		return !strchr(key->path, '.');
	return !strncmp(key->path, section->path, length) && key->path[length] == '.' &&
	       !strchr(key->path + length + 1, '.');
}

int run__choice(const char *choices, const char *word)
{
	size_t length = strlen(word);

	for (int i = 0; *choices; i++) {
		size_t next = strcspn(choices, " ");

		if (next == length && !memcmp(choices, word, length))
			return i;
		choices += next;
		choices += strspn(choices, " ");
	}
	return -1;
}

bool run__renamed_text(const char *name, char *out, size_t size)
{
	const struct model_legacy_option *row = model_legacy_option(name);

	if (!row)
		return false;

	switch (row->kind) {
	case MODEL_LEGACY_PLACE:
		snprintf(out, size, "is \"%s\" in a run file", row->what);
		break;
	case MODEL_LEGACY_REMOVED:
		snprintf(out, size, "was removed after TensorFlow 2.1: %s", row->what);
		break;
	case MODEL_LEGACY_REFUSED:
		snprintf(out, size, "cannot be given for a Keras model: %s", row->what);
		break;
	}
	return true;
}

/* The key of another section that @word ("epochs" at the top level) names; or NULL. */
static const char *run_key_of_other_section(const char *word)
{
	const char *last[RUN_KEYS_MOST], *near;
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; i < count; i++)
		last[i] = run__key_last(&keys[i]);
	near = str_nearest(word, last, (size_t)count);
	for (int i = 0; near && i < count; i++)
		if (last[i] == near)
			return keys[i].path;
	return NULL;
}

enum status run__key_unknown(const struct json_at *at, const struct run_key *section,
			     struct err *err)
{
	const char *names[RUN_KEYS_MOST], *near;
	char text[ERR_TEXT_SIZE];
	size_t within = 0;
	int count;
	const struct run_key *keys = run_file_keys(&count);

	if (run__renamed_text(at->key, text, sizeof(text)))
		return json_fail(at, err, "%s", text);
	for (int i = 0; i < count; i++)
		if (run_key_within(&keys[i], section))
			names[within++] = run__key_last(&keys[i]);

	near = str_nearest(at->key, names, within);
	if (!near)
		near = run_key_of_other_section(at->key);
	if (near)
		return json_fail(at, err, "unknown key (did you mean \"%s\"?)", near);
	return json_fail(at, err, "unknown key (docs/run-file.md lists them)");
}

void run__keys_check(const struct json_at *at, const struct run_key *section, struct err *err)
{
	int count;
	const struct run_key *keys = run_file_keys(&count);
	struct json_at below = {0};

	while (!err_stuck(err) && json_next(at, &below)) {
		bool known = false;

		for (int i = 0; i < count && !known; i++)
			known = run_key_within(&keys[i], section) &&
				!strcmp(run__key_last(&keys[i]), below.key);
		if (!known)
			run__key_unknown(&below, section, err);
	}
}
