/*
 * Keras's HDF5 files and a model's parameters: which array belongs to which parameter.
 *
 * In either layout a file is a list of groups of arrays. The groups are listed first, then matched
 * with the model's layers, then read array by array. Threading: none. Ownership: an open source
 * owns its file and the arena of all names.
 *
 * libhdf5 uses some damaged numbers as offsets outside its memory (1.10.8: lengths in the global
 * heap), and no check of ours can run before it does. Where memory ends, the library crashes as
 * well, as it starts above all. So child processes read and make the files (apart.h).
 */
#include "trainer/models/keras_hdf5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/str.h"
#include "trainer/models/hdf5_file.h"

#define KERAS_ARRAYS_MOST 65536
#define KERAS_DEPTH       64 /* maximum nesting of groups */
#define KERAS_PATH_SIZE   4096
#define KERAS_LAYERS_MOST 8192                             /* whose names take more than reading */
#define KERAS_LIST        "_layer_checkpoint_dependencies" /* of TensorFlow 2.12 and 2.13 */
#define KERAS_CHILD_BYTES ((size_t)1 << 30)                /* in addition to what the file needs */

struct keras_group {
	const char *name; /* the layer's name, or its home */
	int first, count; /* range of arrays */
	int *params;      /* the parameter of each array; NULL: unknown */
};

struct keras_source {
	struct hdf5 *file;
	/* Keras 2.13 to 2.15 on Windows: all groups of layers are at the top, and their names are paths,
	 * as "layers\\lstm\\cell". In order; NULL: any other file. */
	struct hdf5_texts flat;
	struct arena arena;
	struct npz_array *arrays;
	const char **paths; /* path of each array */
	const char **names; /* name of each array, as in the file */
	size_t arrays_room, paths_room, names_room, groups_room;
	struct keras_group *groups;
	int count, group_count, visited;
	struct err *err;
};

static void source_free(struct keras_source *s)
{
	if (!s)
		return;
	hdf5_close(s->file);
	mem_free(s->flat.items);
	arena_fini(&s->arena);
	mem_free(s->arrays);
	mem_free(s->paths);
	mem_free(s->names);
	mem_free(s->groups);
	mem_free(s);
}

/* ---- the file's contents --------------------------------------------------------------------- */

static void add_group(struct keras_source *s, const char *name)
{
	if (err_stuck(s->err))
		return;
	if (mem_grow(&s->groups, &s->groups_room, (size_t)s->group_count + 1, sizeof(*s->groups))) {
		err_nomem(s->err);
		return;
	}
	s->groups[s->group_count] = (struct keras_group){
		.name = arena_strdup(&s->arena, name), .first = s->count, .count = 0};
	if (!s->groups[s->group_count++].name)
		err_nomem(s->err);
}

/* Add the array at @path, named @name, to the last group. */
static void add_array(struct keras_source *s, const char *path, const char *name)
{
	struct hdf5_shape shape;
	struct npz_array *array;
	const size_t next = (size_t)s->count + 1;

	if (err_stuck(s->err) || hdf5_shape(s->file, path, &shape, s->err) != ST_OK)
		return;
	if (s->count == KERAS_ARRAYS_MOST) {
		err_set(s->err, ST_LIMIT, "%.512s: is beyond the limit of %d arrays", path,
			KERAS_ARRAYS_MOST);
		return;
	}
	if (mem_grow(&s->arrays, &s->arrays_room, next, sizeof(*s->arrays)) ||
	    mem_grow(&s->paths, &s->paths_room, next, sizeof(*s->paths)) ||
	    mem_grow(&s->names, &s->names_room, next, sizeof(*s->names)) ||
	    !(s->paths[s->count] = arena_strdup(&s->arena, path)) ||
	    !(s->names[s->count] = arena_strdup(&s->arena, name))) {
		err_nomem(s->err);
		return;
	}
	_Static_assert(HDF5_DIMS == NPZ_DIMS, "shapes out of step");
	array = &s->arrays[s->count++];
	*array = (struct npz_array){.name = s->paths[s->count - 1], .ndim = shape.ndim};
	memcpy(array->dim, shape.dim, sizeof(array->dim));
	s->groups[s->group_count - 1].count++;
}

