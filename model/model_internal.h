/*
 * What the layers need of the model while it is read, and what only this folder asks.
 */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "common/arena.h"
#include "model/model.h"
#include "model/model_init.h"

/* Zeroed memory that lives as long as the model; NULL: there is none. */
void *model__alloc(struct model *model, size_t count, size_t size);

struct arena *model__arena(struct model *model);

/* Append a parameter to @layer, whose name is set. ST_LIMIT where the model would not fit into
 * memory: the error is at @at. *@out is valid until the next is added. */
enum status model__add_param(struct model *model, struct model_layer *layer,
			     const struct json_at *at, const char *short_name,
			     const struct model_shape *shape, const struct model_init *init,
			     struct model_param **out, struct err *err);

/* The activation at @key of @config: a name, or the object that Keras 3 writes for a function. Null
 * is linear; absent leaves *@out. */
void model__read_activation(const struct json_at *config, const char *key,
			    enum model_activation *out, struct err *err);

/* What "dtype" in a layer's config, which is checked, says. */
enum model_policy model__read_policy(const struct json_at *config);

#endif /* MODEL_INTERNAL_H */
