/*
 * Optimizers: updates against formulas worked in double (script/make-optimizer-golden.py), what is
 * updated and what is not, and reading what Keras writes.
 */
#include "model/learn/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/learn/optimizer_run.h"

static enum status read_optimizer(struct optimizer *out, const char *text, struct err *err)
{
	enum status status;
	struct json_at root;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "o.json", NULL), ST_OK);
	root = json_root("o.json", json);
	status = optimizer_get(out, &root, err);
	cJSON_Delete(json);
	return status;
}

static void test_sgd_takes_the_rate_times_the_gradient_away(void **state)
{
	struct optimizer_range range = {0, 4, .param = 0};
	float weights[] = {1.0f, 2.0f, 3.0f, 4.0f};
	const float gradients[] = {1.0f, -2.0f, NAN, INFINITY};
	struct optimizer optimizer;

	(void)state;
	assert_int_equal(
		read_optimizer(&optimizer,
			       "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5}}",
			       NULL),
		ST_OK);
	assert_int_equal(optimizer_slots(&optimizer), 0);
	optimizer_run(&optimizer, NULL, &range, 1, weights, gradients, NULL, 0, 0, 0.0);
	assert_true(weights[0] == 0.5f && weights[1] == 3.0f);
	assert_true(isnan(weights[2]) && weights[3] == -INFINITY);
}

#define OBJECT(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"

/* Cases of the golden file. */
static const struct {
	const char *name, *text;
	const char *slots; /* their names */
} cases[] = {
	{"sgd", "\"SGD\"", ""},
	{"sgd_decay", OBJECT("SGD", "\"learning_rate\": 0.1, \"decay\": 0.05"), ""},
	{"sgd_momentum", OBJECT("SGD", "\"momentum\": 0.9"), "momentum "},
	{"sgd_nesterov", OBJECT("SGD", "\"momentum\": 0.9, \"nesterov\": true"), "momentum "},
	{"rmsprop", "\"rmsprop\"", "rms "},
	{"rmsprop_epsilon", OBJECT("RMSprop", "\"rho\": 0.8, \"epsilon\": 0.01"), "rms "},
	{"rmsprop_centered", OBJECT("RMSprop", "\"centered\": true"), "rms mg "},
	{"rmsprop_momentum", OBJECT("RMSprop", "\"momentum\": 0.5, \"epsilon\": 0.01"),
	 "rms momentum "},
	{"rmsprop_both",
	 OBJECT("RMSprop", "\"momentum\": 0.5, \"centered\": true, \"epsilon\": 0.01"),
	 "rms momentum mg "},
	{"adam", "\"adam\"", "m v "},
	{"adam_betas",
	 OBJECT("Adam", "\"learning_rate\": 0.01, \"beta_1\": 0.8, \"beta_2\": 0.99, \"epsilon\": "
			"0.001"),
	 "m v "},
	{"adam_amsgrad", OBJECT("Adam", "\"amsgrad\": true, \"beta_2\": 0.9"), "m v vhat "},
	{"adam_schedule",
	 OBJECT("Adam", "\"learning_rate\": " OBJECT("ExponentialDecay",
						     "\"initial_learning_rate\": 0.01, "
						     "\"decay_steps\": 10, \"decay_rate\": 0.5")),
	 "m v "},
	{"adamw", OBJECT("AdamW", "\"learning_rate\": 0.01, \"weight_decay\": 0.1"), "m v "},
	{"adamw_default", "\"AdamW\"", "m v "},
	{"sgd_decayed", OBJECT("SGD", "\"momentum\": 0.9, \"weight_decay\": 0.5"), "momentum "},
	{"adagrad", OBJECT("Adagrad", "\"learning_rate\": 0.05"), "accumulator "},
	{"nadam", OBJECT("Nadam", "\"learning_rate\": 0.01"), "m v "},
	{"lion", OBJECT("Lion", "\"weight_decay\": 0.01"), "m "},
	{"lamb", OBJECT("Lamb", "\"learning_rate\": 0.01"), "m v "},
	{"lamb_rate", OBJECT("LAMB", "\"learning_rate\": 0.01, \"weight_decay_rate\": 0.1"),
	 "m v "},
	{"sgd_clipvalue", OBJECT("SGD", "\"clipvalue\": 0.05"), ""},
	{"adam_clipnorm", OBJECT("Adam", "\"clipnorm\": 0.5"), "m v "},
	{"sgd_global", OBJECT("SGD", "\"learning_rate\": 0.1, \"global_clipnorm\": 0.5"), ""},
};

