/*
 * Storing a run file's values in struct run_file, each checked by the kind of its key; and
 * resolving the planning options of a stage.
 *
 * Failures are sticky in fill->err: after one, nothing is stored. Threading: none. Ownership:
 * lists are in the run's arena; texts and trees belong to the JSON.
 */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_internal.h"

/* Store @value in the struct unless @fill->err holds a failure; @size must be that of the
 * member. */
static void run_store(const struct run_value *fill, const void *value, size_t size)
{
	assert(fill->key->size == size);
	if (!err_stuck(fill->err))
		memcpy((char *)fill->run + fill->key->offset, value, size);
}

/* ---- numbers, switches and texts ------------------------------------------------------------- */

static void run_fill_int(const struct run_value *fill)
{
	int64_t value = fill->key->absent;

	if (!json_is_null(fill->at))
		json_int(fill->at, fill->key->least, fill->key->greatest, &value, fill->err);
	run_store(fill, &value, sizeof(value));
}

/* A number, or "epoch". */
static void run_fill_steps(const struct run_value *fill)
{
	int64_t value = RUN_WHOLE_EPOCH;

	if (!cJSON_IsString(fill->at->node)) {
		run_fill_int(fill);
		return;
	}
	if (strcmp(fill->at->node->valuestring, "epoch") != 0)
		json_fail(fill->at, fill->err, "must be a whole number or \"epoch\", not \"%s\"",
			  fill->at->node->valuestring);
	run_store(fill, &value, sizeof(value));
}

static void run_fill_shuffle(const struct run_value *fill)
{
	int64_t value = cJSON_IsTrue(fill->at->node) ? -1 : 0;

	if (cJSON_IsNumber(fill->at->node)) {
		run_fill_int(fill);
		return;
	}
	if (!cJSON_IsBool(fill->at->node))
		json_fail(fill->at, fill->err, "must be true, false or a number of images");
	run_store(fill, &value, sizeof(value));
}

static void run_fill_bool(const struct run_value *fill)
{
	bool value = false;

	json_bool(fill->at, &value, fill->err);
	run_store(fill, &value, sizeof(value));
}

static void run_fill_maybe(const struct run_value *fill)
{
	enum run_maybe value = RUN_UNSAID;
	bool yes = false;

	if (!json_is_null(fill->at)) {
		json_bool(fill->at, &yes, fill->err);
		value = yes ? RUN_YES : RUN_NO;
	}
	run_store(fill, &value, sizeof(value));
}

/* Read a number in [@least, @greatest], which may be a text, as in Poplar's options ("0.4"). */
static double run_number(const struct run_value *fill, const struct json_at *at, double least,
			 double greatest)
{
	double value = least;

	if (!cJSON_IsString(at->node))
		json_real(at, &value, fill->err);
	else if (!str_to_double(at->node->valuestring, &value))
		json_fail(at, fill->err, "must be a number, not \"%s\"", at->node->valuestring);
	if (!err_stuck(fill->err) && !(value >= least && value <= greatest))
		json_fail(at, fill->err, "must be from %g to %g, not %g", least, greatest, value);
	return value;
}

static void run_fill_real(const struct run_value *fill)
{
	const bool said = !json_is_null(fill->at) || strcmp(fill->key->fallback, "null") != 0;
	double value = said ? run_number(fill, fill->at, (double)fill->key->least,
					 (double)fill->key->greatest)
			    : (double)NAN;

	run_store(fill, &value, sizeof(value));
}

/* The index of @word among the key's choices; fails at @at if it is not one. */
static int run_choose(const struct run_value *fill, const struct json_at *at, const char *word)
{
	const char *names[16], *near;
	char copy[256], *rest = NULL;
	struct str list = {0};
	size_t count = 0;
	int number;

	if (err_stuck(fill->err) || !fill->key->choices)
		return 0;
	number = run__choice(fill->key->choices, word);
	if (number >= 0)
		return number;

	str_copy(copy, sizeof(copy), fill->key->choices);
	for (char *name = strtok_r(copy, " ", &rest); name && count < ARRAY_LEN(names);
	     name = strtok_r(NULL, " ", &rest))
		names[count++] = name;
	near = str_nearest(word, names, count);
	for (size_t i = 0; i < count; i++)
		str_addf(&list, "%s%s", i > 0 ? " " : "", names[i]);
	if (near)
		json_fail(at, fill->err, "unknown value \"%s\" (did you mean \"%s\"?)", word, near);
	else
		json_fail(at, fill->err, "unknown value \"%s\" (there is: %s)", word,
			  str_peek(&list));
	str_free(&list);
	return 0;
}

