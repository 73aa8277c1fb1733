/*
 * The names of tiers, kinds and types, reading outfeed.capture, and matching rules with tensors.
 *
 * Threading and ownership: as in the header.
 */
#include "outfeed/outfeed_policy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define EVERY_MOST 1000000000
#define LAST_MOST  1000000

/* ---- names ----------------------------------------------------------------------------------- */

static const char *const tier_texts[] = {
	[OUTFEED_OFF] = "off",     [OUTFEED_HEALTH] = "health", [OUTFEED_COUNTS] = "counts",
	[OUTFEED_STATS] = "stats", [OUTFEED_LAST_N] = "last",   [OUTFEED_HISTOGRAM] = "histogram",
	[OUTFEED_FULL] = "full",
};
_Static_assert(ARRAY_LEN(tier_texts) == OUTFEED_TIERS, "table out of step");

static const char *const kind_texts[] = {
	[OUTFEED_ACTIVATION] = "activation",
	[OUTFEED_GRADIENT] = "gradient",
	[OUTFEED_WEIGHT] = "weight",
	[OUTFEED_OPTIMIZER_STATE] = "optimizer_state",
};
_Static_assert(ARRAY_LEN(kind_texts) == OUTFEED_KINDS, "table out of step");

static const char *const activity_texts[] = {
	[OUTFEED_NO_ACTIVITY] = NULL,
	[OUTFEED_RELU] = "relu",
	[OUTFEED_TANH] = "tanh",
	[OUTFEED_SIGMOID] = "sigmoid",
};
_Static_assert(ARRAY_LEN(activity_texts) == OUTFEED_ACTIVITIES, "table out of step");

/* Return the index of @text, or -1. */
static int find_text(const char *const *texts, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++) {
		if (texts[i] && strcmp(texts[i], text) == 0)
			return (int)i;
	}
	return -1;
}

const char *outfeed_tier_text(enum outfeed_tier tier)
{
	return tier_texts[tier];
}

const char *outfeed_kind_text(enum outfeed_kind kind)
{
	return kind_texts[kind];
}

const char *outfeed_activity_text(enum outfeed_activity activity)
{
	return activity_texts[activity];
}

bool outfeed_activity_of(enum outfeed_activity *out, const char *text)
{
	int index = find_text(activity_texts, ARRAY_LEN(activity_texts), text);

	if (index < 0)
		return false;
	*out = (enum outfeed_activity)index;
	return true;
}

bool outfeed_kind_of(enum outfeed_kind *out, const char *text)
{
	int index = find_text(kind_texts, ARRAY_LEN(kind_texts), text);

	if (index < 0)
		return false;
	*out = (enum outfeed_kind)index;
	return true;
}

bool outfeed_tier_of(enum outfeed_tier *out, const char *text)
{
	int index = find_text(tier_texts, ARRAY_LEN(tier_texts), text);

	if (index < 0)
		return false;
	*out = (enum outfeed_tier)index;
	return true;
}

/* ---- reading a rule -------------------------------------------------------------------------- */

/* Read "stats" or "last 20". */
static enum status read_tier(const struct json_at *at, struct outfeed_rule *out, struct err *err)
{
	const char *text, *known[OUTFEED_TIERS];
	long long last;
	enum status status = json_text(at, &text, err);

	if (status != ST_OK)
		return status;
	if (strncmp(text, "last", 4) == 0 && (text[4] == '\0' || text[4] == ' ')) {
		if (text[4] == '\0' || !str_to_int(text + 5, &last) || last < 1 || last > LAST_MOST)
			return json_fail(at, err,
					 "\"%s\": say how many values are kept, from 1 to %d: "
					 "\"last 20\"",
					 text, LAST_MOST);
		out->tier = OUTFEED_LAST_N;
		out->last = last;
		return ST_OK;
	}
	if (outfeed_tier_of(&out->tier, text))
		return ST_OK;
	for (int i = 0; i < OUTFEED_TIERS; i++)
		known[i] = outfeed_tier_text((enum outfeed_tier)i);
	return json_unknown(at, "tier", text, known, OUTFEED_TIERS, err);
}

