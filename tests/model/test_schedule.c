/*
 * Learning-rate schedules: TensorFlow's formulas by hand, borders, and what is refused.
 */
#include "model/learn/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"

#define PI 3.14159265358979323846

static enum status read_schedule(struct schedule *out, const char *text, struct err *err)
{
	enum status status;
	struct json_at root;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "s.json", NULL), ST_OK);
	root = json_root("s.json", json);
	status = schedule_get(out, &root, err);
	cJSON_Delete(json);
	return status;
}

#define OBJECT(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"
#define DECAY(more)          "\"initial_learning_rate\": 0.5, \"decay_steps\": 10, \"decay_rate\": 0.25" more
#define COSINE(more)         "\"initial_learning_rate\": 2, \"decay_steps\": 8" more
#define RESTARTS(more)       "\"initial_learning_rate\": 2, \"first_decay_steps\": 8" more
#define POLYNOMIAL(more)                                                                           \
	"\"initial_learning_rate\": 1.0, \"decay_steps\": 4, \"end_learning_rate\": 0.2" more
#define PIECEWISE(boundaries, values) "\"boundaries\": " boundaries ", \"values\": " values

struct point {
	const char *text;
	int64_t update;
	double rate;
};

static void test_rates_are_those_of_tensorflow(void **state)
{
	const struct point points[] = {
		{"0.125", 0, 0.125},
		{"0.125", 1000000, 0.125},
		{OBJECT("ExponentialDecay", DECAY("")), 0, 0.5},
		{OBJECT("ExponentialDecay", DECAY("")), 5, 0.25},
		{OBJECT("ExponentialDecay", DECAY("")), 25, 0.5 / 32},
		{OBJECT("ExponentialDecay", DECAY(", \"staircase\": true")), 9, 0.5},
		{OBJECT("ExponentialDecay", DECAY(", \"staircase\": true")), 10, 0.125},
		{OBJECT("ExponentialDecay", DECAY(", \"staircase\": true")), 29, 0.5 / 16},
		{OBJECT("InverseTimeDecay", DECAY("")), 0, 0.5},
		{OBJECT("InverseTimeDecay", DECAY("")), 6, 0.5 / 1.15},
		{OBJECT("InverseTimeDecay", DECAY(", \"staircase\": true")), 19, 0.4},
		{OBJECT("PolynomialDecay", POLYNOMIAL("")), 0, 1.0},
		{OBJECT("PolynomialDecay", POLYNOMIAL("")), 1, 0.8},
		{OBJECT("PolynomialDecay", POLYNOMIAL("")), 4, 0.2},
		{OBJECT("PolynomialDecay", POLYNOMIAL("")), 9, 0.2},
		{OBJECT("PolynomialDecay", POLYNOMIAL(", \"power\": 2")), 2, 0.4},
		{OBJECT("PolynomialDecay", POLYNOMIAL(", \"cycle\": true")), 0, 1.0},
		{OBJECT("PolynomialDecay", POLYNOMIAL(", \"cycle\": true")), 4, 0.2},
		{OBJECT("PolynomialDecay", POLYNOMIAL(", \"cycle\": true")), 5, 0.5},
		{OBJECT("PolynomialDecay", POLYNOMIAL(", \"cycle\": true")), 9, 0.4},
		{OBJECT("PolynomialDecay",
			"\"initial_learning_rate\": 1, \"decay_steps\": 2, \"power\": null"),
		 5, 0.0001},
		{OBJECT("CosineDecay", COSINE("")), 0, 2.0},
		{OBJECT("CosineDecay", COSINE("")), 4, 1.0},
		{OBJECT("CosineDecay", COSINE("")), 1, 1.0 + cos(PI / 8)},
		{OBJECT("CosineDecay", COSINE(", \"alpha\": 0.25")), 4, 1.25},
		{OBJECT("CosineDecay", COSINE(", \"alpha\": 0.25")), 100, 0.5},
		{OBJECT("CosineDecay",
			COSINE(", \"warmup_target\": null, \"warmup_steps\": 0, \"name\": \"x\"")),
		 4, 1.0},
		{OBJECT("CosineDecayRestarts", RESTARTS("")), 4, 1.0},
		{OBJECT("CosineDecayRestarts", RESTARTS("")), 8, 2.0},
		{OBJECT("CosineDecayRestarts", RESTARTS("")), 16, 1.0},
		{OBJECT("CosineDecayRestarts", RESTARTS("")), 24, 2.0},
		{OBJECT("CosineDecayRestarts", RESTARTS(", \"m_mul\": 0.5, \"alpha\": 0.1")), 24,
		 2.0 * (0.9 * 0.25 + 0.1)},
		{OBJECT("CosineDecayRestarts", RESTARTS(", \"t_mul\": 1, \"m_mul\": 0.5")), 24,
		 0.25},
		{OBJECT("CosineDecayRestarts", RESTARTS(", \"t_mul\": 1.0")), 9, 1.0 + cos(PI / 8)},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 5]", "[1, 0.5, 0.25]")), 0, 1.0},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 5]", "[1, 0.5, 0.25]")), 3, 1.0},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 5]", "[1, 0.5, 0.25]")), 4, 0.5},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 5]", "[1, 0.5, 0.25]")), 5, 0.5},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 5]", "[1, 0.5, 0.25]")), 6, 0.25},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[]", "[0.75]")), 6, 0.75},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		struct schedule schedule;
		struct err err;
		double rate;

		if (read_schedule(&schedule, points[i].text, &err) != ST_OK)
			fail_msg("%s: %s", points[i].text, err.text);
		rate = schedule_rate(&schedule, points[i].update);
		if (fabs(rate - points[i].rate) > 1e-12)
			fail_msg("%s: update %lld: %.17g, not %.17g", points[i].text,
				 (long long)points[i].update, rate, points[i].rate);
	}
}

