/*
 * The report `health --reevaluate`: read the rules, return the hits as a table. See
 * report_health.h.
 */
#include "reports/named/report_health.h"

#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "reports/named/report_health_internal.h"
#include "reports/table/report_internal.h"
#include "reports/report_registry.h"

/* ---- rules ----------------------------------------------------------------------------------- */

static void read_parameters(struct outfeed_health_rules *rules, enum outfeed_health_id id,
			    const char *parameters, struct err *err)
{
	const char *name = outfeed_health_describe(id)->name;
	char text[2 * OUTFEED_HEALTH_TEXT];
	struct json_at root;
	cJSON *tree;

	snprintf(text, sizeof(text), "{\"%s\": %s}", name, parameters);
	if (json_parse(&tree, text, strlen(text), "health_rules", err) != ST_OK)
		return;
	root = json_root("health_rules", tree);
	outfeed_health_read(rules, &root, err);
	cJSON_Delete(tree);
}

/* Apply the recorded rules; those of other programs are ignored. */
static void read_recorded_rules(struct outfeed_health_rules *rules, struct prof_db *db,
				struct err *err)
{
	struct prof_query *query;

	prof_query_open(&query, db,
			"SELECT rule, threshold, patience, enabled, parameters FROM health_rules",
			err);
	while (prof_query_next(query, &err->status, err)) {
		const char *name = prof_column_text(query, 0);
		const double threshold = prof_column_real(query, 1);
		const int64_t patience = prof_column_int(query, 2);
		enum outfeed_health_id id;

		if (!name || !outfeed_health_find(&id, name))
			continue;
		if (isfinite(threshold) && threshold >= 0)
			rules->rule[id].threshold = threshold;
		if (patience >= 1)
			rules->rule[id].patience = patience;
		rules->rule[id].enabled = prof_column_int(query, 3) != 0;
		if (prof_column_text(query, 4))
			read_parameters(rules, id, prof_column_text(query, 4), err);
	}
	prof_query_close(query);
}