enum {
	WEIGHTS = 8,
	STRIDE = 16,
	UPDATES = 50
};

/* An update with the norm that global_clipnorm asks for. */
static void run_clipped(const struct optimizer *optimizer, struct pool *pool,
			struct optimizer_range *ranges, size_t count, float *weights,
			const float *gradients, float *slots, size_t stride, int64_t update)
{
	double squares[8] = {0}, sum = 0.0;

	optimizer_squares(pool, ranges, count, gradients, squares);
	for (size_t i = 0; i < ARRAY_LEN(squares); i++)
		sum += squares[i];
	if (update == 0 && slots)
		optimizer_start(optimizer, slots, stride);
	optimizer_run(optimizer, pool, ranges, count, weights, gradients, slots, stride, update,
		      sqrt(sum));
}

static void run_case(float after[UPDATES][WEIGHTS], const char *text)
{
	struct optimizer_range range = {0, WEIGHTS, .param = 0};
	float weights[WEIGHTS], gradients[WEIGHTS], slots[3 * STRIDE] = {0};
	struct optimizer optimizer;
	uint32_t lcg = 2;

	assert_int_equal(read_optimizer(&optimizer, text, NULL), ST_OK);
	math_fill(weights, WEIGHTS, 1, -1.0f, 1.0f);
	for (int update = 0; update < UPDATES; update++) {
		for (int i = 0; i < WEIGHTS; i++) {
			double unit = 2.0 * (double)math_lcg_unit(&lcg) - 1.0;

			gradients[i] = (float)(unit * pow(10.0, -(i % 4)));
		}
		run_clipped(&optimizer, NULL, &range, 1, weights, gradients, slots, STRIDE, update);
		memcpy(after[update], weights, sizeof(weights));
	}
}

static int compare_line(const char *line, const char *name, float after[UPDATES][WEIGHTS])
{
	char word[32];
	int update, used;

	if (sscanf(line, "%31s %d%n", word, &update, &used) < 2 || strcmp(word, name) != 0)
		return 0;
	for (int i = 0; i < WEIGHTS; i++) {
		int more;
		double value;

		assert_int_equal(sscanf(line + used, "%lf%n", &value, &more), 1);
		used += more;
		/* 50 roundings of a weight below 1 */
		if (fabs((double)after[update - 1][i] - value) > 3e-6)
			fail_msg("%s: weight %d after %d updates is %.9g, not %.9g", name, i,
				 update, (double)after[update - 1][i], value);
	}
	return 1;
}

static void test_updates_are_those_of_tensorflow(void **state)
{
	char path[SUPPORT_PATH_SIZE], *text;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/optimizers.txt", support_source_dir());
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		float after[UPDATES][WEIGHTS];
		char *rest = NULL;
		int lines = 0;

		run_case(after, cases[i].text);
		text = support_read_file(path, NULL);
		for (char *line = strtok_r(text, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			lines += compare_line(line, cases[i].name, after);
		assert_int_equal(lines, 3);
		free(text);
	}
}

static void test_slots_are_named_as_in_keras(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct optimizer optimizer;
		char names[64] = "";

		assert_int_equal(read_optimizer(&optimizer, cases[i].text, NULL), ST_OK);
		for (int s = 0; s < optimizer_slots(&optimizer); s++) {
			strcat(names, optimizer_slot_name(&optimizer, s));
			strcat(names, " ");
		}
		assert_string_equal(names, cases[i].slots);
		assert_true(optimizer_elements(&optimizer, 7).count == 7);
	}
}

