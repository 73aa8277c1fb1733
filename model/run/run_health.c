/*
 * The run file's section "health": its rules, which may stand in a file of their own, and those
 * that end the run.
 *
 * Threading: none. What is read is copied.
 */
#include <stdio.h>
#include <unistd.h>

#include "model/run/run_internal.h"

/* The path that the rules' file has: beside the run file, else where the command was given. */
static bool run_rules_path(const struct run_file *run, const char *name, char path[FS_PATH_SIZE])
{
	if (!run__beside(run, name, path))
		return false;
	return access(path, F_OK) == 0 || access(name, F_OK) != 0 || fs_path(path, "%s", name);
}

static enum status run_read_rules_file(struct run_file *run, const struct json_at *at, bool files,
				       struct err *err)
{
	const char *name = at->node->valuestring;
	char path[FS_PATH_SIZE];
	enum status status;
	struct json_at root;
	cJSON *tree;

	if (!files)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: health.rules: the file \"%s\" cannot be read from here",
			       run->path, name);
	if (!run_rules_path(run, name, path))
		return json_fail(at, err, "the path is too long");
	status = json_load(&tree, path, err);
	if (status == ST_OK) {
		root = json_root(path, tree);
		status = outfeed_health_read(&run->health.rules, &root, err);
		cJSON_Delete(tree);
	}
	if (status == ST_OK)
		return ST_OK;
	err_prefix(err, "%s: health.rules", run->path);
	return status == ST_IO || status == ST_NOMEM ? status : ST_INVALID;
}

static enum status run_read_rules(struct run_file *run, bool files, struct err *err)
{
	struct json_at root = json_root(run->path, run->json), health, rules;

	if (!run->health.tree || !json_child(&root, "health", &health) ||
	    !json_child(&health, "rules", &rules))
		return ST_OK;
	if (cJSON_IsString(rules.node))
		return run_read_rules_file(run, &rules, files, err);
	return outfeed_health_read(&run->health.rules, &rules, err);
}

/* What never breaks ends no run. */
static enum status run_check_stop(const struct run_file *run, struct err *err)
{
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		if ((run->health.stop & 1u << i) != 0 && !run->health.rules.rule[i].enabled)
			return err_set(
				err, ST_INVALID,
				"%s: health.stop: the rule %s is switched off in health.rules",
				run->path,
				outfeed_health_describe((enum outfeed_health_id)i)->name);
	return ST_OK;
}

enum status run__read_health(struct run_file *run, bool files, struct err *err)
{
	enum status status;

	outfeed_health_defaults(&run->health.rules);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		run->health.rules.rule[i].enabled = run->health.wanted;
	for (int i = 0; i < run->health.stop_names.count; i++) {
		enum outfeed_health_id id;

		if (outfeed_health_find(&id, run->health.stop_names.items[i]))
			run->health.stop |= 1u << id;
	}
	if (!run->health.wanted)
		return ST_OK;
	status = run_read_rules(run, files, err);
	return status == ST_OK ? run_check_stop(run, err) : status;
}