static bool join(struct keras_source *s, char out[KERAS_PATH_SIZE], const char *a, const char *b)
{
	const int length = snprintf(out, KERAS_PATH_SIZE, "%s%s%s", a, *a ? "/" : "", b);

	if (length > 0 && length < KERAS_PATH_SIZE)
		return true;
	err_set(s->err, ST_LIMIT, "%.512s: the path of a group is too long", a);
	return false;
}

/* Whether it is a random generator's state: a group (Keras 3) or an array (TensorFlow 2.4). */
static bool is_generator(const char *name)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

	return !strcmp(last, "seed_generator") || !strcmp(last, "generator") ||
	       str_starts_with(last, "StateVar:");
}

/* Keras 1 and 2: collect the named lists below @base. */
static void collect_named(struct keras_source *s, const char *base)
{
	struct hdf5_texts layers, weights;
	char group[KERAS_PATH_SIZE], path[KERAS_PATH_SIZE];

	hdf5_texts(s->file, base, "layer_names", &layers, s->err);
	for (int i = 0; !err_stuck(s->err) && i < layers.count; i++) {
		if (!join(s, group, base, layers.items[i]) ||
		    hdf5_texts(s->file, group, "weight_names", &weights, s->err) != ST_OK)
			break;
		for (int w = 0, kept = 0; !err_stuck(s->err) && w < weights.count; w++) {
			if (is_generator(weights.items[w]) ||
			    !join(s, path, group, weights.items[w]))
				continue;
			if (!kept++)
				add_group(s, layers.items[i]);
			add_array(s, path, weights.items[w]);
		}
		mem_free(weights.items);
	}
	mem_free(layers.items);
}

/* The rank of a layer's child in the order of the layer's weights; unknown names come last. */
static int child_rank(const char *name)
{
	static const char *const order[] = {"cell",           "layer",       "forward_layer",
					    "backward_layer", "query_dense", "key_dense",
					    "value_dense",    "output_dense"};

	name += *name == '_';
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (!strcmp(name, order[i]))
			return (int)i;
	return (int)ARRAY_LEN(order);
}

/* Whether @name is a path that goes on after @path. */
static bool is_below(const char *name, const char *path)
{
	const size_t length = strlen(path);

	return !strncmp(name, path, length) && name[length] == '\\';
}

static bool has_group(const struct keras_source *s, const char *path)
{
	for (int i = 0; i < s->flat.count; i++)
		if (!strcmp(s->flat.items[i], path) || is_below(s->flat.items[i], path))
			return true;
	return !s->flat.items && hdf5_has_group(s->file, path);
}

static bool join_group(struct keras_source *s, char out[KERAS_PATH_SIZE], const char *path,
		       const char *name)
{
	const size_t length = strlen(path);

	if (!join(s, out, path, name))
		return false;
	if (s->flat.items && length > 0)
		out[length] = '\\';
	return true;
}

/* List the names of the groups in @path; free @out->items with mem_free(). */
static enum status list_groups(struct keras_source *s, const char *path, struct hdf5_texts *out)
{
	if (!s->flat.items)
		return hdf5_names(s->file, path, out, s->err);
	*out = (struct hdf5_texts){mem_calloc((size_t)s->flat.count, sizeof(*out->items)), 0};
	for (int i = 0; out->items && i < s->flat.count; i++) {
		const char *rest = s->flat.items[i];
		char *name;

		if (*path && !is_below(rest, path))
			continue;
		rest += *path ? strlen(path) + 1 : 0;
		name = arena_printf(&s->arena, "%.*s", (int)strcspn(rest, "\\"), rest);
		if (!name) {
			mem_free(out->items);
			return err_nomem(s->err);
		}
		if (out->count == 0 || strcmp(out->items[out->count - 1], name) != 0)
			out->items[out->count++] = name;
	}
	return out->items ? ST_OK : err_nomem(s->err);
}

/* Split "dense_2" into the length of "dense" and 2; "dense" has the number 0. */
static size_t split_number(const char *name, long *number)
{
	const char *last = strrchr(name, '_');
	char *end;

	*number = 0;
	if (!last || last[1] < '0' || last[1] > '9')
		return strlen(name);
	*number = strtol(last + 1, &end, 10);
	return *end ? strlen(name) : (size_t)(last - name);
}

/* The name of item @index of the list @path as Keras 3 counts it. TensorFlow 2.12 and 2.13 list a
 * layer twice, once as a layer with weights: dense and dense_2 are dense and dense_1. */
