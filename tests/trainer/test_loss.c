/*
 * Losses: Keras's formulas by hand, gradients against central differences, reading.
 */
#include "model/learn/loss.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/learn/measure_run.h"
#include "trainer/models/stage.h"

static enum status read_loss(struct loss *out, const char *text, struct err *err)
{
	enum status status;
	struct json_at root;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "l.json", NULL), ST_OK);
	root = json_root("l.json", json);
	status = loss_get(out, &root, err);
	cJSON_Delete(json);
	return status;
}

/* Of class numbers. */
static double run(const struct loss *loss, const float *outputs, const float *logits,
		  const int32_t *labels, int64_t batch, int64_t width, float *gradient)
{
	const struct targets targets = {.classes = labels};

	return loss_run(loss, outputs, logits, &targets, batch, width, gradient);
}

static struct loss sparse(bool from_logits)
{
	struct loss loss;

	assert_int_equal(read_loss(&loss, "\"sparse_categorical_crossentropy\"", NULL), ST_OK);
	loss.from_logits = from_logits;
	return loss;
}

static void test_probabilities_by_hand(void **state)
{
	/* -log 0.5 and -log 0.25, their mean 1.5 log 2; the second's greatest is not its label. */
	const float outputs[] = {0.5f, 0.25f, 0.25f, 0.125f, 0.25f, 0.625f};
	const int32_t labels[] = {0, 1};
	struct loss loss = sparse(false);
	double result;
	float gradient[6];

	(void)state;
	result = run(&loss, outputs, NULL, labels, 2, 3, gradient);
	assert_close(result, 1.5 * log(2.0), 1e-6);
	/* (1 - 1/p) / 2 at the label, 1/2 beside it, since they sum to 1 */
	assert_close((double)gradient[0], -0.5, 1e-6);
	assert_close((double)gradient[1], 0.5, 1e-6);
	assert_close((double)gradient[4], -1.5, 1e-6);
	assert_close((double)gradient[5], 0.5, 1e-6);
}

static void test_probabilities_are_clipped_and_normalised(void **state)
{
	const float outputs[] = {1.0f, 0.0f, 2.0f, 2.0f};
	const int32_t labels[] = {1, 0};
	struct loss loss = sparse(false);
	double result;
	float gradient[4];

	(void)state;
	result = run(&loss, outputs, NULL, labels, 1, 2, gradient);
	/* -log(1e-7 / (1 - 1.19e-7 + 1e-7)): float32 has no 1 - 1e-7 */
	assert_close(result, 16.118096, 1e-6);
	assert_true(gradient[0] == 0.0f || fabsf(gradient[0]) < 2.0f);
	assert_true(gradient[1] == 0.0f);
	/* both clipped to the same: a half each, and no gradient */
	result = run(&loss, outputs + 2, NULL, labels + 1, 1, 2, gradient);
	assert_close(result, log(2.0), 1e-6);
	assert_true(gradient[0] == 0.0f && gradient[1] == 0.0f);
}

static void test_logits_by_hand(void **state)
{
	/* the softmax of log 1, log 2, log 5 is 1/8, 2/8, 5/8 */
	const float logits[] = {logf(1.0f), logf(2.0f), logf(5.0f)};
	const float outputs[] = {0.125f, 0.25f, 0.625f};
	const int32_t label = 1;
	double result;
	float gradient[3];

	(void)state;
	for (int from = 0; from < 2; from++) {
		struct loss loss = sparse(from);

		/* given beside the outputs, or the outputs themselves */
		result = run(&loss, from ? logits : outputs, from ? NULL : logits, &label, 1, 3,
			     gradient);
		assert_close(result, log(4.0), 1e-6);
		assert_close((double)gradient[0], 0.125, 1e-6);
		assert_close((double)gradient[1], -0.75, 1e-6);
		assert_close((double)gradient[2], 0.625, 1e-6);
	}
}

static void test_logits_far_apart_stay_finite(void **state)
{
	const float logits[] = {10000.0f, -10000.0f};
	const int32_t labels[] = {1};
	struct loss loss = sparse(true);
	double result;
	float gradient[2];

	(void)state;
	result = run(&loss, logits, NULL, labels, 1, 2, gradient);
	assert_close(result, 20000.0, 1e-9);
	assert_true(gradient[0] == 1.0f && gradient[1] == -1.0f);
}

static void test_bad_numbers_show_in_the_loss(void **state)
{
	const float x[] = {NAN, 0.5f, 0.25f, 0.75f};
	const int32_t labels[] = {1, 1};
	double result;

	(void)state;
	for (int from = 0; from < 2; from++) {
		struct loss loss = sparse(from);

		result = run(&loss, x, NULL, labels, 2, 2, NULL);
		assert_true(isnan(result));
	}
}

/* ---- every loss in every form ---------------------------------------------------------------- */

