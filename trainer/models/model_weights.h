/*
 * The values of a model's parameters: those that Keras begins with, the rounded copy that layers
 * which compute in half read, and weights in files.
 *
 * Files are NumPy's .npz, one float32 array per variable, named as Keras names it
 * ("Dense_128/kernel:0"), or Keras's own: .h5, .weights.h5, .keras (keras_file.h). numpy.load()
 * reads what is saved; what numpy.savez() and savez_compressed() write of a Keras model's weights
 * loads.
 */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include <stdint.h>

#include "common/pool.h"
#include "common/rng.h"
#include "model/model.h"

/* ---- in memory ------------------------------------------------------------------------------- */

/* Draw @count values as @init says. */
void model_init_fill(const struct model_init *init, float *values, size_t count, struct rng *rng);

/* Keras's initial values (kernel: GlorotUniform, bias: zeros), keyed by (seed, layer name). */
void model_init_weights(const struct model *model, float *weights, uint64_t seed);

/*
 * Write the parameters that are half, of layers @first_layer .. @first_layer + @layer_count - 1,
 * into @halves, each value rounded to the nearest float16. Both blocks have the model's layout;
 * what is not half is left alone. With @learning only those that learn: what an update has changed.
 */
void model_round_weights(const struct model *model, struct pool *pool, int first_layer,
			 int layer_count, bool learning, const float *weights, float *halves);

/* ---- in files -------------------------------------------------------------------------------- */

/* Write all parameters, moving statistics included: whole or not at all. The same weights give the
 * same bytes. At most 4 GiB (ST_LIMIT). */
enum status model_weights_save(const struct model *model, const float *weights, const char *path,
			       struct err *err);

/*
 * Read by name; the order in the file does not matter, and ":0" may be missing. Every variable of
 * the model must be there and nothing else; with @by_name those that are there are read and all
 * others left alone. A wrong shape is an error either way. *@loaded: how many were read; may be
 * NULL. Files hold float16, float32 or float64. Errors name the file and the variable; only a
 * damaged file (its checksums do not fit) leaves part of @weights written.
 */
enum status model_weights_load(const struct model *model, float *weights, const char *path,
			       bool by_name, int *loaded, struct err *err);

/*
 * One number for all weights, to compare runs with: XXH3 (64 bits) of the values of all parameters,
 * in the order of their names' bytes, one after the other, each as the little-endian bytes of a
 * float32. A NaN counts as 0x7fc00000 whatever its bits. Names and shapes are not in it, nor is how
 * layers were shared out to stages.
 */
enum status model_weights_digest(uint64_t *out, const struct model *model, const float *weights,
				 struct err *err);

struct snapshot;
/* Write or read all parameters, each a field "WHAT/NAME": wherever a model's stages lay them. */
void model_weights_keep(const struct model *model, float *weights, const char *what,
			struct snapshot *snapshot);

struct keras_file;
/* Read the file at @path: a file of weights, as far as that is seen without a model. Before any
 * thread runs (keras_file_try()); on failure nothing is left in @out. */
enum status model_weights_open(struct keras_file *out, const char *path, struct err *err);
/* model_weights_load() from a file that was read. */
enum status model_weights_read(const struct model *model, float *weights, struct keras_file *file,
			       bool by_name, int *loaded, struct err *err);

struct npz;
/* model_weights_load() from an open archive, which @path is the name of. */
enum status model_weights_from(const struct model *model, float *weights, const struct npz *npz,
			       const char *path, bool by_name, int *loaded, struct err *err);

#endif /* MODEL_WEIGHTS_H */
