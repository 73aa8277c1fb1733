/*
 * Training what the parser accepts: a run that fuzz_grammar.h makes is trained for a weight update
 * or two, on one thread without a pipeline, and again in other ways that promise the same bytes:
 * with more threads, on the CPU alone, in a pipeline of any schedule and stages, recomputing,
 * offloading, recorded and captured.
 *
 * What is refused is refused in one line, before anything is computed.
 */
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cpu.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "fuzz_grammar.h"
#include "fuzz_target.h"
#include "trainer/train_job.h"

#define WORDS_MOST 64

static char folder[FS_PATH_SIZE]; /* of run file, data and reports; one for the process */

/* ---- a training ------------------------------------------------------------------------------ */

/* How a run is trained: overrides of its file. */
struct way {
	char *words[WORDS_MOST + 1];
	int count;
	bool recorded;
};

/* What a training ends with. */
struct trained {
	struct train_job *job; /* while it runs */
	bool begun, done;
	float *weights; /* in the order of the first training's model */
	size_t count;
	double loss, evaluate_loss;
};

static void way_add(struct way *way, const char *key, const char *value)
{
	if (way->count + 2 > WORDS_MOST)
		abort();
	way->words[way->count++] = mem_printf("--%s", key);
	way->words[way->count++] = mem_printf("%s", value);
}

static void way_free(struct way *way)
{
	for (int i = 0; i < way->count; i++)
		mem_free(way->words[i]);
}

/* Compare by name: a pipeline's model may have its layers in another order. */
static int by_name(const void *a, const void *b)
{
	const struct model_param *const *one = a, *const *other = b;

	return strcmp((*one)->name, (*other)->name);
}

static void keep_weights(void *user, struct ips_trainer *trainer)
{
	struct trained *trained = user;
	const struct model *model = trained->job->plan.model;
	const float *weights = trained->job->session->replica[0].weights;
	const struct model_param **params =
		mem_calloc((size_t)model->param_count + 1, sizeof(*params));

	(void)trainer;
	trained->weights = mem_calloc(model->weights + 1, sizeof(*trained->weights));
	if (!params || !trained->weights)
		abort();
	for (int i = 0; i < model->param_count; i++)
		params[i] = &model->params[i];
	qsort(params, (size_t)model->param_count, sizeof(*params), by_name);
	for (int i = 0; i < model->param_count; i++) {
		memcpy(trained->weights + trained->count, weights + params[i]->offset,
		       params[i]->count * sizeof(*weights));
		trained->count += params[i]->count;
	}
	mem_free(params);
}

static void note_begin(void *user, struct ips_trainer *trainer)
{
	struct trained *trained = user;

	(void)trainer;
	trained->begun = true;
}