static const char *count_layer(struct keras_source *s, const char *path,
			       const struct hdf5_texts *names, int index)
{
	const char *name = names->items[index];
	int before = 0;
	const size_t path_length = strlen(path), list_length = strlen(KERAS_LIST);
	size_t length;
	long number;

	if (names->count > KERAS_LAYERS_MOST || path_length < list_length ||
	    strcmp(path + path_length - list_length, KERAS_LIST) != 0)
		return name;
	length = split_number(name, &number);
	for (int i = 0; i < names->count; i++) {
		long other;

		before += !strncmp(names->items[i], name, length) &&
			  split_number(names->items[i], &other) == length && other < number;
	}
	name = before ? arena_printf(&s->arena, "%.*s_%d", (int)length, name, before)
		      : arena_printf(&s->arena, "%.*s", (int)length, name);
	if (!name)
		err_nomem(s->err);
	return name;
}

/* Collect vars/0, vars/1 ... of @path. */
static void collect_vars(struct keras_source *s, const char *path)
{
	char vars[KERAS_PATH_SIZE], at[KERAS_PATH_SIZE], number[16];
	struct hdf5_texts names;

	if (!join(s, vars, path, "vars") || !hdf5_has_group(s->file, vars) ||
	    hdf5_names(s->file, vars, &names, s->err) != ST_OK)
		return;
	for (int i = 0; !err_stuck(s->err) && i < names.count; i++) {
		snprintf(number, sizeof(number), "%d", i);
		if (join(s, at, vars, number))
			add_array(s, at, at);
	}
	mem_free(names.items);
}

/* Keras 3: collect groups by the layers' classes. @in_list: the children of @path are layers. */
static void collect_numbered(struct keras_source *s, const char *path, const char *home,
			     bool in_list, int depth)
{
	char child[KERAS_PATH_SIZE], inner[KERAS_PATH_SIZE];
	struct hdf5_texts names;

	if (++s->visited > KERAS_ARRAYS_MOST || depth > KERAS_DEPTH)
		err_set(s->err, ST_LIMIT, "%.512s: groups are nested too deep or too many", path);
	if (err_stuck(s->err))
		return;
	if (depth > 0 && !in_list)
		collect_vars(s, path);
	if (err_stuck(s->err) || list_groups(s, path, &names) != ST_OK)
		return;
	for (int rank = 0; rank <= child_rank(""); rank++) {
		for (int i = 0; !err_stuck(s->err) && i < names.count; i++) {
			const char *name = names.items[i];
			const bool list = !strcmp(name, "layers") || !strcmp(name, KERAS_LIST);

			if (child_rank(name) != rank || !strcmp(name, "vars") ||
			    (!in_list && is_generator(name)) || (depth == 0 && !list) ||
			    !join_group(s, child, path, name) || !has_group(s, child))
				continue;
			if (in_list && !list)
				name = count_layer(s, path, &names, i);
			if (!name || (list      ? !join(s, inner, home, "layers")
				      : in_list ? !join(s, inner, home, name)
						: false))
				break;
			if (in_list)
				add_group(s, inner);
			collect_numbered(s, child, list || in_list ? inner : home, list, depth + 1);
		}
	}
	mem_free(names.items);
}

/* Refuse an HDF5 file of another program; the first names in it show what it is. */
static void refuse_contents(struct keras_source *s, const char *name)
{
	struct hdf5_texts names = {0};
	struct str some = {0};
	struct err own;

	if (hdf5_names(s->file, "", &names, &own) == ST_OK)
		for (int i = 0; i < names.count && i < 4; i++)
			str_addf(&some, "%s\"%.64s\"", i ? ", " : "", names.items[i]);
	err_set(s->err, ST_UNSUPPORTED,
		"%s: is an HDF5 file but none of Keras's: it has neither layer_names nor layers "
		"(it has %s%s): save it with model.save() or model.save_weights()",
		name, names.count ? str_peek(&some) : "nothing", names.count > 4 ? " ..." : "");
	str_free(&some);
	mem_free(names.items);
}

