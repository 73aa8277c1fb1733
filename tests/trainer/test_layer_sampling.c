/*
 * RandomFlip, RandomCrop, CenterCrop, RandomRotation, RandomTranslation, RandomZoom and Resizing:
 * what is drawn and for whom, fills by hand, inference, gradients, any number of threads, refusals,
 * device operations. test_oracle_layers.c compares fixed factors with PyTorch.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {'name': 'l'" options "}}]"

static const char *const layers[] = {
	LAYER("RandomFlip", ""),
	LAYER("RandomFlip", ", 'mode': 'horizontal', 'seed': 3"),
	LAYER("RandomCrop", ", 'height': 4, 'width': 3"),
	LAYER("RandomCrop", ", 'height': 4, 'width': 9"),
	LAYER("CenterCrop", ", 'height': 4, 'width': 5"),
	LAYER("CenterCrop", ", 'height': 9, 'width': 5"),
	LAYER("RandomRotation", ", 'factor': 0.3"),
	LAYER("RandomRotation", ", 'factor': 0.3, 'fill_mode': 'constant', 'fill_value': 2, "
				"'interpolation': 'nearest'"),
	LAYER("RandomTranslation",
	      ", 'height_factor': 0.4, 'width_factor': [0.1, 0.5], 'fill_mode': 'wrap'"),
	LAYER("RandomZoom", ", 'height_factor': [-0.5, 0.5]"),
	LAYER("RandomZoom", ", 'height_factor': 0.5, 'width_factor': 0.5, 'fill_mode': 'constant'"),
	LAYER("Resizing", ", 'height': 11, 'width': 4"),
	LAYER("Resizing", ", 'height': 3, 'width': 10, 'interpolation': 'nearest'"),
};

static void open_counting(struct layer_rig *rig, const char *layer, int64_t height, int64_t width,
			  int64_t batch)
{
	layer_rig_open(rig, layer, 3, (const int64_t[]){height, width, 1}, batch, true, NULL);
	for (size_t i = 0; i < rig->in; i++)
		rig->x[i] = (float)i;
}

/* ---- what is drawn --------------------------------------------------------------------------- */

#define ITEMS 400

/* An item of 2 x 3 pixels, 0 to 5. */
static void test_half_of_the_items_are_flipped_both_ways_at_once(void **state)
{
	static const struct {
		const char *layer;
		float flipped[6];
	} rows[] = {
		{LAYER("RandomFlip", ""), {5, 4, 3, 2, 1, 0}},
		{LAYER("RandomFlip", ", 'mode': 'horizontal_and_vertical'"), {5, 4, 3, 2, 1, 0}},
		{LAYER("RandomFlip", ", 'mode': 'horizontal'"), {2, 1, 0, 5, 4, 3}},
		{LAYER("RandomFlip", ", 'mode': 'vertical', 'seed': 5"), {3, 4, 5, 0, 1, 2}},
	};
	static const float plain[] = {0, 1, 2, 3, 4, 5};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		int flipped = 0, runs = 0;
		bool before = false;
		struct layer_rig rig;

		open_counting(&rig, rows[r].layer, 2, 3, ITEMS);
		for (size_t i = 0; i < rig.in; i++)
			rig.x[i] = (float)(i % 6);
		layer_rig_forward(&rig);
		for (int i = 0; i < ITEMS; i++) {
			const bool now = memcmp(rig.y + 6 * i, plain, sizeof(plain)) != 0;

			if (now)
				assert_memory_equal(rig.y + 6 * i, rows[r].flipped, sizeof(plain));
			flipped += now;
			runs += now != before;
			before = now;
		}
		assert_true(flipped > 160 && flipped < 240 && runs > 160 && runs < 240);
		layer_rig_close(&rig);
	}
}

