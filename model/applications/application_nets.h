/*
 * The networks of keras.applications: one row each in application.c, one builder per family.
 */
#ifndef APPLICATION_NETS_H
#define APPLICATION_NETS_H

#include "model/applications/application_graph.h"

/* What may differ between two networks of a family. */
struct application_row {
	const char *name;       /* "ResNet50" */
	const char *model_name; /* Keras's model.name; MobileNets add alpha and the image's side */
	/* Adds the body from @input on and returns its last node. */
	int (*body)(struct application_graph *graph, const struct application_row *row, int input,
		    double alpha);
	/* From the body to the classes; NULL: global pooling "avg_pool" and Dense "predictions". */
	int (*top)(struct application_graph *graph, const struct application_row *row, int from,
		   int64_t classes, const char *activation);
	int64_t side;  /* of the default image */
	int64_t least; /* the smallest side that Keras takes without the top */
	/* ResNet, DenseNet: by stack; VGG: convolutions of blocks 3 to 5; NASNet: cells of a stack,
	 * filters of the stem and of the first stack's cells, and whether the cell behind a
	 * reduction looks past it. */
	int blocks[4];
	double width, depth; /* EfficientNet's coefficients; width: MobileNetV3's last channels */
	double dropout;      /* before the classes */
	bool takes_alpha;    /* MobileNets */
	bool narrows;        /* alpha is 1 at most, and not in the name: MobileNetV3 */
	bool pool_has_name;  /* without the top: "avg_pool" or Keras's default name */
};

int application_resnet(struct application_graph *graph, const struct application_row *row,
		       int input, double alpha);
int application_resnet_v2(struct application_graph *graph, const struct application_row *row,
			  int input, double alpha);
int application_vgg(struct application_graph *graph, const struct application_row *row, int input,
		    double alpha);
int application_vgg_top(struct application_graph *graph, const struct application_row *row,
			int from, int64_t classes, const char *activation);
int application_mobilenet(struct application_graph *graph, const struct application_row *row,
			  int input, double alpha);
int application_mobilenet_top(struct application_graph *graph, const struct application_row *row,
			      int from, int64_t classes, const char *activation);
int application_mobilenet_v2(struct application_graph *graph, const struct application_row *row,
			     int input, double alpha);
int application_mobilenet_v2_top(struct application_graph *graph, const struct application_row *row,
				 int from, int64_t classes, const char *activation);
int application_mobilenet_v3_small(struct application_graph *graph,
				   const struct application_row *row, int input, double alpha);
int application_mobilenet_v3_large(struct application_graph *graph,
				   const struct application_row *row, int input, double alpha);
int application_mobilenet_v3_top(struct application_graph *graph, const struct application_row *row,
				 int from, int64_t classes, const char *activation);
int application_densenet(struct application_graph *graph, const struct application_row *row,
			 int input, double alpha);
int application_efficientnet(struct application_graph *graph, const struct application_row *row,
			     int input, double alpha);
int application_efficientnet_top(struct application_graph *graph, const struct application_row *row,
				 int from, int64_t classes, const char *activation);
int application_xception(struct application_graph *graph, const struct application_row *row,
			 int input, double alpha);
int application_inception(struct application_graph *graph, const struct application_row *row,
			  int input, double alpha);
int application_nasnet(struct application_graph *graph, const struct application_row *row,
		       int input, double alpha);
int application_nasnet_top(struct application_graph *graph, const struct application_row *row,
			   int from, int64_t classes, const char *activation);

#endif /* APPLICATION_NETS_H */
