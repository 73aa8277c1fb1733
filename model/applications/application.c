/*
 * The table of networks, their options and their classifiers. No state.
 */
#include "model/applications/application.h"

#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "model/applications/application_net.h"
#include "model/model_config.h"

#define APPLICATION_MOST 1000000000

#define PREDICTIONS "dense classes activation as predictions"

/* clang-format off */
#define AVERAGED .top = "global_mean as avg_pool, " PREDICTIONS
#define RESNET .side = 224, .least = 32, .pool_has_name = true, AVERAGED
#define VGG .body = application_vgg, .side = 224, .least = 32, .top = \
	"flatten as flatten, dense 4096 relu as fc1, dense 4096 relu as fc2, " PREDICTIONS
#define MOBILENET .side = 224, .least = 32, .takes_alpha = true
/* Its last layer before the classifier has @units; an alpha up to 1 does not change it. */
#define MOBILENET_V3(units) MOBILENET, .narrows = true, .top = \
	"global_mean keepdims, conv " units " same bias as Conv_2, [ | rescale 1 3, ReLU 6, rescale 1/6 0] multiply," \
	"dropout 0.2, conv classes same bias as Logits, flatten, activation as Predictions"
#define EFFICIENT(rate) .body = application_efficientnet, .least = 32, .pool_has_name = true, .top = \
	"global_mean as avg_pool, dropout " rate " as top_dropout, " PREDICTIONS
#define NASNET .body = application_nasnet, .least = 32, .top = "global_mean, " PREDICTIONS
static const struct application_row application_rows[] = {
	{"ResNet50", "resnet50", application_resnet, RESNET, .blocks = {3, 4, 6, 3}},
	{"ResNet101", "resnet101", application_resnet, RESNET, .blocks = {3, 4, 23, 3}},
	{"ResNet152", "resnet152", application_resnet, RESNET, .blocks = {3, 8, 36, 3}},
	{"ResNet50V2", "resnet50v2", application_resnet_v2, RESNET, .blocks = {3, 4, 6, 3}},
	{"ResNet101V2", "resnet101v2", application_resnet_v2, RESNET, .blocks = {3, 4, 23, 3}},
	{"ResNet152V2", "resnet152v2", application_resnet_v2, RESNET, .blocks = {3, 8, 36, 3}},
	{"VGG16", "vgg16", VGG, .blocks = {3, 3, 3}},
	{"VGG19", "vgg19", VGG, .blocks = {4, 4, 4}},
	{"MobileNet", "mobilenet", application_mobilenet, MOBILENET, .top =
	 "global_mean keepdims, dropout 0.001 as dropout, conv classes same bias as conv_preds,"
	 "reshape classes as reshape_2, activation as predictions"},
	{"MobileNetV2", "mobilenetv2", application_mobilenet_v2, MOBILENET, .top = "global_mean, " PREDICTIONS},
	{"MobileNetV3Small", "MobilenetV3small", application_mobilenet_v3_small, MOBILENET_V3("1024")},
	{"MobileNetV3Large", "MobilenetV3large", application_mobilenet_v3_large, MOBILENET_V3("1280")},
	{"DenseNet121", "densenet121", application_densenet, RESNET, .blocks = {6, 12, 24, 16}},
	{"DenseNet169", "densenet169", application_densenet, RESNET, .blocks = {6, 12, 32, 32}},
	{"DenseNet201", "densenet201", application_densenet, RESNET, .blocks = {6, 12, 48, 32}},
	{"EfficientNetB0", "efficientnetb0", EFFICIENT("0.2"), .side = 224, .width = 1.0, .depth = 1.0},
	{"EfficientNetB1", "efficientnetb1", EFFICIENT("0.2"), .side = 240, .width = 1.0, .depth = 1.1},
	{"EfficientNetB2", "efficientnetb2", EFFICIENT("0.3"), .side = 260, .width = 1.1, .depth = 1.2},
	{"EfficientNetB3", "efficientnetb3", EFFICIENT("0.3"), .side = 300, .width = 1.2, .depth = 1.4},
	{"EfficientNetB4", "efficientnetb4", EFFICIENT("0.4"), .side = 380, .width = 1.4, .depth = 1.8},
	{"EfficientNetB5", "efficientnetb5", EFFICIENT("0.4"), .side = 456, .width = 1.6, .depth = 2.2},
	{"EfficientNetB6", "efficientnetb6", EFFICIENT("0.5"), .side = 528, .width = 1.8, .depth = 2.6},
	{"EfficientNetB7", "efficientnetb7", EFFICIENT("0.5"), .side = 600, .width = 2.0, .depth = 3.1},
	{"Xception", "xception", application_xception, AVERAGED, .side = 299, .least = 71},
	{"InceptionV3", "inception_v3", application_inception, AVERAGED, .side = 299, .least = 75},
	{"NASNetMobile", "NASNet", NASNET, .side = 224, .blocks = {4, 32, 44, false}},
	{"NASNetLarge", "NASNet", NASNET, .side = 331, .blocks = {6, 96, 168, true}},
};
/* clang-format on */

