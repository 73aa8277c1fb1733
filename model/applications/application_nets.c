/*
 * The networks of keras.applications, with its names and sizes: one function per family, which adds
 * the body after @input and returns its last node; application.c has a row for each network.
 * application_net.h explains the texts. No state.
 */
#include "model/applications/application_net.h"

#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"

/* The multiple of 8 nearest to @value, at least 8, and at most a tenth below it. */
static int round_to_8(double value)
{
	const int rounded = max((int)(value + 4.0) / 8 * 8, 8);

	return rounded < 0.9 * value ? rounded + 8 : rounded;
}

/* ---- VGG (Simonyan and Zisserman 2014) ------------------------------------------------------- */

int application_vgg(struct net *net)
{
	int x = 0;

	for (int block = 1; block <= 5; block++) {
		const int count = block < 3 ? 2 : net->row->blocks[block - 3];

		net->id = net_text(net, "block%d", block);
		net->filters = block < 5 ? 32 << block : 512;
		for (int i = 1; i <= count; i++)
			x = net_add(net, x, "conv 3x3 filters same bias relu as #_conv%d", i);
		x = net_add(net, x, "max 2x2 /2 as #_pool");
	}
	return x;
}

/* ---- ResNet, versions 1 and 2 (He et al. 2015, 2016) ----------------------------------------- */

#define RESNET_STACKS  4
#define RESNET_EPSILON 1.001e-5

/* Set the net to block @i of @stack, both from 0. */
static void resnet_block(struct net *net, int stack, int i)
{
	net->id = net_text(net, "conv%d_block%d", stack + 2, i + 1);
	net->filters = 64 << stack;
}

/* A stack begins with its stride, except the first one, and with a convolution on the shortcut. */
int application_resnet(struct net *net)
{
	int x;

	net->epsilon = RESNET_EPSILON;
	x = net_add(net, 0,
		    "pad 3 as conv1_pad, conv 7x7 64 /2 bias as conv1_conv, norm as conv1_bn,"
		    "relu as conv1_relu, pad 1 as pool1_pad, max 3x3 /2 as pool1_pool");
	for (int stack = 0; stack < RESNET_STACKS; stack++)
		for (int i = 0; i < net->row->blocks[stack]; i++) {
			const int wide = 256 << stack, stride = i == 0 && stack > 0 ? 2 : 1;
			const char *shortcut = "";

			resnet_block(net, stack, i);
			if (i == 0)
				shortcut = net_text(net,
						    "conv %d /%d bias as #_0_conv, norm as #_0_bn",
						    wide, stride);
			x = net_add(net, x,
				    "[%s | conv filters /%d bias as #_1_conv, norm as #_1_bn,"
				    "relu as #_1_relu, conv 3x3 filters same bias as #_2_conv,"
				    "norm as #_2_bn, relu as #_2_relu, conv %d bias as #_3_conv,"
				    "norm as #_3_bn] add as #_add, relu as #_out",
				    shortcut, stride, wide);
		}
	return x;
}

/* A stack ends with its stride, except the last one. */
int application_resnet_v2(struct net *net)
{
	int x = net_add(net, 0,
			"pad 3 as conv1_pad, conv 7x7 64 /2 bias as conv1_conv, pad 1 as pool1_pad,"
			"max 3x3 /2 as pool1_pool");

	net->epsilon = RESNET_EPSILON;
	for (int stack = 0; stack < RESNET_STACKS; stack++)
		for (int i = 0; i < net->row->blocks[stack]; i++) {
			const bool last = i == net->row->blocks[stack] - 1;
			const int wide = 256 << stack, stride = last && stack < 3 ? 2 : 1;
			const char *begin = "norm as #_preact_bn, relu as #_preact_relu", *block;

			resnet_block(net, stack, i);
			block = net_text(
				net,
				"conv filters as #_1_conv, norm as #_1_bn, relu as #_1_relu,"
				"pad 1 as #_2_pad, conv 3x3 filters /%d as #_2_conv,"
				"norm as #_2_bn, relu as #_2_relu, conv %d bias as #_3_conv",
				stride, wide);
			if (i == 0)
				x = net_add(net, x,
					    "%s, [conv %d /%d bias as #_0_conv | %s] add as #_out",
					    begin, wide, stride, block);
			else
				x = net_add(net, x, "[%s | %s, %s] add as #_out",
					    stride > 1 ? "max 1x1 /2" : "", begin, block);
		}
	return net_add(net, x, "norm as post_bn, relu as post_relu");
}

