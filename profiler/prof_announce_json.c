/*
 * The text of an announcement: one table of keys writes and reads it.
 *
 * Threading: none. Ownership: texts are copied.
 */
#include "profiler/prof_announce_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/jsonw.h"
#include "common/mem.h"

#define VERSION 1 /* of the file: another is not understood */

static const char *const announce_states[REPORT_RUN_STATES] = {
	[REPORT_RUN_COMPILING] = "compiling",
	[REPORT_RUN_TRAINING] = "training",
	[REPORT_RUN_EVALUATING] = "evaluating",
	[REPORT_RUN_PREDICTING] = "predicting",
};

const char *report_run_state_text(enum report_run_state state)
{
	return announce_states[state];
}

enum announce_kind {
	ANNOUNCE_INT,
	ANNOUNCE_TEXT, /* null: "" */
	ANNOUNCE_STATE,
	ANNOUNCE_FRACTION
};

#define AT(field)                                                                                  \
	.offset = offsetof(struct prof_announcement, field),                                       \
	.size = sizeof(((struct prof_announcement *)0)->field)
#define MOST ((int64_t)1 << 53) /* JSON's whole numbers are exact so far */

/* @least and @greatest: of whole numbers. */
static const struct announce_key {
	const char *key;
	enum announce_kind kind;
	size_t offset, size;
	int64_t least, greatest;
} announce_keys[] = {
	{"pid", ANNOUNCE_INT, AT(pid), 1, INT32_MAX},
	{"process_start", ANNOUNCE_INT, AT(process_start), 1, MOST},
	{"started_ms", ANNOUNCE_INT, AT(started_ms), 0, MOST},
	{"command", ANNOUNCE_TEXT, AT(command), 0, 0},
	{"user", ANNOUNCE_TEXT, AT(user), 0, 0},
	{"target", ANNOUNCE_TEXT, AT(target), 0, 0},
	{"clock_mhz", ANNOUNCE_INT, AT(clock_mhz), 1, 1000000},
	{"first_id", ANNOUNCE_INT, AT(first_id), 0, PROF__ANNOUNCE_IPUS - 1},
	{"ipus", ANNOUNCE_INT, AT(ipus), 1, PROF__ANNOUNCE_IPUS},
	{"replicas", ANNOUNCE_INT, AT(replicas), 1, MOST},
	{"stages", ANNOUNCE_INT, AT(stages), 1, MOST},
	{"state", ANNOUNCE_STATE, AT(progress.state), 0, 0},
	{"epoch", ANNOUNCE_INT, AT(progress.epoch), 0, MOST},
	{"epochs", ANNOUNCE_INT, AT(progress.epochs), 0, MOST},
	{"step", ANNOUNCE_INT, AT(progress.step), 0, MOST},
	{"steps", ANNOUNCE_INT, AT(progress.steps), 0, MOST},
	{"utilisation", ANNOUNCE_FRACTION, AT(progress.utilisation), 0, 0},
	{"report", ANNOUNCE_TEXT, AT(report), 0, 0},
};

/* ---- writing --------------------------------------------------------------------------------- */

static void announce_put(struct jsonw *w, const struct announce_key *key, const void *field)
{
	const char *text = field;

	switch (key->kind) {
	case ANNOUNCE_INT:
		jsonw_key_int(w, key->key, *(const int64_t *)field);
		break;
	case ANNOUNCE_TEXT:
		jsonw_key_text(w, key->key, text[0] ? text : NULL);
		break;
	case ANNOUNCE_STATE:
		jsonw_key_text(w, key->key, announce_states[*(const enum report_run_state *)field]);
		break;
	case ANNOUNCE_FRACTION:
		jsonw_key_real(w, key->key, *(const double *)field);
		break;
	}
}

void prof__announce_write(const struct prof_announcement *run, struct str *out)
{
	struct jsonw w;

	jsonw_init_str(&w, out, 2);
	jsonw_begin_object(&w);
	jsonw_key_int(&w, "version", VERSION);
	for (size_t i = 0; i < ARRAY_LEN(announce_keys); i++)
		announce_put(&w, &announce_keys[i], (const char *)run + announce_keys[i].offset);
	jsonw_end_object(&w);
	if (jsonw_end(&w, NULL) != ST_OK)
		out->failed = true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status announce_read_text(const struct json_at *at, char *out, size_t size,
				      struct err *err)
{
	const char *text = "";
	enum status status = json_is_null(at) ? ST_OK : json_text(at, &text, err);

	if (status == ST_OK)
		str_copy(out, size, text);
	return status;
}

static enum status announce_read_state(const struct json_at *at, enum report_run_state *out,
				       struct err *err)
{
	const char *text;
	enum status status = json_text(at, &text, err);

	if (status != ST_OK)
		return status;
	for (size_t i = 0; i < ARRAY_LEN(announce_states); i++)
		if (strcmp(text, announce_states[i]) == 0) {
			*out = (enum report_run_state)i;
			return ST_OK;
		}
	return json_unknown(at, "state", text, announce_states, ARRAY_LEN(announce_states), err);
}

static enum status announce_read_fraction(const struct json_at *at, double *out, struct err *err)
{
	enum status status = json_real(at, out, err);

	if (status == ST_OK && !(*out >= 0 && *out <= 1))
		status = json_fail(at, err, "is not a number from 0 to 1");
	return status;
}

static enum status announce_read(const struct json_at *root, const struct announce_key *key,
				 void *field, struct err *err)
{
	struct json_at at;

	if (!json_child(root, key->key, &at))
		return json_fail(root, err, "%s is missing", key->key);
	switch (key->kind) {
	case ANNOUNCE_INT:
		return json_int(&at, key->least, key->greatest, field, err);
	case ANNOUNCE_TEXT:
		return announce_read_text(&at, field, key->size, err);
	case ANNOUNCE_STATE:
		return announce_read_state(&at, field, err);
	case ANNOUNCE_FRACTION:
		return announce_read_fraction(&at, field, err);
	}
	return ST_OK;
}

static enum status announce_read_all(struct prof_announcement *out, const struct json_at *root,
				     struct err *err)
{
	struct json_at at;
	int64_t version;
	enum status status = json_object(root, err);

	if (status == ST_OK && !json_child(root, "version", &at))
		status = json_fail(root, err, "version is missing");
	if (status == ST_OK)
		status = json_int(&at, VERSION, VERSION, &version, err);
	for (size_t i = 0; i < ARRAY_LEN(announce_keys) && status == ST_OK; i++)
		status = announce_read(root, &announce_keys[i],
				       (char *)out + announce_keys[i].offset, err);
	return status;
}

enum status prof__announce_parse(struct prof_announcement *out, const char *text, size_t length,
				 const char *name, struct err *err)
{
	struct json_at root;
	cJSON *json;
	enum status status = json_parse(&json, text, length, name, err);

	*out = (struct prof_announcement){0};
	if (status != ST_OK)
		return status;
	root = json_root(name, json);
	status = announce_read_all(out, &root, err);
	cJSON_Delete(json);
	return status;
}