static void test_a_seed_and_a_step_draw_anew(void **state)
{
	struct layer_rig rig, other;
	float y[ITEMS * 2];

	(void)state;
	open_counting(&rig, LAYER("RandomFlip", ", 'seed': 1"), 1, 2, ITEMS);
	open_counting(&other, LAYER("RandomFlip", ", 'seed': 2"), 1, 2, ITEMS);
	layer_rig_forward(&rig);
	layer_rig_forward(&other);
	assert_memory_not_equal(rig.y, other.y, sizeof(y));
	memcpy(y, rig.y, sizeof(y));
	rig.pass.step = 1;
	layer_rig_forward(&rig);
	assert_memory_not_equal(rig.y, y, sizeof(y));
	rig.pass.step = 0;
	rig.pass.replica = 1;
	layer_rig_forward(&rig);
	assert_memory_not_equal(rig.y, y, sizeof(y));
	layer_rig_close(&rig);
	layer_rig_close(&other);
}

/* 3 x 2 places of 4 x 3 pixels. */
static void test_a_crop_is_at_one_place_for_all_items_and_anywhere_over_steps(void **state)
{
	bool seen[6] = {false};
	struct layer_rig rig;

	(void)state;
	open_counting(&rig, LAYER("RandomCrop", ", 'height': 4, 'width': 3"), 6, 4, 3);
	for (int step = 0; step < 60; step++) {
		int place;

		rig.pass.step = (uint64_t)step;
		layer_rig_forward(&rig);
		place = (int)rig.y[0];
		assert_true(place / 4 < 3 && place % 4 < 2);
		seen[place / 4 * 2 + place % 4] = true;
		for (int i = 0; i < (int)rig.out; i++) {
			const int item = i / 12, row = i / 3 % 4, column = i % 3;

			assert_true(rig.y[i] == (float)(24 * item + 4 * row + column + place));
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		assert_true(seen[i]);
	layer_rig_close(&rig);
}

/* Columns are 0, 1, 2 ...: the middle of a row says where it was taken from. */
static void check_spread(const char *layer, int64_t at, double low, double high)
{
	double least = INFINITY, most = -INFINITY;
	struct layer_rig rig;

	layer_rig_open(&rig, layer, 3, (const int64_t[]){3, 101, 1}, ITEMS, true, NULL);
	for (size_t i = 0; i < rig.in; i++)
		rig.x[i] = (float)(i % 101);
	layer_rig_forward(&rig);
	for (int i = 0; i < ITEMS; i++) {
		const double value = (double)rig.y[303 * i + 101 + at];

		least = fmin(least, value);
		most = fmax(most, value);
	}
	if (!(least >= low - 1e-3 && least < low + 1.0 && most <= high + 1e-3 && most > high - 1.0))
		fail_msg("%s: %g to %g", layer, least, most);
	layer_rig_close(&rig);
}

static void test_shares_are_drawn_from_all_of_their_range(void **state)
{
	(void)state;
	check_spread(LAYER("RandomTranslation", ", 'height_factor': 0, 'width_factor': 0.2"), 50,
		     50 - 20.2, 50 + 20.2);
	check_spread(
		LAYER("RandomTranslation", ", 'height_factor': 0, 'width_factor': [0.3, -0.1]"), 50,
		50 - 30.3, 50 + 10.1);
	/* 30 pixels from the middle */
	check_spread(LAYER("RandomZoom", ", 'height_factor': [-0.5, 0.5]"), 80, 50 + 15, 50 + 45);
	check_spread(LAYER("RandomZoom", ", 'height_factor': 0, 'width_factor': [0.1, 0.5]"), 80,
		     50 + 33, 50 + 45);
	/* by up to a sixth of a whole turn: cos is 1 / 2 */
	check_spread(LAYER("RandomRotation", ", 'factor': 0.16666667"), 80, 50 + 15, 50 + 30);
}

/* ---- by hand --------------------------------------------------------------------------------- */

#define SHIFT(share, fill)                                                                         \
	LAYER("RandomTranslation",                                                                 \
	      ", 'height_factor': 0, 'width_factor': [" share ", " share "]" fill)

static void test_fills_are_as_keras_says(void **state)
{
	static const struct {
		const char *layer;
		float y[4]; /* of 1, 2, 3, 4 */
	} rows[] = {
		{SHIFT("0.5", ""), {2, 1, 1, 2}},
		{SHIFT("-0.5", ""), {3, 4, 4, 3}},
		{SHIFT("1", ""), {4, 3, 2, 1}},
		{SHIFT("0.5", ", 'fill_mode': 'wrap'"), {3, 4, 1, 2}},
		{SHIFT("-0.25", ", 'fill_mode': 'wrap'"), {2, 3, 4, 1}},
		{SHIFT("0.125", ", 'fill_mode': 'wrap'"), {2.5, 1.5, 2.5, 3.5}},
		{SHIFT("0.5", ", 'fill_mode': 'nearest'"), {1, 1, 1, 2}},
		{SHIFT("-0.75", ", 'fill_mode': 'nearest'"), {4, 4, 4, 4}},
		{SHIFT("0.25", ", 'fill_mode': 'constant'"), {0, 1, 2, 3}},
		{SHIFT("-0.5", ", 'fill_mode': 'constant', 'fill_value': 9"), {3, 4, 9, 9}},
		{SHIFT("0.125", ", 'fill_mode': 'constant', 'fill_value': 3"), {2, 1.5, 2.5, 3.5}},
		{SHIFT("0.5", ", 'fill_mode': 'constant', 'interpolation': 'nearest'"),
		 {0, 0, 1, 2}},
		{LAYER("RandomZoom", ", 'height_factor': [1, 1], 'fill_mode': 'constant', "
				     "'interpolation': 'nearest'"),
		 {0, 2, 4, 0}},
		{LAYER("RandomRotation", ", 'factor': [0.5, 0.5]"), {4, 3, 2, 1}},
	};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		struct layer_rig rig;

		open_counting(&rig, rows[r].layer, 1, 4, 1);
		for (size_t i = 0; i < 4; i++)
			rig.x[i] = (float)i + 1.0f;
		layer_rig_forward(&rig);
		for (size_t i = 0; i < 4; i++)
			if (rig.y[i] != rows[r].y[i])
				fail_msg("%s: pixel %zu is %g, not %g", rows[r].layer, i,
					 (double)rig.y[i], (double)rows[r].y[i]);
		layer_rig_close(&rig);
	}
}

/* ---- inference ------------------------------------------------------------------------------- */

static void check_same(const char *layer, const char *as, int64_t height, int64_t width,
		       bool training)
{
	const int64_t dims[] = {height, width, 2};
	struct layer_rig rig, other;

	layer_rig_open(&rig, layer, 3, dims, 2, training, NULL);
	layer_rig_open(&other, as, 3, dims, 2, training, NULL);
	layer_rig_fill(&rig);
	layer_rig_fill(&other);
	layer_rig_forward(&rig);
	layer_rig_forward(&other);
	layer_rig_backward(&rig);
	layer_rig_backward(&other);
	assert_int_equal(rig.out, other.out);
	assert_memory_equal(rig.y, other.y, rig.out * sizeof(float));
	assert_memory_equal(rig.dx, other.dx, rig.in * sizeof(float));
	layer_rig_close(&rig);
	layer_rig_close(&other);
}

static void test_what_is_random_hands_its_input_on_outside_of_training(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		if (strstr(layers[l], "Random") && !strstr(layers[l], "RandomCrop"))
			check_same(layers[l], LAYER("Activation", ", 'activation': 'linear'"), 6, 7,
				   false);
}

/* A crop that is random in training, and one that does not fit, take the greatest window of the
 * same proportions. */
static void test_crops_resize_the_middle_where_they_cannot_cut(void **state)
{
	static const char resized[] =
		LAYER("Resizing", ", 'height': 4, 'width': 2, 'crop_to_aspect_ratio': true");
	static const char enlarged[] =
		LAYER("Resizing", ", 'height': 9, 'width': 5, 'crop_to_aspect_ratio': true");

	(void)state;
	check_same(LAYER("RandomCrop", ", 'height': 4, 'width': 2"), resized, 6, 7, false);
	check_same(LAYER("RandomCrop", ", 'height': 9, 'width': 5"), enlarged, 6, 7, true);
	check_same(LAYER("CenterCrop", ", 'height': 9, 'width': 5"), enlarged, 6, 7, true);
	check_same(LAYER("CenterCrop", ", 'height': 6, 'width': 4"),
		   LAYER("Cropping2D", ", 'cropping': [[0, 0], [1, 2]]"), 6, 7, false);
	check_same(LAYER("Resizing", ", 'height': 6, 'width': 7"),
		   LAYER("Activation", ", 'activation': 'linear'"), 6, 7, true);
	check_same(LAYER("Resizing", ", 'height': 12, 'width': 14, 'interpolation': 'nearest'"),
		   LAYER("UpSampling2D", ""), 6, 7, true);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* All are linear: the sum of dy times what x + e_i becomes is dx's. Some draws of each. */
static void test_gradients_are_those_of_differences(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		float slopes[1000], dx[1000];
		struct layer_rig rig;

		layer_rig_open(&rig, layers[l], 3, (const int64_t[]){6, 7, 2}, 3, true, NULL);
		assert_true(rig.out <= ARRAY_LEN(slopes) && rig.in <= ARRAY_LEN(dx));
		math_fill(slopes, rig.out, 2, -1.0f, 1.0f);
		math_fill(rig.x, rig.in, 1, -1.0f, 1.0f);
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		rig.pass.step = l;
		layer_rig_backward(&rig);
		memcpy(dx, rig.dx, rig.in * sizeof(float));
		for (size_t i = 0; i < rig.in; i++) {
			const float kept = rig.x[i];
			double wanted = 0.0;

			for (int sign = -1; sign < 2; sign += 2) {
				rig.x[i] = kept + (float)sign * 0.5f;
				layer_rig_forward(&rig);
				for (size_t o = 0; o < rig.out; o++)
					wanted += sign * (double)slopes[o] * (double)rig.y[o];
			}
			rig.x[i] = kept;
			if (fabs((double)dx[i] - wanted) > 2e-5)
				fail_msg("%s: gradient %zu is %g, not %g", layers[l], i,
					 (double)dx[i], wanted);
		}
		/* And it is added where it is asked for. */
		math_fill(rig.dx, rig.in, 3, 7.0f, 7.0f);
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		rig.add[0] = true;
		layer_rig_backward(&rig);
		for (size_t i = 0; i < rig.in; i++)
			assert_true(fabs((double)(rig.dx[i] - 7.0f - dx[i])) < 1e-5);
		rig.pass.training = false;
		rig.add[0] = false;
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		layer_rig_backward(&rig);
		rig.add[0] = true;
		memcpy(dx, rig.dx, rig.in * sizeof(float));
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		layer_rig_backward(&rig);
		for (size_t i = 0; i < rig.in; i++)
			assert_true(fabs((double)(rig.dx[i] - 2.0f * dx[i])) < 1e-5);
		layer_rig_close(&rig);
	}
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		layer_rig_check_pools(layers[l], (const int64_t[]){37, 45, 3}, 23, layer_rig_fill,
				      NULL);
}

/* ---- reading --------------------------------------------------------------------------------- */

#define POLICY                                                                                     \
	"'dtype': {'module': 'keras', 'class_name': 'DTypePolicy', 'config': {'name': "            \
	"'float32'}, "                                                                             \
	"'registered_name': null}, 'trainable': true, 'data_format': 'channels_last'"
#define KERAS3(name, options)                                                                      \
	"[{'module': 'keras.layers', 'class_name': '" name "', 'registered_name': null, "          \
	"'build_config': {'input_shape': [null, 6, 7, 2]}, 'config': {'name': 'l', " POLICY        \
	", " options "}}]"
#define KERAS2(name, options)                                                                      \
	"[{'module': 'keras.layers.preprocessing.image_preprocessing', 'class_name': '" name       \
	"', 'config': {'name': 'l', 'trainable': true, 'dtype': 'float32', 'batch_input_shape': "  \
	"[null, 6, 7, 2], " options "}}]"

/* All options as both write them, and what they come to. */
static void test_keras_2_and_3_say_the_same(void **state)
{
	static const char *const rows[][3] = {
		{KERAS3("RandomFlip", "'seed': null, 'mode': 'vertical'"),
		 KERAS2("RandomFlip", "'mode': 'vertical', 'seed': null"),
		 LAYER("RandomFlip", ", 'mode': 'vertical'")},
		{KERAS3("RandomCrop", "'height': 3, 'width': 2, 'seed': 7"),
		 KERAS2("RandomCrop", "'height': 3, 'width': 2, 'seed': 7"),
		 LAYER("RandomCrop", ", 'height': 3, 'width': 2, 'seed': 7")},
		{KERAS3("RandomRotation",
			"'factor': [-0.2, 0.2], 'fill_mode': 'reflect', "
			"'fill_value': 0.0, 'interpolation': 'bilinear', 'seed': null"),
		 KERAS2("RandomRotation",
			"'factor': 0.2, 'fill_mode': 'reflect', 'fill_value': 0.0, "
			"'interpolation': 'bilinear', 'seed': null"),
		 LAYER("RandomRotation", ", 'factor': 0.2")},
		{KERAS3("RandomZoom", "'height_factor': 0.2, 'width_factor': null, 'fill_mode': "
				      "'reflect', 'interpolation': 'bilinear', 'seed': null, "
				      "'fill_value': 0.0"),
		 KERAS2("RandomZoom", "'height_factor': [-0.2, 0.2], 'width_factor': null, "
				      "'fill_mode': 'reflect', 'fill_value': 0.0, 'interpolation': "
				      "'bilinear', 'seed': null"),
		 LAYER("RandomZoom", ", 'height_factor': 0.2")},
		{KERAS3("RandomTranslation", "'height_factor': 0.2, 'width_factor': 0.1, "
					     "'fill_mode': 'reflect', 'interpolation': 'bilinear', "
					     "'seed': null, 'fill_value': 0.0"),
		 KERAS2("RandomTranslation", "'height_factor': 0.2, 'width_factor': 0.1, "
					     "'fill_mode': 'reflect', 'fill_value': 0.0, "
					     "'interpolation': 'bilinear', 'seed': null"),
		 LAYER("RandomTranslation", ", 'height_factor': 0.2, 'width_factor': 0.1")},
		{KERAS3("Resizing",
			"'height': 3, 'width': 9, 'interpolation': 'bilinear', "
			"'crop_to_aspect_ratio': false, 'pad_to_aspect_ratio': false, "
			"'fill_mode': 'constant', 'fill_value': 0.0, 'antialias': false"),
		 KERAS2("Resizing", "'height': 3, 'width': 9, 'interpolation': 'bilinear', "
				    "'crop_to_aspect_ratio': false"),
		 LAYER("Resizing", ", 'height': 3, 'width': 9")},
		{KERAS3("CenterCrop", "'height': 3, 'width': 4"),
		 KERAS2("CenterCrop", "'height': 3, 'width': 4"),
		 LAYER("CenterCrop", ", 'height': 3, 'width': 4")},
	};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++)
		for (int by = 0; by < 2; by++)
			check_same(rows[r][by], rows[r][2], 6, 7, true);
}