static void test_adam_first_steps_are_of_the_learning_rate(void **state)
{
	/* m / sqrt(v) is the gradient's sign, whatever its size */
	struct optimizer_range range = {0, 3, .param = 0};
	float weights[3] = {0}, slots[6] = {0};
	const float gradients[] = {1e-3f, -1.0f, 1e4f};
	struct optimizer optimizer;

	(void)state;
	assert_int_equal(read_optimizer(&optimizer, "\"Adam\"", NULL), ST_OK);
	optimizer_run(&optimizer, NULL, &range, 1, weights, gradients, slots, 3, 0, 0.0);
	/* epsilon is 1e-7 beside sqrt(0.001) 1e-3 */
	assert_close((double)weights[0], -0.001, 4e-3);
	assert_close((double)weights[1], 0.001, 1e-5);
	assert_close((double)weights[2], -0.001, 1e-6);
}

/* Its momentum no longer changes after some 900 updates, but the product of all goes on. */
static void test_nadam_weighs_by_all_momenta_so_far(void **state)
{
	static const int64_t updates[] = {0, 1, 500, 1021, 1022, 1023, 1024, 1025, 5000};
	const double beta_1 = (double)0.999f, beta_2 = (double)0.9f, m = 0.25, v = 0.5, g = -0.75;
	struct optimizer_range range = {0, 1, .param = 0};
	struct optimizer optimizer;

	(void)state;
	assert_int_equal(read_optimizer(&optimizer,
					OBJECT("Nadam", "\"learning_rate\": 1, \"beta_1\": 0.999, "
							"\"beta_2\": 0.9"),
					NULL),
			 ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(updates); i++) {
		const double t = (double)updates[i] + 1.0;
		const double now = beta_1 * (1.0 - 0.5 * pow(0.96, t));
		const double next = beta_1 * (1.0 - 0.5 * pow(0.96, t + 1.0));
		const double mean = beta_1 * m + (1.0 - beta_1) * g;
		const double square =
			(beta_2 * v + (1.0 - beta_2) * g * g) / (1.0 - pow(beta_2, t));
		float weight = 0.0f, slots[] = {(float)m, (float)v};
		const float gradient = (float)g;
		double product = 1.0;

		for (double k = 1.0; k <= t; k++)
			product *= beta_1 * (1.0 - 0.5 * pow(0.96, k));
		optimizer_run(&optimizer, NULL, &range, 1, &weight, &gradient, slots, 1, updates[i],
			      0.0);
		assert_close((double)weight,
			     -(next * mean / (1.0 - product * next) +
			       (1.0 - now) * g / (1.0 - product)) /
				     sqrt(square),
			     1e-5);
	}
}

static void test_bad_numbers_go_through(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct optimizer_range range = {0, 3, .param = 0};
		float weights[3] = {1.0f, 1.0f, 1.0f}, slots[9] = {0};
		const float gradients[] = {NAN, 1.0f, INFINITY};
		struct optimizer optimizer;

		assert_int_equal(read_optimizer(&optimizer, cases[i].text, NULL), ST_OK);
		run_clipped(&optimizer, NULL, &range, 1, weights, gradients, slots, 3, 0);
		assert_true(isnan(weights[0]));
		/* A norm that is no number spreads. */
		assert_true(isfinite(weights[1]) == !optimizer_needs_norms(&optimizer));
		assert_true(!isfinite(weights[2]) || optimizer.kind == OPTIMIZER_LION ||
			    optimizer.clipvalue > 0.0);
	}
}

/* ---- ranges ---------------------------------------------------------------------------------- */

#define DENSE(units, trainable)                                                                    \
	"{\"class_name\": \"Dense\", \"config\": {\"units\": " units ", \"trainable\": " trainable \
	"}}"

/* 5 -> 700 -> 200 (frozen) -> 300 -> 3: kernels of 3,500, 140,000, 60,000 and 900 weights */
static const char layers[] = "[" DENSE("700", "true") "," DENSE("200", "false") "," DENSE(
	"300", "true") "," DENSE("3", "true") "]";

static const struct optimizer sgd = {.kind = OPTIMIZER_SGD};