/* Set s->flat if names of groups are paths. */
static void read_flat(struct keras_source *s)
{
	struct hdf5_texts names = {0};
	bool flat = false;

	if (err_stuck(s->err) || hdf5_names(s->file, "", &names, s->err) != ST_OK)
		return;
	for (int i = 0; i < names.count && names.count <= KERAS_LAYERS_MOST && !flat; i++)
		flat = is_below(names.items[i], "layers") || is_below(names.items[i], KERAS_LIST);
	if (flat)
		s->flat = names;
	else
		mem_free(names.items);
}

/* Collect all groups and arrays; return the layout. */
static enum keras_layout collect_all(struct keras_source *s, const char *name)
{
	static const char *const bases[] = {"model_weights", ""};

	for (size_t i = 0; i < ARRAY_LEN(bases); i++)
		if (hdf5_has_attribute(s->file, bases[i], "layer_names") ||
		    hdf5_has_attribute(s->file, bases[i], "layer_names0")) {
			collect_named(s, bases[i]);
			return KERAS_LAYOUT_2;
		}
	read_flat(s);
	if (has_group(s, "layers") || has_group(s, KERAS_LIST))
		collect_numbered(s, "", "", false, 0);
	else
		refuse_contents(s, name);
	return KERAS_LAYOUT_3;
}

/* ---- reading apart --------------------------------------------------------------------------- */

struct apart keras_hdf5_reading(const char *name, size_t length)
{
	return (struct apart){
		.name = name,
		.status = ST_FORMAT,
		.crash = "is damaged, or memory ended: libhdf5 does not read all of it",
		.memory = 8 * length + KERAS_CHILD_BYTES};
}

struct checking {
	const char *name;
	const void *bytes;
	size_t length;
};

static enum status check_file(void *user, struct apart_out *out, struct err *err)
{
	const struct checking *checking = user;
	struct keras_source s = {.err = err};

	(void)out;
	if (arena_init(&s.arena, 0))
		return err_nomem(err);
	if (hdf5_open(&s.file, checking->name, checking->bytes, checking->length, err) == ST_OK)
		collect_all(&s, checking->name);
	return err->status;
}

enum status keras_hdf5_check(const char *name, const void *bytes, size_t length, struct err *err)
{
	const struct apart reading = keras_hdf5_reading(name, length);
	struct checking checking = {name, bytes, length};
	enum status status;
	size_t none;
	char *out;

	status = apart_call(check_file, &checking, &reading, &out, &none, err);
	mem_free(out);
	return status;
}

/* ---- matching arrays and parameters ---------------------------------------------------------- */

/* Whether the layer's home is @home or that of a layer which holds it, such as a Bidirectional.
 * Models hold lists of layers, which have groups of their own. */
static bool is_at_home(const struct model_layer *layer, const char *home)
{
	const size_t length = strlen(home);

	return !strncmp(layer->home, home, length) &&
	       (layer->home[length] == '\0' ||
		(layer->home[length] == '/' && !str_starts_with(layer->home + length, "/layers/")));
}

/* List the parameters of the layers of @row or, if @home is not NULL, of those at home there, in
 * the order of Keras's get_weights(): trainable ones first. Return their number. */
static int params_of(const struct model *model, int row, const char *home, int *out)
{
	int count = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < model->layer_count; i++) {
			const struct model_layer *at = &model->layers[i];

			if (home ? !is_at_home(at, home) || model_layer_again(model, at)
				 : at->row != row || model_layer_again_in_row(model, at))
				continue;
			for (int p = at->first_param; p < at->first_param + at->param_count; p++)
				if (model->params[p].trainable == (pass == 0))
					out[count++] = p;
		}
	return count;
}

static int find_row(const struct model *model, const char *name)
{
	for (int i = 0; i < model->row_count; i++)
		if (!strcmp(model->rows[i].name, name))
			return i;
	return -1;
}

/* "block/conv1/kernel:0" is a "kernel". */
static bool has_short_name(const char *name, const char *short_name)
{
	const char *slash = strrchr(name, '/'), *at = slash ? slash + 1 : name;
	const size_t length = strcspn(at, ":");

	return strlen(short_name) == length && !strncmp(at, short_name, length);
}

/* Whether @layer is one of the components of the path @name. */
static bool is_within(const char *name, const char *layer)
{
	const size_t length = strlen(layer);

	for (const char *at = strstr(name, layer); at; at = strstr(at + 1, layer))
		if ((at == name || at[-1] == '/') && at[length] == '/')
			return true;
	return false;
}