enum kind {
	SPARSE,
	CATEGORICAL,
	BINARY,
	SQUARED,
	ABSOLUTE,
	HUBER,
	LOG_COSH,
	HINGE,
	SQUARED_HINGE,
	CATEGORICAL_HINGE,
	DIVERGENCE,
	BINARY_FOCAL,
	CATEGORICAL_FOCAL
};

enum told {
	CLASSES, /* class numbers */
	VALUES,  /* as many as outputs */
	SINGLE   /* one for all outputs of an item */
};

#define LOSS(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"
#define LOGITS             "\"from_logits\": true"
#define SMOOTH             "\"label_smoothing\": 0.2"
#define BALANCED           "\"apply_class_balancing\": true, \"alpha\": 0.3, \"gamma\": 1.5"

static const struct form {
	const char *text;
	enum kind kind;
	bool logits;
	enum told told;
	double smoothing;
} forms[] = {
	{"\"sparse_categorical_crossentropy\"", SPARSE, false, CLASSES, 0.0},
	{LOSS("SparseCategoricalCrossentropy", LOGITS), SPARSE, true, CLASSES, 0.0},
	{"\"categorical_crossentropy\"", CATEGORICAL, false, VALUES, 0.0},
	{LOSS("CategoricalCrossentropy", LOGITS), CATEGORICAL, true, VALUES, 0.0},
	{LOSS("CategoricalCrossentropy", SMOOTH), CATEGORICAL, false, VALUES, 0.2},
	{LOSS("CategoricalCrossentropy", LOGITS "," SMOOTH), CATEGORICAL, true, VALUES, 0.2},
	{"\"binary_crossentropy\"", BINARY, false, VALUES, 0.0},
	{"\"BinaryCrossentropy\"", BINARY, false, SINGLE, 0.0},
	{LOSS("BinaryCrossentropy", SMOOTH), BINARY, false, VALUES, 0.2},
	{LOSS("BinaryCrossentropy", LOGITS), BINARY, true, VALUES, 0.0},
	{LOSS("BinaryCrossentropy", LOGITS "," SMOOTH), BINARY, true, SINGLE, 0.2},
	{LOSS("BinaryCrossentropy", LOGITS), BINARY, true, CLASSES, 0.0},
	{"\"mse\"", SQUARED, false, VALUES, 0.0},
	{"\"MSE\"", SQUARED, false, SINGLE, 0.0},
	{"\"MeanSquaredError\"", SQUARED, false, CLASSES, 0.0},
	{"\"mae\"", ABSOLUTE, false, VALUES, 0.0},
	{"\"MeanAbsoluteError\"", ABSOLUTE, false, SINGLE, 0.0},
	{LOSS("Huber", "\"delta\": 0.3"), HUBER, false, VALUES, 0.0},
	{"\"log_cosh\"", LOG_COSH, false, VALUES, 0.0},
	{"\"hinge\"", HINGE, false, VALUES, 0.0},
	{"\"Hinge\"", HINGE, false, CLASSES, 0.0},
	{"\"squared_hinge\"", SQUARED_HINGE, false, CLASSES, 0.0},
	{"\"categorical_hinge\"", CATEGORICAL_HINGE, false, VALUES, 0.0},
	{"\"kld\"", DIVERGENCE, false, VALUES, 0.0},
	{"\"binary_focal_crossentropy\"", BINARY_FOCAL, false, VALUES, 0.0},
	{LOSS("BinaryFocalCrossentropy", LOGITS "," BALANCED), BINARY_FOCAL, true, VALUES, 0.0},
	{LOSS("BinaryFocalCrossentropy", SMOOTH "," BALANCED), BINARY_FOCAL, false, SINGLE, 0.2},
	{"\"categorical_focal_crossentropy\"", CATEGORICAL_FOCAL, false, VALUES, 0.0},
	{LOSS("CategoricalFocalCrossentropy", LOGITS "," SMOOTH), CATEGORICAL_FOCAL, true, VALUES,
	 0.2},
};

enum {
	BATCH = 7,
	WIDTH = 13
};

struct batch {
	int32_t classes[BATCH];
	float values[BATCH * WIDTH];
	struct targets targets;
};

static bool is_categorical(const struct form *form)
{
	return form->kind == CATEGORICAL || form->kind == CATEGORICAL_FOCAL;
}

/* Classes of one item in many for binary losses: 0 and 1. Values of categorical ones sum to 1. */
static void make_batch(struct batch *b, const struct form *form)
{
	*b = (struct batch){0};
	math_fill(b->values, ARRAY_LEN(b->values), 5, 0.0f, 1.0f);
	for (int i = 0; i < BATCH; i++) {
		double sum = 0.0;

		b->classes[i] = 5 * i % (form->kind == SPARSE || form->kind == SQUARED ? WIDTH : 2);
		for (int j = 0; j < WIDTH; j++)
			sum += (double)b->values[i * WIDTH + j];
		for (int j = 0; j < WIDTH && is_categorical(form); j++)
			b->values[i * WIDTH + j] = (float)((double)b->values[i * WIDTH + j] / sum);
	}
	if (form->told == CLASSES) {
		b->targets.classes = b->classes;
	} else {
		b->targets.values = b->values;
		b->targets.width = form->told == SINGLE ? 1 : WIDTH;
	}
}

