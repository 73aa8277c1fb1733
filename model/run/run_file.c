/*
 * Reading the run file: load, patch, check against the table of keys, fill the struct.
 *
 * Threading: none. Ownership: struct run_memory holds the run, its arena and its trees;
 * run_file_free() ends all of them.
 */
#include "model/run/run_file.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "ipu/ipu_target.h"
#include "model/run/run_internal.h"

struct run_memory {
	struct run_file run; /* first: run_file_free() is given its address */
	struct arena arena;
	const struct run_checks *checks;
	cJSON *model;     /* of a file of its own, or NULL */
	cJSON *rules;     /* so too */
	cJSON *fallbacks; /* the defaults of the table as JSON, by path */
};

/* ---- against the table ----------------------------------------------------------------------- */

/* Every key of @at must be one of @section (NULL: the top level). */
static enum status run_check_known(const struct json_at *at, const struct run_key *section,
				   struct err *err)
{
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (const cJSON *node = at->node->child; node; node = node->next) {
		struct json_at below = {
			.file = at->file, .up = at, .node = node, .key = node->string, .index = -1};
		bool known = false;

		for (int i = 0; i < count && !known; i++)
			known = run__key_within(&keys[i], section) &&
				!strcmp(run__key_last(&keys[i]), node->string);
		if (!known)
			return run__key_unknown(&below, section, err);
	}
	return ST_OK;
}

static enum status run_missing(const struct json_at *parent, const struct run_key *key,
			       struct err *err)
{
	return json_fail(parent, err, "\"%s\" is missing: %s", run__key_last(key), key->help);
}

/* The default of @key as a JSON node that lives as long as the run. */
static enum status run_fallback(struct run_memory *memory, const struct run_key *key,
				const cJSON **out, struct err *err)
{
	enum status status;
	cJSON *node;

	status = json_parse(&node, key->fallback, strlen(key->fallback), key->path, err);
	if (status != ST_OK)
		return status;
	if (!cJSON_AddItemToObject(memory->fallbacks, key->path, node)) {
		cJSON_Delete(node);
		return err_nomem(err);
	}
	*out = node;
	return ST_OK;
}

/*
 * Read one key. @parent is its section in the file (NULL node: the section is absent, so the key's
 * default holds, and nothing is missing). null stands for the default, but for sections, where it
 * says "not", and for bytes, of which it says that there is no end.
 */
static enum status run_read_key(struct run_memory *memory, const struct run_key *key,
				const struct json_at *parent, struct err *err)
{
	struct json_at at;
	bool there = cJSON_IsObject(parent->node) && json_child(parent, run__key_last(key), &at);
	const struct run_value value = {.run = &memory->run,
					.arena = &memory->arena,
					.key = key,
					.at = &at,
					.checks = memory->checks,
					.err = err};
	enum status status;

	if (there && json_is_null(&at) && key->kind != RUN_KEY_SECTION &&
	    key->kind != RUN_KEY_BYTES)
		there = false;
	if (!there && !key->fallback)
		return cJSON_IsObject(parent->node) ? run_missing(parent, key, err) : ST_OK;
	if (!there) {
		const cJSON *node = NULL;

		status = run_fallback(memory, key, &node, err);
		if (status != ST_OK)
			return status;
		at = json_root(key->path, node);
	}

	return run__fill(&value);
}

#define RUN_SECTIONS_DEEP 4 /* the root and sections within sections */

/* Step from the root, at[0], down to the section that @key is in, or to @key itself where @whole;
 * its cursors go into at[1] .. NULL: there is none, or null. */
static const struct json_at *run_find(struct json_at at[RUN_SECTIONS_DEEP],
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

/* All keys, before any is missed: a misspelt one is both. */
static enum status run_check_keys(const struct json_at *root, struct err *err)
{
	enum status status = run_check_known(root, NULL, err);
	struct json_at at[RUN_SECTIONS_DEEP] = {*root};
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; i < count && status == ST_OK; i++) {
		const struct json_at *section =
			keys[i].kind == RUN_KEY_SECTION ? run_find(at, &keys[i], true) : NULL;

		if (section)
			status = run_check_known(section, &keys[i], err);
	}
	return status;
}

static enum status run_read_keys(struct run_memory *memory, struct err *err)
{
	static const cJSON nothing = {.type = cJSON_NULL};
	const struct json_at absent = json_root(memory->run.path, &nothing);
	struct json_at at[RUN_SECTIONS_DEEP] = {json_root(memory->run.path, memory->run.json)};
	enum status status = run_check_keys(&at[0], err);
	int count;
	const struct run_key *keys = run_file_keys(&count);

	for (int i = 0; i < count && status == ST_OK; i++) {
		const struct json_at *section = run_find(at, &keys[i], false);

		status = run_read_key(memory, &keys[i], section ? section : &absent, err);
	}
	return status;
}

/* ---- what the table cannot say --------------------------------------------------------------- */

