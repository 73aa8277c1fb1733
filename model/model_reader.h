/*
 * What the parts of the model reader share. A model in the JSON is a list of layers, some of
 * which may be models themselves. Each list is a scope of names and is read separately
 * (model_read.c). model_entries.c reads the kind and the names of each entry; model_graph.c
 * resolves its inputs (inbound_nodes of Keras 2 and 3) and sorts the calls into execution order;
 * model_call.c turns a call of an entry into layers. Failures are sticky in the reader's `err`.
 *
 * Threading: a reader is used by one thread. Ownership: data that the model retains is in its
 * arena; data that only the reading needs is in the reader's `scratch`.
 */
#ifndef MODEL_READER_H
#define MODEL_READER_H

#include "common/map.h"
#include "model/layers/layer.h"
#include "model/model_config.h"
#include "model/model_internal.h"

#define MODEL_LAYERS    16384 /* limit on a model's entries, nested models included */
#define MODEL_DEPTH     32    /* limit on nesting */
#define MODEL_PARTS     256   /* limit on a model's inputs */
#define MODEL_NAME_SIZE 128

/* ---- names ----------------------------------------------------------------------------------- */

/* A hash table from names to integers; initialize with {0}. Names are borrowed. */
struct model_names {
	struct map map;
	struct model_name *items; /* map.count elements */
	size_t capacity;
};

/* NULL: not found. The pointer is valid until the next name is added. */
int *model__names_find(const struct model_names *names, const char *name);
int model__names_add(struct model_names *names, const char *name, int value); /* -1: no memory */
void model__names_free(struct model_names *names);

/* Convert "MaybeOutfeed" to "maybe_outfeed", as Keras does. */
void model__snake(const char *class_name, char *out, size_t size);

/* ---- a list of layers ------------------------------------------------------------------------ */

enum model_entry_kind {
	MODEL_ENTRY_LAYER,
	MODEL_ENTRY_INPUT,       /* InputLayer */
	MODEL_ENTRY_MODEL,       /* a nested model */
	MODEL_ENTRY_APPLICATION, /* a nested application, not yet built */
	MODEL_ENTRY_WRAPPER      /* Bidirectional, TimeDistributed: also built when read */
};

#define MODEL_UNMASKED (-1)

#define MODEL_OUTSIDE (-1) /* among a call's inputs: an input of the scope */

/* A reference to a call, as configs write it: call number @number of @entry. */
struct model_reference {
	int entry;
	int64_t number;
	int output; /* 0; from 1 on a state that the layer returns, or a further output of a nested
		       model */
};

/* A call of an entry: Keras's node. A scope's calls are in the order of its entries. */
struct model_call {
	int entry;
	struct model_reference *from; /* by input: the reference as written */
	int *inputs;                  /* calls of the scope, or MODEL_OUTSIDE */
	int input_count;
	bool causal_mask; /* the call has use_causal_mask */
	bool inference;   /* the call has training: false */
	int source;       /* set when read: the layer that produces its output, or MODEL_INPUT */
	int *sources;     /* by output, for a nested model with several; NULL: state layers, if any,
			     directly follow `source` */
};

struct model_entry {
	enum model_entry_kind kind;
	const cJSON *node, *config; /* config: NULL for an application */
	const char *class_name, *name;
	const char *home;            /* path in Keras 3 weight files: see struct model_layer */
	const struct layer_ops *ops; /* of a layer */
	int first_call, call_count;  /* range in the scope's `calls` */
	int64_t most_number;         /* the greatest call number that references to it use */
	const char *object;          /* its shared_object_id, unique in the file; NULL: none */
	int first_layer;             /* the first layer of its first call; -1: not read yet */
	bool returns_state;          /* another entry reads its states */
	int row;
};

struct model_scope {
	const struct model_scope *outer; /* NULL: the model itself */
	const char *name, *home;         /* home: its entry's; NULL: the outermost model */
	const char *wrapper; /* the class of the wrapper that it stands for; NULL: a model */
	bool functional, trainable;
	bool inference;     /* called with training: false, or inside a model that was */
	const int *tensors; /* the scope's inputs: layers, or MODEL_INPUT */
	int tensor_count;
	int row; /* the row of all its layers; -1: each entry has a separate row */
	int depth;
	int sharing;           /* the namespace of shared_object_ids: see model__read_entries() */
	struct json_at layers; /* the list */
	struct model_entry *entries;
	int count;
	struct model_call *calls;
	int call_count;
	const int *inputs; /* calls of a functional model, in the order of "input_layers" */
	int input_count;
	/* In the order of "output_layers"; at least one. */
	struct model_end {
		int call;
		int output; /* its number: see struct model_reference */
	} * outputs;
	int output_count;
	struct model_names names; /* name to entry index */
	int *order;               /* calls in execution order */
};

/* Facts about a layer that are needed only while the model is read. */
struct model_note {
	int mask;  /* the layer that marks its valid steps, or MODEL_UNMASKED */
	int first; /* the layer of the first call: this one or an earlier one */
	int calls; /* for a first call: names given to repeated calls so far */
};