static void check_cover(const struct model *model, const struct optimizer_range *ranges,
			size_t count, int first, int layers_here)
{
	unsigned char *seen = mem_calloc(model->weights, 1);

	assert_non_null(seen);
	for (size_t r = 0; r < count; r++) {
		assert_true(ranges[r].count > 0 && ranges[r].count <= OPTIMIZER_PIECE);
		assert_true(ranges[r].first + ranges[r].count <= model->weights);
		for (size_t i = 0; i < ranges[r].count; i++)
			seen[ranges[r].first + i]++;
	}
	for (int p = 0; p < model->param_count; p++) {
		const struct model_param *param = &model->params[p];
		bool here = param->layer >= first && param->layer < first + layers_here;

		for (size_t i = 0; i < param->count; i++) {
			assert_int_equal(seen[param->offset + i], here && param->trainable);
			seen[param->offset + i] = 0;
		}
	}
	for (size_t i = 0; i < model->weights; i++)
		assert_int_equal(seen[i], 0); /* the gaps */
	mem_free(seen);
}

static void test_ranges_cover_what_learns_and_nothing_else(void **state)
{
	struct optimizer_range *ranges;
	struct math_model m;
	size_t count;

	(void)state;
	math_model_open(&m, layers, 1, (int64_t[]){5});
	assert_false(m.model->params[2].trainable);
	for (int first = 0; first < 4; first++) {
		for (int n = 1; first + n <= 4; n++) {
			assert_int_equal(optimizer_ranges_new(&ranges, &count, &sgd, m.model, first,
							      n, NULL),
					 ST_OK);
			check_cover(m.model, ranges, count, first, n);
			assert_true((count == 0) == (!ranges));
			mem_free(ranges);
		}
	}
	math_model_close(&m);
	math_model_open(&m, "[" DENSE("400", "true") "]", 1, (int64_t[]){400});
	assert_int_equal(optimizer_ranges_new(&ranges, &count, &sgd, m.model, 0, 1, NULL), ST_OK);
	check_cover(m.model, ranges, count, 0, 1);
	assert_int_equal(count, 3); /* 160,400 weights in pieces alike */
	assert_true(ranges[2].count > 50000);
	mem_free(ranges);
	math_model_close(&m);
}

static void test_ranges_without_memory_are_undone(void **state)
{
	struct math_model m;

	(void)state;
	math_model_open(&m, layers, 1, (int64_t[]){5});
	for (long n = 0;; n++) {
		struct optimizer_range *ranges;
		size_t count;
		bool failed;
		enum status status;

		support_fail_alloc(n);
		status = optimizer_ranges_new(&ranges, &count, &sgd, m.model, 0, 4, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == (!ranges) && failed == (count == 0));
		mem_free(ranges);
		if (!failed)
			break;
	}
	math_model_close(&m);
}

/* Three updates of the model by the case. */
static void run_model(const struct math_model *m, const char *text, struct pool *pool, float *block)
{
	const size_t weights = m->model->weights;
	float *gradients = block + weights, *slots = block + 2 * weights;
	struct optimizer optimizer;
	struct optimizer_range *ranges;
	size_t count;

	assert_int_equal(read_optimizer(&optimizer, text, NULL), ST_OK);
	assert_int_equal(optimizer_ranges_new(&ranges, &count, &optimizer, m->model, 0, 4, NULL),
			 ST_OK);
	math_fill(block, weights, 1, -1.0f, 1.0f);
	math_fill(gradients, weights, 2, -1.0f, 1.0f);
	memset(slots, 0, 3 * weights * sizeof(float));
	for (int update = 0; update < 3; update++)
		run_clipped(&optimizer, pool, ranges, count, block, gradients, slots, weights,
			    update);
	run_clipped(&optimizer, pool, ranges, 0, block, gradients, slots, weights, 3);
	mem_free(ranges);
}