/* ---- refusals and costs ---------------------------------------------------------------------- */

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{LAYER("RandomFlip", ", 'mode': 'diagonal'"), "config.mode", ST_INVALID},
		{LAYER("RandomCrop", ", 'height': 2"), "width", ST_INVALID},
		{LAYER("RandomCrop", ", 'height': 0, 'width': 2"), "config.height", ST_INVALID},
		{LAYER("CenterCrop", ", 'height': 2, 'width': 1e9"), "config.width", ST_INVALID},
		{LAYER("RandomRotation", ""), "factor", ST_INVALID},
		{LAYER("RandomRotation", ", 'factor': 1.5"), "config.factor", ST_INVALID},
		{LAYER("RandomRotation", ", 'factor': [0, 0.1, 0.2]"), "[lower, upper]",
		 ST_INVALID},
		{LAYER("RandomRotation", ", 'factor': 0.1, 'fill_mode': 'mirror'"),
		 "config.fill_mode", ST_INVALID},
		{LAYER("RandomRotation", ", 'factor': 0.1, 'interpolation': 'bicubic'"),
		 "config.interpolation", ST_UNSUPPORTED},
		{LAYER("RandomRotation", ", 'factor': 0.1, 'fill_value': 1e99"),
		 "config.fill_value", ST_INVALID},
		{LAYER("RandomZoom", ", 'height_factor': [-1, 0]"), "must be above -1", ST_INVALID},
		{LAYER("RandomTranslation", ", 'height_factor': 0.1"), "width_factor", ST_INVALID},
		{LAYER("RandomContrast", ", 'factor': 0.1"), "not their contrast", ST_UNSUPPORTED},
		{LAYER("RandomHeight", ", 'factor': 0.1"), "\"RandomZoom\" comes nearest",
		 ST_UNSUPPORTED},
		{LAYER("Resizing", ", 'height': 4, 'width': 4, 'pad_to_aspect_ratio': true"),
		 "config.pad_to_aspect_ratio", ST_UNSUPPORTED},
		{LAYER("Resizing", ", 'height': 4, 'width': 4, 'antialias': true"),
		 "config.antialias", ST_UNSUPPORTED},
		{LAYER("Resizing", ", 'height': 4, 'width': 4, 'data_format': 'channels_first'"),
		 "config.data_format", ST_UNSUPPORTED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 3, (const int64_t[]){5, 4, 3}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(LAYER("RandomFlip", ""), 2, (const int64_t[]){5, 4}, ST_INVALID,
			  "RandomFlip needs images");
}

