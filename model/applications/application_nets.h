/*
 * The networks of keras.applications: one row each in application.c, one builder per family.
 */
#ifndef APPLICATION_NETS_H
#define APPLICATION_NETS_H

#include "model/applications/application_graph.h"

/* The parameters in which the networks of a family differ. */
struct application_row {
	const char *name;       /* "ResNet50" */
	const char *model_name; /* Keras's model.name; MobileNets add alpha and the image's side */
	/* Add the body after @input and return its last node. */
	int (*body)(struct application_graph *graph, const struct application_row *row, int input,
		    double alpha);
	/* Add the classifier; NULL: global pooling "avg_pool" and Dense "predictions". */
	int (*top)(struct application_graph *graph, const struct application_row *row, int from,
		   int64_t classes, const char *activation);
	int64_t side;  /* of the default image */
	int64_t least; /* the smallest side that Keras accepts without the top */
	/* ResNet, DenseNet: blocks per stack. VGG: convolutions of blocks 3 to 5. NASNet: cells
	 * of a stack, filters of the stem, filters of the first stack's cells, and whether the
	 * cell after a reduction skips it as its older input. */
	int blocks[4];
	double width, depth; /* EfficientNet's coefficients; width: MobileNetV3's last channels */
	double dropout;      /* before the classifier */
	bool takes_alpha;    /* MobileNets */
	bool narrows;        /* alpha is at most 1 and not part of the name: MobileNetV3 */
	bool pool_has_name;  /* name without the top: "avg_pool" instead of Keras's default */
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
