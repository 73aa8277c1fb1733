/*
 * The values of a model's parameters: Keras's initial values, the rounded copy for layers of mixed
 * policies, and weights in files.
 *
 * Files are NumPy's .npz, one float32 array per variable, named as in Keras
 * ("Dense_128/kernel:0"), or Keras's own formats: .h5, .weights.h5, .keras (keras_file.h reads
 * them, keras_save.h writes them). numpy.load() reads the saved .npz files; files that
 * numpy.savez() and savez_compressed() write of a Keras model's weights can be loaded.
 */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include <stdint.h>

#include "common/pool.h"
#include "common/rng.h"
#include "model/model.h"

/* ---- in memory ------------------------------------------------------------------------------- */

/* Draw @count values from the initializer @init. */
void model_init_fill(const struct model_init *init, float *values, size_t count, struct rng *rng);

/* Set Keras's initial values (kernel: GlorotUniform, bias: zeros), keyed by (seed, layer name). */
void model_init_weights(const struct model *model, float *weights, uint64_t seed);

/*
 * Round the parameters of mixed policies, of @layer_count layers from @first_layer on, into
 * @halves, each value to the nearest float16 or bfloat16. Both blocks have the model's layout;
 * other parameters are not written. With @learning only trainable ones: those that an update has
 * changed.
 */
void model_round_weights(const struct model *model, struct pool *pool, int first_layer,
			 int layer_count, bool learning, const float *weights, float *halves);

/* ---- in files -------------------------------------------------------------------------------- */

/* Write all parameters, including moving statistics: completely or not at all. The same weights
 * give the same bytes. At most 4 GiB (ST_LIMIT). */
enum status model_weights_save(const struct model *model, const float *weights, const char *path,
			       struct err *err);

/*
 * Read weights by name, in any order; ":0" may be missing. The file must have every variable of
 * the model and no others. With @by_name, variables that only one of them has are skipped. A wrong
 * shape is always an error. *@loaded: the number of variables read; may be NULL. Files contain
 * float16, float32 or float64. Errors name the file and the variable; only a damaged file (wrong
 * checksum) leaves part of @weights overwritten. A child process reads HDF5 (keras_hdf5.h).
 */
enum status model_weights_load(const struct model *model, float *weights, const char *path,
			       bool by_name, int *loaded, struct err *err);

/*
 * A digest of all weights, to compare runs: XXH3 (64 bits) of the values of all parameters, in the
 * byte order of their names, concatenated, each as the little-endian bytes of a float32. Any NaN
 * counts as 0x7fc00000. Names and shapes are not included, nor is the assignment of layers to
 * stages.
 */
enum status model_weights_digest(uint64_t *out, const struct model *model, const float *weights,
				 struct err *err);

struct snapshot;
/* Write or read all parameters, each as a field "WHAT/NAME", independent of the layout of
 * stages. */
void model_weights_snapshot(const struct model *model, float *weights, const char *what,
			    struct snapshot *snapshot);

struct keras_file;
/* Read the file at @path and check, as far as possible without a model, that it has weights. On
 * failure @out is empty. */
enum status model_weights_open(struct keras_file *out, const char *path, struct err *err);
/* model_weights_load() from an open file. */
enum status model_weights_read(const struct model *model, float *weights, struct keras_file *file,
			       bool by_name, int *loaded, struct err *err);

struct npz;
/* model_weights_load() from an open archive, whose name is @path. */
enum status model_weights_from(const struct model *model, float *weights, const struct npz *npz,
			       const char *path, bool by_name, int *loaded, struct err *err);

#endif /* MODEL_WEIGHTS_H */
