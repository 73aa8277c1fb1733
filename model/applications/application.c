/*
 * The table of networks, and what they share: options, pooling, the classifier. No state.
 */
#include "model/applications/application.h"

#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "model/applications/application_nets.h"
#include "model/model_config.h"

#define APPLICATION_CLASSES 1000
#define APPLICATION_MOST    1000000000

/* clang-format off */
#define RESNET(fn, least_side) .body = (fn), .side = 224, .least = (least_side), .pool_has_name = true
#define EFFICIENT .body = application_efficientnet, .top = application_efficientnet_top, .least = 32, \
	.pool_has_name = true
static const struct application_row application_rows[] = {
	{"ResNet50", "resnet50", RESNET(application_resnet, 32), .blocks = {3, 4, 6, 3}},
	{"ResNet101", "resnet101", RESNET(application_resnet, 32), .blocks = {3, 4, 23, 3}},
	{"ResNet152", "resnet152", RESNET(application_resnet, 32), .blocks = {3, 8, 36, 3}},
	{"ResNet50V2", "resnet50v2", RESNET(application_resnet_v2, 32), .blocks = {3, 4, 6, 3}},
	{"ResNet101V2", "resnet101v2", RESNET(application_resnet_v2, 32), .blocks = {3, 4, 23, 3}},
	{"ResNet152V2", "resnet152v2", RESNET(application_resnet_v2, 32), .blocks = {3, 8, 36, 3}},
	{"VGG16", "vgg16", .body = application_vgg, .top = application_vgg_top, .side = 224, .least = 32,
	 .blocks = {3, 3, 3}},
	{"VGG19", "vgg19", .body = application_vgg, .top = application_vgg_top, .side = 224, .least = 32,
	 .blocks = {4, 4, 4}},
	{"MobileNet", "mobilenet", .body = application_mobilenet, .top = application_mobilenet_top,
	 .side = 224, .least = 32, .dropout = 1e-3, .takes_alpha = true},
	{"MobileNetV2", "mobilenetv2", .body = application_mobilenet_v2,
	 .top = application_mobilenet_v2_top, .side = 224, .least = 32, .takes_alpha = true},
	{"MobileNetV3Small", "MobilenetV3small", .body = application_mobilenet_v3_small,
	 .top = application_mobilenet_v3_top, .side = 224, .least = 32, .width = 1024, .dropout = 0.2, .takes_alpha = true,
	 .narrows = true},
	{"MobileNetV3Large", "MobilenetV3large", .body = application_mobilenet_v3_large,
	 .top = application_mobilenet_v3_top, .side = 224, .least = 32, .width = 1280, .dropout = 0.2, .takes_alpha = true,
	 .narrows = true},
	{"DenseNet121", "densenet121", RESNET(application_densenet, 32), .blocks = {6, 12, 24, 16}},
	{"DenseNet169", "densenet169", RESNET(application_densenet, 32), .blocks = {6, 12, 32, 32}},
	{"DenseNet201", "densenet201", RESNET(application_densenet, 32), .blocks = {6, 12, 48, 32}},
	{"EfficientNetB0", "efficientnetb0", EFFICIENT, .side = 224, .width = 1.0, .depth = 1.0, .dropout = 0.2},
	{"EfficientNetB1", "efficientnetb1", EFFICIENT, .side = 240, .width = 1.0, .depth = 1.1, .dropout = 0.2},
	{"EfficientNetB2", "efficientnetb2", EFFICIENT, .side = 260, .width = 1.1, .depth = 1.2, .dropout = 0.3},
	{"EfficientNetB3", "efficientnetb3", EFFICIENT, .side = 300, .width = 1.2, .depth = 1.4, .dropout = 0.3},
	{"EfficientNetB4", "efficientnetb4", EFFICIENT, .side = 380, .width = 1.4, .depth = 1.8, .dropout = 0.4},
	{"EfficientNetB5", "efficientnetb5", EFFICIENT, .side = 456, .width = 1.6, .depth = 2.2, .dropout = 0.4},
	{"EfficientNetB6", "efficientnetb6", EFFICIENT, .side = 528, .width = 1.8, .depth = 2.6, .dropout = 0.5},
	{"EfficientNetB7", "efficientnetb7", EFFICIENT, .side = 600, .width = 2.0, .depth = 3.1, .dropout = 0.5},
	{"Xception", "xception", .body = application_xception, .side = 299, .least = 71},
	{"InceptionV3", "inception_v3", .body = application_inception, .side = 299, .least = 75},
	{"NASNetMobile", "NASNet", .body = application_nasnet, .top = application_nasnet_top, .side = 224, .least = 32,
	 .blocks = {4, 32, 44, false}},
	{"NASNetLarge", "NASNet", .body = application_nasnet, .top = application_nasnet_top, .side = 331, .least = 32,
	 .blocks = {6, 96, 168, true}},
};
/* clang-format on */

