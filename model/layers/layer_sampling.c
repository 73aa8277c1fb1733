/*
 * Layers whose output pixels are sampled from the input: CenterCrop, RandomCrop, RandomFlip,
 * RandomRotation, RandomTranslation, RandomZoom, Resizing and UpSampling2D. Random ones act in
 * training only and draw per item; a crop, as in Keras, draws once per batch (here: per
 * micro-batch). struct layer_sampling has the formulas; their source is Keras's layers.
 *
 * Random numbers are those of (seed, layer, step, replica), so they do not depend on threads.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

#define SIDE_MOST 65536 /* limit on an output side in pixels */

/* ---- reading --------------------------------------------------------------------------------- */

/* clang-format off */
#define IMAGES {"data_format", .rule = MODEL_CHANNELS_LAST}, {"bounding_box_format", .rule = MODEL_ANY}
#define SIDES  {"height", .rule = MODEL_ANY}, {"width", .rule = MODEL_ANY}
#define SEED   {"seed", .rule = MODEL_ANY}
#define FILLS  {"fill_mode", .rule = MODEL_ANY}, {"fill_value", .rule = MODEL_ANY}, {"interpolation", .rule = MODEL_ANY}
static const struct model_option center_crop_options[] = {SIDES, IMAGES};
static const struct model_option random_crop_options[] = {SIDES, SEED, IMAGES};
static const struct model_option random_flip_options[] = {{"mode", .rule = MODEL_ANY}, SEED, IMAGES};
static const struct model_option resizing_options[] = {
	SIDES,
	FILLS,
	{"crop_to_aspect_ratio", .rule = MODEL_ANY},
	{"pad_to_aspect_ratio", .rule = MODEL_FALSE},
	{"antialias", .rule = MODEL_FALSE},
	IMAGES,
};
static const struct model_option up_sampling_options[] = {
	{"size", .rule = MODEL_ANY},
	{"interpolation", .rule = MODEL_ANY},
	{"data_format", .rule = MODEL_CHANNELS_LAST},
};
static const struct model_option rotation_options[] = {{"factor", .rule = MODEL_ANY}, FILLS, SEED, IMAGES};
static const struct model_option affine_options[] = {
	{"height_factor", .rule = MODEL_ANY}, {"width_factor", .rule = MODEL_ANY}, FILLS, SEED, IMAGES,
};
/* clang-format on */

/* Make layer->config the identity, with the seed of the options. */
static struct layer_sampling *sampling_begin(const struct layer_reading *in)
{
	struct layer_sampling *s = in->layer->config;

	for (int way = 0; way < LAYER_WAYS; way++)
		s->size[way] = layer_side(&in->layer->input, way);
	s->fill = LAYER_FILL_NEAREST;
	layer__read_seed(in, &s->seed);
	return s;
}

/* Read the output's "height" and "width". */
static void read_output(const struct layer_reading *in)
{
	static const char *const keys[LAYER_WAYS] = {"height", "width"};
	int64_t sides[LAYER_WAYS] = {1, 1};
	struct json_at here;

	for (int way = 0; way < LAYER_WAYS; way++)
		if (model_option_need(in->config, keys[way], &here, in->err))
			json_int(&here, 1, SIDE_MOST, &sides[way], in->err);
	layer__set_output(in->layer, sides, layer_last_dim(&in->layer->input));
}

/* Set the greatest centred window with the output's proportions, rounded as in Keras. */
static void set_window(struct layer_sampling *s, const struct model_layer *layer)
{
	int64_t whole[LAYER_WAYS];

	memcpy(whole, s->size, sizeof(whole));
	for (int way = 0; way < LAYER_WAYS; way++) {
		const int64_t out = layer_side(&layer->output, way);
		const int64_t other = layer_side(&layer->output, !way);

		s->size[way] = max(min(whole[way], whole[!way] * out / other), (int64_t)1);
		s->first[way] = (whole[way] - s->size[way]) / 2;
	}
}

/* A window of the output's size is copied without interpolation. */
static bool is_copy(const struct layer_sampling *s, const struct model_layer *layer)
{
	return s->size[LAYER_Y] == layer_side(&layer->output, LAYER_Y) &&
	       s->size[LAYER_X] == layer_side(&layer->output, LAYER_X);
}

static bool fits(const struct model_layer *layer)
{
	return layer_side(&layer->output, LAYER_Y) <= layer_side(&layer->input, LAYER_Y) &&
	       layer_side(&layer->output, LAYER_X) <= layer_side(&layer->input, LAYER_X);
}

