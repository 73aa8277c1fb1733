/*
 * Captures into arrays, and the arrays' names. See outfeed_captures_internal.h. On the reader's
 * thread.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "outfeed/outfeed_captures_internal.h"

#define NAME_SIZE   1024
#define NAME_ROUNDS 8

/* ---- stacking -------------------------------------------------------------------------------- */

static int compare_lanes(const void *a, const void *b)
{
	const struct captures_lane *p = a, *q = b;

	if (p->rank != q->rank)
		return p->rank < q->rank ? -1 : 1;
	return p->replica < q->replica ? -1 : p->replica > q->replica;
}

static int compare_rows(const void *a, const void *b)
{
	const struct captures_one *p = *(const struct captures_one *const *)a;
	const struct captures_one *q = *(const struct captures_one *const *)b;

	return p->row[0] < q->row[0] ? -1 : p->row[0] > q->row[0];
}

static size_t count_of(const struct captures_lane *lane, int32_t shape)
{
	size_t count = 0;

	for (size_t i = 0; i < lane->count; i++)
		count += lane->captures[i].shape == shape;
	return count;
}

/* Of all lanes; *@lanes: those that have any. */
static size_t count_all(const struct captures_tensor *tensor, int32_t shape, size_t *lanes)
{
	size_t all = 0;

	*lanes = 0;
	for (size_t i = 0; i < tensor->lane_count; i++) {
		size_t count = count_of(&tensor->lanes[i], shape);

		*lanes += count > 0;
		all += count;
	}
	return all;
}

/* Put the captures of @shape where they belong if replicas are an axis of @lanes; false: they
 * cannot be, since a replica has more than another or was captured at other steps. */
static bool place_stacked(struct captures_array *array, int32_t shape, size_t count, size_t lanes)
{
	const struct captures_tensor *tensor = array->tensor;
	size_t at = 0;

	for (size_t i = 0; i < tensor->lane_count; i++) {
		const struct captures_lane *lane = &tensor->lanes[i];
		size_t enqueue = 0;

		for (size_t j = 0; j < lane->count; j++) {
			const struct captures_one *one = &lane->captures[j];

			if (one->shape != shape)
				continue;
			if (enqueue * lanes >= count ||
			    (at > 0 && array->captures[enqueue * lanes]->step != one->step))
				return false;
			array->captures[enqueue++ * lanes + at] = one;
		}
		if (enqueue > 0 && enqueue * lanes != count)
			return false;
		at += enqueue > 0;
	}
	return true;
}

static void place_by_time(struct captures_array *array, int32_t shape)
{
	const struct captures_tensor *tensor = array->tensor;
	size_t at = 0;

	for (size_t i = 0; i < tensor->lane_count; i++) {
		const struct captures_lane *lane = &tensor->lanes[i];

		for (size_t j = 0; j < lane->count; j++)
			if (lane->captures[j].shape == shape)
				array->captures[at++] = &lane->captures[j];
	}
	qsort(array->captures, at, sizeof(array->captures[0]), compare_rows);
}

/* @count > 0 captures of @lanes replicas. */
static enum status fill_array(struct captures_array *array, int32_t shape, size_t count,
			      size_t lanes, struct err *err)
{
	struct outfeed_array *shown = &array->shown;

	array->captures = mem_calloc(count, sizeof(array->captures[0]));
	if (!array->captures)
		return err_nomem(err);
	shown->uneven = !place_stacked(array, shape, count, lanes);
	if (shown->uneven)
		place_by_time(array, shape);
	shown->replicas = shown->uneven ? 1 : (int)lanes;
	shown->dtype = array->shape->dtype;
	shown->shape[shown->ndim++] = (int64_t)count / shown->replicas;
	if (shown->replicas > 1)
		shown->shape[shown->ndim++] = shown->replicas;
	for (int i = 0; i < array->shape->ndim; i++)
		shown->shape[shown->ndim++] = array->shape->dim[i];
	if (__builtin_mul_overflow((int64_t)count, array->shape->bytes, &shown->bytes))
		return err_set(err, ST_LIMIT, "captures of \"%.64s\" have too many bytes",
			       array->tensor->key);
	return ST_OK;
}

static enum status add_array(struct outfeed_captures *captures,
			     const struct captures_tensor *tensor, int32_t shape, bool main,
			     struct err *err)
{
	struct captures_array *array;
	size_t lanes, count = count_all(tensor, shape, &lanes);

	if (count == 0)
		return ST_OK;
	if (mem_grow(&captures->arrays, &captures->array_capacity, captures->array_count + 1,
		     sizeof(*captures->arrays)) != 0)
		return err_nomem(err);
	array = &captures->arrays[captures->array_count++];
	*array = (struct captures_array){.tensor = tensor,
					 .shape = &tensor->shapes[shape],
					 .main = main,
					 .shown = {.queue = tensor->queue,
						   .key = tensor->key,
						   .incomplete = main ? tensor->incomplete : 0}};
	return fill_array(array, shape, count, lanes, err);
}

/* The commonest; of several the first. */
static int32_t main_shape(const struct captures_tensor *tensor)
{
	size_t most = 0, lanes;
	int32_t best = 0;

	for (size_t i = 0; i < tensor->shape_count; i++) {
		size_t count = count_all(tensor, (int32_t)i, &lanes);

		if (count > most) {
			most = count;
			best = (int32_t)i;
		}
	}
	return best;
}