struct model_reader {
	struct model *model;
	struct arena *arena;
	struct arena scratch;
	const struct model_shape *data; /* may be NULL */
	bool ends; /* read only the names of the outputs: see model_new_outputs() */
	bool input_known;
	struct model_names taken;  /* layers' names */
	struct model_names shared; /* objects to the first layer of the first call; -1: not read */
	int entries;               /* so far, in all scopes; a repeated call counts as one */
	int sharings;              /* namespaces of shared_object_ids so far */
	struct model_reference *list; /* inputs of the call being read */
	size_t list_capacity;
	int list_count;
	cJSON *copies; /* a list of the configs that were changed before they were read */
	struct model_note *notes; /* by layer */
	size_t note_capacity;
	/* While a repeated call of an entry or object is read: the distance, in layers, from each layer to
	 * its counterpart of the first call. 0: the entry is read for the first time. */
	int again;
	struct err *err;
};

/* Allocate zeroed memory that only the reading needs, or that the model keeps. NULL: a failure, now
 * recorded. */
void *model__scratch(struct model_reader *reader, size_t count, size_t size);
void *model__kept(struct model_reader *reader, size_t count, size_t size);
/* Add @name to @names; NULL counts as lack of memory, which is recorded. */
void model__add_name(struct model_reader *reader, struct model_names *names, const char *name,
		     int value);

/* Item @index of @list, whose node is @node. Unlike json_item(), does not walk the list. */
struct json_at model__item(const struct json_at *list, const cJSON *node, int index);
/* The entry's position in the JSON; @layers must outlive it. */
struct json_at model__entry_at(const struct model_scope *scope, int entry);

/* Read a name that may be absent or null; *@place receives its position. */
void model__read_name(const struct json_at *at, struct json_at *place, const char **name,
		      struct err *err);
/* Read kinds and names of all entries in the list scope->layers. */
void model__read_entries(struct model_reader *reader, struct model_scope *scope);

/* Number of outputs of the nested model. */
int model__entry_outputs(const struct model_entry *entry);
/* Read the calls of every entry of a functional model, and the model's inputs and outputs. */
void model__read_calls(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config);
/* Set scope->order: each call after its inputs, otherwise in listed order. Fails on a cycle. */
void model__sort(struct model_reader *reader, struct model_scope *scope);

/* ---- calls ----------------------------------------------------------------------------------- */

/* The shape of @tensor, a layer's output or the model's input. NULL: not known yet. */
const struct model_shape *model__tensor_shape(const struct model_reader *reader, int tensor);
/* Input @index of @call, as a tensor: a layer's output or the model's input. */
int model__input_tensor(const struct model_scope *scope, const struct model_call *call, int index);
/* Output @index of the scope, as a tensor. */
int model__output_tensor(const struct model_scope *scope, int index);
/* Whether @entry is one of several inputs of the model, and therefore becomes a layer. */
bool model__is_part(const struct model_scope *scope, const struct model_entry *entry);
/* Read the InputLayers of a model of several inputs from @config. */
void model__read_parts(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config);
/* Read @call, whose entry is at @at: of an InputLayer that does not become a layer; of any other
 * layer. */
void model__read_input(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at);
void model__read_layer(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at);
/* Return space for the next layer; the caller increments model->layer_count when the layer is
 * complete. NULL: out of memory. */
struct model_layer *model__new_layer(struct model_reader *reader);
/* The layer that marks the valid steps of the model's output @output; 0: all steps are valid. */
int model__output_mask(struct model_reader *reader, const struct json_at *at, int output);

/* ---- wrappers -------------------------------------------------------------------------------- */

bool model__is_wrapper(const char *class_name);
/* Number of states of both directions of a Bidirectional. 0: not a Bidirectional, or @handed (the
 * states it returns are asked for) but its config does not return them. */
int model__wrap_states(const struct model_entry *entry, bool handed);
/* The attribute of Keras's @wrapper that holds the layer @name of the model that stands for it,
 * called @model; NULL: none does. */
const char *model__wrap_place(const char *wrapper, const char *model, const char *name);
/* Whether a Bidirectional leaves the outputs of its directions unmerged. */
bool model__wrap_is_unmerged(const struct model_entry *entry);
/* Build the functional model that the wrapper at @at stands for in a call of @inputs. The caller
 * deletes *@out. Names that it refers to are allocated from @arena. */
enum status model__wrap_build(cJSON **out, const struct json_at *at,
			      const struct model_entry *entry, int inputs, struct arena *arena,
			      struct err *err);

/* ---- masks of Keras 3 ------------------------------------------------------------------------ */

/* Whether operations that compute masks are among the layers of the model config. */
bool model__lists_masks(const cJSON *config);
/* Copy the config without them: see model_masks.c. The caller deletes *@out. */
enum status model__leave_masks_out(cJSON **out, const struct json_at *config, struct err *err);

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Read [null, 28, 28, 1]: the first is the batch (null: 0, any). Other null dimensions become 0. */
enum status model__read_shape(const struct json_at *at, struct model_shape *out, int64_t *batch,
			      struct err *err);
/* Check that every side and the product are small enough that sizes in bytes cannot overflow. */
enum status model__check_shape(const struct json_at *at, const struct model_shape *shape,
			       struct err *err);

#endif /* MODEL_READER_H */
