/*
 * Building the JSON that Keras writes for a functional model, layer by layer.
 *
 * A node is a layer's output, identified by its index. The graph stores the shapes of images for
 * the builders. Failures (out of memory, an image that became too small) are sticky and reported
 * once, by application_graph_finish(). Layers are written in Keras's order: by depth, the
 * farthest from the output first.
 */
#ifndef APPLICATION_GRAPH_H
#define APPLICATION_GRAPH_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"

struct application_node {
	const char *class_name, *name;
	cJSON *config;
	int *inputs;
	int input_count;
	int64_t height, width, channels; /* of images; otherwise 0, 0, features */
	int depth, index;                /* Keras's, for sorting */
};

struct application_graph {
	struct arena arena;
	struct application_node *nodes;
	int count;
	size_t capacity;
	enum status status; /* the first failure */
	const char *small;  /* the layer whose output image is empty */
};

struct application_side {
	int before, after;
};

/* kernel 0 means 1, stride 0 means 1. */
struct application_conv {
	int64_t filters;
	int kernel, stride, rows, columns; /* rows x columns instead of a square kernel */
	bool same, bias;
	const char *activation;  /* NULL: linear */
	const char *initializer; /* Keras JSON; NULL: the default */
};

void application_graph_init(struct application_graph *graph, int64_t height, int64_t width,
			    int64_t channels, int64_t batch);
void application_graph_fini(struct application_graph *graph);

/* Format a name in the graph's memory; never NULL. */
const char *application_name(struct application_graph *graph, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* These functions append a layer to node @from and return the new node; @name NULL: Keras's default
 * name, "add_1". */
int application_conv(struct application_graph *graph, int from, const char *name,
		     const struct application_conv *conv);
int application_depthwise(struct application_graph *graph, int from, const char *name,
			  const struct application_conv *conv);
int application_separable(struct application_graph *graph, int from, const char *name,
			  const struct application_conv *conv);
/* @epsilon, @momentum 0: Keras's defaults. */
int application_norm(struct application_graph *graph, int from, const char *name, double epsilon,
		     double momentum, bool scale);
int application_activation(struct application_graph *graph, int from, const char *name,
			   const char *activation);
int application_relu(struct application_graph *graph, int from, const char *name);
int application_relu6(struct application_graph *graph, int from, const char *name);
int application_pad(struct application_graph *graph, int from, const char *name,
		    struct application_side rows, struct application_side columns);
int application_crop(struct application_graph *graph, int from, const char *name,
		     struct application_side rows, struct application_side columns);
/* @class_name: MaxPooling2D or AveragePooling2D. */
int application_pool(struct application_graph *graph, int from, const char *class_name,
		     const char *name, int size, int stride, bool same);
int application_global_pool(struct application_graph *graph, int from, const char *class_name,
			    const char *name, bool keepdims);
/* @class_name: Add, Multiply or Concatenate. */
int application_merge(struct application_graph *graph, const char *class_name, const char *name,
		      const int *from, int count);
int application_dense(struct application_graph *graph, int from, const char *name, int64_t units,
		      const char *activation, const char *initializer);
int application_flatten(struct application_graph *graph, int from, const char *name);
int application_reshape(struct application_graph *graph, int from, const char *name,
			const int64_t *shape, int count);
/* @per_item: one decision per item, as in EfficientNet's dropping of residual branches. */
int application_dropout(struct application_graph *graph, int from, const char *name, double rate,
			bool per_item);
int application_rescaling(struct application_graph *graph, int from, double scale, double offset);
int application_normalization(struct application_graph *graph, int from);

/* The multiple of 8 nearest to @value, at least 8, and at most a tenth below it. */
int64_t application_round_to_8(double value);
/* Channels of node @node; 1 after a failure. */
int64_t application_channels(const struct application_graph *graph, int node);

/* The padding of TensorFlow's networks before a convolution of stride 2, which keeps all pixels. */
void application_stride_pad(const struct application_graph *graph, int from, int kernel,
			    struct application_side *rows, struct application_side *columns);

/* Write the model whose output is @output. */
enum status application_graph_finish(struct application_graph *graph, const char *model_name,
				     int output, cJSON **out, struct err *err);

/* ---- internal: for the graph's sources ------------------------------------------------------- */

/* Append @item, taking ownership; false: out of memory. */
bool application__append(cJSON *list, cJSON *item);
/* The same for numbers. */
bool application__append_numbers(cJSON *list, const int64_t *values, int count);

#endif /* APPLICATION_GRAPH_H */