/* ---- DenseNet (Huang et al. 2017) ------------------------------------------------------------ */

/* Each unit appends its 32 channels to its input's. */
int application_densenet(struct net *net)
{
	int x;

	net->epsilon = 1.001e-5;
	x = net_add(net, 0,
		    "pad 3, conv 7x7 64 /2 as conv1/conv, norm as conv1/bn, relu as conv1/relu,"
		    "pad 1, max 3x3 /2 as pool1");
	for (int stack = 2; stack <= 5; stack++) {
		for (int i = 1; i <= net->row->blocks[stack - 2]; i++) {
			net->id = net_text(net, "conv%d_block%d", stack, i);
			x = net_add(
				net, x,
				"[ | norm as #_0_bn, relu as #_0_relu, conv 128 as #_1_conv,"
				"norm as #_1_bn, relu as #_1_relu, conv 3x3 32 same as #_2_conv]"
				"concatenate as #_concat");
		}
		net->id = net_text(net, "pool%d", stack);
		net->filters = net_channels(net, x) / 2;
		if (stack < 5)
			x = net_add(net, x,
				    "norm as #_bn, relu as #_relu, conv filters as #_conv,"
				    "mean 2x2 /2 as #_pool");
	}
	return net_add(net, x, "norm as bn, relu as relu");
}

/* ---- Xception (Chollet 2017) ----------------------------------------------------------------- */

/* clang-format off */
#define CONV(number, filters) \
	"separable 3x3 " filters " same as #_sepconv" number ", norm as #_sepconv" number "_bn,"
#define RELU(number) "relu as #_sepconv" number "_act,"

int application_xception(struct net *net)
{
	static const int filters[] = {128, 256, 728}; /* of blocks 2 to 4 */
	int x = net_add(net, 0,
		"conv 3x3 32 /2 as block1_conv1, norm as block1_conv1_bn, relu as block1_conv1_act,"
		"conv 3x3 64 as block1_conv2, norm as block1_conv2_bn, relu as block1_conv2_act");

	for (int block = 2; block <= 13; block++) {
		net->id = net_text(net, "block%d", block);
		net->filters = block < 13 ? filters[min(block, 4) - 2] : 1024;
		if (block > 4 && block < 13)
			x = net_add(net, x, "[" RELU("1") CONV("1", "728") RELU("2") CONV("2", "728")
				    RELU("3") CONV("3", "728") "| ] add");
		else
			x = net_add(net, x, "[%s" CONV("1", "%d") RELU("2") CONV("2", "filters")
				    "max 3x3 /2 same as #_pool | conv filters /2 same, norm] add",
				    block > 2 ? RELU("1") : "", block < 13 ? net->filters : 728);
	}
	net->id = "block14";
	return net_add(net, x, CONV("1", "1536") RELU("1") CONV("2", "2048") RELU("2"));
}
#undef CONV
#undef RELU

/* ---- InceptionV3 (Szegedy et al. 2015) ------------------------------------------------------- */

#define CONV(text) "conv " text ", norm, relu,"
#define MEAN       "mean 3x3 /1 same,"
#define CROSS      "[" CONV("1x3 384 same") "|" CONV("3x1 384 same") "] concatenate"

