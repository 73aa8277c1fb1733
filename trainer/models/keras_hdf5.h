/*
 * What Keras keeps in HDF5, in memory: models with weights (.h5), weights (.h5, .weights.h5).
 *
 * Two layouts are read and written. Keras 1 and 2, and .h5 of Keras 3: a group for each layer,
 * named by the attributes layer_names and weight_names, below model_weights where a model_config
 * stands beside it. Keras 3's .weights.h5, also within .keras: groups by the layers' classes
 * (struct model_layer.home) with arrays vars/0, vars/1 ... Sources: keras/src/legacy/saving/
 * legacy_h5_format.py, keras/src/saving/saving_lib.py.
 *
 * Without libhdf5 all of it is ST_UNSUPPORTED, and says so.
 */
#ifndef KERAS_HDF5_H
#define KERAS_HDF5_H

#include "model/model.h"
#include "trainer/models/weights_source.h"

/*
 * A process of its own reads all that the functions below read, since libhdf5 crashes on damaged
 * files; ST_FORMAT where it does. To be called before any other thread runs: a lock that another
 * thread holds stays locked in the child.
 */
enum status keras_hdf5_try(const char *name, const void *bytes, size_t length, struct err *err);

/* Both below read only what keras_hdf5_try() has found good. */

/* The text of model_config: *@out is the caller's (mem_free). @name is the file's, for messages. */
enum status keras_hdf5_config(char **out, const char *name, const void *bytes, size_t length,
			      struct err *err);

/*
 * The arrays of the file under the names of @model's parameters. Layers go by name, their arrays by
 * name or else by order; where names do not fit and not @by_name, all go by order as in Keras. What
 * belongs nowhere keeps the file's name. On failure nothing is left in @out.
 */
enum status keras_hdf5_open(struct weights_source *out, const struct model *model, const char *name,
			    const void *bytes, size_t length, bool by_name, struct err *err);

/* ST_UNSUPPORTED without libhdf5. @name: the file that asks. */
enum status keras_hdf5_usable(const char *name, struct err *err);

enum keras_layout {
	KERAS_LAYOUT_2, /* .h5 */
	KERAS_LAYOUT_3  /* .weights.h5 */
};

/* All parameters as an HDF5 file: *@out is the caller's (mem_free). @config: the model's JSON,
 * which makes it a whole model (KERAS_LAYOUT_2 alone); NULL: weights. */
enum status keras_hdf5_write(char **out, size_t *length, const struct model *model,
			     const float *weights, enum keras_layout layout, const char *config,
			     const char *name, struct err *err);

#endif /* KERAS_HDF5_H */