static double target_of(const struct batch *b, const struct form *form, int i, int j)
{
	const double s = form->smoothing;
	double y = form->told == CLASSES  ? b->classes[i]
		   : form->told == SINGLE ? (double)b->values[i]
					  : (double)b->values[i * WIDTH + j];

	if (form->kind == SPARSE)
		y = b->classes[i] == j;
	return is_categorical(form) ? y * (1.0 - s) + s / WIDTH : y * (1.0 - s) + 0.5 * s;
}

/* Of one output, where the loss is the mean over them. */
static double reference_element(const struct form *form, double x, double y)
{
	const double apart = fabs(x - y), label = y == 0.0 ? -1.0 : y;
	const bool balanced = strstr(form->text, "balancing");
	double p, q;

	switch (form->kind) {
	case SQUARED:
		return apart * apart;
	case ABSOLUTE:
		return apart;
	case HUBER:
		return apart > 0.3 ? 0.3 * apart - 0.045 : apart * apart / 2.0;
	case LOG_COSH:
		return log(cosh(apart));
	case HINGE:
		return fmax(0.0, 1.0 - label * x);
	case SQUARED_HINGE:
		return pow(fmax(0.0, 1.0 - label * x), 2.0);
	default:
		break;
	}
	p = form->logits ? 1.0 / (1.0 + exp(-x)) : x;
	q = y * p + (1.0 - y) * (1.0 - p);
	return pow(1.0 - q, balanced ? 1.5 : 2.0) * (balanced ? y * 0.3 + (1.0 - y) * 0.7 : 1.0) *
	       -(y * log(p + 1e-7) + (1.0 - y) * log(1.0 - p + 1e-7));
}

static double reference_hinge(const struct batch *b, const struct form *form, const double *x,
			      int i)
{
	double right = 0.0, most = -1e9;

	for (int j = 0; j < WIDTH; j++) {
		double y = target_of(b, form, i, j);

		right += y * x[j];
		most = fmax(most, (1.0 - y) * x[j]);
	}
	return fmax(0.0, most - right + 1.0);
}

/*
 * In double: what TensorFlow's formula gives of an item, outputs away from where they are clipped.
 */
static double reference_item(const struct batch *b, const struct form *form, const double *x, int i)
{
	double sum = 0.0, value = 0.0;

	for (int j = 0; j < WIDTH; j++)
		sum += form->logits ? exp(x[j]) : x[j];
	for (int j = 0; j < WIDTH; j++) {
		double y = target_of(b, form, i, j),
		       p = form->logits ? 1.0 / (1.0 + exp(-x[j])) : x[j];
		double e = form->logits ? 0.0 : 1e-7;

		if (form->kind == DIVERGENCE) {
			value += y * log(y / x[j]);
			continue;
		}
		if (form->kind == CATEGORICAL_FOCAL) {
			double q = (form->logits ? exp(x[j]) : x[j]) / sum;

			value -= 0.25 * y * pow(1.0 - q, 2.0) * log(q);
			continue;
		}
		if (form->kind == SPARSE || form->kind == CATEGORICAL)
			value -= y * log((form->logits ? exp(x[j]) : x[j]) / sum);
		else if (form->kind == BINARY)
			value -= (y * log(p + e) + (1.0 - y) * log(1.0 - p + e)) / WIDTH;
		else
			value += reference_element(form, x[j], y) / WIDTH;
	}
	return form->kind == CATEGORICAL_HINGE ? reference_hinge(b, form, x, i) : value;
}

static double reference(const struct batch *b, const struct form *form, const double *x)
{
	double value = 0.0;

	for (int i = 0; i < BATCH; i++)
		value += reference_item(b, form, x + i * WIDTH, i) / BATCH;
	return value;
}

static void check_slopes(const struct form *form, const struct batch *b, double *exact,
			 const float *gradient)
{
	for (int i = 0; i < BATCH * WIDTH; i++) {
		double kept = exact[i], up, down, slope;

		exact[i] = kept + 1e-6;
		up = reference(b, form, exact);
		exact[i] = kept - 1e-6;
		down = reference(b, form, exact);
		exact[i] = kept;
		slope = (up - down) / 2e-6;
		if (fabs((double)gradient[i] - slope) > 1e-5 * (fabs(slope) + 0.01))
			fail_msg("%s: gradient %d is %g, not %g", form->text, i,
				 (double)gradient[i], slope);
	}
}