int application_inception(struct net *net)
{
	int x;

	net->unscaled = true;
	x = net_add(net, 0, CONV("3x3 32 /2") CONV("3x3 32") CONV("3x3 64 same") "max 3x3 /2,"
		    CONV("80") CONV("3x3 192") "max 3x3 /2");
	/* 35 x 35 */
	for (int i = 0; i < 3; i++)
		x = net_add(net, x,
			"[" CONV("64 same")
			"|" CONV("48 same") CONV("5x5 64 same")
			"|" CONV("64 same") CONV("3x3 96 same") CONV("3x3 96 same")
			"|" MEAN CONV("%d same") "] concatenate as mixed%d", i ? 64 : 32, i);
	x = net_add(net, x,
		"[" CONV("3x3 384 /2")
		"|" CONV("64 same") CONV("3x3 96 same") CONV("3x3 96 /2")
		"| max 3x3 /2] concatenate as mixed3");
	/* 17 x 17, with 7 x 7 convolutions factorized */
	for (int i = 4; i < 8; i++) {
		net->filters = i == 4 ? 128 : i == 7 ? 192 : 160;
		x = net_add(net, x,
			"[" CONV("192 same")
			"|" CONV("filters same") CONV("1x7 filters same") CONV("7x1 192 same")
			"|" CONV("filters same") CONV("7x1 filters same") CONV("1x7 filters same")
			    CONV("7x1 filters same") CONV("1x7 192 same")
			"|" MEAN CONV("192 same") "] concatenate as mixed%d", i);
	}
	x = net_add(net, x,
		"[" CONV("192 same") CONV("3x3 320 /2")
		"|" CONV("192 same") CONV("1x7 192 same") CONV("7x1 192 same") CONV("3x3 192 /2")
		"| max 3x3 /2] concatenate as mixed8");
	/* 8 x 8 */
	for (int i = 0; i < 2; i++)
		x = net_add(net, x,
			"[" CONV("320 same")
			"|" CONV("384 same") CROSS " as mixed9_%d"
			"|" CONV("448 same") CONV("3x3 384 same") CROSS
			"|" MEAN CONV("192 same") "] concatenate as mixed%d", i, 9 + i);
	return x;
}
#undef CONV
#undef MEAN
/* clang-format on */

/* ---- MobileNet (Howard et al. 2017) ---------------------------------------------------------- */

#define SAME(stride) ((stride) == 1 ? "same" : "")

int application_mobilenet(struct net *net)
{
	static const struct {
		int filters, stride;
	} blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
		      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
	int x = net_add(net, 0,
			"conv 3x3 %d /2 same as conv1, norm as conv1_bn, ReLU 6 as conv1_relu",
			(int)(32 * net->alpha));

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		net->id = net_text(net, "%zu", i + 1);
		net->filters = (int)(blocks[i].filters * net->alpha);
		x = net_add(net, x,
			    "%s depthwise 3x3 /%d %s as conv_dw_#, norm as conv_dw_#_bn,"
			    "ReLU 6 as conv_dw_#_relu, conv filters same as conv_pw_#,"
			    "norm as conv_pw_#_bn, ReLU 6 as conv_pw_#_relu",
			    blocks[i].stride > 1 ? "pad 0 1 as conv_pad_#," : "", blocks[i].stride,
			    SAME(blocks[i].stride));
	}
	return x;
}

/* ---- MobileNetV2 (Sandler et al. 2018) ------------------------------------------------------- */

