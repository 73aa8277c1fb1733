/*
 * The values of a run file, each checked as its key's kind says, on their way into struct run_file.
 *
 * Threading: none. Ownership: lists of texts lie in the run's arena; texts and trees stay the
 * JSON's.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_internal.h"

void run__store(const struct run_value *fill, const void *value, size_t size)
{
	assert(fill->key->size == size);
	memcpy((char *)fill->run + fill->key->offset, value, size);
}

static enum status run_fill_int(const struct run_value *fill)
{
	enum status status = ST_OK;
	int64_t value = fill->key->absent;

	if (!json_is_null(fill->at))
		status = json_int(fill->at, fill->key->least, fill->key->greatest, &value,
				  fill->err);
	if (status == ST_OK)
		run__store(fill, &value, sizeof(value));
	return status;
}

/* Fail where @word at @at is not among the key's choices; else *@out is its number. */
static enum status run_choose(const struct run_value *fill, const struct json_at *at,
			      const char *word, int *out)
{
	const char *names[16], *near;
	char copy[256], *rest = NULL;
	struct str list = {0};
	size_t count = 0;

	*out = run__choice(fill->key->choices, word);
	if (*out >= 0)
		return ST_OK;

	str_copy(copy, sizeof(copy), fill->key->choices);
	for (char *name = strtok_r(copy, " ", &rest); name && count < ARRAY_LEN(names);
	     name = strtok_r(NULL, " ", &rest))
		names[count++] = name;
	near = str_nearest(word, names, count);
	if (near)
		return json_fail(at, fill->err, "unknown value \"%s\" (did you mean \"%s\"?)", word,
				 near);
	for (size_t i = 0; i < count; i++)
		str_addf(&list, "%s%s", i > 0 ? " " : "", names[i]);
	json_fail(at, fill->err, "unknown value \"%s\" (there is: %s)", word, str_peek(&list));
	str_free(&list);
	return ST_INVALID;
}

/* A count, or "epoch". */
static enum status run_fill_steps(const struct run_value *fill)
{
	int64_t value = RUN_WHOLE_EPOCH;

	if (!cJSON_IsString(fill->at->node))
		return run_fill_int(fill);
	if (strcmp(fill->at->node->valuestring, "epoch") != 0)
		return json_fail(fill->at, fill->err,
				 "must be a whole number or \"epoch\", not \"%s\"",
				 fill->at->node->valuestring);
	run__store(fill, &value, sizeof(value));
	return ST_OK;
}

static enum status run_fill_bool(const struct run_value *fill)
{
	enum status status;
	bool value;

	status = json_bool(fill->at, &value, fill->err);
	if (status == ST_OK)
		run__store(fill, &value, sizeof(value));
	return status;
}

static enum status run_fill_text(const struct run_value *fill)
{
	enum status status = ST_OK;
	const char *text = NULL;
	int number;

	if (!json_is_null(fill->at))
		status = json_text(fill->at, &text, fill->err);
	if (status == ST_OK && text && fill->key->choices)
		status = run_choose(fill, fill->at, text, &number);
	if (status == ST_OK)
		run__store(fill, &text, sizeof(text));
	return status;
}

static enum status run_fill_choice(const struct run_value *fill)
{
	enum status status = ST_OK;
	const char *text = NULL;
	int number = (int)fill->key->absent;

	if (!json_is_null(fill->at))
		status = json_text(fill->at, &text, fill->err);
	if (status == ST_OK && text)
		status = run_choose(fill, fill->at, text, &number);
	if (status != ST_OK)
		return status;

	if (fill->key->size == sizeof(bool)) {
		bool second = number == 1;

		run__store(fill, &second, sizeof(second));
	} else {
		run__store(fill, &number, sizeof(number));
	}
	return ST_OK;
}

/* A text alone, as a list of it. */
static enum status run_fill_one_text(const struct run_value *fill)
{
	const char **items = arena_alloc(fill->arena, 1, sizeof(*items));
	struct run_texts texts = {.items = items, .count = 1, .given = true};
	enum status status = ST_OK;
	int number;

