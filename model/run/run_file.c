/*
 * The run file: reading it by the table of keys, and queries.
 *
 * Failures are sticky in struct err while a file is read. Threading: none. Ownership: struct
 * run_memory holds the run, its arena and its trees; run_file_free() frees all of them.
 */
#include "model/run/run_file.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/arena.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "ipu/ipu_target.h"
#include "model/run/run_words.h"

struct run_memory {
	struct run_file run; /* must be first: run_file_free() gets its address */
	struct arena arena;
	const struct run_checks *checks;
	bool files;       /* a model or rules may be read from their own files */
	bool bare;        /* the file is a Keras model, not a run file */
	cJSON *model;     /* read from its own file, or NULL */
	cJSON *rules;     /* likewise */
	cJSON *fallbacks; /* the defaults of the table as JSON, by path */
	struct err *err;
};

/* ---- reading by the table -------------------------------------------------------------------- */

/* The default of @key as a JSON node that lives as long as the run; NULL: a failure. */
static const cJSON *run_fallback(struct run_memory *memory, const struct run_key *key)
{
	cJSON *node;

	if (json_parse(&node, key->fallback, strlen(key->fallback), key->path, memory->err) !=
	    ST_OK)
		return NULL;
	if (!cJSON_AddItemToObject(memory->fallbacks, key->path, node)) {
		cJSON_Delete(node);
		err_nomem(memory->err);
		return NULL;
	}
	return node;
}

/*
 * Read one key. @parent is its section in the file (NULL: the section is absent, so the key's
 * default applies, and no key is missing). null means the default, except for sections, where it
 * means "without", and for bytes, where it means unlimited.
 */
static void run_read_key(struct run_memory *memory, const struct run_key *key,
			 const struct json_at *parent)
{
	struct json_at at;
	bool present = parent && json_child(parent, run__key_last(key), &at);
	const struct run_value value = {.run = &memory->run,
					.arena = &memory->arena,
					.key = key,
					.at = &at,
					.checks = memory->checks,
					.err = memory->err};

	if (present && json_is_null(&at) && key->kind != RUN_KEY_SECTION &&
	    key->kind != RUN_KEY_BYTES)
		present = false;
	if (!present && key->fallback)
		at = json_root(key->path, run_fallback(memory, key));
	else if (!present && parent)
		json_fail(parent, memory->err, "\"%s\" is missing: %s", run__key_last(key),
			  key->help);
	if (present || key->fallback)
		run__fill(&value);
}

#define RUN_SECTIONS_DEEP 4 /* limit on nesting: the root and sections within sections */

/* Descend from the root, at[0], to the section that contains @key, or to @key itself if @whole; the
 * cursors are stored in at[1] .. NULL: the section is absent or null. */
static const struct json_at *run_find_section(struct json_at at[RUN_SECTIONS_DEEP],
					      const struct run_key *key, bool whole)
{
	const char *name = key->path;
	int deep = 0;

	for (const char *dot = strchr(name, '.'); dot || whole; dot = strchr(name, '.')) {
		char word[64];

		assert(deep + 1 < RUN_SECTIONS_DEEP && strlen(name) < sizeof(word));
		snprintf(word, sizeof(word), "%.*s", dot ? (int)(dot - name) : INT_MAX, name);
		if (!json_child(&at[deep], word, &at[deep + 1]) ||
		    !cJSON_IsObject(at[deep + 1].node))
			return NULL;
		deep++;
		if (!dot)
			break;
		name = dot + 1;
	}
	return &at[deep];
}

static void run_read_keys(struct run_memory *memory)
{
	struct json_at at[RUN_SECTIONS_DEEP] = {json_root(memory->run.path, memory->run.json)};
	int count;
	const struct run_key *keys = run_file_keys(&count);

	/* Report unknown keys before missing ones: a misspelt key is both. */
	if (!err_stuck(memory->err))
		run__keys_check(&at[0], NULL, memory->err);
	for (int i = 0; i < count && !err_stuck(memory->err); i++) {
		const struct json_at *section = keys[i].kind == RUN_KEY_SECTION
							? run_find_section(at, &keys[i], true)
							: NULL;

		if (section)
			run__keys_check(section, &keys[i], memory->err);
	}
	for (int i = 0; i < count && !err_stuck(memory->err); i++)
		run_read_key(memory, &keys[i], run_find_section(at, &keys[i], false));
}

/* ---- checks beyond the table ----------------------------------------------------------------- */

