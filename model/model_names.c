/*
 * What every part of the model reader asks for: tables of names, memory, and positions in a list of
 * layers.
 *
 * Threading and ownership: see model_reader.h.
 */
#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "model/model_reader.h"

/* Names crafted to collide make lookups linear; MODEL_LAYERS bounds the total time. */
struct model_name {
	const char *name;
	int value;
};

int *model__names_find(const struct model_names *names, const char *name)
{
	size_t at;

	MAP_FIND(at, &names->map, map_text(MAP_SEED, name),
		 strcmp(names->items[at].name, name) == 0);
	return at == MAP_NONE ? NULL : &names->items[at].value;
}

int model__names_add(struct model_names *names, const char *name, int value)
{
	const size_t at = names->map.count;
	int *known = model__names_find(names, name);

	if (known) {
		*known = value;
		return 0;
	}
	if (mem_grow(&names->items, &names->capacity, at + 1, sizeof(*names->items)) != 0 ||
	    map_add(&names->map, map_text(MAP_SEED, name), at) != 0)
		return -1;
	names->items[at] = (struct model_name){name, value};
	return 0;
}

void model__names_free(struct model_names *names)
{
	mem_free(names->items);
	map_fini(&names->map);
	*names = (struct model_names){0};
}

void model__add_name(struct model_reader *reader, struct model_names *names, const char *name,
		     int value)
{
	if (!err_stuck(reader->err) && (!name || model__names_add(names, name, value)))
		err_nomem(reader->err);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *reader_alloc(struct model_reader *reader, struct arena *arena, size_t count,
			  size_t size)
{
	void *out = err_stuck(reader->err) ? NULL : arena_alloc(arena, count, size);

	if (!out && !err_stuck(reader->err))
		err_nomem(reader->err);
	return out;
}

void *model__scratch(struct model_reader *reader, size_t count, size_t size)
{
	return reader_alloc(reader, &reader->scratch, count, size);
}

void *model__kept(struct model_reader *reader, size_t count, size_t size)
{
	return reader_alloc(reader, reader->arena, count, size);
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Insert an underscore before each capital that begins a word: "MaxPooling2D" becomes
 * "max_pooling2d", "ReLU" becomes "re_lu". */
void model__snake(const char *class_name, char *out, size_t size)
{
	size_t used = 0;

	for (const char *c = class_name; *c && used + 2 < size; c++) {
		bool begins = c != class_name && isupper((unsigned char)*c) &&
			      (islower((unsigned char)c[-1]) || islower((unsigned char)c[1]) ||
			       isdigit((unsigned char)c[1]));

		if (begins && out[used - 1] != '_')
			out[used++] = '_';
		out[used++] = (char)tolower((unsigned char)*c);
	}
	out[used] = '\0';
}

/* ---- positions ------------------------------------------------------------------------------- */

struct json_at model__item(const struct json_at *list, const cJSON *node, int index)
{
	return (struct json_at){.file = list->file, .up = list, .node = node, .index = index};
}

struct json_at model__entry_at(const struct model_scope *scope, int entry)
{
	return model__item(&scope->layers, scope->entries[entry].node, entry);
}
