/*
 * Names of layers: which are taken, which are allowed, and Keras's default ones.
 *
 * The table is open addressing over FNV-1a. Whoever makes names collide makes it as slow as a list,
 * and no slower; MODEL_LAYERS bounds how long that is.
 */
#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "model/model_reader.h"

struct model_name_slot {
	const char *name; /* NULL: free */
	int value;
};

static struct model_name_slot *names_slot(const struct model_names *names, const char *name)
{
	size_t at = rng_stream(name) & (names->capacity - 1);

	while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
		at = (at + 1) & (names->capacity - 1);
	return &names->slots[at];
}

int *model__names_find(const struct model_names *names, const char *name)
{
	struct model_name_slot *slot;

	if (!names->count)
		return NULL;
	slot = names_slot(names, name);
	return slot->name ? &slot->value : NULL;
}

/* The capacity is a power of two, at most half of it in use. */
static int names_grow(struct model_names *names)
{
	struct model_names grown = {.capacity = names->capacity ? 2 * names->capacity : 64};

	grown.slots = mem_calloc(grown.capacity, sizeof(*grown.slots));
	if (!grown.slots)
		return -1;
	for (size_t i = 0; i < names->capacity; i++)
		if (names->slots[i].name)
			*names_slot(&grown, names->slots[i].name) = names->slots[i];
	grown.count = names->count;
	mem_free(names->slots);
	*names = grown;
	return 0;
}

int model__names_add(struct model_names *names, const char *name, int value)
{
	struct model_name_slot *slot;

	if (2 * (names->count + 1) > names->capacity && names_grow(names))
		return -1;
	slot = names_slot(names, name);
	names->count += !slot->name;
	*slot = (struct model_name_slot){name, value};
	return 0;
}

void model__names_free(struct model_names *names)
{
	mem_free(names->slots);
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