struct application {
	const struct application_row *row;
	bool include_top;
	int64_t classes, batch;
	const char *activation, *pooling, *name;
	double alpha;
	struct model_shape input;
};

const char *const *application_names(int *count)
{
	static const char *names[ARRAY_LEN(application_rows)];

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		names[i] = application_rows[i].name;
	*count = (int)ARRAY_LEN(names);
	return names;
}

int64_t application_side(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(application_rows); i++)
		if (!strcmp(application_rows[i].name, name))
			return application_rows[i].side;
	return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

static const struct application_row *application_find(const struct json_at *at, struct err *err)
{
	const char *const *names;
	const char *name;
	struct json_at here;
	int count;

	if (!model_option_need(at, "application", &here, err) ||
	    json_text(&here, &name, err) != ST_OK)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(application_rows); i++)
		if (!strcasecmp(application_rows[i].name, name))
			return &application_rows[i];
	names = application_names(&count);
	json_unknown(&here, "application", name, names, (size_t)count, err);
	return NULL;
}

/* Set the input shape, [224, 224, 3]: the option, otherwise @input, otherwise the network's own. */
static void read_input(const struct json_at *at, const struct json_at *config,
		       const struct model_shape *input, struct application *out, struct err *err)
{
	const int64_t least = out->row->least;
	char text[192], incoming[192];
	struct model_shape shape = {.ndim = 3, .dim = {out->row->side, out->row->side, 3}};
	struct json_at here, side;
	bool given = model_option_at(config, "input_shape", &here, err);

	if (given && (!cJSON_IsArray(here.node) || json_count(&here) != 3))
		json_fail(&here, err, "must be [height, width, channels]");
	for (int i = 0; given && !err_stuck(err) && json_item(&here, i, &side); i++)
		json_int(&side, 1, INT32_MAX, &shape.dim[i], err);
	if (err_stuck(err))
		return;
	out->input = input && !given ? *input : shape;
	model_shape_text(&out->input, 0, text, sizeof(text));
	if (given && input &&
	    (input->ndim != 3 || memcmp(input->dim, shape.dim, 3 * sizeof(shape.dim[0])) != 0)) {
		model_shape_text(input, 0, incoming, sizeof(incoming));
		json_fail(&here, err, "the input shape %s does not fit %s, which comes in", text,
			  incoming);
	} else if (out->input.ndim != 3 || out->input.dim[0] < least || out->input.dim[1] < least) {
		json_fail(at, err,
			  "%s takes images of at least %lldx%lld, not %s (data.resize makes them "
			  "larger)",
			  out->row->name, (long long)least, (long long)least, text);
	}
}