int application_mobilenet_v2(struct net *net)
{
	static const struct {
		int filters, stride, expansion, times;
	} blocks[] = {{16, 1, 1, 1}, {24, 2, 6, 2},  {32, 2, 6, 3}, {64, 2, 6, 4},
		      {96, 1, 6, 3}, {160, 2, 6, 3}, {320, 1, 6, 1}};
	int x, number = 0;

	net->epsilon = 1e-3;
	net->momentum = 0.999;
	x = net_add(net, 0, "conv 3x3 %d /2 same as Conv1, norm as bn_Conv1, ReLU 6 as Conv1_relu",
		    round_to_8(32 * net->alpha));
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		for (int j = 0; j < blocks[i].times; j++, number++) {
			const int stride = j ? 1 : blocks[i].stride;
			const int channels = net_channels(net, x);
			const char *expand = "", *block;

			net->id = number ? net_text(net, "block_%d", number) : "expanded_conv";
			net->filters = round_to_8((int)(blocks[i].filters * net->alpha));
			if (number)
				expand = net_text(net,
						  "conv %d same as #_expand,"
						  "norm as #_expand_BN, ReLU 6 as #_expand_relu,",
						  blocks[i].expansion * channels);
			block = net_text(net,
					 "%s %s depthwise 3x3 /%d %s as #_depthwise,"
					 "norm as #_depthwise_BN, ReLU 6 as #_depthwise_relu,"
					 "conv filters same as #_project, norm as #_project_BN",
					 expand, stride > 1 ? "pad 3x3 as #_pad," : "", stride,
					 SAME(stride));
			x = stride == 1 && channels == net->filters
				    ? net_add(net, x, "[ | %s] add as #_add", block)
				    : net_add(net, x, "%s", block);
		}
	return net_add(net, x, "conv %d as Conv_1, norm as Conv_1_bn, ReLU 6 as out_relu",
		       net->alpha > 1.0 ? round_to_8(1280 * net->alpha) : 1280);
}

/* ---- MobileNetV3 (Howard et al. 2019) -------------------------------------------------------- */

/* As since TensorFlow 2.9, without the minimalistic variants. Keras's x + 3 and x / 6 are Rescaling
 * layers here. */

struct v3_block {
	double expand; /* times the block's channels */
	int filters, kernel, stride;
	bool squeeze, swish; /* swish: hard_swish instead of ReLU */
};

/* min(max(x + 3, 0), 6) / 6 */
#define V3_SIGMOID "rescale 1 3, ReLU 6, rescale 1/6 0"
#define V3_SWISH   "[ | " V3_SIGMOID "] multiply"

/* Squeeze and excitation: scale the channels by factors computed from the whole image. */
#define V3_SQUEEZE                                                                                 \
	"[ | global_mean keepdims as #/squeeze_excite/AvgPool, conv %d same bias as "              \
	"#/squeeze_excite/Conv, ReLU as #/squeeze_excite/Relu, conv %d same bias as "              \
	"#/squeeze_excite/Conv_1," V3_SIGMOID "] multiply as #/squeeze_excite/Mul,"

static int v3_block(struct net *net, int x, const struct v3_block *b, int number)
{
	const char *activation = b->swish ? V3_SWISH : "ReLU", *expand = "", *squeeze = "", *block;
	const int channels = net_channels(net, x);
	int wide = channels;

	net->id = number ? net_text(net, "expanded_conv_%d", number) : "expanded_conv";
	net->filters = round_to_8(b->filters * net->alpha);
	if (number) {
		wide = round_to_8(channels * b->expand);
		expand = net_text(net, "conv %d same as #/expand, norm as #/expand/BatchNorm, %s,",
				  wide, activation);
	}
	if (b->squeeze)
		squeeze = net_text(net, V3_SQUEEZE, round_to_8(wide * 0.25), wide);
	block = net_text(net,
			 "%s %s depthwise %dx%d /%d %s as #/depthwise,"
			 "norm as #/depthwise/BatchNorm, %s, %s"
			 "conv filters same as #/project, norm as #/project/BatchNorm",
			 expand,
			 b->stride == 2 ? net_text(net, "pad %dx%d as #/depthwise/pad,", b->kernel,
						   b->kernel)
					: "",
			 b->kernel, b->kernel, b->stride, SAME(b->stride), activation, squeeze);
	if (b->stride == 1 && channels == net->filters)
		return net_add(net, x, "[ | %s] add as #/Add", block);
	return net_add(net, x, "%s", block);
}