/* Find the one of @params that has the array's name; -1: none, or several. */
static int find_param(const struct model *model, const char *name, const int *params, int count)
{
	const bool nested = count > 0 && model->params[params[0]].layer !=
						 model->params[params[count - 1]].layer;
	int found = -1;

	for (int i = 0; i < count; i++) {
		const struct model_param *param = &model->params[params[i]];

		if (!has_short_name(name, param->short_name) ||
		    (nested && !is_within(name, model->layers[param->layer].name)))
			continue;
		if (found >= 0)
			return -1;
		found = params[i];
	}
	return found;
}

/* Match the group's arrays with @params: by name if every array has a match, else by order. */
static bool match_group(struct keras_source *s, const struct model *model,
			struct keras_group *group, const int *params, int count)
{
	bool named = true;

	group->params = NULL;
	if (count != group->count)
		return false;
	group->params = arena_alloc(&s->arena, (size_t)count + 1, sizeof(*group->params));
	if (!group->params) {
		err_nomem(s->err);
		return false;
	}
	for (int i = 0; i < count && named; i++) {
		group->params[i] = find_param(model, s->names[group->first + i], params, count);
		named = group->params[i] >= 0;
		for (int j = 0; j < i && named; j++)
			named = group->params[i] != group->params[j];
	}
	if (!named)
		memcpy(group->params, params, (size_t)count * sizeof(*params));
	return true;
}

/* Match groups with the layers that have weights in order, as load_weights() does. */
static bool match_in_order(struct keras_source *s, const struct model *model, int *params)
{
	int row = 0;

	for (int g = 0; g < s->group_count; g++) {
		int count = 0;

		while (row < model->row_count && !count)
			count = params_of(model, row++, NULL, params);
		if (!match_group(s, model, &s->groups[g], params, count))
			return false;
	}
	while (row < model->row_count)
		if (params_of(model, row++, NULL, params))
			return false;
	return true;
}

static void match_all(struct keras_source *s, const struct model *model, enum keras_layout layout,
		      bool by_name)
{
	int *params = arena_alloc(&s->arena, (size_t)model->param_count + 1, sizeof(*params));
	bool whole = true;

	if (!params) {
		err_nomem(s->err);
		return;
	}
	for (int g = 0; g < s->group_count; g++) {
		struct keras_group *group = &s->groups[g];
		const bool counted = layout == KERAS_LAYOUT_3;
		const int row = counted ? -1 : find_row(model, group->name);
		int count = 0;

		if (counted || row >= 0)
			count = params_of(model, row, counted ? group->name : NULL, params);
		whole = match_group(s, model, group, params, count) && whole;
	}
	if (whole || by_name || layout == KERAS_LAYOUT_3)
		return;
	if (!match_in_order(s, model, params))
		for (int g = 0; g < s->group_count; g++)
			s->groups[g].params = NULL;
}

/* Name the matched arrays by their parameters. Keras 2 saves a layer of two models in both groups;
 * its first arrays are used. */
static void name_arrays(struct keras_source *s, const struct model *model)
{
	bool *named = arena_alloc(&s->arena, (size_t)model->param_count + 1, sizeof(*named));
	int kept = 0;

	if (!named) {
		err_nomem(s->err);
		return;
	}
	for (int g = 0; g < s->group_count; g++)
		for (int i = 0; i < s->groups[g].count; i++) {
			const int from = s->groups[g].first + i;
			const int p = s->groups[g].params ? s->groups[g].params[i] : -1;

			if (p >= 0 && named[p])
				continue;
			s->arrays[kept] = s->arrays[from];
			s->paths[kept] = s->paths[from];
			if (p >= 0) {
				s->arrays[kept].name = model->params[p].name;
				named[p] = true;
			}
			kept++;
		}
	s->count = kept;
}

/* ---- an open source -------------------------------------------------------------------------- */

static enum status source_read(const void *file, int index, float *out, size_t count,
			       struct err *err)
{
	const struct keras_source *s = file;

	return hdf5_read(s->file, s->paths[index], out, count, err);
}

static void source_close(const void *file)
{
	source_free((struct keras_source *)(uintptr_t)file);
}