static void test_every_form_has_its_formula_and_its_slope(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
		const struct form *form = &forms[f];
		float x[BATCH * WIDTH], gradient[BATCH * WIDTH];
		double exact[BATCH * WIDTH];
		double result, alone;
		struct loss loss;
		struct batch b;

		assert_int_equal(read_loss(&loss, form->text, NULL), ST_OK);
		make_batch(&b, form);
		math_fill(x, ARRAY_LEN(x), 3, form->logits ? -3.0f : 0.05f,
			  form->logits ? 3.0f : 0.9f);
		for (int i = 0; i < BATCH * WIDTH; i++)
			exact[i] = (double)x[i];
		result = loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, gradient);
		alone = loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, NULL);
		assert_true(result >= alone && result <= alone);
		assert_close(result, reference(&b, form, exact), 2e-6);
		check_slopes(form, &b, exact, gradient);
	}
}

/* The sum over the rows, of whole weights as of so many rows; gradients are those of the mean over
 * all rows. */
static void test_every_loss_weighs_its_rows(void **state)
{
	float weights[BATCH];

	(void)state;
	for (int i = 0; i < BATCH; i++)
		weights[i] = (float)(i % 3) - 0.5f;
	for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
		const struct form *form = &forms[f];
		float x[BATCH * WIDTH], gradient[BATCH * WIDTH], plain[BATCH * WIDTH];
		double sum = 0.0;
		struct loss loss;
		struct batch b;

		assert_int_equal(read_loss(&loss, form->text, NULL), ST_OK);
		make_batch(&b, form);
		math_fill(x, ARRAY_LEN(x), 3, form->logits ? -3.0f : 0.05f,
			  form->logits ? 3.0f : 0.9f);
		loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, plain);
		for (int i = 0; i < BATCH; i++) {
			struct targets row = b.targets;

			if (row.classes)
				row.classes += i;
			else
				row.values += i * row.width;
			sum += (double)weights[i] * loss_run(&loss, x + (ptrdiff_t)i * WIDTH, NULL,
							     &row, 1, WIDTH, NULL);
		}
		b.targets.weights = weights;
		assert_close(loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, gradient),
			     sum / BATCH, 1e-6);
		for (int i = 0; i < BATCH * WIDTH; i++) {
			const float wanted = plain[i] * weights[i / WIDTH];

			if (!(fabsf(gradient[i] - wanted) <= 1e-5f * (fabsf(wanted) + 0.01f)))
				fail_msg("%s: gradient %d is %g, not %g", form->text, i,
					 (double)gradient[i], (double)wanted);
		}
	}
}

static void test_an_ignored_class_is_a_mask(void **state)
{
	static const char *const texts[] = {"", "\"from_logits\": true, "};
	const int32_t labels[] = {0, -1, 2, -1, 1, 2}, others[] = {0, 1, 2, 0, 1, 2};
	const float mask[] = {1, 0, 1, 0, 1, 1}, values[] = {0, -1, 2, -1, 1, 2};
	float x[6 * WIDTH], gradient[6 * WIDTH], wanted[6 * WIDTH];

	(void)state;
	math_fill(x, ARRAY_LEN(x), 3, 0.05f, 0.9f);
	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		const struct targets masked = {.classes = others, .mask = mask};
		const struct targets ignored[] = {{.classes = labels},
						  {.values = values, .width = 1}};
		char text[128];
		struct loss loss, plain;
		double value;

		snprintf(text, sizeof(text), LOSS("SparseCategoricalCrossentropy", "%s%s"),
			 texts[t], "\"ignore_class\": -1");
		assert_int_equal(read_loss(&loss, text, NULL), ST_OK);
		plain = loss;
		plain.ignores = false;
		value = loss_run(&plain, x, NULL, &masked, 6, WIDTH, wanted);
		for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
			assert_close(loss_run(&loss, x, NULL, &ignored[i], 6, WIDTH, gradient),
				     value, 0.0);
			assert_memory_equal(gradient, wanted, sizeof(wanted));
		}
		assert_true(isnan(loss_run(&plain, x, NULL, &ignored[0], 6, WIDTH, NULL)));
	}
}

/* Beside weights of 0 for the same rows: the mean is of fewer. */
static void test_every_loss_leaves_masked_rows_out(void **state)
{
	float weights[BATCH], mask[BATCH], none[BATCH] = {0.0f};
	int64_t counted = 0;

	(void)state;
	for (int i = 0; i < BATCH; i++) {
		mask[i] = i % 3 == 1 ? 0.0f : 1.0f;
		weights[i] = mask[i] * (float)BATCH;
		counted += i % 3 != 1;
	}
	for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
		const struct form *form = &forms[f];
		float x[BATCH * WIDTH], gradient[BATCH * WIDTH], wanted[BATCH * WIDTH];
		struct loss loss;
		struct batch b;
		double sum;

		assert_int_equal(read_loss(&loss, form->text, NULL), ST_OK);
		make_batch(&b, form);
		math_fill(x, ARRAY_LEN(x), 3, form->logits ? -3.0f : 0.05f,
			  form->logits ? 3.0f : 0.9f);
		b.targets.weights = weights;
		sum = loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, wanted);
		b.targets.weights = NULL;
		b.targets.mask = mask;
		x[WIDTH] = NAN;
		assert_close(loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, gradient),
			     sum / (double)counted, 1e-6);
		for (int i = 0; i < BATCH * WIDTH; i++)
			assert_close((double)gradient[i], (double)wanted[i] / (double)counted,
				     1e-6);
		b.targets.mask = none;
		assert_close(loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, gradient), 0.0,
			     0.0);
		for (int i = 0; i < BATCH * WIDTH; i++)
			assert_true(gradient[i] == 0.0f);
	}
}

