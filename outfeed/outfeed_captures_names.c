/*
 * The names of captured arrays: unique, and safe as names of files in an archive. On the reader's
 * thread.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "outfeed/outfeed_captures_internal.h"

#define NAME_SIZE   1024
#define NAME_ROUNDS 8

/* Make a safe name of @text: valid UTF-8, no control characters, no path out of the folder. */
static void clean_name(char out[NAME_SIZE], const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t used = 0;

	while (*at != 0 && used + 8 < NAME_SIZE) {
		size_t length = str_utf8((const char *)at);
		const bool starts = used == 0 || out[used - 1] == '/';

		if (length == 0 || *at < 0x20 || *at == 0x7f) {
			out[used++] = '?';
			at++;
		} else if (starts && (*at == '/' || (at[0] == '.' && at[1] == '.' &&
						     (at[2] == '/' || at[2] == 0)))) {
			/* "/x" and "../x" would leave the folder. */
			out[used++] = '_';
			at += *at == '/' ? 1 : 2;
		} else {
			memcpy(out + used, at, length);
			used += length;
			at += length;
		}
	}
	out[used] = '\0';
	if (used == 0)
		strcpy(out, "unnamed");
}

static int compare_keys(const void *a, const void *b)
{
	const struct captures_array *p = *(struct captures_array *const *)a;
	const struct captures_array *q = *(struct captures_array *const *)b;
	const int order = strcmp(p->tensor->key, q->tensor->key);

	return order != 0 ? order : strcmp(p->tensor->queue, q->tensor->queue);
}

static int compare_names(const void *a, const void *b)
{
	const struct captures_array *p = *(struct captures_array *const *)a;
	const struct captures_array *q = *(struct captures_array *const *)b;
	const int order = strcmp(p->name, q->name);

	/* Arrays are in one block, so this keeps the first one's name. */
	return order != 0 ? order : SORTED_ORDER((uintptr_t)p, (uintptr_t)q);
}

static enum status name_array(struct captures_array *array, bool with_queue, struct err *err)
{
	struct str name = {0};
	const struct captures_tensor *tensor = array->tensor;
	char *whole = with_queue ? mem_printf("%s/%s", tensor->queue, tensor->key) : NULL;
	char text[NAME_SIZE];

	if (with_queue && !whole)
		name.failed = true;
	clean_name(text, with_queue ? !whole ? "" : whole : tensor->key);
	str_add(&name, text);
	mem_free(whole);

	if (!array->main) {
		const struct captures_shape *shape = array->shape;
		const struct captures_array *at = array;

		/* The main array of a tensor precedes its others. */
		while (!at->main)
			at--;
		str_add(&name, shape->ndim == 0 ? "@scalar" : "@");
		for (int i = 0; i < shape->ndim; i++)
			str_addf(&name, "%s%lld", i > 0 ? "x" : "", (long long)shape->dim[i]);
		if (shape->dtype != at->shape->dtype)
			str_addf(&name, "@%s", dtype_name(shape->dtype));
	}
	if (name.failed) {
		str_free(&name);
		return err_nomem(err);
	}
	array->name = name.text;
	return ST_OK;
}

/* Do one round of making equal names different; *@again: some were equal. */
static enum status make_names_unique(struct captures_array **sorted, size_t count, bool *again,
				     struct err *err)
{
	size_t first = 0;

	*again = false;
	qsort(sorted, count, sizeof(sorted[0]), compare_names);
	for (size_t i = 1; i < count; i++) {
		char *name;

		if (strcmp(sorted[i]->name, sorted[first]->name) != 0) {
			first = i;
			continue;
		}
		name = mem_printf("%s#%zu", sorted[i]->name, i - first + 1);
		if (!name)
			return err_nomem(err);
		mem_free(sorted[i]->name);
		sorted[i]->name = name;
		*again = true;
	}
	return ST_OK;
}

enum status captures__names(struct outfeed_captures *captures, struct err *err)
{
	const size_t count = captures->array_count;
	struct captures_array **sorted;
	enum status status = ST_OK;
	bool again = true;

	if (count == 0)
		return ST_OK;
	sorted = mem_calloc(count, sizeof(*sorted));
	if (!sorted)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		sorted[i] = &captures->arrays[i];
	qsort(sorted, count, sizeof(sorted[0]), compare_keys);
	for (size_t first = 0, last; first < count && status == ST_OK; first = last) {
		const struct captures_tensor *tensor = sorted[first]->tensor;
		bool shared;

		for (last = first + 1; last < count; last++)
			if (strcmp(sorted[last]->tensor->key, tensor->key) != 0)
				break;
		/* The arrays of one key are sorted by queue. */
		shared = strcmp(tensor->queue, sorted[last - 1]->tensor->queue) != 0;
		for (size_t i = first; i < last && status == ST_OK; i++)
			status = name_array(sorted[i], shared, err);
	}
	for (int round = 0; round < NAME_ROUNDS && status == ST_OK && again; round++)
		status = make_names_unique(sorted, count, &again, err);
	if (status == ST_OK && again)
		status = err_set(err, ST_FORMAT, "captured tensors have names that are all alike");
	mem_free(sorted);
	for (size_t i = 0; i < count; i++)
		captures->arrays[i].shown.name = captures->arrays[i].name;
	return status;
}
