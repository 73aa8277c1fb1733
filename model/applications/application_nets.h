/*
 * The networks of keras.applications: a row each in application.c, a body per family.
 */
#ifndef APPLICATION_NETS_H
#define APPLICATION_NETS_H

#include "model/applications/application_net.h"

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

#endif /* APPLICATION_NETS_H */