struct application {
	const struct application_row *row;
	bool include_top;
	int64_t classes, batch;
	const char *activation, *name;
	enum {
		APPLICATION_AVERAGE,
		APPLICATION_MAX,
		APPLICATION_UNPOOLED
	} pooling;
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

#define AT(member) .offset = offsetof(struct application, member)

/* clang-format off */
static const char *const poolings[] = {"avg", "max", NULL};
static const struct model_option application_options[] = {
	{"include_top", MODEL_BOOL, AT(include_top), .strict = true, .fallback = true},
	{"weights", .rule = MODEL_ANY},
	{"input_shape", .rule = MODEL_ANY},
	{"input_tensor", .rule = MODEL_NULL},
	{"pooling", MODEL_CHOICE, AT(pooling), .choices = poolings, .fallback = APPLICATION_UNPOOLED},
	{"classes", MODEL_INT, AT(classes), .strict = true, .least = 1, .most = APPLICATION_MOST, .fallback = 1000},
	{"alpha", .rule = MODEL_ANY}, /* application_read() knows its bounds */
	{"classifier_activation", MODEL_TEXT, AT(activation), .text = "softmax"},
	{"name", MODEL_TEXT, AT(name)},
};
/* clang-format on */

static enum status application_read(struct application *out, const struct json_at *at,
				    const struct model_shape *input, struct err *err)
{
	static const cJSON nothing = {.type = cJSON_Object};
	static const struct model_options options = MODEL_OPTIONS(application_options);
	struct json_at config, here;

	*out = (struct application){.row = application_find(at, err), .alpha = 1.0};
	if (!out->row)
		return err->status;
	if (!json_child(at, "config", &config) || json_is_null(&config))
		config = json_root(at->file, &nothing);

	model_config_check(&config, options.rows, options.count, NULL, 0, err);
	if (model_option_at(&config, "weights", &here, err))
		model_config_unsupported(&here, err,
					 "there are no pretrained weights here: give null, and "
					 "your own file as the run file's weights.load");
	model_config_read(&config, &options, out, NULL, err);
	if (model_option_given(&config, "alpha", &here, err)) {
		if (!out->row->takes_alpha)
			json_fail(&here, err, "%s has no alpha", out->row->name);
		else if (json_real(&here, &out->alpha, err) == ST_OK &&
			 !(out->alpha >= 0.1 && out->alpha <= (out->row->narrows ? 1.0 : 10.0)))
			json_fail(&here, err, "must be from 0.1 to %d, not %g",
				  out->row->narrows ? 1 : 10, out->alpha);
	}

	read_input(at, &config, input, out, err);
	return err->status;
}

/* ---- building -------------------------------------------------------------------------------- */

/* MobileNets' names contain alpha and the image's side: "mobilenet_1.00_224". */
static const char *application_model_name(struct net *net, const struct application *a)
{
	if (a->name)
		return a->name;
	if (!a->row->takes_alpha || a->row->narrows)
		return a->row->model_name;
	return net_text(net, "%s_%.2f_%lld", a->row->model_name, a->alpha,
			(long long)a->input.dim[0]);
}

enum status application_build(cJSON **out, const struct json_at *at,
			      const struct model_shape *input, int64_t batch, struct err *err)
{
	struct application a;
	enum status status;
	struct net net;
	struct err own;
	int x;

	err = err_start(err, &own);
	*out = NULL;
	if (application_read(&a, at, input, err) != ST_OK)
		return err->status;
	net_init(&net, a.input.dim[0], a.input.dim[1], a.input.dim[2], batch);
	net.row = a.row;
	net.alpha = a.alpha;
	net.classes = a.classes;
	net.activation = a.activation;
	x = a.row->body(&net);
	if (a.include_top)
		x = net_add(&net, x, "%s", a.row->top);
	else if (a.pooling != APPLICATION_UNPOOLED)
		x = net_add(&net, x, "global_%s %s%s%s",
			    a.pooling == APPLICATION_MAX ? "max" : "mean",
			    a.row->pool_has_name ? "as " : "",
			    a.row->pool_has_name ? poolings[a.pooling] : "",
			    a.row->pool_has_name ? "_pool" : "");
	status = net_finish(&net, application_model_name(&net, &a), x, out, err);
	if (status != ST_OK && status != ST_NOMEM)
		err_prefix(err, "%s", a.row->name);
	net_fini(&net);
	return status;
}