/* ---- borders --------------------------------------------------------------------------------- */

static double run_values(const char *text, const float *x, const float *y, int64_t width,
			 float *gradient)
{
	const struct targets targets = {.values = y, .width = width};
	struct loss loss;

	assert_int_equal(read_loss(&loss, text, NULL), ST_OK);
	return loss_run(&loss, x, NULL, &targets, 1, width, gradient);
}

static void test_categorical_outputs_are_normalised_then_clipped(void **state)
{
	const float x[] = {0.0f, 3.0f, 1.0f}, y[] = {1.0f, 0.0f, 0.0f};
	float gradient[3];

	(void)state;
	/* 0 / 4 is clipped to 1e-7 and gets no gradient; nothing else was asked for */
	assert_close(run_values("\"categorical_crossentropy\"", x, y, 3, gradient), -log(1e-7),
		     1e-6);
	for (int j = 0; j < 3; j++)
		assert_true(gradient[j] == 0.0f);
	/* -log(3/4): by 1/4 - 1/3 at the class, 1/4 beside it */
	assert_close(run_values("\"categorical_crossentropy\"", x, (float[]){0, 1, 0}, 3, gradient),
		     log(4.0 / 3.0), 1e-6);
	assert_close((double)gradient[0], 0.25, 1e-6);
	assert_close((double)gradient[1], -1.0 / 12.0, 1e-6);
}

static void test_binary_outputs_are_clipped(void **state)
{
	const float x[] = {0.0f, 1.0f}, right[] = {0.0f, 1.0f}, wrong[] = {1.0f, 0.0f};
	float gradient[2];

	(void)state;
	/* TensorFlow 2.6 adds 1e-7 again inside the logarithms */
	assert_close(run_values("\"bce\"", x, wrong, 2, gradient),
		     -0.5 * (log(2e-7) + log((double)(1.0f - (1.0f - 1e-7f) + 1e-7f))), 1e-6);
	assert_true(gradient[0] == 0.0f && gradient[1] == 0.0f);
	assert_true(fabs(run_values("\"bce\"", x, right, 2, gradient)) < 1e-6);
}

static void test_binary_logits_far_apart_stay_finite(void **state)
{
	const float x[] = {1000.0f, -1000.0f}, wrong[] = {0.0f, 1.0f};
	float gradient[2];

	(void)state;
	assert_close(run_values(LOSS("BinaryCrossentropy", LOGITS), x, wrong, 2, gradient), 1000.0,
		     1e-9);
	assert_close((double)gradient[0], 0.5, 1e-6);
	assert_close((double)gradient[1], -0.5, 1e-6);
}

static void test_bad_numbers_go_through_every_loss(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
		float x[BATCH * WIDTH], gradient[BATCH * WIDTH];
		double result;
		struct loss loss;
		struct batch b;

		assert_int_equal(read_loss(&loss, forms[f].text, NULL), ST_OK);
		make_batch(&b, &forms[f]);
		math_fill(x, ARRAY_LEN(x), 3, 0.05f, 0.9f);
		x[3 * WIDTH + 2] = NAN;
		result = loss_run(&loss, x, NULL, &b.targets, BATCH, WIDTH, gradient);
		assert_true(isnan(result));
		assert_true(isnan(gradient[3 * WIDTH + 2]));
		assert_true(isfinite(gradient[0]));
	}
}

/* ---- models ---------------------------------------------------------------------------------- */

#define DENSE(activation)                                                                          \
	"{\"class_name\": \"Dense\", \"config\": {\"units\": 10, \"activation\": \"" activation    \
	"\"}}"
#define OUTFEED "{\"class_name\": \"Outfeed\", \"config\": {}}"
#define FLATTEN "{\"class_name\": \"Flatten\", \"config\": {}}"