static void test_updates_are_the_same_bytes_for_any_pool_and_leave_the_frozen(void **state)
{
	float *first, *block;
	struct math_model m;
	size_t floats;

	(void)state;
	math_model_open(&m, layers, 1, (int64_t[]){5});
	floats = 5 * m.model->weights;
	first = mem_aligned(2 * floats, sizeof(float));
	assert_non_null(first);
	block = first + floats;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct model_param *frozen = &m.model->params[2];
		uint32_t lcg = 1;

		run_model(&m, cases[i].text, NULL, first);
		for (unsigned helpers = 0; helpers < 4; helpers += 1 + helpers) {
			struct pool *pool;

			assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
			run_model(&m, cases[i].text, pool, block);
			assert_memory_equal(first, block, floats * sizeof(float));
			pool_free(pool);
		}
		for (size_t w = 0; w < frozen->offset + frozen->count; w++) {
			float before = -1.0f + 2.0f * math_lcg_unit(&lcg);

			if (w >= frozen->offset)
				assert_true(first[w] == before);
		}
	}
	mem_free(first);
	math_model_close(&m);
}

/* SGD with a rate of 1 moves the weights by the clipped gradient: a parameter of three pieces by a
 * norm of 2, and one of a norm below 2 by its own. */
static void test_a_norm_is_that_of_the_whole_parameter(void **state)
{
	const char *text = OBJECT("SGD", "\"learning_rate\": 1, \"clipnorm\": 2");
	struct optimizer optimizer;
	struct optimizer_range *ranges;
	struct math_model m;
	float *block;
	size_t count;

	(void)state;
	math_model_open(&m, "[" DENSE("400", "true") "]", 1, (int64_t[]){400});
	assert_int_equal(read_optimizer(&optimizer, text, NULL), ST_OK);
	assert_int_equal(optimizer_ranges_new(&ranges, &count, &optimizer, m.model, 0, 1, NULL),
			 ST_OK);
	assert_int_equal(count, 4); /* three of the kernel, one of the bias */
	block = mem_aligned(2 * m.model->weights, sizeof(float));
	assert_non_null(block);
	math_fill(block + m.model->weights, m.model->weights, 2, -0.05f, 0.05f);
	run_clipped(&optimizer, NULL, ranges, count, block, block + m.model->weights, NULL, 0, 0);
	for (int p = 0; p < 2; p++) {
		const struct model_param *param = &m.model->params[p];
		double moved = 0.0, given = 0.0;

		for (size_t i = 0; i < param->count; i++) {
			double g = (double)block[m.model->weights + param->offset + i];

			moved += pow((double)block[param->offset + i], 2.0);
			given += g * g;
		}
		assert_close(sqrt(moved), fmin(sqrt(given), 2.0), 1e-5);
		assert_true((p == 0) == (sqrt(given) > 2.0));
	}
	mem_free(block);
	mem_free(ranges);
	math_model_close(&m);
}

#define SGD(config)    "{\"class_name\": \"SGD\", \"config\": {" config "}}"
#define SCALED(config) "{\"class_name\": \"LossScaleOptimizer\", \"config\": {" config "}}"