static void run_check_target(const struct run_file *run, struct err *err)
{
	struct ipu_target target;

	if (err_stuck(err))
		return;
	if (ipu_target_get(run->ipu.target, 0, &target, err) != ST_OK) {
		err_prefix(err, "%s: ipu.target", run->path);
		err->status = ST_INVALID;
	} else if (run->ipu.tiles_per_ipu > target.tiles) {
		err_set(err, ST_INVALID, "%s: ipu.tiles_per_ipu: %s has %lld tiles, not %lld",
			run->path, run->ipu.target, (long long)target.tiles,
			(long long)run->ipu.tiles_per_ipu);
	}
}

/* Resolve @name relative to the run file's folder; false: the path is too long. */
static bool run_resolve_path(const struct run_file *run, const char *name, char path[FS_PATH_SIZE])
{
	const char *slash = strrchr(run->path, '/');
	int folder = 0; /* bytes of the run file's path that name its folder */

	if (*name != '/' && slash)
		folder = (int)(slash + 1 - run->path);
	return fs_path(path, "%.*s%s", folder, run->path, name);
}

/* Prefix an error in a file that the run file refers to with the run file and the key. */
static void run_prefix_file(struct run_memory *memory, const char *key)
{
	struct err *err = memory->err;

	if (!err_stuck(err))
		return;
	err_prefix(err, "%s: %s", memory->run.path, key);
	if (err->status != ST_IO && err->status != ST_NOMEM)
		err->status = ST_INVALID;
}

/* Load the file @name that is the value of @key: relative to the run file or, if @here, also to the
 * working directory. */
static void run_read_file(struct run_memory *memory, const char *key, const char *name, bool here,
			  cJSON **out, char path[FS_PATH_SIZE])
{
	const struct run_file *run = &memory->run;
	struct err *err = memory->err;

	if (!memory->files) {
		err_set(err, ST_UNSUPPORTED, "%s: %s: the file \"%s\" cannot be read from here",
			run->path, key, name);
		return;
	}
	if (!run_resolve_path(run, name, path) ||
	    (here && access(path, F_OK) != 0 && access(name, F_OK) == 0 &&
	     !fs_path(path, "%s", name))) {
		err_set(err, ST_INVALID, "%s: %s: the path is too long", run->path, key);
		return;
	}
	(memory->checks->load ? memory->checks->load : json_load)(out, path, err);
	run_prefix_file(memory, key);
}

/*
 * Remove what other programs wrap around a Keras model: TensorFlow.js's model.json {"format",
 * "modelTopology": {"model_config": ...}, "weightsManifest"}, and HDF5's attribute. *@json becomes
 * the model itself.
 */
static void run_unwrap_model(cJSON **json, const char *file, struct err *err)
{
	static const char *const covers[] = {"modelTopology", "model_config"};
	const char *format =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*json, "format"));

	if (format && !strcmp(format, "graph-model"))
		err_set(err, ST_UNSUPPORTED,
			"%s: is a graph model of TensorFlow.js, which has no Keras layers: convert "
			"the Keras model to its layers model (\"layers-model\")",
			file);
	for (size_t i = 0; i < ARRAY_LEN(covers); i++) {
		cJSON *inner = cJSON_GetObjectItemCaseSensitive(*json, covers[i]);

		if (!cJSON_IsObject(inner))
			continue;
		cJSON_DetachItemViaPointer(*json, inner);
		cJSON_free(inner->string);
		inner->string = NULL;
		cJSON_Delete(*json);
		*json = inner;
	}
}

/* Unwrap a run file's model, inline or the file itself. */
static void run_unwrap(struct run_memory *memory, cJSON **json, const char *path)
{
	cJSON *model = cJSON_GetObjectItemCaseSensitive(*json, "model"), *run;

	if (cJSON_HasObjectItem(model, "modelTopology") || cJSON_HasObjectItem(model, "format")) {
		cJSON_DetachItemViaPointer(*json, model);
		cJSON_free(model->string);
		model->string = NULL;
		run_unwrap_model(&model, path, memory->err);
		if (!cJSON_AddItemToObject(*json, "model", model)) {
			cJSON_Delete(model);
			err_nomem(memory->err);
		}
		return;
	}
	if (model || !cJSON_IsObject(*json))
		return;
	run_unwrap_model(json, path, memory->err);
	memory->bare =
		cJSON_HasObjectItem(*json, "class_name") && cJSON_HasObjectItem(*json, "config");
	if (!memory->bare || err_stuck(memory->err))
		return;
	run = cJSON_CreateObject();
	if (run && cJSON_AddItemToObject(run, "model", *json)) {
		*json = run;
		return;
	}
	cJSON_Delete(run);
	err_nomem(memory->err);
}