/* Copies the centre; if the image is too small, enlarges the window. */
static enum status center_crop_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_sampling *s = sampling_begin(in);

	read_output(in);
	for (int way = 0; way < LAYER_WAYS && fits(layer); way++) {
		s->first[way] = (s->size[way] - layer_side(&layer->output, way)) / 2;
		s->size[way] = layer_side(&layer->output, way);
	}
	if (!fits(layer))
		set_window(s, layer);
	s->bilinear = !is_copy(s, layer);
	return in->err->status;
}

/* In inference, and for images that are too small, the window is resized. */
static enum status random_crop_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_sampling *s = sampling_begin(in);

	read_output(in);
	set_window(s, layer);
	s->bilinear = !is_copy(s, layer);
	s->by = fits(layer) ? LAYER_SAMPLING_CROP : LAYER_SAMPLING_WINDOW;
	return in->err->status;
}

static enum status random_flip_read(const struct layer_reading *in)
{
	static const char *const modes[] = {"horizontal_and_vertical", "vertical", "horizontal"};
	struct layer_sampling *s = sampling_begin(in);
	size_t mode = 0;

	model_option_choice(in->config, "mode", modes, ARRAY_LEN(modes), &mode, in->err);
	s->by = LAYER_SAMPLING_FLIP;
	s->flips[LAYER_Y] = mode != 2;
	s->flips[LAYER_X] = mode != 1;
	return in->err->status;
}

/* Read "interpolation"; @bilinear is the default. */
static bool read_bilinear(const struct layer_reading *in, bool bilinear)
{
	const char *text = bilinear ? "bilinear" : "nearest";
	struct json_at here;

	if (!model_option_given(in->config, "interpolation", &here, in->err) ||
	    json_text(&here, &text, in->err) != ST_OK)
		return bilinear;
	if (strcmp(text, "bilinear") != 0 && strcmp(text, "nearest") != 0)
		model_config_unsupported(&here, in->err,
					 "not supported: it must be \"nearest\" or \"bilinear\"");
	return !strcmp(text, "bilinear");
}

static enum status resizing_read(const struct layer_reading *in)
{
	struct layer_sampling *s = sampling_begin(in);
	bool crops = false;

	read_output(in);
	model_option_bool(in->config, "crop_to_aspect_ratio", &crops, in->err);
	if (crops)
		set_window(s, in->layer);
	s->bilinear = read_bilinear(in, true) && !is_copy(s, in->layer);
	return in->err->status;
}

static enum status up_sampling_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_sampling *s = sampling_begin(in);
	int64_t sides[LAYER_WAYS];

	if (layer__window_option(in, "size", 1, SIDE_MOST, 2, sides) != ST_OK)
		return in->err->status;
	for (int way = 0; way < LAYER_WAYS; way++)
		sides[way] *= s->size[way];
	layer__set_output(layer, sides, layer_last_dim(&layer->input));
	s->bilinear = read_bilinear(in, false) && !is_copy(s, layer);
	return in->err->status;
}

/* Read a number (used with both signs) or [lower, upper] in any order, from -1 to 1; @open excludes
 * -1. */
static void read_share(const struct json_at *at, bool open, double out[2], struct err *err)
{
	const bool list = cJSON_IsArray(at->node);
	struct json_at item = *at;
	double ends[2] = {0.0, 0.0};

	if (list && json_count(at) != 2)
		json_fail(at, err, "must be a number or [lower, upper]");
	for (int i = 0; i < 2 && !err_stuck(err); i++) {
		if (list)
			json_item(at, i, &item);
		if (json_real(&item, &ends[i], err) == ST_OK &&
		    !(ends[i] <= 1.0 && (open ? ends[i] > -1.0 : ends[i] >= -1.0)))
			json_fail(&item, err, "must be %s -1 and at most 1",
				  open ? "above" : "at least");
	}
	if (!list)
		ends[0] = -ends[1];
	out[0] = min(ends[0], ends[1]);
	out[1] = max(ends[0], ends[1]);
}