static void test_defaults_and_spellings(void **state)
{
	static const struct {
		const char *text;
		double rate;
	} rows[] = {
		{"\"sgd\"", 0.01},
		{"\"SGD\"", 0.01},
		{"{\"class_name\": \"SGD\"}", 0.01},
		{"{\"class_name\": \"SGD\", \"config\": {\"name\": \"SGD\", \"learning_rate\": "
		 "0.1, "
		 "\"decay\": 0.0, \"momentum\": 0.0, \"nesterov\": false}}",
		 0.1},
		{"{\"class_name\": \"sgd\", \"config\": {\"lr\": 0.2}}", 0.2},
		{"\"Adam\"", 0.001},
		{"\"rmsprop\"", 0.001},
		{OBJECT("Adam", "\"name\": \"Adam\", \"learning_rate\": 0.25, \"decay\": 0.0, "
				"\"beta_1\": 0.9, \"beta_2\": 0.999, \"epsilon\": null, "
				"\"amsgrad\": false"),
		 0.25},
		{OBJECT("RMSprop", "\"rho\": 0.9, \"momentum\": 0.0, \"epsilon\": 0, "
				   "\"centered\": false, \"jit_compile\": true, "
				   "\"is_legacy_optimizer\": false, \"weight_decay\": 0"),
		 0.001},
		{"{\"module\": \"keras.optimizers\", \"class_name\": \"SGD\", \"config\": "
		 "{\"name\": "
		 "\"SGD\", \"learning_rate\": 0.3, \"weight_decay\": null, \"clipnorm\": null, "
		 "\"global_clipnorm\": null, \"clipvalue\": null, \"use_ema\": false, "
		 "\"ema_momentum\": 0.99, \"ema_overwrite_frequency\": null, "
		 "\"loss_scale_factor\": null, \"gradient_accumulation_steps\": null, "
		 "\"momentum\": 0.0, \"nesterov\": false}, \"registered_name\": null}",
		 0.3},
		{SCALED("\"inner_optimizer\": \"Adam\""), 0.001},
		{SCALED("\"inner_optimizer\": {\"class_name\": \"SGD\", \"config\": "
			"{\"learning_rate\": 0.4}}, \"name\": \"x\", \"clipnorm\": null, "
			"\"initial_scale\": 1024.0, \"dynamic_growth_steps\": 5"),
		 0.4},
	};
	struct optimizer optimizer;

	(void)state;
	assert_int_equal(optimizer_get(&optimizer, NULL, NULL), ST_OK);
	assert_string_equal(optimizer_name(&optimizer), "SGD");
	assert_close(optimizer_rate(&optimizer, 0), 0.01, 1e-12);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err;

		if (read_optimizer(&optimizer, rows[i].text, &err) != ST_OK)
			fail_msg("%s", err.text);
		assert_close(optimizer_rate(&optimizer, 0), rows[i].rate, 1e-12);
	}
}

static void test_bad_optimizers_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text;
		enum status status;
		const char *says;
	} rows[] = {
		{"\"SDG\"", ST_INVALID, "unknown optimizer \"SDG\" (did you mean \"SGD\"?)"},
		{"\"Adadelta\"", ST_INVALID, "unknown optimizer \"Adadelta\""},
		{"[]", ST_INVALID, "must be a name or an object"},
		{SGD("\"momentum\": 1.5"), ST_INVALID,
		 "config.momentum: must be at least 0 and at most 1, not 1.5"},
		{SGD("\"nesterov\": 1"), ST_INVALID, "config.nesterov: must be true or false"},
		{OBJECT("Adam", "\"beta_1\": 1"), ST_INVALID,
		 "config.beta_1: must be at least 0 and below 1, not 1"},
		{OBJECT("RMSprop", "\"rho\": -0.1"), ST_INVALID, "config.rho: must be at least 0"},
		{OBJECT("RMSprop", "\"beta_1\": 0.1"), ST_INVALID, "unknown option \"beta_1\""},
		{OBJECT("Adam", "\"use_ema\": true"), ST_UNSUPPORTED,
		 "config.use_ema: not supported"},
		{SGD("\"decay\": -1"), ST_INVALID, "config.decay: must be at least 0"},
		{SGD("\"clipvalue\": -1.0"), ST_INVALID, "config.clipvalue: must be at least 0"},
		{SGD("\"clipnorm\": 1.0, \"clipvalue\": 2.0"), ST_INVALID,
		 "config.clipnorm: clipvalue clips already: give one of the two"},
		{OBJECT("AdamW", "\"weight_decay\": -0.1"), ST_INVALID,
		 "config.weight_decay: must be at least 0"},
		{SGD("\"learning_rate\": -1"), ST_INVALID,
		 "config.learning_rate: must be at least 0"},
		{SGD("\"learning_rate\": 1e39"), ST_INVALID, "config.learning_rate: must be"},
		{SGD("\"learning_rate\": \"x\""), ST_INVALID,
		 "config.learning_rate: must be a number"},
		{SGD("\"learning_rate\": {\"class_name\": \"ExponentialDecay\"}"), ST_INVALID,
		 "config.learning_rate: \"config\" is missing"},
		{SGD("\"learning_rate\": 0.1, \"lr\": 0.1"), ST_INVALID, "config.lr: "},
		{SGD("\"loss_scale_factor\": 0"), ST_INVALID,
		 "config.loss_scale_factor: a loss times 0 has no gradient"},
		{SGD("\"loss_scale_factor\": 1e38"), ST_INVALID,
		 "config.loss_scale_factor: must be at least 0 and at most"},
		{"\"LossScaleOptimizer\"", ST_INVALID, "lacks inner_optimizer"},
		{SCALED(""), ST_INVALID, "config: lacks inner_optimizer"},
		{SCALED("\"inner_optimizer\": \"SDG\""), ST_INVALID,
		 "inner_optimizer: unknown optimizer \"SDG\""},
		{SCALED("\"inner_optimizer\": \"SGD\", \"initial_scale\": 0"), ST_INVALID,
		 "config.initial_scale: a loss times 0 has no gradient"},
		{SCALED("\"inner_optimizer\": \"SGD\", \"growth\": 3"), ST_INVALID,
		 "unknown option \"growth\""},
		{SCALED("\"inner_optimizer\": \"LossScaleOptimizer\""), ST_INVALID,
		 "config.inner_optimizer: scales the loss, too"},
		{SCALED("\"inner_optimizer\": " SGD("\"loss_scale_factor\": 2")), ST_INVALID,
		 "config.inner_optimizer: scales the loss, too"},
		{SGD("\"learning_rat\": 0.1"), ST_INVALID, "did you mean \"learning_rate\"?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct optimizer optimizer;
		struct err err = {0};

		assert_int_equal(read_optimizer(&optimizer, rows[i].text, &err), rows[i].status);
		assert_contains(err.text, rows[i].says);
	}
}

