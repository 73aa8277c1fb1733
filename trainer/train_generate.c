/*
 * Text from a trained model, token by token.
 *
 * Threading: the main thread, while the workers are idle. Ownership: a generator lives for one
 * text.
 */
#include "trainer/train_fit.h"

#include <math.h>
#include <string.h>

#include "common/cli.h"
#include "common/elementary.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/str.h"
#include "trainer/models/stage.h"

struct generator {
	const struct dataset *set;
	struct stage *stage; /* the whole model */
	int64_t length;      /* of a window, in tokens */
	int64_t width;       /* outputs for each token */
	bool logits;         /* outputs are logits, not probabilities */
	bool by_steps;       /* reuse the results of earlier tokens: see stage_forward_step() */
	int64_t known;       /* tokens from the window's start that the stage has processed */
	double temperature;
	struct rng rng;
	int32_t *tokens; /* the prompt's, then the generated ones */
	int64_t count;
	double *weights; /* relative probability of each token */
};

/* Return the token with the longest name that @text begins with; -1: none. */
static int find_token(const struct dataset *set, const char *text)
{
	size_t longest = 0;
	int found = -1;

	for (int i = 0; i < set->classes; i++) {
		const size_t length = strlen(set->names[i]);

		if (length > longest && strncmp(text, set->names[i], length) == 0) {
			longest = length;
			found = i;
		}
	}
	return found;
}

enum status train_generate_check(const struct run_file *run, const struct model *model,
				 const struct dataset *set, struct err *err)
{
	const struct model_shape *output = &model->layers[model->layer_count - 1].output;
	const char *text = run->generate.prompt;

	if (!run->generate.wanted)
		return ST_OK;
	if (!set->names || set->labels)
		return err_set(
			err, ST_INVALID,
			"generate: the data set is no text file to go on from: set data.name "
			"to text and data.path to the text");
	if (model->input.ndim != 1 || output->ndim != 2 || output->dim[0] != model->input.dim[0] ||
	    output->dim[1] < set->classes)
		return err_set(err, ST_INVALID,
			       "generate: the model must give each of %d tokens for each place of "
			       "its input (steps, %d)",
			       set->classes, set->classes);
	if (!text || !*text)
		return err_set(err, ST_INVALID,
			       "generate.prompt: is missing: the words that the text begins with");
	while (*text) {
		const int token = find_token(set, text);
		const size_t length = str_utf8(text);

		if (token < 0)
			return err_set(err, ST_INVALID,
				       "generate.prompt: the text that was learnt has no \"%.*s\"",
				       length ? (int)length : 1, text);
		text += strlen(set->names[token]);
	}
	return ST_OK;
}

/* Compute the weights of tokens relative to the likeliest, whose weight is 1. */
static void weigh(struct generator *generator, const float *outputs)
{
	const int classes = generator->set->classes;
	const double power = generator->temperature > 0.0 ? 1.0 / generator->temperature : 1.0;
	float most = outputs[0];

	for (int i = 1; i < classes; i++)
		most = outputs[i] > most ? outputs[i] : most;
	for (int i = 0; i < classes; i++) {
		const double off = (double)outputs[i] - (double)most;

		generator->weights[i] =
			generator->logits
				? elementary_pow(M_E, off * power)
				: elementary_pow((double)outputs[i] / (double)most, power);
	}
}

/* Choose the next token; -1: the outputs are not finite. */
static int draw(struct generator *generator, const float *outputs)
{
	const int classes = generator->set->classes;
	int likeliest = 0;
	double sum = 0.0, at;

	for (int i = 0; i < classes; i++) {
		if (!isfinite(outputs[i]))
			return -1;
		if (outputs[i] > outputs[likeliest])
			likeliest = i;
	}
	if (generator->temperature == 0.0)
		return likeliest;
	weigh(generator, outputs);
	for (int i = 0; i < classes; i++)
		sum += generator->weights[i];
	at = (double)rng_uniform(&generator->rng) * sum;
	for (int i = 0; i < classes; i++) {
		at -= generator->weights[i];
		if (at < 0.0)
			return i;
	}
	return likeliest;
}

/* Return the outputs for the last token; in a causal model the zeros behind it have no influence.
 * While the window fills, a new token takes one step. Once it is full it slides, which changes all
 * positions. */
static const float *run_model(struct generator *generator, float *weights)
{
	const int64_t length = generator->length;
	const int64_t used = generator->count < length ? generator->count : length;
	const int32_t *window = generator->tokens + generator->count - used;
	float *input = stage_input(generator->stage, 0);

	for (int64_t i = 0; i < length; i++)
		input[i] = i < used ? (float)window[i] : 0.0f;
	if (generator->by_steps && generator->known == used - 1)
		stage_forward_step(generator->stage, 0, used - 1, weights);
	else
		stage_forward(generator->stage, 0, 1, 0, weights, NULL, NULL);
	generator->known = used;
	return stage_output(generator->stage, 0) + (used - 1) * generator->width;
}

static enum status generator_new(struct generator *out, const struct train_session *session,
				 struct err *err)
{
	const struct run_file *run = session->run;
	const struct model *model = session->model;
	const int last = model_final_activation(model);
	const bool by_steps = stage_by_steps(model);
	const struct stage_params params = {
		.model = model,
		.layer_count = model->layer_count,
		.batch = 1,
		.slots = 1,
		.fixed_input = true,
		.unshared = by_steps,
		.seed = run->fit.seed,
		.pool = session->pool,
		.openblas = run->host.products == RUN_PRODUCTS_OPENBLAS,
		.halves = session->replica[0].halves,
	};
	const char *text = run->generate.prompt;

	*out = (struct generator){
		.set = session->train_set,
		.length = model->input.dim[0],
		.width = model->layers[model->layer_count - 1].output.dim[1],
		.by_steps = by_steps,
		.known = -1,
		.logits = last < 0 || model->layers[last].activation != MODEL_SOFTMAX,
		.temperature = run->generate.temperature,
	};
	out->tokens = mem_calloc(strlen(text) + (size_t)run->generate.length, sizeof(*out->tokens));
	out->weights = mem_calloc((size_t)out->set->classes, sizeof(*out->weights));
	if (!out->tokens || !out->weights)
		return err_nomem(err);
	while (*text) {
		const int token = find_token(out->set, text);

		out->tokens[out->count++] = token;
		text += strlen(out->set->names[token]);
	}
	rng_init(&out->rng, run->fit.seed, rng_stream("generate"), 0, 0);
	return stage_new(&out->stage, &params, err);
}

enum status train_generate(FILE *out, const struct train_session *session, struct err *err)
{
	struct generator generator;
	enum status status = generator_new(&generator, session, err);

	if (status == ST_OK)
		cli_print_text(out, session->run->generate.prompt);
	for (int64_t i = 0; status == ST_OK && i < session->run->generate.length; i++) {
		const int token =
			draw(&generator, run_model(&generator, session->replica[0].weights));

		if (token < 0) {
			status = err_set(err, ST_FAILED,
					 "generate: the model's outputs are not finite");
			break;
		}
		generator.tokens[generator.count++] = token;
		cli_print_text(out, generator.set->names[token]);
	}
	if (generator.count > 0)
		fputc('\n', out);
	stage_free(generator.stage);
	mem_free(generator.tokens);
	mem_free(generator.weights);
	return status;
}
