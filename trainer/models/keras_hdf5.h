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
 * Test a file: a child process reads all that the functions below read, since libhdf5 crashes on
 * some damaged files; ST_FORMAT if it does. No other thread may use libhdf5 meanwhile: its lock
 * would stay locked in the child.
 */
enum status keras_hdf5_try(const char *name, const void *bytes, size_t length, struct err *err);

/* The two functions below read only files that keras_hdf5_try() accepted. */

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
 * the file, since libhdf5 crashes where memory ends. Other threads may run: the locks that it needs
 * are malloc()'s, which fork() hands over, and libhdf5's, which they do not use. */
enum status keras_hdf5_write(char **out, size_t *length, const struct model *model,
			     const float *weights, enum keras_layout layout, const char *config,
			     const char *name, struct err *err);

#endif /* KERAS_HDF5_H */
