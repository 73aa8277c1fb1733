/*
 * The part of the model that only this folder uses, mainly the layers while the model is read.
 */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "common/arena.h"
#include "model/model.h"

/* Create a model without layers, which model_free() ends. */
enum status model__new(struct model **out, struct err *err);

/* Zeroed memory that lives as long as the model, or NULL if out of memory. */
void *model__alloc(struct model *model, size_t count, size_t size);

struct arena *model__arena(struct model *model);

/* Append a parameter to @layer, whose name is set. Fails with ST_LIMIT at @at if the model exceeds
 * the size limit. *@out is valid until the next parameter is added. */
enum status model__add_param(struct model *model, struct model_layer *layer,
			     const struct json_at *at, const char *short_name,
			     const struct model_shape *shape, const struct model_init *init,
			     struct model_param **out, struct err *err);

bool model__same_shape(const struct model_shape *a, const struct model_shape *b);

/* The activation at @key of @config: a name, or the object that Keras 3 writes for a function. null
 * means linear; if @key is absent, *@out does not change. */
void model__read_activation(const struct json_at *config, const char *key,
			    enum model_activation *out, struct err *err);

/* The policy that "dtype" in a layer's (already checked) config names. */
enum model_policy model__read_policy(const struct json_at *config);

#endif /* MODEL_INTERNAL_H */