static enum status read_rule_kind(const struct json_at *at, struct outfeed_rule *out,
				  struct err *err)
{
	const char *known[OUTFEED_KINDS];
	enum status status;
	size_t kind = 0;

	for (int i = 0; i < OUTFEED_KINDS; i++)
		known[i] = outfeed_kind_text((enum outfeed_kind)i);
	status = json_choice(at, "kind", known, OUTFEED_KINDS, &kind, err);
	if (status == ST_OK)
		out->kinds |= 1u << kind;
	return status;
}

static enum status read_pattern(const struct json_at *at, struct outfeed_rule *out, struct err *err)
{
	const char *text;
	enum status status = json_text(at, &text, err);

	if (status != ST_OK)
		return status;
	out->tensors[out->tensor_count] = mem_strdup(text);
	if (!out->tensors[out->tensor_count])
		return err_nomem(err);
	out->tensor_count++;
	return ST_OK;
}

/* ---- rules ----------------------------------------------------------------------------------- */

typedef enum status (*read_one)(const struct json_at *at, struct outfeed_rule *out,
				struct err *err);

/* Read a text, or a list of them. */
static enum status read_texts(const struct json_at *at, struct outfeed_rule *out, read_one read,
			      struct err *err)
{
	enum status status = ST_OK;
	struct json_at item = {0};

	if (!cJSON_IsArray(at->node))
		return read(at, out, err);
	while (status == ST_OK && json_next(at, &item))
		status = read(&item, out, err);
	return status;
}

static enum status read_patterns(const struct json_at *at, struct outfeed_rule *out,
				 struct err *err)
{
	const int count = cJSON_IsArray(at->node) ? json_count(at) : 1;

	if (count == 0)
		return json_fail(at, err, "an empty list fits no tensor: leave it out for all");
	out->tensors = mem_calloc((size_t)count, sizeof(*out->tensors));
	if (!out->tensors)
		return err_nomem(err);
	return read_texts(at, out, read_pattern, err);
}

static enum status read_kinds(const struct json_at *at, struct outfeed_rule *out, struct err *err)
{
	if (cJSON_IsArray(at->node) && json_count(at) == 0)
		return json_fail(at, err, "an empty list fits no tensor: leave it out for all");
	return read_texts(at, out, read_rule_kind, err);
}

static enum status read_every(const struct json_at *at, struct outfeed_rule *out, struct err *err)
{
	return json_int(at, 1, EVERY_MOST, &out->every, err);
}

static const struct {
	const char *key;
	read_one read;
} RULE_KEYS[] = {
	{"tensors", read_patterns},
	{"kind", read_kinds},
	{"tier", read_tier},
	{"every", read_every},
};

static enum status read_rules(struct outfeed_policy *out, const struct json_at *at, struct err *err)
{
	const int count = cJSON_IsArray(at->node) ? json_count(at) : 1;
	const char *keys[ARRAY_LEN(RULE_KEYS)];
	enum status status = ST_OK;
	struct json_at item = {0}, value;

	out->rules = mem_calloc((size_t)count + 1, sizeof(*out->rules));
	if (!out->rules)
		return err_nomem(err);
	if (cJSON_IsString(at->node)) {
		out->count = 1;
		out->rules[0].every = 1;
		out->rules[0].queued_only = true;
		return read_tier(at, &out->rules[0], err);
	}
	if (!cJSON_IsArray(at->node))
		status = json_fail(at, err,
				   "must be a tier such as \"stats\", or a list of rules such as "
				   "[{\"kind\": \"gradient\", \"tier\": \"full\"}]");
	for (size_t i = 0; i < ARRAY_LEN(RULE_KEYS); i++)
		keys[i] = RULE_KEYS[i].key;
	while (status == ST_OK && json_next(at, &item)) {
		struct outfeed_rule *rule = &out->rules[out->count++];

		rule->every = 1;
		status = json_only_keys(&item, keys, ARRAY_LEN(keys), err);
		if (status == ST_OK && !json_child(&item, "tier", &value))
			status = json_fail(&item, err, "tier: missing");
		for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(RULE_KEYS); i++)
			if (json_child(&item, RULE_KEYS[i].key, &value))
				status = RULE_KEYS[i].read(&value, rule, err);
	}
	return status;
}