static void test_the_softmax_that_ends_a_model_gives_its_logits(void **state)
{
	static const struct {
		const char *layers;
		bool takes;
	} rows[] = {
		{"[" DENSE("softmax") "]", true},
		{"[" DENSE("softmax") "," OUTFEED "]", true},
		{"[" DENSE(
			 "linear") ",{\"class_name\": \"Activation\", \"config\": {\"activation\": "
				   "\"softmax\"}}," OUTFEED "]",
		 true},
		{"[" DENSE("relu") "]", false},
		{"[" DENSE("softmax") "," FLATTEN "]", false},
		{"[" OUTFEED "]", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct target_kind ten = {.classes = 10};
		struct loss loss = sparse(false);
		struct math_model m;

		math_model_open(&m, rows[i].layers, 1, (int64_t[]){10});
		assert_int_equal(loss_takes_logits(&loss, m.model), rows[i].takes);
		assert_int_equal(loss_check(&loss, m.model->outputs, &ten, NULL), ST_OK);
		math_model_close(&m);
	}
}

#define SIGMOID "{\"class_name\": \"Activation\", \"config\": {\"activation\": \"sigmoid\"}}"

static void test_each_loss_takes_the_logits_of_its_own_activation(void **state)
{
	static const char *const names[] = {"\"categorical_crossentropy\"",
					    "\"binary_crossentropy\"", "\"mse\""};
	static const char *const ends[] = {"[" DENSE("softmax") "]", "[" DENSE("sigmoid") "]",
					   "[" DENSE("linear") "]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (size_t j = 0; j < ARRAY_LEN(ends); j++) {
			struct math_model m;
			struct loss loss;

			assert_int_equal(read_loss(&loss, names[i], NULL), ST_OK);
			math_model_open(&m, ends[j], 1, (int64_t[]){3});
			assert_int_equal(loss_takes_logits(&loss, m.model), i == j && i < 2);
			math_model_close(&m);
		}
	}
}

enum {
	INPUTS = 3,
	OUTPUTS = 10,
	ITEMS = 4
};

/* Loss and gradients of a model's weights, from the logits or from the outputs. */
static double run_stage(const struct math_model *m, bool logits, float *gradients)
{
	struct stage_params params = {.model = m->model,
				      .layer_count = m->model->layer_count,
				      .batch = ITEMS,
				      .slots = 1,
				      .training = true,
				      .logits_loss = logits};
	float weights[64] = {0}, values[ITEMS * OUTPUTS], gradient[ITEMS * OUTPUTS];
	const struct targets targets = {.values = values, .width = OUTPUTS};
	double result;
	struct stage *stage;
	struct loss loss;

	assert_true(m->model->weights <= ARRAY_LEN(weights));
	math_fill(weights, m->model->weights, 1, -1.0f, 1.0f);
	math_fill(values, ARRAY_LEN(values), 2, 0.0f, 1.0f);
	assert_int_equal(read_loss(&loss, "\"binary_crossentropy\"", NULL), ST_OK);
	assert_int_equal(stage_new(&stage, &params, NULL), ST_OK);
	math_fill(stage_input(stage, 0), ITEMS * INPUTS, 3, -1.0f, 1.0f);
	stage_forward(stage, 0, ITEMS, 0, weights, NULL, NULL);
	assert_true((stage_logits(stage, 0) != NULL) == logits);
	result = loss_run(&loss, stage_output(stage, 0), stage_logits(stage, 0), &targets, ITEMS,
			  OUTPUTS, gradient);
	stage_backward(stage, 0, weights, gradient, gradients, NULL);
	stage_free(stage);
	return result;
}

static void test_the_logits_of_a_sigmoid_give_what_its_outputs_give(void **state)
{
	static const char *const models[] = {
		"[" DENSE("sigmoid") "]",
		"[" DENSE("linear") "," SIGMOID "]",
		"[" DENSE("sigmoid") "," OUTFEED "]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		float from_logits[64], from_outputs[64];
		struct math_model m;

		math_model_open(&m, models[i], 1, (int64_t[]){INPUTS});
		assert_close(run_stage(&m, true, from_logits), run_stage(&m, false, from_outputs),
			     2e-6);
		for (size_t w = 0; w < m.model->params[0].count; w++)
			assert_true(fabsf(from_logits[w] - from_outputs[w]) < 1e-6f);
		math_model_close(&m);
	}
}

enum {
	TOKENS = 5,
	PARAMS = 48 /* 30 and 10, each aligned */
};

/* Of a model with a class for each token, each with a weight; @gradients NULL: not wanted. */
static double run_tokens(const struct math_model *m, const float *weights, float *gradients)
{
	struct stage_params params = {.model = m->model,
				      .layer_count = m->model->layer_count,
				      .batch = ITEMS,
				      .slots = 1,
				      .training = true,
				      .logits_loss = true};
	const struct loss_rows of_item = loss_rows_of(m->model->outputs);
	float kept[PARAMS], y[ITEMS * TOKENS], w[ITEMS * TOKENS];
	float gradient[ITEMS * TOKENS * OUTPUTS];
	const struct targets targets = {.values = y, .width = 1, .weights = w};
	const struct loss loss = sparse(false);
	struct stage *stage;
	double result;

	assert_true(of_item.positions == TOKENS && of_item.width == OUTPUTS);
	memcpy(kept, weights, sizeof(kept));
	for (int r = 0; r < ITEMS * TOKENS; r++) {
		y[r] = (float)(7 * r % OUTPUTS);
		w[r] = (float)(r % 4) * 0.75f;
	}
	assert_int_equal(stage_new(&stage, &params, NULL), ST_OK);
	math_fill(stage_input(stage, 0), ITEMS * TOKENS * INPUTS, 3, -1.0f, 1.0f);
	stage_forward(stage, 0, ITEMS, 0, kept, NULL, NULL);
	result = loss_run(&loss, stage_output(stage, 0), stage_logits(stage, 0), &targets,
			  ITEMS * of_item.positions, of_item.width, gradient);
	if (gradients)
		stage_backward(stage, 0, kept, gradient, gradients, NULL);
	stage_free(stage);
	return result;
}