enum status captures__arrays(struct outfeed_captures *captures, struct err *err)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < captures->tensor_count && status == ST_OK; i++) {
		struct captures_tensor *tensor = &captures->tensors[i];
		const int32_t best = main_shape(tensor);
		const size_t before = captures->array_count;

		if (tensor->lane_count > 0)
			qsort(tensor->lanes, tensor->lane_count, sizeof(*tensor->lanes),
			      compare_lanes);
		if (tensor->shape_count > 0)
			status = add_array(captures, tensor, best, true, err);
		for (size_t j = 0; j < tensor->shape_count && status == ST_OK; j++)
			if ((int32_t)j != best)
				status = add_array(captures, tensor, (int32_t)j, false, err);
		if (captures->array_count == before)
			captures->incomplete += tensor->incomplete;
	}
	return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at @text; 0: there is none. */
static size_t utf8_length(const unsigned char *text)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const size_t length = text[0] < 0x80    ? 1
			      : text[0] < 0xc2  ? 0
			      : text[0] < 0xe0  ? 2
			      : text[0] < 0xf0  ? 3
			      : text[0] <= 0xf4 ? 4
						: 0;
	uint32_t code = text[0] & (0xffu >> (length + 1));

	if (length < 2)
		return length;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)
		       ? 0
		       : length;
}

/* @text as the name of a member that no program takes for anything else. */
static void clean(char out[NAME_SIZE], const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t used = 0;

	while (*at != 0 && used + 8 < NAME_SIZE) {
		size_t length = utf8_length(at);
		const bool starts = used == 0 || out[used - 1] == '/';

		if (length == 0 || *at < 0x20 || *at == 0x7f) {
			out[used++] = '?';
			at++;
		} else if (starts && (*at == '/' || (at[0] == '.' && at[1] == '.' &&
						     (at[2] == '/' || at[2] == 0)))) {
			/* "/x" and "../x" lead out of a folder. */
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

static void name_clean(struct str *name, const struct captures_array *array, bool with_queue)
{
	const struct captures_tensor *tensor = array->tensor;
	char *whole = with_queue ? mem_printf("%s/%s", tensor->queue, tensor->key) : NULL;
	char text[NAME_SIZE];

	if (with_queue && !whole)
		name->failed = true;
	clean(text, with_queue ? !whole ? "" : whole : tensor->key);
	str_add(name, text);
	mem_free(whole);
}

static void name_shape(struct str *name, const struct captures_array *array,
		       const struct captures_shape *main)
{
	const struct captures_shape *shape = array->shape;

	str_add(name, shape->ndim == 0 ? "@scalar" : "@");
	for (int i = 0; i < shape->ndim; i++)
		str_addf(name, "%s%lld", i > 0 ? "x" : "", (long long)shape->dim[i]);
	if (shape->dtype != main->dtype)
		str_addf(name, "@%s", outfeed_dtype_text(shape->dtype));
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

	/* Arrays lie in one block: the first keeps its name. */
	return order != 0 ? order : p < q ? -1 : p > q;
}

static enum status name_array(struct captures_array *array, bool with_queue, struct err *err)
{
	const struct captures_shape *main = array->shape;
	struct str name = {0};

	name_clean(&name, array, with_queue);
	/* The main array of a tensor stands before its others. */
	for (const struct captures_array *at = array; !array->main; at--) {
		if (at->main) {
			main = at->shape;
			name_shape(&name, array, main);
			break;
		}
	}
	if (name.failed) {
		str_free(&name);
		return err_nomem(err);
	}
	array->name = name.text;
	return ST_OK;
}

/* The arrays of one key, sorted by queue. */
static enum status name_key(struct captures_array *const *sorted, size_t count, struct err *err)
{
	const bool shared = strcmp(sorted[0]->tensor->queue, sorted[count - 1]->tensor->queue) != 0;
	enum status status = ST_OK;

	for (size_t i = 0; i < count && status == ST_OK; i++)
		status = name_array(sorted[i], shared, err);
	return status;
}

/* One round of making equal names differ; *@again: some were equal. */
static enum status name_apart(struct captures_array **sorted, size_t count, bool *again,
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

static enum status name_all(struct captures_array **sorted, size_t count, struct err *err)
{
	enum status status = ST_OK;
	bool again = true;

	qsort(sorted, count, sizeof(sorted[0]), compare_keys);
	for (size_t first = 0, last; first < count && status == ST_OK; first = last) {
		for (last = first + 1; last < count; last++)
			if (strcmp(sorted[last]->tensor->key, sorted[first]->tensor->key) != 0)
				break;
		status = name_key(sorted + first, last - first, err);
	}
	for (int round = 0; round < NAME_ROUNDS && status == ST_OK && again; round++)
		status = name_apart(sorted, count, &again, err);
	if (status == ST_OK && again)
		return err_set(err, ST_FORMAT, "captured tensors have names that are all alike");
	return status;
}

enum status captures__names(struct outfeed_captures *captures, struct err *err)
{
	const size_t count = captures->array_count;
	struct captures_array **sorted;
	enum status status;

	if (count == 0)
		return ST_OK;
	sorted = mem_calloc(count, sizeof(*sorted));
	if (!sorted)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		sorted[i] = &captures->arrays[i];
	status = name_all(sorted, count, err);
	mem_free(sorted);
	for (size_t i = 0; i < count; i++)
		captures->arrays[i].shown.name = captures->arrays[i].name;
	return status;
}