/* Read RandomRotation, RandomTranslation and RandomZoom. */
static enum status random_affine_read(const struct layer_reading *in)
{
	static const char *const fills[] = {
		[LAYER_FILL_REFLECT] = "reflect",
		[LAYER_FILL_WRAP] = "wrap",
		[LAYER_FILL_CONSTANT] = "constant",
		[LAYER_FILL_NEAREST] = "nearest",
	};
	const bool turns = in->layer->ops == &layer_random_rotation;
	const bool zooms = in->layer->ops == &layer_random_zoom;
	struct layer_sampling *s = sampling_begin(in);
	size_t fill = LAYER_FILL_REFLECT;
	struct json_at here;
	double value = 0.0;

	s->by = turns ? LAYER_SAMPLING_TURN : zooms ? LAYER_SAMPLING_ZOOM : LAYER_SAMPLING_SHIFT;
	if (model_option_need(in->config, turns ? "factor" : "height_factor", &here, in->err))
		read_share(&here, zooms, s->share[LAYER_Y], in->err);
	s->joined = zooms && !model_option_at(in->config, "width_factor", &here, in->err);
	if (!turns && !s->joined && model_option_need(in->config, "width_factor", &here, in->err))
		read_share(&here, zooms, s->share[LAYER_X], in->err);
	model_option_choice(in->config, "fill_mode", fills, ARRAY_LEN(fills), &fill, in->err);
	if (model_option_at(in->config, "fill_value", &here, in->err) &&
	    json_real(&here, &value, in->err) == ST_OK && !isfinite((float)value))
		return json_fail(&here, in->err, "must be a finite number");
	s->fill = (enum layer_fill)fill;
	s->fill_value = (float)value;
	s->bilinear = read_bilinear(in, true);
	return in->err->status;
}