/* The batch size in the input layers below @node, 0: none. If @set is not 0, store it in each. */
static int64_t run_model_batch(const cJSON *node, int64_t set)
{
	int64_t batch = 0, below;

	for (cJSON *item = node ? node->child : NULL; item; item = item->next) {
		cJSON *first = item->child;

		if (cJSON_IsArray(item) && cJSON_IsNumber(first) && item->string &&
		    (!strcmp(item->string, "batch_input_shape") ||
		     !strcmp(item->string, "batch_shape"))) {
			if (set)
				cJSON_SetNumberHelper(first, (double)set);
			below = (int64_t)first->valuedouble;
		} else {
			below = run_model_batch(item, set);
		}
		batch = batch ? batch : below;
	}
	return batch;
}

/* The batch sizes that a run states: data.batch_size and the model's input layer; 0: none. */
struct run_batches {
	int64_t data, model;
};

static struct run_batches run_batches(const struct run_memory *memory)
{
	const cJSON *json = memory->run.json;
	const cJSON *data = cJSON_GetObjectItemCaseSensitive(json, "data");
	const cJSON *size = cJSON_GetObjectItemCaseSensitive(data, "batch_size");
	const cJSON *model =
		memory->model ? memory->model : cJSON_GetObjectItemCaseSensitive(json, "model");

	return (struct run_batches){cJSON_IsNumber(size) ? (int64_t)size->valuedouble : 0,
				    run_model_batch(model, 0)};
}

static void run_set_data_batch(struct run_memory *memory, int64_t batch)
{
	struct run_file *run = &memory->run;
	cJSON *data = cJSON_GetObjectItemCaseSensitive(run->json, "data");

	run->data.batch_size = batch;
	if (!cJSON_IsObject(data)) {
		cJSON_DeleteItemFromObjectCaseSensitive(run->json, "data");
		data = cJSON_AddObjectToObject(run->json, "data");
	}
	cJSON_DeleteItemFromObjectCaseSensitive(data, "batch_size");
	if (!cJSON_AddNumberToObject(data, "batch_size", (double)batch))
		err_nomem(memory->err);
}

/* Make the two batch sizes equal: if the command line has changed one, or only the model states
 * one, the other follows. Keys, applied to what the flags made (@before[1]), count before the
 * flags, applied to the file (@before[0]). A contradiction is refused later. */
static void run_unify_batches(struct run_memory *memory, const struct run_batches before[2])
{
	const struct run_batches after = run_batches(memory);

	if (err_stuck(memory->err) || after.model < 1 || after.data == after.model)
		return;
	for (int stage = 1; stage >= 0; stage--) {
		const bool data = after.data != before[stage].data;
		const bool model = !memory->model && after.model != before[stage].model;

		if (data && !model)
			run_model_batch(memory->run.model, after.data);
		else if (model && !data)
			run_set_data_batch(memory, after.model);
		if (data || model)
			return;
	}
	if (after.data == 0)
		run_set_data_batch(memory, after.model);
}

/* Load the model if it is in a file of its own. */
static void run_read_model(struct run_memory *memory)
{
	struct run_file *run = &memory->run;
	char path[FS_PATH_SIZE];

	run->model_file = run->path;
	run->model_place = "model";
	if (err_stuck(memory->err) || !cJSON_IsString(run->model))
		return;
	run_read_file(memory, "model", run->model->valuestring, false, &memory->model, path);
	if (!err_stuck(memory->err))
		run_unwrap_model(&memory->model, path, memory->err);
	if (err_stuck(memory->err))
		return;
	run->model = memory->model;
	run->model_place = "";
	run->model_file = arena_strdup(&memory->arena, path);
	if (!run->model_file)
		err_nomem(memory->err);
}

/* Check the health rules, loading them if they are in a file of their own. */
static void run_read_rules(struct run_memory *memory)
{
	struct run_file *run = &memory->run;
	struct run_place place;
	struct json_at root;
	char path[FS_PATH_SIZE];

	if (!run->health.rules || !run__value_find(run, "health", "rules", &place))
		return;
	if (!cJSON_IsString(place.at.node)) {
		memory->checks->rules(&place.at, memory->err);
		return;
	}
	run_read_file(memory, "health.rules", place.at.node->valuestring, true, &memory->rules,
		      path);
	if (err_stuck(memory->err))
		return;
	root = json_root(path, memory->rules);
	run->health.rules = memory->rules;
	memory->checks->rules(&root, memory->err);
	run_prefix_file(memory, "health.rules");
}

/* {"overfit": false} or {"overfit": {"enabled": false}}; rules that are not mentioned are on. */
static bool run_rule_is_off(const cJSON *rules, const char *name)
{
	const cJSON *rule = cJSON_GetObjectItemCaseSensitive(rules, name);

	return cJSON_IsFalse(rule) ||
	       cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(rule, "enabled"));
}