enum status report_health_rules(struct outfeed_health_rules *out, struct prof_db *db,
				const char *file, struct err *err)
{
	struct json_at root;
	struct err own;
	cJSON *tree;

	err = err_start(err, &own);
	outfeed_health_defaults(out);
	if (strcmp(file, "default") == 0)
		return ST_OK;
	read_recorded_rules(out, db, err);
	if (err_stuck(err) || strcmp(file, "recorded") == 0 || json_load(&tree, file, err) != ST_OK)
		return err->status;
	root = json_root(file, tree);
	outfeed_health_read(out, &root, err);
	cJSON_Delete(tree);
	return err->status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The columns of the view `health`. */
static const struct report_column hit_columns[] = {
	{"rule", REPORT_TEXT},
	{"queue", REPORT_TEXT},
	{"key", REPORT_TEXT},
	{"layer", REPORT_TEXT},
	{"stage", REPORT_NUMBER},
	{"phase", REPORT_TEXT},
	{"rank", REPORT_NUMBER},
	{"mode", REPORT_TEXT},
	{"epoch", REPORT_NUMBER},
	{"execution", REPORT_NUMBER},
	{"weight_update", REPORT_NUMBER},
	{"step", REPORT_NUMBER},
	{"microbatch", REPORT_NUMBER},
	{"replica", REPORT_NUMBER},
	{"time_ns", REPORT_COUNT},
	{"value", REPORT_REAL},
	{"threshold", REPORT_REAL},
};

static const char *copy_text(struct arena *arena, const char *text, bool *failed)
{
	char *copy = !text ? NULL : arena_strdup(arena, text);

	*failed |= text && !copy;
	return copy;
}

/* Return false if out of memory. */
static bool fill_hit(struct report_cell *row, const struct health_evaluation *j,
		     const struct health_found *found, struct arena *arena)
{
	static const char *const modes[] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	const struct outfeed_hit *hit = &found->hit;
	const struct health_tensor *tensor =
		hit->tensor_id == IPS_NULL ? NULL : &j->tensors[hit->tensor_id];
	const struct ips_keys *keys = &hit->keys;
	const char phase[2] = {keys->phase, '\0'};
	bool failed = false;
	const struct report_cell cells[] = {
		report_cell_of_text(outfeed_health_describe(hit->rule)->name),
		report_cell_of_text(copy_text(arena, tensor ? tensor->queue : NULL, &failed)),
		report_cell_of_text(copy_text(arena, hit->key, &failed)),
		report_cell_of_text(copy_text(arena, hit->layer, &failed)),
		report_cell_of_int(tensor ? tensor->stage : IPS_NULL),
		report_cell_of_text(copy_text(arena, keys->phase ? phase : NULL, &failed)),
		report_cell_of_int(found->rank),
		report_cell_of_text(modes[keys->mode]),
		report_cell_of_int(keys->epoch),
		report_cell_of_int(keys->execution),
		report_cell_of_int(keys->weight_update),
		report_cell_of_int(keys->step),
		report_cell_of_int(keys->microbatch),
		report_cell_of_int(keys->replica),
		report_cell_of_int(hit->time_ns),
		report_cell_of_real(hit->value),
		report_cell_of_real(hit->threshold),
	};

	_Static_assert(ARRAY_LEN(cells) == ARRAY_LEN(hit_columns), "columns out of step");
	memcpy(row, cells, sizeof(cells));
	return !failed;
}

enum status report_health_hits(struct report_table *out, struct prof_db *db,
			       const struct outfeed_health_rules *rules, struct err *err)
{
	struct err own;
	struct health_evaluation j = {.db = db, .rules = rules, .err = err_start(err, &own)};
	enum status status;

	*out = (struct report_table){0};
	if (arena_init(&j.arena, 0))
		return err_nomem(err);
	report__health_evaluate(&j);
	status = j.err->status;
	if (status == ST_OK)
		status = report_table_new(out, "health", hit_columns, ARRAY_LEN(hit_columns),
					  (int64_t)j.hit_count, err);
	for (size_t i = 0; i < j.hit_count && status == ST_OK; i++)
		if (!fill_hit(report_table_add(out), &j, &j.hits[i], &out->arena)) {
			report_table_free(out);
			status = err_nomem(err);
		}
	report__health_fini(&j);
	return status;
}

static enum status rules_table(struct report_table *out, const struct outfeed_health_rules *rules,
			       struct err *err)
{
	static const struct report_column columns[] = {
		{"rule", REPORT_TEXT},    {"threshold", REPORT_REAL},  {"patience", REPORT_NUMBER},
		{"enabled", REPORT_BOOL}, {"parameters", REPORT_TEXT},
	};
	enum status status = report_table_new(out, "health_rules", columns, ARRAY_LEN(columns),
					      OUTFEED_HEALTH_RULES, err);

	for (int i = 0; i < OUTFEED_HEALTH_RULES && status == ST_OK; i++) {
		const struct outfeed_health_rule *rule = &rules->rule[i];
		char parameters[OUTFEED_HEALTH_TEXT];
		struct report_cell *row = report_table_add(out);
		bool failed = false;

		outfeed_health_parameters(parameters, rules, (enum outfeed_health_id)i);
		row[0] = report_cell_of_text(
			outfeed_health_describe((enum outfeed_health_id)i)->name);
		row[1] = report_cell_of_real(rule->threshold);
		row[2] = report_cell_of_int(rule->patience);
		row[3] = report_cell_of_int(rule->enabled);
		row[4] = report_cell_of_text(copy_text(&out->arena, parameters, &failed));
		if (failed) {
			report_table_free(out);
			status = err_nomem(err);
		}
	}
	return status;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Set the note of JSON: the rules, in the form that --reevaluate reads. */
static enum status add_rules_note(struct report_table *table,
				  const struct outfeed_health_rules *rules, struct err *err)
{
	struct str text = {0};
	struct jsonw w;

	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const struct outfeed_health_rule *rule = &rules->rule[i];
		const struct outfeed_health_about *about =
			outfeed_health_describe((enum outfeed_health_id)i);

		jsonw_key(&w, about->name);
		jsonw_begin_object(&w);
		jsonw_key_real(&w, "threshold", rule->threshold);
		jsonw_key_int(&w, "patience", rule->patience);
		jsonw_key_bool(&w, "enabled", rule->enabled);
		for (int p = 0; p < OUTFEED_HEALTH_PARAMETERS && about->parameter[p]; p++)
			jsonw_key_real(&w, about->parameter[p], rule->parameter[p]);
		jsonw_end_object(&w);
	}
	jsonw_end_object(&w);
	table->note = text.failed ? NULL : arena_strdup(&table->arena, str_peek(&text));
	str_free(&text);
	return table->note ? ST_OK : err_nomem(err);
}

static enum status apply_limit(struct report_table *table, const struct report_request *request,
			       struct err *err)
{
	const bool text = request->render.format == REPORT_AS_TEXT;
	char shown[FMT_SIZE], whole[FMT_SIZE];
	int64_t limit = request->limit;

	if (limit == REPORT_LIMIT_DEFAULT)
		limit = text ? REPORT_TEXT_LIMIT : 0;
	if (limit == 0 || limit >= table->row_count)
		return ST_OK;
	if (text)
		table->note = arena_printf(&table->arena, "%s rows of %s", fmt_count(shown, limit),
					   fmt_count(whole, table->row_count));
	table->row_count = limit;
	return text && !table->note ? err_nomem(err) : ST_OK;
}

static enum status print_rules(const struct outfeed_health_rules *rules,
			       const struct report_request *request, struct err *err)
{
	struct report_table table;
	enum status status = rules_table(&table, rules, err);

	if (status != ST_OK)
		return status;
	fprintf(request->out, "\n");
	status = report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	return status;
}

enum status report_run_reevaluate(const struct report_request *request, struct err *err)
{
	struct outfeed_health_rules rules;
	struct report_table table;
	enum status status;

	status = report_health_rules(&rules, request->db, request->reevaluate, err);
	if (status != ST_OK)
		return status;
	status = report_health_hits(&table, request->db, &rules, err);
	if (status != ST_OK)
		return status;
	if (request->render.format == REPORT_AS_JSON)
		status = add_rules_note(&table, &rules, err);
	if (status == ST_OK)
		status = apply_limit(&table, request, err);
	if (status == ST_OK)
		status = report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	if (status == ST_OK && request->render.format == REPORT_AS_TEXT)
		status = print_rules(&rules, request, err);
	return status;
}