static int v3_body(struct net *net, const struct v3_block *blocks, int count)
{
	int x;

	net->epsilon = 1e-3;
	net->momentum = 0.999;
	x = net_add(net, 0,
		    "rescale 1/127.5 -1, conv 3x3 16 /2 same as Conv, norm as "
		    "Conv/BatchNorm," V3_SWISH);
	for (int i = 0; i < count; i++)
		x = v3_block(net, x, &blocks[i], i);
	return net_add(net, x, "conv %d same as Conv_1, norm as Conv_1/BatchNorm," V3_SWISH,
		       round_to_8(6.0 * net_channels(net, x)));
}

int application_mobilenet_v3_small(struct net *net)
{
	static const struct v3_block blocks[] = {
		{1, 16, 3, 2, true, false},
		{72.0 / 16.0, 24, 3, 2, false, false},
		{88.0 / 24.0, 24, 3, 1, false, false},
		{4, 40, 5, 2, true, true},
		{6, 40, 5, 1, true, true},
		{6, 40, 5, 1, true, true},
		{3, 48, 5, 1, true, true},
		{3, 48, 5, 1, true, true},
		{6, 96, 5, 2, true, true},
		{6, 96, 5, 1, true, true},
		{6, 96, 5, 1, true, true},
	};

	return v3_body(net, blocks, ARRAY_LEN(blocks));
}

int application_mobilenet_v3_large(struct net *net)
{
	static const struct v3_block blocks[] = {
		{1, 16, 3, 1, false, false},  {4, 24, 3, 2, false, false},
		{3, 24, 3, 1, false, false},  {3, 40, 5, 2, true, false},
		{3, 40, 5, 1, true, false},   {3, 40, 5, 1, true, false},
		{6, 80, 3, 2, false, true},   {2.5, 80, 3, 1, false, true},
		{2.3, 80, 3, 1, false, true}, {2.3, 80, 3, 1, false, true},
		{6, 112, 3, 1, true, true},   {6, 112, 3, 1, true, true},
		{6, 160, 5, 2, true, true},   {6, 160, 5, 1, true, true},
		{6, 160, 5, 1, true, true},
	};

	return v3_body(net, blocks, ARRAY_LEN(blocks));
}

/* ---- EfficientNet (Tan and Le 2019), as in TensorFlow 2.6 ------------------------------------ */

/* Fan-out scaling, as in the reference code. */
#define EFFICIENT_CONV                                                                             \
	"{\"class_name\":\"VarianceScaling\",\"config\":{\"scale\":2.0,\"mode\":\"fan_out\","      \
	"\"distribution\":\"truncated_normal\"}}"
#define EFFICIENT_DENSE                                                                            \
	"{\"class_name\":\"VarianceScaling\",\"config\":{\"scale\":0.3333333333333333,"            \
	"\"mode\":\"fan_out\",\"distribution\":\"uniform\"}}"

struct efficient_stack {
	int kernel, repeats, in, out, expand, stride;
};

/* Block @j of a stack, from 0; @drop: the share of items whose residual branch is dropped. */
static int efficient_block(struct net *net, int x, const struct efficient_stack *s, int j,
			   double width, double drop)
{
	const int in = round_to_8((j ? s->out : s->in) * width), stride = j ? 1 : s->stride;
	const int wide = in * s->expand;
	const char *expand = "", *pad = "", *block;

	net->filters = round_to_8(s->out * width);
	if (s->expand != 1)
		expand = net_text(net,
				  "conv %d same as #_expand_conv, norm as #_expand_bn,"
				  "swish as #_expand_activation,",
				  wide);
	if (stride == 2)
		pad = net_text(net, "pad %dx%d as #_dwconv_pad,", s->kernel, s->kernel);
	/* Squeeze and excitation: scale the channels by factors computed from the whole image. */
	block = net_text(net,
			 "%s %s depthwise %dx%d /%d %s as #_dwconv, norm as #_bn,"
			 "swish as #_activation, [ | global_mean as #_se_squeeze,"
			 "reshape 1x1 %d as #_se_reshape, conv %d same bias swish as #_se_reduce,"
			 "conv %d same bias sigmoid as #_se_expand] multiply as #_se_excite,"
			 "conv filters same as #_project_conv, norm as #_project_bn",
			 expand, pad, s->kernel, s->kernel, stride, SAME(stride), wide,
			 max((int)(in * 0.25), 1), wide);
	if (stride > 1 || in != net->filters)
		return net_add(net, x, "%s", block);
	if (drop > 0.0)
		block = net_text(net, "%s, dropout %.17g per_item as #_drop", block, drop);
	return net_add(net, x, "[%s | ] add as #_add", block);
}