static void run_read_health(struct run_memory *memory)
{
	const struct run_file *run = &memory->run;

	if (err_stuck(memory->err) || !run->health.wanted)
		return;
	run_read_rules(memory);
	/* A rule that is off can never stop the run. */
	for (int i = 0; !err_stuck(memory->err) && i < run->health.stop.count; i++)
		if (run_rule_is_off(run->health.rules, run->health.stop.items[i]))
			err_set(memory->err, ST_INVALID,
				"%s: health.stop: the rule %s is switched off in health.rules",
				run->path, run->health.stop.items[i]);
}

/* ---- loading and freeing --------------------------------------------------------------------- */

/* Takes ownership of @json, even on failure. */
static enum status run_new(struct run_file **out, const char *path, cJSON *json, int argc,
			   char **argv, const struct run_checks *checks, bool files,
			   struct err *err)
{
	struct run_memory *memory = mem_calloc(1, sizeof(*memory));
	struct run_batches before[2] = {0};
	struct str notes = {0};
	struct json_at root;
	struct run_file *run;

	if (!memory || arena_init(&memory->arena, 0)) {
		mem_free(memory);
		cJSON_Delete(json);
		return err_nomem(err);
	}
	run = &memory->run;
	memory->checks = checks;
	memory->files = files;
	memory->err = err;
	memory->fallbacks = cJSON_CreateObject();
	run_unwrap(memory, &json, path);
	root = json_root(path, json);
	run->json = json;
	run->path = arena_strdup(&memory->arena, path);
	before[0] = run_batches(memory);
	if (!run->path || !memory->fallbacks)
		err_nomem(err);
	if (!err_stuck(err) && json_object(&root, err) == ST_OK)
		run__options_flags(json, run->path, argc, argv, &notes, err);
	before[1] = run_batches(memory);
	if (!err_stuck(err))
		run__options_keys(json, run->path, argc, argv, err);
	run->notes = arena_strdup(&memory->arena, str_peek(&notes));
	if (!run->notes || notes.failed)
		err_nomem(err);
	str_free(&notes);
	run_read_keys(memory);
	if (!run->fit.wanted)
		run->fit.epochs = 0;
	run->pipeline.stages_auto = cJSON_IsString(run->pipeline.stages) &&
				    !strcmp(run->pipeline.stages->valuestring, "auto");
	if (!err_stuck(err) && !run->compile.loss)
		err_set(err, ST_INVALID,
			"%s: compile.loss: is missing (\"sparse_categorical_crossentropy\", for "
			"one)%s",
			run->path,
			memory->bare ? "; this is a Keras model, not a run file: give the rest as "
				       "options (--compile.loss sparse_categorical_crossentropy "
				       "--data.name mnist), or name it as the \"model\" of a run "
				       "file"
				     : "");
	run_check_target(run, err);
	run_read_health(memory);
	run_read_model(memory);
	run_unify_batches(memory, before);
	if (err_stuck(err)) {
		run_file_free(run);
		return err->status;
	}
	*out = run;
	return ST_OK;
}

enum status run_file_load(struct run_file **out, const char *path, int argc, char **argv,
			  const struct run_checks *checks, struct err *err)
{
	struct err own;
	cJSON *json;

	*out = NULL;
	err = err_start(err, &own);
	if ((checks->load ? checks->load : json_load)(&json, path, err) != ST_OK)
		return err->status;
	return run_new(out, path, json, argc, argv, checks, true, err);
}

enum status run_file_parse(struct run_file **out, const char *name, const char *text, size_t length,
			   int argc, char **argv, const struct run_checks *checks, struct err *err)
{
	struct err own;
	cJSON *json;

	*out = NULL;
	err = err_start(err, &own);
	if (json_parse(&json, text, length, name, err) != ST_OK)
		return err->status;
	return run_new(out, name, json, argc, argv, checks, false, err);
}

void run_file_free(struct run_file *run)
{
	struct run_memory *memory = (struct run_memory *)(void *)run;

	if (!run)
		return;
	cJSON_Delete(run->json);
	cJSON_Delete(memory->model);
	cJSON_Delete(memory->rules);
	cJSON_Delete(memory->fallbacks);
	arena_fini(&memory->arena);
	mem_free(memory);
}

/* ---- queries --------------------------------------------------------------------------------- */

enum status run_file_text(char **out, const struct run_file *run, struct err *err)
{
	cJSON *whole = NULL, *model = NULL;
	bool failed = false;

