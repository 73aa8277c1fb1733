/*
 * Keras's HDF5 files, in memory: models with weights (.h5), weights (.h5, .weights.h5).
 *
 * Two layouts are read and written. Keras 1 and 2, and .h5 of Keras 3: one group per layer, listed
 * by the attributes layer_names and weight_names, below model_weights if the file has a
 * model_config. Keras 3's .weights.h5, also within .keras: groups by the layers' classes (struct
 * model_layer.home) with arrays vars/0, vars/1 ... Sources: keras/src/legacy/saving/
 * legacy_h5_format.py, keras/src/saving/saving_lib.py.
 *
 * Without libhdf5 all functions return ST_UNSUPPORTED, with a message that says so.
 */
#ifndef KERAS_HDF5_H
#define KERAS_HDF5_H

#include "common/apart.h"
#include "model/model.h"
#include "trainer/data/npz.h"

/* Named arrays from which weights are read, independent of the file format. */
struct weights_source {
	const struct npz_array *arrays;
	int count;
	const void *file; /* argument of read() and close() */
	enum status (*read)(const void *file, int index, float *out, size_t count, struct err *err);
	void (*close)(const void *file);
};

/*
 * libhdf5 crashes on some damaged files, and where memory ends. So the functions that read a file
 * are called in child processes only, by apart_call() with this request; @name is borrowed.
 */
struct apart keras_hdf5_reading(const char *name, size_t length);

/* Check in a child process that the file is one of Keras's, whose arrays can be found. */
enum status keras_hdf5_check(const char *name, const void *bytes, size_t length, struct err *err);

/* Return the text of model_config; free *@out with mem_free(). @name: the file's, for messages. */
enum status keras_hdf5_config(char **out, const char *name, const void *bytes, size_t length,
			      struct err *err);

/*
 * Open the file's arrays under the names of @model's parameters. Layers are matched by name, their
 * arrays by name or else by order. If layer names do not match, and not @by_name, everything is
 * matched by order, as in Keras. Unmatched arrays keep the file's names. On failure @out is empty.
 */
enum status keras_hdf5_open(struct weights_source *out, const struct model *model, const char *name,
			    const void *bytes, size_t length, bool by_name, struct err *err);

/* ST_UNSUPPORTED without libhdf5. @name: the file that needs it. */
enum status keras_hdf5_usable(const char *name, struct err *err);

enum keras_layout {
	KERAS_LAYOUT_2, /* .h5 */
	KERAS_LAYOUT_3  /* .weights.h5 */
};

/* Write all parameters as an HDF5 file; free *@out with mem_free(). @config: the model's JSON,
 * which makes the file a whole model (KERAS_LAYOUT_2 only); NULL: weights. A child process makes
 * the file. */
enum status keras_hdf5_write(char **out, size_t *length, const struct model *model,
			     const float *weights, enum keras_layout layout, const char *config,
			     const char *name, struct err *err);

#endif /* KERAS_HDF5_H */
