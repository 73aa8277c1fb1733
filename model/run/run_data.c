/*
 * The data of a run as a text, which its recording stores so that the run can be planned again.
 */
#include "model/run/run_rules.h"

#include <string.h>

#include "common/json.h"
#include "common/jsonw.h"

static void write_targets(struct jsonw *w, const char *key, const struct target_kind *kind)
{
	jsonw_key(w, key);
	jsonw_begin_object(w);
	jsonw_key_int(w, "classes", kind->classes);
	jsonw_key_int(w, "width", kind->width);
	if (kind->weights > 0)
		jsonw_key_int(w, "weights", kind->weights);
	if (kind->part_count > 0)
		jsonw_key(w, "parts");
	if (kind->part_count > 0)
		jsonw_begin_array(w);
	for (int i = 0; i < kind->part_count; i++) {
		jsonw_begin_object(w);
		jsonw_key_int(w, "classes", kind->parts[i].classes);
		jsonw_key_int(w, "width", kind->parts[i].width);
		jsonw_end_object(w);
	}
	if (kind->part_count > 0)
		jsonw_end_array(w);
	jsonw_end_object(w);
}

void run_data_write(struct str *out, const struct run_data *data)
{
	struct jsonw w;

	jsonw_init_str(&w, out, 0);
	jsonw_begin_object(&w);
	jsonw_key_int(&w, "train_items", data->train_items);
	jsonw_key_int(&w, "test_items", data->test_items);
	jsonw_key(&w, "item");
	jsonw_begin_array(&w);
	for (int i = 0; i < data->item.ndim; i++)
		jsonw_int(&w, data->item.dim[i]);
	jsonw_end_array(&w);
	write_targets(&w, "train", &data->train);
	write_targets(&w, "test", &data->test);
	jsonw_end_object(&w);
	if (jsonw_end(&w, NULL) != ST_OK)
		out->failed = true;
}

static enum status read_number(const struct json_at *at, const char *key, int64_t greatest,
			       int64_t *out, struct err *err)
{
	struct json_at here;

	if (!json_child(at, key, &here))
		return json_fail(at, err, "\"%s\" is missing", key);
	return json_int(&here, 0, greatest, out, err);
}

static enum status read_targets(const struct json_at *root, const char *key,
				struct target_kind *out, struct err *err)
{
	struct json_at at, here, part;
	int64_t classes = 0;
	enum status status;

	if (!json_child(root, key, &at))
		return json_fail(root, err, "\"%s\" is missing", key);
	status = read_number(&at, "classes", INT32_MAX, &classes, err);
	out->classes = (int)classes;
	if (status == ST_OK)
		status = read_number(&at, "width", INT32_MAX, &out->width, err);
	if (status == ST_OK && json_child(&at, "weights", &here))
		status = json_int(&here, 1, INT32_MAX, &out->weights, err);
	if (status != ST_OK || !json_child(&at, "parts", &here))
		return status;
	status = json_array(&here, err);
	if (status == ST_OK && json_count(&here) > TARGET_PARTS)
		status = json_fail(&here, err, "has more than %d entries", TARGET_PARTS);
	classes = 0;
	for (int i = 0; status == ST_OK && json_item(&here, i, &part); i++) {
		status = read_number(&part, "classes", INT32_MAX, &classes, err);
		if (status == ST_OK)
			status = read_number(&part, "width", INT32_MAX, &out->parts[i].width, err);
		out->parts[i].classes = (int)classes;
		out->part_count = i + 1;
	}
	return status;
}

static enum status read_item(const struct json_at *root, struct model_shape *out, struct err *err)
{
	struct json_at at, dim;
	enum status status = ST_OK;

	if (!json_child(root, "item", &at))
		return json_fail(root, err, "\"item\" is missing");
	status = json_array(&at, err);
	if (status == ST_OK && json_count(&at) > MODEL_DIMS)
		status = json_fail(&at, err, "has more than %d dimensions", MODEL_DIMS);
	if (status != ST_OK)
		return status;
	out->ndim = json_count(&at);
	for (int i = 0; status == ST_OK && json_item(&at, i, &dim); i++)
		status = json_int(&dim, 1, INT32_MAX, &out->dim[i], err);
	return status;
}

enum status run_data_read(struct run_data *out, const char *text, const char *name, struct err *err)
{
	struct json_at root;
	enum status status;
	cJSON *tree;

	*out = (struct run_data){0};
	status = json_parse(&tree, text, strlen(text), name, err);
	if (status != ST_OK)
		return status;
	root = json_root(name, tree);
	status = read_number(&root, "train_items", INT64_C(1) << 53, &out->train_items, err);
	if (status == ST_OK)
		status = read_number(&root, "test_items", INT64_C(1) << 53, &out->test_items, err);
	if (status == ST_OK)
		status = read_item(&root, &out->item, err);
	if (status == ST_OK)
		status = read_targets(&root, "train", &out->train, err);
	if (status == ST_OK)
		status = read_targets(&root, "test", &out->test, err);
	cJSON_Delete(tree);
	return status;
}