	if (!items)
		return err_nomem(fill->err);
	items[0] = fill->at->node->valuestring;
	if (fill->key->choices)
		status = run_choose(fill, fill->at, items[0], &number);
	if (status == ST_OK)
		run__store(fill, &texts, sizeof(texts));
	return status;
}

static enum status run_fill_list_of_texts(const struct run_value *fill)
{
	struct run_texts texts = {.given = !json_is_null(fill->at)};
	enum status status = ST_OK;
	const char **items = NULL;
	struct json_at item;
	int number;

	if (texts.given) {
		status = json_array(fill->at, fill->err);
		if (status != ST_OK)
			return status;
		/* One more: an empty list is not NULL. */
		items = arena_alloc(fill->arena, (size_t)json_count(fill->at) + 1, sizeof(*items));
		if (!items)
			return err_nomem(fill->err);
	}
	for (const cJSON *node = texts.given ? fill->at->node->child : NULL;
	     node && status == ST_OK; node = node->next) {
		item = (struct json_at){
			.file = fill->at->file, .up = fill->at, .node = node, .index = texts.count};
		status = json_text(&item, &items[texts.count], fill->err);
		if (status == ST_OK && fill->key->choices)
			status = run_choose(fill, &item, items[texts.count], &number);
		texts.count++;
	}
	texts.items = items;
	if (status == ST_OK)
		run__store(fill, &texts, sizeof(texts));
	return status;
}

static enum status run_fill_texts(const struct run_value *fill)
{
	return cJSON_IsString(fill->at->node) ? run_fill_one_text(fill)
					      : run_fill_list_of_texts(fill);
}

/* The tutorial's rule: the word "none" alone switches the filter off. */
static enum status run_fill_filters(const struct run_value *fill)
{
	enum status status = run_fill_list_of_texts(fill);
	struct run_texts texts;

	if (status != ST_OK)
		return status;
	memcpy(&texts, (char *)fill->run + fill->key->offset, sizeof(texts));
	if (texts.count == 1 && !strcasecmp(texts.items[0], "none")) {
		texts.items = NULL;
		texts.count = 0;
		run__store(fill, &texts, sizeof(texts));
	}
	return ST_OK;
}

static enum status run_fill_shuffle(const struct run_value *fill)
{
	int64_t value;

	if (cJSON_IsNumber(fill->at->node))
		return run_fill_int(fill);
	if (!cJSON_IsBool(fill->at->node))
		return json_fail(fill->at, fill->err, "must be true, false or a number of images");
	value = cJSON_IsTrue(fill->at->node) ? -1 : 0;
	run__store(fill, &value, sizeof(value));
	return ST_OK;
}

static enum status run_fill_tree(const struct run_value *fill)
{
	const cJSON *node = json_is_null(fill->at) ? NULL : fill->at->node;

	run__store(fill, &node, sizeof(node));
	return ST_OK;
}

static enum status run_fill_list(const struct run_value *fill)
{
	enum status status = json_is_null(fill->at) ? ST_OK : json_array(fill->at, fill->err);

	return status == ST_OK ? run_fill_tree(fill) : status;
}

static enum status run_fill_size(const struct run_value *fill)
{
	enum status status = ST_OK;
	int64_t size[2] = {0};

	if (!json_is_null(fill->at) &&
	    (!cJSON_IsArray(fill->at->node) || json_count(fill->at) != 2))
		return json_fail(fill->at, fill->err, "must be null or [height, width]");
	for (int i = 0; i < 2 && !json_is_null(fill->at) && status == ST_OK; i++) {
		struct json_at item;

		json_item(fill->at, i, &item);
		status =
			json_int(&item, fill->key->least, fill->key->greatest, &size[i], fill->err);
	}
	if (status == ST_OK)
		run__store(fill, size, sizeof(size));
	return status;
}

static enum status run_fill_ints(const struct run_value *fill)
{
	struct run_ints ints = {.given = !json_is_null(fill->at)};
	enum status status = ints.given ? json_array(fill->at, fill->err) : ST_OK;
	struct json_at item;
	int *items = NULL;
	int64_t value;