static void test_weights_of_a_model_of_tokens_have_their_slopes(void **state)
{
	float weights[PARAMS], gradients[PARAMS] = {0};
	struct math_model m;

	(void)state;
	math_model_open(&m, "[" DENSE("softmax") "]", 2, (int64_t[]){TOKENS, INPUTS});
	assert_int_equal(m.model->weights, PARAMS);
	math_fill(weights, PARAMS, 1, -1.0f, 1.0f);
	run_tokens(&m, weights, gradients);
	for (int i = 0; i < PARAMS; i++) {
		const float kept = weights[i];
		double up, down, slope;

		weights[i] = kept + 0.01f;
		up = run_tokens(&m, weights, NULL);
		weights[i] = kept - 0.01f;
		down = run_tokens(&m, weights, NULL);
		weights[i] = kept;
		slope = (up - down) / 0.02;
		if (!(fabs((double)gradients[i] - slope) <= 1e-3 * (fabs(slope) + 0.02)))
			fail_msg("weight %d: %g, not %g", i, (double)gradients[i], slope);
	}
	math_model_close(&m);
}

static void test_an_output_that_does_not_fit_is_refused(void **state)
{
	const struct target_kind ten = {.classes = 10}, eleven = {.classes = 11};
	struct loss loss = sparse(false);
	struct math_model m;
	struct err err;

	(void)state;
	math_model_open(&m, "[" DENSE("softmax") "]", 1, (int64_t[]){3});
	assert_int_equal(loss_check(&loss, m.model->outputs, &eleven, &err), ST_INVALID);
	assert_contains(err.text, "(None, 10) (layer \"dense\")");
	math_model_close(&m);
	math_model_open(&m, "[" DENSE("softmax") "]", 2, (int64_t[]){3, 3});
	assert_int_equal(loss_check(&loss, m.model->outputs, &ten, &err), ST_INVALID);
	math_model_close(&m);
}

