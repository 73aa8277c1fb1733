/*
 * Networks written as texts, and the JSON that Keras writes for such a functional model.
 *
 * A text is a chain of layers, separated by commas, each applied to the output of the one before:
 *
 *	conv 3x3 64 /2 same as conv1, norm, relu, max 3x3 /2
 *
 * It begins with the layer's word, which application_net.c lists; the others follow in any order:
 *
 *	3x3          a window; 1x1 without
 *	64 -1 1/255  numbers: filters, units, a rate, pixels of padding
 *	/2           a stride; 1 without
 *	same         the padding; "valid" without
 *	bias         a convolution has one
 *	keepdims     a global pool keeps the image's dimensions
 *	per_item     a dropout decides once for each item, as EfficientNet's residual branches
 *	as NAME      its name, in which # stands for net->id; Keras's default without ("conv2d_1")
 *
 * Any other word is the activation function of a convolution or Dense. The words "filters",
 * "classes" and "activation" stand for the net's members of these names.
 *
 * Branches: [A | B | C] add applies A, B and C to the output before the bracket and merges theirs;
 * an empty branch is that output itself. "at 7" continues from node 7.
 *
 * Texts are constants of this folder: a malformed one fails an assertion. Failures (out of memory,
 * an image that became too small) are sticky and reported once, by net_finish().
 */
#ifndef APPLICATION_NET_H
#define APPLICATION_NET_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"

/* A layer's output, identified by its index. */
struct net_node {
	const char *class_name, *name;
	cJSON *config;
	int *inputs;
	int input_count;
	int64_t height, width, channels; /* of images; otherwise 0, 0, features */
	int depth, index;                /* Keras's, for sorting */
};

struct net {
	const struct application_row *row; /* of the network */
	double alpha;                      /* its option */

	/* What texts refer to; a network changes it from text to text. */
	const char *id;
	int filters;
	int64_t classes;
	const char *activation; /* of the classifier */
	/* What a network's layers have in common. */
	double epsilon, momentum;          /* of normalisations; 0: Keras's defaults */
	bool unscaled;                     /* normalisations have no gamma */
	const char *kernel, *dense_kernel; /* initializers as JSON; NULL: Keras's defaults */

	struct arena arena;
	struct net_node *nodes; /* [0] is the input */
	int count;
	size_t capacity;
	enum status status; /* the first failure */
	const char *small;  /* the layer whose output image is empty */
};

/* Begin with an input of images, for batches of @batch (0: any); call net_fini() in any case. */
void net_init(struct net *net, int64_t height, int64_t width, int64_t channels, int64_t batch);
void net_fini(struct net *net);

/* Format a text in the net's memory; never NULL. */
const char *net_text(struct net *net, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Append the layers of a text to node @from; return the last one's node. */
int net_add(struct net *net, int from, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int net_channels(const struct net *net, int node); /* 1 after a failure */

/* Write the model whose output is @output. Layers are in Keras's order: by depth, the farthest from
 * the output first. */
enum status net_finish(struct net *net, const char *model_name, int output, cJSON **out,
		       struct err *err);

/*
 * The networks of keras.applications: a row each in application.c, a body per family.
 */

/* The parameters in which the networks of a family differ. */
struct application_row {
	const char *name;       /* "ResNet50" */
	const char *model_name; /* Keras's model.name; MobileNets add alpha and the image's side */
	int (*body)(struct net *net); /* add the layers below the classifier; return the last */
	const char *top;              /* the classifier's text */
	int64_t side;                 /* of the default image */
	int64_t least;                /* the smallest side that Keras accepts without the top */
	/* ResNet, DenseNet: blocks per stack. VGG: convolutions of blocks 3 to 5. NASNet: cells
	 * of a stack, filters of the stem, filters of the first stack's cells, and whether the
	 * cell after a reduction skips it as its older input. */
	int blocks[4];
	double width, depth; /* EfficientNet's coefficients */
	bool takes_alpha;    /* MobileNets */
	bool narrows;        /* alpha is at most 1 and not part of the name: MobileNetV3 */
	bool pool_has_name;  /* name without the top: "avg_pool" instead of Keras's default */
};

int application_vgg(struct net *net);
int application_resnet(struct net *net);
int application_resnet_v2(struct net *net);
int application_densenet(struct net *net);
int application_xception(struct net *net);
int application_inception(struct net *net);
int application_mobilenet(struct net *net);
int application_mobilenet_v2(struct net *net);
int application_mobilenet_v3_small(struct net *net);
int application_mobilenet_v3_large(struct net *net);
int application_efficientnet(struct net *net);
int application_nasnet(struct net *net);

#endif /* APPLICATION_NET_H */
