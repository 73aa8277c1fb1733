/*
 * Reading a model: what its parts share. A model in the JSON is a list of layers, some of which may
 * be models themselves; each list is a scope of names and is read on its own (model_read.c). Which
 * outputs come into an entry (inbound_nodes of Keras 2 and 3), and the order of execution, are
 * model_graph.c's; what a call of an entry becomes is model_call.c's. Failures stick in the
 * reader's `err`.
 *
 * Threading: one reader, one thread. Ownership: what the model keeps lies in its arena; what the
 * reading alone needs lies in the reader's `scratch`.
 */
#ifndef MODEL_READER_H
#define MODEL_READER_H

#include "common/map.h"
#include "model/layers/layer.h"
#include "model/model_config.h"
#include "model/model_internal.h"

#define MODEL_LAYERS    16384 /* the most entries of a model, those of nested ones included */
#define MODEL_DEPTH     32    /* the most models in one another */
#define MODEL_PARTS     256   /* the most inputs of a model */
#define MODEL_NAME_SIZE 128

/* ---- names ----------------------------------------------------------------------------------- */

/* A hash table from names to numbers; start with {0}. Names are borrowed. */
struct model_names {
	struct map map;
	struct model_name *items; /* map.count of them */
	size_t capacity;
};

/* NULL: not there. Valid until the next is added. */
int *model__names_find(const struct model_names *names, const char *name);
int model__names_add(struct model_names *names, const char *name, int value); /* -1: no memory */
void model__names_free(struct model_names *names);

/* "MaybeOutfeed" to "maybe_outfeed", as Keras does. */
void model__snake(const char *class_name, char *out, size_t size);

/* ---- a list of layers ------------------------------------------------------------------------ */

enum model_entry_kind {
	MODEL_ENTRY_LAYER,
	MODEL_ENTRY_INPUT,       /* InputLayer */
	MODEL_ENTRY_MODEL,       /* a nested one */
	MODEL_ENTRY_APPLICATION, /* a nested one, still to be built */
	MODEL_ENTRY_WRAPPER      /* Bidirectional, TimeDistributed: the same */
};

#define MODEL_UNMASKED (-1)

#define MODEL_OUTSIDE (-1) /* among a call's inputs: what comes into the scope */

/* A call as configs name it: number @number of @entry. */
struct model_reference {
	int entry;
	int64_t number;
	int output; /* 0, or from 1 a state that the layer hands on, or a further output of a nested
		       model */
};

/* A call of an entry: Keras's node. Calls of a scope stand in the order of their entries. */
struct model_call {
	int entry;
	struct model_reference *from; /* as written: the same as inputs */
	int *inputs;                  /* calls of the scope, or MODEL_OUTSIDE */
	int input_count;
	bool causal_mask; /* it has use_causal_mask */
	bool inference;   /* it has training: false */
	int source;       /* once it is read: the layer whose output it is, or MODEL_INPUT */
	int *sources;     /* of a nested model of several outputs: those of each; NULL: states, if
			     any, stand behind the source */
};

struct model_entry {
	enum model_entry_kind kind;
	const cJSON *node, *config; /* config: NULL for an application */
	const char *class_name, *name;
	const char *home;            /* where Keras 3's files keep it: see struct model_layer */
	const struct layer_ops *ops; /* of a layer */
	int first_call, call_count;  /* among the scope's */
	int64_t most_number;         /* the greatest that a reference to it has */
	int first_layer;             /* that its first call has become; -1: it is not read yet */
	bool hands_state;            /* something reads its states */
	int row;
};

struct model_scope {
	const struct model_scope *outer; /* NULL: the model itself */
	const char *name, *home;         /* home: of its entry; NULL: the model itself */
	bool functional, trainable;
	bool inference;     /* called with training: false, or within a model that was */
	const int *tensors; /* what comes in: layers, or MODEL_INPUT */
	int tensor_count;
	int row; /* of all layers; -1: each entry has one of its own */
	int depth;
	int sharing;           /* within which shared_object_ids are counted; see read_open() */
	struct json_at layers; /* the list */
	struct model_entry *entries;
	int count;
	struct model_call *calls;
	int call_count;
	const int *inputs; /* calls of a functional model, as "input_layers" has them */
	int input_count;
	/* As "output_layers" has them; at least one. */
	struct model_end {
		int call;
		int output; /* its number: see struct model_reference */
	} * outputs;
	int output_count;
	struct model_names names; /* to entries */
	int *order;               /* of execution: calls */
};