static enum status run_check_loss(const struct run_file *run, struct err *err)
{
	if (run->compile.loss)
		return ST_OK;
	return err_set(
		err, ST_INVALID,
		"%s: compile.loss: is missing (\"sparse_categorical_crossentropy\", for one)",
		run->path);
}

static enum status run_check_target(const struct run_file *run, struct err *err)
{
	struct ipu_target target;
	enum status status;

	status = ipu_target_get(run->ipu.target, 0, &target, err);
	if (status != ST_OK) {
		err_prefix(err, "%s: ipu.target", run->path);
		return ST_INVALID;
	}
	if (run->ipu.tiles_per_ipu <= target.tiles)
		return ST_OK;
	return err_set(err, ST_INVALID, "%s: ipu.tiles_per_ipu: %s has %lld tiles, not %lld",
		       run->path, run->ipu.target, (long long)target.tiles,
		       (long long)run->ipu.tiles_per_ipu);
}

bool run__beside(const struct run_file *run, const char *name, char path[FS_PATH_SIZE])
{
	const char *slash = strrchr(run->path, '/');
	int folder = 0; /* bytes of the run file's path that name its folder */

	if (*name != '/' && slash)
		folder = (int)(slash + 1 - run->path);
	return fs_path(path, "%.*s%s", folder, run->path, name);
}

/* The model may stand in a file of its own. */
static enum status run_read_model(struct run_memory *memory, bool files, struct err *err)
{
	struct run_file *run = &memory->run;
	const char *name;
	char path[FS_PATH_SIZE];
	enum status status;

	run->model_file = run->path;
	run->model_place = "model";
	if (!cJSON_IsString(run->model))
		return ST_OK;
	name = run->model->valuestring;
	if (!files)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: model: the file \"%s\" cannot be read from here", run->path,
			       name);
	if (!run__beside(run, name, path))
		return err_set(err, ST_INVALID, "%s: model: the path is too long", run->path);

	status = json_load(&memory->model, path, err);
	if (status != ST_OK) {
		err_prefix(err, "%s: model", run->path);
		return status == ST_IO || status == ST_NOMEM ? status : ST_INVALID;
	}
	run->model = memory->model;
	run->model_place = "";
	run->model_file = arena_strdup(&memory->arena, path);
	return run->model_file ? ST_OK : err_nomem(err);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static enum status run_build(struct run_memory *memory, int argc, char **argv, bool files,
			     struct err *err)
{
	struct json_at root = json_root(memory->run.path, memory->run.json);
	enum status status = json_object(&root, err);

	if (status == ST_OK)
		status = run__options_apply(memory->run.json, memory->run.path, argc, argv, err);
	if (status == ST_OK)
		status = run_read_keys(memory, err);
	if (!memory->run.fit.wanted)
		memory->run.fit.epochs = 0;
	memory->run.pipeline.stages_auto =
		cJSON_IsString(memory->run.pipeline.stages) &&
		!strcmp(memory->run.pipeline.stages->valuestring, "auto");
	if (status == ST_OK)
		status = run_check_loss(&memory->run, err);
	if (status == ST_OK)
		status = run_check_target(&memory->run, err);
	if (status == ST_OK)
		status = run__read_health(&memory->run, &memory->rules, memory->checks, files, err);
	if (status == ST_OK)
		status = run_read_model(memory, files, err);
	return status;
}

/* @json is handed over, on failure too. */
static enum status run_new(struct run_file **out, const char *path, cJSON *json, int argc,
			   char **argv, const struct run_checks *checks, bool files,
			   struct err *err)
{
	struct run_memory *memory = mem_calloc(1, sizeof(*memory));
	enum status status;

	if (!memory || arena_init(&memory->arena, 0)) {
		mem_free(memory);
		cJSON_Delete(json);
		return err_nomem(err);
	}
	memory->run.json = json;
	memory->checks = checks;
	memory->run.path = arena_strdup(&memory->arena, path);
	memory->fallbacks = cJSON_CreateObject();

	if (!memory->run.path || !memory->fallbacks)
		status = err_nomem(err);
	else
		status = run_build(memory, argc, argv, files, err);
	if (status != ST_OK) {
		run_file_free(&memory->run);
		return status;
	}
	*out = &memory->run;
	return ST_OK;
}

enum status run_file_load(struct run_file **out, const char *path, int argc, char **argv,
			  const struct run_checks *checks, struct err *err)
{
	enum status status;
	cJSON *json;

	*out = NULL;
	status = json_load(&json, path, err);
	if (status != ST_OK)
		return status;
	return run_new(out, path, json, argc, argv, checks, true, err);
}

enum status run_file_parse(struct run_file **out, const char *name, const char *text, size_t length,
			   int argc, char **argv, const struct run_checks *checks, struct err *err)
{
	enum status status;
	cJSON *json;

	*out = NULL;
	status = json_parse(&json, text, length, name, err);
	if (status != ST_OK)
		return status;
	return run_new(out, name, json, argc, argv, checks, false, err);
}

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