static void read_config(const struct json_at *config, struct application *out, struct err *err)
{
	static const struct model_option options[] = {
		{"include_top", MODEL_ANY}, {"weights", MODEL_ANY},
		{"input_shape", MODEL_ANY}, {"input_tensor", MODEL_NULL},
		{"pooling", MODEL_ANY},     {"classes", MODEL_ANY},
		{"alpha", MODEL_ANY},       {"classifier_activation", MODEL_ANY},
		{"name", MODEL_ANY},
	};
	static const char *const poolings[] = {"avg", "max"};
	struct json_at here;

	model_config_check(config, options, ARRAY_LEN(options), NULL, 0, err);
	if (model_option_at(config, "weights", &here, err))
		model_config_unsupported(
			&here, err,
			"there are no pretrained weights here: give null, and your own file as the "
			"run file's weights.load");
	if (model_option_given(config, "include_top", &here, err))
		json_bool(&here, &out->include_top, err);
	if (model_option_given(config, "classes", &here, err))
		json_int(&here, 1, APPLICATION_MOST, &out->classes, err);
	model_option_text(config, "classifier_activation", &out->activation, err);
	model_option_text(config, "name", &out->name, err);
	model_option_text(config, "pooling", &out->pooling, err);
	if (out->pooling && strcmp(out->pooling, poolings[0]) != 0 &&
	    strcmp(out->pooling, poolings[1]) != 0 &&
	    model_option_at(config, "pooling", &here, err))
		json_unknown(&here, "pooling", out->pooling, poolings, ARRAY_LEN(poolings), err);
	if (!model_option_given(config, "alpha", &here, err))
		return;
	if (!out->row->takes_alpha)
		json_fail(&here, err, "%s has no alpha", out->row->name);
	else if (json_real(&here, &out->alpha, err) == ST_OK &&
		 !(out->alpha >= 0.1 && out->alpha <= (out->row->narrows ? 1.0 : 10.0)))
		json_fail(&here, err, "must be from 0.1 to %d, not %g", out->row->narrows ? 1 : 10,
			  out->alpha);
}

static enum status application_read(struct application *out, const struct json_at *at,
				    const struct model_shape *input, struct err *err)
{
	static const cJSON nothing = {.type = cJSON_Object};
	struct json_at config;

	*out = (struct application){.row = application_find(at, err),
				    .include_top = true,
				    .classes = APPLICATION_CLASSES,
				    .activation = "softmax",
				    .alpha = 1.0};
	if (!out->row)
		return err->status;
	if (!json_child(at, "config", &config) || json_is_null(&config))
		config = json_root(at->file, &nothing);
	read_config(&config, out, err);
	read_input(at, &config, input, out, err);
	return err->status;
}

/* ---- building -------------------------------------------------------------------------------- */

static int application_classes(struct application_graph *graph, const struct application *a, int x)
{
	if (a->row->top)
		return a->row->top(graph, a->row, x, a->classes, a->activation);
	x = application_global_pool(graph, x, "GlobalAveragePooling2D", "avg_pool", false);
	return application_dense(graph, x, "predictions", a->classes, a->activation, NULL);
}

static int application_pooling(struct application_graph *graph, const struct application *a, int x)
{
	const char *pooling = a->pooling;
	const char *name =
		a->row->pool_has_name ? application_name(graph, "%s_pool", pooling) : NULL;

	return application_global_pool(graph, x,
				       strcmp(pooling, "avg") == 0 ? "GlobalAveragePooling2D"
								   : "GlobalMaxPooling2D",
				       name, false);
}

/* MobileNets' names contain alpha and the image's side: "mobilenet_1.00_224". */
static const char *application_model_name(struct application_graph *graph,
					  const struct application *a)
{
	if (a->name)
		return a->name;
	if (!a->row->takes_alpha || a->row->narrows)
		return a->row->model_name;
	return application_name(graph, "%s_%.2f_%lld", a->row->model_name, a->alpha,
				(long long)a->input.dim[0]);
}

enum status application_build(cJSON **out, const struct json_at *at,
			      const struct model_shape *input, int64_t batch, struct err *err)
{
	struct application_graph graph;
	struct application a;
	enum status status;
	struct err own;
	int x;

	err = err_start(err, &own);
	*out = NULL;
	if (application_read(&a, at, input, err) != ST_OK)
		return err->status;
	application_graph_init(&graph, a.input.dim[0], a.input.dim[1], a.input.dim[2], batch);
	x = a.row->body(&graph, a.row, 0, a.alpha);
	if (a.include_top)
		x = application_classes(&graph, &a, x);
	else if (a.pooling)
		x = application_pooling(&graph, &a, x);
	status = application_graph_finish(&graph, application_model_name(&graph, &a), x, out, err);
	if (status != ST_OK && status != ST_NOMEM)
		err_prefix(err, "%s", a.row->name);
	application_graph_fini(&graph);
	return status;
}