/* What is known of a layer while the model is read. */
struct model_note {
	int mask;  /* the layer that tells which of its steps count, or MODEL_UNMASKED */
	int first; /* the layer of which it is a call: itself, or one before */
	int calls; /* of that one: names given to further calls so far */
};

struct model_reader {
	struct model *model;
	struct arena *arena;
	struct arena scratch;
	const struct model_shape *data; /* may be NULL */
	bool ends; /* the names of outputs are all that is wanted: see model_new_outputs() */
	bool input_known;
	struct model_names taken, shared; /* layers' names; shared_object_ids */
	int entries;                      /* so far, of all scopes, or their calls where more */
	int sharings;                     /* the same */
	struct model_reference *list;     /* inputs of the call at hand */
	size_t list_capacity;
	int list_count;
	struct model_note *notes; /* by layer */
	size_t note_capacity;
	/* In a further call of an entry: how many layers before each one stands its like of the first
	 * call. 0: all is read for the first time. */
	int again;
	struct err *err;
};

/* Item @index of @list, which is @node: json_item() would count from the first each time. */
struct json_at model__item(const struct json_at *list, const cJSON *node, int index);
/* The entry's place; @layers must outlive it. */
struct json_at model__entry_at(const struct model_scope *scope, int entry);

/* How many outputs the nested model has. */
int model__entry_outputs(const struct model_entry *entry);
/* Calls of every entry of a functional model, and its inputs and output. */
void model__read_calls(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config);
/* Set scope->order: after all inputs, else as listed. Fails where there is none. */
void model__sort(struct model_reader *reader, struct model_scope *scope);

/* ---- calls ----------------------------------------------------------------------------------- */

/* The shape of @tensor, a layer's output or the model's input; NULL: not known so far. */
const struct model_shape *model__tensor_shape(const struct model_reader *reader, int tensor);
/* What comes into @call as its input @index: a layer's output or the model's input. */
int model__tensor(const struct model_scope *scope, const struct model_call *call, int index);
/* What the scope's output @index is: the same. */
int model__end(const struct model_scope *scope, int index);
/* Of a model of several inputs, is @entry one, and so a layer? */
bool model__is_part(const struct model_scope *scope, const struct model_entry *entry);
/* Its InputLayers, from @config. */
void model__read_parts(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config);
/* An InputLayer that is no layer of ours, and any other layer: @call's, at @at. */
void model__read_input(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at);
void model__read_layer(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at);
/* Room for the next one, which model->layer_count counts when it is whole. NULL: no memory. */
struct model_layer *model__new_layer(struct model_reader *reader);
/* The layer that tells which steps of the model's output @output count; 0: all do. */
int model__output_mask(struct model_reader *reader, const struct json_at *at, int output);

/* ---- a model --------------------------------------------------------------------------------- */

/* From the object at @at: a model, a config alone, or an application. */
void model__read(struct model_reader *reader, const struct json_at *at);

/* ---- wrappers -------------------------------------------------------------------------------- */

bool model__is_wrapper(const char *class_name);
/* States of both directions of a Bidirectional; 0: it is none, or where they are to be @handed on
 * that its config does not ask for it. */
int model__wrap_states(const struct model_entry *entry, bool handed);
/* Does a Bidirectional leave its directions' outputs as two? */
bool model__wrap_leaves_two(const struct model_entry *entry);
/* The functional model that the wrapper at @at stands for in a call of @inputs: *@out is the
 * caller's to delete. Names that it needs come from @arena. */
enum status model__wrap_build(cJSON **out, const struct json_at *at,
			      const struct model_entry *entry, int inputs, struct arena *arena,
			      struct err *err);

/* ---- shapes ---------------------------------------------------------------------------------- */

/* [null, 28, 28, 1]: the first is the batch (0: any). Other dimensions that are null become 0. */
enum status model__read_shape(const struct json_at *at, struct model_shape *out, int64_t *batch,
			      struct err *err);
/* Every side and the product stay in bounds in which sizes in bytes cannot overflow. */
enum status model__check_shape(const struct json_at *at, const struct model_shape *shape,
			       struct err *err);

#endif /* MODEL_READER_H */