enum status outfeed_policy_read(struct outfeed_policy *out, const struct json_at *at,
				struct err *err)
{
	enum status status;

	*out = (struct outfeed_policy){0};
	if (!at)
		return ST_OK;
	status = read_rules(out, at, err);
	if (status != ST_OK)
		outfeed_policy_fini(out);
	return status;
}

void outfeed_policy_fini(struct outfeed_policy *policy)
{
	for (int i = 0; i < policy->count; i++) {
		for (int t = 0; t < policy->rules[i].tensor_count; t++)
			mem_free(policy->rules[i].tensors[t]);
		mem_free(policy->rules[i].tensors);
	}
	mem_free(policy->rules);
	*policy = (struct outfeed_policy){0};
}

enum status outfeed_policy_check(const struct json_at *at, struct err *err)
{
	struct outfeed_policy policy;
	enum status status = outfeed_policy_read(&policy, at, err);

	outfeed_policy_fini(&policy);
	return status;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool matches_tensor(const struct outfeed_rule *rule, const char *key, enum outfeed_kind kind,
			   enum outfeed_asked asked)
{
	if ((rule->queued_only && asked != OUTFEED_SENT) ||
	    (rule->kinds != 0 && (rule->kinds & 1u << kind) == 0))
		return false;
	for (int i = 0; i < rule->tensor_count; i++)
		if (fnmatch(rule->tensors[i], key, 0) == 0)
			return true;
	return rule->tensor_count == 0 && asked != OUTFEED_NAMED;
}

/* Return the first matching rule, or NULL. */
static const struct outfeed_rule *find_rule(const struct outfeed_policy *policy, const char *key,
					    enum outfeed_kind kind, enum outfeed_asked asked)
{
	for (int i = 0; i < policy->count; i++)
		if (matches_tensor(&policy->rules[i], key, kind, asked))
			return &policy->rules[i];
	return NULL;
}

struct outfeed_choice outfeed_policy_choose(const struct outfeed_policy *policy, const char *key,
					    enum outfeed_kind kind, enum outfeed_asked asked)
{
	const struct outfeed_rule *rule = find_rule(policy, key, kind, asked);

	if (rule)
		return (struct outfeed_choice){rule->tier, rule->every, rule->last};
	if (asked == OUTFEED_SENT)
		return (struct outfeed_choice){OUTFEED_STATS, 1, 0};
	if (asked == OUTFEED_NAMED)
		return (struct outfeed_choice){OUTFEED_OFF, 1, 0};
	return (struct outfeed_choice){
		(policy->watched & 1u << kind) != 0 ? OUTFEED_HEALTH : OUTFEED_OFF, 1, 0};
}

void outfeed_policy_explain(char out[OUTFEED_POLICY_TEXT], const struct outfeed_policy *policy,
			    const char *key, enum outfeed_kind kind, enum outfeed_asked asked)
{
	const struct outfeed_rule *rule = find_rule(policy, key, kind, asked);

	if (rule && rule->queued_only)
		str_copy(out, OUTFEED_POLICY_TEXT, "outfeed.capture");
	else if (rule)
		snprintf(out, OUTFEED_POLICY_TEXT, "outfeed.capture[%d]",
			 (int)(rule - policy->rules));
	else
		str_copy(out, OUTFEED_POLICY_TEXT,
			 asked == OUTFEED_SENT ? "the default of what a queue sends"
					       : "the health of all such tensors is watched");
}