static void test_a_loss_is_scaled(void **state)
{
	struct optimizer optimizer;

	(void)state;
	assert_int_equal(optimizer_get(&optimizer, NULL, NULL), ST_OK);
	assert_false(optimizer_scales_loss(&optimizer));
	assert_int_equal(read_optimizer(&optimizer, SGD("\"loss_scale_factor\": 8"), NULL), ST_OK);
	assert_true(optimizer_scales_loss(&optimizer));
	assert_false(optimizer_needs_whole_norm(&optimizer));
	assert_int_equal(read_optimizer(&optimizer, SCALED("\"inner_optimizer\": \"Adam\""), NULL),
			 ST_OK);
	assert_string_equal(optimizer_name(&optimizer), "Adam");
	assert_true(optimizer.loss_scale_dynamic && optimizer_needs_whole_norm(&optimizer));
	assert_close(optimizer.loss_scale, 32768.0, 0.0);
	assert_close(optimizer.loss_scale_growth, 2000.0, 0.0);
	assert_int_equal(read_optimizer(&optimizer,
					SCALED("\"inner_optimizer\": \"Adam\", "
					       "\"initial_scale\": 4, \"dynamic\": false"),
					NULL),
			 ST_OK);
	assert_true(!optimizer.loss_scale_dynamic && optimizer_scales_loss(&optimizer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sgd_takes_the_rate_times_the_gradient_away),
		cmocka_unit_test(test_updates_are_those_of_tensorflow),
		cmocka_unit_test(test_slots_are_named_as_in_keras),
		cmocka_unit_test(test_adam_first_steps_are_of_the_learning_rate),
		cmocka_unit_test(test_nadam_weighs_by_all_momenta_so_far),
		cmocka_unit_test(test_bad_numbers_go_through),
		cmocka_unit_test(test_ranges_cover_what_learns_and_nothing_else),
		cmocka_unit_test(test_ranges_without_memory_are_undone),
		cmocka_unit_test(test_updates_are_the_same_bytes_for_any_pool_and_leave_the_frozen),
		cmocka_unit_test(test_a_norm_is_that_of_the_whole_parameter),
		cmocka_unit_test(test_defaults_and_spellings),
		cmocka_unit_test(test_bad_optimizers_are_refused_with_their_place),
		cmocka_unit_test(test_a_loss_is_scaled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