int application_efficientnet(struct net *net)
{
	static const struct efficient_stack stacks[] = {
		{3, 1, 32, 16, 1, 1},   {3, 2, 16, 24, 6, 2},  {5, 2, 24, 40, 6, 2},
		{3, 3, 40, 80, 6, 2},   {5, 3, 80, 112, 6, 1}, {5, 4, 112, 192, 6, 2},
		{3, 1, 192, 320, 6, 1},
	};
	int blocks = 0, number = 0, x;

	net->kernel = EFFICIENT_CONV;
	net->dense_kernel = EFFICIENT_DENSE;
	x = net_add(net, 0,
		    "rescale 1/255 0, standardize, pad 3x3 as stem_conv_pad,"
		    "conv 3x3 %d /2 as stem_conv, norm as stem_bn, swish as stem_activation",
		    round_to_8(32 * net->row->width));
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		blocks += (int)ceil(net->row->depth * stacks[i].repeats);
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		for (int j = 0; j < (int)ceil(net->row->depth * stacks[i].repeats); j++) {
			net->id = net_text(net, "block%zu%c", i + 1, 'a' + j);
			x = efficient_block(net, x, &stacks[i], j, net->row->width,
					    0.2 * number++ / blocks);
		}
	return net_add(net, x, "conv %d same as top_conv, norm as top_bn, swish as top_activation",
		       round_to_8(1280 * net->row->width));
}

/* ---- NASNet-A (Zoph et al. 2018) ------------------------------------------------------------- */

/* A cell reads the outputs of the two cells before it; the older one is first adjusted to the size
 * of the newer. net->id is the cell's name, "reduce_4" or "5". */
struct nasnet {
	int newer, older; /* older -1: none */
};

/* Two separable convolutions, the first with a stride of 1 or 2. */
/* clang-format off */
#define SECOND(part, window) \
	" as separable_conv_1_" part "_#, norm as separable_conv_1_bn_" part "_#, relu,"           \
	"separable " window " filters same as separable_conv_2_" part "_#,"                        \
	"norm as separable_conv_2_bn_" part "_#"
#define CONV(part, window) "relu, separable " window " filters same" SECOND(part, window)
#define HALVE(part, window) \
	"relu, pad " window " as separable_conv_1_pad_" part "_#,"                                 \
	"separable " window " filters /2" SECOND(part, window)
#define MEAN(part) "mean 3x3 /1 same as " part "_#"
/* clang-format on */

/* Adjust the older output to the size of the newer and to the cell's channels. */
static int nasnet_adjust(struct net *net, const struct nasnet *cell)
{
	if (cell->older < 0 || net->status != ST_OK)
		return cell->newer;
	/* Subsample by 2 twice, from the first and from the second pixel on, with half of the filters
	 * each. */
	if (net->nodes[cell->older].width != net->nodes[cell->newer].width)
		return net_add(net, cell->older,
			       "relu as adjust_relu_1_#, [mean 1x1 /2 as adjust_avg_pool_1_#,"
			       "conv %d same as adjust_conv_1_# | pad 0 1, crop 1 0,"
			       "mean 1x1 /2 as adjust_avg_pool_2_#,"
			       "conv %d same as adjust_conv_2_#] concatenate, norm as adjust_bn_#",
			       net->filters / 2, net->filters / 2);
	if (net_channels(net, cell->older) == net->filters)
		return cell->older;
	return net_add(net, cell->older,
		       "relu, conv filters same as adjust_conv_projection_#, norm as adjust_bn_#");
}

