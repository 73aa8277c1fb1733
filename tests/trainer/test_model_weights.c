/*
 * Weights in .npz: what is saved loads, NumPy's files load, and all that can be wrong with one.
 */
#include "trainer/models/model_weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/model_texts.h"
#include "trainer/data/npz.h"

static const struct model_shape input = {.ndim = 1, .dim = {6}};

#define DENSE(name, units)                                                                         \
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"" name "\", \"units\": " units "}}"
static const char two[] = "{\"layers\": [" DENSE("a", "40") ", " DENSE("b", "3") "]}";

struct fixture {
	char dir[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	struct model *model;
	float *weights, *other;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	support_tempdir(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/w.npz", f->dir);
	f->model = support_model(two, &input);
	f->weights = calloc(f->model->weights, sizeof(float));
	f->other = calloc(f->model->weights, sizeof(float));
	assert_non_null(f->weights);
	assert_non_null(f->other);
	model_init_weights(f->model, f->weights, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	support_tempdir_remove(f->dir);
	model_free(f->model);
	free(f->weights);
	free(f->other);
	free(f);
	return 0;
}

static void save(const struct fixture *f)
{
	struct err err;

	if (model_weights_save(f->model, f->weights, f->path, &err) != ST_OK)
		fail_msg("%s", err.text);
}

/* A Python that has NumPy, or NULL. */
static const char *python(void)
{
	static const char *const names[] = {"python3", "/usr/bin/python3"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct support_result result;
		int exit_code;

		support_shell(&result, "%s -c 'import numpy' 2>/dev/null", names[i]);
		exit_code = result.exit_code;
		support_result_free(&result);
		if (!exit_code)
			return names[i];
	}
	return NULL;
}

/* Run Python in the folder; false: there is no NumPy. */
static bool numpy(const struct fixture *f, const char *script)
{
	struct support_result result;
	const char *name = python();

	if (!name)
		return false;
	support_shell(&result, "cd '%s' && %s -c \"import numpy as np\n%s\"", f->dir, name, script);
	if (result.exit_code)
		fail_msg("%s", result.err);
	support_result_free(&result);
	return true;
}

static void refuses(const struct fixture *f, bool by_name, enum status status, const char *says)
{
	struct err err = {0};
	int loaded = 7;

	assert_int_equal(model_weights_load(f->model, f->other, f->path, by_name, &loaded, &err),
			 status);
	assert_int_equal(loaded, 0);
	assert_contains(err.text, "w.npz");
	support_assert_says(err.text, says);
}

/* ---- what works ------------------------------------------------------------------------------ */

static void test_what_is_saved_loads(void **state)
{
	struct fixture *f = *state;
	int loaded;

	f->weights[0] = NAN;
	f->weights[1] = -INFINITY;
	f->weights[2] = 1e-42f;
	save(f);
	assert_int_equal(model_weights_load(f->model, f->other, f->path, false, &loaded, NULL),
			 ST_OK);
	assert_int_equal(loaded, 4);
	assert_memory_equal(f->weights, f->other, f->model->weights * sizeof(float));
}

static void test_the_same_weights_are_the_same_bytes(void **state)
{
	struct fixture *f = *state;
	size_t first_length, second_length;
	char *first, *second;

	save(f);
	first = support_read_file(f->path, &first_length);
	save(f);
	second = support_read_file(f->path, &second_length);
	assert_int_equal(first_length, second_length);
	assert_memory_equal(first, second, first_length);
	free(first);
	free(second);
}

static void test_numpy_reads_what_is_saved(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 6 * 40; i++)
		f->weights[i] = (float)i * 0.5f;
	save(f);
	if (!numpy(f, "w = np.load('w.npz')\n"
		      "assert w.files == ['a/kernel:0', 'a/bias:0', 'b/kernel:0', 'b/bias:0']\n"
		      "k = w['a/kernel:0']\n"
		      "assert k.dtype == np.float32 and k.shape == (6, 40)\n"
		      "assert (k.ravel() == np.arange(240) * 0.5).all()\n"
		      "assert w['b/bias:0'].shape == (3,)\n"))
		skip();
}

/* ---- the digest ------------------------------------------------------------------------------ */

static uint64_t digest(const struct model *model, const float *weights)
{
	uint64_t number;

	assert_int_equal(model_weights_digest(&number, model, weights, NULL), ST_OK);
	return number;
}

/* As docs/schema.md defines it: all values in the order of names, hashed at once. */
static void test_the_digest_is_that_of_values_by_name(void **state)
{
	static const char *const names[] = {"a/bias:0", "a/kernel:0", "b/bias:0", "b/kernel:0"};
	struct fixture *f = *state;
	float values[6 * 40 + 40 + 40 * 3 + 3];
	size_t count = 0;

	for (size_t i = 0; i < f->model->weights; i++)
		f->weights[i] = (float)i * 0.25f - 7.0f;
	for (size_t n = 0; n < ARRAY_LEN(names); n++)
		for (int i = 0; i < f->model->param_count; i++) {
			const struct model_param *param = &f->model->params[i];

			if (strcmp(param->name, names[n]) != 0)
				continue;
			memcpy(values + count, f->weights + param->offset,
			       param->count * sizeof(float));
			count += param->count;
		}
	assert_int_equal(count, ARRAY_LEN(values));
	assert_true(digest(f->model, f->weights) == XXH3_64bits(values, sizeof(values)));
}

/* Which bits a NaN has differs between processors; a value's sign does not. */
static void test_the_digest_knows_one_nan(void **state)
{
	static const uint32_t nans[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
	struct fixture *f = *state;
	uint64_t first = 0;

	for (size_t i = 0; i < ARRAY_LEN(nans); i++) {
		memcpy(f->weights + 3, &nans[i], sizeof(nans[i]));
		first = i ? first : digest(f->model, f->weights);
		assert_true(digest(f->model, f->weights) == first);
	}
	f->weights[3] = 0.0f;
	first = digest(f->model, f->weights);
	f->weights[3] = -0.0f;
	assert_true(digest(f->model, f->weights) != first);
}

/* What stands between the variables in memory does not count. */
static void test_the_digest_is_of_values_alone(void **state)
{
	struct fixture *f = *state;
	const uint64_t before = digest(f->model, f->weights);
	bool value = false;

	for (size_t at = 0; at < f->model->weights; at++) {
		const float kept = f->weights[at];

		value = false;
		for (int i = 0; i < f->model->param_count; i++)
			value = value ||
				(at >= f->model->params[i].offset &&
				 at < f->model->params[i].offset + f->model->params[i].count);
		f->weights[at] = kept + 1.0f;
		assert_true((digest(f->model, f->weights) != before) == value);
		f->weights[at] = kept;
	}
	assert_false(value); /* there was something between them */
}

/* The lines that docs/schema.md has for whoever wants to work it out. */
static void test_numpy_works_out_the_digest(void **state)
{
	struct fixture *f = *state;
	struct support_result result;
	char script[1024];
	int exit_code;

	support_shell(&result, "%s -c 'import xxhash' 2>/dev/null", python() ? python() : "false");
	exit_code = result.exit_code;
	support_result_free(&result);
	if (exit_code)
		skip();
	f->weights[5] = -NAN;
	save(f);
	snprintf(script, sizeof(script),
		 "import xxhash\n"
		 "w = np.load('w.npz')\n"
		 "d = xxhash.xxh3_64()\n"
		 "for name in sorted(w.files):\n"
		 "    values = w[name].astype('<f4')\n"
		 "    values[np.isnan(values)] = np.float32('nan')\n"
		 "    d.update(values.tobytes())\n"
		 "assert d.hexdigest() == '%016" PRIx64 "', d.hexdigest()\n",
		 digest(f->model, f->weights));
	if (!numpy(f, script))
		skip();
}

static void test_what_numpy_writes_loads(void **state)
{
	static const char *const calls[] = {"savez", "savez_compressed"};
	struct fixture *f = *state;
	const struct model_param *kernel = &f->model->params[0];

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		char script[1024];
		struct err err;

		snprintf(script, sizeof(script),
			 "np.%s('w.npz', **{'b/kernel': np.ones((40, 3)) * 0.25, 'b/bias:0': "
			 "np.arange(3, dtype='f2'), 'a/bias:0': np.zeros(40, 'f4'), 'a/kernel:0': "
			 "np.arange(240, dtype='f8').reshape(6, 40)})\n",
			 calls[i]);
		if (!numpy(f, script))
			skip();
		memset(f->other, 0, f->model->weights * sizeof(float));
		if (model_weights_load(f->model, f->other, f->path, false, NULL, &err) != ST_OK)
			fail_msg("%s", err.text);
		for (int j = 0; j < 240; j++)
			assert_close(f->other[kernel->offset + (size_t)j], j, 0);
		assert_close(f->other[f->model->params[2].offset], 0.25, 0);
		assert_close(f->other[f->model->params[3].offset + 2], 2, 0);
	}
}

static void test_by_name_reads_what_there_is(void **state)
{
	struct fixture *f = *state;
	struct model *one =
		support_model("{\"layers\": [" DENSE("c", "40") ", " DENSE("b", "3") "]}", &input);
	int loaded;

	save(f);
	assert_int_equal(model_weights_load(one, f->other, f->path, true, &loaded, NULL), ST_OK);
	assert_int_equal(loaded, 2);
	assert_close(f->other[0], 0, 0);
	assert_memory_equal(f->other + one->params[2].offset,
			    f->weights + f->model->params[2].offset, 120 * sizeof(float));
	model_free(one);
}

/* ---- what does not --------------------------------------------------------------------------- */

static void save_as(const struct fixture *f, const char *text)
{
	struct model *model = support_model(text, &input);
	float *weights = calloc(model->weights, sizeof(*weights));

	assert_non_null(weights);
	assert_int_equal(model_weights_save(model, weights, f->path, NULL), ST_OK);
	free(weights);
	model_free(model);
}

static void test_what_does_not_fit_is_named(void **state)
{
	struct fixture *f = *state;

	save_as(f, "{\"layers\": [" DENSE("a", "40") "]}");
	refuses(f, false, ST_NOTFOUND, "there is no variable \"b/kernel:0\" (40, 3), which");
	save_as(f,
		"{\"layers\": [" DENSE("a", "40") ", " DENSE("b", "3") ", " DENSE("b2", "4") "]}");
	refuses(f, false, ST_INVALID,
		"\"b2/kernel:0\" (3, 4) is no variable of the model|did you mean \"b/kernel:0\"?");
	save_as(f, "{\"layers\": [" DENSE("a", "41") ", " DENSE("b", "3") "]}");
	refuses(f, false, ST_INVALID,
		"\"a/kernel:0\" has the shape (6, 41), but (6, 40) in the model");
	refuses(f, true, ST_INVALID, "(6, 41)");
	assert_close(f->other[0], 0, 0);
}

static void test_files_that_are_no_weights_are_refused(void **state)
{
	struct fixture *f = *state;

	refuses(f, false, ST_NOTFOUND, "cannot open");
	support_write_file(f->path, "no zip", 6);
	refuses(f, false, ST_FORMAT, "is not an .npz (zip) file");
	if (!numpy(f, "np.savez('w.npz', **{'a/kernel:0': np.zeros((6, 40), 'i4')})\n"))
		skip();
	refuses(f, false, ST_UNSUPPORTED, "\"a/kernel:0\": holds i4; weights are floats");
	numpy(f, "np.savez('w.npz', **{'a/kernel:0': np.zeros((6, 40), '>f4')})\n");
	refuses(f, false, ST_UNSUPPORTED, "little-endian");
	numpy(f, "np.savez('w.npz', **{'a/kernel:0': np.zeros((40, 6), 'f4').T})\n");
	refuses(f, false, ST_UNSUPPORTED, "Fortran order");
	numpy(f, "np.savez('w.npz', **{'a/bias': np.zeros(40), 'a/bias:0': np.zeros(40)})\n");
	refuses(f, true, ST_INVALID, "\"a/bias:0\" is there twice");
}

/* A byte that is changed anywhere is noticed, or changes nothing that is read. */
static void test_damaged_files_are_noticed(void **state)
{
	struct fixture *f = *state;
	size_t length, noticed = 0;
	char *bytes;

	save(f);
	bytes = support_read_file(f->path, &length);
	for (size_t i = 0; i < length; i++) {
		struct npz *npz;
		enum status status;

		bytes[i] ^= 0x10;
		status = npz_parse(&npz, "w.npz", bytes, length, NULL);
		if (status == ST_OK) {
			status = model_weights_from(f->model, f->other, npz, "w.npz", false, NULL,
						    NULL);
			npz_close(npz);
		}
		if (status == ST_OK)
			assert_memory_equal(f->weights, f->other,
					    f->model->weights * sizeof(float));
		noticed += status != ST_OK;
		bytes[i] ^= 0x10;
	}
	assert_true(noticed > length * 3 / 4);
	free(bytes);
}

static void test_truncated_files_are_refused(void **state)
{
	struct fixture *f = *state;
	struct npz *npz;
	size_t length;
	char *bytes;

	save(f);
	bytes = support_read_file(f->path, &length);
	for (size_t i = 0; i < length; i += 3) {
		char *cut = malloc(i + 1); /* exactly as long, for sanitizers */

		assert_non_null(cut);
		memcpy(cut, bytes, i);
		assert_int_not_equal(npz_parse(&npz, "w.npz", cut, i, NULL), ST_OK);
		assert_null(npz);
		free(cut);
	}
	free(bytes);
}

static void test_nothing_is_left_of_a_failed_save(void **state)
{
	struct fixture *f = *state;
	char path[SUPPORT_PATH_SIZE + 32];
	struct support_result result;
	struct err err;

	if (access("/dev/full", W_OK) == 0) {
		assert_int_equal(model_weights_save(f->model, f->weights, "/dev/full", &err),
				 ST_NOSPACE);
		assert_contains(err.text, "/dev/full: cannot write");
	}
	snprintf(path, sizeof(path), "%s/no/w.npz", f->dir);
	assert_int_equal(model_weights_save(f->model, f->weights, path, &err), ST_NOTFOUND);
	support_shell(&result, "ls -A '%s'", f->dir);
	assert_string_equal(result.out, "");
	support_result_free(&result);
}

static void test_no_memory_leaves_what_was_there(void **state)
{
	struct fixture *f = *state;
	bool failed = true;

	support_write_file(f->path, "old", 3);
	for (long n = 0; failed; n++) {
		enum status status;

		support_fail_alloc(n);
		status = model_weights_save(f->model, f->weights, f->path, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		if (failed) {
			char *text = support_read_file(f->path, NULL);

			assert_string_equal(text, "old");
			free(text);
		}
	}
	failed = true;
	for (long n = 0; failed; n++) {
		enum status status;

		support_fail_alloc(n);
		status = model_weights_load(f->model, f->other, f->path, false, NULL, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* A failed block may be made up for by a smaller one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_saved_loads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_same_weights_are_the_same_bytes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_numpy_reads_what_is_saved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_digest_is_that_of_values_by_name, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_digest_knows_one_nan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_digest_is_of_values_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_numpy_works_out_the_digest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_numpy_writes_loads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_name_reads_what_there_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files_that_are_no_weights_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_damaged_files_are_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_truncated_files_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_left_of_a_failed_save, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_no_memory_leaves_what_was_there, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