enum status keras_hdf5_open(struct weights_source *out, const struct model *model, const char *name,
			    const void *bytes, size_t length, bool by_name, struct err *err)
{
	struct keras_source *s = mem_calloc(1, sizeof(*s));
	enum keras_layout layout;
	struct err own;

	*out = (struct weights_source){0};
	err = err_start(err, &own);
	if (!s || arena_init(&s->arena, 0)) {
		mem_free(s);
		return err_nomem(err);
	}
	s->err = err;
	if (hdf5_open(&s->file, name, bytes, length, err) == ST_OK) {
		layout = collect_all(s, name);
		if (!err_stuck(err))
			match_all(s, model, layout, by_name);
		if (!err_stuck(err))
			name_arrays(s, model);
	}
	if (err_stuck(err)) {
		source_free(s);
		return err->status;
	}
	*out = (struct weights_source){.arrays = s->arrays,
				       .count = s->count,
				       .file = s,
				       .read = source_read,
				       .close = source_close};
	return ST_OK;
}

enum status keras_hdf5_config(char **out, const char *name, const void *bytes, size_t length,
			      struct err *err)
{
	struct hdf5 *file;
	enum status status = hdf5_open(&file, name, bytes, length, err);

	*out = NULL;
	if (status != ST_OK)
		return status;
	if (hdf5_has_attribute(file, "", "model_config"))
		status = hdf5_text(file, "", "model_config", out, err);
	else if (hdf5_has_attribute(file, "", "layer_names") || hdf5_has_group(file, "layers"))
		status = err_set(err, ST_UNSUPPORTED,
				 "%s: holds a model's weights, not the model: give what its "
				 "to_json() says as \"model\" and this file as weights.load",
				 name);
	else
		status = err_set(err, ST_UNSUPPORTED,
				 "%s: is an HDF5 file without a Keras model (no attribute "
				 "model_config): save it with model.save()",
				 name);
	hdf5_close(file);
	return status;
}

