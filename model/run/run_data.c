/*
 * The data of a run as a text, which its recording stores so that the run can be planned again.
 */
#include "model/run/run_rules.h"

#include <string.h>

#include "common/json.h"
#include "common/jsonw.h"
#include "model/model_config.h"

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

/* The readers do nothing if @err (not NULL) already holds a failure. */

static void read_number(const struct json_at *at, const char *key, int64_t greatest, int64_t *out,
			struct err *err)
{
	struct json_at here;

	if (model_option_need(at, key, &here, err))
		json_int(&here, 0, greatest, out, err);
}

static void read_targets(const struct json_at *root, const char *key, struct target_kind *out,
			 struct err *err)
{
	struct json_at at, here, part = {0};
	int64_t classes = 0;

	if (!model_option_need(root, key, &at, err))
		return;
	read_number(&at, "classes", INT32_MAX, &classes, err);
	out->classes = (int)classes;
	read_number(&at, "width", INT32_MAX, &out->width, err);
	if (model_option_given(&at, "weights", &here, err))
		json_int(&here, 1, INT32_MAX, &out->weights, err);
	if (!model_option_given(&at, "parts", &here, err) || json_array(&here, err) != ST_OK)
		return;
	if (json_count(&here) > TARGET_PARTS)
		json_fail(&here, err, "has more than %d entries", TARGET_PARTS);
	while (!err_stuck(err) && json_next(&here, &part)) {
		struct target_part *to = &out->parts[out->part_count++];

		read_number(&part, "classes", INT32_MAX, &classes, err);
		read_number(&part, "width", INT32_MAX, &to->width, err);
		to->classes = (int)classes;
	}
}

static void read_item(const struct json_at *root, struct model_shape *out, struct err *err)
{
	struct json_at at, dim = {0};

	if (!model_option_need(root, "item", &at, err) || json_array(&at, err) != ST_OK)
		return;
	if (json_count(&at) > MODEL_DIMS)
		json_fail(&at, err, "has more than %d dimensions", MODEL_DIMS);
	while (!err_stuck(err) && json_next(&at, &dim))
		json_int(&dim, 1, INT32_MAX, &out->dim[out->ndim++], err);
}

enum status run_data_read(struct run_data *out, const char *text, const char *name, struct err *err)
{
	struct json_at root;
	struct err own;
	cJSON *tree;

	err = err_start(err, &own);
	*out = (struct run_data){0};
	if (json_parse(&tree, text, strlen(text), name, err) != ST_OK)
		return err->status;
	root = json_root(name, tree);
	read_number(&root, "train_items", INT64_C(1) << 53, &out->train_items, err);
	read_number(&root, "test_items", INT64_C(1) << 53, &out->test_items, err);
	read_item(&root, &out->item, err);
	read_targets(&root, "train", &out->train, err);
	read_targets(&root, "test", &out->test, err);
	cJSON_Delete(tree);
	return err->status;
}