	*out = NULL;
	if (run->model_place[0] == '\0') {
		whole = cJSON_Duplicate(run->json, true);
		model = cJSON_Duplicate(run->model, true);
		failed = !whole || !model ||
			 !cJSON_ReplaceItemInObjectCaseSensitive(whole, "model", model);
		if (failed)
			cJSON_Delete(model);
	}
	if (!failed)
		*out = cJSON_PrintUnformatted(whole ? whole : run->json);
	cJSON_Delete(whole);
	return *out ? ST_OK : err_nomem(err);
}

/* Print what a flag sets, one "path = value" per line: its patch down to the keys of the table. */
static enum status run_help_patch(const cJSON *patch, const struct run_key *section, FILE *out)
{
	enum status status = ST_OK;

	for (const cJSON *item = patch->child; item && status == ST_OK; item = item->next) {
		char path[256], *text;
		const struct run_key *key;

		snprintf(path, sizeof(path), "%s%s%s", section ? section->path : "",
			 section ? "." : "", item->string);
		key = run__key_find(path);
		if (key && key->kind == RUN_KEY_SECTION && item->child) {
			status = run_help_patch(item, key, out);
			continue;
		}
		text = cJSON_PrintUnformatted(item);
		if (!text)
			return ST_NOMEM;
		if (strlen(text) > 60)
			cli_print(out, "      sets %s (see the run file)\n", path);
		else
			cli_print(out, "      sets %s = %s\n", path, text);
		cJSON_free(text);
	}
	return status;
}

/* Print "--name VALUE", or "--name A|B", and what each sets. */
static enum status run_help_flag(const cJSON *flag, FILE *out)
{
	static const char *const arguments[] = {"", " VALUE", " VALUE..."};
	const cJSON *choices = cJSON_GetObjectItemCaseSensitive(flag, "$choice");
	enum status status = ST_OK;

	cli_print(out, "  %s", flag->string);
	if (!choices) {
		cli_print(out, "%s\n", arguments[run__takes(flag)]);
		return run_help_patch(flag, NULL, out);
	}
	for (const cJSON *choice = choices->child; choice; choice = choice->next)
		cli_print(out, "%c%s", choice == choices->child ? ' ' : '|', choice->string);
	fputc('\n', out);
	for (const cJSON *choice = choices->child; choice && status == ST_OK;
	     choice = choice->next) {
		if (choice->child)
			cli_print(out, "    %s\n", choice->string);
		status = run_help_patch(choice, NULL, out);
	}
	return status;
}

enum status run_file_help(const struct run_file *run, FILE *out)
{
	const cJSON *flags = cJSON_GetObjectItemCaseSensitive(run->json, "flags");
	enum status status = ST_OK;

	if (run->description)
		cli_print(out, "%s: %s\n", run->path, run->description);
	if (cJSON_IsObject(flags) && flags->child)
		cli_print(out, "Flags of %s:\n", run->path);
	for (const cJSON *flag = cJSON_IsObject(flags) ? flags->child : NULL;
	     flag && status == ST_OK; flag = flag->next)
		status = run_help_flag(flag, out);
	if (status == ST_OK && ferror(out))
		status = ST_IO;
	return status;
}

bool run__value_find(const struct run_file *run, const char *section, const char *key,
		     struct run_place *out)
{
	out->root = json_root(run->path, run->json);
	return json_child(&out->root, section, &out->section) && !json_is_null(&out->section) &&
	       json_child(&out->section, key, &out->at) && !json_is_null(&out->at);
}

enum status run_model_at(struct json_at *root, struct json_at *out, const struct run_file *run,
			 struct err *err)
{
	const bool own_file = run->model_place[0] == '\0';

	*root = json_root(run->model_file, own_file ? run->model : run->json);
	*out = *root;
	if (!own_file && !json_child(root, run->model_place, out))
		return err_set(err, ST_INVALID, "%s: model: missing", run->path);
	return ST_OK;
}

enum model_policy run_policy(const struct run_file *run)
{
	static const enum model_policy policies[] = {
		[RUN_POLICY_FLOAT32] = MODEL_POLICY_TEXT,
		[RUN_POLICY_MIXED_FLOAT16] = MODEL_POLICY_MIXED,
		[RUN_POLICY_MIXED_BFLOAT16] = MODEL_POLICY_MIXED_BFLOAT16,
	};

	return policies[run->compile.dtype_policy];
}

enum status run_optimizer(struct optimizer *out, const struct run_file *run, struct err *err)
{
	struct run_place place;

	return optimizer_get(
		out, run__value_find(run, "compile", "optimizer", &place) ? &place.at : NULL, err);
}