enum status keras_hdf5_usable(const char *name, struct err *err)
{
	(void)name;
	(void)err;
	return ST_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The path components between a layer and its arrays. */
static const struct cell_row {
	const char *class_name;
	const char *name;  /* in Keras 2's variable names */
	const char *child; /* in Keras 3's groups */
} cells[] = {
	{"SimpleRNN", "simple_rnn_cell/", "/cell"},
	{"LSTM", "lstm_cell/", "/cell"},
	{"GRU", "gru_cell/", "/cell"},
};

static const struct cell_row *find_cell(const struct model_layer *layer)
{
	static const struct cell_row plain = {"", "", ""};
	const char *class_name = model_layer_class(layer);

	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		if (!strcmp(cells[i].class_name, class_name))
			return &cells[i];
	return &plain;
}

/* The group of the parameter in its layer's: that of the attribute which holds it. */
static const char *find_child(const struct model_layer *layer, const struct model_param *param)
{
	static const char *const dense[][2] = {{"query/", "/query_dense"},
					       {"key/", "/key_dense"},
					       {"value/", "/value_dense"},
					       {"attention_output/", "/output_dense"}};

	for (size_t i = 0; i < ARRAY_LEN(dense); i++)
		if (str_starts_with(param->short_name, dense[i][0]))
			return dense[i][1];
	return find_cell(layer)->child;
}

struct keras_writer {
	struct hdf5 *file;
	const struct model *model;
	const float *weights;
	struct arena arena;
	struct err *err;
};

static void write_array(struct keras_writer *w, const char *path, int index)
{
	const struct model_param *param = &w->model->params[index];
	struct hdf5_shape shape = {.ndim = param->shape.ndim};

	_Static_assert(MODEL_DIMS <= HDF5_DIMS, "a parameter has too many dimensions");
	memcpy(shape.dim, param->shape.dim, sizeof(param->shape.dim));
	if (!path)
		err_nomem(w->err);
	else if (!err_stuck(w->err))
		hdf5_put(w->file, path, &shape, w->weights + param->offset, w->err);
}

static void write_row(struct keras_writer *w, const char *base, int row, int *params,
		      const char **names)
{
	const int count = params_of(w->model, row, NULL, params);
	const char *group = arena_printf(&w->arena, "%s/%s", base, w->model->rows[row].name);

	if (!group) {
		err_nomem(w->err);
		return;
	}
	hdf5_put_group(w->file, group, w->err);
	for (int i = 0; i < count && !err_stuck(w->err); i++) {
		const struct model_param *param = &w->model->params[params[i]];
		const struct model_layer *layer = &w->model->layers[param->layer];

		/* "lstm/lstm_cell/kernel:0" */
		names[i] = arena_printf(&w->arena, "%s/%s%s:0", layer->name, find_cell(layer)->name,
					param->short_name);
		if (names[i])
			write_array(w, arena_printf(&w->arena, "%s/%s", group, names[i]),
				    params[i]);
		else
			err_nomem(w->err);
	}
	if (!err_stuck(w->err))
		hdf5_put_texts(w->file, group, "weight_names", names, count, w->err);
}

static void write_versions(struct keras_writer *w, const char *path)
{
	if (!err_stuck(w->err))
		hdf5_put_text(w->file, path, "backend", "tensorflow", w->err);
	if (!err_stuck(w->err))
		hdf5_put_text(w->file, path, "keras_version", "2.15.0", w->err);
}

static void write_named(struct keras_writer *w, const char *config)
{
	const struct model *model = w->model;
	const size_t capacity = (size_t)(model->row_count + model->param_count) + 1;
	int *params = arena_alloc(&w->arena, capacity, sizeof(*params));
	const char **names = arena_alloc(&w->arena, capacity, sizeof(*names));
	const char *base = config ? "/model_weights" : "";

	if (!params || !names) {
		err_nomem(w->err);
		return;
	}
	if (config) {
		hdf5_put_group(w->file, base, w->err);
		write_versions(w, "");
		if (!err_stuck(w->err))
			hdf5_put_text(w->file, "", "model_config", config, w->err);
	}
	write_versions(w, base);
	for (int i = 0; i < model->row_count; i++)
		names[i] = model->rows[i].name;
	if (!err_stuck(w->err))
		hdf5_put_texts(w->file, base, "layer_names", names, model->row_count, w->err);
	for (int i = 0; i < model->row_count && !err_stuck(w->err); i++)
		write_row(w, base, i, params, names);
}

static void write_numbered(struct keras_writer *w)
{
	const struct model *model = w->model;
	int *params = arena_alloc(&w->arena, (size_t)model->param_count + 1, sizeof(*params));

	if (!params) {
		err_nomem(w->err);
		return;
	}
	hdf5_put_group(w->file, "/vars", w->err);
	for (int i = 0; i < model->layer_count && !err_stuck(w->err); i++) {
		const struct model_layer *layer = &model->layers[i];
		const int count =
			layer->param_count ? params_of(model, -1, layer->home, params) : 0;
		const char *group = arena_printf(&w->arena, "/%s/vars", layer->home), *child = "";

		if (model_layer_again(model, layer))
			continue;
		if (group)
			hdf5_put_group(w->file, group, w->err);
		else
			err_nomem(w->err);
		for (int p = 0, number = 0; p < count && !err_stuck(w->err); p++, number++) {
			const char *own = find_child(layer, &model->params[params[p]]);

			if (strcmp(own, child) != 0)
				number = 0;
			child = own;
			write_array(w,
				    arena_printf(&w->arena, "/%s%s/vars/%d", layer->home, child,
						 number),
				    params[p]);
		}
	}
}

struct writing {
	const struct model *model;
	const float *weights;
	enum keras_layout layout;
	const char *config, *name;
};

static enum status write_file(void *user, struct apart_out *out, struct err *err)
{
	const struct writing *writing = user;
	struct keras_writer w = {.model = writing->model, .weights = writing->weights, .err = err};
	size_t length;
	char *bytes;

	if (arena_init(&w.arena, 0))
		return err_nomem(err);
	if (hdf5_open(&w.file, writing->name, NULL, 0, err) != ST_OK)
		return err->status;
	if (writing->layout == KERAS_LAYOUT_2)
		write_named(&w, writing->config);
	else
		write_numbered(&w);
	if (!err_stuck(err) && hdf5_bytes(w.file, &bytes, &length, err) == ST_OK)
		apart_put(out, bytes, length, err);
	return err->status;
}

enum status keras_hdf5_write(char **out, size_t *length, const struct model *model,
			     const float *weights, enum keras_layout layout, const char *config,
			     const char *name, struct err *err)
{
	const struct apart request = {
		.name = name, .status = ST_FAILED, .crash = "libhdf5 did not write it"};
	struct writing writing = {model, weights, layout, config, name};

	return apart_call(write_file, &writing, &request, out, length, err);
}
