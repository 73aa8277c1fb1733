/*
 * The section "compile" of a run file. No state.
 */
#include "model/run/run_compile.h"

#include "common/json.h"

/* The value at @section.@key of the run file; false: absent or null. The cursors point to @root. */
static bool find_value(const struct json_at *root, const char *section, const char *key,
		       struct json_at *within, struct json_at *out)
{
	return json_child(root, section, within) && !json_is_null(within) &&
	       json_child(within, key, out) && !json_is_null(out);
}

enum status run_optimizer(struct optimizer *out, const struct run_file *run, struct err *err)
{
	const struct json_at root = json_root(run->path, run->json);
	struct json_at within, at;

	return optimizer_get(
		out, find_value(&root, "compile", "optimizer", &within, &at) ? &at : NULL, err);
}

enum status run_measure(struct loss *loss, struct metric_list *metrics, const struct run_file *run,
			const char *section, const struct model *model,
			const struct target_kind *kind, struct err *err)
{
	const struct json_at root = json_root(run->path, run->json);
	struct json_at within, at;
	char path[256];
	enum status status;
	bool given;

	if (!find_value(&root, section, "loss", &within, &at) &&
	    !find_value(&root, "compile", "loss", &within, &at))
		return err_set(err, ST_INVALID, "%s: compile.loss: missing", run->path);
	status = loss_get(loss, &at, err);
	if (status != ST_OK)
		return status;
	status = loss_check(loss, model, kind, err);
	if (status != ST_OK) {
		json_path(&at, path, sizeof(path));
		err_prefix(err, "%s: %s", run->path, path);
		return status;
	}
	given = find_value(&root, section, "metrics", &within, &at) ||
		find_value(&root, "compile", "metrics", &within, &at);
	return metric_list_new(metrics, given ? &at : NULL, model, kind, err);
}
