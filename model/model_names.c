/*
 * Names of layers: which are taken, which are allowed, and Keras's default ones.
 *
 * Whoever makes names collide makes their map as slow as a list, and no slower; MODEL_LAYERS bounds
 * how long that is.
 */
#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "model/model_reader.h"

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

/* An underscore before a capital that begins a word: "MaxPooling2D" is "max_pooling2d", "ReLU" is
 * "re_lu". */
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

enum status model__check_name(const struct json_at *at, const char *name, struct err *err)
{
	if (!*name)
		return json_fail(at, err, "a name must not be empty");
	if (strlen(name) >= MODEL_NAME_SIZE)
		return json_fail(at, err, "a name has at most %d bytes", MODEL_NAME_SIZE - 1);
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return json_fail(at, err, "a name must not hold control characters");
	return ST_OK;
}
