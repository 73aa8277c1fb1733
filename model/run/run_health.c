/*
 * The run file's section "health": its rules, which may stand in a file of their own, and those
 * that end the run.
 *
 * Threading: none. What is read stays the JSON's.
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

static enum status run_read_rules_file(struct run_file *run, const struct json_at *at, cJSON **file,
				       const struct run_checks *checks, bool files, struct err *err)
{
	const char *name = at->node->valuestring;
	char path[FS_PATH_SIZE];
	enum status status;
	struct json_at root;

	if (!files)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: health.rules: the file \"%s\" cannot be read from here",
			       run->path, name);
	if (!run_rules_path(run, name, path))
		return json_fail(at, err, "the path is too long");
	status = json_load(file, path, err);
	if (status == ST_OK) {
		root = json_root(path, *file);
		run->health.rules = *file;
		status = checks->rules(&root, err);
	}
	if (status == ST_OK)
		return ST_OK;
	err_prefix(err, "%s: health.rules", run->path);
	return status == ST_IO || status == ST_NOMEM ? status : ST_INVALID;
}

static enum status run_read_rules(struct run_file *run, cJSON **file,
				  const struct run_checks *checks, bool files, struct err *err)
{
	struct json_at root = json_root(run->path, run->json), health, rules;

	if (!run->health.rules || !json_child(&root, "health", &health) ||
	    !json_child(&health, "rules", &rules))
		return ST_OK;
	if (cJSON_IsString(rules.node))
		return run_read_rules_file(run, &rules, file, checks, files, err);
	return checks->rules(&rules, err);
}

/* {"overfit": false}, {"overfit": {"enabled": false}}: what is said of no rule leaves it on. */
static bool run_rule_is_off(const cJSON *rules, const char *name)
{
	const cJSON *rule = cJSON_GetObjectItemCaseSensitive(rules, name);

	return cJSON_IsFalse(rule) ||
	       cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(rule, "enabled"));
}

enum status run__read_health(struct run_file *run, cJSON **file, const struct run_checks *checks,
			     bool files, struct err *err)
{
	enum status status;

	if (!run->health.wanted)
		return ST_OK;
	status = run_read_rules(run, file, checks, files, err);
	/* What never breaks ends no run. */
	for (int i = 0; status == ST_OK && i < run->health.stop.count; i++)
		if (run_rule_is_off(run->health.rules, run->health.stop.items[i]))
			status = err_set(
				err, ST_INVALID,
				"%s: health.stop: the rule %s is switched off in health.rules",
				run->path, run->health.stop.items[i]);
	return status;
}