/* The first update of every period begins anew, however long the periods have become. */
static void test_restarts_come_where_periods_end(void **state)
{
	static const char *const factors[] = {"2.0", "3.0", "1.5", "4.0", "10.0"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
		double t = strtod(factors[i], NULL), length = 64.0, start = 0.0;
		char text[256];
		struct schedule schedule;

		snprintf(
			text, sizeof(text),
			"{\"class_name\": \"CosineDecayRestarts\", \"config\": "
			"{\"initial_learning_rate\": 1, \"first_decay_steps\": 64, \"t_mul\": %s}}",
			factors[i]);
		assert_int_equal(read_schedule(&schedule, text, NULL), ST_OK);
		/* 64 x 1.5^6 is the last whole number */
		for (int period = 0; period < 7; period++) {
			int64_t first = (int64_t)start;

			assert_close(schedule_rate(&schedule, first), 1.0, 1e-12);
			if (first > 0)
				assert_true(schedule_rate(&schedule, first - 1) < 0.01);
			start += length;
			length *= t;
		}
	}
}

static void test_a_schedule_knows_its_name(void **state)
{
	struct schedule schedule = schedule_constant(0.5);

	(void)state;
	assert_null(schedule_name(&schedule));
	assert_int_equal(read_schedule(&schedule, OBJECT("CosineDecay", COSINE("")), NULL), ST_OK);
	assert_string_equal(schedule_name(&schedule), "CosineDecay");
}

static void test_bad_schedules_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text;
		enum status status;
		const char *says;
	} rows[] = {
		{"-0.5", ST_INVALID, "must be at least 0, not -0.5"},
		{"\"fast\"", ST_INVALID, "must be a number"},
		{"{\"class_name\": \"CosineDekay\", \"config\": {}}", ST_INVALID,
		 "unknown schedule \"CosineDekay\" (did you mean \"CosineDecay\"?)"},
		{"{\"class_name\": \"CosineDecay\"}", ST_INVALID, "\"config\" is missing"},
		{OBJECT("CosineDecay", "\"initial_learning_rate\": 1"), ST_INVALID,
		 "config: \"decay_steps\" is missing"},
		{OBJECT("CosineDecay", COSINE(", \"alpa\": 1")), ST_INVALID,
		 "unknown option \"alpa\" (did you mean \"alpha\"?)"},
		{OBJECT("CosineDecay", COSINE(", \"warmup_steps\": 10")), ST_UNSUPPORTED,
		 "config.warmup_steps: not supported"},
		{OBJECT("CosineDecay", "\"initial_learning_rate\": 1, \"decay_steps\": 0"),
		 ST_INVALID, "config.decay_steps: must be above 0, not 0"},
		{OBJECT("CosineDecayRestarts", RESTARTS(", \"t_mul\": 0.5")), ST_INVALID,
		 "config.t_mul: must be at least 1, not 0.5"},
		{OBJECT("ExponentialDecay", DECAY(", \"staircase\": 1")), ST_INVALID,
		 "config.staircase: must be true or false"},
		{OBJECT("ExponentialDecay", DECAY(", \"boundaries\": []")), ST_INVALID,
		 "unknown option \"boundaries\""},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 3]", "[1, 2, 3]")), ST_INVALID,
		 "config.boundaries[1]: boundaries must increase"},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[3, 4]", "[1, 2]")), ST_INVALID,
		 "config.values: must be one more than the boundaries: 3, not 2"},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[1.5]", "[1, 2]")), ST_INVALID,
		 "config.boundaries[0]: must be a whole number"},
		{OBJECT("PiecewiseConstantDecay", PIECEWISE("[1]", "[1, -2]")), ST_INVALID,
		 "config.values[1]: must be at least 0"},
		{OBJECT("PiecewiseConstantDecay", "\"values\": [1]"), ST_INVALID,
		 "config: \"boundaries\" is missing"},
		{OBJECT("PiecewiseConstantDecay",
			PIECEWISE("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,"
				  "25,26,27,28,29,30,31,32,33]",
				  "[]")),
		 ST_INVALID, "config.boundaries: at most 32 are supported"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct schedule schedule;
		struct err err = {0};

		assert_int_equal(read_schedule(&schedule, rows[i].text, &err), rows[i].status);
		assert_contains(err.text, rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_those_of_tensorflow),
		cmocka_unit_test(test_restarts_come_where_periods_end),
		cmocka_unit_test(test_a_schedule_knows_its_name),
		cmocka_unit_test(test_bad_schedules_are_refused_with_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