static void run_fill_text(const struct run_value *fill)
{
	const char *text = NULL;

	if (!json_is_null(fill->at) && json_text(fill->at, &text, fill->err) == ST_OK)
		run_choose(fill, fill->at, text);
	run_store(fill, &text, sizeof(text));
}

static void run_fill_choice(const struct run_value *fill)
{
	const char *text;
	int number = (int)fill->key->absent;
	bool second;

	if (!json_is_null(fill->at) && json_text(fill->at, &text, fill->err) == ST_OK)
		number = run_choose(fill, fill->at, text);
	second = number == 1;
	if (fill->key->size == sizeof(bool))
		run_store(fill, &second, sizeof(second));
	else
		run_store(fill, &number, sizeof(number));
}

/* Parse "500 MB"; units are powers of 1024, as in printed sizes. False: invalid. */
static bool run_bytes_of(const char *text, double *out)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	const size_t digits = strspn(text, "0123456789.");
	const char *unit = text + digits + strspn(text + digits, " ");
	char number[32];

	if (digits == 0 || digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!str_to_double(number, out))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (!strcmp(unit, units[i]))
			return true;
		*out *= 1024;
	}
	return false;
}

static void run_fill_bytes(const struct run_value *fill)
{
	const struct json_at *at = fill->at;
	int64_t bytes = INT64_MAX;
	double value = 0;

	if (!json_is_null(at)) {
		if (!cJSON_IsString(at->node))
			json_real(at, &value, fill->err);
		else if (!run_bytes_of(at->node->valuestring, &value))
			json_fail(at, fill->err,
				  "must be bytes, or a text as \"500 MB\", not \"%s\"",
				  at->node->valuestring);
		if (!err_stuck(fill->err) &&
		    !(value >= (double)fill->key->least && value <= (double)fill->key->greatest))
			json_fail(at, fill->err, "must be from %lld to %lld bytes, not %g",
				  (long long)fill->key->least, (long long)fill->key->greatest,
				  value);
		bytes = err_stuck(fill->err) ? 0 : (int64_t)value;
	}
	run_store(fill, &bytes, sizeof(bytes));
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Allocate space for the list's items and one more, because an empty list is not NULL. NULL: a
 * failure. */
static void *run_items(const struct run_value *fill, size_t size)
{
	void *items;

	if (json_array(fill->at, fill->err) != ST_OK)
		return NULL;
	items = arena_alloc(fill->arena, (size_t)json_count(fill->at) + 1, size);
	if (!items)
		err_nomem(fill->err);
	return items;
}

static void run_fill_list_of_texts(const struct run_value *fill)
{
	struct run_texts texts = {.given = !json_is_null(fill->at)};
	const char **items = texts.given ? run_items(fill, sizeof(*items)) : NULL;
	struct json_at item = {0};

	texts.items = items;
	while (items && !err_stuck(fill->err) && json_next(fill->at, &item)) {
		if (json_text(&item, &items[texts.count], fill->err) == ST_OK)
			run_choose(fill, &item, items[texts.count]);
		texts.count++;
	}
	run_store(fill, &texts, sizeof(texts));
}

/* A single text counts as a list of one. */
static void run_fill_texts(const struct run_value *fill)
{
	struct run_texts texts = {.count = 1, .given = true};
	const char **items;

	if (!cJSON_IsString(fill->at->node)) {
		run_fill_list_of_texts(fill);
		return;
	}
	texts.items = items = arena_alloc(fill->arena, 1, sizeof(*items));
	if (items)
		items[0] = fill->at->node->valuestring;
	else
		err_nomem(fill->err);
	run_choose(fill, fill->at, fill->at->node->valuestring);
	run_store(fill, &texts, sizeof(texts));
}

static void run_fill_named(const struct run_value *fill)
{
	const struct run_texts texts = {.given = cJSON_IsTrue(fill->at->node)};

	if (cJSON_IsBool(fill->at->node))
		run_store(fill, &texts, sizeof(texts));
	else if (cJSON_IsArray(fill->at->node) && !json_count(fill->at))
		json_fail(fill->at, fill->err, "must be true, false or names");
	else
		run_fill_texts(fill);
}

/* The tutorial's rule: a single "none" switches the filter off. */
static void run_fill_filters(const struct run_value *fill)
{
	struct run_texts texts;

	run_fill_list_of_texts(fill);
	memcpy(&texts, (char *)fill->run + fill->key->offset, sizeof(texts));
	if (texts.count == 1 && !strcasecmp(texts.items[0], "none")) {
		texts.items = NULL;
		texts.count = 0;
		run_store(fill, &texts, sizeof(texts));
	}
}

static void run_fill_ints(const struct run_value *fill)
{
	struct run_ints ints = {.given = !json_is_null(fill->at)};
	int *items = ints.given ? run_items(fill, sizeof(*items)) : NULL;
	struct json_at item = {0};
	int64_t value = 0;

	ints.items = items;
	while (items && !err_stuck(fill->err) && json_next(fill->at, &item)) {
		json_int(&item, fill->key->least, fill->key->greatest, &value, fill->err);
		items[ints.count++] = (int)value;
	}
	run_store(fill, &ints, sizeof(ints));
}

static void run_fill_size(const struct run_value *fill)
{
	int64_t size[2] = {0};
	struct json_at item;

	if (!json_is_null(fill->at) &&
	    (!cJSON_IsArray(fill->at->node) || json_count(fill->at) != 2))
		json_fail(fill->at, fill->err, "must be null or [height, width]");
	for (int i = 0; !err_stuck(fill->err) && json_item(fill->at, i, &item); i++)
		json_int(&item, fill->key->least, fill->key->greatest, &size[i], fill->err);
	run_store(fill, size, sizeof(size));
}

/* ---- values that other modules read ---------------------------------------------------------- */

static void run_fill_tree(const struct run_value *fill)
{
	const cJSON *node = json_is_null(fill->at) ? NULL : fill->at->node;

	run_store(fill, &node, sizeof(node));
}

static void run_fill_list(const struct run_value *fill)
{
	if (!json_is_null(fill->at))
		json_array(fill->at, fill->err);
	run_fill_tree(fill);
}

/* One list for all outputs, or an object of lists by output. */
static void run_fill_lists(const struct run_value *fill)
{
	if (!cJSON_IsObject(fill->at->node))
		run_fill_list(fill);
	else
		run_fill_tree(fill);
}

static void run_fill_capture(const struct run_value *fill)
{
	const char *text = cJSON_GetStringValue(fill->at->node);

	if (fill->checks->capture(fill->at, fill->err) == ST_OK)
		fill->run->outfeed.off = text && !strcmp(text, "off");
	run_store(fill, &fill->at->node, sizeof(fill->at->node));
}

static void run_fill_section(const struct run_value *fill)
{
	bool wanted = !json_is_null(fill->at);

	if (fill->key->size)
		run_store(fill, &wanted, sizeof(wanted));
	if (wanted)
		json_object(fill->at, fill->err);
}

/* run__options_flags() has already checked them. */
static void run_fill_flags(const struct run_value *fill)
{
	(void)fill;
}

/* ---- planning options ------------------------------------------------------------------------ */

static const struct run_plan run_unsaid = {NAN, RUN_PARTIALS_UNSAID};

/* Read the child @key of @parent: {availableMemoryProportion, partialsType}, or null. */
static void run_read_plan(const struct run_value *fill, const struct json_at *parent,
			  const char *key, struct run_plan *out)
{
	static const char *const keys[] = {"availableMemoryProportion", "partialsType"};
	struct json_at at, value;
	const char *text;
	int number;

	*out = run_unsaid;
	if (err_stuck(fill->err) || !json_child(parent, key, &at) || json_is_null(&at) ||
	    json_only_keys(&at, keys, ARRAY_LEN(keys), fill->err) != ST_OK)
		return;
	if (json_child(&at, keys[0], &value) && !json_is_null(&value))
		out->available_memory_proportion = run_number(fill, &value, 0, 1);
	if (err_stuck(fill->err) || !json_child(&at, keys[1], &value) || json_is_null(&value) ||
	    json_text(&value, &text, fill->err) != ST_OK)
		return;
	number = run__choice("float half", text);
	if (number < 0)
		json_fail(&value, fill->err, "must be \"float\" or \"half\", not \"%s\"", text);
	out->partials_type = (enum run_partials)number;
}

/* Read {convolution, matmul}, or null. */
static struct run_poplar run_read_poplar(const struct run_value *fill, const struct json_at *at)
{
	static const char *const keys[] = {"convolution", "matmul"};
	struct run_poplar out = {run_unsaid, run_unsaid};
	struct json_at value;

	if (json_is_null(at))
		return out;
	if (json_child(at, "slice", &value))
		json_fail(&value, fill->err,
			  "slices are not planned here: give convolution and matmul alone");
	else
		json_only_keys(at, keys, ARRAY_LEN(keys), fill->err);
	run_read_plan(fill, at, keys[0], &out.convolution);
	run_read_plan(fill, at, keys[1], &out.matmul);
	return out;
}

static void run_fill_plan(const struct run_value *fill)
{
	const struct run_poplar poplar = run_read_poplar(fill, fill->at);

	run_store(fill, &poplar, sizeof(poplar));
}

static void run_fill_plans(const struct run_value *fill)
{
	struct run_poplars poplars = {.given = !json_is_null(fill->at)};
	struct run_poplar *items = poplars.given ? run_items(fill, sizeof(*items)) : NULL;
	struct json_at item = {0};

	poplars.items = items;
	while (items && !err_stuck(fill->err) && json_next(fill->at, &item))
		items[poplars.count++] = run_read_poplar(fill, &item);
	run_store(fill, &poplars, sizeof(poplars));
}

static void run_override_plan(struct run_plan *into, const struct run_plan *from)
{
	if (!isnan(from->available_memory_proportion))
		into->available_memory_proportion = from->available_memory_proportion;
	if (from->partials_type != RUN_PARTIALS_UNSAID)
		into->partials_type = from->partials_type;
}

struct run_poplar run_poplar_of(const struct run_file *run, char phase, int stage)
{
	const struct run_poplars *all = phase == IPU_PHASE_F ? &run->pipeline.forward_options
							     : &run->pipeline.backward_options;
	struct run_poplar out = {run->ipu.convolutions, run->ipu.matmuls};
	const struct run_poplar *from = NULL;

	if (phase == IPU_PHASE_U)
		from = &run->pipeline.update_options;
	else if (stage >= 0 && stage < all->count)
		from = &all->items[stage];
	if (from) {
		run_override_plan(&out.convolution, &from->convolution);
		run_override_plan(&out.matmul, &from->matmul);
	}
	return out;
}

/* ---- by kind --------------------------------------------------------------------------------- */

enum status run__fill(const struct run_value *fill)
{
	static void (*const fills[])(const struct run_value *) = {
		[RUN_KEY_SECTION] = run_fill_section, [RUN_KEY_INT] = run_fill_int,
		[RUN_KEY_BOOL] = run_fill_bool,       [RUN_KEY_TEXT] = run_fill_text,
		[RUN_KEY_CHOICE] = run_fill_choice,   [RUN_KEY_TEXTS] = run_fill_texts,
		[RUN_KEY_FILTERS] = run_fill_filters, [RUN_KEY_STEPS] = run_fill_steps,
		[RUN_KEY_SHUFFLE] = run_fill_shuffle, [RUN_KEY_TREE] = run_fill_tree,
		[RUN_KEY_LIST] = run_fill_list,       [RUN_KEY_FLAGS] = run_fill_flags,
		[RUN_KEY_SIZE] = run_fill_size,       [RUN_KEY_REAL] = run_fill_real,
		[RUN_KEY_MAYBE] = run_fill_maybe,     [RUN_KEY_INTS] = run_fill_ints,
		[RUN_KEY_PLAN] = run_fill_plan,       [RUN_KEY_PLANS] = run_fill_plans,
		[RUN_KEY_CAPTURE] = run_fill_capture, [RUN_KEY_BYTES] = run_fill_bytes,
		[RUN_KEY_LISTS] = run_fill_lists,     [RUN_KEY_NAMED] = run_fill_named,
	};

	_Static_assert(ARRAY_LEN(fills) == RUN_KEY_KINDS, "key kinds out of step");
	if (!err_stuck(fill->err))
		fills[fill->key->kind](fill);
	return fill->err->status;
}
