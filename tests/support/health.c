/*
 * See health.h.
 */
#include "support/health.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

static void keep_hit(void *user, const struct outfeed_hit *hit)
{
	struct health_rig *rig = user;
	struct health_rig_hit *kept = &rig->hits[rig->count++];

	assert_true(rig->count <= HEALTH_RIG_HITS);
	*kept = (struct health_rig_hit){hit->rule,         hit->tensor_id,
					hit->keys.replica, hit->keys.weight_update,
					hit->keys.step,    hit->keys.epoch,
					hit->time_ns,      hit->value,
					hit->threshold,    ""};
	str_copy(kept->key, sizeof(kept->key), hit->key ? hit->key : "");
}

enum status health_read(struct outfeed_health_rules *rules, const char *text, struct err *err)
{
	char *json = mem_strdup(text);
	enum status status;
	struct json_at root;
	cJSON *tree;

	assert_non_null(json);
	for (char *c = json; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	status = json_parse(&tree, json, strlen(json), "rules.json", err);
	mem_free(json);
	assert_int_equal(status, ST_OK);
	root = json_root("rules.json", tree);
	status = outfeed_health_read(rules, &root, err);
	cJSON_Delete(tree);
	return status;
}

void health_rig_open_rules(struct health_rig *rig, const struct outfeed_health_rules *rules)
{
	struct outfeed_health_params params = {.rules = rules, .hit = keep_hit, .user = rig};

	*rig = (struct health_rig){.hits = mem_calloc(HEALTH_RIG_HITS, sizeof(*rig->hits))};
	assert_non_null(rig->hits);
	assert_int_equal(outfeed_health_new(&rig->health, &params, NULL), ST_OK);
}

void health_rig_open(struct health_rig *rig, const char *text)
{
	struct outfeed_health_rules rules;

	outfeed_health_defaults(&rules);
	if (text)
		assert_int_equal(health_read(&rules, text, NULL), ST_OK);
	health_rig_open_rules(rig, &rules);
}

void health_rig_close(struct health_rig *rig)
{
	outfeed_health_free(rig->health);
	mem_free(rig->hits);
}

struct outfeed_health_tensor *health_rig_tensor(struct health_rig *rig, enum outfeed_kind kind,
						enum outfeed_activity activity)
{
	struct outfeed_health_about_tensor about = {.tensor_id = 7,
						    .replica = 0,
						    .key = "t",
						    .layer = "l",
						    .kind = kind,
						    .activity = activity,
						    .matrix = kind != OUTFEED_ACTIVATION};
	struct outfeed_health_tensor *tensor;

	assert_int_equal(outfeed_health_tensor(rig->health, &tensor, &about, NULL), ST_OK);
	return tensor;
}

struct outfeed_health_row health_row_unknown(int64_t update)
{
	struct outfeed_health_row row = {IPS_KEYS_NULL, 0,   IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL,
					 IPS_NULL,      NAN, NAN,      NAN,      NAN,      NAN,
					 NAN,           NAN, NAN,      NAN};

	row.keys.weight_update = update;
	row.keys.step = update;
	row.keys.replica = 0;
	row.time_ns = 1000 * update;
	return row;
}

struct outfeed_health_row health_row_sound(int64_t update)
{
	struct outfeed_health_row row = health_row_unknown(update);
	double size = 1 + 0.01 * (double)(update % 7);

	row.n = 100;
	row.n_nan = row.n_inf = 0;
	row.n_zero = 3;
	row.n_changed = 90;
	row.abs_max = row.max = size;
	row.min = -size;
	row.mean = 0.1 * size;
	row.std = 0.5 * size;
	row.l1 = 40 * size;
	row.l2 = 5 * size;
	row.inactive = 0.2;
	row.update_ratio = 0.01;
	return row;
}

int health_rig_count(const struct health_rig *rig, enum outfeed_health_id rule)
{
	int count = 0;

	for (int i = 0; i < rig->count; i++)
		count += rig->hits[i].rule == rule;
	return count;
}

void health_rig_expect(struct health_rig *rig, enum outfeed_health_id rule, int64_t update,
		       double value)
{
	assert_int_equal(rig->count, 1);
	assert_string_equal(outfeed_health_describe(rig->hits[0].rule)->name,
			    outfeed_health_describe(rule)->name);
	assert_int_equal(rig->hits[0].update, update);
	assert_close(rig->hits[0].value, value, 1e-12);
	rig->count = 0;
}

void health_rig_quiet(const struct health_rig *rig)
{
	if (rig->count > 0)
		fail_msg("rule %s is hit at update %lld",
			 outfeed_health_describe(rig->hits[0].rule)->name,
			 (long long)rig->hits[0].update);
}