	if (status == ST_OK && ints.given) {
		items = arena_alloc(fill->arena, (size_t)json_count(fill->at) + 1, sizeof(*items));
		if (!items)
			return err_nomem(fill->err);
	}
	while (status == ST_OK && ints.given && json_item(fill->at, ints.count, &item)) {
		status = json_int(&item, fill->key->least, fill->key->greatest, &value, fill->err);
		if (status == ST_OK)
			items[ints.count++] = (int)value;
	}
	ints.items = items;
	if (status == ST_OK)
		run__store(fill, &ints, sizeof(ints));
	return status;
}

enum status run__fill_number(const struct run_value *fill, const struct json_at *at, double least,
			     double greatest, double *out)
{
	enum status status = ST_OK;

	/* Poplar's options are texts: "0.4". */
	if (!cJSON_IsString(at->node))
		status = json_real(at, out, fill->err);
	else if (!str_to_double(at->node->valuestring, out))
		status = json_fail(at, fill->err, "must be a number, not \"%s\"",
				   at->node->valuestring);
	if (status == ST_OK && !(*out >= least && *out <= greatest))
		status = json_fail(at, fill->err, "must be from %g to %g, not %g", least, greatest,
				   *out);
	return status;
}

static enum status run_fill_real(const struct run_value *fill)
{
	enum status status;
	double value = 0;

	status = run__fill_number(fill, fill->at, (double)fill->key->least,
				  (double)fill->key->greatest, &value);
	if (status == ST_OK)
		run__store(fill, &value, sizeof(value));
	return status;
}

static enum status run_fill_maybe(const struct run_value *fill)
{
	enum run_maybe value = RUN_UNSAID;
	enum status status = ST_OK;
	bool yes = false;

	if (!json_is_null(fill->at)) {
		status = json_bool(fill->at, &yes, fill->err);
		value = yes ? RUN_YES : RUN_NO;
	}
	if (status == ST_OK)
		run__store(fill, &value, sizeof(value));
	return status;
}

static enum status run_fill_section(const struct run_value *fill)
{
	bool wanted = !json_is_null(fill->at);

	if (fill->key->size)
		run__store(fill, &wanted, sizeof(wanted));
	return wanted ? json_object(fill->at, fill->err) : ST_OK;
}

static enum status run_fill_flags(const struct run_value *fill)
{
	/* run__options_apply() has looked at them. */
	(void)fill;
	return ST_OK;
}

enum status run__fill(const struct run_value *fill)
{
	static enum status (*const fills[])(const struct run_value *) = {
		[RUN_KEY_SECTION] = run_fill_section,  [RUN_KEY_INT] = run_fill_int,
		[RUN_KEY_BOOL] = run_fill_bool,        [RUN_KEY_TEXT] = run_fill_text,
		[RUN_KEY_CHOICE] = run_fill_choice,    [RUN_KEY_TEXTS] = run_fill_texts,
		[RUN_KEY_FILTERS] = run_fill_filters,  [RUN_KEY_STEPS] = run_fill_steps,
		[RUN_KEY_SHUFFLE] = run_fill_shuffle,  [RUN_KEY_TREE] = run_fill_tree,
		[RUN_KEY_LIST] = run_fill_list,        [RUN_KEY_FLAGS] = run_fill_flags,
		[RUN_KEY_SIZE] = run_fill_size,        [RUN_KEY_REAL] = run_fill_real,
		[RUN_KEY_MAYBE] = run_fill_maybe,      [RUN_KEY_INTS] = run_fill_ints,
		[RUN_KEY_PLAN] = run__fill_plan,       [RUN_KEY_PLANS] = run__fill_plans,
		[RUN_KEY_CAPTURE] = run__fill_capture, [RUN_KEY_BYTES] = run__fill_bytes,
	};

	_Static_assert(ARRAY_LEN(fills) == RUN_KEY_KINDS, "key kinds out of step");
	return fills[fill->key->kind](fill);
}