/* Leave FOLDER/command, which does the same: for whoever looks at a finding. */
static void write_command(const struct way *way)
{
	char path[FS_PATH_SIZE];
	struct str text = {0};

	if (way->recorded)
		str_add(&text, "POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\"}' ");
	str_addf(&text, "ipu-train %s/run.json", folder);
	for (int i = 0; i < way->count; i++)
		str_addf(&text, " '%s'", way->words[i]);
	str_add(&text, "\n");
	if (text.failed || !fs_path(path, "%s/command", folder) ||
	    fs_write(path, text.text, text.length, NULL) != ST_OK)
		abort();
	str_free(&text);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
	(void)info;
	(void)kind;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* A refusal, by the checks or because the program does not fit the device, leaves it undone; once
 * it has begun a failure is a finding. */
static void train(struct trained *trained, const struct way *way)
{
	struct ips_callback callback = {.size = sizeof(callback),
					.user = trained,
					.train_begin = note_begin,
					.train_end = keep_weights};
	struct train_job job;
	struct err err = {ST_OK, ""};
	char path[FS_PATH_SIZE], report[FS_PATH_SIZE], options[2 * FS_PATH_SIZE];
	uint64_t mode = float_mode_begin();
	enum status status = ST_OK;

	*trained = (struct trained){.job = &job};
	if (!fs_path(path, "%s/run.json", folder) || !fs_path(report, "%s/report", folder))
		abort();
	snprintf(options, sizeof(options),
		 "{\"autoReport.all\":\"true\",\"autoReport.directory\":\"%s\"}", report);
	if (way->recorded)
		setenv("POPLAR_ENGINE_OPTIONS", options, 1);
	else
		unsetenv("POPLAR_ENGINE_OPTIONS");
	write_command(way);
	train_job_init(&job, NULL, true);
	job.command = "fuzz";
	status = train_job_load(&job, path, way->count, (char **)(uintptr_t)way->words, &err);
	if (status == ST_OK)
		status = train_job_prepare(&job, &err);
	if (status == ST_OK)
		status = callbacks_add(&job.callbacks, &callback, NULL, NULL);
	if (status == ST_OK)
		status = train_job_run(&job, &err);
	if (status != ST_OK)
		grammar_check_refusal("a run", &err);
	if (status != ST_OK && trained->begun) {
		fprintf(stderr, "%s: fails while it trains: %s\n", path, err.text);
		abort();
	}
	trained->done = status == ST_OK;
	trained->loss = job.result.loss;
	trained->evaluate_loss = job.result.evaluate_loss;
	train_job_free(&job);
	float_mode_end(mode);
	if (way->recorded)
		remove_tree(report);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void differs(const struct way *way, const char *what, double one, double other)
{
	fprintf(stderr, "%s/run.json: other %s: %.9g without a pipeline, %.9g with", folder, what,
		one, other);
	for (int i = 0; i < way->count; i++)
		fprintf(stderr, " '%s'", way->words[i]);
	fprintf(stderr, "%s\n", way->recorded ? ", recorded" : "");
	abort();
}

/* A NaN is a NaN, whichever its bits. */
static bool same(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void compare(const struct trained *first, const struct trained *other, const struct way *way)
{
	if (first->count != other->count)
		differs(way, "number of weights", (double)first->count, (double)other->count);
	for (size_t i = 0; i < first->count; i++)
		if (!same((double)first->weights[i], (double)other->weights[i]))
			differs(way, "weights", (double)first->weights[i],
				(double)other->weights[i]);
	if (!same(first->loss, other->loss))
		differs(way, "loss", first->loss, other->loss);
	if (!same(first->evaluate_loss, other->evaluate_loss))
		differs(way, "loss of the evaluation", first->evaluate_loss, other->evaluate_loss);
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* Options that change no result. */
static void add_harmless(struct way *way, struct draw *draw)
{
	static const char *const flags[] = {
		"pipeline.offload_weight_update_variables",
		"pipeline.replicated_optimizer_state_sharding",
		"pipeline.offload_activations",
		"pipeline.offload_gradient_accumulation_buffers",
		"pipeline.replicated_weight_sharding",
		"pipeline.offload_weights",
	};

	if (draw_one_in(draw, 3)) {
		way_add(way, "ipu.allow_recompute", "true");
		way_add(way, "pipeline.recomputation_mode",
			draw_word(draw, "Auto RecomputeThenBackpropagate "
					"RecomputeAndBackpropagateInterleaved"));
	}
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (draw_one_in(draw, 8))
			way_add(way, flags[i], "true");
	if (draw_one_in(draw, 8)) {
		way_add(way, "ipu.io_tiles.num_io_tiles", "2");
		way_add(way, "ipu.io_tiles.place_ops_on_io_tiles", "true");
	}
	if (draw_one_in(draw, 8))
		way_add(way, "data.prefetch", draw_word(draw, "0 1 3"));
}

/* Whatever is looked at changes no result. */
static void add_watching(struct way *way, struct draw *draw)
{
	static const char *const tiers[] = {"health",    "counts", "stats",
					    "histogram", "last 2", "full"};
	char text[256];

	if (!draw_one_in(draw, 3))
		return;
	way->recorded = draw_one_in(draw, 2);
	snprintf(text, sizeof(text),
		 "{\"activations\": [\"none\"], \"gradients\": [\"none\"], \"capture\": "
		 "[{\"tier\": \"%s\"}]}",
		 tiers[draw_below(draw, ARRAY_LEN(tiers))]);
	way_add(way, "outfeed", text);
	way_add(way, "outfeed.optimizer_mode", draw_word(draw, "BEFORE_APPLY AFTER_COMPUTE"));
	way_add(way, "outfeed.queue_mode", draw_word(draw, "ALL LAST"));
}

/* Two stages to four, cut anywhere. */
static void add_pipeline(struct way *way, struct draw *draw, const struct grammar *grammar)
{
	const enum ipu_schedule_kind kind =
		(enum ipu_schedule_kind)draw_below(draw, IPU_SCHEDULE_KINDS);
	const int layers = grammar->model->layer_count;
	int count = 2 + (int)draw_below(draw, 3), stage = 0, ipus = 1;
	struct str stages = {0};

	if (ipu_schedule_row(kind)->sharing == IPU_SHARE_IN_TURN)
		count = 4;
	str_addf(&stages, "{\"stages\": [0");
	for (int i = 1; i < layers; i++) {
		if (count - 1 - stage > (int)draw_below(draw, (unsigned)(layers - i)))
			stage++;
		str_addf(&stages, ",%d", stage);
	}
	str_addf(&stages, "], \"schedule\": \"%s\"}", ipu_schedule_name(kind));
	while (ipus < stage + 1)
		ipus *= 2;
	if (stages.failed)
		abort();
	way_add(way, "pipeline", stages.text);
	str_free(&stages);
	str_addf(&stages, "%d", ipus * grammar->replicas);
	way_add(way, "ipu.auto_select_ipus", stages.text);
	str_free(&stages);
	add_harmless(way, draw);
}

static void check_way(const struct trained *first, struct way *way)
{
	struct trained other;

	train(&other, way);
	if (other.done)
		compare(first, &other, way);
	mem_free(other.weights);
	way_free(way);
}

static void try_ways(struct draw *draw, const struct grammar *grammar)
{
	struct way plain = {.count = 0}, threads = {.count = 0}, alone = {.count = 0};
	struct trained first;

	way_add(&plain, "host.threads", "1");
	train(&first, &plain);
	way_free(&plain);
	if (first.done) {
		way_add(&threads, "host.threads", "2");
		add_watching(&threads, draw);
		check_way(&first, &threads);
		for (int i = 0; i < 2; i++) {
			struct way pipeline = {.count = 0};

			way_add(&pipeline, "host.threads", draw_word(draw, "1 2 3"));
			add_pipeline(&pipeline, draw, grammar);
			add_watching(&pipeline, draw);
			check_way(&first, &pipeline);
		}
		if (grammar->replicas == 1 && draw_one_in(draw, 3)) {
			way_add(&alone, "ipu", "null");
			check_way(&first, &alone);
		}
	}
	mem_free(first.weights);
}

static void remove_folder(void)
{
	remove_tree(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct draw draw;
	const char *temporary = getenv("TMPDIR");
	struct grammar grammar;

	if (!folder[0]) {
		if (!fs_path(folder, "%s/fuzz_training.XXXXXX", temporary ? temporary : "/tmp") ||
		    !mkdtemp(folder))
			abort();
		atexit(remove_folder);
	}
	draw_init(&draw, data, size);
	grammar_make(&grammar, &draw, folder);
	if (!grammar.ended)
		try_ways(&draw, &grammar);
	grammar_free(&grammar);
	return 0;
}