static void test_targets_must_fit_the_loss(void **state)
{
	static const struct target_kind classes = {.classes = 10}, ten = {.width = 10},
					three = {.width = 3}, one = {.width = 1},
					thirty = {.width = 30},
					tokens = {.classes = 10, .width = 3},
					many = {.classes = 11, .width = 3},
					flags = {.classes = 2, .width = 10},
					map = {.classes = 2, .width = 30};
	const struct {
		const char *text;
		int ndim;
		const struct target_kind *kind;
		const char *says; /* NULL: it fits */
	} rows[] = {
		{"\"sparse_categorical_crossentropy\"", 1, &ten, "needs class numbers"},
		{"\"categorical_crossentropy\"", 1, &ten, NULL},
		{"\"categorical_crossentropy\"", 1, &classes,
		 "set data.one_hot to true, or use sparse_categorical_crossentropy"},
		{"\"categorical_crossentropy\"", 1, &three, "an item of the data has 3 targets"},
		{"\"categorical_crossentropy\"", 1, &one, "an item of the data has 1 target"},
		{"\"categorical_crossentropy\"", 2, &ten, "an item of the data has 10 targets"},
		{"\"sparse_categorical_crossentropy\"", 2, &tokens, NULL},
		{"\"sparse_categorical_crossentropy\"", 2, &classes,
		 "with 10 classes in the data it must be (None, 10)"},
		{"\"sparse_categorical_crossentropy\"", 1, &tokens,
		 "with 3 class numbers below 10 for each item it must have as many positions, of "
		 "10 "
		 "classes each"},
		{"\"sparse_categorical_crossentropy\"", 2, &many, "3 class numbers below 11"},
		{"\"categorical_crossentropy\"", 2, &thirty, NULL},
		{"\"categorical_crossentropy\"", 2, &tokens, "needs values"},
		{"\"binary_crossentropy\"", 1, &flags, NULL},
		{"\"binary_crossentropy\"", 2, &map, NULL},
		{"\"mse\"", 2, &thirty, NULL},
		{"\"mse\"", 2, &tokens, "an item of the data has 3 targets"},
		{"\"mse\"", 1, &ten, NULL},
		{"\"mse\"", 1, &one, NULL},
		{"\"mse\"", 1, &classes, NULL},
		{"\"mse\"", 1, &three,
		 "the model's output (None, 10) (layer \"dense\") does not fit the loss "
		 "mean_squared_error: an item of the data has 3 targets"},
		{"\"binary_crossentropy\"", 1, &ten, NULL},
		{"\"binary_crossentropy\"", 2, &one, "an item of the data has 1 target"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;
		struct loss loss;
		struct err err = {0};
		enum status status;

		math_model_open(&m, "[" DENSE("linear") "]", rows[i].ndim, (int64_t[]){3, 3});
		assert_int_equal(read_loss(&loss, rows[i].text, NULL), ST_OK);
		status = loss_check(&loss, m.model->outputs, rows[i].kind, &err);
		assert_int_equal(status, rows[i].says ? ST_INVALID : ST_OK);
		if (rows[i].says)
			assert_contains(err.text, rows[i].says);
		math_model_close(&m);
	}
}

static void test_names_and_objects_are_read(void **state)
{
	struct loss loss;

	(void)state;
	assert_int_equal(read_loss(&loss, "\"SparseCategoricalCrossentropy\"", NULL), ST_OK);
	assert_string_equal(loss_name(&loss), "sparse_categorical_crossentropy");
	assert_int_equal(
		read_loss(&loss,
			  "{\"class_name\": \"SparseCategoricalCrossentropy\", \"config\": "
			  "{\"reduction\": \"auto\", \"name\": \"x\", \"from_logits\": true}}",
			  NULL),
		ST_OK);
	assert_true(loss.from_logits);
}

static void test_bad_losses_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"\"sparse_categorical_crosentropy\"",
		 "did you mean \"sparse_categorical_crossentropy\"?"},
		{"4", "must be a name or an object"},
		{"{\"config\": {}}", "\"class_name\" is missing"},
		{"{\"class_name\": 4}", "class_name: must be a text"},
		{"{\"class_name\": \"SparseCategoricalCrossentropy\", \"config\": {\"reduction\": "
		 "\"sum\"}}",
		 "config.reduction: the reduction \"sum\" is not supported"},
		{LOSS("SparseCategoricalCrossentropy", "\"ignore_class\": 0.5"),
		 "config.ignore_class: must be a whole number"},
		{LOSS("CategoricalCrossentropy", "\"ignore_class\": 3"),
		 "unknown option \"ignore_class\""},
		{LOSS("CategoricalCrossentropy", "\"label_smoothing\": 1.5"),
		 "config.label_smoothing: must be from 0 to 1, not 1.5"},
		{LOSS("SparseCategoricalCrossentropy", SMOOTH),
		 "unknown option \"label_smoothing\""},
		{LOSS("MeanSquaredError", LOGITS), "unknown option \"from_logits\""},
		{LOSS("CategoricalCrossentropy", "\"axis\": 1"), "config.axis: "},
		{"{\"class_name\": \"SparseCategoricalCrossentropy\", \"config\": {\"from_logit\": "
		 "true}}",
		 "did you mean \"from_logits\"?"},
		{"{\"class_name\": \"SparseCategoricalCrossentropy\", \"config\": "
		 "{\"from_logits\": "
		 "1}}",
		 "from_logits: must be true or false"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loss loss;
		struct err err = {0};

		assert_int_not_equal(read_loss(&loss, rows[i].text, &err), ST_OK);
		assert_contains(err.text, rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probabilities_by_hand),
		cmocka_unit_test(test_probabilities_are_clipped_and_normalised),
		cmocka_unit_test(test_logits_by_hand),
		cmocka_unit_test(test_logits_far_apart_stay_finite),
		cmocka_unit_test(test_bad_numbers_show_in_the_loss),
		cmocka_unit_test(test_every_form_has_its_formula_and_its_slope),
		cmocka_unit_test(test_every_loss_weighs_its_rows),
		cmocka_unit_test(test_every_loss_leaves_masked_rows_out),
		cmocka_unit_test(test_an_ignored_class_is_a_mask),
		cmocka_unit_test(test_categorical_outputs_are_normalised_then_clipped),
		cmocka_unit_test(test_binary_outputs_are_clipped),
		cmocka_unit_test(test_binary_logits_far_apart_stay_finite),
		cmocka_unit_test(test_bad_numbers_go_through_every_loss),
		cmocka_unit_test(test_the_softmax_that_ends_a_model_gives_its_logits),
		cmocka_unit_test(test_each_loss_takes_the_logits_of_its_own_activation),
		cmocka_unit_test(test_the_logits_of_a_sigmoid_give_what_its_outputs_give),
		cmocka_unit_test(test_weights_of_a_model_of_tokens_have_their_slopes),
		cmocka_unit_test(test_an_output_that_does_not_fit_is_refused),
		cmocka_unit_test(test_targets_must_fit_the_loss),
		cmocka_unit_test(test_names_and_objects_are_read),
		cmocka_unit_test(test_bad_losses_are_refused_with_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