bool layer_sampling_now(const struct model_layer *layer, bool training, struct layer_sampling *out)
{
	*out = *(const struct layer_sampling *)layer->config;
	if (out->by == LAYER_SAMPLING_WINDOW)
		return true;
	if (out->by != LAYER_SAMPLING_CROP)
		return training;
	if (!training) {
		out->by = LAYER_SAMPLING_WINDOW;
		return true;
	}
	/* The window then begins at the drawn offset. */
	out->bilinear = false;
	for (int way = 0; way < LAYER_WAYS; way++)
		out->size[way] = layer_side(&layer->output, way);
	return true;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t sampling_flops(const struct model_layer *layer, int64_t batch)
{
	struct layer_sampling s;

	if (!layer_sampling_now(layer, true, &s) || !s.bilinear)
		return 0;
	return 9 * batch * model_shape_count(&layer->output);
}

static struct layer_op with_makes(struct layer_op op, int64_t makes)
{
	op.makes = makes;
	return op;
}

/* Interpolate between two values for each of @count (3 operations); backward, two products. */
static struct layer_op lerp(int64_t count, int64_t weights, bool forward, unsigned reads,
			    unsigned writes)
{
	return layer__map(&(struct ipu_elements){.count = forward ? count : 2 * count,
						 .operands = forward ? 2 : 1,
						 .broadcast = weights,
						 .times = {[IPU_FN_ADD] = forward ? 3 : 1}},
			  reads, writes);
}

/* Along each axis, gather pairs of neighbours and interpolate between them; the indices are
 * known when the program is compiled. Backward, two products each, which are summed. */
static void resize_lower(struct layer_lowering *lowering, const struct layer_sampling *s)
{
	const struct model_shape *output = &lowering->layer->output;
	const int64_t channels = layer_last_dim(output);
	const int64_t in = lowering->batch * model_shape_count(&lowering->layer->input);
	const int64_t out = layer__lower_count(lowering);
	const int64_t half = lowering->batch * s->size[LAYER_Y] * output->dim[LAYER_X] * channels;
	struct layer_op op;

	if (lowering->phase == IPU_PHASE_F) {
		op = with_makes(layer__copy(2 * half, channels, LAYER_INPUT, LAYER_BETWEEN),
				2 * half);
		layer__lower(lowering, "ResizeBilinear/Columns", &op);
		op = with_makes(
			lerp(half, output->dim[LAYER_X], true, LAYER_BETWEEN, LAYER_BETWEEN_TOO),
			half);
		layer__lower(lowering, "ResizeBilinear/Columns/Lerp", &op);
		op = with_makes(layer__copy(2 * out, output->dim[LAYER_X] * channels,
					    LAYER_BETWEEN_TOO, LAYER_BETWEEN),
				2 * out);
		layer__lower(lowering, "ResizeBilinear/Rows", &op);
		op = lerp(out, output->dim[LAYER_Y], true, LAYER_BETWEEN, LAYER_OUTPUT);
		layer__lower(lowering, "ResizeBilinear/Rows/Lerp", &op);
		return;
	}
	op = with_makes(lerp(out, output->dim[LAYER_Y], false, LAYER_GRAD_OUTPUT, LAYER_BETWEEN),
			2 * out);
	layer__lower(lowering, "ResizeBilinear/Grad/Rows/Lerp", &op);
	op = layer__reduce(2 * out, half, LAYER_BETWEEN, LAYER_BETWEEN_TOO);
	layer__lower(lowering, "ResizeBilinear/Grad/Rows", &op);
	op = with_makes(lerp(half, output->dim[LAYER_X], false, LAYER_BETWEEN_TOO, LAYER_BETWEEN),
			2 * half);
	layer__lower(lowering, "ResizeBilinear/Grad/Columns/Lerp", &op);
	op = layer__reduce(2 * half, in, LAYER_BETWEEN, LAYER_GRAD_INPUT);
	op.makes = 0;
	layer__lower(lowering, "ResizeBilinear/Grad/Columns", &op);
}

/* Copy a window, or its nearest pixels (repeated if it is enlarged). @places: the tensor of the
 * window's random offset, or 0. */
static void slice_lower(struct layer_lowering *lowering, const char *part, unsigned places)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const int64_t in = lowering->batch * model_shape_count(&layer->input);
	const int64_t out = layer__lower_count(lowering);
	struct layer_op op = layer__copy(forward ? out : in, layer_last_dim(&layer->output),
					 forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
					 forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	if (!forward && out > in)
		op = with_makes(layer__reduce(out, in, LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT), 0);
	op.reads |= places;
	layer__lower(lowering, part, &op);
}

/* Like tf.where(flips, tf.reverse(x), x). */
static void flip_lower(struct layer_lowering *lowering, unsigned decisions)
{
	const bool forward = lowering->phase == IPU_PHASE_F;
	const int64_t count = layer__lower_count(lowering);
	const unsigned from = forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT;
	struct layer_op op = with_makes(layer__copy(count, layer_last_dim(&lowering->layer->output),
						    from, LAYER_BETWEEN_TOO),
					count);

	op.training_only = true;
	layer__lower(lowering, forward ? "Reverse" : "Reverse/Grad", &op);
	op = layer__map(&(struct ipu_elements){.count = count,
					       .operands = 2,
					       .broadcast = lowering->batch,
					       .times = {[IPU_FN_SELECT] = 1}},
			from | LAYER_BETWEEN_TOO | decisions,
			forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);
	op.training_only = true;
	layer__lower(lowering, forward ? "Select" : "Select/Grad", &op);
}

/* Compute the coordinates of each pixel, gather its neighbours like an embedding's rows, and
 * interpolate with a map: popops has no operation for this. */
static void affine_lower(struct layer_lowering *lowering, const struct layer_sampling *s,
			 unsigned drawn)
{
	const bool forward = lowering->phase == IPU_PHASE_F;
	const bool fills = s->fill == LAYER_FILL_CONSTANT, maps = s->bilinear || fills;
	const int64_t pixels = layer_rows(lowering->layer, lowering->batch);
	const int64_t out = layer__lower_count(lowering), corners = s->bilinear ? 4 : 1;
	const struct layer_op zeros =
		layer__map(&(struct ipu_elements){.count = out, .times = {[IPU_FN_FILL] = 1}}, 0,
			   LAYER_GRAD_INPUT);
	const struct ipu_elements each = {
		.count = forward ? out : corners * out,
		.operands = forward ? corners : 1,
		.broadcast = LAYER_WAYS * pixels,
		.times = {[IPU_FN_ADD] = s->bilinear ? (forward ? 9 : 2) : 0,
			  [IPU_FN_SELECT] = fills}};
	struct layer_op coordinates =
		layer__map(&(struct ipu_elements){.count = LAYER_WAYS * pixels,
						  .broadcast = lowering->batch,
						  .times = {[IPU_FN_ADD] = 4, [IPU_FN_SELECT] = 2}},
			   drawn, LAYER_BETWEEN);
	struct layer_op lookup = {
		.op = {.kind = IPU_OP_SLICE,
		       .slice = {.update = !forward,
				 .entries = pixels / lowering->batch,
				 .columns = layer_last_dim(&lowering->layer->output),
				 .lookups = corners * pixels / lowering->batch,
				 .tables = lowering->batch}},
		.reads = LAYER_BETWEEN};
	struct layer_op map = layer__map(&each, LAYER_BETWEEN, 0);

	coordinates = with_makes(coordinates, LAYER_WAYS * pixels);
	coordinates.full = true;
	coordinates.training_only = lookup.training_only = map.training_only = true;
	layer__lower(lowering, "Coordinates", &coordinates);
	if (forward) {
		lookup.reads |= LAYER_INPUT;
		lookup.writes = maps ? LAYER_BETWEEN_TOO : LAYER_OUTPUT;
		lookup.makes = maps ? corners * out : 0;
		layer__lower(lowering, "Gather", &lookup);
		map.reads |= LAYER_BETWEEN_TOO;
		map.writes = LAYER_OUTPUT;
		if (maps)
			layer__lower(lowering, "Interpolate", &map);
		return;
	}
	map.reads |= LAYER_GRAD_OUTPUT;
	map.writes = LAYER_BETWEEN_TOO;
	map.makes = corners * out;
	if (maps)
		layer__lower(lowering, "Interpolate/Grad", &map);
	layer__lower(lowering, "Fill", &zeros);
	lookup.reads |= maps ? LAYER_BETWEEN_TOO : LAYER_GRAD_OUTPUT;
	lookup.writes = LAYER_GRAD_INPUT;
	layer__lower(lowering, "Gather/Grad", &lookup);
}

/* Random numbers are retained if a gradient needs them. In an evaluation within training,
 * RandomCrop is planned as the slice of training: the output has the same size. */
static void sampling_lower(struct layer_lowering *lowering)
{
	const bool forward = lowering->phase == IPU_PHASE_F;
	const unsigned drawn = forward && !lowering->retains ? LAYER_BETWEEN : LAYER_KEPT;
	struct layer_sampling s;
	struct layer_op random;
	int64_t draws;

	if (!layer_sampling_now(lowering->layer, lowering->training, &s) ||
	    (!forward && !layer__wants_any(lowering)))
		return;
	draws = s.by == LAYER_SAMPLING_CROP ? LAYER_WAYS
		: s.by == LAYER_SAMPLING_SHIFT || (s.by == LAYER_SAMPLING_ZOOM && !s.joined)
			? LAYER_WAYS * lowering->batch
			: lowering->batch;
	random = with_makes(
		layer__map(&(struct ipu_elements){.count = draws, .times = {[IPU_FN_RANDOM] = 1}},
			   0, drawn),
		draws);
	random.training_only = random.full = true;
	if (forward && s.by != LAYER_SAMPLING_WINDOW)
		layer__lower(lowering, "RandomUniform", &random);
	if (s.by == LAYER_SAMPLING_FLIP)
		flip_lower(lowering, drawn);
	else if (s.by == LAYER_SAMPLING_CROP)
		slice_lower(lowering, forward ? "DynamicSlice" : "DynamicSlice/Grad", drawn);
	else if (s.by != LAYER_SAMPLING_WINDOW)
		affine_lower(lowering, &s, drawn);
	else if (s.bilinear)
		resize_lower(lowering, &s);
	else if (is_copy(&s, lowering->layer))
		slice_lower(lowering, forward ? "Slice" : "Slice/Grad", 0);
	else
		slice_lower(lowering, forward ? "ResizeNearest" : "ResizeNearest/Grad", 0);
}

#define SAMPLING_LAYER(row, name, how, own)                                                        \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(own##_options),             \
					      .config_size = sizeof(struct layer_sampling),        \
					      .images = true,                                      \
					      .read = how##_read,                                  \
					      .flops = sampling_flops,                             \
					      .lower = sampling_lower}

SAMPLING_LAYER(center_crop, "CenterCrop", center_crop, center_crop);
SAMPLING_LAYER(random_crop, "RandomCrop", random_crop, random_crop);
SAMPLING_LAYER(random_flip, "RandomFlip", random_flip, random_flip);
SAMPLING_LAYER(random_rotation, "RandomRotation", random_affine, rotation);
SAMPLING_LAYER(random_translation, "RandomTranslation", random_affine, affine);
SAMPLING_LAYER(random_zoom, "RandomZoom", random_affine, affine);
SAMPLING_LAYER(resizing, "Resizing", resizing, resizing);
SAMPLING_LAYER(up_sampling2d, "UpSampling2D", up_sampling, up_sampling);