/* clang-format off */
static int nasnet_normal(struct net *net, const struct nasnet *cell)
{
	const int p = nasnet_adjust(net, cell);
	const int h = net_add(net, cell->newer,
		"relu, conv filters same as normal_conv_1_#, norm as normal_bn_1_#");

	return net_add(net, p,
		"[ |"
		"[at %d " CONV("normal_left1", "5x5") "|" CONV("normal_right1", "3x3") "] add as normal_add_1_# |"
		"[" CONV("normal_left2", "5x5") "|" CONV("normal_right2", "3x3") "] add as normal_add_2_# |"
		"[at %d " MEAN("normal_left3") "| ] add as normal_add_3_# |"
		"[" MEAN("normal_left4") "|" MEAN("normal_right4") "] add as normal_add_4_# |"
		"[at %d " CONV("normal_left5", "3x3") "| at %d ] add as normal_add_5_#"
		"] concatenate as normal_concat_#", h, h, h, h);
}

static int nasnet_reduction(struct net *net, const struct nasnet *cell)
{
	const int p = nasnet_adjust(net, cell);
	const int h = net_add(net, cell->newer,
		"relu, conv filters same as reduction_conv_1_#, norm as reduction_bn_1_#");
	const int padded = net_add(net, h, "pad 3x3 as reduction_pad_1_#");
	const int first = net_add(net, p,
		"[at %d " HALVE("reduction_left1", "5x5") "|" HALVE("reduction_right1", "7x7")
		"] add as reduction_add_1_#", h);
	const int second = net_add(net, p,
		"[at %d max 3x3 /2 as reduction_left2_# |" HALVE("reduction_right2", "7x7")
		"] add as reduction_add_2_#", padded);

	return net_add(net, second,
		"[ |"
		"[at %d mean 3x3 /2 as reduction_left3_# | at %d " HALVE("reduction_right3", "5x5") "] add as reduction_add3_# |"
		"[ | at %d " MEAN("reduction_left4") "] add |"
		"[at %d " CONV("reduction_left4", "3x3") "| at %d max 3x3 /2 as reduction_right5_#] add as reduction_add4_#"
		"] concatenate as reduction_concat_#", padded, p, first, first, padded);
}
/* clang-format on */

/* Make @output, a cell's, the newer input of the next. */
static void nasnet_step(struct nasnet *cell, int output)
{
	cell->older = cell->newer;
	cell->newer = output;
}

int application_nasnet(struct net *net)
{
	const int blocks = net->row->blocks[0], filters = net->row->blocks[2];
	const bool skips = net->row->blocks[3];
	struct nasnet cell = {.older = -1};

	net->epsilon = 1e-3;
	net->momentum = 0.9997;
	net->kernel = "\"he_normal\"";
	cell.newer = net_add(net, 0, "conv 3x3 %d /2 as stem_conv1, norm as stem_bn1",
			     net->row->blocks[1]);
	for (int i = 1; i <= 2; i++) {
		net->filters = filters * i / 4;
		net->id = net_text(net, "stem_%d", i);
		nasnet_step(&cell, nasnet_reduction(net, &cell));
	}
	for (int stack = 0; stack < 3; stack++) {
		net->filters = filters << stack;
		if (stack > 0) {
			const int before = cell.older;

			net->id = net_text(net, "reduce_%d", stack * blocks);
			nasnet_step(&cell, nasnet_reduction(net, &cell));
			cell.older = skips ? before : cell.older;
		}
		for (int i = 0; i < blocks; i++) {
			net->id = net_text(net, "%d", stack * blocks + i + (stack > 0));
			nasnet_step(&cell, nasnet_normal(net, &cell));
		}
	}
	return net_add(net, cell.newer, "relu");
}
