/*
 * See recorder.h.
 */
#include "support/recorder.h"

#include <stdio.h>
#include <string.h>

#include "common/str.h"

static void say(void *user, const char *line)
{
	struct recorder *recorder = user;
	const size_t length = strlen(recorder->lines);

	snprintf(recorder->lines + length, sizeof(recorder->lines) - length, "%s\n", line);
}

static void hit(void *user, const struct outfeed_hit *ignored)
{
	struct recorder *recorder = user;

	(void)ignored;
	recorder->hits++;
}

void recorder_policy(struct outfeed_policy *out, const char *json)
{
	struct json_at root;
	struct err err = {ST_OK, ""};
	cJSON *node = NULL;

	*out = (struct outfeed_policy){0};
	if (!json)
		return;
	if (json_parse(&node, json, strlen(json), "run.json", &err) != ST_OK)
		fail_msg("%s", err.text);
	root = json_root("run.json", node);
	if (outfeed_policy_read(out, &root, &err) != ST_OK)
		fail_msg("%s", err.text);
	cJSON_Delete(node);
}

void recorder_open(struct recorder *recorder, const struct recorder_params *params)
{
	static const struct recorder_params defaults = {0};
	static const struct ips_keys none = IPS_KEYS_NULL;
	const struct recorder_params *p = params ? params : &defaults;
	struct err err = {ST_OK, ""};

	memset(recorder, 0, sizeof(*recorder));
	recorder->keys = none;
	recorder->keys.mode = IPS_TRAIN;
	recorder->keys.epoch = 1;
	prof_place_make(&recorder->place);
	recorder_policy(&recorder->policy, p->capture);
	recorder->policy.watched = p->watched;
	if (!p->unrecorded)
		recorder->recording = prof_start(&recorder->place, NULL);
	const struct outfeed_params all = {.recording = recorder->recording,
					   .policy = &recorder->policy,
					   .rules = p->rules,
					   .replicas = p->replicas == 0 ? 1 : p->replicas,
					   .budget = p->budget,
					   .pool = p->pool,
					   .say = say,
					   .hit = hit,
					   .user = recorder};

	if (outfeed_new(&recorder->outfeed, &all, &err) != ST_OK)
		fail_msg("%s", err.text);
}

void recorder_stop(struct recorder *recorder)
{
	struct err err = {ST_OK, ""};

	if (outfeed_close(recorder->outfeed, &err) != ST_OK)
		fail_msg("%s", err.text);
	recorder->outfeed = NULL;
	if (recorder->recording)
		prof_stop(recorder->recording);
	recorder->recording = NULL;
}

void recorder_close(struct recorder *recorder)
{
	recorder_stop(recorder);
	outfeed_policy_fini(&recorder->policy);
	prof_place_remove(&recorder->place);
}

struct outfeed_tensor *recorder_add(struct recorder *recorder,
				    const struct outfeed_tensor_params *params)
{
	struct outfeed_tensor *tensor;
	struct err err = {ST_OK, ""};

	if (outfeed_tensor_add(recorder->outfeed, &tensor, params, &err) != ST_OK)
		fail_msg("%s", err.text);
	return tensor;
}

struct outfeed_tensor *recorder_tensor(struct recorder *recorder, const char *key,
				       enum outfeed_kind kind, const int64_t *shape, int ndim)
{
	const struct outfeed_tensor_params params = {.queue = "watch",
						     .key = key,
						     .kind = kind,
						     .layer = "layer",
						     .shape = shape,
						     .ndim = ndim};

	return recorder_add(recorder, &params);
}

void recorder_record(struct recorder *recorder, struct outfeed_tensor *tensor, int64_t step,
		     const void *values, size_t count)
{
	struct outfeed_moment moment = {
		.keys = recorder->keys, .time_ns = 1000 + step, .order = ++recorder->order};
	struct err err = {ST_OK, ""};

	moment.keys.step = step;
	moment.keys.replica = 0;
	if (outfeed_record(tensor, &moment, values, count, NULL, &err) != ST_OK)
		fail_msg("%s", err.text);
}

void recorder_rule(struct outfeed_health_rules *out, enum outfeed_health_id id, double threshold,
		   int64_t patience)
{
	outfeed_health_defaults(out);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		out->rule[i].enabled = false;
	out->rule[id].enabled = true;
	out->rule[id].threshold = threshold;
	out->rule[id].patience = patience;
}