/* Two items of 4 x 6 pixels of 3 channels. */
static void test_layers_become_device_operations(void **state)
{
	static const struct {
		const char *layer;
		const char *forward[5], *backward[5], *inference[5];
	} rows[] = {
		{LAYER("RandomFlip", ""),
		 {"l/RandomUniform elementwise 2*0 random=1 makes=2 training: -> k",
		  "l/Reverse copy 144/3 makes=144 training: x -> c",
		  "l/Select elementwise 144*2/2 select=1 training: x k c -> y"},
		 {"l/Reverse/Grad copy 144/3 makes=144 training: dy -> c",
		  "l/Select/Grad elementwise 144*2/2 select=1 training: k c dy -> dx"},
		 {NULL}},
		{LAYER("RandomCrop", ", 'height': 2, 'width': 2"),
		 {"l/RandomUniform elementwise 2*0 random=1 makes=2 training: -> k",
		  "l/DynamicSlice copy 24/3: x k -> y"},
		 {"l/DynamicSlice/Grad copy 144/3: k dy -> dx"},
		 {"l/ResizeBilinear/Columns copy 96/3 makes=96: x -> b",
		  "l/ResizeBilinear/Columns/Lerp elementwise 48*2/2 add=3 makes=48: b -> c",
		  "l/ResizeBilinear/Rows copy 48/6 makes=48: c -> b",
		  "l/ResizeBilinear/Rows/Lerp elementwise 24*2/2 add=3: b -> y"}},
		{LAYER("RandomRotation", ", 'factor': 0.1"),
		 {"l/RandomUniform elementwise 2*0 random=1 makes=2 training: -> k",
		  "l/Coordinates elementwise 96*0/2 add=4 select=2 makes=96 training: k -> b",
		  "l/Gather slice 2*24x3/96 makes=576 training: x b -> c",
		  "l/Interpolate elementwise 144*4/96 add=9 training: b c -> y"},
		 {"l/Coordinates elementwise 96*0/2 add=4 select=2 makes=96 training: k -> b",
		  "l/Interpolate/Grad elementwise 576*1/96 add=2 makes=576 training: b dy -> c",
		  "l/Fill elementwise 144*0 fill=1: -> dx",
		  "l/Gather/Grad slice 2*24x3/96 training: b c -> dx"},
		 {NULL}},
		{LAYER("RandomZoom", ", 'height_factor': 0.1, 'fill_mode': 'constant', "
				     "'interpolation': 'nearest'"),
		 {"l/RandomUniform elementwise 2*0 random=1 makes=2 training: -> k",
		  "l/Coordinates elementwise 96*0/2 add=4 select=2 makes=96 training: k -> b",
		  "l/Gather slice 2*24x3/24 makes=144 training: x b -> c",
		  "l/Interpolate elementwise 144*1/96 select=1 training: b c -> y"},
		 {"l/Coordinates elementwise 96*0/2 add=4 select=2 makes=96 training: k -> b",
		  "l/Interpolate/Grad elementwise 144*1/96 select=1 makes=144 training: b dy -> c",
		  "l/Fill elementwise 144*0 fill=1: -> dx",
		  "l/Gather/Grad slice 2*24x3/24 training: b c -> dx"},
		 {NULL}},
		{LAYER("RandomTranslation",
		       ", 'height_factor': 0.1, 'width_factor': 0.1, 'interpolation': 'nearest'"),
		 {"l/RandomUniform elementwise 4*0 random=1 makes=4 training: -> k",
		  "l/Coordinates elementwise 96*0/2 add=4 select=2 makes=96 training: k -> b",
		  "l/Gather slice 2*24x3/24 training: x b -> y"},
		 {"l/Coordinates elementwise 96*0/2 add=4 select=2 makes=96 training: k -> b",
		  "l/Fill elementwise 144*0 fill=1: -> dx",
		  "l/Gather/Grad slice 2*24x3/24 training: b dy -> dx"},
		 {NULL}},
		{LAYER("CenterCrop", ", 'height': 2, 'width': 5"),
		 {"l/Slice copy 60/3: x -> y"},
		 {"l/Slice/Grad copy 144/3: dy -> dx"},
		 {"l/Slice copy 60/3: x -> y"}},
		{LAYER("Resizing", ", 'height': 8, 'width': 9"),
		 {"l/ResizeBilinear/Columns copy 432/3 makes=432: x -> b",
		  "l/ResizeBilinear/Columns/Lerp elementwise 216*2/9 add=3 makes=216: b -> c",
		  "l/ResizeBilinear/Rows copy 864/27 makes=864: c -> b",
		  "l/ResizeBilinear/Rows/Lerp elementwise 432*2/8 add=3: b -> y"},
		 {"l/ResizeBilinear/Grad/Rows/Lerp elementwise 864*1/8 add=1 makes=864: dy -> b",
		  "l/ResizeBilinear/Grad/Rows reduce 864>216 makes=216: b -> c",
		  "l/ResizeBilinear/Grad/Columns/Lerp elementwise 432*1/9 add=1 makes=432: c -> b",
		  "l/ResizeBilinear/Grad/Columns reduce 432>144: b -> dx"},
		 {"l/ResizeBilinear/Columns copy 432/3 makes=432: x -> b",
		  "l/ResizeBilinear/Columns/Lerp elementwise 216*2/9 add=3 makes=216: b -> c",
		  "l/ResizeBilinear/Rows copy 864/27 makes=864: c -> b",
		  "l/ResizeBilinear/Rows/Lerp elementwise 432*2/8 add=3: b -> y"}},
		{LAYER("Resizing", ", 'height': 8, 'width': 9, 'interpolation': 'nearest'"),
		 {"l/ResizeNearest copy 432/3: x -> y"},
		 {"l/ResizeNearest/Grad reduce 432>144: dy -> dx"},
		 {"l/ResizeNearest copy 432/3: x -> y"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;

		math_model_open(&m, rows[i].layer, 3, (const int64_t[]){4, 6, 3});
		lowered_check(m.model, 0, 2, 'F', false, rows[i].forward);
		lowered_check(m.model, 0, 2, 'B', false, rows[i].backward);
		lowered_check_evaluation(m.model, 0, 2, rows[i].inference);
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_of_the_items_are_flipped_both_ways_at_once),
		cmocka_unit_test(test_a_seed_and_a_step_draw_anew),
		cmocka_unit_test(test_a_crop_is_at_one_place_for_all_items_and_anywhere_over_steps),
		cmocka_unit_test(test_shares_are_drawn_from_all_of_their_range),
		cmocka_unit_test(test_fills_are_as_keras_says),
		cmocka_unit_test(test_what_is_random_hands_its_input_on_outside_of_training),
		cmocka_unit_test(test_crops_resize_the_middle_where_they_cannot_cut),
		cmocka_unit_test(test_keras_2_and_3_say_the_same),
		cmocka_unit_test(test_gradients_are_those_of_differences),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
